/* SPDX-License-Identifier: MIT */
/** The threads that fill streams, and their rows in the trace. */
#ifndef XHEAP_SESSION_DRAIN_THREADS_H
#define XHEAP_SESSION_DRAIN_THREADS_H

#include <stdbool.h>
#include <stdint.h>

struct drain_region;
struct owner;
struct stream;

/** Begin a thread's ownership of the stream at `ticks`: find or make its row in the trace. Return false if a limit
    refuses the row. */
bool owner_begin(struct drain_region *region, struct stream *stream, uint32_t process_index, uint32_t process,
		 uint32_t serial, uint32_t tid, uint64_t ticks);

/** End the ownership of the stream's thread, since it ended or another one comes: write its row. */
void owner_end(struct drain_region *region, struct stream *stream);

/** Return the thread that the slot names, as the trace knows it; NULL if the slot makes no sense or a limit refuses its
    row. */
struct owner *slot_owner(struct drain_region *region, uint32_t index);

#endif
