/* SPDX-License-Identifier: MIT */
/** A report of differences: both sides with what keeps them from being exact, the totals, and the rows that changed. */
#ifndef XHEAP_EXPORT_DIFF_REPORT_H
#define XHEAP_EXPORT_DIFF_REPORT_H

#include "action/diff/diff.h"
#include "export/report.h"

/** An action that was asked for, with its rows. */
struct diff_part {
	const struct action *action;
	const struct action_sort *sort;
	struct diff_rows rows;
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

/** X(id, name): the words of `enum diff_basis`. */
#define DIFF_BASES(X) X(AS_IS, "none") X(BY_TIME, "time") X(BY_COUNT, "count") X(BY_FACTOR, "factor")

/** Return the word of the basis. */
const char *diff_basis_name(enum diff_basis basis);

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

/** Return the letter of a side: "A", "B". */
const char *diff_side_name(enum diff_side side);

/** Return "new", "gone" or "both". */
const char *diff_state_name(enum diff_state state);

/** Return the label of the row's split, "" for none; the caller frees it. */
char *diff_row_by(const struct diff_report *report, const struct diff_part *part, const struct action_row *row);

/** Format an amount of this number for people, without its sign: "1.2 MiB", "1,234". */
struct text diff_text_amount(enum action_number number, long double amount);

/** Format a change in percent: "+4.2 %"; "" if there is none, or if A's number is 0. */
struct text diff_text_percent(const struct diff_change *change);

/** Write the report for people; as comma-separated values; as one object. */
void diff_text(const struct diff_report *report, struct sink *out);
void diff_csv(const struct diff_report *report, struct sink *out);
void diff_json(const struct diff_report *report, struct sink *out);

#endif
