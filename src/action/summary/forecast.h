/* SPDX-License-Identifier: MIT */
/** When a process reaches a limit of its memory if it goes on growing as it did. */
#ifndef XHEAP_ACTION_FORECAST_H
#define XHEAP_ACTION_FORECAST_H

#include "action/summary/survey.h"

struct trace_dictionary;

/**
 * The first limit that a growing process reaches. The growth is that of all its growing stacks. The rest of its memory
 * is taken to stay as it was at that sample. A limit of address space is reached no later than that, since a
 * process has more address space than resident memory.
 */
struct forecast {
	const char *limit;    /**< the limit's key: "cgroup"; NULL: no process grows, or nothing is known */
	const char *words;    /**< the limit for people: "the memory limit of its cgroup" */
	uint32_t process;     /**< id of the trace */
	uint64_t limit_bytes; /**< the limit */
	uint64_t used_bytes;  /**< resident at the last sample of the time that growth is judged in, */
	int64_t used_ns;      /**< and when that was */
	double seconds;       /**< from then on; 0: it is reached */
	double least_seconds; /**< by the upper ends of the 95 % intervals, */
	double most_seconds;  /**< and by the lower ends */
};

/** Return the nearest of all growing processes' limits. */
struct forecast forecast_make(const struct survey *survey, const struct trace_dictionary *dictionary);

#endif
