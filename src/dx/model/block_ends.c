/* SPDX-License-Identifier: MIT */
/*
 * The table has blocks in the order of their beginnings. A free needs them by their ends: a pass puts the ends of some
 * time together, of all the trace if half of the query's memory holds them, and each free is then a search among them.
 */
#include "dx/model/block_ends.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/events.h"
#include "base/memory.h"
#include "base/order.h"
#include "dx/model/objects.h"
#include "query/scan.h"
#include "trace/trace.h"

enum { SHARE = 2 /* of the query's memory */ };

struct dx_block_end {
	int64_t end_ns;
	uint32_t step, number;
};

struct dx_block_ends {
	struct dx_block_end *items;
	size_t count, capacity;
	int64_t from_ns, to_ns; /* the ends of these times are here */
};

COMPARE_BY_TWO(end_order, struct dx_block_end, end_ns, step)

static void ends_end(void *context)
{
	struct dx_block_ends *ends = context;
	free(ends->items);
	free(ends);
}

/* The last time of a window that begins at from_ns, if ends are spread evenly. */
static int64_t window_end(const struct dx_query *query, int64_t from_ns)
{
	const struct heap_table *table = query->session->table;
	int64_t duration_ns = query->session->dictionary->duration_ns;
	double part =
		(double)query->budget.limit_bytes / SHARE / sizeof(struct dx_block_end) / ((double)table->count + 1);
	return part >= 1 ? INT64_MAX : from_ns + (int64_t)((double)duration_ns * part);
}

static void window_read(struct dx_query *query, struct dx_block_ends *ends, int64_t time_ns)
{
	const struct heap_table *table = query->session->table;
	const struct heap_scan_plan plan = {INT64_MIN, window_end(query, time_ns), INT64_MIN, PACK_EVERYTHING, NULL,
					    NULL};
	const struct heap_rows *rows;
	struct heap_scan scan;
	ends->count = 0;
	ends->to_ns = plan.to_ns;
	ends->from_ns = plan.to_ns == INT64_MAX ? INT64_MIN : time_ns;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)) && dx_step(query, "Block", -1))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			if (row.end != HEAP_END_FREE || row.end_ns < ends->from_ns || row.end_ns > ends->to_ns)
				continue;
			memory_grow(ends->items, ends->count, ends->capacity);
			ends->items[ends->count++] = (struct dx_block_end){
				row.end_ns, heap_table_step(table, rows->details[i].end_point), rows->first + i};
		}
	heap_scan_end(&scan);
	if (ends->count)
		qsort(ends->items, ends->count, sizeof(*ends->items), end_order);
}

bool dx_block_ended_by(struct dx_query *query, const struct dx_event *event, uint32_t *number)
{
	struct dx_session *session = query->session;
	const struct dx_block_end wanted = {event->row.time_ns, event->step, 0};
	size_t place;
	if (event->row.kind != EVENT_FREE || !dx_session_table(session))
		return false;
	if (!session->ends) {
		session->ends = memory_zeroed(1, sizeof(*session->ends));
		session->ends->from_ns = INT64_MAX;
		dx_on_release(&session->whole, ends_end, session->ends);
	}
	struct dx_block_ends *ends = session->ends;
	if (wanted.end_ns < ends->from_ns || wanted.end_ns > ends->to_ns)
		window_read(query, ends, wanted.end_ns);
	BISECT(place, ends->count, i, end_order(&ends->items[i], &wanted) < 0);
	if (query->is_stopped || place == ends->count || end_order(&ends->items[place], &wanted))
		return false;
	*number = ends->items[place].number;
	return true;
}
