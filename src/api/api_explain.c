/* SPDX-License-Identifier: MIT */
/* How a process ended, or what happened at an address, as `xheap explain` has it. */
#include "action/explain/explanation.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/api_answer.h"
#include "api/row_members.h"
#include "base/memory.h"
#include "corefile/corefile.h"
#include "trace/trace.h"

_Static_assert(XHEAP_FAULT_NONE == (int)EXPLAIN_NONE && XHEAP_FAULT_NO_MEMORY == (int)EXPLAIN_NO_MEMORY &&
		       XHEAP_FAULT_NO_MEMORY + 1 == (int)EXPLAIN_FAULT_COUNT &&
		       XHEAP_CERTAINTY_CERTAIN == (int)EXPLAIN_CERTAIN,
	       "as they are");

API_INIT(xheap_explain_options, .core = NULL)

struct xheap_explain {
	struct api_answer answer;
	xheap_explain_options options;
	struct corefile *core;
	struct explanation explanation;
	xheap_explain_info info;
	xheap_explain_call calls[EXPLAIN_CALLS_MAX];
	/* of calls; those of the address, of the use and of the damage */
	xheap_allocation of_calls[EXPLAIN_CALLS_MAX], of_info[3];
};

/* ---- rows ---- */

/* Return the block, copied to *place; NULL: there is none. */
static const xheap_allocation *block_keep(const struct xheap_explain *made, xheap_allocation *place,
					  const struct history_block *block)
{
	const struct heap_table *table = made->explanation.source->table;
	return block && api_allocation_read(place, table, block->id) ? place : NULL;
}

static void calls_list(struct xheap_explain *made)
{
	const struct trace_dictionary *dictionary = made->explanation.source->table->dictionary;
	for (unsigned i = 0; i < made->explanation.call_count; i++) {
		const struct explain_call *call = &made->explanation.calls[i];
		const bool has_history = call->history.before_count + call->history.after_count;
		const struct history_block *block = has_history ? block_history_last(&call->history) : NULL;
		made->calls[i] = (xheap_explain_call){
			.fault = call->fault,
			.certainty = call->certainty,
			.is_under_way = call->is_under_way,
			.function = call->entry < dictionary->entry_count ? call->entry : XHEAP_NONE,
			.stack = call->stack,
			.thread = call->thread < dictionary->thread_count ? call->thread : XHEAP_NONE,
			.time_ns = call->time_ns,
			.address = call->address,
			.size = call->size_bytes,
			.block = block_keep(made, &made->of_calls[i], block),
			.is_live = has_history && call->history.live.id != HEAP_NONE};
	}
}

static void list_all(struct xheap_explain *made)
{
	const struct explanation *explanation = &made->explanation;
	const struct explain_core *core = &explanation->core;
	const struct block_history *history = made->options.has_address ? &explanation->history : NULL;
	const bool is_damaged = core->damage.kind != EXPLAIN_INTACT;
	made->info = (xheap_explain_info){
		.process = explanation->process,
		.call_count = explanation->call_count,
		.under_way_count = explanation->under_way_count,
		.fault_count = explanation->fault_count,
		.block = block_keep(made, &made->of_info[0], history ? block_history_last(history) : NULL),
		.is_live = history && history->live.id != HEAP_NONE,
		.used = core->used,
		.used_block =
			block_keep(made, &made->of_info[1], core->has_use ? block_history_last(&core->owner) : NULL),
		.use_certainty = core->certainty,
		.damaged_block = block_keep(made, &made->of_info[2], is_damaged ? &core->damage.block : NULL),
		.message = core->message};
	calls_list(made);
}

/* ---- the calls ---- */

struct explain_making {
	struct xheap_trace *trace;
	const xheap_explain_options *given;
	struct xheap_explain *made;
};

static int make_work(void *context, struct diag *diag)
{
	struct explain_making *making = context;
	struct xheap_explain *made = making->made = memory_zeroed(1, sizeof(*made));
	xheap_explain_options *options = &made->options;
	xheap_filter filter;
	xheap_filter_init(&filter, sizeof(filter));
	xheap_explain_options_init(options, sizeof(*options));
	int error = api_take(options, sizeof(*options), making->given, "xheap_explain_options", diag);
	if (!error && options->at && !options->has_address)
		error = diag_fail(diag, EINVAL, "xheap_explain_options: at needs an address");
	if (!error && options->core)
		error = corefile_open(&made->core, options->core, diag);
	filter.live_at = options->at;
	error = error ? error : api_answer_begin(&made->answer, making->trace, &filter, diag);
	if (error)
		return error;
	struct action_input *input = api_answer_input(&made->answer);
	const struct heap_moment *moment = &input->sources[0].filter->moment;
	const struct explain_question question = {.address = options->address,
						  .has_address = options->has_address != 0,
						  .pid = options->pid,
						  .at = moment->is_asked ? &moment->at : NULL,
						  .core = made->core,
						  .core_path = options->core,
						  .symbols = opened_trace_symbols(making->trace->opened)};
	error = explanation_make(&made->explanation, input, &question, diag);
	if (!error)
		list_all(made);
	return error ? error : api_trace_check(making->trace, diag);
}

API int xheap_explain_make(xheap_trace *trace, const xheap_explain_options *options, xheap_explain **explain,
			   xheap_error *error)
{
	struct explain_making making = {.trace = trace, .given = options};
	int status = api_run_locked(trace, error, make_work, &making);
	if (status != XHEAP_OK) {
		xheap_explain_free(making.made);
		making.made = NULL;
	}
	*explain = making.made;
	return status;
}

API const xheap_explain_info *xheap_explain_get_info(const xheap_explain *explain)
{
	return &explain->info;
}

API const xheap_explain_call *xheap_explain_get_call(const xheap_explain *explain, uint32_t i)
{
	return i < explain->info.call_count ? &explain->calls[i] : NULL;
}

static void text_put(struct api_answer *answer, struct sink *out)
{
	explanation_text(&((struct xheap_explain *)answer)->explanation, out);
}

static void json_put(struct api_answer *answer, struct sink *out)
{
	explanation_json(&((struct xheap_explain *)answer)->explanation, out);
}

API int xheap_explain_write(xheap_explain *explain, uint32_t format, char **text, size_t *length, xheap_error *error)
{
	return api_answer_write(&(struct api_writing){&explain->answer, text_put, json_put}, format, text, length,
				error);
}

API void xheap_explain_free(xheap_explain *explain)
{
	if (!explain)
		return;
	explanation_fini(&explain->explanation);
	api_answer_fini(&explain->answer);
	corefile_close(explain->core);
	free(explain);
}
