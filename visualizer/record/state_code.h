/* record/state_code.h - a sim_state as bytes, and back.
 * For:     writer.c and reader.c of this room.
 * Idea:    field after field rather than frame after frame, each as the difference to the one before it in 7 bits a byte, so
 *          that zstd finds like beside like: a stack of 24 frames takes about 100 bytes.
 * Use:     state_encode; state_decode.
 * Memory:  the caller's. Decoding allocates no more than the bytes can hold: each frame, fiber and thread takes some.
 */
#ifndef RRTRACE_RECORD_STATE_CODE_H
#define RRTRACE_RECORD_STATE_CODE_H

#include "record/columns.h"
#include "sim/state.h"

int state_encode(const sim_state *state, columns_bytes *out); /* appends. 0 or -ENOMEM */
int state_decode(const void *bytes, size_t count, sim_state *out); /* 0, -EBADMSG or -ENOMEM */

#endif
