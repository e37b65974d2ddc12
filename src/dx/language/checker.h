/* SPDX-License-Identifier: MIT */
/** Finds unknown members, methods and names, wrong types and numbers of arguments before the evaluation. */
#ifndef XHEAP_DX_CHECKER_H
#define XHEAP_DX_CHECKER_H

#include "dx/core/query.h"
#include "dx/language/parser.h"

/** Check the tree. True: all is well as far as types are known; false: the reason is in *complaint. */
bool dx_check(struct dx_query *query, struct dx_node *node, struct dx_complaint *complaint);

/** A member, or a method, that may stand behind a dot. */
typedef void dx_name_visit(void *context, const char *name, bool is_method);

/** The member that stands for the one to be completed. */
#define DX_NAME_UNKNOWN "__xheap_completion"

/** Visit the members and methods that may stand where the tree has DX_NAME_UNKNOWN. False: the type is not known
    there, or the tree does not have it. */
bool dx_check_names(struct dx_query *query, struct dx_node *node, dx_name_visit *visit, void *context);

#endif
