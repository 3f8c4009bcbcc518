/* A whole session without a picture: programs send through real sockets and rings, intake, simulation and history work on
 * their threads, and a reader looks at the model meanwhile as the window does. Run under the thread sanitizer, this is the
 * test of every hand-over between them. */
#include "app/session.h"

#include "program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define PROGRAMS 3
#define PER_PROGRAM 120000u
#define DEPTH_MAX 30u

typedef struct program {
    const char *path;
    uint64_t seed;
    bool says_bye;
    pthread_t thread;
    uint64_t event_count, return_count, open_count;
    bool was_answered;
} program;

static _Atomic uint32_t still_running;

static void define_process(ring *r, uint32_t pid)
{
    ev record[3];
    ev_process_def def = {.pid = pid, .ppid = 1, .position_source = EV_POSITIONS_FRAME_ADDRESS, .ractor = 1};
    record[0] = ev_make(EV_DEFINE, clock_ns(CLOCK_MONOTONIC), ev_define_number(EV_DEFINE_PROCESS, 0), sizeof def);
    memcpy(&record[1], &def, sizeof def);
    program_push(r, record, 3);
}

/* A random walk on two fibers, with a pause of the GC now and then; leaves some frames open. */
static void *program_main(void *argument)
{
    program *p = argument;
    ring *r;
    int fd = program_join(p->path, &r, RING_SLOTS_MIN); /* small, so that it is full again and again */
    uint64_t state = p->seed;
    uint32_t depth[2] = {0, 0}, fiber = 0;
    define_process(r, (uint32_t)p->seed);
    p->event_count = 1; /* however many slots it takes */
    for (uint32_t i = 0; i < PER_PROGRAM; i++) {
        ev e[2];
        uint32_t count = 1;
        uint64_t ticks = clock_ns(CLOCK_MONOTONIC), dice = test_random_below(&state, 1000);
        uint32_t base = 0x40000000u + fiber * 0x100000u;
        if (i == 0 || dice < 5) {
            fiber = i == 0 ? 0 : !fiber;
            e[0] = ev_make(EV_SWITCH, ticks, fiber + 1, 1);
        } else if (dice < 8) {
            e[0] = ev_make(EV_GC_ENTER, ticks, 0, 0);
            e[1] = ev_make(EV_GC_EXIT, ticks, 0, 0);
            count = 2;
        } else if (depth[fiber] == 0 || (depth[fiber] < DEPTH_MAX && dice % 2)) {
            e[0] = ev_make(EV_CALL, ticks, 1 + (uint32_t)dice % 40, base - ++depth[fiber] * 64u);
        } else {
            e[0] = ev_make(EV_RETURN, ticks, 0, base - depth[fiber]-- * 64u);
            p->return_count++;
        }
        p->event_count += program_push(r, e, count);
    }
    p->open_count = depth[0] + depth[1];
    if (p->says_bye) {
        hs_message bye = {.magic = HS_MAGIC, .version = HS_VERSION, .type = HS_BYE}, answer;
        program_say(fd, &bye, sizeof bye, -1);
        p->was_answered = program_hear(fd, &answer) == HS_DONE;
    }
    close(fd);
    atomic_fetch_sub(&still_running, 1);
    return NULL;
}

/* What a window does in a frame. Returns the finished spans of calls that it saw in full detail. */
static uint64_t look(session *s)
{
    static history_node nodes[4096];
    uint64_t spans = 0;
    session_lock(s);
    session_model m = session_model_of(s);
    for (uint32_t t = 0; t < catalog_fiber_count(m.catalog); t++) {
        const catalog_fiber *f = catalog_fiber_at(m.catalog, t);
        for (uint32_t depth = 0; depth < history_rows(m.history, f->track); depth++) {
            uint64_t begin_ns = 0;
            for (size_t count = 4096; count == 4096;) {
                count = history_query(m.history, f->track, depth, begin_ns, UINT64_MAX, UINT64_MAX / 4, nodes, 4096);
                for (size_t i = 0; i < count; i++)
                    spans += nodes[i].span_count;
                begin_ns = count ? nodes[count - 1].end_ns : 0;
            }
        }
        sim_span open[DEPTH_MAX + 1];
        size_t open_count = sim_open_frames(m.sim, f->track, 0, open, DEPTH_MAX + 1);
        CHECK_EQ(open_count, sim_open_depth(m.sim, f->track));
        for (size_t i = 0; i < open_count; i++)
            CHECK(open[i].depth == i && open[i].closed == SIM_OPEN && (i == 0 || open[i].begin_ns >= open[i - 1].begin_ns));
    }
    session_unlock(s);
    return spans;
}

TEST(a_session_keeps_every_span_while_programs_write_and_a_reader_looks)
{
    char folder[] = "/tmp/rrtrace-test-XXXXXX", path[96];
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/session", folder);
    session *s;
    CHECK_EQ(session_start(&s, &(session_desc){.listen_fd = program_listen(path), .socket_path = path, .memory_bytes = (size_t)256 << 20}), 0);
    CHECK_EQ(session_begin(s), 0);
    program programs[PROGRAMS];
    atomic_store(&still_running, PROGRAMS);
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        programs[i] = (program){.path = path, .seed = 1001 + i, .says_bye = i != 1};
        CHECK_EQ(pthread_create(&programs[i].thread, NULL, program_main, &programs[i]), 0);
    }
    uint64_t seen = 0, begun_ns = clock_ns(CLOCK_MONOTONIC);
    while (atomic_load(&still_running) > 0) {
        if (session_wait(s, 10))
            session_answer(s);
        uint64_t now = look(s);
        CHECK(now >= seen); /* what was there stays there */
        seen = now;
    }
    uint64_t events = 0, returns = 0, open = 0;
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        pthread_join(programs[i].thread, NULL);
        CHECK_EQ(programs[i].was_answered, programs[i].says_bye);
        events += programs[i].event_count;
        returns += programs[i].return_count;
        open += programs[i].open_count;
    }
    session_status status = session_status_of(s);
    for (int i = 0; i < 1000 && (status.open_streams > 0 || status.backlog_events > 0); i++) {
        session_wait(s, 10);
        status = session_status_of(s);
    }
    CHECK_EQ(status.open_streams, 0);
    CHECK_EQ(status.stream_count, PROGRAMS);
    /* Intake adds a clock and how often a program has waited, once a second and the latter at the end. */
    uint64_t seconds = (clock_ns(CLOCK_MONOTONIC) - begun_ns) / 1000000000;
    CHECK(status.event_count >= events && status.event_count <= events + PROGRAMS * (2 * seconds + 1));
    CHECK_EQ(status.backlog_events, 0);
    CHECK_EQ(status.dropped, 0);
    CHECK_EQ(look(s), returns + open);
    session_stop(s);
    struct stat st;
    CHECK(stat(folder, &st) != 0);
}
