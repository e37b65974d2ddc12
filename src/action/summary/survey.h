/* SPDX-License-Identifier: MIT */
/**
 * The survey: one pass over the allocations of a source, for all that `xheap report` says and that no window has:
 * blocks that live shortly, blocks that other threads free, growth, the chart, rounding and the parts of the resident
 * memory.
 */
#ifndef XHEAP_ACTION_SURVEY_H
#define XHEAP_ACTION_SURVEY_H

#include "action/report/action.h"
#include "action/summary/growth.h"
#include "base/text.h"
#include "query/resident.h"

struct kept_survey;
struct put_in;

/** What is asked for. */
struct survey_plan {
	int64_t short_ns;     /**< blocks that are freed in less time live shortly */
	uint32_t chart_parts; /**< of the window's range; 0: no chart */
	/** where the resident memory of a process is to be split; TRACE_NONE: nowhere */
	uint32_t resident_process;
	int64_t resident_at_ns;
	struct resident *resident; /**< its heap is told from the rest here; NULL: nowhere */
	const struct put_in *put_in; /**< stacks that grow together with others */
};

/** Blocks begun at a site in the range. */
struct survey_site {
	uint64_t short_count, short_bytes;
	uint64_t crossed_count, crossed_bytes; /**< freed by another thread */
};

/** Blocks that threads of one role made and threads of another one freed. A role is the name of a thread with '#' for
    its digits. */
struct survey_handover {
	uint32_t from, to; /**< for survey_role() */
	uint32_t thread;   /**< one of those that made them */
	uint64_t count, bytes;
	uint32_t site, free_site; /**< where most of them were made, and where most of these are freed */
	uint64_t site_count;
};

/** The growth of a stack in a process, of all stacks of a function that grow together, also with those of functions put
    into it (put_in.h), or of a whole process. */
struct survey_growth {
	/** node: of a function's stacks, that which has grown by the most bytes; of a whole process HEAP_NONE */
	uint32_t process, node;
	uint32_t stack_count; /**< 1: the stack grows by itself; 0: the process does, and no stack or function of it */
	struct growth_clock clock;
	struct growth growth;
};

/** Bytes that allocators gave beyond what was asked for, and blocks of which that is not known. */
struct survey_rounding {
	uint64_t bytes, unknown_count;
};

struct survey {
	struct survey_plan plan;
	struct survey_site *sites; /**< by site */
	uint64_t short_count, short_bytes, crossed_count, crossed_bytes;
	struct heap_peak *chart; /**< plan.chart_parts */
	struct heap_range chart_range;
	struct survey_rounding at_peak;
	/* Of the resident memory. */
	uint64_t live_bytes, page_bytes; /**< page_bytes: of all pages that blocks have lain in up to then */
	struct survey_rounding resident;
	/** by what was freed, the most first */
	struct survey_handover *handovers;
	size_t handover_count;
	/** those that grow first, the fastest first; then the others by the bytes that they have grown */
	struct survey_growth *growths;
	size_t growth_count, grows_count;
	/** why nothing is known about growth; "" if it is */
	struct text growth_unknown;
	struct intern roles;
	uint64_t *process_peaks; /**< by process: at least its own peak, to rank by; the window's bytes */
};

/** Make the survey of the source, whose window is there, with what is kept of its pass. End it with survey_fini(). */
void survey_make(struct survey *survey, struct action_input *input, struct action_source *source,
		 const struct survey_plan *plan, struct kept_survey *kept);

/** Return the name of a role. */
const char *survey_role(const struct survey *survey, uint32_t role);

/** Free the survey. */
void survey_fini(struct survey *survey);

/** The places in `extra` of action_surveyed. */
enum action_surveyed_extra { SURVEYED_SHORT, SURVEYED_SHORT_BYTES, SURVEYED_CROSSED, SURVEYED_CROSSED_BYTES };

#endif
