/* SPDX-License-Identifier: MIT */
/** Parts of the answer `trace`: its processes, threads and heaps, and what it lacks. */
#ifndef XHEAP_SERVER_TRACE_FACTS_H
#define XHEAP_SERVER_TRACE_FACTS_H

#include "action/report/action.h"

/** Write the arrays "processes", "threads" and "heaps" into an open object, in the order of the trace's lists. */
void trace_facts_lists(struct json *json, const struct action_source *source);

/** What a page lacks for another reason than that the trace does. */
struct trace_facts_plan {
	const char *left_out; /**< what the page does not have; NULL: nothing */
	bool is_growing;      /**< that the trace has no end yet is no damage */
};

/** Write the arrays "state", "gaps" and "marks", and the text "damage" if the trace is cut, into an open object. */
void trace_facts_state(struct json *json, const struct action_source *source, const struct trace_facts_plan *plan);

#endif
