#include "record/recall.h"

#include "base/mem.h"
#include "base/vec.h"
#include "record/reader.h"
#include "record/resume.h"
#include "record/tracks.h"
#include "sim/sim.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BYTES_A_SLOT 10u /* of the budget: a span has two events and takes some 20 bytes with its summaries */
#define READ_SLOTS_MAX UINT64_C(40000000) /* a second or so: more is not worth the wait, its outline is as good on a screen */

struct recall {
    recall_desc desc;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t wanted;
    /* Under the mutex: */
    uint64_t want_begin_ns, want_end_ns; /* equal: nothing is wanted */
    uint64_t refused_begin_ns, refused_end_ns;
    bool is_refused_for_size;
    history *detail; /* owned; [begin_ns, end_ns) */
    uint64_t begin_ns, end_ns, generation;
    bool stops;
    char problem[RECORD_PROBLEM_BYTES];
    /* The thread's: */
    record_reader *reader;
    VEC(ev) events;
};

/* One stretch being read. */
typedef struct reading {
    recall *r;
    uint64_t begin_ns, end_ns;
    history *detail;
    catalog *catalog; /* of the replay: the same numbers, other tracks */
    sim *sim;
    tracks tracks;
    bool cuts; /* what comes now only ends because the reading does */
    int error;
} reading;

/* ---- spans ------------------------------------------------------------------------------------------------------- */

static void take_spans(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    reading *g = context;
    uint32_t id;
    if (!tracks_of(&g->tracks, track, &id))
        g->error = -ENOMEM;
    if (id == SIM_TRACK_NONE)
        return;
    sim_span cut;
    if (g->cuts && count == 1) { /* they come one by one: shown as calls that go on, not as unwound */
        cut = spans[0];
        cut.closed = SIM_CLOSED_RETURN;
        spans = &cut;
    }
    size_t first = 0; /* what ended before the stretch is left out */
    for (size_t i = 0; i < count; i++) {
        if (spans[i].end_ns >= g->begin_ns && spans[i].begin_ns < g->end_ns)
            continue;
        if (i > first && history_append(g->detail, id, spans + first, i - first) != 0)
            g->error = -ENOMEM;
        first = i + 1;
    }
    if (count > first && history_append(g->detail, id, spans + first, count - first) != 0)
        g->error = -ENOMEM;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

typedef struct stretch {
    uint32_t first, last; /* chunks to replay, first <= last; first > last: none */
    uint64_t slots;       /* to read */
    double kept;          /* of these, about so many lie in the stretch */
} stretch;

/* The share of a chunk's time that lies in [begin_ns, end_ns). */
static double share_of(const record_chunk *c, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t from = c->begin_ns > begin_ns ? c->begin_ns : begin_ns, to = c->end_ns < end_ns ? c->end_ns : end_ns;
    return from < to ? (double)(to - from) / (double)(c->end_ns - c->begin_ns) : 0;
}

/* From the last place to start from that is not after the time, to the last chunk that has something of it. */
static stretch stretch_of(const record_reader *reader, uint32_t stream, uint64_t begin_ns, uint64_t end_ns)
{
    stretch s = {.first = 1, .last = 0};
    bool has_start = false, has_begun = false;
    for (uint32_t i = 0; i < record_chunk_count(reader); i++) {
        record_chunk c = record_chunk_at(reader, i);
        if (c.stream != stream || c.kind != RECORD_EVENTS)
            continue;
        if (c.begin_ns >= end_ns)
            break;
        bool starts = c.has_state || (!has_begun && !c.after_gap);
        has_begun = true;
        if (starts && (!has_start || c.begin_ns <= begin_ns)) {
            s = (stretch){.first = i};
            has_start = true;
        }
        if (has_start) {
            s.last = i;
            s.slots += c.slot_count;
            s.kept += c.slot_count * share_of(&c, begin_ns, end_ns);
        }
    }
    return s;
}

static int replay_chunk(reading *g, uint32_t number, uint32_t i)
{
    recall *r = g->r;
    uint32_t slots = record_chunk_at(r->reader, i).slot_count, count = 0;
    if (!vec_reserve(&r->events, slots))
        return -ENOMEM;
    int error = record_read_events(r->reader, i, r->events.items, slots, &count);
    return error ? error : sim_run(g->sim, &(sim_block){number, count, r->events.items}, 1);
}

static int replay(reading *g, const record_stream *st, const stretch *s)
{
    uint32_t number = resume_stream(g->r->reader, s->first, g->sim, st->stream - g->r->desc.first_stream, st->clock_source, NULL, NULL, NULL);
    if (number == SIM_STREAM_NONE)
        return -EBADMSG;
    int error = 0;
    for (uint32_t i = s->first; i <= s->last && !error; i++) {
        record_chunk c = record_chunk_at(g->r->reader, i);
        if (c.stream == st->stream && c.kind == RECORD_EVENTS)
            error = replay_chunk(g, number, i);
    }
    g->cuts = record_chunk_at(g->r->reader, s->last).end_ns < st->end_ns;
    int closed = sim_stream_close(g->sim, number);
    g->cuts = false;
    return error ? error : closed;
}

/* ---- a stretch --------------------------------------------------------------------------------------------------- */

/* The file grows while the session runs. */
static int open_reader(recall *r, uint64_t end_ns, char *line, size_t line_bytes)
{
    if (!r->reader)
        return record_open(&r->reader, r->desc.path, line, line_bytes);
    int count = record_info_of(r->reader).end_ns < end_ns ? record_refresh(r->reader) : 0;
    if (count < 0)
        snprintf(line, line_bytes, "%s: %s", r->desc.path, strerror(-count));
    return count < 0 ? count : 0;
}

static int prepare(reading *g)
{
    const recall_desc *desc = &g->r->desc;
    int error = catalog_new(&g->catalog);
    tracks_init(&g->tracks, g->catalog, desc->catalog, desc->lock, desc->unlock, desc->context);
    if (!error)
        error = history_new(&g->detail, desc->budget_bytes);
    if (!error)
        error = sim_new(&g->sim, &(sim_desc){.catalog = g->catalog, .sink = take_spans, .context = g});
    return error;
}

static int read_streams(reading *g, bool *is_too_much)
{
    record_reader *reader = g->r->reader;
    uint32_t count = record_info_of(reader).stream_count;
    uint64_t slots = 0;
    double kept = 0;
    VEC(stretch) stretches = {0};
    int error = vec_reserve(&stretches, count) ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count && !error; i++) {
        record_stream st = record_stream_at(reader, i);
        bool is_before = st.stream < g->r->desc.first_stream || st.end_ns < g->begin_ns;
        stretches.items[i] = is_before ? (stretch){.first = 1} : stretch_of(reader, st.stream, g->begin_ns, g->end_ns);
        slots += stretches.items[i].slots;
        kept += stretches.items[i].kept;
    }
    *is_too_much = slots > READ_SLOTS_MAX || kept > (double)(g->r->desc.budget_bytes / BYTES_A_SLOT);
    for (uint32_t i = 0; i < count && !error && !*is_too_much; i++) {
        record_stream st = record_stream_at(reader, i);
        if (st.stream < g->r->desc.first_stream)
            continue;
        while (catalog_process_count(g->catalog) <= st.stream - g->r->desc.first_stream && !error) /* ids as in the session */
            error = catalog_process_add(g->catalog, st.pid, 1) == CATALOG_NONE ? -ENOMEM : 0;
        if (!error && stretches.items[i].first <= stretches.items[i].last)
            error = replay(g, &st, &stretches.items[i]);
    }
    vec_free(&stretches);
    return error ? error : g->error;
}

static void publish(recall *r, reading *g)
{
    pthread_mutex_lock(&r->mutex);
    history *old = r->detail;
    r->detail = g->detail;
    r->begin_ns = g->begin_ns;
    r->end_ns = g->end_ns;
    r->generation++;
    pthread_mutex_unlock(&r->mutex);
    g->detail = NULL;
    history_delete(old);
}

static void refuse(recall *r, uint64_t begin_ns, uint64_t end_ns, const char *why)
{
    pthread_mutex_lock(&r->mutex);
    r->refused_begin_ns = begin_ns;
    r->refused_end_ns = end_ns;
    r->is_refused_for_size = !why;
    if (why)
        snprintf(r->problem, sizeof r->problem, "%s", why);
    pthread_mutex_unlock(&r->mutex);
}

static void read_stretch(recall *r, uint64_t begin_ns, uint64_t end_ns)
{
    char line[RECORD_PROBLEM_BYTES] = "";
    uint64_t margin_ns = (end_ns - begin_ns) / 2;
    reading g = {.r = r, .begin_ns = begin_ns > margin_ns ? begin_ns - margin_ns : 0, .end_ns = end_ns + margin_ns};
    bool is_too_much = false;
    int error = open_reader(r, end_ns, line, sizeof line);
    if (!error)
        error = prepare(&g);
    if (!error)
        error = read_streams(&g, &is_too_much);
    if (!error && is_too_much && margin_ns > 0) { /* without the margin, perhaps */
        g.begin_ns = begin_ns;
        g.end_ns = end_ns;
        error = read_streams(&g, &is_too_much);
    }
    if (!error && !is_too_much)
        publish(r, &g);
    else if (error && !*line)
        snprintf(line, sizeof line, "%.400s: some detail can't be read back: %s", r->desc.path, strerror(-error));
    if (error || is_too_much)
        refuse(r, begin_ns, end_ns, error ? line : NULL);
    sim_delete(g.sim);
    history_delete(g.detail);
    catalog_delete(g.catalog);
    tracks_free(&g.tracks);
}

static void *recall_main(void *argument)
{
    recall *r = argument;
    pthread_mutex_lock(&r->mutex);
    while (!r->stops) {
        uint64_t begin_ns = r->want_begin_ns, end_ns = r->want_end_ns;
        if (begin_ns == end_ns) {
            pthread_cond_wait(&r->wanted, &r->mutex);
            continue;
        }
        r->want_begin_ns = r->want_end_ns = 0;
        pthread_mutex_unlock(&r->mutex);
        read_stretch(r, begin_ns, end_ns);
        pthread_mutex_lock(&r->mutex);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

/* ---- outside ------------------------------------------------------------------------------------------------------- */

int recall_new(recall **out, const recall_desc *desc)
{
    recall *r = *out = mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    char line[RECORD_PROBLEM_BYTES];
    r->desc = *desc;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->wanted, NULL);
    open_reader(r, 0, line, sizeof line); /* now: later another file may have its name. Where it fails, read_stretch tries again */
    int error = -pthread_create(&r->thread, NULL, recall_main, r);
    r->has_thread = !error;
    if (error) {
        recall_delete(r);
        *out = NULL;
    }
    return error;
}

void recall_delete(recall *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    r->stops = true;
    pthread_cond_signal(&r->wanted);
    pthread_mutex_unlock(&r->mutex);
    if (r->has_thread)
        pthread_join(r->thread, NULL);
    record_close(r->reader);
    history_delete(r->detail);
    vec_free(&r->events);
    pthread_cond_destroy(&r->wanted);
    pthread_mutex_destroy(&r->mutex);
    mem_free(r);
}

/* Mutex held. What holds a stretch that was refused would be refused as well. */
static bool is_refused(const recall *r, uint64_t begin_ns, uint64_t end_ns)
{
    return begin_ns <= r->refused_begin_ns && r->refused_end_ns <= end_ns && r->refused_begin_ns < r->refused_end_ns;
}

void recall_want(recall *r, uint64_t begin_ns, uint64_t end_ns)
{
    if (begin_ns >= end_ns)
        return;
    pthread_mutex_lock(&r->mutex);
    bool is_there = r->detail && r->begin_ns <= begin_ns && end_ns <= r->end_ns;
    if (!is_there && !is_refused(r, begin_ns, end_ns)) {
        r->want_begin_ns = begin_ns;
        r->want_end_ns = end_ns;
        pthread_cond_signal(&r->wanted);
    }
    pthread_mutex_unlock(&r->mutex);
}

bool recall_is_too_much(recall *r, uint64_t begin_ns, uint64_t end_ns)
{
    pthread_mutex_lock(&r->mutex);
    bool is_too_much = r->is_refused_for_size && is_refused(r, begin_ns, end_ns);
    pthread_mutex_unlock(&r->mutex);
    return is_too_much;
}

const history *recall_hold(recall *r, uint64_t *begin_ns, uint64_t *end_ns)
{
    pthread_mutex_lock(&r->mutex);
    *begin_ns = r->begin_ns;
    *end_ns = r->end_ns;
    return r->detail;
}

void recall_release(recall *r) { pthread_mutex_unlock(&r->mutex); }

uint64_t recall_generation(recall *r)
{
    pthread_mutex_lock(&r->mutex);
    uint64_t generation = r->generation;
    pthread_mutex_unlock(&r->mutex);
    return generation;
}

const char *recall_problem(recall *r)
{
    pthread_mutex_lock(&r->mutex);
    const char *problem = *r->problem ? r->problem : NULL;
    pthread_mutex_unlock(&r->mutex);
    return problem;
}
