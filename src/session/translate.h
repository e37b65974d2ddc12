/* SPDX-License-Identifier: MIT */
/**
 * From the ids of one region (program counters, entries, heaps, images, processes) to those of the trace. Each row is
 * read from the shared memory once, checked, and remembered; what a target changes in it later has no effect.
 */
#ifndef XHEAP_SESSION_TRANSLATE_H
#define XHEAP_SESSION_TRANSLATE_H

#include "region/region.h"
#include "session/drain.h"
#include "session/keep.h"
#include "trace/writer.h"

/** What decoding has to know of an entry. */
struct translate_entry {
	uint16_t id;  /**< in the trace */
	uint8_t kind; /**< enum event_kind of its function */
	uint8_t mark; /**< which of RECORD_REALLOC and RECORD_FREE its records have */
	bool is_known;
};

struct translate_heap {
	uint32_t process, id;
};

struct translate_image {
	struct trace_mapping mapping;
	uint32_t mapping_id;
	char *name; /**< file name, for heaps */
};

struct translate_process {
	uint32_t id;         /**< in the trace, or TRACE_NONE */
	bool has_ended;      /**< its place may be another's soon */
	uint64_t last_ticks; /**< of its events so far */
	struct trace_process row;
};

struct translate {
	struct writer *writer;
	struct keep keep;
	uint32_t cut_frame, cut_node; /**< the stack of which nothing is kept but that it was cut */
	const struct region *region;
	const struct drain_known *known; /**< NULL but in recovery */
	uint32_t *frame;                 /**< by pc id: frame id + 1, 0: not looked at yet */
	uint32_t frame_capacity;
	uint32_t process_count; /**< registered in the trace from here */
	struct translate_entry entry[256];
	struct translate_heap *heap;
	uint32_t heap_capacity;
	struct translate_image *image;
	uint32_t image_count, image_capacity;
	struct translate_process process[REGION_PROCESS_MAX];
	/** places of processes that have ended, in that order, from first_ended on */
	uint16_t ended[REGION_PROCESS_MAX];
	uint32_t first_ended, ended_count, live_count;
	char *process_image, *process_command;
};

/** Registers process 0. limits: the caller's, as long as it is used. */
void translate_init(struct translate *translate, struct writer *writer, const struct region *region,
		    const struct drain_image *image, const struct drain_known *known, const struct keep_limits *limits);
void translate_fini(struct translate *translate);

/** Trace id of the region's process, registered when it is new; TRACE_NONE when there is no such process. */
uint32_t translate_process_id(struct translate *translate, uint32_t index);

/** Processes that have found themselves forked and images that were added. */
void translate_refresh(struct translate *translate);

/** Images that were unloaded since. */
void translate_refresh_unloads(struct translate *translate);

/** The process has ended: tell the trace. Its index may come again as another. */
void translate_end_process(struct translate *translate, uint32_t index, uint8_t end, int32_t status, uint64_t ticks);

/** Trace id of the heap of that kind (enum region_heap_kind) and handle, whose allocator is image `index`. */
uint32_t translate_heap_of(struct translate *translate, uint32_t index, uint32_t kind, uint64_t handle,
			   uint32_t process);

/** Trace id of a heap of the process with trace id `process`; TRACE_NONE when there is none. */
uint32_t translate_heap_slowly(struct translate *translate, uint32_t index, uint32_t process);
/** No more frames may be added. */
#define TRANSLATE_FRAME_CUT (UINT32_MAX - 1)

/** Frame of a program counter; UINT32_MAX when there is none, or TRANSLATE_FRAME_CUT. */
uint32_t translate_frame_slowly(struct translate *translate, uint32_t id);
/** False when there is no such entry. */
bool translate_entry_slowly(struct translate *translate, uint32_t index);

static inline uint32_t translate_heap_id(struct translate *translate, uint32_t index, uint32_t process)
{
	if (__builtin_expect(index < translate->heap_capacity && translate->heap[index].process == process, 1))
		return translate->heap[index].id;
	return translate_heap_slowly(translate, index, process);
}

static inline uint32_t translate_frame_id(struct translate *translate, uint32_t id)
{
	if (__builtin_expect(id < translate->frame_capacity && translate->frame[id] != 0, 1))
		return translate->frame[id] - 1;
	return translate_frame_slowly(translate, id);
}

/** Raw ticks in the nanoseconds of the trace, as a reader has them. */
int64_t translate_ticks_ns(const struct writer_clock *clock, uint64_t ticks);

#endif
