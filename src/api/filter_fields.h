/* SPDX-License-Identifier: MIT */
/** From xheap_filter to the words that it stands for (query/filter_words.h). */
#ifndef XHEAP_API_FILTER_FIELDS_H
#define XHEAP_API_FILTER_FIELDS_H

#include <stdbool.h>

#include "api/api.h"

/** A question with the filter as given. Zero it. */
struct api_request {
	struct filter_request asked;
	struct heap_range range; /**< INT64_MIN, INT64_MAX: no end */
	struct analysis_request request;
	struct analysis analysis;
};

/** Take the filter (NULL: all pass), and make a request about the trace, whose lock is held. Return 0 or -EINVAL. */
int api_request_take(struct api_request *question, const xheap_filter *given, struct xheap_trace *trace,
		     bool with_lines, struct diag *diag);

/** Open and prepare the request; the trace has its table then. Return as analysis_prepare(). */
int api_request_prepare(struct api_request *question, struct xheap_trace *trace, struct diag *diag);

/** Free the question. */
void api_request_fini(struct api_request *question);

#endif
