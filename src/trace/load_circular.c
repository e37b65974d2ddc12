/* SPDX-License-Identifier: MIT */
#include "trace/load_circular.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cancel.h"
#include "base/file.h"
#include "base/order.h"
#include "trace/load_blocks.h"
#include "trace/load_parts.h"

enum { COPY_BYTES_MAX = 64 << 20, COPY_TRIES = 20, PAUSE_NS = 2000000, TICK_NS = 20000000 };
#define NS_PER_S INT64_C(1000000000)

/* The place of a segment in a circular file. */
struct range {
	uint64_t offset, end;
	uint32_t number;
};

COMPARE_BY(range_compare, struct range, number)

struct ranges {
	struct range *rows;
	uint32_t count, capacity;
};

/* Note where a segment begins, or how far the one before goes. Return where the next block lies, which for a SKIP may
 * be behind the end of a file that was cut; 0: no memory. */
static uint64_t range_note(struct ranges *ranges, const struct load_found *found)
{
	struct format_segment segment;
	struct format_skip skip;
	uint64_t end = load_found_end(found);
	if (found->block.type == FORMAT_SEGMENT && found->block.head_bytes >= sizeof(segment)) {
		if (!load_grow(ranges->rows, ranges->count, ranges->capacity))
			return 0;
		memcpy(&segment, found->head, sizeof(segment));
		ranges->rows[ranges->count++] = (struct range){found->offset, end, segment.number};
	} else if (found->block.type == FORMAT_SKIP && found->block.head_bytes >= sizeof(skip)) {
		memcpy(&skip, found->head, sizeof(skip));
		return skip.bytes < INT64_MAX - end ? end + skip.bytes : INT64_MAX;
	} else if (ranges->count) {
		ranges->rows[ranges->count - 1].end = end;
	}
	return end;
}

/* Note how far the damaged part goes: to the next segment behind it, or to the end of the file. */
static void hole_note(struct load *load, const struct ranges *ranges)
{
	uint64_t end = load->size;
	for (uint32_t i = 0; i < ranges->count; i++)
		if (ranges->rows[i].offset > load->cut_offset && ranges->rows[i].offset < end)
			end = ranges->rows[i].offset;
	if (end < load->size)
		load->hole_end = end;
	else
		load->end = load->cut_offset;
}

/* The block at this offset, if it is whole and of the segment before it: remains have blocks, too. */
static bool find_in_place(struct load *load, const struct ranges *ranges, uint64_t offset, struct load_found *found)
{
	if (!load_find_block(load, offset, found))
		return false;
	bool has_segment = found->block.type != FORMAT_SEGMENT && ranges->count;
	return found->block.type == FORMAT_SKIP ||
	       found->block.place == (has_segment ? offset - ranges->rows[ranges->count - 1].offset : 0) ||
	       load_cut(load, offset, "the block at offset %llu does not belong there", (unsigned long long)offset);
}

/* Find the places of segments. Return the end of the last block; 0: no memory. */
static uint64_t find_ranges(struct load *load, struct ranges *ranges, uint64_t offset)
{
	struct load_found found;
	while (offset && offset < load->size)
		/* A SKIP must have room over what is torn. */
		offset = find_in_place(load, ranges, offset, &found)
				 ? range_note(ranges, &found)
				 : load_search_segment(load, offset + sizeof(struct format_block) +
								     sizeof(struct format_skip));
	return offset;
}

static bool is_whole(struct load *load, uint64_t offset, struct load_found *found)
{
	struct reading reading;
	return load_find_block(load, offset, found) && load_read_payload(load, found, &reading);
}

static bool is_ended(struct load *load, const struct range *range)
{
	struct load_found found = {.block.type = FORMAT_SEGMENT};
	for (uint64_t at = range->offset; at < range->end && load_find_block(load, at, &found);
	     at = load_found_end(&found))
		continue;
	return found.block.type == FORMAT_FOOTER;
}

/* The last write to the newest segment may be torn within a payload, and remains behind it may look right: until the
 * segment has ended, all its payloads are read. The first one that is not whole ends the segment. */
static void check_newest(struct load *load, struct range *newest)
{
	struct load_found found;
	uint64_t at = newest->offset;
	if (is_ended(load, newest))
		return;
	while (at < newest->end && is_whole(load, at, &found))
		at = load_found_end(&found);
	if (at < newest->end) {
		/* A later failure that was noted is a consequence of this one: clear it. */
		load->cut_reason[0] = 0;
		is_whole(load, at, &found);
		newest->end = at;
	}
	load->wasted = 0;
}

void load_walk_circular(struct load *load, uint64_t offset)
{
	struct ranges ranges = {NULL, 0, 0};
	errno = 0;
	uint64_t end = find_ranges(load, &ranges, offset);
	load->lacks_memory |= !end || errno == ENOMEM;
	if (!end)
		load_cut(load, load->size, "no memory for the segments of the file");
	if (ranges.count) {
		qsort(ranges.rows, ranges.count, sizeof(*ranges.rows), range_compare);
		errno = 0;
		check_newest(load, &ranges.rows[ranges.count - 1]);
		load->lacks_memory |= errno == ENOMEM;
	}
	for (uint32_t i = 0; i < ranges.count; i++)
		load_walk(load, ranges.rows[i].offset, ranges.rows[i].end);
	/* Nothing may be written below a SKIP. */
	load->end = end > load->size ? end : load->size;
	if (load->cut_reason[0])
		hole_note(load, &ranges);
	free(ranges.rows);
}

/* ---- circular files that are written meanwhile ---- */

/* Take a copy, in memory, of a file that is not too large. Return its descriptor, or -1. */
static int copy_take(int file)
{
	struct stat status;
	int copy = fstat(file, &status) == 0 && status.st_size <= COPY_BYTES_MAX
			   ? memfd_create("xheap-trace", MFD_CLOEXEC)
			   : -1;
	if (copy >= 0 && (lseek(file, 0, SEEK_SET) != 0 || !file_copy(copy, file))) {
		close(copy);
		copy = -1;
	}
	return copy;
}

/* Whether the checksum of each event block's payload is right: those of all other blocks were found right when they
   were read. */
static bool events_are_whole(struct load *load)
{
	bool are_whole = true;
	for (uint32_t i = 0; i < load->block_count && are_whole && !cancel_is_asked(load->is_cancelled); i++) {
		const struct load_block *block = &load->blocks[i];
		uint64_t at = block->offset + sizeof(struct format_block) + block->head_bytes;
		load->scratch.size = 0;
		are_whole = bytes_reserve(&load->scratch, block->payload_bytes + 1) &&
			    load_bytes(load->fd, load->scratch.data, block->payload_bytes, at) &&
			    XXH3_64bits(load->scratch.data, block->payload_bytes) == block->payload_checksum;
	}
	return are_whole;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Whether nobody has written to the file since then: the kernel dates writes by a clock that goes by ticks. */
static bool is_still_since(int file, int64_t since_ns)
{
	struct stat status;
	return fstat(file, &status) != 0 ||
	       status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec < since_ns - TICK_NS;
}

/* Begin again, with a copy of the file or, where there is none, with the file. 0, or a negative errno. */
static int load_again(struct load *load, int fd, const struct format_header *header, const char *path,
		      struct diag *diag)
{
	struct stat status;
	load_clear(load);
	*load = (struct load){.fd = fd, .keeps_ticks = load->keeps_ticks, .is_cancelled = load->is_cancelled};
	if (fstat(fd, &status) == 0)
		load->size = (uint64_t)status.st_size;
	if (!load_begin(load, header))
		return diag_fail(diag, ENOMEM, "no memory to read %s", path);
	load_walk_circular(load, header->header_bytes);
	return 0;
}

/*
 * A circular file that has no end may be overwritten while it is read. What is read of it then may be of several
 * moments: blocks do not follow each other, or are not there any more when their events are asked for. So read a copy,
 * which stays as it is, and take another one where the copy is torn. What is damaged and no longer written is as it is.
 * A file that is too large for a copy is read where it is.
 */
int load_read_overwritten(struct load *load, const struct format_header *header, const char *path, struct diag *diag)
{
	int file = load->fd, error = 0;
	bool is_done = false;
	for (unsigned tries = 1; !is_done; tries++) {
		int64_t began_ns = now_ns();
		int copy = copy_take(file);
		error = load_again(load, copy >= 0 ? copy : file, header, path, diag);
		bool is_whole = !error && !load->cut_reason[0] && (copy < 0 || events_are_whole(load));
		is_done = is_whole || error || load->lacks_memory || tries == COPY_TRIES ||
			  cancel_is_asked(load->is_cancelled) || is_still_since(file, began_ns);
		if (is_done)
			break;
		if (copy >= 0)
			close(copy);
		load->fd = file;
		nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
	}
	if (load->fd != file)
		close(file);
	return error;
}
