/* SPDX-License-Identifier: MIT */
/** Taking buffers: full ones in their order, those being filled, those of threads that are gone. */
#ifndef XHEAP_SESSION_DRAIN_BUFFERS_H
#define XHEAP_SESSION_DRAIN_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "session/drain/drain_state.h"

/** Record `ticks` as a time of the process and the owner's latest event. */
void drain_note_point(struct drain_region *region, struct stream *stream, uint32_t process_index, uint64_t ticks);

/** Take buffer `index` of the stream: FULL, or OWNED by a thread that is gone; then `ending` describes its last
    call. */
void buffer_take(struct drain_region *region, struct stream *stream, uint32_t index, const struct ending *ending);

/** Take the committed records of all buffers that are being filled. */
void open_take_all(struct drain_region *region, enum open_when when);

/** Extend the arrays by slots that the region has added. */
void slots_follow(struct drain_region *region);

/** Take all full buffers; return true if there was one. */
bool full_take(struct drain_region *region);

#endif
