/* SPDX-License-Identifier: MIT */
/** How both sides change the state of a mail: only as long as it is the thread's that they take it for.
    Freestanding. */
#ifndef XHEAP_REGION_MAIL_H
#define XHEAP_REGION_MAIL_H

#include "region/atomic.h"
#include "region/layout.h"

static inline enum region_mail_state mail_state(uint32_t word)
{
	return (enum region_mail_state)(word & ((1u << MAIL_STATE_BITS) - 1));
}

static inline uint32_t mail_tid(uint32_t word)
{
	return word >> MAIL_STATE_BITS;
}

/** What the word is while the mail is tid's. */
static inline uint32_t mail_word(enum region_mail_state state, uint32_t tid)
{
	return state == MAIL_FREE ? MAIL_FREE : (uint32_t)state | tid << MAIL_STATE_BITS;
}

/** True when it was in the state `from`, and tid's: then it is in the state `to` now. */
static inline int mail_turn(struct region_mail *mail, uint32_t tid, enum region_mail_state from,
			    enum region_mail_state to)
{
	return swap_if(&mail->state, mail_word(from, tid), mail_word(to, tid));
}

#endif
