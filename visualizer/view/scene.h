/* view/scene.h - boxes for what the camera sees: calls, GVL strips, GC planes, floors, time's grid.
 * For:     view.c.
 * Idea:    only rows inside the frustum are asked for, at about a pixel's resolution; what is folded is as high as it is busy.
 *          When that is more than the budget, the resolution gets coarser for all of them. Each level of a stack has a row of its own
 *          unless it were lower than a pixel, or there are too many of them for a few folded boxes each: then a row stands for
 *          several, and it is said (layout_thread.levels_a_row). Nothing is ever left out by chance, so the picture
 *          does not flicker. Lanes come nearest first, and rows from the eye's side.
 * Use:     scene_build every frame; then boxes, glass, refs and labels are there until the next.
 * Memory:  arrays grow to the budget and stay.
 * Threads: one; reads the model, so under its lock.
 */
#ifndef RRTRACE_VIEW_SCENE_H
#define RRTRACE_VIEW_SCENE_H

#include "base/vec.h"
#include "view/camera.h"
#include "view/font.h"
#include "view/layout.h"
#include "view/states.h"
#include "view/tint.h"
#include "view/view.h"

struct focus;

#define SCENE_NODES 512u /* asked of history/ at once */
#define SCENE_OPEN 256u
#define SCENE_COLORS 16384u /* methods times depths in sight, with room: a colour costs a hundred times its look-up */
#define SCENE_LABELS 512u
#define SCENE_GLASS_MAX 512u

typedef struct scene_label { /* a box wide enough for its name */
    uint32_t box;            /* index */
    uint32_t process, method; /* numbers for catalog_method_of */
    uint32_t box_count;       /* that it lies on, from box on: more than 1 for a run of folded ones */
    uint64_t span_count;      /* calls in them, not all of this method: it takes the most time */
    float x_begin, x_end;    /* its visible part */
} scene_label;

typedef struct scene_span { /* one of the program's own, and where its bar is */
    float x[2], y[2], z;
    view_box_ref ref;
    uint32_t box;        /* index */
} scene_span;

typedef struct scene_pause { /* of the GC: a pane whose id is this one's index plus 1, or a mark */
    view_box_ref ref;
    uint32_t mark;       /* index of a box; SCENE_NO_BOX: it has none */
} scene_pause;
#define SCENE_NO_BOX UINT32_MAX
#define SCENE_SPAN_LEVELS 6u /* of spans within each other */

typedef struct scene_bars { /* of a thread's spans, while bars are made */
    uint64_t end_ns[SCENE_SPAN_LEVELS];
    uint32_t last[SCENE_SPAN_LEVELS]; /* bar so far, in spans, + 1 */
    uint32_t lane;                    /* SCENE_NO_BOX: none */
} scene_bars;

typedef struct scene {
    VEC(gpu_box) boxes;
    VEC(gpu_box) glass;
    VEC(view_box_ref) refs;        /* of boxes[0, refs.count): calls and GVL come first */
    VEC(scene_label) labels;
    VEC(uint32_t) lane_ends;       /* boxes of lanes in drawing order: ends of index ranges */
    VEC(uint32_t) grid_cells;      /* labels.c: which box is seen where */
    VEC(uint32_t) labelled;        /* labels.c: a bit a box */
    struct scene_color { uint64_t key; uint32_t color; uint16_t depth, kind; } colors[SCENE_COLORS]; /* palette_method's answers */
    history_node nodes[SCENE_NODES];
    sim_span open[SCENE_OPEN];
    tint colors_tint;              /* what colors[] is of */
    VEC(scene_span) spans;         /* in sight */
    VEC(scene_pause) pauses;       /* likewise */
    VEC(scene_bars) bars;          /* by thread */
    struct scene_run { uint32_t first_box, method; uint64_t span_count; float x_begin, x_end; } run; /* of folded boxes */
    float row_end;                 /* where the last box of the row ended */
    states_gather states;             /* of the strip */
    uint32_t budget;               /* boxes */
    float coarseness;              /* 1: as fine as the screen */
    uint32_t row_count;            /* of calls, in sight */
    uint32_t level_stride;         /* levels of a stack that each stands for, at least; 1 but where they are too many */
    struct scene_limit { uint64_t begin_ns, end_ns; uint32_t budget; } limit; /* where finer was too much */
    bool has_selected;             /* the call that is selected has a box of its own */
    bool gets_finer;               /* the next frame's is, of the same sight */
    bool is_full;                  /* this attempt has become hopeless */
    uint64_t begin_ns, end_ns;     /* that were in sight */
} scene;

typedef struct scene_input {
    const view_model *model;
    const history *history;        /* the model's, or its detail */
    const camera *camera;
    const camera_pose *pose;
    layout *layout;                /* seen depths are written back */
    uint64_t base_ns;              /* pose times are relative to it */
    uint64_t begin_ns;             /* of the session */
    float scale;
    tint tint;
    struct focus *focus;           /* NULL: nothing stands out */
    uint64_t measure_ns[2];        /* the stretch of time that the user measures; equal: none */
} scene_input;

void scene_free(scene *s);
void scene_build(scene *s, const scene_input *in);

/* A box with a ref, as high and deep as its row: see view_box_ref's share. */
gpu_box scene_whole_box(const scene *s, const scene_input *in, size_t index);

/* World x of a time. */
float scene_x(const scene_input *in, uint64_t time_ns);
/* The time range that any of the film's volume shows. */
void scene_range(const scene_input *in, uint64_t *begin_ns, uint64_t *end_ns);
/* Where the time axis has a world x on the screen: in front of the floor, or at the bottom of a chart. height_px: without the
 * time strip. parallel: how much of a chart it is. False: behind the eye. */
bool scene_axis_point(const camera *c, float x, float z_end, float parallel, float height_px, float scale, float px[2]);
/* Round steps of the time axis: the first tick at or after *first_ns, session-relative; step_ns. */
void scene_ticks(const scene_input *in, uint64_t begin_ns, int64_t *first_ns, uint64_t *step_ns);

/* labels.c: names on boxes that are seen, as quads. */
void scene_draw_labels(scene *s, const scene_input *in, font *f, quad_list *out);

#endif
