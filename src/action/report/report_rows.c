/* SPDX-License-Identifier: MIT */
#include "action/report/report_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "action/report/row_lifetimes.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/priority_queue.h"
#include "base/sort.h"
#include "base/sink.h"
#include "query/lifetimes.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* A source's cells by row: row i has cells[starts[i]] up to cells[starts[i + 1]]. */
struct row_member {
	uint32_t row, cell;
};

struct source_cells {
	struct row_member *members;
	size_t member_count, member_capacity;
	uint32_t *cells;
	size_t *starts;
};

/* Whether nobody wants the rows any more. They may be anything then, but for their memory. */
static bool is_cancelled(const struct action_input *input)
{
	return cancel_is_asked(heap_names_cancelled_by(action_names(input)));
}

/* The state of making rows. */
struct grouping {
	struct action_input *input;
	const struct action *action;
	struct source_cells *sources; /* one for each source */
	size_t row_capacity;
	struct action_groups groups;
};

static void rows_reserve(struct action_rows *rows, struct grouping *grouping)
{
	unsigned sources = grouping->input->source_count;
	if (rows->memory_count < grouping->row_capacity)
		return;
	grouping->row_capacity = memory_capacity(grouping->row_capacity, rows->memory_count + 1);
	rows->memory = memory_resize(rows->memory, grouping->row_capacity, sizeof(*rows->memory));
	rows->figures = memory_resize(rows->figures, grouping->row_capacity, sources * sizeof(*rows->figures));
}

/* The row of a cell's group; a new one has zeroes, and no pointer to them yet. */
static uint32_t row_of(struct action_rows *rows, struct grouping *grouping, uint32_t group, uint32_t split,
		       const struct action_row *row)
{
	unsigned sources = grouping->input->source_count;
	bool added;
	uint32_t *place = map_add(&rows->row_of, map_pair(group, split), &added);
	if (added) {
		*place = (uint32_t)rows->memory_count;
		rows_reserve(rows, grouping);
		memset(&rows->figures[rows->memory_count * sources], 0, sources * sizeof(*rows->figures));
		rows->memory[rows->memory_count++] = *row;
	}
	return *place;
}

/* Rows for all groups of a source, with their numbers. Cells without anything in the range or at the peak make no
   row. */
static void rows_group(struct action_rows *rows, struct grouping *grouping, unsigned number)
{
	struct action_input *input = grouping->input;
	struct action_source *source = &input->sources[number];
	struct source_cells *own = &grouping->sources[number];
	const struct heap_window *window = action_window(source, grouping->action);
	for (uint32_t cell = 0; cell < window->cell_count && !is_cancelled(input); cell++) {
		const struct heap_numbers *numbers = &window->numbers[cell];
		uint32_t by = window->cells[cell].by;
		if (!numbers->total_count && !numbers->peak_count)
			continue;
		grouping->groups.count = 0;
		grouping->action->groups(input, source, &window->cells[cell], &grouping->groups);
		uint32_t split = action_split(input, source, by);
		for (size_t i = 0; i < grouping->groups.count; i++) {
			const struct action_row made = {
				.group = grouping->groups.items[i], .source = number, .by = by, .parent = HEAP_NONE};
			uint32_t row = row_of(rows, grouping, made.group, split, &made);
			heap_numbers_add(&rows->figures[(size_t)row * input->source_count + number].numbers, numbers);
			if (grouping->action->is_inclusive)
				continue;
			memory_grow(own->members, own->member_count, own->member_capacity);
			own->members[own->member_count++] = (struct row_member){row, cell};
		}
	}
}

static void rows_order_cells(const struct action_rows *rows, struct source_cells *own)
{
	own->starts = memory_zeroed(rows->memory_count + 2, sizeof(*own->starts));
	own->cells = memory_resize(NULL, own->member_count, sizeof(*own->cells));
	size_t *next = own->starts + 1; /* shifted by one place, so that filling turns ends into starts */
	for (size_t i = 0; i < own->member_count; i++)
		next[own->members[i].row + 1]++;
	for (size_t row = 1; row <= rows->memory_count; row++)
		next[row] += next[row - 1];
	for (size_t i = 0; i < own->member_count; i++)
		own->cells[next[own->members[i].row]++] = own->members[i].cell;
}

static void grouping_fini(struct grouping *grouping)
{
	for (unsigned i = 0; i < grouping->input->source_count; i++) {
		free(grouping->sources[i].members);
		free(grouping->sources[i].cells);
		free(grouping->sources[i].starts);
	}
	free(grouping->sources);
	free(grouping->groups.items);
}

uint32_t action_rows_find(const struct action_rows *rows, struct action_input *input, struct action_source *source,
			  uint32_t group, uint32_t by)
{
	const uint32_t *place = map_find(&rows->row_of, map_pair(group, action_split(input, source, by)));
	return place ? *place : HEAP_NONE;
}

/* A source, as rows of one action are made from it. */
struct source_view {
	unsigned number;
	const struct action_source *source;
	const struct heap_window *window;
	const struct heap_filter *filter;
	struct source_cells *own;
};

COMPARE_BY(folded_compare, struct heap_folded, cell)

static void rows_lifetimes_folded(struct action_rows *rows, const struct source_view *view, const uint32_t *list_of,
				  const struct heap_lifetimes *lifetimes)
{
	const struct heap_window *window = view->window;
	/* By row in place of cell. */
	struct heap_folded *folded = memory_zeroed(window->folded_count, sizeof(*folded));
	uint32_t *sums = memory_zeroed(window->folded_count, sizeof(*sums));
	for (size_t i = 0; i < window->folded_count; i++)
		folded[i] = (struct heap_folded){list_of[window->folded[i].cell], window->folded[i].sum};
	if (window->folded_count)
		qsort(folded, window->folded_count, sizeof(*folded), folded_compare);
	for (size_t i = 0, end; i < window->folded_count && folded[i].cell != HEAP_NONE; i = end) {
		uint32_t row = folded[i].cell;
		for (end = i; end < window->folded_count && folded[end].cell == row; end++)
			sums[end - i] = folded[end].sum;
		row_lifetimes_folded(&rows->rows[row]->figures[view->number], view->source->table->dictionary, sums,
				     end - i, &lifetimes->values[lifetimes->starts[row]],
				     lifetimes->starts[row + 1] - lifetimes->starts[row]);
	}
	free(folded);
	free(sums);
}

static uint32_t count_distinct(uint32_t *values, size_t count)
{
	uint32_t distinct = 0;
	if (count)
		qsort(values, count, sizeof(*values), compare_u32);
	for (size_t i = 0; i < count; i++)
		distinct += !i || values[i] != values[i - 1];
	return distinct;
}

/* Where each cell's uses begin in the window's list. */
static size_t *uses_by_cell(const struct heap_window *window)
{
	size_t *starts = memory_zeroed((size_t)window->cell_count + 1, sizeof(*starts));
	for (size_t i = 0; i < window->use_count; i++)
		starts[window->uses[i].cell + 1]++;
	for (uint32_t i = 0; i < window->cell_count; i++)
		starts[i + 1] += starts[i];
	return starts;
}

/* The cells of a row: their places in own->cells. */
static size_t row_cells(const struct action_rows *rows, const struct source_cells *own, const struct action_row *row,
			size_t *end)
{
	size_t at = (size_t)(row - rows->memory);
	assert(at < rows->memory_count && own->starts[at] <= own->starts[at + 1]);
	*end = own->starts[at + 1];
	return own->starts[at];
}

static void rows_lifetimes(struct action_rows *rows, const struct source_view *view)
{
	const struct heap_window *window = view->window;
	uint32_t *list_of = memory_resize(NULL, window->cell_count, sizeof(*list_of));
	struct heap_lifetimes lifetimes;
	memset(list_of, 0xff, window->cell_count * sizeof(*list_of));
	for (uint32_t i = 0; i < rows->shown; i++) {
		size_t end;
		for (size_t at = row_cells(rows, view->own, rows->rows[i], &end); at < end; at++)
			list_of[view->own->cells[at]] = i;
	}
	heap_window_lifetimes(&lifetimes, window, view->source->table, view->filter, list_of, (uint32_t)rows->shown);
	for (size_t i = 0; i < rows->shown; i++)
		row_lifetimes(&rows->rows[i]->figures[view->number], &lifetimes.values[lifetimes.starts[i]],
			      lifetimes.starts[i + 1] - lifetimes.starts[i]);
	rows_lifetimes_folded(rows, view, list_of, &lifetimes);
	heap_lifetimes_fini(&lifetimes);
	free(list_of);
}

/* Lifetimes, threads and processes, which cannot be added up from a source's cells. */
static void rows_detail(struct action_rows *rows, const struct source_view *view)
{
	const struct heap_window *window = view->window;
	const struct trace_thread *threads = trace_dictionary(view->source->trace)->threads;
	uint32_t *used = memory_resize(NULL, window->use_count, sizeof(*used));
	size_t *uses = uses_by_cell(window);
	rows_order_cells(rows, view->own);
	rows_lifetimes(rows, view);
	for (size_t i = 0; i < rows->shown && !cancel_is_asked(view->filter->is_cancelled); i++) {
		struct action_row *row = rows->rows[i];
		struct action_figures *figures = &row->figures[view->number];
		size_t used_count = 0, end;
		for (size_t at = row_cells(rows, view->own, row, &end); at < end; at++)
			for (size_t use = uses[view->own->cells[at]]; use < uses[view->own->cells[at] + 1]; use++)
				used[used_count++] = window->uses[use].thread;
		figures->threads = count_distinct(used, used_count);
		for (size_t use = 0; use < used_count; use++)
			used[use] = threads[used[use]].process;
		figures->processes = count_distinct(used, used_count);
	}
	free(uses);
	free(used);
}

/* ---- the order ---- */

struct comparison {
	struct action_input *input;
	const struct action *action;
};

/* The sum of a number over all sources. */
#define ROW_SUM(row, count, number) \
	({ \
		uint64_t sum_ = 0; \
		for (unsigned source_ = 0; source_ < (count); source_++) \
			sum_ += (row)->figures[source_].number; \
		sum_; \
	})

static uint64_t rank_of(const struct action_row *row, unsigned source_count, const struct action_choice *choice)
{
	uint64_t sum = 0;
	assert(row->figures);
	if (choice->rank)
		return choice->rank(row, choice);
	for (unsigned i = 0; i < source_count; i++)
		sum += choice->sort->number(&row->figures[i]);
	return sum;
}

/* In a tree, rows that are cut must lie beneath others. */
static void rows_rank(struct action_rows *rows, unsigned source_count, const struct action_choice *choice)
{
	for (size_t i = 0; i < rows->memory_count; i++)
		rows->memory[i].rank = rank_of(&rows->memory[i], source_count, choice);
	for (size_t i = 0; i < rows->memory_count && choice->rank; i++) {
		const struct action_row *row = &rows->memory[i];
		for (uint32_t at = row->parent; at != HEAP_NONE; at = rows->memory[at].parent)
			if (rows->memory[at].rank < row->rank)
				rows->memory[at].rank = row->rank;
	}
}

/* Texts are made for rows that are equal in every number, and for those that are shown. */
static const char *row_text(const struct comparison *comparison, struct action_row *row)
{
	if (!row->text)
		row->text = comparison->action->text(comparison->input, row->group);
	return row->text;
}

static int row_compare(const void *a, const void *b, void *context)
{
	const struct comparison *comparison = context;
	struct action_row *left = *(struct action_row *const *)a, *right = *(struct action_row *const *)b;
	unsigned sources = comparison->input->source_count;
	const uint64_t of_left[] = {left->rank, ROW_SUM(left, sources, numbers.total_bytes),
				    ROW_SUM(left, sources, numbers.total_count)};
	const uint64_t of_right[] = {right->rank, ROW_SUM(right, sources, numbers.total_bytes),
				     ROW_SUM(right, sources, numbers.total_count)};
	for (unsigned i = 0; i < sizeof(of_left) / sizeof(*of_left); i++)
		if (of_left[i] != of_right[i])
			return of_left[i] > of_right[i] ? -1 : 1;
	if (left == right)
		return 0;
	/* Of a tree: the one around the other comes first. */
	if (left->depth != right->depth)
		return left->depth < right->depth ? -1 : 1;
	int order = comparison->action->compare
			    ? comparison->action->compare(comparison->input, left->group, right->group)
			    : strcmp(row_text(comparison, left), row_text(comparison, right));
	if (order)
		return order;
	/* Cells come in the order in which threads of ours found them, and so do rows. */
	if (left->source != right->source)
		return left->source < right->source ? -1 : 1;
	return left->by != right->by ? (left->by < right->by ? -1 : 1)
				     : (left->group > right->group) - (left->group < right->group);
}

/* The last one in order is at the front. */
PRIORITY_QUEUE(row_queue, struct action_row *, struct comparison *, row_compare(one, other, context) > 0)

/* Put rows that are shown to the front, in order. The others have none: most are not even compared by their texts. */
static void rows_order(struct action_rows *rows, struct comparison *comparison)
{
	assert(rows->shown <= rows->count);
	struct action_row **queue = rows->rows;
	if (!rows->shown)
		return;
	if (rows->shown < rows->count)
		row_queue_make(comparison, queue, rows->shown);
	for (size_t i = rows->shown; i < rows->count && !is_cancelled(comparison->input); i++) {
		if (row_compare(&queue[i], &queue[0], comparison) > 0)
			continue;
		struct action_row *kept = queue[0];
		queue[0] = queue[i];
		queue[i] = kept;
		row_queue_sink(comparison, queue, rows->shown, 0);
	}
	pointers_sort((void **)queue, rows->shown, row_compare, comparison,
		      heap_names_cancelled_by(action_names(comparison->input)));
}

/* ---- trees ---- */

static void tree_link(struct action_rows *rows, struct action_input *input, const struct action *action)
{
	for (size_t i = 0; i < rows->memory_count && !is_cancelled(input); i++) {
		struct action_row *row = &rows->memory[i];
		uint32_t split = action_split(input, &input->sources[row->source], row->by);
		for (uint32_t at = action->parent(input, row->group); at != HEAP_NONE; at = action->parent(input, at)) {
			row->depth++;
			if (row->parent == HEAP_NONE)
				row->parent = *map_find(&rows->row_of, map_pair(at, split));
		}
	}
}

/* Sort rows that are shown as lines: each behind the one around it, and beneath that in the order of their numbers.
   Rows that are cut lie beneath rows that are not. Rows go by their places in memory, which has unwanted ones, too. */
static void tree_order(struct action_rows *rows)
{
	uint32_t *first = memory_resize(NULL, rows->memory_count + 1, sizeof(*first)),
		 *last = memory_resize(NULL, rows->memory_count + 1, sizeof(*last));
	uint32_t *next = memory_resize(NULL, rows->memory_count + 1, sizeof(*next)), at, count = 0;
	const uint32_t top = (uint32_t)rows->memory_count;
	memset(first, 0xff, (rows->memory_count + 1) * sizeof(*first));
	for (size_t i = 0; i < rows->shown; i++) {
		uint32_t row = (uint32_t)(rows->rows[i] - rows->memory), parent = rows->memory[row].parent;
		parent = parent == HEAP_NONE ? top : parent;
		next[row] = HEAP_NONE;
		if (first[parent] == HEAP_NONE)
			first[parent] = row;
		else
			next[last[parent]] = row;
		last[parent] = row;
	}
	for (at = first[top]; at != HEAP_NONE;) {
		rows->rows[count++] = &rows->memory[at];
		uint32_t to = first[at];
		while (to == HEAP_NONE && at != HEAP_NONE) {
			to = next[at];
			at = rows->memory[at].parent;
		}
		at = to;
	}
	free(first);
	free(last);
	free(next);
}

/* ---- all of it ---- */

/* By heap all blocks count, also those that lie in others. */
static void source_make_by_heap(struct action_source *source)
{
	if (source->by_heap.is_by_heap)
		return;
	heap_filter_init_beside(&source->of_heaps, source->filter, source->table);
	heap_window_make_by_heap(&source->by_heap, source->window, source->table, &source->of_heaps);
}

/* As many as cells may be, which costs nothing where nobody writes to it: of inclusive actions there are more, and of
   very many cells they are fewer. */
static void rows_expect(struct action_rows *rows, struct grouping *grouping)
{
	enum { CELLS_MOST = 1 << 16 };
	uint32_t cells = action_window(&grouping->input->sources[0], grouping->action)->cell_count;
	grouping->row_capacity = cells < CELLS_MOST ? cells : CELLS_MOST;
	rows->memory = memory_resize(NULL, grouping->row_capacity, sizeof(*rows->memory));
	rows->figures =
		memory_resize(NULL, grouping->row_capacity, grouping->input->source_count * sizeof(*rows->figures));
}

static void rows_make(struct action_rows *rows, struct grouping *grouping)
{
	struct action_input *input = grouping->input;
	const struct action *action = grouping->action;
	for (unsigned i = 0; i < input->source_count; i++) {
		if (action->is_by_heap)
			source_make_by_heap(&input->sources[i]);
		if (i == 0)
			rows_expect(rows, grouping);
		rows_group(rows, grouping, i);
	}
	for (size_t i = 0; i < rows->memory_count; i++)
		rows->memory[i].figures = &rows->figures[i * input->source_count];
	if (action->parent)
		tree_link(rows, input, action);
	for (unsigned i = 0; i < input->source_count && action->extend; i++)
		action->extend(input, &input->sources[i], rows);
}

static bool is_of_action(const struct action_row *row, const struct grouping *grouping)
{
	bool is_wanted = !grouping->action->has;
	for (unsigned i = 0; i < grouping->input->source_count && !is_wanted; i++)
		is_wanted = grouping->action->has(&row->figures[i]);
	return is_wanted;
}

/* Rows that are wanted, by place in memory, with those around them. */
static bool *rows_wanted(const struct action_rows *rows, const struct grouping *grouping,
			 const struct action_choice *choice)
{
	bool *wanted = memory_zeroed(rows->memory_count, sizeof(*wanted));
	for (size_t i = 0; i < rows->memory_count; i++) {
		const struct action_row *row = &rows->memory[i];
		if (!is_of_action(row, grouping) || (choice->has && !choice->has(row, choice)))
			continue;
		wanted[i] = true;
		for (uint32_t at = row->parent; at != HEAP_NONE && !wanted[at]; at = rows->memory[at].parent)
			wanted[at] = true;
	}
	return wanted;
}

/* Choose and order the rows that are shown. */
static void rows_choose(struct action_rows *rows, const struct grouping *grouping, const struct action_choice *choice)
{
	struct comparison comparison = {grouping->input, grouping->action};
	rows_rank(rows, grouping->input->source_count, choice);
	rows->rows = memory_resize(NULL, rows->memory_count, sizeof(*rows->rows));
	bool *wanted = rows_wanted(rows, grouping, choice);
	for (size_t i = 0; i < rows->memory_count; i++)
		if (wanted[i])
			rows->rows[rows->count++] = &rows->memory[i];
	free(wanted);
	rows->shown = rows->count < choice->top ? rows->count : choice->top;
	rows_order(rows, &comparison);
}

/* Name the rows that are shown. */
static void rows_name(struct action_rows *rows, const struct grouping *grouping)
{
	const struct comparison comparison = {grouping->input, grouping->action};
	for (size_t i = 0; i < rows->shown && !is_cancelled(grouping->input); i++)
		row_text(&comparison, rows->rows[i]);
	heap_names_shorten(action_names(grouping->input));
}

void action_rows_order(struct action_rows *rows, const struct action_rows *of, struct action_input *input,
		       const struct action *action, const struct action_choice *choice)
{
	const struct grouping grouping = {.input = input, .action = action};
	assert(choice->is_brief && !action->parent);
	*rows = (struct action_rows){.is_shared = true,
				     .memory = of->memory,
				     .figures = of->figures,
				     .memory_count = of->memory_count,
				     .row_of = of->row_of};
	rows_choose(rows, &grouping, choice);
	rows_name(rows, &grouping);
	CHECK_VALID(is_cancelled(input) || action_rows_are_valid(rows, input->source_count));
}

void action_rows_make(struct action_rows *rows, struct action_input *input, const struct action *action,
		      const struct action_choice *choice)
{
	struct grouping grouping = {.input = input, .action = action};
	*rows = (struct action_rows){0};
	assert(choice->rank || choice->sort || !action->groups);
	if (!action->groups)
		return;
	assert(action->text && input->source_count > 0);
	action_input_settle(input);
	grouping.sources = memory_zeroed(input->source_count, sizeof(*grouping.sources));
	rows_make(rows, &grouping);
	rows_choose(rows, &grouping, choice);
	for (unsigned i = 0;
	     i < input->source_count && !action->is_inclusive && !choice->is_brief && !is_cancelled(input); i++)
		rows_detail(rows,
			    &(struct source_view){i, &input->sources[i], action_window(&input->sources[i], action),
						  action_filter(&input->sources[i], action), &grouping.sources[i]});
	if (action->parent && !is_cancelled(input))
		tree_order(rows);
	rows_name(rows, &grouping);
	grouping_fini(&grouping);
	CHECK_VALID(is_cancelled(input) || action_rows_are_valid(rows, input->source_count));
}

static bool row_is_valid(const struct action_rows *rows, const struct action_row *row, unsigned source_count)
{
	size_t place = (size_t)(row - rows->memory);
	return place < rows->memory_count && row->source < source_count &&
	       row->figures == &rows->figures[place * source_count] &&
	       (row->parent == HEAP_NONE
			? !row->depth
			: row->parent < rows->memory_count && rows->memory[row->parent].depth < row->depth);
}

bool action_rows_are_valid(const struct action_rows *rows, unsigned source_count)
{
	bool is_valid = rows->shown <= rows->count && rows->count <= rows->memory_count;
	bool *is_there = memory_zeroed(rows->memory_count, sizeof(*is_there));
	for (size_t i = 0; is_valid && i < rows->count; i++) {
		const struct action_row *row = rows->rows[i];
		is_valid = row_is_valid(rows, row, source_count) && (i >= rows->shown || row->text) &&
			   !is_there[row - rows->memory] &&
			   (i >= rows->shown || row->parent == HEAP_NONE || is_there[row->parent]) &&
			   (!i || i >= rows->shown || row->depth || rows->rows[i - 1]->depth ||
			    rows->rows[i - 1]->rank >= row->rank);
		if (is_valid)
			is_there[row - rows->memory] = true;
	}
	free(is_there);
	return is_valid;
}

void action_rows_fini(struct action_rows *rows)
{
	for (size_t i = 0; i < rows->memory_count && !rows->is_shared; i++)
		free(rows->memory[i].text);
	free(rows->rows);
	if (!rows->is_shared) {
		free(rows->memory);
		free(rows->figures);
		map_fini(&rows->row_of);
	}
	*rows = (struct action_rows){0};
}

uint64_t action_row_id(const struct action_rows *rows, const struct action_row *row, const char *by)
{
	struct sink path;
	size_t size;
	assert(row->text);
	sink_to_memory(&path);
	sink_text(&path, row->text);
	for (uint32_t at = row->parent; at != HEAP_NONE; at = rows->memory[at].parent)
		sink_format(&path, ";%s", rows->memory[at].text);
	if (*by)
		sink_format(&path, "\n%s", by);
	char *text = sink_take(&path, &size);
	uint64_t id = XXH3_64bits(text, size);
	free(text);
	return id;
}
