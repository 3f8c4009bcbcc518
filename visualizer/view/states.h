/* view/states.h - a thread's states as pieces that can be drawn: what is short shares its piece by time.
 * For:     scene.c, for the strip of each lane.
 * Idea:    states longer than some pixels are a piece each. Shorter ones are gathered in cells of about a pixel, counted from 0,
 *          and a cell says how much of it each state takes, in STATES_STEPS steps; neighbours that say the same are one piece.
 *          So the answer hardly depends on the zoom, and nothing flickers while the film moves.
 *
 *            states   RRRRRRRRRRRRR b R b R bb R bbbbbbbbbbbbbbbbbbbbb
 *            pieces   [    R      ][2 R, 6 b   ][        b           ]
 *
 * Use:     states_begin; for each node of the row, in time's order, states_take; states_end gives out the last piece.
 * Threads: one; values only.
 * Units:   ns.
 */
#ifndef RRTRACE_VIEW_STATES_H
#define RRTRACE_VIEW_STATES_H

#include "history/history.h"

#define STATES_COUNT 3u /* of sim_gvl */
#define STATES_STEPS 8u /* what takes less than a step still gets one: it is seen that it was there */
#define STATES_LONG 3u  /* cells */

typedef struct states_piece {
    uint64_t begin_ns, end_ns;
    uint64_t ns[STATES_COUNT];    /* what each takes */
    uint32_t steps[STATES_COUNT]; /* of STATES_STEPS in all */
    uint64_t span_count;
    uint32_t flags;               /* HISTORY_… */
} states_piece;

typedef void states_take_piece(void *context, const states_piece *piece);

typedef struct states_gather {
    uint64_t cell_ns, cell_end_ns;
    states_piece cell, run; /* being gathered; of equal begin and end: none is */
    uint32_t before;        /* which state was last, until end_ns */
    uint64_t before_end_ns;
    states_take_piece *take;
    void *context;
} states_gather;

void states_begin(states_gather *s, states_take_piece *take, void *context);
/* cell_ns: about a pixel; may change from node to node. */
void states_take(states_gather *s, const history_node *node, uint64_t cell_ns);
void states_end(states_gather *s);

#endif
