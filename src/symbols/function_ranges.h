/* SPDX-License-Identifier: MIT */
/** Where the functions of an image begin and end, from its unwind table (.eh_frame_hdr), which stripped files have,
    too. */
#ifndef XHEAP_SYMBOLS_FUNCTION_RANGES_H
#define XHEAP_SYMBOLS_FUNCTION_RANGES_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/** The unwind table of a file. The bytes belong to the file. */
struct function_ranges {
	const char *file;
	size_t file_size;
	const char *rows; /**< pairs of 4-byte numbers, relative to `base`: a function's first address, its unwind data;
			     NULL: none */
	uint32_t row_count;
	uint64_t base;
	Elf *elf;
};

/** Find the table of a file, which must outlive the ranges. Without one there is no function. */
void function_ranges_init(struct function_ranges *ranges, Elf *elf);

/** Set [*low, *high) to the function at the link-time address. Return false if the table has none there. */
bool function_ranges_find(const struct function_ranges *ranges, uint64_t address, uint64_t *low, uint64_t *high);

#endif
