/* SPDX-License-Identifier: MIT */
#include "dx/model/points.h"

#include <stdlib.h>

#include "base/memory.h"
#include "dx/model/debugger.h"
#include "match/point_stream.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum {
	ASKED_MAX = 64,            /* searches before the list is made */
	EVENTS_FEW = 1 << 16,      /* a trace with so few events gets its list at once */
	PASS_STEP_EVENTS = 1 << 12 /* of a pass: how often it asks whether the query is to end */
};

/* The items of `crowded` are the points of all nanoseconds that have several ones. */
struct dx_steps {
	struct dx_points crowded;
	bool has_crowded;
	unsigned asked_count;
	struct dx_point asked[ASKED_MAX];
};

void dx_points_fini(struct dx_points *points)
{
	free(points->items);
	*points = (struct dx_points){0};
}

static void steps_end(void *context)
{
	struct dx_steps *steps = context;
	dx_points_fini(&steps->crowded);
	free(steps);
}

/* ---- points of events ---- */

static struct dx_point point_of_event(const struct heap_point *at, uint32_t step)
{
	const struct trace_block *block = at->block;
	uint8_t kind = block->kind[at->row];
	bool is_end = at->kind == HEAP_POINT_END;
	return (struct dx_point){.time_ns = at->time_ns,
				 .address = is_end && kind == EVENT_REALLOC ? block->previous[at->row]
									    : block->address[at->row],
				 .process = block->process,
				 .thread = block->thread,
				 .step = step,
				 .is_end = is_end || kind == EVENT_DESTROY,
				 .is_destroy = kind == EVENT_DESTROY};
}

/* Whether some block begins or ends at the point. */
static bool has_effect(const struct heap_point *at)
{
	return at->kind != HEAP_POINT_NONE || at->block->kind[at->row] == EVENT_DESTROY;
}

static void points_add(struct dx_points *points, const struct dx_point *point)
{
	memory_grow(points->items, points->count, points->capacity);
	points->items[points->count++] = *point;
}

int dx_points_at(struct dx_points *points, const struct trace *trace, int64_t time_ns, struct diag *diag)
{
	struct heap_stream *stream = heap_stream_new(trace, HEAP_ORDER_POINTS, time_ns, time_ns);
	struct heap_point at;
	uint32_t step = 0;
	int status;
	*points = (struct dx_points){0};
	while ((status = heap_stream_next(stream, &at, diag)) > 0 && at.time_ns <= time_ns) {
		if (at.time_ns < time_ns)
			continue;
		const struct dx_point point = point_of_event(&at, ++step);
		if (has_effect(&at))
			points_add(points, &point);
	}
	heap_stream_free(stream);
	return status < 0 ? status : 0;
}

/* What lies in a freed block ends at that block's point, and all of a heap at the Destroy's. */
static bool is_same(const struct dx_point *item, const struct dx_point *point)
{
	if (item->process != point->process || (point->thread != HEAP_NONE && item->thread != point->thread))
		return false;
	if (point->is_destroy)
		return item->is_end;
	return item->is_end == point->is_end && !item->is_destroy && item->address == point->address;
}

/* The first point of the nanosecond, or a later one. */
static uint32_t points_from(const struct dx_points *points, int64_t time_ns)
{
	uint32_t first = 0;
	for (uint32_t end = points->count; first < end;) {
		uint32_t middle = first + (end - first) / 2;
		if (points->items[middle].time_ns < time_ns)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

uint32_t dx_points_step(const struct dx_points *points, const struct dx_point *point)
{
	uint32_t i = points_from(points, point->time_ns);
	for (; i < points->count && points->items[i].time_ns == point->time_ns; i++)
		if (is_same(&points->items[i], point))
			return points->items[i].step;
	return 0;
}

struct dx_point dx_point_of(const struct trace_dictionary *dictionary, const struct heap_allocation *row,
			    const struct heap_details *details, bool is_end)
{
	return (struct dx_point){.time_ns = is_end ? row->end_ns : row->birth_ns,
				 .address = details->address,
				 .process = dictionary->threads[row->thread].process,
				 .thread = is_end ? details->end_thread : row->thread,
				 .is_end = is_end,
				 .is_destroy = is_end && row->end == HEAP_END_DESTROY};
}

/* ---- the list ---- */

/* The points of the nanosecond that ends: they are kept if they are several. */
static void nanosecond_end(struct dx_query *query, struct dx_points *crowded, struct dx_points *now, uint32_t steps)
{
	for (uint32_t i = 0; steps > 1 && i < now->count; i++)
		points_add(crowded, &now->items[i]);
	now->count = 0;
	if (crowded->capacity * sizeof(*crowded->items) > query->budget.limit_bytes)
		dx_stop(query, -1, "the steps of blocks' positions: more than the %zu MiB that -memory allows",
			query->budget.limit_bytes >> 20);
}

static void crowded_make(struct dx_query *query, struct dx_steps *steps)
{
	struct heap_stream *stream = heap_stream_new(query->session->trace, HEAP_ORDER_POINTS, INT64_MIN, INT64_MAX);
	struct dx_points now = {0};
	struct heap_point at;
	struct diag diag = {""};
	int64_t time_ns = INT64_MIN;
	uint32_t step = 0;
	int status = 0;
	for (uint64_t passed = 0; !query->is_stopped; passed++) {
		if (passed % PASS_STEP_EVENTS == 0 && !dx_step(query, "Position", -1))
			break;
		if ((status = heap_stream_next(stream, &at, &diag)) <= 0)
			break;
		if (at.time_ns != time_ns) {
			nanosecond_end(query, &steps->crowded, &now, step);
			time_ns = at.time_ns;
			step = 0;
		}
		const struct dx_point point = point_of_event(&at, ++step);
		if (has_effect(&at))
			points_add(&now, &point);
	}
	nanosecond_end(query, &steps->crowded, &now, step);
	if (status < 0)
		dx_stop(query, -1, "%s", diag.text);
	steps->has_crowded = !query->is_stopped;
	if (query->is_stopped)
		dx_points_fini(&steps->crowded);
	dx_points_fini(&now);
	heap_stream_free(stream);
}

/* ---- searches ---- */

static uint32_t step_read(struct dx_query *query, struct dx_steps *steps, const struct dx_point *point)
{
	struct dx_points points;
	struct diag diag = {""};
	for (unsigned i = 0; i < steps->asked_count; i++)
		if (steps->asked[i].time_ns == point->time_ns && steps->asked[i].is_destroy == point->is_destroy &&
		    steps->asked[i].is_end == point->is_end && steps->asked[i].address == point->address &&
		    steps->asked[i].thread == point->thread && steps->asked[i].process == point->process)
			return steps->asked[i].step;
	if (dx_points_at(&points, query->session->trace, point->time_ns, &diag))
		dx_stop(query, -1, "%s", diag.text);
	struct dx_point *kept = &steps->asked[steps->asked_count++];
	*kept = *point;
	kept->step = dx_points_step(&points, point);
	dx_points_fini(&points);
	return kept->step;
}

uint32_t dx_step_of(struct dx_query *query, const struct dx_point *point)
{
	struct dx_session *session = query->session;
	if (!session->steps) {
		session->steps = memory_zeroed(1, sizeof(*session->steps));
		dx_on_release(&session->whole, steps_end, session->steps);
	}
	struct dx_steps *steps = session->steps;
	if (!steps->has_crowded && session->dictionary->event_count > EVENTS_FEW && steps->asked_count < ASKED_MAX)
		return step_read(query, steps, point);
	if (!steps->has_crowded)
		crowded_make(query, steps);
	if (!steps->has_crowded)
		return 0;
	/* A nanosecond that is not in the list has one point. */
	uint32_t i = points_from(&steps->crowded, point->time_ns);
	bool is_crowded = i < steps->crowded.count && steps->crowded.items[i].time_ns == point->time_ns;
	return is_crowded ? dx_points_step(&steps->crowded, point) : 1;
}
