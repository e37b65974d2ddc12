/* SPDX-License-Identifier: MIT */
/*
 * Events of single points equal those that are read with all points around them, in every byte. Threads reallocate
 * around each other, signal handlers call inside calls, and a nanosecond has several points.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/events.h"
#include "base/memory.h"
#include "base/order.h"
#include "dx/model/debugger.h"
#include "dx/model/event_reader.h"
#include "scene.h"
#include "table/table.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum {
	CALLS = 4000,
	THREADS = 4,
	ROUNDS = 400,
	INSIDE_MAX = 100 /* points inside a ReAlloc */,
	BUDGET_BYTES = 1 << 24
};

static const char path[] = "dx_events.xht";
static uint32_t seed = 1;

static uint32_t random_number(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

/* A call of a thread, with calls of signal handlers inside it; from its beginning to *time_ns. */
static void call_add(struct scene *scene, uint32_t thread, int64_t *time_ns, uint64_t address)
{
	int64_t from_ns = *time_ns;
	uint32_t handlers = random_number(8) ? 0 : 1 + random_number(2);
	for (uint32_t i = 0; i < handlers; i++) {
		scene->flags = EVENT_IN_SIGNAL;
		scene_alloc(scene, thread, *time_ns += random_number(2), address + 0x10 * (i + 1), 8);
	}
	if (handlers && !random_number(3))
		scene_event(scene, thread, EVENT_RESERVE, *time_ns);
	*time_ns += random_number(3);
	if (random_number(3))
		scene_alloc(scene, thread, *time_ns, address, 8);
	else if (random_number(3))
		scene_realloc(scene, thread, from_ns, *time_ns, address - 0x40, address, 8);
	else
		scene_free(scene, thread, *time_ns, address - 0x40);
	if (!random_number(20))
		scene_event(scene, thread, EVENT_LOCK, *time_ns);
	if (!random_number(100))
		scene_block(scene, thread);
}

/* Runs of calls of one thread are long, or short; is_alone: of the first thread there is no other. */
static struct trace *trace_make(bool is_alone)
{
	struct scene scene;
	scene_open(&scene, path);
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 0), threads[THREADS], which = 0;
	int64_t times_ns[THREADS] = {0};
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = scene_thread(&scene, process, 100 + i);
	for (uint32_t i = 0; i < CALLS; i++) {
		if (!is_alone && !random_number(i % 1000 < 500 ? 2 : 40))
			which = random_number(THREADS);
		/* Most wait for the others. */
		for (uint32_t k = 0; k < THREADS && random_number(4); k++)
			times_ns[which] = times_ns[which] < times_ns[k] - 2 ? times_ns[k] - 2 : times_ns[which];
		call_add(&scene, threads[which], &times_ns[which], 0x10000 + 0x40 * (uint64_t)i);
	}
	return scene_read(&scene, path);
}

/* By ordinal: the point, and the event that a reader of all points has for it. */
static struct dx_wanted *points_read(struct dx_query *query, uint32_t count)
{
	struct dx_wanted *points = memory_zeroed(count, sizeof(*points));
	for (uint32_t i = 0; i < count; i++) {
		struct dx_wanted *point = &points[i];
		*point = (struct dx_wanted){.point = i, .step = heap_table_step(query->session->table, i)};
		point->is_found = dx_event_find(query, i, &point->event);
		point->time_ns = point->event.row.time_ns;
		for (uint32_t k = i > INSIDE_MAX ? i - INSIDE_MAX : 0; k < i; k++)
			if (points[k].is_found && point->is_found && points[k].event.number == point->event.number)
				points[k].time_ns = point->event.row.time_ns - point->event.row.duration_ns;
	}
	return points;
}

COMPARE_BY_TWO(wanted_order, struct dx_wanted, time_ns, point)

static void events_equal(bool is_alone)
{
	struct trace *trace = trace_make(is_alone);
	struct heap_table *table = scene_match(trace);
	struct dx_session session = {.trace = trace, .table = table};
	struct dx_query query;
	uint64_t asked = 0, found = 0;
	dx_session_init(&session);
	dx_query_init(&query, &session, BUDGET_BYTES, NULL);
	struct dx_wanted *points = points_read(&query, table->point_count), *wanted;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t count = 1 + random_number(round % 2 ? 4 : 200);
		wanted = memory_zeroed(count, sizeof(*wanted));
		for (uint32_t i = 0; i < count; i++) {
			wanted[i] = points[random_number(table->point_count)];
			wanted[i].is_found = false;
		}
		qsort(wanted, count, sizeof(*wanted), wanted_order);
		dx_events_read(&query, wanted, count);
		assert_false(query.is_stopped);
		for (uint32_t i = 0; i < count; i++) {
			const struct dx_wanted *point = &points[wanted[i].point];
			bool is_twice = i && wanted[i - 1].point == wanted[i].point;
			asked += point->is_found && !is_twice;
			found += wanted[i].is_found;
			if (wanted[i].is_found && !is_twice)
				assert_memory_equal(&wanted[i].event, &point->event, sizeof(point->event));
		}
		free(wanted);
	}
	/* Others lie at the beginnings of event blocks. */
	assert_true(found > asked * 9 / 10);
	free(points);
	dx_query_fini(&query);
	dx_session_fini(&session);
	scene_remove(path, trace, table);
}

static void test_events_of_one_thread(void **state)
{
	(void)state;
	events_equal(true);
}

static void test_events_of_several_threads(void **state)
{
	(void)state;
	events_equal(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_of_one_thread),
		cmocka_unit_test(test_events_of_several_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
