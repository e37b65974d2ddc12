/* SPDX-License-Identifier: MIT */
/**
 * Reading a trace: the dictionaries of the whole file, and its blocks of events, one at a time.
 *
 * Everything that comes from the file is checked before it is used; a damaged part ends what can be read and
 * is reported through `struct diag` with its offset. All memory belongs to the trace, until trace_close().
 */
#ifndef XHEAP_TRACE_TRACE_H
#define XHEAP_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/events.h"

/** An id that names nothing. */
#define TRACE_NONE UINT32_MAX

/** A time that is not known, or has not come. */
#define TRACE_TIME_NONE INT64_MAX

/** Events of a block, at most. */
enum { TRACE_BLOCK_EVENTS_MAX = 1 << 16 };

/** How a process or its image ended. */
#define TRACE_ENDS(X) \
	X(OPEN, "running") \
	X(EXIT, "exit") X(SIGNAL, "signal") X(EXEC, "exec") X(UNKNOWN, "unknown") X(DETACHED, "detached")
#define X(id, word) TRACE_END_##id,
enum trace_end { TRACE_ENDS(X) TRACE_END_COUNT };
#undef X

/** One image of one pid. Its id is its place in trace->processes and is never reused. */
struct trace_process {
	uint32_t pid;             /**< 0: not known */
	uint32_t parent;          /**< process id of the parent, or TRACE_NONE */
	uint32_t forked_from;     /**< process id whose heap it inherited by fork, or TRACE_NONE */
	uint32_t exec_generation; /**< 0 for the first image of the pid, then 1, 2, ... */
	int64_t start_ns, end_ns; /**< end_ns: see trace_process_end_is_known() */
	uint8_t end;              /**< enum trace_end */
	int32_t end_status;       /**< exit status or signal number */
	const char *image;        /**< path of the executed file */
	const char *command;      /**< command line, arguments separated by one space */
	const char *note;         /**< why it could not be traced; "" when it was */
};

/** Whether end_ns is the time of the process's end. */
static inline bool trace_process_end_is_known(const struct trace_process *process)
{
	return process->end != TRACE_END_OPEN && process->end_ns != TRACE_TIME_NONE;
}

/** Whether the process ran without the recorder: nothing is known of its threads, its calls and its end. */
static inline bool trace_process_is_untraced(const struct trace_process *process)
{
	return process->note && *process->note;
}

/** Return the word of an end: "running", "exit", "signal", ... */
const char *trace_end_word(const struct trace_process *process);

/** Its id is its place in trace->threads. */
struct trace_thread {
	uint32_t process;
	uint32_t tid;
	int64_t start_ns, end_ns; /**< first and last event */
	const char *name;         /**< "" when unknown */
};

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
 *  image TRACE_NONE: offset is the run-time pc (code of no image, JIT), TRACE_FRAME_TRUNCATED or
 *  TRACE_FRAME_UNWINDLESS. */
struct trace_frame {
	uint32_t image;
	uint64_t offset;
};
#define TRACE_FRAME_TRUNCATED 1  /**< the stack was cut here: it is too deep, or a check failed */
#define TRACE_FRAME_UNWINDLESS 2 /**< the frame inside this place has no unwind data */

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

/** The tid of no thread: of the row whose events are the blocks from before an attach. */
#define TRACE_TID_NONE 0

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

/** Events that were not recorded, or were recorded without stacks. */
struct trace_gap {
	uint32_t process, thread;
	int64_t from_ns, to_ns;
	uint64_t count[EVENT_KIND_COUNT]; /**< lost events by kind */
	uint64_t bytes[EVENT_KIND_COUNT]; /**< requested bytes of those */
	uint64_t stacks;                  /**< events that were kept without their stack */
};

/** Recording ended before the processes that it recorded: the disk was full, or the file as large as it may be. */
struct trace_early_end {
	/** that still ran then, or began later; TRACE_NONE: the row is of the recording, and has the reason */
	uint32_t process;
	int64_t time_ns; /**< every call up to then is in the trace, but for those in gaps */
	/** of the process that were made later and counted; TRACE_NONE: those of processes without a row */
	uint64_t calls;
	const char *reason; /**< "" in rows of processes */
};

/** How much memory of a process was resident, when the logger looked. */
struct trace_sample {
	uint32_t process;
	int64_t time_ns;
	uint64_t resident_bytes;
};

/* clang-format off */

/** X(id, word, words): the kinds of mappings. Files have their places here: append, never reorder. `word` is the key in
    reports, `words` are for people. */
#define TRACE_MAPPING_KINDS(X) \
	X(FILES, "files", "files") \
	X(STACKS, "stacks", "stacks") \
	X(BREAK, "break", "program break") \
	X(ANONYMOUS, "anonymous", "anonymous") \
	X(CODE, "code", "executable without a file") \
	X(SHARED, "shared", "shared memory") \
	X(RECORDER, "recorder", "recorder") \
	X(OTHER, "other", "other mappings") \
	X(UNREAD, "unread", "not read")

/* clang-format on */

/** The kind of a mapping of a process. */
enum trace_mapping_kind {
#define X(id, word, words) TRACE_MAPPING_##id,
	TRACE_MAPPING_KINDS(X)
#undef X
		TRACE_MAPPING_KIND_COUNT
};

/** The resident memory of a process at a time, by kind of mapping. */
struct trace_resident {
	uint32_t process;
	int64_t time_ns;
	uint64_t bytes[TRACE_MAPPING_KIND_COUNT];
	uint64_t mapping_count; /**< of the process */
	uint32_t first, spread; /**< places in trace->resident_parts, and how many: its largest mappings */
};

/** One of the largest mappings of a process: neighbours of one kind and name, joined. */
struct trace_resident_part {
	uint8_t kind;       /**< enum trace_mapping_kind */
	uint64_t base, end; /**< run-time addresses [base, end) */
	uint64_t resident_bytes;
	const char *name; /**< path of the file, or the name that the program gave; "" without */
};

/** No limit. */
#define TRACE_LIMIT_NONE UINT64_MAX

/** How much memory a process may have, when its recording began. */
struct trace_limit {
	uint32_t process;
	uint64_t address_space_bytes; /**< RLIMIT_AS, the soft limit */
	uint64_t data_bytes;          /**< RLIMIT_DATA */
	uint64_t cgroup_bytes;        /**< the least one of its cgroup and of those above it */
	uint64_t machine_bytes;       /**< the machine's memory, without swap */
};

/** A number that the kernel did not tell. */
#define TRACE_CAUSE_UNKNOWN UINT64_MAX

/** Facts about the end of a process that a signal ended. The numbers count from the begin of its recording on, and
    include the process itself. */
struct trace_cause {
	uint32_t process;
	bool has_core;          /**< the kernel dumped a core */
	uint64_t cgroup_kills;  /**< processes of its cgroup that the kernel killed for want of memory */
	uint64_t cgroup_hits;   /**< hits of the memory limit of its cgroup */
	uint64_t machine_kills; /**< processes of the whole machine that the kernel killed for want of memory */
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

/** Whether an image had symbols when they were stored. The last one of an image holds. */
struct trace_named {
	uint32_t image;
	bool has_symbols;
};

/** An option of the session, in the order written. */
struct trace_option {
	const char *name, *value;
};

/** An option that tells which blocks from before an attach are not known, and why. */
#define TRACE_OPTION_EARLIER_MISSING "earlier-missing"

/** An option that names a process in which inactive code of the recording was still mapped when it ended: its pid,
 *  bytes, threads in the code, and then its command. */
#define TRACE_OPTION_INACTIVE "inactive"
#define TRACE_INACTIVE_FORMAT "pid=%d bytes=%" PRIu64 " threads=%" PRIu32 " "
#define TRACE_INACTIVE_SCAN "pid=%d bytes=%" SCNu64 " threads=%" SCNu32 " %n"

/** An option that tells which functions of an allocator, called by a recorded process, could not be hooked, and why. */
#define TRACE_OPTION_UNHOOKED "unhooked"

/** An option that tells how many execs of recorded processes nobody followed: what they executed is in no list. */
#define TRACE_OPTION_UNTRACED_EXECS "untraced-execs"

/** An option that names a process whose memory that it shares with the logger was cut, could not be kept, or says what
 *  cannot be true: what lay there is not in the trace. */
#define TRACE_OPTION_DAMAGED "damaged-memory"

/** An option that says that the end of the recording is missing, and nobody knows how many calls: the machine
    stopped. */
#define TRACE_OPTION_UNFINISHED "unfinished"

/** An option that says which trigger made the flight recorder write the file, and why. */
#define TRACE_OPTION_TRIGGERED "triggered"

/** An option that names a process of which not every stack, thread or heap could be kept: there are more than a limit
    of the logger allows. */
#define TRACE_OPTION_LIMITED "limited"

/** Properties of the blocks of a sum. */
enum trace_sum_flag {
	TRACE_SUM_OPEN = 1,       /**< they were alive when their process ended; else they were given back */
	TRACE_SUM_EARLIER = 2,    /**< they were there before the trace */
	TRACE_SUM_NESTED = 4,     /**< they lay in other blocks */
	TRACE_SUM_HAS_NESTED = 8, /**< other blocks lay in them */
	TRACE_SUM_THREADS = 16    /**< of several threads of the process that have ended; `thread` is one of them */
};

/** The sum of ended blocks of one thread, heap, stack and function that began in one interval of time. Their events are
    not in the trace. */
struct trace_sum {
	uint32_t thread, heap; /**< heap: place in trace->heaps, or TRACE_NONE */
	uint32_t stack, entry; /**< node, and place in trace->entries, or TRACE_NONE */
	uint8_t flags;         /**< enum trace_sum_flag, of all of them */
	int64_t birth_first_ns, birth_last_ns, end_first_ns, end_last_ns;
	uint64_t lifetime_min_ns, lifetime_max_ns, size_min, size_max;
	uint64_t recorded; /**< blocks; the numbers below are estimates if the trace is a sample */
	uint64_t count, bytes, reallocs, moved, temporary;
	double count_variance, bytes_variance;
	uint64_t peak_count, peak_bytes; /**< live when most was live of what is folded, see struct trace_fold */
	double peak_count_variance, peak_bytes_variance;
	uint32_t first, spread; /**< places in trace->lifetimes, and how many */
};

/** How many blocks of a sum lived about so long. */
struct trace_lifetime {
	uint32_t class; /**< query/lifetime.h explains it */
	uint64_t count;
};

/** The time whose ended blocks are in sums. */
struct trace_fold {
	int64_t until_ns;    /**< points up to then are folded; of what was live then everything is there */
	int64_t interval_ns; /**< sums are of times from a multiple of it to the next */
	int64_t peak_at_ns;
	uint64_t peak_bytes; /**< the most that was live up to then */
	/** events that are not there any more */
	uint64_t event_count, kind_count[EVENT_KIND_COUNT], failed, in_flight;
	struct stack_ends ends; /**< of their stacks */
	bool is_whole_known;    /**< ends.whole is a number: the trace is not older than it */
	uint64_t unknown_frees, order_conflicts;
};

/** The cost of tracing, summed by the logger at the session's end. */
struct trace_statistics {
	bool is_known;           /**< the trace has them: a recording that did not end has not */
	uint64_t waits, wait_ns; /**< times that targets waited for a free buffer, and for how long */
	uint64_t logger_cpu_ns;  /**< user and system time of the logger */
	uint64_t recorder_ns;    /**< estimate of the time spent in hooks; 0 when not known */
	uint64_t buffers_written, buffer_size, peak_buffers;
	uint64_t suppressed; /**< calls nested in the allocator, not events */
	uint64_t unwatched;  /**< blocks of a sample whose end was not watched for: too many were live */
	/** events of annotated heaps of which it is not told which: there were too many heaps */
	uint64_t heapless;
	/** of threads and processes that found no room, or inside of others: they are no events */
	uint64_t untraced_calls;
};

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
};

struct trace; /* opaque except for the dictionaries below, see trace_dictionary() */

/** The dictionaries of the whole file, merged over its segments. */
struct trace_dictionary {
	const struct trace_process *processes;
	uint32_t process_count;
	const struct trace_thread *threads;
	uint32_t thread_count;
	const struct trace_image *images;
	uint32_t image_count;
	const struct trace_mapping *mappings;
	uint32_t mapping_count;
	const struct trace_frame *frames;
	uint32_t frame_count;
	const struct trace_node *nodes;
	uint32_t node_count;
	const uint8_t *stack_ends; /**< enum trace_stack_end, by node */
	const struct trace_entry *entries;
	uint32_t entry_count;
	const struct trace_heap *heaps;
	uint32_t heap_count;
	const struct trace_gap *gaps;
	uint32_t gap_count;
	const struct trace_early_end *early_ends;
	uint32_t early_end_count; /**< none if recording went on to the end */
	const struct trace_sample *samples;
	uint32_t sample_count; /**< of each process in the order of time */
	const struct trace_resident *residents;
	uint32_t resident_count; /**< of each process in the order of time; 0 in an older trace */
	const struct trace_resident_part *resident_parts;
	uint32_t resident_part_count;
	const struct trace_limit *limits;
	uint32_t limit_count; /**< the last one of a process holds */
	const struct trace_cause *causes;
	uint32_t cause_count; /**< the last one of a process holds */
	const struct trace_symbol *symbols;
	uint32_t symbol_count;
	const struct trace_function *functions;
	uint32_t function_count;
	const struct trace_named *nameds;
	uint32_t named_count;
	const struct trace_option *options;
	uint32_t option_count;
	/** one for each trace that was merged into this one and has sums */
	const struct trace_fold *folds;
	uint32_t fold_count;
	const struct trace_sum *sums;
	uint32_t sum_count;
	const struct trace_lifetime *lifetimes;
	uint32_t lifetime_count;
	uint8_t id[16];                        /**< random; files in which one recording went on have one */
	const char *host;                      /**< node name, system, release, machine */
	const char *clock;                     /**< "tsc" or "monotonic_raw" */
	int64_t start_realtime_ns;             /**< CLOCK_REALTIME of T = 0 */
	int64_t duration_ns;                   /**< the latest time in the file */
	bool is_complete;                      /**< has a footer and nothing was skipped */
	uint64_t cut_offset;                   /**< where reading ended when it is not complete */
	const char *cut_reason;                /**< and why; "" when complete */
	uint64_t size_bytes;                   /**< of the file */
	uint64_t contents;                     /**< a hash of the file's blocks; copies of a trace have one */
	uint64_t event_count;                  /**< events in all blocks, by their headers, and those that are folded */
	uint64_t kind_count[EVENT_KIND_COUNT]; /**< successful ones by kind, likewise */
	uint64_t folded_count;                 /**< of all these events, those that are folded */
	uint64_t failed_count, in_flight_count;
	struct stack_ends ends; /**< of the stacks of all these events */
	bool is_whole_known;    /**< ends.whole is a number: no part of the trace is older than it */
	uint64_t unwritten_blocks, unwritten_events; /**< what could not be written though recording went on */
	/** of segments that are not there any more: the past of a circular file, a flight recorder */
	uint64_t dropped_events;
	int64_t dropped_until_ns; /**< the last of those; from there on nothing is missing */
	struct trace_statistics statistics;
};

/** Return whether a program has told of heaps or blocks of its own (xheap/heap.h, requests to Valgrind). */
bool trace_has_annotations(const struct trace_dictionary *dictionary);

/** Open the trace at path: 0, or a negative errno with its reason in diag. A file cut short opens; see is_complete. */
int trace_open(struct trace **out, const char *path, struct diag *diag);

/** As trace_open(), with the ids of processes, threads and mappings that its writer gave; rows that are not there any
    more are blank. */
int trace_open_as_written(struct trace **out, const char *path, struct diag *diag);

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

/** Free the cursor, which may be NULL. */
void trace_cursor_free(struct trace_cursor *cursor);

/** Decode block i. Valid until the cursor's next call. 0, or a negative errno with the offset in diag. */
int trace_cursor_read(struct trace_cursor *cursor, uint32_t i, struct trace_block *block, struct diag *diag);

#endif
