/* SPDX-License-Identifier: MIT */
/** What the files of loading share. The reader and merging use the bytes and the times. */
#ifndef XHEAP_TRACE_LOAD_PARTS_H
#define XHEAP_TRACE_LOAD_PARTS_H

#include "base/grow.h"
#include "trace/load.h"

enum { ROWS_MAX = 1 << 28 };

/* A block as it was found: its head is in load->scratch. */
struct load_found {
	uint64_t offset;
	struct format_block block;
	const uint8_t *head;
};

/** Read exactly `size` bytes at `offset`; false at the end of the file or on an error. */
bool load_bytes(int fd, void *to, size_t size, uint64_t offset);

/** Ticks of a segment's clock as nanoseconds since T = 0. INT64_MAX stays what it is. */
int64_t load_ns(const struct format_segment *segment, uint64_t ticks);

/** Whether both clocks were 0 at one time: traces since one start of a machine agree about it, but for what the wall
    clock was set by. */
bool load_is_one_boot(const struct writer_clock *one, const struct writer_clock *other);

/** Note the first place at which something is missing. Return false. */
__attribute__((format(printf, 3, 4))) bool load_cut(struct load *load, uint64_t offset, const char *format, ...);

/** Make room for one more row. False without memory, or if there are too many. */
#define load_grow(rows, count, capacity) ((count) < ROWS_MAX && grow_by_one(rows, count, capacity))

/** Free what was read, but for the descriptor. */
void load_clear(struct load *load);

/** Begin, or after load_clear() begin again, with the open file, whose header is known. Return false without memory. */
bool load_begin(struct load *load, const struct format_header *header);

/** The segment that is being read. */
static inline struct load_segment *load_current(struct load *load)
{
	return &load->segments[load->segment_count - 1];
}

#endif
