/* SPDX-License-Identifier: MIT */
/*
 * Peaks without sorting all beginnings and ends. The range is cut into many slices of time. A first pass adds up for
 * each what began and ended in it. That gives what was live at the slice's start, and the most that can have been live
 * in it: that and all that began. Only slices whose bound reaches the greatest live size that is known for their part
 * are looked at, by further passes over the allocations that can have to do with them.
 */
#include "query/peak.h"

#include <assert.h>
#include <stdlib.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "base/order.h"
#include "query/scan.h"
#include "table/weight.h"

enum { SLICE_EVENTS = 32, SLICE_EVENTS_BETWEEN = 3, SLICES_MAX = 1 << 20, BATCH_EVENTS = 1 << 22 };

struct slice {
	uint64_t began_bytes, ended_bytes;
	/* first_group: of the table, with an allocation that begins or ends in it; 0: one has a copy */
	uint32_t events, first_group;
};

/* A beginning, or an end. */
struct level_change {
	int64_t time_ns;
	uint64_t bytes; /* of an end: less than none */
};

struct slicing {
	struct heap_range range;
	uint64_t scale; /* slices per nanosecond, times 2^64; with bounds: parts */
	uint32_t count;
	/* of parts that may differ in length: their bounds, and the scale of each; else NULL */
	const int64_t *bounds;
	uint64_t *scales;
	uint32_t per_part;
};

/* One thread's part of a pass. */
struct pass {
	const struct heap_table *table;
	const struct slicing *slicing;
	struct heap_scan_plan plan;
	uint32_t *shared;
	struct slice *slices;
	uint64_t base_bytes; /* live at the range's start */
	/* Of a pass that collects, which is one with changes: slices from `first` up to `last` that are candidates have
	   places in changes. */
	uint32_t first, last;
	const uint64_t *starts; /* by slice - first: of the next candidate's when it is none */
	uint64_t *filled;       /* shared by all threads */
	const uint64_t *near;   /* bits: candidates have times in this stretch of 1 << near_shift ns of the range */
	unsigned near_shift;
	struct level_change *changes;
};

static inline uint32_t place_of(uint64_t at, uint64_t scale, uint32_t count)
{
	uint64_t place = (uint64_t)((unsigned __int128)at * scale >> 64);
	return place < count ? (uint32_t)place : count - 1;
}

static inline uint32_t slice_within(const struct slicing *slicing, uint32_t part, int64_t time_ns)
{
	uint64_t at = (uint64_t)time_ns - (uint64_t)slicing->bounds[part] - 1;
	return part * slicing->per_part + place_of(at, slicing->scales[part], slicing->per_part);
}

/* A part has the times behind its first bound, up to the next one. Most parts are of one length, so that the right one
   is near. */
static uint32_t slice_between(const struct slicing *slicing, int64_t time_ns)
{
	const int64_t *bounds = slicing->bounds;
	uint32_t part =
		place_of((uint64_t)time_ns - (uint64_t)bounds[0], slicing->scale, slicing->count / slicing->per_part);
	while (time_ns <= bounds[part])
		part--;
	while (time_ns > bounds[part + 1])
		part++;
	return slice_within(slicing, part, time_ns);
}

/* The slice of a time within the range: the same for all, and never falling. */
static inline uint32_t slice_of(const struct slicing *slicing, int64_t time_ns)
{
	if (slicing->bounds)
		return slice_between(slicing, time_ns);
	return place_of((uint64_t)time_ns - (uint64_t)slicing->range.from_ns, slicing->scale, slicing->count);
}

static bool begins_within(const struct heap_allocation *row, struct heap_range range)
{
	return !(row->flags & HEAP_EARLIER) && row->birth_ns > range.from_ns && row->birth_ns <= range.to_ns;
}

static bool ends_within(const struct heap_allocation *row, struct heap_range range)
{
	return row->end != HEAP_END_OPEN && row->end_ns > range.from_ns && row->end_ns <= range.to_ns &&
	       (row->birth_ns <= range.to_ns || row->flags & HEAP_EARLIER);
}

static bool is_base(const struct heap_allocation *row, struct heap_range range)
{
	bool has_begun = row->flags & HEAP_EARLIER || row->birth_ns <= range.from_ns;
	return has_begun && (row->end == HEAP_END_OPEN || row->end_ns > range.from_ns);
}

/* Each thread makes its own slices, so that their pages are its own, too. */
static void slices_begin(struct pass *pass)
{
	if (!pass->slices)
		pass->slices = memory_table(pass->slicing->count, sizeof(*pass->slices));
}

static inline struct slice *slice_touch(struct pass *pass, uint32_t number, uint32_t group)
{
	struct slice *slice = &pass->slices[number];
	slice->first_group = slice->events && slice->first_group < group ? slice->first_group : group;
	slice->events++;
	return slice;
}

static inline __attribute__((always_inline)) void row_sum(struct pass *pass, const struct heap_allocation *row,
							  uint64_t bytes, uint32_t group)
{
	struct heap_range range = pass->slicing->range;
	if (is_base(row, range))
		pass->base_bytes += bytes;
	if (begins_within(row, range))
		slice_touch(pass, slice_of(pass->slicing, row->birth_ns), group)->began_bytes += bytes;
	if (ends_within(row, range))
		slice_touch(pass, slice_of(pass->slicing, row->end_ns), group)->ended_bytes += bytes;
}

static inline void change_put(struct pass *pass, int64_t time_ns, uint64_t bytes)
{
	uint32_t slice = slice_of(pass->slicing, time_ns);
	if (slice < pass->first || slice >= pass->last)
		return;
	uint64_t start = pass->starts[slice - pass->first], end = pass->starts[slice - pass->first + 1];
	if (start == end)
		return;
	uint64_t place = start + __atomic_fetch_add(&pass->filled[slice - pass->first], 1, __ATOMIC_RELAXED);
	if (place < end) /* a damaged index may say otherwise the second time */
		pass->changes[place] = (struct level_change){time_ns, bytes};
}

static void rows_sum_sample(struct pass *pass, const struct heap_rows *rows)
{
	heap_rows_each (rows, i) {
		const struct heap_allocation row = heap_rows_get(rows, i);
		row_sum(pass, &row, heap_weigh(pass->table, &row).bytes, rows->first / PACK_ROWS);
	}
}

static void rows_sum_all(struct pass *pass, const struct heap_rows *rows)
{
	heap_rows_each (rows, i) {
		const struct heap_allocation row = heap_rows_get(rows, i);
		row_sum(pass, &row, row.size_bytes, rows->first / PACK_ROWS);
	}
}

static void rows_sum_between(struct pass *pass, const struct heap_rows *rows, const struct heap_row_moments *moments)
{
	const struct slicing slicing = *pass->slicing;
	const uint32_t parts = slicing.count / slicing.per_part, group = rows->first / PACK_ROWS;
	slices_begin(pass);
	const uint64_t *begins_ns = rows->columns.numbers[PACK_BIRTH], *ends_ns = rows->columns.numbers[PACK_END];
	heap_rows_each (rows, i) {
		uint64_t bytes = rows->columns.numbers[PACK_SIZE][i];
		uint32_t begin = moments->begins[i], end = moments->ends[i];
		if (pass->table->sample_bytes) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			bytes = heap_weigh(pass->table, &row).bytes;
		}
		if (!begin && end)
			pass->base_bytes += bytes;
		if (begin - 1 < parts)
			slice_touch(pass, slice_within(&slicing, begin - 1, (int64_t)begins_ns[i]), group)
				->began_bytes += bytes;
		if (end - 1 < parts && begin <= parts)
			slice_touch(pass, slice_within(&slicing, end - 1, (int64_t)ends_ns[i]), group)->ended_bytes +=
				bytes;
	}
}

/* The weight of a sample's block needs the whole row; the columns are enough if a block stands for itself. */
static void rows_sum(struct pass *pass, const struct heap_rows *rows)
{
	slices_begin(pass);
	(pass->table->sample_bytes ? rows_sum_sample : rows_sum_all)(pass, rows);
}

static inline bool is_near(const struct pass *pass, int64_t time_ns)
{
	uint64_t at = ((uint64_t)time_ns - (uint64_t)pass->slicing->range.from_ns) >> pass->near_shift;
	return pass->near[at / 64] >> at % 64 & 1;
}

static void row_collect(struct pass *pass, const struct heap_rows *rows, uint32_t i)
{
	const struct heap_allocation row = heap_rows_get(rows, i);
	uint64_t bytes = heap_weigh(pass->table, &row).bytes;
	if (begins_within(&row, pass->slicing->range))
		change_put(pass, row.birth_ns, bytes);
	if (ends_within(&row, pass->slicing->range))
		change_put(pass, row.end_ns, 0 - bytes);
}

static void rows_collect(struct pass *pass, const struct heap_rows *rows)
{
	const struct heap_range range = pass->slicing->range;
	const int64_t *begins_ns = (const int64_t *)rows->columns.numbers[PACK_BIRTH],
		      *ends_ns = (const int64_t *)rows->columns.numbers[PACK_END];
	heap_rows_each (rows, i) {
		int64_t begin_ns = begins_ns[i], end_ns = ends_ns[i];
		if ((begin_ns > range.from_ns && begin_ns <= range.to_ns && is_near(pass, begin_ns)) ||
		    (end_ns > range.from_ns && end_ns <= range.to_ns && is_near(pass, end_ns)))
			row_collect(pass, rows, i);
	}
}

static void pass_run(void *context)
{
	struct pass *pass = context;
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, pass->table, &pass->plan, pass->shared);
	while ((rows = heap_scan_next(&scan)))
		(pass->changes ? rows_collect : rows_sum)(pass, rows);
	heap_scan_end(&scan);
}

/* ---- slices that may have a peak ---- */

struct search {
	const struct slicing *slicing;
	struct pass *passes; /* the first one has the findings of all */
	unsigned width;
	struct slice *slices;
	uint64_t *live_bytes; /* at each slice's start */
	struct heap_peak *peaks;
	uint64_t *known_bytes; /* by part: live at some time of it */
	uint32_t per_part;
};

/* A batch of slices that are searched: as in struct pass. */
struct search_batch {
	uint32_t first, last;
	const uint64_t *starts;
	struct level_change *changes;
};

/* The parts of one thread. */
struct search_share {
	struct search *search;
	const struct search_batch *batch;
	uint32_t from, to;
};

/* Have all threads work, each on a share of the parts. */
static void parts_each(struct search *search, void (*work)(void *share), const struct search_batch *batch)
{
	struct search_share *shares = memory_zeroed(search->width, sizeof(*shares));
	uint32_t parts = search->slicing->count / search->per_part;
	for (unsigned i = 0; i < search->width; i++)
		shares[i] = (struct search_share){search, batch, (uint32_t)((uint64_t)parts * i / search->width),
						  (uint32_t)((uint64_t)parts * (i + 1) / search->width)};
	heap_scan_threads(work, shares, sizeof(*shares), search->width);
	free(shares);
}

static bool is_candidate(const struct search *search, uint32_t slice)
{
	const struct slice *at = &search->slices[slice];
	return at->began_bytes &&
	       search->live_bytes[slice] + at->began_bytes >= search->known_bytes[slice / search->per_part];
}

COMPARE_BY(change_compare, struct level_change, time_ns)

/* Most slices have few, and they are almost in order. */
static void changes_sort(struct level_change *changes, size_t count)
{
	enum { FEW = 40 };
	if (count > FEW) {
		qsort(changes, count, sizeof(*changes), change_compare);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		const struct level_change change = changes[i];
		size_t at = i;
		for (; at && changes[at - 1].time_ns > change.time_ns; at--)
			changes[at] = changes[at - 1];
		changes[at] = change;
	}
}

static void slice_search(struct search *search, uint32_t slice, struct level_change *changes, size_t count)
{
	uint64_t live_bytes = search->live_bytes[slice];
	struct heap_peak *peak = &search->peaks[slice / search->per_part];
	changes_sort(changes, count);
	for (size_t i = 0; i < count;) {
		int64_t time_ns = changes[i].time_ns;
		for (; i < count && changes[i].time_ns == time_ns; i++)
			live_bytes += changes[i].bytes;
		/* Slices come in order, so the first of equal ones is found. */
		if (live_bytes > peak->bytes)
			*peak = (struct heap_peak){time_ns, live_bytes};
	}
	if (peak->bytes > search->known_bytes[slice / search->per_part])
		search->known_bytes[slice / search->per_part] = peak->bytes;
}

static void batch_search_share(void *context)
{
	const struct search_share *share = context;
	struct search *search = share->search;
	const struct search_batch *batch = share->batch;
	uint32_t first = share->from * search->per_part, last = share->to * search->per_part;
	first = first < batch->first ? batch->first : first;
	last = last < batch->last ? last : batch->last;
	for (uint32_t slice = first; slice < last; slice++) {
		const uint64_t *start = &batch->starts[slice - batch->first];
		if (start[1] > start[0] && is_candidate(search, slice))
			slice_search(search, slice, &batch->changes[start[0]], start[1] - start[0]);
	}
}

/* Candidates from *first on, as many as a batch holds: into starts; the slice behind them. */
static uint32_t batch_choose(const struct search *search, uint32_t first, uint32_t count, uint64_t *starts,
			     uint64_t *events)
{
	assert(first < count);
	uint32_t slice = first;
	*events = 0;
	for (; slice < count; slice++) {
		uint64_t more = is_candidate(search, slice) ? search->slices[slice].events : 0;
		if (*events && *events + more > BATCH_EVENTS)
			break;
		starts[slice - first] = *events;
		*events += more;
	}
	starts[slice - first] = *events;
	return slice;
}

static int64_t slice_start(const struct slicing *slicing, uint32_t slice)
{
	if (slicing->bounds)
		return slicing->bounds[slice / slicing->per_part];
	/* One slice early: rounding. */
	double length = (double)((uint64_t)slicing->range.to_ns - (uint64_t)slicing->range.from_ns) + 1;
	double at = slice > 1 ? length * (slice - 1) / slicing->count : 0;
	return at >= length ? slicing->range.to_ns : (int64_t)((uint64_t)slicing->range.from_ns + (uint64_t)at);
}

/* No time of the slice, or of one before it, lies behind it. */
static int64_t slice_limit(const struct slicing *slicing, uint32_t slice)
{
	if (slicing->bounds)
		return slicing->bounds[slice / slicing->per_part + 1];
	return slice + 3 < slicing->count ? slice_start(slicing, slice + 3) : slicing->range.to_ns;
}

/* The pass over what has to do with the candidates of a batch: nothing that began behind the last one, or ended before
   the first one. */
static struct pass batch_pass(const struct search *search, const struct pass *like, uint32_t first, uint32_t last,
			      const uint64_t *starts, uint32_t *first_place)
{
	struct pass pass = *like;
	uint32_t from = last, to = first, first_group = UINT32_MAX;
	pass.first = first;
	pass.last = last;
	pass.starts = starts;
	for (uint32_t slice = first; slice < last; slice++) {
		if (starts[slice - first] == starts[slice - first + 1])
			continue;
		from = from < slice ? from : slice;
		to = slice;
		first_group = first_group < search->slices[slice].first_group ? first_group
									      : search->slices[slice].first_group;
	}
	pass.plan.from_ns = pass.plan.live_from_ns = slice_start(like->slicing, from);
	pass.plan.to_ns = slice_limit(like->slicing, to);
	*first_place = heap_scan_place(like->table, &pass.plan, first_group);
	return pass;
}

/* Which stretches of time have candidates: most rows have nothing to do with any, and this is a quick way to tell. */
static uint64_t *near_find(struct pass *pass)
{
	enum { STRETCHES_MAX = 1 << 16 };
	const struct slicing *slicing = pass->slicing;
	const uint64_t from = (uint64_t)slicing->range.from_ns, length = (uint64_t)slicing->range.to_ns - from,
		       most = slicing->count < STRETCHES_MAX ? slicing->count : STRETCHES_MAX;
	while (length >> pass->near_shift > most)
		pass->near_shift++;
	uint64_t count = (length >> pass->near_shift) + 1, *near = memory_zeroed(count / 64 + 1, sizeof(*near));
	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = i << pass->near_shift, end = begin + ((UINT64_C(1) << pass->near_shift) - 1);
		uint32_t first = slice_of(slicing, (int64_t)(from + (begin ? begin : 1))),
			 last = slice_of(slicing, (int64_t)(from + (end < length ? end : length)));
		first = first < pass->first ? pass->first : first;
		last = last < pass->last ? last + 1 : pass->last;
		if (first < last && pass->starts[first - pass->first] < pass->starts[last - pass->first])
			near[i / 64] |= UINT64_C(1) << i % 64;
	}
	return near;
}

static void batch_search(struct search *search, const struct pass *like, uint32_t first, uint32_t last,
			 const uint64_t *starts, uint64_t events)
{
	assert(first < last);
	unsigned width = heap_scan_width(like->table);
	struct pass *passes = memory_resize(NULL, width, sizeof(*passes));
	struct level_change *changes = memory_zeroed(events, sizeof(*changes));
	uint64_t *filled = memory_zeroed(last - first, sizeof(*filled));
	uint32_t shared;
	struct pass pass = batch_pass(search, like, first, last, starts, &shared);
	uint64_t *near = near_find(&pass);
	pass.near = near;
	pass.shared = &shared;
	pass.filled = filled;
	pass.changes = changes;
	for (unsigned i = 0; i < width; i++)
		passes[i] = pass;
	heap_scan_threads(pass_run, passes, sizeof(*passes), width);
	parts_each(search, batch_search_share, &(struct search_batch){first, last, starts, changes});
	free(near);
	free(filled);
	free(changes);
	free(passes);
}

/* ---- all of it ---- */

/* Slices in each nanosecond of a length, times 2^64: one slice a nanosecond is as fine as it gets. Length 0: all. */
static uint64_t scale_of(uint64_t length, uint32_t slices)
{
	if (length && length <= slices)
		return UINT64_MAX;
	return length ? (uint64_t)(((unsigned __int128)slices << 64) / length) : slices;
}

/* About as many as there are of rows that begin in the range. */
static uint32_t slices_per_part(const struct heap_table *table, struct heap_range range, uint32_t events,
				uint32_t parts)
{
	uint64_t rows = 0;
	for (uint32_t i = 0; i < table->groups.count; i++) {
		const struct heap_group *group = &table->groups.items[i];
		rows += group->first_ns <= range.to_ns && group->last_ns >= range.from_ns ? PACK_ROWS : 0;
	}
	uint64_t per_part = rows / events / parts + 1;
	return per_part < SLICES_MAX / parts ? (uint32_t)per_part : SLICES_MAX / parts;
}

static void slicing_make(struct slicing *slicing, const struct heap_table *table, struct heap_range range,
			 uint32_t parts)
{
	assert(parts > 0);
	uint64_t length = (uint64_t)range.to_ns - (uint64_t)range.from_ns + 1;
	*slicing =
		(struct slicing){.range = range, .count = slices_per_part(table, range, SLICE_EVENTS, parts) * parts};
	slicing->scale = scale_of(length, slicing->count);
}

static void slicing_make_between(struct slicing *slicing, const struct heap_table *table, const int64_t *bounds,
				 uint32_t parts)
{
	assert(parts > 0);
	const struct heap_range range = {bounds[0], bounds[parts]};
	uint32_t per_part = slices_per_part(table, range, SLICE_EVENTS_BETWEEN, parts);
	*slicing = (struct slicing){.range = range,
				    .scale = scale_of((uint64_t)bounds[parts] - (uint64_t)bounds[0], parts),
				    .count = per_part * parts,
				    .bounds = bounds,
				    .scales = memory_zeroed(parts, sizeof(uint64_t)),
				    .per_part = per_part};
	for (uint32_t i = 0; i < parts; i++)
		slicing->scales[i] = scale_of((uint64_t)bounds[i + 1] - (uint64_t)bounds[i], per_part);
}

struct heap_peak_search {
	struct slicing slicing;
	struct pass *passes; /* by thread */
	unsigned width;
	uint32_t parts, shared;
};

static struct heap_peak_search *search_new(const struct heap_table *table, const struct heap_filter *filter,
					   const bool *sites, const struct slicing *slicing, uint32_t parts)
{
	struct heap_range range = slicing->range;
	struct heap_peak_search *search = memory_zeroed(1, sizeof(*search));
	search->slicing = *slicing;
	search->parts = parts;
	search->width = heap_scan_width(table);
	search->passes = memory_zeroed(search->width, sizeof(*search->passes));
	for (unsigned i = 0; i < search->width; i++)
		search->passes[i] =
			(struct pass){.table = table,
				      .slicing = &search->slicing,
				      .shared = &search->shared,
				      .plan = {range.from_ns, range.to_ns, range.from_ns,
					       PACK_TIMES | PACK_SIZES | (sites ? PACK_SITES : 0), filter, sites}};
	return search;
}

struct heap_peak_search *heap_peak_search_new(const struct heap_table *table, const struct heap_filter *filter,
					      struct heap_range range, uint32_t parts)
{
	struct slicing slicing;
	slicing_make(&slicing, table, range, parts);
	return search_new(table, filter, NULL, &slicing, parts);
}

struct heap_peak_search *heap_peak_search_new_between(const struct heap_table *table, const struct heap_filter *filter,
						      const bool *sites, const int64_t *bounds, uint32_t parts)
{
	struct slicing slicing;
	slicing_make_between(&slicing, table, bounds, parts);
	return search_new(table, filter, sites, &slicing, parts);
}

void heap_peak_search_add(struct heap_peak_search *search, unsigned thread, const struct heap_rows *rows)
{
	assert(thread < search->width);
	rows_sum(&search->passes[thread], rows);
}

void heap_peak_search_add_between(struct heap_peak_search *search, unsigned thread, const struct heap_rows *rows,
				  const struct heap_row_moments *moments)
{
	assert(thread < search->width && search->slicing.bounds);
	rows_sum_between(&search->passes[thread], rows, moments);
}

static void slice_add(struct slice *to, const struct slice *from)
{
	if (from->events && (!to->events || from->first_group < to->first_group))
		to->first_group = from->first_group;
	to->began_bytes += from->began_bytes;
	to->ended_bytes += from->ended_bytes;
	to->events += from->events;
}

/* Add the findings of all threads to those of the first one. Levels at slices are relative to the part's start, and
   the last one is that at its end. */
static void slices_merge(void *context)
{
	const struct search_share *share = context;
	struct search *search = share->search;
	for (uint32_t part = share->from; part < share->to; part++) {
		uint64_t level = 0;
		for (uint32_t k = part * search->per_part; k < (part + 1) * search->per_part; k++) {
			for (unsigned i = 1; i < search->width; i++)
				if (search->passes[i].slices)
					slice_add(&search->slices[k], &search->passes[i].slices[k]);
			level += search->slices[k].began_bytes - search->slices[k].ended_bytes;
			search->live_bytes[k] = level;
		}
	}
}

/* From what was live at the start of each part, as known_bytes has it, to what was live at slices. */
static void levels_find(void *context)
{
	const struct search_share *share = context;
	struct search *search = share->search;
	for (uint32_t part = share->from; part < share->to; part++) {
		uint64_t level = search->known_bytes[part];
		for (uint32_t k = part * search->per_part; k < (part + 1) * search->per_part; k++) {
			uint64_t end = search->peaks[part].bytes + search->live_bytes[k];
			search->live_bytes[k] = level;
			if (level > search->known_bytes[part])
				search->known_bytes[part] = level;
			level = end;
		}
	}
}

static void search_begin(struct search *search, uint64_t base_bytes)
{
	const struct slicing *slicing = search->slicing;
	uint64_t level = base_bytes;
	parts_each(search, slices_merge, NULL);
	for (uint32_t part = 0; part < slicing->count / search->per_part; part++) {
		uint32_t first = part * search->per_part;
		int64_t start_ns =
			part ? slice_start(slicing, slicing->bounds ? first : first + 1) : slicing->range.from_ns;
		search->peaks[part] = (struct heap_peak){start_ns, level};
		search->known_bytes[part] = level;
		level += search->live_bytes[first + search->per_part - 1];
	}
	parts_each(search, levels_find, NULL);
}

void heap_peak_search_finish(struct heap_peak_search *own, struct heap_peak *peaks)
{
	const struct slicing *slicing = &own->slicing;
	uint64_t base_bytes = 0;
	for (unsigned i = 0; i < own->width; i++)
		base_bytes += own->passes[i].base_bytes;
	slices_begin(&own->passes[0]);
	struct search search = {.slicing = slicing,
				.passes = own->passes,
				.width = own->width,
				.slices = own->passes[0].slices,
				.live_bytes = memory_resize(NULL, slicing->count, sizeof(uint64_t)),
				.peaks = peaks,
				.known_bytes = memory_zeroed(own->parts, sizeof(uint64_t)),
				.per_part = slicing->count / own->parts};
	search_begin(&search, base_bytes);
	for (unsigned i = 1; i < own->width; i++)
		free(own->passes[i].slices);
	uint64_t *starts = memory_resize(NULL, (size_t)slicing->count + 1, sizeof(*starts)), events;
	const bool *is_cancelled = own->passes[0].plan.filter->is_cancelled;
	for (uint32_t first = 0, last; first < slicing->count && !cancel_is_asked(is_cancelled); first = last) {
		last = batch_choose(&search, first, slicing->count, starts, &events);
		if (events)
			batch_search(&search, &own->passes[0], first, last, starts, events);
	}
	free(starts);
	free(search.slices);
	free(search.live_bytes);
	free(search.known_bytes);
	free(own->passes);
	free(own->slicing.scales);
	free(own);
}

void heap_peaks(struct heap_peak *peaks, uint32_t parts, const struct heap_table *table,
		const struct heap_filter *filter, struct heap_range range)
{
	struct heap_peak_search *search = heap_peak_search_new(table, filter, range, parts);
	heap_scan_threads(pass_run, search->passes, sizeof(*search->passes), search->width);
	heap_peak_search_finish(search, peaks);
}
