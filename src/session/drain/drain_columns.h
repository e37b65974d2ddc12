/* SPDX-License-Identifier: MIT */
/** Columns of events that wait to be written. */
#ifndef XHEAP_SESSION_DRAIN_COLUMNS_H
#define XHEAP_SESSION_DRAIN_COLUMNS_H

#include <stdint.h>

struct drain;
struct drain_region;
struct stream;
struct writer_events;

/** Return empty columns for a stream; columns_give() takes them back. */
struct writer_events *columns_take(struct drain *drain);
/** Empty the columns and keep them for the next stream, or free them if there is no memory to keep them. */
void columns_give(struct drain *drain, struct writer_events *events);
/** Free the columns. */
void columns_free(struct drain *drain, struct writer_events *events);

/** Make room for `more` events. Without memory the logger ends, since events that were taken would be lost. */
void columns_reserve(struct drain *drain, struct writer_events *events, uint64_t more);

/** Give the stream columns with room for all events that `bytes` bytes of records can hold. */
void columns_ready(struct drain_region *region, struct stream *stream, uint64_t bytes);

/** Return the limit of the logger's memory in bytes: all regions, decoded and unwritten events (limited), the trace's
    stacks so far, and a reserve. */
uint64_t drain_memory_limit_bytes(const struct drain *drain);

#endif
