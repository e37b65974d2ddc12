/* SPDX-License-Identifier: MIT */
/* The file of an autologger, value by value. */
#include "autologger/autologger.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "autologger/autologger_files.h"
#include "autologger/stack_filter.h"
#include "base/settings_file.h"
#include "session/control/option_rows.h"

enum value_kind {
	KIND_NUMBER,
	KIND_SWITCH, /* 0 or 1, without an initial value */
	KIND_GUID,
	KIND_MODE,
	KIND_PATH,
	KIND_STACKS,
	KIND_FLAGS,
	KIND_WORDS,
	KIND_REFUSED,
};

static const struct value_row {
	const char *name;
	enum value_kind kind;
	const char *unit, *initial;
	uint64_t least, most;
} rows[AUTOLOGGER_VALUE_COUNT] = {
#define X(name, kind, unit, initial, least, most, help) {#name, KIND_##kind, unit, initial, least, most},
	AUTOLOGGER_VALUES(X)
#undef X
};

static const struct {
	const char *name;
	uint32_t bits;
} modes[] = {
#define X(name, bits) {#name, bits},
	AUTOLOGGER_MODES(X)
#undef X
};
enum { MODE_COUNT = sizeof(modes) / sizeof(modes[0]) };

const char *autologger_value_name(enum autologger_value value)
{
	return rows[value].name;
}

const char *autologger_value_unit(enum autologger_value value)
{
	return rows[value].unit;
}

/* ---- single values ---- */

static bool parse_number(const char *text, uint64_t *number)
{
	char *end;
	errno = 0;
	*number = strtoull(text, &end, strncasecmp(text, "0x", 2) ? 10 : 16);
	return isdigit((unsigned char)text[0]) && end != text && !*end && !errno;
}

static int set_number(const struct value_row *row, const char *text, uint64_t *number, struct diag *why)
{
	if (!parse_number(text, number))
		return diag_fail(why, EINVAL, "not a number");
	if (*number >= row->least && *number <= row->most)
		return 0;
	return diag_fail(why, EINVAL, "not from %llu to %llu%s%s", (unsigned long long)row->least,
			 (unsigned long long)row->most, row->unit[0] ? " " : "", row->unit);
}

static int set_guid(const char *text, struct diag *why)
{
	static const char guid[] = AUTOLOGGER_HEAP_GUID;
	size_t length = strlen(text);
	/* The braces may be left out. */
	if (!strcasecmp(text, guid) || (length == sizeof(guid) - 3 && !strncasecmp(text, guid + 1, length)))
		return 0;
	return diag_fail(why, EINVAL, "only %s, the heap provider, can be traced", guid);
}

/* The documented names are EVENT_TRACE_FILE_MODE_CIRCULAR and EVENT_TRACE_BUFFERING_MODE, for instance. */
static int add_mode(const char *word, size_t length, uint64_t *bits, struct diag *why)
{
	static const char prefix[] = "EVENT_TRACE_", infix[] = "FILE_MODE_", suffix[] = "_MODE";
	const char *name = word;
	for (const char *skip = prefix; skip; skip = skip == prefix ? infix : NULL)
		if (!strncasecmp(name, skip, strlen(skip)))
			name += strlen(skip);
	length -= (size_t)(name - word);
	size_t tail = sizeof(suffix) - 1;
	if (length > tail && !strncasecmp(name + length - tail, suffix, tail))
		length -= tail;
	for (int i = 0; i < MODE_COUNT; i++)
		if (strlen(modes[i].name) == length && !strncasecmp(name, modes[i].name, length)) {
			*bits |= modes[i].bits;
			return 0;
		}
	return diag_fail(why, EINVAL, "%.*s is no mode of SEQUENTIAL, CIRCULAR, APPEND, REAL_TIME, BUFFERING",
			 (int)length, name);
}

/* Check the modes alone and with each other. */
static int check_modes(uint64_t bits, struct diag *why)
{
	uint64_t known = 0;
	for (int i = 0; i < MODE_COUNT; i++)
		known |= modes[i].bits;
	if (bits & AUTOLOGGER_MODE_NEWFILE)
		return diag_fail(why, ENOTSUP,
				 "NEWFILE is not possible for an autologger; FileMax keeps several "
				 "traces");
	if (bits & ~known)
		return diag_fail(why, ENOTSUP, "the mode 0x%llx is not known", (unsigned long long)(bits & ~known));
	static const uint64_t pairs[][2] = {{AUTOLOGGER_MODE_SEQUENTIAL, AUTOLOGGER_MODE_CIRCULAR},
					    {AUTOLOGGER_MODE_SEQUENTIAL, AUTOLOGGER_MODE_BUFFERING},
					    {AUTOLOGGER_MODE_CIRCULAR, AUTOLOGGER_MODE_BUFFERING},
					    {AUTOLOGGER_MODE_APPEND, AUTOLOGGER_MODE_CIRCULAR},
					    {AUTOLOGGER_MODE_APPEND, AUTOLOGGER_MODE_BUFFERING},
					    {AUTOLOGGER_MODE_REAL_TIME, AUTOLOGGER_MODE_BUFFERING}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *names[2] = {"", ""};
		for (int k = 0; k < MODE_COUNT; k++)
			for (int side = 0; side < 2; side++)
				names[side] = modes[k].bits == pairs[i][side] ? modes[k].name : names[side];
		if ((bits & pairs[i][0]) && (bits & pairs[i][1]))
			return diag_fail(why, EINVAL, "%s and %s exclude each other", names[0], names[1]);
	}
	return 0;
}

static int set_modes(const char *text, uint64_t *bits, struct diag *why)
{
	static const char dividers[] = "+|, ";
	*bits = 0;
	if (parse_number(text, bits))
		return check_modes(*bits, why);
	if (!text[strspn(text, dividers)])
		return diag_fail(why, EINVAL, "it names no mode");
	for (const char *at = text; *at;) {
		size_t length = strcspn(at, dividers);
		int error = length ? add_mode(at, length, bits, why) : 0;
		if (error)
			return error;
		at += length + (at[length] != 0);
	}
	return check_modes(*bits, why);
}

static int set_path(const char *text, struct diag *why)
{
	if (text[0] != '/')
		return diag_fail(why, EINVAL, "not an absolute path");
	return text[strlen(text) - 1] == '/' ? diag_fail(why, EISDIR, "it names no file") : 0;
}

static int set_flags(const char *text, uint64_t *flags, struct diag *why)
{
	if (!parse_number(text, flags))
		return diag_fail(why, EINVAL, "not a number");
	return *flags ? diag_fail(why, EBADR, "heap tracing has no flags: error %d, ERROR_INVALID_FLAGS",
				  AUTOLOGGER_INVALID_FLAGS)
		      : 0;
}

static int parse_value(const struct value_row *row, const char *text, uint64_t *number, struct diag *why)
{
	switch (row->kind) {
	case KIND_NUMBER:
	case KIND_SWITCH:
		return set_number(row, text, number, why);
	case KIND_GUID:
		return set_guid(text, why);
	case KIND_MODE:
		return set_modes(text, number, why);
	case KIND_PATH:
		return set_path(text, why);
	case KIND_STACKS:
		return stack_filter_parse(text, number, why);
	case KIND_FLAGS:
		return set_flags(text, number, why);
	case KIND_WORDS:
		return 0;
	case KIND_REFUSED:
		return diag_fail(why, EPERM, "xheap sets this value by itself");
	}
	return -EINVAL;
}

void autologger_init(struct autologger *logger, const char *name)
{
	memset(logger, 0, sizeof(*logger));
	snprintf(logger->name, sizeof(logger->name), "%s", name);
	for (int i = 0; i < AUTOLOGGER_VALUE_COUNT; i++)
		parse_number(rows[i].initial, &logger->values[i].number);
	struct session_options session;
	session_options_init(&session);
	logger->values[AUTOLOGGER_StackWalkingFilter].number = session.stack_kinds;
}

int autologger_set(struct autologger *logger, const char *name, const char *text, struct diag *why)
{
	for (int i = 0; i < AUTOLOGGER_VALUE_COUNT; i++) {
		struct diag reason = {""};
		if (strcasecmp(rows[i].name, name))
			continue;
		int error = strlen(text) >= AUTOLOGGER_TEXT_BYTES
				    ? diag_fail(&reason, ENAMETOOLONG, "longer than %d characters",
						AUTOLOGGER_TEXT_BYTES - 1)
			    : !text[0] ? diag_fail(&reason, EINVAL, "the value is empty")
				       : settings_check_value(text, &reason);
		error = error ? error : parse_value(&rows[i], text, &logger->values[i].number, &reason);
		if (!error)
			snprintf(logger->values[i].text, sizeof(logger->values[i].text), "%s", text);
		return error ? diag_fail(why, -error, "%s = %.200s: %s", rows[i].name, text, reason.text) : 0;
	}
	return diag_fail(why, EINVAL, "%.100s: no such value", name);
}

const char *autologger_text(const struct autologger *logger, enum autologger_value value)
{
	const char *text = logger->values[value].text;
	return text[0] ? text : rows[value].initial;
}

/* ---- all values ---- */

static uint64_t number_of(const struct autologger *logger, enum autologger_value value)
{
	return logger->values[value].number;
}

static bool is_set(const struct autologger *logger, enum autologger_value value)
{
	return logger->values[value].text[0] != 0;
}

static uint32_t file_mode_of(uint64_t mode)
{
	return mode & AUTOLOGGER_MODE_CIRCULAR    ? SESSION_FILE_CIRCULAR
	       : mode & AUTOLOGGER_MODE_APPEND    ? SESSION_FILE_APPEND
	       : mode & AUTOLOGGER_MODE_BUFFERING ? SESSION_FILE_FLIGHT
						  : SESSION_FILE_SEQUENTIAL;
}

int autologger_check(const struct autologger *logger, struct diag *why)
{
	uint64_t mode = number_of(logger, AUTOLOGGER_LogFileMode);
	for (int i = 0; i < AUTOLOGGER_VALUE_COUNT; i++)
		if (!strcmp(rows[i].initial, "-") && !is_set(logger, (enum autologger_value)i))
			return diag_fail(why, EINVAL, "%s is missing", rows[i].name);
	if (is_set(logger, AUTOLOGGER_MinimumBuffers) &&
	    number_of(logger, AUTOLOGGER_MaximumBuffers) < number_of(logger, AUTOLOGGER_MinimumBuffers))
		return diag_fail(why, EINVAL, "MaximumBuffers = %s is less than MinimumBuffers = %s",
				 autologger_text(logger, AUTOLOGGER_MaximumBuffers),
				 autologger_text(logger, AUTOLOGGER_MinimumBuffers));
	if ((mode & AUTOLOGGER_MODE_APPEND) && !is_set(logger, AUTOLOGGER_BufferSize))
		return diag_fail(why, EINVAL, "LogFileMode has APPEND, which needs a BufferSize equal to the file's");
	if (number_of(logger, AUTOLOGGER_FileMax) && file_mode_of(mode) != SESSION_FILE_SEQUENTIAL)
		return diag_fail(why, EINVAL, "FileMax = %s keeps sequential traces; LogFileMode has %s",
				 autologger_text(logger, AUTOLOGGER_FileMax),
				 autologger_text(logger, AUTOLOGGER_LogFileMode));
	if (is_set(logger, AUTOLOGGER_Push) &&
	    (is_set(logger, AUTOLOGGER_LogFileMode) || number_of(logger, AUTOLOGGER_FileMax)))
		return diag_fail(why, EINVAL, "Push keeps a window and sums: without LogFileMode and FileMax");
	if (is_set(logger, AUTOLOGGER_Push) && is_set(logger, AUTOLOGGER_MaxFileSize) &&
	    !number_of(logger, AUTOLOGGER_MaxFileSize))
		return diag_fail(why, EINVAL, "MaxFileSize = 0: Push keeps a window, which has a size");
	if ((mode & AUTOLOGGER_MODE_CIRCULAR) && !number_of(logger, AUTOLOGGER_MaxFileSize))
		return diag_fail(why, EINVAL, "LogFileMode has CIRCULAR, which needs a MaxFileSize");
	return 0;
}

/* ---- the file ---- */

static int store_value(void *logger, const char *name, const char *text, struct diag *why)
{
	return autologger_set(logger, name, text, why);
}

int autologger_read(struct autologger *logger, FILE *file, const char *path, struct diag *why)
{
	const struct settings_reader reader = {"autologger", store_value, logger};
	struct diag reason = {""};
	int error = settings_read(&reader, file, path, why);
	if (error)
		return error;
	error = autologger_check(logger, &reason);
	return error ? diag_fail(why, -error, "%s: %s", path, reason.text) : 0;
}

void autologger_write(const struct autologger *logger, FILE *file)
{
	fputs("# An autologger of xheap: docs/autologger.md, man xheap-autologger\n[autologger]\n", file);
	for (int i = 0; i < AUTOLOGGER_VALUE_COUNT; i++)
		if (is_set(logger, (enum autologger_value)i))
			fprintf(file, "%s = %s\n", rows[i].name, logger->values[i].text);
}

/* ---- the session ---- */

enum {
	KB = 1024,
	BUFFER_KB_MIN = 64,
	PAGE_BYTES = 4096,
	FLUSH_MS_MAX = 60000,
	PUSH_WINDOW_MB = 16,
	REAL_TIME_MS = 100
};
#define MB (UINT64_C(1) << 20)

void autologger_path(const struct autologger *logger, char path[AUTOLOGGER_TEXT_BYTES])
{
	char directory[AUTOLOGGER_TEXT_BYTES - 100];
	autologger_directory(AUTOLOGGER_DIRECTORY_TRACES, directory, sizeof(directory));
	if (is_set(logger, AUTOLOGGER_FileName))
		snprintf(path, AUTOLOGGER_TEXT_BYTES, "%s", logger->values[AUTOLOGGER_FileName].text);
	else
		snprintf(path, AUTOLOGGER_TEXT_BYTES, "%s/%s.xht", directory, logger->name);
}

static uint64_t buffer_min_of(const struct autologger *logger)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t least = processors > 0 ? 2 * (uint64_t)processors : 2,
		 asked = number_of(logger, AUTOLOGGER_MinimumBuffers);
	return asked > least ? asked : least;
}

void autologger_recording(const struct autologger *logger, struct session_options *session,
			  char path[AUTOLOGGER_TEXT_BYTES])
{
	static const uint32_t clocks[] = {
		[1] = SESSION_CLOCK_AUTO, [2] = SESSION_CLOCK_MONOTONIC, [3] = SESSION_CLOCK_TSC};
	uint64_t mode = number_of(logger, AUTOLOGGER_LogFileMode), buffer_kb = number_of(logger, AUTOLOGGER_BufferSize);
	session_options_init(session);
	autologger_path(logger, path);
	session->session_name = logger->name;
	session->index = SESSION_INDEX_NEVER;
	session->trace_path = path;
	session->buffer_size = (uint32_t)(buffer_kb < BUFFER_KB_MIN ? BUFFER_KB_MIN : buffer_kb) * KB;
	session->buffer_size = (session->buffer_size + PAGE_BYTES - 1) & ~(uint32_t)(PAGE_BYTES - 1);
	session->buffer_min = (uint32_t)buffer_min_of(logger);
	session->buffer_max = (uint32_t)number_of(logger, AUTOLOGGER_MaximumBuffers);
	if (session->buffer_max < session->buffer_min)
		session->buffer_max = session->buffer_min;
	session->file_mode = file_mode_of(mode);
	session->max_file_bytes = number_of(logger, AUTOLOGGER_MaxFileSize) * MB;
	/* The documented memory of this mode is that of the buffers. */
	if (session->file_mode == SESSION_FILE_FLIGHT)
		session->max_file_bytes = (uint64_t)session->buffer_max * session->buffer_size;
	if (session->file_mode == SESSION_FILE_FLIGHT && session->max_file_bytes < SESSION_KEPT_BYTES_MIN)
		session->max_file_bytes = SESSION_KEPT_BYTES_MIN;
	if (is_set(logger, AUTOLOGGER_Push))
		session->file_mode = SESSION_FILE_KEEP;
	if (is_set(logger, AUTOLOGGER_Push) && !is_set(logger, AUTOLOGGER_MaxFileSize))
		session->max_file_bytes = PUSH_WINDOW_MB * MB;
	session->sample_bytes = number_of(logger, AUTOLOGGER_SampleSize) * KB;
	session->with_objects = number_of(logger, AUTOLOGGER_PythonObjects);
	session->flush_ms = (uint32_t)number_of(logger, AUTOLOGGER_FlushTimer) * 1000;
	if (!session->flush_ms)
		session->flush_ms = FLUSH_MS_MAX;
	session->is_real_time = mode & AUTOLOGGER_MODE_REAL_TIME;
	if (session->is_real_time)
		session->flush_ms = REAL_TIME_MS;
	session->clock = clocks[number_of(logger, AUTOLOGGER_ClockType)];
	session->stack_kinds = (uint32_t)number_of(logger, AUTOLOGGER_StackWalkingFilter);
	session->waits_for_directory = session->file_mode == SESSION_FILE_SEQUENTIAL;
	session->generations = (uint32_t)number_of(logger, AUTOLOGGER_FileMax);
}

void autologger_notes(const struct autologger *logger, void (*say)(const char *text))
{
	char text[200];
	if (number_of(logger, AUTOLOGGER_BufferSize) < BUFFER_KB_MIN) {
		snprintf(text, sizeof(text), "BufferSize = %s becomes %d KB, the least",
			 autologger_text(logger, AUTOLOGGER_BufferSize), BUFFER_KB_MIN);
		say(text);
	}
	uint64_t buffer_kb = number_of(logger, AUTOLOGGER_BufferSize);
	if (buffer_kb > BUFFER_KB_MIN && buffer_kb % (PAGE_BYTES / KB)) {
		snprintf(text, sizeof(text), "BufferSize = %s becomes %llu KB, whole pages",
			 autologger_text(logger, AUTOLOGGER_BufferSize),
			 (unsigned long long)((buffer_kb + PAGE_BYTES / KB - 1) / (PAGE_BYTES / KB) *
					      (PAGE_BYTES / KB)));
		say(text);
	}
	if (number_of(logger, AUTOLOGGER_MaximumBuffers) < buffer_min_of(logger)) {
		snprintf(text, sizeof(text), "MaximumBuffers = %s becomes %llu, two for each processor",
			 autologger_text(logger, AUTOLOGGER_MaximumBuffers), (unsigned long long)buffer_min_of(logger));
		say(text);
	}
	if (is_set(logger, AUTOLOGGER_MinimumBuffers) &&
	    number_of(logger, AUTOLOGGER_MinimumBuffers) < buffer_min_of(logger)) {
		snprintf(text, sizeof(text), "MinimumBuffers = %s becomes %llu, two for each processor",
			 autologger_text(logger, AUTOLOGGER_MinimumBuffers), (unsigned long long)buffer_min_of(logger));
		say(text);
	}
	if (stack_filter_has_ignored(logger->values[AUTOLOGGER_StackWalkingFilter].text))
		say("StackWalkingFilter has 0x0262, VirtualAlloc, which is ignored: xheap records heap calls");
}

uint32_t autologger_error_number(int error)
{
	static const struct {
		int error;
		uint32_t number;
	} numbers[] = {{0, 0},        {EBADR, AUTOLOGGER_INVALID_FLAGS},
		       {ENOENT, 2},   {ENOTDIR, 3},
		       {EPERM, 5},    {EACCES, 5},
		       {EROFS, 5},    {ENOMEM, 8},
		       {ENOTSUP, 50}, {EINVAL, 87},
		       {ENOSPC, 112}, {EISDIR, 161},
		       {EEXIST, 183}, {ETIMEDOUT, 1460}};
	enum { GEN_FAILURE = 31 };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].error == -error)
			return numbers[i].number;
	return GEN_FAILURE;
}
