/* SPDX-License-Identifier: MIT */
/** Nodes of the tree of names that stand for the texts of stacks: equal texts have one node. */
#ifndef XHEAP_DX_STACK_NODES_H
#define XHEAP_DX_STACK_NODES_H

#include <stdbool.h>
#include <stdint.h>

struct dx_query;
struct heap_site;
struct stack_nodes;

/** Begin; free it with stack_nodes_free(), NULL is allowed. */
struct stack_nodes *stack_nodes_new(struct dx_query *query);
void stack_nodes_free(struct stack_nodes *nodes);

/** Set the node of a stack. Return false if the text does not say where one name ends and the next one begins, or the
    trace has no names. */
bool stack_nodes_find(struct stack_nodes *nodes, const struct heap_site *site, uint32_t *node);

#endif
