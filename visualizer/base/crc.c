#include "base/crc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#if defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

#define POLYNOMIAL 0x82F63B78u /* 0x1EDC6F41 with its bits reversed */

static uint32_t table[256];
static bool has_instruction; /* written once, with the table */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        table[i] = crc;
    }
#if defined(__x86_64__)
    has_instruction = __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
    has_instruction = getauxval(AT_HWCAP) & HWCAP_CRC32;
#endif
}

uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t count)
{
    pthread_once(&once, prepare);
    const unsigned char *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < count; i++)
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *p, size_t count)
{
    uint64_t wide = (uint32_t)~crc;
    for (; count >= 8; p += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    uint32_t narrow = (uint32_t)wide;
    for (; count > 0; p++, count--)
        narrow = __builtin_ia32_crc32qi(narrow, *p);
    return ~narrow;
}
#elif defined(__aarch64__)
__attribute__((target("+crc"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *p, size_t count)
{
    crc = ~crc;
    for (; count >= 8; p += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        crc = __crc32cd(crc, word);
    }
    for (; count > 0; p++, count--)
        crc = __crc32cb(crc, *p);
    return ~crc;
}
#else
static uint32_t by_instruction(uint32_t crc, const unsigned char *p, size_t count) { return crc32c_by_table(crc, p, count); }
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    pthread_once(&once, prepare);
    return has_instruction ? by_instruction(crc, bytes, count) : crc32c_by_table(crc, bytes, count);
}
