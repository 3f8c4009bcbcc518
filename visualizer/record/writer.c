#include "record/writer.h"

#include "base/mem.h"
#include "record/chunk.h"
#include "record/columns.h"
#include "record/reader.h"
#include "record/state_code.h"
#include "sim/timebase.h"
#include "wire/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QUEUED_BYTES_MAX ((size_t)16 << 20) /* waiting to be packed; some 15 ms of work */
#define SPARE_BUFFERS 4u                    /* full-size ones kept: fresh memory costs as much as the packing's quarter */
#define BUSY_TRIES 300u                     /* 3 s: the session that recorded into the file before is just ending… */
#define BUSY_WAIT_US 10000u
#define BUFFER_SLOTS_MIN 256u               /* 4 KiB: there may be thousands of quiet processes */
#define QUIET_NS UINT64_C(1000000000)       /* a chunk is written when its first event is this old… */
#define LOOK_NS UINT64_C(250000000)         /* …at the next look */

typedef struct buffer {
    ev *events; /* owned */
    uint32_t count, capacity;
} buffer;

/* What the thread writes: one chunk. */
typedef struct job {
    struct job *next;
    chunk_kind kind;
    struct stream *stream;
    buffer events;
    columns_bytes part; /* EVENTS: the state; BEGINS: chunk_begins; ENDS: text */
} job;

typedef struct stream {
    uint32_t number;
    /* Under the mutex: */
    buffer fill;
    uint64_t fill_ns;       /* when its first event came */
    columns_bytes state;    /* of before fill; empty: none */
    uint64_t since_state;   /* slots */
    uint64_t state_weight;  /* things in the last state */
    /* The thread's: */
    timebase clock;
    uint64_t last_ticks;
    chunk_stream entry;
} stream;

struct record_writer {
    int fd;
    char *path; /* owned */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t work, room; /* something to do; something is done */
    /* Under the mutex: */
    VEC(stream *) streams; /* by number in the file; NULL: has not begun. Owned; only the caller adds */
    uint32_t first_stream; /* the caller's number 0 in the file; constant */
    job *first, **last;
    size_t queued_bytes, held_bytes; /* of events in the queue; of all buffers */
    VEC(buffer) spare;
    bool is_busy, stops;
    uint64_t look_ns; /* when chunks of quiet streams are looked for next */
    int error;
    char problem[512];
    record_writer_stats stats;
    columns_bytes overview; /* to be written with the next index; empty: none */
    uint64_t overview_begin_ns, overview_end_ns;
    /* The thread's: */
    columns_coder *coder;
    columns_bytes out, definitions, columns; /* the chunk being made */
    uint64_t offset;                /* where it goes */
    uint64_t settled_offset;        /* where the overview and the index stand that the file ends with now; 0: it ends with none */
    bool has_overview;              /* the overview before that index is the last of w->index */
    VEC(chunk_entry) index;
};

/* ---- problems ------------------------------------------------------------------------------------------------- */

/* The first one counts. Mutex held. */
__attribute__((format(printf, 3, 4))) static int fail(record_writer *w, int error, const char *why, ...)
{
    if (w->error)
        return w->error;
    w->error = error;
    va_list arguments;
    va_start(arguments, why);
    char text[256];
    vsnprintf(text, sizeof text, why, arguments);
    va_end(arguments);
    snprintf(w->problem, sizeof w->problem, "%s: %s; recording has ended, what came before is kept", w->path, text);
    pthread_cond_broadcast(&w->room); /* nobody waits for a disk that takes nothing */
    return error;
}

static int fail_now(record_writer *w, int error, const char *what)
{
    pthread_mutex_lock(&w->mutex);
    if (error == -ENOMEM)
        fail(w, error, "memory is out");
    else if (error == -ENOSPC || error == -EDQUOT)
        fail(w, error, "the disk is full");
    else if (error == -EFBIG)
        fail(w, error, "the file may not grow any more (ulimit -f)");
    else
        fail(w, error, "%s: %s", what, strerror(-error));
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
    pthread_mutex_unlock(&w->mutex);
    return stats;
}

/* ---- output: the thread alone --------------------------------------------------------------------------------- */

static int write_all(int fd, const void *bytes, size_t count)
{
    const char *p = bytes;
    while (count > 0) {
        ssize_t written = write(fd, p, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        p += written;
        count -= (size_t)written;
    }
    return 0;
}

/* Appends; what a failed write has left is cut off again, so that the file ends with a whole chunk. */
static int append(record_writer *w, const void *bytes, size_t count)
{
    struct stat st;
    if (fstat(w->fd, &st) == 0 && st.st_nlink == 0) {
        pthread_mutex_lock(&w->mutex);
        fail(w, -ENOENT, "the file was removed");
        pthread_mutex_unlock(&w->mutex);
        return -ENOENT;
    }
    int error = write_all(w->fd, bytes, count);
    if (!error) {
        w->offset += count;
        return 0;
    }
    if (ftruncate(w->fd, (off_t)w->offset) == 0)
        lseek(w->fd, (off_t)w->offset, SEEK_SET);
    return fail_now(w, error, "can't be written");
}

static chunk_head begin_chunk(record_writer *w, chunk_kind kind, uint32_t stream_number)
{
    w->out.count = 0;
    return (chunk_head){
        .magic = CHUNK_MAGIC,
        .kind = (uint16_t)kind,
        .stream = stream_number,
        .number = (uint32_t)w->index.count,
    };
}

/* Parts are appended to w->out behind room for the head, in order; raw_bytes: before packing. */
static void end_part(record_writer *w, chunk_head *head, int part, size_t begin, size_t raw_bytes)
{
    size_t bytes = w->out.count - begin;
    head->parts[part] = (chunk_part){
        .packed_bytes = (uint32_t)bytes,
        .raw_bytes = (uint32_t)raw_bytes,
        .crc = crc32c(0, w->out.items + begin, bytes),
    };
}

static int add_part(record_writer *w, chunk_head *head, int part, const void *raw, size_t raw_bytes)
{
    size_t begin = w->out.count;
    int error = columns_pack(w->coder, raw, raw_bytes, &w->out);
    if (!error)
        end_part(w, head, part, begin, raw_bytes);
    return error;
}

static int reserve_head(record_writer *w)
{
    if (!vec_reserve(&w->out, sizeof(chunk_head)))
        return -ENOMEM;
    w->out.count = sizeof(chunk_head);
    return 0;
}

static int end_chunk(record_writer *w, chunk_head *head)
{
    if (!vec_reserve(&w->index, w->index.count + 1))
        return fail_now(w, -ENOMEM, "");
    head->crc = chunk_head_crc(head);
    memcpy(w->out.items, head, sizeof *head);
    chunk_entry entry = {w->offset, *head};
    int error = append(w, w->out.items, w->out.count);
    if (error)
        return error;
    w->index.items[w->index.count++] = entry;
    pthread_mutex_lock(&w->mutex);
    w->stats.file_bytes = w->offset;
    w->stats.chunk_count = w->index.count;
    w->stats.event_count += head->event_count;
    pthread_mutex_unlock(&w->mutex);
    return 0;
}

/* ---- chunks: the thread alone ---------------------------------------------------------------------------------- */

/* The clock's line as the simulation will have it after these events. Returns the line of the first of them: a stream's
 * first two pairs give one, and later pairs begin new ones, which say nothing of what came before. */
static timebase_line follow_clock(stream *st, const buffer *b)
{
    uint64_t last_ticks = st->last_ticks;
    timebase_line first = st->clock.line;
    bool is_known = st->clock.pair_count >= 2;
    for (uint32_t i = 0; i < b->count; i++) {
        ev e = b->events[i];
        ev_clock_def pair;
        if (ev_kind_of(e) == EV_DEFINE) {
            if (ev_define_what(e) == EV_DEFINE_CLOCK && e.place >= sizeof pair) {
                memcpy(&pair, b->events + i + 1, sizeof pair);
                timebase_calibrate(&st->clock, &pair, last_ticks);
                first = is_known ? first : st->clock.line;
                is_known |= st->clock.pair_count >= 2;
            }
            i += ev_define_slots(e.place); /* all there: columns_encode has looked */
        }
        last_ticks = ev_ticks_of(e);
    }
    st->last_ticks = last_ticks;
    return first;
}

static void set_times(stream *st, const buffer *b, chunk_head *head)
{
    timebase_line first = st->clock.line;
    if (head->define_count > 0)
        first = follow_clock(st, b);
    else
        st->last_ticks = ev_ticks_of(b->events[b->count - 1]);
    head->begin_ns = timebase_ns(&first, ev_ticks_of(b->events[0]));
    head->end_ns = timebase_ns(&st->clock.line, st->last_ticks);
    if (head->end_ns < head->begin_ns)
        head->end_ns = head->begin_ns;
    st->entry.end_ns = head->end_ns > st->entry.end_ns ? head->end_ns : st->entry.end_ns;
    st->entry.event_count += head->event_count;
}

static int write_events(record_writer *w, const job *j)
{
    chunk_head head = begin_chunk(w, CHUNK_EVENTS, j->stream->number);
    head.slot_count = j->events.count;
    w->definitions.count = w->columns.count = 0;
    /* The columns are made first, as that finds the definitions, and stand last. */
    int error = columns_encode(w->coder, j->events.events, j->events.count, &w->columns, &w->definitions, &head.event_count,
                               &head.define_count);
    if (!error)
        error = reserve_head(w);
    if (!error)
        error = add_part(w, &head, 0, w->definitions.items, w->definitions.count);
    if (!error)
        error = add_part(w, &head, 1, j->part.items, j->part.count);
    size_t begin = w->out.count;
    if (!error && !vec_reserve(&w->out, begin + w->columns.count))
        error = -ENOMEM;
    if (!error) {
        memcpy(w->out.items + begin, w->columns.items, w->columns.count);
        w->out.count += w->columns.count;
        end_part(w, &head, 2, begin, w->columns.count);
        set_times(j->stream, &j->events, &head);
    }
    return error ? fail_now(w, error, "an event is damaged") : end_chunk(w, &head);
}

static int write_small(record_writer *w, const job *j)
{
    chunk_head head = begin_chunk(w, j->kind, j->stream->number);
    chunk_stream *entry = &j->stream->entry;
    head.begin_ns = j->kind == CHUNK_STREAM_BEGINS ? entry->begin_ns : entry->end_ns;
    head.end_ns = head.begin_ns;
    entry->has_ended = j->kind == CHUNK_STREAM_ENDS;
    int error = reserve_head(w);
    if (!error)
        error = add_part(w, &head, 0, j->part.items, j->part.count);
    return error ? fail_now(w, error, "") : end_chunk(w, &head);
}

/* The index that the file ended with makes room for what comes now. */
static int unsettle(record_writer *w)
{
    if (w->settled_offset == 0)
        return 0;
    if (ftruncate(w->fd, (off_t)w->settled_offset) != 0 || lseek(w->fd, (off_t)w->settled_offset, SEEK_SET) < 0)
        return fail_now(w, -errno, "can't be written");
    w->offset = w->settled_offset;
    w->settled_offset = 0;
    w->index.count -= w->has_overview ? 1 : 0;
    w->has_overview = false;
    return 0;
}

static int write_index(record_writer *w);

static int write_job(record_writer *w, const job *j)
{
    if (j->kind == CHUNK_INDEX)
        return write_index(w);
    int error = unsettle(w);
    if (error)
        return error;
    return j->kind == CHUNK_EVENTS ? write_events(w, j) : write_small(w, j);
}

/* The streams' entries one after another. */
static int list_streams(record_writer *w, columns_bytes *out)
{
    for (size_t i = 0; i < w->streams.count; i++) {
        if (!w->streams.items[i])
            continue;
        if (!vec_reserve(out, out->count + sizeof(chunk_stream)))
            return -ENOMEM;
        memcpy(out->items + out->count, &w->streams.items[i]->entry, sizeof(chunk_stream));
        out->count += sizeof(chunk_stream);
    }
    return 0;
}

static int build_index(record_writer *w, chunk_head *head)
{
    columns_bytes streams = {0};
    int error = list_streams(w, &streams);
    chunk_index_head sizes = {
        .stream_count = (uint32_t)(streams.count / sizeof(chunk_stream)),
        .stream_bytes = sizeof(chunk_stream),
        .entry_count = (uint32_t)w->index.count,
        .entry_bytes = sizeof(chunk_entry),
    };
    if (!error)
        error = reserve_head(w);
    if (!error)
        error = add_part(w, head, 0, &sizes, sizeof sizes);
    if (!error)
        error = add_part(w, head, 1, streams.items, streams.count);
    if (!error)
        error = add_part(w, head, 2, w->index.items, w->index.count * sizeof(chunk_entry));
    vec_free(&streams);
    return error;
}

/* Of all streams; where it can't be made, the file only opens with less to see. */
static void write_overview(record_writer *w)
{
    columns_bytes bytes = {0};
    chunk_head head = begin_chunk(w, CHUNK_OVERVIEW, 0);
    pthread_mutex_lock(&w->mutex);
    bool is_wanted = !w->error && w->overview.count > 0;
    head.begin_ns = w->overview_begin_ns;
    head.end_ns = w->overview_end_ns;
    if (is_wanted) {
        bytes.items = w->overview.items; /* taken over */
        bytes.count = w->overview.count;
        w->overview.items = NULL;
        w->overview.count = w->overview.capacity = 0;
    }
    pthread_mutex_unlock(&w->mutex);
    if (is_wanted && reserve_head(w) == 0 && add_part(w, &head, 0, bytes.items, bytes.count) == 0)
        w->has_overview = end_chunk(w, &head) == 0;
    vec_free(&bytes);
}

/* Also tried after a failure: on a full disk there may be room for it, where the last chunk was cut off. */
static int write_index(record_writer *w)
{
    if (w->settled_offset != 0)
        return 0; /* nothing has come since */
    uint64_t offset = w->offset;
    write_overview(w);
    chunk_head head = begin_chunk(w, CHUNK_INDEX, 0);
    head.flags = w->error ? CHUNK_CUT_SHORT : 0;
    int error = build_index(w, &head);
    chunk_trailer trailer = {.index_offset = w->offset};
    memcpy(trailer.magic, CHUNK_TRAILER_MAGIC, sizeof trailer.magic);
    trailer.crc = chunk_trailer_crc(&trailer);
    if (!error && !vec_reserve(&w->out, w->out.count + sizeof trailer))
        error = -ENOMEM;
    if (error)
        return fail_now(w, error, "");
    memcpy(w->out.items + w->out.count, &trailer, sizeof trailer);
    head.crc = chunk_head_crc(&head);
    memcpy(w->out.items, &head, sizeof head);
    error = append(w, w->out.items, w->out.count + sizeof trailer);
    if (!error)
        w->settled_offset = offset;
    return error;
}

/* ---- buffers and the queue: mutex held ------------------------------------------------------------------------- */

static void give_buffer(record_writer *w, buffer *b)
{
    if (b->capacity == WRITER_CHUNK_SLOTS && w->spare.count < SPARE_BUFFERS) { /* room was made in record_writer_open */
        b->count = 0;
        w->spare.items[w->spare.count++] = *b;
    } else {
        w->held_bytes -= b->capacity * sizeof(ev);
        mem_free(b->events);
    }
    *b = (buffer){0};
}

/* Room for at least wanted slots, at most a chunk. */
static bool grow_buffer(record_writer *w, buffer *b, uint32_t wanted)
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

static void job_delete(record_writer *w, job *j)
{
    give_buffer(w, &j->events);
    vec_free(&j->part);
    mem_free(j);
}

static job *job_new(record_writer *w, chunk_kind kind, stream *st)
{
    job *j = mem_zalloc(1, sizeof *j);
    if (!j) {
        fail(w, -ENOMEM, "memory is out");
        return NULL;
    }
    j->kind = kind;
    j->stream = st;
    return j;
}

static void queue(record_writer *w, job *j)
{
    *w->last = j;
    w->last = &j->next;
    w->queued_bytes += j->events.count * sizeof(ev);
    pthread_cond_signal(&w->work);
}

/* The chunk being filled becomes a job. */
static void queue_fill(record_writer *w, stream *st)
{
    if (st->fill.count == 0)
        return;
    job *j = job_new(w, CHUNK_EVENTS, st);
    if (!j)
        return;
    j->events = st->fill;
    j->part.items = st->state.items;
    j->part.count = st->state.count;
    j->part.capacity = st->state.capacity;
    st->fill = (buffer){0};
    st->state.items = NULL;
    st->state.count = st->state.capacity = 0;
    queue(w, j);
}

static void queue_old(record_writer *w, uint64_t older_ns)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < w->streams.count; i++) {
        stream *st = w->streams.items[i];
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

static job *next_job(record_writer *w)
{
    look_for_old(w);
    while (!w->first && !w->stops) {
        wait_for_work(w);
        look_for_old(w);
    }
    job *j = w->first;
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
    for (job *j; (j = next_job(w));) {
        w->is_busy = true;
        bool goes_on = !w->error;
        pthread_mutex_unlock(&w->mutex);
        if (goes_on)
            write_job(w, j);
        pthread_mutex_lock(&w->mutex);
        w->is_busy = false;
        w->queued_bytes -= j->events.count * sizeof(ev);
        job_delete(w, j);
        pthread_cond_broadcast(&w->room);
    }
    pthread_mutex_unlock(&w->mutex);
    write_index(w);
    return NULL;
}

/* ---- the caller's side ------------------------------------------------------------------------------------------ */

static stream *stream_of(record_writer *w, uint32_t number)
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

static int queue_part(record_writer *w, chunk_kind kind, stream *st, const void *bytes, size_t count)
{
    job *j = job_new(w, kind, st);
    if (!j)
        return w->error;
    if (!vec_reserve(&j->part, count)) {
        job_delete(w, j);
        return fail(w, -ENOMEM, "memory is out");
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
        stream **place = vec_push(&w->streams);
        if (!place)
            return fail(w, -ENOMEM, "memory is out");
        *place = NULL;
    }
    if (w->streams.items[number])
        return 0;
    stream *st = mem_zalloc(1, sizeof *st);
    if (!st)
        return fail(w, -ENOMEM, "memory is out");
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

static int add_events(record_writer *w, stream *st, const ev *events, uint32_t count)
{
    if (st->fill.count + count > WRITER_CHUNK_SLOTS)
        queue_fill(w, st);
    uint32_t wanted = st->fill.count + count;
    if (wanted > st->fill.capacity) {
        bool is_over = w->held_bytes + wanted * sizeof(ev) > WRITER_BUDGET_BYTES;
        if (is_over && st->fill.count > 0) {
            queue_fill(w, st);
            wanted = count;
        }
        wait_for_room(w);
        if (!w->error && !grow_buffer(w, &st->fill, wanted))
            fail(w, -ENOMEM, "memory is out");
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
    for (size_t next = 0; next <= WRITER_CHUNK_SLOTS; next += ev_kind_of(events[next]) == EV_DEFINE ? 1 + ev_define_slots(events[next].place) : 1)
        piece = next;
    return (uint32_t)piece;
}

int record_writer_events(record_writer *w, uint32_t number, const ev *events, size_t slot_count)
{
    pthread_mutex_lock(&w->mutex);
    stream *st = stream_of(w, number);
    int error = w->error ? w->error : st ? 0 : -EINVAL;
    while (slot_count > 0 && !error) {
        uint32_t piece = whole_piece(events, slot_count);
        error = piece ? add_events(w, st, events, piece) : fail(w, -EINVAL, "a definition is too long");
        events += piece;
        slot_count -= piece;
    }
    pthread_mutex_unlock(&w->mutex);
    return error;
}

int record_writer_stream_ends(record_writer *w, uint32_t number, const char *problem)
{
    pthread_mutex_lock(&w->mutex);
    stream *st = stream_of(w, number);
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
    const stream *st = stream_of(w, number);
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
    stream *st = stream_of(w, number);
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
        job *j = job_new(w, CHUNK_INDEX, NULL);
        if (j)
            queue(w, j);
    }
    int error = wait_until_idle(w); /* so nobody adds a stream while the index lists them */
    pthread_mutex_unlock(&w->mutex);
    return error;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static int say(char *error, size_t error_bytes, int code, const char *path, const char *why)
{
    snprintf(error, error_bytes, "%s: %s", path, why);
    return code;
}

/* An empty file, an older recording, or nothing: may be written over. */
static bool is_ours(int fd)
{
    char magic[sizeof CHUNK_FILE_MAGIC - 1];
    ssize_t count = pread(fd, magic, sizeof magic, 0);
    return count <= 0 || (count == sizeof magic && memcmp(magic, CHUNK_FILE_MAGIC, sizeof magic) == 0);
}

/* A descriptor that may be written, or -errno and one line. Nothing in it is touched yet. */
static int open_path(const char *path, unsigned busy_tries, char *error, size_t error_bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0)
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666); /* a device or a pipe */
    if (fd < 0) {
        int code = -errno;
        snprintf(error, error_bytes, "%s: can't be written: %s", path, strerror(-code));
        return code;
    }
    struct stat st;
    int code = 0;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return fd;
    bool is_busy;
    while ((is_busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) && busy_tries-- > 0)
        usleep(BUSY_WAIT_US);
    if (is_busy)
        code = say(error, error_bytes, -EBUSY, path, "is being recorded into by another session; choose another name");
    else if (!is_ours(fd))
        code = say(error, error_bytes, -EEXIST, path, "exists and is no recording; remove it or choose another name");
    if (code)
        close(fd);
    return code ? code : fd;
}

int record_writer_check(const char *path, bool goes_on, char *error, size_t error_bytes)
{
    int fd = open_path(path, goes_on ? BUSY_TRIES : 0, error, error_bytes);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

/* A stream that was recorded before: it is listed in the index, and no more. */
static int adopt_stream(record_writer *w, const record_stream *before)
{
    while (w->streams.count <= before->stream) {
        stream **place = vec_push(&w->streams);
        if (!place)
            return -ENOMEM;
        *place = NULL;
    }
    stream *st = mem_zalloc(1, sizeof *st);
    if (!st)
        return -ENOMEM;
    st->number = before->stream;
    st->entry = (chunk_stream){
        .stream = before->stream,
        .pid = before->pid,
        .clock_source = before->clock_source,
        .has_ended = before->has_ended,
        .begin_ns = before->begin_ns,
        .end_ns = before->end_ns,
        .event_count = before->event_count,
    };
    w->streams.items[before->stream] = st;
    return 0;
}

static int adopt_chunk(record_writer *w, const record_chunk *before)
{
    chunk_entry *entry = vec_push(&w->index);
    if (!entry)
        return -ENOMEM;
    entry->offset = before->offset;
    if (pread(w->fd, &entry->head, sizeof entry->head, (off_t)before->offset) != sizeof entry->head)
        return -EIO;
    w->offset = before->offset + before->bytes > w->offset ? before->offset + before->bytes : w->offset;
    w->stats.event_count += before->event_count;
    return 0;
}

/* The chunks that are whole stay; what comes after them, an index or a damaged end, makes room. */
static int adopt(record_writer *w, char *error, size_t error_bytes)
{
    record_reader *before;
    int code = record_open(&before, w->path, error, error_bytes);
    if (code)
        return code;
    record_info info = record_info_of(before);
    w->offset = sizeof(chunk_file_header);
    for (uint32_t i = 0; i < info.stream_count && !code; i++) {
        record_stream st = record_stream_at(before, i);
        code = adopt_stream(w, &st);
    }
    for (uint32_t i = 0; i < info.chunk_count && !code; i++) {
        record_chunk c = record_chunk_at(before, i);
        code = adopt_chunk(w, &c);
    }
    record_close(before);
    w->first_stream = (uint32_t)w->streams.count;
    w->stats.chunk_count = w->index.count;
    w->stats.file_bytes = w->offset;
    if (!code && (ftruncate(w->fd, (off_t)w->offset) != 0 || lseek(w->fd, (off_t)w->offset, SEEK_SET) < 0))
        code = -errno;
    if (code)
        snprintf(error, error_bytes, "%s: can't be gone on with: %s", w->path, strerror(-code));
    return code;
}

static bool is_empty(int fd)
{
    struct stat st;
    return fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0;
}

static int write_file_header(record_writer *w, char *error, size_t error_bytes);

static int open_file(record_writer *w, bool goes_on, char *error, size_t error_bytes)
{
    w->fd = open_path(w->path, goes_on ? BUSY_TRIES : 0, error, error_bytes);
    if (w->fd < 0)
        return w->fd;
    if (goes_on && !is_empty(w->fd))
        return adopt(w, error, error_bytes);
    struct stat st;
    if (fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(w->fd, 0) != 0) {
        int code = -errno;
        snprintf(error, error_bytes, "%s: can't be emptied: %s", w->path, strerror(-code));
        return code;
    }
    return write_file_header(w, error, error_bytes);
}

static int write_file_header(record_writer *w, char *error, size_t error_bytes)
{
    chunk_file_header header = {
        .version = CHUNK_FILE_VERSION,
        .header_bytes = sizeof header,
        .begin_ns = clock_ns(CLOCK_MONOTONIC),
        .realtime_ns = clock_ns(CLOCK_REALTIME),
    };
    memcpy(header.magic, CHUNK_FILE_MAGIC, sizeof header.magic);
    header.crc = chunk_file_crc(&header);
    int code = write_all(w->fd, &header, sizeof header);
    if (code)
        snprintf(error, error_bytes, "%s: can't be written: %s", w->path, strerror(-code));
    w->offset = sizeof header;
    return code;
}

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
    for (job *j = w->first, *next; j; j = next) {
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
        return say(error, error_bytes, -ENOMEM, path, "memory is out");
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
        say(error, error_bytes, code, path, "memory is out");
    if (!code)
        code = open_file(w, goes_on, error, error_bytes);
    if (!code && (code = start_thread(w)) != 0)
        say(error, error_bytes, code, path, "no thread could be started to write it");
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
        fail_now(w, -errno, "can't be written");
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
