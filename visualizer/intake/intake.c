#include "intake/intake.h"

#include "base/mem.h"
#include "base/vec.h"
#include "intake/connection.h"
#include "wire/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Between rounds the rings fill. The fastest program seen writes 35 events a microsecond, a million in 30 ms: a quarter of the
 * time that it needs for what is free in the fullest ring. Longer sleeps make larger batches, which cost less; what a window
 * shows is late by half a frame at most. */
#define SLOTS_A_MS UINT64_C(131072)
#define SLEEP_MIN_MS 1
#define SLEEP_MAX_MS 8
#define CALIBRATION_NS UINT64_C(1000000000)
#define BLOCKS_A_TURN 8u /* of one ring before the next one's turn */

struct intake {
    intake_desc desc;
    pthread_t thread;
    int wake_pipe[2]; /* [1] is written to by intake_stop */
    int spare_fd;     /* given up for a moment to turn a program away when there is no other; -1: none just now */
    bool is_full;     /* not even that was there: look at the listening socket again in the next round */
    int watch_fd;     /* pidfd of watch_pid, -1: not watched, or gone */
    bool watch_over;
    VEC(connection *) connections; /* owned; NULL: ended */
    uint32_t stream_count;
    uint64_t event_count, ended_dropped, ended_waits, turned_away;
    VEC(struct pollfd) polled;
    VEC(int) done_fds; /* by stream, under the mutex: the socket for intake_done once the stream has ended; -1: not yet, or closed */
    pthread_mutex_t mutex;
    intake_stats stats; /* under the mutex */
    _Atomic bool is_over, stops; /* relaxed: hints; nothing else is read because of them */
};

/* ---- joining -------------------------------------------------------------------------------------------------- */

static int accept_socket(const intake *in) { return accept4(in->desc.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }
static int open_spare(void) { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

/* No descriptor is left. Whoever waits to be let in would wait for long, and poll would say so again and again. */
static void turn_one_away(intake *in)
{
    in->spare_fd = in->spare_fd >= 0 ? in->spare_fd : open_spare();
    in->is_full = in->spare_fd < 0;
    if (in->is_full)
        return;
    close(in->spare_fd);
    int fd = accept_socket(in);
    if (fd >= 0) {
        connection_send(fd, HS_REFUSED, CONNECTION_TOO_MANY);
        close(fd);
        in->turned_away++;
    }
    in->spare_fd = open_spare();
}

static void accept_one(intake *in)
{
    int fd = accept_socket(in);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        turn_one_away(in);
    if (fd < 0)
        return;
    if (!vec_reserve(&in->connections, in->connections.count + 1)) {
        close(fd);
        return;
    }
    connection *c = connection_new(fd);
    if (c)
        in->connections.items[in->connections.count++] = c;
}

/* Tell the simulation about a stream; false: no block is free, try again next round. */
static bool announce(intake *in, connection *c)
{
    block *b = block_pool_take(in->desc.pool);
    if (!b)
        return false;
    pthread_mutex_lock(&in->mutex);
    int *done_fd = vec_push(&in->done_fds);
    if (done_fd)
        *done_fd = -1;
    pthread_mutex_unlock(&in->mutex);
    if (!done_fd) {
        block_pool_give(in->desc.pool, b);
        return false;
    }
    c->stream = in->stream_count++;
    c->is_announced = true;
    b->kind = BLOCK_STREAM_BEGINS;
    b->stream = c->stream;
    b->pid = (uint32_t)c->peer_pid;
    b->clock_source = c->clock_source;
    block_pool_queue(in->desc.pool, b);
    return true;
}

static bool conclude(intake *in, connection *c)
{
    block *b = block_pool_take(in->desc.pool);
    if (!b)
        return false;
    b->kind = BLOCK_STREAM_ENDS;
    b->stream = c->stream;
    b->said_bye = c->said_bye;
    b->problem = c->problem;
    in->ended_dropped += connection_dropped(c);
    in->ended_waits += connection_waits(c);
    pthread_mutex_lock(&in->mutex);
    in->done_fds.items[c->stream] = c->fd;
    pthread_mutex_unlock(&in->mutex);
    c->fd = -1;
    block_pool_queue(in->desc.pool, b);
    return true;
}

/* ---- draining ------------------------------------------------------------------------------------------------- */

static uint32_t put_calibration(connection *c, ev *out, uint64_t now_ns)
{
    ev_clock_def def = {.source = c->clock_source};
    clock_pair(c->clock_source, &def.ticks, &def.monotonic_ns);
    def.realtime_ns = clock_ns(CLOCK_REALTIME);
    c->calibrated_ns = now_ns;
    /* The head carries the time of the last event, not of now: what follows in the ring is older than now. */
    out[0] = ev_make(EV_DEFINE, c->last_ticks, ev_define_number(EV_DEFINE_CLOCK, 0), sizeof def);
    memcpy(&out[1], &def, sizeof def);
    return 1 + ev_define_slots(sizeof def);
}

/* How often its writers have waited since the stream was told of it; 0: not at all. */
static uint32_t put_waits(connection *c, ev *out)
{
    uint64_t waits = connection_waits(c);
    ev_waited_def def = {.count = waits - c->told_waits};
    if (waits <= c->told_waits || c->last_ticks == 0)
        return 0;
    c->told_waits = waits;
    out[0] = ev_make(EV_DEFINE, c->last_ticks, ev_define_number(EV_DEFINE_WAITED, 0), sizeof def);
    out[1] = (ev){0};
    memcpy(&out[1], &def, sizeof def);
    return 1 + ev_define_slots(sizeof def);
}

/* The last of them, before the stream ends. False: no block is free, try again next round. */
static bool tell_waits(intake *in, connection *c)
{
    block *b = block_pool_take(in->desc.pool);
    if (!b)
        return false;
    b->kind = BLOCK_EVENTS_KIND;
    b->stream = c->stream;
    b->event_count = put_waits(c, b->events);
    if (b->event_count > 0)
        block_pool_queue(in->desc.pool, b);
    else
        block_pool_give(in->desc.pool, b);
    return true;
}

typedef struct round {
    uint64_t backlog;    /* slots left in the rings */
    uint64_t free_slots; /* of the fullest ring */
    bool goes_on;        /* a ring has had its turn and has more */
} round;

/* One block's worth out of one ring. False: no block is free. */
static bool drain_block(intake *in, connection *c, uint64_t *taken)
{
    block *b = block_pool_take(in->desc.pool);
    if (!b)
        return false;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint32_t prefix = 0, told = 0;
    if (c->calibrated_ns == 0)
        c->calibrated_ns = now_ns; /* the program itself sends the first pairs */
    else if (now_ns - c->calibrated_ns >= CALIBRATION_NS && c->last_ticks != 0) {
        told = put_waits(c, b->events);
        if (told > 0 || ring_backlog(&c->reader) > 0) /* else the block is not sent, and the pair would be lost */
            prefix = told + put_calibration(c, b->events + told, now_ns);
    }
    uint32_t count = connection_read(c, b->events + prefix, BLOCK_EVENTS - prefix);
    *taken = count;
    if (count == 0 && told == 0) {
        block_pool_give(in->desc.pool, b);
        return true;
    }
    in->event_count += count;
    b->kind = BLOCK_EVENTS_KIND;
    b->stream = c->stream;
    b->event_count = prefix + count;
    block_pool_queue(in->desc.pool, b);
    return true;
}

/* Go round the rings once. */
static round drain_all(intake *in)
{
    round r = {.free_slots = SLOTS_A_MS * SLEEP_MAX_MS};
    for (size_t i = 0; i < in->connections.count; i++) {
        connection *c = in->connections.items[i];
        if (!c || !c->has_ring || (!c->is_announced && !announce(in, c)))
            continue;
        uint32_t turn = 0;
        for (uint64_t taken = 1; turn < BLOCKS_A_TURN && taken > 0; turn++)
            if (!drain_block(in, c, &taken))
                break;
        uint64_t waiting = connection_backlog(c), free_slots = c->reader.slot_count - waiting;
        r.goes_on = r.goes_on || turn == BLOCKS_A_TURN;
        r.backlog += waiting;
        r.free_slots = free_slots < r.free_slots ? free_slots : r.free_slots;
    }
    return r;
}

static int sleep_ms(const round *r)
{
    uint64_t ms = r->free_slots / SLOTS_A_MS;
    return r->goes_on ? 0 : ms > SLEEP_MIN_MS ? (int)ms : SLEEP_MIN_MS;
}

/* ---- leaving -------------------------------------------------------------------------------------------------- */

static void drop_ended(intake *in)
{
    for (size_t i = 0; i < in->connections.count; i++) {
        connection *c = in->connections.items[i];
        if (!c || !(c->is_gone || c->said_bye || c->problem))
            continue;
        if (c->has_ring) {
            if (!c->problem && connection_backlog(c) > 0)
                continue; /* what is in the ring still counts */
            if (!c->is_announced || !tell_waits(in, c) || !conclude(in, c))
                continue;
            if (c->said_bye && c->peer_pid == in->desc.watch_pid)
                in->watch_over = true;
        }
        in->turned_away += c->was_turned_away;
        connection_delete(c);
        in->connections.items[i] = in->connections.items[--in->connections.count];
        i--;
    }
}

/* ---- the thread ----------------------------------------------------------------------------------------------- */

static bool add_polled(intake *in, int fd)
{
    struct pollfd *p = vec_push(&in->polled);
    if (p)
        *p = (struct pollfd){.fd = fd, .events = POLLIN};
    return p != NULL;
}

/* Wait for sockets, at most timeout_ms, and serve them. */
static void serve_sockets(intake *in, int timeout_ms)
{
    size_t count = in->connections.count;
    in->polled.count = 0;
    if (!add_polled(in, in->wake_pipe[0]) || !add_polled(in, in->is_full ? -1 : in->desc.listen_fd) || !add_polled(in, in->watch_fd))
        return;
    for (size_t i = 0; i < count; i++) /* whoever has said what it had to say is only heard again by its ring */
        if (!add_polled(in, in->connections.items[i]->is_gone ? -1 : in->connections.items[i]->fd))
            return;
    in->is_full = false;
    if (poll(in->polled.items, in->polled.count, timeout_ms) <= 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (in->polled.items[i + 3].revents)
            connection_serve(in->connections.items[i]);
    if (in->polled.items[1].revents)
        accept_one(in);
    if (in->polled.items[2].revents) {
        close(in->watch_fd);
        in->watch_fd = -1;
        in->watch_over = true;
    }
}

static void publish_stats(intake *in, uint64_t backlog)
{
    intake_stats stats = {
        .event_count = in->event_count,
        .ring_backlog = backlog,
        .dropped = in->ended_dropped,
        .writer_waits = in->ended_waits,
        .turned_away = in->turned_away,
        .stream_count = in->stream_count,
        .open_count = (uint32_t)in->connections.count,
    };
    for (size_t i = 0; i < in->connections.count; i++) {
        stats.dropped += connection_dropped(in->connections.items[i]);
        stats.writer_waits += connection_waits(in->connections.items[i]);
    }
    pthread_mutex_lock(&in->mutex);
    in->stats = stats;
    pthread_mutex_unlock(&in->mutex);
    atomic_store_explicit(&in->is_over, in->watch_over && in->connections.count == 0, memory_order_relaxed);
}

static void *intake_main(void *argument)
{
    intake *in = argument;
    while (!atomic_load_explicit(&in->stops, memory_order_relaxed)) {
        round r = drain_all(in);
        drop_ended(in);
        publish_stats(in, r.backlog);
        serve_sockets(in, sleep_ms(&r));
    }
    return NULL;
}

/* ---- outside -------------------------------------------------------------------------------------------------- */

int intake_start(intake **out, const intake_desc *desc)
{
    intake *in = *out = mem_zalloc(1, sizeof *in);
    if (!in)
        return -ENOMEM;
    in->desc = *desc;
    in->spare_fd = open_spare();
    in->watch_fd = in->wake_pipe[0] = in->wake_pipe[1] = -1;
    pthread_mutex_init(&in->mutex, NULL);
    int error = 0;
    if (pipe2(in->wake_pipe, O_CLOEXEC) != 0)
        error = -errno;
    if (!error && desc->watch_pid > 0) {
        in->watch_fd = (int)syscall(SYS_pidfd_open, desc->watch_pid, 0);
        in->watch_over = in->watch_fd < 0; /* gone already; a kernel before 5.3 has no pidfd: not watched */
    }
    in->watch_over = in->watch_over || desc->watch_pid <= 0;
    if (!error)
        error = -pthread_create(&in->thread, NULL, intake_main, in);
    if (error) {
        atomic_store_explicit(&in->stops, true, memory_order_relaxed);
        in->thread = pthread_self(); /* nothing to join */
        intake_stop(in);
        *out = NULL;
    }
    return error;
}

static void remove_socket(const char *path)
{
    unlink(path);
    char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash && slash != folder) {
        *slash = '\0';
        rmdir(folder); /* fails, and should, when it is not the session's own */
    }
    free(folder);
}

void intake_stop(intake *in)
{
    if (!in)
        return;
    atomic_store_explicit(&in->stops, true, memory_order_relaxed);
    if (in->wake_pipe[1] >= 0 && write(in->wake_pipe[1], "", 1) < 0)
        in->stops = true; /* a full pipe wakes as well */
    if (!pthread_equal(in->thread, pthread_self()))
        pthread_join(in->thread, NULL);
    if (in->desc.socket_path)
        remove_socket(in->desc.socket_path); /* before closing: who connects now is told so at once */
    int fds[] = {in->desc.listen_fd, in->spare_fd, in->watch_fd, in->wake_pipe[0], in->wake_pipe[1]};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (size_t i = 0; i < in->connections.count; i++) {
        if (!in->connections.items[i]->is_gone)
            connection_send(in->connections.items[i]->fd, HS_DONE, "");
        connection_delete(in->connections.items[i]);
    }
    for (size_t i = 0; i < in->done_fds.count; i++)
        if (in->done_fds.items[i] >= 0)
            close(in->done_fds.items[i]);
    vec_free(&in->connections);
    vec_free(&in->done_fds);
    vec_free(&in->polled);
    pthread_mutex_destroy(&in->mutex);
    mem_free(in);
}

bool intake_is_over(const intake *in) { return atomic_load_explicit(&in->is_over, memory_order_relaxed); }

intake_stats intake_stats_of(intake *in)
{
    pthread_mutex_lock(&in->mutex);
    intake_stats stats = in->stats;
    pthread_mutex_unlock(&in->mutex);
    return stats;
}

void intake_done(intake *in, uint32_t stream)
{
    pthread_mutex_lock(&in->mutex);
    int fd = stream < in->done_fds.count ? in->done_fds.items[stream] : -1;
    if (fd >= 0) {
        connection_send(fd, HS_DONE, "");
        close(fd);
        in->done_fds.items[stream] = -1;
    }
    pthread_mutex_unlock(&in->mutex);
}
