/* SPDX-License-Identifier: MIT */
/** The calling thread: from the fs base to the thread's state, without a system call. */
#ifndef XHEAP_RECORDER_THREAD_H
#define XHEAP_RECORDER_THREAD_H

#include "base/hash.h"
#include "recorder/recorder.h"
#include "recorder/sys.h"

/** Make the state of a thread (or, after a fork, of a process) that is new. Return NULL if it runs untraced. */
struct thread *thread_create(struct recorder *recorder, uint64_t fs_base);

/** Wait until the logger has found this process, of this row, in another pid namespace: once the process has ended, its
    pid in the logger's namespace cannot be known. The wait is short. */
void process_wait_for_meeting(struct recorder *recorder, struct region_process *row);

/** Return zeroed memory of the target's own, which is never freed; NULL without memory. */
void *thread_memory(struct recorder *recorder, uint64_t bytes);

/** Make room for four times as many frames, RECORDER_DEPTH_MAX at most. Return 0 without memory or at the limit. */
int thread_grow(struct thread *thread);

/** Return the state for calls of signal handlers; NULL without memory. */
struct signal_stream *thread_signal_stream(struct thread *thread);

/** Return the place of an fs base in the table of threads. */
static inline uint32_t thread_hash(uint64_t fs_base)
{
	return hash_bits(fs_base, RECORDER_THREAD_TABLE_BITS);
}

/** Return the calling thread's state if the table has it at its place, else NULL. */
static inline __attribute__((always_inline)) struct thread *thread_at_hand(struct recorder *recorder, uint64_t fs_base)
{
	const struct thread_place *place = &recorder->fork_wiped->threads[thread_hash(fs_base)];
	struct thread *thread = LOAD_FOLDED(&place->thread);
	return LIKELY(LOAD_FOLDED(&place->fs_base) == fs_base &&
		      thread->tid_word == *(const uint32_t *)(fs_base + LOAD_FOLDED(&recorder->tid_offset)))
		       ? thread
		       : 0;
}

/** Return the calling thread's state, which its first call makes; NULL if it runs untraced. */
static inline struct thread *thread_current(struct recorder *recorder)
{
	uint64_t fs_base = cpu_thread_pointer();
	struct thread *thread = thread_at_hand(recorder, fs_base);
	return LIKELY(thread) ? thread : thread_create(recorder, fs_base);
}

#endif
