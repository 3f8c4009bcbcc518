#include "sim/block.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

#define PART_FREE UINT32_MAX
#define PART_TABLE_BITS_MIN 6u
#define OWN_MIN 256u

void block_work_free(block_work *w)
{
    for (size_t i = 0; i < w->parts.count; i++) {
        block_part *p = &w->parts.items[i];
        vec_free(&p->ops);
        vec_free(&p->own);
        vec_free(&p->frames);
    }
    vec_free(&w->parts);
    vec_free(&w->switches);
    vec_free(&w->runtime);
    vec_free(&w->defines);
    vec_free(&w->notes);
    vec_free(&w->lines);
    vec_free(&w->spans);
    vec_free(&w->runs);
    vec_free(&w->pending);
    vec_free(&w->exits);
    mem_free(w->part_table);
    *w = (block_work){0};
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/* The next unused part, its arrays emptied but kept. Moves parts: take pointers anew. */
static block_part *part_new(block_work *w)
{
    if (w->part_count == w->parts.count) {
        block_part *fresh = vec_push(&w->parts);
        if (!fresh)
            return NULL;
        *fresh = (block_part){0};
    }
    block_part *p = &w->parts.items[w->part_count];
    if (!vec_reserve(&p->own, OWN_MIN))
        return NULL;
    w->part_count++;
    p->is_inherited = p->has_stack_events = false;
    p->ops.count = p->frames.count = 0;
    p->own.count = 1;
    p->base_depth = 0;
    return p;
}

static uint32_t *table_place(const block_work *w, uint32_t fiber)
{
    uint32_t mask = (1u << w->part_table_bits) - 1, i = (fiber * 2654435761u) >> (32 - w->part_table_bits);
    while (w->part_table[i] != PART_FREE && w->parts.items[w->part_table[i]].fiber != fiber)
        i = (i + 1) & mask;
    return &w->part_table[i];
}

static bool table_reset(block_work *w, uint32_t bits)
{
    if (bits != w->part_table_bits || !w->part_table) {
        uint32_t *bigger = mem_alloc((size_t)1 << bits, sizeof *bigger);
        if (!bigger)
            return false;
        mem_free(w->part_table);
        w->part_table = bigger;
        w->part_table_bits = bits;
    }
    memset(w->part_table, 0xff, sizeof *w->part_table << bits);
    for (uint32_t i = 1; i < w->part_count; i++)
        *table_place(w, w->parts.items[i].fiber) = i;
    return true;
}

/* The part that a SWITCH goes to; PART_FREE: memory is out. */
static uint32_t part_of(block_work *w, ev e, uint32_t index)
{
    uint32_t *place = table_place(w, e.number);
    if (*place == PART_FREE) {
        block_part *p = part_new(w);
        if (!p)
            return PART_FREE;
        p->fiber = e.number;
        p->first_index = index;
        *place = w->part_count - 1;
        if (w->part_count * 2 > 1u << w->part_table_bits && !table_reset(w, w->part_table_bits + 1))
            return PART_FREE;
        place = table_place(w, e.number);
    }
    w->parts.items[*place].thread = e.place;
    return *place;
}

/* ---- summarise ------------------------------------------------------------------------------------------------ */

static bool add_cut(block_part *p, uint32_t key)
{
    block_op *last = p->ops.count ? &p->ops.items[p->ops.count - 1] : NULL;
    if (last && last->kind == BLOCK_CUT) {
        if (ev_is_deeper(last->key, key))
            last->key = key; /* the deeper cut is within the shallower one */
        return true;
    }
    block_op *op = vec_push(&p->ops);
    if (!op)
        return false;
    *op = (block_op){.kind = BLOCK_CUT, .key = key};
    return true;
}

/* Pop the part's own frames at or deeper than key; what goes beyond them is an operation on the unknown stack. */
static bool cut(block_part *p, uint32_t key)
{
    while (p->own.count > 1 && !ev_is_deeper(key, p->own.items[p->own.count - 1].key))
        p->own.count--;
    return p->own.count > 1 || add_cut(p, key);
}

static bool push(block_part *p, uint32_t key, uint32_t index)
{
    if (!cut(p, key) || !vec_reserve(&p->own, p->own.count + 1))
        return false;
    p->own.items[p->own.count++] = (block_own){key, index};
    return true;
}

static bool is_unwind(ev e) { return e.number != 0 && ev_position_is_c(e.place); }

static bool summarise_unwind(block_work *w, block_part *p, ev e)
{
    if (!cut(p, ev_depth_key(e.place) + 1))
        return false;
    if (p->own.count > 1) {
        ev top = w->events[p->own.items[p->own.count - 1].index];
        if (ev_position_is_c(top.place) && (top.number & ~BLOCK_OPEN_AT_START) == e.number)
            p->own.count--;
        return true;
    }
    block_op *op = vec_push(&p->ops);
    if (op)
        *op = (block_op){.kind = BLOCK_UNWIND, .method = e.number};
    return op != NULL;
}

static bool summarise_stack_event(block_work *w, block_part *p, uint32_t index)
{
    ev e = w->events[index];
    uint32_t key = ev_depth_key(e.place);
    switch (ev_kind_of(e)) {
    case EV_CALL:
    case EV_FRAME: return push(p, key, index);
    case EV_RETURN: return is_unwind(e) ? summarise_unwind(w, p, e) : cut(p, key);
    default: return cut(p, key); /* EV_CUT */
    }
}

/* 0 when the event is a call above the top frame, or the plain return of it: the common case. All by arithmetic: whether it
 * is a call or a return is a coin toss to the branch predictor. */
static inline uint32_t misfit(ev e, uint32_t kind, uint32_t key, uint32_t top)
{
    uint32_t above = key - top;
    uint32_t bad_call = (above - 1) >> 31;                                      /* not deeper than the top */
    uint32_t bad_return = above | ((uint32_t)(e.number != 0) & (e.place & 1u)); /* not the top, or perhaps an unwinding */
    return (kind >> 1) | (bad_call & (kind ^ 1u)) | (bad_return & (0u - kind));
}

/* The cut that lies below the part's own frames, or NULL when that is something else. */
static block_op *base_cut(block_part *p)
{
    block_op *last = p->ops.count ? &p->ops.items[p->ops.count - 1] : NULL;
    return last && last->kind == BLOCK_CUT ? last : NULL;
}

/* Without frames of its own: returns of frames that nobody knows yet, one after another, move the cut. */
static uint32_t summarise_base(block_work *w, block_part *p, uint32_t i)
{
    block_op *base = p->own.count == 1 ? base_cut(p) : NULL;
    if (!base)
        return i;
    for (; i < w->event_count; i++) {
        ev e = w->events[i];
        uint32_t key = ev_depth_key(e.place);
        if (ev_kind_of(e) != EV_RETURN || is_unwind(e))
            break;
        base->key = ev_is_deeper(base->key, key) ? key : base->key;
    }
    return i;
}

/* The common case: calls and returns that fit the part's own frames. Each event writes the place above the top and moves
 * the top by one, whatever it is, so that there is no branch to mispredict. Stops at the first event of another kind.
 * The floor stands for the unknown stack: what is called deeper than the cut lies on it, and its own return moves the cut.
 * Source: the branch-free form is measured in bench/engine. */
static uint32_t summarise_run(block_work *w, block_part *p, uint32_t i)
{
    block_op *base = base_cut(p);
    if (!base && p->own.count == 1)
        return i;
    const ev *e = w->events + i;
    block_own *floor = p->own.items, *top = floor + p->own.count - 1;
    block_own *lowest = base ? floor : floor + 1; /* the lowest top with which the loop can go on */
    uint32_t room = (uint32_t)(p->own.capacity - p->own.count), end = w->event_count - i > room ? i + room : w->event_count;
    if (base)
        floor->key = base->key - 1;
    uint32_t top_key = top->key;
    for (; i < end; i++, e++) {
        uint32_t kind = (uint32_t)(e->head >> EV_TICKS_BITS), key = ev_depth_key(e->place);
        if (misfit(*e, kind, key, top_key))
            break;
        top[1] = (block_own){key, i};
        top += 1 - 2 * (ptrdiff_t)kind;
        if (top < lowest) {
            i++;
            if (top < floor)
                base->key = key;
            break;
        }
        top_key = top->key;
    }
    p->own.count = top < floor ? 1 : (size_t)(top + 1 - floor);
    return i;
}

static bool add_runtime(block_work *w, uint32_t index, ev_kind kind)
{
    block_runtime *r = vec_push(&w->runtime);
    if (r)
        *r = (block_runtime){index, kind};
    return r != NULL;
}

/* CRuby sometimes loses a GC_EXIT (bug 19112): a call after GC_ENTER says that the GC is over. */
typedef enum gc_known { GC_UNKNOWN, GC_OFF, GC_ON } gc_known;

typedef struct summary_state {
    uint32_t part, thread;
    bool thread_known; /* the last SWITCH of the block told the thread, and no thread event came since */
    gc_known gc;
    uint32_t last_plain;
} summary_state;

static bool summarise_switch(block_work *w, summary_state *st, uint32_t i)
{
    ev e = w->events[i];
    w->parts.items[st->part].last_index = st->last_plain;
    uint32_t part = part_of(w, e, i);
    uint32_t *place = part == PART_FREE ? NULL : vec_push(&w->switches);
    if (!place)
        return false;
    *place = part;
    st->part = part;
    if (!st->thread_known || st->thread != e.place) {
        st->thread_known = true;
        st->thread = e.place;
        return add_runtime(w, i, EV_SWITCH);
    }
    return true;
}

static bool add_note(block_work *w, uint32_t part, uint32_t index)
{
    block_note *n = vec_push(&w->notes);
    if (n)
        *n = (block_note){index, part, w->parts.items[part].has_stack_events};
    return n != NULL;
}

static bool summarise_other(block_work *w, summary_state *st, uint32_t *i)
{
    ev e = w->events[*i];
    switch (ev_kind_of(e)) {
    case EV_SWITCH: return summarise_switch(w, st, *i);
    case EV_DEFINE: {
        block_define *d = vec_push(&w->defines);
        if (!d)
            return false;
        *d = (block_define){*i, st->last_plain};
        uint32_t slots = ev_define_slots(e.place), rest = w->event_count - *i - 1;
        slots = slots < rest ? slots : rest; /* intake/ never cuts one; a damaged file may */
        *i += slots;
        w->plain_count -= slots;
        return true;
    }
    case EV_GC_ENTER: st->gc = GC_ON; return add_runtime(w, *i, EV_GC_ENTER);
    case EV_GC_EXIT: st->gc = GC_OFF; return add_runtime(w, *i, EV_GC_EXIT);
    case EV_THREAD_STARTED:
    case EV_THREAD_READY:
    case EV_THREAD_SUSPENDED:
    case EV_THREAD_RESUMED:
    case EV_THREAD_EXITED: st->thread_known = false; return add_runtime(w, *i, ev_kind_of(e));
    default: return add_note(w, st->part, *i); /* SPAN_BEGIN, SPAN_END, MARK: not of the stack */
    }
}

static bool is_stack_event(ev_kind kind)
{
    return kind == EV_CALL || kind == EV_RETURN || kind == EV_CUT || kind == EV_FRAME;
}

static bool summarise_all(block_work *w)
{
    summary_state st = {.last_plain = UINT32_MAX};
    for (uint32_t i = 0; i < w->event_count; i++) {
        uint32_t begin = i;
        if (st.gc == GC_OFF) {
            i = summarise_run(w, &w->parts.items[st.part], i);
            if (i == begin)
                i = summarise_base(w, &w->parts.items[st.part], i);
            if (i > begin) {
                st.last_plain = --i; /* the loop's own step comes on top */
                continue;
            }
        }
        uint32_t index = i;
        if (is_stack_event(ev_kind_of(w->events[i]))) {
            if (st.gc != GC_OFF && !add_runtime(w, i, EV_GC_EXIT))
                return false;
            st.gc = GC_OFF;
            w->parts.items[st.part].has_stack_events = true;
            if (!summarise_stack_event(w, &w->parts.items[st.part], i))
                return false;
        } else if (!summarise_other(w, &st, &i)) {
            return false;
        }
        st.last_plain = index;
    }
    w->parts.items[st.part].last_index = st.last_plain;
    w->final_part = st.part;
    w->last_index = st.last_plain;
    return true;
}

int block_summarise(block_work *w, const ev *events, uint32_t event_count)
{
    w->events = events;
    w->event_count = w->plain_count = event_count;
    w->part_count = 0;
    w->switches.count = w->runtime.count = w->defines.count = w->lines.count = w->notes.count = 0;
    w->spans.count = w->runs.count = w->pending.count = w->exits.count = 0;
    block_part *inherited = part_new(w);
    if (!inherited)
        return -ENOMEM;
    inherited->is_inherited = true;
    inherited->first_index = inherited->last_index = 0;
    inherited->fiber = inherited->thread = 0;
    uint32_t bits = w->part_table_bits > PART_TABLE_BITS_MIN ? w->part_table_bits : PART_TABLE_BITS_MIN;
    return table_reset(w, bits) && summarise_all(w) ? 0 : -ENOMEM;
}

/* ---- definitions and time ------------------------------------------------------------------------------------- */

static const void *payload_of(const block_work *w, uint32_t index, ev *head)
{
    *head = w->events[index];
    size_t room = (size_t)(w->event_count - index - 1) * sizeof(ev);
    if (head->place > room)
        head->place = (uint32_t)room;
    return w->events + index + 1;
}

int block_read_definitions(block_work *w, timebase *clock, uint64_t last_ticks, catalog *c, uint32_t process)
{
    block_line *line = vec_push(&w->lines);
    if (!line)
        return -ENOMEM;
    *line = (block_line){0, clock->line};
    for (size_t i = 0; i < w->defines.count; i++) {
        block_define d = w->defines.items[i];
        ev head;
        const void *payload = payload_of(w, d.index, &head);
        ev_clock_def pair;
        if (ev_define_what(head) == EV_DEFINE_CLOCK && head.place >= sizeof pair) {
            memcpy(&pair, payload, sizeof pair);
            timebase_calibrate(clock, &pair,
                               d.previous_index == UINT32_MAX ? last_ticks : ev_ticks_of(w->events[d.previous_index]));
            line = vec_push(&w->lines);
            if (!line)
                return -ENOMEM;
            *line = (block_line){d.index, clock->line};
        } else {
            catalog_define(c, process, head, payload, timebase_ns(&clock->line, ev_ticks_of(head)));
        }
    }
    return 0;
}

uint64_t block_time(const block_work *w, uint32_t index)
{
    size_t i = w->lines.count - 1;
    while (i > 0 && w->lines.items[i].first_index > index)
        i--;
    return timebase_ns(&w->lines.items[i].line, ev_ticks_of(w->events[index]));
}

/* ---- emit ----------------------------------------------------------------------------------------------------- */

static bool pop(block_work *w, block_part *p, uint64_t now_ns, sim_closed closed)
{
    sim_span *out = vec_push(&w->spans);
    if (!out)
        return false;
    p->frames.count--;
    block_write_span(out, &p->frames.items[p->frames.count], now_ns, p->base_depth + p->frames.count, closed);
    return true;
}

/* Unwind all frames at or deeper than key. */
static bool emit_cut(block_work *w, block_part *p, uint32_t key, uint64_t now_ns)
{
    while (p->frames.count > 0 && !ev_is_deeper(key, p->frames.items[p->frames.count - 1].key))
        if (!pop(w, p, now_ns, SIM_CLOSED_UNWOUND))
            return false;
    return true;
}

static bool emit_push(block_work *w, block_part *p, ev e, uint64_t now_ns)
{
    uint32_t key = ev_depth_key(e.place);
    if (!emit_cut(w, p, key, now_ns) || !vec_reserve(&p->frames, p->frames.count + 1))
        return false;
    uint32_t flag = ev_kind_of(e) == EV_FRAME ? BLOCK_OPEN_AT_START : 0;
    p->frames.items[p->frames.count++] = (block_frame){now_ns, key, (e.number & ~BLOCK_OPEN_AT_START) | flag};
    return true;
}

static bool emit_return(block_work *w, block_part *p, ev e, uint64_t now_ns)
{
    uint32_t key = ev_depth_key(e.place);
    if (!emit_cut(w, p, key + 1, now_ns))
        return false;
    if (p->frames.count == 0)
        return true; /* of a frame from before the start */
    const block_frame *top = &p->frames.items[p->frames.count - 1];
    bool ends = is_unwind(e) ? (top->key & 3u) == EV_POSITION_C && (top->method & ~BLOCK_OPEN_AT_START) == e.number
                             : top->key == key;
    return !ends || pop(w, p, now_ns, SIM_CLOSED_RETURN);
}

static bool emit_stack_event(block_work *w, block_part *p, ev e, uint64_t now_ns)
{
    switch (ev_kind_of(e)) {
    case EV_CALL:
    case EV_FRAME: return emit_push(w, p, e, now_ns);
    case EV_RETURN: return emit_return(w, p, e, now_ns);
    default: return emit_cut(w, p, ev_depth_key(e.place), now_ns);
    }
}

/* The common case, as summarise_run: every event writes a frame above the top and a span from the top, and then moves both
 * ends by what it is. What needs more care than that leaves the loop: frames open at the start, and times so far from the
 * line's base that the product with its rate takes more than 64 bits (a second or more: each line has about one). */
static uint32_t emit_run(block_work *w, block_part *p, const timebase_line *line, uint32_t i)
{
    size_t count = p->frames.count, done = w->spans.count;
    uint32_t end = w->event_count, depth = p->base_depth + (uint32_t)count;
    if (count == 0)
        return i;
    if (end - i > p->frames.capacity - count)
        end = i + (uint32_t)(p->frames.capacity - count);
    if (end - i > w->spans.capacity - done)
        end = i + (uint32_t)(w->spans.capacity - done);
    const ev *e = w->events + i, *last = w->events + end;
    block_frame *frames = p->frames.items, *top = frames + count - 1;
    sim_span *out = w->spans.items + done;
    uint64_t base_ticks = line->base_ticks, base_ns = line->base_ns, rate = line->ns_per_tick_q32;
    int since_bits = __builtin_clzll(rate); /* rate >= 1 */
    for (; e < last; e++) {
        uint64_t head = e->head, since = (head & EV_TICKS_MASK) - base_ticks;
        uint32_t kind = (uint32_t)(head >> EV_TICKS_BITS), key = ev_depth_key(e->place), number = e->number;
        if (misfit(*e, kind, key, top->key) | ((number | top->method) & BLOCK_OPEN_AT_START) | (since >> since_bits != 0))
            break;
        uint64_t now_ns = base_ns + (since * rate >> 32), begin_ns = top->begin_ns;
        *out = (sim_span){
            .begin_ns = begin_ns,
            .end_ns = now_ns > begin_ns ? now_ns : begin_ns,
            .value = top->method,
            .depth = depth - 1,
        };
        top[1] = (block_frame){now_ns, key, number};
        out += kind;
        top += 1 - 2 * (ptrdiff_t)kind;
        depth += 1 - 2 * kind;
        if (top < frames) {
            e++;
            break;
        }
    }
    p->frames.count = (size_t)(top + 1 - frames);
    w->spans.count = (size_t)(out - w->spans.items);
    return (uint32_t)(e - w->events);
}

static void end_run(block_work *w, const block_part *p, size_t *run_begin)
{
    if (w->spans.count > *run_begin)
        w->runs.items[w->runs.count++] = (block_run){p->track, (uint32_t)(w->spans.count - *run_begin)};
    *run_begin = w->spans.count;
}

int block_emit(block_work *w)
{
    size_t part = 0, next_switch = 0, next_line = 1, run_begin = 0;
    timebase_line line = w->lines.items[0].line;
    /* Room for one run a SWITCH, and for the spans of a block that only returns; unwinding asks for more by itself. */
    if (!vec_reserve(&w->runs, w->switches.count + 1) || !vec_reserve(&w->spans, (size_t)w->event_count + 1))
        return -ENOMEM;
    for (uint32_t i = 0; i < w->event_count; i++) {
        block_part *p = &w->parts.items[part];
        i = emit_run(w, p, &line, i);
        if (i >= w->event_count)
            break;
        ev e = w->events[i];
        ev_kind kind = ev_kind_of(e);
        if (is_stack_event(kind)) {
            if (!vec_reserve(&p->frames, p->frames.count + 64) || !emit_stack_event(w, p, e, timebase_ns(&line, ev_ticks_of(e))))
                return -ENOMEM;
        } else if (kind == EV_SWITCH) {
            end_run(w, p, &run_begin);
            part = w->switches.items[next_switch++];
        } else if (kind == EV_DEFINE) {
            uint32_t slots = ev_define_slots(e.place), rest = w->event_count - i - 1;
            if (next_line < w->lines.count && w->lines.items[next_line].first_index == i)
                line = w->lines.items[next_line++].line;
            i += slots < rest ? slots : rest;
        }
    }
    end_run(w, &w->parts.items[part], &run_begin);
    return 0;
}
