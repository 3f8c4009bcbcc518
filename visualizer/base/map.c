#include "base/map.h"

#include "base/mem.h"

#include <errno.h>

struct map_place {
    uint64_t key;
    uint32_t value; /* MAP_NONE: free */
    uint32_t reserved;
};

void map_init(map *m) { *m = (map){0}; }

void map_free(map *m)
{
    mem_free(m->places);
    map_init(m);
}

/* The place of key, or the free one where it would go. There is always a free one. */
static struct map_place *find(const map *m, uint64_t key)
{
    size_t mask = m->capacity - 1, i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & mask;
    while (m->places[i].value != MAP_NONE && m->places[i].key != key)
        i = (i + 1) & mask;
    return &m->places[i];
}

uint32_t map_get(const map *m, uint64_t key) { return m->capacity ? find(m, key)->value : MAP_NONE; }

static int grow(map *m)
{
    map bigger = {.capacity = m->capacity ? m->capacity * 2 : 16};
    bigger.places = mem_alloc(bigger.capacity, sizeof *bigger.places);
    if (!bigger.places)
        return -ENOMEM;
    for (size_t i = 0; i < bigger.capacity; i++)
        bigger.places[i].value = MAP_NONE;
    for (size_t i = 0; i < m->capacity; i++)
        if (m->places[i].value != MAP_NONE)
            *find(&bigger, m->places[i].key) = m->places[i];
    bigger.count = m->count;
    mem_free(m->places);
    *m = bigger;
    return 0;
}

int map_put(map *m, uint64_t key, uint32_t value)
{
    if ((m->count + 1) * 3 > m->capacity * 2) {
        int error = grow(m);
        if (error)
            return error;
    }
    struct map_place *place = find(m, key);
    if (place->value == MAP_NONE)
        m->count++;
    *place = (struct map_place){.key = key, .value = value};
    return 0;
}
