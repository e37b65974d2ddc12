/* SPDX-License-Identifier: MIT */
#include "dx/core/value.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/position.h"
#include "dx/core/query.h"

enum { ERROR_BYTES = 400, POSITION_BYTES = 64 };

const struct dx_class dx_record_class = {
	.name = "object", .help = "an object made by new { ... }", .data_bytes = sizeof(struct dx_record)};

struct dx_value dx_error(struct dx_query *query, const char *format, ...)
{
	char text[ERROR_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return (struct dx_value){.kind = DX_ERROR, .text = dx_copy_text(query->arena, text, strlen(text))};
}

/* ---- validity ---- */

static bool object_is_valid(const struct dx_value *value)
{
	if (!value->class || !value->class->name)
		return false;
	const struct dx_record *record = value->class == &dx_record_class ? value->data : NULL;
	return value->class != &dx_record_class || (record && (!record->count || (record->names && record->values)));
}

bool dx_value_is_valid(const struct dx_value *value)
{
	bool is_number = value->kind == DX_NUMBER, is_position = value->kind == DX_POSITION;
	if ((value->kind != DX_ABSENT && value->is_nothing) ||
	    (!is_number && (value->is_signed || value->is_decimal || value->is_address)) ||
	    (!is_position && (value->is_estimated || (value->kind != DX_TEXT && value->step))))
		return false;
	switch (value->kind) {
	case DX_TEXT:
	case DX_ERROR:
		return value->text;
	case DX_OBJECT:
		return object_is_valid(value);
	case DX_SEQUENCE:
		return value->sequence && value->sequence->operation;
	case DX_LAMBDA:
		return value->closure && value->closure->node && value->closure->node->kind == DX_NODE_LAMBDA;
	default:
		return value->kind < DX_KIND_COUNT;
	}
}

/* ---- copies ---- */

static const char *name_copy(struct dx_arena *arena, const char *name)
{
	return name && arena->is_lasting ? dx_copy_text(arena, name, strlen(name)) : name;
}

static const char **names_copy(struct dx_arena *arena, const char *const *names, uint32_t count)
{
	const char **copies = dx_new(arena, const char *, count + 1);
	for (uint32_t i = 0; i < count; i++)
		copies[i] = name_copy(arena, names[i]);
	return copies;
}

static struct dx_node *node_copy(struct dx_arena *arena, const struct dx_node *node)
{
	if (!node)
		return NULL;
	struct dx_node *copy = dx_new(arena, struct dx_node, 1);
	*copy = *node;
	copy->column = copy->name_column = -1; /* of another text than the query that uses it */
	copy->name = name_copy(arena, node->name);
	copy->first = node_copy(arena, node->first);
	copy->second = node_copy(arena, node->second);
	copy->third = node_copy(arena, node->third);
	copy->literal = dx_value_copy(arena, &node->literal);
	if (node->names)
		copy->names = names_copy(arena, node->names, node->count);
	if (node->children) {
		copy->children = dx_new(arena, struct dx_node *, node->count + 1);
		for (uint32_t i = 0; i < node->count; i++)
			copy->children[i] = node_copy(arena, node->children[i]);
	}
	return copy;
}

static const struct dx_scope *scope_copy(struct dx_arena *arena, const struct dx_scope *scope)
{
	if (!scope)
		return NULL;
	struct dx_scope *copy = dx_new(arena, struct dx_scope, 1);
	*copy = (struct dx_scope){scope_copy(arena, scope->outer), name_copy(arena, scope->name),
				  dx_value_copy(arena, &scope->value)};
	return copy;
}

static const struct dx_closure *closure_copy(struct dx_arena *arena, const struct dx_closure *closure)
{
	struct dx_closure *copy = dx_new(arena, struct dx_closure, 1);
	*copy = (struct dx_closure){arena->is_lasting ? node_copy(arena, closure->node) : closure->node,
				    scope_copy(arena, closure->scope)};
	return copy;
}

static const void *data_copy(struct dx_arena *arena, const struct dx_value *value)
{
	assert(value->kind == DX_OBJECT);
	if (!value->class->data_bytes || !value->data)
		return value->data;
	void *copy = dx_alloc(arena, value->class->data_bytes);
	memcpy(copy, value->data, value->class->data_bytes);
	if (value->class != &dx_record_class)
		return copy;
	struct dx_record *record = copy;
	struct dx_value *values = dx_new(arena, struct dx_value, record->count + 1);
	for (uint32_t i = 0; i < record->count; i++)
		values[i] = dx_value_copy(arena, &record->values[i]);
	record->values = values;
	if (arena->is_lasting)
		record->names = names_copy(arena, record->names, record->count);
	return record;
}

/* Values lie in objects, collections and lambdas; loops such as Aggregate put more and more of them around one. */
static bool is_too_deep(const struct dx_arena *arena, const struct dx_value *value)
{
	unsigned depth = arena->budget->copy_depth;
	if (value->kind == DX_SEQUENCE)
		for (const struct dx_sequence *at = value->sequence; at && depth <= DX_DEPTH_MAX; at = at->source)
			depth++;
	return depth > DX_DEPTH_MAX;
}

struct dx_value dx_value_copy(struct dx_arena *arena, const struct dx_value *value)
{
	struct dx_value copy = *value;
	assert(dx_value_is_valid(value));
	if (is_too_deep(arena, value))
		return (struct dx_value){.kind = DX_ERROR, .text = "the value is nested too deep"};
	arena->budget->copy_depth++;
	switch (value->kind) {
	case DX_TEXT:
	case DX_ERROR:
		copy.text = dx_copy_text(arena, value->text, strlen(value->text));
		break;
	case DX_OBJECT:
		copy.data = data_copy(arena, value);
		break;
	case DX_SEQUENCE:
		copy.sequence = dx_sequence_copy(arena, value->sequence);
		break;
	case DX_LAMBDA:
		copy.closure = closure_copy(arena, value->closure);
		break;
	default:
		break;
	}
	arena->budget->copy_depth--;
	return copy;
}

/* ---- members ---- */

static const struct dx_class *class_of(const struct dx_value *object)
{
	return object->kind == DX_POSITION ? &dx_position_class : object->kind == DX_OBJECT ? object->class : NULL;
}

uint32_t dx_member_count(const struct dx_value *object)
{
	const struct dx_class *class = class_of(object);
	uint32_t count = 0;
	if (class == &dx_record_class)
		return ((const struct dx_record *)object->data)->count;
	while (class && class->members && class->members[count].name)
		count++;
	return count;
}

static void member_value(struct dx_query *query, const struct dx_value *object, const struct dx_member *member,
			 struct dx_value *value)
{
	*value = (struct dx_value){.kind = DX_ABSENT};
	if (member->get)
		member->get(query, object, value);
	else
		object->class->get_column(query, object, dx_member_column(member), value);
	assert(dx_value_is_valid(value));
}

const char *dx_member_at(struct dx_query *query, const struct dx_value *object, uint32_t number, unsigned *flags,
			 struct dx_value *value)
{
	const struct dx_class *class = class_of(object);
	if (class == &dx_record_class) {
		const struct dx_record *record = object->data;
		assert(number < record->count);
		if (flags)
			*flags = 0;
		if (value)
			*value = record->values[number];
		return record->names[number];
	}
	const struct dx_member *member = &class->members[number];
	assert(member->name);
	if (flags)
		*flags = member->flags;
	if (value)
		member_value(query, object, member, value);
	return member->name;
}

static bool record_get(const struct dx_record *record, const char *name, struct dx_value *value)
{
	bool is_found = false;
	for (uint32_t i = 0; i < record->count && value->kind == DX_ABSENT; i++)
		if (!strcmp(record->names[i], name)) {
			is_found = true;
			*value = record->values[i];
		}
	return is_found;
}

/* A second row of a name counts where the first one is absent. */
struct dx_value dx_member_get(struct dx_query *query, const struct dx_value *object, const char *name, bool *is_known)
{
	struct dx_value value = {.kind = DX_ABSENT};
	const struct dx_class *class = class_of(object);
	bool is_found = false;
	if (class == &dx_record_class)
		is_found = record_get(object->data, name, &value);
	else
		for (const struct dx_member *row = class ? class->members : NULL;
		     row && row->name && value.kind == DX_ABSENT; row++)
			if (!strcasecmp(row->name, name)) {
				is_found = true;
				member_value(query, object, row, &value);
			}
	if (is_known)
		*is_known = is_found;
	return value;
}

/* ---- order ---- */

static uint64_t hash_bytes(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	uint64_t hash = size;
	for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, bytes, sizeof(word));
		hash = hash_pair(hash, word);
	}
	uint64_t rest = 0;
	memcpy(&rest, bytes, size);
	return hash_pair(hash, rest);
}

double dx_real_of(const struct dx_value *value)
{
	return value->kind == DX_REAL   ? value->real
	       : value->kind == DX_BOOL ? (double)value->truth
	       : value->is_signed       ? (double)(int64_t)value->number
					: (double)value->number;
}

__int128 dx_integer_of(const struct dx_value *value)
{
	return value->kind == DX_BOOL ? (__int128)value->truth
	       : value->is_signed     ? (__int128)(int64_t)value->number
				      : (__int128)value->number;
}

uint64_t dx_count_of(const struct dx_value *value)
{
	if (value->kind == DX_REAL)
		return value->real > 0 ? (uint64_t)value->real : 0;
	return value->is_signed && (int64_t)value->number < 0 ? 0 : value->number;
}

static bool is_numeric(const struct dx_value *value)
{
	return value->kind == DX_NUMBER || value->kind == DX_REAL || value->kind == DX_BOOL;
}

static int position_order(const struct dx_value *one, const struct dx_value *other)
{
	if (one->sequence_ns != other->sequence_ns)
		return one->sequence_ns < other->sequence_ns ? -1 : 1;
	return (one->step > other->step) - (one->step < other->step);
}

static int record_order(const struct dx_record *one, const struct dx_record *other)
{
	for (uint32_t i = 0; i < one->count && i < other->count; i++) {
		int order = dx_order(&one->values[i], &other->values[i]);
		if (order)
			return order;
	}
	return (one->count > other->count) - (one->count < other->count);
}

static size_t identity_bytes(const struct dx_class *class)
{
	return class->identity_bytes ? class->identity_bytes : class->data_bytes;
}

static int object_order(const struct dx_value *one, const struct dx_value *other)
{
	if (one->class != other->class)
		return strcmp(one->class->name, other->class->name);
	if (one->class == &dx_record_class)
		return record_order(one->data, other->data);
	if (one->class->data_bytes && one->data && other->data)
		return memcmp(one->data, other->data, identity_bytes(one->class));
	return (one->data > other->data) - (one->data < other->data);
}

bool dx_compare(const struct dx_value *one, const struct dx_value *other, int *order)
{
	*order = 0;
	if (is_numeric(one) && is_numeric(other)) {
		if (one->kind == DX_REAL || other->kind == DX_REAL) {
			double a = dx_real_of(one), b = dx_real_of(other);
			*order = (a > b) - (a < b);
			return a == a && b == b;
		}
		__int128 a = dx_integer_of(one), b = dx_integer_of(other);
		*order = (a > b) - (a < b);
		return true;
	}
	if (one->kind != other->kind)
		return false;
	switch (one->kind) {
	case DX_TEXT:
		*order = strcmp(one->text, other->text);
		return true;
	case DX_POSITION:
		*order = position_order(one, other);
		return true;
	case DX_OBJECT:
		*order = object_order(one, other);
		return true;
	default:
		return one->kind == DX_ABSENT;
	}
}

int dx_order(const struct dx_value *one, const struct dx_value *other)
{
	int order;
	if (dx_compare(one, other, &order))
		return order;
	if (one->kind != other->kind)
		return one->kind < other->kind ? -1 : 1;
	return one->kind == DX_ERROR ? strcmp(one->text, other->text)
				     : (one->data > other->data) - (one->data < other->data);
}

uint64_t dx_hash(const struct dx_value *value)
{
	uint64_t hash = is_numeric(value) ? DX_NUMBER : value->kind;
	const struct dx_record *record;
	switch (value->kind) {
	case DX_BOOL:
	case DX_NUMBER:
	case DX_REAL: {
		double real = dx_real_of(value);
		return hash_pair(hash, value->kind == DX_REAL && real == (double)(int64_t)real ? (uint64_t)(int64_t)real
				       : value->kind == DX_REAL                                ? (uint64_t)(real * 1000)
								: (uint64_t)dx_integer_of(value));
	}
	case DX_TEXT:
	case DX_ERROR:
		return hash_pair(hash, hash_bytes(value->text, strlen(value->text)));
	case DX_POSITION:
		return hash_pair((uint64_t)value->sequence_ns, value->step);
	case DX_OBJECT:
		if (value->class == &dx_record_class) {
			record = value->data;
			for (uint32_t i = 0; i < record->count; i++)
				hash = hash_pair(hash, dx_hash(&record->values[i]));
			return hash;
		}
		return value->class->data_bytes && value->data ? hash_bytes(value->data, identity_bytes(value->class))
							       : (uint64_t)(uintptr_t)value->data;
	default:
		return hash;
	}
}

bool dx_is_true(const struct dx_value *value)
{
	switch (value->kind) {
	case DX_BOOL:
		return value->truth;
	case DX_NUMBER:
		return value->number != 0;
	case DX_REAL:
		return value->real != 0;
	case DX_TEXT:
		return *value->text;
	case DX_ABSENT:
	case DX_ERROR:
		return false;
	default:
		return true;
	}
}

const char *dx_kind_name(unsigned kind)
{
	static const char *const names[] = {"nothing",   "a bool",       "a number", "a number", "a text", "a position",
					    "an object", "a collection", "a lambda", "an error", "a value"};
	return names[kind < sizeof(names) / sizeof(names[0]) ? kind : DX_ANY];
}

/* Documents leave the step out: "1A0:". */
bool dx_position_parse(const char *text, struct dx_value *position)
{
	char whole[POSITION_BYTES];
	size_t length = strlen(text);
	struct position read;
	if (!length || length + 2 > sizeof(whole))
		return false;
	snprintf(whole, sizeof(whole), "%s%s", text, text[length - 1] == ':' ? "0" : "");
	if (!position_parse(whole, &read))
		return false;
	bool is_end = read.time_ns >= POSITION_END_NS;
	*position = dx_position(is_end ? INT64_MAX : read.time_ns, is_end                   ? 0
								   : read.step < UINT32_MAX ? (uint32_t)read.step
											    : UINT32_MAX);
	return true;
}

const char *dx_position_text(struct dx_arena *arena, const struct dx_value *position)
{
	assert(position->kind == DX_POSITION);
	if (position->sequence_ns == INT64_MAX)
		return POSITION_END_TEXT;
	uint64_t step = position->step == UINT32_MAX ? POSITION_LAST : position->step;
	const struct text text = position_text((struct position){position->sequence_ns, step});
	return dx_copy_text(arena, text.data, strlen(text.data));
}
