/* base/size.h - sizes of memory as people write them: "64M", "1.5 GiB".
 * For:     the command line and the environment; lib/rrtrace/settings.rb reads the same forms.
 * Threads: any; values only.
 * Units:   bytes.
 */
#ifndef RRTRACE_BASE_SIZE_H
#define RRTRACE_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* A number, also with decimals, then K, M, G or T (of 1024), then B or iB, each or not, in either case. Larger than can be counted:
 * UINT64_MAX. False: it is no size, or nothing, and *bytes stays as it was. */
bool size_read(const char *text, uint64_t *bytes);

#endif
