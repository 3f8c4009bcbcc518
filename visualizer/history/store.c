#include "history/store.h"

#include "base/mem.h"

#include <string.h>

void store_make_reserve(history *h)
{
    while (h->blocks.whole_count < STORE_RESERVED_BLOCKS)
        if (!blocks_fill(&h->blocks, STORE_RESERVED_BLOCKS) && !evict_one(h))
            return;
}

static unsigned class_for(size_t bytes)
{
    unsigned class = 0;
    while (blocks_class_bytes(class) < bytes)
        class ++;
    return class;
}

/* Blocks get what the side arrays leave of 15/16 of the budget, so that side arrays have room to grow when blocks are up. */
static void side_changed(history *h, size_t old_bytes, size_t new_bytes)
{
    size_t most = h->budget_bytes - h->budget_bytes / 16;
    h->side_bytes += new_bytes - old_bytes;
    h->blocks.limit_bytes = most > h->side_bytes ? most - h->side_bytes : 0;
}

static void *grow_side(history *h, void *old, size_t *bytes, size_t want)
{
    bool was_side = *bytes > BLOCKS_WHOLE_BYTES;
    size_t old_side = was_side ? *bytes : 0, half_more = *bytes + *bytes / 2;
    size_t fresh_bytes = want > half_more ? want : half_more;
    size_t used = h->blocks.taken_bytes + h->side_bytes;
    if (used > h->budget_bytes || fresh_bytes - old_side > h->budget_bytes - used)
        return NULL;
    void *fresh = mem_realloc(was_side ? old : NULL, fresh_bytes, 1);
    if (!fresh)
        return NULL;
    if (!was_side && old) {
        memcpy(fresh, old, *bytes);
        blocks_give(&h->blocks, old, class_for(*bytes));
    }
    side_changed(h, old_side, fresh_bytes);
    *bytes = fresh_bytes;
    return fresh;
}

void *array_grow(history *h, void *old, size_t *bytes, size_t want)
{
    if (want <= *bytes)
        return old;
    if (want > BLOCKS_WHOLE_BYTES)
        return grow_side(h, old, bytes, want);
    void *fresh = blocks_take(&h->blocks, class_for(want));
    if (!fresh)
        return NULL;
    if (old) {
        memcpy(fresh, old, *bytes);
        blocks_give(&h->blocks, old, class_for(*bytes));
    }
    *bytes = blocks_class_bytes(class_for(want));
    return fresh;
}

void array_release(history *h, void *old, size_t bytes)
{
    if (!old)
        return;
    if (bytes > BLOCKS_WHOLE_BYTES) {
        mem_free(old);
        side_changed(h, bytes, 0);
    } else {
        blocks_give(&h->blocks, old, class_for(bytes));
    }
}
