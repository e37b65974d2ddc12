/* SPDX-License-Identifier: MIT */
#include "api/api_answer.h"

#include <errno.h>

int api_answer_begin(struct api_answer *answer, struct xheap_trace *trace, const xheap_filter *filter,
		     struct diag *diag)
{
	struct analysis_request *request = &answer->question.request;
	answer->trace = trace;
	api_trace_hold(trace);
	heap_cull_use_default(&answer->cull);
	int error = api_request_take(&answer->question, filter, trace, true, diag);
	if (error)
		return error;
	request->cull = &answer->cull;
	request->layout = (struct text_layout){.width = TEXT_WIDTH_DEFAULT, .has_unicode = text_has_unicode()};
	error = api_request_prepare(&answer->question, trace, diag);
	if (!error)
		action_input_settle(api_answer_input(answer));
	return error;
}

struct action_input *api_answer_input(struct api_answer *answer)
{
	return &answer->question.analysis.input;
}

/* ---- texts ---- */

struct answer_text {
	const struct api_writing *writing;
	uint32_t format;
	char *text;
	size_t length;
};

static int write_work(void *context, struct diag *diag)
{
	struct answer_text *making = context;
	const struct api_writing *writing = making->writing;
	struct sink out;
	if (making->format != XHEAP_FORMAT_TEXT && making->format != XHEAP_FORMAT_JSON)
		return diag_fail(diag, EINVAL, "the answer has no format %u", making->format);
	sink_to_memory(&out);
	(making->format == XHEAP_FORMAT_TEXT ? writing->text : writing->json)(writing->answer, &out);
	if (out.error)
		return sink_end(&out);
	making->text = sink_take(&out, &making->length);
	return 0;
}

int api_answer_write(const struct api_writing *writing, uint32_t format, char **text, size_t *length,
		     xheap_error *error)
{
	struct answer_text making = {.writing = writing, .format = format};
	int status = api_run_locked(writing->answer->trace, error, write_work, &making);
	*text = status == XHEAP_OK ? making.text : NULL;
	if (length)
		*length = status == XHEAP_OK ? making.length : 0;
	return status;
}

/* ---- frames ---- */

struct answer_stack {
	struct api_answer *answer;
	uint32_t row, node;
	xheap_frames *frames;
};

static int frames_work(void *context, struct diag *diag)
{
	struct answer_stack *naming = context;
	if (naming->node == UINT32_MAX)
		return diag_fail(diag, EINVAL, "the answer has no row %u", naming->row);
	naming->frames =
		api_frames_new(naming->answer->trace, action_names(api_answer_input(naming->answer)), naming->node);
	return 0;
}

int api_answer_frames(struct api_answer *answer, uint32_t row, uint32_t node, xheap_frames **frames, xheap_error *error)
{
	struct answer_stack naming = {.answer = answer, .row = row, .node = node};
	int status = api_run_locked(answer->trace, error, frames_work, &naming);
	*frames = naming.frames;
	return status;
}

void api_answer_fini(struct api_answer *answer)
{
	if (!answer->trace)
		return;
	api_request_fini(&answer->question);
	heap_cull_fini(&answer->cull);
	api_trace_release(answer->trace);
}
