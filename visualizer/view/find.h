/* view/find.h - the line in which the user says what to look for, and what matches it.
 * For:     inspect.c; focus.c asks it for each new method.
 * Idea:    words are filters or parts of a name; all must match.
 *
 *            Relation#load            a part of the qualified name; capitals count only when there are some
 *            /query|load/i            a regular expression, regex(7)
 *            thread:puma              a part of the thread's name, or its number      process:4711 a part of the command, or pid
 *            dur>1ms  dur<20us        a call's length: ns, us, ms, s
 * Use:     find_open; find_insert, find_key as they come; find_close or find_clear. find_method …, for what is drawn.
 * Memory:  fixed; a compiled expression.
 * Threads: one.
 */
#ifndef RRTRACE_VIEW_FIND_H
#define RRTRACE_VIEW_FIND_H

#include "base/pattern.h"
#include "sim/catalog.h"
#include "view/view.h"

#define FIND_BYTES 256u
#define FIND_PARTS 8u

typedef struct find {
    char text[FIND_BYTES]; /* as typed */
    size_t bytes, cursor;
    bool is_open;   /* the line takes the keys */
    bool is_active; /* there is something to look for */
    uint32_t generation; /* another one: what matches is another */
    char error[80]; /* what is wrong with the text; "": nothing */
    /* What the text says. */
    char words[FIND_BYTES];
    const char *parts[FIND_PARTS], *threads[FIND_PARTS], *processes[FIND_PARTS]; /* in words */
    size_t part_count, thread_count, process_count;
    pattern regex;
    char regex_text[FIND_BYTES]; /* what regex borrows */
    bool has_regex;
    uint64_t least_ns, most_ns;
} find;

void find_init(find *f);
void find_free(find *f);
void find_open(find *f);
void find_close(find *f); /* the line; what it says stays in force */
void find_clear(find *f); /* all of it */
void find_set(find *f, const char *text);
void find_insert(find *f, const char *utf8);
bool find_key(find *f, view_key key, uint32_t modifiers); /* editing keys; true: it was one */

/* Does it say anything, right or wrong, or is it open? Then it is drawn, and Esc clears it. */
static inline bool find_is_shown(const find *f) { return f->is_open || f->is_active || f->error[0]; }

bool find_method(const find *f, const catalog_method *m);
bool find_thread(const find *f, const catalog *c, uint32_t thread);   /* by name, number and process */
bool find_duration(const find *f, uint64_t ns);

#endif
