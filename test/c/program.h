/* program.h - the traced program's side of a session, for tests: the other end of a real socket and a real shared ring.
 * Use:     int fd = program_join(path, &ring, slots); program_push(ring, events, count) …; program_say_bye or close(fd).
 */
#ifndef RRTRACE_TEST_PROGRAM_H
#define RRTRACE_TEST_PROGRAM_H

#include "wire/clock.h"
#include "wire/handshake.h"
#include "wire/ring.h"

#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

/* A listening socket at path. */
__attribute__((unused)) static int program_listen(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    CHECK_EQ(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(fd, 8), 0);
    return fd;
}

__attribute__((unused)) static int program_dial(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct timeval limit = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

__attribute__((unused)) static ring *program_ring(int *memory_fd, uint64_t slots)
{
    *memory_fd = memfd_create("ring", MFD_CLOEXEC);
    CHECK_EQ(ftruncate(*memory_fd, (off_t)ring_bytes(slots)), 0);
    void *memory = mmap(NULL, ring_bytes(slots), PROT_READ | PROT_WRITE, MAP_SHARED, *memory_fd, 0);
    CHECK(memory != MAP_FAILED);
    return ring_init(memory, slots, CLOCK_SOURCE_MONOTONIC, 1);
}

__attribute__((unused)) static void program_say(int fd, const void *message, size_t bytes, int memory_fd)
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

__attribute__((unused)) static hs_type program_hear(int fd, hs_message *answer)
{
    ssize_t bytes = recv(fd, answer, sizeof *answer, 0);
    CHECK(bytes == (ssize_t)sizeof *answer && hs_message_ok(answer, (size_t)bytes));
    return (hs_type)answer->type;
}

__attribute__((unused)) static hs_message program_hello(uint64_t slots)
{
    return (hs_message){.magic = HS_MAGIC, .version = HS_VERSION, .type = HS_HELLO, .pid = 1, .ring_bytes = ring_bytes(slots), .ractor = 1};
}

__attribute__((unused)) static int program_join(const char *path, ring **r, uint64_t slots)
{
    int memory_fd, fd = program_dial(path);
    hs_message message = program_hello(slots);
    *r = program_ring(&memory_fd, slots);
    program_say(fd, &message, sizeof message, memory_fd);
    close(memory_fd);
    CHECK_EQ(program_hear(fd, &message), HS_WELCOME);
    return fd;
}

__attribute__((unused)) static uint64_t program_push(ring *r, const ev *events, uint64_t count)
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

#endif
