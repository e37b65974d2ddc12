/* SPDX-License-Identifier: MIT */
/** A whole report: what keeps it from being exact, the totals, and the rows of each action. */
#ifndef XHEAP_ACTION_REPORT_H
#define XHEAP_ACTION_REPORT_H

#include "action/report_rows.h"
#include "base/text.h"

enum report_format { REPORT_TEXT, REPORT_CSV, REPORT_JSON };

/** The format with this name ("text", "csv", "json"), or -1. */
int report_format_find(const char *name);

/** An action that was asked for, with its rows. */
struct report_part {
	const struct action *action;
	const struct action_sort *sort;
	const struct heap_window *window; /**< whose cells the rows are made of */
	struct action_rows rows;
};

/** An option that says which allocations count, as typed, for the report to repeat. */
struct report_filter {
	const char *name;            /**< "size" */
	const char *text;            /**< "100 200" */
};

struct report {
	struct action_source *source;
	struct report_part *parts;
	unsigned part_count;
	const struct report_filter *filters;
	size_t filter_count;
	bool has_range;              /**< a range was asked for */
	struct heap_window by_heap;  /**< made by report_make(), for actions by heap */
	struct heap_filter of_heaps; /**< its filter */
};

/** Whether the trace tells what is asked for: 0, or -ENOTSUP with the reason in diag (query/folded.h). A part's sort may be NULL. */
int report_check(const struct report_part *parts, unsigned count, const struct heap_table *table, const struct heap_filter *filter, struct heap_range range,
		 enum heap_by by, struct diag *diag);

/** Make the rows of the parts, whose actions and sorts are set; at most `top` of each are to be shown. */
void report_make(struct report *report, uint64_t top);
void report_fini(struct report *report);

/** Write it. CSV holds exactly one action; the caller has seen to that. */
void report_write(const struct report *report, enum report_format format, FILE *out);

/** As text_count() and text_bytes(), with a mark where the number is an estimate: of a sample. */
struct text report_count(const struct action_source *source, uint64_t count);
struct text report_bytes(const struct action_source *source, uint64_t bytes);

/** What keeps the numbers from being exact, as lines of text; one that says so when nothing does. */
void report_text_doubts(const struct report *report, FILE *out);

/** Threads, without rows that are none. */
uint32_t report_thread_count(const struct trace_dictionary *dictionary);

/** Which blocks from before an attach are not known, and why: as an array of the open object with this name, unless all are known. */
void report_json_missing(struct json *json, const char *name, const struct trace_dictionary *dictionary);

/** Events and stacks that are missing from a trace. */
struct report_losses {
	uint64_t events, stacks;
};

/** Sum up what the gaps of the trace lost, and what did not fit the file. */
struct report_losses report_losses_sum(const struct trace_dictionary *dictionary);

/** Heap calls of recorded processes that are known to be missing from the trace: lost ones, those of threads and processes that found no room, and those
 *  that give back blocks of a sample and were not watched for. */
uint64_t report_missing_calls(const struct trace_dictionary *dictionary);

/** Whether the trace has every heap call of the processes that it records, and every block from before an attach: the file is whole, no call is missing,
 *  every function could be hooked. A sample has no blocks from before. */
bool report_is_complete(const struct trace_dictionary *dictionary);

/** "12 calls are missing", or why it is not known how many; "" if nothing is missing. */
struct text report_missing_text(const struct trace_dictionary *dictionary);

/** Write the numbers of missing calls by reason: keys of an open object, and lines. */
void report_json_missing_calls(struct json *json, const struct trace_dictionary *dictionary);
void report_text_missing_calls(FILE *out, const struct trace_dictionary *dictionary);

/** The gaps as an array under "gaps" of the open object, and "unwritten_events" when there are any. */
void report_json_gaps(struct json *json, const struct trace_dictionary *dictionary);

/** What was dropped of the past, as an object under "dropped" of the open one; nothing when nothing was. */
void report_json_dropped(struct json *json, const struct trace_dictionary *dictionary);

/** Say what is in sums. */
void report_json_folded(struct json *json, const struct trace_dictionary *dictionary);
void report_text_folded(FILE *out, const struct trace_dictionary *dictionary);

/** Write how stacks end: how many are whole (if that is known), truncated, or end for want of unwind data, and the images of the code without it. */
void report_json_stack_ends(struct json *json, const struct trace_dictionary *dictionary);

/** Write the line about stacks that end for want of unwind data, if there are any. */
void report_text_unwindless(FILE *out, const struct trace_dictionary *dictionary);

/** Likewise as a line of text. */
void report_text_dropped(FILE *out, const struct trace_dictionary *dictionary);

/** The gaps, and what did not fit the file, as lines of text. */
void report_text_gaps(FILE *out, const struct trace_dictionary *dictionary);

/** A line, which begins with lead, for each process of which not all blocks from before an attach are known, with the reason. */
void report_text_missing(FILE *out, const struct trace_dictionary *dictionary, const char *lead);

#endif
