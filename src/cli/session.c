/* SPDX-License-Identifier: MIT */
/*
 * Sessions: recordings with a name, which outlive the command that started them. Each of these commands finds the
 * session's logger by the name, tells it one thing, and prints the answer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/grid.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/record.h"
#include "inject/inject.h"
#include "recorder/recorder.h"
#include "session/clocks.h"
#include "session/controller.h"
#include "session/directory.h"

/* ---- talking ---- */

static void on_message(void *cookie, enum controller_word word, const char *text)
{
	(void)cookie;
	if (word == CONTROLLER_NOTE || word == CONTROLLER_WARNING)
		cli_say("%s", text);
}

static const struct controller_listener listener = {on_message, NULL};

static int connect_to(const char *name)
{
	struct diag diag = {""};
	int socket = session_connect(name, &diag);
	return socket >= 0 ? socket : (cli_fail("%s", diag.text), -1);
}

/* CLI_OK, or CLI_FAILED after a message. */
static int ask(int socket, const struct control_message *message)
{
	struct diag diag = {""};
	return controller_ask(socket, message, &listener, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
}

static int query(int socket, bool with_threads, struct controller_state *state)
{
	struct diag diag = {""};
	return controller_query(socket, with_threads, state, &listener, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
}

/* ---- start ---- */

static int take_name(int count, char **arguments, const char *command)
{
	if (count < 2 || arguments[1][0] == '-')
		return cli_fail("%s: the session's name is missing; see xheap help %s", command, command);
	if (!session_name_is_possible(arguments[1]) ||
	    (!strcmp(command, "start") && !session_name_is_good(arguments[1])))
		return cli_fail(
			"%s: \"%s\" cannot be a session's name: up to 64 bytes without /, not beginning with . or -",
			command, arguments[1]);
	return CLI_OK;
}

static int only_a_name(int count, char **arguments, const char *command)
{
	int status = take_name(count, arguments, command);
	return status == CLI_OK && count > 2
		       ? cli_fail("%s: %s: not expected here; see xheap help %s", command, arguments[2], command)
		       : status;
}

static int check_pids(const struct record *record)
{
	struct diag diag = {""};
	for (unsigned i = 0; i < record->pid_count; i++)
		if (inject_check(record->pids[i], &diag))
			return cli_fail("%s", diag.text);
	return CLI_OK;
}

static void start_tell(const struct record *record, const char *name)
{
	const struct session_options *options = &record->session;
	const struct text size = text_bytes(options->max_file_bytes);
	if (options->file_mode == SESSION_FILE_NONE)
		cli_say("session %s keeps the newest %s; xheap top %s looks at them, xheap stop %s ends it", name,
			size.data, name, name);
	else if (options->file_mode == SESSION_FILE_KEEP)
		fprintf(stderr,
			"xheap: session %s keeps the newest %s, what is live, and sums of the rest; xheap flush %s "
			"writes them to %s, xheap stop %s does so and"
			" ends it\n",
			name, size.data, name, text_shown(record->output), name);
	else if (options->file_mode == SESSION_FILE_FLIGHT)
		cli_say("session %s keeps the newest %s; xheap flush %s writes them to %s, xheap stop %s does so and "
			"ends it",
			name, size.data, name, record->output, name);
	else
		cli_say("session %s records into %s; xheap stop %s ends it", name, record->output, name);
}

static int start_run(int count, char **arguments)
{
	static struct record memory;
	struct record *record = &memory;
	char file[128];
	int status = take_name(count, arguments, "start");
	session_options_init(&record->session);
	record->session.session_name = count > 1 ? arguments[1] : NULL;
	if (status == CLI_OK)
		status = record_parse(record, "start", count - 1, arguments + 1);
	if (status == CLI_OK && record->command[0])
		status = cli_fail("start: %s: not expected here; xheap launch %s %s... runs a command in the session",
				  record->command[0], arguments[1], record->command[0]);
	if (status == CLI_OK && record->limit_ms)
		status = cli_fail("start: --duration is record's; a session lasts until xheap stop %s", arguments[1]);
	if (status == CLI_OK && record->session.until_exit)
		status = cli_fail("start: --until-exit is record's: a session has no command that ends it, it lasts "
				  "until xheap stop %s",
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
	if (status == CLI_OK)
		status = record_start_logger(record);
	if (status != CLI_OK)
		return status;
	/* The logger has begun when it answers. */
	status = ask(record->control, &(struct control_message){.kind = CONTROL_QUERY});
	bool has_begun = status == CLI_OK;
	if (has_begun && record->pid_count)
		status = record_attach_all(record);
	if (status == CLI_OK) {
		if (!record->is_quiet)
			start_tell(record, arguments[1]);
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
	struct record record; /* -p: the set as it shall be */
	struct controller_update change;
};

static int parse_pid_list(const char *option, const char *text, pid_t *pids, unsigned *count)
{
	for (const char *at = text;;) {
		char *end;
		long pid = strtol(at, &end, 10);
		if (end == at || (*end && *end != ',') || pid < 1 || pid > INT32_MAX || *count == CONTROLLER_PIDS_MAX)
			return cli_fail("update: %s %s: not a process's number, or several with commas between them",
					option, text);
		pids[(*count)++] = (pid_t)pid;
		if (!*end)
			return CLI_OK;
		at = end + 1;
	}
}

/* --add-pid and --remove-pid are this command's own; the rest is record's. */
static int update_parse(struct update *update, int count, char **arguments)
{
	char **rest = memory_resize(NULL, (size_t)count + 1, sizeof(*rest));
	int kept = 0, status = CLI_OK;
	rest[kept++] = arguments[1];
	for (int i = 2; i < count && status == CLI_OK; i++) {
		const char *word = arguments[i] + strspn(arguments[i], "-");
		bool is_added = !strcasecmp(word, "add-pid"), is_removed = !strcasecmp(word, "remove-pid");
		if (arguments[i][0] != '-' || (!is_added && !is_removed)) {
			rest[kept++] = arguments[i];
			continue;
		}
		if (++i == count)
			status = cli_fail("update: %s: a value is missing; see xheap help update", arguments[i - 1]);
		else
			status = is_added ? parse_pid_list("--add-pid", arguments[i], update->change.added,
							   &update->change.added_count)
					  : parse_pid_list("--remove-pid", arguments[i], update->change.removed,
							   &update->change.removed_count);
	}
	rest[kept] = NULL;
	/* The words stay: options keep parts of them. */
	if (status == CLI_OK)
		status = record_parse(&update->record, "update", kept, rest);
	if (status == CLI_OK && update->record.command[0])
		status = cli_fail("update: %s: not expected here; see xheap help update", update->record.command[0]);
	if (status == CLI_OK && update->record.session.clock)
		status = cli_fail("update: --clock: what times are taken from is said when a session starts");
	if (status == CLI_OK && update->record.session.sample_bytes)
		status = cli_fail("update: --sample: whether a session takes a sample is said when it starts");
	return status;
}

/* -p replaces the set: what is not in it goes, what is not there comes. */
static int update_do(struct update *update, int socket, const struct controller_state *state)
{
	struct controller_update *change = &update->change;
	const struct record *record = &update->record;
	struct diag diag = {""};
	int error = record->has_pids ? controller_update_set(change, state, record->pids, record->pid_count, &diag) : 0;
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
	int status = take_name(count, arguments, "update");
	if (status != CLI_OK)
		return status;
	int socket = connect_to(arguments[1]);
	if (socket < 0)
		return CLI_FAILED;
	struct controller_state state;
	if (query(socket, false, &state) != CLI_OK)
		return CLI_FAILED;
	/* What is not said stays. */
	struct session_options *options = &update->record.session;
	session_options_init(options);
	options->session_name = arguments[1];
	options->stack_kinds = state.session.options & OPTION_STACKS;
	options->on_full_wait = state.session.options & OPTION_WAIT;
	options->wait_limit_ms = state.session.wait_limit_ms;
	const struct session_options before = *options;
	status = update_parse(update, count, arguments);
	update->change.has_options = options->stack_kinds != before.stack_kinds ||
				     options->on_full_wait != before.on_full_wait ||
				     options->wait_limit_ms != before.wait_limit_ms;
	update->change.options = session_options_word(options);
	update->change.wait_limit_ms = options->wait_limit_ms;
	if (status == CLI_OK)
		status = update_do(update, socket, &state);
	controller_state_fini(&state);
	close(socket);
	return status;
}

/* ---- query and sessions ---- */

static void json_stack_ends(struct json *json, const struct stack_ends *ends)
{
	json_count(json, "whole_stacks", ends->whole);
	json_count(json, "truncated_stacks", ends->truncated);
	json_count(json, "unwindless_stacks", ends->unwindless);
}

static void json_threads(struct json *json, const struct controller_state *state, size_t target)
{
	json_begin_array(json, "thread_rows");
	for (size_t i = 0; i < state->thread_count; i++) {
		const struct control_thread *thread = &state->threads[i].thread;
		if (state->threads[i].target != target)
			continue;
		json_begin_object(json, NULL);
		json_count(json, "tid", thread->tid);
		json_known_text(json, "name", state->threads[i].name);
		json_count(json, "events", thread->events);
		json_count(json, "events_per_second", thread->rate);
		json_stack_ends(json, &thread->ends);
		json_count(json, "waits", thread->waits);
		json_time(json, "wait_us", (int64_t)thread->wait_ns);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_target(struct json *json, const struct controller_state *state, size_t number, bool with_threads)
{
	const struct control_message *target = &state->targets[number];
	json_begin_object(json, NULL);
	json_count(json, "pid", (uint64_t)target->pid);
	json_known_text(json, "command", target->text);
	json_count(json, "processes", target->target.processes);
	json_count(json, "threads", target->target.threads);
	json_count(json, "events", target->target.events);
	json_count(json, "events_per_second", target->target.rate);
	json_count(json, "lost_events", target->target.lost);
	if (target->target.is_limited)
		json_bool(json, "limited", true);
	if (target->target.after)
		json_count(json, "calls_after_end", target->target.after);
	json_count(json, "untraced_calls", target->target.untraced_calls);
	json_stack_ends(json, &target->target.ends);
	json_count(json, "waits", target->target.waits);
	json_time(json, "wait_us", (int64_t)target->target.wait_ns);
	/* A process that has ended, or that the logger may not read, has no resident bytes. */
	if (target->target.resident_bytes) {
		json_count(json, "resident_bytes", target->target.resident_bytes);
		json_time(json, "cpu_us", (int64_t)target->target.cpu_ns);
	}
	if (target->target.pause_ns)
		json_time(json, "pause_us", (int64_t)target->target.pause_ns);
	if (with_threads)
		json_threads(json, state, number);
	json_end_object(json);
}

/* Processes that were detached from, and in which inactive code stays mapped. */
static void json_inactive(struct json *json, const struct controller_state *state)
{
	json_begin_array(json, "inactive");
	for (size_t i = 0; i < state->inactive_count; i++) {
		const struct control_message *inactive = &state->inactive[i];
		json_begin_object(json, NULL);
		json_count(json, "pid", (uint64_t)inactive->pid);
		json_text(json, "command", inactive->text);
		json_count(json, "bytes", inactive->inactive.bytes);
		json_count(json, "threads", inactive->inactive.threads);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_state(struct json *json, const char *name, const struct controller_state *state, bool with_threads)
{
	const struct control_state *session = &state->session;
	json_begin_object(json, NULL);
	json_text(json, "name", name);
	json_bool(json, "alive", state->is_alive);
	if (state->is_alive) {
		json_count(json, "logger_pid", (uint64_t)state->logger_pid);
		json_text(json, "file_mode", session_file_mode_name(session->file_mode));
		if (state->path[0])
			json_text(json, "file", state->path);
		json_text(json, "clock", session_clock_name((enum region_clock)session->clock));
		json_count(json, "max_file", session->max_file_bytes);
		json_count(json, "dropped_events", session->dropped);
		json_count(json, "written_out", session->write_count);
		if (session->folded_bytes) {
			json_count(json, "folded_bytes", session->folded_bytes);
			json_time(json, "folded_until_us", session->folded_until_ns);
		}
		if (session->folding_bytes)
			json_count(json, "folding_bytes", session->folding_bytes);
		json_count(json, "disk_bytes", session->disk_bytes);
		if (session->disk_limit_bytes)
			json_count(json, "disk_limit_bytes", session->disk_limit_bytes);
		json_time(json, "flush_timer_us", (int64_t)session->flush_ms * 1000000);
		json_count(json, "size_bytes", session->size_bytes);
		json_count(json, "events", session->events);
		json_count(json, "lost_events", session->lost);
		if (state->error)
			json_count(json, "calls_after_end", session->after);
		json_count(json, "untraced_calls", session->untraced_calls);
		json_stack_ends(json, &session->ends);
		json_count(json, "waits", session->waits);
		json_time(json, "wait_us", (int64_t)session->wait_ns);
		json_time(json, "logger_cpu_us", (int64_t)session->logger_cpu_ns);
		json_count(json, "logger_bytes", session->logger_bytes);
		json_count(json, "logger_limit_bytes", session->memory_limit_bytes);
		json_count(json, "buffer_size", session->buffer_size);
		json_count(json, "min_buffers", session->buffer_min);
		json_count(json, "max_buffers", session->buffer_max);
		json_count(json, "buffers", session->buffers_now);
		json_count(json, "free_buffers", session->buffers_free);
		json_count(json, "buffers_written", session->buffers_written);
		json_text(json, "on_full", session->options & OPTION_WAIT ? "wait" : "drop");
		if (state->error)
			json_text(json, "error", state->reason);
		json_begin_array(json, "targets");
		for (size_t i = 0; i < state->target_count; i++)
			json_target(json, state, i, with_threads);
		json_end_array(json);
		json_inactive(json, state);
	}
	json_end_object(json);
}

static bool state_is_in_memory(const struct control_state *session)
{
	return session->file_mode == SESSION_FILE_FLIGHT || session->file_mode == SESSION_FILE_NONE;
}

static void text_file(const struct controller_state *state)
{
	const struct control_state *session = &state->session;
	printf("  file mode  %s", session_file_mode_name(session->file_mode));
	if (session->max_file_bytes)
		printf(", at most %s", text_bytes(session->max_file_bytes).data);
	if (session->folded_bytes)
		printf("; folded up to %s, %s", text_duration(session->folded_until_ns).data,
		       text_bytes(session->folded_bytes).data);
	if (session->dropped)
		printf("; %s events of the past not kept", text_count(session->dropped).data);
	if (session->write_count)
		printf("; written out %s time%s, last to %s", text_count(session->write_count).data,
		       session->write_count == 1 ? "" : "s", text_shown(state->path));
	putchar('\n');
}

/* What the recording takes, and what it may take. */
static void text_limits(const struct control_state *session)
{
	bool is_kept = session->file_mode == SESSION_FILE_KEEP;
	printf("  limits  %s %s of ", state_is_in_memory(session) ? "kept" : "disk",
	       text_bytes(session->disk_bytes).data);
	printf("%s; logger %s", session->disk_limit_bytes ? text_bytes(session->disk_limit_bytes).data : "any size",
	       text_bytes(session->logger_bytes).data);
	printf(" of %s%s\n", text_bytes(session->memory_limit_bytes).data,
	       is_kept ? "; programs wait while folding is behind" : "");
	if (session->folding_bytes)
		printf("  folding  a process has %s of memory\n", text_bytes(session->folding_bytes).data);
}

static void text_threads(const struct controller_state *state)
{
	struct grid grid = {.row_count = 0};
	static const char *const titles[] = {">pid",        ">thread", ">events", ">a second", ">truncated",
					     ">unwindless", ">waits",  ">waited", "name"};
	puts("");
	grid_columns(&grid, sizeof(titles) / sizeof(*titles), titles);
	for (size_t i = 0; i < state->thread_count; i++) {
		const struct control_thread *thread = &state->threads[i].thread;
		char pid[16], tid[16];
		snprintf(pid, sizeof(pid), "%d", (int)state->targets[state->threads[i].target].pid);
		snprintf(tid, sizeof(tid), "%" PRIu32, thread->tid);
		grid_row(&grid);
		grid_cell(&grid, pid);
		grid_cell(&grid, tid);
		grid_cell(&grid, text_count(thread->events).data);
		grid_cell(&grid, text_count(thread->rate).data);
		grid_cell(&grid, text_count(thread->ends.truncated).data);
		grid_cell(&grid, text_count(thread->ends.unwindless).data);
		grid_cell(&grid, text_count(thread->waits).data);
		grid_cell(&grid, text_duration((int64_t)thread->wait_ns).data);
		grid_cell(&grid, state->threads[i].name[0] ? state->threads[i].name : "-");
	}
	grid_print(&grid, cli_stdout(), 2);
	grid_fini(&grid);
}

/* Calls without room, which are no events. */
static void text_untraced(const struct control_state *session)
{
	if (session->untraced_calls)
		printf("  %s calls of threads and processes that found no room are missing\n",
		       text_count(session->untraced_calls).data);
}

static void text_state(const char *name, const struct controller_state *state)
{
	const struct control_state *session = &state->session;
	bool is_in_memory = state_is_in_memory(session);
	printf("%s: records into %s\n", name, is_in_memory ? "memory" : text_shown(state->path));
	printf("  %s events, %s lost, %s %s\n", text_count(session->events).data, text_count(session->lost).data,
	       text_bytes(session->size_bytes).data, is_in_memory ? "kept" : "written");
	printf("  stacks  %s whole, %s truncated, %s without unwind data\n", text_count(session->ends.whole).data,
	       text_count(session->ends.truncated).data, text_count(session->ends.unwindless).data);
	text_untraced(session);
	if (session->after)
		printf("  recording has ended: %s calls since, in no number\n", text_count(session->after).data);
	text_file(state);
	text_limits(session);
	printf("  buffers  %" PRIu32 " of %s, %" PRIu32 " free; %" PRIu32 " to %" PRIu32 " a process; %s written\n",
	       session->buffers_now, text_bytes(session->buffer_size).data, session->buffers_free, session->buffer_min,
	       session->buffer_max, text_count(session->buffers_written).data);
	printf("  when full  %s; %s waits, %s in all\n", session->options & OPTION_WAIT ? "wait" : "drop",
	       text_count(session->waits).data, text_duration((int64_t)session->wait_ns).data);
	printf("  logger  pid %d, %s of CPU, %s; clock %s\n", (int)state->logger_pid,
	       text_duration((int64_t)session->logger_cpu_ns).data, text_bytes(session->logger_bytes).data,
	       session_clock_name((enum region_clock)session->clock));
	for (size_t i = 0; i < state->inactive_count; i++)
		printf("  detached  process %d (%s): inactive code stays mapped, %s, %" PRIu32 " threads in it\n",
		       (int)state->inactive[i].pid, text_shown(state->inactive[i].text),
		       text_bytes(state->inactive[i].inactive.bytes).data, state->inactive[i].inactive.threads);
	if (state->error)
		printf("  ended recording: %s\n", text_shown(state->reason));
	if (!state->target_count) {
		printf("  no targets: xheap update %s --add-pid PID, or xheap launch %s -- COMMAND\n", name, name);
		return;
	}
	puts("");
	struct grid grid = {.row_count = 0};
	static const char *const titles[] = {">pid",   ">processes", ">threads",    ">events", ">a second",
					     ">lost",  ">truncated", ">unwindless", ">waits",  ">CPU",
					     ">stood", ">resident",  "command"};
	grid_columns(&grid, sizeof(titles) / sizeof(*titles), titles);
	for (size_t i = 0; i < state->target_count; i++) {
		const struct control_target *target = &state->targets[i].target;
		char pid[16];
		snprintf(pid, sizeof(pid), "%d", (int)state->targets[i].pid);
		grid_row(&grid);
		grid_cell(&grid, pid);
		grid_cell(&grid, text_count(target->processes).data);
		grid_cell(&grid, text_count(target->threads).data);
		grid_cell(&grid, text_count(target->events).data);
		grid_cell(&grid, text_count(target->rate).data);
		grid_cell(&grid, text_count(target->lost).data);
		grid_cell(&grid, text_count(target->ends.truncated).data);
		grid_cell(&grid, text_count(target->ends.unwindless).data);
		grid_cell(&grid, text_count(target->waits).data);
		grid_cell(&grid, target->resident_bytes ? text_duration((int64_t)target->cpu_ns).data : "-");
		grid_cell(&grid, target->pause_ns ? text_duration((int64_t)target->pause_ns).data : "-");
		grid_cell(&grid, target->resident_bytes ? text_bytes(target->resident_bytes).data : "-");
		grid_cell(&grid, state->targets[i].text[0] ? state->targets[i].text : "-");
	}
	grid_print(&grid, cli_stdout(), 2);
	grid_fini(&grid);
	for (size_t i = 0; i < state->target_count; i++)
		if (state->targets[i].target.is_limited)
			printf("  process %d has more stacks, threads or heaps than can be kept: later ones are cut or "
			       "lost\n",
			       (int)state->targets[i].pid);
	if (state->thread_count)
		text_threads(state);
}

/* Options of query and sessions: --format, and where with_threads is given --threads. CLI_OK, or CLI_FAILED after a
   message. */
static int take_format(int count, char **arguments, int first, const char *command, bool *is_json, bool *with_threads)
{
	*is_json = false;
	for (int i = first; i < count; i++) {
		const char *word = arguments[i] + strspn(arguments[i], "-");
		if (with_threads && arguments[i][0] == '-' && !strcasecmp(word, "threads")) {
			*with_threads = true;
			continue;
		}
		if (arguments[i][0] != '-' || strcasecmp(word, "format") != 0)
			return cli_fail("%s: %s: not expected here; see xheap help %s", command, arguments[i], command);
		if (++i == count || (strcasecmp(arguments[i], "json") != 0 && strcasecmp(arguments[i], "text") != 0))
			return cli_fail("%s: --format: text or json", command);
		*is_json = !strcasecmp(arguments[i], "json");
	}
	return CLI_OK;
}

static int query_run(int count, char **arguments)
{
	bool is_json, with_threads = false;
	int status = take_name(count, arguments, "query");
	if (status == CLI_OK)
		status = take_format(count, arguments, 2, "query", &is_json, &with_threads);
	if (status != CLI_OK)
		return status;
	struct controller_state state;
	int socket = connect_to(arguments[1]);
	if (socket < 0)
		return CLI_FAILED;
	status = query(socket, with_threads, &state);
	if (status == CLI_OK && is_json) {
		struct json json = {.out = cli_stdout(), .line_depth = 2};
		json_state(&json, arguments[1], &state, with_threads);
		json_end(&json);
	} else if (status == CLI_OK) {
		text_state(arguments[1], &state);
	}
	controller_state_fini(&state);
	close(socket);
	return status;
}

struct listed {
	char *name;
	struct controller_state state;
	bool had_no_memory;
};
struct session_listing {
	struct listed *items;
	size_t count, capacity;
};

static void listing_add(void *cookie, const char *name)
{
	struct session_listing *listing = cookie;
	memory_grow(listing->items, listing->count, listing->capacity);
	struct listed *listed = &listing->items[listing->count++];
	*listed = (struct listed){.name = strdup(name)};
	int socket = session_connect(name, &(struct diag){""});
	listed->had_no_memory = socket == -ENOMEM;
	if (socket < 0)
		return;
	controller_query(socket, false, &listed->state, &listener, &(struct diag){""});
	close(socket);
}

static int sessions_run(int count, char **arguments)
{
	struct session_listing listing = {NULL, 0, 0};
	bool is_json;
	int status = take_format(count, arguments, 1, "sessions", &is_json, NULL);
	if (status != CLI_OK)
		return status;
	session_each(listing_add, &listing);
	struct json json = {.out = cli_stdout(), .line_depth = 3};
	if (is_json) {
		json_begin_array(&json, NULL);
	} else if (!listing.count) {
		puts("no sessions; xheap start NAME -p PID begins one");
	}
	for (size_t i = 0; i < listing.count; i++) {
		const char *name = listing.items[i].name;
		struct controller_state *state = &listing.items[i].state;
		if (is_json)
			json_state(&json, name, state, false);
		else if (state->is_alive)
			printf("%s: %zu target%s, %s events, %s lost, %s\n", name, state->target_count,
			       state->target_count == 1 ? "" : "s", text_count(state->session.events).data,
			       text_count(state->session.lost).data,
			       state_is_in_memory(&state->session) ? "in memory" : state->path);
		else
			printf("%s: its logger %s; xheap recover saves what it recorded\n", name,
			       listing.items[i].had_no_memory ? "ended for want of memory" : "is gone");
		controller_state_fini(state);
		free(listing.items[i].name);
	}
	if (is_json) {
		json_end_array(&json);
		json_end(&json);
	}
	free(listing.items);
	return CLI_OK;
}

/* ---- flush, stop, launch ---- */

/* Write what there is, or only for a look; where it can be read then, to be freed. NULL after a message. */
static char *flush(const char *name, bool is_snapshot, struct control_state *session)
{
	struct control_message answer = {.value = 0};
	struct controller_state state = {.is_alive = false};
	int socket = connect_to(name), status = socket >= 0 ? CLI_OK : CLI_FAILED;
	if (status == CLI_OK &&
	    !control_send(socket, &(struct control_message){.kind = CONTROL_FLUSH, .value = is_snapshot}))
		status = cli_fail("the session's logger is gone");
	/* What is in memory may take a slow disk a while. */
	while (status == CLI_OK && answer.kind != CONTROL_DONE)
		if (control_receive(socket, &answer, -1) < 0)
			status = cli_fail("the session's logger is gone");
	if (status == CLI_OK && answer.value)
		status = cli_fail("%s", answer.text[0] ? answer.text : strerror((int)-answer.value));
	if (status == CLI_OK)
		status = query(socket, false, &state);
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

static int flush_run(int count, char **arguments)
{
	struct control_state session;
	int status = only_a_name(count, arguments, "flush");
	char *path = status == CLI_OK ? flush(arguments[1], false, &session) : NULL;
	if (!path)
		return CLI_FAILED;
	printf("%s events are in %s\n", text_count(session.events - session.dropped).data, path);
	free(path);
	return CLI_OK;
}

static int stop_run(int count, char **arguments)
{
	static struct record memory;
	struct record *record = &memory;
	struct controller_state state;
	int status = only_a_name(count, arguments, "stop");
	record->control = status == CLI_OK ? connect_to(arguments[1]) : -1;
	if (record->control < 0 || query(record->control, false, &state) != CLI_OK)
		return CLI_FAILED;
	snprintf(record->trace_path, sizeof(record->trace_path), "%s", state.path);
	record->output = record->trace_path;
	session_options_init(&record->session);
	record->session.file_mode = state.session.file_mode;
	controller_state_fini(&state);
	control_send(record->control, &(struct control_message){.kind = CONTROL_STOP});
	record_wait_for_summary(record);
	if (!record->has_summary)
		return cli_fail("the logger of session %s has died; xheap recover saves what it recorded",
				arguments[1]);
	record_print_summary(record, 0);
	status = record->summary.error ? CLI_FAILED : CLI_OK;
	return status;
}

static int launch_run(int count, char **arguments)
{
	static struct record memory;
	struct record *record = &memory;
	struct controller_state state;
	int status = take_name(count, arguments, "launch"), first = count > 2 && !strcmp(arguments[2], "--") ? 3 : 2;
	if (status == CLI_OK && first >= count)
		status = cli_fail("launch: no command: xheap launch NAME [--] COMMAND [ARG...]");
	record->control = status == CLI_OK ? connect_to(arguments[1]) : -1;
	if (record->control < 0 || query(record->control, false, &state) != CLI_OK)
		return CLI_FAILED;
	record->logger_pid = state.logger_pid;
	controller_state_fini(&state);
	record->command = arguments + first;
	session_options_init(&record->session);
	return record_launch(record);
}

/* ---- the commands ---- */

#define SESSION_EXAMPLE \
	"\nExample:\n  xheap start web -p $(pidof nginx | tr ' ' ,)\n  xheap query web\n  xheap stop web\n"

const struct command command_start = {.name = "start",
				      .usage = "NAME [-o FILE] [-p PID[,PID...]]... [OPTIONS]",
				      .summary = "begin a session: a recording with a name, of processes that run",
				      .run = start_run,
				      .help = "The session goes on when this command ends, until xheap stop NAME. It "
					      "may have no process yet: -p 0, or no -p.\n"
					      "All processes are recorded, or none. FILE is xheap.NAME.xht if nothing "
					      "else is said; OPTIONS are those of xheap record.\n" SESSION_EXAMPLE};
const struct command command_update = {
	.name = "update",
	.usage = "NAME [-p PID[,PID...]|--add-pid PID...|--remove-pid PID...] [OPTIONS]",
	.summary = "change what a session records, and how, while it does",
	.run = update_run,
	.help = "  -p PID...           record these, and no others\n"
		"  --add-pid PID...    these, too\n"
		"  --remove-pid PID... let go of these\n"
		"  --stackwalk KINDS, --on-full wait|drop, --wait-limit TIME   as for xheap record; for all that run, "
		"too\n"
		"What is not said stays. All of it is done, or nothing.\n" SESSION_EXAMPLE};
const struct command command_query = {.name = "query",
				      .usage = "NAME [--threads] [--format text|json]",
				      .summary = "say what a session has recorded and what it costs",
				      .run = query_run,
				      .help = "Events, losses, buffers, waits, what the logger costs; and for each "
					      "process its events, events a second, threads,\n"
					      "truncated stacks, waits, CPU time, memory, and for how long all its "
					      "threads stood when it was attached to.\n"
					      "Events a second are of the last seconds, or since the last flush or "
					      "query where --flush-timer is longer.\n\n"
					      "--threads says the same of each thread that lives.\n" SESSION_EXAMPLE};
const struct command command_sessions = {
	.name = "sessions",
	.usage = "[--format text|json]",
	.summary = "list the sessions",
	.run = sessions_run,
	.help = "Those of this user; root is told of those of others, too, as UID/NAME.\n" SESSION_EXAMPLE};
const struct command command_flush = {
	.name = "flush",
	.usage = "NAME",
	.summary = "write all that a session has recorded so far into its trace",
	.run = flush_run,
	.help = "The trace can be read then, up to that moment, while the session goes on.\n" SESSION_EXAMPLE};
const struct command command_stop = {.name = "stop",
				     .usage = "NAME",
				     .summary = "let go of a session's processes, and end its trace",
				     .run = stop_run,
				     .help = "The processes run on.\n" SESSION_EXAMPLE};
const struct command command_launch = {.name = "launch",
				       .usage = "NAME [--] COMMAND [ARG...]",
				       .summary = "run a command in a session, recorded from its first instruction",
				       .run = launch_run,
				       .help = "The exit status is COMMAND's own (128 + signal if it was "
					       "killed).\n\nExample:\n  xheap launch web -- curl -s localhost\n"};
