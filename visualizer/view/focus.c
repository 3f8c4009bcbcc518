#include "view/focus.h"

#include "base/mem.h"
#include "view/palette.h"

#include <string.h>

#define NOT_FOUND_SHARE 0.26f /* of its colour, what does not match the search keeps */
#define ASIDE_SHARE 0.58f     /* … and what is not the selected method: still to be read */
#define LIT_SHARE 0.42f       /* of white */

void focus_free(focus *f)
{
    for (size_t i = 0; i < f->methods.count; i++)
        vec_free(&f->methods.items[i]);
    vec_free(&f->methods);
    vec_free(&f->threads);
}

void focus_update(focus *f, const catalog *c)
{
    enum { THREADS_ANEW = 32 }; /* frames: threads may be named late */
    f->catalog = c;
    bool is_other_find = f->find->generation != f->seen_generation;
    if (is_other_find || f->thread_age++ >= THREADS_ANEW) {
        if (f->threads.count > 0)
            memset(f->threads.items, 0, f->threads.count);
        f->thread_age = 0;
    }
    if (!is_other_find && focus_is_one(f->hovered, f->seen_hovered) && focus_is_one(f->selected, f->seen_selected))
        return;
    for (size_t i = 0; i < f->methods.count; i++)
        if (f->methods.items[i].count > 0)
            memset(f->methods.items[i].items, 0, f->methods.items[i].count);
    f->seen_generation = f->find->generation;
    f->seen_hovered = f->hovered;
    f->seen_selected = f->selected;
}

bool focus_same(const catalog *c, focus_method a, focus_method b)
{
    if (a.process == CATALOG_NONE || b.process == CATALOG_NONE)
        return false;
    if (focus_is_one(a, b))
        return true;
    if (a.process == b.process)
        return false; /* numbers of a process are of different methods */
    const catalog_method *x = catalog_method_of(c, a.process, a.number), *y = catalog_method_of(c, b.process, b.number);
    return x->hash == y->hash && x->kind == y->kind && x->line == y->line && x->name_bytes == y->name_bytes &&
           x->path_bytes == y->path_bytes && memcmp(x->name, y->name, x->name_bytes) == 0 && memcmp(x->path, y->path, x->path_bytes) == 0;
}

static uint8_t judge(focus *f, uint32_t process, uint32_t number)
{
    focus_method m = {process, number};
    uint8_t verdict = FOCUS_KNOWN;
    if (focus_same(f->catalog, m, f->selected))
        verdict |= FOCUS_SELECTED;
    if (focus_same(f->catalog, m, f->hovered))
        verdict |= FOCUS_HOVERED;
    if (f->find->is_active && find_method(f->find, catalog_method_of(f->catalog, process, number)))
        verdict |= FOCUS_FOUND;
    return verdict;
}

/* The byte at index; NULL: memory is out. */
static uint8_t *byte_at(focus_bytes *bytes, size_t index) { return vec_cover(bytes, index + 1) ? &bytes->items[index] : NULL; }

uint8_t focus_verdict(focus *f, uint32_t process, uint32_t number)
{
    while (f->methods.count <= process) {
        focus_bytes *fresh = vec_push(&f->methods);
        if (!fresh)
            return judge(f, process, number);
        *fresh = (focus_bytes){0};
    }
    uint8_t *verdict = byte_at(&f->methods.items[process], number);
    if (!verdict)
        return judge(f, process, number);
    if (*verdict == 0)
        *verdict = judge(f, process, number);
    return *verdict;
}

bool focus_thread(focus *f, uint32_t thread)
{
    uint8_t *verdict = byte_at(&f->threads, thread);
    if (!verdict)
        return find_thread(f->find, f->catalog, thread);
    if (*verdict == 0)
        *verdict = find_thread(f->find, f->catalog, thread) ? 2 : 1;
    return *verdict == 2;
}

bool focus_found(focus *f, uint32_t process, uint32_t method, uint32_t thread, uint64_t ns)
{
    return focus_verdict(f, process, method) & FOCUS_FOUND && focus_thread(f, thread) && find_duration(f->find, ns);
}

uint32_t focus_color(focus *f, uint32_t color, uint32_t process, uint32_t method, uint32_t thread, uint64_t longest_ns)
{
    bool has_selection = f->selected.process != CATALOG_NONE;
    if (!has_selection && f->hovered.process == CATALOG_NONE && !f->find->is_active)
        return color;
    if (f->find->is_active && !focus_found(f, process, method, thread, longest_ns))
        return palette_mix(PALETTE_BACKGROUND, color, NOT_FOUND_SHARE);
    if (focus_verdict(f, process, method) & (FOCUS_SELECTED | FOCUS_HOVERED))
        return palette_mix(color, 0xffffffffu, LIT_SHARE);
    return has_selection ? palette_mix(PALETTE_BACKGROUND, color, ASIDE_SHARE) : color;
}

bool focus_is_call(const focus *f, uint32_t track, uint32_t depth, uint64_t begin_ns)
{
    return f->call.is_set && f->call.track == track && f->call.depth == depth && f->call.begin_ns == begin_ns;
}

bool focus_is_span(const focus *f, uint32_t process, uint32_t id, uint64_t begin_ns)
{
    return f->span.is_set && f->span.process == process && f->span.id == id && f->span.begin_ns == begin_ns;
}
