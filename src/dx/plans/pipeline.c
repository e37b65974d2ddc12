/* SPDX-License-Identifier: MIT */
/*
 * Turns a chain of Where, OrderBy, Skip, Take and Select over Heap(), Allocations() or FreedByOtherThread() into a
 * plan. Not for calls with gaps, whose errors count, too, and have a place among the events; nor for heaps in other
 * heaps, unless Heap(false) asks for them: the interpreter does those.
 */
#include "dx/plans/pipeline.h"

#include <assert.h>
#include <errno.h>

#include "dx/model/block_pass.h"
#include "dx/model/event_reader.h"
#include "dx/model/event_sequence.h"
#include "dx/model/objects_allocation.h"
#include "dx/plans/explain.h"
#include "dx/plans/plan_closures.h"
#include "dx/run/operators.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { ORDERS_MAX = 8 };

/* An order of a sequence, outermost first. */
struct orders {
	const struct dx_sequence *steps[ORDERS_MAX];
	uint32_t count;
};

/* ---- the source ---- */

/* What a plan begins with. */
struct plan_source {
	enum column_source rows;
	uint32_t process; /* TRACE_NONE: all */
	enum dx_block_choice choice;
	bool with_nested;
};

static bool source_find(const struct dx_sequence *sequence, struct plan_source *source)
{
	*source = (struct plan_source){.rows = COLUMNS_OF_EVENTS};
	if (dx_events_are(sequence, &source->process, &source->with_nested))
		return true;
	source->rows = COLUMNS_OF_ALLOCATIONS;
	return dx_blocks_are(sequence, &source->process, &source->choice) &&
	       (source->choice == DX_BLOCKS_ALL || source->choice == DX_BLOCKS_CROSS);
}

bool dx_pipeline_begins(struct dx_query *query, const struct dx_sequence *source)
{
	struct plan_source found;
	return source_find(source, &found) ||
	       dx_plan_refuse(query, source, "plans begin with Heap(), Data.Allocations() or FreedByOtherThread()");
}

/* Of what has been left by then, only rows for which the nodes compare so. */
static void rows_compare(struct plan *plan, enum plan_operator operation, uint32_t one, uint32_t other)
{
	uint32_t condition = plan_apply(plan, operation, one, other, PLAN_NOTHING);
	plan->filter = plan_apply(plan, PLAN_AND, plan->filter, condition, PLAN_NOTHING);
}

static bool source_make(const struct dx_plan_making *making, const struct dx_sequence *sequence)
{
	struct dx_query *query = making->query;
	struct plan *plan = making->plan;
	struct plan_source source;
	if (!dx_pipeline_begins(query, sequence) || !source_find(sequence, &source))
		return false;
	plan_init(plan, source.rows);
	dx_plan_restrict(plan);
	if (source.process != TRACE_NONE)
		rows_compare(plan, PLAN_EQUAL, plan_column(plan, COLUMN_PROCESS), plan_number(plan, source.process));
	if (source.rows == COLUMNS_OF_ALLOCATIONS) {
		if (source.choice == DX_BLOCKS_CROSS)
			rows_compare(plan, PLAN_UNEQUAL, plan_column(plan, COLUMN_FREE_THREAD),
				     plan_column(plan, COLUMN_THREAD));
		/* The session has said why. */
		if (!dx_session_table(query->session))
			dx_stop(query, -1, "the allocations of the trace cannot be found");
		return !query->is_stopped;
	}
	if (dx_events_have_gaps(query, source.process))
		return dx_plan_refuse(query, sequence, "the trace has gaps, which are errors among the calls");
	return source.with_nested || !trace_has_annotations(query->session->dictionary) ||
	       dx_plan_refuse(query, sequence, "heaps lie in other heaps; Heap(false), all calls, has plans");
}

static const struct dx_sequence *source_of(const struct dx_sequence *sequence)
{
	while (sequence->source)
		sequence = sequence->source;
	return sequence;
}

/* ---- the chain ---- */

/* What is behind this Skip or Take leaves `skip` rows out and shows `limit`: now of the rows before it. */
static void rows_cut(struct plan *plan, const struct dx_sequence *sequence)
{
	uint64_t count = dx_count_of(&sequence->arguments[0]);
	if (sequence->operation == &dx_take_operator) {
		uint64_t left = count > plan->skip ? count - plan->skip : 0;
		plan->limit = left < plan->limit ? left : plan->limit;
	} else if (__builtin_add_overflow(plan->skip, count, &plan->skip)) {
		plan->skip = UINT64_MAX;
	}
}

const struct dx_sequence *dx_pipeline_cut(struct plan *plan, const struct dx_sequence *sequence)
{
	for (; sequence->operation == &dx_skip_operator || sequence->operation == &dx_take_operator;
	     sequence = sequence->source)
		rows_cut(plan, sequence);
	return sequence;
}

static bool order_take(struct orders *orders, const struct dx_sequence *sequence)
{
	if (orders->count == ORDERS_MAX || sequence->argument_count != 1 ||
	    (dx_operator_is_then(sequence->operation) && !dx_operator_is_order(sequence->source->operation)))
		return false;
	orders->steps[orders->count++] = sequence;
	return true;
}

/* Make each order an output and an order of the plan. An OrderBy goes before those of an OrderBy within it, whose order
   its equal rows keep; and ThenBy behind its OrderBy:

       OrderBy(a).ThenBy(b).OrderBy(c).ThenBy(d)     is c, d, a, b     and comes as d, c, b, a */
static bool orders_make(const struct dx_plan_making *making, const struct orders *orders)
{
	for (uint32_t first = 0, end; first < orders->count; first = end) {
		for (end = first; dx_operator_is_then(orders->steps[end]->operation);)
			end++;
		end++;
		for (uint32_t i = end; i-- > first;) {
			struct dx_plan_member key = dx_plan_lambda_member(making, &orders->steps[i]->arguments[0]);
			if (key.node == PLAN_NOTHING || !dx_plan_has_order(key.shape) ||
			    !plan_output(making->plan, key.node) ||
			    !plan_order(making->plan, making->plan->output_count - 1,
					dx_operator_is_descending(orders->steps[i]->operation)))
				return false;
		}
	}
	return true;
}

static bool condition_take(const struct dx_plan_making *making, const struct dx_sequence *sequence)
{
	struct plan *plan = making->plan;
	uint32_t condition = dx_plan_condition(making, &sequence->arguments[0]);
	plan->filter = condition == PLAN_NOTHING ? PLAN_NOTHING
						 : plan_apply(plan, PLAN_AND, plan->filter, condition, PLAN_NOTHING);
	return plan->filter != PLAN_NOTHING;
}

static const char *why_not(const struct dx_sequence *sequence)
{
	return sequence->operation == &dx_where_operator ? "the condition has no translation"
	       : sequence->operation == &dx_group_operator
		       ? "groups need a Select() of key, counts and sums behind them"
		       : "the method has no translation at this place";
}

bool dx_pipeline_make(struct dx_pipeline *pipeline, const struct dx_plan_making *making,
		      const struct dx_sequence *sequence)
{
	struct orders orders = {.count = 0};
	*pipeline = (struct dx_pipeline){.source = source_of(sequence)};
	*making->plan = (struct plan){.filter = PLAN_NOTHING};
	if (!source_make(making, pipeline->source))
		return false;
	if (sequence->operation == &dx_select_operator) {
		pipeline->selection = sequence;
		sequence = sequence->source;
	}
	sequence = dx_pipeline_cut(making->plan, sequence);
	/* Conditions without errors may stand before an order as well as behind it. */
	for (; sequence != pipeline->source; sequence = sequence->source) {
		if (sequence->operation == &dx_where_operator && condition_take(making, sequence))
			pipeline->condition_count++;
		else if (!dx_operator_is_order(sequence->operation) || !order_take(&orders, sequence))
			return dx_plan_refuse(making->query, sequence, why_not(sequence));
	}
	pipeline->order_count = orders.count;
	return orders_make(making, &orders) ||
	       dx_plan_refuse(making->query, orders.steps[0], "the key is no column that has an order");
}

/* ---- running ---- */

/* Read on to the event with this number. */
static bool event_read(struct dx_query *query, struct dx_object_reader *reader, uint64_t number)
{
	struct diag diag = {""};
	int status = 1;
	if (!reader->events)
		reader->events = dx_event_reader_new(query->session->trace);
	do
		status = dx_event_reader_next(reader->events, &reader->event, &diag);
	while (status > 0 && reader->event.number < number && dx_step(query, "Heap", reader->source->column));
	if (status < 0)
		dx_stop(query, reader->source->column, "%s", diag.text);
	return status > 0 && reader->event.number == number;
}

bool dx_object_read(struct dx_query *query, struct dx_object_reader *reader, uint64_t number,
		    struct dx_element *element)
{
	assert(reader->source);
	struct plan_source source;
	*element = (struct dx_element){.index = dx_number(number)};
	if (source_find(reader->source, &source) && source.rows == COLUMNS_OF_ALLOCATIONS) {
		element->value = dx_block_at(query, (uint32_t)number);
		return true;
	}
	if (reader->events && reader->event.number > number)
		dx_object_reader_end(reader);
	if (!event_read(query, reader, number))
		return false;
	struct dx_event *kept = dx_new(query->arena, struct dx_event, 1);
	*kept = reader->event;
	element->value = dx_object(&dx_heap_class, kept);
	return true;
}

void dx_object_reader_end(struct dx_object_reader *reader)
{
	dx_event_reader_free(reader->events);
	reader->events = NULL;
}

void dx_pipeline_failed(struct dx_query *query, const struct dx_sequence *sequence, int status, const char *reason)
{
	assert(status < 0);
	if (status == -EIO)
		dx_stop(query, -1, "the index of the trace is damaged: ask again with -noIndex");
	else if (status == -ECANCELED)
		dx_stop(query, -1, "interrupted");
	else
		dx_stop(query, sequence->column, "%s", reason);
}
