/* SPDX-License-Identifier: MIT */
/** The order of event blocks that are read apart from each other. Events are ordered by time, then by process and
    thread, and within a thread by block and row: so time, rank of the block, and row stand for the event's number. */
#ifndef XHEAP_PLAN_BLOCK_ORDER_H
#define XHEAP_PLAN_BLOCK_ORDER_H

#include <stdint.h>

struct trace;

/** Return the rank of each event block; the caller frees them. NULL: a thread's block begins before the end of the one
    before. The stream of all events does not sort across blocks, so only it has their order. */
uint32_t *block_ranks_new(const struct trace *trace);

#endif
