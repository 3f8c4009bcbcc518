#include "base/pattern.h"

#include "base/mem.h"
#include "wire/expression.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Length of /expression/ without its slashes; SIZE_MAX: it is no such thing. */
static size_t regex_length(const char *text, bool *ignores_case)
{
    size_t length = strlen(text);
    *ignores_case = length > 2 && text[length - 1] == 'i' && text[length - 2] == '/';
    length -= *ignores_case;
    return text[0] == '/' && length >= 2 && text[length - 1] == '/' ? length - 2 : (size_t)-1;
}

int pattern_init(pattern *p, const char *text, char *error, size_t error_bytes)
{
    bool ignores_case;
    *p = (pattern){.text = text};
    size_t length = text ? regex_length(text, &ignores_case) : (size_t)-1;
    if (length == (size_t)-1)
        return 0;
    char *expression = mem_zalloc(EXPRESSION_FACTOR * length + 1, 1);
    const char *why;
    if (!expression) {
        snprintf(error, error_bytes, "memory is out");
        return -ENOMEM;
    }
    if (!expression_posix(text + 1, length, expression, &why)) {
        mem_free(expression);
        snprintf(error, error_bytes, "%s", why);
        return -EINVAL;
    }
    int result = regcomp(&p->regex, expression, REG_EXTENDED | REG_NOSUB | (ignores_case ? REG_ICASE : 0));
    mem_free(expression);
    if (result) {
        regerror(result, &p->regex, error, error_bytes);
        return -EINVAL;
    }
    p->is_regex = true;
    return 0;
}

void pattern_free(pattern *p)
{
    if (p->is_regex)
        regfree(&p->regex);
    *p = (pattern){0};
}

bool pattern_matches(const pattern *p, const char *name, size_t name_bytes)
{
    if (!p->text)
        return true;
    if (!p->is_regex)
        return memmem(name, name_bytes, p->text, strlen(p->text)) != NULL;
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)name_bytes};
    return regexec(&p->regex, name, 1, &range, REG_STARTEND) == 0;
}
