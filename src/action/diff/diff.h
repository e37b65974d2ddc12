/* SPDX-License-Identifier: MIT */
/**
 * Differences: the change of each number from side A to side B. A side is one source of an input (a trace, or a window
 * of one), or several sources: runs of the same work. The rows are those of an action over all sources
 * (action/report/report_rows.h); here are their changes, their errors, and limits for the changes. A report that
 * compares nothing has side A only.
 */
#ifndef XHEAP_ACTION_DIFF_H
#define XHEAP_ACTION_DIFF_H

#include "action/report/report_rows.h"
#include "base/diag.h"

enum diff_side { DIFF_A, DIFF_B, DIFF_SIDES };

/** The sources of a difference. The caller owns the parts. */
struct diff {
	struct action_input *input;
	unsigned runs[DIFF_SIDES]; /**< number of A's sources, which come first in the input, and of B's; B's 0: no B */
	const long double *scales; /**< by source: a factor for its numbers; NULL: 1 for all */
};

/** A number of one side: exact integers while there is one run and no factor. */
struct diff_value {
	long double mean;     /**< over the runs */
	long double min, max; /**< of the runs */
	double deviation;     /**< sample standard deviation of the runs; 0 for a single run */
};

/** A number of both sides. */
struct diff_change {
	struct diff_value sides[DIFF_SIDES];
	long double change; /**< B's mean less A's */
	double error;       /**< standard error of `change`, from the runs or from a sample; 0: exact */
	double margin;      /**< half of the 95 % interval around `change`; 0: exact */
	bool is_in_spread;  /**< there is a change, and zero lies in that interval */
};

/** A side, or both, that have a row. */
enum diff_state { DIFF_IN_BOTH, DIFF_IS_NEW, DIFF_IS_GONE };

/** Return the first source of the side. */
static inline unsigned diff_first_source(const struct diff *diff, enum diff_side side)
{
	return side == DIFF_A ? 0 : diff->runs[DIFF_A];
}

/** Return the number of sides: 1 or 2. */
static inline unsigned diff_side_count(const struct diff *diff)
{
	return diff->runs[DIFF_B] ? DIFF_SIDES : 1;
}

/** Return whether the number is known in all sources. */
bool diff_has_number(const struct diff *diff, enum action_number number);

/** Return whether the number is one of bytes. */
bool diff_is_size(enum action_number number);

/** Set *companion to the count beside a size, or to the size beside a count. Return false if there is none. */
bool diff_companion(enum action_number number, enum action_number *companion);

/** Return whether some source is a sample, whose numbers are estimates: of a side, of both. */
bool diff_side_is_sample(const struct diff *diff, enum diff_side side);
bool diff_is_sample(const struct diff *diff);

/** Return whether a side has several runs. */
bool diff_has_runs(const struct diff *diff);

/** Return the change of a row's number. A source without the row counts as 0. Without B there is A's number only. */
struct diff_change diff_of_row(const struct diff *diff, const struct action_row *row, enum action_number number);

/** Return the change of the totals' number. */
struct diff_change diff_of_totals(const struct diff *diff, enum action_number number);

/** Return which side has the row. */
enum diff_state diff_row_state(const struct diff *diff, const struct action_row *row);

/** Return whether one of the known numbers changed: of the row, of the totals. */
bool diff_row_is_changed(const struct diff *diff, const struct action_row *row);
bool diff_totals_are_changed(const struct diff *diff);

/** Return the change in percent of A's mean; INFINITY or -INFINITY if that is 0. */
double diff_percent(const struct diff_change *change);

/** How many rows an action has, also of those that did not change. */
struct diff_counts {
	uint64_t states[3]; /**< in both sides, in B only, in A only, by enum diff_state */
	uint64_t by_offset; /**< of those in both: matched by build-ids and offsets, at least in part */
	uint64_t unchanged; /**< of those in both */
	/** of the changed rows: those that changed in the number that sorts them, or have such rows beneath them */
	size_t changed_by_sort;
};

/** Make the rows of an action that changed, the greatest change first, at most `top` to be shown; and count all. End
    them with action_rows_fini(). */
void diff_rows_make(struct action_rows *rows, struct diff_counts *counts, const struct diff *diff,
		    const struct action *action, const struct action_sort *sort, uint64_t top);

/** How much a number may grow. */
struct diff_limit {
	bool is_percent;
	double percent;  /**< of A's mean */
	uint64_t amount; /**< blocks or bytes */
};

/** Parse "5%", "0.5%", "100" or "64K". Return 0, or -EINVAL with the reason in diag. */
int diff_limit_parse(struct diff_limit *limit, const char *text, struct diag *diag);

/** Return whether the number grew by more than the limit. A change within its spread is no growth. */
bool diff_is_above(const struct diff_change *change, const struct diff_limit *limit);

/** What numbers are made comparable by. */
enum diff_basis { DIFF_AS_IS, DIFF_BY_TIME, DIFF_BY_COUNT, DIFF_BY_FACTOR };

/** Fill in scales[source] for all sources: each run counts as if it had the mean time (or total count) of A's runs; by
 *  a factor, B's numbers are multiplied by it. Return 0, or -EINVAL with the reason in diag: a run has no time, or no
 *  allocations. */
int diff_scales(long double *scales, const struct diff *diff, enum diff_basis basis, double factor, struct diag *diag);

#endif
