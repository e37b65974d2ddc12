/* SPDX-License-Identifier: MIT */
#include "query/account.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "query/account_blocks.h"
#include "query/resident.h"
#include "table/kept_answer.h"
#include "trace/code_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	PAGE = TRACE_PAGE_BYTES,
	PINNED_PART = 4,  /* few blocks cover less than this part of a page */
	CHUNK_END = 8,    /* of a block of glibc, that belong to the next chunk */
	CHUNK_WORDS = 48, /* of a free chunk: they stay */
	CHUNK_LEAST = 33  /* of the last chunk: they stay, too */
};

const char *const account_keys[] = {
#define X(id, key, words) key,
	ACCOUNT_CLASSES(X)
#undef X
};
const char *const account_words[] = {
#define X(id, key, words) words,
	ACCOUNT_CLASSES(X)
#undef X
};

/* Addresses in a row. */
struct page_place {
	uint64_t low, high;
};

struct counting {
	struct account *account;
	const struct heap_table *table;
	struct account_blocks blocks;
	struct account_mapping *mapping; /* that is counted */
	size_t at;                       /* the first block that ends behind what was counted */
	size_t area;                     /* the same of areas */
	struct map site_of;
	struct page_place *images; /* of the process, by address */
	uint32_t image_count;
	uint32_t page_site; /* of the page that is counted, with the most bytes */
	uint64_t page_bytes;
	bool is_alone;
};

/* ---- sums ---- */

static void sum_add(struct account_sum *sum, enum account_class class, uint64_t bytes)
{
	sum->bytes[class] += bytes;
	sum->resident_bytes += bytes;
}

/* heap: of the trace, or HEAP_NONE. */
static void class_add(struct counting *counting, uint32_t heap, enum account_class class, uint64_t bytes)
{
	struct account *account = counting->account;
	sum_add(&account->sum, class, bytes);
	sum_add(&account->heaps[heap < account->heap_count ? heap : account->heap_count], class, bytes);
	sum_add(&counting->mapping->sum, class, bytes);
}

static struct account_site *site_of(struct counting *counting, uint32_t site)
{
	bool added;
	struct account *account = counting->account;
	uint32_t *place = map_add(&counting->site_of, site, &added);
	if (added) {
		*place = account->site_count;
		memory_grow(account->sites, account->site_count, account->site_capacity);
		account->sites[account->site_count++] = (struct account_site){.site = site};
	}
	return &account->sites[*place];
}

static uint64_t bytes_within(uint64_t low, uint64_t high, uint64_t from, uint64_t to)
{
	low = low > from ? low : from;
	high = high < to ? high : to;
	return low < high ? high - low : 0;
}

/* Add the part of a live block between two addresses. */
static void block_count(struct counting *counting, const struct account_block *block, uint64_t low, uint64_t high)
{
	uint64_t live = bytes_within(block->address, block->end, low, high),
		 rounding = bytes_within(block->low, block->high, low, high) - live;
	struct account_site *site = site_of(counting, block->site);
	class_add(counting, block->heap, ACCOUNT_LIVE, live);
	class_add(counting, block->heap, ACCOUNT_ROUNDING, rounding);
	site->live_bytes += live;
	site->rounding_bytes += rounding;
	site->block_count += block->address >= low && block->address < high;
}

/* ---- pages without blocks ---- */

static const struct account_block *block_at(const struct counting *counting, size_t at)
{
	return at < counting->blocks.count ? &counting->blocks.blocks[at] : NULL;
}

COMPARE_BY(place_compare, struct page_place, low)

/* Find where the process has images. */
static void images_find(struct counting *counting)
{
	const struct account *account = counting->account;
	const struct trace_dictionary *dictionary = counting->table->dictionary;
	counting->images = memory_resize(NULL, dictionary->mapping_count + 1, sizeof(*counting->images));
	for (uint32_t i = 0; i < dictionary->mapping_count; i++) {
		const struct trace_mapping *image = &dictionary->mappings[i];
		if (image->process == account->process && image->load_ns <= account->time_ns &&
		    image->unload_ns > account->time_ns)
			counting->images[counting->image_count++] = (struct page_place){image->base, image->end};
	}
	qsort(counting->images, counting->image_count, sizeof(*counting->images), place_compare);
}

static bool is_of_image(const struct counting *counting, uint64_t address)
{
	size_t place;
	BISECT(place, counting->image_count, i, counting->images[i].low <= address);
	return place && counting->images[place - 1].high > address;
}

/* Memory in no arena of glibc. */
static void other_count(struct counting *counting, uint64_t low, uint64_t high)
{
	uint32_t heap = counting->mapping->heap;
	uint8_t kind = counting->mapping->kind;
	if (low >= high)
		return;
	enum account_class class = heap != HEAP_NONE              ? ACCOUNT_ALLOCATORS
				   : kind == TRACE_MAPPING_SHARED ? ACCOUNT_SHARED
				   : kind == TRACE_MAPPING_CODE   ? ACCOUNT_FILES
				   : is_of_image(counting, low)   ? ACCOUNT_FILES
								  : ACCOUNT_MAPPED;
	class_add(counting, heap, class, high - low);
}

static uint64_t page_behind(uint64_t address)
{
	return (address + PAGE - 1) / PAGE * PAGE;
}

/* Memory in an arena, between two blocks, or one and an end: part of one free chunk, or of several that
   malloc_trim(0) joins. It keeps the first words of each chunk. */
static void area_count(struct counting *counting, const struct account_area *area, uint64_t low, uint64_t high)
{
	const struct account_block *before = counting->at ? block_at(counting, counting->at - 1) : NULL,
				   *next = block_at(counting, counting->at);
	uint64_t chunk =
		before && before->high > area->first ? before->high - (before->is_glibc ? CHUNK_END : 0) : area->first;
	bool is_end = area->is_last && !(next && next->low < area->high);
	uint64_t from = page_behind(chunk + (is_end ? CHUNK_LEAST : CHUNK_WORDS)),
		 to = is_end                           ? area->high
		      : next && next->low < area->high ? (next->low - CHUNK_END) / PAGE * PAGE
						       : area->high - PAGE;
	uint64_t inner = bytes_within(from, to, low, high);
	class_add(counting, area->heap, is_end && !area->is_main ? ACCOUNT_TOPS : ACCOUNT_TRIMMABLE, inner);
	class_add(counting, area->heap, ACCOUNT_UNTRIMMABLE, high - low - inner);
}

/* The main arena lies below the break, and no other one does. */
static bool is_in_its_kind(const struct account_area *area, uint8_t kind)
{
	return kind == (area->is_main ? TRACE_MAPPING_BREAK : TRACE_MAPPING_ANONYMOUS);
}

/* Count pages on which no block lies. */
static void empty_count(struct counting *counting, uint64_t low, uint64_t high)
{
	const struct account_blocks *blocks = &counting->blocks;
	while (low < high) {
		while (counting->area < blocks->area_count && blocks->areas[counting->area].high <= low)
			counting->area++;
		const struct account_area *area =
			counting->area < blocks->area_count ? &blocks->areas[counting->area] : NULL;
		uint64_t from = area && area->low < high ? area->low : high,
			 to = area && area->high < high ? area->high : high;
		if (low < from)
			to = from;
		if (low < from || !is_in_its_kind(area, counting->mapping->kind))
			other_count(counting, low, to);
		else
			area_count(counting, area, low, to);
		low = to;
	}
}

/* ---- pages with blocks ---- */

static void page_note_site(struct counting *counting, uint32_t site, uint64_t bytes)
{
	if (!counting->page_bytes) {
		counting->is_alone = true;
		counting->page_site = site;
	}
	counting->is_alone &= counting->page_site == site;
	if (bytes > counting->page_bytes) {
		counting->page_bytes = bytes;
		counting->page_site = site;
	}
}

static void page_is_pinned(struct counting *counting, size_t first, size_t end, uint64_t page)
{
	struct account *account = counting->account;
	struct account_site *keeper = site_of(counting, counting->page_site);
	keeper->page_bytes += PAGE;
	keeper->alone_bytes += counting->is_alone ? PAGE : 0;
	account->page_bytes += PAGE;
	for (size_t i = first; i < end; i++) {
		const struct account_block *block = block_at(counting, i);
		if (block->is_cached)
			continue;
		struct account_site *site = site_of(counting, block->site);
		uint64_t bytes = bytes_within(block->address, block->end, page, page + PAGE);
		bool begins = block->address >= page && block->address < page + PAGE;
		site->kept_bytes += bytes;
		site->kept_count += begins;
		account->kept_bytes += bytes;
		account->kept_count += begins;
	}
}

/* Count a page where blocks lie, from number `at` on. */
static void page_count(struct counting *counting, uint64_t page)
{
	uint64_t used = 0, cached = 0;
	size_t at = counting->at;
	uint32_t heap = block_at(counting, at)->heap;
	counting->page_bytes = 0;
	for (const struct account_block *block; (block = block_at(counting, at)) && block->low < page + PAGE; at++) {
		uint64_t bytes = bytes_within(block->low, block->high, page, page + PAGE);
		if (block->is_cached) {
			class_add(counting, block->heap, ACCOUNT_CACHES, bytes);
			cached += bytes;
			continue;
		}
		block_count(counting, block, page, page + PAGE);
		page_note_site(counting, block->site, bytes);
		heap = used ? heap : block->heap;
		used += bytes;
	}
	bool is_pinned = used && used * PINNED_PART < PAGE;
	if (is_pinned)
		page_is_pinned(counting, counting->at, at, page);
	class_add(counting, heap,
		  is_pinned ? ACCOUNT_PINNED
		  : used    ? ACCOUNT_BETWEEN
			    : ACCOUNT_CACHES,
		  PAGE - used - cached);
}

/* Count resident pages of the mapping. */
static void run_count(struct counting *counting, uint64_t low, uint64_t high)
{
	while (low < high) {
		const struct account_block *block;
		while ((block = block_at(counting, counting->at)) && block->high <= low)
			counting->at++;
		uint64_t next = !block || block->low >= high ? high : block->low / PAGE * PAGE;
		if (low < next) {
			empty_count(counting, low, next);
			low = next;
			continue;
		}
		/* Whole pages of one block, of which there may be any number. */
		uint64_t whole = block->end / PAGE * PAGE;
		whole = whole < high ? whole : high;
		if (!block->is_cached && block->address <= low && whole > low) {
			block_count(counting, block, low, whole);
			low = whole;
		} else {
			page_count(counting, low);
			low += PAGE;
		}
	}
}

/* ---- the reading ---- */

static struct page_place run_next(const struct trace_page_run *run, uint64_t behind)
{
	uint64_t low = behind + run->skipped * PAGE;
	return (struct page_place){low, low + run->count * PAGE};
}

static void mappings_make(struct account *account, const struct trace_dictionary *dictionary,
			  const struct trace_pages *pages)
{
	uint64_t behind = 0;
	for (uint32_t i = 0; i < pages->spread; i++) {
		const struct trace_page_run *run = &dictionary->page_runs[pages->first + i];
		struct page_place place = run_next(run, behind);
		behind = place.high;
		if (!run->is_next || !account->mapping_count) {
			memory_grow(account->mappings, account->mapping_count, account->mapping_capacity);
			account->mappings[account->mapping_count++] =
				(struct account_mapping){.base = place.low, .kind = run->kind, .heap = HEAP_NONE};
		}
		account->mappings[account->mapping_count - 1].end = place.high;
	}
}

static void runs_count(struct counting *counting, const struct trace_pages *pages)
{
	const struct trace_dictionary *dictionary = counting->table->dictionary;
	uint64_t behind = 0;
	counting->mapping = counting->account->mappings;
	for (uint32_t i = 0; i < pages->spread; i++) {
		const struct trace_page_run *run = &dictionary->page_runs[pages->first + i];
		struct page_place place = run_next(run, behind);
		behind = place.high;
		/* As they were made. */
		counting->mapping += i && !run->is_next;
		run_count(counting, place.low, place.high);
	}
}

/* What no block may lie in is in the class of its mapping. */
static void kinds_count(struct account *account, const struct trace_resident *split, uint64_t left_out_bytes)
{
	static const uint8_t classes[TRACE_MAPPING_KIND_COUNT] = {[TRACE_MAPPING_FILES] = ACCOUNT_FILES,
								  [TRACE_MAPPING_STACKS] = ACCOUNT_STACKS,
								  [TRACE_MAPPING_RECORDER] = ACCOUNT_RECORDER,
								  [TRACE_MAPPING_OTHER] = ACCOUNT_OTHER,
								  [TRACE_MAPPING_UNREAD] = ACCOUNT_UNKNOWN};
	struct account_sum *none = &account->heaps[account->heap_count];
	for (int kind = 0; split && kind < TRACE_MAPPING_KIND_COUNT; kind++)
		if (kind == TRACE_MAPPING_UNREAD || classes[kind]) {
			sum_add(&account->sum, classes[kind], split->bytes[kind]);
			sum_add(none, classes[kind], split->bytes[kind]);
		}
	sum_add(&account->sum, ACCOUNT_UNKNOWN, left_out_bytes);
	sum_add(none, ACCOUNT_UNKNOWN, left_out_bytes);
}

/* Count all pages of the reading. */
static void account_count(struct account *account, const struct heap_table *table, const struct trace_pages *pages)
{
	struct counting counting = {.account = account, .table = table};
	account->heap_count = table->dictionary->heap_count;
	account->heaps = memory_zeroed(account->heap_count + 1, sizeof(*account->heaps));
	mappings_make(account, table->dictionary, pages);
	account_blocks_find(&counting.blocks, account, table);
	images_find(&counting);
	runs_count(&counting, pages);
	uint32_t *order = resident_order(table->dictionary);
	kinds_count(account, resident_of_reading(table->dictionary, order, pages->process, pages->time_ns),
		    pages->left_out_bytes);
	free(order);
	account_blocks_fini(&counting.blocks);
	map_fini(&counting.site_of);
	free(counting.images);
}

/* Set what was counted, or note it. */
static void account_keep(struct account *account, struct kept_answer *kept)
{
	size_t heaps = (size_t)account->heap_count + 1, mappings = account->mapping_count, sites = account->site_count;
	kept_answer_value(kept, &account->sum, sizeof(account->sum));
	kept_answer_value(kept, &account->page_bytes, sizeof(account->page_bytes));
	kept_answer_value(kept, &account->kept_bytes, sizeof(account->kept_bytes));
	kept_answer_value(kept, &account->kept_count, sizeof(account->kept_count));
	kept_answer_value(kept, &account->has_glibc, sizeof(account->has_glibc));
	kept_answer_value(kept, &account->has_caches, sizeof(account->has_caches));
	account->heaps = kept_answer_array(kept, account->heaps, &heaps, sizeof(*account->heaps));
	account->mappings = kept_answer_array(kept, account->mappings, &mappings, sizeof(*account->mappings));
	account->sites = kept_answer_array(kept, account->sites, &sites, sizeof(*account->sites));
	account->heap_count = (uint32_t)heaps - 1;
	account->mapping_count = (uint32_t)mappings;
	account->site_count = (uint32_t)sites;
}

void account_make(struct account *account, const struct heap_table *table, const struct trace_pages *pages)
{
	struct kept_answer kept;
	const int64_t question[] = {pages->process, pages->time_ns, account->has_caches};
	account->process = pages->process;
	account->time_ns = pages->time_ns;
	account->huge_bytes = pages->huge_bytes;
	account->swapped_bytes = pages->swapped_bytes;
	kept_answer_begin(&kept, table, HEAP_ANSWER_ACCOUNT, question, sizeof(question));
	if (!kept.is_known)
		account_count(account, table, pages);
	account_keep(account, &kept);
	kept_answer_end(&kept, true);
}

void account_fini(struct account *account)
{
	free(account->heaps);
	free(account->mappings);
	free(account->sites);
	*account = (struct account){.heaps = NULL};
}

/* ---- heap and the rest ---- */

void account_tell(const struct account *account, struct resident *resident, const struct trace_dictionary *dictionary)
{
	uint32_t *order = resident_order(dictionary);
	const struct trace_resident *split = resident_of_reading(dictionary, order, account->process, account->time_ns);
	free(order);
	if (!split)
		return;
	resident->split = split;
	resident->bytes = account->sum.resident_bytes;
	resident->heap_bytes = 0;
	memcpy(resident->rest, split->bytes, sizeof(resident->rest));
	for (uint32_t i = 0; i < account->mapping_count; i++) {
		const struct account_mapping *mapping = &account->mappings[i];
		uint64_t *rest = &resident->rest[mapping->kind], heap_bytes = 0;
		for (int class = 0; class <= ACCOUNT_ALLOCATORS; class ++)
			heap_bytes += mapping->sum.bytes[class];
		heap_bytes = heap_bytes < *rest ? heap_bytes : *rest;
		*rest -= heap_bytes;
		resident->heap_bytes += heap_bytes;
	}
}

/* ---- which reading ---- */

/* Of readings with the greatest rank, the later one counts. */
static uint64_t rank_of(const struct trace_pages *pages, uint64_t bytes, enum account_moment which, int64_t time_ns,
			uint64_t high_bytes)
{
	uint64_t later = (uint64_t)pages->time_ns ^ (UINT64_C(1) << 63),
		 distance = pages->time_ns < time_ns ? (uint64_t)time_ns - (uint64_t)pages->time_ns
						     : (uint64_t)pages->time_ns - (uint64_t)time_ns;
	switch (which) {
	case ACCOUNT_LARGEST:
		return bytes;
	case ACCOUNT_LAST:
		return later;
	case ACCOUNT_NEAREST:
		return UINT64_MAX - distance;
	case ACCOUNT_HIGH:
		return bytes >= high_bytes ? later : 0;
	}
	return 0;
}

static const struct trace_pages *reading_find(const struct trace_dictionary *dictionary, const uint32_t *order,
					      uint32_t process, enum account_moment which, int64_t time_ns,
					      uint64_t *bytes)
{
	const struct trace_pages *best = NULL;
	uint64_t best_rank = 0, high_bytes = *bytes;
	for (uint32_t i = 0; i < dictionary->pages_count; i++) {
		const struct trace_pages *pages = &dictionary->pages[i];
		if (process != TRACE_NONE && pages->process != process)
			continue;
		const struct trace_resident *split =
			resident_of_reading(dictionary, order, pages->process, pages->time_ns);
		uint64_t own_bytes = split ? resident_sum(split) : 0,
			 rank = rank_of(pages, own_bytes, which, time_ns, high_bytes);
		if (!best || rank >= best_rank) {
			best = pages;
			best_rank = rank;
			*bytes = own_bytes;
		}
	}
	return best;
}

const struct trace_pages *account_reading(const struct heap_table *table, uint32_t process, enum account_moment which,
					  int64_t time_ns)
{
	enum { EIGHTHS = 8 };
	const struct trace_dictionary *dictionary = table->dictionary;
	uint32_t *order = resident_order(dictionary);
	uint64_t bytes = 0;
	if (which == ACCOUNT_HIGH)
		reading_find(dictionary, order, process, ACCOUNT_LARGEST, 0, &bytes);
	bytes -= bytes / EIGHTHS;
	const struct trace_pages *found = reading_find(dictionary, order, process, which, time_ns, &bytes);
	free(order);
	return found;
}
