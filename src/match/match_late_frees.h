/* SPDX-License-Identifier: MIT */
/** Points that contradict each other, ends of what nobody saw begin, and earlier blocks. */
#ifndef XHEAP_MATCH_MATCH_LATE_FREES_H
#define XHEAP_MATCH_MATCH_LATE_FREES_H

#include <stdint.h>

#include "match/matching.h"

/** The size that an end gives for its block, and when the address's end before it was over. Only while earlier blocks
   are being found. */
struct measure {
	uint64_t bytes;
	int64_t before_ns;
};

/** End an allocation over whose block another one began: by a gap if one is known, otherwise by a conflict. */
void matching_settle_conflict(struct matching *matching, uint32_t older, uint32_t newer);

/** Return the measure of an end; bytes is 0 unless earlier blocks are being found. */
struct measure matching_measure(struct matching *matching, const struct point *point);

/** Count and note a free of a block that nobody saw begin. */
void matching_unknown_free(struct matching *matching, uint32_t process, const struct heap_fault *fault);

/** Keep an end of an address that is not live until its Begin comes. */
void matching_pending_add(struct matching *matching, const struct point *point, enum heap_end end,
			  struct measure measure);

/** Take the pending end, stamped a little too early, of the block that begins at this point. Return `taken`, or NULL if
    there is none. */
struct pending_free *matching_pending_take(struct matching *matching, const struct point *point,
					   struct pending_free *taken);

/** Settle the pending ends that have waited long enough by this time. */
void matching_pending_expire(struct matching *matching, int64_t time_ns);
/** Settle the late frees, when everything is known. */
void matching_late_frees_settle(struct matching *matching);

#endif
