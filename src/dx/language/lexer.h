/* SPDX-License-Identifier: MIT */
/** The words of a query: names, numbers, texts, signs. */
#ifndef XHEAP_DX_LEXER_H
#define XHEAP_DX_LEXER_H

#include "base/diag.h"
#include "dx/core/value.h"

enum dx_token_kind {
	DX_TOKEN_END,
	DX_TOKEN_NAME,
	DX_TOKEN_VARIABLE, /**< @$name; the name is without @$ */
	DX_TOKEN_NUMBER,
	DX_TOKEN_TEXT,
	DX_TOKEN_ODD_NAME, /**< @"odd name" */
	DX_TOKEN_SIGN
};

struct dx_token {
	enum dx_token_kind kind;
	int column, end;  /**< its bytes, from 0 */
	const char *text; /**< of names, texts and signs */
	struct dx_value number;
};

struct dx_lexer {
	const char *text;
	int at;
	struct dx_arena *arena;
};

/** Read the next token. 0, or -EINVAL with the reason in `diag` and the column in token->column. */
int dx_lex(struct dx_lexer *lexer, struct dx_token *token, struct diag *diag);

#endif
