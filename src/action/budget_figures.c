/* SPDX-License-Identifier: MIT */
#include "action/budget_figures.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "query/folded.h"

/* ---- threads ---- */

/* A number is an id, also. */
static bool word_names(const char *word, const char *name, uint32_t id)
{
	uint64_t number;
	return heap_glob(word, name) || (text_parse_count(word, &number) && number == id);
}

static bool list_names(const struct budget *budget, struct budget_list list, const char *name, uint32_t id)
{
	for (uint32_t i = 0; i < list.count; i++)
		if (word_names(budget_word(budget, list.items[i]), name, id))
			return true;
	return !list.count;
}

static bool is_of_threads(const struct budget_selection *selection)
{
	return selection->lists[BUDGET_THREAD].count || selection->lists[BUDGET_PROCESS].count;
}

static bool passes_thread(const struct budget_figures *figures, const struct budget_selection *selection, uint32_t id)
{
	const struct trace_dictionary *dictionary = figures->source->table->dictionary;
	const struct trace_thread *thread = &dictionary->threads[id];
	const struct trace_process *process = &dictionary->processes[thread->process];
	return list_names(figures->budget, selection->lists[BUDGET_THREAD], thread->name ? thread->name : "",
			  thread->tid) &&
	       list_names(figures->budget, selection->lists[BUDGET_PROCESS], text_file_name(process->image),
			  process->pid);
}

/* By thread of the trace; NULL: the selection takes all. */
static uint8_t *threads_passing(const struct budget_figures *figures, uint32_t number)
{
	const struct budget_selection *selection = &figures->budget->selections[number];
	uint32_t count = figures->source->table->dictionary->thread_count;
	if (!is_of_threads(selection))
		return NULL;
	uint8_t *passes = memory_zeroed((size_t)count + 1, 1);
	for (uint32_t i = 0; i < count; i++)
		passes[i] = passes_thread(figures, selection, i);
	return passes;
}

bool budget_figures_has_thread(const struct budget_figures *figures, uint32_t selection)
{
	uint8_t *passes = threads_passing(figures, selection);
	bool has = !passes || memchr(passes, 1, figures->source->table->dictionary->thread_count);
	free(passes);
	return has;
}

/* ---- sites ---- */

static void sites_match(struct budget_figures *figures)
{
	const struct heap_table *table = figures->source->table;
	struct heap_names *names = figures->source->names;
	figures->site_lists = memory_zeroed((size_t)table->site_count + 1, sizeof(*figures->site_lists));
	for (uint32_t i = 0; i < table->site_count; i++) {
		const struct heap_cell cell = {i, 0};
		uint32_t culled = action_site_node(figures->input, figures->source, &cell);
		uint32_t node = heap_names_site(names, &table->sites[i]);
		figures->site_lists[i] = budget_match_stack(figures->match, names, node, culled);
	}
}

static bool list_has(struct budget_list list, uint32_t selection)
{
	for (uint32_t i = 0; i < list.count; i++)
		if (list.items[i] == selection)
			return true;
	return false;
}

void budget_figures_filter(struct heap_filter *filter, const struct budget_figures *figures, uint32_t selection)
{
	const struct heap_table *table = figures->source->table;
	uint8_t *sites = memory_zeroed((size_t)table->site_count + 1, 1);
	for (uint32_t i = 0; i < table->site_count; i++)
		sites[i] = list_has(budget_match_list(figures->match, figures->site_lists[i]), selection);
	heap_filter_init_chosen(filter, table, sites, threads_passing(figures, selection));
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
		heap_window_make(&window, table, &filter, range, HEAP_BY_NONE, false);
		figures->numbers[selection] = window.totals;
		figures->has_peak[selection] = window.peak_from_ns <= range.from_ns;
		heap_window_fini(&window);
	}
	heap_filter_fini(&filter);
	return error;
}

int budget_figures_make(struct budget_figures *figures, const struct budget *budget, struct budget_match *match,
			struct action_input *input, struct action_source *source, struct diag *diag)
{
	*figures = (struct budget_figures){.budget = budget, .match = match, .input = input, .source = source};
	figures->numbers = memory_zeroed(budget->keys.count, sizeof(*figures->numbers));
	figures->has_peak = memory_zeroed(budget->keys.count, sizeof(*figures->has_peak));
	sites_match(figures);
	int error = 0;
	for (uint32_t i = 0; i < budget->keys.count && !error; i++)
		error = selection_ask(figures, i, diag);
	return error;
}

void budget_figures_fini(struct budget_figures *figures)
{
	free(figures->numbers);
	free(figures->has_peak);
	free(figures->site_lists);
	figures->numbers = NULL;
	figures->has_peak = NULL;
	figures->site_lists = NULL;
}
