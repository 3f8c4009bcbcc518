#include "app/playback.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "base/workers.h"
#include "history/outline.h"
#include "record/overview.h"
#include "record/resume.h"
#include "record/tracks.h"
#include "sim/sim.h"
#include "sim/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PLAYBACK_NICE 10 /* behind the window's thread */
#define BLOCK_SLOTS 16384u
#define BLOCKS_MAX 128u  /* of a chunk: more are run in turns */
#define COUNTED_EVENTS 256u
#define LATE_NS UINT64_C(2000000000) /* a quiet stream's chunk may stand so far behind a busy one's in the file */
#define GO_ON_LOOK_US 5000u
#define GO_ON_TRIES 600 /* three seconds */
#define NO_CHUNK UINT32_MAX

/* A stream of the file; its place is its process's id. */
typedef struct film_stream {
    uint32_t number, clock_source;
    uint32_t first, last_state; /* chunks; NO_CHUNK: none */
    uint32_t sim;               /* of the replay; SIM_STREAM_NONE: has not begun or has ended */
} film_stream;

/* A call that was open at a stream's last state: it ended in what was played from there. */
typedef struct old_span {
    uint32_t track;
    sim_span span;
} old_span;

struct playback {
    playback_desc desc;
    pthread_t thread;
    bool has_thread;
    _Atomic bool stops;       /* relaxed: a hint */
    _Atomic bool may_go_on;   /* likewise */
    _Atomic bool is_outlined; /* relaxed, as the next: shown, and asked again */
    _Atomic uint32_t chunks_done;
    _Atomic uint64_t done_ns;
    _Atomic uint64_t dropped;
    _Atomic int error;
    uint32_t chunk_count;
    workers *workers;         /* the thread makes them, so that they are as unimportant as it is */
    /* The thread's: */
    map places; /* stream's number -> place */
    VEC(film_stream) streams;
    VEC(ev) events;
    outline *outline;
    VEC(old_span) old_spans;
    uint64_t tail_begin_ns; /* of the stream that is being played from its last state */
    uint32_t process;       /* whose definitions are being read */
    catalog *catalog;       /* of the replay */
    tracks tracks;
    sim *sim;
    activity *fine;         /* what the index has said of whole chunks, by and by of a few events */
};

static void lock(playback *p) { p->desc.lock(p->desc.context); }
static void unlock(playback *p) { p->desc.unlock(p->desc.context); }
static void lock_model(void *context) { lock(context); }
static void unlock_model(void *context) { unlock(context); }
static bool must_stop(const playback *p) { return atomic_load_explicit(&p->stops, memory_order_relaxed); }

/* ---- at once ------------------------------------------------------------------------------------------------------ */

static int list_streams(playback *p)
{
    uint32_t count = record_info_of(p->desc.reader).stream_count;
    if (!vec_reserve(&p->streams, count))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        record_stream st = record_stream_at(p->desc.reader, i);
        uint32_t process = catalog_process_add(p->desc.catalog, st.pid, st.begin_ns);
        if (process == CATALOG_NONE || map_put(&p->places, st.stream, i) != 0)
            return -ENOMEM;
        catalog_process_at(p->desc.catalog, process)->end_ns = st.end_ns;
        p->streams.items[p->streams.count++] = (film_stream){st.stream, st.clock_source, NO_CHUNK, NO_CHUNK, SIM_STREAM_NONE};
    }
    return 0;
}

static int list_chunks(playback *p)
{
    record_info info = record_info_of(p->desc.reader);
    if (p->desc.activity && activity_add(p->desc.activity, 0, info.begin_ns, info.begin_ns, 0) != 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < p->chunk_count; i++) {
        record_chunk c = record_chunk_at(p->desc.reader, i);
        uint32_t place = map_get(&p->places, c.stream);
        if (c.kind != RECORD_EVENTS || place == MAP_NONE)
            continue;
        film_stream *st = &p->streams.items[place];
        st->first = st->first == NO_CHUNK ? i : st->first;
        st->last_state = c.has_state ? i : st->last_state;
        if (p->desc.activity && activity_add(p->desc.activity, place, c.begin_ns, c.end_ns, c.event_count) != 0)
            return -ENOMEM;
    }
    return 0;
}

/* ---- who was there -------------------------------------------------------------------------------------------------- */

static void take_definition(void *context, ev head, const void *payload)
{
    playback *p = context;
    ev_dropped_def dropped;
    if (ev_define_what(head) == EV_DEFINE_DROPPED && head.place >= sizeof dropped) { /* the catalog hears of it from a tail, too */
        memcpy(&dropped, payload, sizeof dropped);
        atomic_fetch_add_explicit(&p->dropped, dropped.count, memory_order_relaxed);
    }
    lock(p);
    catalog_define(p->desc.catalog, p->process, head, payload, catalog_process_at(p->desc.catalog, p->process)->begin_ns);
    unlock(p);
}

/* Lock held. Only what began before the stretch that is played is of use: it says what the time before looked like. */
static void take_old_spans(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    playback *p = context;
    for (size_t i = 0; i < count; i++) {
        old_span *old = spans[i].begin_ns < p->tail_begin_ns ? vec_push(&p->old_spans) : NULL;
        if (old)
            *old = (old_span){track, spans[i]};
    }
}

/* The chunk's events into p->events; *count 0: they can't be read. */
static int read_chunk(playback *p, uint32_t i, uint32_t *count)
{
    uint32_t slots = record_chunk_at(p->desc.reader, i).slot_count;
    *count = 0;
    if (!vec_reserve(&p->events, slots))
        return -ENOMEM;
    return record_read_events(p->desc.reader, i, p->events.items, slots, count) == -ENOMEM ? -ENOMEM : 0;
}

/* In blocks, so that several workers have some. */
static int run_events(sim *s, uint32_t stream, const ev *events, uint32_t count)
{
    sim_block blocks[BLOCKS_MAX];
    size_t block_count = 0;
    for (uint32_t i = 0; i < count;) {
        uint32_t begin = i;
        while (i < count && i - begin < BLOCK_SLOTS)
            i += ev_slots(events[i]);
        blocks[block_count++] = (sim_block){stream, i - begin, events + begin};
        if (block_count == BLOCKS_MAX || i >= count) {
            int error = sim_run(s, blocks, block_count);
            if (error)
                return error;
            block_count = 0;
        }
    }
    return 0;
}

/* From the stream's last state to its end. */
static int play_tail(playback *p, sim *s, uint32_t place)
{
    const film_stream *st = &p->streams.items[place];
    uint32_t from = st->last_state != NO_CHUNK ? st->last_state : st->first, count;
    int error = 0;
    if (from == NO_CHUNK)
        return 0;
    uint32_t number = resume_stream(p->desc.reader, from, s, place, st->clock_source, lock_model, unlock_model, p);
    bool is_late = st->last_state != NO_CHUNK && number != SIM_STREAM_NONE;
    p->tail_begin_ns = is_late ? record_chunk_at(p->desc.reader, from).begin_ns : 0;
    if (number == SIM_STREAM_NONE)
        number = sim_stream_open(s, place, st->clock_source);
    if (number == SIM_STREAM_NONE)
        return -ENOMEM;
    for (uint32_t i = from; i < p->chunk_count && !error && !must_stop(p); i++) {
        record_chunk c = record_chunk_at(p->desc.reader, i);
        if (c.stream != st->number || c.kind != RECORD_EVENTS)
            continue;
        error = read_chunk(p, i, &count);
        if (!error)
            error = run_events(s, number, p->events.items, count);
    }
    int closed = sim_stream_close(s, number);
    return error ? error : closed;
}

static int find_who_was_there(playback *p)
{
    sim *s;
    int error = sim_new(&s, &(sim_desc){.workers = p->workers, .catalog = p->desc.catalog, .sink = take_old_spans,
                                        .lock = lock_model, .unlock = unlock_model, .context = p});
    for (uint32_t i = 0; i < p->streams.count && !error && !must_stop(p); i++) {
        p->process = i;
        error = record_definitions(p->desc.reader, p->streams.items[i].number, p->chunk_count, take_definition, p);
        error = error == -EIO ? 0 : error; /* the reader has noted it */
        if (!error)
            error = play_tail(p, s, i);
    }
    sim_delete(s);
    return error;
}

/* ---- how it looked --------------------------------------------------------------------------------------------------- */

static int outline_old_spans(playback *p)
{
    int error = 0;
    for (size_t i = 0; i < p->old_spans.count && !error; i++) {
        const sim_span *span = &p->old_spans.items[i].span;
        uint64_t length_ns = span->end_ns - span->begin_ns;
        history_node n = {.begin_ns = span->begin_ns, .end_ns = span->end_ns, .busy_ns = length_ns, .longest_ns = length_ns,
                          .span_count = 1, .value = span->value, .flags = span->open_at_start ? HISTORY_OPEN_AT_START : 0u};
        error = outline_add(p->outline, p->old_spans.items[i].track, span->depth, &n);
    }
    vec_free(&p->old_spans);
    return error;
}

static uint32_t process_of(void *context, uint32_t stream)
{
    uint32_t place = map_get(&((playback *)context)->places, stream);
    return place == MAP_NONE ? CATALOG_NONE : place;
}

static void take_overview(void *context, const void *bytes, size_t count)
{
    playback *p = context;
    lock(p);
    int error = overview_read(bytes, count, p->desc.catalog, process_of, p, p->desc.outline_bytes_max, p->outline);
    unlock(p);
    if (error == -ENOMEM)
        atomic_store_explicit(&p->error, error, memory_order_relaxed);
}

/* A file that was gone on with has one a session. */
static void read_overviews(playback *p)
{
    for (uint32_t i = 0; i < p->chunk_count; i++)
        if (record_chunk_at(p->desc.reader, i).kind == RECORD_OVERVIEW)
            record_read_overview(p->desc.reader, i, take_overview, p);
}

static int draw_outline(playback *p)
{
    int error = outline_new(&p->outline);
    if (!error) {
        read_overviews(p);
        error = outline_old_spans(p); /* of rows that no overview has */
    }
    lock(p);
    history_set_outline(p->desc.history, p->outline);
    unlock(p);
    return error;
}

/* ---- all of it --------------------------------------------------------------------------------------------------------- */

/* Lock held. */
static void take_spans(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    playback *p = context;
    uint32_t id;
    if (!tracks_of(&p->tracks, track, &id))
        atomic_store_explicit(&p->error, -ENOMEM, memory_order_relaxed);
    if (id == SIM_TRACK_NONE)
        return;
    history_append(p->desc.history, id, spans, count); /* what does not fit is counted there */
    if (p->desc.figures)
        figures_take(p->desc.figures, id, spans, count);
}

/* Lock held. Both catalogs number their processes alike, but not their threads. */
static void take_note(void *context, const sim_note *note)
{
    playback *p = context;
    sim_note of_session = *note;
    if (note->thread < catalog_thread_count(p->catalog))
        of_session.thread = catalog_find_thread(p->desc.catalog, note->process, catalog_thread_at(p->catalog, note->thread)->number);
    notes_take(p->desc.notes, &of_session);
}

static int begin_replay(playback *p)
{
    int error = catalog_new(&p->catalog);
    for (uint32_t i = 0; i < p->streams.count && !error; i++) {
        record_stream st = record_stream_at(p->desc.reader, i);
        error = catalog_process_add(p->catalog, st.pid, st.begin_ns) == CATALOG_NONE ? -ENOMEM : 0;
    }
    if (!error) {
        tracks_init(&p->tracks, p->catalog, p->desc.catalog, NULL, NULL, NULL); /* the scan holds the lock when it gives spans */
        error = sim_new(&p->sim, &(sim_desc){.workers = p->workers, .catalog = p->catalog, .sink = take_spans,
                                             .note = p->desc.notes ? take_note : NULL, .lock = lock_model, .unlock = unlock_model,
                                             .context = p});
    }
    return error;
}

/* A few events at a time, so that short pauses are seen. */
static void count_events(playback *p, uint32_t place, const ev *events, uint32_t count)
{
    uint32_t stream = p->streams.items[place].sim;
    for (uint32_t i = 0; i < count && p->fine;) {
        uint32_t begin = i, last = i, counted = 0;
        for (; i < count && counted < COUNTED_EVENTS; counted++) {
            last = i;
            i += ev_slots(events[i]);
        }
        activity_add(p->fine, place, sim_stream_time_ns(p->sim, stream, ev_ticks_of(events[begin])),
                     sim_stream_time_ns(p->sim, stream, ev_ticks_of(events[last])), counted);
    }
}

static int end_stream(playback *p, uint32_t place)
{
    uint32_t number = p->streams.items[place].sim;
    if (number == SIM_STREAM_NONE)
        return 0;
    p->streams.items[place].sim = SIM_STREAM_NONE;
    if (p->desc.notes) {
        lock(p);
        notes_end_process(p->desc.notes, place, sim_stream_now_ns(p->sim, number));
        unlock(p);
    }
    return sim_stream_close(p->sim, number);
}

static int replay_chunk(playback *p, uint32_t i)
{
    record_chunk c = record_chunk_at(p->desc.reader, i);
    uint32_t place = map_get(&p->places, c.stream), count;
    if (place == MAP_NONE || (c.kind != RECORD_EVENTS && c.kind != RECORD_STREAM_ENDS))
        return 0;
    film_stream *st = &p->streams.items[place];
    if (c.kind == RECORD_STREAM_ENDS)
        return end_stream(p, place);
    if (st->sim == SIM_STREAM_NONE && (st->sim = sim_stream_open(p->sim, place, st->clock_source)) == SIM_STREAM_NONE)
        return -ENOMEM;
    int error = read_chunk(p, i, &count);
    if (!error)
        error = run_events(p->sim, st->sim, p->events.items, count);
    if (!error)
        count_events(p, place, p->events.items, count);
    uint64_t done_ns = c.begin_ns > LATE_NS ? c.begin_ns - LATE_NS : 0;
    if (done_ns > atomic_load_explicit(&p->done_ns, memory_order_relaxed))
        atomic_store_explicit(&p->done_ns, done_ns, memory_order_relaxed);
    return error;
}

static int replay(playback *p)
{
    int error = begin_replay(p);
    uint64_t begin_ns = record_info_of(p->desc.reader).begin_ns;
    if (!p->desc.activity || activity_new(&p->fine) != 0 || activity_add(p->fine, 0, begin_ns, begin_ns, 0) != 0) {
        activity_delete(p->fine);
        p->fine = NULL; /* whole chunks do as well */
    }
    for (uint32_t i = 0; i < p->chunk_count && !error && !must_stop(p); i++) {
        error = replay_chunk(p, i);
        atomic_store_explicit(&p->chunks_done, i, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < p->streams.count && !error && !must_stop(p); i++)
        error = end_stream(p, i);
    return error;
}

static void end_replay(playback *p)
{
    lock(p);
    history_set_outline(p->desc.history, NULL);
    if (p->fine)
        activity_swap(p->desc.activity, p->fine);
    unlock(p);
    outline_delete(p->outline);
    p->outline = NULL;
    sim_delete(p->sim);
    p->sim = NULL;
    catalog_delete(p->catalog);
    p->catalog = NULL;
    atomic_store_explicit(&p->done_ns, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&p->chunks_done, p->chunk_count, memory_order_relaxed);
}

static void *playback_main(void *argument)
{
    playback *p = argument;
    setpriority(PRIO_PROCESS, 0, PLAYBACK_NICE); /* on Linux of this thread */
    int error = workers_new(&p->workers, p->desc.worker_count);
    if (!error)
        error = find_who_was_there(p);
    if (!error)
        error = draw_outline(p);
    atomic_store_explicit(&p->is_outlined, true, memory_order_relaxed);
    for (int i = 0; i < GO_ON_TRIES && !must_stop(p) && !atomic_load_explicit(&p->may_go_on, memory_order_relaxed); i++)
        usleep(GO_ON_LOOK_US);
    if (!error && !must_stop(p))
        error = replay(p);
    if (!error && !must_stop(p))
        end_replay(p);
    if (error)
        atomic_store_explicit(&p->error, error, memory_order_relaxed);
    return NULL;
}

/* ---- outside ------------------------------------------------------------------------------------------------------------ */

int playback_new(playback **out, const playback_desc *desc)
{
    playback *p = *out = mem_zalloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->desc = *desc;
    p->chunk_count = record_chunk_count(desc->reader);
    map_init(&p->places);
    int error = list_streams(p);
    if (!error)
        error = list_chunks(p);
    if (!error)
        error = -pthread_create(&p->thread, NULL, playback_main, p);
    p->has_thread = !error;
    if (error) {
        playback_delete(p);
        *out = NULL;
    }
    return error;
}

void playback_delete(playback *p)
{
    if (!p)
        return;
    atomic_store_explicit(&p->stops, true, memory_order_relaxed);
    if (p->has_thread)
        pthread_join(p->thread, NULL);
    history_set_outline(p->desc.history, NULL);
    outline_delete(p->outline);
    sim_delete(p->sim);
    catalog_delete(p->catalog);
    activity_delete(p->fine);
    workers_delete(p->workers);
    tracks_free(&p->tracks);
    vec_free(&p->old_spans);
    vec_free(&p->events);
    vec_free(&p->streams);
    map_free(&p->places);
    mem_free(p);
}

void playback_go_on(playback *p) { atomic_store_explicit(&p->may_go_on, true, memory_order_relaxed); }

playback_status playback_status_of(const playback *p)
{
    uint32_t done = atomic_load_explicit(&p->chunks_done, memory_order_relaxed);
    return (playback_status){
        .is_outlined = atomic_load_explicit(&p->is_outlined, memory_order_relaxed),
        .share = p->chunk_count ? (double)done / (double)p->chunk_count : 1,
        .done_ns = atomic_load_explicit(&p->done_ns, memory_order_relaxed),
        .dropped = atomic_load_explicit(&p->dropped, memory_order_relaxed),
        .error = atomic_load_explicit(&p->error, memory_order_relaxed),
    };
}
