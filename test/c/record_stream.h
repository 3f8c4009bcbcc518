/* test/c/record_stream.h - what the tests of recordings share: files that vanish, streams cut into blocks, files read whole. */
#ifndef RRTRACE_TEST_RECORD_STREAM_H
#define RRTRACE_TEST_RECORD_STREAM_H

#include "record/reader.h"
#include "record/writer.h"

#include "sim_stream.h"

#include <fcntl.h>
#include <sys/stat.h>

/* A path of this test's own. */
static const char *temp_file(const char *name)
{
    static char folder[] = "/tmp/rrtrace-record-XXXXXX", path[sizeof folder + 64];
    static bool is_made;
    if (!is_made)
        CHECK(mkdtemp(folder));
    is_made = true;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

__attribute__((unused)) static void temp_remove(void)
{
    char folder[128];
    snprintf(folder, sizeof folder, "%s", temp_file(""));
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_EQ(system(command), 0);
}

/* Cut events[first…] at about block_size, never within a DEFINE. */
__attribute__((unused)) static size_t block_end(const event_vec *v, size_t first, size_t block_size)
{
    size_t i = first;
    while (i < v->count && i - first < block_size)
        i += ev_slots(v->items[i]);
    return i;
}

__attribute__((unused)) static stream_how random_how(uint64_t *state, uint32_t event_count)
{
    return (stream_how){
        .event_count = event_count,
        .thread_count = 1 + (uint32_t)test_random_below(state, 6),
        .fibers_per_thread = 1 + (uint32_t)test_random_below(state, 4),
        .method_count = 1 + (uint32_t)test_random_below(state, 30),
        .depth_max = 1 + (uint32_t)test_random_below(state, 100),
        .oddity_per_mille = (uint32_t)test_random_below(state, 3) * 60,
        .switch_per_mille = (uint32_t)test_random_below(state, 3) * 40,
        .gc_per_mille = (uint32_t)test_random_below(state, 3) * 10,
        .thread_per_mille = (uint32_t)test_random_below(state, 3) * 20,
        .unwind_per_mille = (uint32_t)test_random_below(state, 3) * 20,
        .define_per_mille = (uint32_t)test_random_below(state, 3) * 10,
    };
}

__attribute__((unused)) static record_writer *open_writer(const char *path)
{
    record_writer *w;
    char error[512] = "";
    if (record_writer_open(&w, path, error, sizeof error) != 0)
        TEST_FAILED("%s", error);
    return w;
}

__attribute__((unused)) static record_reader *open_reader(const char *path)
{
    record_reader *r;
    char error[512] = "";
    if (record_open(&r, path, error, sizeof error) != 0)
        TEST_FAILED("%s", error);
    return r;
}

/* All events of a stream that can be read, appended. */
__attribute__((unused)) static void read_stream(record_reader *r, uint32_t stream, event_vec *out)
{
    for (uint32_t i = 0; i < record_chunk_count(r); i++) {
        record_chunk c = record_chunk_at(r, i);
        if (c.kind != RECORD_EVENTS || c.stream != stream)
            continue;
        uint32_t count = 0;
        CHECK(vec_reserve(out, out->count + c.slot_count));
        if (record_read_events(r, i, out->items + out->count, c.slot_count, &count) == 0)
            CHECK_EQ(count, c.slot_count);
        out->count += count;
    }
}

__attribute__((unused)) static void same_events(const event_vec *got, const event_vec *want, uint64_t seed)
{
    for (size_t i = 0; i < got->count && i < want->count; i++)
        if (memcmp(&got->items[i], &want->items[i], sizeof(ev)) != 0)
            TEST_FAILED("seed %" PRIu64 ": slot %zu of %zu differs", seed, i, want->count);
    if (got->count != want->count)
        TEST_FAILED("seed %" PRIu64 ": %zu slots, wanted %zu", seed, got->count, want->count);
}

#endif
