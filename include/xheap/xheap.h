/* SPDX-License-Identifier: MIT */
/**
 * The interface of libxheap for C and C++ programs. A program can record the heap calls of processes in sessions. It
 * can read traces event by event or allocation by allocation, and make the reports of the command xheap.
 *
 * Link with -lxheap (pkg-config xheap). docs/xheap-api.md has examples. docs/semantics.md defines every number.
 *
 * These rules hold for every call:
 *
 * Results.  A function that can fail returns an enum xheap_status: XHEAP_OK, XHEAP_END, or a negative number on
 *     failure. Its last parameter, `error`, receives the status and a sentence with the reason. `error` may be NULL. On
 *     failure the function stores NULL in its output pointer.
 * Threads.  Every thread may call every function at any time. Several threads may use one trace or one session at once.
 *     Only one thread at a time may use one iterator, report or frames handle. Handles of one trace are independent.
 * Memory.   The caller owns each object that a function returns through a pointer to a pointer. The caller frees it
 *     with the matching _close or _free function, which accepts NULL. A text or struct inside a handle lives as long as
 *     the handle. Iterators, reports and frames keep their trace open, so the order of closing does not matter.
 * Manners.  The library prints nothing, sets no signal handler and no locale, and never ends the program. It returns
 *     XHEAP_NO_MEMORY when memory runs out; memory that the call had already taken may stay taken, and the program may
 *     have to open the trace again. The library closes its descriptors at exec. A call that reads a large trace starts
 *     threads that handle no signals. These threads end before the call returns; those of an iterator end with it.
 * Growth.   Each struct that the caller fills begins with `size`. Its _init function sets `size` and the defaults. A
 *     later version adds members only behind the last one. Structs inside a handle grow in the same way. Numbers of
 *     enums never change. Bits that this header does not name may be set in `flags`: ignore them.
 * Units.    Sizes are in bytes. Times are in nanoseconds since the start of the trace; the wall clock then showed
 *     start_realtime_ns. Texts are UTF-8 and end with a NUL. An id is an index into one of the lists of the trace, and
 *     XHEAP_NONE stands for no id. A pid or tid is the kernel's number.
 */
#ifndef XHEAP_XHEAP_H
#define XHEAP_XHEAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface. It grows when a release adds members or functions. */
#define XHEAP_API_VERSION 3

/** The id or count that stands for "none". */
#define XHEAP_NONE UINT32_MAX

/** The result of a call. Negative numbers are failures. */
enum xheap_status {
	XHEAP_OK = 0,         /**< success */
	XHEAP_END = 1,        /**< the iterator has no more elements; not a failure */
	XHEAP_INVALID = -1,   /**< an argument is not valid */
	XHEAP_NOT_FOUND = -2, /**< no such file, directory, session or process */
	XHEAP_EXISTS = -3,    /**< a session of this name exists, or another session records the process */
	XHEAP_DENIED = -4,    /**< the user lacks a permission */
	XHEAP_DAMAGED = -5,   /**< the file is not a trace, or it cannot be decoded */
	XHEAP_NO_MEMORY = -6, /**< memory ran out */
	XHEAP_NO_MATCH = -7,  /**< no frame of the trace matches the required frames */
	XHEAP_GONE = -8,      /**< the logger of the session has ended or does not answer */
	XHEAP_FAILED = -9     /**< any other failure; the text gives the reason */
};

/**
 * The reason of a failed call. The caller owns the struct; each call with `error` overwrites it, with status 0 or 1 on
 * success.
 */
typedef struct xheap_error {
	int32_t status;       /**< enum xheap_status, the same as the return value */
	int32_t system_error; /**< the errno behind the failure; 0: none */
	char text[512];       /**< one sentence without a line feed; "" on success */
} xheap_error;

/**
 * Functions of the program that the library calls for one handle. Each may be NULL. The library calls them in the
 * thread that made the call, before the call returns. They must not use the same handle.
 */
typedef struct xheap_callbacks {
	size_t size; /**< set by xheap_callbacks_init() */
	void *user;  /**< passed to each function; the library does not use it */
	/**
	 * Receive the error of each failed call on the handle, the opening included. `error` is valid during the call
	 * only.
	 */
	void (*on_error)(void *user, const xheap_error *error);
	/**
	 * Receive a message of the session's logger, for example: a process cannot be recorded. Only sessions have
	 * messages.
	 */
	void (*on_note)(void *user, const char *text);
	/**
	 * Receive progress while the library matches the events of a large trace: `done` of `all`. Only traces have
	 * progress.
	 */
	void (*on_progress)(void *user, uint64_t done, uint64_t all);
} xheap_callbacks;

/** Fill `callbacks` with the defaults: all NULL. `size` is sizeof(*callbacks). */
void xheap_callbacks_init(xheap_callbacks *callbacks, size_t size);

/** Return a short English name of a status, such as "not found"; "unknown" for other numbers. The text is static. */
const char *xheap_status_name(int32_t status);

/** Return the XHEAP_API_VERSION of the library that is loaded. A program built with another header can compare them. */
uint32_t xheap_api_version(void);

/* ==== sessions ==== */

/** A handle of a named recording. The session outlives the handle and the program. */
typedef struct xheap_session xheap_session;

/** Kinds of calls with a recorded stack; bits. */
enum xheap_stacks {
	XHEAP_STACKS_NONE = 0,     /**< no stacks at all */
	XHEAP_STACKS_ALLOC = 1,    /**< malloc and similar functions */
	XHEAP_STACKS_REALLOC = 2,  /**< realloc and similar functions */
	XHEAP_STACKS_FREE = 4,     /**< free and similar functions */
	XHEAP_STACKS_CREATE = 8,   /**< creation of an annotated heap (xheap/heap.h) */
	XHEAP_STACKS_DESTROY = 16, /**< destruction or reset of an annotated heap */
	XHEAP_STACKS_ALL = 31      /**< all of these */
};

/** The action of a thread that finds no free buffer for its event. */
enum xheap_full {
	XHEAP_FULL_WAIT, /**< wait for a buffer, at most wait_limit_ms without progress; nothing is lost */
	XHEAP_FULL_DROP  /**< drop the event and count the loss */
};

/** Options of a new session. xheap_session_options_init() sets the defaults; 0 or NULL also selects the default. */
typedef struct xheap_session_options {
	size_t size;             /**< set by the _init function */
	const char *path;        /**< path of the trace; NULL: xheap.NAME.xht in the current directory */
	const int32_t *pids;     /**< processes to attach to: all of them, or the start fails; NULL: none yet */
	size_t pid_count;        /**< length of pids, 0 to 256 */
	uint64_t max_file_bytes; /**< largest size of the trace, at least 65536; recording ends there; 0: no limit */
	uint64_t sample_bytes;   /**< mean number of allocated bytes between two sampled bytes; 0: record every block */
	uint32_t stacks;         /**< bits of enum xheap_stacks; default XHEAP_STACKS_ALL, and 0 means no stacks */
	uint32_t stack_depth;    /**< largest number of frames of a stack, 1 to 8192; 0: 8192 */
	uint32_t buffer_bytes;   /**< size of a buffer, 65536 to 1048576; 0: 65536 */
	uint32_t min_buffers;    /**< buffers that each process keeps, 2 to 65536; 0: 2, or 32 with XHEAP_FULL_DROP */
	uint32_t max_buffers;    /**< largest number of buffers of each process, 2 to 65536; 0: 1024 */
	uint32_t on_full;        /**< enum xheap_full; default XHEAP_FULL_WAIT */
	uint32_t wait_limit_ms;  /**< longest wait without progress, in milliseconds; 0: 5000 */
	uint32_t without_durations; /**< 1: do not record the durations of calls */
	uint32_t without_children;  /**< 1: do not record the programs that the processes execute */
	/** More options of `xheap start`, one word each, as xheap-session(1) describes them. */
	const char *const *words;
	size_t word_count; /**< length of words */
	/** Path of the command xheap, which becomes the logger; NULL: $XHEAP, else xheap in PATH. */
	const char *command;
	/** Callbacks of the new handle; the library copies the struct; NULL: none. */
	const xheap_callbacks *callbacks;
} xheap_session_options;

/** Fill `options` with the defaults. `size` is sizeof(*options). */
void xheap_session_options_init(xheap_session_options *options, size_t size);

/**
 * Start a session and open a handle of it. `name` has 1 to 64 bytes without `/` and control characters, and does not
 * begin with a dot, a dash or a space. `options` may be NULL for the defaults. The call runs the command xheap and
 * waits for it. XHEAP_EXISTS: the user has a session of this name, or another session records one of the processes. The
 * caller closes the handle with xheap_session_close().
 */
int xheap_session_start(const char *name, const xheap_session_options *options, xheap_session **session,
			xheap_error *error);

/**
 * Open a handle of an existing session. `callbacks` may be NULL; the library copies the struct. XHEAP_NOT_FOUND: there
 * is no such session. XHEAP_GONE: its logger has ended; `xheap recover` completes its trace.
 */
int xheap_session_open(const char *name, const xheap_callbacks *callbacks, xheap_session **session, xheap_error *error);

/** Close the handle. The session continues. */
void xheap_session_close(xheap_session *session);

/**
 * The state of one target of a session: an executed image and the processes that it forked. Counts are since its start.
 */
typedef struct xheap_target {
	int32_t pid;               /**< pid of the first process */
	uint32_t processes;        /**< live processes of the target */
	uint32_t threads;          /**< live threads of these processes */
	uint64_t events;           /**< recorded events */
	uint64_t lost_events;      /**< events that could not be recorded */
	uint64_t truncated_stacks; /**< stacks whose outer part was cut */
	uint64_t waits;            /**< number of waits for a free buffer */
	uint64_t wait_ns;          /**< total time of these waits, in nanoseconds */
	uint64_t resident_bytes;   /**< resident memory; 0: unknown, or the process has ended */
	const char *command;       /**< command line; "": unknown */
	uint64_t cpu_ns; /**< processor time of the target; this and all later members are in version 2 and later */
	/** Mean of the last seconds; with a longer flush timer, since the last flush or query. */
	uint64_t events_per_second;
	/** Time that the attach paused all threads of the process; 0: the session did not attach to it. */
	uint64_t pause_ns;
	uint64_t unwindless_stacks; /**< stacks that end at a frame without unwind data */
	uint64_t whole_stacks;      /**< stacks that reach the start of their thread */
	/**
	 * 1: the logger cannot keep all stacks, threads and heaps of the target, which has more than any usual program.
	 * It cuts further stacks, and loses the calls of further threads and processes. 0: it keeps them all.
	 */
	uint32_t is_limited;
} xheap_target;

/** The state of one live thread of a target. */
typedef struct xheap_target_thread {
	uint32_t target;            /**< index for xheap_session_state_get_target() */
	int32_t tid;                /**< tid of the kernel */
	uint64_t events;            /**< recorded events */
	uint64_t truncated_stacks;  /**< stacks whose outer part was cut */
	uint64_t events_per_second; /**< as in xheap_target */
	uint64_t waits;   /**< number of waits for a free buffer, since the logger read the thread's first events */
	uint64_t wait_ns; /**< total time of these waits, in nanoseconds */
	const char *name; /**< name of the thread; "": unknown */
	uint64_t unwindless_stacks; /**< stacks that end at a frame without unwind data */
	uint64_t whole_stacks;      /**< stacks that reach the start of their thread */
} xheap_target_thread;

/** The state of a session at one moment. Free it with xheap_session_state_free(). */
typedef struct xheap_session_state {
	const char *name;            /**< name of the session */
	const char *path;            /**< path of the trace; "": the session has no file yet */
	const char *ended;           /**< the reason why recording ended early; NULL: recording continues */
	int32_t logger_pid;          /**< pid of the logger */
	uint32_t target_count;       /**< number of targets; see xheap_session_state_get_target() */
	int64_t started_realtime_ns; /**< start of the session by the wall clock, in nanoseconds since 1970 */
	uint64_t events;             /**< recorded events of all targets, past ones included */
	uint64_t lost_events;        /**< events that could not be recorded */
	uint64_t truncated_stacks;   /**< stacks whose outer part was cut */
	uint64_t waits;              /**< number of waits for a free buffer */
	uint64_t wait_ns;            /**< total time of these waits, in nanoseconds */
	uint64_t size_bytes;         /**< bytes written to the trace, or kept in memory */
	uint64_t max_file_bytes;     /**< largest size of the file or of the kept memory; 0: no limit */
	uint64_t logger_cpu_ns;      /**< processor time of the logger */
	uint64_t buffers_written;    /**< buffers that the logger has emptied */
	uint32_t buffer_bytes;       /**< size of one buffer */
	uint32_t min_buffers;        /**< buffers that each process keeps */
	uint32_t max_buffers;        /**< largest number of buffers of each process */
	uint32_t buffers;            /**< buffers of all processes now */
	uint32_t free_buffers;       /**< buffers that no thread fills now */
	uint32_t stacks;             /**< bits of enum xheap_stacks */
	uint32_t on_full;            /**< enum xheap_full */
	uint32_t wait_limit_ms;      /**< longest wait without progress, in milliseconds */
	uint32_t flush_timer_ms; /**< largest age of an event outside the trace or the kept memory, in milliseconds */
	const char *file_mode;   /**< a value of the option --file-mode, such as "sequential" */
	uint64_t dropped_events; /**< oldest events that a circular file or a flight recorder no longer keeps */
	const char *clock;       /**< clock of the times: "tsc" or "monotonic_raw" */
	/** Resident memory of the logger; this and all later members are in version 2 and later. */
	uint64_t logger_bytes;
	uint64_t folded_bytes;       /**< size of the aggregated part of a long run (--keep live); 0: none */
	int64_t folded_until_ns;     /**< end of the aggregated part; 0 without one */
	uint32_t write_count;        /**< number of times that a flight recorder was written to its file */
	uint32_t thread_count;       /**< number of thread rows; 0 after xheap_session_query() */
	uint64_t unwindless_stacks;  /**< stacks that end at a frame without unwind data */
	uint64_t whole_stacks;       /**< stacks that reach the start of their thread */
	uint32_t is_real_time;       /**< 1: the session was started with --real-time */
	uint32_t is_clock_chosen;    /**< 1: an option chose the clock; 0: the session took the best clock */
	uint64_t calls_after_end;    /**< calls that were counted, but not recorded, after recording ended early */
	uint64_t logger_limit_bytes; /**< upper bound of logger_bytes for the present targets */
	uint64_t disk_bytes; /**< space of all files of the session, temporary ones included, or its kept memory */
	uint64_t disk_limit_bytes; /**< upper bound of disk_bytes; 0: no limit */
	uint64_t folding_bytes;    /**< resident memory of the process that aggregates; 0: no such process now */
} xheap_session_state;

/** Read the state of the session, without its threads. The caller frees `*state` with xheap_session_state_free(). */
int xheap_session_query(xheap_session *session, xheap_session_state **state, xheap_error *error);

/** Read the state of the session with a row for each live thread, grouped by target. The caller frees `*state`. */
int xheap_session_query_threads(xheap_session *session, xheap_session_state **state, xheap_error *error);

/** Return target `i` of the state, from 0 on; NULL behind the last one. The state owns it. */
const xheap_target *xheap_session_state_get_target(const xheap_session_state *state, uint32_t i);

/** Return thread row `i` of the state, from 0 on; NULL behind the last one. The state owns it. */
const xheap_target_thread *xheap_session_state_get_thread(const xheap_session_state *state, uint32_t i);

/** Free the state, its targets and its threads. */
void xheap_session_state_free(xheap_session_state *state);

/** Members of an update that take effect; bits. */
enum xheap_change {
	XHEAP_CHANGE_PIDS = 1,      /**< pids replaces the set of processes */
	XHEAP_CHANGE_STACKS = 2,    /**< stacks */
	XHEAP_CHANGE_ON_FULL = 4,   /**< on_full */
	XHEAP_CHANGE_WAIT_LIMIT = 8 /**< wait_limit_ms */
};

/** A change of a session. xheap_update_init() sets the default: no change. */
typedef struct xheap_update {
	size_t size;            /**< set by the _init function */
	uint32_t changes;       /**< bits of enum xheap_change; the session keeps all other settings */
	uint32_t stacks;        /**< bits of enum xheap_stacks */
	uint32_t on_full;       /**< enum xheap_full */
	uint32_t wait_limit_ms; /**< longest wait without progress, in milliseconds */
	/** With XHEAP_CHANGE_PIDS: the new set; the session detaches from all other processes. */
	const int32_t *pids;
	size_t pid_count;       /**< length of pids, 0 to 256 */
	const int32_t *added;   /**< processes to attach to; independent of `changes` */
	const int32_t *removed; /**< processes to detach from; independent of `changes` */
	size_t added_count;     /**< length of added, 0 to 256 */
	size_t removed_count;   /**< length of removed, 0 to 256 */
} xheap_update;

/** Fill `update` with the default: no change. `size` is sizeof(*update). */
void xheap_update_init(xheap_update *update, size_t size);

/**
 * Change the session: the whole update, or nothing. If a detach fails, the session attaches again to the processes that
 * it has already left; their calls in between are missing.
 */
int xheap_session_update(xheap_session *session, const xheap_update *update, xheap_error *error);

/** Attach to `count` more processes, at most 256: all of them, or none. */
int xheap_session_add(xheap_session *session, const int32_t *pids, size_t count, xheap_error *error);

/** Detach from `count` processes, at most 256: all of them, or none. The processes continue. */
int xheap_session_remove(xheap_session *session, const int32_t *pids, size_t count, xheap_error *error);

/**
 * Run a program in the session and record it from its first instruction. The call finds `file` as execvp() does.
 * `arguments` and `environment` end with NULL; `environment` NULL stands for the environment of this program.
 * The new process is a child of this program, which must wait for it. `*pid` is its pid, or 0 on failure.
 */
int xheap_session_launch(xheap_session *session, const char *file, char *const arguments[], char *const environment[],
			 int32_t *pid, xheap_error *error);

/** Write all events that the targets have recorded until now to the trace. */
int xheap_session_flush(xheap_session *session, xheap_error *error);

/**
 * Write the memory and the registers of a process of the session, at one moment, to a new file: a core for
 * xheap_leaks_make(). `path` is absolute. All threads of the process are paused at that moment, briefly; `may_stop` 1
 * allows a pause as long as copying the memory takes. `*time_ns` gets the time of the moment in the trace, and
 * `*pause_ns` how long the pause was. The trace has the blocks of the moment after xheap_session_flush().
 */
int xheap_session_copy(xheap_session *session, int32_t pid, const char *path, uint32_t may_stop, int64_t *time_ns,
		       uint64_t *pause_ns, xheap_error *error);

/** The totals of a session that has ended. */
typedef struct xheap_summary {
	size_t size;                 /**< set by the _init function */
	uint64_t events;             /**< recorded events */
	uint64_t lost_events;        /**< events that could not be recorded */
	uint64_t truncated_stacks;   /**< stacks whose outer part was cut */
	uint64_t size_bytes;         /**< size of the trace */
	uint64_t waits;              /**< number of waits for a free buffer */
	uint64_t wait_ns;            /**< total time of these waits, in nanoseconds */
	uint64_t logger_cpu_ns;      /**< processor time of the logger */
	uint64_t peak_buffer_bytes;  /**< largest memory of all buffers together */
	uint32_t processes;          /**< recorded processes; a process counts again after an exec or a new attach */
	uint32_t untraced_processes; /**< processes that ran without the recorder */
	uint64_t untraced_calls;     /**< calls of threads and processes that found no room in the shared memory */
	uint64_t unwindless_stacks;  /**< stacks that end at a frame without unwind data */
	uint64_t whole_stacks;       /**< stacks that reach the start of their thread */
} xheap_summary;

/** Fill `summary` with zeros and its size. `size` is sizeof(*summary). */
void xheap_summary_init(xheap_summary *summary, size_t size);

/**
 * End the session: detach from its processes, which continue, and complete the trace before the call returns. `summary`
 * may be NULL; otherwise xheap_summary_init() has filled it. The caller still closes the handle.
 */
int xheap_session_stop(xheap_session *session, xheap_summary *summary, xheap_error *error);

/**
 * Call `visit` with the name of each session of this user, until it returns a number other than 0. Return that number,
 * else 0. `is_alive` is 1 if the logger of the session runs. `name` is valid during the call only. For root, all
 * functions but xheap_session_start() accept "UID/NAME", a session of another user.
 */
int xheap_session_each(int (*visit)(void *user, const char *name, int is_alive), void *user);

/* ==== traces ==== */

/** A handle of an open trace. */
typedef struct xheap_trace xheap_trace;

/** Options for the opening of a trace. xheap_open_options_init() sets the defaults: all 0. */
typedef struct xheap_open_options {
	size_t size; /**< set by the _init function */
	/** Callbacks of the new handle; the library copies the struct; NULL: none. */
	const xheap_callbacks *callbacks;
	uint32_t without_index; /**< 1: do not read an existing index. The library never writes one */
	/** 1: take names from the trace only; open no executable or debug file, ask no server. */
	uint32_t without_files;
} xheap_open_options;

/** Fill `options` with the defaults. `size` is sizeof(*options). */
void xheap_open_options_init(xheap_open_options *options, size_t size);

/**
 * Open a trace file. A truncated trace opens too; then is_complete of xheap_trace_info is 0. `options` may be NULL for
 * the defaults. The library does not trust the file and checks all of it. XHEAP_DAMAGED: the file is not a trace.
 */
int xheap_trace_open(const char *path, const xheap_open_options *options, xheap_trace **trace, xheap_error *error);

/**
 * Flush the session `name` and open its trace as it is now. Later events appear only in a handle that is opened later.
 * Parameters and errors are those of xheap_trace_open() and xheap_session_open().
 */
int xheap_trace_open_session(const char *name, const xheap_open_options *options, xheap_trace **trace,
			     xheap_error *error);

/** Close the trace. Open iterators, reports and frames of it stay valid until they are closed themselves. */
void xheap_trace_close(xheap_trace *trace);

/**
 * Merge `count` traces, two or more, into the new trace `path`. All of them come from one machine and one boot, with
 * one clock. Times of the merged trace count from the start of the earliest one. XHEAP_INVALID: the traces do not
 * match. The call replaces an existing file only after the merge has succeeded.
 */
int xheap_trace_merge(const char *path, const char *const *paths, size_t count, xheap_error *error);

/** Kinds of events. */
enum xheap_kind {
	XHEAP_KIND_ALLOC,   /**< a call returned a new block */
	XHEAP_KIND_REALLOC, /**< a call resized a block */
	XHEAP_KIND_FREE,    /**< a call freed a block */
	XHEAP_KIND_CREATE,  /**< a heap was created */
	XHEAP_KIND_DESTROY, /**< a heap, or all of its blocks, was destroyed */
	XHEAP_KIND_LOCK,    /**< a thread locked a heap */
	XHEAP_KIND_UNLOCK,  /**< a thread unlocked a heap */
	XHEAP_KIND_PROTECT, /**< the protection of memory of a heap changed */
	XHEAP_KIND_RESERVE, /**< address space was reserved; not recorded yet */
	XHEAP_KIND_RELEASE, /**< address space was released; not recorded yet */
	XHEAP_KIND_EARLIER, /**< no call: a pre-existing block, found when the session attached */
	XHEAP_KIND_COUNT    /**< number of kinds; grows */
};

/** Return the name of a kind, such as "Alloc"; NULL for an unknown kind. The text is static. */
const char *xheap_kind_name(uint32_t kind);

/** Facts about a whole trace. */
typedef struct xheap_trace_info {
	const char *path;         /**< path of the file, as the caller gave it */
	const char *host;         /**< name of the machine that recorded it */
	const char *clock;        /**< clock of the times: "tsc" or "monotonic_raw" */
	const char *cut_reason;   /**< why the file cannot be read to its end; "": it can */
	uint64_t size_bytes;      /**< size of the file */
	uint64_t event_count;     /**< events of all kinds, failed calls included */
	uint64_t kind_counts[16]; /**< successful calls by enum xheap_kind */
	uint64_t failed_calls;    /**< calls that returned NULL or an error */
	/** Events that were lost: the sum of all gaps, and events that did not fit into the file. */
	uint64_t lost_events;
	uint64_t lost_stacks;      /**< events that were recorded without their stack because of a loss */
	uint64_t truncated_stacks; /**< stacks whose outer part was cut */
	int64_t start_realtime_ns; /**< start of the trace by the wall clock, in nanoseconds since 1970 */
	int64_t duration_ns;       /**< time from the start to the end of the trace */
	/** Of a sampled trace: mean number of allocated bytes between two sampled bytes; 0: every block. */
	uint64_t sample_bytes;
	/**
	 * 1: the trace has every heap call of the processes that it records, and all pre-existing blocks are known.
	 * "Completeness" in docs/semantics.md lists each reason for 0.
	 */
	uint32_t is_complete;
	uint32_t process_count;     /**< length of the list of processes */
	uint32_t thread_count;      /**< length of the list of threads */
	uint32_t image_count;       /**< length of the list of images */
	uint32_t heap_count;        /**< length of the list of heaps */
	uint32_t function_count;    /**< length of the list of functions */
	uint32_t gap_count;         /**< length of the list of gaps */
	uint32_t sample_count;      /**< length of the list of samples of resident memory */
	uint32_t stack_count;       /**< stack ids are less than this; 0 is the empty stack */
	uint32_t option_count;      /**< length of the list of options */
	uint64_t unwindless_stacks; /**< stacks that end at a frame without unwind data */
	/** Stacks that reach the start of their thread; UINT64_MAX: an older trace, unknown. */
	uint64_t whole_stacks;
} xheap_trace_info;

/** Return the facts about the trace. The trace owns them. */
const xheap_trace_info *xheap_trace_get_info(const xheap_trace *trace);

/** The end of a process, or of one image of it. */
enum xheap_process_end {
	XHEAP_PROCESS_RUNNING, /**< it still ran when the trace ended */
	XHEAP_PROCESS_EXIT,    /**< it exited; end_status is the exit status */
	XHEAP_PROCESS_SIGNAL,  /**< a signal killed it; end_status is the number of the signal */
	XHEAP_PROCESS_EXEC,    /**< it executed another image */
	XHEAP_PROCESS_UNKNOWN, /**< it ended, and the logger does not know how */
	XHEAP_PROCESS_DETACHED /**< the session detached from it */
};

/** One image of one process: an exec begins another row with the same pid. */
typedef struct xheap_process {
	uint32_t pid;             /**< pid of the kernel */
	uint32_t parent;          /**< id of the parent process, or XHEAP_NONE */
	uint32_t forked_from;     /**< id of the process whose heap it inherited by fork, or XHEAP_NONE */
	uint32_t exec_generation; /**< 0 for the first image of the pid, 1 after one exec, and so on */
	int64_t start_ns;         /**< time of its start, or of the attach */
	int64_t end_ns;           /**< time of its end; INT64_MAX: it still runs, or the time is unknown */
	uint32_t end;             /**< enum xheap_process_end */
	int32_t end_status;       /**< exit status or signal number; otherwise 0 */
	const char *image;        /**< path of the executed file */
	const char *command;      /**< command line, with one space between two arguments */
	const char *note;         /**< why the process could not be recorded; "": it was recorded */
} xheap_process;

/** A thread of a process. */
typedef struct xheap_thread {
	uint32_t process; /**< process id */
	uint32_t tid;     /**< tid of the kernel; 0: no real thread, the row of pre-existing blocks */
	int64_t start_ns; /**< time of its first event */
	int64_t end_ns;   /**< time of its last event */
	const char *name; /**< name of the thread; "": unknown */
} xheap_thread;

/** An executable or a shared object. */
typedef struct xheap_image {
	const char *path;        /**< path of the file, or a name such as "[vdso]" */
	const uint8_t *build_id; /**< bytes of the build-id; NULL: the image has none */
	uint32_t build_id_size;  /**< length of build_id */
} xheap_image;

/** A heap: an arena of malloc, a whole allocator, or a heap that the program annotates. */
typedef struct xheap_heap {
	uint32_t process; /**< process id */
	uint64_t handle;  /**< number that identifies the heap within its process */
	const char *name; /**< such as "libc.so.6 main arena" */
} xheap_heap;

/** An allocation function, as the program called it. */
typedef struct xheap_function {
	const char *name; /**< its symbol, such as "malloc" or "je_malloc" */
	uint32_t image;   /**< id of the image that defines it, or XHEAP_NONE */
} xheap_function;

/** A loss: events that were not recorded, or were recorded without their stacks. */
typedef struct xheap_gap {
	uint32_t process;    /**< process id */
	uint32_t thread;     /**< thread id, or XHEAP_NONE */
	int64_t from_ns;     /**< time of the first lost event */
	int64_t to_ns;       /**< time of the last lost event */
	uint64_t counts[16]; /**< lost events by enum xheap_kind */
	uint64_t bytes[16];  /**< bytes that these events requested, by enum xheap_kind */
	uint64_t stacks;     /**< events that were recorded without their stack */
} xheap_gap;

/** The resident memory of a process at one time. */
typedef struct xheap_sample {
	uint32_t process;        /**< process id */
	int64_t time_ns;         /**< time of the measurement */
	uint64_t resident_bytes; /**< resident memory */
} xheap_sample;

/**
 * A fact about the recording: an option of the session, or a limitation that the logger noticed. A name may occur
 * several times. For example, "limited" names a program with more stacks, threads or heaps than the logger keeps.
 */
typedef struct xheap_option {
	const char *name;  /**< such as "buffer-size" or "limited" */
	const char *value; /**< its text */
} xheap_option;

/** Return the process with this id, from 0 to process_count - 1; NULL for another id. The trace owns it. */
const xheap_process *xheap_trace_get_process(const xheap_trace *trace, uint32_t id);

/** Return the thread with this id, from 0 to thread_count - 1; NULL for another id. The trace owns it. */
const xheap_thread *xheap_trace_get_thread(const xheap_trace *trace, uint32_t id);

/** Return the image with this id, from 0 to image_count - 1; NULL for another id. The trace owns it. */
const xheap_image *xheap_trace_get_image(const xheap_trace *trace, uint32_t id);

/** Return the heap with this id, from 0 to heap_count - 1; NULL for another id. The trace owns it. */
const xheap_heap *xheap_trace_get_heap(const xheap_trace *trace, uint32_t id);

/** Return the function with this id, from 0 to function_count - 1; NULL for another id. The trace owns it. */
const xheap_function *xheap_trace_get_function(const xheap_trace *trace, uint32_t id);

/** Return gap number `id`, from 0 to gap_count - 1; NULL for another number. The trace owns it. */
const xheap_gap *xheap_trace_get_gap(const xheap_trace *trace, uint32_t id);

/** Return sample number `id`, from 0 to sample_count - 1; NULL for another number. The trace owns it. */
const xheap_sample *xheap_trace_get_sample(const xheap_trace *trace, uint32_t id);

/** Return option number `id`, from 0 to option_count - 1; NULL for another number. The trace owns it. */
const xheap_option *xheap_trace_get_option(const xheap_trace *trace, uint32_t id);

/* ==== stacks ==== */

/** The innermost return address of a stack, and the stack of its callers. */
typedef struct xheap_address {
	uint32_t caller; /**< stack id of the callers; 0: none */
	uint32_t image;  /**< image id; XHEAP_NONE: `offset` is a run-time address or a mark */
	/** Return address relative to the image, as its file counts; marks: 1 truncated, 2 no unwind data. */
	uint64_t offset;
} xheap_address;

/**
 * Read the innermost address of a stack without symbols. XHEAP_END: `stack` is 0, the empty stack. XHEAP_INVALID: there
 * is no such stack. The call is cheap and opens no file.
 */
int xheap_trace_get_address(const xheap_trace *trace, uint32_t stack, xheap_address *address);

/** A frame with its names. */
typedef struct xheap_frame {
	/** "image!symbol", "image+0xOFFSET", or a mark such as "[truncated]" or "[no unwind data]". */
	const char *text;
	const char *image;   /**< file name of the image; NULL: none */
	const char *symbol;  /**< demangled symbol; NULL: unknown */
	const char *mangled; /**< mangled symbol; NULL: unknown, or the same as `symbol` */
	const char *file;    /**< source file; NULL: unknown */
	uint32_t line;       /**< line in the source file; 0: unknown */
	uint32_t is_inlined; /**< 1: the function is inlined into the next frame */
	uint32_t image_id;   /**< image id; XHEAP_NONE: no image, or the frame stands for several addresses */
	uint64_t offset;     /**< address relative to the image; 0 if image_id is XHEAP_NONE, or for Python */
	const char *kind;    /**< "native", "inlined", "python" or "jit"; later versions may have more */
} xheap_frame;

/** A handle of the frames of one stack, innermost first. */
typedef struct xheap_frames xheap_frames;

/**
 * Find the names of the frames of a stack, inlined functions included. If `function` is not XHEAP_NONE, that function
 * becomes the first frame. Names come from the symbols in the trace or from the files of this machine. The library
 * opens executables and debug files at their first use and keeps them mapped until the trace is closed; see
 * without_files. XHEAP_INVALID: there is no such stack or function. The caller frees the frames with
 * xheap_frames_free().
 */
int xheap_trace_get_frames(xheap_trace *trace, uint32_t stack, uint32_t function, xheap_frames **frames,
			   xheap_error *error);

/** Return the number of frames. */
uint32_t xheap_frames_count(const xheap_frames *frames);

/** Return frame `i`, 0 for the innermost one; NULL behind the last one. The frames handle owns it. */
const xheap_frame *xheap_frames_get(const xheap_frames *frames, uint32_t i);

/** Free the frames. */
void xheap_frames_free(xheap_frames *frames);

/* ==== events ==== */

/** Properties of an event; bits. */
enum xheap_event_flag {
	XHEAP_EVENT_FAILED = 1,      /**< the call returned NULL or an error */
	XHEAP_EVENT_IN_FLIGHT = 2,   /**< the call had not returned when its thread or process ended */
	XHEAP_EVENT_IN_SIGNAL = 4,   /**< a signal handler made the call while another heap call ran */
	XHEAP_EVENT_NO_STACK = 8,    /**< the stack was not recorded */
	XHEAP_EVENT_TRUNCATED = 16,  /**< the outer part of the stack is missing */
	XHEAP_EVENT_NO_DURATION = 32 /**< the duration was not recorded */
};

/** One heap call. */
typedef struct xheap_event {
	uint64_t number;           /**< position in the order of time, from 0 on; UINT64_MAX with XHEAP_ORDER_FILE */
	int64_t time_ns;           /**< the moment of the effect: the entry of a free, the return of every other call */
	int64_t duration_ns;       /**< time from entry to return; 0 with XHEAP_EVENT_NO_DURATION */
	uint32_t kind;             /**< enum xheap_kind */
	uint32_t flags;            /**< bits of enum xheap_event_flag */
	uint32_t process;          /**< process id */
	uint32_t thread;           /**< thread id */
	uint32_t heap;             /**< heap id, or XHEAP_NONE */
	uint32_t function;         /**< id of the called function */
	uint32_t pid;              /**< pid of the kernel */
	uint32_t tid;              /**< tid of the kernel */
	uint32_t stack;            /**< stack of the callers of the function; 0: none */
	int32_t result;            /**< errno of a failed call; otherwise 0 */
	uint64_t address;          /**< the block that the call returned or freed */
	uint64_t previous_address; /**< the old block of a realloc; otherwise 0 */
	uint64_t size;             /**< requested bytes; of a free 0, unless the function has a size parameter */
	uint64_t usable_size;      /**< usable bytes of the block; 0: unknown */
	uint64_t argument;         /**< count of calloc, or alignment of the aligned functions; otherwise 0 */
} xheap_event;

/** Consecutive events of one thread as columns. Each pointer leads to `count` values of the members of xheap_event. */
typedef struct xheap_event_batch {
	uint64_t first_number; /**< number of the first event; UINT64_MAX with XHEAP_ORDER_FILE */
	uint32_t count;        /**< number of events, at least 1 */
	uint32_t process;      /**< process id of all these events */
	uint32_t thread;       /**< thread id of all these events */
	const int64_t *time_ns;
	const int64_t *duration_ns;
	const uint8_t *kind;
	const uint8_t *flags;
	const uint16_t *function;
	const uint32_t *heap;
	const uint32_t *stack;
	const int32_t *result;
	const uint64_t *address;
	const uint64_t *previous_address;
	const uint64_t *size;
	const uint64_t *usable_size;
	const uint64_t *argument;
} xheap_event_batch;

/** The order of an iterator over events. */
enum xheap_order {
	XHEAP_ORDER_TIME, /**< by time over all threads; batches are short if many threads are busy */
	XHEAP_ORDER_FILE  /**< as stored: thousands of events of one thread at a time; the fastest order */
};

/** Options of an iterator over events. xheap_events_options_init() sets the defaults: all events by time. */
typedef struct xheap_events_options {
	size_t size;     /**< set by the _init function */
	int64_t from_ns; /**< time of the first event, included; INT64_MIN: no bound */
	int64_t to_ns;   /**< time of the last event, included; INT64_MAX: no bound */
	uint32_t order;  /**< enum xheap_order */
} xheap_events_options;

/** Fill `options` with the defaults. `size` is sizeof(*options). */
void xheap_events_options_init(xheap_events_options *options, size_t size);

/** An iterator over the events of a trace. */
typedef struct xheap_events xheap_events;

/** Open an iterator over the events of a trace. `options` may be NULL for the defaults. The caller closes it. */
int xheap_events_open(xheap_trace *trace, const xheap_events_options *options, xheap_events **events,
		      xheap_error *error);

/**
 * Read the next event. `*event` belongs to the iterator and is valid until its next call. XHEAP_END: there is no more
 * event. After a failure, such as XHEAP_DAMAGED, every further call fails too.
 */
int xheap_events_next(xheap_events *events, const xheap_event **event, xheap_error *error);

/** Read the next events as a batch, as xheap_events_next() does for one. A program may mix both calls. */
int xheap_events_next_batch(xheap_events *events, const xheap_event_batch **batch, xheap_error *error);

/** Close the iterator. */
void xheap_events_close(xheap_events *events);

/* ==== allocations ==== */

/**
 * The class of an allocation with respect to a time window. A block that was freed before the window, whose process
 * ended before it, or that was allocated after it, is in no class.
 */
enum xheap_window_class {
	XHEAP_AIFI,     /**< allocated inside the window, freed inside it */
	XHEAP_AIFO,     /**< allocated inside, freed after the window or never */
	XHEAP_AOFI,     /**< allocated before the window, freed inside it */
	XHEAP_AOFO,     /**< allocated before, freed after the window or never */
	XHEAP_CLASS_ANY /**< no condition */
};

/**
 * Conditions on allocations. An allocation passes if it meets all of them. xheap_filter_init() sets the defaults, which
 * every allocation passes. Frame patterns are those of xheap-heap(1), such as "libc!malloc" or "jv_*".
 */
typedef struct xheap_filter {
	size_t size;                       /**< set by the _init function */
	int64_t from_ns;                   /**< earliest time of the allocation, included; INT64_MIN: no bound */
	int64_t to_ns;                     /**< latest time of the allocation, included; INT64_MAX: no bound */
	uint64_t size_from;                /**< smallest requested size, included */
	uint64_t size_to;                  /**< first size above the range; UINT64_MAX: no bound */
	uint64_t lifetime_from_ns;         /**< shortest lifetime, included */
	uint64_t lifetime_to_ns;           /**< first lifetime above the range; UINT64_MAX: no bound */
	uint32_t is_closed;                /**< 1: only freed blocks */
	uint32_t window_class;             /**< enum xheap_window_class; XHEAP_CLASS_ANY: no condition */
	int64_t window_from_ns;            /**< start of the window, included; used unless XHEAP_CLASS_ANY */
	int64_t window_to_ns;              /**< end of the window, included */
	const uint32_t *pids;              /**< accepted pids; with pid_count 0: all */
	const uint32_t *tids;              /**< accepted tids; with tid_count 0: all */
	size_t pid_count;                  /**< length of pids */
	size_t tid_count;                  /**< length of tids */
	const char *const *heaps;          /**< accepted heaps: handles, or parts of names; with heap_count 0: all */
	size_t heap_count;                 /**< length of heaps */
	const char *const *require_frames; /**< patterns; one of them must match a frame of the allocating stack */
	const char *const *require_free_frames; /**< patterns; one of them must match a frame of the freeing stack */
	size_t require_frame_count;             /**< length of require_frames; 0: no condition */
	size_t require_free_frame_count;        /**< length of require_free_frames; 0: no condition */
	/** only blocks that are live at this position SEQUENCE:STEP (hexadecimal), or time as in xheap-heap(1). NULL: no
	    condition. With it, from_ns and to_ns have no bounds. */
	const char *live_at;
} xheap_filter;

/** Fill `filter` with the defaults. `size` is sizeof(*filter). */
void xheap_filter_init(xheap_filter *filter, size_t size);

/** The end of an allocation. */
enum xheap_end {
	XHEAP_END_FREE,     /**< a free */
	XHEAP_END_REALLOC,  /**< a realloc of the block */
	XHEAP_END_DESTROY,  /**< the destruction or reset of its heap */
	XHEAP_END_GAP,      /**< unknown: within a gap, since its address was allocated again */
	XHEAP_END_CONFLICT, /**< unknown: its address was allocated again, and no gap explains it */
	XHEAP_END_EXIT,     /**< live when its process ended or executed another image */
	XHEAP_END_OPEN      /**< live at the end of the trace */
};

/** Properties of an allocation; bits. */
enum xheap_allocation_flag {
	XHEAP_ALLOCATION_REALLOC = 1,   /**< a realloc of an existing block made it */
	XHEAP_ALLOCATION_MOVED = 2,     /**< that realloc moved the block */
	XHEAP_ALLOCATION_TEMPORARY = 4, /**< the very next event of the allocating thread freed it */
	XHEAP_ALLOCATION_EARLIER = 8    /**< a pre-existing block; birth_ns has no meaning */
};

/** A block with its history. */
typedef struct xheap_allocation {
	uint32_t number;       /**< position in the order of births, from 0 on */
	uint32_t end;          /**< enum xheap_end */
	uint32_t flags;        /**< bits of enum xheap_allocation_flag */
	int64_t birth_ns;      /**< time of the allocation */
	int64_t end_ns;        /**< time of the end; of a block that is still live, the end of the trace */
	uint64_t address;      /**< address of the block */
	uint64_t size;         /**< requested bytes; usable bytes of a pre-existing block */
	uint64_t usable_size;  /**< usable bytes; the same as `size` if they are unknown */
	uint32_t stack;        /**< stack that allocated it; 0: none */
	uint32_t function;     /**< function that allocated it; XHEAP_NONE: a pre-existing block */
	uint32_t end_stack;    /**< stack that freed it; 0: none */
	uint32_t end_function; /**< function that freed it, or XHEAP_NONE */
	uint32_t thread;       /**< thread id that allocated it */
	uint32_t end_thread;   /**< thread id that freed it, or XHEAP_NONE */
	uint32_t heap;         /**< heap id, or XHEAP_NONE */
	uint32_t previous;     /**< number of the allocation that a realloc turned into this one, or XHEAP_NONE */
	uint64_t weight_count; /**< number of blocks that it stands for: 1, or an estimate in a sampled trace */
	uint64_t weight_bytes; /**< bytes that it stands for: its size, or an estimate in a sampled trace */
} xheap_allocation;

/** Allocations as columns. Each pointer leads to `count` values of the members of xheap_allocation. */
typedef struct xheap_allocation_batch {
	uint32_t count; /**< number of allocations, at least 1 */
	const uint32_t *number;
	const uint8_t *end;
	const uint8_t *flags;
	const int64_t *birth_ns;
	const int64_t *end_ns;
	const uint64_t *address;
	const uint64_t *size;
	const uint64_t *usable_size;
	const uint64_t *weight_count;
	const uint64_t *weight_bytes;
	const uint32_t *stack;
	const uint32_t *function;
	const uint32_t *end_stack;
	const uint32_t *end_function;
	const uint32_t *thread;
	const uint32_t *end_thread;
	const uint32_t *heap;
	const uint32_t *previous;
} xheap_allocation_batch;

/** An iterator over allocations. */
typedef struct xheap_allocations xheap_allocations;

/**
 * Open an iterator over the allocations that pass the filter, in the order of their births. `filter` may be NULL: all
 * pass. The first such call on a trace matches all its events, which may take seconds. XHEAP_NO_MATCH: no frame of the
 * trace matches the required frames. The caller closes the iterator.
 */
int xheap_allocations_open(xheap_trace *trace, const xheap_filter *filter, xheap_allocations **allocations,
			   xheap_error *error);

/**
 * Read the next allocation. `*allocation` belongs to the iterator and is valid until its next call. XHEAP_END: there is
 * no more allocation. After a failure, such as XHEAP_DAMAGED, every further call fails too.
 */
int xheap_allocations_next(xheap_allocations *allocations, const xheap_allocation **allocation, xheap_error *error);

/** Read the next allocations as a batch, as xheap_allocations_next() does for one. A program may mix both calls. */
int xheap_allocations_next_batch(xheap_allocations *allocations, const xheap_allocation_batch **batch,
				 xheap_error *error);

/** Close the iterator. */
void xheap_allocations_close(xheap_allocations *allocations);

/* ==== rows for other programs: Arrow ==== */

/*
 * The C data interface and the C stream interface of Apache Arrow: three structs whose layout never changes. Programs
 * exchange rows through them without a common library. The guards are those of every program that has these structs.
 */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

/** The type of a column, or of a table as a struct of columns. */
struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

/** The values of a column, or of a batch of rows as a struct of columns. */
struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/** Batches of rows, one after the other. */
struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};

#endif

/** The tables of a trace. docs/xheap-api.md names their columns. */
enum xheap_table {
	XHEAP_TABLE_ALLOCATION, /**< blocks in the order of their births: the columns of `xheap dump -allocations` */
	XHEAP_TABLE_EVENT,      /**< heap calls in the order of time: the columns of `xheap dump -events` */
	XHEAP_TABLE_STACK,      /**< id, parent, frame: a stack is its innermost frame and the stack of its callers */
	XHEAP_TABLE_FRAME,      /**< names, files and lines of the code that stacks consist of */
	XHEAP_TABLE_FUNCTION,   /**< allocation functions */
	XHEAP_TABLE_THREAD,     /**< threads */
	XHEAP_TABLE_PROCESS,    /**< processes */
	XHEAP_TABLE_HEAP,       /**< heaps */
	XHEAP_TABLE_IMAGE,      /**< executables and shared objects */
	XHEAP_TABLE_COUNT       /**< number of tables; grows */
};

/** A question over the columns of allocations or events: conditions, groups, sums, an order, a limit. */
typedef struct xheap_plan xheap_plan;

/** The rows that xheap_query_arrow() gives. xheap_query_init() sets the defaults: all allocations, all columns. */
typedef struct xheap_query {
	size_t size;    /**< set by the _init function */
	uint32_t table; /**< enum xheap_table; with `plan`, that of the plan counts */
	/** Rows that pass: of allocations, all of its conditions; of events, from_ns and to_ns only. NULL: all rows. */
	const xheap_filter *filter;
	/**
	 * Names of the wanted columns, in this order; with column_count 0 all of them but `stack` and `free_stack`,
	 * the whole stacks as texts, and `caller` and `free_caller`, the first functions of the program's own code.
	 */
	const char *const *columns;
	size_t column_count;    /**< length of columns, 0 to 48 */
	uint32_t batch_rows;    /**< largest number of rows of a batch, 1 to 16777216; 0: 65536 */
	const xheap_plan *plan; /**< rows are those of its result; `columns` must be empty then; NULL: none */
} xheap_query;

/** Fill `query` with the defaults. `size` is sizeof(*query). */
void xheap_query_init(xheap_query *query, size_t size);

/**
 * Open a stream of the rows of a table, or of the result of a plan. `query` may be NULL for the defaults. The program
 * owns `*stream` and calls its release(); on failure release is NULL. The stream, and each batch of it, keeps what it
 * needs: they are released in any order, after the trace is closed, and in any thread. A stream is used by one thread
 * at a time; several streams of one trace are independent.
 *
 * get_schema() and get_next() return 0 or an errno; get_last_error() has the reason. The end is a batch whose release
 * is NULL, once; a further get_next() is an error (EINVAL), since the rows of a stream can be read once only.
 */
int xheap_query_arrow(xheap_trace *trace, const xheap_query *query, struct ArrowArrayStream *stream,
		      xheap_error *error);

/* ==== plans ==== */

/**
 * Make a plan over XHEAP_TABLE_ALLOCATION or XHEAP_TABLE_EVENT. The functions below add to it. One that cannot be obeyed
 * returns XHEAP_NONE and is remembered: xheap_query_arrow() fails with the first reason. So a program checks once. A
 * plan without outputs, keys and aggregates is refused. One thread at a time changes a plan; open streams keep the plan
 * as it was. The caller frees it with xheap_plan_free().
 */
int xheap_plan_new(uint32_t table, xheap_plan **plan, xheap_error *error);

/** Free the plan. */
void xheap_plan_free(xheap_plan *plan);

/** Return a node for a column of the table, by its name. */
uint32_t xheap_plan_column(xheap_plan *plan, const char *name);

/** Return a node for a number. */
uint32_t xheap_plan_number(xheap_plan *plan, uint64_t number);

/** Return a node for a time or a duration in nanoseconds: what columns whose names end in `_ns` are compared with. */
uint32_t xheap_plan_time(xheap_plan *plan, int64_t time_ns);

/**
 * Return a node for the number that stands for a text in a column of words, such as "free" in `end_kind`. `column` is
 * the node of the column.
 */
uint32_t xheap_plan_word(xheap_plan *plan, uint32_t column, const char *word);

/**
 * Return a node for an operation on nodes; operands that it does not have are XHEAP_NONE. Comparisons == != < <= > >=,
 * truths && || !, numbers + - * / % & | ^ << >> (they wrap), and "is absent" (1 operand), "if absent" (2), "?:" (3),
 * "as number", "as time" (1). Both sides of an operation have one type: truth, number or time. A value may be absent,
 * as the end of a live block is; an operation on it is absent, too, and a row passes only a condition that is true.
 */
uint32_t xheap_plan_apply(xheap_plan *plan, const char *operation, uint32_t a, uint32_t b, uint32_t c);

/**
 * Return a node for values[number]: a fact about each stack, thread or other id, found before. It is absent for numbers
 * from `count` on. The library copies the values.
 */
uint32_t xheap_plan_lookup(xheap_plan *plan, uint32_t number, const uint64_t *values, size_t count);

/** Let only rows pass for which `condition` is true, and earlier conditions, too. */
void xheap_plan_filter(xheap_plan *plan, uint32_t condition);

/** Add a column to the result, at most 48. `name` NULL: that of the column. Returns its number, for orders. */
uint32_t xheap_plan_output(xheap_plan *plan, uint32_t node, const char *name);

/** Group rows by the node, and add its value to the result. Parameters and result are those of xheap_plan_output(). */
uint32_t xheap_plan_key(xheap_plan *plan, uint32_t node, const char *name);

/**
 * Add a number over the rows of each group, or of all: `kind` is count, sum, least, greatest or average. `node`
 * XHEAP_NONE: count rows. The rest as for xheap_plan_output().
 */
uint32_t xheap_plan_aggregate(xheap_plan *plan, const char *kind, uint32_t node, const char *name);

/** Order the result by its column `output`, a number that one of the three functions above returned. */
void xheap_plan_order(xheap_plan *plan, uint32_t output, uint32_t is_descending);

/** Leave out the first `skip` rows of the result, and all behind the next `limit`; UINT64_MAX: no limit. */
void xheap_plan_limit(xheap_plan *plan, uint64_t skip, uint64_t limit);

/* ==== reports ==== */

/**
 * Options of a report, as those of xheap-heap(1). xheap_report_options_init() sets the defaults; NULL selects the
 * default.
 */
typedef struct xheap_report_options {
	size_t size;                /**< set by the _init function */
	const xheap_filter *filter; /**< allocations that count; NULL: all of them */
	/**
	 * Kind of rows: stacks, frames, frames-inclusive, image, heaps, tree, callers, chains or totals; default
	 * stacks.
	 */
	const char *action;
	const char *sort; /**< key, largest first: so, soc, st, stc, src, sp, spc or stt; default so, of chains src */
	const char *by;   /**< split rows by process, thread, heap, size, lifetime, time or class; default no split */
	const char *callers_of; /**< frame pattern for the action callers, which needs it */
	uint64_t top;           /**< largest number of rows; default 10000 */
	/** Patterns of frames that culling removes from the innermost end of stacks. */
	const char *const *cull_frames;
	size_t cull_frame_count;       /**< length of cull_frames */
	const char *const *cull_files; /**< paths of files with one such pattern on each line */
	size_t cull_file_count;        /**< length of cull_files */
	uint32_t without_default_cull; /**< 1: do not use the built-in list of culled functions */
	uint32_t with_lines;           /**< 1: the line of the call is part of a function's identity */
} xheap_report_options;

/** Fill `options` with the defaults. `size` is sizeof(*options). */
void xheap_report_options_init(xheap_report_options *options, size_t size);

/** Sums over allocations. In a sampled trace they are estimates. docs/semantics.md defines the words. */
typedef struct xheap_numbers {
	uint64_t total_count;         /**< allocations that began in the range */
	uint64_t total_bytes;         /**< their requested bytes */
	uint64_t outstanding_count;   /**< those of them that were not freed within the range */
	uint64_t outstanding_bytes;   /**< their requested bytes */
	uint64_t realloc_count;       /**< allocations that a realloc of an existing block made */
	uint64_t realloc_moved_count; /**< those of them with a new address */
	uint64_t temporary_count;     /**< allocations that the very next event of their thread freed */
	uint64_t open_count;          /**< allocations that were live at the end of the trace */
	uint64_t peak_count;          /**< live blocks at the moment of the peak of the whole report */
	uint64_t peak_bytes;          /**< live bytes at that moment */
	uint64_t recorded_count;  /**< recorded blocks behind total_count: the same number, less in a sampled trace */
	double total_count_error; /**< standard error of total_count; this and the next five are 0 unless estimated */
	double total_bytes_error; /**< standard error of total_bytes */
	double outstanding_count_error; /**< standard error of outstanding_count */
	double outstanding_bytes_error; /**< standard error of outstanding_bytes */
	double peak_count_error;        /**< standard error of peak_count */
	double peak_bytes_error;        /**< standard error of peak_bytes */
} xheap_numbers;

/** The totals of a report. */
typedef struct xheap_totals {
	const xheap_numbers *numbers; /**< sums over all allocations that count */
	int64_t from_ns;              /**< start of the range, included */
	int64_t to_ns;                /**< end of the range, included */
	int64_t peak_at_ns;           /**< time of the peak */
	uint64_t earlier_count;       /**< pre-existing blocks; they count in the peak, and in no total */
	uint64_t earlier_bytes;       /**< their usable bytes */
	uint64_t uncertain_count;     /**< outstanding blocks that may have been freed in a gap */
	uint64_t uncertain_bytes;     /**< their requested bytes */
	uint64_t unknown_frees;       /**< frees of addresses without a known block */
	uint64_t order_conflicts;     /**< events that contradict each other at one address */
	uint64_t row_count;           /**< number of rows before the cut at `top` */
	uint64_t rows_cut;            /**< number of rows that the cut removed */
} xheap_totals;

/** A row of a report. */
typedef struct xheap_row {
	const char *text; /**< its subject: the frames of a stack with ; in between, a function, an image or a heap */
	/**
	 * Its part of the split, such as "pid 17 (python3)"; "" without a split. An id follows equal labels: "... #3".
	 */
	const char *by;
	const xheap_numbers *numbers; /**< sums over its allocations */
	/** Shortest lifetime; these three are 0 if total_count is 0, and in inclusive actions. */
	int64_t lifetime_min_ns;
	int64_t lifetime_median_ns;     /**< median lifetime */
	int64_t lifetime_max_ns;        /**< longest lifetime */
	uint32_t threads;               /**< number of allocating threads; 0 in inclusive actions */
	uint32_t processes;             /**< number of allocating processes; 0 in inclusive actions */
	uint32_t depth;                 /**< depth in a tree, 0 for its root; 0 in other actions */
	uint32_t parent;                /**< index of the enclosing row of a tree, or XHEAP_NONE */
	uint32_t extra_count;           /**< length of extra_names and extra: numbers that only this action has */
	const char *const *extra_names; /**< names of these numbers, such as "steps" */
	const uint64_t *extra;          /**< values of these numbers */
	uint32_t process;               /**< process id, in a split by process, thread or heap; otherwise XHEAP_NONE */
	uint32_t thread;                /**< thread id, in a split by thread; otherwise XHEAP_NONE */
} xheap_row;

/** A handle of a finished report. */
typedef struct xheap_report xheap_report;

/**
 * Make a report. `options` may be NULL for the defaults. The first such call on a trace matches all its events, which
 * may take seconds. XHEAP_NO_MATCH: no frame of the trace matches require_frames, require_free_frames or callers_of.
 * XHEAP_FAILED: a sampled or aggregated trace cannot answer the question. The caller frees the report.
 */
int xheap_report_make(xheap_trace *trace, const xheap_report_options *options, xheap_report **report,
		      xheap_error *error);

/** Return the totals of the report. The report owns them. */
const xheap_totals *xheap_report_get_totals(const xheap_report *report);

/**
 * Return row `i` in the order of the sort, from 0 on; NULL behind the last one. In a tree each row follows the row that
 * encloses it. The report owns the row.
 */
const xheap_row *xheap_report_get_row(const xheap_report *report, uint32_t i);

/**
 * Find the culled frames of a row of the action stacks. XHEAP_INVALID: another action, or no such row. The caller frees
 * them.
 */
int xheap_report_get_frames(xheap_report *report, uint32_t row, xheap_frames **frames, xheap_error *error);

/** The format of a written report. */
enum xheap_format {
	XHEAP_FORMAT_TEXT, /**< text for people */
	XHEAP_FORMAT_CSV,  /**< CSV with a header row */
	XHEAP_FORMAT_JSON  /**< JSON as docs/schema/heap.json describes it */
};

/**
 * Write the report to memory, as `xheap heap` prints it; text has lines of 100 columns. `format` is an enum
 * xheap_format. `*text` ends with a NUL,
 * which `*length` does not count. `length` may be NULL. The caller frees `*text` with xheap_text_free().
 */
int xheap_report_write(xheap_report *report, uint32_t format, char **text, size_t *length, xheap_error *error);

/** Free a text of xheap_report_write(). */
void xheap_text_free(char *text);

/** Free the report. */
void xheap_report_free(xheap_report *report);

/* ==== resident memory ==== */

/** Which reading of a process's pages xheap_why_make() takes. */
enum xheap_why_moment {
	XHEAP_WHY_LARGEST, /**< the largest */
	XHEAP_WHY_LAST,    /**< the last */
	XHEAP_WHY_NEAREST  /**< the one nearest to a time */
};

/** Options of xheap_why_make(), as those of xheap-why(1). xheap_why_options_init() sets the defaults. */
typedef struct xheap_why_options {
	size_t size;     /**< set by the _init function */
	uint32_t pid;    /**< the process; 0: the one with the largest reading, or the last one */
	uint32_t moment; /**< enum xheap_why_moment; default the largest */
	int64_t time_ns; /**< of XHEAP_WHY_NEAREST */
	uint64_t top;    /**< largest number of rows of each list that xheap_why_write() writes; default all */
} xheap_why_options;

/** Fill `options` with the defaults. `size` is sizeof(*options). */
void xheap_why_options_init(xheap_why_options *options, size_t size);

/** The resident memory of a process at a reading. docs/semantics.md defines the words. */
typedef struct xheap_why_info {
	uint64_t resident_bytes;    /**< sum of the bytes of all classes */
	uint64_t swapped_bytes;     /**< bytes that are swapped out, not in resident_bytes */
	uint64_t huge_bytes;        /**< resident bytes in huge pages; UINT64_MAX: not known */
	int64_t time_ns;            /**< time of the reading */
	uint32_t process;           /**< process id */
	uint32_t reading_count;     /**< readings of the process in the trace */
	uint64_t pinned_page_bytes; /**< bytes of pages that live blocks cover by less than a quarter */
	uint64_t pinning_bytes;     /**< bytes of these blocks on them */
	uint64_t pinning_count;     /**< number of these blocks */
	uint32_t class_count;       /**< for xheap_why_get_class() */
	uint32_t stack_count;       /**< for xheap_why_get_stack() */
} xheap_why_info;

/** A class of resident memory. */
typedef struct xheap_why_class {
	const char *name; /**< its key in docs/schema/why.json, such as "trimmable" */
	const char *text; /**< words for people */
	uint64_t bytes;   /**< its resident bytes */
} xheap_why_class;

/** A culled stack that allocated live blocks. */
typedef struct xheap_why_stack {
	uint64_t live_bytes;        /**< requested resident bytes of its live blocks */
	uint64_t rounding_bytes;    /**< their other usable bytes, and the allocator's */
	uint64_t block_count;       /**< number of these blocks */
	uint64_t pinned_page_bytes; /**< its part of the pages that few blocks keep */
	uint64_t alone_page_bytes;  /**< bytes of pages that would come back if its blocks lay elsewhere */
	uint64_t pinning_bytes;     /**< bytes of its blocks on such pages */
	uint64_t pinning_count;     /**< number of these blocks */
} xheap_why_stack;

/** A handle of a finished answer about resident memory. */
typedef struct xheap_why xheap_why;

/**
 * Account for the resident memory of a process. `options` may be NULL for the defaults. XHEAP_FAILED: the trace has no
 * reading of the process, or is sampled or aggregated. The caller frees the answer.
 */
int xheap_why_make(xheap_trace *trace, const xheap_why_options *options, xheap_why **why, xheap_error *error);

/** Return the sums of the answer. The answer owns them. */
const xheap_why_info *xheap_why_get_info(const xheap_why *why);

/** Return class `i`, from 0 on; NULL behind the last one. The answer owns the class. */
const xheap_why_class *xheap_why_get_class(const xheap_why *why, uint32_t i);

/** Return stack `i`, with the most live bytes first; NULL behind the last one. The answer owns the stack. */
const xheap_why_stack *xheap_why_get_stack(const xheap_why *why, uint32_t i);

/** Find the frames of a stack of the answer. The caller frees them. XHEAP_INVALID: there is no such stack. */
int xheap_why_get_frames(xheap_why *why, uint32_t stack, xheap_frames **frames, xheap_error *error);

/**
 * Write the answer to memory, as `xheap why` prints it. The parameters are those of xheap_report_write(), without CSV.
 */
int xheap_why_write(xheap_why *why, uint32_t format, char **text, size_t *length, xheap_error *error);

/** Free the answer. */
void xheap_why_free(xheap_why *why);

/* ==== lost blocks ==== */

/** Options of xheap_leaks_make(), as those of xheap-leaks(1). xheap_leaks_options_init() sets the defaults. */
typedef struct xheap_leaks_options {
	size_t size;                /**< set by the _init function */
	const char *core;           /**< path of a core of a process of the trace; it has no default */
	const xheap_filter *filter; /**< blocks that count; all are followed. NULL: all of them */
	/** 1: xheap_session_copy() wrote the core, and the process ran on; the next two are what it gave */
	uint32_t is_running;
	int64_t time_ns;   /**< when the process was paused */
	uint64_t pause_ns; /**< for how long */
	uint64_t top;      /**< largest number of rows that xheap_leaks_write() writes; default all */
} xheap_leaks_options;

/** Fill `options` with the defaults. `size` is sizeof(*options). */
void xheap_leaks_options_init(xheap_leaks_options *options, size_t size);

/** How a block is reached. */
enum xheap_reach {
	XHEAP_REACH_LOST,     /**< by no pointer */
	XHEAP_REACH_INDIRECT, /**< only by pointers of lost blocks */
	XHEAP_REACH_INTERIOR, /**< by pointers that are not the address of its first byte */
	XHEAP_REACH_START     /**< by the address of its first byte */
};

/** Sums over the live blocks that pass the filter. Each array has a value for each enum xheap_reach. */
typedef struct xheap_leaks_info {
	uint64_t counts[4]; /**< numbers of blocks */
	uint64_t bytes[4];  /**< their requested bytes */
	int64_t time_ns;    /**< time of the ages */
	uint32_t process;   /**< process id */
	uint32_t row_count; /**< for xheap_leaks_get_row() */
} xheap_leaks_info;

/** Blocks of a culled stack that are reached in one way. */
typedef struct xheap_leaks_row {
	uint32_t reach;      /**< enum xheap_reach, never XHEAP_REACH_START */
	uint32_t thread;     /**< thread id that allocated all of them, or XHEAP_NONE */
	uint64_t count;      /**< number of blocks */
	uint64_t bytes;      /**< their requested bytes */
	uint32_t is_earlier; /**< 1: some are pre-existing: they have no stack, and are older than oldest_ns */
	int64_t oldest_ns;   /**< age of the oldest one */
	int64_t newest_ns;   /**< age of the newest one */
} xheap_leaks_row;

/** A handle of a finished answer about lost blocks. */
typedef struct xheap_leaks xheap_leaks;

/**
 * Find the blocks of a process that no pointer leads to. XHEAP_INVALID: options->core is NULL, or no core of a process
 * of the trace. XHEAP_FAILED: the trace is sampled, or lacks blocks from before an attach. The caller frees the answer.
 */
int xheap_leaks_make(xheap_trace *trace, const xheap_leaks_options *options, xheap_leaks **leaks, xheap_error *error);

/** Return the sums of the answer. The answer owns them. */
const xheap_leaks_info *xheap_leaks_get_info(const xheap_leaks *leaks);

/**
 * Return row `i`, from 0 on, lost ones first and of these the ones with most bytes; NULL behind the last one. The answer
 * owns the row.
 */
const xheap_leaks_row *xheap_leaks_get_row(const xheap_leaks *leaks, uint32_t i);

/** Find the frames of a row's stack. The caller frees them. XHEAP_INVALID: there is no such row. */
int xheap_leaks_get_frames(xheap_leaks *leaks, uint32_t row, xheap_frames **frames, xheap_error *error);

/**
 * Write the answer to memory, as `xheap leaks` prints it. The parameters are those of xheap_report_write(), without CSV.
 */
int xheap_leaks_write(xheap_leaks *leaks, uint32_t format, char **text, size_t *length, xheap_error *error);

/** Free the answer. */
void xheap_leaks_free(xheap_leaks *leaks);

/* ==== explanations ==== */

/** Options of xheap_explain_make(), as those of xheap-explain(1). xheap_explain_options_init() sets the defaults. */
typedef struct xheap_explain_options {
	size_t size;          /**< set by the _init function */
	const char *core;     /**< path of a core of a process of the trace; NULL: none */
	uint32_t pid;         /**< the process; 0: it is found */
	uint32_t has_address; /**< 1: what happened at `address`? 0: how did the process end? */
	uint64_t address;
	const char *at; /**< with an address: a time or a position, as -at has it; NULL: the end */
} xheap_explain_options;

/** Fill `options` with the defaults. `size` is sizeof(*options). */
void xheap_explain_options_init(xheap_explain_options *options, size_t size);

/** What a heap call did wrong, or what went wrong in it. */
enum xheap_fault {
	XHEAP_FAULT_NONE,          /**< nothing */
	XHEAP_FAULT_DOUBLE_FREE,   /**< it freed or resized a block that had ended */
	XHEAP_FAULT_INTERIOR_FREE, /**< it freed or resized an address inside a block */
	XHEAP_FAULT_FOREIGN_FREE,  /**< it freed or resized an address that no heap call had returned */
	XHEAP_FAULT_DAMAGED_HEAP,  /**< it found the allocator's data damaged */
	XHEAP_FAULT_NO_MEMORY      /**< it failed for want of memory, and the process then failed */
};

/** How sure a statement is. */
enum xheap_certainty { XHEAP_CERTAINTY_UNKNOWN, XHEAP_CERTAINTY_LIKELY, XHEAP_CERTAINTY_CERTAIN };

/** What an explanation is about, and what the core of a process tells. Blocks are NULL where there are none. */
typedef struct xheap_explain_info {
	uint32_t process;              /**< process id */
	uint32_t call_count;           /**< for xheap_explain_get_call() */
	uint64_t under_way_count;      /**< calls that had not returned when the process ended */
	uint64_t fault_count;          /**< earlier frees of what was not live */
	const xheap_allocation *block; /**< that the address is in, or was in last */
	uint32_t is_live;              /**< 1: it was live at the moment */
	uint32_t use_certainty;        /**< enum xheap_certainty: of used_block */
	uint64_t used;                 /**< address that the process used when it crashed; 0: not known */
	/** the freed block that was used, or the live one beyond which something was used */
	const xheap_allocation *used_block;
	const xheap_allocation *damaged_block; /**< likely beyond, before or into which the process wrote */
	const char *message;                   /**< with which the C library ended the process; "": none */
} xheap_explain_info;

/** A heap call that had not returned when the process ended, was wrong, or got no memory. */
typedef struct xheap_explain_call {
	uint32_t fault;        /**< enum xheap_fault */
	uint32_t certainty;    /**< enum xheap_certainty: of the fault */
	uint32_t is_under_way; /**< 1: it had not returned */
	uint32_t function;     /**< function that was called, or XHEAP_NONE */
	uint32_t stack;        /**< stack of the call; 0: none */
	uint32_t thread;       /**< thread id, or XHEAP_NONE */
	int64_t time_ns;       /**< time of the call */
	uint64_t address;      /**< address that it frees or resizes; 0: none */
	uint64_t size;         /**< bytes that were asked for */
	/** block that the address was in before the call, or was in last; NULL: there was none */
	const xheap_allocation *block;
	uint32_t is_live; /**< 1: that block was live */
} xheap_explain_call;

/** A handle of a finished explanation. */
typedef struct xheap_explain xheap_explain;

/**
 * Explain how a process ended, or what happened at an address. `options` may be NULL for the defaults. The frames of a
 * stack are those of xheap_trace_get_frames(). XHEAP_NOT_FOUND: there is nothing to explain. XHEAP_INVALID: the core is
 * of no process of the trace, or several processes have had a block at the address. The caller frees the explanation.
 */
int xheap_explain_make(xheap_trace *trace, const xheap_explain_options *options, xheap_explain **explain,
		       xheap_error *error);

/** Return the facts of the explanation. The explanation owns them, and their blocks. */
const xheap_explain_info *xheap_explain_get_info(const xheap_explain *explain);

/**
 * Return call `i`, from 0 on, the one that explains the end best first; NULL behind the last one. The explanation owns
 * it.
 */
const xheap_explain_call *xheap_explain_get_call(const xheap_explain *explain, uint32_t i);

/**
 * Write the explanation to memory, as `xheap explain` prints it. The parameters are those of xheap_report_write(),
 * without CSV.
 */
int xheap_explain_write(xheap_explain *explain, uint32_t format, char **text, size_t *length, xheap_error *error);

/** Free the explanation. */
void xheap_explain_free(xheap_explain *explain);

#ifdef __cplusplus
}
#endif

#endif
