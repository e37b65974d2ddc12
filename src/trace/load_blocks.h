/* SPDX-License-Identifier: MIT */
/** Loading blocks, one behind the other. */
#ifndef XHEAP_TRACE_LOAD_BLOCKS_H
#define XHEAP_TRACE_LOAD_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct load;
struct load_found;
struct reading;

/** Find the block at this offset, if there is a whole one; else note what is wrong and return false. */
bool load_find_block(struct load *load, uint64_t offset, struct load_found *found);

/** Return the offset behind the block and its zeros. */
uint64_t load_found_end(const struct load_found *found);

/** Read the payload, checked and unpacked, as what `reading` reads. */
bool load_read_payload(struct load *load, const struct load_found *found, struct reading *reading);

/** Return where the next segment behind `from` may begin; the file's size: there is none. */
uint64_t load_search_segment(struct load *load, uint64_t from);

/** Read all that lies before `end`. */
void load_walk(struct load *load, uint64_t offset, uint64_t end);

#endif
