/* SPDX-License-Identifier: MIT */
#include "session/control/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/recorder.h"

enum { COUNTER_DIGITS_MAX = 9 };

uint32_t session_buffer_min(const struct session_options *options)
{
	enum { WAITING = 2, DROPPING = 32 };
	uint32_t count = options->buffer_min ? options->buffer_min : options->on_full_wait ? WAITING : DROPPING;
	return count < options->buffer_max ? count : options->buffer_max;
}

uint32_t session_options_word(const struct session_options *options)
{
	return OPTION_ENABLED | options->stack_kinds | options->stack_depth << OPTION_DEPTH_SHIFT |
	       (options->with_duration ? OPTION_DURATION : 0) | (options->on_full_wait ? OPTION_WAIT : 0) |
	       (options->check_stacks ? OPTION_CHECK : 0) | (options->sample_bytes ? OPTION_SAMPLE : 0);
}

bool session_is_in_pieces(const struct session_options *options)
{
	return options->file_mode == SESSION_FILE_FLIGHT || options->file_mode == SESSION_FILE_NONE ||
	       options->file_mode == SESSION_FILE_KEEP;
}

void session_pieces_path(char *path, size_t size, const char *trace_path)
{
	snprintf(path, size, "%s.pieces", trace_path);
}

/* Find the place of the counter and its length; NULL: there is none. */
static const char *counter_place(const char *path, size_t *length, int *digits)
{
	for (const char *at = strchr(path, '%'); at; at = strchr(at + 1, '%')) {
		char *end = (char *)at + 1;
		*digits = at[1] == '0' ? (int)strtol(at + 1, &end, 10) : 0;
		*length = (size_t)(end + 1 - at);
		if (*end == 'd' && *digits >= 0 && *digits <= COUNTER_DIGITS_MAX)
			return at;
	}
	return NULL;
}

bool session_path_is_numbered(const char *path)
{
	size_t length;
	int digits;
	return counter_place(path, &length, &digits) != NULL;
}

void session_path_number(char *path, size_t size, const char *pattern, uint32_t counter)
{
	size_t length;
	int digits;
	const char *place = counter_place(pattern, &length, &digits);
	if (place)
		snprintf(path, size, "%.*s%0*u%s", (int)(place - pattern), pattern, digits, counter, place + length);
	else
		snprintf(path, size, "%s", pattern);
}
