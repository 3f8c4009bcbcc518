#include "record/writer_internal.h"

#include "base/mem.h"
#include "base/write.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Appends; what a failed write has left is cut off again, so that the file ends with a whole chunk. */
static int append(record_writer *w, const void *bytes, size_t count)
{
    struct stat st;
    bool is_known = fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode);
    if (is_known && st.st_nlink > 0 && (uint64_t)st.st_size != w->offset) {
        pthread_mutex_lock(&w->mutex);
        writer_fail(w, -EIO, "another program has changed the file's length");
        pthread_mutex_unlock(&w->mutex);
        return -EIO;
    }
    if (is_known && st.st_nlink == 0) {
        pthread_mutex_lock(&w->mutex);
        writer_fail(w, -ENOENT, "the file was removed");
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
    return writer_fail_now(w, error, "can't be written");
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
        return writer_fail_now(w, -ENOMEM, "");
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
static timebase_line follow_clock(writer_stream *st, const writer_buffer *b)
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

static void set_times(writer_stream *st, const writer_buffer *b, chunk_head *head)
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

static int write_events(record_writer *w, const writer_job *j)
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
    return error ? writer_fail_now(w, error, "an event is damaged") : end_chunk(w, &head);
}

static int write_small(record_writer *w, const writer_job *j)
{
    chunk_head head = begin_chunk(w, j->kind, j->stream->number);
    chunk_stream *entry = &j->stream->entry;
    head.begin_ns = j->kind == CHUNK_STREAM_BEGINS ? entry->begin_ns : entry->end_ns;
    head.end_ns = head.begin_ns;
    entry->has_ended = j->kind == CHUNK_STREAM_ENDS;
    int error = reserve_head(w);
    if (!error)
        error = add_part(w, &head, 0, j->part.items, j->part.count);
    return error ? writer_fail_now(w, error, "") : end_chunk(w, &head);
}

/* The index that the file ended with makes room for what comes now. */
static int unsettle(record_writer *w)
{
    if (w->settled_offset == 0)
        return 0;
    if (ftruncate(w->fd, (off_t)w->settled_offset) != 0 || lseek(w->fd, (off_t)w->settled_offset, SEEK_SET) < 0)
        return writer_fail_now(w, -errno, "can't be written");
    w->offset = w->settled_offset;
    w->settled_offset = 0;
    w->index.count -= w->has_overview ? 1 : 0;
    w->has_overview = false;
    return 0;
}

int writer_put_job(record_writer *w, const writer_job *j)
{
    if (j->kind == CHUNK_INDEX)
        return writer_put_index(w);
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
static void put_overview(record_writer *w)
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
int writer_put_index(record_writer *w)
{
    if (w->settled_offset != 0)
        return 0; /* nothing has come since */
    uint64_t offset = w->offset;
    put_overview(w);
    chunk_head head = begin_chunk(w, CHUNK_INDEX, 0);
    head.flags = w->error ? CHUNK_CUT_SHORT : 0;
    int error = build_index(w, &head);
    chunk_trailer trailer = {.index_offset = w->offset};
    memcpy(trailer.magic, CHUNK_TRAILER_MAGIC, sizeof trailer.magic);
    trailer.crc = chunk_trailer_crc(&trailer);
    if (!error && !vec_reserve(&w->out, w->out.count + sizeof trailer))
        error = -ENOMEM;
    if (error)
        return writer_fail_now(w, error, "");
    memcpy(w->out.items + w->out.count, &trailer, sizeof trailer);
    head.crc = chunk_head_crc(&head);
    memcpy(w->out.items, &head, sizeof head);
    error = append(w, w->out.items, w->out.count + sizeof trailer);
    if (!error)
        w->settled_offset = offset;
    return error;
}
