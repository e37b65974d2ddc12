/* SPDX-License-Identifier: MIT */
/** The losses of a trace: lost events, gaps, blocks from before, stacks that end early, folded time; as numbers, JSON
    and lines of text. */
#ifndef XHEAP_ACTION_LOSSES_H
#define XHEAP_ACTION_LOSSES_H

#include <stdbool.h>

#include "base/json.h"
#include "base/text.h"

struct trace_dictionary;

/** Return whether the trace has an option with this name. */
bool losses_has_option(const struct trace_dictionary *dictionary, const char *name);

/** Write which blocks from before an attach are not known, and why: as an array of the open object with this name,
    unless all are known. */
void losses_json_earlier(struct json *json, const char *name, const struct trace_dictionary *dictionary);

/** Events and stacks that are missing from a trace. */
struct losses {
	uint64_t events, stacks;
};

/** Return the sums of all gaps, and of events that did not fit the file. */
struct losses losses_sum(const struct trace_dictionary *dictionary);

/** Return the number of heap calls that are known to be missing from the trace: lost ones, calls of threads and
 *  processes that found no room, and frees of a sample's blocks that were not watched for. */
uint64_t losses_missing_calls(const struct trace_dictionary *dictionary);

/** Return whether the trace is complete; docs/semantics.md (Completeness) lists what keeps a trace from it. */
bool losses_is_complete(const struct trace_dictionary *dictionary);

/** Return "12 calls are missing", or why the number is not known; "" if nothing is missing. */
struct text losses_missing_text(const struct trace_dictionary *dictionary);

/** Write the numbers of missing calls by reason, as keys of an open object. */
void losses_json_calls(struct json *json, const struct trace_dictionary *dictionary);

/** Write the same as lines. reasons: says where those of untraced processes
    are. */
void losses_text_calls(struct sink *out, const struct trace_dictionary *dictionary, const char *reasons);

/** Write the gaps as an array under "gaps" of the open object, and "unwritten_events" when there are any. */
void losses_json_gaps(struct json *json, const struct trace_dictionary *dictionary);

/** Write how much of the past was dropped, as an object under "dropped" of the open one; nothing if it is all there. */
void losses_json_dropped(struct json *json, const struct trace_dictionary *dictionary);

/** Write how many events are folded into sums, as an object under "folded" of the open one; nothing without any. */
void losses_json_folded(struct json *json, const struct trace_dictionary *dictionary);

/** Write the same as lines. */
void losses_text_folded(struct sink *out, const struct trace_dictionary *dictionary);

/** Return whether the trace at the path has no end since a session still writes it. */
bool losses_is_being_written(const char *path, const struct trace_dictionary *dictionary);

/** Write how a trace ends that has no end of its own, in words to follow its name: "is being written: ...", or "is cut
    at byte 8: ...". */
void losses_text_end(struct sink *out, const char *path, const struct trace_dictionary *dictionary);

/** Write, as a line of text, where the trace at the path ends, if it has no end of its own: it is cut, or is being
    written. */
void losses_text_cut(struct sink *out, const char *path, const struct trace_dictionary *dictionary);

/** Write how stacks end: how many are whole (if that is known), truncated, or end for want of unwind data, and the
    images of the code without it. */
void losses_json_stack_ends(struct json *json, const struct trace_dictionary *dictionary);

/** Write the line about stacks that end for want of unwind data, if there are any. */
void losses_text_unwindless(struct sink *out, const struct trace_dictionary *dictionary);

/** Write how much of the past was dropped, as a line of text. */
void losses_text_dropped(struct sink *out, const struct trace_dictionary *dictionary);

/** Write, in brackets, why calls of gaps were lost, as the recording's options have it; nothing without gaps. */
void losses_text_reason(struct sink *out, const struct trace_dictionary *dictionary);

/** Write the gaps, and the number of events that did not fit the file, as lines of text. */
void losses_text_gaps(struct sink *out, const struct trace_dictionary *dictionary);

/** Write a line, begun with lead, for each process of which not all blocks from before an attach are known, with the
    reason. */
void losses_text_earlier(struct sink *out, const struct trace_dictionary *dictionary, const char *lead);

#endif
