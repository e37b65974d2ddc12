/* SPDX-License-Identifier: MIT */
#include "dx/model/objects.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dx/model/positions.h"
#include "dx/model/stack_frames.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

const struct dx_class *const dx_classes[] = {
	&dx_session_class,  &dx_session_ttd_class, &dx_data_class,        &dx_utility_class,
	&dx_heap_class,     &dx_call_class,        &dx_allocation_class,  &dx_stack_row_class,
	&dx_peak_class,     &dx_process_class,     &dx_process_ttd_class, &dx_heap_state_class,
	&dx_heap_row_class, &dx_heap_use_class,    &dx_thread_class,      &dx_module_class,
	&dx_event_class,    &dx_frame_class,       &dx_position_class,    &dx_position_range_class,
	&dx_debugger_class, &dx_state_class,       &dx_variables_class,   NULL};

/* ---- ids ---- */

struct dx_value dx_id_object(struct dx_query *query, const struct dx_class *class, uint32_t id)
{
	assert(class->data_bytes == sizeof(struct dx_id));
	struct dx_id *data = dx_new(query->arena, struct dx_id, 1);
	data->id = id;
	return dx_object(class, data);
}

struct dx_value dx_column_value(struct dx_query *query, const struct column *column, uint64_t value)
{
	assert(column->type != TYPE_TEXT);
	switch (column->type) {
	case TYPE_ADDRESS:
		return dx_address(value);
	case TYPE_TIME:
	case TYPE_ERROR:
		return dx_signed((int64_t)value);
	case TYPE_WORD:
	case TYPE_FUNCTION:
		return dx_text(column_word(column, query->session->dictionary, value));
	case TYPE_PROCESS:
		return dx_id_object(query, &dx_process_class, (uint32_t)value);
	case TYPE_THREAD:
		return dx_id_object(query, &dx_thread_class, (uint32_t)value);
	default:
		return dx_number(value);
	}
}

size_t dx_member_words(const struct dx_class *class, const struct dx_member *member, const char *const **words)
{
	int id = dx_member_column(member);
	bool has_columns = class == &dx_heap_class || class == &dx_allocation_class;
	if (id < 0 || !has_columns)
		return 0;
	const struct column *column =
		column_find(class == &dx_heap_class ? COLUMNS_OF_EVENTS : COLUMNS_OF_ALLOCATIONS, (enum column_id)id);
	*words = column->words;
	return column->type == TYPE_WORD ? column->word_count : 0;
}

/* Objects of the class of the ids [first, count): of the process, unless that is TRACE_NONE. */
enum { IDS_FIRST, IDS_COUNT, IDS_PROCESS, IDS_CLASS, IDS_COUNTED, IDS_ARGUMENTS };

struct ids_state {
	uint64_t passed;
	uint64_t index;
};

static uint32_t process_of(const struct trace_dictionary *dictionary, const struct dx_class *class, uint32_t id)
{
	assert(class != &dx_thread_class || id < dictionary->thread_count);
	return class == &dx_thread_class   ? dictionary->threads[id].process
	       : class == &dx_module_class ? dictionary->mappings[id].process
					   : id;
}

static bool ids_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct ids_state *state = iterator->state;
	const struct dx_value *arguments = iterator->sequence->arguments;
	const struct dx_class *class = arguments[IDS_CLASS].class;
	const struct trace_dictionary *dictionary = query->session->dictionary;
	while (arguments[IDS_FIRST].number + state->passed < arguments[IDS_COUNT].number) {
		uint32_t id = (uint32_t)(arguments[IDS_FIRST].number + state->passed++);
		bool is_marker = class == &dx_thread_class && dictionary->threads[id].tid == TRACE_TID_NONE;
		if (is_marker || (arguments[IDS_PROCESS].number != TRACE_NONE &&
				  arguments[IDS_PROCESS].number != process_of(dictionary, class, id)))
			continue;
		*element = (struct dx_element){dx_id_object(query, class, id), dx_number(state->index++)};
		if (arguments[IDS_COUNTED].truth)
			return true;
		if (class == &dx_thread_class)
			element->index = dx_number(dictionary->threads[id].tid);
		if (class == &dx_process_class && dictionary->processes[id].pid)
			element->index = dx_number(dictionary->processes[id].pid);
		return true;
	}
	return false;
}

static const struct dx_operator ids_operator = {
	.name = "ids", .state_bytes = sizeof(struct ids_state), .next = ids_next};

struct dx_value dx_ids(struct dx_query *query, const struct dx_class *class, uint32_t count, uint32_t process,
		       bool is_counted)
{
	struct dx_sequence *sequence = dx_sequence_new(query, &ids_operator, NULL, 0);
	sequence->argument_count = IDS_ARGUMENTS;
	sequence->arguments[IDS_FIRST] = dx_number(0);
	sequence->arguments[IDS_COUNT] = dx_number(count);
	sequence->arguments[IDS_PROCESS] = dx_number(process);
	sequence->arguments[IDS_CLASS] = (struct dx_value){.kind = DX_ABSENT, .class = class};
	sequence->arguments[IDS_COUNTED] = dx_bool(is_counted);
	return dx_sequence_value(sequence);
}
