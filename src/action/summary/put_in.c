/* SPDX-License-Identifier: MIT */
/*
 * Each site has a path of native calls from its allocation outwards, up to the first code of a runtime. The glue that
 * calls native functions differs between interpreted and compiled code, so a caller's whole path is compared with the
 * beginning of the others'. If a caller makes such calls by itself, and all the time, births below it lie at the same
 * times as its own: then it is none.
 */
#include "action/summary/put_in.h"

#include <stdlib.h>
#include <string.h>

#include "action/report/stack_view.h"
#include "action/summary/kept_survey.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/sink.h"
#include "query/frame_names.h"
#include "trace/trace.h"

enum {
	CALLS_LEAST = 2, /* of a path: one alone is what all blocks have */
	CALLS_MOST = 32,
	CALLERS_MOST = 16, /* so far out, a caller is looked for */
	PARTS = 32,        /* of the time, for births */
	BLOCKS_LEAST = 8,
	LIVE_PART = 4, /* of what lives of the callee with the most, another one has at least that */
	SHARED_PERCENT = 25, /* of births in the same parts, of both: more are calls that go on */
	PERCENT = 100,
	TEXT_FRAMES = 3
};

/* The native calls of a site. hashes[i]: of its first i + 1 names. */
struct path {
	unsigned count;
	uint64_t hashes[CALLS_MOST];
};

/* Births by time, and the bytes that lived at the peak and are left. */
struct births {
	uint64_t count, of[PARTS], live_bytes;
};

/* A caller with a path of its own. */
struct caller {
	struct births births;
};

/* A function below a caller, by the same path. */
struct callee {
	uint32_t caller, name, node, at; /* node: the function's, at: the caller's */
	bool is_before;
	struct births births;
};

/* The site is of the callee. */
struct site_callee {
	uint32_t site, callee;
};

struct put_in_search {
	struct action_input *input;
	struct action_source *source;
	struct heap_names *names;
	struct map caller_of; /* by path and name */
	struct map callee_of; /* by caller and name */
	struct caller *callers;
	struct callee *callees;
	struct site_callee *pairs;
	size_t caller_count, caller_capacity, callee_count, callee_capacity, pair_count, pair_capacity;
	uint32_t *own; /* by site: its caller plus one, 0: none */
};

static const struct heap_name *name_of(const struct put_in_search *search, uint32_t node)
{
	return heap_names_name(search->names, heap_names_frame(search->names, node)->name);
}

/* Return whether it is a function of the user's that a runtime has compiled and named. */
static bool is_users(const struct heap_name *name)
{
	return name->is_jit && !name->is_library && !name->is_interpreted;
}

/* Return whether a frame ends the path of native calls: what calls them in the runtime. */
static bool is_end(const struct heap_name *name)
{
	return name->is_mark || heap_name_is_managed(name) || (!name->symbol && !name->image) ||
	       (name->symbol && !strncmp(name->symbol, "Builtins_", sizeof("Builtins_") - 1));
}

static struct path path_of(const struct put_in_search *search, uint32_t site)
{
	struct path path = {0};
	uint64_t hash = 0;
	uint32_t node = heap_names_site(search->names, &search->source->table->sites[site]);
	for (; node && path.count < CALLS_MOST && !is_end(name_of(search, node));
	     node = heap_names_frame(search->names, node)->parent)
		path.hashes[path.count++] = hash = hash_pair(hash, heap_names_frame(search->names, node)->name + 1);
	return path;
}

/* Return the user's function of a cell's row, 0: it is none that a runtime has compiled. */
static uint32_t user_of(const struct put_in_search *search, const struct heap_cell *cell)
{
	uint32_t node = action_site_node(search->input, search->source, cell);
	node = node && node != HEAP_NONE ? stack_view_user_node(search->input, node) : 0;
	return node && is_users(name_of(search, node)) ? node : 0;
}

static void caller_add(struct put_in_search *search, const struct heap_cell *cell)
{
	uint32_t user = user_of(search, cell);
	bool added;
	if (!user)
		return;
	const struct path path = path_of(search, cell->site);
	if (path.count < CALLS_LEAST)
		return;
	uint32_t *place =
		map_add(&search->caller_of,
			hash_pair(path.hashes[path.count - 1], heap_names_frame(search->names, user)->name), &added);
	if (added) {
		memory_grow(search->callers, search->caller_count, search->caller_capacity);
		search->callers[search->caller_count] = (struct caller){0};
		*place = (uint32_t)search->caller_count++;
	}
	search->own[cell->site] = *place + 1;
}

static void callee_add(struct put_in_search *search, uint32_t site, uint32_t caller, uint32_t user, uint32_t at)
{
	bool added;
	uint32_t name = heap_names_frame(search->names, user)->name,
		 *place = map_add(&search->callee_of, map_pair(caller, name), &added);
	if (added) {
		memory_grow(search->callees, search->callee_count, search->callee_capacity);
		*place = (uint32_t)search->callee_count;
		search->callees[search->callee_count++] =
			(struct callee){.caller = caller, .name = name, .node = user, .at = at};
	}
	memory_grow(search->pairs, search->pair_count, search->pair_capacity);
	search->pairs[search->pair_count++] = (struct site_callee){site, *place};
}

/* Find the callers of the cell's function that have the beginning of its path as a path of their own. */
static void callees_add(struct put_in_search *search, const struct heap_cell *cell)
{
	uint32_t user = user_of(search, cell), at = user;
	if (!user)
		return;
	const struct path path = path_of(search, cell->site);
	for (unsigned i = 0; i < CALLERS_MOST && (at = heap_names_frame(search->names, at)->parent); i++) {
		const struct heap_name *name = name_of(search, at);
		if (!is_users(name) && (name->is_mark || !heap_cull_folds(search->input->cull, search->names, at)))
			return;
		uint32_t number = heap_names_frame(search->names, at)->name;
		if (!is_users(name) || number == heap_names_frame(search->names, user)->name)
			continue;
		for (unsigned length = path.count; length >= CALLS_LEAST; length--) {
			const uint32_t *caller =
				map_find(&search->caller_of, hash_pair(path.hashes[length - 1], number));
			if (caller)
				callee_add(search, cell->site, *caller, user, at);
		}
	}
}

static void births_add(struct births *to, const struct births *from)
{
	to->count += from->count;
	to->live_bytes += from->live_bytes;
	for (unsigned i = 0; i < PARTS; i++)
		to->of[i] += from->of[i];
}

/* Count the births of the sites that matter. */
static void births_count(struct put_in_search *search)
{
	const struct action_source *source = search->source;
	const struct heap_window *window = source->window;
	const uint32_t site_count = source->table->site_count;
	struct births *births = memory_zeroed((size_t)site_count + 1, sizeof(*births));
	bool *sites = memory_zeroed((size_t)site_count + 1, sizeof(*sites));
	for (uint32_t i = 0; i < site_count; i++)
		sites[i] = search->own[i];
	for (size_t i = 0; i < search->pair_count; i++)
		sites[search->pairs[i].site] = true;
	struct heap_scan_plan plan = heap_window_plan(window, source->filter);
	plan.columns = PACK_ALL;
	plan.sites = sites;
	struct heap_scan scan;
	const struct heap_rows *rows;
	const double length = (double)window->range.to_ns - (double)window->range.from_ns + 1;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			if (!sites[row.site] || !heap_is_in_range(&row, window->range))
				continue;
			double at = ((double)row.birth_ns - (double)window->range.from_ns) / length * PARTS;
			births[row.site].count++;
			births[row.site].of[at < PARTS ? (unsigned)at : PARTS - 1]++;
		}
	heap_scan_end(&scan);
	for (uint32_t i = 0; i < window->cell_count; i++)
		births[window->cells[i].site].live_bytes +=
			window->numbers[i].peak_bytes + window->numbers[i].outstanding_bytes;
	for (uint32_t i = 0; i < site_count; i++)
		if (search->own[i])
			births_add(&search->callers[search->own[i] - 1].births, &births[i]);
	for (size_t i = 0; i < search->pair_count; i++)
		births_add(&search->callees[search->pairs[i].callee].births, &births[search->pairs[i].site]);
	free(births);
	free(sites);
}

/* Return the mean time of births, in parts. */
static double mean_of(const struct births *births)
{
	double sum = 0;
	for (unsigned i = 0; i < PARTS; i++)
		sum += (double)i * (double)births->of[i];
	return sum / (double)births->count;
}

/* Return whether nearly all births of the one lie before those of the other. */
static bool is_before(const struct births *one, const struct births *other)
{
	double shared = 0;
	if (one->count < BLOCKS_LEAST || other->count < BLOCKS_LEAST)
		return false;
	for (unsigned i = 0; i < PARTS; i++) {
		double of_one = (double)one->of[i] / (double)one->count,
		       of_other = (double)other->of[i] / (double)other->count;
		shared += of_one < of_other ? of_one : of_other;
	}
	return shared * PERCENT < SHARED_PERCENT && mean_of(one) < mean_of(other);
}

/* A row, and how many of its bytes are of callers with a callee before. */
struct row_sum {
	uint32_t node, caller; /* the caller of them with the most bytes */
	uint64_t bytes, put_in_bytes, most_bytes;
};

/* Add the rows of a caller's callees, each once. */
static void befores_add(const struct put_in_search *search, struct put_in *put_in, struct put_in_row *row,
			uint32_t caller, size_t *capacity)
{
	struct map seen = {0};
	row->first = (uint32_t)put_in->before_count;
	for (size_t i = 0; i < search->pair_count; i++) {
		const struct callee *callee = &search->callees[search->pairs[i].callee];
		bool added = false;
		const struct heap_cell cell = {search->pairs[i].site, 0};
		uint32_t node = action_site_node(search->input, search->source, &cell);
		if (callee->caller != caller || !callee->is_before || node == row->node)
			continue;
		map_add(&seen, node, &added);
		if (!added)
			continue;
		memory_grow(put_in->befores, put_in->before_count, *capacity);
		put_in->befores[put_in->before_count++] = node;
		row->count++;
	}
	map_fini(&seen);
}

/* Return whether a function is between a callee and its caller. */
static bool is_between(const struct put_in_search *search, const struct callee *callee, uint32_t name)
{
	uint32_t at = callee->node;
	while ((at = heap_names_frame(search->names, at)->parent) && at != callee->at)
		if (heap_names_frame(search->names, at)->name == name)
			return true;
	return false;
}

/* Return the callee of which most lives, NULL: there is none. outer: of those that it calls alone. */
static const struct callee *largest_callee(const struct put_in_search *search, uint32_t caller,
					   const struct callee *outer)
{
	const struct callee *most = NULL;
	for (size_t i = 0; i < search->callee_count; i++) {
		const struct callee *callee = &search->callees[i];
		if (callee->caller == caller && callee->is_before &&
		    (!outer || is_between(search, callee, outer->name)) &&
		    (!most || callee->births.live_bytes > most->births.live_bytes))
			most = callee;
	}
	return most;
}

/* Choose the callee of which most lives. If others were put into this one before, it is the innermost of them. */
static void callee_choose(const struct put_in_search *search, struct put_in_row *row, uint32_t caller)
{
	const struct callee *chosen = largest_callee(search, caller, NULL), *inner = chosen;
	for (unsigned i = 0; i < CALLERS_MOST && inner; i++) {
		chosen = inner;
		inner = largest_callee(search, caller, chosen);
	}
	for (size_t i = 0; i < search->callee_count; i++) {
		const struct callee *callee = &search->callees[i];
		row->others += callee->caller == caller && callee->is_before && callee != chosen &&
			       !is_between(search, chosen, callee->name);
	}
	row->from = chosen->node;
	row->to = chosen->at;
}

static int row_compare(const void *a, const void *b)
{
	const struct put_in_row *left = a, *right = b;
	return left->node < right->node ? -1 : left->node > right->node;
}

/* Sum up the cells by rows. What was live counts; blocks that came and went say nothing of it. */
static struct row_sum *rows_sum(struct put_in_search *search, const bool *has_before, size_t *count)
{
	const struct heap_window *window = search->source->window;
	struct row_sum *sums = memory_zeroed((size_t)window->cell_count + 1, sizeof(*sums));
	struct map row_of = {0};
	for (uint32_t i = 0; i < window->cell_count; i++) {
		const struct heap_numbers *numbers = &window->numbers[i];
		uint64_t bytes = numbers->peak_bytes + numbers->outstanding_bytes;
		uint32_t own = search->own[window->cells[i].site],
			 node = action_site_node(search->input, search->source, &window->cells[i]);
		bool added;
		uint32_t *place = map_add(&row_of, node, &added);
		*place = added ? (uint32_t)(*count)++ : *place;
		struct row_sum *sum = &sums[*place];
		sum->node = node;
		sum->bytes += bytes;
		if (!own || !has_before[own - 1])
			continue;
		sum->put_in_bytes += bytes;
		if (bytes > sum->most_bytes) {
			sum->most_bytes = bytes;
			sum->caller = own - 1;
		}
	}
	map_fini(&row_of);
	return sums;
}

static void rows_find(struct put_in_search *search, struct put_in *put_in)
{
	bool *has_before = memory_zeroed(search->caller_count + 1, sizeof(*has_before));
	uint64_t *most = memory_zeroed(search->caller_count + 1, sizeof(*most));
	size_t count = 0, capacity = 0, before_capacity = 0;
	for (size_t i = 0; i < search->callee_count; i++) {
		struct callee *callee = &search->callees[i];
		callee->is_before = is_before(&callee->births, &search->callers[callee->caller].births);
		if (callee->is_before && callee->births.live_bytes > most[callee->caller])
			most[callee->caller] = callee->births.live_bytes;
	}
	/* Blocks that are freed again say nothing of those that live. */
	for (size_t i = 0; i < search->callee_count; i++) {
		struct callee *callee = &search->callees[i];
		callee->is_before &= callee->births.live_bytes > most[callee->caller] / LIVE_PART;
		has_before[callee->caller] |= callee->is_before;
	}
	free(most);
	struct row_sum *sums = rows_sum(search, has_before, &count);
	for (size_t i = 0; i < count; i++) {
		if (!sums[i].most_bytes || sums[i].put_in_bytes < sums[i].bytes / 2)
			continue;
		struct put_in_row row = {.node = sums[i].node};
		callee_choose(search, &row, sums[i].caller);
		befores_add(search, put_in, &row, sums[i].caller, &before_capacity);
		memory_grow(put_in->rows, put_in->count, capacity);
		put_in->rows[put_in->count++] = row;
	}
	if (put_in->count)
		qsort(put_in->rows, put_in->count, sizeof(*put_in->rows), row_compare);
	free(has_before);
	free(sums);
}

static void all_find(struct put_in *put_in, struct action_input *input, struct action_source *source)
{
	const struct heap_window *window = source->window;
	struct put_in_search search = {.input = input, .source = source, .names = source->names};
	/* Java's agent says which methods were put into others. */
	if (!heap_window_is_by_site(window) || trace_has_inlined_jit(source->table->dictionary))
		return;
	search.own = memory_zeroed((size_t)source->table->site_count + 1, sizeof(*search.own));
	for (uint32_t i = 0; i < window->cell_count; i++)
		caller_add(&search, &window->cells[i]);
	for (uint32_t i = 0; i < window->cell_count && search.caller_count; i++)
		callees_add(&search, &window->cells[i]);
	if (search.callee_count) {
		births_count(&search);
		rows_find(&search, put_in);
	}
	map_fini(&search.caller_of);
	map_fini(&search.callee_of);
	free(search.callers);
	free(search.callees);
	free(search.pairs);
	free(search.own);
}

void put_in_find(struct put_in *put_in, struct action_input *input, struct action_source *source,
		 struct kept_survey *kept)
{
	*put_in = (struct put_in){.count = 0};
	if (!kept->answer.is_known)
		all_find(put_in, input, source);
	kept_survey_put_in(kept, put_in);
}

const struct put_in_row *put_in_row(const struct put_in *put_in, uint32_t node)
{
	const struct put_in_row key = {.node = node};
	return put_in->count ? bsearch(&key, put_in->rows, put_in->count, sizeof(key), row_compare) : NULL;
}

void put_in_each(struct action_input *input, const struct put_in_row *row,
		 void (*visit)(void *context, struct action_input *input, uint32_t node), void *context)
{
	const struct heap_names *names = action_names(input);
	for (uint32_t at = row->from; at && at != row->to; at = heap_names_frame(names, at)->parent)
		if (is_users(heap_names_name(names, heap_names_frame(names, at)->name)))
			visit(context, input, at);
}

/* The text of functions, of which only the first ones have room. */
struct function_text {
	struct sink *out;
	unsigned count;
};

static void function_put(void *context, struct action_input *input, uint32_t node)
{
	struct function_text *text = context;
	const struct heap_names *names = action_names(input);
	const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
	const char *symbol = input->layout.has_full_names || !name->short_symbol ? name->symbol : name->short_symbol;
	if (text->count++ < TEXT_FRAMES)
		sink_format(text->out, "%s%s", text->count > 1 ? " < " : "", text_shown(symbol));
	else if (text->count == TEXT_FRAMES + 1)
		sink_text(text->out, input->layout.has_unicode ? " …" : " ...");
}

void put_in_text(struct action_input *input, const struct put_in_row *row, struct sink *out)
{
	struct function_text text = {out, 0};
	sink_text(out, "may be of ");
	put_in_each(input, row, function_put, &text);
	if (row->others)
		sink_format(out, " and %u more", (unsigned)row->others);
	sink_text(out, ", put into it by the compiler");
}

void put_in_fini(struct put_in *put_in)
{
	free(put_in->rows);
	free(put_in->befores);
}
