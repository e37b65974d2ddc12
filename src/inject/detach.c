/* SPDX-License-Identifier: MIT */
/*
 * Detaching from a process that runs. Once no entry leads to the recorder's code, no thread enters it. A thread that
 * was seen outside stays outside, and one inside leaves as soon as it gets a processor, its lock, its memory.
 *
 *     the detaching thread                           threads of the process
 *     --------------------                           ----------------------
 *     crowd_seize()                                  run, traced
 *     crowd_stop()                                   all paused
 *     restore the entries; check threads for 1 ms
 *     crowd_go_on()                                  all run, and no entry leads to the recorder
 *     until each was seen outside, for at most 3 s
 *     (INJECT_BRIEF: one round):
 *         stacks_prepare(): maps, missing tables
 *         stand_interrupt() each one not seen outside
 *         check each that has stopped                paused one by one
 *           outside: detach from it, but for 3       run, untraced
 *           inside: resume it                        run, and leave the code in time
 *         wait for 1 ms, 2 ms, ... 50 ms
 *     all outside: calls_begin() by one of the 3     one paused, makes the calls
 *         restore the doors, unmap code and data
 *     otherwise: report what stays                   the code stays mapped, inactive
 *     crowd_leave()                                  run, untraced
 *
 * The detaching thread has a high priority only while threads are paused for it. Otherwise it would take processors
 * from the threads that it waits for.
 */
#include "inject/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject/jumps.h"
#include "inject/thread_stacks.h"
#include "os/join.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "recorder/recorder.h"

#define PATIENCE_NS UINT64_C(3000000000)
enum {
	STOP_LIMIT_NS = 200000000,
	END_LIMIT_NS = 1000000000,
	POLL_NS = 50000,
	LOOK_ALL_NS = 1000000,
	WAIT_FIRST_NS = 1000000,
	WAIT_LONGEST_NS = 50000000,
	CALLERS = 3
};

/* ---- patches ---- */

static bool patches_undo(int memory, const struct patches *patches, bool is_door)
{
	bool is_done = true;
	for (uint32_t i = 0; i < patches->count; i++)
		if (patches->items[i].is_door == is_door)
			is_done &= bytes_replace(memory, patches->items[i].address, patches->items[i].now,
						 patches->items[i].file, patches->items[i].size);
	return is_done;
}

/* ---- threads inside ---- */

struct clearing {
	struct crowd *crowd;
	struct stacks stacks;
	struct inject_pause *pause;
	uint32_t callers; /* threads outside that stay traced to make calls */
	uint32_t inside;
	pid_t tid; /* one of them */
	int memory;
	uint64_t start_at; /* address of the process's struct recorder_start; 0: none */
	bool is_kept;      /* entries that unwinders need are not restored */
};

/* Check whether a stopped thread is inside, and resume it. A thread outside is detached from, unless it may have to
   make calls. */
static void look(struct clearing *clearing, struct stand *stand)
{
	stand->is_awaited = false;
	stand->is_outside = !stacks_lead(&clearing->stacks, stand);
	struct diag ignored = {""};
	bool is_caller = stand->is_outside && clearing->callers < CALLERS && stand_can_call(stand, &ignored);
	clearing->callers += is_caller;
	if (stand->is_outside && !is_caller && !stand->is_group_stop)
		stand_leave(stand);
	else
		stand_go_on(stand);
}

static bool is_unknown(const struct stand *stand)
{
	return !stand->is_gone && !stand->is_outside;
}

/* Read what the process has noted of calls that are not on a stack, or that an exception may leave; zeros: nothing. */
static struct recorder_start start_of(const struct clearing *clearing)
{
	struct recorder_start start;
	if (!clearing->start_at || !remote_read(clearing->memory, clearing->start_at, &start, sizeof(start)))
		start = (struct recorder_start){0};
	return start;
}

static void start_note(const struct clearing *clearing, size_t field, uint32_t value)
{
	if (clearing->start_at)
		remote_write(clearing->memory, clearing->start_at + field, &value, sizeof(value));
}

/* Count the threads that were not seen outside yet. */
static void count_inside(struct clearing *clearing)
{
	/* The C library still runs initialisers, and will call main through the recorder's code. */
	clearing->inside = start_of(clearing).is_coming != 0;
	clearing->tid = clearing->crowd->pid;
	for (uint32_t i = 0; i < clearing->crowd->count; i++) {
		if (!is_unknown(&clearing->crowd->stands[i]))
			continue;
		clearing->inside++;
		clearing->tid = clearing->crowd->stands[i].tid;
	}
}

/* Check some of the paused threads now, since each would have to stop again. */
static void inspect_all(struct clearing *clearing)
{
	uint64_t until_ns = monotonic_now_ns() + LOOK_ALL_NS;
	for (uint32_t i = 0; i < clearing->crowd->count && monotonic_now_ns() < until_ns; i++)
		if (is_unknown(&clearing->crowd->stands[i]))
			look(clearing, &clearing->crowd->stands[i]);
}

/* Stop each thread that was not seen outside yet, check it and resume it, in the order in which they stop. A thread
   that does not stop in time is checked in a later round. */
static void inspect_each(struct clearing *clearing)
{
	struct crowd *crowd = clearing->crowd;
	uint32_t awaited = 0;
	struct urgency before = urgency_begin();
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct stand *stand = &crowd->stands[i];
		stand->is_awaited = is_unknown(stand);
		awaited += stand->is_awaited;
		if (stand->is_awaited)
			stand_interrupt(stand);
	}
	uint64_t now_ns = monotonic_now_ns(), until_ns = now_ns + STOP_LIMIT_NS, none_ns = now_ns;
	for (; awaited && now_ns < until_ns; now_ns = monotonic_now_ns()) {
		struct stand *stand = crowd_next(crowd);
		if (!stand) {
			monotonic_pause(POLL_NS);
			none_ns = monotonic_now_ns();
			continue;
		}
		awaited -= stand->is_awaited;
		if (stand->is_awaited && !stand->is_gone)
			look(clearing, stand);
		else
			stand_go_on(stand);
		/* It was not stopped yet when the last search found none. */
		uint64_t took_ns = monotonic_now_ns() - none_ns;
		clearing->pause->one_ns = took_ns > clearing->pause->one_ns ? took_ns : clearing->pause->one_ns;
	}
	urgency_end(&before);
}

/* ---- unmapping ---- */

/* Unmap by calls of a thread that is still traced; if all of those have ended, of another one. */
static int crowd_unmap(struct crowd *crowd, const struct originals *originals, const struct pieces *pieces,
		       struct diag *diag)
{
	struct remote remote;
	struct diag ignored = {""};
	struct stand *stand = calls_begin(crowd, &remote, &ignored);
	if (!stand) {
		crowd_release(crowd, CROWD_LEAVE_LIMIT_NS);
		*diag = (struct diag){""};
		stand = crowd_seize(crowd, diag) == 0 ? calls_begin(crowd, &remote, diag) : NULL;
	}
	if (!stand)
		return -EBUSY;
	pid_t caller = stand->tid;
	originals->close(originals);
	pieces_unmap(pieces, &remote);
	calls_end(&remote, crowd, caller);
	return 0;
}

/* Return whether the address space is gone, with all that was mapped there: the process has ended, or executes another
   image. Wait while it is about to end. */
static bool memory_is_gone(int memory, pid_t pid, uint64_t address)
{
	unsigned char byte;
	ssize_t got;
	uint64_t until_ns = monotonic_now_ns() + END_LIMIT_NS;
	while ((got = pread(memory, &byte, sizeof(byte), (off_t)address)) != 0 && proc_is_ending(pid) &&
	       monotonic_now_ns() < until_ns)
		monotonic_pause(POLL_NS);
	return got == 0;
}

/* Pause all threads while the original bytes are written. */
static int crowd_write(struct clearing *clearing, const struct originals *originals, struct diag *diag)
{
	struct inject_pause *pause = clearing->pause;
	struct urgency before = urgency_begin();
	uint64_t began_ns = monotonic_now_ns();
	int error = crowd_stop(clearing->crowd, diag);
	/* A new handler may throw: its exception must pass the frames of the recorder. */
	clearing->is_kept = start_of(clearing).handling != 0;
	if (!error && !clearing->is_kept)
		start_note(clearing, offsetof(struct recorder_start, is_over), 1);
	if (!error && originals->knows_unwinders)
		start_note(clearing, offsetof(struct recorder_start, is_closed), 1);
	if (!error && !originals->write(originals, !clearing->is_kept))
		error = diag_fail(diag, EIO, "the code of process %d cannot be written", (int)clearing->crowd->pid);
	pause->thread_count = clearing->crowd->count;
	if (!error)
		inspect_all(clearing);
	crowd_go_on(clearing->crowd);
	pause->all_ns += monotonic_now_ns() - began_ns;
	urgency_end(&before);
	return error;
}

/* Wait until all threads were seen outside. */
static void crowd_wait_outside(struct clearing *clearing, enum inject_patience patience)
{
	uint64_t until_ns = monotonic_now_ns() + (patience == INJECT_PATIENT ? PATIENCE_NS : 0),
		 wait_ns = WAIT_FIRST_NS;
	bool has_inspected = false;
	for (count_inside(clearing); clearing->inside; count_inside(clearing)) {
		/* The first round shows which tables are missing; then the next one needs no wait. */
		bool is_wanting = clearing->stacks.unwinding.is_wanting;
		if (has_inspected && !is_wanting && monotonic_now_ns() >= until_ns)
			break;
		if (has_inspected && !is_wanting) {
			crowd_wait(clearing->crowd, wait_ns);
			wait_ns = 2 * wait_ns < WAIT_LONGEST_NS ? 2 * wait_ns : WAIT_LONGEST_NS;
		}
		stacks_prepare(&clearing->stacks);
		inspect_each(clearing);
		has_inspected = true;
	}
}

/* Restore the entries that unwinders need, after all threads were seen outside. No other entry leads there, so no frame
   is left that an exception could pass; if one has left such a frame, it is still counted. */
static void crowd_write_kept(struct clearing *clearing, const struct originals *originals,
			     enum inject_patience patience)
{
	struct diag ignored = {""};
	if (!start_of(clearing).is_closed)
		return;
	start_note(clearing, offsetof(struct recorder_start, handling), 0);
	crowd_release(clearing->crowd, CROWD_LEAVE_LIMIT_NS);
	clearing->callers = 0;
	if (crowd_seize(clearing->crowd, &ignored) != 0 || crowd_write(clearing, originals, &ignored) != 0)
		clearing->is_kept = true;
	else
		crowd_wait_outside(clearing, patience);
}

int crowd_clear(struct crowd *crowd, int memory, const struct originals *originals, const struct pieces *pieces,
		enum inject_patience patience, struct inject_pause *pause, struct inject_rest *rest, struct diag *diag)
{
	const struct places places = {.ranges = pieces->item, .range_count = pieces->code_count};
	struct clearing clearing = {
		.crowd = crowd,
		.pause = pause,
		.memory = memory,
		.start_at = pieces->list_at ? pieces->list_at + offsetof(struct recorder_mappings, start) : 0};
	struct diag why = {""};
	*rest = (struct inject_rest){.bytes = 0};
	stacks_init(&clearing.stacks, crowd->pid, memory, &places, false);
	stacks_prepare(&clearing.stacks);
	int error = originals->write ? crowd_write(&clearing, originals, diag) : 0;
	if (!error && pieces->code_count)
		crowd_wait_outside(&clearing, patience);
	if (!error && clearing.is_kept && !clearing.inside)
		crowd_write_kept(&clearing, originals, patience);
	stacks_fini(&clearing.stacks);
	if (error)
		return error;
	clearing.inside += clearing.is_kept && !clearing.inside;
	if (clearing.inside)
		*rest = (struct inject_rest){
			.bytes = pieces->bytes, .thread_count = clearing.inside, .tid = clearing.tid};
	else if (pieces->count && crowd_unmap(crowd, originals, pieces, &why) != 0 &&
		 !memory_is_gone(memory, crowd->pid, pieces->item[0].low))
		*rest = (struct inject_rest){.bytes = pieces->bytes};
	snprintf(rest->why, sizeof(rest->why), "%.*s", (int)sizeof(rest->why) - 1, why.text);
	return 0;
}

/* ---- detaching ---- */

static int memory_open(pid_t pid, struct diag *diag)
{
	int memory = proc_open(pid, "mem", O_RDWR);
	return memory >= 0 ? memory : inject_cannot_trace(pid, errno == ENOENT ? ESRCH : errno, diag);
}

static bool own_originals_write(const struct originals *base, bool for_unwinders)
{
	const struct own_originals *originals = (const struct own_originals *)base;
	const struct inject *inject = originals->inject, *own = originals->own;
	return jumps_undo(originals->memory, inject->jump, inject->jump_count, for_unwinders) &&
	       (!own || jumps_undo(originals->memory, own->jump, own->jump_count, for_unwinders));
}

static void own_originals_close(const struct originals *base)
{
	const struct own_originals *originals = (const struct own_originals *)base;
	inject_close_doors(originals->inject, originals->memory);
}

void own_originals_init(struct own_originals *originals, int memory, const struct inject *inject,
			const struct inject *own)
{
	*originals = (struct own_originals){{own_originals_write, true, own_originals_close}, memory, inject, own};
}

static int detach(struct inject_detaching *detaching, struct crowd *crowd, int memory, struct diag *diag)
{
	struct own_originals originals;
	struct pieces pieces;
	struct proc_map *maps = NULL;
	int count = proc_read_maps(detaching->pid, &maps);
	own_originals_init(&originals, memory, detaching->inject, detaching->own);
	pieces_of(&pieces, detaching->own ? detaching->own : detaching->inject, maps, count);
	free(maps);
	return crowd_clear(crowd, memory, &originals.base, &pieces, detaching->patience, &detaching->pause,
			   &detaching->rest, diag);
}

struct file_originals {
	struct originals base;
	int memory;
	struct patches patches;
};

/* It is not known which ones unwinders need: all or none. */
static bool file_originals_write(const struct originals *base, bool for_unwinders)
{
	const struct file_originals *originals = (const struct file_originals *)base;
	return !for_unwinders || patches_undo(originals->memory, &originals->patches, false);
}

static void file_originals_close(const struct originals *base)
{
	const struct file_originals *originals = (const struct file_originals *)base;
	patches_undo(originals->memory, &originals->patches, true);
}

int crowd_remove(struct crowd *crowd, int memory, uint64_t inode, enum inject_patience patience,
		 struct inject_pause *pause, struct inject_rest *rest, struct diag *diag)
{
	struct pieces pieces;
	struct file_originals originals = {.base = {file_originals_write, false, file_originals_close},
					   .memory = memory};
	struct proc_map *maps = NULL;
	struct diag why = {""};
	int count = proc_read_maps(crowd->pid, &maps), error = 0;
	*rest = (struct inject_rest){.bytes = 0};
	if (pieces_find(&pieces, memory, maps, count, inode)) {
		error = patches_find(&originals.patches, crowd->pid, memory, &pieces, maps, count, &why);
		if (!originals.patches.count)
			originals.base.write = NULL;
		if (error)
			diag_fail(diag, -error,
				  "process %d has inactive code of an earlier recording, which cannot be removed: %s",
				  (int)crowd->pid, why.text);
		else
			error = crowd_clear(crowd, memory, &originals.base, &pieces, patience, pause, rest, diag);
		pause->has_removed = !error && !rest->bytes;
	}
	free(originals.patches.items);
	free(maps);
	return error;
}

struct run {
	struct inject_detaching *detaching;
	struct diag *diag;
	int error;
};

/* Detach by a thread of its own: a traced thread that does not stop in time cannot be resumed and would be stopped for
   ever. The kernel resumes it when its tracer ends. */
static void *detach_run(void *argument)
{
	struct run *run = argument;
	struct inject_detaching *detaching = run->detaching;
	struct crowd crowd = {.pid = detaching->pid, .wait = detaching->wait};
	int memory = memory_open(detaching->pid, run->diag);
	run->error = memory < 0 ? memory : crowd_seize(&crowd, run->diag);
	if (!run->error)
		run->error = detaching->inject ? detach(detaching, &crowd, memory, run->diag)
					       : crowd_remove(&crowd, memory, detaching->inode, detaching->patience,
							      &detaching->pause, &detaching->rest, run->diag);
	crowd_leave(&crowd);
	if (memory >= 0)
		close(memory);
	return NULL;
}

int inject_detach(struct inject_detaching *detaching, struct diag *diag)
{
	enum { MEANWHILE_NS = 2000000 };
	struct run run = {.detaching = detaching, .diag = diag};
	pthread_t thread;
	detaching->pause = (struct inject_pause){0};
	detaching->rest = (struct inject_rest){.bytes = 0};
	if (pthread_create(&thread, NULL, detach_run, &run) != 0)
		return diag_fail(diag, EAGAIN, "cannot start a thread to detach from process %d", (int)detaching->pid);
	while (detaching->meanwhile && !join_within(thread, MEANWHILE_NS))
		detaching->meanwhile(detaching->cookie);
	if (!detaching->meanwhile)
		pthread_join(thread, NULL);
	return run.error;
}
