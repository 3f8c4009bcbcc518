/* record/recall.h - what memory has let go, read back from the recording while somebody looks at it.
 * For:     app/: one for each session that is recorded, or read from a file.
 * Idea:    the stretch that is wanted, and half as much on either side, is replayed from the last seek point before it into a
 *          history of its own, whose tracks are numbered as the session's. While it is being read the session's outline is
 *          shown; then this history answers instead, as long as what is in sight lies inside it.
 *
 *            session's history   ~ ~ ~ outline ~ ~ ~ ~ ~ ~ ~|= = = detail = = =|
 *            wanted                    [.....]
 *            read back             [= = = = = = =]
 * Use:     recall_new; every frame recall_want for what is in sight, if it lacks detail; recall_hold, query, recall_release;
 *          recall_delete.
 * Memory:  budget_bytes for the spans, two of them while the next stretch is read; a few MiB to decode.
 * Threads: its own thread reads. recall_want, recall_hold and recall_release on one other; recall_hold keeps the mutex until
 *          recall_release, so no other call lies between them. It may be called with the model lock held: this thread takes
 *          that lock (through desc) only when it holds nothing.
 * Errors:  what can't be read stays an outline; recall_problem says why.
 * Units:   CLOCK_MONOTONIC ns.
 */
#ifndef RRTRACE_RECORD_RECALL_H
#define RRTRACE_RECORD_RECALL_H

#include "history/history.h"
#include "sim/catalog.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct recall recall;

typedef struct recall_desc {
    const char *path; /* borrowed */
    size_t budget_bytes;
    uint32_t first_stream;         /* what the session's first stream is called in the file */
    const catalog *catalog;        /* the session's, borrowed: its process ids count as the file's streams do from there on */
    void (*lock)(void *context);   /* its lock */
    void (*unlock)(void *context);
    void *context;
} recall_desc;

/* Opens the file, so that it stays this one whatever its name stands for later. 0 or -errno. */
int recall_new(recall **out, const recall_desc *desc);
void recall_delete(recall *r);                         /* NULL is fine */

/* [begin_ns, end_ns) should be there in detail. The last call counts; one that is served already, or that has more in it than
 * the budget holds, does nothing. */
void recall_want(recall *r, uint64_t begin_ns, uint64_t end_ns);
/* It has more in it than the budget holds: only a shorter one can be there. False as long as that is not known. */
bool recall_is_too_much(recall *r, uint64_t begin_ns, uint64_t end_ns);

/* What has been read back: whole within [*begin_ns, *end_ns) (spans that were open at either end are cut off there). NULL:
 * nothing so far. */
const history *recall_hold(recall *r, uint64_t *begin_ns, uint64_t *end_ns);
void recall_release(recall *r);

/* Goes up with every stretch that is there: another picture than before. */
uint64_t recall_generation(recall *r);
/* NULL, or one line: why some stretch could not be read. Valid until the next call. */
const char *recall_problem(recall *r);

#endif
