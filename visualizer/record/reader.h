/* record/reader.h - reads a .rrt file back: what is in it, any chunk's events bit for bit, names, and states to start from.
 * For:     app/ (rrtrace view), report/, export/, and history's way back to what memory has let go.
 * Idea:    opening reads the index at the file's end and nothing else, so it takes the same milliseconds for any size. A file
 *          without one (killed recorder, full disk, cut off) is walked from chunk head to chunk head instead. Every chunk can
 *          be decoded alone; a chunk with a state can also be simulated without those before it.
 * Use:     record_open; record_info_of; for a stream's chunks: record_definitions(r, stream, i, …) for the names, then from the
 *          last chunk with has_state at or before i: record_read_state and sim_stream_resume (or from the stream's first chunk
 *          with sim_stream_open), then record_read_events chunk by chunk into sim_run; record_close.
 * Memory:  144 bytes a chunk; a few MiB for each thread that reads at the same time.
 * Threads: record_open, record_refresh and record_close on one; all others from any number at once.
 * Units:   CLOCK_MONOTONIC ns; slots are 16-byte events, payload of DEFINEs included.
 * Errors:  a file is hostile: sizes, counts and offsets are checked before anything is allocated. What is damaged is said in
 *          one line with the chunk and the byte where it lies, and the rest can still be read. A chunk either gives its
 *          events back exactly or not at all.
 */
#ifndef RRTRACE_RECORD_READER_H
#define RRTRACE_RECORD_READER_H

#include "sim/state.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct record_reader record_reader;

/* 0, or -errno (-EBADMSG: no recording, or of a newer version) and one line. NULL is then in *out. A damaged file opens if
 * its header can be read: see record_info.problem. */
int record_open(record_reader **out, const char *path, char *error, size_t error_bytes);
void record_close(record_reader *r); /* NULL is fine */

/* Of a file that is still being written: takes in the chunks that have come since it was opened or refreshed. How many, or
 * -errno. Not at the same time as other calls. */
int record_refresh(record_reader *r);

#define RECORD_PROBLEM_BYTES 512

typedef struct record_info {
    uint64_t begin_ns, end_ns; /* of the events; 0, 0: there are none */
    uint64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC when the file was made */
    uint64_t event_count;      /* those that are no payload */
    uint32_t stream_count, chunk_count;
    uint64_t file_bytes;
    bool is_complete;          /* it ends as a recorder ends it, and nothing is known to be damaged */
    char problem[RECORD_PROBLEM_BYTES]; /* "" or one line: the first thing found wrong so far, here or in reading */
} record_info;

record_info record_info_of(record_reader *r);

typedef struct record_stream {
    uint32_t stream;  /* number in the file: below file_bytes / 96, however hostile it is */
    uint32_t pid, clock_source;
    bool has_begun;   /* its BEGINS chunk is there: pid and clock_source are known */
    bool has_ended;
    uint64_t begin_ns, end_ns, event_count;
    uint32_t chunk_count;
} record_stream;

record_stream record_stream_at(const record_reader *r, uint32_t i); /* i < stream_count; in order of appearance */

typedef enum record_kind { RECORD_STREAM_BEGINS = 1, RECORD_EVENTS, RECORD_STREAM_ENDS, RECORD_OVERVIEW = 5, RECORD_OTHER = 0xffff } record_kind;

typedef struct record_chunk {
    uint32_t stream;       /* number in the file */
    record_kind kind;      /* OTHER: of a later version; skip it */
    uint32_t slot_count;   /* record_read_events writes so many */
    uint32_t event_count;  /* those that are no payload */
    uint32_t define_count;
    uint64_t begin_ns, end_ns;
    uint64_t offset, bytes; /* in the file */
    bool has_state;
    bool after_gap;        /* chunks before it are missing: its stacks are known only from the next state on */
} record_chunk;

uint32_t record_chunk_count(const record_reader *r);
record_chunk record_chunk_at(const record_reader *r, uint32_t i); /* i < count; in the order of the file */

/* The events of an EVENTS chunk. capacity: at least its slot_count. *slot_count: how many were written.
 * 0; -EINVAL: no EVENTS chunk, or no room; -EBADMSG: damaged (record_info.problem says where), -EIO, -ENOMEM. */
int record_read_events(record_reader *r, uint32_t i, ev *out, uint32_t capacity, uint32_t *slot_count);
/* The state before the chunk's first event; *out is zeroed or an earlier one. -ENOENT: it has none; else as above. */
int record_read_state(record_reader *r, uint32_t i, sim_state *out);

/* All DEFINEs of a stream before chunk i (all of them: i = record_chunk_count), in order, without decoding other events.
 * Damaged chunks are left out and become the problem. take: payload has head.place bytes. */
int record_definitions(record_reader *r, uint32_t stream, uint32_t i,
                       void (*take)(void *context, ev head, const void *payload), void *context); /* 0, -EIO or -ENOMEM */
/* The bytes of an OVERVIEW chunk, for overview_read. take: called once. 0 or as record_read_events. */
int record_read_overview(record_reader *r, uint32_t i, void (*take)(void *context, const void *bytes, size_t count), void *context);
/* What a STREAM_ENDS chunk says was wrong with its stream; "": nothing. 0 or as record_read_events. */
int record_read_text(record_reader *r, uint32_t i, char *out, size_t bytes);

typedef struct record_trouble {
    uint32_t pid;
    char text[200]; /* one line: why the events of its stream end before the program did */
} record_trouble;

/* The next one that the recorder has noted, from chunk *i on; *i: behind it. False: there is no other. */
bool record_next_trouble(record_reader *r, uint32_t *i, record_trouble *out);

#endif
