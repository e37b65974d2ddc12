/* SPDX-License-Identifier: MIT */
/** The peaks of many selections at once: one walk through the time of a trace. */
#ifndef XHEAP_ACTION_BUDGET_PEAKS_H
#define XHEAP_ACTION_BUDGET_PEAKS_H

#include "query/window.h"

/** The most bytes that were live at one time, and the blocks of the first such time. */
struct budget_peak {
	uint64_t bytes, count;
};

/** Allocations that the same selections count. */
struct budget_peak_group {
	const uint32_t *selections; /**< none twice */
	uint32_t count;
};

/** What to find. The caller owns all of it. */
struct budget_peaks {
	const struct heap_table *table; /**< no sample, and without sums in place of blocks */
	const struct heap_filter *filter;
	const struct budget_peak_group *groups;
	uint32_t group_count;
	/** Return the group of an allocation, by its site and thread. */
	uint32_t (*group_of)(const void *context, uint32_t site, uint32_t thread);
	const void *context;
	const bool *is_wanted; /**< by selection */
	uint32_t selection_count;
	bool has_earlier; /**< blocks from before the trace are among the allocations */
};

/** Find the peak of each wanted selection in all of the time. */
void budget_peaks_find(const struct budget_peaks *peaks, struct budget_peak *found);

#endif
