/* SPDX-License-Identifier: MIT */
/** Allocations: blocks with their history, from the model. */
#ifndef XHEAP_DX_OBJECTS_ALLOCATION_H
#define XHEAP_DX_OBJECTS_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include "dx/model/block_pass.h"
#include "dx/model/objects.h"

/** Return the sequence of the chosen blocks of one process, or of all (TRACE_NONE). */
struct dx_value dx_blocks(struct dx_query *query, uint32_t process, enum dx_block_choice choice,
			  struct dx_value position, int column);

/** Return whether the sequence is of blocks, and set what it was made with. */
bool dx_blocks_are(const struct dx_sequence *sequence, uint32_t *process, enum dx_block_choice *choice);

#endif
