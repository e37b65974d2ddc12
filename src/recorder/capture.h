/* SPDX-License-Identifier: MIT */
/** The stack of a heap call, and how it differs from the thread's last one. */
#ifndef XHEAP_RECORDER_CAPTURE_H
#define XHEAP_RECORDER_CAPTURE_H

#include "recorder/recorder.h"

/** Where a walk begins: the hook's caller. */
struct frame_state {
	uint64_t pc, sp, bp;
};

/** Capture the stack into thread->memo and thread->id (outermost first); the number of frames, outermost ones, that are
 *  the same as in the capture before. depth: the most frames wanted. */
uint32_t capture_stack(struct thread *thread, struct frame_state at, uint32_t depth);

/** Compare what capture_stack() has just made with a whole walk; a difference is counted in the region. */
void capture_check(struct thread *thread, struct frame_state at);

/** Capture a whole stack without touching what the thread remembers; frames innermost first in fresh (at most max);
 *  their number. *is_nested_signal is set when the walk came through a signal frame to the hook frame `guard`; *is_live
 *  when it reached that frame at all. */
uint32_t capture_whole(struct thread *thread, struct frame_state at, struct fresh *fresh, uint32_t max, uint64_t guard,
		       int *is_live, int *is_nested_signal);

/** Forget every row and remembered stack that may name code in [low, high). */
void capture_forget(struct recorder *recorder, uint64_t low, uint64_t high);

/** The table of the recorder's own code. */
struct unwind_tables frames_tables(void);

#endif
