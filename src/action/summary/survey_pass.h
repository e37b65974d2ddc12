/* SPDX-License-Identifier: MIT */
/** The one pass over all allocations: each thread adds up its share, and the shares are merged. */
#ifndef XHEAP_ACTION_SURVEY_PASS_H
#define XHEAP_ACTION_SURVEY_PASS_H

struct survey_making;
struct survey_part;

/** Begin the part of a thread of the pass; `number` from 0. */
void survey_part_begin(struct survey_part *part, struct survey_making *making, unsigned number);

/** Add up the thread's share of the allocations. context: its struct survey_part. */
void survey_part_run(void *context);

/** Add the sums of `from`. */
void survey_part_merge(struct survey_part *to, struct survey_part *from);

/** Free the sums. */
void survey_part_fini(struct survey_part *part);

#endif
