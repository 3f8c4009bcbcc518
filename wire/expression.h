/* wire/expression.h - a regular expression as Ruby developers write it, put as POSIX extended ones are.
 * For:     ext/ (--only, --except), base/pattern.h (--method, --thread, the window's find): the same words mean the same there.
 * Idea:    what has another form in POSIX is rewritten, what has none is refused, as it would silently mean something else:
 *
 *            \A \z \Z        ^ $ $        names have one line
 *            \d \D \h \H     [0-9] …      within brackets, too, as \w and \s are
 *            (?:             (            whether there is a match does not change
 *            \/ \- \_        the character
 * Use:     expression_posix(words, length, out, &why) with out[EXPRESSION_FACTOR * length + 1].
 * Memory:  the caller's.
 * Threads: values only.
 * Source:  regex(7) and the GNU operators \w \W \s \S \b \B \< \>; Ruby's doc/regexp.rdoc.
 */
#ifndef RRTRACE_WIRE_EXPRESSION_H
#define RRTRACE_WIRE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define EXPRESSION_FACTOR 8u /* the longest of what stands for two characters has 12 */

typedef struct expression_form {
    char letter;
    const char *outside, *inside; /* of brackets; NULL: there is none */
} expression_form;

static inline const expression_form *expression_form_of(char letter)
{
    static const expression_form forms[] = {
        {'A', "^", NULL},           {'z', "$", NULL},        {'Z', "$", NULL},
        {'d', "[0-9]", "0-9"},      {'D', "[^0-9]", NULL},   {'h', "[0-9a-fA-F]", "0-9a-fA-F"},
        {'H', "[^0-9a-fA-F]", NULL}, {'w', "\\w", "[:alnum:]_"}, {'W', "\\W", NULL},
        {'s', "\\s", "[:space:]"},  {'S', "\\S", NULL},      {'b', "\\b", NULL},
        {'B', "\\B", NULL},         {'<', "\\<", "<"},       {'>', "\\>", ">"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].letter == letter)
            return &forms[i];
    return NULL;
}

static inline bool expression_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* What stands for a backslash and this letter goes to out. Its end, or NULL: nothing does. */
static inline char *expression_escape(char letter, bool is_inside, char *out)
{
    const expression_form *form = expression_form_of(letter);
    const char *words = form ? is_inside ? form->inside : form->outside : NULL;
    char itself[3] = {'\\', letter, '\0'};
    if (!form && !expression_is_word(letter) && letter != '\0' && !(is_inside && strchr("]-^[", letter)))
        words = is_inside || strchr("/-_\"' #:!=&~,;@%", letter) ? itself + 1 : itself;
    if (!words)
        return NULL;
    size_t bytes = strlen(words);
    memcpy(out, words, bytes);
    return out + bytes;
}

/* words[length], without its slashes. True: out is an expression for regcomp with REG_EXTENDED. False: *why says what is not known. */
static inline bool expression_posix(const char *words, size_t length, char *out, const char **why)
{
    bool is_inside = false;
    *why = "it has parts that only Ruby knows; this is a POSIX extended expression: ^ $ . * + ? | ( ) [ ] { } \\d \\w \\s \\b";
    for (size_t i = 0, begin = 0; i < length; i++) {
        char c = words[i], next = i + 1 < length ? words[i + 1] : '\0';
        if (c == '\\') {
            out = expression_escape(next, is_inside, out);
            if (!out)
                return false;
            i++;
            continue;
        }
        if (!is_inside && c == '(' && next == '?') {
            if (i + 2 >= length || words[i + 2] != ':')
                return false;
            i += 2;
        } else if (!is_inside && c == '[') {
            is_inside = true;
            begin = i + (next == '^') + 1; /* a bracket right there is one of the characters */
        } else if (is_inside && c == '[' && next == ':') {
            do
                *out++ = words[i++];
            while (i < length && !(words[i] == ']' && words[i - 1] == ':'));
            if (i >= length)
                return false;
            c = ']';
        } else if (is_inside && c == ']' && i > begin) {
            is_inside = false;
        }
        *out++ = c;
    }
    *out = '\0';
    return true;
}

#endif
