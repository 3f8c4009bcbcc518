#include "record/prefix.h"

#include "base/mem.h"
#include "sim/span.h"

#include <errno.h>
#include <string.h>

#define ONE_Q32 (UINT64_C(1) << 32)

/* Where all of it happens: the stream's last moment. */
typedef struct making {
    prefix_events *out;
    uint64_t ticks;
    int error;
} making;

static void add(making *m, ev_kind kind, uint32_t number, uint32_t place)
{
    ev *e = m->error ? NULL : vec_push(m->out);
    if (e)
        *e = ev_make(kind, m->ticks, number, place);
    else
        m->error = -ENOMEM;
}

/* A DEFINE of a fixed part and up to two texts behind it. */
static void define(making *m, ev_define what, uint32_t number, const void *fixed, size_t fixed_bytes, const char *text,
                   size_t text_bytes, const char *more, size_t more_bytes)
{
    size_t bytes = fixed_bytes + text_bytes + more_bytes, slots = ev_define_slots((uint32_t)bytes), first;
    add(m, EV_DEFINE, ev_define_number(what, number), (uint32_t)bytes);
    if (m->error || !vec_reserve(m->out, m->out->count + slots)) {
        m->error = -ENOMEM;
        return;
    }
    first = m->out->count;
    m->out->count += slots;
    char *payload = (char *)(m->out->items + first);
    memset(payload, 0, slots * sizeof(ev));
    memcpy(payload, fixed, fixed_bytes);
    if (text_bytes)
        memcpy(payload + fixed_bytes, text, text_bytes);
    if (more_bytes)
        memcpy(payload + fixed_bytes + text_bytes, more, more_bytes);
}

/* Two looks at the clock that give the line it has now. */
static void define_clock(making *m, const catalog_process *p, const sim_state *s)
{
    const timebase_line *line = &s->clock.line;
    ev_clock_def pair = {.ticks = line->base_ticks, .monotonic_ns = line->base_ns, .realtime_ns = line->base_ns + p->realtime_offset_ns};
    define(m, EV_DEFINE_CLOCK, 0, &pair, sizeof pair, NULL, 0, NULL, 0);
    /* As far apart as a tick's rate has bits: it comes back exactly. */
    pair.ticks += ONE_Q32;
    pair.monotonic_ns += line->ns_per_tick_q32;
    pair.realtime_ns += line->ns_per_tick_q32;
    define(m, EV_DEFINE_CLOCK, 0, &pair, sizeof pair, NULL, 0, NULL, 0);
}

static void define_process(making *m, const catalog_process *p)
{
    size_t argv_bytes = strnlen(p->command, EV_NAME_BYTES_MAX);
    ev_process_def def = {
        .pid = p->pid,
        .ppid = p->ppid,
        .position_source = p->position_source,
        .ractor = p->ractor,
        .realtime_ns = p->realtime_offset_ns + p->begin_ns,
        .argv_bytes = (uint32_t)argv_bytes,
        .ruby_bytes = (uint32_t)strlen(p->ruby),
    };
    define(m, EV_DEFINE_PROCESS, 0, &def, sizeof def, p->command, argv_bytes, p->ruby, def.ruby_bytes);
}

static void define_names(making *m, const catalog *c, uint32_t process)
{
    for (uint32_t i = 0; i < catalog_method_limit(c, process); i++) {
        const catalog_method *method = catalog_method_known(c, process, i);
        if (!method)
            continue;
        ev_method_def def = {method->kind, method->line, method->name_bytes, method->path_bytes};
        define(m, EV_DEFINE_METHOD, i, &def, sizeof def, method->name, method->name_bytes, method->path, method->path_bytes);
    }
    for (uint32_t i = 0; i < catalog_string_limit(c, process); i++) {
        const char *text = catalog_string_of(c, process, i);
        if (*text)
            define(m, EV_DEFINE_STRING, i, text, strnlen(text, EV_NAME_BYTES_MAX), NULL, 0, NULL, 0);
    }
}

static void define_thread(making *m, const catalog *c, uint32_t process, uint32_t number)
{
    uint32_t id = catalog_find_thread(c, process, number);
    if (id == CATALOG_NONE)
        return;
    const catalog_thread *t = catalog_thread_at(c, id);
    size_t bytes = strlen(t->name);
    ev_thread_def def = {t->ractor, t->native_tid, t->is_main ? EV_THREAD_MAIN : 0, (uint32_t)bytes};
    define(m, EV_DEFINE_THREAD, number, &def, sizeof def, t->name, bytes, NULL, 0);
}

static void open_fiber(making *m, const sim_state_thread *t, const sim_state_fiber *f, const sim_state_frame *frames)
{
    ev_fiber_def def = {.thread = t->number};
    if (f->frame_count == 0)
        return;
    define(m, EV_DEFINE_FIBER, f->number, &def, sizeof def, NULL, 0, NULL, 0);
    add(m, EV_SWITCH, f->number, t->number);
    for (uint32_t i = 0; i < f->frame_count; i++)
        add(m, EV_FRAME, frames[i].method & EV_NUMBER_MAX, frames[i].position);
}

static void tell_gvl(making *m, const sim_state_thread *t)
{
    static const ev_kind kinds[] = {[SIM_GVL_RUNNING] = EV_THREAD_RESUMED, [SIM_GVL_WAITING] = EV_THREAD_READY, [SIM_GVL_BLOCKED] = EV_THREAD_SUSPENDED};
    if (t->gvl <= SIM_GVL_BLOCKED)
        add(m, kinds[t->gvl], t->number, 0);
}

static void open_threads(making *m, const catalog *c, uint32_t process, const sim_state *s)
{
    const sim_state_fiber *fiber = s->fibers.items;
    const sim_state_frame *frame = s->frames.items;
    for (size_t i = 0; i < s->threads.count; i++) {
        const sim_state_thread *t = &s->threads.items[i];
        if (t->end_ns == 0)
            define_thread(m, c, process, t->number);
        for (uint32_t k = 0; k < t->fiber_count; k++, frame += fiber->frame_count, fiber++)
            open_fiber(m, t, fiber, frame);
    }
    if (s->is_placed)
        add(m, EV_SWITCH, s->current_fiber, s->current_thread);
    for (size_t i = 0; i < s->threads.count; i++) /* a SWITCH says that its thread runs: so this comes after them */
        tell_gvl(m, &s->threads.items[i]);
    if (s->gc == 0)
        add(m, EV_GC_ENTER, 0, 0);
}

int prefix_make(prefix_events *out, const catalog *c, uint32_t process, const sim_state *state)
{
    making m = {.out = out, .ticks = state->last_ticks};
    const catalog_process *p = catalog_process_at(c, process);
    define_clock(&m, p, state);
    define_process(&m, p);
    define_names(&m, c, process);
    open_threads(&m, c, process, state);
    return m.error;
}
