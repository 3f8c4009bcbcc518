#include "history/notes.h"

#include "base/mem.h"
#include "base/vec.h"
#include "wire/event.h"

#include <errno.h>
#include <string.h>

#define DROPPED_AT_ONCE (NOTES_MAX / 8) /* so that pushing out the oldest does not move the list each time */

struct notes {
    VEC(notes_mark) marks;
    VEC(notes_span) spans;
};

int notes_new(notes **out)
{
    *out = mem_zalloc(1, sizeof **out);
    return *out ? 0 : -ENOMEM;
}

void notes_delete(notes *n)
{
    if (!n)
        return;
    vec_free(&n->marks);
    vec_free(&n->spans);
    mem_free(n);
}

static void make_room(notes *n)
{
    if (n->marks.count >= NOTES_MAX) {
        n->marks.count -= DROPPED_AT_ONCE;
        memmove(n->marks.items, n->marks.items + DROPPED_AT_ONCE, n->marks.count * sizeof *n->marks.items);
    }
    if (n->spans.count >= NOTES_MAX) {
        n->spans.count -= DROPPED_AT_ONCE;
        memmove(n->spans.items, n->spans.items + DROPPED_AT_ONCE, n->spans.count * sizeof *n->spans.items);
    }
}

/* The newest of that number: they may be used again. */
static void end_span(notes *n, const sim_note *note)
{
    for (size_t i = n->spans.count; i-- > 0;) {
        notes_span *s = &n->spans.items[i];
        if (s->end_ns != UINT64_MAX || s->process != note->process || s->id != note->span)
            continue;
        s->end_ns = note->at_ns > s->begin_ns ? note->at_ns : s->begin_ns;
        return;
    }
}

void notes_take(notes *n, const sim_note *note)
{
    make_room(n);
    if (note->kind == EV_MARK) {
        notes_mark *mark = vec_push(&n->marks);
        if (mark)
            *mark = (notes_mark){note->at_ns, note->process, note->thread, note->string};
    } else if (note->kind == EV_SPAN_BEGIN) {
        notes_span *span = vec_push(&n->spans);
        if (span)
            *span = (notes_span){note->at_ns, UINT64_MAX, note->process, note->thread, note->string, note->span};
    } else if (note->kind == EV_SPAN_END) {
        end_span(n, note);
    }
}

void notes_end_process(notes *n, uint32_t process, uint64_t now_ns)
{
    for (size_t i = 0; i < n->spans.count; i++) {
        notes_span *s = &n->spans.items[i];
        if (s->process == process && s->end_ns == UINT64_MAX)
            s->end_ns = now_ns > s->begin_ns ? now_ns : s->begin_ns;
    }
}

const notes_mark *notes_marks(const notes *n, size_t *count)
{
    *count = n->marks.count;
    return n->marks.items;
}

const notes_span *notes_spans(const notes *n, size_t *count)
{
    *count = n->spans.count;
    return n->spans.items;
}
