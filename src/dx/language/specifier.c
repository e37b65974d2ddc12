/* SPDX-License-Identifier: MIT */
#include "dx/language/specifier.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { BITS = 64 };

static const struct {
	const char *word;
	struct dx_specifier sets;
} words[] = {
	{"x", {.base = 16}},        {"d", {.base = 10}},         {"o", {.base = 8}},
	{"b", {.base = 2}},         {"en", {.base = 0}},         {"c", {.has_character = true}},
	{"s", {.is_quoted = true}}, {"sb", {.is_bare = true}},   {"s8", {.is_quoted = true}},
	{"s8b", {.is_bare = true}}, {"su", {.is_quoted = true}}, {"sub", {.is_bare = true}},
	{"!", {.is_raw = true}},    {"nd", {.is_plain = true}},
};

static void specifier_add(struct dx_specifier *to, const struct dx_specifier *from)
{
	to->base = from->base ? from->base : to->base;
	to->has_character |= from->has_character;
	to->is_raw |= from->is_raw;
	to->is_plain |= from->is_plain;
	if (from->is_bare || from->is_quoted) {
		to->is_bare = from->is_bare;
		to->is_quoted = from->is_quoted;
	}
}

static int refuse(const char *text, size_t length, struct diag *diag)
{
	return diag_fail(
		diag, EINVAL,
		"there is no format specifier%s%.*s: x, d, o, b, en, c, s, sb, s8, s8b, su, sub, !, nd, a number "
		"of elements, or [expression]",
		length ? " " : "", (int)length, text);
}

static int parse_word(const char *text, size_t length, struct dx_specifier *specifier, struct diag *diag)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == length && !strncmp(words[i].word, text, length)) {
			specifier_add(specifier, &words[i].sets);
			return 0;
		}
	if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
		specifier->count_text = text + 1;
		specifier->count_length = length - 2;
		return 0;
	}
	char number[BITS + 1] = "";
	if (!length || length > BITS || strspn(text, "0123456789") < length)
		return refuse(text, length, diag);
	memcpy(number, text, length);
	specifier->has_count = true;
	return text_parse_count(number, &specifier->count) ? 0 : refuse(text, length, diag);
}

/* The length of a word: commas in brackets belong to it. */
static size_t word_length(const char *text)
{
	unsigned depth = 0;
	size_t length = 0;
	for (; text[length] && (depth || text[length] != ','); length++) {
		depth += text[length] == '[' || text[length] == '(';
		depth -= depth && (text[length] == ']' || text[length] == ')');
	}
	return length;
}

int dx_specifier_parse(const char *text, struct dx_specifier *specifier, struct diag *diag)
{
	*specifier = (struct dx_specifier){.base = 0};
	for (;;) {
		size_t length = word_length(text), blank = strspn(text, " \t\n"), end = length;
		if (blank > length)
			blank = length;
		while (end > blank && isspace((unsigned char)text[end - 1]))
			end--;
		int error = parse_word(text + blank, end - blank, specifier, diag);
		specifier->wrong_text = error ? text + blank : NULL;
		if (error || !text[length])
			return error;
		text += length + 1;
	}
}

/* ---- texts ---- */

static const char *binary_text(struct dx_query *query, uint64_t number)
{
	char digits[BITS + 3], *at = digits + sizeof(digits) - 1;
	*at = 0;
	do
		*--at = (char)('0' + (number & 1));
	while (number >>= 1);
	*--at = 'y';
	*--at = '0';
	return dx_copy_text(query->arena, at, strlen(at));
}

static const char *number_text(struct dx_query *query, const struct dx_value *value, unsigned base)
{
	bool is_negative = value->is_signed && (int64_t)value->number < 0;
	base = base ? base : value->is_decimal || is_negative ? 10 : 16;
	switch (base) {
	case 2:
		return binary_text(query, value->number);
	case 8:
		return dx_format(query->arena, "0%" PRIo64, value->number);
	case 10:
		return value->is_signed ? dx_format(query->arena, "%" PRId64, (int64_t)value->number)
					: dx_format(query->arena, "%" PRIu64, value->number);
	default:
		return dx_format(query->arena, "0x%" PRIx64, value->number);
	}
}

static const char *real_text(struct dx_query *query, double real)
{
	const char *text = dx_format(query->arena, "%.15g", real);
	return strpbrk(text, ".en") ? text : dx_format(query->arena, "%s.0", text);
}

static const char *character_text(struct dx_query *query, const struct dx_value *value)
{
	unsigned character = (unsigned)(value->number & 0xff);
	return isprint((int)character) && character < 0x80 ? dx_format(query->arena, " '%c'", (int)character) : "";
}

static const char *object_text(struct dx_query *query, const struct dx_value *value, bool is_raw)
{
	assert(value->kind == DX_OBJECT && value->class);
	if (value->class->show && !is_raw)
		return value->class->show(query, value);
	return "[object Object]";
}

const char *dx_specifier_text(struct dx_query *query, const struct dx_value *value,
			      const struct dx_specifier *specifier)
{
	assert(dx_value_is_valid(value));
	switch (value->kind) {
	case DX_BOOL:
		return value->truth ? "true" : "false";
	case DX_NUMBER:
		return specifier->has_character
			       ? dx_format(query->arena, "%s%s", number_text(query, value, specifier->base),
					   character_text(query, value))
			       : number_text(query, value, specifier->base);
	case DX_REAL:
		return real_text(query, value->real);
	case DX_TEXT:
		return specifier->is_quoted ? dx_format(query->arena, "\"%s\"", value->text) : value->text;
	case DX_POSITION:
		return dx_position_text(query->arena, value);
	case DX_OBJECT:
		return object_text(query, value, specifier->is_raw);
	case DX_LAMBDA:
		return "[lambda]";
	case DX_ERROR:
		return dx_format(query->arena, strncmp(value->text, "gap: ", 5) ? "[error: %s]" : "[%s]", value->text);
	case DX_ABSENT:
		return value->is_nothing ? "" : "[absent]";
	default:
		return "";
	}
}

const char *dx_show(struct dx_query *query, const struct dx_value *value, unsigned base)
{
	const struct dx_specifier specifier = {.base = base};
	return dx_specifier_text(query, value, &specifier);
}
