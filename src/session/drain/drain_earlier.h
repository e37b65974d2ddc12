/* SPDX-License-Identifier: MIT */
/** Blocks that a process had before it was attached to, as events. */
#ifndef XHEAP_SESSION_DRAIN_EARLIER_H
#define XHEAP_SESSION_DRAIN_EARLIER_H

struct drain_region;
struct heapwalk;

/** Write the blocks that the region's first process had before the attach, as events of no thread. The next
    drain_poll() or drain_remove() reports a failure to write. */
void drain_earlier(struct drain_region *region, const struct heapwalk *walk);

#endif
