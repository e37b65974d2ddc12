/* SPDX-License-Identifier: MIT */
/** Who calls: from the fs base to the thread's state, without a system call. */
#ifndef XHEAP_RECORDER_THREAD_H
#define XHEAP_RECORDER_THREAD_H

#include "base/hash.h"
#include "recorder/recorder.h"
#include "recorder/sys.h"

/** The slow way: a thread (or, after a fork, a process) not seen yet. NULL: it runs untraced. */
struct thread *thread_create(struct recorder *recorder, uint64_t fs_base);

/** Wait until the logger has met this process, of this row, in another pid namespace: once the process has ended, nobody
    knows its pid there. Not for long. */
void process_wait_for_meeting(struct recorder *recorder, struct region_process *row);

/** Make room for four times as many frames as before, for RECORDER_DEPTH_MAX at most. Return 0 when there is no memory
    or the limit is reached. */
int thread_grow(struct thread *thread);

/** State for calls of signal handlers; NULL when there is no memory. */
struct signal_stream *thread_signal_stream(struct thread *thread);

static inline uint32_t thread_hash(uint64_t fs_base)
{
	return hash_bits(fs_base, RECORDER_THREAD_TABLE_BITS);
}

/** The calling thread's state where it is at hand, else NULL. */
static inline __attribute__((always_inline)) struct thread *thread_at_hand(struct recorder *recorder, uint64_t fs_base)
{
	const struct thread_place *place = &recorder->fork_wiped->threads[thread_hash(fs_base)];
	struct thread *thread = place->thread;
	return LIKELY(place->fs_base == fs_base &&
		      thread->tid_word == *(const uint32_t *)(fs_base + recorder->tid_offset))
		       ? thread
		       : 0;
}

/** The calling thread's state; made at its first call. */
static inline struct thread *thread_current(struct recorder *recorder)
{
	uint64_t fs_base = cpu_thread_pointer();
	struct thread *thread = thread_at_hand(recorder, fs_base);
	return LIKELY(thread) ? thread : thread_create(recorder, fs_base);
}

#endif
