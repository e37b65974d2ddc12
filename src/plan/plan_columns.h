/* SPDX-License-Identifier: MIT */
/** The columns of a plan's sources, batch by batch. */
#ifndef XHEAP_PLAN_PLAN_COLUMNS_H
#define XHEAP_PLAN_PLAN_COLUMNS_H

#include <string.h>

#include "match/point_stream.h"
#include "plan/plan.h"
#include "query/scan.h"

enum { PLAN_WORDS = PLAN_BATCH / 64 };

/** The values of a node in a batch. Those of absent ones are anything, as are those behind the last row. */
struct plan_vector {
	const uint64_t *values;      /**< of PLAN_TRUTH: NULL */
	uint64_t truth[PLAN_WORDS];  /**< of PLAN_TRUTH: a bit for each row; none where the value is absent */
	uint64_t absent[PLAN_WORDS]; /**< a bit for each row */
};

/** Return the low bits of 64 bytes, each 0 or 1. */
static inline uint64_t plan_bits_of_bytes(const uint8_t *bytes)
{
	uint64_t bits = 0;
	for (unsigned i = 0; i < sizeof(uint64_t); i++) {
		uint64_t eight;
		memcpy(&eight, bytes + i * sizeof(eight), sizeof(eight));
		/* Byte k's bit comes to bit 56 + k. */
		bits |= eight * UINT64_C(0x0102040810204080) >> 56 << i * 8;
	}
	return bits;
}

/** Rows that are computed together: of the table, or of an event block. */
struct plan_batch {
	const struct plan_target *target;
	uint32_t count;
	uint64_t first_id;                /**< the first row's number */
	const struct heap_rows *rows;     /**< allocations */
	const struct trace_block *block;  /**< events */
	const struct point_place *places; /**< of the events, from the batch's first one on; NULL: consecutive rows */
	uint32_t first;                   /**< without places: the first row in the block */
};

/** Set the values of a column in a batch: they are made in `room`, of PLAN_BATCH, or lie in the batch. Before,
    nothing is absent. */
typedef void plan_column_fill(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room);

/** Return the function of a source for a column; NULL: the source lacks it. */
plan_column_fill *plan_column_filler(enum plan_source source, enum plan_column column);

/** Return what the column needs of allocations: PACK_TIMES, ... */
unsigned plan_column_needs(enum plan_column column);

enum plan_type plan_column_type(enum plan_column column);

/** Return the row of the event block that is number i of the batch. */
static inline uint32_t plan_batch_row(const struct plan_batch *batch, uint32_t i)
{
	return batch->places ? batch->places[i].row : batch->first + i;
}

#endif
