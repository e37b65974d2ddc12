/* SPDX-License-Identifier: MIT */
#include "cells/cell_below.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cells/cell_names.h"

/* The frames that are searched for. */
struct below {
	char *text;
	const char **frames;
	uint32_t count;
	size_t capacity;
};

static void below_read(struct below *below, const char *frames)
{
	size_t size = strlen(frames) + 1;
	char *rest = below->text = memcpy(memory_resize(NULL, size, 1), frames, size), *frame;
	while ((frame = strsep(&rest, "\n"))) {
		memory_grow(below->frames, below->count, below->capacity);
		below->frames[below->count++] = frame;
	}
}

/* By node: how many of the frames its path begins with; UINT32_MAX: it has left them. */
static uint32_t *depths_find(const struct below *below, const struct heap_names *names)
{
	uint32_t count = heap_names_node_count(names), *depths = memory_zeroed(count, sizeof(*depths));
	depths[0] = !strcmp(below->frames[0], "![no stack]") && below->count == 1;
	for (uint32_t node = 1; node < count; node++) {
		const struct heap_frame *frame = heap_names_frame(names, node);
		uint32_t depth = frame->parent ? depths[frame->parent] : 0;
		if (depth < below->count)
			depth = cell_name_is(names, frame->name, below->frames[depth]) ? depth + 1 : UINT32_MAX;
		depths[node] = depth;
	}
	return depths;
}

bool *cell_below_find(const struct heap_table *table, const struct heap_names *names, const uint32_t *nodes,
		      const char *frames)
{
	struct below below = {.text = NULL};
	below_read(&below, frames);
	uint32_t *depths = depths_find(&below, names);
	bool *sites = memory_zeroed(table->site_count, sizeof(*sites)), is_any = false;
	for (uint32_t i = 0; i < table->site_count; i++)
		is_any |= sites[i] = depths[nodes[i]] == below.count;
	free(depths);
	free(below.frames);
	free(below.text);
	if (is_any)
		return sites;
	free(sites);
	return NULL;
}
