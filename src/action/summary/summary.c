/* SPDX-License-Identifier: MIT */
#include "action/summary/summary.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "action/actions/action_table.h"
#include "action/actions/stacks.h"
#include "action/report/losses.h"
#include "action/report/report_rows.h"
#include "action/report/stack_view.h"
#include "action/summary/findings.h"
#include "action/summary/function_sum.h"
#include "action/summary/kept_survey.h"
#include "action/summary/survey.h"
#include "base/memory.h"
#include "query/block_history.h"
#include "query/library_frames.h"
#include "trace/code_rows.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- stacks with what the survey found ---- */

static void surveyed_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			    struct action_groups *groups)
{
	action_groups_add(groups, action_site_node(input, source, cell));
}

static void surveyed_extend(struct action_input *input, struct action_source *source, struct action_rows *rows)
{
	const struct heap_window *window = source->window;
	for (uint32_t cell = 0; source->survey && cell < window->cell_count; cell++) {
		const struct survey_site *site = &source->survey->sites[window->cells[cell].site];
		if (!site->short_count && !site->crossed_count)
			continue;
		uint32_t node = action_site_node(input, source, &window->cells[cell]);
		uint32_t row = action_rows_find(rows, input, source, node, window->cells[cell].by);
		if (row == HEAP_NONE)
			continue;
		uint64_t *extra = rows->memory[row].figures[source - input->sources].extra;
		extra[SURVEYED_SHORT] += site->short_count;
		extra[SURVEYED_SHORT_BYTES] += site->short_bytes;
		extra[SURVEYED_CROSSED] += site->crossed_count;
		extra[SURVEYED_CROSSED_BYTES] += site->crossed_bytes;
	}
}

/* It is no action that people ask for. */
static const struct action action_surveyed = {
	.name = "surveyed",
	.title = "Stacks",
	.label = "stack",
	.help = "stacks with what a survey found",
	.groups = surveyed_groups,
	.extend = surveyed_extend,
	.text = action_stack_text,
	.json = action_stack_json,
	.lines = action_stack_lines,
	.extra = {{"short_lived_count", NULL, EXTRA_COUNT},
		  {"short_lived_bytes", NULL, EXTRA_BYTES},
		  {"crossed_count", NULL, EXTRA_COUNT},
		  {"crossed_bytes", NULL, EXTRA_BYTES}},
	.extra_count = 4,
};

enum { THOUSAND = 1000 };

static uint64_t short_number(const struct action_figures *figures)
{
	return figures->extra[SURVEYED_SHORT];
}

static uint64_t crossed_number(const struct action_figures *figures)
{
	return figures->extra[SURVEYED_CROSSED];
}

/* The bytes that moves copied; 0 for blocks that only shrank. */
static uint64_t realloc_number(const struct action_figures *figures)
{
	return figures->extra[CHAINS_FACTOR] > THOUSAND ? figures->extra[CHAINS_COPIED] + 1 : 0;
}

/* Where a list's rows come from: the action, and its order by a key or by a number. */
static const struct list_kind {
	const char *name, *title;
	const struct action *action;
	const char *key;
	uint64_t (*number)(const struct action_figures *figures);
} list_kinds[SUMMARY_LIST_COUNT] = {
	[SUMMARY_PEAK] = {"peak", "Live at the peak", &action_surveyed, "sp", NULL},
	[SUMMARY_OUTSTANDING] = {"outstanding", "Outstanding at the end", &action_surveyed, "so", NULL},
	[SUMMARY_TEMPORARY] = {"temporary", "Temporary", &action_surveyed, "stt", NULL},
	[SUMMARY_SHORT] = {"short_lived", "Short-lived", &action_surveyed, NULL, short_number},
	[SUMMARY_REALLOC] = {"reallocs", "Grown by realloc", &action_chains, NULL, realloc_number},
	[SUMMARY_CROSSED] = {"freed_by_others", "Freed by another thread", &action_surveyed, NULL, crossed_number},
	[SUMMARY_ALLOCATED] = {"allocated", "Most allocated", &action_surveyed, "st", NULL},
};

static bool is_exact(const struct summary *summary)
{
	return !summary->source->table->sample_bytes && !heap_is_folded(summary->source->table);
}

/* Chains take a pass over all events of each block. */
static bool has_chains(const struct summary *summary)
{
	return is_exact(summary) && summary->source->window->totals.realloc_count;
}

static void list_make(struct summary *summary, enum summary_list_id id, uint64_t top)
{
	assert(id < SUMMARY_LIST_COUNT);
	struct summary_list *list = &summary->lists[id];
	const struct list_kind *kind = &list_kinds[id];
	*list = (struct summary_list){.name = kind->name, .title = kind->title, .action = kind->action};
	list->sort = kind->key ? *action_sort_find(kind->key) : (struct action_sort){NULL, kind->title, kind->number};
	if (id == SUMMARY_REALLOC && !has_chains(summary))
		return;
	if (id == SUMMARY_TEMPORARY && summary->source->table->sample_bytes)
		return;
	const struct action_choice choice = {.sort = &list->sort, .top = top, .is_brief = true};
	const struct summary_list *first = &summary->lists[SUMMARY_PEAK];
	if (list != first && list->action == first->action)
		action_rows_order(&list->rows, &first->rows, summary->input, list->action, &choice);
	else
		action_rows_make(&list->rows, summary->input, list->action, &choice);
	while (list->count < list->rows.shown && list->sort.number(list->rows.rows[list->count]->figures))
		list->count++;
}

/* ---- processes ---- */

/* Where the resident memory of a process was largest, of what the logger saw; TRACE_NONE: of any process. */
static const struct trace_sample *largest_sample(const struct trace_dictionary *dictionary, uint32_t process)
{
	const struct trace_sample *largest = NULL;
	for (uint32_t i = 0; i < dictionary->sample_count; i++) {
		const struct trace_sample *sample = &dictionary->samples[i];
		if (process != TRACE_NONE && sample->process != process)
			continue;
		if (!largest || sample->resident_bytes > largest->resident_bytes)
			largest = sample;
	}
	return largest;
}

static int process_compare(const void *a, const void *b)
{
	const struct summary_process *left = a, *right = b;
	if (left->rank_bytes != right->rank_bytes)
		return left->rank_bytes > right->rank_bytes ? -1 : 1;
	return left->process < right->process ? -1 : left->process > right->process;
}

/* The process's own peak, and the stack with most of it. */
static void process_measure(struct summary *summary, struct summary_process *own)
{
	const struct action_source *source = summary->source;
	const struct trace_process *process = &source->table->dictionary->processes[own->process];
	int64_t end_ns = source->table->processes[own->process].end_ns;
	struct heap_range range = source->window->range;
	struct heap_filter filter;
	struct heap_window window;
	struct action_rows rows;
	range.from_ns = process->start_ns > range.from_ns ? process->start_ns : range.from_ns;
	range.to_ns = end_ns < range.to_ns ? end_ns : range.to_ns;
	if (range.from_ns > range.to_ns)
		return;
	/* What remains of blocks around others is known of all processes only: of one, all of these count. */
	struct heap_filter of_all = *source->filter;
	if (of_all.has_overhead)
		of_all.nesting = HEAP_NESTING_OUTERMOST;
	heap_filter_init_of_process(&filter, &of_all, source->table, own->process);
	heap_window_make(&window, source->table, &filter, range, HEAP_BY_NONE);
	struct action_source of_process = *source;
	of_process.window = &window;
	of_process.filter = &filter;
	struct action_input input = *summary->input;
	input.sources = &of_process;
	action_rows_make(&rows, &input, &action_surveyed,
			 &(struct action_choice){.sort = action_sort_find("sp"), .top = 1, .is_brief = true});
	own->has_peak = true;
	own->peak_bytes = window.totals.peak_bytes;
	own->peak_count = window.totals.peak_count;
	own->peak_at_ns = window.peak_at_ns;
	own->outstanding_bytes = window.totals.outstanding_bytes;
	own->outstanding_count = window.totals.outstanding_count;
	own->total_count = window.totals.total_count;
	if (rows.shown && rows.rows[0]->figures->numbers.peak_bytes && !of_all.has_overhead) {
		own->top_node = rows.rows[0]->group;
		own->top_bytes = rows.rows[0]->figures->numbers.peak_bytes;
	}
	action_rows_fini(&rows);
	heap_window_fini(&window);
	heap_filter_fini_of_process(&filter);
}

static void processes_make(struct summary *summary, uint64_t top, struct kept_survey *kept)
{
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	if (dictionary->process_count < 2)
		return;
	summary->processes = memory_zeroed(dictionary->process_count, sizeof(*summary->processes));
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		summary->processes[i] = (struct summary_process){.process = i, .top_node = HEAP_NONE};
	for (uint32_t i = 0; i < dictionary->sample_count; i++) {
		const struct trace_sample *sample = &dictionary->samples[i];
		struct summary_process *own = &summary->processes[sample->process];
		if (!own->resident || sample->resident_bytes > own->resident->resident_bytes)
			own->resident = sample;
	}
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		summary->processes[i].rank_bytes = summary->survey.process_peaks[i];
	qsort(summary->processes, dictionary->process_count, sizeof(*summary->processes), process_compare);
	summary->process_count = dictionary->process_count < top ? dictionary->process_count : (size_t)top;
	bool is_known = kept->answer.is_known;
	size_t known = is_known ? kept_survey_processes(kept, summary->processes, summary->process_count) : 0;
	for (size_t i = known; i < summary->process_count && !heap_is_folded(summary->source->table); i++)
		process_measure(summary, &summary->processes[i]);
	if (!is_known)
		kept_survey_processes(kept, summary->processes, summary->process_count);
	/* They were chosen by what their peaks may be at most. */
	for (size_t i = 0; i < summary->process_count; i++)
		if (summary->processes[i].has_peak)
			summary->processes[i].rank_bytes = summary->processes[i].peak_bytes;
	qsort(summary->processes, summary->process_count, sizeof(*summary->processes), process_compare);
}

/* ---- all of it ---- */

/* Return whether arenas of Python are blocks of the trace. */
static bool has_arenas(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		if (dictionary->entries[i].function == FUNCTION_ARENA_ALLOC)
			return true;
	return false;
}

/* Return whether a Python interpreter is among the images, whose memory for objects is in no event. */
static bool hides_objects(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; !has_arenas(dictionary) && i < dictionary->image_count; i++) {
		const char *name = text_file_name(dictionary->images[i].path);
		if (!strncmp(name, "python", 6) || !strncmp(name, "libpython", 9))
			return true;
	}
	return false;
}

const char *summary_function(const struct summary *summary, uint32_t node)
{
	struct heap_names *names = action_names(summary->input);
	if (!node || node == HEAP_NONE)
		return "[no stack]";
	uint32_t user = stack_view_user_node(summary->input, node);
	const struct heap_name *name = heap_names_name(names, heap_names_frame(names, user)->name);
	return summary->input->layout.has_full_names || !name->short_text ? name->text : name->short_text;
}

const char *summary_growth_name(const struct summary *summary, const struct survey_growth *own, struct text *pid)
{
	if (own->stack_count)
		return summary_function(summary, own->node);
	uint32_t number = summary->source->table->dictionary->processes[own->process].pid;
	snprintf(pid->data, sizeof(pid->data), "pid %.20s", text_pid(number).data);
	return pid->data;
}

/* Take the kinds of mappings of the process with the largest resident memory, and what its pages are. */
static void resident_choose(struct summary *summary)
{
	const struct heap_table *table = summary->source->table;
	const struct trace_pages *pages = NULL;
	if (!summary->resident)
		return;
	struct resident *all = resident_list(table->dictionary);
	summary->resident_kinds = all[summary->resident->process];
	free(all);
	if (summary->is_split)
		pages = account_reading(table, summary->resident->process, ACCOUNT_HIGH, 0);
	if (!pages)
		return;
	account_make(&summary->account, table, pages);
	account_tell(&summary->account, &summary->resident_kinds, table->dictionary);
}

/* Run the parts, each in a thread of its own where the table is worth several. */
static void parts_run(const struct summary *summary, void (*run)(void *part), void *parts, size_t size, unsigned count)
{
	if (heap_scan_width(summary->source->table) > 1) {
		heap_scan_threads(run, parts, size, count);
		return;
	}
	for (unsigned i = 0; i < count; i++)
		run((char *)parts + i * size);
}

/* What the first one of two threads does, and the second one. */
struct beginning {
	struct summary *summary;
	bool is_of_names;
};

static void beginning_run(void *context)
{
	const struct beginning *beginning = context;
	if (beginning->is_of_names)
		action_input_settle(beginning->summary->input);
	else
		resident_choose(beginning->summary);
}

/* Name the code, and account for the pages beside that: each takes one thread. */
static void summary_begin(struct summary *summary)
{
	struct beginning parts[] = {{summary, true}, {summary, false}};
	parts_run(summary, beginning_run, parts, sizeof(*parts), 2);
}

struct summary_resident summary_resident_parts(const struct summary *summary)
{
	assert(summary->resident);
	const struct resident *kinds = &summary->resident_kinds;
	const struct survey *survey = &summary->survey;
	const uint64_t *classes = summary->account.sum.bytes;
	bool has_account = summary_has_account(summary);
	struct summary_resident parts = {
		.bytes = kinds->split ? kinds->bytes : summary->resident->resident_bytes,
		.time_ns = kinds->split ? kinds->split->time_ns : summary->resident->time_ns,
		.live_bytes = has_account ? classes[ACCOUNT_LIVE] : survey->live_bytes,
		.rounding_bytes = has_account ? classes[ACCOUNT_ROUNDING] : survey->resident.bytes,
	};
	uint64_t pages = survey->page_bytes < parts.bytes ? survey->page_bytes : parts.bytes,
		 rounded = parts.live_bytes + parts.rounding_bytes;
	parts.heap_bytes = kinds->split ? kinds->heap_bytes : pages;
	parts.free_bytes = rounded < parts.heap_bytes ? parts.heap_bytes - rounded : 0;
	return parts;
}

uint64_t summary_mapped_bytes(const struct summary *summary)
{
	static const uint64_t notable_bytes = UINT64_C(16) << 20;
	const uint64_t bytes = summary->resident_kinds.rest[TRACE_MAPPING_ANONYMOUS];
	bool is_known = summary->is_split && summary->resident_kinds.split && !summary->hides_objects;
	return is_known && bytes >= notable_bytes ? bytes : 0;
}

/* Return whether the interpreter of Python is in the process. */
static bool is_python(const struct trace_dictionary *dictionary, uint32_t process)
{
	for (uint32_t i = 0; i < dictionary->mapping_count; i++) {
		const struct trace_mapping *mapping = &dictionary->mappings[i];
		if (mapping->process == process &&
		    library_is_interpreter(text_file_name(dictionary->images[mapping->image].path)))
			return true;
	}
	return false;
}

const char *summary_less_earlier(const struct summary *summary)
{
	return summary->source->window->earlier_count ? ", without those from before the trace" : "";
}

bool summary_maps_old_arenas(const struct summary *summary)
{
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	bool is_attached = losses_has_option(dictionary, "attached") && summary->resident &&
			   dictionary->processes[summary->resident->process].parent == TRACE_NONE;
	return is_attached && has_arenas(dictionary) && is_python(dictionary, summary->resident->process);
}

int64_t summary_growth_from(const struct summary *summary)
{
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	int64_t from_ns = summary->survey.chart_range.from_ns;
	bool is_later = dictionary->dropped_events && dictionary->dropped_until_ns > from_ns;
	return is_later ? dictionary->dropped_until_ns : from_ns;
}

bool summary_has_arenas_alone(const struct summary *summary)
{
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	return has_arenas(dictionary) && !trace_has_python_objects(dictionary);
}

unsigned summary_growth_notes(const struct summary *summary, struct summary_note notes[SUMMARY_NOTES])
{
	const struct heap_table *table = summary->source->table;
	const struct text from = text_duration(summary_growth_from(summary));
	unsigned count = 0;
	if (heap_is_folded(table)) {
		notes[count].word = "aggregated";
		snprintf(notes[count++].text, sizeof(notes->text),
			 "Growth is known from %s on: earlier blocks are summed up, and are in no rate.", from.data);
	}
	if (table->dictionary->dropped_events) {
		notes[count].word = "dropped";
		snprintf(notes[count++].text, sizeof(notes->text),
			 "Growth is known from %s on: earlier events are not kept, and frees of their blocks have no "
			 "stack.",
			 from.data);
	}
	if (table->sample_bytes) {
		notes[count].word = "sampled";
		snprintf(notes[count++].text, sizeof(notes->text),
			 "Growth is estimated from one byte in %s: a stack of which few blocks were chosen is not "
			 "judged.",
			 text_bytes(table->sample_bytes).data);
	}
	if (!*summary->survey.growth_unknown.data && summary_has_arenas_alone(summary)) {
		notes[count].word = "arenas";
		snprintf(notes[count++].text, sizeof(notes->text),
			 "Of Python's objects only new arenas count as growth, by the line that needed one: more may "
			 "grow, and faster. --python-objects records each object.");
	}
	const struct survey_growth *first = summary->survey.growths;
	if (summary->survey.grows_count && first->clock.is_freed_behind) {
		notes[count].word = "freed_at_end";
		snprintf(notes[count++].text, sizeof(notes->text),
			 "Growth of pid %s is that up to %s: then it frees what it has, and exits.",
			 text_pid(table->dictionary->processes[first->process].pid).data,
			 text_duration(first->clock.to_ns).data);
	}
	assert(count <= SUMMARY_NOTES);
	return count;
}

/* All that is not brief. */
static void summary_list(struct summary *summary, const struct summary_plan *plan, struct kept_survey *kept)
{
	struct action_source *source = summary->source;
	kept_survey_chains(kept, source);
	for (int id = 0; id < SUMMARY_LIST_COUNT; id++)
		list_make(summary, (enum summary_list_id)id, plan->top);
	const struct summary_list *peak = &summary->lists[SUMMARY_PEAK];
	summary->peak_function = function_sum_largest(summary->input, &peak->rows, &peak->sort);
	kept_survey_double_frees(kept, &source->double_frees);
	if (!kept->answer.is_known)
		summary->pinned = pinned_find(summary);
	kept_survey_pinned(kept, &summary->pinned);
	processes_make(summary, plan->is_screen ? SUMMARY_SCREEN_PROCESSES : SUMMARY_PROCESSES, kept);
}

/* A pass over all blocks: the survey's, or that of chains and double frees, which takes blocks in their order. */
struct passes {
	struct summary *summary;
	const struct survey_plan *plan;
	struct kept_survey *kept;
	bool is_survey;
};

static void passes_run(void *context)
{
	const struct passes *passes = context;
	struct summary *summary = passes->summary;
	struct action_source *source = summary->source;
	if (passes->is_survey) {
		survey_make(&summary->survey, summary->input, source, passes->plan, passes->kept);
		return;
	}
	if (has_chains(summary))
		action_chains_settle(source);
	if (is_exact(summary))
		source->double_frees = block_history_double_frees(source->table);
}

static void summary_pass(struct summary *summary, const struct survey_plan *plan, struct kept_survey *kept,
			 bool is_brief)
{
	struct passes parts[] = {{summary, plan, kept, true}, {summary, plan, kept, false}};
	const unsigned count = is_brief || kept->answer.is_known ? 1 : 2;
	parts_run(summary, passes_run, parts, sizeof(*parts), count);
}

void summary_make(struct summary *summary, struct action_input *input, const struct summary_plan *plan)
{
	/* What is brief is not all that is kept. */
	assert(input->source_count == 1 && !(plan->is_brief && plan->is_kept));
	struct action_source *source = &input->sources[0];
	*summary = (struct summary){.input = input,
				    .source = source,
				    .filters = plan->filters,
				    .filter_count = plan->filter_count,
				    .has_range = plan->has_range,
				    .is_by_object = plan->is_by_object,
				    .top = (size_t)plan->top};
	summary->resident = plan->is_filtered ? NULL : largest_sample(source->table->dictionary, TRACE_NONE);
	/* The parts of the resident memory take each block that there was. */
	summary->is_split = summary->resident && is_exact(summary) && !plan->has_range;
	summary_begin(summary);
	/* Without resident pages, the pages in which blocks have lain tell what is heap. */
	const struct trace_resident *split = summary->resident_kinds.split;
	bool is_guessed = summary->is_split && !summary_has_account(summary);
	const struct survey_plan survey_plan = {.short_ns = plan->short_ns,
						.chart_parts = SUMMARY_CHART_PARTS,
						.resident_process =
							is_guessed ? summary->resident->process : TRACE_NONE,
						.resident_at_ns = split               ? split->time_ns
								  : summary->is_split ? summary->resident->time_ns
										      : 0,
						.resident = split && is_guessed ? &summary->resident_kinds : NULL,
						.put_in = &summary->put_in};
	struct kept_survey kept = {.source = NULL};
	if (plan->is_kept && !plan->is_filtered && !plan->has_range)
		kept_survey_begin(&kept, input, source, &survey_plan);
	put_in_find(&summary->put_in, input, source, &kept);
	summary_pass(summary, &survey_plan, &kept, plan->is_brief);
	source->survey = &summary->survey;
	summary->hides_objects = hides_objects(source->table->dictionary);
	if (!plan->is_brief)
		summary_list(summary, plan, &kept);
	kept_survey_end(&kept);
	summary_find(summary);
}

void summary_fini(struct summary *summary)
{
	for (int id = 0; id < SUMMARY_LIST_COUNT; id++)
		action_rows_fini(&summary->lists[id].rows);
	for (unsigned i = 0; i < summary->finding_count; i++) {
		free(summary->findings[i].text);
		free(summary->findings[i].command);
	}
	account_fini(&summary->account);
	put_in_fini(&summary->put_in);
	free(summary->processes);
	survey_fini(&summary->survey);
	summary->source->survey = NULL;
}
