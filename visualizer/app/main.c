/* app/main.c - the visualizer's process: options, the session, and then a window or the wait for the end. */
#include "app/command.h"
#include "app/options.h"
#include "app/session.h"
#include "record/writer.h"
#ifdef RRTRACE_WINDOW
#include "app/shot.h"
#include "app/window.h"
#endif

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKGROUND_NICE 5 /* the program comes first */

static volatile sig_atomic_t stops;

static bool is_headless(const options *o) { return o->no_window || o->shot_path; }

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

/* Where a line about a recording can go while there is a window, or NULL. A terminal or a file may be kept; whoever reads a pipe
 * waits until all have let go of it. */
static FILE *keep_log(void)
{
    struct stat st;
    bool is_kept = isatty(2) || (fstat(2, &st) == 0 && S_ISREG(st.st_mode));
    int fd = is_kept ? fcntl(2, F_DUPFD_CLOEXEC, 3) : -1;
    FILE *log = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (log)
        setvbuf(log, NULL, _IOLBF, 0);
    else if (fd >= 0)
        close(fd);
    return log;
}

/* With a window nothing else will be said: let go of the terminal or pipe that the program writes to. */
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

/* Each program takes a descriptor, and most limits are low for the sake of old programs only. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* In the folder that it is started in. */
static void default_path(char *out, size_t bytes, pid_t pid)
{
    char folder[PATH_MAX];
    recording_name(out, bytes, getcwd(folder, sizeof folder), pid);
}

#ifdef RRTRACE_WINDOW
static int take_shot(session *s, const options *o, const char *path)
{
    char error[256];
    uint32_t width = o->width ? o->width : OPTIONS_WIDTH_DEFAULT, height = o->height ? o->height : OPTIONS_HEIGHT_DEFAULT;
    int result = shot_take(s, path, width, height, error, sizeof error);
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

static void print_stats(const session_status *status)
{
    fprintf(stderr,
            "rrtrace: %" PRIu64 " events of %u streams; programs waited %" PRIu64 " times; %" PRIu64 " events dropped; %" PRIu64
            " spans, %" PRIu64 " of them in outline only; %zu of %zu MiB used\n",
            status->event_count, status->stream_count, status->writer_waits, status->dropped, status->history.span_count,
            status->history.evicted_count, status->history.used_bytes >> 20, status->history.budget_bytes >> 20);
}

static bool has_methods(session *s)
{
    bool has = false;
    session_lock(s);
    const catalog *c = session_model_of(s).catalog;
    for (uint32_t i = 0; i < catalog_process_count(c) && !has; i++)
        has = catalog_method_limit(c, i) > 0;
    session_unlock(s);
    return has;
}

/* Whoever reads this may read the file: it is whole. 0, or 1 when it could not be written to its end. */
static int tell_recording(session *s, const session_status *status)
{
    if (status->stream_count == 0) {
        fprintf(stderr, "rrtrace: no Ruby program was traced: %s has nothing in it\n", status->recording);
        return 1;
    }
    if (status->problem)
        fprintf(stderr, "rrtrace: %s\n", status->problem);
    if (status->recording_failed)
        return 1;
    recording_say_written(stderr, status->recording, status->recorded_bytes, status->writer_waits, status->dropped);
    if (!has_methods(s))
        fprintf(stderr, "rrtrace: there is no call in it: --only, --except and --only-path have left out whatever was called\n");
    return 0;
}

/* No window: wait for the end. A picture is taken whenever the last program that runs has ended. Where the recording lies is
 * said once: before the command that was started returns, if it is a Ruby program. */
static int run_headless(session *s, const options *o)
{
    int result = 0;
    bool told = false;
    session_status status = {0};
    for (bool over = false; !over && !stops;) {
        bool some_ended = session_wait(s, 20);
        status = session_status_of(s);
        over = status.is_over;
        if (!some_ended)
            continue;
        if (o->shot_path && status.open_streams == 0)
            result |= take_shot(s, o, o->shot_path) != 0;
        if (o->stats && status.open_streams == 0)
            print_stats(&status);
        if (status.recording && status.watched_left && status.open_streams == 0 && !told) {
            result |= tell_recording(s, &status);
            told = true;
        }
        session_answer(s);
    }
    session_answer(s);
    if (status.recording && !told)
        result |= tell_recording(s, &status);
    if (o->shot_path && status.stream_count == 0)
        fprintf(stderr, "rrtrace: no Ruby program was traced: no picture was written\n");
    return result;
}

/* Recording from here on, if an output is named, and then the events. 0, or 1 after a line on stderr. */
static int begin(session *s, const options *o)
{
    char line[PATH_MAX + 256];
    int error = o->output_path ? session_record(s, o->output_path, o->goes_on, line, sizeof line) : 0;
    if (error) {
        fprintf(stderr, "rrtrace: %s\n", line);
        return 1;
    }
    error = session_begin(s);
    if (error)
        fprintf(stderr, "rrtrace-visualizer: can't start: %s\n", strerror(-error));
    return error ? 1 : 0;
}

#ifdef RRTRACE_WINDOW
static int run_window(session *s, const options *o, window *w)
{
    FILE *log = stderr;
    if (begin(s, o) != 0) {
        window_close(w);
        return 1;
    }
    if (!getenv("RRTRACE_VALIDATION")) { /* whose messages are to be seen */
        log = keep_log();
        leave_terminal();
    }
    session_answer_at_once(s);
    int status = window_run(w, s, log);
    window_close(w);
    return status;
}
#endif

static int run(session *s, options *o)
{
    char path[PATH_MAX + 64], error[256] = "this rrtrace was built without SDL2 or Vulkan: see rrtrace doctor";
    if (!is_headless(o)) {
#ifdef RRTRACE_WINDOW
        window *w;
        window_desc desc = {.width = o->width, .height = o->height, .close_on_exit = o->close_on_exit, .pid = o->watch_pid, .stops = &stops};
        if (window_open(&w, &desc, error, sizeof error) == 0)
            return run_window(s, o, w);
#endif
        if (!o->output_path) {
            default_path(path, sizeof path, o->watch_pid);
            o->output_path = path;
        }
        fprintf(stderr, "rrtrace: no window: %s; recording into %s instead\n", error, o->output_path);
    }
    return begin(s, o) ? 1 : run_headless(s, o);
}

#ifndef RRTRACE_WINDOW
static int no_window(int argc, char **argv)
{
    (void)argc;
    return command_complain(COMMAND_FAILED, "%s: this rrtrace was built without SDL2 or Vulkan: see rrtrace doctor", argv[0]);
}
#define command_shot no_window
#define command_view no_window
#endif

static const struct { const char *name; int (*run)(int argc, char **argv); } commands[] = {
    {"report", command_report}, {"export", command_export}, {"shot", command_shot}, {"view", command_view},
};

/* Commands that read a recording need no session. -1: it is none of them. */
static int run_command(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[0], commands[i].name) == 0) {
            signal(SIGPIPE, SIG_DFL); /* in a pipe they end as other tools do, even when whoever started us ignored it */
            return commands[i].run(argc, argv);
        }
    return -1;
}

int main(int argc, char **argv)
{
    int code = argc > 1 ? run_command(argc - 1, argv + 1) : -1;
    if (code >= 0)
        return code;
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
    char path[PATH_MAX + 64], line[PATH_MAX + 256];
    if (is_headless(&o) && !o.output_path && !o.shot_path) {
        default_path(path, sizeof path, o.watch_pid);
        o.output_path = path;
    }
    if (o.output_path && record_writer_check(o.output_path, line, sizeof line) != 0) { /* while somebody still listens */
        fprintf(stderr, "rrtrace: %s\n", line);
        return 1;
    }
    if (o.detach && detach() != 0) {
        fprintf(stderr, "rrtrace-visualizer: can't start in the background: %s\n", strerror(errno));
        return 1;
    }
    if (o.detach)
        close_inherited(o.listen_fd);
    fcntl(o.listen_fd, F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of writing */
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    command_leave_cores();
    raise_file_limit();

    session *s;
    session_desc desc = {
        .listen_fd = o.listen_fd,
        .socket_path = o.socket_path,
        .watch_pid = o.watch_pid,
        .memory_bytes = o.memory_bytes ? o.memory_bytes : OPTIONS_MEMORY_DEFAULT,
        .counts_methods = !is_headless(&o),
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
