/* SPDX-License-Identifier: MIT */
/** Why a process is so large: its resident memory at a reading, and what keeps it (docs/semantics.md). */
#ifndef XHEAP_ACTION_WHY_H
#define XHEAP_ACTION_WHY_H

#include "action/report/action.h"
#include "base/diag.h"
#include "query/account.h"

/** What is asked. */
struct why_question {
	uint32_t pid; /**< 0: of the largest reading, or the last one */
	enum account_moment which;
	int64_t time_ns; /**< of ACCOUNT_NEAREST */
	uint64_t top;    /**< rows of each list */
};

/** A stack that asked for blocks, without the frames that are culled. */
struct why_stack {
	uint32_t node;
	struct account_site sums; /**< of its sites; `site` says nothing */
};

/** The answer. Zero it to begin; end it with why_fini(). */
struct why {
	struct action_input *input;
	struct action_source *source;
	struct why_question question;
	struct account account;
	uint32_t reading_count;             /**< of the process */
	struct why_stack *stacks;           /**< with the most live bytes first */
	struct why_stack *keepers;          /**< the same, with the most pages that few blocks keep first */
	uint32_t stack_count, keeper_count; /**< keeper_count: of those that keep any */
};

/** Answer the question about the first source of the input. Return 0, or a negative errno with the reason in `diag`. */
int why_make(struct why *why, struct action_input *input, const struct why_question *question, struct diag *diag);

/** Free what the answer has of its own. */
void why_fini(struct why *why);

/** Write the answer for people. */
void why_text(const struct why *why, struct sink *out);

/** Write the answer as JSON: docs/schema/why.json. */
void why_json(const struct why *why, struct sink *out);

#endif
