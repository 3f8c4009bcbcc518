/* record/overview.h - what a whole session looked like from afar, in a few MB: a recording's last chunk before its index.
 * For:     app/: the recorder makes it of its history when a session ends; whoever opens the file shows it at once.
 * Idea:    the recorder's history has summaries of every row already, so asking all rows at some thousandth of the session
 *          costs milliseconds, and no event need be read again. The resolution is as fine as OVERVIEW_NODES_MAX nodes allow,
 *          or fewer in a small recording, whose events are read sooner than an overview is missed. Where even so there are
 *          too many rows, the deepest are left out: what calls them is there.
 * Use:     overview_build, record_writer_overview; later record_read_overview, overview_read.
 * Memory:  some 10 bytes a node, written; outline.h's when it is read.
 * Threads: overview_build reads catalog, history and open frames: nobody may change them meanwhile; overview_read with the
 *          model lock.
 * Units:   CLOCK_MONOTONIC ns.
 */
#ifndef RRTRACE_RECORD_OVERVIEW_H
#define RRTRACE_RECORD_OVERVIEW_H

#include "history/history.h"
#include "history/outline.h"
#include "record/columns.h"
#include "sim/catalog.h"
#include "sim/sim.h"

#define OVERVIEW_NODES_MAX (UINT32_C(1) << 18) /* 2 MB packed */
#define OVERVIEW_EVENTS_A_NODE 256u            /* then it takes at most some hundredths of the file */
#define OVERVIEW_EVENTS_MIN UINT64_C(4000000)  /* fewer are read in a tenth of a second */
#define OVERVIEW_COLUMNS 4096u                 /* parts of the session's time: more than a screen has pixels */

/* How many nodes a recording of so many events may spend; 0: it needs no overview. */
uint32_t overview_node_limit(uint64_t event_count);

/* Appends to *out. first_stream: what the catalog's process 0 is called in the file. [begin_ns, end_ns): of the session; calls
 * still open (sim, may be NULL) last until end_ns. 0 or -ENOMEM. */
int overview_build(const catalog *c, const history *h, const sim *s, uint32_t first_stream, uint64_t begin_ns, uint64_t end_ns,
                   uint32_t node_limit, columns_bytes *out);

/* The same of a recording that may have begun late. */
typedef struct overview_desc {
    const uint32_t *streams; /* by the catalog's process: what it is called in the file, or OVERVIEW_NOT_THERE */
    uint64_t from_ns;        /* what ended before is left out; what lies across is cut at begin_ns */
    uint64_t begin_ns, end_ns;
    uint32_t node_limit;
} overview_desc;
#define OVERVIEW_NOT_THERE UINT32_MAX
int overview_build_of(const catalog *c, const history *h, const sim *s, const overview_desc *desc, columns_bytes *out);

/* Into an outline, no larger than bytes_max: coarser, then without the deepest rows. process_of: the catalog's id of a stream of
 * the file, CATALOG_NONE: it has none. What is not in the catalog is left out. 0, -EBADMSG: these bytes are no overview (what
 * came before is in), or -ENOMEM. */
int overview_read(const void *bytes, size_t count, const catalog *c, uint32_t (*process_of)(void *context, uint32_t stream),
                  void *context, size_t bytes_max, outline *out);

#endif
