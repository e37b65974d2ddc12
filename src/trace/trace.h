/* SPDX-License-Identifier: MIT */
/** The content of a trace: the dictionaries of the whole file. trace/reader.h opens it; the rows are in process_rows.h,
    code_rows.h, memory_rows.h, gap_rows.h, sum_rows.h and option_names.h beside it. */
#ifndef XHEAP_TRACE_TRACE_H
#define XHEAP_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/events.h"
#include "trace/statistics.h"

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
	const struct trace_pages *pages;
	uint32_t pages_count; /**< of each process in the order of time; 0 in an older trace */
	const struct trace_page_run *page_runs;
	uint32_t page_run_count;
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
	struct stack_ends ends;    /**< of the stacks of all these events */
	bool is_whole_known;       /**< ends.whole is a number: no part of the trace is older than it */
	uint64_t unwritten_events; /**< what could not be written though recording went on */
	/** of segments that are not there any more: the past of a circular file, a flight recorder */
	uint64_t dropped_events;
	int64_t dropped_until_ns; /**< the last of those; from there on nothing is missing */
	struct trace_statistics statistics;
};

/** Return whether a program has told of heaps or blocks of its own (xheap/heap.h, requests to Valgrind). */
bool trace_has_annotations(const struct trace_dictionary *dictionary);

/** Return whether stacks have Python frames. */
bool trace_has_python(const struct trace_dictionary *dictionary);

/** Return whether Python's objects are recorded, each as a block. */
bool trace_has_python_objects(const struct trace_dictionary *dictionary);

/** Return whether stacks have functions that a runtime has compiled and named. */
bool trace_has_jit(const struct trace_dictionary *dictionary);

/** Return whether such functions have those that were put into them. */
bool trace_has_inlined_jit(const struct trace_dictionary *dictionary);

/** Return whether stacks have code of no image, of which no function has a name. */
bool trace_has_nameless(const struct trace_dictionary *dictionary);

#endif
