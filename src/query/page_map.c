/* SPDX-License-Identifier: MIT */
#include "query/page_map.h"

#include <stdlib.h>

#include "base/memory.h"
#include "query/extents.h"
#include "query/folded.h"
#include "query/scan.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

/* A live block, as the pass sees it. */
struct live_block {
	uint64_t address, bytes;
	int64_t birth_ns;
	uint32_t process, site;
	bool is_chosen; /* passes the filter */
};

struct live_blocks {
	struct live_block *items;
	size_t count, capacity;
};

/* The pages of a pass over addresses: the last one is not complete yet. */
struct page_pass {
	struct page_map *map;
	struct page_run page;
	uint64_t most_bytes; /* of its blocks */
	uint64_t begun;      /* blocks that begin on it */
	bool is_chosen;      /* one of its blocks is */
};

static enum page_fullness fullness_of(uint64_t bytes)
{
	enum { QUARTERS = 4 };
	uint64_t quarters = bytes * QUARTERS / HEAP_PAGE_BYTES;
	return quarters < QUARTERS - 1 ? (enum page_fullness)(PAGE_LITTLE + quarters) : PAGE_FULL;
}

static void run_add(struct page_map *map, const struct page_run *run)
{
	memory_grow(map->runs, map->count, map->capacity);
	map->runs[map->count++] = *run;
}

/* Add pages that are alike to the last run, or begin one. `begun` blocks of them begin there. */
static void run_extend(struct page_map *map, const struct page_run *pages, uint64_t begun)
{
	struct page_run *last = map->count ? &map->runs[map->count - 1] : NULL;
	bool is_next = last && last->process == pages->process && last->site == pages->site &&
		       last->fullness == pages->fullness && last->first + last->count * HEAP_PAGE_BYTES == pages->first;
	if (!is_next) {
		run_add(map, pages);
		return;
	}
	last->count += pages->count;
	last->bytes += pages->bytes;
	last->blocks += begun;
	last->oldest_ns = pages->oldest_ns < last->oldest_ns ? pages->oldest_ns : last->oldest_ns;
}

static void pass_flush(struct page_pass *pass)
{
	if (!pass->page.count)
		return;
	pass->page.fullness = fullness_of(pass->page.bytes);
	if (pass->is_chosen)
		run_extend(pass->map, &pass->page, pass->begun);
	pass->page.count = 0;
}

/* Add a part of a block to the page at this address. */
static void pass_add(struct page_pass *pass, const struct live_block *piece, uint64_t first, uint64_t bytes,
		     bool is_begin)
{
	struct page_run *page = &pass->page;
	if (!page->count || page->first != first || page->process != piece->process) {
		pass_flush(pass);
		*page = (struct page_run){.process = piece->process,
					  .site = piece->site,
					  .first = first,
					  .count = 1,
					  .oldest_ns = piece->birth_ns};
		pass->most_bytes = pass->begun = pass->is_chosen = 0;
	}
	page->bytes += bytes;
	page->blocks++;
	pass->is_chosen |= piece->is_chosen;
	pass->begun += is_begin;
	page->oldest_ns = piece->birth_ns < page->oldest_ns ? piece->birth_ns : page->oldest_ns;
	if (bytes > pass->most_bytes) {
		pass->most_bytes = bytes;
		page->site = piece->site;
	}
}

static uint64_t page_of(uint64_t address)
{
	return address & ~(uint64_t)(HEAP_PAGE_BYTES - 1);
}

/* Add a block behind all others of its process: its first page, those that it covers, and its last one. */
static void pass_block(struct page_pass *pass, const struct live_block *piece, uint64_t from, uint64_t end)
{
	uint64_t first = page_of(from), last = page_of(end - (end > from)), behind = first + HEAP_PAGE_BYTES;
	bool is_begin = from == piece->address;
	if (first == last) {
		pass_add(pass, piece, first, end - from, is_begin);
		return;
	}
	pass_add(pass, piece, first, behind - from, is_begin);
	if (behind < last) {
		pass_flush(pass);
		if (piece->is_chosen)
			run_extend(pass->map,
				   &(struct page_run){.process = piece->process,
						      .site = piece->site,
						      .first = behind,
						      .count = (last - behind) / HEAP_PAGE_BYTES,
						      .bytes = last - behind,
						      .blocks = 1,
						      .oldest_ns = piece->birth_ns,
						      .fullness = PAGE_FULL},
				   0);
	}
	pass_add(pass, piece, last, end - last, false);
}

static int pieces_compare(const void *one, const void *other)
{
	const struct live_block *a = one, *b = other;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static void pass_all(struct page_map *map, struct live_blocks *pieces)
{
	struct page_pass pass = {.map = map};
	uint64_t behind = 0; /* the block before */
	for (size_t i = 0; i < pieces->count; i++) {
		const struct live_block *piece = &pieces->items[i];
		uint64_t end = piece->address + piece->bytes;
		if (!i || piece->process != piece[-1].process)
			behind = 0;
		/* The last page of the address space is nobody's; so no sum overflows. */
		end = end < piece->address || end > page_of(UINT64_MAX) ? page_of(UINT64_MAX) : end;
		uint64_t from = piece->address < behind ? behind : piece->address;
		if (from > end) {
			pass.is_chosen |= piece->is_chosen;
			continue;
		}
		if (piece->address >= page_of(UINT64_MAX))
			continue;
		pass_block(&pass, piece, from, end);
		behind = end;
	}
	pass_flush(&pass);
}

/* ---- blocks ---- */

static uint32_t process_of(const struct heap_table *table, const struct heap_allocation *row)
{
	return table->dictionary->threads[row->thread].process;
}

static void pieces_find(struct live_blocks *pieces, const struct heap_table *table, const struct heap_filter *filter)
{
	const unsigned columns = PACK_TIMES | PACK_SIZES | PACK_SITES | PACK_THREADS | PACK_ADDRESSES;
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, columns, filter, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			memory_grow(pieces->items, pieces->count, pieces->capacity);
			pieces->items[pieces->count++] = (struct live_block){
				.address = rows->details[i].address,
				.bytes = row.size_bytes,
				.birth_ns = row.flags & HEAP_EARLIER ? 0 : row.birth_ns,
				.process = process_of(table, &row),
				.site = row.site,
				.is_chosen = true,
			};
		}
	heap_scan_end(&scan);
	if (pieces->count)
		qsort(pieces->items, pieces->count, sizeof(*pieces->items), pieces_compare);
}

/* Find all blocks of the moment. Of each, is_chosen says whether it is among `chosen`. */
static void all_find(struct live_blocks *all, const struct live_blocks *chosen, const struct heap_table *table,
		     const struct heap_filter *filter)
{
	struct heap_filter any;
	struct diag ignored = {""};
	heap_filter_init(&any);
	any.nesting = filter->nesting;
	any.is_cancelled = filter->is_cancelled;
	any.moment = filter->moment;
	if (!heap_filter_prepare(&any, table, NULL, &ignored))
		pieces_find(all, table, &any);
	any.moment = (struct heap_moment){.is_asked = false}; /* the lists are the other filter's */
	heap_filter_fini(&any);
	for (size_t i = 0, at = 0; i < all->count; i++) {
		while (at < chosen->count && pieces_compare(&chosen->items[at], &all->items[i]) < 0)
			at++;
		all->items[i].is_chosen = at < chosen->count && !pieces_compare(&chosen->items[at], &all->items[i]);
	}
}

/* One thread's part of a pass. */
struct extents_part {
	const struct heap_table *table;
	int64_t at_ns;
	uint32_t *shared;
	struct heap_extents extents;
};

static void extents_part_run(void *context)
{
	struct extents_part *part = context;
	const unsigned columns = PACK_TIMES | PACK_SIZES | PACK_THREADS | PACK_ADDRESSES | PACK_SLACKS;
	const struct heap_scan_plan plan = {INT64_MIN, part->at_ns, INT64_MIN, columns, NULL, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, part->table, &plan, part->shared);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			if ((row.birth_ns <= part->at_ns || row.flags & HEAP_EARLIER) && !(row.flags & HEAP_NESTED))
				heap_extents_add(&part->extents, process_of(part->table, &row), &row,
						 &rows->details[i]);
		}
	heap_scan_end(&scan);
}

/* The pages in which blocks lay up to the moment. */
static void extents_find(struct heap_extents *extents, const struct heap_table *table, const struct heap_filter *filter)
{
	const unsigned width = heap_scan_width(table);
	uint32_t shared = 0;
	struct extents_part *parts = memory_zeroed(width, sizeof(*parts));
	for (unsigned i = 0; i < width; i++)
		parts[i] = (struct extents_part){.table = table, .at_ns = filter->moment.at.time_ns, .shared = &shared};
	heap_scan_threads(extents_part_run, parts, sizeof(*parts), width);
	*extents = parts[0].extents;
	for (unsigned i = 1; i < width; i++) {
		heap_extents_merge(extents, &parts[i].extents);
		heap_extents_fini(&parts[i].extents);
	}
	free(parts);
}

/* ---- both ---- */

const char *page_map_missing(const struct heap_table *table)
{
	if (table->sample_bytes)
		return "is a sample: a map needs every block";
	return heap_folded_until_ns(table) == INT64_MIN ? NULL : "is folded: a map needs the addresses of all blocks";
}

static void run_add_empty(struct page_map *map, uint32_t process, uint64_t first, uint64_t end)
{
	if (first < end)
		run_add(map, &(struct page_run){.process = process,
						.site = HEAP_NONE,
						.first = first,
						.count = (end - first) / HEAP_PAGE_BYTES,
						.fullness = PAGE_NONE});
}

/* Fill *map with the runs of `live`, and between them the rest of the extents, which are in the same order. */
static void runs_merge(struct page_map *map, const struct page_map *live, const struct heap_extents *extents)
{
	size_t at = 0;
	for (size_t i = 0; i < extents->count; i++) {
		const struct heap_extent *extent = &extents->items[i];
		uint64_t next = extent->first * HEAP_PAGE_BYTES, end = (extent->last + 1) * HEAP_PAGE_BYTES;
		for (; at < live->count && (live->runs[at].process < extent->set ||
					    (live->runs[at].process == extent->set && live->runs[at].first < end));
		     at++) {
			const struct page_run *run = &live->runs[at];
			if (run->process == extent->set)
				run_add_empty(map, extent->set, next, run->first);
			run_add(map, run);
			next = run->process == extent->set ? run->first + run->count * HEAP_PAGE_BYTES : next;
		}
		run_add_empty(map, extent->set, next, end);
	}
	for (; at < live->count; at++)
		run_add(map, &live->runs[at]);
}

void page_map_make_live(struct page_map *map, const struct heap_table *table, const struct heap_filter *filter)
{
	struct live_blocks pieces = {.items = NULL};
	*map = (struct page_map){.runs = NULL};
	pieces_find(&pieces, table, filter);
	pass_all(map, &pieces);
	free(pieces.items);
}

void page_map_make(struct page_map *map, const struct heap_table *table, const struct heap_filter *filter)
{
	struct heap_extents extents = {0};
	struct page_map live;
	struct live_blocks chosen = {.items = NULL}, all = {.items = NULL};
	*map = live = (struct page_map){.runs = NULL};
	pieces_find(&chosen, table, filter);
	all_find(&all, &chosen, table, filter);
	const bool is_part = all.count != chosen.count;
	pass_all(is_part ? map : &live, &all);
	free(chosen.items);
	free(all.items);
	if (is_part)
		return;
	extents_find(&extents, table, filter);
	heap_extents_within(&extents, 0, 0, 0); /* joins them */
	runs_merge(map, &live, &extents);
	page_map_fini(&live);
	heap_extents_fini(&extents);
}

void page_map_fini(struct page_map *map)
{
	free(map->runs);
	*map = (struct page_map){.runs = NULL};
}
