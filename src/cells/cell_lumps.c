/* SPDX-License-Identifier: MIT */
#include "cells/cell_lumps.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "query/window.h"
#include "trace/code_rows.h"
#include "trace/trace.h"

struct site_share {
	uint32_t site;
	double share;
};

static double share_of(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static int site_compare(const void *a, const void *b)
{
	const struct site_share *left = a, *right = b;
	if (left->share < right->share || left->share > right->share)
		return left->share > right->share ? -1 : 1;
	return (left->site > right->site) - (left->site < right->site);
}

/* All sites, the heaviest first. */
static struct site_share *sites_weigh(const struct heap_table *table, const struct heap_filter *filter,
				      struct heap_range range)
{
	struct site_share *sites = memory_zeroed(table->site_count, sizeof(*sites));
	struct heap_window window;
	heap_window_make(&window, table, filter, range, HEAP_BY_NONE);
	const struct heap_numbers *all = &window.totals;
	for (uint32_t i = 0; i < table->site_count; i++) {
		const struct heap_numbers *own = &window.numbers[i];
		sites[i].site = i;
		sites[i].share = larger(larger(share_of(own->total_bytes, all->total_bytes),
					       share_of(own->total_count, all->total_count)),
					larger(share_of(own->peak_bytes, all->peak_bytes),
					       share_of(own->outstanding_bytes, all->outstanding_bytes)));
	}
	heap_window_fini(&window);
	if (table->site_count)
		qsort(sites, table->site_count, sizeof(*sites), site_compare);
	return sites;
}

/* A key of the function that was called and the innermost frames. */
static uint64_t frames_key(const struct heap_table *table, uint32_t site, unsigned depth)
{
	const struct trace_node *nodes = table->dictionary->nodes;
	uint32_t node = table->sites[site].stack;
	uint64_t key = hash_pair(table->sites[site].entry, 0);
	for (unsigned i = 0; i < depth && node; i++, node = nodes[node].parent)
		key = hash_pair(key, (uint64_t)nodes[node].frame + 1);
	return key;
}

static bool can_be_lumped(const struct heap_site *site)
{
	return site->stack && site->entry < HEAP_OVERHEAD;
}

void cell_lumps_choose(struct cell_lumps *lumps, const struct heap_table *table, const struct heap_filter *filter,
		       struct heap_range range, const struct cell_set *some, uint64_t budget, unsigned depth)
{
	struct site_share *order = sites_weigh(table, filter, range);
	uint32_t *cells = memory_zeroed(table->site_count, sizeof(*cells));
	struct map first = {.cells = NULL};
	*lumps = (struct cell_lumps){.sites = memory_zeroed(table->site_count, sizeof(uint32_t)),
				     .lumped = memory_zeroed(table->site_count, sizeof(uint32_t))};
	for (uint32_t i = 0; i < some->count; i++)
		cells[cell_keys_of(&some->cells[i]).node]++;
	uint64_t sum = 0;
	for (uint32_t i = 0; i < table->site_count; i++) {
		uint32_t site = order[i].site;
		bool added;
		lumps->sites[site] = site;
		sum += cells[site];
		if (sum <= budget || !can_be_lumped(&table->sites[site])) {
			lumps->kept++;
			continue;
		}
		uint32_t *one = map_add(&first, frames_key(table, site, depth), &added);
		*one = added ? site : *one;
		lumps->sites[site] = *one;
		lumps->lumped[*one]++;
	}
	map_fini(&first);
	free(cells);
	free(order);
}

void cell_lumps_fini(struct cell_lumps *lumps)
{
	free(lumps->sites);
	free(lumps->lumped);
	*lumps = (struct cell_lumps){.sites = NULL};
}
