/* SPDX-License-Identifier: MIT */
#include "replay.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLIPS = 8, SOAK_FACTOR = 4 };

static unsigned factor(void)
{
	return getenv("SOAK") ? SOAK_FACTOR : 1;
}

static void try_cut(const uint8_t *data, size_t size)
{
	size_t step = replay.cut_bytes ? replay.cut_bytes : 1 + size / (replay.cuts * factor());
	for (size_t cut = 0; cut < size; cut += step)
		LLVMFuzzerTestOneInput(data, cut);
}

static void try_flipped(uint8_t *data, size_t size)
{
	uint32_t random = (uint32_t)size; /* the same bits each time */
	for (unsigned round = 0; round < replay.flip_rounds * factor() && size; round++) {
		uint8_t old[FLIPS];
		size_t at[FLIPS];
		for (int i = 0; i < FLIPS; i++) {
			random = random * 1664525 + 1013904223;
			at[i] = (random >> 4) %
				(i % 2 || !replay.front_bytes || size < replay.front_bytes ? size : replay.front_bytes);
			old[i] = data[at[i]];
			data[at[i]] ^= (uint8_t)(1u << (random & 7));
		}
		LLVMFuzzerTestOneInput(data, size);
		for (int i = FLIPS; i-- > 0;)
			data[at[i]] = old[i];
	}
}

static int try_file(const char *path, uint8_t *data)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return 2;
	}
	size_t size = fread(data, 1, replay.bytes_max, file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	try_cut(data, size);
	if (replay.more)
		replay.more(data, size);
	try_flipped(data, size);
	return 0;
}

int main(int count, char **arguments)
{
	uint8_t *data = malloc(replay.bytes_max);
	int status = data ? 0 : 2;
	for (int i = 1; i < count && status == 0; i++)
		status = try_file(arguments[i], data);
	free(data);
	if (replay.end)
		replay.end();
	return status;
}
