/* test/c/view_session.h - made-up sessions for the tests of view/: events through the real simulation into a real history.
 * Use:     session_new(&s); session_process(&s, pid, "ruby app.rb"); m = session_method(&s, "Foo#bar", EV_METHOD_RUBY);
 *          session_at(&s, ms); session_switch(&s, fiber, thread); session_call(&s, m) … session_return(&s); session_run(&s);
 *          then model = session_model(&s); session_delete(&s).
 * Units:   ms since SESSION_BEGIN_NS, which is large, as CLOCK_MONOTONIC is on a machine that has run for months.
 */
#ifndef RRTRACE_TEST_VIEW_SESSION_H
#define RRTRACE_TEST_VIEW_SESSION_H

#include "test.h"

#include "base/mem.h"
#include "base/vec.h"
#include "history/figures.h"
#include "history/history.h"
#include "history/notes.h"
#include "sim/catalog.h"
#include "sim/sim.h"
#include "view/view.h"
#include "wire/clock.h"
#include "wire/event.h"

#define SESSION_BEGIN_NS UINT64_C(9000000000000000) /* 104 days: not exact in a float, nor in its neighbours */

typedef struct session {
    catalog *catalog;
    history *history;
    notes *notes;
    figures *figures;
    sim *sim;
    VEC(ev) events;
    uint32_t stream, process;
    uint32_t fiber, thread;
    uint32_t depths[2000]; /* by fiber */
    uint32_t method_count;
    uint64_t now_ns;
} session;

static void session_sink(void *context, uint32_t track, const sim_span *spans, size_t span_count)
{
    CHECK_EQ(history_append(((session *)context)->history, track, spans, span_count), 0);
    figures_take(((session *)context)->figures, track, spans, span_count);
}

static void session_note(void *context, const sim_note *note) { notes_take(((session *)context)->notes, note); }

__attribute__((unused)) static void session_new(session *s)
{
    *s = (session){.now_ns = SESSION_BEGIN_NS};
    CHECK_EQ(catalog_new(&s->catalog), 0);
    CHECK_EQ(history_new(&s->history, (size_t)256 << 20), 0);
    CHECK_EQ(notes_new(&s->notes), 0);
    CHECK_EQ(figures_new(&s->figures, s->catalog), 0);
    sim_desc desc = {.catalog = s->catalog, .sink = session_sink, .note = session_note, .context = s};
    CHECK_EQ(sim_new(&s->sim, &desc), 0);
}

static void session_run(session *s)
{
    sim_block block = {.stream = s->stream, .event_count = (uint32_t)s->events.count, .events = s->events.items};
    if (s->events.count > 0)
        CHECK_EQ(sim_run(s->sim, &block, 1), 0);
    s->events.count = 0;
}

__attribute__((unused)) static void session_delete(session *s)
{
    sim_delete(s->sim);
    notes_delete(s->notes);
    figures_delete(s->figures);
    history_delete(s->history);
    catalog_delete(s->catalog);
    vec_free(&s->events);
}

static void session_event(session *s, ev_kind kind, uint32_t number, uint32_t place)
{
    ev *e = vec_push(&s->events);
    CHECK(e);
    *e = ev_make(kind, s->now_ns, number, place);
}

static void session_define(session *s, ev_define what, uint32_t number, const void *payload, uint32_t bytes)
{
    session_event(s, EV_DEFINE, ev_define_number(what, number), bytes);
    size_t at = s->events.count, slots = ev_define_slots(bytes);
    CHECK(vec_reserve(&s->events, at + slots));
    memset(s->events.items + at, 0, slots * sizeof(ev));
    memcpy(s->events.items + at, payload, bytes);
    s->events.count += slots;
}

/* A new stream; what follows goes there. ractor 1: a process of its own. */
__attribute__((unused)) static void session_process_of(session *s, uint32_t pid, uint32_t ractor, const char *command)
{
    session_run(s);
    s->process = catalog_process_add(s->catalog, pid, s->now_ns);
    s->stream = sim_stream_open(s->sim, s->process, CLOCK_SOURCE_MONOTONIC);
    CHECK(s->stream != SIM_STREAM_NONE);
    unsigned char payload[512] = {0};
    ev_process_def def = {.pid = pid, .ppid = 1, .position_source = EV_POSITIONS_FRAME_ADDRESS, .ractor = ractor,
                          .argv_bytes = (uint32_t)strlen(command) + 1};
    memcpy(payload, &def, sizeof def);
    memcpy(payload + sizeof def, command, strlen(command) + 1);
    session_define(s, EV_DEFINE_PROCESS, 0, payload, (uint32_t)sizeof def + def.argv_bytes);
    s->method_count = 0;
    memset(s->depths, 0, sizeof s->depths);
}

__attribute__((unused)) static void session_process(session *s, uint32_t pid, const char *command)
{
    session_process_of(s, pid, 1, command);
}

__attribute__((unused)) static uint32_t session_method_in(session *s, const char *name, uint32_t kind, const char *path)
{
    unsigned char payload[512];
    ev_method_def def = {.kind = kind, .line = 1, .name_bytes = (uint32_t)strlen(name), .path_bytes = (uint32_t)strlen(path)};
    memcpy(payload, &def, sizeof def);
    memcpy(payload + sizeof def, name, def.name_bytes);
    memcpy(payload + sizeof def + def.name_bytes, path, def.path_bytes);
    session_define(s, EV_DEFINE_METHOD, ++s->method_count, payload, (uint32_t)sizeof def + def.name_bytes + def.path_bytes);
    return s->method_count;
}

__attribute__((unused)) static uint32_t session_method(session *s, const char *name, uint32_t kind)
{
    return session_method_in(s, name, kind, "");
}

__attribute__((unused)) static void session_string(session *s, uint32_t number, const char *text)
{
    unsigned char payload[256] = {0};
    memcpy(payload, text, strlen(text));
    session_define(s, EV_DEFINE_STRING, number, payload, (uint32_t)strlen(text));
}

__attribute__((unused)) static void session_thread(session *s, uint32_t number, const char *name, bool is_main)
{
    unsigned char payload[256];
    ev_thread_def def = {.ractor = 1, .flags = is_main ? EV_THREAD_MAIN : 0, .name_bytes = (uint32_t)strlen(name)};
    memcpy(payload, &def, sizeof def);
    memcpy(payload + sizeof def, name, def.name_bytes);
    session_define(s, EV_DEFINE_THREAD, number, payload, (uint32_t)sizeof def + def.name_bytes);
}

__attribute__((unused)) static void session_at(session *s, double ms)
{
    s->now_ns = SESSION_BEGIN_NS + (uint64_t)(ms * 1e6);
}

__attribute__((unused)) static void session_switch(session *s, uint32_t fiber, uint32_t thread)
{
    CHECK(fiber < sizeof s->depths / sizeof s->depths[0]);
    s->fiber = fiber;
    s->thread = thread;
    session_event(s, EV_SWITCH, fiber, thread);
}

static uint32_t session_position(const session *s, uint32_t depth) { return 0x80000000u - s->fiber * 0x100000u - depth * 64u; }

__attribute__((unused)) static void session_call(session *s, uint32_t method)
{
    session_event(s, EV_CALL, method, session_position(s, s->depths[s->fiber]++));
}

__attribute__((unused)) static void session_return(session *s)
{
    CHECK(s->depths[s->fiber] > 0);
    session_event(s, EV_RETURN, 0, session_position(s, --s->depths[s->fiber]));
}

/* A finished call of that length. */
__attribute__((unused)) static void session_leaf(session *s, uint32_t method, double begin_ms, double end_ms)
{
    session_at(s, begin_ms);
    session_call(s, method);
    session_at(s, end_ms);
    session_return(s);
}

__attribute__((unused)) static void session_gc(session *s, double begin_ms, double end_ms)
{
    session_at(s, begin_ms);
    session_event(s, EV_GC_ENTER, 0, 0);
    session_at(s, end_ms);
    session_event(s, EV_GC_EXIT, 0, 0);
}

__attribute__((unused)) static view_model session_model(session *s)
{
    session_run(s);
    return (view_model){.catalog = s->catalog, .history = s->history, .sim = s->sim, .notes = s->notes, .figures = s->figures, .now_ns = s->now_ns};
}

#endif
