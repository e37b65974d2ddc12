/* SPDX-License-Identifier: MIT */
#include "session/logger/members.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/cgroups.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "os/proc_text.h"
#include "region/atomic.h"
#include "session/logger/answer.h"
#include "session/logger/flight.h"
#include "session/logger/inactive.h"
#include "session/logger/logger_loop.h"
#include "session/logger/residents.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

enum { BUSY_MS = 1, STATUS_WAIT_NS = 200000000, SAMPLE_NS = 20000000, SAMPLE_CHANGE = 128 };

/* Count what the kernel has done for want of memory up to now, for all and in the member's cgroup. */
static struct trace_cause counts_of(const struct member *member)
{
	struct trace_cause counts = {.cgroup_kills = TRACE_CAUSE_UNKNOWN,
				     .cgroup_hits = TRACE_CAUSE_UNKNOWN,
				     .machine_kills = TRACE_CAUSE_UNKNOWN};
	if (member->cgroups) {
		cgroups_kills(member->cgroups, CGROUPS_ROOT, &counts.cgroup_kills);
		cgroups_limit_hits(member->cgroups, CGROUPS_ROOT, &counts.cgroup_hits);
	}
	cgroups_machine_kills(&counts.machine_kills);
	return counts;
}

/* A process that is killed is gone soon, so the counts are read beforehand. */
static void counts_begin(struct member *member)
{
	if (!member->cgroups)
		member->cgroups = cgroups_of(member->pid);
	member->before = counts_of(member);
	member->has_before = true;
}

void member_begin(struct logger *logger, struct target *target, uint32_t index, pid_t pid, struct identity identity,
		  pid_t inner)
{
	struct member *member = &target->member[index];
	*member = (struct member){.identity = identity,
				  .pid = pid,
				  .inner = inner,
				  .state = MEMBER_LIVE,
				  .is_foreign = pid && proc_is_foreign(pid)};
	watch_add(logger->watch, member->identity.pidfd);
	target->alive++;
	if (index >= target->member_count)
		target->member_count = index + 1;
	/* An executed image has not run yet. Soon its limit may have killed it. */
	if (pid && flight_note_begin(logger, member))
		counts_begin(member);
}

void member_release(struct member *member)
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

void member_end(struct logger *logger, struct target *target, uint32_t index, uint8_t end, int32_t status,
		uint64_t ticks)
{
	struct member *member = &target->member[index];
	if (member->state != MEMBER_LIVE)
		return;
	member->state = MEMBER_ENDED;
	target->alive--;
	flight_note_end(logger, member, end, status);
	member_release(member);
	logger_settle_clock(logger, true);
	drain_end_process(target->drain, index, end, status, ticks);
	/* Its end is in no row of the file. */
	if (writer_has_ended(logger->writer))
		logger_note_after(logger, drain_process(target->drain, index));
}

/* ---- finding them ---- */

/* Return whether pid has the region mapped: what a message says is not believed. The logger itself is no process of a
   target. */
bool process_has_region(const struct target *target, pid_t pid)
{
	struct stat status;
	return pid && pid != getpid() && fstat(target->region.fd, &status) == 0 &&
	       proc_has_mapped(pid, target->region_path, status.st_ino);
}

/* Return whether the process has the target's region. An ended process has no memory any more; its parent may have the
   region. */
static bool is_of_target(const struct target *target, pid_t pid)
{
	return process_has_region(target, pid) ||
	       (proc_has_ended(pid) && process_has_region(target, (pid_t)proc_status_value(pid, "PPid")));
}

struct inner_process {
	const struct target *target;
	pid_t inner;
	uint32_t index;
	bool is_here; /* in our pid namespace, where it calls itself as we do */
};

/* Return whether pid is a member's, live or ended: an ended process keeps its pid until it is waited for. */
static bool is_taken(const struct target *target, pid_t pid)
{
	bool has_ended = proc_has_ended(pid);
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].pid == pid &&
		    (target->member[i].state == MEMBER_LIVE || (target->member[i].state == MEMBER_ENDED && has_ended)))
			return true;
	return false;
}

/* Return whether the process is the wanted one. Children in pid namespaces of their own have the same pid there. So the
   index decides that each has noted in its own memory. That memory goes when the process ends: then only a pid in the
   logger's own namespace identifies it. */
static bool is_inner_process(void *cookie, pid_t pid)
{
	const struct inner_process *wanted = cookie;
	/* Asked first, since many processes may begin at once, and the others are questions to /proc. */
	uint32_t member = wanted->index == UINT32_MAX ? UINT32_MAX : logger_member_of_pid(wanted->target, pid);
	if ((member != UINT32_MAX && member != wanted->index) || proc_inner_id(pid, pid) != wanted->inner ||
	    !is_of_target(wanted->target, pid))
		return false;
	uint32_t noted = inject_process_index(&wanted->target->inject, pid);
	return wanted->index == UINT32_MAX || noted == wanted->index ||
	       (wanted->is_here && proc_has_ended(pid) && !is_taken(wanted->target, pid));
}

/* Take pid's identity and return whether it is the wanted process. The identity is taken first, so that the checks are
   about this process. Otherwise it has ended, and another process of the target has its pid. */
static bool take_inner_process(struct inner_process *wanted, pid_t pid, struct identity *identity)
{
	*identity = identity_take(pid);
	if (pid && is_inner_process(wanted, pid))
		return true;
	identity_drop(identity);
	return false;
}

/* Find the process `inner` with this index; UINT32_MAX: any index. */
pid_t process_outside(const struct target *target, pid_t inner, uint32_t index, struct identity *identity)
{
	struct inner_process wanted = {target, inner, index, false};
	if (take_inner_process(&wanted, inner, identity))
		return inner;
	pid_t found = proc_search(is_inner_process, &wanted);
	return take_inner_process(&wanted, found, identity) ? found : 0;
}

/* As take_inner_process(). A process that ends has no memory any more some time before it counts as ended: wait for
   that, since only then its status is known. */
static bool take_ending(struct inner_process *wanted, pid_t pid, struct identity *identity)
{
	enum { TRIES = 20, PAUSE_US = 1000 };
	for (int i = 0; i < TRIES; i++) {
		bool has_ended = proc_has_ended(pid);
		if (take_inner_process(wanted, pid, identity))
			return true;
		if (has_ended || kill(pid, 0) || process_has_region(wanted->target, pid))
			return false;
		usleep(PAUSE_US);
	}
	return false;
}

/* A process that is searched for among the children of another. */
struct inner_child {
	struct inner_process wanted;
	pid_t found;
};

static void check_child(void *cookie, pid_t child)
{
	struct inner_child *inner = cookie;
	if (!inner->found && is_inner_process(&inner->wanted, child))
		inner->found = child;
}

/* Find the process of a row of the region, at `index`. Return its pid in the logger's namespace, 0 if there is none.
   The row says whether its own pid is valid there, and which process forked it. The caller owns *identity. */
static pid_t registered_outside(const struct target *target, const struct region_process *process, uint32_t index,
				struct identity *identity)
{
	pid_t inner = (pid_t)process->pid;
	struct inner_process wanted = {target, inner, index, true};
	if (!(process->flags & PROCESS_IS_FOREIGN))
		return take_ending(&wanted, inner, identity) ? inner : 0;
	struct inner_child child = {{target, inner, index, false}, 0};
	if (process->parent < target->member_count && target->member[process->parent].pid)
		proc_children(target->member[process->parent].pid, check_child, &child);
	if (child.found && take_inner_process(&child.wanted, child.found, identity))
		return child.found;
	return process_outside(target, inner, index, identity);
}

/* Note in the region, for the trace, for recover, and for the process itself, that this member was found, or was
   searched for in vain: then the pid that the process has for itself says nothing where it may be another
   namespace's. */
static void process_note_meeting(struct region_process *process, const struct member *member)
{
	if (member->pid || (process->flags & PROCESS_IS_FOREIGN))
		process->pid = (uint32_t)member->pid;
	bool is_here = member->pid && !member->is_foreign;
	STORE_RELEASE(&process->meeting, is_here ? PROCESS_MET_HERE : PROCESS_MET_ELSEWHERE);
	if (process->flags & PROCESS_IS_FOREIGN)
		syscall(SYS_futex, &process->meeting, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Forked processes have found themselves in the region. */
void logger_find_members(struct logger *logger, struct target *target)
{
	for (uint32_t i = 1; i < REGION_PROCESS_MAX; i++) {
		struct region_process *process = region_process(&target->region, i);
		uint32_t state = __atomic_load_n(&process->state, __ATOMIC_ACQUIRE);
		/* Indexes are taken from the first on; among those that had a process, one may be free again. */
		if (state == PROCESS_FREE && i >= target->member_count)
			break;
		if (state != PROCESS_LIVE || target->member[i].state == MEMBER_LIVE)
			continue;
		if (target->member[i].state == MEMBER_ENDED && target->member[i].start_ticks == process->start_ticks)
			continue;
		struct identity identity;
		pid_t inner = (pid_t)process->pid, pid = registered_outside(target, process, i, &identity);
		member_begin(logger, target, i, pid, identity, inner);
		target->member[i].start_ticks = process->start_ticks;
		process_note_meeting(process, &target->member[i]);
	}
}

/* ---- their ends ---- */

/* As the kernel has it, since 6.15. */
struct pidfd_information {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
	uint64_t more[4];
};

static uint64_t counts_rise(uint64_t before, uint64_t after)
{
	return before == TRACE_CAUSE_UNKNOWN || after == TRACE_CAUSE_UNKNOWN || after < before ? TRACE_CAUSE_UNKNOWN
											       : after - before;
}

/* Write what is known of the end by a signal beside its number. The kernel counts a kill before it sends the signal. */
static void cause_write(struct logger *logger, struct target *target, uint32_t index, int status)
{
	const struct member *member = &target->member[index];
	uint32_t process = drain_process(target->drain, index);
	struct trace_cause cause = {.process = process,
				    .has_core = WCOREDUMP(status),
				    .cgroup_kills = TRACE_CAUSE_UNKNOWN,
				    .cgroup_hits = TRACE_CAUSE_UNKNOWN,
				    .machine_kills = TRACE_CAUSE_UNKNOWN};
	if (process == TRACE_NONE || writer_has_ended(logger->writer))
		return;
	if (member->has_before && WTERMSIG(status) == SIGKILL) {
		const struct trace_cause after = counts_of(member);
		cause.cgroup_kills = counts_rise(member->before.cgroup_kills, after.cgroup_kills);
		cause.cgroup_hits = counts_rise(member->before.cgroup_hits, after.cgroup_hits);
		cause.machine_kills = counts_rise(member->before.machine_kills, after.machine_kills);
	}
	writer_add_cause(logger->writer, &cause);
}

/* Get the wait status of a process that is not the logger's child, if the kernel has one. It comes from /proc before
   the parent has waited for it, afterwards from its pidfd. */
static bool status_of(struct logger *logger, const struct member *member, int *status)
{
	for (struct exit_status *reported = logger->exit_statuses; reported; reported = reported->next) {
		if (reported->pid == member->pid) {
			*status = reported->status;
			return true;
		}
	}
	enum { INFO_EXIT = 8 };
	struct pidfd_information information = {.mask = INFO_EXIT};
	if (member->identity.pidfd >= 0 &&
	    ioctl(member->identity.pidfd, _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 64), &information) == 0 &&
	    (information.mask & INFO_EXIT)) {
		*status = information.exit_code;
		return true;
	}
	/* If the process is still there after that, the pid was its. */
	return member->pid && proc_wait_status(member->pid, status) && identity_is_there(&member->identity);
}

bool member_has_ended(const struct member *member)
{
	return identity_has_ended(&member->identity);
}

/* End a member whose status the kernel does not give (before Linux 6.15), or that was gone before it was found: use its
   own report, or none. */
static void member_end_unseen(struct logger *logger, struct target *target, uint32_t index)
{
	int status;
	bool is_reported = region_exit_status(region_process(&target->region, index),
					      (uint32_t)target->member[index].inner, &status);
	member_end(logger, target, index, is_reported ? TRACE_END_EXIT : TRACE_END_UNKNOWN, is_reported ? status : 0,
		   clock_event_ticks());
}

void members_check(struct logger *logger, struct target *target, uint64_t now)
{
	for (uint32_t i = 0; i < target->member_count; i++) {
		struct member *member = &target->member[i];
		if (member->state != MEMBER_LIVE || !member_has_ended(member))
			continue;
		int status;
		if (status_of(logger, member, &status)) {
			if (WIFSIGNALED(status)) {
				cause_write(logger, target, i, status);
				member_end(logger, target, i, TRACE_END_SIGNAL, WTERMSIG(status), clock_event_ticks());
			} else {
				member_end(logger, target, i, TRACE_END_EXIT, WEXITSTATUS(status), clock_event_ticks());
			}
		} else if (!member->pid) {
			member_end_unseen(logger, target, i);
		} else if (!member->ended_ns) {
			member->ended_ns = now;
		} else if (now - member->ended_ns > STATUS_WAIT_NS &&
			   (member->pid != logger->command_pid || !logger->has_controller)) {
			member_end_unseen(logger, target, i);
		}
	}
}

static bool has_unsettled_member(const struct target *target)
{
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == MEMBER_LIVE && member_has_ended(&target->member[i]))
			return true;
	return false;
}

/* End every member whose process has ended, also one that came and went between two rounds. Wait for a status no longer
   than twice STATUS_WAIT_NS. */
static void members_settle(struct logger *logger, struct target *target)
{
	uint64_t until = monotonic_now_ns() + 2 * (uint64_t)STATUS_WAIT_NS;
	logger_find_members(logger, target);
	members_check(logger, target, monotonic_now_ns());
	while (has_unsettled_member(target) && monotonic_now_ns() < until) {
		monotonic_pause(BUSY_MS * NS_PER_MS);
		members_check(logger, target, monotonic_now_ns());
	}
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == MEMBER_LIVE && member_has_ended(&target->member[i]))
			member_end_unseen(logger, target, i);
}

/* Write the limits of a member's memory, once. */
static void limits_write(struct logger *logger, struct member *member, uint32_t process)
{
	if (member->has_limits)
		return;
	struct limits_memory limits = limits_of_process(member->pid);
	member->has_limits = true;
	if (!member->has_before)
		counts_begin(member);
	writer_add_limit(logger->writer, &(struct trace_limit){.process = process,
							       .address_space_bytes = limits.address_space,
							       .data_bytes = limits.data,
							       .cgroup_bytes = limits.cgroup,
							       .machine_bytes = limits.machine});
}

void member_sample(struct logger *logger, struct target *target, uint32_t index, uint64_t now)
{
	struct member *member = &target->member[index];
	/* Without a clock there is nothing to write times with. */
	if (member->state != MEMBER_LIVE || !member->pid || !logger->is_clock_set ||
	    (member->sampled_ns && now - member->sampled_ns < SAMPLE_NS))
		return;
	member->sampled_ns = now;
	uint64_t bytes = proc_resident_bytes(member->pid), before = member->resident_bytes;
	flight_note_memory(logger, member, bytes);
	uint64_t change = bytes > before ? bytes - before : before - bytes;
	struct trace_sample sample = {.process = drain_process(target->drain, index),
				      .time_ns = (int64_t)clock_event_ticks(),
				      .resident_bytes = bytes};
	if (bytes == 0 || sample.process == TRACE_NONE ||
	    !(residents_ask(logger, target, index, bytes, now, sample.time_ns) | (change > before / SAMPLE_CHANGE)))
		return;
	member->resident_bytes = bytes;
	limits_write(logger, member, sample.process);
	writer_add_sample(logger->writer, &sample);
}

static void serve(struct logger *logger)
{
	logger_serve_while(logger, NULL, NULL);
}

void members_read_memory(struct logger *logger)
{
	/* Readings begin for a quarter of a second. Each that has begun is waited for, which takes long on a busy
	   machine only. */
	enum { BEGIN_MS = 250, READ_MS = 2000 };
	uint64_t begin_until_ns = monotonic_now_ns() + BEGIN_MS * NS_PER_MS;
	for (struct target *target = logger->targets; target; target = target->next)
		for (uint32_t i = 0; i < target->member_count && monotonic_now_ns() < begin_until_ns; i++) {
			struct member *member = &target->member[i];
			bool is_there = member->state == MEMBER_LIVE && member->pid && logger->is_clock_set;
			uint64_t bytes = is_there ? proc_resident_bytes(member->pid) : 0;
			struct trace_sample sample = {.process = drain_process(target->drain, i),
						      .time_ns = (int64_t)clock_event_ticks(),
						      .resident_bytes = bytes};
			uint64_t until_ns = monotonic_now_ns() + READ_MS * NS_PER_MS;
			if (bytes && residents_read_now(logger, target, i, bytes, sample.time_ns, until_ns, serve)) {
				limits_write(logger, member, sample.process);
				writer_add_sample(logger->writer, &sample);
			}
		}
}

bool thread_lives(const struct member *member, pid_t tid)
{
	return member->is_foreign ? proc_outer_thread(member->pid, tid) != 0 : proc_thread_exists(member->pid, tid);
}

void threads_reap(struct target *target)
{
	for (uint32_t i = 0; i < target->region.slot_ready; i++) {
		const struct region_slot *slot = region_slot(&target->region, i);
		uint32_t process = LOAD(&slot->process), tid = LOAD(&slot->tid);
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_LIVE || process >= target->member_count ||
		    target->member[process].state != MEMBER_LIVE)
			continue;
		if (!thread_lives(&target->member[process], (pid_t)tid) && LOAD(&slot->tid) == tid)
			drain_end_thread(target->drain, i);
	}
}

uint32_t logger_member_of_pid(const struct target *target, pid_t pid)
{
	for (uint32_t i = 0; i < target->member_count; i++)
		if (target->member[i].state == MEMBER_LIVE && target->member[i].pid == pid)
			return i;
	return UINT32_MAX;
}

bool logger_has_pid(const struct logger *logger, pid_t pid)
{
	for (const struct target *target = logger->targets; target; target = target->next)
		if (logger_member_of_pid(target, pid) != UINT32_MAX)
			return true;
	return false;
}

/* ---- detaching ---- */

/* A process that is being detached from. */
struct leaving {
	struct logger *logger;
	struct target *target;
	const struct member *member;
	uint64_t began_ns;
};

/* Serve targets while another thread waits for threads to leave the recorder's code. Some of them may wait for room, or
   for the answer to a message. */
static void serve_while(void *cookie)
{
	enum { WAIT_FOR_ROOM_NS = 1000000000 };
	struct leaving *leaving = cookie;
	logger_serve_while(leaving->logger, leaving->target, leaving->member);
	/* Let threads that wait for room give up; their events are counted as lost. */
	if (leaving->target->alive == 1 && monotonic_now_ns() - leaving->began_ns > WAIT_FOR_ROOM_NS)
		__atomic_store_n(&leaving->target->region.header->state, REGION_DETACHED, __ATOMIC_RELEASE);
}

static void note_detached(struct logger *logger, const struct member *member, const char *command,
			  const struct inject_detaching *detaching)
{
	char text[1024];
	const struct inject_pause *pause = &detaching->pause;
	int size = snprintf(text, sizeof(text), "detached from process %d (%s): %u thread%s paused for %.3f ms",
			    (int)member->pid, command, pause->thread_count, pause->thread_count == 1 ? "" : "s",
			    (double)pause->all_ns / 1e6);
	if (pause->one_ns)
		size += snprintf(text + size, sizeof(text) - (size_t)size, ", then each alone, for at most %.3f ms",
				 (double)pause->one_ns / 1e6);
	if (detaching->rest.bytes) {
		size += snprintf(text + size, sizeof(text) - (size_t)size, "; ");
		inactive_describe(text + size, sizeof(text) - (size_t)size, &detaching->rest);
	}
	(detaching->rest.bytes ? logger_warn : logger_note)(logger, text);
}

/* Return whether the process has ended. Wait while it is about to end. */
static bool member_ends(const struct member *member)
{
	uint64_t until_ns = monotonic_now_ns() + STATUS_WAIT_NS;
	while (!member_has_ended(member) && member->pid && proc_is_ending(member->pid) && monotonic_now_ns() < until_ns)
		monotonic_pause(NS_PER_MS);
	return member_has_ended(member);
}

int logger_detach_member(struct logger *logger, struct target *target, uint32_t index, struct diag *diag_or_null)
{
	struct member *member = &target->member[index];
	char command[512], text[900];
	struct diag diag = {""};
	struct leaving leaving = {logger, target, member, monotonic_now_ns()};
	struct inject_detaching detaching = {.pid = member->pid,
					     .inject = &target->inject,
					     .own = member->inject,
					     .patience = INJECT_PATIENT,
					     .wait = &logger->wait,
					     .meanwhile = serve_while,
					     .cookie = &leaving};
	proc_command(member->pid, command, sizeof(command));
	int error = member->pid ? inject_detach(&detaching, &diag) : -ESRCH;
	if (error && member_ends(member))
		return 0;
	if (error && diag_or_null)
		return diag_fail(diag_or_null, -error, "%s", diag.text);
	if (error) {
		snprintf(text, sizeof(text), "detached from process %d (%s), but its functions stay patched: %s",
			 (int)member->pid, command, diag.text);
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

void detach_all(struct logger *logger)
{
	for (struct target *target = logger->targets; target; target = target->next) {
		__atomic_fetch_and(&target->region.header->options, ~(uint32_t)OPTION_ENABLED, __ATOMIC_RELEASE);
		logger_find_members(logger, target);
		for (uint32_t i = 0; i < target->member_count; i++)
			if (target->member[i].state == MEMBER_LIVE)
				logger_detach_member(logger, target, i, NULL);
		members_settle(logger, target);
		__atomic_store_n(&target->region.header->state, REGION_DETACHED, __ATOMIC_RELEASE);
	}
}
