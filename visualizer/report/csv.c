#include "report/write.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

static void write_number(pen *o, uint64_t number)
{
    pen_text(o, ",");
    pen_number(o, number);
}

/* An empty field when there is none. */
static void write_method_name(pen *o, const report_model *m, uint32_t method)
{
    if (method != REPORT_NONE)
        pen_csv(o, m->methods[method].is->name, m->methods[method].is->name_bytes);
}

static void write_place(pen *o, const report_model *m, uint32_t method)
{
    pen_text(o, ",");
    if (method == REPORT_NONE) {
        pen_text(o, ",");
        return;
    }
    pen_csv(o, m->methods[method].is->path, m->methods[method].is->path_bytes);
    write_number(o, m->methods[method].is->line);
}

static int write_methods(const report_model *m, const report_layout *how, size_t top, pen *o)
{
    report_order order;
    bool ok = report_order_methods(m, how->sort, &order);
    pen_text(o, "name,kind,path,line,calls,total_ns,self_ns,min_ns,max_ns\r\n");
    for (size_t i = 0; ok && i < order.count && i < top; i++) {
        const report_method *method = &m->methods[order.items[i]];
        write_method_name(o, m, order.items[i]);
        pen_format(o, ",%s", report_kind_name(method->is->kind));
        write_place(o, m, order.items[i]);
        write_number(o, method->calls);
        write_number(o, method->total_ns);
        write_number(o, method->self_ns);
        write_number(o, method->min_ns);
        write_number(o, method->max_ns);
        pen_text(o, "\r\n");
    }
    vec_free(&order);
    return ok ? 0 : -ENOMEM;
}

static int write_arcs(const report_model *m, size_t top, pen *o)
{
    report_order order;
    bool ok = report_order_arcs(m, &order);
    pen_text(o, "caller,caller_path,caller_line,callee,callee_path,callee_line,calls,total_ns,self_ns\r\n");
    for (size_t i = 0; ok && i < order.count && i < top; i++) {
        const report_arc *arc = &m->arcs[order.items[i]];
        write_method_name(o, m, arc->caller);
        write_place(o, m, arc->caller);
        pen_text(o, ",");
        write_method_name(o, m, arc->callee);
        write_place(o, m, arc->callee);
        write_number(o, arc->calls);
        write_number(o, arc->total_ns);
        write_number(o, arc->self_ns);
        pen_text(o, "\r\n");
    }
    vec_free(&order);
    return ok ? 0 : -ENOMEM;
}

static void write_threads(const report_model *m, size_t top, pen *o)
{
    pen_text(o, "pid,thread,name,ractor,running_ns,waiting_gvl_ns,blocked_ns,calls,max_depth\r\n");
    for (size_t i = 0; i < m->thread_count && i < top; i++) {
        const report_thread *t = &m->threads[i];
        const catalog_thread *is = catalog_thread_at(m->catalog, t->id);
        pen_number(o, catalog_process_at(m->catalog, is->process)->pid);
        write_number(o, is->number);
        pen_text(o, ",");
        pen_csv(o, is->name, strlen(is->name));
        write_number(o, is->ractor);
        for (int state = SIM_GVL_RUNNING; state <= SIM_GVL_BLOCKED; state++)
            write_number(o, t->gvl_ns[state]);
        write_number(o, t->calls);
        write_number(o, t->max_depth);
        pen_text(o, "\r\n");
    }
}

static void write_gc(const report_model *m, size_t top, pen *o)
{
    pen_text(o, "pid,ppid,command,count,total_ns,longest_ns\r\n");
    for (size_t i = 0; i < m->process_count && i < top; i++) {
        const report_process *p = &m->processes[i];
        const catalog_process *is = catalog_process_at(m->catalog, p->id);
        pen_number(o, is->pid);
        write_number(o, is->ppid);
        pen_text(o, ",");
        pen_csv(o, is->command, strlen(is->command));
        write_number(o, p->gc_count);
        write_number(o, p->gc_total_ns);
        write_number(o, p->gc_longest_ns);
        pen_text(o, "\r\n");
    }
}

static void write_spans(const report_model *m, size_t top, pen *o)
{
    pen_text(o, "pid,thread,depth,name,path,line,start_ns,duration_ns\r\n");
    for (size_t i = 0; i < m->longest_count && i < top; i++) {
        const report_long_call *call = &m->longest[i];
        const catalog_thread *thread = catalog_thread_at(m->catalog, call->thread);
        pen_number(o, catalog_process_at(m->catalog, thread->process)->pid);
        write_number(o, thread->number);
        write_number(o, call->depth);
        pen_text(o, ",");
        write_method_name(o, m, call->method);
        write_place(o, m, call->method);
        write_number(o, call->begin_ns - m->origin_ns);
        write_number(o, call->duration_ns);
        pen_text(o, "\r\n");
    }
}

static int write_own(const report_model *m, size_t top, pen *o)
{
    report_order order;
    bool ok = report_order_own(m, &order);
    pen_text(o, "kind,name,count,total_ns,min_ns,max_ns\r\n");
    for (size_t i = 0; ok && i < order.count && i < top; i++) {
        const own_name *own = &m->own[order.items[i]];
        pen_text(o, own->is_mark ? "mark," : "span,");
        pen_csv(o, own->text, strlen(own->text));
        write_number(o, own->count);
        write_number(o, own->total_ns);
        write_number(o, own->is_mark ? 0 : own->min_ns);
        write_number(o, own->max_ns);
        pen_text(o, "\r\n");
    }
    vec_free(&order);
    return ok ? 0 : -ENOMEM;
}

int report_write_csv(const report_model *m, const report_layout *how, pen *o)
{
    size_t top = how->top ? how->top : SIZE_MAX;
    switch (how->tables) {
    case REPORT_ARCS: return write_arcs(m, top, o);
    case REPORT_THREADS: write_threads(m, top, o); return 0;
    case REPORT_GC: write_gc(m, top, o); return 0;
    case REPORT_SPANS: write_spans(m, top, o); return 0;
    case REPORT_MARKS: return write_own(m, top, o);
    default: return write_methods(m, how, top, o);
    }
}
