/* SPDX-License-Identifier: MIT */
/*
 * A position of a call is its point, or that less or plus the duration, as dx_event_start() and dx_event_end() have it.
 * No column has the steps of points, but an estimate has step 0, and a point that is alone in its nanosecond step 1:
 *
 *     time < SEQUENCE, or time == SEQUENCE and step < STEP
 *
 * is decided if STEP is 0 or behind all steps, or if the known position's nanosecond has one point at most.
 */
#include "dx/plans/plan_positions.h"

#include <string.h>
#include <strings.h>

#include "base/events.h"
#include "dx/core/syntax.h"
#include "dx/model/debugger.h"
#include "dx/model/positions.h"

static uint32_t apply(struct plan *plan, enum plan_operator operation, uint32_t one, uint32_t other)
{
	return plan_apply(plan, operation, one, other, PLAN_NOTHING);
}

static uint32_t action_is(struct plan *plan, enum plan_operator operation, enum event_kind kind)
{
	return apply(plan, operation, plan_column(plan, COLUMN_ACTION), plan_number(plan, kind));
}

static uint32_t flag_is_set(struct plan *plan, enum event_flag flag)
{
	uint32_t bits = apply(plan, PLAN_BITS_AND, plan_column(plan, COLUMN_FLAGS), plan_number(plan, flag));
	return apply(plan, PLAN_UNEQUAL, bits, plan_number(plan, 0));
}

/* ---- the position of a row ---- */

struct row_position {
	uint32_t time, step;
};

static uint32_t has_duration(struct plan *plan, bool is_end)
{
	uint32_t is_other = action_is(plan, is_end ? PLAN_GREATER : PLAN_AT_MOST, EVENT_REALLOC);
	uint32_t has_returned = apply(plan, PLAN_NOT, flag_is_set(plan, EVENT_IN_FLIGHT), PLAN_NOTHING);
	return apply(plan, PLAN_AND, is_other, has_returned);
}

static struct row_position position_make(struct plan *plan, bool is_end)
{
	uint32_t point = plan_column(plan, COLUMN_TIME);
	uint32_t duration = plan_apply(plan, PLAN_CHOOSE, has_duration(plan, is_end),
				       plan_column(plan, COLUMN_DURATION), plan_time(plan, 0));
	uint32_t moved = apply(plan, is_end ? PLAN_ADD : PLAN_SUBTRACT, point, duration);
	/* Without a duration, or with one that leads beyond all times, it is the point. */
	uint32_t is_moved = apply(plan, PLAN_IF_ABSENT, apply(plan, is_end ? PLAN_GREATER : PLAN_LESS, moved, point),
				  plan_truth(plan, false));
	/* A ReAlloc that gave a block has a point at its start, too. */
	uint32_t has_two = apply(plan, PLAN_AND, action_is(plan, PLAN_EQUAL, EVENT_REALLOC),
				 apply(plan, PLAN_NOT,
				       apply(plan, PLAN_IS_ABSENT, plan_column(plan, COLUMN_ADDRESS), PLAN_NOTHING),
				       PLAN_NOTHING));
	uint32_t is_estimated = apply(plan, PLAN_AND, is_moved, apply(plan, PLAN_NOT, has_two, PLAN_NOTHING));
	return (struct row_position){
		plan_apply(plan, PLAN_CHOOSE, is_moved, moved, point),
		plan_apply(plan, PLAN_CHOOSE, is_estimated, plan_number(plan, 0), plan_number(plan, 1))};
}

/* Calls around those of signal handlers begin earlier than their durations say. */
static bool has_signals(const struct dx_plan_making *making)
{
	struct dx_session *session = making->query->session;
	struct plan plan;
	struct plan_target target;
	struct plan_rows rows;
	struct diag diag = {""};
	if (session->lacks_signals)
		return false;
	plan_init(&plan, COLUMNS_OF_EVENTS);
	plan.filter = flag_is_set(&plan, EVENT_IN_SIGNAL);
	if (plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING) && dx_plan_target(making->query, &plan, &target)) {
		struct plan_run *run = plan_open(&plan, &target);
		session->lacks_signals = plan_next(run, &rows, &diag) > 0 && !plan_cell(&rows, 0, 0).number;
		plan_close(run);
	}
	plan_fini(&plan);
	return !session->lacks_signals;
}

/* ---- comparisons ---- */

static bool is_position(const struct dx_node *node)
{
	return node->kind == DX_NODE_LITERAL && node->literal.kind == DX_POSITION;
}

bool dx_plan_position_is_compared(const struct dx_node *node)
{
	return is_position(node->first) || is_position(node->second);
}

/* Set *is_end for the member of the parameter that is a position. */
static bool member_find(const struct dx_node *node, const char *parameter, bool *is_end)
{
	*is_end = node->kind == DX_NODE_MEMBER && !strcasecmp(node->name, "TimeEnd");
	return node->kind == DX_NODE_MEMBER && node->first->kind == DX_NODE_NAME &&
	       !strcmp(node->first->name, parameter) && (*is_end || !strcasecmp(node->name, "TimeStart"));
}

/* Whether the step of a row with the position's time is the one that it has here, wherever that matters. */
static bool are_steps_known(const struct dx_query *query, const struct dx_value *position)
{
	return !position->step || position->step == UINT32_MAX ||
	       dx_position_is_alone(query->session->trace, position->sequence_ns);
}

/* Return the operation with the position that is known on its right. */
static unsigned operation_of(const struct dx_node *node, bool is_turned)
{
	static const uint8_t turned[] = {[DX_LESS] = DX_GREATER,
					 [DX_GREATER] = DX_LESS,
					 [DX_LESS_EQUAL] = DX_GREATER_EQUAL,
					 [DX_GREATER_EQUAL] = DX_LESS_EQUAL,
					 [DX_EQUAL] = DX_EQUAL,
					 [DX_UNEQUAL] = DX_UNEQUAL};
	return is_turned ? turned[node->operation] : node->operation;
}

uint32_t dx_plan_position_comparison(const struct dx_plan_making *making, const struct dx_node *node,
				     const char *parameter)
{
	struct plan *plan = making->plan;
	bool is_first = is_position(node->first), is_end;
	const struct dx_node *member = is_first ? node->second : node->first;
	const struct dx_value *known = is_first ? &node->first->literal : &node->second->literal;
	if (plan->source != COLUMNS_OF_EVENTS || !member_find(member, parameter, &is_end) ||
	    !are_steps_known(making->query, known) || (!is_end && has_signals(making)))
		return PLAN_NOTHING;
	const struct row_position row = position_make(plan, is_end);
	uint32_t time = plan_time(plan, known->sequence_ns), step = plan_number(plan, known->step);
	bool is_behind_steps = known->step == UINT32_MAX;
	uint32_t is_earlier = apply(plan, is_behind_steps ? PLAN_AT_MOST : PLAN_LESS, row.time, time);
	uint32_t is_before = is_earlier, is_at_most = is_earlier,
		 is_same_time = is_behind_steps ? plan_truth(plan, false) : apply(plan, PLAN_EQUAL, row.time, time);
	uint32_t is_same = apply(plan, PLAN_AND, is_same_time, apply(plan, PLAN_EQUAL, row.step, step));
	if (known->step && !is_behind_steps)
		is_before = apply(plan, PLAN_OR, is_earlier,
				  apply(plan, PLAN_AND, is_same_time, apply(plan, PLAN_LESS, row.step, step)));
	if (!is_behind_steps)
		is_at_most = apply(plan, PLAN_OR, is_earlier,
				   apply(plan, PLAN_AND, is_same_time, apply(plan, PLAN_AT_MOST, row.step, step)));
	switch (operation_of(node, is_first)) {
	case DX_LESS:
		return is_before;
	case DX_LESS_EQUAL:
		return is_at_most;
	case DX_GREATER:
		return apply(plan, PLAN_NOT, is_at_most, PLAN_NOTHING);
	case DX_GREATER_EQUAL:
		return apply(plan, PLAN_NOT, is_before, PLAN_NOTHING);
	case DX_EQUAL:
		return is_same;
	default:
		return apply(plan, PLAN_NOT, is_same, PLAN_NOTHING);
	}
}
