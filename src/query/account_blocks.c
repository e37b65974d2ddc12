/* SPDX-License-Identifier: MIT */
#include "query/account_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "query/cached_blocks.h"
#include "query/glibc_heaps.h"
#include "query/scan.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	CHUNK_HEAD = 8,      /* between two blocks of glibc */
	MAPPED_HEAD = 16,    /* before a block with pages of its own */
	HEAP_BYTES = 32,     /* of the head of other memory of an arena */
	CACHE_BYTES = 0x290, /* of a thread's cache itself, which is the first chunk of its arena */
	ARENA_BYTES = 0x8d0, /* of the head of an arena, at the beginning of its memory */
	AREA_BITS = 26,      /* an arena's memory has this alignment */
	RECENT_AREAS = 16    /* remembered: threads take turns */
};

struct block_finding {
	struct account_blocks *to;
	struct account *account;
	const struct heap_table *table;
	int64_t *until_ns; /* by process: up to when its blocks are those of the account's process; INT64_MIN: never */
	struct thread_caches caches;
	struct map area_of;
	uint32_t recent_areas[RECENT_AREAS]; /* by number: in areas, plus one; 0: none */
	uint32_t mapping;                    /* of the block before */
	bool has_main;                       /* the main arena is among the areas */
	/* Of a block in this heap that ended before this time nothing more is to be noted. */
	uint32_t noted_heap;
	int64_t noted_ns;
};

static enum glibc_heap kind_of(const struct block_finding *finding, uint32_t heap)
{
	return heap < finding->table->dictionary->heap_count ? (enum glibc_heap)finding->to->heap_kinds[heap]
							     : GLIBC_HEAP_NONE;
}

/* ---- what a block is ---- */

/* Up to when blocks of each process are in the account's: of those that it was forked from, up to the fork. */
static void lineage_find(struct block_finding *finding)
{
	const struct trace_dictionary *dictionary = finding->table->dictionary;
	finding->until_ns = memory_resize(NULL, dictionary->process_count, sizeof(*finding->until_ns));
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		finding->until_ns[i] = INT64_MIN;
	int64_t until_ns = finding->account->time_ns;
	/* A process comes after the one that it was forked from. */
	for (uint32_t at = finding->account->process; at < dictionary->process_count;) {
		const struct trace_process *process = &dictionary->processes[at];
		finding->until_ns[at] = until_ns;
		finding->noted_ns = finding->account->has_caches ? INT64_MIN : until_ns;
		until_ns = process->start_ns < until_ns ? process->start_ns : until_ns;
		at = process->forked_from < at ? process->forked_from : TRACE_NONE;
	}
}

static void block_add(struct block_finding *finding, const struct account_block *given)
{
	struct account_blocks *to = finding->to;
	struct account_block block = *given;
	uint64_t page_last = UINT64_MAX - TRACE_PAGE_BYTES;
	/* No block lies at the end of all addresses, so no sum of the account overflows. */
	if (block.low >= page_last || block.high < block.low || block.high > page_last)
		return;
	memory_grow(to->blocks, to->count, to->capacity);
	to->blocks[to->count++] = block;
}

static void live_add(struct block_finding *finding, const struct heap_allocation *row,
		     const struct heap_details *details)
{
	enum glibc_heap kind = kind_of(finding, row->heap);
	uint64_t head = kind == GLIBC_HEAP_MAPPED ? MAPPED_HEAD
			: kind                    ? CHUNK_HEAD
						  : 0,
		 end = details->address + row->size_bytes;
	block_add(finding, &(struct account_block){.low = details->address < head ? 0 : details->address - head,
						   .high = end + heap_slack(details),
						   .address = details->address,
						   .end = end,
						   .site = row->site,
						   .heap = row->heap,
						   .is_glibc = kind == GLIBC_HEAP_MAIN || kind == GLIBC_HEAP_ARENA});
}

/* ---- caches of threads ---- */

static bool may_be_cached(const struct block_finding *finding, const struct heap_allocation *row,
			  const struct heap_details *details)
{
	enum glibc_heap kind = kind_of(finding, row->heap);
	return finding->account->has_caches && (kind == GLIBC_HEAP_MAIN || kind == GLIBC_HEAP_ARENA) &&
	       row->size_bytes + heap_slack(details) <= THREAD_CACHE_USABLE_MAX;
}

static void cached_add(void *cookie, const struct freed_block *freed)
{
	block_add(cookie, &(struct account_block){.low = freed->address - CHUNK_HEAD,
						  .high = freed->address + freed->usable,
						  .address = freed->address,
						  .end = freed->address + freed->usable,
						  .site = freed->site,
						  .heap = freed->heap,
						  .is_cached = true,
						  .is_glibc = true});
}

/* ---- where allocators have their memory ---- */

static struct account_area *area_add(struct block_finding *finding, uint64_t key, const struct account_area *area)
{
	bool added;
	uint32_t *place = map_add(&finding->area_of, key, &added);
	struct account_blocks *to = finding->to;
	if (added) {
		*place = (uint32_t)to->area_count;
		memory_grow(to->areas, to->area_count, to->area_capacity);
		to->areas[to->area_count++] = *area;
	}
	return &to->areas[*place];
}

/* Note the area that a block lies in. */
static void area_note(struct block_finding *finding, const struct heap_allocation *row,
		      const struct heap_details *details)
{
	uint64_t number = details->address >> AREA_BITS, low = number << AREA_BITS,
		 arena = finding->table->dictionary->heaps[row->heap].handle;
	uint32_t *recent = &finding->recent_areas[number % RECENT_AREAS];
	struct account_area *own = *recent ? &finding->to->areas[*recent - 1] : NULL;
	/* The head of an arena lies in its first memory; other memory of it has a shorter one. */
	struct account_area area = {.low = low,
				    .high = low + (UINT64_C(1) << AREA_BITS),
				    .first = low +
					     (arena >> AREA_BITS == number ? ARENA_BYTES + CACHE_BYTES : HEAP_BYTES),
				    .heap = row->heap,
				    .used_ns = row->birth_ns};
	if (!own || own->low != low || own->is_main)
		own = area_add(finding, number, &area);
	*recent = (uint32_t)(own - finding->to->areas) + 1;
	own->used_ns = row->birth_ns > own->used_ns ? row->birth_ns : own->used_ns;
}

/* The memory below the break is the main arena's. */
static void main_area_add(struct block_finding *finding, uint32_t heap)
{
	const struct account *account = finding->account;
	finding->has_main = true;
	for (uint32_t i = 0; i < account->mapping_count; i++) {
		const struct account_mapping *mapping = &account->mappings[i];
		if (mapping->kind == TRACE_MAPPING_BREAK)
			area_add(finding, UINT64_MAX - i,
				 &(struct account_area){.low = mapping->base,
							.high = mapping->end,
							.first = mapping->base + CACHE_BYTES,
							.heap = heap,
							.is_main = true,
							.is_last = true});
	}
}

/* Note that the mapping that a block lies in is of its heap. */
static void mapping_note(struct block_finding *finding, uint32_t heap, uint64_t address)
{
	struct account *account = finding->account;
	struct account_mapping *mappings = account->mappings;
	uint32_t at = finding->mapping;
	if (!(at < account->mapping_count && address >= mappings[at].base && address < mappings[at].end))
		BISECT(at, account->mapping_count, i, mappings[i].end <= address);
	if (at == account->mapping_count || address < mappings[at].base)
		return;
	finding->mapping = at;
	mappings[at].heap = heap;
}

static void row_take(struct block_finding *finding, const struct heap_allocation *row,
		     const struct heap_details *details)
{
	uint32_t process = finding->table->dictionary->threads[row->thread].process;
	int64_t until_ns = finding->until_ns[process];
	bool is_own = process == finding->account->process;
	enum glibc_heap kind = kind_of(finding, row->heap);
	if ((row->birth_ns > until_ns && !(row->flags & HEAP_EARLIER)) || until_ns == INT64_MIN ||
	    row->flags & HEAP_NESTED)
		return;
	if (heap_is_live_at(row, until_ns))
		live_add(finding, row, details);
	if (is_own && may_be_cached(finding, row, details))
		thread_caches_note(&finding->caches, row, details);
	if (kind == GLIBC_HEAP_ARENA)
		area_note(finding, row, details);
	if (kind == GLIBC_HEAP_MAIN && !finding->has_main)
		main_area_add(finding, row->heap);
	if (kind == GLIBC_HEAP_MAIN)
		finding->noted_heap = row->heap;
	finding->account->has_glibc |= kind != GLIBC_HEAP_NONE;
	if (kind == GLIBC_HEAP_NONE && row->heap != TRACE_NONE)
		mapping_note(finding, row->heap, details->address);
}

/* Return whether nothing of a row is to be noted: it ended before the moment, in the heap that is known. */
static bool is_over(const struct block_finding *finding, const struct heap_rows *rows, uint32_t i)
{
	const uint64_t(*numbers)[PACK_ROWS] = rows->columns.numbers;
	return (int64_t)numbers[PACK_END][i] < finding->noted_ns &&
	       (uint32_t)numbers[PACK_HEAP][i] - 1 == finding->noted_heap;
}

/* ---- all of them ---- */

static int block_compare(const void *one, const void *other)
{
	const struct account_block *left = one, *right = other;
	return left->low != right->low ? COMPARE(left->low, right->low) : COMPARE(left->is_cached, right->is_cached);
}

/* Sort them. A freed block where a live one lies is in no cache; of others that overlap the first one counts. */
static void blocks_settle(struct account_blocks *blocks)
{
	size_t kept = 0;
	if (blocks->count)
		qsort(blocks->blocks, blocks->count, sizeof(*blocks->blocks), block_compare);
	for (size_t i = 0; i < blocks->count; i++) {
		struct account_block block = blocks->blocks[i];
		while (kept && blocks->blocks[kept - 1].is_cached && !block.is_cached &&
		       blocks->blocks[kept - 1].high > block.low)
			kept--;
		uint64_t from = kept ? blocks->blocks[kept - 1].high : 0;
		if (block.high <= from || (block.is_cached && block.low < from))
			continue;
		block.low = block.low < from ? from : block.low;
		block.address = block.address < from ? from : block.address;
		block.end = block.end < block.address ? block.address : block.end;
		blocks->blocks[kept++] = block;
	}
	blocks->count = kept;
}

COMPARE_BY(area_compare, struct account_area, low)

/* An arena grows in its newest memory. */
static void areas_settle(struct account_blocks *blocks)
{
	struct map newest = {0};
	for (size_t i = 0; i < blocks->area_count; i++) {
		bool added;
		struct account_area *own = &blocks->areas[i];
		uint32_t *place = map_add(&newest, own->heap, &added);
		if (!own->is_main && (added || own->used_ns > blocks->areas[*place].used_ns))
			*place = (uint32_t)i;
	}
	for (size_t i = 0; i < blocks->area_count; i++)
		blocks->areas[i].is_last |= *map_find(&newest, blocks->areas[i].heap) == i;
	map_fini(&newest);
	if (blocks->area_count)
		qsort(blocks->areas, blocks->area_count, sizeof(*blocks->areas), area_compare);
}

void account_blocks_find(struct account_blocks *blocks, struct account *account, const struct heap_table *table)
{
	struct block_finding finding = {
		.to = blocks, .account = account, .table = table, .noted_heap = TRACE_NONE, .noted_ns = INT64_MIN};
	const unsigned columns = PACK_TIMES | PACK_SIZES | PACK_SITES | PACK_THREADS | PACK_HEAPS | PACK_ADDRESSES |
				 PACK_SLACKS | (account->has_caches ? PACK_END_THREADS : 0);
	const struct heap_scan_plan plan = {INT64_MIN, account->time_ns, INT64_MIN, columns, NULL, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	thread_caches_begin(&finding.caches, table->dictionary->thread_count, account->time_ns);
	blocks->heap_kinds = glibc_heaps_find(table->dictionary);
	lineage_find(&finding);
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			if (is_over(&finding, rows, i))
				continue;
			const struct heap_allocation row = heap_rows_get(rows, i);
			row_take(&finding, &row, &rows->details[i]);
		}
	heap_scan_end(&scan);
	account->has_caches &= account->has_glibc && thread_caches_each(&finding.caches, cached_add, &finding);
	blocks_settle(blocks);
	areas_settle(blocks);
	thread_caches_fini(&finding.caches);
	map_fini(&finding.area_of);
	free(finding.until_ns);
}

void account_blocks_fini(struct account_blocks *blocks)
{
	free(blocks->blocks);
	free(blocks->areas);
	free(blocks->heap_kinds);
	*blocks = (struct account_blocks){.blocks = NULL};
}
