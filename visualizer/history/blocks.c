#include "history/blocks.h"

#include "base/mem.h"

#include <assert.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define NOTES_BYTES 1024u
#define HUGE_BYTES ((size_t)2 << 20)

typedef struct slab {
    blocks_note notes[BLOCKS_PER_SLAB];
} slab;

_Static_assert(sizeof(slab) <= NOTES_BYTES, "the notes fit");
_Static_assert(NOTES_BYTES + BLOCKS_PER_SLAB * BLOCKS_WHOLE_BYTES <= BLOCKS_SLAB_BYTES, "the blocks fit");

struct blocks_region {
    blocks_region *next;
    void *bytes; /* owned */
};

static slab *slab_of(const void *p) { return (slab *)((uintptr_t)p & ~(uintptr_t)(BLOCKS_SLAB_BYTES - 1)); }

static void *block_of(const blocks_note *note)
{
    slab *s = slab_of(note);
    return (unsigned char *)s + NOTES_BYTES + (size_t)(note - s->notes) * BLOCKS_WHOLE_BYTES;
}

static blocks_note *note_of(const void *piece)
{
    slab *s = slab_of(piece);
    size_t offset = (size_t)((const unsigned char *)piece - (unsigned char *)s) - NOTES_BYTES;
    return &s->notes[offset / BLOCKS_WHOLE_BYTES];
}

static uint64_t all_pieces(unsigned class)
{
    unsigned count = 1u << (2 * (BLOCKS_WHOLE - class));
    return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

void blocks_init(blocks *b, size_t limit_bytes, size_t region_bytes)
{
    assert(region_bytes > 0 && region_bytes % BLOCKS_SLAB_BYTES == 0);
    *b = (blocks){.limit_bytes = limit_bytes, .region_bytes = region_bytes};
}

void blocks_free(blocks *b)
{
    while (b->regions) {
        blocks_region *r = b->regions;
        b->regions = r->next;
        mem_free(r->bytes);
        mem_free(r);
    }
    *b = (blocks){0};
}

static bool grow_region(blocks *b)
{
    size_t bytes = b->region_bytes;
    if (b->taken_bytes > b->limit_bytes || b->limit_bytes - b->taken_bytes < bytes)
        return false;
    blocks_region *r = mem_alloc(1, sizeof *r);
    if (!r)
        return false;
    bool huge = bytes % HUGE_BYTES == 0;
    r->bytes = mem_aligned(huge ? HUGE_BYTES : BLOCKS_SLAB_BYTES, bytes);
    if (!r->bytes) {
        mem_free(r);
        return false;
    }
#if defined(__linux__)
    /* Spans arrive faster than 4 KiB pages can be faulted in: measured by bench/store. A refusal does no harm. */
    if (huge)
        (void)madvise(r->bytes, bytes, MADV_HUGEPAGE);
#endif
    r->next = b->regions;
    b->regions = r;
    b->taken_bytes += bytes;
    b->fresh = r->bytes;
    b->fresh_end = b->fresh + bytes;
    return true;
}

static bool cut_slab(blocks *b)
{
    if (b->fresh == b->fresh_end && !grow_region(b))
        return false;
    slab *s = (slab *)(void *)b->fresh;
    b->fresh += BLOCKS_SLAB_BYTES;
    /* Last block at the bottom, so that they come out in ascending order. */
    for (uint32_t i = BLOCKS_PER_SLAB; i-- > 0;) {
        s->notes[i] = (blocks_note){.next = b->whole, .class = BLOCKS_WHOLE};
        b->whole = &s->notes[i];
    }
    b->whole_count += BLOCKS_PER_SLAB;
    return true;
}

bool blocks_fill(blocks *b, uint32_t count)
{
    while (b->whole_count < count)
        if (!cut_slab(b))
            return false;
    return true;
}

static blocks_note *pop_whole(blocks *b)
{
    if (!b->whole && !cut_slab(b))
        return NULL;
    blocks_note *note = b->whole;
    b->whole = note->next;
    b->whole_count--;
    return note;
}

static void push_whole(blocks *b, blocks_note *note)
{
    *note = (blocks_note){.next = b->whole, .class = BLOCKS_WHOLE};
    b->whole = note;
    b->whole_count++;
}

static void link_partial(blocks *b, blocks_note *note)
{
    note->previous = NULL;
    note->next = b->partial[note->class];
    if (note->next)
        note->next->previous = note;
    b->partial[note->class] = note;
}

static void unlink_partial(blocks *b, blocks_note *note)
{
    if (note->previous)
        note->previous->next = note->next;
    else
        b->partial[note->class] = note->next;
    if (note->next)
        note->next->previous = note->previous;
}

void *blocks_take(blocks *b, unsigned class)
{
    assert(class < BLOCKS_CLASS_COUNT);
    if (class == BLOCKS_WHOLE) {
        blocks_note *whole = pop_whole(b);
        return whole ? block_of(whole) : NULL;
    }
    blocks_note *note = b->partial[class];
    if (!note) {
        note = pop_whole(b);
        if (!note)
            return NULL;
        note->class = class;
        note->free_pieces = all_pieces(class);
        link_partial(b, note);
    }
    unsigned piece = (unsigned)__builtin_ctzll(note->free_pieces);
    note->free_pieces &= note->free_pieces - 1;
    if (!note->free_pieces)
        unlink_partial(b, note);
    return (unsigned char *)block_of(note) + piece * blocks_class_bytes(class);
}

void blocks_give(blocks *b, void *piece, unsigned class)
{
    if (!piece)
        return;
    blocks_note *note = note_of(piece);
    assert(note->class == class);
    if (class == BLOCKS_WHOLE) {
        push_whole(b, note);
        return;
    }
    size_t offset = (size_t)((unsigned char *)piece - (unsigned char *)block_of(note));
    uint64_t bit = UINT64_C(1) << (offset / blocks_class_bytes(class));
    assert(!(note->free_pieces & bit));
    if (!note->free_pieces)
        link_partial(b, note);
    note->free_pieces |= bit;
    if (note->free_pieces == all_pieces(class)) {
        unlink_partial(b, note);
        push_whole(b, note);
    }
}
