/* SPDX-License-Identifier: MIT */
/** Who is examined: roles of threads, processes and stacks that may grow. */
#ifndef XHEAP_ACTION_SURVEY_CHOICE_H
#define XHEAP_ACTION_SURVEY_CHOICE_H

struct survey_making;

/** Give each thread its role, choose the processes and then the stacks that are examined for growth. */
void survey_roles_find(struct survey_making *making);
void survey_slots_find(struct survey_making *making);
void survey_candidates_find(struct survey_making *making);

#endif
