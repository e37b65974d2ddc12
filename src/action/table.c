/* SPDX-License-Identifier: MIT */
#include "action/action.h"

const struct action *const action_table[] = {&action_stacks, &action_frames, &action_image, &action_totals};
const unsigned action_count = sizeof(action_table) / sizeof(*action_table);
