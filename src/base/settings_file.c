/* SPDX-License-Identifier: MIT */
#include "base/settings_file.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

/* A path of 4,096 bytes with its key, and more. */
enum { LINE_BYTES = 8192 };

/* Some editors begin a file with it. */
static const char utf8_mark[] = "\xef\xbb\xbf";

/** A file that is being read. The library reads lines of 200 bytes, and takes a line that begins with a blank for more
    of the value before. A longer line of the file is given to it in pieces, and only these begin with a blank. */
struct settings_reading {
	const struct settings_reader *reader;
	FILE *file;
	const char *path;
	char line[LINE_BYTES];  /**< of the file, without blanks at both ends and without a comment */
	char value[LINE_BYTES]; /**< of the line, as far as the library said it; used if is_value */
	char key[LINE_BYTES];
	const char *rest;  /**< what the library has not read of the line */
	bool is_value;     /**< the line has a key and a value */
	bool is_within;    /**< ... in the reader's section */
	unsigned number;   /**< of the line */
	unsigned *numbers; /**< of the line of each piece */
	size_t pieces, capacity;
	int error; /**< of the first mistake */
	struct diag *why;
};

static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	size_t length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = 0;
	return text;
}

/* Return the comment behind a value: a semicolon after a blank. NULL: none. */
static char *comment_find(const char *text)
{
	for (const char *at = strchr(text, ';'); at; at = strchr(at + 1, ';'))
		if (at > text && isspace((unsigned char)at[-1]))
			return (char *)at;
	return NULL;
}

int settings_check_value(const char *value, struct diag *why)
{
	for (const char *at = value; *at; at++)
		if (iscntrl((unsigned char)*at))
			return diag_fail(why, EINVAL, "it has a control character");
	if (isspace((unsigned char)value[0]) || (value[0] && isspace((unsigned char)value[strlen(value) - 1])))
		return diag_fail(why, EINVAL, "it begins or ends with a blank");
	return value[0] == ';' || comment_find(value)
		       ? diag_fail(why, EINVAL, "a semicolon after a blank begins a comment")
		       : 0;
}

/* Note the first mistake. Later ones are left out. */
static void mistake(struct settings_reading *reading, int error, const char *reason)
{
	if (!reading->error)
		reading->error = diag_fail(reading->why, error, "%s:%u: %s", reading->path, reading->number, reason);
}

static void store_value(struct settings_reading *reading)
{
	const struct settings_reader *reader = reading->reader;
	struct diag reason = {""};
	if (!reading->is_value)
		return;
	int error = reading->is_within ? reader->store(reader->cookie, reading->key, reading->value, &reason)
				       : diag_fail(&reason, EINVAL, "%.100s = %.100s is not in the section [%s]",
						   reading->key, reading->value, reader->section);
	if (error)
		mistake(reading, -error, reason.text);
	reading->is_value = false;
}

/* Read the file's next line. Return false at its end. */
static bool next_line(struct settings_reading *reading)
{
	char *line = reading->line;
	size_t length = 0;
	int byte;
	while ((byte = getc(reading->file)) != EOF && byte != '\n')
		if (length++ < LINE_BYTES - 1)
			line[length - 1] = (char)byte;
	if (byte == EOF && !length)
		return false;
	reading->number++;
	line[length < LINE_BYTES ? length : 0] = 0;
	char reason[64] = "the line has a zero byte";
	if (length >= LINE_BYTES)
		snprintf(reason, sizeof(reason), "the line is longer than %d bytes", LINE_BYTES - 1);
	if (strlen(line) != length)
		mistake(reading, length < LINE_BYTES ? EINVAL : E2BIG, reason);
	bool has_mark = reading->number == 1 && !strncmp(line, utf8_mark, sizeof(utf8_mark) - 1);
	char *text = trim(line + (has_mark ? sizeof(utf8_mark) - 1 : 0)),
	     *comment = *text == '#' || *text == ';' ? text : comment_find(text);
	if (comment)
		*comment = 0;
	reading->rest = trim(text);
	return true;
}

/* Return the length of the next piece. A piece has no blank at its ends, and does not begin like a comment. */
static size_t piece_length(const char *text, size_t room)
{
	size_t length = strlen(text);
	if (length <= room)
		return length;
	for (length = room; length; length--)
		if (!isspace((unsigned char)text[length - 1]) && !strchr(" \t\r\v\f;#", text[length]))
			return length;
	return 0;
}

static char *read_piece(char *text, int size, void *context)
{
	struct settings_reading *reading = context;
	bool is_first = !*reading->rest;
	if (is_first) {
		store_value(reading);
		if (!next_line(reading))
			return NULL;
	}
	size_t length = piece_length(reading->rest, (size_t)size - 3);
	if (!length && *reading->rest) {
		mistake(reading, E2BIG, "the line has too many blanks in a row");
		reading->rest = "";
	}
	snprintf(text, (size_t)size, "%s%.*s\n", is_first ? "" : " ", (int)length, reading->rest);
	reading->rest += length;
	memory_grow(reading->numbers, reading->pieces, reading->capacity);
	reading->numbers[reading->pieces++] = reading->number;
	return text;
}

static int take_piece(void *context, const char *section, const char *key, const char *value)
{
	struct settings_reading *reading = context;
	bool is_first = reading->pieces < 2 || reading->numbers[reading->pieces - 2] != reading->number;
	if (is_first) {
		snprintf(reading->key, sizeof(reading->key), "%s", key);
		reading->value[0] = 0;
		reading->is_value = true;
		reading->is_within = !strcasecmp(section, reading->reader->section);
	}
	size_t length = strlen(reading->value);
	if (reading->is_value)
		snprintf(reading->value + length, sizeof(reading->value) - length, "%s", value);
	return true;
}

int settings_read(const struct settings_reader *reader, FILE *file, const char *path, struct diag *why)
{
	struct settings_reading *reading = memory_zeroed(1, sizeof(*reading));
	*reading = (struct settings_reading){.reader = reader, .file = file, .path = path, .rest = "", .why = why};
	int piece = ini_parse_stream(read_piece, reading, take_piece, reading), error = reading->error;
	unsigned line = piece > 0 ? reading->numbers[piece - 1] : 0;
	free(reading->numbers);
	free(reading);
	if (error)
		return error;
	if (ferror(file))
		return diag_errno(why, "cannot read %s", path);
	return piece ? diag_fail(why, EINVAL, "%s:%u: neither [%s], nor KEY = VALUE, nor a comment", path, line,
				 reader->section)
		     : 0;
}
