/* SPDX-License-Identifier: MIT */
/** The rows of an action: groups added up, sorted, and cut. */
#ifndef XHEAP_ACTION_REPORT_ROWS_H
#define XHEAP_ACTION_REPORT_ROWS_H

#include "action/action.h"

struct action_rows {
	struct action_row **rows; /**< those that are shown in order, then the others */
	struct action_row *memory;
	size_t memory_count;
	size_t count; /**< rows before the cut */
	size_t shown; /**< of those, the first ones are to be shown */
};

/** How rows are sorted, from the most to the least. */
struct action_sort {
	const char *key;   /**< as typed: "so" */
	const char *title; /**< "outstanding size" */
	uint64_t (*number)(const struct action_row *row);
};

/** The order with this key, in any case; NULL when there is none. NULL gives the default. */
const struct action_sort *action_sort_find(const char *key);

/** The orders one after the other, or NULL behind the last one. */
const struct action_sort *action_sort_at(unsigned number);

/** "so soc st ...", for messages. */
const char *action_sort_keys(void);

/** Which rows are wanted. */
struct action_choice {
	const struct action_sort *sort;
	uint64_t top;  /**< so many are to be shown */
	bool is_brief; /**< without lifetimes, threads and processes, which take another pass */
};

/** Make the rows from the window's cells. Those of a tree come each behind the one around it. */
void action_rows_make(struct action_rows *rows, struct action_source *source, const struct action *action,
		      const struct heap_window *window, const struct action_choice *choice);
void action_rows_fini(struct action_rows *rows);

#endif
