/* A session whose source is a file: playback, recall and a reader that looks, as the window does. Under the thread sanitizer
 * this is the test of their hand-overs. */
#include "record_session.h"

#include "app/session.h"

enum { NODES = 60000 };
static history_node got[NODES], want[NODES];

static session *open_file(const char *path, size_t memory_bytes)
{
    session *s;
    CHECK_EQ(session_open(&s, open_reader(path), path, memory_bytes), 0);
    return s;
}

/* A frame: all rows of all tracks from afar, the detail that has come, and what is looked at next. */
static void look(session *s, uint64_t begin_ns, uint64_t end_ns)
{
    session_lock(s);
    session_model m = session_model_of(s);
    uint64_t resolution_ns = (end_ns - begin_ns) / 500 + 1;
    for (uint32_t track = 0; track < catalog_track_count(m.catalog); track++)
        for (uint32_t depth = 0; depth < history_rows(m.history, track) && depth < 30; depth++) {
            size_t count = history_query(m.history, track, depth, begin_ns, end_ns, resolution_ns, got, NODES);
            for (size_t i = 0; i + 1 < count; i++)
                CHECK(got[i].end_ns <= got[i + 1].begin_ns);
            if (m.detail && m.detail_begin_ns <= begin_ns && end_ns <= m.detail_end_ns)
                history_query(m.detail, track, depth, begin_ns, end_ns, resolution_ns, got, NODES);
        }
    double columns[100];
    for (uint32_t g = 0; g < activity_group_count(m.activity); g++)
        activity_columns(m.activity, g, begin_ns, end_ns, columns, 100);
    session_unlock(s);
    session_look_at(s, begin_ns, end_ns);
}

static void wait_until_read(session *s)
{
    for (int i = 0; i < 60000 && session_status_of(s).read_share < 1; i++)
        usleep(1000);
    CHECK(session_status_of(s).read_share == 1);
    CHECK(!session_status_of(s).problem);
}

static void same_threads(const catalog *a, const catalog *b)
{
    CHECK_EQ(catalog_process_count(a), catalog_process_count(b));
    CHECK_EQ(catalog_thread_count(a), catalog_thread_count(b));
    CHECK_EQ(catalog_fiber_count(a), catalog_fiber_count(b));
    for (uint32_t i = 0; i < catalog_thread_count(b); i++) {
        const catalog_thread *want_thread = catalog_thread_at(b, i);
        uint32_t id = catalog_find_thread(a, want_thread->process, want_thread->number);
        CHECK(id != CATALOG_NONE);
        CHECK_EQ(catalog_thread_at(a, id)->begin_ns, want_thread->begin_ns);
        CHECK_EQ(catalog_thread_at(a, id)->end_ns, want_thread->end_ns);
        CHECK_STR(catalog_thread_at(a, id)->name, want_thread->name);
    }
    for (uint32_t i = 0; i < catalog_process_count(b); i++) {
        CHECK_EQ(catalog_process_at(a, i)->begin_ns, catalog_process_at(b, i)->begin_ns);
        CHECK_EQ(catalog_process_at(a, i)->end_ns, catalog_process_at(b, i)->end_ns);
    }
}

static size_t same_track(const history *a, uint32_t track, const history *b, uint32_t track_b)
{
    size_t compared = 0;
    CHECK_EQ(history_rows(a, track), history_rows(b, track_b));
    for (uint32_t depth = 0; depth < history_rows(b, track_b); depth++) {
        size_t count = history_query(b, track_b, depth, 0, UINT64_MAX, 1, want, NODES);
        CHECK(count < NODES);
        CHECK_EQ(history_query(a, track, depth, 0, UINT64_MAX, 1, got, NODES), count);
        CHECK(memcmp(got, want, count * sizeof *want) == 0);
        compared += count;
    }
    return compared;
}

/* All spans of all tracks. */
static size_t same_history(const session_model *m, const recorded *r)
{
    size_t compared = 0;
    for (uint32_t i = 0; i < catalog_process_count(r->catalog); i++)
        compared += same_track(m->history, catalog_process_at(m->catalog, i)->gc_track, r->history, catalog_process_at(r->catalog, i)->gc_track);
    for (uint32_t i = 0; i < catalog_fiber_count(r->catalog); i++) {
        const catalog_fiber *f = catalog_fiber_at(r->catalog, i);
        uint32_t id = catalog_find_fiber(m->catalog, catalog_thread_at(r->catalog, f->thread)->process, f->number);
        CHECK(id != CATALOG_NONE);
        compared += same_track(m->history, catalog_fiber_at(m->catalog, id)->track, r->history, f->track);
    }
    return compared;
}

/* Each method's sums, over the whole file. Returns how many calls they are of. */
static uint64_t same_figures(const session_model *m, const recorded *r)
{
    uint64_t calls = 0;
    for (uint32_t p = 0; p < catalog_process_count(r->catalog); p++)
        for (uint32_t i = 0; i < figures_limit(r->figures, p) || i < figures_limit(m->figures, p); i++) {
            figures_method now = figures_of(m->figures, p, i), then = figures_of(r->figures, p, i);
            CHECK(memcmp(&now, &then, sizeof now) == 0);
            calls += now.calls;
        }
    return calls;
}

/* What threads have marked, in the order of each process; threads by their numbers. */
static size_t same_notes(const session_model *m, const recorded *r)
{
    size_t count[4], seen = 0;
    const notes_mark *marks[] = {notes_marks(m->notes, &count[0]), notes_marks(r->notes, &count[1])};
    const notes_span *spans[] = {notes_spans(m->notes, &count[2]), notes_spans(r->notes, &count[3])};
    CHECK_EQ(count[0], count[1]);
    CHECK_EQ(count[2], count[3]);
    for (uint32_t p = 0; p < catalog_process_count(r->catalog); p++) {
        for (size_t a = 0, b = 0; a < count[0] && b < count[0]; a++, b++, seen++) {
            while (a < count[0] && marks[0][a].process != p)
                a++;
            while (b < count[0] && marks[1][b].process != p)
                b++;
            if (a == count[0] || b == count[0])
                break;
            CHECK(marks[0][a].at_ns == marks[1][b].at_ns && marks[0][a].string == marks[1][b].string);
            bool is_known = marks[1][b].thread != SIM_TRACK_NONE;
            CHECK_EQ(marks[0][a].thread != SIM_TRACK_NONE, is_known);
            if (is_known)
                CHECK_EQ(catalog_thread_at(m->catalog, marks[0][a].thread)->number, catalog_thread_at(r->catalog, marks[1][b].thread)->number);
        }
        for (size_t a = 0, b = 0; a < count[2] && b < count[2]; a++, b++, seen++) {
            while (a < count[2] && spans[0][a].process != p)
                a++;
            while (b < count[2] && spans[1][b].process != p)
                b++;
            if (a == count[2] || b == count[2])
                break;
            CHECK(spans[0][a].begin_ns == spans[1][b].begin_ns && spans[0][a].end_ns == spans[1][b].end_ns && spans[0][a].id == spans[1][b].id);
        }
    }
    CHECK_EQ(seen, count[0] + count[2]);
    return seen;
}

TEST(a_file_is_read_into_just_what_was_recorded_while_somebody_looks)
{
    uint64_t seed = test_seed(1);
    for (int round = 0; round < test_rounds(2); round++, seed++) {
        uint64_t random = seed * 1234567 + 1;
        recorded r;
        const char *path = temp_file("played.rrt");
        recorded_make(&r, path, &random, round % 2 ? 0 : 20000);
        session *s = open_file(path, (size_t)256 << 20);
        for (int i = 0; i < 2000 && session_status_of(s).read_share < 1; i++) {
            uint64_t length = r.end_ns - r.begin_ns, width = 1 + length / (1u << test_random_below(&random, 10));
            uint64_t begin_ns = r.begin_ns + test_random_below(&random, length);
            look(s, begin_ns, begin_ns + width);
        }
        wait_until_read(s);
        CHECK_EQ(session_status_of(s).dropped, r.dropped);
        session_lock(s);
        session_model m = session_model_of(s);
        CHECK_EQ(m.last_event_ns, r.end_ns);
        same_threads(m.catalog, r.catalog);
        CHECK(same_history(&m, &r) > 10000);
        CHECK(same_figures(&m, &r) > 10000);
        CHECK(same_notes(&m, &r) > 10);
        session_unlock(s);
        session_stop(s);
        recorded_free(&r);
    }
    temp_remove();
}

TEST(before_anything_is_read_who_was_there_and_the_outline_are)
{
    uint64_t random = test_seed(3) * 7;
    recorded r;
    const char *path = temp_file("outlined.rrt");
    recorded_make(&r, path, &random, 20000);
    session *s = open_file(path, (size_t)256 << 20);
    for (int i = 0; i < 60000 && !session_status_of(s).is_outlined; i++)
        usleep(1000);
    CHECK(session_status_of(s).read_share == 0); /* it waits for a first look */
    session_lock(s);
    session_model m = session_model_of(s);
    same_threads(m.catalog, r.catalog);
    double events[50], sum = 0;
    for (uint32_t g = 0; g < activity_group_count(m.activity); g++) {
        activity_columns(m.activity, g, r.begin_ns, r.end_ns + 1, events, 50);
        for (int i = 0; i < 50; i++)
            sum += events[i];
    }
    CHECK(sum > 0);
    CHECK_EQ(history_stats_of(m.history).span_count, 0);
    for (uint32_t i = 0; i < catalog_fiber_count(r.catalog); i++) { /* all rows are there, from the first call to the last */
        const catalog_fiber *f = catalog_fiber_at(r.catalog, i);
        uint32_t id = catalog_find_fiber(m.catalog, catalog_thread_at(r.catalog, f->thread)->process, f->number);
        uint32_t track = catalog_fiber_at(m.catalog, id)->track;
        CHECK_EQ(history_rows(m.history, track), history_rows(r.history, f->track));
        for (uint32_t depth = 0; depth < history_rows(r.history, f->track); depth++) {
            size_t spans = history_query(r.history, f->track, depth, 0, UINT64_MAX, 1, want, NODES);
            size_t nodes = history_query(m.history, track, depth, 0, UINT64_MAX, 1, got, NODES);
            CHECK(nodes > 0 && nodes <= spans);
            CHECK_EQ(got[0].begin_ns, want[0].begin_ns);
            CHECK_EQ(got[nodes - 1].end_ns, want[spans - 1].end_ns);
        }
    }
    session_unlock(s);
    session_stop(s);
    recorded_free(&r);
    temp_remove();
}

TEST(detail_that_memory_has_let_go_comes_back_from_the_file)
{
    uint64_t random = test_seed(5) * 7;
    recorded r;
    const char *path = temp_file("small.rrt");
    recorded_make(&r, path, &random, 0);
    session *s = open_file(path, (size_t)8 << 20);
    session_look_at(s, 0, 0);
    for (int i = 0; i < 60000 && !session_status_of(s).is_outlined; i++)
        usleep(1000);
    session_look_at(s, 0, 0);
    wait_until_read(s);
    CHECK(session_status_of(s).history.evicted_count > 0);
    uint64_t width = (r.end_ns - r.begin_ns) / 200, begin_ns = r.begin_ns + width;
    bool is_there = false;
    for (int i = 0; i < 20000 && !is_there; i++) {
        session_look_at(s, begin_ns, begin_ns + width);
        session_lock(s);
        session_model m = session_model_of(s);
        is_there = m.detail && m.detail_begin_ns <= begin_ns && begin_ns + width <= m.detail_end_ns;
        session_unlock(s);
        usleep(1000);
    }
    CHECK(is_there);
    CHECK(!session_status_of(s).is_too_much);
    for (int i = 0; i < 20000 && !session_status_of(s).is_too_much; i++) {
        session_look_at(s, r.begin_ns, r.end_ns); /* all of it at once */
        usleep(1000);
    }
    CHECK(session_status_of(s).is_too_much);
    session_look_at(s, begin_ns, begin_ns + width);
    CHECK(!session_status_of(s).is_too_much);
    session_stop(s);
    recorded_free(&r);
    temp_remove();
}

TEST(a_session_on_a_file_can_end_at_any_moment)
{
    uint64_t random = test_seed(6) * 7;
    recorded r;
    const char *path = temp_file("ended.rrt");
    recorded_make(&r, path, &random, 20000);
    for (int i = 0; i < 12; i++) {
        session *s = open_file(path, (size_t)64 << 20);
        usleep((unsigned)(i * i) * 400);
        if (i % 2)
            look(s, r.begin_ns, r.end_ns);
        session_stop(s);
    }
    recorded_free(&r);
    temp_remove();
}

TEST(without_an_overview_the_calls_are_there_that_a_last_state_has_open)
{
    uint64_t random = test_seed(8) * 7;
    recorded r;
    const char *path = temp_file("plain.rrt");
    size_t seen = 0;
    recorded_make(&r, path, &random, 0);
    session *s = open_file(path, (size_t)256 << 20);
    for (int i = 0; i < 60000 && !session_status_of(s).is_outlined; i++)
        usleep(1000);
    session_lock(s);
    session_model m = session_model_of(s);
    for (uint32_t i = 0; i < catalog_fiber_count(r.catalog); i++) {
        const catalog_fiber *f = catalog_fiber_at(r.catalog, i);
        uint32_t id = catalog_find_fiber(m.catalog, catalog_thread_at(r.catalog, f->thread)->process, f->number);
        uint32_t track = catalog_fiber_at(m.catalog, id)->track;
        for (uint32_t depth = 0; depth < history_rows(m.history, track); depth++) {
            size_t nodes = history_query(m.history, track, depth, 0, UINT64_MAX, 1, got, NODES), same = 0;
            size_t spans = history_query(r.history, f->track, depth, 0, UINT64_MAX, 1, want, NODES);
            for (size_t k = 0; k < spans && nodes > 0; k++)
                same += want[k].begin_ns == got[0].begin_ns && want[k].end_ns == got[0].end_ns && want[k].value == got[0].value;
            CHECK(nodes <= 1 && same == nodes);
            seen += nodes;
        }
    }
    CHECK(seen > 0);
    session_unlock(s);
    session_stop(s);
    recorded_free(&r);
    temp_remove();
}

TEST(why_a_program_is_not_there_to_its_end_is_said)
{
    const char *path = temp_file("early.rrt");
    uint64_t random = test_seed(9) * 7;
    event_vec events = {0};
    stream_how how = random_how(&random, 1000);
    stream_make(&events, &random, &how);
    record_writer *w = open_writer(path);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(record_writer_stream_begins(w, i, 100 + i, 1, 1), 0);
        CHECK_EQ(record_writer_events(w, i, events.items, events.count), 0);
        CHECK_EQ(record_writer_stream_ends(w, i, i ? "a definition\nin the ring is cut short" : NULL), 0);
    }
    record_writer_close(w);
    vec_free(&events);
    session *s = open_file(path, (size_t)64 << 20);
    CHECK_STR(session_status_of(s).problem, "process 101: its events end early: a definition in the ring is cut short");
    session_stop(s);
    temp_remove();
}
