#include "intake/block_pool.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

struct block_pool {
    pthread_mutex_t mutex;
    pthread_cond_t queued;
    block *blocks; /* owned, block_count of them */
    ev *events;    /* owned */
    /* Under the mutex: */
    block *free_list;
    block *first, *last;
    uint64_t backlog;
};

int block_pool_new(block_pool **out, uint32_t block_count)
{
    block_pool *p = *out = mem_zalloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->queued, &attributes);
    pthread_condattr_destroy(&attributes);
    p->blocks = mem_zalloc(block_count, sizeof *p->blocks);
    p->events = mem_alloc((size_t)block_count * BLOCK_EVENTS, sizeof *p->events);
    if (!p->blocks || !p->events) {
        block_pool_delete(p);
        *out = NULL;
        return -ENOMEM;
    }
    for (uint32_t i = block_count; i-- > 0;) {
        p->blocks[i].events = p->events + (size_t)i * BLOCK_EVENTS;
        p->blocks[i].next = p->free_list;
        p->free_list = &p->blocks[i];
    }
    return 0;
}

void block_pool_delete(block_pool *p)
{
    if (!p)
        return;
    pthread_cond_destroy(&p->queued);
    pthread_mutex_destroy(&p->mutex);
    mem_free(p->blocks);
    mem_free(p->events);
    mem_free(p);
}

block *block_pool_take(block_pool *p)
{
    pthread_mutex_lock(&p->mutex);
    block *b = p->free_list;
    if (b)
        p->free_list = b->next;
    pthread_mutex_unlock(&p->mutex);
    if (b)
        *b = (block){.events = b->events};
    return b;
}

void block_pool_queue(block_pool *p, block *b)
{
    b->next = NULL;
    pthread_mutex_lock(&p->mutex);
    if (p->last)
        p->last->next = b;
    else
        p->first = b;
    p->last = b;
    p->backlog += b->event_count;
    pthread_cond_signal(&p->queued);
    pthread_mutex_unlock(&p->mutex);
}

static struct timespec in_ms(int timeout_ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

size_t block_pool_wait(block_pool *p, block **out, size_t max, int timeout_ms)
{
    struct timespec deadline = in_ms(timeout_ms);
    size_t count = 0;
    pthread_mutex_lock(&p->mutex);
    while (!p->first && pthread_cond_timedwait(&p->queued, &p->mutex, &deadline) == 0)
        ;
    while (p->first && count < max) {
        block *b = p->first;
        p->first = b->next;
        if (!p->first)
            p->last = NULL;
        p->backlog -= b->event_count;
        out[count++] = b;
    }
    pthread_mutex_unlock(&p->mutex);
    return count;
}

void block_pool_give(block_pool *p, block *b)
{
    pthread_mutex_lock(&p->mutex);
    b->next = p->free_list;
    p->free_list = b;
    pthread_mutex_unlock(&p->mutex);
}

uint64_t block_pool_backlog(block_pool *p)
{
    pthread_mutex_lock(&p->mutex);
    uint64_t backlog = p->backlog;
    pthread_mutex_unlock(&p->mutex);
    return backlog;
}
