/* test/c/report_stream.h - writes event streams by hand, one word an event. Ticks are ns unless made_clock says otherwise.
 * Use: made s = {0}; made_process(&s, …); made_method(&s, 1, …); made_call(&s, 10, 1, 1); … vec_free(&s.events);
 *      depth counts from 1; a Ruby method's frame lies at its depth.
 */
#ifndef RRTRACE_TEST_REPORT_STREAM_H
#define RRTRACE_TEST_REPORT_STREAM_H

#include "base/mem.h"
#include "base/vec.h"
#include "test.h"
#include "wire/event.h"

typedef struct made {
    VEC(ev) events;
} made;

static inline void made_event(made *s, ev_kind kind, uint64_t ns, uint32_t number, uint32_t place)
{
    ev *e = vec_push(&s->events);
    CHECK(e);
    *e = ev_make(kind, ns, number, place);
}

static inline void made_define(made *s, uint64_t ns, ev_define what, uint32_t number, const void *payload, size_t bytes)
{
    made_event(s, EV_DEFINE, ns, ev_define_number(what, number), (uint32_t)bytes);
    for (size_t i = 0; i < bytes; i += 16) {
        ev *e = vec_push(&s->events);
        CHECK(e);
        *e = (ev){0};
        memcpy(e, (const char *)payload + i, bytes - i < 16 ? bytes - i : 16);
    }
}

static inline void made_method_bytes(made *s, uint32_t number, const char *name, size_t name_bytes, uint32_t kind, const char *path, uint32_t line)
{
    char payload[4096];
    ev_method_def def = {kind, line, (uint32_t)name_bytes, (uint32_t)strlen(path)};
    memcpy(payload, &def, sizeof def);
    memcpy(payload + sizeof def, name, name_bytes);
    memcpy(payload + sizeof def + name_bytes, path, def.path_bytes);
    made_define(s, 1, EV_DEFINE_METHOD, number, payload, sizeof def + name_bytes + def.path_bytes);
}

static inline void made_method(made *s, uint32_t number, const char *name)
{
    made_method_bytes(s, number, name, strlen(name), EV_METHOD_RUBY, "app.rb", number * 10);
}

static inline void made_thread(made *s, uint32_t number, const char *name)
{
    char payload[256];
    ev_thread_def def = {.ractor = 1, .flags = number == 1 ? EV_THREAD_MAIN : 0, .name_bytes = (uint32_t)strlen(name)};
    memcpy(payload, &def, sizeof def);
    memcpy(payload + sizeof def, name, def.name_bytes);
    made_define(s, 1, EV_DEFINE_THREAD, number, payload, sizeof def + def.name_bytes);
}

static inline void made_process(made *s, uint32_t pid, uint32_t ppid, uint32_t ractor, const char *command)
{
    char payload[256];
    ev_process_def def = {.pid = pid, .ppid = ppid, .position_source = 1, .ractor = ractor, .argv_bytes = (uint32_t)strlen(command) + 1};
    memcpy(payload, &def, sizeof def);
    memcpy(payload + sizeof def, command, def.argv_bytes);
    made_define(s, 1, EV_DEFINE_PROCESS, 0, payload, sizeof def + def.argv_bytes);
}

static inline void made_clock(made *s, uint64_t ticks, uint64_t ns)
{
    ev_clock_def def = {.ticks = ticks, .monotonic_ns = ns, .realtime_ns = ns, .source = 1};
    made_define(s, ticks, EV_DEFINE_CLOCK, 0, &def, sizeof def);
}

static inline uint32_t made_place(uint32_t depth) { return 0x7f000000u - depth * 64u; }

static inline void made_switch(made *s, uint64_t ns, uint32_t thread, uint32_t fiber) { made_event(s, EV_SWITCH, ns, fiber, thread); }
static inline void made_call(made *s, uint64_t ns, uint32_t depth, uint32_t method) { made_event(s, EV_CALL, ns, method, made_place(depth)); }
static inline void made_frame(made *s, uint64_t ns, uint32_t depth, uint32_t method) { made_event(s, EV_FRAME, ns, method, made_place(depth)); }
static inline void made_return(made *s, uint64_t ns, uint32_t depth) { made_event(s, EV_RETURN, ns, 0, made_place(depth)); }
static inline void made_cut(made *s, uint64_t ns, uint32_t depth) { made_event(s, EV_CUT, ns, 0, made_place(depth)); }

static inline void made_each_definition(const made *s, void (*take)(void *context, ev head, const void *payload), void *context)
{
    for (size_t i = 0; i < s->events.count; i++) {
        if (ev_kind_of(s->events.items[i]) != EV_DEFINE)
            continue;
        take(context, s->events.items[i], &s->events.items[i + 1]);
        i += ev_define_slots(s->events.items[i].place);
    }
}

#endif
