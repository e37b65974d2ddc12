/* SPDX-License-Identifier: MIT */
/** What answers other than reports share: the question about one trace, and their texts. */
#ifndef XHEAP_API_ANSWER_H
#define XHEAP_API_ANSWER_H

#include "api/filter_fields.h"

/** An answer about a trace; the first member of its handle. Zero it. */
struct api_answer {
	struct xheap_trace *trace;
	struct api_request question;
	struct heap_cull cull;
};

/** With the trace's lock held: ask about the allocations that pass the filter (NULL: all). Return 0, or as
    analysis_prepare(). In any case api_answer_fini() it. */
int api_answer_begin(struct api_answer *answer, struct xheap_trace *trace, const xheap_filter *filter,
		     struct diag *diag);

/** Return what answers are made of. */
struct action_input *api_answer_input(struct api_answer *answer);

/** Write an answer to memory: the parameters of a call of the API, and how each format is written. */
struct api_writing {
	struct api_answer *answer;
	void (*text)(struct api_answer *answer, struct sink *out);
	void (*json)(struct api_answer *answer, struct sink *out);
};

int api_answer_write(const struct api_writing *writing, uint32_t format, char **text, size_t *length,
		     xheap_error *error);

/** Set *frames to those of a node of the names. node: UINT32_MAX: the answer has no row `row`. */
int api_answer_frames(struct api_answer *answer, uint32_t row, uint32_t node, xheap_frames **frames,
		      xheap_error *error);

/** End the question, and release the trace. */
void api_answer_fini(struct api_answer *answer);

#endif
