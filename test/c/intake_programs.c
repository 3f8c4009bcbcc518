/* Programs join, send, leave, die and lie. The other end of a real socket and a real shared ring, in one process. */
#include "base/mem.h"
#include "base/vec.h"
#include "intake/intake.h"
#include "wire/clock.h"
#include "wire/handshake.h"
#include "wire/ring.h"

#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, s->path);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(fd, 8), 0);
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

static int dial(const site *s)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, s->path);
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static ring *make_ring(int *memory_fd, uint64_t slots)
{
    *memory_fd = memfd_create("ring", MFD_CLOEXEC);
    CHECK_EQ(ftruncate(*memory_fd, (off_t)ring_bytes(slots)), 0);
    void *memory = mmap(NULL, ring_bytes(slots), PROT_READ | PROT_WRITE, MAP_SHARED, *memory_fd, 0);
    CHECK(memory != MAP_FAILED);
    return ring_init(memory, slots, CLOCK_SOURCE_MONOTONIC, 1);
}

static void say(int fd, const void *message, size_t bytes, int memory_fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = bytes};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (memory_fd >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &memory_fd, sizeof memory_fd);
    }
    CHECK_EQ(sendmsg(fd, &m, 0), (ssize_t)bytes);
}

static hs_type hear(int fd, hs_message *answer)
{
    ssize_t bytes = recv(fd, answer, sizeof *answer, 0);
    CHECK(bytes == (ssize_t)sizeof *answer && hs_message_ok(answer, (size_t)bytes));
    return (hs_type)answer->type;
}

static hs_message hello(uint64_t slots)
{
    return (hs_message){.magic = HS_MAGIC, .version = HS_VERSION, .type = HS_HELLO, .pid = 1, .ring_bytes = ring_bytes(slots), .ractor = 1};
}

static int join(const site *s, ring **r, uint64_t slots)
{
    int memory_fd, fd = dial(s);
    hs_message message = hello(slots);
    *r = make_ring(&memory_fd, slots);
    say(fd, &message, sizeof message, memory_fd);
    close(memory_fd);
    CHECK_EQ(hear(fd, &message), HS_WELCOME);
    return fd;
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

static uint64_t push_batch(ring *r, const ev *events, uint64_t count)
{
    for (;;) {
        ring_lock(r);
        bool room = ring_room(r, count);
        for (uint64_t i = 0; room && i < count; i++)
            ring_put(r, i, events[i]);
        if (room)
            ring_publish(r, count);
        ring_unlock(r);
        if (room)
            return count;
        usleep(100);
    }
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
        push_batch(s->r, record, slots);
    }
    return NULL;
}

TEST(all_records_arrive_whole_and_in_order_through_a_small_ring_and_a_small_pool)
{
    site s;
    open_site(&s, 0);
    sender from = {.seed = test_seed(9), .count = 300000};
    int fd = join(&s, &from.r, RING_SLOTS_MIN);
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
    int fd = join(&s, &r, RING_SLOTS_MIN);
    block_pool_give(s.pool, next_block(&s));
    ev events[500];
    for (uint32_t i = 0; i < 500; i++)
        events[i] = ev_make(EV_CALL, i, i, 0);
    push_batch(r, events, 500);
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
    int fd = join(&s, &r, RING_SLOTS_MIN);
    CHECK(!intake_is_over(s.in));
    hs_message bye = {.magic = HS_MAGIC, .version = HS_VERSION, .type = HS_BYE}, answer;
    say(fd, &bye, sizeof bye, -1);
    block_pool_give(s.pool, next_block(&s));
    block *b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_STREAM_ENDS);
    CHECK(b->said_bye);
    uint32_t stream = b->stream;
    block_pool_give(s.pool, b);
    CHECK_EQ(recv(fd, &answer, sizeof answer, MSG_DONTWAIT), -1);
    intake_done(s.in, stream);
    CHECK_EQ(hear(fd, &answer), HS_DONE);
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
    int pending = dial(&s); /* a connection alone keeps it open, too */
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
    int fd = dial(s);
    hs_message answer;
    say(fd, message, bytes, memory_fd);
    CHECK_EQ(hear(fd, &answer), HS_REFUSED);
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
    int good = join(&s, &good_ring, RING_SLOTS_MIN), memory_fd;
    block_pool_give(s.pool, next_block(&s));

    ring *r = make_ring(&memory_fd, RING_SLOTS_MIN);
    hs_message m = hello(RING_SLOTS_MIN);
    refused(&s, "nonsense", 8, -1, "not a message");
    refused(&s, &m, sizeof m, -1, "no shared memory");
    m.ring_bytes *= 2;
    refused(&s, &m, sizeof m, memory_fd, "not as large");
    m.ring_bytes = UINT64_MAX;
    refused(&s, &m, sizeof m, memory_fd, "not as large");
    m = hello(RING_SLOTS_MIN);
    m.version++;
    refused(&s, &m, sizeof m, memory_fd, "different versions");
    m = hello(RING_SLOTS_MIN);
    m.type = HS_DONE;
    refused(&s, &m, sizeof m, memory_fd, "unexpected");
    r->slot_count = 3;
    m = hello(RING_SLOTS_MIN);
    refused(&s, &m, sizeof m, memory_fd, "power of two");

    ev e = ev_make(EV_CALL, 1, 1, 0);
    push_batch(good_ring, &e, 1);
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
    int fd = join(&s, &r, RING_SLOTS_MIN);
    block_pool_give(s.pool, next_block(&s));
    ev events[3] = {ev_make(EV_CALL, 1, 1, 0), ev_make(EV_CALL, 2, 1, 0), e};
    push_batch(r, events, 3);
    block *b = next_block(&s);
    CHECK_EQ(b->event_count, 2); /* what was sound is kept */
    block_pool_give(s.pool, b);
    b = next_block(&s);
    CHECK_EQ(b->kind, BLOCK_STREAM_ENDS);
    CHECK(b->problem && strstr(b->problem, part_of_problem));
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
    int fd = join(&s, &r, RING_SLOTS_MIN);
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
