/* SPDX-License-Identifier: MIT */
/** The logs that the isolates of one process write (v8_log.h): temporary files without names, as node makes them with
    --logfile=+, which are found by the process's descriptors. */
#ifndef XHEAP_SESSION_V8_LOGS_H
#define XHEAP_SESSION_V8_LOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "session/jit/jit_files.h"
#include "session/jit/jit_ranges.h"
#include "session/jit/perf_map.h"
#include "session/jit/v8_log.h"

/** A log that is read. */
struct v8_open_log {
	int fd;
	uint64_t device, inode, offset;
	bool is_within_line;   /**< the offset is in a line that is too long */
	struct jit_range last; /**< the code that was named last: what was put into it is said next */
	struct v8_log log;
};

/** Zero it to begin. */
struct v8_logs {
	struct v8_open_log *items;
	uint32_t count, capacity, searches;
	uint64_t searched_ns;
	uint64_t bytes; /**< that were read of all */
	struct jit_ranges ranges;
	bool is_full; /**< there is more code than is kept */
};

/** Search for logs, and read what is new in them. ticks: the time of the last reading before. Return whether there was
    anything. */
bool v8_logs_follow(struct v8_logs *logs, const struct jit_process *process, uint64_t ticks, bool is_last);

/** Return the code that the address was of at the time; NULL: it is in no log. */
const struct jit_range *v8_logs_find(struct v8_logs *logs, uint64_t address, uint64_t ticks);

/** Get the names of an address in that code. */
void v8_logs_names(const struct v8_logs *logs, const struct jit_range *range, uint64_t address,
		   struct jit_names *names);

void v8_logs_fini(struct v8_logs *logs);

#endif
