#include "select.h"

#include "wire/expression.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One way to match a name. */
typedef struct rule {
    bool is_regex;
    regex_t regex;
    char *glob;         /* owned */
    const char *method; /* in glob, behind the separator: what the bare name must match; NULL: that can't be told */
} rule;

typedef struct rules {
    rule *list; /* owned */
    size_t count;
} rules;

static struct {
    rules only, except;
    char **folders; /* owned */
    size_t folder_count;
} wanted;

#define REASON_BYTES 200
_Static_assert(REASON_BYTES < SELECT_WHY_BYTES, "a reason, and the word");

/* ---- Patterns. */

/* * stands for any characters, all others for themselves. */
static bool glob_matches(const char *glob, const char *name)
{
    const char *star = NULL, *resume = NULL;
    while (*name) {
        if (*glob == '*') {
            star = glob++;
            resume = name;
        } else if (*glob == *name) {
            glob++;
            name++;
        } else if (star) { /* let the last star take one more */
            glob = star + 1;
            name = ++resume;
        } else {
            return false;
        }
    }
    while (*glob == '*')
        glob++;
    return *glob == '\0';
}

static bool is_constant_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == ':' || (unsigned char)c >= 0x80;
}

/* Behind the separator of a class and a method, or NULL: there is none. */
static const char *method_part(const char *word)
{
    if (word[0] == '#' && word[1] == '<') { /* a class without a name of its own: #<Class:0x…>#call */
        const char *end = strrchr(word, '>');
        return end && (end[1] == '#' || end[1] == '.') ? end + 2 : NULL;
    }
    while (is_constant_char(*word) || *word == '*')
        word++;
    return *word == '#' || *word == '.' ? word + 1 : NULL;
}

static void rule_free(rule *r)
{
    if (r->is_regex)
        regfree(&r->regex);
    free(r->glob);
    *r = (rule){0};
}

static void rules_free(rules *all)
{
    for (size_t i = 0; i < all->count; i++)
        rule_free(&all->list[i]);
    free(all->list);
    *all = (rules){0};
}

static rule *rules_add(rules *all)
{
    rule *list = realloc(all->list, (all->count + 1) * sizeof *list);
    if (!list)
        return NULL;
    all->list = list;
    list[all->count] = (rule){0};
    return &list[all->count++];
}

static int out_of_memory(char *why)
{
    snprintf(why, REASON_BYTES, "no memory");
    return -1;
}

static int add_glob(rules *all, const char *before, const char *word, const char *after, char why[REASON_BYTES])
{
    rule *r = rules_add(all);
    size_t bytes = strlen(before) + strlen(word) + strlen(after) + 1;
    if (!r || !(r->glob = malloc(bytes)))
        return out_of_memory(why);
    snprintf(r->glob, bytes, "%s%s%s", before, word, after);
    r->method = method_part(r->glob);
    return 0;
}

static bool is_regex(const char *word)
{
    size_t length = strlen(word);
    return length > 2 && word[0] == '/' &&
           (word[length - 1] == '/' || (length > 3 && strcmp(word + length - 2, "/i") == 0));
}

static int add_regex(rules *all, const char *word, char why[REASON_BYTES])
{
    size_t length = strlen(word);
    bool ignores_case = word[length - 1] == 'i';
    char *expression = malloc(EXPRESSION_FACTOR * length + 1);
    const char *reason;
    rule *r = expression ? rules_add(all) : NULL;
    if (!r) {
        free(expression);
        return out_of_memory(why);
    }
    if (!expression_posix(word + 1, length - 2 - ignores_case, expression, &reason)) {
        free(expression);
        snprintf(why, REASON_BYTES, "%s", reason);
        return -1;
    }
    int error = regcomp(&r->regex, expression, REG_EXTENDED | REG_NOSUB | (ignores_case ? REG_ICASE : 0));
    free(expression);
    r->is_regex = error == 0;
    if (error != 0)
        regerror(error, &r->regex, why, REASON_BYTES);
    return error == 0 ? 0 : -1;
}

/* The class or module itself, and all inside. */
static int add_constant(rules *all, const char *word, char why[REASON_BYTES])
{
    static const char *const ends[] = {"#*", ".*", "::*"};
    for (int i = 0; i < 3; i++)
        if (add_glob(all, "", word, ends[i], why) != 0)
            return -1;
    return 0;
}

static int add_name(rules *all, const char *word, char why[REASON_BYTES])
{
    const char *method = method_part(word);
    size_t length = strlen(word);
    if (length == 0 || strpbrk(word, ", \t\r\n") || (method && *method == '\0') ||
        (length > 2 && strcmp(word + length - 2, "::") == 0)) {
        snprintf(why, REASON_BYTES, "it names no method");
        return -1;
    }
    if ((word[0] == '#' && word[1] != '<') || word[0] == '.')
        return add_glob(all, "*", word, "", why);
    if (method || strchr(word, '*') || word[0] == '#')
        return add_glob(all, "", word, "", why);
    bool is_constant = isupper((unsigned char)word[0]);
    bool may_be_constant = is_constant || ((unsigned char)word[0] & 0x80); /* which letters are capitals is not known here */
    if (may_be_constant && add_constant(all, word, why) != 0)
        return -1;
    if (is_constant)
        return 0;
    return add_glob(all, "*#", word, "", why) || add_glob(all, "*.", word, "", why) ? -1 : 0;
}

/* Foo::bar is Foo.bar, as Ruby has it. Behind the last :: that a method's name follows, or NULL. */
static char *method_behind_colons(char *word)
{
    char *found = NULL;
    for (char *at = strstr(word, "::"); at && at > word; at = strstr(at + 1, "::"))
        found = at;
    bool is_method = found && (islower((unsigned char)found[2]) || found[2] == '_');
    return is_method && !strpbrk(word, "#.*") ? found : NULL;
}

static int add_word(rules *all, const char *word, char why[REASON_BYTES])
{
    if (is_regex(word))
        return add_regex(all, word, why);
    char *name = strdup(strncmp(word, "::", 2) == 0 ? word + 2 : word), *colons = name ? method_behind_colons(name) : NULL;
    if (!name)
        return out_of_memory(why);
    if (colons) {
        colons[0] = '.';
        memmove(colons + 1, colons + 2, strlen(colons + 2) + 1);
    }
    int result = add_name(all, name, why);
    free(name);
    return result;
}

static bool rule_matches(const rule *r, const char *name, size_t name_bytes)
{
    if (!r->is_regex)
        return glob_matches(r->glob, name);
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)name_bytes};
    return regexec(&r->regex, name, 1, &range, REG_STARTEND) == 0;
}

static bool any_matches(const rules *all, const char *name, size_t name_bytes)
{
    for (size_t i = 0; i < all->count; i++)
        if (rule_matches(&all->list[i], name, name_bytes))
            return true;
    return false;
}

/* ---- The selection. */

static void forget(void)
{
    rules_free(&wanted.only);
    rules_free(&wanted.except);
    for (size_t i = 0; i < wanted.folder_count; i++)
        free(wanted.folders[i]);
    free(wanted.folders);
    wanted.folders = NULL;
    wanted.folder_count = 0;
}

static int add_words(rules *all, select_words given, char why[SELECT_WHY_BYTES])
{
    for (size_t i = 0; i < given.count; i++) {
        char reason[REASON_BYTES];
        if (add_word(all, given.words[i], reason) != 0) {
            snprintf(why, SELECT_WHY_BYTES, "%.200s is no pattern: %s", given.words[i], reason);
            return -1;
        }
    }
    return 0;
}

static int add_folders(select_words given, char why[SELECT_WHY_BYTES])
{
    wanted.folders = calloc(given.count + 1, sizeof *wanted.folders);
    for (size_t i = 0; wanted.folders && i < given.count; i++) {
        if (!(wanted.folders[i] = strdup(given.words[i])))
            return out_of_memory(why);
        wanted.folder_count++;
    }
    return wanted.folders ? 0 : out_of_memory(why);
}

int select_set(select_words only, select_words except, select_words folders, char why[SELECT_WHY_BYTES])
{
    forget();
    if (add_words(&wanted.only, only, why) == 0 && add_words(&wanted.except, except, why) == 0 &&
        add_folders(folders, why) == 0)
        return 0;
    forget();
    return -1;
}

int select_check(const char *word, char why[SELECT_WHY_BYTES])
{
    rules tried = {0};
    int result = add_word(&tried, word, why);
    rules_free(&tried);
    return result;
}

bool select_names_what(void) { return wanted.only.count > 0 || wanted.folder_count > 0; }

bool select_has_patterns(void) { return wanted.only.count > 0 || wanted.except.count > 0; }

bool select_is_on(void) { return select_has_patterns() || wanted.folder_count > 0; }

static bool lies_inside(const char *path)
{
    for (size_t i = 0; i < wanted.folder_count; i++) {
        size_t bytes = strlen(wanted.folders[i]);
        if (strncmp(path, wanted.folders[i], bytes) == 0 &&
            (path[bytes] == '/' || path[bytes] == '\0' || wanted.folders[i][bytes - 1] == '/'))
            return true;
    }
    return false;
}

static bool is_inside(VALUE iseq, const char *path)
{
    if (wanted.folder_count == 0)
        return true;
    VALUE real = iseq ? rb_profile_frame_absolute_path(iseq) : Qnil;
    if (iseq && NIL_P(real)) /* from eval: the path that it was told, as templates and class_eval with __FILE__ do */
        real = rb_profile_frame_path(iseq);
    return lies_inside(RB_TYPE_P(real, T_STRING) ? RSTRING_PTR(real) : path);
}

bool select_wants(const char *name, size_t name_bytes, bool is_c, VALUE iseq, const char *path)
{
    if (is_c && select_names_what())
        return false;
    if (wanted.only.count > 0 && !any_matches(&wanted.only, name, name_bytes))
        return false;
    return is_inside(iseq, path) && !any_matches(&wanted.except, name, name_bytes);
}

bool select_may_want(const char *label, VALUE iseq)
{
    bool may = wanted.only.count == 0;
    for (size_t i = 0; i < wanted.only.count && !may; i++) {
        const rule *r = &wanted.only.list[i];
        may = !label || r->is_regex || !r->method || glob_matches(r->method, label);
    }
    return may && is_inside(iseq, "");
}
