/* SPDX-License-Identifier: MIT */
/** Which stacks a question is about: those of a frame or of a row of the page. */
#ifndef XHEAP_SERVER_QUESTION_STACKS_H
#define XHEAP_SERVER_QUESTION_STACKS_H

#include "action/report/action.h"
#include "server/answer/question.h"
#include "table/weight.h"

/** Return by site of the source's table whether its stack is asked for: the caller's. NULL: none is. nodes: by site,
    its node. */
bool *question_stacks_choose(const struct question *question, const struct action_source *source, const uint32_t *nodes,
			     struct heap_cull *cull);

/** Return whether a block is in the moment or the classes of the window that are asked about. */
bool question_selects(const struct question *question, const struct heap_allocation *block);

/** Takes a block that is asked for. */
typedef void question_block_take(void *context, const struct heap_allocation *block, struct heap_weight weight);

/** Call `take` with each block of the source that is selected, and whose site is among `sites`. */
void question_blocks_each(const struct question *question, const struct action_source *source, const bool *sites,
			  question_block_take *take, void *context);

/** Say in `diag` that no stack is asked for. Return -ENOENT. */
int question_stacks_missing(struct diag *diag);

#endif
