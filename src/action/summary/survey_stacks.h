/* SPDX-License-Identifier: MIT */
/** Stacks with what the survey of their source found: the rows of `xheap report`. */
#ifndef XHEAP_ACTION_SURVEY_STACKS_H
#define XHEAP_ACTION_SURVEY_STACKS_H

struct action;

/** Stacks with what a survey found. It is no action that people ask for. */
extern const struct action action_surveyed;

#endif
