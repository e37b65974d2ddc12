/* SPDX-License-Identifier: MIT */
/** Words and amounts of differences. */
#ifndef XHEAP_ACTION_DIFF_WORDS_H
#define XHEAP_ACTION_DIFF_WORDS_H

#include "action/diff/diff.h"
#include "base/text.h"

/** X(id, name): the words of `enum diff_basis`. */
#define DIFF_BASES(X) X(AS_IS, "none") X(BY_TIME, "time") X(BY_COUNT, "count") X(BY_FACTOR, "factor")

/** Return the word of the basis. */
const char *diff_basis_name(enum diff_basis basis);

/** Return the letter of a side: "A", "B". */
const char *diff_side_name(enum diff_side side);

/** Return "new", "gone" or "both". */
const char *diff_state_name(enum diff_state state);

/** Format an amount of this number for people, without its sign: "1.2 MiB", "1,234". */
struct text diff_text_amount(enum action_number number, long double amount);

/** Format a change in percent: "+4.2 %"; "" if there is none, or if A's number is 0. */
struct text diff_text_percent(const struct diff_change *change);

#endif
