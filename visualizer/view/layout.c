#include "view/layout.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define GROUP_GAP 0.5f        /* between processes, in pitches; GC's marks lie in it */
#define STRIP_THICKNESS 0.05f /* of the GVL strip in the scene */
#define LANE_TAU_S 0.18       /* lanes coming and going */
#define SHRINK_TAU_S 0.25     /* rows getting smaller: the stack has grown out of the picture */
#define GROW_TAU_S 2.5        /* rows getting larger: no hurry, it may come back */
#define ROW_HEIGHT_MAX 0.42f
#define LANE_SHARE_MAX 0.75f  /* of the flame chart's height, for one lane */
#define LANE_ROWS_MIN 48.0f   /* … but this many rows are an everyday stack and keep their height */
#define LANE_ROWS_LEAST 10.0f /* of several lanes: no less, even if some are then below the screen */
#define LANE_GAP_ROWS 2.2f    /* strip and gap of a lane */
#define SPAN_ROWS 1.1f        /* that the bar of a user span takes above the calls, rows */
#define SUB_GAP 0.6f          /* between a thread's fibers in the flame chart, rows */
#define SCENE_DEPTH_MAX 24.0f /* of all lanes: with a deeper floor there is more floor than time in the picture */
#define ROW_HEIGHT_FLAT 0.0008f /* threads camera: only the order of depths is left */

static float mixf(float a, float b, float t) { return a + (b - a) * t; }
static float clampf(float x, float low, float high) { return fminf(fmaxf(x, low), high); }

void layout_free(layout *l)
{
    vec_free(&l->lanes);
    vec_free(&l->groups);
    vec_free(&l->threads);
    vec_free(&l->fiber_subs);
    vec_free(&l->leaders);
    vec_free(&l->followers);
}

static bool ease(float *value, float goal, double time_s, double tau_s)
{
    float share = isinf(time_s) ? 1.0f : (float)(1 - exp(-time_s / tau_s));
    float step = (goal - *value) * share;
    if (fabsf(goal - *value) < 1e-3f * fmaxf(1e-2f, fabsf(goal))) {
        *value = goal;
        return false;
    }
    *value += step;
    return share < 1;
}

/* Fibers in order of appearance take a sub-lane whose last fiber has been silent since before they began; if there is none,
 * the one that has been silent longest. Once given, a place is kept. */
static void place_fiber(layout *l, const catalog *c, uint32_t id)
{
    const catalog_fiber *fiber = catalog_fiber_at(c, id);
    layout_thread *thread = &l->threads.items[fiber->thread];
    uint32_t sub = 0;
    if (catalog_thread_at(c, fiber->thread)->first_fiber != id) {
        uint64_t oldest = UINT64_MAX;
        sub = 1;
        for (uint32_t i = 1; i < LAYOUT_SUBS; i++) {
            uint64_t silent_since = i < thread->subs_used ? catalog_fiber_at(c, thread->last_fiber[i])->end_ns : 0;
            if (silent_since < fiber->begin_ns && i <= thread->subs_used) {
                sub = i;
                break;
            }
            if (silent_since < oldest) {
                oldest = silent_since;
                sub = i;
            }
        }
    }
    thread->last_fiber[sub] = id;
    if (sub + 1 > thread->subs_used)
        thread->subs_used = (uint8_t)(sub + 1);
    l->fiber_subs.items[id] = (uint8_t)sub;
}

/* State for whatever the catalog has more than in the last frame. False: memory is out, keep to what there is. */
static bool take_over_new(layout *l, const catalog *c)
{
    uint32_t threads = catalog_thread_count(c), fibers = catalog_fiber_count(c), processes = catalog_process_count(c);
    if (!vec_reserve(&l->threads, threads) || !vec_reserve(&l->fiber_subs, fibers) || !vec_reserve(&l->lanes, threads) ||
        !vec_reserve(&l->groups, processes) || !vec_reserve(&l->leaders, processes) || !vec_reserve(&l->followers, processes))
        return false;
    while (l->threads.count < threads)
        l->threads.items[l->threads.count++] = (layout_thread){.subs_used = 1, .sub_count = 1, .rows = {1}};
    while (l->fiber_subs.count < fibers) {
        place_fiber(l, c, (uint32_t)l->fiber_subs.count);
        l->fiber_subs.count++;
    }
    return true;
}

bool layout_thread_in(const catalog_thread *thread, const catalog_process *process, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t gone_ns = thread->end_ns ? thread->end_ns : process->end_ns ? process->end_ns : UINT64_MAX;
    return thread->begin_ns < end_ns && gone_ns > begin_ns;
}

static void ease_thread(layout *l, layout_thread *state, bool is_in_sight, const layout_desc *desc)
{
    if (state->weight == 0 && !is_in_sight)
        return;
    /* The first lanes are simply there; later ones unfold. */
    l->is_moving |= ease(&state->weight, is_in_sight ? 1 : 0, l->is_set ? desc->time_s : INFINITY, LANE_TAU_S);
    if (state->weight < 0.01f && !is_in_sight)
        state->weight = 0;
    l->is_moving |= ease(&state->sub_count, state->subs_used, desc->time_s, LANE_TAU_S);
    for (uint32_t sub = 0; sub < LAYOUT_SUBS; sub++) {
        float goal = fmaxf((float)state->seen[sub], sub == 0 ? 1 : 0);
        l->is_moving |= ease(&state->rows[sub], goal, desc->time_s, goal > state->rows[sub] ? SHRINK_TAU_S : GROW_TAU_S);
    }
}

static void add_lanes(layout *l, const catalog *c, uint32_t process, uint32_t group, const layout_desc *desc)
{
    const catalog_process *p = catalog_process_at(c, process);
    for (uint32_t id = p->first_thread; id != CATALOG_NONE && id < l->threads.count; id = catalog_thread_at(c, id)->next) {
        layout_thread *state = &l->threads.items[id];
        ease_thread(l, state, layout_thread_in(catalog_thread_at(c, id), p, desc->begin_ns, desc->end_ns), desc);
        if (state->weight > 0)
            l->lanes.items[l->lanes.count++] =
                (layout_lane){.thread = id, .process = process, .group = group, .weight = state->weight};
    }
}

/* Ractors' streams follow the last process of the same pid that is a whole program (after exec there are two of them). Made
 * anew each frame, as a stream says only after a while which Ractor it is. */
static void chain_groups(layout *l, const catalog *c)
{
    l->leaders.count = l->followers.count = catalog_process_count(c);
    for (uint32_t id = 0; id < l->leaders.count; id++) {
        const catalog_process *process = catalog_process_at(c, id);
        uint32_t leader = id;
        for (uint32_t i = id; process->ractor > 1 && leader == id && i-- > 0;) {
            const catalog_process *other = catalog_process_at(c, i);
            if (other->pid == process->pid && other->ractor <= 1)
                leader = i;
        }
        l->leaders.items[id] = leader;
        l->followers.items[id] = CATALOG_NONE;
        uint32_t last = leader;
        while (leader != id && l->followers.items[last] != CATALOG_NONE)
            last = l->followers.items[last];
        if (leader != id)
            l->followers.items[last] = id;
    }
}

static void gather_lanes(layout *l, const catalog *c, const layout_desc *desc)
{
    l->lanes.count = l->groups.count = 0;
    chain_groups(l, c);
    for (uint32_t leader = 0; leader < l->leaders.count; leader++) {
        if (l->leaders.items[leader] != leader)
            continue;
        layout_group group = {.process = leader, .lane_begin = (uint32_t)l->lanes.count};
        for (uint32_t id = leader; id != CATALOG_NONE; id = l->followers.items[id])
            add_lanes(l, c, id, (uint32_t)l->groups.count, desc);
        group.lane_end = (uint32_t)l->lanes.count;
        if (group.lane_end > group.lane_begin)
            l->groups.items[l->groups.count++] = group;
    }
}

static float rows_of(const layout_thread *thread)
{
    float rows = 0;
    for (uint32_t sub = 0; sub < LAYOUT_SUBS; sub++)
        rows += thread->rows[sub] + (sub > 0 ? SUB_GAP * fminf(thread->rows[sub], 1) : 0);
    return rows;
}

/* With the bars of user spans above. */
static float lane_rows_of(const layout_thread *thread)
{
    return rows_of(thread) + (thread->span_levels ? 0.35f + SPAN_ROWS * (float)thread->span_levels : 0);
}

float layout_row_height(const layout *l, const layout_lane *lane)
{
    return l->row_height * mixf(1, lane->squeeze, l->flame);
}

/* How high the boxes of a lane stand over its floor. */
static float top_of(const layout *l, const layout_lane *lane)
{
    const layout_thread *thread = &l->threads.items[lane->thread];
    float highest = 0;
    for (uint32_t sub = 0; sub < LAYOUT_SUBS; sub++)
        highest = fmaxf(highest, thread->rows[sub]);
    return mixf(highest, rows_of(thread), l->flame) * layout_row_height(l, lane);
}

/* How many rows of full height one lane of the flame chart may have. A deep stack (a program's start, a recursion) must not push
 * the other threads out of the picture: what lower lanes leave of the height is shared among the higher ones, whose rows
 * get lower. */
static float lane_rows_max(const layout *l, const layout_desc *desc)
{
    float free_rows = desc->free_height_px / desc->row_px, stretch = fmaxf(desc->stretch, 1), count = (float)l->lanes.count;
    if (l->lanes.count < 2)
        return fmaxf(LANE_SHARE_MAX * free_rows, LANE_ROWS_MIN) * stretch;
    float all_rows = free_rows - LANE_GAP_ROWS * count, share = all_rows / count;
    for (int round = 0; round < 8; round++) { /* what is lower than the share leaves more to the others: it only grows */
        float lower_rows = 0, higher = 0;
        for (size_t i = 0; i < l->lanes.count; i++) {
            float rows = lane_rows_of(&l->threads.items[l->lanes.items[i].thread]);
            lower_rows += rows <= share ? rows : 0;
            higher += rows > share;
        }
        if (higher == 0)
            break;
        share = (all_rows - lower_rows) / higher;
    }
    return fmaxf(share, LANE_ROWS_LEAST) * stretch;
}

/* The heights and depths that the lanes in sight should have, and their easing towards them. */
static void ease_measures(layout *l, const layout_desc *desc)
{
    float lanes = 0, deepest = 1, flame_rows = 0;
    float rows_max = lane_rows_max(l, desc);
    for (size_t i = 0; i < l->lanes.count; i++) {
        const layout_thread *thread = &l->threads.items[l->lanes.items[i].thread];
        lanes += l->lanes.items[i].weight;
        for (uint32_t sub = 0; sub < LAYOUT_SUBS; sub++)
            deepest = fmaxf(deepest, thread->rows[sub] * l->lanes.items[i].weight);
        l->lanes.items[i].squeeze = fminf(rows_max / lane_rows_of(thread), 1);
        flame_rows += (lane_rows_of(thread) * l->lanes.items[i].squeeze + LANE_GAP_ROWS) * l->lanes.items[i].weight;
    }
    lanes = fmaxf(lanes + GROUP_GAP * (float)(l->groups.count ? l->groups.count - 1 : 0), 1);
    float scene_pitch = clampf(9.0f / lanes, fminf(0.12f, SCENE_DEPTH_MAX / lanes), 1.7f);
    float threads_pitch = clampf(desc->free_height_px / lanes, desc->lane_px, 7 * desc->lane_px) * desc->units_per_px;
    /* One stack may be tall; many lanes must not hide each other. */
    float scene_height = lanes < 1.5f ? 4.0f : clampf(1.7f * scene_pitch + 1.2f / lanes, 0.3f, 3.4f);
    float scene_row = fminf(scene_height / deepest, ROW_HEIGHT_MAX);
    float flame_row = clampf(desc->free_height_px / fmaxf(flame_rows, 1), desc->row_px, 2.0f * desc->row_px) * desc->units_per_px;
    float row = mixf(mixf(scene_row, flame_row, desc->flame) * desc->stretch, ROW_HEIGHT_FLAT, desc->threads);
    float pitch = mixf(mixf(scene_pitch, 1.0f, desc->flame), threads_pitch, desc->threads);
    /* The depths are eased already; what is left to ease here is the number of lanes and the camera. */
    bool at_once = !l->is_set;
    l->is_moving |= ease(&l->row_height, row, at_once ? INFINITY : desc->time_s, LANE_TAU_S);
    l->is_moving |= ease(&l->pitch, pitch, at_once ? INFINITY : desc->time_s, LANE_TAU_S);
    l->tallest = deepest * l->row_height;
}

static void place_lanes(layout *l)
{
    float z = 0, y = 0;
    uint32_t group = 0;
    l->y_low = 0;
    l->y_high = l->tallest;
    for (size_t i = 0; i < l->lanes.count; i++) {
        layout_lane *lane = &l->lanes.items[i];
        if (lane->group != group) {
            z += GROUP_GAP * l->pitch * lane->weight;
            y -= 1.2f * l->row_height * lane->weight;
            group = lane->group;
        }
        lane->z_begin = z;
        z += l->pitch * lane->weight;
        lane->z_end = z;
        y -= (lane_rows_of(&l->threads.items[lane->thread]) * lane->squeeze + 1.0f) * l->row_height * lane->weight;
        lane->y_floor = y * l->flame;
        l->y_low = fminf(l->y_low, lane->y_floor - 1.0f * l->row_height * l->flame);
        y -= 1.2f * l->row_height * lane->weight;
    }
    l->z_end = z;
    l->y_high = mixf(l->tallest, 0, l->flame);
}

void layout_update(layout *l, const catalog *c, const layout_desc *desc)
{
    l->flame = desc->flame;
    l->threads_share = desc->threads;
    l->is_moving = false;
    if (!take_over_new(l, c))
        return;
    gather_lanes(l, c, desc);
    ease_measures(l, desc);
    place_lanes(l);
    if (l->lanes.count > 0)
        l->is_set = true;
}

void layout_strip(const layout *l, const layout_lane *lane, float z[2], float y[2])
{
    float depth = lane->z_end - lane->z_begin;
    z[0] = lane->z_begin + mixf(0.68f, 0.42f, l->threads_share) * depth;
    z[1] = lane->z_begin + 0.94f * depth;
    y[1] = lane->y_floor - mixf(0.004f, 0.22f * l->row_height, l->flame);
    y[0] = y[1] - mixf(STRIP_THICKNESS, 0.62f * l->row_height, l->flame);
}

void layout_span(const layout *l, const layout_lane *lane, uint32_t level, float z[2], float y[2])
{
    float height = fmaxf(layout_row_height(l, lane), l->row_height * 0.8f), depth = lane->z_end - lane->z_begin;
    z[0] = lane->z_begin + mixf(0.08f, 0.01f, l->threads_share) * depth;
    z[1] = lane->z_begin + mixf(0.62f, 0.09f, l->threads_share) * depth;
    y[0] = lane->y_floor + top_of(l, lane) + (0.25f + (float)level * SPAN_ROWS) * height;
    y[1] = y[0] + 0.9f * height;
}

void layout_sub(const layout *l, const layout_lane *lane, uint32_t sub, float *z_begin, float *z_end, float *y_floor)
{
    const layout_thread *thread = &l->threads.items[lane->thread];
    float depth = lane->z_end - lane->z_begin, begin = 0.08f, end = mixf(0.62f, 0.38f, l->threads_share);
    /* The root fiber in front would hide the others: it stands at the back, they stand before it, each thinner. */
    float slice = (end - begin) / fmaxf(thread->sub_count, 1);
    *z_begin = lane->z_begin + depth * (begin + slice * (float)sub);
    *z_end = *z_begin + depth * slice * (thread->subs_used > 1 ? 0.86f : 1.0f);
    *y_floor = lane->y_floor;
    for (uint32_t below = 0; below < sub; below++)
        *y_floor += (thread->rows[below] + SUB_GAP) * layout_row_height(l, lane) * l->flame;
}
