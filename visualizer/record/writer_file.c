#include "record/writer_internal.h"

#include "base/mem.h"
#include "base/write.h"
#include "record/reader.h"
#include "wire/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static bool is_same_file(const struct stat *a, const struct stat *b) { return a->st_dev == b->st_dev && a->st_ino == b->st_ino; }

/* Is it still what the name stands for? Who recorded into it before us may have put a new file in its place (renew). */
static bool is_current(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) != 0 || stat(path, &named) != 0 || is_same_file(&opened, &named);
}

/* The file's lock is held as long as it is written; its first byte is locked besides while events may come. */
static struct flock first_byte(short type) { return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_len = 1}; }

static bool may_get_events(int fd)
{
    struct flock lock = first_byte(F_WRLCK);
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

void record_writer_expect(record_writer *w, bool events)
{
    struct flock lock = first_byte(events ? F_WRLCK : F_UNLCK);
    fcntl(w->fd, F_OFD_SETLK, &lock); /* where there are no such locks, whoever wants the name waits in any case */
}

/* Waits for a session that is just ending. 0; -EBUSY: another one records into it; -EAGAIN: it is not the file of that name any more. */
static int lock_file(int fd, const char *path)
{
    for (unsigned tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; tries++) {
        if (tries == BUSY_TRIES || may_get_events(fd))
            return -EBUSY;
        usleep(BUSY_WAIT_US);
    }
    return is_current(fd, path) ? 0 : -EAGAIN;
}

/* A descriptor that may be written, or -errno and one line. Nothing in it is touched yet. */
static int open_path(const char *path, char *error, size_t error_bytes)
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
    code = lock_file(fd, path);
    if (code == -EAGAIN) {
        close(fd);
        return open_path(path, error, error_bytes);
    }
    if (code)
        code = writer_say(error, error_bytes, -EBUSY, path, "is being recorded into by another session; choose another name");
    else if (!is_ours(fd))
        code = writer_say(error, error_bytes, -EEXIST, path, "exists and is no recording; remove it or choose another name");
    if (code)
        close(fd);
    return code ? code : fd;
}

int record_writer_check(const char *path, char *error, size_t error_bytes)
{
    int fd = open_path(path, error, error_bytes);
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

/* An empty file beside that one, as much the user's as that one is, and locked; -1: there can be none. */
static int make_beside(const char *temporary, const struct stat *old)
{
    struct stat made;
    int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    bool is_alike = fstat(fd, &made) == 0 && made.st_uid == old->st_uid && made.st_gid == old->st_gid && fchmod(fd, old->st_mode & 07777) == 0;
    if (is_alike && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    unlink(temporary);
    return -1;
}

/* An older recording may still be looked at in a window: the new one is a file of its own, under the old one's name, and a link
 * to it stays a link. Where that can't be, as with two names for one file, it is emptied. 0 or -errno. */
static int renew(record_writer *w)
{
    char real[PATH_MAX], temporary[PATH_MAX + 32];
    struct stat old;
    int fd = -1;
    if (fstat(w->fd, &old) != 0 || !S_ISREG(old.st_mode) || old.st_size == 0)
        return 0;
    if (old.st_nlink == 1 && realpath(w->path, real)) {
        snprintf(temporary, sizeof temporary, "%s.new-%d", real, (int)getpid());
        fd = make_beside(temporary, &old);
    }
    if (fd >= 0 && rename(temporary, real) == 0) {
        close(w->fd);
        w->fd = fd;
        return 0;
    }
    if (fd >= 0) {
        close(fd);
        unlink(temporary);
    }
    return ftruncate(w->fd, 0) == 0 ? 0 : -errno;
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
    w->fd = open_path(w->path, error, error_bytes);
    if (w->fd < 0)
        return w->fd;
    int code = 0;
    if (goes_on && !is_empty(w->fd)) {
        code = adopt(w, error, error_bytes);
    } else if ((code = renew(w)) != 0) {
        snprintf(error, error_bytes, "%s: can't be emptied: %s", w->path, strerror(-code));
    } else {
        code = write_file_header(w, error, error_bytes);
    }
    record_writer_expect(w, true);
    return code;
}
