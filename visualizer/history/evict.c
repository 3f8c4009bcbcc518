#include "history/store.h"

#include <errno.h>

/* Of what chunks hold, spans may keep 40 %, and every level of nodes 25 %, 15 %, 9 % …: a sixth of the spans' memory keeps
 * four times their time, so that an hour is there, coarser the older it is. Only the proportions count: the level that is
 * furthest above its share gives something up. */
static const double share_spans = 0.40, share_level_1 = 0.25, share_next = 0.6;

static void sift_up(evict_heap *heap, size_t i)
{
    evict_entry e = heap->entries[i];
    for (; i > 0 && heap->entries[(i - 1) / 2].end_ns > e.end_ns; i = (i - 1) / 2)
        heap->entries[i] = heap->entries[(i - 1) / 2];
    heap->entries[i] = e;
}

static void sift_down(evict_heap *heap, size_t i)
{
    evict_entry e = heap->entries[i];
    for (size_t child; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count && heap->entries[child + 1].end_ns < heap->entries[child].end_ns)
            child++;
        if (heap->entries[child].end_ns >= e.end_ns)
            break;
        heap->entries[i] = heap->entries[child];
    }
    heap->entries[i] = e;
}

static void pop(evict_heap *heap)
{
    heap->entries[0] = heap->entries[--heap->count];
    if (heap->count)
        sift_down(heap, 0);
}

/* Key 0: the true one is looked up when it comes to the top. */
static bool push(history *h, evict_heap *heap, uint32_t track, uint32_t depth)
{
    evict_entry *grown = array_grow(h, heap->entries, &heap->bytes, (heap->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    heap->entries = grown;
    grown[heap->count++] = (evict_entry){.track = track, .depth = depth};
    sift_up(heap, heap->count - 1);
    return true;
}

void evict_offer(history *h, uint32_t track, uint32_t depth, unsigned level)
{
    if (push(h, &h->heaps[level], track, depth))
        history_row(h, track, depth)->columns[level].is_in_heap = 1;
}

void evict_offer_track(history *h, uint32_t track)
{
    if (!h->tracks[track]->is_in_heap)
        h->tracks[track]->is_in_heap = push(h, &h->track_heap, track, 0);
}

static uint64_t items_end(const row *r, unsigned level)
{
    return level ? r->columns[level].item_count : r->group_first + STORE_GROUP;
}

/* When did the spans of the oldest evictable piece end? UINT64_MAX: there is none. */
static uint64_t oldest_end_ns(const row *r, unsigned level)
{
    uint64_t end = column_evictable_end(&r->columns[level], level, row_covered(r, level), items_end(r, level));
    if (end == 0)
        return UINT64_MAX;
    return column_node(&r->columns[level + 1], level + 1, end / column_group_slots(level) - 1)->end_ns;
}

/* The row whose piece at that level is the oldest, at the top of the heap with its true key; false: none. */
static bool find_oldest(history *h, unsigned level)
{
    evict_heap *heap = &h->heaps[level];
    while (heap->count) {
        evict_entry *top = &heap->entries[0];
        row *r = history_row(h, top->track, top->depth);
        if (!r || level >= row_level_count(r) || !r->columns) { /* its track was forgotten since */
            pop(heap);
            continue;
        }
        uint64_t end_ns = oldest_end_ns(r, level);
        if (end_ns == top->end_ns && end_ns != UINT64_MAX)
            return true;
        if (end_ns == UINT64_MAX) {
            r->columns[level].is_in_heap = 0;
            pop(heap);
        } else {
            top->end_ns = end_ns;
            sift_down(heap, 0);
        }
    }
    return false;
}

/* Evict a piece of the row's column; where finer detail still lies below it, that goes first. 0, -ENOMEM, or -EBUSY: finer
 * detail is in the way that cannot go yet. */
static int evict_from(history *h, row *r, unsigned level)
{
    uint64_t end = column_evictable_end(&r->columns[level], level, row_covered(r, level), items_end(r, level));
    while (level > 0 && row_live_from(r, level - 1) < end * column_group_slots(level - 1)) {
        level--;
        end = column_evictable_end(&r->columns[level], level, row_covered(r, level), items_end(r, level));
        if (end == 0)
            return -EBUSY;
    }
    column *c = &r->columns[level];
    uint64_t live_from = c->live_from, end_ns = oldest_end_ns(r, level);
    int error = column_evict(h, c, level, row_covered(r, level), items_end(r, level));
    if (error)
        return error;
    if (level == 0) {
        row_tail_moved(r);
        h->evicted_count += c->live_from - live_from;
        h->evicted_end_ns = end_ns > h->evicted_end_ns ? end_ns : h->evicted_end_ns;
    }
    return 0;
}

static bool evict_at(history *h, unsigned level)
{
    while (find_oldest(h, level)) {
        const evict_entry top = h->heaps[level].entries[0];
        row *r = history_row(h, top.track, top.depth);
        int error = evict_from(h, r, level);
        if (error != -EBUSY)
            return error == 0;
        r->columns[level].is_in_heap = 0; /* offered again when the column grows */
        pop(&h->heaps[level]);
    }
    return false;
}

/* How far above its share is it? */
static double pressure(const history *h, unsigned level)
{
    double share = level ? share_level_1 : share_spans;
    for (unsigned i = 1; i < level; i++)
        share *= share_next;
    return (double)h->level_bytes[level] / share;
}

/* Forget the track that ended first. */
static bool evict_track(history *h)
{
    evict_heap *heap = &h->track_heap;
    while (heap->count) {
        uint32_t number = heap->entries[0].track;
        track_rows *t = h->tracks[number];
        if (heap->entries[0].end_ns != t->end_ns) {
            heap->entries[0].end_ns = t->end_ns;
            sift_down(heap, 0);
            continue;
        }
        pop(heap);
        t->is_in_heap = false;
        if (number == h->appending) /* its next slow append offers it again */
            continue;
        history_forget(h, number);
        h->forgotten_count++;
        return true;
    }
    return false;
}

/* Rows cost memory even when all that can be evicted is gone: themselves, their columns, and a group of each, which takes
 * about as much as the column. Many short tracks (a thread or a fiber for every request) must not squeeze everything else
 * out. */
static bool has_too_many_rows(const history *h)
{
    return h->row_count * STORE_ROW_LEAST_BYTES + 2 * h->column_bytes > h->budget_bytes / 2;
}

bool evict_one(history *h)
{
    if (has_too_many_rows(h) && evict_track(h))
        return true;
    uint32_t tried = 0;
    for (unsigned round = 0; round < STORE_LEVELS_MAX; round++) {
        unsigned best = STORE_LEVELS_MAX;
        for (unsigned level = 0; level < STORE_LEVELS_MAX; level++)
            if (!(tried >> level & 1) && h->heaps[level].count &&
                (best == STORE_LEVELS_MAX || pressure(h, level) > pressure(h, best)))
                best = level;
        if (best == STORE_LEVELS_MAX)
            break;
        tried |= UINT32_C(1) << best;
        if (evict_at(h, best))
            return true;
    }
    return evict_track(h);
}
