/* SPDX-License-Identifier: MIT */
/**
 * What lambdas ask of groups. A group of GroupBy() need not be kept if lambdas use it for its key, and for Count, Sum,
 * Average, Min, Max, First and Any alone: each such call is an accumulator.
 */
#ifndef XHEAP_DX_GROUP_CALLS_H
#define XHEAP_DX_GROUP_CALLS_H

#include "dx/core/query.h"
#include "dx/run/sums.h"

enum { DX_GROUP_CALLS_MAX = 16 };

/** What a call wants of a group. */
enum dx_group_call_kind {
	DX_GROUP_COUNT,
	DX_GROUP_SUM,
	DX_GROUP_AVERAGE,
	DX_GROUP_MIN,
	DX_GROUP_MAX,
	DX_GROUP_FIRST,
	DX_GROUP_ANY,
	DX_GROUP_METHODS,
	DX_GROUP_KEY = DX_GROUP_METHODS /**< written as g.Key, or as g.First() with the key's expression behind it */
};

/** The part of a key that is all of it, where it has parts. */
enum { DX_GROUP_KEY_WHOLE = UINT32_MAX - 1 };

struct dx_group_call {
	const struct dx_node *node; /**< of the copied lambda: the call on the group */
	struct dx_closure closure;  /**< of its lambda; node NULL: it has none */
	enum dx_group_call_kind kind;
	uint32_t part; /**< of DX_GROUP_KEY: the member of a key that is `new { ... }`, or DX_GROUP_KEY_WHOLE; else 0 */
};

/** The calls of all lambdas over the groups of one GroupBy(). */
struct dx_group_calls {
	const struct dx_node *key; /**< the lambda of GroupBy() */
	struct dx_arena *arena;
	struct dx_group_call items[DX_GROUP_CALLS_MAX];
	uint32_t count;
};

/** Take the calls of a lambda of one parameter, a group. Return a copy of the lambda, in the arena, whose calls are the
    nodes of the items. NULL: something else is done with the group. */
const struct dx_closure *dx_group_calls_take(struct dx_group_calls *calls, const struct dx_closure *lambda);

/** Return the number of the call that is this node; calls->count: none is. */
uint32_t dx_group_calls_find(const struct dx_group_calls *calls, const struct dx_node *node);

/** Return the name of the method. */
const char *dx_group_call_name(enum dx_group_call_kind kind);

/** What a group has of a call. */
struct dx_group_cell {
	struct dx_sum sum;     /**< `count`: of Count and Any, too, and of First */
	struct dx_value value; /**< of Min, Max and First; DX_ABSENT: there is none */
};

/** Return the answer to the call, unless it is the key. */
struct dx_value dx_group_call_answer(struct dx_query *query, const struct dx_group_call *call,
				     const struct dx_group_cell *cell);

/** Return the part of the key. */
struct dx_value dx_group_key_part(const struct dx_group_calls *calls, const struct dx_value *key, uint32_t part);

/** A group while a lambda is evaluated: the data of an object of dx_group_class. Embed it at the begin of a struct. */
struct dx_group {
	const struct dx_group_calls *calls;
	/** Return the answer to a call. */
	struct dx_value (*answer)(struct dx_query *query, const struct dx_group *group, uint32_t call);
};

extern const struct dx_class dx_group_class;

/** Return whether the name stands for a variable somewhere in the tree, which may be NULL. */
bool dx_node_mentions(const struct dx_node *node, const char *name);

/** Return a copy of the node whose children are of the same tree. */
struct dx_node *dx_node_copy_flat(struct dx_arena *arena, const struct dx_node *node);

#endif
