/* app/editor.h - a source line in the user's editor.
 * For:     window_ask.c.
 * Idea:    words, never a shell: a file's name can hold anything. Where it comes from, the first that is set:
 *            RRTRACE_EDITOR   words with {file} and {line}:  code -g {file}:{line}
 *            VISUAL, EDITOR   how the line is said follows from the editor's name; one that needs a terminal gets a new one
 *                             ($TERMINAL, else x-terminal-emulator), since the program's own is not ours
 * Use:     editor_make(&e, &settings, path, line); editor_start(&e).
 * Memory:  fixed, in the struct.
 * Threads: any.
 */
#ifndef RRTRACE_APP_EDITOR_H
#define RRTRACE_APP_EDITOR_H

#include <stddef.h>
#include <stdint.h>

#define EDITOR_WORDS 32u
#define EDITOR_BYTES 16384u

typedef struct editor_settings { /* as in the environment; NULL or "": not set */
    const char *pattern, *visual, *editor, *terminal;
} editor_settings;

typedef struct editor {
    char *argv[EDITOR_WORDS + 1]; /* into bytes; NULL at the end */
    size_t count;
    char bytes[EDITOR_BYTES];
    size_t used;
} editor;

editor_settings editor_settings_of_environment(void);
/* 0, -ENOENT: no editor is named, -E2BIG: too many words. line 0: unknown. */
int editor_make(editor *e, const editor_settings *s, const char *path, uint32_t line);
/* Runs on without us. 0, or -errno: the first word can't be run. */
int editor_start(const editor *e);
/* One line for what either of them has returned: what is wrong, what to do. */
void editor_explain(const editor *e, int error, char *line, size_t line_bytes);

#endif
