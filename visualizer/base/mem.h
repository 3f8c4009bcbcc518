/* base/mem.h - allocation through one door, which tests can make fail.
 * For:     every room that allocates.
 * Use:     mem_alloc, mem_zalloc, mem_realloc, mem_aligned; mem_free. Tests: mem_fail_every(n).
 * Threads: any.
 * Errors:  NULL when memory is out or count * size does not fit a size_t.
 */
#ifndef RRTRACE_BASE_MEM_H
#define RRTRACE_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t count, size_t size);              /* not cleared */
void *mem_zalloc(size_t count, size_t size);             /* cleared */
void *mem_realloc(void *old, size_t count, size_t size); /* as realloc: old stays valid when it fails */
void *mem_aligned(size_t alignment, size_t bytes);       /* alignment: a power of two; not cleared */
void mem_free(void *p);                                  /* of any of the above; NULL is fine */

/* Every n-th allocation fails from now on; 0: none (the default). */
void mem_fail_every(unsigned n);

#endif
