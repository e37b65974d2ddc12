/* SPDX-License-Identifier: MIT */
/* The logger's side of the messages of recorder/message.c, which has the timeline of both sides. */
#include "session/logger/target_messages.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/clock.h"
#include "os/proc.h"
#include "region/message.h"
#include "session/drain/drain_notes.h"
#include "session/logger/answer.h"
#include "session/logger/members.h"
#include "trace/option_names.h"

/* Return whether a thread with the id `tid` in its own namespace has the region. It is a thread of a member, or the
   only one of a child that shares its parent's memory. */
static bool has_thread(const struct target *target, pid_t tid)
{
	struct identity identity;
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == MEMBER_LIVE && thread_lives(&target->member[i], tid))
			return true;
	bool is_there = process_outside(target, tid, UINT32_MAX, &identity) != 0;
	identity_drop(&identity);
	return is_there;
}

void requests_reap(struct target *target)
{
	for (uint32_t i = 0; i < REGION_MESSAGE_COUNT; i++) {
		struct region_message *message = &target->region.header->message[i];
		uint32_t word = LOAD_ACQUIRE(&message->state), tid = message_tid(word);
		enum region_message_state state = message_state(word);
		if ((state == MESSAGE_CLAIMED || state == MESSAGE_ANSWERED) && !has_thread(target, (pid_t)tid))
			message_turn(message, tid, state, MESSAGE_FREE);
	}
}

void unhooked_note(struct logger *logger, pid_t pid, const struct inject *inject)
{
	char text[600];
	snprintf(text, sizeof(text), "process %d: not every function could be hooked: %s", (int)pid, inject->refusal);
	drain_add_note(logger->drain, TRACE_OPTION_UNHOOKED, text);
	logger_warn(logger, text);
}

/* Follow a change of a process's images. */
static void images_refresh(struct logger *logger, struct inject *inject, pid_t pid, uint32_t index)
{
	uint32_t refused = inject->refused;
	inject_refresh(inject, pid, index, clock_event_ticks());
	if (inject->refused != refused)
		unhooked_note(logger, pid, inject);
}

static void message_loaded(struct logger *logger, struct target *target, struct region_message *message)
{
	uint32_t index = message->value[0] < REGION_PROCESS_MAX ? (uint32_t)message->value[0] : REGION_PROCESS_MAX;
	logger_find_members(logger, target);
	if (index >= target->member_count || target->member[index].state != MEMBER_LIVE ||
	    target->member[index].inner != (pid_t)message->pid)
		return;
	struct member *member = &target->member[index];
	pid_t pid = member->pid;
	if (index == 0) {
		images_refresh(logger, &target->inject, pid, 0);
		return;
	}
	if (!member->inject) {
		struct inject *inject = memory_zeroed(1, sizeof(*inject));
		*inject = target->inject;
		inject->memory = proc_open(pid, "mem", O_RDWR);
		/* The pid may belong to another process by now. */
		if (inject->memory >= 0 && member_has_ended(member)) {
			close(inject->memory);
			inject->memory = -1;
		}
		inject->pid = pid;
		inject->image = NULL;
		inject->image_count = 0;
		inject->jump = NULL;
		inject->jump_count = inject->jump_capacity = 0;
		member->inject = inject;
	}
	images_refresh(logger, member->inject, pid, index);
}

/* Return the sender of a message as the logger numbers it; 0: no process that has the region. A process that shares its
   parent's memory sends as its parent. *identity is the sender's, taken before these checks; or IDENTITY_NONE. */
static pid_t message_sender(const struct target *target, const struct region_message *message,
			    struct identity *identity)
{
	*identity = IDENTITY_NONE;
	const struct member *member =
		message->value[0] < target->member_count ? &target->member[message->value[0]] : NULL;
	if (!member || member->state != MEMBER_LIVE || member->inner != (pid_t)message->pid)
		return process_outside(
			target, (pid_t)message->pid,
			message->value[0] < REGION_PROCESS_MAX ? (uint32_t)message->value[0] : UINT32_MAX, identity);
	*identity = identity_take(member->pid);
	return process_has_region(target, member->pid) ? member->pid : 0;
}

static pid_t sending_thread(pid_t pid, pid_t inner)
{
	if (!pid || proc_inner_id(pid, inner) == inner)
		return pid ? inner : 0;
	return proc_outer_thread(pid, inner);
}

/* ---- senders under seccomp ---- */

/* Children that a process which sent without a system call may be. */
struct quiet_search {
	const struct target *target;
	uint32_t index; /* that they have noted for themselves; UINT32_MAX: none yet */
	uint32_t count;
	pid_t found;
};

static bool is_on_processor(pid_t tid)
{
	return proc_state(tid) == 'R';
}

static bool is_quiet_sender(const struct target *target, pid_t pid, uint32_t index)
{
	return process_has_region(target, pid) && inject_process_index(&target->inject, pid) == index;
}

static void check_quiet_child(void *cookie, pid_t child)
{
	struct quiet_search *search = cookie;
	if (!is_quiet_sender(search->target, child, search->index) || !is_on_processor(child))
		return;
	search->found = child;
	search->count++;
}

/*
 * A message that was sent under seccomp names ids from the sender's memory. A child that shares its parent's memory
 * (vfork) names its parent. So does a child that a bare system call has made. The sender pauses on a processor, while
 * the parent waits for the child or does something else. Return whether *pid, its identity and *tid are the sender's by
 * now. A process is never stopped in vain.
 */
static bool quiet_sender(const struct target *target, const struct region_message *message, pid_t *pid, pid_t *tid,
			 struct identity *identity)
{
	uint32_t index = message->value[0] < REGION_PROCESS_MAX ? (uint32_t)message->value[0] : UINT32_MAX;
	if (*pid && !proc_thread_exists(*pid, *tid))
		*tid = *pid;
	if (!*pid || !is_quiet_sender(target, *pid, index) || !is_on_processor(*tid)) {
		struct quiet_search search = {.target = target, .index = index};
		proc_children(*pid ? *pid : (pid_t)message->pid, check_quiet_child, &search);
		identity_drop(identity);
		*pid = *tid = search.count == 1 ? search.found : 0;
		*identity = *pid ? identity_take(*pid) : IDENTITY_NONE;
	}
	return *pid && is_quiet_sender(target, *pid, index);
}

/* ---- execs ---- */

void logger_exec_identity(struct target *target, pid_t pid, uint64_t caller, struct tracer_task *request)
{
	uint32_t index = logger_member_of_pid(target, pid);
	if (index == 0) {
		request->parent = target->parent;
		request->exec_generation = target->exec_generation + 1;
	} else if (index != UINT32_MAX) {
		request->parent = drain_process(target->drain,
						region_process(&target->region, index)->parent % REGION_PROCESS_MAX);
		request->exec_generation = 1;
	} else {
		request->parent = drain_process(target->drain, caller < REGION_PROCESS_MAX ? (uint32_t)caller : 0);
		request->exec_generation = 1;
	}
}

static void message_exec(struct logger *logger, struct target *target, struct region_message *message, uint32_t tid)
{
	logger_find_members(logger, target);
	bool is_wanted = logger->options->follow && !(logger->is_command_over && logger->options->until_exit);
	struct identity identity = IDENTITY_NONE;
	pid_t pid = is_wanted ? message_sender(target, message, &identity) : 0;
	pid_t thread = identity_is_known(&identity) ? sending_thread(pid, (pid_t)tid) : 0;
	struct stat status = {0};
	if (is_wanted && message->value[MESSAGE_IS_QUIET] && !quiet_sender(target, message, &pid, &thread, &identity))
		thread = 0;
	fstat(target->region.fd, &status);
	struct tracer_task request = {.pid = pid,
				      .tid = thread,
				      .identity = identity,
				      .directory = (int)message->value[1],
				      .message = message,
				      .message_tid = tid,
				      .may_gain = target->may_gain,
				      .region_path = target->region_path,
				      .region_inode = status.st_ino};
	snprintf(request.path, sizeof(request.path), "%.*s", (int)sizeof(message->text) - 1, message->text);
	logger_exec_identity(target, pid, message->value[0], &request);
	/* A thread makes one exec at a time. */
	if (request.tid && !tracer_has_thread(logger->tracer, request.tid) && tracer_start(logger->tracer, &request))
		return;
	identity_drop(&identity);
	if (is_wanted)
		COUNT(&target->region.header->untraced_execs, 1);
	region_answer(message, tid);
}

/* ---- cores ---- */

bool logger_core_start(struct logger *logger, struct target *target, pid_t pid, struct tracer_task *task)
{
	const uint32_t index = logger_member_of_pid(target, pid);
	if (index == UINT32_MAX)
		return false;
	const struct inject *own = target->member[index].inject;
	task->pid = pid;
	task->is_core = true;
	task->span_count = inject_spans(own ? own : &target->inject, pid, task->spans);
	return tracer_start(logger->tracer, task);
}

static void message_exit(struct logger *logger, struct target *target, struct region_message *message, uint32_t tid)
{
	logger_find_members(logger, target);
	struct identity identity = IDENTITY_NONE;
	const pid_t pid = message_sender(target, message, &identity);
	struct tracer_task request = {
		.tid = sending_thread(pid, (pid_t)tid), .identity = identity, .message = message, .message_tid = tid};
	snprintf(request.path, sizeof(request.path), "%s/%d.%" PRIu32, logger->options->exit_cores, (int)pid,
		 target->number);
	if (pid && request.tid && logger_core_start(logger, target, pid, &request))
		return;
	identity_drop(&identity);
	region_answer(message, tid);
}

bool requests_answer(struct logger *logger, struct target *target, const struct member *leaving)
{
	bool has_any = false;
	for (uint32_t i = 0; i < REGION_MESSAGE_COUNT; i++) {
		struct region_message *message = &target->region.header->message[i];
		uint32_t word = LOAD_ACQUIRE(&message->state), tid = message_tid(word);
		if (message_state(word) != MESSAGE_POSTED)
			continue;
		if (leaving && (pid_t)message->pid == leaving->inner &&
		    (message->kind == MESSAGE_LOADED || message->kind == MESSAGE_EXEC ||
		     message->kind == MESSAGE_EXIT)) {
			message->kind = MESSAGE_NONE;
			region_answer(message, tid);
			continue;
		}
		switch (message->kind) {
		case MESSAGE_LOADED:
			message_loaded(logger, target, message);
			region_answer(message, tid);
			has_any = true;
			break;
		case MESSAGE_EXEC:
			/* Handle it once: the tracer answers, so the kind becomes NONE. */
			message->kind = MESSAGE_NONE;
			message_exec(logger, target, message, tid);
			has_any = true;
			break;
		case MESSAGE_EXIT:
			message->kind = MESSAGE_NONE;
			message_exit(logger, target, message, tid);
			has_any = true;
			break;
		case MESSAGE_EXEC_FAILED:
			message->kind = MESSAGE_NONE;
			tracer_cancel(logger->tracer, message, 0);
			region_answer(message, tid);
			has_any = true;
			break;
		default:
			break;
		}
	}
	return has_any;
}
