/* SPDX-License-Identifier: MIT */
/**
 * The drain moves events from a region's buffers to the trace: it decodes records, interns stacks, fills columns and
 * writes blocks. A buffer returns to the region once its events are in the file. Every byte of a target is checked.
 *
 * A trace has one drain, used by one thread: the logger's main thread, or that of a recovery. Regions come and go.
 */
#ifndef XHEAP_SESSION_DRAIN_H
#define XHEAP_SESSION_DRAIN_H

#include "heapwalk/heapwalk.h"
#include "region/region.h"
#include "session/drain/keep.h"
#include "trace/writer.h"

struct drain;
struct drain_region;
struct trace_dictionary;

/** The facts about an executed image that the logger knows and the region does not hold. */
struct drain_image {
	uint32_t pid;    /**< in the logger's pid namespace */
	uint32_t parent; /**< trace process id, or TRACE_NONE */
	uint32_t exec_generation;
	const char *image;   /**< path of the executed file */
	const char *command; /**< command line */
	uint64_t start_ticks;
	uint32_t first_tid;     /**< of the image's first thread, as the target sees it; 0: not known */
	const char *first_name; /**< name of that thread now; NULL: not known */
};

/** Sums of one region or of all. `after`: calls made and counted after recording had ended. */
struct drain_totals {
	uint64_t events, lost, after, waits, wait_ticks, suppressed, unwatched, heapless, check_failures,
		untraced_calls, pythonless;
	/** of the events, without failed calls and calls in flight, by enum event_kind; without pre-existing blocks */
	uint64_t kinds[EVENT_KIND_COUNT];
	struct stack_ends ends; /**< of the events' stacks */
	uint32_t processes, peak_buffers;
	uint64_t buffers_written;
	/** records that failed the checks; `lost` has an estimate of their events */
	uint64_t damaged_buffers;
	uint64_t in_flight;                    /**< of the events, calls that never returned */
	uint64_t kind_count[EVENT_KIND_COUNT]; /**< of drain_totals(): of the events, the successful ones by kind */
};

/** A thread that is recorded. */
struct drain_thread {
	uint32_t process, tid; /**< trace process id */
	const char *name;
	uint64_t events, rate, waits, wait_ticks; /**< `waits` and `wait_ticks`: since its first events were taken */
	struct stack_ends ends;                   /**< of the events' stacks */
};

/** The rows that an earlier logger has put into the trace, for recovery. */
struct drain_known {
	/** of the trace as it was before writer_reopen(); must outlive the drain_region */
	const struct trace_dictionary *dictionary;
	struct writer_clock clock; /**< of the trace, to find processes and threads by their times */
};

/** Make a drain that writes to `writer`, which stays the caller's. Without memory the logger ends. */
struct drain *drain_new(struct writer *writer);

/** Have ready(cookie) called before events are written: it must set the writer's clock. Called on the drain's
    thread. */
void drain_before_writing(struct drain *drain, void (*ready)(void *cookie), void *cookie);

/** Have busy(cookie) called after each full buffer that is taken: one poll may take many seconds. Called on the drain's
    thread; it must not use the drain. */
void drain_while_taking(struct drain *drain, void (*busy)(void *cookie), void *cookie);

/** Free the drain. Regions that were not removed are forgotten without being drained; a recovery can adopt them. */
void drain_free(struct drain *drain);

/** Add a region and register its process 0 in the trace. The region stays the caller's and must outlive the
    drain_region. */
struct drain_region *drain_add(struct drain *drain, struct region *region, const struct drain_image *image);

/** Add a region that another logger drained before. Rows and events that the trace already has are found again and not
    added twice. */
struct drain_region *drain_adopt(struct drain *drain, struct region *region, const struct drain_image *image,
				 const struct drain_known *known);

/** Return the trace id of the region's process `index` (0: the executed one), or TRACE_NONE if the drain has not seen
    it. */
uint32_t drain_process(const struct drain_region *region, uint32_t index);

/** Take full buffers and, with `flush`, partly filled ones. Write blocks and release buffers with `flush` (to be given
    about once a second), or when many buffers are unwritten. Return true if there was a full buffer. Set *error to a
    negative errno if the trace could not be written; buffers are released and their events counted nevertheless. */
bool drain_poll(struct drain_region *region, bool flush, int *error, struct diag *diag);

/** Take everything that an ended process left, committed or pending, and free its slots. end: enum trace_end. ticks:
    when it ended; 0: at its last event. Its index, unless 0, may belong to another process much later. The next
    drain_poll() or drain_remove() reports a failure to write. */
void drain_end_process(struct drain_region *region, uint32_t index, uint8_t end, int32_t status, uint64_t ticks);

/** Drain the slot of a thread that is known to be dead (its tid is gone from its process), and free the slot. */
void drain_end_thread(struct drain_region *region, uint32_t slot);

/** As drain_end_thread(), but do nothing if the slot now belongs to another thread than `tid`. */
void drain_end_tid(struct drain_region *region, uint32_t slot, uint32_t tid);

/** Take and write everything of a region whose processes have all ended or are detached, and forget the region. */
void drain_remove(struct drain_region *region, int *error, struct diag *diag);

/** Add up one region. */
void drain_region_totals(const struct drain_region *region, struct drain_totals *totals);

/** Note a moment for the rates (event_rate.h). To be called when all regions were polled with `flush`. */
void drain_note_rates(struct drain *drain, uint64_t ticks_per_ms);

/** Return the events per second of a region that was just polled with `flush`. */
uint64_t drain_region_rate(const struct drain_region *region, uint64_t ticks_per_ms);

/** Call each(cookie, thread) for each live thread of the region. */
void drain_each_thread(const struct drain_region *region, uint64_t ticks_per_ms,
		       void (*each)(void *cookie, const struct drain_thread *thread), void *cookie);

/** Add up all regions, past and present. */
void drain_totals(const struct drain *drain, struct drain_totals *totals);

#endif
