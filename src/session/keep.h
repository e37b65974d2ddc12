/* SPDX-License-Identifier: MIT */
/**
 * What the logger keeps for the programs that it records, until its trace ends, and how much of that at most.
 *
 * Each stack and each row that events refer to is kept, so that an equal one gets the same number. A program can make
 * up as many as it likes. No program that is not made for that has as many as these limits allow: real ones have up to
 * some millions of different stacks. Beyond a limit events are recorded on, with a stack that says that it was cut, or
 * without a heap; events of a further thread or process are counted as lost. What only lasts as long as a region is
 * bounded by the region's own limits.
 */
#ifndef XHEAP_SESSION_KEEP_H
#define XHEAP_SESSION_KEEP_H

#include "trace/writer.h"

/** Of one region: an executed image and all that it forks. */
enum {
	KEEP_NODES = 16 << 20, /**< of stacks: a gigabyte; programs with some millions were met */
	KEEP_ROWS = 16 << 20   /**< threads, processes and heaps: a hundred new ones each second for two days */
};

/** Of all regions together: parts of the memory that the logger may have. Rows have a part of their own, so that one
 *  who makes up stacks keeps nobody's calls from being recorded. */
enum { KEEP_STACKS_NUMERATOR = 3, KEEP_ROWS_NUMERATOR = 2, KEEP_DENOMINATOR = 8 };

/** The least of these, in bytes: a logger that has less memory may run out of it. */
enum { KEEP_STACKS_LEAST = 64 << 20, KEEP_ROWS_LEAST = 16 << 20 };

struct keep_limits {
	uint64_t nodes, rows;            /**< of one region */
	uint64_t stack_bytes, row_bytes; /**< of all */
};

/** What is kept of one region. */
struct keep {
	const struct keep_limits *limits;
	struct writer *writer;
	uint64_t nodes, rows;                  /**< that it has added */
	uint32_t nodes_before;                 /**< of the writer, when stacks began to be taken */
	bool has_cut_stacks, has_refused_rows; /**< a limit was in the way */
};

/** Limits for the memory that this process may have. */
struct keep_limits keep_limits_default(void);

/** Stacks are about to be taken from the region: the writer adds as many as it may add. Then: no more come, so that
    others may add theirs. */
void keep_begin_stacks(struct keep *keep);
void keep_end_stacks(struct keep *keep);

/** Count one more row that the region is about to add. False: there are as many as may be. */
bool keep_add_row(struct keep *keep);

/** Whether rows may be added that are of no region. */
bool keep_has_room(const struct keep_limits *limits, const struct writer *writer);

#endif
