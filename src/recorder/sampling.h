/* SPDX-License-Identifier: MIT */
/**
 * Sampling by bytes: of all bytes asked for, each is chosen with the same small probability, and a block is recorded if
 * one of its bytes is. The bytes between two chosen ones are a Poisson process's, so a thread only counts down to the
 * next. A block of `size` bytes is recorded with probability 1 - exp(-size / sample_bytes): by that, readers weigh it.
 * Of what gives blocks back, only that is recorded which gives back a recorded one: those that live are in a set, by
 * address.
 */
#ifndef XHEAP_RECORDER_SAMPLING_H
#define XHEAP_RECORDER_SAMPLING_H

#include "base/hash.h"
#include "recorder/recorder.h"
#include "recorder/sys.h"

/** Begin a thread's countdown. */
void sample_begin(struct thread *thread, uint64_t seed);

/** A block of this size: whether it is recorded. Counts down. */
int sample_takes(struct thread *thread, uint64_t size);

/** A recorded block lives at address. False: there is no room, and its end will not be known. */
int sample_add(struct recorder *recorder, uint64_t address);

/** Take a block out of the set. False: it was not recorded. */
int sample_drop(struct recorder *recorder, uint64_t address);

/** Take all blocks of the annotated heap out of the set. */
void sample_drop_heap(struct recorder *recorder, uint16_t heap);

/** What a block of an annotated heap is in the set by: another one may begin at its address. */
static inline uint64_t sample_key(uint16_t heap, uint64_t address)
{
	const uint64_t address_bits = 48;
	return (address & ((1ull << address_bits) - 1)) | (uint64_t)(heap | 0x8000) << address_bits;
}

/** A block of no bytes is one, too. */
static inline uint64_t sample_length(uint64_t size)
{
	return size ? size : 1;
}

static inline uint32_t sample_bucket(uint64_t address)
{
	return hash_bits(address, RECORDER_SAMPLE_BITS);
}

/** Whether a recorded block may live at address: for nearly all others the answer is no. */
static inline int sample_may_hold(const struct recorder *recorder, uint64_t address)
{
	return LOAD(&recorder->sample_count[sample_bucket(address)]) != 0;
}

#endif
