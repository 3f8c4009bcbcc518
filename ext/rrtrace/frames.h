/* frames.h - is the VM's memory as vm.h says, and which frames are open already?
 * For:     join.c (verify), capture.c (FRAME events when a fiber is seen for the first time).
 * Threads: GVL held.
 */
#ifndef RRTRACE_EXT_FRAMES_H
#define RRTRACE_EXT_FRAMES_H

#include "vm.h"

#include <stdbool.h>

typedef enum frames_level { FRAMES_UNCHECKED = 0, FRAMES_CHECKED_QUIETLY, FRAMES_CHECKED } frames_level;

typedef struct frames_facts {
    frames_level checked;
    bool positions_ok; /* the hook's argument is as we know it */
    bool frames_ok;    /* the control frames are too: open frames can be told, methods known by their entries */
    bool ractors_ok;   /* and threads, Ractors and lists of hooks: a new Ractor can be hooked before it runs */
    bool code_checked;
    bool code_ok;      /* and code: its own hooks can be hung up by hand */
    size_t frame_bytes;
} frames_facts;

struct stream;

extern frames_facts frames_known;

/* Once a process, in the main Ractor; may allocate. is_quiet: without a hook on all calls, after which CRuby keeps all code ready for
 * such hooks, and YJIT compiles none of it; so what C methods' events look like remains to be seen. */
void frames_verify(bool is_quiet);
void frames_verify_code(void); /* quietly, code_ok as well */

/* Push FRAME for every method frame open under arg, outermost first. The frame that arg itself announces is left out. */
void frames_push_open(struct stream *s, rb_trace_arg_t *arg);

#endif
