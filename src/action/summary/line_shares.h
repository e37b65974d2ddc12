/* SPDX-License-Identifier: MIT */
/** Which lines of a function a row's bytes are from: one function may allocate in several lines. */
#ifndef XHEAP_ACTION_LINE_SHARES_H
#define XHEAP_ACTION_LINE_SHARES_H

#include "action/report/report_columns.h"
#include "action/summary/summary.h"

/** The bytes of a line. */
struct line_share {
	uint32_t line;
	uint64_t bytes;
};

/** The lines of a row, most bytes first. */
struct line_shares {
	struct line_share *items;
	size_t count, capacity;
	uint64_t bytes; /**< of all of them; 0: none has any, and the lines are in the order of other bytes */
};

/** Find the lines of a row: of the frame `node` of its stacks, by a number of bytes. There are none if the frame has
    one line by itself. Free them. */
void line_shares_find(struct line_shares *shares, const struct summary *summary, uint32_t row, uint32_t node,
		      enum action_number number);

/** Return whether the first line has too few of the bytes to stand for all. */
bool line_shares_are_several(const struct line_shares *shares);

/** Write "58 % at line 3, 41 % at line 4". */
void line_shares_tell(const struct line_shares *shares, struct sink *out);

/** Free them. */
void line_shares_fini(struct line_shares *shares);

#endif
