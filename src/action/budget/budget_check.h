/* SPDX-License-Identifier: MIT */
/** A budget held against one trace, or against several runs of one program. docs/ci.md has the rules. */
#ifndef XHEAP_ACTION_BUDGET_CHECK_H
#define XHEAP_ACTION_BUDGET_CHECK_H

#include "action/budget/budget_figures.h"

/** X(id, word in JSON): what comes of a limit. */
#define VERDICTS(X) \
	X(OK, "ok") \
	X(UNMATCHED, "unmatched") /* it holds since nothing has its name; and it is not 0 */ \
	X(UNCERTAIN, \
	  "uncertain")          /* it is exceeded if allocations belong to it whose stacks or threads are not known */ \
	X(UNSTABLE, "unstable") /* chance decides: the figure varies by more than the tolerance */ \
	X(OVER, "over")

enum verdict_state {
#define X(id, word) VERDICT_##id,
	VERDICTS(X)
#undef X
		VERDICT_STATE_COUNT
};

extern const char *const verdict_words[VERDICT_STATE_COUNT];

/** A stack with its part of a limit's figure. */
struct verdict_stack {
	uint32_t node; /**< after culling; 0: no stack */
	uint64_t number;
	uint64_t before; /**< in the baseline's last run; 0 without one */
};

/** What came of one limit. */
struct verdict {
	enum verdict_state state;
	uint64_t allowed;
	uint64_t least, most;    /**< of the runs; of a sample the ends of the interval of two standard errors */
	uint64_t possible;       /**< the greatest figure with all that may belong to it */
	unsigned highest;        /**< the first run with the greatest figure */
	bool is_unmatched_frame; /**< it is a frame, not a thread or process */
	uint32_t unmatched;      /**< the word that matches nothing, or HEAP_NONE */
	/** of that run, the greatest first, but for those of functions that are within limits of their own, which come
	    last; with a baseline those that grew, the greatest growth first */
	struct verdict_stack *stacks;
	size_t stack_count, stacks_in_all;
};

/** An image of which a trace has no names, and others have: no stack of one is that of another. */
struct budget_nameless {
	const char *path, *image; /**< NULL: all have the same names */
};

/** All of it. The caller owns budget and input and sets the first members; zero the rest. */
struct budget_check {
	const struct budget *budget;
	struct action_input *input; /**< a source for each run; its names and filters are prepared */
	/** the traces that the budget was made of, for the report to name; NULL: people wrote the budget. A function
	    that is gone is no fault then. */
	struct action_input *baseline;
	struct budget_nameless nameless; /**< of the baseline or the input: what its stacks had before is not known */
	bool takes_incomplete; /**< a trace that lacks calls is no failure */
	bool is_strict;        /**< each limit has to be ok */
	uint32_t stacks_max;   /**< of each limit that is not */
	/* Found by budget_check_make(). */
	struct budget_match *match;
	struct budget_figures *runs;  /**< by source */
	struct budget_figures before; /**< of the baseline's last run, not counted */
	struct verdict *verdicts;     /**< by limit */
	uint32_t *order; /**< of the limits, as people read them: those that name a function first, then the others as
			    they stand in the budget */
	size_t counts[VERDICT_STATE_COUNT];
	unsigned incomplete_count; /**< runs that lack calls */
};

enum { BUDGET_DETAILED_MAX = 20 /* limits whose stacks are found */ };

/** Hold the budget against all sources. End it with budget_check_fini(). Return 0, or -ENOTSUP with the reason in diag:
 *  "FILE:LINE:COLUMN: why", a trace does not have the answer. */
int budget_check_make(struct budget_check *check, struct diag *diag);

/** Free what was found. */
void budget_check_fini(struct budget_check *check);

/** Return whether stacks have numbers of the baseline beside their own. */
static inline bool budget_check_has_before(const struct budget_check *check)
{
	return check->baseline && !check->nameless.path;
}

/** Return whether the check failed. */
bool budget_check_has_failed(const struct budget_check *check);

/** Return whether a limit in this state fails the check. */
bool budget_check_is_failure(const struct budget_check *check, const struct verdict *verdict);

/** Return the figure of the limit in the run. */
uint64_t budget_check_figure(const struct budget_check *check, const struct budget_limit *limit, unsigned run);

/** Return the limit's kind of number, as people read it: bytes with a unit, or a count. */
struct text budget_number_text(const struct budget_limit *limit, uint64_t number);

#endif
