/* base/workers.h - a pool of threads that run one loop together.
 * For:     sim/, which does the same thing to many blocks.
 * Idea:    workers_run is a parallel for: indices [0, count) are handed out one by one from an atomic counter to the
 *          pool's threads and the caller; it returns when all are done. Between runs the threads sleep.
 * Use:     workers_new(&w, n); workers_run(w, count, fn, context) any number of times; workers_delete(w).
 * Threads: one caller at a time. fn runs on several at once; thread, in [0, workers_count(w)), tells them apart.
 *          What the caller wrote before workers_run is seen by fn, and what fn wrote is seen after it returns.
 */
#ifndef RRTRACE_BASE_WORKERS_H
#define RRTRACE_BASE_WORKERS_H

#include <stddef.h>

typedef struct workers workers;
typedef void workers_fn(void *context, size_t index, unsigned thread);

/* thread_count: the caller included, 1 … 256. 0, -EINVAL, -ENOMEM or what pthread_create said, negative. */
int workers_new(workers **out, unsigned thread_count);
void workers_delete(workers *w);          /* NULL is fine */
unsigned workers_count(const workers *w); /* NULL: 1 */
void workers_run(workers *w, size_t count, workers_fn *fn, void *context); /* w NULL: on the calling thread alone */

#endif
