/* SPDX-License-Identifier: MIT */
#include "dx/model/objects_allocation.h"

#include <stdlib.h>

#include "base/memory.h"
#include "dx/model/block_events.h"
#include "dx/model/inherited.h"
#include "dx/model/positions.h"
#include "dx/model/stack_frames.h"
#include "table/weight.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

static const struct dx_block *block_of(const struct dx_value *object)
{
	return object->data;
}

static const struct heap_site *site_of(const struct dx_query *query, uint32_t site)
{
	static const struct heap_site none = {0, HEAP_NONE};
	const struct heap_table *table = query->session->table;
	return table && site < table->site_count ? &table->sites[site] : &none;
}

/* ---- members ---- */

/* The end of a copy is not known: the row has that of its parent's block. */
static bool is_copy(const struct dx_value *object)
{
	return block_of(object)->owner != TRACE_NONE;
}

static bool is_earlier(const struct dx_value *object)
{
	return block_of(object)->row.flags & HEAP_EARLIER;
}

/* The step of the point at which the block began, or ended. 0: no event of the trace is that point. */
static uint32_t step_of(struct dx_query *query, const struct dx_block *block, bool is_end)
{
	const struct heap_table *table = dx_session_table(query->session);
	const struct heap_details *details = &block->details;
	if (!table || (is_end && block->row.end > HEAP_END_DESTROY))
		return 0;
	/* If the stamps of two threads contradict each other, the end is set to the begin. */
	bool is_set = is_end && details->birth_point != HEAP_NONE && details->end_point <= details->birth_point;
	return is_set ? 0 : heap_table_step(table, is_end ? details->end_point : details->birth_point);
}

static void put_position(struct dx_query *query, const struct dx_block *block, bool is_end, struct dx_value *value)
{
	uint32_t step = step_of(query, block, is_end);
	*value = dx_position(is_end ? block->row.end_ns : block->row.birth_ns, step);
	value->is_estimated = !step;
}

static void get_start(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	if (!is_earlier(object))
		put_position(query, block_of(object), false, value);
}

static void get_end(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	if (block_of(object)->row.end != HEAP_END_OPEN && !is_copy(object))
		put_position(query, block_of(object), true, value);
}

static void get_process(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct dx_block *block = block_of(object);
	uint32_t process = query->session->dictionary->threads[block->row.thread].process;
	*value = dx_id_object(query, &dx_process_class, is_copy(object) ? block->owner : process);
}

/* The call at which the block began, or ended. */
static void put_event(struct dx_query *query, const struct dx_block *block, bool is_end, struct dx_value *value)
{
	struct dx_event event;
	if (!dx_event_of_block(query, block, is_end, &event))
		return;
	struct dx_event *kept = dx_new(query->arena, struct dx_event, 1);
	*kept = event;
	*value = dx_object(&dx_heap_class, kept);
}

static void get_event(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	put_event(query, block_of(object), false, value);
}

static void get_free_event(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	put_event(query, block_of(object), true, value);
}

/* What its call has. */
static void get_of_event(struct dx_query *query, const struct dx_value *object, const char *name,
			 struct dx_value *value)
{
	struct dx_value event = {.kind = DX_ABSENT};
	if (query->session->table && query->session->table->sample_bytes)
		get_event(query, object, &event);
	if (event.kind == DX_OBJECT)
		*value = dx_member_get(query, &event, name, NULL);
}

static void get_trace_id(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_event(query, object, "TraceId", value);
}

static void get_span_id(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_event(query, object, "SpanId", value);
}

static uint32_t node_of(struct dx_query *query, uint32_t number)
{
	const struct heap_site *site = site_of(query, number);
	return dx_stack_node(query, site->stack, site->entry);
}

static void get_stack(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	*value = is_earlier(object) ? dx_text("[before the trace]")
				    : dx_stack(query, node_of(query, block_of(object)->row.site));
}

static bool has_free_stack(const struct dx_value *object)
{
	return block_of(object)->row.end_site != HEAP_NONE && !is_copy(object);
}

DX_GETTER_IF(get_frames, !is_earlier(object), dx_frames(query, node_of(query, block_of(object)->row.site)))
DX_GETTER_IF(get_caller, !is_earlier(object), dx_caller(query, node_of(query, block_of(object)->row.site)))
DX_GETTER_IF(get_free_stack, has_free_stack(object), dx_stack(query, node_of(query, block_of(object)->row.end_site)))
DX_GETTER_IF(get_free_frames, has_free_stack(object), dx_frames(query, node_of(query, block_of(object)->row.end_site)))

DX_GETTER_IF(get_previous, block_of(object)->details.previous != HEAP_NONE,
	     dx_block_at(query, block_of(object)->details.previous))
DX_GETTER_IF(get_weight, query->session->table && query->session->table->sample_bytes,
	     dx_number(heap_weigh(query->session->table, &block_of(object)->row).count))

#define FLAG(word, flag) \
	static void get_##word(struct dx_query *query, const struct dx_value *object, struct dx_value *value) \
	{ \
		(void)query; \
		*value = dx_bool(block_of(object)->row.flags & (flag)); \
	}
FLAG(is_realloc, HEAP_REALLOC)
FLAG(is_moved, HEAP_MOVED)
FLAG(is_temporary, HEAP_TEMPORARY)
FLAG(is_nested, HEAP_NESTED)
FLAG(is_earlier_flag, HEAP_EARLIER)

DX_GETTER_IF(get_outstanding, !is_copy(object), dx_bool(!heap_end_is_given_back(block_of(object)->row.end)))
DX_GETTER(get_inherited, dx_bool(is_copy(object)))
DX_GETTER_IF(get_inherited_by, is_copy(object), dx_id_object(query, &dx_process_class, block_of(object)->owner))

/* The end of a copy is not known. */
static bool is_of_end(int column)
{
	return column == COLUMN_END_KIND || column == COLUMN_LIFETIME || column == COLUMN_FREE_THREAD ||
	       column == COLUMN_FREE_FUNCTION;
}

static void get_column(struct dx_query *query, const struct dx_value *object, int id, struct dx_value *value)
{
	const struct dx_block *block = block_of(object);
	const struct column *column = column_find(COLUMNS_OF_ALLOCATIONS, (enum column_id)id);
	const struct column_row row = {.dictionary = query->session->dictionary,
				       .id = block->number,
				       .table = query->session->table,
				       .allocation = block->row,
				       .details = &block->details};
	uint64_t number;
	if (!(is_copy(object) && is_of_end(id)) && column->get(&row, &number))
		*value = dx_column_value(query, column, number);
}

#define COLUMN(id) DX_MEMBER_COLUMN(COLUMN_##id)

static const struct dx_member block_members[] = {
	{"Address", DX_NUMBER, COLUMN(ADDRESS), NULL, NULL, "its first byte"},
	{"Size", DX_NUMBER, COLUMN(SIZE), NULL, NULL, "the bytes requested"},
	{"Heap", DX_NUMBER, DX_MEMBER_MINOR | COLUMN(HEAP), NULL, NULL, "the handle of its heap"},
	{"TimeStart", DX_POSITION, 0, get_start, &dx_position_class, "its allocation: the TimeEnd of that call"},
	{"TimeEnd", DX_POSITION, 0, get_end, &dx_position_class,
	 "its end: the TimeStart of the free; without a step if no call ended it"},
	{"End", DX_TEXT, COLUMN(END_KIND), NULL, NULL,
	 "how it ended: free, realloc, destroy, gap, conflict, exit or open"},
	{"Lifetime", DX_NUMBER, COLUMN(LIFETIME), NULL, NULL, "nanoseconds up to its end, or its age if it is open"},
	{"Function", DX_TEXT, COLUMN(FUNCTION), NULL, NULL, "the function that allocated it"},
	{"Process", DX_OBJECT, DX_MEMBER_NO_COLUMN, get_process, &dx_process_class, "its process"},
	{"Thread", DX_OBJECT, COLUMN(THREAD), NULL, &dx_thread_class, "the thread that allocated it"},
	{"FreeThread", DX_OBJECT, COLUMN(FREE_THREAD), NULL, &dx_thread_class, "the thread that freed it"},
	{"FreeFunction", DX_TEXT, DX_MEMBER_NO_COLUMN | COLUMN(FREE_FUNCTION), NULL, NULL,
	 "the function that freed it"},
	{"Caller", DX_OBJECT, DX_MEMBER_NO_COLUMN, get_caller, &dx_frame_class,
	 "the frame of the user's own code that allocated it, as reports show it"},
	{"Stack", DX_TEXT, DX_MEMBER_NO_COLUMN, get_stack, NULL, "the frames of the allocation, innermost first"},
	{"Frames", DX_SEQUENCE, DX_MEMBER_NO_COLUMN, get_frames, &dx_frame_class,
	 "the same, as objects: Frames[0], and Stack[0], is the heap function, Caller the first frame of the user's "
	 "code"},
	{"FreeStack", DX_TEXT, DX_MEMBER_NO_COLUMN, get_free_stack, NULL, "the frames of the free"},
	{"FreeFrames", DX_SEQUENCE, DX_MEMBER_NO_COLUMN, get_free_frames, &dx_frame_class, "the same, as objects"},
	{"Event", DX_OBJECT, DX_MEMBER_NO_COLUMN, get_event, &dx_heap_class, "the call that allocated it"},
	{"FreeEvent", DX_OBJECT, DX_MEMBER_NO_COLUMN, get_free_event, &dx_heap_class,
	 "the call that freed, resized or destroyed it"},
	{"Previous", DX_OBJECT, DX_MEMBER_NO_COLUMN, get_previous, &dx_allocation_class,
	 "the block that a realloc made this one of"},
	{"Usable", DX_NUMBER, DX_MEMBER_NO_COLUMN | COLUMN(USABLE), NULL, NULL,
	 "the bytes that the allocator really gave"},
	{"IsOutstanding", DX_BOOL, DX_MEMBER_NO_COLUMN, get_outstanding, NULL, "whether it was never freed"},
	{"IsRealloc", DX_BOOL, DX_MEMBER_NO_COLUMN, get_is_realloc, NULL, "whether a realloc made it of another block"},
	{"IsMoved", DX_BOOL, DX_MEMBER_NO_COLUMN, get_is_moved, NULL, "whether that realloc moved it"},
	{"IsTemporary", DX_BOOL, DX_MEMBER_NO_COLUMN, get_is_temporary, NULL,
	 "whether the thread's very next call freed it"},
	{"IsNested", DX_BOOL, DX_MEMBER_NO_COLUMN, get_is_nested, NULL, "whether it lies in another block"},
	{"IsEarlier", DX_BOOL, DX_MEMBER_NO_COLUMN, get_is_earlier_flag, NULL, "whether it is from before the attach"},
	{"InheritedBy", DX_OBJECT, 0, get_inherited_by, &dx_process_class,
	 "in Live(): the forked process whose copy of the block this is; a copy has no end here"},
	{"IsInherited", DX_BOOL, DX_MEMBER_NO_COLUMN, get_inherited, NULL, "whether it is such a copy"},
	{"Weight", DX_NUMBER, DX_MEMBER_NO_COLUMN, get_weight, NULL,
	 "in a sample: the number of blocks that it stands for"},
	{"TraceId", DX_TEXT, DX_MEMBER_NO_COLUMN, get_trace_id, NULL,
	 "in a sample: the id of OpenTelemetry's trace that its thread worked for"},
	{"SpanId", DX_TEXT, DX_MEMBER_NO_COLUMN, get_span_id, NULL, "in a sample: the id of the span in that trace"},
	{"Index", DX_NUMBER, DX_MEMBER_HIDDEN | COLUMN(ID), NULL, NULL, "its id in xheap dump -allocations"},
	{0},
};

const struct dx_class dx_allocation_class = {"Allocation", "a block, from its allocation to its end", block_members,
					     sizeof(struct dx_block), .get_column = get_column};

/* ---- the sequence ---- */

/* Behind the blocks of the pass: copies of one process after the other. */
struct blocks_state {
	struct dx_block_pass pass;
	struct dx_copies copies;
	uint32_t next_copy, next_process;
	bool has_passed;
};

static uint32_t process_wanted(const struct dx_iterator *iterator)
{
	return (uint32_t)iterator->sequence->arguments[DX_BLOCKS_PROCESS].number;
}

static void blocks_open(struct dx_query *query, struct dx_iterator *iterator)
{
	struct blocks_state *state = iterator->state;
	dx_block_pass_begin(&state->pass, query, process_wanted(iterator),
			    (enum dx_block_choice)iterator->sequence->arguments[DX_BLOCKS_CHOICE].number,
			    iterator->sequence->arguments[DX_BLOCKS_POSITION]);
}

static bool copy_next(struct dx_query *query, struct dx_iterator *iterator, struct blocks_state *state,
		      struct dx_block *block)
{
	const struct dx_value *arguments = iterator->sequence->arguments;
	uint32_t wanted = process_wanted(iterator), count = query->session->dictionary->process_count;
	while (arguments[DX_BLOCKS_CHOICE].number == DX_BLOCKS_LIVE && !query->is_stopped) {
		if (state->next_copy < state->copies.count) {
			const struct dx_copy *copy = &state->copies.items[state->next_copy++];
			if (!dx_block_load(query, copy->number, block))
				continue;
			block->owner = state->next_process - 1;
			return true;
		}
		uint32_t process = state->next_process++;
		if (process >= count)
			return false;
		state->next_copy = state->copies.count = 0;
		if ((wanted == TRACE_NONE || wanted == process) && dx_step(query, "Live", iterator->sequence->column))
			dx_copies_find(query, &state->copies, process,
				       arguments[DX_BLOCKS_POSITION].kind == DX_POSITION
					       ? arguments[DX_BLOCKS_POSITION]
					       : dx_position_current(query, process));
	}
	return false;
}

static bool blocks_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct blocks_state *state = iterator->state;
	struct dx_block block;
	if (!state->has_passed)
		state->has_passed = !dx_block_pass_next(&state->pass, query, &block);
	if (state->has_passed && !copy_next(query, iterator, state, &block))
		return false;
	struct dx_block *kept = dx_new(query->arena, struct dx_block, 1);
	*kept = block;
	*element = (struct dx_element){dx_object(&dx_allocation_class, kept), dx_number(block.number)};
	return true;
}

static void blocks_close(void *context)
{
	struct blocks_state *state = context;
	dx_block_pass_end(&state->pass);
	dx_copies_fini(&state->copies);
}

static const struct dx_operator blocks_operator = {.name = "Allocations",
						   .state_bytes = sizeof(struct blocks_state),
						   .open = blocks_open,
						   .next = blocks_next,
						   .close = blocks_close};

bool dx_blocks_are(const struct dx_sequence *sequence, uint32_t *process, enum dx_block_choice *choice)
{
	if (sequence->operation != &blocks_operator)
		return false;
	*process = (uint32_t)sequence->arguments[DX_BLOCKS_PROCESS].number;
	*choice = (enum dx_block_choice)sequence->arguments[DX_BLOCKS_CHOICE].number;
	return true;
}

struct dx_value dx_blocks(struct dx_query *query, uint32_t process, enum dx_block_choice choice,
			  struct dx_value position, int column)
{
	struct dx_sequence *sequence = dx_sequence_new(query, &blocks_operator, NULL, column);
	query->session->uses |= 1u << (choice == DX_BLOCKS_LIVE ? DX_USE_LIVE : DX_USE_BLOCKS);
	sequence->argument_count = DX_BLOCKS_ARGUMENTS;
	sequence->arguments[DX_BLOCKS_PROCESS] = dx_number(process);
	sequence->arguments[DX_BLOCKS_CHOICE] = dx_number(choice);
	sequence->arguments[DX_BLOCKS_POSITION] = position;
	return dx_sequence_value(sequence);
}
