#include "join.h"

#include "frames.h"
#include "ractors.h"
#include "select.h"
#include "session.h"
#include "wire/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MS 10000      /* a visualizer that is busy opening its window answers within a second or two */
#define ANSWER_CHILD_MS 3000 /* a forked child waits inside its first event: not for longer than a user would notice */
#define WATCH_MS 1000        /* between two calibrations of the clock */

#define SLICE_MS 5           /* of a wait with the GVL, when an interrupt that is held back lets nothing run without it */
#define RESERVE_BYTES ((size_t)1 << 20)
#define RACTOR_SHARE 16      /* a Ractor's ring has this part of the main one's slots: there may be many */

typedef struct join_link {
    _Atomic uint32_t mode; /* capture_mode of the process: is it in a session? */
    stream *root;          /* the main Ractor's, or that of the Ractor which forked this process */
    uint64_t slot_count;
    capture_options options;
    pthread_mutex_t lock; /* a Ractor's stream goes on, and the session off, under it; never held across a wait */
    bool has_watcher;
    _Atomic bool stops; /* the watcher has nothing more to watch */
    bool is_busy; /* join or leave has let the GVL go in the middle */
    pthread_t watcher;
    struct stat errors; /* standard error, as it was when the program joined */
    uint32_t visualizer_pid; /* as it sees itself */
    _Atomic bool has_said_it_waits;
    _Atomic bool gone; /* stored by the watcher: the visualizer has left */
    _Atomic bool is_parting; /* set once: by whoever waits for the visualizer's last word, or has seen that there is none */
    join_socket child; /* a forked child's connection until it has a ring */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
} join_link;

static join_link link_ = {.root = &capture_main, .lock = PTHREAD_MUTEX_INITIALIZER, .child = {.fd = -1}};

static struct {
    bool prepared;
    rb_postponed_job_handle_t detach_job;
} once;

/* ---- Pieces. */

/* These are async-signal-safe. fd: negative when there is none. */
static join_socket socket_of(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 ? (join_socket){fd, st.st_ino} : (join_socket){.fd = -1};
}

static bool is_ours(const join_socket *socket)
{
    struct stat st;
    return socket->fd >= 0 && fstat(socket->fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == socket->inode;
}

static void close_socket(join_socket *socket)
{
    if (is_ours(socket))
        close(socket->fd);
    socket->fd = -1;
}

/* Async-signal-safe (the fork handler). A socket connected to path, or -errno. */
static int connect_to(const char *path, int timeout_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* limits connect, too, when the backlog is full */
    int result;
    do
        result = connect(fd, (struct sockaddr *)&address, sizeof address);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

static bool peer_is_us(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

/* A piece at a time: a signal takes back what a call has reserved so far, and a program may get one each millisecond. */
static int reserve(int fd, size_t bytes)
{
    int error = 0;
    for (size_t at = 0; at < bytes && !error; at += RESERVE_BYTES) {
        size_t piece = bytes - at < RESERVE_BYTES ? bytes - at : RESERVE_BYTES;
        do
            error = posix_fallocate(fd, (off_t)at, (off_t)piece);
        while (error == EINTR);
    }
    return error;
}

/* Shared memory that is in no folder any more, all of it reserved: a page that cannot be had later would kill the program
 * with SIGBUS. A descriptor or -errno. */
static int shared_memory(size_t bytes)
{
    struct rlimit limit; /* beyond it the program would be sent SIGXFSZ, which ends it */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
        return -EFBIG;
    for (int attempt = 0; attempt < 8; attempt++) {
        char name[64];
        uint64_t noise = clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)(uintptr_t)&name;
        snprintf(name, sizeof name, "/rrtrace-%ld-%08llx", (long)getpid(),
                 (unsigned long long)(noise * UINT64_C(0x9E3779B97F4A7C15) >> 32));
        int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            break;
        shm_unlink(name);
        if (reserve(fd, bytes) == 0)
            return fd;
        close(fd);
        break;
    }
    /* No /dev/shm, or a small one, as in containers: memory of the same kind that no mount limits. */
    int fd = memfd_create("rrtrace", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = reserve(fd, bytes);
    if (error == 0)
        return fd;
    close(fd);
    return -error;
}

static uint64_t slots_of(const stream *s)
{
    uint64_t slots = s == link_.root ? link_.slot_count : link_.slot_count / RACTOR_SHARE;
    return slots < RING_SLOTS_MIN ? RING_SLOTS_MIN : slots;
}

/* The ring, mapped, and its descriptor to be sent and closed. -errno, or the descriptor. */
static int make_ring(stream *s)
{
    s->ring_bytes = ring_bytes(slots_of(s));
    int fd = shared_memory(s->ring_bytes);
    if (fd < 0)
        return fd;
    void *memory = mmap(NULL, s->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        int error = errno;
        close(fd);
        return -error;
    }
    madvise(memory, s->ring_bytes, MADV_DONTFORK); /* no child can write into its parent's ring */
    s->ring = ring_init(memory, slots_of(s), capture_main.clock_source, (uint32_t)getpid());
    return fd;
}

static int send_message(const stream *s, hs_type type, int with_fd)
{
    hs_message message = {.magic = HS_MAGIC,
                          .version = HS_VERSION,
                          .type = (uint16_t)type,
                          .pid = (uint32_t)getpid(),
                          .ppid = (uint32_t)getppid(),
                          .ring_bytes = s->ring_bytes,
                          .ractor = s == link_.root ? 1 : s->number};
    struct iovec part = {&message, sizeof message};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (with_fd >= 0) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
        *header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(header), &with_fd, sizeof with_fd);
    }
    ssize_t sent;
    do
        sent = sendmsg(s->socket.fd, &packet, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof message ? 0 : -errno;
}

/* Wait for one message. 0, -ETIMEDOUT, -EINTR (a signal came: the caller may look), -ECONNRESET (the other side left). */
typedef struct answer_wait {
    int fd, timeout_ms, result;
    hs_message message;
} answer_wait;

static void *wait_for_answer(void *argument)
{
    answer_wait *wait = argument;
    struct pollfd look = {.fd = wait->fd, .events = POLLIN};
    int ready = poll(&look, 1, wait->timeout_ms);
    wait->result = ready < 0 ? -errno : ready == 0 ? -ETIMEDOUT : 0;
    if (ready <= 0)
        return NULL;
    ssize_t got = recv(wait->fd, &wait->message, sizeof wait->message, MSG_DONTWAIT);
    if (got <= 0)
        wait->result = got == 0 || errno != EINTR ? -ECONNRESET : -EINTR;
    else if (!hs_message_ok(&wait->message, (size_t)got))
        wait->result = -EPROTO;
    return NULL;
}

static void wait_until(answer_wait *wait, uint64_t deadline_ns, bool has_gvl)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    wait->timeout_ms = now < deadline_ns ? (int)((deadline_ns - now) / 1000000u) + 1 : 0;
    wait->result = -EINTR; /* stays when an interrupt was pending and nothing ran */
    if (has_gvl)
        rb_thread_call_without_gvl2(wait_for_answer, wait, RUBY_UBF_IO, NULL);
    else
        wait_for_answer(wait);
}

static VALUE check_interrupts(VALUE unused)
{
    rb_thread_check_ints();
    return unused;
}

int join_do_interrupts(void)
{
    int raised = 0;
    rb_protect(check_interrupts, Qnil, &raised);
    return raised;
}

/* Waits for one message through all signals, and has Ruby do what they ask for, if may_let_go. 0, or join_do_interrupts' answer. */
static int wait_through_signals(answer_wait *wait, int timeout_ms, bool may_let_go)
{
    uint64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000u, slice_ns;
    do {
        wait_until(wait, deadline_ns, may_let_go);
        slice_ns = clock_ns(CLOCK_MONOTONIC) + SLICE_MS * 1000000u;
        if (wait->result != -EINTR || !may_let_go)
            continue;
        int raised = join_do_interrupts();
        if (raised)
            return raised;
        wait_until(wait, slice_ns < deadline_ns ? slice_ns : deadline_ns, false);
    } while (wait->result == -EINTR || (wait->result == -ETIMEDOUT && slice_ns < deadline_ns));
    return 0;
}

/* HELLO, WELCOME. may_let_go: not inside a hook. As join_session. */
static int shake_hands(const stream *s, int ring_fd, int timeout_ms, bool may_let_go, char why[JOIN_WHY_BYTES])
{
    answer_wait wait = {.fd = s->socket.fd, .result = send_message(s, HS_HELLO, ring_fd)};
    int raised = wait.result == 0 ? wait_through_signals(&wait, timeout_ms, may_let_go) : 0;
    if (raised)
        return raised;
    if (wait.result == -ETIMEDOUT)
        snprintf(why, JOIN_WHY_BYTES, "the visualizer at %s did not answer within %d s", link_.path, timeout_ms / 1000);
    else if (wait.result == -ECONNRESET || wait.result == -EPIPE)
        snprintf(why, JOIN_WHY_BYTES, "the visualizer at %s closed the connection", link_.path);
    else if (wait.result == -EPROTO)
        snprintf(why, JOIN_WHY_BYTES, "what answers at %s is no visualizer of this version", link_.path);
    else if (wait.result < 0)
        snprintf(why, JOIN_WHY_BYTES, "cannot speak to the visualizer at %s: %s", link_.path, strerror(-wait.result));
    else if (wait.message.type == HS_REFUSED)
        snprintf(why, JOIN_WHY_BYTES, "the visualizer refused this process: %s", wait.message.text);
    else if (wait.message.type != HS_WELCOME)
        snprintf(why, JOIN_WHY_BYTES, "the visualizer at %s answered out of turn", link_.path);
    else {
        if (s == link_.root)
            link_.visualizer_pid = wait.message.pid;
        return 0;
    }
    return -1;
}

/* ---- The watcher: sees the end of the socket at once, whatever the program is doing.
 *
 * A program may close descriptors that are not its own, as daemons do, and reuse their numbers. So the socket is the only one
 * that is kept, and its inode is compared before anything is done with its number; shutdown wakes the watcher, which needs
 * no descriptor of its own. */

/* The reader is lost, or given up: every hook returns at once from here on, and the rest is undone at a safe point.
 * Any thread. */
void join_give_up(void)
{
    atomic_store(&link_.mode, CAPTURE_OFF); /* first: a Ractor that joins right now looks at it last; see join_ractor */
    for (stream *s = &capture_main; s; s = ractors_next(s))
        atomic_store(&s->mode, CAPTURE_OFF);
    atomic_store(&link_.gone, true);
    rb_postponed_job_trigger(once.detach_job);
}

/* On standard error, where it is still what it was: a daemon's descriptor 2 may be anything. */
static void say(const char *line)
{
    struct stat now;
    if (fstat(STDERR_FILENO, &now) != 0 || now.st_dev != link_.errors.st_dev || now.st_ino != link_.errors.st_ino)
        return;
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written; /* nobody is there to read it? */
}

void join_say_it_waits(const char *for_what)
{
    char line[160];
    if (atomic_exchange(&link_.has_said_it_waits, true))
        return;
    snprintf(line, sizeof line, "rrtrace: waiting for the visualizer (process %u) %s\n", (unsigned)link_.visualizer_pid, for_what);
    say(line);
}

/* The socket has ended without a word. Nobody but us can tell whoever waits for the recording, and put the session's folder away. */
static void after_a_kill(void)
{
    say("rrtrace: the visualizer was killed: this program runs on untraced\n");
    for (int i = 0; i < 5 && access(link_.path, F_OK) == 0; i++) { /* a dying process closes its sockets one by one */
        session_tidy(link_.path);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

static bool has_last_word(int fd)
{
    hs_message message;
    ssize_t got = recv(fd, &message, sizeof message, MSG_DONTWAIT);
    return got > 0 && hs_message_ok(&message, (size_t)got) && message.type == HS_DONE;
}

static void *watch(void *unused)
{
    (void)unused;
    stream *s = link_.root;
    for (;;) {
        struct pollfd look = {.fd = s->socket.fd, .events = POLLRDHUP};
        int ready = poll(&look, 1, WATCH_MS);
        if (atomic_load(&link_.stops))
            return NULL;
        if ((ready > 0 && look.revents) || !is_ours(&s->socket))
            break;
        if (ready == 0 && capture_enter(s)) {
            ev_clock_def now = capture_clock();
            capture_define_clock(s, &now, false);
            capture_leave(s);
        }
    }
    if (atomic_exchange(&link_.is_parting, true))
        return NULL;
    join_give_up();
    if (!is_ours(&s->socket))
        say("rrtrace: this program has closed rrtrace's connection, as one of its own: it runs on untraced\n");
    else if (!has_last_word(s->socket.fd))
        after_a_kill();
    return NULL;
}

static int start_watcher(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    atomic_store(&link_.stops, false);
    atomic_store(&link_.is_parting, false);
    atomic_store(&link_.has_said_it_waits, false);
    if (fstat(STDERR_FILENO, &link_.errors) != 0)
        link_.errors.st_ino = 0;
    size_t stack = (size_t)PTHREAD_STACK_MIN > 65536 ? (size_t)PTHREAD_STACK_MIN : 65536;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's */
    int error = pthread_create(&link_.watcher, &attributes, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    link_.has_watcher = error == 0;
    return -error;
}

static void stop_watcher(void)
{
    if (!link_.has_watcher)
        return;
    atomic_store(&link_.stops, true);
    if (is_ours(&link_.root->socket))
        shutdown(link_.root->socket.fd, SHUT_RDWR);
    pthread_join(link_.watcher, NULL); /* some 50 ms if it is tidying up after a kill; WATCH_MS if the socket was taken from us */
    link_.has_watcher = false;
}

static void unmap_ring(stream *s)
{
    if (s->ring)
        munmap(s->ring, s->ring_bytes);
    s->ring = NULL;
}

static bool take_joined(stream *s)
{
    pthread_mutex_lock(&link_.lock);
    bool was_joined = s->is_joined;
    s->is_joined = false;
    pthread_mutex_unlock(&link_.lock);
    return was_joined;
}

/* Undo whatever is there, in reverse order. Nobody uses the root's ring any more. Those of further Ractors may still be used in
 * the middle of a hook: they stay mapped until their Ractor ends, or joins again. */
static void link_close(void)
{
    stop_watcher();
    atomic_store(&link_.mode, CAPTURE_OFF);
    for (stream *s = ractors_first(); s; s = s->next)
        if (take_joined(s))
            close_socket(&s->socket);
    close_socket(&link_.root->socket);
    close_socket(&link_.child); /* of a child that had no event */
    unmap_ring(link_.root);
    atomic_store(&link_.gone, false);
}

/* GVL held, at a safe point: the visualizer has gone. Another Ractor may have picked up the job, but can't do it: the root's
 * next event asks again. */
static void detach_now(void *unused)
{
    (void)unused;
    if (!atomic_load(&link_.gone) || link_.is_busy || ractors_current() != link_.root)
        return;
    capture_stop(link_.root);
    link_close();
}

bool join_is_over(const stream *s)
{
    if (s == link_.root && atomic_load(&link_.gone))
        rb_postponed_job_trigger(once.detach_job);
    return false;
}

/* ---- fork. */

/* In the child, async-signal-safe. First a connection of its own, so that the session never looks empty; then the
 * parent's things are let go. Which Ractor it was that forked shows at the next event. */
static void after_fork_in_child(void)
{
    uint32_t mode = atomic_load(&link_.mode);
    if (mode == CAPTURE_OFF && link_.root->socket.fd < 0)
        return;
    int fd = mode == CAPTURE_OFF ? -1 : connect_to(link_.path, 1000);
    close_socket(&link_.root->socket);
    close_socket(&link_.child); /* of a child that forked before its first event */
    capture_forget_in_child();
    ractors_fix_lock_in_child();
    link_.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    link_.has_watcher = link_.is_busy = false;
    atomic_store(&link_.gone, mode != CAPTURE_OFF && fd < 0); /* the session is over: the next event has the hooks removed */
    link_.child = socket_of(fd);
    mode = fd < 0 ? CAPTURE_OFF : CAPTURE_MUST_JOIN;
    for (stream *s = &capture_main; s; s = ractors_next(s)) {
        close_socket(&s->socket);
        s->is_joined = false;
        atomic_store(&s->mode, mode);
    }
    atomic_store(&link_.mode, mode);
}

/* ---- Joining. */

/* s has a socket. A ring that the reader has taken, in *clocks the time before and after. As join_session. */
static int connect_ring(stream *s, int timeout_ms, bool may_let_go, ev_clock_def clocks[2], char why[JOIN_WHY_BYTES])
{
    if (!peer_is_us(s->socket.fd)) {
        snprintf(why, JOIN_WHY_BYTES, "the visualizer at %s belongs to another user", link_.path);
        return -1;
    }
    int ring_fd = make_ring(s);
    if (ring_fd < 0) {
        snprintf(why, JOIN_WHY_BYTES, "no shared memory for a buffer of %zu KiB: %s (a smaller --buffer may fit)",
                 s->ring_bytes / 1024, strerror(-ring_fd));
        return -1;
    }
    clocks[0] = capture_clock();
    int result = shake_hands(s, ring_fd, timeout_ms, may_let_go, why);
    close(ring_fd);
    clocks[1] = capture_clock();
    return result;
}

/* The root has a socket; link_ has options and path. */
static int link_up(int timeout_ms, bool from_child, char why[JOIN_WHY_BYTES])
{
    ev_clock_def clocks[2];
    int result = connect_ring(link_.root, timeout_ms, !from_child, clocks, why);
    if (result != 0)
        return result;
    int error = start_watcher();
    if (error != 0) {
        snprintf(why, JOIN_WHY_BYTES, "cannot start a thread: %s", strerror(-error));
        return -1;
    }
    capture_start(link_.root, link_.options, clocks);
    if (!from_child) /* a child has inherited them */
        capture_add_hooks(link_.root);
    ractors_begin(link_.root);
    if (!from_child)
        for (stream *s = ractors_first(); s; s = s->next) /* hooked in an earlier session */
            if (s != link_.root && atomic_load(&s->ractor))
                atomic_store(&s->mode, CAPTURE_MUST_JOIN);
    pthread_mutex_lock(&link_.lock);
    atomic_store(&link_.mode, CAPTURE_ON);
    pthread_mutex_unlock(&link_.lock);
    return 0;
}

static int prepare(char why[JOIN_WHY_BYTES])
{
    const char *sentence = "";
    if (capture_prepare(&sentence) != 0) {
        snprintf(why, JOIN_WHY_BYTES, "%s", sentence);
        return -1;
    }
    if (!once.prepared) {
        once.detach_job = rb_postponed_job_preregister(0, detach_now, NULL);
        pthread_atfork(NULL, NULL, after_fork_in_child);
        ractors_prepare();
        once.prepared = true;
    }
    if (select_names_what())
        frames_verify_code();
    else
        frames_verify(false);
    return 0;
}

int join_session(const char *socket_path, uint64_t slot_count, capture_options options, char why[JOIN_WHY_BYTES])
{
    if (prepare(why) != 0)
        return -1;
    detach_now(NULL); /* a visualizer that left since, if the postponed job has not run yet */
    if (link_.root->socket.fd >= 0 || link_.is_busy || join_is_on()) {
        snprintf(why, JOIN_WHY_BYTES, "this process is traced already");
        return -1;
    }
    if (strlen(socket_path) >= sizeof link_.path) {
        snprintf(why, JOIN_WHY_BYTES, "the session's path %s is too long for a socket", socket_path);
        return -1;
    }
    memset(link_.path, 0, sizeof link_.path);
    memcpy(link_.path, socket_path, strlen(socket_path));
    link_.slot_count = slot_count;
    link_.options = options;
    int fd = connect_to(link_.path, 2000);
    if (fd < 0) {
        snprintf(why, JOIN_WHY_BYTES, "no session at %s: %s", socket_path, strerror(-fd));
        return -1;
    }
    link_.root->socket = socket_of(fd);
    rb_update_max_fd(fd);
    link_.is_busy = true;
    int result = link_up(ANSWER_MS, false, why);
    link_.is_busy = false;
    if (result != 0)
        link_close();
    return result;
}

/* The first event after a fork. */
static bool join_in_child(stream *s)
{
    char why[JOIN_WHY_BYTES];
    link_.root = s; /* the one Ractor that is left is the process's main one */
    ractors_forget_others(s);
    /* Unless the child has closed what it inherited, as daemons do. */
    s->socket = is_ours(&link_.child) ? link_.child : socket_of(connect_to(link_.path, 1000));
    link_.child.fd = -1;
    link_.is_busy = true;
    int result = link_up(ANSWER_CHILD_MS, true, why);
    link_.is_busy = false;
    if (result != 0) { /* the child runs on untraced; nobody asked it to say so */
        link_close();
        join_give_up(); /* the hooks are still there: they go at a safe point */
    }
    return result == 0;
}

/* Its mode is off, and the calling thread the only one of the Ractor that could be in a hook. */
static void close_ractor(stream *s, bool has_socket)
{
    capture_drain_users(s);
    if (has_socket)
        close_socket(&s->socket);
    unmap_ring(s);
}

/* The first event in a Ractor, of a session that is on. */
static bool join_ractor(stream *s)
{
    char why[JOIN_WHY_BYTES];
    ev_clock_def clocks[2];
    close_ractor(s, take_joined(s)); /* what an earlier session left */
    if (atomic_load(&link_.mode) != CAPTURE_ON)
        return false;
    s->socket = socket_of(connect_to(link_.path, 1000));
    bool joined = connect_ring(s, ANSWER_CHILD_MS, false, clocks, why) == 0;
    if (joined)
        capture_open(s, clocks);
    pthread_mutex_lock(&link_.lock); /* the session may have ended meanwhile; if it ends later, it ends this stream, too */
    joined = joined && atomic_load(&link_.mode) == CAPTURE_ON;
    s->is_joined = joined;
    pthread_mutex_unlock(&link_.lock);
    if (!joined) {
        atomic_store(&s->mode, CAPTURE_OFF);
        close_ractor(s, true);
    }
    return joined;
}

bool join_in_hook(stream *s)
{
    return atomic_load(&link_.mode) == CAPTURE_MUST_JOIN ? join_in_child(s) : join_ractor(s);
}

void join_end_ractor(stream *s)
{
    atomic_store(&s->mode, CAPTURE_OFF);
    if (s->ring)
        atomic_store_explicit(&s->ring->closed, 1, memory_order_release);
    close_ractor(s, take_joined(s));
    ractors_release(s);
}

bool join_memory_works(void)
{
    int fd = shared_memory(ring_bytes(RING_SLOTS_MIN));
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

bool join_is_on(void) { return atomic_load_explicit(&link_.mode, memory_order_relaxed) != CAPTURE_OFF; }

/* An interrupt ends the wait: Ctrl-C must work. */
static void wait_for_done(answer_wait *wait, uint64_t deadline_ns)
{
    while (wait->result == 0 && wait->message.type != HS_DONE)
        wait_until(wait, deadline_ns, true);
}

/* False: the other side has left without its last word. */
static bool say_goodbye(const stream *s, uint64_t deadline_ns)
{
    if (!is_ours(&s->socket))
        return true;
    answer_wait wait = {.fd = s->socket.fd, .result = send_message(s, HS_BYE, -1)};
    if (wait.result == -EPIPE && has_last_word(s->socket.fd)) /* a window that was closed just now */
        return true;
    uint64_t patient_ns = clock_ns(CLOCK_MONOTONIC) + JOIN_PATIENCE_NS;
    bool is_long = patient_ns < deadline_ns;
    wait_for_done(&wait, is_long ? patient_ns : deadline_ns);
    if (wait.result == -ETIMEDOUT && is_long) {
        join_say_it_waits("to end its work; Ctrl-C goes on without it");
        wait.result = 0;
        wait_for_done(&wait, deadline_ns);
    }
    return wait.result != -EPIPE && wait.result != -ECONNRESET;
}

/* The session ends for all further Ractors. Their last events are in the rings; what they do from now on is not traced. */
static void end_ractors(uint64_t deadline_ns)
{
    pthread_mutex_lock(&link_.lock);
    atomic_store(&link_.mode, CAPTURE_OFF);
    for (stream *s = ractors_first(); s; s = s->next)
        if (s != link_.root)
            atomic_store(&s->mode, CAPTURE_OFF);
    pthread_mutex_unlock(&link_.lock);
    for (stream *s = ractors_first(); s; s = s->next)
        if (take_joined(s)) {
            say_goodbye(s, deadline_ns);
            close_socket(&s->socket);
        }
}

bool join_leave(int wait_ms)
{
    stream *s = link_.root;
    if (link_.is_busy)
        return false;
    uint64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)wait_ms * 1000000u;
    uint32_t mode = atomic_load(&s->mode);
    if (mode == CAPTURE_ON) {
        ev_clock_def now = capture_clock();
        capture_define_clock(s, &now, true);
        mode = atomic_load(&s->mode); /* it may have gone while the ring was full */
    }
    bool was_on = mode == CAPTURE_ON;
    capture_stop(s);
    if (was_on) {
        atomic_store_explicit(&s->ring->closed, 1, memory_order_release);
        link_.is_busy = true;
        bool we_part = !atomic_exchange(&link_.is_parting, true); /* else the watcher has the last word, or has missed it */
        end_ractors(deadline_ns);
        if (!say_goodbye(s, deadline_ns) && we_part)
            after_a_kill();
        link_.is_busy = false;
    }
    link_close();
    return was_on;
}
