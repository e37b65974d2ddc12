/* SPDX-License-Identifier: MIT */
/*
 * Events in the order of dump, with the steps of their points. The merge gives points, of which a ReAlloc has two:
 *
 *     time     100        100        100        107
 *     point    A entry    B          C          A return
 *     step     1          2          3          1
 *
 * Steps are counted as points go by, and a ReAlloc's first one waits in its thread for the second.
 */
#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "base/memory.h"
#include "dx/model/objects.h"
#include "dx/model/points.h"
#include "match/point_stream.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { WAITING_MAX = 3 /* ReAllocs of a thread under way: signal handlers may nest */ };

struct point_wait {
	uint32_t row, step;
	bool is_used;
};

struct lane_state {
	struct point_wait waiting[WAITING_MAX];
	int64_t signal_start_ns;
	uint32_t signal_start_step;
	bool has_signal;
};

struct dx_event_reader {
	const struct trace_dictionary *dictionary;
	struct heap_stream *stream;
	struct lane_state *lanes; /* by thread */
	uint64_t number;
	int64_t time_ns;
	uint32_t step;
};

static struct dx_event_reader *reader_from(const struct trace *trace, int64_t from_ns)
{
	struct dx_event_reader *reader = memory_zeroed(1, sizeof(*reader));
	reader->dictionary = trace_dictionary(trace);
	reader->lanes = memory_zeroed((size_t)reader->dictionary->thread_count + 1, sizeof(*reader->lanes));
	reader->stream = heap_stream_new(trace, HEAP_ORDER_POINTS, from_ns, INT64_MAX);
	reader->number = heap_stream_skipped(reader->stream);
	reader->time_ns = INT64_MIN;
	return reader;
}

struct dx_event_reader *dx_event_reader_new(const struct trace *trace)
{
	return reader_from(trace, INT64_MIN);
}

void dx_event_reader_free(struct dx_event_reader *reader)
{
	if (!reader)
		return;
	heap_stream_free(reader->stream);
	free(reader->lanes);
	free(reader);
}

/* Whether the event has a further point, with which it is complete. */
static bool is_first_of_two(const struct heap_point *point)
{
	const struct trace_block *block = point->block;
	uint32_t row = point->row;
	return point->kind == HEAP_POINT_END && block->kind[row] == EVENT_REALLOC && block->address[row] &&
	       !(block->flags[row] & EVENT_IN_FLIGHT);
}

static void wait_add(struct lane_state *lane, uint32_t row, uint32_t step)
{
	unsigned place = 0;
	while (place < WAITING_MAX - 1 && lane->waiting[place].is_used)
		place++;
	lane->waiting[place] = (struct point_wait){row, step, true};
}

static uint32_t wait_take(struct lane_state *lane, uint32_t row)
{
	for (unsigned i = 0; i < WAITING_MAX; i++)
		if (lane->waiting[i].is_used && lane->waiting[i].row == row) {
			lane->waiting[i].is_used = false;
			return lane->waiting[i].step;
		}
	return 0;
}

static void event_fill(struct dx_event *event, const struct trace_block *block, uint32_t row)
{
	memset(event, 0, sizeof(*event));
	event->time_ns = block->time_ns[row];
	event->duration_ns = block->duration_ns[row];
	event->address = block->address[row];
	event->previous = block->previous[row];
	event->size = block->size[row];
	event->usable = block->usable[row];
	event->argument = block->argument[row];
	event->argument2 = block->argument2[row];
	event->thread = block->thread;
	event->process = block->process;
	event->heap = block->heap[row];
	event->stack = block->stack[row];
	event->result = block->result[row];
	event->entry = block->entry[row];
	event->kind = block->kind[row];
	event->flags = block->flags[row];
	event->signal_start_ns = INT64_MAX;
}

/* A call that a signal handler made inside another one begins after that: the outer start is an estimate. */
static void nest(struct lane_state *lane, struct dx_event *event)
{
	if (event->flags & EVENT_IN_SIGNAL) {
		struct dx_value start = dx_event_start(event);
		if (!lane->has_signal || start.sequence_ns < lane->signal_start_ns) {
			lane->signal_start_ns = start.sequence_ns;
			lane->signal_start_step = start.step;
		}
		lane->has_signal = true;
		return;
	}
	if (lane->has_signal && event->kind == EVENT_ALLOC) {
		event->signal_start_ns = lane->signal_start_ns;
		event->signal_start_step = lane->signal_start_step;
	}
	lane->has_signal = false;
}

int dx_event_reader_next(struct dx_event_reader *reader, struct dx_event *event, struct diag *diag)
{
	struct heap_point point;
	int status;
	while ((status = heap_stream_next(reader->stream, &point, diag)) > 0) {
		const struct trace_block *block = point.block;
		struct lane_state *lane = &reader->lanes[block->thread];
		reader->step = point.time_ns == reader->time_ns ? reader->step + 1 : 1;
		reader->time_ns = point.time_ns;
		if (is_first_of_two(&point)) {
			wait_add(lane, point.row, reader->step);
			continue;
		}
		uint64_t number = reader->number++;
		if (block->kind[point.row] > EVENT_PROTECT)
			continue;
		event_fill(event, block, point.row);
		event->number = number;
		event->step = reader->step;
		if (event->kind == EVENT_REALLOC)
			event->start_step = wait_take(lane, point.row);
		nest(lane, event);
		return 1;
	}
	return status;
}

/* Whether the event has the point. */
static bool has_point(const struct dx_event *event, const struct dx_point *point)
{
	if (event->process != point->process || event->thread != point->thread)
		return false;
	if (point->is_end && event->kind == EVENT_REALLOC)
		return event->previous == point->address && event->time_ns - event->duration_ns == point->time_ns;
	if (event->time_ns != point->time_ns)
		return false;
	if (point->is_destroy && event->kind == EVENT_DESTROY)
		return true;
	bool is_kind =
		point->is_end ? event->kind == EVENT_FREE : event->kind == EVENT_ALLOC || event->kind == EVENT_REALLOC;
	return is_kind && (point->is_destroy || event->address == point->address);
}

/* A ReAlloc returns behind its first point, before any other call of its thread does, unless a signal handler's. */
static bool is_behind(const struct dx_event *event, const struct dx_point *point)
{
	return event->time_ns > point->time_ns && event->thread == point->thread && !(event->flags & EVENT_IN_SIGNAL);
}

static bool find_in_stream(struct dx_query *query, const struct dx_point *point, struct dx_event *event)
{
	struct dx_event_reader *reader = reader_from(query->session->trace, point->time_ns);
	struct diag diag = {""};
	bool is_found = false, is_over = false;
	int status = 1;
	while (!is_found && !is_over && dx_step(query, "Event", -1) &&
	       (status = dx_event_reader_next(reader, event, &diag)) > 0) {
		is_found = has_point(event, point);
		is_over = is_behind(event, point);
	}
	if (status < 0)
		dx_stop(query, -1, "%s", diag.text);
	dx_event_reader_free(reader);
	return is_found;
}

/* ---- many searches ---- */

/* A search in the trace costs as much as reading so many events in their order. Searches that together cost as much as
   a pass over the trace are a reason for that pass, which keeps all events if half of the memory holds them. */
enum { SEARCH_EVENTS = 16384, SHARE = 2 };

struct dx_found_events {
	struct dx_event *items; /* all of the trace, once is_made */
	size_t count, capacity;
	uint64_t searches;
	bool is_made;
};

static void found_end(void *context)
{
	struct dx_found_events *found = context;
	free(found->items);
	free(found);
}

static void events_keep(struct dx_query *query, struct dx_found_events *found)
{
	struct dx_event_reader *reader = dx_event_reader_new(query->session->trace);
	struct dx_event event;
	struct diag diag = {""};
	int status = 0;
	found->count = 0;
	while (dx_step(query, "Event", -1) && (status = dx_event_reader_next(reader, &event, &diag)) > 0) {
		memory_grow(found->items, found->count, found->capacity);
		found->items[found->count++] = event;
	}
	if (status < 0)
		dx_stop(query, -1, "%s", diag.text);
	found->is_made = !query->is_stopped;
	dx_event_reader_free(reader);
}

/* Return the trace's events if they are kept; NULL: each search reads the trace. */
static const struct dx_found_events *events_at_hand(struct dx_query *query)
{
	struct dx_session *session = query->session;
	uint64_t count = session->dictionary->event_count;
	if (!session->found) {
		session->found = memory_zeroed(1, sizeof(*session->found));
		dx_on_release(&session->whole, found_end, session->found);
	}
	struct dx_found_events *found = session->found;
	if (!found->is_made && count <= query->budget.limit_bytes / SHARE / sizeof(struct dx_event) &&
	    ++found->searches * SEARCH_EVENTS > count)
		events_keep(query, found);
	return found->is_made ? found : NULL;
}

bool dx_event_find(struct dx_query *query, const struct dx_point *point, struct dx_event *event)
{
	const struct dx_found_events *found = events_at_hand(query);
	size_t first = 0;
	if (query->is_stopped)
		return false;
	if (!found)
		return find_in_stream(query, point, event);
	for (size_t end = found->count; first < end;) {
		size_t middle = first + (end - first) / 2;
		if (found->items[middle].time_ns < point->time_ns)
			first = middle + 1;
		else
			end = middle;
	}
	for (; first < found->count; first++) {
		*event = found->items[first];
		if (has_point(event, point))
			return true;
		if (is_behind(event, point))
			return false;
	}
	return false;
}

struct dx_value dx_event_start(const struct dx_event *event)
{
	struct dx_value point = dx_position(event->time_ns, event->step), start = point;
	bool is_late = event->kind == EVENT_ALLOC || event->kind == EVENT_REALLOC;
	/* The first point of a ReAlloc is exact, if it is in the same nanosecond, too. */
	bool has_duration = event->start_step ||
			    (!(event->flags & (EVENT_NO_DURATION | EVENT_IN_FLIGHT)) && event->duration_ns > 0);
	if (is_late && has_duration &&
	    !__builtin_sub_overflow(event->time_ns, event->duration_ns, &start.sequence_ns)) {
		start.step = event->start_step;
		start.is_estimated = !event->start_step;
	} else {
		start = point;
	}
	if (event->signal_start_ns < start.sequence_ns) {
		start.sequence_ns = event->signal_start_ns;
		start.step = event->signal_start_step;
		start.is_estimated = true;
	}
	return start;
}

struct dx_value dx_event_end(const struct dx_event *event)
{
	struct dx_value point = dx_position(event->time_ns, event->step), end = point;
	bool is_late = event->kind == EVENT_ALLOC || event->kind == EVENT_REALLOC;
	if (is_late || event->flags & (EVENT_NO_DURATION | EVENT_IN_FLIGHT) || event->duration_ns <= 0)
		return point;
	if (__builtin_add_overflow(event->time_ns, event->duration_ns, &end.sequence_ns))
		return point;
	end.step = 0;
	end.is_estimated = true;
	return end;
}
