/* The catalog: names as they were defined, nonsense refused. The timebase: time never jumps and finds the true rate. */
#include "base/mem.h"
#include "sim/catalog.h"
#include "sim/timebase.h"

#include "test.h"

#include <errno.h>

static char payload[EV_DEFINE_BYTES_MAX];

static bool define_method(catalog *c, uint32_t process, uint32_t number, const char *name, size_t name_bytes, const char *path, uint32_t line)
{
    ev_method_def def = {.kind = EV_METHOD_RUBY, .line = line, .name_bytes = (uint32_t)name_bytes, .path_bytes = (uint32_t)strlen(path)};
    memcpy(payload, &def, sizeof def);
    memcpy(payload + sizeof def, name, name_bytes);
    memcpy(payload + sizeof def + name_bytes, path, def.path_bytes);
    uint32_t bytes = (uint32_t)sizeof def + def.name_bytes + def.path_bytes;
    return catalog_define(c, process, ev_make(EV_DEFINE, 1, ev_define_number(EV_DEFINE_METHOD, number), bytes), payload, 1);
}

TEST(a_method_keeps_its_name_byte_by_byte_its_path_and_its_line)
{
    catalog *c;
    CHECK_EQ(catalog_new(&c), 0);
    uint32_t p = catalog_process_add(c, 42, 7);
    static const char odd[] = "W\xC3\xB6rter#nul\0inside \xFF";
    CHECK(define_method(c, p, 1, odd, sizeof odd - 1, "/app/a.rb", 12));
    const catalog_method *m = catalog_method_of(c, p, 1);
    CHECK_EQ(m->name_bytes, sizeof odd - 1);
    CHECK(memcmp(m->name, odd, sizeof odd) == 0); /* with the NUL behind */
    CHECK_STR(m->path, "/app/a.rb");
    CHECK_EQ(m->line, 12);
    CHECK(define_method(c, p, 2, "A#b", 3, "", 0));
    CHECK_STR(catalog_method_of(c, p, 2)->path, "");
    CHECK_EQ(catalog_method_limit(c, p), 3);
    catalog_delete(c);
}

TEST(an_undefined_method_still_has_a_name_of_its_own)
{
    catalog *c;
    CHECK_EQ(catalog_new(&c), 0);
    uint32_t p = catalog_process_add(c, 42, 7);
    CHECK_STR(catalog_method_of(c, p, 77)->name, "(unknown method 77)");
    CHECK_STR(catalog_method_of(c, p, 78)->name, "(unknown method 78)");
    CHECK_STR(catalog_method_of(c, p, EV_NUMBER_MAX)->name, "(unknown method)"); /* too far off to keep a place for */
    catalog_delete(c);
}

TEST(names_that_differ_in_digits_alone_have_the_same_hash)
{
    catalog *c;
    CHECK_EQ(catalog_new(&c), 0);
    uint32_t p = catalog_process_add(c, 42, 7);
    define_method(c, p, 1, "V#_app_12_34", 12, "", 0);
    define_method(c, p, 2, "V#_app_987_6", 12, "", 0);
    define_method(c, p, 3, "V#_apq_12_34", 12, "", 0);
    CHECK_EQ(catalog_method_of(c, p, 1)->hash, catalog_method_of(c, p, 2)->hash);
    CHECK(catalog_method_of(c, p, 1)->hash != catalog_method_of(c, p, 3)->hash);
    catalog_delete(c);
}

TEST(a_thread_is_named_again_when_its_name_changes)
{
    catalog *c;
    CHECK_EQ(catalog_new(&c), 0);
    uint32_t p = catalog_process_add(c, 42, 7);
    for (int i = 0; i < 2; i++) {
        ev_thread_def def = {.ractor = 1, .flags = EV_THREAD_MAIN, .name_bytes = i ? 6 : 0};
        memcpy(payload, &def, sizeof def);
        memcpy(payload + sizeof def, "worker", 6);
        CHECK(catalog_define(c, p, ev_make(EV_DEFINE, 1, ev_define_number(EV_DEFINE_THREAD, 5), 16 + def.name_bytes), payload, 9));
        const catalog_thread *t = catalog_thread_at(c, catalog_process_at(c, p)->first_thread);
        CHECK_STR(t->name, i ? "worker" : "");
        CHECK_EQ(t->number, 5);
        CHECK(t->is_main);
        CHECK_EQ(t->begin_ns, 9);
    }
    CHECK_EQ(catalog_thread_count(c), 1);
    catalog_delete(c);
}

TEST(threads_and_fibers_are_listed_in_order_of_appearance_with_tracks_of_their_own)
{
    catalog *c;
    CHECK_EQ(catalog_new(&c), 0);
    uint32_t a = catalog_process_add(c, 1, 0), b = catalog_process_add(c, 2, 0);
    uint32_t t1 = catalog_thread_of(c, a, 9, 5), t2 = catalog_thread_of(c, a, 3, 6), other = catalog_thread_of(c, b, 9, 7);
    CHECK(t1 != t2 && t2 != other);
    CHECK_EQ(catalog_thread_of(c, a, 9, 100), t1);
    CHECK_EQ(catalog_process_at(c, a)->first_thread, t1);
    CHECK_EQ(catalog_thread_at(c, t1)->next, t2);
    CHECK_EQ(catalog_thread_at(c, t2)->next, CATALOG_NONE);
    uint32_t f1 = catalog_fiber_of(c, a, 1, t1, 5), f2 = catalog_fiber_of(c, a, 2, t1, 5), f3 = catalog_fiber_of(c, a, 3, t2, 5);
    CHECK_EQ(catalog_thread_at(c, t1)->first_fiber, f1);
    CHECK_EQ(catalog_fiber_at(c, f1)->next, f2);
    CHECK_EQ(catalog_thread_at(c, t2)->first_fiber, f3);
    CHECK_EQ(catalog_track_count(c), 2 + 3 + 3); /* GC, GVL, fibers */
    catalog_delete(c);
}

TEST(a_process_has_its_command_on_one_line)
{
    catalog *c;
    CHECK_EQ(catalog_new(&c), 0);
    uint32_t p = catalog_process_add(c, 42, 7);
    static const char argv[] = "ruby\0-e\0puts 1";
    ev_process_def def = {.pid = 4, .ppid = 3, .ractor = 1, .argv_bytes = sizeof argv, .ruby_bytes = 5, .realtime_ns = 1000};
    memcpy(payload, &def, sizeof def);
    memcpy(payload + sizeof def, argv, sizeof argv);
    memcpy(payload + sizeof def + sizeof argv, "ruby9", 5);
    CHECK(catalog_define(c, p, ev_make(EV_DEFINE, 1, ev_define_number(EV_DEFINE_PROCESS, 1), sizeof def + sizeof argv + 5), payload, 400));
    CHECK_STR(catalog_process_at(c, p)->command, "ruby -e puts 1");
    CHECK_STR(catalog_process_at(c, p)->ruby, "ruby9");
    CHECK_EQ(catalog_process_at(c, p)->pid, 4);
    CHECK_EQ(catalog_process_at(c, p)->realtime_offset_ns, 600);
    catalog_delete(c);
}

TEST(definitions_that_lie_are_refused_and_harm_nothing)
{
    catalog *c;
    CHECK_EQ(catalog_new(&c), 0);
    uint32_t p = catalog_process_add(c, 42, 7);
    uint64_t state = test_seed(11);
    for (int i = 0; i < 200000; i++) {
        uint32_t bytes = (uint32_t)test_random_below(&state, 80);
        char *exact = malloc(bytes + 1); /* asan sees a read beyond it */
        for (uint32_t k = 0; k < bytes; k++)
            exact[k] = (char)(test_random_below(&state, 3) ? test_random_below(&state, 60) : test_random(&state));
        uint32_t what = (uint32_t)test_random_below(&state, 16), number = (uint32_t)test_random_below(&state, 40);
        catalog_define(c, p, ev_make(EV_DEFINE, 1, what << 28 | number, bytes), exact, 1);
        free(exact);
    }
    CHECK(!define_method(c, p, EV_NUMBER_MAX, "A#b", 3, "", 0)); /* would take gigabytes of places */
    ev_method_def liar = {.kind = EV_METHOD_RUBY, .name_bytes = UINT32_MAX, .path_bytes = 2};
    CHECK(!catalog_define(c, p, ev_make(EV_DEFINE, 1, ev_define_number(EV_DEFINE_METHOD, 1), sizeof liar), &liar, 1));
    CHECK(!catalog_define(c, p, ev_make(EV_DEFINE, 1, ev_define_number(EV_DEFINE_METHOD, 1), 3), &liar, 1));
    catalog_delete(c);
}

TEST(a_lack_of_memory_leaves_the_catalog_sound)
{
    for (unsigned every = 1; every < 12; every++) {
        catalog *c;
        CHECK_EQ(catalog_new(&c), 0);
        mem_fail_every(every);
        uint32_t p = catalog_process_add(c, 1, 0);
        for (uint32_t i = 1; p != CATALOG_NONE && i < 50; i++) {
            uint32_t t = catalog_thread_of(c, p, i, 0);
            if (t != CATALOG_NONE)
                catalog_fiber_of(c, p, i, t, 0);
            define_method(c, p, i, "A#b", 3, "p", 1);
            CHECK(catalog_method_of(c, p, i)->name[0] != '\0');
        }
        mem_fail_every(0);
        catalog_delete(c);
    }
}

TEST(time_follows_the_pairs_and_never_jumps)
{
    uint64_t state = test_seed(21);
    for (int round = 0; round < 300; round++) {
        timebase t;
        timebase_init(&t);
        double rate = 0.2 + (double)test_random_below(&state, 1000) / 300.0; /* true ns per tick */
        uint64_t ticks0 = test_random_below(&state, UINT64_C(1) << 50), ns0 = test_random_below(&state, UINT64_C(1) << 50);
        timebase_calibrate(&t, &(ev_clock_def){.ticks = ticks0, .monotonic_ns = ns0}, 0);
        /* The second pair comes 5 ms later, and each pair is some 50 ns off. */
        uint64_t ticks = ticks0 + (uint64_t)(5e6 / rate), last_ticks = ticks, last_ns = 0;
        timebase_calibrate(&t, &(ev_clock_def){.ticks = ticks, .monotonic_ns = ns0 + 5000000 + test_random_below(&state, 50)}, 0);
        for (int second = 1; second < 12; second++) {
            for (int i = 0; i < 20; i++) {
                last_ticks = ticks + (uint64_t)(5e7 / rate) * (uint64_t)i;
                uint64_t ns = timebase_ns(&t.line, last_ticks);
                CHECK(ns >= last_ns);
                last_ns = ns;
                double truth = (double)(last_ticks - ticks0) * rate, error = (double)(ns - ns0) - truth;
                /* The first second rests on 5 ms of calibration; later ones on all that was seen. */
                if (error > (second == 1 ? 20000.0 : 12000.0) || error < (second == 1 ? -20000.0 : -12000.0))
                    TEST_FAILED("round %d, second %d: %.0f ns off", round, second, error);
            }
            ticks += (uint64_t)(1e9 / rate);
            uint64_t ns = ns0 + (uint64_t)((double)(ticks - ticks0) * rate) + test_random_below(&state, 50);
            uint64_t before = timebase_ns(&t.line, last_ticks);
            timebase_calibrate(&t, &(ev_clock_def){.ticks = ticks, .monotonic_ns = ns}, last_ticks);
            uint64_t after = timebase_ns(&t.line, last_ticks);
            CHECK(before == after);
        }
    }
}

TEST(clocks_that_lie_change_nothing_or_little_and_never_turn_time_back)
{
    uint64_t state = test_seed(31);
    timebase t;
    timebase_init(&t);
    uint64_t last = 0;
    for (uint64_t i = 1; i < 20000; i++) {
        ev_clock_def def = {.ticks = test_random_below(&state, 2) ? i * 1000 : test_random(&state),
                            .monotonic_ns = test_random_below(&state, 2) ? i * 900 : test_random(&state)};
        if (i > 2)
            timebase_calibrate(&t, &def, i * 1000);
        else
            timebase_calibrate(&t, &(ev_clock_def){.ticks = i * 1000, .monotonic_ns = i * 900}, 0);
        uint64_t now = timebase_ns(&t.line, i * 1000);
        CHECK(now >= last);
        last = now;
    }
}
