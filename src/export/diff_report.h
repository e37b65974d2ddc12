/* SPDX-License-Identifier: MIT */
/** A report of differences: both sides with what keeps them from being exact, the totals, and the rows that changed. */
#ifndef XHEAP_EXPORT_DIFF_REPORT_H
#define XHEAP_EXPORT_DIFF_REPORT_H

#include "action/diff/diff_words.h"
#include "export/report.h"

/** An action that was asked for, with its rows. */
struct diff_part {
	const struct action *action;
	const struct action_sort *sort;
	struct action_rows rows;
	struct diff_counts counts;
};

struct diff_report {
	struct diff diff;
	struct diff_part *parts;
	unsigned part_count;
	const struct filter_note *filters; /**< which allocations count, for the report to repeat */
	size_t filter_count;
	enum diff_basis basis; /**< of diff.scales */
	bool is_reversed;      /**< folded: the innermost frame first */
};

/** Make the rows of the parts, whose actions and sorts are set; at most `top` of each are to be shown. End them with
    diff_report_fini(). */
void diff_report_make(struct diff_report *report, uint64_t top);

/** Free the rows of all parts. */
void diff_report_fini(struct diff_report *report);

/** Return whether nothing changed: neither a total nor a row. */
bool diff_report_is_empty(const struct diff_report *report);

/** Write the report. CSV holds exactly one action; the caller has seen to that. The sink has the error, if there is
    one. */
void diff_report_write(const struct diff_report *report, enum report_format format, struct sink *out);

/** Return the label of the row's split, "" for none; the caller frees it. */
char *diff_row_by(const struct diff_report *report, const struct diff_part *part, const struct action_row *row);

/** Write the report for people; as comma-separated values; as one object. */
void diff_text(const struct diff_report *report, struct sink *out);
void diff_csv(const struct diff_report *report, struct sink *out);
void diff_json(const struct diff_report *report, struct sink *out);

#endif
