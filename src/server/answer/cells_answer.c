/* SPDX-License-Identifier: MIT */
#include "server/answer/cells_answer.h"

#include <string.h>

#include "cells/cells.h"
#include "server/answer/question.h"

struct cells_answer {
	struct shown_trace *shown;
	struct cells_request request;
	bool has_all; /* no block is left out */
	struct sink *out;
};

static int answer_make(void *context, struct analysis *analysis, struct diag *diag)
{
	struct cells_answer *answer = context;
	const struct action_source *source = analysis->input.sources;
	answer->out->used = 0;
	action_input_settle(&analysis->input);
	const struct cells_source cells = {.table = source->table,
					   .names = source->names,
					   .filter = source->filter,
					   .cull = analysis->input.cull,
					   .nodes = shown_trace_nodes(answer->shown, source),
					   .fine = answer->has_all ? shown_trace_fine(answer->shown, source) : NULL};
	return cells_write(answer->out, &cells, &answer->request, diag);
}

int cells_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag)
{
	struct cells_answer answer = {.shown = shown,
				      .out = out,
				      .has_all = !question->filter && !question->node,
				      .request = {.has_range = question->has_range,
						  .from_ns = question->from_ns,
						  .to_ns = question->to_ns,
						  .interval_count = question->intervals,
						  .bound_count = question->bound_count,
						  .node = question->node}};
	const struct shown_question ask = {
		.shown = shown, .filter = question->filter, .make = answer_make, .context = &answer};
	_Static_assert(sizeof(answer.request.bounds) == sizeof(question->bounds_ns), "bounds of a question");
	memcpy(answer.request.bounds, question->bounds_ns, sizeof(question->bounds_ns));
	return shown_trace_ask(&ask, caller, diag);
}
