/* SPDX-License-Identifier: MIT */
/*
 * Unwind tables are read inside targets, of whatever image the loader mapped. The input is an image: 16 bits that say where its
 * .eh_frame_hdr begins, then its bytes, which end where the memory ends. Built with XHEAP_LIBFUZZER it is a libFuzzer target; else
 * a program that tries each file that it is given, cut and with bits flipped.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLACE_BYTES = 2, STEPS = 64 };

static void check_row(row_bits row)
{
	/* A row fits a cache line's 40 bits, and says nothing that there is no code for. */
	if (row >> ROW_ID_SHIFT || row_kind(row) == ROW_NONE || row_kind(row) > ROW_POINTERS || row_bp_rule(row) > ROW_BP_FROM_BP)
		abort();
	if (row_cfa_offset(row) % 8 || row_bp_offset(row) % 8)
		abort();
}

/* The start of the function that the table's row i is for; what it says of its count is not believed. */
static uint64_t function_start(const uint8_t *header, size_t bytes, size_t i)
{
	int32_t start = 0;
	if (bytes >= 12 + (i + 1) * 8)
		memcpy(&start, header + 12 + i * 8, sizeof(start));
	return (uint64_t)header + (uint64_t)(int64_t)start;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= PLACE_BYTES)
		return 0;
	/* An exact copy, so that a sanitizer sees every byte too many. */
	size_t bytes = size - PLACE_BYTES, at = (data[0] | (size_t)data[1] << 8) % bytes;
	uint8_t *image = malloc(bytes);
	if (!image)
		return 0;
	memcpy(image, data + PLACE_BYTES, bytes);
	uint64_t base = (uint64_t)image;
	struct unwind_tables tables = {.base = base, .end = base + bytes, .header = base + at, .header_bytes = bytes - at};
	for (size_t i = 0; i < STEPS; i++) {
		check_row(unwind_row(&tables, base + bytes * i / STEPS));
		uint64_t start = function_start(image + at, bytes - at, i);
		check_row(unwind_row(&tables, start));
		check_row(unwind_row(&tables, start + i % 16));
	}
	check_row(unwind_row(&tables, 0));
	check_row(unwind_row(&tables, UINT64_MAX));
	free(image);
	return 0;
}

#ifndef XHEAP_LIBFUZZER
enum { INPUT_MAX = 1 << 16, FLIP_ROUNDS = 2000, CUTS = 500 };

static void try_damaged(uint8_t *data, size_t size)
{
	uint32_t random = (uint32_t)size;
	for (size_t cut = 0; cut < size; cut += 1 + size / CUTS)
		LLVMFuzzerTestOneInput(data, cut);
	for (int round = 0; round < FLIP_ROUNDS && size; round++) {
		uint8_t old[8];
		size_t at[8];
		for (int i = 0; i < 8; i++) {
			random = random * 1664525 + 1013904223;
			at[i] = (random >> 4) % size;
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
	static uint8_t data[INPUT_MAX];
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
