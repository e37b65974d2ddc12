/* SPDX-License-Identifier: MIT */
/** What -explain says of plans: which part of a query runs as one, or why none does. */
#ifndef XHEAP_DX_EXPLAIN_H
#define XHEAP_DX_EXPLAIN_H

#include "dx/core/query.h"

struct plan;

/** Keep the reason why a sequence has no plan, unless there is one already. Return false. */
bool dx_plan_refuse(struct dx_query *query, const struct dx_sequence *sequence, const char *reason);

/** Write the plan of a sequence; or, if `plan` is NULL, the reason that was kept. Nothing without -explain. */
void dx_explain(struct dx_query *query, const struct dx_sequence *sequence, const struct plan *plan);

#endif
