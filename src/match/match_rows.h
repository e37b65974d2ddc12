/* SPDX-License-Identifier: MIT */
/** Rows of the table while they are live, and their ends. */
#ifndef XHEAP_MATCH_MATCH_ROWS_H
#define XHEAP_MATCH_MATCH_ROWS_H

#include <stdint.h>

#include "table/table.h"

struct matching;
struct row_end;
struct trace_block;

/** Pack the oldest rows of the ring, up to the end of a group. */
void matching_ring_write(struct matching *matching);

/** Return the site's number, adding it if it is new. */
uint32_t matching_site(struct matching *matching, struct heap_site site);
/** Return the number of a point's site. */
uint32_t matching_site_of(struct matching *matching, const struct trace_block *block, uint32_t row);

/** Note that a thread allocated at the site. */
void matching_site_use(struct matching *matching, uint32_t site, uint32_t thread);

/** Add a live row at the end of the table. Return its number. */
uint32_t matching_row_add(struct matching *matching, const struct heap_allocation *row,
			  const struct heap_details *details);

/** End a live row without a change of the level. */
void matching_row_end(struct matching *matching, uint32_t id, struct heap_allocation *row, const struct row_end *end);

/** As matching_row_end(), and change the level. */
void matching_live_row_end(struct matching *matching, uint32_t id, struct heap_allocation *row,
			   const struct row_end *end);
/** As matching_live_row_end(), if the allocation is live. */
void matching_allocation_end(struct matching *matching, uint32_t id, const struct row_end *end);
/** Return the place of a live row's end_point. Of a row over which another one began it is that beginning. */
uint32_t *matching_end_point(struct matching *matching, uint32_t id, struct heap_allocation *row);
/** As matching_allocation_end(), of an end without an event. */
void matching_eventless_end(struct matching *matching, uint32_t id, enum heap_end end, int64_t time_ns);

#endif
