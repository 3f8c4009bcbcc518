/* base/length.h - lengths of time as people write and read them: "12.3 ms".
 * For:     the window's figures and its search line, tables, times on the command line.
 * Threads: any; values only.
 * Units:   ns.
 */
#ifndef RRTRACE_BASE_LENGTH_H
#define RRTRACE_BASE_LENGTH_H

#include <stdbool.h>
#include <stdint.h>

#define LENGTH_BYTES 24u

/* "12.3 ms", "1.50 s", "250 µs": three significant digits. out[LENGTH_BYTES]. */
void length_show(double ns, char *out);

/* 1.5s, 200ms, 30us, 30µs, 50ns, 2min; a number alone is in unit_ns. Longer than can be counted: UINT64_MAX. False: it is no
 * length, and *ns stays as it was. */
bool length_read(const char *text, double unit_ns, uint64_t *ns);

#endif
