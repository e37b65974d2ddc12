/* SPDX-License-Identifier: MIT */
#include "table/groups.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/memory.h"

/* ---- the file ---- */

static void memory_add(struct heap_groups *groups, const uint8_t *data, size_t size)
{
	bytes_add(&groups->memory, data, size);
	/* Unpacking may read a little beyond the end. */
	if (!bytes_reserve(&groups->memory, PACK_SLACK_BYTES))
		memory_exhausted(size);
}

/* Move the groups to memory: without its file there would be no table. Both the written part and the rest go there. */
static void move_to_memory(struct heap_groups *groups)
{
	assert(groups->fd >= 0);
	int from = groups->fd, error = errno; /* of the write that failed */
	uint8_t *copy = memory_resize(NULL, GROUPS_CHUNK_BYTES, 1);
	groups->fd = -1;
	groups->error = error ? error : EIO;
	for (uint64_t at = 0; at < groups->end;) {
		size_t size = groups->end - at < GROUPS_CHUNK_BYTES ? (size_t)(groups->end - at) : GROUPS_CHUNK_BYTES;
		/* The part that is kept free at the beginning is not written yet. */
		memset(copy, 0, size);
		file_read(from, copy, size, at);
		memory_add(groups, copy, size);
		at += size;
	}
	free(copy);
	close(from);
}

void groups_begin(struct heap_groups *groups, int fd, uint64_t end)
{
	*groups = (struct heap_groups){.fd = fd, .end = fd < 0 ? 0 : end};
}

/* ---- writing ---- */

/* Write bytes at the end of the file. */
static void write_bytes(struct heap_groups *groups, const struct bytes *bytes)
{
	if (bytes->has_failed)
		memory_exhausted(bytes->size);
	if (groups->fd >= 0 && !file_write(groups->fd, bytes->data, bytes->size, groups->end))
		move_to_memory(groups);
	if (groups->fd < 0)
		memory_add(groups, bytes->data, bytes->size);
	groups->end += bytes->size;
}

static void rows_write(struct heap_groups *groups)
{
	assert(groups->rows.first <= groups->count);
	for (uint32_t i = groups->rows.first; i < groups->count; i++)
		groups->items[i].rows_offset += groups->end;
	write_bytes(groups, &groups->rows.bytes);
	groups->rows.bytes.size = 0;
	groups->rows.first = groups->count;
}

static void details_write(struct heap_groups *groups)
{
	assert(groups->details.first <= groups->count);
	for (uint32_t i = groups->details.first; i < groups->count; i++)
		groups->items[i].details_offset += groups->end;
	write_bytes(groups, &groups->details.bytes);
	groups->details.bytes.size = 0;
	groups->details.first = groups->count;
}

static uint32_t checksum_of(const struct bytes *bytes, uint64_t offset)
{
	return bytes->has_failed ? 0 : (uint32_t)XXH3_64bits(bytes->data + offset, bytes->size - offset);
}

static void group_times(struct heap_group *group, const struct heap_allocation *allocations, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct heap_allocation *row = &allocations[i];
		bool is_earlier = row->flags & HEAP_EARLIER;
		int64_t first_ns = is_earlier ? INT64_MIN : row->birth_ns,
			last_ns = is_earlier ? INT64_MAX : row->birth_ns;
		group->first_ns = first_ns < group->first_ns ? first_ns : group->first_ns;
		group->last_ns = last_ns > group->last_ns ? last_ns : group->last_ns;
		if (row->end == HEAP_END_OPEN)
			group->open_count++;
		else if (row->end_ns > group->end_ns)
			group->end_ns = row->end_ns;
	}
}

void groups_pack(struct groups_packed *packed, const struct heap_allocation *allocations,
		 const struct heap_details *details, uint32_t first, uint32_t count)
{
	assert(count > 0 && count <= PACK_ROWS);
	memory_grow(packed->items, packed->count, packed->capacity);
	struct heap_group *group = &packed->items[packed->count++];
	*group = (struct heap_group){.rows_offset = packed->rows.size,
				     .details_offset = packed->details.size,
				     .first_ns = INT64_MAX,
				     .last_ns = INT64_MIN,
				     .end_ns = INT64_MIN};
	group_times(group, allocations, count);
	pack_rows(&packed->rows, allocations, count);
	group->rows_bytes = (uint32_t)(packed->rows.size - group->rows_offset);
	group->rows_checksum = checksum_of(&packed->rows, group->rows_offset);
	pack_details(&packed->details, allocations, details, first, count);
	group->details_bytes = (uint32_t)(packed->details.size - group->details_offset);
	group->details_checksum = checksum_of(&packed->details, group->details_offset);
}

void groups_packed_clear(struct groups_packed *packed)
{
	packed->rows.size = packed->details.size = 0;
	packed->count = 0;
}

void groups_packed_fini(struct groups_packed *packed)
{
	bytes_fini(&packed->rows);
	bytes_fini(&packed->details);
	free(packed->items);
	*packed = (struct groups_packed){0};
}

static struct heap_group *group_reserve(struct heap_groups *groups, uint32_t at)
{
	while (groups->reserved <= at) {
		memory_grow(groups->items, groups->reserved, groups->capacity);
		groups->items[groups->reserved++] = (struct heap_group){.end_ns = INT64_MIN};
	}
	return &groups->items[at];
}

/* Append a group, whose ends may have come before it. */
static void group_append(struct heap_groups *groups, const struct heap_group *packed)
{
	struct heap_group *group = group_reserve(groups, groups->count), ends = *group;
	*group = *packed;
	group->rows_offset += groups->rows.bytes.size;
	group->details_offset += groups->details.bytes.size;
	group->ends_offset = ends.ends_offset;
	group->ends_bytes = ends.ends_bytes;
	group->end_count = ends.end_count;
	group->open_count += ends.open_count;
	group->end_ns = packed->end_ns > ends.end_ns ? packed->end_ns : ends.end_ns;
	groups->count++;
}

void groups_append(struct heap_groups *groups, const struct groups_packed *packed)
{
	if (packed->rows.has_failed || packed->details.has_failed)
		memory_exhausted(packed->rows.size);
	for (uint32_t i = 0; i < packed->count; i++)
		group_append(groups, &packed->items[i]);
	bytes_add(&groups->rows.bytes, packed->rows.data, packed->rows.size);
	bytes_add(&groups->details.bytes, packed->details.data, packed->details.size);
	if (groups->rows.bytes.size >= GROUPS_CHUNK_BYTES)
		rows_write(groups);
	if (groups->details.bytes.size >= GROUPS_CHUNK_BYTES)
		details_write(groups);
}

void groups_add(struct heap_groups *groups, const struct heap_allocation *allocations,
		const struct heap_details *details, uint32_t first, uint32_t count)
{
	groups_packed_clear(&groups->one);
	groups_pack(&groups->one, allocations, details, first, count);
	groups_append(groups, &groups->one);
}

static void groups_fini_writing(struct heap_groups *groups)
{
	bytes_fini(&groups->rows.bytes);
	bytes_fini(&groups->details.bytes);
	bytes_fini(&groups->ends);
	groups_packed_fini(&groups->one);
}

/* They come in any order of the groups, and are read in that of the groups: so they wait. */
void groups_add_ends(struct heap_groups *groups, uint32_t at, const struct heap_allocation *allocations,
		     const struct pack_end *ends, uint32_t count)
{
	struct heap_group *group = group_reserve(groups, at);
	assert(count > 0 && count <= PACK_ROWS && !group->end_count);
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
	struct bytes ordered = {0};
	rows_write(groups);
	details_write(groups);
	if (groups->ends.has_failed)
		memory_exhausted(groups->ends.size);
	for (uint32_t i = 0; i < groups->count; i++) {
		struct heap_group *group = &groups->items[i];
		assert(group->open_count <= PACK_ROWS);
		if (group->open_count)
			group->end_ns = INT64_MAX;
		if (!group->end_count)
			continue;
		const uint8_t *from = groups->ends.data + group->ends_offset;
		group->ends_checksum = (uint32_t)XXH3_64bits(from, group->ends_bytes);
		group->ends_offset = groups->end + ordered.size;
		bytes_add(&ordered, from, group->ends_bytes);
	}
	write_bytes(groups, &ordered);
	bytes_fini(&ordered);
	groups_fini_writing(groups);
}

void groups_fini(struct heap_groups *groups)
{
	groups_fini_writing(groups);
	bytes_fini(&groups->memory);
	if (groups->fd >= 0)
		close(groups->fd);
	free(groups->items);
	*groups = (struct heap_groups){.fd = -1};
}

/* ---- reading ---- */

enum { WINDOW_FIRST_BYTES = 8 << 10 };

/* Return `size` bytes at `offset`, readable for PACK_SLACK_BYTES more; NULL if they do not exist or fail the
   checksum. */
static const uint8_t *window_get(struct groups_window *window, const struct heap_groups *groups, uint64_t offset,
				 size_t size, uint32_t checksum)
{
	if (groups->fd < 0)
		return groups->memory.data + offset;
	if (!size || size > GROUPS_CHUNK_BYTES || offset > INT64_MAX - GROUPS_CHUNK_BYTES)
		return NULL;
	if (offset < window->offset || offset - window->offset > window->size ||
	    window->size - (offset - window->offset) < size) {
		/* One group after the other is read far ahead, a few here and there are not. */
		bool is_next = window->size && offset >= window->offset && offset <= window->offset + window->size;
		window->ahead = is_next ? window->ahead * 2 : WINDOW_FIRST_BYTES;
		window->ahead = window->ahead < GROUPS_CHUNK_BYTES ? window->ahead : GROUPS_CHUNK_BYTES;
		if (!window->data)
			window->data = memory_zeroed(GROUPS_CHUNK_BYTES + PACK_SLACK_BYTES, 1);
		window->offset = offset;
		window->size = file_read(groups->fd, window->data, window->ahead > size ? window->ahead : size, offset);
		if (window->size < size)
			return NULL;
	}
	const uint8_t *at = window->data + (offset - window->offset);
	return (uint32_t)XXH3_64bits(at, size) == checksum ? at : NULL;
}

bool groups_read(struct groups_reader *reader, const struct heap_groups *groups, uint32_t at, uint32_t first,
		 uint32_t count, const struct pack_limits *limits, unsigned wanted, struct pack_columns *columns,
		 struct heap_details *details)
{
	assert(at < groups->count);
	assert(count <= PACK_ROWS);
	const struct heap_group *group = &groups->items[at];
	const uint8_t *data =
		window_get(&reader->rows, groups, group->rows_offset, group->rows_bytes, group->rows_checksum);
	if (!data || !unpack_rows(data, group->rows_bytes, columns, count, limits, wanted))
		return false;
	bool has_details = (wanted & PACK_DETAILS) == PACK_DETAILS;
	if (has_details) {
		data = window_get(&reader->details, groups, group->details_offset, group->details_bytes,
				  group->details_checksum);
		if (!data || !unpack_details(data, group->details_bytes, columns, details, first, count, limits))
			return false;
	}
	if (!group->end_count)
		return true;
	data = window_get(&reader->ends, groups, group->ends_offset, group->ends_bytes, group->ends_checksum);
	return data && unpack_ends(data, group->ends_bytes, columns, has_details ? details : NULL, count,
				   group->end_count, limits);
}

void groups_reader_fini(struct groups_reader *reader)
{
	free(reader->rows.data);
	free(reader->details.data);
	free(reader->ends.data);
	*reader = (struct groups_reader){.rows = {.data = NULL}};
}
