/* SPDX-License-Identifier: MIT */
#include "server/http/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "server/page/page_files.h"

enum { OK = 0, BAD = 400, FORBIDDEN = 403, MISSING = 404, METHOD = 405 };

/* ---- who may ask ---- */

/* A name that another page's server may have given this address (DNS rebinding) is none of these. Any port: ssh may
   forward another one. */
static bool is_own_host(const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
	for (size_t i = 0; host && i < sizeof(names) / sizeof(*names); i++) {
		size_t length = strlen(names[i]);
		if (!strncmp(host, names[i], length) &&
		    (!host[length] ||
		     (host[length] == ':' && strspn(host + length + 1, "0123456789") == strlen(host + length + 1))))
			return true;
	}
	return false;
}

static bool is_own_origin(const char *origin, const char *host)
{
	static const char scheme[] = "http://";
	return !strncmp(origin, scheme, sizeof(scheme) - 1) && !strcmp(origin + sizeof(scheme) - 1, host);
}

/* The time does not depend on where the texts differ. */
static bool is_token(const char *text, const char *token)
{
	unsigned char difference = 0;
	if (!text || strlen(text) != TOKEN_LENGTH)
		return false;
	for (unsigned i = 0; i < TOKEN_LENGTH; i++)
		difference |= (unsigned char)(text[i] ^ token[i]);
	return !difference;
}

static unsigned refuse(unsigned status, struct diag *why, const char *reason)
{
	diag_fail(why, EINVAL, "%s", reason);
	return status;
}

static unsigned sender_check(const struct request_text *text, struct diag *why)
{
	if (!is_own_host(text->host))
		return refuse(FORBIDDEN, why, "the address has another host than this machine itself");
	if (text->origin && !is_own_origin(text->origin, text->host))
		return refuse(FORBIDDEN, why, "another page asks");
	if (strcmp(text->method, "GET") != 0)
		return refuse(METHOD, why, "only GET is answered");
	return OK;
}

/* ---- what is asked ---- */

/* Decode a word of a query in place. Return false if it is none, or has a NUL. */
static bool word_decode(char *text)
{
	for (char *at = text; *at; at++)
		*at = (char)(*at == '+' ? ' ' : *at);
	return text_decode_percent(text);
}

static unsigned word_take(struct view_request *request, const struct request_rules *rules, const char *word,
			  const char *text, struct diag *why)
{
	uint64_t trace;
	if (strcmp(word, "trace") != 0)
		return question_set(&request->question, word, text, why) ? BAD : OK;
	if (!text_parse_count(text, &trace) || trace >= rules->trace_count)
		return refuse(MISSING, why, "there is no such trace");
	request->trace = (unsigned)trace;
	return OK;
}

static unsigned query_parse(struct view_request *request, char *query, const struct request_rules *rules,
			    struct diag *why)
{
	unsigned status = OK;
	for (char *next; query && *query && !status; query = next) {
		next = strchr(query, '&');
		if (next)
			*next++ = 0;
		char *text = strchr(query, '=');
		if (text)
			*text++ = 0;
		if (!word_decode(query) || (text && !word_decode(text)))
			return refuse(BAD, why, "the address is not well-formed");
		status = word_take(request, rules, query, text ? text : "", why);
	}
	if (!status && question_check(&request->question, why))
		return BAD;
	return status;
}

static const struct {
	const char *path;
	enum request_name name;
} names[] = {{"/trace", REQUEST_TRACE},
	     {"/cells", REQUEST_CELLS},
	     {"/frees", REQUEST_FREES},
	     {"/blocks", REQUEST_BLOCKS},
	     {"/block", REQUEST_BLOCK},
	     {"/map", REQUEST_MAP},
	     {"/source", REQUEST_SOURCE},
	     {"/live", REQUEST_LIVE},
	     {"/flush", REQUEST_FLUSH}};

static unsigned path_find(struct view_request *request, const char *path, struct diag *why)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(path, names[i].path)) {
			request->name = names[i].name;
			return OK;
		}
	request->name = REQUEST_FILE;
	request->file = *path == '/' ? page_file_find(path + 1) : NULL;
	return request->file ? OK : refuse(MISSING, why, "there is no such page");
}

/* Ids are of the page's own making: only letters and digits. */
static unsigned page_take(struct view_request *request, const struct request_text *text, struct diag *why)
{
	size_t length = text->page ? strlen(text->page) : 0;
	if (length > REQUEST_PAGE_MAX ||
	    (length && strspn(text->page, "0123456789abcdefghijklmnopqrstuvwxyz") != length))
		return refuse(BAD, why, "the id of the page is none");
	if (text->number && !text_parse_count(text->number, &request->number))
		return refuse(BAD, why, "the number of the request is none");
	if (length)
		memcpy(request->page, text->page, length + 1);
	return OK;
}

unsigned request_parse(struct view_request *request, const struct request_text *text, const struct request_rules *rules,
		       struct diag *why)
{
	*request = (struct view_request){.trace = 0};
	unsigned status = sender_check(text, why);
	if (status)
		return status;
	size_t size = strlen(text->target) + 1;
	request->texts = memcpy(memory_resize(NULL, size, 1), text->target, size);
	char *query = strchr(request->texts, '?');
	if (query)
		*query++ = 0;
	status = path_find(request, request->texts, why);
	if (status || request->name == REQUEST_FILE)
		return status;
	if (!is_token(text->token, rules->token))
		return refuse(FORBIDDEN, why,
			      "the token is missing or wrong: xheap view prints the address that has it");
	status = page_take(request, text, why);
	return status ? status : query_parse(request, query, rules, why);
}

void request_fini(struct view_request *request)
{
	free(request->texts);
	request->texts = NULL;
}
