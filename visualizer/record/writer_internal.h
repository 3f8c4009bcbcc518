/* record/writer_internal.h - what the files of the recorder share.
 * For:     writer.c (the caller's side, the queue and the thread), writer_chunks.c (a job becomes a chunk of the file),
 *          writer_file.c (opening, and going on with what is there).
 * Threads: fields say whose they are.
 */
#ifndef RRTRACE_RECORD_WRITER_INTERNAL_H
#define RRTRACE_RECORD_WRITER_INTERNAL_H

#include "record/chunk.h"
#include "record/columns.h"
#include "record/writer.h"
#include "sim/timebase.h"

#include <pthread.h>

typedef struct writer_buffer {
    ev *events; /* owned */
    uint32_t count, capacity;
} writer_buffer;

/* What the thread writes: one chunk. */
typedef struct writer_job {
    struct writer_job *next;
    chunk_kind kind;
    struct writer_stream *stream;
    writer_buffer events;
    columns_bytes part; /* EVENTS: the state; BEGINS: chunk_begins; ENDS: text */
} writer_job;

typedef struct writer_stream {
    uint32_t number;
    /* Under the mutex: */
    writer_buffer fill;
    uint64_t fill_ns;       /* when its first event came */
    columns_bytes state;    /* of before fill; empty: none */
    uint64_t since_state;   /* slots */
    uint64_t state_weight;  /* things in the last state */
    /* The thread's: */
    timebase clock;
    uint64_t last_ticks;
    chunk_stream entry;
} writer_stream;

struct record_writer {
    int fd;
    char *path; /* owned */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t work, room; /* something to do; something is done */
    /* Under the mutex: */
    VEC(writer_stream *) streams; /* by number in the file; NULL: has not begun. Owned; only the caller adds */
    uint32_t first_stream; /* the caller's number 0 in the file; constant */
    writer_job *first, **last;
    size_t queued_bytes, held_bytes; /* of events in the queue; of all buffers */
    VEC(writer_buffer) spare;
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

/* writer.c. The recording ends: the first reason counts. Mutex held; writer_fail_now takes it. Both return error. */
__attribute__((format(printf, 3, 4))) int writer_fail(record_writer *w, int error, const char *why, ...);
int writer_fail_now(record_writer *w, int error, const char *what);

/* writer_chunks.c: the thread alone. 0 or the error that ended the recording. */
int writer_put_job(record_writer *w, const writer_job *j);
int writer_put_index(record_writer *w);

/* writer_file.c: opens w->path into w->fd, with a header, or behind the chunks that are there. 0, or -errno and one line. */
int writer_open_file(record_writer *w, bool goes_on, char *error, size_t error_bytes);
int writer_say(char *error, size_t error_bytes, int code, const char *path, const char *why); /* returns code */

#endif
