/* SPDX-License-Identifier: MIT */
#include "session/jit/perf_map.h"

#include <string.h>

#include "base/text.h"

enum { ADDRESS_BITS = 47 };

int jit_hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Parse a hexadecimal number and the space behind it. Return what follows, or NULL. */
static const char *take_number(const char *at, const char *end, uint64_t *number)
{
	unsigned digits = 0;
	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	for (*number = 0; at < end && jit_hex_digit(*at) >= 0; at++, digits++)
		*number = *number << 4 | (uint64_t)jit_hex_digit(*at);
	return digits && digits <= 16 && at < end && *at == ' ' ? at + 1 : NULL;
}

bool perf_map_parse(const char *line, size_t bytes, uint64_t *start, uint64_t *size, size_t *name)
{
	const char *end = line + bytes, *at = take_number(line, end, start);
	at = at ? take_number(at, end, size) : NULL;
	if (!at || at == end || !*size || *start >> ADDRESS_BITS || *size > (UINT64_C(1) << ADDRESS_BITS) - *start)
		return false;
	*name = (size_t)(at - line);
	return true;
}

/* Take ":NUMBER" off the end of the text. Return false if it does not end so. */
static bool take_last_number(char *text, uint32_t *number)
{
	char *colon = strrchr(text, ':');
	uint64_t value;
	if (!colon || !text_parse_count(colon + 1, &value) || value > UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	*colon = 0;
	return true;
}

/* Return where the file begins in V8's "NAME FILE", a text of which either part may have spaces, or be absent. */
static char *v8_file(char *text)
{
	static const char *const beginnings[] = {" /", " node:", " file:"};
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++) {
		char *found = strstr(text, beginnings[i]);
		if (found)
			return found;
	}
	return strchr(text, ' ');
}

/* Return the path of a URL of a file; another text as it is. */
static const char *plain_path(const char *file)
{
	return strncmp(file, "file://", 7) ? file : file + 7;
}

/* The beginnings of V8's names; the first three are functions. */
static const char *const v8_kinds[] = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:", "Module:"};
enum { V8_FUNCTIONS = 3, V8_KINDS = sizeof(v8_kinds) / sizeof(*v8_kinds) };

/* Return the place of the kind that the name begins with; V8_KINDS: it is not V8's. */
static size_t v8_kind(const char *text, size_t bytes)
{
	size_t i = 0;
	while (i < V8_KINDS && (bytes < strlen(v8_kinds[i]) || memcmp(text, v8_kinds[i], strlen(v8_kinds[i])) != 0))
		i++;
	return i;
}

/* "JS:*NAME FILE:LINE:COLUMN"; the mark before the name is the compiler's. */
static bool take_v8(struct jit_name *name)
{
	size_t kind = v8_kind(name->text, strlen(name->text));
	uint32_t column = 0;
	if (kind == V8_KINDS)
		return false;
	char *text = name->text + strlen(v8_kinds[kind]);
	text += strspn(text, "~^+*'");
	char *file = take_last_number(text, &column) && take_last_number(text, &name->line) ? v8_file(text) : NULL;
	if (file) {
		*file++ = 0;
		name->file = plain_path(file);
	}
	bool is_function = kind < V8_FUNCTIONS && (name->line != 1 || column != 1);
	name->function = *text ? text : is_function ? "(anonymous)" : "(top level)";
	return true;
}

/* "py::NAME:FILE" */
static bool take_cpython(struct jit_name *name)
{
	char *text = name->text + 4, *colon = strncmp(name->text, "py::", 4) ? NULL : strchr(text, ':');
	if (!colon)
		return false;
	*colon = 0;
	name->function = text;
	name->file = colon + 1;
	return true;
}

/* "JIT$NAME" of PHP; its own code is "JIT$$NAME". */
static bool take_php(struct jit_name *name)
{
	if (strncmp(name->text, "JIT$", 4) || !name->text[4] || name->text[4] == '$')
		return false;
	name->function = name->text + 4;
	return true;
}

/* "TRACE_NUMBER::FILE:LINE" of LuaJIT. */
static bool take_lua(struct jit_name *name)
{
	char *colons = strncmp(name->text, "TRACE_", 6) ? NULL : strstr(name->text, "::");
	if (!colons || !take_last_number(colons + 2, &name->line))
		return false;
	*colons = 0;
	name->function = name->text;
	name->file = colons + 2;
	return true;
}

/* "TYPE CLASS.METHOD(TYPES)" of a JVM, "TYPE [ASSEMBLY] CLASS::METHOD(TYPES)[TIER]" of .NET: without what the method
   returns, and how it was compiled. */
static bool take_method(struct jit_name *name)
{
	char *types = strchr(name->text, '('), *end = strrchr(name->text, ')');
	if (!types || types == name->text || types[-1] == ' ' || !end || (end[1] && end[1] != '['))
		return false;
	end[1] = 0;
	for (char *at = types; at > name->text; at--)
		if (at[-1] == ' ') {
			name->function = at;
			break;
		}
	return true;
}

/* Copy a text, of which at most `room` bytes with the end are kept. */
static void text_take(char *to, size_t room, const char *text, size_t bytes)
{
	bytes = bytes < room ? bytes : room - 1;
	memcpy(to, text, bytes);
	to[bytes] = 0;
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)to[i] < ' ' || to[i] == 127)
			to[i] = '?';
}

void jit_name_place(struct jit_name *name, const char *file, uint32_t line)
{
	text_take(name->place, sizeof(name->place), file, strlen(file));
	name->file = plain_path(name->place);
	name->line = line;
}

/* Return where the last "->" in the text begins that divides names; NULL: there is none. C++ has operators of that
   name, and arrows with blanks in types. */
static const char *arrow_find(const char *text, size_t bytes)
{
	static const char word[] = "operator";
	const size_t length = sizeof(word) - 1;
	for (size_t at = bytes > 2 ? bytes - 2 : 0; at-- > 1;) {
		bool is_arrow = text[at] == '-' && text[at + 1] == '>' && text[at - 1] != ' ' && text[at + 2] != ' ';
		if (is_arrow && (at < length || memcmp(text + at - length, word, length) != 0))
			return text + at;
	}
	return NULL;
}

void perf_map_names(struct jit_names *names, const char *text, size_t bytes)
{
	const char *arrow;
	/* A name of JavaScript may be any text. */
	bool is_divided = v8_kind(text, bytes) == V8_KINDS;
	for (names->count = 0; is_divided && (arrow = arrow_find(text, bytes)); bytes = (size_t)(arrow - text))
		if (names->count < JIT_DEPTH_MAX - 1)
			perf_map_name(&names->items[names->count++], arrow + 2, bytes - (size_t)(arrow + 2 - text));
	perf_map_name(&names->items[names->count++], text, bytes);
}

void perf_map_name(struct jit_name *name, const char *text, size_t bytes)
{
	text_take(name->text, sizeof(name->text), text, bytes);
	name->function = name->text;
	name->file = "";
	name->line = 0;
	if (!take_v8(name) && !take_cpython(name) && !take_php(name) && !take_lua(name))
		take_method(name);
}
