/* base/crc.h - CRC32C, the checksum of what lies in files.
 * For:     record/.
 * Idea:    Castagnoli's polynomial, because processors have an instruction for it (SSE4.2, ARMv8); a table does it elsewhere.
 * Use:     crc = crc32c(0, bytes, count); go on over the next piece with crc32c(crc, more, count).
 * Threads: any.
 * Source:  RFC 3720, B.4 (its test vectors are in test/c/base_tools.c).
 */
#ifndef RRTRACE_BASE_CRC_H
#define RRTRACE_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);
uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t count); /* the same, slowly; tests compare the two */

#endif
