#include "record/overview.h"

#include "base/mem.h"

#include <errno.h>

#define PAGE_NODES 512u
#define COARSER_MAX 40 /* doublings of the resolution: from a thousandth of the session to more than all of it */
#define NODE_BYTES_MAX 80u

/* What a row is of. */
typedef enum row_kind { ROW_GC = 0, ROW_GVL, ROW_CALLS, ROW_KIND_COUNT } row_kind;

typedef struct row_name {
    uint32_t process, number, track;
    row_kind kind;
    uint32_t depths; /* rows that the track has, open ones included */
} row_name;

typedef VEC(row_name) row_names;

uint32_t overview_node_limit(uint64_t event_count)
{
    uint64_t nodes = event_count / OVERVIEW_EVENTS_A_NODE;
    if (event_count < OVERVIEW_EVENTS_MIN)
        return 0;
    return nodes < OVERVIEW_NODES_MAX ? (uint32_t)nodes : OVERVIEW_NODES_MAX;
}

/* ---- writing -------------------------------------------------------------------------------------------------------- */

static void put(columns_bytes *out, uint64_t value) /* room is there */
{
    for (; value >= 0x80; value >>= 7)
        out->items[out->count++] = (unsigned char)(value | 0x80);
    out->items[out->count++] = (unsigned char)value;
}

static int add_name(row_names *names, const history *h, const sim *s, row_kind kind, uint32_t process, uint32_t number, uint32_t track)
{
    uint32_t depths = track == SIM_TRACK_NONE ? 0 : history_rows(h, track), open = s && track != SIM_TRACK_NONE ? sim_open_depth(s, track) : 0;
    if (depths == 0 && open == 0)
        return 0;
    row_name *name = vec_push(names);
    if (!name)
        return -ENOMEM;
    *name = (row_name){process, number, track, kind, depths > open ? depths : open};
    return 0;
}

static int list_names(row_names *names, const catalog *c, const history *h, const sim *s, const uint32_t *streams)
{
    int error = 0;
    for (uint32_t i = 0; i < catalog_process_count(c) && !error; i++)
        if (streams[i] != OVERVIEW_NOT_THERE)
            error = add_name(names, h, s, ROW_GC, i, 0, catalog_process_at(c, i)->gc_track);
    for (uint32_t i = 0; i < catalog_thread_count(c) && !error; i++) {
        const catalog_thread *t = catalog_thread_at(c, i);
        if (streams[t->process] != OVERVIEW_NOT_THERE)
            error = add_name(names, h, s, ROW_GVL, t->process, t->number, t->gvl_track);
    }
    for (uint32_t i = 0; i < catalog_fiber_count(c) && !error; i++) {
        const catalog_fiber *f = catalog_fiber_at(c, i);
        uint32_t process = catalog_thread_at(c, f->thread)->process;
        if (streams[process] != OVERVIEW_NOT_THERE)
            error = add_name(names, h, s, ROW_CALLS, process, f->number, f->track);
    }
    return error;
}

typedef struct building {
    const history *history;
    const sim *sim;
    row_names names;
    const uint32_t *streams;
    uint64_t from_ns, begin_ns, end_ns, resolution_ns;
    uint32_t node_limit;
    columns_bytes *out; /* NULL: only counting */
    uint32_t row_count, node_count;
    uint64_t last_ns;   /* end of the row's last node */
    VEC(history_node) nodes; /* of a row */
} building;

/* A row's nodes, whole, into b->nodes. 0, -ENOMEM, or -E2BIG: more than limit. */
static int ask_row(building *b, const row_name *name, uint32_t depth, uint32_t limit)
{
    uint64_t at_ns = b->from_ns;
    b->nodes.count = 0;
    for (size_t got = PAGE_NODES; got == PAGE_NODES;) {
        if (!vec_reserve(&b->nodes, b->nodes.count + PAGE_NODES + 1))
            return -ENOMEM;
        got = history_query(b->history, name->track, depth, at_ns, UINT64_MAX, b->resolution_ns, b->nodes.items + b->nodes.count, PAGE_NODES);
        b->nodes.count += got;
        if (b->nodes.count > limit)
            return -E2BIG;
        at_ns = got ? b->nodes.items[b->nodes.count - 1].end_ns : 0;
    }
    sim_span open;
    if (b->sim && sim_open_frames(b->sim, name->track, depth, &open, 1) == 1) {
        uint64_t end_ns = b->end_ns > open.begin_ns ? b->end_ns : open.begin_ns, length_ns = end_ns - open.begin_ns;
        b->nodes.items[b->nodes.count++] = (history_node){
            .begin_ns = open.begin_ns, .end_ns = end_ns, .busy_ns = length_ns, .longest_ns = length_ns, .span_count = 1, .value = open.value,
            .flags = open.open_at_start ? HISTORY_OPEN_AT_START : 0u};
    }
    return 0;
}

static void put_node(building *b, const history_node *n)
{
    uint64_t length_ns = n->end_ns - n->begin_ns;
    put(b->out, n->begin_ns - b->last_ns);
    put(b->out, length_ns);
    put(b->out, n->span_count << 2 | (n->flags & (HISTORY_UNWOUND | HISTORY_OPEN_AT_START)));
    put(b->out, n->value);
    if (n->span_count > 1) {
        put(b->out, length_ns - (n->busy_ns < length_ns ? n->busy_ns : length_ns));
        put(b->out, n->longest_ns < length_ns ? n->longest_ns : length_ns);
    }
    b->last_ns = n->end_ns;
}

static int put_row(building *b, const row_name *name, uint32_t depth)
{
    if (!vec_reserve(b->out, b->out->count + (b->nodes.count + 1) * NODE_BYTES_MAX))
        return -ENOMEM;
    put(b->out, b->streams[name->process]);
    put(b->out, name->kind);
    put(b->out, name->number);
    put(b->out, depth);
    put(b->out, b->nodes.count);
    b->last_ns = b->begin_ns;
    for (size_t i = 0; i < b->nodes.count; i++) {
        history_node n = b->nodes.items[i];
        n.begin_ns = n.begin_ns > b->last_ns ? n.begin_ns : b->last_ns; /* nothing lies before the begin, nor over another */
        n.end_ns = n.end_ns > n.begin_ns ? n.end_ns : n.begin_ns;
        put_node(b, &n);
    }
    return 0;
}

/* All rows, the lowest of all tracks first. 0, -E2BIG: they are too many nodes, or -ENOMEM. */
static int walk_rows(building *b)
{
    b->row_count = b->node_count = 0;
    bool has_more = true;
    for (uint32_t depth = 0; has_more; depth++) {
        has_more = false;
        for (size_t i = 0; i < b->names.count; i++) {
            const row_name *name = &b->names.items[i];
            if (depth >= name->depths)
                continue;
            int error = ask_row(b, name, depth, b->node_limit - b->node_count);
            if (error)
                return error;
            has_more = true;
            if (b->nodes.count == 0)
                continue;
            b->row_count++;
            b->node_count += (uint32_t)b->nodes.count;
            if (b->node_count >= b->node_limit)
                return -E2BIG;
            if (b->out && (error = put_row(b, name, depth)) != 0)
                return error;
        }
    }
    return 0;
}

int overview_build_of(const catalog *c, const history *h, const sim *s, const overview_desc *desc, columns_bytes *out)
{
    uint64_t begin_ns = desc->begin_ns, end_ns = desc->end_ns;
    building b = {.history = h, .sim = s, .streams = desc->streams, .from_ns = desc->from_ns, .begin_ns = begin_ns, .end_ns = end_ns,
                  .node_limit = desc->node_limit};
    b.resolution_ns = end_ns > begin_ns + OVERVIEW_COLUMNS ? (end_ns - begin_ns) / OVERVIEW_COLUMNS : 1;
    int error = list_names(&b.names, c, h, s, desc->streams);
    for (int i = 0; i < COARSER_MAX && !error; i++) {
        error = walk_rows(&b);
        if (error != -E2BIG)
            break;
        error = 0;
        b.resolution_ns *= i + 1 < COARSER_MAX ? 2 : 1;
    }
    if (!error && !vec_reserve(out, out->count + 3 * NODE_BYTES_MAX))
        error = -ENOMEM;
    if (!error) {
        put(out, begin_ns);
        put(out, b.resolution_ns);
        put(out, b.node_count);
        b.out = out;
        error = walk_rows(&b);
        error = error == -E2BIG ? 0 : error; /* rows beyond that are the deepest */
    }
    vec_free(&b.names);
    vec_free(&b.nodes);
    return error;
}

int overview_build(const catalog *c, const history *h, const sim *s, uint32_t first_stream, uint64_t begin_ns, uint64_t end_ns,
                   uint32_t node_limit, columns_bytes *out)
{
    uint32_t count = catalog_process_count(c), *streams = mem_alloc((size_t)count + 1, sizeof *streams);
    if (!streams)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        streams[i] = first_stream + i;
    int error = overview_build_of(c, h, s, &(overview_desc){streams, 0, begin_ns, end_ns, node_limit}, out);
    mem_free(streams);
    return error;
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

typedef struct source {
    const unsigned char *at, *end;
    bool is_bad;
} source;

static uint64_t get(source *s)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        unsigned char byte = *s->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    s->is_bad = true;
    return 0;
}

static uint64_t get_at_most(source *s, uint64_t most)
{
    uint64_t value = get(s);
    s->is_bad |= value > most;
    return s->is_bad ? 0 : value;
}

static uint32_t track_of(const catalog *c, uint32_t process, row_kind kind, uint32_t number)
{
    uint32_t id;
    switch (kind) {
    case ROW_GC: return catalog_process_at(c, process)->gc_track;
    case ROW_GVL: id = catalog_find_thread(c, process, number); return id == CATALOG_NONE ? SIM_TRACK_NONE : catalog_thread_at(c, id)->gvl_track;
    default: id = catalog_find_fiber(c, process, number); return id == CATALOG_NONE ? SIM_TRACK_NONE : catalog_fiber_at(c, id)->track;
    }
}

/* Behind *last_ns; false: the bytes are no node. */
static bool get_node(source *s, uint64_t *last_ns, history_node *n)
{
    *n = (history_node){.begin_ns = *last_ns + get_at_most(s, INT64_MAX)};
    uint64_t length_ns = get_at_most(s, INT64_MAX), count = get(s);
    n->end_ns = n->begin_ns + length_ns;
    n->span_count = count >> 2;
    n->flags = count & (HISTORY_UNWOUND | HISTORY_OPEN_AT_START);
    n->value = (uint32_t)get_at_most(s, UINT32_MAX);
    n->busy_ns = n->longest_ns = length_ns;
    if (n->span_count > 1) {
        n->busy_ns = length_ns - get_at_most(s, length_ns);
        n->longest_ns = get_at_most(s, length_ns);
        n->flags = 0;
    }
    *last_ns = n->end_ns;
    return !s->is_bad && n->span_count > 0 && n->end_ns >= n->begin_ns && n->end_ns < INT64_MAX;
}

/* Two neighbours as one. */
static void join(history_node *a, const history_node *b)
{
    a->value = b->busy_ns > a->busy_ns ? b->value : a->value;
    a->end_ns = b->end_ns;
    a->busy_ns += b->busy_ns;
    a->longest_ns = b->longest_ns > a->longest_ns ? b->longest_ns : a->longest_ns;
    a->span_count += b->span_count;
    a->flags = 0;
}

/* track SIM_TRACK_NONE: the row is read over. */
static int read_row(source *s, uint64_t begin_ns, uint64_t resolution_ns, uint32_t track, uint32_t depth, outline *out)
{
    uint64_t count = get(s), last_ns = begin_ns;
    history_node open = {0}, n;
    for (uint64_t i = 0; i < count; i++) {
        if (!get_node(s, &last_ns, &n))
            return -EBADMSG;
        if (track == SIM_TRACK_NONE)
            continue;
        if (open.span_count && n.end_ns - open.begin_ns <= resolution_ns) {
            join(&open, &n);
            continue;
        }
        if (open.span_count && outline_add(out, track, depth, &open) != 0)
            return -ENOMEM;
        open = n;
    }
    return open.span_count ? outline_add(out, track, depth, &open) : 0;
}

int overview_read(const void *bytes, size_t count, const catalog *c, uint32_t (*process_of)(void *context, uint32_t stream),
                  void *context, size_t bytes_max, outline *out)
{
    source s = {bytes, (const unsigned char *)bytes + count, false};
    uint64_t begin_ns = get_at_most(&s, INT64_MAX), resolution_ns = get_at_most(&s, INT64_MAX / 4), node_count = get(&s);
    if (s.is_bad)
        return -EBADMSG;
    /* Arrays are up to twice as large as what is in them. Half as fine is about half as many. */
    for (; node_count > bytes_max / (2 * sizeof(history_node)) && resolution_ns < INT64_MAX / 4; node_count /= 2)
        resolution_ns = resolution_ns * 2 + 1;
    while (s.at < s.end && outline_bytes(out) < bytes_max) {
        uint32_t stream = (uint32_t)get_at_most(&s, UINT32_MAX);
        row_kind kind = (row_kind)get_at_most(&s, ROW_KIND_COUNT - 1);
        uint32_t number = (uint32_t)get_at_most(&s, UINT32_MAX), depth = (uint32_t)get_at_most(&s, UINT32_MAX);
        uint32_t process = s.is_bad ? CATALOG_NONE : process_of(context, stream);
        uint32_t track = process >= catalog_process_count(c) ? SIM_TRACK_NONE : track_of(c, process, kind, number);
        int error = s.is_bad ? -EBADMSG : read_row(&s, begin_ns, resolution_ns, track, depth, out);
        if (error)
            return error;
    }
    return 0;
}
