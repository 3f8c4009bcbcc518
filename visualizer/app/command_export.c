#include "app/command.h"
#include "export/jsonl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct option long_options[] = {
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *const formats[] = {"jsonl", "perfetto", "chrome", "speedscope", "firefox", "collapsed", NULL};

static void print_help(void)
{
    puts("Usage: rrtrace export [FILE] -f FORMAT [-o FILE]\n"
         "\n"
         "Converts a recording for other tools.\n"
         "Without FILE: the newest rrtrace-*.rrt in this folder.\n"
         "\n"
         "  -f, --format FORMAT  jsonl; not in this version yet: perfetto, chrome,\n"
         "                       speedscope, firefox, collapsed\n"
         "  -o, --output FILE    write there; - is standard output [-]\n"
         "\n"
         "jsonl is one object a line for every call, in the order of starts within a\n"
         "thread, for jq, DuckDB and the like:\n"
         "  {\"pid\":…,\"thread\":…,\"fiber\":…,\"depth\":0,\"name\":\"Object#fib\",\n"
         "   \"kind\":\"ruby\",\"start_ns\":…,\"duration_ns\":… or null,\n"
         "   \"closed_by\":\"return\"|\"unwound\"|\"end\"|null}\n"
         "start_ns counts from the recording's begin; depth, the frames below on its own\n"
         "fiber's stack. A call that had not ended when the program did is closed by\n"
         "\"end\", when the recording did by null, and has no duration. Frames that were\n"
         "open before tracing began have \"open_at_start\":true besides. An invalid byte in\n"
         "a name is written as \\xFF.");
}

static uint32_t open_stream(void *context, uint32_t pid) { return jsonl_stream_open(context, pid); }
static int run_stream(void *context, uint32_t stream, const ev *events, size_t count) { return jsonl_run(context, stream, events, count); }
static int close_stream(void *context, uint32_t stream, bool has_ended) { return jsonl_stream_close(context, stream, has_ended); }

/* As above, but stops when nobody can take any more lines. */
typedef struct writing {
    jsonl *jsonl;
    const pen *pen;
} writing;

static uint32_t open_again(void *context, uint32_t pid) { return jsonl_stream_open(((writing *)context)->jsonl, pid); }
static int run_again(void *context, uint32_t stream, const ev *events, size_t count)
{
    writing *w = context;
    int error = jsonl_run(w->jsonl, stream, events, count);
    return error ? error : w->pen->error;
}
static int close_again(void *context, uint32_t stream, bool has_ended)
{
    return jsonl_stream_close(((writing *)context)->jsonl, stream, has_ended);
}

static int write_jsonl(record_reader *reader, pen *p, uint64_t *dropped)
{
    jsonl *j;
    int error = jsonl_new(&j, p, record_info_of(reader).begin_ns);
    if (error)
        return error;
    error = command_feed(reader, &(command_streams){open_stream, run_stream, close_stream, j, 0, "reading"});
    if (!error)
        error = jsonl_second_pass(j);
    if (!error)
        error = command_feed(reader, &(command_streams){open_again, run_again, close_again, &(writing){j, p}, 0, "writing"});
    *dropped = jsonl_dropped(j);
    jsonl_delete(j);
    return error ? error : pen_finish(p);
}

static int export_recording(record_reader *reader, const char *path, const char *output_path)
{
    command_output output;
    pen p;
    int code = command_output_open(&output, output_path, path);
    if (!code)
        code = command_output_begin(&output);
    if (code)
        return code;
    uint64_t dropped = 0;
    int error = pen_init(&p, output.fd);
    if (!error)
        error = write_jsonl(reader, &p, &dropped);
    pen_free(&p);
    if (dropped > 0)
        fprintf(stderr, "rrtrace: %s: %" PRIu64 " events were dropped when it was recorded: calls are missing\n", path, dropped);
    command_mention_problem(reader, path);
    return command_output_close(&output, error);
}

static int check_format(const char *format)
{
    if (!format)
        return command_complain(COMMAND_MISUSED, "export: no format given, as in: rrtrace export FILE -f jsonl (rrtrace export --help)");
    for (int i = 0; formats[i]; i++) {
        if (strcmp(format, formats[i]) != 0)
            continue;
        return i == 0 ? 0 : command_complain(COMMAND_FAILED, "export: %s is not in this version yet; jsonl is", format);
    }
    const char *nearest = command_nearest(format, formats);
    if (nearest)
        return command_complain(COMMAND_MISUSED, "export: %s: not known; did you mean %s?", format, nearest);
    return command_complain(COMMAND_MISUSED, "export: %s: not known; there is jsonl (later: perfetto, chrome, speedscope, firefox, collapsed)", format);
}

int command_export(int argc, char **argv)
{
    const char *format = NULL, *output = NULL;
    int option, code;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":f:o:h", long_options, NULL)) != -1) {
        switch (option) {
        case 'f': format = optarg; break;
        case 'o': output = optarg; break;
        case 'h': print_help(); return COMMAND_DONE;
        default: return command_bad_option("export", argv, long_options, option);
        }
    }
    code = check_format(format);
    if (code)
        return code;
    char path[PATH_MAX];
    record_reader *reader = command_open("export", argc, argv, optind, path, sizeof path, &code);
    if (!reader)
        return code;
    code = export_recording(reader, path, output);
    record_close(reader);
    return code;
}
