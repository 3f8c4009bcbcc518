#include "base/length.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOO_LONG_NS 1e18 /* thirty years: more may not be a uint64_t */

static void three_digits(double value, const char *unit, char *out)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(out, LENGTH_BYTES, "%.*f %s", decimals, value, unit);
}

void length_show(double ns, char *out)
{
    if (ns < 999.5)
        snprintf(out, LENGTH_BYTES, "%.0f ns", ns);
    else if (ns < 999.5e3)
        three_digits(ns / 1e3, "\xC2\xB5s", out);
    else if (ns < 999.5e6)
        three_digits(ns / 1e6, "ms", out);
    else
        three_digits(ns / 1e9, "s", out);
}

bool length_read(const char *text, double unit_ns, uint64_t *ns)
{
    const struct { const char *name; double ns; } units[] = {
        {"", unit_ns}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"\xC2\xB5s", 1e3}, {"ns", 1}, {"min", 60e9},
    };
    char *end;
    if (!(text[0] >= '0' && text[0] <= '9') && text[0] != '.') /* strtod also reads -1, nan and inf */
        return false;
    double value = strtod(text, &end);
    if (end == text)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) != 0)
            continue;
        value *= units[i].ns;
        *ns = value < TOO_LONG_NS ? (uint64_t)(value + 0.5) : UINT64_MAX;
        return true;
    }
    return false;
}
