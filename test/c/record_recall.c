/* What is read back from the recording is what was there: random sessions of several streams, random stretches. */
#include "record_session.h"

#include "record/recall.h"

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
        if (want[i].span_count == 1 && !(want[i].flags & HISTORY_UNWOUND))
            CHECK(!(got[i].flags & HISTORY_UNWOUND)); /* nor is what was cut off */
    }
    return want_count;
}

static size_t same_stretch(const recorded *s, const history *back, uint64_t begin_ns, uint64_t end_ns, uint64_t seed)
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
        recorded s;
        const char *path = temp_file("session.rrt");
        recorded_make(&s, path, &random, 0);
        recall *r;
        CHECK_EQ(recall_new(&r, &(recall_desc){path, (size_t)64 << 20, 0, s.catalog, recorded_lock, recorded_unlock, &s}), 0);
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
        recorded_free(&s);
    }
    temp_remove();
}

TEST(a_file_that_another_session_has_replaced_is_read_back_as_it_was)
{
    uint64_t random = test_seed(5), begin_ns, end_ns;
    recorded s;
    const char *path = temp_file("session.rrt");
    char error[512];
    recorded_make(&s, path, &random, 0);
    recall *r;
    record_writer *w;
    CHECK_EQ(recall_new(&r, &(recall_desc){path, (size_t)64 << 20, 0, s.catalog, recorded_lock, recorded_unlock, &s}), 0);
    CHECK_EQ(record_writer_open(&w, path, error, sizeof error), 0);
    uint64_t width = (s.end_ns - s.begin_ns) / 16, middle = s.begin_ns + (s.end_ns - s.begin_ns) / 2;
    recall_want(r, middle, middle + width);
    const history *back = wait_for(r, 0, &begin_ns, &end_ns);
    CHECK(same_stretch(&s, back, middle, middle + width, 5) > 100);
    recall_release(r);
    recall_delete(r);
    record_writer_close(w);
    recorded_free(&s);
    temp_remove();
}

TEST(more_than_the_budget_holds_is_left_alone_and_a_missing_file_is_named)
{
    uint64_t random = test_seed(9), begin_ns, end_ns;
    recorded s;
    const char *path = temp_file("large.rrt");
    recorded_make(&s, path, &random, 0);
    recall *r;
    CHECK_EQ(recall_new(&r, &(recall_desc){path, HISTORY_BUDGET_MIN, 0, s.catalog, recorded_lock, recorded_unlock, &s}), 0);
    recall_want(r, s.begin_ns, s.end_ns);
    for (int i = 0; i < 20000 && !recall_is_too_much(r, s.begin_ns, s.end_ns); i++)
        usleep(1000);
    CHECK(recall_is_too_much(r, s.begin_ns, s.end_ns));
    CHECK(!recall_is_too_much(r, s.begin_ns + 1, s.end_ns)); /* a little less may fit, as far as is known */
    uint64_t width = (s.end_ns - s.begin_ns) / 1000, middle = s.begin_ns + (s.end_ns - s.begin_ns) / 2;
    recall_want(r, middle, middle + width);
    (void)wait_for(r, 0, &begin_ns, &end_ns);
    CHECK(begin_ns <= middle && middle + width <= end_ns && end_ns - begin_ns < s.end_ns - s.begin_ns);
    recall_release(r);
    recall_delete(r);

    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(recall_new(&r, &(recall_desc){path, (size_t)64 << 20, 0, s.catalog, recorded_lock, recorded_unlock, &s}), 0);
    recall_want(r, middle, middle + width);
    for (int i = 0; i < 20000 && !recall_problem(r); i++)
        usleep(1000);
    CHECK(recall_problem(r) && strstr(recall_problem(r), path));
    CHECK(!recall_is_too_much(r, middle, middle + width)); /* it was not too much */
    recall_delete(r);
    recorded_free(&s);
    temp_remove();
}
