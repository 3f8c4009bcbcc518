#include "base/workers.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Protocol. A run is a generation. The caller fills fn, context and count, sets busy_count to the number of threads, raises
 * generation and wakes all, under the mutex. Each thread that sees a new generation works off indices and then lowers
 * busy_count under the mutex; the last one wakes the caller. The mutex orders everything but the index counter, which only
 * has to hand out each number once (relaxed). */
struct workers {
    pthread_mutex_t mutex;
    pthread_cond_t start, done;
    pthread_t *threads; /* owned; started_count of them run */
    unsigned thread_count, started_count;
    unsigned generation, busy_count; /* under the mutex */
    bool stops;                      /* under the mutex */
    workers_fn *fn;                  /* these three: written before a generation begins, constant within it */
    void *context;
    size_t count;
    _Atomic size_t next_index;
};

typedef struct start_info {
    workers *w;
    unsigned thread;
} start_info;

static void work_off(workers *w, unsigned thread)
{
    for (;;) {
        size_t index = atomic_fetch_add_explicit(&w->next_index, 1, memory_order_relaxed);
        if (index >= w->count)
            return;
        w->fn(w->context, index, thread);
    }
}

static void *worker_main(void *argument)
{
    start_info info = *(start_info *)argument;
    mem_free(argument);
    workers *w = info.w;
    unsigned seen = 0;
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        while (w->generation == seen && !w->stops)
            pthread_cond_wait(&w->start, &w->mutex);
        if (w->stops)
            break;
        seen = w->generation;
        pthread_mutex_unlock(&w->mutex);
        work_off(w, info.thread);
        pthread_mutex_lock(&w->mutex);
        if (--w->busy_count == 0)
            pthread_cond_signal(&w->done);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static int start_threads(workers *w)
{
    for (unsigned i = 1; i < w->thread_count; i++) {
        start_info *info = mem_alloc(1, sizeof *info);
        if (!info)
            return -ENOMEM;
        *info = (start_info){w, i};
        int error = pthread_create(&w->threads[i - 1], NULL, worker_main, info);
        if (error) {
            mem_free(info);
            return -error;
        }
        w->started_count++;
    }
    return 0;
}

int workers_new(workers **out, unsigned thread_count)
{
    *out = NULL;
    if (thread_count == 0 || thread_count > 256)
        return -EINVAL;
    workers *w = mem_zalloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->start, NULL);
    pthread_cond_init(&w->done, NULL);
    w->thread_count = thread_count;
    w->threads = mem_zalloc(thread_count, sizeof *w->threads);
    int error = w->threads ? start_threads(w) : -ENOMEM;
    if (error) {
        workers_delete(w);
        return error;
    }
    *out = w;
    return 0;
}

void workers_delete(workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->mutex);
    w->stops = true;
    pthread_cond_broadcast(&w->start);
    pthread_mutex_unlock(&w->mutex);
    for (unsigned i = 0; i < w->started_count; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->done);
    pthread_cond_destroy(&w->start);
    pthread_mutex_destroy(&w->mutex);
    mem_free(w->threads);
    mem_free(w);
}

unsigned workers_count(const workers *w) { return w ? w->thread_count : 1; }

void workers_run(workers *w, size_t count, workers_fn *fn, void *context)
{
    if (!w || w->thread_count == 1 || count <= 1) {
        for (size_t i = 0; i < count; i++)
            fn(context, i, 0);
        return;
    }
    pthread_mutex_lock(&w->mutex);
    w->fn = fn;
    w->context = context;
    w->count = count;
    atomic_store_explicit(&w->next_index, 0, memory_order_relaxed);
    w->busy_count = w->started_count;
    w->generation++;
    pthread_cond_broadcast(&w->start);
    pthread_mutex_unlock(&w->mutex);

    work_off(w, 0);

    pthread_mutex_lock(&w->mutex);
    while (w->busy_count != 0)
        pthread_cond_wait(&w->done, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
}
