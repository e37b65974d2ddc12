/* SPDX-License-Identifier: MIT */
/** The numbers that a budget limits, in one trace: those that `xheap heap` has for the same filter. */
#ifndef XHEAP_ACTION_BUDGET_FIGURES_H
#define XHEAP_ACTION_BUDGET_FIGURES_H

#include "action/budget_match.h"

/** A trace as a budget counts it. */
struct budget_figures {
	const struct budget *budget;
	struct budget_match *match;
	struct action_input *input;
	struct action_source *source;
	struct heap_numbers *numbers; /**< by selection; peaks are those of the selection by itself */
	bool *has_peak;               /**< by selection: its peak is known */
	uint32_t *site_lists;         /**< by site: the list of selections that count it (budget_match_list()) */
};

/**
 * Count for each selection. The source is one of the input's; its filter lets everything pass, and its window is not
 * looked at. End the figures with budget_figures_fini(). Return 0, or -ENOTSUP with the reason in diag: the trace has
 * sums in place of blocks, which do not answer the question.
 */
int budget_figures_make(struct budget_figures *figures, const struct budget *budget, struct budget_match *match,
			struct action_input *input, struct action_source *source, struct diag *diag);

/** Free the numbers. */
void budget_figures_fini(struct budget_figures *figures);

/** Begin a filter that the allocations of a selection pass, prepared with the table. End it with heap_filter_fini(). */
void budget_figures_filter(struct heap_filter *filter, const struct budget_figures *figures, uint32_t selection);

/** Return whether some thread of the trace passes the selection's threads and processes. */
bool budget_figures_has_thread(const struct budget_figures *figures, uint32_t selection);

#endif
