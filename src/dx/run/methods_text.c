/* SPDX-License-Identifier: MIT */
/* Methods of texts, and of any value. Places and lengths count bytes; a text is cut between characters only. */
#include <ctype.h>
#include <string.h>

#include "dx/language/specifier.h"
#include "dx/run/operators.h"

enum { PAD_MAX = 1 << 16 };

static const char *text_of(const struct dx_method_call *call)
{
	return call->receiver.text;
}

static uint64_t number_at(const struct dx_method_call *call, unsigned number)
{
	const struct dx_value *value = &call->arguments[number];
	if (value->kind == DX_REAL)
		return value->real > 0 ? (uint64_t)value->real : 0;
	return value->is_signed && (int64_t)value->number < 0 ? 0 : value->number;
}

static void call_contains(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	(void)query;
	*result = dx_bool(strstr(text_of(call), call->arguments[0].text) != NULL);
}

static void call_starts(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const char *start = call->arguments[0].text;
	(void)query;
	*result = dx_bool(!strncmp(text_of(call), start, strlen(start)));
}

static void call_ends(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const char *end = call->arguments[0].text;
	size_t length = strlen(text_of(call)), end_length = strlen(end);
	(void)query;
	*result = dx_bool(end_length <= length && !strcmp(text_of(call) + length - end_length, end));
}

static void call_length(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	(void)query;
	*result = dx_number(strlen(text_of(call)));
}

static bool is_inside_character(const char *text, uint64_t at)
{
	return ((unsigned char)text[at] & 0xc0) == 0x80;
}

/* Return the bytes [first, first + count) of the text, without the parts of characters that are cut at either end. */
static struct dx_value substring(struct dx_query *query, const char *text, uint64_t first, uint64_t count)
{
	uint64_t length = strlen(text);
	first = first < length ? first : length;
	while (first < length && is_inside_character(text, first))
		first++;
	uint64_t end = count < length - first ? first + count : length;
	while (end < length && end > first && is_inside_character(text, end))
		end--;
	return dx_text(dx_copy_text(query->arena, text + first, end - first));
}

static void call_substring(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	*result =
		substring(query, text_of(call), number_at(call, 0), call->count > 1 ? number_at(call, 1) : UINT64_MAX);
}

static void call_index_of(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const char *found = strstr(text_of(call), call->arguments[0].text);
	(void)query;
	*result = dx_signed(found ? found - text_of(call) : -1);
}

static void call_last_index_of(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const char *last = NULL;
	(void)query;
	for (const char *at = text_of(call); (at = strstr(at, call->arguments[0].text)) && *at; at++)
		last = at;
	*result = dx_signed(last ? last - text_of(call) : -1);
}

static void pad(struct dx_query *query, struct dx_method_call *call, bool is_left, struct dx_value *result)
{
	size_t length = strlen(text_of(call));
	uint64_t width = number_at(call, 0);
	if (width > PAD_MAX) {
		*result = dx_error(query, "%s: at most %d characters", call->method->name, PAD_MAX);
		return;
	}
	size_t fill = width > length ? width - length : 0;
	char *text = dx_alloc(query->arena, length + fill + 1);
	memset(is_left ? text : text + length, ' ', fill);
	memcpy(is_left ? text + fill : text, text_of(call), length);
	*result = dx_text(text);
}

static void call_pad_left(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	pad(query, call, true, result);
}
static void call_pad_right(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	pad(query, call, false, result);
}

static void call_remove(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	uint64_t length = strlen(text_of(call)), first = number_at(call, 0);
	uint64_t count = call->count > 1 ? number_at(call, 1) : UINT64_MAX;
	const char *front = substring(query, text_of(call), 0, first).text;
	uint64_t end = first < length && count < length - first ? first + count : length;
	const char *back = substring(query, text_of(call), end, UINT64_MAX).text;
	*result = dx_text(dx_format(query->arena, "%s%s", front, back));
}

static void call_replace(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const char *from = call->arguments[0].text, *to = call->arguments[1].text, *text = text_of(call);
	size_t from_length = strlen(from), to_length = strlen(to), count = 0;
	if (!from_length) {
		*result = dx_text(text);
		return;
	}
	for (const char *at = text; (at = strstr(at, from)); at += from_length)
		count++;
	size_t grown;
	if (__builtin_mul_overflow(count, to_length, &grown) || !dx_has_room(query->arena, grown)) {
		*result = dx_error(query, "Replace: the text is too long");
		return;
	}
	char *made = dx_alloc(query->arena, strlen(text) + grown + 1), *end = made;
	for (const char *at; (at = strstr(text, from)); text = at + from_length) {
		end = mempcpy(end, text, (size_t)(at - text));
		end = mempcpy(end, to, to_length);
	}
	strcpy(end, text);
	*result = dx_text(made);
}

static struct dx_value changed(struct dx_query *query, const char *text, int (*change)(int letter))
{
	char *copy = dx_copy_text(query->arena, text, strlen(text));
	for (char *at = copy; *at; at++)
		if ((unsigned char)*at < 0x80)
			*at = (char)change((unsigned char)*at);
	return dx_text(copy);
}

static void call_lower(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	*result = changed(query, text_of(call), tolower);
}
static void call_upper(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	*result = changed(query, text_of(call), toupper);
}

static void call_display(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct dx_specifier specifier = {.base = 0};
	struct diag diag = {""};
	if (call->count && dx_specifier_parse(call->arguments[0].text, &specifier, &diag))
		*result = dx_error(query, "ToDisplayString: %s", diag.text);
	else
		*result = dx_text(dx_specifier_text(query, &call->receiver, &specifier));
}

#define OF_TEXT(name, arguments, kind, call, shown, help) \
	{ \
		name, DX_OF_TEXT, NULL, arguments, DX_RESULT_KIND, kind, NULL, NULL, call, shown, help, NULL \
	}

const struct dx_method dx_methods_of_texts[] = {
	OF_TEXT("Contains", "t", DX_BOOL, call_contains, "text", "whether the text is in it"),
	OF_TEXT("StartsWith", "t", DX_BOOL, call_starts, "text", "whether it begins so"),
	OF_TEXT("EndsWith", "t", DX_BOOL, call_ends, "text", "whether it ends so"),
	OF_TEXT("Length", "", DX_NUMBER, call_length, "", "its length in bytes; also without parentheses"),
	OF_TEXT("Substring", "n?n", DX_TEXT, call_substring, "start [, length]", "a part of it"),
	OF_TEXT("IndexOf", "t", DX_NUMBER, call_index_of, "text", "where the text is in it; -1: it is not"),
	OF_TEXT("LastIndexOf", "t", DX_NUMBER, call_last_index_of, "text", "the last such place; -1: there is none"),
	OF_TEXT("PadLeft", "n", DX_TEXT, call_pad_left, "width", "the text with blanks before it"),
	OF_TEXT("PadRight", "n", DX_TEXT, call_pad_right, "width", "the text with blanks behind it"),
	OF_TEXT("Remove", "n?n", DX_TEXT, call_remove, "start [, length]", "the text without a part"),
	OF_TEXT("Replace", "tt", DX_TEXT, call_replace, "text, text", "the text with one part in place of another"),
	OF_TEXT("ToLower", "", DX_TEXT, call_lower, "", "in small letters"),
	OF_TEXT("ToUpper", "", DX_TEXT, call_upper, "", "in capital letters"),
	{"ToDisplayString", DX_OF_ANY, NULL, "?t", DX_RESULT_KIND, DX_TEXT, NULL, NULL, call_display, "[specifier]",
	 "the value as it is shown, with a format specifier: \"d\", \"x\", \"o\", \"b\", \"su\", ...", NULL},
	{0},
};
