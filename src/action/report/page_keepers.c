/* SPDX-License-Identifier: MIT */
#include "action/report/page_keepers.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"

/* Return the culled node of a site. */
static uint32_t node_of(struct action_input *input, uint32_t site)
{
	return action_site_node(input, input->sources, &(struct heap_cell){site, 0});
}

uint32_t page_keeper_function(struct action_input *input, uint32_t site)
{
	const uint32_t node = node_of(input, site);
	return node ? heap_names_frame(action_names(input), node)->name + 1 : 0;
}

static int keepers_compare(const void *one, const void *other)
{
	const struct page_keeper *a = one, *b = other;
	if (a->pages != b->pages)
		return a->pages > b->pages ? -1 : 1;
	return a->group < b->group ? -1 : a->group > b->group;
}

void page_keepers_find(struct page_keepers *keepers, struct action_input *input, const struct page_map *map,
		       uint32_t process, bool are_stacks)
{
	struct map places = {0};
	for (size_t i = 0; i < map->count; i++) {
		const struct page_run *run = &map->runs[i];
		bool added;
		if (run->fullness != PAGE_LITTLE || (process != HEAP_NONE && run->process != process))
			continue;
		const uint32_t group = are_stacks ? node_of(input, run->site) : page_keeper_function(input, run->site);
		uint32_t *place = map_add(&places, group, &added);
		if (added) {
			memory_grow(keepers->items, keepers->count, keepers->capacity);
			keepers->items[keepers->count] =
				(struct page_keeper){.group = group, .oldest_ns = run->oldest_ns};
			*place = (uint32_t)keepers->count++;
		}
		struct page_keeper *keeper = &keepers->items[*place];
		keeper->pages += run->count;
		keeper->bytes += run->bytes;
		keeper->blocks += run->blocks;
		keeper->oldest_ns = run->oldest_ns < keeper->oldest_ns ? run->oldest_ns : keeper->oldest_ns;
		keepers->pages += run->count;
		keepers->bytes += run->bytes;
		keepers->blocks += run->blocks;
	}
	map_fini(&places);
	if (keepers->count)
		qsort(keepers->items, keepers->count, sizeof(*keepers->items), keepers_compare);
}
