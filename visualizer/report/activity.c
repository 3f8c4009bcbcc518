#include "report/activity.h"

#include "base/mem.h"

#include <stddef.h>

#define CAPACITY_FIRST 32u
#define IS_ARC 0x80000000u

struct activity_place {
    uint32_t key;   /* method or arc with IS_ARC, + 1 so that 0 is free */
    uint32_t depth; /* how many are open */
};

static struct activity_place *find(const activity *a, uint32_t key)
{
    uint32_t mask = a->capacity - 1, i = (key * 2654435769u >> 12) & mask; /* Knuth's multiplicative hashing */
    while (a->places[i].key != 0 && a->places[i].key != key)
        i = (i + 1) & mask;
    return &a->places[i];
}

static bool grow(activity *a)
{
    activity bigger = {.capacity = a->capacity ? a->capacity * 2 : CAPACITY_FIRST};
    bigger.places = mem_zalloc(bigger.capacity, sizeof *bigger.places);
    if (!bigger.places)
        return false;
    for (uint32_t i = 0; i < a->capacity; i++) {
        if (a->places[i].depth == 0)
            continue; /* a good time to forget it */
        *find(&bigger, a->places[i].key) = a->places[i];
        bigger.count++;
    }
    mem_free(a->places);
    *a = bigger;
    return true;
}

static bool enter(activity *a, uint32_t key)
{
    struct activity_place *place = find(a, key);
    a->count += place->key == 0;
    place->key = key;
    return place->depth++ > 0;
}

bool activity_enter(activity *a, uint32_t method, uint32_t arc, activity *spare, bool *is_open, bool *is_arc_open)
{
    if (a->capacity == 0) {
        *a = *spare;
        *spare = (activity){0};
    }
    if ((a->count + 2) * 3 > a->capacity * 2 && !grow(a))
        return false;
    *is_open = enter(a, method + 1);
    *is_arc_open = enter(a, (arc | IS_ARC) + 1);
    return true;
}

void activity_leave(activity *a, uint32_t method, uint32_t arc)
{
    find(a, method + 1)->depth--;
    find(a, (arc | IS_ARC) + 1)->depth--;
}

void activity_give(activity *a, activity *spare)
{
    if (a->capacity > spare->capacity) {
        activity_free(spare);
        *spare = *a;
        *a = (activity){0};
    } else {
        activity_free(a);
    }
}

void activity_free(activity *a)
{
    mem_free(a->places);
    *a = (activity){0};
}
