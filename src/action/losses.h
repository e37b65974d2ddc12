/* SPDX-License-Identifier: MIT */
/** What a trace lacks: lost events, gaps, blocks from before, stacks that end early, folded time; as numbers, JSON and
    lines of text. */
#ifndef XHEAP_ACTION_LOSSES_H
#define XHEAP_ACTION_LOSSES_H

#include <stdbool.h>
#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "trace/trace.h"

/** Whether the trace has an option with this name. */
bool losses_has_option(const struct trace_dictionary *dictionary, const char *name);

/** Which blocks from before an attach are not known, and why: as an array of the open object with this name, unless all
    are known. */
void losses_json_earlier(struct json *json, const char *name, const struct trace_dictionary *dictionary);

/** Events and stacks that are missing from a trace. */
struct losses {
	uint64_t events, stacks;
};

/** Sum up what the gaps of the trace lost, and what did not fit the file. */
struct losses losses_sum(const struct trace_dictionary *dictionary);

/** Heap calls of recorded processes that are known to be missing from the trace: lost ones, those of threads and
 *  processes that found no room, and those that give back blocks of a sample and were not watched for. */
uint64_t losses_missing_calls(const struct trace_dictionary *dictionary);

/** Return whether the trace is complete; docs/semantics.md (Completeness) lists what keeps a trace from it. */
bool losses_is_complete(const struct trace_dictionary *dictionary);

/** "12 calls are missing", or why it is not known how many; "" if nothing is missing. */
struct text losses_missing_text(const struct trace_dictionary *dictionary);

/** Write the numbers of missing calls by reason: keys of an open object, and lines. */
void losses_json_calls(struct json *json, const struct trace_dictionary *dictionary);
void losses_text_calls(FILE *out, const struct trace_dictionary *dictionary);

/** The gaps as an array under "gaps" of the open object, and "unwritten_events" when there are any. */
void losses_json_gaps(struct json *json, const struct trace_dictionary *dictionary);

/** What was dropped of the past, as an object under "dropped" of the open one; nothing when nothing was. */
void losses_json_dropped(struct json *json, const struct trace_dictionary *dictionary);

/** Say what is in sums. */
void losses_json_folded(struct json *json, const struct trace_dictionary *dictionary);
void losses_text_folded(FILE *out, const struct trace_dictionary *dictionary);

/** Write how stacks end: how many are whole (if that is known), truncated, or end for want of unwind data, and the
    images of the code without it. */
void losses_json_stack_ends(struct json *json, const struct trace_dictionary *dictionary);

/** Write the line about stacks that end for want of unwind data, if there are any. */
void losses_text_unwindless(FILE *out, const struct trace_dictionary *dictionary);

/** Likewise as a line of text. */
void losses_text_dropped(FILE *out, const struct trace_dictionary *dictionary);

/** Write, in brackets, why calls of gaps were lost, as the recording's options have it; nothing without gaps. */
void losses_text_reason(FILE *out, const struct trace_dictionary *dictionary);

/** The gaps, and what did not fit the file, as lines of text. */
void losses_text_gaps(FILE *out, const struct trace_dictionary *dictionary);

/** A line, which begins with lead, for each process of which not all blocks from before an attach are known, with the
    reason. */
void losses_text_earlier(FILE *out, const struct trace_dictionary *dictionary, const char *lead);

#endif
