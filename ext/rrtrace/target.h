/* target.h - hooks in the code of chosen methods alone, so that all other methods run as if nothing were traced.
 * For:     capture.c (switches it on and off), frames.c (verifies it).
 * Idea:    CRuby lets a piece of code (an iseq) have hooks of its own: targeted TracePoints. We hang our own hook there by
 *          hand (see below), on every iseq that could be a wanted method when it is compiled, and on all that exist at the
 *          start. Which class a method belongs to shows at its first call. If it is not wanted, the hook is taken off
 *          again, and the instructions are put back to their plain form; from then on the method costs nothing.
 *
 *          One iseq may be several methods, so the hook stays and tells by the name at each call where the code around a
 *          `def` has run twice (a block that is evaluated in several classes), where a block that runs inside other code
 *          has become a method, where the class may still get a name, and where the method would be wanted as Foo.x rather
 *          than Foo#x (module_function).
 *
 *          By hand, because TracePoint#enable takes one target a TracePoint (a kilobyte each), reaches into all code below,
 *          and makes YJIT walk the heap each time: 50,000 methods would take minutes. Where the VM's memory is not as vm.h
 *          says, the hooks are those of a whole trace, and what is not wanted is left out there.
 * Use:     target_verify; target_start once a ring is there, target_stop when it goes; target_on_event is the hook for the
 *          rest.
 * Memory:  some 250 bytes for each piece of code that has a hook, in a T_DATA that lives as long as the code.
 * Threads: GVL held. Once there is a second Ractor no hook is taken off any more while tracing goes on, as the other may be
 *          in it; nor in a session that began beside one, until a session has begun without.
 */
#ifndef RRTRACE_EXT_TARGET_H
#define RRTRACE_EXT_TARGET_H

#include "vm.h"

#include <stdbool.h>

/* Once a process: is code laid out as vm.h says? readable: can these bytes be read? May allocate. */
bool target_verify(bool (*readable)(const void *address, size_t bytes));

void target_start(void); /* hooks into all code that there is */
void target_stop(void);  /* and out of it again */

/* If something interrupted the program in target_start: now. For who called it from Ruby, as the last act. */
void target_raise_held_back(void);

/* What must still be heard of everywhere: newly compiled code, and rescues, which are as rare. */
#define TARGET_EVENTS (RUBY_EVENT_SCRIPT_COMPILED | RUBY_EVENT_RESCUE)
void target_on_event(VALUE data, const rb_trace_arg_t *arg);

void target_fix_lock_in_child(void); /* of a fork; async-signal-safe */

#endif
