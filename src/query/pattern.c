/* SPDX-License-Identifier: MIT */
#include "query/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum { PLAIN_BYTES = 4096, LIST_BYTES_MAX = 1 << 24 };
static const char operator_word[] = "operator";

/* ---- matching text ---- */

bool heap_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;
	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (*pattern == '?' ||
			   (*pattern && tolower((unsigned char)*pattern) == tolower((unsigned char)*text))) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The length of an operator's name that begins at `at` ("operator<<", "operator()", "operator new[]"), else 0. */
static size_t operator_length(const char *symbol, const char *at)
{
	size_t length = strlen(operator_word);
	if (strncmp(at, operator_word, length) != 0 || (at > symbol && is_word(at[-1])) || is_word(at[length]))
		return 0;
	if (!strncmp(at + length, "()", 2))
		return length + 2;
	size_t signs = strspn(at + length, "<>=!+-*/%^&|~,[]");
	if (signs)
		return length + signs;
	/* A conversion, or new and delete: up to the parameters. */
	return length + strcspn(at + length, "(");
}

/* The end of a bracket that opens at `at`, behind it. */
static const char *bracket_end(const char *at, char open, char close)
{
	unsigned depth = 0;
	for (; *at; at++) {
		depth += *at == open;
		if (*at == close && at[-1] != '-' && --depth == 0)
			return at + 1;
	}
	return at;
}

void heap_plain_symbol(const char *symbol, char *plain, size_t size)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t used = 0;
	for (const char *at = symbol; *at && used + 1 < size;) {
		/* Rust's "<Type as Trait>" is a part of the name. */
		size_t whole = at == symbol && *at == '<' ? (size_t)(bracket_end(at, '<', '>') - at)
							  : operator_length(symbol, at);
		if (!whole && !strncmp(at, anonymous, strlen(anonymous)))
			whole = strlen(anonymous);
		if (whole) {
			whole = whole < size - used - 1 ? whole : size - used - 1;
			memcpy(plain + used, at, whole);
			used += whole;
			at += whole;
		} else if (*at == '<' && at > symbol && at[1]) {
			at = bracket_end(at, '<', '>');
		} else if (*at == '(') {
			break;
		} else if (*at == ' ') {
			/* The text before was the return type. */
			used = 0;
			at++;
		} else {
			plain[used++] = *at++;
		}
	}
	plain[used] = 0;
}

/* ---- patterns ---- */

static char *copy_text(const char *text, size_t length)
{
	char *copy = strndup(text, length);
	if (!copy)
		memory_exhausted(length);
	return copy;
}

/* The `!` between image and symbol, or NULL. */
static const char *find_split(const char *text)
{
	size_t length = strlen(operator_word);
	for (const char *at = strchr(text, '!'); at; at = strchr(at + 1, '!'))
		if ((size_t)(at - text) < length || strncmp(at - length, operator_word, length) != 0)
			return at;
	return NULL;
}

static bool parse_offset(struct heap_pattern *pattern, const char *text)
{
	const char *plus = strrchr(text, '+');
	char *end;
	if (!plus || plus == text || strncasecmp(plus, "+0x", 3) != 0 || !isxdigit((unsigned char)plus[3]))
		return false;
	pattern->offset = strtoull(plus + 1, &end, 16);
	if (*end)
		return false;
	pattern->has_offset = true;
	pattern->image = copy_text(text, (size_t)(plus - text));
	return true;
}

int heap_patterns_add(struct heap_patterns *patterns, const char *text, struct diag *diag)
{
	struct heap_pattern pattern = {.text = NULL};
	const char *split = find_split(text);
	if (!*text || (split == text && !split[1]))
		return diag_fail(diag, EINVAL,
				 "\"%s\" is no frame: write image!, image!symbol, symbol or image+0xOFFSET", text);
	if (split) {
		pattern.image = split > text ? copy_text(text, (size_t)(split - text)) : NULL;
		pattern.symbol = split[1] ? copy_text(split + 1, strlen(split + 1)) : NULL;
	} else if (!parse_offset(&pattern, text)) {
		pattern.symbol = copy_text(text, strlen(text));
	}
	pattern.text = copy_text(text, strlen(text));
	memory_grow(patterns->items, patterns->count, patterns->capacity);
	patterns->items[patterns->count++] = pattern;
	patterns->has_offsets |= pattern.has_offset;
	return 0;
}

int heap_patterns_add_list(struct heap_patterns *patterns, const char *text, const char *name, struct diag *diag)
{
	unsigned number = 1;
	for (const char *line = text; *line; number++) {
		size_t length = strcspn(line, "\n"), from = strspn(line, " \t\r"), to = length;
		while (to > from && strchr(" \t\r", line[to - 1]))
			to--;
		if (to > from && line[from] != '#') {
			struct diag reason = {""};
			char *pattern = copy_text(line + from, to - from);
			int error = heap_patterns_add(patterns, pattern, &reason);
			free(pattern);
			if (error)
				return diag_fail(diag, -error, "%s, line %u: %s", name, number, reason.text);
		}
		line += length + (line[length] == '\n');
	}
	return 0;
}

int heap_patterns_add_file(struct heap_patterns *patterns, const char *path, struct diag *diag)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;
	if (!file)
		return diag_errno(diag, "cannot read %s", path);
	ssize_t length = getdelim(&text, &size, 0, file);
	bool is_bad = ferror(file) || (length >= 0 && (length > LIST_BYTES_MAX || getc(file) != EOF));
	fclose(file);
	int error = 0;
	if (is_bad)
		error = diag_fail(diag, EINVAL, "%s is no list of frames", path);
	else if (length >= 0)
		error = heap_patterns_add_list(patterns, text, path, diag);
	free(text);
	return error;
}

void heap_patterns_fini(struct heap_patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++) {
		free(patterns->items[i].text);
		free(patterns->items[i].image);
		free(patterns->items[i].symbol);
	}
	free(patterns->items);
	free(patterns->known);
	*patterns = (struct heap_patterns){0};
}

/* ---- matching names ---- */

/* "libc" is the image of "libc.so.6". */
static bool image_matches(const char *pattern, const char *image)
{
	char plain[512];
	if (heap_glob(pattern, image))
		return true;
	const char *suffix = strstr(image, ".so");
	if (!suffix || (suffix[3] && suffix[3] != '.') || (size_t)(suffix - image) >= sizeof(plain))
		return false;
	memcpy(plain, image, (size_t)(suffix - image));
	plain[suffix - image] = 0;
	return heap_glob(pattern, plain);
}

static bool symbol_matches(const char *pattern, const struct heap_name *name)
{
	char plain[PLAIN_BYTES];
	if (heap_glob(pattern, name->symbol) || (name->mangled && heap_glob(pattern, name->mangled)))
		return true;
	heap_plain_symbol(name->symbol, plain, sizeof(plain));
	return heap_glob(pattern, plain);
}

/* A mark ("[truncated]") goes by its text, as if that were its symbol. */
static bool pattern_matches(const struct heap_pattern *pattern, const struct heap_name *name)
{
	if (pattern->image && (!name->image || !image_matches(pattern->image, name->image)))
		return false;
	if (pattern->has_offset)
		return !name->symbol && name->offset == pattern->offset;
	if (!pattern->symbol)
		return true;
	return name->symbol ? symbol_matches(pattern->symbol, name) : heap_glob(pattern->symbol, name->text);
}

static bool name_matches(struct heap_patterns *patterns, const struct heap_name *name)
{
	bool matches = false;
	for (size_t i = 0; i < patterns->count; i++) {
		bool hit = pattern_matches(&patterns->items[i], name);
		patterns->items[i].hits += hit;
		matches |= hit;
	}
	return matches;
}

/* The node, not the name, has the address of a frame with a name. */
static bool offset_matches(struct heap_patterns *patterns, const struct heap_frame *frame, const struct heap_name *name)
{
	for (size_t i = 0; i < patterns->count; i++) {
		struct heap_pattern *pattern = &patterns->items[i];
		if (!pattern->has_offset || !frame->offset || frame->offset != pattern->offset || !name->image ||
		    !image_matches(pattern->image, name->image))
			continue;
		pattern->hits++;
		return true;
	}
	return false;
}

bool heap_patterns_match(struct heap_patterns *patterns, const struct heap_names *names, uint32_t node)
{
	const struct heap_frame *frame = heap_names_frame(names, node);
	if (frame->name >= patterns->known_count) {
		size_t count = memory_capacity(patterns->known_count, (size_t)frame->name + 1);
		patterns->known = memory_resize(patterns->known, count, 1);
		memset(patterns->known + patterns->known_count, 0, count - patterns->known_count);
		patterns->known_count = count;
	}
	uint8_t *known = &patterns->known[frame->name];
	const struct heap_name *name = heap_names_name(names, frame->name);
	if (!*known)
		*known = 1 + name_matches(patterns, name);
	return *known > 1 || (patterns->has_offsets && offset_matches(patterns, frame, name));
}
