/* SPDX-License-Identifier: MIT */
/*
 * A fuzzer without libFuzzer: a program that tries each file that it is given, whole, cut and with bits flipped
 * (replay.c). It is linked to all fuzzers that are not built with libFuzzer, and each says how.
 */
#ifndef TESTS_FUZZ_REPLAY_H
#define TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** How much is tried in make check; SOAK=1: four times as much. */
struct replay {
	size_t bytes_max;     /* of a file, what is read of it */
	size_t cut_bytes;     /* from one cut to the next; 0: by cuts */
	size_t cuts;          /* so many of each file */
	unsigned flip_rounds; /* eight bits in each */
	/* where every other bit is flipped, of files that have as many; 0: no bits are preferred */
	size_t front_bytes;
	void (*more)(uint8_t *data, size_t size); /* with each file; NULL: nothing */
	void (*end)(void);                        /* before the program ends; NULL: nothing */
};

extern const struct replay replay;

#endif
