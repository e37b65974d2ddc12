/* SPDX-License-Identifier: MIT */
/* The state of a session as JSON and as text: what xheap query prints. */
#include "cli/session/session_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/grid.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/layout_options.h"
#include "session/control/clocks.h"
#include "session/control/options.h"

static bool waits_when_full(const struct control_state *session)
{
	struct session_options options;
	session_options_from_state(&options, session);
	return options.on_full_wait;
}

/* ---- JSON ---- */

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

/* Detached processes in which inactive code stays mapped. */
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

void session_state_json(struct json *json, const char *name, const struct controller_state *state, bool with_threads)
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
		json_text(json, "on_full", waits_when_full(session) ? "wait" : "drop");
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
	if (session->dropped)
		printf("; %s older events were not kept", text_count(session->dropped).data);
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
	printf(" of %s%s\n", text_bytes(session->memory_limit_bytes).data,
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
	static const unsigned ranks[] = {0, 0, 1, 2, 5, 6, 3, 4, 0};
	static const char *const titles[] = {">pid",        ">thread", ">events", ">a second", ">truncated",
					     ">unwindless", ">waits",  ">waited", "name"};
	puts("");
	grid_columns(&grid, sizeof(titles) / sizeof(*titles), titles);
	memcpy(grid.rank, ranks, sizeof(ranks));
	grid.is_text[grid.columns - 1] = true;
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

/* Calls that were not recorded for want of room: they are no events. */
static void text_untraced(const struct control_state *session)
{
	if (session->untraced_calls)
		printf("  %s calls of threads and processes that found no room are missing\n",
		       text_count(session->untraced_calls).data);
}

void session_state_targets(const struct controller_state *state, const struct text_layout *layout, struct sink *out)
{
	struct grid grid = {.layout = *layout, .is_of_terminal = true};
	static const unsigned ranks[] = {0, 8, 5, 1, 2, 4, 9, 10, 7, 6, 11, 3, 0};
	static const char *const titles[] = {">pid",    ">processes", ">threads",    ">events", ">a second",
					     ">lost",   ">truncated", ">unwindless", ">waits",  ">CPU",
					     ">paused", ">resident",  "command"};
	grid_columns(&grid, sizeof(titles) / sizeof(*titles), titles);
	memcpy(grid.rank, ranks, sizeof(ranks));
	grid.is_text[grid.columns - 1] = true;
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
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

void session_state_text(const char *name, const struct controller_state *state)
{
	const struct control_state *session = &state->session;
	bool is_in_memory = session_state_is_in_memory(session);
	printf("%s: records into %s\n", name, is_in_memory ? "memory" : text_shown(state->path));
	printf("  %s events, %s lost, %s %s\n", text_count(session->events).data, text_count(session->lost).data,
	       text_bytes(session->size_bytes).data, is_in_memory ? "kept" : "written");
	printf("  stacks  %s whole, %s truncated, %s without unwind data\n", text_count(session->ends.whole).data,
	       text_count(session->ends.truncated).data, text_count(session->ends.unwindless).data);
	text_untraced(session);
	if (session->after)
		printf("  recording has ended: %s later calls are not counted\n", text_count(session->after).data);
	text_file(state);
	text_limits(session);
	printf("  buffers  %" PRIu32 " of %s, %" PRIu32 " free; %" PRIu32 " to %" PRIu32 " a process; %s written\n",
	       session->buffers_now, text_bytes(session->buffer_size).data, session->buffers_free, session->buffer_min,
	       session->buffer_max, text_count(session->buffers_written).data);
	printf("  when full  %s; %s wait%s, %s in all\n", waits_when_full(session) ? "wait" : "drop",
	       text_count(session->waits).data, session->waits == 1 ? "" : "s",
	       text_duration((int64_t)session->wait_ns).data);
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
