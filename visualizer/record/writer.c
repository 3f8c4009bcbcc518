#include "record/writer_internal.h"

#include "base/mem.h"
#include "record/state_code.h"
#include "wire/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define QUEUED_BYTES_MAX ((size_t)4 << 20) /* waiting to be packed: what is still in a cache is packed faster (bench/record) */
#define SPARE_BUFFERS 4u                    /* full-size ones kept: fresh memory costs as much as the packing's quarter */
#define BUFFER_SLOTS_MIN 256u               /* 4 KiB: there may be thousands of quiet processes */
#define QUIET_NS UINT64_C(1000000000)       /* a chunk is written when its first event is this old… */
#define LOOK_NS UINT64_C(250000000)         /* …at the next look */

/* ---- problems ------------------------------------------------------------------------------------------------- */

/* The first one counts. Mutex held. */
int writer_fail(record_writer *w, int error, const char *why, ...)
{
    if (w->error)
        return w->error;
    w->error = error;
    va_list arguments;
    va_start(arguments, why);
    char text[256];
    vsnprintf(text, sizeof text, why, arguments);
    va_end(arguments);
    snprintf(w->problem, sizeof w->problem, "%s: %s; recording has ended%s", w->path, text,
             error == -ENOENT ? "" : ", what came before is kept");
    pthread_cond_broadcast(&w->room); /* nobody waits for a disk that takes nothing */
    return error;
}

int writer_fail_now(record_writer *w, int error, const char *what)
{
    pthread_mutex_lock(&w->mutex);
    if (error == -ENOMEM)
        writer_fail(w, error, "memory is out");
    else if (error == -ENOSPC || error == -EDQUOT)
        writer_fail(w, error, "the disk is full");
    else if (error == -EFBIG)
        writer_fail(w, error, "the file may not grow any more (ulimit -f)");
    else
        writer_fail(w, error, "%s: %s", what, strerror(-error));
    pthread_mutex_unlock(&w->mutex);
    return error;
}

const char *record_writer_problem(record_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    const char *problem = w->error ? w->problem : NULL;
    pthread_mutex_unlock(&w->mutex);
    return problem;
}

record_writer_stats record_writer_stats_of(record_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    record_writer_stats stats = w->stats;
    stats.held_bytes = w->held_bytes;
    pthread_mutex_unlock(&w->mutex);
    return stats;
}

/* ---- buffers and the queue: mutex held ------------------------------------------------------------------------- */

static void give_buffer(record_writer *w, writer_buffer *b)
{
    if (b->capacity == WRITER_CHUNK_SLOTS && w->spare.count < SPARE_BUFFERS) { /* room was made in record_writer_open */
        b->count = 0;
        w->spare.items[w->spare.count++] = *b;
    } else {
        w->held_bytes -= b->capacity * sizeof(ev);
        mem_free(b->events);
    }
    *b = (writer_buffer){0};
}

/* Room for at least wanted slots, at most a chunk. */
static bool grow_buffer(record_writer *w, writer_buffer *b, uint32_t wanted)
{
    if (b->capacity == 0 && w->spare.count > 0) {
        *b = w->spare.items[--w->spare.count];
        return true;
    }
    uint32_t capacity = b->capacity ? b->capacity : BUFFER_SLOTS_MIN;
    while (capacity < wanted)
        capacity *= 2;
    ev *bigger = mem_realloc(b->events, capacity, sizeof *bigger);
    if (!bigger)
        return false;
    w->held_bytes += (capacity - b->capacity) * sizeof(ev);
    b->events = bigger;
    b->capacity = capacity;
    return true;
}

static void job_delete(record_writer *w, writer_job *j)
{
    give_buffer(w, &j->events);
    vec_free(&j->part);
    mem_free(j);
}

static writer_job *job_new(record_writer *w, chunk_kind kind, writer_stream *st)
{
    writer_job *j = mem_zalloc(1, sizeof *j);
    if (!j) {
        writer_fail(w, -ENOMEM, "memory is out");
        return NULL;
    }
    j->kind = kind;
    j->stream = st;
    return j;
}

static void queue(record_writer *w, writer_job *j)
{
    *w->last = j;
    w->last = &j->next;
    w->queued_bytes += j->events.count * sizeof(ev);
    pthread_cond_signal(&w->work);
}

/* The chunk being filled becomes a job. */
static void queue_fill(record_writer *w, writer_stream *st)
{
    if (st->fill.count == 0)
        return;
    writer_job *j = job_new(w, CHUNK_EVENTS, st);
    if (!j)
        return;
    j->events = st->fill;
    j->part.items = st->state.items;
    j->part.count = st->state.count;
    j->part.capacity = st->state.capacity;
    st->fill = (writer_buffer){0};
    st->state.items = NULL;
    st->state.count = st->state.capacity = 0;
    queue(w, j);
}

static void queue_old(record_writer *w, uint64_t older_ns)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < w->streams.count; i++) {
        writer_stream *st = w->streams.items[i];
        if (st && st->fill.count > 0 && now_ns - st->fill_ns >= older_ns)
            queue_fill(w, st);
    }
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

static void wait_for_work(record_writer *w)
{
    struct timespec until = {(time_t)(w->look_ns / 1000000000u), (long)(w->look_ns % 1000000000u)};
    pthread_cond_timedwait(&w->work, &w->mutex, &until);
}

/* Also between chunks of a busy stream, beside which others may be quiet. */
static void look_for_old(record_writer *w)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (now_ns < w->look_ns)
        return;
    w->look_ns = now_ns + LOOK_NS;
    if (!w->error)
        queue_old(w, QUIET_NS);
}

static writer_job *next_job(record_writer *w)
{
    look_for_old(w);
    while (!w->first && !w->stops) {
        wait_for_work(w);
        look_for_old(w);
    }
    writer_job *j = w->first;
    if (j) {
        w->first = j->next;
        if (!w->first)
            w->last = &w->first;
    }
    return j;
}

static void *writer_main(void *argument)
{
    record_writer *w = argument;
    pthread_mutex_lock(&w->mutex);
    for (writer_job *j; (j = next_job(w));) {
        w->is_busy = true;
        bool goes_on = !w->error;
        pthread_mutex_unlock(&w->mutex);
        if (goes_on)
            writer_put_job(w, j);
        pthread_mutex_lock(&w->mutex);
        w->is_busy = false;
        w->queued_bytes -= j->events.count * sizeof(ev);
        job_delete(w, j);
        pthread_cond_broadcast(&w->room);
    }
    pthread_mutex_unlock(&w->mutex);
    writer_put_index(w);
    return NULL;
}

/* ---- the caller's side ------------------------------------------------------------------------------------------ */

static writer_stream *stream_of(record_writer *w, uint32_t number)
{
    size_t place = (size_t)w->first_stream + number;
    return place < w->streams.count ? w->streams.items[place] : NULL;
}

/* Lossless: rather the ring fills, and the program waits. */
static void wait_for_room(record_writer *w)
{
    if (w->queued_bytes <= QUEUED_BYTES_MAX || w->error)
        return;
    w->stats.waits++;
    while (w->queued_bytes > QUEUED_BYTES_MAX && !w->error)
        pthread_cond_wait(&w->room, &w->mutex);
}

static int queue_part(record_writer *w, chunk_kind kind, writer_stream *st, const void *bytes, size_t count)
{
    writer_job *j = job_new(w, kind, st);
    if (!j)
        return w->error;
    if (!vec_reserve(&j->part, count)) {
        job_delete(w, j);
        return writer_fail(w, -ENOMEM, "memory is out");
    }
    if (count > 0)
        memcpy(j->part.items, bytes, count);
    j->part.count = count;
    queue(w, j);
    return 0;
}

static int stream_begins(record_writer *w, uint32_t number, const chunk_begins *begins)
{
    while (w->streams.count <= number) {
        writer_stream **place = vec_push(&w->streams);
        if (!place)
            return writer_fail(w, -ENOMEM, "memory is out");
        *place = NULL;
    }
    if (w->streams.items[number])
        return 0;
    writer_stream *st = mem_zalloc(1, sizeof *st);
    if (!st)
        return writer_fail(w, -ENOMEM, "memory is out");
    st->number = number;
    timebase_init(&st->clock);
    st->entry = (chunk_stream){
        .stream = number,
        .pid = begins->pid,
        .clock_source = begins->clock_source,
        .begin_ns = begins->begin_ns,
        .end_ns = begins->begin_ns,
    };
    w->streams.items[number] = st;
    return queue_part(w, CHUNK_STREAM_BEGINS, st, begins, sizeof *begins);
}

int record_writer_stream_begins(record_writer *w, uint32_t number, uint32_t pid, uint32_t clock_source, uint64_t begin_ns)
{
    chunk_begins begins = {pid, clock_source, begin_ns};
    pthread_mutex_lock(&w->mutex);
    int error = w->error ? w->error : stream_begins(w, w->first_stream + number, &begins);
    pthread_mutex_unlock(&w->mutex);
    return error;
}

static int add_events(record_writer *w, writer_stream *st, const ev *events, uint32_t count)
{
    if (st->fill.count + count > WRITER_CHUNK_SLOTS)
        queue_fill(w, st);
    uint32_t wanted = st->fill.count + count;
    if (wanted > st->fill.capacity) {
        if (w->held_bytes + wanted * sizeof(ev) > WRITER_BUDGET_BYTES) { /* many streams: smaller chunks for all */
            queue_old(w, 0);
            wanted = count;
        }
        wait_for_room(w);
        if (!w->error && !grow_buffer(w, &st->fill, wanted))
            writer_fail(w, -ENOMEM, "memory is out");
    }
    if (w->error)
        return w->error;
    if (st->fill.count == 0)
        st->fill_ns = clock_ns(CLOCK_MONOTONIC);
    memcpy(st->fill.events + st->fill.count, events, count * sizeof *events);
    st->fill.count += count;
    st->since_state += count;
    return 0;
}

/* As many of the events as fit a chunk without cutting a DEFINE. */
static uint32_t whole_piece(const ev *events, size_t slot_count)
{
    if (slot_count <= WRITER_CHUNK_SLOTS)
        return (uint32_t)slot_count;
    size_t piece = 0;
    for (size_t next = 0; next <= WRITER_CHUNK_SLOTS; next += ev_slots(events[next]))
        piece = next;
    return (uint32_t)piece;
}

int record_writer_events(record_writer *w, uint32_t number, const ev *events, size_t slot_count)
{
    pthread_mutex_lock(&w->mutex);
    writer_stream *st = stream_of(w, number);
    int error = w->error ? w->error : st ? 0 : -EINVAL;
    while (slot_count > 0 && !error) {
        uint32_t piece = whole_piece(events, slot_count);
        error = piece ? add_events(w, st, events, piece) : writer_fail(w, -EINVAL, "a definition is too long");
        events += piece;
        slot_count -= piece;
    }
    pthread_mutex_unlock(&w->mutex);
    return error;
}

int record_writer_stream_ends(record_writer *w, uint32_t number, const char *problem)
{
    pthread_mutex_lock(&w->mutex);
    writer_stream *st = stream_of(w, number);
    int error = w->error ? w->error : st ? 0 : -EINVAL;
    if (!error) {
        queue_fill(w, st);
        size_t bytes = problem ? strlen(problem) : 0;
        error = queue_part(w, CHUNK_STREAM_ENDS, st, problem, bytes < CHUNK_TEXT_BYTES_MAX ? bytes : CHUNK_TEXT_BYTES_MAX);
    }
    pthread_mutex_unlock(&w->mutex);
    return error;
}

bool record_writer_wants_state(record_writer *w, uint32_t number)
{
    pthread_mutex_lock(&w->mutex);
    const writer_stream *st = stream_of(w, number);
    bool wants = st && !w->error && st->since_state >= WRITER_STATE_EVENTS &&
                 st->since_state >= st->state_weight * WRITER_STATE_WEIGHT_EVENTS;
    pthread_mutex_unlock(&w->mutex);
    return wants;
}

int record_writer_state(record_writer *w, uint32_t number, const sim_state *state)
{
    columns_bytes bytes = {0};
    int error = state_encode(state, &bytes);
    pthread_mutex_lock(&w->mutex);
    writer_stream *st = stream_of(w, number);
    if (!error)
        error = w->error ? w->error : st ? 0 : -EINVAL;
    if (!error) {
        queue_fill(w, st);
        vec_free(&st->state);
        st->since_state = 0;
        st->state_weight = state->frames.count + state->fibers.count + state->threads.count;
        if (bytes.count <= CHUNK_STATE_BYTES_MAX) {
            st->state.items = bytes.items; /* taken over */
            st->state.count = bytes.count;
            st->state.capacity = bytes.capacity;
            bytes.items = NULL;
        }
        wait_for_room(w);
        error = w->error;
    }
    pthread_mutex_unlock(&w->mutex);
    vec_free(&bytes);
    return error;
}

/* Mutex held. */
static int wait_until_idle(record_writer *w)
{
    while (!w->error && (w->first || w->is_busy))
        pthread_cond_wait(&w->room, &w->mutex);
    return w->error;
}

int record_writer_flush(record_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    if (!w->error)
        queue_old(w, 0);
    int error = wait_until_idle(w);
    pthread_mutex_unlock(&w->mutex);
    return error;
}

int record_writer_overview(record_writer *w, const void *bytes, size_t count, uint64_t begin_ns, uint64_t end_ns)
{
    pthread_mutex_lock(&w->mutex);
    bool fits = count <= CHUNK_OVERVIEW_BYTES_MAX && vec_reserve(&w->overview, count);
    w->overview.count = fits ? count : 0;
    if (fits && count > 0)
        memcpy(w->overview.items, bytes, count);
    w->overview_begin_ns = begin_ns;
    w->overview_end_ns = end_ns;
    pthread_mutex_unlock(&w->mutex);
    return fits ? 0 : -ENOMEM;
}

int record_writer_settle(record_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    if (!w->error) {
        queue_old(w, 0);
        writer_job *j = job_new(w, CHUNK_INDEX, NULL);
        if (j)
            queue(w, j);
    }
    int error = wait_until_idle(w); /* so nobody adds a stream while the index lists them */
    pthread_mutex_unlock(&w->mutex);
    return error;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

/* Signals are the caller's; and a file that may not grow (ulimit -f) must be an error here, not a SIGXFSZ. */
static int start_thread(record_writer *w)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = -pthread_create(&w->thread, NULL, writer_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    w->has_thread = !error;
    return error;
}

static int prepare(record_writer *w, const char *path)
{
    size_t bytes = strlen(path) + 1;
    w->path = mem_alloc(bytes, 1);
    if (!w->path || !vec_reserve(&w->spare, SPARE_BUFFERS))
        return -ENOMEM;
    memcpy(w->path, path, bytes);
    return columns_coder_new(&w->coder);
}

static void writer_free(record_writer *w)
{
    for (writer_job *j = w->first, *next; j; j = next) {
        next = j->next;
        job_delete(w, j);
    }
    for (size_t i = 0; i < w->streams.count; i++) {
        if (!w->streams.items[i])
            continue;
        mem_free(w->streams.items[i]->fill.events);
        vec_free(&w->streams.items[i]->state);
        mem_free(w->streams.items[i]);
    }
    for (size_t i = 0; i < w->spare.count; i++)
        mem_free(w->spare.items[i].events);
    vec_free(&w->spare);
    vec_free(&w->streams);
    vec_free(&w->index);
    vec_free(&w->overview);
    vec_free(&w->out);
    vec_free(&w->definitions);
    vec_free(&w->columns);
    columns_coder_delete(w->coder);
    if (w->fd >= 0)
        close(w->fd);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->room);
    pthread_mutex_destroy(&w->mutex);
    mem_free(w->path);
    mem_free(w);
}

static int open_writer(record_writer **out, const char *path, bool goes_on, char *error, size_t error_bytes)
{
    *out = NULL;
    record_writer *w = mem_zalloc(1, sizeof *w);
    if (!w)
        return writer_say(error, error_bytes, -ENOMEM, path, "memory is out");
    w->fd = -1;
    w->last = &w->first;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->work, &attributes);
    pthread_cond_init(&w->room, &attributes);
    pthread_condattr_destroy(&attributes);
    int code = prepare(w, path);
    if (code)
        writer_say(error, error_bytes, code, path, "memory is out");
    if (!code)
        code = writer_open_file(w, goes_on, error, error_bytes);
    if (!code && (code = start_thread(w)) != 0)
        writer_say(error, error_bytes, code, path, "no thread could be started to write it");
    if (code) {
        writer_free(w);
        return code;
    }
    *out = w;
    return 0;
}

int record_writer_open(record_writer **out, const char *path, char *error, size_t error_bytes)
{
    return open_writer(out, path, false, error, error_bytes);
}

int record_writer_go_on(record_writer **out, const char *path, char *error, size_t error_bytes)
{
    return open_writer(out, path, true, error, error_bytes);
}

uint32_t record_writer_first_stream(const record_writer *w) { return w->first_stream; }

int record_writer_finish(record_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    if (!w->error)
        queue_old(w, 0);
    w->stops = true;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->mutex);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    w->has_thread = false;
    if (w->fd >= 0 && close(w->fd) != 0)
        writer_fail_now(w, -errno, "can't be written");
    w->fd = -1;
    return w->error;
}

void record_writer_close(record_writer *w)
{
    if (!w)
        return;
    record_writer_finish(w);
    writer_free(w);
}
