/* SPDX-License-Identifier: MIT */
/** The sequence of heap calls, with the gaps of the recording between them. */
#ifndef XHEAP_DX_EVENT_SEQUENCE_H
#define XHEAP_DX_EVENT_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "dx/model/objects.h"

/** Return the sequence of events of one process, or of all (TRACE_NONE). with_nested: also those of heaps that lie in
    others. */
struct dx_value dx_events(struct dx_query *query, uint32_t process, bool with_nested, int column);

/** Return whether the sequence is Heap(), and set what it was made with. */
bool dx_events_are(const struct dx_sequence *sequence, uint32_t *process, bool *with_nested);

/** Return whether the events of a process, or of all, have gaps between them. */
bool dx_events_have_gaps(const struct dx_query *query, uint32_t process);

#endif
