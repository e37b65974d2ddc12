/* SPDX-License-Identifier: MIT */
/**
 * A request to the server of `xheap view`: whether it may ask, and what it asks for. viewer/README.md describes the
 * requests. All texts are of strangers: any page of the browser and any user of the machine can send one.
 */
#ifndef XHEAP_SERVER_REQUEST_H
#define XHEAP_SERVER_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "server/answer/question.h"

struct page_file;

enum { TOKEN_LENGTH = 32 /* digits: 128 bits */, REQUEST_PAGE_MAX = 32 };

/** A request as it came. NULL: it has no such header. */
struct request_text {
	const char *method, *target; /**< target: path and query, as sent */
	const char *host, *origin, *token, *page, *number;
};

/** What a server lets pass. */
struct request_rules {
	char token[TOKEN_LENGTH + 1];
	unsigned trace_count;
};

/** What is asked for. */
enum request_name {
	REQUEST_FILE,
	REQUEST_TRACE,
	REQUEST_CELLS,
	REQUEST_FREES,
	REQUEST_BLOCKS,
	REQUEST_BLOCK,
	REQUEST_MAP,
	REQUEST_SOURCE,
	REQUEST_LIVE,
	REQUEST_FLUSH
};

/** A request that may be answered. Begin it with request_parse(), end it with request_fini(). */
struct view_request {
	enum request_name name;
	const struct page_file *file; /**< of REQUEST_FILE */
	unsigned trace;
	char page[REQUEST_PAGE_MAX + 1]; /**< "": none was sent */
	uint64_t number;                 /**< grows with each request of the page */
	struct question question;        /**< of all that are about blocks; its texts are in `texts` */
	char *texts;                     /**< the decoded query */
};

/** Check and read a request. Return 0; or the status of HTTP, with a sentence for people in `why`. request_fini() is
    necessary in both cases. */
unsigned request_parse(struct view_request *request, const struct request_text *text, const struct request_rules *rules,
		       struct diag *why);

/** Free the texts. */
void request_fini(struct view_request *request);

#endif
