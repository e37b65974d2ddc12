/* SPDX-License-Identifier: MIT */
/** The tree of a query. Nodes and names lie in an arena. */
#ifndef XHEAP_DX_SYNTAX_H
#define XHEAP_DX_SYNTAX_H

#include "dx/core/value.h"

enum dx_node_kind {
	DX_NODE_LITERAL,
	DX_NODE_NAME,        /**< a parameter of a lambda, or a name at the top, such as Debugger */
	DX_NODE_VARIABLE,    /**< @$name */
	DX_NODE_MEMBER,      /**< first.name */
	DX_NODE_CALL,        /**< first.name(children), or @$name(children) without first */
	DX_NODE_APPLY,       /**< first(children): first is a lambda */
	DX_NODE_INDEX,       /**< first[second] */
	DX_NODE_UNARY,       /**< operation first */
	DX_NODE_BINARY,      /**< first operation second */
	DX_NODE_CONDITIONAL, /**< first ? second : third */
	DX_NODE_LAMBDA,      /**< (names) => first */
	DX_NODE_RECORD,      /**< new { name = child, ... } */
	DX_NODE_ASSIGN       /**< @$name = first */
};

enum dx_operation {
	DX_NOT,
	DX_MINUS,
	DX_PLUS,
	DX_COMPLEMENT,
	DX_MULTIPLY,
	DX_DIVIDE,
	DX_REMAINDER,
	DX_ADD,
	DX_SUBTRACT,
	DX_SHIFT_LEFT,
	DX_SHIFT_RIGHT,
	DX_LESS,
	DX_GREATER,
	DX_LESS_EQUAL,
	DX_GREATER_EQUAL,
	DX_EQUAL,
	DX_UNEQUAL,
	DX_BIT_AND,
	DX_BIT_XOR,
	DX_BIT_OR,
	DX_AND,
	DX_OR
};

/** Return the member that has as objects what this one is as a text: the frames of a stack; NULL: none. */
const char *dx_name_of_parts(const char *name);

/** The member of a group that is its key. */
#define DX_NAME_KEY "Key"

/** DX_DEPTH_MAX: levels of an evaluation, and of a tree. */
enum { DX_PARAMETERS_MAX = 2, DX_DEPTH_MAX = 400 };

struct dx_node {
	uint8_t kind;      /**< enum dx_node_kind */
	uint8_t operation; /**< enum dx_operation, of unary and binary nodes */
	uint16_t height;   /**< nodes from here down to the lowest one, this one included */
	int column;        /**< in the text, from 0 */
	int name_column;   /**< of `name`, of members and calls */
	const char *name;
	struct dx_node *first, *second, *third;
	struct dx_value literal;
	uint32_t count; /**< of children, and of names of records and lambdas */
	struct dx_node **children;
	const char **names;
	const struct dx_method *method; /**< of calls, from the checker; NULL: found at the evaluation */
};

#endif
