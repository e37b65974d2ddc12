/* SPDX-License-Identifier: MIT */
/** The options of a recording. The command fills them in and hands them to the logger. */
#ifndef XHEAP_SESSION_OPTIONS_H
#define XHEAP_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** X(id, name, other name, text): what becomes of the trace's file, and of the past. */
/* clang-format off */
#define SESSION_FILE_MODES(X) \
	X(SEQUENTIAL, "sequential", "file", "one file; at its greatest size recording ends") \
	X(CIRCULAR, "circular", "ring", "one file; at its greatest size the oldest events go") \
	X(APPEND, "append", "", "behind what a file has, if it is there") \
	X(NEWFILE, "newfile", "new-file", "a new file whenever one has its greatest size") \
	X(FLIGHT, "flight", "buffering", "memory, for the newest events; written out when told to") \
	X(NONE, "none", "", "memory, to be looked at only") \
	X(KEEP, "keep-live", "", "pieces beside the file; of what leaves them blocks that live are kept whole, and sums of the others")
/* clang-format on */

enum session_file_mode {
#define X(id, name, other, text) SESSION_FILE_##id,
	SESSION_FILE_MODES(X)
#undef X
		SESSION_FILE_MODE_COUNT
};

/** X(id, name, text): what events' times are taken from. */
/* clang-format off */
#define SESSION_CLOCKS(X) \
	X(AUTO, "auto", "the processor's counter, or the kernel's clock where that is not to be trusted") \
	X(TSC, "tsc", "the processor's counter") \
	X(MONOTONIC, "monotonic", "the kernel's clock (CLOCK_MONOTONIC_RAW), by a system call for each reading")
/* clang-format on */

enum session_clock_choice {
#define X(id, name, text) SESSION_CLOCK_##id,
	SESSION_CLOCKS(X)
#undef X
		SESSION_CLOCK_COUNT
};

/** X(id, name, text): what makes a flight recorder write out by itself. */
/* clang-format off */
#define SESSION_TRIGGERS(X) \
	X(RSS, "rss", "a process has so much memory resident: rss=SIZE") \
	X(MEMORY_LIMIT, "memory-limit", "the memory limit of a process's cgroup was hit") \
	X(EXIT, "exit", "a process has ended") \
	X(CRASH, "crash", "a process was ended by a signal, or nobody knows how")
/* clang-format on */

enum session_trigger {
#define X(id, name, text) SESSION_TRIGGER_##id,
	SESSION_TRIGGERS(X)
#undef X
		SESSION_TRIGGER_COUNT
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
	uint32_t triggers;    /**< bits by enum session_trigger */
	uint64_t trigger_rss_bytes;
	uint64_t max_file_bytes; /**< limit of the file, or of the memory; 0: unlimited */
	uint64_t sample_bytes;   /**< record a sample of one block per this many allocated bytes; 0: all blocks */
	bool with_duration, on_full_wait, follow, until_exit, check_stacks;
	bool is_real_time; /* the user asked for the real-time mode: short flush_ms */
	bool with_index;   /**< make the trace's index during the recording */
	bool is_attached;  /**< targets are running processes; the session ends with its controller */
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

/** Set the defaults that the manual states. */
void session_options_init(struct session_options *options);

/** Return the OPTION_* bits for a region's header. */
uint32_t session_options_word(const struct session_options *options);

/** Return the number of buffers that each process begins with and keeps: buffer_min if it is set. Otherwise few if
    targets wait for more, many if they would drop events. */
uint32_t session_buffer_min(const struct session_options *options);

/** Return the enum session_file_mode with this name, or -1. */
int session_file_mode_find(const char *name);
/** Return the name of the mode, "unknown" if there is none. */
const char *session_file_mode_name(uint32_t mode);

/** Return the enum session_clock_choice with this name, or -1. */
int session_clock_find(const char *name);

/** Return whether the mode keeps events in pieces, in memory or beside the file, until they are written out. */
bool session_is_in_pieces(const struct session_options *options);

/** Add a trigger as users write it: its name, or rss=SIZE. Return false if the text is no trigger. */
bool session_add_trigger(struct session_options *options, const char *text);

/** Write the path of the directory for a keep-live recording's pieces, beside its file. */
void session_pieces_path(char *path, size_t size, const char *trace_path);

/** Return whether the path has a place for a counter: its first %d or %0Nd. Any other % is ordinary text. */
bool session_path_is_numbered(const char *path);

/** Write the path with the counter in its place, or unchanged if it has no place. */
void session_path_number(char *path, size_t size, const char *pattern, uint32_t counter);

#endif
