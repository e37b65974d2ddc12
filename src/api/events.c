/* SPDX-License-Identifier: MIT */
/* Events, as runs of rows of decoded blocks. */
#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/row_members.h"
#include "base/events.h"
#include "base/memory.h"
#include "match/point_stream.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

_Static_assert(XHEAP_EVENT_FAILED == (int)EVENT_FAILED && XHEAP_EVENT_IN_FLIGHT == (int)EVENT_IN_FLIGHT &&
		       XHEAP_EVENT_IN_SIGNAL == (int)EVENT_IN_SIGNAL && XHEAP_EVENT_NO_STACK == (int)EVENT_NO_STACK &&
		       XHEAP_EVENT_TRUNCATED == (int)EVENT_TRUNCATED &&
		       XHEAP_EVENT_NO_DURATION == (int)EVENT_NO_DURATION,
	       "flags go as they are");

API_INIT(xheap_events_options, .from_ns = INT64_MIN, .to_ns = INT64_MAX, .order = XHEAP_ORDER_TIME)

struct xheap_events {
	struct xheap_trace *trace;
	xheap_events_options options;
	/* Where rows come from: in the order of time, else block by block. */
	struct heap_stream *stream;
	struct trace_cursor *cursor;
	uint32_t next_block;
	struct trace_block block; /* of the cursor */
	/* Rows at hand: next to count, of places or, without them, of the block. */
	const struct trace_block *rows;
	const struct point_place *places;
	uint32_t next, count;
	uint64_t number; /* of row `next` */
	/* Those of them that were given out. */
	xheap_event_batch batch;
	uint32_t batch_next;
	xheap_event event;
	int over; /* XHEAP_END, or the error after which nothing more is read */
};

/* ---- rows ---- */

static uint32_t row_at(const struct xheap_events *events, uint32_t at)
{
	return events->places ? events->places[at].row : at;
}

static bool is_in_range(const struct xheap_events *events, uint32_t at)
{
	int64_t time_ns = events->rows->time_ns[row_at(events, at)];
	return time_ns >= events->options.from_ns && time_ns <= events->options.to_ns;
}

/* XHEAP_END, or 0 with rows at hand. */
static int rows_of_time(struct xheap_events *events, struct diag *diag)
{
	struct heap_run run;
	int status = heap_stream_run(events->stream, &run, diag);
	if (status <= 0)
		return status ? status : XHEAP_END;
	events->rows = run.block;
	events->places = run.places;
	events->next = 0;
	events->count = run.count;
	return run.places[0].time_ns > events->options.to_ns ? XHEAP_END : 0;
}

static int rows_of_file(struct xheap_events *events, struct diag *diag)
{
	const struct trace *trace = events->trace->trace;
	for (; events->next_block < trace_block_count(trace); events->next_block++) {
		struct trace_block head;
		trace_block_head(trace, events->next_block, &head);
		if (head.last_ns < events->options.from_ns || head.first_ns > events->options.to_ns)
			continue;
		int error = trace_cursor_read(events->cursor, events->next_block++, &events->block, diag);
		events->rows = &events->block;
		events->next = 0;
		events->count = error ? 0 : events->block.count;
		return error;
	}
	return XHEAP_END;
}

/* From the next row in the range on, those that lie one behind the other. False: no row at hand is in the range. */
static bool cut_batch(struct xheap_events *events)
{
	while (events->next < events->count && !is_in_range(events, events->next)) {
		events->next++;
		events->number++;
	}
	if (events->next == events->count)
		return false;
	uint32_t first = events->next, row = row_at(events, first), count = 1;
	while (first + count < events->count && row_at(events, first + count) == row + count &&
	       is_in_range(events, first + count))
		count++;
	const struct trace_block *from = events->rows;
#define X(member, from_member, column) .member = from->from_member + row,
	events->batch = (xheap_event_batch){.first_number = events->stream ? events->number : UINT64_MAX,
					    .count = count,
					    .process = from->process,
					    .thread = from->thread,
					    EVENT_MEMBERS(X)};
#undef X
	events->next += count;
	events->number += count;
	return true;
}

/* A new batch: 0, XHEAP_END, or a negative errno. */
static int next_work(void *context, struct diag *diag)
{
	struct xheap_events *events = context;
	events->batch_next = events->batch.count = 0;
	if (events->over)
		return events->over > 0 ? events->over
					: diag_fail(diag, -events->over, "events: no more is read after an error");
	/* So it is if this is given up in its middle. */
	events->over = -ENOMEM;
	int status = 0;
	while (!status && !cut_batch(events))
		status = events->stream ? rows_of_time(events, diag) : rows_of_file(events, diag);
	events->over = status;
	return status;
}

/* ---- the calls ---- */

struct events_opening {
	struct xheap_trace *trace;
	const xheap_events_options *given;
	struct xheap_events *events;
};

static int open_work(void *context, struct diag *diag)
{
	struct events_opening *opening = context;
	struct xheap_events *events = memory_zeroed(1, sizeof(*events));
	opening->events = events;
	xheap_events_options_init(&events->options, sizeof(events->options));
	events->trace = opening->trace;
	api_trace_hold(opening->trace);
	int error = api_take(&events->options, sizeof(events->options), opening->given, "xheap_events_options", diag);
	if (error)
		return error;
	if (events->options.order > XHEAP_ORDER_FILE)
		return diag_fail(diag, EINVAL, "xheap_events_options: there is no order %u", events->options.order);
	if (events->options.order == XHEAP_ORDER_TIME) {
		events->stream = heap_stream_new(opening->trace->trace, HEAP_ORDER_EVENTS, events->options.from_ns,
						 events->options.to_ns);
		events->number = heap_stream_skipped(events->stream);
		return 0;
	}
	events->cursor = trace_cursor_new(opening->trace->trace);
	return events->cursor ? 0 : -ENOMEM;
}

API int xheap_events_open(xheap_trace *trace, const xheap_events_options *options, xheap_events **events,
			  xheap_error *error)
{
	struct events_opening opening = {.trace = trace, .given = options};
	int status = api_run(&trace->callbacks, error, open_work, &opening);
	if (status != XHEAP_OK) {
		xheap_events_close(opening.events);
		opening.events = NULL;
	}
	*events = opening.events;
	return status;
}

static int fetch(struct xheap_events *events, xheap_error *error)
{
	return api_run(&events->trace->callbacks, error, next_work, events);
}

/* What single events have left of the batch. */
static void batch_shorten(xheap_event_batch *batch, uint32_t gone)
{
	batch->count -= gone;
	batch->first_number += batch->first_number == UINT64_MAX ? 0 : gone;
#define X(member, from_member, column) batch->member += gone;
	EVENT_MEMBERS(X)
#undef X
}

API int xheap_events_next_batch(xheap_events *events, const xheap_event_batch **batch, xheap_error *error)
{
	int status = XHEAP_OK;
	if (events->batch_next && events->batch_next < events->batch.count)
		batch_shorten(&events->batch, events->batch_next);
	else
		status = fetch(events, error);
	events->batch_next = events->batch.count;
	*batch = status == XHEAP_OK ? &events->batch : NULL;
	return status;
}

static void event_take(struct xheap_events *events, uint32_t i)
{
	const xheap_event_batch *batch = &events->batch;
	const struct trace_dictionary *dictionary = trace_dictionary(events->trace->trace);
#define X(member, from_member, column) .member = batch->member[i],
	events->event =
		(xheap_event){.number = batch->first_number == UINT64_MAX ? UINT64_MAX : batch->first_number + i,
			      .process = batch->process,
			      .thread = batch->thread,
			      .pid = dictionary->processes[batch->process].pid,
			      .tid = dictionary->threads[batch->thread].tid,
			      EVENT_MEMBERS(X)};
#undef X
}

API int xheap_events_next(xheap_events *events, const xheap_event **event, xheap_error *error)
{
	int status = events->batch_next < events->batch.count ? XHEAP_OK : fetch(events, error);
	*event = NULL;
	if (status != XHEAP_OK)
		return status;
	event_take(events, events->batch_next++);
	*event = &events->event;
	return XHEAP_OK;
}

static void close_work(void *context)
{
	struct xheap_events *events = context;
	heap_stream_free(events->stream);
	if (events->cursor)
		trace_cursor_free(events->cursor);
	api_trace_release(events->trace);
	free(events);
}

API void xheap_events_close(xheap_events *events)
{
	if (events)
		api_end(close_work, events);
}
