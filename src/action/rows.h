/* SPDX-License-Identifier: MIT */
/** The rows of an action: groups added up, sorted, and cut. */
#ifndef XHEAP_ACTION_ROWS_H
#define XHEAP_ACTION_ROWS_H

#include "action/action.h"

struct action_row {
	uint32_t group;
	struct heap_numbers numbers;
	int64_t lifetime_min, lifetime_median, lifetime_max; /**< of those begun in the range; absent when there is none */
	uint32_t threads, processes;
	char *text;                  /**< what the group is called */
};

struct action_rows {
	struct action_row **rows;    /**< in order */
	struct action_row *memory;
	size_t count;                /**< rows before the cut */
	size_t shown;                /**< of those, the first ones are to be shown */
};

/** How rows are sorted, from the most to the least. */
struct action_sort {
	const char *key;             /**< as typed: "so" */
	const char *title;           /**< "outstanding size" */
	size_t offset;               /**< of the uint64_t in struct heap_numbers */
};

/** The order with this key, in any case; NULL when there is none. NULL gives the default. */
const struct action_sort *action_sort_find(const char *key);

/** "so soc st ...", for messages. */
const char *action_sort_keys(void);

/** Make the rows; at most `top` are to be shown. */
void action_rows_make(struct action_rows *rows, struct action_source *source, const struct action *action,
		      const struct action_sort *sort, uint64_t top);
void action_rows_fini(struct action_rows *rows);

#endif
