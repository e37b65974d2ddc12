/* SPDX-License-Identifier: MIT */
/** Parts of lambdas that do not depend on their parameters, as the query in x => x.Size > Heap().Average(h => h.Size):
    they are evaluated once, and not for each element. */
#ifndef XHEAP_DX_SUBQUERIES_H
#define XHEAP_DX_SUBQUERIES_H

#include "dx/core/syntax.h"

/** Mark these parts in a tree that has been checked. A query with effects, such as SeekTo() or a variable that it sets,
    has none. */
void dx_subqueries_mark(struct dx_node *tree);

/** Return one of those that are left in a node, and forget that it is one; NULL: none is left. */
struct dx_node *dx_subquery_take(struct dx_node *node);

#endif
