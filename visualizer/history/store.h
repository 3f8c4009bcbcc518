/* history/store.h - how the history lies in memory: tracks, rows, columns of spans and nodes.
 * For:     history/ alone (and its tests, for history_query_counted).
 * Idea:    a row is a column of spans and, over it, columns of nodes, one a level; all columns are cut into chunks of one
 *          whole block, of which the last grows through the block classes, so that a row of three spans costs little.
 *
 *     level 2   [node 0                    ] [node 1 …            each sums 4 nodes below
 *     level 1   [node 0][node 1][node 2]…                         each sums 16 spans
 *     level 0   group 0  group 1  group 2 …                       16 spans: 16 begins, 16 durations, 16 values; 192 bytes
 *               |<- chunk 0 (16 groups) ->|<- chunk 1 …
 *
 *          Slots count a column's items from the session's start and never shift; what is evicted is a slot below
 *          live_from. Begins are relative to their chunk's base_ns, in 32 bits, as are durations; a chunk with a span that
 *          does not fit has a twin of the same layout, 'wide', with the upper 32 bits of all three.
 * Threads: as history.h.
 */
#ifndef RRTRACE_HISTORY_STORE_H
#define RRTRACE_HISTORY_STORE_H

#include "history/blocks.h"
#include "history/history.h"

#define STORE_GROUP 16u         /* spans that a level-1 node sums */
#define STORE_GROUP_WORDS 48u   /* u32 words of a group */
#define STORE_MINI 4u           /* spans that a new row has room for, laid out as a group of four lanes */
#define STORE_FANOUT_BITS 2u
#define STORE_FANOUT (1u << STORE_FANOUT_BITS) /* nodes that a node of level 2 and up sums */
#define STORE_LEVELS_MAX 24u    /* 16 * 4^22 spans */
#define STORE_ROWS_PER_PAGE 48u
#define STORE_ROWS_MAX (1u << 20) /* of a track; deeper spans are counted and left out */
#define STORE_ROW_LEAST_BYTES ((size_t)256) /* a row and its last group, about: what no eviction of chunks gives back */
#define STORE_FLAG_BITS 3u      /* the lowest of a value word: HISTORY_…, those of single spans */
#define STORE_VALUE_BITS (32u - STORE_FLAG_BITS) /* of a value word; the rest of a value lies in the wide twin */

/* The sum of the spans below. */
typedef struct node {
    uint64_t begin_ns, end_ns, busy_ns, longest_ns;
    uint64_t value_ns; /* what value takes of busy_ns, as far as the children's dominants tell */
    uint32_t value;
    uint16_t of_share[2]; /* history_node's of_ns, in 65535ths of busy_ns */
} node;

/* A chunk: spans (level 0, block is uint32_t words) or nodes. */
typedef struct chunk {
    void *block;
    uint32_t *wide;   /* level 0: NULL while all upper halves are 0 */
    uint64_t base_ns; /* level 0 */
} chunk;

typedef struct column {
    chunk *full;            /* array_…: full[full_first, full_first + full_count) are the live full chunks, in order */
    uint32_t full_first, full_count, full_bytes;
    uint8_t tail_class;
    uint8_t is_in_heap;
    uint8_t level_count;    /* level 0 only: columns that the row has */
    uint8_t reserved;
    chunk tail;             /* block NULL: none yet */
    uint64_t tail_first;    /* slot of the tail's first item */
    uint64_t item_count;    /* level 1 and up; level 0: see row_span_count */
    uint64_t live_from;     /* slots below are evicted */
} column;

/* Hot part first and alone: an append touches this line and three lines of its group. */
typedef struct row {
    uint64_t base_ns;     /* of the tail chunk */
    uint64_t last_end_ns; /* no span may begin before */
    uint32_t *next;       /* where the next span's begin goes; its duration and value lie stop - group words further each */
    uint32_t *stop;       /* next == stop: the group is full, or there is none */
    uint32_t *group;      /* the group being filled: 16 lanes, or STORE_MINI in a new row */
    uint32_t *wide_group; /* its upper halves, or NULL */
    uint64_t group_first; /* slot of the group's first span */
    column *columns;      /* columns[0] spans, [1] nodes …; NULL while one group is all there is, in a block of its own */
} row;

_Static_assert(sizeof(row) == 64 && STORE_ROWS_PER_PAGE * sizeof(row) == BLOCKS_WHOLE_BYTES, "a row is a line");
_Static_assert(sizeof(node) == 48 && STORE_GROUP_WORDS * 4 == 192, "pieces of a block");

typedef struct track_rows {
    row **pages;          /* array_…: row (depth) is pages[depth / 48][depth % 48]; never NULL below page_count */
    uint32_t page_count;
    uint32_t row_limit;   /* rows that the pages cover: less than a page's while there is one page */
    uint32_t row_count;   /* deepest row ever used, and one */
    uint32_t pages_bytes;
    uint64_t begin_ns, end_ns; /* extent; begin > end: no spans */
    bool is_in_heap;
} track_rows;

/* Rows by the end of their oldest chunk at one level. Keys may be too low (the chunk is gone), never too high. */
typedef struct evict_entry {
    uint64_t end_ns;
    uint32_t track, depth;
} evict_entry;

typedef struct evict_heap {
    evict_entry *entries; /* array_… */
    size_t count, bytes;
} evict_heap;

struct history {
    blocks blocks;
    size_t budget_bytes;
    size_t side_bytes;    /* arrays too large for a block */
    track_rows **tracks;       /* array_…; NULL: no span yet */
    uint32_t track_limit;
    size_t tracks_bytes;
    evict_heap heaps[STORE_LEVELS_MAX];
    evict_heap track_heap; /* tracks with rows, by their last end; depth unused */
    uint32_t appending;    /* the track that an append works on: never forgotten */
    uint32_t forgotten_count; /* tracks whose rows have gone altogether */
    size_t level_bytes[STORE_LEVELS_MAX]; /* of chunks, tails included */
    size_t column_bytes;  /* of rows' arrays of columns */
    uint64_t span_count, evicted_count, evicted_end_ns;
    uint32_t row_count;
    const struct outline *outline; /* borrowed; NULL: none */
};

/* --- store.c: memory ----------------------------------------------------------------------------------------- */

/* Whole blocks that one slow step of an append may take: a page of rows, tails of several levels and their twins. Where more
 * are wanted and cannot be had, the step fails cleanly and the span is counted as evicted. */
#define STORE_RESERVED_BLOCKS 16u
/* Have them ready, evicting if need be. May trim any row's tail, but moves no row. */
void store_make_reserve(history *h);
static inline void store_reserve(history *h)
{
    if (__builtin_expect(h->blocks.whole_count < STORE_RESERVED_BLOCKS, 0))
        store_make_reserve(h);
}

/* Arrays that grow: of at least want bytes, *bytes is what it has; the content is kept, the rest is not cleared. Small ones
 * lie in blocks, large ones in memory of their own, counted against the budget. NULL: no memory, the old one stays. */
void *array_grow(history *h, void *old, size_t *bytes, size_t want);
void array_release(history *h, void *old, size_t bytes);

/* --- column.c ------------------------------------------------------------------------------------------------- */

/* Slots of a block of that class, and of a full chunk. */
static inline uint32_t column_class_slots(unsigned level, unsigned class) { return (level ? 1u : STORE_MINI) << (2 * class); }
static inline uint32_t column_chunk_slots(unsigned level) { return column_class_slots(level, BLOCKS_WHOLE); }
/* Items that one item of the level above sums. */
static inline uint32_t column_group_slots(unsigned level) { return level ? STORE_FANOUT : STORE_GROUP; }

/* The tail is full (or missing): make room for the slot after it. base_ns: of a new chunk of spans. 0 or -ENOMEM. */
int column_grow(history *h, column *c, unsigned level, uint64_t base_ns);
/* Items are slots up to end, those below covered have their node above. Where the oldest evictable piece ends (a slot); 0:
 * nothing is evictable. A piece is a full chunk, or all of the tail but its last group, which moves to a small block. */
uint64_t column_evictable_end(const column *c, unsigned level, uint64_t covered, uint64_t end);
/* Evict it. The tail may move. 0 or -ENOMEM. */
int column_evict(history *h, column *c, unsigned level, uint64_t covered, uint64_t end);
/* Give all its memory back. */
void column_release(history *h, column *c, unsigned level);
/* The chunk with a live slot, and where in it. */
const chunk *column_chunk(const column *c, unsigned level, uint64_t slot, uint32_t *index);

static inline const node *column_node(const column *c, unsigned level, uint64_t slot)
{
    uint32_t index;
    const chunk *k = column_chunk(c, level, slot, &index);
    return (const node *)k->block + index;
}

/* --- row.c ---------------------------------------------------------------------------------------------------- */

static inline uint64_t row_span_count(const row *r) { return r->group_first + (uint64_t)(r->next - r->group); }
static inline unsigned row_level_count(const row *r) { return r->columns ? r->columns[0].level_count : 1; }
static inline uint64_t row_live_from(const row *r, unsigned level) { return r->columns ? r->columns[level].live_from : 0; }
static inline uint64_t row_item_count(const row *r, unsigned level)
{
    return level ? r->columns[level].item_count : row_span_count(r);
}
/* Spans that one item of that level stands for. */
static inline uint64_t row_spans_per_item(unsigned level)
{
    return level ? (uint64_t)STORE_GROUP << (STORE_FANOUT_BITS * (level - 1)) : 1;
}
/* Items of that level that have their node above. The group being filled never counts. */
uint64_t row_covered(const row *r, unsigned level);

/* One span of a row, any case; begin_ns and end_ns in order already. 0 or -ENOMEM: the span is not in. */
int row_append(history *h, row *r, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns, uint32_t value,
               uint32_t flags);

/* column_evict has moved the tail of columns[0]: point at its lanes again. */
void row_tail_moved(row *r);
/* Give all its memory back; the row is as new. */
void row_release(history *h, row *r);

/* Up to 16 spans from a slot that is live. */
typedef struct row_spans {
    const uint32_t *words, *wide; /* lane i: words[i], words[lanes + i], words[2 * lanes + i] */
    uint64_t base_ns;
    uint32_t lanes, first, end;   /* spans are lanes [first, end) */
} row_spans;
row_spans row_spans_at(const row *r, uint64_t slot);

static inline uint64_t row_spans_begin(const row_spans *s, uint32_t i)
{
    return s->base_ns + s->words[i] + (s->wide ? (uint64_t)s->wide[i] << 32 : 0);
}
static inline uint64_t row_spans_duration(const row_spans *s, uint32_t i)
{
    return s->words[s->lanes + i] + (s->wide ? (uint64_t)s->wide[s->lanes + i] << 32 : 0);
}
static inline uint32_t row_spans_value(const row_spans *s, uint32_t i)
{
    return s->words[2 * s->lanes + i] >> STORE_FLAG_BITS | (s->wide ? s->wide[2 * s->lanes + i] << STORE_VALUE_BITS : 0);
}
static inline uint32_t row_spans_flags(const row_spans *s, uint32_t i)
{
    return s->words[2 * s->lanes + i] & ((1u << STORE_FLAG_BITS) - 1);
}

/* --- summary.c ------------------------------------------------------------------------------------------------- */

void summary_of_spans(node *out, const row_spans *spans);
void summary_of_nodes(node *out, const node *nodes, uint32_t count);

/* --- evict.c --------------------------------------------------------------------------------------------------- */

/* A column of the row has something to evict, or soon will: let the eviction know it. */
/* (No memory: it is offered again when the column grows.) */
void evict_offer(history *h, uint32_t track, uint32_t depth, unsigned level);
/* A track has rows: it can be forgotten, if need be. */
void evict_offer_track(history *h, uint32_t track);
/* Evict one chunk, or all rows of an old track; false: nothing can go. */
bool evict_one(history *h);

/* --- query.c --------------------------------------------------------------------------------------------------- */

/* history_query or, by_cells, history_query_cells, and how many nodes and spans it looked at. */
size_t history_query_counted(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                             uint64_t resolution_ns, bool by_cells, history_node *out, size_t max, uint64_t *visited);


/* --- history.c ------------------------------------------------------------------------------------------------- */

row *history_row(const history *h, uint32_t track, uint32_t depth); /* NULL: no span came that deep */
/* Give back all rows of the track, which is then as new. */
void history_forget(history *h, uint32_t track);

#endif
