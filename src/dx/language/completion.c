/* SPDX-License-Identifier: MIT */
/*
 * The checker knows types in whole expressions only, so the begin of one is made whole: a member of an impossible name
 * is put behind the dot, and all open brackets are closed.
 *
 *     @$cursession.TTD.Data.Heap().Where(h => new { A = h.     _     } )
 */
#include "dx/language/completion.h"

#include <string.h>

#include "dx/language/lexer.h"

enum { BRACKETS_MAX = 256 };

/* Set `closing` to the brackets that close the open ones. False: the text is none that can be completed. */
static bool brackets_open(struct dx_query *query, const char *text, char closing[BRACKETS_MAX + 1])
{
	static const char pairs[] = "()[]{}";
	struct dx_lexer lexer = {.text = text, .arena = &query->whole};
	struct dx_token token;
	struct diag diag = {""};
	char open[BRACKETS_MAX];
	size_t depth = 0;
	while (!dx_lex(&lexer, &token, &diag)) {
		const char *pair =
			token.kind == DX_TOKEN_SIGN && strlen(token.text) == 1 ? strchr(pairs, *token.text) : NULL;
		if (token.kind == DX_TOKEN_END) {
			for (size_t i = 0; i < depth; i++)
				closing[i] = open[depth - 1 - i];
			closing[depth] = 0;
			return true;
		}
		if (!pair)
			continue;
		bool is_opening = (pair - pairs) % 2 == 0;
		if (is_opening ? depth == BRACKETS_MAX : !depth || open[depth - 1] != *pair)
			return false;
		if (is_opening)
			open[depth++] = pair[1];
		else
			depth--;
	}
	return false;
}

bool dx_complete(struct dx_query *query, const char *text, dx_name_visit *visit, void *context)
{
	/* What lacks the second part of a condition gets one. */
	static const char *const ends[] = {"", " : 0"};
	char closing[BRACKETS_MAX + 1];
	struct dx_complaint complaint;
	const char *rest;
	if (strlen(text) > DX_TEXT_BYTES_MAX / 2 || !brackets_open(query, text, closing))
		return false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char *whole = dx_format(&query->whole, "%s" DX_NAME_UNKNOWN "%s%s", text, ends[i], closing);
		struct dx_node *node = dx_parse(&query->whole, whole, &rest, &complaint);
		if (node)
			return dx_check_names(query, node, visit, context);
	}
	return false;
}
