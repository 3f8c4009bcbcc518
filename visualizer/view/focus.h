/* view/focus.h - what stands out in the picture: the method under the pointer, the selected one, what is looked for.
 * For:     scene.c asks for each box's colour; inspect.c says what is in focus.
 * Idea:    each method is judged once and the verdict kept in a byte, until something else is in focus. So a box costs a load.
 * Use:     focus_update before the scene is built; focus_color in it.
 * Memory:  a byte for each method and thread of the catalog.
 * Threads: one; under the model lock.
 */
#ifndef RRTRACE_VIEW_FOCUS_H
#define RRTRACE_VIEW_FOCUS_H

#include "base/vec.h"
#include "sim/catalog.h"
#include "view/find.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct focus_method { /* catalog_method_of's two numbers; process CATALOG_NONE: no method */
    uint32_t process, number;
} focus_method;
#define FOCUS_NOTHING ((focus_method){CATALOG_NONE, 0})

typedef VEC(uint8_t) focus_bytes;

enum { FOCUS_KNOWN = 1, FOCUS_SELECTED = 2, FOCUS_HOVERED = 4, FOCUS_FOUND = 8 };

typedef struct focus_call { /* one call that the user has pointed at */
    uint64_t begin_ns, end_ns; /* end: as far as was known then */
    uint32_t track, depth, thread, process;
    bool is_set, is_open;
} focus_call;

typedef struct focus_span { /* one of the program's own spans, that the user has clicked */
    uint64_t begin_ns, end_ns;
    uint32_t process, thread, string, id;
    bool is_set;
} focus_span;

typedef struct focus {
    focus_method hovered, selected;
    focus_call call;
    focus_span span;
    const find *find; /* borrowed */
    const catalog *catalog; /* borrowed, until the next focus_update */
    VEC(focus_bytes) methods; /* by process, by number */
    focus_bytes threads;      /* by id */
    focus_method seen_hovered, seen_selected; /* what the verdicts are about */
    uint32_t seen_generation;
    uint32_t thread_age;
} focus;

void focus_free(focus *f);
void focus_update(focus *f, const catalog *c);

static inline bool focus_is_one(focus_method a, focus_method b) { return a.process == b.process && a.number == b.number; }
bool focus_same(const catalog *c, focus_method a, focus_method b); /* the same name, place and kind, also in another process */
uint8_t focus_verdict(focus *f, uint32_t process, uint32_t method);
bool focus_thread(focus *f, uint32_t thread); /* do the filters let it through? */
/* Is a call of that length looked for? Asked only while find.is_active. */
bool focus_found(focus *f, uint32_t process, uint32_t method, uint32_t thread, uint64_t ns);

/* The colour of a call's box. */
uint32_t focus_color(focus *f, uint32_t color, uint32_t process, uint32_t method, uint32_t thread, uint64_t longest_ns);
bool focus_is_span(const focus *f, uint32_t process, uint32_t id, uint64_t begin_ns);
bool focus_is_call(const focus *f, uint32_t track, uint32_t depth, uint64_t begin_ns);

#endif
