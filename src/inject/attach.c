/* SPDX-License-Identifier: MIT */
/*
 * Into a process that runs, and out of it:
 *
 *     seize all threads; one stands and maps recorder and region by calls of ours, writes stubs; the others go on
 *     all stand; where each is, is looked at; entries are patched; all go on
 *
 * A thread that stands on the bytes of a patch is moved to the same instruction of the copy. One whose stack holds an address of such bytes
 * (a signal handler interrupted it there) cannot be: then all go on for a moment, and it is tried again. Every wait has an end, and
 * whatever fails, all threads go on as they were. Facts: what the ptrace manual page says of PTRACE_SEIZE, and of calls that are interrupted.
 */
#include "inject/inject.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/filter.h"
#include "inject/remote.h"
#include "os/moment.h"
#include "os/proc.h"
#include "recorder/recorder.h"

enum { STOP_LIMIT_NS = 1000000000, ATTEMPTS = 20, BETWEEN_ATTEMPTS_NS = 2000000, SCAN_BYTES_MAX = 1 << 20, SCAN_CHUNK = 1 << 14, SYSCALL_BYTES = 2 };

struct stand {
	pid_t tid;
	bool is_stopped, is_gone, is_group_stop;
	int signal;                   /* that was on its way to it */
	struct user_regs_struct registers;
};

/* The threads of a process that this one traces. */
struct crowd {
	pid_t pid;
	struct stand *stands;
	uint32_t count, capacity;
	bool has_moved;               /* one of them to the copy of an entry */
};

/* Whoever stands should not stand longer because others run: this thread comes before all of them, as far as it may. */
struct urgency { int nice, policy; struct sched_param parameters; };

static struct urgency urgency_begin(void)
{
	const struct sched_param first = {.sched_priority = 1};
	struct urgency before = {.nice = getpriority(PRIO_PROCESS, 0), .policy = sched_getscheduler(0)};
	sched_getparam(0, &before.parameters);
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) != 0)
		setpriority(PRIO_PROCESS, 0, -20);
	return before;
}

static void urgency_end(const struct urgency *before)
{
	sched_setscheduler(0, before->policy, &before->parameters);
	setpriority(PRIO_PROCESS, 0, before->nice);
}

/* ---- tracing all of them ---- */

static struct stand *stand_of(struct crowd *crowd, pid_t tid)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		if (crowd->stands[i].tid == tid)
			return &crowd->stands[i];
	return NULL;
}

static bool stand_add(struct crowd *crowd, pid_t tid)
{
	if (crowd->count == crowd->capacity) {
		uint32_t capacity = crowd->capacity ? crowd->capacity * 2 : 16;
		struct stand *larger = realloc(crowd->stands, capacity * sizeof(*larger));
		if (!larger)
			return false;
		crowd->stands = larger;
		crowd->capacity = capacity;
	}
	crowd->stands[crowd->count++] = (struct stand){.tid = tid};
	return true;
}

/* What kernel.yama.ptrace_scope forbids, and what to do. */
static const char *const yama_scopes[] = {
	[1] = "it lets only its ancestors and whom it names itself; start it by xheap, or run xheap as root, or, as root, "
	      "sysctl kernel.yama.ptrace_scope=0 allows it for processes of one's own",
	[2] = "only root may; run xheap as root, or, as root, sysctl kernel.yama.ptrace_scope=0 allows it for processes of one's own",
	[3] = "nobody may, until the machine has been started anew with a smaller value",
};

/* The scope by which Yama forbids a process to us; 0: something else does. */
static unsigned yama_forbids(pid_t pid)
{
	enum { ALL = 3 };
	char path[40];
	struct stat status;
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	unsigned scope = file ? (unsigned)(fgetc(file) - '0') : 0;
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	bool is_own = stat(path, &status) == 0 && status.st_uid == geteuid() && geteuid() != 0;
	return scope <= ALL && (is_own || scope == ALL) ? scope : 0;
}

int inject_cannot_trace(pid_t pid, int error, struct diag *diag)
{
	int64_t tracer = proc_status_value(pid, "TracerPid");
	if (error == ESRCH)
		return diag_fail(diag, ESRCH, "there is no process %d", (int)pid);
	if (tracer > 0)
		return diag_fail(diag, EPERM, "process %d is traced by process %d (a debugger?) already", (int)pid, (int)tracer);
	if (error != EPERM && error != EACCES)
		return diag_fail(diag, error, "process %d cannot be traced: %s", (int)pid, strerror(error));
	unsigned scope = yama_forbids(pid);
	if (scope)
		return diag_fail(diag, EPERM, "process %d may not be traced: kernel.yama.ptrace_scope is %u: %s", (int)pid, scope, yama_scopes[scope]);
	return diag_fail(diag, EPERM, "process %d may not be traced: it is another user's, or has privileges of its own", (int)pid);
}

/* Seize the threads that are not yet. *more: there were some. */
static int crowd_look(struct crowd *crowd, bool *more, struct diag *diag)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)crowd->pid);
	DIR *tasks = opendir(path);
	int error = 0;
	*more = false;
	if (!tasks)
		return inject_cannot_trace(crowd->pid, ESRCH, diag);
	for (struct dirent *entry; !error && (entry = readdir(tasks));) {
		pid_t tid = (pid_t)atoi(entry->d_name);
		if (tid <= 0 || stand_of(crowd, tid))
			continue;
		if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) == 0) {
			*more = true;
			error = stand_add(crowd, tid) ? 0 : diag_fail(diag, ENOMEM, "no memory for the threads of process %d", (int)crowd->pid);
		} else if (errno != ESRCH || tid == crowd->pid) {
			/* A thread that ends meanwhile is none; a first thread that has ended stays in the list. */
			if (errno != EPERM || !proc_has_ended(tid))
				error = inject_cannot_trace(crowd->pid, errno, diag);
		}
	}
	closedir(tasks);
	return error;
}

static int crowd_seize(struct crowd *crowd, struct diag *diag)
{
	bool more = true;
	int error = 0;
	while (more && !error)
		error = crowd_look(crowd, &more, diag);
	if (!error && !crowd->count)
		error = inject_cannot_trace(crowd->pid, ESRCH, diag);
	return error;
}

/* What waitpid() said of it. */
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
}

/* Wait until it stands, or is gone. False: it did not come to that. */
static bool stand_wait(struct stand *stand, uint64_t until_ns)
{
	int status;
	for (unsigned round = 0; !stand->is_stopped && !stand->is_gone; round++) {
		pid_t got = waitpid(stand->tid, &status, __WALL | WNOHANG);
		if (got == stand->tid)
			stand_note(stand, status);
		else if (got < 0 && errno != EINTR)
			stand->is_gone = true;
		else if (moment_now_ns() > until_ns)
			return false;
		else if (round > 20)
			moment_pause(20000);
		else
			sched_yield();
	}
	return true;
}

/* Calls that the kernel does not begin again by itself when a stop has interrupted them. */
static bool is_not_restarted(uint64_t number)
{
	static const uint16_t numbers[] = {SYS_epoll_wait, SYS_epoll_pwait, 441 /* epoll_pwait2 */, SYS_semop, SYS_semtimedop, SYS_rt_sigtimedwait,
					   SYS_recvfrom, SYS_recvmsg, SYS_accept, SYS_accept4, SYS_io_getevents};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

/* Interrupted by our stop alone: it makes its call again, as if nothing had been. */
static void stand_rewind(struct stand *stand)
{
	struct user_regs_struct *registers = &stand->registers;
	if (stand->is_gone || ptrace(PTRACE_GETREGS, stand->tid, 0, registers) != 0)
		return;
	if ((int64_t)registers->orig_rax < 0 || (int64_t)registers->rax != -EINTR || stand->signal || !is_not_restarted(registers->orig_rax))
		return;
	uint64_t pending = proc_status_mask(stand->tid, "SigPnd") | proc_status_mask(stand->tid, "ShdPnd");
	if (pending & ~proc_status_mask(stand->tid, "SigBlk"))
		return;
	errno = 0;
	long code = ptrace(PTRACE_PEEKTEXT, stand->tid, registers->rip - SYSCALL_BYTES, 0);
	if (errno || (code & 0xffff) != 0x050f)
		return;
	registers->rax = registers->orig_rax;
	registers->rip -= SYSCALL_BYTES;
	registers->orig_rax = (unsigned long long)-1;
	ptrace(PTRACE_SETREGS, stand->tid, 0, registers);
}

/* Let it go on under our eyes, with the signal that it was to get. */
static void stand_go_on(struct stand *stand)
{
	if (stand->is_stopped && !stand->is_group_stop)
		stand_rewind(stand);
	if (stand->is_stopped && !stand->is_gone)
		ptrace(stand->is_group_stop ? PTRACE_LISTEN : PTRACE_CONT, stand->tid, 0, stand->is_group_stop ? 0 : stand->signal);
	stand->is_stopped = stand->is_group_stop = false;
	stand->signal = 0;
}

static void crowd_go_on(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		stand_go_on(&crowd->stands[i]);
}

/* All threads stand, those too that began meanwhile. */
static int crowd_stop(struct crowd *crowd, struct diag *diag)
{
	uint64_t until_ns = moment_now_ns() + STOP_LIMIT_NS;
	for (bool more = true; more;) {
		for (uint32_t i = 0; i < crowd->count; i++)
			if (!crowd->stands[i].is_stopped && !crowd->stands[i].is_gone)
				ptrace(PTRACE_INTERRUPT, crowd->stands[i].tid, 0, 0);
		for (uint32_t i = 0; i < crowd->count; i++)
			if (!stand_wait(&crowd->stands[i], until_ns))
				return diag_fail(diag, EBUSY, "thread %d of process %d did not stop within a second (in vfork, or in an uninterruptible call)",
						 (int)crowd->stands[i].tid, (int)crowd->pid);
		int error = crowd_look(crowd, &more, diag);
		if (error)
			return error;
	}
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		if (!stand->is_gone && ptrace(PTRACE_GETREGS, stand->tid, 0, &stand->registers) != 0)
			stand->is_gone = true;
	}
	return 0;
}

static void crowd_leave(struct crowd *crowd)
{
	/* Those that still run have to stand to be let go. */
	uint64_t until_ns = moment_now_ns() + STOP_LIMIT_NS;
	for (uint32_t i = 0; i < crowd->count; i++)
		if (!crowd->stands[i].is_stopped && !crowd->stands[i].is_gone)
			ptrace(PTRACE_INTERRUPT, crowd->stands[i].tid, 0, 0);
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		if (!stand->is_gone && stand_wait(stand, until_ns) && !stand->is_gone) {
			stand_rewind(stand);
			ptrace(PTRACE_DETACH, stand->tid, 0, stand->signal);
		}
	}
	free(crowd->stands);
	*crowd = (struct crowd){.pid = 0};
}

/* ---- where threads are ---- */

static int jump_compare(const void *a, const void *b)
{
	const struct inject_jump *left = a, *right = b;
	return (left->address > right->address) - (left->address < right->address);
}

/* The entry whose patch covers the address, but not as its first byte. */
static const struct inject_jump *jump_around(const struct inject_jump *jumps, uint32_t count, uint64_t address)
{
	uint32_t low = 0, high = count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (jumps[middle].address + HOOK_PATCH_BYTES <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && address > jumps[low].address ? &jumps[low] : NULL;
}

/* The process's mappings, as they were just before it stood. */
struct mappings { struct proc_map *items; int count; };

/* The mapping around an address; NULL: there is none. */
static const struct proc_map *mapping_at(const struct mappings *mappings, uint64_t address)
{
	for (int i = 0; i < mappings->count; i++)
		if (address >= mappings->items[i].low && address < mappings->items[i].high)
			return &mappings->items[i];
	return NULL;
}

/* Where a thread's stack ends with the thread's own block. Its mapping may go on behind that: since glibc 2.42 stacks that lie side by side are
 * one to the kernel. 0: it runs on no such stack. */
static uint64_t own_block(const struct stand *stand, const struct proc_map *map)
{
	uint64_t block = stand->registers.fs_base;
	return block > stand->registers.rsp && block < map->high ? block : 0;
}

/* How far the stack goes, as far as that is known. */
static uint64_t stack_end(const struct stand *stand, const struct mappings *mappings)
{
	uint64_t sp = stand->registers.rsp;
	const struct proc_map *map = mapping_at(mappings, sp);
	if (!map)
		return sp + SCAN_CHUNK;
	uint64_t block = own_block(stand, map), end = block ? block : map->high;
	return end - sp < SCAN_BYTES_MAX ? end : sp + SCAN_BYTES_MAX;
}

/* Addresses that nobody may come back to: within patches, or code of ours. */
struct places {
	const struct inject_jump *jumps; /* by address; NULL: those of inject's memory are meant */
	uint32_t count;
	const struct inject *inject;
};

static bool is_in_places(const struct places *places, uint64_t address)
{
	if (places->jumps)
		return jump_around(places->jumps, places->count, address) != NULL;
	return inject_has_code(places->inject, address);
}

static void places_bounds(const struct places *places, uint64_t *lowest, uint64_t *highest)
{
	*lowest = places->jumps ? places->jumps[0].address : UINT64_MAX;
	*highest = places->jumps ? places->jumps[places->count - 1].address + HOOK_PATCH_BYTES : 0;
	for (uint32_t i = 0; !places->jumps && i < places->inject->island_count; i++) {
		const struct inject_island *island = &places->inject->island[i];
		*lowest = island->low <= *lowest ? island->low - 1 : *lowest;
		*highest = island->high > *highest ? island->high : *highest;
	}
}

/* Whether the stack from here on says that somebody will come back there. */
static bool stack_leads_to(const struct stand *stand, int memory, const struct places *places, const struct mappings *mappings)
{
	uint64_t words[SCAN_CHUNK / sizeof(uint64_t)], at = stand->registers.rsp & ~7ull, lowest, highest;
	places_bounds(places, &lowest, &highest);
	for (uint64_t end = stack_end(stand, mappings); at < end; at += sizeof(words)) {
		ssize_t got = pread(memory, words, end - at < sizeof(words) ? end - at : sizeof(words), (off_t)at);
		for (ssize_t i = 0; i < got / (ssize_t)sizeof(*words); i++)
			if (words[i] > lowest && words[i] < highest && is_in_places(places, words[i]))
				return true;
		if (got < (ssize_t)sizeof(words))
			return false; /* the stack's mapping ends here */
	}
	return false;
}

/* Move those that stand in a patch. False: one cannot be moved now. */
static bool crowd_move(struct crowd *crowd, int memory, const struct inject_jump *jumps, uint32_t count, const struct mappings *mappings)
{
	const struct places places = {.jumps = jumps, .count = count};
	for (uint32_t i = 0; i < crowd->count; i++)
		if (!crowd->stands[i].is_gone && stack_leads_to(&crowd->stands[i], memory, &places, mappings))
			return false;
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		const struct inject_jump *jump = stand->is_gone ? NULL : jump_around(jumps, count, stand->registers.rip);
		if (!jump)
			continue;
		int16_t offset = jump->offsets[stand->registers.rip - jump->address];
		if (offset < 0)
			return false;
		stand->registers.rip = jump->moved + (uint64_t)offset;
		crowd->has_moved = true;
		if (ptrace(PTRACE_SETREGS, stand->tid, 0, &stand->registers) != 0)
			return false;
	}
	return true;
}

/* ---- patching ---- */

enum direction { IN, OUT };

/* Write all or none: what is there has to be what is expected. */
static bool jumps_write(int memory, const struct inject_jump *jumps, uint32_t count, enum direction direction)
{
	unsigned char now[HOOK_PATCH_BYTES];
	for (uint32_t i = 0; direction == IN && i < count; i++)
		if (!remote_read(memory, jumps[i].address, now, sizeof(now)) || memcmp(now, jumps[i].original, sizeof(now)) != 0)
			return false;
	for (uint32_t i = 0; i < count; i++) {
		const unsigned char *bytes = direction == IN ? jumps[i].jump : jumps[i].original;
		/* An image that is gone, or was patched by somebody else since, is left alone. */
		if (direction == OUT && (!remote_read(memory, jumps[i].address, now, sizeof(now)) || memcmp(now, jumps[i].jump, sizeof(now)) != 0))
			continue;
		if (remote_write(memory, jumps[i].address, bytes, HOOK_PATCH_BYTES) || direction == OUT)
			continue;
		while (i-- > 0)
			remote_write(memory, jumps[i].address, jumps[i].original, HOOK_PATCH_BYTES);
		return false;
	}
	return true;
}

/* All stand; patch; and let them go on under our eyes. */
static int crowd_patch(struct crowd *crowd, const struct inject *inject, const struct mappings *mappings, struct inject_pause *pause,
		       struct diag *diag)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		uint64_t began_ns = moment_now_ns();
		int error = crowd_stop(crowd, diag);
		if (error)
			return error;
		bool is_clear = crowd_move(crowd, inject->memory, inject->jump, inject->jump_count, mappings);
		if (is_clear && !jumps_write(inject->memory, inject->jump, inject->jump_count, IN))
			return diag_fail(diag, EBUSY, "the code of process %d is not as it was a moment before, or cannot be written", (int)crowd->pid);
		pause->thread_count = crowd->count;
		pause->all_ns = moment_now_ns() - began_ns;
		if (is_clear)
			return 0;
		crowd_go_on(crowd);
		moment_pause(BETWEEN_ATTEMPTS_NS);
	}
	return diag_fail(diag, EBUSY, "process %d always has a thread where an entry would be patched", (int)crowd->pid);
}

/* ---- taking out what was mapped ---- */

/* Whether the thread runs on its own stack, all of which from here on is known: the first thread's, or one that ends with the thread's own block. */
static bool is_on_own_stack(const struct stand *stand, const struct mappings *mappings)
{
	const struct proc_map *map = mapping_at(mappings, stand->registers.rsp);
	uint64_t end = !map ? 0 : !strcmp(map->path, "[stack]") ? map->high : own_block(stand, map);
	return end && end - stand->registers.rsp <= SCAN_BYTES_MAX;
}

/* Whether no thread is in code of ours, or will come back to it. Who cannot tell is in it. */
static bool crowd_is_outside(const struct crowd *crowd, int memory, const struct inject *inject, const struct mappings *mappings)
{
	const struct places places = {.inject = inject};
	for (uint32_t i = 0; i < crowd->count; i++) {
		const struct stand *stand = &crowd->stands[i];
		if (!stand->is_gone && (!is_on_own_stack(stand, mappings) || is_in_places(&places, stand->registers.rip) ||
					stack_leads_to(stand, memory, &places, mappings)))
			return false;
	}
	return true;
}

/* A thread of a 64-bit program may be in 32-bit code (emulators of other systems do that), where instructions of ours mean something else. */
static bool is_in_64_bit_code(const struct stand *stand)
{
	struct user_regs_struct registers;
	uint64_t own;
	__asm__("mov %%cs, %0" : "=r"(own));
	return ptrace(PTRACE_GETREGS, stand->tid, 0, &registers) == 0 && registers.cs == own;
}

/* All stand, and nobody is inside: what was mapped goes. */
static void crowd_unmap(struct crowd *crowd, const struct inject *inject)
{
	struct diag ignored = {""};
	struct remote remote;
	struct stand *stand = NULL;
	for (uint32_t i = 0; i < crowd->count && !stand; i++)
		if (!crowd->stands[i].is_gone && !crowd->stands[i].signal && !crowd->stands[i].is_group_stop && is_in_64_bit_code(&crowd->stands[i]))
			stand = &crowd->stands[i];
	if (!stand || (proc_status_value(stand->tid, "Seccomp") > 0 && filter_check(stand->tid, &ignored) != 0))
		return;
	stand_rewind(stand);
	if (remote_begin_running(&remote, stand->tid, &ignored) != 0)
		return;
	inject_unmap(inject, &remote);
	remote_end(&remote);
}

static void pause_note(struct inject_pause *pause, uint64_t began_ns)
{
	uint64_t took_ns = moment_now_ns() - began_ns;
	pause->all_ns = took_ns > pause->all_ns ? took_ns : pause->all_ns;
}

/* Threads leave code of ours by themselves, since nobody enters it any more; what they left on their stacks is written over. */
static void crowd_clear(struct crowd *crowd, int memory, const struct inject *inject, const struct mappings *mappings, uint64_t *began_ns,
			struct inject_pause *pause)
{
	struct diag ignored = {""};
	for (int attempt = 0; !crowd_is_outside(crowd, memory, inject, mappings); attempt++) {
		if (attempt == ATTEMPTS)
			return;
		pause_note(pause, *began_ns);
		crowd_go_on(crowd);
		moment_pause(BETWEEN_ATTEMPTS_NS);
		*began_ns = moment_now_ns();
		if (crowd_stop(crowd, &ignored) != 0)
			return;
	}
	crowd_unmap(crowd, inject);
}

/* ---- attaching ---- */

/* A thread that stands, not for a signal, to make calls. */
static struct stand *crowd_choose_within(struct crowd *crowd, uint64_t limit_ns)
{
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		for (int attempt = 0; attempt < ATTEMPTS && !stand->is_gone; attempt++) {
			ptrace(PTRACE_INTERRUPT, stand->tid, 0, 0);
			if (!stand_wait(stand, moment_now_ns() + limit_ns))
				break;
			if (stand->is_stopped && !stand->signal && is_in_64_bit_code(stand))
				return stand;
			stand_go_on(stand);
		}
	}
	return NULL;
}

/* The first that stops soon; on a machine with more to do than it can, a thread has to wait for its turn to stop. */
static struct stand *crowd_choose(struct crowd *crowd)
{
	struct stand *stand = crowd_choose_within(crowd, STOP_LIMIT_NS / ATTEMPTS);
	return stand ? stand : crowd_choose_within(crowd, STOP_LIMIT_NS);
}

/* Begin to make calls by one of the threads. */
static struct stand *calls_begin(struct crowd *crowd, struct remote *remote, struct diag *diag)
{
	struct stand *stand = crowd_choose(crowd);
	if (!stand) {
		diag_fail(diag, EBUSY, "no thread of process %d can be stopped in 64-bit code", (int)crowd->pid);
		return NULL;
	}
	if (!stand->is_group_stop)
		stand_rewind(stand);
	if (proc_status_value(stand->tid, "Seccomp") > 0 && filter_check(stand->tid, diag) != 0)
		return NULL;
	return remote_begin_running(remote, stand->tid, diag) ? NULL : stand;
}

static void calls_end(struct remote *remote, struct stand *stand)
{
	remote_end(remote);
	/* A stopped process does not run a single instruction because of us. */
	if (!stand->is_group_stop)
		stand_go_on(stand);
}

/* Everything but the patches. What takes time is done while nobody stands. */
static int crowd_place(struct crowd *crowd, struct inject *inject, const char *region_path, struct inject_pause *pause, struct diag *diag)
{
	struct remote remote;
	uint64_t began_ns = moment_now_ns();
	struct stand *stand = calls_begin(crowd, &remote, diag);
	if (!stand)
		return -EBUSY;
	int error = inject_map(inject, &remote, crowd->pid, proc_stack_start(crowd->pid), region_path, diag);
	calls_end(&remote, stand);
	pause->one_ns = moment_now_ns() - began_ns;
	if (error)
		return error;
	inject_fill(inject);
	began_ns = moment_now_ns();
	stand = calls_begin(crowd, &remote, diag);
	if (!stand)
		return -EBUSY;
	inject_settle(inject, &remote);
	calls_end(&remote, stand);
	pause->one_ns += moment_now_ns() - began_ns;
	inject_begin(inject);
	return 0;
}

/* Valgrind translates what a program's code is when it comes to it, into memory that it plans by itself. */
static bool is_run_by_valgrind(pid_t pid)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	return fnmatch("*/valgrind/*-linux", path, 0) == 0;
}

int inject_check(pid_t pid, struct diag *diag)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	/* The kernel asks for this what it asks for tracing. */
	int memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		return inject_cannot_trace(pid, errno == ENOENT ? ESRCH : errno, diag);
	close(memory);
	if (proc_status_value(pid, "TracerPid") > 0)
		return inject_cannot_trace(pid, EPERM, diag);
	/* What a filter allows can be read once the process is traced, by who may. */
	int64_t seccomp = proc_status_value(pid, "Seccomp");
	if (seccomp > 0 && (seccomp != SECCOMP_MODE_FILTER || geteuid() != 0))
		return diag_fail(diag, EPERM, "process %d has a seccomp filter, by which a call of ours could end it%s", (int)pid,
				 seccomp == SECCOMP_MODE_FILTER ? "; root may see what it allows" : "");
	struct diag why = {""};
	int error = hook_inspect_running(pid, &why);
	if (error)
		return diag_fail(diag, -error, "process %d cannot be traced: %s", (int)pid, why.text);
	if (proc_status_value(pid, "Kthread") > 0 || !proc_auxv(pid, AT_PHDR))
		return diag_fail(diag, ENOEXEC, "process %d has no program", (int)pid);
	if (is_run_by_valgrind(pid))
		return diag_fail(diag, ENOTSUP, "process %d is run by Valgrind, which translates its code: it cannot be patched", (int)pid);
	return 0;
}

/* What a walk of the heaps needs, while all stand. */
static void walk_prepare(struct walk *walk, const struct crowd *crowd, const struct inject *inject)
{
	*walk = (struct walk){.pid = crowd->pid, .has_odd_heaps = inject->no_arenas};
	walk->threads = calloc(crowd->count, sizeof(*walk->threads));
	for (uint32_t i = 0; walk->threads && i < crowd->count; i++)
		if (!crowd->stands[i].is_gone)
			walk->threads[walk->thread_count++] = (struct walk_thread){.tid = crowd->stands[i].tid, .pointer = crowd->stands[i].registers.fs_base};
	for (uint32_t i = 0; i < inject->image_count; i++) {
		const struct inject_image *image = &inject->image[i];
		if (image->has_glibc) {
			walk->base = image->base;
			walk->end = image->end;
			walk->image = image->index;
		} else if (image->has_other) {
			const char *path = region_image(inject->region, image->index)->path, *slash = strrchr(path, '/');
			snprintf(walk->other, sizeof(walk->other), "%.*s", (int)sizeof(walk->other) - 1, slash ? slash + 1 : path);
		}
	}
}

/* Nothing is patched, so nobody has to stand for it, but for one who may be in the copy of an entry still. */
static void attach_undo(struct crowd *crowd, const struct inject *inject, struct inject_pause *pause)
{
	struct diag ignored = {""};
	struct mappings mappings = {NULL, 0};
	struct remote remote;
	uint64_t began_ns = moment_now_ns();
	crowd_go_on(crowd);
	struct stand *stand = inject->island_count && !crowd->has_moved ? calls_begin(crowd, &remote, &ignored) : NULL;
	if (stand) {
		inject_unmap(inject, &remote);
		calls_end(&remote, stand);
	} else if (crowd->has_moved && crowd_stop(crowd, &ignored) == 0) {
		mappings.count = proc_read_maps(crowd->pid, &mappings.items);
		crowd_clear(crowd, inject->memory, inject, &mappings, &began_ns, pause);
	}
	free(mappings.items);
}

int inject_attach(struct inject *inject, pid_t pid, struct region *region, const char *region_path, struct inject_pause *pause, struct walk *walk,
		  struct diag *diag)
{
	struct crowd crowd = {.pid = pid};
	*pause = (struct inject_pause){0};
	inject->region = region;
	inject->memory = -1;
	inject->is_gathering = true;
	int error = inject_check(pid, diag);
	if (error)
		return error;
	inject_prepare(inject, pid);
	struct urgency before = urgency_begin();
	error = crowd_seize(&crowd, diag);
	if (!error)
		error = crowd_place(&crowd, inject, region_path, pause, diag);
	/* One that has not begun has no more than its loader yet. */
	if (!error && !inject->has_allocator && (inject->is_static || !inject->jump_count))
		error = diag_fail(diag, ENOEXEC, "process %d has no allocator that can be hooked%s%s", (int)pid, inject->refused ? ": " : "", inject->refusal);
	if (!error) {
		qsort(inject->jump, inject->jump_count, sizeof(*inject->jump), jump_compare);
		struct mappings mappings = {NULL, 0};
		mappings.count = proc_read_maps(pid, &mappings.items);
		error = crowd_patch(&crowd, inject, &mappings, pause, diag);
		free(mappings.items);
	}
	inject->is_gathering = false;
	if (error)
		attach_undo(&crowd, inject, pause);
	else
		walk_prepare(walk, &crowd, inject);
	crowd_leave(&crowd);
	urgency_end(&before);
	if (error)
		inject_fini(inject);
	return error;
}

/* ---- detaching ---- */

static int detach(const struct inject *inject, const struct inject *own, pid_t pid, struct inject_pause *pause, struct diag *diag)
{
	struct crowd crowd = {.pid = pid};
	*pause = (struct inject_pause){0};
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	int memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		return inject_cannot_trace(pid, errno == ENOENT ? ESRCH : errno, diag);
	struct mappings mappings = {NULL, 0};
	mappings.count = proc_read_maps(pid, &mappings.items);
	struct urgency before = urgency_begin();
	int error = crowd_seize(&crowd, diag);
	uint64_t began_ns = moment_now_ns();
	if (!error)
		error = crowd_stop(&crowd, diag);
	if (!error) {
		jumps_write(memory, inject->jump, inject->jump_count, OUT);
		if (own)
			jumps_write(memory, own->jump, own->jump_count, OUT);
		crowd_clear(&crowd, memory, own ? own : inject, &mappings, &began_ns, pause);
	}
	pause_note(pause, began_ns);
	pause->thread_count = crowd.count;
	crowd_leave(&crowd);
	urgency_end(&before);
	free(mappings.items);
	close(memory);
	return error;
}

struct detaching {
	const struct inject *inject, *own;
	pid_t pid;
	struct inject_pause *pause;
	struct diag *diag;
	int error;
};

static void *detach_run(void *argument)
{
	struct detaching *detaching = argument;
	detaching->error = detach(detaching->inject, detaching->own, detaching->pid, detaching->pause, detaching->diag);
	return NULL;
}

/* Who does not stop cannot be let go of, and would stand for ever when it does: the kernel lets go of it when the thread that traces it ends. */
int inject_detach(const struct inject *inject, const struct inject *own, pid_t pid, struct inject_pause *pause, struct diag *diag)
{
	struct detaching detaching = {inject, own, pid, pause, diag, 0};
	pthread_t thread;
	if (pthread_create(&thread, NULL, detach_run, &detaching) != 0)
		return diag_fail(diag, EAGAIN, "no thread to let go of process %d with", (int)pid);
	pthread_join(thread, NULL);
	return detaching.error;
}
