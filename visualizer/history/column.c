#include "history/store.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* What holds one group: the least that a trimmed tail keeps. */
static unsigned group_class(unsigned level)
{
    unsigned class = 0;
    while (column_class_slots(level, class) < column_group_slots(level))
        class ++;
    return class;
}

static size_t slot_bytes(unsigned level) { return level ? sizeof(node) : 12; }

static void *take(history *h, unsigned level, unsigned class)
{
    void *block = blocks_take(&h->blocks, class);
    if (block)
        h->level_bytes[level] += blocks_class_bytes(class);
    return block;
}

static void give(history *h, unsigned level, unsigned class, void *block)
{
    if (!block)
        return;
    blocks_give(&h->blocks, block, class);
    h->level_bytes[level] -= blocks_class_bytes(class);
}

static uint64_t first_full_chunk(const column *c, unsigned level)
{
    return c->tail_first / column_chunk_slots(level) - c->full_count;
}

/* Move slots [from, from + count) of the tail into a block of another class that starts at slot first. */
static int tail_move(history *h, column *c, unsigned level, unsigned class, uint64_t first, uint64_t from, uint64_t count)
{
    chunk fresh = {.block = take(h, level, class), .base_ns = c->tail.base_ns};
    if (fresh.block && c->tail.wide) {
        fresh.wide = take(h, level, class);
        if (!fresh.wide) {
            give(h, level, class, fresh.block);
            return -ENOMEM;
        }
        memset(fresh.wide, 0, blocks_class_bytes(class));
    }
    if (!fresh.block)
        return -ENOMEM;
    size_t unit = slot_bytes(level), bytes = (size_t)count * unit;
    size_t to_offset = (size_t)(from - first) * unit, from_offset = (size_t)(from - c->tail_first) * unit;
    memcpy((unsigned char *)fresh.block + to_offset, (unsigned char *)c->tail.block + from_offset, bytes);
    if (fresh.wide)
        memcpy((unsigned char *)fresh.wide + to_offset, (unsigned char *)c->tail.wide + from_offset, bytes);
    give(h, level, c->tail_class, c->tail.block);
    give(h, level, c->tail_class, c->tail.wide);
    c->tail = fresh;
    c->tail_class = (uint8_t)class;
    c->tail_first = first;
    return 0;
}

/* Room for one more full chunk in the list. */
static int full_reserve(history *h, column *c)
{
    size_t bytes = c->full_bytes, want = ((size_t)c->full_first + c->full_count + 1) * sizeof(chunk);
    if (want <= bytes)
        return 0;
    if (c->full_first > c->full_count) {
        memmove(c->full, c->full + c->full_first, c->full_count * sizeof(chunk));
        c->full_first = 0;
        return 0;
    }
    chunk *grown = array_grow(h, c->full, &bytes, want);
    if (!grown || bytes > UINT32_MAX)
        return -ENOMEM;
    c->full = grown;
    c->full_bytes = (uint32_t)bytes;
    return 0;
}

int column_grow(history *h, column *c, unsigned level, uint64_t base_ns)
{
    if (!c->tail.block) {
        c->tail = (chunk){.block = take(h, level, 0), .base_ns = base_ns};
        c->tail_class = 0;
        return c->tail.block ? 0 : -ENOMEM;
    }
    /* Into the next greater block that has room, at the place that is its own in the chunk (a trimmed tail lies somewhere in
     * the midst of it); when the chunk is full, into a block of its own. */
    uint32_t slots = column_class_slots(level, c->tail_class);
    uint64_t end = c->tail_first + slots, first = c->tail_first;
    unsigned class = c->tail_class;
    while (class < BLOCKS_WHOLE && first + column_class_slots(level, class) <= end) {
        class ++;
        first -= first % column_class_slots(level, class);
    }
    if (class != c->tail_class) {
        int error = tail_move(h, c, level, class, first, c->tail_first, slots);
        if (error || end < first + column_class_slots(level, class))
            return error;
    }
    int error = full_reserve(h, c);
    chunk fresh = {.block = error ? NULL : take(h, level, BLOCKS_WHOLE), .base_ns = base_ns};
    if (!fresh.block)
        return -ENOMEM;
    c->full[c->full_first + c->full_count++] = c->tail;
    c->tail = fresh;
    c->tail_first += column_chunk_slots(level);
    return 0;
}

uint64_t column_evictable_end(const column *c, unsigned level, uint64_t covered, uint64_t end)
{
    if (c->full_count) {
        uint64_t chunk_end = (first_full_chunk(c, level) + 1) * column_chunk_slots(level);
        return chunk_end <= covered ? chunk_end : 0;
    }
    if (!c->tail.block || covered <= c->live_from)
        return 0;
    bool is_smaller = c->tail_class > group_class(level) && end - covered <= column_group_slots(level);
    return is_smaller || covered == end ? covered : 0;
}

int column_evict(history *h, column *c, unsigned level, uint64_t covered, uint64_t end)
{
    uint64_t gone = column_evictable_end(c, level, covered, end);
    assert(gone);
    if (c->full_count) {
        const chunk *k = &c->full[c->full_first];
        give(h, level, BLOCKS_WHOLE, k->block);
        give(h, level, BLOCKS_WHOLE, k->wide);
        c->full_first++;
        if (--c->full_count == 0) {
            array_release(h, c->full, c->full_bytes);
            c->full = NULL;
            c->full_first = c->full_bytes = 0;
        }
    } else if (end == gone) {
        give(h, level, c->tail_class, c->tail.block);
        give(h, level, c->tail_class, c->tail.wide);
        c->tail = (chunk){0};
        c->tail_class = 0;
        c->tail_first = gone;
    } else {
        int error = tail_move(h, c, level, group_class(level), gone, gone, end - gone);
        if (error)
            return error;
    }
    c->live_from = gone;
    return 0;
}

void column_release(history *h, column *c, unsigned level)
{
    for (uint32_t i = 0; i < c->full_count; i++) {
        give(h, level, BLOCKS_WHOLE, c->full[c->full_first + i].block);
        give(h, level, BLOCKS_WHOLE, c->full[c->full_first + i].wide);
    }
    array_release(h, c->full, c->full_bytes);
    give(h, level, c->tail_class, c->tail.block);
    give(h, level, c->tail_class, c->tail.wide);
    *c = (column){0};
}

const chunk *column_chunk(const column *c, unsigned level, uint64_t slot, uint32_t *index)
{
    assert(slot >= c->live_from);
    if (slot >= c->tail_first) {
        *index = (uint32_t)(slot - c->tail_first);
        return &c->tail;
    }
    uint32_t chunk_slots = column_chunk_slots(level);
    *index = (uint32_t)(slot % chunk_slots);
    return &c->full[c->full_first + (uint32_t)(slot / chunk_slots - first_full_chunk(c, level))];
}
