/* SPDX-License-Identifier: MIT */
/*
 * Before each block of glibc's arenas lies the size of its chunk, and the last 8 usable bytes of a chunk belong to its
 * block. So the word behind the usable bytes of a block is the size of what comes next:
 *
 *     | size | usable bytes of a block ... | size | usable bytes of the next one, or free memory
 *
 * The trace knows the blocks and their usable sizes, so a size that is none was overwritten: by a write beyond the
 * block before it, as a rule. Where sizes in a row are wrong, a long write began at the first of them. The heads of
 * live blocks do not change while other threads make use of the heap; what else may be wrong in it is not looked at.
 */
#include "action/explain/explanation_damage.h"

#include <stdlib.h>
#include <string.h>

#include "action/explain/abort_message.h"
#include "action/explain/explanation.h"
#include "base/memory.h"
#include "query/scan.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

enum {
	WORD = 8,
	SIZE_BITS = 7, /* of a size word, which are no part of the size */
	IS_MAPPED = 2,
	CHUNK_ALIGNMENT = 16,
	CHUNK_LEAST = 16, /* of an end of memory; of a block: 32 */
	BLOCK_CHUNK_LEAST = 32,
	WINDOW_BYTES = 64 << 10
};

/* A block in an arena of glibc's. */
struct arena_block {
	uint64_t low, high; /* its usable bytes */
	uint32_t id;
};

/* The blocks in the order of addresses, and memory of the core around the last word that was read. */
struct damage_search {
	struct explanation *explanation;
	struct arena_block *blocks;
	size_t count, capacity;
	uint64_t window_low;
	size_t window_bytes;
	uint8_t *window;
};

/* ---- the blocks ---- */

static bool is_arena(const struct explanation *explanation, uint32_t heap)
{
	static const char end[] = " arena";
	const struct trace_dictionary *dictionary = explanation->source->table->dictionary;
	size_t length = heap < dictionary->heap_count ? strlen(dictionary->heaps[heap].name) : 0;
	return length >= strlen(end) && !strcmp(dictionary->heaps[heap].name + length - strlen(end), end);
}

/* A free that has not returned may have found the damage: its block counts. */
static bool is_wanted(const struct explanation *explanation, const struct heap_allocation *row, uint64_t address)
{
	if (row->flags & HEAP_NESTED || !is_arena(explanation, row->heap))
		return false;
	bool is_wanted = !heap_end_is_given_back(row->end);
	for (unsigned i = 0; i < explanation->call_count && !is_wanted; i++) {
		const struct explain_call *call = &explanation->calls[i];
		is_wanted = call->is_under_way && call->address == address && call->time_ns == row->end_ns;
	}
	return is_wanted;
}

static int blocks_compare(const void *one, const void *other)
{
	const struct arena_block *a = one, *b = other;
	return a->low < b->low ? -1 : a->low > b->low;
}

static void blocks_find(struct damage_search *search)
{
	const struct explanation *explanation = search->explanation;
	const struct heap_table *table = explanation->source->table;
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_EVERYTHING, NULL, NULL};
	const struct heap_rows *rows;
	struct heap_scan scan;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			const struct heap_details *details = &rows->details[i];
			uint64_t usable = (uint64_t)row.size_bytes + heap_slack(details);
			if (table->dictionary->threads[row.thread].process != explanation->process ||
			    details->slack_bytes == HEAP_SLACK_UNKNOWN || usable % CHUNK_ALIGNMENT != WORD ||
			    !is_wanted(explanation, &row, details->address))
				continue;
			memory_grow(search->blocks, search->count, search->capacity);
			search->blocks[search->count++] =
				(struct arena_block){details->address, details->address + usable, rows->first + i};
		}
	heap_scan_end(&scan);
	if (search->count)
		qsort(search->blocks, search->count, sizeof(*search->blocks), blocks_compare);
}

/* ---- sizes ---- */

static bool word_read(struct damage_search *search, uint64_t address, uint64_t *word)
{
	uint64_t at = address - search->window_low;
	if (at > search->window_bytes || search->window_bytes - at < sizeof(*word)) {
		search->window_low = address;
		search->window_bytes =
			corefile_read(search->explanation->question.core, address, search->window, WINDOW_BYTES);
		at = 0;
	}
	if (search->window_bytes < sizeof(*word))
		return false;
	memcpy(word, search->window + at, sizeof(*word));
	return true;
}

/* Return whether a chunk in an arena can have this size, whose word lies at the address. */
static bool is_size(const struct damage_search *search, uint64_t address, uint64_t word, uint64_t least)
{
	uint64_t size = word & ~(uint64_t)SIZE_BITS;
	uint64_t end = corefile_end(search->explanation->question.core, address);
	return !(word & IS_MAPPED) && size >= least && size % CHUNK_ALIGNMENT == 0 &&
	       (!end || size <= end - address + WORD);
}

/* Whether the size before a block is that of the trace. One that another thread resizes has another. */
static bool has_own_size(struct damage_search *search, const struct arena_block *block)
{
	uint64_t word;
	if (!word_read(search, block->low - WORD, &word))
		return true;
	if (search->explanation->under_way_count > 1)
		return is_size(search, block->low - WORD, word, BLOCK_CHUNK_LEAST);
	return (word & ~(uint64_t)SIZE_BITS) == block->high - block->low + WORD && !(word & IS_MAPPED);
}

/* ---- damage ---- */

/* Of several, the one beside the block of a call that had not returned counts, or else the first one. */
static void damage_add(struct damage_search *search, enum explain_damage_kind kind, const struct arena_block *block,
		       uint64_t address)
{
	struct explain_damage *damage = &search->explanation->core.damage;
	bool is_beside = false;
	for (unsigned i = 0; i < search->explanation->call_count; i++) {
		const struct explain_call *call = &search->explanation->calls[i];
		is_beside |= call->is_under_way && call->address == address + WORD;
	}
	damage->more_count += damage->kind != EXPLAIN_INTACT;
	if (damage->kind != EXPLAIN_INTACT && !is_beside)
		return;
	damage->kind = kind;
	damage->block.id = block->id;
	damage->address = address;
	word_read(search, address, &damage->word);
}

static void sizes_check(struct damage_search *search)
{
	bool was_damaged = false; /* the size before the block */
	for (size_t i = 0; i < search->count; i++) {
		const struct arena_block *block = &search->blocks[i];
		const struct arena_block *next = i + 1 < search->count ? &search->blocks[i + 1] : NULL;
		bool is_adjacent = next && next->low == block->high + WORD;
		uint64_t word;
		bool is_good = is_adjacent ? has_own_size(search, next)
					   : !word_read(search, block->high, &word) ||
						     is_size(search, block->high, word, CHUNK_LEAST);
		bool has_one_before = i && search->blocks[i - 1].high + WORD == block->low;
		if (!has_one_before)
			was_damaged = !has_own_size(search, block);
		if (was_damaged && !has_one_before)
			damage_add(search, EXPLAIN_BEFORE, block, block->low - WORD);
		else if (!is_good && !was_damaged)
			damage_add(search, EXPLAIN_BEYOND, block, block->high);
		was_damaged = !is_good;
	}
}

/* ---- a freed block in a cache ---- */

/* The thread took the block from its cache with the call before: the first word of a freed block is the next one of the
   list, and that is what the call then found to be none. */
static void cached_find(struct damage_search *search)
{
	struct explanation *explanation = search->explanation;
	const struct explain_call *call = &explanation->calls[0];
	const struct heap_table *table = explanation->source->table;
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_EVERYTHING, NULL, NULL};
	uint64_t chunk = (call->size_bytes + WORD + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
	uint64_t usable = (chunk < BLOCK_CHUNK_LEAST ? BLOCK_CHUNK_LEAST : chunk) - WORD;
	const struct heap_rows *rows;
	struct heap_scan scan;
	struct block_history history = {.process = explanation->process, .is_end = true};
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			if (row.thread == call->thread &&
			    (uint64_t)row.size_bytes + heap_slack(&rows->details[i]) == usable)
				history.address = rows->details[i].address;
		}
	heap_scan_end(&scan);
	block_history_find(&history, 1, table);
	unsigned kept = block_history_kept(&history);
	if (!history.address || kept < 2 || !heap_end_is_given_back(block_history_before(&history, kept - 2)->row.end))
		return;
	explanation->core.damage = (struct explain_damage){
		.kind = EXPLAIN_FREED, .address = history.address, .block = *block_history_before(&history, kept - 2)};
}

void explanation_damage_find(struct explanation *explanation)
{
	struct explain_core *core = &explanation->core;
	const struct explain_call *call = explanation->call_count ? &explanation->calls[0] : NULL;
	struct damage_search search = {.explanation = explanation};
	core->damage = (struct explain_damage){.kind = EXPLAIN_INTACT, .block = {.id = HEAP_NONE}};
	const struct heap_process *counted = &explanation->source->table->processes[explanation->process];
	if (!explanation->is_exact || counted->unknown_frees > 1 || counted->order_conflicts)
		return;
	search.window = memory_zeroed(WINDOW_BYTES, 1);
	blocks_find(&search);
	sizes_check(&search);
	if (core->damage.kind != EXPLAIN_INTACT)
		core->damage.block = block_history_read(explanation->source->table, core->damage.block.id);
	else if (core->meaning && core->meaning->is_freed_written && call && call->is_under_way &&
		 call->kind == EVENT_ALLOC)
		cached_find(&search);
	free(search.blocks);
	free(search.window);
}
