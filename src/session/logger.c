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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "os/proc.h"
#include "session/clock.h"
#include "session/control.h"
#include "session/directory.h"
#include "session/drain.h"
#include "session/hold.h"
#include "session/hook_cache.h"
#include "session/watch.h"

enum { IDLE_MS = 10, BUSY_MS = 1, BUSY_ROUNDS = 100, FLUSH_NS = 1000000000, REAP_NS = 200000000, STATUS_WAIT_NS = 200000000,
       SAMPLE_NS = 20000000, SAMPLE_CHANGE = 128,
       SEARCH_ROUNDS = 3 };

/* A process of a target. */
struct member {
	int pidfd;
	pid_t pid;                    /* in our namespace; 0: was gone before we saw it */
	pid_t inner;                  /* in its own */
	bool is_foreign;              /* which is another */
	uint64_t start_ticks;         /* with the place in the region, this tells one process from another */
	uint32_t state;               /* 0 unknown, 1 alive, 2 ended */
	uint64_t ended_ns;            /* when we saw it end, while its status is not known */
	uint64_t sampled_ns, resident_bytes; /* when we looked at its memory, and what we wrote last */
	struct inject *inject;        /* of a forked process that loads images; process 0 has the target's */
};

/* One executed image and what it forked. */
struct target {
	struct target *next;
	struct region region;
	struct inject inject;
	struct drain_region *drain;
	char region_path[512];
	uint32_t number;              /* of the region */
	uint32_t parent, exec_generation;
	uint32_t alive;
	bool is_let_go;               /* its last process runs on */
	struct member member[REGION_PROCESS_MAX];
	uint32_t member_count;
	uint32_t doorbell_seen;
	uint64_t reaped_ns;
};

/* Wait statuses that the command told us. */
struct told { pid_t pid; int status; struct told *next; };

/* Who tells us what to do. */
struct controller {
	int socket;
	struct controller *next;
};

struct logger {
	const struct session_options *options;
	struct session_options *own_options; /* the same; they may change */
	int control;                  /* of who started us; it is one of the controllers */
	struct controller *controllers;
	int listener;                 /* of a session; -1 */
	bool has_controller, is_command_known, is_command_over, is_file_full, is_stopping;
	char directory[400];
	struct writer *writer;
	struct drain *drain;
	struct target *targets;
	struct told *told;
	struct session_clock clock;
	bool is_clock_set;            /* in the trace */
	struct doorbell doorbell;
	uint32_t doorbell_seen;
	int watch;
	struct hook_cache *hooks;
	struct holder *holder;
	pid_t command_pid;
	uint32_t untraced;
	uint64_t flushed_ns;
	int error;
	struct diag diag;
	/* The robust list that tells targets of our death. */
	struct robust_list_head robust;
};

static uint64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void tell_all(const struct logger *logger, const struct control_message *message)
{
	for (const struct controller *controller = logger->controllers; controller; controller = controller->next)
		control_send(controller->socket, message);
}

static void note(struct logger *logger, const char *text)
{
	struct control_message message = {.kind = CONTROL_NOTE};
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, text);
	tell_all(logger, &message);
}

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
static void clock_settle(struct logger *logger, bool is_urgent)
{
	if (logger->is_clock_set || !(is_urgent || session_clock_is_due(&logger->clock)))
		return;
	session_clock_settle(&logger->clock);
	writer_set_clock(logger->writer, &logger->clock.writer);
	session_write(logger);
	logger->is_clock_set = true;
}

/* ---- targets ---- */

static void member_begin(const struct logger *logger, struct target *target, uint32_t index, pid_t pid, pid_t inner)
{
	struct member *member = &target->member[index];
	*member = (struct member){.pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1, .pid = pid, .inner = inner, .state = 1,
				  .is_foreign = pid && proc_is_foreign(pid)};
	watch_add(logger->watch, member->pidfd);
	target->alive++;
	if (index >= target->member_count)
		target->member_count = index + 1;
}

static void member_release(struct member *member)
{
	if (member->pidfd >= 0)
		close(member->pidfd);
	member->pidfd = -1;
	if (!member->inject)
		return;
	inject_fini(member->inject);
	free(member->inject);
	member->inject = NULL;
}

static void info_write(struct logger *logger, const struct target *target, const struct drain_image *image, uint32_t number)
{
	char name[64], text[4096 + 4000 + 256];
	snprintf(name, sizeof(name), "region.%u.info", number);
	snprintf(text, sizeof(text), "pid=%u\nparent=%u\nexec_generation=%u\nimage=%s\ncommand=%.4000s\nstart_ticks=%llu\nprocess=%u\n", image->pid,
		 image->parent, image->exec_generation, image->image, image->command, (unsigned long long)image->start_ticks,
		 drain_process(target->drain, 0));
	session_file_write(logger->directory, name, text, NULL);
}

static void target_add(struct logger *logger, struct hold_result *result)
{
	char image_path[4096], command[8192];
	struct target *target = calloc(1, sizeof(*target));
	if (!target)
		return;
	target->region = result->region;
	target->inject = result->inject;
	target->inject.region = &target->region;
	target->parent = result->parent;
	target->number = result->number;
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
	member_begin(logger, target, 0, result->pid, proc_inner_id(result->pid, result->pid));
	info_write(logger, target, &image, result->number);
}

static void target_remove(struct logger *logger, struct target *target)
{
	struct target **link = &logger->targets;
	while (*link && *link != target)
		link = &(*link)->next;
	robust_remove(logger, &target->region);
	*link = target->next;
	clock_settle(logger, true);
	drain_remove(target->drain, &logger->error, &logger->diag);
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state)
			member_release(&target->member[i]);
	inject_fini(&target->inject);
	/* Who was let go of keeps the mapping; a thief of memory that would be, after many sessions. */
	if (target->is_let_go)
		region_forget_buffers(&target->region);
	region_close(&target->region);
	unlink(target->region_path);
	char info[600];
	snprintf(info, sizeof(info), "%s.info", target->region_path);
	unlink(info);
	free(target);
}

static void member_end(struct logger *logger, struct target *target, uint32_t index, uint8_t end, int32_t status, uint64_t ticks)
{
	struct member *member = &target->member[index];
	if (member->state != 1)
		return;
	member->state = 2;
	target->alive--;
	member_release(member);
	clock_settle(logger, true);
	drain_end_process(target->drain, index, end, status, ticks);
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

struct inner_process { const struct target *target; pid_t inner; };

static bool is_inner_process(void *cookie, pid_t pid)
{
	const struct inner_process *wanted = cookie;
	return proc_inner_id(pid, pid) == wanted->inner && is_of_target(wanted->target, pid);
}

/* Our pid of a process of the target that calls itself inner; 0: it is gone. */
static pid_t process_outside(const struct target *target, pid_t inner)
{
	struct inner_process wanted = {target, inner};
	return is_inner_process(&wanted, inner) ? inner : proc_search(is_inner_process, &wanted);
}

/* Forked processes have found themselves in the region. */
static void members_find(const struct logger *logger, struct target *target)
{
	for (uint32_t i = 1; i < REGION_PROCESS_MAX; i++) {
		struct region_process *process = region_process(&target->region, i);
		uint32_t state = __atomic_load_n(&process->state, __ATOMIC_ACQUIRE);
		if (state == PROCESS_FREE)
			break;
		if (state != PROCESS_LIVE || target->member[i].state == 1)
			continue;
		if (target->member[i].state == 2 && target->member[i].start_ticks == process->start_ticks)
			continue;
		pid_t inner = (pid_t)process->pid, pid = process_outside(target, inner);
		member_begin(logger, target, i, pid, inner);
		target->member[i].start_ticks = process->start_ticks;
		/* For the trace, and for whoever recovers it. */
		if (pid)
			process->pid = (uint32_t)pid;
	}
}

/* As the kernel has it, since 6.15. */
struct pidfd_information { uint64_t mask, cgroup; uint32_t ids[11]; int32_t exit_code; uint64_t more[4]; };

/* The wait status of a process that is not our child, where the kernel tells. */
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
	if (member->pidfd >= 0 && ioctl(member->pidfd, _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 64), &information) == 0 &&
	    (information.mask & INFO_EXIT)) {
		*status = information.exit_code;
		return true;
	}
	return false;
}

/* What it said itself, just before. */
static bool exit_told(const struct target *target, uint32_t index, int *status)
{
	uint64_t told = __atomic_load_n(&region_process(&target->region, index)->exit_told, __ATOMIC_ACQUIRE);
	*status = (int)(told & 0xff);
	return told >> 8 == ((uint64_t)target->member[index].inner << 24 | 1);
}

static bool member_has_ended(const struct member *member)
{
	if (member->pidfd < 0)
		return true;
	struct pollfd descriptor = {.fd = member->pidfd, .events = POLLIN};
	return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & (POLLIN | POLLHUP));
}

/* The kernel does not say how (before Linux 6.15), or it was gone before we looked: its own word, or none. */
static void member_end_unseen(struct logger *logger, struct target *target, uint32_t index)
{
	int status;
	bool is_told = exit_told(target, index, &status);
	member_end(logger, target, index, is_told ? TRACE_END_EXIT : TRACE_END_UNKNOWN, is_told ? status : 0, inject_ticks());
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
				member_end(logger, target, i, TRACE_END_SIGNAL, WTERMSIG(status), inject_ticks());
			else
				member_end(logger, target, i, TRACE_END_EXIT, WEXITSTATUS(status), inject_ticks());
		} else if (member->pidfd < 0) {
			member_end_unseen(logger, target, i);
		} else if (!member->ended_ns) {
			member->ended_ns = now;
		} else if (now - member->ended_ns > STATUS_WAIT_NS && (member->pid != logger->command_pid || !logger->has_controller)) {
			member_end_unseen(logger, target, i);
		}
	}
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
	uint64_t change = bytes > before ? bytes - before : before - bytes;
	struct trace_sample sample = {.process = drain_process(target->drain, index), .time_ns = (int64_t)inject_ticks(), .resident_bytes = bytes};
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
static void threads_reap(struct target *target, uint64_t now)
{
	if (now - target->reaped_ns < REAP_NS)
		return;
	target->reaped_ns = now;
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

static void mail_answer(struct region_mail *mail)
{
	__atomic_store_n(&mail->state, MAIL_ANSWERED, __ATOMIC_RELEASE);
	syscall(SYS_futex, &mail->state, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint32_t member_of_pid(const struct target *target, pid_t pid)
{
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == 1 && target->member[i].pid == pid)
			return i;
	return UINT32_MAX;
}

static void mail_loaded(const struct logger *logger, struct target *target, struct region_mail *mail)
{
	uint32_t index = mail->value[0] < REGION_PROCESS_MAX ? (uint32_t)mail->value[0] : REGION_PROCESS_MAX;
	members_find(logger, target);
	if (index >= target->member_count || target->member[index].state != 1 || target->member[index].inner != (pid_t)mail->pid)
		return;
	struct member *member = &target->member[index];
	pid_t pid = member->pid;
	if (index == 0) {
		inject_refresh(&target->inject, pid, 0, inject_ticks());
		return;
	}
	if (!member->inject) {
		char path[64];
		struct inject *inject = calloc(1, sizeof(*inject));
		if (!inject)
			return;
		*inject = target->inject;
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
		inject->memory = open(path, O_RDWR | O_CLOEXEC);
		inject->pid = pid;
		inject->image = NULL;
		inject->image_count = 0;
		inject->jump = NULL;
		inject->jump_count = inject->jump_capacity = 0;
		member->inject = inject;
	}
	inject_refresh(member->inject, pid, index, inject_ticks());
}

/* Who has sent a mail, by our count; 0: nobody who has the region. A process that shares its parent's memory sends as its parent does. */
static pid_t mail_sender(const struct target *target, const struct region_mail *mail)
{
	const struct member *member = mail->value[0] < target->member_count ? &target->member[mail->value[0]] : NULL;
	if (member && member->state == 1 && member->inner == (pid_t)mail->pid)
		return process_has_region(target, member->pid) ? member->pid : 0;
	return process_outside(target, (pid_t)mail->pid);
}

static pid_t sending_thread(pid_t pid, pid_t inner)
{
	if (!pid || proc_inner_id(pid, inner) == inner)
		return pid ? inner : 0;
	return proc_outer_thread(pid, inner);
}

/* Trace ids for the image that pid is about to become. */
static void exec_identity(struct target *target, pid_t pid, uint64_t caller, struct hold_request *request)
{
	uint32_t index = member_of_pid(target, pid);
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

static void mail_exec(struct logger *logger, struct target *target, struct region_mail *mail)
{
	members_find(logger, target);
	pid_t pid = mail_sender(target, mail);
	struct hold_request request = {.pid = pid, .tid = sending_thread(pid, (pid_t)mail->tid), .directory = (int)mail->value[1], .mail = mail,
				       .region_inode_path = target->region_path};
	snprintf(request.path, sizeof(request.path), "%.*s", (int)sizeof(mail->text) - 1, mail->text);
	if (!logger->options->follow || (logger->is_command_over && logger->options->until_exit) || !pid || !request.tid) {
		mail_answer(mail);
		return;
	}
	exec_identity(target, pid, mail->value[0], &request);
	if (!holder_start(logger->holder, &request))
		mail_answer(mail);
}

/* Answer what targets ask. True when there was something. */
static bool mails_check(struct logger *logger, struct target *target)
{
	bool has_any = false;
	for (uint32_t i = 0; i < REGION_MAILBOX_COUNT; i++) {
		struct region_mail *mail = &target->region.header->mail[i];
		if (__atomic_load_n(&mail->state, __ATOMIC_ACQUIRE) != MAIL_POSTED)
			continue;
		switch (mail->kind) {
		case MAIL_LOADED:
			mail_loaded(logger, target, mail);
			mail_answer(mail);
			has_any = true;
			break;
		case MAIL_EXEC:
			/* Once: the holder answers, from then on the kind is none. */
			mail->kind = MAIL_NONE;
			mail_exec(logger, target, mail);
			has_any = true;
			break;
		case MAIL_EXEC_FAILED:
			mail->kind = MAIL_NONE;
			holder_cancel(logger->holder, mail, 0);
			mail_answer(mail);
			has_any = true;
			break;
		default:
			break;
		}
	}
	return has_any;
}

/* ---- what held processes became ---- */

/* The image that pid was is over since the time at which its successor begins. */
static void image_over(struct logger *logger, pid_t pid, uint64_t ticks)
{
	uint32_t inner = (uint32_t)proc_inner_id(pid, pid);
	for (struct target *target = logger->targets; target; target = target->next) {
		members_find(logger, target);
		uint32_t index = member_of_pid(target, pid);
		if (index != UINT32_MAX)
			member_end(logger, target, index, TRACE_END_EXEC, 0, ticks);
		/* Its mail dies with it. */
		for (uint32_t i = 0; i < REGION_MAILBOX_COUNT; i++) {
			struct region_mail *mail = &target->region.header->mail[i];
			if (mail->pid == inner && mail->state != MAIL_FREE && mail->state != MAIL_CLAIMED)
				__atomic_store_n(&mail->state, MAIL_FREE, __ATOMIC_RELEASE);
		}
	}
}

static void untraced_add(struct logger *logger, const struct hold_result *result)
{
	char command[2048], text[4096];
	proc_command(result->pid, command, sizeof(command));
	struct trace_process process = {.pid = (uint32_t)result->pid, .parent = result->parent, .forked_from = TRACE_NONE,
					.exec_generation = result->exec_generation, .start_ns = (int64_t)result->start_ticks, .end_ns = INT64_MAX,
					.end = TRACE_END_UNKNOWN, .image = result->path, .command = command, .note = result->diag.text};
	writer_add_process(logger->writer, &process);
	snprintf(text, sizeof(text), "process %d (%s) runs untraced: %s", (int)result->pid, result->path, result->diag.text);
	note(logger, text);
	logger->untraced++;
}

/* What was in the heaps before is known now, or what of it is not. */
static void target_walked(struct logger *logger, struct hold_result *result)
{
	struct target *target = logger->targets;
	while (target && target->number != result->number)
		target = target->next;
	if (target) {
		target->region.header->options &= ~(uint32_t)OPTION_MEASURE;
		clock_settle(logger, true);
		drain_earlier(target->drain, &result->walk);
	}
	char text[400];
	snprintf(text, sizeof(text), "process %d: %zu blocks from before, of %llu bytes, read within %.1f ms", (int)result->pid, result->walk.count,
		 (unsigned long long)result->walk.bytes, (double)result->walk.took_ns / 1e6);
	note(logger, text);
	if (result->walk.missing[0]) {
		snprintf(text, sizeof(text), "process %d: not all blocks from before are known: %s", (int)result->pid, result->walk.missing);
		writer_add_option(logger->writer, TRACE_OPTION_EARLIER_MISSING, text);
		note(logger, text);
	}
	walk_fini(&result->walk);
}

static bool results_check(struct logger *logger)
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
		if (result.has_executed)
			image_over(logger, result.pid, result.start_ticks);
		if (result.kind == HOLD_INJECTED) {
			target_add(logger, &result);
			if (result.inject.refused) {
				char text[600];
				snprintf(text, sizeof(text), "not every function could be hooked: %s", result.inject.refusal);
				note(logger, text);
			}
		} else {
			untraced_add(logger, &result);
		}
	}
	return has_any;
}

/* ---- controllers ---- */

static void done(int socket, int error, const char *text)
{
	struct control_message message = {.kind = CONTROL_DONE, .value = error};
	snprintf(message.text, sizeof(message.text), "%s", text);
	control_send(socket, &message);
}

static uint64_t cpu_ns(void);
static void member_detach(struct logger *logger, struct target *target, uint32_t index);

static bool is_pid_traced(const struct logger *logger, pid_t pid)
{
	for (const struct target *target = logger->targets; target; target = target->next)
		if (member_of_pid(target, pid) != UINT32_MAX)
			return true;
	return false;
}

static void handle_attach(struct logger *logger, int socket, pid_t pid)
{
	struct hold_request request = {.pid = pid, .tid = pid, .parent = TRACE_NONE, .control = dup(socket), .is_attach = true};
	struct control_message message = {.kind = CONTROL_LAUNCHED, .pid = pid, .value = -EEXIST};
	if (is_pid_traced(logger, pid)) {
		snprintf(message.text, sizeof(message.text), "process %d is recorded by this session already", (int)pid);
		control_send(socket, &message);
		close(request.control);
	} else if (!holder_start(logger->holder, &request)) {
		message.value = -EAGAIN;
		snprintf(message.text, sizeof(message.text), "process %d: no thread to attach with", (int)pid);
		control_send(socket, &message);
		close(request.control);
	}
}

static void handle_detach(struct logger *logger, int socket, pid_t pid)
{
	char text[100];
	for (struct target *target = logger->targets; target; target = target->next) {
		members_find(logger, target);
		uint32_t index = member_of_pid(target, pid);
		if (index == UINT32_MAX)
			continue;
		member_detach(logger, target, index);
		done(socket, 0, "");
		return;
	}
	snprintf(text, sizeof(text), "process %d is not recorded by this session", (int)pid);
	done(socket, -ESRCH, text);
}

static void handle_options(struct logger *logger, int socket, const struct control_state *wanted)
{
	/* For those that come; what is there goes by the words in its region. */
	struct session_options *options = logger->own_options;
	const uint32_t stacks = OPTION_STACKS;
	options->stack_kinds = wanted->options & stacks;
	options->on_full_wait = wanted->options & OPTION_WAIT;
	options->wait_limit_ms = wanted->wait_limit_ms;
	for (struct target *target = logger->targets; target; target = target->next) {
		uint32_t kept = target->region.header->options & ~(stacks | OPTION_WAIT);
		__atomic_store_n(&target->region.header->options, kept | (wanted->options & (stacks | OPTION_WAIT)), __ATOMIC_RELEASE);
		target->region.header->wait_limit_ms = wanted->wait_limit_ms;
	}
	done(socket, 0, "");
}

static void handle_flush(struct logger *logger, int socket)
{
	int error = 0;
	clock_settle(logger, true);
	for (struct target *target = logger->targets; target; target = target->next)
		drain_poll(target->drain, true, &error, &logger->diag);
	if (!error)
		error = writer_flush(logger->writer, &logger->diag);
	done(socket, error, error ? logger->diag.text : "");
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

static void tell_target(struct logger *logger, int socket, struct target *target)
{
	struct control_message message = {.kind = CONTROL_TARGET, .pid = target->member[0].pid};
	struct drain_totals totals;
	drain_region_totals(target->drain, &totals);
	message.target = (struct control_target){
		.events = totals.events, .lost = totals.lost, .truncated = totals.truncated, .waits = totals.waits,
		.wait_ns = session_clock_ns(&logger->clock, totals.wait_ticks), .processes = target->alive, .threads = threads_live(&target->region)};
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == 1 && target->member[i].pid)
			message.target.resident_bytes += proc_resident_bytes(target->member[i].pid);
	proc_command(message.pid, message.text, sizeof(message.text));
	control_send(socket, &message);
}

static void handle_query(struct logger *logger, int socket)
{
	const struct session_options *options = logger->options;
	struct control_message message = {.kind = CONTROL_STATE, .pid = getpid()};
	struct drain_totals totals;
	/* Who was just attached to is there for whoever was told so. */
	results_check(logger);
	drain_totals(logger->drain, &totals);
	message.state = (struct control_state){
		.events = totals.events, .lost = totals.lost, .truncated = totals.truncated, .waits = totals.waits,
		.wait_ns = session_clock_ns(&logger->clock, totals.wait_ticks), .size_bytes = writer_size_bytes(logger->writer),
		.buffers_written = totals.buffers_written, .logger_cpu_ns = cpu_ns(), .max_file_bytes = options->max_file_bytes,
		.buffer_size = options->buffer_size, .buffer_min = options->buffer_min, .buffer_max = options->buffer_max,
		.options = session_options_word(options), .wait_limit_ms = options->wait_limit_ms,
		.started_realtime_ns = logger->clock.writer.start_realtime_ns};
	for (struct target *target = logger->targets; target; target = target->next) {
		message.state.targets += target->alive > 0;
		message.state.buffers_now += target->region.buffer_ready;
		message.state.buffers_free += buffers_free(&target->region);
	}
	snprintf(message.text, sizeof(message.text), "%.*s", (int)sizeof(message.text) - 1, options->trace_path);
	control_send(socket, &message);
	for (struct target *target = logger->targets; target; target = target->next)
		if (target->alive)
			tell_target(logger, socket, target);
	done(socket, logger->error, logger->error ? logger->diag.text : "");
}

static void handle_launch(struct logger *logger, int socket, const struct control_message *message)
{
	struct hold_request request = {.pid = message->pid, .tid = message->pid, .directory = AT_FDCWD, .parent = TRACE_NONE,
				       .control = dup(socket), .is_launch = true};
	snprintf(request.path, sizeof(request.path), "%.*s", (int)sizeof(message->text) - 1, message->text);
	logger->command_pid = message->pid;
	logger->is_command_known = true;
	if (!holder_start(logger->holder, &request))
		close(request.control);
}

static void handle_status(struct logger *logger, const struct control_message *message)
{
	struct told *told = calloc(1, sizeof(*told));
	if (told) {
		*told = (struct told){message->pid, (int)message->value, logger->told};
		logger->told = told;
	}
	if (message->pid == logger->command_pid)
		logger->is_command_over = true;
}

static void control_handle(struct logger *logger, int socket, const struct control_message *message)
{
	switch (message->kind) {
	case CONTROL_LAUNCH: handle_launch(logger, socket, message); break;
	case CONTROL_ATTACH: handle_attach(logger, socket, message->pid); break;
	case CONTROL_DETACH: handle_detach(logger, socket, message->pid); break;
	case CONTROL_OPTIONS: handle_options(logger, socket, &message->state); break;
	case CONTROL_FLUSH: handle_flush(logger, socket); break;
	case CONTROL_QUERY: handle_query(logger, socket); break;
	case CONTROL_READY: logger->is_command_over = true; break;
	case CONTROL_STOP: logger->is_stopping = true; break;
	case CONTROL_EXEC_FAILED:
		holder_cancel(logger->holder, NULL, message->pid);
		logger->is_command_over = true;
		break;
	case CONTROL_STATUS: handle_status(logger, message); break;
	default: break;
	}
}

static bool controller_add(struct logger *logger, int socket)
{
	struct controller *controller = malloc(sizeof(*controller));
	if (!controller)
		return false;
	*controller = (struct controller){socket, logger->controllers};
	logger->controllers = controller;
	watch_add(logger->watch, socket);
	return true;
}

/* Only its user, and root, may say what a session does. */
static void controllers_accept(struct logger *logger)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int socket;
	while (logger->listener >= 0 && (socket = accept4(logger->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || (peer.uid != geteuid() && peer.uid != 0) ||
		    !controller_add(logger, socket))
			close(socket);
}

static void controller_gone(struct logger *logger, struct controller **link)
{
	struct controller *controller = *link;
	*link = controller->next;
	if (controller->socket == logger->control) {
		logger->has_controller = false;
		logger->is_command_over = true; /* nobody will tell us; its pidfd does */
		if (!logger->options->session_name)
			logger->is_stopping = logger->options->is_attached;
	} else {
		close(controller->socket);
	}
	free(controller);
}

static bool control_check(struct logger *logger)
{
	struct control_message message;
	bool has_any = false;
	controllers_accept(logger);
	for (struct controller **link = &logger->controllers; *link;) {
		int got = control_receive((*link)->socket, &message, 0);
		if (got > 0) {
			control_handle(logger, (*link)->socket, &message);
			has_any = true;
		} else if (got < 0) {
			controller_gone(logger, link);
		} else {
			link = &(*link)->next;
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
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)milliseconds * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	if (syscall(SYS_futex_waitv, waiters, count, 0, &until, CLOCK_MONOTONIC) < 0 && errno == ENOSYS) {
		struct timespec time = {0, (long)BUSY_MS * 1000000};
		nanosleep(&time, NULL);
	}
}

static void file_full(struct logger *logger)
{
	if (logger->is_file_full)
		return;
	logger->is_file_full = true;
	for (struct target *target = logger->targets; target; target = target->next)
		target->region.header->options &= ~(uint32_t)OPTION_ENABLED;
	note(logger, logger->error == -EFBIG ? "the trace has reached --max-file: recording ended" : logger->diag.text);
}

/* For targets that may not read the clock themselves. */
static void coarse_clock_raise(struct region_header *header)
{
	uint64_t now = inject_ticks(), old = __atomic_load_n(&header->coarse_ticks, __ATOMIC_RELAXED);
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

static bool target_serve(struct logger *logger, struct target *target, bool flush, uint64_t now)
{
	target->doorbell_seen = __atomic_load_n(&target->region.header->doorbell, __ATOMIC_ACQUIRE);
	bool has_any = mails_check(logger, target);
	members_find(logger, target);
	clock_settle(logger, flush || has_full_buffer(&target->region));
	int error = 0;
	has_any |= drain_poll(target->drain, flush, &error, &logger->diag);
	region_grow(&target->region);
	coarse_clock_raise(target->region.header);
	__atomic_fetch_add(&target->region.header->heartbeat, 1, __ATOMIC_RELEASE);
	members_check(logger, target, now);
	for (uint32_t i = 0; i < target->member_count; i++)
		member_sample(logger, target, i, now);
	threads_reap(target, now);
	if (error) {
		logger->error = error;
		file_full(logger);
	}
	return has_any;
}

/* A forked process that has not called the heap yet is in no list, but may still write into the region. */
static bool target_is_over(const struct target *target)
{
	return target->alive == 0 && (target->is_let_go || !proc_is_in_use(target->region_path, target->region.fd));
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

static void loop(struct logger *logger)
{
	unsigned quiet = 0;
	logger->flushed_ns = now_ns();
	for (;;) {
		uint64_t now = now_ns();
		bool flush = now - logger->flushed_ns > FLUSH_NS;
		/* What rings from here on is looked at in the next round. */
		logger->doorbell_seen = __atomic_load_n(&logger->doorbell.word, __ATOMIC_ACQUIRE);
		bool has_any = control_check(logger);
		has_any |= results_check(logger);
		struct target *next;
		for (struct target *target = logger->targets; target; target = next) {
			next = target->next;
			has_any |= target_serve(logger, target, flush, now);
			/* A holder may still answer a mail that lies in it. */
			if (!holder_is_busy(logger->holder) && target_is_over(target))
				target_remove(logger, target);
		}
		if (flush) {
			clock_settle(logger, true);
			writer_flush(logger->writer, &logger->diag);
			logger->flushed_ns = now;
		}
		if (everybody_is_gone(logger))
			return;
		quiet = has_any ? 0 : quiet + 1;
		wait_for_work(logger, quiet < BUSY_ROUNDS ? BUSY_MS : IDLE_MS);
	}
}

/* ---- beginning and end ---- */

static void session_write(struct logger *logger)
{
	char text[12000];
	snprintf(text, sizeof(text),
		 "trace=%s\nname=%s\npid=%d\npid_start=%llu\nclock=%s\nstart_ticks=%llu\nmult=%llu\nshift=%u\nstart_realtime_ns=%lld\ncommand=%.8000s\n",
		 logger->options->trace_path, logger->options->session_name ? logger->options->session_name : "", (int)getpid(),
		 (unsigned long long)proc_start_time(getpid()), logger->clock.writer.name,
		 (unsigned long long)logger->clock.writer.start_ticks, (unsigned long long)logger->clock.writer.mult, logger->clock.writer.shift,
		 (long long)logger->clock.writer.start_realtime_ns, logger->options->command);
	session_file_write(logger->directory, "session", text, NULL);
}

/* The options in the trace, each once. */
static void options_write(struct logger *logger)
{
	const struct session_options *options = logger->options;
	char text[160];
#define ADD(name, format, value) (snprintf(text, sizeof(text), format, value), writer_add_option(logger->writer, name, text))
	ADD("buffer-size", "%u", options->buffer_size);
	ADD("min-buffers", "%u", options->buffer_min);
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
	logger->listener = session_listen(logger->directory, &logger->diag);
	return logger->listener < 0 ? logger->listener : session_name_take(name, logger->directory, &logger->diag);
}

static void session_over(const struct logger *logger)
{
	if (logger->options->session_name)
		session_name_drop(logger->options->session_name);
}

static int logger_begin(struct logger *logger)
{
	struct writer_options writer = {.max_file_bytes = logger->options->max_file_bytes, .resolution_ns = SESSION_RESOLUTION_NS};
	session_clock_read(&logger->clock);
	int error = session_directory_make(logger->directory, sizeof(logger->directory), &logger->diag);
	if (error)
		return error;
	error = session_begin(logger);
	if (!error) {
		error = writer_open(&logger->writer, logger->options->trace_path, &writer, &logger->diag);
		if (error)
			session_over(logger);
	}
	if (error) {
		session_directory_remove(logger->directory);
		return error;
	}
	options_write(logger);
	session_write(logger);
	logger->drain = drain_new(logger->writer);
	logger->hooks = hook_cache_new();
	logger->holder = holder_new(logger->options, logger->directory, logger->hooks, &logger->clock, &logger->doorbell);
	logger->watch = watch_begin(&logger->doorbell);
	controller_add(logger, logger->control);
	watch_add(logger->watch, logger->listener);
	robust_begin(logger);
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

static void member_detach(struct logger *logger, struct target *target, uint32_t index)
{
	struct member *member = &target->member[index];
	char command[512], text[900];
	struct inject_pause pause;
	struct diag diag = {""};
	proc_command(member->pid, command, sizeof(command));
	int error = member->pid ? inject_detach(&target->inject, member->inject, member->pid, &pause, &diag) : -ESRCH;
	if (error && member_has_ended(member))
		return;
	if (error)
		snprintf(text, sizeof(text), "process %d (%s) still runs, no longer traced, but its functions stay patched: %s", (int)member->pid, command,
			 diag.text);
	else
		snprintf(text, sizeof(text), "process %d (%s) still runs, no longer traced; %u thread%s stood for %.3f ms", (int)member->pid, command,
			 pause.thread_count, pause.thread_count == 1 ? "" : "s", (double)pause.all_ns / 1e6);
	note(logger, text);
	member_end(logger, target, index, TRACE_END_DETACHED, 0, inject_ticks());
	target->is_let_go = target->alive == 0;
	if (target->is_let_go)
		target->region.header->options &= ~(uint32_t)OPTION_ENABLED;
}

static void detach_all(struct logger *logger)
{
	for (struct target *target = logger->targets; target; target = target->next) {
		target->region.header->options &= ~(uint32_t)OPTION_ENABLED;
		members_find(logger, target);
		for (uint32_t i = 0; i < target->member_count; i++)
			if (target->member[i].state == 1)
				member_detach(logger, target, i);
		members_check(logger, target, now_ns());
		__atomic_store_n(&target->region.header->state, 2, __ATOMIC_RELEASE);
	}
}

static void logger_end(struct logger *logger)
{
	clock_settle(logger, true);
	detach_all(logger);
	while (logger->targets)
		target_remove(logger, logger->targets);
	struct drain_totals totals = {0};
	drain_totals(logger->drain, &totals);
	struct trace_statistics statistics = {.waits = totals.waits, .wait_ns = session_clock_ns(&logger->clock, totals.wait_ticks),
					      .buffers_written = totals.buffers_written, .buffer_size = logger->options->buffer_size,
					      .peak_buffers = totals.peak_buffers, .suppressed = totals.suppressed,
					      .unwatched = totals.unwatched, .heapless = totals.heapless};
	drain_free(logger->drain);
	int error = writer_flush(logger->writer, &logger->diag);
	statistics.logger_cpu_ns = cpu_ns();
	int close_error = writer_close(logger->writer, &statistics, &logger->diag);
	struct control_message message = {.kind = CONTROL_SUMMARY};
	struct stat status;
	message.summary = (struct control_summary){
		.events = totals.events, .lost = totals.lost, .truncated = totals.truncated, .waits = totals.waits, .wait_ns = statistics.wait_ns,
		.logger_cpu_ns = cpu_ns(), .processes = totals.processes, .untraced_processes = logger->untraced,
		.peak_buffer_bytes = (uint64_t)totals.peak_buffers * logger->options->buffer_size, .check_failures = totals.check_failures,
		.untraced_calls = totals.untraced_calls,
		.error = logger->error ? logger->error : error ? error : close_error};
	message.summary.size_bytes = stat(logger->options->trace_path, &status) == 0 ? (uint64_t)status.st_size : 0;
	snprintf(message.text, sizeof(message.text), "%s", logger->diag.text);
	session_over(logger);
	tell_all(logger, &message);
	session_directory_remove(logger->directory);
}

/* Nothing of the terminal's, the command's or the user's may reach or hold us. */
static void logger_isolate(int control)
{
	setsid();
	prctl(PR_SET_NAME, "xheap-logger");
	static const int ignored[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP, SIGPIPE, SIGTERM, SIGXFSZ, SIGIO};
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
	logger->has_controller = true;
	struct control_message message = {.kind = CONTROL_LAUNCHED};
	int error = logger_begin(logger);
	if (error) {
		message.value = error;
		snprintf(message.text, sizeof(message.text), "%s", logger->diag.text);
		control_send(control, &message);
		return 2;
	}
	loop(logger);
	logger_end(logger);
	return logger->error ? 2 : 0;
}
