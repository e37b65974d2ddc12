/* SPDX-License-Identifier: MIT */
#include "match/moment.h"

#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "base/memory.h"
#include "match/point_stream.h"
#include "query/scan.h"
#include "trace/reader.h"

/* The points of one nanosecond, in order: point number i has step i + 1. */
struct instant {
	struct instant_point {
		uint64_t address;
		uint32_t thread;
		uint8_t kind, event; /* enum heap_point_kind, enum event_kind */
	} * points;
	size_t count, capacity;
};

static int points_read(struct instant *instant, const struct trace *trace, int64_t time_ns, struct diag *diag)
{
	struct heap_stream *stream = heap_stream_new(trace, HEAP_ORDER_POINTS, time_ns, time_ns);
	struct heap_run run;
	bool is_over = false;
	int status = 0;
	while (!is_over && (status = heap_stream_run(stream, &run, diag)) > 0) {
		for (uint32_t i = 0; i < run.count && !is_over; i++) {
			const struct point_place *place = &run.places[i];
			is_over = place->time_ns > time_ns;
			if (place->time_ns != time_ns)
				continue;
			memory_grow(instant->points, instant->count, instant->capacity);
			instant->points[instant->count++] = (struct instant_point){
				place->address, run.block->thread, (uint8_t)place->kind, run.block->kind[place->row]};
		}
	}
	heap_stream_free(stream);
	return status < 0 ? status : 0;
}

/* Return the step of the beginning of a block; 0: it has none here. */
static uint64_t birth_step(const struct instant *instant, const struct heap_allocation *row, uint64_t address)
{
	for (size_t i = 0; i < instant->count; i++) {
		const struct instant_point *point = &instant->points[i];
		if (point->kind == HEAP_POINT_BEGIN && point->address == address && point->thread == row->thread)
			return i + 1;
	}
	return 0;
}

/* Return the step of a block's end: its free, the destruction of its heap, or the beginning of another block in its
   place. POSITION_LAST: it is no point, such as the end of its process. */
static uint64_t end_step(const struct instant *instant, const struct heap_allocation *row,
			 const struct heap_details *details, uint64_t born)
{
	for (size_t i = (size_t)born; i < instant->count; i++) {
		const struct instant_point *point = &instant->points[i];
		bool is_its_thread = details->end_thread == HEAP_NONE || details->end_thread == point->thread;
		bool is_destroyed = row->end == HEAP_END_DESTROY && point->event == EVENT_DESTROY;
		bool is_replaced = row->end == HEAP_END_CONFLICT && point->kind == HEAP_POINT_BEGIN;
		if (is_its_thread && (is_destroyed || ((point->kind == HEAP_POINT_END || is_replaced) &&
						       point->address == details->address)))
			return i + 1;
	}
	return POSITION_LAST;
}

static void number_add(uint32_t **numbers, size_t *count, uint32_t number)
{
	*numbers = memory_resize(*numbers, *count + 1, sizeof(**numbers));
	(*numbers)[(*count)++] = number;
}

/* Which beginnings and ends of one nanosecond lie on both sides of the moment, so that each has to be looked up. */
struct mixture {
	bool has_births, has_ends;
};

/* A beginning at the position is applied, an end at it is not. */
static void row_place(struct heap_moment *moment, const struct instant *instant, const struct heap_allocation *row,
		      const struct heap_details *details, uint32_t number, struct mixture mixture)
{
	bool is_born = row->birth_ns == moment->at.time_ns && !(row->flags & HEAP_EARLIER);
	uint64_t born = is_born ? birth_step(instant, row, details->address) : 0;
	if (mixture.has_births && born > moment->at.step)
		number_add(&moment->later_births, &moment->birth_count, number);
	if (mixture.has_ends && row->end_ns == moment->at.time_ns && heap_end_is_given_back(row->end) &&
	    end_step(instant, row, details, born) >= moment->at.step)
		number_add(&moment->later_ends, &moment->end_count, number);
}

static void rows_place(struct heap_moment *moment, const struct instant *instant, const struct heap_table *table,
		       struct mixture mixture)
{
	int64_t time_ns = moment->at.time_ns;
	const struct heap_scan_plan plan = {time_ns,         time_ns, mixture.has_ends ? time_ns - 1 : INT64_MAX,
					    PACK_EVERYTHING, NULL,    NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for
			heap_rows_each (rows, i) {
				const struct heap_allocation row = heap_rows_get(rows, i);
				if (row.birth_ns == time_ns || row.end_ns == time_ns)
					row_place(moment, instant, &row, &rows->details[i], rows->first + i, mixture);
			}
	heap_scan_end(&scan);
}

static void moment_clear(struct heap_moment *moment)
{
	free(moment->later_births);
	free(moment->later_ends);
	*moment = (struct heap_moment){.is_asked = moment->is_asked, .at = moment->at};
}

int heap_moment_find(struct heap_moment *moment, const struct heap_table *table, struct diag *diag)
{
	struct instant instant = {.count = 0};
	uint64_t step = moment->at.step;
	moment_clear(moment);
	/* At the trace's end all calls are over, and processes that end then are still there. */
	if (moment->is_asked && moment->at.time_ns >= POSITION_END_NS) {
		moment->at.time_ns = table->duration_ns;
		moment->exits_are_later = true;
		return 0;
	}
	if (!moment->is_asked || step == POSITION_LAST)
		return 0;
	int error = points_read(&instant, table->trace, moment->at.time_ns, diag);
	if (!error) {
		/* Nearly always a nanosecond has one point at most, and so nothing is mixed. */
		const struct mixture mixture = {step > 0 && step<instant.count, step> 1 && step <= instant.count};
		moment->births_are_later = !step;
		moment->ends_are_later = step <= 1;
		moment->exits_are_later = true;
		if (mixture.has_births || mixture.has_ends)
			rows_place(moment, &instant, table, mixture);
	}
	free(instant.points);
	return error;
}
