#include "app/command.h"
#include "app/options.h"
#include "app/session.h"
#include "app/window.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define VIEW_NICE 5

enum { SIZE = 256, MEMORY };

static const struct option long_options[] = {
    {"memory", required_argument, NULL, MEMORY},
    {"size", required_argument, NULL, SIZE},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct settings {
    uint32_t width, height; /* 0: as options.h */
    const char *memory; /* NULL: not given */
    size_t memory_bytes;
} settings;

static volatile sig_atomic_t stops;

static void stop(int signal_number)
{
    (void)signal_number;
    stops = 1;
}

static void print_help(void)
{
    puts("Usage: rrtrace view [FILE]\n"
         "\n"
         "Opens a recording in the window: all of it at first; its detail where you look.\n"
         "Without FILE: the newest rrtrace-*.rrt in this folder.\n"
         "\n"
         "      --memory SIZE    what the window may keep in memory: 64M, 1.5G [1G]\n"
         "      --size WxH       of the window [1280x720]\n"
         "  -h, --help           print this");
}

static int take_option(settings *s, int option, const char *value)
{
    if (option == MEMORY)
        s->memory = value;
    if (option == SIZE && !options_size(value, &s->width, &s->height))
        return command_complain(COMMAND_MISUSED, "view: --size: %s is no size; give 1280x720 (16 to 16384 each)", value);
    return 0;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int show(record_reader *reader, const char *path, const settings *s)
{
    session *film;
    window *w;
    char error[256];
    /* The file first: it is read while the window is being made. */
    int code = session_open(&film, reader, path, s->memory_bytes);
    if (code)
        return command_complain(COMMAND_FAILED, "%s: can't be shown: %s", path, strerror(-code));
    setpriority(PRIO_PROCESS, 0, VIEW_NICE); /* on Linux of this thread, and of Vulkan's, which it starts */
    window_desc desc = {
        .width = s->width,
        .height = s->height,
        .stops = &stops,
    };
    if (window_open(&w, &desc, error, sizeof error) != 0) {
        session_stop(film);
        return command_complain(COMMAND_FAILED, "view: no window: %s; rrtrace shot draws a picture of it, rrtrace report tables", error);
    }
    code = window_run(w, film, stderr);
    window_close(w);
    session_stop(film);
    return code;
}

int command_view(int argc, char **argv)
{
    settings s = {0};
    int option, code = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        if (option == 'h') {
            print_help();
            return COMMAND_DONE;
        }
        code = option == '?' || option == ':' ? command_bad_option("view", argv, long_options, option) : take_option(&s, option, optarg);
        if (code)
            return code;
    }
    code = command_memory("view", s.memory, &s.memory_bytes);
    if (code)
        return code;
    char path[PATH_MAX];
    record_reader *reader = command_open("view", argc, argv, optind, path, sizeof path, &code);
    if (!reader)
        return code;
    command_mention_problem(reader, path);
    command_leave_cores();
    catch_signals();
    return show(reader, path, &s);
}
