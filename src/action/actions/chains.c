/* SPDX-License-Identifier: MIT */
/*
 * -chains: blocks that grew by realloc. A chain is a block with all that it was made of, one realloc after the other;
 * it is in the row of the stack of its last realloc. Steps are its reallocs, the factor is its last size over its
 * first, copied is what moves copied.
 */
#include "action/report/action.h"

#include <assert.h>
#include <stdlib.h>

#include "action/actions/action_table.h"
#include "action/actions/stacks.h"
#include "action/report/report_rows.h"
#include "base/map.h"
#include "base/memory.h"
#include "table/live.h"

enum { THOUSAND = 1000 };

static void chains_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			  struct action_groups *groups)
{
	action_groups_add(groups, action_site_node(input, source, cell));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct chain {
	uint64_t steps, copied_bytes, first_bytes, last_bytes;
};

/* Chains whose last block was taken by a realloc that has not come yet, by that block's number. */
struct chains {
	struct live places; /* by number plus one: in items, plus one */
	struct chain *items;
	uint32_t count, first_free; /* free ones are linked by their steps, as places plus one */
	size_t capacity;
};

/* The chain that ends with this block. A realloc's block is always made after the one that it was made of. */
static struct chain chain_make(struct chains *chains, const struct heap_allocation *allocation,
			       const struct heap_details *details)
{
	struct chain chain = {.first_bytes = allocation->size_bytes, .last_bytes = allocation->size_bytes};
	struct live_cell *cell =
		details->previous == HEAP_NONE ? NULL : live_find(&chains->places, (uint64_t)details->previous + 1);
	if (!cell)
		return chain;
	uint32_t place = cell->current;
	assert(place > 0 && place <= chains->count);
	const struct chain *before = &chains->items[place - 1];
	chain.steps = before->steps + 1;
	chain.first_bytes = before->first_bytes;
	chain.copied_bytes = before->copied_bytes +
			     (allocation->flags & HEAP_MOVED ? smaller(before->last_bytes, allocation->size_bytes) : 0);
	chains->items[place - 1].steps = chains->first_free;
	chains->first_free = place;
	live_remove(&chains->places, cell);
	return chain;
}

/* Keep it for the realloc that took its block. */
static void chain_keep(struct chains *chains, uint32_t number, const struct chain *chain)
{
	uint32_t place = chains->first_free;
	if (place) {
		chains->first_free = (uint32_t)chains->items[place - 1].steps;
	} else {
		memory_grow(chains->items, chains->count, chains->capacity);
		place = ++chains->count;
	}
	chains->items[place - 1] = *chain;
	assert(place <= chains->count);
	live_add(&chains->places, (uint64_t)number + 1)->current = place;
}

/* Sums by cell, as they are found. */
struct chain_sums {
	struct map places; /* by site and part of the split: in items */
	struct action_chains_sum *items;
	size_t count, capacity;
};

/* Add the figures of chains to those of others. */
static void figures_add(uint64_t *to, const uint64_t *from)
{
	to[CHAINS_COUNT] += from[CHAINS_COUNT];
	to[CHAINS_STEPS] += from[CHAINS_STEPS];
	to[CHAINS_STEPS_MAX] = larger(to[CHAINS_STEPS_MAX], from[CHAINS_STEPS_MAX]);
	to[CHAINS_FACTOR] = larger(to[CHAINS_FACTOR], from[CHAINS_FACTOR]);
	to[CHAINS_COPIED] += from[CHAINS_COPIED];
}

static void chain_sum(struct chain_sums *sums, struct heap_cell cell, const struct chain *chain)
{
	const uint64_t figures[] = {[CHAINS_COUNT] = 1,
				    [CHAINS_STEPS] = chain->steps,
				    [CHAINS_STEPS_MAX] = chain->steps,
				    [CHAINS_FACTOR] =
					    chain->first_bytes ? chain->last_bytes * THOUSAND / chain->first_bytes : 0,
				    [CHAINS_COPIED] = chain->copied_bytes};
	bool added;
	uint32_t *place = map_add(&sums->places, map_pair(cell.site, cell.by), &added);
	if (added) {
		memory_grow(sums->items, sums->count, sums->capacity);
		*place = (uint32_t)sums->count;
		sums->items[sums->count++] = (struct action_chains_sum){.cell = cell};
	}
	figures_add(sums->items[*place].extra, figures);
}

static void chains_find(struct chain_sums *sums, const struct action_source *source)
{
	const struct heap_window *window = source->window;
	/* What cells and the filter need, of all blocks: a chain may begin before the range, or with another block. */
	const unsigned columns = heap_window_plan(window, source->filter).columns | source->filter->columns |
				 PACK_TIMES | PACK_SIZES | PACK_SITES | PACK_PREVIOUS_ONES;
	const struct heap_scan_plan plan = {INT64_MIN, window->range.to_ns, INT64_MIN, columns, NULL, NULL};
	struct chains chains = {.count = 0};
	struct heap_scan scan;
	const struct heap_rows *part;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	heap_scan_reallocs(&scan);
	while ((part = heap_scan_next(&scan))) {
		uint64_t passes[PACK_ROWS / 64];
		heap_filter_select(passes, source->filter, &part->columns, part->first, part->count);
		for (uint32_t i = 0; i < part->count; i++) {
			uint64_t state = part->columns.numbers[PACK_STATE][i];
			bool is_taken = (state & PACK_END_MASK) == HEAP_END_REALLOC;
			struct heap_cell cell;
			if (!is_taken && !(state >> PACK_FLAGS_SHIFT & HEAP_REALLOC))
				continue;
			const struct heap_allocation own = heap_rows_get(part, i), *allocation = &own;
			struct chain chain = chain_make(&chains, allocation, &part->details[i]);
			if (is_taken) {
				chain_keep(&chains, part->first + i, &chain);
				continue;
			}
			if (!(passes[i / 64] >> i % 64 & 1) || !heap_window_has(window, allocation))
				continue;
			heap_window_cell(window, source->table, allocation, &cell);
			chain_sum(sums, cell, &chain);
		}
	}
	heap_scan_end(&scan);
	live_fini(&chains.places);
	free(chains.items);
}

void action_chains_settle(struct action_source *source)
{
	struct chain_sums sums = {.count = 0};
	if (source->chains)
		return;
	chains_find(&sums, source);
	map_fini(&sums.places);
	source->chains = memory_resize(sums.items, sums.count + 1, sizeof(*sums.items));
	source->chains_count = sums.count;
}

static void chains_extend(struct action_input *input, struct action_source *source, struct action_rows *rows)
{
	action_chains_settle(source);
	for (size_t i = 0; i < source->chains_count; i++) {
		const struct action_chains_sum *sum = &source->chains[i];
		uint32_t node = action_site_node(input, source, &sum->cell),
			 row = action_rows_find(rows, input, source, node, sum->cell.by);
		if (row != HEAP_NONE)
			figures_add(rows->memory[row].figures[source - input->sources].extra, sum->extra);
	}
}

/* Stacks without a realloc have no chain. */
static bool chains_has(const struct action_figures *figures)
{
	return figures->numbers.realloc_count > 0;
}

const struct action action_chains = {
	.name = "chains",
	.title = "Blocks that grew by realloc",
	.label = "stack",
	.help = "blocks that grew by realloc: steps, factor, bytes copied",
	.sort = "src",
	.groups = chains_groups,
	.extend = chains_extend,
	.needs_each_block = true,
	.has = chains_has,
	.text = action_stack_text,
	.json = action_stack_json,
	.lines = action_stack_lines,
	.extra = {{"chain_count", ">chains", EXTRA_COUNT},
		  {"step_count", ">steps", EXTRA_COUNT},
		  {"step_count_max", ">most", EXTRA_COUNT},
		  {"factor_max", ">factor", EXTRA_FACTOR},
		  {"copied_bytes", ">copied", EXTRA_BYTES}},
	.extra_count = 5,
};
