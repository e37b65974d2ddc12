/* SPDX-License-Identifier: MIT */
/*
 * A circular file:
 *
 *     | header | segment 9 | SKIP  (remains)| segment 6 | segment 7 | segment 8 | SKIP |
 *                          ^ end                                                 size ^
 *
 * What is written next overwrites segment 6, which is dropped by then. Up to the first time round it is a file like any
 * other.
 *
 * The writer may be killed between any two writes, and a reader may come then. So a write has four steps:
 *
 *     1. the SKIP at the end goes on to the oldest segment that stays; from now on no reader sees those that are
 *     dropped; 2. the SKIP behind the new bytes, and 3. all of the new bytes but the first ones, come below that SKIP;
 *     4. the first bytes take the place of the SKIP, which has as many.
 *
 * Remains have no whole head of a segment, so a search behind damage finds no segment that was dropped.
 */
#include "trace/file_output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/grow.h"
#include "trace/format.h"

enum {
	/* allocated ahead of the end, so that the footer fits on a full disk: as much as the file has, within these
	   bounds */
	AHEAD_LEAST_BYTES = 1 << 16,
	AHEAD_MOST_BYTES = 1 << 22,
	FOOTER_BYTES = 2560, /* kept free for the end, and more for each segment and for rows of processes */
	/* in a circular file, which is full all the time, in place of both: one that is gone on with has room for a
	   block */
	CIRCULAR_BYTES = 1 << 13,
	FOOTER_SEGMENT_BYTES = 56,
	SKIP_BYTES = sizeof(struct format_block) + sizeof(struct format_skip)
};

bool output_add_segment(struct output *output)
{
	if (!grow_by_one(output->segments, output->segment_count, output->segment_capacity))
		return false;
	output->segments[output->segment_count++] = (struct output_segment){.first_ticks = UINT64_MAX};
	return true;
}

/* How many of the oldest segments begin between the end and `to`. The newest is never among them. */
static uint32_t count_ahead(const struct output *output, uint64_t to)
{
	uint32_t count = 0;
	while (count + 1 < output->segment_count && output->segments[count].offset >= output->end &&
	       output->segments[count].offset < to)
		count++;
	return count;
}

static void drop_segments(struct output *output, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		output->dropped_events += output->segments[i].events;
	output->segment_count -= count;
	output->first_number += count;
	memmove(output->segments, output->segments + count, output->segment_count * sizeof(*output->segments));
}

bool output_make_way(struct output *output, uint64_t size)
{
	uint32_t count = output->has_wrapped ? count_ahead(output, output->end + size + SKIP_BYTES) : 0;
	drop_segments(output, count);
	return count > 0;
}

/* ---- room ---- */

static uint64_t footer_room(const struct output *output)
{
	return (output->is_circular ? CIRCULAR_BYTES : FOOTER_BYTES + output->ending_bytes) +
	       (uint64_t)FOOTER_SEGMENT_BYTES * (output->segment_count + 1);
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
	uint64_t ahead = end + (end < AHEAD_LEAST_BYTES  ? AHEAD_LEAST_BYTES
				: end > AHEAD_MOST_BYTES ? AHEAD_MOST_BYTES
							 : end);
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
	output->is_full = size > output_room_left(output);
	if (output->is_full)
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
	struct format_block block = {.magic = FORMAT_BLOCK_MAGIC,
				     .type = FORMAT_SKIP,
				     .head_bytes = sizeof(head),
				     .place = at - segment_offset,
				     .payload_checksum = XXH3_64bits("", 0)};
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

/* From `at`, lead over remains up to the next segment that stays, or to the end of a file that gets `size` bytes. */
static int skip_remains(struct output *output, uint64_t at, uint64_t size)
{
	const struct output_segment *oldest = &output->segments[0];
	bool is_ahead = output->segment_count > 1 && oldest->offset >= at;
	uint64_t segment_offset = at;
	for (uint32_t i = 0; i < output->segment_count; i++)
		if (output->segments[i].offset < at)
			segment_offset = output->segments[i].offset;
	return output_skip(output, at, is_ahead ? oldest->offset : size, segment_offset);
}

/* The steps of a write over what was there before, as told at the top. */
static int write_over(struct output *output, const uint8_t *data, size_t size)
{
	uint64_t at = output->end, end = at + size,
		 file_size = output->size > end + SKIP_BYTES ? output->size : end + SKIP_BYTES;
	assert(size >= SKIP_BYTES);
	output_make_way(output, size);
	int error = skip_remains(output, at, file_size);
	error = error ? error : skip_remains(output, end, file_size);
	if (!error && (!file_write(output->fd, data + SKIP_BYTES, size - SKIP_BYTES, at + SKIP_BYTES) ||
		       !file_write(output->fd, data, SKIP_BYTES, at)))
		error = -errno;
	return error;
}

/* Write behind all that there is. */
static int write_behind(struct output *output, const void *data, size_t size)
{
	if (file_write(output->fd, data, size, output->end))
		return 0;
	int error = -errno;
	/* Best effort: a reader passes over what is torn. */
	if (ftruncate(output->fd, (off_t)output->end) == 0)
		output->allocated = 0;
	return error;
}

int output_write(struct output *output, const void *data, size_t size)
{
	int error = !size ? 0 : output->has_wrapped ? write_over(output, data, size) : write_behind(output, data, size);
	if (error)
		return error;
	output->end += size;
	if (output->size < output->end)
		output->size = output->end;
	return 0;
}

/* The SKIP before them leads over these segments for good: no search may find their heads. */
static int void_heads(struct output *output, uint32_t count)
{
	static const uint8_t none[sizeof(struct format_block)];
	bool is_written = true;
	for (uint32_t i = 0; i < count && is_written; i++)
		if (output->segments[i].offset >= output->end + SKIP_BYTES)
			is_written = file_write(output->fd, none, sizeof(none), output->segments[i].offset);
	return is_written ? 0 : -errno;
}

int output_wrap(struct output *output)
{
	/* The bytes behind this place are the oldest. */
	uint32_t count = count_ahead(output, output->limit);
	int error = 0;
	if (output->has_wrapped && output->segment_count)
		error = output_skip(output, output->end, output->size,
				    output->segments[output->segment_count - 1].offset);
	error = error ? error : void_heads(output, count);
	drop_segments(output, count);
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
