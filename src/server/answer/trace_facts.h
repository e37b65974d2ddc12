/* SPDX-License-Identifier: MIT */
/** Parts of the answer `trace`: its processes, threads and heaps, and what it lacks. */
#ifndef XHEAP_SERVER_TRACE_FACTS_H
#define XHEAP_SERVER_TRACE_FACTS_H

#include "action/report/action.h"

/** Write the arrays "processes", "threads" and "heaps" into an open object, in the order of the trace's lists. */
void trace_facts_lists(struct json *json, const struct action_source *source);

/** Write the arrays "state", "gaps" and "marks", and the text "damage" if the trace is cut, into an open object.
    left_out: what the page does not have; NULL: nothing. */
void trace_facts_state(struct json *json, const struct action_source *source, const char *left_out);

#endif
