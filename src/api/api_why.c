/* SPDX-License-Identifier: MIT */
/* The resident memory of a process, as `xheap why` has it. */
#include "action/why/why.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/api_answer.h"
#include "base/memory.h"
#include "query/account.h"
#include "trace/trace.h"

_Static_assert(XHEAP_WHY_LARGEST == (int)ACCOUNT_LARGEST && XHEAP_WHY_LAST == (int)ACCOUNT_LAST &&
		       XHEAP_WHY_NEAREST == (int)ACCOUNT_NEAREST,
	       "as they are");

API_INIT(xheap_why_options, .top = UINT32_MAX)

struct xheap_why {
	struct api_answer answer;
	xheap_why_options options;
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

static int make_work(void *context, struct diag *diag)
{
	struct why_making *making = context;
	struct xheap_why *made = making->made = memory_zeroed(1, sizeof(*made));
	xheap_why_options *options = &made->options;
	int error = api_answer_begin(&made->answer, making->trace, NULL, diag);
	xheap_why_options_init(options, sizeof(*options));
	error = error ? error : api_take(options, sizeof(*options), making->given, "xheap_why_options", diag);
	if (!error && options->moment > XHEAP_WHY_NEAREST)
		error = diag_fail(diag, EINVAL, "there is no moment %u", options->moment);
	if (error)
		return error;
	const struct why_question question = {.pid = options->pid,
					      .which = (enum account_moment)options->moment,
					      .time_ns = options->time_ns,
					      .top = options->top};
	error = why_make(&made->why, api_answer_input(&made->answer), &question, diag);
	error = error ? error : api_trace_check(making->trace, diag);
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

API int xheap_why_get_frames(xheap_why *why, uint32_t stack, xheap_frames **frames, xheap_error *error)
{
	const uint32_t node = stack < why->info.stack_count ? why->why.stacks[stack].node : UINT32_MAX;
	return api_answer_frames(&why->answer, stack, node, frames, error);
}

static void text_put(struct api_answer *answer, struct sink *out)
{
	why_text(&((struct xheap_why *)answer)->why, out);
}

static void json_put(struct api_answer *answer, struct sink *out)
{
	why_json(&((struct xheap_why *)answer)->why, out);
}

API int xheap_why_write(xheap_why *why, uint32_t format, char **text, size_t *length, xheap_error *error)
{
	return api_answer_write(&(struct api_writing){&why->answer, text_put, json_put}, format, text, length, error);
}

API void xheap_why_free(xheap_why *why)
{
	if (!why)
		return;
	why_fini(&why->why);
	free(why->stacks);
	api_answer_fini(&why->answer);
	free(why);
}
