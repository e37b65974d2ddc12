/* SPDX-License-Identifier: MIT */
/* Reports over several traces, and over several windows of one: rows of one name are one row, with the figures that
   each source has by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "action/actions/action_table.h"
#include "action/diff/diff.h"
#include "match/match.h"
#include "query/by.h"
#include "scene.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

/* ---- names, made up here: the same functions lie elsewhere in the second trace ---- */

enum { STEP = 0x1000, MAIN = 1, PARSE, LOAD, OLD, NEW, UNNAMED, FUNCTIONS };
static const char *const functions[FUNCTIONS] = {
	[MAIN] = "main", [PARSE] = "parse", [LOAD] = "load", [OLD] = "old", [NEW] = "fresh"};

struct symbols {
	uint64_t shift;
};
static struct symbols symbols[2] = {{0}, {0x40}};

bool symbols_function_address(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
			      const char *name, uint64_t *address)
{
	(void)symbols, (void)path, (void)build_id, (void)build_id_size, (void)name, (void)address;
	return false;
}

bool symbols_function_range(struct symbols *symbols, const char *path, const uint8_t *build_id, size_t build_id_size,
			    uint64_t offset, uint64_t *low, uint64_t *high)
{
	(void)symbols, (void)path, (void)build_id, (void)build_id_size, (void)offset, (void)low, (void)high;
	return false;
}

size_t symbols_resolve(struct symbols *of, const char *path, const uint8_t *build_id, size_t build_id_size,
		       uint64_t offset, bool is_return, const struct symbol_frame **frames)
{
	static struct symbol_frame frame;
	uint64_t function = (offset - of->shift) / STEP;
	(void)path, (void)build_id, (void)build_id_size, (void)is_return;
	if (function >= FUNCTIONS || !functions[function])
		return 0;
	frame = (struct symbol_frame){.function = functions[function], .file = "/src/app.c", .line = (uint32_t)offset};
	*frames = &frame;
	return 1;
}

bool symbols_image_has_symbols(struct symbols *of, const char *path, const uint8_t *build_id, size_t build_id_size)
{
	(void)of, (void)path, (void)build_id, (void)build_id_size;
	return true;
}

/* ---- traces ---- */

static struct scene scene;
static const char *const paths[2] = {"one.xht", "two.xht"};
static struct trace *traces[2];
static struct heap_table *tables[2];
static struct heap_names *names[2];
static struct heap_filter filters[2];
static struct heap_window windows[2];
static struct action_source sources[2];
static struct heap_cull cull;
static struct heap_patterns callers_of;
static struct action_input input;

static int offset_of(unsigned number, int function)
{
	/* An address without a name is known by its image and offset, so it may not move. */
	return function * STEP + (function == UNNAMED ? STEP / 2 : (int)symbols[number].shift);
}

static uint32_t stack(unsigned number, int outer, int middle, int inner)
{
	return scene_stack(&scene, offset_of(number, outer), middle ? offset_of(number, middle) : 0,
			   inner ? offset_of(number, inner) : 0, 0);
}

static void read_scene(unsigned number)
{
	traces[number] = scene_read(&scene, paths[number]);
	tables[number] = scene_match(traces[number]);
}

/* Two traces, or windows of the first one alone. */
static void sources_begin(unsigned trace_count, const struct heap_range *ranges, enum heap_by by)
{
	struct diag diag = {""};
	names[0] = heap_names_new(traces[0], &symbols[0], false);
	names[1] = trace_count > 1 ? heap_names_new_beside(names[0], traces[1], &symbols[1]) : NULL;
	assert_int_equal(heap_patterns_add(&callers_of, "parse", &diag), 0);
	cull.with_entries = true;
	for (unsigned i = 0; i < 2; i++) {
		unsigned trace = trace_count > 1 ? i : 0;
		heap_filter_init_for(&filters[i], tables[trace]);
		heap_window_make(&windows[i], tables[trace], &filters[i],
				 ranges ? ranges[i] : (struct heap_range){0, tables[trace]->duration_ns}, by);
		sources[i] = (struct action_source){.path = paths[trace],
						    .trace = traces[trace],
						    .table = tables[trace],
						    .filter = &filters[i],
						    .window = &windows[i],
						    .names = names[trace]};
	}
	input = (struct action_input){.sources = sources, .source_count = 2, .cull = &cull, .callers_of = &callers_of};
}

static void sources_end(void)
{
	action_input_fini(&input);
	for (unsigned i = 0; i < 2; i++) {
		heap_window_fini(&windows[i]);
		heap_filter_fini(&filters[i]);
	}
	heap_names_free(names[0]);
	heap_names_free(names[1]);
	heap_cull_fini(&cull);
	heap_patterns_fini(&callers_of);
}

static int end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		scene_remove(paths[i], traces[i], tables[i]);
		tables[i] = NULL;
		traces[i] = NULL;
	}
	return 0;
}

static struct action_rows rows_of(struct action_input *of, const struct action *action, const char *key)
{
	struct action_rows rows;
	action_rows_make(&rows, of, action, &(struct action_choice){.sort = action_sort_find(key), .top = UINT64_MAX});
	assert_int_equal(rows.shown, rows.count);
	return rows;
}

static const struct action_row *row_named(const struct action_rows *rows, const char *text)
{
	for (size_t i = 0; i < rows->count; i++)
		if (!strcmp(rows->rows[i]->text, text))
			return rows->rows[i];
	fail_msg("there is no row %s", text);
	return NULL;
}

static uint64_t id_of(const struct action_input *of, const struct action *action, const struct action_rows *rows,
		      const struct action_row *row)
{
	const struct action_source *source = &of->sources[row->source];
	char *by = heap_by_text(action_window(source, action), source->table, row->by);
	uint64_t id = action_row_id(rows, row, by);
	free(by);
	return id;
}

/* ---- known numbers ---- */

/* In both: main > parse. In the first only: main > old; in the second only: main > fresh. An address without a name is
   in both, in the second one in another file with the same build-id. */
static void known_traces(void)
{
	static const uint8_t build_id[] = {0xab, 0xcd, 0xef, 0x01};
	scene_open(&scene, paths[0]);
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	scene.stack = stack(0, MAIN, PARSE, 0);
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	scene_alloc(&scene, thread, 20, 0x2000, 50);
	scene_free(&scene, thread, 30, 0x1000);
	scene.stack = stack(0, MAIN, OLD, 0);
	scene_alloc(&scene, thread, 40, 0x3000, 7);
	scene.stack = stack(0, MAIN, UNNAMED, 0);
	scene_alloc(&scene, thread, 50, 0x4000, 9);
	read_scene(0);
	scene_open(&scene, paths[1]);
	thread = scene_thread(&scene, scene_process(&scene, 200, TRACE_NONE, 0), 200);
	scene.stack = stack(1, MAIN, NEW, 0);
	scene_alloc(&scene, thread, 5, 0x9000, 11);
	scene.stack = stack(1, MAIN, PARSE, 0);
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	scene_alloc(&scene, thread, 20, 0x2000, 60);
	scene_alloc(&scene, thread, 30, 0x3000, 60);
	uint32_t copy = writer_add_image(scene.writer, &(struct trace_image){"/opt/app", build_id, sizeof(build_id)});
	scene.stack = writer_intern_node(scene.writer, scene_stack(&scene, offset_of(1, MAIN), 0),
					 writer_intern_frame(scene.writer, copy, UNNAMED * STEP + STEP / 2));
	scene_alloc(&scene, thread, 40, 0x4000, 13);
	read_scene(1);
}

static void assert_numbers(const struct action_figures *figures, uint64_t count, uint64_t bytes, uint64_t left_bytes)
{
	assert_int_equal(figures->numbers.total_count, count);
	assert_int_equal(figures->numbers.total_bytes, bytes);
	assert_int_equal(figures->numbers.outstanding_bytes, left_bytes);
	assert_int_equal(action_has_row(figures), count > 0);
}

static void test_two_traces(void **state)
{
	(void)state;
	known_traces();
	sources_begin(2, NULL, HEAP_BY_NONE);
	assert_int_equal(windows[0].totals.total_bytes, 166);
	assert_int_equal(windows[1].totals.total_bytes, 244);
	struct action_rows rows = rows_of(&input, &action_stacks, "st");
	assert_int_equal(rows.count, 4);
	const struct action_row *parse = row_named(&rows, "app!parse;app!main"),
				*old = row_named(&rows, "app!old;app!main"),
				*fresh = row_named(&rows, "app!fresh;app!main"),
				*unnamed = row_named(&rows, "app+0x6800;app!main");
	assert_numbers(&parse->figures[0], 2, 150, 50);
	assert_numbers(&parse->figures[1], 3, 220, 220);
	assert_numbers(&old->figures[0], 1, 7, 7);
	assert_numbers(&old->figures[1], 0, 0, 0);
	assert_numbers(&fresh->figures[0], 0, 0, 0);
	assert_numbers(&fresh->figures[1], 1, 11, 11);
	assert_numbers(&unnamed->figures[0], 1, 9, 9);
	assert_numbers(&unnamed->figures[1], 1, 13, 13);
	assert_int_equal(parse->figures[0].lifetime_min, 20);
	assert_int_equal(parse->figures[1].threads, 1);
	assert_int_equal(old->figures[1].threads, 0);
	assert_true(rows.rows[0] == parse && rows.rows[3] == old);
	assert_int_equal(old->source, 0);
	assert_int_equal(fresh->source, 1);
	action_rows_fini(&rows);
	sources_end();
}

/* The peak of the second window is its begin: a block of the first one is still live then. */
static void test_two_windows(void **state)
{
	const struct heap_range ranges[] = {{0, 25}, {26, 50}};
	(void)state;
	known_traces();
	sources_begin(1, ranges, HEAP_BY_NONE);
	struct action_rows rows = rows_of(&input, &action_frames, "st");
	assert_int_equal(rows.count, 3);
	/* What began before the window and is live at its peak has a row without blocks of its own. */
	const struct action_row *parse = row_named(&rows, "app!parse"), *old = row_named(&rows, "app!old");
	assert_int_equal(parse->figures[0].numbers.total_bytes, 150);
	assert_int_equal(parse->figures[0].numbers.outstanding_count, 2);
	assert_int_equal(parse->figures[1].numbers.total_bytes, 0);
	assert_int_equal(parse->figures[1].numbers.peak_bytes, 150);
	assert_numbers(&old->figures[0], 0, 0, 0);
	assert_numbers(&old->figures[1], 1, 7, 7);
	action_rows_fini(&rows);
	sources_end();
}

static void test_the_greatest_change_is_first(void **state)
{
	static const struct action *const actions[] = {&action_stacks, &action_tree};
	const struct action_sort *sort = action_sort_find("st");
	const struct diff beside = {.input = &input, .runs = {1, 1}};
	(void)state;
	known_traces();
	sources_begin(2, NULL, HEAP_BY_NONE);
	for (int i = 0; i < 2; i++) {
		struct action_rows made;
		struct diff_counts counts;
		struct action_row **rows;
		diff_rows_make(&made, &counts, &beside, actions[i], sort, UINT64_MAX);
		size_t count = made.count;
		rows = made.rows;
		if (actions[i] == &action_stacks) {
			assert_string_equal(rows[0]->text, "app!parse;app!main");
			assert_string_equal(rows[1]->text, "app!fresh;app!main");
			assert_true(diff_of_row(&beside, rows[1], ACTION_NUMBER_total_bytes).change == 11);
			assert_int_equal(diff_row_state(&beside, rows[1]), DIFF_IS_NEW);
			assert_string_equal(rows[3]->text, "app+0x6800;app!main");
			assert_true(diff_of_row(&beside, rows[3], ACTION_NUMBER_total_bytes).change == 4);
			assert_int_equal(counts.by_offset, 1);
		}
		action_rows_fini(&made);
		/* However few are shown, each lies beneath one that is. */
		for (uint64_t top = 1; top < count; top++) {
			diff_rows_make(&made, &counts, &beside, actions[i], sort, top);
			rows = made.rows;
			assert_int_equal(made.shown, top);
			for (size_t at = 0; at < made.shown; at++) {
				size_t above = 0;
				while (above < at && rows[at]->parent != (uint32_t)(rows[above] - made.memory))
					above++;
				assert_true(rows[at]->parent == HEAP_NONE || above < at);
			}
			action_rows_fini(&made);
		}
	}
	sources_end();
	/* A trace beside itself. */
	sources_begin(1, NULL, HEAP_BY_NONE);
	struct action_rows same;
	struct diff_counts counts;
	diff_rows_make(&same, &counts, &beside, &action_heaps, sort, 10);
	assert_int_equal(same.count, 0);
	assert_int_equal(counts.unchanged, 1);
	assert_false(diff_totals_are_changed(&beside));
	action_rows_fini(&same);
	sources_end();
}

/* Two heaps of one trace that are called the same are two rows, in both sources. */
static void test_heaps_of_one_name(void **state)
{
	(void)state;
	scene_open(&scene, paths[0]);
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	scene.stack = stack(0, MAIN, 0, 0);
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	/* The number of a process that has ended is used again. */
	scene_end(&scene, 0, 15, TRACE_END_EXIT, 0);
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 16);
	const struct trace_heap heap = {.process = process, .handle = 0x7f0000001000, .name = "main arena"};
	scene.heap = writer_add_heap(scene.writer, &heap);
	scene_alloc(&scene, scene_thread(&scene, process, 100), 20, 0x2000, 10);
	read_scene(0);
	sources_begin(1, NULL, HEAP_BY_NONE);
	struct action_rows rows = rows_of(&input, &action_heaps, "st");
	assert_int_equal(rows.count, 2);
	assert_string_equal(rows.rows[0]->text, rows.rows[1]->text);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rows.rows[0]->figures[i].numbers.total_bytes, 100);
		assert_int_equal(rows.rows[1]->figures[i].numbers.total_bytes, 10);
	}
	action_rows_fini(&rows);
	sources_end();
}

/* ---- each report over two sources beside the two reports over one ---- */

static uint32_t chance;

static unsigned pick(unsigned below)
{
	chance = chance * 1664525 + 1013904223;
	return (chance >> 8) % below;
}

/* Blocks that come, grow and go, in two processes with threads and a heap of their own. */
static void random_trace(unsigned number, unsigned calls)
{
	enum { BLOCKS = 40 };
	uint64_t addresses[BLOCKS] = {0};
	uint32_t threads[4], heaps[2];
	scene_open(&scene, paths[number]);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t process = scene_process(&scene, 100 + i * (number + 1), TRACE_NONE, 0);
		for (uint32_t k = 0; k < 2; k++)
			threads[2 * i + k] = scene_thread(&scene, process, 100 + 10 * i + k + number * (k + i));
		heaps[i] = i ? writer_add_heap(scene.writer, &(struct trace_heap){.process = process,
										  .handle = 0x5000 + number,
										  .name = "pool"})
			     : scene.heap;
	}
	for (unsigned i = 0; i < calls; i++) {
		unsigned block = pick(BLOCKS), process = block % 2;
		uint32_t thread = threads[2 * process + pick(2)];
		int64_t time_ns = 100 * (int64_t)(i + 1);
		/* The last function of each trace is in the other one never. */
		scene.stack = pick(20) ? stack(number, MAIN, PARSE + (int)pick(2), pick(2) ? PARSE + (int)pick(2) : 0)
				       : stack(number, MAIN,
					       pick(2)  ? UNNAMED
					       : number ? NEW
							: OLD,
					       0);
		scene.heap = heaps[process];
		if (addresses[block] && pick(3)) {
			uint64_t moved = pick(2) ? addresses[block] : 0x100000 + (i + 1) * UINT64_C(0x4000);
			scene_realloc(&scene, thread, time_ns, time_ns + 10, addresses[block], moved, 1 + pick(0x3000));
			addresses[block] = moved;
		} else if (addresses[block]) {
			scene_free(&scene, thread, time_ns, addresses[block]);
			addresses[block] = 0;
		} else {
			addresses[block] = 0x100000 + (i + 1) * UINT64_C(0x4000);
			scene_alloc(&scene, thread, time_ns, addresses[block], 1 + pick(0x3000));
		}
	}
	read_scene(number);
}

static void assert_same_figures(const struct action_row *both, unsigned number, const struct action_row *alone)
{
	const struct action_figures *one = &both->figures[number], *other = alone->figures;
	if (memcmp(&one->numbers, &other->numbers, sizeof(one->numbers)) != 0 ||
	    one->lifetime_min != other->lifetime_min || one->lifetime_median != other->lifetime_median ||
	    one->lifetime_max != other->lifetime_max || one->threads != other->threads ||
	    one->processes != other->processes || memcmp(one->extra, other->extra, sizeof(one->extra)) != 0)
		fail_msg("source %u of %s differs", number, alone->text);
	assert_int_equal(both->depth, alone->depth);
	assert_string_equal(both->text, alone->text);
}

/* Where the row is absent, all is zero. */
static bool is_absent(const struct action_figures *figures)
{
	static const struct action_figures none;
	return !memcmp(figures, &none, sizeof(none));
}

static size_t compare_with_one(const struct action *action, const struct action_rows *both, unsigned number)
{
	struct action_source source = sources[number];
	source.by_heap = (struct heap_window){0};
	source.site_nodes = source.heap_groups = NULL;
	source.chains = NULL;
	source.splits = (struct map){0};
	struct action_input alone = {.sources = &source, .source_count = 1, .cull = &cull, .callers_of = &callers_of};
	struct action_rows rows = rows_of(&alone, action, "so");
	size_t found = 0, present = 0;
	for (size_t i = 0; i < both->count; i++)
		present += action->has ? action->has(&both->rows[i]->figures[number])
				       : !is_absent(&both->rows[i]->figures[number]);
	for (size_t i = 0; i < rows.count; i++)
		for (size_t k = 0; k < both->count; k++) {
			if (id_of(&alone, action, &rows, rows.rows[i]) != id_of(&input, action, both, both->rows[k]))
				continue;
			assert_same_figures(both->rows[k], number, rows.rows[i]);
			found++;
		}
	assert_int_equal(found, rows.count);
	assert_int_equal(present, rows.count);
	action_rows_fini(&rows);
	action_input_fini(&alone);
	return found;
}

/* An action that orders groups without their texts orders them as their texts are. */
static void compare_texts(const struct action *action, const struct action_rows *rows)
{
	for (size_t i = 0; i < rows->count && action->compare; i++)
		for (size_t k = 0; k < rows->count; k++) {
			int order = strcmp(rows->rows[i]->text, rows->rows[k]->text),
			    quick = action->compare(&input, rows->rows[i]->group, rows->rows[k]->group);
			assert_int_equal((order > 0) - (order < 0), (quick > 0) - (quick < 0));
		}
}

static void compare_all(const struct heap_range *ranges, unsigned trace_count, enum heap_by by)
{
	size_t shared = 0;
	for (unsigned i = 0; i < ACTION_COUNT; i++) {
		const struct action *action = action_table[i];
		if (by == HEAP_BY_HEAP && action->is_by_heap)
			continue;
		sources_begin(trace_count, ranges, by);
		struct action_rows both = rows_of(&input, action, "so");
		size_t found = compare_with_one(action, &both, 0) + compare_with_one(action, &both, 1);
		assert_true(found >= both.count);
		shared += found - both.count;
		compare_texts(action, &both);
		uint64_t sums[2] = {0, 0};
		for (size_t k = 0; k < both.count; k++) {
			sums[0] += both.rows[k]->figures[0].numbers.total_bytes;
			sums[1] += both.rows[k]->figures[1].numbers.total_bytes;
		}
		for (unsigned k = 0;
		     k < 2 && action->groups && !action->is_inclusive && !action->has && by != HEAP_BY_CLASS; k++)
			assert_int_equal(sums[k], windows[k].totals.total_bytes);
		action_rows_fini(&both);
		sources_end();
	}
	assert_true(shared > 0);
}

static void test_figures_are_those_of_each_source(void **state)
{
	enum { CALLS = 600 };
	(void)state;
	chance = 7;
	random_trace(0, CALLS);
	random_trace(1, CALLS / 2);
	const struct heap_range ranges[] = {{0, 100 * CALLS / 2}, {100 * CALLS / 2 + 1, 200 * CALLS}};
	for (int by = HEAP_BY_NONE; by <= HEAP_BY_CLASS; by++) {
		if (by != HEAP_BY_TIME) /* parts of different times are called differently */
			compare_all(NULL, 2, (enum heap_by)by);
		if (by != HEAP_BY_TIME)
			compare_all(ranges, 1, (enum heap_by)by);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_two_traces, end),
		cmocka_unit_test_teardown(test_two_windows, end),
		cmocka_unit_test_teardown(test_the_greatest_change_is_first, end),
		cmocka_unit_test_teardown(test_heaps_of_one_name, end),
		cmocka_unit_test_teardown(test_figures_are_those_of_each_source, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
