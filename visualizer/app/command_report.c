#include "app/command.h"
#include "report/report.h"
#include "report/write.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_TERMINAL 80u /* when it does not say */
#define WIDTH_PIPED 100u

typedef enum format { TEXT = 0, JSON, CSV } format;

typedef struct settings {
    report_desc desc;   /* from_ns and to_ns still count from the recording's begin */
    report_layout layout;
    format format;
    bool has_to;
    const char *output;
} settings;

enum { FROM = 256, TO, METHOD, THREAD, PROCESS, TABLE, TOP, SORT };

static const struct option long_options[] = {
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"table", required_argument, NULL, TABLE},
    {"method", required_argument, NULL, METHOD},
    {"thread", required_argument, NULL, THREAD},
    {"process", required_argument, NULL, PROCESS},
    {"from", required_argument, NULL, FROM},
    {"to", required_argument, NULL, TO},
    {"top", required_argument, NULL, TOP},
    {"sort", required_argument, NULL, SORT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *const formats[] = {"text", "json", "csv", NULL};
static const char *const tables[] = {"methods", "arcs", "threads", "gc", "spans", "marks", NULL}; /* bits in this order */
static const char *const sorts[] = {"self", "total", "calls", "mean", "max", "name", NULL}; /* report_sort in this order */

static void print_help(void)
{
    puts("Usage: rrtrace report [FILE] [options]\n"
         "\n"
         "Tables of a recording: methods by self and by total time, callers and callees\n"
         "with the time of just these calls, threads, GC, the longest calls (spans), and\n"
         "the program's own spans and marks (marks).\n"
         "Without FILE: of the newest rrtrace-*.rrt in this folder.\n"
         "\n"
         "  -f, --format FORMAT  text, json or csv [text]\n"
         "  -o, --output FILE    write there; - is standard output [-]\n"
         "      --table NAMES    methods,arcs,threads,gc,spans,marks [text: all,\n"
         "                       csv: methods]\n"
         "      --sort KEY       methods by self, total, calls, mean, max or name\n"
         "      --top N          lines a table at most [text: 20]\n"
         "What is measured; these combine:\n"
         "      --process PID    this process alone\n"
         "      --thread NAME    threads with this in a name, or with this number\n"
         "      --from, --to T   since the recording's begin: 1.5, 1.5s, 200ms, 30us; a\n"
         "                       call that lies across counts with the part inside, and\n"
         "                       as a call where it began\n"
         "What is shown of that:\n"
         "      --method NAME    methods with this in their name, their callers, callees\n"
         "\n"
         "NAME is a part of the name, or /a regular expression/, or /the same/i without\n"
         "regard to case. total counts the outermost of calls within each other. Times in\n"
         "JSON and CSV are nanoseconds. An invalid byte in a name is written as \\xFF.");
}

static bool parse_count(const char *text, unsigned long most, unsigned long *out)
{
    char *end;
    errno = 0;
    *out = strtoul(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out > 0 && *out <= most;
}

/* The place of a word in a list; -1, and told, when it is not there. */
static int parse_word(const char *option, const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    const char *nearest = command_nearest(word, words);
    char all[128] = "";
    for (int i = 0; words[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", words[i]);
    if (nearest)
        command_complain(COMMAND_MISUSED, "report: --%s %s: did you mean %s?", option, word, nearest);
    else
        command_complain(COMMAND_MISUSED, "report: --%s %s: not known; there are %s", option, word, all);
    return -1;
}

static bool parse_tables(const char *text, uint32_t *out)
{
    char words[128];
    if ((size_t)snprintf(words, sizeof words, "%s", text) >= sizeof words)
        return parse_word("table", text, tables) >= 0;
    for (char *rest = words, *word; (word = strsep(&rest, ",")) != NULL;) {
        int i = parse_word("table", word, tables);
        if (i < 0)
            return false;
        *out |= 1u << i;
    }
    return true;
}

static int bad_value(const char *option, const char *value, const char *wanted)
{
    return command_complain(COMMAND_MISUSED, "report: --%s %s: %s", option, value, wanted);
}

/* 0 or an exit code. */
static int take(settings *s, int option, const char *value)
{
    unsigned long count = 0;
    int word;
    switch (option) {
    case 'f':
        if ((word = parse_word("format", value, formats)) < 0)
            return COMMAND_MISUSED;
        s->format = (format)word;
        return 0;
    case SORT:
        if ((word = parse_word("sort", value, sorts)) < 0)
            return COMMAND_MISUSED;
        s->layout.sort = (report_sort)word;
        s->layout.is_sorted = true;
        return 0;
    case TABLE: return parse_tables(value, &s->layout.tables) ? 0 : COMMAND_MISUSED;
    case 'o': s->output = value; return 0;
    case METHOD: s->desc.method = value; return 0;
    case THREAD: s->desc.thread = value; return 0;
    case PROCESS:
        if (!parse_count(value, UINT32_MAX, &count))
            return bad_value("process", value, "no process id");
        s->desc.pid = (uint32_t)count;
        return 0;
    case TOP:
        if (!parse_count(value, 1000000000, &count))
            return bad_value("top", value, "give a number from 1");
        s->layout.top = count;
        return 0;
    case FROM:
        return command_time(value, &s->desc.from_ns) ? 0 : bad_value("from", value, "no time; give seconds, or 200ms, 30us");
    default:
        s->has_to = true;
        return command_time(value, &s->desc.to_ns) ? 0 : bad_value("to", value, "no time; give seconds, or 200ms, 30us");
    }
}

static int check(const settings *s)
{
    uint32_t t = s->layout.tables;
    if (s->has_to && s->desc.to_ns <= s->desc.from_ns)
        return command_complain(COMMAND_MISUSED, "report: --to must lie behind --from");
    if (s->format == CSV && (t & (t - 1)) != 0)
        return command_complain(COMMAND_MISUSED, "report: CSV holds one table: give --table methods, arcs, threads, gc, spans or marks");
    if (s->format == JSON && t != 0)
        return command_complain(COMMAND_MISUSED, "report: JSON holds all tables: leave --table out");
    return 0;
}

static unsigned terminal_width(bool is_terminal)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    unsigned long wanted;
    if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    if (columns && parse_count(columns, 10000, &wanted))
        return (unsigned)wanted;
    return is_terminal ? WIDTH_TERMINAL : WIDTH_PIPED;
}

static bool wants_colours(bool is_terminal)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return is_terminal && !(no && *no) && !(term && strcmp(term, "dumb") == 0); /* no-color.org */
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static uint32_t open_stream(void *context, uint32_t pid) { return report_stream_open(context, pid); }
static int run_stream(void *context, uint32_t stream, const ev *events, size_t count) { return report_run(context, stream, events, count); }
static int close_stream(void *context, uint32_t stream, bool has_ended) { return report_stream_close(context, stream, has_ended); }

typedef struct names {
    report *report;
    uint32_t stream;
    int error;
} names;

static void take_name(void *context, ev head, const void *payload)
{
    names *n = context;
    int error = report_look_at_name(n->report, n->stream, head, payload);
    n->error = n->error ? n->error : error;
}

/* Streams are opened in the order of their first chunk, which is the reader's order too. */
static int look_for_names(record_reader *reader, report *r)
{
    uint32_t count = record_info_of(reader).stream_count;
    names n = {.report = r};
    for (; n.stream < count && !n.error; n.stream++)
        n.error = record_definitions(reader, record_stream_at(reader, n.stream).stream, record_chunk_count(reader), take_name, &n);
    return n.error == -ENOMEM ? n.error : 0; /* others are the file's: reading on meets them again */
}

static int read_all(record_reader *reader, report *r, uint64_t to_ns)
{
    int error = report_needs_names(r) ? look_for_names(reader, r) : 0;
    if (!error)
        error = command_feed(reader, &(command_streams){open_stream, run_stream, close_stream, r, to_ns, "reading"});
    return error ? error : report_finish(r);
}

static int write_all(const settings *s, const report *r, command_output *output)
{
    report_model m = report_model_of(r);
    pen p;
    int code = command_output_begin(output);
    if (code)
        return code;
    int error = pen_init(&p, output->fd);
    if (!error) {
        error = s->format == JSON ? report_write_json(&m, &s->layout, &p)
              : s->format == CSV  ? report_write_csv(&m, &s->layout, &p)
                                  : report_write_text(&m, &s->layout, &p);
        error = error ? error : pen_finish(&p);
    }
    pen_free(&p);
    return command_output_close(output, error);
}

static int report_recording(settings *s, record_reader *reader, const char *path)
{
    command_output output;
    report *r;
    char why[256];
    int code = command_output_open(&output, s->output, path);
    if (code)
        return code;
    record_info info = record_info_of(reader);
    s->desc.origin_ns = info.begin_ns;
    s->desc.from_ns += info.begin_ns;
    s->desc.to_ns = s->has_to ? s->desc.to_ns + info.begin_ns : 0;
    size_t top = s->layout.top ? s->layout.top : REPORT_TOP_DEFAULT;
    s->desc.longest_count = s->format == JSON ? 0 : top;
    bool is_terminal = !output.path && isatty(STDOUT_FILENO);
    s->layout.title = path;
    s->layout.width = terminal_width(is_terminal);
    s->layout.has_colours = wants_colours(is_terminal);
    int error = report_new(&r, &s->desc, why, sizeof why);
    if (error)
        return command_complain(error == -EINVAL ? COMMAND_MISUSED : COMMAND_FAILED, "report: %s", why);
    error = read_all(reader, r, s->desc.to_ns);
    if (error)
        code = command_complain(COMMAND_FAILED, "%s: can't be read: %s", path, strerror(-error));
    else
        code = write_all(s, r, &output);
    report_delete(r);
    command_mention_problem(reader, path);
    return code;
}

int command_report(int argc, char **argv)
{
    settings s = {0};
    int option, code = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":f:o:h", long_options, NULL)) != -1 && !code) {
        if (option == 'h') {
            print_help();
            return COMMAND_DONE;
        }
        code = option == '?' || option == ':' ? command_bad_option("report", argv, long_options, option) : take(&s, option, optarg);
    }
    code = code ? code : check(&s);
    if (code)
        return code;
    char path[PATH_MAX];
    record_reader *reader = command_open("report", argc, argv, optind, path, sizeof path, &code);
    if (!reader)
        return code;
    code = report_recording(&s, reader, path);
    record_close(reader);
    return code;
}
