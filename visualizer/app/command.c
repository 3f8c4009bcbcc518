#include "app/command.h"

#include "app/options.h"
#include "base/length.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "wire/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRESS_AFTER_NS UINT64_C(500000000) /* who waits less needs no bar */
#define PROGRESS_EVERY_NS UINT64_C(100000000)
#define PROGRESS_COLUMNS 30

int command_complain(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("rrtrace: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return code;
}

void command_leave_cores(void) { setenv("LP_NUM_THREADS", sysconf(_SC_NPROCESSORS_ONLN) > 4 ? "2" : "1", 0); }

/* ---- words that were nearly right -------------------------------------------------------------------------------- */

#define WORD_MAX 32

/* How many letters must be added, dropped or replaced. Source: Levenshtein (1965); Wagner and Fischer (1974). */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1], length = strlen(b);
    if (strlen(a) > WORD_MAX || length > WORD_MAX)
        return WORD_MAX;
    for (size_t k = 0; k <= length; k++)
        row[k] = k;
    for (size_t i = 0; a[i]; i++) {
        size_t before = row[0];
        row[0] = i + 1;
        for (size_t k = 0; k < length; k++) {
            size_t replace = before + (a[i] != b[k]), least = row[k] < row[k + 1] ? row[k] + 1 : row[k + 1] + 1;
            before = row[k + 1];
            row[k + 1] = replace < least ? replace : least;
        }
    }
    return row[length];
}

const char *command_nearest(const char *word, const char *const *words)
{
    const char *nearest = NULL;
    size_t least = strlen(word) > 5 ? 3 : 2; /* one letter of a short word, two of a long one, besides an exchange */
    for (; *words; words++) {
        size_t d = distance(word, *words);
        if (d <= least && (!nearest || d < least)) {
            nearest = *words;
            least = d;
        }
    }
    return nearest;
}

int command_bad_option(const char *command, char **argv, const struct option *known, int refused)
{
    const char *word = argv[optind - 1];
    if (refused == ':')
        return command_complain(COMMAND_MISUSED, "%s: %s wants a value (rrtrace %s --help)", command, word, command);
    if (optopt) /* a letter; its word may hold others */
        return command_complain(COMMAND_MISUSED, "%s: no such option: -%c (rrtrace %s --help)", command, optopt, command);
    const char *names[32] = {0};
    for (size_t i = 0; known[i].name && i + 1 < sizeof names / sizeof *names; i++)
        names[i] = known[i].name;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const char *nearest = command_nearest(name + strspn(name, "-"), names);
    return command_complain(COMMAND_MISUSED, "%s: no such option: %s%s%s%s (rrtrace %s --help)", command, name,
                            nearest ? "; did you mean --" : "", nearest ? nearest : "", nearest ? "?" : "", command);
}

bool command_time(const char *text, uint64_t *ns)
{
    uint64_t read_ns;
    if (!length_read(text, 1e9, &read_ns) || read_ns == UINT64_MAX)
        return false;
    *ns = read_ns;
    return true;
}

int command_memory(const char *command, const char *given, size_t *bytes)
{
    const char *set = getenv("RRTRACE_MEMORY"), *text = given ? given : set && *set ? set : NULL;
    *bytes = OPTIONS_MEMORY_DEFAULT;
    if (!text || options_memory(text, bytes))
        return 0;
    return command_complain(COMMAND_MISUSED, "%s: %s: %s is no size; give bytes, or a number with K, M or G: 64M, 1.5G (1M is the least)", command,
                            given ? "--memory" : "RRTRACE_MEMORY", text);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool find_newest(char *path, size_t path_bytes)
{
    glob_t found;
    struct timespec newest = {0};
    path[0] = '\0';
    if (glob("rrtrace-*.rrt", 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat st;
        if (stat(found.gl_pathv[i], &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        bool is_newer = st.st_mtim.tv_sec != newest.tv_sec ? st.st_mtim.tv_sec > newest.tv_sec : st.st_mtim.tv_nsec >= newest.tv_nsec;
        if (is_newer && snprintf(path, path_bytes, "%s", found.gl_pathv[i]) > 0)
            newest = st.st_mtim;
    }
    globfree(&found);
    return path[0] != '\0';
}

record_reader *command_open(const char *command, int argc, char **argv, int first, char *path, size_t path_bytes, int *code)
{
    if (argc - first > 1) {
        *code = command_complain(COMMAND_MISUSED, "%s: %s: one recording at a time (rrtrace %s --help)", command, argv[first + 1], command);
        return NULL;
    }
    bool is_given = first < argc;
    if (is_given) {
        snprintf(path, path_bytes, "%s", argv[first]);
    } else if (!find_newest(path, path_bytes)) {
        *code = command_complain(COMMAND_MISUSED, "%s: no recording given, and no rrtrace-*.rrt in this folder; rrtrace -o FILE COMMAND makes one", command);
        return NULL;
    }
    char error[RECORD_PROBLEM_BYTES];
    record_reader *r;
    *code = COMMAND_DONE;
    if (record_open(&r, path, error, sizeof error) != 0) {
        *code = command_complain(COMMAND_FAILED, "%s", error);
        return NULL;
    }
    if (!is_given)
        fprintf(stderr, "rrtrace: reading %s, the newest rrtrace-*.rrt here\n", path);
    return r;
}

static bool is_same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int command_output_open(command_output *o, const char *path, const char *recording)
{
    bool is_file = path && strcmp(path, "-") != 0;
    *o = (command_output){is_file ? path : NULL, STDOUT_FILENO};
    if (!is_file)
        return 0;
    o->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (o->fd < 0)
        return command_complain(COMMAND_FAILED, "%s: can't be written: %s", path, strerror(errno));
    if (is_same_file(o->fd, recording)) {
        close(o->fd);
        return command_complain(COMMAND_MISUSED, "%s: is the recording itself: choose another file", path);
    }
    return 0;
}

int command_output_begin(const command_output *o)
{
    struct stat st;
    if (!o->path || fstat(o->fd, &st) != 0 || !S_ISREG(st.st_mode) || ftruncate(o->fd, 0) == 0)
        return 0;
    return command_complain(COMMAND_FAILED, "%s: can't be written: %s", o->path, strerror(errno));
}

int command_output_close(command_output *o, int error)
{
    if (o->path && close(o->fd) != 0 && !error)
        error = -errno;
    o->fd = -1;
    if (!error)
        return COMMAND_DONE;
    if (error == -EPIPE)
        return COMMAND_FAILED; /* the reader has had enough: nothing to say */
    return command_complain(COMMAND_FAILED, "%s: %s", o->path ? o->path : "standard output", strerror(-error));
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct fed_stream {
    uint32_t to; /* its number there */
    bool is_open, is_past;
} fed_stream;

typedef struct feed {
    record_reader *reader;
    const command_streams *to;
    map numbers;      /* of the file -> index into streams */
    VEC(fed_stream) streams;
    VEC(ev) events;
    uint32_t stream;  /* whose definitions are handed on */
    int error;
} feed;

static void show_progress(const char *doing, uint64_t done, uint64_t all, uint64_t begun_ns, uint64_t *shown_ns)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (now_ns - begun_ns < PROGRESS_AFTER_NS || now_ns - *shown_ns < PROGRESS_EVERY_NS)
        return;
    char bar[PROGRESS_COLUMNS + 1] = {0};
    int columns = all ? (int)(done * PROGRESS_COLUMNS / all) : 0;
    memset(bar, ' ', PROGRESS_COLUMNS);
    memset(bar, '#', (size_t)columns);
    fprintf(stderr, "\r%s [%s] %3d%%", doing, bar, all ? (int)(done * 100 / all) : 0);
    *shown_ns = now_ns;
}

static uint32_t pid_of(const record_reader *r, uint32_t stream_count, uint32_t number)
{
    for (uint32_t i = 0; i < stream_count; i++)
        if (record_stream_at(r, i).stream == number)
            return record_stream_at(r, i).pid;
    return 0;
}

/* The index of a stream, opened when it is new; UINT32_MAX: memory is out. */
static uint32_t stream_of(feed *f, uint32_t number)
{
    uint32_t index = map_get(&f->numbers, number);
    if (index != MAP_NONE)
        return index;
    if (!vec_reserve(&f->streams, f->streams.count + 1) || map_put(&f->numbers, number, (uint32_t)f->streams.count) != 0)
        return UINT32_MAX;
    uint32_t to = f->to->open(f->to->context, pid_of(f->reader, record_info_of(f->reader).stream_count, number));
    if (to == UINT32_MAX)
        return UINT32_MAX;
    index = (uint32_t)f->streams.count++;
    f->streams.items[index] = (fed_stream){.to = to, .is_open = true};
    return index;
}

/* Names that a damaged chunk has defined. Its clock's pairs went by: they would turn time back. */
static void take_definition(void *context, ev head, const void *payload)
{
    feed *f = context;
    uint32_t slots = ev_define_slots(head.place);
    if (f->error || ev_define_what(head) == EV_DEFINE_CLOCK)
        return;
    if (!vec_reserve(&f->events, (size_t)slots + 1)) {
        f->error = -ENOMEM;
        return;
    }
    f->events.items[0] = head;
    if (slots > 0) {
        f->events.items[slots] = (ev){0};
        memcpy(&f->events.items[1], payload, head.place);
    }
    f->error = f->to->run(f->to->context, f->stream, f->events.items, (size_t)slots + 1);
}

static int feed_events(feed *f, uint32_t i, uint32_t index)
{
    record_chunk chunk = record_chunk_at(f->reader, i);
    uint32_t count = 0;
    if (f->streams.items[index].is_past || !f->streams.items[index].is_open)
        return 0;
    if (!vec_reserve(&f->events, (size_t)chunk.slot_count + 1))
        return -ENOMEM;
    int error = record_read_events(f->reader, i, f->events.items, chunk.slot_count, &count);
    f->stream = f->streams.items[index].to;
    if (error == -ENOMEM)
        return error;
    if (error) { /* what can be read is read; the reader keeps the problem */
        error = record_definitions(f->reader, chunk.stream, i + 1, take_definition, f);
        return f->error ? f->error : error == -ENOMEM ? error : 0;
    }
    f->streams.items[index].is_past = f->to->to_ns && chunk.end_ns >= f->to->to_ns;
    return f->to->run(f->to->context, f->stream, f->events.items, count);
}

static int feed_chunk(feed *f, uint32_t i)
{
    record_chunk chunk = record_chunk_at(f->reader, i);
    if (chunk.kind == RECORD_OTHER || chunk.kind == RECORD_OVERVIEW)
        return 0;
    uint32_t index = stream_of(f, chunk.stream);
    if (index == UINT32_MAX)
        return -ENOMEM;
    if (chunk.kind == RECORD_EVENTS)
        return feed_events(f, i, index);
    if (chunk.kind != RECORD_STREAM_ENDS || !f->streams.items[index].is_open)
        return 0;
    f->streams.items[index].is_open = false;
    return f->to->close(f->to->context, f->streams.items[index].to, true);
}

int command_feed(record_reader *r, const command_streams *to)
{
    feed f = {.reader = r, .to = to};
    uint32_t count = record_chunk_count(r);
    uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC), shown_ns = 0;
    bool has_progress = isatty(STDERR_FILENO);
    int error = 0;
    for (uint32_t i = 0; i < count && !error; i++) {
        error = feed_chunk(&f, i);
        if (has_progress)
            show_progress(to->doing, i, count, begun_ns, &shown_ns);
    }
    for (size_t i = 0; i < f.streams.count && !error; i++)
        if (f.streams.items[i].is_open)
            error = to->close(to->context, f.streams.items[i].to, false);
    if (shown_ns)
        fputs("\r\033[K", stderr);
    map_free(&f.numbers);
    vec_free(&f.streams);
    vec_free(&f.events);
    return error;
}

void command_mention_problem(record_reader *r, const char *path)
{
    record_trouble trouble;
    for (uint32_t i = 0; record_next_trouble(r, &i, &trouble);)
        fprintf(stderr, "rrtrace: %s: process %u: its events end early: %s\n", path, trouble.pid, trouble.text);
    record_info info = record_info_of(r);
    if (!info.problem[0])
        return;
    /* Some of these lines begin with the file's name, as they should. */
    bool is_named = strncmp(info.problem, path, strlen(path)) == 0;
    fprintf(stderr, "rrtrace: %s%s%s\n", is_named ? "" : path, is_named ? "" : ": ", info.problem);
}
