/* SPDX-License-Identifier: MIT */
#include "action/diff/diff_words.h"

#include <math.h>
#include <stdio.h>

const char *diff_basis_name(enum diff_basis basis)
{
	static const char *const names[] = {
#define X(id, name) [DIFF_##id] = name,
		DIFF_BASES(X)
#undef X
	};
	return names[basis];
}

const char *diff_side_name(enum diff_side side)
{
	return side == DIFF_A ? "A" : "B";
}

const char *diff_state_name(enum diff_state state)
{
	static const char *const names[] = {[DIFF_IN_BOTH] = "both", [DIFF_IS_NEW] = "new", [DIFF_IS_GONE] = "gone"};
	return names[state];
}

struct text diff_text_amount(enum action_number number, long double amount)
{
	const uint64_t rounded = (uint64_t)(fabsl(amount) + 0.5L);
	return diff_is_size(number) ? text_bytes(rounded) : text_count(rounded);
}

struct text diff_text_percent(const struct diff_change *change)
{
	struct text text = {""};
	double percent = diff_percent(change);
	if (change->change == 0 || isinf(percent))
		return text;
	snprintf(text.data, sizeof(text.data), fabs(percent) < 1000 ? "%+.1f %%" : "%+.0f %%", percent);
	return text;
}
