#include "view/tint.h"

#include "view/palette.h"

#include <ctype.h>
#include <string.h>

/* The folder behind the last "/gems/", without its version: …/gems/rack-3.1.8/lib/rack.rb → rack. */
static size_t gem_of(const char *path, const char **gem)
{
    const char *found = NULL, *at = path;
    while ((at = strstr(at, "/gems/")) != NULL)
        found = at += 6;
    if (!found)
        return 0;
    size_t n = strcspn(found, "/"), end = n;
    for (size_t i = 1; i + 1 < n; i++)
        if (found[i] == '-' && isdigit((unsigned char)found[i + 1])) {
            end = i;
            break;
        }
    *gem = found;
    return found[n] == '/' ? end : 0;
}

void tint_owner(const catalog_method *m, char *out)
{
    const char *from = NULL;
    size_t n = gem_of(m->path, &from);
    if (n == 0) {
        const char *separator = strrchr(m->name, '#');
        if (!separator)
            separator = strrchr(m->name, '.');
        from = m->name;
        n = separator ? (size_t)(separator - m->name) : m->name_bytes;
    }
    n = n < 63 ? n : 63;
    memcpy(out, from, n);
    out[n] = '\0';
}

uint32_t tint_hash(tint t, const catalog_method *m)
{
    char owner[64];
    if (t != TINT_OWNER)
        return m->hash;
    tint_owner(m, owner);
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *at = owner; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return hash;
}

uint32_t tint_step(uint64_t length_ns)
{
    uint32_t step = 0;
    for (uint64_t bound_ns = 1000; length_ns > bound_ns && step + 1 < TINT_LENGTH_STEPS; bound_ns *= 10)
        step++;
    return step;
}

uint32_t tint_length(uint32_t step)
{
    float along = (float)step / (float)(TINT_LENGTH_STEPS - 1);
    return palette_oklch(0.36f + 0.54f * along, 0.10f, 300 - 85 * along);
}

const char *tint_name(tint t)
{
    return t == TINT_OWNER ? "coloured by gem or class" : t == TINT_LENGTH ? "coloured by length" : "method call, callees on top";
}
