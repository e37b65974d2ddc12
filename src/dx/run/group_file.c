/* SPDX-License-Identifier: MIT */
#include "dx/run/group_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "dx/run/spill.h"

enum { FILE_ITSELF, FILE_KEY, FILE_ARGUMENTS, READ_BYTES = 64 << 10 };

struct dx_group_file {
	uint32_t references;
	struct dx_spill spill;
};

static void file_release(void *context)
{
	struct dx_group_file *file = context;
	assert(file->references > 0);
	if (--file->references)
		return;
	dx_spill_fini(&file->spill);
	free(file);
}

static void file_hold(struct dx_group_file *file, struct dx_arena *arena)
{
	file->references++;
	dx_on_release(arena, file_release, file);
}

struct dx_group_file *dx_group_file_new(struct dx_arena *arena)
{
	struct dx_group_file *file = memory_zeroed(1, sizeof(*file));
	file->spill.file = (struct run_file){RUN_FILE_NONE};
	file_hold(file, arena);
	return file;
}

void dx_group_file_add(struct dx_group_file *file, const struct dx_element *element)
{
	dx_spill_write(&file->spill, &element->index);
	dx_spill_write(&file->spill, &element->value);
}

/* ---- the sequence ---- */

struct file_state {
	struct run_reader run;
};

static struct dx_group_file *file_of(const struct dx_sequence *sequence)
{
	return (struct dx_group_file *)sequence->arguments[FILE_ITSELF].data;
}

static void run_begin_reading(struct run_reader *run, struct dx_group_file *file)
{
	run_open(run, &file->spill.file, file->spill.runs[0], READ_BYTES);
}

static bool element_read(struct run_reader *run, struct dx_arena *arena, struct dx_element *element)
{
	return dx_spill_read(run, arena, &element->index) && dx_spill_read(run, arena, &element->value);
}

static void file_open(struct dx_query *query, struct dx_iterator *iterator)
{
	struct file_state *state = iterator->state;
	(void)query;
	run_begin_reading(&state->run, file_of(iterator->sequence));
}

static bool file_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct file_state *state = iterator->state;
	struct dx_group_file *file = file_of(iterator->sequence);
	bool is_read = element_read(&state->run, query->arena, element);
	if (!is_read && file->spill.file.error)
		dx_stop(query, iterator->sequence->column, "GroupBy: the temporary file of a group: %s",
			strerror(file->spill.file.error));
	return is_read;
}

static void file_close(void *context)
{
	struct file_state *state = context;
	run_close(&state->run);
}

/* What outlives the query is a list: names in the file belong to the query's text. */
static void file_copy(struct dx_arena *arena, struct dx_sequence *copy)
{
	struct dx_group_file *file = file_of(copy);
	const struct dx_value key = copy->arguments[FILE_KEY];
	struct run_reader run;
	struct dx_arena step;
	struct dx_element element;
	if (!arena->is_lasting) {
		file_hold(file, arena);
		return;
	}
	struct dx_list *made = dx_list_new_lasting(arena);
	dx_arena_init(&step, arena->budget);
	run_begin_reading(&run, file);
	while (!arena->budget->is_exceeded && element_read(&run, &step, &element)) {
		dx_list_add(made, &element);
		dx_arena_clear(&step);
	}
	run_close(&run);
	dx_arena_fini(&step);
	dx_sequence_set_list(copy, made, &key);
}

static const struct dx_operator file_operator = {.name = "group",
						 .state_bytes = sizeof(struct file_state),
						 .open = file_open,
						 .next = file_next,
						 .close = file_close,
						 .copy = file_copy,
						 .key = FILE_KEY + 1};

struct dx_value dx_group_file_value(struct dx_query *query, struct dx_group_file *file, const struct dx_value *key,
				    int column)
{
	if (!dx_spill_end_run(&file->spill))
		dx_stop(query, column, "GroupBy: the temporary file of a group: %s", strerror(file->spill.file.error));
	struct dx_sequence *sequence = dx_sequence_new(query, &file_operator, NULL, column);
	file_hold(file, query->arena);
	sequence->argument_count = FILE_ARGUMENTS;
	sequence->arguments[FILE_ITSELF] = (struct dx_value){.kind = DX_ABSENT, .data = file};
	sequence->arguments[FILE_KEY] = *key;
	return dx_sequence_value(sequence);
}
