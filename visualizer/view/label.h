/* view/label.h - names and figures, shortened until they fit.
 * For:     labels.c (names on boxes), panels.c (the corner line, the time axis), what tells of calls: details.c, inspect_draw.c.
 * Idea:    the method's own name says most, its outermost module least: ActiveRecord::Base.find → …Base.find → find → fi…
 * Threads: any; values only.
 * Units:   widths in the caller's unit, whatever measure answers.
 */
#ifndef RRTRACE_VIEW_LABEL_H
#define RRTRACE_VIEW_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LABEL_BYTES_MAX 160u /* longer names are cut: no box is wider on any screen */
#define LABEL_ELLIPSIS "\xE2\x80\xA6"

/* Is it a byte within a character of UTF-8? A text is cut where it is not. */
static inline bool label_is_within(char byte) { return ((unsigned char)byte & 0xC0u) == 0x80u; }

/* How wide text (byte_count bytes of UTF-8, not terminated) is. */
typedef float label_measure(const void *context, const char *text, size_t byte_count);

/* The longest form of a qualified name that is at most width wide, into out[LABEL_BYTES_MAX], ended by NUL. Returns its
 * bytes; 0 ("" in out) when not even three letters of the method's name and the ellipsis fit. */
size_t label_fit(const char *name, size_t name_bytes, float width, label_measure *measure, const void *context, char *out);

/* "1.24 M", "37 k", "512": three significant digits. out[16]. */
void label_count(double count, char *out);
/* What follows the name of the method that takes most of calls' time: " + 70", and so many more, of any methods; of one call
 * nothing. out[24]. */
void label_others(uint64_t calls, char *out);
/* "1.5 GB", "12 MB"; powers of 1024. out[16]. */
void label_bytes(uint64_t bytes, char *out);

/* The time axis: the smallest round step (1, 2, 5 × 10^n ns) of at least min_ns. */
uint64_t label_step(double min_ns);
/* A tick's time since the start, as exactly as step_ns asks for: "350 ms", "12.35 s", "125 s". out[32]. */
void label_tick(int64_t time_ns, uint64_t step_ns, char *out);
/* Far from 0 ticks would differ in their last digits alone: then one tells the whole time, and the others how far from it they are. */
static inline bool label_is_far(int64_t time_ns, uint64_t step_ns) { return time_ns / 10000 >= (int64_t)step_ns; }
/* All of it: "6.061409 s". out[32]. */
void label_whole(int64_t time_ns, uint64_t step_ns, char *out);
/* "+2 µs", "-500 ns". out[32]. */
void label_offset(int64_t offset_ns, uint64_t step_ns, char *out);

#endif
