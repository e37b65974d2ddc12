/* SPDX-License-Identifier: MIT */
#include "match/moment.h"

#include <stdlib.h>

#include "base/memory.h"
#include "query/scan.h"

static void number_add(uint32_t **numbers, size_t *count, uint32_t number)
{
	*numbers = memory_resize(*numbers, *count + 1, sizeof(**numbers));
	(*numbers)[(*count)++] = number;
}

/* A beginning at the position is applied, an end at it is not. An end without a point, such as one in a gap, is behind
   all points. */
static void row_place(struct heap_moment *moment, const struct heap_table *table, const struct heap_allocation *row,
		      const struct heap_details *details, uint32_t number)
{
	int64_t time_ns = moment->at.time_ns;
	uint64_t step = moment->at.step;
	if (row->birth_ns == time_ns && heap_table_step(table, details->birth_point) > step)
		number_add(&moment->later_births, &moment->birth_count, number);
	if (!moment->ends_are_later && row->end_ns == time_ns && heap_end_is_given_back(row->end) &&
	    (details->end_point == HEAP_NONE || heap_table_step(table, details->end_point) >= step))
		number_add(&moment->later_ends, &moment->end_count, number);
}

/* Find the beginnings and ends of the moment's nanosecond that lie behind it. At its first step all ends do, and nearly
   always it has no other. */
static void rows_place(struct heap_moment *moment, const struct heap_table *table)
{
	int64_t time_ns = moment->at.time_ns, live_from_ns = moment->ends_are_later ? INT64_MAX : time_ns - 1;
	const struct heap_scan_plan plan = {time_ns, time_ns, live_from_ns, PACK_TIMES | PACK_POINTS, NULL, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			if (row.birth_ns == time_ns || row.end_ns == time_ns)
				row_place(moment, table, &row, &rows->details[i], rows->first + i);
		}
	heap_scan_end(&scan);
}

static void moment_clear(struct heap_moment *moment)
{
	free(moment->later_births);
	free(moment->later_ends);
	*moment = (struct heap_moment){.is_asked = moment->is_asked, .at = moment->at};
}

void heap_moment_find(struct heap_moment *moment, const struct heap_table *table)
{
	uint64_t step = moment->at.step;
	moment_clear(moment);
	/* At the trace's end all calls are over, and processes that end then are still there. */
	if (moment->is_asked && moment->at.time_ns >= POSITION_END_NS) {
		moment->at.time_ns = table->duration_ns;
		moment->exits_are_later = true;
		return;
	}
	if (moment->is_asked && step == POSITION_LAST && moment->at.time_ns >= table->duration_ns &&
	    heap_table_ends_detached(table)) {
		moment->at.time_ns = table->duration_ns;
		moment->exits_are_later = true;
	}
	if (!moment->is_asked || step == POSITION_LAST)
		return;
	moment->births_are_later = !step;
	moment->ends_are_later = step <= 1;
	moment->exits_are_later = true;
	if (step)
		rows_place(moment, table);
}
