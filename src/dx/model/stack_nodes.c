/* SPDX-License-Identifier: MIT */
/*
 * Two nodes may have one text: files of one name with other build-ids have names of their own, which read alike. So a
 * node is found by the texts of its names, and the first such node stands for all.
 */
#include "dx/model/stack_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/memory.h"
#include "dx/model/debugger.h"
#include "query/frame_names.h"
#include "trace/row_ids.h"

static const char no_stack[] = "[no stack]"; /* of the empty stack (heap_names_text()) */

struct stack_nodes {
	struct dx_query *query;
	struct heap_names *names;
	struct intern texts;
	struct map children; /* (parent, text) -> the node that stands for it */
	uint32_t *first;     /* by node: the node that stands for it; 0: not known yet */
	size_t capacity;
	uint32_t *path; /* nodes around one, that are not known yet */
	size_t path_capacity;
	uint32_t *text_of; /* by name: its text plus one; 0: not known yet */
	size_t text_capacity;
	bool is_wrong;
};

struct stack_nodes *stack_nodes_new(struct dx_query *query)
{
	struct stack_nodes *nodes = memory_zeroed(1, sizeof(*nodes));
	nodes->query = query;
	nodes->names = dx_session_names(query->session);
	nodes->is_wrong = !nodes->names;
	return nodes;
}

void stack_nodes_free(struct stack_nodes *nodes)
{
	if (!nodes)
		return;
	intern_fini(&nodes->texts);
	map_fini(&nodes->children);
	free(nodes->first);
	free(nodes->path);
	free(nodes->text_of);
	free(nodes);
}

/* Make room for numbers below `count`, zeroed. */
static void room_make(uint32_t **items, size_t *capacity, size_t count)
{
	if (count <= *capacity)
		return;
	size_t more = memory_capacity(*capacity, count);
	*items = memory_resize(*items, more, sizeof(**items));
	memset(*items + *capacity, 0, (more - *capacity) * sizeof(**items));
	*capacity = more;
}

static uint32_t text_find(struct stack_nodes *nodes, uint32_t name)
{
	room_make(&nodes->text_of, &nodes->text_capacity, (size_t)name + 1);
	if (!nodes->text_of[name]) {
		const char *text = heap_names_name(nodes->names, name)->text;
		nodes->is_wrong |= strchr(text, ';') != NULL || !strcmp(text, no_stack);
		nodes->text_of[name] = intern_text(&nodes->texts, text) + 1;
	}
	return nodes->text_of[name] - 1;
}

bool stack_nodes_find(struct stack_nodes *nodes, const struct heap_site *site, uint32_t *node)
{
	uint32_t at = 0, count = 0;
	*node = 0;
	if (nodes->is_wrong)
		return false;
	at = site->entry == TRACE_NONE ? heap_names_stack(nodes->names, site->stack)
				       : heap_names_site(nodes->names, site);
	room_make(&nodes->first, &nodes->capacity, heap_names_node_count(nodes->names));
	for (; at && !nodes->first[at]; at = heap_names_frame(nodes->names, at)->parent) {
		room_make(&nodes->path, &nodes->path_capacity, (size_t)count + 1);
		nodes->path[count++] = at;
	}
	uint32_t found = at ? nodes->first[at] : 0;
	while (count) {
		bool added;
		at = nodes->path[--count];
		uint32_t text = text_find(nodes, heap_names_frame(nodes->names, at)->name);
		uint32_t *known = map_add(&nodes->children, map_pair(found, text), &added);
		if (added)
			*known = at;
		found = nodes->first[at] = *known;
	}
	*node = found;
	return !nodes->is_wrong;
}
