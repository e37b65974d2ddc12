/* SPDX-License-Identifier: MIT */
/** The counts of a region: calls that were lost, and whether the counts can be true. */
#ifndef XHEAP_SESSION_DRAIN_GAPS_H
#define XHEAP_SESSION_DRAIN_GAPS_H

#include <stdbool.h>
#include <stdint.h>

struct drain_region;
struct region_slot;

/** Write the slot's losses since the last call into the trace. */
void gap_take(struct drain_region *region, uint32_t index);
/** Call gap_take() for each slot. */
void gaps_take(struct drain_region *region);

/** Add a note to the trace, once, if the region counts the impossible. */
void lies_tell(struct drain_region *region);
/** Return whether the slot's counters can be true. */
bool slot_is_believable(const struct drain_region *region, const struct region_slot *slot);
/** Return whether the counters of the region's header can be true. */
bool header_is_believable(const struct drain_region *region);

/** Note that the trace can take no more (writer_has_ended()). Earlier missing events count as lost, later ones as
    called after recording. */
void drain_note_end(struct drain_region *region);

#endif
