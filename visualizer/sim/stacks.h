/* sim/stacks.h - the running state between blocks: a stack for each fiber, GVL state for each thread, GC for each process.
 * For:     sim.c: the serial prefix step.
 * Idea:    folding a block in moves the frames that it pops out of the stack and into the block's part, which will end
 *          them, and pushes what the part leaves. So each frame is moved twice in its life at most, however deep the stack
 *          below it is, and no block needs a copy of a stack to start from.
 *
 *          frames  |= = = = = = = = = =|- - - - -|           low: as far down as this batch has changed it
 *          shown   |= = = = = = = = = =|x x x x|             what others see: as of the last commit
 *                                     low
 * Memory:  owns two arrays a stack, 16 bytes a frame each, given back when a stack is empty.
 * Threads: one at a time, with the model lock held.
 */
#ifndef RRTRACE_SIM_STACKS_H
#define RRTRACE_SIM_STACKS_H

#include "sim/block.h"
#include "sim/state.h"

/* Where a stream's events run. */
typedef struct stacks_place {
    uint32_t thread, fiber; /* ids of the catalog; CATALOG_NONE: no SWITCH yet */
} stacks_place;

#define STACKS_NOWHERE ((stacks_place){CATALOG_NONE, CATALOG_NONE})

typedef VEC(block_frame) stacks_frames; /* lowest first */

/* What is open on one track. Fibers use the frames; GVL and GC tracks the state. */
typedef struct stacks_track {
    stacks_frames frames;
    stacks_frames shown; /* frames as of the last commit */
    uint32_t low;        /* frames and shown are equal below this; meaningful while is_touched */
    bool is_touched;
    uint64_t since_ns;   /* of the state */
    uint32_t state;      /* sim_gvl, or 0 for GC; STACKS_CLOSED: nothing is open */
} stacks_track;

#define STACKS_CLOSED UINT32_MAX

typedef struct stacks {
    catalog *catalog;         /* borrowed */
    VEC(stacks_track) tracks; /* by track */
    VEC(uint32_t) touched;    /* tracks whose frames are not as shown */
} stacks;

void stacks_init(stacks *s, catalog *c);
void stacks_free(stacks *s);

/* Fold one block in: parts get track, base_depth and the frames that they pop; *current moves to where the block ends. 0 or -ENOMEM. */
int stacks_fold(stacks *s, block_work *w, uint32_t process, stacks_place *current);
/* The block's GC and thread events, after stacks_fold: fills w->pending and w->exits. */
int stacks_runtime(stacks *s, block_work *w, uint32_t process);
/* End all that is open of a process. */
int stacks_end_process(stacks *s, uint32_t process, uint64_t now_ns, sim_closed closed, block_pendings *out);
/* The batch is given out: open frames are shown as they are now. 0 or -ENOMEM. */
int stacks_commit(stacks *s);

size_t stacks_open_frames(const stacks *s, uint32_t track, uint32_t first_depth, sim_span *out, size_t max);
uint32_t stacks_open_depth(const stacks *s, uint32_t track);

/* sim/state.h: what is open on a track is appended to frames, lowest first; and put back on a track that has nothing open. */
int stacks_save_frames(const stacks *s, uint32_t track, sim_state *out); /* 0 or -ENOMEM */
int stacks_load_frames(stacks *s, uint32_t track, const sim_state_frame *frames, size_t count);
/* Of GVL and GC tracks. */
void stacks_save_state(const stacks *s, uint32_t track, uint32_t *state, uint64_t *since_ns);
int stacks_load_state(stacks *s, uint32_t track, uint32_t state, uint64_t since_ns); /* 0 or -ENOMEM */

#endif
