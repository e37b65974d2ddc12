/* SPDX-License-Identifier: MIT */
#include "table/checkpoints.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/memory.h"
#include "base/worker_pool.h"
#include "table/table.h"
#include "table/table_limits.h"

enum {
	STEP_GROUPS = 64,   /* a checkpoint lies behind a multiple of so many */
	COST_OF_COPIES = 3, /* beginnings and ends that are worth a copy */
	STEPS_AHEAD = 8     /* steps that are read while earlier ones are looked at */
};

/* A step of the pass, which any thread may read. */
struct checkpoint_step {
	struct worker_task task;
	const struct heap_table *table;
	struct heap_sizes *sizes; /* by group */
	uint32_t first, end;      /* its groups */
	int64_t time_ns;
	struct heap_allocation *live; /* what lives on behind it, in order */
	size_t live_count, live_capacity;
	bool is_good;
	struct groups_reader reader;
	struct pack_columns columns;
};

/* One pass over the table, step by step in order. */
struct checkpoint_making {
	struct heap_checkpoints *to;
	const struct heap_table *table;
	struct heap_allocation *live; /* that may live on at the next step; some have ended since they were added */
	size_t live_count, live_capacity;
	size_t added;       /* since those that had ended were removed */
	uint64_t begun;     /* since the last checkpoint */
	uint64_t live_then; /* at the last checkpoint */
};

static bool outlives(const struct heap_allocation *row, int64_t time_ns)
{
	return row->end == HEAP_END_OPEN || row->end_ns > time_ns;
}

/* The same of a row in its columns, of which most are not looked at. */
static bool column_outlives(const struct pack_columns *columns, uint32_t i, int64_t time_ns)
{
	return (columns->numbers[PACK_STATE][i] & PACK_END_MASK) == HEAP_END_OPEN ||
	       (int64_t)columns->numbers[PACK_END][i] > time_ns;
}

static void live_add(struct checkpoint_making *making, const struct heap_allocation *row)
{
	memory_grow(making->live, making->live_count, making->live_capacity);
	making->live[making->live_count++] = *row;
	making->added++;
}

static void live_remove_ended(struct checkpoint_making *making, int64_t time_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < making->live_count; i++)
		if (outlives(&making->live[i], time_ns))
			making->live[kept++] = making->live[i];
	making->live_count = kept;
	making->added = 0;
}

/* The copies of a checkpoint, with the summaries that groups of the table have. */
static void copies_pack(struct heap_groups *copies, const struct heap_allocation *rows, uint32_t count)
{
	groups_add(copies, rows, NULL, 0, count);
	struct heap_group *group = &copies->items[copies->count - 1];
	group->open_count = (uint16_t)count;
	group->first_ns = INT64_MIN;
	group->last_ns = group->end_ns = INT64_MAX;
}

static void checkpoint_make(struct checkpoint_making *making, uint32_t next_group, int64_t time_ns)
{
	struct heap_checkpoints *to = making->to;
	memory_grow(to->items, to->count, to->capacity);
	struct heap_checkpoint *checkpoint = &to->items[to->count++];
	*checkpoint = (struct heap_checkpoint){
		.time_ns = time_ns, .next_group = next_group, .first_copies = to->copies.count};
	for (size_t i = 0; i < making->live_count; i += PACK_ROWS) {
		size_t left = making->live_count - i;
		copies_pack(&to->copies, making->live + i, (uint32_t)(left < PACK_ROWS ? left : PACK_ROWS));
	}
	checkpoint->copies = to->copies.count - checkpoint->first_copies;
	making->begun = 0;
	making->live_then = making->live_count;
}

/* Behind a step: make a checkpoint if it is worth its copies. To know that, those that ended are removed, which is done
   only when they may be a third. */
static void step_end(struct checkpoint_making *making, uint32_t next_group, int64_t time_ns)
{
	if (making->added < making->live_count / 3)
		return;
	live_remove_ended(making, time_ns);
	uint64_t ended = making->live_then + making->begun - making->live_count;
	if (making->begun + ended >= COST_OF_COPIES * (uint64_t)making->live_count)
		checkpoint_make(making, next_group, time_ns);
}

static struct heap_sizes sizes_find(const uint64_t *numbers, uint32_t count)
{
	struct heap_sizes sizes = {UINT64_MAX, 0};
	for (uint32_t i = 0; i < count; i++) {
		sizes.least = numbers[i] < sizes.least ? numbers[i] : sizes.least;
		sizes.greatest = numbers[i] > sizes.greatest ? numbers[i] : sizes.greatest;
	}
	return sizes;
}

/* The time of a checkpoint behind these groups: most of what begins in them has begun then. */
static int64_t step_time(const struct heap_groups *groups, uint32_t first, uint32_t end)
{
	while (end-- > first)
		if (groups->items[end].last_ns != INT64_MAX)
			return groups->items[end].last_ns;
	return INT64_MIN;
}

static uint32_t rows_until(const struct heap_table *table, uint32_t group)
{
	uint64_t rows = (uint64_t)group * PACK_ROWS;
	return rows < table->count ? (uint32_t)rows : table->count;
}

static void step_read(void *context)
{
	struct checkpoint_step *step = context;
	const struct heap_table *table = step->table;
	const struct pack_limits limits = heap_table_limits(table);
	const struct pack_columns *columns = &step->columns;
	step->time_ns = step_time(&table->groups, step->first, step->end);
	step->is_good = false;
	step->live_count = 0;
	for (uint32_t group = step->first; group < step->end; group++) {
		uint32_t row = rows_until(table, group), count = rows_until(table, group + 1) - row;
		if (!groups_read(&step->reader, &table->groups, group, row, count, &limits, PACK_ALL, &step->columns,
				 NULL))
			return;
		step->sizes[group] = sizes_find(columns->numbers[PACK_SIZE], count);
		for (uint32_t i = 0; i < count && table->groups.items[group].end_ns > step->time_ns; i++) {
			if (!column_outlives(columns, i, step->time_ns))
				continue;
			memory_grow(step->live, step->live_count, step->live_capacity);
			step->live[step->live_count++] = pack_row(columns, i);
		}
	}
	step->is_good = true;
}

/* Have some thread read the step, which is the `number`th; there may be fewer. */
static void step_begin(struct checkpoint_step *step, struct worker_pool *pool, uint32_t number)
{
	uint64_t first = (uint64_t)number * STEP_GROUPS, count = step->table->groups.count;
	step->first = (uint32_t)(first < count ? first : count);
	step->end = (uint32_t)(first + STEP_GROUPS < count ? first + STEP_GROUPS : count);
	step->task = (struct worker_task){.run = step_read, .context = step};
	if (step->first < step->end)
		worker_pool_give(pool, &step->task);
}

static void step_take(struct checkpoint_making *making, const struct checkpoint_step *step)
{
	for (size_t i = 0; i < step->live_count; i++)
		live_add(making, &step->live[i]);
	making->begun += rows_until(making->table, step->end) - rows_until(making->table, step->first);
	if (step->time_ns > INT64_MIN && step->end < making->table->groups.count)
		step_end(making, step->end, step->time_ns);
}

/* Take one step after the other, while others are read. Return false if the table is damaged. */
static bool steps_take(struct checkpoint_making *making)
{
	const uint32_t count = (making->table->groups.count + STEP_GROUPS - 1) / STEP_GROUPS;
	struct checkpoint_step *steps = memory_zeroed(STEPS_AHEAD, sizeof(*steps));
	struct worker_pool *pool = worker_pool_new(count);
	bool is_good = true;
	for (uint32_t i = 0; i < STEPS_AHEAD; i++) {
		steps[i].table = making->table;
		steps[i].sizes = making->to->sizes;
		step_begin(&steps[i], pool, i);
	}
	for (uint32_t i = 0; i < count && is_good && !making->to->copies.error; i++) {
		struct checkpoint_step *step = &steps[i % STEPS_AHEAD];
		worker_pool_wait(pool, &step->task);
		is_good = step->is_good;
		if (is_good)
			step_take(making, step);
		step_begin(step, pool, i + STEPS_AHEAD);
	}
	worker_pool_free(pool);
	for (uint32_t i = 0; i < STEPS_AHEAD; i++) {
		groups_reader_fini(&steps[i].reader);
		free(steps[i].live);
	}
	free(steps);
	return is_good;
}

bool heap_checkpoints_make(struct heap_checkpoints *checkpoints, const struct heap_table *table, uint64_t *end)
{
	struct checkpoint_making making = {.to = checkpoints, .table = table};
	*checkpoints = (struct heap_checkpoints){.items = NULL};
	groups_begin(&checkpoints->copies, table->groups.fd, *end);
	checkpoints->copies.is_borrowed = true;
	checkpoints->sizes = memory_zeroed((size_t)table->groups.count + 1, sizeof(*checkpoints->sizes));
	bool is_good = steps_take(&making);
	groups_finish(&checkpoints->copies);
	if (checkpoints->copies.error)
		heap_checkpoints_fini(checkpoints);
	else
		*end = checkpoints->copies.end;
	free(making.live);
	return is_good;
}

const struct heap_checkpoint *heap_checkpoints_find(const struct heap_checkpoints *checkpoints, int64_t time_ns)
{
	uint32_t place;
	BISECT(place, checkpoints->count, i, checkpoints->items[i].time_ns < time_ns);
	return place ? &checkpoints->items[place - 1] : NULL;
}

bool heap_checkpoints_are_good(const struct heap_checkpoints *checkpoints, uint32_t group_count)
{
	for (uint32_t i = 0; i < checkpoints->count; i++) {
		const struct heap_checkpoint *at = &checkpoints->items[i];
		if (at->next_group > group_count || at->first_copies > checkpoints->copies.count ||
		    at->copies > checkpoints->copies.count - at->first_copies)
			return false;
	}
	for (uint32_t i = 0; i < checkpoints->copies.count; i++) {
		const struct heap_group *group = &checkpoints->copies.items[i];
		if (!group->open_count || group->open_count > PACK_ROWS || group->row_count != group->open_count ||
		    group->end_count)
			return false;
	}
	return true;
}

void heap_checkpoints_fini(struct heap_checkpoints *checkpoints)
{
	free(checkpoints->items);
	checkpoints->copies.is_borrowed = true;
	groups_fini(&checkpoints->copies);
	free(checkpoints->sizes);
	*checkpoints = (struct heap_checkpoints){.copies = {.fd = -1}};
}
