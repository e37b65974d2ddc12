/* SPDX-License-Identifier: MIT */
#include "session/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/text.h"
#include "recorder/recorder.h"

enum { COUNTER_DIGITS_MAX = 9 };

static const struct {
	const char *name, *other;
} file_modes[] = {
#define X(id, name, other, text) {name, other},
	SESSION_FILE_MODES(X)
#undef X
};

static const char *const clocks[] = {
#define X(id, name, text) name,
	SESSION_CLOCKS(X)
#undef X
};

static const char *const triggers[] = {
#define X(id, name, text) name,
	SESSION_TRIGGERS(X)
#undef X
};

void session_options_init(struct session_options *options)
{
	*options = (struct session_options){
		.buffer_size = 64 * 1024,
		.buffer_max = 1024,
		.stack_kinds = OPTION_STACKS,
		.stack_depth = RECORDER_DEPTH_MAX,
		.wait_limit_ms = 5000,
		.flush_ms = 1000,
		.permissions = FILE_PERMISSIONS,
		.with_duration = true,
		.on_full_wait = true,
		.follow = true,
	};
}

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

int session_file_mode_find(const char *name)
{
	for (int i = 0; i < SESSION_FILE_MODE_COUNT; i++)
		if (*name && (!strcasecmp(name, file_modes[i].name) || !strcasecmp(name, file_modes[i].other)))
			return i;
	return -1;
}

const char *session_file_mode_name(uint32_t mode)
{
	return mode < SESSION_FILE_MODE_COUNT ? file_modes[mode].name : "unknown";
}

int session_clock_find(const char *name)
{
	for (int i = 0; i < SESSION_CLOCK_COUNT; i++)
		if (!strcasecmp(name, clocks[i]))
			return i;
	return -1;
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

bool session_add_trigger(struct session_options *options, const char *text)
{
	const char *value = strchr(text, '=');
	size_t length = value ? (size_t)(value - text) : strlen(text);
	for (uint32_t i = 0; i < SESSION_TRIGGER_COUNT; i++) {
		if (strlen(triggers[i]) != length || strncasecmp(text, triggers[i], length) != 0)
			continue;
		/* Only that one has a value. */
		if ((i == SESSION_TRIGGER_RSS) != (value != NULL) ||
		    (value &&
		     (!text_parse_size(value + 1, &options->trigger_rss_bytes) || !options->trigger_rss_bytes)))
			return false;
		options->triggers |= UINT32_C(1) << i;
		return true;
	}
	return false;
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
