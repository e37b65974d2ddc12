/* SPDX-License-Identifier: MIT */
/** What the hooks of allocators, of samples and of annotations share: their parameters, and small sums. */
#ifndef XHEAP_RECORDER_HOOKS_H
#define XHEAP_RECORDER_HOOKS_H

#include "recorder/event_record.h"
#include "recorder/sampling.h"

#define FRAME ((uint64_t)__builtin_frame_address(0))
#define UNUSED __attribute__((unused))
#define PARAMETERS \
	uint64_t a UNUSED, uint64_t b UNUSED, uint64_t c UNUSED, uint64_t d UNUSED, \
		const struct hook_context *context UNUSED

/* ENOMEM: what these functions report when there is none. */
enum { NO_MEMORY = 12 };

/* count * size as requested bytes; what overflows is more than there is. */
static inline uint64_t product(uint64_t count, uint64_t size)
{
	uint64_t bytes;
	return __builtin_mul_overflow(count, size, &bytes) ? UINT64_MAX : bytes;
}

/** The block is one of the sample: record its end, too. Annotated blocks are given by sample_key(). */
void sample_keep(const struct hook_context *context, uint64_t address);

#endif
