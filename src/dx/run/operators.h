/* SPDX-License-Identifier: MIT */
/** Methods of collections and texts, and the operators among them that a plan can do, too. */
#ifndef XHEAP_DX_OPERATORS_H
#define XHEAP_DX_OPERATORS_H

#include "dx/core/methods.h"

/** Tables of methods, each ended by a row without a name. */
extern const struct dx_method dx_methods_of_sequences[], dx_methods_of_order[], dx_methods_of_sets[],
	dx_methods_of_texts[];

/** Rows of these: a method whose result is a sequence, and one that makes its result when it is called. */
#define DX_LAZY(name, arguments, result, operation, shown, help) \
	{ \
		name, DX_OF_SEQUENCE, NULL, arguments, result, DX_SEQUENCE, NULL, operation, NULL, shown, help, NULL \
	}
#define DX_EAGER(name, arguments, result, kind, call, shown, help) \
	{ \
		name, DX_OF_SEQUENCE, NULL, arguments, result, kind, NULL, NULL, call, shown, help, NULL \
	}

extern const struct dx_operator dx_where_operator, dx_select_operator, dx_skip_operator, dx_take_operator,
	dx_order_operator, dx_order_descending_operator, dx_then_operator, dx_then_descending_operator,
	dx_group_operator;

/** Return whether the operator adds a key to an order; whether it orders; whether from the greatest on. */
static inline bool dx_operator_is_then(const struct dx_operator *operation)
{
	return operation == &dx_then_operator || operation == &dx_then_descending_operator;
}

static inline bool dx_operator_is_order(const struct dx_operator *operation)
{
	return dx_operator_is_then(operation) || operation == &dx_order_operator ||
	       operation == &dx_order_descending_operator;
}

static inline bool dx_operator_is_descending(const struct dx_operator *operation)
{
	return operation == &dx_order_descending_operator || operation == &dx_then_descending_operator;
}

#endif
