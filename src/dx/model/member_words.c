/* SPDX-License-Identifier: MIT */
#include "dx/model/member_words.h"

#include <string.h>

#include "base/events.h"
#include "dx/model/faults.h"
#include "dx/model/objects.h"
#include "dx/model/objects_calls.h"
#include "dx/model/objects_state.h"
#include "dx/model/stack_frames.h"
#include "query/frame_names.h"
#include "table/allocation.h"
#include "trace/process_rows.h"

#define X(id, word) word,
static const char *const process_ends[] = {TRACE_ENDS(X)};
#undef X
static const char *const call_types[] = {"Call"};
/* The documents ask for exceptions; traces have none. */
static const char *const event_types[DX_LIFE_KINDS + 1] = {DX_LIFE_WORDS, "Exception"};

/* Members with few texts that are no columns. */
static const struct {
	const struct dx_class *class;
	const char *member;
	struct dx_words words;
} word_members[] = {
	{&dx_heap_class, "State", {dx_fault_words, DX_FAULT_KINDS, false}},
	{&dx_heap_class, "End", {heap_end_words, HEAP_END_COUNT, false}},
	{&dx_call_class, "EventType", {call_types, 1, false}},
	{&dx_event_class, "Type", {event_types, DX_LIFE_KINDS + 1, false}},
	{&dx_frame_class, "Kind", {heap_frame_kinds, HEAP_FRAME_KIND_COUNT, false}},
	{&dx_process_class, "End", {process_ends, TRACE_END_COUNT, false}},
};

static struct dx_words functions(struct dx_query *query, bool has_image)
{
	struct dx_words words = {.are_of_trace = true};
	words.words = dx_function_names(query, has_image, &words.count);
	return words;
}

struct dx_words dx_member_words(struct dx_query *query, const struct dx_class *class, const struct dx_member *member)
{
	struct dx_words words = {.count = 0};
	int id = dx_member_column(member);
	bool has_columns = class == &dx_heap_class || class == &dx_allocation_class;
	for (size_t i = 0; i < sizeof(word_members) / sizeof(word_members[0]); i++)
		if (word_members[i].class == class && !strcmp(word_members[i].member, member->name))
			return word_members[i].words;
	if (class == &dx_call_class && !strcmp(member->name, "Function"))
		words = functions(query, true);
	if (id < 0 || !has_columns)
		return words;
	const struct column *column =
		column_find(class == &dx_heap_class ? COLUMNS_OF_EVENTS : COLUMNS_OF_ALLOCATIONS, (enum column_id)id);
	if (column->type == TYPE_FUNCTION)
		return functions(query, false);
	if (column->type != TYPE_WORD)
		return words;
	/* Further kinds of events are no objects. */
	return (struct dx_words){column->words, id == COLUMN_ACTION ? EVENT_PROTECT + 1 : column->word_count, false};
}
