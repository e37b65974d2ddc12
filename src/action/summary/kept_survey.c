/* SPDX-License-Identifier: MIT */
#include "action/summary/kept_survey.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "action/summary/summary.h"
#include "action/summary/survey_making.h"
#include "base/cancel.h"
#include "base/memory.h"
#include "table/index_file.h"
#include "trace/trace.h"

enum { COMPRESSION = 1 };

/* More is not kept. */
static const uint64_t bytes_most = UINT64_C(1) << 28;

/* What the findings depend on, beside the trace. */
static uint64_t key_of(struct action_input *input, struct action_source *source, const struct survey_plan *plan)
{
	const uint32_t site_count = source->table->site_count;
	for (uint32_t site = 0; site < site_count; site++)
		action_site_node(input, source, &(struct heap_cell){site, 0});
	const uint64_t numbers[] = {heap_index_program(),   (uint64_t)plan->short_ns,       plan->chart_parts,
				    plan->resident_process, (uint64_t)plan->resident_at_ns, plan->resident != NULL};
	return XXH3_64bits_withSeed(source->site_nodes, site_count * sizeof(*source->site_nodes),
				    XXH3_64bits(numbers, sizeof(numbers)));
}

/* The bytes are compressed behind their number. */
static bool bytes_unpack(struct bytes *bytes, const uint8_t *data, uint64_t size)
{
	uint64_t all;
	if (size < sizeof(all))
		return false;
	memcpy(&all, data, sizeof(all));
	if (all > bytes_most)
		return false;
	*bytes = (struct bytes){.data = memory_resize(NULL, all + 1, 1), .size = all, .capacity = all + 1};
	return ZSTD_decompress(bytes->data, all, data + sizeof(all), size - sizeof(all)) == all;
}

static void bytes_keep(const struct kept_survey *kept)
{
	uint64_t all = kept->bytes.size;
	if (kept->bytes.has_failed || all > bytes_most)
		return;
	size_t room = ZSTD_compressBound(all);
	uint8_t *data = memory_resize(NULL, sizeof(all) + room, 1);
	memcpy(data, &all, sizeof(all));
	size_t size = ZSTD_compress(data + sizeof(all), room, kept->bytes.data, all, COMPRESSION);
	if (!ZSTD_isError(size))
		heap_index_keep_answer(kept->source->table, HEAP_ANSWER_SURVEY, kept->key, data, sizeof(all) + size);
	free(data);
}

void kept_survey_begin(struct kept_survey *kept, struct action_input *input, struct action_source *source,
		       const struct survey_plan *plan)
{
	uint64_t size;
	*kept = (struct kept_survey){.source = source, .key = key_of(input, source, plan)};
	uint8_t *data = heap_index_read_answer(source->table, HEAP_ANSWER_SURVEY, kept->key, &size);
	kept->is_known = data && bytes_unpack(&kept->bytes, data, size);
	if (!kept->is_known)
		kept->bytes.size = 0;
	free(data);
}

/* ---- findings: set, or noted ---- */

static void value_pass(struct kept_survey *kept, void *value, size_t size)
{
	if (!kept->is_known) {
		bytes_add(&kept->bytes, value, size);
	} else if (size <= kept->bytes.size - kept->at) {
		memcpy(value, kept->bytes.data + kept->at, size);
		kept->at += size;
	}
}

/* An array that the caller frees. */
static void *array_pass(struct kept_survey *kept, void *items, size_t *count, size_t size)
{
	value_pass(kept, count, sizeof(*count));
	if (kept->is_known) {
		*count = *count <= (kept->bytes.size - kept->at) / size ? *count : 0;
		items = memory_zeroed(*count + 1, size);
	}
	if (*count)
		value_pass(kept, items, *count * size);
	return items;
}

void kept_survey_pass(struct kept_survey *kept, struct survey_part *part, struct heap_peak *chart, uint32_t chart_parts)
{
	const struct heap_table *table = part->making->source->table;
	size_t site_count = table->site_count, series_count = part->series_count,
	       level_count = part->levels ? (size_t)table->dictionary->process_count * SURVEY_LEVEL_PARTS : 0;
	if (!kept->source)
		return;
	/* Join them: there are as many as blocks before. */
	heap_extents_sum(&part->extents, NULL, 0);
	value_pass(kept, chart, chart_parts * sizeof(*chart));
	value_pass(kept, &part->at_peak, sizeof(part->at_peak));
	value_pass(kept, &part->resident, sizeof(part->resident));
	value_pass(kept, &part->live_bytes, sizeof(part->live_bytes));
	value_pass(kept, part->replaced, sizeof(part->replaced));
	part->sites = array_pass(kept, part->sites, &site_count, sizeof(*part->sites));
	part->extents.items = array_pass(kept, part->extents.items, &part->extents.count, sizeof(*part->extents.items));
	part->series = array_pass(kept, part->series, &series_count, sizeof(*part->series));
	part->series_keys = array_pass(kept, part->series_keys, &series_count, sizeof(*part->series_keys));
	part->series_count = (uint32_t)series_count;
	part->handed = array_pass(kept, part->handed, &part->handed_count, sizeof(*part->handed));
	part->levels = array_pass(kept, part->levels, &level_count, sizeof(*part->levels));
}

void kept_survey_chains(struct kept_survey *kept, struct action_source *source)
{
	bool is_found = source->chains != NULL;
	if (!kept->source)
		return;
	value_pass(kept, &is_found, sizeof(is_found));
	if (is_found)
		source->chains = array_pass(kept, source->chains, &source->chains_count, sizeof(*source->chains));
}

void kept_survey_double_frees(struct kept_survey *kept, unsigned *count)
{
	if (kept->source)
		value_pass(kept, count, sizeof(*count));
}

void kept_survey_pinned(struct kept_survey *kept, struct pinned *pinned)
{
	if (kept->source)
		value_pass(kept, pinned, sizeof(*pinned));
}

size_t kept_survey_processes(struct kept_survey *kept, struct summary_process *processes, size_t count)
{
	size_t known = count;
	if (!kept->source)
		return 0;
	value_pass(kept, &known, sizeof(known));
	known = known < count ? known : count;
	for (size_t i = 0; i < known; i++) {
		/* The samples are the trace's. */
		const struct trace_sample *resident = processes[i].resident;
		processes[i].resident = NULL;
		value_pass(kept, &processes[i], sizeof(processes[i]));
		processes[i].resident = resident;
	}
	return kept->is_known ? known : 0;
}

void kept_survey_end(struct kept_survey *kept)
{
	bool is_whole = kept->source && !__atomic_load_n(kept->source->table->is_damaged, __ATOMIC_RELAXED) &&
			!cancel_is_asked(kept->source->filter->is_cancelled);
	if (is_whole && !kept->is_known)
		bytes_keep(kept);
	free(kept->bytes.data);
	*kept = (struct kept_survey){.source = NULL};
}
