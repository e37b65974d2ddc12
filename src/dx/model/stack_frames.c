/* SPDX-License-Identifier: MIT */
#include "dx/model/stack_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "dx/model/debugger.h"
#include "query/cull.h"
#include "trace/row_ids.h"

/* Frames of one name are equal: the name comes first, and is what they are compared by. */
struct dx_frame {
	uint32_t name, node;
};

static const struct dx_frame *frame_of(const struct dx_value *object)
{
	return object->data;
}

static const struct heap_name *name_of(const struct dx_query *query, const struct dx_value *object)
{
	return heap_names_name(query->session->names, frame_of(object)->name);
}

static const struct heap_frame *place_of(const struct dx_query *query, const struct dx_value *object)
{
	return heap_names_frame(query->session->names, frame_of(object)->node);
}

static void get_function(struct dx_query *query, const struct dx_value *object, struct dx_value *value)
{
	const struct heap_name *name = name_of(query, object);
	*value = dx_text(name->symbol ? name->symbol : name->text);
}

DX_GETTER_IF(get_image, name_of(query, object)->image, dx_text(name_of(query, object)->image))
DX_GETTER_IF(get_file, place_of(query, object)->file, dx_text(place_of(query, object)->file))
DX_GETTER_IF(get_line, place_of(query, object)->line, dx_decimal(place_of(query, object)->line))
DX_GETTER(get_inlined, dx_bool(place_of(query, object)->is_inlined))
DX_GETTER(get_kind,
	  dx_text(heap_frame_kinds[heap_frame_kind(name_of(query, object), place_of(query, object)->is_inlined)]))

static const struct dx_member frame_members[] = {
	{"Function", DX_TEXT, 0, get_function, NULL, "the function; without a symbol the image and the offset"},
	{"Image", DX_TEXT, 0, get_image, NULL, "the file name of its image"},
	{"File", DX_TEXT, 0, get_file, NULL, "the source file, where it is known and one"},
	{"Line", DX_NUMBER, 0, get_line, NULL, "the line in it"},
	{"IsInlined", DX_BOOL, 0, get_inlined, NULL, "whether it is inlined into the next frame"},
	{"Kind", DX_TEXT, 0, get_kind, NULL, "native, inlined (a native function in the next frame), python or jit"},
	{0},
};

static const char *frame_show(struct dx_query *query, const struct dx_value *object)
{
	return name_of(query, object)->text;
}

const struct dx_class dx_frame_class = {"Frame",
					"a frame of a stack",
					frame_members,
					sizeof(struct dx_frame),
					.identity_bytes = sizeof(uint32_t),
					.show = frame_show};

static struct dx_value frame_new(struct dx_query *query, uint32_t node)
{
	struct dx_frame *frame = dx_new(query->arena, struct dx_frame, 1);
	*frame = (struct dx_frame){heap_names_frame(query->session->names, node)->name, node};
	return dx_object(&dx_frame_class, frame);
}

uint32_t dx_stack_node(struct dx_query *query, uint32_t stack, uint32_t entry)
{
	struct heap_names *names = dx_session_names(query->session);
	const struct heap_site site = {stack, entry};
	return !names ? 0 : entry == TRACE_NONE ? heap_names_stack(names, stack) : heap_names_site(names, &site);
}

/* ---- the collection ---- */

struct frames_state {
	uint32_t node;
	uint64_t passed;
};

static void frames_open(struct dx_query *query, struct dx_iterator *iterator)
{
	struct frames_state *state = iterator->state;
	(void)query;
	state->node = (uint32_t)iterator->sequence->arguments[0].number;
}

static bool frames_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct frames_state *state = iterator->state;
	if (!state->node)
		return false;
	*element = (struct dx_element){frame_new(query, state->node), dx_number(state->passed++)};
	state->node = heap_names_frame(query->session->names, state->node)->parent;
	return true;
}

static const struct dx_operator frames_operator = {
	.name = "Frames", .state_bytes = sizeof(struct frames_state), .open = frames_open, .next = frames_next};

struct dx_value dx_frames(struct dx_query *query, uint32_t node)
{
	struct dx_sequence *sequence = dx_sequence_new(query, &frames_operator, NULL, -1);
	sequence->argument_count = 1;
	sequence->arguments[0] = dx_number(node);
	return dx_sequence_value(sequence);
}

/* ---- the caller ---- */

/* What reports fold, and by node that of the caller. */
struct dx_callers {
	struct heap_cull cull;
	struct map by_node;
};

static void callers_end(void *context)
{
	struct dx_callers *callers = context;
	heap_cull_fini(&callers->cull);
	map_fini(&callers->by_node);
	free(callers);
}

/* Return what reports fold, found once: wrappers are those of the whole trace. NULL: the session has said why. */
static struct dx_callers *callers_of(struct dx_session *session)
{
	struct heap_table *table = dx_session_table(session);
	if (session->callers || !table)
		return session->callers;
	session->callers = memory_zeroed(1, sizeof(*session->callers));
	dx_on_release(&session->whole, callers_end, session->callers);
	const struct wrapper_source source = {table, dx_session_names(session)};
	heap_cull_use_default(&session->callers->cull);
	heap_cull_prepare(&session->callers->cull, &source, 1);
	return session->callers;
}

static uint32_t caller_node(struct dx_callers *callers, struct heap_names *names, uint32_t node)
{
	bool added;
	uint32_t *caller = map_add(&callers->by_node, node, &added);
	if (added)
		*caller = heap_cull_user_node(&callers->cull, names, heap_cull_node(&callers->cull, names, node));
	return *caller;
}

struct dx_value dx_caller(struct dx_query *query, uint32_t node)
{
	struct dx_value none = {.kind = DX_ABSENT};
	struct dx_callers *callers = node ? callers_of(query->session) : NULL;
	if (node && !callers)
		dx_stop(query, -1, "the callers of the trace cannot be found");
	return callers ? frame_new(query, caller_node(callers, query->session->names, node)) : none;
}

/* ---- texts ---- */

struct dx_value dx_stack(struct dx_query *query, uint32_t node)
{
	struct heap_names *names = dx_session_names(query->session);
	if (!names)
		return dx_text("");
	char *text = heap_names_text(names, node, 0);
	struct dx_value value = dx_text(dx_copy_text(query->arena, text, strlen(text)));
	value.node = node;
	free(text);
	return value;
}

struct dx_value dx_stack_folded(struct dx_query *query, const struct dx_value *value)
{
	unsigned count = 0;
	if (value->kind != DX_TEXT || !value->node)
		return *value;
	for (uint32_t node = value->node; node; node = heap_names_frame(query->session->names, node)->parent)
		count++;
	const struct dx_value caller = dx_caller(query, value->node);
	if (count == 1 || caller.kind != DX_OBJECT)
		return *value;
	return dx_text(dx_format(query->arena, "%s;[%u more]", frame_show(query, &caller), count - 1));
}
