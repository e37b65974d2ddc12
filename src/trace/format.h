/* SPDX-License-Identifier: MIT */
/**
 * The bytes of a trace file, little endian; docs/trace-format.md explains them. Only src/trace may include this.
 *
 *     +-------------+ 0
 *     | file header |  64 bytes
 *     +-------------+
 *     | segment     |  SEGMENT, then blocks: rows of dictionaries before the events that refer to them
 *     +-------------+
 *     | segment     |
 *     +-------------+
 *     | ...         |
 *     +-------------+
 *     | footer      |  FOOTER; more segments and a newer footer may follow it
 *     +-------------+
 *
 * A circular file overwrites its oldest segments: a segment may lie before an older one, and a SKIP behind it leads
 * over the remains.
 *
 *     block:  | struct format_block | head (by type, plain) | payload (by type) | zeros up to a multiple of 8 |
 */
#ifndef XHEAP_TRACE_FORMAT_H
#define XHEAP_TRACE_FORMAT_H

#include <stdint.h>

#include "base/events.h"

#define FORMAT_MAGIC 0x0a1a0a0d54485889u        /* 89 'X' 'H' 'T' 0d 0a 1a 0a */
#define FORMAT_FOOTER_MAGIC 0x444e455f54485889u /* 89 'X' 'H' 'T' '_' 'E' 'N' 'D' */
#define FORMAT_BLOCK_MAGIC 0x4b4c4258u          /* 'X' 'B' 'L' 'K' */

enum {
	FORMAT_VERSION = 1, /* a reader refuses a file of a greater version */
	FORMAT_HEADER_BYTES = 64,
	FORMAT_EVENTS_MAX = 65536,    /* events of a block */
	FORMAT_HEAD_MAX = 4096,       /* bytes of a block's head */
	FORMAT_PAYLOAD_MAX = 1 << 24, /* bytes of a block's payload as stored */
	FORMAT_RAW_MAX = 1 << 22,     /* bytes of a dictionary block's payload when unpacked */
	FORMAT_EXPANSION_MAX = 16,    /* unpacked bytes of a dictionary block for each stored one */
	FORMAT_EVENTS_PER_BYTE = 64,  /* events of a block for each stored byte of its payload */
	FORMAT_TEXT_MAX = 1 << 19     /* bytes of a text */
};

/** X(number, name, section of docs/trace-format.md, what it holds): the types of blocks. The numbers are the file's:
    append with the next number, never reorder. Readers skip types that they do not know. */
#define FORMAT_TYPES(X) \
	X(1, SEGMENT, 4, "the beginning of a segment: identity, clock, host") \
	X(2, OPTIONS, 5, "options of the session, and facts about the recording") \
	X(3, PROCESSES, 5, "a row for each image of each process id: parent, start, end, executable, command line") \
	X(4, THREADS, 5, "threads of the processes") \
	X(5, IMAGES, 5, "executables and shared objects: path and build id") \
	X(6, MAPPINGS, 5, "where an image lay in a process, and when") \
	X(7, ENTRIES, 5, "hooked functions") \
	X(8, HEAPS, 5, "arenas and allocators") \
	X(9, FRAMES, 5, "return addresses, by image and offset") \
	X(10, NODES, 5, \
	  "the tree of stacks: a frame, and the node of its caller; a mark ends a stack without its start") \
	X(11, EVENTS, 6, "events of one thread, as columns") \
	X(12, GAPS, 5, "lost events by time, kind and bytes") \
	X(13, STATISTICS, 7, "the cost of the recording") \
	X(14, FOOTER, 7, "the list of the segments") \
	X(15, MEMORY, 5, "resident memory of a process at a time") \
	X(16, SYMBOLS, 5, "functions, source files and lines of frames, as xheap symbols found them") \
	X(17, SKIP, 2, "the rest of an overwritten segment in a circular file; a reader skips it") \
	X(18, FOLDED, 5, "aggregated blocks: sums in place of the oldest events of a long run; essential") \
	X(19, EARLY_ENDS, 5, "time and reason of an early end, and the later calls of each process") \
	X(20, RESIDENT, 5, "resident memory of a process by kind of mapping, and its largest mappings") \
	X(21, LIMITS, 5, "limits of the memory of a process") \
	X(22, CAUSES, 5, "facts about the end of a process that a signal ended") \
	X(23, PAGES, 5, "resident pages of a process where blocks may lie, at a time")

/** Kinds of blocks, by what they hold. */
enum format_type {
#define X(number, name, section, holds) FORMAT_##name = number,
	FORMAT_TYPES(X)
#undef X
		FORMAT_TYPE_COUNT
};

/** Bits of a block's flags. */
enum format_flag {
	FORMAT_ESSENTIAL = 1, /**< a reader that does not know the type must stop here instead of skipping it */
	FORMAT_PACKED = 2     /**< the payload is one zstd frame (and perhaps a skippable one); never with events */
};

/** Bits of the header's flags. */
enum format_header_flag {
	FORMAT_CIRCULAR = 1 /**< segments lie in any order; their numbers tell */
};

struct format_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* where the first block begins */
	uint8_t trace_id[16];  /* random */
	uint64_t flags;        /* enum format_header_flag */
	uint64_t reserved[2];
	uint64_t checksum; /* XXH3 of what is before it */
};
_Static_assert(sizeof(struct format_header) == FORMAT_HEADER_BYTES, "on-disk layout");

struct format_block {
	uint32_t magic;
	uint16_t type;             /* enum format_type */
	uint16_t flags;            /* enum format_flag */
	uint32_t head_bytes;       /* multiple of 4 */
	uint32_t payload_bytes;    /* as stored, without the zeros behind */
	uint32_t raw_bytes;        /* of the payload when unpacked */
	uint32_t count;            /* rows or events */
	uint64_t place;            /* of this block from the beginning of its segment */
	uint64_t payload_checksum; /* XXH3 of the payload as stored */
	uint64_t head_checksum;    /* XXH3 of the 40 bytes before this and of the head, with seed 0 */
};
_Static_assert(sizeof(struct format_block) == 48, "on-disk layout");

/** Head of SEGMENT; the payload has the clock's name, the host. */
struct format_segment {
	uint8_t trace_id[16]; /* of the file that it was first written to */
	uint32_t number;      /* counts from 0 in that file */
	uint32_t shift;       /* ns = (ticks - start_ticks) * mult >> shift */
	uint64_t start_ticks, mult;
	int64_t start_realtime_ns;
	/* in segments with lower numbers, and the last point in them: some may have been dropped */
	uint64_t events_before;
	uint64_t last_ticks_before;
};
_Static_assert(sizeof(struct format_segment) == 64, "on-disk layout");

/** Head of SKIP: remains of what was overwritten follow the block. */
struct format_skip {
	uint64_t bytes; /* so many */
};
_Static_assert(sizeof(struct format_skip) == 8, "on-disk layout");

/** Head of EVENTS, followed by kind_count words: kind << 24 | successful events of it; then, unless the file is older,
    by FORMAT_EVENTS_END_WORDS more. */
struct format_events {
	uint32_t process, thread;         /* ids of rows before it in its segment */
	uint64_t first_ticks, last_ticks; /* bounds of all points */
	uint64_t region;
	uint32_t slot, first_sequence, last_sequence, part_sequence, part_events;
	uint32_t failed, in_flight, truncated;
	uint32_t node_count; /* nodes of the segment, the root included, when this block was coded */
	uint32_t kind_count;
};
_Static_assert(sizeof(struct format_events) == 72, "on-disk layout");

/** Words at the end of the head of EVENTS: events whose stack ends for want of unwind data, and events whose stack
 *  reaches its start. Older files have neither, or the first one unless it is 0. */
enum { FORMAT_EVENTS_END_WORDS = 2 };

/** The last 16 bytes of a finished file, the end of FOOTER's payload. */
struct format_tail {
	uint64_t footer_offset;
	uint64_t magic;
};
_Static_assert(sizeof(struct format_tail) == 16, "on-disk layout");

/** Set the checksum of the block's head, of block->head_bytes bytes; all else of the block is there. */
void format_sign(struct format_block *block, const void *head);

static inline uint64_t format_aligned(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

#endif
