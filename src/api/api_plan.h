/* SPDX-License-Identifier: MIT */
/** The plans of xheap.h: a plan (plan/plan.h) with names for what it shows. */
#ifndef XHEAP_API_API_PLAN_H
#define XHEAP_API_API_PLAN_H

#include "api/api.h"
#include "plan/plan.h"

/** What the caller has of a node: its number, and how its values are shown. */
enum {
	NODE_AS_ID = 1 << 30,     /**< a function or a thread as its id, not as its text */
	NODE_AS_TEXT = 1 << 29,   /**< a stack as its text */
	NODE_AS_CALLER = 1 << 28, /**< a stack as the first function of the program's own code */
	NODE_FLAGS = NODE_AS_ID | NODE_AS_TEXT | NODE_AS_CALLER
};

/** Return the node's number. */
static inline uint32_t api_plan_node(uint32_t handle)
{
	return handle == XHEAP_NONE ? PLAN_NOTHING : handle & ~(uint32_t)NODE_FLAGS;
}

/** A column of the result. */
struct api_plan_shown {
	char *name;
	enum { SHOWN_OUTPUT, SHOWN_KEY, SHOWN_AGGREGATE } part;
	uint32_t place;  /**< among those of its part */
	uint32_t handle; /**< what it is, or is made of; XHEAP_NONE: a count of rows */
};

struct xheap_plan {
	unsigned references;
	struct plan plan; /**< its orders have numbers of `shown` */
	struct api_plan_shown shown[PLAN_OUTPUTS_MAX];
	uint32_t shown_count;
	struct plan_lookup **lookups;
	size_t lookup_count, lookup_capacity;
	struct diag reason; /**< why it cannot be obeyed; "": it can */
};

/** Count one more user of the plan's lookups. */
void api_plan_hold(struct xheap_plan *plan);

/** Return the column of the result that the plan's run has at this place: of outputs; or of keys, then aggregates. */
uint32_t api_plan_place(const struct xheap_plan *plan, const struct api_plan_shown *shown);

/** Return the column of the table that a node is, NULL: it is none. */
const struct column *api_plan_column(const struct xheap_plan *plan, uint32_t handle);

/** Make *to the plan as it can be run, with nodes of its own; it needs the lookups of `plan`. Return 0, or -EINVAL with
    the reason in `diag`. */
int api_plan_take(struct plan *to, const struct xheap_plan *plan, struct diag *diag);

#endif
