/* SPDX-License-Identifier: MIT */
/*
 * Processes in which the recorder's code stays mapped, since a thread was in it at the detach. No function leads to it:
 * it is inactive.
 * When the thread has left the code, it is removed. This session checks for that from time to time; the next recording
 * that attaches to the process removes it as well.
 */
#include "session/logger/inactive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "os/identity.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/drain/drain_notes.h"
#include "session/logger/answer.h"
#include "session/logger/logger_loop.h"
#include "session/logger/logger_state.h"
#include "trace/option_names.h"

enum { RETRY_FIRST_NS = 500000000 };
#define RETRY_LONGEST_NS (10 * NS_PER_S)

/* One of those. */
struct inactive {
	struct inactive *next;
	pid_t pid;
	struct identity identity;
	uint64_t inode; /* of the region */
	char region_path[512], command[256];
	struct inject_rest rest;
	uint64_t next_ns, wait_ns; /* when it is tried again, and how long after the last time */
};

void inactive_describe(char *text, size_t size, const struct inject_rest *rest)
{
	const double mib = (double)rest->bytes / (1 << 20);
	if (rest->thread_count)
		snprintf(text, size,
			 "inactive code and memory (%.1f MiB) stay mapped until %u thread%s (%d) leave%s the code", mib,
			 rest->thread_count, rest->thread_count == 1 ? "" : "s", (int)rest->tid,
			 rest->thread_count == 1 ? "s" : "");
	else
		snprintf(text, size, "inactive code and memory (%.1f MiB) stay mapped: %s", mib,
			 rest->why[0] ? rest->why : "it could not be unmapped");
}

bool inactive_has(const struct logger *logger, pid_t pid, uint64_t inode)
{
	for (const struct inactive *inactive = logger->inactive; inactive; inactive = inactive->next)
		if (inactive->pid == pid && inactive->inode == inode)
			return true;
	return false;
}

void inactive_add(struct logger *logger, const struct target *target, pid_t pid, const char *command,
		  const struct inject_rest *rest)
{
	struct stat status;
	if (fstat(target->region.fd, &status) != 0)
		return;
	struct inactive *inactive = memory_zeroed(1, sizeof(*inactive));
	*inactive = (struct inactive){.next = logger->inactive,
				      .pid = pid,
				      .identity = identity_take(pid),
				      .inode = status.st_ino,
				      .rest = *rest,
				      .next_ns = monotonic_now_ns() + RETRY_FIRST_NS,
				      .wait_ns = RETRY_FIRST_NS};
	snprintf(inactive->region_path, sizeof(inactive->region_path), "%s", target->region_path);
	snprintf(inactive->command, sizeof(inactive->command), "%.250s", command);
	logger->inactive = inactive;
}

/* Return whether there is nothing to remove any more: the process has ended or executed another image, or somebody else
   has removed it. */
static bool is_gone(const struct inactive *inactive)
{
	return identity_has_ended(&inactive->identity) ||
	       !proc_has_mapped(inactive->pid, inactive->region_path, inactive->inode);
}

static void serve_while(void *logger)
{
	logger_serve_while(logger, NULL, NULL);
}

/* Try to remove it. True when it is gone. */
static bool inactive_try(struct logger *logger, struct inactive *inactive, enum inject_patience patience)
{
	char text[512];
	struct diag diag = {""};
	struct inject_detaching detaching = {.pid = inactive->pid,
					     .inode = inactive->inode,
					     .patience = patience,
					     .wait = &logger->wait,
					     .meanwhile = serve_while,
					     .cookie = logger};
	if (is_gone(inactive))
		return true;
	int error = inject_detach(&detaching, &diag);
	if (error)
		snprintf(inactive->rest.why, sizeof(inactive->rest.why), "%.*s", (int)sizeof(inactive->rest.why) - 1,
			 diag.text);
	else
		inactive->rest = detaching.rest;
	if (error || detaching.rest.bytes)
		return is_gone(inactive);
	snprintf(text, sizeof(text), "process %d: the inactive code that stayed mapped is removed", (int)inactive->pid);
	logger_note(logger, text);
	return true;
}

static void inactive_each_try(struct logger *logger, uint64_t now, bool is_last)
{
	for (struct inactive **link = &logger->inactive, *inactive; (inactive = *link);) {
		bool is_due = is_last || now >= inactive->next_ns;
		if (is_due && inactive_try(logger, inactive, INJECT_BRIEF)) {
			*link = inactive->next;
			identity_drop(&inactive->identity);
			free(inactive);
			continue;
		}
		if (is_due) {
			inactive->wait_ns =
				inactive->wait_ns < RETRY_LONGEST_NS / 2 ? 2 * inactive->wait_ns : RETRY_LONGEST_NS;
			inactive->next_ns = monotonic_now_ns() + inactive->wait_ns;
		}
		link = &inactive->next;
	}
}

void inactive_check(struct logger *logger, uint64_t now)
{
	/* An attach removes the code itself, and only one thread can trace a process. */
	if (logger->inactive && !tracer_is_busy(logger->tracer))
		inactive_each_try(logger, now, false);
}

void inactive_end(struct logger *logger)
{
	char text[600];
	inactive_each_try(logger, 0, true);
	while (logger->inactive) {
		struct inactive *inactive = logger->inactive;
		snprintf(text, sizeof(text), TRACE_INACTIVE_FORMAT "%s", (int)inactive->pid, inactive->rest.bytes,
			 inactive->rest.thread_count, inactive->command);
		drain_add_note(logger->drain, TRACE_OPTION_INACTIVE, text);
		logger->inactive = inactive->next;
		identity_drop(&inactive->identity);
		free(inactive);
	}
}

void inactive_tell(const struct logger *logger, int socket)
{
	for (const struct inactive *inactive = logger->inactive; inactive; inactive = inactive->next) {
		struct control_message message = {
			.kind = CONTROL_INACTIVE,
			.pid = inactive->pid,
			.inactive = {.bytes = inactive->rest.bytes, .threads = inactive->rest.thread_count}};
		snprintf(message.text, sizeof(message.text), "%s", inactive->command);
		if (!is_gone(inactive))
			control_send(socket, &message);
	}
}
