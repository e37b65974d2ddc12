/* SPDX-License-Identifier: MIT */
#include "action/budget/budget.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/text.h"

enum { BUDGET_BYTES_MAX = 1 << 24, READ_BYTES = 1 << 16 };

#define X(id, word) word,
const char *const budget_selector_words[BUDGET_SELECTOR_COUNT] = {BUDGET_SELECTORS(X)};
#undef X

const struct budget_metric budget_metrics[BUDGET_METRIC_COUNT] = {
	{"bytes", false, ACTION_NUMBER_total_bytes},
	{"blocks", true, ACTION_NUMBER_total_count},
	{"peak", false, ACTION_NUMBER_peak_bytes},
	{"peak", true, ACTION_NUMBER_peak_count},
	{"outstanding", false, ACTION_NUMBER_outstanding_bytes},
	{"outstanding", true, ACTION_NUMBER_outstanding_count},
	{"temporary", true, ACTION_NUMBER_temporary_count},
	{"reallocs", true, ACTION_NUMBER_realloc_count},
};

/* ---- words of a line ---- */

/* A word; its text is in the arena of the line. */
struct budget_token {
	const char *text;  /* without quotes and escapes; NULL: the line has ended */
	size_t begin, end; /* in the budget's text */
	bool is_quoted;    /* it is a name, whatever it says */
};

struct budget_reading {
	struct budget *budget;
	struct diag *diag;
	struct arena arena; /* of the line */
	size_t line_begin, at, line_end;
	unsigned line;
	struct budget_token token; /* the next one */
	uint32_t *chosen[BUDGET_SELECTOR_COUNT];
	size_t chosen_count[BUDGET_SELECTOR_COUNT], chosen_capacity[BUDGET_SELECTOR_COUNT];
};

/* Columns are characters, from 1. The bytes before are UTF-8, or the fault lies before them. */
static unsigned column_of(const struct budget_reading *reading, size_t at)
{
	unsigned column = 1;
	for (size_t i = reading->line_begin; i < at; i++)
		column += ((unsigned char)reading->budget->text[i] & 0xc0) != 0x80;
	return column;
}

__attribute__((format(printf, 3, 4))) static int refuse_at(struct budget_reading *reading, size_t at,
							   const char *format, ...)
{
	char why[300];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	return diag_fail(reading->diag, EINVAL, "%s:%u:%u: %s", reading->budget->path, reading->line,
			 column_of(reading, at), why);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int take_quoted(struct budget_reading *reading)
{
	const char *text = reading->budget->text;
	size_t begin = reading->at, used = 0;
	char *word = arena_alloc(&reading->arena, 1, reading->line_end - begin + 1);
	for (size_t at = begin + 1; at < reading->line_end; at++) {
		if (text[at] == '"') {
			if (at + 1 < reading->line_end && !is_blank(text[at + 1]))
				return refuse_at(reading, at + 1, "a blank is missing behind the quoted word");
			if (!used)
				return refuse_at(reading, begin, "a word is empty");
			reading->token = (struct budget_token){word, begin, at + 1, true};
			reading->at = at + 1;
			return 0;
		}
		at += text[at] == '\\' && at + 1 < reading->line_end;
		word[used++] = text[at];
	}
	return refuse_at(reading, begin, "the quote is not closed");
}

/* Read the next word. A comment ends the line. */
static int advance(struct budget_reading *reading)
{
	const char *text = reading->budget->text;
	while (reading->at < reading->line_end && is_blank(text[reading->at]))
		reading->at++;
	if (reading->at == reading->line_end || text[reading->at] == '#') {
		reading->token = (struct budget_token){NULL, reading->at, reading->at, false};
		return 0;
	}
	if (text[reading->at] == '"')
		return take_quoted(reading);
	size_t begin = reading->at;
	while (reading->at < reading->line_end && !is_blank(text[reading->at]))
		reading->at++;
	reading->token =
		(struct budget_token){arena_format(&reading->arena, "%.*s", (int)(reading->at - begin), text + begin),
				      begin, reading->at, false};
	return 0;
}

static bool token_is(const struct budget_reading *reading, const char *word)
{
	return reading->token.text && !reading->token.is_quoted && !strcmp(reading->token.text, word);
}

/* ---- numbers ---- */

/* The unit: behind the digits, or the next word if it is one. "" is none. */
static int take_unit(struct budget_reading *reading, const char *digits, const char **unit)
{
	uint64_t bytes;
	bool is_count;
	const char *behind = digits + strspn(digits, "0123456789,_.");
	*unit = behind;
	if (advance(reading))
		return -EINVAL;
	if (*behind || !reading->token.text || !budget_unit_find(reading->token.text, &bytes, &is_count))
		return 0;
	*unit = reading->token.text;
	return 0;
}

static const struct budget_metric *metric_find(const char *word, bool is_count, bool is_any)
{
	for (int i = 0; i < BUDGET_METRIC_COUNT; i++)
		if (!strcmp(budget_metrics[i].word, word) && (is_any || budget_metrics[i].is_count == is_count))
			return &budget_metrics[i];
	return NULL;
}

static int take_value(struct budget_reading *reading, struct budget_limit *limit)
{
	struct budget_token token = reading->token;
	const char *unit;
	uint64_t scale = 1;
	bool is_count = false;
	if (!token.text)
		return refuse_at(reading, token.begin, "a number is missing behind <=");
	if (token.is_quoted || !isdigit((unsigned char)*token.text))
		return refuse_at(reading, token.begin, "\"%s\" is no number such as 1,000 or 1.5 MiB", token.text);
	if (take_unit(reading, token.text, &unit))
		return -EINVAL;
	if (*unit && !budget_unit_find(unit, &scale, &is_count))
		return refuse_at(reading, token.begin, "\"%s\" is no number such as 1,000 or 1.5 MiB", token.text);
	const struct budget_metric *metric = metric_find(limit->metric->word, is_count, !*unit);
	if (!metric)
		return refuse_at(reading, token.begin,
				 is_count ? "%s is a number of bytes, not of blocks"
					  : "%s is a number of blocks: write it without a unit of bytes",
				 limit->metric->word);
	limit->metric = metric;
	const char *end = budget_parse_scaled(token.text, scale, &limit->value);
	if (!end || end != token.text + strspn(token.text, "0123456789,_."))
		return refuse_at(reading, token.begin,
				 end ? "\"%s\" is no number" : "\"%s\" is no number, or too large", token.text);
	if (scale == 1 && strchr(token.text, '.'))
		return refuse_at(reading, token.begin, "\"%s\" has a fraction: %s are whole", token.text,
				 metric->is_count ? "blocks" : "bytes");
	limit->end = token.end;
	if (reading->token.text == unit) {
		limit->end = reading->token.end;
		return advance(reading);
	}
	return 0;
}

/* "5%" in millionths. */
static int take_percent(struct budget_reading *reading, const char *text, uint64_t *millionths)
{
	const char *end = budget_parse_scaled(text, BUDGET_WHOLE / 100, millionths);
	if (!end || strcmp(end, "%") != 0)
		return refuse_at(reading, reading->token.begin, "\"%s\" is no percentage such as 5%% or 0.5%%", text);
	reading->budget->limits[reading->budget->limit_count].end = reading->token.end;
	return advance(reading);
}

/* What may follow the value: "+5%", "varies 8%", "fixed", each once. */
static int take_tail(struct budget_reading *reading, struct budget_limit *limit)
{
	bool has_tolerance = false, has_variation = false;
	while (reading->token.text) {
		if (!reading->token.is_quoted && reading->token.text[0] == '+' && !has_tolerance) {
			has_tolerance = true;
			if (take_percent(reading, reading->token.text + 1, &limit->tolerance))
				return -EINVAL;
		} else if (token_is(reading, "varies") && !has_variation) {
			has_variation = true;
			if (advance(reading))
				return -EINVAL;
			if (!reading->token.text)
				return refuse_at(reading, reading->token.begin,
						 "a percentage is missing behind varies");
			if (take_percent(reading, reading->token.text, &limit->variation))
				return -EINVAL;
		} else if (token_is(reading, "fixed") && !limit->is_fixed) {
			limit->is_fixed = true;
			limit->end = reading->token.end;
			if (advance(reading))
				return -EINVAL;
		} else {
			return refuse_at(reading, reading->token.begin,
					 "\"%s\" stands where +PERCENT%%, varies PERCENT%%, fixed or a # comment may",
					 reading->token.text);
		}
	}
	return 0;
}

/* ---- selectors ---- */

static int selector_find(const struct budget_reading *reading)
{
	int selector = 0;
	while (selector < BUDGET_SELECTOR_COUNT && !token_is(reading, budget_selector_words[selector]))
		selector++;
	return selector;
}

/* Frames are checked here, where the place is known. */
static int check_word(struct budget_reading *reading, int selector)
{
	struct heap_patterns patterns = {0};
	struct diag why = {""};
	if (selector > BUDGET_EXCEPT || budget_whole_name(reading->token.text))
		return 0;
	int error = heap_patterns_add(&patterns, reading->token.text, &why);
	heap_patterns_fini(&patterns);
	return error ? refuse_at(reading, reading->token.begin, "%s", why.text) : 0;
}

static int take_selector(struct budget_reading *reading, int selector)
{
	size_t begin = reading->token.begin, first = reading->chosen_count[selector];
	if (first)
		return refuse_at(reading, begin, "%s stands twice: write all its names behind one",
				 budget_selector_words[selector]);
	if (advance(reading))
		return -EINVAL;
	while (reading->token.text && !token_is(reading, "<=") && selector_find(reading) == BUDGET_SELECTOR_COUNT) {
		if (check_word(reading, selector))
			return -EINVAL;
		memory_grow(reading->chosen[selector], reading->chosen_count[selector],
			    reading->chosen_capacity[selector]);
		reading->chosen[selector][reading->chosen_count[selector]++] =
			intern_text(&reading->budget->words, reading->token.text);
		if (advance(reading))
			return -EINVAL;
	}
	if (reading->chosen_count[selector] == first)
		return refuse_at(reading, reading->token.begin, "a name is missing behind %s",
				 budget_selector_words[selector]);
	return 0;
}

/* Sort a list and leave out what is there twice. */
static void list_settle(uint32_t *items, size_t *count)
{
	size_t kept = 0;
	if (*count)
		qsort(items, *count, sizeof(*items), compare_u32);
	for (size_t i = 0; i < *count; i++)
		if (!kept || items[kept - 1] != items[i])
			items[kept++] = items[i];
	*count = kept;
}

/* The number of the selection; its lists lie in its key: each as its length and its words. */
static uint32_t selection_add(struct budget_reading *reading)
{
	struct budget *budget = reading->budget;
	size_t count = 0;
	for (int i = 0; i < BUDGET_SELECTOR_COUNT; i++) {
		list_settle(reading->chosen[i], &reading->chosen_count[i]);
		count += 1 + reading->chosen_count[i];
	}
	uint32_t *key = memory_resize(NULL, count, sizeof(*key)), *at = key, known = budget->keys.count;
	for (int i = 0; i < BUDGET_SELECTOR_COUNT; i++) {
		*at++ = (uint32_t)reading->chosen_count[i];
		for (size_t k = 0; k < reading->chosen_count[i]; k++)
			*at++ = reading->chosen[i][k];
	}
	uint32_t selection = intern_bytes(&budget->keys, key, count * sizeof(*key));
	free(key);
	if (selection < known)
		return selection;
	memory_grow(budget->selections, selection, budget->selection_capacity);
	const uint32_t *from = (const uint32_t *)(const void *)budget->keys.items[selection].data;
	for (int i = 0; i < BUDGET_SELECTOR_COUNT; i++) {
		budget->selections[selection].lists[i] = (struct budget_list){from + 1, *from};
		from += 1 + *from;
	}
	return selection;
}

/* ---- lines ---- */

static int refuse_metric(struct budget_reading *reading)
{
	return refuse_at(reading, reading->token.begin,
			 "a limit begins with bytes, blocks, peak, outstanding, temporary or reallocs, not with \"%s\"",
			 reading->token.text);
}

static int take_limit(struct budget_reading *reading, struct budget_limit *limit)
{
	*limit = (struct budget_limit){
		.line = reading->line,
		.column = column_of(reading, reading->token.begin),
		.begin = reading->token.begin,
		.metric = reading->token.is_quoted ? NULL : metric_find(reading->token.text, false, true)};
	if (!limit->metric)
		return refuse_metric(reading);
	if (advance(reading))
		return -EINVAL;
	for (int selector; (selector = selector_find(reading)) < BUDGET_SELECTOR_COUNT;)
		if (take_selector(reading, selector))
			return -EINVAL;
	if (!token_is(reading, "<="))
		return refuse_at(reading, reading->token.begin,
				 reading->token.text
					 ? "\"%s\" stands where <= NUMBER, in, self, except, thread or process may"
					 : "<= NUMBER is missing%s",
				 reading->token.text ? reading->token.text : "");
	if (advance(reading))
		return -EINVAL;
	limit->at = reading->token.begin;
	return take_value(reading, limit) ? -EINVAL : take_tail(reading, limit);
}

static int add_limit(struct budget_reading *reading)
{
	struct budget *budget = reading->budget;
	bool added;
	memory_grow(budget->limits, budget->limit_count, budget->limit_capacity);
	struct budget_limit *limit = &budget->limits[budget->limit_count];
	memset(reading->chosen_count, 0, sizeof(reading->chosen_count));
	if (take_limit(reading, limit))
		return -EINVAL;
	limit->selection = selection_add(reading);
	uint32_t *line = map_add(&budget->seen, map_pair(limit->selection, (uint32_t)limit->metric->number), &added);
	if (!added)
		return refuse_at(reading, limit->begin, "line %" PRIu32 " limits the same", *line);
	*line = limit->line;
	budget->limit_count++;
	return 0;
}

/* Refuse what no editor shows: bytes that are not UTF-8, and characters that control a terminal. */
static int check_line(struct budget_reading *reading)
{
	const unsigned char *text = (const unsigned char *)reading->budget->text;
	for (size_t at = reading->line_begin; at < reading->line_end;) {
		unsigned length = text_utf8_length(text + at);
		if (!length || at + length > reading->line_end)
			return refuse_at(reading, at, "byte 0x%02x is not UTF-8", text[at]);
		bool is_control = (text[at] < ' ' && !is_blank((char)text[at])) || text[at] == 0x7f;
		if (is_control)
			return refuse_at(reading, at, "a control character, 0x%02x", text[at]);
		at += length;
	}
	return 0;
}

static int take_line(struct budget_reading *reading)
{
	if (check_line(reading) || advance(reading))
		return -EINVAL;
	return reading->token.text ? add_limit(reading) : 0;
}

static int take_lines(struct budget_reading *reading)
{
	struct budget *budget = reading->budget;
	int error = 0;
	size_t at = budget->size >= 3 && !memcmp(budget->text, "\xef\xbb\xbf", 3) ? 3 : 0;
	for (reading->line = 1; !error && at < budget->size; reading->line++) {
		const char *end = memchr(budget->text + at, '\n', budget->size - at);
		reading->line_begin = reading->at = at;
		reading->line_end = end ? (size_t)(end - budget->text) : budget->size;
		error = take_line(reading);
		arena_fini(&reading->arena);
		at = reading->line_end + 1;
	}
	return error;
}

int budget_parse(struct budget *budget, const char *path, const char *text, size_t size, struct diag *diag)
{
	struct budget_reading reading = {.budget = budget, .diag = diag};
	assert(!budget->text);
	if (size > BUDGET_BYTES_MAX)
		return diag_fail(diag, EFBIG, "%s: a budget has at most 16 MiB", path);
	budget->path = path;
	budget->size = size;
	budget->text = memory_resize(NULL, size + 1, 1);
	memcpy(budget->text, text, size);
	budget->text[size] = 0;
	int error = take_lines(&reading);
	for (int i = 0; i < BUDGET_SELECTOR_COUNT; i++)
		free(reading.chosen[i]);
	return error;
}

int budget_read(struct budget *budget, const char *path, struct diag *diag)
{
	FILE *file = fopen(path, "re");
	struct sink text;
	char part[READ_BYTES];
	size_t size;
	if (!file)
		return diag_errno(diag, "cannot read %s", path);
	sink_to_memory(&text);
	while (text.used <= BUDGET_BYTES_MAX && (size = fread(part, 1, sizeof(part), file)) > 0)
		sink_bytes(&text, part, size);
	int error = ferror(file) ? diag_errno(diag, "cannot read %s", path) : 0;
	fclose(file);
	char *data = sink_take(&text, &size);
	error = error ? error : budget_parse(budget, path, data, size, diag);
	free(data);
	return error;
}

void budget_fini(struct budget *budget)
{
	free(budget->text);
	free(budget->limits);
	free(budget->selections);
	intern_fini(&budget->words);
	intern_fini(&budget->keys);
	map_fini(&budget->seen);
	*budget = (struct budget){0};
}

/* ---- answers ---- */

uint64_t budget_allowed(const struct budget_limit *limit)
{
	uint64_t share = budget_share(limit->value, limit->tolerance);
	return limit->value > UINT64_MAX - share ? UINT64_MAX : limit->value + share;
}

/* A part of a line, with one blank for each run of them outside of quotes: people align columns. */
static char *text_between(const struct budget *budget, size_t begin, size_t end)
{
	assert(begin <= end);
	char *text = memory_resize(NULL, end - begin + 1, 1), *to = text;
	bool is_quoted = false, was_blank = false;
	for (const char *at = budget->text + begin; at < budget->text + end; at++) {
		bool is_gap = !is_quoted && is_blank(*at);
		if (*at == '"' && (is_quoted || was_blank))
			is_quoted = !is_quoted;
		if (!is_gap || !was_blank)
			*to++ = is_gap ? ' ' : *at;
		if (*at == '\\' && is_quoted && at + 1 < budget->text + end)
			*to++ = *++at;
		was_blank = is_gap;
	}
	*to = 0;
	return text;
}

char *budget_limit_text(const struct budget *budget, const struct budget_limit *limit)
{
	return text_between(budget, limit->begin, limit->end);
}

/* Metrics of one word are told apart by their unit, which the number has. */
char *budget_limit_name(const struct budget *budget, const struct budget_limit *limit)
{
	size_t end = limit->at;
	assert(limit->begin < end && end < limit->end);
	bool is_by_unit = limit->metric->is_count && metric_find(limit->metric->word, false, false);
	while (is_blank(budget->text[end - 1]))
		end--;
	end -= strlen("<=");
	while (is_blank(budget->text[end - 1]))
		end--;
	char *name = text_between(budget, limit->begin, end), *text = NULL;
	if (!is_by_unit)
		return name;
	if (asprintf(&text, "%s (blocks)", name) < 0)
		memory_exhausted(0);
	free(name);
	return text;
}
