#include "record/writer_internal.h"

#include "base/mem.h"
#include "base/write.h"
#include "record/reader.h"
#include "wire/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_TRIES 300u                     /* 3 s: the session that recorded into the file before is just ending… */
#define BUSY_WAIT_US 10000u

int writer_say(char *error, size_t error_bytes, int code, const char *path, const char *why)
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
    if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
        close(fd); /* nobody may ever read it, and then the program's end would wait for that */
        return writer_say(error, error_bytes, -ESPIPE, path, "is a pipe; give a file");
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return fd;
    bool is_busy;
    while ((is_busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) && busy_tries-- > 0)
        usleep(BUSY_WAIT_US);
    if (is_busy)
        code = writer_say(error, error_bytes, -EBUSY, path, "is being recorded into by another session; choose another name");
    else if (!is_ours(fd))
        code = writer_say(error, error_bytes, -EEXIST, path, "exists and is no recording; remove it or choose another name");
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
        writer_stream **place = vec_push(&w->streams);
        if (!place)
            return -ENOMEM;
        *place = NULL;
    }
    writer_stream *st = mem_zalloc(1, sizeof *st);
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

int writer_open_file(record_writer *w, bool goes_on, char *error, size_t error_bytes)
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
