/* SPDX-License-Identifier: MIT */
/** Who keeps pages that are less than a quarter full: functions or stacks, each with the pages on which its blocks have
    the most bytes. */
#ifndef XHEAP_ACTION_PAGE_KEEPERS_H
#define XHEAP_ACTION_PAGE_KEEPERS_H

#include "action/report/action.h"
#include "query/page_map.h"

struct page_keeper {
	uint32_t group; /**< of functions the name plus 1, of stacks the culled node; 0: there is no stack */
	uint64_t pages, bytes, blocks;
	int64_t oldest_ns; /**< when the oldest block on these pages began */
};

/** Begin with zeros, and free the items. */
struct page_keepers {
	struct page_keeper *items; /**< the one with the most pages first */
	size_t count, capacity;
	uint64_t pages, bytes, blocks; /**< of all */
};

/** Return the function that asked for a site's blocks: its name plus 1, or 0 if there is no stack. */
uint32_t page_keeper_function(struct action_input *input, uint32_t site);

/** Find those of a map of the first source: of one process, or of HEAP_NONE for all. */
void page_keepers_find(struct page_keepers *keepers, struct action_input *input, const struct page_map *map,
		       uint32_t process, bool are_stacks);

#endif
