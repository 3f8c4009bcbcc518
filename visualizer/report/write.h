/* report/write.h - a report as tables for people, as JSON for programs, as CSV for spreadsheets.
 * For:     app/command_report.c.
 * Use:     report_write_text, report_write_json or report_write_csv with a pen; then pen_finish tells of trouble.
 * Memory:  an array of indices while a table is written. -ENOMEM comes from the call itself.
 * Threads: one at a time.
 * Formats: JSON as in report/json.c; CSV as RFC 4180, one table, with a line of headings. Both are valid UTF-8 whatever the
 *          names hold (base/pen.h). Times are whole nanoseconds there; begin times count from the recording's first event.
 */
#ifndef RRTRACE_REPORT_WRITE_H
#define RRTRACE_REPORT_WRITE_H

#include "base/pen.h"
#include "base/vec.h"
#include "report/report.h"

typedef enum report_sort {
    REPORT_BY_SELF = 0,
    REPORT_BY_TOTAL,
    REPORT_BY_CALLS,
    REPORT_BY_MEAN, /* time of a call */
    REPORT_BY_MAX,
    REPORT_BY_NAME,
} report_sort;

/* Bits of report_layout.tables. */
enum {
    REPORT_METHODS = 1,
    REPORT_ARCS = 2,
    REPORT_THREADS = 4,
    REPORT_GC = 8,
    REPORT_SPANS = 16,
    REPORT_MARKS = 32,
    REPORT_ALL = 63,
};

typedef struct report_layout {
    const char *title;    /* text: what was read */
    uint32_t tables;      /* REPORT_…; 0: all; CSV: one */
    report_sort sort;
    bool is_sorted;       /* text: one flat profile by sort, not one by self and one by total */
    size_t top;           /* lines a table at most; 0: text REPORT_TOP_DEFAULT, else all */
    unsigned width;       /* text: columns */
    bool has_colours;     /* text: escape sequences */
} report_layout;

#define REPORT_TOP_DEFAULT 20u

int report_write_text(const report_model *m, const report_layout *how, pen *o); /* 0 or -ENOMEM */
int report_write_json(const report_model *m, const report_layout *how, pen *o);
int report_write_csv(const report_model *m, const report_layout *how, pen *o);

/* ---- for the writers --------------------------------------------------------------------------------------------- */

typedef VEC(uint32_t) report_order;

/* Indices of the methods that are shown, in order; likewise of arcs, by total time. vec_free them. False: memory is out. */
bool report_order_methods(const report_model *m, report_sort sort, report_order *out);
bool report_order_arcs(const report_model *m, report_order *out);
bool report_order_own(const report_model *m, report_order *out); /* spans by total time, then marks by their number */
const char *report_kind_name(uint32_t kind); /* of EV_METHOD_… */
double report_mean_ns(const report_method *method);

#endif
