/* SPDX-License-Identifier: MIT */
/** Python frames in the place of the interpreter's: src/recorder/python.c. */
#ifndef XHEAP_RECORDER_PYTHON_H
#define XHEAP_RECORDER_PYTHON_H

#include "recorder/recorder.h"
#include "region/atomic.h"

/** A stack as an event has it. */
struct python_stack {
	uint32_t kept;  /**< frames that are the same as in the thread's last one */
	uint32_t count; /**< frames, with the kept ones */
	const uint32_t *id;
};

/** Put Python frames into the stack that capture_stack() has just captured. kept: what it returned; depth: the most
    frames wanted. Without memory the stack stays native, and `id` is the thread's. */
struct python_stack python_capture(struct thread *thread, uint32_t kept, uint32_t depth);

/** Have a thread's next stacks captured with Python frames if its process has an interpreter. Of several in one stack,
    the innermost has frames. Where images have changed, nothing is remembered of the last stack: an interpreter may lie
    where another one lay. */
static inline void python_begin(struct thread *thread)
{
	const struct recorder *recorder = thread->recorder;
	if (!LOAD_ACQUIRE(&recorder->python_count))
		return;
	thread->stack_mode |= STACKS_HAVE_PYTHON;
	if (thread->python && thread->generation != LOAD_ACQUIRE(&recorder->generation))
		thread->python->walks = thread->python->failures = 0;
}

#endif
