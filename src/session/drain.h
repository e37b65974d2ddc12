/* SPDX-License-Identifier: MIT */
/**
 * From a region's buffers to the trace: decodes records, interns stacks, fills columns, writes blocks, and gives
 * buffers back once their events are in the file. Nothing that a target wrote is believed.
 *
 * One drain per trace, used by one thread. Regions come and go.
 */
#ifndef XHEAP_SESSION_DRAIN_H
#define XHEAP_SESSION_DRAIN_H

#include "heapwalk/heapwalk.h"
#include "region/region.h"
#include "session/keep.h"
#include "trace/writer.h"

struct drain;
struct drain_region;

/** What the logger knows of an executed image that the region itself does not tell. */
struct drain_image {
	uint32_t pid;    /**< in the logger's pid namespace */
	uint32_t parent; /**< trace process id, or TRACE_NONE */
	uint32_t exec_generation;
	const char *image;   /**< path of the executed file */
	const char *command; /**< command line */
	uint64_t start_ticks;
};

struct drain_totals {
	uint64_t events, lost, after, waits, wait_ticks, suppressed, unwatched, heapless, check_failures,
		untraced_calls;
	struct stack_ends ends; /**< of the events' stacks */
	uint32_t processes, peak_buffers;
	uint64_t buffers_written;
	/** records that made no sense; their events are in `lost`, by estimate */
	uint64_t damaged_buffers, damaged_bytes;
	/* after: calls that were made when recording had ended, and counted */
	uint64_t in_flight; /**< of the events, calls that never returned */
};

/** A thread that is recorded. */
struct drain_thread {
	uint32_t process, tid; /**< trace process id */
	const char *name;
	uint64_t events, rate, waits, wait_ticks; /**< waits: since its first events were taken */
	struct stack_ends ends;                   /**< of the events' stacks */
};

/** What an earlier logger has put into the trace, for recovery. */
struct drain_known {
	/** of the trace as it was before writer_reopen(); must outlive the drain_region */
	const struct trace_dictionary *dictionary;
	struct writer_clock clock; /**< of the trace, to find processes and threads by their times */
};

struct drain *drain_new(struct writer *writer);

/** Keep no more than this, from now on; keep_limits_default() until then. */
void drain_limit(struct drain *drain, const struct keep_limits *limits);

/** Whether a row of no region, or a note, finds room in the trace. */
bool drain_has_room(const struct drain *drain);

/** Put a note about what a trace lacks into it, as an option of that name; no more than a thousand of each name, and
 *  then that there were more. name: static. */
void drain_add_note(struct drain *drain, const char *name, const char *text);

/** Have ready(cookie) called before events are written: by then the writer has to know the clock. */
void drain_before_writing(struct drain *drain, void (*ready)(void *cookie), void *cookie);
/** Regions that were not removed are forgotten: what they hold is for whoever adopts them. */
void drain_free(struct drain *drain);

/** Add a region; it stays the caller's and must outlive the drain_region. Its process 0 is registered in the trace
    now. */
struct drain_region *drain_add(struct drain *drain, struct region *region, const struct drain_image *image);

/** As drain_add() for a region that another logger drained before: what the trace has of it already is found again and
 *  not added twice, neither rows nor events. */
struct drain_region *drain_adopt(struct drain *drain, struct region *region, const struct drain_image *image,
				 const struct drain_known *known);

/** Trace process id of the region's process `index` (0: the executed one), or TRACE_NONE when not seen yet. */
uint32_t drain_process(const struct drain_region *region, uint32_t index);

/** Whether not everything of the region is kept, since there was more of it than may be. */
bool drain_is_limited(const struct drain_region *region);

/** True once for each thing of such a region that is not: text then says what. */
bool drain_take_limit_note(struct drain_region *region, char *text, size_t size);

/** Take what is full, and when flushing what is being filled; write blocks and free buffers when many are held or
 *  `flush` (give it once a second or so). True when there was something. -errno in *error when the trace could not be
 *  written (the buffers are freed all the same, and their events counted). */
bool drain_poll(struct drain_region *region, bool flush, int *error, struct diag *diag);

/** The trace can take no more (writer_has_ended()): what has been lost up to now are losses, what is lost from now on
    was called after recording. */
void drain_note_end(struct drain_region *region);

/** The blocks that the first process of the region had before it was attached to: into the trace, as events of no
 *  thread. What could not be written is told by the next drain_poll() or drain_remove(). */
void drain_earlier(struct drain_region *region, const struct heapwalk *walk);

/** A process has ended (enum trace_end, status): take all that it left, committed or pending, free its slots. ticks:
 *  when; 0: at its last event. Its index may be
 *  another's much later (but for 0). What could not be written is told by the next drain_poll() or drain_remove(). */
void drain_end_process(struct drain_region *region, uint32_t index, uint8_t end, int32_t status, uint64_t ticks);

/** A thread known dead (its tid is gone from its process): drain its slot and let it be reused. */
void drain_end_thread(struct drain_region *region, uint32_t slot);

/** As drain_end_thread(), but nothing is done when the slot is by now another thread's than tid's. */
void drain_end_tid(struct drain_region *region, uint32_t slot, uint32_t tid);

/** All processes have ended or are let go: take everything, write it, forget the region. */
void drain_remove(struct drain_region *region, int *error, struct diag *diag);

/** Sums of one region. */
void drain_region_totals(const struct drain_region *region, struct drain_totals *totals);

/** All regions were polled with `flush`: rates (event_rate.h) are counted from here. */
void drain_note_rates(struct drain *drain, uint64_t ticks_per_ms);

/** Events a second of a region that has just been polled so. */
uint64_t drain_region_rate(const struct drain_region *region, uint64_t ticks_per_ms);

/** Call each(cookie, thread) for every thread of it that lives. */
void drain_each_thread(const struct drain_region *region, uint64_t ticks_per_ms,
		       void (*each)(void *cookie, const struct drain_thread *thread), void *cookie);

/** What the logger's memory may come to: all of the regions, what is decoded and not written yet, which has a limit,
 *  the stacks that the trace has by now, and some for the rest. */
uint64_t drain_memory_limit_bytes(const struct drain *drain);

/** Whether owners of streams and lists of held buffers hold together (base/check.h). */
bool drain_is_valid(const struct drain *drain);

/** Sums over all regions, past and present. */
void drain_totals(const struct drain *drain, struct drain_totals *totals);

#endif
