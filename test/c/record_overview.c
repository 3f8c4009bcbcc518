/* An overview of a session shows, more coarsely, just what was there: random sessions, and damaged bytes. */
#include "record_session.h"

#include <errno.h>

enum { NODES = 60000 };
static history_node fine[NODES], coarse[NODES];

static uint32_t same_process(void *context, uint32_t stream)
{
    (void)context;
    return stream;
}

static uint32_t no_process(void *context, uint32_t stream)
{
    (void)context;
    (void)stream;
    return CATALOG_NONE;
}

/* Every span lies in a node of the outline, and the sums agree. Returns the nodes of the row. */
static size_t covers_row(const recorded *s, const history *outlined, uint32_t track, uint32_t depth, bool may_be_missing, uint64_t seed)
{
    size_t spans = history_query(s->history, track, depth, 0, UINT64_MAX, 1, fine, NODES), at = 0;
    size_t nodes = history_query(outlined, track, depth, 0, UINT64_MAX, 1, coarse, NODES);
    uint64_t busy[2] = {0}, count[2] = {0};
    CHECK(spans < NODES && nodes < NODES);
    if (nodes == 0 && may_be_missing)
        return 0;
    for (size_t i = 0; i < spans; i++) {
        while (at < nodes && coarse[at].end_ns < fine[i].end_ns)
            at++;
        if (at == nodes || coarse[at].begin_ns > fine[i].begin_ns)
            TEST_FAILED("seed %" PRIu64 ": track %u depth %u: a call at %" PRIu64 " is hidden", seed, track, depth, fine[i].begin_ns - s->begin_ns);
        busy[0] += fine[i].busy_ns;
        count[0] += fine[i].span_count;
    }
    for (size_t i = 0; i < nodes; i++) {
        busy[1] += coarse[i].busy_ns;
        count[1] += coarse[i].span_count;
    }
    CHECK_EQ(busy[1], busy[0]);
    CHECK_EQ(count[1], count[0]);
    CHECK_EQ(history_has_spans(outlined, track, depth, 0, UINT64_MAX), nodes > 0);
    for (uint64_t cell_ns = 1000; cell_ns < UINT64_C(10000000000); cell_ns *= 10) { /* the same in fewer, not across cells */
        size_t cells = history_query_cells(outlined, track, depth, 0, UINT64_MAX, cell_ns, coarse, NODES);
        CHECK(cells <= nodes);
        for (size_t i = 0; i < cells; i++) {
            count[1] -= coarse[i].span_count;
            CHECK(i < 2 || coarse[i].begin_ns / cell_ns != coarse[i - 2].begin_ns / cell_ns);
        }
        CHECK_EQ(count[1], 0);
        count[1] = count[0];
    }
    return nodes;
}

static size_t covers(const recorded *s, const columns_bytes *bytes, size_t bytes_max, bool may_lack_rows, uint64_t seed)
{
    outline *o;
    history *empty;
    size_t nodes = 0;
    CHECK_EQ(outline_new(&o), 0);
    CHECK_EQ(history_new(&empty, HISTORY_BUDGET_MIN), 0);
    CHECK_EQ(overview_read(bytes->items, bytes->count, s->catalog, same_process, NULL, bytes_max, o), 0);
    history_set_outline(empty, o);
    for (uint32_t track = 0; track < catalog_track_count(s->catalog); track++)
        for (uint32_t depth = 0; depth < history_rows(s->history, track); depth++)
            nodes += covers_row(s, empty, track, depth, may_lack_rows && depth > 0, seed);
    CHECK(outline_bytes(o) < bytes_max + 200000); /* the row that went over it is whole */
    history_set_outline(empty, NULL);
    outline_delete(o);
    history_delete(empty);
    return nodes;
}

TEST(an_overview_never_hides_that_time_was_busy)
{
    uint64_t seed = test_seed(1);
    for (int round = 0; round < test_rounds(3); round++, seed++) {
        uint64_t random = seed * 99 + 5;
        recorded s;
        columns_bytes bytes = {0};
        recorded_make(&s, temp_file("overview.rrt"), &random, 0);
        CHECK_EQ(overview_build(s.catalog, s.history, s.sim, 0, s.begin_ns, s.end_ns, 20000, &bytes), 0);
        size_t nodes = covers(&s, &bytes, (size_t)64 << 20, false, seed);
        CHECK(nodes > 1000 && nodes <= 20000);
        CHECK(covers(&s, &bytes, 400000, true, seed) < nodes); /* little memory to read it into */
        bytes.count = 0;
        CHECK_EQ(overview_build(s.catalog, s.history, s.sim, 0, s.begin_ns, s.end_ns, 150, &bytes), 0); /* hardly a node a row */
        CHECK(covers(&s, &bytes, (size_t)64 << 20, true, seed) <= 150);
        vec_free(&bytes);
        recorded_free(&s);
    }
    temp_remove();
}

static uint32_t five_is_one(void *context, uint32_t stream)
{
    (void)context;
    return stream == 5 ? 1 : stream == 6 ? 2 : CATALOG_NONE;
}

TEST(an_overview_of_a_recording_that_began_late_has_nothing_of_before_and_all_of_after)
{
    uint64_t seed = test_seed(2), random = seed * 99 + 5;
    recorded s;
    columns_bytes bytes = {0};
    outline *o;
    history *outlined;
    size_t seen = 0;
    recorded_make(&s, temp_file("late.rrt"), &random, 0);
    uint64_t half_ns = s.begin_ns + (s.end_ns - s.begin_ns) / 2;
    const uint32_t streams[RECORDED_STREAMS] = {OVERVIEW_NOT_THERE, 5, 6};
    overview_desc desc = {.streams = streams, .from_ns = half_ns, .begin_ns = half_ns, .end_ns = s.end_ns, .node_limit = 20000};
    CHECK_EQ(overview_build_of(s.catalog, s.history, s.sim, &desc, &bytes), 0);
    CHECK_EQ(outline_new(&o), 0);
    CHECK_EQ(history_new(&outlined, HISTORY_BUDGET_MIN), 0);
    CHECK_EQ(overview_read(bytes.items, bytes.count, s.catalog, five_is_one, NULL, (size_t)64 << 20, o), 0);
    history_set_outline(outlined, o);
    for (uint32_t id = 0; id < catalog_fiber_count(s.catalog); id++) {
        const catalog_fiber *f = catalog_fiber_at(s.catalog, id);
        bool is_there = catalog_thread_at(s.catalog, f->thread)->process != 0;
        for (uint32_t depth = 0; depth < history_rows(s.history, f->track); depth++) {
            size_t spans = history_query(s.history, f->track, depth, half_ns, UINT64_MAX, 1, fine, NODES), at = 0;
            size_t nodes = history_query(outlined, f->track, depth, 0, UINT64_MAX, 1, coarse, NODES);
            CHECK_EQ(nodes > 0, is_there && spans > 0);
            for (size_t i = 0; i < nodes; i++)
                CHECK(coarse[i].begin_ns >= half_ns);
            for (size_t i = 0; i < spans && is_there; i++) {
                while (at < nodes && coarse[at].end_ns < fine[i].end_ns)
                    at++;
                CHECK(at < nodes && (coarse[at].begin_ns <= fine[i].begin_ns || coarse[at].begin_ns == half_ns));
            }
            seen += nodes;
        }
    }
    CHECK(seen > 100);
    history_set_outline(outlined, NULL);
    history_delete(outlined);
    outline_delete(o);
    vec_free(&bytes);
    recorded_free(&s);
    temp_remove();
}

TEST(an_outline_takes_the_place_of_what_a_history_has_not_come_to)
{
    uint64_t seed = test_seed(4), random = seed * 99 + 5;
    recorded s;
    columns_bytes bytes = {0};
    outline *o;
    recorded_make(&s, temp_file("half.rrt"), &random, 0);
    CHECK_EQ(overview_build(s.catalog, s.history, s.sim, 0, s.begin_ns, s.end_ns, 20000, &bytes), 0);
    CHECK_EQ(outline_new(&o), 0);
    CHECK_EQ(overview_read(bytes.items, bytes.count, s.catalog, same_process, NULL, (size_t)64 << 20, o), 0);
    uint64_t half_ns = s.begin_ns + (s.end_ns - s.begin_ns) / 2;
    for (uint32_t track = 0; track < catalog_track_count(s.catalog); track++)
        for (uint32_t depth = 0; depth < history_rows(s.history, track); depth++) {
            history *half;
            CHECK_EQ(history_new(&half, (size_t)64 << 20), 0);
            size_t spans = history_query(s.history, track, depth, 0, UINT64_MAX, 1, fine, NODES), at = 0;
            for (size_t i = 0; i < spans && fine[i].end_ns < half_ns; i++) {
                sim_span span = {.begin_ns = fine[i].begin_ns, .end_ns = fine[i].end_ns, .value = fine[i].value, .depth = depth};
                CHECK_EQ(history_append(half, track, &span, 1), 0);
            }
            history_set_outline(half, o);
            size_t nodes = history_query(half, track, depth, 0, UINT64_MAX, 1, coarse, NODES);
            for (size_t i = 0; i + 1 < nodes; i++)
                CHECK(coarse[i].end_ns <= coarse[i + 1].begin_ns);
            for (size_t i = 0; i < spans; i++) {
                if (fine[i].begin_ns == fine[i].end_ns)
                    continue; /* on a border it may lie on either side */
                while (at < nodes && coarse[at].end_ns < fine[i].end_ns)
                    at++;
                if (at == nodes || coarse[at].begin_ns > fine[i].begin_ns)
                    TEST_FAILED("seed %" PRIu64 ": track %u depth %u: span %zu is hidden", seed, track, depth, i);
            }
            for (size_t i = 1; i < 20 && nodes > 0; i++) { /* any window finds what it should */
                uint64_t begin_ns = s.begin_ns + test_random_below(&random, s.end_ns - s.begin_ns);
                size_t first = 0, got = history_query(half, track, depth, begin_ns, UINT64_MAX, 1, fine, NODES);
                while (first < nodes && coarse[first].end_ns <= begin_ns)
                    first++;
                CHECK(got >= nodes - first);
            }
            history_delete(half);
        }
    outline_delete(o);
    vec_free(&bytes);
    recorded_free(&s);
    temp_remove();
}

TEST(damaged_overviews_are_refused_or_read_as_something_else_and_no_more)
{
    uint64_t seed = test_seed(7), random = seed;
    recorded s;
    columns_bytes bytes = {0};
    recorded_make(&s, temp_file("damaged.rrt"), &random, 0);
    CHECK_EQ(overview_build(s.catalog, s.history, s.sim, 0, s.begin_ns, s.end_ns, 3000, &bytes), 0);
    for (int round = 0; round < test_rounds(300); round++) {
        unsigned char *damaged = malloc(bytes.count); /* of the exact size, so that reading past it is seen */
        size_t count = test_random_below(&random, 3) ? bytes.count : test_random_below(&random, bytes.count);
        outline *o;
        memcpy(damaged, bytes.items, bytes.count);
        damaged = realloc(damaged, count ? count : 1);
        for (uint64_t i = test_random_below(&random, 6); i > 0 && count > 0; i--)
            damaged[test_random_below(&random, count)] = (unsigned char)test_random(&random);
        CHECK_EQ(outline_new(&o), 0);
        int error = overview_read(damaged, count, s.catalog, round % 5 ? same_process : no_process, NULL, (size_t)16 << 20, o);
        CHECK(error == 0 || error == -EBADMSG);
        outline_delete(o);
        free(damaged);
    }
    vec_free(&bytes);
    recorded_free(&s);
    temp_remove();
}

static void compare_bytes(void *context, const void *bytes, size_t count)
{
    const columns_bytes *want = context;
    CHECK_EQ(count, want->count);
    CHECK(memcmp(bytes, want->items, count) == 0);
}

static uint32_t count_overviews(record_reader *r, const char *want)
{
    uint32_t count = 0;
    columns_bytes bytes = {.items = (unsigned char *)(uintptr_t)want, .count = strlen(want)};
    for (uint32_t i = 0; i < record_chunk_count(r); i++)
        if (record_chunk_at(r, i).kind == RECORD_OVERVIEW) {
            count++;
            CHECK_EQ(record_read_overview(r, i, compare_bytes, &bytes), 0);
        }
    return count;
}

TEST(the_overview_of_a_settled_file_makes_room_for_the_next_and_a_session_that_goes_on_adds_its_own)
{
    const char *path = temp_file("settled.rrt");
    char error[512];
    ev call = ev_make(EV_CALL, 1000, 1, 0x1000);
    record_writer *w = open_writer(path);
    record_writer_stream_begins(w, 0, 1, 1, 1);
    record_writer_events(w, 0, &call, 1);
    CHECK_EQ(record_writer_overview(w, "first", 5, 1, 2), 0);
    CHECK_EQ(record_writer_settle(w), 0);
    record_reader *r = open_reader(path);
    CHECK_EQ(count_overviews(r, "first"), 1);
    CHECK(record_info_of(r).is_complete);
    record_close(r);
    record_writer_events(w, 0, &call, 1);
    CHECK_EQ(record_writer_overview(w, "second", 6, 1, 2), 0);
    CHECK_EQ(record_writer_finish(w), 0);
    record_writer_close(w);
    r = open_reader(path);
    CHECK_EQ(count_overviews(r, "second"), 1);
    CHECK(record_info_of(r).is_complete);
    record_close(r);
    CHECK_EQ(record_writer_go_on(&w, path, error, sizeof error), 0);
    record_writer_stream_begins(w, 0, 2, 1, 1);
    record_writer_events(w, 0, &call, 1);
    CHECK_EQ(record_writer_overview(w, "second", 6, 1, 2), 0);
    record_writer_close(w);
    r = open_reader(path);
    CHECK_EQ(count_overviews(r, "second"), 2);
    CHECK(record_info_of(r).is_complete);
    CHECK_EQ(record_info_of(r).event_count, 3);
    record_close(r);
    temp_remove();
}
