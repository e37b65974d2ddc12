/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_figures.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "action/budget/budget_peaks.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text.h"
#include "query/folded.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

enum { ASKED_MAX = 4 /* peaks that are searched for one by one */ };

/* ---- threads ---- */

enum passing_thread { PASSES_NOT, MAY_PASS, PASSES };

/* A number is an id, also. */
static bool word_names(const char *word, const char *name, uint32_t id)
{
	uint64_t number;
	return (*name && heap_glob(word, name)) || (text_parse_count(word, &number) && number == id);
}

static bool has_name(const struct budget *budget, struct budget_list list)
{
	uint64_t number;
	for (uint32_t i = 0; i < list.count; i++)
		if (!text_parse_count(budget_word(budget, list.items[i]), &number))
			return true;
	return false;
}

/* A name that is not known may be the one that is meant. */
static enum passing_thread list_names(const struct budget *budget, struct budget_list list, const char *name,
				      uint32_t id)
{
	for (uint32_t i = 0; i < list.count; i++)
		if (word_names(budget_word(budget, list.items[i]), name, id))
			return PASSES;
	if (!list.count)
		return PASSES;
	return !*name && has_name(budget, list) ? MAY_PASS : PASSES_NOT;
}

static bool is_of_threads(const struct budget_selection *selection)
{
	return selection->lists[BUDGET_THREAD].count || selection->lists[BUDGET_PROCESS].count;
}

static enum passing_thread passes_thread(const struct budget_figures *figures, const struct budget_selection *selection,
					 uint32_t id)
{
	const struct trace_dictionary *dictionary = figures->source->table->dictionary;
	const struct trace_thread *thread = &dictionary->threads[id];
	const struct trace_process *process = &dictionary->processes[thread->process];
	enum passing_thread own = list_names(figures->budget, selection->lists[BUDGET_THREAD],
					     thread->name ? thread->name : "", thread->tid);
	enum passing_thread all = list_names(figures->budget, selection->lists[BUDGET_PROCESS],
					     text_file_name(process->image), process->pid);
	return own < all ? own : all;
}

static uint32_t selection_count(const struct budget_figures *figures)
{
	return figures->budget->keys.count;
}

static bool is_of_all(const struct budget_selection *selection)
{
	for (int i = 0; i < BUDGET_SELECTOR_COUNT; i++)
		if (selection->lists[i].count)
			return false;
	return true;
}

/* By thread of the trace; NULL: the selection takes all. `number` is one of the two of a selection. */
static uint8_t *threads_passing(const struct budget_figures *figures, uint32_t number)
{
	assert(number < 2 * selection_count(figures));
	const struct budget_selection *selection = &figures->budget->selections[number % selection_count(figures)];
	enum passing_thread least = number < selection_count(figures) ? PASSES : MAY_PASS;
	uint32_t count = figures->source->table->dictionary->thread_count;
	if (!is_of_threads(selection))
		return NULL;
	uint8_t *passes = memory_zeroed((size_t)count + 1, 1);
	for (uint32_t i = 0; i < count; i++)
		passes[i] = passes_thread(figures, selection, i) >= least;
	return passes;
}

bool budget_figures_has_thread(const struct budget_figures *figures, uint32_t selection)
{
	assert(selection < selection_count(figures));
	uint8_t *passes = threads_passing(figures, selection + selection_count(figures));
	bool has = !passes || memchr(passes, 1, figures->source->table->dictionary->thread_count);
	free(passes);
	return has;
}

/* ---- sites ---- */

/* Whether frames are missing at the outer end: the stack ends in a mark, or there is none. */
static bool is_cut(const struct heap_names *names, const struct heap_site *site, uint32_t node)
{
	if (site->entry == HEAP_OVERHEAD)
		return false;
	if (!node || site->entry == HEAP_NONE)
		return true;
	while (heap_names_frame(names, node)->parent)
		node = heap_names_frame(names, node)->parent;
	return heap_names_name(names, heap_names_frame(names, node)->name)->is_mark;
}

static void sites_match(struct budget_figures *figures)
{
	const struct heap_table *table = figures->source->table;
	struct heap_names *names = figures->source->names;
	figures->site_lists = memory_zeroed((size_t)table->site_count + 1, sizeof(*figures->site_lists));
	for (uint32_t i = 0; i < table->site_count; i++) {
		const struct heap_cell cell = {i, 0};
		uint32_t culled = action_site_node(figures->input, figures->source, &cell);
		uint32_t node = heap_names_site(names, &table->sites[i]);
		bool is_cut_stack = is_cut(names, &table->sites[i], node);
		figures->has_cut_stacks |= is_cut_stack;
		figures->site_lists[i] = budget_match_stack(figures->match, names, node, culled, is_cut_stack);
	}
}

/* Find the selections of which it is not known of each allocation whether it passes. */
static void doubts_find(struct budget_figures *figures)
{
	const struct trace_dictionary *dictionary = figures->source->table->dictionary;
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		figures->has_unnamed_threads |= !dictionary->threads[i].name || !*dictionary->threads[i].name;
	/* A cut stack's list has selections that only may count it. */
	figures->has_plain_lists = !figures->has_cut_stacks;
	for (uint32_t i = 0; i < selection_count(figures); i++) {
		const struct budget_list *lists = figures->budget->selections[i].lists;
		figures->is_doubtful[i] =
			(figures->has_cut_stacks && lists[BUDGET_IN].count) ||
			(figures->has_unnamed_threads && has_name(figures->budget, lists[BUDGET_THREAD]));
		figures->has_plain_lists &= !is_of_threads(&figures->budget->selections[i]);
	}
}

static bool list_has(struct budget_list list, uint32_t number)
{
	for (uint32_t i = 0; i < list.count; i++)
		if (list.items[i] == number)
			return true;
	return false;
}

void budget_figures_filter(struct heap_filter *filter, const struct budget_figures *figures, uint32_t selection)
{
	assert(selection < 2 * selection_count(figures) && figures->site_lists);
	const struct heap_table *table = figures->source->table;
	uint8_t *sites = memory_zeroed((size_t)table->site_count + 1, 1);
	uint32_t count = selection_count(figures);
	for (uint32_t i = 0; i < table->site_count; i++) {
		struct budget_list list = budget_match_list(figures->match, figures->site_lists[i]);
		sites[i] = list_has(list, selection) || (selection >= count && list_has(list, selection - count));
	}
	heap_filter_init_chosen(filter, table, sites, threads_passing(figures, selection));
}

/* ---- groups ---- */

/* Number the threads by the selections of some threads that they pass, or may pass. Class 0 passes none of these. */
static void threads_classify(struct budget_figures *figures)
{
	const struct budget *budget = figures->budget;
	uint32_t thread_count = figures->source->table->dictionary->thread_count;
	struct intern *classes = &figures->classes;
	uint32_t *passed = memory_zeroed((size_t)selection_count(figures) + 1, sizeof(*passed));
	figures->thread_classes = memory_zeroed((size_t)thread_count + 1, sizeof(*figures->thread_classes));
	intern_bytes(classes, "", 0);
	for (uint32_t i = 0; i < thread_count; i++) {
		size_t count = 0;
		for (uint32_t k = 0; k < selection_count(figures); k++) {
			enum passing_thread passing = is_of_threads(&budget->selections[k])
							      ? passes_thread(figures, &budget->selections[k], i)
							      : PASSES_NOT;
			if (passing != PASSES_NOT)
				passed[count++] = 2 * k + (passing == MAY_PASS);
		}
		figures->thread_classes[i] =
			intern_bytes(classes, count ? (const void *)passed : "", count * sizeof(*passed));
	}
	free(passed);
}

static enum passing_thread class_passes(const struct budget_figures *figures, uint32_t class, uint32_t selection)
{
	assert(class < figures->classes.count && selection < selection_count(figures));
	const struct intern_item *item = &figures->classes.items[class];
	const uint32_t keys[] = {2 * selection, 2 * selection + 1};
	size_t count = item->size / sizeof(*keys);
	if (!is_of_threads(&figures->budget->selections[selection]))
		return PASSES;
	if (!count)
		return PASSES_NOT;
	if (bsearch(&keys[0], item->data, count, sizeof(*keys), compare_u32))
		return PASSES;
	return bsearch(&keys[1], item->data, count, sizeof(*keys), compare_u32) ? MAY_PASS : PASSES_NOT;
}

/* Add the selections of a list that some threads pass. */
static void group_add(const struct budget_figures *figures, struct budget_group *group, struct budget_list list,
		      uint32_t class)
{
	uint32_t count = selection_count(figures), *own;
	if (figures->has_plain_lists) {
		group->selections = list.items;
		group->count = list.count;
		return;
	}
	group->selections = group->own = own = memory_resize(NULL, 2 * (size_t)list.count + 1, sizeof(*own));
	for (uint32_t i = 0; i < list.count; i++) {
		uint32_t selection = list.items[i] % count;
		enum passing_thread passing = class_passes(figures, class, selection);
		if (passing == PASSES && list.items[i] < count)
			own[group->count++] = selection;
		if (passing != PASSES_NOT && figures->is_doubtful[selection])
			own[group->count++] = selection + count;
	}
}

/* The place of the group, which is made if it is new. */
static uint32_t group_place(struct budget_figures *figures, uint32_t site, uint32_t thread)
{
	assert(site < figures->source->table->site_count);
	uint32_t list = figures->site_lists[site], class = figures->thread_classes[thread];
	bool added;
	uint32_t *place = map_add(&figures->group_of, map_pair(list, class), &added);
	if (!added)
		return *place;
	*place = (uint32_t)figures->group_count;
	memory_grow(figures->groups, figures->group_count, figures->group_capacity);
	struct budget_group *group = &figures->groups[figures->group_count++];
	*group = (struct budget_group){.count = 0};
	group_add(figures, group, budget_match_list(figures->match, list), class);
	return *place;
}

/* ---- sums ---- */

static bool has_threads(const struct budget *budget)
{
	for (uint32_t i = 0; i < budget->keys.count; i++)
		if (is_of_threads(&budget->selections[i]))
			return true;
	return false;
}

/* Blocks from before the trace are in no sum, but they are live: their groups are needed, too. */
static void groups_add_earlier(struct budget_figures *figures)
{
	const struct heap_table *table = figures->source->table;
	for (uint32_t site = 0; site < table->site_count; site++)
		for (uint32_t i = 0; table->sites[site].entry == HEAP_NONE && i < table->dictionary->thread_count; i++)
			group_place(figures, site, i);
}

/* One pass counts for all selections: by sites, and by threads if some selection asks for them. */
static void sums_make(struct budget_figures *figures, struct heap_window *window)
{
	const struct action_source *source = figures->source;
	bool is_by_thread = has_threads(figures->budget);
	heap_window_make(window, source->table, source->filter, (struct heap_range){0, source->table->duration_ns},
			 is_by_thread ? HEAP_BY_THREAD : HEAP_BY_NONE);
	for (uint32_t i = 0; i < window->cell_count; i++) {
		/* Without threads all are alike; the first one stands for them. */
		uint32_t thread = is_by_thread ? window->cells[i].by : 0;
		if (!window->numbers[i].total_count && !window->numbers[i].peak_count)
			continue;
		uint32_t place = group_place(figures, window->cells[i].site, thread);
		heap_numbers_add(&figures->groups[place].numbers, &window->numbers[i]);
	}
	groups_add_earlier(figures);
	for (size_t i = 0; i < figures->group_count; i++) {
		const struct budget_group *group = &figures->groups[i];
		for (uint32_t k = 0; k < group->count; k++)
			heap_numbers_add(&figures->numbers[group->selections[k]], &group->numbers);
	}
}

/* ---- peaks ---- */

/* By both numbers. */
static bool *peaks_wanted(const struct budget_figures *figures)
{
	const struct budget *budget = figures->budget;
	uint32_t count = selection_count(figures);
	bool *wanted = memory_zeroed(2 * (size_t)count + 1, sizeof(*wanted));
	for (size_t i = 0; i < budget->limit_count; i++)
		wanted[budget->limits[i].selection] |= budget->limits[i].metric->number == ACTION_NUMBER_peak_bytes ||
						       budget->limits[i].metric->number == ACTION_NUMBER_peak_count;
	for (uint32_t i = 0; i < count; i++)
		wanted[count + i] = wanted[i] && figures->is_doubtful[i];
	return wanted;
}

static uint32_t known_group(const void *context, uint32_t site, uint32_t thread)
{
	const struct budget_figures *figures = context;
	const uint32_t *place =
		map_find(&figures->group_of, map_pair(figures->site_lists[site], figures->thread_classes[thread]));
	return place ? *place : (uint32_t)figures->group_count;
}

static void peaks_walk(struct budget_figures *figures, const bool *wanted, bool has_earlier)
{
	/* The last one is of no selection. */
	struct budget_peak_group *groups = memory_zeroed(figures->group_count + 1, sizeof(*groups));
	uint32_t count = 2 * selection_count(figures);
	struct budget_peak *peaks = memory_zeroed((size_t)count + 1, sizeof(*peaks));
	for (size_t i = 0; i < figures->group_count; i++)
		groups[i] = (struct budget_peak_group){figures->groups[i].selections, figures->groups[i].count};
	budget_peaks_find(&(struct budget_peaks){.table = figures->source->table,
						 .filter = figures->source->filter,
						 .groups = groups,
						 .group_count = (uint32_t)figures->group_count + 1,
						 .group_of = known_group,
						 .context = figures,
						 .is_wanted = wanted,
						 .selection_count = count,
						 .has_earlier = has_earlier},
			  peaks);
	for (uint32_t i = 0; i < count; i++)
		if (wanted[i]) {
			figures->numbers[i].peak_bytes = peaks[i].bytes;
			figures->numbers[i].peak_count = peaks[i].count;
		}
	free(groups);
	free(peaks);
}

/* ---- one question each ---- */

static int selection_ask(struct budget_figures *figures, uint32_t selection, struct diag *diag)
{
	const struct heap_table *table = figures->source->table;
	const struct heap_range range = {0, table->duration_ns};
	struct heap_filter filter;
	struct heap_window window;
	budget_figures_filter(&filter, figures, selection);
	int error = heap_folded_check(table, &filter, range, HEAP_BY_NONE, diag);
	if (!error) {
		heap_window_make(&window, table, &filter, range, HEAP_BY_NONE);
		figures->numbers[selection] = window.totals;
		figures->has_peak[selection] = window.peak_from_ns <= range.from_ns;
		heap_window_fini(&window);
	}
	heap_filter_fini(&filter);
	return error;
}

/* A few peaks are searched for one by one, by all processors; many in one walk. */
static void peaks_make(struct budget_figures *figures, const struct heap_window *window)
{
	struct diag diag = {""};
	bool *wanted = peaks_wanted(figures);
	uint32_t all = 2 * selection_count(figures), count = 0;
	for (uint32_t i = 0; i < all; i++) {
		figures->has_peak[i] = true;
		if (wanted[i] && is_of_all(&figures->budget->selections[i % selection_count(figures)])) {
			figures->numbers[i].peak_bytes = window->totals.peak_bytes;
			figures->numbers[i].peak_count = window->totals.peak_count;
			wanted[i] = false;
		}
		count += wanted[i];
	}
	for (uint32_t i = 0; i < all && count <= ASKED_MAX; i++)
		if (wanted[i])
			selection_ask(figures, i, &diag);
	if (count > ASKED_MAX)
		peaks_walk(figures, wanted, window->earlier_count > 0);
	free(wanted);
}

void budget_figures_begin(struct budget_figures *figures, const struct budget *budget, struct budget_match *match,
			  struct action_input *input, struct action_source *source)
{
	*figures = (struct budget_figures){.budget = budget, .match = match, .input = input, .source = source};
	figures->numbers = memory_zeroed(2 * (size_t)budget->keys.count, sizeof(*figures->numbers));
	figures->has_peak = memory_zeroed(2 * (size_t)budget->keys.count, sizeof(*figures->has_peak));
	figures->is_doubtful = memory_zeroed(budget->keys.count, sizeof(*figures->is_doubtful));
	sites_match(figures);
	doubts_find(figures);
}

int budget_figures_make(struct budget_figures *figures, const struct budget *budget, struct budget_match *match,
			struct action_input *input, struct action_source *source, struct diag *diag)
{
	budget_figures_begin(figures, budget, match, input, source);
	int error = 0;
	/* Estimates have errors, and sums in place of blocks do not answer each question: they are asked for one by
	   one. */
	if (source->table->sample_bytes || heap_is_folded(source->table)) {
		for (uint32_t i = 0; i < 2 * budget->keys.count && !error; i++)
			if (i < budget->keys.count || figures->is_doubtful[i - budget->keys.count])
				error = selection_ask(figures, i, diag);
		return error;
	}
	struct heap_window window;
	threads_classify(figures);
	sums_make(figures, &window);
	peaks_make(figures, &window);
	heap_window_fini(&window);
	return 0;
}

void budget_figures_fini(struct budget_figures *figures)
{
	for (size_t i = 0; i < figures->group_count; i++)
		free(figures->groups[i].own);
	free(figures->groups);
	map_fini(&figures->group_of);
	intern_fini(&figures->classes);
	free(figures->thread_classes);
	free(figures->numbers);
	free(figures->has_peak);
	free(figures->is_doubtful);
	free(figures->site_lists);
	*figures = (struct budget_figures){.budget = NULL};
}
