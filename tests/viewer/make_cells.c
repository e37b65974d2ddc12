/* SPDX-License-Identifier: MIT */
/* make_cells TRACE [FROM TO [INTERVALS [NODE]]]: writes the cells of a trace, as a server does: of the whole run, or behind
   FROM ns up to TO ns; NODE: of stacks whose outermost frames these are.
   make_cells -lists TRACE: writes JSON with what the page knows of threads and heaps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/json.h"
#include "cells/cells.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

struct asking {
	struct analysis analysis;
	struct cells_request question;
	struct heap_cull cull;
	struct sink out;
};

static int fail(const struct diag *diag)
{
	fprintf(stderr, "%s\n", diag->text);
	return EXIT_FAILURE;
}

static int cells_make(void *context, struct diag *diag)
{
	struct asking *asking = context;
	const struct action_source *source = &asking->analysis.sources[0];
	const struct cells_source of = {
		.table = source->table, .names = source->names, .filter = source->filter, .cull = &asking->cull};
	sink_to_memory(&asking->out);
	return cells_write(&asking->out, &of, &asking->question, diag);
}

static void cells_undo(void *context)
{
	sink_end(&((struct asking *)context)->out);
}

static int lists_write(const char *path)
{
	struct trace *trace;
	struct diag diag = {""};
	struct sink out;
	if (trace_open(&trace, path, &diag))
		return fail(&diag);
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	struct json json = {.out = &out};
	sink_to_file(&out, stdout, BUFSIZ);
	json_begin_object(&json, NULL);
	json_begin_array(&json, "threads");
	for (uint32_t i = 0; i < dictionary->thread_count; i++) {
		json_begin_object(&json, NULL);
		json_count(&json, "process", dictionary->threads[i].process);
		json_count(&json, "tid", dictionary->threads[i].tid);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_count(&json, "processes", dictionary->process_count);
	json_count(&json, "heaps", dictionary->heap_count);
	json_end_object(&json);
	json_end(&json);
	trace_close(trace);
	return sink_end(&out) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct diag diag = {""};
	struct filter_request asked;
	static const char *const pattern_words[ANALYSIS_PATTERN_COUNT] = {"required frames",
									  "required frames of frees"};
	if (argc == 3 && !strcmp(argv[1], "-lists"))
		return lists_write(argv[2]);
	if (argc < 2)
		return EXIT_FAILURE;
	struct window_word word = {.path = argv[1]};
	struct asking asking = {.question = {.has_range = argc > 3}};
	if (argc > 3) {
		asking.question.from_ns = atoll(argv[2]);
		asking.question.to_ns = atoll(argv[3]);
		asking.question.interval_count = argc > 4 ? (uint32_t)atoi(argv[4]) : 0;
		asking.question.node = argc > 5 ? argv[5] : NULL;
	}
	filter_request_init(&asked);
	heap_cull_use_default(&asking.cull);
	const struct analysis_request request = {.source_count = 1,
						 .words = &word,
						 .options = {.index = INDEX_READ},
						 .asked = &asked,
						 .without_windows = true,
						 .cull = &asking.cull,
						 .pattern_words = pattern_words};
	int error = analysis_open(&asking.analysis, &request, &diag);
	error = error ? error : analysis_run(&asking.analysis, cells_make, cells_undo, &asking, &diag);
	if (error)
		return fail(&diag);
	size_t length;
	char *bytes = sink_take(&asking.out, &length);
	bool is_written = fwrite(bytes, 1, length, stdout) == length && !fflush(stdout);
	free(bytes);
	heap_cull_forget(&asking.cull);
	analysis_close(&asking.analysis);
	heap_cull_fini(&asking.cull);
	filter_request_fini(&asked);
	return is_written ? EXIT_SUCCESS : EXIT_FAILURE;
}
