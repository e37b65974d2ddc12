/* SPDX-License-Identifier: MIT */
/** The stack of a heap call, and its difference from the thread's last one. */
#ifndef XHEAP_RECORDER_CAPTURE_H
#define XHEAP_RECORDER_CAPTURE_H

#include "recorder/recorder.h"

/** The start of a walk: the hook's caller. */
struct frame_state {
	uint64_t pc, sp, bp;
};

/** Capture the stack into thread->memo and thread->id (outermost first). depth: the most frames wanted. Return how many
    outermost frames are the same as in the last capture. */
uint32_t capture_stack(struct thread *thread, struct frame_state at, uint32_t depth);

/** Return the id of the program counter with this key, which all processes of the region share; PC_TRUNCATED: there is
    no room. */
uint32_t capture_pc_id(struct recorder *recorder, uint64_t key);

/** Compare the result of capture_stack() with a full walk, and count a difference in the region. */
void capture_check(struct thread *thread, struct frame_state at);

/** Capture a whole stack without changing the thread's memory. fresh: frames, innermost first, at most max. Return
    their number. *is_live is set if the walk reached the hook frame `guard`; *is_nested_signal, if it came through a
    signal frame to it. */
uint32_t capture_whole(struct thread *thread, struct frame_state at, struct fresh *fresh, uint32_t max, uint64_t guard,
		       int *is_live, int *is_nested_signal);

/** Forget every row and remembered stack that may name code in [low, high). */
void capture_forget(struct recorder *recorder, uint64_t low, uint64_t high);

/** Return the table of the recorder's own code. */
struct unwind_tables frames_tables(void);

#endif
