/* SPDX-License-Identifier: MIT */
/** Blocks by their ends: which block a free gave back. */
#ifndef XHEAP_DX_BLOCK_ENDS_H
#define XHEAP_DX_BLOCK_ENDS_H

#include <stdbool.h>
#include <stdint.h>

struct dx_event;
struct dx_query;

/** Set the number of the block that the event, a Free, ended. False: it ended none, or the query is stopped. */
bool dx_block_ended_by(struct dx_query *query, const struct dx_event *event, uint32_t *number);

#endif
