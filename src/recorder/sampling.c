/* SPDX-License-Identifier: MIT */
#include "recorder/sampling.h"

/* Return the next of a thread's random numbers: xorshift64* (Vigna, "An experimental exploration of Marsaglia's
   xorshift generators"). */
static uint64_t random_next(struct thread *thread)
{
	uint64_t value = thread->random;
	value ^= value >> 12;
	value ^= value << 25;
	value ^= value >> 27;
	thread->random = value;
	return value * 0x2545f4914f6cdd1dull;
}

/* ln 2 and the sums of ln(2)^i / i! for i up to k + 1, as fractions of 2^64. */
static const uint64_t ln2 = 0xb17217f7d1cf79ab;
static const uint64_t sums[] = {
	0xb17217f7d1cf79ab, 0xeef193f6d75a96fc, 0xfd27186259aaf6c2, 0xff9d6dd050f4c5a7, 0xfff4cfcfef1e626b,
	0xfffee81886e1c62f, 0xffffe7fe850e0bb5, 0xfffffe2a8731b17d, 0xffffffdfac6eeadc, 0xfffffffdf9640067,
	0xffffffffe22ec79c, 0xfffffffffe6a9ded, 0xffffffffffebff81, 0xffffffffffff1417, 0xfffffffffffff5ce,
	0xffffffffffffff95, 0xfffffffffffffffb, 0xffffffffffffffff,
};
enum { SUM_COUNT = sizeof(sums) / sizeof(sums[0]) };

/* Return the bytes up to the next chosen one: exponentially distributed with the mean sample_bytes. Knuth, The Art of
   Computer Programming 2, 3.4.1, algorithm S: exact, and without a logarithm. */
static uint64_t gap_next(struct thread *thread)
{
	uint64_t heads = ~random_next(thread), fraction = random_next(thread);
	unsigned __int128 ones = heads ? (unsigned)__builtin_clzll(heads) : 64, value;
	if (fraction < sums[0]) {
		value = ones * ln2 + fraction;
	} else {
		uint64_t least = random_next(thread);
		int k = 0;
		do {
			uint64_t other = random_next(thread);
			least = other < least ? other : least;
			k++;
		} while (k < SUM_COUNT - 1 && fraction >= sums[k]);
		value = ones * ln2 + (uint64_t)((unsigned __int128)least * ln2 >> 64);
	}
	return (uint64_t)(value * thread->recorder->region->sample_bytes >> 64);
}

void sample_begin(struct thread *thread, uint64_t seed)
{
	thread->random = (seed ^ seed >> 31) * HASH_FACTOR | 1;
	for (int i = 0; i < 4; i++) /* like seeds become unlike numbers */
		random_next(thread);
	thread->sample_left = gap_next(thread);
}

int sample_takes(struct thread *thread, uint64_t size)
{
	uint64_t length = sample_length(size);
	if (LIKELY(length <= thread->sample_left)) {
		thread->sample_left -= length;
		return 0;
	}
	thread->sample_left = gap_next(thread);
	return 1;
}

/* Return the place in the address's bucket that holds `wanted`; -1: none. */
static int place_of(const uint64_t *bucket, uint64_t wanted)
{
	for (int i = 0; i < RECORDER_SAMPLE_PLACES; i++)
		if (LOAD(&bucket[i]) == wanted)
			return i;
	return -1;
}

static int place_change(uint64_t *bucket, uint64_t from, uint64_t to)
{
	int place;
	while ((place = place_of(bucket, from)) >= 0) {
		uint64_t expected = from;
		if (__atomic_compare_exchange_n(&bucket[place], &expected, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return 1;
	}
	return 0;
}

int sample_add(struct recorder *recorder, uint64_t address)
{
	uint32_t bucket = sample_bucket(address);
	if (!place_change(recorder->sample[bucket], 0, address))
		return 0;
	__atomic_fetch_add(&recorder->sample_count[bucket], 1, __ATOMIC_RELEASE);
	return 1;
}

int sample_drop(struct recorder *recorder, uint64_t address)
{
	uint32_t bucket = sample_bucket(address);
	if (!LOAD(&recorder->sample_count[bucket]) || !place_change(recorder->sample[bucket], address, 0))
		return 0;
	__atomic_fetch_sub(&recorder->sample_count[bucket], 1, __ATOMIC_RELEASE);
	return 1;
}

void sample_drop_heap(struct recorder *recorder, uint16_t heap)
{
	const uint64_t first = sample_key(heap, 0), span = 1ull << 48;
	for (uint32_t bucket = 0; bucket < 1u << RECORDER_SAMPLE_BITS; bucket++)
		for (int i = 0; LOAD(&recorder->sample_count[bucket]) && i < RECORDER_SAMPLE_PLACES; i++) {
			uint64_t key = LOAD(&recorder->sample[bucket][i]);
			if (key - first < span)
				sample_drop(recorder, key);
		}
}
