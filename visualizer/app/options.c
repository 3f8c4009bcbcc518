#include "app/options.h"

#include "base/size.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>

enum { DETACH = 256, LISTEN_FD, SOCKET, WATCH_PID, NO_WINDOW, OUTPUT, SHOT, CLOSE_ON_EXIT, MEMORY, WINDOW_SIZE, STATS, APPEND };

static const struct option long_options[] = {
    {"detach", no_argument, NULL, DETACH},
    {"listen-fd", required_argument, NULL, LISTEN_FD},
    {"socket", required_argument, NULL, SOCKET},
    {"watch-pid", required_argument, NULL, WATCH_PID},
    {"no-window", no_argument, NULL, NO_WINDOW},
    {"output", required_argument, NULL, OUTPUT},
    {"shot", required_argument, NULL, SHOT},
    {"close-on-exit", no_argument, NULL, CLOSE_ON_EXIT},
    {"memory", required_argument, NULL, MEMORY},
    {"window-size", required_argument, NULL, WINDOW_SIZE},
    {"append", no_argument, NULL, APPEND},
    {"stats", no_argument, NULL, STATS},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool number(const char *text, long long low, long long high, long long *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *out >= low && *out <= high;
}

static bool is_side(uint32_t pixels) { return pixels >= 16 && pixels <= 16384; }

bool options_size(const char *text, uint32_t *width, uint32_t *height)
{
    char extra;
    return sscanf(text, "%ux%u%c", width, height, &extra) == 2 && is_side(*width) && is_side(*height);
}

bool options_memory(const char *text, size_t *bytes)
{
    uint64_t value;
    if (!size_read(text, &value) || value < OPTIONS_MEMORY_MIN || value > SIZE_MAX / 2)
        return false;
    *bytes = (size_t)value;
    return true;
}

static bool take(options *o, int option, const char *value)
{
    long long n = 0;
    bool ok = true;
    switch (option) {
    case DETACH: o->detach = true; break;
    case LISTEN_FD: ok = number(value, 0, 1 << 20, &n); o->listen_fd = (int)n; break;
    case SOCKET: o->socket_path = value; break;
    case WATCH_PID: ok = number(value, 1, INT32_MAX, &n); o->watch_pid = (pid_t)n; break;
    case NO_WINDOW: o->no_window = true; break;
    case OUTPUT: o->output_path = value; break;
    case SHOT: o->shot_path = value; break;
    case CLOSE_ON_EXIT: o->close_on_exit = true; break;
    case MEMORY: ok = options_memory(value, &o->memory_bytes); break;
    case WINDOW_SIZE: ok = options_size(value, &o->width, &o->height); break;
    case APPEND: o->goes_on = true; break;
    case STATS: o->stats = true; break;
    case 'v': o->version = true; break;
    case 'h': o->help = true; break;
    default: break;
    }
    return ok;
}

int options_parse(options *o, int argc, char **argv)
{
    *o = (options){.listen_fd = -1};
    int option, index = 0;
    while ((option = getopt_long(argc, argv, "vh", long_options, &index)) != -1) {
        if (option == '?')
            return 2; /* getopt has named it */
        if (!take(o, option, optarg)) {
            fprintf(stderr, "rrtrace-visualizer: --%s=%s: not a valid value; see --help\n", long_options[index].name, optarg);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "rrtrace-visualizer: %s: unknown command; see --help\n", argv[optind]);
        return 2;
    }
    return 0;
}

void options_help(void)
{
    puts("rrtrace-visualizer - the window of rrtrace. The rrtrace command and the rrtrace gem start it.\n"
         "\n"
         "  --listen-fd=N       inherited listening socket that programs join through\n"
         "  --socket=PATH       that socket's path, removed at the end\n"
         "  --watch-pid=PID     the session lasts at least as long as this process\n"
         "  --detach            run in the background\n"
         "  --output=FILE       record into FILE as well\n"
         "  --append            behind the recording that FILE is already\n"
         "  --no-window         no window; without --shot, record into --output or a file named by time and process\n"
         "  --shot=FILE         write a PNG picture when the program ends\n"
         "  --window-size=WxH   pixels of the window or the picture (default 1280x720)\n"
         "  --close-on-exit     close the window when the program ends\n"
         "  --memory=SIZE       memory for the history of spans (default 1 GiB)\n"
         "  --stats             without a window: say at the end what came in, what waited and what was dropped\n"
         "  -v, --version       version and what was built in\n"
         "  -h, --help          this text");
}
