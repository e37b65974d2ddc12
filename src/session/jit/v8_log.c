/* SPDX-License-Identifier: MIT */
#include "session/jit/v8_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
	ADDRESS_BITS = 47,
	FIELDS_MAX = 8,      /* the last one has the rest of the line */
	ROWS_MAX = 1 << 21,  /* of names and lines, of all logs: functions behind them are unknown */
	INNER_MAX = 1 << 10  /* rows and functions of what was put into one */
};

struct v8_field {
	const char *text;
	size_t bytes;
};

static uint32_t rows_kept;

static const char first_word[] = "v8-version,";

bool v8_log_begins(const char *bytes, size_t size)
{
	return size >= strlen(first_word) && !memcmp(bytes, first_word, strlen(first_word));
}

/* Divide a line at its commas; those in texts are written in another way. Return how many fields it has. */
static size_t divide(const char *text, size_t bytes, struct v8_field fields[FIELDS_MAX])
{
	size_t count = 0;
	for (const char *comma; count < FIELDS_MAX - 1 && (comma = memchr(text, ',', bytes)); count++) {
		fields[count] = (struct v8_field){text, (size_t)(comma - text)};
		bytes -= fields[count].bytes + 1;
		text = comma + 1;
	}
	fields[count] = (struct v8_field){text, bytes};
	return count + 1;
}

static bool is_word(const struct v8_field *field, const char *word)
{
	return field->bytes == strlen(word) && !memcmp(field->text, word, field->bytes);
}

/* Take a number off the beginning of a text: 0x123 or 123. Return false if it has none. */
static bool take_number(struct v8_field *text, uint64_t *number)
{
	bool is_hex = text->bytes > 2 && text->text[0] == '0' && text->text[1] == 'x';
	size_t at = is_hex ? 2 : 0, first = at;
	for (*number = 0; at < text->bytes && at - first < 16; at++) {
		int digit = jit_hex_digit(text->text[at]);
		if (digit < 0 || (digit > 9 && !is_hex))
			break;
		*number = *number * (is_hex ? 16 : 10) + (uint64_t)digit;
	}
	text->text += at;
	text->bytes -= at;
	return at > first;
}

/* Take "C120" off the beginning of a text: a letter and its number. Return false if another letter comes. */
static bool take_letter(struct v8_field *text, char letter, uint64_t *number)
{
	if (!text->bytes || text->text[0] != letter)
		return false;
	struct v8_field rest = {text->text + 1, text->bytes - 1};
	if (!take_number(&rest, number))
		return false;
	*text = rest;
	return true;
}

static bool whole_number(struct v8_field field, uint64_t *number)
{
	return take_number(&field, number) && !field.bytes;
}

/* ---- functions ---- */

static void function_put(struct v8_log *log, uint64_t function, const struct v8_name *name)
{
	bool added;
	if (rows_kept == ROWS_MAX)
		return;
	uint32_t *known = map_add(&log->functions, function, &added);
	if (added) {
		*known = (uint32_t)log->name_count;
		memory_grow(log->names, log->name_count, log->name_capacity);
		log->name_count++;
		rows_kept++;
	}
	log->names[*known] = *name;
}

static struct v8_name function_get(const struct v8_log *log, uint64_t function)
{
	const uint32_t *known = map_find(&log->functions, function);
	return known ? log->names[*known] : (struct v8_name){0, 0};
}

/* ---- lines ---- */

static void code_take(struct v8_log *log, const struct v8_field *fields, size_t count, uint64_t place,
		      struct v8_line *line)
{
	enum { KIND = 1, ADDRESS = 4, SIZE, NAME, FUNCTION };
	uint64_t function;
	if (count <= NAME || !whole_number(fields[ADDRESS], &line->start) || !whole_number(fields[SIZE], &line->size))
		return;
	const char *end = fields[NAME].text + fields[NAME].bytes, *kind = fields[KIND].text;
	line->name = (struct v8_name){place + (size_t)(kind - fields[0].text), (uint32_t)(end - kind)};
	struct v8_field rest = fields[count - 1];
	if (count > FUNCTION && take_number(&rest, &function))
		function_put(log, function, &line->name);
	if (line->size && !(line->start >> ADDRESS_BITS) && line->size <= (UINT64_C(1) << ADDRESS_BITS) - line->start)
		line->kind = V8_CODE;
}

static void inner_take(struct v8_log *log, const struct v8_field *fields, size_t count, const struct v8_field *whole,
		       uint64_t place, struct v8_line *line)
{
	enum { ADDRESS = 1, FUNCTIONS = 7 };
	struct v8_inner inner = {place, (uint32_t)whole->bytes, (uint32_t)log->inner_name_count, 0};
	uint64_t function;
	if (count <= FUNCTIONS || !whole_number(fields[ADDRESS], &line->start))
		return;
	struct v8_field rest = fields[FUNCTIONS];
	while (inner.count < INNER_MAX && rows_kept < ROWS_MAX - 1 && take_letter(&rest, 'S', &function)) {
		memory_grow(log->inner_names, log->inner_name_count, log->inner_name_capacity);
		log->inner_names[log->inner_name_count++] = function_get(log, function);
		inner.count++;
		rows_kept++;
	}
	if (!inner.count)
		return;
	memory_grow(log->inner, log->inner_count, log->inner_capacity);
	line->inner = (uint32_t)log->inner_count;
	log->inner[log->inner_count++] = inner;
	rows_kept++;
	line->kind = V8_INNER;
}

static void move_take(struct v8_log *log, const struct v8_field *fields, size_t count)
{
	enum { FROM = 1, TO, FIELDS };
	uint64_t from, to;
	if (count != FIELDS || !whole_number(fields[FROM], &from) || !whole_number(fields[TO], &to))
		return;
	struct v8_name name = function_get(log, from);
	if (name.bytes)
		function_put(log, to, &name);
}

void v8_log_take(struct v8_log *log, const char *text, size_t bytes, uint64_t place, struct v8_line *line)
{
	struct v8_field fields[FIELDS_MAX] = {{NULL, 0}};
	const struct v8_field whole = {text, bytes};
	size_t count = divide(text, bytes, fields);
	*line = (struct v8_line){.kind = V8_OTHER};
	if (is_word(fields, "code-creation")) {
		code_take(log, fields, count, place, line);
	} else if (is_word(fields, "code-source-info")) {
		inner_take(log, fields, count, &whole, place, line);
	} else if (is_word(fields, "sfi-move")) {
		move_take(log, fields, count);
	}
}

/* ---- names ---- */

/* Take a hexadecimal number of so many digits. Return false if it is none. */
static bool hex_take(const char *text, size_t digits, uint32_t *value)
{
	*value = 0;
	for (size_t i = 0; i < digits; i++) {
		int digit = jit_hex_digit(text[i]);
		if (digit < 0)
			return false;
		*value = *value << 4 | (uint32_t)digit;
	}
	return true;
}

/* Write a character of the basic plane as UTF-8. Return its bytes. */
static size_t put_utf8(char *to, uint32_t code)
{
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	to[0] = (char)(0xe0 | code >> 12);
	to[1] = (char)(0x80 | (code >> 6 & 0x3f));
	to[2] = (char)(0x80 | (code & 0x3f));
	return 3;
}

/* Copy a text as it was before it was written: "\x2C" is a comma, "\\" a backslash, "\u00e9" another letter. Return its
   bytes, which are no more. */
static size_t plain_text(char *to, const char *text, size_t bytes)
{
	size_t length = 0;
	for (size_t i = 0; i < bytes;) {
		bool is_escape = text[i] == '\\' && i + 1 < bytes;
		size_t digits = !is_escape ? 0 : text[i + 1] == 'x' ? 2 : text[i + 1] == 'u' ? 4 : 0;
		uint32_t code;
		if (digits && i + 2 + digits <= bytes && hex_take(text + i + 2, digits, &code)) {
			length += put_utf8(to + length, code);
			i += 2 + digits;
			continue;
		}
		i += is_escape && text[i + 1] == '\\';
		to[length++] = text[i++];
	}
	return length;
}

void v8_log_name(struct jit_name *name, const char *text, size_t bytes)
{
	enum { KIND, NAME = 5 };
	struct v8_field fields[FIELDS_MAX] = {{NULL, 0}};
	char plain[JIT_NAMES_BYTES];
	size_t count = divide(text, bytes, fields), length = fields[KIND].bytes;
	if (count <= NAME || length + 1 + fields[NAME].bytes > sizeof(plain)) {
		perf_map_name(name, "?", 1);
		return;
	}
	memcpy(plain, fields[KIND].text, length);
	plain[length++] = ':';
	length += plain_text(plain + length, fields[NAME].text, fields[NAME].bytes);
	perf_map_name(name, plain, length);
}

/* A function that was put into another one. */
struct inner_row {
	uint32_t function; /* its place in FUNCTIONS; UINT32_MAX: none */
	uint32_t into;     /* the row that it was put into; UINT32_MAX: into the code's own function */
};

/* Take "O35I2", a place in the source and the row that is put in there. Return false if it is none. */
static bool take_place(struct v8_field *text, uint32_t *row)
{
	uint64_t number;
	/* Some have no place: it is -1 then. */
	bool is_none = text->bytes > 2 && !memcmp(text->text, "O-1", 3);
	if (is_none)
		*text = (struct v8_field){text->text + 3, text->bytes - 3};
	if (!is_none && !take_letter(text, 'O', &number))
		return false;
	*row = take_letter(text, 'I', &number) ? (uint32_t)number : UINT32_MAX;
	return true;
}

/* Read INNER. Return how many rows it has. */
static uint32_t rows_read(struct v8_field text, struct inner_row rows[INNER_MAX])
{
	uint32_t count = 0;
	for (; count < INNER_MAX && text.bytes && text.text[0] == 'F'; count++) {
		uint64_t number;
		bool has_function = take_letter(&text, 'F', &number);
		if (!has_function)
			text = (struct v8_field){text.text + 1, text.bytes - 1};
		rows[count].function = has_function ? (uint32_t)number : UINT32_MAX;
		if (!take_place(&text, &rows[count].into))
			break;
	}
	return count;
}

/* Return the row that is put in at the offset; UINT32_MAX: none. */
static uint32_t row_at(struct v8_field positions, uint64_t offset)
{
	uint64_t from;
	uint32_t row = UINT32_MAX;
	while (take_letter(&positions, 'C', &from) && from <= offset)
		if (!take_place(&positions, &row))
			break;
	return row;
}

unsigned v8_log_inner(const char *text, size_t bytes, uint64_t offset, uint32_t *functions, unsigned most)
{
	enum { POSITIONS = 5, INNER };
	struct v8_field fields[FIELDS_MAX] = {{NULL, 0}};
	struct inner_row rows[INNER_MAX];
	if (divide(text, bytes, fields) <= INNER)
		return 0;
	uint32_t row = row_at(fields[POSITIONS], offset), before = rows_read(fields[INNER], rows);
	unsigned count = 0;
	/* Each row is put into one before it. */
	for (; row < before && count < most; row = rows[row].into) {
		functions[count++] = rows[row].function;
		before = row;
	}
	return count;
}

void v8_log_fini(struct v8_log *log)
{
	rows_kept -= (uint32_t)(log->name_count + log->inner_name_count + log->inner_count);
	map_fini(&log->functions);
	free(log->names);
	free(log->inner_names);
	free(log->inner);
	*log = (struct v8_log){.names = NULL};
}
