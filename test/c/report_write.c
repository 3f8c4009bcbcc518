/* A small report, written in every form. */
#include "base/length.h"
#include "report/cells.h"
#include "report/write.h"

#include "report_stream.h"

/* main (open at the start) calls foo; a C method with a name that is no UTF-8; a second process; GC. */
static report *small(report_desc *desc)
{
    made a = {0}, b = {0};
    made_process(&a, 41, 1, 1, "ruby \"a\" b");
    made_method(&a, 1, "Object#main");
    made_method(&a, 2, "Shop::Kitchen#größe");
    made_method_bytes(&a, 3, "Shop#,\xff", 7, EV_METHOD_C, "", 0);
    made_thread(&a, 1, "");
    made_thread(&a, 2, "cook\t1");
    made_switch(&a, 1000, 1, 1);
    made_frame(&a, 1000, 1, 1);
    made_call(&a, 1010, 2, 2);
    made_event(&a, EV_GC_ENTER, 1020, 0, 0);
    made_event(&a, EV_GC_EXIT, 1025, 0, 0);
    made_call(&a, 1030, 3, 3);
    made_return(&a, 1040, 3);
    made_return(&a, 1060, 2);
    made_event(&a, EV_THREAD_READY, 1061, 2, 0);
    made_event(&a, EV_THREAD_SUSPENDED, 1065, 1, 0);
    made_switch(&a, 1070, 2, 2);
    made_call(&a, 1080, 1, 3);
    made_event(&a, EV_MARK, 1100, 0, 0);
    made_process(&b, 42, 41, 1, "ruby c");
    made_switch(&b, 1050, 1, 1);
    made_call(&b, 1050, 1, 9);
    made_cut(&b, 1090, 1);
    char error[256];
    report *r;
    CHECK_EQ(report_new(&r, desc, error, sizeof error), 0);
    made *streams[] = {&a, &b};
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(report_stream_open(r, 41 + i), i);
        CHECK_EQ(report_run(r, i, streams[i]->events.items, streams[i]->events.count), 0);
        CHECK_EQ(report_stream_close(r, i, i == 0), 0);
        vec_free(&streams[i]->events);
    }
    CHECK_EQ(report_finish(r), 0);
    return r;
}

typedef int writer(const report_model *m, const report_layout *how, pen *o);

static void check_written(writer *write, const report_layout *how, const char *want)
{
    report *r = small(&(report_desc){.longest_count = 3});
    report_model m = report_model_of(r);
    pen p;
    CHECK_EQ(pen_init(&p, -1), 0);
    CHECK_EQ(write(&m, how, &p), 0);
    pen_bytes(&p, "", 1);
    if (strcmp(p.bytes, want) != 0)
        TEST_FAILED("got\n%s\nwanted\n%s", p.bytes, want);
    pen_free(&p);
    report_delete(r);
}

TEST(the_json_is_as_it_is_documented)
{
    check_written(report_write_json, &(report_layout){0},
        "{\"format\":1,\"duration_ns\":100,\"events\":23,\"dropped\":0,\"waited\":0,\n"
        "\"processes\":[\n"
        " {\"pid\":41,\"ppid\":1,\"command\":\"ruby \\\"a\\\" b\",\"threads\":[\n"
        "  {\"number\":1,\"name\":\"\",\"ractor\":1,\"running_ns\":65,\"waiting_gvl_ns\":0,\"blocked_ns\":35,\"calls\":2,\"max_depth\":3},\n"
        "  {\"number\":2,\"name\":\"cook\\t1\",\"ractor\":1,\"running_ns\":30,\"waiting_gvl_ns\":9,\"blocked_ns\":0,\"calls\":1,\"max_depth\":1}],"
        "\"gc\":{\"count\":1,\"total_ns\":5}},\n"
        " {\"pid\":42,\"ppid\":41,\"command\":\"ruby c\",\"threads\":[\n"
        "  {\"number\":1,\"name\":\"\",\"ractor\":1,\"running_ns\":40,\"waiting_gvl_ns\":0,\"blocked_ns\":0,\"calls\":1,\"max_depth\":1}],"
        "\"gc\":{\"count\":0,\"total_ns\":0}}],\n"
        "\"methods\":[\n"
        " {\"name\":\"Object#main\",\"kind\":\"ruby\",\"path\":\"app.rb\",\"line\":10,\"calls\":0,\"total_ns\":100,\"self_ns\":50,\"min_ns\":100,\"max_ns\":100},\n"
        " {\"name\":\"(unknown method 9)\",\"kind\":\"ruby\",\"path\":\"\",\"line\":0,\"calls\":1,\"total_ns\":40,\"self_ns\":40,\"min_ns\":40,\"max_ns\":40},\n"
        " {\"name\":\"Shop::Kitchen#größe\",\"kind\":\"ruby\",\"path\":\"app.rb\",\"line\":20,\"calls\":1,\"total_ns\":50,\"self_ns\":40,\"min_ns\":50,\"max_ns\":50},\n"
        " {\"name\":\"Shop#,\\\\xFF\",\"kind\":\"c\",\"path\":\"\",\"line\":0,\"calls\":2,\"total_ns\":30,\"self_ns\":30,\"min_ns\":10,\"max_ns\":20}],\n"
        "\"arcs\":[\n"
        " {\"caller\":null,\"callee\":\"Object#main\",\"calls\":0,\"total_ns\":100,\"self_ns\":50},\n"
        " {\"caller\":\"Object#main\",\"callee\":\"Shop::Kitchen#größe\",\"calls\":1,\"total_ns\":50,\"self_ns\":40},\n"
        " {\"caller\":null,\"callee\":\"(unknown method 9)\",\"calls\":1,\"total_ns\":40,\"self_ns\":40},\n"
        " {\"caller\":null,\"callee\":\"Shop#,\\\\xFF\",\"calls\":1,\"total_ns\":20,\"self_ns\":20},\n"
        " {\"caller\":\"Shop::Kitchen#größe\",\"callee\":\"Shop#,\\\\xFF\",\"calls\":1,\"total_ns\":10,\"self_ns\":10}]}\n");
}

TEST(top_and_sort_hold_for_json_too)
{
    report *r = small(&(report_desc){0});
    report_model m = report_model_of(r);
    pen p;
    CHECK_EQ(pen_init(&p, -1), 0);
    CHECK_EQ(report_write_json(&m, &(report_layout){.top = 1, .sort = REPORT_BY_CALLS}, &p), 0);
    pen_bytes(&p, "", 1);
    CHECK(strstr(p.bytes, "\"methods\":[\n {\"name\":\"Shop#,\\\\xFF\""));
    CHECK(!strstr(p.bytes, "Shop::Kitchen#größe"));
    pen_free(&p);
    report_delete(r);
}

TEST(csv_has_each_table_on_its_own)
{
    check_written(report_write_csv, &(report_layout){.sort = REPORT_BY_TOTAL},
        "name,kind,path,line,calls,total_ns,self_ns,min_ns,max_ns\r\n"
        "Object#main,ruby,app.rb,10,0,100,50,100,100\r\n"
        "Shop::Kitchen#größe,ruby,app.rb,20,1,50,40,50,50\r\n"
        "(unknown method 9),ruby,,0,1,40,40,40,40\r\n"
        "\"Shop#,\\xFF\",c,,0,2,30,30,10,20\r\n");
    check_written(report_write_csv, &(report_layout){.tables = REPORT_ARCS, .top = 2},
        "caller,caller_path,caller_line,callee,callee_path,callee_line,calls,total_ns,self_ns\r\n"
        ",,,Object#main,app.rb,10,0,100,50\r\n"
        "Object#main,app.rb,10,Shop::Kitchen#größe,app.rb,20,1,50,40\r\n");
    check_written(report_write_csv, &(report_layout){.tables = REPORT_THREADS},
        "pid,thread,name,ractor,running_ns,waiting_gvl_ns,blocked_ns,calls,max_depth\r\n"
        "41,1,,1,65,0,35,2,3\r\n"
        "41,2,cook\t1,1,30,9,0,1,1\r\n"
        "42,1,,1,40,0,0,1,1\r\n");
    check_written(report_write_csv, &(report_layout){.tables = REPORT_GC},
        "pid,ppid,command,count,total_ns,longest_ns\r\n"
        "41,1,\"ruby \"\"a\"\" b\",1,5,5\r\n"
        "42,41,ruby c,0,0,0\r\n");
    check_written(report_write_csv, &(report_layout){.tables = REPORT_SPANS, .top = 2},
        "pid,thread,depth,name,path,line,start_ns,duration_ns\r\n"
        "41,1,0,Object#main,app.rb,10,0,100\r\n"
        "41,1,1,Shop::Kitchen#größe,app.rb,20,10,50\r\n");
    check_written(report_write_csv, &(report_layout){.tables = REPORT_MARKS}, "kind,name,count,total_ns,min_ns,max_ns\r\nmark,,1,0,0,0\r\n");
}

TEST(text_shows_all_tables_in_the_width_that_there_is)
{
    report *r = small(&(report_desc){.longest_count = 20});
    report_model m = report_model_of(r);
    static const char *const words[] = {"Methods by self time", "Methods by total time", "Callers and callees", "Threads",
                                        "Garbage collection", "Longest calls", "from Object#main", "to Shop#,\\xFF",
                                        "cook\\x091", "process 42 of 41: ruby c", "* had not ended", "The program's own spans and marks"};
    for (unsigned width = 80; width <= 200; width += 20) {
        pen p;
        CHECK_EQ(pen_init(&p, -1), 0);
        CHECK_EQ(report_write_text(&m, &(report_layout){.title = "app.rrt", .width = width}, &p), 0);
        pen_bytes(&p, "", 1);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (!strstr(p.bytes, words[i]))
                TEST_FAILED("no %s in\n%s", words[i], p.bytes);
        CHECK(!strchr(p.bytes, '\033'));
        for (char *line = p.bytes, *end; (end = strchr(line, '\n')); line = end + 1)
            if (cells_width(line, (size_t)(end - line)) > width)
                TEST_FAILED("wider than %u: %.*s", width, (int)(end - line), line);
        pen_free(&p);
    }
    report_delete(r);
}

static const char *shown(unsigned width, const char *name, unsigned (*put)(pen *, const char *, size_t, unsigned))
{
    static char text[256];
    pen p;
    CHECK_EQ(pen_init(&p, -1), 0);
    unsigned used = put(&p, name, strlen(name), width);
    memcpy(text, p.bytes, p.used);
    text[p.used] = '\0';
    pen_free(&p);
    CHECK(used <= width);
    return text;
}

TEST(names_lose_their_outer_modules_first)
{
    CHECK_STR(shown(30, "ActiveRecord::Base.find", cells_name), "ActiveRecord::Base.find");
    CHECK_STR(shown(22, "ActiveRecord::Base.find", cells_name), "…Base.find");
    CHECK_STR(shown(9, "ActiveRecord::Base.find", cells_name), "find");
    CHECK_STR(shown(3, "ActiveRecord::Base.find", cells_name), "fi…");
    CHECK_STR(shown(4, "計算計算", cells_name), "計…");
    CHECK_STR(shown(9, "a\033[1mb", cells_name), "a\\x1B[1mb");
    CHECK_STR(shown(9, "a\xe2\x80\xae""b", cells_name), "a…"); /* right-to-left override: twelve columns, shown as bytes */
    CHECK_STR(shown(12, "/srv/app/models/user.rb", cells_tail), "…els/user.rb");
    CHECK_STR(shown(40, "/srv/app/models/user.rb", cells_tail), "/srv/app/models/user.rb");
}

TEST(a_name_of_64_kib_takes_no_time_to_shorten)
{
    static char name[21800 * 3 + sizeof "B#f"];
    for (size_t i = 0; i < 21800; i++)
        memcpy(name + i * 3, "A::", 3);
    memcpy(name + sizeof name - sizeof "B#f", "B#f", sizeof "B#f");
    for (int i = 0; i < 1000; i++) /* by trying every form: minutes */
        CHECK_STR(shown(6, name, cells_name), "…::B#f");
}

TEST(figures_have_three_digits_and_a_unit)
{
    static const struct { double ns; const char *text; } times[] = {
        {0, "0 ns"}, {999, "999 ns"}, {1000, "1.00 µs"}, {12345, "12.3 µs"}, {999499, "999 µs"}, {999999, "1.00 ms"},
        {1.5e9, "1.50 s"}, {3600e9, "3600 s"},
    };
    static const struct { uint64_t count; const char *text; } counts[] = {
        {0, "0"}, {999, "999"}, {1000, "1,000"}, {1234567, "1,234,567"}, {UINT64_MAX, "18,446,744,073,709,551,615"},
    };
    char text[CELLS_BYTES];
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        length_show(times[i].ns, text);
        CHECK_STR(text, times[i].text);
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        cells_count(counts[i].count, text);
        CHECK_STR(text, counts[i].text);
    }
}
