/* SPDX-License-Identifier: MIT */
/**
 * Members as expressions of a plan (plan/plan.h), and their values. What has no translation is PLAN_NOTHING, and the
 * interpreter does it.
 */
#ifndef XHEAP_DX_PLAN_MEMBERS_H
#define XHEAP_DX_PLAN_MEMBERS_H

#include "dx/core/query.h"
#include "plan/plan.h"

/** What a value of a plan is in the language. */
enum dx_plan_shape {
	DX_PLAN_NUMBER,
	DX_PLAN_ADDRESS,
	DX_PLAN_SIGNED, /**< of type PLAN_TIME */
	DX_PLAN_TRUTH,
	DX_PLAN_WORD, /**< a place in `words` */
	DX_PLAN_ENTRY /**< the first of the trace's entries that has this name */
};

/** A member as an expression. */
struct dx_plan_member {
	uint32_t node; /**< PLAN_NOTHING: it has no translation */
	enum dx_plan_shape shape;
	const char *const *words; /**< of DX_PLAN_WORD: `word_count` of them */
	uint32_t word_count;
	const struct column *column; /**< that it is; NULL: none, or computed */
};

/** A plan that is made for a query. Lookups lie in `arena`. */
struct dx_plan_making {
	struct dx_query *query;
	struct plan *plan;
	struct dx_arena *arena;
};

/** Translate the member of this name, of the elements of the plan's source. */
struct dx_plan_member dx_plan_member_of(const struct dx_plan_making *making, const char *name);

/** Return a lookup of entries: the first one of the name (text NULL), or whether they have the name. */
uint32_t dx_plan_entries_lookup(const struct dx_plan_making *making, uint32_t node, const char *text);

/** Return whether values of the shape have in the plan the order of the language. */
bool dx_plan_has_order(enum dx_plan_shape shape);

/** Return the value that the interpreter would have of the member. */
struct dx_value dx_plan_value(const struct dx_query *query, const struct dx_plan_member *member,
			      const struct plan_value *value);

/** Leave only rows that are elements of the language: calls, and blocks that the trace has the beginning of. */
void dx_plan_restrict(struct plan *plan);

/** Set what the plan is run over; false: the trace has no table. */
bool dx_plan_target(struct dx_query *query, const struct plan *plan, struct plan_target *target);

#endif
