/* SPDX-License-Identifier: MIT */
/** Blocks for each of which malloc has made a mapping of its own. */
#ifndef XHEAP_HEAPWALK_MAPPED_CHUNKS_H
#define XHEAP_HEAPWALK_MAPPED_CHUNKS_H

#include "heapwalk/reading.h"

/** Add these blocks. No list of them exists, but malloc counts them: return false unless all are found. */
bool mapped_chunks_walk(struct heap_reading *reading, uint32_t heap);

#endif
