/* SPDX-License-Identifier: MIT */
#include "action/summary/line_shares.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/sink.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/trace.h"

enum { WHOLE_PERCENT = 90, NOTABLE_PERCENT = 5, TOLD = 3 };

/* Return whether one of the functions at the code address of the stack node `at` is the frame `node`: others may have
   been put into it. */
static bool has_frame(struct heap_names *names, const struct trace_dictionary *dictionary, uint32_t at, uint32_t node)
{
	uint32_t end = heap_names_stack(names, dictionary->nodes[at].parent), own = heap_names_stack(names, at);
	/* Frames of managed code need not lie below those of the native caller: 0 ends all. */
	while (own && own != end && own != node)
		own = heap_names_frame(names, own)->parent;
	return own == node;
}

/* Return the line at which the code address has a function of this name; 0: it has none, or no line. */
static uint32_t address_line(struct heap_names *names, uint32_t frame, uint32_t name)
{
	uint32_t count = 0, line = 0;
	const struct heap_address_function *function = heap_names_address(names, frame, &count);
	for (uint32_t i = 0; i < count; i++)
		if (function[i].name == name)
			line = function[i].line;
	return line;
}

/* Return the line of the frame `node` in the stack of a site; 0: it is not known. */
static uint32_t site_line(const struct summary *summary, uint32_t site, uint32_t node)
{
	struct heap_names *names = action_names(summary->input);
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	uint32_t name = heap_names_frame(names, node)->name, line = 0, at = summary->source->table->sites[site].stack;
	for (; at && !line; at = dictionary->nodes[at].parent)
		if (has_frame(names, dictionary, at, node))
			line = address_line(names, dictionary->nodes[at].frame, name);
	return line;
}

static void share_add(struct line_shares *shares, uint32_t line, uint64_t bytes)
{
	size_t at = 0;
	while (at < shares->count && shares->items[at].line != line)
		at++;
	if (at == shares->count) {
		memory_grow(shares->items, shares->count, shares->capacity);
		shares->items[shares->count++] = (struct line_share){.line = line};
	}
	shares->items[at].bytes += bytes;
}

static int share_compare(const void *one, const void *other)
{
	const struct line_share *left = one, *right = other;
	return left->bytes != right->bytes ? COMPARE(right->bytes, left->bytes) : COMPARE(left->line, right->line);
}

/* Add up cells, by the number or, if none has any of it, by what else says which site matters. */
static void shares_add(struct line_shares *shares, const struct summary *summary, const uint32_t *cells, size_t count,
		       uint32_t node, const enum action_number *number)
{
	const struct heap_window *window = summary->source->window;
	for (size_t i = 0; i < count; i++) {
		const struct heap_numbers *numbers = &window->numbers[cells[i]];
		uint64_t bytes = number ? report_number_at(numbers, *number)
					: numbers->peak_bytes + numbers->outstanding_bytes + 1;
		uint32_t line = bytes ? site_line(summary, window->cells[cells[i]].site, node) : 0;
		if (line)
			share_add(shares, line, bytes);
		shares->bytes += number && line ? bytes : 0;
	}
}

/* The cells of a row. The caller frees them. */
static uint32_t *row_cells(const struct summary *summary, uint32_t row, size_t *count)
{
	const struct heap_window *window = summary->source->window;
	uint32_t *cells = NULL;
	size_t capacity = 0;
	*count = 0;
	for (uint32_t i = 0; i < window->cell_count; i++) {
		if (action_site_node(summary->input, summary->source, &window->cells[i]) != row)
			continue;
		memory_grow(cells, *count, capacity);
		cells[(*count)++] = i;
	}
	return cells;
}

void line_shares_find(struct line_shares *shares, const struct summary *summary, uint32_t row, uint32_t node,
		      enum action_number number)
{
	size_t count;
	*shares = (struct line_shares){.items = NULL};
	if (heap_names_frame(action_names(summary->input), node)->line)
		return;
	uint32_t *cells = row_cells(summary, row, &count);
	shares_add(shares, summary, cells, count, node, &number);
	if (!shares->count)
		shares_add(shares, summary, cells, count, node, NULL);
	free(cells);
	if (shares->count)
		qsort(shares->items, shares->count, sizeof(*shares->items), share_compare);
}

bool line_shares_are_several(const struct line_shares *shares)
{
	return shares->bytes && text_percent(shares->items[0].bytes, shares->bytes) < WHOLE_PERCENT;
}

void line_shares_tell(const struct line_shares *shares, struct sink *out)
{
	size_t told = 0;
	while (told < shares->count && told < TOLD &&
	       text_percent(shares->items[told].bytes, shares->bytes) >= NOTABLE_PERCENT) {
		const struct line_share *own = &shares->items[told];
		sink_format(out, "%s%u %% at line %" PRIu32, told ? ", " : "", text_percent(own->bytes, shares->bytes),
			    own->line);
		told++;
	}
	if (told < shares->count)
		sink_format(out, "%s%zu more line%s", told ? ", " : "", shares->count - told,
			    text_plural(shares->count - told));
}

void line_shares_fini(struct line_shares *shares)
{
	free(shares->items);
	*shares = (struct line_shares){.items = NULL};
}
