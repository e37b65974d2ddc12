/* SPDX-License-Identifier: MIT */
/** Numbers of budgets as people write them. */
#ifndef XHEAP_ACTION_BUDGET_NUMBER_H
#define XHEAP_ACTION_BUDGET_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

enum { BUDGET_WHOLE = 1000000 /* parts: percentages are stored in millionths */ };

/** Parse a number that may have a fraction and commas, times `whole`, rounded down. Return the text behind it; NULL: it
    is none, or too large. */
const char *budget_parse_scaled(const char *text, uint64_t whole, uint64_t *number);

/** Find what a unit is: of bytes, how many of them; or blocks, of which each is 1. Return false if it is no unit. */
bool budget_unit_find(const char *unit, uint64_t *bytes, bool *is_count);

/** Return the part of a value, rounded down: what the tolerance adds to it. */
uint64_t budget_share(uint64_t value, uint64_t millionths);

/** Return the least part of the value, in steps of a tenth of a percent, that is at least `amount`; in millionths. */
uint64_t budget_share_for(uint64_t value, uint64_t amount);

#endif
