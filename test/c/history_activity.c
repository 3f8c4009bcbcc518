/* The counters of a session's activity against all that was said to them. */
#include "history/activity.h"

#include "test.h"

enum { BATCHES = 400, COLUMNS = 640 };

typedef struct batch { uint64_t begin_ns, end_ns, count; uint32_t group; } batch;

static double sum_of(const activity *a, uint64_t begin_ns, uint64_t end_ns)
{
    static double columns[COLUMNS];
    double sum = 0;
    for (uint32_t g = 0; g < activity_group_count(a); g++) {
        activity_columns(a, g, begin_ns, end_ns, columns, COLUMNS);
        for (int i = 0; i < COLUMNS; i++)
            sum += columns[i];
    }
    return sum;
}

TEST(no_time_that_had_events_is_ever_empty_and_no_event_is_lost)
{
    uint64_t seed = test_seed(1);
    for (int round = 0; round < test_rounds(60); round++, seed++) {
        uint64_t random = seed * 31 + 7, now_ns = 5000000000u, total = 0;
        uint64_t pace = UINT64_C(1) << test_random_below(&random, 40); /* sessions of microseconds and of weeks */
        static batch batches[BATCHES];
        activity *a;
        CHECK_EQ(activity_new(&a), 0);
        for (int i = 0; i < BATCHES; i++) {
            batch *b = &batches[i];
            now_ns += test_random_below(&random, pace);
            *b = (batch){now_ns, now_ns + test_random_below(&random, pace), 1 + test_random_below(&random, 9000), (uint32_t)test_random_below(&random, 20)};
            total += b->count;
            CHECK_EQ(activity_add(a, b->group, b->begin_ns, b->end_ns, b->count), 0);
        }
        uint64_t begin_ns = batches[0].begin_ns, end_ns = now_ns + pace + 1;
        double sum = sum_of(a, begin_ns, end_ns + ACTIVITY_FIRST_BUCKET_NS);
        if (sum < 0.98 * (double)total || sum > 1.02 * (double)total) /* the last bucket may reach over the end */
            TEST_FAILED("seed %" PRIu64 ": %f events of %" PRIu64, seed, sum, total);
        for (int i = 0; i < BATCHES; i++) {
            static double columns[COLUMNS];
            uint32_t group = batches[i].group < ACTIVITY_GROUPS ? batches[i].group : ACTIVITY_GROUPS - 1;
            double width = (double)(end_ns - begin_ns) / COLUMNS;
            activity_columns(a, group, begin_ns, end_ns, columns, COLUMNS);
            uint32_t first = (uint32_t)((double)(batches[i].begin_ns - begin_ns) / width), last = (uint32_t)((double)(batches[i].end_ns - begin_ns) / width);
            for (uint32_t c = first + 1; c < last && c < COLUMNS; c++) /* whole ones */
                if (!(columns[c] > 0))
                    TEST_FAILED("seed %" PRIu64 ": column %u is empty", seed, c);
            if (first < COLUMNS && !(columns[first] > 0 || (first + 1 < COLUMNS && columns[first + 1] > 0)))
                TEST_FAILED("seed %" PRIu64 ": batch %d is nowhere", seed, i);
        }
        activity_delete(a);
    }
}

TEST(a_pause_stays_a_pause_when_the_session_grows_a_thousandfold)
{
    static double columns[100];
    activity *a;
    CHECK_EQ(activity_new(&a), 0);
    for (uint64_t s = 0; s < 1000; s++)
        if (s < 300 || s >= 400)
            CHECK_EQ(activity_add(a, 0, s * 1000000000u, s * 1000000000u + 999999999u, 1000), 0);
    activity_columns(a, 0, 0, UINT64_C(1000000000000), columns, 100);
    for (int i = 0; i < 100; i++) {
        if (i > 30 && i < 39)
            CHECK(columns[i] == 0);
        else if (i < 29 || (i > 40 && i < 99)) /* the last bucket reaches over the end */
            CHECK(columns[i] > 9990 && columns[i] < 10010);
    }
    activity_columns(a, 7, 0, 1000, columns, 100); /* a group that has nothing */
    CHECK(columns[0] == 0 && columns[99] == 0);
    activity_columns(a, 0, 1000, 1000, columns, 100);
    CHECK(columns[0] == 0);
    activity_delete(a);
}

TEST(what_is_said_to_be_before_the_begin_is_counted_at_it)
{
    double column;
    activity *a;
    CHECK_EQ(activity_new(&a), 0);
    CHECK_EQ(activity_add(a, 0, 5000000000u, 5000000100u, 1), 0);
    CHECK_EQ(activity_add(a, 1, 4000000000u, 4000000100u, 3), 0);
    activity_columns(a, 1, 5000000000u, 5000000000u + ACTIVITY_FIRST_BUCKET_NS, &column, 1);
    CHECK(column == 3);
    activity_delete(a);
}
