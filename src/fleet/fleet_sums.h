/* SPDX-License-Identifier: MIT */
/** Profiles added up to the rows of an answer, host after host. The memory that this takes grows with the number of
    different stacks, and with no number of hosts. */
#ifndef XHEAP_FLEET_SUMS_H
#define XHEAP_FLEET_SUMS_H

#include "fleet/fleet.h"
#include "fleet/pushed_profile.h"

struct fleet_summing;

/** What of a profile counts. */
struct fleet_share {
	enum fleet_side side;
	bool has_use;  /**< what is in use, */
	bool has_made; /**< and what was allocated */
	double rate;   /**< growth: what the bytes in use count for per hour, negative of the first push; else 0 */
};

/** Begin to add up for this question, which stays the caller's. End it with fleet_summing_free(). */
struct fleet_summing *fleet_summing_new(const struct fleet_question *question);

/** Begin a host: the one before is complete. */
void fleet_summing_host(struct fleet_summing *summing);

/** Begin a session of the host, which is on this side. */
void fleet_summing_session(struct fleet_summing *summing, const struct pushed_head *head, enum fleet_side side);

/** Add the profile that the reader has read, of the session. Return 0, or -E2BIG with the reason in `diag`: there are
    more different stacks than can be told apart; some of the profile is added. */
int fleet_summing_add(struct fleet_summing *summing, struct pushed_reader *reader, uint64_t period_bytes,
		      const struct fleet_share *share, struct diag *diag);

/** Make the rows: the last host is complete. */
void fleet_summing_end(struct fleet_summing *summing, struct fleet_answer *answer);

/** Free it. */
void fleet_summing_free(struct fleet_summing *summing);

#endif
