#include "view/states.h"

#include <math.h>

void states_begin(states_gather *s, states_take_piece *take, void *context)
{
    *s = (states_gather){.take = take, .context = context, .before_end_ns = UINT64_MAX};
}

static bool is_empty(const states_piece *p) { return p->begin_ns == p->end_ns; }

/* How much of its time each state takes, in steps: the one that takes most has what the others leave. */
static void set_steps(states_piece *p, const double ns[STATES_COUNT])
{
    double sum = 0;
    uint32_t most = 0, left = STATES_STEPS;
    for (uint32_t i = 0; i < STATES_COUNT; i++) {
        sum += ns[i];
        most = ns[i] > ns[most] ? i : most;
    }
    for (uint32_t i = 0; i < STATES_COUNT; i++) {
        p->steps[i] = i == most || ns[i] <= 0 ? 0 : (uint32_t)fmax(1, floor(ns[i] / sum * STATES_STEPS + 0.5));
        left -= p->steps[i];
    }
    p->steps[most] = left;
}

static void give_run(states_gather *s)
{
    if (!is_empty(&s->run))
        s->take(s->context, &s->run);
    s->run = (states_piece){0};
}

static bool goes_on(const states_piece *run, const states_piece *cell)
{
    bool is_same = !is_empty(run) && run->end_ns == cell->begin_ns && run->flags == cell->flags;
    for (uint32_t i = 0; i < STATES_COUNT; i++)
        is_same &= run->steps[i] == cell->steps[i];
    return is_same;
}

/* The cell is complete. One that is less than a pixel is drawn as wide as one: what it lacks is the state's before. */
static void end_cell(states_gather *s)
{
    states_piece *cell = &s->cell;
    if (is_empty(cell))
        return;
    double ns[STATES_COUNT];
    for (uint32_t i = 0; i < STATES_COUNT; i++)
        ns[i] = (double)cell->ns[i];
    double lacking_ns = 0.75 * (double)s->cell_ns - (double)(cell->end_ns - cell->begin_ns);
    if (lacking_ns > 0 && s->before_end_ns == cell->begin_ns)
        ns[s->before] += lacking_ns;
    set_steps(cell, ns);
    if (goes_on(&s->run, cell)) {
        s->run.end_ns = cell->end_ns;
        s->run.span_count += cell->span_count;
        for (uint32_t i = 0; i < STATES_COUNT; i++)
            s->run.ns[i] += cell->ns[i];
    } else {
        give_run(s);
        s->run = *cell;
    }
    for (uint32_t i = 0; i < STATES_COUNT; i++)
        s->before = cell->ns[i] > cell->ns[s->before] ? i : s->before;
    s->before_end_ns = cell->end_ns;
    *cell = (states_piece){0};
}

static void times_of(const history_node *n, uint64_t ns[STATES_COUNT])
{
    uint64_t known_ns = n->of_ns[0] + n->of_ns[1];
    ns[0] = n->of_ns[0];
    ns[1] = n->of_ns[1];
    ns[2] = n->busy_ns > known_ns ? n->busy_ns - known_ns : 0;
}

static void take_long(states_gather *s, const history_node *n)
{
    end_cell(s);
    give_run(s);
    states_piece piece = {.begin_ns = n->begin_ns, .end_ns = n->end_ns, .span_count = n->span_count, .flags = n->flags};
    times_of(n, piece.ns);
    set_steps(&piece, (double[STATES_COUNT]){(double)piece.ns[0], (double)piece.ns[1], (double)piece.ns[2]});
    s->take(s->context, &piece);
    s->before = n->value < STATES_COUNT ? n->value : 0;
    s->before_end_ns = n->end_ns;
}

static void open_cell(states_gather *s, uint64_t at_ns, uint64_t cell_ns)
{
    uint64_t in_cell_ns = at_ns % cell_ns, left_ns = cell_ns - in_cell_ns;
    s->cell_ns = cell_ns;
    s->cell_end_ns = at_ns + left_ns + (left_ns < cell_ns / 2 ? cell_ns : 0); /* not too short to be seen */
    s->cell = (states_piece){.begin_ns = at_ns, .end_ns = at_ns};
}

void states_take(states_gather *s, const history_node *n, uint64_t cell_ns)
{
    uint64_t length_ns = n->end_ns - n->begin_ns, all[STATES_COUNT], to_ns;
    if (length_ns == 0)
        return;
    if (length_ns / STATES_LONG >= cell_ns) {
        take_long(s, n);
        return;
    }
    times_of(n, all);
    for (uint64_t at_ns = n->begin_ns; at_ns < n->end_ns; at_ns = to_ns) {
        if (!is_empty(&s->cell) && at_ns >= s->cell_end_ns)
            end_cell(s);
        if (is_empty(&s->cell))
            open_cell(s, at_ns, cell_ns);
        to_ns = n->end_ns < s->cell_end_ns ? n->end_ns : s->cell_end_ns;
        double share = (double)(to_ns - at_ns) / (double)length_ns;
        for (uint32_t i = 0; i < STATES_COUNT; i++)
            s->cell.ns[i] += (uint64_t)((double)all[i] * share + 0.5);
        s->cell.end_ns = to_ns;
        s->cell.span_count += at_ns == n->begin_ns ? n->span_count : 0;
        s->cell.flags |= n->flags & HISTORY_EVICTED;
    }
}

void states_end(states_gather *s)
{
    end_cell(s);
    give_run(s);
}
