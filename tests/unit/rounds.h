/* SPDX-License-Identifier: MIT */
/** How much of a long test is done: all by `make check`, an eighth by `make quick`, which sets QUICK, and with
    ThreadSanitizer, which is many times as slow and finds races in fewer rounds. */
#ifndef XHEAP_TESTS_ROUNDS_H
#define XHEAP_TESTS_ROUNDS_H

#include <stdint.h>
#include <stdlib.h>

enum { ROUNDS_QUICK = 8 };

/** Return the step from one round to the next, of rounds that differ: 1, or in a quick run 8. */
static inline uint32_t rounds_step(void)
{
#ifdef __SANITIZE_THREAD__
	return ROUNDS_QUICK;
#else
	return getenv("QUICK") ? ROUNDS_QUICK : 1;
#endif
}

/** Return how many rounds of `all` to do, at least one. */
static inline uint32_t rounds(uint32_t all)
{
	return (all + rounds_step() - 1) / rounds_step();
}

#endif
