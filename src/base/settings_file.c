/* SPDX-License-Identifier: MIT */
#include "base/settings_file.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/** A file that is being read. */
struct settings_reading {
	const struct settings_reader *reader;
	FILE *file;
	const char *path;
	unsigned line; /**< of the last one that was read */
	bool is_cut;   /**< the line goes on */
	int error;     /**< of the first mistake */
	struct diag *why;
};

/* The library takes an indented line for a part of the value before it: its blanks are left out. */
static char *read_line(char *text, int size, void *context)
{
	struct settings_reading *reading = context;
	if (!fgets(text, size, reading->file))
		return NULL;
	size_t blanks = reading->is_cut ? 0 : strspn(text, " \t");
	reading->line += !reading->is_cut;
	reading->is_cut = !strchr(text, '\n') && strlen(text) + 1 >= (size_t)size;
	if (reading->is_cut && !reading->error)
		reading->error = diag_fail(reading->why, E2BIG, "%s:%u: the line is longer than %d bytes",
					   reading->path, reading->line, size - 2);
	memmove(text, text + blanks, strlen(text + blanks) + 1);
	return text;
}

static int take_value(void *context, const char *section, const char *key, const char *value)
{
	struct settings_reading *reading = context;
	const struct settings_reader *reader = reading->reader;
	struct diag reason = {""};
	int error = strcasecmp(section, reader->section)
			    ? diag_fail(&reason, EINVAL, "%s = %.100s is not in the section [%s]", key, value,
					reader->section)
			    : reader->store(reader->cookie, key, value, &reason);
	if (error && !reading->error)
		reading->error =
			diag_fail(reading->why, -error, "%s:%u: %s", reading->path, reading->line, reason.text);
	return !error;
}

int settings_read(const struct settings_reader *reader, FILE *file, const char *path, struct diag *why)
{
	struct settings_reading reading = {.reader = reader, .file = file, .path = path, .why = why};
	int line = ini_parse_stream(read_line, &reading, take_value, &reading);
	if (reading.error)
		return reading.error;
	if (ferror(file))
		return diag_errno(why, "cannot read %s", path);
	return line ? diag_fail(why, EINVAL, "%s:%d: neither [%s], nor KEY = VALUE, nor a comment", path, line,
				reader->section)
		    : 0;
}
