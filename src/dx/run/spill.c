/* SPDX-License-Identifier: MIT */
/*
 * A value as it lies in memory, and behind it what it refers to in an arena. What belongs to the trace or to the
 * query's tree is referred to by its address: only this process reads the file.
 */
#include "dx/run/spill.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

enum { NESTED_MAX = 64 };

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

static bool has_data(const struct dx_value *value)
{
	return value->kind == DX_OBJECT && value->class->data_bytes && value->data;
}

static void value_write(struct run_writer *run, const struct dx_value *value)
{
	assert(value->kind != DX_SEQUENCE && value->kind != DX_LAMBDA && dx_value_is_valid(value));
	run_write(run, value, sizeof(*value));
	if (value->kind == DX_TEXT || value->kind == DX_ERROR) {
		uint64_t length = strlen(value->text);
		run_write(run, &length, sizeof(length));
		run_write(run, value->text, length);
	} else if (has_data(value)) {
		run_write(run, value->data, value->class->data_bytes);
		const struct dx_record *record = value->class == &dx_record_class ? value->data : NULL;
		for (uint32_t i = 0; record && i < record->count; i++)
			value_write(run, &record->values[i]);
	}
}

/* Return the run under way. */
static struct run_writer *run_of(struct dx_spill *spill)
{
	if (!spill->writer.buffer)
		run_begin(&spill->writer, &spill->file, 0);
	return &spill->writer;
}

void dx_spill_write(struct dx_spill *spill, const struct dx_value *value)
{
	value_write(run_of(spill), value);
}

bool dx_spill_end_run(struct dx_spill *spill)
{
	memory_grow(spill->runs, spill->run_count, spill->run_capacity);
	spill->runs[spill->run_count++] = run_end(run_of(spill));
	CHECK_VALID(dx_spill_is_valid(spill));
	return !spill->file.error;
}

void dx_spill_forget(struct dx_spill *spill, uint32_t count)
{
	assert(count <= spill->run_count);
	spill->run_count -= count;
	memmove(spill->runs, spill->runs + count, spill->run_count * sizeof(*spill->runs));
	CHECK_VALID(dx_spill_is_valid(spill));
}

bool dx_spill_is_valid(const struct dx_spill *spill)
{
	uint64_t end = spill->run_count ? spill->runs[0].offset : 0;
	bool is_valid = spill->run_count <= spill->run_capacity &&
			(spill->file.fd >= 0 || spill->file.error || !spill->file.end);
	for (uint32_t i = 0; is_valid && i < spill->run_count; i++) {
		is_valid = spill->runs[i].offset == end;
		end += spill->runs[i].bytes;
	}
	return is_valid && end <= spill->file.end;
}

void dx_spill_fini(struct dx_spill *spill)
{
	run_file_fini(&spill->file);
	free(spill->writer.buffer);
	free(spill->runs);
	*spill = (struct dx_spill){.file = {RUN_FILE_NONE}};
}

/* ---- reading ---- */

static bool text_read(struct run_reader *run, struct dx_arena *arena, struct dx_value *value)
{
	uint64_t length;
	if (!run_read(run, &length, sizeof(length)))
		return false;
	char *text = dx_alloc(arena, length + 1);
	value->text = text;
	return run_read(run, text, length);
}

bool dx_spill_read(struct run_reader *run, struct dx_arena *arena, struct dx_value *value)
{
	if (!run_read(run, value, sizeof(*value)))
		return false;
	if (value->kind == DX_TEXT || value->kind == DX_ERROR)
		return text_read(run, arena, value);
	if (!has_data(value))
		return true;
	void *data = dx_alloc(arena, value->class->data_bytes);
	value->data = data;
	if (!run_read(run, data, value->class->data_bytes))
		return false;
	if (value->class != &dx_record_class)
		return true;
	struct dx_record *record = data;
	struct dx_value *values = dx_new(arena, struct dx_value, (size_t)record->count + 1);
	record->values = values;
	for (uint32_t i = 0; i < record->count; i++)
		if (!dx_spill_read(run, arena, &values[i]))
			return false;
	return true;
}
