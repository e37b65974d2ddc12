/* SPDX-License-Identifier: MIT */
/* Groups of allocations packed and unpacked, and which of them a filter selects: against what is told here row by
   row. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "query/filter.h"

enum { ROUNDS = 600, SITES = 50, THREADS = 7, HEAPS = 3, POINTS = 1 << 20 };
static const struct pack_limits limits = {SITES, THREADS, HEAPS, 1000000, POINTS};

static uint64_t seed = 1;

static uint64_t any(uint64_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 20) % limit;
}

/* A number of up to so many bits, small ones as often as large ones. */
static uint64_t any_bits(unsigned most)
{
	return any(UINT64_C(1) << any(most + 1));
}

static uint32_t rows_make(struct heap_allocation *rows)
{
	uint32_t count = 1 + (uint32_t)any(PACK_ROWS);
	unsigned size_bits = (unsigned)any(44), time_bits = (unsigned)any(40);
	bool has_one_site = any(2), are_all_open = !any(8);
	int64_t time_ns = (int64_t)any(1000) - 500;
	for (uint32_t i = 0; i < count; i++) {
		bool is_open = are_all_open || !any(4);
		time_ns += (int64_t)any_bits(time_bits);
		rows[i] = (struct heap_allocation){.birth_ns = time_ns,
						   .size_bytes = any_bits(size_bits),
						   .end = is_open ? HEAP_END_OPEN : (uint8_t)any(HEAP_END_OPEN),
						   .flags = (uint8_t)any_bits(6),
						   .site = has_one_site ? 3 : (uint32_t)any(SITES),
						   .thread = (uint32_t)any(THREADS),
						   .heap = any(2) ? (uint32_t)any(HEAPS) : HEAP_NONE,
						   .end_site = any(2) ? (uint32_t)any(SITES) : HEAP_NONE};
		rows[i].end_ns = is_open ? limits.open_ns : time_ns + (int64_t)any_bits(time_bits);
	}
	return count;
}

static struct bytes strips[PACK_STRIPS];

static void rows_pack(const struct heap_allocation *rows, uint32_t count)
{
	for (unsigned i = 0; i < PACK_STRIPS; i++)
		strips[i].size = 0;
	pack_rows(strips, rows, count);
	for (unsigned i = 0; i < PACK_COLUMNS; i++)
		assert_true(!strips[i].has_failed && bytes_reserve(&strips[i], PACK_SLACK_BYTES));
}

/* Unpack what was packed, without the last bytes of each strip. */
static bool rows_unpack(struct pack_columns *columns, uint32_t count, unsigned wanted, size_t cut)
{
	struct reading readings[PACK_STRIPS];
	for (unsigned i = 0; i < PACK_COLUMNS; i++) {
		size_t size = strips[i].size > cut ? strips[i].size - cut : 0;
		readings[i] = (struct reading){.at = strips[i].data, .end = strips[i].data + size};
	}
	return unpack_rows(readings, columns, count, &limits, wanted);
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PACK_STRIPS; i++)
		bytes_fini(&strips[i]);
	return 0;
}

/* ---- packing ---- */

static void test_round_trip(void **state)
{
	(void)state;
	static struct heap_allocation rows[PACK_ROWS];
	static struct pack_columns columns;
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t count = rows_make(rows);
		rows_pack(rows, count);
		assert_true(rows_unpack(&columns, count, PACK_ALL, 0));
		for (uint32_t i = 0; i < count; i++) {
			const struct heap_allocation row = pack_row(&columns, i);
			assert_memory_equal(&row, &rows[i], sizeof(row));
		}
	}
}

/* What was not asked for is not touched, and what was is the same as with all the others. */
static void test_some_columns(void **state)
{
	(void)state;
	static const unsigned wanted[] = {PACK_TIMES,     PACK_STATES,  PACK_SIZES, PACK_SITES,
					  PACK_END_SITES, PACK_THREADS, PACK_HEAPS, PACK_TIMES | PACK_SITES};
	static struct heap_allocation rows[PACK_ROWS];
	static struct pack_columns whole, some;
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t count = rows_make(rows);
		rows_pack(rows, count);
		unsigned columns = wanted[any(sizeof(wanted) / sizeof(*wanted))];
		memset(&some, 0x55, sizeof(some));
		assert_true(rows_unpack(&whole, count, PACK_ALL, 0));
		assert_true(rows_unpack(&some, count, columns, 0));
		for (unsigned column = 0; column < PACK_COLUMNS; column++)
			for (uint32_t i = 0; i < count; i++)
				assert_int_equal(some.numbers[column][i],
						 columns >> column & 1 ? whole.numbers[column][i] : 0x5555555555555555);
	}
}

/* One number at a time is what it must not be. */
static void test_limits(void **state)
{
	(void)state;
	static struct heap_allocation rows[PACK_ROWS];
	static struct pack_columns columns;
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t count = rows_make(rows), which = (uint32_t)any(count);
		unsigned wrong = 0;
		switch (any(6)) {
		case 0:
			rows[which].site = SITES + (uint32_t)any_bits(31);
			wrong = PACK_SITES;
			break;
		case 1:
			rows[which].end_site = SITES + (uint32_t)any_bits(31);
			wrong = PACK_END_SITES;
			break;
		case 2:
			rows[which].thread = THREADS + (uint32_t)any_bits(31);
			wrong = PACK_THREADS;
			break;
		case 3:
			rows[which].heap = HEAPS + (uint32_t)any_bits(31);
			wrong = PACK_HEAPS;
			break;
		case 4:
			rows[which].end = HEAP_END_OPEN + 1;
			wrong = PACK_STATES;
			break;
		case 5:
			rows[which].end = 8 + (uint8_t)any(8);
			wrong = PACK_STATES;
			break;
		}
		rows_pack(rows, count);
		assert_false(rows_unpack(&columns, count, PACK_ALL, 0));
		assert_false(rows_unpack(&columns, count, wrong, 0));
		assert_true(rows_unpack(&columns, count, PACK_SIZES, 0));
		assert_false(rows_unpack(&columns, count, PACK_ALL, 1));
		assert_false(rows_unpack(&columns, count, PACK_ALL, SIZE_MAX));
	}
}

/* ---- selecting ---- */

static bool is_within(struct heap_bounds bounds, uint64_t number)
{
	return number >= bounds.from && (number < bounds.to || bounds.to == UINT64_MAX);
}

static bool passes(const struct heap_filter *filter, const struct heap_allocation *row)
{
	bool is_given_back = row->end != HEAP_END_EXIT && row->end != HEAP_END_OPEN;
	return is_within(filter->size_bytes, row->size_bytes) &&
	       is_within(filter->lifetime_ns, (uint64_t)heap_lifetime_ns(row)) &&
	       !(row->flags & filter->unwanted_flags) && (is_given_back || !filter->is_closed) &&
	       (!filter->thread || filter->thread[row->thread]) && (!filter->site || filter->site[row->site]) &&
	       (!filter->free_site || (row->end_site != HEAP_NONE && filter->free_site[row->end_site])) &&
	       (!filter->heap || filter->heap[row->heap == HEAP_NONE ? HEAPS : row->heap]) &&
	       (!filter->classes || filter->classes & HEAP_CLASS_BIT(heap_class_of(row, filter->window)));
}

static uint8_t *any_table(uint8_t *table, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		table[i] = (uint8_t)any(2);
	return any(3) ? NULL : table;
}

static bool points_unpack(struct heap_details *details, const struct pack_columns *columns, uint32_t count,
			  uint32_t points)
{
	struct reading readings[PACK_STRIPS];
	const struct pack_limits of = {SITES, THREADS, HEAPS, 1000000, points};
	for (unsigned i = PACK_COLUMNS; i < PACK_LATE_ENDS; i++) {
		assert_true(!strips[i].has_failed && bytes_reserve(&strips[i], PACK_SLACK_BYTES));
		readings[i] = (struct reading){.at = strips[i].data, .end = strips[i].data + strips[i].size};
	}
	return unpack_details(readings, columns, details, 0, count, &of, PACK_POINTS);
}

/* Ordinals of beginnings ascend, some rows have none, and an end may lie before its beginning. */
static void test_points(void **state)
{
	(void)state;
	static struct heap_allocation rows[PACK_ROWS];
	static struct pack_columns columns;
	static struct heap_details details[PACK_ROWS], read[PACK_ROWS];
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t count = rows_make(rows), ordinal = (uint32_t)any(POINTS / 2), most = 0;
		for (uint32_t i = 0; i < count; i++) {
			ordinal += 1 + (uint32_t)any(round % 2 ? 3 : POINTS / PACK_ROWS / 2 - 1);
			details[i] = (struct heap_details){.previous = HEAP_NONE,
							   .birth_point = any(50) ? ordinal : HEAP_NONE,
							   .end_point = any(5) ? (uint32_t)any(POINTS) : HEAP_NONE};
			if (details[i].end_point == details[i].birth_point)
				details[i].end_point = HEAP_NONE;
			if (details[i].birth_point != HEAP_NONE && details[i].birth_point > most)
				most = details[i].birth_point;
			if (details[i].end_point != HEAP_NONE && details[i].end_point > most)
				most = details[i].end_point;
		}
		for (unsigned i = 0; i < PACK_STRIPS; i++)
			strips[i].size = 0;
		pack_details(strips, rows, details, 0, count);
		assert_true(points_unpack(read, &columns, count, most + 1));
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(read[i].birth_point, details[i].birth_point);
			assert_int_equal(read[i].end_point, details[i].end_point);
		}
		assert_true(!most || !points_unpack(read, &columns, count, most));
	}
}

static struct heap_bounds any_bounds(unsigned bits)
{
	static const struct heap_bounds edges[] = {
		{0, UINT64_MAX},          {0, 0},          {5, 5}, {9, 4},
		{UINT64_MAX, UINT64_MAX}, {1, UINT64_MAX}, {0, 1}, {0, UINT64_MAX - 1}};
	if (any(3))
		return edges[any(2) ? 0 : any(sizeof(edges) / sizeof(*edges))];
	uint64_t from = any_bits(bits);
	return (struct heap_bounds){from, from + any_bits(bits)};
}

static void test_select(void **state)
{
	(void)state;
	static struct heap_allocation rows[PACK_ROWS];
	static struct pack_columns columns;
	static uint8_t sites[SITES], free_sites[SITES], threads[THREADS], heaps[HEAPS + 1];
	size_t passed = 0, all = 0;
	for (int round = 0; round < 4 * ROUNDS; round++) {
		uint32_t count = rows_make(rows);
		struct heap_filter filter;
		heap_filter_init(&filter);
		filter.size_bytes = any_bounds(30);
		filter.lifetime_ns = any_bounds(30);
		filter.unwanted_flags = any(3) ? 0 : (uint8_t)any_bits(6);
		filter.is_closed = !any(4);
		filter.thread = any_table(threads, THREADS);
		filter.site = any_table(sites, SITES);
		filter.free_site = any_table(free_sites, SITES);
		filter.heap = any_table(heaps, HEAPS + 1);
		filter.heap_none = HEAPS;
		filter.classes = any(4) ? 0 : (unsigned)any(1 << HEAP_CLASS_NONE);
		filter.window.from_ns = (int64_t)any_bits(40);
		filter.window.to_ns = filter.window.from_ns + (int64_t)any_bits(40);
		/* Times of a damaged file: lifetimes that no number holds. */
		if (!any(16))
			rows[0].end_ns = INT64_MAX;
		rows_pack(rows, count);
		assert_true(rows_unpack(&columns, count, PACK_ALL, 0));
		uint64_t selected[PACK_ROWS / 64];
		heap_filter_select(selected, &filter, &columns, 0, count);
		for (uint32_t i = 0; i < PACK_ROWS; i++) {
			const struct heap_allocation row = pack_row(&columns, i);
			assert_int_equal(selected[i / 64] >> i % 64 & 1, i < count && passes(&filter, &row));
			passed += selected[i / 64] >> i % 64 & 1;
		}
		all += count;
	}
	assert_true(passed > all / 100 && passed < all / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_some_columns),
					   cmocka_unit_test(test_limits), cmocka_unit_test(test_points),
					   cmocka_unit_test(test_select)};
	return cmocka_run_group_tests(tests, NULL, end);
}
