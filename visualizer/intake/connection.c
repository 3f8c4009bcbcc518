#include "intake/connection.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

connection *connection_new(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    connection *c = NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid())
        c = mem_zalloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return NULL;
    }
    c->fd = fd;
    c->peer_pid = peer.pid;
    return c;
}

void connection_delete(connection *c)
{
    if (!c)
        return;
    if (c->mapping)
        munmap(c->mapping, c->mapped_bytes);
    if (c->fd >= 0)
        close(c->fd);
    mem_free(c);
}

void connection_send(int fd, hs_type type, const char *text)
{
    hs_message m = {.magic = HS_MAGIC, .version = HS_VERSION, .type = (uint16_t)type, .pid = (uint32_t)getpid()};
    snprintf(m.text, sizeof m.text, "%s", text);
    send(fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT); /* who does not listen any more need not hear it */
}

static bool has_ended(const connection *c) { return c->is_gone || c->said_bye; }

static void end(connection *c, bool *how)
{
    if (!has_ended(c) && c->has_ring)
        c->end_index = c->reader.read_index + ring_backlog(&c->reader);
    *how = true;
}

static void refuse(connection *c, const char *why)
{
    connection_send(c->fd, HS_REFUSED, why);
    end(c, &c->is_gone);
}

/* Map the ring behind ring_fd. NULL, or what is wrong with it. */
static const char *take_ring(connection *c, const hs_message *hello, int ring_fd)
{
    struct stat st;
    if (c->has_ring)
        return "this connection has a ring already";
    if (ring_fd < 0 || fstat(ring_fd, &st) != 0)
        return "no shared memory came with the greeting";
    if (hello->ring_bytes < RING_HEADER_BYTES || hello->ring_bytes > ring_bytes(RING_SLOTS_MAX) ||
        (uint64_t)st.st_size < hello->ring_bytes)
        return "the shared memory is not as large as the greeting says";
    void *mapping = mmap(NULL, (size_t)hello->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
    if (mapping == MAP_FAILED)
        return "the shared memory can't be mapped";
    c->mapping = mapping;
    c->mapped_bytes = (size_t)hello->ring_bytes;
    const char *problem = ring_reader_open(&c->reader, mapping, c->mapped_bytes);
    if (problem)
        return problem;
    c->clock_source = c->reader.shared->clock_source;
    c->has_ring = true;
    return NULL;
}

static void handle(connection *c, const hs_message *m, size_t bytes, int ring_fd)
{
    if (!hs_message_ok(m, bytes)) {
        refuse(c, bytes >= 6 && m->magic == HS_MAGIC && m->version != HS_VERSION
                      ? "the extension and the visualizer are of different versions: install both anew"
                      : "not a message of this protocol");
        return;
    }
    switch ((hs_type)m->type) {
    case HS_HELLO: {
        const char *problem = take_ring(c, m, ring_fd);
        if (problem)
            refuse(c, problem);
        else
            connection_send(c->fd, HS_WELCOME, "");
        break;
    }
    case HS_BYE: end(c, &c->said_bye); break;
    default: refuse(c, "an unexpected message"); break;
    }
}

void connection_serve(connection *c)
{
    hs_message m = {0};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * 4)];
    } control;
    struct iovec iov = {.iov_base = &m, .iov_len = sizeof m};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t bytes = recvmsg(c->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (bytes <= 0) {
        end(c, &c->is_gone);
        return;
    }
    int ring_fd = -1;
    if (message.msg_flags & MSG_CTRUNC) { /* the ring's descriptor had no number left to get */
        c->was_turned_away = true;
        refuse(c, CONNECTION_TOO_MANY);
        return;
    }
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (ring_fd < 0)
                ring_fd = fd;
            else
                close(fd); /* nobody asked for more */
        }
    }
    handle(c, &m, (size_t)bytes, ring_fd);
    if (ring_fd >= 0)
        close(ring_fd); /* the mapping stays */
}

/* How many of the slots are whole records. A DEFINE that lies is a problem. */
static uint32_t whole_records(connection *c, const ev *events, uint32_t count, bool is_all)
{
    uint32_t i = 0;
    while (i < count) {
        ev e = events[i];
        if (ev_kind_of(e) != EV_DEFINE) {
            c->last_ticks = ev_ticks_of(e);
            i++;
            continue;
        }
        uint32_t slots = 1 + ev_define_slots(e.place);
        if (e.place > EV_DEFINE_BYTES_MAX) {
            c->problem = "a definition in the ring is longer than allowed";
            return i;
        }
        if (slots > count - i) {
            if (is_all) /* writers publish a record whole */
                c->problem = "a definition in the ring is cut short";
            return i;
        }
        i += slots;
    }
    return i;
}

uint32_t connection_read(connection *c, ev *out, uint32_t max)
{
    if (c->problem)
        return 0;
    uint64_t waiting = connection_backlog(c);
    uint32_t count = (uint32_t)ring_peek(&c->reader, out, waiting < max ? waiting : max);
    uint32_t whole = whole_records(c, out, count, waiting <= max);
    ring_consume(&c->reader, whole);
    return whole;
}

uint64_t connection_backlog(const connection *c)
{
    if (!c->has_ring)
        return 0;
    return has_ended(c) ? c->end_index - c->reader.read_index : ring_backlog(&c->reader);
}

uint64_t connection_dropped(const connection *c)
{
    return c->has_ring ? atomic_load_explicit(&c->reader.shared->dropped, memory_order_relaxed) : 0;
}

uint64_t connection_waits(const connection *c)
{
    return c->has_ring ? atomic_load_explicit(&c->reader.shared->waits, memory_order_relaxed) : 0;
}
