/* SPDX-License-Identifier: MIT */
#include "query/folded.h"

#include <errno.h>

#include "base/text.h"
#include "query/by.h"
#include "query/scan.h"
#include "table/weight.h"
#include "trace/process_rows.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

/* Of several numbers that are known by the least and the greatest. */
enum verdict { NONE_PASS, ALL_PASS, NOT_KNOWN };

static enum verdict bounds_verdict(struct heap_bounds bounds, uint64_t least, uint64_t greatest)
{
	bool has_end = bounds.to != UINT64_MAX;
	if (greatest < bounds.from || (has_end && least >= bounds.to))
		return NONE_PASS;
	return least >= bounds.from && (!has_end || greatest < bounds.to) ? ALL_PASS : NOT_KNOWN;
}

static enum verdict range_verdict(struct heap_range range, int64_t first_ns, int64_t last_ns)
{
	if (last_ns < range.from_ns || first_ns > range.to_ns)
		return NONE_PASS;
	return first_ns >= range.from_ns && last_ns <= range.to_ns ? ALL_PASS : NOT_KNOWN;
}

static uint8_t flags_of(const struct trace_sum *sum)
{
	return (uint8_t)((sum->flags & TRACE_SUM_EARLIER ? HEAP_EARLIER : 0) |
			 (sum->flags & TRACE_SUM_NESTED ? HEAP_NESTED : 0) |
			 (sum->flags & TRACE_SUM_HAS_NESTED ? HEAP_HAS_NESTED : 0));
}

/* The one that began or ended first, was smallest and lived shortest; or the other way round. It need not have been a
   block of the sum. */
static struct heap_allocation extreme(const struct trace_sum *sum, uint32_t site, bool is_last)
{
	int64_t birth_ns = is_last ? sum->birth_last_ns : sum->birth_first_ns,
		end_ns = is_last ? sum->end_last_ns : sum->end_first_ns;
	return (struct heap_allocation){.birth_ns = birth_ns,
					.end_ns = end_ns,
					.size_bytes = is_last ? sum->size_max : sum->size_min,
					.end = sum->flags & TRACE_SUM_OPEN ? HEAP_END_EXIT : HEAP_END_FREE,
					.flags = flags_of(sum),
					.site = site,
					.end_site = HEAP_NONE,
					.thread = sum->thread,
					.heap = sum->heap};
}

/* The window class of all, HEAP_CLASS_NONE when they began behind it or ended before it; false: they may have several.
   Blocks that were never freed have the same class if their processes ended inside the window or behind it. */
static bool class_of_all(const struct trace_sum *sum, struct heap_range window, enum heap_class *class)
{
	struct heap_allocation first = extreme(sum, 0, false);
	bool is_behind = sum->birth_first_ns > window.to_ns,
	     is_before = sum->birth_last_ns < window.from_ns || sum->flags & TRACE_SUM_EARLIER;
	bool is_one_beginning =
		is_behind || is_before || range_verdict(window, sum->birth_first_ns, sum->birth_last_ns) == ALL_PASS;
	struct heap_range ends = {window.from_ns, sum->flags & TRACE_SUM_OPEN ? INT64_MAX : window.to_ns};
	bool is_one_end = is_behind || range_verdict(ends, sum->end_first_ns, sum->end_last_ns) != NOT_KNOWN;
	*class = heap_class_of(&first, window);
	return is_one_beginning && is_one_end;
}

/* Parts of a question that have no answer, for people. */
struct unknown {
	const char *what, *instead;
};

static const struct unknown unknowns[] = {
	{"-requireFreeFrames: where blocks were freed", "-requireFrames, or a -range behind that time"},
	{"-size: which of the blocks of a stack are so large",
	 "bounds that all of them lie within or outside of, or a -range behind that time"},
	{"-lifetime: which of the blocks of a stack lived so long",
	 "bounds that all of them lie within or outside of, or a -range behind that time"},
	{"-window: when each block began and ended", "a window behind that time"},
	{"-innermost: which blocks others lay in", "it without -innermost"},
	{"-at: which blocks were live then", "a position behind that time"},
	{"-range: when each block began and ended",
	 "a range from 0 or from behind that time, up to its end or behind it"},
	{"-by: the size, lifetime or time of each block", "-by process, thread or heap"},
	{"-threads, -by thread: which of many threads that have ended called",
	 "-pids, -by process, or a -range behind that time"},
};
enum {
	UNKNOWN_FREE_FRAMES,
	UNKNOWN_SIZE,
	UNKNOWN_LIFETIME,
	UNKNOWN_WINDOW,
	UNKNOWN_INNERMOST,
	UNKNOWN_MOMENT,
	UNKNOWN_RANGE,
	UNKNOWN_BY,
	UNKNOWN_THREAD,
	UNKNOWN_NONE
};

/* Whether they were live at a moment. */
static enum verdict moment_verdict(const struct heap_moment *moment, const struct trace_sum *sum)
{
	bool is_earlier = sum->flags & TRACE_SUM_EARLIER;
	int64_t at_ns = moment->at.time_ns;
	if (!moment->is_asked || ((is_earlier || sum->birth_last_ns < at_ns) && sum->end_first_ns > at_ns))
		return ALL_PASS;
	return (!is_earlier && sum->birth_first_ns > at_ns) || sum->end_last_ns < at_ns ? NONE_PASS : NOT_KNOWN;
}

/* Whether the sum's blocks pass the filter; if that is not known, *unknown is the reason. */
static enum verdict filter_verdict(const struct heap_filter *filter, const struct trace_sum *sum, uint32_t site,
				   unsigned *unknown)
{
	enum heap_class class = HEAP_CLASS_NONE;
	enum verdict size = bounds_verdict(filter->size_bytes, sum->size_min, sum->size_max);
	enum verdict lifetime = bounds_verdict(filter->lifetime_ns, sum->lifetime_min_ns, sum->lifetime_max_ns);
	enum verdict moment = moment_verdict(&filter->moment, sum);
	bool is_one_class = !filter->classes || class_of_all(sum, filter->window, &class);
	bool is_any_thread = sum->flags & TRACE_SUM_THREADS && filter->tid_count;
	if ((filter->thread && !filter->thread[sum->thread] && !is_any_thread) ||
	    (filter->site && !filter->site[site]) ||
	    (filter->heap && !filter->heap[sum->heap < filter->heap_none ? sum->heap : filter->heap_none]) ||
	    (filter->is_closed && sum->flags & TRACE_SUM_OPEN) || flags_of(sum) & filter->unwanted_flags ||
	    size == NONE_PASS || lifetime == NONE_PASS || moment == NONE_PASS ||
	    (filter->classes && is_one_class && !(filter->classes & HEAP_CLASS_BIT(class))) ||
	    (filter->free_site && sum->flags & TRACE_SUM_OPEN))
		return NONE_PASS;
	bool is_nested = flags_of(sum) & (HEAP_NESTED | HEAP_HAS_NESTED);
	*unknown = filter->free_site                                        ? UNKNOWN_FREE_FRAMES
		   : size == NOT_KNOWN                                      ? UNKNOWN_SIZE
		   : lifetime == NOT_KNOWN                                  ? UNKNOWN_LIFETIME
		   : moment == NOT_KNOWN                                    ? UNKNOWN_MOMENT
		   : !is_one_class                                          ? UNKNOWN_WINDOW
		   : is_any_thread                                          ? UNKNOWN_THREAD
		   : filter->nesting == HEAP_NESTING_INNERMOST && is_nested ? UNKNOWN_INNERMOST
									    : UNKNOWN_NONE;
	return *unknown == UNKNOWN_NONE ? ALL_PASS : NOT_KNOWN;
}

/* Whether they are in the rows, and what they are there. */
static enum verdict window_verdict(const struct heap_window *window, const struct trace_sum *sum,
				   struct heap_folded_part *part, unsigned *unknown)
{
	enum verdict begun = sum->flags & TRACE_SUM_EARLIER
				     ? NONE_PASS
				     : range_verdict(window->range, sum->birth_first_ns, sum->birth_last_ns);
	enum heap_class class = HEAP_CLASS_NONE;
	bool is_by_class = window->by == HEAP_BY_CLASS,
	     is_one_class = !is_by_class || class_of_all(sum, window->range, &class);
	bool is_later = sum->end_first_ns > window->range.to_ns,
	     is_one_end = is_later || sum->end_last_ns <= window->range.to_ns;
	*unknown = begun == NOT_KNOWN || (begun == ALL_PASS && !(sum->flags & TRACE_SUM_OPEN) && !is_one_end)
			   ? UNKNOWN_RANGE
		   : !is_one_class                        ? UNKNOWN_BY
		   : heap_window_is_one_part(window, sum) ? UNKNOWN_NONE
		   : window->by == HEAP_BY_THREAD         ? UNKNOWN_THREAD
							  : UNKNOWN_BY;
	if (begun == NONE_PASS && is_one_class && class == HEAP_CLASS_NONE)
		return NONE_PASS;
	part->is_total = begun == ALL_PASS;
	part->is_outstanding =
		(sum->flags & TRACE_SUM_OPEN || is_later) && !(window->gone && window->gone[sum->thread]);
	return *unknown == UNKNOWN_NONE ? ALL_PASS : NOT_KNOWN;
}

bool heap_folded_count(struct heap_folded_part *part, const struct heap_window *window,
		       const struct heap_filter *filter, const struct trace_sum *sum, uint32_t site)
{
	unsigned unknown;
	*part = (struct heap_folded_part){.like = extreme(sum, site, false)};
	if (window->by == HEAP_BY_LIFETIME)
		part->like.end_ns = part->like.birth_ns + (int64_t)sum->lifetime_min_ns;
	if (filter_verdict(filter, sum, site, &unknown) != ALL_PASS)
		return false;
	part->is_row = window_verdict(window, sum, part, &unknown) == ALL_PASS;
	part->is_at_peak = window->is_peak_folded && sum->peak_count;
	return part->is_row || part->is_at_peak || sum->flags & TRACE_SUM_EARLIER;
}

int64_t heap_folded_until_ns(const struct heap_table *table)
{
	int64_t until_ns = INT64_MIN;
	for (uint32_t i = 0; i < table->dictionary->fold_count; i++)
		if (table->dictionary->folds[i].until_ns > until_ns)
			until_ns = table->dictionary->folds[i].until_ns;
	return until_ns;
}

int heap_folded_check(const struct heap_table *table, const struct heap_filter *filter, struct heap_range range,
		      enum heap_by by, struct diag *diag)
{
	const struct heap_window window = {.range = range, .by = by};
	for (uint32_t i = 0; i < table->dictionary->sum_count; i++) {
		const struct trace_sum *sum = &table->dictionary->sums[i];
		struct heap_folded_part part;
		unsigned unknown = UNKNOWN_NONE;
		enum verdict verdict = filter_verdict(filter, sum, table->sum_sites[i], &unknown);
		if (verdict == ALL_PASS)
			verdict = window_verdict(&window, sum, &part, &unknown);
		if (verdict == NOT_KNOWN)
			return diag_fail(diag, ENOTSUP,
					 "%s is not known up to %s: blocks that had ended by then are folded into "
					 "sums; ask for %s",
					 unknowns[unknown].what, text_duration(heap_folded_until_ns(table)).data,
					 unknowns[unknown].instead);
	}
	return 0;
}

/* Blocks that were found have a thread of their own, which is of that moment; others are known by their ends. */
static bool was_found_later(const struct heap_table *table, const struct heap_allocation *row)
{
	const struct trace_thread *thread = &table->dictionary->threads[row->thread];
	return row->flags & HEAP_EARLIER && !(row->flags & HEAP_NESTED) &&
	       (thread->tid != TRACE_TID_NONE || thread->start_ns > heap_folded_until_ns(table));
}

uint64_t heap_folded_late_bytes(const struct heap_table *table)
{
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MIN, INT64_MAX, PACK_ALL, NULL, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	uint64_t bytes = 0;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			bytes += was_found_later(table, &row) ? heap_weigh(table, &row).bytes : 0;
		}
	heap_scan_end(&scan);
	return bytes;
}

static bool asks_for_everything(const struct heap_table *table, const struct heap_filter *filter,
				struct heap_range range)
{
	return (filter->is_plain || filter->is_whole) && !range.from_ns && range.to_ns == table->duration_ns;
}

bool heap_folded_knows_peak(const struct heap_table *table, const struct heap_filter *filter, struct heap_range range)
{
	return range.from_ns > heap_folded_until_ns(table) ||
	       (asks_for_everything(table, filter, range) && table->dictionary->fold_count <= 1);
}

bool heap_folded_peak(struct heap_peak *peak, const struct heap_table *table, const struct heap_filter *filter,
		      struct heap_range range, int64_t *from_ns, bool *is_folded)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	bool is_everything = asks_for_everything(table, filter, range) && dictionary->fold_count <= 1;
	uint64_t folded_bytes = is_everything && dictionary->fold_count
					? dictionary->folds[0].peak_bytes + heap_folded_late_bytes(table)
					: 0;
	*is_folded = is_everything && dictionary->fold_count && folded_bytes >= table->peak.bytes;
	/* Of earlier times it is not known any more what of each stack was live. */
	*from_ns = heap_folded_knows_peak(table, filter, range) ? range.from_ns : heap_folded_until_ns(table) + 1;
	*peak = *is_folded      ? (struct heap_peak){dictionary->folds[0].peak_at_ns, folded_bytes}
		: is_everything ? table->peak
				: (struct heap_peak){range.from_ns, 0};
	return is_everything || *from_ns > range.to_ns;
}
