/* A thread's states as pieces, and as boxes: how much of the picture each takes. */
#include "view_session.h"

#include "view/states.h"

#include <math.h>

enum { WIDTH = 1280, HEIGHT = 720, PIECES = 4096 };

typedef struct pieces {
    states_piece items[PIECES];
    size_t count;
} pieces;

static void keep(void *context, const states_piece *piece)
{
    pieces *p = context;
    CHECK(p->count < PIECES);
    p->items[p->count++] = *piece;
}

static history_node node_of(uint64_t begin_ns, uint64_t end_ns, uint32_t state)
{
    history_node n = {.begin_ns = begin_ns, .end_ns = end_ns, .busy_ns = end_ns - begin_ns, .longest_ns = end_ns - begin_ns, .span_count = 1, .value = state};
    if (state < 2)
        n.of_ns[state] = n.busy_ns;
    return n;
}

TEST(what_states_take_is_the_same_in_any_cells_and_pieces_do_not_overlap)
{
    static pieces p;
    uint64_t first_seed = test_seed(1);
    for (uint64_t seed = first_seed; seed < first_seed + 300; seed++) {
        uint64_t random = seed * 99 + 7, now = test_random(&random) >> 30, want[STATES_COUNT] = {0}, got[STATES_COUNT] = {0}, spans = 0;
        uint64_t cell_ns = 1 + test_random_below(&random, 3000), longest = 1 + test_random_below(&random, 5000);
        states_gather gather;
        p.count = 0;
        states_begin(&gather, keep, &p);
        for (int i = 0; i < 400; i++) {
            uint32_t state = (uint32_t)test_random_below(&random, STATES_COUNT);
            history_node n = node_of(now, now + 1 + test_random_below(&random, longest), state);
            states_take(&gather, &n, cell_ns);
            want[state] += n.busy_ns;
            now = n.end_ns;
        }
        states_end(&gather);
        for (size_t i = 0; i < p.count; i++) {
            const states_piece *piece = &p.items[i];
            CHECK(piece->begin_ns < piece->end_ns && (i == 0 || piece->begin_ns == p.items[i - 1].end_ns));
            CHECK_EQ(piece->steps[0] + piece->steps[1] + piece->steps[2], STATES_STEPS);
            for (uint32_t state = 0; state < STATES_COUNT; state++) {
                CHECK(piece->ns[state] == 0 || piece->steps[state] > 0); /* what was there is seen */
                got[state] += piece->ns[state];
            }
            spans += piece->span_count;
        }
        CHECK_EQ(spans, 400);
        for (uint32_t state = 0; state < STATES_COUNT; state++)
            if (got[state] + 2 * PIECES < want[state] || got[state] > want[state] + 2 * PIECES)
                TEST_FAILED("seed %" PRIu64 ": state %u takes %" PRIu64 " ns, not %" PRIu64, seed, state, got[state], want[state]);
    }
}

TEST(a_long_state_is_a_piece_and_a_short_one_between_two_takes_little_of_its_pixel)
{
    static pieces p;
    states_gather gather;
    p.count = 0;
    states_begin(&gather, keep, &p);
    history_node nodes[] = {node_of(500, 10000, SIM_GVL_BLOCKED), node_of(10000, 10020, SIM_GVL_RUNNING), node_of(10020, 30000, SIM_GVL_BLOCKED)};
    for (size_t i = 0; i < 3; i++)
        states_take(&gather, &nodes[i], 1000);
    states_end(&gather);
    CHECK_EQ(p.count, 3);
    for (size_t i = 0; i < 3; i++)
        CHECK(p.items[i].begin_ns == nodes[i].begin_ns && p.items[i].end_ns == nodes[i].end_ns && p.items[i].span_count == 1);
    CHECK_EQ(p.items[0].steps[SIM_GVL_BLOCKED], STATES_STEPS);
    CHECK_EQ(p.items[1].steps[SIM_GVL_RUNNING], 1);
}

/* For 6 s a thread that runs for run_ms in every 10 ms, in four short turns, and is blocked else. */
static void make_turns(session *s, double run_ms)
{
    session_process(s, 7, "ruby turns.rb");
    session_thread(s, 1, "", true);
    session_event(s, EV_THREAD_STARTED, 1, 0);
    session_switch(s, 1, 1);
    for (int i = 0; i < 600; i++)
        for (int turn = 0; turn < 4; turn++) {
            double at = 1 + i * 10 + turn;
            session_at(s, at);
            session_event(s, EV_THREAD_RESUMED, 1, 0);
            session_at(s, at + run_ms / 4);
            session_event(s, EV_THREAD_SUSPENDED, 1, 0);
        }
    session_at(s, 6100);
    session_event(s, EV_THREAD_EXITED, 1, 0);
}

/* The share of the strip that a state's boxes take, from above and from the front. */
static double area_of(session *s, view_camera kind, double begin_ms, double end_ms, uint32_t state)
{
    view *v;
    gpu_frame frame;
    double its = 0, length = 0;
    float low = INFINITY, high = -INFINITY;
    int across = kind == VIEW_CAMERA_FLAME ? 1 : 2;
    view_desc desc = {.is_still = true, .camera = kind, .begin_ns = SESSION_BEGIN_NS + (uint64_t)(begin_ms * 1e6),
                      .end_ns = SESSION_BEGIN_NS + (uint64_t)(end_ms * 1e6)};
    CHECK_EQ(view_new(&v, &desc), 0);
    view_model model = session_model(s);
    view_build(v, &model, &(view_status){.memory_budget = 1}, WIDTH, HEIGHT, 0.016, &frame);
    double x[2] = {INFINITY, -INFINITY};
    for (size_t i = 0; i < frame.box_count; i++) {
        const gpu_box *b = &frame.boxes[i];
        view_box_ref ref;
        if (!view_box_of(v, b->id, &ref) || ref.kind != VIEW_BOX_GVL)
            continue;
        double begin = fmax((double)b->low[0], -8), end = fmin((double)b->high[0], 8);
        x[0] = fmin(x[0], begin);
        x[1] = fmax(x[1], end);
        low = fminf(low, b->low[across]);
        high = fmaxf(high, b->high[across]);
        if (ref.value == state && end > begin)
            its += (end - begin) * (double)(b->high[across] - b->low[across]);
    }
    length = x[1] - x[0];
    view_delete(v);
    return its / (length * (double)(high - low));
}

TEST(a_state_takes_its_share_of_the_strip_at_every_zoom_and_in_every_camera)
{
    static const struct { double run_ms, least, most; } cases[] = {{0.04, 0.01, 0.2}, {1.6, 0.1, 0.24}, {3.8, 0.3, 0.46}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        session s;
        session_new(&s);
        make_turns(&s, cases[i].run_ms);
        for (double window_ms = 5800; window_ms > 200; window_ms *= 0.71)
            for (int kind = 0; kind < 3; kind++) {
                double area = area_of(&s, (view_camera)kind, 100, 100 + window_ms, SIM_GVL_RUNNING);
                if (area < cases[i].least || area > cases[i].most)
                    TEST_FAILED("camera %d, %.0f ms: a state that takes %.3f has %.3f of the strip", kind, window_ms, cases[i].run_ms / 10, area);
            }
        session_delete(&s);
    }
}
