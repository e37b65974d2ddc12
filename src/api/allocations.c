/* SPDX-License-Identifier: MIT */
/* Allocations: groups of the table as columns, those that pass. */
#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/filter_fields.h"
#include "api/row_members.h"
#include "base/memory.h"

_Static_assert(XHEAP_END_FREE == (int)HEAP_END_FREE && XHEAP_END_EXIT == (int)HEAP_END_EXIT &&
		       XHEAP_END_OPEN == (int)HEAP_END_OPEN,
	       "as they are");
_Static_assert(XHEAP_ALLOCATION_REALLOC == (int)HEAP_REALLOC && XHEAP_ALLOCATION_MOVED == (int)HEAP_MOVED &&
		       XHEAP_ALLOCATION_TEMPORARY == (int)HEAP_TEMPORARY &&
		       XHEAP_ALLOCATION_EARLIER == (int)HEAP_EARLIER,
	       "flags, too");

#define X(member, column) PLACE_##member,
enum { ALLOCATION_MEMBERS(X) MEMBER_COUNT };
#undef X

static const struct {
	enum column_id column;
	size_t bytes; /* of a value in a batch */
} members[] = {
#define X(member, column) {column, sizeof(*((xheap_allocation_batch *)0)->member)},
	ALLOCATION_MEMBERS(X)
#undef X
};

struct xheap_allocations {
	struct xheap_trace *trace;
	const struct heap_table *table; /* the trace's when this was opened; another thread may change that */
	struct api_request question;
	struct heap_scan scan;
	bool has_scan;
	uint64_t columns[MEMBER_COUNT][PACK_ROWS]; /* of the rows of a group that pass; as wide as in a batch */
	uint32_t count, next;                      /* rows in the columns; those given out */
	xheap_allocation_batch batch;
	xheap_allocation allocation;
	int over; /* XHEAP_END, or the error after which nothing more is read */
};

#define COLUMN(allocations, member) \
	((__typeof__(((xheap_allocation_batch *)0)->member))(const void *)(allocations)->columns[PLACE_##member])

/* ---- rows ---- */

/* The rows that pass and begin in the range. */
static uint32_t rows_pick(const struct xheap_allocations *allocations, const struct heap_rows *rows,
			  uint8_t picks[PACK_ROWS])
{
	struct heap_range range = allocations->question.range;
	const int64_t *births = (const int64_t *)rows->columns.numbers[PACK_BIRTH];
	uint32_t count = 0;
	heap_rows_each (rows, i)
		if (births[i] >= range.from_ns && births[i] <= range.to_ns)
			picks[count++] = (uint8_t)i;
	return count;
}

#define NARROW(type) \
	for (uint32_t i = 0; i < count; i++) \
		((type *)to)[i] = (type)values[picks ? picks[i] : i];

static void values_narrow(void *to, size_t bytes, const uint64_t *values, const uint8_t *picks, uint32_t count)
{
	if (bytes == sizeof(uint8_t))
		NARROW(uint8_t)
	else if (bytes == sizeof(uint32_t))
		NARROW(uint32_t)
	else if (to != values)
		NARROW(uint64_t)
}

static void rows_take(struct xheap_allocations *allocations, const struct heap_rows *rows)
{
	const struct column_rows from = column_rows_of(allocations->table, rows);
	uint8_t picks[PACK_ROWS], absent[PACK_ROWS];
	uint64_t room[PACK_ROWS];
	uint32_t count = rows_pick(allocations, rows, picks);
	bool are_all = count == rows->count;
	allocations->count = count;
	for (unsigned i = 0; i < MEMBER_COUNT && count; i++) {
		void *to = allocations->columns[i];
		uint64_t *values = are_all && members[i].bytes == sizeof(*values) ? to : room;
		column_find(COLUMNS_OF_ALLOCATIONS, members[i].column)->fill(&from, values, absent);
		values_narrow(to, members[i].bytes, values, are_all ? NULL : picks, count);
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
		rows_take(allocations, rows);
	int error = api_trace_check(allocations->trace, diag);
	if (error)
		allocations->count = 0;
	allocations->over = error ? error : allocations->count ? 0 : XHEAP_END;
	return allocations->over;
}

bool api_allocation_read(xheap_allocation *to, const struct heap_table *table, uint32_t id)
{
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MAX, PACK_ALL | PACK_DETAILS, NULL, NULL};
	uint64_t found[MEMBER_COUNT], values[PACK_ROWS];
	uint8_t absent[PACK_ROWS];
	const struct heap_rows *rows;
	struct heap_scan scan;
	if (id >= table->count)
		return false;
	heap_scan_begin(&scan, table, &plan, NULL);
	heap_scan_range(&scan, id / PACK_ROWS, id / PACK_ROWS + 1);
	rows = heap_scan_next(&scan);
	const bool is_there = rows && id - rows->first < rows->count;
	const struct column_rows from = is_there ? column_rows_of(table, rows) : (struct column_rows){.count = 0};
	for (unsigned i = 0; i < MEMBER_COUNT && is_there; i++) {
		column_find(COLUMNS_OF_ALLOCATIONS, members[i].column)->fill(&from, values, absent);
		found[i] = values[id - rows->first];
	}
	heap_scan_end(&scan);
#define X(member, column) .member = (__typeof__(to->member))found[PLACE_##member],
	if (is_there)
		*to = (xheap_allocation){ALLOCATION_MEMBERS(X)};
#undef X
	return is_there;
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
	struct api_request *question = &allocations->question;
	int error = api_request_take(question, opening->given, opening->trace, false, diag);
	if (error)
		return error;
	question->request.without_windows = true;
	error = api_request_prepare(question, opening->trace, diag);
	error = error ? error : analysis_range(&question->asked, opening->trace->trace, false, &question->range, diag);
	if (error)
		return error;
	struct heap_range range = question->range;
	const struct heap_scan_plan plan = {
		range.from_ns, range.to_ns, INT64_MAX, PACK_ALL | PACK_DETAILS, question->analysis.sources[0].filter,
		NULL};
	allocations->table = opening->trace->table;
	heap_scan_begin(&allocations->scan, allocations->table, &plan, NULL);
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
	bool has_some = allocations->next && allocations->next < allocations->count;
	int status = has_some ? XHEAP_OK : fetch(allocations, error);
	uint32_t at = allocations->next;
	*batch = NULL;
	if (status != XHEAP_OK)
		return status;
#define X(member, column) .member = COLUMN(allocations, member) + at,
	allocations->batch = (xheap_allocation_batch){ALLOCATION_MEMBERS(X).count = allocations->count - at};
#undef X
	allocations->next = allocations->count;
	*batch = &allocations->batch;
	return XHEAP_OK;
}

API int xheap_allocations_next(xheap_allocations *allocations, const xheap_allocation **allocation, xheap_error *error)
{
	int status = allocations->next < allocations->count ? XHEAP_OK : fetch(allocations, error);
	*allocation = NULL;
	if (status != XHEAP_OK)
		return status;
	uint32_t i = allocations->next++;
#define X(member, column) .member = COLUMN(allocations, member)[i],
	allocations->allocation = (xheap_allocation){ALLOCATION_MEMBERS(X)};
#undef X
	*allocation = &allocations->allocation;
	return XHEAP_OK;
}

API void xheap_allocations_close(xheap_allocations *allocations)
{
	if (!allocations)
		return;
	if (allocations->has_scan)
		heap_scan_end(&allocations->scan);
	api_request_fini(&allocations->question);
	api_trace_release(allocations->trace);
	free(allocations);
}
