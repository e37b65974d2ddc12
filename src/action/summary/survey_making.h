/* SPDX-License-Identifier: MIT */
/** What the parts of a survey share: who is examined for growth, and the sums of the pass over all allocations. */
#ifndef XHEAP_ACTION_SURVEY_MAKING_H
#define XHEAP_ACTION_SURVEY_MAKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "action/summary/survey.h"
#include "base/map.h"
#include "query/extents.h"
#include "query/peak.h"

enum {
	SURVEY_LEVEL_PARTS = 32,      /**< of the life of a process */
	SURVEY_GROWING_PROCESSES = 8, /**< so many are examined for growth */
	SURVEY_ROLES_MAX = UINT16_MAX,
	SURVEY_NO_SLOT = UINT8_MAX
};

/** A process that may grow. */
struct survey_slot {
	uint32_t process;
	struct growth_clock clock;
	int64_t part_ns;
};

/** What is shared by all threads of the pass. */
struct survey_making {
	struct survey *survey;
	struct action_input *input;
	struct action_source *source;
	struct heap_peak_search *search;
	struct survey_slot slots[SURVEY_GROWING_PROCESSES];
	unsigned slot_count;
	uint8_t *slot_of;    /**< by process */
	uint32_t *candidate; /**< by site: its node, if that may grow, or HEAP_NONE */
	uint32_t *role_of;   /**< by thread */
	bool has_levels;     /**< of processes */
	bool has_handovers;  /**< there are several threads */
	uint32_t shared;
};

/** What of a role's blocks at a site another role freed. */
struct survey_handed {
	uint32_t from, to, site, free_site, thread;
	uint64_t count, bytes;
};

/** What began and ended in a part of the life of a process. */
struct survey_level {
	uint64_t began_bytes, ended_bytes;
};

/** One thread's part of the pass. */
struct survey_part {
	struct survey_making *making;
	unsigned number;
	struct survey_site *sites;
	struct survey_rounding at_peak, resident;
	uint64_t live_bytes;
	struct heap_extents extents;
	struct map series_of; /**< by slot and node: its place in series */
	struct growth_series *series;
	uint64_t *series_keys;
	uint32_t series_count;
	size_t series_capacity;
	struct growth_series replaced[SURVEY_GROWING_PROCESSES];
	struct growth_series wholes[SURVEY_GROWING_PROCESSES]; /**< all blocks but these */
	struct map handed_of;                                  /**< by roles and site: its place in handed */
	struct survey_handed *handed;
	size_t handed_count, handed_capacity;
	struct survey_level *levels; /**< SURVEY_LEVEL_PARTS for each process */
};

#endif
