/* SPDX-License-Identifier: MIT */
/**
 * Writing a trace. Not thread-safe. Ids given here are those of the whole file; the writer makes each
 * segment complete by itself (it repeats the dictionary rows that the segment's events refer to).
 *
 * Everything given before a successful writer_flush() survives the death of the writing process.
 */
#ifndef XHEAP_TRACE_WRITER_H
#define XHEAP_TRACE_WRITER_H

#include <stddef.h>

#include "base/thread_context.h"
#include "trace/code_rows.h"

struct diag;
struct trace_cause;
struct trace_fold;
struct trace_gap;
struct trace_lifetime;
struct trace_limit;
struct trace_process;
struct trace_resident;
struct trace_resident_part;
struct trace_pages;
struct trace_page_run;
struct trace_sample;
struct trace_statistics;
struct trace_sum;
struct trace_thread;
struct writer;

enum writer_mode {
	WRITER_SEQUENTIAL, /**< at the file's greatest size it is ended cleanly and writing returns -EFBIG */
	WRITER_CIRCULAR,   /**< then the oldest segments are overwritten */
	WRITER_PIECES      /**< then the file is ended and another one begun: each a trace by itself */
};

enum { WRITER_PATH_MAX = 4096, TRACE_REASON_BYTES = 200 };

struct writer_options {
	enum writer_mode mode;
	uint64_t max_file_bytes; /**< 0: no limit */
	void *cookie;            /**< for what is called */
	/** For pieces: the file before is whole and has so many bytes and events; the path of the next. 0 or a negative
	    errno. */
	int (*next)(void *cookie, uint64_t bytes, uint64_t events, char *path, size_t size, struct diag *diag);
	bool (*make_room)(void *cookie); /**< the disk is full: whether something could be done about it; may be NULL */
	bool is_whole;                   /**< what is gone on with has to be complete */
	uint64_t segment_bytes;          /**< 0: 64 MiB */
	uint64_t segment_ns;             /**< 0: 10 s */
	int compression;                 /**< zstd level; 0: 1; below 0: nothing is compressed */
	/** mode of the files, which have to be this user's; 0: 0600, and a file that is gone on with may be
	    anybody's */
	uint32_t permissions;
	/** what is given cannot be given again: without memory for it, memory_exhausted() */
	bool ends_without_memory;
	/** times and durations of events are cut to the largest power of two of ticks below it; 0: not */
	uint32_t resolution_ns;
};

/** How raw ticks of the clock become nanoseconds: ns = (ticks - start_ticks) * mult >> shift, by 128 bits. */
struct writer_clock {
	const char *name; /**< "tsc" or "monotonic_raw" */
	uint64_t start_ticks;
	uint64_t mult;
	uint32_t shift;
	int64_t start_realtime_ns;
};

/** Columns of one thread's events, as the logger collects them. Times are raw ticks; the reader converts. */
struct writer_events {
	uint32_t process, thread; /**< ids from writer_add_* */
	uint32_t count, capacity;
	uint8_t *kind, *flags;
	uint16_t *entry;
	uint32_t *heap, *stack;
	uint64_t *time, *duration; /**< ticks */
	uint64_t *address, *previous, *size, *usable, *argument, *argument2;
	int32_t *result;
	/* Contexts, where they change: before the first one there is none (writer_events_set_context()). The event of
	   row 0 has the number context_first. */
	struct context_change *contexts;
	uint32_t context_count, context_capacity, context_first;
	/* Their place in the region, so that recovery writes no event twice. */
	uint64_t region;                        /**< random id of the region */
	uint32_t slot;                          /**< thread slot */
	uint32_t first_sequence, last_sequence; /**< buffers of that slot wholly contained; first > last: none */
	/* A buffer that several threads filled one after another is spread over blocks: with this block, the first
	 * part_events events of buffer part_sequence are in the trace. 0: no such buffer. */
	uint32_t part_sequence, part_events;
};

/** Make room for at least `more` further events. 0 or -ENOMEM. */
int writer_events_reserve(struct writer_events *events, uint32_t more);

/** The thread has this context from row `at` on; what was set from there on is forgotten. 0 or -ENOMEM. */
int writer_events_set_context(struct writer_events *events, uint32_t at, const struct thread_context *context);

/** Free the columns. */
void writer_events_fini(struct writer_events *events);

/** Begin a file at `path`, in the place of one that is there. Return 0, or a negative errno with the reason in diag. */
int writer_open(struct writer **out, const char *path, const struct writer_options *options, struct diag *diag);

/** Move a sequential file from `from` to `path`: what is written, and all that follows, is there then, with this
 *  greatest size (0: none). `from` is removed. After an error nothing is there, and writing goes on in `from`. Return 0
 *  or a negative errno. */
int writer_move(struct writer *writer, const char *from, const char *path, uint64_t max_file_bytes, struct diag *diag);

/** Before the first events; fixed for the file. */
void writer_set_clock(struct writer *writer, const struct writer_clock *clock);

/** Whether a file that is gone on with has a clock that goes as this one: of one kind, since one start of the machine.
    Then *own is the file's. */
bool writer_has_clock(const struct writer *writer, const struct writer_clock *like, struct writer_clock *own);

/** Set what machine the trace is of: node name, system, release, machine. Before the first events. */
void writer_set_host(struct writer *writer, const char *host);

/** Add an option of the session, unless an equal one is there. Both texts are copied. */
void writer_add_option(struct writer *writer, const char *name, const char *value);

/** Add a row; its id. Texts and bytes are copied. Times in rows are ticks here (start_ns etc. hold ticks), INT64_MAX
    open. */
uint32_t writer_add_process(struct writer *writer, const struct trace_process *process);

/** The same. TRACE_NONE: the process was not added, or there is no memory. */
uint32_t writer_add_thread(struct writer *writer, const struct trace_thread *thread);
/** an equal one gives the same id */
uint32_t writer_add_image(struct writer *writer, const struct trace_image *image);

/** The same. TRACE_NONE: process or image were not added, end is below base, or there is no memory. */
uint32_t writer_add_mapping(struct writer *writer, const struct trace_mapping *mapping);
/** an equal one gives the same id */
uint32_t writer_add_entry(struct writer *writer, const struct trace_entry *entry);
/** an equal one gives the same id */
uint32_t writer_add_heap(struct writer *writer, const struct trace_heap *heap);

/** Add a loss. Once the file is full, a gap without room becomes a number in the footer. */
void writer_add_gap(struct writer *writer, const struct trace_gap *gap);

/** Whether writing has come to an end: the limit, a full disk, an error. What is given to the writer from then on goes
 *  into no number but those of writer_count_after(). */
bool writer_has_ended(const struct writer *writer);

/** Bytes that the file may still get, or UINT64_MAX: any number. */
uint64_t writer_room_left(const struct writer *writer);

/** Count calls of a process (TRACE_NONE: of none that is known) that were made after that, from these ticks on. The
 *  writer itself counts the events that it could not write. */
void writer_count_after(struct writer *writer, uint32_t process, uint64_t calls, uint64_t ticks);

/** Whether the last thing that was to be written found no room below the file's greatest size. */
bool writer_is_full(const struct writer *writer);

/** Have note(cookie, process) called whenever calls were counted so, of this process, or of none that is known
    (TRACE_NONE). */
void writer_note_after(struct writer *writer, void (*note)(void *cookie, uint32_t process), void *cookie);

/** Return how many there have been of the process, or of none that is known (TRACE_NONE). */
uint64_t writer_calls_after(const struct writer *writer, uint32_t process);

/** Return how many there have been of all. */
uint64_t writer_all_calls_after(const struct writer *writer);

/** The row of a process, with ticks for times, until one is added or changed; NULL: there is none. */
const struct trace_process *writer_process(const struct writer *writer, uint32_t id);

/** Return the error of a writer that has ended; set why, and the ticks of the first call that was counted, 0 without
    one. */
int writer_end_reason(const struct writer *writer, char reason[TRACE_REASON_BYTES], uint64_t *ticks);

/** Go on with a file whose writer has ended, as that one said by writer_end_reason(): nothing more is written but the
    file's end. */
void writer_end_early(struct writer *writer, int error, const char *reason, uint64_t ticks);

/** Add the functions of a frame's code, inlined ones first. Not in a segment that gets nodes later: reopen a finished
    file for it. */
void writer_add_symbol(struct writer *writer, uint32_t frame, const struct trace_function *functions, uint32_t count);

/** Name a frame, which no stack has yet, by its functions, inlined ones first: each segment that has the frame has the
    names. An image of the frame is its source file, in Python. */
void writer_name_frame(struct writer *writer, uint32_t frame, const struct trace_function *functions, uint32_t count);

/** As writer_name_frame(), of a frame of no image that stacks may have. Segments that are past get no name; the last
    one has it for all. */
void writer_name_frame_late(struct writer *writer, uint32_t frame, const struct trace_function *functions,
			    uint32_t count);

/** Ticks of the clock at a time since T = 0; a reader makes the same time of them, where the clock has a tick a
    nanosecond or more. */
uint64_t writer_ticks(const struct writer *writer, int64_t time_ns);

/** Add what is in place of events. Times are nanoseconds since T = 0, places those of the dictionaries. */
void writer_add_fold(struct writer *writer, const struct trace_fold *fold);

/** Add a sum, with `sum->spread` lifetimes. Times and places are as in a fold. */
void writer_add_sum(struct writer *writer, const struct trace_sum *sum, const struct trace_lifetime *lifetimes);

/** Add whether an image has symbols. */
void writer_add_named(struct writer *writer, const struct trace_named *named);

/** Add what was resident of a process that was added. */
void writer_add_sample(struct writer *writer, const struct trace_sample *sample);

/** Add what was resident of a process that was added, by kind of mapping, with resident->spread parts. */
void writer_add_resident(struct writer *writer, const struct trace_resident *resident,
			 const struct trace_resident_part *parts);

/** Add the resident pages of a process that was added, with pages->spread runs. */
void writer_add_pages(struct writer *writer, const struct trace_pages *pages, const struct trace_page_run *runs);

/** Add the limits of a process that was added. */
void writer_add_limit(struct writer *writer, const struct trace_limit *limit);

/** Add facts about the end of a process that was added. */
void writer_add_cause(struct writer *writer, const struct trace_cause *cause);

/** A row that was added has changed (a process ended, an image was unloaded, a thread got its name). */
void writer_update_process(struct writer *writer, uint32_t id, const struct trace_process *process);

/** The same, of a thread. */
void writer_update_thread(struct writer *writer, uint32_t id, const struct trace_thread *thread);

/** The same, of a mapping, which stays one of its process. */
void writer_update_mapping(struct writer *writer, uint32_t id, const struct trace_mapping *mapping);

/** The rows that a writer keeps to the end, for all its files, and about how many bytes they take. */
struct writer_kept {
	uint32_t nodes, frames; /**< of stacks */
	uint32_t rows;          /**< of all else that events refer to */
	uint64_t stack_bytes, row_bytes;
};
enum { WRITER_NODE_BYTES = 64, WRITER_FRAME_BYTES = 48, WRITER_ROW_BYTES = 128 };

/** Return what the writer keeps now. */
struct writer_kept writer_kept(const struct writer *writer);

/** Add no more than so many nodes and frames from now on; UINT32_MAX: any number. */
void writer_limit_stacks(struct writer *writer, uint32_t more_nodes, uint32_t more_frames);

/** The id of the frame (image, offset); an equal one gives the same id. TRACE_NONE: it would be one more than the
    limit. */
uint32_t writer_intern_frame(struct writer *writer, uint32_t image, uint64_t offset);

/** The node of `frame` called from `parent` (0: the root). The hot path of the logger: a few nanoseconds when it was
 *  seen lately. TRACE_NONE: it would be one more than the limit. */
uint32_t writer_intern_node(struct writer *writer, uint32_t parent, uint32_t frame);

/** Encode and write a block of events; at most 65,536. The columns can be reused at return. 0 or a negative errno. */
int writer_write_events(struct writer *writer, const struct writer_events *events, struct diag *diag);

/** Dictionary rows and everything before are in the file (not necessarily on the disk). */
int writer_flush(struct writer *writer, struct diag *diag);

/** End a file of pieces, if it has events, the end of a process, or is_forced, and go on in the next. */
int writer_turn(struct writer *writer, bool is_forced, struct diag *diag);

/** For recovery: the last buffer sequence written for (region, slot), or UINT32_MAX when none. */
uint32_t writer_last_sequence(const struct writer *writer, uint64_t region, uint32_t slot);

/** Likewise the events that the file has behind these and behind the part of a buffer: its writer was ended between the
    two parts of a block, of which only the second one names the buffers. */
uint32_t writer_events_behind(const struct writer *writer, uint64_t region, uint32_t slot);

/** Likewise the part_events written last for buffer `sequence` of (region, slot); 0 when none. */
uint32_t writer_last_part(const struct writer *writer, uint64_t region, uint32_t slot, uint32_t sequence);

/** Return the id of the file, of 16 bytes: the one that a reader gives as trace_dictionary(trace)->id. */
const uint8_t *writer_id(const struct writer *writer);

/** Return the bytes of the file. */
uint64_t writer_size_bytes(const struct writer *writer);

/** The greatest size of a file that is written from front to end; 0: it has none. */
uint64_t writer_limit_bytes(const struct writer *writer);

/** Return the events that were written. */
uint64_t writer_event_count(const struct writer *writer);

/** Return the events that this writer wrote, by enum event_kind, without failed calls and calls in flight. */
const uint64_t *writer_kind_counts(const struct writer *writer);

/** Frames in the tree of all stacks. */
uint32_t writer_node_count(const struct writer *writer);

/** How the stack of a node, which must exist, ends outwards. */
enum trace_stack_end writer_stack_end(const struct writer *writer, uint32_t node);

/** Events of segments that a circular file has no more. */
uint64_t writer_dropped_events(const struct writer *writer);

/** Write the footer with the statistics, close and free. 0 or a negative errno; freed either way. */
int writer_close(struct writer *writer, const struct trace_statistics *statistics, struct diag *diag);

/** Let go of a file that was reopened, as it is. */
void writer_abandon(struct writer *writer);

#endif
