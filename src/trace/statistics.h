/* SPDX-License-Identifier: MIT */
/** What a trace says of its recording. */
#ifndef XHEAP_TRACE_STATISTICS_H
#define XHEAP_TRACE_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

/** The cost of tracing, summed by the logger at the session's end. */
struct trace_statistics {
	bool is_known;           /**< the trace has them: a recording that did not end has not */
	uint64_t waits, wait_ns; /**< times that targets waited for a free buffer, and for how long */
	uint64_t logger_cpu_ns;  /**< user and system time of the logger */
	uint64_t recorder_ns;    /**< estimate of the time spent in hooks; 0 when not known */
	uint64_t buffers_written, buffer_size, peak_buffers;
	uint64_t suppressed; /**< calls nested in the allocator, not events */
	uint64_t unwatched;  /**< blocks of a sample whose end was not watched for: too many were live */
	/** events of annotated heaps of which it is not told which: there were too many heaps */
	uint64_t heapless;
	/** of threads and processes that found no room, or inside of others: they are no events */
	uint64_t untraced_calls;
	uint64_t pythonless; /**< events, at least, whose stack lacks its Python frames */
};

#endif
