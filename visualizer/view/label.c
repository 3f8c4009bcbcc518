#include "view/label.h"

#include "base/name.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* name[begin, end) into out, behind an ellipsis and before one as asked; its bytes, or 0 when out is too small for it. */
static size_t compose(const char *name, size_t begin, size_t end, bool cut_before, bool cut_behind, char *out)
{
    const size_t dots = sizeof LABEL_ELLIPSIS - 1;
    size_t used = 0, wanted = end - begin + (cut_before ? dots : 0) + (cut_behind ? dots : 0);
    out[0] = '\0';
    if (wanted >= LABEL_BYTES_MAX)
        return 0;
    if (cut_before) {
        memcpy(out, LABEL_ELLIPSIS, dots);
        used = dots;
    }
    memcpy(out + used, name + begin, end - begin);
    used += end - begin;
    if (cut_behind) {
        memcpy(out + used, LABEL_ELLIPSIS, dots);
        used += dots;
    }
    out[used] = '\0';
    return used;
}

size_t label_fit(const char *name, size_t name_bytes, float width, label_measure *measure, const void *context, char *out)
{
    size_t begin = 0, used;
    bool is_cut;
    for (unsigned n = 0; name_form(name, name_bytes, n, &begin, &is_cut); n++) {
        used = compose(name, begin, name_bytes, is_cut, false, out);
        if (used > 0 && measure(context, out, used) <= width)
            return used;
    }
    /* Only a part of the method's name: cut at the end, a whole character at a time. */
    size_t end = name_bytes;
    if (end - begin > LABEL_BYTES_MAX - 8)
        end = begin + LABEL_BYTES_MAX - 8;
    while (end >= begin + 4) {
        do
            end--;
        while (end > begin && label_is_within(name[end]));
        used = compose(name, begin, end, false, true, out);
        if (end >= begin + 3 && used > 0 && measure(context, out, used) <= width)
            return used;
    }
    out[0] = '\0';
    return 0;
}

static void three_digits(double value, const char *unit, char *out)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(out, 16, "%.*f %s", decimals, value, unit);
}

void label_count(double count, char *out)
{
    if (count < 999.5)
        snprintf(out, 16, "%.0f", count);
    else if (count < 999.5e3)
        three_digits(count / 1e3, "k", out);
    else if (count < 999.5e6)
        three_digits(count / 1e6, "M", out);
    else
        three_digits(count / 1e9, "G", out);
}

void label_others(uint64_t calls, char *out)
{
    char count[16];
    out[0] = '\0';
    if (calls < 2)
        return;
    label_count((double)(calls - 1), count);
    snprintf(out, 24, " + %s", count);
}

void label_bytes(uint64_t bytes, char *out)
{
    double value = (double)bytes;
    if (value < 1024.0 * 1024.0)
        snprintf(out, 16, "%.0f kB", value / 1024.0);
    else if (value < 1000.0 * 1024.0 * 1024.0)
        snprintf(out, 16, "%.0f MB", value / (1024.0 * 1024.0));
    else
        snprintf(out, 16, "%.1f GB", value / (1024.0 * 1024.0 * 1024.0));
}

uint64_t label_step(double min_ns)
{
    uint64_t step = 1;
    while (step < UINT64_C(1000000000000000000)) {
        const uint64_t round[] = {step, 2 * step, 5 * step};
        for (int i = 0; i < 3; i++) {
            if ((double)round[i] >= min_ns)
                return round[i];
        }
        step *= 10;
    }
    return step;
}

void label_tick(int64_t time_ns, uint64_t step_ns, char *out)
{
    static const struct { int64_t ns; const char *name; } units[] = {
        {1000000000, "s"}, {1000000, "ms"}, {1000, "\xC2\xB5s"}, {1, "ns"}};
    /* The largest unit that the time reaches and in which it needs at most three decimals. */
    int64_t magnitude = time_ns < 0 ? -time_ns : time_ns;
    int unit = 0;
    while (unit < 3 && (magnitude < units[unit].ns || (int64_t)step_ns * 1000 < units[unit].ns))
        unit++;
    if (magnitude == 0)
        unit = step_ns >= 1000000000 ? 0 : step_ns >= 1000000 ? 1 : step_ns >= 1000 ? 2 : 3;
    int decimals = 0;
    for (int64_t u = units[unit].ns; u > (int64_t)step_ns && decimals < 3; u /= 10)
        decimals++;
    /* Trailing zeros tell nothing, as neighbours show the step. */
    snprintf(out, 32, "%.*f", decimals, (double)time_ns / (double)units[unit].ns);
    if (decimals > 0) {
        size_t n = strlen(out);
        while (n > 0 && out[n - 1] == '0')
            out[--n] = '\0';
        if (n > 0 && out[n - 1] == '.')
            out[--n] = '\0';
    }
    strcat(out, " ");
    strcat(out, units[unit].name);
}

void label_whole(int64_t time_ns, uint64_t step_ns, char *out)
{
    int decimals = 0;
    for (uint64_t unit = 1000000000; unit > step_ns && decimals < 9; unit /= 10)
        decimals++;
    int64_t magnitude = time_ns < 0 ? -time_ns : time_ns;
    unsigned rest = (unsigned)(magnitude % 1000000000);
    for (int i = decimals; i < 9; i++)
        rest /= 10;
    if (decimals > 0)
        snprintf(out, 32, "%s%lld.%0*u s", time_ns < 0 ? "-" : "", (long long)(magnitude / 1000000000), decimals, rest);
    else
        snprintf(out, 32, "%lld s", (long long)(time_ns / 1000000000));
}

void label_offset(int64_t offset_ns, uint64_t step_ns, char *out)
{
    char size[32];
    label_tick(offset_ns < 0 ? -offset_ns : offset_ns, step_ns, size);
    snprintf(out, 32, "%c%.30s", offset_ns < 0 ? '-' : '+', size);
}
