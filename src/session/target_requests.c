/* SPDX-License-Identifier: MIT */
#include "session/target_requests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/clock.h"
#include "os/proc.h"
#include "region/mail.h"
#include "session/hook_cache.h"
#include "session/members.h"

/* Whether a thread that calls itself tid has the region: one of a member, or the only one of a child that shares its
   parent's memory. */
static bool has_thread(const struct target *target, pid_t tid)
{
	struct identity identity;
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == 1 && thread_lives(&target->member[i], tid))
			return true;
	bool is_there = process_outside(target, tid, UINT32_MAX, &identity) != 0;
	identity_drop(&identity);
	return is_there;
}

void requests_reap(struct target *target)
{
	for (uint32_t i = 0; i < REGION_MAILBOX_COUNT; i++) {
		struct region_mail *mail = &target->region.header->mail[i];
		uint32_t word = LOAD_ACQUIRE(&mail->state), tid = mail_tid(word);
		enum region_mail_state state = mail_state(word);
		if ((state == MAIL_CLAIMED || state == MAIL_ANSWERED) && !has_thread(target, (pid_t)tid))
			mail_turn(mail, tid, state, MAIL_FREE);
	}
}

void unhooked_note(struct logger *logger, pid_t pid, const struct inject *inject)
{
	char text[600];
	snprintf(text, sizeof(text), "process %d: not every function could be hooked: %s", (int)pid, inject->refusal);
	drain_add_note(logger->drain, TRACE_OPTION_UNHOOKED, text);
	logger_warn(logger, text);
}

/* Follow a change of the images of a process. */
static void images_refresh(struct logger *logger, struct inject *inject, pid_t pid, uint32_t index)
{
	uint32_t refused = inject->refused;
	inject_refresh(inject, pid, index, clock_event_ticks());
	if (inject->refused != refused)
		unhooked_note(logger, pid, inject);
}

static void mail_loaded(struct logger *logger, struct target *target, struct region_mail *mail)
{
	uint32_t index = mail->value[0] < REGION_PROCESS_MAX ? (uint32_t)mail->value[0] : REGION_PROCESS_MAX;
	logger_find_members(logger, target);
	if (index >= target->member_count || target->member[index].state != 1 ||
	    target->member[index].inner != (pid_t)mail->pid)
		return;
	struct member *member = &target->member[index];
	pid_t pid = member->pid;
	if (index == 0) {
		images_refresh(logger, &target->inject, pid, 0);
		return;
	}
	if (!member->inject) {
		char path[64];
		struct inject *inject = memory_zeroed(1, sizeof(*inject));
		*inject = target->inject;
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
		inject->memory = open(path, O_RDWR | O_CLOEXEC);
		/* Another process may have its number. */
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

/* Who has sent a mail, by our count; 0: nobody who has the region. A process that shares its parent's memory sends as
 * its parent does. *identity: its, the caller's, taken before that was found out; or nobody's. */
static pid_t mail_sender(const struct target *target, const struct region_mail *mail, struct identity *identity)
{
	*identity = IDENTITY_NONE;
	const struct member *member = mail->value[0] < target->member_count ? &target->member[mail->value[0]] : NULL;
	if (!member || member->state != 1 || member->inner != (pid_t)mail->pid)
		return process_outside(target, (pid_t)mail->pid,
				       mail->value[0] < REGION_PROCESS_MAX ? (uint32_t)mail->value[0] : UINT32_MAX,
				       identity);
	*identity = identity_take(member->pid);
	return process_has_region(target, member->pid) ? member->pid : 0;
}

static pid_t sending_thread(pid_t pid, pid_t inner)
{
	if (!pid || proc_inner_id(pid, inner) == inner)
		return pid ? inner : 0;
	return proc_outer_thread(pid, inner);
}

void logger_exec_identity(struct target *target, pid_t pid, uint64_t caller, struct hold_request *request)
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

static void mail_exec(struct logger *logger, struct target *target, struct region_mail *mail, uint32_t tid)
{
	logger_find_members(logger, target);
	bool is_wanted = logger->options->follow && !(logger->is_command_over && logger->options->until_exit);
	struct identity identity = IDENTITY_NONE;
	pid_t pid = is_wanted ? mail_sender(target, mail, &identity) : 0;
	struct stat status = {0};
	fstat(target->region.fd, &status);
	struct hold_request request = {.pid = pid,
				       .tid = identity_is_known(&identity) ? sending_thread(pid, (pid_t)tid) : 0,
				       .identity = identity,
				       .directory = (int)mail->value[1],
				       .mail = mail,
				       .mail_tid = tid,
				       .region_path = target->region_path,
				       .region_inode = status.st_ino};
	snprintf(request.path, sizeof(request.path), "%.*s", (int)sizeof(mail->text) - 1, mail->text);
	logger_exec_identity(target, pid, mail->value[0], &request);
	/* A thread makes one exec at a time. */
	if (request.tid && !holder_has_thread(logger->holder, request.tid) && holder_start(logger->holder, &request))
		return;
	identity_drop(&identity);
	if (is_wanted)
		COUNT(&target->region.header->untraced_execs, 1);
	region_answer(mail, tid);
}

bool requests_answer(struct logger *logger, struct target *target, const struct member *leaving)
{
	bool has_any = false;
	for (uint32_t i = 0; i < REGION_MAILBOX_COUNT; i++) {
		struct region_mail *mail = &target->region.header->mail[i];
		uint32_t word = LOAD_ACQUIRE(&mail->state), tid = mail_tid(word);
		if (mail_state(word) != MAIL_POSTED)
			continue;
		if (leaving && (pid_t)mail->pid == leaving->inner &&
		    (mail->kind == MAIL_LOADED || mail->kind == MAIL_EXEC)) {
			mail->kind = MAIL_NONE;
			region_answer(mail, tid);
			continue;
		}
		switch (mail->kind) {
		case MAIL_LOADED:
			mail_loaded(logger, target, mail);
			region_answer(mail, tid);
			has_any = true;
			break;
		case MAIL_EXEC:
			/* Once: the holder answers, from then on the kind is none. */
			mail->kind = MAIL_NONE;
			mail_exec(logger, target, mail, tid);
			has_any = true;
			break;
		case MAIL_EXEC_FAILED:
			mail->kind = MAIL_NONE;
			holder_cancel(logger->holder, mail, 0);
			region_answer(mail, tid);
			has_any = true;
			break;
		default:
			break;
		}
	}
	return has_any;
}
