/* SPDX-License-Identifier: MIT */
/** What a session records and how; filled by the command, handed to the logger. */
#ifndef XHEAP_SESSION_OPTIONS_H
#define XHEAP_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct session_options {
	const char *session_name;     /**< of one that outlives its controllers and waits for targets; NULL: it ends with what it records */
	const char *trace_path;       /**< absolute */
	const char *command;          /**< command line, for the trace */
	uint32_t buffer_size;         /**< bytes */
	uint32_t buffer_min, buffer_max;
	uint32_t stack_kinds;         /**< OPTION_STACK_* bits */
	uint32_t stack_depth;
	uint32_t wait_limit_ms;
	uint64_t max_file_bytes;      /**< 0: none */
	uint64_t sample_bytes;        /**< record blocks by the bytes asked for, one in so many; 0: all */
	bool with_duration, on_full_wait, follow, until_exit, check_stacks;
	bool is_attached;             /**< to processes that run; ends with its controller */
};

/** The documented stack walking flags, and those of what Linux has besides. */
#define STACK_FLAGS(X) \
	X("HeapAlloc", OPTION_STACK_ALLOC) X("HeapRealloc", OPTION_STACK_REALLOC) X("HeapFree", OPTION_STACK_FREE) \
	X("HeapCreate", OPTION_STACK_CREATE) X("HeapDestroy", OPTION_STACK_DESTROY) X("HeapLock", OPTION_STACK_LOCK) \
	X("HeapProtect", OPTION_STACK_PROTECT)

/** Defaults as the manual states them. */
void session_options_init(struct session_options *options);

/** OPTION_* bits for a region's header. */
uint32_t session_options_word(const struct session_options *options);

#endif
