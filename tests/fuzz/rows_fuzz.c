/* SPDX-License-Identifier: MIT */
/*
 * Unwind tables are read inside targets, of whatever image the loader mapped. The input is an image: 16 bits that say
 * where its .eh_frame_hdr begins, then its bytes, which end where the memory ends.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "unwind/unwind_rows.h"

enum { PLACE_BYTES = 2, STEPS = 64 };

static void check_row(row_bits row)
{
	/* A row fits a cache line's 40 bits, and says nothing that there is no code for. */
	if (row >> 40 || row_kind(row) == ROW_NONE || row_kind(row) > ROW_POINTERS ||
	    row_bp_rule(row) > ROW_BP_FROM_BP)
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
	struct unwind_tables tables = {
		.base = base, .end = base + bytes, .header = base + at, .header_bytes = bytes - at};
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

const struct replay replay = {.bytes_max = 1 << 16, .cuts = 500, .flip_rounds = 2000};
