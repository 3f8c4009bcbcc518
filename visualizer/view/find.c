#include "view/find.h"

#include "base/length.h"
#include "view/label.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MS 1e6 /* what a number alone counts */

void find_init(find *f) { *f = (find){.most_ns = UINT64_MAX}; }
void find_free(find *f) { pattern_free(&f->regex); }

/* ---- what the text says --------------------------------------------------------------------------------------- */

static const char *after(const char *word, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncasecmp(word, prefix, n) == 0 ? word + n : NULL;
}

/* Only what is wrong first is said. */
static void refuse(find *f, const char *format, const char *what)
{
    if (f->error[0] == '\0')
        snprintf(f->error, sizeof f->error, format, what);
}

static void add(find *f, const char **list, size_t *count, const char *word)
{
    if (*count < FIND_PARTS)
        list[(*count)++] = word;
    else
        refuse(f, "too many words: %.40s", word);
}

static void add_name(find *f, const char **list, size_t *count, const char *filter, const char *name)
{
    if (*name)
        add(f, list, count, name);
    else
        refuse(f, "%s of what name?", filter);
}

static void read_length(find *f, const char *text, uint64_t *ns)
{
    text += *text == '=';
    if (*text == '\0')
        refuse(f, "%s of what length?", "dur:");
    else if (!length_read(text, MS, ns))
        refuse(f, "no length: %.40s (1ms, 20us, 2s)", text);
}

static void read_word(find *f, const char *word)
{
    const char *rest;
    if ((rest = after(word, "thread:")) != NULL)
        add_name(f, f->threads, &f->thread_count, "thread:", rest);
    else if ((rest = after(word, "process:")) != NULL || (rest = after(word, "pid:")) != NULL)
        add_name(f, f->processes, &f->process_count, "process:", rest);
    else if ((rest = after(word, "dur>")) != NULL)
        read_length(f, rest, &f->least_ns);
    else if ((rest = after(word, "dur<")) != NULL)
        read_length(f, rest, &f->most_ns);
    else
        add(f, f->parts, &f->part_count, word);
}

/* The end of a regular expression that begins at text: its last slash, and the i that may stand behind; NULL: not closed. */
static char *regex_end(char *text)
{
    for (char *at = text + strlen(text); at > text + 1; at--) {
        char *flag = at[-1] == '/' ? at : NULL;
        if (flag && (*flag == '\0' || *flag == ' '))
            return flag;
        if (flag && *flag == 'i' && (flag[1] == '\0' || flag[1] == ' '))
            return flag + 1;
    }
    return NULL;
}

static void read_regex(find *f, const char *begin, const char *end)
{
    size_t n = (size_t)(end - begin);
    memcpy(f->regex_text, begin, n);
    f->regex_text[n] = '\0';
    char error[sizeof f->error];
    pattern_free(&f->regex); /* of two the last counts */
    f->has_regex = pattern_init(&f->regex, f->regex_text, error, sizeof error) == 0;
    if (!f->has_regex)
        refuse(f, "%s", error);
}

static void understand(find *f)
{
    pattern_free(&f->regex);
    f->regex = (pattern){0};
    f->part_count = f->thread_count = f->process_count = 0;
    f->has_regex = false;
    f->least_ns = 0;
    f->most_ns = UINT64_MAX;
    f->error[0] = '\0';
    memcpy(f->words, f->text, sizeof f->words);
    for (char *at = f->words; *at;) {
        while (*at == ' ')
            *at++ = '\0';
        if (!*at)
            break;
        char *end = at[0] == '/' ? regex_end(at) : NULL;
        if (!end && at[0] == '/' && strpbrk(at, "()[]{}|*+?^$\\.")) { /* else it may be part of a name */
            refuse(f, "%s", "no regular expression yet: / ends it");
            break;
        }
        if (end) {
            char next = *end;
            read_regex(f, at, end);
            at = next ? end + 1 : end;
            continue;
        }
        char *word = at;
        while (*at && *at != ' ')
            at++;
        if (*at)
            *at++ = '\0';
        read_word(f, word);
    }
    f->is_active = f->part_count || f->thread_count || f->process_count || f->has_regex || f->least_ns > 0 || f->most_ns < UINT64_MAX;
    f->generation++;
}

/* ---- the line ------------------------------------------------------------------------------------------------- */

void find_open(find *f)
{
    f->is_open = true;
    f->cursor = f->bytes;
}

void find_close(find *f) { f->is_open = false; }

void find_set(find *f, const char *text)
{
    snprintf(f->text, sizeof f->text, "%s", text);
    f->bytes = f->cursor = strlen(f->text);
    understand(f);
}

void find_clear(find *f)
{
    find_set(f, "");
    f->is_open = false;
}

void find_insert(find *f, const char *utf8)
{
    size_t n = strlen(utf8);
    if (n == 0 || f->bytes + n >= sizeof f->text || (unsigned char)utf8[0] < ' ')
        return;
    memmove(f->text + f->cursor + n, f->text + f->cursor, f->bytes - f->cursor + 1);
    memcpy(f->text + f->cursor, utf8, n);
    f->bytes += n;
    f->cursor += n;
    understand(f);
}

static bool is_inside_character(const find *f, size_t at) { return at < f->bytes && label_is_within(f->text[at]); }

static size_t before(const find *f, size_t at)
{
    if (at > 0)
        at--;
    while (at > 0 && is_inside_character(f, at))
        at--;
    return at;
}

static size_t behind(const find *f, size_t at)
{
    if (at < f->bytes)
        at++;
    while (is_inside_character(f, at))
        at++;
    return at;
}

static void take_out(find *f, size_t from, size_t to)
{
    memmove(f->text + from, f->text + to, f->bytes - to + 1);
    f->bytes -= to - from;
    f->cursor = from;
    understand(f);
}

/* Where the word before the cursor begins. */
static size_t word_before(const find *f)
{
    size_t at = f->cursor;
    while (at > 0 && f->text[at - 1] == ' ')
        at--;
    while (at > 0 && f->text[at - 1] != ' ')
        at--;
    return at;
}

bool find_key(find *f, view_key key, uint32_t modifiers)
{
    bool has_ctrl = modifiers & VIEW_MOD_CTRL;
    switch (key) {
    case VIEW_KEY_BACKSPACE: take_out(f, has_ctrl ? word_before(f) : before(f, f->cursor), f->cursor); return true;
    case VIEW_KEY_DELETE: take_out(f, f->cursor, behind(f, f->cursor)); return true;
    case VIEW_KEY_LEFT: f->cursor = before(f, f->cursor); return true;
    case VIEW_KEY_RIGHT: f->cursor = behind(f, f->cursor); return true;
    case VIEW_KEY_HOME: f->cursor = 0; return true;
    case VIEW_KEY_A: f->cursor = has_ctrl ? 0 : f->cursor; return has_ctrl;
    case VIEW_KEY_END: f->cursor = f->bytes; return true;
    default: return false;
    }
}

/* ---- what matches --------------------------------------------------------------------------------------------- */

static bool has_capital(const char *s)
{
    for (; *s; s++)
        if (isupper((unsigned char)*s))
            return true;
    return false;
}

static bool contains(const char *text, const char *part)
{
    return has_capital(part) ? strstr(text, part) != NULL : strcasestr(text, part) != NULL;
}

bool find_method(const find *f, const catalog_method *m)
{
    for (size_t i = 0; i < f->part_count; i++)
        if (!contains(m->name, f->parts[i]))
            return false;
    return !f->has_regex || pattern_matches(&f->regex, m->name, m->name_bytes);
}

static bool is_number(const char *word, uint32_t number)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%u", number);
    return strcmp(word, digits) == 0;
}

bool find_thread(const find *f, const catalog *c, uint32_t id)
{
    const catalog_thread *thread = catalog_thread_at(c, id);
    const catalog_process *process = catalog_process_at(c, thread->process);
    char name[96];
    catalog_thread_title(c, id, name);
    for (size_t i = 0; i < f->thread_count; i++)
        if (!contains(name, f->threads[i]) && !is_number(f->threads[i], thread->number))
            return false;
    for (size_t i = 0; i < f->process_count; i++)
        if (!contains(process->command, f->processes[i]) && !is_number(f->processes[i], process->pid))
            return false;
    return true;
}

bool find_duration(const find *f, uint64_t ns) { return ns >= f->least_ns && ns <= f->most_ns; }
