/* SPDX-License-Identifier: MIT */
/*
 * A plan run over columns. Batches of 256 rows pass through the filter and the outputs of a thread's own evaluation.
 * They end in one of three places:
 *
 *     rows as they are   every thread computes a range of groups, then all ranges are shown in their order, and so on
 *     an order           every thread collects records (plan/records.h), which are sorted and merged
 *     groups             every thread adds up its own (plan/plan_groups.h), which are joined, and sorted as records
 *
 * Threads share the groups of the table, or the blocks of events. Events that need their number among all (their order,
 * or COLUMN_ID) come from one stream, whose blocks are decoded by other threads.
 */
#include "plan/execute.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "plan/block_order.h"
#include "plan/bounds.h"
#include "plan/evaluate.h"
#include "plan/plan_groups.h"
#include "plan/records.h"
#include "plan/run.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { WORKERS_MAX = 16, RANGE_FIRST = 4, RANGE_MOST = 256, SHOWN = 1024, BLOCK_ROW_BITS = 32 };

/* Where rows end. */
enum ending { ENDING_ROWS, ENDING_ORDER, ENDING_GROUPS };

struct plan_worker {
	struct execution *execution;
	struct plan_evaluation evaluation;
	struct plan_groups *groups;
	struct records records;
	/* Rows as they are: those of a range. */
	uint64_t *rows;
	size_t row_count, row_capacity;
	uint32_t from, to;
	/* Groups of events in the order of first rows: their places are times, and from block_first on numbers. Times
	   are read when they are needed. */
	struct trace_cursor *cursor;
	bool has_times, leaves_times_out;
	uint64_t block_first;
	const int64_t *times; /* of the batch; left out or not */
	uint64_t read, left_out;
	int error;
	struct diag diag;
};

struct execution {
	struct plan_run *run;
	enum ending ending;
	struct plan_bounds bounds;
	struct heap_scan_plan scan;
	struct plan_worker workers[WORKERS_MAX];
	struct plan_groups groups[WORKERS_MAX], regrouped;
	unsigned width;
	uint32_t shared; /* the first group or event block that no thread has taken */
	struct run_file spill;
	struct group_spill group_spill;
	struct record_order order;
	uint32_t stride;
	/* Rows as they are. */
	uint32_t places;        /* of the pass over allocations */
	bool leaves_little_out; /* of them, as far as it is known before */
	uint32_t next_range, range;
	unsigned next_shown; /* worker whose rows come next */
	struct heap_stream *stream;
	uint64_t event_number;
	uint32_t *block_ranks; /* by event block: its place among those of all threads, thread by thread; or NULL */
	/* An order, and groups. */
	bool is_collected;
	struct records sorted_groups;
	struct record_merge *merge;
	uint64_t *shown;
};

static const struct plan *plan_of(const struct plan_worker *worker)
{
	return worker->execution->run->plan;
}

/* ---- one batch ---- */

static void record_fill(const struct plan_worker *worker, const struct column_rows *batch, uint32_t i, uint64_t *record)
{
	const struct plan *plan = plan_of(worker);
	uint64_t absent = 0;
	for (uint32_t k = 0; k < plan->output_count; k++) {
		const struct plan_vector *vector = &worker->evaluation.vectors[plan->outputs[k]];
		record[k] = plan_vector_bits(vector, i);
		absent |= (uint64_t)plan_vector_is_absent(vector, i) << k;
	}
	record[plan->output_count] = absent;
	record[plan->output_count + 1] = batch->first_id + i;
}

static uint64_t *row_add(struct plan_worker *worker)
{
	uint32_t stride = worker->execution->stride;
	if (worker->row_count >= worker->row_capacity) {
		worker->row_capacity = memory_capacity(worker->row_capacity, worker->row_count + 1);
		worker->rows = memory_resize(worker->rows, worker->row_capacity * stride, sizeof(*worker->rows));
	}
	return worker->rows + worker->row_count++ * stride;
}

/* Return whether a value of the first key comes so late that its row is behind the threshold. */
static bool comes_late(const struct record_order *order, uint64_t value, uint64_t most)
{
	bool is_time = order->keys[0].type == PLAN_TIME;
	bool is_less = is_time ? (int64_t)value < (int64_t)most : value < most;
	return order->keys[0].is_descending ? is_less : value != most && !is_less;
}

/* Remove rows that an order with a limit does not want any more, by its first key. */
static void late_remove(const struct plan_worker *worker, uint64_t passes[PLAN_WORDS])
{
	const struct record_order *order = &worker->execution->order;
	const uint64_t *threshold = records_threshold(&worker->records);
	uint32_t output = order->keys[0].output;
	if (!threshold || threshold[order->width] >> output & 1)
		return;
	const struct plan_vector *key = &worker->evaluation.vectors[plan_of(worker)->outputs[output]];
	for (uint32_t word = 0; word < PLAN_WORDS; word++) {
		uint8_t is_late[64] = {0};
		for (uint32_t i = 0; key->values && i < 64; i++)
			is_late[i] = comes_late(order, key->values[word * 64 + i], threshold[output]);
		/* Absent values come last. */
		passes[word] &= ~(plan_bits_of_bytes(is_late) | key->absent[word]);
	}
}

static const int64_t *times_find(void *context)
{
	struct plan_worker *worker = context;
	worker->error = trace_cursor_read_times(worker->cursor, &worker->diag);
	worker->leaves_times_out = false;
	return worker->error ? NULL : worker->times;
}

/* Return the places of the rows: their numbers, or those of events without numbers: their times. */
static struct row_places places_of(struct plan_worker *worker, const struct column_rows *batch)
{
	if (!worker->has_times)
		return (struct row_places){.first = batch->first_id};
	worker->times = batch->block->time_ns + batch->first;
	return (struct row_places){.times = worker->leaves_times_out ? NULL : worker->times,
				   .first = worker->block_first + batch->first,
				   .find = worker->leaves_times_out ? times_find : NULL,
				   .context = worker,
				   .least_ns = batch->block->first_ns};
}

static void batch_take(struct plan_worker *worker, const struct column_rows *batch, uint64_t passes[PLAN_WORDS])
{
	enum ending ending = worker->execution->ending;
	if (!plan_filter_batch(&worker->evaluation, batch, passes))
		return;
	plan_output_batch(&worker->evaluation, batch);
	if (ending == ENDING_GROUPS) {
		struct row_places places = places_of(worker, batch);
		plan_groups_add(worker->groups, &worker->evaluation, passes, &places);
		return;
	}
	assert(!plan_is_grouped(plan_of(worker)));
	if (ending == ENDING_ORDER)
		late_remove(worker, passes);
	for (uint32_t word = 0; word < PLAN_WORDS; word++)
		for (uint64_t bits = passes[word]; bits; bits &= bits - 1)
			record_fill(worker, batch, word * 64 + (uint32_t)__builtin_ctzll(bits),
				    ending == ENDING_ORDER ? records_add(&worker->records) : row_add(worker));
}

/* ---- allocations ---- */

/* Return whether all sizes of a group come too late for an order by size with a limit. */
static bool sizes_come_late(const struct plan_worker *worker, const struct heap_sizes *sizes)
{
	const struct execution *execution = worker->execution;
	const struct record_order *order = &execution->order;
	const uint64_t *threshold = execution->ending == ENDING_ORDER ? records_threshold(&worker->records) : NULL;
	if (!threshold || !sizes)
		return false;
	uint32_t output = order->keys[0].output;
	if (threshold[order->width] >> output & 1)
		return false;
	const struct plan_node *node = &plan_of(worker)->nodes[plan_of(worker)->outputs[output]];
	return node->operation == PLAN_COLUMN && node->number == COLUMN_SIZE &&
	       comes_late(order, order->keys[0].is_descending ? sizes->greatest : sizes->least, threshold[output]);
}

static bool is_left_out(const struct plan_worker *worker, const struct heap_scan *scan, uint32_t place)
{
	const struct heap_sizes *sizes = heap_scan_sizes(scan, place);
	return !plan_bounds_have(&worker->execution->bounds, heap_scan_group(scan, place), sizes) ||
	       sizes_come_late(worker, sizes);
}

static void groups_scan(struct plan_worker *worker, struct heap_scan *scan, uint32_t from, uint32_t to)
{
	struct execution *execution = worker->execution;
	heap_scan_ahead(scan, to);
	for (uint32_t group = from; group < to && !worker->error; group++) {
		const struct heap_rows *rows;
		if (is_left_out(worker, scan, group)) {
			worker->left_out++;
			continue;
		}
		heap_scan_range(scan, group, group + 1);
		rows = heap_scan_next(scan);
		if (!rows)
			continue;
		worker->read++;
		const struct column_rows batch = column_rows_of(execution->run->target.table, rows);
		uint64_t passes[PLAN_WORDS];
		memcpy(passes, rows->passes, sizeof(passes));
		batch_take(worker, &batch, passes);
		if (plan_run_is_cancelled(execution->run))
			worker->error = -ECANCELED;
	}
}

/* All groups, shared with other threads. */
static void allocations_work(void *context)
{
	struct plan_worker *worker = context;
	struct execution *execution = worker->execution;
	struct heap_scan scan;
	heap_scan_begin(&scan, execution->run->target.table, &execution->scan, NULL);
	uint32_t from, to;
	while (!worker->error && heap_scan_take(&scan, &execution->shared, execution->leaves_little_out, &from, &to))
		groups_scan(worker, &scan, from, to);
	heap_scan_end(&scan);
	if (execution->ending == ENDING_ORDER)
		records_sort(&worker->records);
}

/* One range, whose rows are shown as they are. */
static void range_work(void *context)
{
	struct plan_worker *worker = context;
	struct heap_scan scan;
	worker->row_count = 0;
	heap_scan_begin(&scan, worker->execution->run->target.table, &worker->execution->scan, NULL);
	groups_scan(worker, &scan, worker->from, worker->to);
	heap_scan_end(&scan);
}

/* ---- events ---- */

static void events_take(struct plan_worker *worker, const struct trace_block *block, const struct point_place *places,
			uint32_t first, uint32_t count, uint64_t first_id)
{
	const struct execution *execution = worker->execution;
	uint64_t passes[PLAN_WORDS];
	const struct column_rows batch = {.dictionary = trace_dictionary(execution->run->target.trace),
					  .first_id = first_id,
					  .count = count,
					  .block = block,
					  .places = places ? places + first : NULL,
					  .first = first};
	for (uint32_t word = 0; word < PLAN_WORDS; word++)
		passes[word] = count >= word * 64 + 64 ? UINT64_MAX
			       : count > word * 64     ? (UINT64_C(1) << count % 64) - 1
						       : 0;
	batch_take(worker, &batch, passes);
}

static bool block_is_wanted(const struct plan_worker *worker, uint32_t number)
{
	const struct plan_bounds *bounds = &worker->execution->bounds;
	const struct trace *trace = worker->execution->run->target.trace;
	struct trace_block head;
	trace_block_head(trace, number, &head);
	return head.count && head.thread < trace_dictionary(trace)->thread_count && head.first_ns <= bounds->to_ns &&
	       head.last_ns >= bounds->from_ns;
}

static void blocks_scan(struct plan_worker *worker, bool leaves_times_out)
{
	struct execution *execution = worker->execution;
	const struct trace *trace = execution->run->target.trace;
	struct trace_block block;
	while (!worker->error) {
		uint32_t number = __atomic_fetch_add(&execution->shared, 1, __ATOMIC_RELAXED);
		if (number >= trace_block_count(trace))
			return;
		if (!block_is_wanted(worker, number)) {
			worker->left_out++;
			continue;
		}
		worker->read++;
		worker->has_times = execution->block_ranks;
		worker->block_first =
			execution->block_ranks ? (uint64_t)execution->block_ranks[number] << BLOCK_ROW_BITS : 0;
		worker->leaves_times_out = leaves_times_out;
		worker->error = trace_cursor_read(worker->cursor, number, &block, &worker->diag);
		for (uint32_t at = 0; !worker->error && at < block.count; at += PLAN_BATCH) {
			uint32_t left = block.count - at;
			events_take(worker, &block, NULL, at, left < PLAN_BATCH ? left : PLAN_BATCH, 0);
			if (plan_run_is_cancelled(execution->run))
				worker->error = -ECANCELED;
		}
	}
}

/* All event blocks, shared with other threads. */
static void blocks_work(void *context)
{
	struct plan_worker *worker = context;
	unsigned needs = plan_needs(plan_of(worker));
	bool leaves_times_out = !(needs & PACK_TIMES);
	worker->cursor = trace_cursor_new(worker->execution->run->target.trace);
	if (!worker->cursor)
		memory_exhausted(0);
	trace_cursor_leave_out(worker->cursor, (needs & PACK_ADDRESSES ? 0 : TRACE_WITHOUT_ADDRESSES) |
						       (leaves_times_out ? TRACE_WITHOUT_TIMES : 0));
	blocks_scan(worker, leaves_times_out);
	trace_cursor_free(worker->cursor);
}

static bool has_id(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->node_count; i++)
		if (plan->nodes[i].operation == PLAN_COLUMN && plan->nodes[i].number == COLUMN_ID)
			return true;
	return false;
}

static bool needs_stream(const struct execution *execution)
{
	const struct plan *plan = execution->run->plan;
	return plan->source == COLUMNS_OF_EVENTS && (execution->ending != ENDING_GROUPS || has_id(plan) ||
						     (plan->keeps_first_order && !execution->block_ranks));
}

static void stream_begin(struct execution *execution)
{
	execution->stream = heap_stream_new(execution->run->target.trace, HEAP_ORDER_EVENTS, execution->bounds.from_ns,
					    execution->bounds.to_ns);
	execution->event_number = heap_stream_skipped(execution->stream);
}

/* Take the next run of events. Return 1; 0 at the end; or a negative errno. */
static int stream_take(struct plan_worker *worker, struct diag *diag)
{
	struct execution *execution = worker->execution;
	struct heap_run run;
	int status = heap_stream_run(execution->stream, &run, diag);
	if (status <= 0)
		return status;
	for (uint32_t at = 0; at < run.count; at += PLAN_BATCH) {
		uint32_t count = run.count - at < PLAN_BATCH ? run.count - at : PLAN_BATCH;
		events_take(worker, run.block, run.places, at, count, execution->event_number + at);
	}
	execution->event_number += run.count;
	return worker->error ? worker->error : plan_run_check(execution->run, diag) ? -ECANCELED : 1;
}

static void stream_work(void *context)
{
	struct plan_worker *worker = context;
	int status;
	stream_begin(worker->execution);
	do
		status = stream_take(worker, &worker->diag);
	while (status > 0);
	worker->error = status;
	if (worker->execution->ending == ENDING_ORDER)
		records_sort(&worker->records);
}

/* ---- rows as they are ---- */

/* The next range of groups, one for each thread; longer and longer ones, since the first rows may be enough. */
static void ranges_run(struct execution *execution)
{
	uint32_t count = execution->places;
	for (unsigned i = 0; i < execution->width; i++) {
		struct plan_worker *worker = &execution->workers[i];
		worker->from = execution->next_range;
		worker->to = count - worker->from < execution->range ? count : worker->from + execution->range;
		execution->next_range = worker->to;
	}
	heap_scan_threads(range_work, execution->workers, sizeof(*execution->workers), execution->width);
	execution->range = execution->range * 2 < RANGE_MOST ? execution->range * 2 : RANGE_MOST;
	execution->next_shown = 0;
}

/* What a worker's error says to people. */
static int worker_check(const struct plan_worker *worker, struct diag *diag)
{
	if (worker->error)
		return diag_fail(diag, -worker->error, "%s",
				 *worker->diag.text ? worker->diag.text : strerror(-worker->error));
	return 0;
}

static int workers_check(struct execution *execution, struct diag *diag)
{
	int error = plan_run_check(execution->run, diag);
	for (unsigned i = 0; i < execution->width && !error; i++)
		error = worker_check(&execution->workers[i], diag);
	return error;
}

static void counts_take(struct execution *execution)
{
	for (unsigned i = 0; i < execution->width; i++) {
		execution->run->read += execution->workers[i].read;
		execution->run->left_out += execution->workers[i].left_out;
		execution->workers[i].read = execution->workers[i].left_out = 0;
	}
}

static bool rows_show(struct plan_worker *worker, struct plan_rows *rows)
{
	rows->count = (uint32_t)worker->row_count;
	rows->cells = worker->rows;
	rows->stride = worker->execution->stride;
	return worker->row_count > 0;
}

static int allocations_next(struct plan_run *run, struct plan_rows *rows, struct diag *diag)
{
	struct execution *execution = run->state;
	for (;;) {
		while (execution->next_shown < execution->width)
			if (rows_show(&execution->workers[execution->next_shown++], rows))
				return 1;
		if (execution->next_range >= execution->places)
			return 0;
		ranges_run(execution);
		counts_take(execution);
		int error = workers_check(execution, diag);
		if (error)
			return error;
	}
}

static int events_next(struct plan_run *run, struct plan_rows *rows, struct diag *diag)
{
	struct execution *execution = run->state;
	struct plan_worker *worker = &execution->workers[0];
	int status;
	if (!execution->stream)
		stream_begin(execution);
	do {
		worker->row_count = 0;
		status = stream_take(worker, diag);
	} while (status > 0 && !rows_show(worker, rows));
	return status;
}

/* ---- an order, and groups ---- */

/* Half of the memory is for what is read from the file, half for groups whose keys are replaced. */
enum { JOIN_PART = 2 };

static int memory_lacks(const struct execution *execution, const char *what, struct diag *diag)
{
	return diag_fail(diag, ENOMEM, "%s more memory than the %s of -memory", what,
			 text_bytes(plan_run_memory(execution->run)).data);
}

static int groups_join(struct execution *execution, struct joined_groups *joined, struct plan_groups *groups,
		       unsigned count, struct diag *diag)
{
	return joined_groups_begin(joined, groups, count, plan_run_memory(execution->run) / JOIN_PART)
		       ? 0
		       : memory_lacks(execution, "group: joining groups needs", diag);
}

static void groups_end(struct execution *execution)
{
	for (unsigned i = 0; i < execution->width; i++)
		plan_groups_end(&execution->groups[i]);
}

/* Give the groups of all threads the keys that are made of theirs. */
static int groups_regroup(struct execution *execution, struct joined_groups *joined, struct diag *diag)
{
	const struct plan *plan = execution->run->plan;
	struct plan_groups *regrouped = &execution->regrouped;
	uint64_t keys[PLAN_OUTPUTS_MAX + 1];
	const uint64_t *group;
	plan_groups_begin(regrouped, plan, &execution->group_spill, plan_run_memory(execution->run) / JOIN_PART);
	while ((group = joined_groups_next(joined)) && !plan_run_is_cancelled(execution->run)) {
		memcpy(keys, group, (plan->key_count + 1) * sizeof(*keys));
		plan->regrouping->replace(plan->regrouping->context, keys, &keys[plan->key_count]);
		plan_groups_join(regrouped, keys, group);
	}
	joined_groups_end(joined);
	groups_end(execution);
	return groups_join(execution, joined, regrouped, 1, diag);
}

/* Add the computed values. Return false if the group is not wanted. */
static bool group_finish(const struct execution *execution, uint64_t *record)
{
	const struct plan *plan = execution->run->plan;
	const struct plan_group_function *finishing = plan->finishing;
	uint32_t width = plan_width(plan);
	uint64_t absent = 0;
	if (!finishing)
		return true;
	uint64_t *values = record + width - finishing->count;
	const struct plan_rows row = {.plan = plan, .count = 1, .cells = record, .stride = execution->stride};
	bool is_wanted = finishing->finish(finishing->context, &row, values, &absent);
	record[width] |= absent << (width - finishing->count);
	return is_wanted;
}

/* Collect the records of all groups. */
static int groups_record(struct execution *execution, struct joined_groups *joined, struct diag *diag)
{
	const struct plan *plan = execution->run->plan;
	uint64_t record[PLAN_OUTPUTS_MAX + 2 + FIRST_ROW_WORDS], number = 0;
	const uint64_t *group;
	while ((group = joined_groups_next(joined)) && !plan_run_is_cancelled(execution->run)) {
		uint32_t failed = plan_group_record(plan, group, number++, record);
		if (failed != PLAN_NOTHING)
			return diag_fail(diag, EOVERFLOW, "sum: aggregate number %u has no room in 64 bits",
					 failed + 1);
		if (group_finish(execution, record))
			memcpy(records_add(&execution->sorted_groups), record, execution->stride * sizeof(*record));
	}
	return 0;
}

static int groups_sort(struct execution *execution, struct diag *diag)
{
	struct joined_groups joined = {.first = NULL};
	/* Of no rows there are sums, too: of nothing. */
	if (!execution->run->plan->key_count)
		plan_groups_add_none(&execution->groups[0]);
	int error = groups_join(execution, &joined, execution->groups, execution->width, diag);
	if (!error && execution->run->plan->regrouping)
		error = groups_regroup(execution, &joined, diag);
	if (!error)
		error = groups_record(execution, &joined, diag);
	joined_groups_end(&joined);
	groups_end(execution);
	plan_groups_end(&execution->regrouped);
	records_sort(&execution->sorted_groups);
	return error ? error : plan_run_check(execution->run, diag);
}

static int collect(struct execution *execution, struct diag *diag)
{
	void (*work)(void *) = needs_stream(execution)                             ? stream_work
			       : execution->run->plan->source == COLUMNS_OF_EVENTS ? blocks_work
										   : allocations_work;
	struct records *records = &execution->sorted_groups;
	unsigned count = 1;
	heap_scan_threads(work, execution->workers, sizeof(*execution->workers), execution->width);
	counts_take(execution);
	int error = workers_check(execution, diag);
	if (!error && execution->ending == ENDING_GROUPS)
		error = groups_sort(execution, diag);
	if (error)
		return error;
	struct records all[WORKERS_MAX];
	if (execution->ending == ENDING_ORDER) {
		for (count = 0; count < execution->width; count++)
			all[count] = execution->workers[count].records;
		records = all;
	}
	execution->merge = record_merge_new(records, count, plan_run_memory(execution->run));
	if (!execution->merge)
		return memory_lacks(execution, "order: sorting needs", diag);
	execution->shown = memory_resize(NULL, (size_t)SHOWN * execution->stride, sizeof(*execution->shown));
	return 0;
}

static int merged_next(struct plan_run *run, struct plan_rows *rows, struct diag *diag)
{
	struct execution *execution = run->state;
	const uint64_t *record;
	uint32_t count = 0;
	if (!execution->is_collected) {
		int error = collect(execution, diag);
		if (error)
			return error;
		execution->is_collected = true;
	}
	while (count < SHOWN && (record = record_merge_next(execution->merge)))
		memcpy(execution->shown + (size_t)count++ * execution->stride, record,
		       execution->stride * sizeof(*record));
	if (execution->spill.error)
		return diag_fail(diag, execution->spill.error, "%s: the temporary file for sorting: %s",
				 execution->ending == ENDING_GROUPS ? "group" : "order",
				 strerror(execution->spill.error));
	rows->count = count;
	rows->cells = execution->shown;
	rows->stride = execution->stride;
	return count > 0;
}

/* ---- begin and end ---- */

static void execution_end(struct plan_run *run)
{
	struct execution *execution = run->state;
	for (unsigned i = 0; i < execution->width; i++) {
		struct plan_worker *worker = &execution->workers[i];
		plan_evaluation_end(&worker->evaluation);
		records_end(&worker->records);
		free(worker->rows);
	}
	groups_end(execution);
	plan_groups_end(&execution->regrouped);
	records_end(&execution->sorted_groups);
	record_merge_free(execution->merge);
	heap_stream_free(execution->stream);
	run_file_fini(&execution->spill);
	free(execution->shown);
	free(execution->block_ranks);
	free(execution);
}

static unsigned width_of(const struct execution *execution)
{
	if (execution->run->plan->source == COLUMNS_OF_ALLOCATIONS)
		return heap_scan_width(execution->run->target.table);
	uint32_t blocks = trace_block_count(execution->run->target.trace);
	unsigned processors = thread_processors(WORKERS_MAX);
	return needs_stream(execution) || blocks < 2 ? 1 : blocks < processors ? blocks : processors;
}

static void worker_begin(struct execution *execution, struct plan_worker *worker)
{
	const struct plan *plan = execution->run->plan;
	uint64_t most = plan->skip + plan->limit < plan->limit ? UINT64_MAX : plan->skip + plan->limit;
	uint64_t memory_bytes = plan_run_memory(execution->run) / execution->width;
	*worker =
		(struct plan_worker){.execution = execution, .groups = &execution->groups[worker - execution->workers]};
	plan_evaluation_begin(&worker->evaluation, plan);
	plan_groups_begin(worker->groups, plan, &execution->group_spill, memory_bytes);
	records_begin(&worker->records, &execution->order, &execution->spill, most, memory_bytes);
	if (worker == execution->workers)
		records_begin(&execution->sorted_groups, &execution->order, &execution->spill, most,
			      plan_run_memory(execution->run));
}

static bool is_top(const struct plan *plan)
{
	return !plan_is_grouped(plan) && plan->order_count && plan->limit < UINT64_MAX;
}

static bool leaves_little_out(const struct execution *execution, const struct heap_scan *scan)
{
	uint32_t wanted = 0;
	for (uint32_t i = 0; i < execution->places; i++)
		wanted += plan_bounds_have(&execution->bounds, heap_scan_group(scan, i), heap_scan_sizes(scan, i));
	return wanted > execution->places / 4 * 3;
}

/* Copies of checkpoints have no numbers (query/scan.h): details keep the pass from them. */
static void places_find(struct execution *execution)
{
	const struct plan *plan = execution->run->plan;
	bool needs_numbers = plan->allocations && plan->allocations->moment.is_asked && has_id(plan);
	unsigned columns = plan_needs(plan) | (needs_numbers ? PACK_DETAILS : 0);
	struct heap_scan scan;
	execution->scan = (struct heap_scan_plan){INT64_MIN, INT64_MAX, INT64_MIN, columns, plan->allocations, NULL};
	if (plan->source != COLUMNS_OF_ALLOCATIONS)
		return;
	heap_scan_begin(&scan, execution->run->target.table, &execution->scan, NULL);
	execution->places = heap_scan_places(&scan);
	execution->leaves_little_out = !is_top(plan) && leaves_little_out(execution, &scan);
	heap_scan_end(&scan);
}

void plan_run_columns(struct plan_run *run)
{
	const struct plan *plan = run->plan;
	struct execution *execution = memory_zeroed(1, sizeof(*execution));
	run->state = execution;
	run->end = execution_end;
	*execution = (struct execution){.run = run,
					.ending = plan_is_grouped(plan) ? ENDING_GROUPS
						  : plan->order_count   ? ENDING_ORDER
									: ENDING_ROWS,
					.spill = {.directory = run->target.directory, RUN_FILE_NONE},
					.range = RANGE_FIRST};
	plan_bounds_find(&execution->bounds, plan);
	record_order_make(&execution->order, plan);
	execution->stride = execution->order.stride;
	execution->order.is_cancelled = run->target.is_cancelled;
	group_spill_begin(&execution->group_spill, plan, &execution->spill, run->target.is_cancelled);
	places_find(execution);
	if (plan->source == COLUMNS_OF_EVENTS && plan->keeps_first_order && !has_id(plan))
		execution->block_ranks = block_ranks_new(execution->run->target.trace);
	execution->width = width_of(execution);
	execution->next_shown = execution->width;
	for (unsigned i = 0; i < execution->width; i++)
		worker_begin(execution, &execution->workers[i]);
	run->next = execution->ending != ENDING_ROWS    ? merged_next
		    : plan->source == COLUMNS_OF_EVENTS ? events_next
							: allocations_next;
}
