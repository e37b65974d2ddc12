/* SPDX-License-Identifier: MIT */
/*
 * An event block's rows begin and end anywhere in a group:
 *
 *     groups   |  256  |  256  |  256  |  256  |
 *     blocks   ---------->---------------->-----
 *                      head ^ whole groups ^ tail
 *
 * Whole groups are packed by whoever has time. Heads and tails, and single rows, are gathered here until they are a
 * group.
 */
#include "match/packing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/worker_pool.h"

enum { TASKS_MAX = 6 };

struct packing_task {
	struct worker_task task;
	struct block_match *match;
	uint32_t first, head; /* number of the first row; rows before the first whole group */
	struct groups_packed packed;
};

struct packing {
	struct heap_groups *groups; /* NULL: rows are not kept */
	struct heap_stream *stream;
	uint32_t next; /* number of the next row */
	struct heap_allocation rows[PACK_ROWS];
	struct heap_details details[PACK_ROWS];
	uint32_t gathered;
	struct packing_task tasks[TASKS_MAX];
	uint32_t first_task, task_count; /* those under way, a ring */
};

struct packing *packing_new(struct heap_groups *groups)
{
	struct packing *packing = memory_zeroed(1, sizeof(*packing));
	packing->groups = groups;
	return packing;
}

static void rows_gather(struct packing *packing, const struct heap_allocation *rows, const struct heap_details *details,
			uint32_t count)
{
	while (count) {
		uint32_t room = PACK_ROWS - packing->gathered, taken = count < room ? count : room;
		assert(packing->gathered < PACK_ROWS);
		memcpy(&packing->rows[packing->gathered], rows, taken * sizeof(*rows));
		memcpy(&packing->details[packing->gathered], details, taken * sizeof(*details));
		packing->gathered += taken;
		rows += taken;
		details += taken;
		count -= taken;
		if (packing->gathered < PACK_ROWS)
			continue;
		groups_add(packing->groups, packing->rows, packing->details, packing->groups->count * PACK_ROWS,
			   PACK_ROWS);
		packing->gathered = 0;
	}
}

/* ---- whole event blocks ---- */

static void task_run(void *context)
{
	struct packing_task *task = context;
	struct block_match *match = task->match;
	groups_packed_clear(&task->packed);
	for (uint32_t i = 0; i < match->count; i++) {
		struct heap_allocation *row = &match->rows[i];
		struct heap_details *details = &match->details[i];
		row->site = match->site_ids[row->site];
		row->end_site = row->end_site == HEAP_NONE ? HEAP_NONE : match->site_ids[row->end_site];
		details->birth_point += match->first_point;
		details->end_point =
			details->end_point == HEAP_NONE ? HEAP_NONE : match->first_point + details->end_point;
	}
	for (uint32_t i = task->head; i + PACK_ROWS <= match->count; i += PACK_ROWS)
		groups_pack(&task->packed, &match->rows[i], &match->details[i], task->first + i, PACK_ROWS);
}

/* Move the oldest task's packed rows to the groups. */
static void task_collect(struct packing *packing)
{
	assert(packing->task_count > 0 && packing->stream);
	struct packing_task *task = &packing->tasks[packing->first_task];
	struct block_match *match = task->match;
	worker_pool_wait(heap_stream_pool(packing->stream), &task->task);
	uint32_t tail = task->head + task->packed.count * PACK_ROWS;
	rows_gather(packing, match->rows, match->details, task->head);
	groups_append(packing->groups, &task->packed);
	rows_gather(packing, &match->rows[tail], &match->details[tail], match->count - tail);
	heap_stream_give_back(packing->stream, match);
	packing->first_task = (packing->first_task + 1) % TASKS_MAX;
	packing->task_count--;
}

void packing_add_match(struct packing *packing, struct block_match *match)
{
	assert(packing->stream && match->is_plain);
	if (!packing->groups) {
		heap_stream_give_back(packing->stream, match);
		return;
	}
	if (packing->task_count == TASKS_MAX)
		task_collect(packing);
	struct packing_task *task = &packing->tasks[(packing->first_task + packing->task_count++) % TASKS_MAX];
	uint32_t head = (PACK_ROWS - packing->next % PACK_ROWS) % PACK_ROWS;
	task->task = (struct worker_task){.run = task_run, .context = task};
	task->match = match;
	task->first = packing->next;
	task->head = head < match->count ? head : match->count;
	packing->next += match->count;
	worker_pool_give(heap_stream_pool(packing->stream), &task->task);
}

/* ---- all rows ---- */

static void tasks_collect(struct packing *packing)
{
	while (packing->task_count)
		task_collect(packing);
}

void packing_follow(struct packing *packing, struct heap_stream *stream)
{
	tasks_collect(packing);
	packing->stream = stream;
}

void packing_add(struct packing *packing, const struct heap_allocation *rows, const struct heap_details *details,
		 uint32_t count)
{
	if (!packing->groups)
		return;
	tasks_collect(packing);
	rows_gather(packing, rows, details, count);
	packing->next += count;
}

void packing_finish(struct packing *packing)
{
	tasks_collect(packing);
	assert(packing->groups->count * PACK_ROWS + packing->gathered == packing->next);
	if (packing->gathered)
		groups_add(packing->groups, packing->rows, packing->details, packing->groups->count * PACK_ROWS,
			   packing->gathered);
	packing->gathered = 0;
}

void packing_free(struct packing *packing)
{
	if (!packing)
		return;
	tasks_collect(packing);
	for (unsigned i = 0; i < TASKS_MAX; i++)
		groups_packed_fini(&packing->tasks[i].packed);
	free(packing);
}
