/* history/figures.h against sums that are made slowly, with every call's children looked for. */
#include "test.h"

#include "base/mem.h"
#include "base/vec.h"
#include "history/figures.h"

#include <string.h>

enum { METHODS = 40, DEPTH = 12, TRACKS = 3 };

typedef struct made {
    catalog *catalog;
    figures *figures;
    uint32_t process, tracks[TRACKS];
} made;

static void made_new(made *m)
{
    CHECK_EQ(catalog_new(&m->catalog), 0);
    m->process = catalog_process_add(m->catalog, 1, 0);
    for (uint32_t i = 0; i < TRACKS; i++) {
        uint32_t thread = catalog_thread_of(m->catalog, m->process, i + 1, 0);
        m->tracks[i] = catalog_fiber_at(m->catalog, catalog_fiber_of(m->catalog, m->process, i + 1, thread, 0))->track;
    }
    CHECK_EQ(figures_new(&m->figures, m->catalog), 0);
}

static void made_delete(made *m)
{
    figures_delete(m->figures);
    catalog_delete(m->catalog);
}

static void take(made *m, uint32_t track, uint64_t begin_ns, uint64_t end_ns, uint32_t method, uint32_t depth)
{
    sim_span span = {.begin_ns = begin_ns, .end_ns = end_ns, .value = method, .depth = depth};
    figures_take(m->figures, m->tracks[track], &span, 1);
}

static void check(const made *m, uint32_t method, uint64_t calls, uint64_t sum_ns, uint64_t self_ns, uint64_t longest_ns)
{
    figures_method f = figures_of(m->figures, m->process, method);
    CHECK_EQ(f.calls, calls);
    CHECK_EQ(f.sum_ns, sum_ns);
    CHECK_EQ(f.self_ns, self_ns);
    CHECK_EQ(f.longest_ns, longest_ns);
}

TEST(what_a_call_calls_is_not_its_own_time)
{
    made m;
    made_new(&m);
    take(&m, 0, 10, 20, 2, 1);
    take(&m, 0, 20, 50, 2, 1);
    take(&m, 0, 0, 100, 1, 0);
    take(&m, 0, 100, 107, 1, 0); /* another call of the same method, without children */
    check(&m, 1, 2, 107, 67, 100);
    check(&m, 2, 2, 40, 40, 30);
    check(&m, 3, 0, 0, 0, 0);
    check(&m, 1000000, 0, 0, 0, 0);
    made_delete(&m);
}

TEST(two_fibers_do_not_take_each_others_time)
{
    made m;
    made_new(&m);
    take(&m, 0, 10, 20, 2, 1);
    take(&m, 1, 0, 90, 3, 0);
    take(&m, 0, 0, 100, 1, 0);
    check(&m, 3, 1, 90, 90, 90);
    check(&m, 1, 1, 100, 90, 100);
    made_delete(&m);
}

TEST(frames_open_at_the_start_are_no_calls_but_take_time)
{
    made m;
    made_new(&m);
    sim_span span = {.begin_ns = 0, .end_ns = 30, .value = 4, .open_at_start = 1};
    figures_take(m.figures, m.tracks[0], &span, 1);
    check(&m, 4, 0, 30, 30, 30);
    made_delete(&m);
}

TEST(states_of_the_gvl_and_pauses_are_no_calls)
{
    made m;
    made_new(&m);
    uint32_t gvl = catalog_thread_at(m.catalog, 0)->gvl_track, gc = catalog_process_at(m.catalog, m.process)->gc_track;
    sim_span span = {.begin_ns = 0, .end_ns = 30, .value = 1};
    figures_take(m.figures, gvl, &span, 1);
    figures_take(m.figures, gc, &span, 1);
    check(&m, 1, 0, 0, 0, 0);
    CHECK_EQ(figures_limit(m.figures, m.process), 0);
    made_delete(&m);
}

typedef struct open_call {
    uint64_t begin_ns, below_ns;
    uint32_t method;
} open_call;

TEST(random_stacks_add_up_as_they_do_when_counted_one_by_one)
{
    made m;
    made_new(&m);
    figures_method want[METHODS] = {0};
    open_call stacks[TRACKS][DEPTH];
    uint32_t depth[TRACKS] = {0};
    uint64_t seed = test_seed(5), now_ns = 1000;
    for (int i = 0; i < 20000; i++) {
        uint32_t t = (uint32_t)test_random_below(&seed, TRACKS);
        now_ns += test_random_below(&seed, 50);
        if (depth[t] == 0 || (depth[t] < DEPTH && test_random_below(&seed, 2))) {
            stacks[t][depth[t]++] = (open_call){.begin_ns = now_ns, .method = (uint32_t)test_random_below(&seed, METHODS)};
            continue;
        }
        open_call *call = &stacks[t][--depth[t]];
        uint64_t length_ns = now_ns - call->begin_ns;
        figures_method *w = &want[call->method];
        w->calls++;
        w->sum_ns += length_ns;
        w->self_ns += length_ns - call->below_ns;
        w->longest_ns = length_ns > w->longest_ns ? length_ns : w->longest_ns;
        if (depth[t] > 0)
            stacks[t][depth[t] - 1].below_ns += length_ns;
        take(&m, t, call->begin_ns, now_ns, call->method, depth[t]);
    }
    for (uint32_t i = 0; i < METHODS; i++)
        check(&m, i, want[i].calls, want[i].sum_ns, want[i].self_ns, want[i].longest_ns);
    made_delete(&m);
}

TEST(without_memory_it_counts_too_little_and_stays_sound)
{
    made m;
    made_new(&m);
    mem_fail_every(2);
    for (uint32_t i = 0; i < 2000; i++)
        take(&m, i % TRACKS, i, i + 5, i % 700, i % 90);
    mem_fail_every(0);
    uint64_t calls = 0;
    for (uint32_t i = 0; i < 700; i++)
        calls += figures_of(m.figures, m.process, i).calls;
    CHECK(calls <= 2000);
    made_delete(&m);
}

