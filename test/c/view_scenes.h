/* test/c/view_scenes.h - sessions like those that people look at: a web server, a short script, fibers, several processes.
 * Use:     after session_new: scenes_web(&s, seconds) …; then view_build on session_model(&s).
 */
#ifndef RRTRACE_TEST_VIEW_SCENES_H
#define RRTRACE_TEST_VIEW_SCENES_H

#include "view_session.h"

typedef struct scenes_methods {
    uint32_t run, join, sleep, handle, dispatch, layers[18], query, execute, render, partial, map, each, to_s, fetch, parse;
} scenes_methods;

static scenes_methods scenes_define(session *s)
{
    static const char *const layers[18] = {
        "Rack::MethodOverride#call", "Rack::Head#call", "ActionDispatch::Executor#call", "ActionDispatch::ShowExceptions#call",
        "Rails::Rack::Logger#call", "ActionDispatch::Callbacks#call", "ActionDispatch::Cookies#call",
        "Rack::Session::Abstract::Persisted#call", "ActionDispatch::Flash#call", "Rack::ETag#call", "Rack::TempfileReaper#call",
        "ActionDispatch::Routing::RouteSet#call", "ActionDispatch::Journey::Router#serve", "ActionController::Metal#dispatch",
        "AbstractController::Base#process", "ActionController::Rendering#process_action",
        "ActiveSupport::Callbacks#run_callbacks", "ArticlesController#index"};
    scenes_methods m;
    m.run = session_method(s, "Puma::Server#run", EV_METHOD_RUBY);
    m.join = session_method(s, "Thread#join", EV_METHOD_C);
    m.sleep = session_method(s, "Thread::Queue#pop", EV_METHOD_C);
    m.handle = session_method(s, "Puma::Server#process_client", EV_METHOD_RUBY);
    m.dispatch = session_method(s, "Puma::Request#handle_request", EV_METHOD_RUBY);
    for (int i = 0; i < 18; i++)
        m.layers[i] = session_method(s, layers[i], EV_METHOD_RUBY);
    m.query = session_method(s, "ActiveRecord::Relation#load", EV_METHOD_RUBY);
    m.execute = session_method(s, "SQLite3::Statement#step", EV_METHOD_C);
    m.render = session_method(s, "ActionView::Template#render", EV_METHOD_RUBY);
    m.partial = session_method(s, "ActionView::PartialRenderer#render", EV_METHOD_RUBY);
    m.map = session_method(s, "Array#map", EV_METHOD_C);
    m.each = session_method(s, "Array#each", EV_METHOD_C);
    m.to_s = session_method(s, "Integer#to_s", EV_METHOD_C);
    m.fetch = session_method(s, "ActiveSupport::Cache::Store#fetch", EV_METHOD_RUBY);
    m.parse = session_method(s, "JSON.parse", EV_METHOD_RUBY);
    return m;
}

/* n short calls one after another in [begin, end). */
static void scenes_burst(session *s, uint32_t method, double begin_ms, double end_ms, int n)
{
    double step = (end_ms - begin_ms) / n;
    for (int i = 0; i < n; i++)
        session_leaf(s, method, begin_ms + i * step, begin_ms + (i + 0.8) * step);
}

/* One request on the current fiber: middleware, a query, a rendered list. */
static void scenes_request(session *s, const scenes_methods *m, double at, double length)
{
    double layer = length * 0.008;
    session_at(s, at);
    session_call(s, m->handle);
    session_call(s, m->dispatch);
    for (int i = 0; i < 18; i++) {
        session_at(s, at + layer * (i + 1));
        session_call(s, m->layers[i]);
    }
    double begin = at + layer * 19, work = length - layer * 38;
    session_at(s, begin);
    session_call(s, m->query);
    scenes_burst(s, m->execute, begin + 0.02 * work, begin + 0.27 * work, 12);
    session_at(s, begin + 0.3 * work);
    session_return(s);
    session_at(s, begin + 0.32 * work);
    session_call(s, m->render);
    session_call(s, m->each);
    for (int i = 0; i < 8; i++) {
        double part = begin + (0.34 + 0.075 * i) * work;
        session_at(s, part);
        session_call(s, m->partial);
        session_call(s, i % 3 == 0 ? m->fetch : m->map);
        scenes_burst(s, i % 3 == 0 ? m->parse : m->to_s, part + 0.005 * work, part + 0.06 * work, 30);
        session_at(s, part + 0.068 * work);
        session_return(s);
        session_return(s);
    }
    session_at(s, begin + 0.98 * work);
    session_return(s);
    session_return(s);
    for (int i = 0; i < 18; i++) {
        session_at(s, at + length - layer * (19 - i));
        session_return(s);
    }
    session_at(s, at + length);
    session_return(s);
    session_return(s);
}

/* A web server: the main thread waits, workers take turns. One request is still open at the end. */
__attribute__((unused)) static void scenes_web(session *s, int workers, double seconds)
{
    session_process(s, 4711, "/usr/local/bin/ruby bin/rails server -p 3000");
    scenes_methods m = scenes_define(s);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_at(s, 1);
    session_call(s, m.run);
    session_at(s, 40);
    scenes_burst(s, m.parse, 40, 200, 40);
    session_at(s, 220);
    session_call(s, m.join);
    session_event(s, EV_THREAD_SUSPENDED, 1, 0);
    char name[32];
    for (int w = 0; w < workers; w++) {
        snprintf(name, sizeof name, "puma srv tp %03d", w + 1);
        session_thread(s, (uint32_t)w + 2, name, false);
        session_event(s, EV_THREAD_STARTED, (uint32_t)w + 2, 0);
        session_switch(s, (uint32_t)w + 2, (uint32_t)w + 2);
        session_call(s, m.run);
        session_call(s, m.sleep);
        session_event(s, EV_THREAD_SUSPENDED, (uint32_t)w + 2, 0);
    }
    uint64_t seed = 7;
    double at = 300;
    for (int i = 0; at + 300 < seconds * 1000; i++) {
        uint32_t id = (uint32_t)(i % workers) + 2;
        double length = 60 + (double)test_random_below(&seed, 160);
        session_at(s, at);
        session_event(s, EV_THREAD_READY, id, 0);
        session_at(s, at + 8);
        session_event(s, EV_THREAD_RESUMED, id, 0);
        session_switch(s, id, id);
        session_return(s);
        scenes_request(s, &m, at + 10, length);
        if (i % 3 == 1)
            session_gc(s, at + 10 + length, at + 10 + length + 14);
        session_at(s, at + length + 26);
        session_call(s, m.sleep);
        session_event(s, EV_THREAD_SUSPENDED, id, 0);
        at += length + 30 + (double)test_random_below(&seed, 60);
    }
    session_at(s, at);
    session_event(s, EV_THREAD_RESUMED, 2, 0);
    session_switch(s, 2, 2);
    session_return(s);
    session_call(s, m.handle);
    session_call(s, m.dispatch);
    for (int i = 0; i < 12; i++) {
        session_at(s, at + i);
        session_call(s, m.layers[i]);
    }
    session_at(s, seconds * 1000);
    session_event(s, EV_CUT, 0, session_position(s, 60)); /* nothing is that deep: only tells the time */
}

static void scenes_fib(session *s, uint32_t method, uint32_t times, int n, double begin, double end)
{
    session_at(s, begin);
    session_call(s, method);
    if (n > 1) {
        double gap = (end - begin) * 0.02, middle = begin + (end - begin) * 0.62;
        scenes_fib(s, method, times, n - 1, begin + gap, middle - gap);
        scenes_fib(s, method, times, n - 2, middle, end - gap);
    } else {
        session_leaf(s, times, begin + (end - begin) * 0.2, begin + (end - begin) * 0.8);
    }
    session_at(s, end);
    session_return(s);
}

/* ruby fib.rb: one thread, a recursion, ended. */
__attribute__((unused)) static void scenes_script(session *s)
{
    session_process(s, 99, "ruby fib.rb");
    uint32_t top = session_method(s, "Object#fib", EV_METHOD_RUBY), add = session_method(s, "Integer#+", EV_METHOD_C);
    uint32_t puts = session_method(s, "Kernel#puts", EV_METHOD_C), write = session_method(s, "IO#write", EV_METHOD_C);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    scenes_fib(s, top, add, 11, 5, 300);
    session_gc(s, 305, 317);
    scenes_fib(s, top, add, 9, 322, 400);
    session_at(s, 402);
    session_call(s, puts);
    session_leaf(s, write, 403, 415);
    session_at(s, 418);
    session_return(s);
    session_run(s);
    CHECK_EQ(sim_stream_close(s->sim, s->stream), 0);
}

static void scenes_work(session *s, uint32_t method, uint32_t leaf, double begin, double end, int n)
{
    session_at(s, begin);
    session_call(s, method);
    scenes_burst(s, leaf, begin + 0.1 * (end - begin), end - 0.1 * (end - begin), n);
    session_at(s, end);
    session_return(s);
}

/* Threads of a parallel test run in three processes, one of them with a Ractor. */
__attribute__((unused)) static void scenes_processes(session *s)
{
    static const char *const commands[] = {"ruby -S rake test", "ruby bin/worker 1", "ruby bin/worker 2"};
    uint64_t seed = 3;
    for (uint32_t p = 0; p < 4; p++) {
        session_at(s, 200.0 * p);
        session_process_of(s, p == 3 ? 1002 : 1000 + p, p == 3 ? 2 : 1, commands[p < 3 ? p : 2]);
        uint32_t run = session_method(s, "Minitest::Runnable.run", EV_METHOD_RUBY);
        uint32_t check = session_method(s, p == 1 ? "WorkerTest#test_one" : "RakeTest#test_two", EV_METHOD_RUBY);
        session_thread(s, 1, "", p != 3);
        session_switch(s, 1, 1);
        session_call(s, run);
        for (double at = 200.0 * p + 50; at < 3000;) {
            double length = 20 + (double)test_random_below(&seed, 200);
            scenes_work(s, check, run, at, at + length, 6);
            at += length + 30;
        }
        session_gc(s, 1500, 1530);
        session_at(s, 3000);
        session_return(s);
    }
}

/* Many threads, a few of them alive at any time but for some that stay. */
__attribute__((unused)) static void scenes_threads(session *s, uint32_t count)
{
    session_process(s, 31, "ruby pool.rb");
    uint32_t work = session_method(s, "Pool#work", EV_METHOD_RUBY), leaf = session_method(s, "Digest::SHA256#update", EV_METHOD_C);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_call(s, work);
    for (uint32_t t = 0; t < count; t++) {
        session_at(s, 10 + 5 * t);
        session_event(s, EV_THREAD_STARTED, t + 2, 0);
        session_event(s, EV_THREAD_READY, t + 2, 0);
    }
    for (uint32_t t = 0; t < count; t++) {
        double at = 10 + 5 * count + 40 * t;
        session_at(s, at);
        session_event(s, EV_THREAD_RESUMED, t + 2, 0);
        session_switch(s, t + 2, t + 2);
        scenes_work(s, work, leaf, at + 1, at + 35, 5);
        session_event(s, EV_THREAD_SUSPENDED, t + 2, 0);
    }
}

/* A recursion that is very deep for a short time, on the way up. */
__attribute__((unused)) static void scenes_deep(session *s, uint32_t depth)
{
    session_process(s, 32, "ruby deep.rb");
    uint32_t down = session_method(s, "Tree#walk", EV_METHOD_RUBY), leaf = session_method(s, "Hash#[]", EV_METHOD_C);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_at(s, 1);
    session_call(s, down);
    scenes_burst(s, leaf, 2, 900, 100);
    for (uint32_t i = 1; i < depth; i++) {
        session_at(s, 1000 + 500.0 * i / depth);
        session_call(s, down);
    }
    for (uint32_t i = 1; i < depth; i++) {
        session_at(s, 1600 + 500.0 * i / depth);
        session_return(s);
    }
    scenes_burst(s, leaf, 2200, 3000, 100);
}

/* Enumerators: the root fiber and two others take turns, one of them is left behind unfinished. */
__attribute__((unused)) static void scenes_fibers(session *s)
{
    session_process(s, 33, "ruby fibers.rb");
    uint32_t main = session_method(s, "Object#consume", EV_METHOD_RUBY), next = session_method(s, "Enumerator#next", EV_METHOD_C);
    uint32_t each = session_method(s, "Feed#each", EV_METHOD_RUBY), item = session_method(s, "Feed#item", EV_METHOD_RUBY);
    session_thread(s, 1, "", true);
    session_switch(s, 1, 1);
    session_at(s, 5);
    session_call(s, main);
    for (int i = 0; i < 40; i++) {
        double at = 10 + i * 20;
        uint32_t fiber = i < 10 ? 2 : 3;
        session_at(s, at);
        session_call(s, next);
        session_at(s, at + 2);
        session_switch(s, fiber, 1);
        if (i == 0 || i == 10)
            session_call(s, each);
        session_leaf(s, item, at + 3, at + 12);
        session_at(s, at + 13);
        session_switch(s, 1, 1);
        session_at(s, at + 14);
        session_return(s);
    }
    session_at(s, 820);
    session_return(s);
}

#endif
