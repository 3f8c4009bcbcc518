/* app/command.h - the commands that read a recording: rrtrace-visualizer report, export, shot and view.
 * For:     main.c; the rrtrace command hands `rrtrace report …` on as it is.
 * Idea:    each has its options, its help and its output; what they share is below: a file read chunk by chunk into streams,
 *          an output file, words that were nearly right.
 * Errors:  one line on stderr. 1: it failed; 2: misuse. A damaged file is read as far as it can be, which is said in one
 *          line, and is no failure.
 */
#ifndef RRTRACE_APP_COMMAND_H
#define RRTRACE_APP_COMMAND_H

#include "base/pen.h"
#include "record/reader.h"
#include "wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COMMAND_DONE = 0, COMMAND_FAILED = 1, COMMAND_MISUSED = 2 };

/* argv[0] is the command's own word. They return the exit code. */
int command_report(int argc, char **argv);
int command_export(int argc, char **argv);
#ifdef RRTRACE_WINDOW
int command_shot(int argc, char **argv); /* in window_shot_command.c */
int command_view(int argc, char **argv); /* in window_view_command.c */
#endif

/* "rrtrace: …" on stderr; returns code. */
__attribute__((format(printf, 2, 3))) int command_complain(int code, const char *format, ...);
/* The word of a list, ended by NULL, that was probably meant, or NULL. */
const char *command_nearest(const char *word, const char *const *words);
/* Something getopt_long has refused ('?', ':'): says so with what was probably meant. COMMAND_MISUSED. */
struct option;
int command_bad_option(const char *command, char **argv, const struct option *known, int refused);

/* For pictures beside something that needs the cores: llvmpipe takes a thread a core otherwise. Before any thread is started. */
void command_leave_cores(void);

/* A time as people write it: 1.5, 1.5s, 200ms, 30us, 2min. False: it is none. */
bool command_time(const char *text, uint64_t *ns);

/* What --memory says (NULL: it was not given), else RRTRACE_MEMORY, else OPTIONS_MEMORY_DEFAULT. 0, or an exit code and a line. */
int command_memory(const char *command, const char *given, size_t *bytes);

/* The recording named in arguments [first, argc), or the newest rrtrace-*.rrt of this folder, which is then said. NULL and a
 * code when there is none. path[path_bytes] holds its name. */
record_reader *command_open(const char *command, int argc, char **argv, int first, char *path, size_t path_bytes, int *code);

/* Where to write: path NULL or "-" is standard output. A file is not emptied before command_output_begin. */
typedef struct command_output {
    const char *path; /* NULL: standard output */
    int fd;
} command_output;
int command_output_open(command_output *o, const char *path, const char *recording); /* 0 or an exit code */
int command_output_begin(const command_output *o);
int command_output_close(command_output *o, int error); /* error: of the writing, negative or 0. An exit code */

/* Takes a recording's streams; numbers are what open has returned. 0 or -errno. */
typedef struct command_streams {
    uint32_t (*open)(void *context, uint32_t pid); /* UINT32_MAX: memory is out */
    int (*run)(void *context, uint32_t stream, const ev *events, size_t event_count);
    int (*close)(void *context, uint32_t stream, bool has_ended);
    void *context;
    uint64_t to_ns;     /* nobody asks for what comes later; 0: all */
    const char *doing;  /* of the progress line: "reading" */
} command_streams;

/* All of it, in the file's order; the streams come in the same order every time. Damaged chunks are left out. */
int command_feed(record_reader *r, const command_streams *to);
/* After reading: the one line about what was wrong with the file, if anything was; and one for each stream that ended early. */
void command_mention_problem(record_reader *r, const char *path);

#endif
