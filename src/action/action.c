/* SPDX-License-Identifier: MIT */
#include "action/action.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const struct action *const action_table[] = {&action_stacks,        &action_frames, &action_inclusive,
					     &action_image,         &action_heaps,  &action_tree,
					     &action_callers_table, &action_chains, &action_totals};
const unsigned action_count = sizeof(action_table) / sizeof(*action_table);

uint32_t action_site_node(struct action_source *source, const struct heap_cell *cell)
{
	const struct heap_table *table = source->table;
	if (!source->site_nodes) {
		source->site_nodes = memory_resize(NULL, (size_t)table->site_count + 1, sizeof(*source->site_nodes));
		memset(source->site_nodes, 0xff, table->site_count * sizeof(*source->site_nodes));
	}
	uint32_t *node = &source->site_nodes[cell->site];
	if (*node == HEAP_NONE)
		*node = heap_cull_node(source->cull, source->names,
				       heap_names_site(source->names, &table->sites[cell->site]));
	return *node;
}

void action_source_fini(struct action_source *source)
{
	action_callers_free(source->callers);
	intern_fini(&source->images);
	free(source->site_nodes);
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

static void json_image(struct action_source *source, uint32_t image_id, uint64_t offset, struct json *json)
{
	if (image_id == TRACE_NONE)
		return;
	const struct trace_image *image = &trace_dictionary(source->trace)->images[image_id];
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

void action_json_name(struct action_source *source, const struct heap_name *name, struct json *json)
{
	json_words(name, json);
	json_image(source, name->image_id, name->offset, json);
}

void action_json_node(struct action_source *source, uint32_t node, struct json *json)
{
	const struct heap_frame *frame = heap_names_frame(source->names, node);
	json_words(heap_names_name(source->names, frame->name), json);
	if (frame->file)
		json_text(json, "file", frame->file);
	if (frame->line)
		json_count(json, "line", frame->line);
	if (frame->is_inlined)
		json_bool(json, "inlined", true);
	json_image(source, frame->image, frame->offset, json);
}
