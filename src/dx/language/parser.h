/* SPDX-License-Identifier: MIT */
/** From the text of a query to its tree. */
#ifndef XHEAP_DX_PARSER_H
#define XHEAP_DX_PARSER_H

#include "base/diag.h"
#include "dx/core/syntax.h"

/** A failure of the parser or the checker: the reason, and the column from 0. */
struct dx_complaint {
	struct diag diag;
	int column;
};

enum { DX_TEXT_BYTES_MAX = 1 << 20 };

/** Parse the whole text as one expression, or, with a specifier behind it, up to the comma: *rest is the byte behind
 *  that comma then, and otherwise the text's end. Return NULL with the reason in *complaint. */
struct dx_node *dx_parse(struct dx_arena *arena, const char *text, const char **rest, struct dx_complaint *complaint);

#endif
