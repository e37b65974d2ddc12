/* SPDX-License-Identifier: MIT */
/** Which traces get an index. */
#ifndef XHEAP_TRACE_INDEX_EVENTS_H
#define XHEAP_TRACE_INDEX_EVENTS_H

#include <stdint.h>

/** Return the smallest number of events of a trace that gets an index: XHEAP_INDEX_EVENTS, or a million. UINT64_MAX:
    none gets one. */
uint64_t index_events_least(void);

#endif
