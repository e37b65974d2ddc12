/* SPDX-License-Identifier: MIT */
#include "dx/model/questions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "base/map.h"
#include "base/memory.h"
#include "dx/model/event_sequence.h"
#include "dx/model/faults.h"
#include "dx/model/objects_allocation.h"
#include "dx/model/positions.h"
#include "dx/model/stack_frames.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

static uint32_t process_of(const struct dx_method_call *call)
{
	return call->receiver.data ? dx_id_of(&call->receiver) : TRACE_NONE;
}

/* ---- heap calls ---- */

static bool event_contains(const struct dx_event *event, uint64_t address)
{
	uint64_t size = event->row.kind == EVENT_FREE || !event->row.size ? 1 : event->row.size;
	if (event->row.kind > EVENT_FREE || !event->row.address)
		return false;
	return address >= event->row.address && address - event->row.address < size;
}

/* Events whose block has the address, the argument. */
static bool address_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	dx_each (query, iterator->source, element)
		if (element->value.kind == DX_ERROR ||
		    event_contains(element->value.data, iterator->sequence->arguments[0].number))
			return true;
	return false;
}

static const struct dx_operator address_operator = {.name = "Heap", .next = address_next};

static struct dx_value events_of_address(struct dx_query *query, uint32_t process, uint64_t address, int column)
{
	struct dx_value events = dx_events(query, process, true, column);
	struct dx_sequence *sequence = dx_sequence_new(query, &address_operator, events.sequence, column);
	sequence->argument_count = 1;
	sequence->arguments[0] = dx_number(address);
	return dx_sequence_value(sequence);
}

/* By process, then position: one pass for each process if there are several. */
static void call_get_address(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	uint64_t address = dx_count_of(&call->arguments[0]);
	uint32_t process = process_of(call), count = query->session->dictionary->process_count;
	if (process != TRACE_NONE || count < 2) {
		*result = events_of_address(query, process, address, call->column);
		return;
	}
	struct dx_list *list = dx_list_new(query, query->arena);
	struct dx_element element;
	struct dx_value all = events_of_address(query, TRACE_NONE, address, call->column);
	struct dx_iterator *iterator = dx_open(query, all.sequence);
	dx_each (query, iterator, &element)
		dx_list_add(list, &element);
	struct dx_list *sorted = dx_list_new(query, query->arena);
	for (uint32_t id = 0; id < count; id++)
		for (uint32_t i = 0; i < dx_list_count(list); i++) {
			const struct dx_element *at = &dx_list_elements(list)[i];
			bool is_of = at->value.kind == DX_OBJECT &&
				     ((const struct dx_event *)at->value.data)->row.process == id;
			if (is_of || (at->value.kind == DX_ERROR && id + 1 == count))
				dx_list_add(sorted, at);
		}
	*result = dx_list_value(query, sorted, 0, dx_list_count(sorted));
}

static void call_analyze(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	static const char *const names[] = {"State", "Address", "Free", "History"};
	uint32_t count, process = process_of(call);
	const struct dx_fault *faults = dx_faults_find(query, &count);
	query->session->uses |= 1u << DX_USE_CALLS;
	struct dx_list *list = dx_list_new(query, query->arena);
	for (uint32_t i = 0; i < count && dx_step(query, "HeapAnalyze", call->column); i++) {
		const struct dx_event *event = &faults[i].event;
		uint64_t address = event->row.kind == EVENT_REALLOC ? event->row.previous : event->row.address;
		if (process != TRACE_NONE && process != event->row.process)
			continue;
		const struct dx_value values[] = {dx_text(faults[i].kind == DX_FAULT_DOUBLE ? "double" : "unknown"),
						  dx_address(address), dx_object(&dx_heap_class, event),
						  events_of_address(query, event->row.process, address, call->column)};
		const struct dx_record record = {4, names, values};
		const struct dx_element element = {dx_object(&dx_record_class, &record), dx_number(event->number)};
		dx_list_add(list, &element);
	}
	*result = dx_list_value(query, list, 0, dx_list_count(list));
}

/* ---- allocations ---- */

static void call_allocations(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	*result = dx_blocks(query, process_of(call), DX_BLOCKS_ALL, dx_position(0, 0), call->column);
}

static void call_live(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	if (!call->count) {
		query->session->uses |= 1u << DX_USE_NO_POSITION;
		*result = query->session->position;
	}
	if (!call->count || dx_position_take(query, &call->arguments[0], result))
		*result = dx_blocks(query, process_of(call), DX_BLOCKS_LIVE, *result, call->column);
}

static void call_cross(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	*result = dx_blocks(query, process_of(call), DX_BLOCKS_CROSS, dx_position(0, 0), call->column);
}

/* ---- sums by stack ---- */

DX_GETTER(get_stack, dx_stack(query, (uint32_t)((const struct dx_stack_row *)object->data)->node))
DX_GETTER(get_count, dx_signed(((const struct dx_stack_row *)object->data)->count))
DX_GETTER(get_bytes, dx_signed(((const struct dx_stack_row *)object->data)->bytes))

DX_GETTER(get_caller, dx_caller(query, (uint32_t)((const struct dx_stack_row *)object->data)->node))
DX_GETTER(get_frames, dx_frames(query, (uint32_t)((const struct dx_stack_row *)object->data)->node))

static const struct dx_member stack_members[] = {
	{"Count", DX_NUMBER, 0, get_count, NULL, "blocks; of Growth: more blocks, below zero if less"},
	{"Bytes", DX_NUMBER, 0, get_bytes, NULL, "their bytes"},
	{"Caller", DX_OBJECT, DX_MEMBER_NO_COLUMN, get_caller, &dx_frame_class,
	 "the frame of the user's own code, as reports show it"},
	{"Stack", DX_TEXT, 0, get_stack, NULL, "the frames of their allocations, innermost first, joined by ;"},
	{"Frames", DX_SEQUENCE, DX_MEMBER_NO_COLUMN, get_frames, &dx_frame_class, "the same, as objects"},
	{0},
};

const struct dx_class dx_stack_row_class = {"StackSum", "blocks of one stack", stack_members,
					    .data_bytes = sizeof(struct dx_stack_row)};

struct stack_sums {
	struct map by_node; /* of a node of the names' tree: its row plus one */
	struct dx_stack_row *rows;
	uint32_t count;
	size_t capacity;
	uint32_t *nodes; /* by site: its node plus one; 0: not known yet */
};

static void sums_add(struct dx_query *query, struct stack_sums *sums, const struct dx_block *block, int sign)
{
	struct dx_session *session = query->session;
	bool added;
	assert(sign == 1 || sign == -1);
	if (!sums->nodes)
		sums->nodes = memory_zeroed((size_t)session->table->site_count + 1, sizeof(*sums->nodes));
	uint32_t *node = &sums->nodes[block->row.site];
	if (!*node)
		*node = heap_names_site(dx_session_names(session), &session->table->sites[block->row.site]) + 1;
	uint32_t *row = map_add(&sums->by_node, *node - 1, &added);
	if (added) {
		memory_grow(sums->rows, sums->count, sums->capacity);
		sums->rows[sums->count++] = (struct dx_stack_row){.node = *node - 1};
		*row = sums->count - 1;
	}
	sums->rows[*row].count += sign;
	sums->rows[*row].bytes += sign * (int64_t)block->row.size_bytes;
}

static void sums_pass(struct dx_query *query, struct stack_sums *sums, uint32_t process, enum dx_block_choice choice,
		      const struct dx_value *position, uint8_t flags, int sign)
{
	struct dx_block_pass pass = {.has_scan = false};
	struct dx_block block;
	query->session->uses |= 1u << (choice == DX_BLOCKS_LIVE ? DX_USE_LIVE_SUMS : DX_USE_BLOCKS);
	dx_block_pass_begin(&pass, query, process, choice, position ? *position : dx_position(0, 0));
	while (dx_block_pass_next(&pass, query, &block))
		if ((block.row.flags & flags) == flags)
			sums_add(query, sums, &block, sign);
	dx_block_pass_end(&pass);
}

static int by_bytes(const void *one, const void *other)
{
	const struct dx_stack_row *a = one, *b = other;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

static int by_count(const void *one, const void *other)
{
	const struct dx_stack_row *a = one, *b = other;
	return a->count != b->count ? (a->count > b->count ? -1 : 1) : by_bytes(one, other);
}

static struct dx_value sums_end(struct dx_query *query, struct stack_sums *sums,
				int (*order)(const void *one, const void *other))
{
	struct dx_list *list = dx_list_new(query, query->arena);
	uint64_t number = 0;
	if (sums->count)
		qsort(sums->rows, sums->count, sizeof(*sums->rows), order);
	for (uint32_t i = 0; i < sums->count; i++) {
		const struct dx_element element = {dx_object(&dx_stack_row_class, &sums->rows[i]), dx_number(number)};
		if (!sums->rows[i].count && !sums->rows[i].bytes)
			continue;
		number++;
		dx_list_add(list, &element);
	}
	map_fini(&sums->by_node);
	free(sums->rows);
	free(sums->nodes);
	return dx_list_value(query, list, 0, dx_list_count(list));
}

struct dx_value dx_live_by_stack(struct dx_query *query, uint32_t process, struct dx_value position)
{
	struct stack_sums sums = {.count = 0};
	sums_pass(query, &sums, process, DX_BLOCKS_LIVE, &position, 0, 1);
	return sums_end(query, &sums, by_bytes);
}

static void call_leaks(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct stack_sums sums = {.count = 0};
	sums_pass(query, &sums, process_of(call), DX_BLOCKS_OUTSTANDING, NULL, 0, 1);
	*result = sums_end(query, &sums, by_bytes);
}

static void call_growth(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct stack_sums sums = {.count = 0};
	struct dx_value from, to = dx_position(INT64_MAX, 0);
	if (!dx_position_take(query, &call->arguments[0], &from)) {
		*result = from;
		return;
	}
	if (call->count > 1 && !dx_position_take(query, &call->arguments[1], &to)) {
		*result = to;
		return;
	}
	sums_pass(query, &sums, process_of(call), DX_BLOCKS_LIVE, &from, 0, -1);
	sums_pass(query, &sums, process_of(call), DX_BLOCKS_LIVE, &to, 0, 1);
	*result = sums_end(query, &sums, by_bytes);
}

static void call_churn(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct stack_sums sums = {.count = 0};
	sums_pass(query, &sums, process_of(call), DX_BLOCKS_ALL, NULL, HEAP_REALLOC, 1);
	*result = sums_end(query, &sums, by_count);
}

static void call_frequent(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct stack_sums sums = {.count = 0};
	sums_pass(query, &sums, process_of(call), DX_BLOCKS_ALL, NULL, 0, 1);
	*result = sums_end(query, &sums, by_count);
}

const struct dx_method dx_methods_of_questions[] = {
	DX_OF(dx_utility_class, "GetHeapAddress", "n", DX_SEQUENCE, &dx_heap_class, call_get_address, "address",
	      "the heap calls whose block has the address: its whole history"),
	DX_OF(dx_data_class, "HeapAnalyze", "", DX_SEQUENCE, NULL, call_analyze, "",
	      "double frees and frees of unknown addresses, each with the history of its address"),
	DX_OF(dx_utility_class, "HeapAnalyze", "", DX_SEQUENCE, NULL, call_analyze, "", "the same"),
	DX_OF(dx_data_class, "Allocations", "", DX_SEQUENCE, &dx_allocation_class, call_allocations, "",
	      "the blocks that were allocated, each with its end"),
	DX_OF(dx_data_class, "Live", "?p", DX_SEQUENCE, &dx_allocation_class, call_live, "[position]",
	      "the blocks that were there at the position (\"1770:1\", \"10ms\" or 50 percent), or at the current one; "
	      "until one is set, what each process had at its end"),
	DX_OF(dx_data_class, "Leaks", "", DX_SEQUENCE, &dx_stack_row_class, call_leaks, "",
	      "blocks that were never freed, by stack, most bytes first"),
	DX_OF(dx_data_class, "Growth", "p?p", DX_SEQUENCE, &dx_stack_row_class, call_growth, "position [, position]",
	      "by stack: what is live at the second position, or at the end, less what is live at the first one"),
	DX_OF(dx_data_class, "FreedByOtherThread", "", DX_SEQUENCE, &dx_allocation_class, call_cross, "",
	      "blocks that one thread allocated and another one freed"),
	DX_OF(dx_data_class, "ReallocChurn", "", DX_SEQUENCE, &dx_stack_row_class, call_churn, "",
	      "blocks that a realloc made of others, by stack, most reallocs first"),
	DX_OF(dx_data_class, "MostFrequent", "", DX_SEQUENCE, &dx_stack_row_class, call_frequent, "",
	      "all allocations by stack, most blocks first"),
	DX_WRITTEN(dx_data_class, "Largest", "?n", &dx_allocation_class,
		   "data.Allocations().OrderByDescending(b => b.Size).Take(count)", "[count]",
		   "the largest blocks: 10, or this count"),
	DX_WRITTEN(dx_data_class, "Longest", "?n", &dx_allocation_class,
		   "data.Allocations().OrderByDescending(b => b.Lifetime).Take(count)", "[count]",
		   "the blocks that lived longest: 10, or this count"),
	DX_WRITTEN(dx_data_class, "SlowCalls", "n", &dx_heap_class, "data.Heap(false).Where(h => h.Duration >= count)",
		   "nanoseconds", "heap calls that took at least this time"),
	{0},
};
