#include "history/store.h"

#include "history/outline.h"

#define CANDIDATES 4u

/* Spans and nodes of one row come in time order; neighbours that fit into resolution_ns together become one answer. At a
 * resolution of 0 none do, not even empty ones at one time. */
typedef struct walk {
    const row *row;
    uint64_t begin_ns, end_ns, resolution_ns, visited;
    history_node *out;
    size_t count, max;
    bool by_cells;         /* history_query_cells */
    uint64_t cell_end_ns;  /* … what begins from here on is not merged into the open answer */
    bool ends_at_first;    /* whether there is anything is all that is asked */
    history_node open;  /* the answer being merged; span_count 0: none */
    /* Its values with their times, the greatest CANDIDATES or so: a new one takes the least one's place. */
    uint32_t values[CANDIDATES];
    uint64_t times[CANDIDATES];
} walk;

static void open_value(walk *w, uint32_t value, uint64_t time)
{
    uint32_t least = 0;
    for (uint32_t i = 0; i < CANDIDATES; i++) {
        if (w->times[i] && w->values[i] == value) {
            w->times[i] += time;
            return;
        }
        least = w->times[i] < w->times[least] ? i : least;
    }
    if (time > w->times[least]) {
        w->values[least] = value;
        w->times[least] = time;
    }
}

/* The open answer is complete; false: there is no room for another. */
static bool close_open(walk *w)
{
    if (w->open.span_count == 0)
        return true;
    uint32_t best = 0;
    for (uint32_t i = 1; i < CANDIDATES; i++)
        best = w->times[i] > w->times[best] ? i : best;
    if (w->times[best])
        w->open.value = w->values[best];
    w->out[w->count++] = w->open;
    w->open.span_count = 0;
    return w->count < w->max;
}

static bool fits_open(const walk *w, const history_node *piece)
{
    return w->open.span_count && w->resolution_ns && piece->begin_ns < w->cell_end_ns && piece->end_ns - w->open.begin_ns <= w->resolution_ns;
}

static uint64_t cell_end(const walk *w, uint64_t at_ns)
{
    uint64_t left_ns = UINT64_MAX - at_ns, in_cell_ns = at_ns % w->resolution_ns;
    return left_ns < w->resolution_ns - in_cell_ns ? UINT64_MAX : at_ns - in_cell_ns + w->resolution_ns;
}

static bool take(walk *w, const history_node *piece, uint64_t value_ns)
{
    history_node *open = &w->open;
    if (fits_open(w, piece)) {
        open->end_ns = piece->end_ns;
        open->busy_ns += piece->busy_ns;
        open->longest_ns = piece->longest_ns > open->longest_ns ? piece->longest_ns : open->longest_ns;
        open->span_count += piece->span_count;
        open->flags = (open->flags | piece->flags) & HISTORY_EVICTED;
        open->of_ns[0] += piece->of_ns[0];
        open->of_ns[1] += piece->of_ns[1];
        open_value(w, piece->value, value_ns);
        return true;
    }
    if (!close_open(w))
        return false;
    *open = *piece;
    w->cell_end_ns = w->by_cells ? cell_end(w, piece->begin_ns) : UINT64_MAX;
    if (w->ends_at_first)
        return false;
    w->values[0] = piece->value;
    w->times[0] = value_ns;
    for (uint32_t i = 1; i < CANDIDATES; i++)
        w->times[i] = 0;
    return true;
}

static bool take_node(walk *w, const node *n, unsigned level, uint64_t slot)
{
    uint64_t spans = row_spans_per_item(level);
    history_node piece = {
        .begin_ns = n->begin_ns, .end_ns = n->end_ns, .busy_ns = n->busy_ns, .longest_ns = n->longest_ns,
        .span_count = spans, .value = n->value,
        .flags = slot * spans < row_live_from(w->row, 0) ? HISTORY_EVICTED : 0u,
    };
    for (int state = 0; state < 2 && n->value <= HISTORY_STATE_MAX; state++)
        piece.of_ns[state] = (uint64_t)((double)n->busy_ns * n->of_share[state] / 65535);
    return take(w, &piece, n->value_ns);
}

static bool walk_spans(walk *w, uint64_t from, uint64_t to)
{
    while (from < to) {
        row_spans spans = row_spans_at(w->row, from);
        for (uint32_t i = spans.first; i < spans.end; i++) {
            history_node piece = {.begin_ns = row_spans_begin(&spans, i), .span_count = 1};
            piece.busy_ns = piece.longest_ns = row_spans_duration(&spans, i);
            piece.end_ns = piece.begin_ns + piece.busy_ns;
            w->visited++;
            if (piece.begin_ns >= w->end_ns)
                return false;
            if (piece.end_ns <= w->begin_ns)
                continue;
            piece.value = row_spans_value(&spans, i);
            piece.flags = row_spans_flags(&spans, i);
            if (piece.value < 2)
                piece.of_ns[piece.value] = piece.busy_ns;
            if (!take(w, &piece, piece.busy_ns))
                return false;
        }
        from += spans.end - spans.first;
    }
    return true;
}

/* Items [from, to) of a level; false: enough. A node goes out as it is when it lies inside the window and is not wider than
 * the resolution, or when what is below is gone; otherwise its children are looked at. The window's ends are compared
 * strictly, so that empty spans on them are told apart further down; at most one node a level straddles each end. By cells
 * only the window's begin counts, and what lies in a row's densest places is found without looking further down. */
static bool walk_items(walk *w, unsigned level, uint64_t from, uint64_t to)
{
    if (level == 0)
        return walk_spans(w, from, to);
    uint32_t group = column_group_slots(level - 1), index;
    const column *c = &w->row->columns[level];
    uint64_t below_live_from = row_live_from(w->row, level - 1);
    const node *n = NULL;
    for (uint64_t slot = from; slot < to; slot++, n++) {
        if (slot == from || slot % STORE_FANOUT == 0) { /* a group of siblings lies in one chunk */
            const chunk *k = column_chunk(c, level, slot, &index);
            n = (const node *)k->block + index;
        }
        w->visited++;
        if (n->begin_ns >= w->end_ns)
            return false;
        if (n->end_ns <= w->begin_ns)
            continue;
        bool is_inside = n->begin_ns > w->begin_ns && (w->by_cells || n->end_ns < w->end_ns);
        bool is_narrow = is_inside && w->resolution_ns && n->end_ns - n->begin_ns <= w->resolution_ns;
        bool is_bottom = slot * group < below_live_from;
        bool go_on = is_narrow || is_bottom ? take_node(w, n, level, slot)
                                            : walk_items(w, level - 1, slot * group, (slot + 1) * group);
        if (!go_on)
            return false;
    }
    return true;
}

/* Left to right: the top level's nodes, then at each level below the items that have no node above them yet. */
static void walk_row(walk *w)
{
    unsigned level = row_level_count(w->row) - 1;
    uint64_t from = 0;
    for (;; level--) {
        uint64_t to = row_item_count(w->row, level);
        if (!walk_items(w, level, from, to) || level == 0)
            break;
        from = to * column_group_slots(level - 1);
    }
}

static size_t run_query(walk *w, const history *h, uint32_t track, uint32_t depth)
{
    w->row = history_row(h, track, depth);
    if (!w->row || !w->row->group || w->begin_ns >= w->end_ns || w->max == 0)
        return 0;
    walk_row(w);
    if (w->count < w->max)
        (void)close_open(w);
    return w->count;
}

size_t history_query_counted(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                             uint64_t resolution_ns, bool by_cells, history_node *out, size_t max, uint64_t *visited)
{
    walk w = {.begin_ns = begin_ns, .end_ns = end_ns, .resolution_ns = by_cells && !resolution_ns ? 1 : resolution_ns, .out = out,
              .max = max, .by_cells = by_cells};
    size_t count = run_query(&w, h, track, depth);
    *visited = w.visited;
    return count;
}

/* To count answers in out, those of the outline behind the row's last span. */
static size_t add_outline(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns, uint64_t resolution_ns,
                          bool by_cells, history_node *out, size_t max, size_t count)
{
    if (!h->outline || count == max)
        return count;
    const row *r = history_row(h, track, depth);
    uint64_t from_ns = r && r->group ? r->last_end_ns : 0;
    return count + outline_query(h->outline, track, depth, from_ns, begin_ns, end_ns, resolution_ns, by_cells, out + count, max - count);
}

static size_t answer(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns, uint64_t resolution_ns,
                     bool by_cells, history_node *out, size_t max)
{
    uint64_t visited;
    size_t count = history_query_counted(h, track, depth, begin_ns, end_ns, resolution_ns, by_cells, out, max, &visited);
    return add_outline(h, track, depth, begin_ns, end_ns, resolution_ns ? resolution_ns : 1, by_cells, out, max, count);
}

size_t history_query(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                     uint64_t resolution_ns, history_node *out, size_t max)
{
    return answer(h, track, depth, begin_ns, end_ns, resolution_ns, false, out, max);
}

size_t history_query_cells(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                           uint64_t resolution_ns, history_node *out, size_t max)
{
    return answer(h, track, depth, begin_ns, end_ns, resolution_ns, true, out, max);
}

bool history_has_spans(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns)
{
    history_node first;
    walk w = {.begin_ns = begin_ns, .end_ns = end_ns, .resolution_ns = UINT64_MAX, .out = &first, .max = 1, .ends_at_first = true};
    return run_query(&w, h, track, depth) > 0 || add_outline(h, track, depth, begin_ns, end_ns, 1, false, &first, 1, 0) > 0;
}
