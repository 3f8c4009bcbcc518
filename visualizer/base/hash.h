/* base/hash.h - a hash of bytes, for keys of base/map.h and the like.
 * For:     report/.
 * Use:     hash_bytes(HASH_BEGIN, bytes, count); what it gives goes on as the next one's hash.
 * Memory:  none.
 * Threads: values only.
 * Source:  FNV-1a, 64 bits.
 */
#ifndef RRTRACE_BASE_HASH_H
#define RRTRACE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN UINT64_C(0xCBF29CE484222325)

static inline uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001B3);
    return hash;
}

#endif
