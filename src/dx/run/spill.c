/* SPDX-License-Identifier: MIT */
/*
 * A value as it lies in memory, and behind it what it refers to in an arena. What belongs to the trace or to the
 * query's tree is referred to by its address: only this process reads the file.
 */
#include "dx/run/spill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/memory.h"

enum { PENDING_BYTES = 256 << 10, NESTED_MAX = 64 };

static bool takes(const struct dx_value *value, unsigned depth)
{
	if (value->kind == DX_SEQUENCE || value->kind == DX_LAMBDA || depth > NESTED_MAX)
		return false;
	if (value->kind != DX_OBJECT || value->class != &dx_record_class)
		return true;
	const struct dx_record *record = value->data;
	for (uint32_t i = 0; i < record->count; i++)
		if (!takes(&record->values[i], depth + 1))
			return false;
	return true;
}

bool dx_spill_takes(const struct dx_value *value)
{
	return takes(value, 0);
}

/* ---- writing ---- */

static void pending_write(struct dx_spill *spill)
{
	if (spill->pending.has_failed)
		memory_exhausted(spill->pending.size);
	if (spill->fd < 0 && !spill->error && (spill->fd = file_temporary(NULL)) < 0)
		spill->error = errno;
	if (!spill->error && !file_write(spill->fd, spill->pending.data, spill->pending.size, spill->end))
		spill->error = errno;
	spill->end += spill->pending.size;
	spill->pending.size = 0;
}

static bool has_data(const struct dx_value *value)
{
	return value->kind == DX_OBJECT && value->class->data_bytes && value->data;
}

void dx_spill_write(struct dx_spill *spill, const struct dx_value *value)
{
	struct bytes *pending = &spill->pending;
	assert(value->kind != DX_SEQUENCE && value->kind != DX_LAMBDA && dx_value_is_valid(value));
	bytes_add(pending, value, sizeof(*value));
	if (value->kind == DX_TEXT || value->kind == DX_ERROR) {
		uint64_t length = strlen(value->text);
		bytes_add(pending, &length, sizeof(length));
		bytes_add(pending, value->text, length);
	} else if (has_data(value)) {
		bytes_add(pending, value->data, value->class->data_bytes);
		const struct dx_record *record = value->class == &dx_record_class ? value->data : NULL;
		for (uint32_t i = 0; record && i < record->count; i++)
			dx_spill_write(spill, &record->values[i]);
	}
	if (pending->size >= PENDING_BYTES)
		pending_write(spill);
}

bool dx_spill_end_run(struct dx_spill *spill)
{
	pending_write(spill);
	memory_grow(spill->run_ends, spill->run_count, spill->run_capacity);
	spill->run_ends[spill->run_count++] = spill->end;
	CHECK_VALID(dx_spill_is_valid(spill));
	return !spill->error;
}

bool dx_spill_is_valid(const struct dx_spill *spill)
{
	uint64_t end = 0;
	bool is_valid = spill->run_count <= spill->run_capacity && (spill->fd >= 0 || spill->error || !spill->end);
	for (uint32_t i = 0; is_valid && i < spill->run_count; i++) {
		is_valid = spill->run_ends[i] >= end;
		end = spill->run_ends[i];
	}
	return is_valid && end <= spill->end;
}

void dx_spill_fini(struct dx_spill *spill)
{
	if (spill->fd >= 0)
		close(spill->fd);
	bytes_fini(&spill->pending);
	free(spill->run_ends);
	*spill = (struct dx_spill){.fd = -1};
}

/* ---- reading ---- */

void dx_spill_open(struct dx_spill_cursor *cursor, struct dx_spill *spill, uint32_t run, size_t buffer_bytes)
{
	assert(run < spill->run_count && buffer_bytes);
	*cursor = (struct dx_spill_cursor){.spill = spill,
					   .offset = run ? spill->run_ends[run - 1] : 0,
					   .end = spill->run_ends[run],
					   .buffer = memory_zeroed(buffer_bytes, 1),
					   .buffer_bytes = buffer_bytes};
}

static bool cursor_fill(struct dx_spill_cursor *cursor)
{
	uint64_t left = cursor->end - cursor->offset;
	cursor->size = left < cursor->buffer_bytes ? (size_t)left : cursor->buffer_bytes;
	cursor->at = 0;
	if (file_read(cursor->spill->fd, cursor->buffer, cursor->size, cursor->offset) != cursor->size)
		cursor->spill->error = EIO;
	cursor->offset += cursor->size;
	return !cursor->spill->error && cursor->size;
}

static bool cursor_bytes(struct dx_spill_cursor *cursor, void *to, size_t size)
{
	for (uint8_t *at = to; size;) {
		if (cursor->at == cursor->size && !cursor_fill(cursor))
			return false;
		size_t left = cursor->size - cursor->at, part = size < left ? size : left;
		memcpy(at, cursor->buffer + cursor->at, part);
		cursor->at += part;
		at += part;
		size -= part;
	}
	return true;
}

static bool text_read(struct dx_spill_cursor *cursor, struct dx_arena *arena, struct dx_value *value)
{
	uint64_t length;
	if (!cursor_bytes(cursor, &length, sizeof(length)))
		return false;
	char *text = dx_alloc(arena, length + 1);
	value->text = text;
	return cursor_bytes(cursor, text, length);
}

bool dx_spill_read(struct dx_spill_cursor *cursor, struct dx_arena *arena, struct dx_value *value)
{
	if (!cursor_bytes(cursor, value, sizeof(*value)))
		return false;
	if (value->kind == DX_TEXT || value->kind == DX_ERROR)
		return text_read(cursor, arena, value);
	if (!has_data(value))
		return true;
	void *data = dx_alloc(arena, value->class->data_bytes);
	value->data = data;
	if (!cursor_bytes(cursor, data, value->class->data_bytes))
		return false;
	if (value->class != &dx_record_class)
		return true;
	struct dx_record *record = data;
	struct dx_value *values = dx_new(arena, struct dx_value, (size_t)record->count + 1);
	record->values = values;
	for (uint32_t i = 0; i < record->count; i++)
		if (!dx_spill_read(cursor, arena, &values[i]))
			return false;
	return true;
}

void dx_spill_close(struct dx_spill_cursor *cursor)
{
	free(cursor->buffer);
	cursor->buffer = NULL;
}
