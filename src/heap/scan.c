/* SPDX-License-Identifier: MIT */
#include "heap/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"

enum { SHARE = 32 /* groups that a thread takes at a time */, GROUPS_PER_THREAD = 512, THREADS_MAX = 16 };

void heap_scan_begin(struct heap_scan *scan, const struct heap_table *table, const struct heap_scan_plan *plan, uint32_t *shared)
{
	scan->table = table;
	scan->plan = *plan;
	memset(&scan->rows.columns, 0, sizeof(scan->rows.columns));
	scan->reader = (struct groups_reader){.rows = {.data = NULL}};
	scan->next = scan->end = scan->own_shared = 0;
	scan->shared = shared ? shared : &scan->own_shared;
}

static bool is_wanted(const struct heap_group *group, const struct heap_scan_plan *plan)
{
	return group->first_ns <= plan->to_ns && (group->last_ns >= plan->from_ns || group->end_ns > plan->live_from_ns);
}

/* Which rows of a group pass: as it is known, or found out now. */
static void rows_select(struct heap_rows *rows, const struct heap_filter *filter, uint32_t group)
{
	struct heap_selection *selection = filter ? filter->selection : NULL;
	if (!selection) {
		memset(rows->passes, 0, sizeof(rows->passes));
		for (uint32_t i = 0; i < rows->count; i += 64)
			rows->passes[i / 64] = rows->count - i < 64 ? (UINT64_C(1) << (rows->count - i)) - 1 : UINT64_MAX;
		return;
	}
	if (!selection->is_known[group]) {
		heap_filter_select(selection->passes[group], filter, &rows->columns, rows->count);
		selection->is_known[group] = true;
	}
	memcpy(rows->passes, selection->passes[group], sizeof(rows->passes));
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
	const struct pack_limits limits = {table->site_count, table->dictionary->thread_count, table->dictionary->heap_count, table->duration_ns};
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
		bool is_known = !selection || selection->is_known[group];
		rows->first = group * PACK_ROWS;
		rows->count = table->count - rows->first < PACK_ROWS ? table->count - rows->first : PACK_ROWS;
		if (groups_read(&scan->reader, groups, group, rows->first, rows->count, &limits,
				scan->plan.columns | (is_known ? 0 : scan->plan.filter->columns), &rows->columns, rows->details)) {
			rows_select(rows, scan->plan.filter, group);
			scan->next++;
			return rows;
		}
		__atomic_store_n(table->is_damaged, true, __ATOMIC_RELAXED);
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

struct job {
	pthread_t thread;
	void (*work)(void *context);
	void *context;
	bool has_started, is_done;
};

static void *job_run(void *argument)
{
	struct job *job = argument;
	job->is_done = memory_try(job->work, job->context);
	return NULL;
}

/* Where no thread can be had, the work is done here. All have ended when one is given up: the contexts are the caller's. */
void heap_scan_threads(void (*work)(void *context), void *contexts, size_t size, unsigned count)
{
	struct job jobs[THREADS_MAX];
	bool is_done = true;
	for (unsigned i = 0; i < count && i < THREADS_MAX; i++) {
		jobs[i] = (struct job){.work = work, .context = (char *)contexts + i * size};
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
