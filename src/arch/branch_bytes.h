/* SPDX-License-Identifier: MIT */
/** Direct branches with long displacements, found by their bytes without decoding what lies before them. */
#ifndef XHEAP_ARCH_BRANCH_BYTES_H
#define XHEAP_ARCH_BRANCH_BYTES_H

#include <stdbool.h>
#include <stdint.h>

enum { BRANCH_FILTER_BITS = 8192 };

/** A set of addresses; it may seem to contain others that lie near one of them or share its bit. All 0: empty. */
struct branch_filter {
	uint64_t bits[BRANCH_FILTER_BITS / 64];
};

/** Bytes that may be a branch; they may also be part of other instructions. */
struct branch_bytes {
	uint64_t site;  /**< address of the first byte */
	uint64_t after; /**< of the byte behind the last */
	uint64_t destination;
	bool is_call;
};

/** Called with each branch that is found; `branch` is valid until it returns. */
typedef void branch_bytes_found(void *context, const struct branch_bytes *branch);

/** Add an address to the set. */
void branch_filter_add(struct branch_filter *filter, uint64_t address);

enum { BRANCH_SHORT_BYTES = 2 };

/** Return where the bytes, BRANCH_SHORT_BYTES of code that runs at `address`, lead if they end a branch with a short
 *  displacement; 0: they do not. They may also be part of other instructions. */
uint64_t branch_short_destination(const uint8_t *bytes, uint64_t address);

/** Call `found` for each run of bytes that would be a branch to an address of the filter, in the order of their
 *  addresses. `bytes` are `size` bytes of code that runs at `address`. */
void branch_bytes_find(const struct branch_filter *filter, const uint8_t *bytes, uint64_t size, uint64_t address,
		       branch_bytes_found *found, void *context);

#endif
