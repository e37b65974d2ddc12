/* SPDX-License-Identifier: MIT */
/** The addresses of a region's arrays. Freestanding. `limits` is the caller's own copy; the caller checks the index
    against it. */
#ifndef XHEAP_REGION_ACCESS_H
#define XHEAP_REGION_ACCESS_H

#include "region/layout.h"

#define REGION_ARRAY(function, type, offset) \
	static inline struct type *function(struct region_header *header, const struct region_limits *limits, \
					    uint32_t index) \
	{ \
		return (struct type *)((uint8_t *)header + limits->offset) + index; \
	}
REGION_ARRAY(region_process_at, region_process, process_offset)
REGION_ARRAY(region_entry_at, region_entry, entry_offset)
REGION_ARRAY(region_file_at, region_file, file_offset)
REGION_ARRAY(region_image_at, region_image, image_offset)
REGION_ARRAY(region_heap_at, region_heap, heap_offset)
REGION_ARRAY(region_heap_name_at, region_heap_name, name_offset)
REGION_ARRAY(region_slot_at, region_slot, slot_offset)
REGION_ARRAY(region_pc_at, region_pc, pc_offset)
REGION_ARRAY(region_code_at, region_code, code_offset)
REGION_ARRAY(region_buffer_at, region_buffer, head_offset)
#undef REGION_ARRAY

/** Return the bytes of buffer `index`. */
static inline uint8_t *region_buffer_bytes_at(struct region_header *header, const struct region_limits *limits,
					      uint32_t index)
{
	return (uint8_t *)header + limits->buffer_offset + (uint64_t)index * limits->buffer_size;
}

/** Return whether the region has a logger that is alive and has not finished with it. */
static inline int region_has_logger(const struct region_header *header)
{
	return !(__atomic_load_n(&header->owner, __ATOMIC_RELAXED) & REGION_OWNER_DIED) &&
	       __atomic_load_n(&header->state, __ATOMIC_RELAXED) == REGION_LIVE;
}

#endif
