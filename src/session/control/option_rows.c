/* SPDX-License-Identifier: MIT */
#include "session/control/option_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/option_text.h"
#include "base/text.h"
#include "recorder/recorder.h"
#include "session/control/control.h"

enum {
	DEPTH_MIN = 1,
	BUFFER_BYTES_MIN = 64 * 1024,
	BUFFER_BYTES_MAX = 1024 * 1024,
	BUFFERS_MIN = 2,
	BUFFERS_MAX = 65536,
	BUFFERS_MOST_USUAL = 1024,
	WAIT_LIMIT_MS = 5000,
	FILE_BYTES_MIN = 64 * 1024,
	FLUSH_MS = 1000,
	FLUSH_MS_MIN = 10,
	FLUSH_MS_MAX = 60000,
	FLUSH_MS_REAL_TIME = 100,
	GENERATIONS_MAX = 9999
};
#define SAMPLE_BYTES_MAX (UINT64_C(1) << 40)

/* ---- words ---- */

static const struct option_choice stack_kinds[] = {
#define X(name, bits) {name, NULL, bits, NULL},
	STACK_FLAGS(X)
#undef X
		{"none", NULL, 0, NULL},
	{"all", NULL, OPTION_STACKS, NULL},
	{NULL, NULL, 0, NULL},
};

static const struct option_choice clocks[] = {
#define X(id, name, text) {name, NULL, SESSION_CLOCK_##id, text},
	SESSION_CLOCKS(X)
#undef X
		{NULL, NULL, 0, NULL},
};

static const struct option_choice file_modes[] = {
#define X(id, name, other, text) {name, other, SESSION_FILE_##id, text},
	SESSION_FILE_MODES(X)
#undef X
		{NULL, NULL, 0, NULL},
};

static const struct option_choice triggers[] = {
#define X(id, name, value, text) {name value, name, SESSION_TRIGGER_##id, text},
	SESSION_TRIGGERS(X)
#undef X
		{NULL, NULL, 0, NULL},
};

static const struct option_choice when_full[] = {
	{"wait", NULL, true, "the thread waits for one, and no event is lost"},
	{"drop", NULL, false, "the thread goes on, and its events are counted as lost"},
	{NULL, NULL, 0, NULL},
};

static const struct option_choice index_times[] = {
	{"always", NULL, SESSION_INDEX_ALWAYS, "and wait for it when the recording ends"},
	{"idle", NULL, SESSION_INDEX_IDLE, "while a processor is idle, if it is whole when the recording ends"},
	{"never", NULL, SESSION_INDEX_NEVER, "the first question makes it"},
	{NULL, NULL, 0, NULL},
};

static const struct option_choice kept[] = {{"live", NULL, true, NULL}, {NULL, NULL, 0, NULL}};

/* ---- values of more than a word ---- */

static int refuse_trigger(struct diag *why)
{
	char text[200] = "";
	for (const struct option_choice *trigger = triggers; trigger->name; trigger++) {
		strcat(text, trigger == triggers ? "" : trigger[1].name ? ", " : " or ");
		strcat(text, trigger->name);
	}
	return diag_fail(why, EINVAL, "%s", text);
}

/* A name, or rss=SIZE. */
static int add_trigger(void *context, const char *word, struct diag *why)
{
	struct session_options *options = context;
	size_t length = strcspn(word, "=");
	const char *size = word[length] ? word + length + 1 : NULL;
	for (const struct option_choice *trigger = triggers; trigger->name; trigger++) {
		if (strlen(trigger->other) != length || strncasecmp(word, trigger->other, length) != 0)
			continue;
		if ((strchr(trigger->name, '=') != NULL) != (size != NULL))
			break;
		if (size && (!text_parse_size(size, &options->trigger_rss_bytes) || !options->trigger_rss_bytes))
			return diag_fail(why, EINVAL, "SIZE is not a size of at least 1, such as 512M");
		options->triggers |= UINT32_C(1) << trigger->number;
		return 0;
	}
	return refuse_trigger(why);
}

static int set_real_time(void *context, const char *word, struct diag *why)
{
	struct session_options *options = context;
	(void)word, (void)why;
	options->flush_ms = FLUSH_MS_REAL_TIME;
	options->is_real_time = true;
	return 0;
}

/* ---- the table ---- */

#define AT(member) OPTION_AT(struct session_options, member)

/* clang-format off */
const struct option session_option_rows[] = {
	{.type = VALUE_TITLE, .help = "What is recorded:"},
	{"stackwalk", .type = VALUE_SET, AT(stack_kinds), .value = "KINDS", .choices = stack_kinds,
	 .initial = OPTION_STACKS, .key = "stackwalk", .flags = OPTION_IS_LIVE,
	 .help = "record stacks only for these calls, joined by +"},
	{"stack-depth", .type = VALUE_COUNT, AT(stack_depth), .value = "N", .least = DEPTH_MIN,
	 .most = RECORDER_DEPTH_MAX, .initial = RECORDER_DEPTH_MAX, .key = "stack-depth",
	 .help = "record at most N frames of a stack"},
	{"no-duration", .type = VALUE_OFF, AT(with_duration), .key = "duration",
	 .help = "do not record how long each call takes"},
	{"no-follow", .type = VALUE_OFF, AT(follow), .key = "follow",
	 .help = "do not trace the programs that the command executes"},
	{"until-exit", .type = VALUE_ON, AT(until_exit), .key = "until-exit",
	 .help = "end when COMMAND ends, and detach from the processes that it has started"},
	{NULL, .type = VALUE_ON, AT(is_attached), .key = "attached", .flags = OPTION_KEY_IF_SET},
	{"sample", .type = VALUE_SIZE, AT(sample_bytes), .value = "BYTES", .least = 1, .most = SAMPLE_BYTES_MAX,
	 .key = "sample", .flags = OPTION_KEY_IF_SET,
	 .help = "record a sample: choose one byte of BYTES that are allocated, and record its block"},
	{"python-objects", .type = VALUE_ON, AT(with_objects), .key = "python-objects", .flags = OPTION_KEY_IF_SET,
	 .help = "record each object of a Python program, as a block of a heap in the arenas"},
	{"clock", .type = VALUE_CHOICE, AT(clock), .value = "CLOCK", .choices = clocks, .initial = SESSION_CLOCK_AUTO,
	 .help = "take the times of events from"},
	{"check-stacks", .type = VALUE_ON, AT(check_stacks),
	 .help = "compare every remembered stack with a full walk (slow; for tests)"},

	{.type = VALUE_TITLE, .help = "Buffers:"},
	{"on-full", .type = VALUE_CHOICE, AT(on_full_wait), .value = "wait|drop", .choices = when_full, .initial = true,
	 .key = "on-full", .flags = OPTION_IS_LIVE,
	 .help = "when a thread has no free buffer"},
	{"wait-limit", .type = VALUE_DURATION, AT(wait_limit_ms), .value = "TIME", .least = 1, .initial = WAIT_LIMIT_MS,
	 .key = "wait-limit-ms", .flags = OPTION_IS_LIVE,
	 .help = "drop events when a thread has waited for this long and the recording makes no progress"},
	{"buffer-size", .type = VALUE_SIZE, AT(buffer_size), .value = "SIZE", .least = BUFFER_BYTES_MIN,
	 .most = BUFFER_BYTES_MAX, .initial = BUFFER_BYTES_MIN, .key = "buffer-size",
	 .help = "bytes of a buffer"},
	{"min-buffers", .type = VALUE_COUNT, AT(buffer_min), .value = "N", .least = BUFFERS_MIN, .most = BUFFERS_MAX,
	 .initial_help = "2, or 32 with --on-full drop", .key = "min-buffers",
	 .help = "buffers that a process begins with and keeps"},
	{"max-buffers", .type = VALUE_COUNT, AT(buffer_max), .value = "N", .least = BUFFERS_MIN, .most = BUFFERS_MAX,
	 .initial = BUFFERS_MOST_USUAL, .key = "max-buffers",
	 .help = "most buffers of a process"},

	{.type = VALUE_TITLE, .help = "The trace:"},
	{"file-mode", .type = VALUE_CHOICE, AT(file_mode), .value = "MODE", .choices = file_modes,
	 .initial = SESSION_FILE_SEQUENTIAL, .key = "file-mode",
	 .help = "what becomes of the file when it gets large, and of old events"},
	{"keep", .type = VALUE_CHOICE, AT(keeps_live), .value = "live", .choices = kept,
	 .help = "the same as --file-mode keep-live"},
	{"max-file", .type = VALUE_SIZE, AT(max_file_bytes), .value = "SIZE", .least = FILE_BYTES_MIN,
	 .key = "max-file",
	 .help = "greatest size of the trace, of each file, or of the events that are kept"},
	{"trigger", .type = VALUE_PARSED, .value = "WHAT", .parse = add_trigger, .choices = triggers,
	 .help = "with --file-mode flight, write the events out when"},
	{"permissions", .type = VALUE_PERMISSIONS, AT(permissions), .value = "MODE", .initial = FILE_PERMISSIONS,
	 .help = "who may read and write the trace, in octal as for chmod"},
	{"flush-timer", .type = VALUE_DURATION, AT(flush_ms), .value = "TIME", .least = FLUSH_MS_MIN,
	 .most = FLUSH_MS_MAX, .initial = FLUSH_MS, .key = "flush-timer-ms",
	 .help = "events that are older than this are in the file"},
	{"real-time", .type = VALUE_PARSED, .parse = set_real_time,
	 .help = "set --flush-timer to 100ms, for a trace that is read while it is recorded"},
	{"generations", .type = VALUE_COUNT, AT(generations), .value = "N", .most = GENERATIONS_MAX,
	 .help = "write to FILE.0001 up to FILE.N, always the oldest; 0: to FILE"},
	{"late-file", .type = VALUE_ON, AT(waits_for_directory),
	 .help = "keep events in memory while the directory of FILE is missing or read-only"},
	{"index", .type = VALUE_CHOICE, AT(index), .value = "[always|idle|never]", .bare = "always",
	 .choices = index_times, .initial = SESSION_INDEX_IDLE,
	 .help = "make the trace's index during the recording, so that the first question is answered fast"},
	{NULL, .type = VALUE_TEXT, AT(command), .key = "command"},
	{.type = VALUE_END},
};
/* clang-format on */

void session_options_init(struct session_options *options)
{
	*options = (struct session_options){.session_name = NULL};
	options_initialize(session_option_rows, options);
}

void session_options_from_state(struct session_options *options, const struct control_state *state)
{
	session_options_init(options);
	options->stack_kinds = state->options & OPTION_STACKS;
	options->on_full_wait = state->options & OPTION_WAIT;
	options->wait_limit_ms = state->wait_limit_ms;
}

void session_options_each_key(const struct session_options *options,
			      void (*add)(void *cookie, const char *key, const char *text), void *cookie)
{
	struct session_options initial, settled = *options;
	session_options_init(&initial);
	settled.buffer_min = session_buffer_min(options);
	for (const struct option *row = session_option_rows; row->type != VALUE_END; row++) {
		char text[160];
		if (!row->key || ((row->flags & OPTION_KEY_IF_SET) && option_is_same(row, options, &initial)))
			continue;
		option_text(row, &settled, text, sizeof(text));
		/* A command line has any length. */
		add(cookie, row->key, row->type == VALUE_TEXT ? options->command : text);
	}
}

void session_options_each_word(const struct session_options *options, void (*add)(void *cookie, const char *word),
			       void *cookie)
{
	struct session_options initial;
	session_options_init(&initial);
	for (const struct option *row = session_option_rows; row->type != VALUE_END; row++) {
		char word[160];
		if (!row->name || !row->size || option_is_same(row, options, &initial))
			continue;
		snprintf(word, sizeof(word), "--%s", row->name);
		add(cookie, word);
		if (!option_has_value(row))
			continue;
		option_word(row, options, word, sizeof(word));
		add(cookie, word);
	}
}

int session_file_mode_find(const char *name)
{
	const struct option_choice *mode = option_choice_find(file_modes, name);
	return mode ? (int)mode->number : -1;
}

const char *session_file_mode_name(uint32_t mode)
{
	return mode < SESSION_FILE_MODE_COUNT ? file_modes[mode].name : "unknown";
}

const char *session_clock_choice_name(uint32_t clock)
{
	return clock < SESSION_CLOCK_COUNT ? clocks[clock].name : "unknown";
}
