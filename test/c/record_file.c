/* What is written is read back, bit for bit: streams of all kinds, several at once, names without the events. */
#include "record_stream.h"

#include "base/crc.h"
#include "base/mem.h"

static void write_stream(record_writer *w, uint32_t stream, const event_vec *events, size_t block_size, uint64_t *state)
{
    for (size_t i = 0, end; i < events->count; i = end) {
        end = block_end(events, i, 1 + test_random_below(state, block_size));
        CHECK_EQ(record_writer_events(w, stream, events->items + i, end - i), 0);
        if (test_random_below(state, 50) == 0)
            CHECK_EQ(record_writer_flush(w), 0); /* the chunk ends here */
    }
}

static void round_trip(uint64_t seed, const stream_how *how, size_t block_size)
{
    uint64_t state = seed;
    event_vec events = {0}, back = {0};
    stream_make(&events, &state, how);
    const char *path = temp_file("round.rrt");
    record_writer *w = open_writer(path);
    CHECK_EQ(record_writer_stream_begins(w, 0, 4711, 2, 5), 0);
    write_stream(w, 0, &events, block_size, &state);
    CHECK_EQ(record_writer_stream_ends(w, 0, NULL), 0);
    CHECK_EQ(record_writer_finish(w), 0);
    CHECK(!record_writer_problem(w));
    record_writer_close(w);

    record_reader *r = open_reader(path);
    read_stream(r, 0, &back);
    same_events(&back, &events, seed);
    record_info info = record_info_of(r);
    CHECK_STR(info.problem, "");
    CHECK(info.is_complete);
    CHECK_EQ(info.stream_count, 1);
    record_stream st = record_stream_at(r, 0);
    CHECK_EQ(st.pid, 4711);
    CHECK_EQ(st.clock_source, 2);
    CHECK(st.has_begun && st.has_ended);
    CHECK_EQ(st.event_count, info.event_count);
    record_close(r);
    vec_free(&events);
    vec_free(&back);
}

TEST(random_streams_come_back_bit_for_bit)
{
    uint64_t seed = test_seed(1);
    for (int i = 0; i < 150; i++, seed++) {
        uint64_t state = seed * 77 + 1;
        stream_how how = random_how(&state, 1 + (uint32_t)test_random_below(&state, 6000));
        round_trip(seed, &how, 1 + test_random_below(&state, 3000));
    }
    temp_remove();
}

TEST(streams_longer_than_a_chunk_come_back_bit_for_bit)
{
    uint64_t seed = test_seed(1000);
    for (int i = 0; i < 3; i++, seed++) {
        uint64_t state = seed * 77 + 1;
        stream_how how = random_how(&state, 300000);
        round_trip(seed, &how, i == 0 ? 400000 : 16384);
    }
    temp_remove();
}

TEST(any_bits_at_all_come_back)
{
    uint64_t seed = test_seed(2000);
    for (int i = 0; i < 60; i++, seed++) {
        uint64_t state = seed;
        event_vec events = {0}, back = {0};
        uint32_t few = 1 + (uint32_t)test_random_below(&state, 40); /* values repeat, so that guesses are right by chance */
        for (int k = 0; k < 3000; k++) {
            uint64_t head = test_random_below(&state, 3) ? test_random(&state) : (uint64_t)k * test_random_below(&state, 1000);
            ev e = {head, (uint32_t)test_random_below(&state, few), (uint32_t)test_random_below(&state, few) * 0x1234567u};
            if (test_random_below(&state, 10) == 0)
                e = (ev){head, (uint32_t)test_random(&state), (uint32_t)test_random(&state)};
            if (ev_kind_of(e) == EV_DEFINE)
                e.place = 0;
            stream_add(&events, e);
        }
        record_writer *w = open_writer(temp_file("any.rrt"));
        CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
        write_stream(w, 0, &events, 2000, &state);
        record_writer_close(w);
        record_reader *r = open_reader(temp_file("any.rrt"));
        read_stream(r, 0, &back);
        same_events(&back, &events, seed);
        record_close(r);
        vec_free(&events);
        vec_free(&back);
    }
    temp_remove();
}

TEST(several_streams_each_keep_their_order)
{
    uint64_t state = test_seed(3000);
    enum { STREAMS = 9 };
    event_vec events[STREAMS] = {0};
    size_t at[STREAMS] = {0};
    record_writer *w = open_writer(temp_file("several.rrt"));
    for (uint32_t s = 0; s < STREAMS; s++) {
        stream_how how = random_how(&state, 500 + (uint32_t)test_random_below(&state, 30000));
        stream_make(&events[s], &state, &how);
        CHECK_EQ(record_writer_stream_begins(w, s, 100 + s, 1, s + 1), 0);
    }
    for (uint32_t open = STREAMS; open > 0;) {
        uint32_t s = (uint32_t)test_random_below(&state, STREAMS);
        if (at[s] == events[s].count)
            continue;
        size_t end = block_end(&events[s], at[s], 1 + test_random_below(&state, 2000));
        CHECK_EQ(record_writer_events(w, s, events[s].items + at[s], end - at[s]), 0);
        at[s] = end;
        if (end == events[s].count) {
            CHECK_EQ(record_writer_stream_ends(w, s, s == 4 ? "the ring's index ran away" : NULL), 0);
            open--;
        }
    }
    record_writer_close(w);
    record_reader *r = open_reader(temp_file("several.rrt"));
    CHECK_EQ(record_info_of(r).stream_count, STREAMS);
    for (uint32_t s = 0; s < STREAMS; s++) {
        event_vec back = {0};
        read_stream(r, s, &back);
        same_events(&back, &events[s], s);
        CHECK_EQ(record_stream_at(r, s).pid, 100 + s);
        vec_free(&back);
        vec_free(&events[s]);
    }
    for (uint32_t i = 0; i < record_chunk_count(r); i++) {
        char text[100];
        if (record_chunk_at(r, i).kind == RECORD_STREAM_ENDS) {
            CHECK_EQ(record_read_text(r, i, text, sizeof text), 0);
            CHECK_STR(text, record_chunk_at(r, i).stream == 4 ? "the ring's index ran away" : "");
        }
    }
    record_trouble trouble;
    uint32_t from = 0;
    CHECK(record_next_trouble(r, &from, &trouble));
    CHECK_EQ(trouble.pid, 104);
    CHECK_STR(trouble.text, "the ring's index ran away");
    CHECK(!record_next_trouble(r, &from, &trouble));
    record_close(r);
    temp_remove();
}

static void take_definition(void *context, ev head, const void *payload)
{
    stream_add(context, head);
    stream_add_payload(context, payload, head.place);
}

TEST(definitions_are_read_without_the_events_and_only_those_before_a_chunk)
{
    uint64_t seed = test_seed(4000), state = seed;
    stream_how how = random_how(&state, 20000);
    how.define_per_mille = 30;
    event_vec events = {0};
    stream_make(&events, &state, &how);
    record_writer *w = open_writer(temp_file("definitions.rrt"));
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    write_stream(w, 0, &events, 300, &state);
    record_writer_close(w);

    record_reader *r = open_reader(temp_file("definitions.rrt"));
    size_t before = 0;
    CHECK(record_chunk_count(r) > 3);
    for (uint32_t i = 0; i <= record_chunk_count(r); i++) {
        event_vec got = {0}, want = {0};
        uint32_t count = 0;
        for (size_t k = 0; k < before; k++) {
            uint32_t slots = ev_kind_of(events.items[k]) == EV_DEFINE ? 1 + ev_define_slots(events.items[k].place) : 0;
            for (uint32_t s = 0; s < slots; s++)
                stream_add(&want, events.items[k + s]);
            k += slots ? slots - 1 : 0;
            count += slots > 0;
        }
        CHECK_EQ(record_definitions(r, 0, i, take_definition, &got), 0);
        same_events(&got, &want, seed);
        vec_free(&got);
        vec_free(&want);
        if (i < record_chunk_count(r) && record_chunk_at(r, i).kind == RECORD_EVENTS)
            before += record_chunk_at(r, i).slot_count;
    }
    CHECK_EQ(before, events.count);
    record_close(r);
    vec_free(&events);
    temp_remove();
}

TEST(a_chunk_says_when_its_events_were)
{
    event_vec events = {0};
    stream_add_clock(&events, 1000, 5000000);
    stream_add_clock(&events, 2000, 5002000);
    stream_add(&events, ev_make(EV_SWITCH, 3000, 1, 1));
    record_writer *w = open_writer(temp_file("times.rrt"));
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 4999999), 0);
    CHECK_EQ(record_writer_events(w, 0, events.items, events.count), 0);
    CHECK_EQ(record_writer_flush(w), 0);
    ev later = ev_make(EV_CALL, 4000, 1, 800);
    CHECK_EQ(record_writer_events(w, 0, &later, 1), 0);
    record_writer_close(w);
    record_reader *r = open_reader(temp_file("times.rrt"));
    CHECK_EQ(record_chunk_count(r), 3);
    CHECK_EQ(record_chunk_at(r, 1).begin_ns, 5000000);
    CHECK_EQ(record_chunk_at(r, 1).end_ns, 5004000);
    CHECK_EQ(record_chunk_at(r, 1).event_count, 3);
    CHECK_EQ(record_chunk_at(r, 1).define_count, 2);
    CHECK_EQ(record_chunk_at(r, 2).begin_ns, 5006000);
    CHECK_EQ(record_info_of(r).begin_ns, 5000000);
    CHECK_EQ(record_info_of(r).end_ns, 5006000);
    CHECK_EQ(record_stream_at(r, 0).begin_ns, 4999999);
    record_close(r);
    vec_free(&events);
    temp_remove();
}

TEST(a_quiet_programs_events_reach_the_file_after_about_a_second)
{
    record_writer *w = open_writer(temp_file("quiet.rrt"));
    CHECK_EQ(record_writer_stream_begins(w, 0, 1, 1, 1), 0);
    ev e = ev_make(EV_CALL, 4000, 1, 800);
    CHECK_EQ(record_writer_events(w, 0, &e, 1), 0);
    for (int i = 0; i < 3000 && record_writer_stats_of(w).event_count == 0; i++)
        usleep(10000);
    CHECK_EQ(record_writer_stats_of(w).event_count, 1);
    record_reader *r = open_reader(temp_file("quiet.rrt"));
    event_vec back = {0};
    read_stream(r, 0, &back);
    CHECK_EQ(back.count, 1);
    CHECK(!record_info_of(r).is_complete);
    CHECK(strstr(record_info_of(r).problem, "quiet.rrt: it is still being recorded: read up to"));
    record_close(r);
    vec_free(&back);
    record_writer_close(w);
    temp_remove();
}

TEST(a_quiet_program_beside_a_busy_one_reaches_the_file_too)
{
    record_writer *w = open_writer(temp_file("beside.rrt"));
    uint64_t state = 3;
    event_vec busy = {0};
    stream_how how = random_how(&state, 20000);
    stream_make(&busy, &state, &how);
    for (uint32_t s = 0; s < 2; s++)
        CHECK_EQ(record_writer_stream_begins(w, s, 1, 1, 1), 0);
    ev e = ev_make(EV_CALL, 4000, 1, 800);
    CHECK_EQ(record_writer_events(w, 1, &e, 1), 0);
    bool is_there = false;
    for (int i = 0; i < 3000 && !is_there; i++) {
        for (int k = 0; k < 10; k++) /* the packing thread has always something to do */
            CHECK_EQ(record_writer_events(w, 0, busy.items, busy.count), 0);
        if (i % 20 != 19)
            continue;
        record_reader *r = open_reader(temp_file("beside.rrt"));
        event_vec back = {0};
        read_stream(r, 1, &back);
        is_there = back.count == 1;
        vec_free(&back);
        record_close(r);
    }
    CHECK(is_there);
    record_writer_close(w);
    vec_free(&busy);
    temp_remove();
}

TEST(a_file_is_followed_while_it_is_written)
{
    uint64_t state = 9;
    event_vec events = {0}, back = {0};
    stream_how how = random_how(&state, 5000);
    stream_make(&events, &state, &how);
    const char *path = temp_file("followed.rrt");
    record_writer *w = open_writer(path);
    record_reader *r = open_reader(path);
    CHECK_EQ(record_refresh(r), 0);
    CHECK_EQ(record_writer_stream_begins(w, 0, 4711, 1, 1), 0);
    for (size_t i = 0, end; i < events.count; i = end) {
        end = block_end(&events, i, 700);
        CHECK_EQ(record_writer_events(w, 0, events.items + i, end - i), 0);
        CHECK_EQ(record_writer_flush(w), 0);
        CHECK_EQ(record_refresh(r), i == 0 ? 2 : 1);
        CHECK_EQ(record_stream_at(r, 0).pid, 4711);
        back.count = 0;
        read_stream(r, 0, &back);
        CHECK_EQ(back.count, end);
        CHECK(memcmp(back.items, events.items, end * sizeof(ev)) == 0);
        if (i % 3 == 0) { /* an index in between is no chunk to anyone, and no obstacle */
            CHECK_EQ(record_writer_settle(w), 0);
            CHECK_EQ(record_refresh(r), 0);
        }
        if (i % 2100 == 0) {
            record_close(r);
            r = open_reader(path);
        }
    }
    CHECK_EQ(record_writer_finish(w), 0);
    CHECK_EQ(record_refresh(r), 0);
    record_close(r);

    /* Half a chunk at the end is not there yet. */
    struct stat st;
    CHECK_EQ(stat(path, &st), 0);
    r = open_reader(path);
    record_chunk last = record_chunk_at(r, record_chunk_count(r) - 1);
    uint32_t chunks = record_chunk_count(r);
    record_close(r);
    CHECK_EQ(truncate(path, (off_t)(last.offset + last.bytes - 1)), 0);
    r = open_reader(path);
    CHECK_EQ(record_chunk_count(r), chunks - 1);
    CHECK_EQ(record_refresh(r), 0);
    CHECK_EQ(truncate(path, st.st_size), 0); /* with a zero for its last byte: whole by its head, spoiled by its checksum */
    CHECK_EQ(record_refresh(r), 1);
    record_close(r);
    record_writer_close(w);
    vec_free(&events);
    vec_free(&back);
    temp_remove();
}

TEST(an_empty_session_is_a_whole_recording)
{
    record_writer *w = open_writer(temp_file("empty.rrt"));
    CHECK_EQ(record_writer_finish(w), 0);
    record_writer_close(w);
    record_reader *r = open_reader(temp_file("empty.rrt"));
    CHECK(record_info_of(r).is_complete);
    CHECK_EQ(record_chunk_count(r), 0);
    CHECK_EQ(record_info_of(r).event_count, 0);
    record_close(r);
    temp_remove();
}

TEST(a_settled_file_is_whole_and_goes_on)
{
    uint64_t seed = test_seed(6000), state = seed;
    event_vec events = {0}, back = {0};
    stream_how how = random_how(&state, 20000);
    stream_make(&events, &state, &how);
    const char *path = temp_file("settled.rrt");
    record_writer *w = open_writer(path);
    CHECK_EQ(record_writer_stream_begins(w, 0, 4711, 2, 5), 0);
    for (size_t i = 0, end; i < events.count; i = end) {
        end = block_end(&events, i, events.count / 4);
        CHECK_EQ(record_writer_events(w, 0, events.items + i, end - i), 0);
        CHECK_EQ(record_writer_settle(w), 0);
        CHECK_EQ(record_writer_settle(w), 0); /* once more is no more */
        event_vec so_far = {.items = events.items, .count = end, .capacity = events.capacity};
        record_reader *r = open_reader(path);
        CHECK(record_info_of(r).is_complete);
        read_stream(r, 0, &back);
        same_events(&back, &so_far, seed);
        record_close(r);
        back.count = 0;
    }
    CHECK_EQ(record_writer_stream_ends(w, 0, NULL), 0);
    CHECK_EQ(record_writer_finish(w), 0);
    record_writer_close(w);
    record_reader *r = open_reader(path);
    record_info info = record_info_of(r);
    CHECK(info.is_complete);
    for (uint32_t i = 0; i < info.chunk_count; i++)
        CHECK(record_chunk_at(r, i).kind != RECORD_OTHER); /* the earlier indices are gone */
    read_stream(r, 0, &back);
    same_events(&back, &events, seed);
    record_close(r);
    vec_free(&events);
    vec_free(&back);
    temp_remove();
}

TEST(a_recording_is_gone_on_with_behind_what_is_there)
{
    uint64_t seed = test_seed(7000), state = seed;
    const char *path = temp_file("on.rrt");
    event_vec events[3] = {0}, back = {0};
    for (uint32_t i = 0; i < 3; i++) {
        stream_how how = random_how(&state, 3000);
        stream_make(&events[i], &state, &how);
        record_writer *w;
        char error[512];
        CHECK_EQ(record_writer_go_on(&w, path, error, sizeof error), 0); /* the first time there is nothing yet */
        CHECK_EQ(record_writer_first_stream(w), i);
        CHECK_EQ(record_writer_stream_begins(w, 0, 100 + i, 1, 5), 0);
        write_stream(w, 0, &events[i], 1000, &state);
        if (i != 1) /* the second is left as a killed recorder leaves it */
            CHECK_EQ(record_writer_stream_ends(w, 0, NULL), 0);
        record_writer_close(w);
        if (i == 1) {
            struct stat st;
            CHECK_EQ(stat(path, &st), 0);
            CHECK_EQ(truncate(path, st.st_size - 30), 0);
        }
    }
    record_reader *r = open_reader(path);
    record_info info = record_info_of(r);
    CHECK_STR(info.problem, "");
    CHECK(info.is_complete);
    CHECK_EQ(info.stream_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(record_stream_at(r, i).pid, 100 + i);
        CHECK_EQ(record_stream_at(r, i).has_ended, i != 1);
        back.count = 0;
        read_stream(r, i, &back);
        same_events(&back, &events[i], seed);
        vec_free(&events[i]);
    }
    record_close(r);
    vec_free(&back);
    temp_remove();
}

/* Files of every version stay readable: this one was written when its version was new. */
TEST(a_recording_of_version_1_is_read_as_it_was_written)
{
    record_reader *r = open_reader(TEST_GOLDEN "/version1.rrt");
    record_info info = record_info_of(r);
    CHECK_STR(info.problem, "");
    CHECK(info.is_complete);
    CHECK_EQ(info.chunk_count, 4);
    event_vec events = {0};
    read_stream(r, 0, &events);
    CHECK_EQ(events.count, 4000);
    CHECK_EQ(crc32c(0, events.items, events.count * sizeof(ev)), 0x5870953d);
    sim_state state = {0};
    CHECK(record_chunk_at(r, 2).has_state);
    CHECK_EQ(record_read_state(r, 2, &state), 0);
    CHECK_EQ(state.threads.count, 4);
    CHECK_EQ(state.fibers.count, 7);
    CHECK_EQ(state.frames.count, 41);
    CHECK_EQ(state.last_ns, 22173);
    char text[64];
    CHECK_EQ(record_read_text(r, 3, text, sizeof text), 0);
    CHECK_STR(text, "the ring's index ran away");
    CHECK_EQ(record_stream_at(r, 0).pid, 4711);
    sim_state_free(&state);
    vec_free(&events);
    record_close(r);
}
