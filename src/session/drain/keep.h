/* SPDX-License-Identifier: MIT */
/**
 * Limits for what the logger keeps about its targets until the trace ends.
 *
 * Each stack, and each row that events refer to, is kept, so that an equal one gets the same number. A program can make
 * up any number of them. Real programs have up to some millions of different stacks; only a program made to exceed the
 * limits does. Beyond a limit, events are recorded with a stack that is marked as cut, or without a heap. Events of
 * a further thread or process are counted as lost. The region's own limits bound what lasts as long as the region.
 */
#ifndef XHEAP_SESSION_KEEP_H
#define XHEAP_SESSION_KEEP_H

#include "trace/writer.h"

/** Limits of one region: an executed image and all that it forks. */
enum {
	/** nodes of stacks, a gigabyte; the largest programs that were met have some millions */
	KEEP_NODES = 16 << 20,
	KEEP_ROWS = 16 << 20 /**< threads, processes and heaps: a hundred new ones each second for two days */
};

/** Limits of all regions together, as parts of the logger's memory. Rows have a part of their own: a program that makes
    up stacks cannot keep other programs' calls from being recorded. */
enum { KEEP_STACKS_NUMERATOR = 3, KEEP_ROWS_NUMERATOR = 2, KEEP_DENOMINATOR = 8 };

/** The smallest limits in bytes; a logger with less memory may run out of it. */
enum { KEEP_STACKS_LEAST = 64 << 20, KEEP_ROWS_LEAST = 16 << 20 };

/** Limits in numbers and bytes. */
struct keep_limits {
	uint64_t nodes, rows;            /**< of one region */
	uint64_t stack_bytes, row_bytes; /**< of all regions together */
};

/** The amounts that are kept of one region so far. */
struct keep {
	const struct keep_limits *limits;
	struct writer *writer;
	uint64_t nodes, rows;                  /**< added by this region */
	uint32_t nodes_before;                 /**< nodes of the writer when keep_begin_stacks() was called */
	bool has_cut_stacks, has_refused_rows; /**< a limit cut a stack, or refused a row */
};

/** Return the limits for the memory that this process may have. */
struct keep_limits keep_limits_default(void);

/** Begin to take stacks from the region: limit the writer to what this region may still add. */
void keep_begin_stacks(struct keep *keep);
/** End it: count what the region has added, and lift the writer's limit for others. */
void keep_end_stacks(struct keep *keep);

/** Count one more row that the region is about to add. Return false if a limit refuses it. */
bool keep_add_row(struct keep *keep);

/** Return whether rows of no region may be added. */
bool keep_has_room(const struct keep_limits *limits, const struct writer *writer);

#endif
