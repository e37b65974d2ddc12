/* SPDX-License-Identifier: MIT */
/* The state of a session as JSON and as text: what xheap query prints. */
#include "cli/session/session_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/list_field.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/layout_options.h"
#include "push/push_queue.h"
#include "session/control/clocks.h"
#include "session/control/option_rows.h"
#include "session/control/options.h"

/* ---- fields ---- */

/* A thread that is live. */
struct thread_row {
	uint32_t pid; /* of its target */
	struct controller_thread of;
};

#define AT(kind, member) FIELD(kind, struct thread_row, member)
/* docs/schema/query.json $defs/thread */
static const struct list_field thread_fields[] = {
	{">pid", NULL, AT(ID, pid)},
	{">thread", "tid", AT(ID, of.thread.tid)},
	{NULL, "name", AT(CHARS, of.name), .may_be_unset = true},
	{">events", "events", AT(COUNT, of.thread.events), .rank = 1},
	{">a second", "events_per_second", AT(COUNT, of.thread.rate), .rank = 2},
	{NULL, "whole_stacks", AT(COUNT, of.thread.ends.whole)},
	{">truncated", "truncated_stacks", AT(COUNT, of.thread.ends.truncated), .rank = 5},
	{">unwindless", "unwindless_stacks", AT(COUNT, of.thread.ends.unwindless), .rank = 6},
	{">waits", "waits", AT(COUNT, of.thread.waits), .rank = 3},
	{">waited", "wait_us", AT(TIME, of.thread.wait_ns), .rank = 4},
	{"name", NULL, AT(CHARS, of.name), .may_be_unset = true, .may_be_cut = true},
	{0},
};
#undef AT

/* A process that has ended, or that the logger may not read, has no resident bytes. */
static bool is_readable(const void *record)
{
	return ((const struct control_message *)record)->target.resident_bytes > 0;
}

#define AT(kind, member) FIELD(kind, struct control_message, member)
/* docs/schema/query.json $defs/target, but thread_rows */
static const struct list_field target_fields[] = {
	{">pid", "pid", AT(ID, pid)},
	{NULL, "command", AT(CHARS, text), .may_be_unset = true},
	{">processes", "processes", AT(COUNT, target.processes), .rank = 8},
	{">threads", "threads", AT(COUNT, target.threads), .rank = 5},
	{">events", "events", AT(COUNT, target.events), .rank = 1},
	{">a second", "events_per_second", AT(COUNT, target.rate), .rank = 2},
	{">lost", "lost_events", AT(COUNT, target.lost_events), .rank = 4},
	{NULL, "limited", AT(FLAG, target.is_limited), .may_be_unset = true},
	{NULL, "calls_after_end", AT(COUNT, target.calls_after_end), .may_be_unset = true},
	{NULL, "untraced_calls", AT(COUNT, target.untraced_calls)},
	{NULL, "whole_stacks", AT(COUNT, target.ends.whole)},
	{">truncated", "truncated_stacks", AT(COUNT, target.ends.truncated), .rank = 9},
	{">unwindless", "unwindless_stacks", AT(COUNT, target.ends.unwindless), .rank = 10},
	{">waits", "waits", AT(COUNT, target.waits), .rank = 7},
	{NULL, "wait_us", AT(TIME, target.wait_ns)},
	{NULL, "resident_bytes", AT(BYTES, target.resident_bytes), .may_be_unset = true},
	{">CPU", "cpu_us", AT(TIME, target.cpu_ns), .is_known = is_readable, .rank = 6},
	{">paused", "pause_us", AT(TIME, target.pause_ns), .may_be_unset = true, .rank = 11},
	{">resident", NULL, AT(BYTES, target.resident_bytes), .may_be_unset = true, .rank = 3},
	{"command", NULL, AT(CHARS, text), .may_be_unset = true, .may_be_cut = true},
	{0},
};

/* A detached process in which inactive code stays mapped: docs/schema/common.json $defs/inactive */
static const struct list_field inactive_fields[] = {
	{NULL, "pid", AT(ID, pid)},
	{NULL, "command", AT(CHARS, text)},
	{NULL, "bytes", AT(BYTES, inactive.bytes)},
	{NULL, "threads", AT(COUNT, inactive.threads)},
	{0},
};
#undef AT

static const char *on_full_word(const void *record)
{
	const struct controller_state *state = record;
	struct session_options options;
	session_options_from_state(&options, &state->session);
	return options.on_full_wait ? "wait" : "drop";
}

static const char *file_mode_word(const void *record)
{
	return session_file_mode_name(((const struct controller_state *)record)->session.file_mode);
}

static const char *clock_word(const void *record)
{
	return session_clock_name((enum region_clock)((const struct controller_state *)record)->session.clock);
}

static bool has_ended(const void *record)
{
	return ((const struct controller_state *)record)->error != 0;
}

static bool is_folded(const void *record)
{
	return ((const struct controller_state *)record)->session.folded_bytes > 0;
}

/* When a number of the session is known. */
#define KNOWN_ALWAYS .is_known = NULL
#define KNOWN_NOT_ZERO .may_be_unset = true
#define KNOWN_ENDED .is_known = has_ended
#define KNOWN_FOLDED .is_known = is_folded

#define AT(kind, member) FIELD(kind, struct controller_state, member)
/* docs/schema/query.json, but name, alive, targets, inactive, push */
static const struct list_field session_fields[] = {
	{NULL, "logger_pid", AT(ID, logger_pid)},
	{NULL, "file_mode", .kind = FIELD_WORD, .word = file_mode_word},
	{NULL, "file", AT(CHARS, path), .may_be_unset = true},
	{NULL, "clock", .kind = FIELD_WORD, .word = clock_word},
#define X(type, name, kind, key, known, help) {NULL, key, AT(kind, session.name), KNOWN_##known},
	SESSION_NUMBERS(X, X)
#undef X
		{NULL, "on_full", .kind = FIELD_WORD, .word = on_full_word},
	{NULL, "error", AT(CHARS, reason), .is_known = has_ended},
	{0},
};
#undef AT

#define AT(kind, member) FIELD(kind, struct push_counts, member)
/* docs/schema/query.json $defs/push */
static const struct list_field push_fields[] = {
	{NULL, "place", AT(CHARS, place)},
	{NULL, "pushed", AT(COUNT, pushed)},
	{NULL, "waiting", AT(COUNT, waiting)},
	{NULL, "waiting_bytes", AT(BYTES, waiting_bytes)},
	{NULL, "dropped", AT(COUNT, dropped)},
	{NULL, "error", AT(CHARS, error), .may_be_unset = true},
	{0},
};
#undef AT

/* What is pushed of the session, by this user. */
static bool push_find(const char *name, const struct controller_state *state, struct push_counts *counts)
{
	char path[CACHE_PATH_BYTES];
	return !strchr(name, '/') && !push_queue_path(path, name, false, &(struct diag){""}) &&
	       push_status_read(path, counts) && counts->logger == (uint64_t)state->logger_pid;
}

static struct thread_row thread_row(const struct controller_state *state, size_t i)
{
	const struct controller_thread *thread = &state->threads[i];
	return (struct thread_row){(uint32_t)state->targets[thread->target].pid, *thread};
}

/* ---- JSON ---- */

static void threads_json(struct json *json, const struct controller_state *state, size_t target)
{
	json_begin_array(json, "thread_rows");
	for (size_t i = 0; i < state->thread_count; i++) {
		const struct thread_row row = thread_row(state, i);
		if (row.of.target == target)
			list_field_json_object(json, thread_fields, &row);
	}
	json_end_array(json);
}

static void push_json(struct json *json, const char *name, const struct controller_state *state)
{
	struct push_counts counts;
	if (!push_find(name, state, &counts))
		return;
	json_begin_object(json, "push");
	list_field_json(json, push_fields, &counts);
	json_end_object(json);
}

void session_state_json(struct json *json, const char *name, const struct controller_state *state, bool with_threads)
{
	json_begin_object(json, NULL);
	json_text(json, "name", name);
	json_bool(json, "alive", state->is_alive);
	if (state->is_alive) {
		list_field_json(json, session_fields, state);
		json_begin_array(json, "targets");
		for (size_t i = 0; i < state->target_count; i++) {
			json_begin_object(json, NULL);
			list_field_json(json, target_fields, &state->targets[i]);
			if (with_threads)
				threads_json(json, state, i);
			json_end_object(json);
		}
		json_end_array(json);
		json_begin_array(json, "inactive");
		for (size_t i = 0; i < state->inactive_count; i++)
			list_field_json_object(json, inactive_fields, &state->inactive[i]);
		json_end_array(json);
		push_json(json, name, state);
	}
	json_end_object(json);
}

/* ---- text ---- */

bool session_state_is_in_memory(const struct control_state *session)
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
	if (session->dropped_events)
		printf("; %s older events were not kept", text_count(session->dropped_events).data);
	if (session->write_count)
		printf("; written out %s time%s, last to %s", text_count(session->write_count).data,
		       session->write_count == 1 ? "" : "s", text_shown(state->path));
	putchar('\n');
}

/* The sizes of the recording, and their limits. */
static void text_limits(const struct control_state *session)
{
	bool is_kept = session->file_mode == SESSION_FILE_KEEP;
	printf("  limits  %s %s of ", session_state_is_in_memory(session) ? "kept" : "disk",
	       text_bytes(session->disk_bytes).data);
	printf("%s; logger %s", session->disk_limit_bytes ? text_bytes(session->disk_limit_bytes).data : "any size",
	       text_bytes(session->logger_bytes).data);
	printf(" of %s%s\n", text_bytes(session->logger_limit_bytes).data,
	       is_kept ? "; programs wait when folding is late" : "");
	if (session->folding_bytes)
		printf("  folding  a process has %s of memory\n", text_bytes(session->folding_bytes).data);
}

/* A terminal gets the columns that fit; a pipe gets all. */
static struct grid grid_of_terminal(void)
{
	return (struct grid){.layout = {.width = cli_terminal_width(STDOUT_FILENO), .has_unicode = text_has_unicode()},
			     .is_of_terminal = true};
}

static void text_threads(const struct controller_state *state)
{
	struct grid grid = grid_of_terminal();
	puts("");
	list_field_columns(&grid, thread_fields);
	for (size_t i = 0; i < state->thread_count; i++) {
		const struct thread_row row = thread_row(state, i);
		list_field_row(&grid, thread_fields, &row);
	}
	grid_print(&grid, cli_stdout(), 2);
	grid_fini(&grid);
}

/* Calls that were not recorded for want of room: they are no events. */
static void text_untraced(const struct control_state *session)
{
	if (session->untraced_calls)
		printf("  %s calls of threads and processes that found no room are missing\n",
		       text_count(session->untraced_calls).data);
}

static void text_push(const char *name, const struct controller_state *state)
{
	struct push_counts counts;
	if (!push_find(name, state, &counts))
		return;
	printf("  pushes to %s: %s sent, %s waiting", text_shown(counts.place), text_count(counts.pushed).data,
	       text_count(counts.waiting).data);
	if (counts.waiting)
		printf(" (%s)", text_bytes(counts.waiting_bytes).data);
	printf(", %s dropped", text_count(counts.dropped).data);
	printf(counts.error[0] ? "; %s\n" : "\n", text_shown(counts.error));
}

void session_state_targets(const struct controller_state *state, const struct text_layout *layout, struct sink *out)
{
	struct grid grid = {.layout = *layout, .is_of_terminal = true};
	list_field_columns(&grid, target_fields);
	for (size_t i = 0; i < state->target_count; i++)
		list_field_row(&grid, target_fields, &state->targets[i]);
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

void session_state_text(const char *name, const struct controller_state *state)
{
	const struct control_state *session = &state->session;
	bool is_in_memory = session_state_is_in_memory(session);
	printf("%s: records into %s\n", name, is_in_memory ? "memory" : text_shown(state->path));
	printf("  %s events, %s lost, %s %s\n", text_count(session->events).data, text_count(session->lost_events).data,
	       text_bytes(session->size_bytes).data, is_in_memory ? "kept" : "written");
	printf("  stacks  %s whole, %s truncated, %s without unwind data\n", text_count(session->whole_stacks).data,
	       text_count(session->truncated_stacks).data, text_count(session->unwindless_stacks).data);
	text_untraced(session);
	if (session->calls_after_end)
		printf("  recording has ended: %s later calls are not counted\n",
		       text_count(session->calls_after_end).data);
	text_file(state);
	text_limits(session);
	printf("  buffers  %" PRIu32 " of %s, %" PRIu32 " free; %" PRIu32 " to %" PRIu32 " a process; %s written\n",
	       session->buffers, text_bytes(session->buffer_bytes).data, session->free_buffers, session->min_buffers,
	       session->max_buffers, text_count(session->buffers_written).data);
	printf("  when full  %s; %s wait%s, %s in all\n", on_full_word(state), text_count(session->waits).data,
	       session->waits == 1 ? "" : "s", text_duration((int64_t)session->wait_ns).data);
	printf("  logger  pid %d, %s of CPU, %s; clock %s\n", (int)state->logger_pid,
	       text_duration((int64_t)session->logger_cpu_ns).data, text_bytes(session->logger_bytes).data,
	       session_clock_name((enum region_clock)session->clock));
	text_push(name, state);
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
	const struct grid grid = grid_of_terminal();
	session_state_targets(state, &grid.layout, cli_stdout());
	for (size_t i = 0; i < state->target_count; i++)
		if (state->targets[i].target.is_limited)
			printf("  process %d has too many stacks, threads or heaps to keep: later ones are cut or "
			       "lost\n",
			       (int)state->targets[i].pid);
	if (state->thread_count)
		text_threads(state);
}
