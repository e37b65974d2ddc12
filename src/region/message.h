/* SPDX-License-Identifier: MIT */
/** Changes of a message's state, which succeed only while the message belongs to the expected thread. Freestanding. */
#ifndef XHEAP_REGION_MESSAGE_H
#define XHEAP_REGION_MESSAGE_H

#include "region/atomic.h"
#include "region/layout.h"

/** Return the state in a message's word. */
static inline enum region_message_state message_state(uint32_t word)
{
	return (enum region_message_state)(word & ((1u << MESSAGE_STATE_BITS) - 1));
}

/** Return the thread in a message's word; 0: none. */
static inline uint32_t message_tid(uint32_t word)
{
	return word >> MESSAGE_STATE_BITS;
}

/** Return the word of a message that is tid's. */
static inline uint32_t message_word(enum region_message_state state, uint32_t tid)
{
	return state == MESSAGE_FREE ? MESSAGE_FREE : (uint32_t)state | tid << MESSAGE_STATE_BITS;
}

/** Change a message of tid's from the state `from` to `to`. Return whether it was tid's and in that state. */
static inline int message_turn(struct region_message *message, uint32_t tid, enum region_message_state from,
			       enum region_message_state to)
{
	return swap_if(&message->state, message_word(from, tid), message_word(to, tid));
}

#endif
