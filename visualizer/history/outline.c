#include "history/outline.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "history/store.h"

#include <errno.h>

typedef struct outline_row {
    VEC(history_node) nodes;
} outline_row;

struct outline {
    map places;  /* track << 32 | depth -> index of rows */
    map depths;  /* track -> how many rows */
    VEC(outline_row) rows;
    size_t node_bytes;
};

int outline_new(outline **out)
{
    outline *o = *out = mem_zalloc(1, sizeof *o);
    if (!o)
        return -ENOMEM;
    map_init(&o->places);
    map_init(&o->depths);
    return 0;
}

void outline_delete(outline *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->rows.count; i++)
        vec_free(&o->rows.items[i].nodes);
    vec_free(&o->rows);
    map_free(&o->places);
    map_free(&o->depths);
    mem_free(o);
}

static outline_row *row_at(const outline *o, uint32_t track, uint32_t depth)
{
    uint32_t place = map_get(&o->places, (uint64_t)track << 32 | depth);
    return place == MAP_NONE ? NULL : &o->rows.items[place];
}

static outline_row *row_make(outline *o, uint32_t track, uint32_t depth)
{
    outline_row *r = row_at(o, track, depth);
    if (r || !vec_reserve(&o->rows, o->rows.count + 1))
        return r;
    if (outline_rows(o, track) <= depth && map_put(&o->depths, track, depth + 1) != 0)
        return NULL;
    if (map_put(&o->places, (uint64_t)track << 32 | depth, (uint32_t)o->rows.count) != 0)
        return NULL;
    r = &o->rows.items[o->rows.count++];
    *r = (outline_row){0};
    return r;
}

int outline_add(outline *o, uint32_t track, uint32_t depth, const history_node *n)
{
    if (depth >= STORE_ROWS_MAX || n->end_ns < n->begin_ns)
        return 0;
    outline_row *r = row_make(o, track, depth);
    if (!r)
        return -ENOMEM;
    if (r->nodes.count > 0 && r->nodes.items[r->nodes.count - 1].end_ns > n->begin_ns)
        return 0;
    size_t before = r->nodes.capacity;
    history_node *place = vec_push(&r->nodes);
    if (!place)
        return -ENOMEM;
    o->node_bytes += (r->nodes.capacity - before) * sizeof *place;
    *place = *n;
    if (n->value < 2 && n->of_ns[0] + n->of_ns[1] == 0)
        place->of_ns[n->value] = n->busy_ns; /* an overview knows no more than who takes most */
    return 0;
}

uint32_t outline_rows(const outline *o, uint32_t track)
{
    uint32_t rows = map_get(&o->depths, track);
    return rows == MAP_NONE ? 0 : rows;
}

size_t outline_bytes(const outline *o)
{
    return o->node_bytes + o->rows.capacity * sizeof *o->rows.items + (o->places.capacity + o->depths.capacity) * 16;
}

/* The first node that ends after the time. */
static size_t first_after(const outline_row *r, uint64_t time_ns)
{
    size_t low = 0, high = r->nodes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->nodes.items[middle].end_ns > time_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* What is left of a node behind from_ns; how busy, is guessed to be evenly so. */
static history_node cut(history_node n, uint64_t from_ns)
{
    if (n.span_count > 1)
        n.flags |= HISTORY_EVICTED;
    if (n.begin_ns >= from_ns)
        return n;
    double share = (double)(n.end_ns - from_ns) / (double)(n.end_ns - n.begin_ns);
    n.begin_ns = from_ns;
    n.busy_ns = (uint64_t)((double)n.busy_ns * share);
    n.longest_ns = n.longest_ns < n.busy_ns ? n.longest_ns : n.busy_ns;
    for (int state = 0; state < 2; state++)
        n.of_ns[state] = (uint64_t)((double)n.of_ns[state] * share);
    n.flags |= HISTORY_EVICTED;
    return n;
}

size_t outline_query(const outline *o, uint32_t track, uint32_t depth, uint64_t from_ns, uint64_t begin_ns, uint64_t end_ns,
                     uint64_t resolution_ns, bool by_cells, history_node *out, size_t max)
{
    const outline_row *r = row_at(o, track, depth);
    size_t count = 0;
    uint64_t most_ns = 0; /* of what was joined into the last one: the busiest piece, which gives it its value */
    if (!r || max == 0)
        return 0;
    for (size_t i = first_after(r, begin_ns > from_ns ? begin_ns : from_ns); i < r->nodes.count && r->nodes.items[i].begin_ns < end_ns; i++) {
        history_node n = cut(r->nodes.items[i], from_ns), *last = count ? &out[count - 1] : NULL;
        bool is_near = last && n.end_ns - last->begin_ns <= resolution_ns;
        if (is_near && (!by_cells || n.begin_ns / resolution_ns == last->begin_ns / resolution_ns)) {
            last->end_ns = n.end_ns;
            last->busy_ns += n.busy_ns;
            last->longest_ns = n.longest_ns > last->longest_ns ? n.longest_ns : last->longest_ns;
            last->span_count += n.span_count;
            last->value = n.busy_ns > most_ns ? n.value : last->value;
            last->flags = (last->flags | n.flags) & HISTORY_EVICTED;
            last->of_ns[0] += n.of_ns[0];
            last->of_ns[1] += n.of_ns[1];
            most_ns = n.busy_ns > most_ns ? n.busy_ns : most_ns;
            continue;
        }
        if (count == max)
            break;
        out[count++] = n;
        most_ns = n.busy_ns;
    }
    return count;
}

void history_set_outline(history *h, const outline *o) { h->outline = o; }
