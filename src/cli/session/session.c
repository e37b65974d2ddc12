/* SPDX-License-Identifier: MIT */
/*
 * Sessions: recordings with a name, which outlive the command that started them. Each command of a session
 * finds its logger by the name, sends a message, and prints the answer. Here are flush, stop and launch;
 * session_start.c has start and update, session_query.c query and sessions.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/record/record.h"
#include "cli/record/record_launch.h"
#include "cli/record/record_options.h"
#include "cli/record/record_summary.h"
#include "cli/record/recording.h"
#include "cli/session/session_talk.h"
#include "push/push_queue.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/control/option_rows.h"
#include "session/directory/directory.h"

static int only_a_name(int count, char **arguments, const char *command)
{
	int status = session_take_name(count, arguments, command);
	return status == CLI_OK ? session_refuse_words(arguments + 2, command) : status;
}

/* Write what there is, or only for a look; where it can be read then, to be freed. NULL after a message. */
static char *flush(const char *name, bool is_snapshot, struct control_state *session)
{
	struct control_message answer = {.value = 0};
	struct controller_state state = {.is_alive = false};
	int socket = session_connect_to(name);
	const struct control_message message = {.kind = CONTROL_FLUSH, .value = is_snapshot};
	int status = socket >= 0 ? session_answer(socket, &message, &answer) : CLI_FAILED;
	if (status == CLI_OK)
		status = session_query(socket, false, &state);
	if (socket >= 0)
		close(socket);
	*session = state.session;
	controller_state_fini(&state);
	return status == CLI_OK ? strdup(answer.text) : NULL;
}

char *cli_session_trace(const char *name)
{
	struct control_state session;
	return flush(name, true, &session);
}

static bool is_searching(const struct controller_state *state, uint32_t pid)
{
	for (size_t i = 0; i < state->target_count; i++)
		if (state->targets[i].pid == (int)pid)
			return state->targets[i].target.is_searching;
	return false;
}

/* Wait until the session knows the blocks that the process had before the attach. Its heaps are read for them, which
   takes milliseconds as a rule. */
static int searched_await(const char *name, uint32_t pid)
{
	enum { PAUSE_US = 20000, TRIES = 3000 };
	struct controller_state state = {.is_alive = false};
	int socket = session_connect_to(name);
	int status = socket >= 0 ? CLI_OK : CLI_FAILED;
	bool is_waiting = status == CLI_OK;
	for (int i = 0; i < TRIES && is_waiting; i++) {
		if (i)
			usleep(PAUSE_US);
		status = session_query(socket, false, &state);
		is_waiting = status == CLI_OK && is_searching(&state, pid);
		controller_state_fini(&state);
	}
	if (socket >= 0)
		close(socket);
	if (is_waiting)
		cli_say("process %s: its blocks from before the attach are not known yet, and count as free memory",
			text_pid(pid).data);
	return status;
}

char *cli_process_trace(uint32_t pid, char **session)
{
	char name[600];
	*session = NULL;
	struct proc_life life;
	bool is_found = session_of_process((pid_t)pid, name, sizeof(name));
	if (!proc_read_life((pid_t)pid, &life))
		cli_fail("-p: there is no process %s", text_pid(pid).data);
	else if (!is_found)
		cli_fail("process %s is not recorded: xheap start NAME -p %s begins a session", text_pid(pid).data,
			 text_pid(pid).data);
	else if (name[0] != '/')
		return searched_await(name, pid) == CLI_OK ? cli_session_trace(*session = strdup(name)) : NULL;
	/* The path of another user's session leads anywhere. */
	else if (proc_status_value((pid_t)pid, "Uid") == (int64_t)geteuid())
		return strdup(name);
	else
		cli_fail("process %s is recorded by another user, to %s", text_pid(pid).data, text_shown(name));
	return NULL;
}

static int flush_run(int count, char **arguments)
{
	struct control_state session;
	int status = only_a_name(count, arguments, "flush");
	char *path = status == CLI_OK ? flush(arguments[1], false, &session) : NULL;
	if (!path)
		return CLI_FAILED;
	printf("%s events are in %s\n", text_count(session.events - session.dropped_events).data, text_shown(path));
	free(path);
	return CLI_OK;
}

struct stop_options {
	struct session_words words;
	struct record record;
};

static const struct option_group stop_groups[] = {{record_quiet_rows, offsetof(struct stop_options, record), false},
						  {NULL, 0, false}};
static const struct option_grammar stop_grammar = {.command = "stop", .groups = stop_groups, .dashes = "--"};

/* How long the session has recorded, by the clock of the system. */
static uint64_t ran_ns(const struct control_state *session)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	const int64_t age_ns = now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec - session->started_realtime_ns;
	return age_ns > 0 ? (uint64_t)age_ns : 0;
}

static int stop_run(int count, char **arguments)
{
	static struct stop_options options;
	struct record *record = &options.record;
	struct controller_state state;
	struct diag diag = {""};
	int status = session_take_words(&stop_grammar, count, arguments, &options.words);
	const char *name = options.words.name;
	record->control = status == CLI_OK ? session_connect_to(name) : -1;
	if (record->control < 0 || session_query(record->control, false, &state) != CLI_OK)
		return CLI_FAILED;
	snprintf(record->trace_path, sizeof(record->trace_path), "%s", state.path);
	record->output = record->trace_path;
	session_options_init(&record->session);
	record->session.file_mode = push_trace_is_own(name, state.path) ? SESSION_FILE_NONE : state.session.file_mode;
	record->session.index = state.session.index;
	record->run_ns = ran_ns(&state.session);
	/* Another user's reports have indexes of their own. */
	record->is_of_another = proc_status_value(state.logger_pid, "Uid") != (int64_t)geteuid();
	controller_state_fini(&state);
	control_send(record->control, &(struct control_message){.kind = CONTROL_STOP});
	if (record_wait_for_session(record, &diag))
		return cli_fail("session %s is not stopped: %s", name, diag.text);
	if (!record->has_summary)
		return cli_fail("the logger of session %s has died; xheap recover saves what it recorded", name);
	if (record->summary.error)
		controller_await_end(record->control);
	record_print_summary(record, 0);
	return controller_is_failure(&record->summary) ? CLI_FAILED : CLI_OK;
}

static int launch_run(int count, char **arguments)
{
	static struct record memory;
	struct record *record = &memory;
	struct controller_state state;
	int status = session_take_name(count, arguments, "launch"),
	    first = count > 2 && !strcmp(arguments[2], "--") ? 3 : 2;
	if (status == CLI_OK && first >= count)
		status = cli_fail("launch: no command: xheap launch NAME [--] COMMAND [ARG...]");
	record->control = status == CLI_OK ? session_connect_to(arguments[1]) : -1;
	if (record->control < 0 || session_query(record->control, false, &state) != CLI_OK)
		return CLI_FAILED;
	record->logger_pid = state.logger_pid;
	controller_state_fini(&state);
	record->command = arguments + first;
	session_options_init(&record->session);
	return record_launch_in_session(record);
}

const struct command command_flush = {
	.name = "flush",
	.usage = "NAME",
	.summary = "write all that a session has recorded so far into its trace",
	.run = flush_run,
	.help = "The trace can be read afterwards, up to this moment, while the session records on.\n" SESSION_EXAMPLE};

const struct command command_stop = {.name = "stop",
				     .usage = "NAME [-q]",
				     .summary = "detach from a session's processes, and end its trace",
				     .run = stop_run,
				     .options = &stop_grammar,
				     .help = "The processes run on.\n" SESSION_EXAMPLE};

const struct command command_launch = {
	.name = "launch",
	.usage = "NAME [--] COMMAND [ARG...]",
	.summary = "run a command in a session, recorded from its first instruction",
	.run = launch_run,
	.help = "The exit status is that of COMMAND, or 128 and the number of the signal that killed it.\n\n"
		"Example:\n  xheap launch web -- curl -s localhost\n"};
