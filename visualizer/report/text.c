#include "report/write.h"

#include "base/length.h"
#include "base/mem.h"
#include "report/cells.h"
#include "wire/event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GRAPH_METHODS 10u /* by default; each takes a dozen lines */
#define GRAPH_ARCS 5u     /* callers, and callees, a method; by default */
#define WIDTH_MIN 60u     /* narrower terminals wrap: shorter names would say nothing */
#define TIME_COLUMNS 8u
#define CALLS_COLUMNS 11u
#define PERCENT_COLUMNS 6u
#define PATH_COLUMNS_MIN 8u /* less of a path says nothing */

typedef struct text_view {
    const report_model *m;
    const report_layout *how;
    pen *o;
    unsigned width;
    size_t top;
    uint64_t self_ns; /* of all methods together: what percentages refer to */
} text_view;

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static void style(const text_view *v, const char *sequence)
{
    if (v->how->has_colours)
        pen_text(v->o, sequence);
}
#define BOLD "\033[1m"
#define DIM "\033[2m"
#define PLAIN "\033[0m"

static void heading(const text_view *v, const char *text)
{
    pen_text(v->o, "\n");
    style(v, BOLD);
    pen_text(v->o, text);
    style(v, PLAIN);
    pen_text(v->o, "\n");
}

/* A line of column headings, or of something besides. */
static void columns(const text_view *v, const char *text)
{
    style(v, DIM);
    pen_text(v->o, text);
    style(v, PLAIN);
    pen_text(v->o, "\n");
}

static void put_time(const text_view *v, double ns)
{
    char text[CELLS_BYTES];
    length_show(ns, text);
    cells_right(v->o, text, TIME_COLUMNS);
}

static void put_count(const text_view *v, uint64_t count, unsigned width)
{
    char text[CELLS_BYTES];
    cells_count(count, text);
    cells_right(v->o, text, width);
}

static void put_percent(const text_view *v, uint64_t part, uint64_t whole)
{
    char text[CELLS_BYTES];
    cells_percent((double)part, (double)whole, text);
    cells_right(v->o, text, PERCENT_COLUMNS);
}

static unsigned put_name(const text_view *v, uint32_t index, unsigned width)
{
    if (index == REPORT_NONE)
        return cells_head(v->o, "(nothing below)", 15, width);
    return cells_name(v->o, v->m->methods[index].is->name, v->m->methods[index].is->name_bytes, width);
}

/* A name, and where it was defined when that fits besides. */
static void put_method(const text_view *v, uint32_t index, unsigned width)
{
    const catalog_method *is = v->m->methods[index].is;
    unsigned left = width - put_name(v, index, width);
    char line[CELLS_BYTES];
    unsigned line_columns = (unsigned)snprintf(line, sizeof line, ":%u", is->line);
    if (is->path_bytes == 0 || left < 2 + PATH_COLUMNS_MIN + line_columns)
        return;
    style(v, DIM);
    pen_text(v->o, "  ");
    cells_tail(v->o, is->path, is->path_bytes, left - 2 - line_columns);
    pen_text(v->o, line);
    style(v, PLAIN);
}

static void put_rest(const text_view *v, size_t shown, size_t all, const char *what)
{
    if (all <= shown)
        return;
    char text[CELLS_BYTES];
    cells_count(all - shown, text);
    style(v, DIM);
    pen_format(v->o, "  " CELLS_ELLIPSIS " and %s more%s", text, what);
    style(v, PLAIN);
    pen_text(v->o, "\n");
}

static unsigned rest_of(const text_view *v, unsigned used) { return v->width > used ? v->width - used : 1; }

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static bool has_counted_positions(const report_model *m)
{
    bool has = false;
    for (size_t i = 0; i < m->process_count && !has; i++)
        has = catalog_process_at(m->catalog, m->processes[i].id)->position_source == EV_POSITIONS_COUNTED;
    return has;
}

static void write_summary(const text_view *v)
{
    const report_model *m = v->m;
    char duration[CELLS_BYTES], events[CELLS_BYTES], text[CELLS_BYTES];
    length_show((double)(m->end_ns - m->begin_ns), duration);
    cells_count(m->event_count, events);
    style(v, BOLD);
    if (v->how->title) {
        cells_tail(v->o, v->how->title, strlen(v->how->title), v->width);
        pen_text(v->o, "\n");
    }
    style(v, PLAIN);
    pen_format(v->o, "%s, %s events, %zu process%s, %zu thread%s", duration, events, m->process_count,
               m->process_count == 1 ? "" : "es", m->thread_count, m->thread_count == 1 ? "" : "s");
    cells_count(m->dropped, text);
    if (m->dropped > 0)
        pen_format(v->o, "; %s events were dropped: figures are too low", text);
    cells_count(m->waited, text);
    if (m->waited > 0)
        pen_format(v->o, "; waited %s times for the recorder, within these times (--buffer)", text);
    pen_text(v->o, "\n");
    if (has_counted_positions(m))
        columns(v, "Stack positions were counted, as this Ruby lays out its frames in another way (rrtrace doctor):\n"
                   "calls that an exception or throw ended may be told to have lasted longer than they did.");
}

static void write_flat_line(const text_view *v, uint32_t index, bool by_total)
{
    const report_method *method = &v->m->methods[index];
    put_percent(v, by_total ? method->total_ns : method->self_ns, v->self_ns);
    pen_text(v->o, " ");
    put_time(v, (double)method->self_ns);
    pen_text(v->o, " ");
    put_time(v, (double)method->total_ns);
    pen_text(v->o, " ");
    put_count(v, method->calls, CALLS_COLUMNS);
    pen_text(v->o, " ");
    put_time(v, report_mean_ns(method));
    pen_text(v->o, " ");
    put_time(v, (double)method->max_ns);
    pen_text(v->o, "  ");
    put_method(v, index, rest_of(v, PERCENT_COLUMNS + 4 * (TIME_COLUMNS + 1) + CALLS_COLUMNS + 1 + 2));
    pen_text(v->o, "\n");
}

static int write_flat(const text_view *v, report_sort sort)
{
    static const char *const names[] = {"self time", "total time", "calls", "mean time", "longest call", "name"};
    report_order order;
    if (!report_order_methods(v->m, sort, &order))
        return -ENOMEM;
    char text[64];
    snprintf(text, sizeof text, "Methods by %s", names[sort]);
    heading(v, text);
    bool by_total = sort == REPORT_BY_TOTAL;
    columns(v, by_total ? "total%     self    total       calls     mean      max  method"
                        : " self%     self    total       calls     mean      max  method");
    for (size_t i = 0; i < order.count && i < v->top; i++)
        write_flat_line(v, order.items[i], by_total);
    put_rest(v, v->top, order.count, "");
    vec_free(&order);
    return 0;
}

static void write_arc(const text_view *v, const report_arc *arc, bool is_caller)
{
    put_time(v, (double)arc->total_ns);
    pen_text(v->o, " ");
    put_time(v, (double)arc->self_ns);
    pen_text(v->o, " ");
    put_count(v, arc->calls, CALLS_COLUMNS);
    pen_text(v->o, is_caller ? "   from " : "     to ");
    put_name(v, is_caller ? arc->caller : arc->callee, rest_of(v, 2 * (TIME_COLUMNS + 1) + CALLS_COLUMNS + 8));
    pen_text(v->o, "\n");
}

/* The callers or the callees of one method, most time first. */
static void write_arcs_of(const text_view *v, uint32_t method, const report_order *arcs, bool callers, size_t top)
{
    size_t count = 0;
    for (size_t i = 0; i < arcs->count; i++) {
        const report_arc *arc = &v->m->arcs[arcs->items[i]];
        if ((callers ? arc->callee : arc->caller) == method && count++ < top)
            write_arc(v, arc, callers);
    }
    put_rest(v, top, count, callers ? " callers" : " callees");
}

static int write_graph(const text_view *v)
{
    report_order methods, arcs = {0};
    bool ok = report_order_methods(v->m, v->how->is_sorted ? v->how->sort : REPORT_BY_TOTAL, &methods) &&
              report_order_arcs(v->m, &arcs);
    size_t top = v->how->top ? v->how->top : GRAPH_METHODS, arc_top = v->how->top ? v->how->top : GRAPH_ARCS;
    heading(v, "Callers and callees, with the time of just these calls");
    columns(v, "   total     self       calls  method");
    for (size_t i = 0; ok && i < methods.count && i < top; i++) {
        const report_method *method = &v->m->methods[methods.items[i]];
        write_arcs_of(v, methods.items[i], &arcs, true, arc_top);
        style(v, BOLD);
        put_time(v, (double)method->total_ns);
        pen_text(v->o, " ");
        put_time(v, (double)method->self_ns);
        pen_text(v->o, " ");
        put_count(v, method->calls, CALLS_COLUMNS);
        pen_text(v->o, "  ");
        style(v, PLAIN);
        put_method(v, methods.items[i], rest_of(v, 2 * (TIME_COLUMNS + 1) + CALLS_COLUMNS + 2));
        pen_text(v->o, "\n");
        write_arcs_of(v, methods.items[i], &arcs, false, arc_top);
        pen_text(v->o, i + 1 < methods.count && i + 1 < top ? "\n" : "");
    }
    if (ok)
        put_rest(v, top, methods.count, "");
    vec_free(&methods);
    vec_free(&arcs);
    return ok ? 0 : -ENOMEM;
}

static unsigned put_thread(const text_view *v, uint32_t id, unsigned width)
{
    char title[CATALOG_TITLE_BYTES];
    catalog_thread_title(v->m->catalog, id, title);
    return cells_head(v->o, title, strlen(title), width);
}

static void write_thread(const text_view *v, const report_thread *t, unsigned name_columns)
{
    uint64_t whole = t->gvl_ns[0] + t->gvl_ns[1] + t->gvl_ns[2];
    put_count(v, catalog_thread_at(v->m->catalog, t->id)->number, 4);
    pen_text(v->o, "  ");
    cells_spaces(v->o, name_columns - put_thread(v, t->id, name_columns));
    for (int state = SIM_GVL_RUNNING; state <= SIM_GVL_BLOCKED; state++) {
        pen_text(v->o, " ");
        put_time(v, (double)t->gvl_ns[state]);
        put_percent(v, t->gvl_ns[state], whole);
    }
    put_count(v, t->calls, CALLS_COLUMNS + 1);
    put_count(v, t->max_depth, 7);
    pen_text(v->o, "\n");
}

static void write_process_line(const text_view *v, uint32_t index)
{
    const catalog_process *is = catalog_process_at(v->m->catalog, v->m->processes[index].id);
    char text[48];
    unsigned used = (unsigned)snprintf(text, sizeof text, "process %u of %u: ", is->pid, is->ppid);
    pen_text(v->o, text);
    cells_head(v->o, is->command, strlen(is->command), rest_of(v, used));
    pen_text(v->o, "\n");
}

static void write_threads(const text_view *v)
{
    const report_model *m = v->m;
    const unsigned figures = 4 + 2 + 3 * (1 + TIME_COLUMNS + PERCENT_COLUMNS) + CALLS_COLUMNS + 1 + 7;
    unsigned name_columns = rest_of(v, figures);
    name_columns = name_columns < 10 ? 10 : name_columns > 24 ? 24 : name_columns;
    heading(v, "Threads");
    style(v, DIM);
    pen_text(v->o, "   #  name");
    cells_spaces(v->o, name_columns - 4);
    pen_text(v->o, "        running  waits for GVL        blocked       calls  depth\n");
    style(v, PLAIN);
    uint32_t process = REPORT_NONE;
    for (size_t i = 0; i < m->thread_count && i < v->top; i++) {
        if (m->threads[i].process != process && m->process_count > 1)
            write_process_line(v, m->threads[i].process);
        process = m->threads[i].process;
        write_thread(v, &m->threads[i], name_columns);
    }
    put_rest(v, v->top, m->thread_count, "");
}

static void write_gc(const text_view *v)
{
    const report_model *m = v->m;
    heading(v, "Garbage collection");
    columns(v, "     pid   pauses    total  share  longest  command");
    for (size_t i = 0; i < m->process_count && i < v->top; i++) {
        const report_process *p = &m->processes[i];
        const catalog_process *is = catalog_process_at(m->catalog, p->id);
        pen_format(v->o, "%8u ", is->pid); /* no commas in a name */
        put_count(v, p->gc_count, 8);
        pen_text(v->o, " ");
        put_time(v, (double)p->gc_total_ns);
        uint64_t begin_ns = p->begin_ns > m->begin_ns ? p->begin_ns : m->begin_ns, end_ns = p->end_ns < m->end_ns ? p->end_ns : m->end_ns;
        put_percent(v, p->gc_total_ns, end_ns > begin_ns ? end_ns - begin_ns : 0); /* of the process's time that was measured */
        pen_text(v->o, "  ");
        put_time(v, (double)p->gc_longest_ns);
        pen_text(v->o, "  ");
        cells_head(v->o, is->command, strlen(is->command), rest_of(v, 46));
        pen_text(v->o, "\n");
    }
    put_rest(v, v->top, m->process_count, "");
}

static void write_longest(const text_view *v)
{
    const report_model *m = v->m;
    heading(v, "Longest calls");
    columns(v, "      at     took  depth  thread            method");
    for (size_t i = 0; i < m->longest_count && i < v->top; i++) {
        const report_long_call *call = &m->longest[i];
        put_time(v, (double)(call->begin_ns - m->origin_ns));
        pen_text(v->o, " ");
        put_time(v, (double)call->duration_ns);
        put_count(v, call->depth, 7);
        pen_text(v->o, "  ");
        cells_spaces(v->o, 17 - put_thread(v, call->thread, 16));
        pen_text(v->o, call->is_open ? "*" : " ");
        put_method(v, call->method, rest_of(v, 2 * TIME_COLUMNS + 1 + 7 + 2 + 18));
        pen_text(v->o, "\n");
    }
    bool some_open = false;
    for (size_t i = 0; i < m->longest_count && i < v->top; i++)
        some_open |= m->longest[i].is_open;
    if (some_open)
        columns(v, "  * had not ended");
}

static void write_own_line(const text_view *v, const own_name *own)
{
    put_count(v, own->count, CALLS_COLUMNS);
    pen_text(v->o, " ");
    if (own->is_mark) {
        cells_spaces(v->o, 3 * TIME_COLUMNS + 2);
    } else {
        put_time(v, (double)own->total_ns);
        pen_text(v->o, " ");
        put_time(v, (double)own->total_ns / (double)own->part_count);
        pen_text(v->o, " ");
        put_time(v, (double)own->max_ns);
    }
    pen_text(v->o, own->is_mark ? "  mark " : own->some_open ? "  span*" : "  span ");
    pen_text(v->o, " ");
    cells_head(v->o, own->text, strlen(own->text), rest_of(v, CALLS_COLUMNS + 3 * (TIME_COLUMNS + 1) + 8));
    pen_text(v->o, "\n");
}

static int write_own(const text_view *v)
{
    const report_model *m = v->m;
    report_order order;
    bool some_open = false;
    if (m->own_count == 0 && !v->how->tables) /* most programs have none */
        return 0;
    if (!report_order_own(m, &order))
        return -ENOMEM;
    heading(v, "The program's own spans and marks");
    columns(v, "      count    total     mean      max        name");
    for (size_t i = 0; i < order.count && i < v->top; i++) {
        write_own_line(v, &m->own[order.items[i]]);
        some_open |= m->own[order.items[i]].some_open;
    }
    put_rest(v, v->top, order.count, "");
    if (order.count == 0)
        columns(v, "  none: Rrtrace.span and Rrtrace.mark make them");
    if (some_open)
        columns(v, "  * some had not ended");
    vec_free(&order);
    return 0;
}

int report_write_text(const report_model *m, const report_layout *how, pen *o)
{
    uint32_t tables = how->tables ? how->tables : REPORT_ALL;
    text_view v = {.m = m, .how = how, .o = o, .width = how->width > WIDTH_MIN ? how->width : WIDTH_MIN};
    v.top = how->top ? how->top : REPORT_TOP_DEFAULT;
    for (size_t i = 0; i < m->method_count; i++)
        v.self_ns += m->methods[i].self_ns;
    int error = 0;
    write_summary(&v);
    if (tables & REPORT_METHODS) {
        error = write_flat(&v, how->is_sorted ? how->sort : REPORT_BY_SELF);
        if (!error && !how->is_sorted)
            error = write_flat(&v, REPORT_BY_TOTAL);
    }
    if (!error && (tables & REPORT_ARCS))
        error = write_graph(&v);
    if (tables & REPORT_THREADS)
        write_threads(&v);
    if (tables & REPORT_GC)
        write_gc(&v);
    if (tables & REPORT_SPANS)
        write_longest(&v);
    if (!error && (tables & REPORT_MARKS))
        error = write_own(&v);
    return error;
}
