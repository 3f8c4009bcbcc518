#include "base/name.h"

/* Behind an anonymous class at the start, "#<Class:0x…>" with others nested in it; 0 when there is none. An operator like
 * Array#<=> has its "#<" elsewhere. */
static size_t skip_anonymous(const char *name, size_t name_bytes)
{
    if (name_bytes < 2 || name[0] != '#' || name[1] != '<')
        return 0;
    int nested = 0;
    for (size_t i = 1; i < name_bytes; i++) {
        if (name[i] == '<')
            nested++;
        else if (name[i] == '>' && --nested == 0)
            return i + 1;
    }
    return 0;
}

/* Offset of the method's own name: behind the first '#' or '.' after the modules; 0 when there is no owner. */
static size_t find_method(const char *name, size_t name_bytes)
{
    for (size_t i = skip_anonymous(name, name_bytes); i + 1 < name_bytes; i++) {
        if ((name[i] == '#' || name[i] == '.') && i > 0)
            return i + 1;
    }
    return 0;
}

bool name_form(const char *name, size_t name_bytes, unsigned n, size_t *begin, bool *is_cut)
{
    *begin = 0;
    *is_cut = false;
    if (n == 0)
        return true;
    size_t method = find_method(name, name_bytes), from = skip_anonymous(name, name_bytes);
    for (size_t i = from; i + 1 < method; i++) {
        if (name[i] == ':' && name[i + 1] == ':' && --n == 0) {
            *begin = i + 2;
            *is_cut = true;
            return true;
        }
    }
    *begin = method;
    return n == 1 && method > 0;
}
