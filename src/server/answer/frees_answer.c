/* SPDX-License-Identifier: MIT */
#include "server/answer/frees_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "server/answer/function_json.h"
#include "server/answer/question.h"
#include "server/answer/question_stacks.h"

/* Blocks that a stack freed. */
struct freed_sum {
	uint32_t site;
	uint64_t blocks, bytes;
};

struct frees_answer {
	struct shown_trace *shown;
	const struct question *question;
	struct sink *out;
	struct freed_sum *freed; /* by site */
	uint32_t site_count;
	struct freed_sum asked, never_freed;
};

/* ---- which blocks ---- */

static void sum_add(struct freed_sum *sum, struct heap_weight weight)
{
	sum->blocks += weight.count;
	sum->bytes += weight.bytes;
}

static void block_add(void *context, const struct heap_allocation *block, struct heap_weight weight)
{
	struct frees_answer *answer = context;
	sum_add(&answer->asked, weight);
	if (!heap_end_is_given_back(block->end))
		sum_add(&answer->never_freed, weight);
	else if (block->end_site < answer->site_count)
		sum_add(&answer->freed[block->end_site], weight);
}

/* ---- the answer ---- */

static int compare_freed(const void *one, const void *other)
{
	const struct freed_sum *a = one, *b = other;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (a->blocks != b->blocks)
		return a->blocks < b->blocks ? 1 : -1;
	return a->site < b->site ? -1 : a->site > b->site;
}

static void json_sum(struct json *json, const struct freed_sum *sum)
{
	json_count(json, "blocks", sum->blocks);
	json_count(json, "bytes", sum->bytes);
}

static void json_freed(struct json *json, const struct action_source *source, const struct freed_sum *freed)
{
	json_begin_object(json, NULL);
	function_json_site(json, "frames", source, freed->site);
	json_sum(json, freed);
	json_end_object(json);
}

static void answer_write(struct frees_answer *answer, const struct action_source *source, uint32_t count)
{
	struct json json = {.out = answer->out, .is_for_script = true};
	uint32_t shown = count < FREES_MAX ? count : FREES_MAX;
	answer->out->used = 0;
	json_begin_object(&json, NULL);
	json_begin_array(&json, "stacks");
	for (uint32_t i = 0; i < shown; i++)
		json_freed(&json, source, &answer->freed[i]);
	json_end_array(&json);
	json_count(&json, "left_out", count - shown);
	json_sum(&json, &answer->asked);
	json_begin_object(&json, "never_freed");
	json_sum(&json, &answer->never_freed);
	json_end_object(&json);
	json_end_object(&json);
	json_end(&json);
}

static int answer_make(void *context, struct analysis *analysis, struct diag *diag)
{
	struct frees_answer *answer = context;
	const struct action_source *source = analysis->input.sources;
	const uint32_t site_count = source->table->site_count;
	uint32_t count = 0;
	const uint32_t *nodes = shown_trace_nodes(answer->shown, source);
	if (!nodes)
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	bool *sites = question_stacks_choose(answer->question, source, nodes, analysis->input.cull);
	if (!sites)
		return question_stacks_missing(diag);
	answer->asked = answer->never_freed = (struct freed_sum){.blocks = 0};
	answer->freed = memory_zeroed((size_t)site_count + 1, sizeof(*answer->freed));
	answer->site_count = site_count;
	question_blocks_each(answer->question, source, sites, block_add, answer);
	for (uint32_t i = 0; i < site_count; i++)
		if (answer->freed[i].blocks)
			answer->freed[count++] = (struct freed_sum){i, answer->freed[i].blocks, answer->freed[i].bytes};
	qsort(answer->freed, count, sizeof(*answer->freed), compare_freed);
	answer_write(answer, source, count);
	free(answer->freed);
	free(sites);
	return 0;
}

int frees_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag)
{
	struct frees_answer answer = {.shown = shown, .question = question, .out = out};
	const struct shown_question ask = {
		.shown = shown, .filter = question->filter, .make = answer_make, .context = &answer};
	return shown_trace_ask(&ask, caller, diag);
}
