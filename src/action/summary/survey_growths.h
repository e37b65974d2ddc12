/* SPDX-License-Identifier: MIT */
/** What grows, from the series of a survey. */
#ifndef XHEAP_ACTION_SURVEY_GROWTHS_H
#define XHEAP_ACTION_SURVEY_GROWTHS_H

#include "action/summary/survey.h"

struct survey_part;

/** Judge the series of all parts, which are summed up in this one, and set the growths of the survey. */
void survey_growths_judge(struct survey *survey, const struct survey_part *part);

#endif
