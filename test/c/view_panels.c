/* What lies over the picture, as it is read: lists, lines at the edges, axes. */
#include "view_session.h"
#include "view_text.h"

typedef struct desk { /* somebody at a window */
    session session;
    view *view;
    view_status status;
    gpu_frame frame;
    uint32_t width, height;
    double frame_s;
} desk;

static void desk_build(desk *d)
{
    view_model model = session_model(&d->session);
    for (int i = 0; i < 6; i++)
        view_build(d->view, &model, &d->status, d->width, d->height, d->frame_s, &d->frame);
}

/* After the session was made: a live one unless d->status says that it has ended. */
static void desk_open(desk *d, uint32_t width, uint32_t height, view_camera camera)
{
    d->width = width;
    d->height = height;
    d->frame_s = 0.5;
    d->status.memory_budget = (uint64_t)1 << 30;
    CHECK_EQ(view_new(&d->view, &(view_desc){.camera = camera}), 0);
    for (int i = 0; i < 6; i++)
        desk_build(d);
}

static void desk_close(desk *d)
{
    view_delete(d->view);
    session_delete(&d->session);
}

static void desk_key(desk *d, view_key key, uint32_t modifiers)
{
    view_input(d->view, &(view_input_event){.type = VIEW_INPUT_KEY, .key = key, .is_down = true, .modifiers = modifiers});
    view_input(d->view, &(view_input_event){.type = VIEW_INPUT_KEY, .key = key, .modifiers = modifiers});
    desk_build(d);
}

static void desk_type(desk *d, const char *text)
{
    for (; *text; text++)
        view_input(d->view, &(view_input_event){.type = VIEW_INPUT_TEXT, .text = {*text}});
    desk_build(d);
}

/* Threads, each in a call of a name of its own (Foo#in_t3) in Foo#run in a process; now is 2 s. */
static void make_threads(session *s, uint32_t pid, uint32_t count)
{
    char name[32];
    session_process(s, pid, "ruby threads.rb");
    uint32_t run = session_method(s, "Foo#run", EV_METHOD_RUBY);
    for (uint32_t t = 1; t <= count; t++) {
        snprintf(name, sizeof name, "Foo#in_t%u_of_%u", t, pid);
        uint32_t in = session_method(s, name, EV_METHOD_RUBY);
        snprintf(name, sizeof name, "worker %u", t);
        session_at(s, 10);
        session_thread(s, t, t == 1 ? "" : name, t == 1);
        session_switch(s, t, t);
        session_call(s, run);
        session_at(s, 1000);
        session_call(s, in);
    }
    session_at(s, 2000);
    session_switch(s, 1, 1);
}

static uint32_t count_said(const desk *d, uint32_t pid, uint32_t threads)
{
    char name[32];
    uint32_t count = 0;
    text_place list, hottest, at; /* names on boxes come before them */
    CHECK(text_find(&d->frame, "open now", &list) && text_find(&d->frame, "hottest in sight", &hottest));
    for (uint32_t t = 1; t <= threads; t++) {
        snprintf(name, sizeof name, "in_t%u_of_%u", t, pid);
        count += text_find_from(&d->frame, list.first, name, &at) && at.first < hottest.first;
    }
    return count;
}

TEST(of_eleven_threads_all_are_told_with_their_innermost_call)
{
    desk d = {0};
    session_new(&d.session);
    make_threads(&d.session, 7, 11);
    desk_open(&d, 1280, 720, VIEW_CAMERA_SCENE);
    desk_type(&d, "t");
    CHECK(count_said(&d, 7, 11) == 11);
    CHECK(!text_is_said(&d.frame, "more thread"));
    desk_close(&d);
}

TEST(of_more_threads_than_there_is_room_for_it_is_said_how_many_more)
{
    desk d = {0};
    session_new(&d.session);
    make_threads(&d.session, 7, 40);
    desk_open(&d, 1280, 480, VIEW_CAMERA_SCENE);
    desk_type(&d, "t");
    uint32_t count = count_said(&d, 7, 40);
    char more[32];
    snprintf(more, sizeof more, "and %u more threads", 40 - count);
    CHECK(count >= 4 && count < 40);
    CHECK(text_is_said(&d.frame, more));
    CHECK(text_is_said(&d.frame, "hottest in sight"));
    desk_close(&d);
}

TEST(threads_and_methods_of_one_name_in_two_processes_are_told_with_their_pid)
{
    desk d = {0};
    session_new(&d.session);
    make_threads(&d.session, 4711, 2);
    d.session.thread = 0;
    make_threads(&d.session, 4712, 2);
    desk_open(&d, 1280, 900, VIEW_CAMERA_SCENE);
    size_t before[2] = {text_count(&d.frame, "pid 4711"), text_count(&d.frame, "pid 4712")};
    desk_type(&d, "t");
    CHECK_EQ(text_count(&d.frame, "pid 4711"), before[0] + 3); /* two threads, and Foo#run among the hottest */
    CHECK_EQ(text_count(&d.frame, "pid 4712"), before[1] + 3);
    desk_close(&d);
}

TEST(of_a_time_in_the_past_the_calls_are_told_that_were_open_then)
{
    desk d = {.status.ended = true};
    session *s = &d.session;
    session_new(s);
    session_process(s, 7, "ruby past.rb");
    uint32_t run = session_method(s, "Foo#run", EV_METHOD_RUBY), early = session_method(s, "Foo#early", EV_METHOD_RUBY);
    uint32_t inner = session_method(s, "Foo#inner", EV_METHOD_RUBY), late = session_method(s, "Foo#late", EV_METHOD_RUBY);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_at(s, 10);
    session_call(s, run);
    session_at(s, 100);
    session_call(s, early);
    session_leaf(s, inner, 200, 800);
    session_at(s, 900);
    session_return(s);
    session_at(s, 1000);
    session_call(s, late);
    session_at(s, 5000);
    session_event(s, EV_CUT, 0, session_position(s, 60));
    view_desc past = {.camera = VIEW_CAMERA_FLAME, .begin_ns = SESSION_BEGIN_NS + 100000000, .end_ns = SESSION_BEGIN_NS + 500000000};
    desk_open(&d, 1280, 720, VIEW_CAMERA_FLAME);
    view_delete(d.view);
    CHECK_EQ(view_new(&d.view, &past), 0);
    desk_build(&d);
    desk_type(&d, "t");
    CHECK(text_is_said(&d.frame, "open at"));
    CHECK(!text_is_said(&d.frame, "open now"));
    text_place heading, hottest, at;
    CHECK(text_find(&d.frame, "open at", &heading) && text_find(&d.frame, "hottest in sight", &hottest));
    CHECK(text_find_from(&d.frame, heading.first, "Foo#early", &at) && at.first < hottest.first);
    CHECK(text_find_from(&d.frame, heading.first, "Foo#inner", &at) && at.first < hottest.first);
    CHECK(!text_is_said(&d.frame, "Foo#late"));
    desk_close(&d);
}

static bool overlap(text_place a, text_place b) { return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1; }

TEST(in_a_small_window_the_figures_at_the_right_give_way_to_the_title)
{
    for (uint32_t width = 320; width <= 1280; width += 80) {
        desk d = {.status = {.events_per_s = 2.09e6, .event_count = 163000000, .frames_per_s = 60, .memory_bytes = 500000000}};
        session_new(&d.session);
        make_threads(&d.session, 7, 11);
        desk_open(&d, width, 600, VIEW_CAMERA_FLAME);
        text_place title, right;
        CHECK(text_find(&d.frame, "ruby", &title));
        bool has_threads = text_find(&d.frame, "11 threads", &title), has_figures = text_find(&d.frame, "events/s", &right);
        if (text_find(&d.frame, "163 M events", &title))
            CHECK(!has_figures || !overlap(title, right));
        if (text_find(&d.frame, "2.09 M events/s", &right))
            CHECK(right.x0 > title.x1);
        CHECK(width < 800 || (has_threads && has_figures));
        desk_close(&d);
    }
}

TEST(a_panel_begins_below_the_lines_in_the_corner)
{
    desk d = {.status = {.evicted_count = 1000000, .span_count = 2000000, .writer_waits = 7}};
    session_new(&d.session);
    make_threads(&d.session, 7, 3);
    desk_open(&d, 1280, 720, VIEW_CAMERA_FLAME);
    desk_type(&d, "t");
    text_place waited, heading;
    CHECK(text_find(&d.frame, "in outline only", NULL) && text_find(&d.frame, "the program waited", &waited));
    CHECK(text_find(&d.frame, "open now", &heading));
    CHECK(heading.y0 > waited.y1);
    desk_close(&d);
}

TEST(the_search_line_and_what_is_said_hide_neither_paused_nor_the_axis)
{
    for (int kind = 0; kind < 3; kind++) {
        desk d = {0};
        text_place paused, line, said, at;
        session_new(&d.session);
        make_threads(&d.session, 7, 30);
        desk_open(&d, 1280, 500, (view_camera)kind);
        desk_key(&d, VIEW_KEY_SPACE, 0);
        desk_type(&d, "/");
        desk_type(&d, "in_t");
        CHECK(text_find(&d.frame, "PAUSED", &paused) && text_find(&d.frame, "Shift: back", &line));
        CHECK(paused.y0 > line.y1);
        desk_key(&d, VIEW_KEY_TAB, 0);
        CHECK(text_find(&d.frame, "PAUSED", &paused) && text_find(&d.frame, "30 methods", &line));
        CHECK(paused.y0 > line.y1);
        desk_key(&d, VIEW_KEY_ESC, 0);
        d.frame_s = 0.05;
        view_say(d.view, "something that is said, in a line that is as long as one may be that tells where a file is");
        desk_build(&d);
        CHECK(text_find(&d.frame, "something that is said", &said));
        said.x1 += 300;
        if (text_find(&d.frame, "more below", &at))
            CHECK(!overlap(at, said));
        static const char *const ticks[] = {"200 ms", "400 ms", "500 ms", "600 ms", "800 ms", "1 s", "1.2 s", "1.5 s"};
        for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
            for (size_t from = 0; text_find_from(&d.frame, from, ticks[i], &at); from = at.first + 1)
                CHECK(!overlap(at, said));
        desk_close(&d);
    }
}

/* Marks of one name, some of them at nearly the same time, in a thread whose own name is where they are, too. */
TEST(names_of_marks_and_spans_do_not_lie_over_each_other)
{
    for (int kind = 0; kind < 3; kind++) {
        desk d = {.status.ended = true};
        session *s = &d.session;
        session_new(s);
        session_process(s, 7, "ruby marks.rb");
        uint32_t run = session_method(s, "Foo#run", EV_METHOD_RUBY);
        session_string(s, 1, "flour is back");
        session_string(s, 2, "the dough rests");
        session_thread(s, 1, "", true);
        session_switch(s, 1, 1);
        session_call(s, run);
        for (int i = 0; i < 12; i++) {
            session_at(s, i < 6 ? 1 + 4 * i : 200 * i);
            session_event(s, EV_MARK, 1, 0);
        }
        session_at(s, 2500);
        session_return(s);
        desk_open(&d, 1280, 720, (view_camera)kind);
        text_place places[16], at;
        size_t count = 0;
        for (size_t from = 0; count < 16 && text_find_from(&d.frame, from, "flour is back", &at); from = at.first + 1)
            places[count++] = at;
        if (count < 4 || count >= 12)
            TEST_FAILED("camera %d: %zu of 12 marks have names", kind, count);
        for (size_t i = 0; i < count; i++)
            for (size_t k = i + 1; k < count; k++)
                CHECK(!overlap(places[i], places[k]));
        desk_close(&d);
    }
}

TEST(zoomed_in_far_from_the_begin_one_tick_tells_the_whole_time)
{
    desk d = {.status.ended = true};
    session *s = &d.session;
    session_new(s);
    session_process(s, 7, "ruby far.rb");
    uint32_t run = session_method(s, "Foo#run", EV_METHOD_RUBY);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_leaf(s, run, 1, 7000);
    desk_open(&d, 1280, 720, VIEW_CAMERA_FLAME);
    view_delete(d.view);
    view_desc close = {.camera = VIEW_CAMERA_FLAME, .begin_ns = SESSION_BEGIN_NS + 6061400000, .end_ns = SESSION_BEGIN_NS + 6061420000};
    CHECK_EQ(view_new(&d.view, &close), 0);
    desk_build(&d);
    CHECK_EQ(text_count(&d.frame, "6.0614"), 1);
    text_place whole, next;
    CHECK(text_find(&d.frame, "6.0614", &whole) && text_find(&d.frame, "+5", &next));
    CHECK(!text_is_said(&d.frame, "6061."));
    desk_close(&d);
}

TEST(from_the_last_match_it_goes_on_with_the_first_and_says_so)
{
    desk d = {.status.ended = true};
    view_request copied;
    session_new(&d.session);
    make_threads(&d.session, 7, 3);
    desk_open(&d, 1280, 720, VIEW_CAMERA_FLAME);
    desk_type(&d, "/");
    desk_type(&d, "in_t1");
    desk_key(&d, VIEW_KEY_TAB, 0);
    d.frame_s = 0.05;
    desk_type(&d, "n");
    CHECK(!text_is_said(&d.frame, "on from the begin"));
    desk_type(&d, "n");
    CHECK(text_is_said(&d.frame, "on from the begin"));
    desk_type(&d, "c");
    CHECK(view_take_request(d.view, &copied));
    CHECK(strstr(copied.text, "in_t1_of_7"));
    desk_close(&d);
}
