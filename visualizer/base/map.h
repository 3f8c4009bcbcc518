/* base/map.h - a hash map from 64-bit keys to 32-bit ids.
 * For:     sim/, record/, report/, history/, app/: numbers of a stream to ids of the session, and the like.
 * Idea:    open addressing, linear probing, power-of-two table at most 2/3 full; nothing is ever removed.
 * Use:     map_init; map_get, map_put; map_free.
 * Memory:  16 bytes a place.
 * Threads: one at a time.
 * Source:  multiplicative hashing by 2^64 / golden ratio, Knuth, TAOCP vol. 3, 6.4.
 */
#ifndef RRTRACE_BASE_MAP_H
#define RRTRACE_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

typedef struct map {
    struct map_place *places; /* owned */
    size_t count, capacity;
} map;

void map_init(map *m);                               /* allocates nothing */
void map_free(map *m);                               /* leaves an empty map */
uint32_t map_get(const map *m, uint64_t key);        /* MAP_NONE: not there */
int map_put(map *m, uint64_t key, uint32_t value);   /* replaces; value != MAP_NONE. 0 or -ENOMEM */

#endif
