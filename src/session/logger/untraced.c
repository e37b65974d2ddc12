/* SPDX-License-Identifier: MIT */
/*
 * The search for processes that run untraced although they descend from recorded ones.
 *
 * An exec by a function of the C library is announced, and the process is stopped at it. A program may also make the
 * system calls itself, as Go's does for each child: then the new image has no recorder and no announcement. The kernel
 * lists the children of each thread. It also knows whether a process has executed an image since its fork, even when it
 * has ended and was not waited for. So the logger checks the children of recorded processes and of known untraced ones.
 * A child that has executed an image, and is neither recorded nor being traced, is untraced.
 *
 * A search costs one read for each thread. It runs only after some process began on the machine, or while a child has
 * not executed an image yet. Two searches are LOOK_NS apart at least, and all together take at most one LOOK_PARTS-th
 * of a processor. A program that has started one process so starts more: then searches come ten times as often, as long
 * as processes begin. A child with a shorter life may stay unseen.
 *
 * A recorded process may execute an image in the same way. Its stack then lies elsewhere.
 */
#include "session/logger/untraced.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "os/clock.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "os/proc_text.h"
#include "session/drain/drain_notes.h"
#include "session/logger/answer.h"
#include "session/logger/logger_loop.h"
#include "session/logger/logger_state.h"
#include "session/logger/members.h"
#include "session/logger/target_messages.h"
#include "session/logger/tracer_results.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

enum {
	LOOK_NS = 10000000,
	EAGER_LOOK_NS = 1000000,
	SLOW_LOOK_NS = 200000000,
	LOOK_PAUSE_MOST_NS = 1000000000,
	LOOK_PARTS = 50,
	EAGER_LOOK_PARTS = 5,
	KNOWN_MIN = 256
};

/* A process that has executed an image, and need not be asked about again. */
struct known {
	pid_t pid;
	uint64_t start_time;
	/* in the trace; TRACE_NONE: it was recorded from its exec on, or was there before an attach */
	uint32_t process;
};

struct untraced {
	struct known *known;
	size_t count, capacity;
	size_t count_kept;            /* its value when dead processes were last forgotten */
	uint64_t checked_ns, took_ns; /* when the last search was, and how long it took */
	uint64_t members_checked_ns;
	pid_t newest;
	bool has_undecided; /* a child that has executed nothing yet */
	bool has_own_calls; /* a process was executed without an announcement */
};

static const char not_seen[] = "its exec was not seen, as when a program makes the system call itself";

/* A check of the children of one process. */
struct child_search {
	struct logger *logger;
	uint32_t parent;
	const char *own_reason; /* NULL: the parent is untraced */
};

/* ---- known processes ---- */

static void known_forget_gone(struct untraced *untraced)
{
	size_t kept = 0;
	if (untraced->count < KNOWN_MIN || untraced->count < 2 * untraced->count_kept)
		return;
	for (size_t i = 0; i < untraced->count; i++)
		if (proc_start_time(untraced->known[i].pid) == untraced->known[i].start_time)
			untraced->known[kept++] = untraced->known[i];
	untraced->count = untraced->count_kept = kept;
}

static void known_add(struct logger *logger, pid_t pid, uint64_t start_time, uint32_t process)
{
	struct untraced *untraced = logger->untraced_processes;
	if (untraced && untraced->count == untraced->capacity) {
		size_t capacity = untraced->capacity ? 2 * untraced->capacity : KNOWN_MIN;
		untraced->known = memory_resize(untraced->known, capacity, sizeof(*untraced->known));
		untraced->capacity = capacity;
	}
	if (untraced)
		untraced->known[untraced->count++] = (struct known){pid, start_time, process};
}

static bool is_known(const struct untraced *untraced, pid_t pid, uint64_t start_time)
{
	for (size_t i = 0; i < untraced->count; i++)
		if (untraced->known[i].pid == pid && untraced->known[i].start_time == start_time)
			return true;
	return false;
}

void untraced_know(struct logger *logger, pid_t pid)
{
	known_add(logger, pid, proc_start_time(pid), TRACE_NONE);
}

static void know_child(void *logger, pid_t child)
{
	untraced_know(logger, child);
}

void untraced_know_children(struct logger *logger, pid_t pid)
{
	proc_children(pid, know_child, logger);
}

/* ---- naming ---- */

static void untraced_write(struct logger *logger, const struct trace_process *process)
{
	uint32_t id = drain_has_room(logger->drain) ? writer_add_process(logger->writer, process) : TRACE_NONE;
	if (id == TRACE_NONE)
		drain_add_note(logger->drain, TRACE_OPTION_UNTRACED_EXECS,
			       "more processes ran untraced than can be named");
	known_add(logger, (pid_t)process->pid, proc_start_time((pid_t)process->pid), id);
	logger->untraced++;
}

void untraced_add(struct logger *logger, const struct trace_process *process)
{
	char text[4096];
	untraced_write(logger, process);
	snprintf(text, sizeof(text), "process %u (%s) runs untraced: %s", process->pid, process->image, process->note);
	logger_warn(logger, text);
}

/* Report a process that was not announced, with its own reason or as a descendant of an untraced one. Descendants
   appear only in the trace, for there may be thousands. An ended process has a name, but no image and no command
   line. */
static void unannounced_add(struct logger *logger, pid_t pid, const struct proc_life *life, uint32_t parent,
			    uint32_t exec_generation, const char *own_reason)
{
	char image[4096], command[2048];
	proc_image(pid, image, sizeof(image));
	proc_command(pid, command, sizeof(command));
	logger->untraced_processes->has_own_calls = true;
	logger_settle_clock(logger, true);
	struct trace_process process = {.pid = (uint32_t)pid,
					.parent = parent,
					.forked_from = TRACE_NONE,
					.exec_generation = exec_generation,
					.start_ns = (int64_t)clock_event_ticks(),
					.end_ns = INT64_MAX,
					.end = TRACE_END_UNKNOWN,
					.image = image[0] ? image : life->name,
					.command = command[0] ? command : life->name,
					.note = own_reason ? own_reason : "its parent runs untraced"};
	(own_reason ? untraced_add : untraced_write)(logger, &process);
}

/* ---- searching ---- */

static void check_child(void *cookie, pid_t child)
{
	const struct child_search *search = cookie;
	struct logger *logger = search->logger;
	struct untraced *untraced = logger->untraced_processes;
	struct proc_life life;
	if (logger_has_pid(logger, child) || !proc_read_life(child, &life) ||
	    is_known(untraced, child, life.start_time))
		return;
	/* Only this thread begins traces and takes results, so a process that has executed by now is traced by now. */
	if (!life.has_executed || tracer_has(logger->tracer, child))
		untraced->has_undecided = true;
	else
		unannounced_add(logger, child, &life, search->parent, 1, search->own_reason);
}

static void check_children(struct logger *logger)
{
	struct untraced *untraced = logger->untraced_processes;
	known_forget_gone(untraced);
	untraced->has_undecided = false;
	for (struct target *target = logger->targets; target; target = target->next) {
		for (uint32_t i = 0; i < target->member_count; i++) {
			const struct member *member = &target->member[i];
			struct child_search search = {logger, drain_process(target->drain, i), not_seen};
			if (member->state == MEMBER_LIVE && member->pid)
				proc_children(member->pid, check_child, &search);
		}
	}
	/* Processes found in this search are checked, too. */
	for (size_t i = 0; i < untraced->count; i++) {
		const struct known known = untraced->known[i];
		struct child_search search = {logger, known.process, NULL};
		if (known.process != TRACE_NONE && proc_start_time(known.pid) == known.start_time)
			proc_children(known.pid, check_child, &search);
	}
}

/* Return whether a recorded process has executed an image by itself. */
static void check_member(struct logger *logger, struct target *target, uint32_t index)
{
	const struct member *member = &target->member[index];
	struct proc_life life;
	if (member->state != MEMBER_LIVE || !member->pid || !target->stack_start ||
	    !proc_read_life(member->pid, &life) || !life.stack_start || life.stack_start == target->stack_start ||
	    tracer_has(logger->tracer, member->pid))
		return;
	pid_t pid = member->pid;
	struct tracer_task request = {.pid = pid, .identity = IDENTITY_NONE};
	logger_exec_identity(target, pid, index, &request);
	logger_image_over(logger, pid, clock_event_ticks());
	unannounced_add(logger, pid, &life, request.parent, request.exec_generation, not_seen);
}

static void check_members(struct logger *logger)
{
	for (struct target *target = logger->targets; target; target = target->next)
		for (uint32_t i = 0; i < target->member_count; i++)
			check_member(logger, target, i);
}

/* Return whether children may have come, or executed an image, since the last look. */
static bool has_news(struct untraced *untraced, uint64_t since_ns)
{
	pid_t newest = proc_newest();
	bool has = newest != untraced->newest || !newest || (untraced->has_undecided && since_ns >= SLOW_LOOK_NS);
	untraced->newest = newest;
	return has;
}

/* Return whether a search is due. One that had to wait for a processor took long, but must not delay the next by
   minutes. */
static bool is_due(const struct untraced *untraced, uint64_t since_ns, bool is_eager)
{
	uint64_t least_ns = is_eager ? EAGER_LOOK_NS : LOOK_NS,
		 parts_ns = (is_eager ? EAGER_LOOK_PARTS : LOOK_PARTS) * untraced->took_ns;
	return since_ns >= least_ns && since_ns >= (parts_ns < LOOK_PAUSE_MOST_NS ? parts_ns : LOOK_PAUSE_MOST_NS);
}

bool untraced_search(struct logger *logger, uint64_t now, bool is_last)
{
	struct untraced *untraced = logger->untraced_processes;
	/* A full file has ended the recording: then no exec is announced. */
	if (!untraced || !logger->options->follow || !logger->targets || logger->is_recording_over)
		return false;
	uint64_t since_ns = now - untraced->checked_ns;
	bool is_eager = untraced->has_own_calls;
	if (is_last || now - untraced->members_checked_ns >= SLOW_LOOK_NS) {
		untraced->members_checked_ns = now;
		check_members(logger);
	}
	if (!is_last && (!is_due(untraced, since_ns, is_eager) || !has_news(untraced, since_ns)))
		return false;
	uint64_t began_ns = monotonic_now_ns();
	check_children(logger);
	untraced->checked_ns = now;
	untraced->took_ns = monotonic_now_ns() - began_ns;
	return is_eager;
}

void untraced_begin(struct logger *logger)
{
	logger->untraced_processes = memory_zeroed(1, sizeof(*logger->untraced_processes));
}

void untraced_end(struct logger *logger)
{
	if (logger->untraced_processes)
		free(logger->untraced_processes->known);
	free(logger->untraced_processes);
	logger->untraced_processes = NULL;
}
