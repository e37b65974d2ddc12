/* SPDX-License-Identifier: MIT */
/*
 * -chains: blocks that grew by realloc. A chain is a block with all that it was made of, one realloc after the other; it is in the row
 * of the stack of its last realloc. Steps are its reallocs, the factor is its last size over its first, copied is what moves copied.
 */
#include "action/action.h"

#include "action/rows.h"

enum { THOUSAND = 1000 };

static void chains_groups(struct action_source *source, const struct heap_cell *cell, struct action_groups *groups)
{
	action_groups_add(groups, action_site_node(source, cell));
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct chain {
	uint64_t steps, copied_bytes, first_bytes;
};

/* Back to its first allocation. A realloc's block is always made after the one that it was made of. */
static struct chain chain_follow(const struct heap_table *table, uint32_t last)
{
	struct chain chain = {.first_bytes = table->allocations[last].size_bytes};
	for (uint32_t at = last, before; (before = table->details[at].previous) != HEAP_NONE && before < at; at = before) {
		chain.steps++;
		chain.first_bytes = table->allocations[before].size_bytes;
		if (table->allocations[at].flags & HEAP_MOVED)
			chain.copied_bytes += smaller(table->allocations[before].size_bytes, table->allocations[at].size_bytes);
	}
	return chain;
}

/* The last of its chain: made by a realloc, and not taken by another. */
static bool is_last(const struct heap_allocation *allocation)
{
	return allocation->flags & HEAP_REALLOC && allocation->end != HEAP_END_REALLOC;
}

static void chains_extend(struct action_source *source, const struct heap_window *window, struct action_rows *rows)
{
	const struct heap_table *table = source->table;
	struct map row_of = {0};
	bool added;
	for (uint32_t i = 0; i < rows->count; i++)
		*map_add(&row_of, map_pair(rows->memory[i].group, rows->memory[i].by), &added) = i;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct heap_allocation *allocation = &table->allocations[i];
		struct heap_cell cell;
		if (!is_last(allocation) || !heap_filter_passes(source->filter, allocation) || !heap_window_has(window, allocation))
			continue;
		heap_window_cell(window, table, allocation, &cell);
		const uint32_t *row = map_find(&row_of, map_pair(action_site_node(source, &cell), cell.by));
		if (!row)
			continue;
		struct chain chain = chain_follow(table, i);
		uint64_t *extra = rows->memory[*row].extra;
		extra[CHAINS_COUNT]++;
		extra[CHAINS_STEPS] += chain.steps;
		extra[CHAINS_STEPS_MAX] = chain.steps > extra[CHAINS_STEPS_MAX] ? chain.steps : extra[CHAINS_STEPS_MAX];
		uint64_t factor = chain.first_bytes ? allocation->size_bytes * THOUSAND / chain.first_bytes : 0;
		extra[CHAINS_FACTOR] = factor > extra[CHAINS_FACTOR] ? factor : extra[CHAINS_FACTOR];
		extra[CHAINS_COPIED] += chain.copied_bytes;
	}
	map_fini(&row_of);
	/* Stacks without a realloc have no chain. */
	size_t kept = 0;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->memory[i].numbers.realloc_count)
			rows->memory[kept++] = rows->memory[i];
	rows->count = kept;
}

const struct action action_chains = {
	.name = "chains", .title = "Blocks that grew by realloc", .label = "stack", .help = "blocks that grew by realloc: steps, factor, bytes copied",
	.sort = "src", .with_details = true, .groups = chains_groups, .extend = chains_extend, .text = action_stack_text, .json = action_stack_json,
	.lines = action_stack_lines,
	.extra = {{"chain_count", ">chains", EXTRA_COUNT}, {"step_count", ">steps", EXTRA_COUNT}, {"step_count_max", ">most", EXTRA_COUNT},
		  {"factor_max", ">factor", EXTRA_FACTOR}, {"copied_bytes", ">copied", EXTRA_BYTES}},
	.extra_count = 5,
};
