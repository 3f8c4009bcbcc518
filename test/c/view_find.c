/* What the search line's text means, and how it is edited. */
#include "view_session.h"

#include "view/find.h"

static catalog_method method_of(const char *name) { return (catalog_method){.name = name, .path = "", .name_bytes = (uint32_t)strlen(name)}; }

static bool finds(const char *text, const char *name)
{
    find f;
    find_init(&f);
    find_set(&f, text);
    catalog_method m = method_of(name);
    bool does = f.is_active && find_method(&f, &m);
    find_free(&f);
    return does;
}

TEST(a_word_is_a_part_of_the_name_and_capitals_count_when_there_are_some)
{
    CHECK(finds("query", "Shop#query"));
    CHECK(finds("shop", "Shop#query"));
    CHECK(!finds("SHOP", "Shop#query"));
    CHECK(finds("Shop#q", "Shop#query"));
    CHECK(!finds("page", "Shop#query"));
    CHECK(finds("shop que", "Shop#query")); /* all words must be in it */
    CHECK(!finds("shop page", "Shop#query"));
    CHECK(!finds("", "Shop#query"));
    CHECK(!finds("   ", "Shop#query"));
}

TEST(slashes_hold_a_regular_expression_with_blanks_in_it)
{
    CHECK(finds("/que|page/", "Shop#query"));
    CHECK(finds("/^shop/i", "Shop#query"));
    CHECK(!finds("/^shop/", "Shop#query"));
    CHECK(finds("/y$/ dur>1ms", "Shop#query"));
    CHECK(!finds("/y$/ page", "Shop#query"));
    CHECK(finds("/<main> x|query/", "Shop#query"));
    CHECK(finds("/que", "Net/query")); /* not closed: a part of the name */
}

TEST(an_expression_that_is_not_closed_yet_says_so_and_finds_all)
{
    find f;
    find_init(&f);
    find_set(&f, "/to_(s|");
    CHECK(strstr(f.error, "no regular expression yet"));
    CHECK(!f.is_active && !f.has_regex);
    find_set(&f, "/to_(s|a) x/");
    CHECK_STR(f.error, "");
    CHECK(f.has_regex);
    find_free(&f);
}

TEST(a_bad_expression_says_so_and_finds_nothing_by_it)
{
    find f;
    find_init(&f);
    find_set(&f, "/(/");
    CHECK(f.error[0] != '\0');
    find_set(&f, "/x/");
    CHECK_STR(f.error, "");
    find_free(&f);
}

static void check_durations(const char *text, uint64_t least_ns, uint64_t most_ns)
{
    find f;
    find_init(&f);
    find_set(&f, text);
    CHECK_EQ(f.least_ns, least_ns);
    CHECK_EQ(f.most_ns, most_ns);
    find_free(&f);
}

TEST(lengths_come_in_units_and_milliseconds_without)
{
    check_durations("dur>1ms", 1000000, UINT64_MAX);
    check_durations("dur>=20us dur<2s", 20000, 2000000000);
    check_durations("dur>1.5", 1500000, UINT64_MAX);
    check_durations("dur>50ns", 50, UINT64_MAX);
    check_durations("dur>", 0, UINT64_MAX);
    check_durations("dur>1parsec", 0, UINT64_MAX);
    check_durations("dur>-1ms", 0, UINT64_MAX);
    check_durations("dur>2min", 120000000000, UINT64_MAX);
    check_durations("dur>1e300s", UINT64_MAX, UINT64_MAX); /* nothing is */
}

TEST(a_length_that_is_no_number_filters_nothing)
{
    check_durations("dur>nan", 0, UINT64_MAX);
    check_durations("dur<nan", 0, UINT64_MAX);
    check_durations("dur<-nan dur>nan(7)ms", 0, UINT64_MAX);
    check_durations("dur>inf", 0, UINT64_MAX);
    check_durations("dur<infinity", 0, UINT64_MAX);
}

static void check_error(const char *text, const char *error)
{
    find f;
    find_init(&f);
    find_set(&f, text);
    CHECK_STR(f.error, error);
    find_free(&f);
}

TEST(a_filter_that_is_not_understood_says_so)
{
    check_error("dur>", "dur: of what length?");
    check_error("dur>= stir", "dur: of what length?");
    check_error("dur>nan", "no length: nan (1ms, 20us, 2s)");
    check_error("dur<-5ms", "no length: -5ms (1ms, 20us, 2s)");
    check_error("dur>1sstir", "no length: 1sstir (1ms, 20us, 2s)");
    check_error("stir thread:", "thread: of what name?");
    check_error("process:", "process: of what name?");
    check_error("pid: dur>nan", "process: of what name?"); /* one at a time */
    check_error("a b c d e f g h i j", "too many words: i");
    check_error("dur>nan /(/", "no length: nan (1ms, 20us, 2s)");
    check_error("dur>1ms thread:Chen process:99 stir /x/", "");
}

TEST(threads_and_processes_are_chosen_by_name_and_number)
{
    session s;
    find f;
    session_new(&s);
    session_process(&s, 4711, "ruby app.rb");
    session_thread(&s, 1, "", true);
    session_thread(&s, 2, "puma 001", false);
    session_run(&s);
    find_init(&f);
    const struct { const char *text; bool main, puma; } cases[] = {
        {"thread:main", true, false}, {"thread:PUMA", false, false}, {"thread:puma", false, true}, {"thread:2", false, true},
        {"process:app", true, true},  {"process:4711", true, true},  {"pid:47", false, false},     {"x", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        find_set(&f, cases[i].text);
        CHECK_EQ(find_thread(&f, s.catalog, 0), cases[i].main);
        CHECK_EQ(find_thread(&f, s.catalog, 1), cases[i].puma);
    }
    find_free(&f);
    session_delete(&s);
}

TEST(the_line_is_edited_a_whole_character_at_a_time)
{
    find f;
    find_init(&f);
    find_open(&f);
    find_insert(&f, "a");
    find_insert(&f, "\xC3\xA4"); /* ä */
    find_insert(&f, "b");
    CHECK(find_key(&f, VIEW_KEY_LEFT, 0));
    CHECK(find_key(&f, VIEW_KEY_BACKSPACE, 0));
    CHECK_STR(f.text, "ab");
    CHECK(find_key(&f, VIEW_KEY_END, 0));
    find_insert(&f, " cd");
    CHECK(find_key(&f, VIEW_KEY_BACKSPACE, VIEW_MOD_CTRL));
    CHECK_STR(f.text, "ab ");
    CHECK(find_key(&f, VIEW_KEY_HOME, 0));
    CHECK(find_key(&f, VIEW_KEY_BACKSPACE, 0)); /* nothing before it */
    CHECK(find_key(&f, VIEW_KEY_DELETE, 0));
    CHECK_STR(f.text, "b ");
    CHECK(find_key(&f, VIEW_KEY_END, 0) && find_key(&f, VIEW_KEY_A, VIEW_MOD_CTRL));
    CHECK_EQ(f.cursor, 0);
    CHECK(!find_key(&f, VIEW_KEY_A, 0));
    CHECK(!find_key(&f, VIEW_KEY_W, 0));
    for (int i = 0; i < 400; i++)
        find_insert(&f, "long");
    CHECK(f.bytes < FIND_BYTES);
    CHECK_EQ(strlen(f.text), f.bytes);
    find_clear(&f);
    CHECK(!f.is_open && !f.is_active);
    find_free(&f);
}
