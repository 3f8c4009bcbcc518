#include "report/cells.h"

#include "base/name.h"

#include <stdio.h>
#include <string.h>

#define NAME_FORMS_BYTES 2048u /* finding a longer name's forms takes time by its square: its end is shown instead */

static uint32_t code_point(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    uint32_t code = length == 1 ? b[0] : b[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (b[i] & 0x3Fu);
    return code;
}

/* What a terminal takes as an order: C0, DEL and C1 controls, and characters that turn the direction of writing. */
static bool is_order(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

/* Source: Unicode Standard Annex 11, East Asian Width, the large blocks of W and F. */
static unsigned columns_of(uint32_t code)
{
    static const struct { uint32_t first, last; } wide[] = {
        {0x1100, 0x115F}, {0x2E80, 0x303E}, {0x3041, 0xA4CF}, {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},
        {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD},
    };
    if (code >= 0x0300 && code <= 0x036F)
        return 0; /* combining marks */
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (code >= wide[i].first && code <= wide[i].last)
            return 2;
    return 1;
}

/* One cell's worth of text[0 … bytes), bytes > 0. */
typedef struct cell {
    size_t length;
    unsigned columns;
    bool is_escaped; /* shown as \xNN for each of its bytes */
} cell;

static cell cell_at(const char *text, size_t bytes)
{
    size_t length = pen_utf8(text, bytes);
    if (length == 0)
        return (cell){1, 4, true};
    uint32_t code = code_point(text, length);
    if (is_order(code))
        return (cell){length, (unsigned)length * 4, true};
    return (cell){length, columns_of(code), false};
}

static void write_cell(pen *o, const char *text, cell c)
{
    if (!c.is_escaped) {
        pen_bytes(o, text, c.length);
        return;
    }
    for (size_t i = 0; i < c.length; i++)
        pen_format(o, "\\x%02X", (unsigned char)text[i]);
}

unsigned cells_width(const char *text, size_t bytes)
{
    unsigned width = 0;
    for (size_t i = 0; i < bytes;) {
        cell c = cell_at(text + i, bytes - i);
        width += c.columns;
        i += c.length;
    }
    return width;
}

void cells_spaces(pen *o, unsigned count)
{
    while (count-- > 0)
        pen_text(o, " ");
}

void cells_right(pen *o, const char *text, unsigned width)
{
    unsigned used = cells_width(text, strlen(text));
    cells_spaces(o, used < width ? width - used : 0);
    pen_text(o, text);
}

/* text[0 … bytes) as far as width columns go; how many were used. */
static unsigned write_part(pen *o, const char *text, size_t bytes, unsigned width)
{
    unsigned used = 0;
    for (size_t i = 0; i < bytes;) {
        cell c = cell_at(text + i, bytes - i);
        if (used + c.columns > width)
            break;
        write_cell(o, text + i, c);
        used += c.columns;
        i += c.length;
    }
    return used;
}

unsigned cells_head(pen *o, const char *text, size_t bytes, unsigned width)
{
    if (width == 0)
        return 0;
    if (cells_width(text, bytes) <= width)
        return write_part(o, text, bytes, width);
    unsigned used = write_part(o, text, bytes, width - 1);
    pen_text(o, CELLS_ELLIPSIS);
    return used + 1;
}

unsigned cells_name(pen *o, const char *name, size_t bytes, unsigned width)
{
    size_t begin = 0;
    bool is_cut = false;
    if (bytes > NAME_FORMS_BYTES)
        return cells_tail(o, name, bytes, width);
    for (unsigned n = 0; name_form(name, bytes, n, &begin, &is_cut); n++) {
        if (cells_width(name + begin, bytes - begin) + is_cut > width)
            continue;
        if (is_cut)
            pen_text(o, CELLS_ELLIPSIS);
        return write_part(o, name + begin, bytes - begin, width) + is_cut;
    }
    return cells_head(o, name + begin, bytes - begin, width);
}

unsigned cells_tail(pen *o, const char *text, size_t bytes, unsigned width)
{
    unsigned whole = cells_width(text, bytes);
    if (whole <= width)
        return write_part(o, text, bytes, width);
    if (width == 0)
        return 0;
    size_t i = 0;
    for (unsigned left = whole; left > width - 1;) {
        cell c = cell_at(text + i, bytes - i);
        left -= c.columns;
        i += c.length;
    }
    pen_text(o, CELLS_ELLIPSIS);
    return write_part(o, text + i, bytes - i, width - 1) + 1;
}

void cells_count(uint64_t count, char *out)
{
    char digits[20];
    size_t length = (size_t)(pen_digits(digits, count) - digits);
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
}

void cells_percent(double part, double whole, char *out)
{
    *out = '\0';
    if (whole > 0)
        snprintf(out, CELLS_BYTES, "%.1f%%", 100.0 * part / whole);
}
