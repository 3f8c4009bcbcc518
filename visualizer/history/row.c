#include "history/store.h"

#include <errno.h>
#include <string.h>

#define WORD_BITS 32

static unsigned columns_class(unsigned count)
{
    unsigned class = 1;
    while (blocks_class_bytes(class) < count * sizeof(column))
        class ++;
    return class;
}

uint64_t row_covered(const row *r, unsigned level)
{
    if (level + 1 >= row_level_count(r))
        return 0;
    uint64_t covered = r->columns[level + 1].item_count * column_group_slots(level);
    return level == 0 && covered > r->group_first ? r->group_first : covered;
}

row_spans row_spans_at(const row *r, uint64_t slot)
{
    uint64_t first = slot - slot % STORE_GROUP;
    row_spans s = {.first = (uint32_t)(slot % STORE_GROUP), .lanes = STORE_GROUP, .end = STORE_GROUP};
    if (first == r->group_first) {
        s.words = r->group;
        s.wide = r->wide_group;
        s.base_ns = r->base_ns;
        s.lanes = (uint32_t)(r->stop - r->group);
        s.end = (uint32_t)(r->next - r->group);
    } else {
        uint32_t index;
        const chunk *k = column_chunk(&r->columns[0], 0, first, &index);
        size_t offset = (size_t)index / STORE_GROUP * STORE_GROUP_WORDS;
        s.words = (const uint32_t *)k->block + offset;
        s.wide = k->wide ? k->wide + offset : NULL;
        s.base_ns = k->base_ns;
    }
    return s;
}

/* One more column. Moves them all: borrowed pointers to columns end here. */
static int add_column(history *h, row *r)
{
    unsigned count = r->columns ? r->columns[0].level_count : 0, wanted = r->columns ? count + 1 : 2;
    if (wanted > STORE_LEVELS_MAX)
        return -ENOMEM;
    if (!r->columns || columns_class(wanted) != columns_class(count)) {
        column *fresh = blocks_take(&h->blocks, columns_class(wanted));
        if (!fresh)
            return -ENOMEM;
        memset(fresh, 0, blocks_class_bytes(columns_class(wanted)));
        if (r->columns) {
            memcpy(fresh, r->columns, count * sizeof *fresh);
            blocks_give(&h->blocks, r->columns, columns_class(count));
            h->column_bytes -= blocks_class_bytes(columns_class(count));
        } else {
            fresh->tail = (chunk){.block = r->group, .wide = r->wide_group, .base_ns = r->base_ns};
            fresh->tail_class = 1;
        }
        r->columns = fresh;
        h->column_bytes += blocks_class_bytes(columns_class(wanted));
    }
    r->columns[0].level_count = (uint8_t)wanted;
    return 0;
}

static int push_node(history *h, column *c, unsigned level, const node *n)
{
    uint64_t index = c->item_count - c->tail_first;
    if (!c->tail.block || index == column_class_slots(level, c->tail_class)) {
        int error = column_grow(h, c, level, 0);
        if (error)
            return error;
        index = c->item_count - c->tail_first;
    }
    node *nodes = c->tail.block;
    nodes[index] = *n;
    __builtin_prefetch((const void *)((uintptr_t)(nodes + index) + sizeof *nodes), 1);
    c->item_count++;
    return 0;
}

static void offer(history *h, const row *r, uint32_t track, uint32_t depth, unsigned level)
{
    const column *c = &r->columns[level];
    if (!c->is_in_heap && (c->full_count || c->tail_class > 1))
        evict_offer(h, track, depth, level);
}

/* Build every node whose children are all there: usually one of level 1, now and then some above it. What memory does not
 * allow now is made up for the next time. */
static void summarise(history *h, row *r, uint32_t track, uint32_t depth)
{
    for (unsigned level = 0;; level++) {
        uint32_t group = column_group_slots(level);
        uint64_t count = row_item_count(r, level);
        if (count < group || (level + 1 >= row_level_count(r) && add_column(h, r) != 0))
            return;
        column *above = &r->columns[level + 1];
        while ((above->item_count + 1) * group <= count) {
            node sum;
            if (level == 0) {
                row_spans spans = row_spans_at(r, above->item_count * group);
                summary_of_spans(&sum, &spans);
            } else {
                summary_of_nodes(&sum, column_node(&r->columns[level], level, above->item_count * group), group);
            }
            if (push_node(h, above, level + 1, &sum) != 0)
                return;
        }
        offer(h, r, track, depth, level + 1);
        if (above->item_count % STORE_FANOUT != 0)
            return; /* nothing new above */
    }
}

/* The current group starts at slot group_first, in the tail: point at its lanes again. */
static void point_at_group(row *r, uint64_t group_first, uint32_t filled)
{
    const column *c = &r->columns[0];
    size_t offset = (size_t)(group_first - c->tail_first) * (STORE_GROUP_WORDS / STORE_GROUP);
    r->base_ns = c->tail.base_ns;
    r->group_first = group_first;
    r->group = (uint32_t *)c->tail.block + offset;
    r->wide_group = c->tail.wide ? c->tail.wide + offset : NULL;
    r->next = r->group + filled;
    r->stop = r->group + STORE_GROUP;
    /* The group after it (if there is one: a prefetch may miss) is in the cache when it is needed, some hundreds of spans
     * of other rows later. */
    for (uintptr_t line = 3; line < 6; line++)
        __builtin_prefetch((const void *)((uintptr_t)r->group + line * 64), 1);
}

void row_tail_moved(row *r) { point_at_group(r, r->group_first, (uint32_t)(r->next - r->group)); }

static int new_block(history *h, unsigned class, uint32_t **block, bool cleared)
{
    *block = blocks_take(&h->blocks, class);
    if (!*block)
        return -ENOMEM;
    h->level_bytes[0] += blocks_class_bytes(class);
    if (cleared)
        memset(*block, 0, blocks_class_bytes(class));
    return 0;
}

/* From four lanes to sixteen. */
static uint32_t *spread_mini(history *h, uint32_t *mini, bool cleared)
{
    uint32_t *group;
    if (new_block(h, 1, &group, cleared) != 0)
        return NULL;
    for (uint32_t part = 0; part < 3; part++)
        memcpy(group + part * STORE_GROUP, mini + part * STORE_MINI, STORE_MINI * sizeof *group);
    return group;
}

static void give_block(history *h, uint32_t *block, unsigned class)
{
    if (!block)
        return;
    blocks_give(&h->blocks, block, class);
    h->level_bytes[0] -= blocks_class_bytes(class);
}

static int grow_mini(history *h, row *r)
{
    uint32_t *group = spread_mini(h, r->group, false);
    uint32_t *wide = group && r->wide_group ? spread_mini(h, r->wide_group, true) : NULL;
    if (!group || (r->wide_group && !wide)) {
        give_block(h, group, 1);
        return -ENOMEM;
    }
    give_block(h, r->group, 0);
    give_block(h, r->wide_group, 0);
    r->group = group;
    r->wide_group = wide;
    r->next = group + STORE_MINI;
    r->stop = group + STORE_GROUP;
    return 0;
}

/* next == stop: make room for a span that begins at begin_ns. */
static int make_room(history *h, row *r, uint32_t track, uint32_t depth, uint64_t begin_ns)
{
    if (!r->group) {
        uint32_t *group;
        if (new_block(h, 0, &group, false) != 0)
            return -ENOMEM;
        *r = (row){.base_ns = begin_ns, .last_end_ns = r->last_end_ns, .group = group, .next = group, .stop = group + STORE_MINI};
        return 0;
    }
    if (r->stop - r->group == STORE_MINI)
        return grow_mini(h, r);
    summarise(h, r, track, depth);
    if (!r->columns)
        return -ENOMEM;
    column *c = &r->columns[0];
    uint64_t slot = r->group_first + STORE_GROUP;
    if (slot == c->tail_first + column_class_slots(0, c->tail_class)) {
        int error = column_grow(h, c, 0, begin_ns);
        if (error) {
            row_tail_moved(r); /* it may have grown and yet be full */
            return error;
        }
        offer(h, r, track, depth, 0);
    }
    point_at_group(r, slot, 0);
    return 0;
}

/* A span that does not fit 32 bits: the tail gets its twin, which says 0 for all spans so far. */
static int make_wide(history *h, row *r)
{
    unsigned class = r->columns ? r->columns[0].tail_class : r->stop - r->group == STORE_MINI ? 0 : 1;
    uint32_t *wide;
    if (new_block(h, class, &wide, true) != 0)
        return -ENOMEM;
    if (r->columns) {
        r->columns[0].tail.wide = wide;
        wide += r->group - (uint32_t *)r->columns[0].tail.block;
    }
    r->wide_group = wide;
    return 0;
}

int row_append(history *h, row *r, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns, uint32_t value,
               uint32_t flags)
{
    store_reserve(h);
    if (r->next == r->stop) {
        int error = make_room(h, r, track, depth, begin_ns);
        if (error)
            return error;
    }
    uint64_t offset = begin_ns - r->base_ns, duration = end_ns - begin_ns;
    bool fits = (offset | duration) >> WORD_BITS == 0 && value >> STORE_VALUE_BITS == 0;
    if (!fits && !r->wide_group && make_wide(h, r) != 0)
        return -ENOMEM;
    size_t lanes = (size_t)(r->stop - r->group);
    if (!fits) {
        uint32_t *wide = r->wide_group + (r->next - r->group);
        wide[0] = (uint32_t)(offset >> WORD_BITS);
        wide[lanes] = (uint32_t)(duration >> WORD_BITS);
        wide[2 * lanes] = value >> STORE_VALUE_BITS;
    }
    r->next[0] = (uint32_t)offset;
    r->next[lanes] = (uint32_t)duration;
    r->next[2 * lanes] = value << STORE_FLAG_BITS | flags;
    r->next++;
    r->last_end_ns = end_ns;
    return 0;
}

void row_release(history *h, row *r)
{
    if (r->columns) {
        unsigned count = row_level_count(r);
        for (unsigned level = 0; level < count; level++)
            column_release(h, &r->columns[level], level);
        blocks_give(&h->blocks, r->columns, columns_class(count));
        h->column_bytes -= blocks_class_bytes(columns_class(count));
    } else if (r->group) {
        unsigned class = r->stop - r->group == STORE_MINI ? 0 : 1;
        give_block(h, r->group, class);
        give_block(h, r->wide_group, class);
    }
    *r = (row){.last_end_ns = r->last_end_ns};
}
