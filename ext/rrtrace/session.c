#include "session.h"

#include "wire/handshake.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* Longest base folder: sun_path holds 108 bytes with its end. */
#define BASE_BYTES_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof "/rrtrace-4294967295-XXXXXX/" HS_SOCKET_NAME)

static bool base_usable(const char *base)
{
    return base && base[0] == '/' && strlen(base) <= BASE_BYTES_MAX && access(base, W_OK | X_OK) == 0;
}

static const char *base_folder(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
    if (base_usable(runtime))
        return runtime;
    return base_usable(tmp) ? tmp : "/tmp";
}

void session_tidy(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    bool is_dead = connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    close(fd);
    if (!is_dead)
        return;
    unlink(socket_path);
    char *slash = strrchr(address.sun_path, '/');
    if (slash && slash != address.sun_path) {
        *slash = '\0';
        rmdir(address.sun_path); /* stays when something else lies in it */
    }
}

/* Folders of this user's sessions whose visualizer was killed. Those younger than 10 s may be between bind and listen. */
static void sweep(const char *base)
{
    char prefix[40], path[512];
    int prefix_bytes = snprintf(prefix, sizeof prefix, "rrtrace-%u-", (unsigned)getuid());
    DIR *folder = opendir(base);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat st;
        if (strncmp(entry->d_name, prefix, (size_t)prefix_bytes) != 0)
            continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", base, entry->d_name) >= sizeof path - sizeof HS_SOCKET_NAME)
            continue;
        if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid() || time(NULL) - st.st_mtime < 10)
            continue;
        if (rmdir(path) == 0) /* empty: made by someone who died before bind */
            continue;
        strcat(path, "/" HS_SOCKET_NAME);
        session_tidy(path);
    }
    closedir(folder);
}

/* What of ours is the visualizer's own: the user's editor, and whether to check Vulkan's use (tests). */
static bool is_for_visualizer(const char *variable)
{
    return strncmp(variable, "RRTRACE_EDITOR=", 15) == 0 || strncmp(variable, "RRTRACE_VALIDATION=", 19) == 0;
}

/* The visualizer gets the environment without what would trace it, should it be a Ruby script (tests). Owned by the caller. */
static char **visualizer_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **env = calloc(count + 1, sizeof *env);
    for (size_t i = 0; env && i < count; i++)
        if ((strncmp(environ[i], "RRTRACE", 7) != 0 || is_for_visualizer(environ[i])) && strncmp(environ[i], "RUBYOPT=", 8) != 0)
            env[kept++] = environ[i];
    return env;
}

typedef struct child {
    char *const *argv;
    char *const *env;
    char *stack_end; /* of the second process */
    int listen_fd, error, status;
} child;

#define CHILD_STACK_BYTES ((size_t)64 * 1024)

/* In the second process: system calls only, as it shares the program's memory until exec. */
static int become_visualizer(void *argument)
{
    child *c = argument;
    struct sigaction action = {.sa_handler = SIG_DFL}, now;
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        if (sigaction(signal_number, NULL, &now) == 0 &&
            (now.sa_handler != SIG_IGN || signal_number == SIGPIPE || signal_number == SIGCHLD))
            sigaction(signal_number, &action, NULL);
    int null = open("/dev/null", O_RDONLY);
    if (null > STDIN_FILENO) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
    fcntl(c->listen_fd, F_SETFD, 0); /* this process's descriptors are copies */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(c->argv[0], c->argv, c->env);
    c->error = errno;
    _exit(127);
}

/* In the first process, likewise. Its own child is none of the program's. */
static int start_and_wait(void *argument)
{
    child *c = argument;
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); /* who ignores it can't wait */
    pid_t pid = clone(become_visualizer, c->stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
    if (pid < 0)
        c->error = errno;
    while (pid > 0 && waitpid(pid, &c->status, 0) < 0 && errno == EINTR)
        ;
    _exit(0);
}

/* Runs the visualizer, which detaches itself: its process here ends at once. A process between starts it and waits for that,
 * and ends without a signal, which exec would give back to it: so a program's SIGCHLD trap does not run, and its wait for
 * any child takes nothing of ours. The calling thread stands still meanwhile (CLONE_VFORK). 0 or -errno; *status as of
 * waitpid. */
static int spawn_detached(char *const *argv, int listen_fd, int *status)
{
    char **env = visualizer_environment();
    char *stacks = mmap(NULL, 2 * CHILD_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int error = env && stacks != MAP_FAILED ? 0 : -ENOMEM;
    if (!error) {
        child c = {.argv = argv, .env = env, .stack_end = stacks + CHILD_STACK_BYTES, .listen_fd = listen_fd};
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the program may run in its copies */
        pid_t pid = clone(start_and_wait, stacks + 2 * CHILD_STACK_BYTES, CLONE_VM | CLONE_VFORK, &c);
        error = pid < 0 ? -errno : -c.error;
        while (pid > 0 && waitpid(pid, NULL, (int)__WCLONE) < 0 && errno == EINTR)
            ;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        *status = c.status;
    }
    if (stacks != MAP_FAILED)
        munmap(stacks, 2 * CHILD_STACK_BYTES);
    free(env);
    return error;
}

static int listen_at(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 128) == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

/* fd above the standard three: it must not be replaced by the visualizer's stdin. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    close(fd);
    return moved < 0 ? -error : moved;
}

static int start_visualizer(const char *visualizer, char *const *args, size_t arg_count, int fd, const char *socket_path,
                            char *why, size_t why_bytes)
{
    char fd_arg[32], pid_arg[32], socket_arg[160];
    snprintf(fd_arg, sizeof fd_arg, "--listen-fd=%d", fd);
    snprintf(pid_arg, sizeof pid_arg, "--watch-pid=%ld", (long)getpid());
    snprintf(socket_arg, sizeof socket_arg, "--socket=%s", socket_path);
    char **argv = calloc(arg_count + 6, sizeof *argv);
    if (!argv) {
        snprintf(why, why_bytes, "no memory to start the visualizer");
        return -1;
    }
    size_t count = 0;
    argv[count++] = (char *)(size_t)visualizer;
    argv[count++] = (char[]){"--detach"};
    argv[count++] = fd_arg;
    argv[count++] = socket_arg;
    argv[count++] = pid_arg;
    for (size_t i = 0; i < arg_count; i++)
        argv[count++] = args[i];
    int status = 0, error = spawn_detached(argv, fd, &status);
    free(argv);
    if (error)
        snprintf(why, why_bytes, "cannot start the visualizer %s: %s", visualizer, strerror(-error));
    else if (WIFSIGNALED(status))
        snprintf(why, why_bytes, "the visualizer %s was killed at its start by signal %d", visualizer, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(why, why_bytes, "the visualizer %s could not start (exit status %d)", visualizer, WEXITSTATUS(status));
    return error || status ? -1 : 0;
}

int session_open(const char *visualizer, char *const *args, size_t arg_count, char *socket_path, size_t path_bytes,
                 char *why, size_t why_bytes)
{
    const char *base = base_folder();
    char folder[128];
    sweep(base);
    snprintf(folder, sizeof folder, "%s/rrtrace-%u-XXXXXX", base, (unsigned)getuid());
    if (!mkdtemp(folder)) { /* mode 0700 */
        snprintf(why, why_bytes, "cannot make a folder for the session in %s: %s", base, strerror(errno));
        return -1;
    }
    snprintf(socket_path, path_bytes, "%s/" HS_SOCKET_NAME, folder);
    int fd = above_standard(listen_at(socket_path)), result = -1;
    if (fd < 0)
        snprintf(why, why_bytes, "cannot listen at %s: %s", socket_path, strerror(-fd));
    else
        result = start_visualizer(visualizer, args, arg_count, fd, socket_path, why, why_bytes);
    if (fd >= 0)
        close(fd);
    if (result != 0) {
        unlink(socket_path);
        rmdir(folder);
    }
    return result;
}
