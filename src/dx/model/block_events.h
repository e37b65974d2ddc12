/* SPDX-License-Identifier: MIT */
/** The calls at which blocks began and ended, found in the trace by their points. */
#ifndef XHEAP_DX_BLOCK_EVENTS_H
#define XHEAP_DX_BLOCK_EVENTS_H

#include "dx/model/block_pass.h"

/** Set the event that began the block, or ended it. Those of the elements that come next in the query are read with it,
    in the order of the trace, and kept. False: there is none, or the query is stopped. */
bool dx_event_of_block(struct dx_query *query, const struct dx_block *block, bool is_end, struct dx_event *event);

#endif
