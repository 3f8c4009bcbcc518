/* Programs join, send, leave, die and lie. The other end of a real socket and a real shared ring, in one process. */
#include "base/mem.h"
#include "base/vec.h"
#include "intake/intake.h"
#include "program.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

typedef struct site {
    char folder[64], path[96];
    block_pool *pool;
    intake *in;
} site;

static void open_site(site *s, pid_t watch_pid)
{
    strcpy(s->folder, "/tmp/rrtrace-test-XXXXXX");
    CHECK(mkdtemp(s->folder));
    snprintf(s->path, sizeof s->path, "%s/session", s->folder);
    int fd = program_listen(s->path);
    CHECK_EQ(block_pool_new(&s->pool, 8), 0);
    CHECK_EQ(intake_start(&s->in, &(intake_desc){.pool = s->pool, .listen_fd = fd, .socket_path = s->path, .watch_pid = watch_pid}), 0);
}

static void close_site(site *s)
{
    intake_stop(s->in);
    block_pool_delete(s->pool);
    struct stat st;
    CHECK(stat(s->path, &st) != 0 && stat(s->folder, &st) != 0); /* nothing is left behind */
}

/* The next block of any kind; fails after 20 s. */
static block *next_block(const site *s)
{
    block *b = NULL;
    CHECK_EQ(block_pool_wait(s->pool, &b, 1, 20000), 1);
    return b;
}

static void wait_until_over(const site *s)
{
    for (int i = 0; i < 2000 && !intake_is_over(s->in); i++)
        usleep(10000);
    CHECK(intake_is_over(s->in));
}

typedef struct sender {
    ring *r;
    uint64_t seed, count;
} sender;

/* Random records: events, and definitions of any length with payloads that look like events. */
static void *send_records(void *argument)
{
    sender *s = argument;
    uint64_t state = s->seed;
    static ev record[EV_DEFINE_BYTES_MAX / 16 + 1];
    for (uint64_t i = 0; i < s->count; i++) {
        uint64_t slots = 1;
        if (test_random_below(&state, 400) == 0) {
            uint32_t bytes = (uint32_t)test_random_below(&state, test_random_below(&state, 20) ? 300 : EV_DEFINE_BYTES_MAX + 1);
            record[0] = ev_make(EV_DEFINE, i, ev_define_number(EV_DEFINE_STRING, 1), bytes);
            slots += ev_define_slots(bytes);
            for (uint64_t k = 1; k < slots; k++)
                record[k] = (ev){UINT64_MAX / 3 * 2, 0xAAAAAAAA, 0xAAAAAAAA};
        } else {
            record[0] = ev_make(EV_CALL, i, (uint32_t)i, 0);
        }
        program_push(s->r, record, slots);
    }
    return NULL;
}

TEST(all_records_arrive_whole_and_in_order_through_a_small_ring_and_a_small_pool)
{
    site s;
    open_site(&s, 0);
    sender from = {.seed = test_seed(9), .count = 300000};
    int fd = program_join(s.path, &from.r, RING_SLOTS_MIN);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_records, &from), 0);
    block *b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_STREAM_BEGINS);
    CHECK_EQ(b->pid, getpid());
    CHECK_EQ(b->clock_source, CLOCK_SOURCE_MONOTONIC);
    block_pool_give(s.pool, b);
    uint64_t seen = 0;
    while (seen < from.count) {
        b = next_block(&s);
        CHECK_EQ(b->kind, BLOCK_EVENTS_KIND);
        for (uint32_t i = 0; i < b->event_count; i++) {
            ev e = b->events[i];
            if (ev_kind_of(e) == EV_DEFINE && ev_define_what(e) == EV_DEFINE_CLOCK) {
                i += ev_define_slots(e.place); /* intake's own */
                continue;
            }
            CHECK_EQ(ev_ticks_of(e), seen);
            seen++;
            if (ev_kind_of(e) == EV_DEFINE) {
                CHECK(ev_define_slots(e.place) < b->event_count - i);
                i += ev_define_slots(e.place);
            }
        }
        block_pool_give(s.pool, b);
    }
    pthread_join(thread, NULL);
    close(fd); /* no goodbye: as if killed */
    b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_STREAM_ENDS);
    CHECK(!b->said_bye && !b->problem);
    wait_until_over(&s);
    close_site(&s);
}

TEST(events_in_the_ring_of_a_program_that_died_still_arrive)
{
    site s;
    open_site(&s, 0);
    ring *r;
    int fd = program_join(s.path, &r, RING_SLOTS_MIN);
    block_pool_give(s.pool, next_block(&s));
    ev events[500];
    for (uint32_t i = 0; i < 500; i++)
        events[i] = ev_make(EV_CALL, i, i, 0);
    program_push(r, events, 500);
    close(fd);
    uint32_t seen = 0;
    block *b;
    while ((b = next_block(&s))->kind == BLOCK_EVENTS_KIND) {
        seen += b->event_count;
        block_pool_give(s.pool, b);
    }
    CHECK_EQ(seen, 500);
    CHECK_EQ(b->kind, BLOCK_STREAM_ENDS);
    close_site(&s);
}

TEST(a_goodbye_is_answered_when_asked_to)
{
    site s;
    open_site(&s, getpid());
    ring *r;
    int fd = program_join(s.path, &r, RING_SLOTS_MIN);
    CHECK(!intake_is_over(s.in));
    hs_message bye = {.magic = HS_MAGIC, .version = HS_VERSION, .type = HS_BYE}, answer;
    program_say(fd, &bye, sizeof bye, -1);
    block_pool_give(s.pool, next_block(&s));
    block *b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_STREAM_ENDS);
    CHECK(b->said_bye);
    uint32_t stream = b->stream;
    block_pool_give(s.pool, b);
    CHECK_EQ(recv(fd, &answer, sizeof answer, MSG_DONTWAIT), -1);
    intake_done(s.in, stream);
    CHECK_EQ(program_hear(fd, &answer), HS_DONE);
    close(fd);
    wait_until_over(&s); /* the watched process lives, but has said goodbye */
    close_site(&s);
}

TEST(a_session_lasts_while_its_watched_process_lives)
{
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    site s;
    open_site(&s, pid);
    usleep(100000);
    CHECK(!intake_is_over(s.in));
    int pending = program_dial(s.path); /* a connection alone keeps it open, too */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    usleep(200000);
    CHECK(!intake_is_over(s.in));
    close(pending);
    wait_until_over(&s);
    close_site(&s);
}

static void refused(const site *s, const void *message, size_t bytes, int memory_fd, const char *part_of_reason)
{
    int fd = program_dial(s->path);
    hs_message answer;
    program_say(fd, message, bytes, memory_fd);
    CHECK_EQ(program_hear(fd, &answer), HS_REFUSED);
    if (!strstr(answer.text, part_of_reason))
        TEST_FAILED("refused with \"%s\", wanted \"…%s…\"", answer.text, part_of_reason);
    CHECK_EQ(recv(fd, &answer, sizeof answer, 0), 0); /* and hung up */
    close(fd);
}

TEST(liars_are_refused_with_a_reason_and_disturb_nobody)
{
    site s;
    open_site(&s, 0);
    ring *good_ring;
    int good = program_join(s.path, &good_ring, RING_SLOTS_MIN), memory_fd;
    block_pool_give(s.pool, next_block(&s));

    ring *r = program_ring(&memory_fd, RING_SLOTS_MIN);
    hs_message m = program_hello(RING_SLOTS_MIN);
    refused(&s, "nonsense", 8, -1, "not a message");
    refused(&s, &m, sizeof m, -1, "no shared memory");
    m.ring_bytes *= 2;
    refused(&s, &m, sizeof m, memory_fd, "not as large");
    m.ring_bytes = UINT64_MAX;
    refused(&s, &m, sizeof m, memory_fd, "not as large");
    m = program_hello(RING_SLOTS_MIN);
    m.version++;
    refused(&s, &m, sizeof m, memory_fd, "different versions");
    m = program_hello(RING_SLOTS_MIN);
    m.type = HS_DONE;
    refused(&s, &m, sizeof m, memory_fd, "unexpected");
    r->slot_count = 3;
    m = program_hello(RING_SLOTS_MIN);
    refused(&s, &m, sizeof m, memory_fd, "power of two");

    ev e = ev_make(EV_CALL, 1, 1, 0);
    program_push(good_ring, &e, 1);
    block *b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_EVENTS_KIND);
    CHECK_EQ(b->event_count, 1);
    close(good);
    close_site(&s);
}

static void damaged(ev e, const char *part_of_problem)
{
    site s;
    open_site(&s, 0);
    ring *r;
    int fd = program_join(s.path, &r, RING_SLOTS_MIN);
    block_pool_give(s.pool, next_block(&s));
    ev events[3] = {ev_make(EV_CALL, 1, 1, 0), ev_make(EV_CALL, 2, 1, 0), e};
    program_push(r, events, 3);
    block *b = next_block(&s);
    CHECK_EQ(b->event_count, 2); /* what was sound is kept */
    block_pool_give(s.pool, b);
    b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_STREAM_ENDS);
    CHECK(b->problem && strstr(b->problem, part_of_problem));
    close(fd);
    close_site(&s);
}

/* Takes all that the limit leaves but so many. Returns how many it took. */
static int take_descriptors(int *taken, int max, int left)
{
    int count = 0;
    while (count < max && (taken[count] = dup(0)) >= 0)
        count++;
    CHECK(count < max && count >= left);
    for (; left > 0; left--)
        close(taken[--count]);
    return count;
}

static hs_type knock(int fd, const struct sockaddr_un *address, int memory_fd, hs_message *answer)
{
    hs_message hello = program_hello(RING_SLOTS_MIN);
    CHECK_EQ(connect(fd, (const struct sockaddr *)address, sizeof *address), 0);
    usleep(50000); /* so that it is not let in and greeted in one go */
    if (memory_fd >= 0)
        program_say(fd, &hello, sizeof hello, memory_fd);
    return program_hear(fd, answer);
}

TEST(a_program_that_no_descriptor_is_left_for_is_refused_and_counted)
{
    enum { LIMIT = 64 };
    site s;
    struct rlimit old, low;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int taken[LIMIT], fds[3], memory_fd;
    hs_message answer;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){LIMIT, old.rlim_max};
    open_site(&s, 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    strcpy(address.sun_path, s.path);
    for (int i = 0; i < 3; i++)
        fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    program_ring(&memory_fd, RING_SLOTS_MIN);
    for (int left = 0; left < 2; left++) { /* none for its socket; one for that, and none for its ring */
        int count = take_descriptors(taken, LIMIT, left);
        CHECK_EQ(knock(fds[left], &address, left ? memory_fd : -1, &answer), HS_REFUSED);
        CHECK(strstr(answer.text, "too many files open"));
        while (count > 0)
            close(taken[--count]);
        for (int i = 0; i < 2000 && intake_stats_of(s.in).turned_away <= (uint64_t)left; i++)
            usleep(1000);
        CHECK_EQ(intake_stats_of(s.in).turned_away, left + 1);
    }
    CHECK_EQ(knock(fds[2], &address, memory_fd, &answer), HS_WELCOME); /* when there is room again */
    CHECK_EQ(intake_stats_of(s.in).turned_away, 2);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    close(memory_fd);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    close_site(&s);
}

static int descriptor_count(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(a_program_takes_one_descriptor_until_it_is_told_that_all_is_done)
{
    site s;
    ring *r;
    hs_message bye = {.magic = HS_MAGIC, .version = HS_VERSION, .type = HS_BYE}, answer;
    open_site(&s, 0);
    int before = descriptor_count();
    int fd = program_join(s.path, &r, RING_SLOTS_MIN);
    block *b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_STREAM_BEGINS);
    block_pool_give(s.pool, b);
    CHECK_EQ(descriptor_count(), before + 2); /* the program's, and intake's */
    program_say(fd, &bye, sizeof bye, -1);
    b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_STREAM_ENDS);
    block_pool_give(s.pool, b);
    CHECK_EQ(descriptor_count(), before + 2);
    intake_done(s.in, 0);
    CHECK_EQ(program_hear(fd, &answer), HS_DONE);
    CHECK_EQ(descriptor_count(), before + 1);
    close(fd);
    close_site(&s);
}

TEST(a_ring_with_nonsense_in_it_ends_its_stream_with_a_reason)
{
    damaged(ev_make(EV_DEFINE, 3, ev_define_number(EV_DEFINE_METHOD, 1), UINT32_MAX), "longer than allowed");
    damaged(ev_make(EV_DEFINE, 3, ev_define_number(EV_DEFINE_METHOD, 1), 64), "cut short");
}

TEST(a_write_index_that_lies_ends_in_order)
{
    site s;
    open_site(&s, 0);
    ring *r;
    int fd = program_join(s.path, &r, RING_SLOTS_MIN);
    atomic_store(&r->write_index, UINT64_C(1) << 40);
    block_pool_give(s.pool, next_block(&s));
    for (int i = 0; i < 4; i++)
        block_pool_give(s.pool, next_block(&s)); /* zeroes, for as long as it lies; asan watches */
    close(fd);
    block *b;
    while ((b = next_block(&s))->kind == BLOCK_EVENTS_KIND)
        block_pool_give(s.pool, b);
    CHECK_EQ(b->kind, BLOCK_STREAM_ENDS);
    close_site(&s);
}

TEST(how_often_a_program_has_waited_is_in_its_stream_before_the_end)
{
    site s;
    open_site(&s, 0);
    ring *r;
    int fd = program_join(s.path, &r, RING_SLOTS_MIN);
    ev call = ev_make(EV_CALL, 77, 1, 0);
    program_push(r, &call, 1);
    atomic_store(&r->waits, 5);
    close(fd);
    uint64_t waited = 0;
    uint32_t counted = 0;
    for (bool has_ended = false; !has_ended;) {
        block *b = next_block(&s);
        has_ended = b->kind == BLOCK_STREAM_ENDS;
        for (uint32_t i = 0; b->kind == BLOCK_EVENTS_KIND && i < b->event_count; i += ev_slots(b->events[i])) {
            ev e = b->events[i];
            ev_waited_def def;
            CHECK_EQ(ev_ticks_of(e), 77);
            if (ev_kind_of(e) != EV_DEFINE || ev_define_what(e) != EV_DEFINE_WAITED)
                continue;
            CHECK_EQ(e.place, sizeof def);
            memcpy(&def, &b->events[i + 1], sizeof def);
            waited += def.count;
            counted++;
        }
        block_pool_give(s.pool, b);
    }
    CHECK_EQ(waited, 5);
    CHECK_EQ(counted, 1);
    wait_until_over(&s);
    close_site(&s);
}
