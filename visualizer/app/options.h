/* app/options.h - the command line of rrtrace-visualizer, which the extension and the rrtrace command write.
 * For:     main.c; and what the commands that read a recording have in common with it (command.h).
 * Use:     options_parse; the zero value of every field is its default.
 * Memory:  strings are borrowed from argv.
 */
#ifndef RRTRACE_APP_OPTIONS_H
#define RRTRACE_APP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct options {
    bool detach;             /* go into the background and a session of its own: Ctrl-C is for the program */
    int listen_fd;           /* inherited listening socket; -1: none */
    const char *socket_path; /* its path, removed at the end */
    pid_t watch_pid;
    bool no_window;
    const char *output_path; /* record there */
    bool goes_on;            /* behind what is in that file */
    const char *shot_path; /* write a picture there when the program ends */
    bool close_on_exit;    /* close the window when the program ends */
    size_t memory_bytes;   /* 0: OPTIONS_MEMORY_DEFAULT */
    uint32_t width, height; /* of the window or picture; 0: OPTIONS_WIDTH_DEFAULT, OPTIONS_HEIGHT_DEFAULT */
    bool stats;             /* without a window: say at the end what came in */
    bool version, help;
} options;

#define OPTIONS_MEMORY_DEFAULT ((size_t)1 << 30)
#define OPTIONS_MEMORY_MIN ((size_t)1 << 20)
#define OPTIONS_WIDTH_DEFAULT 1280u
#define OPTIONS_HEIGHT_DEFAULT 720u

/* "1280x720", 16 to 16384 each; false: it is no such size. */
bool options_size(const char *text, uint32_t *width, uint32_t *height);

/* base/size.h, OPTIONS_MEMORY_MIN at least; false: it is no such size. */
bool options_memory(const char *text, size_t *bytes);

/* 0, or 2 when something is wrong, told in one line on stderr. */
int options_parse(options *o, int argc, char **argv);
void options_help(void); /* to stdout */

#endif
