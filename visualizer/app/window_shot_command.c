#include "app/command.h"
#include "app/options.h"
#include "app/shot.h"

#include "base/mem.h"
#include "history/history.h"
#include "history/notes.h"
#include "sim/sim.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 256, FROM, TO, CAMERA, MEMORY };

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"size", required_argument, NULL, SIZE},
    {"from", required_argument, NULL, FROM},
    {"to", required_argument, NULL, TO},
    {"camera", required_argument, NULL, CAMERA},
    {"memory", required_argument, NULL, MEMORY},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *const cameras[] = {"scene", "flame", "threads", NULL}; /* as view_camera */

static void print_help(void)
{
    puts("Usage: rrtrace shot [FILE] [-o PNG]\n"
         "\n"
         "Draws one picture of a recording, without a window.\n"
         "Without FILE: the newest rrtrace-*.rrt in this folder.\n"
         "\n"
         "  -o, --output FILE    write there [the recording's name with .png]\n"
         "      --size WxH       pixels [1280x720]\n"
         "      --camera NAME    scene, flame (time and depth) or threads (the GVL) [scene]\n"
         "      --from, --to T   since the recording's begin: 1.5, 1.5s, 200ms, 30us\n"
         "      --memory SIZE    what may be kept of it: 64M, 1.5G [1G]\n"
         "  -h, --help           print this");
}

typedef struct settings {
    const char *output;
    uint32_t width, height;
    uint64_t from_ns, to_ns; /* since the recording's begin; to 0: its end */
    view_camera camera;
    const char *memory; /* NULL: not given */
    size_t memory_bytes;
} settings;

/* ---- the recording, all of it ------------------------------------------------------------------------------------ */

typedef struct film {
    catalog *catalog;
    history *history;
    sim *sim;
    notes *notes;
    uint64_t last_ns;
} film;

static uint32_t open_stream(void *context, uint32_t pid)
{
    film *f = context;
    uint32_t process = catalog_process_add(f->catalog, pid, 1);
    return process == CATALOG_NONE ? UINT32_MAX : sim_stream_open(f->sim, process, 0);
}

static int run_stream(void *context, uint32_t stream, const ev *events, size_t count)
{
    film *f = context;
    int error = sim_run(f->sim, &(sim_block){stream, (uint32_t)count, events}, 1);
    uint64_t now_ns = sim_stream_now_ns(f->sim, stream);
    f->last_ns = now_ns > f->last_ns ? now_ns : f->last_ns;
    return error;
}

static int close_stream(void *context, uint32_t stream, bool has_ended)
{
    (void)has_ended; /* what was open in a file that was cut off is drawn to its last event, too */
    return sim_stream_close(((film *)context)->sim, stream);
}

static void keep(void *context, uint32_t track, const sim_span *spans, size_t count)
{
    history_append(((film *)context)->history, track, spans, count); /* what does not fit is counted there */
}

static void keep_note(void *context, const sim_note *note) { notes_take(((film *)context)->notes, note); }

static int read_film(film *f, record_reader *reader, size_t memory_bytes)
{
    int error = catalog_new(&f->catalog);
    if (!error)
        error = history_new(&f->history, memory_bytes);
    if (!error)
        error = notes_new(&f->notes);
    if (!error)
        error = sim_new(&f->sim, &(sim_desc){.catalog = f->catalog, .sink = keep, .note = keep_note, .context = f});
    return error ? error : command_feed(reader, &(command_streams){open_stream, run_stream, close_stream, f, 0, "reading"});
}

static void film_free(film *f)
{
    sim_delete(f->sim);
    notes_delete(f->notes);
    history_delete(f->history);
    catalog_delete(f->catalog);
}

/* ---- the picture --------------------------------------------------------------------------------------------------- */

static int draw_film(const film *f, const settings *s, uint64_t begin_ns, const char *path)
{
    char error[PATH_MAX + 256];
    history_stats kept = history_stats_of(f->history);
    view_model model = {.catalog = f->catalog, .history = f->history, .sim = f->sim, .notes = f->notes, .begin_ns = begin_ns, .now_ns = f->last_ns};
    view_status status = {
        .event_count = catalog_event_count(f->catalog),
        .dropped = catalog_dropped(f->catalog),
        .span_count = kept.span_count,
        .evicted_count = kept.evicted_count,
        .memory_bytes = kept.used_bytes,
        .memory_budget = kept.budget_bytes,
        .ended = true,
    };
    shot_desc desc = {.path = path, .width = s->width, .height = s->height, .view = {.camera = s->camera}};
    if (s->from_ns || s->to_ns) {
        desc.view.begin_ns = begin_ns + s->from_ns;
        desc.view.end_ns = s->to_ns ? begin_ns + s->to_ns : f->last_ns;
    }
    if (desc.view.end_ns < desc.view.begin_ns)
        return command_complain(COMMAND_MISUSED, "shot: --from lies behind the recording's end");
    if (shot_draw(&desc, &model, &status, error, sizeof error) != 0)
        return command_complain(COMMAND_FAILED, "%s", error);
    fprintf(stderr, "rrtrace: picture written to %s\n", path);
    return COMMAND_DONE;
}

static int shot_of(record_reader *reader, const char *path, const settings *s)
{
    char output[PATH_MAX + 8];
    size_t length = strlen(path), stem = length > 4 && strcmp(path + length - 4, ".rrt") == 0 ? length - 4 : length;
    snprintf(output, sizeof output, "%.*s.png", (int)stem, path);
    const char *target = s->output ? s->output : output;
    struct stat a, b;
    if (stat(path, &a) == 0 && stat(target, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return command_complain(COMMAND_MISUSED, "shot: %s is the recording itself; give another name to -o", target);
    film f = {0};
    int error = read_film(&f, reader, s->memory_bytes);
    command_mention_problem(reader, path);
    int code = error ? command_complain(COMMAND_FAILED, "%s: can't be drawn: %s", path, strerror(-error))
                     : draw_film(&f, s, record_info_of(reader).begin_ns, target);
    film_free(&f);
    return code;
}

static int take_option(settings *s, int option, const char *value)
{
    switch (option) {
    case 'o': s->output = value; return 0;
    case MEMORY: s->memory = value; return 0;
    case FROM:
    case TO:
        if (command_time(value, option == FROM ? &s->from_ns : &s->to_ns))
            return 0;
        return command_complain(COMMAND_MISUSED, "shot: %s: no time; give seconds, or 200ms, 30us", value);
    case CAMERA:
        for (int i = 0; cameras[i]; i++)
            if (strcmp(value, cameras[i]) == 0) {
                s->camera = (view_camera)i;
                return 0;
            }
        return command_complain(COMMAND_MISUSED, "shot: --camera: %s is not known; there are scene, flame and threads", value);
    default:
        if (options_size(value, &s->width, &s->height))
            return 0;
        return command_complain(COMMAND_MISUSED, "shot: --size: %s is no size; give 1280x720 (16 to 16384 each)", value);
    }
}

int command_shot(int argc, char **argv)
{
    settings s = {.width = OPTIONS_WIDTH_DEFAULT, .height = OPTIONS_HEIGHT_DEFAULT};
    int option, code = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:h", long_options, NULL)) != -1) {
        if (option == 'h') {
            print_help();
            return COMMAND_DONE;
        }
        code = option == '?' || option == ':' ? command_bad_option("shot", argv, long_options, option) : take_option(&s, option, optarg);
        if (code)
            return code;
    }
    if (s.to_ns && s.to_ns <= s.from_ns)
        return command_complain(COMMAND_MISUSED, "shot: --to must lie behind --from");
    code = command_memory("shot", s.memory, &s.memory_bytes);
    if (code)
        return code;
    char path[PATH_MAX];
    record_reader *reader = command_open("shot", argc, argv, optind, path, sizeof path, &code);
    if (!reader)
        return code;
    setenv("LP_NUM_THREADS", "2", 0);
    code = shot_of(reader, path, &s);
    record_close(reader);
    return code;
}
