/* SPDX-License-Identifier: MIT */
/** The processes of a trace, with their images, threads, limits and ends. */
#ifndef XHEAP_TRACE_PROCESS_ROWS_H
#define XHEAP_TRACE_PROCESS_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/row_ids.h"

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

/** The tid of no thread: of the row whose events are the blocks from before an attach. */
#define TRACE_TID_NONE 0

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

#endif
