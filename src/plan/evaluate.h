/* SPDX-License-Identifier: MIT */
/** The expressions of a plan, computed for a batch of rows at a time. */
#ifndef XHEAP_PLAN_EVALUATE_H
#define XHEAP_PLAN_EVALUATE_H

#include <string.h>

#include "plan/plan.h"

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

/** The state of one thread. */
struct plan_evaluation {
	const struct plan *plan;
	struct plan_vector *vectors;        /**< by node */
	uint64_t *room;                     /**< of the nodes that need it, PLAN_BATCH each */
	uint32_t *room_of;                  /**< by node: its place in `room`; PLAN_NOTHING: none */
	bool *is_of_filter, *is_of_outputs; /**< by node: whether the filter, the outputs need it */
};

/** Begin. End it with plan_evaluation_end(). */
void plan_evaluation_begin(struct plan_evaluation *evaluation, const struct plan *plan);
void plan_evaluation_end(struct plan_evaluation *evaluation);

/** Return what the plan needs of allocations: PACK_TIMES, ...; or of events: PACK_ADDRESSES, PACK_TIMES or 0. */
unsigned plan_needs(const struct plan *plan);

/** Remove from `passes` the rows that do not pass the filter. Return whether any is left. */
bool plan_filter_batch(struct plan_evaluation *evaluation, const struct column_rows *batch,
		       uint64_t passes[PLAN_WORDS]);

/** Compute the outputs, or keys and aggregates' nodes. */
void plan_output_batch(struct plan_evaluation *evaluation, const struct column_rows *batch);

/** Return the value of a node that was computed, in row i, as its bits; 0 if it is absent. */
static inline uint64_t plan_vector_bits(const struct plan_vector *vector, uint32_t i)
{
	if (vector->absent[i / 64] >> i % 64 & 1)
		return 0;
	return vector->values ? vector->values[i] : vector->truth[i / 64] >> i % 64 & 1;
}

static inline bool plan_vector_is_absent(const struct plan_vector *vector, uint32_t i)
{
	return vector->absent[i / 64] >> i % 64 & 1;
}

#endif
