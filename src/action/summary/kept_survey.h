/* SPDX-License-Identifier: MIT */
/**
 * What the passes of a summary found, kept in the index of the trace: the next summary makes none of them. It is used
 * again for the same question, as long as each site has the same culled stack.
 *
 * The functions between begin and end are called in their order. Each sets its findings if they are known, and else
 * takes note of them.
 */
#ifndef XHEAP_ACTION_KEPT_SURVEY_H
#define XHEAP_ACTION_KEPT_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table/kept_answer.h"

struct action_input;
struct action_source;
struct heap_peak;
struct pinned;
struct put_in;
struct summary_process;
struct survey_part;
struct survey_plan;

/** Zero it where nothing is kept. */
struct kept_survey {
	const struct action_source *source; /**< NULL: nothing is kept */
	struct kept_answer answer;
};

/** Read what the index has for this question, about all blocks of the source. End it with kept_survey_end(). */
void kept_survey_begin(struct kept_survey *kept, struct action_input *input, struct action_source *source,
		       const struct survey_plan *plan);

/** Functions that may have been put into their callers. */
void kept_survey_put_in(struct kept_survey *kept, struct put_in *put_in);

/** The sums of the pass over all allocations, and the chart. */
void kept_survey_pass(struct kept_survey *kept, struct survey_part *part, struct heap_peak *chart,
		      uint32_t chart_parts);

/** The source's chains. */
void kept_survey_chains(struct kept_survey *kept, struct action_source *source);

/** The number of double frees. */
void kept_survey_double_frees(struct kept_survey *kept, unsigned *count);

/** The pinned pages. */
void kept_survey_pinned(struct kept_survey *kept, struct pinned *pinned);

/** The first `count` processes. Return how many of them are known: others are to be measured. */
size_t kept_survey_processes(struct kept_survey *kept, struct summary_process *processes, size_t count);

/** Keep in the index what it did not have, unless the table is damaged or the question was cancelled. Free the
    memory. */
void kept_survey_end(struct kept_survey *kept);

#endif
