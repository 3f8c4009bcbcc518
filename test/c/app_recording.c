/* Recordings that are begun and ended in the middle of a session, while programs write and a reader looks. Under the thread
 * sanitizer this is the test of what the window's thread and the simulation's say to each other. */
#include "record_stream.h"

#include "app/session.h"
#include "program.h"
#include "sim/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define BUSY 2
#define QUIET_PID 7u
#define METHODS 40u
#define DEPTH_MAX 30u

static _Atomic bool stops, stay; /* programs send no more; and keep their connection */

/* ---- programs ------------------------------------------------------------------------------------------------------ */

typedef struct program {
    const char *socket;
    uint64_t seed; /* the pid that it gives, too */
    bool says_bye;
    pthread_t thread;
    event_vec events; /* all that it has sent */
} program;

static void add(event_vec *v, ev e)
{
    ev *place = vec_push(v);
    CHECK(place);
    *place = e;
}

static void add_define(event_vec *v, ev_define what, uint32_t number, const void *payload, uint32_t bytes)
{
    size_t slots = ev_define_slots(bytes), first = v->count + 1;
    add(v, ev_make(EV_DEFINE, clock_ns(CLOCK_MONOTONIC), ev_define_number(what, number), bytes));
    CHECK(vec_reserve(v, first + slots));
    memset(v->items + first, 0, slots * sizeof(ev));
    memcpy(v->items + first, payload, bytes);
    v->count += slots;
}

static void add_names(event_vec *v, uint32_t pid)
{
    ev_process_def def = {.pid = pid, .ppid = 1, .position_source = EV_POSITIONS_FRAME_ADDRESS, .ractor = 1};
    add_define(v, EV_DEFINE_PROCESS, 0, &def, sizeof def);
    for (uint32_t i = 1; i <= METHODS; i++) {
        struct { ev_method_def head; char name[8]; } method = {.head = {.kind = EV_METHOD_RUBY, .line = i, .name_bytes = 6}};
        snprintf(method.name, sizeof method.name, "Meth%02u", i);
        add_define(v, EV_DEFINE_METHOD, i, &method, sizeof method.head + 6);
    }
}

static void send_from(ring *r, const event_vec *v, size_t first)
{
    program_push(r, v->items + first, v->count - first);
}

/* A random walk on two fibers until it is told to stop. */
static void *program_main(void *argument)
{
    program *p = argument;
    ring *r;
    int fd = program_join(p->socket, &r, RING_SLOTS_MIN);
    uint64_t state = p->seed;
    uint32_t depth[2] = {0, 0}, fiber = 0;
    add_names(&p->events, (uint32_t)p->seed);
    send_from(r, &p->events, 0);
    for (uint32_t i = 0; !atomic_load(&stops); i++) {
        uint64_t ticks = clock_ns(CLOCK_MONOTONIC), dice = test_random_below(&state, 1000);
        uint32_t base = 0x40000000u + fiber * 0x100000u;
        size_t first = p->events.count;
        if (i == 0 || dice < 5) {
            fiber = i == 0 ? 0 : !fiber;
            add(&p->events, ev_make(EV_SWITCH, ticks, fiber + 1, 1));
        } else if (depth[fiber] == 0 || (depth[fiber] < DEPTH_MAX && dice % 2)) {
            add(&p->events, ev_make(EV_CALL, ticks, 1 + (uint32_t)dice % METHODS, base - ++depth[fiber] * 64u));
        } else {
            add(&p->events, ev_make(EV_RETURN, ticks, 0, base - depth[fiber]-- * 64u));
        }
        send_from(r, &p->events, first);
        if (i % 64 == 0)
            usleep(200);
    }
    if (p->says_bye && !atomic_load(&stay)) {
        hs_message bye = {.magic = HS_MAGIC, .version = HS_VERSION, .type = HS_BYE}, answer;
        program_say(fd, &bye, sizeof bye, -1);
        program_hear(fd, &answer);
    }
    if (!atomic_load(&stay))
        close(fd);
    return NULL;
}

/* ---- the session --------------------------------------------------------------------------------------------------- */

typedef struct stage {
    char folder[32], socket[64];
    session *session;
    program programs[BUSY];
    event_vec quiet; /* what the program has sent that then waits in three calls */
    int quiet_fd;
} stage;

static void set_up(stage *t, const char *record_into)
{
    char line[512];
    *t = (stage){.folder = "/tmp/rrtrace-test-XXXXXX"};
    atomic_store(&stops, false);
    CHECK(mkdtemp(t->folder));
    snprintf(t->socket, sizeof t->socket, "%s/session", t->folder);
    CHECK_EQ(session_start(&t->session, &(session_desc){.listen_fd = program_listen(t->socket), .socket_path = t->socket,
                                                        .memory_bytes = (size_t)256 << 20}), 0);
    if (record_into)
        CHECK_EQ(session_record(t->session, record_into, false, line, sizeof line), 0);
    CHECK_EQ(session_begin(t->session), 0);
    session_answer_at_once(t->session);
    ring *r;
    t->quiet_fd = program_join(t->socket, &r, RING_SLOTS_MIN);
    add_names(&t->quiet, QUIET_PID);
    add(&t->quiet, ev_make(EV_SWITCH, clock_ns(CLOCK_MONOTONIC), 1, 1));
    for (uint32_t i = 1; i <= 3; i++)
        add(&t->quiet, ev_make(EV_CALL, clock_ns(CLOCK_MONOTONIC), i, 0x40000000u - i * 64u));
    send_from(r, &t->quiet, 0);
    for (uint32_t i = 0; i < BUSY; i++) {
        t->programs[i] = (program){.socket = t->socket, .seed = 1001 + i, .says_bye = i % 2};
        CHECK_EQ(pthread_create(&t->programs[i].thread, NULL, program_main, &t->programs[i]), 0);
    }
    usleep(60000);
}

static void stop_programs(stage *t)
{
    atomic_store(&stops, true);
    for (uint32_t i = 0; i < BUSY; i++)
        pthread_join(t->programs[i].thread, NULL);
    close(t->quiet_fd);
    for (int i = 0; i < 2000 && session_status_of(t->session).open_streams > 0; i++)
        session_wait(t->session, 10);
    CHECK_EQ(session_status_of(t->session).open_streams, 0);
}

static void tear_down(stage *t)
{
    session_stop(t->session);
    for (uint32_t i = 0; i < BUSY; i++)
        vec_free(&t->programs[i].events);
    vec_free(&t->quiet);
    temp_remove();
}

/* As a window's frames do meanwhile. */
static recording_news wait_for_news(session *s, recording_what what)
{
    recording_news news;
    for (int i = 0; i < 20000; i++) {
        session_lock(s);
        session_model m = session_model_of(s);
        CHECK(catalog_process_count(m.catalog) > 0);
        session_unlock(s);
        session_status status = session_status_of(s);
        CHECK(!status.is_recording || status.recording);
        if (session_take_news(s, &news)) {
            CHECK_EQ(news.what, what);
            return news;
        }
        usleep(1000);
    }
    TEST_FAILED("no news of the recording");
}

static void record_for(stage *t, const char *path, unsigned us)
{
    session_record_from_here(t->session, path);
    recording_news news = wait_for_news(t->session, RECORDING_BEGUN);
    CHECK_STR(news.line, path);
    CHECK(session_status_of(t->session).is_recording);
    usleep(us);
    session_record_no_more(t->session, true);
    CHECK(!session_status_of(t->session).is_recording);
    news = wait_for_news(t->session, RECORDING_WRITTEN);
    CHECK_STR(news.line, path);
    CHECK(news.bytes > 0);
}

/* ---- what a file must have ------------------------------------------------------------------------------------------ */

typedef struct replay {
    catalog *catalog;
    sim *sim;
    uint32_t stream;
    VEC(sim_span) spans;
} replay;

static void collect(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    replay *r = context;
    (void)track;
    for (size_t i = 0; i < count; i++) {
        sim_span *span = vec_push(&r->spans);
        CHECK(span);
        *span = spans[i];
    }
}

static void replay_new(replay *r)
{
    *r = (replay){0};
    CHECK_EQ(catalog_new(&r->catalog), 0);
    CHECK_EQ(sim_new(&r->sim, &(sim_desc){.catalog = r->catalog, .sink = collect, .context = r}), 0);
    r->stream = sim_stream_open(r->sim, catalog_process_add(r->catalog, 1, 1), CLOCK_SOURCE_MONOTONIC);
}

static void replay_run(replay *r, const ev *events, size_t count)
{
    CHECK_EQ(sim_run(r->sim, &(sim_block){r->stream, (uint32_t)count, events}, 1), 0);
}

static void replay_free(replay *r)
{
    vec_free(&r->spans);
    sim_delete(r->sim);
    catalog_delete(r->catalog);
}

/* Without the looks at the clock that intake adds. */
static void leave_out_clocks(event_vec *v)
{
    size_t to = 0;
    for (size_t i = 0, end; i < v->count; i = end) {
        end = i + ev_slots(v->items[i]);
        if (ev_kind_of(v->items[i]) == EV_DEFINE && ev_define_what(v->items[i]) == EV_DEFINE_CLOCK)
            continue;
        memmove(v->items + to, v->items + i, (end - i) * sizeof(ev));
        to += end - i;
    }
    v->count = to;
}

static uint32_t pid_in(const event_vec *v)
{
    for (size_t i = 0; i < v->count; i += ev_slots(v->items[i]))
        if (ev_kind_of(v->items[i]) == EV_DEFINE && ev_define_what(v->items[i]) == EV_DEFINE_PROCESS) {
            ev_process_def def;
            memcpy(&def, v->items + i + 1, sizeof def);
            return def.pid;
        }
    TEST_FAILED("a stream in the file does not say whose it is");
}

static bool same_event(ev a, ev b) { return memcmp(&a, &b, sizeof a) == 0; }

/* The file's last events are ones that the program has sent, one after another: how many, and *from: which. */
static size_t tail_of(const event_vec *file, const event_vec *sent, size_t *from)
{
    size_t end = sent->count, length = 0;
    while (end > 0 && !same_event(sent->items[end - 1], file->items[file->count - 1]))
        end--;
    while (length < end && length < file->count && same_event(sent->items[end - 1 - length], file->items[file->count - 1 - length]))
        length++;
    *from = end - length;
    return length;
}

/* Replayed, the file tells of the calls that ended in it what all of the stream does, and has the same ones open. */
static void same_story(const event_vec *file, const event_vec *sent, size_t from, size_t length)
{
    replay whole, late;
    replay_new(&whole);
    replay_new(&late);
    replay_run(&whole, sent->items, from);
    size_t before = whole.spans.count;
    uint64_t begin_ns = ev_ticks_of(file->items[0]);
    replay_run(&whole, sent->items + from, length);
    replay_run(&late, file->items, file->count);
    CHECK_EQ(late.spans.count, whole.spans.count - before);
    for (size_t i = 0; i < late.spans.count; i++) {
        const sim_span *got = &late.spans.items[i], *want = &whole.spans.items[before + i];
        CHECK(got->begin_ns == want->begin_ns || (got->open_at_start && got->begin_ns == begin_ns && want->begin_ns < begin_ns));
        CHECK(got->end_ns == want->end_ns && got->value == want->value && got->depth == want->depth && got->closed == want->closed);
    }
    for (uint32_t fiber = 1; fiber <= 2; fiber++) {
        uint32_t a = catalog_find_fiber(whole.catalog, 0, fiber), b = catalog_find_fiber(late.catalog, 0, fiber);
        uint32_t open = sim_open_depth(whole.sim, catalog_fiber_at(whole.catalog, a)->track);
        CHECK_EQ(b == CATALOG_NONE ? 0 : sim_open_depth(late.sim, catalog_fiber_at(late.catalog, b)->track), open);
    }
    for (uint32_t i = 1; i <= METHODS; i++)
        CHECK_STR(catalog_method_of(late.catalog, 0, i)->name, catalog_method_of(whole.catalog, 0, i)->name);
    replay_free(&whole);
    replay_free(&late);
}

/* The three calls are there as open ones, from when the recording began on. */
static void check_quiet(const event_vec *file, const event_vec *sent, uint64_t begin_ns, uint64_t end_ns)
{
    replay late;
    sim_span open[4];
    replay_new(&late);
    replay_run(&late, file->items, file->count);
    uint32_t fiber = catalog_find_fiber(late.catalog, 0, 1);
    CHECK(fiber != CATALOG_NONE);
    CHECK_EQ(sim_open_frames(late.sim, catalog_fiber_at(late.catalog, fiber)->track, 0, open, 4), 3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(open[i].open_at_start && open[i].value == i + 1);
        CHECK(open[i].begin_ns > ev_ticks_of(sent->items[sent->count - 1]));
        CHECK(open[i].begin_ns >= begin_ns && open[i].begin_ns <= end_ns);
    }
    replay_free(&late);
}

/* begin_ns, end_ns: between which the recording was begun. Returns the last program's events in the file. */
static size_t check_file(const stage *t, const char *path, uint64_t begin_ns, uint64_t end_ns, bool has_ended)
{
    record_reader *reader = open_reader(path);
    record_info info = record_info_of(reader);
    size_t seen = 0;
    CHECK(info.is_complete);
    CHECK_STR(info.problem, "");
    CHECK_EQ(info.stream_count, BUSY + 1);
    for (uint32_t i = 0; i < info.stream_count; i++) {
        record_stream st = record_stream_at(reader, i);
        event_vec events = {0};
        CHECK_EQ(st.has_ended, has_ended);
        read_stream(reader, st.stream, &events);
        leave_out_clocks(&events);
        uint32_t pid = pid_in(&events);
        if (pid == QUIET_PID) {
            check_quiet(&events, &t->quiet, begin_ns, end_ns);
        } else {
            size_t from, length = tail_of(&events, &t->programs[pid - 1001].events, &from);
            CHECK(from > 0);
            CHECK(length > 500);
            CHECK(ev_ticks_of(t->programs[pid - 1001].events.items[from]) <= end_ns);
            same_story(&events, &t->programs[pid - 1001].events, from, length);
            seen += length;
        }
        vec_free(&events);
    }
    record_close(reader);
    return seen;
}

/* ---- tests ----------------------------------------------------------------------------------------------------------- */

TEST(a_recording_from_the_middle_is_what_came_from_there_on_and_what_was_open)
{
    stage t;
    char first[128], second[128];
    uint64_t begin_ns[2], end_ns[2];
    snprintf(first, sizeof first, "%s", temp_file("first.rrt"));
    snprintf(second, sizeof second, "%s", temp_file("second.rrt"));
    set_up(&t, NULL);
    begin_ns[0] = clock_ns(CLOCK_MONOTONIC);
    record_for(&t, first, 150000);
    end_ns[0] = clock_ns(CLOCK_MONOTONIC);
    usleep(30000);
    begin_ns[1] = clock_ns(CLOCK_MONOTONIC);
    session_record_from_here(t.session, second);
    wait_for_news(t.session, RECORDING_BEGUN);
    end_ns[1] = clock_ns(CLOCK_MONOTONIC);
    usleep(100000);
    stop_programs(&t);
    CHECK(session_status_of(t.session).is_recording);
    session_record_no_more(t.session, true);
    wait_for_news(t.session, RECORDING_WRITTEN);
    size_t seen = check_file(&t, first, begin_ns[0], end_ns[0], false);
    CHECK(check_file(&t, second, begin_ns[1], end_ns[1], true) > 0 && seen > 0);
    tear_down(&t);
}

/* ---- where time begins ---------------------------------------------------------------------------------------------- */

typedef struct lone {
    char folder[32], socket[64];
    session *session;
    ring *ring;
    int fd;
} lone;

/* One program, which has three calls open and waits in them. */
static void lone_new(lone *l)
{
    event_vec events = {0};
    *l = (lone){.folder = "/tmp/rrtrace-test-XXXXXX"};
    CHECK(mkdtemp(l->folder));
    snprintf(l->socket, sizeof l->socket, "%s/session", l->folder);
    CHECK_EQ(session_start(&l->session, &(session_desc){.listen_fd = program_listen(l->socket), .socket_path = l->socket,
                                                        .memory_bytes = (size_t)64 << 20}), 0);
    CHECK_EQ(session_begin(l->session), 0);
    session_answer_at_once(l->session);
    l->fd = program_join(l->socket, &l->ring, RING_SLOTS_MIN);
    add_names(&events, QUIET_PID);
    add(&events, ev_make(EV_SWITCH, clock_ns(CLOCK_MONOTONIC), 2, 2)); /* a thread that ends before anything is recorded */
    add(&events, ev_make(EV_THREAD_EXITED, clock_ns(CLOCK_MONOTONIC), 2, 0));
    add(&events, ev_make(EV_SWITCH, clock_ns(CLOCK_MONOTONIC), 1, 1));
    for (uint32_t i = 1; i <= 3; i++)
        add(&events, ev_make(EV_CALL, clock_ns(CLOCK_MONOTONIC), i, 0x40000000u - i * 64u));
    send_from(l->ring, &events, 0);
    vec_free(&events);
    for (int i = 0; i < 5000 && session_status_of(l->session).event_count < METHODS + 7; i++)
        usleep(1000);
}

static void lone_delete(lone *l)
{
    session_stop(l->session);
    close(l->fd);
    temp_remove();
}

/* Calls of method 4 that end at once. */
static void lone_calls(lone *l, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ev pair[2];
        pair[0] = ev_make(EV_CALL, clock_ns(CLOCK_MONOTONIC), 4, 0x40000000u - 4 * 64u);
        pair[1] = ev_make(EV_RETURN, clock_ns(CLOCK_MONOTONIC), 0, 0x40000000u - 4 * 64u);
        program_push(l->ring, pair, 2);
    }
}

static void lone_end_recording(lone *l, uint64_t events)
{
    for (int i = 0; i < 20000 && session_status_of(l->session).event_count < events; i++)
        usleep(1000);
    session_record_no_more(l->session, true);
    wait_for_news(l->session, RECORDING_WRITTEN);
}

static void no_lock(void *context) { (void)context; }
static void drop_spans(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    (void)context;
    (void)track;
    (void)spans;
    (void)count;
}

/* As the simulation's thread does with a block. */
static void feed(recording *r, sim *s, uint32_t stream, const event_vec *v, size_t first)
{
    recording_events(r, 0, v->items + first, (uint32_t)(v->count - first));
    CHECK_EQ(sim_run(s, &(sim_block){stream, (uint32_t)(v->count - first), v->items + first}, 1), 0);
    recording_state(r, 0);
}

static void add_at(event_vec *v, uint64_t ticks, ev_define what, const void *payload, uint32_t bytes)
{
    size_t at = v->count;
    add_define(v, what, 0, payload, bytes);
    v->items[at] = ev_make(EV_DEFINE, ticks, ev_define_number(what, 0), bytes);
}

/* What intake puts in front when a program wakes up says that it is of the time of the last event. */
TEST(a_recording_begins_when_it_is_begun_however_long_a_program_had_been_quiet_before)
{
    catalog *c;
    sim *s;
    recording *r;
    history *h;
    event_vec events = {0}, in_file = {0};
    const char *path = temp_file("woken.rrt");
    CHECK_EQ(catalog_new(&c), 0);
    CHECK_EQ(history_new(&h, HISTORY_BUDGET_MIN), 0);
    CHECK_EQ(sim_new(&s, &(sim_desc){.catalog = c, .sink = drop_spans}), 0);
    CHECK_EQ(recording_new(&r, &(recording_desc){.catalog = c, .sim = s, .lock = no_lock, .unlock = no_lock}), 0);
    recording_attach(r, h);
    uint32_t process = catalog_process_add(c, QUIET_PID, 1), stream = sim_stream_open(s, process, CLOCK_SOURCE_MONOTONIC);
    recording_stream_begins(r, 0, stream, process, QUIET_PID, CLOCK_SOURCE_MONOTONIC);
    add_names(&events, QUIET_PID);
    uint64_t quiet_since = clock_ns(CLOCK_MONOTONIC) - UINT64_C(5000000000);
    for (size_t i = 0; i < events.count; i += ev_slots(events.items[i]))
        events.items[i] = ev_make(EV_DEFINE, quiet_since, events.items[i].number, events.items[i].place);
    add(&events, ev_make(EV_SWITCH, quiet_since, 1, 1));
    add(&events, ev_make(EV_CALL, quiet_since, 1, 0x40000000u - 64u));
    feed(r, s, stream, &events, 0);

    uint64_t asked_ns = clock_ns(CLOCK_MONOTONIC);
    recording_want(r, path);
    CHECK(!recording_serve(r));
    size_t first = events.count;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    add_at(&events, quiet_since, EV_DEFINE_WAITED, &(ev_waited_def){.count = 3}, sizeof(ev_waited_def));
    add_at(&events, quiet_since, EV_DEFINE_CLOCK, &(ev_clock_def){.ticks = now_ns, .monotonic_ns = now_ns, .realtime_ns = now_ns}, sizeof(ev_clock_def));
    add(&events, ev_make(EV_CALL, now_ns, 2, 0x40000000u - 128u));
    feed(r, s, stream, &events, first);
    recording_end(r);

    record_reader *reader = open_reader(path);
    CHECK(record_info_of(reader).begin_ns >= asked_ns);
    CHECK(record_stream_at(reader, 0).begin_ns >= asked_ns);
    read_stream(reader, 0, &in_file);
    uint32_t seen = 0;
    for (size_t i = 0, last = 0; i < in_file.count; last = i, i += ev_slots(in_file.items[i])) {
        CHECK(ev_ticks_of(in_file.items[i]) >= asked_ns && ev_ticks_of(in_file.items[i]) >= ev_ticks_of(in_file.items[last]));
        seen += ev_kind_of(in_file.items[i]) == EV_DEFINE && ev_define_what(in_file.items[i]) == EV_DEFINE_WAITED;
    }
    CHECK_EQ(seen, 1);
    CHECK(same_event(in_file.items[in_file.count - 1], events.items[events.count - 1]));
    record_close(reader);
    recording_delete(r);
    sim_delete(s);
    history_delete(h);
    catalog_delete(c);
    vec_free(&in_file);
    vec_free(&events);
    temp_remove();
}

TEST(a_late_recordings_states_know_of_nothing_before_it)
{
    lone l;
    const char *path = temp_file("states.rrt");
    lone_new(&l);
    uint64_t asked_ns = clock_ns(CLOCK_MONOTONIC);
    session_record_from_here(l.session, path);
    wait_for_news(l.session, RECORDING_BEGUN);
    uint64_t count = session_status_of(l.session).event_count;
    lone_calls(&l, WRITER_STATE_EVENTS);
    lone_end_recording(&l, count + 2 * WRITER_STATE_EVENTS);
    record_reader *reader = open_reader(path);
    sim_state state = {0};
    uint32_t states = 0;
    for (uint32_t i = 0; i < record_chunk_count(reader); i++) {
        if (!record_chunk_at(reader, i).has_state)
            continue;
        states++;
        CHECK_EQ(record_read_state(reader, i, &state), 0);
        CHECK(state.process_begin_ns >= asked_ns);
        CHECK_EQ(state.threads.count, 1);
        CHECK_EQ(state.fibers.count, 1);
        CHECK(state.threads.items[0].begin_ns >= asked_ns && state.fibers.items[0].begin_ns >= asked_ns);
        CHECK(state.threads.items[0].gvl_since_ns >= asked_ns);
        CHECK(state.frames.count >= 3);
        for (uint32_t k = 0; k < 3; k++)
            CHECK(state.frames.items[k].begin_ns >= asked_ns && state.frames.items[k].method == (SIM_STATE_OPEN_AT_START | (k + 1)));
    }
    CHECK(states > 0);
    sim_state_free(&state);
    record_close(reader);
    session *film; /* and so does the window */
    CHECK_EQ(session_open(&film, open_reader(path), path, (size_t)64 << 20), 0);
    session_look_at(film, 0, 0);
    for (int i = 0; i < 60000 && session_status_of(film).read_share < 1; i++) {
        session_look_at(film, 0, 0);
        usleep(1000);
    }
    session_lock(film);
    session_model m = session_model_of(film);
    CHECK(m.begin_ns >= asked_ns && catalog_process_at(m.catalog, 0)->begin_ns >= asked_ns);
    for (uint32_t i = 0; i < catalog_thread_count(m.catalog); i++)
        CHECK(catalog_thread_at(m.catalog, i)->begin_ns >= m.begin_ns);
    session_unlock(film);
    session_stop(film);
    lone_delete(&l);
}

TEST(a_recording_from_the_start_can_be_ended_and_another_begun)
{
    stage t;
    char whole[128], late[128];
    snprintf(whole, sizeof whole, "%s", temp_file("whole.rrt"));
    snprintf(late, sizeof late, "%s", temp_file("late.rrt"));
    set_up(&t, whole);
    CHECK(session_status_of(t.session).is_recording);
    session_record_no_more(t.session, true);
    recording_news news = wait_for_news(t.session, RECORDING_WRITTEN);
    CHECK_STR(news.line, whole);
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    record_for(&t, late, 100000);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    session_look_at(t.session, begin_ns, end_ns); /* behind the first file's end */
    stop_programs(&t);
    check_file(&t, late, begin_ns, end_ns, false);
    record_reader *reader = open_reader(whole);
    CHECK(record_info_of(reader).is_complete);
    for (uint32_t i = 0; i < record_info_of(reader).stream_count; i++) {
        event_vec events = {0};
        read_stream(reader, record_stream_at(reader, i).stream, &events);
        leave_out_clocks(&events);
        const event_vec *sent = pid_in(&events) == QUIET_PID ? &t.quiet : &t.programs[pid_in(&events) - 1001].events;
        CHECK(events.count <= sent->count && memcmp(events.items, sent->items, events.count * sizeof(ev)) == 0);
        vec_free(&events);
    }
    record_close(reader);
    tear_down(&t);
}

TEST(a_session_that_stops_finishes_its_recording)
{
    stage t;
    char path[128];
    snprintf(path, sizeof path, "%s", temp_file("stopped.rrt"));
    set_up(&t, NULL);
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    session_record_from_here(t.session, path);
    wait_for_news(t.session, RECORDING_BEGUN);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    usleep(100000);
    atomic_store(&stay, true);
    atomic_store(&stops, true);
    for (uint32_t i = 0; i < BUSY; i++)
        pthread_join(t.programs[i].thread, NULL);
    session_stop(t.session);
    t.session = NULL;
    close(t.quiet_fd);
    check_file(&t, path, begin_ns, end_ns, false);
    tear_down(&t);
}

TEST(when_all_programs_have_left_the_recording_ends_and_its_name_is_free)
{
    stage t;
    char path[128], line[512];
    record_writer *next;
    snprintf(path, sizeof path, "%s", temp_file("left.rrt"));
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    set_up(&t, path);
    uint64_t early_ns = clock_ns(CLOCK_MONOTONIC);
    stop_programs(&t);
    CHECK(session_status_of(t.session).is_recording); /* what has been started by them may still come */
    recording_news news = wait_for_news(t.session, RECORDING_WRITTEN);
    CHECK_STR(news.line, path);
    CHECK(!session_status_of(t.session).is_recording && !session_take_news(t.session, &news));
    record_reader *reader = open_reader(path);
    CHECK(record_info_of(reader).is_complete);
    record_close(reader);
    CHECK_EQ(record_writer_open(&next, path, line, sizeof line), 0); /* by another session */
    /* The window still shows what it has, and begins no other. */
    session_look_at(t.session, begin_ns, early_ns);
    usleep(1200000);
    CHECK(!session_take_news(t.session, &news));
    record_writer_close(next);
    tear_down(&t);
}

TEST(what_can_not_be_recorded_is_said_in_one_line_and_the_session_goes_on)
{
    stage t;
    char path[128];
    set_up(&t, NULL);
    session_record_from_here(t.session, "/nowhere/at/all.rrt");
    recording_news news = wait_for_news(t.session, RECORDING_FAILED);
    CHECK_STR(news.line, "/nowhere/at/all.rrt: can't be written: No such file or directory");
    session_status status = session_status_of(t.session);
    CHECK(!status.is_recording && status.recording_failed);
    CHECK_STR(status.problem, news.line);
    session_record_from_here(t.session, "/dev/full");
    news = wait_for_news(t.session, RECORDING_FAILED);
    CHECK_STR(news.line, "/dev/full: can't be written: No space left on device");

    /* In the middle: the file may grow so far and no further. */
    struct rlimit old, limit;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = (struct rlimit){4096, old.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    snprintf(path, sizeof path, "%s", temp_file("full.rrt"));
    session_record_from_here(t.session, path);
    wait_for_news(t.session, RECORDING_BEGUN);
    news = wait_for_news(t.session, RECORDING_FAILED);
    CHECK(strncmp(news.line, path, strlen(path)) == 0 && strstr(news.line, "may not grow any more"));
    CHECK(!session_status_of(t.session).is_recording);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    record_close(open_reader(path));

    snprintf(path, sizeof path, "%s", temp_file("then.rrt"));
    uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    record_for(&t, path, 60000); /* another can be begun */
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    CHECK(!session_status_of(t.session).problem);
    stop_programs(&t);
    check_file(&t, path, begin_ns, end_ns, false);
    tear_down(&t);
}

TEST(names_of_recordings_are_new_ones_where_they_can_be_written)
{
    char name[PATH_MAX], again[PATH_MAX], folder[128];
    snprintf(folder, sizeof folder, "%s", temp_file(""));
    folder[strlen(folder) - 1] = '\0';
    recording_name(name, sizeof name, folder, 4711);
    CHECK(strncmp(name, folder, strlen(folder)) == 0 && strstr(name, "-4711.rrt"));
    close(open(name, O_WRONLY | O_CREAT, 0600));
    for (int i = 0; i < 3; i++) { /* at most one of them lies in the next second */
        recording_name(again, sizeof again, folder, 4711);
        CHECK(access(again, F_OK) != 0);
    }
    setenv("TMPDIR", "/var/tmp", 1);
    recording_name(name, sizeof name, "/nowhere", 4711);
    CHECK(strncmp(name, "/var/tmp/rrtrace-", 17) == 0);
    temp_remove();
}
