/* SPDX-License-Identifier: MIT */
#include "server/answer/question_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cells/cell_below.h"
#include "cells/cell_names.h"
#include "query/scan.h"

/* ---- stacks with a function ---- */

/* "image!" stands for all functions of an image. */
static bool is_called(const struct heap_names *names, uint32_t name, const char *key)
{
	char image[CELL_NAME_ROOM];
	const size_t length = strcspn(key, "!");
	if (strcmp(key + length, "!") != 0)
		return cell_name_is(names, name, key);
	cell_name_image(names, name, image);
	return strlen(image) == length && !memcmp(image, key, length);
}

/* Return by node whether its function has this key, or, if it is to be `through` it, a caller's. */
static bool *nodes_called(const struct heap_names *names, const char *key, bool is_through)
{
	const uint32_t name_count = heap_names_count(names), count = heap_names_node_count(names);
	bool *is_name = memory_zeroed((size_t)name_count + 1, sizeof(*is_name));
	bool *called = memory_zeroed(count, sizeof(*called));
	for (uint32_t name = 0; name < name_count; name++)
		is_name[name] = is_called(names, name, key);
	called[0] = is_called(names, CELL_NO_STACK, key);
	for (uint32_t node = 1; node < count; node++) {
		const struct heap_frame *frame = heap_names_frame(names, node);
		called[node] = is_name[frame->name] || (is_through && frame->parent && called[frame->parent]);
	}
	free(is_name);
	return called;
}

/* Leave out the sites whose stacks do not go through a function, or, with `cull`, whose asker is another one. */
static void sites_restrict(bool *sites, const struct action_source *source, const uint32_t *nodes, const char *key,
			   struct heap_cull *cull)
{
	if (!key)
		return;
	bool *called = nodes_called(source->names, key, !cull);
	for (uint32_t i = 0; i < source->table->site_count; i++)
		if (sites[i])
			sites[i] = called[cull && nodes[i] ? heap_cull_node(cull, source->names, nodes[i]) : nodes[i]];
	free(called);
}

/* ---- stacks along a path of the page ---- */

enum { NO_KEY = UINT32_MAX };

/* The frames of a path. Equal keys have one id, which is the place of the first of them. */
struct stack_path {
	char *text;
	const char **keys;
	uint32_t *ids, count;
	size_t capacity;
	uint32_t *of_name; /* by name of the trace: its id, or NO_KEY */
	bool is_merged;
};

static uint32_t key_place(const struct stack_path *path, const char *key)
{
	for (uint32_t i = 0; i < path->count; i++)
		if (!strcmp(path->keys[i], key))
			return i;
	return NO_KEY;
}

static void path_read(struct stack_path *path, const struct heap_names *names, const char *frames)
{
	const size_t size = strlen(frames) + 1;
	char *rest = path->text = memcpy(memory_resize(NULL, size, 1), frames, size), *frame;
	while ((frame = strsep(&rest, "\n"))) {
		memory_grow(path->keys, path->count, path->capacity);
		path->keys[path->count++] = frame;
	}
	path->ids = memory_zeroed(path->count, sizeof(*path->ids));
	for (uint32_t i = 0; i < path->count; i++)
		path->ids[i] = key_place(path, path->keys[i]);
	const uint32_t name_count = heap_names_count(names);
	path->of_name = memory_zeroed((size_t)name_count + 1, sizeof(*path->of_name));
	for (uint32_t name = 0; name < name_count; name++) {
		path->of_name[name] = NO_KEY;
		for (uint32_t i = 0; i < path->count && path->of_name[name] == NO_KEY; i++)
			if (path->ids[i] == i && cell_name_is(names, name, path->keys[i]))
				path->of_name[name] = i;
	}
}

static void path_free(struct stack_path *path)
{
	free(path->of_name);
	free(path->ids);
	free(path->keys);
	free(path->text);
}

static bool is_among(const uint32_t *ids, uint32_t count, uint32_t id)
{
	for (uint32_t i = 0; i < count && id != NO_KEY; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* Return whether the path is the inner end of the stack of a node. Merged, callers that were passed are left out. */
static bool path_ends(const struct stack_path *path, const struct heap_names *names, uint32_t node)
{
	uint32_t matched = 0;
	while (node && matched < path->count) {
		const struct heap_frame *frame = heap_names_frame(names, node);
		const uint32_t id = path->of_name[frame->name];
		if (path->is_merged && is_among(path->ids, matched, id)) {
			node = frame->parent;
			continue;
		}
		if (id != path->ids[matched++])
			return false;
		node = frame->parent;
	}
	return matched == path->count;
}

/* Return whether the stack of a node begins with the path when each recursive call leads back to the call above it.
   `begin` has room for the path's frames. */
static bool path_begins(const struct stack_path *path, const struct heap_names *names, uint32_t node, uint32_t *begin)
{
	uint32_t *nodes = NULL, count = 0, length = 0;
	size_t capacity = 0;
	for (; node; node = heap_names_frame(names, node)->parent) {
		memory_grow(nodes, count, capacity);
		nodes[count++] = node;
	}
	while (count) {
		const uint32_t id = path->of_name[heap_names_frame(names, nodes[--count])->name];
		if (is_among(begin, length, id)) {
			while (begin[length - 1] != id)
				length--;
		} else if (length < path->count) {
			begin[length++] = id;
		}
	}
	free(nodes);
	return length == path->count && !memcmp(begin, path->ids, length * sizeof(*begin));
}

static void sites_along(bool *sites, const struct question *question, const struct action_source *source,
			const uint32_t *nodes, struct heap_cull *cull)
{
	struct stack_path path = {.is_merged = question->is_merged};
	path_read(&path, source->names, question->ends ? question->ends : question->node);
	uint32_t *begin = memory_zeroed(path.count, sizeof(*begin));
	for (uint32_t i = 0; i < source->table->site_count; i++) {
		const uint32_t node =
			nodes[i] && !question->is_whole ? heap_cull_node(cull, source->names, nodes[i]) : nodes[i];
		sites[i] = node ? question->ends ? path_ends(&path, source->names, node)
						 : path_begins(&path, source->names, node, begin)
				: path.count == 1 && cell_name_is(source->names, CELL_NO_STACK, path.keys[0]);
	}
	free(begin);
	path_free(&path);
}

bool *question_stacks_choose(const struct question *question, const struct action_source *source, const uint32_t *nodes,
			     struct heap_cull *cull)
{
	const uint32_t site_count = source->table->site_count;
	bool *sites;
	if (question->node && !question->is_merged) {
		sites = cell_below_find(source->table, source->names, nodes, question->node);
	} else {
		sites = memory_zeroed((size_t)site_count + 1, sizeof(*sites));
		memset(sites, true, site_count);
	}
	if (sites && (question->ends || (question->node && question->is_merged)))
		sites_along(sites, question, source, nodes, cull);
	if (sites) {
		sites_restrict(sites, source, nodes, question->asker, cull);
		sites_restrict(sites, source, nodes, question->through, NULL);
	}
	if (sites && memchr(sites, true, site_count))
		return sites;
	free(sites);
	return NULL;
}

void question_blocks_each(const struct question *question, const struct action_source *source, const bool *sites,
			  question_block_take *take, void *context)
{
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_ALL, source->filter, sites};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan))) {
		heap_rows_each (rows, i) {
			const struct heap_allocation block = heap_rows_get(rows, i);
			if (sites[block.site] && question_selects(question, &block))
				take(context, &block, heap_weigh(source->table, &block));
		}
	}
	heap_scan_end(&scan);
}

int question_stacks_missing(struct diag *diag)
{
	return diag_fail(diag, ENOENT, "no stack of the trace has these frames; lumped ones are not told apart");
}

bool question_selects(const struct question *question, const struct heap_allocation *block)
{
	if (question->has_moment)
		return heap_is_live_at(block, question->at_ns);
	const struct heap_range range = question->has_range ? (struct heap_range){question->from_ns, question->to_ns}
							    : (struct heap_range){INT64_MIN, INT64_MAX};
	enum heap_class class = block->flags & HEAP_EARLIER ? HEAP_CLASS_NONE : heap_class_of(block, range);
	return class != HEAP_CLASS_NONE && (!question->classes || question->classes & HEAP_CLASS_BIT(class));
}
