/* SPDX-License-Identifier: MIT */
/** The file that a trace is written to: up to its greatest size, or circular. It lists the segments in the file. */
#ifndef XHEAP_TRACE_FILE_OUTPUT_H
#define XHEAP_TRACE_FILE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output_segment {
	uint64_t offset, bytes, first_ticks, last_ticks, events;
};

struct output {
	int fd;
	bool is_circular, has_wrapped;
	uint64_t end;                    /* where the next bytes go; what is before is whole */
	uint64_t size;                   /* of the file */
	uint64_t limit;                  /* its greatest size; 0: none */
	bool is_full;                    /* something found no room below the limit */
	uint64_t allocated;              /* bytes of the file that are sure to be had */
	uint64_t ending_bytes;           /* of rows that the end may need */
	struct output_segment *segments; /* those that are there, oldest first */
	uint32_t segment_count, segment_capacity;
	uint32_t first_number;   /* of the oldest */
	bool has_end;            /* of a process, whose row may have come behind its last event */
	uint64_t dropped_events; /* of those that are there no more */
};

/** Add a segment; false when there is no memory. */
bool output_add_segment(struct output *output);

/** Whether so many bytes more, and an ending, find room: 0, -EFBIG, or what the disk says. */
int output_room(struct output *output, uint64_t size);

/** Bytes that the limit leaves for more than the ending. */
uint64_t output_room_left(const struct output *output);

/** Drop the segments that `size` bytes, written at the end of a circular file, overwrite. Return whether there was
    one. */
bool output_make_way(struct output *output, uint64_t size);

/** Write at the end: all or nothing, for a reader at any time. In a circular file the oldest segments go where the
    bytes come. */
int output_write(struct output *output, const void *data, size_t size);

/** Go on at the beginning of a circular file. 0 or a negative errno. */
int output_wrap(struct output *output);

/** In a circular file: lead a reader from `at`, in the segment at segment_offset, over remains to `to`. 0 or a negative
    errno. */
int output_skip(struct output *output, uint64_t at, uint64_t to, uint64_t segment_offset);

/** The file is whole: give back what was allocated ahead, and close it. 0 or a negative errno. */
int output_close(struct output *output);

#endif
