/* SPDX-License-Identifier: MIT */
#include "table/groups.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
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
	*groups = (struct heap_groups){.fd = fd, .chunk_bytes = GROUPS_CHUNK_BYTES, .end = fd < 0 ? 0 : end};
}

/* ---- writing ---- */

/* Write bytes at the end of the file. */
static void write_bytes(struct heap_groups *groups, const struct bytes *bytes)
{
	if (bytes->has_failed)
		memory_exhausted(bytes->size);
	if (groups->fd >= 0 && !groups->error && !file_write(groups->fd, bytes->data, bytes->size, groups->end)) {
		if (groups->is_borrowed)
			groups->error = errno ? errno : EIO;
		else
			move_to_memory(groups);
	}
	if (groups->fd < 0)
		memory_add(groups, bytes->data, bytes->size);
	groups->end += bytes->size;
}

/* Write the whole strips of a column. */
static void column_write(struct heap_groups *groups, enum pack_column number)
{
	struct groups_column *column = &groups->columns[number];
	assert(column->begun == column->bytes.size && column->first <= groups->strip_count);
	for (uint32_t i = column->first; i < groups->strip_count; i++)
		groups->strips[i].of[number].offset += groups->end;
	write_bytes(groups, &column->bytes);
	column->bytes.size = column->begun = 0;
	column->first = groups->strip_count;
}

/* The strips of the last groups are whole. */
static void strips_close(struct heap_groups *groups)
{
	memory_grow(groups->strips, groups->strip_count, groups->strip_capacity);
	struct heap_strips *strips = &groups->strips[groups->strip_count++];
	for (unsigned i = 0; i < PACK_STRIPS; i++) {
		struct groups_column *column = &groups->columns[i];
		size_t size = column->bytes.size - column->begun;
		if (column->bytes.has_failed)
			memory_exhausted(column->bytes.size);
		strips->of[i] =
			(struct heap_strip){column->begun, (uint32_t)size,
					    size ? (uint32_t)XXH3_64bits(column->bytes.data + column->begun, size) : 0};
		column->begun = column->bytes.size;
		if (column->begun >= groups->chunk_bytes && i != PACK_LATE_ENDS)
			column_write(groups, (enum pack_column)i);
	}
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
	struct packed_group *item = &packed->items[packed->count++];
	item->group = (struct heap_group){
		.row_count = (uint16_t)count, .first_ns = INT64_MAX, .last_ns = INT64_MIN, .end_ns = INT64_MIN};
	group_times(&item->group, allocations, count);
	pack_rows(packed->strips, allocations, count);
	if (details)
		pack_details(packed->strips, allocations, details, first, count);
	for (unsigned i = 0; i < PACK_STRIPS; i++)
		item->ends[i] = packed->strips[i].size;
}

void groups_packed_clear(struct groups_packed *packed)
{
	for (unsigned i = 0; i < PACK_STRIPS; i++)
		packed->strips[i].size = 0;
	packed->count = 0;
}

void groups_packed_fini(struct groups_packed *packed)
{
	for (unsigned i = 0; i < PACK_STRIPS; i++)
		bytes_fini(&packed->strips[i]);
	free(packed->items);
	*packed = (struct groups_packed){.items = NULL};
}

static struct heap_group *group_reserve(struct heap_groups *groups, uint32_t at)
{
	while (groups->reserved <= at) {
		memory_grow(groups->items, groups->reserved, groups->capacity);
		memory_grow(groups->late, groups->reserved, groups->late_capacity);
		groups->late[groups->reserved] = (struct groups_late){0, 0};
		groups->items[groups->reserved++] = (struct heap_group){.end_ns = INT64_MIN};
	}
	return &groups->items[at];
}

/* Append a group, whose ends may have come before it. */
static void group_append(struct heap_groups *groups, const struct heap_group *packed)
{
	struct heap_group *group = group_reserve(groups, groups->count), ends = *group;
	*group = *packed;
	group->end_count = ends.end_count;
	group->open_count = (uint16_t)(group->open_count + ends.open_count);
	group->end_ns = packed->end_ns > ends.end_ns ? packed->end_ns : ends.end_ns;
	groups->count++;
}

/* Append the columns of packed groups, from number `first` up to, not with, `end`. */
static void columns_append(struct heap_groups *groups, const struct groups_packed *packed, uint32_t first, uint32_t end)
{
	for (unsigned i = 0; i < PACK_LATE_ENDS; i++) {
		size_t from = first ? packed->items[first - 1].ends[i] : 0, to = packed->items[end - 1].ends[i];
		if (packed->strips[i].has_failed)
			memory_exhausted(packed->strips[i].size);
		bytes_add(&groups->columns[i].bytes, packed->strips[i].data + from, to - from);
	}
}

void groups_append(struct heap_groups *groups, const struct groups_packed *packed)
{
	for (uint32_t first = 0, end; first < packed->count; first = end) {
		uint32_t room = GROUPS_PER_STRIP - groups->count % GROUPS_PER_STRIP, left = packed->count - first;
		end = first + (left < room ? left : room);
		columns_append(groups, packed, first, end);
		for (uint32_t i = first; i < end; i++)
			group_append(groups, &packed->items[i].group);
		if (groups->count % GROUPS_PER_STRIP == 0)
			strips_close(groups);
	}
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
	for (unsigned i = 0; i < PACK_STRIPS; i++)
		bytes_fini(&groups->columns[i].bytes);
	bytes_fini(&groups->ends);
	free(groups->late);
	groups->late = NULL;
	groups_packed_fini(&groups->one);
}

/* They come in any order of the groups, and are read in that of the groups: so they wait. */
void groups_add_ends(struct heap_groups *groups, uint32_t at, const struct heap_allocation *allocations,
		     const struct pack_end *ends, uint32_t count)
{
	struct heap_group *group = group_reserve(groups, at);
	assert(count > 0 && count <= PACK_ROWS && !group->end_count);
	struct groups_late *late = &groups->late[at];
	late->offset = groups->ends.size;
	group->end_count = (uint16_t)count;
	pack_ends(&groups->ends, allocations, ends, count);
	late->bytes = (uint32_t)(groups->ends.size - late->offset);
	for (uint32_t i = 0; i < count; i++) {
		group->open_count = (uint16_t)(group->open_count - (ends[i].end != HEAP_END_OPEN));
		if (ends[i].end != HEAP_END_OPEN && ends[i].end_ns > group->end_ns)
			group->end_ns = ends[i].end_ns;
	}
}

/* The late ends, in the order of the groups, are strips behind all others. */
static void ends_write(struct heap_groups *groups)
{
	struct groups_column *column = &groups->columns[PACK_LATE_ENDS];
	if (groups->ends.has_failed)
		memory_exhausted(groups->ends.size);
	column->bytes.size = 0;
	for (uint32_t strip = 0; strip < groups->strip_count; strip++) {
		size_t begin = column->bytes.size;
		for (uint32_t i = strip * GROUPS_PER_STRIP; i < groups->count && i < (strip + 1) * GROUPS_PER_STRIP;
		     i++)
			if (groups->items[i].end_count)
				bytes_add(&column->bytes, groups->ends.data + groups->late[i].offset,
					  groups->late[i].bytes);
		if (column->bytes.has_failed)
			memory_exhausted(column->bytes.size);
		size_t size = column->bytes.size - begin;
		groups->strips[strip].of[PACK_LATE_ENDS] = (struct heap_strip){
			begin, (uint32_t)size, size ? (uint32_t)XXH3_64bits(column->bytes.data + begin, size) : 0};
	}
	column->begun = column->bytes.size;
	column->first = 0;
	column_write(groups, PACK_LATE_ENDS);
}

void groups_finish(struct heap_groups *groups)
{
	if (groups->count % GROUPS_PER_STRIP)
		strips_close(groups);
	for (unsigned i = 0; i < PACK_LATE_ENDS; i++)
		column_write(groups, (enum pack_column)i);
	ends_write(groups);
	for (uint32_t i = 0; i < groups->count; i++) {
		assert(groups->items[i].open_count <= PACK_ROWS);
		if (groups->items[i].open_count)
			groups->items[i].end_ns = INT64_MAX;
	}
	groups_fini_writing(groups);
}

void groups_fini(struct heap_groups *groups)
{
	groups_fini_writing(groups);
	bytes_fini(&groups->memory);
	if (groups->fd >= 0 && !groups->is_borrowed)
		close(groups->fd);
	free(groups->items);
	free(groups->strips);
	*groups = (struct heap_groups){.fd = -1};
}

/* ---- reading ---- */

enum { WINDOW_FIRST_BYTES = 8 << 10, WINDOW_MOST_BYTES = 128 << 10 };

/* Return how many bytes to read from a strip on: strips of the column that lie behind it, if they are wanted soon. */
static size_t window_span(const struct groups_reader *reader, unsigned column, uint32_t strip, size_t most)
{
	const struct heap_groups *groups = reader->of;
	uint32_t count = groups_strip_count(groups->count), end = groups_strip_count(reader->end);
	uint64_t at = groups->strips[strip].of[column].offset;
	size_t size = groups->strips[strip].of[column].bytes;
	for (uint32_t next = strip + 1; next < count && (!end || next < end); next++) {
		const struct heap_strip *behind = &groups->strips[next].of[column];
		if (behind->offset != at + size || behind->bytes > GROUPS_STRIP_MOST || size + behind->bytes > most)
			break;
		size += behind->bytes;
	}
	return size;
}

/* Return a strip's bytes, readable for PACK_SLACK_BYTES more; NULL if they do not exist or fail the checksum. One strip
   after the other is read far ahead, a few here and there are not. */
static const uint8_t *window_get(struct groups_reader *reader, unsigned column, uint32_t strip)
{
	struct groups_window *window = &reader->windows[column];
	const struct heap_strip *at = &reader->of->strips[strip].of[column];
	if (reader->of->fd < 0)
		return reader->of->memory.data + at->offset;
	if (at->bytes > GROUPS_STRIP_MOST || at->offset > INT64_MAX - GROUPS_STRIP_MOST)
		return NULL;
	if (at->offset < window->offset || at->offset - window->offset > window->size ||
	    window->size - (at->offset - window->offset) < at->bytes) {
		window->ahead = window->strip == strip ? window->ahead * 2 : WINDOW_FIRST_BYTES;
		window->ahead = window->ahead < WINDOW_MOST_BYTES ? window->ahead : WINDOW_MOST_BYTES;
		size_t size = window_span(reader, column, strip, window->ahead);
		if (size + PACK_SLACK_BYTES > window->capacity) {
			free(window->data);
			window->capacity = size + PACK_SLACK_BYTES;
			window->data = memory_zeroed(window->capacity, 1);
		}
		window->offset = at->offset;
		window->size = file_read(reader->of->fd, window->data, size, at->offset);
		if (window->size < at->bytes)
			return NULL;
	}
	const uint8_t *data = window->data + (at->offset - window->offset);
	return (uint32_t)XXH3_64bits(data, at->bytes) == at->checksum ? data : NULL;
}

/* Find where the groups of a strip begin. */
static bool places_find(struct groups_window *window, const struct heap_groups *groups, unsigned column, uint32_t strip,
			const uint8_t *data)
{
	const struct heap_group *group = &groups->items[strip * GROUPS_PER_STRIP];
	uint32_t left = groups->count - strip * GROUPS_PER_STRIP,
		 count = left < GROUPS_PER_STRIP ? left : GROUPS_PER_STRIP;
	struct reading reading = {.at = data, .end = data + groups->strips[strip].of[column].bytes};
	for (uint32_t i = 0; i < count; i++) {
		window->places[i] = reading.at;
		pack_skip(&reading, (enum pack_column)column, group[i].row_count, group[i].end_count);
	}
	window->places[count] = reading.at;
	return !reading.has_failed && reading.at == reading.end;
}

/* Make the strip of the window the one that has the group. */
static bool strip_load(struct groups_reader *reader, unsigned column, uint32_t strip)
{
	static const uint8_t nothing[PACK_SLACK_BYTES];
	struct groups_window *window = &reader->windows[column];
	if (window->strip == strip + 1)
		return true;
	const uint8_t *data = reader->of->strips[strip].of[column].bytes ? window_get(reader, column, strip) : nothing;
	window->strip = data && places_find(window, reader->of, column, strip, data) ? strip + 1 : 0;
	return window->strip;
}

static void reader_begin(struct groups_reader *reader, const struct heap_groups *groups)
{
	for (unsigned i = 0; i < PACK_STRIPS; i++) {
		reader->windows[i].strip = 0;
		reader->windows[i].size = 0;
	}
	reader->of = groups;
}

bool groups_read(struct groups_reader *reader, const struct heap_groups *groups, uint32_t at, uint32_t first,
		 uint32_t count, const struct pack_limits *limits, unsigned wanted, struct pack_columns *columns,
		 struct heap_details *details)
{
	assert(at < groups->count);
	assert(count <= PACK_ROWS);
	const struct heap_group *group = &groups->items[at];
	bool has_ends = group->end_count && wanted & PACK_ENDINGS;
	unsigned strips_wanted = wanted | (has_ends ? 1u << PACK_LATE_ENDS : 0);
	struct reading strips[PACK_STRIPS];
	if (reader->of != groups)
		reader_begin(reader, groups);
	if (group->row_count != count)
		return false;
	for (unsigned i = 0; i < PACK_STRIPS; i++) {
		if (!(strips_wanted >> i & 1))
			continue;
		if (!strip_load(reader, i, at / GROUPS_PER_STRIP))
			return false;
		const uint8_t **place = &reader->windows[i].places[at % GROUPS_PER_STRIP];
		strips[i] = (struct reading){.at = place[0], .end = place[1]};
	}
	return unpack_rows(strips, columns, count, limits, wanted) &&
	       (!(wanted & PACK_ANY_DETAIL) ||
		unpack_details(strips, columns, details, first, count, limits, wanted)) &&
	       (!has_ends ||
		unpack_ends(&strips[PACK_LATE_ENDS], columns, details, count, group->end_count, limits, wanted));
}

void groups_read_ahead(const struct heap_groups *groups, uint32_t from, uint32_t to, unsigned wanted)
{
	uint32_t first = from / GROUPS_PER_STRIP, end = groups_strip_count(to < groups->count ? to : groups->count);
	for (unsigned column = 0; column < PACK_LATE_ENDS && groups->fd >= 0; column++) {
		uint64_t offset = 0, size = 0;
		for (uint32_t i = first; i < end && wanted >> column & 1; i++) {
			const struct heap_strip *strip = &groups->strips[i].of[column];
			if (size && strip->offset == offset + size) {
				size += strip->bytes;
				continue;
			}
			if (size)
				posix_fadvise(groups->fd, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
			offset = strip->offset;
			size = strip->bytes;
		}
		if (size)
			posix_fadvise(groups->fd, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
	}
}

void groups_reader_fini(struct groups_reader *reader)
{
	for (unsigned i = 0; i < PACK_STRIPS; i++)
		free(reader->windows[i].data);
	*reader = (struct groups_reader){.of = NULL};
}
