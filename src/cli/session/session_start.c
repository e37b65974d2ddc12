/* SPDX-License-Identifier: MIT */
/* xheap start and xheap update: which processes a session records, and how. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/image/image_notes.h"
#include "cli/push_start.h"
#include "cli/record/record.h"
#include "cli/record/record_files.h"
#include "cli/record/record_options.h"
#include "cli/record/recording.h"
#include "cli/session/session_talk.h"
#include "inject/inject.h"
#include "session/control/option_rows.h"
#include "push/push_queue.h"
#include "session/directory/directory.h"

/* ---- start ---- */

enum { WINDOW_BYTES = 16 << 20 };

struct session_begin {
	struct record record;
	struct push_start push;
};

static const struct option_group start_groups[] = {
	{record_pid_rows, 0, false},
	{record_option_rows, 0, false},
	{push_start_rows, offsetof(struct session_begin, push), false},
	{push_service_rows, offsetof(struct session_begin, push), false},
	{session_option_rows, offsetof(struct session_begin, record.session), false},
	{NULL, 0, false},
};
static const struct option_grammar start_grammar = {
	.command = "start", .groups = start_groups, .dashes = "--", .takes_abbreviations = true};

static int check_pids(const struct record *record)
{
	struct diag diag = {""};
	for (unsigned i = 0; i < record->pids.count; i++)
		if (inject_check(record->pids.items[i], &diag))
			return cli_fail("%s", diag.text);
	return CLI_OK;
}

/* How to go on. */
static void start_report(const struct record *record, const char *name, const char *push_place)
{
	const struct session_options *options = &record->session;
	if (push_place) {
		cli_say("session %s is pushed to %s; xheap query %s shows how it goes, xheap stop %s ends it", name,
			push_place, name, name);
		return;
	}
	const struct text size = text_bytes(options->max_file_bytes);
	if (options->file_mode == SESSION_FILE_NONE)
		cli_say("session %s keeps the newest %s; xheap top %s shows them, xheap stop %s ends the "
			"session",
			name, size.data, name, name);
	else if (options->file_mode == SESSION_FILE_KEEP)
		fprintf(stderr,
			"xheap: session %s keeps the newest %s, all live blocks, and sums of the others; xheap flush "
			"%s "
			"writes them to %s, xheap stop %s writes them and ends the session\n",
			name, size.data, name, text_shown(record->output), name);
	else if (options->file_mode == SESSION_FILE_FLIGHT)
		cli_say("session %s keeps the newest %s; xheap flush %s writes them to %s, xheap stop %s writes them "
			"and ends the session",
			name, size.data, name, record->output, name);
	else
		cli_say("session %s records into %s; xheap stop %s ends the session", name, record->output, name);
}

/* -o none: a window of what was recorded, and sums of the rest, in the user's state directory until the end. */
static int start_without_trace(struct session_begin *start, const char *name)
{
	static char path[CACHE_PATH_BYTES];
	struct session_options *options = &start->record.session;
	struct diag diag = {""};
	if (!start->record.output || strcmp(start->record.output, "none") != 0 || !start->push.place)
		return CLI_OK;
	if (options->file_mode != SESSION_FILE_SEQUENTIAL && options->file_mode != SESSION_FILE_KEEP)
		return cli_fail("start: -o none with --push keeps what it needs: leave out --file-mode");
	if (push_trace_path(path, name, true, &diag))
		return cli_fail("start: %s", diag.text);
	options->file_mode = SESSION_FILE_KEEP;
	if (!options->max_file_bytes)
		options->max_file_bytes = WINDOW_BYTES;
	start->record.output = path;
	return CLI_OK;
}

static int start_run(int count, char **arguments)
{
	static struct session_begin memory;
	struct record *record = &memory.record;
	char file[128];
	int status = session_take_name(count, arguments, "start");
	session_options_init(&record->session);
	record->session.session_name = count > 1 ? arguments[1] : NULL;
	if (status == CLI_OK)
		status = options_parse(&start_grammar, count - 1, arguments + 1, &memory, NULL, &record->command);
	if (status == CLI_OK)
		status = record_settle(record, "start");
	if (status == CLI_OK && record->command[0])
		status = cli_fail("start: %s: not expected here; xheap launch %s %s... runs a command in the session",
				  record->command[0], arguments[1], record->command[0]);
	if (status == CLI_OK)
		status = push_start_check(&memory.push, "start", true);
	if (status == CLI_OK)
		status = start_without_trace(&memory, arguments[1]);
	if (status == CLI_OK && record->limit_ms)
		status = cli_fail("start: --duration is for xheap record; a session lasts until xheap stop %s",
				  arguments[1]);
	if (status == CLI_OK && record->session.until_exit)
		status = cli_fail("start: --until-exit is for xheap record; a session lasts until xheap stop %s",
				  arguments[1]);
	if (status != CLI_OK)
		return status;
	snprintf(file, sizeof(file), "xheap.%s%s.xht", arguments[1], record_is_numbered(record) ? ".%d" : "");
	if (!record->output)
		record->output = file;
	int taken = session_connect(arguments[1], &(struct diag){""});
	if (taken >= 0) {
		close(taken);
		return cli_fail("there is a session %s already", arguments[1]);
	}
	status = record_check_output(record);
	if (status == CLI_OK)
		status = check_pids(record);
	if (status == CLI_OK)
		status = record_set_path(record, arguments[1], getpid());
	record->session.command = arguments[1];
	record->session.is_attached = true;
	record->session.takes_images = record->pids.has_zero;
	if (status == CLI_OK)
		status = record_start_logger(record);
	if (status != CLI_OK)
		return status;
	/* The logger has begun when it answers. */
	status = session_ask(record->control, &(struct control_message){.kind = CONTROL_QUERY});
	bool has_begun = status == CLI_OK;
	if (has_begun && record->pids.count)
		status = record_attach_all(record);
	if (status == CLI_OK)
		status = push_start_begin(&memory.push, arguments[1]);
	if (status == CLI_OK) {
		if (record->session.takes_images)
			image_session_has_begun();
		if (!record->is_quiet)
			start_report(record, arguments[1], memory.push.place);
		return CLI_OK;
	}
	control_send(record->control, &(struct control_message){.kind = CONTROL_STOP});
	if (has_begun) {
		record_wait_for_summary(record);
		record_remove_trace(record);
	}
	return status;
}

/* ---- update ---- */

struct update {
	struct record record; /* -p: all processes of the session from now on */
	struct option_pids added, removed;
	struct controller_update change;
};

#define AT(member) OPTION_AT(struct update, member)

static const struct option update_rows[] = {
	{"pid", .letter = 'p', .type = VALUE_PIDS, AT(record.pids), .value = "PID[,PID...]",
	 .help = "record these processes, and no others"},
	{"add-pid", .type = VALUE_PIDS, AT(added), .value = "PID[,PID...]", .least = 1,
	 .help = "record these processes as well"},
	{"remove-pid", .type = VALUE_PIDS, AT(removed), .value = "PID[,PID...]", .least = 1,
	 .help = "detach from these processes"},
	{.type = VALUE_END},
};

static const struct option_group update_groups[] = {
	{update_rows, 0, false},
	{record_option_rows, offsetof(struct update, record), false},
	{session_option_rows, offsetof(struct update, record.session), false},
	{NULL, 0, false},
};

static const struct option_grammar update_grammar = {.command = "update",
						     .groups = update_groups,
						     .dashes = "--",
						     .takes_abbreviations = true,
						     .shown_flags = OPTION_IS_LIVE};

/* Options that a session has from its start to its end: two are refused, the others have no effect. */
static int check_fixed(const struct session_options *options, const struct session_options *before)
{
	if (options->clock)
		return cli_fail("update: --clock can be set only when a session starts");
	if (options->sample_bytes)
		return cli_fail("update: --sample can be set only when a session starts");
	for (const struct option *row = session_option_rows; row->type != VALUE_END; row++)
		if (row->name && !(row->flags & OPTION_IS_LIVE) && !option_is_same(row, options, before))
			cli_say("update: --%s has no effect: it can be set only when a session starts", row->name);
	return CLI_OK;
}

static int update_parse(struct update *update, int count, char **arguments)
{
	struct record *record = &update->record;
	const struct session_options before = record->session;
	int status = options_parse(&update_grammar, count - 1, arguments + 1, update, NULL, &record->command);
	if (status == CLI_OK)
		status = check_fixed(&record->session, &before);
	if (status == CLI_OK)
		status = record_settle(record, "update");
	if (status == CLI_OK)
		status = session_refuse_words(record->command, "update");
	controller_update_options(&update->change, &record->session, &before);
	return status;
}

static void take_pids(pid_t *to, unsigned *count, const struct option_pids *pids)
{
	memcpy(to, pids->items, pids->count * sizeof(*to));
	*count = pids->count;
}

/* -p names all processes: the session detaches from others, and attaches to those that it does not record yet. */
static int update_do(struct update *update, int socket, const struct controller_state *state)
{
	struct controller_update *change = &update->change;
	const struct record *record = &update->record;
	struct diag diag = {""};
	take_pids(change->added, &change->added_count, &update->added);
	take_pids(change->removed, &change->removed_count, &update->removed);
	int error = record->pids.is_given
			    ? controller_update_set(change, state, record->pids.items, record->pids.count, &diag)
			    : 0;
	for (unsigned i = 0; i < change->added_count && !error; i++)
		error = inject_check(change->added[i], &diag);
	if (!error) {
		struct record_listener listener = {record, 0};
		const struct controller_listener listening = {record_on_message, &listener};
		error = controller_update(socket, change, &listening, &diag);
		if (listener.refusals)
			return CLI_FAILED;
	}
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

static int update_run(int count, char **arguments)
{
	static struct update memory;
	struct update *update = &memory;
	int status = session_take_name(count, arguments, "update");
	if (status != CLI_OK)
		return status;
	int socket = session_connect_to(arguments[1]);
	if (socket < 0)
		return CLI_FAILED;
	struct controller_state state;
	if (session_query(socket, false, &state) != CLI_OK)
		return CLI_FAILED;
	/* Options that are not given keep their values. */
	session_options_from_state(&update->record.session, &state.session);
	update->record.session.session_name = arguments[1];
	status = update_parse(update, count, arguments);
	if (status == CLI_OK)
		status = update_do(update, socket, &state);
	controller_state_fini(&state);
	close(socket);
	return status;
}

const struct command command_start = {.name = "start",
				      .usage = "NAME [-o FILE] [-p PID[,PID...]]... [OPTIONS]",
				      .summary = "begin a session: a recording with a name, of processes that run",
				      .run = start_run,
				      .options = &start_grammar,
				      .help = "The session lasts after this command, until xheap stop NAME. It "
					      "may begin without a process: with\n"
					      "-p 0, or without -p. All processes are recorded, or none. FILE is "
					      "xheap.NAME.xht when -o is not given.\n"
					      "OPTIONS are those of xheap record.\n" SESSION_EXAMPLE};

const struct command command_update = {
	.name = "update",
	.usage = "NAME [-p PID[,PID...]|--add-pid PID...|--remove-pid PID...] [OPTIONS]",
	.summary = "change which processes a session records, and how, while it runs",
	.run = update_run,
	.options = &update_grammar,
	.help = "Options take effect for all processes of the session. Options that are not given keep their values.\n"
		"The whole update is done, or nothing of it.\n" SESSION_EXAMPLE};
