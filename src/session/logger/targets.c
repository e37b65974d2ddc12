/* SPDX-License-Identifier: MIT */
#include "session/logger/targets.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "os/proc_text.h"
#include "region/atomic.h"
#include "region/guard.h"
#include "session/directory/fields.h"
#include "session/drain/drain_gaps.h"
#include "session/drain/drain_notes.h"
#include "session/logger/answer.h"
#include "session/logger/inactive.h"
#include "session/logger/logger_loop.h"
#include "session/logger/members.h"
#include "session/logger/untraced.h"
#include "trace/option_names.h"

/* ---- our death ---- */

/* Add the region to the list by which the kernel marks each region's owner word when the logger dies. */
static void robust_add(struct logger *logger, struct region *region)
{
	struct robust_list *node = (struct robust_list *)region->header->robust_node;
	STORE(&region->header->owner, (uint32_t)syscall(SYS_gettid));
	node->next = logger->robust.list.next;
	logger->robust.list.next = node;
}

static void robust_remove(struct logger *logger, struct region *region)
{
	/* Targets can write the memory of the list: rebuild it from the logger's list of targets instead of following
	   it. */
	struct robust_list *head = &logger->robust.list;
	for (struct target *target = logger->targets; target; target = target->next) {
		if (&target->region == region)
			continue;
		struct robust_list *other = (struct robust_list *)target->region.header->robust_node;
		other->next = head;
		head = other;
	}
	logger->robust.list.next = head;
	STORE(&region->header->owner, FUTEX_OWNER_DIED);
}

void targets_robust_begin(struct logger *logger)
{
	logger->robust.list.next = &logger->robust.list;
	logger->robust.futex_offset =
		(long)offsetof(struct region_header, owner) - (long)offsetof(struct region_header, robust_node);
	syscall(SYS_set_robust_list, &logger->robust, sizeof(logger->robust));
}

/* ---- beginning ---- */

static void info_write(struct logger *logger, const struct target *target, const struct drain_image *image,
		       uint32_t number)
{
	char name[64];
	struct fields fields = {.text = NULL};
	snprintf(name, sizeof(name), "region.%u.info", number);
	fields_add_number(&fields, "pid", image->pid);
	fields_add_number(&fields, "parent", image->parent);
	fields_add_number(&fields, "exec_generation", image->exec_generation);
	fields_add(&fields, "image", image->image);
	fields_add(&fields, "command", image->command);
	fields_add_number(&fields, "start_ticks", image->start_ticks);
	fields_add_number(&fields, "process", drain_process(target->drain, 0));
	session_file_write(&logger->directory, name, &fields, NULL);
	fields_fini(&fields);
}

void target_end_recording(struct target *target)
{
	drain_note_end(target->drain);
	__atomic_fetch_or(&target->region.header->options, (uint32_t)OPTION_COUNT_ONLY, __ATOMIC_RELEASE);
}

void target_add(struct logger *logger, struct tracer_result *result)
{
	char image_path[4096], command[8192], name[32];
	pid_t inner = proc_inner_id(result->pid, result->pid);
	struct target *target = memory_zeroed(1, sizeof(*target));
	target->region = result->region;
	target->inject = result->inject;
	target->inject.region = &target->region;
	target->parent = result->parent;
	target->number = result->number;
	target->pause_ns = result->pause_ns;
	target->stack_start = result->stack_start;
	target->exec_generation = result->exec_generation;
	target->may_gain = result->may_gain;
	snprintf(target->region_path, sizeof(target->region_path), "%s", result->region_path);
	inject_image(&target->inject, image_path, sizeof(image_path));
	proc_command(result->pid, command, sizeof(command));
	proc_thread_name(result->pid, result->pid, name, sizeof(name));
	struct drain_image image = {.pid = (uint32_t)result->pid,
				    .parent = result->parent,
				    .exec_generation = result->exec_generation,
				    .image = image_path,
				    .command = command,
				    .start_ticks = region_process(&target->region, 0)->start_ticks,
				    .first_tid = inner > 0 ? (uint32_t)inner : 0,
				    .first_name = name};
	target->drain = drain_add(logger->drain, &target->region, &image);
	target->next = logger->targets;
	logger->targets = target;
	robust_add(logger, &target->region);
	if (logger->is_recording_over)
		target_end_recording(target);
	/* The process stays stopped until its result is taken. */
	member_begin(logger, target, 0, result->pid, identity_take(result->pid), inner);
	info_write(logger, target, &image, result->number);
	untraced_know(logger, result->pid);
	if (result->pause_ns)
		untraced_know_children(logger, result->pid);
	if (!region_file_is_elsewhere(target->region_path, logger->directory.path) || logger->is_elsewhere_noted)
		return;
	logger->is_elsewhere_noted = true;
	char text[sizeof(target->region_path) + sizeof(logger->directory.path) + 160];
	snprintf(text, sizeof(text), "%s is full: events of process %d are kept in %s until the trace has them",
		 logger->directory.path, (int)result->pid, target->region_path);
	logger_note(logger, text);
}

/* ---- state ---- */

void damage_check(struct logger *logger, struct target *target)
{
	char text[200];
	if (target->is_damaged || !region_is_damaged(&target->region))
		return;
	target->is_damaged = true;
	__atomic_fetch_and(&target->region.header->options, ~(uint32_t)OPTION_ENABLED, __ATOMIC_RELEASE);
	snprintf(text, sizeof(text),
		 "process %d and those that it forked: the memory that they share with the logger was damaged: their "
		 "recording ended",
		 (int)target->inject.pid);
	drain_add_note(logger->drain, TRACE_OPTION_DAMAGED, text);
	logger_warn(logger, text);
}

void limits_check(struct logger *logger, struct target *target)
{
	char text[300];
	while (drain_take_limit_note(target->drain, text, sizeof(text)))
		logger_warn(logger, text);
}

/* ---- end ---- */

/* Processes that have the region mapped, and are in no list. */
struct unlisted {
	const struct logger *logger;
	const struct target *target;
	uint64_t inode;
	pid_t pids[REGION_PROCESS_MAX];
	uint32_t count;
};

static bool unlisted_take(void *cookie, pid_t pid)
{
	struct unlisted *unlisted = cookie;
	if (pid != getpid() && proc_has_mapped(pid, unlisted->target->region_path, unlisted->inode) &&
	    !inactive_has(unlisted->logger, pid, unlisted->inode))
		unlisted->pids[unlisted->count++] = pid;
	return unlisted->count == REGION_PROCESS_MAX;
}

static void serve_others(void *logger)
{
	logger_serve_while(logger, NULL, NULL);
}

/* Detach from forked processes that never called the heap and so are in no list: their functions lead to the recorder,
   too. */
static void unlisted_detach(struct logger *logger, struct target *target)
{
	struct stat status;
	if (!proc_is_in_use(target->region_path, target->region.fd) || fstat(target->region.fd, &status) != 0)
		return;
	struct unlisted unlisted = {.logger = logger, .target = target, .inode = status.st_ino};
	proc_search(unlisted_take, &unlisted);
	for (uint32_t i = 0; i < unlisted.count; i++) {
		char command[512];
		struct diag diag = {""};
		struct inject_detaching detaching = {.pid = unlisted.pids[i],
						     .inode = unlisted.inode,
						     .patience = INJECT_PATIENT,
						     .wait = &logger->wait,
						     .meanwhile = serve_others,
						     .cookie = logger};
		proc_command(detaching.pid, command, sizeof(command));
		if (inject_detach(&detaching, &diag) != 0)
			detaching.rest = (struct inject_rest){.bytes = target->region.bytes};
		if (detaching.rest.bytes)
			inactive_add(logger, target, detaching.pid, command, &detaching.rest);
	}
}

/* Note programs that were executed, and code that was loaded, before an answer came: only their numbers are known. */
static void note_unanswered(struct logger *logger, const struct target *target)
{
	char text[200];
	uint32_t loads = LOAD(&target->region.header->unanswered_loads);
	snprintf(text, sizeof(text),
		 "process %d and those that it forked: code was loaded or unloaded %u times, and was looked at late or "
		 "not at all",
		 (int)target->inject.pid, loads);
	if (loads) {
		drain_add_note(logger->drain, TRACE_OPTION_UNHOOKED, text);
		logger_warn(logger, text);
	}
	uint32_t count = LOAD(&target->region.header->untraced_execs);
	if (!count)
		return;
	snprintf(text, sizeof(text),
		 "process %d and those that it forked: %u execs continued without an answer; the executed programs may "
		 "run untraced",
		 (int)target->inject.pid, count);
	drain_add_note(logger->drain, TRACE_OPTION_UNTRACED_EXECS, text);
	logger_warn(logger, text);
}

void target_remove(struct logger *logger, struct target *target)
{
	struct target **link = &logger->targets;
	__atomic_store_n(&target->region.header->state, REGION_DETACHED, __ATOMIC_RELEASE);
	if (target->is_let_go || target->has_inactive)
		unlisted_detach(logger, target);
	while (*link && *link != target)
		link = &(*link)->next;
	robust_remove(logger, &target->region);
	*link = target->next;
	logger_settle_clock(logger, true);
	note_unanswered(logger, target);
	drain_poll(target->drain, true, &logger->error, &logger->diag);
	limits_check(logger, target);
	drain_remove(target->drain, &logger->error, &logger->diag);
	damage_check(logger, target);
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state)
			member_release(&target->member[i]);
	inject_fini(&target->inject);
	/* A detached process keeps the mapping; after many sessions the buffers would be a loss of memory. */
	if (target->is_let_go || target->has_inactive)
		region_forget_buffers(&target->region);
	region_close(&target->region);
	char name[64];
	snprintf(name, sizeof(name), "region.%u", target->number);
	session_file_remove(&logger->directory, name);
	snprintf(name, sizeof(name), "region.%u.info", target->number);
	session_file_remove(&logger->directory, name);
	free(target);
}
