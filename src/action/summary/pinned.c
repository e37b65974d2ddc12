/* SPDX-License-Identifier: MIT */
#include "action/summary/pinned.h"

#include <stdlib.h>

#include "action/report/page_keepers.h"
#include "action/summary/summary.h"
#include "base/map.h"
#include "base/memory.h"
#include "query/extents.h"
#include "trace/memory_rows.h"
#include "trace/trace.h"

/* Samples are taken when the resident memory has changed. The last time of nearly as much as the largest one goes on to
   the next sample, or to the end of the process. Its middle is before what the program frees at its end. */
static int64_t moment_of(const struct summary *summary)
{
	enum { PARTS = 8 };
	const struct heap_table *table = summary->source->table;
	const struct trace_dictionary *dictionary = table->dictionary;
	const struct trace_sample *largest = summary->resident;
	int64_t from_ns = largest->time_ns, to_ns = table->processes[largest->process].end_ns;
	bool is_high = false;
	for (uint32_t i = 0; i < dictionary->sample_count; i++) {
		const struct trace_sample *sample = &dictionary->samples[i];
		if (sample->process != largest->process || sample->time_ns < largest->time_ns)
			continue;
		bool was_high = is_high;
		is_high = sample->resident_bytes >= largest->resident_bytes / PARTS * (PARTS - 1);
		if (is_high)
			from_ns = sample->time_ns;
		if (was_high && !is_high)
			to_ns = sample->time_ns;
		else if (is_high)
			to_ns = table->processes[largest->process].end_ns;
	}
	return from_ns < to_ns ? from_ns + (to_ns - from_ns) / 2 : from_ns;
}

/* The stack, without the functions that allocate on behalf of others. */
static uint32_t node_of(const struct summary *summary, uint32_t site)
{
	const struct heap_cell cell = {site, 0};
	return action_site_node(summary->input, summary->source, &cell);
}

static void runs_sum(struct pinned *pinned, const struct summary *summary, const struct page_map *pages)
{
	struct page_keepers keepers = {0};
	page_keepers_find(&keepers, summary->input, pages, summary->resident->process, true);
	pinned->page_bytes = keepers.pages * HEAP_PAGE_BYTES;
	pinned->live_bytes = keepers.bytes;
	pinned->block_count = keepers.blocks;
	if (keepers.count) {
		pinned->node = keepers.items[0].group;
		pinned->node_page_bytes = keepers.items[0].pages * HEAP_PAGE_BYTES;
	}
	free(keepers.items);
}

/* Sum up the sites whose blocks keep pages, by stack. */
static void keepers_sum(struct pinned *pinned, const struct summary *summary)
{
	const struct account *account = &summary->account;
	uint64_t *page_bytes = memory_zeroed(account->site_count + 1, sizeof(*page_bytes));
	struct map by_node = {0};
	for (uint32_t i = 0; i < account->site_count; i++) {
		bool added;
		uint32_t node = node_of(summary, account->sites[i].site), *place = map_add(&by_node, node, &added);
		*place = added ? by_node.count - 1 : *place;
		page_bytes[*place] += account->sites[i].page_bytes;
		if (page_bytes[*place] > pinned->node_page_bytes) {
			pinned->node_page_bytes = page_bytes[*place];
			pinned->node = node;
		}
	}
	map_fini(&by_node);
	free(page_bytes);
}

static struct pinned pinned_of_account(const struct summary *summary)
{
	const struct account *account = &summary->account;
	struct pinned pinned = {.at_ns = account->time_ns,
				.page_bytes = account->page_bytes,
				.live_bytes = account->kept_bytes,
				.block_count = account->kept_count};
	keepers_sum(&pinned, summary);
	return pinned;
}

struct pinned pinned_find(const struct summary *summary)
{
	const struct heap_table *table = summary->source->table;
	struct pinned pinned = {.at_ns = 0};
	struct heap_filter filter;
	struct page_map pages;
	struct diag ignored = {""};
	if (summary_has_account(summary))
		return pinned_of_account(summary);
	if (!summary->is_split)
		return pinned;
	pinned.at_ns = moment_of(summary);
	heap_filter_init(&filter);
	filter.moment = (struct heap_moment){.is_asked = true, .at = {pinned.at_ns, POSITION_LAST}};
	if (!heap_filter_prepare(&filter, table, summary->source->names, &ignored)) {
		page_map_make_live(&pages, table, &filter);
		runs_sum(&pinned, summary, &pages);
		page_map_fini(&pages);
	}
	heap_filter_fini(&filter);
	return pinned;
}
