/* SPDX-License-Identifier: MIT */
#include "query/scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"

enum { SHARE = 32 /* groups that a thread takes at a time */, GROUPS_PER_THREAD = 512, THREADS_MAX = 16 };

void heap_scan_begin(struct heap_scan *scan, const struct heap_table *table, const struct heap_scan_plan *plan,
		     uint32_t *shared)
{
	scan->table = table;
	scan->plan = *plan;
	memset(&scan->rows.columns, 0, sizeof(scan->rows.columns));
	scan->reader = (struct groups_reader){.rows = {.data = NULL}};
	scan->next = scan->end = scan->own_shared = 0;
	scan->had_sites = false;
	scan->shared = shared ? shared : &scan->own_shared;
}

void heap_scan_range(struct heap_scan *scan, uint32_t from, uint32_t to)
{
	assert(from <= to && to <= scan->table->groups.count);
	scan->next = from;
	scan->end = to;
	/* Nothing is left to take behind it. */
	scan->own_shared = INT32_MAX;
	scan->shared = &scan->own_shared;
}

static bool is_wanted(const struct heap_group *group, const struct heap_scan_plan *plan)
{
	return group->first_ns <= plan->to_ns &&
	       (group->last_ns >= plan->from_ns || group->end_ns > plan->live_from_ns);
}

/* Which rows of a group pass: as it is known, or found out now. */
static void rows_select(struct heap_rows *rows, const struct heap_filter *filter, uint32_t group)
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
	if (!selection->is_known[group]) {
		heap_filter_select(selection->passes[group], filter, &rows->columns, rows->first, rows->count);
		selection->is_known[group] = true;
	}
	memcpy(rows->passes, selection->passes[group], sizeof(rows->passes));
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

/* Read the group, as far as that is asked for. Where few sites are wanted, many groups in a row have none of them: then
   nothing else is unpacked. */
static bool rows_read(struct heap_scan *scan, uint32_t group)
{
	assert(group < scan->table->groups.count);
	const struct heap_table *table = scan->table;
	const struct heap_scan_plan *plan = &scan->plan;
	const struct pack_limits limits = {table->site_count, table->dictionary->thread_count,
					   table->dictionary->heap_count, table->duration_ns};
	struct heap_rows *rows = &scan->rows;
	bool is_known = !plan->filter || !plan->filter->selection || plan->filter->selection->is_known[group];
	unsigned columns = plan->columns | (is_known ? 0 : plan->filter->columns),
		 first = plan->sites && is_known && !scan->had_sites ? PACK_SITES : columns;
	bool is_read = groups_read(&scan->reader, &table->groups, group, rows->first, rows->count, &limits, first,
				   &rows->columns, rows->details);
	if (is_read)
		rows_select(rows, plan->filter, group);
	if (is_read && plan->sites && !(scan->had_sites = sites_select(rows, plan->sites))) {
		rows->count = 0;
		return true;
	}
	return is_read &&
	       (first == columns || groups_read(&scan->reader, &table->groups, group, rows->first, rows->count, &limits,
						columns, &rows->columns, rows->details));
}

static bool is_known_empty(const struct heap_selection *selection, uint32_t group)
{
	uint64_t any = 0;
	for (unsigned i = 0; i < PACK_ROWS / 64; i++)
		any |= selection->passes[group][i];
	return selection->is_known[group] && !any;
}

const struct heap_rows *heap_scan_next(struct heap_scan *scan)
{
	const struct heap_table *table = scan->table;
	const struct heap_groups *groups = &table->groups;
	const struct heap_selection *selection = scan->plan.filter ? scan->plan.filter->selection : NULL;
	for (;; scan->next++) {
		if (scan->next >= scan->end) {
			scan->next = __atomic_fetch_add(scan->shared, SHARE, __ATOMIC_RELAXED);
			scan->end = scan->next + SHARE < groups->count ? scan->next + SHARE : groups->count;
			if (scan->next >= groups->count)
				return NULL;
		}
		uint32_t group = scan->next;
		if (!is_wanted(&groups->items[group], &scan->plan) || (selection && is_known_empty(selection, group)))
			continue;
		struct heap_rows *rows = &scan->rows;
		rows->first = group * PACK_ROWS;
		rows->count = table->count - rows->first < PACK_ROWS ? table->count - rows->first : PACK_ROWS;
		if (!rows_read(scan, group)) {
			__atomic_store_n(table->is_damaged, true, __ATOMIC_RELAXED);
		} else if (rows->count) {
			scan->next++;
			return rows;
		}
	}
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
