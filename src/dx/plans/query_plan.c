/* SPDX-License-Identifier: MIT */
/*
 * A plan finds the rows; their objects are made when they are asked for:
 *
 *     in the order of the source   one at a time: an event as a reader comes to it, an allocation from its group
 *     in another order             all of them, of which there must not be many: they are read in the source's order
 *
 * Of a Select of members no objects are made: the plan has the values.
 */
#include "dx/plans/query_plan.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"
#include "dx/core/methods.h"
#include "dx/model/event_sequence.h"
#include "dx/model/objects_allocation.h"
#include "dx/plans/explain.h"
#include "dx/plans/group_plan.h"
#include "dx/plans/group_sums.h"
#include "dx/plans/pipeline.h"
#include "dx/plans/plan_closures.h"
#include "dx/plans/plan_ids.h"
#include "dx/run/sums.h"

enum { OBJECT_BYTES = 1 << 10 /* of the memory, for each object in another order than the source's */ };

/* ---- numbers ---- */

/* Lambdas open short collections for each element: most have no plan, which is found out here. */
static bool has_plan(struct dx_query *query, const struct dx_sequence *sequence)
{
	const struct dx_sequence *source = sequence;
	while (source->source)
		source = source->source;
	return dx_pipeline_begins(query, source);
}

/* Run the plan, and set the values of its only row. */
static bool plan_answer(const struct dx_plan_making *making, const struct dx_sequence *receiver,
			struct plan_value *values)
{
	struct dx_query *query = making->query;
	const struct plan *plan = making->plan;
	struct plan_target target;
	struct plan_rows rows;
	struct diag diag = {""};
	if (!dx_plan_ready(making, receiver, &target))
		return false;
	dx_explain(query, receiver, plan);
	struct plan_run *run = plan_open(plan, &target);
	bool is_answered = plan_next(run, &rows, &diag) > 0 && rows.count == 1;
	for (uint32_t i = 0; is_answered && i < plan_width(plan); i++)
		values[i] = plan_cell(&rows, 0, i);
	plan_close(run);
	if (query->is_interrupted && *query->is_interrupted)
		dx_stop(query, -1, "interrupted");
	return is_answered || query->is_stopped;
}

/* The plan of the receiver, whose rows are all wanted, in any order. Without a Select at its end *selection is NULL. */
static bool receiver_make(const struct dx_plan_making *making, const struct dx_method_call *call,
			  const struct dx_sequence **selection)
{
	struct dx_pipeline pipeline;
	struct plan *plan = making->plan;
	bool is_made = dx_pipeline_make(&pipeline, making, call->receiver.sequence) && !plan->skip &&
		       plan->limit == UINT64_MAX;
	plan->output_count = plan->order_count = 0;
	*selection = pipeline.selection;
	return is_made;
}

static bool plan_count(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result)
{
	if (!has_plan(query, call->receiver.sequence))
		return false;
	if (!call->count && dx_group_plan_count(query, call->receiver.sequence, result))
		return true;
	struct plan plan = {.filter = PLAN_NOTHING};
	struct dx_mark mark = dx_mark(query->arena);
	const struct dx_plan_making making = {query, &plan, query->arena};
	const struct dx_sequence *selection;
	struct plan_value count;
	bool is_answered = receiver_make(&making, call, &selection) && !selection;
	if (is_answered && call->count) {
		uint32_t condition = dx_plan_condition(&making, &call->arguments[0]);
		plan.filter = plan_apply(&plan, PLAN_AND, plan.filter, condition, PLAN_NOTHING);
		is_answered = condition != PLAN_NOTHING && plan.filter != PLAN_NOTHING;
	}
	is_answered = is_answered && plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING) &&
		      plan_answer(&making, call->receiver.sequence, &count);
	plan_fini(&plan);
	dx_release(query->arena, mark);
	if (is_answered)
		*result = dx_number(count.number);
	return is_answered;
}

/* What is added up or compared: what the call's lambda makes of each element, or else the Select at the end. */
static bool member_make(const struct dx_plan_making *making, const struct dx_method_call *call,
			struct dx_plan_member *member)
{
	const struct dx_sequence *selection;
	if (!has_plan(making->query, call->receiver.sequence) || !receiver_make(making, call, &selection) ||
	    !selection == !call->count)
		return false;
	*member = dx_plan_lambda_member(making, call->count ? &call->arguments[0] : &selection->arguments[0]);
	return member->node != PLAN_NOTHING && dx_plan_has_order(member->shape);
}

static bool plan_sum(struct dx_query *query, const struct dx_method_call *call, bool is_average, struct dx_sum *sum)
{
	struct plan plan = {.filter = PLAN_NOTHING};
	struct dx_mark mark = dx_mark(query->arena);
	const struct dx_plan_making making = {query, &plan, query->arena};
	struct dx_plan_member member;
	struct plan_value values[3];
	bool is_answered = member_make(&making, call, &member) && plan_aggregate(&plan, PLAN_SUM, member.node) &&
			   (!is_average || (plan_aggregate(&plan, PLAN_COUNT, member.node) &&
					    plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING))) &&
			   plan_answer(&making, call->receiver.sequence, values);
	plan_fini(&plan);
	dx_release(query->arena, mark);
	if (is_answered && !query->is_stopped) {
		sum->number = values[0].type == PLAN_TIME ? (__int128)values[0].time_ns : (__int128)values[0].number;
		sum->count = is_average ? values[1].number : 0;
		sum->absent_count = is_average ? values[2].number - values[1].number : 0;
	}
	return is_answered;
}

static bool plan_extreme(struct dx_query *query, const struct dx_method_call *call, bool is_greatest,
			 struct dx_value *result)
{
	struct plan plan = {.filter = PLAN_NOTHING};
	struct dx_mark mark = dx_mark(query->arena);
	const struct dx_plan_making making = {query, &plan, query->arena};
	struct dx_plan_member member;
	struct plan_value value;
	bool is_answered = member_make(&making, call, &member) &&
			   plan_aggregate(&plan, is_greatest ? PLAN_GREATEST : PLAN_LEAST, member.node) &&
			   plan_answer(&making, call->receiver.sequence, &value);
	plan_fini(&plan);
	dx_release(query->arena, mark);
	if (!is_answered || query->is_stopped)
		return is_answered;
	*result = dx_plan_value(query, &member, &value);
	return !value.is_absent;
}

/* ---- elements ---- */

/* What a Select makes of the outputs from `first` on. */
struct selection {
	struct dx_plan_member *members;
	uint32_t count, first;
	const struct dx_node *record; /* NULL: of one member itself */
};

struct planned {
	struct plan plan;
	struct dx_pipeline pipeline;
	struct selection selection;
	uint32_t id; /* the output that has it */
	struct plan_run *run;
	struct plan_target target;
	struct plan_rows rows;
	uint32_t next_row;
	struct dx_object_reader reader;
	/* Objects in another order: those of the ids, once they are read. */
	struct dx_list *objects;
};

static void planned_end(void *context)
{
	struct planned *planned = context;
	plan_close(planned->run);
	dx_object_reader_end(&planned->reader);
	plan_fini(&planned->plan);
	free(planned);
}

static bool members_make(const struct dx_plan_making *making, struct planned *planned)
{
	const struct dx_node *lambda = planned->pipeline.selection->arguments[0].closure->node, *node = lambda->first;
	bool is_record = node->kind == DX_NODE_RECORD;
	struct selection *selection = &planned->selection;
	*selection = (struct selection){.count = is_record ? node->count : 1,
					.first = planned->plan.output_count,
					.record = is_record ? node : NULL};
	selection->members = dx_new(making->arena, struct dx_plan_member, (size_t)selection->count + 1);
	for (uint32_t i = 0; i < selection->count && lambda->count == 1; i++) {
		selection->members[i] =
			dx_plan_node_member(making, is_record ? node->children[i] : node, lambda->names[0]);
		if (selection->members[i].node == PLAN_NOTHING ||
		    !plan_output(&planned->plan, selection->members[i].node))
			return false;
	}
	return lambda->count == 1;
}

/* Whether the interpreter would do more than go through the source. */
static bool is_worth_it(const struct planned *planned)
{
	const struct dx_pipeline *pipeline = &planned->pipeline;
	return pipeline->order_count || pipeline->condition_count || pipeline->selection;
}

static bool planned_make(const struct dx_plan_making *making, struct planned *planned,
			 const struct dx_sequence *sequence)
{
	struct dx_query *query = making->query;
	if (!dx_pipeline_make(&planned->pipeline, making, sequence))
		return false;
	if (!is_worth_it(planned))
		return dx_plan_refuse(query, sequence, "the elements are read one after the other in any case");
	if (planned->pipeline.selection && !members_make(making, planned))
		return dx_plan_refuse(query, sequence, "a member is no column");
	bool are_ordered_objects = planned->pipeline.order_count && !planned->pipeline.selection;
	planned->id = planned->plan.output_count;
	if (are_ordered_objects && planned->plan.limit > query->budget.limit_bytes / OBJECT_BYTES)
		return dx_plan_refuse(
			query, sequence,
			"objects in an order need Take() behind it, of one for each KiB of -memory at most");
	return plan_output(&planned->plan, plan_column(&planned->plan, COLUMN_ID)) &&
	       dx_plan_ready(making, sequence, &planned->target);
}

static bool row_next(struct dx_query *query, struct planned *planned)
{
	struct diag diag = {""};
	if (planned->next_row < planned->rows.count)
		return true;
	int status = plan_next(planned->run, &planned->rows, &diag);
	planned->next_row = 0;
	if (status < 0)
		dx_pipeline_failed(query, planned->pipeline.source, status, diag.text);
	return status > 0;
}

static void selection_make(struct dx_query *query, const struct planned *planned, struct dx_element *element)
{
	const struct selection *selection = &planned->selection;
	struct dx_value *values = dx_new(query->arena, struct dx_value, (size_t)selection->count + 1);
	for (uint32_t i = 0; i < selection->count; i++) {
		struct plan_value value = plan_cell(&planned->rows, planned->next_row, selection->first + i);
		values[i] = dx_plan_value(query, &selection->members[i], &value);
	}
	element->value = values[0];
	if (!selection->record)
		return;
	struct dx_record *record = dx_new(query->arena, struct dx_record, 1);
	*record = (struct dx_record){selection->count, (const char *const *)selection->record->names, values};
	element->value = dx_object(&dx_record_class, record);
}

/* ---- objects in another order ---- */

struct wanted_row {
	uint64_t id;
	uint32_t place;
};

COMPARE_BY(wanted_order, struct wanted_row, id)

/* The objects, read in the order of their numbers and put to their places. */
static void objects_read(struct dx_query *query, struct planned *planned, struct dx_iterator *iterator,
			 struct wanted_row *wanted, uint32_t count)
{
	uint32_t *list_place = dx_new(iterator->home, uint32_t, (size_t)count + 1);
	struct dx_element element;
	qsort(wanted, count, sizeof(*wanted), wanted_order);
	for (uint32_t i = 0; i < count && !query->is_stopped; i++) {
		struct dx_mark mark = dx_mark(query->arena);
		if (dx_object_read(query, &planned->reader, wanted[i].id, &element))
			dx_list_add(planned->objects, &element);
		dx_release(query->arena, mark);
		list_place[wanted[i].place] = i;
		dx_step_kept(query, iterator);
	}
	if (dx_list_count(planned->objects) < count)
		return;
	struct dx_element *elements = dx_list_elements(planned->objects),
			  *sorted = dx_new(iterator->home, struct dx_element, (size_t)count + 1);
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = elements[list_place[i]];
	for (uint32_t i = 0; i < count; i++)
		elements[i] = sorted[i];
}

static void objects_make(struct dx_query *query, struct planned *planned, struct dx_iterator *iterator)
{
	struct wanted_row *wanted = NULL;
	uint32_t count = 0;
	size_t capacity = 0;
	planned->objects = dx_list_new(query, iterator->home);
	for (; row_next(query, planned); planned->next_row++) {
		memory_grow(wanted, count, capacity);
		wanted[count] =
			(struct wanted_row){plan_cell(&planned->rows, planned->next_row, planned->id).number, count};
		count++;
	}
	if (count)
		objects_read(query, planned, iterator, wanted, count);
	free(wanted);
}

/* ---- the sequence ---- */

struct planned_state {
	struct planned *planned;
	struct dx_ahead ahead; /* of objects in another order */
};

static bool ahead_get(struct dx_query *query, const struct dx_ahead *ahead, uint32_t i, struct dx_value *value)
{
	const struct planned *planned = ahead->context;
	(void)query;
	*value = dx_list_elements(planned->objects)[i].value;
	return true;
}

static void planned_open(struct dx_query *query, struct dx_iterator *iterator)
{
	struct planned_state *state = iterator->state;
	(void)query;
	state->planned = (struct planned *)iterator->sequence->arguments[0].data;
}

static bool object_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct planned_state *state = iterator->state;
	struct planned *planned = state->planned;
	if (!planned->objects) {
		objects_make(query, planned, iterator);
		state->ahead = (struct dx_ahead){
			.get = ahead_get, .context = planned, .count = dx_list_count(planned->objects)};
	}
	if (query->is_stopped || state->ahead.next == state->ahead.count)
		return false;
	*element = dx_list_elements(planned->objects)[state->ahead.next];
	dx_ahead_pass(query, &state->ahead);
	return true;
}

static void planned_close(void *context)
{
	struct planned_state *state = context;
	dx_ahead_end(&state->ahead);
}

static bool planned_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct planned_state *state = iterator->state;
	struct planned *planned = state->planned;
	if (!planned->run)
		planned->run = plan_open(&planned->plan, &planned->target);
	if (planned->pipeline.order_count && !planned->pipeline.selection)
		return object_next(query, iterator, element);
	if (!row_next(query, planned))
		return false;
	uint64_t id = plan_cell(&planned->rows, planned->next_row, planned->id).number;
	element->index = dx_number(id);
	bool is_made = true;
	if (planned->pipeline.selection)
		selection_make(query, planned, element);
	else
		is_made = dx_object_read(query, &planned->reader, id, element);
	planned->next_row++;
	return is_made;
}

static const struct dx_operator planned_operator = {.name = "plan",
						    .state_bytes = sizeof(struct planned_state),
						    .open = planned_open,
						    .next = planned_next,
						    .close = planned_close};

static const struct dx_sequence *plan_sequence(struct dx_query *query, const struct dx_sequence *sequence)
{
	if (!sequence->source)
		return NULL;
	bool has_one = has_plan(query, sequence);
	const struct dx_sequence *groups = has_one ? dx_group_plan_sequence(query, sequence) : NULL;
	if (groups)
		return groups;
	groups = dx_group_sums_sequence(query, sequence);
	if (groups || query->is_stopped || !has_one) {
		dx_explain(query, sequence, NULL);
		return groups;
	}
	struct planned *planned = memory_zeroed(1, sizeof(*planned));
	const struct dx_plan_making making = {query, &planned->plan, query->arena};
	bool is_made = planned_make(&making, planned, sequence);
	dx_explain(query, sequence, is_made ? &planned->plan : NULL);
	if (!is_made) {
		planned_end(planned);
		return NULL;
	}
	dx_on_release(query->arena, planned_end, planned);
	planned->reader = (struct dx_object_reader){.source = planned->pipeline.source};
	struct dx_sequence *made = dx_sequence_new(query, &planned_operator, NULL, sequence->column);
	made->argument_count = 1;
	made->arguments[0] = (struct dx_value){.kind = DX_ABSENT, .data = planned};
	return made;
}

const struct dx_planner dx_planner = {
	.sequence = plan_sequence, .count = plan_count, .sum = plan_sum, .extreme = plan_extreme};
