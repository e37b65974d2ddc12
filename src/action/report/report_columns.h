/* SPDX-License-Identifier: MIT */
/** The numbers of a report's rows, for all formats: their order, and which of them are known. */
#ifndef XHEAP_ACTION_REPORT_COLUMNS_H
#define XHEAP_ACTION_REPORT_COLUMNS_H

#include "action/report/report.h"
#include "base/grid.h"

enum { REPORT_ERRORS = 6, REPORT_BY_IDS = 2 };

/** The numbers of a row and of the totals, by enum action_number. */
extern const struct report_number {
	const char *name;
	size_t offset; /**< in struct heap_numbers */
} report_numbers[ACTION_NUMBER_COUNT];

/** The standard errors that a sample has beside them. */
extern const struct report_error {
	const char *name;
	enum action_number number;
	size_t variance; /**< offset in struct heap_numbers */
} report_errors[REPORT_ERRORS];

/** Ids of the process and thread that rows are split by, for programs. */
extern const struct report_by_id {
	const char *name;
	uint32_t (*of)(const struct heap_window *window, const struct heap_table *table, uint32_t by);
	unsigned splits; /**< a bit for each enum heap_by that has it */
} report_by_ids[REPORT_BY_IDS];

/** Return the one source of the report: the writers are for no others. */
const struct action_source *report_source(const struct report *report);

/** Return the window that the rows of the part are made of. */
const struct heap_window *report_window(const struct report *report, const struct report_part *part);

/** Return the number at this offset. */
uint64_t report_number_at(const struct heap_numbers *from, size_t offset);

/** Return the standard error number i. */
double report_error_at(const struct heap_numbers *from, int i);

/** Return whether the trace is a sample. */
bool report_is_sample(const struct report *report);

/** Return whether the peak is known: not where all of the range is folded, and more is asked for than everything. */
bool report_has_peak(const struct report *report);

/** Return whether the number at this offset is known. Only a whole trace has how a block's end follows its
    beginning, and what was live at a moment. */
bool report_has_number(const struct report *report, size_t offset);

/** Return the same for one of several sources. */
bool report_source_has_number(const struct action_source *source, size_t offset);

/** Return how many numbers of its own the action has here: none where other blocks than the recorded ones would have
    to be known. */
unsigned report_extra_count(const struct report *report, const struct action *action);

/** Write what is special about the one source of the report, as keys of an open object: its path, what keeps it from
    being exact, its range and totals. */
void report_json_source(struct json *json, const struct report *report);

/** Write the line that begins a text about the report's source, with `lead` before the path. */
void report_heading(const struct report *report, const char *lead, struct sink *out);

/** Add the row's group as the last cell of a table for people, indented in a tree. */
void report_label(struct grid *grid, struct action_input *input, const struct action *action,
		  const struct action_row *row);

/** Write the report for people. */
void report_text(const struct report *report, struct sink *out);

/** Write the report's only action as comma-separated values. */
void report_csv(const struct report *report, struct sink *out);

/** Write the report as one object. */
void report_json(const struct report *report, struct sink *out);

#endif
