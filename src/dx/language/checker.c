/* SPDX-License-Identifier: MIT */
/*
 * Types are known as far as tables of members and methods say them: the element of Heap() is a heap object, whose Size
 * is a number. What is not known is of any type, and is checked by the evaluation.
 */
#include "dx/language/checker.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/text_nearest.h"
#include "dx/core/methods.h"
#include "dx/language/foreign_words.h"
#include "dx/model/debugger.h"
#include "dx/model/heap_limits.h"
#include "dx/model/member_words.h"
#include "dx/model/objects.h"
#include "dx/model/objects_session.h"
#include "dx/model/stack_frames.h"

/* NEAR: below this distance, a word is meant. */
enum { NEAR = 3, LISTED_BYTES = 160 };

struct known_type {
	uint8_t kind; /* enum dx_kind, DX_ANY */
	const struct dx_class *class;
	const struct known_type *element; /* of sequences; NULL: any */
	const struct known_type *key;     /* of groups; NULL: it is none */
	const struct dx_node *record;     /* of records: the names */
	const struct known_type *const *fields;
	const struct dx_member *words; /* of texts: the member, which may have only some; NULL: any text */
};

struct type_scope {
	const struct type_scope *outer;
	const char *name;
	const struct known_type *type;
};

struct checker {
	struct dx_query *query;
	struct dx_complaint *complaint;
	bool has_failed;
	const struct known_type *element; /* within an argument that should be a lambda: its parameter; or NULL */
	const struct dx_node *text;       /* what a text is compared with; NULL: not known */
	dx_name_visit *visit;             /* NULL: this is no search for names */
	void *context;
	bool has_visited;
};

static const struct known_type any = {.kind = DX_ANY};

static const struct known_type *check(struct checker *checker, struct dx_node *node, const struct type_scope *scope);

/* ---- complaints ---- */

__attribute__((format(printf, 3, 4))) static const struct known_type *complain(struct checker *checker, int column,
									       const char *format, ...)
{
	va_list arguments;
	if (checker->has_failed)
		return &any;
	checker->has_failed = true;
	checker->complaint->column = column;
	va_start(arguments, format);
	char text[sizeof(checker->complaint->diag.text)];
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	diag_fail(&checker->complaint->diag, EINVAL, "%s", text);
	return &any;
}

static struct text_nearest nearest_begin(const char *wanted)
{
	return (struct text_nearest){wanted, NULL, strlen(wanted) / 2 + 2};
}

/* ---- types ---- */

static const struct known_type *type_new(struct checker *checker, struct known_type type)
{
	struct known_type *made = dx_new(&checker->query->whole, struct known_type, 1);
	*made = type;
	return made;
}

static const struct known_type *type_of_kind(struct checker *checker, uint8_t kind, const struct dx_class *class)
{
	struct known_type type = {.kind = kind, .class = class};
	if (kind == DX_ANY)
		return &any;
	if (kind == DX_OBJECT && !class)
		return &any;
	assert(kind < DX_KIND_COUNT);
	if (kind == DX_SEQUENCE && class)
		type.element = type_of_kind(checker, class == &dx_position_class ? DX_POSITION : DX_OBJECT, class);
	return type_new(checker, type);
}

static const struct known_type *type_of_value(struct checker *checker, const struct dx_value *value)
{
	bool is_plain = value->kind != DX_ERROR && value->kind != DX_ABSENT && value->kind != DX_SEQUENCE &&
			!(value->kind == DX_OBJECT && value->class == &dx_record_class);
	return is_plain ? type_of_kind(checker, value->kind, value->class) : &any;
}

static bool has_elements(const struct known_type *type)
{
	return type->kind == DX_SEQUENCE || type->kind == DX_ANY ||
	       (type->kind == DX_OBJECT && type->class && type->class->elements);
}

static const struct known_type *element_of(struct checker *checker, const struct known_type *type)
{
	if (type->kind == DX_SEQUENCE && type->element)
		return type->element;
	if (type->kind == DX_OBJECT && type->class && type->class->element)
		return type_of_kind(checker, DX_OBJECT, type->class->element);
	return &any;
}

static const char *type_name(const struct known_type *type)
{
	return type->kind == DX_OBJECT && type->class ? type->class->name : dx_kind_name(type->kind);
}

static bool is_numeric(const struct known_type *type)
{
	return type->kind == DX_NUMBER || type->kind == DX_REAL || type->kind == DX_BOOL;
}

static const struct dx_class *class_of(const struct known_type *type)
{
	return type->kind == DX_POSITION ? &dx_position_class : type->kind == DX_OBJECT ? type->class : NULL;
}

static const struct known_type *refuse_name(struct checker *checker, int column, const struct known_type *of,
					    const char *what, const struct text_nearest *nearest)
{
	const struct dx_class *class = of->record ? NULL : class_of(of);
	const char *answer = dx_foreign_name(of->kind, class, nearest->wanted);
	return complain(checker, column, "%s has no %s %s%s%s", of->record ? "the object" : type_name(of), what,
			nearest->wanted,
			answer          ? ": write "
			: nearest->best ? "; the nearest is "
					: "",
			answer          ? answer
			: nearest->best ? nearest->best
					: "");
}

/* ---- names and members ---- */

static bool has_member(const struct known_type *type, const char *name)
{
	const struct dx_class *class = type && !type->record ? class_of(type) : NULL;
	const struct dx_member *row = class ? class->members : NULL;
	while (row && row->name && strcasecmp(row->name, name) != 0)
		row++;
	return row && row->name;
}

/* Say what a name that nobody knows was meant to be. Return whether that is known. */
static bool refuse_unknown(struct checker *checker, const struct dx_node *node, const struct type_scope *scope)
{
	for (; scope; scope = scope->outer)
		if (has_member(scope->type, node->name)) {
			complain(checker, node->column, "%s is a member: write %s.%s", node->name, scope->name,
				 node->name);
			return true;
		}
	bool is_text = node == checker->text, is_member = has_member(checker->element, node->name);
	if (is_text)
		complain(checker, node->column, "a text stands in quotes: \"%s\"", node->name);
	else if (node->is_before_arrow)
		complain(checker, node->column, "a lambda has =>: %s => ...", node->name);
	else if (is_member)
		complain(checker, node->column, "%s is a member of each element: write x => ... x.%s ...", node->name,
			 node->name);
	return is_text || node->is_before_arrow || is_member;
}

static const struct known_type *check_name(struct checker *checker, const struct dx_node *node,
					   const struct type_scope *scope)
{
	const struct type_scope *inner = scope;
	struct text_nearest nearest;
	nearest = nearest_begin(node->name);
	for (; scope; scope = scope->outer) {
		if (!strcmp(scope->name, node->name))
			return scope->type;
		text_nearest_try(&nearest, scope->name);
	}
	if (!strcasecmp(node->name, "Debugger"))
		return type_of_kind(checker, DX_OBJECT, &dx_debugger_class);
	if (refuse_unknown(checker, node, inner))
		return &any;
	text_nearest_try(&nearest, "Debugger");
	for (const struct dx_builtin *row = dx_builtins; row->name; row++)
		if (!strcasecmp(row->name, node->name))
			return complain(checker, node->column, "there is no name %s; the nearest is @$%s", node->name,
					row->name);
	return complain(checker, node->column, "there is no name %s%s%s", node->name,
			nearest.best ? "; the nearest is " : "; queries begin with @$cursession or Debugger",
			nearest.best ? nearest.best : "");
}

static const struct known_type *check_variable(struct checker *checker, const struct dx_node *node)
{
	struct text_nearest nearest;
	nearest = nearest_begin(node->name);
	for (const struct dx_builtin *row = dx_builtins; row->name; row++) {
		if (!strcasecmp(row->name, node->name))
			return row->class ? type_of_kind(checker, DX_OBJECT, row->class) : &any;
		text_nearest_try(&nearest, row->name);
	}
	for (const struct dx_variable *at = checker->query->session->variables; at; at = at->next) {
		if (!strcmp(at->name, node->name))
			return type_of_value(checker, &at->value);
		text_nearest_try(&nearest, at->name);
	}
	/* Documented ones, of what traces lack. */
	static const char *const registers[] = {"rax", "rbx",    "rcx", "rdx",     "rsi",     "rdi",
						"rsp", "rbp",    "rip", "eax",     "ip",      "csp",
						"ra",  "retreg", "exp", "scopeip", "curstack"};
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		if (!strcasecmp(node->name, registers[i]))
			return complain(
				checker, node->column,
				"there is no @$%s: a trace has heap calls, each with its stack, and no registers",
				node->name);
	return complain(checker, node->column, "there is no variable @$%s%s%s", node->name,
			nearest.best ? "; the nearest is @$" : "; @$name = value makes one",
			nearest.best ? nearest.best : "");
}

static const struct known_type *check_field(struct checker *checker, const struct dx_node *node,
					    const struct known_type *object)
{
	struct text_nearest nearest;
	nearest = nearest_begin(node->name);
	for (uint32_t i = 0; i < object->record->count; i++) {
		if (!strcmp(object->record->names[i], node->name))
			return object->fields[i];
		text_nearest_try(&nearest, object->record->names[i]);
	}
	return refuse_name(checker, node->name_column, object, "member", &nearest);
}

static const struct dx_method *method_for(const struct known_type *type, const char *name)
{
	const struct dx_method *method = NULL;
	if (type->kind == DX_OBJECT)
		method = dx_method_find(DX_OF_CLASS, type->class, name);
	if (!method && type->kind != DX_ANY && has_elements(type))
		method = dx_method_find(DX_OF_SEQUENCE, NULL, name);
	if (!method && type->kind == DX_TEXT)
		method = dx_method_find(DX_OF_TEXT, NULL, name);
	if (!method && type->kind == DX_POSITION)
		method = dx_method_find(DX_OF_POSITION, NULL, name);
	return method ? method : dx_method_find(DX_OF_ANY, NULL, name);
}

static bool is_called(const struct dx_method *row, const struct known_type *receiver)
{
	return method_for(receiver, row->name) == row;
}

static void visit_names(struct checker *checker, const struct known_type *object)
{
	const struct dx_class *class = object->record ? NULL : class_of(object);
	for (uint32_t i = 0; object->record && i < object->record->count; i++)
		checker->visit(checker->context, object->record->names[i], false);
	for (const struct dx_member *row = class ? class->members : NULL; row && row->name; row++)
		if (!(row->flags & DX_MEMBER_HIDDEN))
			checker->visit(checker->context, row->name, false);
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *row = *table; row->name; row++)
			if (row->receiver != DX_OF_NOTHING && is_called(row, object))
				checker->visit(checker->context, row->name, true);
	if (object->key)
		checker->visit(checker->context, DX_NAME_KEY, false);
	checker->has_visited = true;
}

static const struct known_type *type_of_member(struct checker *checker, const struct dx_class *class,
					       const struct dx_member *member)
{
	if (member->type != DX_TEXT)
		return type_of_kind(checker, member->type, member->class);
	return type_new(checker, (struct known_type){.kind = DX_TEXT, .class = class, .words = member});
}

static const struct known_type *check_member(struct checker *checker, struct dx_node *node,
					     const struct type_scope *scope)
{
	const struct known_type *object = check(checker, node->first, scope);
	const struct dx_class *class = class_of(object);
	struct text_nearest nearest;
	if (object->kind == DX_ANY)
		return &any;
	if (checker->visit && !strcmp(node->name, DX_NAME_UNKNOWN)) {
		visit_names(checker, object);
		return &any;
	}
	if (object->record)
		return check_field(checker, node, object);
	if (object->key && !strcasecmp(node->name, DX_NAME_KEY))
		return object->key;
	/* A lambda is called when its collection is shown, and the limits are said before. */
	if (scope && class == &dx_process_class)
		checker->query->session->uses |= dx_limits_of_process_member(node->name);
	nearest = nearest_begin(node->name);
	for (const struct dx_member *row = class ? class->members : NULL; row && row->name; row++) {
		if (!strcasecmp(row->name, node->name))
			return type_of_member(checker, class, row);
		text_nearest_try(&nearest, row->name);
	}
	if (object->key)
		text_nearest_try(&nearest, DX_NAME_KEY);
	const struct dx_variable *variable =
		class == &dx_variables_class ? dx_session_find(checker->query->session, node->name) : NULL;
	if (variable)
		return type_of_value(checker, &variable->value);
	const struct dx_method *method = method_for(object, node->name);
	if (method && method->receiver == DX_OF_TEXT && !*method->arguments)
		return type_of_kind(checker, method->kind, NULL);
	if (method)
		return complain(checker, node->name_column, "%s is a method: write %s(%s)", method->name, method->name,
				method->shown_arguments);
	return refuse_name(checker, node->name_column, object, "member", &nearest);
}

/* ---- calls ---- */

static const struct known_type *refuse_method(struct checker *checker, const struct dx_node *node,
					      const struct known_type *receiver)
{
	struct text_nearest nearest;
	bool is_known = false;
	nearest = nearest_begin(node->name);
	for (const struct dx_method *const *table = dx_method_tables; *table; table++)
		for (const struct dx_method *row = *table; row->name; row++) {
			is_known |= !strcasecmp(row->name, node->name);
			if (receiver->kind == DX_ANY || is_called(row, receiver))
				text_nearest_try(&nearest, row->name);
		}
	/* A method of something: the evaluation knows what this is. */
	if (is_known && receiver->kind == DX_ANY)
		return &any;
	return refuse_name(checker, node->name_column, receiver, "method", &nearest);
}

/* Whether a value of the type can be an argument of the letter. */
static bool fits(const struct known_type *type, char letter)
{
	if (type->kind == DX_ANY)
		return true;
	switch (letter) {
	case 'f':
	case 'c':
	case 'o':
	case 'm':
	case 'g':
	case 'k':
		return type->kind == DX_LAMBDA;
	case 'n':
		return type->kind == DX_NUMBER;
	case 'd':
		return type->kind == DX_NUMBER || type->kind == DX_TEXT;
	case 't':
		return type->kind == DX_TEXT;
	case 'b':
		return type->kind == DX_BOOL || type->kind == DX_NUMBER;
	case 'p':
		return type->kind == DX_POSITION || type->kind == DX_TEXT || type->kind == DX_NUMBER ||
		       type->kind == DX_REAL;
	case 's':
	case 'q':
		return has_elements(type);
	default:
		return true;
	}
}

/* The lambda with its parameters' types: what it returns. */
static const struct known_type *check_lambda(struct checker *checker, struct dx_node *node,
					     const struct type_scope *scope, const struct known_type *one,
					     const struct known_type *other)
{
	const struct known_type *types[DX_PARAMETERS_MAX] = {one, other};
	struct type_scope scopes[DX_PARAMETERS_MAX];
	for (uint32_t i = 0; i < node->count; i++) {
		scopes[i] = (struct type_scope){scope, node->names[i], types[i]};
		scope = &scopes[i];
	}
	return check(checker, node->first, scope);
}

struct call_types {
	const struct known_type *receiver, *arguments[DX_ARGUMENTS_MAX], *last_lambda;
};

/* What has no truth is no condition. An object, or a position, is one: whether it is there. */
static void refuse_truth(struct checker *checker, int column, const struct known_type *type)
{
	if (type->kind == DX_TEXT)
		complain(checker, column,
			 "a text is neither true nor false: compare it, as in x.Action == \"Free\", or with null");
	else if (type->kind == DX_SEQUENCE || type->kind == DX_LAMBDA)
		complain(checker, column, "%s is neither true nor false%s", type_name(type),
			 type->kind == DX_SEQUENCE ? ": .Any() says whether it has elements" : "");
}

static void refuse_order(struct checker *checker, int column, const struct dx_method *method,
			 const struct known_type *type)
{
	bool is_record = type->kind == DX_OBJECT && type->class == &dx_record_class;
	bool has_order = is_record ? method->result != DX_RESULT_OF_LAMBDA
				   : type->kind != DX_OBJECT && type->kind != DX_SEQUENCE && type->kind != DX_LAMBDA;
	if (!has_order)
		complain(checker, column, "%s: %s has no order; one of its members may have one: %s(x => x.Member)",
			 method->name, type_name(type), method->name);
}

/* Whether what the lambda makes, or an element, is what the letter wants. */
static void check_made(struct checker *checker, int column, const struct dx_method *method, char letter,
		       const struct known_type *type)
{
	if (letter == 'c')
		refuse_truth(checker, column, type);
	else if (letter == 'o')
		refuse_order(checker, column, method, type);
	else if (letter == 'm' && type->kind != DX_ANY && !is_numeric(type))
		complain(checker, column, "%s: a sum is of numbers, not of %s", method->name, type_name(type));
}

/* What a comparator gets: keys, or elements. Those of a collection in the arguments may be others. */
static const struct known_type *compared_type(struct checker *checker, const struct dx_method *method,
					      const struct call_types *types)
{
	bool has_other = strchr("svqe", method->arguments[0]) != NULL;
	return has_other ? &any : types->last_lambda ? types->last_lambda : element_of(checker, types->receiver);
}

static bool is_negative(const struct dx_node *node)
{
	return node->kind == DX_NODE_UNARY && node->operation == DX_MINUS && node->first->kind == DX_NODE_LITERAL;
}

static const char *literal_text(const struct dx_node *node)
{
	return node->kind == DX_NODE_LITERAL && node->literal.kind == DX_TEXT ? node->literal.text : NULL;
}

/* Return the place of the '!' in image!function, or NULL. */
static const char *image_mark(const char *text)
{
	static const char before[] = "operator";
	const size_t length = sizeof(before) - 1;
	for (const char *at = text; (at = strchr(at, '!')); at++)
		if ((size_t)(at - text) < length || strncmp(at - length, before, length) != 0)
			return at;
	return NULL;
}

/* Say which words the member may have: the nearest one of them, or all, if these are few. */
static void refuse_word(struct checker *checker, int column, const struct dx_member *member,
			const struct dx_words *words, const char *text)
{
	char all[LISTED_BYTES];
	struct text_nearest nearest;
	nearest = nearest_begin(text);
	if (!words->are_of_trace)
		nearest.least = NEAR;
	for (size_t i = 0; i < words->count; i++)
		text_nearest_try(&nearest, words->words[i]);
	/* "delete" is a part of "operator delete". */
	for (size_t i = words->count; i-- > 0 && words->are_of_trace;)
		if (strcasestr(words->words[i], text))
			nearest.best = words->words[i];
	text_join(all, sizeof(all), words->words, words->are_of_trace ? 0 : words->count);
	const char *answer = dx_foreign_text(words->words, words->count, text);
	if (answer)
		complain(checker, column, "%s is never \"%s\": %s", member->name, text, answer);
	else if (nearest.best)
		complain(checker, column, "%s is never \"%s\"%s; the nearest is \"%s\"", member->name, text,
			 words->are_of_trace ? " in this trace" : "", nearest.best);
	else
		complain(checker, column, "%s is never \"%s\"%s%s", member->name, text,
			 words->are_of_trace ? " in this trace" : ": it is one of ", all);
}

/* A comparison with a text that the member never has: its answer would always be the same. */
static void check_words(struct checker *checker, const struct known_type *type, const struct dx_node *other)
{
	const char *text = literal_text(other);
	if (!type->words || !text)
		return;
	const struct dx_words words = dx_member_words(checker->query, type->class, type->words);
	const char *mark = image_mark(text);
	if (!words.count && mark && type->class == &dx_frame_class && !strcmp(type->words->name, "Function"))
		complain(checker, other->column,
			 "Function is without an image: Function == \"%s\" && Image.StartsWith(\"%.*s\")", mark + 1,
			 (int)(mark - text), text);
	for (size_t i = 0; i < words.count; i++)
		if (!strcmp(words.words[i], text))
			return;
	if (words.count)
		refuse_word(checker, other->column, type->words, &words, text);
}

/* Whether h.Action.Contains("alloc") and its like are true for no word of the member. */
static void check_text_call(struct checker *checker, const struct dx_node *node, const struct dx_method *method,
			    const struct known_type *receiver)
{
	char all[LISTED_BYTES];
	const char *text = node->count == 1 ? literal_text(node->children[0]) : NULL;
	if (!receiver->words || !text || method->receiver != DX_OF_TEXT || method->kind != DX_BOOL)
		return;
	const struct dx_words words = dx_member_words(checker->query, receiver->class, receiver->words);
	for (size_t i = 0; i < words.count; i++) {
		struct dx_method_call call = {.method = method,
					      .receiver = dx_text(words.words[i]),
					      .arguments = {dx_text(text)},
					      .count = 1};
		struct dx_value answer;
		dx_method_call(checker->query, &call, &answer);
		if (words.are_of_trace || dx_is_true(&answer))
			return;
	}
	text_join(all, sizeof(all), words.words, words.count);
	if (words.count)
		complain(checker, node->name_column, "%s(\"%s\") is never true: %s is one of %s", method->name, text,
			 receiver->words->name, all);
}

/* Whether values of the types can be equal. */
static bool are_alike(const struct known_type *one, const struct known_type *other)
{
	if (one->kind == DX_ANY || other->kind == DX_ANY || (is_numeric(one) && is_numeric(other)))
		return true;
	return one->kind == other->kind && (one->kind != DX_OBJECT || one->class == other->class);
}

/* The member that people mean by a value of this type: Id, which is what the system calls it, else the first one. */
static const struct dx_member *member_to_compare(const struct dx_class *class, enum dx_kind kind)
{
	const struct dx_member *found = NULL;
	for (const struct dx_member *row = class ? class->members : NULL; row && row->name; row++) {
		if (row->type != kind || row->flags & DX_MEMBER_HIDDEN || kind == DX_OBJECT)
			continue;
		if (!found || !strcmp(row->name, "Id"))
			found = row;
	}
	return found;
}

/* Say why the comparison makes no sense, and which member has the other one's type. `text` is of a literal, or NULL. */
static void refuse_comparison(struct checker *checker, int column, const struct known_type *one,
			      const struct known_type *other, const char *text)
{
	const struct known_type *object = class_of(one) ? one : other, *value = object == one ? other : one;
	uint64_t size;
	int64_t time_ns;
	if (object->kind == DX_POSITION && (is_numeric(value) || value->kind == DX_TEXT))
		complain(checker, column,
			 "a position and %s cannot be compared: a time is 10ms, a position is \"1770:1\", and its "
			 "nanoseconds are .Sequence",
			 type_name(value));
	else if (text && is_numeric(one->kind == DX_TEXT ? other : one) &&
		 (text_parse_size(text, &size) || text_parse_time(text, &time_ns)))
		complain(checker, column, "a number and a text cannot be compared: write %s without quotes", text);
	const struct dx_member *row = member_to_compare(class_of(object), value->kind);
	complain(checker, column, "%s and %s cannot be compared%s%s", type_name(one), type_name(other),
		 row ? ": compare a member, as ." : "", row ? row->name : "");
}

/* What is equal to no element would be found in no collection. */
static void check_compared(struct checker *checker, const struct dx_node *call, const struct dx_method *method,
			   const struct call_types *types)
{
	char letter = dx_method_letter(method, 0);
	if ((letter != 'e' && letter != 'q') || call->count != 1 || !types->arguments[0])
		return;
	const struct known_type *element = element_of(checker, types->receiver),
				*other = letter == 'q' ? element_of(checker, types->arguments[0]) : types->arguments[0];
	if (!are_alike(element, other))
		refuse_comparison(checker, call->children[0]->column, element, other, literal_text(call->children[0]));
	else if (letter == 'e')
		check_words(checker, element, call->children[0]);
}

static void check_argument(struct checker *checker, const struct dx_method *method, struct dx_node *argument,
			   unsigned number, const struct type_scope *scope, struct call_types *types)
{
	static const char one_parameter[] = "a lambda of one parameter, x => ...";
	static const char *const wanted[128] = {['f'] = one_parameter,
						['c'] = one_parameter,
						['o'] = one_parameter,
						['m'] = one_parameter,
						['k'] = one_parameter,
						['g'] = "a lambda of two parameters, (a, b) => ...",
						['n'] = "a whole number from 0 on",
						['d'] = "a time from 0 on, as 10us",
						['t'] = "a text",
						['b'] = "true or false",
						['p'] = "a position",
						['s'] = "a collection",
						['q'] = "a collection"};
	char letter = dx_method_letter(method, number);
	bool is_lambda = argument->kind == DX_NODE_LAMBDA, is_of_element = dx_letter_is_of_element(letter);
	bool is_result = method->result == DX_RESULT_LAMBDA && letter == 'g';
	const struct known_type *element = element_of(checker, types->receiver), *type;
	if (is_lambda && (is_of_element || letter == 'k' || letter == 'g')) {
		if (argument->count != (letter == 'g' ? 2 : 1)) {
			complain(checker, argument->column, "%s: argument %u must be %s", method->name, number + 1,
				 wanted[(unsigned char)letter]);
			return;
		}
		const struct known_type *of_argument =
			types->arguments[0] ? element_of(checker, types->arguments[0]) : &any;
		const struct known_type *one = letter == 'k'                ? of_argument
					       : is_of_element || is_result ? element
									    : compared_type(checker, method, types);
		type = check_lambda(checker, argument, scope, one, is_result ? of_argument : one);
		/* The comparator behind Join's result is not what the elements are. */
		if (is_of_element || (is_result && number < 4))
			types->last_lambda = type;
		check_made(checker, argument->first->column, method, letter, type);
		return;
	}
	const struct known_type *outer = checker->element;
	if (is_of_element)
		checker->element = element;
	type = check(checker, argument, scope);
	checker->element = outer;
	types->arguments[number] = type;
	bool is_number_out = ((letter == 'n' || letter == 'd') && is_negative(argument)) ||
			     (letter == 'b' && argument->kind == DX_NODE_LITERAL &&
			      argument->literal.kind == DX_NUMBER && argument->literal.number > 1);
	if (is_number_out)
		complain(checker, argument->column, "%s: argument %u must be %s", method->name, number + 1,
			 wanted[(unsigned char)letter]);
	else if (!fits(type, letter))
		complain(checker, argument->column, "%s: argument %u must be %s, not %s", method->name, number + 1,
			 wanted[(unsigned char)letter] ? wanted[(unsigned char)letter] : "a value", type_name(type));
}

static const struct known_type *sequence_of(struct checker *checker, const struct known_type *element)
{
	return type_new(checker, (struct known_type){.kind = DX_SEQUENCE, .element = element});
}

static const struct known_type *result_of(struct checker *checker, const struct dx_method *method,
					  const struct call_types *types)
{
	const struct known_type *element = element_of(checker, types->receiver);
	switch (method->result) {
	case DX_RESULT_SAME:
		return sequence_of(checker, element);
	case DX_RESULT_ELEMENT:
		return element;
	case DX_RESULT_LAMBDA:
		return sequence_of(checker, types->last_lambda ? types->last_lambda : &any);
	case DX_RESULT_GROUPS:
		return sequence_of(
			checker,
			type_new(checker, (struct known_type){.kind = DX_SEQUENCE,
							      .element = element,
							      .key = types->last_lambda ? types->last_lambda : &any}));
	case DX_RESULT_FLAT:
		element = types->last_lambda ? types->last_lambda : element;
		return sequence_of(checker, element->kind == DX_SEQUENCE ? element_of(checker, element) : &any);
	case DX_RESULT_OF_LAMBDA:
		return types->last_lambda ? types->last_lambda : element;
	case DX_RESULT_PASSES:
		return types->last_lambda ? type_of_kind(checker, DX_BOOL, NULL) : sequence_of(checker, element);
	default:
		return type_of_kind(checker, method->kind, method->result_class);
	}
}

static void check_children(struct checker *checker, struct dx_node *node, const struct type_scope *scope)
{
	for (uint32_t i = 0; i < node->count; i++)
		check(checker, node->children[i], scope);
}

static const struct known_type *refuse_count(struct checker *checker, const struct dx_node *node, uint32_t wanted)
{
	return complain(checker, node->name_column, "the lambda takes %u argument%s, not %u", wanted,
			wanted == 1 ? "" : "s", node->count);
}

/* f(1), if f is no variable. */
static const struct known_type *check_application(struct checker *checker, struct dx_node *node,
						  const struct type_scope *scope)
{
	struct dx_node *lambda = node->first;
	const struct known_type *types[DX_PARAMETERS_MAX] = {&any, &any};
	if (lambda->kind == DX_NODE_LAMBDA && lambda->count != node->count)
		return refuse_count(checker, node, lambda->count);
	if (lambda->kind == DX_NODE_LAMBDA) {
		for (uint32_t i = 0; i < node->count; i++)
			types[i] = check(checker, node->children[i], scope);
		return check_lambda(checker, lambda, scope, types[0], types[1]);
	}
	const struct known_type *type = check(checker, lambda, scope);
	check_children(checker, node, scope);
	if (type->kind != DX_ANY && type->kind != DX_LAMBDA)
		return complain(checker, node->name_column, "only a lambda can be called, not %s", type_name(type));
	return &any;
}

/* @$f(1), where @$f is no function of the language. */
static const struct known_type *check_variable_call(struct checker *checker, struct dx_node *node,
						    const struct type_scope *scope)
{
	const struct dx_variable *variable = dx_session_find(checker->query->session, node->name);
	if (variable && variable->value.kind == DX_LAMBDA && variable->value.closure->node->count != node->count)
		return refuse_count(checker, node, variable->value.closure->node->count);
	if (variable && variable->value.kind != DX_LAMBDA && variable->value.kind != DX_ERROR)
		return complain(checker, node->column, "only a lambda can be called, not %s",
				dx_kind_name(variable->value.kind));
	if (variable) {
		check_children(checker, node, scope);
		return &any;
	}
	return complain(checker, node->column,
			"there is no function or variable @$%s; functions are @$create and @$position", node->name);
}

static const struct known_type *check_call(struct checker *checker, struct dx_node *node,
					   const struct type_scope *scope)
{
	struct call_types types = {.receiver = node->first ? check(checker, node->first, scope) : &any};
	unsigned least, most;
	if (scope && node->first)
		checker->query->session->uses |= dx_limits_of_method(node->name, node->count);
	const struct dx_method *method =
		node->first ? method_for(types.receiver, node->name) : dx_method_find(DX_OF_NOTHING, NULL, node->name);
	if (checker->has_failed)
		return &any;
	if (!method && !node->first)
		return check_variable_call(checker, node, scope);
	if (!method && refuse_method(checker, node, types.receiver) && checker->has_failed)
		return &any;
	if (!method) {
		/* Lambdas are checked with parameters of any type. */
		for (uint32_t i = 0; i < node->count; i++)
			if (node->children[i]->kind == DX_NODE_LAMBDA)
				check_lambda(checker, node->children[i], scope, &any, &any);
			else
				check(checker, node->children[i], scope);
		return &any;
	}
	dx_method_arity(method, &least, &most);
	/* A call whose arguments are still to be written. */
	bool is_begun = checker->visit && node->count <= DX_ARGUMENTS_MAX;
	if (!is_begun && (node->count < least || node->count > most))
		return complain(checker, node->name_column, "%s takes (%s), not %u argument%s", method->name,
				method->shown_arguments, node->count, node->count == 1 ? "" : "s");
	for (uint32_t i = 0; i < node->count && !checker->has_failed; i++)
		check_argument(checker, method, node->children[i], i, scope, &types);
	check_compared(checker, node, method, &types);
	check_text_call(checker, node, method, types.receiver);
	/* Without a lambda, it is of the elements themselves; a condition is then of no one. */
	if (!node->count && !is_begun && dx_method_letter(method, 0) != 'c')
		check_made(checker, node->name_column, method, dx_method_letter(method, 0),
			   element_of(checker, types.receiver));
	return checker->has_failed ? &any : result_of(checker, method, &types);
}

/* ---- operators ---- */

/* h.TimeStart < 10ms compares nanoseconds: a position's with those of the literal. h.TimeStart < "1770:1" compares two
   positions. Return the type that the position's side has then. */
static const struct known_type *check_time(struct checker *checker, struct dx_node **position, struct dx_node *literal,
					   const struct known_type **type)
{
	static const struct known_type of_position = {.kind = DX_POSITION}, of_number = {.kind = DX_NUMBER};
	const char *text = literal_text(literal);
	int64_t time_ns = (int64_t)literal->literal.number;
	bool is_time = literal->kind == DX_NODE_LITERAL && literal->literal.is_time;
	if (text && dx_position_parse(text, &literal->literal)) {
		*type = &of_position;
		return &of_position;
	}
	if (!is_time && !(text && text_parse_time(text, &time_ns)))
		return &of_position;
	struct dx_node *member = dx_new(&checker->query->whole, struct dx_node, 1);
	*member = (struct dx_node){.kind = DX_NODE_MEMBER,
				   .column = (*position)->column,
				   .name_column = (*position)->column,
				   .height = (uint16_t)((*position)->height + 1),
				   .name = "Sequence",
				   .first = *position};
	*position = member;
	literal->literal = dx_decimal((uint64_t)time_ns);
	*type = &of_number;
	return &of_number;
}

static const struct known_type *check_binary(struct checker *checker, struct dx_node *node,
					     const struct type_scope *scope)
{
	const struct known_type *one = check(checker, node->first, scope);
	checker->text = one->kind == DX_TEXT ? node->second : NULL;
	const struct known_type *other = check(checker, node->second, scope);
	if (node->operation >= DX_LESS && node->operation <= DX_UNEQUAL && one->kind == DX_POSITION)
		one = check_time(checker, &node->first, node->second, &other);
	else if (node->operation >= DX_LESS && node->operation <= DX_UNEQUAL && other->kind == DX_POSITION)
		other = check_time(checker, &node->second, node->first, &one);
	bool is_known = one->kind != DX_ANY && other->kind != DX_ANY;
	bool is_order = node->operation >= DX_LESS && node->operation <= DX_UNEQUAL;
	if (node->operation == DX_AND || node->operation == DX_OR) {
		refuse_truth(checker, node->first->column, one);
		refuse_truth(checker, node->second->column, other);
		return type_of_kind(checker, DX_BOOL, NULL);
	}
	if (node->operation <= DX_GREATER_EQUAL && is_order && (one->kind == DX_BOOL || other->kind == DX_BOOL))
		return complain(checker, node->column,
				"true and false have no order; a < x < b is written a < x && x < b");
	if (is_order) {
		const char *text = one->kind == DX_TEXT ? literal_text(node->first) : literal_text(node->second);
		if (!are_alike(one, other))
			refuse_comparison(checker, node->column, one, other, text);
		check_words(checker, one, node->second);
		check_words(checker, other, node->first);
		return type_of_kind(checker, DX_BOOL, NULL);
	}
	if (node->operation == DX_ADD && (one->kind == DX_TEXT || other->kind == DX_TEXT))
		return type_of_kind(checker, DX_TEXT, NULL);
	const struct known_type *wrong = one->kind != DX_ANY && !is_numeric(one)       ? one
					 : other->kind != DX_ANY && !is_numeric(other) ? other
										       : NULL;
	if (wrong)
		return complain(checker, node->column, "this operator is for numbers, not for %s%s", type_name(wrong),
				wrong->kind == DX_POSITION ? "; its number is .Sequence" : "");
	return is_known ? type_of_kind(checker, one->kind == DX_REAL || other->kind == DX_REAL ? DX_REAL : DX_NUMBER,
				       NULL)
			: &any;
}

static const struct known_type *check_unary(struct checker *checker, struct dx_node *node,
					    const struct type_scope *scope)
{
	const struct known_type *type = check(checker, node->first, scope);
	if (node->operation == DX_NOT) {
		refuse_truth(checker, node->first->column, type);
		return type_of_kind(checker, DX_BOOL, NULL);
	}
	if (type->kind != DX_ANY && !is_numeric(type))
		return complain(checker, node->column, "this operator is for numbers, not for %s", type_name(type));
	return type;
}

static const struct known_type *check_index(struct checker *checker, struct dx_node *node,
					    const struct type_scope *scope)
{
	const struct known_type *object = check(checker, node->first, scope);
	check(checker, node->second, scope);
	if (object->kind == DX_TEXT && node->first->kind == DX_NODE_MEMBER && dx_name_of_parts(node->first->name))
		return type_of_kind(checker, DX_OBJECT, &dx_frame_class);
	if (!has_elements(object))
		return complain(checker, node->name_column, "%s has no elements", type_name(object));
	return element_of(checker, object);
}

static const struct known_type *check_record(struct checker *checker, struct dx_node *node,
					     const struct type_scope *scope)
{
	const struct known_type **fields = dx_new(&checker->query->whole, const struct known_type *, node->count + 1);
	for (uint32_t i = 0; i < node->count; i++)
		fields[i] = check(checker, node->children[i], scope);
	return type_new(
		checker,
		(struct known_type){.kind = DX_OBJECT, .class = &dx_record_class, .record = node, .fields = fields});
}

static const struct known_type *check_assignment(struct checker *checker, struct dx_node *node,
						 const struct type_scope *scope)
{
	for (const struct dx_builtin *row = dx_builtins; row->name; row++)
		if (!strcasecmp(row->name, node->name))
			return complain(checker, node->column, "@$%s is always there: a variable needs another name",
					row->name);
	return check(checker, node->first, scope);
}

static const struct known_type *check(struct checker *checker, struct dx_node *node, const struct type_scope *scope)
{
	if (checker->has_failed)
		return &any;
	switch ((enum dx_node_kind)node->kind) {
	case DX_NODE_LITERAL:
		return type_of_value(checker, &node->literal);
	case DX_NODE_NAME:
		return check_name(checker, node, scope);
	case DX_NODE_VARIABLE:
		return check_variable(checker, node);
	case DX_NODE_MEMBER:
		return check_member(checker, node, scope);
	case DX_NODE_CALL:
		return check_call(checker, node, scope);
	case DX_NODE_APPLY:
		return check_application(checker, node, scope);
	case DX_NODE_INDEX:
		return check_index(checker, node, scope);
	case DX_NODE_UNARY:
		return check_unary(checker, node, scope);
	case DX_NODE_BINARY:
		return check_binary(checker, node, scope);
	case DX_NODE_CONDITIONAL:
		refuse_truth(checker, node->first->column, check(checker, node->first, scope));
		check(checker, node->third, scope);
		check(checker, node->second, scope);
		return &any;
	case DX_NODE_LAMBDA:
		check_lambda(checker, node, scope, &any, &any);
		return type_of_kind(checker, DX_LAMBDA, NULL);
	case DX_NODE_RECORD:
		return check_record(checker, node, scope);
	case DX_NODE_ASSIGN:
		return check_assignment(checker, node, scope);
	}
	return &any;
}

bool dx_check(struct dx_query *query, struct dx_node *node, struct dx_complaint *complaint)
{
	struct checker checker = {.query = query, .complaint = complaint};
	*complaint = (struct dx_complaint){.column = 0};
	check(&checker, node, NULL);
	return !checker.has_failed;
}

bool dx_check_names(struct dx_query *query, struct dx_node *node, dx_name_visit *visit, void *context)
{
	struct dx_complaint complaint = {.column = 0};
	struct checker checker = {.query = query, .complaint = &complaint, .visit = visit, .context = context};
	check(&checker, node, NULL);
	return checker.has_visited;
}
