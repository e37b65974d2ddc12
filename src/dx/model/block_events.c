/* SPDX-License-Identifier: MIT */
/*
 * Blocks in an order of their own, such as by size, have their events all over the trace. One at a time, each would
 * take a decoded event block, and most event blocks would be decoded many times. So a batch is read: the events of all
 * elements that the query's iterator comes to next, sorted by time. Each event block is decoded once then, and those
 * without such an event are not.
 *
 *     elements    size 9: 0x71   size 8: 0x02   size 8: 0x6f   ...       the first FreeEvent is asked for
 *     batch       0x02  0x6f  0x71                                       read in this order
 *
 * The first batch is small: most queries show few elements. Whoever asks for one that is not in it gets a large one.
 */
#include "dx/model/block_events.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "dx/model/event_reader.h"
#include "trace/row_ids.h"

enum { BATCH_FIRST = 128, BATCH_MAX = 1 << 16, SHARE = 8 /* of the query's memory */ };

struct batch {
	const struct dx_ahead *ahead; /* that it was made of; only compared */
	struct dx_wanted *items;
	uint32_t count;
	uint32_t end; /* elements of the order up to the last one that it was made of */
};

/* The last two batches: the elements may be gone through a second time. */
struct batches {
	struct batch items[2];
	unsigned newest;
};

struct dx_block_events {
	struct batches begins, ends;
};

static void block_events_end(void *context)
{
	struct dx_block_events *events = context;
	for (unsigned i = 0; i < 2; i++) {
		free(events->begins.items[i].items);
		free(events->ends.items[i].items);
	}
	free(events);
}

static struct batches *batches_of(struct dx_session *session, bool is_end)
{
	if (!session->block_events) {
		session->block_events = memory_zeroed(1, sizeof(*session->block_events));
		dx_on_release(&session->whole, block_events_end, session->block_events);
	}
	return is_end ? &session->block_events->ends : &session->block_events->begins;
}

/* Set the point of the block's begin or end. False: no event is there. */
static bool point_set(const struct dx_query *query, const struct dx_block *block, bool is_end, struct dx_wanted *wanted)
{
	bool has_event = is_end ? block->owner == TRACE_NONE && block->row.end <= HEAP_END_DESTROY
				: !(block->row.flags & HEAP_EARLIER);
	uint32_t point = is_end ? block->details.end_point : block->details.birth_point;
	*wanted = (struct dx_wanted){.time_ns = is_end ? block->row.end_ns : block->row.birth_ns,
				     .point = point,
				     .step = heap_table_step(query->session->table, point)};
	return has_event && point < query->session->table->point_count;
}

/* ---- batches ---- */

/* Set the block that the element is, or that it began. */
static bool element_block(struct dx_query *query, const struct dx_ahead *ahead, uint32_t i, struct dx_block *block)
{
	struct dx_mark mark = dx_mark(query->arena);
	struct dx_value value;
	bool has_block = ahead->get(query, ahead, i, &value) && value.kind == DX_OBJECT;
	if (has_block && value.class == &dx_allocation_class)
		*block = *(const struct dx_block *)value.data;
	else
		has_block = has_block && value.class == &dx_heap_class && dx_block_of_event(query, value.data, block);
	dx_release(query->arena, mark);
	return has_block;
}

COMPARE_BY_TWO(wanted_order, struct dx_wanted, time_ns, point)

/* Sort by time and point, and leave out those that are there twice: a Destroy ends many blocks. */
static void batch_sort(struct batch *batch)
{
	uint32_t kept = 0;
	if (batch->count)
		qsort(batch->items, batch->count, sizeof(*batch->items), wanted_order);
	for (uint32_t i = 0; i < batch->count; i++)
		if (!kept || batch->items[kept - 1].point != batch->items[i].point)
			batch->items[kept++] = batch->items[i];
	batch->count = kept;
}

/* is_first: nothing was read for these elements yet. */
static uint32_t batch_limit(const struct dx_query *query, bool is_first)
{
	size_t room = query->budget.limit_bytes / SHARE / sizeof(struct dx_wanted),
	       limit = is_first ? BATCH_FIRST : BATCH_MAX;
	return (uint32_t)(room < BATCH_FIRST ? BATCH_FIRST : room < limit ? room : limit);
}

/* Read the events of the block, if it is that of the query's present element, and of those behind it. */
static void batch_read(struct dx_query *query, struct batches *batches, const struct dx_block *block, bool is_end)
{
	const struct dx_ahead *ahead = query->ahead;
	const struct batch *last = &batches->items[batches->newest];
	struct batch *batch = &batches->items[!batches->newest];
	struct dx_block other;
	if (!ahead || !ahead->next || !element_block(query, ahead, ahead->next - 1, &other) ||
	    other.number != block->number)
		return;
	assert(ahead->next <= ahead->count);
	/* Printers go through an order twice: where the first batch ends, a second one is a large one. */
	uint32_t first = ahead->next - 1, limit = batch_limit(query, last->ahead != ahead && last->end != first),
		 count = ahead->count - first < limit ? ahead->count - first : limit;
	batches->newest = !batches->newest;
	batch->ahead = ahead;
	batch->count = 0;
	batch->end = first + count;
	batch->items = memory_resize(batch->items, count, sizeof(*batch->items));
	for (uint32_t i = 0; i < count && dx_step(query, "Event", -1); i++)
		if (element_block(query, ahead, first + i, &other))
			batch->count += point_set(query, &other, is_end, &batch->items[batch->count]);
	batch_sort(batch);
	if (!query->is_stopped)
		dx_events_read(query, batch->items, batch->count);
}

static const struct dx_wanted *batches_find(const struct batches *batches, const struct dx_wanted *point)
{
	const struct dx_wanted *found = NULL;
	for (unsigned i = 0; i < 2 && !found; i++)
		found = dx_wanted_find(batches->items[i].items, batches->items[i].count, point);
	return found;
}

bool dx_event_of_block(struct dx_query *query, const struct dx_block *block, bool is_end, struct dx_event *event)
{
	struct dx_wanted wanted;
	if (!dx_session_table(query->session) || !point_set(query, block, is_end, &wanted))
		return false;
	struct batches *batches = batches_of(query->session, is_end);
	const struct dx_wanted *found = batches_find(batches, &wanted);
	if (!found) {
		batch_read(query, batches, block, is_end);
		found = batches_find(batches, &wanted);
	}
	if (!found || !found->is_found)
		return dx_event_find(query, wanted.point, event);
	/* With the bytes between its members: objects are compared by all of them. */
	memcpy(event, &found->event, sizeof(*event));
	return true;
}
