/* SPDX-License-Identifier: MIT */
/**
 * The intervals of an answer, and the moments between them.
 *
 *     bounds      0           1           2           n
 *     interval    |     0     |     1     |    ...    |
 *
 * Moment i is the state behind all points up to bounds[i]. A point of interval i has its effect from moment i + 1 on.
 */
#ifndef XHEAP_CELLS_CELL_BOUNDS_H
#define XHEAP_CELLS_CELL_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

enum { CELL_INTERVALS_MAX = 1024, CELL_MOMENT_BITS = 11 /* for one moment more than there are bounds */ };
#define CELL_NO_BOUND UINT32_MAX

/** Bounds in ascending order. */
struct cell_bounds {
	int64_t *times; /**< ns */
	uint32_t count; /**< one more than intervals; at least 2 */
	uint64_t scale; /**< of the search, see cell_bounds_moment() */
	uint32_t *firsts;
};

/** Divide the times behind from_ns, up to to_ns, into `intervals` equal parts, or as many as there are nanoseconds.
    `wanted`: further bounds; those outside of the range are left out. from_ns < to_ns. All together are less than
    UINT16_MAX intervals, and at most CELL_INTERVALS_MAX for cells of a picture. End it with cell_bounds_fini(). */
void cell_bounds_make(struct cell_bounds *bounds, int64_t from_ns, int64_t to_ns, uint32_t intervals,
		      const int64_t *wanted, unsigned wanted_count);

/** The range is cut into so many equal slices. For each it is known how many bounds lie in slices before it. */
enum { CELL_SLICES = 4096 };

static inline uint32_t cell_bounds_slice(const struct cell_bounds *bounds, int64_t time_ns)
{
	uint64_t offset = (uint64_t)time_ns - (uint64_t)bounds->times[0];
	uint64_t slice = (uint64_t)((unsigned __int128)offset * bounds->scale >> 64);
	return slice < CELL_SLICES ? (uint32_t)slice : CELL_SLICES - 1;
}

/** Return the first moment at which a point of this time has its effect: the number of bounds before it. */
static inline uint32_t cell_bounds_moment(const struct cell_bounds *bounds, int64_t time_ns)
{
	if (time_ns <= bounds->times[0])
		return 0;
	if (time_ns > bounds->times[bounds->count - 1])
		return bounds->count;
	uint32_t moment = bounds->firsts[cell_bounds_slice(bounds, time_ns)];
	while (bounds->times[moment] < time_ns)
		moment++;
	return moment;
}

/** Return which bound has this time, or CELL_NO_BOUND. */
uint32_t cell_bounds_find(const struct cell_bounds *bounds, int64_t time_ns);

/** Free the bounds. */
void cell_bounds_fini(struct cell_bounds *bounds);

#endif
