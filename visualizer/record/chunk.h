/* record/chunk.h - what a .rrt file is made of: its header, the head of each chunk, the index and the trailer.
 * For:     writer.c and reader.c of this room. docs/format.md says the same for other readers.
 * Idea:    a chunk says all about itself, so a file without its end is read by walking from head to head.
 *
 *            file header | chunk | chunk | … | index chunk | trailer
 *                          │
 *                          └ head (96 bytes) | part 0 | part 1 | part 2      each with a checksum of its own, so that
 *                                                                            definitions are read without the events
 *            EVENTS         0: definitions (zstd)  1: state before the events, may be empty (zstd)  2: columns
 *            STREAM_BEGINS  0: chunk_begins
 *            STREAM_ENDS    0: what was wrong with the stream, as text; empty: nothing
 *            OVERVIEW       0: what the session looked like from afar (overview.h; zstd)
 *            INDEX          0: chunk_index_head  1: chunk_streams (zstd)  2: chunk_entries (zstd)
 * Memory:  none.
 * Units:   CLOCK_MONOTONIC ns; all numbers little-endian, as memory has them on the machines that we run on.
 */
#ifndef RRTRACE_RECORD_CHUNK_H
#define RRTRACE_RECORD_CHUNK_H

#include "base/crc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "events and .rrt files are little-endian"
#endif

#define CHUNK_FILE_MAGIC "\x89RRT\r\n\x1A\n" /* as PNG's: a transfer as text, or of 7 bits, spoils it */
#define CHUNK_FILE_VERSION 1u
#define CHUNK_MAGIC 0x4B434872u   /* "rHCK" */
#define CHUNK_TRAILER_MAGIC "rrt-end\n"
#define CHUNK_PARTS 3

typedef struct chunk_file_header {
    char magic[8];
    uint32_t version;      /* a reader refuses newer ones */
    uint32_t header_bytes; /* where the first chunk begins */
    uint64_t begin_ns;     /* when the file was made */
    uint64_t realtime_ns;  /* the same moment, CLOCK_REALTIME */
    uint32_t reserved[7];
    uint32_t crc; /* of the bytes before it */
} chunk_file_header;

typedef enum chunk_kind {
    CHUNK_STREAM_BEGINS = 1,
    CHUNK_EVENTS,
    CHUNK_STREAM_ENDS,
    CHUNK_INDEX,
    CHUNK_OVERVIEW, /* readers skip other kinds, and may skip this */
} chunk_kind;

typedef struct chunk_part {
    uint32_t packed_bytes; /* in the file */
    uint32_t raw_bytes;    /* the same: as it is; more: one zstd frame of that many bytes */
    uint32_t crc;          /* of the packed bytes */
} chunk_part;

typedef struct chunk_head {
    uint32_t magic;
    uint16_t kind;
    uint16_t flags; /* CHUNK_CUT_SHORT */
    uint32_t stream;
    uint32_t number;      /* chunks of the file before it */
    uint32_t slot_count;  /* EVENTS: slots, payload included */
    uint32_t event_count; /* EVENTS: those that are no payload */
    uint64_t begin_ns, end_ns; /* of the first and the last event */
    uint32_t define_count;
    uint32_t reserved[3];
    chunk_part parts[CHUNK_PARTS];
    uint32_t crc; /* of the bytes before it */
} chunk_head;

/* In the INDEX chunk's flags: recording stopped before the session did. */
enum { CHUNK_CUT_SHORT = 1 };

typedef struct chunk_begins {
    uint32_t pid, clock_source;
    uint64_t begin_ns;
} chunk_begins;

/* Entries may grow at their ends in later versions: a reader takes what it knows and steps by what is said here. */
typedef struct chunk_index_head {
    uint32_t stream_count, stream_bytes;
    uint32_t entry_count, entry_bytes;
} chunk_index_head;

/* One chunk in the index: its head's own bytes, and where it lies. */
typedef struct chunk_entry {
    uint64_t offset;
    chunk_head head;
} chunk_entry;

typedef struct chunk_stream {
    uint32_t stream, pid, clock_source;
    uint32_t has_ended; /* 0 or 1 */
    uint64_t begin_ns, end_ns;
    uint64_t event_count;
} chunk_stream;

typedef struct chunk_trailer {
    uint64_t index_offset;
    uint32_t reserved;
    uint32_t crc; /* of magic and the fields before it */
    char magic[8];
} chunk_trailer;

_Static_assert(sizeof(chunk_file_header) == 64 && sizeof(chunk_head) == 96 && sizeof(chunk_entry) == 104, "no padding");
_Static_assert(sizeof(chunk_stream) == 40 && sizeof(chunk_trailer) == 24 && sizeof(chunk_begins) == 16, "no padding");

#define CHUNK_STATE_BYTES_MAX (64u << 20) /* raw; a state larger than that is not stored */
#define CHUNK_OVERVIEW_BYTES_MAX (64u << 20)
#define CHUNK_TEXT_BYTES_MAX 1024u
#define CHUNK_ENTRY_BYTES_MAX 256u /* an index whose entries have grown beyond that is not ours to read */

static inline uint32_t chunk_file_crc(const chunk_file_header *h) { return crc32c(0, h, offsetof(chunk_file_header, crc)); }
static inline uint32_t chunk_head_crc(const chunk_head *h) { return crc32c(0, h, offsetof(chunk_head, crc)); }

static inline uint32_t chunk_trailer_crc(const chunk_trailer *t)
{
    return crc32c(crc32c(0, t->magic, sizeof t->magic), t, offsetof(chunk_trailer, crc));
}

/* Bytes of the whole chunk. */
static inline uint64_t chunk_bytes(const chunk_head *h)
{
    uint64_t bytes = sizeof *h;
    for (int i = 0; i < CHUNK_PARTS; i++)
        bytes += h->parts[i].packed_bytes;
    return bytes;
}

#endif
