/* SPDX-License-Identifier: MIT */
/* The flight recorder in the logger: requests to write out what is in memory, by controllers, a signal or triggers, one
   after the other. */
#include "session/logger/flight.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "os/cgroups.h"
#include "session/logger/answer.h"
#include "session/logger/logger_loop.h"
#include "session/logger/logger_state.h"
#include "session/logger/members.h"
#include "session/store/store_write_out.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/statistics.h"

enum { LIMIT_LOOK_NS = 200000000, REARM_PARTS = 8 };

/* A request and its sender, which gets the answer when it is done. */
struct flight_request {
	struct flight_request *next;
	int socket; /* -1: a trigger, and for the user a note */
	bool is_snapshot;
	char reason[200];
};

static volatile sig_atomic_t is_signalled;

static void on_signal(int signal)
{
	(void)signal;
	is_signalled = 1;
}

void flight_begin(const struct logger *logger)
{
	struct sigaction action = {.sa_handler =
					   logger->options->file_mode == SESSION_FILE_FLIGHT ? on_signal : SIG_IGN,
				   .sa_flags = SA_RESTART};
	sigaction(SIGUSR1, &action, NULL);
}

/* ---- requests ---- */

static void answer(struct logger *logger, const struct flight_request *request, int error, const char *text)
{
	struct control_message message = {.kind = CONTROL_DONE, .value = error};
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, text);
	if (request->socket >= 0)
		control_send(request->socket, &message);
	else if (request->reason[0])
		(error ? logger_warn : logger_note)(logger, text);
}

void flight_ask(struct logger *logger, int socket, bool is_snapshot, const char *reason)
{
	struct flight_request **link = &logger->requests;
	/* One of triggers that waits already has what this one wants. */
	for (; *link; link = &(*link)->next)
		if (socket < 0 && (*link)->socket < 0)
			return;
	struct flight_request *request = memory_zeroed(1, sizeof(*request));
	*request = (struct flight_request){.socket = socket, .is_snapshot = is_snapshot};
	snprintf(request->reason, sizeof(request->reason), "%s", reason);
	*link = request;
}

void flight_forget(struct logger *logger, int socket)
{
	for (struct flight_request *request = logger->requests; request; request = request->next)
		if (request->socket == socket) {
			request->socket = -1;
			request->reason[0] = 0;
		}
	if (logger->request && logger->request->socket == socket) {
		logger->request->socket = -1;
		logger->request->reason[0] = 0;
	}
}

static void request_end(struct logger *logger, const struct store_result *result)
{
	struct flight_request *request = logger->request;
	char text[WRITER_PATH_MAX + 300];
	if (result->error)
		snprintf(text, sizeof(text), "could not be written out: %s", result->diag.text);
	else if (request->socket >= 0)
		snprintf(text, sizeof(text), "%s", result->path);
	else
		snprintf(text, sizeof(text), "%s: written out to %s", request->reason, result->path);
	answer(logger, request, result->error, text);
	logger->request = NULL;
	free(request);
}

static void request_begin(struct logger *logger)
{
	struct flight_request *request = logger->requests;
	struct trace_statistics statistics;
	struct diag diag = {""};
	logger->requests = request->next;
	logger->request = request;
	if (request->reason[0])
		writer_add_option(logger->writer, TRACE_OPTION_TRIGGERED, request->reason);
	members_read_memory(logger);
	int error = logger_drain_all(logger, &diag);
	logger_statistics(logger, &statistics);
	if (!error)
		error = store_write_out(logger->store, request->is_snapshot, &statistics, &diag);
	if (!error)
		return;
	struct store_result result = {.error = error, .diag = diag};
	request_end(logger, &result);
}

/* ---- triggers ---- */

static bool has_trigger(const struct logger *logger, enum session_trigger trigger)
{
	return logger->options->triggers >> trigger & 1;
}

void flight_note_memory(struct logger *logger, struct member *member, uint64_t resident_bytes)
{
	uint64_t limit = logger->options->trigger_rss_bytes;
	char text[200];
	if (!has_trigger(logger, SESSION_TRIGGER_RSS))
		return;
	/* Once, until it has come down again. */
	if (member->is_above && resident_bytes < limit - limit / REARM_PARTS)
		member->is_above = false;
	if (member->is_above || resident_bytes < limit)
		return;
	member->is_above = true;
	snprintf(text, sizeof(text), "process %d has %s resident", (int)member->pid, text_bytes(resident_bytes).data);
	flight_ask(logger, -1, false, text);
}

/* Check the memory limit of a member's cgroup. A process that the limit kills is gone soon, so its cgroup is read
   beforehand, and checked once more at its end. */
static void limit_check(struct logger *logger, struct member *member)
{
	uint64_t hits;
	char text[200];
	if (!member->cgroups)
		member->cgroups = cgroups_of(member->pid);
	if (!member->cgroups || !cgroups_limit_hits(member->cgroups, CGROUPS_ROOT, &hits))
		return;
	bool is_new = member->has_limit_hits && hits > member->limit_hits;
	member->limit_hits = hits;
	member->has_limit_hits = true;
	snprintf(text, sizeof(text), "process %d has hit the memory limit of its cgroup", (int)member->pid);
	if (is_new)
		flight_ask(logger, -1, false, text);
}

bool flight_note_begin(struct logger *logger, struct member *member)
{
	if (!has_trigger(logger, SESSION_TRIGGER_MEMORY_LIMIT))
		return false;
	limit_check(logger, member);
	return true;
}

/* Ask for the end of a member that its limit has killed. The hit may have been noticed before the end was, and written
   out without it. */
static void limit_note_end(struct logger *logger, struct member *member, uint8_t end)
{
	uint64_t kills;
	char text[200];
	limit_check(logger, member);
	if (end == TRACE_END_EXIT || !member->has_before || !member->cgroups ||
	    !cgroups_kills(member->cgroups, CGROUPS_ROOT, &kills) || kills <= member->before.cgroup_kills)
		return;
	snprintf(text, sizeof(text), "process %d was killed at the memory limit of its cgroup", (int)member->pid);
	flight_ask(logger, -1, false, text);
}

void flight_note_end(struct logger *logger, struct member *member, uint8_t end, int32_t status)
{
	char text[200];
	if (has_trigger(logger, SESSION_TRIGGER_MEMORY_LIMIT) && member->cgroups)
		limit_note_end(logger, member, end);
	bool has_ended = end == TRACE_END_EXIT || end == TRACE_END_SIGNAL || end == TRACE_END_UNKNOWN,
	     has_crashed = has_ended && end != TRACE_END_EXIT;
	if (!(has_ended && has_trigger(logger, SESSION_TRIGGER_EXIT)) &&
	    !(has_crashed && has_trigger(logger, SESSION_TRIGGER_CRASH)))
		return;
	if (end == TRACE_END_SIGNAL)
		snprintf(text, sizeof(text), "process %d was ended by signal %d", (int)member->pid, status);
	else if (end == TRACE_END_EXIT)
		snprintf(text, sizeof(text), "process %d has ended with status %d", (int)member->pid, status);
	else
		snprintf(text, sizeof(text), "process %d has ended", (int)member->pid);
	flight_ask(logger, -1, false, text);
}

static void limits_check(struct logger *logger)
{
	for (struct target *target = logger->targets; target; target = target->next) {
		for (uint32_t i = 0; i < target->member_count; i++) {
			struct member *member = &target->member[i];
			if (member->state == MEMBER_LIVE && member->pid)
				limit_check(logger, member);
		}
	}
}

bool flight_check(struct logger *logger, uint64_t now_ns)
{
	struct store_result result;
	bool has_any = false;
	if (is_signalled) {
		is_signalled = 0;
		flight_ask(logger, -1, false, "requested by a signal");
	}
	if (has_trigger(logger, SESSION_TRIGGER_MEMORY_LIMIT) && now_ns - logger->limits_checked_ns > LIMIT_LOOK_NS) {
		logger->limits_checked_ns = now_ns;
		limits_check(logger);
	}
	if (logger->request && store_take_result(logger->store, false, &result)) {
		request_end(logger, &result);
		has_any = true;
	}
	/* The clock's rate has to be known to the trace. */
	if (!logger->request && logger->requests) {
		logger_settle_clock(logger, true);
		request_begin(logger);
		has_any = true;
	}
	return has_any;
}

void flight_end(struct logger *logger)
{
	struct store_result result;
	if (logger->request && store_take_result(logger->store, true, &result))
		request_end(logger, &result);
	while (logger->requests) {
		struct flight_request *request = logger->requests;
		logger->requests = request->next;
		answer(logger, request, -ECANCELED, "the session ends");
		free(request);
	}
}
