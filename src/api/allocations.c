/* SPDX-License-Identifier: MIT */
/* Allocations: groups of the table as columns, those that pass. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/memory.h"
#include "query/scan.h"
#include "table/weight.h"

_Static_assert(XHEAP_END_FREE == (int)HEAP_END_FREE && XHEAP_END_EXIT == (int)HEAP_END_EXIT &&
		       XHEAP_END_OPEN == (int)HEAP_END_OPEN,
	       "as they are");
_Static_assert(XHEAP_ALLOCATION_REALLOC == (int)HEAP_REALLOC && XHEAP_ALLOCATION_MOVED == (int)HEAP_MOVED &&
		       XHEAP_ALLOCATION_TEMPORARY == (int)HEAP_TEMPORARY &&
		       XHEAP_ALLOCATION_EARLIER == (int)HEAP_EARLIER,
	       "flags, too");

struct allocation_columns {
	uint32_t number[PACK_ROWS], stack[PACK_ROWS], function[PACK_ROWS], end_stack[PACK_ROWS],
		end_function[PACK_ROWS], thread[PACK_ROWS], end_thread[PACK_ROWS], heap[PACK_ROWS], previous[PACK_ROWS];
	uint8_t end[PACK_ROWS], flags[PACK_ROWS];
	int64_t birth_ns[PACK_ROWS], end_ns[PACK_ROWS];
	uint64_t address[PACK_ROWS], size[PACK_ROWS], usable_size[PACK_ROWS], weight_count[PACK_ROWS],
		weight_bytes[PACK_ROWS];
};

struct xheap_allocations {
	struct xheap_trace *trace;
	struct api_filter filter;
	struct heap_scan scan;
	bool has_scan;
	struct allocation_columns columns;
	uint32_t count, next; /* rows in the columns; those given out */
	xheap_allocation_batch batch;
	xheap_allocation allocation;
	int over; /* XHEAP_END, or the error after which nothing more is read */
};

/* ---- rows ---- */

static void row_add(struct xheap_allocations *allocations, uint32_t number, const struct heap_allocation *row,
		    const struct heap_details *details)
{
	assert(row->site < allocations->trace->table->site_count);
	static const struct heap_site nowhere = {0, HEAP_NONE};
	const struct heap_site *sites = allocations->trace->table->sites, *site = &sites[row->site];
	const struct heap_site *end_site = row->end_site == HEAP_NONE ? &nowhere : &sites[row->end_site];
	struct heap_weight weight = heap_weigh(allocations->trace->table, row);
	struct allocation_columns *to = &allocations->columns;
	uint32_t i = allocations->count++;
	to->number[i] = number;
	to->end[i] = row->end;
	to->flags[i] = row->flags;
	to->birth_ns[i] = row->birth_ns;
	to->end_ns[i] = row->end_ns;
	to->address[i] = details->address;
	to->size[i] = row->size_bytes;
	to->usable_size[i] = row->size_bytes + heap_slack(details);
	to->stack[i] = site->stack;
	to->function[i] = site->entry;
	to->end_stack[i] = end_site->stack;
	to->end_function[i] = end_site->entry;
	to->thread[i] = row->thread;
	to->end_thread[i] = details->end_thread;
	to->heap[i] = row->heap;
	to->previous[i] = details->previous;
	to->weight_count[i] = weight.count;
	to->weight_bytes[i] = weight.bytes;
}

static void rows_add(struct xheap_allocations *allocations, const struct heap_rows *rows)
{
	struct heap_range range = allocations->filter.range;
	for
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			if (row.birth_ns >= range.from_ns && row.birth_ns <= range.to_ns)
				row_add(allocations, rows->first + i, &row, &rows->details[i]);
		}
}

static int next_work(void *context, struct diag *diag)
{
	struct xheap_allocations *allocations = context;
	const struct heap_rows *rows;
	allocations->count = allocations->next = 0;
	if (allocations->over)
		return allocations->over > 0
			       ? allocations->over
			       : diag_fail(diag, -allocations->over, "allocations: no more is read after an error");
	/* So it is if this is given up in its middle. */
	allocations->over = -ENOMEM;
	while (!allocations->count && (rows = heap_scan_next(&allocations->scan)))
		rows_add(allocations, rows);
	int error = api_trace_check(allocations->trace, diag);
	if (error)
		allocations->count = 0;
	allocations->over = error ? error : allocations->count ? 0 : XHEAP_END;
	return allocations->over;
}

/* ---- the calls ---- */

struct allocations_opening {
	struct xheap_trace *trace;
	const xheap_filter *given;
	struct xheap_allocations *allocations;
};

static int open_work(void *context, struct diag *diag)
{
	struct allocations_opening *opening = context;
	struct xheap_allocations *allocations = memory_zeroed(1, sizeof(*allocations));
	opening->allocations = allocations;
	allocations->trace = opening->trace;
	api_trace_hold(opening->trace);
	filter_request_init(&allocations->filter.asked);
	struct heap_names *names;
	int error = api_trace_names(opening->trace, false, &names, diag);
	error = error ? error : api_filter_make(&allocations->filter, opening->given, opening->trace, names, diag);
	if (error)
		return error;
	struct heap_range range = allocations->filter.range;
	const struct heap_scan_plan plan = {
		range.from_ns, range.to_ns, INT64_MAX, PACK_ALL | PACK_DETAILS, &allocations->filter.asked.filter,
		NULL};
	heap_scan_begin(&allocations->scan, opening->trace->table, &plan, NULL);
	allocations->has_scan = true;
	return 0;
}

API int xheap_allocations_open(xheap_trace *trace, const xheap_filter *filter, xheap_allocations **allocations,
			       xheap_error *error)
{
	struct allocations_opening opening = {.trace = trace, .given = filter};
	int status = api_run_locked(trace, error, open_work, &opening);
	if (status != XHEAP_OK) {
		xheap_allocations_close(opening.allocations);
		opening.allocations = NULL;
	}
	*allocations = opening.allocations;
	return status;
}

static int fetch(struct xheap_allocations *allocations, xheap_error *error)
{
	return api_run(&allocations->trace->callbacks, error, next_work, allocations);
}

API int xheap_allocations_next_batch(xheap_allocations *allocations, const xheap_allocation_batch **batch,
				     xheap_error *error)
{
	int status = allocations->next && allocations->next < allocations->count ? XHEAP_OK : fetch(allocations, error);
	const struct allocation_columns *from = &allocations->columns;
	uint32_t at = allocations->next;
	*batch = NULL;
	if (status != XHEAP_OK)
		return status;
	allocations->batch = (xheap_allocation_batch){.count = allocations->count - at,
						      .number = from->number + at,
						      .end = from->end + at,
						      .flags = from->flags + at,
						      .birth_ns = from->birth_ns + at,
						      .end_ns = from->end_ns + at,
						      .address = from->address + at,
						      .size = from->size + at,
						      .usable_size = from->usable_size + at,
						      .stack = from->stack + at,
						      .function = from->function + at,
						      .end_stack = from->end_stack + at,
						      .end_function = from->end_function + at,
						      .thread = from->thread + at,
						      .end_thread = from->end_thread + at,
						      .heap = from->heap + at,
						      .previous = from->previous + at,
						      .weight_count = from->weight_count + at,
						      .weight_bytes = from->weight_bytes + at};
	allocations->next = allocations->count;
	*batch = &allocations->batch;
	return XHEAP_OK;
}

API int xheap_allocations_next(xheap_allocations *allocations, const xheap_allocation **allocation, xheap_error *error)
{
	int status = allocations->next < allocations->count ? XHEAP_OK : fetch(allocations, error);
	const struct allocation_columns *from = &allocations->columns;
	*allocation = NULL;
	if (status != XHEAP_OK)
		return status;
	uint32_t i = allocations->next++;
	allocations->allocation = (xheap_allocation){.number = from->number[i],
						     .end = from->end[i],
						     .flags = from->flags[i],
						     .birth_ns = from->birth_ns[i],
						     .end_ns = from->end_ns[i],
						     .address = from->address[i],
						     .size = from->size[i],
						     .usable_size = from->usable_size[i],
						     .stack = from->stack[i],
						     .function = from->function[i],
						     .end_stack = from->end_stack[i],
						     .end_function = from->end_function[i],
						     .thread = from->thread[i],
						     .end_thread = from->end_thread[i],
						     .heap = from->heap[i],
						     .previous = from->previous[i],
						     .weight_count = from->weight_count[i],
						     .weight_bytes = from->weight_bytes[i]};
	*allocation = &allocations->allocation;
	return XHEAP_OK;
}

API void xheap_allocations_close(xheap_allocations *allocations)
{
	if (!allocations)
		return;
	if (allocations->has_scan)
		heap_scan_end(&allocations->scan);
	api_filter_fini(&allocations->filter);
	api_trace_release(allocations->trace);
	free(allocations);
}
