/* test/c/record_session.h - a random session of several streams: kept whole in memory, and recorded as it goes. */
#ifndef RRTRACE_TEST_RECORD_SESSION_H
#define RRTRACE_TEST_RECORD_SESSION_H

#include "record_stream.h"

#include "history/figures.h"
#include "history/history.h"
#include "history/notes.h"
#include "record/overview.h"
#include "sim/sim.h"

#include <pthread.h>

enum { RECORDED_STREAMS = 3 };

/* A session with room for everything, recorded as it goes. */
typedef struct recorded {
    catalog *catalog;
    history *history;
    figures *figures;
    notes *notes;
    sim *sim;
    uint64_t begin_ns, end_ns, dropped;
    pthread_mutex_t model;
} recorded;

static void recorded_append(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    recorded *s = context;
    for (size_t i = 0; i < count; i++) {
        s->begin_ns = spans[i].begin_ns < s->begin_ns ? spans[i].begin_ns : s->begin_ns;
        s->end_ns = spans[i].end_ns > s->end_ns ? spans[i].end_ns : s->end_ns;
    }
    CHECK_EQ(history_append(s->history, track, spans, count), 0);
    figures_take(s->figures, track, spans, count);
}

static void recorded_note(void *context, const sim_note *note) { notes_take(((recorded *)context)->notes, note); }

__attribute__((unused)) static void recorded_lock(void *context) { pthread_mutex_lock(&((recorded *)context)->model); }
__attribute__((unused)) static void recorded_unlock(void *context) { pthread_mutex_unlock(&((recorded *)context)->model); }

/* A definition that tells of dropped events, at the time of e. */
static void recorded_drop(recorded *s, event_vec *v, size_t at, ev e)
{
    ev_dropped_def def = {.count = 7 + at % 1000};
    CHECK(vec_reserve(v, v->count + 2));
    memmove(v->items + at + 2, v->items + at, (v->count - at) * sizeof(ev));
    v->count += 2;
    v->items[at] = ev_make(EV_DEFINE, ev_ticks_of(e), ev_define_number(EV_DEFINE_DROPPED, 0), sizeof def);
    v->items[at + 1] = (ev){0};
    memcpy(&v->items[at + 1], &def, sizeof def);
    s->dropped += def.count;
}

/* overview_nodes 0: the file has no overview. */
__attribute__((unused)) static void recorded_make(recorded *s, const char *path, uint64_t *random, uint32_t overview_nodes)
{
    *s = (recorded){.begin_ns = UINT64_MAX};
    pthread_mutex_init(&s->model, NULL);
    CHECK_EQ(catalog_new(&s->catalog), 0);
    CHECK_EQ(history_new(&s->history, (size_t)512 << 20), 0);
    CHECK_EQ(figures_new(&s->figures, s->catalog), 0);
    CHECK_EQ(notes_new(&s->notes), 0);
    CHECK_EQ(sim_new(&s->sim, &(sim_desc){.catalog = s->catalog, .sink = recorded_append, .note = recorded_note, .context = s}), 0);
    record_writer *w = open_writer(path);
    event_vec events[RECORDED_STREAMS] = {0};
    uint32_t numbers[RECORDED_STREAMS];
    size_t at[RECORDED_STREAMS] = {0}, left = RECORDED_STREAMS;
    for (uint32_t i = 0; i < RECORDED_STREAMS; i++) {
        stream_how how = random_how(random, 20000 + (uint32_t)test_random_below(random, 400000));
        how.oddity_per_mille = 0; /* times that run backwards have no stretch that they lie in */
        how.note_per_mille = 3;
        stream_make(&events[i], random, &how);
        recorded_drop(s, &events[i], ev_slots(events[i].items[0]), events[i].items[0]);
        recorded_drop(s, &events[i], events[i].count, events[i].items[events[i].count - 1]);
        numbers[i] = sim_stream_open(s->sim, catalog_process_add(s->catalog, i, 1), 1);
        CHECK_EQ(record_writer_stream_begins(w, i, i, 1, 1), 0);
    }
    sim_state state = {0};
    while (left > 0) {
        uint32_t i = (uint32_t)test_random_below(random, RECORDED_STREAMS);
        if (at[i] >= events[i].count)
            continue;
        size_t end = block_end(&events[i], at[i], 16384);
        CHECK_EQ(record_writer_events(w, i, events[i].items + at[i], end - at[i]), 0);
        CHECK_EQ(sim_run(s->sim, &(sim_block){numbers[i], (uint32_t)(end - at[i]), events[i].items + at[i]}, 1), 0);
        if (record_writer_wants_state(w, i)) {
            CHECK_EQ(sim_stream_state(s->sim, numbers[i], &state), 0);
            CHECK_EQ(record_writer_state(w, i, &state), 0);
        }
        at[i] = end;
        if (end == events[i].count) {
            notes_end_process(s->notes, i, sim_stream_now_ns(s->sim, numbers[i]));
            CHECK_EQ(sim_stream_close(s->sim, numbers[i]), 0);
            CHECK_EQ(record_writer_stream_ends(w, i, NULL), 0);
            left--;
        }
    }
    sim_state_free(&state);
    columns_bytes overview = {0};
    if (overview_nodes > 0) {
        CHECK_EQ(overview_build(s->catalog, s->history, s->sim, 0, s->begin_ns, s->end_ns, overview_nodes, &overview), 0);
        CHECK_EQ(record_writer_overview(w, overview.items, overview.count, s->begin_ns, s->end_ns), 0);
    }
    vec_free(&overview);
    record_writer_close(w);
    for (uint32_t i = 0; i < RECORDED_STREAMS; i++)
        vec_free(&events[i]);
}

__attribute__((unused)) static void recorded_free(recorded *s)
{
    sim_delete(s->sim);
    figures_delete(s->figures);
    notes_delete(s->notes);
    history_delete(s->history);
    catalog_delete(s->catalog);
    pthread_mutex_destroy(&s->model);
}

#endif
