/* SPDX-License-Identifier: MIT */
/** A whole report: what keeps it from being exact, the totals, and the rows of each action. It is over one source, or
    compares two sides (action/diff/diff.h); then it has the rows that changed. */
#ifndef XHEAP_EXPORT_REPORT_H
#define XHEAP_EXPORT_REPORT_H

#include "action/diff/diff.h"
#include "base/style.h"
#include "query/filter_words.h"

/** An action that was asked for, with its rows. */
struct report_part {
	const struct action *action;
	const struct action_sort *sort;
	struct action_rows rows;
	struct diff_counts counts; /**< of two sides */
};

struct export_past;
struct clickhouse_past;

/** A text that says what a profile is of: of OpenTelemetry, an attribute of the resource. */
struct report_label {
	const char *key, *value;
};

/** Without B, A has one source and no scale. */
struct report {
	struct diff diff;
	struct report_part *parts;
	unsigned part_count;
	const struct filter_note *filters; /**< which allocations count, for the report to repeat */
	size_t filter_count;
	enum diff_basis basis;              /**< of diff.scales */
	bool has_range;                     /**< a range was asked for */
	bool is_reversed;                   /**< folded: the innermost frame first */
	struct export_past *past;           /**< pprof, otlp: totals are of what came since; NULL: since the start */
	bool without_trace_ids;             /**< pprof: of a link, the span only */
	struct clickhouse_past *clickhouse; /**< clickhouse: what earlier pushes had */
	const struct report_label *labels;  /**< otlp: in place of what the first process says; pprof: comments */
	size_t label_count;
	/** Called now and then while blocks are written: `done` of `all`; NULL: nobody wants to know. */
	void (*progress)(uint64_t done, uint64_t all);
};

/** Check that a source's trace has the answer: 0, or -ENOTSUP with the reason in diag (query/folded.h). A
    part's sort may be NULL. */
int report_check(const struct report_part *parts, unsigned count, const struct heap_table *table,
		 const struct heap_filter *filter, struct heap_range range, enum heap_by by, struct diag *diag);

/** Make the rows of the parts, whose actions and sorts are set; at most `top` of each are to be shown. End them with
    report_fini(). */
void report_make(struct report *report, uint64_t top);

/** Return whether its sources, parts and counts fit together (base/check.h). */
bool report_is_valid(const struct report *report);

/** Free the rows of all parts. */
void report_fini(struct report *report);

/* ---- for the writers ---- */

/** Return whether the report compares two sides. */
bool report_is_diff(const struct report *report);

/** Return whether nothing changed between the sides: neither a total nor a row. */
bool report_is_empty(const struct report *report);

/** Return the label of the row's split, "" for none; the caller frees it. */
char *report_row_by(const struct report *report, const struct report_part *part, const struct action_row *row);

/** Return the one source of a report without B. */
const struct action_source *report_source(const struct report *report);

/** Return whether the trace is a sample. */
bool report_is_sample(const struct report *report);

/** Return how many numbers of its own the action has here: none where other blocks than the recorded ones would have
    to be known. */
unsigned report_extra_count(const struct report *report, const struct action *action);

#endif
