/* SPDX-License-Identifier: MIT */
/*
 * A circular file:
 *
 *     | header | segment 9 | SKIP  (remains)| segment 6 | segment 7 | segment 8 | SKIP |
 *                          ^ end                                                 size ^
 *
 * What is written next overwrites segment 6, which is dropped by then. Up to the first time round it is a file like any other.
 */
#include "trace/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "trace/format.h"

enum {
	AHEAD_BYTES = 1 << 22,         /* allocated ahead of the end, so that the footer fits on a full disk */
	FOOTER_BYTES = 2560,           /* kept free for the end, and more for each segment and for rows of processes */
	CIRCULAR_BYTES = 1 << 13,      /* in a circular file, which is full all the time, in place of both: one that is gone on with has room for a block */
	FOOTER_SEGMENT_BYTES = 56,
	SKIP_BYTES = sizeof(struct format_block) + sizeof(struct format_skip)
};

bool output_add_segment(struct output *output)
{
	if (output->segment_count == output->segment_capacity) {
		uint32_t capacity = output->segment_capacity ? output->segment_capacity * 2 : 16;
		struct output_segment *larger = realloc(output->segments, capacity * sizeof(*larger));
		if (!larger)
			return false;
		output->segments = larger;
		output->segment_capacity = capacity;
	}
	output->segments[output->segment_count++] = (struct output_segment){.first_ticks = UINT64_MAX};
	return true;
}

/* The oldest segments that begin between the end and `to`. The newest is never among them. */
static void drop_segments(struct output *output, uint64_t to)
{
	uint32_t count = 0;
	while (count + 1 < output->segment_count && output->segments[count].offset >= output->end && output->segments[count].offset < to)
		output->dropped_events += output->segments[count++].events;
	output->segment_count -= count;
	output->first_number += count;
	memmove(output->segments, output->segments + count, output->segment_count * sizeof(*output->segments));
}

/* ---- room ---- */

static uint64_t footer_room(const struct output *output)
{
	return (output->is_circular ? CIRCULAR_BYTES : FOOTER_BYTES + output->ending_bytes) + (uint64_t)FOOTER_SEGMENT_BYTES * (output->segment_count + 1);
}

uint64_t output_room_left(const struct output *output)
{
	uint64_t used = output->end + footer_room(output);
	return !output->limit ? UINT64_MAX : used < output->limit ? output->limit - used : 0;
}

/* Make sure that the disk has room up to `end`. */
static int disk_room(struct output *output, uint64_t end)
{
	if (end <= output->allocated)
		return 0;
	uint64_t ahead = end + AHEAD_BYTES;
	if (output->limit && ahead > output->limit)
		ahead = end > output->limit ? end : output->limit;
	for (uint64_t to = ahead;; to = end) {
		if (!fallocate(output->fd, FALLOC_FL_KEEP_SIZE, (off_t)output->end, (off_t)(to - output->end))) {
			output->allocated = to;
			return 0;
		}
		if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) /* such a file system: the write will tell */
			return 0;
		if (to == end)
			return -errno;
	}
}

int output_room(struct output *output, uint64_t size)
{
	uint64_t end = output->end + size + footer_room(output);
	if (size > output_room_left(output))
		return -EFBIG;
	int error = disk_room(output, end);
	/* A circular file makes do with what the disk has. */
	if (error && output->is_circular && output->segment_count > 1 && !output->has_wrapped) {
		output->limit = output->allocated;
		return -EFBIG;
	}
	return error;
}

/* ---- writing ---- */

int output_skip(struct output *output, uint64_t at, uint64_t to, uint64_t segment_offset)
{
	uint8_t skip[SKIP_BYTES];
	struct format_skip head = {.bytes = to - at - SKIP_BYTES};
	struct format_block block = {.magic = FORMAT_BLOCK_MAGIC, .type = FORMAT_SKIP, .head_bytes = sizeof(head),
				     .place = at - segment_offset, .payload_checksum = XXH3_64bits("", 0)};
	if (to - at < SKIP_BYTES)
		return -ENOSPC;
	format_sign(&block, &head);
	memcpy(skip, &block, sizeof(block));
	memcpy(skip + sizeof(block), &head, sizeof(head));
	if (!file_write(output->fd, skip, sizeof(skip), at))
		return -errno;
	if (output->size < at + sizeof(skip))
		output->size = at + sizeof(skip);
	return 0;
}

/* Behind what is written: how far it is to the next segment that is whole. */
static int skip_remains(struct output *output, uint64_t at)
{
	const struct output_segment *oldest = &output->segments[0];
	bool is_ahead = output->segment_count > 1 && oldest->offset >= at;
	uint64_t to = is_ahead ? oldest->offset : output->size > at + SKIP_BYTES ? output->size : at + SKIP_BYTES;
	return output_skip(output, at, to, output->segments[output->segment_count - 1].offset);
}

int output_write(struct output *output, const void *data, size_t size)
{
	uint64_t end = output->end + size;
	if (output->has_wrapped)
		drop_segments(output, end + SKIP_BYTES);
	int error = file_write(output->fd, data, size, output->end) ? 0 : -errno;
	if (!error && output->has_wrapped)
		error = skip_remains(output, end);
	if (error) {
		/* Best effort: a reader passes over what is torn. */
		if (!output->has_wrapped && ftruncate(output->fd, (off_t)output->end) == 0)
			output->allocated = 0;
		return error;
	}
	output->end = end;
	if (output->size < end)
		output->size = end;
	return 0;
}

int output_wrap(struct output *output)
{
	/* What lies behind is the oldest. */
	drop_segments(output, output->limit);
	int error = output->has_wrapped && output->segment_count ? skip_remains(output, output->end) : 0;
	output->end = FORMAT_HEADER_BYTES;
	output->has_wrapped = true;
	return error;
}

int output_close(struct output *output)
{
	struct stat status;
	int error = 0;
	if (!fstat(output->fd, &status) && S_ISREG(status.st_mode) && ftruncate(output->fd, (off_t)output->size))
		error = -errno;
	if (close(output->fd) && !error)
		error = -errno;
	output->fd = -1;
	return error;
}
