/* export/jsonl.h - one JSON object a line for every call, for jq, DuckDB and tests.
 * For:     app/command_export.c.
 * Idea:    lines come in the order of starts, but a line needs the call's end. Nearly all calls end within JSONL_WINDOW
 *          starts, and wait in a ring of that length. The few that take longer (main, a server's loop) are looked up: a first
 *          pass over the file has noted their ends.
 *
 *            {"pid":…, "thread":…, "fiber":…, "depth":0, "name":"Object#fib", "kind":"ruby", "start_ns":…,
 *             "duration_ns":… or null if it never returned, "closed_by":"return"|"unwound"|"end"|null}
 *
 *          and "open_at_start":true behind it on frames that were open before tracing began. depth counts the frames below
 *          on its own fiber's stack. start_ns counts from the recording's begin. closed_by: "end" when the program
 *          ended with the call open, null when the recording did; duration_ns is null in both. Bytes of names: base/pen.h.
 * Use:     jsonl_new; all streams: jsonl_stream_open, jsonl_run, jsonl_stream_close; jsonl_second_pass; the same streams
 *          with the same events again; jsonl_delete. Lines go to the pen; its own error tells of trouble with it.
 * Memory:  JSONL_WINDOW * 32 bytes a stream, 24 bytes a call that takes longer: at most one a window and frame open at once,
 *          and a text for each method. Nothing else grows with the calls.
 * Threads: one at a time.
 */
#ifndef RRTRACE_EXPORT_JSONL_H
#define RRTRACE_EXPORT_JSONL_H

#include "base/pen.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSONL_WINDOW 16384u /* 512 KiB a stream stay in the second-level cache */
#define JSONL_STREAM_NONE UINT32_MAX

typedef struct jsonl jsonl;

int jsonl_new(jsonl **out, pen *to, uint64_t origin_ns); /* to: borrowed; start_ns count from origin_ns. 0 or -ENOMEM */
void jsonl_delete(jsonl *j);         /* NULL is fine */

uint32_t jsonl_stream_open(jsonl *j, uint32_t pid); /* JSONL_STREAM_NONE: memory is out */
int jsonl_run(jsonl *j, uint32_t stream, const ev *events, size_t event_count); /* 0 or -ENOMEM */
int jsonl_stream_close(jsonl *j, uint32_t stream, bool has_ended); /* has_ended: the program has, not the recording alone */
int jsonl_second_pass(jsonl *j); /* after all streams are closed: from here on lines are written. 0 or -ENOMEM */
uint64_t jsonl_dropped(const jsonl *j); /* events that the streams' programs have dropped, by what has been run: their calls are missing */

#endif
