#include "record/reader.h"

#include "base/map.h"
#include "base/mem.h"
#include "record/chunk.h"
#include "record/columns.h"
#include "record/state_code.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* No chunk's part is larger than what the largest chunk can need, packed or raw. */
#define PART_BYTES_MAX ((size_t)COLUMNS_EVENTS_MAX * 24u)
#define SCAN_BYTES 65536u

/* What one reading thread needs; lent out and taken back. */
typedef struct desk {
    columns_coder *coder;
    columns_bytes packed, raw;
    struct desk *next;
} desk;

typedef struct entry {
    uint64_t offset;
    chunk_head head;
    bool after_gap;
} entry;

struct record_reader {
    int fd;
    char *path; /* owned */
    chunk_file_header header;
    uint64_t file_bytes;
    uint64_t known_bytes; /* behind the last chunk: what comes next begins here */
    bool is_complete;
    VEC(entry) entries;
    VEC(record_stream) streams;
    map stream_ids; /* number -> index of streams */
    uint64_t begin_ns, end_ns, event_count;
    pthread_mutex_t mutex;
    char problem[RECORD_PROBLEM_BYTES]; /* under the mutex, as is desks */
    desk *desks;
};

/* ---- problems -------------------------------------------------------------------------------------------------- */

/* The first one is kept. */
__attribute__((format(printf, 2, 3))) static void note(record_reader *r, const char *what, ...)
{
    char text[RECORD_PROBLEM_BYTES / 2];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    pthread_mutex_lock(&r->mutex);
    if (!r->problem[0])
        snprintf(r->problem, sizeof r->problem, "%s: %s", r->path, text);
    pthread_mutex_unlock(&r->mutex);
}

static double seconds_of(const record_reader *r, uint64_t ns)
{
    return ns > r->begin_ns ? (double)(ns - r->begin_ns) / 1e9 : 0.0;
}

static int say(char *error, size_t error_bytes, int code, const char *path, const char *why)
{
    snprintf(error, error_bytes, "%s: %s", path, why);
    return code;
}

/* ---- reading bytes ----------------------------------------------------------------------------------------------- */

/* 0, -EBADMSG: the file ends before, or -errno. */
static int read_at(const record_reader *r, uint64_t offset, void *out, size_t count)
{
    char *p = out;
    if (offset > r->file_bytes || count > r->file_bytes - offset)
        return -EBADMSG;
    while (count > 0) {
        ssize_t got = pread(r->fd, p, count, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EBADMSG; /* 0: somebody has cut the file since */
        p += got;
        offset += (size_t)got;
        count -= (size_t)got;
    }
    return 0;
}

static desk *take_desk(record_reader *r)
{
    pthread_mutex_lock(&r->mutex);
    desk *d = r->desks;
    if (d)
        r->desks = d->next;
    pthread_mutex_unlock(&r->mutex);
    if (d || !(d = mem_zalloc(1, sizeof *d)))
        return d;
    if (columns_coder_new(&d->coder) == 0)
        return d;
    mem_free(d);
    return NULL;
}

static void give_desk(record_reader *r, desk *d)
{
    pthread_mutex_lock(&r->mutex);
    d->next = r->desks;
    r->desks = d;
    pthread_mutex_unlock(&r->mutex);
}

static uint64_t part_offset(const chunk_head *h, uint64_t offset, int part)
{
    offset += sizeof *h;
    for (int i = 0; i < part; i++)
        offset += h->parts[i].packed_bytes;
    return offset;
}

/* One part, as it is in the file; its checksum is right. */
static int read_packed(record_reader *r, desk *d, const chunk_head *h, uint64_t offset, int part)
{
    const chunk_part *p = &h->parts[part];
    if (!vec_reserve(&d->packed, p->packed_bytes))
        return -ENOMEM;
    d->packed.count = p->packed_bytes;
    int error = read_at(r, part_offset(h, offset, part), d->packed.items, p->packed_bytes);
    if (error)
        return error;
    return crc32c(0, d->packed.items, p->packed_bytes) == p->crc ? 0 : -EBADMSG;
}

/* …and unpacked into d->raw; raw_max: more than that is refused. */
static int read_part(record_reader *r, desk *d, const chunk_head *h, uint64_t offset, int part, size_t raw_max)
{
    size_t raw_bytes = h->parts[part].raw_bytes;
    if (raw_bytes > raw_max || h->parts[part].packed_bytes > raw_bytes)
        return -EBADMSG;
    int error = read_packed(r, d, h, offset, part);
    if (!error && !vec_reserve(&d->raw, raw_bytes))
        error = -ENOMEM;
    if (error)
        return error;
    d->raw.count = raw_bytes;
    return columns_unpack(d->coder, d->packed.items, d->packed.count, d->raw.items, raw_bytes);
}

/* ---- heads -------------------------------------------------------------------------------------------------------- */

/* Numbers of streams are dense, and each stream has a head: readers may have arrays as long as the highest number. */
static bool is_number_sound(const record_reader *r, uint32_t stream) { return stream < r->file_bytes / sizeof(chunk_head); }

/* Is this what a head can be, in a file of this size? */
static bool is_sound(const record_reader *r, const chunk_head *h, uint64_t offset)
{
    if (h->magic != CHUNK_MAGIC || h->crc != chunk_head_crc(h))
        return false;
    if (offset > r->file_bytes || chunk_bytes(h) > r->file_bytes - offset || !is_number_sound(r, h->stream))
        return false;
    if (h->kind == CHUNK_EVENTS && (h->slot_count == 0 || h->slot_count > COLUMNS_EVENTS_MAX || h->event_count > h->slot_count ||
                                    h->parts[2].packed_bytes > PART_BYTES_MAX || h->end_ns < h->begin_ns))
        return false;
    return true;
}

static record_stream *stream_of(record_reader *r, uint32_t number)
{
    uint32_t id = map_get(&r->stream_ids, number);
    if (id != MAP_NONE)
        return &r->streams.items[id];
    record_stream *st = vec_push(&r->streams);
    if (!st)
        return NULL;
    *st = (record_stream){.stream = number};
    if (map_put(&r->stream_ids, number, (uint32_t)(r->streams.count - 1)) != 0) {
        r->streams.count--;
        return NULL;
    }
    return st;
}

static int count_chunk(record_reader *r, record_stream *st, const entry *e)
{
    const chunk_head *h = &e->head;
    st->chunk_count++;
    if (h->kind == CHUNK_STREAM_ENDS)
        st->has_ended = true;
    if (h->kind == CHUNK_STREAM_BEGINS)
        st->begin_ns = st->end_ns = h->begin_ns;
    if (h->kind != CHUNK_EVENTS)
        return 0;
    st->event_count += h->event_count;
    r->event_count += h->event_count;
    if (r->begin_ns == 0 || h->begin_ns < r->begin_ns)
        r->begin_ns = h->begin_ns;
    if (h->end_ns > r->end_ns)
        r->end_ns = h->end_ns;
    if (st->begin_ns == 0)
        st->begin_ns = h->begin_ns;
    if (h->end_ns > st->end_ns)
        st->end_ns = h->end_ns;
    return 0;
}

/* Into the list, and into what is known of its stream. */
static int add_entry(record_reader *r, uint64_t offset, const chunk_head *h)
{
    uint32_t expected = r->entries.count ? r->entries.items[r->entries.count - 1].head.number + 1 : 0;
    entry *e = vec_push(&r->entries);
    if (!e)
        return -ENOMEM;
    *e = (entry){offset, *h, h->number != expected};
    r->known_bytes = offset + chunk_bytes(h);
    bool has_stream = h->kind == CHUNK_EVENTS || h->kind == CHUNK_STREAM_BEGINS || h->kind == CHUNK_STREAM_ENDS;
    record_stream *st = has_stream ? stream_of(r, h->stream) : NULL;
    if (has_stream && !st)
        return -ENOMEM;
    return st ? count_chunk(r, st, e) : 0;
}

/* ---- the index ------------------------------------------------------------------------------------------------------ */

static int find_index(const record_reader *r, chunk_head *head, uint64_t *offset)
{
    chunk_trailer t;
    if (r->file_bytes < sizeof t)
        return -EBADMSG;
    int error = read_at(r, r->file_bytes - sizeof t, &t, sizeof t);
    if (error)
        return error;
    if (memcmp(t.magic, CHUNK_TRAILER_MAGIC, sizeof t.magic) != 0 || t.crc != chunk_trailer_crc(&t))
        return -EBADMSG;
    *offset = t.index_offset;
    error = read_at(r, t.index_offset, head, sizeof *head);
    if (error)
        return error;
    return is_sound(r, head, t.index_offset) && head->kind == CHUNK_INDEX ? 0 : -EBADMSG;
}

/* Streams are told by their chunks, but for what only BEGINS says, which lies in many places. */
static int take_streams(record_reader *r, const desk *d, const chunk_index_head *sizes)
{
    for (uint32_t i = 0; i < sizes->stream_count; i++) {
        chunk_stream s;
        memcpy(&s, d->raw.items + (size_t)i * sizes->stream_bytes, sizeof s);
        if (!is_number_sound(r, s.stream))
            return -EBADMSG;
        record_stream *st = stream_of(r, s.stream);
        if (!st)
            return -ENOMEM;
        st->pid = s.pid;
        st->clock_source = s.clock_source;
        st->has_begun = true;
    }
    return 0;
}

static int take_entries(record_reader *r, const desk *d, const chunk_index_head *sizes)
{
    if (!vec_reserve(&r->entries, sizes->entry_count))
        return -ENOMEM;
    uint64_t from = r->header.header_bytes;
    for (uint32_t i = 0; i < sizes->entry_count; i++) {
        chunk_entry e;
        memcpy(&e, d->raw.items + (size_t)i * sizes->entry_bytes, sizeof e);
        if (e.offset < from || !is_sound(r, &e.head, e.offset))
            return -EBADMSG;
        from = e.offset + chunk_bytes(&e.head);
        int error = add_entry(r, e.offset, &e.head);
        if (error)
            return error;
    }
    return 0;
}

static bool sizes_ok(const record_reader *r, const chunk_index_head *s, const chunk_head *h)
{
    uint64_t chunks_max = r->file_bytes / sizeof(chunk_head); /* each chunk has a head, and so has each stream */
    return s->entry_count <= chunks_max && s->stream_count <= chunks_max && s->entry_bytes >= sizeof(chunk_entry) &&
           s->stream_bytes >= sizeof(chunk_stream) && s->entry_bytes <= CHUNK_ENTRY_BYTES_MAX &&
           s->stream_bytes <= CHUNK_ENTRY_BYTES_MAX && h->parts[1].raw_bytes == (uint64_t)s->stream_count * s->stream_bytes &&
           h->parts[2].raw_bytes == (uint64_t)s->entry_count * s->entry_bytes;
}

/* 0; -EBADMSG: there is none that can be used; or another error. */
static int read_index(record_reader *r, desk *d)
{
    chunk_head head;
    uint64_t offset;
    chunk_index_head sizes;
    int error = find_index(r, &head, &offset);
    if (!error)
        error = read_part(r, d, &head, offset, 0, CHUNK_ENTRY_BYTES_MAX);
    if (!error && d->raw.count < sizeof sizes)
        error = -EBADMSG;
    if (error)
        return error;
    memcpy(&sizes, d->raw.items, sizeof sizes);
    if (!sizes_ok(r, &sizes, &head))
        return -EBADMSG;
    error = read_part(r, d, &head, offset, 2, SIZE_MAX);
    if (!error)
        error = take_entries(r, d, &sizes);
    if (!error)
        error = read_part(r, d, &head, offset, 1, SIZE_MAX);
    if (!error)
        error = take_streams(r, d, &sizes);
    if (error)
        return error;
    r->is_complete = !(head.flags & CHUNK_CUT_SHORT);
    if (!r->is_complete)
        note(r, "recording stopped early, as its last words say (a full disk?); it has the first %.1f s", seconds_of(r, r->end_ns));
    return 0;
}

/* ---- without an index ------------------------------------------------------------------------------------------------ */

static void forget(record_reader *r)
{
    r->entries.count = r->streams.count = 0;
    map_free(&r->stream_ids);
    r->begin_ns = r->end_ns = r->event_count = 0;
    r->known_bytes = r->header.header_bytes;
}

static int read_begins(record_reader *r, desk *d, const chunk_head *h, uint64_t offset)
{
    chunk_begins b;
    int error = read_part(r, d, h, offset, 0, CHUNK_TEXT_BYTES_MAX);
    if (error || d->raw.count < sizeof b)
        return error == -ENOMEM ? error : 0; /* found again when it is read */
    memcpy(&b, d->raw.items, sizeof b);
    record_stream *st = stream_of(r, h->stream);
    st->pid = b.pid;
    st->clock_source = b.clock_source;
    st->has_begun = true;
    return 0;
}

/* The next sound head at or after offset; file_bytes: there is none. */
static int find_head(const record_reader *r, desk *d, uint64_t offset, uint64_t *found, chunk_head *head)
{
    const uint32_t magic = CHUNK_MAGIC;
    if (!vec_reserve(&d->packed, SCAN_BYTES))
        return -ENOMEM;
    for (; offset < r->file_bytes; offset += SCAN_BYTES - sizeof *head) {
        size_t count = r->file_bytes - offset < SCAN_BYTES ? (size_t)(r->file_bytes - offset) : SCAN_BYTES;
        int error = read_at(r, offset, d->packed.items, count);
        if (error)
            return error;
        for (size_t i = 0; i + sizeof *head <= count; i++) {
            if (memcmp(d->packed.items + i, &magic, sizeof magic) != 0)
                continue;
            memcpy(head, d->packed.items + i, sizeof *head);
            if (is_sound(r, head, offset + i)) {
                *found = offset + i;
                return 0;
            }
        }
        if (count < SCAN_BYTES)
            break;
    }
    *found = r->file_bytes;
    return 0;
}

/* A writer holds the file's lock as long as it writes. */
static bool is_being_written(const record_reader *r)
{
    if (flock(r->fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(r->fd, LOCK_UN);
    return false;
}

static int scan(record_reader *r, desk *d)
{
    uint64_t offset = r->header.header_bytes, damaged_at = UINT64_MAX;
    size_t damaged_chunk = 0;
    bool had_index = false, ends_damaged = false;
    while (offset < r->file_bytes) {
        chunk_head head;
        uint64_t at = offset;
        int error = read_at(r, offset, &head, sizeof head);
        if (error == -EBADMSG || (!error && !is_sound(r, &head, offset))) {
            if (damaged_at == UINT64_MAX && !had_index) {
                damaged_at = offset;
                damaged_chunk = r->entries.count;
            }
            error = find_head(r, d, offset + 1, &at, &head);
        }
        if (error || at == r->file_bytes) {
            if (error)
                return error;
            ends_damaged = damaged_at == offset;
            break;
        }
        had_index = head.kind == CHUNK_INDEX;
        if (!had_index)
            error = add_entry(r, at, &head);
        if (!error && head.kind == CHUNK_STREAM_BEGINS)
            error = read_begins(r, d, &head, at);
        if (error)
            return error;
        offset = at + chunk_bytes(&head);
    }
    if ((damaged_at == UINT64_MAX || ends_damaged) && !had_index && is_being_written(r))
        note(r, "it is still being recorded: read up to %.1f s", seconds_of(r, r->end_ns));
    else if (damaged_at != UINT64_MAX)
        note(r, "chunk %zu at byte %llu: damaged or cut off; read up to %.1f s", damaged_chunk, (unsigned long long)damaged_at,
             seconds_of(r, r->end_ns));
    else if (had_index)
        note(r, "the index at the end is damaged; everything was found without it");
    else
        note(r, "it has no end: the recorder was killed or the disk was full; read up to %.1f s", seconds_of(r, r->end_ns));
    return 0;
}

/* ---- a file that still grows ------------------------------------------------------------------------------------------ */

/* The first head that is not whole is that of the chunk being written; an index is the end for now. */
static int take_new(record_reader *r, desk *d)
{
    size_t before = r->entries.count;
    for (;;) {
        chunk_head head;
        uint64_t at = r->known_bytes;
        int error = read_at(r, at, &head, sizeof head);
        if (error == -EBADMSG || (!error && (!is_sound(r, &head, at) || head.kind == CHUNK_INDEX)))
            return (int)(r->entries.count - before);
        if (!error)
            error = add_entry(r, at, &head);
        if (!error && head.kind == CHUNK_STREAM_BEGINS)
            error = read_begins(r, d, &head, at);
        if (error)
            return error;
    }
}

int record_refresh(record_reader *r)
{
    struct stat st;
    if (fstat(r->fd, &st) != 0)
        return -errno;
    r->file_bytes = (uint64_t)st.st_size;
    desk *d = take_desk(r);
    if (!d)
        return -ENOMEM;
    int count = take_new(r, d);
    give_desk(r, d);
    return count;
}

/* ---- open and close ------------------------------------------------------------------------------------------------- */

void record_close(record_reader *r)
{
    if (!r)
        return;
    for (desk *d = r->desks, *next; d; d = next) {
        next = d->next;
        columns_coder_delete(d->coder);
        vec_free(&d->packed);
        vec_free(&d->raw);
        mem_free(d);
    }
    vec_free(&r->entries);
    vec_free(&r->streams);
    map_free(&r->stream_ids);
    if (r->fd >= 0)
        close(r->fd);
    pthread_mutex_destroy(&r->mutex);
    mem_free(r->path);
    mem_free(r);
}

static int open_file(record_reader *r, char *error, size_t error_bytes)
{
    struct stat st;
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe of that name must not hang us */
    if (r->fd < 0 || fstat(r->fd, &st) != 0) {
        int code = -errno;
        return say(error, error_bytes, code, r->path, strerror(-code));
    }
    if (!S_ISREG(st.st_mode))
        return say(error, error_bytes, -EINVAL, r->path, "is no file");
    r->file_bytes = (uint64_t)st.st_size;
    if (r->file_bytes == 0)
        return say(error, error_bytes, -EBADMSG, r->path, "is empty: nothing was recorded");
    return 0;
}

static int read_file_header(record_reader *r, char *error, size_t error_bytes)
{
    chunk_file_header *h = &r->header;
    size_t count = r->file_bytes < sizeof *h ? (size_t)r->file_bytes : sizeof *h;
    int code = read_at(r, 0, h, count);
    if (code)
        return say(error, error_bytes, code, r->path, strerror(-code));
    size_t magic = count < sizeof h->magic ? count : sizeof h->magic;
    if (memcmp(h->magic, CHUNK_FILE_MAGIC, magic) != 0)
        return say(error, error_bytes, -EBADMSG, r->path, "is no rrtrace recording");
    if (count < sizeof *h)
        return say(error, error_bytes, -EBADMSG, r->path, "is cut off within its header: nothing can be read");
    if (h->version > CHUNK_FILE_VERSION) {
        snprintf(error, error_bytes, "%s: is of version %u, this rrtrace reads up to version %u: use a newer rrtrace", r->path,
                 h->version, CHUNK_FILE_VERSION);
        return -EBADMSG;
    }
    if (h->crc != chunk_file_crc(h) || h->version == 0 || h->header_bytes < sizeof *h)
        return say(error, error_bytes, -EBADMSG, r->path, "byte 0: the header's checksum differs: nothing can be read");
    return 0;
}

static int read_contents(record_reader *r, char *error, size_t error_bytes)
{
    desk *d = take_desk(r);
    if (!d)
        return say(error, error_bytes, -ENOMEM, r->path, "memory is out");
    forget(r);
    int code = read_index(r, d);
    if (code == -EBADMSG) {
        forget(r);
        code = scan(r, d);
    }
    give_desk(r, d);
    return code ? say(error, error_bytes, code, r->path, strerror(-code)) : 0;
}

int record_open(record_reader **out, const char *path, char *error, size_t error_bytes)
{
    *out = NULL;
    record_reader *r = mem_zalloc(1, sizeof *r);
    size_t bytes = strlen(path) + 1;
    if (!r || !(r->path = mem_alloc(bytes, 1))) {
        mem_free(r);
        return say(error, error_bytes, -ENOMEM, path, "memory is out");
    }
    memcpy(r->path, path, bytes);
    r->fd = -1;
    pthread_mutex_init(&r->mutex, NULL);
    int code = open_file(r, error, error_bytes);
    if (!code)
        code = read_file_header(r, error, error_bytes);
    if (!code)
        code = read_contents(r, error, error_bytes);
    if (code) {
        record_close(r);
        return code;
    }
    *out = r;
    return 0;
}

/* ---- what is in it ---------------------------------------------------------------------------------------------------- */

record_info record_info_of(record_reader *r)
{
    record_info info = {
        .begin_ns = r->begin_ns,
        .end_ns = r->end_ns,
        .realtime_offset_ns = r->header.realtime_ns - r->header.begin_ns,
        .event_count = r->event_count,
        .stream_count = (uint32_t)r->streams.count,
        .chunk_count = (uint32_t)r->entries.count,
        .file_bytes = r->file_bytes,
    };
    pthread_mutex_lock(&r->mutex);
    memcpy(info.problem, r->problem, sizeof info.problem);
    pthread_mutex_unlock(&r->mutex);
    info.is_complete = r->is_complete && !info.problem[0];
    return info;
}

record_stream record_stream_at(const record_reader *r, uint32_t i) { return r->streams.items[i]; }

uint32_t record_chunk_count(const record_reader *r) { return (uint32_t)r->entries.count; }

record_chunk record_chunk_at(const record_reader *r, uint32_t i)
{
    const entry *e = &r->entries.items[i];
    const chunk_head *h = &e->head;
    bool is_known = h->kind >= CHUNK_STREAM_BEGINS && h->kind <= CHUNK_STREAM_ENDS;
    is_known |= h->kind == CHUNK_OVERVIEW;
    return (record_chunk){
        .stream = h->stream,
        .kind = is_known ? (record_kind)h->kind : RECORD_OTHER,
        .slot_count = h->slot_count,
        .event_count = h->event_count,
        .define_count = h->define_count,
        .begin_ns = h->begin_ns,
        .end_ns = h->end_ns,
        .offset = e->offset,
        .bytes = chunk_bytes(h),
        .has_state = h->kind == CHUNK_EVENTS && h->parts[1].packed_bytes > 0,
        .after_gap = e->after_gap,
    };
}

/* ---- reading chunks --------------------------------------------------------------------------------------------------- */

/* The head in the file must be the index's: the file may have been changed behind it. */
static int check_head(const record_reader *r, const entry *e)
{
    chunk_head head;
    int error = read_at(r, e->offset, &head, sizeof head);
    return error ? error : memcmp(&head, &e->head, sizeof head) == 0 ? 0 : -EBADMSG;
}

static int damaged(record_reader *r, uint32_t i, int error, const char *what)
{
    const entry *e = &r->entries.items[i];
    if (error == -EBADMSG)
        note(r, "chunk %u at byte %llu: %s; %.1f s to %.1f s can't be read", i, (unsigned long long)e->offset, what,
             seconds_of(r, e->head.begin_ns), seconds_of(r, e->head.end_ns));
    else if (error != -ENOMEM)
        note(r, "chunk %u at byte %llu: %s", i, (unsigned long long)e->offset, strerror(-error));
    return error;
}

static const entry *events_entry(const record_reader *r, uint32_t i)
{
    const entry *e = i < r->entries.count ? &r->entries.items[i] : NULL;
    return e && e->head.kind == CHUNK_EVENTS ? e : NULL;
}

static int read_events(record_reader *r, desk *d, const entry *e, ev *out)
{
    const chunk_head *h = &e->head;
    int error = check_head(r, e);
    if (!error)
        error = read_part(r, d, h, e->offset, 0, (size_t)h->slot_count * sizeof(ev)); /* definitions, in d->raw */
    if (!error)
        error = read_packed(r, d, h, e->offset, 2);
    if (!error)
        error = columns_decode(d->coder, d->packed.items, d->packed.count, d->raw.items, d->raw.count, out, h->slot_count);
    return error;
}

int record_read_events(record_reader *r, uint32_t i, ev *out, uint32_t capacity, uint32_t *slot_count)
{
    const entry *e = events_entry(r, i);
    *slot_count = 0;
    if (!e || capacity < e->head.slot_count)
        return -EINVAL;
    desk *d = take_desk(r);
    if (!d)
        return -ENOMEM;
    int error = read_events(r, d, e, out);
    give_desk(r, d);
    if (error)
        return damaged(r, i, error, "checksum differs");
    *slot_count = e->head.slot_count;
    return 0;
}

int record_read_state(record_reader *r, uint32_t i, sim_state *out)
{
    const entry *e = events_entry(r, i);
    if (!e)
        return -EINVAL;
    if (e->head.parts[1].packed_bytes == 0)
        return -ENOENT;
    desk *d = take_desk(r);
    if (!d)
        return -ENOMEM;
    int error = check_head(r, e);
    if (!error)
        error = read_part(r, d, &e->head, e->offset, 1, CHUNK_STATE_BYTES_MAX);
    if (!error)
        error = state_decode(d->raw.items, d->raw.count, out);
    give_desk(r, d);
    return error ? damaged(r, i, error, "the state's checksum differs") : 0;
}

static int give_definitions(const desk *d, void (*take)(void *context, ev head, const void *payload), void *context)
{
    size_t count = d->raw.count / sizeof(ev);
    for (size_t i = 0; i < count;) {
        ev head;
        memcpy(&head, d->raw.items + i * sizeof head, sizeof head);
        size_t slots = ev_define_slots(head.place) + (size_t)1;
        if (ev_kind_of(head) != EV_DEFINE || head.place > EV_DEFINE_BYTES_MAX || slots > count - i)
            return -EBADMSG;
        take(context, head, d->raw.items + (i + 1) * sizeof head);
        i += slots;
    }
    return 0;
}

int record_definitions(record_reader *r, uint32_t stream, uint32_t end,
                       void (*take)(void *context, ev head, const void *payload), void *context)
{
    desk *d = take_desk(r);
    if (!d)
        return -ENOMEM;
    int error = 0;
    for (uint32_t i = 0; i < end && i < r->entries.count && !error; i++) {
        const entry *e = &r->entries.items[i];
        if (e->head.kind != CHUNK_EVENTS || e->head.stream != stream || e->head.parts[0].packed_bytes == 0)
            continue;
        error = read_part(r, d, &e->head, e->offset, 0, (size_t)e->head.slot_count * sizeof(ev));
        if (!error)
            error = give_definitions(d, take, context);
        if (error)
            damaged(r, i, error, "the definitions' checksum differs");
        if (error == -EBADMSG)
            error = 0; /* the others may be whole */
    }
    give_desk(r, d);
    return error;
}

int record_read_overview(record_reader *r, uint32_t i, void (*take)(void *context, const void *bytes, size_t count), void *context)
{
    const entry *e = i < r->entries.count ? &r->entries.items[i] : NULL;
    if (!e || e->head.kind != CHUNK_OVERVIEW)
        return -EINVAL;
    desk *d = take_desk(r);
    if (!d)
        return -ENOMEM;
    int error = check_head(r, e);
    if (!error)
        error = read_part(r, d, &e->head, e->offset, 0, CHUNK_OVERVIEW_BYTES_MAX);
    if (!error)
        take(context, d->raw.items, d->raw.count);
    give_desk(r, d);
    return error ? damaged(r, i, error, "checksum differs") : 0;
}

int record_read_text(record_reader *r, uint32_t i, char *out, size_t bytes)
{
    const entry *e = i < r->entries.count ? &r->entries.items[i] : NULL;
    if (!e || e->head.kind != CHUNK_STREAM_ENDS || bytes == 0)
        return -EINVAL;
    out[0] = '\0';
    desk *d = take_desk(r);
    if (!d)
        return -ENOMEM;
    int error = check_head(r, e);
    if (!error)
        error = read_part(r, d, &e->head, e->offset, 0, CHUNK_TEXT_BYTES_MAX);
    if (!error) {
        size_t count = d->raw.count < bytes - 1 ? d->raw.count : bytes - 1;
        if (count > 0)
            memcpy(out, d->raw.items, count);
        out[count] = '\0';
    }
    give_desk(r, d);
    return error ? damaged(r, i, error, "checksum differs") : 0;
}

/* It goes to a terminal. */
static void make_line(char *text)
{
    for (; *text; text++)
        *text = (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text;
}

bool record_next_trouble(record_reader *r, uint32_t *i, record_trouble *out)
{
    for (; *i < r->entries.count; ++*i) {
        const chunk_head *h = &r->entries.items[*i].head;
        uint32_t id = map_get(&r->stream_ids, h->stream);
        if (h->kind != CHUNK_STREAM_ENDS || h->parts[0].raw_bytes == 0 || record_read_text(r, *i, out->text, sizeof out->text) != 0)
            continue;
        out->pid = id == MAP_NONE ? 0 : r->streams.items[id].pid;
        make_line(out->text);
        ++*i;
        return true;
    }
    return false;
}
