/* SPDX-License-Identifier: MIT */
/** The code of a trace: images and where they were, frames and stacks, functions that were hooked, and names. */
#ifndef XHEAP_TRACE_CODE_ROWS_H
#define XHEAP_TRACE_CODE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/events.h"
#include "trace/row_ids.h"

/** An executable or shared object as a file; equal files of several processes are one image. */
struct trace_image {
	const char *path;        /**< "[vdso]" and the like for what is no file */
	const uint8_t *build_id; /**< NULL when it has none */
	uint32_t build_id_size;
};

/** The place of an image in a process, and when it was there. */
struct trace_mapping {
	uint32_t process, image;
	uint64_t base, end;         /**< run-time addresses [base, end) */
	uint64_t bias;              /**< run-time address minus the file's own address (offset of frames) */
	int64_t load_ns, unload_ns; /**< unload_ns is INT64_MAX while loaded */
};

/** A code address: image and the address within it as the file counts it (run-time pc minus bias).
 *  The addresses are return addresses: look up offset - 1 for the calling instruction.
 *  image TRACE_NONE: offset is the run-time pc with the process, or the number of a named function (code of no image,
 *  JIT); or TRACE_FRAME_TRUNCATED or TRACE_FRAME_UNWINDLESS. */
struct trace_frame {
	uint32_t image;
	uint64_t offset;
};
/** Of image TRACE_NONE: the offset is the number of a function, whose name the trace has, and no address. */
#define TRACE_FRAME_NAMED (UINT64_C(1) << 63)
/** Of image TRACE_NONE: above the run-time pc lies the low part of a process's number, so that addresses of several
    processes are different frames. */
#define TRACE_FRAME_ADDRESS_BITS 48
#define TRACE_FRAME_PROCESS_MAX UINT64_C(0x7fff)
#define TRACE_FRAME_TRUNCATED 1  /**< the stack was cut here: it is too deep, or a check failed */
#define TRACE_FRAME_UNWINDLESS 2 /**< the frame inside this place has no unwind data */

/** Return the offset in the image; in none, the run-time pc. */
static inline uint64_t trace_frame_address(const struct trace_frame *frame)
{
	return frame->image == TRACE_NONE ? frame->offset & ((UINT64_C(1) << TRACE_FRAME_ADDRESS_BITS) - 1)
					  : frame->offset;
}

/** Return whether the frame is code of no image that has no name either: a run-time pc is all that is known. */
static inline bool trace_frame_is_nameless(const struct trace_frame *frame)
{
	return frame->image == TRACE_NONE && frame->offset > TRACE_FRAME_UNWINDLESS &&
	       !(frame->offset & TRACE_FRAME_NAMED);
}

/** How a stack ends outwards. Node 0 is no stack. */
enum trace_stack_end { TRACE_STACK_NONE, TRACE_STACK_WHOLE, TRACE_STACK_TRUNCATED, TRACE_STACK_UNWINDLESS };

/** Count an event by the end of its stack; `count` is 1, or -1 to take it back. flags: of the event; end: of its
    node. */
static inline void trace_count_end(struct stack_ends *ends, uint8_t flags, uint8_t end, int count)
{
	bool is_truncated = flags & EVENT_TRUNCATED;
	uint64_t *of = is_truncated                    ? &ends->truncated
		       : end == TRACE_STACK_UNWINDLESS ? &ends->unwindless
		       : end == TRACE_STACK_WHOLE      ? &ends->whole
						       : NULL;
	if (of)
		*of += (uint64_t)count;
}

/** A node of the stack tree: its frame, called from its parent. Node 0 is the root and has no frame. parent < own
    id. */
struct trace_node {
	uint32_t parent, frame;
};

/** A patched entry: the allocation function as the program knew it, frame 0 of its events. */
struct trace_entry {
	uint32_t image;   /**< image that defines it */
	uint8_t function; /**< enum heap_function */
	const char *name; /**< its symbol: "malloc", "je_malloc" */
};

struct trace_heap {
	uint32_t process;
	uint64_t handle;
	const char *name; /**< "libc.so.6 main arena", "libjemalloc.so.2" */
};

/** A function that a frame's code belongs to. */
struct trace_function {
	const char *function; /**< as its language writes it; "" when unknown */
	const char *mangled;  /**< as its file has it; "" when unknown or the same */
	const char *file;     /**< of the source; "" when unknown */
	uint32_t line;        /**< 0: unknown */
	bool is_inlined;
};

/** The functions of a frame, inlined ones first, as they were stored with the trace. Of several rows of a frame the
    last one holds. */
struct trace_symbol {
	uint32_t frame;        /**< its place in trace->frames */
	uint32_t first, count; /**< places in trace->functions */
};

/** What names the code of an image. Readers take other numbers for TRACE_NAMED_BY_SYMBOLS. */
enum trace_named_by {
	TRACE_NAMED_BY_NOTHING, /**< it had no symbols when symbols were stored */
	TRACE_NAMED_BY_SYMBOLS,
	TRACE_NAMED_BY_PYTHON /**< it is a source file: its frames are Python's, and the trace has their names */
};

/** What names the code of an image. The last one of an image holds. */
struct trace_named {
	uint32_t image;
	uint64_t by; /**< enum trace_named_by */
};

#endif
