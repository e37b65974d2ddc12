/* SPDX-License-Identifier: MIT */
/** How both sides change the state of a message: only as long as it is the thread's that they take it for.
    Freestanding. */
#ifndef XHEAP_REGION_MESSAGE_H
#define XHEAP_REGION_MESSAGE_H

#include "region/atomic.h"
#include "region/layout.h"

static inline enum region_message_state message_state(uint32_t word)
{
	return (enum region_message_state)(word & ((1u << MESSAGE_STATE_BITS) - 1));
}

static inline uint32_t message_tid(uint32_t word)
{
	return word >> MESSAGE_STATE_BITS;
}

/** What the word is while the message is tid's. */
static inline uint32_t message_word(enum region_message_state state, uint32_t tid)
{
	return state == MESSAGE_FREE ? MESSAGE_FREE : (uint32_t)state | tid << MESSAGE_STATE_BITS;
}

/** True when it was in the state `from`, and tid's: then it is in the state `to` now. */
static inline int message_turn(struct region_message *message, uint32_t tid, enum region_message_state from,
			       enum region_message_state to)
{
	return swap_if(&message->state, message_word(from, tid), message_word(to, tid));
}

#endif
