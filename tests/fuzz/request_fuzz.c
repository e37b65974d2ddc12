/* SPDX-License-Identifier: MIT */
/*
 * Requests to the server of xheap view: any page of a browser and any user of the machine sends them. The input is
 * lines: method, target, then headers, each a letter and its text (h: Host, o: Origin, t: token, p: page, n: number). A
 * request that passes has the token, unless it is for a file of the page, and what it asks for is possible.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/filter.h"
#include "replay.h"
#include "server/http/request.h"
#include "server/page/page_files.h"

enum { TRACES = 3, LINES_MAX = 16 };

static const struct request_rules rules = {"0123456789abcdef0123456789abcdef", TRACES};

static void check_question(const struct question *question)
{
	if (question->intervals > QUESTION_INTERVALS_MAX || question->bound_count > QUESTION_BOUNDS_MAX ||
	    question->classes >> HEAP_CLASS_NONE)
		abort();
	if (question->has_range && (question->has_moment || question->from_ns > question->to_ns))
		abort();
	if ((question->node && !*question->node) || (question->filter && !*question->filter))
		abort();
}

static void check_passed(const struct view_request *request, const struct request_text *text)
{
	if (strcmp(text->method, "GET") != 0 || !text->host)
		abort();
	if (request->name == REQUEST_FILE) {
		if (!request->file || !request->file->name)
			abort();
		return;
	}
	if (!text->token || strcmp(text->token, rules.token) != 0 || request->trace >= TRACES ||
	    strlen(request->page) > REQUEST_PAGE_MAX)
		abort();
	check_question(&request->question);
}

static void header_set(struct request_text *text, const char *line)
{
	const char **headers[] = {&text->host, &text->origin, &text->token, &text->page, &text->number};
	const char *letter = *line ? strchr("hotpn", *line) : NULL;
	if (letter)
		*headers[letter - "hotpn"] = line + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request_text text = {.method = "", .target = ""};
	struct view_request request;
	struct diag why = {""};
	char *copy = malloc(size + 1), *line = copy;
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	copy[size] = 0;
	for (unsigned i = 0; line && i < LINES_MAX; i++) {
		char *next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		if (i == 0)
			text.method = line;
		else if (i == 1)
			text.target = line;
		else
			header_set(&text, line);
		line = next;
	}
	unsigned status = request_parse(&request, &text, &rules, &why);
	if (status ? status < 400 || status > 499 || !*why.text : *why.text != 0)
		abort();
	if (!status)
		check_passed(&request, &text);
	request_fini(&request);
	free(copy);
	return 0;
}

const struct replay replay = {.bytes_max = 4096, .cut_bytes = 1, .flip_rounds = 200};
