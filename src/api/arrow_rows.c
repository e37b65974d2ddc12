/* SPDX-License-Identifier: MIT */
/* Rows of allocations and events, and results of plans: all of them are a plan's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_plan.h"
#include "api/arrow_source.h"
#include "api/filter_fields.h"
#include "base/memory.h"
#include "query/cull.h"
#include "trace/code_rows.h"
#include "trace/trace.h"

enum { CHUNK = PACK_ROWS, BITS_OF_ID = 32, KEPT = 1024, KEPT_BYTES_MOST = 16 << 10 };

/* The text of a stack that rows had last: few stacks have most rows. */
struct kept_text {
	uint32_t stack; /* 0: none */
	char *text;
};

struct arrow_rows {
	struct xheap_plan *plan; /* has the lookups */
	struct plan run_plan;
	bool has_run_plan;
	struct api_request question;
	struct plan_target target;
	struct plan_run *run;
	struct plan_rows rows;
	uint32_t at;                       /* rows of them that were taken */
	uint32_t places[PLAN_OUTPUTS_MAX]; /* by field: its value in a row */
	bool is_caller[PLAN_OUTPUTS_MAX];  /* by field */
	struct heap_names *names;          /* for texts of stacks */
	struct heap_cull cull;             /* for their callers */
	struct kept_text *kept;            /* KEPT of them, by the low bits of the stack */
};

/* ---- fields ---- */

static enum arrow_kind number_kind(const struct column *column)
{
	return column->bits == BITS_OF_ID ? ARROW_U32 : column->bits ? ARROW_U8 : ARROW_U64;
}

static enum arrow_kind column_kind(const struct column *column, uint32_t flags)
{
	switch (column->type) {
	case TYPE_NUMBER:
		return number_kind(column);
	case TYPE_BYTES:
	case TYPE_ADDRESS:
		return ARROW_U64;
	case TYPE_TIME:
		return ARROW_I64;
	case TYPE_ERROR:
		return ARROW_I32;
	case TYPE_WORD:
		return ARROW_WORD;
	case TYPE_FUNCTION:
	case TYPE_THREAD:
		return flags & NODE_AS_ID ? ARROW_U32 : ARROW_WORD;
	case TYPE_STACK:
		return flags & NODE_AS_TEXT ? ARROW_LONG_TEXT : flags & NODE_AS_CALLER ? ARROW_TEXT : ARROW_U32;
	case TYPE_PROCESS:
	case TYPE_HEAP:
	case TYPE_SITE:
	case TYPE_ALLOCATION:
		return ARROW_U32;
	case TYPE_TEXT:
		break;
	}
	return ARROW_TEXT;
}

/* What the numbers of a column stand for. */
static struct arrow_words *words_of(const struct column *column, const struct trace_dictionary *dictionary)
{
	if (column->type == TYPE_THREAD)
		return arrow_words_of_threads(dictionary);
	uint32_t count = column->type == TYPE_FUNCTION ? dictionary->entry_count : column->word_count;
	struct arrow_words *words = arrow_words_new(count);
	for (uint32_t i = 0; i < count; i++)
		arrow_words_set(words, i, column_word(column, dictionary, i));
	return words;
}

static enum arrow_kind result_kind(enum plan_type type)
{
	static const enum arrow_kind kinds[] = {[PLAN_TRUTH] = ARROW_TRUTH,
						[PLAN_NUMBER] = ARROW_U64,
						[PLAN_TIME] = ARROW_I64,
						[PLAN_REAL] = ARROW_REAL};
	return kinds[type];
}

static void field_add(struct arrow_source *source, const struct api_plan_shown *shown)
{
	struct arrow_rows *rows = source->state;
	const struct column *column = api_plan_column(rows->plan, shown->handle);
	bool is_aggregate = shown->part == SHOWN_AGGREGATE;
	enum plan_aggregate_kind kind = is_aggregate ? rows->run_plan.aggregates[shown->place].kind : PLAN_COUNT;
	uint32_t place = rows->places[source->field_count] = api_plan_place(rows->plan, shown);
	if (is_aggregate && kind != PLAN_LEAST && kind != PLAN_GREATEST)
		column = NULL;
	bool is_caller = rows->is_caller[source->field_count] =
		column && column->type == TYPE_STACK && !is_aggregate && shown->handle & NODE_AS_CALLER;
	enum arrow_kind shown_kind = column ? column_kind(column, is_aggregate ? NODE_AS_ID : shown->handle)
					    : result_kind(plan_output_type(&rows->run_plan, place));
	struct arrow_field *field = arrow_field_add(source, shown->name, shown_kind);
	field->is_nullable = is_aggregate ? kind != PLAN_COUNT && kind != PLAN_SUM : !column || column->absent;
	field->help = is_caller ? "The first function of the program's own code on the stack."
		      : column && !is_aggregate && !(shown->handle & NODE_AS_TEXT) ? column->help
										   : NULL;
	if (shown_kind == ARROW_WORD)
		field->words = words_of(column, trace_dictionary(source->trace->trace));
	source->needs_lock |= is_caller || shown_kind == ARROW_LONG_TEXT;
}

/* ---- rows ---- */

static void put_stack(struct arrow_rows *rows, struct arrow_column *to, uint32_t stack)
{
	struct kept_text *kept = &rows->kept[stack % KEPT];
	if (kept->stack == stack && stack) {
		arrow_put_text(to, kept->text);
		return;
	}
	char *text = heap_names_text(rows->names, heap_names_stack(rows->names, stack), 0);
	arrow_put_text(to, text);
	if (strlen(text) > KEPT_BYTES_MOST) {
		free(text);
		return;
	}
	free(kept->text);
	*kept = (struct kept_text){stack, text};
}

static void put_caller(struct arrow_rows *rows, struct arrow_column *to, uint32_t stack)
{
	uint32_t node = heap_names_stack(rows->names, stack);
	if (node)
		node = heap_cull_user_node(&rows->cull, rows->names, heap_cull_node(&rows->cull, rows->names, node));
	arrow_put_text(to, node ? heap_names_name(rows->names, heap_names_frame(rows->names, node)->name)->text : NULL);
}

static void put_stacks(struct arrow_rows *rows, struct arrow_column *to, const struct arrow_cells *cells,
		       uint32_t count, void (*put)(struct arrow_rows *, struct arrow_column *, uint32_t))
{
	for (uint32_t i = 0; i < count; i++) {
		size_t at = (size_t)i * cells->stride;
		if (cells->absent[at] >> cells->bit & 1)
			arrow_put_absent(to);
		else
			put(rows, to, (uint32_t)cells->values[at]);
	}
}

static int64_t rows_next(struct arrow_source *source, struct arrow_column *columns, uint32_t room, struct diag *diag)
{
	struct arrow_rows *rows = source->state;
	if (rows->at == rows->rows.count) {
		rows->at = 0;
		struct diag reason = {""};
		int status = plan_next(rows->run, &rows->rows, &reason);
		/* The index has a name, and something can be done about it. */
		int damage = status < 0 && rows->target.table ? api_trace_check(source->trace, diag) : 0;
		if (status < 0)
			return damage ? damage : diag_fail(diag, -status, "%s", reason.text);
		if (!status)
			return 0;
	}
	uint32_t left = rows->rows.count - rows->at, count = left < room ? left : room;
	count = count < CHUNK ? count : CHUNK;
	const uint64_t *first = rows->rows.cells + (size_t)rows->at * rows->rows.stride;
	for (uint32_t i = 0; i < source->field_count; i++) {
		uint32_t place = rows->places[i];
		const struct arrow_cells cells = {first + place, first + plan_width(&rows->run_plan), rows->rows.stride,
						  place};
		if (rows->is_caller[i] || columns[i].field->kind == ARROW_LONG_TEXT)
			put_stacks(rows, &columns[i], &cells, count, rows->is_caller[i] ? put_caller : put_stack);
		else
			arrow_put_cells(&columns[i], &cells, count);
	}
	rows->at += count;
	return count;
}

static void rows_end(struct arrow_source *source)
{
	struct arrow_rows *rows = source->state;
	plan_close(rows->run);
	if (rows->has_run_plan)
		plan_fini(&rows->run_plan);
	api_request_fini(&rows->question);
	xheap_plan_free(rows->plan);
	for (uint32_t i = 0; rows->kept && i < KEPT; i++)
		free(rows->kept[i].text);
	free(rows->kept);
	heap_cull_forget(&rows->cull);
	heap_cull_fini(&rows->cull);
	free(rows);
}

/* ---- the question ---- */

/* A plan that shows the columns: those that are named, or all. */
static struct xheap_plan *plan_of(const xheap_query *query)
{
	enum column_source from = query->table == XHEAP_TABLE_EVENT ? COLUMNS_OF_EVENTS : COLUMNS_OF_ALLOCATIONS;
	xheap_plan *plan;
	if (xheap_plan_new(query->table, &plan, NULL) != XHEAP_OK)
		memory_exhausted(0);
	for (size_t i = 0; i < query->column_count; i++)
		xheap_plan_output(plan, xheap_plan_column(plan, query->columns[i]), NULL);
	for (unsigned id = 0; !query->column_count && id < COLUMN_COUNT; id++) {
		const struct column *column = column_find(from, (enum column_id)id);
		if (!column || column->type == TYPE_TEXT)
			continue;
		uint32_t node = xheap_plan_column(plan, column->name);
		xheap_plan_output(plan, node, NULL);
		if (column->type == TYPE_FUNCTION || column->type == TYPE_THREAD)
			xheap_plan_output(plan, node | NODE_AS_ID, NULL);
	}
	return plan;
}

/* Let only rows pass whose time is in the range. Blocks from before the trace have none, and are in a range without a
   beginning. */
static int range_take(struct plan *plan, struct heap_range range, struct diag *diag)
{
	uint32_t time = plan_column(plan, plan->source == COLUMNS_OF_EVENTS ? COLUMN_TIME : COLUMN_BIRTH);
	uint32_t passes = plan->filter;
	if (range.from_ns != INT64_MIN) {
		uint32_t from = plan_apply(plan, PLAN_AT_LEAST, time, plan_time(plan, range.from_ns), PLAN_NOTHING);
		passes = passes == PLAN_NOTHING ? from : plan_apply(plan, PLAN_AND, passes, from, PLAN_NOTHING);
	}
	if (range.to_ns != INT64_MAX) {
		uint32_t to = plan_apply(plan, PLAN_AT_MOST, time, plan_time(plan, range.to_ns), PLAN_NOTHING);
		if (range.from_ns == INT64_MIN && plan->source == COLUMNS_OF_ALLOCATIONS)
			to = plan_apply(plan, PLAN_OR,
					plan_apply(plan, PLAN_IS_ABSENT, time, PLAN_NOTHING, PLAN_NOTHING), to,
					PLAN_NOTHING);
		passes = passes == PLAN_NOTHING ? to : plan_apply(plan, PLAN_AND, passes, to, PLAN_NOTHING);
	}
	if (passes == PLAN_NOTHING && (range.from_ns != INT64_MIN || range.to_ns != INT64_MAX))
		return diag_fail(diag, EINVAL, "xheap_query: the plan is too large for a range of times");
	plan->filter = passes;
	return 0;
}

/* The filter of events: times only. */
static int events_range(struct heap_range *range, const xheap_filter *given, struct diag *diag)
{
	xheap_filter own, plain;
	xheap_filter_init(&own, sizeof(own));
	xheap_filter_init(&plain, sizeof(plain));
	int error = api_take(&own, sizeof(own), given, "xheap_filter", diag);
	if (error)
		return error;
	*range = (struct heap_range){own.from_ns, own.to_ns};
	plain.from_ns = own.from_ns;
	plain.to_ns = own.to_ns;
	if (memcmp(&own, &plain, sizeof(own)))
		return diag_fail(diag, EINVAL,
				 "xheap_filter: events are filtered by from_ns and to_ns only, or by a plan");
	if (own.from_ns > own.to_ns)
		return diag_fail(diag, EINVAL, "xheap_filter: a range ends before it begins");
	return 0;
}

static int allocations_range(struct arrow_rows *rows, struct xheap_trace *trace, const xheap_filter *given,
			     struct heap_range *range, struct diag *diag)
{
	struct api_request *question = &rows->question;
	int error = api_request_take(question, given, trace, false, diag);
	if (error)
		return error;
	question->request.without_windows = true;
	error = api_request_prepare(question, trace, diag);
	error = error ? error : analysis_range(&question->asked, trace->trace, false, &question->range, diag);
	if (error)
		return error;
	*range = question->range;
	rows->run_plan.allocations = question->analysis.sources[0].filter;
	rows->target.table = trace->table;
	return 0;
}

/* Cull what reports cull; wrappers are known where a table is. */
static void callers_begin(struct arrow_rows *rows)
{
	if (rows->cull.with_entries)
		return;
	heap_cull_use_default(&rows->cull);
	if (rows->target.table)
		heap_cull_prepare(&rows->cull, &(struct wrapper_source){rows->target.table, rows->names}, 1);
}

int arrow_rows_begin(struct arrow_source *source, const xheap_query *query, struct diag *diag)
{
	struct arrow_rows *rows = memory_zeroed(1, sizeof(*rows));
	struct heap_range range;
	source->state = rows;
	source->next = rows_next;
	source->end = rows_end;
	rows->plan = query->plan ? (struct xheap_plan *)query->plan : plan_of(query);
	if (query->plan)
		api_plan_hold(rows->plan);
	int error = api_plan_take(&rows->run_plan, rows->plan, diag);
	if (error)
		return error;
	rows->has_run_plan = true;
	error = rows->run_plan.source == COLUMNS_OF_EVENTS
			? events_range(&range, query->filter, diag)
			: allocations_range(rows, source->trace, query->filter, &range, diag);
	error = error ? error : range_take(&rows->run_plan, range, diag);
	if (error)
		return error;
	for (uint32_t i = 0; i < rows->plan->shown_count; i++)
		field_add(source, &rows->plan->shown[i]);
	if (source->needs_lock) {
		rows->kept = memory_zeroed(KEPT, sizeof(*rows->kept));
		error = api_trace_names(source->trace, false, &rows->names, diag);
	}
	if (error)
		return error;
	for (uint32_t i = 0; i < source->field_count; i++)
		if (rows->is_caller[i])
			callers_begin(rows);
	rows->target.trace = source->trace->trace;
	rows->run = plan_open(&rows->run_plan, &rows->target);
	return 0;
}
