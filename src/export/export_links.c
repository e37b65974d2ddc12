/* SPDX-License-Identifier: MIT */
#include "export/export_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/events.h"
#include "base/memory.h"
#include "query/scan.h"
#include "table/weight.h"
#include "trace/reader.h"

/* An event with a context. A thread has one at a time. */
struct context_event {
	uint32_t thread;
	int64_t time_ns;
	struct thread_context context;
};

struct context_events {
	struct context_event *items;
	size_t count, capacity;
};

static int event_compare(const void *a, const void *b)
{
	const struct context_event *one = a, *other = b;
	if (one->thread != other->thread)
		return one->thread < other->thread ? -1 : 1;
	return one->time_ns < other->time_ns ? -1 : one->time_ns > other->time_ns;
}

/* ---- the contexts of events ---- */

static void block_take(struct context_events *events, const struct trace_block *block)
{
	for (uint32_t i = block->context_count ? block->contexts[0].event : block->count; i < block->count; i++) {
		const struct thread_context *context = trace_block_context(block, i);
		if (!context || block->kind[i] > EVENT_REALLOC)
			continue;
		memory_grow(events->items, events->count, events->capacity);
		events->items[events->count++] = (struct context_event){block->thread, block->time_ns[i], *context};
	}
}

/* Read those from a time on. Only blocks with contexts have their times read. Return 0 or a negative errno. */
static int events_read(struct context_events *events, const struct trace *trace, int64_t from_ns)
{
	struct trace_cursor *cursor = trace_cursor_new(trace);
	struct trace_block block;
	struct diag diag;
	int error = cursor ? 0 : -ENOMEM;
	if (cursor)
		trace_cursor_leave_out(cursor, TRACE_WITHOUT_ADDRESSES | TRACE_WITHOUT_TIMES);
	for (uint32_t i = 0; i < trace_block_count(trace) && !error; i++) {
		trace_block_head(trace, i, &block);
		if (block.last_ns < from_ns)
			continue;
		error = trace_cursor_read(cursor, i, &block, &diag);
		if (error || !block.context_count)
			continue;
		error = trace_cursor_read_times(cursor, &diag);
		if (!error)
			block_take(events, &block);
	}
	trace_cursor_free(cursor);
	if (events->count)
		qsort(events->items, events->count, sizeof(*events->items), event_compare);
	return error;
}

static const struct thread_context *event_find(const struct context_events *events,
					       const struct heap_allocation *allocation)
{
	const struct context_event wanted = {.thread = allocation->thread, .time_ns = allocation->birth_ns};
	size_t place;
	BISECT(place, events->count, i, event_compare(&events->items[i], &wanted) < 0);
	return place < events->count && !event_compare(&events->items[place], &wanted) ? &events->items[place].context
										       : NULL;
}

/* ---- links ---- */

static struct export_link *link_of(struct export_links *links, struct intern *keys, uint32_t node,
				   const struct thread_context *context)
{
	struct export_link link;
	memset(&link, 0, sizeof(link));
	link.node = node;
	link.context = *context;
	const uint32_t known = keys->count, id = intern_bytes(keys, &link, offsetof(struct export_link, values));
	if (id == known) {
		memory_grow(links->items, links->count, links->capacity);
		links->items[links->count++] = link;
	}
	return &links->items[id];
}

static void blocks_take(struct export_links *links, struct export_tree *tree, const struct context_events *events)
{
	const struct action_source *source = tree->source;
	const struct heap_window *window = source->window;
	const struct heap_range range = export_range(tree);
	struct heap_scan_plan plan = heap_window_plan(window, source->filter);
	struct intern keys = {.count = 0};
	struct heap_scan scan;
	const struct heap_rows *rows;
	plan.live_from_ns = INT64_MAX;
	plan.columns = PACK_ALL;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		heap_rows_each (rows, i) {
			const struct heap_allocation allocation = heap_rows_get(rows, i);
			const struct thread_context *context =
				heap_is_in_range(&allocation, range) ? event_find(events, &allocation) : NULL;
			struct heap_cell cell;
			if (!context)
				continue;
			heap_window_cell(window, source->table, &allocation, &cell);
			const struct heap_weight weight = heap_weigh(source->table, &allocation);
			struct export_link *link = link_of(links, &keys, export_tree_leaf(tree, &cell), context);
			const bool is_outstanding = heap_window_is_outstanding(window, &allocation);
			link->values[EXPORT_TOTAL_COUNT] += weight.count;
			link->values[EXPORT_TOTAL_BYTES] += weight.bytes;
			link->values[EXPORT_OUTSTANDING_COUNT] += is_outstanding ? weight.count : 0;
			link->values[EXPORT_OUTSTANDING_BYTES] += is_outstanding ? weight.bytes : 0;
		}
	heap_scan_end(&scan);
	intern_fini(&keys);
}

static int link_compare(const void *a, const void *b)
{
	const struct export_link *one = a, *other = b;
	const uint64_t bytes = one->values[EXPORT_TOTAL_BYTES], others = other->values[EXPORT_TOTAL_BYTES];
	if (one->node != other->node)
		return one->node < other->node ? -1 : 1;
	if (bytes != others)
		return bytes > others ? -1 : 1;
	return memcmp(&one->context, &other->context, sizeof(one->context));
}

/* Keep the first ones of each node. */
static void links_settle(struct export_links *links, uint32_t node_count)
{
	size_t kept = 0;
	uint32_t node = 0;
	if (links->count)
		qsort(links->items, links->count, sizeof(*links->items), link_compare);
	links->first = memory_zeroed((size_t)node_count + 1, sizeof(*links->first));
	for (size_t i = 0; i < links->count; i++) {
		const struct export_link link = links->items[i];
		for (; node <= link.node; node++)
			links->first[node] = (uint32_t)kept;
		if (kept - links->first[link.node] < EXPORT_LINKS_MAX)
			links->items[kept++] = link;
	}
	for (; node <= node_count; node++)
		links->first[node] = (uint32_t)kept;
	links->count = kept;
}

void export_links_make(struct export_links *links, struct export_tree *tree, struct sink *out)
{
	const struct action_source *source = tree->source;
	struct context_events events = {.count = 0};
	*links = (struct export_links){.count = 0};
	const int error =
		source->table->sample_bytes ? events_read(&events, source->trace, export_range(tree).from_ns) : 0;
	if (error && !out->error)
		out->error = error;
	if (events.count) {
		blocks_take(links, tree, &events);
		links_settle(links, tree->node_count);
	}
	free(events.items);
}

unsigned export_links_parts(const struct export_links *links, uint32_t node)
{
	return 1 + (links->first ? links->first[node + 1] - links->first[node] : 0);
}

const struct thread_context *export_links_part(const struct export_links *links, const struct export_tree *tree,
					       uint32_t node, unsigned part, uint64_t values[EXPORT_FIGURE_COUNT])
{
	const struct export_link *first = links->first ? &links->items[links->first[node]] : NULL;
	const unsigned count = export_links_parts(links, node) - 1;
	memcpy(values, tree->nodes[node].values, EXPORT_FIGURE_COUNT * sizeof(*values));
	/* What links have is taken from what there is, one after the other. */
	for (unsigned i = 0; i < count && i <= part; i++)
		for (unsigned figure = 0; figure < EXPORT_FIGURE_COUNT; figure++) {
			const uint64_t left = values[figure],
				       own = first[i].values[figure] < left ? first[i].values[figure] : left;
			values[figure] = i == part ? own : left - own;
		}
	return part < count ? &first[part].context : NULL;
}

void export_links_fini(struct export_links *links)
{
	free(links->items);
	free(links->first);
}
