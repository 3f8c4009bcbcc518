/* base/name.h - the shorter forms of a method's qualified name.
 * For:     view/label.h and report/cells.h, where names must fit.
 * Idea:    the method's own name says most, its outermost module least: ActiveRecord::Base.find, …Base.find, find.
 * Use:     name_form with n = 0, 1, 2, … until a form fits, or there is none left.
 * Threads: any; values only.
 */
#ifndef RRTRACE_BASE_NAME_H
#define RRTRACE_BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Form number n of a name: 0 the whole, then without more and more outer modules, last the method alone. False: there is
 * no such form. *begin: offset of what is left; *is_cut: an ellipsis belongs before it. */
bool name_form(const char *name, size_t name_bytes, unsigned n, size_t *begin, bool *is_cut);

#endif
