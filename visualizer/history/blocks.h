/* history/blocks.h - memory of one budget, in blocks of four sizes.
 * For:     history/ alone: columns of spans and nodes, rows, small arrays.
 * Idea:    everything is a block of 3072 bytes, or a 4th, 16th or 64th of one. A block whose pieces are all back is whole
 *          again and may become anything else, so what spans give up summaries can use.
 *
 *     region (some MiB, from mem_aligned)  = slab slab slab …
 *     slab (64 KiB, aligned)               = 1 KiB of notes, then 21 blocks
 *     block (3072 bytes)                   = 1 piece of class 3, 4 of class 2, 16 of class 1 or 64 of class 0
 * Use:     blocks_init; blocks_fill before work that takes several; blocks_take, blocks_give; blocks_free.
 * Memory:  grows up to limit_bytes, which the owner may lower and raise; what it has taken goes back at blocks_free only.
 * Threads: one owner at a time. take and give are O(1), but for the growth of a region.
 */
#ifndef RRTRACE_HISTORY_BLOCKS_H
#define RRTRACE_HISTORY_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCKS_WHOLE_BYTES 3072u
#define BLOCKS_SLAB_BYTES ((size_t)64 << 10)
#define BLOCKS_PER_SLAB 21u
enum { BLOCKS_CLASS_COUNT = 4, BLOCKS_WHOLE = 3 };

static inline size_t blocks_class_bytes(unsigned class) { return (size_t)48 << (2 * class); }

/* What a slab's notes say of one block. */
typedef struct blocks_note {
    uint64_t free_pieces; /* bit set: that piece is free; classes 0 to 2 */
    struct blocks_note *next, *previous; /* in the list of whole blocks (next only) or of its class's partly free ones */
    uint32_t class;
} blocks_note;

typedef struct blocks_region blocks_region;

typedef struct blocks {
    blocks_note *whole;                    /* free whole blocks, last given back first */
    blocks_note *partial[BLOCKS_WHOLE];    /* blocks of that class with a free piece */
    blocks_region *regions;                /* owned */
    unsigned char *fresh, *fresh_end;      /* of the newest region: slabs not yet cut up */
    size_t taken_bytes, limit_bytes, region_bytes;
    uint32_t whole_count;
} blocks;

/* region_bytes: a multiple of BLOCKS_SLAB_BYTES. No allocation yet. */
void blocks_init(blocks *b, size_t limit_bytes, size_t region_bytes);
void blocks_free(blocks *b);

/* Have count whole blocks ready, growing if the limit allows it: whether there are now. */
bool blocks_fill(blocks *b, uint32_t count);

/* A piece of 48 << (2 * class) bytes, 16-aligned, not cleared; NULL: the limit is reached or memory is out. */
void *blocks_take(blocks *b, unsigned class);
void blocks_give(blocks *b, void *piece, unsigned class); /* NULL is fine */

#endif
