/* SPDX-License-Identifier: MIT */
/* StackWalkingFilter. The documented value is an array of numbers of four bytes: group and number of a call. */
#include "autologger/stack_filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "session/control/option_rows.h"
#include "session/control/options.h"

enum { ID_BYTES = 4, ID_VIRTUAL_ALLOC = 0x0262 };

/* Calls with an id, and the names that --stackwalk has for them. */
static const struct {
	uint32_t id;
	const char *name;
} calls[] = {{0x1020, "HeapCreate"},  {0x1021, "HeapAlloc"}, {0x1022, "HeapRealloc"},
	     {0x1023, "HeapDestroy"}, {0x1024, "HeapFree"},  {ID_VIRTUAL_ALLOC, "VirtualAlloc"}};

static const char separators[] = ", +\t";

enum { WORDS_BYTES = 400 };

struct filter_parse {
	struct session_options options;
	bool has_ignored;
};

/* Return the row of --stackwalk. */
static const struct option *stack_row(void)
{
	const struct option *row = session_option_rows;
	while (!row->name || strcmp(row->name, "stackwalk"))
		row++;
	return row;
}

static int add_name(struct filter_parse *parse, const char *name, size_t length, struct diag *why)
{
	char word[WORDS_BYTES];
	struct session_options one = parse->options;
	if (length == strlen("VirtualAlloc") && !strncasecmp(name, "VirtualAlloc", length)) {
		parse->has_ignored = true;
		return 0;
	}
	snprintf(word, sizeof(word), "%.*s", (int)length, name);
	if (strchr(word, '=') || option_store(stack_row(), &one, word, &(struct diag){""}))
		return diag_fail(why, EINVAL, "%s is no call that can have a stack", word);
	parse->options.stack_kinds |= one.stack_kinds;
	return 0;
}

static int add_id(struct filter_parse *parse, uint32_t id, struct diag *why)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].id == id)
			return add_name(parse, calls[i].name, strlen(calls[i].name), why);
	return diag_fail(why, EINVAL, "0x%04x is none of 0x1020 to 0x1024", id);
}

static bool is_byte(const char *word, size_t length)
{
	return length == 2 && isxdigit((unsigned char)word[0]) && isxdigit((unsigned char)word[1]);
}

/* The next word; its length, 0 at the end. */
static size_t next_word(const char **at)
{
	*at += strspn(*at, separators);
	return strcspn(*at, separators);
}

static int parse_bytes(struct filter_parse *parse, const char *at, struct diag *why)
{
	uint32_t id = 0;
	unsigned count = 0;
	for (size_t length; (length = next_word(&at)); at += length) {
		char byte[3] = {at[0], at[1], 0};
		if (!is_byte(at, length))
			return diag_fail(why, EINVAL, "%.*s is no byte of two hexadecimal digits", (int)length, at);
		id |= (uint32_t)strtoul(byte, NULL, 16) << 8 * (count % ID_BYTES);
		if (++count % ID_BYTES)
			continue;
		int error = add_id(parse, id, why);
		if (error)
			return error;
		id = 0;
	}
	return count % ID_BYTES ? diag_fail(why, EINVAL, "%u bytes: each id has four", count) : 0;
}

static int parse_words(struct filter_parse *parse, const char *at, struct diag *why)
{
	for (size_t length; (length = next_word(&at)); at += length) {
		char *end;
		bool is_id = !strncasecmp(at, "0x", 2);
		unsigned long id = is_id ? strtoul(at, &end, 16) : 0;
		if (is_id && (end != at + length || id > UINT32_MAX))
			return diag_fail(why, EINVAL, "%.*s is no id", (int)length, at);
		int error = is_id ? add_id(parse, (uint32_t)id, why) : add_name(parse, at, length, why);
		if (error)
			return error;
	}
	return 0;
}

static int parse_text(struct filter_parse *parse, const char *text, struct diag *why)
{
	const char *first = text;
	size_t length = next_word(&first);
	if (!length)
		return diag_fail(why, EINVAL, "there is no id");
	return is_byte(first, length) ? parse_bytes(parse, text, why) : parse_words(parse, text, why);
}

int stack_filter_parse(const char *text, uint64_t *bits, struct diag *why)
{
	struct filter_parse parse = {0};
	int error = parse_text(&parse, text, why);
	if (!error)
		*bits = parse.options.stack_kinds;
	return error;
}

bool stack_filter_has_ignored(const char *text)
{
	struct filter_parse parse = {0};
	return text[0] && !parse_text(&parse, text, &(struct diag){""}) && parse.has_ignored;
}
