#include "base/size.h"

#include <string.h>
#include <strings.h>

#define DECIMALS_MAX 18 /* more say nothing that a uint64_t could hold */

__extension__ typedef unsigned __int128 wide;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Past the digits. *value: UINT64_MAX at most. */
static const char *read_whole(const char *at, wide *value)
{
    for (*value = 0; is_digit(*at); at++)
        *value = *value < UINT64_MAX ? *value * 10 + (unsigned)(*at - '0') : *value;
    return at;
}

/* Past the digits. They are *value of *of. */
static const char *read_decimals(const char *at, wide *value, wide *of)
{
    *value = 0;
    *of = 1;
    for (int count = 0; is_digit(*at); at++, count++) {
        if (count >= DECIMALS_MAX)
            continue;
        *value = *value * 10 + (unsigned)(*at - '0');
        *of *= 10;
    }
    return at;
}

bool size_read(const char *text, uint64_t *bytes)
{
    static const char units[] = "kmgt";
    wide whole, decimals = 0, of = 1;
    const char *at = read_whole(text, &whole), *unit;
    if (at == text)
        return false;
    if (at[0] == '.' && is_digit(at[1]))
        at = read_decimals(at + 1, &decimals, &of);
    at += *at == ' ';
    unsigned shift = 0;
    if (*at && (unit = strchr(units, *at | 0x20)) != NULL) {
        shift = 10 * (unsigned)(unit - units + 1);
        at++;
    }
    if (*at && strcasecmp(at, "b") != 0 && strcasecmp(at, "ib") != 0)
        return false;
    wide value = (whole << shift) + (decimals << shift) / of;
    if (value == 0)
        return false;
    *bytes = value < UINT64_MAX ? (uint64_t)value : UINT64_MAX;
    return true;
}
