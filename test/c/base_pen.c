/* What the pen writes is valid, whatever it is given. */
#include "base/pen.h"

#include "base/mem.h"
#include "base/pattern.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>

static const char *json_of(const char *bytes, size_t count)
{
    static char text[256];
    pen p;
    CHECK_EQ(pen_init(&p, -1), 0);
    pen_json(&p, bytes, count);
    CHECK_EQ(p.error, 0);
    CHECK(p.used < sizeof text);
    memcpy(text, p.bytes, p.used);
    text[p.used] = '\0';
    pen_free(&p);
    return text;
}

TEST(json_strings_hold_any_bytes)
{
    CHECK_STR(json_of("Object#größe", 14), "\"Object#größe\"");
    CHECK_STR(json_of("q\"b\\", 4), "\"q\\\"b\\\\\"");
    CHECK_STR(json_of("a\n\r\t\0\x1f\x7f", 7), "\"a\\n\\r\\t\\u0000\\u001F\\u007F\"");
    CHECK_STR(json_of("\xff\xfe""bin", 5), "\"\\\\xFF\\\\xFEbin\"");
    CHECK_STR(json_of("caf\xe9", 4), "\"caf\\\\xE9\"");
    CHECK_STR(json_of("\xed\xa0\x80|\xc0\xaf|\xf4\x90\x80\x80", 11), /* a surrogate, a long form, past the end */
              "\"\\\\xED\\\\xA0\\\\x80|\\\\xC0\\\\xAF|\\\\xF4\\\\x90\\\\x80\\\\x80\"");
    CHECK_STR(json_of("\xf0\x9f\x98\x80", 3), "\"\\\\xF0\\\\x9F\\\\x98\""); /* cut in two */
    CHECK_STR(json_of("", 0), "\"\"");
}

TEST(csv_fields_are_quoted_when_they_must_be)
{
    static const char want[] = "plain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",\\xFF,";
    pen p;
    CHECK_EQ(pen_init(&p, -1), 0);
    pen_csv(&p, "plain", 5);
    pen_text(&p, ",");
    pen_csv(&p, "a,b", 3);
    pen_text(&p, ",");
    pen_csv(&p, "say \"x\"", 7);
    pen_text(&p, ",");
    pen_csv(&p, "two\nlines", 9);
    pen_text(&p, ",");
    pen_csv(&p, "\xff", 1);
    pen_text(&p, ",");
    CHECK_EQ(p.used, sizeof want - 1);
    CHECK_EQ(memcmp(p.bytes, want, p.used), 0);
    pen_free(&p);
}

TEST(a_file_gets_all_of_it_in_order_and_trouble_is_kept)
{
    char path[] = "/tmp/rrtrace-pen-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    unlink(path);
    pen p;
    CHECK_EQ(pen_init(&p, fd), 0);
    for (uint64_t i = 0; i < 100000; i++) {
        pen_number(&p, i * UINT64_C(184467440737095));
        pen_text(&p, "\n");
    }
    CHECK_EQ(pen_finish(&p), 0);
    pen_free(&p);
    FILE *file = fdopen(fd, "r");
    rewind(file);
    unsigned long long got;
    for (uint64_t i = 0; i < 100000; i++)
        CHECK(fscanf(file, "%llu\n", &got) == 1 && got == i * UINT64_C(184467440737095));
    CHECK(fgetc(file) == EOF);
    fclose(file);

    fd = open("/dev/full", O_WRONLY);
    if (fd < 0)
        return;
    CHECK_EQ(pen_init(&p, fd), 0);
    pen_text(&p, "no room");
    CHECK_EQ(pen_finish(&p), -ENOSPC);
    pen_text(&p, "more");
    CHECK_EQ(p.used, 0);
    CHECK_EQ(pen_finish(&p), -ENOSPC);
    pen_free(&p);
    close(fd);
}

TEST(a_pattern_is_a_part_or_an_expression)
{
    static const struct { const char *text, *name; bool matches; } tries[] = {
        {"fib", "Object#fib", true}, {"Fib", "Object#fib", false}, {"/^Object#f/", "Object#fib", true},
        {"/^fib/", "Object#fib", false}, {"/FIB$/i", "Object#fib", true}, {"/", "a/b", true}, {"//", "anything", true},
        {"a.c", "abc", false}, {"/a.c/", "abc", true}, {"", "anything", true}, {NULL, "anything", true},
        /* As Ruby writes them. */
        {"/\\AFoo#b/", "Foo#bar", true}, {"/\\AFoo#b/", "A::Foo#bar", false}, {"/bar\\z/", "Foo#bar", true},
        {"/bar\\Z/", "Foo#barn", false}, {"/\\d/", "Kid#bar", false}, {"/\\d/", "Foo#b4", true}, {"/\\D4/", "b4", true},
        {"/^\\h+$/", "c0ffee", true}, {"/^\\h+$/", "coffee", false}, {"/(?:foo|bar)#x/", "bar#x", true},
        {"/^[\\w:]+#/", "A::B#c", true}, {"/^[\\w:]+#/", "A-B#c", false}, {"/[\\d.]x/", "a.x", true}, {"/[\\d.]x/", "a\\x", false},
        {"/[]a]#/", "]#", true}, {"/[^]a]#/", "]#", false}, {"/[[:upper:]]b/", "Ab", true}, {"/[[:upper:]]b/", "ab", false},
        {"/a\\/b/", "a/b", true}, {"/a\\.b/", "a.b", true}, {"/a\\.b/", "axb", false}, {"/a\\\\b/", "a\\b", true},
        {"/\\bb/", "a b", true}, {"/\\bb/", "ab", false}, {"/[\\.\\/]/", "a/", true}, {"/[(?:]b/", "?b", true},
    };
    char error[128];
    pattern p;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        CHECK_EQ(pattern_init(&p, tries[i].text, error, sizeof error), 0);
        if (pattern_matches(&p, tries[i].name, strlen(tries[i].name)) != tries[i].matches)
            TEST_FAILED("%s and %s", tries[i].text, tries[i].name);
        pattern_free(&p);
    }
    CHECK_EQ(pattern_init(&p, "/b$/", error, sizeof error), 0);
    CHECK(pattern_matches(&p, "a\0b", 3)); /* past a NUL */
    CHECK(!pattern_matches(&p, "a\0b", 2));
    pattern_free(&p);
    static const char *const none[] = {"/[/", "/(?=x)/", "/(?i)x/", "/(?/", "/\\p{Upper}/", "/x\\/", "/\\1/", "/[\\]]/", "/[\\A]/", "/[[:upper/", "/(/"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        error[0] = '\0';
        if (pattern_init(&p, none[i], error, sizeof error) != -EINVAL || error[0] == '\0')
            TEST_FAILED("%s is taken", none[i]);
        pattern_free(&p);
    }
}
