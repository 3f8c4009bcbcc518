/* bench/view.c - how long until a recording of 1 GB can be seen as a whole, and until all of it is in the history?
 *
 * bench_view FILE.rrt, or bench_view --make EVENTS: a recording is made of the events of a real program (raw slots, one stream,
 * from bench/view.rb), repeated and each time later, with the states and the overview that a session makes. Then it is opened
 * as `rrtrace view` does, but for the window: with the file in memory, and dropped from it. The first picture's boxes and quads
 * are made as well.
 */
#include "app/session.h"
#include "base/mem.h"
#include "record/overview.h"
#include "record/reader.h"
#include "record/writer.h"
#include "view/view.h"
#include "wire/clock.h"

#include "support/bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIG_BYTES UINT64_C(1000000000)
#define BLOCK_SLOTS 16384u
#define MEMORY_BYTES ((size_t)1 << 30)
#define ROUNDS 5

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "view: %s\n", what);
    exit(1);
}

/* ---- a recording ------------------------------------------------------------------------------------------------- */

typedef struct making {
    ev *events, *later;
    size_t count;
    uint64_t duration; /* ticks */
    catalog *catalog;
    history *history;
    sim *sim;
    record_writer *writer;
    uint32_t stream;
    sim_state state;
} making;

static size_t slots_of(ev e) { return ev_kind_of(e) == EV_DEFINE ? 1 + (size_t)ev_define_slots(e.place) : 1; }

static void keep(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    history_append(((making *)context)->history, track, spans, count);
}

static void load(making *m, const char *path)
{
    if (!bench_load(path, &m->events, &m->count) || !(m->later = mem_alloc(m->count + 1, sizeof(ev))))
        die("the events can't be read");
    uint64_t last = 0;
    for (size_t i = 0; i < m->count; i += slots_of(m->events[i]))
        last = ev_ticks_of(m->events[i]);
    m->duration = (last - ev_ticks_of(m->events[0]) + 1000) & ~UINT64_C(0xff);
}

/* The first round has the clock's calibration; the others go on with it. */
static void run_round(making *m, uint64_t round)
{
    memcpy(m->later, m->events, m->count * sizeof(ev));
    for (size_t i = 0; i < m->count; i += slots_of(m->events[i])) {
        m->later[i].head += round * m->duration;
        if (round > 0 && ev_kind_of(m->events[i]) == EV_DEFINE && ev_define_what(m->events[i]) == EV_DEFINE_CLOCK)
            m->later[i].number = ev_define_number((ev_define)15, 0); /* a kind that nobody knows */
    }
    for (size_t i = 0; i < m->count;) {
        size_t begin = i;
        while (i < m->count && i - begin < BLOCK_SLOTS)
            i += slots_of(m->events[i]);
        record_writer_events(m->writer, 0, m->later + begin, i - begin);
        if (sim_run(m->sim, &(sim_block){m->stream, (uint32_t)(i - begin), m->later + begin}, 1) != 0)
            die("memory is out");
        if (record_writer_wants_state(m->writer, 0) && sim_stream_state(m->sim, m->stream, &m->state) == 0)
            record_writer_state(m->writer, 0, &m->state);
    }
}

static void make(const char *events, const char *path)
{
    making m = {0};
    char error[512];
    columns_bytes overview = {0};
    load(&m, events);
    if (catalog_new(&m.catalog) != 0 || history_new(&m.history, MEMORY_BYTES) != 0 ||
        sim_new(&m.sim, &(sim_desc){.catalog = m.catalog, .sink = keep, .context = &m}) != 0)
        die("memory is out");
    if (record_writer_open(&m.writer, path, error, sizeof error) != 0)
        die(error);
    m.stream = sim_stream_open(m.sim, catalog_process_add(m.catalog, 1, 1), CLOCK_SOURCE_TSC);
    record_writer_stream_begins(m.writer, 0, 1, CLOCK_SOURCE_TSC, 1);
    for (uint64_t round = 0; record_writer_stats_of(m.writer).file_bytes < BIG_BYTES; round++)
        run_round(&m, round);
    uint64_t end_ns = sim_stream_now_ns(m.sim, m.stream), begin_ns = catalog_process_at(m.catalog, 0)->begin_ns;
    sim_stream_close(m.sim, m.stream);
    record_writer_stream_ends(m.writer, 0, NULL);
    record_writer_flush(m.writer);
    record_writer_stats stats = record_writer_stats_of(m.writer);
    double t = bench_wall_s();
    if (overview_build(m.catalog, m.history, m.sim, 0, begin_ns, end_ns, overview_node_limit(stats.event_count), &overview) != 0)
        die("memory is out");
    t = bench_wall_s() - t;
    record_writer_overview(m.writer, overview.items, overview.count, begin_ns, end_ns);
    if (record_writer_finish(m.writer) != 0)
        die(record_writer_problem(m.writer));
    printf("overview: made in %.0f ms, %.1f MB packed, of a recording of %.2f GB, %.0f million events, %.0f s\n", t * 1e3,
           (double)(record_writer_stats_of(m.writer).file_bytes - stats.file_bytes) / 1e6, (double)stats.file_bytes / 1e9,
           (double)stats.event_count / 1e6, (double)(end_ns - begin_ns) / 1e9);
    record_writer_close(m.writer);
    sim_state_free(&m.state);
    vec_free(&overview);
    sim_delete(m.sim);
    history_delete(m.history);
    catalog_delete(m.catalog);
    mem_free(m.events);
    mem_free(m.later);
}

/* ---- opening it --------------------------------------------------------------------------------------------------- */

typedef struct opening { double outlined_ms, built_ms, read_s; size_t boxes; } opening;

static void drop(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        die("the file can't be dropped from memory");
    close(fd);
}

static size_t build(session *s, const session_status *status)
{
    view *v;
    gpu_frame frame;
    if (view_new(&v, &(view_desc){.is_software = true}) != 0)
        die("memory is out");
    view_status shown = {.event_count = status->event_count, .ended = true, .is_file = true, .read_share = status->read_share};
    session_lock(s);
    session_model m = session_model_of(s);
    view_model model = {.catalog = m.catalog, .history = m.history, .activity = m.activity, .now_ns = m.last_event_ns};
    view_build(v, &model, &shown, 1280, 720, 0.016, &frame);
    session_unlock(s);
    size_t boxes = frame.box_count;
    view_delete(v);
    return boxes;
}

static opening open_once(const char *path, bool reads_all)
{
    char error[RECORD_PROBLEM_BYTES];
    record_reader *r;
    session *s;
    opening o = {0};
    double t = bench_wall_s();
    if (record_open(&r, path, error, sizeof error) != 0)
        die(error);
    if (session_open(&s, r, path, MEMORY_BYTES) != 0)
        die("memory is out");
    session_status status = session_status_of(s);
    for (; !status.is_outlined; status = session_status_of(s))
        usleep(200);
    o.outlined_ms = (bench_wall_s() - t) * 1e3;
    o.boxes = build(s, &status);
    o.built_ms = (bench_wall_s() - t) * 1e3;
    session_look_at(s, 0, 0); /* there is a picture: on with it */
    for (; reads_all && status.read_share < 1; status = session_status_of(s))
        usleep(10000);
    o.read_s = bench_wall_s() - t;
    if (status.problem)
        die(status.problem);
    session_stop(s);
    return o;
}

static opening median_of(const char *path, bool is_cold)
{
    opening rounds[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        if (is_cold)
            drop(path);
        opening o = open_once(path, false);
        int at = i;
        for (; at > 0 && rounds[at - 1].built_ms > o.built_ms; at--)
            rounds[at] = rounds[at - 1];
        rounds[at] = o;
    }
    return rounds[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    const char *folder = access("build", W_OK) == 0 ? "build" : "."; /* a disk, rather than /tmp's memory */
    char path[64];
    bool makes = argc == 3 && strcmp(argv[1], "--make") == 0;
    if (argc != 2 && !makes)
        die("which recording? bin/bench view makes one");
    snprintf(path, sizeof path, "%s/bench-view-%d.rrt", folder, (int)getpid());
    if (makes)
        make(argv[2], path);
    const char *file = makes ? path : argv[1];
    opening cold = median_of(file, true), warm = median_of(file, false);
    printf("%-28s %10s %10s\n", "ms from opening the file", "cold", "in memory");
    printf("%-28s %10.0f %10.0f\n", "names and outline known", cold.outlined_ms, warm.outlined_ms);
    printf("%-28s %10.0f %10.0f   %zu boxes\n", "first frame made", cold.built_ms, warm.built_ms, warm.boxes);
    fflush(stdout);
    opening all = open_once(file, true);
    if (makes)
        unlink(path);
    printf("all in the history after %.1f s\n\n", all.read_s);
    printf("view.open_ms.1GB: %.0f\n", cold.built_ms);
    printf("view.read_s.1GB: %.1f\n", all.read_s);
    return 0;
}
