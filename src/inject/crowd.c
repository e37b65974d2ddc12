/* SPDX-License-Identifier: MIT */
/* Facts: what the ptrace manual page says of PTRACE_SEIZE, and of calls that are interrupted. */
#include "inject/crowd.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/registers.h"
#include "base/grow.h"
#include "inject/dispatch.h"
#include "inject/inject.h"
#include "inject/seccomp.h"
#include "inject/seize.h"
#include "os/monotonic.h"
#include "os/proc.h"

enum {
	STOP_LIMIT_NS = 1000000000,
	STOP_FIRST_NS = 50000000,
	STOP_ATTEMPTS = 6,
	BETWEEN_STOPS_NS = 5000000,
	TURN_POLL_NS = 200000,
	TURN_CHECK_NS = 20000000,
	TURN_RAN_MOST_NS = 100000000,
	CHOOSE_POLL_NS = 20000,
	OWN_TRACER_LIMIT_NS = 2000000000,
	CHOICES = 20
};

struct urgency urgency_begin(void)
{
	const struct sched_param first = {.sched_priority = 1};
	struct sched_param parameters = {.sched_priority = 0};
	sched_getparam(0, &parameters);
	struct urgency before = {.nice = getpriority(PRIO_PROCESS, 0),
				 .policy = sched_getscheduler(0),
				 .priority = parameters.sched_priority};
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) != 0)
		setpriority(PRIO_PROCESS, 0, -20);
	return before;
}

void urgency_end(const struct urgency *before)
{
	sched_setscheduler(0, before->policy, &(struct sched_param){.sched_priority = before->priority});
	setpriority(PRIO_PROCESS, 0, before->nice);
}

/* ---- tracing all threads ---- */

static struct stand *stand_of(struct crowd *crowd, pid_t tid)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		if (crowd->stands[i].tid == tid)
			return &crowd->stands[i];
	return NULL;
}

static bool stand_add(struct crowd *crowd, pid_t tid)
{
	if (!grow_by_one(crowd->stands, crowd->count, crowd->capacity))
		return false;
	crowd->stands[crowd->count++] = (struct stand){.tid = tid};
	return true;
}

/* A handler interrupts a call that begins anew as before. This is done as soon as the thread has stopped: it runs on
   without its tracer. */
void inject_avoid_restart(pid_t tid)
{
	struct user_regs_struct registers;
	if (!registers_read(tid, &registers) || registers_call(&registers) < 0 ||
	    registers_result(&registers) != RESTART_BLOCK || filter_allows_restart(tid))
		return;
	registers_set_result(&registers, RESTART_NO_HANDLER);
	registers_write(tid, &registers);
}

/* Detach from a stranger's thread, which runs on as it was. */
static void let_go_of_stranger(pid_t tid)
{
	int status;
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return;
	bool is_signal = status >> 16 == 0;
	inject_avoid_restart(tid);
	ptrace(PTRACE_DETACH, tid, 0, is_signal ? WSTOPSIG(status) : 0);
}

/* Return whether another thread of this process traces the thread. */
static bool is_traced_by_us(pid_t tid)
{
	char path[64];
	int64_t tracer = proc_status_value(tid, "TracerPid");
	snprintf(path, sizeof(path), "/proc/self/task/%d", (int)tracer);
	return tracer > 0 && access(path, F_OK) == 0;
}

/* Seize a thread. A tracing thread that reports its result releases its thread only when it ends, so wait for that.
   Return 0 or an errno. */
static int stand_seize(pid_t tid, struct seize_wait *wait)
{
	uint64_t until_ns = 0;
	bool is_ours = true;
	int error;
	while ((error = seize_thread(tid, PTRACE_O_TRACESYSGOOD, wait)) != 0) {
		if (error != EPERM || !is_ours)
			return error;
		until_ns = until_ns ? until_ns : monotonic_now_ns() + OWN_TRACER_LIMIT_NS;
		/* After the last look it may have been released: that attempt counts. */
		is_ours = is_traced_by_us(tid) && monotonic_now_ns() < until_ns;
		if (is_ours)
			monotonic_pause(CHOOSE_POLL_NS);
	}
	return 0;
}

/* Seize the threads that are not yet. *more: there were some. */
static int crowd_check(struct crowd *crowd, bool *more, struct diag *diag)
{
	DIR *tasks = opendir(proc_path(crowd->pid, "task").text);
	int error = 0;
	*more = false;
	if (!tasks)
		return inject_cannot_trace(crowd->pid, ESRCH, diag);
	for (struct dirent *entry; !error && (entry = readdir(tasks));) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid <= 0 || stand_of(crowd, tid))
			continue;
		int reason = stand_seize(tid, crowd->wait);
		if (!reason) {
			/* The number may be a stranger's by now: a traced thread does not leave the list. */
			if (faccessat(dirfd(tasks), entry->d_name, F_OK, 0) != 0) {
				let_go_of_stranger(tid);
				continue;
			}
			*more = true;
			error = stand_add(crowd, tid)
					? 0
					: diag_fail(diag, ENOMEM, "no memory for the threads of process %d",
						    (int)crowd->pid);
		} else if (reason != ESRCH || tid == crowd->pid) {
			/* A thread that ends now needs no tracing: the kernel refuses it, and it may have left the
			   list. A first thread that has ended stays in the list. */
			if (reason != EPERM ||
			    (!proc_has_ended(tid) && faccessat(dirfd(tasks), entry->d_name, F_OK, 0) == 0))
				error = inject_cannot_trace_thread(crowd->pid, tid, reason, diag);
		}
	}
	closedir(tasks);
	return error;
}

int crowd_seize(struct crowd *crowd, struct diag *diag)
{
	bool more = true;
	int error = 0;
	while (more && !error)
		error = crowd_check(crowd, &more, diag);
	if (!error && !crowd->count)
		error = inject_cannot_trace(crowd->pid, ESRCH, diag);
	return error;
}

/* Note a status from waitpid(). */
static void stand_note(struct stand *stand, int status)
{
	if (!WIFSTOPPED(status)) {
		stand->is_gone = true;
		return;
	}
	stand->is_stopped = true;
	if (status >> 16 == PTRACE_EVENT_STOP)
		stand->is_group_stop = WSTOPSIG(status) != SIGTRAP;
	else if (status >> 16 == 0)
		stand->signal = WSTOPSIG(status);
	if (!stand->is_group_stop)
		inject_avoid_restart(stand->tid);
}

/* Wait until a thread is stopped or gone. Return false if neither happens in time. */
static bool stand_wait(struct stand *stand, uint64_t until_ns)
{
	int status;
	for (unsigned round = 0; !stand->is_stopped && !stand->is_gone; round++) {
		pid_t got = waitpid(stand->tid, &status, __WALL | WNOHANG);
		if (got == stand->tid)
			stand_note(stand, status);
		else if (got < 0 && errno != EINTR)
			stand->is_gone = true;
		else if (monotonic_now_ns() > until_ns)
			return false;
		else if (round > 20)
			monotonic_pause(20000);
		else
			sched_yield();
	}
	return true;
}

/* Return whether the kernel does not restart this call when a stop has interrupted it. */
static bool is_not_restarted(uint64_t number)
{
	static const uint16_t numbers[] = {CPU_SYS_EPOLL_WAIT, SYS_epoll_pwait,     441 /* epoll_pwait2 */, SYS_semop,
					   SYS_semtimedop,     SYS_rt_sigtimedwait, SYS_recvfrom,           SYS_recvmsg,
					   SYS_accept,         SYS_accept4,         SYS_io_getevents};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

/* Make a thread repeat the call that only the tracer's stop has interrupted, as if nothing had happened. */
static void stand_rewind(struct stand *stand)
{
	struct user_regs_struct *registers = &stand->registers;
	if (stand->is_gone || !registers_read(stand->tid, registers))
		return;
	int64_t number = registers_call(registers);
	if (number < 0 || registers_result(registers) != -EINTR || stand->signal || !is_not_restarted((uint64_t)number))
		return;
	uint64_t pending = proc_status_mask(stand->tid, "SigPnd") | proc_status_mask(stand->tid, "ShdPnd");
	if (pending & ~proc_status_mask(stand->tid, "SigBlk"))
		return;
	errno = 0;
	long code = ptrace(PTRACE_PEEKTEXT, stand->tid, registers_pc(registers) - CPU_SYSCALL_BYTES, 0);
	if (errno || (code & 0xffff) != CPU_SYSCALL_CODE)
		return;
	registers_repeat_call(registers, number);
	registers_leave_call(registers);
	registers_write(stand->tid, registers);
}

/* Resume the thread, traced, with the signal that it was about to receive. */
void stand_go_on(struct stand *stand)
{
	if (stand->is_stopped && !stand->is_group_stop)
		stand_rewind(stand);
	if (stand->is_stopped && !stand->is_gone)
		ptrace(stand->is_group_stop ? PTRACE_LISTEN : PTRACE_CONT, stand->tid, 0,
		       stand->is_group_stop ? 0 : stand->signal);
	stand->is_stopped = stand->is_group_stop = false;
	stand->signal = 0;
}

void crowd_others_go_on(struct crowd *crowd, pid_t caller)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		if (crowd->stands[i].tid != caller)
			stand_go_on(&crowd->stands[i]);
}

void crowd_go_on(struct crowd *crowd)
{
	crowd_others_go_on(crowd, 0);
}

/* Read what a stopped thread has in its registers. */
static void stand_read(struct stand *stand)
{
	if (!stand->is_gone && !registers_read(stand->tid, &stand->registers))
		stand->is_gone = true;
}

void stand_interrupt(const struct stand *stand)
{
	if (!stand->is_stopped && !stand->is_gone)
		ptrace(PTRACE_INTERRUPT, stand->tid, 0, 0);
}

struct stand *crowd_next(struct crowd *crowd)
{
	int status;
	for (pid_t tid; (tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG)) > 0;) {
		struct stand *stand = stand_of(crowd, tid);
		if (!stand)
			continue;
		stand_note(stand, status);
		stand_read(stand);
		return stand;
	}
	return NULL;
}

/* Return until when threads may wait for a processor, from now on. */
static uint64_t turn_limit_ns(void)
{
	return monotonic_now_ns() + CROWD_TURN_LIMIT_S * UINT64_C(1000000000);
}

/* Return whether a thread only waits for its turn on a processor, or has stopped just now. One that has run since it
   was asked to stop, and has not stopped, is in a call that takes long. */
static bool stand_is_ready(const struct crowd *crowd, const struct stand *stand)
{
	char state = proc_state(stand->tid);
	return (state == 'R' || state == 't') &&
	       (!stand->is_late || proc_thread_ran_ns(crowd->pid, stand->tid) - stand->ran_ns < TURN_RAN_MOST_NS);
}

static int did_not_stop(const struct crowd *crowd, const struct stand *stand, struct diag *diag)
{
	if (stand_is_ready(crowd, stand))
		return diag_fail(diag, EBUSY,
				 "thread %d of process %d did not stop within %d seconds: it got no processor",
				 (int)stand->tid, (int)crowd->pid, CROWD_TURN_LIMIT_S);
	return diag_fail(diag, EBUSY,
			 "thread %d of process %d did not stop within a second (state %c: in vfork, or in an "
			 "uninterruptible call)",
			 (int)stand->tid, (int)crowd->pid, proc_state(stand->tid) ? proc_state(stand->tid) : '?');
}

/* Return 0, or -EBUSY: some threads are late. */
static int crowd_stop_within(struct crowd *crowd, uint64_t limit_ns, struct diag *diag)
{
	uint64_t until_ns = monotonic_now_ns() + limit_ns;
	for (bool more = true; more;) {
		for (uint32_t i = 0; i < crowd->count; i++)
			stand_interrupt(&crowd->stands[i]);
		for (uint32_t i = 0; i < crowd->count; i++)
			if (!stand_wait(&crowd->stands[i], until_ns))
				return did_not_stop(crowd, &crowd->stands[i], diag);
		int error = crowd_check(crowd, &more, diag);
		if (error)
			return error;
	}
	for (uint32_t i = 0; i < crowd->count; i++)
		stand_read(&crowd->stands[i]);
	return 0;
}

/* ---- threads that are late ---- */

/* Mark the threads that did not stop. Return how many. */
static uint32_t late_note(struct crowd *crowd)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		stand->is_late = !stand->is_stopped && !stand->is_gone;
		stand->ran_ns = stand->is_late ? proc_thread_ran_ns(crowd->pid, stand->tid) : 0;
		count += stand->is_late;
	}
	return count;
}

/* Return whether all late threads only wait for a processor. */
static bool late_are_ready(const struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->count; i++) {
		const struct stand *stand = &crowd->stands[i];
		if (stand->is_late && !stand->is_stopped && !stand->is_gone && !stand_is_ready(crowd, stand))
			return false;
	}
	return true;
}

/* Wait for `left` late threads, while the others run. Those that have had their turn stay stopped for the next attempt,
   but not for long: a process may have more late threads than get a turn in that time. Return false if a thread is late
   for another reason than that it has no processor. */
static bool late_wait(struct crowd *crowd, uint32_t left, uint64_t until_ns)
{
	uint64_t check_ns = 0, now_ns;
	while (left && (now_ns = monotonic_now_ns()) < until_ns) {
		struct stand *stand = crowd_next(crowd);
		if (stand && stand->is_late) {
			left--;
			until_ns = now_ns + STOP_LIMIT_NS < until_ns ? now_ns + STOP_LIMIT_NS : until_ns;
		} else if (stand) {
			stand_go_on(stand);
		} else if (now_ns < check_ns) {
			monotonic_pause(TURN_POLL_NS);
		} else if (late_are_ready(crowd)) {
			check_ns = now_ns + TURN_CHECK_NS;
		} else {
			return false;
		}
	}
	return true;
}

/* Stop with growing limits. Stopped threads do not wait long for one that does not stop: all run on for a moment, or
   until that thread has had its turn on a processor, and the next attempt gets more time. */
int crowd_stop_others(struct crowd *crowd, pid_t caller, struct diag *diag)
{
	uint64_t limit_ns = STOP_FIRST_NS, last_ns = turn_limit_ns();
	/* An attempt that failed before the last one is no reason of anything. */
	struct diag why = {""};
	int error = crowd_stop_within(crowd, limit_ns, &why);
	for (int attempt = 1; error == -EBUSY && attempt < STOP_ATTEMPTS && monotonic_now_ns() < last_ns;) {
		uint32_t late_count = late_note(crowd);
		crowd_others_go_on(crowd, caller);
		if (!late_wait(crowd, late_count, last_ns)) {
			crowd_wait(crowd, BETWEEN_STOPS_NS);
			attempt++;
		}
		limit_ns = limit_ns < STOP_LIMIT_NS / 2 ? 2 * limit_ns : STOP_LIMIT_NS;
		error = crowd_stop_within(crowd, limit_ns, &why);
	}
	if (!error)
		return 0;
	*diag = why;
	crowd_others_go_on(crowd, caller);
	return error;
}

int crowd_stop(struct crowd *crowd, struct diag *diag)
{
	return crowd_stop_others(crowd, 0, diag);
}

/* Do not just sleep: a traced thread stops for each of its signals and waits for its tracer. */
void crowd_wait(struct crowd *crowd, uint64_t ns)
{
	enum { POLL_NS = 500000 };
	uint64_t until_ns = monotonic_now_ns() + ns;
	for (uint64_t now = monotonic_now_ns(); now < until_ns; now = monotonic_now_ns()) {
		struct stand *stand = crowd_next(crowd);
		if (stand)
			stand_go_on(stand);
		else
			monotonic_pause(until_ns - now < POLL_NS ? until_ns - now : POLL_NS);
	}
}

void stand_leave(struct stand *stand)
{
	if (stand->is_gone)
		return;
	stand_rewind(stand);
	ptrace(PTRACE_DETACH, stand->tid, 0, stand->signal);
	stand->is_gone = true;
}

/* Forget the threads that are not traced any more. The others have been asked to stop. */
static void crowd_forget(struct crowd *crowd)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < crowd->count; i++)
		if (!crowd->stands[i].is_gone)
			crowd->stands[count++] = (struct stand){.tid = crowd->stands[i].tid};
	crowd->count = count;
}

void crowd_release(struct crowd *crowd, uint64_t limit_ns)
{
	/* Running threads must stop before the tracer can detach, each until that is seen; on a busy machine each needs
	   a processor for that. */
	enum { POLL_NS = 50000 };
	uint64_t until_ns = monotonic_now_ns() + limit_ns;
	uint32_t left = 0;
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		if (stand->is_stopped)
			stand_leave(stand);
		stand_interrupt(stand);
		left += !stand->is_gone;
	}
	while (left && monotonic_now_ns() < until_ns) {
		struct stand *stand = crowd_next(crowd);
		if (stand) {
			left--;
			stand_leave(stand);
		} else {
			monotonic_pause(POLL_NS);
		}
	}
	crowd_forget(crowd);
	crowd->has_moved = false;
}

void crowd_leave(struct crowd *crowd)
{
	crowd_release(crowd, CROWD_LEAVE_LIMIT_NS);
	free(crowd->stands);
	*crowd = (struct crowd){.pid = crowd->pid, .wait = crowd->wait};
}

/* ---- calls by one of them ---- */

/* Return whether the thread runs 64-bit code: elsewhere the bytes of the calls mean something else. */
static bool is_in_native_code(const struct stand *stand)
{
	struct user_regs_struct registers;
	return registers_read(stand->tid, &registers) && registers_are_native(&registers);
}

bool stand_can_call(const struct stand *stand, struct diag *diag)
{
	if (!stand->is_stopped || stand->is_gone || stand->signal || !is_in_native_code(stand) ||
	    filter_check(stand->tid, diag) != 0)
		return false;
	if (!stand->is_refused && dispatch_of(stand->tid) != DISPATCH_BLOCKS)
		return true;
	diag_fail(diag, EPERM,
		  "thread %d gets SIGSYS in place of the system calls that xheap needs "
		  "(PR_SET_SYSCALL_USER_DISPATCH)",
		  (int)stand->tid);
	return false;
}

/* Return a thread that was asked to stop and did not; NULL: there is none. */
static const struct stand *crowd_late(const struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		if (crowd->stands[i].is_late && !crowd->stands[i].is_stopped && !crowd->stands[i].is_gone)
			return &crowd->stands[i];
	return NULL;
}

static bool all_are_gone(const struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		if (!crowd->stands[i].is_gone)
			return false;
	return true;
}

static void stand_ask(const struct crowd *crowd, struct stand *stand)
{
	stand->is_late = true;
	stand->ran_ns = proc_thread_ran_ns(crowd->pid, stand->tid);
	stand_interrupt(stand);
}

/* Wait for a thread that was asked to stop and can make calls: it stops outside of a signal. Return it, or NULL if
   `until_ns` has passed or no such thread is left; `why` says why another one cannot. */
static struct stand *crowd_choose_until(struct crowd *crowd, uint64_t until_ns, struct diag *why)
{
	while (crowd_late(crowd) && monotonic_now_ns() < until_ns) {
		struct stand *stand = crowd_next(crowd);
		if (!stand) {
			monotonic_pause(CHOOSE_POLL_NS);
			continue;
		}
		if (stand_can_call(stand, why))
			return stand;
		bool has_signal = stand->signal != 0;
		stand->is_late = false;
		stand_go_on(stand);
		if (has_signal)
			stand_ask(crowd, stand);
	}
	return NULL;
}

/* Choose the first thread that stops soon: one after the other is asked to. If none does, choose the first of all that
   gets a processor to stop on. */
static struct stand *crowd_choose(struct crowd *crowd, struct diag *diag)
{
	uint64_t now_ns = monotonic_now_ns(), until_ns = now_ns + STOP_LIMIT_NS, last_ns = turn_limit_ns();
	struct stand *stand = NULL;
	struct diag why = {""};
	for (uint32_t i = 0; i < crowd->count && !stand; i++) {
		stand_ask(crowd, &crowd->stands[i]);
		now_ns = monotonic_now_ns();
		stand = stand_can_call(&crowd->stands[i], &why) ? &crowd->stands[i]
			: now_ns < until_ns ? crowd_choose_until(crowd, now_ns + STOP_LIMIT_NS / CHOICES, &why)
					    : NULL;
	}
	while (!stand && crowd_late(crowd) &&
	       (now_ns = monotonic_now_ns()) < (late_are_ready(crowd) ? last_ns : until_ns))
		stand = crowd_choose_until(crowd, now_ns + STOP_LIMIT_NS / CHOICES, &why);
	if (!stand && crowd_late(crowd))
		did_not_stop(crowd, crowd_late(crowd), diag);
	else if (!stand && all_are_gone(crowd))
		diag_fail(diag, ESRCH, "the threads of process %d have ended", (int)crowd->pid);
	else if (!stand && why.text[0])
		diag_fail(diag, EPERM, "%s", why.text);
	else if (!stand)
		diag_fail(diag, EBUSY, "no thread of process %d can be stopped in 64-bit code", (int)crowd->pid);
	return stand;
}

/* Have a stopped thread begin its calls. False: none of its calls would be made, or it cannot begin. */
static bool stand_begin_calls(struct stand *stand, struct remote *remote, struct diag *diag)
{
	if (!stand->is_group_stop)
		stand_rewind(stand);
	if (remote_begin_running(remote, stand->tid, diag) != 0)
		return false;
	stand->is_refused = dispatch_of(stand->tid) == DISPATCH_UNKNOWN && !remote_can_call(remote);
	if (stand->is_refused)
		remote_end(remote);
	return !stand->is_refused;
}

struct stand *calls_begin(struct crowd *crowd, struct remote *remote, struct diag *diag)
{
	struct stand *stand;
	for (uint32_t i = 0; i < crowd->count; i++)
		crowd->stands[i].is_refused = false;
	while ((stand = crowd_choose(crowd, diag)) && !stand_begin_calls(stand, remote, diag)) {
		if (!stand->is_group_stop)
			stand_go_on(stand);
		if (!stand->is_refused)
			return NULL;
	}
	return stand;
}

void calls_end(struct remote *remote, struct crowd *crowd, pid_t caller)
{
	struct stand *stand = stand_of(crowd, caller);
	remote_end(remote);
	/* A stopped process must not execute a single instruction for the logger. */
	if (!stand->is_group_stop)
		stand_go_on(stand);
	/* Threads that were asked to stop, too, and came later. */
	while ((stand = crowd_next(crowd)))
		stand_go_on(stand);
}

bool crowd_lets_recorder_call(const struct crowd *crowd)
{
	bool is_unknown = false;
	for (uint32_t i = 0; i < crowd->count; i++) {
		if (crowd->stands[i].is_gone)
			continue;
		enum dispatch dispatch = dispatch_of(crowd->stands[i].tid);
		is_unknown |= dispatch == DISPATCH_UNKNOWN;
		if (dispatch == DISPATCH_PASSES || dispatch == DISPATCH_BLOCKS ||
		    !filter_allows_recorder(crowd->stands[i].tid))
			return false;
	}
	/* Nobody can use the dispatch without a handler for the signal. */
	return !is_unknown || !(proc_status_mask(crowd->pid, "SigCgt") >> (SIGSYS - 1) & 1);
}
