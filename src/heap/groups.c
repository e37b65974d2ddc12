/* SPDX-License-Identifier: MIT */
#include "heap/groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/memory.h"

/* ---- the file ---- */

static int nameless_file(void)
{
	int fd = memfd_create("xheap", MFD_CLOEXEC);
	FILE *file = fd < 0 ? tmpfile() : NULL;
	if (file) {
		fd = dup(fileno(file));
		fclose(file);
	}
	return fd;
}

static bool write_whole(int fd, const uint8_t *data, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t written = pwrite(fd, data, size, (off_t)offset);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			errno = written ? errno : EIO;
			return false;
		}
		data += written;
		size -= (size_t)written;
		offset += (uint64_t)written;
	}
	return true;
}

/* Bytes that are there, up to `size`. */
static size_t read_most(int fd, uint8_t *data, size_t size, uint64_t offset)
{
	size_t got = 0;
	while (got < size) {
		ssize_t part = pread(fd, data + got, size - got, (off_t)(offset + got));
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			break;
		got += (size_t)part;
	}
	return got;
}

/* Without a file there is no table: what could be written goes to memory, and the rest, too. */
static void move_to_memory(struct heap_groups *groups)
{
	int from = groups->fd, error = errno; /* of the write that failed */
	uint8_t *copy = memory_resize(NULL, GROUPS_CHUNK_BYTES, 1);
	groups->fd = nameless_file();
	groups->error = error ? error : EIO;
	for (uint64_t at = 0; from >= 0 && groups->fd >= 0 && at < groups->end; at += GROUPS_CHUNK_BYTES)
		if (!write_whole(groups->fd, copy, read_most(from, copy, GROUPS_CHUNK_BYTES, at), at))
			memory_exhausted(groups->end);
	if (groups->fd < 0)
		memory_exhausted(groups->end);
	free(copy);
	if (from >= 0)
		close(from);
}

void groups_begin(struct heap_groups *groups, int fd, uint64_t end)
{
	*groups = (struct heap_groups){.fd = fd, .end = end};
	if (fd >= 0)
		return;
	groups->fd = nameless_file();
	if (groups->fd < 0)
		memory_exhausted(0);
}

/* ---- writing ---- */

static void chunk_write(struct heap_groups *groups, struct groups_chunk *chunk)
{
	const struct bytes *bytes = &chunk->bytes;
	if (bytes->has_failed)
		memory_exhausted(bytes->size);
	if (!write_whole(groups->fd, bytes->data, bytes->size, chunk->offset)) {
		move_to_memory(groups);
		if (!write_whole(groups->fd, bytes->data, bytes->size, chunk->offset))
			memory_exhausted(bytes->size);
	}
	chunk->bytes.size = 0;
}

/* Add what is packed; where it will lie. */
static uint64_t chunk_add(struct heap_groups *groups, struct groups_chunk *chunk, uint32_t *checksum)
{
	const struct bytes *packed = &groups->packed;
	if (packed->has_failed)
		memory_exhausted(packed->size);
	if (chunk->bytes.size && chunk->bytes.size + packed->size > GROUPS_CHUNK_BYTES)
		chunk_write(groups, chunk);
	if (!chunk->bytes.size) {
		chunk->offset = groups->end;
		groups->end += packed->size > GROUPS_CHUNK_BYTES ? packed->size : GROUPS_CHUNK_BYTES;
	}
	uint64_t offset = chunk->offset + chunk->bytes.size;
	bytes_add(&chunk->bytes, packed->data, packed->size);
	*checksum = (uint32_t)XXH3_64bits(packed->data, packed->size);
	return offset;
}

static void group_times(struct heap_group *group, const struct heap_allocation *allocations, uint32_t count)
{
	group->first_ns = INT64_MAX;
	group->last_ns = group->end_ns = INT64_MIN;
	for (uint32_t i = 0; i < count; i++) {
		const struct heap_allocation *row = &allocations[i];
		bool is_earlier = row->flags & HEAP_EARLIER;
		int64_t first_ns = is_earlier ? INT64_MIN : row->birth_ns, last_ns = is_earlier ? INT64_MAX : row->birth_ns;
			group->first_ns = first_ns < group->first_ns ? first_ns : group->first_ns;
		group->last_ns = last_ns > group->last_ns ? last_ns : group->last_ns;
		if (row->end == HEAP_END_OPEN)
			group->open_count++;
		else if (row->end_ns > group->end_ns)
			group->end_ns = row->end_ns;
	}
}

void groups_add(struct heap_groups *groups, const struct heap_allocation *allocations, const struct heap_details *details, uint32_t first, uint32_t count)
{
	memory_grow(groups->items, groups->count, groups->capacity);
	struct heap_group *group = &groups->items[groups->count++];
	*group = (struct heap_group){.open_count = 0};
	group_times(group, allocations, count);
	groups->packed.size = 0;
	pack_rows(&groups->packed, allocations, count);
	group->rows_offset = chunk_add(groups, &groups->rows, &group->rows_checksum);
	group->rows_bytes = (uint32_t)groups->packed.size;
	groups->packed.size = 0;
	pack_details(&groups->packed, allocations, details, first, count);
	group->details_offset = chunk_add(groups, &groups->details, &group->details_checksum);
	group->details_bytes = (uint32_t)groups->packed.size;
}

static void groups_fini_writing(struct heap_groups *groups)
{
	bytes_fini(&groups->rows.bytes);
	bytes_fini(&groups->details.bytes);
	bytes_fini(&groups->packed);
	bytes_fini(&groups->ends);
}

/* They come in any order of the groups, and are read in that of the groups: so they wait. */
void groups_add_ends(struct heap_groups *groups, uint32_t at, const struct heap_allocation *allocations, const struct pack_end *ends, uint32_t count)
{
	struct heap_group *group = &groups->items[at];
	group->ends_offset = groups->ends.size;
	group->end_count = count;
	pack_ends(&groups->ends, allocations, ends, count);
	group->ends_bytes = (uint32_t)(groups->ends.size - group->ends_offset);
	for (uint32_t i = 0; i < count; i++) {
		group->open_count -= ends[i].end != HEAP_END_OPEN;
		if (ends[i].end != HEAP_END_OPEN && ends[i].end_ns > group->end_ns)
			group->end_ns = ends[i].end_ns;
	}
}

void groups_finish(struct heap_groups *groups)
{
	if (groups->ends.has_failed)
		memory_exhausted(groups->ends.size);
	for (uint32_t i = 0; i < groups->count; i++) {
		struct heap_group *group = &groups->items[i];
		if (group->open_count)
			group->end_ns = INT64_MAX;
		if (!group->end_count)
			continue;
		groups->packed.size = 0;
		bytes_add(&groups->packed, groups->ends.data + group->ends_offset, group->ends_bytes);
		group->ends_offset = chunk_add(groups, &groups->rows, &group->ends_checksum);
	}
	chunk_write(groups, &groups->rows);
	chunk_write(groups, &groups->details);
	groups_fini_writing(groups);
}

void groups_fini(struct heap_groups *groups)
{
	groups_fini_writing(groups);
	if (groups->fd >= 0)
		close(groups->fd);
	free(groups->items);
	*groups = (struct heap_groups){.fd = -1};
}

/* ---- reading ---- */

/* `size` bytes at `offset`, and PACK_SLACK_BYTES behind them; NULL when they are not there or not what was written. */
static const uint8_t *window_get(struct groups_window *window, const struct heap_groups *groups, uint64_t offset, size_t size, uint32_t checksum)
{
	if (size > GROUPS_CHUNK_BYTES || offset > INT64_MAX - GROUPS_CHUNK_BYTES)
		return NULL;
	if (offset < window->offset || offset - window->offset > window->size || window->size - (offset - window->offset) < size) {
		if (!window->data)
			window->data = memory_zeroed(GROUPS_CHUNK_BYTES + PACK_SLACK_BYTES, 1);
		window->offset = offset;
		window->size = read_most(groups->fd, window->data, GROUPS_CHUNK_BYTES, offset);
		if (window->size < size)
			return NULL;
	}
	const uint8_t *at = window->data + (offset - window->offset);
	return (uint32_t)XXH3_64bits(at, size) == checksum ? at : NULL;
}

bool groups_read(struct groups_reader *reader, const struct heap_groups *groups, uint32_t at, uint32_t first, uint32_t count,
		 const struct pack_limits *limits, bool is_whole, struct heap_allocation *allocations, struct heap_details *details)
{
	const struct heap_group *group = &groups->items[at];
	const uint8_t *data = window_get(&reader->rows, groups, group->rows_offset, group->rows_bytes, group->rows_checksum);
	if (!data || !unpack_rows(data, group->rows_bytes, allocations, count, limits, is_whole))
		return false;
	if (details) {
		data = window_get(&reader->details, groups, group->details_offset, group->details_bytes, group->details_checksum);
		if (!data || !unpack_details(data, group->details_bytes, allocations, details, first, count, limits))
			return false;
	}
	if (!group->end_count)
		return true;
	data = window_get(&reader->ends, groups, group->ends_offset, group->ends_bytes, group->ends_checksum);
	return data && unpack_ends(data, group->ends_bytes, allocations, details, count, group->end_count, limits);
}

void groups_reader_fini(struct groups_reader *reader)
{
	free(reader->rows.data);
	free(reader->details.data);
	free(reader->ends.data);
	*reader = (struct groups_reader){.rows = {NULL, 0, 0}};
}
