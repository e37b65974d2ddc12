/* SPDX-License-Identifier: MIT */
/** The resident memory of a process by kind of mapping, read from outside. Any thread may read; the process does not
    wait for it longer than for a look at some thousand pages. */
#ifndef XHEAP_SESSION_MAPPINGS_H
#define XHEAP_SESSION_MAPPINGS_H

#include <stdint.h>
#include <sys/types.h>

#include "inject/inject.h"
#include "trace/memory_rows.h"

enum { MAPPINGS_PARTS_MAX = 40, MAPPINGS_RUNS_MAX = 1 << 16, MAPPINGS_THREADS_MAX = 4096 };

/** A process, and what its logger knows of its mappings. */
struct mappings_request {
	pid_t pid;
	uint64_t resident_bytes; /**< as the kernel counts them */
	struct inject_span recorder[INJECT_SPANS_MAX];
	uint32_t recorder_count;
	/** of each recorded thread but the first: the base of its thread-local storage, which lies at the top of its
	    stack; sorted */
	uint64_t thread_bases[MAPPINGS_THREADS_MAX];
	uint32_t thread_count;
};

/** The answer. Zero it before; mappings_answer_fini() frees it. */
struct mappings_answer {
	int error;                 /**< 0, or a negative errno: nothing else is valid */
	struct trace_resident row; /**< without process and time */
	struct trace_resident_part parts[MAPPINGS_PARTS_MAX];
	char *texts; /**< their names */
	/** without process and time: where blocks may lie, and at most so many runs; a run has its kind */
	struct trace_pages pages;
	struct trace_page_run *runs;
};

/** Read the mappings and their resident pages. */
void mappings_read(const struct mappings_request *question, struct mappings_answer *answer);

/** Free the answer. */
void mappings_answer_fini(struct mappings_answer *answer);

#endif
