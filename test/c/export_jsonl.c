/* One line a call, in the order of starts, with its end: however long it takes, whatever comes between. */
#include "export/jsonl.h"

#include "report_stream.h"
#include "sim/walk.h"

#include <errno.h>

typedef struct one_stream {
    const made *s;
    uint32_t pid;
    bool has_ended;
} one_stream;

static int pass(jsonl *j, const one_stream *streams, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t stream = jsonl_stream_open(j, streams[i].pid);
        if (stream == JSONL_STREAM_NONE)
            return -ENOMEM;
        CHECK_EQ(stream, i);
    }
    int error = 0;
    for (uint32_t i = 0; i < count && !error; i++)
        error = jsonl_run(j, i, streams[i].s->events.items, streams[i].s->events.count);
    for (uint32_t i = 0; i < count && !error; i++)
        error = jsonl_stream_close(j, i, streams[i].has_ended);
    return error;
}

static int export_streams(pen *p, uint64_t origin_ns, const one_stream *streams, uint32_t count)
{
    jsonl *j;
    int error = jsonl_new(&j, p, origin_ns);
    if (error)
        return error;
    error = pass(j, streams, count);
    if (!error) {
        CHECK_EQ(p->used, 0); /* nothing is written before the second pass */
        error = jsonl_second_pass(j);
    }
    if (!error)
        error = pass(j, streams, count);
    jsonl_delete(j);
    return error;
}

static void check_lines(uint64_t origin_ns, const one_stream *streams, uint32_t count, const char *want)
{
    pen p;
    CHECK_EQ(pen_init(&p, -1), 0);
    CHECK_EQ(export_streams(&p, origin_ns, streams, count), 0);
    CHECK_EQ(p.error, 0);
    pen_bytes(&p, "", 1);
    if (strcmp(p.bytes, want) != 0)
        TEST_FAILED("got\n%s\nwanted\n%s", p.bytes, want);
    pen_free(&p);
}

TEST(lines_are_as_they_are_documented)
{
    made a = {0}, b = {0};
    made_process(&a, 41, 1, 1, "ruby");
    made_method(&a, 1, "Object#main");
    made_method(&a, 2, "Object#größe\"");
    made_method_bytes(&a, 3, "Shop#\xff", 6, EV_METHOD_C, "", 0);
    made_switch(&a, 1000, 1, 1);
    made_frame(&a, 1000, 1, 1);
    made_call(&a, 1010, 2, 2);
    made_switch(&a, 1020, 1, 7);
    made_call(&a, 1020, 1, 3);
    made_switch(&a, 1030, 1, 1);
    made_call(&a, 1030, 3, 3);
    made_return(&a, 1040, 3);
    made_cut(&a, 1060, 2);
    made_call(&a, 1070, 2, 9);
    made_event(&a, EV_MARK, 1100, 0, 0);
    made_process(&b, 42, 41, 1, "ruby");
    made_switch(&b, 1050, 5, 6);
    made_call(&b, 1050, 1, 1);
    check_lines(1000, (one_stream[]){{&a, 41, true}, {&b, 42, false}}, 2,
        "{\"pid\":41,\"thread\":1,\"fiber\":1,\"depth\":0,\"name\":\"Object#main\",\"kind\":\"ruby\",\"start_ns\":0,\"duration_ns\":null,\"closed_by\":\"end\",\"open_at_start\":true}\n"
        "{\"pid\":41,\"thread\":1,\"fiber\":1,\"depth\":1,\"name\":\"Object#größe\\\"\",\"kind\":\"ruby\",\"start_ns\":10,\"duration_ns\":50,\"closed_by\":\"unwound\"}\n"
        "{\"pid\":41,\"thread\":1,\"fiber\":7,\"depth\":0,\"name\":\"Shop#\\\\xFF\",\"kind\":\"c\",\"start_ns\":20,\"duration_ns\":null,\"closed_by\":\"end\"}\n"
        "{\"pid\":41,\"thread\":1,\"fiber\":1,\"depth\":2,\"name\":\"Shop#\\\\xFF\",\"kind\":\"c\",\"start_ns\":30,\"duration_ns\":10,\"closed_by\":\"return\"}\n"
        "{\"pid\":41,\"thread\":1,\"fiber\":1,\"depth\":1,\"name\":\"(unknown method 9)\",\"kind\":\"ruby\",\"start_ns\":70,\"duration_ns\":null,\"closed_by\":\"end\"}\n"
        "{\"pid\":42,\"thread\":5,\"fiber\":6,\"depth\":0,\"name\":\"(unknown method 1)\",\"kind\":\"ruby\",\"start_ns\":50,\"duration_ns\":null,\"closed_by\":null}\n");
    vec_free(&a.events);
    vec_free(&b.events);
}

/* ---- any stream, of any length ----------------------------------------------------------------------------------- */

typedef struct call {
    uint64_t begin_ns, end_ns;
    uint32_t fiber, depth, method;
    sim_closed closed;
} call;

typedef struct kept {
    const catalog *catalog;
    VEC(call) calls; /* in the order of starts: simply all of them */
} kept;

static int keep_opened(void *context, walk_fiber *f)
{
    kept *k = context;
    walk_frame *top = &f->frames.items[f->frames.count - 1];
    call *c = vec_push(&k->calls);
    CHECK(c);
    *c = (call){.begin_ns = top->begin_ns, .fiber = catalog_fiber_at(k->catalog, f->id)->number, .depth = (uint32_t)f->frames.count - 1, .method = top->method};
    top->mark[0] = (uint32_t)(k->calls.count - 1);
    return 0;
}

static int keep_closed(void *context, walk_fiber *f, const walk_frame *frame, uint64_t end_ns, sim_closed closed)
{
    kept *k = context;
    k->calls.items[frame->mark[0]].end_ns = end_ns;
    k->calls.items[frame->mark[0]].closed = closed;
    (void)f;
    return 0;
}

/* Calls of all lengths: some return at once, some after many windows, some never. */
static made random_stream(uint64_t *state, size_t event_count, uint32_t depth_max)
{
    enum { FIBERS = 3 };
    made s = {0};
    uint32_t depths[FIBERS] = {0}, fiber = 0;
    uint64_t now = 100;
    made_method(&s, 1, "Object#a");
    made_method(&s, 2, "Object#b");
    made_switch(&s, now, 1, 1);
    while (s.events.count < event_count) {
        now += test_random_below(state, 30);
        uint32_t *depth = &depths[fiber];
        uint64_t what = test_random_below(state, 20000);
        if (what < 20) {
            fiber = (uint32_t)test_random_below(state, FIBERS);
            made_switch(&s, now, 1, fiber + 1);
        } else if (what < 22 && *depth > 0) {
            *depth = (uint32_t)test_random_below(state, *depth);
            made_cut(&s, now, *depth + 1);
        } else if (*depth > 0 && (what < 10000 || *depth >= depth_max)) {
            made_return(&s, now, (*depth)--);
        } else {
            made_call(&s, now, ++*depth, 1 + (uint32_t)(what & 1));
        }
    }
    return s;
}

static void check_random(uint64_t seed, size_t event_count, uint32_t depth_max)
{
    static const char *const ends[] = {"\"return\"", "\"unwound\"", "\"end\"", "null"};
    uint64_t state = seed * 77 + 1;
    made s = random_stream(&state, event_count, depth_max);
    kept want = {0};
    catalog *c;
    walk *w;
    pen p;
    CHECK_EQ(catalog_new(&c), 0);
    want.catalog = c;
    CHECK_EQ(walk_new(&w, c, &(walk_listener){.opened = keep_opened, .closed = keep_closed, .context = &want}), 0);
    walk_stream_open(w, catalog_process_add(c, 1, 0));
    CHECK_EQ(walk_run(w, 0, s.events.items, s.events.count), 0);
    CHECK_EQ(walk_stream_close(w, 0, SIM_OPEN), 0);
    CHECK_EQ(pen_init(&p, -1), 0);
    CHECK_EQ(export_streams(&p, 100, &(one_stream){&s, 1, false}, 1), 0);
    pen_bytes(&p, "", 1);
    char *line = p.bytes, text[256], duration[32];
    for (size_t i = 0; i < want.calls.count; i++) {
        const call *k = &want.calls.items[i];
        snprintf(duration, sizeof duration, "%" PRIu64, k->end_ns - k->begin_ns);
        int bytes = snprintf(text, sizeof text,
            "{\"pid\":1,\"thread\":1,\"fiber\":%u,\"depth\":%u,\"name\":\"Object#%c\",\"kind\":\"ruby\",\"start_ns\":%" PRIu64
            ",\"duration_ns\":%s,\"closed_by\":%s}\n", k->fiber, k->depth, k->method == 1 ? 'a' : 'b', k->begin_ns - 100,
            k->closed <= SIM_CLOSED_UNWOUND ? duration : "null", ends[k->closed]);
        if (strncmp(line, text, (size_t)bytes) != 0)
            TEST_FAILED("seed %" PRIu64 ", line %zu: got %.*s, wanted %s", seed, i, (int)strcspn(line, "\n"), line, text);
        line += bytes;
    }
    CHECK_EQ(*line, '\0');
    pen_free(&p);
    walk_delete(w);
    catalog_delete(c);
    vec_free(&want.calls);
    vec_free(&s.events);
}

TEST(calls_shorter_and_longer_than_the_window_come_in_order_with_their_ends)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < 6; i++, seed++)
        check_random(seed, JSONL_WINDOW * 20, 4u << (i * 2)); /* depths of 4 to 4096 */
    for (int i = 0; i < 100; i++, seed++)
        check_random(seed, 10 + (size_t)i * 5, 1 + (uint32_t)i);
}

/* A call that ends just inside, on, and just outside of the window. */
TEST(the_windows_border_is_exact)
{
    for (uint32_t inner = JSONL_WINDOW - 3; inner <= JSONL_WINDOW + 2; inner++) {
        made s = {0};
        made_method(&s, 1, "Object#a");
        made_switch(&s, 1, 1, 1);
        made_call(&s, 10, 1, 1);
        for (uint32_t i = 0; i < inner; i++) {
            made_call(&s, 20 + i, 2, 1);
            made_return(&s, 20 + i, 2);
        }
        made_return(&s, 100000, 1);
        made_call(&s, 100001, 1, 1);
        made_return(&s, 100002, 1);
        pen p;
        CHECK_EQ(pen_init(&p, -1), 0);
        CHECK_EQ(export_streams(&p, 0, &(one_stream){&s, 1, true}, 1), 0);
        pen_bytes(&p, "", 1);
        size_t lines = 0;
        for (const char *at = p.bytes; (at = strchr(at, '\n')); at++)
            lines++;
        CHECK_EQ(lines, inner + 2);
        CHECK(strstr(p.bytes, "\"start_ns\":10,\"duration_ns\":99990,\"closed_by\":\"return\"}\n"));
        CHECK(!strstr(p.bytes, "null"));
        pen_free(&p);
        vec_free(&s.events);
    }
}

TEST(a_failed_allocation_is_an_error_and_loses_no_memory)
{
    uint64_t state = 3;
    made s = random_stream(&state, JSONL_WINDOW * 3, 20);
    int failed = 0, done = 0;
    for (unsigned every = 1; every < 120; every++) {
        pen p;
        CHECK_EQ(pen_init(&p, -1), 0);
        mem_fail_every(every);
        int error = export_streams(&p, 0, &(one_stream){&s, 1, true}, 1);
        mem_fail_every(0);
        error = error ? error : p.error;
        CHECK(error == 0 || error == -ENOMEM);
        failed += error != 0;
        done += error == 0;
        pen_free(&p);
    }
    CHECK(failed > 10 && done > 10);
    vec_free(&s.events);
}
