/* SPDX-License-Identifier: MIT */
/* Lost blocks, as `xheap leaks` has them. */
#include "action/leaks/leaks.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/api_answer.h"
#include "base/memory.h"
#include "corefile/corefile.h"

_Static_assert(XHEAP_REACH_LOST == (int)REACH_LOST && XHEAP_REACH_INDIRECT == (int)REACH_INDIRECT &&
		       XHEAP_REACH_INTERIOR == (int)REACH_INTERIOR && XHEAP_REACH_START == (int)REACH_START &&
		       REACH_STATE_COUNT == sizeof(((xheap_leaks_info *)0)->counts) / sizeof(uint64_t),
	       "as they are");

API_INIT(xheap_leaks_options, .top = UINT32_MAX)

struct xheap_leaks {
	struct api_answer answer;
	xheap_leaks_options options;
	struct corefile *core;
	struct leaks leaks;
	xheap_leaks_info info;
	xheap_leaks_row *rows;
};

static void list_all(struct xheap_leaks *made)
{
	const struct leaks *leaks = &made->leaks;
	made->info = (xheap_leaks_info){
		.time_ns = leaks->at_ns, .process = leaks->process, .row_count = (uint32_t)leaks->row_count};
	for (int i = 0; i < REACH_STATE_COUNT; i++) {
		made->info.counts[i] = leaks->sums[i].count;
		made->info.bytes[i] = leaks->sums[i].bytes;
	}
	made->rows = memory_zeroed(leaks->row_count + 1, sizeof(*made->rows));
	for (size_t i = 0; i < leaks->row_count; i++) {
		const struct leak_row *row = &leaks->rows[i];
		made->rows[i] = (xheap_leaks_row){.reach = row->state,
						  .thread = row->is_of_threads ? XHEAP_NONE : row->thread,
						  .count = row->count,
						  .bytes = row->bytes,
						  .is_earlier = row->is_earlier,
						  .oldest_ns = row->oldest_ns,
						  .newest_ns = row->newest_ns};
	}
}

struct leaks_making {
	struct xheap_trace *trace;
	const xheap_leaks_options *given;
	struct xheap_leaks *made;
};

static int make_work(void *context, struct diag *diag)
{
	struct leaks_making *making = context;
	struct xheap_leaks *made = making->made = memory_zeroed(1, sizeof(*made));
	xheap_leaks_options *options = &made->options;
	xheap_leaks_options_init(options, sizeof(*options));
	int error = api_take(options, sizeof(*options), making->given, "xheap_leaks_options", diag);
	if (!error && !options->core)
		error = diag_fail(diag, EINVAL, "xheap_leaks_options: core is NULL");
	error = error ? error : corefile_open(&made->core, options->core, diag);
	error = error ? error : api_answer_begin(&made->answer, making->trace, options->filter, diag);
	if (error)
		return error;
	const struct heap_range range = made->answer.question.range;
	const struct leaks_question question = {.core = made->core,
						.core_path = options->core,
						.asked = &made->answer.question.asked,
						.has_range = range.from_ns != INT64_MIN || range.to_ns != INT64_MAX,
						.top = options->top < UINT32_MAX ? (uint32_t)options->top : UINT32_MAX,
						.is_running = options->is_running != 0,
						.at_ns = options->time_ns,
						.pause_ns = options->pause_ns};
	error = leaks_make(&made->leaks, api_answer_input(&made->answer), &question, diag);
	error = error ? error : api_trace_check(making->trace, diag);
	if (!error)
		list_all(made);
	return error;
}

API int xheap_leaks_make(xheap_trace *trace, const xheap_leaks_options *options, xheap_leaks **leaks,
			 xheap_error *error)
{
	struct leaks_making making = {.trace = trace, .given = options};
	int status = api_run_locked(trace, error, make_work, &making);
	if (status != XHEAP_OK) {
		xheap_leaks_free(making.made);
		making.made = NULL;
	}
	*leaks = making.made;
	return status;
}

API const xheap_leaks_info *xheap_leaks_get_info(const xheap_leaks *leaks)
{
	return &leaks->info;
}

API const xheap_leaks_row *xheap_leaks_get_row(const xheap_leaks *leaks, uint32_t i)
{
	return i < leaks->info.row_count ? &leaks->rows[i] : NULL;
}

API int xheap_leaks_get_frames(xheap_leaks *leaks, uint32_t row, xheap_frames **frames, xheap_error *error)
{
	const uint32_t node = row < leaks->info.row_count ? leaks->leaks.rows[row].node : UINT32_MAX;
	return api_answer_frames(&leaks->answer, row, node, frames, error);
}

static void text_put(struct api_answer *answer, struct sink *out)
{
	leaks_text(&((struct xheap_leaks *)answer)->leaks, 1, out);
}

static void json_put(struct api_answer *answer, struct sink *out)
{
	leaks_json(&((struct xheap_leaks *)answer)->leaks, 1, out);
}

API int xheap_leaks_write(xheap_leaks *leaks, uint32_t format, char **text, size_t *length, xheap_error *error)
{
	return api_answer_write(&(struct api_writing){&leaks->answer, text_put, json_put}, format, text, length, error);
}

API void xheap_leaks_free(xheap_leaks *leaks)
{
	if (!leaks)
		return;
	leaks_fini(&leaks->leaks);
	free(leaks->rows);
	api_answer_fini(&leaks->answer);
	corefile_close(leaks->core);
	free(leaks);
}
