/* test/c/test.h - a test is a sentence that can be false.
 * For:     test/c/ROOM_MODULE.c, one program each.
 * Idea:    tests register themselves; main runs each in a child process of its own, so that a crash or a hang is one red
 *          line and the others go on. The last line is "N passed, N failed".
 * Use:     #include "test.h"; TEST(a_sentence) { CHECK(x); CHECK_EQ(a, b); } … and nothing else: main is here.
 *          Run one: ./test_room_module a_sentence. TEST_SEED=n repeats a random test's failing seed (test_seed()).
 *          TEST_SKIP("why") ends a test as skipped. A program whose tests are all skipped exits with 77.
 *          With TEST_FORK=0 in the environment tests run in the program itself (debuggers).
 */
#ifndef RRTRACE_TEST_H
#define RRTRACE_TEST_H

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
} test_case;

static test_case *test_first, **test_last = &test_first;

#define TEST(name)                                                                   \
    static void test_##name(void);                                                   \
    __attribute__((constructor)) static void test_register_##name(void)              \
    {                                                                                \
        static test_case test_this = {#name, test_##name, NULL};                     \
        *test_last = &test_this;                                                     \
        test_last = &test_this.next;                                                 \
    }                                                                                \
    static void test_##name(void)

#define TEST_FAILED(...)                                               \
    do {                                                               \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                \
        fprintf(stderr, __VA_ARGS__);                                  \
        fprintf(stderr, "\n");                                         \
        exit(1);                                                       \
    } while (0)

#define CHECK(x)                                                       \
    do {                                                               \
        if (!(x))                                                      \
            TEST_FAILED("not true: %s", #x);                           \
    } while (0)

/* Integers of any type; both are shown as signed numbers. */
#define CHECK_EQ(got, want)                                                                          \
    do {                                                                                             \
        long long got_ = (long long)(got), want_ = (long long)(want);                                \
        if (got_ != want_)                                                                           \
            TEST_FAILED("%s is %lld, wanted %lld (%s)", #got, got_, want_, #want);                   \
    } while (0)

#define CHECK_STR(got, want)                                                                         \
    do {                                                                                             \
        const char *got_ = (got), *want_ = (want);                                                   \
        if (!got_ || strcmp(got_, want_) != 0)                                                       \
            TEST_FAILED("%s is \"%s\", wanted \"%s\"", #got, got_ ? got_ : "(NULL)", want_);          \
    } while (0)

#define TEST_SKIP(why)                                 \
    do {                                               \
        fprintf(stderr, "skipped: %s\n", why);         \
        exit(77);                                      \
    } while (0)

/* Start of a random test: TEST_SEED or seed. Failures should print it. */
__attribute__((unused)) static uint64_t test_seed(uint64_t seed)
{
    const char *given = getenv("TEST_SEED");
    return given ? strtoull(given, NULL, 0) : seed;
}

/* Rounds of a random test: count, times TEST_SCALE for a long run by hand. */
__attribute__((unused)) static int test_rounds(int count)
{
    const char *given = getenv("TEST_SCALE");
    return given ? count * atoi(given) : count;
}

/* xorshift64*; *state must not be 0. Marsaglia, "Xorshift RNGs" (2003); Vigna (2016). */
__attribute__((unused)) static uint64_t test_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

/* In [0, below). */
__attribute__((unused)) static uint64_t test_random_below(uint64_t *state, uint64_t below)
{
    return test_random(state) % below;
}

static int test_run_one(const test_case *t)
{
    fflush(NULL);
    const char *fork_wanted = getenv("TEST_FORK");
    if (fork_wanted && strcmp(fork_wanted, "0") == 0) {
        t->run();
        return 0;
    }
    pid_t pid = fork();
    if (pid == 0) {
        alarm(getenv("TEST_SCALE") ? 0 : 240); /* a hang is a failure with a name, before ctest's own limit */
        t->run();
        exit(0); /* not _exit: leak and thread checks run at exit */
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return 1;
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "%s: ended by signal %d (%s)\n", t->name, WTERMSIG(status), strsignal(WTERMSIG(status)));
        return 1;
    }
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0;
    for (const test_case *t = test_first; t; t = t->next) {
        if (argc > 1 && strcmp(argv[1], t->name) != 0)
            continue;
        int status = test_run_one(t);
        if (status == 77)
            skipped++;
        else if (status == 0)
            passed++;
        else
            failed++;
        printf("%s %s\n", status == 77 ? "skip" : status == 0 ? "ok  " : "FAIL", t->name);
    }
    if (passed + failed + skipped == 0) {
        printf("no test named %s\n", argc > 1 ? argv[1] : "anything");
        return 1;
    }
    printf("%d passed, %d failed%s\n", passed, failed, skipped ? " (some skipped)" : "");
    return failed ? 1 : passed ? 0 : 77;
}

#endif
