/* SPDX-License-Identifier: MIT */
#include "dx/core/methods.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

const struct dx_method *dx_method_find(enum dx_receiver receiver, const struct dx_class *class, const char *name)
{
	assert(receiver <= DX_OF_NOTHING && !(class && receiver != DX_OF_CLASS));
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *row = *table; row->name; row++)
			if (row->receiver == receiver && row->class == class && !strcasecmp(row->name, name))
				return row;
	return NULL;
}

const struct dx_method *dx_method_of(const struct dx_value *value, const char *name)
{
	const struct dx_method *method = NULL;
	bool has_elements = value->kind == DX_SEQUENCE || (value->kind == DX_OBJECT && value->class->elements);
	if (value->kind == DX_OBJECT)
		method = dx_method_find(DX_OF_CLASS, value->class, name);
	if (!method && has_elements)
		method = dx_method_find(DX_OF_SEQUENCE, NULL, name);
	if (!method && value->kind == DX_TEXT)
		method = dx_method_find(DX_OF_TEXT, NULL, name);
	if (!method && value->kind == DX_POSITION)
		method = dx_method_find(DX_OF_POSITION, NULL, name);
	return method ? method : dx_method_find(DX_OF_ANY, NULL, name);
}

void dx_method_arity(const struct dx_method *method, unsigned *least, unsigned *most)
{
	bool is_optional = false;
	*least = *most = 0;
	for (const char *letter = method->arguments; *letter; letter++) {
		if (*letter == '?')
			is_optional = true;
		else if (*letter == '*')
			*most = DX_ARGUMENTS_MAX;
		else
			*most += 1;
		if (!is_optional && *letter != '*')
			*least += 1;
	}
}

char dx_method_letter(const struct dx_method *method, unsigned number)
{
	char last = 'v';
	for (const char *letter = method->arguments; *letter; letter++) {
		if (*letter == '?')
			continue;
		if (*letter == '*')
			return last;
		last = *letter;
		if (!number--)
			return last;
	}
	return last;
}

bool dx_letter_is_of_element(char letter)
{
	return letter == 'f' || letter == 'c' || letter == 'o' || letter == 'm';
}

static bool is_lambda_letter(char letter)
{
	return dx_letter_is_of_element(letter) || letter == 'k' || letter == 'g';
}

/* Return what the argument should be, or NULL if it is that. A sequence may be an object with elements. */
static const char *argument_check(struct dx_query *query, struct dx_value *argument, char letter)
{
	struct dx_value sequence;
	unsigned parameters;
	bool is_number;
	if (is_lambda_letter(letter)) {
		parameters = letter == 'g' ? 2 : 1;
		if (argument->kind != DX_LAMBDA || argument->closure->node->count != parameters)
			return parameters == 2 ? "a lambda of two parameters, (a, b) => ..."
					       : "a lambda of one parameter, x => ...";
		return NULL;
	}
	switch (letter) {
	case 'n':
		is_number = argument->kind == DX_NUMBER && !(argument->is_signed && (int64_t)argument->number < 0);
		return is_number ? NULL : "a whole number from 0 on";
	case 't':
		return argument->kind == DX_TEXT ? NULL : "a text";
	case 'b':
		is_number = argument->kind == DX_NUMBER && argument->number <= 1;
		return argument->kind == DX_BOOL || is_number ? NULL : "true or false";
	case 'p':
		is_number = argument->kind == DX_NUMBER || argument->kind == DX_REAL;
		return is_number || argument->kind == DX_POSITION || argument->kind == DX_TEXT ? NULL : "a position";
	case 's':
		if (!dx_elements(query, argument, &sequence))
			return "a collection";
		*argument = sequence;
		return NULL;
	default:
		return NULL;
	}
}

bool dx_method_call(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const struct dx_method *method = call->method;
	assert(method && call->count <= DX_ARGUMENTS_MAX && (method->call || method->operation || method->text));
	for (unsigned i = 0; i < call->count; i++) {
		const char *wanted = argument_check(query, &call->arguments[i], dx_method_letter(method, i));
		if (wanted && call->arguments[i].kind == DX_LAMBDA && is_lambda_letter(dx_method_letter(method, i))) {
			*result = dx_error(query, "%s: argument %u must be %s, not one of %u", method->name, i + 1,
					   wanted, call->arguments[i].closure->node->count);
			return true;
		}
		if (wanted) {
			*result = dx_error(query, "%s: argument %u must be %s, not %s", method->name, i + 1, wanted,
					   dx_kind_name(call->arguments[i].kind));
			return true;
		}
	}
	if (method->receiver == DX_OF_SEQUENCE && !dx_elements(query, &call->receiver, &call->receiver)) {
		*result = dx_error(query, "%s: there are no elements", method->name);
		return true;
	}
	if (method->text)
		return false;
	if (!method->operation) {
		method->call(query, call, result);
		bool has_no_result = method->result == DX_RESULT_KIND && method->kind == DX_ABSENT;
		result->is_nothing = has_no_result && result->kind == DX_ABSENT;
		return true;
	}
	struct dx_sequence *sequence = dx_sequence_new(query, method->operation, call->receiver.sequence, call->column);
	sequence->argument_count = call->count;
	memcpy(sequence->arguments, call->arguments, sizeof(sequence->arguments));
	*result = dx_sequence_value(sequence);
	return true;
}
