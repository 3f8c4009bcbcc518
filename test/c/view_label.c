#include "test.h"

#include "base/length.h"
#include "view/font.h"
#include "view/label.h"
#include "view/palette.h"
#include "wire/event.h"

#include <math.h>

/* Every character is one unit wide. */
static float count_characters(const void *context, const char *text, size_t byte_count)
{
    (void)context;
    size_t n = 0;
    for (size_t i = 0; i < byte_count; i++)
        n += ((unsigned char)text[i] & 0xC0u) != 0x80u;
    return (float)n;
}

static const char *fitted(const char *name, float width)
{
    static char out[LABEL_BYTES_MAX];
    size_t bytes = label_fit(name, strlen(name), width, count_characters, NULL, out);
    CHECK_EQ(bytes, strlen(out));
    return out;
}

TEST(names_lose_their_outer_modules_first)
{
    CHECK_STR(fitted("ActiveRecord::Base.find", 99), "ActiveRecord::Base.find");
    CHECK_STR(fitted("ActiveRecord::Base.find", 12), "…Base.find");
    CHECK_STR(fitted("ActiveRecord::Base.find", 9), "find");
    CHECK_STR(fitted("ActiveRecord::Base.find", 4), "find");
    CHECK_STR(fitted("A::B::C#method", 13), "…B::C#method");
    CHECK_STR(fitted("A::B::C#method", 10), "…C#method");
    CHECK_STR(fitted("A::B::C#method", 7), "method");
}

TEST(a_method_too_long_for_its_box_is_cut_and_below_three_letters_nothing_is_left)
{
    CHECK_STR(fitted("Foo#process_client", 9), "process_…");
    CHECK_STR(fitted("Foo#process_client", 4), "pro…");
    CHECK_STR(fitted("Foo#process_client", 3), "");
    CHECK_STR(fitted("Foo#a", 1), "a");
    CHECK_STR(fitted("", 10), "");
}

TEST(operators_and_anonymous_classes_keep_their_shape)
{
    CHECK_STR(fitted("Integer#<=>", 5), "<=>");
    CHECK_STR(fitted("Array#[]=", 4), "[]=");
    CHECK_STR(fitted("Foo::Bar.<<", 7), "…Bar.<<");
    CHECK_STR(fitted("Foo::Bar.<<", 3), "<<");
    CHECK_STR(fitted("#<Class:0x0000a1b2>#each", 10), "each");
    CHECK_STR(fitted("#<Class:#<Module:0x1>>::Inner#go", 10), "…Inner#go");
    CHECK_STR(fitted("#<refinement:String@Mod>#shout", 6), "shout");
    CHECK_STR(fitted("Object#a.b", 3), "a.b");
}

TEST(cuts_fall_between_characters)
{
    CHECK_STR(fitted("Größe#äöüßäöü", 5), "äöüß…");
    char name[600];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name, "Foo#", 4);
    CHECK(strlen(fitted(name, 1e6f)) < LABEL_BYTES_MAX);
    CHECK(strlen(fitted(name, 1e6f)) > 100);
}

TEST(figures_have_three_digits_and_a_unit)
{
    char out[32];
    label_count(0, out); CHECK_STR(out, "0");
    label_count(999, out); CHECK_STR(out, "999");
    label_count(1234, out); CHECK_STR(out, "1.23 k");
    label_count(999600, out); CHECK_STR(out, "1.00 M");
    label_count(45.67e6, out); CHECK_STR(out, "45.7 M");
    label_bytes(44u << 20, out); CHECK_STR(out, "44 MB");
    label_bytes(UINT64_C(3) << 30, out); CHECK_STR(out, "3.0 GB");
    length_show(12, out); CHECK_STR(out, "12 ns");
    length_show(1500, out); CHECK_STR(out, "1.50 \xC2\xB5s");
    length_show(2.5e9, out); CHECK_STR(out, "2.50 s");
}

TEST(calls_beside_a_name_are_counted_as_others)
{
    char out[24];
    label_others(0, out); CHECK_STR(out, "");
    label_others(1, out); CHECK_STR(out, "");
    label_others(2, out); CHECK_STR(out, " + 1");
    label_others(71, out); CHECK_STR(out, " + 70");
    label_others(UINT64_MAX, out); CHECK(strlen(out) < sizeof out);
}

TEST(the_time_axis_has_round_steps_and_exact_ticks)
{
    CHECK_EQ(label_step(0.3), 1);
    CHECK_EQ(label_step(3e6), 5000000);
    CHECK_EQ(label_step(5.0001e6), 10000000);
    CHECK_EQ(label_step(1.2e9), 2000000000);
    char out[32];
    label_tick(0, 50000000, out); CHECK_STR(out, "0 ms");
    label_tick(0, 1000000000, out); CHECK_STR(out, "0 s");
    label_tick(350000000, 50000000, out); CHECK_STR(out, "350 ms");
    label_tick(12000000000, 50000000, out); CHECK_STR(out, "12 s");
    label_tick(12350000000, 50000000, out); CHECK_STR(out, "12.35 s");
    label_tick(125000000000, 5000000000, out); CHECK_STR(out, "125 s");
    label_tick(12345678, 1000, out); CHECK_STR(out, "12.346 ms");
    label_tick(20, 10, out); CHECK_STR(out, "20 ns");
}

TEST(far_from_0_one_tick_tells_all_and_the_others_how_far_they_are)
{
    char out[32];
    CHECK(label_is_far(6061409000, 1000) && !label_is_far(12350000000, 10000000) && !label_is_far(0, 1));
    label_whole(6061409000, 1000, out); CHECK_STR(out, "6.061409 s");
    label_whole(129674569200, 200, out); CHECK_STR(out, "129.6745692 s");
    label_whole(50000000000000, 5000000000, out); CHECK_STR(out, "50000 s");
    label_whole(3000000007, 1, out); CHECK_STR(out, "3.000000007 s");
    label_offset(2000, 1000, out); CHECK_STR(out, "+2 \xC2\xB5s");
    label_offset(-500, 100, out); CHECK_STR(out, "-500 ns");
    label_offset(-1200, 200, out); CHECK_STR(out, "-1.2 \xC2\xB5s");
}

TEST(neighbouring_ticks_never_read_the_same)
{
    uint64_t seed = test_seed(2), state = seed;
    for (int i = 0; i < 2000; i++) {
        uint64_t step = label_step((double)(1 + test_random_below(&state, UINT64_C(1) << test_random_below(&state, 36))));
        int64_t tick = (int64_t)(test_random_below(&state, 2000) * step);
        char a[32], b[32];
        label_tick(tick, step, a);
        label_tick(tick + (int64_t)step, step, b);
        if (strcmp(a, b) == 0)
            TEST_FAILED("seed %" PRIu64 ": two ticks %" PRIu64 " ns apart both read %s", seed, step, a);
    }
}

/* Palette. */

TEST(a_method_has_the_same_colour_everywhere_and_hashes_spread_over_hues)
{
    CHECK_EQ(palette_method(12345, EV_METHOD_RUBY, 3), palette_method(12345, EV_METHOD_RUBY, 3));
    int buckets[12] = {0};
    for (uint32_t hash = 0; hash < 1200; hash++) {
        float lightness, chroma, hue;
        palette_to_oklch(palette_method(hash, EV_METHOD_RUBY, 0), &lightness, &chroma, &hue);
        buckets[(int)(hue / 30) % 12]++;
    }
    int used = 0;
    for (int i = 0; i < 12; i++)
        used += buckets[i] > 40;
    CHECK(used >= 8);
}

TEST(method_colours_are_of_one_lightness_read_well_and_leave_red_to_gc)
{
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t depth = i % 40, color = palette_method(i * 7919, i % 3, depth);
        float lightness, chroma, hue;
        palette_to_oklch(color, &lightness, &chroma, &hue);
        CHECK(lightness > 0.58f && lightness < 0.81f);
        CHECK(palette_contrast(color, palette_text_on(color)) >= 4.5f);
        CHECK(palette_contrast(color, PALETTE_BACKGROUND) >= 4.5f);
        if (chroma > 0.06f) /* greys have no hue to speak of */
            CHECK(hue <= PALETTE_GC_HUE_BEGIN + 2 || hue >= PALETTE_GC_HUE_END - 2);
    }
}

TEST(c_methods_are_greyer_than_ruby_ones_and_deeper_is_darker)
{
    for (uint32_t hash = 1; hash < 400; hash += 7) {
        float lightness[3], chroma[3], hue;
        palette_to_oklch(palette_method(hash, EV_METHOD_RUBY, 0), &lightness[0], &chroma[0], &hue);
        palette_to_oklch(palette_method(hash, EV_METHOD_C, 0), &lightness[1], &chroma[1], &hue);
        palette_to_oklch(palette_method(hash, EV_METHOD_RUBY, 20), &lightness[2], &chroma[2], &hue);
        CHECK(chroma[1] < 0.6f * chroma[0]);
        CHECK(lightness[2] < lightness[0]);
    }
}

TEST(gvl_states_differ_in_lightness_too)
{
    float lightness[3], chroma, hue;
    for (int state = 0; state < 3; state++)
        palette_to_oklch(palette_gvl((sim_gvl)state), &lightness[state], &chroma, &hue);
    CHECK(lightness[SIM_GVL_WAITING] > lightness[SIM_GVL_RUNNING] + 0.08f);
    CHECK(lightness[SIM_GVL_RUNNING] > lightness[SIM_GVL_BLOCKED] + 0.15f);
}

TEST(gvl_states_differ_in_shape_where_there_is_no_colour)
{
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < a; b++) {
            palette_bands one = palette_gvl_bands((sim_gvl)a), other = palette_gvl_bands((sim_gvl)b);
            float differs = 0; /* how much of the strip's width is taken by one of them alone */
            for (int i = 0; i < 100; i++) {
                float at = ((float)i + 0.5f) / 100;
                bool in_one = false, in_other = false;
                for (uint32_t k = 0; k < one.count; k++)
                    in_one |= at >= one.at[k][0] && at < one.at[k][1];
                for (uint32_t k = 0; k < other.count; k++)
                    in_other |= at >= other.at[k][0] && at < other.at[k][1];
                differs += in_one != in_other ? 0.01f : 0;
            }
            CHECK(differs > 0.25f);
        }
}

TEST(colours_survive_the_way_to_oklch_and_back)
{
    const uint32_t colors[] = {0xff3c5cffu, 0xff18120eu, 0xffffffffu, 0xff00ff00u, 0xff808080u};
    for (size_t i = 0; i < sizeof colors / sizeof colors[0]; i++) {
        float lightness, chroma, hue;
        palette_to_oklch(colors[i], &lightness, &chroma, &hue);
        uint32_t back = palette_oklch(lightness, chroma, hue);
        for (int shift = 0; shift < 24; shift += 8)
            CHECK(labs((long)(back >> shift & 255u) - (long)(colors[i] >> shift & 255u)) <= 2);
    }
    CHECK_EQ(palette_mix(0xff000000u, 0xff0000ffu, 0.5f), 0xff000080u);
    CHECK_EQ(palette_alpha(0xff112233u, 0.5f), 0x80112233u);
}

/* Fonts. */

TEST(text_becomes_one_quad_a_letter_inside_its_measure)
{
    font *f;
    quad_list quads = {0};
    CHECK_EQ(font_new(&f), 0);
    if (font_problem(f))
        TEST_SKIP(font_problem(f));
    const char *text = "Foo#bar baz";
    float width = font_measure(f, text, strlen(text), 14), end = font_draw(f, &quads, 100, 50, 0, text, strlen(text), 14, 0xffffffffu);
    CHECK(fabsf(end - 100 - width) < 0.01f);
    CHECK_EQ(quads.count, 10); /* the space is none */
    for (size_t i = 0; i < quads.count; i++) {
        const gpu_quad *q = &quads.items[i];
        CHECK(q->flags == GPU_QUAD_GLYPH && q->low_px[0] < q->high_px[0] && q->low_px[1] < q->high_px[1]);
        CHECK(q->low_px[0] > 94 && q->high_px[0] < 106 + width && q->low_px[1] > 28 && q->high_px[1] < 62);
        CHECK(q->uv_low[0] >= 0 && q->uv_high[0] <= 1 && q->uv_low[1] >= 0 && q->uv_high[1] <= 1);
    }
    CHECK(font_cap_height(f, 14) > 8 && font_cap_height(f, 14) < 13);
    quad_list_free(&quads);
    font_delete(f);
}

TEST(new_letters_change_the_atlas_once_and_broken_utf8_does_no_harm)
{
    font *f;
    quad_list quads = {0};
    const uint8_t *pixels;
    uint32_t width, height;
    CHECK_EQ(font_new(&f), 0);
    if (font_problem(f))
        TEST_SKIP(font_problem(f));
    CHECK(font_atlas(f, &pixels, &width, &height));
    CHECK(!font_atlas(f, &pixels, &width, &height));
    font_draw(f, &quads, 0, 0, 0, "ж", 2, 14, 0);
    CHECK(font_atlas(f, &pixels, &width, &height));
    font_draw(f, &quads, 0, 0, 0, "ж", 2, 14, 0);
    CHECK(!font_atlas(f, &pixels, &width, &height));
    uint64_t state = test_seed(9);
    char noise[256];
    for (int i = 0; i < 200; i++) {
        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = (char)test_random(&state);
        float measured = font_measure(f, noise, sizeof noise, 14);
        CHECK(measured >= 0 && measured < 256 * 40);
    }
    /* A full atlas goes on without new glyphs. */
    for (uint32_t c = 0x4E00; c < 0x4E00 + 6000; c++) {
        char han[3] = {(char)(0xE0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3F)), (char)(0x80 | (c & 0x3F))};
        font_measure(f, han, 3, 14);
    }
    quad_list_free(&quads);
    font_delete(f);
}
