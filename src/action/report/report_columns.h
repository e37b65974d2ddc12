/* SPDX-License-Identifier: MIT */
/** The numbers of a report's rows, for all formats: their order, and which of them are known. */
#ifndef XHEAP_ACTION_REPORT_COLUMNS_H
#define XHEAP_ACTION_REPORT_COLUMNS_H

#include "action/report/report_rows.h"
#include "base/text.h"

struct trace_dictionary;

enum { REPORT_ERRORS = 6, REPORT_BY_IDS = 2 };

/** The names of the numbers of a row and of the totals. */
extern const char *const report_number_names[ACTION_NUMBER_COUNT];

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

/** Return the number. */
uint64_t report_number_at(const struct heap_numbers *from, enum action_number number);

/** Return the standard error number i. */
double report_error_at(const struct heap_numbers *from, int i);

/** Return whether the peak is known: not where all of the range is folded, and more is asked for than everything. */
bool report_source_has_peak(const struct action_source *source);

/** Return whether the number is known. Only a whole trace has how a block's end follows its
    beginning, and what was live at a moment. */
bool report_source_has_number(const struct action_source *source, enum action_number number);

/** Return what text_count() does, with a mark before the estimates of a sample. */
struct text report_count(const struct action_source *source, uint64_t count);

/** Return what text_bytes() does, with the same mark. */
struct text report_bytes(const struct action_source *source, uint64_t bytes);

/** Return the number of threads, without rows that stand for none. */
uint32_t report_thread_count(const struct trace_dictionary *dictionary);

#endif
