#include "report/write.h"

#include <stdlib.h>
#include <string.h>

typedef struct sorting {
    const report_model *model;
    report_sort sort;
} sorting;

const char *report_kind_name(uint32_t kind)
{
    return kind == EV_METHOD_C ? "c" : kind == EV_METHOD_BLOCK ? "block" : "ruby";
}

double report_mean_ns(const report_method *method)
{
    return method->activations ? (double)method->sum_ns / (double)method->activations : 0;
}

static double key_of(const report_method *m, report_sort sort)
{
    switch (sort) {
    case REPORT_BY_TOTAL: return (double)m->total_ns;
    case REPORT_BY_CALLS: return (double)m->calls;
    case REPORT_BY_MEAN: return report_mean_ns(m);
    case REPORT_BY_MAX: return (double)m->max_ns;
    case REPORT_BY_NAME: return 0;
    case REPORT_BY_SELF: break;
    }
    return (double)m->self_ns;
}

static int by_name(const catalog_method *a, const catalog_method *b)
{
    size_t shorter = a->name_bytes < b->name_bytes ? a->name_bytes : b->name_bytes;
    int order = memcmp(a->name, b->name, shorter);
    return order ? order : a->name_bytes < b->name_bytes ? -1 : a->name_bytes > b->name_bytes;
}

/* The largest first; equal ones by name, and then as they came, so that a report reads the same every time. */
static int compare_methods(const void *a, const void *b, void *context)
{
    const sorting *s = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const report_method *x = &s->model->methods[i], *y = &s->model->methods[k];
    double left = key_of(x, s->sort), right = key_of(y, s->sort);
    if (left != right)
        return left > right ? -1 : 1;
    int order = by_name(x->is, y->is);
    return order ? order : i < k ? -1 : 1;
}

bool report_order_methods(const report_model *m, report_sort sort, report_order *out)
{
    *out = (report_order){0};
    if (!vec_reserve(out, m->method_count + 1))
        return false;
    for (size_t i = 0; i < m->method_count; i++)
        if (m->methods[i].is_shown && m->methods[i].activations > 0)
            out->items[out->count++] = (uint32_t)i;
    qsort_r(out->items, out->count, sizeof *out->items, compare_methods, &(sorting){m, sort});
    return true;
}

static int compare_own(const void *a, const void *b, void *context)
{
    const report_model *m = context;
    const own_name *x = &m->own[*(const uint32_t *)a], *y = &m->own[*(const uint32_t *)b];
    uint64_t left = x->is_mark ? x->count : x->total_ns, right = y->is_mark ? y->count : y->total_ns;
    if (x->is_mark != y->is_mark)
        return x->is_mark ? 1 : -1;
    return left != right ? (left > right ? -1 : 1) : strcmp(x->text, y->text);
}

bool report_order_own(const report_model *m, report_order *out)
{
    *out = (report_order){0};
    if (!vec_reserve(out, m->own_count + 1))
        return false;
    for (size_t i = 0; i < m->own_count; i++)
        out->items[out->count++] = (uint32_t)i;
    qsort_r(out->items, out->count, sizeof *out->items, compare_own, (void *)(uintptr_t)m);
    return true;
}

static int compare_arcs(const void *a, const void *b, void *context)
{
    const report_model *m = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const report_arc *x = &m->arcs[i], *y = &m->arcs[k];
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return i < k ? -1 : 1;
}

bool report_order_arcs(const report_model *m, report_order *out)
{
    *out = (report_order){0};
    if (!vec_reserve(out, m->arc_count + 1))
        return false;
    for (size_t i = 0; i < m->arc_count; i++) {
        const report_arc *arc = &m->arcs[i];
        bool is_shown = m->methods[arc->callee].is_shown || (arc->caller != REPORT_NONE && m->methods[arc->caller].is_shown);
        if (is_shown && arc->activations > 0)
            out->items[out->count++] = (uint32_t)i;
    }
    qsort_r(out->items, out->count, sizeof *out->items, compare_arcs, (void *)(uintptr_t)m);
    return true;
}
