/* How each editor is told file and line: words, whatever the file is called. */
#include "test.h"

#include "app/editor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The words, each in brackets. */
static const char *words(const editor_settings *s, const char *path, uint32_t line)
{
    static char out[2048];
    static editor e;
    int error = editor_make(&e, s, path, line);
    snprintf(out, sizeof out, "%s", error ? strerror(-error) : "");
    for (size_t i = 0; i < e.count && !error; i++)
        snprintf(out + strlen(out), sizeof out - strlen(out), "[%s]", e.argv[i]);
    CHECK(e.argv[e.count] == NULL);
    return out;
}

static const char *visual(const char *command, const char *path, uint32_t line)
{
    return words(&(editor_settings){.visual = command, .terminal = "foot"}, path, line);
}

TEST(editors_with_windows_are_told_in_their_own_way)
{
    CHECK_STR(visual("code", "/a/b.rb", 12), "[code][-g][/a/b.rb:12]");
    CHECK_STR(visual("code --wait", "/a/b.rb", 12), "[code][--wait][-g][/a/b.rb:12]");
    CHECK_STR(visual("/opt/subl", "/a/b.rb", 12), "[/opt/subl][/a/b.rb:12]");
    CHECK_STR(visual("gvim", "/a/b.rb", 12), "[gvim][+12][/a/b.rb]");
    CHECK_STR(visual("emacsclient", "/a/b.rb", 12), "[emacsclient][-n][+12][/a/b.rb]");
    CHECK_STR(visual("idea", "/a/b.rb", 12), "[idea][--line][12][/a/b.rb]");
    CHECK_STR(visual("kate", "/a/b.rb", 12), "[kate][-l][12][/a/b.rb]");
    CHECK_STR(visual("code", "/a/b.rb", 0), "[code][/a/b.rb]");
}

TEST(editors_of_the_terminal_get_a_new_one)
{
    CHECK_STR(visual("vim", "/a/b.rb", 12), "[foot][-e][vim][+12][/a/b.rb]");
    CHECK_STR(visual("emacsclient -t", "/a/b.rb", 12), "[foot][-e][emacsclient][-t][+12][/a/b.rb]");
    CHECK_STR(visual("hx", "/a/b.rb", 12), "[foot][-e][hx][/a/b.rb:12]");
    CHECK_STR(visual("my-own", "/a/b.rb", 12), "[foot][-e][my-own][+12][/a/b.rb]");
    CHECK_STR(words(&(editor_settings){.editor = "nano"}, "/a", 1), "[x-terminal-emulator][-e][nano][+1][/a]");
    CHECK_STR(words(&(editor_settings){.editor = "vi", .terminal = "gnome-terminal --wait"}, "/a", 1), "[gnome-terminal][--wait][--][vi][+1][/a]");
}

TEST(a_pattern_comes_before_the_names)
{
    editor_settings s = {.pattern = "my 'ed it' {file}:{line} \"--at={line}\"", .visual = "code"};
    CHECK_STR(words(&s, "/a b/c.rb", 7), "[my][ed it][/a b/c.rb:7][--at=7]");
    s.pattern = "open";
    CHECK_STR(words(&s, "/x", 7), "[open][/x]");
    s.pattern = "";
    CHECK_STR(words(&s, "/x", 7), "[code][-g][/x:7]");
}

TEST(no_file_name_is_ever_more_than_a_word)
{
    CHECK_STR(visual("gvim", "/a/$(rm) ; 'x\" {line}.rb", 3), "[gvim][+3][/a/$(rm) ; 'x\" {line}.rb]");
    CHECK_STR(words(&(editor_settings){.pattern = "e {file}"}, "/{line} '\".rb", 3), "[e][/{line} '\".rb]");
}

TEST(without_an_editor_it_says_so)
{
    CHECK_STR(words(&(editor_settings){0}, "/a", 1), strerror(ENOENT));
    CHECK_STR(words(&(editor_settings){.visual = "", .editor = ""}, "/a", 1), strerror(ENOENT));
    CHECK_STR(visual("   ", "/a", 1), strerror(ENOENT));
}

TEST(words_without_end_are_refused)
{
    char many[200];
    memset(many, 0, sizeof many);
    for (int i = 0; i < 90; i++)
        memcpy(many + 2 * i, "x ", 2);
    CHECK_STR(visual(many, "/a", 1), strerror(E2BIG));
}

static const char *explained(const editor_settings *s)
{
    static editor e;
    static char line[256];
    int error = editor_make(&e, s, "/a", 1);
    error = error ? error : editor_start(&e);
    CHECK(error);
    editor_explain(&e, error, line, sizeof line);
    return line;
}

TEST(what_goes_wrong_is_said_with_what_to_do)
{
    CHECK_STR(explained(&(editor_settings){0}), "no editor: set VISUAL, or RRTRACE_EDITOR='code -g {file}:{line}'");
    CHECK_STR(explained(&(editor_settings){.visual = "some-gui-script", .terminal = "/nowhere/terminal"}),
              "/nowhere/terminal can't be run: No such file or directory; set RRTRACE_EDITOR='code -g {file}:{line}'");
    char many[200];
    memset(many, ' ', sizeof many);
    for (size_t i = 0; i < sizeof many; i += 2)
        many[i] = 'x';
    many[sizeof many - 1] = '\0';
    CHECK_STR(explained(&(editor_settings){.pattern = many}), "the editor's command is too long");
}

TEST(an_editor_that_is_not_there_is_reported_and_one_that_is_runs_on)
{
    static editor e;
    char path[] = "/tmp/rrtrace-editor-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_EQ(editor_make(&e, &(editor_settings){.pattern = "/nowhere/ed {file}"}, path, 1), 0);
    CHECK_EQ(editor_start(&e), -ENOENT);
    CHECK_EQ(editor_make(&e, &(editor_settings){.pattern = "/bin/sh -c 'printf done > \"$0\"' {file}"}, path, 1), 0);
    CHECK_EQ(editor_start(&e), 0);
    char text[8] = "";
    for (int i = 0; i < 500 && strcmp(text, "done") != 0; i++) {
        usleep(10000);
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = '\0';
    }
    CHECK_STR(text, "done");
    close(fd);
    unlink(path);
}
