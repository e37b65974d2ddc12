/* SPDX-License-Identifier: MIT */
/* The controllers of a logger: connections, their messages, and the answers. */
#include "session/logger/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/fd.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "region/atomic.h"
#include "os/proc_text.h"
#include "session/drain/drain_columns.h"
#include "session/drain/drain_notes.h"
#include "session/logger/announce.h"
#include "session/logger/flight.h"
#include "session/logger/inactive.h"
#include "session/logger/logger_loop.h"
#include "session/logger/logger_state.h"
#include "session/logger/members.h"
#include "session/logger/target_messages.h"
#include "session/logger/tracer_results.h"
#include "session/store/store_keep.h"
#include "trace/row_ids.h"

void logger_tell_all(const struct logger *logger, const struct control_message *message)
{
	/* One that does not read is waited for once: there may be many, and many messages. */
	for (struct controller *controller = logger->controllers; controller; controller = controller->next)
		controller->is_slow = !control_send_within(controller->socket, message,
							   controller->is_slow ? 0 : CONTROL_PATIENCE_MS);
}

bool logger_add_controller(struct logger *logger, int socket)
{
	struct controller *controller = malloc(sizeof(*controller));
	if (!controller)
		return false;
	*controller = (struct controller){.socket = socket, .next = logger->controllers};
	logger->controllers = controller;
	watch_add(logger->watch, socket);
	return true;
}

/* Accept controllers of the session's user and of root; others may not control a session. */
static void controllers_accept(struct logger *logger)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int socket;
	/* An accept() makes a socket before it checks for a connection. */
	struct pollfd listener = {logger->listener, POLLIN, 0};
	while (logger->listener >= 0 && poll(&listener, 1, 0) > 0 &&
	       (socket = accept4(logger->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
		    (peer.uid != geteuid() && peer.uid != 0) || !logger_add_controller(logger, socket))
			close(socket);
}

void logger_keepalive(struct logger *logger)
{
	const struct control_message message = {.kind = CONTROL_NOTE};
	controllers_accept(logger);
	/* A controller whose socket is full has messages to read, so it is not waiting. */
	for (const struct controller *controller = logger->controllers; controller; controller = controller->next)
		control_send_within(controller->socket, &message, 0);
}

/* Send a note to all controllers. value: as for CONTROL_NOTE. */
static void tell_text(struct logger *logger, const char *text, int value)
{
	struct control_message message = {.kind = CONTROL_NOTE, .value = value};
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, text);
	logger_tell_all(logger, &message);
}

void logger_note(struct logger *logger, const char *text)
{
	tell_text(logger, text, 0);
}

void logger_warn(struct logger *logger, const char *text)
{
	tell_text(logger, text, 1);
}

void logger_say_end(struct logger *logger, const char *text)
{
	tell_text(logger, text, 2);
}

static void done(int socket, int error, const char *text)
{
	struct control_message message = {.kind = CONTROL_DONE, .value = error};
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, text);
	control_send(socket, &message);
}

/* Return whether the process was detached from and its target still exists: it may have the region mapped, whose file
   would make it seem recorded. */
static bool is_still_leaving(const struct logger *logger, pid_t pid)
{
	for (const struct target *target = logger->targets; target; target = target->next)
		for (uint32_t i = 0; i < target->member_count && target->is_let_go; i++)
			if (target->member[i].pid == pid)
				return true;
	return false;
}

/* Attach to a process. Closes `control`. */
static void attach(struct logger *logger, int control, pid_t pid)
{
	struct tracer_task request = {.pid = pid,
				      .tid = pid,
				      .identity = IDENTITY_NONE,
				      .parent = TRACE_NONE,
				      .control = control,
				      .is_attach = true};
	struct control_message message = {.kind = CONTROL_LAUNCHED, .pid = pid, .value = -EEXIST};
	if (logger_has_pid(logger, pid)) {
		snprintf(message.text, sizeof(message.text), "process %d is recorded by this session already",
			 (int)pid);
		control_send(control, &message);
		close(control);
	} else if (!tracer_start(logger->tracer, &request)) {
		message.value = -EAGAIN;
		snprintf(message.text, sizeof(message.text), "process %d: cannot start a thread to attach", (int)pid);
		control_send(control, &message);
		close(control);
	}
}

static void handle_attach(struct logger *logger, int socket, pid_t pid)
{
	struct late_attach *late;
	int control = fcntl(socket, F_DUPFD_CLOEXEC, 0);
	logger_remove_let_go(logger);
	if (!is_still_leaving(logger, pid) || !(late = malloc(sizeof(*late)))) {
		attach(logger, control, pid);
		return;
	}
	*late = (struct late_attach){logger->late, control, pid};
	logger->late = late;
}

void logger_attach_late(struct logger *logger)
{
	for (struct late_attach **link = &logger->late, *late; (late = *link);) {
		if (is_still_leaving(logger, late->pid)) {
			link = &late->next;
			continue;
		}
		*link = late->next;
		attach(logger, late->control, late->pid);
		free(late);
	}
}

static void handle_detach(struct logger *logger, int socket, pid_t pid, bool is_trial)
{
	char text[100];
	struct diag diag = {""};
	for (struct target *target = logger->targets; target; target = target->next) {
		logger_find_members(logger, target);
		uint32_t index = logger_member_of_pid(target, pid);
		if (index == UINT32_MAX)
			continue;
		int error = is_trial ? 0 : logger_detach_member(logger, target, index, &diag);
		done(socket, error, diag.text);
		return;
	}
	snprintf(text, sizeof(text), "process %d is not recorded by this session", (int)pid);
	/* A process that has just ended counts as detached. */
	done(socket, proc_start_time(pid) && !proc_has_ended(pid) ? -ESRCH : 0, text);
}

static void handle_core(struct logger *logger, int socket, const struct control_message *message)
{
	struct tracer_task request = {.identity = IDENTITY_NONE, .may_stop = message->value == 1};
	char text[100];
	snprintf(request.path, sizeof(request.path), "%.*s", (int)sizeof(message->text) - 1, message->text);
	for (struct target *target = logger->targets; target; target = target->next) {
		logger_find_members(logger, target);
		if (logger_member_of_pid(target, message->pid) == UINT32_MAX)
			continue;
		request.control = fcntl(socket, F_DUPFD_CLOEXEC, 0);
		if (logger_core_start(logger, target, message->pid, &request))
			return;
		close(request.control);
		done(socket, -EAGAIN, "cannot start a thread to read the process");
		return;
	}
	snprintf(text, sizeof(text), "process %d is not recorded by this session", message->pid);
	done(socket, -ESRCH, text);
}

void logger_core_over(struct logger *logger, const struct tracer_result *result)
{
	const uint64_t start = logger->clock.writer.start_ticks;
	struct control_message message = {
		.kind = CONTROL_DONE,
		.value = result->diag.text[0] ? -EIO : 0,
		.core = {.at_ns = (int64_t)session_clock_ns(
				 &logger->clock, result->core_ticks > start ? result->core_ticks - start : 0),
			 .pause_ns = result->pause_ns}};
	snprintf(message.text, sizeof(message.text), "%s", result->diag.text);
	if (result->control >= 0) {
		control_send(result->control, &message);
		close(result->control);
	} else if (result->diag.text[0]) {
		logger_warn(logger, result->diag.text);
	}
}

static void handle_options(struct logger *logger, int socket, const struct control_state *wanted)
{
	/* These options are for new targets; present ones use the words in their regions. */
	struct session_options *options = logger->own_options;
	const uint32_t stacks = OPTION_STACKS;
	options->stack_kinds = wanted->options & stacks;
	options->on_full_wait = wanted->options & OPTION_WAIT;
	options->wait_limit_ms = wanted->wait_limit_ms;
	for (struct target *target = logger->targets; target; target = target->next) {
		/* The target changes other bits of the word at the same time. */
		const uint32_t changed = stacks | OPTION_WAIT;
		__atomic_fetch_or(&target->region.header->options, wanted->options & changed, __ATOMIC_RELEASE);
		__atomic_fetch_and(&target->region.header->options, wanted->options | ~changed, __ATOMIC_RELEASE);
		for (uint32_t i = 0; i < target->member_count; i++)
			if (target->member[i].state == MEMBER_LIVE)
				inject_set_wait_limit(&target->inject, target->member[i].pid, wanted->wait_limit_ms);
	}
	done(socket, 0, "");
}

static void handle_flush(struct logger *logger, int socket, bool is_snapshot)
{
	struct diag diag = {""};
	if (logger->options->file_mode == SESSION_FILE_NONE && !is_snapshot) {
		done(socket, -ENOTSUP, "the session has no file; use -session NAME in place of a trace");
		return;
	}
	if (session_is_in_pieces(logger->options)) {
		flight_ask(logger, socket, is_snapshot, "");
		return;
	}
	logger_settle_clock(logger, true);
	members_read_memory(logger);
	int error = logger_drain_all(logger, &diag);
	done(socket, error,
	     error         ? diag.text
	     : is_snapshot ? store_snapshot(logger->store)
			   : store_path(logger->store));
}

static uint32_t buffers_free(const struct region *region)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < region->buffer_ready; i++)
		count += __atomic_load_n(&region_buffer(region, i)->state, __ATOMIC_RELAXED) == BUFFER_FREE;
	return count;
}

static uint32_t threads_live(const struct region *region)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < region->slot_ready; i++)
		count += __atomic_load_n(&region_slot(region, i)->state, __ATOMIC_RELAXED) == SLOT_LIVE;
	return count;
}

struct thread_listing {
	struct logger *logger;
	int socket;
};

static void list_thread(void *cookie, const struct drain_thread *thread)
{
	const struct thread_listing *listing = cookie;
	struct control_message message = {
		.kind = CONTROL_THREAD,
		.thread = {.events = thread->events,
			   .rate = thread->rate,
			   .ends = thread->ends,
			   .waits = thread->waits,
			   .wait_ns = session_clock_ns(&listing->logger->clock, thread->wait_ticks),
			   .tid = thread->tid}};
	snprintf(message.text, sizeof(message.text), "%s", thread->name);
	control_send(listing->socket, &message);
}

/* What a session's state and a target's have in common. */
#define TOTALS(logger, totals) \
	.events = (totals).events, .lost_events = (totals).lost, .calls_after_end = (totals).after, \
	.untraced_calls = (totals).untraced_calls, .waits = (totals).waits, \
	.wait_ns = session_clock_ns(&(logger)->clock, (totals).wait_ticks)

static void tell_target(struct logger *logger, int socket, struct target *target, bool with_threads)
{
	struct control_message message = {.kind = CONTROL_TARGET, .pid = target->member[0].pid};
	struct drain_totals totals;
	uint64_t cpu_ticks = 0;
	drain_region_totals(target->drain, &totals);
	message.target =
		(struct control_target){TOTALS(logger, totals),
					.ends = totals.ends,
					.processes = target->alive,
					.threads = threads_live(&target->region),
					.rate = drain_region_rate(target->drain, logger->clock.ticks_per_ms),
					.pause_ns = target->pause_ns,
					.is_limited = drain_is_limited(target->drain),
					.is_searching = (LOAD(&target->region.header->options) & OPTION_MEASURE) != 0};
	for (uint32_t i = 0; i < target->member_count; i++) {
		if (target->member[i].state != MEMBER_LIVE || !target->member[i].pid)
			continue;
		message.target.resident_bytes += proc_resident_bytes(target->member[i].pid);
		cpu_ticks += proc_cpu_ticks(target->member[i].pid);
	}
	message.target.cpu_ns = cpu_ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	proc_command(message.pid, message.text, sizeof(message.text));
	control_send(socket, &message);
	if (with_threads)
		drain_each_thread(target->drain, logger->clock.ticks_per_ms, list_thread,
				  &(struct thread_listing){logger, socket});
}

static void handle_query(struct logger *logger, int socket, bool with_threads)
{
	const struct session_options *options = logger->options;
	struct control_message message = {.kind = CONTROL_STATE, .pid = getpid()};
	struct drain_totals totals;
	struct diag diag = {""};
	logger_drain_all(logger, &diag);
	drain_totals(logger->drain, &totals);
	message.state = (struct control_state){TOTALS(logger, totals),
					       .whole_stacks = totals.ends.whole,
					       .truncated_stacks = totals.ends.truncated,
					       .unwindless_stacks = totals.ends.unwindless,
					       .size_bytes = store_size_bytes(logger->store),
					       .buffers_written = totals.buffers_written,
					       .logger_cpu_ns = logger_cpu(),
					       .logger_bytes = proc_resident_bytes(getpid()),
					       .max_file_bytes = options->max_file_bytes,
					       .buffer_bytes = options->buffer_size,
					       .min_buffers = session_buffer_min(options),
					       .max_buffers = options->buffer_max,
					       .options = session_options_word(options),
					       .wait_limit_ms = options->wait_limit_ms,
					       .flush_timer_ms = options->flush_ms,
					       .file_mode = options->file_mode,
					       .clock = logger->clock.kind,
					       .clock_choice = options->clock,
					       .is_real_time = options->is_real_time,
					       .takes_images = options->takes_images,
					       .dropped_events = store_dropped_events(logger->store),
					       .write_count = store_write_count(logger->store),
					       .index = options->index,
					       .started_realtime_ns = logger->clock.writer.start_realtime_ns};
	memcpy(message.state.kind_count, totals.kind_count, sizeof(totals.kind_count));
	if (options->file_mode == SESSION_FILE_SEQUENTIAL) {
		message.state.whole_until_ns = logger->cut.until_ns;
		message.state.whole_bytes = logger->cut.size_bytes;
	}
	store_folded(logger->store, &message.state.folded_bytes, &message.state.folded_until_ns);
	message.state.folding_bytes = store_folding_bytes(logger->store);
	message.state.logger_limit_bytes = drain_memory_limit_bytes(logger->drain);
	message.state.disk_bytes = store_disk_bytes(logger->store);
	uint64_t buffer_bytes = 0;
	for (struct target *target = logger->targets; target; target = target->next) {
		buffer_bytes += (uint64_t)target->region.limits.buffer_max * target->region.limits.buffer_size;
		message.state.buffers += target->region.buffer_ready - target->region.buffers_away;
		message.state.free_buffers += buffers_free(&target->region);
	}
	message.state.disk_limit_bytes = store_disk_limit_bytes(logger->store, buffer_bytes);
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, store_path(logger->store));
	control_send(socket, &message);
	for (struct target *target = logger->targets; target; target = target->next)
		if (target->alive)
			tell_target(logger, socket, target, with_threads);
	inactive_tell(logger, socket);
	done(socket, logger->error, logger->error ? logger->diag.text : "");
}

static void handle_launch(struct logger *logger, int socket, const struct control_message *message)
{
	struct tracer_task request = {.pid = message->pid,
				      .tid = message->pid,
				      .identity = IDENTITY_NONE,
				      .directory = AT_FDCWD,
				      .parent = TRACE_NONE,
				      .control = fcntl(socket, F_DUPFD_CLOEXEC, 0),
				      .is_launch = true,
				      .is_spared = message->value == 2};
	snprintf(request.path, sizeof(request.path), "%.*s", (int)sizeof(message->text) - 1, message->text);
	logger->command_pid = message->pid;
	if (!tracer_start(logger->tracer, &request)) {
		struct control_message answer = {.kind = CONTROL_LAUNCHED, .pid = message->pid, .value = -EAGAIN};
		snprintf(answer.text, sizeof(answer.text), "cannot trace %.900s: cannot start a thread to trace it",
			 request.path);
		control_send(socket, &answer);
		close(request.control);
	}
}

/* Take the thread of a registered image that a watcher holds in its exec. */
static void handle_image(struct logger *logger, int socket, const struct control_message *message)
{
	pid_t pid = (pid_t)proc_status_value(message->pid, "Tgid");
	struct tracer_task request = {.pid = pid > 0 ? pid : message->pid,
				      .tid = message->pid,
				      .identity = IDENTITY_NONE,
				      .directory = AT_FDCWD,
				      .parent = TRACE_NONE,
				      .control = fcntl(socket, F_DUPFD_CLOEXEC, 0),
				      .is_image = true,
				      .may_gain = !message->image.checks_privileges,
				      .image = message->image};
	snprintf(request.path, sizeof(request.path), "%.*s", (int)sizeof(message->text) - 1, message->text);
	if (message->image.is_last)
		logger->is_command_over = true;
	if (logger->is_recording_over || logger->is_stopping || !tracer_start(logger->tracer, &request)) {
		struct control_message answer = {.kind = CONTROL_OUTCOME,
						 .pid = message->pid,
						 .value = CONTROL_OUTCOME_REFUSED,
						 .image = message->image};
		snprintf(answer.text, sizeof(answer.text), "%s",
			 logger->is_recording_over ? "the session's recording has ended"
			 : logger->is_stopping     ? "the session stops"
						   : "cannot start a thread to trace it");
		control_send(socket, &answer);
		close(request.control);
	}
}

static void handle_status(struct logger *logger, const struct control_message *message)
{
	struct exit_status *told = memory_zeroed(1, sizeof(*told));
	*told = (struct exit_status){message->pid, (int)message->value, logger->exit_statuses};
	logger->exit_statuses = told;
	if (message->pid == logger->command_pid)
		logger->is_command_over = true;
}

static void control_handle(struct logger *logger, int socket, const struct control_message *message)
{
	/* An answer must know of a process whose attach a tracer has just reported. */
	logger_take_results(logger);
	switch (message->kind) {
	case CONTROL_LAUNCH:
		(message->value == 1 ? handle_image : handle_launch)(logger, socket, message);
		break;
	case CONTROL_ATTACH:
		handle_attach(logger, socket, message->pid);
		break;
	case CONTROL_DETACH:
		handle_detach(logger, socket, message->pid, message->value);
		break;
	case CONTROL_CORE:
		handle_core(logger, socket, message);
		break;
	case CONTROL_OPTIONS:
		handle_options(logger, socket, &message->state);
		break;
	case CONTROL_FLUSH:
		handle_flush(logger, socket, message->value);
		break;
	case CONTROL_QUERY:
		handle_query(logger, socket, message->value == 1);
		break;
	case CONTROL_READY:
		logger->is_command_over = true;
		break;
	case CONTROL_STOP:
		logger->is_stopping = true;
		break;
	case CONTROL_EXEC_FAILED:
		tracer_cancel(logger->tracer, NULL, message->pid);
		logger->is_command_over = true;
		break;
	case CONTROL_STATUS:
		handle_status(logger, message);
		break;
	default:
		break;
	}
}

static void controller_gone(struct logger *logger, struct controller **link)
{
	struct controller *controller = *link;
	*link = controller->next;
	flight_forget(logger, controller->socket);
	if (controller->socket == logger->keeper)
		logger->keeper = -1;
	if (controller->socket == logger->control) {
		logger->has_controller = false;
		logger->is_command_over = true; /* no controller will report it; its identity does */
		if (!logger->options->session_name)
			logger->is_stopping = logger->options->is_attached;
	} else {
		close(controller->socket);
	}
	free(controller);
}

/* Announce a user's session that takes starts, now and then, as long as no keeper has it. */
static void announce(struct logger *logger)
{
	uint64_t now = monotonic_now_ns();
	if (!logger->options->takes_images || !logger->options->session_name || logger->keeper >= 0 || geteuid() == 0 ||
	    now - logger->announced_ns < NS_PER_S)
		return;
	logger->announced_ns = now;
	logger->keeper = announce_session(logger->options->session_name);
	if (logger->keeper >= 0 && !logger_add_controller(logger, logger->keeper))
		fd_close(&logger->keeper);
}

bool logger_check_controllers(struct logger *logger)
{
	enum { MESSAGES_MAX = 16 }; /* of one controller, before others and the targets are served */
	struct control_message message;
	bool has_any = false;
	unsigned taken = 0;
	controllers_accept(logger);
	announce(logger);
	for (struct controller **link = &logger->controllers; *link; taken = 0) {
		int got = 1;
		while (taken < MESSAGES_MAX && (got = control_receive((*link)->socket, &message, 0)) > 0) {
			control_handle(logger, (*link)->socket, &message);
			has_any = true;
			taken++;
		}
		if (got < 0) {
			controller_gone(logger, link);
		} else {
			link = &(*link)->next;
		}
	}
	return has_any;
}
