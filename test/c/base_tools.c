/* Arrays, maps and workers. */
#include "base/crc.h"
#include "base/length.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/vec.h"
#include "base/workers.h"

#include "test.h"

#include <errno.h>
#include <stdatomic.h>

TEST(an_array_keeps_its_elements_as_it_grows)
{
    VEC(int) v = {0};
    for (int i = 0; i < 100000; i++) {
        int *place = vec_push(&v);
        CHECK(place);
        *place = i;
    }
    for (int i = 0; i < 100000; i++)
        CHECK_EQ(v.items[i], i);
    vec_free(&v);
    CHECK_EQ(v.count, 0);
}

TEST(an_array_is_covered_with_zeros_and_keeps_what_it_had)
{
    VEC(uint32_t) v = {0};
    CHECK(vec_cover(&v, 3));
    CHECK(v.count >= 3);
    for (size_t i = 0; i < v.count; i++) {
        CHECK_EQ(v.items[i], 0);
        v.items[i] = 7;
    }
    size_t before = v.count;
    CHECK(vec_cover(&v, 1000));
    CHECK(v.count >= 1000);
    for (size_t i = 0; i < v.count; i++)
        CHECK_EQ(v.items[i], i < before ? 7 : 0);
    mem_fail_every(1);
    CHECK(!vec_cover(&v, 100000));
    CHECK(vec_cover(&v, 1000));
    mem_fail_every(0);
    vec_free(&v);
}

TEST(an_array_that_can_not_grow_stays_as_it_was)
{
    VEC(int) v = {0};
    for (int i = 0; i < 16; i++)
        *vec_push(&v) = i;
    mem_fail_every(1);
    CHECK(vec_push(&v) == NULL);
    mem_fail_every(0);
    CHECK_EQ(v.count, 16);
    CHECK_EQ(v.items[15], 15);
    vec_free(&v);
}

TEST(a_length_is_read_with_its_unit_and_nothing_else_is_one)
{
    static const struct { const char *text; uint64_t ns; } lengths[] = {
        {"1.5", 1500000}, {"1.5s", 1500000000}, {"200ms", 200000000}, {"30us", 30000}, {"30\xC2\xB5s", 30000}, {"7ns", 7}, {"2min", 120000000000},
        {".5s", 500000000}, {"1e300s", UINT64_MAX}, {"1e999", UINT64_MAX},
    };
    static const char *const others[] = {"", "s", "-1", "+1", "nan", "inf", "infinity", ".nan", " 1", "1 s", "1parsec", "1,5", "."};
    uint64_t ns;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        CHECK(length_read(lengths[i].text, 1e6, &ns));
        CHECK_EQ(ns, lengths[i].ns);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ns = 42;
        CHECK(!length_read(others[i], 1e6, &ns));
        CHECK_EQ(ns, 42);
    }
}

TEST(a_map_finds_what_was_put_and_nothing_else)
{
    uint64_t state = test_seed(5);
    map m;
    map_init(&m);
    CHECK_EQ(map_get(&m, 0), MAP_NONE);
    for (uint32_t i = 0; i < 50000; i++)
        CHECK_EQ(map_put(&m, (uint64_t)i * 4096, i), 0);
    CHECK_EQ(map_put(&m, 4096, 77), 0); /* replaces */
    CHECK_EQ(m.count, 50000);
    CHECK_EQ(map_get(&m, 4096), 77);
    for (uint32_t i = 2; i < 50000; i++)
        CHECK_EQ(map_get(&m, (uint64_t)i * 4096), i);
    for (int i = 0; i < 50000; i++)
        CHECK_EQ(map_get(&m, test_random(&state) | 1), MAP_NONE);
    map_free(&m);
}

static void count_up(void *context, size_t index, unsigned thread)
{
    (void)thread;
    _Atomic int *counts = context;
    counts[index]++;
}

TEST(each_index_runs_exactly_once_whatever_the_number_of_threads)
{
    static _Atomic int counts[1000];
    for (unsigned threads = 1; threads <= 4; threads++) {
        workers *w;
        CHECK_EQ(workers_new(&w, threads), 0);
        CHECK_EQ(workers_count(w), threads);
        for (int run = 1; run <= 300; run++) {
            size_t count = (size_t)(run * 7 % 1000);
            workers_run(w, count, count_up, counts);
            for (size_t i = 0; i < 1000; i++) {
                CHECK_EQ(counts[i], i < count ? 1 : 0);
                counts[i] = 0;
            }
        }
        workers_delete(w);
    }
}

TEST(workers_refuse_nonsense_and_survive_a_lack_of_memory)
{
    workers *w;
    CHECK_EQ(workers_new(&w, 0), -EINVAL);
    CHECK_EQ(workers_new(&w, 100000), -EINVAL);
    for (unsigned every = 1; every < 6; every++) {
        mem_fail_every(every);
        int error = workers_new(&w, 4);
        mem_fail_every(0);
        CHECK(error == 0 || (error == -ENOMEM && w == NULL));
        workers_delete(w);
    }
    int sum = 0;
    (void)sum;
    workers_run(NULL, 0, count_up, NULL);
}

TEST(crc32c_is_that_of_rfc_3720_with_and_without_the_instruction)
{
    unsigned char bytes[32];
    memset(bytes, 0, sizeof bytes);
    CHECK_EQ(crc32c(0, bytes, 32), 0x8A9136AAu);
    memset(bytes, 0xff, sizeof bytes);
    CHECK_EQ(crc32c(0, bytes, 32), 0x62A8AB43u);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    CHECK_EQ(crc32c(0, bytes, 32), 0x46DD794Eu);
    CHECK_EQ(crc32c(0, "123456789", 9), 0xE3069283u);
    for (size_t from = 0; from < 32; from++)
        for (size_t to = from; to <= 32; to++) {
            CHECK_EQ(crc32c(7, bytes + from, to - from), crc32c_by_table(7, bytes + from, to - from));
            CHECK_EQ(crc32c(crc32c(0, bytes, from), bytes + from, to - from), crc32c(0, bytes, to));
        }
}

/* As lib/rrtrace/settings.rb reads them. */
TEST(sizes_are_read_as_people_write_them)
{
    const struct { const char *text; uint64_t bytes; } sizes[] = {
        {"1", 1},           {"4096", 4096},          {"64K", 64 << 10},      {"64m", 64 << 20},        {"64MB", 64 << 20},
        {"64MiB", 64 << 20}, {"1.5G", 1536ull << 20}, {"1.5 gib", 1536ull << 20}, {"2T", 2ull << 40}, {"0.5k", 512},
        {"1.0009765625k", 1025}, {"7b", 7}, {"99999999999999999999", UINT64_MAX}, {"17179869184T", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t bytes = 0;
        CHECK(size_read(sizes[i].text, &bytes));
        CHECK_EQ(bytes, sizes[i].bytes);
    }
    const char *const others[] = {"", "M", "0", "0K", "-1", "+1", " 1", "1  M", "1P", "64MM", "64Mi", "1.M", ".5G", "1.5.2G", "nan", "0x10", "1e3", "64M "};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint64_t bytes = 77;
        CHECK(!size_read(others[i], &bytes));
        CHECK_EQ(bytes, 77);
    }
}
