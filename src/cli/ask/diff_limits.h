/* SPDX-License-Identifier: MIT */
/** How much the numbers of a diff may grow, as options. */
#ifndef XHEAP_CLI_DIFF_LIMITS_H
#define XHEAP_CLI_DIFF_LIMITS_H

#include "action/diff/diff.h"

/** What --fail-above and --fail-frames ask for. Zero it. */
struct diff_limits {
	const char *word; /**< as typed; NULL: there is no limit */
	struct diff_limit limit;
	struct heap_patterns frames; /**< whose stacks have the limit, too */
};

/** Return CLI_NO after messages if the total of the sort's number, or a stack that is limited, too, grew by too much;
 *  else CLI_OK. */
int diff_limits_judge(struct diff_limits *limits, const struct diff *diff, const struct action_sort *sort);

#endif
