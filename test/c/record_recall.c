/* What is read back from the recording is what was there: random sessions of several streams, random stretches. */
#include "record_stream.h"

#include "history/history.h"
#include "record/recall.h"
#include "sim/sim.h"

#include <pthread.h>

enum { STREAMS = 3 };

/* A session with room for everything, recorded as it goes. */
typedef struct session {
    catalog *catalog;
    history *history;
    sim *sim;
    uint64_t begin_ns, end_ns;
    pthread_mutex_t model;
} session;

static void append(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    session *s = context;
    for (size_t i = 0; i < count; i++) {
        s->begin_ns = spans[i].begin_ns < s->begin_ns ? spans[i].begin_ns : s->begin_ns;
        s->end_ns = spans[i].end_ns > s->end_ns ? spans[i].end_ns : s->end_ns;
    }
    CHECK_EQ(history_append(s->history, track, spans, count), 0);
}

static void lock(void *context) { pthread_mutex_lock(&((session *)context)->model); }
static void unlock(void *context) { pthread_mutex_unlock(&((session *)context)->model); }

static void run_session(session *s, const char *path, uint64_t *random)
{
    *s = (session){.begin_ns = UINT64_MAX};
    pthread_mutex_init(&s->model, NULL);
    CHECK_EQ(catalog_new(&s->catalog), 0);
    CHECK_EQ(history_new(&s->history, (size_t)512 << 20), 0);
    CHECK_EQ(sim_new(&s->sim, &(sim_desc){.catalog = s->catalog, .sink = append, .context = s}), 0);
    record_writer *w = open_writer(path);
    event_vec events[STREAMS] = {0};
    uint32_t numbers[STREAMS];
    size_t at[STREAMS] = {0}, left = STREAMS;
    for (uint32_t i = 0; i < STREAMS; i++) {
        stream_how how = random_how(random, 20000 + (uint32_t)test_random_below(random, 400000));
        how.oddity_per_mille = 0; /* times that run backwards have no stretch that they lie in */
        stream_make(&events[i], random, &how);
        numbers[i] = sim_stream_open(s->sim, catalog_process_add(s->catalog, i, 1), 1);
        CHECK_EQ(record_writer_stream_begins(w, i, i, 1, 1), 0);
    }
    sim_state state = {0};
    while (left > 0) {
        uint32_t i = (uint32_t)test_random_below(random, STREAMS);
        if (at[i] >= events[i].count)
            continue;
        size_t end = block_end(&events[i], at[i], 16384);
        CHECK_EQ(record_writer_events(w, i, events[i].items + at[i], end - at[i]), 0);
        CHECK_EQ(sim_run(s->sim, &(sim_block){numbers[i], (uint32_t)(end - at[i]), events[i].items + at[i]}, 1), 0);
        if (record_writer_wants_state(w, i)) {
            CHECK_EQ(sim_stream_state(s->sim, numbers[i], &state), 0);
            CHECK_EQ(record_writer_state(w, i, &state), 0);
        }
        at[i] = end;
        if (end == events[i].count) {
            CHECK_EQ(sim_stream_close(s->sim, numbers[i]), 0);
            CHECK_EQ(record_writer_stream_ends(w, i, NULL), 0);
            left--;
        }
    }
    sim_state_free(&state);
    record_writer_close(w);
    for (uint32_t i = 0; i < STREAMS; i++)
        vec_free(&events[i]);
}

static void session_free(session *s)
{
    sim_delete(s->sim);
    history_delete(s->history);
    catalog_delete(s->catalog);
    pthread_mutex_destroy(&s->model);
}

/* Waits for what was wanted, and holds it. */
static const history *wait_for(recall *r, uint64_t generation, uint64_t *begin_ns, uint64_t *end_ns)
{
    for (int i = 0; i < 20000 && recall_generation(r) == generation; i++)
        usleep(1000);
    const char *problem = recall_problem(r);
    if (recall_generation(r) == generation)
        TEST_FAILED("nothing was read back: %s", problem ? problem : "no reason");
    return recall_hold(r, begin_ns, end_ns);
}

static size_t all_nodes(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns, history_node *out, size_t max)
{
    size_t count = history_query(h, track, depth, begin_ns, end_ns, 1, out, max);
    CHECK(count < max);
    return count;
}

/* Returns how many spans were compared. */
static size_t same_row(const history *full, const history *back, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns, uint64_t seed)
{
    enum { MAX = 60000 };
    static history_node want[MAX], got[MAX];
    size_t want_count = all_nodes(full, track, depth, begin_ns, end_ns, want, MAX);
    size_t got_count = all_nodes(back, track, depth, begin_ns, end_ns, got, MAX);
    if (got_count != want_count)
        TEST_FAILED("seed %" PRIu64 ", track %u depth %u: %zu spans, wanted %zu", seed, track, depth, got_count, want_count);
    for (size_t i = 0; i < want_count; i++) {
        bool is_cut = got[i].end_ns >= end_ns && want[i].end_ns >= end_ns; /* it was open where the reading stopped */
        CHECK_EQ(got[i].begin_ns, want[i].begin_ns);
        CHECK_EQ(got[i].value, want[i].value);
        CHECK_EQ(got[i].span_count, want[i].span_count);
        if (!is_cut)
            CHECK_EQ(got[i].end_ns, want[i].end_ns);
    }
    return want_count;
}

static size_t same_stretch(const session *s, const history *back, uint64_t begin_ns, uint64_t end_ns, uint64_t seed)
{
    size_t compared = 0;
    for (uint32_t track = 0; track < catalog_track_count(s->catalog); track++)
        for (uint32_t depth = 0; depth < history_rows(s->history, track); depth++)
            compared += same_row(s->history, back, track, depth, begin_ns, end_ns, seed);
    return compared;
}

TEST(any_stretch_is_read_back_as_it_was)
{
    uint64_t seed = test_seed(1);
    for (int round = 0; round < 3; round++, seed++) {
        uint64_t random = seed * 77 + 1;
        session s;
        const char *path = temp_file("session.rrt");
        run_session(&s, path, &random);
        recall *r;
        CHECK_EQ(recall_new(&r, &(recall_desc){path, (size_t)64 << 20, 0, s.catalog, lock, unlock, &s}), 0);
        size_t compared = 0;
        for (int i = 0; i < 12; i++) {
            uint64_t length = s.end_ns - s.begin_ns, width = 1 + length / (8u << test_random_below(&random, 8));
            uint64_t begin_ns = s.begin_ns + test_random_below(&random, length - width), got_begin_ns, got_end_ns;
            uint64_t generation = recall_generation(r);
            const history *held = recall_hold(r, &got_begin_ns, &got_end_ns);
            bool is_there = held && got_begin_ns <= begin_ns && begin_ns + width <= got_end_ns;
            recall_release(r);
            recall_want(r, begin_ns, begin_ns + width);
            const history *back = wait_for(r, is_there ? generation - 1 : generation, &got_begin_ns, &got_end_ns);
            CHECK(got_begin_ns <= begin_ns && begin_ns + width <= got_end_ns);
            compared += same_stretch(&s, back, begin_ns, begin_ns + width, seed);
            recall_release(r);
        }
        CHECK(compared > 1000);
        recall_delete(r);
        session_free(&s);
    }
    temp_remove();
}

TEST(more_than_the_budget_holds_is_left_alone_and_a_missing_file_is_named)
{
    uint64_t random = test_seed(9), begin_ns, end_ns;
    session s;
    const char *path = temp_file("large.rrt");
    run_session(&s, path, &random);
    recall *r;
    CHECK_EQ(recall_new(&r, &(recall_desc){path, HISTORY_BUDGET_MIN, 0, s.catalog, lock, unlock, &s}), 0);
    recall_want(r, s.begin_ns, s.end_ns);
    uint64_t width = (s.end_ns - s.begin_ns) / 1000, middle = s.begin_ns + (s.end_ns - s.begin_ns) / 2;
    recall_want(r, middle, middle + width); /* once this is there, the other was seen to be too much, or was overtaken */
    (void)wait_for(r, 0, &begin_ns, &end_ns);
    CHECK(begin_ns <= middle && middle + width <= end_ns && end_ns - begin_ns < s.end_ns - s.begin_ns);
    recall_release(r);
    recall_delete(r);

    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(recall_new(&r, &(recall_desc){path, (size_t)64 << 20, 0, s.catalog, lock, unlock, &s}), 0);
    recall_want(r, middle, middle + width);
    for (int i = 0; i < 20000 && !recall_problem(r); i++)
        usleep(1000);
    CHECK(recall_problem(r) && strstr(recall_problem(r), path));
    recall_delete(r);
    session_free(&s);
    temp_remove();
}
