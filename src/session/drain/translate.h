/* SPDX-License-Identifier: MIT */
/**
 * From the ids of one region (program counters, entries, heaps, images, processes) to those of the trace. Each row is
 * read from the shared memory once, checked and remembered: later changes by a target have no effect.
 */
#ifndef XHEAP_SESSION_TRANSLATE_H
#define XHEAP_SESSION_TRANSLATE_H

#include "region/region.h"
#include "session/drain/drain.h"
#include "session/drain/jit_frames.h"
#include "session/drain/keep.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/writer.h"

/** The properties of an entry that decoding uses. */
struct translate_entry {
	uint16_t id;  /**< in the trace */
	uint8_t kind; /**< enum event_kind of its function */
	uint8_t mark; /**< which of RECORD_REALLOC and RECORD_FREE its records have */
	bool is_known;
};

/** The trace id of a region's heap, for one process. */
struct translate_heap {
	uint32_t process, id;
};

/** A file of the region. */
struct translate_file {
	uint64_t first; /**< link-time address of its first byte */
	uint32_t image; /**< in the trace */
	char *name;     /**< without directories, for the names of heaps */
};

/** A row of the region's images. */
struct translate_image {
	struct trace_mapping mapping;
	uint32_t mapping_id;
	uint32_t process; /**< index in the region */
	uint32_t number;  /**< of the image; 0: the row is free */
};

/** A process of the region. */
struct translate_process {
	uint32_t id;         /**< in the trace, or TRACE_NONE */
	bool has_ended;      /**< its index may belong to another process soon */
	uint64_t last_ticks; /**< of its events so far */
	struct trace_process row;
};

/** The ids of one region. */
struct translate {
	struct writer *writer;
	struct keep keep;
	uint32_t cut_frame, cut_node; /**< frame and node of the stack of which only the mark "cut" is kept */
	struct region *region;
	const struct drain_known *known; /**< NULL unless the region is recovered */
	uint32_t *frame;                 /**< by pc id: frame id + 1; 0: not read yet */
	uint32_t frame_capacity;
	struct jit_frames jit;  /**< of program counters in no image */
	uint32_t process_count; /**< processes below it are registered in the trace */
	struct translate_entry entry[256];
	struct translate_heap *heap;
	uint32_t heap_capacity;
	struct translate_file *file;
	uint32_t file_count, file_capacity;
	struct translate_image *image; /**< by row */
	uint32_t image_count, image_capacity;
	uint32_t image_seen; /**< number of the newest image that was read */
	struct translate_process process[REGION_PROCESS_MAX];
	/** indexes of ended processes, in that order, from first_ended on */
	uint16_t ended[REGION_PROCESS_MAX];
	uint32_t first_ended, ended_count, live_count;
	char *process_image, *process_command;
};

/** Prepare the ids of a region and register its process 0. The pointers stay the caller's and must outlive
    *translate. */
void translate_init(struct translate *translate, struct writer *writer, struct region *region,
		    const struct drain_image *image, const struct drain_known *known, const struct keep_limits *limits);
/** Free the arrays. */
void translate_fini(struct translate *translate);

/** Return the trace id of the region's process, registering it if it is new; TRACE_NONE if the region has no such
    process. */
uint32_t translate_process_id(struct translate *translate, uint32_t index);

/** Register forked processes and images that the region has added; free rows of images and of program counters for
    others. */
void translate_refresh(struct translate *translate);

/** Record the end of a process in the trace. Its index may come again as another process. */
void translate_end_process(struct translate *translate, uint32_t index, uint8_t end, int32_t status, uint64_t ticks);

/** Return the trace id of the heap with that kind (enum region_heap_kind) and handle, whose allocator is in file
    `index`. */
uint32_t translate_heap_of(struct translate *translate, uint32_t index, uint32_t kind, uint64_t handle,
			   uint32_t process);

/** Return the trace id of a heap for the process with trace id `process`, reading the heap's row; TRACE_NONE if there
    is none. */
uint32_t translate_heap_slowly(struct translate *translate, uint32_t index, uint32_t process);
/** Returned if no more frames may be added. */
#define TRANSLATE_FRAME_CUT (UINT32_MAX - 1)
/** Returned for a program counter in no image: jit_frames_find() has its frame. */
#define TRANSLATE_FRAME_OUTSIDE (UINT32_MAX - 2)

/** Return the frame of a program counter, reading its row; UINT32_MAX if there is none, or TRANSLATE_FRAME_CUT, or
    TRANSLATE_FRAME_OUTSIDE. */
uint32_t translate_frame_slowly(struct translate *translate, uint32_t id);
/** Read an entry's row into `entry`. Return false if there is no such entry. */
bool translate_entry_slowly(struct translate *translate, uint32_t index);

/** Return the trace id of a heap for a process; the remembered one if there is one. */
static inline uint32_t translate_heap_id(struct translate *translate, uint32_t index, uint32_t process)
{
	if (__builtin_expect(index < translate->heap_capacity && translate->heap[index].process == process, 1))
		return translate->heap[index].id;
	return translate_heap_slowly(translate, index, process);
}

/** Return the frame of a program counter; the remembered one if there is one. */
static inline uint32_t translate_frame_id(struct translate *translate, uint32_t id)
{
	if (__builtin_expect(id < translate->frame_capacity && translate->frame[id] != 0, 1))
		return translate->frame[id] - 1;
	return translate_frame_slowly(translate, id);
}

/** Convert raw ticks to nanoseconds of the trace, as a reader does. */
int64_t translate_ticks_ns(const struct writer_clock *clock, uint64_t ticks);

#endif
