/* SPDX-License-Identifier: MIT */
/*
 * At every byte, 64 at a time: an opcode byte that fits (e8, e9, 0f 80..8f), and a displacement of 32 bits that leads
 * to an address in the filter. Code has about three such bytes among 64. No processor can predict how many they are, so
 * the runs are long.
 */
#include "arch/branch_bytes.h"

#include <emmintrin.h>
#include <string.h>

enum { GRANULE = 4 /* the filter has one bit for 2^GRANULE addresses */, RUN = 64, DISPLACEMENT = 4 };

struct scan {
	const struct branch_filter *filter;
	branch_bytes_found *found;
	void *context;
};

static uint64_t filter_bit(uint64_t address)
{
	return (address >> GRANULE) % BRANCH_FILTER_BITS;
}

void branch_filter_add(struct branch_filter *filter, uint64_t address)
{
	uint64_t bit = filter_bit(address);
	filter->bits[bit / 64] |= 1ull << bit % 64;
}

/* jmp (eb), conditions (70..7f), loops and jrcxz (e0..e3). */
uint64_t branch_short_destination(const uint8_t *bytes, uint64_t address)
{
	bool is_branch = bytes[0] == 0xeb || (bytes[0] & 0xf0) == 0x70 || (bytes[0] & 0xfc) == 0xe0;
	return is_branch ? address + BRANCH_SHORT_BYTES + (uint64_t)(int64_t)(int8_t)bytes[1] : 0;
}

/* One opcode byte that fits, at bytes[0]; its displacement follows. */
static inline void opcode_check(struct scan *scan, const uint8_t *bytes, uint64_t address)
{
	int32_t relative;
	memcpy(&relative, bytes + 1, sizeof(relative));
	uint64_t destination = address + 5 + (uint64_t)(int64_t)relative, bit = filter_bit(destination);
	if (!(scan->filter->bits[bit / 64] >> bit % 64 & 1))
		return;
	bool is_condition = bytes[0] < 0xe8;
	const struct branch_bytes branch = {.site = address - is_condition,
					    .after = address + 5,
					    .destination = destination,
					    .is_call = bytes[0] == 0xe8};
	scan->found(scan->context, &branch);
}

/* A bit for each of 16 bytes that may be the last opcode byte of a long branch; bytes[-1] is readable. */
static inline unsigned opcodes(const uint8_t *bytes)
{
	__m128i here = _mm_loadu_si128((const __m128i *)bytes), before = _mm_loadu_si128((const __m128i *)(bytes - 1));
	__m128i call = _mm_cmpeq_epi8(_mm_or_si128(here, _mm_set1_epi8(1)), _mm_set1_epi8((char)0xe9));
	__m128i high = _mm_cmpeq_epi8(_mm_and_si128(here, _mm_set1_epi8((char)0xf0)), _mm_set1_epi8((char)0x80));
	__m128i escape = _mm_cmpeq_epi8(before, _mm_set1_epi8(0x0f));
	return (unsigned)_mm_movemask_epi8(_mm_or_si128(call, _mm_and_si128(high, escape)));
}

/* The same of RUN bytes. */
static inline uint64_t run_opcodes(const uint8_t *bytes)
{
	uint64_t mask = 0;
	for (unsigned i = 0; i < RUN; i += 16)
		mask |= (uint64_t)opcodes(bytes + i) << i;
	return mask;
}

static bool is_opcode(const uint8_t *bytes, uint64_t at)
{
	return (bytes[at] | 1) == 0xe9 || ((bytes[at] & 0xf0) == 0x80 && at > 0 && bytes[at - 1] == 0x0f);
}

void branch_bytes_find(const struct branch_filter *filter, const uint8_t *bytes, uint64_t size, uint64_t address,
		       branch_bytes_found *found, void *context)
{
	struct scan *scan = &(struct scan){filter, found, context};
	uint64_t at = 0;
	if (size < 5)
		return;
	for (; at < 16 && at + 5 <= size; at++)
		if (is_opcode(bytes, at))
			opcode_check(scan, bytes + at, address + at);
	for (; at + RUN + DISPLACEMENT <= size; at += RUN)
		for (uint64_t mask = run_opcodes(bytes + at); mask; mask &= mask - 1) {
			unsigned bit = (unsigned)__builtin_ctzll(mask);
			opcode_check(scan, bytes + at + bit, address + at + bit);
		}
	for (; at + 5 <= size; at++)
		if (is_opcode(bytes, at))
			opcode_check(scan, bytes + at, address + at);
}
