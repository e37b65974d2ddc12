/* SPDX-License-Identifier: MIT */
/**
 * Reading a trace: the dictionaries of the whole file, and its blocks of events, one at a time.
 *
 * Everything that comes from the file is checked before it is used; a damaged part ends what can be read and
 * is reported through `struct diag` with its offset. All memory belongs to the trace, until trace_close().
 */
#ifndef XHEAP_TRACE_READER_H
#define XHEAP_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/thread_context.h"

/** Events of a block, at most. */
enum { TRACE_BLOCK_EVENTS_MAX = 1 << 16 };

/** A block of events: of one thread, in the order of the calls' returns. Columns of `count` values each. */
struct trace_block {
	uint32_t process, thread;
	uint32_t count;
	int64_t first_ns, last_ns; /**< bounds of all points in it */
	const uint8_t *kind;       /**< enum event_kind */
	const uint8_t *flags;      /**< bits of enum event_flag */
	const uint16_t *entry;     /**< place in trace->entries */
	const uint32_t *heap;      /**< place in trace->heaps, or TRACE_NONE */
	const uint32_t *stack;     /**< node of the stack tree (callers of the function, innermost); 0: none */
	/** the point: Alloc and ReAlloc at return, Free at entry; since the trace's start */
	const int64_t *time_ns;
	const int64_t *duration_ns; /**< ReAlloc: its first point is at time_ns - duration_ns, exactly */
	const uint64_t *address;    /**< block gained (Alloc, ReAlloc) or given back (Free) */
	const uint64_t *previous;   /**< ReAlloc: the old block; else 0 */
	const uint64_t *size;       /**< requested bytes; 0 for Free unless the function names a size */
	/** usable bytes; 0 when unknown. Of a Free: 0, or what its block had, while earlier blocks were being found */
	const uint64_t *usable;
	const uint64_t *argument; /**< count of calloc/reallocarray, alignment of the aligned family; else 0 */
	/** memptr of posix_memalign; size of one where calloc's product is 0 or overflows; usable bytes of realloc's
	    old block, while earlier blocks were being found; else 0 */
	const uint64_t *argument2;
	const int32_t *result; /**< error number of a failed call; else 0 */
	/** of a sample: contexts of the thread, where they change; before the first one there is none */
	const struct context_change *contexts;
	uint32_t context_count;
};

struct trace; /* opaque but for trace_dictionary() */
struct trace_dictionary;

/** Open the trace at path: 0, or a negative errno with its reason in diag. A file cut short opens; see is_complete. */
int trace_open(struct trace **out, const char *path, struct diag *diag);

/** As trace_open(), or -ECANCELED soon after *is_cancelled is set (base/cancel.h). */
int trace_open_unless(struct trace **out, const char *path, const bool *is_cancelled, struct diag *diag);

/** As trace_open(), with the ids of processes, threads and mappings that its writer gave; rows that are not there any
    more are blank. */
int trace_open_as_written(struct trace **out, const char *path, struct diag *diag);

/** As trace_open(), of a file that may grow: trace_go_on() reads what is added. */
int trace_open_growing(struct trace **out, const char *path, struct diag *diag);

/** Read what was added to the file of trace_open_growing() since then. All that is known keeps its place; pointers
 *  into the dictionary, and cursors, are not valid any more. Return 0; or a negative errno with the reason in `diag`:
 *  -ESTALE if the file has not only grown. */
int trace_go_on(struct trace *trace, struct diag *diag);

/** Close the file, and free all that is of the trace. */
void trace_close(struct trace *trace);

/** Whether `later` is the same file when more was written: all that `trace` has of it that others refer to by place,
 *  and its event blocks, are at the same places. Rows may tell more (how a process ended). */
bool trace_continues(const struct trace *trace, const struct trace *later);

/** Valid until trace_close(). */
const struct trace_dictionary *trace_dictionary(const struct trace *trace);

/** Number of event blocks; those of one thread are in the order of its calls. */
uint32_t trace_block_count(const struct trace *trace);

/** The header of block i, without its columns (they are NULL). */
void trace_block_head(const struct trace *trace, uint32_t i, struct trace_block *head);

/** Decodes columns into memory of its own; one per reading thread. */
struct trace_cursor;

/** Return a cursor, which must be freed before the trace is closed; NULL without memory. */
struct trace_cursor *trace_cursor_new(const struct trace *trace);

/** Columns that a cursor may leave out. */
enum trace_skip_columns {
	TRACE_WITHOUT_ADDRESSES = 1, /**< `address` and `previous`, which take half of the time */
	TRACE_WITHOUT_TIMES = 2      /**< `time_ns` and `duration_ns`, which take half of the rest */
};

/** Have later reads leave out columns, any of enum trace_skip_columns: they have any values then, and their damage
    is not found. */
void trace_cursor_leave_out(struct trace_cursor *cursor, unsigned columns);

/** Free the cursor, which may be NULL. */
void trace_cursor_free(struct trace_cursor *cursor);

/** Decode block i. Valid until the cursor's next call. 0, or a negative errno with the offset in diag. */
int trace_cursor_read(struct trace_cursor *cursor, uint32_t i, struct trace_block *block, struct diag *diag);

/** Return the context that the thread had at event i of a block that was read; NULL: none is known. */
const struct thread_context *trace_block_context(const struct trace_block *block, uint32_t i);

/** Set the times that were left out of the block that was read last. Return as trace_cursor_read(). */
int trace_cursor_read_times(struct trace_cursor *cursor, struct diag *diag);

#endif
