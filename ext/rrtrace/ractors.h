/* ractors.h - a stream for each Ractor beyond the main one.
 * For:     capture.c (thread events), join.c (all streams of a session), place.c, methods.c (what the GC must mark), rrtrace.c.
 * Idea:    CRuby keeps event hooks in a list per Ractor, and its own functions add to the current Ractor's only. So our
 *          hooks are put into a new Ractor's list by hand, when the thread event says that its first thread runs and
 *          before any of its code does: that thread has the Ractor's GVL, so nobody else looks at the list. Where the
 *          VM's memory is not as we know it (frames_known.ractors_ok), a Ractor asks for hooks itself: ractors_attach.
 *          The ring comes later, at the first event, as making one may take a millisecond.
 * Memory:  streams are taken from a list that only grows, and given back when their Ractor ends: who comes too late finds a
 *          stream that is off, never freed memory. Two malloc'ed hooks a stream; when the Ractor ends they make room in its list
 *          for two that live for ever: a list without hooks would switch off all events of the process (Ruby bug 19112).
 * Threads: as each function says.
 */
#ifndef RRTRACE_EXT_RACTORS_H
#define RRTRACE_EXT_RACTORS_H

#include "capture.h"

void ractors_prepare(void);              /* once a process, in the main Ractor, before any hook */
void ractors_begin(const stream *root);  /* of each session, in the Ractor of root, its first stream */

/* The first stream of the list, for loops: s = s->next. Any thread. */
stream *ractors_first(void);

/* For loops over all streams, in use or not, from &capture_main on: the list follows that. Any thread. */
static inline stream *ractors_next(const stream *s) { return s == &capture_main ? ractors_first() : s->next; }

/* Of a thread event: the stream of the thread's Ractor, or NULL when it has none. Any thread, GVL or not. */
stream *ractors_stream_of(VALUE thread);

/* The stream of the Ractor that the calling thread is in, or NULL when it has none. GVL held. */
stream *ractors_current(void);

/* RESUMED: thread runs. As ractors_stream_of, but when its Ractor has no stream, make one. The Ractor's GVL is held, but perhaps
 * the scheduler's lock, too: no Ruby function is called. NULL when it can't be done from outside. */
stream *ractors_adopt(VALUE thread);

/* GVL held: hook the current Ractor, which has no stream. NULL: no memory. May raise NoMemoryError. */
stream *ractors_attach(void);

/* The Ractor's main thread has ended: its stream is free for another one. The ring is gone already. */
void ractors_release(stream *s);

/* A forked child, GVL held: of all Ractors only that of s is left (none, when it is the main one's). */
void ractors_forget_others(stream *s);
void ractors_fix_lock_in_child(void); /* async-signal-safe */

VALUE ractors_name(const stream *s); /* a String or nil. GVL of the Ractor held, in a hook */

#endif
