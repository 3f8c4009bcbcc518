/* base/pen.h - text on its way to a file, a pipe or memory, put together piece by piece.
 * For:     report/ and export/, which write tables, JSON and CSV.
 * Idea:    pieces gather in one buffer, which is written whenever it is full. The first trouble is kept and all after it is
 *          left out, so that callers look once, at the end.
 * Use:     pen_init(&p, fd); pen_text, pen_number, pen_json …; error = pen_finish(&p); pen_free(&p).
 *          With fd -1 everything stays in memory: p.bytes[0 … p.used).
 * Memory:  PEN_BYTES, more when a single piece is larger, or when it is kept in memory.
 * Threads: one at a time.
 * Bytes:   names may hold any. Valid UTF-8 is passed through; an invalid byte becomes the four characters \xFF, with its
 *          own two hexadecimal digits, so that names that differ stay different and what is written is valid UTF-8.
 */
#ifndef RRTRACE_BASE_PEN_H
#define RRTRACE_BASE_PEN_H

#include <stddef.h>
#include <stdint.h>

#define PEN_BYTES ((size_t)256 << 10) /* large enough that the calls to write cost nothing */

typedef struct pen {
    char *bytes; /* owned */
    size_t used, capacity;
    int fd;    /* borrowed; -1: memory */
    int error; /* 0, or the first -errno */
} pen;

int pen_init(pen *p, int fd); /* 0 or -ENOMEM */
void pen_free(pen *p);        /* writes nothing; twice is fine */
int pen_finish(pen *p);       /* writes what is left; 0 or the first -errno */

/* At least that many bytes to write to at the end, or NULL after trouble; then add to p->used what was written. */
char *pen_room(pen *p, size_t bytes);

void pen_bytes(pen *p, const void *bytes, size_t count);
void pen_text(pen *p, const char *text);
void pen_number(pen *p, uint64_t number);
__attribute__((format(printf, 2, 3))) void pen_format(pen *p, const char *format, ...); /* at most 1 KiB; longer is cut */

void pen_json(pen *p, const char *bytes, size_t count); /* with its quotes */
/* A field of RFC 4180: quoted when it must be. Commas and ends of lines are the caller's. */
void pen_csv(pen *p, const char *bytes, size_t count);

/* Writes number's digits at to, at most 20, and returns where they end. */
char *pen_digits(char *to, uint64_t number);

/* Bytes of the valid UTF-8 character at the start of bytes[0 … count), 1 to 4; 0: there is none. */
size_t pen_utf8(const char *bytes, size_t count);

#endif
