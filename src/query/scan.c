/* SPDX-License-Identifier: MIT */
#include "query/scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "base/threads.h"
#include "table/table_limits.h"

enum { SHARE_LEAST = 32, SHARE_MOST = 256, SHARES = 64, AHEAD = 8, GROUPS_PER_THREAD = 512, THREADS_MAX = 16 };

static bool is_wanted(const struct heap_group *group, const struct heap_scan_plan *plan)
{
	if (plan->filter && plan->filter->moment.is_asked && group->end_ns < plan->filter->moment.at.time_ns)
		return false;
	return group->first_ns <= plan->to_ns &&
	       (group->last_ns >= plan->from_ns || group->end_ns > plan->live_from_ns);
}

/* Return whether copies are fewer groups than those that would be read before them. Blocks from before the trace count
   in windows that begin after their ends, of which there are no copies. */
static bool are_fewer(const struct heap_checkpoint *checkpoint, const struct heap_groups *groups,
		      const struct heap_scan_plan *plan)
{
	uint32_t wanted = 0;
	for (uint32_t i = 0; i < checkpoint->next_group; i++) {
		if (groups->items[i].first_ns == INT64_MIN)
			return false;
		wanted += is_wanted(&groups->items[i], plan);
	}
	return checkpoint->copies < wanted;
}

/* Return the checkpoint whose copies stand in for all groups before it, NULL: none does. They have no details. If the
   order in a nanosecond matters, their numbers would be needed. */
static const struct heap_checkpoint *checkpoint_find(const struct heap_table *table, const struct heap_scan_plan *plan)
{
	const struct heap_moment *moment = plan->filter ? &plan->filter->moment : NULL;
	if (plan->columns & PACK_ANY_DETAIL)
		return NULL;
	if (moment && moment->is_asked)
		return moment->later_births || moment->later_ends
			       ? NULL
			       : heap_checkpoints_find(&table->checkpoints, moment->at.time_ns);
	const struct heap_checkpoint *checkpoint = heap_checkpoints_find(
		&table->checkpoints, plan->from_ns < plan->live_from_ns ? plan->from_ns : plan->live_from_ns);
	return checkpoint && are_fewer(checkpoint, &table->groups, plan) ? checkpoint : NULL;
}

void heap_scan_begin(struct heap_scan *scan, const struct heap_table *table, const struct heap_scan_plan *plan,
		     uint32_t *shared)
{
	const struct heap_checkpoint *checkpoint = checkpoint_find(table, plan);
	scan->table = table;
	scan->plan = *plan;
	memset(&scan->rows.columns, 0, sizeof(scan->rows.columns));
	scan->reader = (struct groups_reader){.of = NULL};
	scan->next = scan->end = scan->ahead = scan->own_shared = 0;
	scan->first_copies = checkpoint ? checkpoint->first_copies : 0;
	scan->copies = checkpoint ? checkpoint->copies : 0;
	scan->first_group = checkpoint ? checkpoint->next_group : 0;
	scan->has_reallocs_only = scan->had_wanted = false;
	scan->shared = shared ? shared : &scan->own_shared;
}

uint32_t heap_scan_place(const struct heap_table *table, const struct heap_scan_plan *plan, uint32_t group)
{
	const struct heap_checkpoint *checkpoint = checkpoint_find(table, plan);
	if (!checkpoint)
		return group;
	return group < checkpoint->next_group ? 0 : checkpoint->copies + group - checkpoint->next_group;
}

uint32_t heap_scan_places(const struct heap_scan *scan)
{
	return scan->copies + scan->table->groups.count - scan->first_group;
}

static bool is_copies(const struct heap_scan *scan, uint32_t place)
{
	return place < scan->copies;
}

/* The group's number among those of its kind. */
static uint32_t group_at(const struct heap_scan *scan, uint32_t place)
{
	return is_copies(scan, place) ? scan->first_copies + place : scan->first_group + place - scan->copies;
}

const struct heap_group *heap_scan_group(const struct heap_scan *scan, uint32_t place)
{
	const struct heap_table *table = scan->table;
	return &(is_copies(scan, place) ? &table->checkpoints.copies : &table->groups)->items[group_at(scan, place)];
}

const struct heap_sizes *heap_scan_sizes(const struct heap_scan *scan, uint32_t place)
{
	const struct heap_sizes *sizes = scan->table->checkpoints.sizes;
	return sizes && !is_copies(scan, place) ? &sizes[group_at(scan, place)] : NULL;
}

/* Where the filter remembers the rows of a group. */
static uint32_t selection_at(const struct heap_scan *scan, uint32_t place)
{
	return (is_copies(scan, place) ? scan->table->groups.count : 0) + group_at(scan, place);
}

void heap_scan_range(struct heap_scan *scan, uint32_t from, uint32_t to)
{
	assert(from <= to && to <= heap_scan_places(scan));
	scan->next = from;
	scan->end = to;
	/* Nothing is left to take behind it. */
	scan->own_shared = INT32_MAX;
	scan->shared = &scan->own_shared;
}

/* How many places a thread takes at a time. */
static uint32_t share_of(const struct heap_table *table)
{
	uint32_t share = table->groups.count / SHARES / GROUPS_PER_STRIP * GROUPS_PER_STRIP;
	return share < SHARE_LEAST ? SHARE_LEAST : share > SHARE_MOST ? SHARE_MOST : share;
}

/* Whoever takes the first of AHEAD shares has as many behind them read: so the disk has few large pieces to read. */
static void read_ahead(const struct heap_scan *scan, uint32_t from, uint32_t share)
{
	uint32_t ahead = share * AHEAD, first = from ? from + ahead : 0, last = from + 2 * ahead;
	if (from % ahead || scan->copies)
		return;
	groups_read_ahead(&scan->table->groups, scan->first_group + first, scan->first_group + last,
			  scan->plan.columns | (scan->plan.filter ? scan->plan.filter->columns : 0));
}

bool heap_scan_take(struct heap_scan *scan, uint32_t *shared, bool leaves_little_out, uint32_t *from, uint32_t *to)
{
	uint32_t share = share_of(scan->table), places = heap_scan_places(scan);
	*from = __atomic_fetch_add(shared, share, __ATOMIC_RELAXED);
	if (*from >= places)
		return false;
	*to = places - *from < share ? places : *from + share;
	scan->ahead = shared == &scan->own_shared ? places : *to;
	if (leaves_little_out)
		read_ahead(scan, *from, share);
	return true;
}

/* Which rows of a group pass: as it is known, or found out now. */
static void rows_select(struct heap_rows *rows, const struct heap_filter *filter, uint32_t at)
{
	assert(rows->count <= PACK_ROWS);
	struct heap_selection *selection = filter ? filter->selection : NULL;
	if (!selection) {
		memset(rows->passes, 0, sizeof(rows->passes));
		for (uint32_t i = 0; i < rows->count; i += 64)
			rows->passes[i / 64] =
				rows->count - i < 64 ? (UINT64_C(1) << (rows->count - i)) - 1 : UINT64_MAX;
		return;
	}
	if (!selection->is_known[at]) {
		heap_filter_select(selection->passes[at], filter, &rows->columns, rows->first, rows->count);
		selection->is_known[at] = true;
	}
	memcpy(rows->passes, selection->passes[at], sizeof(rows->passes));
}

/* Of the rows that pass, those that were begun at one of the sites. Whether there are any. */
static bool sites_select(struct heap_rows *rows, const bool *sites)
{
	const uint64_t *site = rows->columns.numbers[PACK_SITE];
	uint64_t any = 0;
	for (uint32_t first = 0; first < rows->count; first += 64) {
		uint32_t count = rows->count - first < 64 ? rows->count - first : 64;
		uint64_t begun = 0;
		for (uint32_t i = 0; i < count; i++)
			begun |= (uint64_t)sites[site[first + i]] << i;
		any |= rows->passes[first / 64] &= begun;
	}
	return any != 0;
}

static bool has_reallocs(const struct heap_rows *rows)
{
	const uint64_t *states = rows->columns.numbers[PACK_STATE];
	bool any = false;
	for (uint32_t i = 0; i < rows->count; i++)
		any |= (states[i] & PACK_END_MASK) == HEAP_END_REALLOC || states[i] >> PACK_FLAGS_SHIFT & HEAP_REALLOC;
	return any;
}

/* Return the columns that show whether a group has anything wanted; 0: each group has. Late ends need the times. */
static unsigned telling_columns(const struct heap_scan *scan, const struct heap_group *group)
{
	const unsigned states = group->end_count ? PACK_TIMES : PACK_STATES;
	return (scan->plan.sites ? PACK_SITES : 0) | (scan->has_reallocs_only ? states : 0);
}

static bool has_wanted(struct heap_scan *scan)
{
	return (!scan->plan.sites || sites_select(&scan->rows, scan->plan.sites)) &&
	       (!scan->has_reallocs_only || has_reallocs(&scan->rows));
}

/* Read the group, as far as that is asked for. Where few are wanted, many groups in a row have none of them: then
   nothing else is unpacked. */
static bool rows_read(struct heap_scan *scan, uint32_t place)
{
	const struct heap_table *table = scan->table;
	const struct heap_scan_plan *plan = &scan->plan;
	const struct pack_limits limits = heap_table_limits(table);
	const struct heap_groups *groups = is_copies(scan, place) ? &table->checkpoints.copies : &table->groups;
	uint32_t group = group_at(scan, place), selected = selection_at(scan, place);
	assert(group < groups->count);
	struct heap_rows *rows = &scan->rows;
	uint32_t ahead = is_copies(scan, place) && scan->ahead > scan->copies ? scan->copies : scan->ahead;
	scan->reader.end = ahead > place ? group_at(scan, ahead - 1) + 1 : group + 1;
	bool is_known = !plan->filter || !plan->filter->selection || plan->filter->selection->is_known[selected];
	unsigned columns = plan->columns | (is_known ? 0 : plan->filter->columns),
		 telling = telling_columns(scan, &groups->items[group]),
		 first = telling && is_known && !scan->had_wanted ? telling : columns;
	bool is_read = groups_read(&scan->reader, groups, group, rows->first, rows->count, &limits, first,
				   &rows->columns, rows->details);
	if (is_read)
		rows_select(rows, plan->filter, selected);
	if (is_read && telling && !(scan->had_wanted = has_wanted(scan))) {
		rows->count = 0;
		return true;
	}
	return is_read && (first == columns || groups_read(&scan->reader, groups, group, rows->first, rows->count,
							   &limits, columns, &rows->columns, rows->details));
}

static bool is_known_empty(const struct heap_selection *selection, uint32_t at)
{
	uint64_t any = 0;
	for (unsigned i = 0; i < PACK_ROWS / 64; i++)
		any |= selection->passes[at][i];
	return selection->is_known[at] && !any;
}

/* Set the number of the first row, and how many there are. */
static void rows_place(struct heap_scan *scan, uint32_t place)
{
	const struct heap_table *table = scan->table;
	struct heap_rows *rows = &scan->rows;
	uint32_t first = group_at(scan, place) * PACK_ROWS, left = table->count - first;
	rows->first = is_copies(scan, place) ? 0 : first;
	rows->count = is_copies(scan, place) ? heap_scan_group(scan, place)->open_count
		      : left < PACK_ROWS     ? left
					     : PACK_ROWS;
}

static bool leaves_nothing_out(const struct heap_scan *scan)
{
	const struct heap_scan_plan *plan = &scan->plan;
	return plan->from_ns == INT64_MIN && plan->to_ns == INT64_MAX && !plan->sites && !scan->has_reallocs_only &&
	       !(plan->filter && plan->filter->moment.is_asked);
}

const struct heap_rows *heap_scan_next(struct heap_scan *scan)
{
	const struct heap_filter *filter = scan->plan.filter;
	const struct heap_selection *selection = filter ? filter->selection : NULL;
	for (; !filter || !cancel_is_asked(filter->is_cancelled); scan->next++) {
		if (scan->next >= scan->end &&
		    !heap_scan_take(scan, scan->shared, leaves_nothing_out(scan), &scan->next, &scan->end))
			return NULL;
		uint32_t place = scan->next;
		if (!is_wanted(heap_scan_group(scan, place), &scan->plan) ||
		    (selection && is_known_empty(selection, selection_at(scan, place))))
			continue;
		rows_place(scan, place);
		if (!rows_read(scan, place)) {
			__atomic_store_n(scan->table->is_damaged, true, __ATOMIC_RELAXED);
		} else if (scan->rows.count) {
			scan->next++;
			return &scan->rows;
		}
	}
	return NULL;
}

void heap_scan_end(struct heap_scan *scan)
{
	groups_reader_fini(&scan->reader);
}

unsigned heap_scan_width(const struct heap_table *table)
{
	unsigned most = thread_processors(THREADS_MAX), useful = table->groups.count / GROUPS_PER_THREAD + 1;
	return useful < most ? useful : most;
}

struct scan_job {
	pthread_t thread;
	void (*work)(void *context);
	void *context;
	bool has_started, is_done;
};

static void *job_run(void *argument)
{
	struct scan_job *job = argument;
	job->is_done = memory_try(job->work, job->context);
	return NULL;
}

/* Where no thread can be had, the work is done here. All have ended when one is given up: the contexts are the
   caller's. */
void heap_scan_threads(void (*work)(void *context), void *contexts, size_t size, unsigned count)
{
	assert(count > 0 && count <= THREADS_MAX);
	struct scan_job jobs[THREADS_MAX];
	bool is_done = true;
	for (unsigned i = 0; i < count && i < THREADS_MAX; i++) {
		jobs[i] = (struct scan_job){.work = work, .context = (char *)contexts + i * size};
		jobs[i].has_started = i && thread_begin(&jobs[i].thread, job_run, &jobs[i]);
	}
	for (unsigned i = 0; i < count && i < THREADS_MAX; i++)
		if (!jobs[i].has_started)
			job_run(&jobs[i]);
	for (unsigned i = 0; i < count && i < THREADS_MAX; i++) {
		if (jobs[i].has_started)
			pthread_join(jobs[i].thread, NULL);
		is_done &= jobs[i].is_done;
	}
	if (!is_done)
		memory_exhausted(0);
}
