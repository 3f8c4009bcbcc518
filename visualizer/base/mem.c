#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static _Atomic unsigned fail_every, fail_count; /* relaxed: a test sets them before it starts threads */

static bool fails(size_t count, size_t size)
{
    unsigned every = atomic_load_explicit(&fail_every, memory_order_relaxed);
    if (every && (atomic_fetch_add_explicit(&fail_count, 1, memory_order_relaxed) + 1) % every == 0)
        return true;
    return size && count > SIZE_MAX / size;
}

void mem_fail_every(unsigned n)
{
    atomic_store_explicit(&fail_count, 0, memory_order_relaxed);
    atomic_store_explicit(&fail_every, n, memory_order_relaxed);
}

void *mem_alloc(size_t count, size_t size) { return fails(count, size) ? NULL : malloc(count * size); }
void *mem_zalloc(size_t count, size_t size) { return fails(count, size) ? NULL : calloc(count, size); }
void *mem_realloc(void *old, size_t count, size_t size) { return fails(count, size) ? NULL : realloc(old, count * size); }

void *mem_aligned(size_t alignment, size_t bytes)
{
    if (fails(1, bytes) || bytes > SIZE_MAX - alignment)
        return NULL;
    return aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
}

void mem_free(void *p) { free(p); }
