/* SPDX-License-Identifier: MIT */
/** The plain interpreter: what a query means, whatever faster way there may be to answer it. */
#ifndef XHEAP_DX_INTERPRET_H
#define XHEAP_DX_INTERPRET_H

#include "dx/core/query.h"

/** Evaluate the expression. The value lies in query->arena. */
struct dx_value dx_evaluate(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope);

/** Call a lambda with one value, or with two. */
struct dx_value dx_call(struct dx_query *query, const struct dx_value *lambda, const struct dx_value *one);
struct dx_value dx_call_two(struct dx_query *query, const struct dx_value *lambda, const struct dx_value *one,
			    const struct dx_value *other);

#endif
