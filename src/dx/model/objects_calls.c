/* SPDX-License-Identifier: MIT */
#include "dx/model/objects_calls.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/events.h"
#include "base/memory.h"
#include "base/text.h"
#include "dx/model/event_reader.h"
#include "dx/model/event_sequence.h"
#include "dx/model/objects.h"
#include "dx/model/positions.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

static const struct dx_event *event_of(const struct dx_value *object)
{
	return object->data;
}

/* ---- members ---- */

DX_GETTER(get_type, dx_text("Call"))
DX_GETTER(get_tid, dx_number(query->session->dictionary->threads[event_of(object)->row.thread].tid))
DX_GETTER(get_unique, dx_number(event_of(object)->row.thread))

static const char *entry_text(struct dx_query *query, const struct trace_entry *entry)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	const char *image =
		entry->image < dictionary->image_count ? text_file_name(dictionary->images[entry->image].path) : "";
	return *image ? dx_format(query->arena, "%s!%s", image, entry->name) : entry->name;
}

static void get_function(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	if (event_of(object)->row.entry < dictionary->entry_count)
		*value = dx_text(entry_text(query, &dictionary->entries[event_of(object)->row.entry]));
}

/* Where an image lay in the process of the event, then. */
static const struct trace_mapping *mapping_of(const struct trace_dictionary *dictionary, const struct dx_event *event,
					      uint32_t image)
{
	for (uint32_t i = 0; i < dictionary->mapping_count; i++) {
		const struct trace_mapping *mapping = &dictionary->mappings[i];
		if (mapping->image == image && mapping->process == event->row.process &&
		    mapping->load_ns <= event->row.time_ns && mapping->unload_ns >= event->row.time_ns)
			return mapping;
	}
	return NULL;
}

/* The function's address in its image; UINT64_MAX: not known. */
static uint64_t entry_address(struct dx_query *query, uint32_t entry)
{
	struct dx_session *session = query->session;
	if (!session->entry_addresses) {
		session->entry_addresses =
			memory_zeroed((size_t)session->dictionary->entry_count + 1, sizeof(*session->entry_addresses));
		dx_on_release(&session->whole, free, session->entry_addresses);
	}
	uint64_t *address = &session->entry_addresses[entry];
	const struct heap_names *names = *address ? NULL : dx_session_names(session);
	if (names && !heap_names_entry_address(names, &session->dictionary->entries[entry], address))
		*address = UINT64_MAX;
	return *address ? *address : UINT64_MAX;
}

static void get_function_address(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	const struct dx_event *event = event_of(object);
	if (event->row.entry >= dictionary->entry_count)
		return;
	uint64_t address = entry_address(query, event->row.entry);
	const struct trace_mapping *mapping =
		mapping_of(dictionary, event, dictionary->entries[event->row.entry].image);
	if (mapping && address != UINT64_MAX)
		*value = dx_address(mapping->bias + address);
}

static void get_return_address(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	const struct dx_event *event = event_of(object);
	if (event->row.flags & EVENT_NO_STACK || !event->row.stack || event->row.stack >= dictionary->node_count)
		return;
	const struct trace_frame *frame = &dictionary->frames[dictionary->nodes[event->row.stack].frame];
	const struct trace_mapping *mapping =
		frame->image == TRACE_NONE ? NULL : mapping_of(dictionary, event, frame->image);
	if (trace_frame_is_nameless(frame))
		*value = dx_address(trace_frame_address(frame));
	else if (mapping)
		*value = dx_address(mapping->bias + frame->offset);
}

static void get_return_value(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct dx_event *event = event_of(object);
	const struct trace_dictionary *dictionary = query->session->dictionary;
	unsigned function = event->row.entry < dictionary->entry_count ? dictionary->entries[event->row.entry].function
								       : FUNCTION_COUNT;
	/* What a pool reports is no result. */
	if (event->row.flags & EVENT_IN_FLIGHT || function_is_annotation(function))
		return;
	if (function == FUNCTION_POSIX_MEMALIGN)
		*value = dx_signed(event->row.flags & EVENT_FAILED ? event->row.result : 0);
	else if (event->row.kind == EVENT_ALLOC || event->row.kind == EVENT_REALLOC || event->row.kind == EVENT_CREATE)
		*value = dx_address(event->row.address);
}

static void get_parameters(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct dx_value as_heap = dx_object(&dx_heap_class, object->data);
	*value = dx_member_get(query, &as_heap, "Parameters", NULL);
}

DX_GETTER(get_start, dx_event_start(event_of(object)))
DX_GETTER(get_end, dx_event_end(event_of(object)))

static void get_system_start(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	struct dx_value position = dx_event_start(event_of(object));
	*value = dx_position_system_time(query, &position);
}

static void get_system_end(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	struct dx_value position = dx_event_end(event_of(object));
	*value = dx_position_system_time(query, &position);
}

static const struct dx_member call_members[] = {
	{"EventType", DX_TEXT, 0, get_type, NULL, "always Call"},
	{"ThreadId", DX_NUMBER, 0, get_tid, NULL, "the tid"},
	{"UniqueThreadId", DX_NUMBER, 0, get_unique, NULL, "the thread's id in the trace, which no other thread has"},
	{"TimeStart", DX_POSITION, 0, get_start, &dx_position_class, "the position at which the call began"},
	{"TimeEnd", DX_POSITION, 0, get_end, &dx_position_class, "the position at which it returned"},
	{"Function", DX_TEXT, 0, get_function, NULL, "the image and the name of the function"},
	{"FunctionAddress", DX_NUMBER, 0, get_function_address, NULL,
	 "where the function lay; absent if the image's file is not on this machine"},
	{"ReturnAddress", DX_NUMBER, 0, get_return_address, NULL, "where the call returns to"},
	{"ReturnValue", DX_NUMBER, 0, get_return_value, NULL, "what it returned; functions without a result have none"},
	{"Parameters", DX_SEQUENCE, 0, get_parameters, NULL, "its arguments"},
	{"SystemTimeStart", DX_TEXT, 0, get_system_start, NULL, "the approximate time of day, UTC"},
	{"SystemTimeEnd", DX_TEXT, 0, get_system_end, NULL, "the approximate time of day, UTC"},
	{0},
};

const struct dx_class dx_call_class = {"Call", "a call of a heap function", call_members,
				       .data_bytes = sizeof(struct dx_event)};

/* ---- patterns ---- */

/* "libc" is libc.so.6, too. */
static bool image_matches(const char *pattern, size_t length, const char *name)
{
	char room[256] = "";
	if (length >= sizeof(room))
		return false;
	memcpy(room, pattern, length);
	if (!fnmatch(room, name, FNM_CASEFOLD))
		return true;
	return !strncasecmp(room, name, length) && !strncmp(name + length, ".so", 3);
}

static bool entry_matches(const struct trace_dictionary *dictionary, const struct trace_entry *entry,
			  const char *pattern)
{
	const char *mark = strchr(pattern, '!'), *function = mark ? mark + 1 : pattern;
	const char *image =
		entry->image < dictionary->image_count ? text_file_name(dictionary->images[entry->image].path) : "";
	if (mark && !image_matches(pattern, (size_t)(mark - pattern), image))
		return false;
	return !*function || !fnmatch(function, entry->name, FNM_CASEFOLD);
}

#define X(id, name, kind, parameters) name,
static const char *const function_names[] = {HEAP_FUNCTIONS(X)};
#undef X
enum { FUNCTION_NAMES = sizeof(function_names) / sizeof(function_names[0]) };

/* Whether the pattern is of heap functions, and of an image that was mapped: their calls would be here. */
static bool is_recorded(const struct trace_dictionary *dictionary, const char *pattern)
{
	const char *mark = strchr(pattern, '!'), *function = mark ? mark + 1 : pattern;
	bool has_image = !mark, has_function = false;
	for (uint32_t i = 0; i < dictionary->image_count && !has_image; i++)
		has_image =
			image_matches(pattern, (size_t)(mark - pattern), text_file_name(dictionary->images[i].path));
	for (size_t i = 0; i < FUNCTION_NAMES && !has_function; i++)
		has_function = !fnmatch(function, function_names[i], FNM_CASEFOLD);
	return has_image && has_function;
}

const char *const *dx_function_names(struct dx_query *query, bool has_image, size_t *count)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	*count = has_image ? 0 : FUNCTION_NAMES;
	const char **names = dx_new(query->arena, const char *, *count + dictionary->entry_count + 1);
	memcpy(names, function_names, *count * sizeof(*names));
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		names[(*count)++] =
			has_image ? entry_text(query, &dictionary->entries[i]) : dictionary->entries[i].name;
	return names;
}

/* ---- the sequence ---- */

struct calls_state {
	bool *is_wanted; /* by entry */
	uint64_t passed;
};

static void calls_open(struct dx_query *query, struct dx_iterator *iterator)
{
	struct calls_state *state = iterator->state;
	const struct trace_dictionary *dictionary = query->session->dictionary;
	state->is_wanted = dx_new(iterator->home, bool, (size_t)dictionary->entry_count + 1);
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		for (unsigned k = 0; k < iterator->sequence->argument_count; k++)
			state->is_wanted[i] |= entry_matches(dictionary, &dictionary->entries[i],
							     iterator->sequence->arguments[k].text);
}

static bool calls_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct calls_state *state = iterator->state;
	dx_each (query, iterator->source, element) {
		if (element->value.kind == DX_ERROR)
			return true;
		const struct dx_event *event = element->value.data;
		if (event->row.entry < query->session->dictionary->entry_count && state->is_wanted[event->row.entry]) {
			*element = (struct dx_element){dx_object(&dx_call_class, event), dx_number(state->passed++)};
			return true;
		}
	}
	return false;
}

static const struct dx_operator calls_operator = {
	.name = "Calls", .state_bytes = sizeof(struct calls_state), .open = calls_open, .next = calls_next};

static const char *known_functions(struct dx_query *query)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	const char *text = "";
	if (!dictionary->entry_count)
		return "none";
	for (uint32_t i = 0; i < dictionary->entry_count && strlen(text) < 200; i++)
		text = dx_format(query->arena, "%s%s%s", text, *text ? ", " : "",
				 entry_text(query, &dictionary->entries[i]));
	return text;
}

void dx_calls(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	uint32_t process = call->receiver.data ? dx_id_of(&call->receiver) : TRACE_NONE;
	for (unsigned k = 0; k < call->count; k++) {
		if (!*call->arguments[k].text) {
			*result = dx_error(query, "Calls: a function's name is missing, such as \"libc!malloc\"");
			return;
		}
		bool has_any = is_recorded(dictionary, call->arguments[k].text);
		for (uint32_t i = 0; i < dictionary->entry_count; i++)
			has_any |= entry_matches(dictionary, &dictionary->entries[i], call->arguments[k].text);
		if (!has_any) {
			*result = dx_error(
				query, "calls of %s are not recorded: xheap records calls of heap functions, here %s",
				call->arguments[k].text, known_functions(query));
			return;
		}
	}
	struct dx_value events = dx_events(query, process, true, call->column);
	struct dx_sequence *sequence = dx_sequence_new(query, &calls_operator, events.sequence, call->column);
	sequence->argument_count = call->count;
	memcpy(sequence->arguments, call->arguments, sizeof(sequence->arguments));
	*result = dx_sequence_value(sequence);
}
