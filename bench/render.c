/* bench/render.c - what does a frame cost, by the number of spans in view?
 *
 * A made-up program of eight threads, whose stacks walk at random between 0 and 24 calls, goes event by event through the
 * simulation into a history: fixed seed, GVL hand-overs and GC pauses among them. Its session is looked at from all three
 * cameras whole, when it has 10 k … 100 M spans, and in part, when the whole has 100 M: a stretch with that many in it. Then
 * live, following a program of 5 million events a second; then 64 threads, and a recursion of 4,000 calls.
 *
 * The picture moves all the time: time is dragged and zoomed by keys, as a user would, so nothing is spared because
 * nothing has changed. Medians over FRAMES frames after a warm-up in which the number of boxes settles. Times of the CPU are
 * the thread's own (but for the queries' share, which is by the wall); 'device' is by the device's own clock, 'frame' is
 * from one frame's end to the next, with nothing between them.
 * bench_render [--cpu|--cpu=software] [SPANS] stops at that many; with --cpu nothing is drawn, and boxes are as many as a GPU
 * (or a software driver) is given that is always in time. Off-screen: it needs no display.
 */
#include "base/mem.h"
#include "gpu/gpu.h"
#include "history/history.h"
#include "sim/sim.h"
#include "view/view.h"
#include "wire/clock.h"

#include "support/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_NS UINT64_C(9000000000000000)
#define NS_PER_EVENT 200u /* on the average: 5 million a second */
#define RUN_EVENTS 16384u
#define THREADS_MAX 64u
#define METHODS 500u
#define MEMORY_BYTES ((size_t)6 << 30) /* so that nothing is let go */
#define WARM_UP 40
#define FRAMES 25
#define FRAME_S 0.033
#define LIVE_EVENTS 165000u /* of a frame at 5 million events a second */
#define SEED UINT64_C(20240229)

/* ---- a made-up program -------------------------------------------------------------------------------------------- */

typedef struct program {
    uint32_t threads, depth_max;
    uint32_t depth[THREADS_MAX], current;
    bool is_falling; /* a recursion on its way back */
    uint64_t random, now_ns;
    catalog *catalog;
    history *history;
    sim *sim;
    uint32_t stream;
    ev *events; /* RUN_EVENTS, being filled */
    uint32_t count;
} program;

static void fail(const char *why)
{
    fprintf(stderr, "render: %s\n", why);
    exit(1);
}

static void sink(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    if (history_append(context, track, spans, count) != 0)
        fail("memory is out");
}

static void flush(program *p)
{
    if (p->count && sim_run(p->sim, &(sim_block){p->stream, p->count, p->events}, 1) != 0)
        fail("memory is out");
    p->count = 0;
}

static void put(program *p, ev_kind kind, uint32_t number, uint32_t place)
{
    if (p->count >= RUN_EVENTS)
        flush(p);
    p->events[p->count++] = ev_make(kind, p->now_ns, number, place);
}

static void define(program *p, ev_define what, uint32_t number, const void *payload, uint32_t bytes)
{
    uint32_t slots = (uint32_t)ev_define_slots(bytes);
    if (p->count + slots + 1 > RUN_EVENTS)
        flush(p);
    put(p, EV_DEFINE, ev_define_number(what, number), bytes);
    memset(p->events + p->count, 0, slots * sizeof(ev));
    memcpy(p->events + p->count, payload, bytes);
    p->count += slots;
}

static void define_names(program *p)
{
    unsigned char payload[256];
    char name[64];
    for (uint32_t m = 1; m <= METHODS; m++) {
        int bytes = snprintf(name, sizeof name, "Shop::Part%c%c#step%c%c", 'A' + m % 26, 'a' + m / 26, 'a' + m % 23, 'a' + m % 19);
        ev_method_def def = {.kind = m % 4 == 0 ? EV_METHOD_C : EV_METHOD_RUBY, .line = m, .name_bytes = (uint32_t)bytes};
        memcpy(payload, &def, sizeof def);
        memcpy(payload + sizeof def, name, def.name_bytes);
        define(p, EV_DEFINE_METHOD, m, payload, (uint32_t)sizeof def + def.name_bytes);
    }
    for (uint32_t t = 0; t < p->threads; t++) {
        int bytes = snprintf(name, sizeof name, "worker %u", t + 1);
        ev_thread_def def = {.ractor = 1, .flags = t == 0 ? EV_THREAD_MAIN : 0, .name_bytes = (uint32_t)bytes};
        memcpy(payload, &def, sizeof def);
        memcpy(payload + sizeof def, name, def.name_bytes);
        define(p, EV_DEFINE_THREAD, t + 1, payload, (uint32_t)sizeof def + def.name_bytes);
    }
}

static void program_begin(program *p, uint32_t threads, uint32_t depth_max)
{
    *p = (program){.threads = threads, .depth_max = depth_max, .random = SEED, .now_ns = BEGIN_NS,
                   .events = mem_aligned(64, sizeof(ev) * RUN_EVENTS)};
    if (!p->events || catalog_new(&p->catalog) != 0 || history_new(&p->history, MEMORY_BYTES) != 0 ||
        sim_new(&p->sim, &(sim_desc){.catalog = p->catalog, .sink = sink, .context = p->history}) != 0)
        fail("memory is out");
    p->stream = sim_stream_open(p->sim, catalog_process_add(p->catalog, 4711, BEGIN_NS), CLOCK_SOURCE_MONOTONIC);
    define_names(p);
    put(p, EV_SWITCH, 1, 1);
    put(p, EV_THREAD_RESUMED, 1, 0);
}

static void program_end(program *p)
{
    sim_delete(p->sim);
    history_delete(p->history);
    catalog_delete(p->catalog);
    mem_free(p->events);
}

static void hand_over(program *p, uint64_t dice)
{
    put(p, EV_THREAD_SUSPENDED, p->current + 1, 0);
    p->current = (uint32_t)(dice >> 32) % p->threads;
    put(p, EV_THREAD_READY, p->current + 1, 0);
    p->now_ns += NS_PER_EVENT;
    put(p, EV_THREAD_RESUMED, p->current + 1, 0);
    put(p, EV_SWITCH, p->current + 1, p->current + 1);
}

static void pause_for_gc(program *p)
{
    put(p, EV_GC_ENTER, 0, 0);
    p->now_ns += 100 * NS_PER_EVENT;
    put(p, EV_GC_EXIT, 0, 0);
}

/* The next event or two. Deep programs recurse all the way down and come back, others walk at random. */
static void step(program *p)
{
    uint64_t dice = bench_random(&p->random);
    uint32_t *depth = &p->depth[p->current], base = 0x08000000u + 0x02000000u * p->current;
    p->now_ns += dice % (2 * NS_PER_EVENT);
    if (dice % 401 == 0)
        hand_over(p, dice);
    else if (dice % 50021 == 0)
        pause_for_gc(p);
    else {
        uint64_t odds = p->depth_max <= 64 ? 8 : p->is_falling ? 6 : 10; /* of a call, in 16 */
        bool is_call = *depth == 0 || (*depth < p->depth_max && (dice >> 20 & 15) < odds);
        p->is_falling = *depth == 0 ? false : *depth == p->depth_max ? true : p->is_falling;
        if (is_call)
            put(p, EV_CALL, 1 + (uint32_t)((dice >> 32) % METHODS), base - ++*depth * 64u);
        else
            put(p, EV_RETURN, 0, base - (*depth)-- * 64u);
    }
}

static void run_until(program *p, uint64_t span_count)
{
    while (history_stats_of(p->history).span_count < span_count) {
        for (uint32_t i = 0; i < RUN_EVENTS / 8; i++)
            step(p);
        flush(p);
    }
}

/* ---- frames --------------------------------------------------------------------------------------------------------- */

static uint64_t query_ns; /* spent in history/ since the frame began */

/* The linker has the view's calls come this way (CMakeLists.txt). */
size_t __real_history_query_cells(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                                  uint64_t resolution_ns, history_node *out, size_t max);
size_t __wrap_history_query_cells(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                                  uint64_t resolution_ns, history_node *out, size_t max);
bool __real_history_has_spans(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns);
bool __wrap_history_has_spans(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns);

size_t __wrap_history_query_cells(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns,
                                  uint64_t resolution_ns, history_node *out, size_t max)
{
    uint64_t before = clock_ns(CLOCK_MONOTONIC);
    size_t count = __real_history_query_cells(h, track, depth, begin_ns, end_ns, resolution_ns, out, max);
    query_ns += clock_ns(CLOCK_MONOTONIC) - before;
    return count;
}

bool __wrap_history_has_spans(const history *h, uint32_t track, uint32_t depth, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t before = clock_ns(CLOCK_MONOTONIC);
    bool has = __real_history_has_spans(h, track, depth, begin_ns, end_ns);
    query_ns += clock_ns(CLOCK_MONOTONIC) - before;
    return has;
}

typedef struct look {
    const char *name;
    view_camera camera;
    uint64_t begin_ns, end_ns; /* 0, 0: live */
} look;

/* Medians, ms. */
typedef struct cost {
    double query, build, upload, cpu, device, frame, boxes;
    double all_cpu; /* mean of what all threads take for a frame: on a software device on a busy machine, the fairest */
} cost;

/* To and fro in time, in and out. */
static void move(view *v, int frame)
{
    static const view_key keys[] = {VIEW_KEY_W, VIEW_KEY_D, VIEW_KEY_S, VIEW_KEY_A};
    for (int i = 0; frame % 5 == 0 && i < 4; i++)
        view_input(v, &(view_input_event){.type = VIEW_INPUT_KEY, .key = keys[i], .is_down = frame / 5 % 4 == i});
}

/* g NULL: nothing but the CPU's part. */
static void draw(gpu *g, view *v, const gpu_frame *frame)
{
    if (!g)
        return;
    const uint8_t *pixels;
    uint32_t width, height;
    int status = 0;
    if (view_atlas(v, &pixels, &width, &height))
        status = gpu_set_atlas(g, pixels, width, height);
    if (status < 0 || gpu_draw(g, frame) < 0)
        fail(gpu_error(g));
}

static bool is_software; /* what the view is told */

static cost measure(gpu *g, program *p, const look *l)
{
    view *v;
    uint32_t width = 1920, height = 1080;
    bool is_live = l->end_ns == 0;
    double values[7][FRAMES];
    if (g)
        gpu_extent(g, &width, &height);
    view_desc desc = {.is_software = is_software, .camera = l->camera, .begin_ns = l->begin_ns, .end_ns = l->end_ns};
    if (view_new(&v, &desc) != 0)
        fail("memory is out");
    uint64_t last_ns = 0, all_ns = 0;
    for (int i = 0; i < WARM_UP + FRAMES; i++) {
        for (uint32_t k = 0; is_live && k < LIVE_EVENTS; k++)
            step(p);
        flush(p);
        if (!is_live)
            move(v, i);
        else
            last_ns = clock_ns(CLOCK_MONOTONIC);
        view_model model = {.catalog = p->catalog, .history = p->history, .sim = p->sim, .now_ns = p->now_ns};
        view_status status = {.event_count = 1, .memory_budget = 1, .ended = !is_live, .device = g ? gpu_device_name(g) : "no device"};
        gpu_frame frame;
        query_ns = 0;
        uint64_t process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        view_build(v, &model, &status, width, height, FRAME_S, &frame);
        uint64_t built_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        draw(g, v, &frame);
        uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), now_ns = clock_ns(CLOCK_MONOTONIC);
        double device_ms = g ? gpu_times_of(g).device_ms : 0, frame_ms = g && last_ns ? (double)(now_ns - last_ns) * 1e-6 : 1;
        view_frame_cost(v, device_ms > 0 ? device_ms : frame_ms, (double)(built_ns - begin_ns) * 1e-6);
        last_ns = now_ns;
        if (i < WARM_UP)
            continue;
        all_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process_ns;
        double built_ms = (double)(built_ns - begin_ns) * 1e-6, asked_ms = (double)query_ns * 1e-6;
        const double all[] = {asked_ms, built_ms - asked_ms, (double)(end_ns - built_ns) * 1e-6, (double)(end_ns - begin_ns) * 1e-6,
                              device_ms, frame_ms, (double)frame.box_count};
        for (int k = 0; k < 7; k++)
            values[k][i - WARM_UP] = all[k];
    }
    view_delete(v);
    return (cost){bench_median(values[0], FRAMES), bench_median(values[1], FRAMES), bench_median(values[2], FRAMES), bench_median(values[3], FRAMES),
                  bench_median(values[4], FRAMES), bench_median(values[5], FRAMES), bench_median(values[6], FRAMES), (double)all_ns * 1e-6 / FRAMES};
}

/* ---- what is asked -------------------------------------------------------------------------------------------------- */

typedef struct bench {
    gpu *large, *small; /* 1920x1080, 1280x720 */
    double worst_frame_ms;
} bench;

static const char *const cameras[] = {"scene", "flame", "threads"};

/* The worst camera's CPU time. */
static double look_from_all(bench *b, program *p, const char *spans, look l)
{
    double worst = 0;
    for (int camera = 0; camera < 3; camera++) {
        l.camera = (view_camera)camera;
        cost large = measure(b->large, p, &l), small = b->small ? measure(b->small, p, &l) : (cost){0};
        printf("%-6s %-6s %-8s %7.0f %8.2f %7.2f %7.2f %7.2f %8.2f %9.2f %9.2f %9.2f\n", spans, l.name, cameras[camera], large.boxes, large.query,
               large.build, large.upload, large.cpu, large.device, small.device, small.frame, small.all_cpu);
        fflush(stdout);
        worst = large.cpu > worst ? large.cpu : worst;
        double frame_ms = small.frame > small.device ? small.frame : small.device; /* live, the device works while events are made */
        b->worst_frame_ms = frame_ms > b->worst_frame_ms ? frame_ms : b->worst_frame_ms;
    }
    return worst;
}

static double look_at_whole(bench *b, program *p, const char *spans)
{
    return look_from_all(b, p, spans, (look){.name = "whole", .begin_ns = BEGIN_NS, .end_ns = p->now_ns});
}

/* A stretch in the middle with that many spans. */
static double look_at_part(bench *b, program *p, const char *spans, uint64_t count)
{
    double share = (double)count / (double)history_stats_of(p->history).span_count;
    uint64_t length_ns = (uint64_t)((double)(p->now_ns - BEGIN_NS) * share), middle_ns = BEGIN_NS + (p->now_ns - BEGIN_NS) / 2;
    return look_from_all(b, p, spans, (look){.name = "part", .begin_ns = middle_ns, .end_ns = middle_ns + length_ns});
}

static double look_at_other(bench *b, const char *name, uint32_t threads, uint32_t depth)
{
    program p;
    program_begin(&p, threads, depth);
    run_until(&p, 1000000);
    double worst = look_from_all(b, &p, "1M", (look){.name = name, .begin_ns = BEGIN_NS, .end_ns = p.now_ns});
    program_end(&p);
    return worst;
}

static gpu *open_gpu(uint32_t width, uint32_t height)
{
    gpu *g;
    int status = gpu_new(&g, &(gpu_desc){.width = width, .height = height});
    if (status)
        fail(gpu_error(g));
    gpu_capture(g, false); /* as in the window: ids only where the pointer asks */
    return g;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; uint64_t count; } sizes[] = {
        {"10k", 10000}, {"100k", 100000}, {"1M", 1000000}, {"10M", 10000000}, {"100M", 100000000}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    const char *last = argv[argc - 1], *first = argc > 1 ? argv[1] : "";
    bool draws = strncmp(first, "--cpu", 5) != 0;
    uint64_t most = argc > 1 && *last != '-' ? strtoull(last, NULL, 10) : UINT64_MAX;
    double cpu_ms[SIZES] = {0};
    int size_count = 0;
    setenv("LP_NUM_THREADS", "2", 0); /* as the window does */
    bench b = {.large = draws ? open_gpu(1920, 1080) : NULL, .small = draws ? open_gpu(1280, 720) : NULL};
    is_software = draws ? gpu_is_software(b.large) : strcmp(first, "--cpu=software") == 0;
    const char *device = draws ? gpu_device_name(b.large) : is_software ? "none, boxes as for a software driver" : "none, boxes as for a GPU";
    program p;
    program_begin(&p, 8, 24);
    printf("%s\n\n                         1920x1080, ms                                     1280x720, ms\n"
           "spans  view   camera     boxes    query   build  upload     CPU   device    device     frame  all CPU\n",
           device);
    for (int i = 0; i < SIZES && sizes[i].count <= most; i++) {
        run_until(&p, sizes[i].count);
        cpu_ms[i] = look_at_whole(&b, &p, sizes[i].name);
        size_count = i + 1;
    }
    for (int i = 0; i + 1 < size_count; i++) {
        double part = look_at_part(&b, &p, sizes[i].name, sizes[i].count);
        cpu_ms[i] = part > cpu_ms[i] ? part : cpu_ms[i];
    }
    double live = look_from_all(&b, &p, "12M", (look){.name = "live"});
    program_end(&p);
    double wide = look_at_other(&b, "wide", 64, 24), deep = look_at_other(&b, "deep", 2, 4000);

    printf("\n");
    for (int i = 0; i < size_count; i++)
        printf("render.cpu_ms.%s: %.3f\n", sizes[i].name, cpu_ms[i]);
    printf("render.cpu_ms.live: %.3f\nrender.cpu_ms.64threads: %.3f\nrender.cpu_ms.4000deep: %.3f\n", live, wide, deep);
    printf("render.frame_ms.720p: %.3f\nrender.device: %s\n", b.worst_frame_ms, device);
    gpu_delete(b.large);
    gpu_delete(b.small);
    return 0;
}
