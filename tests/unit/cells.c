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

#include <cmocka.h>

#include "base/map.h"
#include "base/memory.h"
#include "cells/cell_scan.h"
#include "cells/cell_tree.h"
#include "cells/cells.h"
#include "match/match.h"
#include "query/scan.h"
#include "scene.h"
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
	uint64_t *wanted = memory_zeroed(bounds->count + 1, sizeof(*wanted)); /* by moment */
	for (size_t i = 0; i < subject->blocks.count; i++) {
		const struct heap_allocation *row = &subject->blocks.items[i];
		wanted[row->flags & HEAP_EARLIER ? 0 : cell_bounds_moment(bounds, row->birth_ns)]++;
		wanted[row->end == HEAP_END_FREE ? cell_bounds_moment(bounds, row->end_ns) : 0]++;
	}
	assert_memory_equal(calls, &wanted[1], (bounds->count - 1) * sizeof(*calls));
	free(wanted);
}

/* Cells with these bounds, from all blocks or from fine cells. */
static void scan_compare(const struct subject *subject, const struct cell_bounds *bounds, const struct fine_cells *fine)
{
	struct cell_scan_result result;
	const struct cell_scan scan = {.table = subject->table,
				       .filter = &subject->filter,
				       .bounds = bounds,
				       .nodes = subject->nodes,
				       .most = UINT32_MAX,
				       .node_count = subject->table->site_count,
				       .fine = fine};
	cell_scan(&scan, &result);
	assert_false(result.is_over);
	windows_compare(subject, bounds, &result.set);
	moments_compare(subject, bounds, &result);
	calls_compare(subject, bounds, result.calls);
	cell_scan_result_fini(&result);
}

static void cells_are_sums_of_blocks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SCENES; i++) {
		struct subject subject;
		subject_make(&subject);
		for (unsigned round = 0; round < 3; round++) {
			struct cell_bounds bounds;
			bounds_any(&bounds, subject.table);
			scan_compare(&subject, &bounds, NULL);
			cell_bounds_fini(&bounds);
		}
		subject_fini(&subject);
	}
}

static void fine_make(struct fine_cells *fine, const struct subject *subject, uint32_t intervals)
{
	assert_true(fine_cells_make(fine, subject->table, &subject->filter, intervals, UINT32_MAX));
	assert_true(fine->count);
}

/* Any bounds, most of which lie within the fine intervals, and those that a picture has. */
static void fine_cells_are_sums_of_blocks(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SCENES; i++) {
		struct subject subject;
		struct fine_cells fine;
		struct cell_bounds bounds;
		subject_make(&subject);
		const int64_t last_ns = subject.table->duration_ns, from_ns = last_ns / 7, wanted = last_ns / 3;
		fine_make(&fine, &subject, 1 + (uint32_t)any(1000));
		bounds_any(&bounds, subject.table);
		scan_compare(&subject, &bounds, &fine);
		cell_bounds_fini(&bounds);
		assert_false(fine_cells_bounds(&fine, &bounds, from_ns, last_ns, 300, &wanted, 1));
		fine_cells_fini(&fine);
		fine_make(&fine, &subject, 1000);
		assert_true(fine_cells_bounds(&fine, &bounds, from_ns, last_ns, 200, &wanted, 1));
		assert_in_range(bounds.count, 200, 202);
		assert_int_equal(bounds.times[0], from_ns);
		assert_int_equal(bounds.times[bounds.count - 1], last_ns);
		assert_int_not_equal(cell_bounds_find(&bounds, wanted), CELL_NO_BOUND);
		scan_compare(&subject, &bounds, &fine);
		cell_bounds_fini(&bounds);
		fine_cells_fini(&fine);
		assert_true(fine_cells_make(&fine, subject.table, &subject.filter, 1000, 100));
		assert_int_equal(fine.count, 0);
		fine_cells_fini(&fine);
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
	uint64_t power = 100; /* the one after the last is beyond int64_t */
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

/* Names, and the paths of a pass over all of a trace. */
struct named {
	struct symbols *symbols;
	struct heap_names *names;
	struct heap_cull cull;
	struct cell_bounds bounds;
	struct cell_scan_result result;
	struct cell_paths paths;
	const struct cell_path **of_node;
};

static void named_make(struct named *named, struct subject *subject)
{
	named->symbols = symbols_new();
	named->names = heap_names_new(subject->trace, named->symbols, false);
	for (uint32_t i = 0; i < subject->table->site_count; i++)
		subject->nodes[i] = heap_names_site(named->names, &subject->table->sites[i]);
	cell_bounds_make(&named->bounds, -1, subject->table->duration_ns, 64, NULL, 0);
	const struct cell_scan scan = {.table = subject->table,
				       .filter = &subject->filter,
				       .bounds = &named->bounds,
				       .nodes = subject->nodes,
				       .most = UINT32_MAX,
				       .node_count = heap_names_node_count(named->names),
				       .moment = 30};
	cell_scan(&scan, &named->result);
	named->cull = (struct heap_cull){.with_entries = false};
	heap_cull_use_default(&named->cull);
	heap_cull_prepare(&named->cull, &(struct wrapper_source){subject->table, named->names}, 1);
	cell_paths_find(&named->paths, named->result.weights, named->names, &named->cull);
	named->of_node = memory_zeroed(named->paths.node_count, sizeof(*named->of_node));
	for (uint32_t i = 0; i < named->paths.count; i++)
		named->of_node[named->paths.items[i].node] = &named->paths.items[i];
}

static void named_fini(struct named *named)
{
	cell_paths_fini(&named->paths);
	free(named->of_node);
	cell_scan_result_fini(&named->result);
	cell_bounds_fini(&named->bounds);
	heap_cull_forget(&named->cull);
	heap_cull_fini(&named->cull);
	heap_names_free(named->names);
	symbols_free(named->symbols);
}

static uint64_t class_key(uint32_t name, bool is_plain, const struct cell_keys *keys)
{
	return (uint64_t)name << 16 | (is_plain ? UINT16_MAX : (uint64_t)keys->size << 8 | keys->life);
}

/* Cells of a tree that lose classes are those that they would have been without them. */
static void thinning_check(const struct named *named, const struct cell_kept *kept, struct cell_tree *tree,
			   const struct cell_set *set)
{
	struct cell_kept fewer = *kept;
	struct cell_set thin = {.cells = NULL}, wanted = {.cells = NULL};
	uint32_t *same = memory_zeroed(tree->count, sizeof(*same));
	bool *is_plain = memory_zeroed(tree->count, sizeof(*is_plain));
	for (uint32_t i = 0; i < tree->count; i++)
		same[i] = i;
	fewer.classed /= 2;
	cell_tree_make(tree, &named->paths, &fewer);
	cell_tree_spread_plain(tree, &named->paths, is_plain);
	const struct cell_change again = {same, is_plain}, at_once = {tree->of_path, tree->is_plain};
	assert_true(cell_set_add_changed(&thin, set, &again, UINT32_MAX));
	assert_true(cell_set_add_changed(&wanted, &named->result.set, &at_once, UINT32_MAX));
	cell_set_sort(&thin);
	cell_set_sort(&wanted);
	assert_int_equal(thin.count, wanted.count);
	assert_memory_equal(thin.cells, wanted.cells, wanted.count * sizeof(*wanted.cells));
	cell_set_fini(&thin);
	cell_set_fini(&wanted);
	free(same);
	free(is_plain);
}

/* Sums by the function that asked, and by the classes that are left, are those of the cells that were found. */
static void lumping_check(const struct named *named, const struct cell_kept *kept)
{
	struct cell_tree tree = {.nodes = NULL};
	struct cell_set set = {.cells = NULL};
	struct sums found = {.items = NULL}, wanted = {.items = NULL};
	cell_tree_make(&tree, &named->paths, kept);
	const struct cell_change change = {tree.of_path, tree.is_plain};
	assert_true(cell_set_add_changed(&set, &named->result.set, &change, UINT32_MAX));
	for (uint32_t i = 0; i < tree.count; i++)
		assert_true(tree.nodes[i].parent <= i && tree.nodes[i].asker <= i);
	for (uint32_t i = 0; i < set.count; i++) {
		const struct cell_keys keys = cell_keys_of(&set.cells[i]);
		uint32_t name = tree.nodes[tree.nodes[keys.node].asker].name;
		sums_of(&found, class_key(name, keys.size == CELL_SIZE_ANY && keys.life == CELL_LIFE_ANY, &keys))
			->bytes += set.cells[i].sums.bytes;
	}
	for (uint32_t i = 0; i < named->result.set.count; i++) {
		const struct cell_keys keys = cell_keys_of(&named->result.set.cells[i]);
		const struct cell_path *path = named->of_node[keys.node];
		uint32_t name = path->rank < kept->functions ? path->name : CELL_SMALLER_STACKS;
		sums_of(&wanted, class_key(name, tree.is_plain[keys.node], &keys))->bytes +=
			named->result.set.cells[i].sums.bytes;
	}
	sums_compare(&found, &wanted);
	assert_int_equal(tree.lumped_functions, named->paths.functions - kept->functions);
	sums_fini(&found);
	sums_fini(&wanted);
	thinning_check(named, kept, &tree, &set);
	cell_set_fini(&set);
	cell_tree_fini(&tree);
}

/* Whatever is lumped, sums by functions that are kept stay, and each path lies where its frames are. */
static void lumping_loses_the_path_only(void **state)
{
	struct subject subject;
	struct named named;
	(void)state;
	subject_make(&subject);
	named_make(&named, &subject);
	assert_true(named.paths.count > 20 && named.paths.functions > 3);
	for (uint32_t paths = 0; paths <= named.paths.count; paths++)
		for (uint32_t functions = 0; functions <= named.paths.functions; functions++)
			lumping_check(&named, &(struct cell_kept){.functions = functions,
								  .paths = paths,
								  .levels = (uint32_t)any(CELL_LEVELS + 1),
								  .classed = (uint32_t)any(named.paths.count + 1)});
	named_fini(&named);
	subject_fini(&subject);
}

/* A sample has the same cells of some keys, as many as it says; weights, calls and peaks are those of all. */
static void samples_are_parts_of_all_cells(void **state)
{
	static const uint32_t rooms[] = {3000, 1500, 700, 300};
	struct subject subject;
	struct named named;
	(void)state;
	subject_make(&subject);
	named_make(&named, &subject);
	for (unsigned i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		uint32_t count = heap_names_node_count(named.names);
		struct cell_scan scan = {.table = subject.table,
					 .filter = &subject.filter,
					 .bounds = &named.bounds,
					 .nodes = subject.nodes,
					 .most = rooms[0],
					 .sample_most = rooms[i],
					 .node_count = count,
					 .moment = 30};
		struct cell_scan_result result;
		struct cell_set thin = {.cells = NULL};
		cell_scan(&scan, &result);
		assert_false(result.is_over);
		assert_true(result.level && result.set.count <= rooms[i]);
		for (uint32_t k = 0; k < named.result.set.count; k++) {
			const struct cell *cell = &named.result.set.cells[k];
			if (cell_is_in(cell, result.level))
				*cell_set_at(&thin, cell, UINT32_MAX) = cell->sums;
		}
		cell_set_sort(&thin);
		cell_set_sort(&result.set);
		assert_int_equal(thin.count, result.set.count);
		assert_memory_equal(thin.cells, result.set.cells, thin.count * sizeof(*thin.cells));
		assert_memory_equal(result.weights, named.result.weights, count * sizeof(*result.weights));
		assert_memory_equal(result.calls, named.result.calls, (named.bounds.count - 1) * sizeof(uint64_t));
		assert_memory_equal(result.max_bytes, named.result.max_bytes,
				    (named.bounds.count - 1) * sizeof(uint64_t));
		cell_set_fini(&thin);
		cell_scan_result_fini(&result);
		/* Without weights there is no sample. */
		scan.node_count = 0;
		cell_scan(&scan, &result);
		assert_true(result.is_over);
		cell_scan_result_fini(&result);
	}
	named_fini(&named);
	subject_fini(&subject);
}

/* In each stretch of a thread's time a sample has about as many beginnings as it says. */
static void samples_are_spread_over_times(void **state)
{
	enum { THREADS = 100, STRETCHES = 8, BIRTHS = 64, LEVEL = 3, WANTED = BIRTHS >> LEVEL };
	(void)state;
	for (uint32_t i = 0; i < THREADS * STRETCHES; i++) {
		uint32_t found = 0;
		for (uint32_t k = 0; k < BIRTHS; k++) {
			uint32_t birth = i % STRETCHES * BIRTHS + k;
			const struct cell_keys keys = {.thread = i / STRETCHES, .birth = birth, .end = birth};
			const struct cell cell = cell_with(&keys);
			found += cell_is_in(&cell, LEVEL);
		}
		assert_in_range(found, WANTED - 2, WANTED + 2);
	}
}

/* The level of the sample of a trace that has so many stacks with one block each, and then blocks of one stack. */
static unsigned level_of(uint32_t stacks, bool is_guessing)
{
	enum { ROWS = 6000, MOST = 390, SAMPLE_MOST = 100 };
	struct scene scene;
	scene_open(&scene, path);
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	for (uint32_t i = 0; i < ROWS; i++) {
		uint32_t stack = i < stacks ? i : 0;
		scene.stack = scene_stack(&scene, (uint64_t)0x1000 + 16 * stack, (uint64_t)0);
		scene_alloc(&scene, thread, (int64_t)i + 1, 0x10000 + 0x100 * (uint64_t)i, 1);
	}
	struct trace *trace = scene_read(&scene, path);
	struct heap_table *table = scene_match(trace);
	struct heap_filter filter;
	struct cell_bounds bounds;
	struct cell_scan_result result;
	heap_filter_init_for(&filter, table);
	uint32_t *nodes = memory_zeroed(table->site_count, sizeof(*nodes));
	bool *sites = memory_zeroed(table->site_count, sizeof(*sites));
	for (uint32_t i = 0; i < table->site_count; i++) {
		nodes[i] = i;
		sites[i] = true;
	}
	cell_bounds_make(&bounds, -1, table->duration_ns, 64, NULL, 0);
	const struct cell_scan scan = {.table = table,
				       .filter = &filter,
				       .bounds = &bounds,
				       .nodes = nodes,
				       .sites = is_guessing ? NULL : sites,
				       .most = MOST,
				       .sample_most = SAMPLE_MOST,
				       .node_count = table->site_count};
	cell_scan(&scan, &result);
	unsigned level = result.level;
	cell_scan_result_fini(&result);
	cell_bounds_fini(&bounds);
	free(nodes);
	free(sites);
	heap_filter_fini(&filter);
	scene_remove(path, trace, table);
	return level;
}

/* Cells that begin as if they were too many make no sample, unless they are. */
static void a_guess_changes_no_sample(void **state)
{
	(void)state;
	assert_int_equal(level_of(300, true), 0);
	assert_int_equal(level_of(300, false), 0);
	for (uint32_t stacks = 1000; stacks <= 5000; stacks += 1000)
		assert_int_equal(level_of(stacks, true), level_of(stacks, false));
}

/* The number behind a key of an answer's head. */
static uint64_t head_number(const char *head, const char *key)
{
	const char *at = strstr(head, key);
	assert_non_null(at);
	return strtoull(at + strlen(key), NULL, 10);
}

/* Of more nodes than an answer may have, the heavy paths stay. */
static void what_is_too_much_is_lumped(void **state)
{
	enum { LIGHT = 30000, HEAVY = 10, HEAVY_BYTES = 1 << 20 };
	struct scene scene;
	struct sink out;
	struct diag diag = {""};
	struct heap_filter filter;
	(void)state;
	scene_open(&scene, path);
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	for (uint32_t i = 0; i < LIGHT + HEAVY; i++) {
		bool is_heavy = i % (LIGHT / HEAVY) == 0 && i < LIGHT;
		scene.stack = scene_stack(&scene, (uint64_t)0x1000, (uint64_t)0x2000, (uint64_t)0x100000 + 16 * i,
					  (uint64_t)0);
		scene_alloc(&scene, thread, (int64_t)i + 1, 0x10000 + 0x100 * (uint64_t)i,
			    is_heavy ? HEAVY_BYTES : 1 + i % 100);
	}
	struct trace *trace = scene_read(&scene, path);
	struct heap_table *table = scene_match(trace);
	struct symbols *symbols = symbols_new();
	struct heap_names *names = heap_names_new(trace, symbols, false);
	heap_filter_init_for(&filter, table);
	const struct cells_source source = {.table = table, .names = names, .filter = &filter};
	sink_to_memory(&out);
	assert_int_equal(cells_write(&out, &source, &(struct cells_request){.has_range = false}, &diag), 0);
	const char *head = out.buffer + 16;
	assert_in_range(head_number(head, "\"node_count\": "), CELLS_NODES_MAX / 4, CELLS_NODES_MAX);
	assert_true(head_number(head, "\"cell_count\": ") <= CELLS_MAX);
	assert_in_range(head_number(head, "\"lumped_stacks\": "), 1, LIGHT);
	/* The light ones have 50 bytes on average. */
	assert_in_range(head_number(head, "\"lumped_bytes\": "), 1, LIGHT * 100);
	sink_end(&out);
	heap_filter_fini(&filter);
	heap_names_free(names);
	symbols_free(symbols);
	scene_remove(path, trace, table);
}

/* What is cancelled says so, writes nothing, and keeps nothing. */
static void cancelled_cells_are_not_written(void **state)
{
	struct subject subject;
	struct sink out;
	struct diag diag = {""};
	const bool is_cancelled = true;
	(void)state;
	subject_make(&subject);
	struct symbols *symbols = symbols_new();
	struct heap_names *names = heap_names_new(subject.trace, symbols, false);
	subject.filter.is_cancelled = &is_cancelled;
	const struct cells_source source = {.table = subject.table, .names = names, .filter = &subject.filter};
	sink_to_memory(&out);
	assert_int_equal(cells_write(&out, &source, &(struct cells_request){.has_range = false}, &diag), -ECANCELED);
	assert_int_equal(out.used, 0);
	subject.filter.is_cancelled = NULL;
	const struct cells_request empty = {.has_range = true, .from_ns = 5, .to_ns = 5},
				   nowhere = {.node = "app!nowhere"};
	assert_int_equal(cells_write(&out, &source, &empty, &diag), -EINVAL);
	assert_int_equal(cells_write(&out, &source, &nowhere, &diag), -ENOENT);
	assert_int_equal(out.used, 0);
	assert_int_equal(cells_write(&out, &source, &(struct cells_request){.has_range = false}, &diag), 0);
	assert_true(out.used > 1000 && !memcmp(out.buffer, "XHCELLS1", 8));
	sink_end(&out);
	heap_names_free(names);
	symbols_free(symbols);
	subject_fini(&subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_sums_of_blocks),      cmocka_unit_test(fine_cells_are_sums_of_blocks),
		cmocka_unit_test(moments_count_bounds),          cmocka_unit_test(classes_of_lifetimes_are_two_a_power),
		cmocka_unit_test(lumping_loses_the_path_only),   cmocka_unit_test(samples_are_parts_of_all_cells),
		cmocka_unit_test(samples_are_spread_over_times), cmocka_unit_test(a_guess_changes_no_sample),
		cmocka_unit_test(what_is_too_much_is_lumped),    cmocka_unit_test(cancelled_cells_are_not_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
