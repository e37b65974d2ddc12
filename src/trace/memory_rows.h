/* SPDX-License-Identifier: MIT */
/** The memory of a trace's processes, as the logger saw it. */
#ifndef XHEAP_TRACE_MEMORY_ROWS_H
#define XHEAP_TRACE_MEMORY_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/** How much memory of a process was resident, when the logger looked. */
struct trace_sample {
	uint32_t process;
	int64_t time_ns;
	uint64_t resident_bytes;
};

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

/** The resident pages of a process in memory where blocks may lie, at the time of a trace_resident. */
struct trace_pages {
	uint32_t process;
	int64_t time_ns;
	uint64_t huge_bytes; /**< of all resident memory, in huge pages; TRACE_HUGE_UNKNOWN: the kernel does not say */
	uint64_t swapped_bytes;  /**< of all of the process, which are not resident */
	uint64_t left_out_bytes; /**< resident, of runs behind the last one: there are too many */
	uint32_t first, spread;  /**< places in trace->page_runs, and how many */
};

#define TRACE_HUGE_UNKNOWN UINT64_MAX
enum { TRACE_PAGE_BYTES = 4096 };

/** Resident pages in a row, in one mapping; in the order of addresses. */
struct trace_page_run {
	uint64_t skipped; /**< pages between the run before, or address 0, and this one */
	uint64_t count;
	uint8_t kind; /**< enum trace_mapping_kind */
	bool is_next; /**< it is in the same mapping as the run before */
};

#endif
