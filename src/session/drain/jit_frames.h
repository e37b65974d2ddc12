/* SPDX-License-Identifier: MIT */
/**
 * Frames of code that lies in no image: compiled at run time, mostly. What a program counter means there depends on the
 * process and the time.
 *
 *     named by the process's runtime      the frame of that function, the same in each process and run
 *     not named (yet)                     a frame of this address in this process; it gets the first name that comes
 */
#ifndef XHEAP_SESSION_JIT_FRAMES_H
#define XHEAP_SESSION_JIT_FRAMES_H

#include <stdint.h>

#include "base/map.h"
#include "session/jit/jit_source.h"

struct translate;

/** What an address in a process means. */
struct jit_frame {
	uint64_t pc;
	struct jit_span span; /**< of events to which this applies */
	uint64_t start;       /**< ticks when the process began: its index may be another process's later */
	uint32_t frame;       /**< in the trace */
	uint32_t generation;  /**< of the answers of sources that it comes from */
	uint32_t process;     /**< index in the region */
	bool is_named;
};

/** A process with code in no image. */
struct jit_user {
	uint32_t process; /**< index in the region */
	uint64_t start;   /**< as in struct jit_frame */
	struct jit_source *source;
};

/** The code of one region's processes that lies in no image. Zero it to begin. */
struct jit_frames {
	bool has_sources;         /**< names are searched for */
	struct jit_process first; /**< process 0 of the region */
	struct map found;         /**< by process and program counter id: the place in `frames` */
	struct jit_frame *frames;
	uint32_t frame_count, frame_capacity;
	struct map retired; /**< by program counter id: the place in `pcs` */
	uint64_t *pcs;
	uint32_t pc_count, pc_capacity;
	struct jit_user *users;
	uint32_t user_count, user_capacity;
	uint32_t generation, named_generation; /**< of all answers, and of those that gave names late */
	uint64_t named_ns;
};

/** Search for names from now on; the region's process 0 still runs. */
void jit_frames_begin(struct jit_frames *frames, pid_t pid, pid_t inner);
void jit_frames_fini(struct jit_frames *frames);

/** Remember the address of a program counter id whose row is used again. */
void jit_frames_retire(struct jit_frames *frames, uint32_t id, uint64_t pc);

/** Return the frame of a program counter id in no image, for a process of the region at a time; or
    TRANSLATE_FRAME_CUT. */
uint32_t jit_frames_find(struct translate *translate, uint32_t id, uint32_t process, uint64_t ticks);

/** Read the names that came since. ticks: now. */
void jit_frames_follow(struct translate *translate, uint64_t ticks);

/** Read the last names of a process, which has ended. */
void jit_frames_end(struct translate *translate, uint32_t process, uint64_t ticks);

#endif
