/* SPDX-License-Identifier: MIT */
#include "server/answer/frees_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cells/cell_below.h"
#include "cells/cell_names.h"
#include "query/scan.h"
#include "server/answer/question.h"
#include "table/weight.h"

enum { FRAMES_MAX = 64 };

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
};

/* ---- which blocks ---- */

/* Return by site whether its stack is asked for; NULL: none is. */
static bool *sites_choose(const struct action_source *source, const uint32_t *nodes, const char *frames)
{
	const struct heap_table *table = source->table;
	if (frames)
		return cell_below_find(table, source->names, nodes, frames);
	bool *sites = memory_zeroed((size_t)table->site_count + 1, sizeof(*sites));
	memset(sites, true, table->site_count);
	return sites;
}

static bool is_asked(const struct question *question, const struct heap_allocation *block)
{
	if (question->has_moment)
		return heap_is_live_at(block, question->at_ns);
	const struct heap_range range = question->has_range ? (struct heap_range){question->from_ns, question->to_ns}
							    : (struct heap_range){INT64_MIN, INT64_MAX};
	enum heap_class class = heap_class_of(block, range);
	return class != HEAP_CLASS_NONE && (!question->classes || question->classes & HEAP_CLASS_BIT(class));
}

static void blocks_add(struct frees_answer *answer, const struct action_source *source, const bool *sites)
{
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_ALL, source->filter, sites};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan))) {
		heap_rows_each (rows, i) {
			const struct heap_allocation block = heap_rows_get(rows, i);
			if (block.end_site >= source->table->site_count || !sites[block.site] ||
			    !is_asked(answer->question, &block))
				continue;
			const struct heap_weight weight = heap_weigh(source->table, &block);
			answer->freed[block.end_site].blocks += weight.count;
			answer->freed[block.end_site].bytes += weight.bytes;
		}
	}
	heap_scan_end(&scan);
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

static void json_frame(struct json *json, const struct heap_names *names, const struct heap_frame *frame)
{
	json_begin_array(json, NULL);
	cell_name_write(names, frame->name, json);
	json_text(json, NULL, frame->file ? frame->file : "");
	json_count(json, NULL, frame->line);
	json_count(json, NULL, cell_name_marks(names, frame->name));
	json_end_array(json);
}

static void json_freed(struct json *json, const struct action_source *source, const struct freed_sum *freed)
{
	uint32_t node = heap_names_site(source->names, &source->table->sites[freed->site]);
	json_begin_object(json, NULL);
	json_begin_array(json, "frames");
	for (unsigned i = 0; node && i < FRAMES_MAX; i++) {
		const struct heap_frame *frame = heap_names_frame(source->names, node);
		json_frame(json, source->names, frame);
		node = frame->parent;
	}
	json_end_array(json);
	json_count(json, "blocks", freed->blocks);
	json_count(json, "bytes", freed->bytes);
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
	bool *sites = sites_choose(source, nodes, answer->question->node);
	if (!sites)
		return diag_fail(diag, ENOENT,
				 "no stack of the trace begins with these frames; lumped ones are not told apart");
	answer->freed = memory_zeroed((size_t)site_count + 1, sizeof(*answer->freed));
	blocks_add(answer, source, sites);
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
