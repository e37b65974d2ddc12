/* SPDX-License-Identifier: MIT */
#include "action/report/action.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "query/by.h"
#include "trace/code_rows.h"

void action_input_settle(struct action_input *input)
{
	if (input->is_settled)
		return;
	input->is_settled = true;
	struct wrapper_source *sources = memory_zeroed(input->source_count, sizeof(*sources));
	for (unsigned i = 0; i < input->source_count; i++)
		sources[i] = (struct wrapper_source){input->sources[i].table, input->sources[i].names};
	if (input->cull)
		input->has_prepared = heap_cull_prepare(input->cull, sources, input->source_count);
	if (input->callers_of && heap_patterns_may_be_last(input->callers_of)) {
		/* Wrappers are found in stacks with names. */
		for (unsigned i = 0; i < input->source_count && !(input->cull && input->cull->wrappers); i++)
			wrapper_source_name(&sources[i]);
		heap_patterns_settle(input->callers_of, action_names(input));
	}
	free(sources);
}

uint32_t action_site_node(struct action_input *input, struct action_source *source, const struct heap_cell *cell)
{
	const struct heap_table *table = source->table;
	if (source->site_nodes && source->site_nodes[cell->site] != HEAP_NONE)
		return source->site_nodes[cell->site];
	action_input_settle(input);
	if (!source->site_nodes) {
		source->site_nodes = memory_resize(NULL, (size_t)table->site_count + 1, sizeof(*source->site_nodes));
		memset(source->site_nodes, 0xff, table->site_count * sizeof(*source->site_nodes));
	}
	return source->site_nodes[cell->site] = heap_cull_node(
		       input->cull, source->names, heap_names_site(source->names, &table->sites[cell->site]));
}

const struct heap_window *action_window(const struct action_source *source, const struct action *action)
{
	return action->is_by_heap ? &source->by_heap : source->window;
}

const struct heap_filter *action_filter(const struct action_source *source, const struct action *action)
{
	return action->is_by_heap ? &source->of_heaps : source->filter;
}

uint32_t action_split(struct action_input *input, struct action_source *source, uint32_t by)
{
	if (input->source_count == 1 || source->window->by == HEAP_BY_NONE)
		return by;
	bool added;
	uint32_t *split = map_add(&source->splits, by, &added);
	if (added) {
		char *text = heap_by_text(source->window, source->table, by);
		*split = intern_text(&input->splits, text);
		free(text);
	}
	return *split;
}

static void source_fini(struct action_source *source)
{
	if (source->by_heap.is_by_heap)
		heap_filter_fini_beside(&source->of_heaps);
	heap_window_fini(&source->by_heap);
	map_fini(&source->splits);
	free(source->site_nodes);
	free(source->heap_groups);
	free(source->chains);
	source->site_nodes = source->heap_groups = NULL;
	source->chains = NULL;
}

void action_input_fini(struct action_input *input)
{
	for (unsigned i = 0; i < input->source_count; i++)
		source_fini(&input->sources[i]);
	if (input->callers)
		input->callers_free(input->callers);
	if (input->heaps)
		input->heaps_free(input->heaps);
	intern_fini(&input->images);
	intern_fini(&input->splits);
	if (input->has_prepared)
		heap_cull_forget(input->cull);
	input->is_settled = input->has_prepared = false;
	input->callers = NULL;
	input->heaps = NULL;
}

void action_groups_add(struct action_groups *groups, uint32_t group)
{
	for (size_t i = 0; i < groups->count; i++)
		if (groups->items[i] == group)
			return;
	memory_grow(groups->items, groups->count, groups->capacity);
	groups->items[groups->count++] = group;
}

char *action_copy(const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		memory_exhausted(0);
	return copy;
}

char *action_label(struct action_input *input, const struct heap_name *name)
{
	return action_copy(input->layout.has_full_names || !name->short_text ? name->text : name->short_text);
}

char *action_label_beneath(struct action_input *input, const struct heap_name *name, const struct heap_name *above)
{
	bool is_same = above && above->image && name->image && name->short_symbol && !strcmp(above->image, name->image);
	return is_same && !input->layout.has_full_names ? action_copy(name->short_symbol) : action_label(input, name);
}

static void json_image(struct action_input *input, uint32_t image_id, uint64_t offset, struct json *json)
{
	const struct trace_image *image = heap_names_image(action_names(input), image_id);
	if (!image)
		return;
	if (image->build_id_size)
		json_bytes(json, "build_id", image->build_id, image->build_id_size);
	if (offset)
		json_address(json, "offset", offset);
}

static void json_words(const struct heap_name *name, struct json *json)
{
	if (name->image)
		json_text(json, "image", name->image);
	if (name->symbol || !name->image)
		json_text(json, "symbol", name->symbol ? name->symbol : name->text);
}

/* Native code has no key of it. */
static void json_kind(const struct heap_name *name, struct json *json)
{
	if (heap_name_is_managed(name))
		json_text(json, "kind", heap_frame_kinds[heap_frame_kind(name, false)]);
}

/* Behind the keys that there were before it. */
static void json_short(const struct heap_name *name, struct json *json)
{
	if (name->short_symbol)
		json_text(json, "short", name->short_symbol);
}

void action_json_name(struct action_input *input, const struct heap_name *name, struct json *json)
{
	json_words(name, json);
	json_kind(name, json);
	json_image(input, name->image_id, name->offset, json);
	json_short(name, json);
}

void action_json_node(struct action_input *input, uint32_t node, struct json *json)
{
	const struct heap_frame *frame = heap_names_frame(action_names(input), node);
	const struct heap_name *name = heap_names_name(action_names(input), frame->name);
	json_words(name, json);
	if (frame->file)
		json_text(json, "file", frame->file);
	if (frame->line)
		json_count(json, "line", frame->line);
	if (frame->is_inlined)
		json_bool(json, "inlined", true);
	json_kind(name, json);
	json_image(input, frame->image, frame->offset, json);
	json_short(name, json);
}
