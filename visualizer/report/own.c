#include "report/own.h"

#include "base/hash.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>

void own_free(own_sums *o)
{
    vec_free(&o->names);
    vec_free(&o->open);
    map_free(&o->ids);
}

/* NULL: memory is out. */
static own_name *name_of(own_sums *o, const char *text, bool is_mark)
{
    for (uint64_t key = hash_bytes(HASH_BEGIN ^ is_mark, text, strlen(text));; key++) {
        uint32_t id = map_get(&o->ids, key);
        if (id != MAP_NONE && o->names.items[id].is_mark == is_mark && strcmp(o->names.items[id].text, text) == 0)
            return &o->names.items[id];
        if (id != MAP_NONE)
            continue;
        if (!vec_reserve(&o->names, o->names.count + 1) || map_put(&o->ids, key, (uint32_t)o->names.count) != 0)
            return NULL;
        o->names.items[o->names.count] = (own_name){.text = text, .is_mark = is_mark, .min_ns = UINT64_MAX};
        return &o->names.items[o->names.count++];
    }
}

static bool is_measured(const own_sums *o, uint64_t at_ns) { return at_ns >= o->from_ns && at_ns < o->to_ns; }

int own_begin(own_sums *o, uint32_t process, uint32_t id, const char *text, uint64_t at_ns)
{
    own_span *span = vec_push(&o->open);
    if (!span)
        return -ENOMEM;
    *span = (own_span){at_ns, process, id, text};
    return 0;
}

int own_mark(own_sums *o, const char *text, uint64_t at_ns)
{
    if (!is_measured(o, at_ns))
        return 0;
    own_name *name = name_of(o, text, true);
    if (!name)
        return -ENOMEM;
    name->count++;
    return 0;
}

/* A span's time, as far as it is measured. */
static int count(own_sums *o, const own_span *span, uint64_t end_ns, bool is_open)
{
    uint64_t from_ns = span->begin_ns > o->from_ns ? span->begin_ns : o->from_ns, to_ns = end_ns < o->to_ns ? end_ns : o->to_ns;
    bool has_begun = is_measured(o, span->begin_ns);
    if (!has_begun && from_ns >= to_ns)
        return 0;
    own_name *name = name_of(o, span->text, false);
    if (!name)
        return -ENOMEM;
    uint64_t length_ns = to_ns > from_ns ? to_ns - from_ns : 0;
    name->count += has_begun;
    name->part_count++;
    name->some_open |= is_open;
    name->total_ns += length_ns;
    name->min_ns = length_ns < name->min_ns ? length_ns : name->min_ns;
    name->max_ns = length_ns > name->max_ns ? length_ns : name->max_ns;
    return 0;
}

static int close_at(own_sums *o, size_t i, uint64_t at_ns, bool is_open)
{
    own_span span = o->open.items[i];
    memmove(o->open.items + i, o->open.items + i + 1, (--o->open.count - i) * sizeof span);
    return count(o, &span, at_ns, is_open);
}

int own_end(own_sums *o, uint32_t process, uint32_t id, uint64_t at_ns)
{
    for (size_t i = o->open.count; i-- > 0;)
        if (o->open.items[i].process == process && o->open.items[i].id == id)
            return close_at(o, i, at_ns, false);
    return 0;
}

int own_end_process(own_sums *o, uint32_t process, uint64_t at_ns)
{
    int error = 0;
    for (size_t i = o->open.count; i-- > 0 && !error;)
        if (o->open.items[i].process == process)
            error = close_at(o, i, at_ns, true);
    return error;
}
