/* SPDX-License-Identifier: MIT */
/**
 * What the largest stacks of an answer had in use from interval to interval: sums over hosts of what pushes say
 * changed. The others are one more stack, the rest. Memory grows with the number of different stacks, and with no
 * number of hosts or pushes.
 */
#ifndef XHEAP_FLEET_SERIES_H
#define XHEAP_FLEET_SERIES_H

#include "base/intern.h"
#include "base/map.h"
#include "cells/cell_bounds.h"
#include "fleet/fleet.h"

enum { FLEET_SERIES_STACKS = 2000, FLEET_SERIES_INTERVALS = 96, FLEET_SERIES_INTERVALS_LEAST = 12 };

/** In place of the number of a stack: all that have none. */
#define FLEET_REST UINT32_MAX

/** What changed in an interval. The numbers of a sample are estimates. */
struct fleet_change {
	int64_t bytes, blocks; /**< in use: what came less what went */
	uint64_t made_bytes, made_blocks;
};

/** The changes of a stack in the sessions of a version, by the moment at which they can be seen (cells/cell_bounds.h):
    at 0 what was there before. */
struct fleet_curve {
	uint32_t stack, version;
	struct fleet_change *changes; /**< one for each bound */
};

/** A service in a version. */
struct fleet_series_version {
	const char *service, *version;
};

/** Zero it; end it with fleet_series_fini(). */
struct fleet_series {
	struct cell_bounds bounds; /**< from the first push of the answer to its last one, in ns since the first */
	int64_t from_ns;           /**< of the first push, since 1970 */
	struct intern frames;      /**< "image!function" */
	struct intern stacks;      /**< numbers of frames, from inside out; those of the answer come first */
	uint32_t stack_count;      /**< of the answer */
	uint32_t *rows;            /**< of these, in the answer: the first row of each */
	struct map of_id;          /**< by the source's number of a stack: ours */
	const char *id_list;       /**< all of the source's: "[1,2]" */
	struct intern version_keys;
	struct fleet_series_version *versions;
	size_t version_count, version_capacity;
	struct map of_pair; /**< (version, stack) -> curve */
	struct fleet_curve *curves;
	size_t curve_count, curve_capacity;
	struct arena arena;
};

/** Begin with the first stacks of an answer to FLEET_TOP by stack. */
void fleet_series_begin(struct fleet_series *series, const struct fleet_answer *answer);

/** Return the number of a service in a version. */
uint32_t fleet_series_version(struct fleet_series *series, const char *service, const char *version);

/** Return the number of a stack by the numbers of its frames, from inside out; or FLEET_REST. */
uint32_t fleet_series_stack(struct fleet_series *series, const uint32_t *frames, size_t count);

/** Return the number of a stack by the source's; or FLEET_REST. */
uint32_t fleet_series_stack_of_id(const struct fleet_series *series, uint64_t id);

/** Have intervals between these times, since 1970, before the first change. */
void fleet_series_span(struct fleet_series *series, int64_t from_ns, int64_t until_ns);

/** Have other times, before the first change: intervals from then on, of one length. */
void fleet_series_times(struct fleet_series *series, int64_t from_ns, int64_t interval_ns, uint32_t intervals);

/** Return the moment at which what happens at a time since 1970 can be seen. */
uint32_t fleet_series_moment(const struct fleet_series *series, int64_t time_ns);

/** Add a change at a moment. */
void fleet_series_add(struct fleet_series *series, uint32_t version, uint32_t stack, uint32_t moment,
		      const struct fleet_change *change);

/** Make two intervals into one; a single one stays. */
void fleet_series_halve(struct fleet_series *series);

/** Free it. */
void fleet_series_fini(struct fleet_series *series);

#endif
