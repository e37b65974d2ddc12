/* SPDX-License-Identifier: MIT */
/* Why a process is so large, for people. */
#include <stdlib.h>

#include "action/report/caveats.h"
#include "action/report/stack_view.h"
#include "action/why/why.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/text.h"
#include "query/resident.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

enum { LINES_OF_STACK = 6, INDENT = 2 };

/* ---- the head ---- */

/* Name other processes with readings, if the question names none. */
static void others_put(const struct why *why, struct sink *out)
{
	enum { NAMED = 5 };
	const struct trace_dictionary *dictionary = why->source->table->dictionary;
	bool *is_read = memory_zeroed(dictionary->process_count + 1, sizeof(*is_read));
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->pages_count; i++)
		is_read[dictionary->pages[i].process] = true;
	is_read[why->account.process] = false;
	for (uint32_t i = 0; i < dictionary->process_count && !why->question.pid; i++)
		if (is_read[i] && count++ < NAMED)
			sink_format(out, "%s%s", count > 1 ? ", " : "  others by -pid: ",
				    text_pid(dictionary->processes[i].pid).data);
	if (count)
		sink_text(out, count > NAMED ? ", ...\n" : "\n");
	free(is_read);
}

static void head_put(const struct why *why, struct sink *out)
{
	static const char *const words[] = {
		[ACCOUNT_LARGEST] = "the largest", [ACCOUNT_LAST] = "the last", [ACCOUNT_NEAREST] = "the nearest"};
	const struct account *account = &why->account;
	const struct trace_process *process = &why->source->table->dictionary->processes[account->process];
	sink_format(out, "process %s (%s): %s resident at %s, %s of %s reading%s\n", text_pid(process->pid).data,
		    text_shown(process->command), text_bytes(account->sum.resident_bytes).data,
		    text_duration(account->time_ns).data, words[why->question.which],
		    text_count(why->reading_count).data, text_plural(why->reading_count));
	others_put(why, out);
	if (account->huge_bytes && account->huge_bytes != TRACE_HUGE_UNKNOWN)
		sink_format(out, "  %s of it in huge pages\n", text_bytes(account->huge_bytes).data);
	if (account->swapped_bytes)
		sink_format(out, "  %s more are swapped out\n", text_bytes(account->swapped_bytes).data);
	if (process->forked_from < why->source->table->dictionary->process_count)
		sink_text(out,
			  "  forked: blocks of its parent count as live, whether it has freed its copies or not\n");
	if (account->has_glibc && !account->has_caches)
		sink_text(out, "  too many blocks to find which are in caches of threads: those count as free\n");
	caveats_text(out, why->input);
}

/* ---- tables ---- */

static struct text percent_text(uint64_t part, uint64_t whole)
{
	enum { PER_MILLE = 1000 };
	/* Rounded. Only sums of a made trace overflow, and are less than a part of them. */
	whole = whole < part ? part : whole;
	uint64_t thousandths = (uint64_t)((long double)part * PER_MILLE / (long double)whole + 0.5L);
	struct text text;
	snprintf(text.data, sizeof(text.data), "%u.%u %%", (unsigned)(thousandths / 10), (unsigned)(thousandths % 10));
	return text;
}

static void grid_begin(const struct why *why, struct grid *grid, unsigned columns, const char *const *titles)
{
	*grid = (struct grid){.layout = why->input->layout, .is_colored = why->input->is_colored};
	grid_columns(grid, columns, titles);
	grid->is_text[columns - 1] = true;
}

static void grid_end(struct grid *grid, struct sink *out)
{
	grid_print(grid, out, INDENT);
	grid_fini(grid);
}

static void classes_put(const struct why *why, struct sink *out)
{
	static const char *const titles[] = {">resident", ">share", "what it is"};
	const struct account_sum *sum = &why->account.sum;
	struct grid grid;
	grid_begin(why, &grid, 3, titles);
	for (int class = 0; class < ACCOUNT_CLASS_COUNT; class ++)
		if (sum->bytes[class]) {
			grid_row(&grid);
			grid_cell(&grid, text_bytes(sum->bytes[class]).data);
			grid_cell(&grid, percent_text(sum->bytes[class], sum->resident_bytes).data);
			grid_cell(&grid, account_words[class]);
		}
	sink_put(out, '\n');
	grid_end(&grid, out);
}

/* Write the class with the most bytes beside live blocks. Where blocks may lie, what a class calls files is the data of
   an image, or code that was made at run time. */
static void most_text(const struct account_sum *sum, char *text, size_t size)
{
	int most = ACCOUNT_LIVE + 1;
	for (int class = most; class < ACCOUNT_CLASS_COUNT; class ++)
		most = sum->bytes[class] > sum->bytes[most] ? class : most;
	*text = 0;
	if (!sum->bytes[most])
		return;
	snprintf(text, size, "%s %s", text_bytes(sum->bytes[most]).data,
		 most == ACCOUNT_FILES ? "image data or code" : account_keys[most]);
	for (char *at = text; *at; at++)
		*at = *at == '_' ? ' ' : *at;
}

static void sum_cells(struct grid *grid, const struct account_sum *sum)
{
	char most[80];
	most_text(sum, most, sizeof(most));
	grid_cell(grid, text_bytes(sum->resident_bytes).data);
	grid_cell(grid, text_bytes(sum->bytes[ACCOUNT_LIVE]).data);
	grid_cell(grid, most);
}

struct why_row {
	uint64_t bytes;
	uint32_t place;
};

static int row_compare(const void *one, const void *other)
{
	const struct why_row *left = one, *right = other;
	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? 1 : -1;
	return (left->place > right->place) - (left->place < right->place);
}

static void heaps_put(const struct why *why, struct sink *out)
{
	static const char *const titles[] = {">resident", ">live", "most of the rest", "heap"};
	const struct account *account = &why->account;
	const struct trace_dictionary *dictionary = why->source->table->dictionary;
	struct why_row *order = calloc(account->heap_count + 1, sizeof(*order));
	uint32_t count = 0;
	struct grid grid;
	for (uint32_t i = 0; order && i < account->heap_count; i++)
		if (account->heaps[i].resident_bytes)
			order[count++] = (struct why_row){account->heaps[i].resident_bytes, i};
	if (count) {
		qsort(order, count, sizeof(*order), row_compare);
		grid_begin(why, &grid, 4, titles);
		for (uint32_t i = 0; i < count && i < why->question.top; i++) {
			grid_row(&grid);
			sum_cells(&grid, &account->heaps[order[i].place]);
			grid_cell(&grid, dictionary->heaps[order[i].place].name);
		}
		sink_text(out, "\nBy heap\n");
		grid_end(&grid, out);
	}
	free(order);
}

static void mappings_put(const struct why *why, struct sink *out)
{
	static const char *const titles[] = {">resident", ">live", "most of the rest", "mapping"};
	const struct account *account = &why->account;
	struct why_row *order = calloc(account->mapping_count + 1, sizeof(*order));
	struct grid grid;
	for (uint32_t i = 0; order && i < account->mapping_count; i++)
		order[i] = (struct why_row){account->mappings[i].sum.resident_bytes, i};
	if (order && account->mapping_count) {
		qsort(order, account->mapping_count, sizeof(*order), row_compare);
		grid_begin(why, &grid, 4, titles);
		for (uint32_t i = 0; i < account->mapping_count && i < why->question.top; i++) {
			const struct account_mapping *mapping = &account->mappings[order[i].place];
			char cell[80];
			snprintf(cell, sizeof(cell), "0x%llx %s", (unsigned long long)mapping->base,
				 resident_kind_key(mapping->kind));
			grid_row(&grid);
			sum_cells(&grid, &mapping->sum);
			grid_cell(&grid, cell);
		}
		sink_text(out, "\nBy mapping, where blocks may lie\n");
		grid_end(&grid, out);
	}
	free(order);
}

/* ---- stacks ---- */

static void stack_put(const struct why *why, uint32_t node, struct sink *out)
{
	const struct stack_view view = {
		.input = why->input, .indent = 2 * INDENT, .lines_max = LINES_OF_STACK, .has_places = true};
	struct heap_names *names = action_names(why->input);
	const struct heap_site earlier = {.entry = HEAP_NONE};
	stack_view_print(&view, node, out);
	if (node == heap_names_site(names, &earlier))
		text_wrap(
			out,
			"    allocated before the attach, so their stacks are unknown: xheap record from the start has "
			"them",
			&why->input->layout);
}

static void pins_put(const struct why *why, struct sink *out)
{
	const struct account *account = &why->account;
	if (!account->page_bytes)
		return;
	sink_format(out, "\nPinned: %s of pages are kept by %s in %s block%s\n", text_bytes(account->page_bytes).data,
		    text_bytes(account->kept_bytes).data, text_count(account->kept_count).data,
		    text_plural(account->kept_count));
	for (uint32_t i = 0; i < why->keeper_count && i < why->question.top; i++) {
		const struct why_stack *keeper = &why->keepers[i];
		sink_format(out, "  %s of pages, by %s in %s block%s; %s of them come back if these lie elsewhere\n",
			    text_bytes(keeper->sums.page_bytes).data, text_bytes(keeper->sums.kept_bytes).data,
			    text_count(keeper->sums.kept_count).data, text_plural(keeper->sums.kept_count),
			    text_bytes(keeper->sums.alone_bytes).data);
		stack_put(why, keeper->node, out);
	}
}

static void live_put(const struct why *why, struct sink *out)
{
	if (why->stack_count)
		sink_text(out, "\nLive blocks by stack\n");
	for (uint32_t i = 0; i < why->stack_count && i < why->question.top; i++) {
		const struct why_stack *stack = &why->stacks[i];
		sink_format(out, "  %s in %s block%s, and %s of rounding\n", text_bytes(stack->sums.live_bytes).data,
			    text_count(stack->sums.block_count).data, text_plural(stack->sums.block_count),
			    text_bytes(stack->sums.rounding_bytes).data);
		stack_put(why, stack->node, out);
	}
}

void why_text(const struct why *why, struct sink *out)
{
	head_put(why, out);
	classes_put(why, out);
	pins_put(why, out);
	heaps_put(why, out);
	mappings_put(why, out);
	live_put(why, out);
}
