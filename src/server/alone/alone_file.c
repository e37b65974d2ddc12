/* SPDX-License-Identifier: MIT */
#include "server/alone/alone_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sink.h"
#include "base/text.h"
#include "server/alone/alone_page.h"
#include "server/answer/cells_answer.h"
#include "server/answer/parts.h"
#include "server/answer/question.h"
#include "server/answer/trace_answer.h"

enum {
	INTERVALS = 256,
	INTERVALS_LEAST = 16
};

/* Bytes under construction. */
struct alone_data {
	const struct alone_plan *plan;
	const struct analysis_caller *caller;
	struct shown_trace *traces; /* by path */
	unsigned intervals;
	struct sink plain;
	struct alone_page page; /* of it */
};

/* ---- the data; viewer/README.md has its layout ---- */

/* What the reader of the file has to know. */
static void left_out_write(const struct alone_data *data, char *text, size_t size)
{
	int length =
		snprintf(text, size, "this file has neither finer times nor the stacks that freed; xheap view has");
	if (data->intervals < INTERVALS)
		snprintf(text + length, size - (size_t)length,
			 "; it has %u intervals of time in place of %d, to be at most %s", data->intervals, INTERVALS,
			 text_bytes(data->plan->most_bytes).data);
}

static int trace_add(struct alone_data *data, struct shown_trace *trace, struct diag *diag)
{
	const struct alone_plan *plan = data->plan;
	const struct question question = {.intervals = data->intervals};
	char left_out[200];
	struct sink facts, cells;
	sink_to_memory(&facts);
	sink_to_memory(&cells);
	left_out_write(data, left_out, sizeof(left_out));
	const struct trace_answer_plan about = {plan->paths, plan->path_count, plan->runs, left_out};
	int error = trace_answer_write(trace, &about, &facts, data->caller, diag);
	error = error ? error : cells_answer_write(trace, &question, &cells, data->caller, diag);
	parts_add(&data->plain, &facts, &cells);
	sink_end(&facts);
	sink_end(&cells);
	return error;
}

static int plain_make(struct alone_data *data, struct diag *diag)
{
	int error = 0;
	data->plain.used = 0;
	parts_begin(&data->plain, data->plan->path_count);
	for (unsigned i = 0; i < data->plan->path_count && !error; i++)
		error = trace_add(data, &data->traces[i], diag);
	return error;
}

/* Make the data with as many intervals as the file has room for. */
static int data_make(struct alone_data *data, struct diag *diag)
{
	for (data->intervals = INTERVALS;; data->intervals /= 2) {
		int error = plain_make(data, diag);
		error = error ? error : alone_page_pack(&data->page, &data->plain, diag);
		if (error || alone_page_size(&data->page) <= data->plan->most_bytes)
			return error;
		if (data->intervals == INTERVALS_LEAST)
			return alone_page_refuse(&data->page, data->plan->most_bytes, diag);
	}
}

/* All names are read then. */
static int output_check(const struct alone_data *data, struct diag *diag)
{
	for (unsigned i = 0; i < data->plan->path_count && data->plan->output; i++)
		if (symbols_read_file(opened_trace_symbols(data->traces[i].opened), data->plan->output))
			return diag_fail(diag, EINVAL, "the output is one of the files that are read");
	return 0;
}

int alone_file_write(const struct alone_plan *plan, struct sink *out, const struct analysis_caller *caller,
		     struct diag *diag)
{
	struct alone_data data = {.plan = plan, .caller = caller};
	int error = 0;
	data.traces = memory_zeroed(plan->path_count, sizeof(*data.traces));
	sink_to_memory(&data.plain);
	for (unsigned i = 0; i < plan->path_count && !error; i++) {
		data.traces[i] = (struct shown_trace){.path = plan->paths[i], .options = plan->options};
		error = shown_trace_open(&data.traces[i], caller, diag);
		if (!error)
			shown_trace_tell_damage(&data.traces[i], caller);
	}
	error = error ? error : data_make(&data, diag);
	error = error ? error : output_check(&data, diag);
	if (!error)
		alone_page_write(&data.page, out);
	for (unsigned i = 0; i < plan->path_count; i++)
		shown_trace_close(&data.traces[i]);
	sink_end(&data.plain);
	alone_page_fini(&data.page);
	free(data.traces);
	return error;
}
