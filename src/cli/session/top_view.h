/* SPDX-License-Identifier: MIT */
/** The picture of xheap top: totals, the live bytes over time, and the stacks with their numbers. */
#ifndef XHEAP_CLI_TOP_VIEW_H
#define XHEAP_CLI_TOP_VIEW_H

#include <stdio.h>

#include "action/report/report_rows.h"
#include "cli/session/top_screen.h"
#include "match/live_chart.h"
#include "session/control/controller.h"

/** An order of the rows: by a number of the whole time, or by one of a second. */
struct top_order {
	const char *key, *title;
	const struct action_sort *sort; /**< NULL: of a second */
};

/** Return the order with this key, in any case; NULL when there is none. */
const struct top_order *top_order_find(const char *key);

/** Return the order behind this one, or the first one behind the last. */
const struct top_order *top_order_next(const struct top_order *order);

/** Return all keys, for messages; and print them for --help. */
const char *top_order_keys(void);
void top_order_print_keys(FILE *out);

/** What is shown. */
struct top_view {
	const char *session;
	const struct top_order *order;
	/** the last time, of which rates are; 0: rates are not known */
	int64_t recent_ns;
	int64_t duration_ns; /**< of the session */
	uint64_t event_count;
	const char *note;               /**< a line above the stacks; NULL: none */
	const struct live_chart *chart; /**< then peaks of stacks are not known; NULL: both come from the table */
	bool is_peak_unknown;           /**< calls contradict each other, or there are blocks from before the trace */
};

/**
 * Show a trace: the first source has all of it. The second one has all up to recent_ns before the end; without it rates
 * are not known. Both have windows, and the names of one trace.
 */
void top_show(struct top_screen *screen, const struct top_view *view, struct action_input *input);

/** Show the session's counters, without stacks. The note says why. */
void top_show_counters(struct top_screen *screen, const struct top_view *view, const struct controller_state *state);

#endif
