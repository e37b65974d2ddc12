/* SPDX-License-Identifier: MIT */
/** A heap call of an explanation, from the trace. */
#ifndef XHEAP_ACTION_EXPLANATION_CALL_H
#define XHEAP_ACTION_EXPLANATION_CALL_H

#include <stdint.h>

struct explain_call;
struct trace_block;

/** Set the call to the one of a row of the block, without a history. */
void explain_call_set(struct explain_call *call, const struct trace_block *block, uint32_t row);

#endif
