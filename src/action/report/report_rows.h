/* SPDX-License-Identifier: MIT */
/** The rows of an action over any number of sources: groups added up, sorted, and cut. */
#ifndef XHEAP_ACTION_REPORT_ROWS_H
#define XHEAP_ACTION_REPORT_ROWS_H

#include "action/report/action_sort.h"

struct action_rows {
	struct action_row **rows; /**< those that are shown in order, then the others */
	struct action_row *memory;
	struct action_figures *figures; /**< of memory[i], for each source: from i * source_count on */
	size_t memory_count;
	size_t count;      /**< rows before the cut */
	size_t shown;      /**< of those, the first ones are to be shown */
	struct map row_of; /**< by group and split: the place in memory */
	bool is_shared;    /**< memory, figures and row_of are those of other rows */
};

/** Which rows are wanted. */
struct action_choice {
	const struct action_sort *sort;
	uint64_t top;  /**< so many are to be shown */
	bool is_brief; /**< without lifetimes, threads and processes, which take another pass */
	/** Return how high the row stands: rows that rank alike stand by their total size. NULL: by the sum of the
	    sort's number over all sources. In a tree a row stands at least as high as those beneath it. */
	uint64_t (*rank)(const struct action_row *row, const struct action_choice *choice);
	/** Return whether the row is wanted. In a tree the rows around a wanted row are wanted, too. NULL: all are. */
	bool (*has)(const struct action_row *row, const struct action_choice *choice);
	const void *context; /**< of rank and has */
};

/** Make the rows from the cells of all sources' windows. Those of a tree come each behind the one around it. The totals
 *  are those of the windows. End them with action_rows_fini(). */
void action_rows_make(struct action_rows *rows, struct action_input *input, const struct action *action,
		      const struct action_choice *choice);

/** Choose among rows that were made of the same input and action, for another brief choice. They are shared, and end
 *  after these; their ranks are those of the last choice. For actions without a tree. */
void action_rows_order(struct action_rows *rows, const struct action_rows *of, struct action_input *input,
		       const struct action *action, const struct action_choice *choice);

/** Return whether the rows are of so many sources, each shown one is named and lies where it belongs, and none is there
 *  twice (base/check.h). */
bool action_rows_are_valid(const struct action_rows *rows, unsigned source_count);

/** Free the rows. */
void action_rows_fini(struct action_rows *rows);

/** Return the place in rows->memory of a source's group and cell's `by`, or HEAP_NONE: there is no such row. */
uint32_t action_rows_find(const struct action_rows *rows, struct action_input *input, struct action_source *source,
			  uint32_t group, uint32_t by);

/** Return a number for the row, from its text and the texts around it: the same in every report that has a row of these
 *  names. `by` is the label of the row's split, "" for none (heap_by_text()). The row is one of those that are
 *  shown. */
uint64_t action_row_id(const struct action_rows *rows, const struct action_row *row, const char *by);

#endif
