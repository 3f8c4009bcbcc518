#include "history/store.h"

#include "history/outline.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

/* Stands in for pages that no span has needed yet: its rows are full, so an append goes the slow way. Never written. */
static row no_rows[STORE_ROWS_PER_PAGE];

int history_new(history **out, size_t budget_bytes)
{
    *out = NULL;
    if (budget_bytes < HISTORY_BUDGET_MIN)
        return -EINVAL;
    history *h = mem_zalloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->budget_bytes = budget_bytes;
    h->appending = SIM_TRACK_NONE;
    h->side_bytes = sizeof *h;
    /* Few mallocs, and little asked for too much: a 64th of the budget, at most two huge pages of 2 MiB. */
    size_t region = budget_bytes / 64 / BLOCKS_SLAB_BYTES * BLOCKS_SLAB_BYTES, most = (size_t)4 << 20;
    region = region < BLOCKS_SLAB_BYTES ? BLOCKS_SLAB_BYTES : region > most ? most : region;
    blocks_init(&h->blocks, budget_bytes - budget_bytes / 16 - h->side_bytes, region);
    *out = h;
    return 0;
}

static track_rows *track_at(const history *h, uint32_t number) { return number < h->track_limit ? h->tracks[number] : NULL; }

row *history_row(const history *h, uint32_t track_number, uint32_t depth)
{
    const track_rows *t = track_at(h, track_number);
    return t && depth < t->row_limit ? &t->pages[depth / STORE_ROWS_PER_PAGE][depth % STORE_ROWS_PER_PAGE] : NULL;
}

static track_rows *track_make(history *h, uint32_t number)
{
    store_reserve(h);
    if (number >= h->track_limit) {
        size_t bytes = h->tracks_bytes;
        track_rows **grown = array_grow(h, h->tracks, &bytes, ((size_t)number + 1) * sizeof *grown);
        if (!grown)
            return NULL;
        size_t limit = bytes / sizeof *grown;
        memset(grown + h->track_limit, 0, (limit - h->track_limit) * sizeof *grown);
        h->tracks = grown;
        h->tracks_bytes = bytes;
        h->track_limit = (uint32_t)(limit < UINT32_MAX ? limit : UINT32_MAX);
    }
    track_rows *t = blocks_take(&h->blocks, 0);
    if (t)
        *t = (track_rows){.begin_ns = UINT64_MAX};
    h->tracks[number] = t;
    return t;
}

static uint32_t page_rows(const track_rows *t) { return t->row_limit < STORE_ROWS_PER_PAGE ? t->row_limit : STORE_ROWS_PER_PAGE; }

static unsigned page_class(const track_rows *t)
{
    unsigned class = 1;
    while (blocks_class_bytes(class) < page_rows(t) * sizeof(row))
        class ++;
    return class;
}

void history_forget(history *h, uint32_t number)
{
    track_rows *t = h->tracks[number];
    for (uint32_t page = 0; page < t->page_count; page++) {
        if (t->pages[page] == no_rows)
            continue;
        for (uint32_t i = 0; i < page_rows(t); i++) {
            row *r = &t->pages[page][i];
            if (!r->group)
                continue;
            h->row_count--;
            h->evicted_count += row_span_count(r) - row_live_from(r, 0);
            row_release(h, r);
        }
        blocks_give(&h->blocks, t->pages[page], page_class(t));
    }
    h->evicted_end_ns = t->end_ns > h->evicted_end_ns ? t->end_ns : h->evicted_end_ns;
    array_release(h, t->pages, t->pages_bytes);
    bool is_in_heap = t->is_in_heap;
    *t = (track_rows){.begin_ns = UINT64_MAX, .is_in_heap = is_in_heap};
}

void history_delete(history *h)
{
    if (!h)
        return;
    /* What lies in blocks goes with them, but side arrays hang on rows and tracks. */
    for (uint32_t i = 0; i < h->track_limit; i++)
        if (h->tracks[i])
            history_forget(h, i);
    array_release(h, h->tracks, h->tracks_bytes);
    for (unsigned level = 0; level < STORE_LEVELS_MAX; level++)
        array_release(h, h->heaps[level].entries, h->heaps[level].bytes);
    array_release(h, h->track_heap.entries, h->track_heap.bytes);
    blocks_free(&h->blocks);
    mem_free(h);
}

_Static_assert(sizeof(track_rows) <= 48, "the smallest piece");

/* Pages up to that of depth; those between are no_rows. */
static int pages_extend(history *h, track_rows *t, uint32_t page_count)
{
    size_t bytes = t->pages_bytes;
    row **grown = array_grow(h, t->pages, &bytes, page_count * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    t->pages = grown;
    t->pages_bytes = (uint32_t)bytes; /* at most 8 bytes for each of 2^20 / 48 pages, and half as much again */
    while (t->page_count < page_count)
        t->pages[t->page_count++] = no_rows;
    return 0;
}

/* The first page grows through the block classes, as most tracks are shallow. */
static int first_page_grow(history *h, track_rows *t, uint32_t depth)
{
    unsigned class = 1;
    while (class < BLOCKS_WHOLE && blocks_class_bytes(class) < ((size_t)depth + 1) * sizeof(row))
        class ++;
    row *fresh = blocks_take(&h->blocks, class);
    if (!fresh)
        return -ENOMEM;
    memset(fresh, 0, blocks_class_bytes(class));
    row *old = t->pages[0];
    if (old != no_rows) {
        memcpy(fresh, old, t->row_limit * sizeof(row));
        blocks_give(&h->blocks, old, page_class(t));
    }
    t->pages[0] = fresh;
    t->row_limit = (uint32_t)(blocks_class_bytes(class) / sizeof(row));
    return 0;
}

/* The row, made if it is new; NULL: no memory. */
static row *row_make(history *h, track_rows *t, uint32_t depth)
{
    uint32_t page = depth / STORE_ROWS_PER_PAGE;
    if (depth < t->row_limit && t->pages[page] != no_rows)
        return &t->pages[page][depth % STORE_ROWS_PER_PAGE];
    store_reserve(h);
    if (page >= t->page_count && pages_extend(h, t, page + 1) != 0)
        return NULL;
    bool first_is_small = t->row_limit < STORE_ROWS_PER_PAGE && (page > 0 || depth >= t->row_limit);
    if (first_is_small && first_page_grow(h, t, depth) != 0)
        return NULL;
    if (t->row_limit >= STORE_ROWS_PER_PAGE)
        t->row_limit = t->page_count * STORE_ROWS_PER_PAGE;
    if (t->pages[page] == no_rows) {
        row *fresh = blocks_take(&h->blocks, BLOCKS_WHOLE);
        if (!fresh)
            return NULL;
        memset(fresh, 0, BLOCKS_WHOLE_BYTES);
        t->pages[page] = fresh;
    }
    return &t->pages[page][depth % STORE_ROWS_PER_PAGE];
}

static inline uint32_t flags_of(const sim_span *s)
{
    uint16_t both;
    memcpy(&both, &s->closed, sizeof both);
    if (__builtin_expect(both == 0, 1))
        return 0;
    uint32_t how = s->closed == SIM_CLOSED_RETURN ? 0u : s->closed == SIM_CLOSED_UNWOUND ? HISTORY_UNWOUND : HISTORY_NOT_ENDED;
    return how | (s->open_at_start ? HISTORY_OPEN_AT_START : 0u);
}

_Static_assert(offsetof(sim_span, open_at_start) == offsetof(sim_span, closed) + 1, "flags_of looks at both at once");

/* A span that needs a row, a block or more bits. 0 or -ENOMEM: it is left out. */
static int append_slow(history *h, track_rows *t, uint32_t number, const sim_span *s)
{
    row *r = row_make(h, t, s->depth);
    if (!r)
        return -ENOMEM;
    bool is_new = !r->group;
    uint64_t begin_ns = s->begin_ns > r->last_end_ns ? s->begin_ns : r->last_end_ns;
    uint64_t end_ns = s->end_ns > begin_ns ? s->end_ns : begin_ns;
    int error = row_append(h, r, number, s->depth, begin_ns, end_ns, s->value, flags_of(s));
    if (is_new && r->group)
        h->row_count++;
    if (error)
        return error;
    evict_offer_track(h, number);
    if (t->row_count <= s->depth)
        t->row_count = s->depth + 1;
    t->begin_ns = begin_ns < t->begin_ns ? begin_ns : t->begin_ns; /* a row's first span always comes this way */
    t->end_ns = end_ns > t->end_ns ? end_ns : t->end_ns;
    return 0;
}

/* Appends spans while their row has room and 32 bits are enough: the hot loop, with nothing in it that could be elsewhere.
 * The first span that it leaves, or end. */
static const sim_span *append_fast(track_rows *t, const sim_span *s, const sim_span *end)
{
    row *const *pages = t->pages;
    uint32_t row_limit = t->row_limit;
    uint64_t last_ns = t->end_ns;
    for (; s < end; s++) {
        uint32_t depth = s->depth, value = s->value;
        if (depth >= row_limit)
            break;
        row *r = &pages[depth / STORE_ROWS_PER_PAGE][depth % STORE_ROWS_PER_PAGE];
        uint32_t *next = r->next, *stop = r->stop;
        uint64_t begin_ns = s->begin_ns, end_ns = s->end_ns;
        begin_ns = begin_ns > r->last_end_ns ? begin_ns : r->last_end_ns;
        end_ns = end_ns > begin_ns ? end_ns : begin_ns;
        uint64_t offset = begin_ns - r->base_ns, duration = end_ns - begin_ns;
        if (next == stop || ((offset | duration) >> 32 | value >> STORE_VALUE_BITS) != 0)
            break;
        size_t lanes = (size_t)(stop - r->group);
        next[0] = (uint32_t)offset;
        next[lanes] = (uint32_t)duration;
        next[2 * lanes] = value << STORE_FLAG_BITS | flags_of(s);
        r->next = next + 1;
        r->last_end_ns = end_ns;
        last_ns = end_ns > last_ns ? end_ns : last_ns;
    }
    t->end_ns = last_ns;
    return s;
}

int history_append(history *h, uint32_t track_number, const sim_span *spans, size_t span_count)
{
    h->span_count += span_count;
    h->appending = track_number;
    track_rows *t = track_at(h, track_number);
    if (!t && span_count) {
        t = track_number == SIM_TRACK_NONE ? NULL : track_make(h, track_number);
        if (!t) {
            h->evicted_count += span_count;
            return -ENOMEM;
        }
    }
    int error = 0;
    const sim_span *end = spans + span_count;
    for (const sim_span *s = spans; s < end && (s = append_fast(t, s, end)) < end; s++) {
        bool is_insane = s->depth >= STORE_ROWS_MAX;
        if (is_insane || append_slow(h, t, track_number, s) != 0) {
            h->evicted_count++;
            error = is_insane ? error : -ENOMEM;
        }
    }
    return error;
}

uint32_t history_rows(const history *h, uint32_t track_number)
{
    const track_rows *t = track_at(h, track_number);
    uint32_t rows = t ? t->row_count : 0, outlined = h->outline ? outline_rows(h->outline, track_number) : 0;
    return rows > outlined ? rows : outlined;
}

bool history_extent(const history *h, uint32_t track_number, uint64_t *begin_ns, uint64_t *end_ns)
{
    const track_rows *t = track_at(h, track_number);
    if (!t || t->begin_ns > t->end_ns)
        return false;
    *begin_ns = t->begin_ns;
    *end_ns = t->end_ns;
    return true;
}

history_stats history_stats_of(const history *h)
{
    return (history_stats){
        .span_count = h->span_count,
        .evicted_count = h->evicted_count,
        .evicted_end_ns = h->evicted_end_ns,
        .used_bytes = h->blocks.taken_bytes + h->side_bytes,
        .budget_bytes = h->budget_bytes,
        .row_count = h->row_count,
    };
}
