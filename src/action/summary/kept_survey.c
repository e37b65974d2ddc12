/* SPDX-License-Identifier: MIT */
#include "action/summary/kept_survey.h"

#include <xxhash.h>

#include "action/summary/put_in.h"
#include "action/summary/summary.h"
#include "action/summary/survey_making.h"
#include "base/cancel.h"
#include "trace/trace.h"

void kept_survey_begin(struct kept_survey *kept, struct action_input *input, struct action_source *source,
		       const struct survey_plan *plan)
{
	const uint32_t site_count = source->table->site_count;
	for (uint32_t site = 0; site < site_count; site++)
		action_site_node(input, source, &(struct heap_cell){site, 0});
	/* What the findings depend on, beside the trace. */
	const uint64_t question[] = {(uint64_t)plan->short_ns,
				     plan->chart_parts,
				     plan->resident_process,
				     (uint64_t)plan->resident_at_ns,
				     plan->resident != NULL,
				     source->filter->nesting,
				     XXH3_64bits(source->site_nodes, site_count * sizeof(*source->site_nodes))};
	kept->source = source;
	kept_answer_begin(&kept->answer, source->table, HEAP_ANSWER_SURVEY, question, sizeof(question));
}

void kept_survey_put_in(struct kept_survey *kept, struct put_in *put_in)
{
	if (!kept->source)
		return;
	put_in->rows = kept_answer_array(&kept->answer, put_in->rows, &put_in->count, sizeof(*put_in->rows));
	put_in->befores =
		kept_answer_array(&kept->answer, put_in->befores, &put_in->before_count, sizeof(*put_in->befores));
}

void kept_survey_pass(struct kept_survey *kept, struct survey_part *part, struct heap_peak *chart, uint32_t chart_parts)
{
	const struct heap_table *table = part->making->source->table;
	size_t series_count = part->series_count;
	if (!kept->source)
		return;
	/* Join them: there are as many as blocks before. */
	heap_extents_sum(&part->extents, NULL, 0);
	kept_answer_value(&kept->answer, chart, chart_parts * sizeof(*chart));
	kept_answer_value(&kept->answer, &part->at_peak, sizeof(part->at_peak));
	kept_answer_value(&kept->answer, &part->resident, sizeof(part->resident));
	kept_answer_value(&kept->answer, &part->live_bytes, sizeof(part->live_bytes));
	kept_answer_value(&kept->answer, part->making->slots, sizeof(part->making->slots));
	kept_answer_value(&kept->answer, part->replaced, sizeof(part->replaced));
	kept_answer_value(&kept->answer, part->wholes, sizeof(part->wholes));
	part->sites = kept_answer_table(&kept->answer, part->sites, table->site_count + 1, sizeof(*part->sites));
	part->extents.items = kept_answer_array(&kept->answer, part->extents.items, &part->extents.count,
						sizeof(*part->extents.items));
	part->series = kept_answer_array(&kept->answer, part->series, &series_count, sizeof(*part->series));
	part->series_keys =
		kept_answer_array(&kept->answer, part->series_keys, &series_count, sizeof(*part->series_keys));
	part->series_count = (uint32_t)series_count;
	part->handed = kept_answer_array(&kept->answer, part->handed, &part->handed_count, sizeof(*part->handed));
	if (part->making->has_levels)
		part->levels = kept_answer_table(&kept->answer, part->levels,
						 (size_t)table->dictionary->process_count * SURVEY_LEVEL_PARTS,
						 sizeof(*part->levels));
}

void kept_survey_chains(struct kept_survey *kept, struct action_source *source)
{
	bool is_found = source->chains != NULL;
	kept_answer_value(&kept->answer, &is_found, sizeof(is_found));
	if (is_found)
		source->chains = kept_answer_array(&kept->answer, source->chains, &source->chains_count,
						   sizeof(*source->chains));
}

void kept_survey_double_frees(struct kept_survey *kept, unsigned *count)
{
	kept_answer_value(&kept->answer, count, sizeof(*count));
}

void kept_survey_pinned(struct kept_survey *kept, struct pinned *pinned)
{
	kept_answer_value(&kept->answer, pinned, sizeof(*pinned));
}

size_t kept_survey_processes(struct kept_survey *kept, struct summary_process *processes, size_t count)
{
	size_t known = count;
	if (!kept->source)
		return 0;
	kept_answer_value(&kept->answer, &known, sizeof(known));
	known = known < count ? known : count;
	for (size_t i = 0; i < known; i++) {
		/* The samples are the trace's. */
		const struct trace_sample *resident = processes[i].resident;
		processes[i].resident = NULL;
		kept_answer_value(&kept->answer, &processes[i], sizeof(processes[i]));
		processes[i].resident = resident;
	}
	return kept->answer.is_known ? known : 0;
}

void kept_survey_end(struct kept_survey *kept)
{
	kept_answer_end(&kept->answer, kept->source && !cancel_is_asked(kept->source->filter->is_cancelled));
	*kept = (struct kept_survey){.source = NULL};
}
