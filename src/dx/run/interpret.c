/* SPDX-License-Identifier: MIT */
#include "dx/run/interpret.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "dx/core/methods.h"
#include "dx/language/parser.h"
#include "dx/language/specifier.h"
#include "dx/model/debugger.h"
#include "dx/model/objects.h"

/* ---- operators ---- */

static bool is_integer(const struct dx_value *value)
{
	return value->kind == DX_NUMBER || value->kind == DX_BOOL;
}

static struct dx_value integer_value(struct dx_query *query, __int128 number, bool is_decimal)
{
	if (number > (__int128)UINT64_MAX || number < (__int128)INT64_MIN)
		return dx_error(query, "the result has more than 64 bits");
	struct dx_value value = number < 0 ? dx_signed((int64_t)number) : dx_number((uint64_t)number);
	value.is_decimal = is_decimal;
	return value;
}

static struct dx_value reals(struct dx_query *query, unsigned operation, double one, double other)
{
	switch (operation) {
	case DX_MULTIPLY:
		return dx_real(one * other);
	case DX_DIVIDE:
		return other == 0 ? dx_error(query, "division by zero") : dx_real(one / other);
	case DX_REMAINDER:
		return other == 0 ? dx_error(query, "division by zero") : dx_real(fmod(one, other));
	case DX_ADD:
		return dx_real(one + other);
	case DX_SUBTRACT:
		return dx_real(one - other);
	default:
		return dx_error(query, "this operator is for integers");
	}
}

static struct dx_value integers(struct dx_query *query, unsigned operation, __int128 one, __int128 other,
				bool is_decimal)
{
	bool is_shift = operation == DX_SHIFT_LEFT || operation == DX_SHIFT_RIGHT;
	if (is_shift && (other < 0 || other > 63))
		return dx_error(query, "a shift is by 0 to 63 bits");
	if ((operation == DX_DIVIDE || operation == DX_REMAINDER) && other == 0)
		return dx_error(query, "division by zero");
	switch (operation) {
	case DX_MULTIPLY:
		if (one && other && (one * other) / other != one)
			return dx_error(query, "the result has more than 64 bits");
		return integer_value(query, one * other, is_decimal);
	case DX_DIVIDE:
		return integer_value(query, one / other, is_decimal);
	case DX_REMAINDER:
		return integer_value(query, one % other, is_decimal);
	case DX_ADD:
		return integer_value(query, one + other, is_decimal);
	case DX_SUBTRACT:
		return integer_value(query, one - other, is_decimal);
	case DX_SHIFT_LEFT:
		return dx_number((uint64_t)one << (unsigned)other);
	case DX_SHIFT_RIGHT:
		return integer_value(query, one >> (unsigned)other, is_decimal);
	case DX_BIT_AND:
		return dx_number((uint64_t)(one & other));
	case DX_BIT_XOR:
		return dx_number((uint64_t)(one ^ other));
	default:
		return dx_number((uint64_t)(one | other));
	}
}

static struct dx_value compare(struct dx_query *query, unsigned operation, const struct dx_value *one,
			       const struct dx_value *other)
{
	int order;
	/* What is absent is equal to what is absent alone, and neither less nor greater. */
	if (one->kind == DX_ABSENT || other->kind == DX_ABSENT)
		return dx_bool((operation == DX_EQUAL && one->kind == other->kind) ||
			       (operation == DX_UNEQUAL && one->kind != other->kind));
	if (!dx_compare(one, other, &order)) {
		if (operation == DX_EQUAL || operation == DX_UNEQUAL)
			return dx_bool(operation == DX_UNEQUAL);
		return dx_error(query, "%s and %s have no order", dx_kind_name(one->kind), dx_kind_name(other->kind));
	}
	switch (operation) {
	case DX_LESS:
		return dx_bool(order < 0);
	case DX_GREATER:
		return dx_bool(order > 0);
	case DX_LESS_EQUAL:
		return dx_bool(order <= 0);
	case DX_GREATER_EQUAL:
		return dx_bool(order >= 0);
	default:
		return dx_bool((order == 0) == (operation == DX_EQUAL));
	}
}

static struct dx_value join_texts(struct dx_query *query, const struct dx_value *one, const struct dx_value *other)
{
	const char *left = dx_show(query, one, 0), *right = dx_show(query, other, 0);
	size_t length = strlen(left), more = strlen(right);
	if (!dx_has_room(query->arena, length + more))
		return dx_error(query, "the text is too long");
	char *text = dx_alloc(query->arena, length + more + 1);
	memcpy(text, left, length);
	memcpy(text + length, right, more);
	return dx_text(text);
}

static struct dx_value apply(struct dx_query *query, unsigned operation, const struct dx_value *one,
			     const struct dx_value *other)
{
	if (one->kind == DX_ERROR)
		return *one;
	if (other->kind == DX_ERROR)
		return *other;
	if (operation >= DX_LESS && operation <= DX_UNEQUAL)
		return compare(query, operation, one, other);
	if (operation == DX_ADD && (one->kind == DX_TEXT || other->kind == DX_TEXT))
		return join_texts(query, one, other);
	/* What is made of a member that an object lacks is lacking, too: sums leave it out. */
	if (one->kind == DX_ABSENT || other->kind == DX_ABSENT)
		return (struct dx_value){.kind = DX_ABSENT};
	bool is_real = one->kind == DX_REAL || other->kind == DX_REAL;
	if ((!is_integer(one) && one->kind != DX_REAL) || (!is_integer(other) && other->kind != DX_REAL))
		return dx_error(query, "this operator is for numbers, not for %s",
				dx_kind_name(is_integer(one) || one->kind == DX_REAL ? other->kind : one->kind));
	if (is_real)
		return reals(query, operation, dx_real_of(one), dx_real_of(other));
	return integers(query, operation, dx_integer_of(one), dx_integer_of(other),
			one->is_decimal && other->is_decimal);
}

static struct dx_value evaluate_binary(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	struct dx_value one = dx_evaluate(query, node->first, scope);
	if (node->operation == DX_AND || node->operation == DX_OR) {
		if (one.kind == DX_ERROR || dx_is_true(&one) == (node->operation == DX_OR))
			return one.kind == DX_ERROR ? one : dx_bool(node->operation == DX_OR);
		struct dx_value other = dx_evaluate(query, node->second, scope);
		return other.kind == DX_ERROR ? other : dx_bool(dx_is_true(&other));
	}
	struct dx_value other = dx_evaluate(query, node->second, scope);
	return apply(query, node->operation, &one, &other);
}

static struct dx_value evaluate_unary(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	struct dx_value value = dx_evaluate(query, node->first, scope);
	if (value.kind == DX_ERROR)
		return value;
	if (node->operation == DX_NOT)
		return dx_bool(!dx_is_true(&value));
	if (value.kind == DX_ABSENT)
		return value;
	if (value.kind == DX_REAL)
		return node->operation == DX_MINUS  ? dx_real(-value.real)
		       : node->operation == DX_PLUS ? value
						    : dx_error(query, "~ is for integers");
	if (!is_integer(&value))
		return dx_error(query, "this operator is for numbers, not for %s", dx_kind_name(value.kind));
	__int128 number = dx_integer_of(&value);
	return node->operation == DX_COMPLEMENT
		       ? dx_number(~(uint64_t)number)
		       : integer_value(query, node->operation == DX_MINUS ? -number : number, value.is_decimal);
}

/* ---- names ---- */

static struct dx_value evaluate_name(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	for (; scope; scope = scope->outer)
		if (!strcmp(scope->name, node->name))
			return scope->value;
	struct dx_value value;
	if (dx_session_name(query, node->name, &value))
		return value;
	return dx_error(query, "there is no name %s", node->name);
}

static struct dx_value evaluate_member(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	struct dx_value object = dx_evaluate(query, node->first, scope);
	bool is_known;
	if (object.kind == DX_ERROR || object.kind == DX_ABSENT)
		return object;
	struct dx_value value = dx_member_get(query, &object, node->name, &is_known);
	bool is_variable = object.kind == DX_OBJECT && object.class == &dx_variables_class;
	if (is_variable && !is_known && dx_session_find(query->session, node->name))
		return dx_session_variable(query, node->name);
	const struct dx_value *key = object.kind == DX_SEQUENCE ? dx_sequence_key(object.sequence) : NULL;
	if (key && !strcasecmp(node->name, DX_NAME_KEY))
		return *key;
	/* A text's Length is documented as a member, too. */
	const struct dx_method *method = is_known ? NULL : dx_method_of(&object, node->name);
	if (method) {
		unsigned least, most;
		dx_method_arity(method, &least, &most);
		struct dx_method_call call = {.method = method, .column = node->name_column, .receiver = object};
		if (!least && method->receiver == DX_OF_TEXT) {
			dx_method_call(query, &call, &value);
			return value;
		}
	}
	return is_known ? value
			: dx_error(query, "%s has no member %s",
				   object.kind == DX_OBJECT ? object.class->name : dx_kind_name(object.kind),
				   node->name);
}

/* ---- calls ---- */

static struct dx_value apply_lambda(struct dx_query *query, const struct dx_value *lambda,
				    const struct dx_value *arguments, uint32_t count)
{
	assert(lambda->kind == DX_LAMBDA && dx_value_is_valid(lambda));
	struct dx_scope scopes[DX_PARAMETERS_MAX];
	struct dx_value result = {.kind = DX_ABSENT};
	const struct dx_node *node = lambda->closure->node;
	const struct dx_scope *scope = lambda->closure->scope;
	for (uint32_t i = 0; i < node->count && i < count; i++) {
		scopes[i] = (struct dx_scope){scope, node->names[i], arguments[i]};
		scope = &scopes[i];
	}
	query->lambda_depth++;
	if (dx_enter(query))
		result = dx_evaluate(query, node->first, scope);
	dx_leave(query);
	query->lambda_depth--;
	/* The scopes are on this stack: what refers to them must not. */
	if (result.kind == DX_LAMBDA || result.kind == DX_SEQUENCE)
		result = dx_value_copy(query->arena, &result);
	return result;
}

struct dx_value dx_call(struct dx_query *query, const struct dx_value *lambda, const struct dx_value *one)
{
	return apply_lambda(query, lambda, one, 1);
}

struct dx_value dx_call_two(struct dx_query *query, const struct dx_value *lambda, const struct dx_value *one,
			    const struct dx_value *other)
{
	const struct dx_value arguments[] = {*one, *other};
	return apply_lambda(query, lambda, arguments, 2);
}

/* f(1): f is a variable, a parameter, or a lambda in parentheses. */
static struct dx_value apply_value(struct dx_query *query, const struct dx_value *lambda, const struct dx_node *node,
				   const struct dx_scope *scope)
{
	struct dx_value arguments[DX_PARAMETERS_MAX];
	if (lambda->kind == DX_ERROR)
		return *lambda;
	if (lambda->kind != DX_LAMBDA)
		return dx_error(query, "only a lambda can be called, not %s", dx_kind_name(lambda->kind));
	if (lambda->closure->node->count != node->count)
		return dx_error(query, "the lambda takes %u argument%s, not %u", lambda->closure->node->count,
				lambda->closure->node->count == 1 ? "" : "s", node->count);
	for (uint32_t i = 0; i < node->count; i++) {
		arguments[i] = dx_evaluate(query, node->children[i], scope);
		if (arguments[i].kind == DX_ERROR)
			return arguments[i];
	}
	return apply_lambda(query, lambda, arguments, node->count);
}

static struct dx_value evaluate_application(struct dx_query *query, const struct dx_node *node,
					    const struct dx_scope *scope)
{
	struct dx_value lambda = dx_evaluate(query, node->first, scope);
	return apply_value(query, &lambda, node, scope);
}

enum { COUNT_USUAL = 10 };

/* Put a number in place of `count`: a literal has a plan wherever a name has none. All places in the query's text are
   that of the call. */
static void nodes_settle(struct dx_node *node, uint64_t count, int column)
{
	if (!node)
		return;
	if (node->kind == DX_NODE_NAME && !strcmp(node->name, "count")) {
		node->kind = DX_NODE_LITERAL;
		node->literal = dx_number(count);
	}
	node->column = node->name_column = column;
	for (uint32_t i = 0; node->children && i < node->count; i++)
		nodes_settle(node->children[i], count, column);
	nodes_settle(node->first, count, column);
	nodes_settle(node->second, count, column);
	nodes_settle(node->third, count, column);
}

/* Evaluate the text of a method. It has two names: `data`, what the method is called on, and `count`, its argument, or
   10 without one. */
static void written_call(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result)
{
	struct dx_complaint complaint;
	const char *rest;
	struct dx_node *node = dx_parse(query->arena, call->method->text, &rest, &complaint);
	struct dx_scope *scope = dx_new(query->arena, struct dx_scope, 1);
	assert(node && !*rest);
	nodes_settle(node, call->count ? dx_count_of(&call->arguments[0]) : COUNT_USUAL, call->column);
	*scope = (struct dx_scope){.name = "data", .value = call->receiver};
	*result = dx_evaluate(query, node, scope);
}

static struct dx_value evaluate_call(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	struct dx_method_call call = {.column = node->name_column};
	struct dx_value result = {.kind = DX_ABSENT};
	if (node->first) {
		call.receiver = dx_evaluate(query, node->first, scope);
		bool is_none = call.receiver.kind == DX_ERROR || call.receiver.kind == DX_ABSENT;
		if (is_none && !dx_method_find(DX_OF_ANY, NULL, node->name))
			return call.receiver;
	}
	if (call.receiver.kind == DX_OBJECT && call.receiver.class->call)
		return call.receiver.class->call(query, &call.receiver, node);
	call.method = node->first ? dx_method_of(&call.receiver, node->name)
				  : dx_method_find(DX_OF_NOTHING, NULL, node->name);
	if (!call.method && !node->first) {
		struct dx_value lambda = dx_session_variable(query, node->name);
		return apply_value(query, &lambda, node, scope);
	}
	if (!call.method)
		return dx_error(query, "%s has no method %s",
				call.receiver.kind == DX_OBJECT ? call.receiver.class->name
								: dx_kind_name(call.receiver.kind),
				node->name);
	unsigned least, most;
	dx_method_arity(call.method, &least, &most);
	if (node->count < least || node->count > most)
		return dx_error(query, "%s takes %s", call.method->name, call.method->shown_arguments);
	for (unsigned i = 0; i < node->count && i < DX_ARGUMENTS_MAX; i++) {
		call.arguments[call.count++] = dx_evaluate(query, node->children[i], scope);
		if (call.arguments[i].kind == DX_ERROR && dx_method_letter(call.method, i) != 'v')
			return call.arguments[i];
	}
	if (!dx_method_call(query, &call, &result))
		written_call(query, &call, &result);
	return result;
}

static struct dx_value evaluate_lambda(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	struct dx_closure *closure = dx_new(query->arena, struct dx_closure, 1);
	*closure = (struct dx_closure){node, scope};
	return (struct dx_value){.kind = DX_LAMBDA, .closure = closure};
}

static struct dx_value evaluate_record(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	struct dx_record *record = dx_new(query->arena, struct dx_record, 1);
	struct dx_value *values = dx_new(query->arena, struct dx_value, node->count + 1);
	for (uint32_t i = 0; i < node->count; i++) {
		values[i] = dx_evaluate(query, node->children[i], scope);
		if (values[i].kind == DX_LAMBDA || values[i].kind == DX_SEQUENCE)
			values[i] = dx_value_copy(query->arena, &values[i]);
	}
	*record = (struct dx_record){node->count, (const char *const *)node->names, values};
	return dx_object(&dx_record_class, record);
}

/* ---- indexes ---- */

/* The element with this index, which it may have kept from a longer sequence. */
static struct dx_value element_at(struct dx_query *query, const struct dx_sequence *sequence,
				  const struct dx_value *index)
{
	struct dx_element element;
	struct dx_iterator *iterator = dx_open(query, sequence);
	int order;
	dx_each (query, iterator, &element)
		if (dx_compare(&element.index, index, &order) && !order)
			return element.value;
	return dx_error(query, "there is no element [%s]", dx_show(query, index, 0));
}

static struct dx_value evaluate_index(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	struct dx_value object = dx_evaluate(query, node->first, scope), sequence;
	struct dx_value index = dx_evaluate(query, node->second, scope);
	if (object.kind == DX_ERROR || object.kind == DX_ABSENT)
		return object;
	if (index.kind == DX_ERROR)
		return index;
	/* Stack[0] is Frames[0]. */
	const char *parts = node->first->kind == DX_NODE_MEMBER ? dx_name_of_parts(node->first->name) : NULL;
	if (object.kind == DX_TEXT && parts) {
		struct dx_value owner = dx_evaluate(query, node->first->first, scope);
		object = dx_member_get(query, &owner, parts, NULL);
	}
	if (dx_elements(query, &object, &sequence))
		return element_at(query, sequence.sequence, &index);
	return dx_error(query, "%s has no elements", dx_kind_name(object.kind));
}

/* ---- nodes ---- */

struct dx_value dx_evaluate(struct dx_query *query, const struct dx_node *node, const struct dx_scope *scope)
{
	struct dx_value value = {.kind = DX_ABSENT};
	if (!dx_enter(query)) {
		dx_leave(query);
		return value;
	}
	switch ((enum dx_node_kind)node->kind) {
	case DX_NODE_LITERAL:
		value = node->literal;
		break;
	case DX_NODE_NAME:
		value = evaluate_name(query, node, scope);
		break;
	case DX_NODE_VARIABLE:
		value = dx_session_variable(query, node->name);
		break;
	case DX_NODE_MEMBER:
		value = evaluate_member(query, node, scope);
		break;
	case DX_NODE_CALL:
		value = evaluate_call(query, node, scope);
		break;
	case DX_NODE_APPLY:
		value = evaluate_application(query, node, scope);
		break;
	case DX_NODE_INDEX:
		value = evaluate_index(query, node, scope);
		break;
	case DX_NODE_UNARY:
		value = evaluate_unary(query, node, scope);
		break;
	case DX_NODE_BINARY:
		value = evaluate_binary(query, node, scope);
		break;
	case DX_NODE_CONDITIONAL:
		value = dx_evaluate(query, node->first, scope);
		if (value.kind != DX_ERROR)
			value = dx_evaluate(query, dx_is_true(&value) ? node->second : node->third, scope);
		break;
	case DX_NODE_LAMBDA:
		value = evaluate_lambda(query, node, scope);
		break;
	case DX_NODE_RECORD:
		value = evaluate_record(query, node, scope);
		break;
	case DX_NODE_ASSIGN:
		value = dx_evaluate(query, node->first, scope);
		if (value.kind != DX_ERROR)
			dx_session_assign(query, node->name, &value);
		break;
	}
	assert(dx_value_is_valid(&value));
	dx_leave(query);
	return value;
}
