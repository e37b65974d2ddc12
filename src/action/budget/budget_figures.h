/* SPDX-License-Identifier: MIT */
/** The numbers that a budget limits, in one trace: those that `xheap heap` has for the same filter. */
#ifndef XHEAP_ACTION_BUDGET_FIGURES_H
#define XHEAP_ACTION_BUDGET_FIGURES_H

#include "action/budget/budget_match.h"

/** Allocations that the same selections count, with their sums. */
struct budget_group {
	const uint32_t *selections; /**< both numbers; none twice */
	uint32_t *own;              /**< that array, if it is not the one of the matching */
	uint32_t count;
	struct heap_numbers numbers;
};

/**
 * A trace as a budget counts it. Selections have two numbers. The one of budget.selections counts the allocations that
 * pass; that plus budget.keys.count, those that may pass, too: their stacks end early, or their threads have no name.
 */
struct budget_figures {
	const struct budget *budget;
	struct budget_match *match;
	struct action_input *input;
	struct action_source *source;
	struct heap_numbers *numbers; /**< by both numbers; peaks are those of the selection by itself */
	bool *is_doubtful;            /**< by selection: there are allocations that may pass, counted by the second */
	bool has_cut_stacks, has_unnamed_threads;
	bool has_plain_lists; /**< each list of selections is that of its group: there are no doubts, and no threads */
	uint32_t *thread_classes;    /**< by thread: equal numbers pass the same selections */
	struct intern classes;       /**< by such a number: which selections of some threads it passes, or may pass */
	struct budget_group *groups; /**< allocations that the same selections count */
	size_t group_count, group_capacity;
	struct map group_of;  /**< by list of selections and class of threads: the group, from 1 */
	bool *has_peak;       /**< by both numbers: the peak is known */
	uint32_t *site_lists; /**< by site: the list of selections that count it (budget_match_list()) */
};

/**
 * Count for each selection. The source is one of the input's; its filter lets everything pass, and its window is not
 * looked at. End the figures with budget_figures_fini(). Return 0, or -ENOTSUP with the reason in diag: the trace has
 * sums in place of blocks, which do not answer the question.
 */
int budget_figures_make(struct budget_figures *figures, const struct budget *budget, struct budget_match *match,
			struct action_input *input, struct action_source *source, struct diag *diag);

/** Begin figures that are not counted: budget_figures_filter() works on them. End them with budget_figures_fini(). */
void budget_figures_begin(struct budget_figures *figures, const struct budget *budget, struct budget_match *match,
			  struct action_input *input, struct action_source *source);

/** Free the numbers. */
void budget_figures_fini(struct budget_figures *figures);

/** Begin a filter that the allocations of a selection, by either number, pass, prepared with the table. End it with
    heap_filter_fini(). */
void budget_figures_filter(struct heap_filter *filter, const struct budget_figures *figures, uint32_t selection);

/** Return whether some thread of the trace passes, or may pass, the selection's threads and processes. */
bool budget_figures_has_thread(const struct budget_figures *figures, uint32_t selection);

#endif
