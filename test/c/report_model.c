/* What a report adds up to, on streams whose figures can be worked out by hand; and sums that hold on any stream. */
#include "report/report.h"
#include "report/write.h"

#include "report_stream.h"
#include "sim/walk.h"

#include <errno.h>

static report *new_report(const report_desc *desc)
{
    char error[256];
    report *r;
    if (report_new(&r, desc, error, sizeof error) != 0)
        TEST_FAILED("%s", error);
    return r;
}

static void look_at_name(void *r, ev head, const void *payload) { CHECK_EQ(report_look_at_name(r, 0, head, payload), 0); }

/* A report of one stream that ended. */
static report *report_of(const made *s, const report_desc *desc)
{
    report *r = new_report(desc);
    if (report_needs_names(r))
        made_each_definition(s, look_at_name, r);
    CHECK_EQ(report_stream_open(r, 100), 0);
    CHECK_EQ(report_run(r, 0, s->events.items, s->events.count), 0);
    CHECK_EQ(report_stream_close(r, 0, true), 0);
    CHECK_EQ(report_finish(r), 0);
    return r;
}

static const report_method *method_named(const report_model *m, const char *name)
{
    for (size_t i = 0; i < m->method_count; i++)
        if (strcmp(m->methods[i].is->name, name) == 0)
            return &m->methods[i];
    TEST_FAILED("no method %s", name);
}

static const report_arc *arc_between(const report_model *m, const char *caller, const char *callee)
{
    for (size_t i = 0; i < m->arc_count; i++) {
        const report_arc *arc = &m->arcs[i];
        const char *from = arc->caller == REPORT_NONE ? "" : m->methods[arc->caller].is->name;
        if (strcmp(from, caller) == 0 && strcmp(m->methods[arc->callee].is->name, callee) == 0)
            return arc;
    }
    TEST_FAILED("no arc from %s to %s", caller, callee);
}

/* main 10…100 calls foo 20…50, which calls bar 30…40; then foo 60…70. */
static made small(void)
{
    made s = {0};
    made_process(&s, 100, 1, 1, "ruby");
    made_method(&s, 1, "Object#main");
    made_method(&s, 2, "Object#foo");
    made_method(&s, 3, "Object#bar");
    made_thread(&s, 1, "");
    made_switch(&s, 5, 1, 1);
    made_call(&s, 10, 1, 1);
    made_call(&s, 20, 2, 2);
    made_call(&s, 30, 3, 3);
    made_return(&s, 40, 3);
    made_return(&s, 50, 2);
    made_call(&s, 60, 2, 2);
    made_return(&s, 70, 2);
    made_return(&s, 100, 1);
    return s;
}

static void check_method(const report_model *m, const char *name, uint64_t calls, uint64_t total_ns, uint64_t self_ns, uint64_t min_ns, uint64_t max_ns)
{
    const report_method *method = method_named(m, name);
    CHECK_EQ(method->calls, calls);
    CHECK_EQ(method->total_ns, total_ns);
    CHECK_EQ(method->self_ns, self_ns);
    CHECK_EQ(method->min_ns, min_ns);
    CHECK_EQ(method->max_ns, max_ns);
}

static void check_arc(const report_model *m, const char *caller, const char *callee, uint64_t calls, uint64_t total_ns, uint64_t self_ns)
{
    const report_arc *arc = arc_between(m, caller, callee);
    CHECK_EQ(arc->calls, calls);
    CHECK_EQ(arc->total_ns, total_ns);
    CHECK_EQ(arc->self_ns, self_ns);
}

TEST(self_total_and_arcs_are_what_was_measured)
{
    made s = small();
    report *r = report_of(&s, &(report_desc){.longest_count = 2});
    report_model m = report_model_of(r);
    check_method(&m, "Object#main", 1, 90, 50, 90, 90);
    check_method(&m, "Object#foo", 2, 40, 30, 10, 30);
    check_method(&m, "Object#bar", 1, 10, 10, 10, 10);
    check_arc(&m, "", "Object#main", 1, 90, 50);
    check_arc(&m, "Object#main", "Object#foo", 2, 40, 30);
    check_arc(&m, "Object#foo", "Object#bar", 1, 10, 10);
    CHECK_EQ(m.arc_count, 3);
    CHECK_EQ(m.thread_count, 1);
    CHECK_EQ(m.threads[0].calls, 4);
    CHECK_EQ(m.threads[0].max_depth, 3);
    CHECK_EQ(m.threads[0].gvl_ns[SIM_GVL_RUNNING], 95);
    CHECK_EQ(m.end_ns - m.begin_ns, 95);
    CHECK_EQ(m.longest_count, 2);
    CHECK_EQ(m.longest[0].duration_ns, 90);
    CHECK_EQ(m.longest[1].duration_ns, 30);
    CHECK_EQ(m.longest[1].begin_ns, 20);
    CHECK_EQ(m.longest[1].depth, 1);
    report_delete(r);
    vec_free(&s.events);
}

/* gprof would share out foo's time by the number of calls: baz made 1,000 times as many as bar, and would get nearly all. */
TEST(each_caller_gets_the_time_of_its_own_calls)
{
    made s = {0};
    made_method(&s, 1, "Object#bar");
    made_method(&s, 2, "Object#baz");
    made_method(&s, 3, "Object#foo");
    made_switch(&s, 1, 1, 1);
    uint64_t now = 10;
    made_call(&s, now, 1, 1);
    for (int i = 0; i < 10; i++, now += 10000) {
        made_call(&s, now, 2, 3);
        made_return(&s, now + 10000, 2);
    }
    made_return(&s, now, 1);
    made_call(&s, now, 1, 2);
    for (int i = 0; i < 10000; i++, now += 10) {
        made_call(&s, now, 2, 3);
        made_return(&s, now + 10, 2);
    }
    made_return(&s, now, 1);
    report *r = report_of(&s, &(report_desc){0});
    report_model m = report_model_of(r);
    check_arc(&m, "Object#bar", "Object#foo", 10, 100000, 100000);
    check_arc(&m, "Object#baz", "Object#foo", 10000, 100000, 100000);
    check_method(&m, "Object#foo", 10010, 200000, 200000, 10, 10000);
    report_delete(r);
    vec_free(&s.events);
}

TEST(of_a_recursive_method_the_outermost_activation_alone_counts_for_total)
{
    made s = {0};
    made_method(&s, 1, "Object#odd");
    made_method(&s, 2, "Object#even");
    made_switch(&s, 1, 1, 1);
    made_call(&s, 10, 1, 1); /* odd > even > odd > odd */
    made_call(&s, 20, 2, 2);
    made_call(&s, 30, 3, 1);
    made_call(&s, 40, 4, 1);
    made_return(&s, 50, 4);
    made_return(&s, 60, 3);
    made_return(&s, 80, 2);
    made_return(&s, 110, 1);
    made_call(&s, 120, 1, 2); /* even is outermost now */
    made_call(&s, 130, 2, 1);
    made_return(&s, 140, 2);
    made_return(&s, 150, 1);
    report *r = report_of(&s, &(report_desc){0});
    report_model m = report_model_of(r);
    check_method(&m, "Object#odd", 4, 100 + 10, 40 + 20 + 10 + 10, 10, 100);
    check_method(&m, "Object#even", 2, 60 + 30, 30 + 20, 30, 60);
    check_arc(&m, "Object#even", "Object#odd", 2, 30 + 10, 20 + 10);
    check_arc(&m, "Object#odd", "Object#odd", 1, 10, 10);
    check_arc(&m, "Object#odd", "Object#even", 1, 60, 30);
    report_delete(r);
    vec_free(&s.events);
}

TEST(of_a_recursive_arc_the_outermost_call_alone_counts_for_total)
{
    made s = {0};
    made_method(&s, 1, "Object#fib");
    made_switch(&s, 1, 1, 1);
    for (uint32_t depth = 1; depth <= 4; depth++)
        made_call(&s, depth * 10, depth, 1);
    for (uint32_t depth = 4; depth >= 1; depth--)
        made_return(&s, 100 - depth * 10, depth);
    report *r = report_of(&s, &(report_desc){0});
    report_model m = report_model_of(r);
    check_arc(&m, "Object#fib", "Object#fib", 3, 60, 60); /* 20 … 80 */
    check_arc(&m, "", "Object#fib", 1, 80, 20);
    check_method(&m, "Object#fib", 4, 80, 80, 20, 80);
    CHECK_EQ(report_mean_ns(&m.methods[0]), 50); /* of 20, 40, 60 and 80 */
    report_delete(r);
    vec_free(&s.events);
}

TEST(other_fibers_stacks_are_no_callers_and_no_recursion)
{
    made s = {0};
    made_method(&s, 1, "Object#walk");
    made_switch(&s, 1, 1, 1);
    made_call(&s, 10, 1, 1);
    made_switch(&s, 20, 1, 2);
    made_call(&s, 20, 9, 1);
    made_return(&s, 30, 9);
    made_switch(&s, 30, 1, 1);
    made_return(&s, 40, 1);
    report *r = report_of(&s, &(report_desc){0});
    report_model m = report_model_of(r);
    CHECK_EQ(m.arc_count, 1);
    check_method(&m, "Object#walk", 2, 40, 40, 10, 30);
    CHECK_EQ(m.threads[0].max_depth, 1);
    report_delete(r);
    vec_free(&s.events);
}

TEST(frames_open_at_the_start_have_time_but_are_no_calls_and_open_calls_count_to_the_end)
{
    made s = {0};
    made_method(&s, 1, "Object#main");
    made_method(&s, 2, "Object#foo");
    made_switch(&s, 10, 1, 1);
    made_frame(&s, 10, 1, 1);
    made_call(&s, 20, 2, 2);
    made_event(&s, EV_MARK, 50, 0, 0);
    report *r = report_of(&s, &(report_desc){.longest_count = 5});
    report_model m = report_model_of(r);
    check_method(&m, "Object#main", 0, 40, 10, 40, 40);
    check_method(&m, "Object#foo", 1, 30, 30, 30, 30);
    check_arc(&m, "", "Object#main", 0, 40, 10);
    CHECK_EQ(m.threads[0].calls, 1);
    CHECK_EQ(m.longest[0].is_open, true);
    report_delete(r);
    vec_free(&s.events);
}

TEST(a_method_is_one_over_all_processes_when_name_kind_path_and_line_agree)
{
    made a = {0}, b = {0};
    made_method(&a, 1, "Object#foo");
    made_method(&a, 2, "Object#bar");
    made_method_bytes(&b, 7, "Object#foo", 10, EV_METHOD_RUBY, "app.rb", 10);
    made_method_bytes(&b, 8, "Object#foo", 10, EV_METHOD_RUBY, "app.rb", 11);
    made_method_bytes(&b, 9, "Object#foo", 10, EV_METHOD_C, "app.rb", 10);
    made_process(&a, 5, 1, 1, "ruby a");
    made_process(&b, 6, 5, 1, "ruby b");
    made_switch(&a, 1, 1, 1);
    made_switch(&b, 1, 1, 1);
    made_call(&a, 10, 1, 1);
    made_return(&a, 20, 1);
    for (uint32_t number = 7; number <= 9; number++) {
        made_call(&b, number * 10, 1, number);
        made_return(&b, number * 10 + 1, 1);
    }
    report *r = new_report(&(report_desc){0});
    CHECK_EQ(report_stream_open(r, 5), 0);
    CHECK_EQ(report_stream_open(r, 6), 1);
    CHECK_EQ(report_run(r, 1, b.events.items, b.events.count), 0);
    CHECK_EQ(report_run(r, 0, a.events.items, a.events.count), 0);
    CHECK_EQ(report_stream_close(r, 0, true), 0);
    CHECK_EQ(report_stream_close(r, 1, true), 0);
    CHECK_EQ(report_finish(r), 0);
    report_model m = report_model_of(r);
    CHECK_EQ(m.method_count, 3);
    CHECK_EQ(m.methods[0].calls, 2);
    CHECK_EQ(m.methods[0].total_ns, 11);
    CHECK_EQ(m.process_count, 2);
    CHECK_EQ(catalog_process_at(m.catalog, m.processes[1].id)->ppid, 5);
    CHECK_EQ(m.thread_count, 2);
    CHECK_EQ(m.threads[1].process, 1);
    report_delete(r);
    vec_free(&a.events);
    vec_free(&b.events);
}

TEST(a_number_that_is_defined_again_is_another_method_from_then_on)
{
    made s = {0};
    made_switch(&s, 1, 1, 1);
    made_call(&s, 5, 1, 1); /* not defined yet */
    made_return(&s, 6, 1);
    made_method(&s, 1, "Object#old");
    made_call(&s, 10, 1, 1);
    made_return(&s, 20, 1);
    made_method(&s, 1, "Object#new");
    made_call(&s, 30, 1, 1);
    made_return(&s, 35, 1);
    report *r = report_of(&s, &(report_desc){0});
    report_model m = report_model_of(r);
    check_method(&m, "(unknown method 1)", 1, 1, 1, 1, 1);
    check_method(&m, "Object#old", 1, 10, 10, 10, 10);
    check_method(&m, "Object#new", 1, 5, 5, 5, 5);
    report_delete(r);
    vec_free(&s.events);
}

TEST(a_ractors_stream_belongs_to_its_process_and_exec_makes_another)
{
    made main = {0}, ractor = {0}, after_exec = {0};
    made_process(&main, 5, 1, 1, "ruby app");
    made_process(&ractor, 5, 1, 2, "ruby app");
    made_process(&after_exec, 5, 1, 1, "ruby other");
    made *streams[] = {&main, &ractor, &after_exec};
    report *r = new_report(&(report_desc){0});
    for (uint32_t i = 0; i < 3; i++) {
        made_method(streams[i], 1, "Object#foo");
        made_switch(streams[i], 10 + i, 1 + i, 1);
        made_call(streams[i], 20, 1, 1);
        made_event(streams[i], EV_GC_ENTER, 30, 0, 0);
        made_event(streams[i], EV_GC_EXIT, 40 + i, 0, 0);
        made_return(streams[i], 50, 1);
        CHECK_EQ(report_stream_open(r, 5), i);
        CHECK_EQ(report_run(r, i, streams[i]->events.items, streams[i]->events.count), 0);
        CHECK_EQ(report_stream_close(r, i, true), 0);
    }
    CHECK_EQ(report_finish(r), 0);
    report_model m = report_model_of(r);
    CHECK_EQ(m.process_count, 2);
    CHECK_EQ(m.processes[0].gc_count, 2);
    CHECK_EQ(m.processes[0].gc_total_ns, 21);
    CHECK_EQ(m.processes[0].gc_longest_ns, 11);
    CHECK_STR(catalog_process_at(m.catalog, m.processes[1].id)->command, "ruby other");
    CHECK_EQ(m.thread_count, 3);
    CHECK_EQ(m.threads[0].process, 0);
    CHECK_EQ(m.threads[1].process, 0);
    CHECK_EQ(catalog_thread_at(m.catalog, m.threads[1].id)->ractor, 2);
    CHECK_EQ(m.threads[2].process, 1);
    report_delete(r);
    for (int i = 0; i < 3; i++)
        vec_free(&streams[i]->events);
}

static made two_threads(void)
{
    made s = {0};
    made_method(&s, 1, "Object#work");
    made_thread(&s, 1, "");
    made_switch(&s, 10, 1, 1);
    made_call(&s, 10, 1, 1);
    made_event(&s, EV_THREAD_STARTED, 12, 2, 0);
    made_event(&s, EV_THREAD_STARTED, 13, 3, 0); /* never runs */
    made_event(&s, EV_THREAD_READY, 14, 2, 0);
    made_event(&s, EV_THREAD_SUSPENDED, 20, 1, 0);
    made_event(&s, EV_THREAD_RESUMED, 25, 2, 0);
    made_switch(&s, 25, 2, 2);
    made_call(&s, 30, 1, 1);
    made_thread(&s, 2, "early"); /* it gets its name when it already runs */
    made_return(&s, 60, 1);
    made_thread(&s, 2, "late");
    made_event(&s, EV_THREAD_EXITED, 70, 2, 0);
    made_event(&s, EV_THREAD_EXITED, 71, 3, 0);
    made_event(&s, EV_THREAD_RESUMED, 80, 1, 0);
    made_return(&s, 90, 1);
    return s;
}

TEST(threads_have_their_states_and_those_that_never_ran_are_left_out)
{
    made s = two_threads();
    report *r = report_of(&s, &(report_desc){0});
    report_model m = report_model_of(r);
    CHECK_EQ(m.thread_count, 2);
    CHECK_EQ(m.threads[0].gvl_ns[SIM_GVL_RUNNING], 10 + 10);
    CHECK_EQ(m.threads[0].gvl_ns[SIM_GVL_BLOCKED], 60);
    CHECK_EQ(m.threads[1].gvl_ns[SIM_GVL_WAITING], 11);
    CHECK_EQ(m.threads[1].gvl_ns[SIM_GVL_RUNNING], 45);
    CHECK_EQ(m.threads[1].gvl_ns[SIM_GVL_BLOCKED], 2);
    report_delete(r);
    vec_free(&s.events);
}

TEST(a_thread_is_chosen_by_number_or_by_any_name_it_ever_had)
{
    static const struct { const char *thread; size_t threads; uint64_t total_ns; } tries[] = {
        {"2", 1, 30}, {"1", 1, 80}, {"early", 1, 30}, {"late", 1, 30}, {"/^ea.ly$/", 1, 30}, {"/LATE/i", 1, 30},
        {"nobody", 0, 0}, {"7", 0, 0},
    };
    made s = two_threads();
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        report *r = report_of(&s, &(report_desc){.thread = tries[i].thread});
        report_model m = report_model_of(r);
        CHECK_EQ(m.thread_count, tries[i].threads);
        CHECK_EQ(m.method_count ? m.methods[0].total_ns : 0, tries[i].total_ns);
        report_delete(r);
    }
    vec_free(&s.events);
}

TEST(a_window_of_time_clips_calls_states_and_pauses)
{
    made s = small();
    made_event(&s, EV_GC_ENTER, 100, 0, 0);
    made_event(&s, EV_GC_EXIT, 120, 0, 0);
    report *r = report_of(&s, &(report_desc){.from_ns = 25, .to_ns = 65, .longest_count = 9});
    report_model m = report_model_of(r);
    check_method(&m, "Object#main", 0, 40, 10, 40, 40);
    check_method(&m, "Object#foo", 1, 25 + 5, 15 + 5, 5, 25);
    check_method(&m, "Object#bar", 1, 10, 10, 10, 10);
    check_arc(&m, "Object#main", "Object#foo", 1, 30, 20);
    CHECK_EQ(m.threads[0].gvl_ns[SIM_GVL_RUNNING], 40);
    CHECK_EQ(m.threads[0].calls, 2);
    CHECK_EQ(m.processes[0].gc_count, 0);
    CHECK_EQ(m.end_ns - m.begin_ns, 40);
    CHECK_EQ(m.longest[0].begin_ns, 25);
    CHECK_EQ(m.longest_count, 4);
    uint64_t inside = 0;
    for (size_t i = 0; i < s.events.count; i += ev_slots(s.events.items[i]))
        inside += ev_ticks_of(s.events.items[i]) >= 25 && ev_ticks_of(s.events.items[i]) < 65;
    CHECK_EQ(m.event_count, inside);
    CHECK(inside > 0);
    report_delete(r);
    r = report_of(&s, &(report_desc){.from_ns = 110});
    m = report_model_of(r);
    CHECK_EQ(m.processes[0].gc_count, 1);
    CHECK_EQ(m.processes[0].gc_total_ns, 10);
    CHECK_EQ(m.longest_count, 0);
    report_delete(r);
    vec_free(&s.events);
}

static void made_string(made *s, uint32_t number, const char *text) { made_define(s, 1, EV_DEFINE_STRING, number, text, strlen(text)); }

/* checkout [10, 50) within all [5, …; checkout [60, 90) of another thread, begun before the one that ends first; two marks. */
static made with_own(void)
{
    made s = {0};
    made_process(&s, 1, 0, 1, "ruby a");
    made_thread(&s, 2, "other");
    made_string(&s, 1, "checkout");
    made_string(&s, 2, "all");
    made_string(&s, 3, "cleared");
    made_switch(&s, 1, 1, 1);
    made_event(&s, EV_SPAN_BEGIN, 5, 2, 100);
    made_event(&s, EV_SPAN_BEGIN, 10, 1, 101);
    made_event(&s, EV_MARK, 20, 3, 0);
    made_event(&s, EV_SPAN_END, 50, 1, 101);
    made_event(&s, EV_SPAN_END, 55, 1, 999); /* of which nobody knows */
    made_switch(&s, 60, 2, 2);
    made_event(&s, EV_SPAN_BEGIN, 60, 1, 102);
    made_event(&s, EV_MARK, 70, 3, 0);
    made_event(&s, EV_SPAN_END, 90, 1, 102);
    made_call(&s, 100, 1, 1);
    return s;
}

static const own_name *own_of(const report_model *m, const char *text, bool is_mark)
{
    for (size_t i = 0; i < m->own_count; i++)
        if (strcmp(m->own[i].text, text) == 0 && m->own[i].is_mark == is_mark)
            return &m->own[i];
    return NULL;
}

TEST(the_programs_own_spans_and_marks_add_up_by_name)
{
    made s = with_own();
    report *r = report_of(&s, &(report_desc){0});
    report_model m = report_model_of(r);
    CHECK_EQ(m.own_count, 3);
    const own_name *checkout = own_of(&m, "checkout", false), *all = own_of(&m, "all", false);
    CHECK(checkout->count == 2 && checkout->total_ns == 70 && checkout->min_ns == 30 && checkout->max_ns == 40 && !checkout->some_open);
    CHECK(all->count == 1 && all->total_ns == 95 && all->some_open); /* to the last event */
    CHECK_EQ(own_of(&m, "cleared", true)->count, 2);
    report_delete(r);
    r = report_of(&s, &(report_desc){.from_ns = 30, .to_ns = 70});
    m = report_model_of(r);
    checkout = own_of(&m, "checkout", false);
    CHECK(checkout->count == 1 && checkout->part_count == 2 && checkout->total_ns == 30); /* [30, 50) and [60, 70) */
    CHECK_EQ(own_of(&m, "all", false)->total_ns, 40);
    CHECK(!own_of(&m, "cleared", true));
    report_delete(r);
    r = report_of(&s, &(report_desc){.thread = "other"});
    m = report_model_of(r);
    CHECK(!own_of(&m, "all", false) && own_of(&m, "checkout", false)->total_ns == 30 && own_of(&m, "cleared", true)->count == 1);
    report_delete(r);
    vec_free(&s.events);
}

TEST(the_method_filter_chooses_what_is_shown_and_changes_no_figure)
{
    made s = small();
    report *r = report_of(&s, &(report_desc){.method = "/#(foo|nothing)$/", .longest_count = 9});
    report_model m = report_model_of(r);
    report_order methods, arcs;
    CHECK(report_order_methods(&m, REPORT_BY_SELF, &methods));
    CHECK(report_order_arcs(&m, &arcs));
    CHECK_EQ(methods.count, 1);
    CHECK_EQ(m.methods[methods.items[0]].self_ns, 30);
    CHECK_EQ(arcs.count, 2); /* main to foo, foo to bar */
    CHECK_EQ(m.longest_count, 2);
    CHECK_EQ(m.threads[0].calls, 4);
    vec_free(&methods);
    vec_free(&arcs);
    report_delete(r);
    vec_free(&s.events);
    char error[256];
    CHECK_EQ(report_new(&r, &(report_desc){.method = "/(/"}, error, sizeof error), -EINVAL);
    CHECK(strstr(error, "--method /(/: no regular expression: "));
}

TEST(a_process_filter_leaves_the_others_out)
{
    made s = small();
    report *r = report_of(&s, &(report_desc){.pid = 100});
    CHECK_EQ(report_model_of(r).method_count, 3);
    report_delete(r);
    r = report_of(&s, &(report_desc){.pid = 101});
    CHECK_EQ(report_model_of(r).method_count, 0);
    CHECK_EQ(report_model_of(r).process_count, 0);
    CHECK_EQ(report_model_of(r).thread_count, 0);
    report_delete(r);
    vec_free(&s.events);
}

/* ---- any stream -------------------------------------------------------------------------------------------------- */

/* Calls nest, time goes on, every call returns, or is cut. */
static made random_stream(uint64_t *state, size_t event_count)
{
    enum { FIBERS = 5, METHODS = 6 };
    made s = {0};
    uint32_t depths[FIBERS] = {0}, fiber = 0;
    uint64_t now = 100;
    for (uint32_t i = 1; i <= METHODS; i++) {
        char name[32];
        snprintf(name, sizeof name, "Object#m%u", i);
        made_method(&s, i, name);
    }
    made_switch(&s, now, 1, 1);
    while (s.events.count < event_count) {
        now += test_random_below(state, 30);
        uint32_t *depth = &depths[fiber];
        uint64_t what = test_random_below(state, 100);
        if (what < 5) {
            fiber = (uint32_t)test_random_below(state, FIBERS);
            made_switch(&s, now, fiber / 2 + 1, fiber + 1);
        } else if (what < 8 && *depth > 0) {
            *depth = (uint32_t)test_random_below(state, *depth);
            made_cut(&s, now, *depth + 1);
        } else if (*depth > 0 && (what < 54 || *depth > 40)) {
            made_return(&s, now, (*depth)--);
        } else {
            made_call(&s, now, ++*depth, 1 + (uint32_t)test_random_below(state, METHODS));
        }
    }
    return s;
}

typedef struct slow {
    uint64_t busy_ns, calls, total_ns[8], arc_total_ns[8][8]; /* arc: caller or 0 */
} slow;

static int slow_closed(void *context, walk_fiber *f, const walk_frame *frame, uint64_t end_ns, sim_closed how)
{
    slow *s = context;
    uint64_t ns = end_ns - frame->begin_ns;
    uint32_t caller = f->frames.count ? f->frames.items[f->frames.count - 1].method : 0;
    bool is_outermost = true, is_outermost_arc = true;
    for (size_t i = 0; i < f->frames.count; i++) { /* as anyone would look: through the whole stack */
        bool is_same = f->frames.items[i].method == frame->method;
        is_outermost &= !is_same;
        is_outermost_arc &= !is_same || (i ? f->frames.items[i - 1].method : 0) != caller;
    }
    s->busy_ns += f->frames.count == 0 ? ns : 0;
    s->total_ns[frame->method] += is_outermost ? ns : 0;
    s->arc_total_ns[caller][frame->method] += is_outermost_arc ? ns : 0;
    s->calls++;
    (void)how;
    return 0;
}

TEST(sums_agree_with_a_slow_look_through_every_stack)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < 300; i++, seed++) {
        uint64_t state = seed * 77 + 1;
        made s = random_stream(&state, 20 + test_random_below(&state, 3000));
        report *r = report_of(&s, &(report_desc){0});
        report_model m = report_model_of(r);
        slow want = {0};
        catalog *c;
        walk *w;
        CHECK_EQ(catalog_new(&c), 0);
        CHECK_EQ(walk_new(&w, c, &(walk_listener){.closed = slow_closed, .context = &want}), 0);
        walk_stream_open(w, catalog_process_add(c, 1, 0));
        CHECK_EQ(walk_run(w, 0, s.events.items, s.events.count), 0);
        CHECK_EQ(walk_stream_close(w, 0, SIM_CLOSED_END), 0);
        uint64_t self_ns = 0, calls = 0, arc_self_ns = 0, arc_calls = 0, thread_calls = 0;
        for (size_t k = 0; k < m.method_count; k++) {
            self_ns += m.methods[k].self_ns;
            calls += m.methods[k].calls;
            uint32_t number = m.methods[k].is->line / 10;
            if (m.methods[k].total_ns != want.total_ns[number])
                TEST_FAILED("seed %" PRIu64 ": method %u: total %" PRIu64 ", wanted %" PRIu64, seed, number, m.methods[k].total_ns, want.total_ns[number]);
        }
        for (size_t k = 0; k < m.arc_count; k++) {
            arc_self_ns += m.arcs[k].self_ns;
            arc_calls += m.arcs[k].calls;
            uint32_t caller = m.arcs[k].caller == REPORT_NONE ? 0 : m.methods[m.arcs[k].caller].is->line / 10;
            uint64_t total_ns = want.arc_total_ns[caller][m.methods[m.arcs[k].callee].is->line / 10];
            if (m.arcs[k].total_ns != total_ns)
                TEST_FAILED("seed %" PRIu64 ": arc %zu: total %" PRIu64 ", wanted %" PRIu64, seed, k, m.arcs[k].total_ns, total_ns);
        }
        for (size_t k = 0; k < m.thread_count; k++)
            thread_calls += m.threads[k].calls;
        CHECK_EQ(self_ns, want.busy_ns);
        CHECK_EQ(arc_self_ns, want.busy_ns);
        CHECK_EQ(calls, want.calls);
        CHECK_EQ(arc_calls, want.calls);
        CHECK_EQ(thread_calls, want.calls);
        report_delete(r);
        walk_delete(w);
        catalog_delete(c);
        vec_free(&s.events);
    }
}

/* Windows that lie side by side: every figure that is a sum must be the sum of theirs. */
TEST(windows_side_by_side_add_up_to_the_whole)
{
    uint64_t seed = test_seed(5000);
    for (int i = 0; i < 100; i++, seed++) {
        uint64_t state = seed * 77 + 1;
        made s = random_stream(&state, 20 + test_random_below(&state, 1000));
        report *whole = report_of(&s, &(report_desc){0});
        report_model m = report_model_of(whole);
        uint64_t split = m.begin_ns + test_random_below(&state, m.end_ns - m.begin_ns + 1);
        report *parts[2] = {report_of(&s, &(report_desc){.to_ns = split}), report_of(&s, &(report_desc){.from_ns = split})};
        report_model a = report_model_of(parts[0]), b = report_model_of(parts[1]);
        for (size_t k = 0; k < m.method_count; k++) {
            CHECK_EQ(a.methods[k].self_ns + b.methods[k].self_ns, m.methods[k].self_ns);
            CHECK_EQ(a.methods[k].total_ns + b.methods[k].total_ns, m.methods[k].total_ns);
            CHECK_EQ(a.methods[k].calls + b.methods[k].calls, m.methods[k].calls);
        }
        CHECK_EQ(a.event_count + b.event_count, m.event_count);
        for (size_t k = 0; k < m.arc_count; k++)
            CHECK_EQ(a.arcs[k].total_ns + b.arcs[k].total_ns, m.arcs[k].total_ns);
        for (size_t k = 0; k < m.thread_count; k++)
            CHECK_EQ(a.threads[k].gvl_ns[0] + b.threads[k].gvl_ns[0], m.threads[k].gvl_ns[0]);
        report_delete(whole);
        report_delete(parts[0]);
        report_delete(parts[1]);
        vec_free(&s.events);
    }
}

TEST(the_longest_calls_are_the_first_of_all_calls_by_length)
{
    uint64_t seed = test_seed(9000);
    for (int i = 0; i < 50; i++, seed++) {
        uint64_t state = seed * 77 + 1;
        made s = random_stream(&state, 500);
        report *some = report_of(&s, &(report_desc){.longest_count = 1 + (size_t)i}), *all = report_of(&s, &(report_desc){.longest_count = 100000});
        report_model a = report_model_of(some), b = report_model_of(all);
        CHECK_EQ(a.longest_count, 1 + i);
        for (size_t k = 0; k < a.longest_count; k++)
            if (a.longest[k].duration_ns != b.longest[k].duration_ns || a.longest[k].begin_ns != b.longest[k].begin_ns)
                TEST_FAILED("seed %" PRIu64 ": call %zu", seed, k);
        for (size_t k = 1; k < b.longest_count; k++)
            CHECK(b.longest[k].duration_ns <= b.longest[k - 1].duration_ns);
        report_delete(some);
        report_delete(all);
        vec_free(&s.events);
    }
}

TEST(a_failed_allocation_is_an_error_and_loses_no_memory)
{
    uint64_t state = 3;
    made s = random_stream(&state, 400);
    int failed = 0, done = 0;
    for (unsigned every = 1; every < 400; every++) {
        char error[256];
        report *r;
        mem_fail_every(every);
        int result = report_new(&r, &(report_desc){.thread = "1", .longest_count = 5}, error, sizeof error);
        if (result == 0) {
            result = report_stream_open(r, 1) == REPORT_NONE ? -ENOMEM : 0;
            if (result == 0)
                result = report_run(r, 0, s.events.items, s.events.count);
            if (result == 0)
                result = report_stream_close(r, 0, true);
            if (result == 0)
                result = report_finish(r);
            report_model m = report_model_of(r);
            pen p;
            if (result == 0 && (result = pen_init(&p, -1)) == 0) {
                result = report_write_text(&m, &(report_layout){.width = 80}, &p);
                if (result == 0)
                    result = report_write_json(&m, &(report_layout){0}, &p);
                if (result == 0)
                    result = report_write_csv(&m, &(report_layout){.tables = REPORT_ARCS}, &p);
                result = result ? result : p.error;
                pen_free(&p);
            }
            report_delete(r);
        }
        mem_fail_every(0);
        CHECK(result == 0 || result == -ENOMEM);
        failed += result != 0;
        done += result == 0;
    }
    CHECK(failed > 20 && done > 20);
    vec_free(&s.events);
}
