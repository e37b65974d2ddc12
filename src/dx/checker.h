/* SPDX-License-Identifier: MIT */
/** Finds unknown members, methods and names, wrong types and numbers of arguments before the evaluation. */
#ifndef XHEAP_DX_CHECKER_H
#define XHEAP_DX_CHECKER_H

#include "dx/parser.h"
#include "dx/query.h"

/** Check the tree. True: all is well as far as types are known; false: the reason is in *complaint. */
bool dx_check(struct dx_query *query, struct dx_node *node, struct dx_complaint *complaint);

#endif
