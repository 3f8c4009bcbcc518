#include "app/editor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum style { /* how an editor wants file and line */
    STYLE_PLUS,       /* +12 file */
    STYLE_COLON,      /* file:12 */
    STYLE_GO_COLON,   /* -g file:12 */
    STYLE_LINE,       /* --line 12 file */
    STYLE_L,          /* -l 12 file */
    STYLE_EMACSCLIENT /* -n +12 file */
} style;

static const struct known { const char *name; style style; bool has_window; } known[] = {
    {"code", STYLE_GO_COLON, true}, {"code-insiders", STYLE_GO_COLON, true}, {"codium", STYLE_GO_COLON, true},
    {"vscodium", STYLE_GO_COLON, true}, {"cursor", STYLE_GO_COLON, true}, {"windsurf", STYLE_GO_COLON, true},
    {"subl", STYLE_COLON, true}, {"sublime_text", STYLE_COLON, true}, {"zed", STYLE_COLON, true}, {"zeditor", STYLE_COLON, true},
    {"lapce", STYLE_COLON, true}, {"gvim", STYLE_PLUS, true}, {"nvim-qt", STYLE_PLUS, true}, {"neovide", STYLE_PLUS, true},
    {"emacs", STYLE_PLUS, true}, {"emacsclient", STYLE_EMACSCLIENT, true}, {"gedit", STYLE_PLUS, true}, {"pluma", STYLE_PLUS, true},
    {"xed", STYLE_PLUS, true}, {"gnome-text-editor", STYLE_PLUS, true}, {"geany", STYLE_PLUS, true}, {"mousepad", STYLE_LINE, true},
    {"kate", STYLE_L, true}, {"kwrite", STYLE_L, true}, {"mate", STYLE_L, true}, {"idea", STYLE_LINE, true},
    {"rubymine", STYLE_LINE, true}, {"mine", STYLE_LINE, true}, {"hx", STYLE_COLON, false}, {"helix", STYLE_COLON, false},
};

editor_settings editor_settings_of_environment(void)
{
    return (editor_settings){getenv("RRTRACE_EDITOR"), getenv("VISUAL"), getenv("EDITOR"), getenv("TERMINAL")};
}

/* ---- words ---------------------------------------------------------------------------------------------------- */

static bool put(editor *e, const char *bytes, size_t n)
{
    if (e->used + n >= sizeof e->bytes)
        return false;
    memcpy(e->bytes + e->used, bytes, n);
    e->used += n;
    return true;
}

static bool begin_word(editor *e)
{
    if (e->count == EDITOR_WORDS)
        return false;
    e->argv[e->count++] = e->bytes + e->used;
    return true;
}

static bool add_word(editor *e, const char *word) { return begin_word(e) && put(e, word, strlen(word) + 1); }

/* Words as a shell splits them: blanks, '…', "…", and \ before any character. */
static bool split(editor *e, const char *text)
{
    while (*text) {
        char quote = 0;
        while (*text == ' ' || *text == '\t')
            text++;
        if (!*text)
            break;
        if (!begin_word(e))
            return false;
        for (; *text && (quote || (*text != ' ' && *text != '\t')); text++) {
            if ((*text == '\'' || *text == '"') && (!quote || quote == *text)) {
                quote = quote ? 0 : *text;
                continue;
            }
            if (*text == '\\' && quote != '\'' && text[1])
                text++;
            if (!put(e, text, 1))
                return false;
        }
        if (!put(e, "", 1))
            return false;
    }
    return true;
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static bool put_filled(editor *e, const char *word, const char *path, const char *line)
{
    while (*word) {
        const char *value = strncmp(word, "{file}", 6) == 0 ? path : strncmp(word, "{line}", 6) == 0 ? line : NULL;
        if (!(value ? put(e, value, strlen(value)) : put(e, word, 1)))
            return false;
        word += value ? 6 : 1;
    }
    return put(e, "", 1);
}

static int from_pattern(editor *e, const char *pattern, const char *path, uint32_t line)
{
    editor words = {0};
    char digits[16];
    bool fits = split(&words, pattern);
    snprintf(digits, sizeof digits, "%u", line ? line : 1);
    for (size_t i = 0; i < words.count && fits; i++)
        fits = begin_word(e) && put_filled(e, words.argv[i], path, digits);
    if (fits && !strstr(pattern, "{file}"))
        fits = add_word(e, path);
    return !fits ? -E2BIG : e->count ? 0 : -ENOENT;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool has_word(const editor *e, const char *word)
{
    for (size_t i = 1; i < e->count; i++)
        if (strcmp(e->argv[i], word) == 0)
            return true;
    return false;
}

static bool add_terminal(editor *e, const char *terminal)
{
    if (!split(e, terminal && *terminal ? terminal : "x-terminal-emulator") || e->count == 0)
        return false;
    const char *name = base_name(e->argv[0]);
    if (strcmp(name, "wezterm") == 0)
        return add_word(e, "start") && add_word(e, "--");
    bool wants_dashes = strcmp(name, "gnome-terminal") == 0 || strcmp(name, "ptyxis") == 0 || strcmp(name, "kgx") == 0;
    return add_word(e, wants_dashes ? "--" : "-e");
}

static bool add_place(editor *e, style how, const char *path, uint32_t line)
{
    char number[16], joined[8192];
    if (line == 0)
        return add_word(e, path);
    snprintf(number, sizeof number, "%s%u", how == STYLE_PLUS || how == STYLE_EMACSCLIENT ? "+" : "", line);
    switch (how) {
    case STYLE_EMACSCLIENT:
    case STYLE_PLUS: return add_word(e, number) && add_word(e, path);
    case STYLE_LINE: return add_word(e, "--line") && add_word(e, number) && add_word(e, path);
    case STYLE_L: return add_word(e, "-l") && add_word(e, number) && add_word(e, path);
    case STYLE_GO_COLON:
    case STYLE_COLON: break;
    }
    if (snprintf(joined, sizeof joined, "%s:%u", path, line) >= (int)sizeof joined)
        return false;
    return (how == STYLE_COLON || add_word(e, "-g")) && add_word(e, joined);
}

static int from_name(editor *e, const char *command, const char *terminal, const char *path, uint32_t line)
{
    editor words = {0};
    if (!split(&words, command))
        return -E2BIG;
    if (words.count == 0)
        return -ENOENT;
    struct known how = {"", STYLE_PLUS, false}; /* as vi does, in a terminal: so say most */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(base_name(words.argv[0]), known[i].name) == 0)
            how = known[i];
    bool asks_terminal = has_word(&words, "-nw") || has_word(&words, "-t") || has_word(&words, "-tty") || has_word(&words, "--no-window-system");
    bool fits = (how.has_window && !asks_terminal) || add_terminal(e, terminal);
    for (size_t i = 0; i < words.count && fits; i++)
        fits = add_word(e, words.argv[i]);
    if (fits && how.style == STYLE_EMACSCLIENT && !asks_terminal && !has_word(&words, "-n"))
        fits = add_word(e, "-n");
    return fits && add_place(e, how.style, path, line) ? 0 : -E2BIG;
}

int editor_make(editor *e, const editor_settings *s, const char *path, uint32_t line)
{
    e->count = e->used = 0;
    const char *command = s->visual && *s->visual ? s->visual : s->editor;
    int error = -ENOENT;
    if (s->pattern && *s->pattern)
        error = from_pattern(e, s->pattern, path, line);
    else if (command && *command)
        error = from_name(e, command, s->terminal, path, line);
    e->argv[e->count] = NULL;
    return error;
}

#define SET_EDITOR "RRTRACE_EDITOR='code -g {file}:{line}'"

void editor_explain(const editor *e, int error, char *line, size_t line_bytes)
{
    if (error == -E2BIG)
        snprintf(line, line_bytes, "the editor's command is too long");
    else if (e->count == 0)
        snprintf(line, line_bytes, "no editor: set VISUAL, or " SET_EDITOR);
    else
        snprintf(line, line_bytes, "%.100s can't be run: %s; set " SET_EDITOR, e->argv[0], strerror(-error));
}

/* ---- start ---------------------------------------------------------------------------------------------------- */

/* In the grandchild, which init adopts: a session of its own, so that it outlives the window. */
static void become(const editor *e, int tell_fd)
{
    struct rlimit files;
    setsid();
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > FD_SETSIZE) {
        files.rlim_cur = FD_SETSIZE; /* main.c has raised it, but what uses select must not get a higher number */
        setrlimit(RLIMIT_NOFILE, &files);
    }
    execvp(e->argv[0], e->argv);
    int error = errno;
    if (write(tell_fd, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

int editor_start(const editor *e)
{
    int pipe_fds[2], error = 0;
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return -errno;
    pid_t child = fork();
    if (child == 0) {
        pid_t own = fork();
        if (own == 0)
            become(e, pipe_fds[1]);
        _exit(own < 0);
    }
    close(pipe_fds[1]);
    if (child < 0)
        error = -errno;
    else
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    int told;
    if (!error && read(pipe_fds[0], &told, sizeof told) == (ssize_t)sizeof told)
        error = -told;
    close(pipe_fds[0]);
    return error;
}
