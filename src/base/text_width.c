/* SPDX-License-Identifier: MIT */
#include "base/text_width.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

/* Characters from the first to the last one. */
struct character_range {
	uint32_t first, last;
};

#include "base/character_widths.inc"

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

static bool is_in(uint32_t code, const struct character_range *ranges, size_t count)
{
	size_t low = 0;
	while (low < count) {
		size_t middle = low + (count - low) / 2;
		if (code < ranges[middle].first)
			count = middle;
		else if (code > ranges[middle].last)
			low = middle + 1;
		else
			return true;
	}
	return false;
}

/* The character at `at`, which is not the end of the text: its length in bytes, and its columns. */
static unsigned character_read(const char *at, unsigned *columns)
{
	const unsigned char *bytes = (const unsigned char *)at;
	unsigned length = text_utf8_length(bytes);
	*columns = 1;
	if (length <= 1)
		return 1;
	uint32_t code = bytes[0] & (0xffu >> (length + 1));
	for (unsigned i = 1; i < length; i++)
		code = code << 6 | (bytes[i] & 0x3f);
	*columns = is_in(code, zero_characters, COUNT_OF(zero_characters))   ? 0
		   : is_in(code, wide_characters, COUNT_OF(wide_characters)) ? 2
									     : 1;
	return length;
}

bool text_has_unicode(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool has_unicode = locale && !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");
	if (locale)
		freelocale(locale);
	return has_unicode;
}

unsigned text_width(const char *text)
{
	unsigned sum = 0, columns;
	while (*text) {
		text += character_read(text, &columns);
		sum += columns;
	}
	return sum;
}

/* The bytes at the beginning that take at most `columns`, with the combining characters behind them. */
static size_t head_bytes(const char *text, unsigned columns)
{
	size_t at = 0;
	unsigned sum = 0, next;
	while (text[at]) {
		unsigned length = character_read(text + at, &next);
		if (sum + next > columns)
			break;
		sum += next;
		at += length;
	}
	return at;
}

/* Where the end of the text begins that takes at most `columns` of its `all`; no combining character is the first. */
static size_t tail_start(const char *text, unsigned all, unsigned columns)
{
	size_t at = 0;
	unsigned before = 0, next;
	while (text[at]) {
		unsigned length = character_read(text + at, &next);
		if (all - before <= columns && next)
			break;
		before += next;
		at += length;
	}
	return at;
}

/* More combining characters than this in a line are no text; they would make a line of any number of bytes. */
enum { COLUMN_BYTES_MAX = 16 };

static bool is_too_long(const char *text, unsigned columns)
{
	return strnlen(text, (size_t)columns * COLUMN_BYTES_MAX + 1) > (size_t)columns * COLUMN_BYTES_MAX;
}

/* An ellipsis of at most three columns. */
static const char *ellipsis(unsigned columns, bool has_unicode)
{
	return has_unicode ? (columns ? "…" : "") : &"..."[columns < 3 ? 3 - columns : 0];
}

static const char *fit(struct arena *arena, const char *text, unsigned columns, bool has_unicode, bool has_tail)
{
	unsigned all = text_width(text), mark = has_unicode ? 1 : 3;
	const char *middle = ellipsis(columns, has_unicode);
	if (all <= columns && !is_too_long(text, columns))
		return text;
	if (columns <= mark)
		return middle;
	/* The end of a name says more than its beginning, which is a library or a namespace. */
	unsigned tail = has_tail ? (columns - mark) * 3 / 5 : 0, head = columns - mark - tail;
	size_t head_size = head_bytes(text, head), tail_at = tail_start(text, all, tail);
	if (head_size > (size_t)head * COLUMN_BYTES_MAX || strlen(text + tail_at) > (size_t)tail * COLUMN_BYTES_MAX)
		return middle;
	return arena_format(arena, "%.*s%s%s", (int)head_size, text, middle, text + tail_at);
}

const char *text_fit(struct arena *arena, const char *text, unsigned columns, bool has_unicode)
{
	return fit(arena, text, columns, has_unicode, true);
}

const char *text_fit_start(struct arena *arena, const char *text, unsigned columns, bool has_unicode)
{
	return fit(arena, text, columns, has_unicode, false);
}

/* ---- lines ---- */

/* One line that is broken. */
struct wrapping {
	struct sink *out;
	struct arena *arena;
	const struct text_layout *layout;
	unsigned hang, at; /* blanks before what follows; columns used of the line */
};

/* Blanks before a word leave half of the line to it. */
static unsigned limit_blanks(const struct text_layout *layout, size_t blanks)
{
	return blanks < layout->width / 2 ? (unsigned)blanks : layout->width / 2;
}

static void wrap_word(struct wrapping *to, const char *word, size_t before)
{
	unsigned width = text_width(word), all = to->layout->width, blanks = limit_blanks(to->layout, before);
	if (to->at && to->at + blanks + width > all) {
		sink_put(to->out, '\n');
		blanks = limit_blanks(to->layout, to->hang);
		to->at = 0;
	}
	if (!to->layout->has_full_names && to->at + blanks + width > all)
		word = text_fit(to->arena, word, all - blanks, to->layout->has_unicode);
	sink_format(to->out, "%*s%s", (int)blanks, "", word);
	to->at += blanks + text_width(word);
}

static void wrap_line(struct wrapping *to, const char *line)
{
	to->at = 0;
	while (*line) {
		size_t blanks = strspn(line, " "), word = strcspn(line + blanks, " ");
		if (word)
			wrap_word(to, arena_format(to->arena, "%.*s", (int)word, line + blanks), blanks);
		line += blanks + word;
	}
}

static void wrap_lines(struct sink *out, const char *lines, const struct text_layout *layout, const unsigned *hang)
{
	enum { MORE = 2 };
	struct arena arena = {0};
	struct wrapping to = {.out = out, .arena = &arena, .layout = layout};
	while (*lines) {
		size_t length = strcspn(lines, "\n");
		char *line = arena_format(&arena, "%.*s", (int)length, lines);
		to.hang = hang ? *hang : (unsigned)strspn(line, " ") + MORE;
		if (!layout->width || text_width(line) <= layout->width)
			sink_text(out, line);
		else
			wrap_line(&to, line);
		sink_put(out, '\n');
		lines += length;
		lines += *lines == '\n';
	}
	arena_fini(&arena);
}

void text_wrap(struct sink *out, const char *lines, const struct text_layout *layout)
{
	wrap_lines(out, lines, layout, NULL);
}

void text_wrap_hanging(struct sink *out, const char *lines, const struct text_layout *layout, unsigned hang)
{
	wrap_lines(out, lines, layout, &hang);
}
