/* record/writer.h - writes a session's events into a .rrt file while they come.
 * For:     app/: one writer a recorded session.
 * Idea:    the caller only copies: each stream has a chunk being filled, and a thread of the writer's own packs full ones and
 *          puts them into the file, front to back, never going back. So at any moment the file is whole but for the chunk
 *          being written, and a killed recorder loses at most about a second.
 *
 *            caller ──copies──> chunk of stream 0, 1, … ──full, or a second old──> queue ──> packing thread ──> file
 *
 *          A starting state makes a chunk a seek point. One is wanted every 100,000 events or so while stacks are ordinary,
 *          and after STATE_WEIGHT_EVENTS events for each open frame, fiber and thread when there are many: 1,000 fibers of
 *          depth 24 are stored every 2.4 million events, and states take a few hundredths of the file however many there are.
 * Use:     record_writer_open; for each stream record_writer_stream_begins, record_writer_events… and _stream_ends; after a
 *          sim_run of exactly these events, if (record_writer_wants_state(w, n)): sim_stream_state, record_writer_state;
 *          record_writer_overview and record_writer_settle when it may be looked at; record_writer_finish, look at record_writer_problem; record_writer_close.
 * Memory:  at most WRITER_BUDGET_BYTES of events that wait (beyond that the caller waits: the ring fills, nothing is lost), a
 *          coder's 5 MiB, and 104 bytes a chunk for the index.
 * Threads: one caller at a time; the writer's own thread does all output.
 * Errors:  a full disk, a removed file or an I/O error ends the recording: record_writer_problem says so in one line, what was
 *          written before stays readable, and all calls go on as if nothing had happened, doing nothing.
 */
#ifndef RRTRACE_RECORD_WRITER_H
#define RRTRACE_RECORD_WRITER_H

#include "sim/state.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRITER_CHUNK_SLOTS (UINT32_C(1) << 17) /* 2 MiB of events, some 150 KiB in the file: a millisecond or two to read back */
#define WRITER_BUDGET_BYTES ((size_t)64 << 20)
#define WRITER_STATE_EVENTS 100000u    /* at least so many events between two states, */
#define WRITER_STATE_WEIGHT_EVENTS 96u /* and so many for each thing in the last one: about 6 bytes against 96 * 1.2 */

typedef struct record_writer record_writer;

/* Makes the file, also where an older recording of that name is, which whoever has it open can still read; any other file is
 * left alone (-EEXIST), and so is one that is being recorded into (-EBUSY), after some seconds if that session is just ending
 * (record_writer_expect). 0 or -errno, and error is one clear line. */
int record_writer_open(record_writer **out, const char *path, char *error, size_t error_bytes);
/* The same, but an older recording stays: what comes now goes behind it, as further streams. */
int record_writer_go_on(record_writer **out, const char *path, char *error, size_t error_bytes);
/* Could it be opened just now? Makes the file if it is not there, and changes nothing that is. */
int record_writer_check(const char *path, char *error, size_t error_bytes);
/* May events come? True from the opening on; false: all programs have left, and who wants the file's name waits a while for its end
 * rather than being refused. */
void record_writer_expect(record_writer *w, bool events);
/* What the caller's stream 0 is called in the file. */
uint32_t record_writer_first_stream(const record_writer *w);

/* stream: numbers of the caller, from 0, dense. begin_ns: CLOCK_MONOTONIC. These return 0, or the negative error that has
 * ended the recording; nobody need look. */
int record_writer_stream_begins(record_writer *w, uint32_t stream, uint32_t pid, uint32_t clock_source, uint64_t begin_ns);
/* Consecutive events of the stream, no DEFINE cut. They are copied. May wait for the disk. */
int record_writer_events(record_writer *w, uint32_t stream, const ev *events, size_t slot_count);
/* problem: what was wrong with the stream, NULL: nothing. */
int record_writer_stream_ends(record_writer *w, uint32_t stream, const char *problem);

/* The state of the stream after all events given so far: the next chunk begins here. */
bool record_writer_wants_state(record_writer *w, uint32_t stream);
int record_writer_state(record_writer *w, uint32_t stream, const sim_state *state);

/* Waits until all that was given is in the file (as far as the system is concerned; not forced on to the disk). */
int record_writer_flush(record_writer *w);
/* What the session looked like so far (overview.h): goes before the next index that is written. Copied. 0 or -ENOMEM, which only
 * leaves the overview out. */
int record_writer_overview(record_writer *w, const void *bytes, size_t count, uint64_t begin_ns, uint64_t end_ns);
/* Flushes and writes the index: the file is complete as it stands. More may come; it takes the index's place. */
int record_writer_settle(record_writer *w);
/* Flushes, writes the index and closes the file. 0, or what has ended the recording. */
int record_writer_finish(record_writer *w);
/* Finishes if that is not done, and frees. NULL is fine. */
void record_writer_close(record_writer *w);

/* NULL, or one line: file, reason. Stays valid until record_writer_close. */
const char *record_writer_problem(record_writer *w);

typedef struct record_writer_stats {
    uint64_t file_bytes, event_count, chunk_count; /* in the file by now */
    uint64_t waits;                                /* times the caller had to wait for the disk */
    uint64_t held_bytes;                           /* of events in memory */
} record_writer_stats;

record_writer_stats record_writer_stats_of(record_writer *w);

#endif
