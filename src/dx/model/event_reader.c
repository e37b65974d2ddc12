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
#include "dx/model/event_reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/events.h"
#include "base/memory.h"
#include "match/point_stream.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { WAITING_MAX = 3 /* ReAllocs of a thread under way: signal handlers may nest */ };

struct point_wait {
	uint32_t row, step, point;
	bool is_used;
};

struct lane_state {
	struct point_wait waiting[WAITING_MAX];
	int64_t signal_start_ns;
	uint32_t signal_start_step;
	bool has_signal;
	/* Of a reader of single points: the block that it is in, and whether the thread's call before is not known. */
	int64_t block_first_ns;
	bool is_unsure;
};

struct dx_event_reader {
	const struct trace_dictionary *dictionary;
	struct heap_stream *stream;
	struct lane_state *lanes; /* by thread */
	uint64_t number;
	int64_t time_ns;
	uint32_t step;
	/* Ordinals of points, known from a time on: of the next point; of the last event's point, and of its first one,
	   if it is a ReAlloc with two. HEAP_NONE: not known. */
	int64_t counted_from_ns;
	uint32_t next_point, point, first_point;
	/* Of a reader of single points: those that are wanted, and the first one that was not passed; else NULL. */
	const struct dx_wanted *wanted;
	uint32_t wanted_count, next_wanted;
	struct heap_run run; /* of which run_next points are passed */
	uint32_t run_next;
	bool is_unsure;   /* the last event's start may be that of a call inside it, in a block that was not read */
	bool is_backward; /* a point came before an earlier one: times are no order here */
};

static struct dx_event_reader *reader_new(const struct trace *trace, struct heap_stream *stream)
{
	struct dx_event_reader *reader = memory_zeroed(1, sizeof(*reader));
	reader->dictionary = trace_dictionary(trace);
	reader->lanes = memory_zeroed((size_t)reader->dictionary->thread_count + 1, sizeof(*reader->lanes));
	reader->stream = stream;
	reader->number = heap_stream_skipped(reader->stream);
	reader->time_ns = INT64_MIN;
	return reader;
}

/* next_point: ordinal of the first point at from_ns or later. */
static struct dx_event_reader *reader_from(const struct trace *trace, int64_t from_ns, uint32_t next_point)
{
	struct dx_event_reader *reader =
		reader_new(trace, heap_stream_new(trace, HEAP_ORDER_POINTS, from_ns, INT64_MAX));
	reader->counted_from_ns = from_ns;
	reader->next_point = next_point;
	return reader;
}

struct dx_event_reader *dx_event_reader_new(const struct trace *trace)
{
	return reader_from(trace, INT64_MIN, 0);
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

static void wait_add(struct lane_state *lane, struct point_wait wait)
{
	unsigned place = 0;
	while (place < WAITING_MAX - 1 && lane->waiting[place].is_used)
		place++;
	lane->waiting[place] = wait;
}

static struct point_wait wait_take(struct lane_state *lane, uint32_t row)
{
	for (unsigned i = 0; i < WAITING_MAX; i++)
		if (lane->waiting[i].is_used && lane->waiting[i].row == row) {
			lane->waiting[i].is_used = false;
			return lane->waiting[i];
		}
	return (struct point_wait){.point = HEAP_NONE};
}

/* A call that a signal handler made inside another one begins after that: the outer start is an estimate. */
static void nest(struct lane_state *lane, struct dx_event *event)
{
	if (event->row.flags & EVENT_IN_SIGNAL) {
		struct dx_value start = dx_event_start(event);
		if (!lane->has_signal || start.sequence_ns < lane->signal_start_ns) {
			lane->signal_start_ns = start.sequence_ns;
			lane->signal_start_step = start.step;
		}
		lane->has_signal = true;
		return;
	}
	if (lane->has_signal && event->row.kind == EVENT_ALLOC) {
		event->signal_start_ns = lane->signal_start_ns;
		event->signal_start_step = lane->signal_start_step;
	}
	lane->has_signal = false;
}

/* Return the ordinal of the point at the reader's time and step, if it is wanted. */
static uint32_t point_find(struct dx_event_reader *reader)
{
	const struct dx_wanted *wanted = reader->wanted;
	uint32_t at = reader->next_wanted;
	while (at < reader->wanted_count && (wanted[at].time_ns < reader->time_ns ||
					     (wanted[at].time_ns == reader->time_ns && wanted[at].step < reader->step)))
		at++;
	reader->next_wanted = at;
	bool is_found =
		at < reader->wanted_count && wanted[at].time_ns == reader->time_ns && wanted[at].step == reader->step;
	return is_found ? wanted[at].point : HEAP_NONE;
}

/* Return the ordinal of the next point, which is at this time. */
static uint32_t point_count(struct dx_event_reader *reader, int64_t time_ns)
{
	if (reader->wanted)
		return point_find(reader);
	if (time_ns < reader->counted_from_ns)
		return HEAP_NONE;
	reader->counted_from_ns = INT64_MIN;
	return reader->next_point++;
}

/* Of a reader of single points: whether nothing of the event is needed. */
static bool is_unneeded(struct dx_event_reader *reader, struct lane_state *lane, const struct heap_point *point,
			uint32_t ordinal, uint32_t first_point)
{
	bool is_in_signal = point->block->flags[point->row] & EVENT_IN_SIGNAL;
	if (lane->block_first_ns != point->block->first_ns) {
		lane->block_first_ns = point->block->first_ns;
		lane->has_signal = false;
		lane->is_unsure = true;
	}
	bool is_needed = ordinal != HEAP_NONE || first_point != HEAP_NONE || is_in_signal || lane->has_signal;
	reader->is_unsure = lane->is_unsure && !is_in_signal && point->block->kind[point->row] == EVENT_ALLOC;
	lane->is_unsure &= is_in_signal;
	return !is_needed;
}

static bool has_waiting_call(const struct lane_state *lane)
{
	for (unsigned i = 0; i < WAITING_MAX; i++)
		if (lane->waiting[i].is_used)
			return true;
	return false;
}

/* Return whether a point of a run, in the order of rows, needs the one before it: to have its step or its first point,
   or to be known as the call around a signal handler's. */
static bool needs_before(const struct heap_run *run, uint32_t i)
{
	const struct point_place *place = &run->places[i], *before = place - 1;
	return before->time_ns == place->time_ns || before->row == place->row ||
	       run->block->flags[before->row] & EVENT_IN_SIGNAL || run->block->kind[before->row] > EVENT_PROTECT;
}

/* Of a reader of single points: pass points of the run before the next one that is wanted, as if each had been read. */
static void run_skip(struct dx_event_reader *reader)
{
	const struct heap_run *run = &reader->run;
	struct lane_state *lane = &reader->lanes[run->block->thread];
	uint32_t from = reader->run_next, to, at = reader->next_wanted;
	int64_t wanted_ns = at < reader->wanted_count ? reader->wanted[at].time_ns : INT64_MAX;
	if (!run->is_row_order || run->places[from].time_ns >= wanted_ns || has_waiting_call(lane))
		return;
	BISECT(to, run->count, i, run->places[i].time_ns < wanted_ns);
	/* The next run may go on in the last nanosecond of this one. */
	to -= to == run->count;
	while (to > from && needs_before(run, to))
		to--;
	if (to <= from)
		return;
	reader->is_backward |= run->places[from].time_ns < reader->time_ns;
	reader->time_ns = run->places[to - 1].time_ns;
	reader->number += run->places[to].row - run->places[from].row;
	reader->run_next = to;
	lane->block_first_ns = run->block->first_ns;
	lane->has_signal = lane->is_unsure = false;
}

/* Of a reader of single points: get the next point that may be needed; as heap_stream_next(). */
static int point_next(struct dx_event_reader *reader, struct heap_point *point, struct diag *diag)
{
	struct heap_run *run = &reader->run;
	if (reader->run_next == run->count) {
		int status = heap_stream_run(reader->stream, run, diag);
		reader->run_next = 0;
		if (status <= 0) {
			run->count = 0;
			return status;
		}
	}
	run_skip(reader);
	const struct point_place *place = &run->places[reader->run_next++];
	*point = (struct heap_point){place->time_ns, (enum heap_point_kind)place->kind, run->block, place->row};
	return 1;
}

int dx_event_reader_next(struct dx_event_reader *reader, struct dx_event *event, struct diag *diag)
{
	struct heap_point point;
	int status;
	while ((status = reader->wanted ? point_next(reader, &point, diag)
					: heap_stream_next(reader->stream, &point, diag)) > 0) {
		const struct trace_block *block = point.block;
		struct lane_state *lane = &reader->lanes[block->thread];
		reader->step = point.time_ns == reader->time_ns ? reader->step + 1 : 1;
		reader->is_backward |= point.time_ns < reader->time_ns;
		reader->time_ns = point.time_ns;
		uint32_t ordinal = point_count(reader, point.time_ns);
		if (is_first_of_two(&point)) {
			wait_add(lane, (struct point_wait){point.row, reader->step, ordinal, true});
			continue;
		}
		uint64_t number = reader->number++;
		if (block->kind[point.row] > EVENT_PROTECT)
			continue;
		const struct point_wait wait = block->kind[point.row] == EVENT_REALLOC
						       ? wait_take(lane, point.row)
						       : (struct point_wait){.point = HEAP_NONE};
		if (reader->wanted && is_unneeded(reader, lane, &point, ordinal, wait.point))
			continue;
		/* Also the bytes between its members: objects are compared by all of them. */
		memset(event, 0, sizeof(*event));
		event->number = number;
		event->row = column_event_at(block, point.row);
		const struct thread_context *context = trace_block_context(block, point.row);
		if (context)
			event->context = *context;
		event->step = reader->step;
		event->start_step = wait.step;
		event->signal_start_ns = INT64_MAX;
		reader->point = ordinal;
		reader->first_point = wait.point;
		nest(lane, event);
		return 1;
	}
	return status;
}

/* ---- events of single points ---- */

const struct dx_wanted *dx_wanted_find(const struct dx_wanted *wanted, uint32_t count, const struct dx_wanted *point)
{
	uint32_t place;
	BISECT(place, count, i,
	       wanted[i].time_ns < point->time_ns ||
		       (wanted[i].time_ns == point->time_ns && wanted[i].point < point->point));
	const struct dx_wanted *found = place < count ? &wanted[place] : NULL;
	return found && found->time_ns == point->time_ns && found->point == point->point ? found : NULL;
}

/* Keep the reader's event, unless points around it may be missing. */
static void wanted_keep(const struct dx_event_reader *reader, struct dx_wanted *wanted, struct dx_event *event)
{
	int64_t time_ns = event->row.time_ns, duration_ns = event->start_step ? event->row.duration_ns : 0,
		first_ns = (int64_t)((uint64_t)time_ns - (uint64_t)duration_ns);
	const struct dx_wanted points[] = {{.time_ns = first_ns, .point = reader->first_point},
					   {.time_ns = time_ns, .point = reader->point}};
	int64_t outer_ns = event->signal_start_ns < first_ns ? event->signal_start_ns : first_ns;
	uint64_t before = 0;
	bool is_known = !reader->is_unsure && heap_stream_skipped_before(reader->stream, outer_ns, &before) &&
			heap_stream_skipped_before(reader->stream, first_ns, &before) &&
			heap_stream_skipped_before(reader->stream, time_ns, &before);
	event->number += before;
	for (unsigned i = 0; i < 2 && is_known; i++) {
		const struct dx_wanted *found = dx_wanted_find(wanted, reader->wanted_count, &points[i]);
		if (!found)
			continue;
		struct dx_wanted *place = &wanted[found - wanted];
		/* With the bytes between its members: objects are compared by all of them. */
		memcpy(&place->event, event, sizeof(*event));
		place->is_found = true;
	}
}

static struct dx_event_reader *reader_at(const struct trace *trace, const struct dx_wanted *wanted, uint32_t count)
{
	int64_t *items = memory_zeroed(count, sizeof(*items));
	for (uint32_t i = 0; i < count; i++)
		items[i] = wanted[i].time_ns;
	const struct heap_times times = {items, count};
	struct dx_event_reader *reader = reader_new(trace, heap_stream_at(trace, HEAP_ORDER_POINTS, &times));
	free(items);
	reader->wanted = wanted;
	reader->wanted_count = count;
	return reader;
}

void dx_events_read(struct dx_query *query, struct dx_wanted *wanted, uint32_t count)
{
	struct dx_event_reader *reader = reader_at(query->session->trace, wanted, count);
	struct dx_event event;
	struct diag diag = {""};
	int status = 1;
	while (dx_step(query, "Event", -1) && (status = dx_event_reader_next(reader, &event, &diag)) > 0)
		if (reader->point != HEAP_NONE || reader->first_point != HEAP_NONE)
			wanted_keep(reader, wanted, &event);
	if (status < 0)
		dx_stop(query, -1, "%s", diag.text);
	for (uint32_t i = 0; i < count && reader->is_backward; i++)
		wanted[i].is_found = false;
	dx_event_reader_free(reader);
}

/* ---- events of windows of points ---- */

/* The events of HEAP_POINTS_PER_TIME points, whose first one has a time in the table. Those that were asked for last
   are kept, as many as a part of the memory holds; two at least, as blocks lie at the border of two. */
enum { WINDOW_POINTS = HEAP_POINTS_PER_TIME, WINDOWS_LEAST = 2, WINDOWS_MAX = 32, SHARE = 2 };

struct event_window {
	uint32_t number, used; /* used: when, in searches; 0: never */
	struct dx_event *items;
	size_t count, capacity;
	uint32_t *of_point; /* by point: its event plus 1; 0: it is none's */
};

struct dx_found_events {
	struct event_window windows[WINDOWS_MAX];
	uint32_t searches;
};

static void found_end(void *context)
{
	struct dx_found_events *found = context;
	for (unsigned i = 0; i < WINDOWS_MAX; i++) {
		free(found->windows[i].items);
		free(found->windows[i].of_point);
	}
	free(found);
}

/* Keep the reader's event if one of its points is in the window. */
static void event_keep(struct event_window *window, const struct dx_event_reader *reader, const struct dx_event *event)
{
	const uint32_t points[] = {reader->point, reader->first_point};
	bool is_kept = false;
	assert(window->of_point);
	for (unsigned i = 0; i < 2; i++) {
		if (points[i] == HEAP_NONE || points[i] / WINDOW_POINTS != window->number)
			continue;
		if (!is_kept) {
			memory_grow(window->items, window->count, window->capacity);
			memcpy(&window->items[window->count++], event, sizeof(*event));
		}
		is_kept = true;
		window->of_point[points[i] % WINDOW_POINTS] = (uint32_t)window->count;
	}
}

/* Whether a ReAlloc whose first point is in the window has not returned yet. */
static bool has_waiting(const struct dx_event_reader *reader, uint32_t number)
{
	for (uint32_t i = 0; i < reader->dictionary->thread_count; i++)
		for (unsigned k = 0; k < WAITING_MAX; k++) {
			const struct point_wait *wait = &reader->lanes[i].waiting[k];
			if (wait->is_used && wait->point / WINDOW_POINTS == number)
				return true;
		}
	return false;
}

static void window_read(struct dx_query *query, struct event_window *window, uint32_t number)
{
	const struct heap_table *table = query->session->table;
	assert((uint64_t)number * WINDOW_POINTS < table->point_count);
	int64_t from_ns = table->point_times[number];
	uint32_t first = number * WINDOW_POINTS, before = heap_table_step(table, first) - 1;
	struct dx_event_reader *reader = reader_from(query->session->trace, from_ns, first - before);
	struct dx_event event;
	struct diag diag = {""};
	bool is_behind = false;
	int status = 1;
	window->number = number;
	window->count = 0;
	window->of_point = memory_resize(window->of_point, WINDOW_POINTS, sizeof(*window->of_point));
	memset(window->of_point, 0, WINDOW_POINTS * sizeof(*window->of_point));
	while (!is_behind && dx_step(query, "Event", -1) &&
	       (status = dx_event_reader_next(reader, &event, &diag)) > 0) {
		event_keep(window, reader, &event);
		is_behind = reader->point != HEAP_NONE && reader->point / WINDOW_POINTS > number &&
			    !has_waiting(reader, number);
	}
	if (status < 0)
		dx_stop(query, -1, "%s", diag.text);
	dx_event_reader_free(reader);
}

/* Return the window, read into the place of the one that was not used for the longest time. NULL: the query is
   stopped. */
static const struct event_window *window_find(struct dx_query *query, uint32_t number)
{
	struct dx_session *session = query->session;
	size_t room = query->budget.limit_bytes / SHARE / (WINDOW_POINTS * sizeof(struct dx_event)),
	       count = room < WINDOWS_LEAST ? WINDOWS_LEAST
		       : room < WINDOWS_MAX ? room
					    : WINDOWS_MAX;
	if (!session->found) {
		session->found = memory_zeroed(1, sizeof(*session->found));
		dx_on_release(&session->whole, found_end, session->found);
	}
	struct dx_found_events *found = session->found;
	struct event_window *oldest = &found->windows[0];
	found->searches++;
	for (size_t i = 0; i < count; i++) {
		struct event_window *window = &found->windows[i];
		if (window->used && window->number == number) {
			window->used = found->searches;
			return window;
		}
		oldest = window->used < oldest->used ? window : oldest;
	}
	oldest->used = 0;
	window_read(query, oldest, number);
	if (query->is_stopped)
		return NULL;
	oldest->used = found->searches;
	return oldest;
}

bool dx_event_find(struct dx_query *query, uint32_t point, struct dx_event *event)
{
	const struct heap_table *table = dx_session_table(query->session);
	if (!table || point >= table->point_count)
		return false;
	const struct event_window *window = window_find(query, point / WINDOW_POINTS);
	uint32_t at = window ? window->of_point[point % WINDOW_POINTS] : 0;
	/* With the bytes between its members: objects are compared by all of them. */
	if (at)
		memcpy(event, &window->items[at - 1], sizeof(*event));
	return at;
}

struct dx_value dx_event_start(const struct dx_event *event)
{
	struct dx_value point = dx_position(event->row.time_ns, event->step), start = point;
	bool is_late = event->row.kind == EVENT_ALLOC || event->row.kind == EVENT_REALLOC;
	/* The first point of a ReAlloc is exact, if it is in the same nanosecond, too. */
	bool has_duration = event->start_step ||
			    (!(event->row.flags & (EVENT_NO_DURATION | EVENT_IN_FLIGHT)) && event->row.duration_ns > 0);
	if (is_late && has_duration &&
	    !__builtin_sub_overflow(event->row.time_ns, event->row.duration_ns, &start.sequence_ns)) {
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
	struct dx_value point = dx_position(event->row.time_ns, event->step), end = point;
	bool is_late = event->row.kind == EVENT_ALLOC || event->row.kind == EVENT_REALLOC;
	if (is_late || event->row.flags & (EVENT_NO_DURATION | EVENT_IN_FLIGHT) || event->row.duration_ns <= 0)
		return point;
	if (__builtin_add_overflow(event->row.time_ns, event->row.duration_ns, &end.sequence_ns))
		return point;
	end.step = 0;
	end.is_estimated = true;
	return end;
}
