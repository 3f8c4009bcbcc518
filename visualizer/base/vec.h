/* base/vec.h - growable arrays of any element type, as a struct of pointer, count and capacity.
 * For:     every room.
 * Use:     VEC(int) v = {0}; int *new_one = vec_push(&v); … v.items[i] … vec_free(&v);
 * Memory:  doubles; elements move when it grows, so keep indices, not pointers.
 * Errors:  vec_push, vec_reserve and vec_cover give NULL and false when memory is out; the array is as it was.
 */
#ifndef RRTRACE_BASE_VEC_H
#define RRTRACE_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#define VEC(type)        \
    struct {             \
        type *items;     \
        size_t count;    \
        size_t capacity; \
    }

/* A pointer to one more, uncleared element at the end. */
#define vec_push(v) (vec_reserve((v), (v)->count + 1) ? &(v)->items[(v)->count++] : NULL)

/* Room for at least wanted elements in all. */
#define vec_reserve(v, wanted) \
    ((wanted) <= (v)->capacity || vec_grow((void *)&(v)->items, &(v)->capacity, (wanted), sizeof *(v)->items))

/* At least wanted elements; the new ones, as many as there is room for, are all zero bytes. */
#define vec_cover(v, wanted) \
    ((wanted) <= (v)->count || vec_cover_with((void *)&(v)->items, &(v)->count, &(v)->capacity, (wanted), sizeof *(v)->items))

#define vec_free(v)             \
    do {                        \
        mem_free((v)->items);   \
        (v)->items = NULL;      \
        (v)->count = 0;         \
        (v)->capacity = 0;      \
    } while (0)

/* items: address of the pointer to the elements. */
bool vec_grow(void *items, size_t *capacity, size_t wanted, size_t element_bytes);
bool vec_cover_with(void *items, size_t *count, size_t *capacity, size_t wanted, size_t element_bytes);

#endif
