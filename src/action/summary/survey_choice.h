/* SPDX-License-Identifier: MIT */
/** Who is examined: roles of threads, processes and stacks that may grow. */
#ifndef XHEAP_ACTION_SURVEY_CHOICE_H
#define XHEAP_ACTION_SURVEY_CHOICE_H

#include <stdbool.h>

struct survey_making;
struct survey_part;

/** Give each thread its role, choose the processes and then the stacks that are examined for growth. */
void survey_roles_find(struct survey_making *making);
void survey_slots_find(struct survey_making *making);
void survey_candidates_find(struct survey_making *making);

/** Let the growth of processes that free what they have before they exit be judged up to where that begins, from the
    sums of a pass. Return whether there are any: then these sums have to be made again. */
bool survey_endings_leave_out(struct survey_making *making, const struct survey_part *part);

#endif
