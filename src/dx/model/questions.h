/* SPDX-License-Identifier: MIT */
/** Ready questions: searches and sums that users ask for most, as methods of Data and Utility. */
#ifndef XHEAP_DX_QUESTIONS_H
#define XHEAP_DX_QUESTIONS_H

#include <stdint.h>

#include "dx/model/block_pass.h"

/** Return the blocks that are live at a position, summed by stack, as a sequence of dx_stack_row_class. */
struct dx_value dx_live_by_stack(struct dx_query *query, uint32_t process, struct dx_value position);

#endif
