/* report/cells.h - what stands in a table's cells: names that fit, counts that line up.
 * For:     text.c.
 * Idea:    columns are counted as a terminal shows them: wide characters take two, and what a terminal would obey, or
 *          what is not valid UTF-8, is shown as \xNN. So no name can upset a table, or the terminal.
 * Threads: any; values only.
 */
#ifndef RRTRACE_REPORT_CELLS_H
#define RRTRACE_REPORT_CELLS_H

#include "base/pen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CELLS_BYTES 32u /* of the texts below */
#define CELLS_ELLIPSIS "\xE2\x80\xA6"

unsigned cells_width(const char *text, size_t bytes); /* columns */
void cells_spaces(pen *o, unsigned count);
void cells_right(pen *o, const char *text, unsigned width); /* spaces, then text */
/* A method's name in its longest form that fits: outer modules go first, then its end is cut. Returns its columns. */
unsigned cells_name(pen *o, const char *name, size_t bytes, unsigned width);
/* The last part of a text that fits, behind an ellipsis when something is missing: for paths. Returns its columns. */
unsigned cells_tail(pen *o, const char *text, size_t bytes, unsigned width);
/* The first part, likewise. */
unsigned cells_head(pen *o, const char *text, size_t bytes, unsigned width);

void cells_count(uint64_t count, char *out); /* "12,345,678" */
void cells_percent(double part, double whole, char *out); /* "12.3%"; "" when whole is 0 */

#endif
