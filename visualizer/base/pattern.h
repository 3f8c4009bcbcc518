/* base/pattern.h - does a name match what a user has typed: a part of it, or /a regular expression/?
 * For:     report/: --method and --thread; view/find.c.
 * Use:     pattern_init; pattern_matches; pattern_free.
 * Memory:  a compiled expression; the text is borrowed.
 * Threads: one at a time.
 * Source:  POSIX extended regular expressions, regex(7), with what wire/expression.h knows of Ruby's; /…/i ignores case. Names are
 *          matched as bytes.
 */
#ifndef RRTRACE_BASE_PATTERN_H
#define RRTRACE_BASE_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct pattern {
    const char *text; /* borrowed; NULL: everything matches */
    bool is_regex;
    regex_t regex;
} pattern;

/* text NULL: matches everything. 0, -EINVAL with a line about the expression in error, or -ENOMEM. */
int pattern_init(pattern *p, const char *text, char *error, size_t error_bytes);
void pattern_free(pattern *p); /* also after a failed init, or twice */
bool pattern_matches(const pattern *p, const char *name, size_t name_bytes); /* name[name_bytes] must be NUL */

#endif
