#include "view/hot.h"

#include "view/calls.h"

#include <string.h>

#define NEARLY 1.3 /* a caller this much older than what it has called is a call of its own */
#define DEPTH_MAX 20000u /* frames of a stack that are looked at */
#define FIBERS_MAX 64u   /* … and fibers of a thread that have frames, … */
#define FIBERS_SEEN_MAX 4096u /* … among so many: a thread may have had any number of them */

void hot_free(hot *h) { selftime_free(&h->selftime); }

/* Into the list, if it is among the hottest. */
static void rank(hot *h, focus_method method, uint64_t self_ns)
{
    uint32_t at = h->method_count;
    while (at > 0 && h->methods[at - 1].self_ns < self_ns)
        at--;
    if (at == HOT_METHODS)
        return;
    h->method_count += h->method_count < HOT_METHODS;
    memmove(h->methods + at + 1, h->methods + at, (h->method_count - at - 1) * sizeof *h->methods);
    h->methods[at] = (hot_method){method, self_ns};
}

static void rank_all(hot *h)
{
    const selftime *t = &h->selftime;
    h->method_count = 0;
    for (uint32_t process = 0; process < t->methods.count; process++)
        for (uint32_t number = 0; number < t->methods.items[process].count; number++)
            if (t->methods.items[process].items[number] > 0)
                rank(h, (focus_method){process, number}, (uint64_t)((double)t->methods.items[process].items[number] * t->scale));
    h->sight_ns = t->end_ns - t->begin_ns;
    h->is_exact = t->is_exact;
    h->is_filled = true;
}

/* ---- self times ------------------------------------------------------------------------------------------------ */

static bool is_filtered(const scene_input *in) { return in->focus && in->focus->find && in->focus->find->is_active; }
/* Of what is asked for; 0: nothing is. */
static uint32_t generation_of(const scene_input *in) { return is_filtered(in) ? in->focus->find->generation + 1 : 0; }
static bool is_thread_let_through(void *context, uint32_t thread) { return focus_thread(context, thread); }

static void begin(hot *h, const selftime_query *q, const scene_input *in)
{
    h->age_s = 0;
    h->history = in->history;
    h->generation = generation_of(in);
    h->read_share = in->model->read_share;
    h->exact_max = q->exact_max;
    selftime_begin(&h->selftime, q);
}

/* Of the time in sight. A film that moves has one stretch of time read to its end before the next begins; of one that stands still
 * only what is in sight now is wanted, and then nearly all of it. */
static bool wants_other(const hot *h, const scene *s, const scene_input *in)
{
    const selftime *t = &h->selftime;
    bool is_still = h->begin_ns == s->begin_ns && h->end_ns == s->end_ns, is_due = h->age_s >= HOT_EVERY_S || !h->is_filled;
    bool is_elsewhere = t->begin_ns != s->begin_ns || t->end_ns != s->end_ns, has_news = h->read_share != in->model->read_share;
    if (h->history != in->history || h->generation != generation_of(in))
        return true;
    return (is_elsewhere && is_still) || (!t->is_running && is_due && (is_elsewhere || has_news));
}

static bool wants_finer(const hot *h)
{
    return !h->selftime.is_running && h->selftime.span_count > h->exact_max && h->exact_max < HOT_EXACT_MAX_STILL;
}

/* True: the methods are new. */
static bool find_methods(hot *h, const scene *s, const scene_input *in)
{
    selftime *t = &h->selftime;
    bool is_other = wants_other(h, s, in), is_still = h->begin_ns == s->begin_ns && h->end_ns == s->end_ns;
    selftime_query q = {.model = in->model, .history = in->history, .begin_ns = t->begin_ns, .end_ns = t->end_ns, .exact_max = h->exact_max,
                        .match_thread = is_filtered(in) ? is_thread_let_through : NULL, .context = in->focus};
    if (is_other || (is_still && wants_finer(h))) {
        q.begin_ns = s->begin_ns;
        q.end_ns = s->end_ns;
        q.exact_max = is_other ? HOT_EXACT_MAX : HOT_EXACT_MAX_STILL;
        begin(h, &q, in);
    }
    h->begin_ns = s->begin_ns;
    h->end_ns = s->end_ns;
    if (!t->is_running || !selftime_go_on(t, &q))
        return false;
    rank_all(h);
    return true;
}

/* ---- open calls ------------------------------------------------------------------------------------------------ */

/* The frames of a stack that say something, innermost first. */
static size_t stages_of(const calls_query *q, uint64_t at_ns, uint32_t track, uint32_t depth, hot_call *out, size_t max)
{
    sim_span frame;
    uint64_t last_ns = 0;
    size_t count = 0;
    while (depth-- > 0 && calls_open_at(q, track, depth, at_ns, &frame)) {
        uint64_t ns = at_ns > frame.begin_ns ? at_ns - frame.begin_ns : 0;
        if (count > 0 && (double)ns < NEARLY * (double)last_ns + 1e5)
            continue;
        last_ns = ns;
        if (count == max) /* the longest are wanted: the innermost but one makes room */
            memmove(out + 1, out + 2, (max - 2) * sizeof *out), count--;
        out[count++] = (hot_call){.method.number = frame.value, .track = track, .depth = depth, .begin_ns = frame.begin_ns, .end_ns = frame.end_ns};
    }
    return count;
}

/* Of a thread's fibers the one that ran last: whose innermost frame is the youngest. Returns its depth. */
static uint32_t running_fiber(const calls_query *q, uint64_t at_ns, uint32_t thread, uint32_t *track)
{
    const catalog *c = q->model->catalog;
    uint64_t newest_ns = 0;
    uint32_t best = 0, looked = 0, seen = 0;
    for (uint32_t id = catalog_thread_at(c, thread)->first_fiber; id != CATALOG_NONE && looked < FIBERS_MAX && seen < FIBERS_SEEN_MAX;
         id = catalog_fiber_at(c, id)->next, seen++) {
        const catalog_fiber *fiber = catalog_fiber_at(c, id);
        sim_span frame;
        if (fiber->begin_ns > at_ns || !calls_open_at(q, fiber->track, 0, at_ns, &frame))
            continue;
        uint32_t depth = calls_depth_at(q, fiber->track, at_ns, DEPTH_MAX);
        looked++;
        bool is_now = at_ns >= q->model->now_ns;
        uint64_t its_ns = is_now ? fiber->end_ns : depth && calls_open_at(q, fiber->track, depth - 1, at_ns, &frame) ? frame.begin_ns : 0;
        if (depth > 0 && (best == 0 || its_ns >= newest_ns)) {
            *track = fiber->track;
            best = depth;
            newest_ns = its_ns;
        }
    }
    return best;
}

static void find_open_calls(hot *h, const scene *s, const scene_input *in)
{
    calls_query q = {.model = in->model, .history = in->history};
    h->open_count = h->open_thread_count = 0;
    h->is_open_now = s->end_ns >= in->model->now_ns;
    h->open_at_ns = h->is_open_now ? in->model->now_ns : s->end_ns;
    for (size_t lane = 0; lane < in->layout->lanes.count; lane++) {
        uint32_t thread = in->layout->lanes.items[lane].thread, track, depth = running_fiber(&q, h->open_at_ns, thread, &track);
        hot_call stages[HOT_OPEN_A_THREAD];
        size_t count = depth ? stages_of(&q, h->open_at_ns, track, depth, stages, HOT_OPEN_A_THREAD) : 0;
        h->open_thread_count += count > 0;
        for (size_t i = count; i-- > 0 && h->open_count < HOT_OPEN;) {
            hot_call *call = &h->open[h->open_count++];
            *call = stages[i];
            call->method.process = in->layout->lanes.items[lane].process;
            call->thread = thread;
            call->is_first = i + 1 == count;
        }
    }
}

bool hot_update(hot *h, const scene *s, const scene_input *in, double time_s)
{
    h->age_s += time_s;
    h->open_age_s += time_s;
    bool is_new = find_methods(h, s, in);
    if (!is_new && h->open_age_s < HOT_EVERY_S)
        return false;
    h->open_age_s = 0;
    find_open_calls(h, s, in);
    return true;
}

bool hot_is_behind(const hot *h)
{
    return h->selftime.is_running || h->selftime.begin_ns != h->begin_ns || h->selftime.end_ns != h->end_ns || wants_finer(h);
}
