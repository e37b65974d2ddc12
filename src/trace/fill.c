/* SPDX-License-Identifier: MIT */
/*
 * The last blocks before a file is as large as it may be. How much a block takes is known when it is coded; one that is
 * too large is taken back, with the rows that went along, and as many of its events are tried as should fit.
 */
#include "trace/fill.h"

#include <stdlib.h>
#include <string.h>

#include "trace/segment.h"

enum {
	NEAR_BYTES = 16 << 20, /* more than a block takes, with the rows that it needs */
	EVENTS_MIN = 24,       /* fewer are not worth a block's head */
	NUMBERS_COUNT = 7
};

uint64_t writer_room_left(const struct writer *writer)
{
	return writer->options.mode == WRITER_SEQUENTIAL ? output_room_left(&writer->output) : UINT64_MAX;
}

bool writer_is_full(const struct writer *writer)
{
	return writer->output.is_full;
}

uint64_t writer_limit_bytes(const struct writer *writer)
{
	return writer->options.mode == WRITER_SEQUENTIAL ? writer->options.max_file_bytes : 0;
}

bool fill_is_near(const struct writer *writer)
{
	return writer_room_left(writer) < NEAR_BYTES;
}

bool fill_may_pass(const struct writer *writer, uint32_t count)
{
	enum { EVENT_BYTES_MOST = 32, ROWS_BYTES = 4096 };
	return output_room_left(&writer->output) < (uint64_t)count * EVENT_BYTES_MOST + ROWS_BYTES;
}

bool fill_is_worth(const struct writer *writer)
{
	enum { LEFT_BYTES = 4096, LEFT_PART = 64 };
	uint64_t part = writer->output.limit / LEFT_PART;
	return output_room_left(&writer->output) >= (part > LEFT_BYTES ? part : LEFT_BYTES);
}

/* ---- taking back ---- */

struct numbers_copy {
	uint32_t *numbers, capacity, next;
};

struct fill_copy {
	struct numbers_copy numbers[NUMBERS_COUNT];
	struct section sections[FORMAT_TYPE_COUNT];
	size_t out_size;
	bool has_rows, is_head_due;
	uint64_t segment_offset;
	struct output_segment last, before;
};

static struct numbers *numbers_at(struct writer *writer, int i)
{
	struct numbers *all[NUMBERS_COUNT] = {&writer->images, &writer->entries,   &writer->heaps,  &writer->frames,
					      &writer->nodes,  &writer->processes, &writer->threads};
	return all[i];
}

void fill_copy_free(struct fill_copy *copy)
{
	for (int i = 0; copy && i < NUMBERS_COUNT; i++)
		free(copy->numbers[i].numbers);
	for (int type = 0; copy && type < FORMAT_TYPE_COUNT; type++)
		bytes_fini(&copy->sections[type].bytes);
	free(copy);
}

struct fill_copy *fill_copy_new(struct writer *writer)
{
	struct fill_copy *copy = calloc(1, sizeof(*copy));
	struct output *output = &writer->output;
	bool has_failed = !copy;
	for (int i = 0; !has_failed && i < NUMBERS_COUNT; i++) {
		const struct numbers *numbers = numbers_at(writer, i);
		size_t bytes = numbers->capacity * sizeof(*numbers->numbers);
		copy->numbers[i] = (struct numbers_copy){malloc(bytes + 1), numbers->capacity, numbers->next};
		has_failed = !copy->numbers[i].numbers;
		if (!has_failed && bytes)
			memcpy(copy->numbers[i].numbers, numbers->numbers, bytes);
	}
	for (int type = 0; !has_failed && type < FORMAT_TYPE_COUNT; type++) {
		copy->sections[type].count = writer->sections[type].count;
		bytes_add(&copy->sections[type].bytes, writer->sections[type].bytes.data,
			  writer->sections[type].bytes.size);
		has_failed = copy->sections[type].bytes.has_failed;
	}
	if (has_failed) {
		fill_copy_free(copy);
		return NULL;
	}
	copy->out_size = writer->out.size;
	copy->has_rows = writer->has_rows;
	copy->is_head_due = writer->is_head_due;
	copy->segment_offset = writer->segment_offset;
	copy->last = output->segments[output->segment_count - 1];
	if (output->segment_count > 1)
		copy->before = output->segments[output->segment_count - 2];
	return copy;
}

void fill_take_back(struct writer *writer, const struct fill_copy *copy)
{
	struct output *output = &writer->output;
	for (int i = 0; i < NUMBERS_COUNT; i++) {
		struct numbers *numbers = numbers_at(writer, i);
		const struct numbers_copy *old = &copy->numbers[i];
		if (old->capacity)
			memcpy(numbers->numbers, old->numbers, old->capacity * sizeof(*numbers->numbers));
		if (numbers->capacity > old->capacity)
			memset(numbers->numbers + old->capacity, 0,
			       (numbers->capacity - old->capacity) * sizeof(*numbers->numbers));
		numbers->next = old->next;
	}
	for (int type = 0; type < FORMAT_TYPE_COUNT; type++) {
		struct section *section = &writer->sections[type];
		section->bytes.size = 0;
		bytes_add(&section->bytes, copy->sections[type].bytes.data, copy->sections[type].bytes.size);
		section->count = copy->sections[type].count;
	}
	writer->out.size = copy->out_size;
	writer->has_rows = copy->has_rows;
	writer->is_head_due = copy->is_head_due;
	writer->segment_offset = copy->segment_offset;
	output->segments[output->segment_count - 1] = copy->last;
	if (output->segment_count > 1)
		output->segments[output->segment_count - 2] = copy->before;
}

uint32_t fill_fewer(const struct writer *writer, uint32_t tried)
{
	enum { SURE = 15, OF = 16 }; /* fewer events share fewer rows */
	uint64_t room = output_room_left(&writer->output),
		 count = writer->out.size ? tried * room / writer->out.size * SURE / OF : 0;
	uint64_t most = tried - tried / OF - 1;
	count = count < most ? count : most;
	return count >= EVENTS_MIN ? (uint32_t)count : 0;
}
