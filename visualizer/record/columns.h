/* record/columns.h - a chunk's events, taken apart into columns that compress well, and put together again bit for bit.
 * For:     writer.c and reader.c of this room; bench/record.c.
 * Idea:    most of a program's events can be guessed. Encoder and decoder run the same model: the stack of each fiber, what a
 *          method called last time after the same call, and by how much positions differ. An event that is as guessed costs one
 *          byte in the column of shapes and nothing else, and that column repeats as the program does. Times are noise: they
 *          have columns of their own, where they spoil nothing.
 *
 *            column    holds
 *            SHAPES    one byte an event: what it is, and how it was guessed (columns.c)
 *            TIMES     one byte an event: the ticks since the event before, without the low bits that are the same in all
 *                      ticks of the chunk; or, when that is too much for a byte, its upper bits:
 *            RESTS     …and the lower 8 here,
 *            WIDE      …or all of it in 8 bytes here
 *            NUMBERS   numbers that could not be guessed, 7 bits a byte
 *            PLACES    places likewise
 *          DEFINEs do not go through columns: a shape says that the next of the chunk's definitions stands here.
 * Use:     columns_encode; columns_decode. Each chunk stands alone: the model starts empty.
 * Memory:  a columns_coder owns its model and scratch space: some 2 MiB, and 21 bytes for each event of the largest chunk.
 * Threads: one at a time a coder.
 * Source:  the figures of bench/record.
 */
#ifndef RRTRACE_RECORD_COLUMNS_H
#define RRTRACE_RECORD_COLUMNS_H

#include "base/vec.h"
#include "wire/event.h"

#include <stddef.h>
#include <stdint.h>

#define COLUMNS_EVENTS_MAX (UINT32_C(1) << 20) /* slots in a chunk; a reader takes no larger one */

typedef VEC(unsigned char) columns_bytes;

typedef struct columns_coder columns_coder;

int columns_coder_new(columns_coder **out); /* 0 or -ENOMEM */
void columns_coder_delete(columns_coder *c); /* NULL is fine */

/* events: whole, no DEFINE cut. Appends the columns to packed and the slots of the DEFINEs to definitions. *plain_count: events
 * that are no payload; *define_count: those that are DEFINEs. 0 or -ENOMEM; -EINVAL when a DEFINE is cut. */
int columns_encode(columns_coder *c, const ev *events, uint32_t slot_count, columns_bytes *packed, columns_bytes *definitions,
                   uint32_t *plain_count, uint32_t *define_count);
/* Writes exactly slot_count slots. 0, -ENOMEM, or -EBADMSG: these bytes are not what columns_encode wrote. */
int columns_decode(columns_coder *c, const void *packed, size_t packed_bytes, const void *definitions, size_t definition_bytes,
                   ev *out, uint32_t slot_count);

/* zstd, or as it is where that is not smaller: *packed has grown by less than raw_bytes, or by raw_bytes exactly. */
int columns_pack(columns_coder *c, const void *raw, size_t raw_bytes, columns_bytes *packed);
/* Exactly raw_bytes into raw. 0, -EBADMSG or -ENOMEM. */
int columns_unpack(columns_coder *c, const void *packed, size_t packed_bytes, void *raw, size_t raw_bytes);

#endif
