/* SPDX-License-Identifier: MIT */
#include "cells/cell_peak.h"

#include "query/folded.h"
#include "query/peak.h"

struct heap_peak cell_peak_find(const struct heap_table *table, const struct heap_filter *filter)
{
	const struct heap_range all = {0, table->duration_ns};
	struct heap_peak peak;
	int64_t from_ns;
	bool is_folded;
	if (heap_is_folded(table))
		return (struct heap_peak){0, 0};
	if (!heap_folded_peak(&peak, table, filter, all, &from_ns, &is_folded))
		heap_peaks(&peak, 1, table, filter, (struct heap_range){from_ns, all.to_ns});
	return peak;
}
