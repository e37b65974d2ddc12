/* SPDX-License-Identifier: MIT */
/* The resident memory of a process, as `xheap why` has it. */
#include "action/why/why.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/filter_fields.h"
#include "base/memory.h"
#include "query/account.h"
#include "trace/trace.h"

_Static_assert(XHEAP_WHY_LARGEST == (int)ACCOUNT_LARGEST && XHEAP_WHY_LAST == (int)ACCOUNT_LAST &&
		       XHEAP_WHY_NEAREST == (int)ACCOUNT_NEAREST,
	       "as they are");

API_INIT(xheap_why_options, .top = UINT32_MAX)

struct xheap_why {
	struct xheap_trace *trace;
	xheap_why_options options;
	struct api_request question;
	struct heap_cull cull;
	struct why why;
	xheap_why_info info;
	xheap_why_class classes[ACCOUNT_CLASS_COUNT];
	xheap_why_stack *stacks;
};

/* ---- rows ---- */

static void list_all(struct xheap_why *made)
{
	const struct why *why = &made->why;
	const struct account *account = &why->account;
	made->info = (xheap_why_info){.resident_bytes = account->sum.resident_bytes,
				      .swapped_bytes = account->swapped_bytes,
				      .huge_bytes = account->huge_bytes,
				      .time_ns = account->time_ns,
				      .process = account->process,
				      .reading_count = why->reading_count,
				      .pinned_page_bytes = account->page_bytes,
				      .pinning_bytes = account->kept_bytes,
				      .pinning_count = account->kept_count,
				      .class_count = ACCOUNT_CLASS_COUNT,
				      .stack_count = why->stack_count};
	for (unsigned i = 0; i < ACCOUNT_CLASS_COUNT; i++)
		made->classes[i] = (xheap_why_class){
			.name = account_keys[i], .text = account_words[i], .bytes = account->sum.bytes[i]};
	made->stacks = memory_zeroed(why->stack_count + 1, sizeof(*made->stacks));
	for (uint32_t i = 0; i < why->stack_count; i++) {
		const struct account_site *sums = &why->stacks[i].sums;
		made->stacks[i] = (xheap_why_stack){.live_bytes = sums->live_bytes,
						    .rounding_bytes = sums->rounding_bytes,
						    .block_count = sums->block_count,
						    .pinned_page_bytes = sums->page_bytes,
						    .alone_page_bytes = sums->alone_bytes,
						    .pinning_bytes = sums->kept_bytes,
						    .pinning_count = sums->kept_count};
	}
}

/* ---- the calls ---- */

struct why_making {
	struct xheap_trace *trace;
	const xheap_why_options *given;
	struct xheap_why *made;
};

static int ask(struct xheap_why *made, struct diag *diag)
{
	const xheap_why_options *options = &made->options;
	const struct why_question question = {.pid = options->pid,
					      .which = (enum account_moment)options->moment,
					      .time_ns = options->time_ns,
					      .top = options->top};
	struct api_request *asked = &made->question;
	asked->request.cull = &made->cull;
	asked->request.layout = (struct text_layout){.width = TEXT_WIDTH_DEFAULT, .has_unicode = text_has_unicode()};
	int error = api_request_prepare(asked, made->trace, diag);
	if (error)
		return error;
	action_input_settle(&asked->analysis.input);
	error = why_make(&made->why, &asked->analysis.input, &question, diag);
	return error ? error : api_trace_check(made->trace, diag);
}

static int make_work(void *context, struct diag *diag)
{
	struct why_making *making = context;
	struct xheap_why *made = making->made = memory_zeroed(1, sizeof(*made));
	made->trace = making->trace;
	api_trace_hold(making->trace);
	heap_cull_use_default(&made->cull);
	xheap_why_options_init(&made->options, sizeof(made->options));
	int error = api_take(&made->options, sizeof(made->options), making->given, "xheap_why_options", diag);
	if (!error && made->options.moment > XHEAP_WHY_NEAREST)
		error = diag_fail(diag, EINVAL, "there is no moment %u", made->options.moment);
	error = error ? error : api_request_take(&made->question, NULL, made->trace, true, diag);
	error = error ? error : ask(made, diag);
	if (!error)
		list_all(made);
	return error;
}

API int xheap_why_make(xheap_trace *trace, const xheap_why_options *options, xheap_why **why, xheap_error *error)
{
	struct why_making making = {.trace = trace, .given = options};
	int status = api_run_locked(trace, error, make_work, &making);
	if (status != XHEAP_OK) {
		xheap_why_free(making.made);
		making.made = NULL;
	}
	*why = making.made;
	return status;
}

API const xheap_why_info *xheap_why_get_info(const xheap_why *why)
{
	return &why->info;
}

API const xheap_why_class *xheap_why_get_class(const xheap_why *why, uint32_t i)
{
	return i < why->info.class_count ? &why->classes[i] : NULL;
}

API const xheap_why_stack *xheap_why_get_stack(const xheap_why *why, uint32_t i)
{
	return i < why->info.stack_count ? &why->stacks[i] : NULL;
}

struct stack_naming {
	struct xheap_why *why;
	uint32_t stack;
	xheap_frames *frames;
};

static int stack_frames_work(void *context, struct diag *diag)
{
	struct stack_naming *naming = context;
	struct xheap_why *why = naming->why;
	if (naming->stack >= why->info.stack_count)
		return diag_fail(diag, EINVAL, "the answer has no stack %u", naming->stack);
	naming->frames = api_frames_new(why->trace, action_names(why->why.input), why->why.stacks[naming->stack].node);
	return 0;
}

API int xheap_why_get_frames(xheap_why *why, uint32_t stack, xheap_frames **frames, xheap_error *error)
{
	struct stack_naming naming = {.why = why, .stack = stack};
	int status = api_run_locked(why->trace, error, stack_frames_work, &naming);
	*frames = naming.frames;
	return status;
}

struct why_writing {
	struct xheap_why *why;
	uint32_t format;
	char *text;
	size_t length;
};

static int write_work(void *context, struct diag *diag)
{
	struct why_writing *writing = context;
	struct sink out;
	if (writing->format != XHEAP_FORMAT_TEXT && writing->format != XHEAP_FORMAT_JSON)
		return diag_fail(diag, EINVAL, "the answer has no format %u", writing->format);
	sink_to_memory(&out);
	(writing->format == XHEAP_FORMAT_TEXT ? why_text : why_json)(&writing->why->why, &out);
	if (out.error)
		return sink_end(&out);
	writing->text = sink_take(&out, &writing->length);
	return 0;
}

API int xheap_why_write(xheap_why *why, uint32_t format, char **text, size_t *length, xheap_error *error)
{
	struct why_writing writing = {.why = why, .format = format};
	int status = api_run_locked(why->trace, error, write_work, &writing);
	*text = status == XHEAP_OK ? writing.text : NULL;
	if (length)
		*length = status == XHEAP_OK ? writing.length : 0;
	return status;
}

API void xheap_why_free(xheap_why *why)
{
	if (!why)
		return;
	why_fini(&why->why);
	free(why->stacks);
	api_request_fini(&why->question);
	heap_cull_fini(&why->cull);
	api_trace_release(why->trace);
	free(why);
}
