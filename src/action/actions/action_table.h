/* SPDX-License-Identifier: MIT */
/** All actions. */
#ifndef XHEAP_ACTION_ACTION_TABLE_H
#define XHEAP_ACTION_ACTION_TABLE_H

#include "action/report/action.h"

extern const struct action action_stacks, action_frames, action_inclusive, action_image, action_heaps, action_tree,
	action_callers_table, action_chains, action_totals;

/** The places in `extra` of action_chains. */
enum action_chains_extra { CHAINS_COUNT, CHAINS_STEPS, CHAINS_STEPS_MAX, CHAINS_FACTOR, CHAINS_COPIED };

/** Find the chains of a source once. */
void action_chains_settle(struct action_source *source);

/** The actions that people may ask for. */
enum action_place {
	ACTION_STACKS,
	ACTION_FRAMES,
	ACTION_INCLUSIVE,
	ACTION_IMAGE,
	ACTION_HEAPS,
	ACTION_TREE,
	ACTION_CALLERS,
	ACTION_CHAINS,
	ACTION_TOTALS,
	ACTION_COUNT
};
extern const struct action *const action_table[ACTION_COUNT];

#endif
