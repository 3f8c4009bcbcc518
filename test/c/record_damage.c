/* Files that are cut off, spoiled, full or forged: one clear line, what can be read is read, and nothing is invented. */
#include "record_stream.h"

#include "base/crc.h"
#include "base/mem.h"
#include "record/chunk.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

typedef VEC(unsigned char) byte_vec;

static void load(const char *path, byte_vec *out)
{
    FILE *f = fopen(path, "rb");
    CHECK(f);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    CHECK(size >= 0 && vec_reserve(out, (size_t)size + 1));
    out->count = fread(out->items, 1, (size_t)size, f);
    CHECK_EQ(out->count, size);
    fclose(f);
}

static void save(const char *path, const unsigned char *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, count, f) == count);
    CHECK_EQ(fclose(f), 0);
}

/* What the small file holds, by stream. */
enum { STREAMS = 2 };
static event_vec written[STREAMS];
static size_t chunks_written;

static sim_state some_state(void)
{
    static sim_state_thread thread = {.number = 1, .fiber_count = 1, .gvl = SIM_STATE_CLOSED};
    static sim_state_fiber fiber = {.number = 1, .frame_count = 2};
    static sim_state_frame frames[] = {{100, 0x7fff0000, 1}, {200, 0x7ffeffc8, 2}};
    sim_state s = {.clock.line.ns_per_tick_q32 = 1, .gc = SIM_STATE_CLOSED, .last_ns = 300};
    s.threads.items = &thread;
    s.fibers.items = &fiber;
    s.frames.items = frames;
    s.threads.count = s.fibers.count = 1;
    s.frames.count = 2;
    return s;
}

/* A recording of some 2 KiB: two streams, several chunks, a state, definitions. */
static void write_small(const char *path)
{
    uint64_t state = 11;
    record_writer *w = open_writer(path);
    chunks_written = STREAMS;
    for (uint32_t s = 0; s < STREAMS; s++) {
        stream_how how = {.event_count = 220, .thread_count = 2, .fibers_per_thread = 2, .method_count = 5, .depth_max = 9,
                          .switch_per_mille = 20, .define_per_mille = 15, .oddity_per_mille = 10, .gc_per_mille = 10};
        vec_free(&written[s]);
        stream_make(&written[s], &state, &how);
        CHECK_EQ(record_writer_stream_begins(w, s, 100 + s, 1, 5), 0);
    }
    for (int piece = 0; piece < 3; piece++)
        for (uint32_t s = 0; s < STREAMS; s++) {
            size_t begin = block_end(&written[s], 0, written[s].count * (size_t)piece / 3);
            size_t end = block_end(&written[s], 0, written[s].count * (size_t)(piece + 1) / 3);
            if (piece == 1) {
                sim_state st = some_state();
                CHECK_EQ(record_writer_state(w, s, &st), 0);
            }
            CHECK_EQ(record_writer_events(w, s, written[s].items + begin, end - begin), 0);
            CHECK_EQ(record_writer_flush(w), 0);
            chunks_written++;
        }
    for (uint32_t s = 0; s < STREAMS; s++)
        CHECK_EQ(record_writer_stream_ends(w, s, s ? "odd" : NULL), 0);
    chunks_written += STREAMS;
    record_writer_close(w);
}

static void ignore_definition(void *context, ev head, const void *payload)
{
    volatile unsigned char sum = 0; /* every byte is there to be read */
    for (uint32_t i = 0; i < head.place; i++)
        sum = (unsigned char)(sum + ((const unsigned char *)payload)[i]);
    *(size_t *)context += sum ? 1 : 0;
}

typedef struct found {
    bool opens, is_complete;
    size_t slots[STREAMS];
    uint32_t chunks;
    char line[RECORD_PROBLEM_BYTES]; /* of the problem, wherever it was told */
} found;

static bool memory_is_limited; /* then there is enough for what a file of this size may ask for, and no more */

static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit limit = {300u << 20, 300u << 20};
    memory_is_limited = setrlimit(RLIMIT_AS, &limit) == 0;
#endif
}

/* Reads all there is. What is read must lie in the streams that were written, in order, chunk by chunk. */
static found read_all(const char *path, bool must_be_ours)
{
    found f = {0};
    record_reader *r;
    if (record_open(&r, path, f.line, sizeof f.line) != 0) {
        CHECK(f.line[0]);
        CHECK(!memory_is_limited || !strstr(f.line, "memory"));
        return f;
    }
    f.opens = true;
    f.chunks = record_chunk_count(r);
    size_t at[STREAMS] = {0}, seen = 0;
    for (uint32_t i = 0; i < f.chunks; i++) {
        record_chunk c = record_chunk_at(r, i);
        char text[64];
        sim_state state = {0};
        uint32_t count = 0;
        record_read_text(r, i, text, sizeof text);
        record_read_state(r, i, &state);
        sim_state_free(&state);
        if (c.kind != RECORD_EVENTS)
            continue;
        ev *events = malloc(c.slot_count * sizeof *events); /* exactly: asan sees a write beyond */
        CHECK(events);
        int error = record_read_events(r, i, events, c.slot_count, &count);
        CHECK(error == 0 || error == -EBADMSG || (error == -ENOMEM && !memory_is_limited));
        CHECK_EQ(count, error ? 0 : c.slot_count);
        if (!error && must_be_ours) {
            CHECK(c.stream < STREAMS);
            size_t *p = &at[c.stream];
            while (*p + count <= written[c.stream].count && memcmp(written[c.stream].items + *p, events, count * sizeof *events) != 0)
                ++*p; /* a chunk before it is missing */
            CHECK(*p + count <= written[c.stream].count);
            *p += count;
            f.slots[c.stream] += count;
        }
        free(events);
    }
    for (uint32_t s = 0; s < record_info_of(r).stream_count; s++)
        record_definitions(r, record_stream_at(r, s).stream, f.chunks, ignore_definition, &seen);
    record_info info = record_info_of(r);
    f.is_complete = info.is_complete;
    snprintf(f.line, sizeof f.line, "%s", info.problem);
    record_close(r);
    return f;
}

static bool is_one_line(const char *line, const char *path)
{
    return strncmp(line, path, strlen(path)) == 0 && strchr(line, '\n') == NULL && strlen(line) > strlen(path) + 5;
}

TEST(a_file_cut_off_at_any_byte_gives_its_whole_chunks_and_says_what_is_missing)
{
    const char *path = temp_file("cut.rrt");
    write_small(path);
    byte_vec bytes = {0};
    load(path, &bytes);
    found whole = read_all(path, true);
    CHECK(whole.is_complete);
    CHECK_EQ(whole.chunks, chunks_written);
    CHECK_EQ(whole.slots[0] + whole.slots[1], written[0].count + written[1].count);
    uint32_t chunks = 0;
    size_t slots = 0;
    for (size_t size = 0; size < bytes.count; size++) {
        save(path, bytes.items, size);
        found f = read_all(path, true);
        CHECK(!f.is_complete);
        CHECK(is_one_line(f.line, path));
        CHECK_EQ(f.opens, size >= sizeof(chunk_file_header));
        CHECK(f.chunks >= chunks && f.slots[0] + f.slots[1] >= slots); /* a longer file has no less */
        chunks = f.chunks;
        slots = f.slots[0] + f.slots[1];
    }
    CHECK_EQ(chunks, chunks_written); /* without its very last byte it has all */
    CHECK_EQ(slots, written[0].count + written[1].count);
    vec_free(&bytes);
    temp_remove();
}

TEST(any_bit_turned_is_noticed_or_harmless_and_told_in_one_line)
{
    const char *path = temp_file("flip.rrt");
    write_small(path);
    byte_vec bytes = {0};
    load(path, &bytes);
    size_t all = written[0].count + written[1].count, silent = 0;
    for (size_t i = 0; i < bytes.count; i++) {
        int step = i < sizeof(chunk_file_header) + 2 * sizeof(chunk_head) ? 1 : 3; /* all bits of the heads, some of the rest */
        for (int bit = (int)(i % 3) * (step - 1) / 2; bit < 8; bit += step) {
            bytes.items[i] ^= (unsigned char)(1 << bit);
            save(path, bytes.items, bytes.count);
            found f = read_all(path, true);
            bytes.items[i] ^= (unsigned char)(1 << bit);
            if (f.is_complete) {
                CHECK_EQ(f.slots[0] + f.slots[1], all);
                silent++;
            } else {
                CHECK(is_one_line(f.line, path));
            }
        }
    }
    /* What is in the index as well is not looked at twice: the two BEGINS chunks, and the heads of the ENDS chunks. */
    CHECK(silent <= (2 * (sizeof(chunk_head) + sizeof(chunk_begins)) + 2 * sizeof(chunk_head)) * 8);
    vec_free(&bytes);
    temp_remove();
}

/* Where the i-th chunk's head lies. */
static size_t chunk_at(const byte_vec *bytes, size_t i, chunk_head *head)
{
    size_t at = sizeof(chunk_file_header);
    for (;; i--) {
        memcpy(head, bytes->items + at, sizeof *head);
        CHECK_EQ(head->magic, CHUNK_MAGIC);
        if (i == 0)
            return at;
        at += (size_t)chunk_bytes(head);
    }
}

TEST(a_spoiled_chunk_is_named_with_its_byte_and_the_others_are_read)
{
    const char *path = temp_file("spoiled.rrt");
    write_small(path);
    byte_vec bytes = {0};
    load(path, &bytes);
    chunk_head head;
    size_t at = chunk_at(&bytes, 4, &head);
    CHECK_EQ(head.kind, CHUNK_EVENTS);
    bytes.items[at + chunk_bytes(&head) - 1] ^= 1;
    save(path, bytes.items, bytes.count);
    found f = read_all(path, true);
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s: chunk 4 at byte %zu: checksum differs; ", path, at);
    CHECK(strncmp(f.line, wanted, strlen(wanted)) == 0);
    CHECK_EQ(f.slots[0] + f.slots[1], written[0].count + written[1].count - head.slot_count);

    /* Without the index, a spoiled head is stepped over. */
    bytes.items[at + 20] ^= 1;
    save(path, bytes.items, bytes.count - 1);
    f = read_all(path, true);
    snprintf(wanted, sizeof wanted, "%s: chunk 4 at byte %zu: damaged or cut off; ", path, at);
    CHECK(strncmp(f.line, wanted, strlen(wanted)) == 0);
    CHECK_EQ(f.chunks, chunks_written - 1);
    CHECK_EQ(f.slots[0] + f.slots[1], written[0].count + written[1].count - head.slot_count);
    record_reader *r = open_reader(path);
    CHECK(!record_chunk_at(r, 3).after_gap);
    CHECK(record_chunk_at(r, 4).after_gap);
    CHECK(!record_chunk_at(r, 5).after_gap);
    record_close(r);
    vec_free(&bytes);
    temp_remove();
}

TEST(a_newer_version_and_other_files_are_refused_in_one_line)
{
    const char *path = temp_file("newer.rrt");
    write_small(path);
    byte_vec bytes = {0};
    load(path, &bytes);
    chunk_file_header *h = (chunk_file_header *)(void *)bytes.items;
    h->version = CHUNK_FILE_VERSION + 1;
    h->crc = chunk_file_crc(h);
    save(path, bytes.items, bytes.count);
    found f = read_all(path, true);
    CHECK(!f.opens && is_one_line(f.line, path) && strstr(f.line, "of version 2, this rrtrace reads up to version 1"));
    save(path, (const unsigned char *)"#!/usr/bin/env ruby\nputs 1\n", 27);
    f = read_all(path, true);
    CHECK(!f.opens && strstr(f.line, "is no rrtrace recording"));
    f = read_all("/nonexistent/app.rrt", true);
    CHECK_STR(f.line, "/nonexistent/app.rrt: No such file or directory");
    f = read_all("/tmp", true);
    CHECK(!f.opens && strstr(f.line, "is no file"));
    vec_free(&bytes);
    temp_remove();
}

/* A chunk of a kind that does not exist yet, put before chunk i. */
static void insert_unknown(byte_vec *bytes, size_t i)
{
    chunk_head other, unknown = {.magic = CHUNK_MAGIC, .kind = 77, .stream = 9, .parts[1] = {.packed_bytes = 5, .raw_bytes = 500}};
    size_t at = chunk_at(bytes, i, &other), size = sizeof unknown + 5;
    unknown.number = other.number;
    unknown.crc = chunk_head_crc(&unknown);
    CHECK(vec_reserve(bytes, bytes->count + size));
    memmove(bytes->items + at + size, bytes->items + at, bytes->count - at);
    memcpy(bytes->items + at, &unknown, sizeof unknown);
    memset(bytes->items + at + sizeof unknown, 0xee, 5);
    bytes->count += size;
}

TEST(chunks_of_unknown_kinds_are_skipped)
{
    const char *path = temp_file("unknown.rrt");
    write_small(path);
    byte_vec bytes = {0};
    load(path, &bytes);
    insert_unknown(&bytes, 3);
    insert_unknown(&bytes, 0);
    save(path, bytes.items, bytes.count - 30); /* its index says other places now: none */
    found f = read_all(path, true);
    CHECK(f.opens);
    CHECK_EQ(f.chunks, chunks_written + 2);
    CHECK_EQ(f.slots[0] + f.slots[1], written[0].count + written[1].count);
    vec_free(&bytes);
    temp_remove();
}

TEST(a_stream_with_an_absurd_number_is_no_stream)
{
    const char *path = temp_file("absurd.rrt");
    write_small(path);
    byte_vec bytes = {0};
    load(path, &bytes);
    chunk_head head;
    size_t at = chunk_at(&bytes, 3, &head);
    head.stream = 0x7fffffff;
    head.crc = chunk_head_crc(&head);
    memcpy(bytes.items + at, &head, sizeof head);
    save(path, bytes.items, bytes.count - 1);
    record_reader *r = open_reader(path);
    CHECK_EQ(record_info_of(r).stream_count, STREAMS);
    CHECK_EQ(record_chunk_count(r), chunks_written - 1);
    CHECK(strstr(record_info_of(r).problem, "chunk 3 at byte "));
    record_close(r);
    vec_free(&bytes);
    temp_remove();
}

/* Whatever the bytes are, all checksums right: no crash, no endless loop, no wild allocation. */
static void mend(byte_vec *bytes)
{
    size_t at = sizeof(chunk_file_header);
    while (at + sizeof(chunk_head) <= bytes->count) {
        chunk_head head;
        memcpy(&head, bytes->items + at, sizeof head);
        head.magic = CHUNK_MAGIC;
        uint64_t part = at + sizeof head;
        for (int i = 0; i < CHUNK_PARTS; part += head.parts[i++].packed_bytes)
            if (head.parts[i].packed_bytes <= bytes->count && part + head.parts[i].packed_bytes <= bytes->count)
                head.parts[i].crc = crc32c(0, bytes->items + part, head.parts[i].packed_bytes);
        head.crc = chunk_head_crc(&head);
        memcpy(bytes->items + at, &head, sizeof head);
        at += (size_t)chunk_bytes(&head);
    }
}

TEST(forged_files_with_right_checksums_do_no_harm)
{
    const char *path = temp_file("forged.rrt");
    write_small(path);
    byte_vec bytes = {0}, forged = {0};
    load(path, &bytes);
    uint64_t seed = test_seed(1);
    CHECK(vec_reserve(&forged, bytes.count));
    limit_memory();
    for (int i = 0; i < 6000; i++, seed++) {
        uint64_t random = seed * 77 + 1;
        memcpy(forged.items, bytes.items, bytes.count);
        /* With the index and without: then the heads themselves are believed. */
        forged.count = test_random_below(&random, 2) ? bytes.count : bytes.count - 1;
        for (uint64_t k = 1 + test_random_below(&random, 4); k > 0; k--) {
            size_t at = sizeof(chunk_file_header) + (size_t)test_random_below(&random, forged.count - sizeof(chunk_file_header));
            static const unsigned char odd[] = {0, 1, 0x7f, 0x80, 0xff};
            forged.items[at] = test_random_below(&random, 2) ? odd[test_random_below(&random, 5)] : (unsigned char)test_random(&random);
        }
        mend(&forged);
        save(path, forged.items, forged.count);
        read_all(path, false);
    }
    vec_free(&bytes);
    vec_free(&forged);
    temp_remove();
}

/* ---- writing where it can't be written -------------------------------------------------------------------------- */

static void feed(record_writer *w, const event_vec *events, int times)
{
    for (int i = 0; i < times; i++)
        for (size_t at = 0, end; at < events->count; at = end) {
            end = block_end(events, at, 5000);
            record_writer_events(w, 0, events->items + at, end - at);
        }
}

static void make_events(event_vec *events, uint32_t count)
{
    uint64_t state = 5;
    stream_how how = {.event_count = count, .thread_count = 1, .fibers_per_thread = 1, .method_count = 300, .depth_max = 30};
    stream_make(events, &state, &how);
}

TEST(a_file_that_may_not_grow_ends_the_recording_and_keeps_what_came_before)
{
    event_vec events = {0};
    make_events(&events, 200000);
    const char *path = temp_file("limit.rrt");
    record_writer *w = open_writer(path);
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    struct rlimit limit = {1000000, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    feed(w, &events, 10); /* goes on as if nothing had happened */
    CHECK_EQ(record_writer_finish(w), -EFBIG);
    const char *problem = record_writer_problem(w);
    CHECK(problem && is_one_line(problem, path) && strstr(problem, "may not grow"));
    record_writer_close(w);

    record_reader *r = open_reader(path);
    record_info info = record_info_of(r);
    CHECK(!info.is_complete);
    CHECK(is_one_line(info.problem, path));
    CHECK(strstr(info.problem, "recording stopped early")); /* what did not fit was cut off, and the index fits */
    CHECK(info.event_count > 100000);
    event_vec back = {0};
    read_stream(r, 0, &back);
    CHECK(back.count > 0);
    for (size_t i = 0; i < back.count; i++)
        CHECK(memcmp(&back.items[i], &events.items[i % events.count], sizeof(ev)) == 0);
    record_close(r);
    vec_free(&back);
    vec_free(&events);
    temp_remove();
}

TEST(a_killed_recorder_leaves_all_but_its_last_chunk)
{
    event_vec events = {0}, back = {0};
    make_events(&events, 150000);
    const char *path = temp_file("killed.rrt");
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        record_writer *w = open_writer(path);
        record_writer_stream_begins(w, 0, 1, 1, 1);
        for (;;)
            feed(w, &events, 1);
    }
    struct stat st = {0};
    for (int i = 0; i < 6000 && st.st_size < 3000000; i++) {
        usleep(5000);
        stat(path, &st);
    }
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(stat(path, &st), 0);
    record_reader *r = open_reader(path);
    record_info info = record_info_of(r);
    CHECK(!info.is_complete && is_one_line(info.problem, path));
    record_chunk last = record_chunk_at(r, info.chunk_count - 1);
    CHECK((uint64_t)st.st_size - last.offset - last.bytes < (uint64_t)2 << 20);
    read_stream(r, 0, &back);
    CHECK(back.count > 500000);
    for (size_t i = 0; i < back.count; i++)
        CHECK(memcmp(&back.items[i], &events.items[i % events.count], sizeof(ev)) == 0);
    record_close(r);
    vec_free(&events);
    vec_free(&back);
    temp_remove();
}

TEST(a_full_disk_is_told_in_one_line)
{
    record_writer *w;
    char error[256] = "";
    if (access("/dev/full", W_OK) != 0)
        TEST_SKIP("there is no /dev/full");
    CHECK_EQ(record_writer_open(&w, "/dev/full", error, sizeof error), -ENOSPC);
    CHECK_STR(error, "/dev/full: can't be written: No space left on device");
}

TEST(a_removed_file_is_told_in_one_line)
{
    event_vec events = {0};
    make_events(&events, 100);
    const char *path = temp_file("removed.rrt");
    record_writer *w = open_writer(path);
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    CHECK_EQ(record_writer_flush(w), 0);
    CHECK_EQ(unlink(path), 0);
    feed(w, &events, 1);
    CHECK_EQ(record_writer_flush(w), -ENOENT);
    CHECK(is_one_line(record_writer_problem(w), path) && strstr(record_writer_problem(w), "was removed"));
    feed(w, &events, 1);
    record_writer_close(w);
    CHECK(access(path, F_OK) != 0);
    vec_free(&events);
    temp_remove();
}

TEST(only_recordings_are_written_over)
{
    const char *path = temp_file("app.rb");
    record_writer *w, *other;
    char error[512] = "";
    save(path, (const unsigned char *)"puts 'my only copy'\n", 20);
    CHECK_EQ(record_writer_open(&w, path, error, sizeof error), -EEXIST);
    CHECK(is_one_line(error, path) && strstr(error, "is no recording"));
    byte_vec bytes = {0};
    load(path, &bytes);
    CHECK(bytes.count == 20 && memcmp(bytes.items, "puts 'my only copy'\n", 20) == 0);
    vec_free(&bytes);

    write_small(temp_file("again.rrt"));
    w = open_writer(temp_file("again.rrt"));
    CHECK_EQ(record_writer_open(&other, temp_file("again.rrt"), error, sizeof error), -EBUSY);
    CHECK(strstr(error, "by another session"));
    record_writer_close(w);
    record_reader *r = open_reader(temp_file("again.rrt"));
    CHECK_EQ(record_chunk_count(r), 0); /* the older one is gone */
    record_close(r);
    CHECK_EQ(record_writer_open(&w, "/nonexistent/a.rrt", error, sizeof error), -ENOENT);
    CHECK_STR(error, "/nonexistent/a.rrt: can't be written: No such file or directory");
    temp_remove();
}

TEST(an_older_recording_is_replaced_by_a_file_with_its_rights_and_links_stay_links)
{
    const char *path;
    char link_path[128], twin[128];
    struct stat before, after, link_st;
    snprintf(link_path, sizeof link_path, "%s", temp_file("link.rrt"));
    snprintf(twin, sizeof twin, "%s", temp_file("twin.rrt"));
    path = temp_file("older.rrt");
    write_small(path);
    CHECK_EQ(chmod(path, 0640), 0);
    CHECK_EQ(symlink("older.rrt", link_path), 0);
    CHECK_EQ(stat(path, &before), 0);
    record_reader *old = open_reader(path);
    uint32_t chunks = record_chunk_count(old);
    record_writer_close(open_writer(link_path));
    CHECK(chunks > 0 && record_refresh(old) == 0 && record_chunk_count(old) == chunks); /* whoever has it open still has all */
    record_close(old);
    CHECK(lstat(link_path, &link_st) == 0 && S_ISLNK(link_st.st_mode));
    CHECK(stat(link_path, &after) == 0 && after.st_ino != before.st_ino && (after.st_mode & 07777) == 0640);

    write_small(temp_file("older.rrt"));
    CHECK_EQ(link(temp_file("older.rrt"), twin), 0);
    record_writer_close(open_writer(twin)); /* one file by two names: it is emptied, so that both still stand for it */
    CHECK(stat(temp_file("older.rrt"), &before) == 0 && stat(twin, &after) == 0 && before.st_ino == after.st_ino);
    temp_remove();
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

TEST(no_failing_allocation_does_harm)
{
    const char *path = temp_file("memory.rrt");
    write_small(path);
    event_vec events = {0};
    make_events(&events, 3000);
    for (unsigned every = 1; every < 60; every++) {
        mem_fail_every(every);
        found f = read_all(path, true); /* all that is read is right */
        mem_fail_every(0);
        CHECK(!f.opens || f.slots[0] + f.slots[1] <= written[0].count + written[1].count);
    }
    for (unsigned every = 1; every < 60; every++) {
        record_writer *w;
        char error[256] = "";
        mem_fail_every(every);
        int code = record_writer_open(&w, temp_file("out.rrt"), error, sizeof error);
        if (code == 0) {
            sim_state state = some_state();
            record_writer_stream_begins(w, 0, 1, 1, 1);
            for (int i = 0; i < 20; i++) {
                feed(w, &events, 1);
                record_writer_state(w, 0, &state);
            }
            record_writer_stream_ends(w, 0, NULL);
            record_writer_finish(w);
            mem_fail_every(0);
            if (!record_writer_problem(w)) {
                record_reader *r = open_reader(temp_file("out.rrt"));
                event_vec back = {0};
                read_stream(r, 0, &back);
                CHECK_EQ(back.count, events.count * 20);
                vec_free(&back);
                record_close(r);
            }
            record_writer_close(w);
        } else {
            mem_fail_every(0);
            CHECK_EQ(code, -ENOMEM);
            CHECK(error[0]);
        }
    }
    vec_free(&events);
    temp_remove();
}

/* ---- threads ------------------------------------------------------------------------------------------------------ */

typedef struct shared_reading {
    record_reader *reader;
    const event_vec *want;
} shared_reading;

static void *read_it_all(void *argument)
{
    shared_reading *s = argument;
    event_vec back = {0};
    for (int i = 0; i < 3; i++) {
        back.count = 0;
        read_stream(s->reader, 0, &back);
        same_events(&back, s->want, 0);
        record_info_of(s->reader);
    }
    vec_free(&back);
    return NULL;
}

TEST(several_threads_read_at_once)
{
    event_vec events = {0};
    make_events(&events, 100000);
    record_writer *w = open_writer(temp_file("threads.rrt"));
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    for (size_t at = 0, end; at < events.count; at = end) {
        end = block_end(&events, at, 3000);
        CHECK_EQ(record_writer_events(w, 0, events.items + at, end - at), 0);
        if (at % 5 == 0)
            CHECK_EQ(record_writer_flush(w), 0);
    }
    record_writer_close(w);
    shared_reading s = {open_reader(temp_file("threads.rrt")), &events};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, read_it_all, &s), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    record_close(s.reader);
    vec_free(&events);
    temp_remove();
}

TEST(a_slow_disk_makes_the_caller_wait_and_loses_nothing)
{
    event_vec events = {0};
    make_events(&events, 400000);
    record_writer *w = open_writer(temp_file("slow.rrt"));
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    feed(w, &events, 20); /* 128 MB, much faster than they can be packed here: twice what may wait */
    CHECK(record_writer_stats_of(w).waits > 0);
    CHECK_EQ(record_writer_finish(w), 0);
    record_writer_close(w);
    record_reader *r = open_reader(temp_file("slow.rrt"));
    CHECK_EQ(record_info_of(r).event_count >= 8000000, true);
    CHECK(record_info_of(r).is_complete);
    record_close(r);
    vec_free(&events);
    temp_remove();
}

TEST(memory_is_bounded_with_a_thousand_streams)
{
    enum { MANY = 1000 };
    event_vec events = {0};
    make_events(&events, 16000);
    record_writer *w = open_writer(temp_file("many.rrt"));
    uint64_t most = 0;
    for (uint32_t s = 0; s < MANY; s++) {
        CHECK_EQ(record_writer_stream_begins(w, s, s, 1, 1), 0);
        CHECK_EQ(record_writer_events(w, s, events.items, events.count), 0); /* 256 MB in all */
        uint64_t held = record_writer_stats_of(w).held_bytes;
        most = held > most ? held : most;
    }
    CHECK(most > 0 && most <= WRITER_BUDGET_BYTES + ((size_t)1 << 20));
    CHECK_EQ(record_writer_finish(w), 0);
    record_writer_close(w);
    record_reader *r = open_reader(temp_file("many.rrt"));
    CHECK(record_info_of(r).is_complete);
    CHECK_EQ(record_info_of(r).stream_count, MANY);
    CHECK(record_info_of(r).event_count >= (uint64_t)MANY * 15000);
    record_close(r);
    vec_free(&events);
    temp_remove();
}
