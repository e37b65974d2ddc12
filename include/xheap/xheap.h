/* SPDX-License-Identifier: MIT */
/**
 * xheap from a program: record the heap calls of processes in sessions, read traces event by event or allocation by allocation, and ask for
 * the reports that the command xheap gives. Link with -lxheap (pkg-config xheap). docs/xheap-api.md has examples.
 *
 * Rules that hold for every call:
 *
 * Results.  A call that can fail returns an enum xheap_status: XHEAP_OK, below zero when it failed. `error`, the last parameter, then says
 *     what and why; it may be NULL. What a failed call was to give is NULL.
 * Threads.  Every call may be made by any thread at any time, on one trace or session by several at once. Iterators, reports and frames are
 *     used by one thread at a time; several of one trace by as many threads are independent.
 * Memory.   What a call gives by a pointer to a pointer is the caller's, until it is given back by the _close or _free of its kind. Texts and
 *     structs that a handle points to live as long as that handle. A trace lives until it is closed and nothing of it is left open, so the
 *     order does not matter. NULL may be closed and freed.
 * Manners.  Nothing is printed, no signal handler and no locale set, and the program never ended; out of memory is an error like others
 *     (what the call had taken until then may stay taken, and a trace may have to be opened again). Descriptors are closed at exec. A call that
 *     reads a large trace begins threads for it, which end before it returns (of an iterator: with it) and handle no signals.
 * Growth.   Structs that the caller fills begin with `size`, which their _init function sets beside the defaults: members come to be behind the
 *     last one. Structs that a handle points to grow in the same way. Numbers of enums stay.
 * Units.    Sizes are bytes; times are nanoseconds since the trace's start, which was at start_realtime_ns by the wall clock. Texts are
 *     UTF-8. An id is a place in one of the trace's lists, XHEAP_NONE where there is none. docs/semantics.md says what each number means.
 */
#ifndef XHEAP_XHEAP_H
#define XHEAP_XHEAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Grows with what is added here. */
#define XHEAP_API_VERSION 2

/** No id, no count. */
#define XHEAP_NONE UINT32_MAX

enum xheap_status {
	XHEAP_OK = 0,
	XHEAP_END = 1,           /**< of an iterator: there is no more */
	XHEAP_INVALID = -1,      /**< an argument that cannot be */
	XHEAP_NOT_FOUND = -2,    /**< no such file, session or process */
	XHEAP_EXISTS = -3,       /**< there is one already: a session of this name, a process that is recorded */
	XHEAP_DENIED = -4,       /**< not allowed to this user */
	XHEAP_DAMAGED = -5,      /**< no trace, or one that cannot be read */
	XHEAP_NO_MEMORY = -6,
	XHEAP_NO_MATCH = -7,     /**< frames that were required are nowhere in the trace */
	XHEAP_GONE = -8,         /**< the session's logger is gone, or does not answer */
	XHEAP_FAILED = -9        /**< anything else */
};

/** What went wrong. */
typedef struct xheap_error {
	int32_t status;          /**< enum xheap_status */
	int32_t system_error;    /**< the errno behind it; 0: none is known */
	char text[512];          /**< "what: why", without a line feed */
} xheap_error;

/** Who is told of things beside the results. Each may be NULL; they are called by the thread that made the call, before it returns, and may make
 *  no call on the same handle. */
typedef struct xheap_callbacks {
	size_t size;
	void *user;              /**< given to each */
	void (*on_error)(void *user, const xheap_error *error); /**< each failed call on the handle, and its opening */
	void (*on_note)(void *user, const char *text); /**< what a session's logger tells, such as a process that could not be recorded */
	void (*on_progress)(void *user, uint64_t done, uint64_t all); /**< now and then, while a large trace is read for its allocations */
} xheap_callbacks;

void xheap_callbacks_init(xheap_callbacks *callbacks, size_t size);

/** A word for a status: "not found". Valid for ever. */
const char *xheap_status_name(int32_t status);

/* ==== sessions ==== */

/** A named recording, by its name: it goes on when the handle is closed, and when the program ends. */
typedef struct xheap_session xheap_session;

/** On which calls stacks are recorded; bits. */
enum xheap_stacks { XHEAP_STACKS_NONE = 0, XHEAP_STACKS_ALLOC = 1, XHEAP_STACKS_REALLOC = 2, XHEAP_STACKS_FREE = 4,
		    XHEAP_STACKS_CREATE = 8, XHEAP_STACKS_DESTROY = 16, XHEAP_STACKS_ALL = 31 };

/** What a thread does when there is no buffer for its event. */
enum xheap_full {
	XHEAP_FULL_WAIT,         /**< it waits, as long as there is progress: nothing is lost */
	XHEAP_FULL_DROP          /**< it goes on, and the loss is counted */
};

typedef struct xheap_session_options {
	size_t size;
	const char *path;        /**< of the trace; NULL: xheap.NAME.xht here */
	const int32_t *pids;     /**< processes to begin with: all of them are recorded, or none and nothing is started */
	size_t pid_count;
	uint64_t max_file_bytes; /**< recording ends when the trace has this size, 65536 at least; 0: no limit */
	uint64_t sample_bytes;   /**< record blocks by chance, one byte in so many that are asked for; 0: all of them */
	uint32_t stacks;         /**< enum xheap_stacks; all */
	uint32_t stack_depth;    /**< most frames of a stack; 0: as many as can be */
	uint32_t buffer_bytes;   /**< 65536 to 1048576; 0: 65536 */
	uint32_t min_buffers, max_buffers; /**< of each process, 2 to 65536; 0: 32 and 1024 */
	uint32_t on_full;        /**< enum xheap_full; XHEAP_FULL_WAIT */
	uint32_t wait_limit_ms;  /**< no wait is longer than this without progress; 0: 5000 */
	uint32_t without_durations; /**< 1: how long calls took is not recorded */
	uint32_t without_children; /**< 1: what the processes execute is not recorded */
	const char *const *words; /**< further options of `xheap start`, as its manual has them */
	size_t word_count;
	const char *command;     /**< the command xheap, which becomes the logger; NULL: the environment's XHEAP, else xheap in PATH */
	const xheap_callbacks *callbacks; /**< of the handle, copied; NULL: none */
} xheap_session_options;

void xheap_session_options_init(xheap_session_options *options, size_t size);

/** Start a session and open it. Its name has up to 64 bytes, without / and control characters, and begins with none of . - and a blank.
 *  options NULL: the defaults. XHEAP_EXISTS: there is one of this name. */
int xheap_session_start(const char *name, const xheap_session_options *options, xheap_session **session, xheap_error *error);

/** Open a session that is there. callbacks NULL: none. */
int xheap_session_open(const char *name, const xheap_callbacks *callbacks, xheap_session **session, xheap_error *error);

/** The session goes on. */
void xheap_session_close(xheap_session *session);

/** An executed image and what it forked. */
typedef struct xheap_target {
	int32_t pid;
	uint32_t processes, threads; /**< that live */
	uint64_t events, lost_events, truncated_stacks;
	uint64_t waits, wait_ns; /**< for want of buffers */
	uint64_t resident_bytes;
	const char *command;     /**< command line */
	uint64_t cpu_ns;         /**< of its own; version 2 of the API and later, as what follows */
	uint64_t events_per_second; /**< of the last seconds; of the time since the last flush or query, where the flush timer is longer */
	uint64_t pause_ns;       /**< all its threads stood so long when it was attached to; 0: it was not */
	uint64_t unwindless_stacks; /**< that end at a frame without unwind data */
	uint64_t whole_stacks;   /**< that reach the start of their thread */
} xheap_target;

/** A thread of a target that lives. */
typedef struct xheap_target_thread {
	uint32_t target;         /**< place in the state's targets */
	int32_t tid;
	uint64_t events, truncated_stacks, events_per_second;
	uint64_t waits, wait_ns; /**< for want of buffers, since its first events were taken */
	const char *name;        /**< "" when unknown */
	uint64_t unwindless_stacks; /**< that end at a frame without unwind data */
	uint64_t whole_stacks;   /**< that reach the start of their thread */
} xheap_target_thread;

typedef struct xheap_session_state {
	const char *name;
	const char *path;        /**< of the trace */
	const char *ended;       /**< why recording ended early; NULL: it goes on */
	int32_t logger_pid;
	uint32_t target_count;   /**< xheap_session_state_get_target() */
	int64_t started_realtime_ns; /**< since 1970 */
	uint64_t events, lost_events, truncated_stacks;
	uint64_t waits, wait_ns; /**< for want of buffers */
	uint64_t size_bytes;     /**< of the trace */
	uint64_t max_file_bytes;
	uint64_t logger_cpu_ns;
	uint64_t buffers_written;
	uint32_t buffer_bytes, min_buffers, max_buffers, buffers, free_buffers;
	uint32_t stacks, on_full, wait_limit_ms;
	uint32_t flush_timer_ms; /**< what is older is in the trace, or the memory */
	const char *file_mode;   /**< as --file-mode of `xheap start` has it */
	uint64_t dropped_events; /**< of the past, which are not kept */
	const char *clock;       /**< what times are taken from: "tsc" or "monotonic_raw" */
	uint64_t logger_bytes;   /**< of memory; version 2 of the API and later, as what follows */
	uint64_t folded_bytes;   /**< of a long run: what is folded, */
	int64_t folded_until_ns; /**< and up to when */
	uint32_t write_count;    /**< times that memory was written out */
	uint32_t thread_count;   /**< xheap_session_state_get_thread(); 0 unless they were asked for */
	uint64_t unwindless_stacks; /**< that end at a frame without unwind data */
	uint64_t whole_stacks;   /**< that reach the start of their thread */
	uint32_t is_real_time;   /**< 1: it was begun with --real-time */
	uint32_t is_clock_chosen; /**< 1: its clock was asked for; 0: the best that there is was taken */
	uint64_t calls_after_end; /**< that were made and counted after recording had ended early */
	uint64_t logger_limit_bytes; /**< what logger_bytes may come to */
	uint64_t disk_bytes;     /**< of all files, also of those that a long run makes for a moment, or of what is kept in memory */
	uint64_t disk_limit_bytes; /**< what these may come to; 0: there is no limit */
	uint64_t folding_bytes;  /**< memory of the process that folds; 0: there is none */
} xheap_session_state;

/** What the session has recorded, and what that costs. */
int xheap_session_query(xheap_session *session, xheap_session_state **state, xheap_error *error);

/** The same with each thread that lives, target by target. */
int xheap_session_query_threads(xheap_session *session, xheap_session_state **state, xheap_error *error);

/** Target i, thread i of the state, NULL when there is none. */
const xheap_target *xheap_session_state_get_target(const xheap_session_state *state, uint32_t i);
const xheap_target_thread *xheap_session_state_get_thread(const xheap_session_state *state, uint32_t i);
void xheap_session_state_free(xheap_session_state *state);

/** What of an update counts; bits. */
enum xheap_change { XHEAP_CHANGE_PIDS = 1, XHEAP_CHANGE_STACKS = 2, XHEAP_CHANGE_ON_FULL = 4, XHEAP_CHANGE_WAIT_LIMIT = 8 };

typedef struct xheap_update {
	size_t size;
	uint32_t changes;        /**< enum xheap_change; what is not said stays */
	uint32_t stacks, on_full, wait_limit_ms; /**< as in xheap_session_options */
	const int32_t *pids;     /**< XHEAP_CHANGE_PIDS: these are recorded, and no others */
	size_t pid_count;
	const int32_t *added, *removed; /**< these, too; these no longer */
	size_t added_count, removed_count;
} xheap_update;

void xheap_update_init(xheap_update *update, size_t size);

/** Change the session: all of it, or nothing. When a process cannot be let go of, those that were are attached to again. At most 256 at once. */
int xheap_session_update(xheap_session *session, const xheap_update *update, xheap_error *error);

/** Record these processes, too: all of them, or none. Let go of them: they run on. */
int xheap_session_add(xheap_session *session, const int32_t *pids, size_t count, xheap_error *error);
int xheap_session_remove(xheap_session *session, const int32_t *pids, size_t count, xheap_error *error);

/** Run a program in the session, recorded from its first instruction on. `file` is looked for as execvp does; arguments and environment end
 *  with NULL (environment NULL: this program's). It is this program's child, to be waited for. */
int xheap_session_launch(xheap_session *session, const char *file, char *const arguments[], char *const environment[], int32_t *pid,
			 xheap_error *error);

/** Write into the trace all that is recorded up to now. */
int xheap_session_flush(xheap_session *session, xheap_error *error);

typedef struct xheap_summary {
	size_t size;
	uint64_t events, lost_events, truncated_stacks, size_bytes;
	uint64_t waits, wait_ns, logger_cpu_ns, peak_buffer_bytes;
	uint32_t processes, untraced_processes;
	uint64_t untraced_calls;
	uint64_t unwindless_stacks; /**< that end at a frame without unwind data */
	uint64_t whole_stacks;   /**< that reach the start of their thread */
} xheap_summary;

void xheap_summary_init(xheap_summary *summary, size_t size);

/** End the session: its processes run on, its trace is whole when this returns. summary may be NULL. The handle is still to be closed. */
int xheap_session_stop(xheap_session *session, xheap_summary *summary, xheap_error *error);

/** Call visit with each session of this user, until it returns other than 0; is_alive: it has a logger. Returns what visit did, else 0. Root is
 *  told of the other users', too: "UID/NAME", a name for all calls but xheap_session_start(). */
int xheap_session_each(int (*visit)(void *user, const char *name, int is_alive), void *user);

/* ==== traces ==== */

typedef struct xheap_trace xheap_trace;

typedef struct xheap_open_options {
	size_t size;
	const xheap_callbacks *callbacks; /**< of the handle, copied; NULL: none */
	uint32_t without_index;  /**< 1: FILE.index is not read, should it be there. None is ever written */
	uint32_t without_files;  /**< 1: names come from the trace alone: no executable or debug file is opened here, nor asked of a server */
} xheap_open_options;

void xheap_open_options_init(xheap_open_options *options, size_t size);

/** Open a trace. One that is cut short opens, too: see is_complete. options NULL: the defaults. The file is not trusted. */
int xheap_trace_open(const char *path, const xheap_open_options *options, xheap_trace **trace, xheap_error *error);

/** Open what a session has recorded up to now; what comes later is in it when it is opened again. */
int xheap_trace_open_session(const char *name, const xheap_open_options *options, xheap_trace **trace, xheap_error *error);

void xheap_trace_close(xheap_trace *trace);

/** Make one trace, `path`, of several of one machine since it was started; their times then count from the beginning of the first one.
 *  XHEAP_INVALID: they do not go together. A file that is there is replaced when all is written. */
int xheap_trace_merge(const char *path, const char *const *paths, size_t count, xheap_error *error);

/** Kinds of events. */
enum xheap_kind {
	XHEAP_KIND_ALLOC, XHEAP_KIND_REALLOC, XHEAP_KIND_FREE, XHEAP_KIND_CREATE, XHEAP_KIND_DESTROY, XHEAP_KIND_LOCK, XHEAP_KIND_UNLOCK,
	XHEAP_KIND_PROTECT, XHEAP_KIND_RESERVE, XHEAP_KIND_RELEASE,
	XHEAP_KIND_EARLIER,      /**< no call: a block from before the trace */
	XHEAP_KIND_COUNT
};

/** "Alloc"; NULL when there is no such kind. */
const char *xheap_kind_name(uint32_t kind);

typedef struct xheap_trace_info {
	const char *path, *host, *clock;
	const char *cut_reason;  /**< why reading ended early; "" when complete */
	uint64_t size_bytes;     /**< of the file */
	uint64_t event_count;
	uint64_t kind_counts[16]; /**< of successful calls, by enum xheap_kind */
	uint64_t failed_calls;
	uint64_t lost_events;    /**< gaps and what did not fit the file, summed up */
	uint64_t lost_stacks, truncated_stacks;
	int64_t start_realtime_ns; /**< since 1970 */
	int64_t duration_ns;
	uint64_t sample_bytes;   /**< blocks were recorded by chance, one byte in so many that were asked for; 0: all of them */
	uint32_t is_complete;    /**< 1: the trace has its end, all of it can be read, no heap call of a recorded process is missing, and no process ran untraced */
	uint32_t process_count, thread_count, image_count, heap_count, function_count, gap_count, sample_count;
	uint32_t stack_count;    /**< ids of stacks are below; 0 is none */
	uint32_t option_count;
	uint64_t unwindless_stacks; /**< that end at a frame without unwind data; truncated_stacks are those that were cut */
	uint64_t whole_stacks;   /**< that reach the start of their thread; UINT64_MAX: not known, the trace is older than this number */
} xheap_trace_info;

const xheap_trace_info *xheap_trace_get_info(const xheap_trace *trace);

/** How a process or its image ended. */
enum xheap_process_end { XHEAP_PROCESS_RUNNING, XHEAP_PROCESS_EXIT, XHEAP_PROCESS_SIGNAL, XHEAP_PROCESS_EXEC, XHEAP_PROCESS_UNKNOWN,
			 XHEAP_PROCESS_DETACHED };

/** One image of one pid. */
typedef struct xheap_process {
	uint32_t pid;
	uint32_t parent;         /**< process id, or XHEAP_NONE */
	uint32_t forked_from;    /**< process whose heap it inherited, or XHEAP_NONE */
	uint32_t exec_generation; /**< 0 for the first image of the pid */
	int64_t start_ns, end_ns; /**< end_ns: INT64_MAX while it runs, or if its end is not known */
	uint32_t end;            /**< enum xheap_process_end */
	int32_t end_status;      /**< exit status or signal number */
	const char *image, *command;
	const char *note;        /**< why it could not be recorded; "" when it was */
} xheap_process;

typedef struct xheap_thread {
	uint32_t process;
	uint32_t tid;            /**< 0: no thread; its events are the blocks from before an attach */
	int64_t start_ns, end_ns; /**< first and last event */
	const char *name;        /**< "" when unknown */
} xheap_thread;

typedef struct xheap_image {
	const char *path;        /**< "[vdso]" and the like for what is no file */
	const uint8_t *build_id; /**< NULL: it has none */
	uint32_t build_id_size;
} xheap_image;

typedef struct xheap_heap {
	uint32_t process;
	uint64_t handle;
	const char *name;        /**< "libc.so.6 main arena" */
} xheap_heap;

/** A function that allocates, as the program called it. */
typedef struct xheap_function {
	const char *name;        /**< its symbol: "malloc", "je_malloc" */
	uint32_t image;          /**< that defines it */
} xheap_function;

/** Events that were not recorded, or without their stacks. */
typedef struct xheap_gap {
	uint32_t process, thread;
	int64_t from_ns, to_ns;
	uint64_t counts[16], bytes[16]; /**< lost events by enum xheap_kind, and the bytes that these asked for */
	uint64_t stacks;         /**< events that were kept without their stack */
} xheap_gap;

/** How much memory of a process was resident. */
typedef struct xheap_sample {
	uint32_t process;
	int64_t time_ns;
	uint64_t resident_bytes;
} xheap_sample;

/** What the session says about itself, such as how it was asked to record, and what it could not find out. A name may come several times. */
typedef struct xheap_option {
	const char *name, *value;
} xheap_option;

/** Row `id` of the trace's lists; NULL when there is none. */
const xheap_process *xheap_trace_get_process(const xheap_trace *trace, uint32_t id);
const xheap_thread *xheap_trace_get_thread(const xheap_trace *trace, uint32_t id);
const xheap_image *xheap_trace_get_image(const xheap_trace *trace, uint32_t id);
const xheap_heap *xheap_trace_get_heap(const xheap_trace *trace, uint32_t id);
const xheap_function *xheap_trace_get_function(const xheap_trace *trace, uint32_t id);
const xheap_gap *xheap_trace_get_gap(const xheap_trace *trace, uint32_t id);
const xheap_sample *xheap_trace_get_sample(const xheap_trace *trace, uint32_t id);
const xheap_option *xheap_trace_get_option(const xheap_trace *trace, uint32_t id);

/* ==== stacks ==== */

/** The innermost address of a stack as it was recorded, and the stack of its callers. */
typedef struct xheap_address {
	uint32_t caller;         /**< stack id; 0: there is none */
	uint32_t image;          /**< XHEAP_NONE: of no image, offset is a run-time address, 1 where the stack was cut, or 2 where a frame has no unwind data */
	uint64_t offset;         /**< return address within the image as its file counts */
} xheap_address;

/** XHEAP_END: stack is 0. Needs no symbols, and costs nothing. */
int xheap_trace_get_address(const xheap_trace *trace, uint32_t stack, xheap_address *address);

/** A frame as people know it. */
typedef struct xheap_frame {
	const char *text;        /**< "image!symbol", "image+0xoffset", or a mark such as "[truncated]", "[no unwind data]" */
	const char *image;       /**< file name; NULL: none */
	const char *symbol;      /**< demangled; NULL: unknown */
	const char *mangled;     /**< as the file has it; NULL: unknown or the same */
	const char *file;        /**< of the source; NULL: unknown */
	uint32_t line;           /**< 0: unknown */
	uint32_t is_inlined;     /**< 1: inlined into the next frame */
	uint32_t image_id;       /**< XHEAP_NONE: none, or not the same for all that the frame stands for */
	uint64_t offset;         /**< 0: in the same case */
} xheap_frame;

/** The frames of a stack, innermost first. */
typedef struct xheap_frames xheap_frames;

/** Name the frames of a stack, with what was inlined, from the symbols of the trace or those of this machine. `function` becomes the first
 *  frame; XHEAP_NONE: none does. Executables and debug files are opened and mapped at first use, until the trace is closed; see without_files. */
int xheap_trace_get_frames(xheap_trace *trace, uint32_t stack, uint32_t function, xheap_frames **frames, xheap_error *error);
uint32_t xheap_frames_count(const xheap_frames *frames);
const xheap_frame *xheap_frames_get(const xheap_frames *frames, uint32_t i);
void xheap_frames_free(xheap_frames *frames);

/* ==== events ==== */

/** What is known of an event beside its numbers; bits. */
enum xheap_event_flag {
	XHEAP_EVENT_FAILED = 1,      /**< the call gave NULL or an error */
	XHEAP_EVENT_IN_FLIGHT = 2,   /**< it had not returned when its process ended */
	XHEAP_EVENT_IN_SIGNAL = 4,   /**< made by a signal handler that interrupted another heap call */
	XHEAP_EVENT_NO_STACK = 8,    /**< its stack was not recorded */
	XHEAP_EVENT_TRUNCATED = 16,  /**< the stack's outer part is missing */
	XHEAP_EVENT_NO_DURATION = 32 /**< nor how long it took */
};

/** One heap call. */
typedef struct xheap_event {
	uint64_t number;         /**< in the order of time; UINT64_MAX with XHEAP_ORDER_FILE */
	int64_t time_ns;         /**< the call's effect: of a free, its entry, of others, their return */
	int64_t duration_ns;
	uint32_t kind, flags;    /**< enum xheap_kind, bits of enum xheap_event_flag */
	uint32_t process, thread, heap, function; /**< ids */
	uint32_t pid, tid;
	uint32_t stack;          /**< of the function's callers; 0: none */
	int32_t result;          /**< errno of a failed call, else 0 */
	uint64_t address;        /**< the block that was gained or given back */
	uint64_t previous_address; /**< of a realloc: the old block */
	uint64_t size;           /**< that was asked for */
	uint64_t usable_size;    /**< 0: unknown */
	uint64_t argument;       /**< count of calloc, alignment of aligned functions, else 0 */
} xheap_event;

/** Events of one thread that come one after the other, as columns of `count` values. */
typedef struct xheap_event_batch {
	uint64_t first_number;   /**< of the first one, as in xheap_event */
	uint32_t count, process, thread;
	const int64_t *time_ns, *duration_ns;
	const uint8_t *kind, *flags;
	const uint16_t *function;
	const uint32_t *heap, *stack;
	const int32_t *result;
	const uint64_t *address, *previous_address, *size, *usable_size, *argument;
} xheap_event_batch;

enum xheap_order {
	XHEAP_ORDER_TIME,        /**< all threads as one sequence; batches are short where many threads are busy */
	XHEAP_ORDER_FILE         /**< as they are stored: thousands of one thread at a time, the fastest */
};

typedef struct xheap_events_options {
	size_t size;
	int64_t from_ns, to_ns;  /**< events whose time is in this range, both ends included; all */
	uint32_t order;          /**< enum xheap_order; XHEAP_ORDER_TIME */
} xheap_events_options;

void xheap_events_options_init(xheap_events_options *options, size_t size);

typedef struct xheap_events xheap_events;

/** Go through the events of a trace. options NULL: all of them in the order of time. */
int xheap_events_open(xheap_trace *trace, const xheap_events_options *options, xheap_events **events, xheap_error *error);

/** The next event, or the next ones; valid until the next call. The two can be mixed. XHEAP_END: there is none. XHEAP_DAMAGED: nor can more
 *  be read. */
int xheap_events_next(xheap_events *events, const xheap_event **event, xheap_error *error);
int xheap_events_next_batch(xheap_events *events, const xheap_event_batch **batch, xheap_error *error);
void xheap_events_close(xheap_events *events);

/* ==== allocations ==== */

/** Where an allocation's beginning and free lie as to a window: AI, AO: inside or before it; FI, FO: inside, or after it or never. What was freed before it or
 *  allocated after it is in none. */
enum xheap_window_class { XHEAP_AIFI, XHEAP_AIFO, XHEAP_AOFI, XHEAP_AOFO, XHEAP_CLASS_ANY };

/** Which allocations count: those that pass all of it. The defaults pass all. Texts of frames are patterns as `xheap heap` takes them. */
typedef struct xheap_filter {
	size_t size;
	int64_t from_ns, to_ns;  /**< begun in this range, both ends included; INT64_MIN and INT64_MAX: all of the trace */
	uint64_t size_from, size_to; /**< from <= size < to; UINT64_MAX: no end */
	uint64_t lifetime_from_ns, lifetime_to_ns; /**< as these */
	uint32_t is_closed;      /**< 1: only what was given back */
	uint32_t window_class;   /**< enum xheap_window_class; XHEAP_CLASS_ANY */
	int64_t window_from_ns, window_to_ns; /**< both ends included */
	const uint32_t *pids, *tids; /**< of one of these; none: all */
	size_t pid_count, tid_count;
	const char *const *heaps; /**< of one of these: handles, or parts of names */
	size_t heap_count;
	const char *const *require_frames, *const *require_free_frames; /**< one of these on the stack that allocated, that freed */
	size_t require_frame_count, require_free_frame_count;
} xheap_filter;

void xheap_filter_init(xheap_filter *filter, size_t size);

/** How an allocation ended. */
enum xheap_end {
	XHEAP_END_FREE, XHEAP_END_REALLOC, XHEAP_END_DESTROY,
	XHEAP_END_GAP,           /**< in a gap: its address was allocated again */
	XHEAP_END_CONFLICT,      /**< its address was allocated again and nothing tells why */
	XHEAP_END_EXIT,          /**< alive when its process ended or executed another image */
	XHEAP_END_OPEN           /**< alive at the end of the trace */
};

enum xheap_allocation_flag {
	XHEAP_ALLOCATION_REALLOC = 1,   /**< made by the realloc of a block */
	XHEAP_ALLOCATION_MOVED = 2,     /**< to another address */
	XHEAP_ALLOCATION_TEMPORARY = 4, /**< freed by the very next event of the thread that made it */
	XHEAP_ALLOCATION_EARLIER = 8    /**< from before the trace; birth_ns says nothing */
};

/** A block with its history. */
typedef struct xheap_allocation {
	uint32_t number;         /**< in the order of births */
	uint32_t end, flags;     /**< enum xheap_end, bits of enum xheap_allocation_flag */
	int64_t birth_ns, end_ns; /**< end_ns of open ones: the trace's end */
	uint64_t address, size;
	uint64_t usable_size;    /**< the size where it is unknown */
	uint32_t stack, function; /**< that allocated it; function XHEAP_NONE: from before the trace */
	uint32_t end_stack, end_function; /**< that gave it back; 0 and XHEAP_NONE: none did */
	uint32_t thread, end_thread; /**< the same; end_thread may be XHEAP_NONE */
	uint32_t heap;
	uint32_t previous;       /**< number of the allocation that a realloc made it from, or XHEAP_NONE */
	uint64_t weight_count, weight_bytes; /**< blocks and bytes that it stands for: 1 and its size but in a sample */
} xheap_allocation;

/** The same as columns of `count` values. */
typedef struct xheap_allocation_batch {
	uint32_t count;
	const uint32_t *number;
	const uint8_t *end, *flags;
	const int64_t *birth_ns, *end_ns;
	const uint64_t *address, *size, *usable_size, *weight_count, *weight_bytes;
	const uint32_t *stack, *function, *end_stack, *end_function, *thread, *end_thread, *heap, *previous;
} xheap_allocation_batch;

typedef struct xheap_allocations xheap_allocations;

/** Go through the allocations that pass the filter (NULL: all) in the order of their births. The first call on a trace matches all its events.
 *  XHEAP_NO_MATCH: none of the required frames is in the trace. */
int xheap_allocations_open(xheap_trace *trace, const xheap_filter *filter, xheap_allocations **allocations, xheap_error *error);

/** The next allocation, or the next ones; as xheap_events_next(). */
int xheap_allocations_next(xheap_allocations *allocations, const xheap_allocation **allocation, xheap_error *error);
int xheap_allocations_next_batch(xheap_allocations *allocations, const xheap_allocation_batch **batch, xheap_error *error);
void xheap_allocations_close(xheap_allocations *allocations);

/* ==== reports ==== */

/** What `xheap heap` takes; NULL in place of a word: its default. */
typedef struct xheap_report_options {
	size_t size;
	const xheap_filter *filter; /**< NULL: all allocations */
	const char *action;      /**< stacks, frames, frames-inclusive, image, heaps, tree, callers, chains, totals; "stacks" */
	const char *sort;        /**< so soc st stc src sp spc stt */
	const char *by;          /**< split rows by process, thread, heap, size, lifetime, time, class; not split */
	const char *callers_of;  /**< a pattern, for the action callers */
	uint64_t top;            /**< most rows; 10000 */
	const char *const *cull_frames; /**< patterns of frames to take off the innermost end of stacks */
	size_t cull_frame_count;
	const char *const *cull_files; /**< lists of such patterns, one a line */
	size_t cull_file_count;
	uint32_t without_default_cull; /**< 1: the built-in list is not used */
	uint32_t with_lines;     /**< 1: functions are told apart by the line of the call */
} xheap_report_options;

void xheap_report_options_init(xheap_report_options *options, size_t size);

typedef struct xheap_numbers {
	uint64_t total_count, total_bytes;
	uint64_t outstanding_count, outstanding_bytes;
	uint64_t realloc_count, realloc_moved_count, temporary_count, open_count;
	uint64_t peak_count, peak_bytes; /**< live at the moment of the whole's peak */
	uint64_t recorded_count; /**< recorded blocks that total_count stands for: the same but in a sample */
	double total_count_error, total_bytes_error, outstanding_count_error, outstanding_bytes_error, peak_count_error, peak_bytes_error;
				 /**< standard errors of estimates; 0 where nothing is estimated */
} xheap_numbers;

typedef struct xheap_totals {
	const xheap_numbers *numbers;
	int64_t from_ns, to_ns;  /**< the range that counts */
	int64_t peak_at_ns;
	uint64_t earlier_count, earlier_bytes; /**< from before the trace, in no total */
	uint64_t uncertain_count, uncertain_bytes; /**< outstanding, but may have been freed in a gap */
	uint64_t unknown_frees, order_conflicts;
	uint64_t row_count, rows_cut; /**< rows before the cut, and how many `top` left out */
} xheap_totals;

typedef struct xheap_row {
	const char *text;        /**< what the row is of: a stack's frames with ; between them, a function, an image, a heap */
	const char *by;          /**< which part of the split: "pid 17 (python3)"; "" without one. Where labels are alike, the id follows: "pid 17 (python3) #3" */
	const xheap_numbers *numbers;
	int64_t lifetime_min_ns, lifetime_median_ns, lifetime_max_ns; /**< 0 where total_count is, and with inclusive actions */
	uint32_t threads, processes; /**< 0 with inclusive actions */
	uint32_t depth;          /**< in a tree */
	uint32_t parent;         /**< row around it in a tree, or XHEAP_NONE */
	uint32_t extra_count;    /**< numbers that only this action has, */
	const char *const *extra_names; /**< by name: "steps" */
	const uint64_t *extra;
	uint32_t process, thread; /**< of the split by process, thread or heap: their ids in the trace; else XHEAP_NONE */
} xheap_row;

typedef struct xheap_report xheap_report;

/** Ask. */
int xheap_report_make(xheap_trace *trace, const xheap_report_options *options, xheap_report **report, xheap_error *error);
const xheap_totals *xheap_report_get_totals(const xheap_report *report);

/** Row i in the order of the sort (of a tree, each behind the one around it), NULL behind the last one. */
const xheap_row *xheap_report_get_row(const xheap_report *report, uint32_t i);

/** The frames of a row of the action stacks, as culled. */
int xheap_report_get_frames(xheap_report *report, uint32_t row, xheap_frames **frames, xheap_error *error);

enum xheap_format { XHEAP_FORMAT_TEXT, XHEAP_FORMAT_CSV, XHEAP_FORMAT_JSON };

/** The report as `xheap heap` prints it. *text ends with a NUL, which *length does not count; length may be NULL. xheap_text_free() it. */
int xheap_report_write(xheap_report *report, uint32_t format, char **text, size_t *length, xheap_error *error);
void xheap_text_free(char *text);
void xheap_report_free(xheap_report *report);

#ifdef __cplusplus
}
#endif

#endif
