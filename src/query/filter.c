/* SPDX-License-Identifier: MIT */
#include "query/filter.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bisect.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/wide_registers.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

#define X(name) #name,
static const char *const class_names[] = {HEAP_CLASSES(X)};
#undef X

/* The bit of the class with this name of `length` bytes; 0: there is none. */
static unsigned class_find(const char *name, size_t length)
{
	for (unsigned class = 0; class < HEAP_CLASS_NONE; class ++)
		if (length == strlen(class_names[class]) && !strncasecmp(name, class_names[class], length))
			return HEAP_CLASS_BIT(class);
	return 0;
}

unsigned heap_class_set_parse(const char *text)
{
	unsigned classes = 0;
	for (;; text++) {
		size_t length = strcspn(text, "+");
		unsigned bit = class_find(text, length);
		classes |= bit;
		text += length;
		if (!bit || !*text)
			return bit ? classes : 0;
	}
}

void heap_class_set_write(unsigned classes, struct sink *out)
{
	const char *between = "";
	for (unsigned class = 0; class < HEAP_CLASS_NONE; class ++) {
		if (!(classes & HEAP_CLASS_BIT(class)))
			continue;
		sink_format(out, "%s%s", between, class_names[class]);
		between = "+";
	}
}

const char *heap_class_name(enum heap_class class)
{
	return class < HEAP_CLASS_NONE ? class_names[class] : "none";
}

struct text heap_class_names(void)
{
	struct text names;
	text_join(names.data, sizeof(names.data), class_names, HEAP_CLASS_NONE);
	return names;
}

enum heap_class heap_class_of(const struct heap_allocation *allocation, struct heap_range window)
{
	bool is_outside = allocation->birth_ns < window.from_ns || allocation->flags & HEAP_EARLIER;
	bool has_ended_before = allocation->end != HEAP_END_OPEN && allocation->end_ns < window.from_ns;
	bool is_freed_inside = heap_end_is_given_back(allocation->end) && allocation->end_ns <= window.to_ns;
	if (has_ended_before || (!is_outside && allocation->birth_ns > window.to_ns))
		return HEAP_CLASS_NONE;
	return is_outside ? (is_freed_inside ? HEAP_AOFI : HEAP_AOFO) : (is_freed_inside ? HEAP_AIFI : HEAP_AIFO);
}

void heap_filter_init(struct heap_filter *filter)
{
	*filter = (struct heap_filter){.size_bytes = {0, UINT64_MAX}, .lifetime_ns = {0, UINT64_MAX}, .is_plain = true};
}

static void selection_free(struct heap_selection *selection)
{
	if (!selection)
		return;
	free(selection->passes);
	free(selection->is_known);
	free(selection);
}

/* Free all that heap_filter_prepare() made. */
static void prepared_free(struct heap_filter *filter)
{
	free(filter->site);
	free(filter->free_site);
	free(filter->thread);
	free(filter->gone);
	free(filter->heap);
	selection_free(filter->selection);
	filter->site = filter->free_site = filter->thread = filter->gone = filter->heap = NULL;
	filter->selection = NULL;
}

void heap_filter_fini(struct heap_filter *filter)
{
	heap_patterns_fini(&filter->required);
	heap_patterns_fini(&filter->required_of_free);
	free(filter->pids);
	free(filter->tids);
	free(filter->heaps);
	free(filter->moment.later_births);
	free(filter->moment.later_ends);
	prepared_free(filter);
	heap_filter_init(filter);
}

/* ---- looking at the trace ---- */

static bool stack_matches(struct heap_patterns *patterns, const struct heap_names *names, uint32_t node)
{
	bool matches = false;
	/* To the outermost frame, so that each pattern sees all of them. */
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent)
		matches |= heap_patterns_match(patterns, names, at);
	return matches;
}

static uint8_t *sites_pass(struct heap_patterns *patterns, const struct heap_table *table, struct heap_names *names)
{
	if (!patterns->count)
		return NULL;
	uint8_t *passes = memory_zeroed(table->site_count, 1);
	for (uint32_t i = 0; i < table->site_count && !cancel_is_asked(heap_names_cancelled_by(names)); i++)
		passes[i] = stack_matches(patterns, names, heap_names_site(names, &table->sites[i]));
	return passes;
}

static bool is_among(const uint32_t *numbers, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == number)
			return true;
	return count == 0;
}

static int threads_pass(struct heap_filter *filter, const struct trace_dictionary *dictionary, struct diag *diag)
{
	if (!filter->pid_count && !filter->tid_count)
		return 0;
	filter->thread = memory_zeroed(dictionary->thread_count, 1);
	for (uint32_t i = 0; i < dictionary->thread_count; i++) {
		const struct trace_thread *thread = &dictionary->threads[i];
		filter->thread[i] =
			is_among(filter->tids, filter->tid_count, thread->tid) &&
			is_among(filter->pids, filter->pid_count, dictionary->processes[thread->process].pid);
	}
	for (size_t p = 0; p < filter->pid_count; p++) {
		uint32_t i = 0;
		while (i < dictionary->process_count && dictionary->processes[i].pid != filter->pids[p])
			i++;
		if (i == dictionary->process_count)
			return diag_fail(diag, EINVAL, "no process %" PRIu32 " in the trace", filter->pids[p]);
	}
	for (size_t t = 0; t < filter->tid_count; t++) {
		uint32_t i = 0;
		while (i < dictionary->thread_count && dictionary->threads[i].tid != filter->tids[t])
			i++;
		if (i == dictionary->thread_count)
			return diag_fail(diag, EINVAL, "no thread %" PRIu32 " in the trace", filter->tids[t]);
	}
	return 0;
}

/* A heap goes by its handle, or by (a part of) its name. */
static bool heap_is_meant(const struct trace_heap *heap, const char *wanted)
{
	char *end;
	uint64_t handle = strtoull(wanted, &end, 0);
	if (*wanted && !*end)
		return heap->handle == handle;
	return strcasestr(heap->name, wanted) != NULL;
}

static int heaps_pass(struct heap_filter *filter, const struct trace_dictionary *dictionary, struct diag *diag)
{
	if (!filter->heap_count)
		return 0;
	filter->heap_none = dictionary->heap_count;
	filter->heap = memory_zeroed((size_t)dictionary->heap_count + 1, 1);
	for (size_t h = 0; h < filter->heap_count; h++) {
		bool is_there = false;
		for (uint32_t i = 0; i < dictionary->heap_count; i++)
			if (heap_is_meant(&dictionary->heaps[i], filter->heaps[h]))
				filter->heap[i] = is_there = true;
		if (!is_there)
			return diag_fail(diag, EINVAL, "no heap \"%s\" in the trace; xheap heap -heaps lists them",
					 filter->heaps[h]);
	}
	return 0;
}

/* A test that everything passes is none. */
static void drop_if_all_pass(uint8_t **passes, uint32_t count)
{
	if (!*passes || memchr(*passes, 0, count))
		return;
	free(*passes);
	*passes = NULL;
}

static bool is_bounded(struct heap_bounds bounds)
{
	return bounds.from || bounds.to != UINT64_MAX;
}

/* Whether everything passes that is counted at all and comes from a site that does. */
static bool asks_for_sites(const struct heap_filter *filter)
{
	return !filter->free_site && !filter->thread && !filter->heap && !filter->is_closed &&
	       !filter->moment.is_asked && !filter->classes && !is_bounded(filter->size_bytes) &&
	       !is_bounded(filter->lifetime_ns);
}

static unsigned filter_columns(const struct heap_filter *filter)
{
	const struct {
		bool is_asked;
		unsigned columns;
	} asked[] = {{is_bounded(filter->size_bytes), PACK_SIZES},
		     {is_bounded(filter->lifetime_ns) || filter->classes || filter->moment.is_asked, PACK_TIMES},
		     {filter->unwanted_flags || filter->is_closed, PACK_STATES},
		     {filter->thread, PACK_THREADS},
		     {filter->site, PACK_SITES},
		     {filter->free_site, PACK_END_SITES},
		     {filter->heap, PACK_HEAPS}};
	unsigned columns = 0;
	for (unsigned i = 0; i < sizeof(asked) / sizeof(*asked); i++)
		columns |= asked[i].is_asked ? asked[i].columns : 0;
	return columns;
}

/* Decide which nested blocks are wanted, and what follows from all conditions together. */
static void filter_settle(struct heap_filter *filter, const struct heap_table *table)
{
	bool is_of_sites = asks_for_sites(filter), is_all = is_of_sites && !filter->site;
	filter->unwanted_flags = 0;
	filter->has_overhead =
		table->nested_count && filter->nesting == HEAP_NESTING_INNERMOST && is_all && !filter->is_partial;
	if (filter->nesting == HEAP_NESTING_OUTERMOST && !filter->heap_count)
		filter->unwanted_flags = HEAP_NESTED;
	else if (filter->nesting == HEAP_NESTING_INNERMOST && !filter->has_overhead)
		filter->unwanted_flags = HEAP_HAS_NESTED;
	filter->is_whole = is_all && filter->unwanted_flags == HEAP_NESTED;
	filter->is_of_sites = is_of_sites && (!filter->unwanted_flags || !table->nested_count);
	filter->is_plain = is_all && filter->is_of_sites;
	filter->columns = filter_columns(filter);
	filter->selection = NULL;
	if (filter->is_plain)
		return;
	filter->selection = memory_zeroed(1, sizeof(*filter->selection));
	size_t count = (size_t)table->groups.count + table->checkpoints.copies.count;
	filter->selection->passes = memory_zeroed(count, sizeof(*filter->selection->passes));
	filter->selection->is_known = memory_zeroed(count, 1);
}

int heap_filter_prepare(struct heap_filter *filter, const struct heap_table *table, struct heap_names *names,
			struct diag *diag)
{
	prepared_free(filter);
	int error = threads_pass(filter, table->dictionary, diag);
	error = error ? error : heaps_pass(filter, table->dictionary, diag);
	if (error)
		return error;
	if (filter->required.count || filter->required_of_free.count)
		heap_names_name_sites(names, table);
	heap_patterns_settle(&filter->required, names);
	heap_patterns_settle(&filter->required_of_free, names);
	filter->site = sites_pass(&filter->required, table, names);
	filter->free_site = sites_pass(&filter->required_of_free, table, names);
	drop_if_all_pass(&filter->site, table->site_count);
	drop_if_all_pass(&filter->thread, table->dictionary->thread_count);
	filter_settle(filter, table);
	return 0;
}

int heap_filter_prepare_shared(struct heap_filter *filter, struct heap_filter *from, const struct heap_table *table,
			       struct heap_names *names, struct diag *diag)
{
	assert(!from->selection);
	*filter = *from;
	int error = heap_filter_prepare(filter, table, names, diag);
	/* The patterns remember names, for which they may have moved. */
	from->required = filter->required;
	from->required_of_free = filter->required_of_free;
	return error;
}

void heap_filter_fini_shared(struct heap_filter *filter)
{
	free(filter->moment.later_births);
	free(filter->moment.later_ends);
	prepared_free(filter);
}

void heap_filter_init_for(struct heap_filter *filter, const struct heap_table *table)
{
	heap_filter_init(filter);
	filter_settle(filter, table);
}

void heap_filter_forget_ended(struct heap_filter *filter, const struct heap_table *table)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	uint8_t *gone = memory_zeroed((size_t)dictionary->thread_count + 1, 1);
	bool is_any = false;
	for (uint32_t i = 0; i < dictionary->thread_count; i++) {
		const uint8_t end = dictionary->processes[dictionary->threads[i].process].end;
		gone[i] = end != TRACE_END_OPEN && end != TRACE_END_DETACHED;
		is_any |= gone[i];
	}
	if (is_any)
		filter->gone = gone;
	else
		free(gone);
}

void heap_filter_init_chosen(struct heap_filter *filter, const struct heap_table *table, uint8_t *sites,
			     uint8_t *threads)
{
	heap_filter_init(filter);
	filter->site = sites;
	filter->thread = threads;
	drop_if_all_pass(&filter->site, table->site_count);
	drop_if_all_pass(&filter->thread, table->dictionary->thread_count);
	filter_settle(filter, table);
}

void heap_filter_init_beside(struct heap_filter *filter, const struct heap_filter *from, const struct heap_table *table)
{
	*filter = *from;
	filter->nesting = HEAP_NESTING_ALL;
	filter_settle(filter, table);
}

void heap_filter_fini_beside(struct heap_filter *filter)
{
	selection_free(filter->selection);
	filter->selection = NULL;
}

void heap_filter_init_of_process(struct heap_filter *filter, const struct heap_filter *from,
				 const struct heap_table *table, uint32_t process)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	*filter = *from;
	filter->thread = memory_zeroed((size_t)dictionary->thread_count + 1, 1);
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		filter->thread[i] = dictionary->threads[i].process == process && (!from->thread || from->thread[i]);
	filter_settle(filter, table);
}

void heap_filter_fini_of_process(struct heap_filter *filter)
{
	free(filter->thread);
	filter->thread = NULL;
	heap_filter_fini_beside(filter);
}

/* ---- asking ---- */

/* All bits set for each row that fits, none for the others. */
struct fits {
	uint64_t rows[PACK_ROWS];
};

/* from <= number < to, or <= where that is the most there is. */
WIDE_REGISTERS static void fit_bounds(struct fits *fits, const uint64_t *numbers, uint32_t count,
				      struct heap_bounds bounds)
{
	uint64_t last = bounds.to == UINT64_MAX ? bounds.to : bounds.to - 1, width = last - bounds.from;
	if (!bounds.to || last < bounds.from) {
		memset(fits->rows, 0, count * sizeof(*fits->rows));
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		fits->rows[i] &= 0 - (uint64_t)(numbers[i] - bounds.from <= width);
}

/* As heap_lifetime_ns(). */
WIDE_REGISTERS static void fit_lifetimes(struct fits *fits, const struct pack_columns *columns, uint32_t count,
					 struct heap_bounds bounds)
{
	uint64_t lifetimes[PACK_ROWS];
	for (uint32_t i = 0; i < count; i++) {
		uint64_t birth = columns->numbers[PACK_BIRTH][i], end = columns->numbers[PACK_END][i],
			 lifetime = end - birth;
		uint64_t overflows = 0 - (((end ^ birth) & (end ^ lifetime)) >> 63);
		lifetimes[i] = (lifetime & ~overflows) | (INT64_MAX & overflows);
	}
	fit_bounds(fits, lifetimes, count, bounds);
}

/* Numbers whose place in the table is not 0. */
static void fit_table(struct fits *fits, const uint64_t *numbers, uint32_t count, const uint8_t *passes)
{
	for (uint32_t i = 0; i < count; i++)
		fits->rows[i] &= 0 - (uint64_t)(passes[numbers[i]] != 0);
}

/* The same of numbers that may be none: 0 is none, others are one more than they are. */
static void fit_table_or_none(struct fits *fits, const uint64_t *numbers, uint32_t count, const uint8_t *passes,
			      bool none_passes)
{
	for (uint32_t i = 0; i < count; i++)
		fits->rows[i] &= 0 - (uint64_t)(numbers[i] ? passes[numbers[i] - 1] != 0 : none_passes);
}

static void fit_states(struct fits *fits, const struct heap_filter *filter, const uint64_t *states, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool is_given_back = heap_end_is_given_back(states[i] & PACK_END_MASK);
		bool is_wanted = !(states[i] >> PACK_FLAGS_SHIFT & filter->unwanted_flags);
		fits->rows[i] &= 0 - (uint64_t)(is_wanted && (is_given_back || !filter->is_closed));
	}
}

static void fit_class(struct fits *fits, const struct heap_filter *filter, const struct pack_columns *columns,
		      uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct heap_allocation row = pack_row(columns, i);
		unsigned bit = HEAP_CLASS_BIT(heap_class_of(&row, filter->window));
		fits->rows[i] &= 0 - (uint64_t)((filter->classes & bit) != 0);
	}
}

static bool is_listed(const uint32_t *numbers, size_t count, uint32_t number)
{
	size_t place;
	BISECT(place, count, i, numbers[i] < number);
	return place < count && numbers[place] == number;
}

/* Return whether the row, which begins or ends in the moment's nanosecond, is live at the moment. */
static bool is_live_within(const struct heap_moment *moment, const struct heap_allocation *row, uint32_t number)
{
	int64_t at_ns = moment->at.time_ns;
	bool is_born_then = row->birth_ns == at_ns && !(row->flags & HEAP_EARLIER);
	if (is_born_then && (moment->births_are_later || is_listed(moment->later_births, moment->birth_count, number)))
		return false;
	if (row->end == HEAP_END_OPEN || row->end_ns > at_ns)
		return true;
	if (row->end_ns < at_ns)
		return false;
	return heap_end_is_given_back(row->end)
		       ? moment->ends_are_later || is_listed(moment->later_ends, moment->end_count, number)
		       : moment->exits_are_later;
}

static void fit_moment(struct fits *fits, const struct heap_moment *moment, const struct pack_columns *columns,
		       uint32_t first, uint32_t count)
{
	int64_t at_ns = moment->at.time_ns;
	for (uint32_t i = 0; i < count; i++) {
		const struct heap_allocation row = pack_row(columns, i);
		bool is_live = heap_is_live_at(&row, at_ns);
		if (row.birth_ns == at_ns ||
		    (row.end_ns == at_ns && (row.birth_ns < at_ns || row.flags & HEAP_EARLIER)))
			is_live = is_live_within(moment, &row, first + i);
		fits->rows[i] &= 0 - (uint64_t)is_live;
	}
}

WIDE_REGISTERS static void fits_put(uint64_t *passes, const struct fits *fits, uint32_t count)
{
	uint32_t i = 0;
	for (; i + 64 <= count; i += 64) {
		uint64_t word = 0;
		for (uint32_t k = 0; k < 64; k++)
			word |= fits->rows[i + k] & UINT64_C(1) << k;
		passes[i / 64] = word;
	}
	for (; i < count; i++)
		passes[i / 64] |= fits->rows[i] & UINT64_C(1) << i % 64;
}

void heap_filter_select(uint64_t *passes, const struct heap_filter *filter, const struct pack_columns *columns,
			uint32_t first, uint32_t count)
{
	const uint64_t(*numbers)[PACK_ROWS] = columns->numbers;
	struct fits fits;
	memset(passes, 0, PACK_ROWS / 8);
	memset(fits.rows, 0xff, count * sizeof(*fits.rows));
	if (is_bounded(filter->size_bytes))
		fit_bounds(&fits, numbers[PACK_SIZE], count, filter->size_bytes);
	if (is_bounded(filter->lifetime_ns))
		fit_lifetimes(&fits, columns, count, filter->lifetime_ns);
	if (filter->unwanted_flags || filter->is_closed)
		fit_states(&fits, filter, numbers[PACK_STATE], count);
	if (filter->thread)
		fit_table(&fits, numbers[PACK_THREAD], count, filter->thread);
	if (filter->site)
		fit_table(&fits, numbers[PACK_SITE], count, filter->site);
	if (filter->free_site)
		fit_table_or_none(&fits, numbers[PACK_END_SITE], count, filter->free_site, false);
	if (filter->heap)
		fit_table_or_none(&fits, numbers[PACK_HEAP], count, filter->heap, filter->heap[filter->heap_none]);
	if (filter->classes)
		fit_class(&fits, filter, columns, count);
	if (filter->moment.is_asked)
		fit_moment(&fits, &filter->moment, columns, first, count);
	fits_put(passes, &fits, count);
}
