/* SPDX-License-Identifier: MIT */
/** The blocks of one process by address. The inner loop of matching: 16 bytes a block, one probe as a rule. */
#ifndef XHEAP_HEAP_LIVE_H
#define XHEAP_HEAP_LIVE_H

#include <stdint.h>

/** A block's address and what is known of it; meanings of the numbers are the caller's. */
struct live_cell {
	uint64_t address;            /**< 0: empty */
	uint32_t current, other;
};

/** Zero it to begin. */
struct live {
	struct live_cell *cells;
	uint32_t count, bits;
};

/** The cell of the address, or NULL. Valid until the next live_add() or live_remove(). */
struct live_cell *live_find(const struct live *live, uint64_t address);

/** The cell of the address (not 0); a new one has `current` and `other` UINT32_MAX. */
struct live_cell *live_add(struct live *live, uint64_t address);

/** The cell will be asked for soon. */
void live_expect(const struct live *live, uint64_t address);

/** Forget the cell that was found or added last. */
void live_remove(struct live *live, struct live_cell *cell);

void live_fini(struct live *live);

#endif
