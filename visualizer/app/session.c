#include "app/session.h"

#include "app/playback.h"
#include "base/mem.h"
#include "base/vec.h"
#include "base/workers.h"
#include "intake/intake.h"
#include "record/recall.h"
#include "wire/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POOL_BLOCKS 256u /* 64 MiB, touched as used: four million events behind the ring's one million */
#define BLOCKS_A_RUN 16u
#define STREAM_UNKNOWN UINT32_MAX
#define LATE_NS UINT64_C(1000000000) /* what a program has started as its last act may take so long to join */

/* A program's stream, by intake's number. */
typedef struct session_stream {
    uint32_t sim; /* STREAM_UNKNOWN: memory was out */
    uint32_t pid;
    uint32_t process; /* id in the catalog */
} session_stream;

/* Locks: model (catalog, history, open frames) and ends (what is below it). Never both at once. */
struct session {
    session_desc desc;
    block_pool *pool;
    workers *workers;
    intake *intake;
    catalog *catalog;
    history *history;
    activity *activity;    /* NULL: memory is out */
    figures *figures;      /* NULL: not counted */
    notes *notes;
    sim *sim;
    recall *recall;        /* NULL: not recorded */
    bool holds_detail;     /* under the model lock: session_unlock lets the recalled history go */
    uint64_t seen_generation; /* of session_look_at's caller, as the next */
    bool is_too_much;
    record_reader *reader; /* NULL: programs are shown; else a file is, and there is no intake and no pool */
    playback *playback;
    char file_problem[RECORD_PROBLEM_BYTES];
    char stream_problem[sizeof(record_trouble) + 64]; /* of the first stream of the file that ended early; "": none did */
    recording *recording;  /* NULL: a file is shown */
    const char *path;      /* of the file that is shown, or recorded from the start; NULL: none is */
    uint64_t recall_end_ns; /* under the model lock: what recall reads ends there */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t model;
    VEC(session_stream) streams; /* by intake's stream number; simulation thread, as the next */
    uint32_t open_count;
    uint64_t over_ns;          /* since when all have left; 0: some are there */
    bool has_ended_recording;
    uint64_t begin_ns;         /* of the file that is shown, else 0 */
    uint64_t last_event_ns;    /* under the model lock */
    _Atomic bool stops;        /* relaxed: a hint */
    _Atomic bool answers_at_once; /* relaxed: an answer too late is given by session_answer */
    _Atomic uint64_t working;  /* events in the simulation's hands; relaxed: shown only */
    /* Under ends: */
    pthread_mutex_t ends;
    pthread_cond_t ended;
    uint64_t ended_count, seen_count;
    VEC(uint32_t) unanswered;
    const char *problem;
    bool watched_left;
    int error; /* the simulation has failed: memory is out */
    /* Of session_status_of's caller: */
    uint64_t rate_ns, rate_count;
    char turned_away[96]; /* a line */
    double rate;
};

void session_lock(session *s) { pthread_mutex_lock(&s->model); }
void session_unlock(session *s)
{
    bool holds = s->holds_detail;
    s->holds_detail = false;
    pthread_mutex_unlock(&s->model);
    if (holds)
        recall_release(s->recall);
}

static void lock_model(void *context) { session_lock(context); }
static void unlock_model(void *context) { session_unlock(context); }

static void take_spans(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    session *s = context;
    history_append(s->history, track, spans, count); /* what does not fit is counted there */
    if (s->figures)
        figures_take(s->figures, track, spans, count);
}

static void take_note(void *context, const sim_note *note)
{
    session *s = context;
    notes_take(s->notes, note);
}

/* See session_status.is_over. */
static bool has_everyone_left(session *s)
{
    if (!intake_is_over(s->intake))
        return false;
    uint32_t begun = intake_stats_of(s->intake).stream_count;
    pthread_mutex_lock(&s->ends);
    uint64_t ended = s->ended_count;
    pthread_mutex_unlock(&s->ends);
    return ended == begun;
}

/* ---- the simulation thread ------------------------------------------------------------------------------------ */

/* What comes after the recording's end can't be read back from it. */
static void end_recall(session *s)
{
    session_lock(s);
    if (s->recall_end_ns == UINT64_MAX)
        s->recall_end_ns = s->last_event_ns;
    session_unlock(s);
}

static void begin_stream(session *s, const block *b)
{
    if (s->has_ended_recording)
        end_recall(s);
    session_lock(s);
    uint32_t process = catalog_process_add(s->catalog, b->pid, clock_ns(CLOCK_MONOTONIC));
    session_unlock(s);
    session_stream *st = vec_push(&s->streams);
    if (st)
        *st = (session_stream){STREAM_UNKNOWN, b->pid, process};
    if (st && process != CATALOG_NONE)
        st->sim = sim_stream_open(s->sim, process, b->clock_source);
    s->open_count++;
    recording_stream_begins(s->recording, b->stream, st ? st->sim : SIM_STREAM_NONE, process, b->pid, b->clock_source);
}

static void end_stream(session *s, const block *b)
{
    session_stream *st = b->stream < s->streams.count ? &s->streams.items[b->stream] : NULL;
    recording_events(s->recording, b->stream, NULL, 0);
    if (st && st->sim != STREAM_UNKNOWN) {
        sim_stream_close(s->sim, st->sim);
        session_lock(s);
        notes_end_process(s->notes, st->process, sim_stream_now_ns(s->sim, st->sim));
        session_unlock(s);
    }
    s->open_count--;
    recording_stream_ends(s->recording, b->stream, b->problem, s->open_count == 0);
    bool at_once = atomic_load_explicit(&s->answers_at_once, memory_order_relaxed);
    if (!b->said_bye || at_once) /* who did not say goodbye hears nothing, but its socket is let go */
        intake_done(s->intake, b->stream);
    pthread_mutex_lock(&s->ends);
    s->ended_count++;
    if (st && b->said_bye && st->pid == (uint32_t)s->desc.watch_pid)
        s->watched_left = true;
    if (b->problem)
        s->problem = b->problem;
    if (b->said_bye && !at_once) {
        uint32_t *place = vec_push(&s->unanswered);
        if (place)
            *place = b->stream;
    }
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->ends);
}

/* Events of a block lie between its first one and the next block's first, or the last of all. With the lock held. */
static void count_activity(session *s, const sim_block *blocks, size_t count)
{
    for (size_t i = 0; i < count && s->activity; i++) {
        uint32_t stream = blocks[i].stream;
        uint64_t end_ns = sim_stream_now_ns(s->sim, stream);
        for (size_t next = i + 1; next < count; next++)
            if (blocks[next].stream == stream && blocks[next].event_count > 0) {
                end_ns = sim_stream_time_ns(s->sim, stream, ev_ticks_of(blocks[next].events[0]));
                break;
            }
        if (blocks[i].event_count > 0) /* a stream is a process of the catalog, counted alike */
            activity_add(s->activity, stream, sim_stream_time_ns(s->sim, stream, ev_ticks_of(blocks[i].events[0])), end_ns, blocks[i].event_count);
    }
}

static void simulate(session *s, const sim_block *blocks, size_t count)
{
    int error = sim_run(s->sim, blocks, count);
    if (error) {
        pthread_mutex_lock(&s->ends);
        s->error = error;
        s->problem = "memory is out: the simulation has stopped";
        pthread_mutex_unlock(&s->ends);
        return;
    }
    session_lock(s);
    for (size_t i = 0; i < count; i++) {
        uint64_t now_ns = sim_stream_now_ns(s->sim, blocks[i].stream);
        if (now_ns > s->last_event_ns)
            s->last_event_ns = now_ns;
    }
    count_activity(s, blocks, count);
    session_unlock(s);
}

static void run_blocks(session *s, const block *const *blocks, size_t count)
{
    sim_block run[BLOCKS_A_RUN] = {0};
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        const block *b = blocks[i];
        run[i] = (sim_block){s->streams.items[b->stream].sim, b->event_count, b->events};
        recording_events(s->recording, b->stream, b->events, b->event_count);
    }
    if (!s->error)
        simulate(s, run, count);
    for (size_t i = 0; i < count && !s->error; i++)
        recording_state(s->recording, blocks[i]->stream);
}

static void process_blocks(session *s, block **blocks, size_t count)
{
    const block *run[BLOCKS_A_RUN];
    size_t run_count = 0;
    for (size_t i = 0; i < count; i++) {
        const block *b = blocks[i];
        if (b->kind == BLOCK_EVENTS_KIND) {
            if (b->stream < s->streams.count && s->streams.items[b->stream].sim != STREAM_UNKNOWN)
                run[run_count++] = b;
            continue;
        }
        run_blocks(s, run, run_count);
        run_count = 0;
        if (b->kind == BLOCK_STREAM_BEGINS)
            begin_stream(s, b);
        else
            end_stream(s, b);
    }
    run_blocks(s, run, run_count);
}

static void serve_recording(session *s)
{
    if (!recording_serve(s->recording))
        return;
    s->has_ended_recording = true;
    if (s->open_count > 0) /* else nothing comes, unless another program joins */
        end_recall(s);
}

/* A window may stay open for long after the last program has left: the recording is finished, and another session may use its
 * name. */
static void end_recording_when_over(session *s)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (s->streams.count == 0 || !has_everyone_left(s))
        s->over_ns = 0;
    else if (s->over_ns == 0)
        s->over_ns = now_ns;
    else if (now_ns - s->over_ns >= LATE_NS)
        recording_want(s->recording, NULL);
}

static void *simulation_main(void *argument)
{
    session *s = argument;
    block *blocks[BLOCKS_A_RUN];
    while (!atomic_load_explicit(&s->stops, memory_order_relaxed)) {
        size_t count = block_pool_wait(s->pool, blocks, BLOCKS_A_RUN, 50);
        uint64_t events = 0;
        for (size_t i = 0; i < count; i++)
            events += blocks[i]->event_count;
        atomic_store_explicit(&s->working, events, memory_order_relaxed);
        end_recording_when_over(s);
        serve_recording(s);
        process_blocks(s, blocks, count);
        atomic_store_explicit(&s->working, 0, memory_order_relaxed);
        for (size_t i = 0; i < count; i++)
            block_pool_give(s->pool, blocks[i]);
    }
    return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------------------------- */

/* Of --memory, when there is a recording: what is read back from it gets an eighth, and needs it twice for a moment. */
#define RECALL_PART 8u

/* The least that a history works with, even where --memory is less. */
static size_t at_least(size_t bytes) { return bytes > HISTORY_BUDGET_MIN ? bytes : HISTORY_BUDGET_MIN; }

/* Half of the cores, so that the program keeps its own; at least one. */
static unsigned worker_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores >= 4 ? (unsigned)(cores / 2 < 8 ? cores / 2 : 8) : cores >= 2 ? 2 : 1;
}

static int start_parts(session *s)
{
    int error = block_pool_new(&s->pool, POOL_BLOCKS);
    if (!error)
        error = workers_new(&s->workers, worker_count());
    if (!error)
        error = catalog_new(&s->catalog);
    if (!error)
        error = activity_new(&s->activity);
    if (!error)
        error = notes_new(&s->notes);
    if (!error && s->desc.counts_methods)
        error = figures_new(&s->figures, s->catalog);
    sim_desc sim_settings = {
        .workers = s->workers,
        .catalog = s->catalog,
        .sink = take_spans,
        .note = take_note,
        .lock = lock_model,
        .unlock = unlock_model,
        .context = s,
    };
    if (!error)
        error = sim_new(&s->sim, &sim_settings);
    recording_desc recording_settings = {.catalog = s->catalog, .sim = s->sim, .lock = lock_model, .unlock = unlock_model, .context = s};
    if (!error)
        error = recording_new(&s->recording, &recording_settings);
    intake_desc intake_settings = {
        .pool = s->pool,
        .listen_fd = s->desc.listen_fd,
        .socket_path = s->desc.socket_path,
        .watch_pid = s->desc.watch_pid,
    };
    if (!error)
        error = intake_start(&s->intake, &intake_settings);
    return error;
}

static session *session_new(void)
{
    session *s = mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->recall_end_ns = UINT64_MAX;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->model, NULL);
    pthread_mutex_init(&s->ends, NULL);
    pthread_cond_init(&s->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    return s;
}

int session_start(session **out, const session_desc *desc)
{
    session *s = *out = session_new();
    if (!s)
        return -ENOMEM;
    s->desc = *desc;
    int error = start_parts(s);
    if (error) {
        session_stop(s);
        *out = NULL;
    }
    return error;
}

/* Without it, what memory lets go stays an outline; of a file, what is looked at shows when playback has come to it. */
static void start_recall(session *s, size_t budget_bytes, uint32_t first_stream)
{
    recall_desc desc = {
        .path = s->path,
        .budget_bytes = at_least(budget_bytes),
        .first_stream = first_stream,
        .catalog = s->catalog,
        .lock = lock_model,
        .unlock = unlock_model,
        .context = s,
    };
    if (recall_new(&s->recall, &desc) != 0)
        s->recall = NULL;
}

/* Of --memory: what an outline may take until the history has grown into its place. */
#define OUTLINE_PART 8u

static int open_parts(session *s)
{
    size_t recall_bytes = s->desc.memory_bytes / RECALL_PART, outline_bytes = s->desc.memory_bytes / OUTLINE_PART;
    int error = catalog_new(&s->catalog);
    if (!error)
        error = activity_new(&s->activity);
    if (!error)
        error = notes_new(&s->notes);
    if (!error)
        error = figures_new(&s->figures, s->catalog);
    if (!error)
        error = history_new(&s->history, at_least(s->desc.memory_bytes - 2 * recall_bytes - outline_bytes));
    if (!error)
        error = playback_new(&s->playback, &(playback_desc){
                                               .reader = s->reader,
                                               .catalog = s->catalog,
                                               .history = s->history,
                                               .activity = s->activity,
                                               .figures = s->figures,
                                               .notes = s->notes,
                                               .worker_count = worker_count(),
                                               .outline_bytes_max = outline_bytes,
                                               .lock = lock_model,
                                               .unlock = unlock_model,
                                               .context = s,
                                           });
    if (!error)
        start_recall(s, recall_bytes, 0);
    return error;
}

int session_open(session **out, record_reader *reader, const char *path, size_t memory_bytes)
{
    session *s = *out = session_new();
    if (!s) {
        record_close(reader);
        return -ENOMEM;
    }
    s->desc.memory_bytes = memory_bytes;
    s->reader = reader;
    s->path = path;
    s->last_event_ns = record_info_of(reader).end_ns;
    s->begin_ns = record_info_of(reader).begin_ns;
    record_trouble trouble;
    if (record_next_trouble(reader, &(uint32_t){0}, &trouble))
        snprintf(s->stream_problem, sizeof s->stream_problem, "process %u: its events end early: %s", trouble.pid, trouble.text);
    int error = open_parts(s);
    if (error) {
        session_stop(s);
        *out = NULL;
    }
    return error;
}

int session_record(session *s, const char *path, bool goes_on, char *error, size_t error_bytes)
{
    s->path = path;
    return recording_open(s->recording, path, goes_on, error, error_bytes);
}

int session_begin(session *s)
{
    size_t recall_bytes = s->path ? s->desc.memory_bytes / RECALL_PART : 0;
    int error = history_new(&s->history, at_least(s->desc.memory_bytes - 2 * recall_bytes));
    if (error)
        return error;
    recording_attach(s->recording, s->history);
    if (s->path)
        start_recall(s, recall_bytes, recording_first_stream(s->recording));
    error = -pthread_create(&s->thread, NULL, simulation_main, s);
    s->has_thread = !error;
    return error;
}

void session_stop(session *s)
{
    if (!s)
        return;
    /* In reverse: nobody fills blocks any more, then nobody takes them, then what they were taken into goes. */
    atomic_store_explicit(&s->stops, true, memory_order_relaxed);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    intake_stop(s->intake);
    recall_delete(s->recall);
    playback_delete(s->playback);
    record_close(s->reader);
    if (s->recording && s->has_thread)
        recording_end(s->recording);
    recording_delete(s->recording);
    sim_delete(s->sim);
    figures_delete(s->figures);
    notes_delete(s->notes);
    history_delete(s->history);
    activity_delete(s->activity);
    catalog_delete(s->catalog);
    workers_delete(s->workers);
    block_pool_delete(s->pool);
    vec_free(&s->streams);
    vec_free(&s->unanswered);
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->ends);
    pthread_mutex_destroy(&s->model);
    mem_free(s);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

session_model session_model_of(session *s)
{
    session_model m = {.catalog = s->catalog, .history = s->history, .sim = s->sim, .activity = s->activity, .figures = s->figures, .notes = s->notes,
                       .begin_ns = s->begin_ns, .last_event_ns = s->last_event_ns};
    if (s->recall) {
        m.detail = recall_hold(s->recall, &m.detail_begin_ns, &m.detail_end_ns);
        m.detail_end_ns = m.detail_end_ns < s->recall_end_ns ? m.detail_end_ns : s->recall_end_ns;
        s->holds_detail = true;
    }
    return m;
}

bool session_look_at(session *s, uint64_t begin_ns, uint64_t end_ns)
{
    if (s->playback && playback_status_of(s->playback).is_outlined)
        playback_go_on(s->playback);
    if (!s->recall)
        return false;
    session_lock(s);
    uint64_t evicted_end_ns = history_stats_of(s->history).evicted_end_ns;
    bool is_in_file = end_ns <= s->recall_end_ns;
    session_unlock(s);
    uint64_t there_ns = s->playback ? playback_status_of(s->playback).done_ns : UINT64_MAX; /* later is not there yet */
    bool lacks_detail = is_in_file && (begin_ns < evicted_end_ns || end_ns > there_ns);
    if (lacks_detail)
        recall_want(s->recall, begin_ns, end_ns);
    s->is_too_much = lacks_detail && recall_is_too_much(s->recall, begin_ns, end_ns);
    uint64_t generation = recall_generation(s->recall);
    bool has_more = generation != s->seen_generation;
    s->seen_generation = generation;
    return has_more;
}

static double rate_of(session *s, uint64_t event_count)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (s->rate_ns == 0) {
        s->rate_ns = now_ns;
        s->rate_count = event_count;
    } else if (now_ns - s->rate_ns >= UINT64_C(500000000)) {
        s->rate = (double)(event_count - s->rate_count) * 1e9 / (double)(now_ns - s->rate_ns);
        s->rate_ns = now_ns;
        s->rate_count = event_count;
    }
    return s->rate;
}

/* The file is as it is: what changes is how much of it has been read. */
static session_status file_status(session *s)
{
    playback_status read = playback_status_of(s->playback);
    record_info info = record_info_of(s->reader);
    memcpy(s->file_problem, info.problem, sizeof s->file_problem);
    session_lock(s);
    history_stats kept = history_stats_of(s->history);
    session_unlock(s);
    const char *problem = *s->file_problem ? s->file_problem : *s->stream_problem ? s->stream_problem : s->recall ? recall_problem(s->recall) : NULL;
    return (session_status){
        .event_count = info.event_count,
        .dropped = read.dropped,
        .history = kept,
        .stream_count = info.stream_count,
        .problem = read.error ? "memory is out: the recording was not read to its end" : problem,
        .file = s->path,
        .read_share = read.share,
        .is_outlined = read.is_outlined,
        .is_too_much = s->is_too_much,
    };
}

session_status session_status_of(session *s)
{
    if (s->reader)
        return file_status(s);
    intake_stats in = intake_stats_of(s->intake);
    uint64_t queued = block_pool_backlog(s->pool), working = atomic_load_explicit(&s->working, memory_order_relaxed);
    session_lock(s);
    history_stats kept = history_stats_of(s->history);
    uint64_t event_count = catalog_event_count(s->catalog); /* as a report counts them */
    session_unlock(s);
    pthread_mutex_lock(&s->ends);
    const char *problem = s->problem;
    uint64_t ended = s->ended_count;
    bool watched_left = s->watched_left;
    pthread_mutex_unlock(&s->ends);
    if (!problem && in.turned_away > 0) {
        snprintf(s->turned_away, sizeof s->turned_away, "%" PRIu64 " program%s could not be traced: too many open files (ulimit -n)",
                 in.turned_away, in.turned_away == 1 ? "" : "s");
        problem = s->turned_away;
    }
    recording_status file = recording_status_of(s->recording);
    return (session_status){
        .event_count = event_count,
        .backlog_events = in.ring_backlog + queued + working,
        .dropped = in.dropped,
        .writer_waits = in.writer_waits,
        .events_per_s = rate_of(s, event_count),
        .history = kept,
        .stream_count = in.stream_count,
        .open_streams = (uint32_t)(in.stream_count - ended),
        .is_over = has_everyone_left(s),
        .watched_left = watched_left,
        .problem = file.problem ? file.problem : problem,
        .recording_failed = file.problem != NULL,
        .is_recording = file.is_on,
        .recording = file.path,
        .recorded_bytes = file.bytes,
        .read_share = 1,
        .is_outlined = true,
        .is_too_much = s->is_too_much,
    };
}

void session_record_from_here(session *s, const char *path) { recording_want(s->recording, path); }

void session_record_no_more(session *s, bool waits)
{
    if (!s->recording)
        return;
    recording_want(s->recording, NULL);
    if (waits)
        recording_wait_for_end(s->recording);
}

bool session_take_news(session *s, recording_news *out) { return s->recording && recording_take_news(s->recording, out); }

bool session_wait(session *s, int timeout_ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += (long)timeout_ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->ends);
    while (s->ended_count == s->seen_count && pthread_cond_timedwait(&s->ended, &s->ends, &t) == 0)
        ;
    bool some = s->ended_count != s->seen_count;
    s->seen_count = s->ended_count;
    pthread_mutex_unlock(&s->ends);
    return some;
}

void session_answer(session *s)
{
    VEC(uint32_t) streams = {0};
    pthread_mutex_lock(&s->ends);
    streams.items = s->unanswered.items; /* taken over whole */
    streams.count = s->unanswered.count;
    s->unanswered.items = NULL;
    s->unanswered.count = s->unanswered.capacity = 0;
    pthread_mutex_unlock(&s->ends);
    for (size_t i = 0; i < streams.count; i++)
        intake_done(s->intake, streams.items[i]);
    vec_free(&streams);
}

void session_answer_at_once(session *s)
{
    atomic_store_explicit(&s->answers_at_once, true, memory_order_relaxed);
    session_answer(s); /* who said goodbye before */
}
