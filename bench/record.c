/* bench/record.c - how many bytes does an event take in a recording, and how fast does one core write and read it?
 *
 * Input: the events of a real program, which bench/record.rb records (raw slots, one stream), and random walks with a fixed
 * seed for comparison. They are written again and again through the whole writer, each time later, with a state wherever it
 * wants one. Time is the CPU time of all of the writer's threads, the caller's copy and the system's part included: what one
 * core would need for all of it. All that is written is read back and must be equal. Medians of rounds in turn with a plain
 * copy of the same events, as machines are noisy.
 */
#include "base/crc.h"
#include "base/mem.h"
#include "record/columns.h"
#include "record/reader.h"
#include "record/writer.h"
#include "sim/sim.h"
#include "wire/clock.h"

#include "support/bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 9
#define BLOCK_SIZE 16384u
#define WALK_EVENTS (UINT32_C(1) << 21)
#define SEED UINT64_C(20240229)
#define BIG_BYTES UINT64_C(1000000000)

typedef struct input {
    ev *events;
    size_t count;       /* slots */
    uint64_t duration;  /* ticks from the first to past the last */
    uint64_t plain_count;
    sim_state state;    /* a typical one: from the middle */
    size_t block_ends[65536];
    size_t block_count;
} input;

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "record: %s\n", what);
    exit(1);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

static size_t slots_of(ev e) { return ev_kind_of(e) == EV_DEFINE ? 1 + (size_t)ev_define_slots(e.place) : 1; }

static void ignore(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    *(size_t *)context += count;
    (void)track;
    (void)spans;
}

/* Blocks as intake/ would cut them, and the state in the middle. */
static void prepare(input *in)
{
    catalog *c;
    sim *s;
    size_t spans = 0;
    uint64_t last_ticks = 0;
    if (catalog_new(&c) != 0 || sim_new(&s, &(sim_desc){.catalog = c, .sink = ignore, .context = &spans}) != 0)
        die("memory is out");
    uint32_t stream = sim_stream_open(s, catalog_process_add(c, 1, 1), CLOCK_SOURCE_TSC);
    for (size_t i = 0; i < in->count;) {
        size_t begin = i;
        for (; i < in->count && i - begin < BLOCK_SIZE; i += slots_of(in->events[i])) {
            in->plain_count++;
            last_ticks = ev_ticks_of(in->events[i]);
        }
        if (i > in->count || in->block_count == sizeof in->block_ends / sizeof *in->block_ends)
            die("the events end within a definition, or are too many");
        in->block_ends[in->block_count++] = i;
        if (begin < in->count / 2 && sim_run(s, &(sim_block){stream, (uint32_t)(i - begin), in->events + begin}, 1) != 0)
            die("memory is out");
    }
    if (sim_stream_state(s, stream, &in->state) != 0)
        die("memory is out");
    in->duration = last_ticks - ev_ticks_of(in->events[0]) + 1000;
    in->duration &= ~UINT64_C(0xff); /* what the clock's low bits never show must stay so */
    sim_delete(s);
    catalog_delete(c);
}

static void load(input *in, const char *path)
{
    if (!bench_load(path, &in->events, &in->count))
        die("the events can't be read");
    prepare(in);
}

/* Methods and times are random: all but positions must be written out. */
static void walk(input *in, uint32_t fiber_count, uint32_t depth_max, uint32_t run_events)
{
    uint64_t state = SEED, ticks = 1000;
    uint32_t *depths = calloc(fiber_count, sizeof *depths), current = 0;
    in->events = mem_alloc(WALK_EVENTS, sizeof(ev));
    if (!in->events || !depths)
        die("memory is out");
    in->events[in->count++] = ev_make(EV_SWITCH, ticks, 1, 1);
    while (in->count < WALK_EVENTS) {
        uint32_t base = 0x7f000000u + current * 0x00010040u;
        ticks += 20 + bench_random(&state) % 64;
        if (run_events && bench_random(&state) % run_events == 0) {
            current = (uint32_t)(bench_random(&state) % fiber_count);
            in->events[in->count++] = ev_make(EV_SWITCH, ticks, current + 1, 1);
        } else if (depths[current] == 0 || (depths[current] < depth_max && (bench_random(&state) & 1))) {
            depths[current]++;
            in->events[in->count++] = ev_make(EV_CALL, ticks, 1 + (uint32_t)(bench_random(&state) % 500), base - depths[current] * 56u);
        } else {
            in->events[in->count++] = ev_make(EV_RETURN, ticks, 0, base - depths[current]-- * 56u);
        }
    }
    free(depths);
    prepare(in);
}

/* The same events, so much later. Payload stays as it is. */
static void shift(ev *to, const input *in, uint64_t by)
{
    memcpy(to, in->events, in->count * sizeof *to);
    for (size_t i = 0; i < in->count; i += slots_of(in->events[i]))
        to[i].head += by;
}

/* ---- the columns alone ------------------------------------------------------------------------------------------- */

typedef struct rates {
    double copy, encode, decode, write, read; /* events a second */
    double bytes;                             /* an event, in the file */
} rates;

static void time_columns(const input *in, const ev *events, ev *back, double *encode_s, double *decode_s)
{
    columns_coder *c;
    columns_bytes packed = {0}, definitions = {0};
    if (columns_coder_new(&c) != 0)
        die("memory is out");
    *encode_s = *decode_s = 0;
    uint32_t plain, defines, crc = 0;
    for (size_t i = 0; i < in->count;) {
        size_t end = i;
        while (end < in->count && end - i < WRITER_CHUNK_SLOTS)
            end += slots_of(events[end]);
        packed.count = definitions.count = 0;
        double t = bench_thread_s();
        int error = columns_encode(c, events + i, (uint32_t)(end - i), &packed, &definitions, &plain, &defines);
        crc ^= crc32c(0, packed.items, packed.count);
        double t2 = bench_thread_s();
        *encode_s += t2 - t;
        if (!error)
            error = columns_decode(c, packed.items, packed.count, definitions.items, definitions.count, back + i, (uint32_t)(end - i));
        *decode_s += bench_thread_s() - t2;
        if (error)
            die("the columns do not come back");
        i = end;
    }
    if (memcmp(events, back, in->count * sizeof *events) != 0 || crc == 1)
        die("other events come back");
    vec_free(&packed);
    vec_free(&definitions);
    columns_coder_delete(c);
}

/* ---- the whole writer and reader ----------------------------------------------------------------------------------- */

static record_writer *begin_file(const char *path)
{
    record_writer *w;
    char error[512];
    if (record_writer_open(&w, path, error, sizeof error) != 0)
        die(error);
    record_writer_stream_begins(w, 0, 1, CLOCK_SOURCE_TSC, 1);
    return w;
}

static void give(record_writer *w, const input *in, const ev *events)
{
    size_t begin = 0;
    for (size_t b = 0; b < in->block_count; begin = in->block_ends[b++]) {
        record_writer_events(w, 0, events + begin, in->block_ends[b] - begin);
        if (record_writer_wants_state(w, 0))
            record_writer_state(w, 0, &in->state);
    }
}

static void end_file(record_writer *w)
{
    record_writer_stream_ends(w, 0, NULL);
    if (record_writer_finish(w) != 0)
        die(record_writer_problem(w));
}

static double time_write(const input *in, const ev *events, const char *path, double *bytes)
{
    record_writer *w = begin_file(path);
    for (int i = 0; i < 2; i++) /* fresh memory is touched once, as in a long session */
        give(w, in, events);
    record_writer_flush(w);
    uint64_t before = record_writer_stats_of(w).file_bytes;
    double t = bench_process_s();
    give(w, in, events);
    record_writer_flush(w);
    t = bench_process_s() - t;
    *bytes = (double)(record_writer_stats_of(w).file_bytes - before) / (double)in->plain_count;
    end_file(w);
    record_writer_close(w);
    return t;
}

static record_reader *open_file(const char *path)
{
    record_reader *r;
    char error[512];
    if (record_open(&r, path, error, sizeof error) != 0)
        die(error);
    return r;
}

/* The file holds the events three times over. */
static double time_read(const input *in, const ev *events, const char *path, ev *back)
{
    record_reader *r = open_file(path);
    double t = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < record_chunk_count(r); i++) {
        uint32_t slots;
        if (record_chunk_at(r, i).kind != RECORD_EVENTS)
            continue;
        double before = bench_thread_s();
        int error = record_read_events(r, i, back, WRITER_CHUNK_SLOTS, &slots);
        t += bench_thread_s() - before;
        if (error)
            die(record_info_of(r).problem);
        for (size_t k = 0; k < slots;) {
            size_t here = (at + k) % in->count, piece = in->count - here < slots - k ? in->count - here : slots - k;
            if (memcmp(back + k, events + here, piece * sizeof *back) != 0)
                die("other events come back from the file");
            k += piece;
        }
        at += slots;
    }
    if (at != in->count * 3 || !record_info_of(r).is_complete)
        die("the file is not whole");
    record_close(r);
    return t / 3;
}

static rates measure(const input *in, const char *path)
{
    ev *events = mem_aligned(64, in->count * sizeof *events), *back = mem_aligned(64, in->count * sizeof *back);
    double copies[ROUNDS], encodes[ROUNDS], decodes[ROUNDS], writes[ROUNDS], reads[ROUNDS], bytes[ROUNDS];
    if (!events || !back || in->count < WRITER_CHUNK_SLOTS)
        die("memory is out, or there are too few events");
    for (int round = 0; round < ROUNDS; round++) {
        shift(events, in, (uint64_t)round * in->duration);
        copies[round] = bench_thread_s();
        memcpy(back, events, in->count * sizeof *events);
        copies[round] = bench_thread_s() - copies[round];
        time_columns(in, events, back, &encodes[round], &decodes[round]);
        writes[round] = time_write(in, events, path, &bytes[round]);
        reads[round] = time_read(in, events, path, back);
    }
    mem_free(events);
    mem_free(back);
    double n = (double)in->plain_count;
    return (rates){n / bench_median(copies, ROUNDS), n / bench_median(encodes, ROUNDS), n / bench_median(decodes, ROUNDS),
                   n / bench_median(writes, ROUNDS), n / bench_median(reads, ROUNDS), bench_median(bytes, ROUNDS)};
}

/* ---- opening a gigabyte ---------------------------------------------------------------------------------------------- */

typedef struct opening {
    double cold_ms, warm_ms, scan_ms;
    uint64_t bytes, events;
    uint32_t chunks;
} opening;

static double open_ms(const char *path, opening *o, bool is_cold)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (is_cold && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0))
            die("the big file is gone");
        close(fd);
        double t = bench_wall_s();
        record_reader *r = open_file(path);
        times[round] = (bench_wall_s() - t) * 1e3;
        o->events = record_info_of(r).event_count;
        o->chunks = record_info_of(r).chunk_count;
        record_close(r);
    }
    return bench_median(times, ROUNDS);
}

static opening open_big(const input *in, const char *path)
{
    opening o = {0};
    record_writer *w = begin_file(path);
    ev *events = mem_alloc(in->count, sizeof *events);
    if (!events)
        die("memory is out");
    for (uint64_t round = 0; record_writer_stats_of(w).file_bytes < BIG_BYTES; round++) {
        shift(events, in, round * in->duration);
        give(w, in, events);
        if (record_writer_problem(w))
            die(record_writer_problem(w));
    }
    end_file(w);
    o.bytes = record_writer_stats_of(w).file_bytes;
    record_writer_close(w);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) /* only what is on the disk can be dropped from memory */
        die("the big file can't be synced");
    o.cold_ms = open_ms(path, &o, true);
    o.warm_ms = open_ms(path, &o, false);
    if (ftruncate(fd, (off_t)(o.bytes - 1000)) != 0) /* as after kill -9 */
        die("the big file can't be cut");
    close(fd);
    o.scan_ms = open_ms(path, &o, true);
    mem_free(events);
    return o;
}

static void print_row(const char *name, const rates *r)
{
    printf("%-24s %8.3f %8.0f %8.0f %8.0f %8.0f %8.0f\n", name, r->bytes, r->write / 1e6, r->read / 1e6, r->encode / 1e6,
           r->decode / 1e6, r->copy / 1e6);
}

int main(int argc, char **argv)
{
    static input pages, plain, fibers;
    if (argc != 2)
        die("which events? bin/bench record makes some");
    const char *folder = access("build", W_OK) == 0 ? "build" : "."; /* a disk, rather than /tmp's memory */
    char path[64];
    snprintf(path, sizeof path, "%s/bench-record-%d.rrt", folder, (int)getpid());
    load(&pages, argv[1]);
    walk(&plain, 1, 24, 0);
    walk(&fibers, 1000, 24, 200);

    printf("Million events a second of one core's time; %d rounds, medians. Compiler %s\n\n", ROUNDS, __VERSION__);
    printf("%-24s %8s %8s %8s %8s %8s %8s\n", "", "bytes", "write", "read", "encode", "decode", "copy");
    rates real = measure(&pages, path), random = measure(&plain, path), switching = measure(&fibers, path);
    print_row("pages by ERB and Rack", &real);
    print_row("random walk, depth 24", &random);
    print_row("… of 1,000 fibers", &switching);
    opening o = open_big(&pages, path);
    unlink(path);
    printf("\n%.2f GB, %.0f million events, %u chunks: opens in %.1f ms (%.1f ms from memory; %.1f ms without its end)\n\n",
           (double)o.bytes / 1e9, (double)o.events / 1e6, o.chunks, o.cold_ms, o.warm_ms, o.scan_ms);
    printf("record.bytes_per_event: %.3f\n", real.bytes);
    printf("record.events_per_s.1core: %.0f\n", real.write);
    printf("record.vs_copy: %.3f\n", real.write / real.copy);
    printf("record.read_events_per_s.1core: %.0f\n", real.read);
    printf("record.open_ms.1GB: %.2f\n", o.cold_ms);
    return 0;
}
