/* SPDX-License-Identifier: MIT */
#include "dx/model/objects_heap.h"

#include <string.h>

#include "base/digits.h"
#include "base/text.h"
#include "columns/event_columns.h"
#include "dx/model/block_pass.h"
#include "dx/model/event_reader.h"
#include "dx/model/faults.h"
#include "dx/model/objects.h"
#include "dx/model/stack_frames.h"
#include "trace/call_arguments.h"
#include "trace/code_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { FLAG_ZERO = 0x8, MALLOCX_ZERO = 0x40, PROT_WRITE_BIT = 2 };
#define FLAG_NESTED UINT64_C(0x80000000)
#define BIT(kind) (1u << EVENT_##kind)

static const struct dx_event *event_of(const struct dx_value *object)
{
	return object->data;
}

static bool is_call_of_block(const struct dx_event *event)
{
	return event->row.kind <= EVENT_FREE;
}

static struct column_row row_of(const struct dx_query *query, const struct dx_event *event)
{
	return (struct column_row){.dictionary = query->session->dictionary, .id = event->number, .event = event->row};
}

static unsigned function_of(const struct dx_query *query, const struct dx_event *event)
{
	const struct column_row row = row_of(query, event);
	return column_call(&row).function;
}

/* ---- documented members ---- */

static void get_base(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct dx_event *event = event_of(object);
	(void)query;
	if (event->row.kind == EVENT_FREE)
		*value = dx_address(event->row.address);
	else if (event->row.kind == EVENT_REALLOC)
		*value = dx_address(event->row.previous);
}

/* What xheap_heap_create_sized() says of a heap. */
static bool is_sized(const struct dx_query *query, const struct dx_value *object)
{
	return function_of(query, event_of(object)) == FUNCTION_HEAP_CREATE_SIZED;
}

DX_GETTER_IF(get_heap_base, is_sized(query, object), dx_address(event_of(object)->row.argument))
DX_GETTER_IF(get_reserve, is_sized(query, object), dx_number(event_of(object)->row.size))
DX_GETTER_IF(get_commit, is_sized(query, object), dx_number(event_of(object)->row.argument2))

static bool heap_is_nested(struct dx_query *query, uint32_t heap)
{
	struct dx_session *session = query->session;
	if (!session->is_nested_known) {
		session->is_nested_known = true;
		for (uint32_t i = 0; i < session->dictionary->entry_count; i++)
			session->has_nested |= function_is_annotation(session->dictionary->entries[i].function);
		if (session->has_nested && !dx_session_table(session))
			dx_stop(query, -1, "the heaps that lie in others cannot be found");
	}
	return session->has_nested && session->table && heap < session->dictionary->heap_count &&
	       session->table->inside[heap] != TRACE_NONE;
}

bool dx_event_flags(struct dx_query *query, const struct dx_event *event, uint64_t *flags)
{
	unsigned function = function_of(query, event);
	if (!is_call_of_block(event))
		return false;
	bool has_word = function == FUNCTION_MALLOCX || function == FUNCTION_RALLOCX;
	bool is_zeroed = function == FUNCTION_CALLOC || function == FUNCTION_OBJECT_CALLOC ||
			 (has_word && event->row.argument & MALLOCX_ZERO);
	*flags = (is_zeroed ? FLAG_ZERO : 0) | (heap_is_nested(query, event->row.heap) ? FLAG_NESTED : 0);
	return true;
}

static void get_flags(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	uint64_t flags;
	if (dx_event_flags(query, event_of(object), &flags))
		*value = dx_number(flags);
}

DX_GETTER(get_start, dx_event_start(event_of(object)))
DX_GETTER(get_end, dx_event_end(event_of(object)))

static void get_result(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct dx_event *event = event_of(object);
	(void)query;
	if (event->row.kind == EVENT_FREE || event->row.kind == EVENT_LOCK || event->row.kind == EVENT_UNLOCK ||
	    event->row.kind == EVENT_DESTROY)
		*value = dx_number(!(event->row.flags & EVENT_IN_FLIGHT));
}

static void get_read_only(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct dx_event *event = event_of(object);
	(void)query;
	if (event->row.kind == EVENT_PROTECT)
		*value = dx_number(!(event->row.argument & PROT_WRITE_BIT));
}

/* ---- parameters ---- */

/* In its order. dump has a pool's new block in its column of addresses alone, and a heap's name in its row. */
static const char *parameters_of(unsigned function)
{
	return function == FUNCTION_HEAP_ALLOC          ? "heap,block,size"
	       : function == FUNCTION_HEAP_REALLOC      ? "heap,pointer,block,size"
	       : function == FUNCTION_HEAP_CREATE       ? "heap,name"
	       : function == FUNCTION_HEAP_CREATE_SIZED ? "heap,name,base,reserve,commit"
							: call_parameters(function);
}

/* A heap without a name of its own is "IMAGE annotated" (session/drain/translate.c). */
static bool is_made_name(const struct trace_dictionary *dictionary, const char *name)
{
	static const char suffix[] = " annotated";
	size_t length = strlen(name);
	if (length < strlen(suffix) || strcmp(name + length - strlen(suffix), suffix) != 0)
		return false;
	length -= strlen(suffix);
	if (length == 1 && *name == '?')
		return true;
	for (uint32_t i = 0; i < dictionary->image_count; i++) {
		const char *image = text_file_name(dictionary->images[i].path);
		if (strlen(image) == length && !memcmp(image, name, length))
			return true;
	}
	return false;
}

/* The name that the program gave the heap; 0: none. */
static struct dx_value name_of(const struct dx_query *query, const struct dx_event *event)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	const char *name = event->row.heap < dictionary->heap_count ? dictionary->heaps[event->row.heap].name : "";
	return !*name || is_made_name(dictionary, name) ? dx_address(0) : dx_text(name);
}

static struct dx_value parameter_of(struct dx_query *query, const struct dx_event *event,
				    const struct call_record *call, const char *name, size_t length)
{
	if (!strncmp(name, "name", length))
		return name_of(query, event);
	if (!strncmp(name, "block", length))
		return dx_address(event->row.address);
	/* There were more heaps than the recorder has room for. Calls of a heap as a whole have it as their address. */
	bool is_unknown = !strncmp(name, "heap", length) && event->row.heap >= query->session->dictionary->heap_count;
	if (is_unknown && is_call_of_block(event))
		return dx_error(query, "the heap is not recorded");
	uint64_t argument = is_unknown ? event->row.address : call_argument(call, name, length);
	return call_argument_is_address(name, length) ? dx_address(argument) : dx_number(argument);
}

static void get_parameters(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct dx_event *event = event_of(object);
	const struct column_row row = row_of(query, event);
	const struct call_record call = column_call(&row);
	struct dx_list *list = dx_list_new(query, query->arena);
	uint64_t count = 0;
	for (const char *at = parameters_of(call.function); *at;) {
		size_t length = strcspn(at, ",");
		struct dx_element element = {parameter_of(query, event, &call, at, length), dx_number(count++)};
		dx_list_add(list, &element);
		at += length + (at[length] == ',');
	}
	*value = dx_list_value(query, list, 0, dx_list_count(list));
}

/* ---- members beyond ---- */

DX_GETTER(get_thread, dx_id_object(query, &dx_thread_class, event_of(object)->row.thread))
DX_GETTER(get_process, dx_id_object(query, &dx_process_class, event_of(object)->row.process))

static uint32_t node_of(struct dx_query *query, const struct dx_value *object)
{
	const struct dx_event *event = event_of(object);
	return dx_stack_node(query, event->row.flags & EVENT_NO_STACK ? 0 : event->row.stack, event->row.entry);
}

DX_GETTER(get_stack, dx_stack(query, node_of(query, object)))
DX_GETTER(get_frames, dx_frames(query, node_of(query, object)))
DX_GETTER(get_caller, dx_caller(query, node_of(query, object)))

DX_GETTER_IF(get_error, (event_of(object)->row.flags & EVENT_FAILED) != 0, dx_signed(event_of(object)->row.result))

/* Hexadecimal digits. */
static struct dx_value id_of(struct dx_query *query, const void *bytes, size_t size)
{
	char digits[THREAD_CONTEXT_DIGITS_MAX + 1];
	digits_of_bytes(digits, bytes, size);
	return dx_text(dx_format(query->arena, "%s", digits));
}

static bool has_context(const struct dx_value *object)
{
	return !thread_context_is_none(&event_of(object)->context);
}

DX_GETTER_IF(get_trace_id, has_context(object),
	     id_of(query, event_of(object)->context.trace_id, THREAD_CONTEXT_TRACE_BYTES))
DX_GETTER_IF(get_span_id, has_context(object),
	     id_of(query, &event_of(object)->context.span_id, THREAD_CONTEXT_SPAN_BYTES))

static void get_state(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct dx_event *event = event_of(object);
	if (event->row.kind == EVENT_FREE || event->row.kind == EVENT_REALLOC)
		*value = dx_text(dx_fault_words[dx_fault_of(query, event)]);
}

static void get_block(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	struct dx_block block;
	if (!dx_block_of_event(query, event_of(object), &block))
		return;
	struct dx_block *kept = dx_new(query->arena, struct dx_block, 1);
	*kept = block;
	*value = dx_object(&dx_allocation_class, kept);
}

/* Members of the block that the call allocated; of a Free, it is the one that it ended, of which it has its own. */
static void get_of_block(struct dx_query *query, const struct dx_value *object, const char *name,
			 struct dx_value *value)
{
	struct dx_value block = {.kind = DX_ABSENT};
	if (event_of(object)->row.kind != EVENT_FREE)
		get_block(query, object, &block);
	if (block.kind == DX_OBJECT)
		*value = dx_member_get(query, &block, name, NULL);
}

static void get_allocating(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	struct dx_value block = {.kind = DX_ABSENT};
	if (event_of(object)->row.kind == EVENT_FREE)
		get_block(query, object, &block);
	if (block.kind == DX_OBJECT)
		*value = dx_member_get(query, &block, "Event", NULL);
}

static void get_lifetime(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_block(query, object, "Lifetime", value);
}

static void get_free_stack(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_block(query, object, "FreeStack", value);
}

static void get_free_frames(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_block(query, object, "FreeFrames", value);
}

static void get_freed(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	struct dx_block block;
	if (event_of(object)->row.kind != EVENT_FREE && dx_block_of_event(query, event_of(object), &block) &&
	    block.row.end <= HEAP_END_DESTROY)
		get_of_block(query, object, "TimeEnd", value);
}

static void get_ending(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_block(query, object, "End", value);
}

static void get_free_event(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_block(query, object, "FreeEvent", value);
}

static void get_before(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_block(query, object, "Previous", value);
}

static void get_weight(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	get_of_block(query, object, "Weight", value);
}

static const struct dx_call_column call_columns[] = {
	{COLUMN_ADDRESS, BIT(ALLOC) | BIT(REALLOC) | BIT(FREE), .is_zero_for_absent = true},
	{COLUMN_SIZE, BIT(ALLOC) | BIT(REALLOC), .none = UINT64_MAX},
	{COLUMN_PREVIOUS_ADDRESS, BIT(REALLOC), .is_zero_for_absent = true},
	{COLUMN_DURATION, ~0u, .without = EVENT_IN_FLIGHT},
};

const struct dx_call_column *dx_call_column_find(enum column_id column)
{
	for (size_t i = 0; i < sizeof(call_columns) / sizeof(call_columns[0]); i++)
		if (call_columns[i].column == column)
			return &call_columns[i];
	return NULL;
}

static void get_column(struct dx_query *query, const struct dx_value *object, int id, struct dx_value *value)
{
	const struct column *column = column_find(COLUMNS_OF_EVENTS, (enum column_id)id);
	const struct dx_call_column *of = dx_call_column_find((enum column_id)id);
	const struct column_row row = row_of(query, event_of(object));
	uint64_t number;
	bool is_there = column->get(&row, &number);
	if (of &&
	    (!(of->kinds >> row.event.kind & 1) || row.event.flags & of->without || (of->none && number == of->none)))
		return;
	if (is_there || (of && of->is_zero_for_absent))
		*value = dx_column_value(query, column, number);
}

#define COLUMN(id) DX_MEMBER_COLUMN(COLUMN_##id)

static const struct dx_member heap_members[] = {
	{"Action", DX_TEXT, COLUMN(ACTION), NULL, NULL,
	 "what happened: Alloc, ReAlloc, Free, Create, Protect, Lock, Unlock or Destroy"},
	{"Heap", DX_NUMBER, DX_MEMBER_MINOR | COLUMN(HEAP), NULL, NULL,
	 "the handle of the heap, as xheap heap -heaps prints it"},
	{"Address", DX_NUMBER, COLUMN(ADDRESS), NULL, NULL,
	 "Alloc, ReAlloc: the block returned, 0x0 if the call failed; Free: the block freed"},
	{"Size", DX_NUMBER, COLUMN(SIZE), NULL, NULL, "Alloc, ReAlloc: the bytes requested"},
	{"Flags", DX_NUMBER, DX_MEMBER_MINOR, get_flags, NULL,
	 "Alloc, ReAlloc, Free: 0x8 the call zeroes the block, 0x80000000 the heap lies in another one"},
	{"TimeStart", DX_POSITION, 0, get_start, &dx_position_class, "the position at which the call began"},
	{"TimeEnd", DX_POSITION, 0, get_end, &dx_position_class, "the position at which the call returned"},
	{"Result", DX_NUMBER, 0, get_result, NULL,
	 "Free, Lock, Unlock, Destroy: 0x1 the call returned, 0x0 it did not"},
	{"PreviousAddress", DX_NUMBER, COLUMN(PREVIOUS_ADDRESS), NULL, NULL, "ReAlloc: the block before"},
	{"BaseAddress", DX_NUMBER, 0, get_heap_base, NULL, "Create: the heap's first byte, where the call gave it"},
	{"ReserveSize", DX_NUMBER, 0, get_reserve, NULL, "Create: the bytes that the heap may grow to"},
	{"CommitSize", DX_NUMBER, 0, get_commit, NULL, "Create: the bytes that it begins with"},
	{"BaseAddress", DX_NUMBER, DX_MEMBER_HIDDEN, get_base, NULL,
	 "Free: the same as Address; ReAlloc: the same as PreviousAddress"},
	{"MakeReadOnly", DX_NUMBER, 0, get_read_only, NULL, "Protect: 0x1 if the memory can no longer be written"},
	{"Parameters", DX_SEQUENCE, DX_MEMBER_NO_COLUMN, get_parameters, NULL,
	 "the arguments of the function that was called, in its order"},
	{"Thread", DX_OBJECT, DX_MEMBER_EXTRA, get_thread, &dx_thread_class, "the thread that made the call"},
	{"Process", DX_OBJECT, DX_MEMBER_EXTRA, get_process, &dx_process_class, "the process of that thread"},
	{"Function", DX_TEXT, DX_MEMBER_EXTRA | COLUMN(FUNCTION), NULL, NULL, "the function that was called"},
	{"Caller", DX_OBJECT, DX_MEMBER_EXTRA, get_caller, &dx_frame_class,
	 "the frame of the user's own code that called it, as reports show it"},
	{"Stack", DX_TEXT, DX_MEMBER_EXTRA, get_stack, NULL, "the frames of the call, innermost first, joined by ;"},
	{"Frames", DX_SEQUENCE, DX_MEMBER_EXTRA | DX_MEMBER_NO_COLUMN, get_frames, &dx_frame_class,
	 "the same, as objects: Frames[0], and Stack[0], is the heap function, Caller the first frame of the user's "
	 "code"},
	{"Duration", DX_NUMBER, DX_MEMBER_EXTRA | COLUMN(DURATION), NULL, NULL, "nanoseconds that the call took"},
	{"Usable", DX_NUMBER, DX_MEMBER_EXTRA | COLUMN(USABLE), NULL, NULL, "the bytes that the allocator really gave"},
	{"Error", DX_NUMBER, DX_MEMBER_EXTRA, get_error, NULL, "the error number of a failed call"},
	{"State", DX_TEXT, DX_MEMBER_EXTRA, get_state, NULL,
	 "Free, ReAlloc: ok, unknown (no call returned the address) or double (freed before)"},
	{"Freed", DX_POSITION, DX_MEMBER_EXTRA, get_freed, &dx_position_class,
	 "Alloc, ReAlloc: when a call freed, resized or destroyed the block; absent: none did"},
	{"End", DX_TEXT, DX_MEMBER_EXTRA, get_ending, NULL,
	 "Alloc, ReAlloc: how the block ended, as End of an allocation"},
	{"Lifetime", DX_NUMBER, DX_MEMBER_EXTRA, get_lifetime, NULL,
	 "Alloc, ReAlloc: nanoseconds up to the block's end, or its age"},
	{"FreeStack", DX_TEXT, DX_MEMBER_EXTRA, get_free_stack, NULL, "Alloc, ReAlloc: the frames of the free"},
	{"FreeFrames", DX_SEQUENCE, DX_MEMBER_EXTRA | DX_MEMBER_NO_COLUMN, get_free_frames, &dx_frame_class,
	 "the same, as objects"},
	{"FreeEvent", DX_OBJECT, DX_MEMBER_EXTRA | DX_MEMBER_NO_COLUMN, get_free_event, &dx_heap_class,
	 "Alloc, ReAlloc: the call that ended the block"},
	{"Weight", DX_NUMBER, DX_MEMBER_EXTRA, get_weight, NULL,
	 "Alloc, ReAlloc, in a sample: the number of blocks that this one stands for"},
	{"TraceId", DX_TEXT, DX_MEMBER_EXTRA, get_trace_id, NULL,
	 "in a sample: the id of OpenTelemetry's trace that the thread worked for"},
	{"SpanId", DX_TEXT, DX_MEMBER_EXTRA, get_span_id, NULL, "in a sample: the id of the span in that trace"},
	{"PreviousBlock", DX_OBJECT, DX_MEMBER_HIDDEN, get_before, &dx_allocation_class,
	 "ReAlloc: the block before, which has a Previous of its own"},
	{"Block", DX_OBJECT, DX_MEMBER_HIDDEN, get_block, &dx_allocation_class,
	 "Alloc, ReAlloc: the block, with its end; Free: the block that it ended, whose size is Block.Size"},
	{"AllocEvent", DX_OBJECT, DX_MEMBER_HIDDEN, get_allocating, &dx_heap_class,
	 "Free: the call that allocated the block"},
	{"Index", DX_NUMBER, DX_MEMBER_HIDDEN | COLUMN(ID), NULL, NULL,
	 "the index in Heap(), which is seq of xheap dump"},
	{0},
};

const struct dx_class dx_heap_class = {"Heap", "a heap call", heap_members, sizeof(struct dx_event),
				       .get_column = get_column};
