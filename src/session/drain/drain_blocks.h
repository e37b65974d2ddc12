/* SPDX-License-Identifier: MIT */
/** Writing columns as blocks of the trace, and releasing buffers. */
#ifndef XHEAP_SESSION_DRAIN_BLOCKS_H
#define XHEAP_SESSION_DRAIN_BLOCKS_H

#include <stdint.h>

struct drain;
struct drain_region;
struct stream;

/** Return a buffer to the region. */
void buffer_release(struct drain_region *region, uint32_t index);

/** Add a buffer to a list of unwritten or unflushed ones. */
void held_add(struct drain_region *region, uint32_t *list, uint32_t index);

/** Flush the file, then release the buffers and note the gaps whose events are now readable from it. */
void drain_settle(struct drain_region *region);

/** Count events that the trace has only as numbers: lost ones, and calls after recording. */
void drain_count_missing(struct drain_region *region, uint64_t lost, uint64_t after);

/** Write the stream's columns as a block. part_sequence, part_events: how much of the buffer that is being taken the
    trace then has; 0, 0: it ends with whole buffers. */
void stream_write(struct drain_region *region, struct stream *stream, uint32_t part_sequence, uint32_t part_events);

/** Write the columns of all streams. */
void streams_write(struct drain_region *region);

/** Bound the memory of all columns: above COLUMN_EVENTS_MAX write the events of all streams and free spare columns. */
void streams_bound(struct drain *drain);

#endif
