#include "base/pen.h"

#include "base/mem.h"
#include "base/write.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FORMAT_BYTES 1024u

int pen_init(pen *p, int fd)
{
    *p = (pen){.fd = fd, .capacity = PEN_BYTES};
    p->bytes = mem_alloc(p->capacity, 1);
    return p->bytes ? 0 : (p->error = -ENOMEM);
}

void pen_free(pen *p)
{
    mem_free(p->bytes);
    *p = (pen){.fd = -1};
}

static void flush(pen *p)
{
    if (!p->error)
        p->error = write_all(p->fd, p->bytes, p->used);
    p->used = 0;
}

int pen_finish(pen *p)
{
    if (p->fd >= 0 && !p->error)
        flush(p);
    return p->error;
}

char *pen_room(pen *p, size_t bytes)
{
    if (p->error)
        return NULL;
    if (bytes <= p->capacity - p->used)
        return p->bytes + p->used;
    if (p->fd >= 0)
        flush(p);
    if (!p->error && bytes > p->capacity - p->used) {
        size_t wanted = p->capacity * 2;
        while (wanted - p->used < bytes && wanted < SIZE_MAX / 4)
            wanted *= 2;
        char *bigger = mem_realloc(p->bytes, wanted, 1);
        if (!bigger) {
            p->error = -ENOMEM;
        } else {
            p->bytes = bigger;
            p->capacity = wanted;
        }
    }
    return p->error ? NULL : p->bytes + p->used;
}

void pen_bytes(pen *p, const void *bytes, size_t count)
{
    char *to = pen_room(p, count);
    if (!to)
        return;
    memcpy(to, bytes, count);
    p->used += count;
}

void pen_text(pen *p, const char *text) { pen_bytes(p, text, strlen(text)); }

char *pen_digits(char *to, uint64_t number)
{
    char reversed[20];
    size_t count = 0;
    do
        reversed[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0)
        *to++ = reversed[--count];
    return to;
}

void pen_number(pen *p, uint64_t number)
{
    char *to = pen_room(p, 20);
    if (to)
        p->used += (size_t)(pen_digits(to, number) - to);
}

void pen_format(pen *p, const char *format, ...)
{
    char *to = pen_room(p, FORMAT_BYTES);
    if (!to)
        return;
    va_list arguments;
    va_start(arguments, format);
    int count = vsnprintf(to, FORMAT_BYTES, format, arguments);
    va_end(arguments);
    if (count > 0)
        p->used += (size_t)count < FORMAT_BYTES ? (size_t)count : FORMAT_BYTES - 1;
}

/* Source: The Unicode Standard, table 3-7 (well-formed UTF-8 byte sequences). */
size_t pen_utf8(const char *bytes, size_t count)
{
    if (count == 0)
        return 0;
    const unsigned char *b = (const unsigned char *)bytes;
    if (b[0] < 0x80)
        return 1;
    size_t length = b[0] >= 0xC2 && b[0] <= 0xDF ? 2 : (b[0] & 0xF0) == 0xE0 ? 3 : b[0] >= 0xF0 && b[0] <= 0xF4 ? 4 : 0;
    if (length == 0 || length > count)
        return 0;
    unsigned char low = b[0] == 0xE0 ? 0xA0 : b[0] == 0xF0 ? 0x90 : 0x80; /* no longer form than needed */
    unsigned char high = b[0] == 0xED ? 0x9F : b[0] == 0xF4 ? 0x8F : 0xBF; /* no surrogates, nothing past U+10FFFF */
    if (b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((b[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

static char *hex(char *to, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
    return to;
}

/* One ASCII character that JSON wants escaped. */
static char *json_escape(char *to, char c)
{
    *to++ = '\\';
    switch (c) {
    case '"':
    case '\\': *to++ = c; break;
    case '\n': *to++ = 'n'; break;
    case '\r': *to++ = 'r'; break;
    case '\t': *to++ = 't'; break;
    default:
        memcpy(to, "u00", 3);
        to = hex(to + 3, (unsigned char)c);
    }
    return to;
}

void pen_json(pen *p, const char *bytes, size_t count)
{
    if (count > (SIZE_MAX - 2) / 6) {
        p->error = p->error ? p->error : -EOVERFLOW;
        return;
    }
    char *begin = pen_room(p, count * 6 + 2), *to = begin; /* six: \u0000 */
    if (!to)
        return;
    *to++ = '"';
    for (size_t i = 0; i < count;) {
        size_t length = pen_utf8(bytes + i, count - i);
        if (length == 0) {
            memcpy(to, "\\\\x", 3);
            to = hex(to + 3, (unsigned char)bytes[i++]);
        } else if (length == 1 && ((unsigned char)bytes[i] < 0x20 || bytes[i] == '"' || bytes[i] == '\\' || bytes[i] == 0x7F)) {
            to = json_escape(to, bytes[i++]);
        } else {
            memcpy(to, bytes + i, length);
            to += length;
            i += length;
        }
    }
    *to++ = '"';
    p->used += (size_t)(to - begin);
}

void pen_csv(pen *p, const char *bytes, size_t count)
{
    bool quoted = false;
    for (size_t i = 0; i < count && !quoted; i++)
        quoted = bytes[i] == ',' || bytes[i] == '"' || bytes[i] == '\r' || bytes[i] == '\n';
    if (quoted)
        pen_text(p, "\"");
    for (size_t i = 0; i < count;) {
        size_t length = pen_utf8(bytes + i, count - i);
        if (length == 0) {
            char text[4] = "\\x";
            hex(text + 2, (unsigned char)bytes[i++]);
            pen_bytes(p, text, sizeof text);
            continue;
        }
        if (bytes[i] == '"')
            pen_text(p, "\"");
        pen_bytes(p, bytes + i, length);
        i += length;
    }
    if (quoted)
        pen_text(p, "\"");
}
