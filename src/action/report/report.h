/* SPDX-License-Identifier: MIT */
/** A whole report: what keeps it from being exact, the totals, and the rows of each action. Its rows may be those of
    several sources; the writers here are for reports over one. */
#ifndef XHEAP_ACTION_REPORT_H
#define XHEAP_ACTION_REPORT_H

#include "action/report/report_rows.h"
#include "base/text.h"
#include "query/filter_words.h"

/** X(id, name) */
#define REPORT_FORMATS(X) X(TEXT, "text") X(CSV, "csv") X(JSON, "json") X(FOLDED, "folded")

enum report_format {
#define X(id, name) REPORT_##id,
	REPORT_FORMATS(X)
#undef X
};

/** An action that was asked for, with its rows. */
struct report_part {
	const struct action *action;
	const struct action_sort *sort;
	struct action_rows rows;
};

struct report {
	struct action_input *input;
	struct report_part *parts;
	unsigned part_count;
	const struct filter_note *filters; /**< which allocations count, for the report to repeat */
	size_t filter_count;
	bool has_range;   /**< a range was asked for */
	bool is_reversed; /**< folded: the innermost frame first */
};

/** Check that a source's trace has the answer: 0, or -ENOTSUP with the reason in diag (query/folded.h). A
    part's sort may be NULL. */
int report_check(const struct report_part *parts, unsigned count, const struct heap_table *table,
		 const struct heap_filter *filter, struct heap_range range, enum heap_by by, struct diag *diag);

/** Make the rows of the parts, whose actions and sorts are set; at most `top` of each are to be shown. End them with
    report_fini(). */
void report_make(struct report *report, uint64_t top);

/** Free the rows of all parts. */
void report_fini(struct report *report);

/** Write the report of one source. CSV holds exactly one action; folded stacks (action/report/collapsed.h) are those of
    the action stacks, by its sort, and need no rows. The caller has seen to that. The sink has the error, if there is
    one. */
void report_write(const struct report *report, enum report_format format, struct sink *out);

/** Return what text_count() does, with a mark before the estimates of a sample. */
struct text report_count(const struct action_source *source, uint64_t count);

/** Return what text_bytes() does, with the same mark. */
struct text report_bytes(const struct action_source *source, uint64_t bytes);

/** Return the number of threads, without rows that stand for none. */
uint32_t report_thread_count(const struct trace_dictionary *dictionary);

#endif
