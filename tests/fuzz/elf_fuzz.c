/* SPDX-License-Identifier: MIT */
/*
 * Executables and libraries are looked at before they run, so their bytes are anybody's. Built with XHEAP_LIBFUZZER it is a
 * libFuzzer target; else a program that tries each file that it is given, cut and with bits flipped.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook/hook.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void relocate_all(const struct hook_image *image)
{
	for (uint32_t i = 0; i < image->target_count; i++) {
		uint8_t code[HOOK_RELOCATED_MAX];
		int16_t offsets[HOOK_DISPLACED_MAX];
		struct diag diag = {""};
		uint64_t address = image->targets[i].address + 0x555500000000;
		int length = hook_relocate(&image->targets[i], address, 0x555540000000, code, offsets, &diag);
		/* What could be displaced can be moved, or says why not. */
		if (length > HOOK_RELOCATED_MAX || (length < 0 && !diag.text[0]) || (image->targets[i].displaced == 0 && length > 0))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int is_main = 0; is_main < 2; is_main++) {
		struct hook_image image;
		struct diag diag = {""};
		/* An exact copy, so that a sanitizer sees every byte too many. */
		uint8_t *copy = malloc(size ? size : 1);
		if (!copy)
			return 0;
		memcpy(copy, data, size);
		int error = hook_image_read(&image, copy, size, is_main, &diag);
		if (error && !diag.text[0])
			abort();
		relocate_all(&image);
		hook_image_fini(&image);
		free(copy);
	}
	return 0;
}

#ifndef XHEAP_LIBFUZZER
enum { BYTES_MAX = 1 << 20, FLIP_ROUNDS = 3000 };

static void try_damaged(uint8_t *data, size_t size)
{
	uint32_t random = (uint32_t)size;
	for (size_t cut = 0; cut < size; cut += 64)
		LLVMFuzzerTestOneInput(data, cut);
	for (int round = 0; round < FLIP_ROUNDS && size; round++) {
		uint8_t old[8];
		size_t at[8];
		for (int i = 0; i < 8; i++) {
			random = random * 1664525 + 1013904223;
			at[i] = (random >> 4) % (i % 2 || size < 1024 ? size : 1024);
			old[i] = data[at[i]];
			data[at[i]] ^= (uint8_t)(1u << (random & 7));
		}
		LLVMFuzzerTestOneInput(data, size);
		for (int i = 8; i-- > 0;)
			data[at[i]] = old[i];
	}
}

int main(int count, char **arguments)
{
	static uint8_t data[BYTES_MAX];
	for (int i = 1; i < count; i++) {
		FILE *file = fopen(arguments[i], "rb");
		if (!file) {
			perror(arguments[i]);
			return 2;
		}
		size_t size = fread(data, 1, sizeof(data), file);
		fclose(file);
		LLVMFuzzerTestOneInput(data, size);
		try_damaged(data, size);
	}
	return 0;
}
#endif
