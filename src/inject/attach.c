/* SPDX-License-Identifier: MIT */
/*
 * Attaching to a process that runs:
 *
 *     1. All threads are traced; one of them makes calls that map recorder and region.
 *     2. They run untraced while the stubs are written.
 *     3. All are traced again and paused; the place of each is checked; entries are patched; all run on.
 *
 * A thread whose program counter is on the bytes of a patch is moved to the same instruction of the copy. A thread
 * whose stack has an address of such bytes (a signal handler interrupted it there) cannot be moved: then all run for a
 * moment, and step 3 is repeated. Every wait has an end, and after any failure all threads run on as they were.
 *
 * The loader reports changes of the images from step 3 on. A change between step 2 and step 3 is seen in the maps while
 * all threads are paused: then all run, the new images are read, and step 3 is repeated. In a process that always loads
 * and unloads libraries, they are read during the pause; and so is one that was not as in its file, since the one that
 * was there may have been replaced twice.
 */
#include "arch/registers.h"
#include "base/order.h"
#include "inject/inject.h"
#include "inject/program.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "inject/crowd.h"
#include "inject/detach.h"
#include "inject/jumps.h"
#include "inject/patches.h"
#include "inject/remote.h"
#include "inject/thread_stacks.h"
#include "os/clock.h"
#include "os/monotonic.h"
#include "os/proc.h"

enum { ATTEMPTS = 20, ATTEMPTS_TO_READ_IMAGES = 3, WAIT_FIRST_NS = 2000000, WAIT_LONGEST_NS = 50000000 };

COMPARE_BY(jump_compare, struct inject_jump, address)

/* Move the threads whose program counter is in a patch. Return false if one cannot be moved now. */
static bool crowd_move(struct crowd *crowd, struct stacks *stacks)
{
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		const struct inject_jump *jump =
			stand->is_gone ? NULL : stacks_jump_around(&stacks->places, registers_pc(&stand->registers));
		/* A thread at a patch is moved, and returns there only if its stack says so. */
		if (!stand->is_gone && stacks_lead_back(stacks, stand))
			return false;
		if (jump && jump->offsets[registers_pc(&stand->registers) - jump->address] < 0)
			return false;
	}
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		const struct inject_jump *jump =
			stand->is_gone ? NULL : stacks_jump_around(&stacks->places, registers_pc(&stand->registers));
		if (!jump)
			continue;
		registers_set_pc(&stand->registers,
				 jump->moved +
					 (uint64_t)jump->offsets[registers_pc(&stand->registers) - jump->address]);
		crowd->has_moved = true;
		if (!registers_write(stand->tid, &stand->registers))
			return false;
	}
	return true;
}

/* Make calls by one thread, which is paused for them. */
static int crowd_call(struct crowd *crowd, int (*call)(struct remote *remote, void *cookie), void *cookie,
		      struct inject_pause *pause, struct diag *diag)
{
	struct remote remote;
	struct urgency before = urgency_begin();
	uint64_t began_ns = monotonic_now_ns();
	struct stand *stand = calls_begin(crowd, &remote, diag);
	pid_t caller = stand ? stand->tid : 0;
	int error = stand ? call(&remote, cookie) : -EBUSY;
	if (stand)
		calls_end(&remote, crowd, caller);
	pause->one_ns += monotonic_now_ns() - began_ns;
	urgency_end(&before);
	return error;
}

static int call_to_leave_out_of_cores(struct remote *remote, void *cookie)
{
	inject_leave_out_of_cores(cookie, remote);
	return 0;
}

/* ---- patching ---- */

/* The work on the entries while all threads are paused. */
struct patching {
	struct inject *inject;
	struct stacks stacks;
	uint32_t stale_count; /**< attempts that found other images than those that were read */
	bool is_stale;        /**< the last attempt did */
	bool is_certain;      /**< the images were read while all threads were paused */
	bool is_done;
};

/* Read the images anew. No thread is in the recorder. */
static void images_read(struct patching *patching)
{
	struct inject *inject = patching->inject;
	inject_refresh(inject, inject->pid, 0, clock_event_ticks());
	inject_push_images(inject);
	qsort(inject->jump, inject->jump_count, sizeof(*inject->jump), jump_compare);
	stacks_set_jumps(&patching->stacks, inject->jump, inject->jump_count);
	patching->is_stale = false;
}

/* Pause all threads, and patch the entries if no thread and no change of the images prevents it. The threads stay
   paused. */
static int crowd_patch_once(struct crowd *crowd, struct patching *patching, struct diag *diag)
{
	struct inject *inject = patching->inject;
	int error = crowd_stop(crowd, diag);
	if (error)
		return error;
	patching->is_stale = !inject_is_current(inject);
	patching->stale_count += patching->is_stale;
	bool is_doubtful = inject->is_doubtful && !patching->is_certain;
	if (patching->is_stale ? patching->stale_count > ATTEMPTS_TO_READ_IMAGES : is_doubtful) {
		images_read(patching);
		patching->is_certain = true;
		stacks_prepare(&patching->stacks);
	}
	/* Filters may have come since; those that come later are seen by the patches. */
	if (!inject->no_syscalls && !crowd_lets_recorder_call(crowd))
		inject_forbid_syscalls(inject);
	patching->is_done = !patching->is_stale && crowd_move(crowd, &patching->stacks);
	if (patching->is_done && !jumps_write(inject->memory, inject->jump, inject->jump_count))
		return diag_fail(diag, EBUSY, "the code of process %d has just changed, or cannot be written",
				 (int)crowd->pid);
	if (patching->is_done)
		patches_check_words(inject);
	return 0;
}

static int crowd_patch(struct crowd *crowd, struct inject *inject, struct inject_pause *pause, struct diag *diag)
{
	const struct places places = {.jumps = inject->jump, .jump_count = inject->jump_count};
	struct patching patching = {.inject = inject};
	uint64_t wait_ns = WAIT_FIRST_NS;
	int error = 0;
	stacks_init(&patching.stacks, crowd->pid, inject->memory, &places, true);
	for (int attempt = 0; attempt < ATTEMPTS && !patching.is_done && !error; attempt++) {
		if (patching.is_stale) {
			struct diag ignored = {""};
			images_read(&patching);
			patching.is_certain = false;
			crowd_call(crowd, call_to_leave_out_of_cores, inject, pause, &ignored);
		} else if (attempt) {
			crowd_wait(crowd, wait_ns);
		}
		wait_ns = attempt && 2 * wait_ns < WAIT_LONGEST_NS ? 2 * wait_ns : wait_ns;
		stacks_prepare(&patching.stacks);
		struct urgency before = urgency_begin();
		uint64_t began_ns = monotonic_now_ns();
		error = crowd_patch_once(crowd, &patching, diag);
		if (!patching.is_done || error)
			crowd_go_on(crowd);
		pause->thread_count = crowd->count;
		pause->all_ns += monotonic_now_ns() - began_ns;
		urgency_end(&before);
	}
	stacks_fini(&patching.stacks);
	if (!patching.is_done && !error)
		error = diag_fail(diag, EBUSY, "process %d always has a thread where an entry would be patched",
				  (int)crowd->pid);
	return error;
}

/* ---- attaching ---- */

struct placing {
	struct inject *inject;
	struct crowd *crowd;
	const char *region_path;
	struct inject_pause *pause;
	struct diag *diag;
};

/* While the region's file is open in the process, none of its threads may take a copy of the descriptor. */
struct exclusive_crowd {
	struct crowd *crowd;
	struct inject *inject;
	pid_t caller;
	struct inject_pause *pause;
	struct urgency before;
	uint64_t began_ns;
};

static int exclusive_begin(void *cookie, struct diag *diag)
{
	struct exclusive_crowd *exclusive = cookie;
	exclusive->before = urgency_begin();
	exclusive->began_ns = monotonic_now_ns();
	int error = crowd_stop_others(exclusive->crowd, exclusive->caller, diag);
	if (!error)
		exclusive->inject->no_syscalls = !crowd_lets_recorder_call(exclusive->crowd);
	return error;
}

static void exclusive_end(void *cookie)
{
	struct exclusive_crowd *exclusive = cookie;
	crowd_others_go_on(exclusive->crowd, exclusive->caller);
	exclusive->pause->all_ns += monotonic_now_ns() - exclusive->began_ns;
	urgency_end(&exclusive->before);
}

static int place_map(struct remote *remote, void *cookie)
{
	const struct placing *placing = cookie;
	struct exclusive_crowd cookie_alone = {
		.crowd = placing->crowd, .inject = placing->inject, .caller = remote->pid, .pause = placing->pause};
	const struct inject_exclusive exclusive = {exclusive_begin, exclusive_end, &cookie_alone};
	return inject_map(placing->inject, remote, placing->crowd->pid, proc_stack_start(placing->crowd->pid),
			  placing->region_path, &exclusive, placing->diag);
}

static int place_settle(struct remote *remote, void *cookie)
{
	const struct placing *placing = cookie;
	inject_settle(placing->inject, remote);
	return 0;
}

/* Do everything but the patches. Slow work is done while no thread is traced: a traced thread that gets a signal would
   be paused. */
static int crowd_place(struct crowd *crowd, struct inject *inject, const char *region_path, struct inject_pause *pause,
		       struct diag *diag)
{
	struct placing placing = {inject, crowd, region_path, pause, diag};
	int error = crowd_call(crowd, place_map, &placing, pause, diag);
	if (error)
		return error;
	crowd_release(crowd, CROWD_LEAVE_LIMIT_NS);
	inject_fill(inject);
	qsort(inject->jump, inject->jump_count, sizeof(*inject->jump), jump_compare);
	error = crowd_seize(crowd, diag);
	if (!error)
		error = crowd_call(crowd, place_settle, &placing, pause, diag);
	if (!error)
		inject_begin(inject);
	return error;
}

/* Return whether Valgrind runs the process: it translates code before execution, into memory that it plans by
   itself. */
static bool is_run_by_valgrind(pid_t pid)
{
	char path[PATH_MAX];
	proc_image(pid, path, sizeof(path));
	return fnmatch("*/valgrind/*-linux", path, 0) == 0;
}

/* Check, without touching the process, that one of its threads may be able to make calls: the filters of a thread can
   be read once it is traced, with the privilege for that. In strict mode a thread may not even read the clock. */
static int check_filters(pid_t pid, struct diag *diag)
{
	bool is_strict = false, has_free = geteuid() == 0;
	DIR *tasks = opendir(proc_path(pid, "task").text);
	for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
		int64_t mode = entry->d_name[0] != '.' ? proc_status_value((pid_t)atoi(entry->d_name), "Seccomp") : -1;
		is_strict |= mode == SECCOMP_MODE_STRICT;
		has_free |= mode == SECCOMP_MODE_DISABLED;
	}
	if (tasks)
		closedir(tasks);
	if (!is_strict && (has_free || proc_status_value(pid, "Seccomp") <= 0))
		return 0;
	return diag_fail(diag, EPERM,
			 "process %d has a seccomp filter, which could end it for a call that xheap needs%s", (int)pid,
			 is_strict ? "" : "; root can read what it allows");
}

/* Return whether the process has a program. One that executes another program right now has none for a moment, until
   the kernel has laid out its stack. Older kernels do not say of their own threads that they are such. */
static bool has_program(pid_t pid)
{
	enum { EXEC_MS = 2000, UNKNOWN_MS = 50 };
	int64_t is_kernels = proc_status_value(pid, "Kthread");
	uint64_t until_ns =
		monotonic_now_ns() + (uint64_t)(is_kernels == 0 ? EXEC_MS : UNKNOWN_MS) * (NS_PER_S / 1000);
	bool is_there = false;
	while (is_kernels <= 0 && !(is_there = proc_auxv(pid, AT_PHDR)) && !proc_has_ended(pid) &&
	       monotonic_now_ns() < until_ns)
		monotonic_pause(NS_PER_S / 1000);
	return is_there;
}

int inject_check(pid_t pid, struct diag *diag)
{
	/* The kernel asks for this what it asks for tracing. */
	int memory = proc_open(pid, "mem", O_RDWR);
	if (memory < 0)
		return inject_cannot_trace(pid, errno == ENOENT ? ESRCH : errno, diag);
	close(memory);
	if (proc_status_value(pid, "TracerPid") > 0)
		return inject_cannot_trace(pid, EPERM, diag);
	int error = check_filters(pid, diag);
	if (error)
		return error;
	struct diag why = {""};
	error = program_check(pid, &why);
	if (error)
		return diag_fail(diag, -error, "process %d cannot be traced: %s", (int)pid, why.text);
	bool is_there = has_program(pid);
	if (!is_there && proc_has_ended(pid))
		return inject_cannot_trace(pid, ESRCH, diag);
	if (!is_there)
		return diag_fail(diag, ENOEXEC, "process %d has no program", (int)pid);
	if (is_run_by_valgrind(pid))
		return diag_fail(diag, ENOTSUP,
				 "process %d is run by Valgrind, which translates its code: it cannot be patched",
				 (int)pid);
	return 0;
}

/* Prepare the walk over the heaps while all threads are paused. */
static void walk_prepare(struct heapwalk *walk, const struct crowd *crowd, const struct inject *inject)
{
	*walk = (struct heapwalk){
		.pid = crowd->pid, .has_odd_heaps = inject->no_arenas, .has_no_heap = !inject->has_allocator};
	walk->threads = calloc(crowd->count, sizeof(*walk->threads));
	for (uint32_t i = 0; walk->threads && i < crowd->count; i++)
		if (!crowd->stands[i].is_gone)
			walk->threads[walk->thread_count++] = (struct heapwalk_thread){
				.tid = crowd->stands[i].tid,
				.pointer = registers_thread_pointer(&crowd->stands[i].registers)};
	for (uint32_t i = 0; i < inject->image_count; i++) {
		const struct inject_image *image = &inject->image[i];
		if (image->has_glibc) {
			walk->base = image->base;
			walk->end = image->end;
			walk->file = image->file;
		} else if (image->has_other) {
			const char *path = region_file(inject->region, image->file)->path, *slash = strrchr(path, '/');
			snprintf(walk->other, sizeof(walk->other), "%.*s", (int)sizeof(walk->other) - 1,
				 slash ? slash + 1 : path);
		}
	}
}

/* Remove the remains of an earlier recording. If a thread is still in that code, no second recording is put beside
   it. */
static int rest_remove(struct crowd *crowd, struct inject_pause *pause, struct diag *diag)
{
	struct inject_rest rest;
	int memory = proc_open(crowd->pid, "mem", O_RDWR);
	if (memory < 0)
		return inject_cannot_trace(crowd->pid, errno == ENOENT ? ESRCH : errno, diag);
	int error = crowd_remove(crowd, memory, 0, INJECT_PATIENT, pause, &rest, diag);
	close(memory);
	if (error || !rest.bytes)
		return error;
	if (!rest.thread_count)
		return diag_fail(diag, EBUSY,
				 "process %d: the remains of an earlier recording cannot be removed: %.150s",
				 (int)crowd->pid, rest.why);
	return diag_fail(diag, EBUSY,
			 "thread %d of process %d is still in the inactive code of an earlier recording, or may return "
			 "to it; the code stays mapped until the thread has left it",
			 (int)rest.tid, (int)crowd->pid);
}

/* Undo an attach. Nothing is patched, so no thread must be waited for, except one that may still be in the copy of an
   entry. */
static void attach_undo(struct crowd *crowd, struct inject *inject, struct inject_pause *pause)
{
	struct pieces pieces;
	struct inject_rest rest;
	struct diag ignored = {""};
	struct own_originals originals;
	struct proc_map *maps = NULL;
	/* The next attach finds what cannot be removed now. */
	__atomic_store_n(&inject->region->header->state, REGION_DETACHED, __ATOMIC_RELEASE);
	crowd_go_on(crowd);
	int count = inject->island_count ? proc_read_maps(crowd->pid, &maps) : 0;
	pieces_of(&pieces, inject, maps, count);
	free(maps);
	if (!crowd->has_moved)
		pieces.code_count = 0;
	own_originals_init(&originals, inject->memory, inject, NULL);
	originals.base.write = NULL;
	crowd_clear(crowd, inject->memory, &originals.base, &pieces, INJECT_PATIENT, pause, &rest, &ignored);
}

/* Attach to the traced crowd. */
static int attach(struct inject *inject, struct crowd *crowd, const char *region_path, struct inject_pause *pause,
		  struct diag *diag)
{
	int error = crowd_place(crowd, inject, region_path, pause, diag);
	/* One that has not begun has no more than its loader yet. */
	if (!error && !inject->has_allocator && (inject->is_static || !inject->jump_count))
		error = diag_fail(diag, ENOEXEC, "process %d has no allocator that can be hooked%s%s", (int)crowd->pid,
				  inject->refused ? ": " : "", inject->refusal);
	if (error)
		return error;
	return crowd_patch(crowd, inject, pause, diag);
}

static int attach_by_this_thread(struct inject *inject, pid_t pid, struct region *region, const char *region_path,
				 struct inject_pause *pause, struct heapwalk *walk, struct diag *diag)
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
	error = crowd_seize(&crowd, diag);
	if (!error)
		error = rest_remove(&crowd, pause, diag);
	/* Threads that were looked at are not traced any more. */
	if (!error && pause->has_removed) {
		crowd_release(&crowd, CROWD_LEAVE_LIMIT_NS);
		error = crowd_seize(&crowd, diag);
	}
	if (!error) {
		error = attach(inject, &crowd, region_path, pause, diag);
		inject->is_gathering = false;
		if (error)
			attach_undo(&crowd, inject, pause);
		else
			walk_prepare(walk, &crowd, inject);
	}
	crowd_leave(&crowd);
	if (error)
		inject_fini(inject);
	return error;
}

struct attaching {
	struct inject *inject;
	pid_t pid;
	struct region *region;
	const char *region_path;
	struct inject_pause *pause;
	struct heapwalk *walk;
	struct diag *diag;
	int error;
};

static void *attach_run(void *argument)
{
	struct attaching *attaching = argument;
	attaching->error =
		attach_by_this_thread(attaching->inject, attaching->pid, attaching->region, attaching->region_path,
				      attaching->pause, attaching->walk, attaching->diag);
	return NULL;
}

/* Attach by a thread of its own, so that no thread stays traced when it ends: not even one that did not stop for the
   detach. */
int inject_attach(struct inject *inject, pid_t pid, struct region *region, const char *region_path,
		  struct inject_pause *pause, struct heapwalk *walk, struct diag *diag)
{
	struct attaching attaching = {inject, pid, region, region_path, pause, walk, diag, 0};
	pthread_t thread;
	if (pthread_create(&thread, NULL, attach_run, &attaching) != 0)
		return diag_fail(diag, EAGAIN, "cannot start a thread to attach to process %d", (int)pid);
	pthread_join(thread, NULL);
	return attaching.error;
}
