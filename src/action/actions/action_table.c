/* SPDX-License-Identifier: MIT */
#include "action/actions/action_table.h"

const struct action *const action_table[ACTION_COUNT] = {
	[ACTION_STACKS] = &action_stacks,         [ACTION_FRAMES] = &action_frames,
	[ACTION_INCLUSIVE] = &action_inclusive,   [ACTION_IMAGE] = &action_image,
	[ACTION_HEAPS] = &action_heaps,           [ACTION_TREE] = &action_tree,
	[ACTION_CALLERS] = &action_callers_table, [ACTION_CHAINS] = &action_chains,
	[ACTION_TOTALS] = &action_totals,
};
