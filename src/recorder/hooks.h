/* SPDX-License-Identifier: MIT */
/** Parameters and small sums that the hooks of allocators, samples and annotations share. */
#ifndef XHEAP_RECORDER_HOOKS_H
#define XHEAP_RECORDER_HOOKS_H

#include "recorder/event_record.h"
#include "recorder/sampling.h"

#define FRAME ((uint64_t)__builtin_frame_address(0))
#define UNUSED __attribute__((unused))
#define PARAMETERS \
	uint64_t a UNUSED, uint64_t b UNUSED, uint64_t c UNUSED, uint64_t d UNUSED, \
		const struct hook_context *context UNUSED

/* ENOMEM, which these functions report without memory. */
enum { NO_MEMORY = 12 };

/* Return count * size as requested bytes, UINT64_MAX on overflow: more than exists. */
static inline uint64_t product(uint64_t count, uint64_t size)
{
	uint64_t bytes;
	return __builtin_mul_overflow(count, size, &bytes) ? UINT64_MAX : bytes;
}

/** Add a block to the sample, so that its end is recorded, too. Annotated blocks are given by sample_key(). */
void sample_keep(const struct hook_context *context, uint64_t address);

#endif
