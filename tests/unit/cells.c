/* SPDX-License-Identifier: MIT */
/* Cells against a scan of single blocks: sums of each class of a window, by each key, with any bounds; what was live at
   most; and trees, whatever is lumped. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/memory.h"
#include "cells/cell_index.h"
#include "cells/cell_sites.h"
#include "cells/cell_scan.h"
#include "cells/cell_tree.h"
#include "cells/cells.h"
#include "match/match.h"
#include "query/scan.h"
#include "scene.h"
#include "table/index_file.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { EVENTS = 6000, BLOCKS = 200, STACKS = 40, SCENES = 6, WINDOWS = 30 };

static char path[] = "cells.xht";

static uint64_t seed = 1;

static uint64_t any(uint64_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 20) % limit;
}

/* ---- a trace ---- */

/* Blocks of three threads in two processes, of which one ends early, with blocks from before. Times stand still, or
   leap. */
static struct trace *trace_make(void)
{
	struct scene scene;
	bool is_live[BLOCKS] = {false};
	uint32_t stacks[STACKS];
	int64_t time_ns = 1;
	scene_open(&scene, path);
	uint32_t processes[] = {scene_process(&scene, 100, TRACE_NONE, 0), scene_process(&scene, 200, TRACE_NONE, 0)};
	uint32_t threads[] = {scene_thread(&scene, processes[0], 100), scene_thread(&scene, processes[0], 101),
			      scene_thread(&scene, processes[1], 200)};
	for (uint32_t i = 0; i < STACKS; i++)
		stacks[i] = scene_stack(&scene, (uint64_t)0x1000, 0x1000 * (2 + any(3)), 0x1000 * (2 + any(5)),
					0x1000 * (10 + any(8)), (uint64_t)0);
	for (uint64_t i = 0; i < 5; i++)
		scene_earlier(&scene, threads[0], time_ns, 0x900000 + i * 0x1000, 100 + i);
	bool has_ended = false;
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t at = (uint32_t)any(BLOCKS), thread = at % 3;
		uint64_t address = 0x10000 + 0x1000 * (uint64_t)at;
		time_ns += any(3) ? (int64_t)any(20) : any(50) ? 0 : (int64_t)any(100000);
		if (i == EVENTS / 2) {
			scene_end(&scene, processes[1], time_ns, TRACE_END_EXIT, 0);
			has_ended = true;
		}
		if (thread == 2 && has_ended)
			continue;
		scene.stack = stacks[any(STACKS)];
		if (is_live[at] && !any(4))
			scene_realloc(&scene, threads[thread], time_ns, time_ns + 1, address, address, any(100000));
		else if (is_live[at])
			scene_free(&scene, threads[thread], time_ns, address);
		else
			scene_alloc(&scene, threads[thread], time_ns, address, any(2) ? any(100) : any(1 << 20));
		time_ns++;
		is_live[at] = !is_live[at] || scene.flags;
	}
	return scene_read(&scene, path);
}

/* ---- blocks, one by one ---- */

struct blocks {
	struct heap_allocation *items;
	size_t count, capacity;
};

static struct blocks blocks_read(const struct heap_table *table)
{
	struct blocks blocks = {.items = NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &HEAP_SCAN_ALL, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			memory_grow(blocks.items, blocks.count, blocks.capacity);
			blocks.items[blocks.count++] = heap_rows_get(rows, i);
		}
	heap_scan_end(&scan);
	return blocks;
}

static uint64_t live_at(const struct blocks *blocks, int64_t time_ns)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < blocks->count; i++)
		bytes += heap_is_live_at(&blocks->items[i], time_ns) ? blocks->items[i].size_bytes : 0;
	return bytes;
}

/* The most that was live behind one time, up to another: only beginnings make it more. */
static uint64_t most_between(const struct blocks *blocks, int64_t from_ns, int64_t to_ns)
{
	uint64_t most = live_at(blocks, from_ns);
	for (size_t i = 0; i < blocks->count; i++) {
		int64_t at_ns = blocks->items[i].birth_ns;
		if (at_ns <= from_ns || at_ns > to_ns)
			continue;
		uint64_t bytes = live_at(blocks, at_ns);
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* ---- sums by keys ---- */

/* What blocks are told apart by, besides times. */
static uint64_t key_of(uint32_t node, uint32_t thread, uint32_t heap, unsigned kind, unsigned size, unsigned life)
{
	return (((((uint64_t)node * 8 + thread) * 16 + heap % 16) * 4 + kind) * 64 + size) * 64 + life;
}

struct sums {
	struct map places;
	struct cell_sums *items;
	size_t capacity;
};

static struct cell_sums *sums_of(struct sums *sums, uint64_t key)
{
	bool added;
	uint32_t *place = map_add(&sums->places, key, &added);
	if (added) {
		uint32_t count = sums->places.count - 1;
		if (count >= sums->capacity) {
			sums->capacity = memory_capacity(sums->capacity, (size_t)count + 1);
			sums->items = memory_resize(sums->items, sums->capacity, sizeof(*sums->items));
		}
		*place = count;
		sums->items[count] = (struct cell_sums){0, 0, 0, 0};
	}
	return &sums->items[*place];
}

static void sums_fini(struct sums *sums)
{
	map_fini(&sums->places);
	free(sums->items);
}

/* The class by moments, as viewer/README.md has it. */
static enum heap_class class_by_moments(const struct cell_keys *keys, uint32_t from, uint32_t to)
{
	bool is_freed = keys->kind == CELL_FREED && keys->end <= to;
	if (keys->birth > to || keys->end <= from)
		return HEAP_CLASS_NONE;
	return keys->birth > from ? (is_freed ? HEAP_AIFI : HEAP_AIFO) : (is_freed ? HEAP_AOFI : HEAP_AOFO);
}

static void cells_sum(struct sums *sums, const struct cell_set *set, uint32_t from, uint32_t to, enum heap_class class)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct cell_keys keys = cell_keys_of(&set->cells[i]);
		if (class_by_moments(&keys, from, to) != class)
			continue;
		struct cell_sums *to_sums =
			sums_of(sums, key_of(keys.node, keys.thread, keys.heap, keys.kind, keys.size, keys.life));
		to_sums->blocks += set->cells[i].sums.blocks;
		to_sums->bytes += set->cells[i].sums.bytes;
		to_sums->reallocs += set->cells[i].sums.reallocs;
		to_sums->temporaries += set->cells[i].sums.temporaries;
	}
}

static unsigned naive_life(int64_t ns)
{
	unsigned class = 0;
	for (int64_t power = 100; ns >= power; power *= 10) {
		class ++;
		class += (double)ns >= (double)(int64_t)((double)power * 3.1622776601683795);
	}
	return class;
}

static void blocks_sum(struct sums *sums, const struct blocks *blocks, const uint32_t *nodes, struct heap_range window,
		       enum heap_class class)
{
	for (size_t i = 0; i < blocks->count; i++) {
		const struct heap_allocation *row = &blocks->items[i];
		unsigned size = 0;
		while (size < 48 && row->size_bytes >> size)
			size++;
		if (heap_class_of(row, window) != class)
			continue;
		unsigned kind = row->end == HEAP_END_OPEN   ? CELL_OPEN
				: row->end == HEAP_END_EXIT ? CELL_ENDED
							    : CELL_FREED;
		struct cell_sums *to_sums = sums_of(sums, key_of(nodes[row->site], row->thread,
								 row->heap == TRACE_NONE ? CELL_NO_HEAP : row->heap,
								 kind, size, cell_life_class(heap_lifetime_ns(row))));
		to_sums->blocks++;
		to_sums->bytes += row->size_bytes;
		to_sums->reallocs += (row->flags & HEAP_REALLOC) != 0;
		to_sums->temporaries += (row->flags & HEAP_TEMPORARY) != 0;
	}
}

static void sums_compare(const struct sums *found, struct sums *wanted)
{
	assert_int_equal(found->places.count, wanted->places.count);
	for (uint32_t i = 0; found->places.cells && i < 1u << found->places.bits; i++) {
		const struct map_cell *cell = &found->places.cells[i];
		if (!cell->used)
			continue;
		assert_memory_equal(&found->items[cell->value], sums_of(wanted, cell->key), sizeof(struct cell_sums));
	}
}

/* ---- tests ---- */

struct subject {
	struct trace *trace;
	struct heap_table *table;
	struct heap_filter filter;
	struct blocks blocks;
	uint32_t *nodes; /* by site: itself */
};

static void subject_make(struct subject *subject)
{
	subject->trace = trace_make();
	subject->table = scene_match(subject->trace);
	heap_filter_init_for(&subject->filter, subject->table);
	subject->blocks = blocks_read(subject->table);
	subject->nodes = memory_zeroed(subject->table->site_count, sizeof(uint32_t));
	for (uint32_t i = 0; i < subject->table->site_count; i++)
		subject->nodes[i] = i;
}

static void subject_fini(struct subject *subject)
{
	heap_filter_fini(&subject->filter);
	free(subject->blocks.items);
	free(subject->nodes);
	scene_remove(path, subject->trace, subject->table);
}

static void bounds_any(struct cell_bounds *bounds, const struct heap_table *table)
{
	int64_t last_ns = table->duration_ns, wanted[3];
	bool is_whole = !any(3);
	int64_t from_ns = is_whole ? -1 : (int64_t)any((uint64_t)last_ns),
		to_ns = is_whole ? last_ns : from_ns + 1 + (int64_t)any((uint64_t)(last_ns - from_ns));
	for (unsigned i = 0; i < 3; i++)
		wanted[i] = (int64_t)any((uint64_t)last_ns);
	cell_bounds_make(bounds, from_ns, to_ns, 1 + (uint32_t)any(400), wanted, (unsigned)any(4));
}

static void windows_compare(const struct subject *subject, const struct cell_bounds *bounds, const struct cell_set *set)
{
	for (unsigned i = 0; i < WINDOWS; i++) {
		uint32_t from = (uint32_t)any(bounds->count - 1),
			 to = from + 1 + (uint32_t)any(bounds->count - 1 - from);
		for (enum heap_class class = HEAP_AIFI; class < HEAP_CLASS_NONE; class ++) {
			struct sums found = {.items = NULL}, wanted = {.items = NULL};
			cells_sum(&found, set, from, to, class);
			blocks_sum(&wanted, &subject->blocks, subject->nodes,
				   (struct heap_range){bounds->times[from] + 1, bounds->times[to]}, class);
			sums_compare(&found, &wanted);
			sums_fini(&found);
			sums_fini(&wanted);
		}
	}
}

static void moments_compare(const struct subject *subject, const struct cell_bounds *bounds,
			    const struct cell_scan_result *result)
{
	for (uint32_t at = 0; at < bounds->count; at++) {
		uint64_t bytes = 0;
		for (uint32_t i = 0; i < result->set.count; i++) {
			const struct cell_keys keys = cell_keys_of(&result->set.cells[i]);
			bytes += keys.birth <= at && at < keys.end ? result->set.cells[i].sums.bytes : 0;
		}
		assert_int_equal(bytes, live_at(&subject->blocks, bounds->times[at]));
		if (at)
			assert_int_equal(result->max_bytes[at - 1],
					 most_between(&subject->blocks, bounds->times[at - 1], bounds->times[at]));
	}
}

static void calls_compare(const struct subject *subject, const struct cell_bounds *bounds, const uint64_t *calls)
{
	uint64_t found = 0, wanted = 0;
	int64_t from_ns = bounds->times[0], to_ns = bounds->times[bounds->count - 1];
	for (uint32_t i = 0; i + 1 < bounds->count; i++)
		found += calls[i];
	for (size_t i = 0; i < subject->blocks.count; i++) {
		const struct heap_allocation *row = &subject->blocks.items[i];
		bool is_earlier = row->flags & HEAP_EARLIER;
		wanted += !is_earlier && row->birth_ns > from_ns && row->birth_ns <= to_ns;
		wanted += row->end == HEAP_END_FREE && row->end_ns > from_ns && row->end_ns <= to_ns;
	}
	assert_int_equal(found, wanted);
}

static void cells_are_sums_of_blocks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SCENES; i++) {
		struct subject subject;
		subject_make(&subject);
		for (unsigned round = 0; round < 3; round++) {
			struct cell_bounds bounds;
			struct cell_scan_result result;
			bounds_any(&bounds, subject.table);
			const struct cell_scan scan = {.table = subject.table,
						       .filter = &subject.filter,
						       .bounds = &bounds,
						       .nodes = subject.nodes,
						       .most = UINT32_MAX};
			cell_scan(&scan, &result);
			assert_false(result.is_over);
			windows_compare(&subject, &bounds, &result.set);
			moments_compare(&subject, &bounds, &result);
			calls_compare(&subject, &bounds, result.calls);
			cell_scan_result_fini(&result);
			cell_bounds_fini(&bounds);
		}
		subject_fini(&subject);
	}
}

static void moments_count_bounds(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		struct cell_bounds bounds;
		int64_t wanted[] = {(int64_t)any(5000), (int64_t)any(5000)}, from_ns = (int64_t)any(3000) - 1;
		cell_bounds_make(&bounds, from_ns, from_ns + 1 + (int64_t)any(UINT64_C(1) << any(40)),
				 1 + (uint32_t)any(300), wanted, 2);
		for (unsigned k = 0; k < 300; k++) {
			uint32_t at = (uint32_t)any(bounds.count), moment = 0;
			int64_t time_ns = bounds.times[at] + (int64_t)any(5) - 2;
			while (moment < bounds.count && bounds.times[moment] < time_ns)
				moment++;
			assert_int_equal(cell_bounds_moment(&bounds, time_ns), moment);
		}
		assert_int_equal(cell_bounds_find(&bounds, bounds.times[bounds.count / 2]), bounds.count / 2);
		cell_bounds_fini(&bounds);
	}
}

static void classes_of_lifetimes_are_two_a_power(void **state)
{
	(void)state;
	int64_t power = 100;
	assert_int_equal(cell_life_class(-1), 0);
	for (uint8_t class = 1; class < 34; class += 2, power *= 10) {
		assert_int_equal(cell_life_class(power - 1), class - 1);
		assert_int_equal(cell_life_class(power), class);
		assert_int_equal(cell_life_class(power * 3), class);
		assert_int_equal(cell_life_class(power / 100 * 317), class + 1);
	}
	assert_int_equal(cell_life_class(INT64_MAX), 34);
	for (unsigned i = 0; i < 10000; i++) {
		int64_t ns = (int64_t)any(UINT64_C(1) << any(43));
		assert_int_equal(cell_life_class(ns), naive_life(ns));
	}
}

/* Whatever is lumped, sums by the function that asked stay, and each path lies where its frames are. */
static void lumping_loses_the_path_only(void **state)
{
	struct subject subject;
	(void)state;
	subject_make(&subject);
	struct symbols *symbols = symbols_new();
	struct heap_names *names = heap_names_new(subject.trace, symbols, false);
	for (uint32_t i = 0; i < subject.table->site_count; i++)
		subject.nodes[i] = heap_names_site(names, &subject.table->sites[i]);
	struct cell_bounds bounds;
	struct cell_scan_result result;
	struct cell_paths paths;
	cell_bounds_make(&bounds, -1, subject.table->duration_ns, 64, NULL, 0);
	const struct cell_scan scan = {.table = subject.table,
				       .filter = &subject.filter,
				       .bounds = &bounds,
				       .nodes = subject.nodes,
				       .most = UINT32_MAX};
	cell_scan(&scan, &result);
	cell_paths_find(&paths, &result.set, 30, names, NULL, NULL, 0);
	assert_true(paths.count > 20);
	for (uint32_t kept = 0; kept <= paths.count; kept++) {
		struct cell_tree tree;
		struct cell_set set = {.cells = NULL};
		struct sums found = {.items = NULL}, wanted = {.items = NULL};
		cell_tree_make(&tree, &paths, kept, paths.count, names);
		assert_true(cell_set_add_changed(&set, &result.set, &(struct cell_change){.nodes = tree.of_path},
						 UINT32_MAX));
		for (uint32_t i = 0; i < tree.count; i++)
			assert_true(tree.nodes[i].parent <= i && tree.nodes[i].asker <= i);
		for (uint32_t i = 0; i < set.count; i++) {
			const struct cell_keys keys = cell_keys_of(&set.cells[i]);
			sums_of(&found, tree.nodes[tree.nodes[keys.node].asker].name)->bytes += set.cells[i].sums.bytes;
		}
		for (uint32_t i = 0; i < result.set.count; i++) {
			const struct cell_keys keys = cell_keys_of(&result.set.cells[i]);
			uint32_t name = keys.node ? heap_names_frame(names, keys.node)->name : CELL_NO_STACK;
			sums_of(&wanted, name)->bytes += result.set.cells[i].sums.bytes;
		}
		sums_compare(&found, &wanted);
		assert_true(tree.lumped_stacks <= paths.count - kept);
		sums_fini(&found);
		sums_fini(&wanted);
		cell_set_fini(&set);
		cell_tree_fini(&tree);
	}
	cell_paths_fini(&paths);
	cell_scan_result_fini(&result);
	cell_bounds_fini(&bounds);
	heap_names_free(names);
	symbols_free(symbols);
	subject_fini(&subject);
}

/* With room for few cells, sites are lumped, and then intervals merged: all sums without the stack are the same. */
static void little_room_loses_stacks_first(void **state)
{
	static const uint32_t rooms[] = {1000000, 3000, 2850, 2700, 2500, 2300};
	struct subject subject;
	struct diag diag = {""};
	(void)state;
	subject_make(&subject);
	uint32_t lumped_before = 0;
	for (unsigned i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		struct cell_sites base = {.lumped = NULL};
		struct cell_set set = {.cells = NULL};
		uint32_t peak = CELL_NO_BOUND, lumped = 0;
		cell_bounds_make(&base.bounds, -1, subject.table->duration_ns, 64, &subject.table->peak.time_ns, 1);
		peak = cell_bounds_find(&base.bounds, subject.table->peak.time_ns);
		assert_int_equal(cell_sites_make(&base, subject.table, &subject.filter, NULL, rooms[i], &peak, &diag),
				 0);
		assert_true(base.found.set.count <= rooms[i]);
		assert_int_equal(base.bounds.times[peak], subject.table->peak.time_ns);
		memset(subject.nodes, 0, subject.table->site_count * sizeof(*subject.nodes));
		cell_set_add_changed(&set, &base.found.set, &(struct cell_change){.nodes = subject.nodes}, UINT32_MAX);
		windows_compare(&subject, &base.bounds, &set);
		moments_compare(&subject, &base.bounds, &base.found);
		calls_compare(&subject, &base.bounds, base.found.calls);
		for (uint32_t site = 0; site < subject.table->site_count; site++)
			lumped += base.lumped[site];
		assert_true(lumped >= lumped_before);
		lumped_before = lumped;
		cell_set_fini(&set);
		cell_sites_fini(&base);
	}
	assert_true(lumped_before > 0);
	struct cell_sites base = {.lumped = NULL};
	uint32_t peak = CELL_NO_BOUND;
	cell_bounds_make(&base.bounds, -1, subject.table->duration_ns, 64, NULL, 0);
	assert_int_equal(cell_sites_make(&base, subject.table, &subject.filter, NULL, 3, &peak, &diag), -E2BIG);
	cell_sites_fini(&base);
	subject_fini(&subject);
}

/* What an index keeps is what a pass finds, also behind a file. */
static void kept_cells_are_those_of_a_pass(void **state)
{
	static const char index_path[] = "cells.index";
	static const char *const paths[] = {index_path};
	(void)state;
	for (unsigned i = 0; i < SCENES; i++) {
		struct subject subject;
		struct diag diag = {""};
		struct cell_sites kept = {.lumped = NULL}, found = {.lumped = NULL};
		uint32_t peak, same_peak;
		subject_make(&subject);
		heap_table_free(subject.table);
		struct heap_build how = {.fd = heap_index_begin(".", &diag), .reserved_bytes = HEAP_INDEX_HEAD_BYTES};
		assert_int_equal(heap_table_build(&subject.table, subject.trace, &how, &diag), 0);
		cells_keep(subject.table, NULL);
		assert_int_equal(heap_index_write(subject.table, path, index_path, &diag), 0);
		heap_table_free(subject.table);
		assert_int_equal(heap_index_read(&subject.table, subject.trace, path, paths, 1), 0);
		assert_true(cell_index_is_of(subject.table, &subject.filter));
		assert_true(cell_index_read(&kept, subject.table, &peak));
		assert_int_equal(kept.bounds.times[peak], subject.table->peak.time_ns);
		cell_bounds_take(&found.bounds, kept.bounds.times, kept.bounds.count);
		same_peak = peak;
		assert_int_equal(
			cell_sites_make(&found, subject.table, &subject.filter, NULL, UINT32_MAX, &same_peak, &diag),
			0);
		cell_set_sort(&found.found.set);
		assert_int_equal(kept.found.set.count, found.found.set.count);
		assert_memory_equal(kept.found.set.cells, found.found.set.cells,
				    found.found.set.count * sizeof(struct cell));
		uint32_t intervals = found.bounds.count - 1;
		assert_true(intervals > CELLS_INTERVALS_USUAL / 2 && intervals <= CELLS_INTERVALS_USUAL + 1);
		assert_memory_equal(kept.found.calls, found.found.calls, intervals * sizeof(uint64_t));
		assert_memory_equal(kept.found.max_bytes, found.found.max_bytes, intervals * sizeof(uint64_t));
		assert_memory_equal(kept.lumped, found.lumped, subject.table->site_count * sizeof(uint32_t));
		cell_sites_fini(&kept);
		cell_sites_fini(&found);
		unlink(index_path);
		subject_fini(&subject);
	}
}

/* Whatever the bytes are, each number that is read is possible. */
static void damaged_cells_are_refused(void **state)
{
	struct subject subject;
	unsigned refused = 0;
	(void)state;
	subject_make(&subject);
	cells_keep(subject.table, NULL);
	struct heap_kept_cells *kept = &subject.table->kept_cells;
	for (unsigned i = 0; i < 3000; i++) {
		struct cell_sites sites = {.lumped = NULL};
		uint32_t peak;
		uint64_t at = any(2) ? any(kept->bytes) : any(kept->bytes < 1000 ? kept->bytes : 1000),
			 bytes = kept->bytes;
		uint8_t was = kept->data[at];
		kept->data[at] = (uint8_t)any(256);
		kept->bytes = any(8) ? bytes : at;
		bool is_read = cell_index_read(&sites, subject.table, &peak);
		for (uint32_t k = 0; is_read && k < sites.found.set.count; k++) {
			const struct cell_keys keys = cell_keys_of(&sites.found.set.cells[k]);
			assert_true(keys.node < subject.table->site_count && keys.end <= sites.bounds.count);
		}
		refused += !is_read;
		kept->data[at] = was;
		kept->bytes = bytes;
		cell_sites_fini(&sites);
	}
	assert_true(refused > 1000);
	assert_true(*subject.table->is_damaged);
	subject_fini(&subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_sums_of_blocks),
		cmocka_unit_test(moments_count_bounds),
		cmocka_unit_test(classes_of_lifetimes_are_two_a_power),
		cmocka_unit_test(lumping_loses_the_path_only),
		cmocka_unit_test(little_room_loses_stacks_first),
		cmocka_unit_test(kept_cells_are_those_of_a_pass),
		cmocka_unit_test(damaged_cells_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
