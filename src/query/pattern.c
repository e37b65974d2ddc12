/* SPDX-License-Identifier: MIT */
#include "query/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "query/plain_name.h"

enum { LIST_BYTES_MAX = 1 << 24 };
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

static int pattern_add(struct heap_patterns *patterns, const char *text, bool is_typed, struct diag *diag)
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
	pattern.may_be_last = is_typed && !pattern.image && !strstr(text, "::");
	memory_grow(patterns->items, patterns->count, patterns->capacity);
	patterns->items[patterns->count++] = pattern;
	patterns->has_offsets |= pattern.has_offset;
	return 0;
}

int heap_patterns_add(struct heap_patterns *patterns, const char *text, struct diag *diag)
{
	return pattern_add(patterns, text, true, diag);
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
			int error = pattern_add(patterns, pattern, false, &reason);
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

/* What patterns are compared with; made once for all patterns. */
struct name_forms {
	const struct heap_name *name;
	char plain[PLAIN_NAME_BYTES];
	const char *last; /**< of plain */
};

static void forms_make(struct name_forms *forms, const struct heap_name *name)
{
	forms->name = name;
	forms->plain[0] = 0;
	if (heap_name_is_managed(name))
		snprintf(forms->plain, sizeof(forms->plain), "%s", name->symbol);
	else if (name->symbol)
		heap_plain_symbol(name->symbol, forms->plain, sizeof(forms->plain));
	if (name->is_jit && forms->plain[0] != '(')
		forms->plain[strcspn(forms->plain, "(")] = 0;
	const char *dot = heap_name_is_managed(name) ? strrchr(forms->plain, '.') : NULL;
	forms->last = heap_last_part(dot ? dot + 1 : forms->plain);
}

/* A mark ("[truncated]") goes by its text, as if that were its symbol. */
static bool symbol_matches(const char *pattern, const struct name_forms *forms)
{
	const struct heap_name *name = forms->name;
	if (!name->symbol)
		return heap_glob(pattern, name->text);
	return heap_glob(pattern, name->symbol) || (name->mangled && heap_glob(pattern, name->mangled)) ||
	       heap_glob(pattern, forms->plain);
}

static bool place_matches(const struct heap_pattern *pattern, const struct heap_name *name)
{
	return !pattern->image || (name->image && image_matches(pattern->image, name->image));
}

static bool pattern_matches(const struct heap_pattern *pattern, const struct name_forms *forms)
{
	if (!place_matches(pattern, forms->name))
		return false;
	if (pattern->has_offset)
		return !forms->name->symbol && forms->name->offset == pattern->offset;
	if (!pattern->symbol || symbol_matches(pattern->symbol, forms))
		return true;
	return pattern->is_last_part && forms->name->symbol && heap_glob(pattern->symbol, forms->last);
}

static bool name_matches(struct heap_patterns *patterns, const struct heap_name *name)
{
	struct name_forms forms;
	bool matches = false;
	forms_make(&forms, name);
	for (size_t i = 0; i < patterns->count; i++) {
		bool hit = pattern_matches(&patterns->items[i], &forms);
		patterns->items[i].hits += hit;
		matches |= hit;
	}
	return matches;
}

/* Return whether a pattern matches this owner of the name; NULL: one without a symbol. */
static bool owner_matches(const struct heap_patterns *patterns, const struct heap_name *name, const char *owner)
{
	for (size_t i = 0; i < patterns->count; i++) {
		const struct heap_pattern *pattern = &patterns->items[i];
		if ((pattern->symbol ? owner && heap_glob(pattern->symbol, owner) : !pattern->has_offset) &&
		    place_matches(pattern, name))
			return true;
	}
	return false;
}

static bool library_matches(const struct heap_patterns *patterns, const struct heap_name *name)
{
	struct name_owners owners;
	if (!name->symbol)
		return owner_matches(patterns, name, NULL);
	name_owners_find(&owners, name);
	unsigned matched = 0;
	for (; matched < owners.count; matched++) {
		char *owner = owners.texts[matched], *member = strstr(owner, NAME_MEMBER);
		if (owner_matches(patterns, name, owner))
			continue;
		/* It may be a function instead of a class. */
		if (member)
			*member = 0;
		if (!member || !owner_matches(patterns, name, owner))
			return false;
	}
	return true;
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

/* ---- last parts ---- */

static bool is_whole_match(const struct heap_pattern *pattern, const struct heap_names *names)
{
	struct name_forms forms;
	for (uint32_t i = 0; i < heap_names_count(names); i++) {
		forms_make(&forms, heap_names_name(names, i));
		if (symbol_matches(pattern->symbol, &forms))
			return true;
	}
	return false;
}

bool heap_patterns_may_be_last(const struct heap_patterns *patterns)
{
	bool may_be = false;
	for (size_t i = 0; i < patterns->count; i++)
		may_be |= patterns->items[i].may_be_last;
	return may_be;
}

void heap_patterns_settle(struct heap_patterns *patterns, const struct heap_names *names)
{
	bool has_changed = false;
	if (!patterns->count || patterns->settled_count == heap_names_count(names))
		return;
	patterns->settled_count = heap_names_count(names);
	for (size_t i = 0; i < patterns->count; i++) {
		struct heap_pattern *pattern = &patterns->items[i];
		bool is_last_part = pattern->may_be_last && !is_whole_match(pattern, names);
		has_changed |= is_last_part != pattern->is_last_part;
		pattern->is_last_part = is_last_part;
	}
	for (size_t i = 0; i < patterns->count && has_changed; i++)
		patterns->items[i].hits = 0;
	if (has_changed && patterns->known_count)
		memset(patterns->known, 0, patterns->known_count);
}

void heap_patterns_use_last_parts(struct heap_patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++) {
		patterns->items[i].is_last_part = patterns->items[i].may_be_last;
		patterns->items[i].hits = 0;
	}
	if (patterns->known_count)
		memset(patterns->known, 0, patterns->known_count);
}

const char **heap_pattern_last_parts(const struct heap_pattern *pattern, const struct heap_names *names, size_t *count)
{
	const char **texts = memory_zeroed(heap_names_count(names), sizeof(*texts));
	*count = 0;
	for (uint32_t i = 0; i < heap_names_count(names) && pattern->is_last_part; i++) {
		struct name_forms forms;
		forms_make(&forms, heap_names_name(names, i));
		if (pattern_matches(pattern, &forms))
			texts[(*count)++] = forms.name->text;
	}
	if (*count)
		qsort(texts, *count, sizeof(*texts), compare_texts);
	return texts;
}

/* ---- nodes ---- */

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
		*known = 1 +
			 (patterns->is_of_libraries ? library_matches(patterns, name) : name_matches(patterns, name));
	return *known > 1 || (patterns->has_offsets && offset_matches(patterns, frame, name));
}
