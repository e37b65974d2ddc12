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

/** Take the frames that the samples to come refer to by number, in place of earlier ones. */
void fleet_summing_frames(struct fleet_summing *summing, const struct pushed_frame *frames, size_t count);

/** Add a sample of the session, if it is one that was asked for. Return 0, or -E2BIG with the reason in `diag`: there
    are more different stacks than can be told apart. */
int fleet_summing_sample(struct fleet_summing *summing, const struct pushed_sample *sample, uint64_t period_bytes,
			 const struct fleet_share *share, struct diag *diag);

/** Add the sums of all samples of the session, where rows are not about stacks. values: as in a sample. */
void fleet_summing_totals(struct fleet_summing *summing, const uint64_t *values, double variance,
			  const struct fleet_share *share);

/** Add the profile that the reader has read, of the session. Return as fleet_summing_sample(); some of the profile is
    added then. */
int fleet_summing_add(struct fleet_summing *summing, struct pushed_reader *reader, uint64_t period_bytes,
		      const struct fleet_share *share, struct diag *diag);

/** Return how answers name the frame: "image!function". The summing's. */
const char *fleet_summing_label(struct fleet_summing *summing, const struct pushed_frame *frame);

/** Return whether the frame is the one that was asked for. */
bool fleet_summing_matches(struct fleet_summing *summing, const struct pushed_frame *frame);

/** Return how many hosts of the service have sessions of the side, after fleet_summing_end(). version: growth: the one
    that is counted. */
uint64_t fleet_summing_population(struct fleet_summing *summing, const char *service, const char *version,
				  enum fleet_side side);

/** Make the rows: the last host is complete. */
void fleet_summing_end(struct fleet_summing *summing, struct fleet_answer *answer);

/** Free it. */
void fleet_summing_free(struct fleet_summing *summing);

#endif
