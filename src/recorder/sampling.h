/* SPDX-License-Identifier: MIT */
/**
 * Sampling by bytes: each requested byte is chosen with the same small probability, and a block is recorded if one of
 * its bytes is chosen. The distances of chosen bytes are those of a Poisson process, so a thread only counts down to
 * the next one. A block of `size` bytes is recorded with probability 1 - exp(-size / sample_bytes), by which readers
 * weigh it. A call that frees a block is recorded only if the block was: recorded live blocks are in a set, by address.
 */
#ifndef XHEAP_RECORDER_SAMPLING_H
#define XHEAP_RECORDER_SAMPLING_H

#include "base/hash.h"
#include "recorder/recorder.h"
#include "recorder/sys.h"

/** Begin a thread's countdown. */
void sample_begin(struct thread *thread, uint64_t seed);

/** Count a block of this size down. Return whether it is recorded. */
int sample_takes(struct thread *thread, uint64_t size);

/** Add the recorded block at `address` to the set. Return 0 if there is no room; its end will not be noticed. */
int sample_add(struct recorder *recorder, uint64_t address);

/** Remove a block from the set. Return 0 if it was not recorded. */
int sample_drop(struct recorder *recorder, uint64_t address);

/** Remove all blocks of the annotated heap from the set. */
void sample_drop_heap(struct recorder *recorder, uint16_t heap);

/** Return the key of an annotated heap's block in the set: a block of another heap may begin at its address. */
static inline uint64_t sample_key(uint16_t heap, uint64_t address)
{
	const uint64_t address_bits = 48;
	return (address & ((1ull << address_bits) - 1)) | (uint64_t)(heap | 0x8000) << address_bits;
}

/** Return the length of a block for sampling: a block without bytes counts as one byte. */
static inline uint64_t sample_length(uint64_t size)
{
	return size ? size : 1;
}

/** Return the bucket of an address. */
static inline uint32_t sample_bucket(uint64_t address)
{
	return hash_bits(address, RECORDER_SAMPLE_BITS);
}

/** Return whether the set may have a block at `address`; nearly all others are excluded. */
static inline int sample_may_hold(const struct recorder *recorder, uint64_t address)
{
	return LOAD(&recorder->sample_count[sample_bucket(address)]) != 0;
}

#endif
