#include "base/vec.h"

#include "base/mem.h"

#include <string.h>

bool vec_grow(void *items, size_t *capacity, size_t wanted, size_t element_bytes)
{
    size_t new_capacity = *capacity ? *capacity : 16;
    while (new_capacity < wanted)
        new_capacity = new_capacity <= (size_t)-1 / 2 ? new_capacity * 2 : wanted;
    void *old; /* copied out and in: the pointer's own type is not ours to know */
    memcpy(&old, items, sizeof old);
    void *bigger = mem_realloc(old, new_capacity, element_bytes);
    if (!bigger)
        return false;
    memcpy(items, &bigger, sizeof bigger);
    *capacity = new_capacity;
    return true;
}

bool vec_cover_with(void *items, size_t *count, size_t *capacity, size_t wanted, size_t element_bytes)
{
    if (wanted > *capacity && !vec_grow(items, capacity, wanted, element_bytes))
        return false;
    char *first;
    memcpy(&first, items, sizeof first);
    memset(first + *count * element_bytes, 0, (*capacity - *count) * element_bytes);
    *count = *capacity;
    return true;
}
