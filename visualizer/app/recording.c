#include "app/recording.h"

#include "base/mem.h"
#include "base/vec.h"
#include "record/overview.h"
#include "record/prefix.h"
#include "record/writer.h"
#include "wire/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAMES_TRIED 1000
#define NOT_IN_FILE UINT32_MAX

typedef struct recorded_stream {
    uint64_t begin_ns;        /* of it in the file, if it had begun before; 0: it is there whole */
    uint32_t number, process; /* of the simulation; of the catalog */
    uint32_t pid, clock_source;
    uint32_t in_file;         /* its number there; NOT_IN_FILE: it has not come up since the recording began */
    bool is_open;
} recorded_stream;

struct recording {
    recording_desc desc;
    const history *history;
    /* The simulation's thread: */
    VEC(recorded_stream) streams;
    uint32_t in_file_count;
    bool is_whole;     /* from the session's start on */
    uint64_t asked_ns; /* when it was begun */
    uint64_t begin_ns; /* of what is in the file, if it is not whole: a little earlier where events were still waiting */
    uint64_t waits_before, dropped_before; /* of the session, when it was begun */
    sim_state state;
    /* Changed by that thread alone, and under the mutex, so that it may read it without: */
    record_writer *writer; /* NULL: nothing is recorded */
    /* Under the mutex: */
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool is_wanted, is_beginning;
    char path[PATH_MAX];
    char problem[RECORDING_LINE_BYTES]; /* "": none */
    uint64_t bytes;                     /* of a file that is written */
    VEC(recording_news) news;
    /* recording_status_of's caller's: */
    char seen_path[PATH_MAX], seen_problem[RECORDING_LINE_BYTES];
};

void recording_name(char *out, size_t bytes, const char *folder, pid_t pid)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &parts));
    if (!folder || access(folder, W_OK) != 0)
        folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    const char *slash = *folder && folder[strlen(folder) - 1] == '/' ? "" : "/";
    snprintf(out, bytes, "%s%srrtrace-%s-%d.rrt", folder, slash, stamp, (int)pid);
    for (int again = 2; access(out, F_OK) == 0 && again < NAMES_TRIED; again++) /* there may be several a second */
        snprintf(out, bytes, "%s%srrtrace-%s-%d-%d.rrt", folder, slash, stamp, (int)pid, again);
}

void recording_say_written(FILE *out, const char *path, uint64_t bytes, uint64_t waits, uint64_t dropped)
{
    double mebibytes = (double)bytes / (1 << 20);
    char waited[96] = "", lost[96] = "";
    if (waits > 0)
        snprintf(waited, sizeof waited, "the program waited %" PRIu64 " times for room in its buffer (--buffer); ", waits);
    if (dropped > 0)
        snprintf(lost, sizeof lost, "%" PRIu64 " events were dropped for want of room in the buffer (--buffer); ", dropped);
    fprintf(out, "rrtrace: written to %s (%.*f MiB); %s%srrtrace report shows it\n", path, mebibytes < 10 ? 2 : 0, mebibytes, lost, waited);
}

int recording_new(recording **out, const recording_desc *desc)
{
    recording *r = *out = mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->desc = *desc;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->ended, NULL);
    return 0;
}

void recording_delete(recording *r)
{
    if (!r)
        return;
    record_writer_close(r->writer);
    sim_state_free(&r->state);
    vec_free(&r->streams);
    vec_free(&r->news);
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->mutex);
    mem_free(r);
}

void recording_attach(recording *r, const history *h) { r->history = h; }
uint32_t recording_first_stream(const recording *r) { return record_writer_first_stream(r->writer); }

/* Mutex held. Where memory is out nobody is told; recording_status still says it. */
static void tell(recording *r, recording_what what, const char *line)
{
    recording_news *n = vec_push(&r->news);
    if (!n)
        return;
    n->what = what;
    n->bytes = r->bytes;
    n->waits = catalog_waited(r->desc.catalog) - r->waits_before; /* nobody else changes it while the simulation's thread is here */
    n->dropped = catalog_dropped(r->desc.catalog) - r->dropped_before;
    snprintf(n->line, sizeof n->line, "%s", line);
}

/* ---- begin and end: the simulation's thread ----------------------------------------------------------------------- */

static void set_writer(recording *r, record_writer *w, const char *path)
{
    r->writer = w;
    r->problem[0] = '\0';
    r->bytes = 0;
    snprintf(r->path, sizeof r->path, "%s", path);
}

int recording_open(recording *r, const char *path, bool goes_on, char *error, size_t error_bytes)
{
    record_writer *w;
    int code = (goes_on ? record_writer_go_on : record_writer_open)(&w, path, error, error_bytes);
    if (code)
        return code;
    r->is_whole = true;
    r->begin_ns = UINT64_MAX;
    r->is_wanted = true;
    set_writer(r, w, path);
    return 0;
}

static void begin(recording *r, const char *path)
{
    record_writer *w;
    char line[RECORDING_LINE_BYTES];
    int error = record_writer_open(&w, path, line, sizeof line);
    r->is_whole = false;
    r->asked_ns = r->begin_ns = clock_ns(CLOCK_MONOTONIC);
    r->in_file_count = 0;
    r->waits_before = catalog_waited(r->desc.catalog);
    r->dropped_before = catalog_dropped(r->desc.catalog);
    for (size_t i = 0; i < r->streams.count; i++) {
        r->streams.items[i].in_file = NOT_IN_FILE;
        r->streams.items[i].begin_ns = 0;
    }
    pthread_mutex_lock(&r->mutex);
    r->is_beginning = false;
    if (error) {
        r->is_wanted = false;
        snprintf(r->problem, sizeof r->problem, "%s", line);
        tell(r, RECORDING_FAILED, line);
        pthread_cond_broadcast(&r->ended);
    } else {
        set_writer(r, w, path);
        tell(r, RECORDING_BEGUN, path);
    }
    pthread_mutex_unlock(&r->mutex);
}

/* The other way round than timebase_ns. */
static uint64_t ticks_at(const timebase_line *line, uint64_t at_ns)
{
    double since_ns = at_ns > line->base_ns ? (double)(at_ns - line->base_ns) : 0;
    return line->base_ticks + (uint64_t)(since_ns * 4294967296.0 / (double)line->ns_per_tick_q32);
}

/* How many slots of events[count] are definitions that intake has put in front: they carry the time of the event before them. */
static uint32_t slots_of_intake(const ev *events, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && ev_kind_of(events[i]) == EV_DEFINE &&
           (ev_define_what(events[i]) == EV_DEFINE_CLOCK || ev_define_what(events[i]) == EV_DEFINE_WAITED))
        i += ev_slots(events[i]);
    return i;
}

/* Definitions behind the prefix, at its time. */
static int add_definitions(prefix_events *prefix, const ev *events, uint32_t count, uint64_t ticks)
{
    if (!vec_reserve(prefix, prefix->count + count + 1))
        return -ENOMEM;
    for (uint32_t i = 0, slots; i < count; i += slots) {
        slots = ev_slots(events[i]);
        memcpy(prefix->items + prefix->count, events + i, slots * sizeof(ev));
        prefix->items[prefix->count] = ev_make(EV_DEFINE, ticks, events[i].number, events[i].place);
        prefix->count += slots;
    }
    return 0;
}

/* What has been open and is known by now. next[count]: what follows, count 0: nothing yet. Returns how many slots of it have been put,
 * too. */
static uint32_t put_prefix(recording *r, recorded_stream *st, const ev *next, uint32_t count)
{
    prefix_events prefix = {0};
    uint32_t taken = slots_of_intake(next, count);
    uint64_t before_ticks = taken < count ? ev_ticks_of(next[taken]) : UINT64_MAX;
    r->desc.lock(r->desc.context);
    int error = sim_stream_state(r->desc.sim, st->number, &r->state);
    if (!error && r->state.last_ticks != 0) { /* else all of its events are still to come */
        uint64_t ticks = ticks_at(&r->state.clock.line, r->asked_ns);
        ticks = ticks < before_ticks ? ticks : before_ticks;
        r->state.last_ticks = ticks > r->state.last_ticks ? ticks : r->state.last_ticks;
        error = prefix_make(&prefix, r->desc.catalog, st->process, &r->state);
        st->begin_ns = timebase_ns(&r->state.clock.line, r->state.last_ticks);
    }
    r->desc.unlock(r->desc.context);
    if (error || prefix.count == 0 || add_definitions(&prefix, next, taken, r->state.last_ticks) != 0)
        taken = 0;
    uint64_t begin_ns = st->begin_ns ? st->begin_ns : clock_ns(CLOCK_MONOTONIC);
    r->begin_ns = begin_ns < r->begin_ns ? begin_ns : r->begin_ns;
    record_writer_stream_begins(r->writer, st->in_file, st->pid, st->clock_source, begin_ns);
    if (!error && prefix.count > 0) /* without it what follows is still told, but for names and what is open */
        record_writer_events(r->writer, st->in_file, prefix.items, prefix.count);
    vec_free(&prefix);
    return taken;
}

/* NULL: it is not recorded. next[count]: what it has to say now; *taken: so many slots of that are in the file already. */
static recorded_stream *stream_of_next(recording *r, uint32_t stream, const ev *next, uint32_t count, uint32_t *taken)
{
    *taken = 0;
    recorded_stream *st = r->writer && stream < r->streams.count ? &r->streams.items[stream] : NULL;
    if (!st || st->number == SIM_STREAM_NONE || (st->in_file == NOT_IN_FILE && !st->is_open))
        return NULL;
    if (st->in_file == NOT_IN_FILE) {
        st->in_file = r->in_file_count++;
        *taken = put_prefix(r, st, next, count);
    }
    return st;
}

static recorded_stream *stream_of(recording *r, uint32_t stream)
{
    uint32_t none;
    return stream_of_next(r, stream, NULL, 0, &none);
}

/* What the catalog's processes are called in the file. */
static bool list_processes(const recording *r, uint32_t *streams, uint32_t count)
{
    bool has_any = false;
    for (uint32_t i = 0; i < count; i++)
        streams[i] = OVERVIEW_NOT_THERE;
    for (size_t i = 0; i < r->streams.count; i++) {
        const recorded_stream *st = &r->streams.items[i];
        if (st->process >= count || st->in_file == NOT_IN_FILE)
            continue;
        streams[st->process] = record_writer_first_stream(r->writer) + st->in_file;
        has_any = true;
    }
    return has_any;
}

/* Nobody else changes the model while this thread is here (or when there is no such thread any more), so that reading it needs
 * no lock. */
static void put_overview(recording *r)
{
    const catalog *c = r->desc.catalog;
    uint32_t node_limit = overview_node_limit(record_writer_stats_of(r->writer).event_count), count = catalog_process_count(c);
    uint64_t begin_ns = r->begin_ns, end_ns = 0;
    uint32_t *streams = node_limit > 0 ? mem_alloc((size_t)count + 1, sizeof *streams) : NULL;
    columns_bytes bytes = {0};
    for (size_t i = 0; i < r->streams.count; i++) {
        const recorded_stream *st = &r->streams.items[i];
        if (st->number == SIM_STREAM_NONE || st->in_file == NOT_IN_FILE)
            continue;
        uint64_t now_ns = sim_stream_now_ns(r->desc.sim, st->number), first_ns = catalog_process_at(c, st->process)->begin_ns;
        end_ns = now_ns > end_ns ? now_ns : end_ns;
        begin_ns = r->is_whole && first_ns < begin_ns ? first_ns : begin_ns;
    }
    overview_desc desc = {.streams = streams, .from_ns = r->is_whole ? 0 : begin_ns, .begin_ns = begin_ns, .end_ns = end_ns, .node_limit = node_limit};
    if (streams && begin_ns < end_ns && list_processes(r, streams, count) &&
        overview_build_of(c, r->history, r->desc.sim, &desc, &bytes) == 0)
        record_writer_overview(r->writer, bytes.items, bytes.count, begin_ns, end_ns);
    vec_free(&bytes);
    mem_free(streams);
}

void recording_end(recording *r)
{
    bool has_open = false;
    if (!r->writer)
        return;
    for (size_t i = 0; i < r->streams.count; i++) /* those that had nothing to say since it was begun, too */
        has_open |= r->streams.items[i].is_open && stream_of(r, (uint32_t)i) != NULL;
    if (has_open) { /* else it is settled, with an overview */
        record_writer_flush(r->writer);
        put_overview(r);
    }
    int error = record_writer_finish(r->writer);
    record_writer *done = r->writer;
    pthread_mutex_lock(&r->mutex);
    r->bytes = record_writer_stats_of(done).file_bytes;
    r->writer = NULL;
    r->is_wanted = false;
    if (error)
        snprintf(r->problem, sizeof r->problem, "%s", record_writer_problem(done));
    tell(r, error ? RECORDING_FAILED : RECORDING_WRITTEN, error ? r->problem : r->path);
    pthread_cond_broadcast(&r->ended);
    pthread_mutex_unlock(&r->mutex);
    record_writer_close(done);
}

bool recording_serve(recording *r)
{
    char path[PATH_MAX];
    pthread_mutex_lock(&r->mutex);
    bool is_wanted = r->is_wanted;
    r->is_beginning = is_wanted && !r->writer;
    if (r->is_beginning)
        memcpy(path, r->path, sizeof path);
    pthread_mutex_unlock(&r->mutex);
    if (r->writer && (!is_wanted || record_writer_problem(r->writer))) {
        recording_end(r);
        return true;
    }
    if (!r->writer && is_wanted)
        begin(r, path);
    return false;
}

/* ---- feeding: the simulation's thread ------------------------------------------------------------------------------ */

void recording_stream_begins(recording *r, uint32_t stream, uint32_t number, uint32_t process, uint32_t pid, uint32_t clock_source)
{
    if (stream != r->streams.count)
        return; /* memory was out before */
    recorded_stream *st = vec_push(&r->streams);
    if (!st)
        return;
    *st = (recorded_stream){.number = number, .process = process, .pid = pid, .clock_source = clock_source, .in_file = NOT_IN_FILE, .is_open = true};
    if (!r->writer)
        return;
    st->in_file = r->in_file_count++;
    record_writer_expect(r->writer, true);
    record_writer_stream_begins(r->writer, st->in_file, pid, clock_source, clock_ns(CLOCK_MONOTONIC));
}

void recording_events(recording *r, uint32_t stream, const ev *events, uint32_t count)
{
    uint32_t taken;
    recorded_stream *st = stream_of_next(r, stream, events, count, &taken);
    if (st && count > taken)
        record_writer_events(r->writer, st->in_file, events + taken, count - taken);
}

/* After sim_run of just these events: where a stream stands now is where a reader can start. */
void recording_state(recording *r, uint32_t stream)
{
    recorded_stream *st = stream_of(r, stream);
    if (!st || !record_writer_wants_state(r->writer, st->in_file))
        return;
    r->desc.lock(r->desc.context);
    int error = sim_stream_state(r->desc.sim, st->number, &r->state);
    r->desc.unlock(r->desc.context);
    if (!error)
        sim_state_begin_at(&r->state, st->begin_ns);
    if (!error) /* without it the file only has one place fewer to start from */
        record_writer_state(r->writer, st->in_file, &r->state);
}

/* Whoever waits for the end of its stream may read the file then. */
void recording_stream_ends(recording *r, uint32_t stream, const char *problem, bool is_last)
{
    recorded_stream *st = stream_of(r, stream);
    if (st)
        record_writer_stream_ends(r->writer, st->in_file, problem);
    if (stream < r->streams.count)
        r->streams.items[stream].is_open = false;
    if (!r->writer || !is_last)
        return;
    record_writer_expect(r->writer, false);
    record_writer_flush(r->writer);
    put_overview(r);
    record_writer_settle(r->writer);
}

/* ---- the others ------------------------------------------------------------------------------------------------------ */

void recording_want(recording *r, const char *path)
{
    pthread_mutex_lock(&r->mutex);
    if (path && !r->writer)
        snprintf(r->path, sizeof r->path, "%s", path);
    r->is_wanted = path != NULL;
    pthread_mutex_unlock(&r->mutex);
}

void recording_wait_for_end(recording *r)
{
    pthread_mutex_lock(&r->mutex);
    while (r->writer || r->is_beginning)
        pthread_cond_wait(&r->ended, &r->mutex);
    pthread_mutex_unlock(&r->mutex);
}

recording_status recording_status_of(recording *r)
{
    pthread_mutex_lock(&r->mutex);
    const char *problem = r->writer ? record_writer_problem(r->writer) : r->problem;
    recording_status status = {.is_on = r->writer != NULL, .bytes = r->writer ? record_writer_stats_of(r->writer).file_bytes : r->bytes};
    snprintf(r->seen_path, sizeof r->seen_path, "%s", r->path);
    snprintf(r->seen_problem, sizeof r->seen_problem, "%s", problem ? problem : "");
    pthread_mutex_unlock(&r->mutex);
    status.path = r->seen_path[0] ? r->seen_path : NULL;
    status.problem = r->seen_problem[0] ? r->seen_problem : NULL;
    return status;
}

bool recording_take_news(recording *r, recording_news *out)
{
    pthread_mutex_lock(&r->mutex);
    bool has_any = r->news.count > 0;
    if (has_any) {
        *out = r->news.items[0];
        memmove(r->news.items, r->news.items + 1, --r->news.count * sizeof *r->news.items);
    }
    pthread_mutex_unlock(&r->mutex);
    return has_any;
}
