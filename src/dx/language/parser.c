/* SPDX-License-Identifier: MIT */
/* By precedence, as C++ has it; from a table of binary operators. */
#include "dx/language/parser.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dx/language/lexer.h"

/* HEIGHT_MAX bounds what goes down the tree after the parser: more levels than that are never evaluated. */
enum { DEPTH_MAX = 200, HEIGHT_MAX = DX_DEPTH_MAX, CHILDREN_MAX = 64 };

struct parser {
	struct dx_lexer lexer;
	struct dx_token token; /* the next one */
	struct dx_complaint *complaint;
	unsigned depth;
	bool has_failed;
};

static const struct {
	const char *sign;
	uint8_t precedence, operation;
} binaries[] = {
	{"||", 1, DX_OR},          {"&&", 2, DX_AND},        {"|", 3, DX_BIT_OR},         {"^", 4, DX_BIT_XOR},
	{"&", 5, DX_BIT_AND},      {"==", 6, DX_EQUAL},      {"!=", 6, DX_UNEQUAL},       {"<", 7, DX_LESS},
	{">", 7, DX_GREATER},      {"<=", 7, DX_LESS_EQUAL}, {">=", 7, DX_GREATER_EQUAL}, {"<<", 8, DX_SHIFT_LEFT},
	{">>", 8, DX_SHIFT_RIGHT}, {"+", 9, DX_ADD},         {"-", 9, DX_SUBTRACT},       {"*", 10, DX_MULTIPLY},
	{"/", 10, DX_DIVIDE},      {"%", 10, DX_REMAINDER},
};

static struct dx_node *parse_expression(struct parser *parser);

/* What people write who know other languages, and what it is here. */
static const struct {
	const char *word, *answer;
} foreign_words[] = {
	{"=", "== compares; = is for a variable, @$name = value, and for a field of new { }"},
	{"and", "&& joins two conditions"},
	{"or", "|| joins two conditions"},
};

static const char *foreign_answer(const struct parser *parser, const char *why)
{
	const struct dx_token *token = &parser->token;
	bool is_word = token->kind == DX_TOKEN_SIGN || token->kind == DX_TOKEN_NAME;
	for (size_t i = 0; is_word && i < sizeof(foreign_words) / sizeof(foreign_words[0]); i++)
		if (!strcmp(token->text, foreign_words[i].word))
			return foreign_words[i].answer;
	return why;
}

static void fail(struct parser *parser, int column, const char *why)
{
	if (parser->has_failed)
		return;
	if (parser->token.column == column)
		why = foreign_answer(parser, why);
	parser->has_failed = true;
	parser->complaint->column = column;
	diag_fail(&parser->complaint->diag, EINVAL, "%s", why);
}

static void advance(struct parser *parser)
{
	if (parser->has_failed)
		return;
	if (dx_lex(&parser->lexer, &parser->token, &parser->complaint->diag)) {
		parser->has_failed = true;
		parser->complaint->column = parser->token.column;
		parser->token.kind = DX_TOKEN_END;
	}
}

static bool is_sign(const struct parser *parser, const char *sign)
{
	return !parser->has_failed && parser->token.kind == DX_TOKEN_SIGN && !strcmp(parser->token.text, sign);
}

static bool accept(struct parser *parser, const char *sign)
{
	bool is_it = is_sign(parser, sign);
	if (is_it)
		advance(parser);
	return is_it;
}

static void expect(struct parser *parser, const char *sign)
{
	char why[64];
	snprintf(why, sizeof(why), "'%s' is missing", sign);
	if (!accept(parser, sign))
		fail(parser, parser->token.column, why);
}

static struct dx_node *node_new(struct parser *parser, enum dx_node_kind kind, int column)
{
	struct dx_node *node = dx_new(parser->lexer.arena, struct dx_node, 1);
	node->kind = kind;
	node->column = node->name_column = column;
	node->height = 1;
	return node;
}

static unsigned height_of(const struct dx_node *node)
{
	return node ? node->height : 0;
}

/* The node, now that all below it stands. A chain is as high as it is long, so its links add to the depth. */
static struct dx_node *node_finish(struct parser *parser, struct dx_node *node)
{
	const struct dx_node *const parts[] = {node->first, node->second, node->third};
	unsigned height = 0;
	if (parser->has_failed)
		return node;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		height = height_of(parts[i]) > height ? height_of(parts[i]) : height;
	for (uint32_t i = 0; node->children && i < node->count; i++)
		height = height_of(node->children[i]) > height ? height_of(node->children[i]) : height;
	if (height >= HEIGHT_MAX)
		fail(parser, node->name_column, "the expression is nested too deep");
	node->height = (uint16_t)(height + 1);
	return node;
}

/* ---- lists ---- */

struct children {
	struct dx_node *nodes[CHILDREN_MAX];
	const char *names[CHILDREN_MAX];
	uint32_t count;
};

static void children_add(struct parser *parser, struct children *children, const char *name, struct dx_node *node)
{
	if (children->count == CHILDREN_MAX) {
		fail(parser, parser->token.column, "there are more than 64 of these");
		return;
	}
	children->names[children->count] = name;
	children->nodes[children->count++] = node;
}

static void children_store(struct parser *parser, struct dx_node *node, const struct children *children)
{
	node->count = children->count;
	node->children = dx_new(parser->lexer.arena, struct dx_node *, children->count + 1);
	node->names = dx_new(parser->lexer.arena, const char *, children->count + 1);
	memcpy(node->children, children->nodes, children->count * sizeof(*node->children));
	memcpy(node->names, children->names, children->count * sizeof(*node->names));
}

static void parse_arguments(struct parser *parser, struct dx_node *call)
{
	struct children children = {.count = 0};
	if (!is_sign(parser, ")"))
		do
			children_add(parser, &children, NULL, parse_expression(parser));
		while (accept(parser, ",") && !parser->has_failed);
	expect(parser, ")");
	children_store(parser, call, &children);
}

/* "name = value", or a value that is a member or a name, which gives the name. */
static void parse_field(struct parser *parser, struct children *children)
{
	int column = parser->token.column;
	struct dx_node *node = parse_expression(parser);
	if (parser->has_failed)
		return;
	const char *name = node->kind == DX_NODE_MEMBER || node->kind == DX_NODE_NAME ? node->name : NULL;
	if (node->kind == DX_NODE_NAME && accept(parser, "="))
		node = parse_expression(parser);
	else if (!name)
		fail(parser, column, "a field needs a name: new { Name = value }");
	children_add(parser, children, name, node);
}

static struct dx_node *parse_record(struct parser *parser, int column)
{
	struct dx_node *node = node_new(parser, DX_NODE_RECORD, column);
	struct children children = {.count = 0};
	expect(parser, "{");
	if (!is_sign(parser, "}"))
		do
			parse_field(parser, &children);
		while (accept(parser, ",") && !parser->has_failed && !is_sign(parser, "}"));
	expect(parser, "}");
	children_store(parser, node, &children);
	return node_finish(parser, node);
}

/* ---- lambdas ---- */

static struct dx_node *parse_lambda(struct parser *parser, int column, const char *const *names, uint32_t count)
{
	struct dx_node *node = node_new(parser, DX_NODE_LAMBDA, column);
	node->count = count;
	node->names = dx_new(parser->lexer.arena, const char *, DX_PARAMETERS_MAX);
	memcpy(node->names, names, count * sizeof(*names));
	node->first = parse_expression(parser);
	return node_finish(parser, node);
}

/* The names of "(a, b) =>", or none of "() =>", if that is what stands here; otherwise nothing is read. */
static uint32_t parse_parameters(struct parser *parser, const char *names[DX_PARAMETERS_MAX], bool *are_parameters)
{
	struct parser saved = *parser;
	struct dx_complaint ignored = {.column = 0};
	uint32_t count = 0;
	parser->complaint = &ignored;
	bool has_none = is_sign(parser, ")");
	while (parser->token.kind == DX_TOKEN_NAME && count < DX_PARAMETERS_MAX && !parser->has_failed) {
		names[count++] = parser->token.text;
		advance(parser);
		if (!accept(parser, ","))
			break;
	}
	if ((count || has_none) && accept(parser, ")") && accept(parser, "=>") && !parser->has_failed) {
		parser->complaint = saved.complaint;
		*are_parameters = true;
		return count;
	}
	*parser = saved;
	*are_parameters = false;
	return 0;
}

static struct dx_node *parse_parenthesis(struct parser *parser, int column)
{
	const char *names[DX_PARAMETERS_MAX];
	bool are_parameters;
	uint32_t count = parse_parameters(parser, names, &are_parameters);
	if (are_parameters)
		return parse_lambda(parser, column, names, count);
	struct dx_node *node = parse_expression(parser);
	expect(parser, ")");
	return node;
}

/* ---- values ---- */

static struct dx_node *literal_new(struct parser *parser, int column, struct dx_value value)
{
	struct dx_node *node = node_new(parser, DX_NODE_LITERAL, column);
	node->literal = value;
	return node;
}

static struct dx_node *parse_name(struct parser *parser, const struct dx_token *token)
{
	if (!strcmp(token->text, "new"))
		return parse_record(parser, token->column);
	if (!strcmp(token->text, "true") || !strcmp(token->text, "false"))
		return literal_new(parser, token->column, dx_bool(token->text[0] == 't'));
	if (accept(parser, "=>"))
		return parse_lambda(parser, token->column, &token->text, 1);
	if (!strcmp(token->text, "null"))
		return literal_new(parser, token->column, (struct dx_value){.kind = DX_ABSENT});
	struct dx_node *node = node_new(parser, DX_NODE_NAME, token->column);
	node->name = token->text;
	return node;
}

static struct dx_node *parse_variable(struct parser *parser, const struct dx_token *token)
{
	struct dx_node *node = node_new(parser, DX_NODE_VARIABLE, token->column);
	node->name = token->text;
	if (accept(parser, "(")) {
		node->kind = DX_NODE_CALL;
		parse_arguments(parser, node);
	}
	return node_finish(parser, node);
}

static struct dx_node *parse_primary(struct parser *parser)
{
	struct dx_token token = parser->token;
	advance(parser);
	switch (token.kind) {
	case DX_TOKEN_NUMBER:
		return literal_new(parser, token.column, token.number);
	case DX_TOKEN_TEXT:
		return literal_new(parser, token.column, dx_text(token.text));
	case DX_TOKEN_VARIABLE:
		return parse_variable(parser, &token);
	case DX_TOKEN_NAME:
		return parse_name(parser, &token);
	case DX_TOKEN_SIGN:
		if (!strcmp(token.text, "("))
			return parse_parenthesis(parser, token.column);
		break;
	default:
		break;
	}
	fail(parser, token.column,
	     token.kind == DX_TOKEN_END ? "the expression is not complete" : "a value is missing before this");
	return literal_new(parser, token.column, dx_bool(false));
}

static struct dx_node *parse_postfix(struct parser *parser)
{
	struct dx_node *node = parse_primary(parser);
	unsigned length = 0;
	while (!parser->has_failed) {
		int column = parser->token.column;
		if (++length > DEPTH_MAX) {
			fail(parser, column, "the chain of calls is too long");
		} else if (accept(parser, ".") || accept(parser, "->")) {
			struct dx_node *member = node_new(parser, DX_NODE_MEMBER, node->column);
			member->first = node;
			member->name = parser->token.text;
			member->name_column = parser->token.column;
			if (parser->token.kind != DX_TOKEN_NAME && parser->token.kind != DX_TOKEN_ODD_NAME)
				fail(parser, parser->token.column, "a member's name is missing behind the dot");
			advance(parser);
			if (accept(parser, "(")) {
				member->kind = DX_NODE_CALL;
				parse_arguments(parser, member);
			}
			node = node_finish(parser, member);
		} else if (accept(parser, "(")) {
			struct dx_node *application = node_new(parser, DX_NODE_APPLY, node->column);
			application->name_column = column;
			application->first = node;
			parse_arguments(parser, application);
			node = node_finish(parser, application);
		} else if (accept(parser, "[")) {
			struct dx_node *index = node_new(parser, DX_NODE_INDEX, node->column);
			index->name_column = column;
			index->first = node;
			index->second = parse_expression(parser);
			expect(parser, "]");
			node = node_finish(parser, index);
		} else {
			break;
		}
	}
	return node;
}

static struct dx_node *parse_unary(struct parser *parser)
{
	static const struct {
		const char *sign;
		uint8_t operation;
	} unaries[] = {{"!", DX_NOT}, {"-", DX_MINUS}, {"+", DX_PLUS}, {"~", DX_COMPLEMENT}};
	int column = parser->token.column;
	for (size_t i = 0; i < sizeof(unaries) / sizeof(unaries[0]); i++)
		if (accept(parser, unaries[i].sign)) {
			struct dx_node *node = node_new(parser, DX_NODE_UNARY, column);
			node->operation = unaries[i].operation;
			if (++parser->depth > DEPTH_MAX)
				fail(parser, column, "the expression is nested too deep");
			node->first = parser->has_failed ? node : parse_unary(parser);
			parser->depth--;
			return node_finish(parser, node);
		}
	return parse_postfix(parser);
}

static struct dx_node *parse_binary(struct parser *parser, unsigned least)
{
	struct dx_node *left = parse_unary(parser);
	unsigned length = 0;
	for (size_t i = 0; i < sizeof(binaries) / sizeof(binaries[0]) && !parser->has_failed;) {
		int column = parser->token.column;
		if (binaries[i].precedence < least || !accept(parser, binaries[i].sign)) {
			i++;
			continue;
		}
		if (++length > DEPTH_MAX)
			fail(parser, column, "the expression is too long");
		struct dx_node *node = node_new(parser, DX_NODE_BINARY, column);
		node->operation = binaries[i].operation;
		node->first = left;
		node->second = parse_binary(parser, binaries[i].precedence + 1u);
		left = node_finish(parser, node);
		i = 0;
	}
	return left;
}

static struct dx_node *parse_ternary(struct parser *parser)
{
	struct dx_node *condition = parse_binary(parser, 0);
	int column = parser->token.column;
	if (!accept(parser, "?"))
		return condition;
	struct dx_node *node = node_new(parser, DX_NODE_CONDITIONAL, column);
	node->first = condition;
	node->second = parse_expression(parser);
	expect(parser, ":");
	node->third = parse_expression(parser);
	return node_finish(parser, node);
}

static struct dx_node *parse_expression(struct parser *parser)
{
	struct dx_node *node;
	if (++parser->depth > DEPTH_MAX)
		fail(parser, parser->token.column, "the expression is nested too deep");
	if (parser->has_failed)
		node = literal_new(parser, 0, dx_bool(false));
	else
		node = parse_ternary(parser);
	if (node->kind == DX_NODE_VARIABLE && accept(parser, "=")) {
		struct dx_node *assignment = node_new(parser, DX_NODE_ASSIGN, node->column);
		assignment->name = node->name;
		assignment->first = parse_expression(parser);
		node = node_finish(parser, assignment);
	}
	parser->depth--;
	return node;
}

struct dx_node *dx_parse(struct dx_arena *arena, const char *text, const char **rest, struct dx_complaint *complaint)
{
	struct parser parser = {.lexer = {.text = text, .arena = arena}, .complaint = complaint};
	*complaint = (struct dx_complaint){.column = 0};
	if (strnlen(text, DX_TEXT_BYTES_MAX + 1) > DX_TEXT_BYTES_MAX)
		fail(&parser, 0, "the query has more than a MiB");
	advance(&parser);
	struct dx_node *node = parse_expression(&parser);
	if (!parser.has_failed && parser.token.kind != DX_TOKEN_END && !is_sign(&parser, ","))
		fail(&parser, parser.token.column, "an operator is missing before this");
	assert(parser.depth == 0);
	*rest = text + (parser.has_failed ? 0 : parser.token.end);
	return parser.has_failed ? NULL : node;
}
