/* SPDX-License-Identifier: MIT */
#include "dx/plans/explain.h"

#include "plan/plan_text.h"

bool dx_plan_refuse(struct dx_query *query, const struct dx_sequence *sequence, const char *reason)
{
	struct dx_explanation *explanation = query->explanation;
	if (explanation && !explanation->reason) {
		explanation->reason = reason;
		explanation->operation = sequence->operation->name;
		explanation->column = sequence->column;
	}
	return false;
}

/* Lambdas open the same sequence again and again. */
static bool is_new(struct dx_explanation *explanation, const struct dx_sequence *sequence)
{
	for (unsigned i = 0; i < explanation->count; i++)
		if (explanation->columns[i] == sequence->column)
			return false;
	if (explanation->count == DX_EXPLAINED_MAX)
		return false;
	explanation->columns[explanation->count++] = sequence->column;
	return true;
}

void dx_explain(struct dx_query *query, const struct dx_sequence *sequence, const struct plan *plan)
{
	struct dx_explanation *explanation = query->explanation;
	if (!explanation)
		return;
	if (is_new(explanation, sequence)) {
		sink_format(explanation->out, "%s, column %d: ", sequence->operation->name, sequence->column + 1);
		if (plan) {
			sink_text(explanation->out, "all up to here is a plan\n");
			plan_describe(plan, "    ", explanation->out);
		} else if (explanation->reason && explanation->column != sequence->column) {
			sink_format(explanation->out, "no plan: %s, column %d: %s\n", explanation->operation,
				    explanation->column + 1, explanation->reason);
		} else {
			sink_format(explanation->out, "no plan: %s\n",
				    explanation->reason ? explanation->reason : "it has no translation");
		}
	}
	explanation->reason = NULL;
}
