/* SPDX-License-Identifier: MIT */
/*
 * The logger's loop: answer mails, drain regions, notice ends, until nobody is left.
 *
 * Only this thread touches the trace and the list of targets. A process that is about to execute another image is held by a
 * thread of its own (hold.c), since tracing is a matter of threads; what came of it arrives in a queue.
 */
#include "session/logger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "inject/remote.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/moment.h"
#include "os/proc.h"
#include "region/guard.h"
#include "region/mail.h"
#include "session/directory.h"
#include "session/ended.h"
#include "session/hook_cache.h"
#include "session/indexing.h"
#include "session/logger_state.h"

#define CALLS_LIMIT_NS NS_PER_S
enum { IDLE_MS = 10, BUSY_MS = 1, BUSY_ROUNDS = 100, REAP_NS = 200000000, STATUS_WAIT_NS = 200000000,
       SAMPLE_NS = 20000000, SAMPLE_CHANGE = 128,
       SEARCH_ROUNDS = 3, INDEX_POLL_MS = 100, PERCENT = 100 };

/* ---- our death ---- */

/* The kernel walks this list when we die and marks each region's owner word. */
static void robust_add(struct logger *logger, struct region *region)
{
	struct robust_list *node = (struct robust_list *)region->header->robust_node;
	region->header->owner = (uint32_t)syscall(SYS_gettid);
	node->next = logger->robust.list.next;
	logger->robust.list.next = node;
}

static void robust_remove(struct logger *logger, struct region *region)
{
	/* The list lies in memory that targets can write: rebuild it from our own list of targets instead of following it. */
	struct robust_list *head = &logger->robust.list;
	for (struct target *target = logger->targets; target; target = target->next) {
		if (&target->region == region)
			continue;
		struct robust_list *other = (struct robust_list *)target->region.header->robust_node;
		other->next = head;
		head = other;
	}
	logger->robust.list.next = head;
	region->header->owner = FUTEX_OWNER_DIED;
}

static void robust_begin(struct logger *logger)
{
	logger->robust.list.next = &logger->robust.list;
	logger->robust.futex_offset = (long)offsetof(struct region_header, owner) - (long)offsetof(struct region_header, robust_node);
	syscall(SYS_set_robust_list, &logger->robust, sizeof(logger->robust));
}

/* ---- the clock ---- */

static void session_write(struct logger *logger);

/* The trace's first block carries the rate: measured as long as there is time, that is until a thread has
 * filled a buffer or ended. */
void logger_settle_clock(struct logger *logger, bool is_urgent)
{
	if (logger->is_clock_set || !(is_urgent || session_clock_is_due(&logger->clock)))
		return;
	session_clock_settle(&logger->clock);
	writer_set_clock(logger->writer, &logger->clock.writer);
	session_write(logger);
	logger->is_clock_set = true;
}

static void settle_clock_now(void *logger)
{
	logger_settle_clock(logger, true);
}

/* ---- targets ---- */

/* identity: of pid, ours from now on. */
static void member_begin(const struct logger *logger, struct target *target, uint32_t index, pid_t pid, struct identity identity, pid_t inner)
{
	struct member *member = &target->member[index];
	*member = (struct member){.identity = identity, .pid = pid, .inner = inner, .state = 1,
				  .is_foreign = pid && proc_is_foreign(pid)};
	watch_add(logger->watch, member->identity.pidfd);
	target->alive++;
	if (index >= target->member_count)
		target->member_count = index + 1;
}

static void member_release(struct member *member)
{
	identity_drop(&member->identity);
	free(member->cgroups);
	member->cgroups = NULL;
	if (!member->inject)
		return;
	inject_fini(member->inject);
	free(member->inject);
	member->inject = NULL;
}

/* ---- the end without memory ---- */

static struct logger *running;

/*
 * Whoever is told that there is no memory can do nothing sensible any more: end as if killed. What was recorded lies in the trace and in the regions, from
 * which xheap recover makes it whole; targets learn of it from the kernel, and wait for nothing. No process is left with its registers in our hands.
 */
static void end_without_memory(size_t size_bytes)
{
	(void)size_bytes;
	session_mark(&running->directory, SESSION_NO_MEMORY);
	remote_await_none(CALLS_LIMIT_NS);
	/* Others hold processes; only this one knows the controllers. */
	if (gettid() == getpid())
		logger_warn(running, "out of memory: the logger ends, and xheap recover saves what it recorded");
	_exit(LOGGER_NO_MEMORY);
}

/* What this thread decides by must be true; others give up what they do with one process, and say so. */
static void proc_without_memory(void)
{
	if (gettid() == getpid())
		memory_exhausted(0);
}

static void info_write(struct logger *logger, const struct target *target, const struct drain_image *image, uint32_t number)
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

/* Nothing more goes into the trace: from now on the target's calls are only counted. */
static void target_note_end(struct target *target)
{
	drain_note_end(target->drain);
	__atomic_fetch_or(&target->region.header->options, (uint32_t)OPTION_COUNT_ONLY, __ATOMIC_RELEASE);
}

static void target_add(struct logger *logger, struct hold_result *result)
{
	char image_path[4096], command[8192];
	struct target *target = memory_zeroed(1, sizeof(*target));
	target->region = result->region;
	target->inject = result->inject;
	target->inject.region = &target->region;
	target->parent = result->parent;
	target->number = result->number;
	target->pause_ns = result->pause_ns;
	target->stack_start = result->stack_start;
	target->exec_generation = result->exec_generation;
	snprintf(target->region_path, sizeof(target->region_path), "%s", result->region_path);
	proc_image(result->pid, image_path, sizeof(image_path));
	proc_command(result->pid, command, sizeof(command));
	struct drain_image image = {.pid = (uint32_t)result->pid, .parent = result->parent, .exec_generation = result->exec_generation,
				    .image = image_path, .command = command, .start_ticks = region_process(&target->region, 0)->start_ticks};
	target->drain = drain_add(logger->drain, &target->region, &image);
	target->next = logger->targets;
	logger->targets = target;
	robust_add(logger, &target->region);
	if (logger->is_recording_over)
		target_note_end(target);
	/* It stands still until its result was taken. */
	member_begin(logger, target, 0, result->pid, identity_take(result->pid), proc_inner_id(result->pid, result->pid));
	info_write(logger, target, &image, result->number);
	untraced_know(logger, result->pid);
	if (result->pause_ns)
		untraced_know_children(logger, result->pid);
	if (!region_file_is_elsewhere(target->region_path, logger->directory.path) || logger->is_elsewhere_noted)
		return;
	logger->is_elsewhere_noted = true;
	char text[sizeof(target->region_path) + sizeof(logger->directory.path) + 160];
	snprintf(text, sizeof(text), "%s is full: what is recorded of process %d lies in %s until it is in the trace", logger->directory.path, (int)result->pid,
		 target->region_path);
	logger_note(logger, text);
}

/* Processes that have the region mapped, and are in no list. */
struct unlisted { const struct logger *logger; const struct target *target; uint64_t inode; pid_t pids[REGION_PROCESS_MAX]; uint32_t count; };

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
	logger_serve_meanwhile(logger, NULL, NULL);
}

/* Detach from forked processes that never called the heap, and so are in no list: their functions lead to us, too. */
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
		struct inject_detaching detaching = {.pid = unlisted.pids[i], .inode = unlisted.inode, .patience = INJECT_PATIENT,
						     .meanwhile = serve_others, .cookie = logger};
		proc_command(detaching.pid, command, sizeof(command));
		if (inject_detach(&detaching, &diag) != 0)
			detaching.rest = (struct inject_rest){.bytes = target->region.bytes};
		if (detaching.rest.bytes)
			inactive_add(logger, target, detaching.pid, command, &detaching.rest);
	}
}

/* Programs that were executed before an answer came: nothing is known of them but their number. */
static void note_untraced_execs(struct logger *logger, const struct target *target)
{
	char text[200];
	uint32_t count = __atomic_load_n(&target->region.header->untraced_execs, __ATOMIC_RELAXED);
	if (!count)
		return;
	snprintf(text, sizeof(text), "process %d and those that it forked: %u execs went on without an answer; what they executed may run untraced",
		 (int)target->inject.pid, count);
	drain_add_note(logger->drain, TRACE_OPTION_UNTRACED_EXECS, text);
	logger_warn(logger, text);
}

/* Its region was cut, punched, or the file system has no room for a page of it. What can be read of it is kept, the others go on. */
static void damage_check(struct logger *logger, struct target *target)
{
	char text[200];
	if (target->is_damaged || !region_is_damaged(&target->region))
		return;
	target->is_damaged = true;
	__atomic_fetch_and(&target->region.header->options, ~(uint32_t)OPTION_ENABLED, __ATOMIC_RELEASE);
	snprintf(text, sizeof(text), "process %d and those that it forked: the memory that they share with the logger was damaged: their recording ended",
		 (int)target->inject.pid);
	drain_add_note(logger->drain, TRACE_OPTION_DAMAGED, text);
	logger_warn(logger, text);
}

/* Not everything of it can be kept. */
static void limits_check(struct logger *logger, struct target *target)
{
	char text[300];
	while (drain_take_limit_note(target->drain, text, sizeof(text)))
		logger_warn(logger, text);
}

static void target_remove(struct logger *logger, struct target *target)
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
	note_untraced_execs(logger, target);
	drain_poll(target->drain, true, &logger->error, &logger->diag);
	limits_check(logger, target);
	drain_remove(target->drain, &logger->error, &logger->diag);
	damage_check(logger, target);
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state)
			member_release(&target->member[i]);
	inject_fini(&target->inject);
	/* Who was let go of keeps the mapping; a thief of memory that would be, after many sessions. */
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

static void note_after(void *cookie, uint32_t process)
{
	struct logger *logger = cookie;
	ended_note(&logger->ended, &logger->directory, logger->writer, process);
}

static void member_end(struct logger *logger, struct target *target, uint32_t index, uint8_t end, int32_t status, uint64_t ticks)
{
	struct member *member = &target->member[index];
	if (member->state != 1)
		return;
	member->state = 2;
	target->alive--;
	flight_note_end(logger, member, end, status);
	member_release(member);
	logger_settle_clock(logger, true);
	drain_end_process(target->drain, index, end, status, ticks);
	/* Its end is in no row of the file. */
	if (writer_has_ended(logger->writer))
		note_after(logger, drain_process(target->drain, index));
}

/* Whether pid has the region mapped: what a mail says is not believed. */
static bool process_has_region(const struct target *target, pid_t pid)
{
	struct stat status;
	return pid && fstat(target->region.fd, &status) == 0 && proc_has_mapped(pid, target->region_path, status.st_ino);
}

/* A process that has ended has no memory any more; its parent may have. */
static bool is_of_target(const struct target *target, pid_t pid)
{
	return process_has_region(target, pid) ||
	       (proc_has_ended(pid) && process_has_region(target, (pid_t)proc_status_value(pid, "PPid")));
}

struct inner_process { const struct target *target; pid_t inner; uint32_t index; };

/* Whether pid is a member's already, or was until it ended: who has ended keeps its pid until somebody has waited for it. */
static bool is_taken(const struct target *target, pid_t pid)
{
	bool has_ended = proc_has_ended(pid);
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].pid == pid && (target->member[i].state == 1 || (target->member[i].state == 2 && has_ended)))
			return true;
	return false;
}

/* Children in pid namespaces of their own have the same pid there; each has noted its index in its own memory, which goes when it ends. */
static bool is_inner_process(void *cookie, pid_t pid)
{
	const struct inner_process *wanted = cookie;
	if (proc_inner_id(pid, pid) != wanted->inner || !is_of_target(wanted->target, pid))
		return false;
	uint32_t noted = inject_process_index(&wanted->target->inject, pid);
	return wanted->index == UINT32_MAX || noted == wanted->index || (noted == UINT32_MAX && !is_taken(wanted->target, pid));
}

/* Whether pid is the process that is looked for. Its identity is taken before that is found out: what is found out is of this process, unless it has
 * ended by then, and another one of the target has its number. */
static bool take_inner_process(struct inner_process *wanted, pid_t pid, struct identity *identity)
{
	*identity = identity_take(pid);
	if (pid && is_inner_process(wanted, pid))
		return true;
	identity_drop(identity);
	return false;
}

/* Our pid of the process of the target that calls itself inner and has the index, UINT32_MAX: any; 0: it is gone. *identity: its, the caller's; or nobody's. */
static pid_t process_outside(const struct target *target, pid_t inner, uint32_t index, struct identity *identity)
{
	struct inner_process wanted = {target, inner, index};
	if (take_inner_process(&wanted, inner, identity))
		return inner;
	pid_t found = proc_search(is_inner_process, &wanted);
	return take_inner_process(&wanted, found, identity) ? found : 0;
}

/* Forked processes have found themselves in the region. */
void logger_find_members(const struct logger *logger, struct target *target)
{
	for (uint32_t i = 1; i < REGION_PROCESS_MAX; i++) {
		struct region_process *process = region_process(&target->region, i);
		uint32_t state = __atomic_load_n(&process->state, __ATOMIC_ACQUIRE);
		/* Places are taken from the first on; among those that had a process, one may be free again. */
		if (state == PROCESS_FREE && i >= target->member_count)
			break;
		if (state != PROCESS_LIVE || target->member[i].state == 1)
			continue;
		if (target->member[i].state == 2 && target->member[i].start_ticks == process->start_ticks)
			continue;
		struct identity identity;
		pid_t inner = (pid_t)process->pid, pid = process_outside(target, inner, i, &identity);
		member_begin(logger, target, i, pid, identity, inner);
		target->member[i].start_ticks = process->start_ticks;
		/* For the trace, and for whoever recovers it. */
		if (pid)
			process->pid = (uint32_t)pid;
	}
}

/* As the kernel has it, since 6.15. */
struct pidfd_information { uint64_t mask, cgroup; uint32_t ids[11]; int32_t exit_code; uint64_t more[4]; };

/* The wait status of a process that is not our child, if the kernel has one: before its parent has waited for it in /proc, then in its pidfd. */
static bool status_of(struct logger *logger, const struct member *member, int *status)
{
	for (struct told *told = logger->told; told; told = told->next) {
		if (told->pid == member->pid) {
			*status = told->status;
			return true;
		}
	}
	enum { INFO_EXIT = 8 };
	struct pidfd_information information = {.mask = INFO_EXIT};
	if (member->identity.pidfd >= 0 && ioctl(member->identity.pidfd, _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 64), &information) == 0 &&
	    (information.mask & INFO_EXIT)) {
		*status = information.exit_code;
		return true;
	}
	/* If the process is still there after that, the pid was its. */
	return member->pid && proc_wait_status(member->pid, status) && identity_is_there(&member->identity);
}

static bool member_has_ended(const struct member *member)
{
	return identity_has_ended(&member->identity);
}

/* The kernel does not say how (before Linux 6.15), or it was gone before we looked: its own word, or none. */
static void member_end_unseen(struct logger *logger, struct target *target, uint32_t index)
{
	int status;
	bool is_told = region_exit_status(region_process(&target->region, index), (uint32_t)target->member[index].inner, &status);
	member_end(logger, target, index, is_told ? TRACE_END_EXIT : TRACE_END_UNKNOWN, is_told ? status : 0, clock_event_ticks());
}

/* Processes that have ended; their status may come a little later, from the command or the kernel. */
static void members_check(struct logger *logger, struct target *target, uint64_t now)
{
	for (uint32_t i = 0; i < target->member_count; i++) {
		struct member *member = &target->member[i];
		if (member->state != 1 || !member_has_ended(member))
			continue;
		int status;
		if (status_of(logger, member, &status)) {
			if (WIFSIGNALED(status))
				member_end(logger, target, i, TRACE_END_SIGNAL, WTERMSIG(status), clock_event_ticks());
			else
				member_end(logger, target, i, TRACE_END_EXIT, WEXITSTATUS(status), clock_event_ticks());
		} else if (!member->pid) {
			member_end_unseen(logger, target, i);
		} else if (!member->ended_ns) {
			member->ended_ns = now;
		} else if (now - member->ended_ns > STATUS_WAIT_NS && (member->pid != logger->command_pid || !logger->has_controller)) {
			member_end_unseen(logger, target, i);
		}
	}
}

static bool has_unsettled_member(const struct target *target)
{
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == 1 && member_has_ended(&target->member[i]))
			return true;
	return false;
}

/* End every member whose process has ended, also one that came and went between two rounds. Wait for a status no longer than twice STATUS_WAIT_NS. */
static void members_settle(struct logger *logger, struct target *target)
{
	uint64_t until = moment_now_ns() + 2 * (uint64_t)STATUS_WAIT_NS;
	logger_find_members(logger, target);
	members_check(logger, target, moment_now_ns());
	while (has_unsettled_member(target) && moment_now_ns() < until) {
		moment_pause(BUSY_MS * NS_PER_MS);
		members_check(logger, target, moment_now_ns());
	}
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == 1 && member_has_ended(&target->member[i]))
			member_end_unseen(logger, target, i);
}

/* How much of its memory is resident goes into the trace when it has changed by more than a part in SAMPLE_CHANGE. */
static void member_sample(struct logger *logger, struct target *target, uint32_t index, uint64_t now)
{
	struct member *member = &target->member[index];
	/* Without a clock there is nothing to write times with. */
	if (member->state != 1 || !member->pid || !logger->is_clock_set || (member->sampled_ns && now - member->sampled_ns < SAMPLE_NS))
		return;
	member->sampled_ns = now;
	uint64_t bytes = proc_resident_bytes(member->pid), before = member->resident_bytes;
	flight_note_memory(logger, member, bytes);
	uint64_t change = bytes > before ? bytes - before : before - bytes;
	struct trace_sample sample = {.process = drain_process(target->drain, index), .time_ns = (int64_t)clock_event_ticks(), .resident_bytes = bytes};
	if (bytes == 0 || change <= before / SAMPLE_CHANGE || sample.process == TRACE_NONE)
		return;
	member->resident_bytes = bytes;
	writer_add_sample(logger->writer, &sample);
}

static bool thread_lives(const struct member *member, pid_t tid)
{
	return member->is_foreign ? proc_outer_thread(member->pid, tid) != 0 : proc_thread_exists(member->pid, tid);
}

/* Slots of threads that are gone, so that others can have them. */
static void threads_reap(struct target *target)
{
	for (uint32_t i = 0; i < target->region.slot_ready; i++) {
		const struct region_slot *slot = region_slot(&target->region, i);
		uint32_t process = slot->process, tid = slot->tid;
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_LIVE || process >= target->member_count ||
		    target->member[process].state != 1)
			continue;
		if (!thread_lives(&target->member[process], (pid_t)tid) && slot->tid == tid)
			drain_end_thread(target->drain, i);
	}
}

/* ---- mails ---- */

/* Whether a thread that calls itself tid has the region: one of a member, or the only one of a child that shares its parent's memory. */
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

/* Those of threads that ended before they had their answer, or had taken no notice of it. What is posted is answered first. */
static void mails_reap(struct target *target)
{
	for (uint32_t i = 0; i < REGION_MAILBOX_COUNT; i++) {
		struct region_mail *mail = &target->region.header->mail[i];
		uint32_t word = LOAD_ACQUIRE(&mail->state), tid = mail_tid(word);
		enum region_mail_state state = mail_state(word);
		if ((state == MAIL_CLAIMED || state == MAIL_ANSWERED) && !has_thread(target, (pid_t)tid))
			mail_turn(mail, tid, state, MAIL_FREE);
	}
}

uint32_t logger_member_of_pid(const struct target *target, pid_t pid)
{
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == 1 && target->member[i].pid == pid)
			return i;
	return UINT32_MAX;
}

/* Calls of functions that could not be hooked are missing: tell the controllers, and the trace. */
static void unhooked_note(struct logger *logger, pid_t pid, const struct inject *inject)
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
	if (index >= target->member_count || target->member[index].state != 1 || target->member[index].inner != (pid_t)mail->pid)
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

/* Who has sent a mail, by our count; 0: nobody who has the region. A process that shares its parent's memory sends as its parent does. *identity: its, the
 * caller's, taken before that was found out; or nobody's. */
static pid_t mail_sender(const struct target *target, const struct region_mail *mail, struct identity *identity)
{
	*identity = IDENTITY_NONE;
	const struct member *member = mail->value[0] < target->member_count ? &target->member[mail->value[0]] : NULL;
	if (!member || member->state != 1 || member->inner != (pid_t)mail->pid)
		return process_outside(target, (pid_t)mail->pid, mail->value[0] < REGION_PROCESS_MAX ? (uint32_t)mail->value[0] : UINT32_MAX, identity);
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
		request->parent = drain_process(target->drain, region_process(&target->region, index)->parent % REGION_PROCESS_MAX);
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
	struct hold_request request = {.pid = pid, .tid = identity_is_known(&identity) ? sending_thread(pid, (pid_t)tid) : 0, .identity = identity,
				       .directory = (int)mail->value[1], .mail = mail, .mail_tid = tid,
				       .region_path = target->region_path, .region_inode = status.st_ino};
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

/* Now and then: whether the region is still whole, and what belongs to threads that are gone. */
static void reap(struct logger *logger, struct target *target, uint64_t now)
{
	if (now - target->reaped_ns < REAP_NS)
		return;
	target->reaped_ns = now;
	damage_check(logger, target);
	limits_check(logger, target);
	threads_reap(target);
	mails_reap(target);
}

/* Answer what targets ask; a process that is being detached from gets nothing but its answer. True when there was something. */
static bool mails_check(struct logger *logger, struct target *target, const struct member *leaving)
{
	bool has_any = false;
	for (uint32_t i = 0; i < REGION_MAILBOX_COUNT; i++) {
		struct region_mail *mail = &target->region.header->mail[i];
		uint32_t word = LOAD_ACQUIRE(&mail->state), tid = mail_tid(word);
		if (mail_state(word) != MAIL_POSTED)
			continue;
		if (leaving && (pid_t)mail->pid == leaving->inner && (mail->kind == MAIL_LOADED || mail->kind == MAIL_EXEC)) {
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

/* ---- what held processes became ---- */

void logger_image_over(struct logger *logger, pid_t pid, uint64_t ticks)
{
	for (struct target *target = logger->targets; target; target = target->next) {
		logger_find_members(logger, target);
		uint32_t index = logger_member_of_pid(target, pid);
		if (index != UINT32_MAX)
			member_end(logger, target, index, TRACE_END_EXEC, 0, ticks);
	}
}

static void untraced_held(struct logger *logger, const struct hold_result *result)
{
	char command[2048];
	proc_command(result->pid, command, sizeof(command));
	untraced_add(logger, &(struct trace_process){.pid = (uint32_t)result->pid, .parent = result->parent, .forked_from = TRACE_NONE,
						     .exec_generation = result->exec_generation, .start_ns = (int64_t)result->start_ticks,
						     .end_ns = INT64_MAX, .end = TRACE_END_UNKNOWN, .image = result->path, .command = command,
						     .note = result->diag.text});
}

/* What was in the heaps before is known now, or what of it is not. */
static void target_walked(struct logger *logger, struct hold_result *result)
{
	struct target *target = logger->targets;
	while (target && target->number != result->number)
		target = target->next;
	if (target) {
		__atomic_fetch_and(&target->region.header->options, ~(uint32_t)OPTION_MEASURE, __ATOMIC_RELEASE);
		/* What it does now is in no event, so what was found may be from later, or given back. */
		if (target->is_unread)
			heapwalk_drop(&result->walk, "it was let go of before its heaps were read");
		logger_settle_clock(logger, true);
		drain_earlier(target->drain, &result->walk);
	}
	/* Who attached to it by a session's name does not wait for this, and who asks about something else later does not want to know. */
	bool is_told = !logger->options->session_name;
	char text[400];
	snprintf(text, sizeof(text), "process %d: %zu blocks from before, of %llu bytes, read within %.1f ms", (int)result->pid, result->walk.count,
		 (unsigned long long)result->walk.bytes, (double)result->walk.took_ns / 1e6);
	if (is_told)
		logger_note(logger, text);
	if (result->walk.missing[0]) {
		snprintf(text, sizeof(text), "process %d: not all blocks from before are known: %s", (int)result->pid, result->walk.missing);
		drain_add_note(logger->drain, TRACE_OPTION_EARLIER_MISSING, text);
		if (is_told)
			logger_warn(logger, text);
	}
	heapwalk_fini(&result->walk);
}

bool logger_take_results(struct logger *logger)
{
	struct hold_result result;
	bool has_any = false;
	while (holder_take(logger->holder, &result)) {
		has_any = true;
		if (result.kind == HOLD_FAILED)
			continue;
		if (result.kind == HOLD_WALKED) {
			target_walked(logger, &result);
			continue;
		}
		/* The mail outlives who sent it. */
		if (result.has_executed && result.mail)
			mail_turn(result.mail, result.mail_tid, MAIL_ANSWERED, MAIL_FREE);
		if (result.has_executed)
			logger_image_over(logger, result.pid, result.start_ticks);
		if (result.kind == HOLD_INJECTED) {
			target_add(logger, &result);
			if (result.inject.refused)
				unhooked_note(logger, result.pid, &result.inject);
		} else {
			untraced_held(logger, &result);
		}
	}
	return has_any;
}

/* ---- the loop ---- */

/* Sleep until a doorbell rings or the time is over. */
static void wait_for_work(struct logger *logger, unsigned milliseconds)
{
	struct futex_waitv waiters[FUTEX_WAITV_MAX];
	unsigned count = 0;
	for (struct target *target = logger->targets; target && count < FUTEX_WAITV_MAX - 1; target = target->next) {
		uint32_t *word = &target->region.header->doorbell;
		waiters[count++] = (struct futex_waitv){.val = target->doorbell_seen, .uaddr = (uintptr_t)word, .flags = FUTEX_32};
	}
	waiters[count++] = (struct futex_waitv){.val = logger->doorbell_seen, .uaddr = (uintptr_t)&logger->doorbell.word,
						.flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
	struct timespec until = moment_at(moment_now_ns() + (uint64_t)milliseconds * NS_PER_MS);
	/* Other errors: an old kernel, or a doorbell whose memory is gone. */
	if (syscall(SYS_futex_waitv, waiters, count, 0, &until, CLOCK_MONOTONIC) < 0 && errno != ETIMEDOUT && errno != EAGAIN && errno != EINTR)
		moment_pause(BUSY_MS * NS_PER_MS);
}

static void end_describe(const struct logger *logger, char *text, size_t size)
{
	char reason[TRACE_REASON_BYTES];
	uint64_t ticks;
	int error = writer_end_reason(logger->writer, reason, &ticks);
	snprintf(text, size, "recording ended: %s", reason);
	/* It may be a limit of this process that the file has met. */
	if (!writer_is_full(logger->writer))
		limits_explain(0, error, text, size);
}

/* Recording ends when the trace can take no more. The session goes on, and counts what it would have recorded. */
static void recording_check(struct logger *logger)
{
	char text[TRACE_REASON_BYTES + 200];
	if (logger->is_recording_over || !writer_has_ended(logger->writer))
		return;
	logger->is_recording_over = true;
	note_after(logger, TRACE_NONE);
	for (struct target *target = logger->targets; target; target = target->next)
		target_note_end(target);
	end_describe(logger, text, sizeof(text));
	logger_say_end(logger, text);
}

/* For targets that may not read the clock themselves. */
static void coarse_clock_raise(struct region_header *header)
{
	uint64_t now = clock_event_ticks(), old = __atomic_load_n(&header->coarse_ticks, __ATOMIC_RELAXED);
	while (old < now && !__atomic_compare_exchange_n(&header->coarse_ticks, &old, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static bool has_full_buffer(const struct region *region)
{
	for (uint32_t i = 0; i < region->buffer_ready; i++)
		if (__atomic_load_n(&region_buffer(region, i)->state, __ATOMIC_RELAXED) == BUFFER_FULL)
			return true;
	return false;
}

/* Targets that wait for an answer wait on: we are alive, though others may come first for long. */
static void beat(struct logger *logger)
{
	enum { BEAT_NS = 100000000 };
	uint64_t now = moment_now_ns();
	if (now - logger->beat_ns < BEAT_NS)
		return;
	logger->beat_ns = now;
	for (struct target *target = logger->targets; target; target = target->next)
		__atomic_fetch_add(&target->region.header->heartbeat, 1, __ATOMIC_RELAXED);
}

/* Take what is recorded. What was attached to is not known yet, and nothing may be folded before: where the window is full, those who wait wait for that. */
static bool target_drain(struct logger *logger, struct target *target, bool flush, int *error, struct diag *diag)
{
	if (!store_is_full(logger->store) || !holder_is_attaching(logger->holder))
		return drain_poll(target->drain, flush, error, diag);
	region_note_progress(&target->region);
	return false;
}

static bool target_serve(struct logger *logger, struct target *target, bool flush, uint64_t now)
{
	beat(logger);
	target->doorbell_seen = __atomic_load_n(&target->region.header->doorbell, __ATOMIC_ACQUIRE);
	bool has_any = mails_check(logger, target, NULL);
	logger_find_members(logger, target);
	logger_settle_clock(logger, flush || has_full_buffer(&target->region));
	int error = 0;
	has_any |= target_drain(logger, target, flush, &error, &logger->diag);
	region_grow(&target->region);
	coarse_clock_raise(target->region.header);
	members_check(logger, target, now);
	for (uint32_t i = 0; i < target->member_count; i++)
		member_sample(logger, target, i, now);
	reap(logger, target, now);
	if (error) {
		bool is_first = !logger->error && !writer_has_ended(logger->writer);
		logger->error = error;
		if (is_first)
			logger_note(logger, logger->diag.text);
	}
	return has_any;
}

/* Buffers that nobody uses go back: after ten intervals, or at once where memory is wanted for another target. */
static void targets_trim(struct logger *logger, uint64_t now)
{
	enum { INTERVALS = 10, INTERVAL_MS = 1000 };
	bool is_short = false;
	for (const struct target *target = logger->targets; target; target = target->next)
		is_short |= target->region.is_short;
	uint64_t interval_ns = (uint64_t)(logger->options->flush_ms ? logger->options->flush_ms : INTERVAL_MS) * NS_PER_MS;
	if (!is_short && now - logger->trimmed_ns < interval_ns)
		return;
	logger->trimmed_ns = now;
	for (struct target *target = logger->targets; target; target = target->next)
		region_trim(&target->region, is_short && !target->region.is_short ? 0 : INTERVALS);
}

/* A forked process that has not called the heap yet is in no list, but may still write into the region. */
static bool target_is_unused(const struct target *target)
{
	return target->alive == 0 && (target->is_let_go || target->has_inactive || !proc_is_in_use(target->region_path, target->region.fd));
}

/* Whether all its processes have ended. A process may have come and gone since the last look at the list: no further one can when nobody has the region. */
static bool target_is_over(struct logger *logger, struct target *target)
{
	if (!target_is_unused(target))
		return false;
	logger_find_members(logger, target);
	members_check(logger, target, moment_now_ns());
	return target->alive == 0;
}

void logger_remove_let_go(struct logger *logger)
{
	struct target *next;
	for (struct target *target = logger->targets; target; target = next) {
		next = target->next;
		/* A holder may still answer a mail that lies in it. */
		if (target->is_let_go && target_is_unused(target) && !holder_uses(logger->holder, &target->region))
			target_remove(logger, target);
	}
}

static bool everybody_is_gone(struct logger *logger)
{
	if (holder_is_busy(logger->holder))
		return false;
	if (logger->is_stopping)
		return true;
	if (!logger->is_command_over || logger->options->session_name)
		return false;
	return logger->options->until_exit || !logger->targets;
}

/* What had happened by these ticks is written; 0: that is not known of all. */
static void flush_note(struct logger *logger, uint64_t ticks)
{
	uint64_t start = logger->clock.writer.start_ticks;
	struct diag diag = {""};
	int64_t until_ns = (int64_t)session_clock_ns(&logger->clock, ticks > start ? ticks - start : 0);
	if (store_note_flush(logger->store, until_ns, &diag))
		logger_warn(logger, diag.text);
	if (logger->indexing && until_ns)
		indexing_tell(logger->indexing, until_ns, writer_size_bytes(logger->writer), writer_event_count(logger->writer));
}

static bool wants_flush(const struct logger *logger, uint64_t now)
{
	return store_wants_flush(logger->store) || now - logger->flushed_ns >= (uint64_t)logger->options->flush_ms * NS_PER_MS ||
	       (logger->indexing && indexing_wants_cut(logger->indexing, writer_event_count(logger->writer)));
}

/* Recording is to end. An exec that was announced is made at once, or, by one who lies, never. */
static void holds_end(struct logger *logger, uint64_t now)
{
	enum { EXEC_NS = 2000000000 };
	holder_end_walks(logger->holder);
	if (!logger->stopping_ns)
		logger->stopping_ns = now;
	if (now - logger->stopping_ns >= EXEC_NS)
		holder_give_up(logger->holder);
}

static void loop(struct logger *logger)
{
	unsigned quiet = 0;
	logger->flushed_ns = moment_now_ns();
	for (;;) {
		uint64_t now = moment_now_ns();
		bool flush = wants_flush(logger, now);
		/* Who is being attached to may have made calls that nobody takes yet. And what ends while blocks from before are looked for is needed
		 * whole, to tell which there were. */
		uint64_t flush_ticks = flush && !holder_is_attaching(logger->holder) ? clock_event_ticks() : 0;
		/* What rings from here on is looked at in the next round. */
		logger->doorbell_seen = __atomic_load_n(&logger->doorbell.word, __ATOMIC_ACQUIRE);
		bool has_any = logger_check_controllers(logger);
		has_any |= logger_take_results(logger);
		struct target *next;
		for (struct target *target = logger->targets; target; target = next) {
			next = target->next;
			has_any |= target_serve(logger, target, flush, now);
			/* A holder may still answer a mail that lies in it. */
			if (!holder_uses(logger->holder, &target->region) && target_is_over(logger, target))
				target_remove(logger, target);
		}
		recording_check(logger);
		has_any |= untraced_search(logger, now, false);
		logger_attach_late(logger);
		inactive_check(logger, now);
		targets_trim(logger, now);
		/* Nobody injects anything: that alone uses what it found, and not for longer than a call. */
		if (!holder_is_busy(logger->holder))
			hook_cache_trim(logger->hooks);
		if (flush) {
			logger_settle_clock(logger, true);
			writer_flush(logger->writer, &logger->diag);
			logger->flushed_ns = now;
			drain_note_paces(logger->drain, logger->clock.ticks_per_ms);
			flush_note(logger, flush_ticks);
		}
		has_any |= flight_check(logger, now);
		if (store_has_turned(logger->store))
			session_write(logger);
		if (logger->is_stopping)
			holds_end(logger, now);
		if (everybody_is_gone(logger))
			return;
		quiet = has_any ? 0 : quiet + 1;
		wait_for_work(logger, quiet < BUSY_ROUNDS ? BUSY_MS : IDLE_MS);
	}
}

/* ---- the trace's index ---- */

static void index_begin(struct logger *logger)
{
	struct diag diag = {""};
	char text[sizeof(diag.text) + 100];
	logger->indexing = indexing_begin(store_path(logger->store), &diag);
	snprintf(text, sizeof(text), "no index is made meanwhile: %s", diag.text);
	if (!logger->indexing)
		logger_note(logger, text);
}

/* Whether who recorded wants to go on without the index, or is gone. A session's index is made whoever comes and goes. */
static bool is_index_given_up(const struct logger *logger)
{
	struct control_message message;
	if (logger->options->session_name)
		return false;
	int got = logger->has_controller ? control_receive(logger->control, &message, 0) : -1;
	return got < 0 || (got > 0 && message.kind == CONTROL_STOP);
}

/* The trace is there, whatever becomes of its index. Bytes of that; 0: there is none. */
static uint64_t index_end(struct logger *logger)
{
	struct indexing_progress progress;
	struct diag diag = {""};
	char text[sizeof(diag.text) + 100];
	bool has_ended = false, is_given_up = false;
	indexing_finish(logger->indexing);
	while (!has_ended && !is_given_up) {
		has_ended = indexing_wait(logger->indexing, INDEX_POLL_MS, &progress);
		uint64_t done = progress.done < progress.all ? progress.done : progress.all;
		struct control_message message = {.kind = CONTROL_INDEXING, .value = progress.all ? (int64_t)(done * PERCENT / progress.all) : 0};
		if (!has_ended)
			logger_tell_all(logger, &message);
		is_given_up = !has_ended && is_index_given_up(logger);
	}
	if (is_given_up)
		indexing_cancel(logger->indexing);
	int error = indexing_end(logger->indexing, &diag);
	logger->indexing = NULL;
	snprintf(text, sizeof(text), "no index was made meanwhile, the first question makes it: %s", is_given_up ? "it was not waited for" : diag.text);
	if (error)
		logger_note(logger, text);
	return error ? 0 : progress.index_bytes;
}

/* ---- beginning and end ---- */

static void session_write(struct logger *logger)
{
	const struct session_options *options = logger->options;
	const struct writer_clock *clock = &logger->clock.writer;
	struct fields fields = {.text = NULL};
	fields_add(&fields, "trace", store_next_path(logger->store));
	fields_add(&fields, "pattern", options->trace_path);
	fields_add_number(&fields, "counter", store_counter(logger->store));
	fields_add(&fields, "file_mode", session_file_mode_name(options->file_mode));
	fields_add(&fields, "name", options->session_name ? options->session_name : "");
	fields_add_number(&fields, "pid", (uint64_t)getpid());
	fields_add_number(&fields, "pid_start", proc_start_time(getpid()));
	fields_add(&fields, "clock", clock->name);
	fields_add_number(&fields, "start_ticks", clock->start_ticks);
	fields_add_number(&fields, "mult", clock->mult);
	fields_add_number(&fields, "shift", clock->shift);
	fields_add_number(&fields, "start_realtime_ns", (uint64_t)clock->start_realtime_ns);
	fields_add(&fields, "command", options->command);
	session_file_write(&logger->directory, "session", &fields, NULL);
	fields_fini(&fields);
}

/* The options in the trace, each once. */
static void options_write(struct logger *logger)
{
	const struct session_options *options = logger->options;
	char text[160];
	/* What a file was begun with stays said. */
	if (logger->is_appended) {
		writer_add_option(logger->writer, "appended", options->command);
		return;
	}
#define ADD(name, format, value) (snprintf(text, sizeof(text), format, value), writer_add_option(logger->writer, name, text))
	ADD("buffer-size", "%u", options->buffer_size);
	ADD("min-buffers", "%u", session_buffer_min(options));
	ADD("max-buffers", "%u", options->buffer_max);
	ADD("on-full", "%s", options->on_full_wait ? "wait" : "drop");
	ADD("wait-limit-ms", "%u", options->wait_limit_ms);
	ADD("stack-depth", "%u", options->stack_depth);
	ADD("duration", "%s", options->with_duration ? "yes" : "no");
	ADD("follow", "%s", options->follow ? "yes" : "no");
	ADD("until-exit", "%s", options->until_exit ? "yes" : "no");
	if (options->is_attached)
		ADD("attached", "%s", "yes");
	if (options->sample_bytes)
		ADD("sample", "%llu", (unsigned long long)options->sample_bytes);
	ADD("file-mode", "%s", session_file_mode_name(options->file_mode));
	ADD("flush-timer-ms", "%u", options->flush_ms);
	ADD("max-file", "%llu", (unsigned long long)options->max_file_bytes);
	text[0] = 0;
#define X(name, kind) if (options->stack_kinds & (kind)) strcat(strcat(text, text[0] ? " " : ""), name);
	STACK_FLAGS(X)
#undef X
	writer_add_option(logger->writer, "stackwalk", text);
	writer_add_option(logger->writer, "command", options->command);
#undef ADD
	struct utsname system;
	if (uname(&system) == 0) {
		char host[512];
		snprintf(host, sizeof(host), "%s %s %s %s", system.nodename, system.sysname, system.release, system.machine);
		writer_set_host(logger->writer, host);
	}
}

/* A session has a name, by which it is found, and takes connections. */
static int session_begin(struct logger *logger)
{
	const char *name = logger->options->session_name;
	logger->listener = -1;
	if (!name)
		return 0;
	logger->listener = session_listen(&logger->directory, &logger->diag);
	return logger->listener < 0 ? logger->listener : session_name_take(name, &logger->directory, &logger->diag);
}

static void session_over(const struct logger *logger)
{
	if (logger->options->session_name)
		session_name_drop(logger->options->session_name, &logger->directory);
}

static void say_alive(void *logger)
{
	logger_say_alive(logger);
}

/* What targets wait for comes, though not from their own regions yet. */
static void note_progress(void *cookie)
{
	const struct logger *logger = cookie;
	for (struct target *target = logger->targets; target; target = target->next)
		region_note_progress(&target->region);
}

static void begin_to_record(void *context)
{
	struct logger *logger = context;
	options_write(logger);
	session_write(logger);
	logger->drain = drain_new(logger->writer);
	untraced_begin(logger);
	logger->hooks = hook_cache_new();
	logger->holder = logger->hooks ? holder_new(logger->options, &logger->directory, logger->hooks, &logger->clock, &logger->doorbell) : NULL;
}

static int begin_without_memory(struct logger *logger)
{
	struct diag diag = {""};
	store_close(logger->store, &(struct trace_statistics){.is_known = false}, &diag);
	session_over(logger);
	session_directory_remove(&logger->directory);
	return diag_fail(&logger->diag, ENOMEM, "no memory to record");
}

static int logger_begin(struct logger *logger)
{
	guard_begin();
	session_clock_read(&logger->clock, (enum session_clock_choice)logger->options->clock);
	int error = session_directory_make(&logger->directory, &logger->diag);
	if (error)
		return error;
	error = session_begin(logger);
	if (!error) {
		uint64_t start_ticks = logger->clock.writer.start_ticks;
		error = store_open(&logger->store, &logger->writer, logger->options, logger->directory.path, &logger->doorbell, &logger->clock.writer,
				   &logger->diag);
		/* The file's clock is known already. */
		logger->is_appended = logger->clock.writer.start_ticks != start_ticks;
		logger->clock.is_exact |= logger->is_appended;
		if (error)
			session_over(logger);
	}
	if (error) {
		session_directory_remove(&logger->directory);
		return error;
	}
	if (!memory_try(begin_to_record, logger) || !logger->holder)
		return begin_without_memory(logger);
	store_while_waiting(logger->store, say_alive, note_progress, logger);
	drain_before_writing(logger->drain, settle_clock_now, logger);
	writer_note_after(logger->writer, note_after, logger);
	logger->watch = watch_begin(&logger->doorbell);
	if (!logger_add_controller(logger, logger->control))
		return begin_without_memory(logger);
	watch_add(logger->watch, logger->listener);
	robust_begin(logger);
	flight_begin(logger);
	if (logger->options->with_index)
		index_begin(logger);
	return 0;
}

uint64_t logger_cpu(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

void logger_serve_meanwhile(struct logger *logger, const struct target *left, const struct member *leaving)
{
	uint64_t beat_ns = logger->beat_ns;
	beat(logger);
	/* Controllers wait, too, as rarely as that. */
	if (logger->beat_ns != beat_ns)
		logger_say_alive(logger);
	for (struct target *target = logger->targets; target; target = target->next) {
		int error = 0;
		mails_check(logger, target, target == left ? leaving : NULL);
		drain_poll(target->drain, false, &error, &logger->diag);
		region_grow(&target->region);
		if (error)
			logger->error = error;
	}
}

/* A process that is being detached from. */
struct leaving { struct logger *logger; struct target *target; const struct member *member; uint64_t began_ns; };

/* Take what is recorded while another thread waits for threads to leave our code: some of them may wait for room, or for the answer to a mail. */
static void serve_meanwhile(void *cookie)
{
	enum { WAIT_FOR_ROOM_NS = 1000000000 };
	struct leaving *leaving = cookie;
	logger_serve_meanwhile(leaving->logger, leaving->target, leaving->member);
	/* Threads that wait for room give up; what they record is counted as lost. */
	if (leaving->target->alive == 1 && moment_now_ns() - leaving->began_ns > WAIT_FOR_ROOM_NS)
		__atomic_store_n(&leaving->target->region.header->state, REGION_DETACHED, __ATOMIC_RELEASE);
}

static void note_detached(struct logger *logger, const struct member *member, const char *command, const struct inject_detaching *detaching)
{
	char text[1024];
	const struct inject_pause *pause = &detaching->pause;
	int size = snprintf(text, sizeof(text), "process %d (%s) still runs, no longer traced; %u thread%s stood for %.3f ms", (int)member->pid, command,
			    pause->thread_count, pause->thread_count == 1 ? "" : "s", (double)pause->all_ns / 1e6);
	if (pause->one_ns)
		size += snprintf(text + size, sizeof(text) - (size_t)size, ", then each alone, the longest for %.3f ms", (double)pause->one_ns / 1e6);
	if (detaching->rest.bytes) {
		size += snprintf(text + size, sizeof(text) - (size_t)size, "; ");
		inactive_describe(text + size, sizeof(text) - (size_t)size, &detaching->rest);
	}
	(detaching->rest.bytes ? logger_warn : logger_note)(logger, text);
}

int logger_detach_member(struct logger *logger, struct target *target, uint32_t index, struct diag *diag_or_null)
{
	struct member *member = &target->member[index];
	char command[512], text[900];
	struct diag diag = {""};
	struct leaving leaving = {logger, target, member, moment_now_ns()};
	struct inject_detaching detaching = {.pid = member->pid, .inject = &target->inject, .own = member->inject, .patience = INJECT_PATIENT,
					     .meanwhile = serve_meanwhile, .cookie = &leaving};
	proc_command(member->pid, command, sizeof(command));
	int error = member->pid ? inject_detach(&detaching, &diag) : -ESRCH;
	if (error && member_has_ended(member))
		return 0;
	if (error && diag_or_null)
		return diag_fail(diag_or_null, -error, "%s", diag.text);
	if (error) {
		snprintf(text, sizeof(text), "process %d (%s) still runs, no longer traced, but its functions stay patched: %s", (int)member->pid, command,
			 diag.text);
		logger_warn(logger, text);
		detaching.rest.bytes = target->region.bytes;
		snprintf(detaching.rest.why, sizeof(detaching.rest.why), "its functions stay patched");
	} else {
		note_detached(logger, member, command, &detaching);
	}
	if (detaching.rest.bytes && member->pid) {
		inactive_add(logger, target, member->pid, command, &detaching.rest);
		target->has_inactive = true;
	}
	member_end(logger, target, index, TRACE_END_DETACHED, 0, clock_event_ticks());
	target->is_let_go = target->alive == 0;
	target->is_unread |= index == 0 && target->region.header->options & OPTION_MEASURE;
	if (target->is_let_go)
		__atomic_fetch_and(&target->region.header->options, ~(uint32_t)OPTION_ENABLED, __ATOMIC_RELEASE);
	return 0;
}

static void detach_all(struct logger *logger)
{
	for (struct target *target = logger->targets; target; target = target->next) {
		__atomic_fetch_and(&target->region.header->options, ~(uint32_t)OPTION_ENABLED, __ATOMIC_RELEASE);
		logger_find_members(logger, target);
		for (uint32_t i = 0; i < target->member_count; i++)
			if (target->member[i].state == 1)
				logger_detach_member(logger, target, i, NULL);
		members_settle(logger, target);
		__atomic_store_n(&target->region.header->state, REGION_DETACHED, __ATOMIC_RELEASE);
	}
}

int logger_drain_all(struct logger *logger, struct diag *diag)
{
	int error = 0;
	logger_settle_clock(logger, true);
	for (struct target *target = logger->targets; target; target = target->next)
		target_drain(logger, target, true, &error, diag);
	drain_note_paces(logger->drain, logger->clock.ticks_per_ms);
	return error ? error : writer_flush(logger->writer, diag);
}

void logger_statistics(const struct logger *logger, struct trace_statistics *statistics)
{
	struct drain_totals totals = {0};
	drain_totals(logger->drain, &totals);
	*statistics = (struct trace_statistics){.waits = totals.waits, .wait_ns = session_clock_ns(&logger->clock, totals.wait_ticks),
						.logger_cpu_ns = logger_cpu(), .buffers_written = totals.buffers_written,
						.buffer_size = logger->options->buffer_size, .peak_buffers = totals.peak_buffers,
						.suppressed = totals.suppressed, .unwatched = totals.unwatched,
						.heapless = totals.heapless, .untraced_calls = totals.untraced_calls};
}

static void logger_end(struct logger *logger)
{
	logger_settle_clock(logger, true);
	untraced_search(logger, moment_now_ns(), true);
	detach_all(logger);
	while (logger->targets)
		target_remove(logger, logger->targets);
	inactive_end(logger);
	untraced_end(logger);
	struct drain_totals totals = {0};
	struct trace_statistics statistics;
	drain_totals(logger->drain, &totals);
	logger_statistics(logger, &statistics);
	drain_free(logger->drain);
	flight_end(logger);
	struct diag close_diag = {""};
	char end_text[TRACE_REASON_BYTES + 200];
	int error = writer_flush(logger->writer, &logger->diag);
	recording_check(logger);
	if (logger->is_recording_over)
		end_describe(logger, end_text, sizeof(end_text));
	statistics.logger_cpu_ns = logger_cpu();
	int close_error = store_close(logger->store, &statistics, &close_diag);
	const char *why = close_error ? close_diag.text : logger->is_recording_over ? end_text : logger->diag.text;
	/* Not even the file's end found its place: what is known of it stays where recover finds it. */
	bool is_left = close_error && logger->ended >= 0 && !session_is_in_pieces(logger->options);
	if (is_left) {
		limits_explain(0, close_error, close_diag.text, sizeof(close_diag.text));
		size_t length = strlen(close_diag.text);
		snprintf(close_diag.text + length, sizeof(close_diag.text) - length, "; xheap recover -o FILE %s makes it whole elsewhere",
			 text_file_name(store_path(logger->store)));
	}
	uint64_t index_bytes = logger->indexing ? index_end(logger) : 0;
	struct control_message message = {.kind = CONTROL_SUMMARY};
	struct stat status;
	message.summary = (struct control_summary){
		.events = totals.events, .lost = totals.lost, .after = totals.after, .ends = totals.ends, .waits = totals.waits, .wait_ns = statistics.wait_ns,
		.logger_cpu_ns = logger_cpu(), .processes = totals.processes, .untraced_processes = logger->untraced,
		.peak_buffer_bytes = (uint64_t)totals.peak_buffers * logger->options->buffer_size, .check_failures = totals.check_failures,
		.untraced_calls = totals.untraced_calls, .dropped = store_dropped_events(logger->store),
		.index_bytes = index_bytes, .error = logger->error ? logger->error : error ? error : close_error,
		.is_end = logger->is_recording_over && !close_error};
	message.summary.size_bytes = logger->options->file_mode == SESSION_FILE_NEWFILE ? store_size_bytes(logger->store)
				     : stat(store_path(logger->store), &status) == 0 ? (uint64_t)status.st_size : 0;
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1,
		 message.summary.error ? why : store_path(logger->store));
	store_free(logger->store);
	session_over(logger);
	logger_tell_all(logger, &message);
	if (!is_left)
		session_directory_remove(&logger->directory);
}

/* Nothing of the terminal's, the command's or the user's may reach or hold us. */
static void logger_isolate(int control)
{
	setsid();
	limits_raise(NULL);
	prctl(PR_SET_NAME, "xheap-logger");
	static const int ignored[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP, SIGPIPE, SIGTERM, SIGXFSZ, SIGIO, SIGUSR2};
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		if (fd != control)
			dup2(null, fd);
	/* Whatever else was open: no pipe may seem in use because of us. */
	if (control > 3)
		close_range(3, (unsigned)control - 1, 0);
	close_range((unsigned)control + 1, UINT_MAX, 0);
}

int logger_run(const struct session_options *options, int control)
{
	struct logger *logger = calloc(1, sizeof(*logger));
	struct session_options own = *options;
	if (!logger)
		return 2;
	logger_isolate(control);
	logger->options = logger->own_options = &own;
	logger->control = control;
	logger->ended = -1;
	logger->has_controller = true;
	struct control_message message = {.kind = CONTROL_LAUNCHED};
	running = logger;
	memory_set_end(end_without_memory);
	proc_on_no_memory(proc_without_memory);
	int error = logger_begin(logger);
	if (error) {
		message.value = error;
		limits_explain(0, error, logger->diag.text, sizeof(logger->diag.text));
		snprintf(message.text, sizeof(message.text), "%s", logger->diag.text);
		control_send(control, &message);
		return 2;
	}
	loop(logger);
	logger_end(logger);
	return logger->error ? 2 : 0;
}
