/* SPDX-License-Identifier: MIT */
#include "plan/run.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "plan/execute.h"

struct plan_run *plan_open_as(const struct plan *plan, const struct plan_target *target,
			      void (*begin)(struct plan_run *run))
{
	struct plan_run *run = memory_zeroed(1, sizeof(*run));
	CHECK_VALID(plan_is_valid(plan));
	*run = (struct plan_run){.plan = plan, .target = *target, .skip = plan->skip, .limit = plan->limit};
	begin(run);
	assert(run->next && run->end);
	return run;
}

struct plan_run *plan_open(const struct plan *plan, const struct plan_target *target)
{
	return plan_open_as(plan, target, plan_run_columns);
}

/* Leave out the first rows, and those behind the limit. */
static void rows_cut(struct plan_run *run, struct plan_rows *rows)
{
	uint32_t skipped = run->skip < rows->count ? (uint32_t)run->skip : rows->count;
	run->skip -= skipped;
	rows->cells += (size_t)skipped * rows->stride;
	rows->count -= skipped;
	rows->count = run->limit < rows->count ? (uint32_t)run->limit : rows->count;
	run->limit -= run->limit == UINT64_MAX ? 0 : rows->count;
}

int plan_next(struct plan_run *run, struct plan_rows *rows, struct diag *diag)
{
	*rows = (struct plan_rows){.plan = run->plan};
	if (run->over < 0)
		return diag_fail(diag, -run->over, "no more is read after an error");
	while (!run->over && run->limit) {
		int status = plan_run_check(run, diag);
		status = status ? status : run->next(run, rows, diag);
		if (status <= 0) {
			run->over = status ? status : 1;
			rows->count = 0;
			return status;
		}
		assert(rows->count && rows->stride > plan_width(run->plan));
		rows_cut(run, rows);
		if (rows->count)
			return 1;
	}
	run->over = 1;
	return 0;
}

void plan_close(struct plan_run *run)
{
	if (!run)
		return;
	run->end(run);
	free(run);
}
