/* SPDX-License-Identifier: MIT */
/** A run of a plan, as the public functions (plan/plan.h) see it. */
#ifndef XHEAP_PLAN_RUN_H
#define XHEAP_PLAN_RUN_H

#include "base/cancel.h"
#include "plan/plan.h"

struct plan_run {
	const struct plan *plan;
	struct plan_target target;
	uint64_t read, left_out; /**< groups or event blocks */
	uint64_t skip, limit;    /**< rows still to be left out, to be shown */
	int over;                /**< 1: there are no more rows; or a negative errno */
	/** Set *rows to the next rows, before skip and limit. Return as plan_next(). */
	int (*next)(struct plan_run *run, struct plan_rows *rows, struct diag *diag);
	void (*end)(struct plan_run *run);
	void *state;
};

/** As plan_open(), by another way to run: `begin` sets what is called. */
struct plan_run *plan_open_as(const struct plan *plan, const struct plan_target *target,
			      void (*begin)(struct plan_run *run));

/** Return -ECANCELED with the reason if the run was cancelled, -EIO if the table is damaged, else 0. */
int plan_run_check(const struct plan_run *run, struct diag *diag);

/** Return the memory that an operator may use. */
static inline uint64_t plan_run_memory(const struct plan_run *run)
{
	return run->target.memory_bytes ? run->target.memory_bytes : PLAN_MEMORY_BYTES;
}

static inline bool plan_run_is_cancelled(const struct plan_run *run)
{
	return cancel_is_asked(run->target.is_cancelled);
}

#endif
