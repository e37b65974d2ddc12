/* SPDX-License-Identifier: MIT */
/** The options of a recording. The command fills them in and hands them to the logger. */
#ifndef XHEAP_SESSION_OPTIONS_H
#define XHEAP_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/option.h"

/** X(id, name, other name, text): what becomes of the trace's file, and of old events. */
#define SESSION_FILE_MODES(X) \
	X(SEQUENTIAL, "sequential", "file", "one file; recording ends at its greatest size") \
	X(CIRCULAR, "circular", "ring", "one file; at its greatest size new events replace old ones") \
	X(APPEND, "append", "", "one file; new events are added to those that it has") \
	X(NEWFILE, "newfile", "new-file", "a new file whenever one has its greatest size") \
	X(FLIGHT, "flight", "buffering", "the newest events in memory, until they are written out") \
	X(NONE, "none", "", "the newest events in memory, of a session, without a file") \
	X(KEEP, "keep-live", "", "the newest events, all live blocks, sums of the others")

struct control_state;

enum session_file_mode {
#define X(id, name, other, text) SESSION_FILE_##id,
	SESSION_FILE_MODES(X)
#undef X
		SESSION_FILE_MODE_COUNT
};

/** X(id, name, text): where the times of events come from. */
#define SESSION_CLOCKS(X) \
	X(AUTO, "auto", "the first of these that is reliable") \
	X(TSC, "tsc", "the processor's counter") \
	X(MONOTONIC, "monotonic", "the kernel's clock, CLOCK_MONOTONIC_RAW")

enum session_clock_choice {
#define X(id, name, text) SESSION_CLOCK_##id,
	SESSION_CLOCKS(X)
#undef X
		SESSION_CLOCK_COUNT
};

/** X(id, name, value, text): when a flight recorder writes its events out by itself. value: what follows the name. */
#define SESSION_TRIGGERS(X) \
	X(RSS, "rss", "=SIZE", "a process has SIZE of memory resident") \
	X(MEMORY_LIMIT, "memory-limit", "", "a process hits the memory limit of its cgroup") \
	X(EXIT, "exit", "", "a process ends") \
	X(CRASH, "crash", "", "a signal ends a process, or its end is unknown")

enum session_trigger {
#define X(id, name, value, text) SESSION_TRIGGER_##id,
	SESSION_TRIGGERS(X)
#undef X
		SESSION_TRIGGER_COUNT
};

/** When the trace's index is made during the recording. */
enum session_index {
	SESSION_INDEX_NEVER,
	SESSION_INDEX_IDLE,  /**< while a processor is idle, and only if that costs little */
	SESSION_INDEX_ALWAYS /**< whatever it costs; the end of the recording waits for it */
};

struct session_options {
	/** of a session that outlives its controllers and waits for targets; NULL: the session ends with its targets */
	const char *session_name;
	const char *trace_path;          /**< absolute; %d in it is a counter in modes that number their files */
	const char *command;             /**< command line, for the trace */
	uint32_t buffer_size;            /**< bytes */
	uint32_t buffer_min, buffer_max; /**< buffers of each process; buffer_min 0: session_buffer_min() chooses */
	uint32_t stack_kinds;            /**< OPTION_STACK_* bits */
	uint32_t stack_depth;
	uint32_t wait_limit_ms;
	uint32_t flush_ms;    /**< how old unflushed events become at most */
	uint32_t file_mode;   /**< enum session_file_mode */
	uint32_t permissions; /**< mode of the trace's files */
	uint32_t clock;       /**< enum session_clock_choice */
	uint32_t keeps_live;  /**< 1: --keep live was given, which means SESSION_FILE_KEEP */
	uint32_t triggers;    /**< bits by enum session_trigger */
	uint64_t trigger_rss_bytes;
	uint64_t max_file_bytes; /**< limit of the file, or of the memory; 0: unlimited */
	uint64_t sample_bytes;   /**< record a sample of one block per this many allocated bytes; 0: all blocks */
	bool with_duration, on_full_wait, follow, until_exit, check_stacks;
	bool with_objects;        /**< of Python interpreters, as blocks of a nested heap */
	uint32_t generations;     /**< keep so many traces, with numbers behind trace_path; 0: one, without a number */
	bool waits_for_directory; /**< events are kept in memory while the trace's directory cannot be written to */
	bool is_real_time;        /**< --real-time was given: a short flush_ms */
	uint32_t index;           /**< enum session_index */
	bool takes_images;        /**< record starts of registered images, too: -p 0 was given */
	uint32_t first_number;    /**< of numbered files: the number of the first one; 0: 1 */
	bool drops_empty;         /**< remove a trace in which no process was recorded */
	/** an empty directory for cores of processes that are about to exit, named by their pids; NULL: none are
	    wanted */
	const char *exit_cores;
	bool is_attached; /**< targets are running processes; the session ends with its controller */
};

/** The least that a mode with a limit keeps. */
#define SESSION_KEPT_BYTES_MIN (UINT64_C(1) << 20)
/** The default limit of a flight recorder. */
#define SESSION_FLIGHT_BYTES (UINT64_C(64) << 20)

/** The default window of the keep-live mode. */
#define SESSION_WINDOW_BYTES (UINT64_C(256) << 20)

/** The documented flags of stack kinds, and those for calls that only Linux has. */
/* clang-format off */
#define STACK_FLAGS(X) \
	X("HeapAlloc", OPTION_STACK_ALLOC) X("HeapRealloc", OPTION_STACK_REALLOC) X("HeapFree", OPTION_STACK_FREE) \
	X("HeapCreate", OPTION_STACK_CREATE) X("HeapDestroy", OPTION_STACK_DESTROY) X("HeapLock", OPTION_STACK_LOCK) \
	X("HeapProtect", OPTION_STACK_PROTECT)
/* clang-format on */

/** Return the OPTION_* bits for a region's header. */
uint32_t session_options_word(const struct session_options *options);

/** Return the number of buffers that each process begins with and keeps: buffer_min if it is set. Otherwise few if
    targets wait for more, many if they would drop events. */
uint32_t session_buffer_min(const struct session_options *options);

/** Return whether the mode keeps events in pieces, in memory or beside the file, until they are written out. */
bool session_is_in_pieces(const struct session_options *options);

/** Write the path of the directory for a keep-live recording's pieces, beside its file. */
void session_pieces_path(char *path, size_t size, const char *trace_path);

/** Return whether the path has a place for a counter: its first %d or %0Nd. Any other % is ordinary text. */
bool session_path_is_numbered(const char *path);

/** Write the path with the counter in its place, or unchanged if it has no place. */
void session_path_number(char *path, size_t size, const char *pattern, uint32_t counter);

#endif
