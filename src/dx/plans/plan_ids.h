/* SPDX-License-Identifier: MIT */
/**
 * Expressions over what a row has an id of: its stacks, its threads, its process. The interpreter makes their values of
 * the ids, once for each id and not for each row.
 */
#ifndef XHEAP_DX_PLAN_IDS_H
#define XHEAP_DX_PLAN_IDS_H

#include "dx/model/debugger.h"
#include "dx/plans/plan_members.h"

/** An expression over one id. */
struct dx_plan_made {
	enum column_source source;
	uint32_t root;            /**< what the id is of: a row of plan_ids.c */
	bool is_stack;            /**< the expression is the stack itself */
	struct dx_closure lambda; /**< of what the id stands for */
};

/** Take an expression over the lambda's parameter. False: it is none over one id, or may have effects. */
bool dx_plan_made_take(const struct dx_plan_making *making, const struct dx_closure *lambda, struct dx_node *node,
		       struct dx_plan_made *made);

/** Return the id of rows, as a node of the plan. */
uint32_t dx_plan_made_id(struct plan *plan, const struct dx_plan_made *made);

/** Return the expression's value of an id, in the query's arena. */
struct dx_value dx_plan_made_value(struct dx_query *query, const struct dx_plan_made *made, uint64_t id,
				   bool is_absent);

/** Return the stack of the number of a site. */
struct heap_site dx_plan_site(const struct dx_query *query, enum column_source source, uint64_t number);

/** Translate a condition over one id of the lambda's parameter, whose values are found by dx_plan_ready(). Return
    PLAN_NOTHING if it is none. */
uint32_t dx_plan_made_condition(const struct dx_plan_making *making, const struct dx_closure *lambda,
				struct dx_node *node);

/** Find what conditions of the plan say of the ids in the trace, and set what it is run over. Return false if there is
    no plan for the sequence: a condition is an error of some id, or the trace has no table. */
bool dx_plan_ready(const struct dx_plan_making *making, const struct dx_sequence *sequence, struct plan_target *target);

#endif
