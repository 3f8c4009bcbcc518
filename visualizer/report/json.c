/* The report as JSON. Other tools and our tests rely on these keys:
 *
 *   {"format":1, "duration_ns":…, "events":…, "dropped":0, "waited":0,
 *    "processes":[{"pid":…, "ppid":…, "command":"…",
 *      "threads":[{"number":…, "name":"…", "ractor":…, "running_ns":…, "waiting_gvl_ns":…, "blocked_ns":…, "calls":…,
 *                  "max_depth":…}],
 *      "gc":{"count":…, "total_ns":…}}],
 *    "methods":[{"name":"Object#fib", "kind":"ruby", "path":"…", "line":…, "calls":…, "total_ns":…, "self_ns":…,
 *                "min_ns":…, "max_ns":…}],
 *    "arcs":[{"caller":"Object#main" or null, "callee":"Object#fib", "calls":…, "total_ns":…, "self_ns":…}]}
 */
#include "report/write.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

static void write_member(pen *o, const char *key, uint64_t value)
{
    pen_text(o, key);
    pen_number(o, value);
}

static void write_thread(const report_model *m, const report_thread *t, pen *o)
{
    const catalog_thread *is = catalog_thread_at(m->catalog, t->id);
    write_member(o, "{\"number\":", is->number);
    pen_text(o, ",\"name\":");
    pen_json(o, is->name, strlen(is->name));
    write_member(o, ",\"ractor\":", is->ractor);
    write_member(o, ",\"running_ns\":", t->gvl_ns[SIM_GVL_RUNNING]);
    write_member(o, ",\"waiting_gvl_ns\":", t->gvl_ns[SIM_GVL_WAITING]);
    write_member(o, ",\"blocked_ns\":", t->gvl_ns[SIM_GVL_BLOCKED]);
    write_member(o, ",\"calls\":", t->calls);
    write_member(o, ",\"max_depth\":", t->max_depth);
    pen_text(o, "}");
}

/* Threads come sorted by process: *next is the first that is not written yet. */
static void write_process(const report_model *m, uint32_t index, size_t *next, pen *o)
{
    const report_process *p = &m->processes[index];
    const catalog_process *is = catalog_process_at(m->catalog, p->id);
    write_member(o, "{\"pid\":", is->pid);
    write_member(o, ",\"ppid\":", is->ppid);
    pen_text(o, ",\"command\":");
    pen_json(o, is->command, strlen(is->command));
    pen_text(o, ",\"threads\":[");
    for (size_t first = *next; *next < m->thread_count && m->threads[*next].process == index; (*next)++) {
        pen_text(o, *next > first ? ",\n  " : "\n  ");
        write_thread(m, &m->threads[*next], o);
    }
    write_member(o, "],\"gc\":{\"count\":", p->gc_count);
    write_member(o, ",\"total_ns\":", p->gc_total_ns);
    pen_text(o, "}}");
}

static void write_times(pen *o, uint64_t calls, uint64_t total_ns, uint64_t self_ns)
{
    write_member(o, ",\"calls\":", calls);
    write_member(o, ",\"total_ns\":", total_ns);
    write_member(o, ",\"self_ns\":", self_ns);
}

static void write_method(const report_method *method, pen *o)
{
    pen_text(o, "{\"name\":");
    pen_json(o, method->is->name, method->is->name_bytes);
    pen_format(o, ",\"kind\":\"%s\",\"path\":", report_kind_name(method->is->kind));
    pen_json(o, method->is->path, method->is->path_bytes);
    write_member(o, ",\"line\":", method->is->line);
    write_times(o, method->calls, method->total_ns, method->self_ns);
    write_member(o, ",\"min_ns\":", method->min_ns);
    write_member(o, ",\"max_ns\":", method->max_ns);
    pen_text(o, "}");
}

static void write_arc(const report_model *m, const report_arc *arc, pen *o)
{
    const catalog_method *callee = m->methods[arc->callee].is;
    pen_text(o, "{\"caller\":");
    if (arc->caller == REPORT_NONE)
        pen_text(o, "null");
    else
        pen_json(o, m->methods[arc->caller].is->name, m->methods[arc->caller].is->name_bytes);
    pen_text(o, ",\"callee\":");
    pen_json(o, callee->name, callee->name_bytes);
    write_times(o, arc->calls, arc->total_ns, arc->self_ns);
    pen_text(o, "}");
}

int report_write_json(const report_model *m, const report_layout *how, pen *o)
{
    report_order methods, arcs = {0};
    bool ok = report_order_methods(m, how->sort, &methods) && report_order_arcs(m, &arcs);
    size_t top = how->top ? how->top : SIZE_MAX, next = 0;
    write_member(o, "{\"format\":1,\"duration_ns\":", m->end_ns - m->begin_ns);
    write_member(o, ",\"events\":", m->event_count);
    write_member(o, ",\"dropped\":", m->dropped);
    write_member(o, ",\"waited\":", m->waited);
    pen_text(o, ",\n\"processes\":[");
    for (uint32_t i = 0; ok && i < m->process_count; i++) {
        pen_text(o, i ? ",\n " : "\n ");
        write_process(m, i, &next, o);
    }
    pen_text(o, "],\n\"methods\":[");
    for (size_t i = 0; ok && i < methods.count && i < top; i++) {
        pen_text(o, i ? ",\n " : "\n ");
        write_method(&m->methods[methods.items[i]], o);
    }
    pen_text(o, "],\n\"arcs\":[");
    for (size_t i = 0; ok && i < arcs.count && i < top; i++) {
        pen_text(o, i ? ",\n " : "\n ");
        write_arc(m, &m->arcs[arcs.items[i]], o);
    }
    pen_text(o, "]}\n");
    vec_free(&methods);
    vec_free(&arcs);
    return ok ? 0 : -ENOMEM;
}
