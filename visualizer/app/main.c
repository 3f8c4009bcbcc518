/* app/main.c - the visualizer's process: options, the session, and then a window or the wait for the end. */
#include "app/command.h"
#include "app/options.h"
#include "app/session.h"
#ifdef RRTRACE_WINDOW
#include "app/shot.h"
#include "app/window.h"
#endif

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WIDTH_DEFAULT 1280u
#define HEIGHT_DEFAULT 720u
#define BACKGROUND_NICE 5 /* the program comes first */

static volatile sig_atomic_t stops;

static void stop(int signal_number)
{
    (void)signal_number;
    stops = 1;
}

static void print_version(void)
{
    puts("rrtrace-visualizer 0.1.0");
#ifdef RRTRACE_WINDOW
    puts("window: yes");
#else
    puts("window: no (built without SDL2 or Vulkan)");
#endif
}

/* The parent ends at once, so that whoever started us has no child to wait for. */
static int detach(void)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0)
        _exit(0);
    setsid();
    return 0;
}

/* What the program had open besides is no business of ours, and must not stay open because of us. */
static void close_inherited(int keep_fd)
{
    if (keep_fd > 3)
        close_range(3, (unsigned)keep_fd - 1, 0);
    close_range(keep_fd >= 3 ? (unsigned)keep_fd + 1 : 3, ~0u, 0);
}

/* With a window nothing more will be said: let go of the terminal or pipe that the program writes to. */
static void leave_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    close(null);
    if (chdir("/") != 0)
        return; /* nor does the folder that it was started in matter any more */
}

#ifdef RRTRACE_WINDOW
/* A picture needs a name even when nobody gave one: in the current folder, else the temporary one. */
static void default_shot_path(char *out, size_t bytes, pid_t pid)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &parts));
    const char *folder = ".";
    if (access(folder, W_OK) != 0)
        folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    snprintf(out, bytes, "%s/rrtrace-%s-%d.png", folder, stamp, (int)pid);
    for (int again = 2; access(out, F_OK) == 0 && again < 1000; again++) /* a program may open several sessions a second */
        snprintf(out, bytes, "%s/rrtrace-%s-%d-%d.png", folder, stamp, (int)pid, again);
}

static int take_shot(session *s, const options *o, const char *path)
{
    char error[256];
    int result = shot_take(s, path, o->width, o->height, error, sizeof error);
    if (result)
        fprintf(stderr, "rrtrace: %s\n", error);
    else
        fprintf(stderr, "rrtrace: picture written to %s\n", path);
    return result;
}
#else
static int take_shot(session *s, const options *o, const char *path)
{
    (void)s;
    (void)o;
    fprintf(stderr, "rrtrace: %s: no picture: this rrtrace was built without SDL2 or Vulkan: see rrtrace doctor\n", path);
    return -ENOTSUP;
}
#endif

/* No window: wait for the end, and take the picture whenever the last program that runs has ended. */
static int run_headless(session *s, const options *o, const char *shot_path)
{
    int result = 0;
    session_status status = {0};
    for (bool over = false; !over && !stops;) {
        bool some_ended = session_wait(s, 20);
        status = session_status_of(s);
        over = status.is_over;
        if (!some_ended)
            continue;
        if (shot_path && status.open_streams == 0)
            result = take_shot(s, o, shot_path);
        session_answer(s);
    }
    session_answer(s);
    if (shot_path && status.stream_count == 0)
        fprintf(stderr, "rrtrace: no Ruby program was traced: no picture was written\n");
    return result ? 1 : 0;
}

static int run(session *s, options *o)
{
    const char *shot_path = o->shot_path;
    if (o->no_window || shot_path)
        return run_headless(s, o, shot_path);
    int status = 1;
    char error[256] = "this rrtrace was built without SDL2 or Vulkan: see rrtrace doctor";
#ifdef RRTRACE_WINDOW
    window *w;
    bool validation = getenv("RRTRACE_VALIDATION") != NULL;
    window_desc desc = {o->width, o->height, o->close_on_exit, validation, &stops};
    char path[512];
    if (window_open(&w, &desc, error, sizeof error) == 0) {
        if (!validation)
            leave_terminal();
        session_answer_at_once(s);
        status = window_run(w, s) == 0 ? 0 : 1;
        if (validation && window_validation_count(w) > 0) {
            fprintf(stderr, "rrtrace: the validation layer had %u messages\n", window_validation_count(w));
            status = 3;
        }
        window_close(w);
        return status;
    }
    default_shot_path(path, sizeof path, o->watch_pid);
    shot_path = path;
    fprintf(stderr, "rrtrace: %s: a picture will be written to %s at the end\n", error, path);
#else
    fprintf(stderr, "rrtrace: no window: %s\n", error);
#endif
    return run_headless(s, o, shot_path);
}

/* Commands that read a recording need no session. */
static int run_command(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL); /* in a pipe they end as other tools do, even when whoever started us ignored it */
    return strcmp(argv[0], "report") == 0 ? command_report(argc, argv) : command_export(argc, argv);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "report") == 0 || strcmp(argv[1], "export") == 0))
        return run_command(argc - 1, argv + 1);
    options o;
    int status = options_parse(&o, argc, argv);
    if (status)
        return status;
    if (o.help || o.version) {
        o.help ? options_help() : print_version();
        return 0;
    }
    if (o.listen_fd < 0) {
        fputs("rrtrace-visualizer: nothing to show: it is started by `rrtrace COMMAND`; see --help\n", stderr);
        return 2;
    }
    o.width = o.width ? o.width : WIDTH_DEFAULT;
    o.height = o.height ? o.height : HEIGHT_DEFAULT;
    if (o.detach && detach() != 0) {
        fprintf(stderr, "rrtrace-visualizer: can't start in the background: %s\n", strerror(errno));
        return 1;
    }
    if (o.detach)
        close_inherited(o.listen_fd);
    fcntl(o.listen_fd, F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    /* llvmpipe starts a thread a core otherwise, and the program has only what we leave. */
    setenv("LP_NUM_THREADS", sysconf(_SC_NPROCESSORS_ONLN) > 4 ? "2" : "1", 0);

    session *s;
    session_desc desc = {
        .listen_fd = o.listen_fd,
        .socket_path = o.socket_path,
        .watch_pid = o.watch_pid,
        .memory_bytes = o.memory_bytes ? o.memory_bytes : OPTIONS_MEMORY_DEFAULT,
    };
    int error = session_start(&s, &desc);
    if (error) {
        fprintf(stderr, "rrtrace-visualizer: can't start: %s\n", strerror(-error));
        return 1;
    }
    setpriority(PRIO_PROCESS, 0, BACKGROUND_NICE); /* on Linux of this thread alone, which draws; and of Vulkan's, which it starts */
    status = run(s, &o);
    session_stop(s);
    return status;
}
