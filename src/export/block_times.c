/* SPDX-License-Identifier: MIT */
#include "export/block_times.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "query/scan.h"

enum { BUCKETS = 65, TIME_BITS = 64 };

/* The end of a block that is live. */
struct block_end {
	uint64_t time;
	uint64_t size_bytes, address;
	uint32_t node, end_node, thread, number;
};

struct end_bucket {
	struct block_end *items;
	size_t count, capacity;
	uint64_t least; /* time in it */
};

/* Bucket i has the times whose highest bit unlike `last` is bit i - 1; bucket 0 has those that are `last`. */
struct block_ends {
	struct end_bucket buckets[BUCKETS];
	uint64_t last; /* time of the latest event */
	size_t count;
};

struct block_walk {
	struct export_tree *tree;
	const struct export_block_visit *visit;
	struct block_ends ends;
};

static unsigned bucket_of(const struct block_ends *ends, uint64_t time)
{
	return time == ends->last ? 0 : TIME_BITS - (unsigned)__builtin_clzll(time ^ ends->last);
}

static void ends_put(struct block_ends *ends, const struct block_end *end)
{
	struct end_bucket *bucket = &ends->buckets[bucket_of(ends, end->time)];
	memory_grow(bucket->items, bucket->count, bucket->capacity);
	bucket->least = bucket->count && bucket->least < end->time ? bucket->least : end->time;
	bucket->items[bucket->count++] = *end;
}

/* Advance to the next end up to `time`: those of its instant are in bucket 0 then. Return false if there is none. */
static bool ends_advance(struct block_ends *ends, uint64_t time)
{
	unsigned first = 0;
	while (first < BUCKETS && !ends->buckets[first].count)
		first++;
	if (first == BUCKETS || (first && ends->buckets[first].least > time))
		return false;
	if (!first)
		return ends->last <= time;
	struct end_bucket taken = ends->buckets[first];
	ends->last = taken.least;
	ends->buckets[first] = (struct end_bucket){0};
	for (size_t i = 0; i < taken.count; i++)
		ends_put(ends, &taken.items[i]);
	/* All of them went to lower buckets, so the memory serves this one again. */
	assert(!ends->buckets[first].items);
	taken.count = 0;
	ends->buckets[first] = taken;
	return true;
}

static void ends_visit(struct block_walk *walk, uint64_t time)
{
	struct block_ends *ends = &walk->ends;
	struct end_bucket *now = &ends->buckets[0];
	while (ends_advance(ends, time)) {
		for (size_t i = 0; i < now->count; i++) {
			const struct block_end *end = &now->items[i];
			const struct export_block block = {.end_ns = (int64_t)end->time,
							   .size_bytes = end->size_bytes,
							   .address = end->address,
							   .node = end->node,
							   .end_node = end->end_node,
							   .thread = end->thread,
							   .is_given_back = true};
			walk->visit->end(walk->visit->context, &block, end->number);
		}
		now->count = 0;
	}
}

static uint64_t time_of(int64_t time_ns, uint64_t least)
{
	const uint64_t time = time_ns > 0 ? (uint64_t)time_ns : 0;
	return time > least ? time : least;
}

/* Blocks come in the order of their beginnings; a time that goes back would be a fault of the trace. */
static void block_visit(struct block_walk *walk, const struct heap_allocation *allocation,
			const struct heap_details *details)
{
	const struct action_source *source = walk->tree->source;
	const struct heap_window *window = source->window;
	struct heap_cell cell;
	if (!heap_is_in_range(allocation, window->range))
		return;
	heap_window_cell(window, source->table, allocation, &cell);
	const uint32_t node = export_tree_leaf(walk->tree, &cell);
	const bool has_end = details && allocation->end_site < source->table->site_count;
	const struct heap_cell end_cell = {allocation->end_site, cell.by};
	const uint64_t birth = time_of(allocation->birth_ns, walk->ends.last);
	ends_visit(walk, birth);
	const struct export_block block = {.birth_ns = allocation->birth_ns,
					   .end_ns = allocation->end_ns,
					   .size_bytes = allocation->size_bytes,
					   .address = details ? details->address : 0,
					   .node = node,
					   .end_node = has_end ? export_tree_leaf(walk->tree, &end_cell) : node,
					   .thread = allocation->thread,
					   .is_given_back = !heap_window_is_outstanding(window, allocation)};
	const uint32_t number = walk->visit->begin(walk->visit->context, &block);
	if (block.is_given_back)
		ends_put(&walk->ends, &(struct block_end){.time = time_of(allocation->end_ns, birth),
							  .size_bytes = block.size_bytes,
							  .address = block.address,
							  .node = node,
							  .end_node = block.end_node,
							  .thread = details ? details->end_thread : HEAP_NONE,
							  .number = number});
}

static void scan_begin(struct heap_scan *scan, const struct action_source *source, bool wants_details)
{
	struct heap_scan_plan plan = heap_window_plan(source->window, source->filter);
	plan.live_from_ns = INT64_MAX;
	plan.columns = PACK_ALL | (wants_details ? PACK_DETAILS : 0);
	heap_scan_begin(scan, source->table, &plan, NULL);
}

void export_blocks_check(const struct report *report)
{
	struct heap_scan scan;
	scan_begin(&scan, report_source(report), true);
	while (heap_scan_next(&scan))
		;
	heap_scan_end(&scan);
}

void export_blocks_visit(struct export_tree *tree, const struct export_block_visit *visit, struct sink *out)
{
	struct block_walk walk = {.tree = tree, .visit = visit};
	const struct report *report = tree->report;
	struct heap_scan scan;
	const struct heap_rows *rows;
	scan_begin(&scan, tree->source, visit->wants_details);
	while (!out->error && (rows = heap_scan_next(&scan))) {
		if (report->progress)
			report->progress(scan.next, heap_scan_places(&scan));
		heap_rows_each (rows, i) {
			const struct heap_allocation allocation = heap_rows_get(rows, i);
			block_visit(&walk, &allocation, visit->wants_details ? &rows->details[i] : NULL);
		}
	}
	heap_scan_end(&scan);
	ends_visit(&walk, UINT64_MAX);
	for (unsigned i = 0; i < BUCKETS; i++)
		free(walk.ends.buckets[i].items);
	if (!out->error && __atomic_load_n(tree->source->table->is_damaged, __ATOMIC_RELAXED))
		out->error = -EIO;
}
