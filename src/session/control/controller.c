/* SPDX-License-Identifier: MIT */
#include "session/control/controller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/grow.h"
#include "os/identity.h"
#include "os/monotonic.h"
#include "session/control/control_wait.h"
#include "session/control/option_rows.h"

/* How long a controller waits: for room for its message, and during the silence of a logger that attaches. An attach
   pauses a process's threads, one process after another. */
enum { SEND_MS = 10000, ATTACH_MS = 60000, SLICE_MS = 1000, END_MS = 5000, END_POLL_MS = 5 };

static void tell_ear(const struct controller_listener *listener, enum controller_word word, const char *text)
{
	if (listener && text[0])
		listener->on_message(listener->cookie, word, text);
}

/* Return the error of an answer. */
static int done(const struct control_message *answer, struct diag *diag)
{
	int error = answer->value < 0 && answer->value > -4096 ? (int)-answer->value : answer->value ? EIO : 0;
	return error ? diag_fail(diag, error, "%s", answer->text[0] ? answer->text : strerrordesc_np(error)) : 0;
}

/* Return whether the message says that the trace could not even be begun: such a logger sends nothing else. */
static bool is_refusal(const struct control_message *message)
{
	return message->kind == CONTROL_LAUNCHED && message->value && !message->pid;
}

static int send_message(int socket, const struct control_message *message, struct diag *diag)
{
	struct control_message last;
	if (control_send_within(socket, message, SEND_MS))
		return 0;
	while (control_receive(socket, &last, 0) > 0)
		if (is_refusal(&last))
			return done(&last, diag);
	return diag_fail(diag, EPIPE, "the session's logger is gone");
}

/* Receive the next message that is no note. The program's signals may interrupt the wait. */
static int receive(struct control_wait *wait, struct control_message *message,
		   const struct controller_listener *listener, struct diag *diag)
{
	for (;;) {
		int got = control_wait_receive(wait, message, SLICE_MS, diag);
		if (got < 0)
			return got;
		if (got > 0 && is_refusal(message))
			return done(message, diag);
		if (got > 0 && message->kind != CONTROL_NOTE)
			return 0;
		if (got > 0)
			tell_ear(listener, message->value ? CONTROLLER_WARNING : CONTROLLER_NOTE, message->text);
	}
}

int controller_answer(int socket, const struct control_message *message, struct control_message *answer,
		      const struct controller_listener *listener, struct diag *diag)
{
	struct control_wait wait;
	control_wait_begin(&wait, socket, CONTROL_WAIT_USUAL_MS);
	int error = send_message(socket, message, diag);
	answer->kind = CONTROL_NOTE;
	while (!error && answer->kind != CONTROL_DONE)
		error = receive(&wait, answer, listener, diag);
	return error ? error : done(answer, diag);
}

int controller_ask(int socket, const struct control_message *message, const struct controller_listener *listener,
		   struct diag *diag)
{
	struct control_message answer;
	return controller_answer(socket, message, &answer, listener, diag);
}

int controller_write_core(int socket, pid_t pid, const char *path, bool may_stop, struct control_core *made,
			  const struct controller_listener *listener, struct diag *diag)
{
	struct control_message answer = {.value = 0}, message = {.kind = CONTROL_CORE, .pid = pid, .value = may_stop};
	if (path[0] != '/')
		return diag_fail(diag, EINVAL, "%s: not an absolute path", path);
	if (strlen(path) >= sizeof(message.text))
		return diag_fail(diag, ENAMETOOLONG, "a path of %zu bytes is too long", strlen(path));
	snprintf(message.text, sizeof(message.text), "%s", path);
	int error = controller_answer(socket, &message, &answer, listener, diag);
	*made = answer.core;
	return error;
}

/* ---- the state ---- */

#define ROWS_BYTES_MAX (UINT64_C(256) << 20)

/* Make room for one more row. A logger that sends more than that is not trusted. */
#define rows_grow(rows, count, capacity) \
	(((count) + 1) * sizeof(*(rows)) <= ROWS_BYTES_MAX && grow_by_one(rows, count, capacity))

static int state_add_target(struct controller_state *state, const struct control_message *target, struct diag *diag)
{
	if (!rows_grow(state->targets, state->target_count, state->target_capacity))
		return diag_fail(diag, ENOMEM, "no memory for %zu processes of the session", state->target_count);
	state->targets[state->target_count++] = *target;
	return 0;
}

static int state_add_thread(struct controller_state *state, const struct control_message *thread, struct diag *diag)
{
	if (!state->target_count)
		return 0;
	if (!rows_grow(state->threads, state->thread_count, state->thread_capacity))
		return diag_fail(diag, ENOMEM, "no memory for %zu threads of the session", state->thread_count);
	struct controller_thread *added = &state->threads[state->thread_count++];
	*added = (struct controller_thread){.target = state->target_count - 1, .thread = thread->thread};
	snprintf(added->name, sizeof(added->name), "%.31s", thread->text);
	return 0;
}

static int state_add_inactive(struct controller_state *state, const struct control_message *message, struct diag *diag)
{
	if (!rows_grow(state->inactive, state->inactive_count, state->inactive_capacity))
		return diag_fail(diag, ENOMEM, "no memory for %zu processes of the session", state->inactive_count);
	state->inactive[state->inactive_count++] = *message;
	return 0;
}

int controller_state_take(struct controller_state *state, const struct control_message *message, struct diag *diag)
{
	switch (message->kind) {
	case CONTROL_STATE:
		state->is_alive = true;
		state->logger_pid = message->pid;
		state->session = message->state;
		memcpy(state->path, message->text, sizeof(state->path));
		return 0;
	case CONTROL_TARGET:
		return state_add_target(state, message, diag);
	case CONTROL_THREAD:
		return state_add_thread(state, message, diag);
	case CONTROL_INACTIVE:
		return state_add_inactive(state, message, diag);
	case CONTROL_DONE:
		state->error = (int)message->value;
		snprintf(state->reason, sizeof(state->reason), "%.250s", message->text);
		return state->is_alive ? 1 : diag_fail(diag, EPIPE, "the session's logger does not describe it");
	default:
		return 0;
	}
}

int controller_query(int socket, bool with_threads, struct controller_state *state,
		     const struct controller_listener *listener, struct diag *diag)
{
	struct control_message message = {.kind = CONTROL_QUERY, .value = with_threads};
	*state = (struct controller_state){.is_alive = false};
	struct control_wait wait;
	control_wait_begin(&wait, socket, CONTROL_WAIT_USUAL_MS);
	int error = send_message(socket, &message, diag);
	int taken = 0;
	while (!error && taken == 0) {
		error = receive(&wait, &message, listener, diag);
		taken = error ? 0 : controller_state_take(state, &message, diag);
	}
	return error ? error : taken < 0 ? taken : 0;
}

void controller_state_fini(struct controller_state *state)
{
	free(state->targets);
	free(state->threads);
	free(state->inactive);
	*state = (struct controller_state){.is_alive = false};
}

/* ---- changing it ---- */

static void note_come(const pid_t *pids, unsigned count, pid_t pid, bool *has_come)
{
	for (unsigned i = 0; i < count; i++)
		has_come[i] |= pids[i] == pid;
}

/* Attach to all the processes; every request is answered. has_come[i]: process i was newly attached to. */
static int attach_all(int socket, const pid_t *pids, unsigned count, bool *has_come,
		      const struct controller_listener *listener, struct diag *diag)
{
	/* Attach to a few at a time: the sockets hold few messages, and with more attaches at once each process is
	   paused longer. */
	enum { AT_ONCE = 8 };
	struct control_message message;
	struct control_wait wait;
	int error = 0, refused = 0;
	control_wait_begin(&wait, socket, CONTROL_WAIT_STOP_MS);
	wait.silence_ms = ATTACH_MS;
	wait.silent_until_ms += ATTACH_MS;
	for (unsigned answered = 0, sent = 0; answered < count && !error;) {
		for (; sent < count && sent - answered < AT_ONCE && !error; sent++)
			error = send_message(
				socket, &(struct control_message){.kind = CONTROL_ATTACH, .pid = pids[sent]}, diag);
		if (error)
			break;
		error = receive(&wait, &message, listener, diag);
		if (error || message.kind != CONTROL_LAUNCHED)
			continue;
		answered++;
		tell_ear(listener, message.value ? CONTROLLER_REFUSED : CONTROLLER_ATTACHED, message.text);
		if (!message.value)
			note_come(pids, count, message.pid, has_come);
		if (message.value && !refused)
			refused = done(&message, diag);
	}
	return refused ? refused : error;
}

int controller_attach(int socket, const pid_t *pids, unsigned count, const struct controller_listener *listener,
		      struct diag *diag)
{
	bool has_come[CONTROLLER_PIDS_MAX] = {false};
	if (count > CONTROLLER_PIDS_MAX)
		return diag_fail(diag, E2BIG, "more than %d processes to record at once", CONTROLLER_PIDS_MAX);
	return attach_all(socket, pids, count, has_come, listener, diag);
}

enum detach { DETACH, DETACH_TRIAL };

/* Detach from the processes in turn. *gone: how many succeeded before the first failure. */
static int detach_all(int socket, const pid_t *pids, unsigned count, enum detach how, unsigned *gone,
		      const struct controller_listener *listener, struct diag *diag)
{
	int error = 0;
	for (*gone = 0; *gone < count && !error; *gone += !error)
		error = controller_ask(socket,
				       &(struct control_message){.kind = CONTROL_DETACH,
								 .pid = pids[*gone],
								 .value = how == DETACH_TRIAL},
				       listener, diag);
	return error;
}

static bool is_among(const pid_t *pids, unsigned count, pid_t pid)
{
	for (unsigned i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static bool is_target(const struct controller_state *state, pid_t pid)
{
	for (size_t i = 0; i < state->target_count; i++)
		if (state->targets[i].pid == pid)
			return true;
	return false;
}

void controller_update_options(struct controller_update *update, const struct session_options *now,
			       const struct session_options *before)
{
	update->has_options = false;
	for (const struct option *row = session_option_rows; row->type != VALUE_END; row++)
		update->has_options |= (row->flags & OPTION_IS_LIVE) && !option_is_same(row, now, before);
	update->options = session_options_word(now);
	update->wait_limit_ms = now->wait_limit_ms;
}

int controller_update_set(struct controller_update *update, const struct controller_state *state, const pid_t *pids,
			  unsigned count, struct diag *diag)
{
	for (size_t i = 0; i < state->target_count; i++) {
		if (is_among(pids, count, state->targets[i].pid))
			continue;
		if (update->removed_count == CONTROLLER_PIDS_MAX)
			return diag_fail(diag, E2BIG, "more than %d processes to detach from at once",
					 CONTROLLER_PIDS_MAX);
		update->removed[update->removed_count++] = state->targets[i].pid;
	}
	for (unsigned i = 0; i < count; i++) {
		if (is_target(state, pids[i]) || is_among(update->added, update->added_count, pids[i]))
			continue;
		if (update->added_count == CONTROLLER_PIDS_MAX)
			return diag_fail(diag, E2BIG, "more than %d processes to record at once", CONTROLLER_PIDS_MAX);
		update->added[update->added_count++] = pids[i];
	}
	return 0;
}

/* Undo an update that failed: attach again to the removed processes, whose trace then has a hole, and detach from the
   added ones. */
static void take_back(int socket, const struct controller_update *update, const bool *has_come, unsigned gone,
		      const struct controller_listener *listener)
{
	struct diag diag = {""};
	char text[sizeof(diag.text) + 100];
	unsigned again;
	if (controller_attach(socket, update->removed, gone, listener, &diag)) {
		snprintf(text, sizeof(text), "could not attach again to every process that was detached from: %s",
			 diag.text);
		tell_ear(listener, CONTROLLER_WARNING, text);
	}
	for (unsigned i = 0; i < update->added_count; i++)
		if (has_come[i])
			detach_all(socket, &update->added[i], 1, DETACH, &again, listener, &diag);
}

int controller_update(int socket, const struct controller_update *update, const struct controller_listener *listener,
		      struct diag *diag)
{
	unsigned gone = 0;
	bool has_come[CONTROLLER_PIDS_MAX] = {false};
	int error = detach_all(socket, update->removed, update->removed_count, DETACH_TRIAL, &gone, listener, diag);
	if (error)
		return error;
	gone = 0;
	error = attach_all(socket, update->added, update->added_count, has_come, listener, diag);
	if (!error)
		error = detach_all(socket, update->removed, update->removed_count, DETACH, &gone, listener, diag);
	if (error)
		take_back(socket, update, has_come, gone, listener);
	if (!error && update->has_options)
		error = controller_ask(socket,
				       &(struct control_message){.kind = CONTROL_OPTIONS,
								 .state = {.options = update->options,
									   .wait_limit_ms = update->wait_limit_ms}},
				       listener, diag);
	return error;
}

void controller_await_end(int socket)
{
	struct ucred peer = {.pid = 0};
	socklen_t size = sizeof(peer);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0)
		return;
	struct identity logger = identity_take(peer.pid);
	for (unsigned waited_ms = 0; waited_ms < END_MS && identity_is_known(&logger) && !identity_has_ended(&logger);
	     waited_ms += END_POLL_MS)
		monotonic_pause(END_POLL_MS * NS_PER_MS);
	identity_drop(&logger);
}

bool controller_is_failure(const struct control_summary *summary)
{
	return summary->error && summary->end != CONTROL_END_AT_LIMIT;
}

int controller_stop(int socket, struct control_summary *summary, const struct controller_listener *listener,
		    struct diag *diag)
{
	struct control_message message = {.kind = CONTROL_STOP};
	struct control_wait wait;
	control_wait_begin(&wait, socket, CONTROL_WAIT_STOP_MS);
	int error = send_message(socket, &message, diag);
	while (!error && message.kind != CONTROL_SUMMARY)
		error = receive(&wait, &message, listener, diag);
	if (error)
		return error;
	*summary = message.summary;
	/* The caller may recover the rest at once, which no logger may have open then. */
	if (message.summary.error)
		controller_await_end(socket);
	return message.summary.error
		       ? diag_fail(diag, EIO, "%s", message.text[0] ? message.text : "recording ended early")
		       : 0;
}
