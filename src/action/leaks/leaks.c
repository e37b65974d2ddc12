/* SPDX-License-Identifier: MIT */
#include "action/leaks/leaks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "action/explain/core_process.h"
#include "action/leaks/leak_roots.h"
#include "action/report/losses.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "query/folded.h"
#include "query/glibc_heaps.h"
#include "query/scan.h"
#include "trace/code_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

#define MOVING_NS INT64_C(1000000000)
#define ARENA_BYTES (UINT64_C(64) << 20)
enum { LINK_BITS = 2 /* of a state */ };

static const struct trace_dictionary *dictionary_of(const struct leaks *leaks)
{
	return leaks->source->table->dictionary;
}

/* The blocks of the process, as they are found. */
struct leak_blocks {
	struct leaks *leaks;
	struct reach_block *items; /* ids: numbers in the table; HEAP_NONE: of a parent, and not shown */
	size_t count, capacity;
	uint8_t *is_loader; /* by site: the program's loader allocates there */
	uint8_t *kinds;     /* by heap: enum glibc_heap */
	struct leak_heaps heaps;
};

/* The loader keeps what it allocates by means of its own, such as thread-local storage. */
static void loader_sites_find(struct leak_blocks *blocks)
{
	const struct trace_dictionary *dictionary = dictionary_of(blocks->leaks);
	const struct heap_table *table = blocks->leaks->source->table;
	blocks->is_loader = memory_zeroed((size_t)table->site_count + 1, 1);
	for (uint32_t i = 0; i < table->site_count; i++) {
		const uint32_t node = table->sites[i].stack;
		const uint32_t frame =
			node && node < dictionary->node_count ? dictionary->nodes[node].frame : UINT32_MAX;
		const uint32_t image = frame < dictionary->frame_count ? dictionary->frames[frame].image : TRACE_NONE;
		blocks->is_loader[i] = image < dictionary->image_count &&
				       !strncmp(text_file_name(dictionary->images[image].path), "ld-", 3);
	}
}

/* ---- blocks ---- */

static uint32_t process_of(const struct leaks *leaks, const struct heap_allocation *row)
{
	return dictionary_of(leaks)->threads[row->thread].process;
}

/* Note which memory belongs to the heap of a block, live or not. */
static void heap_note(struct leak_blocks *blocks, const struct heap_allocation *row, const struct heap_details *details,
		      bool is_live)
{
	struct leak_heaps *heaps = &blocks->heaps;
	const uint32_t heap_count = dictionary_of(blocks->leaks)->heap_count;
	const uint8_t kind = row->heap < heap_count ? blocks->kinds[row->heap] : GLIBC_HEAP_NONE;
	if (kind == GLIBC_HEAP_MAIN && details->address < heaps->break_low)
		heaps->break_low = details->address;
	/* Memory that glibc has given back to the kernel may have become anything. */
	if (kind == GLIBC_HEAP_ARENA && is_live)
		heap_extents_add(&heaps->pages, 0, &(struct heap_allocation){.size_bytes = ARENA_BYTES},
				 &(struct heap_details){.address = details->address & ~(ARENA_BYTES - 1)});
	else if (is_live || kind == GLIBC_HEAP_NONE)
		heap_extents_add(&heaps->pages, 0, row, details);
}

/* id: HEAP_NONE of a block that is not shown */
static void block_add(struct leak_blocks *blocks, const struct heap_allocation *row, uint64_t address, uint32_t id)
{
	const uint32_t site_count = blocks->leaks->source->table->site_count;
	const bool is_loader = row->site < site_count && blocks->is_loader[row->site];
	memory_grow(blocks->items, blocks->count, blocks->capacity);
	blocks->items[blocks->count++] = (struct reach_block){.address = address,
							      .size_bytes = row->size_bytes,
							      .id = id,
							      .state = is_loader ? REACH_START : REACH_LOST};
}

/* A realloc that was under way has ended the old block, and not begun the new one, whose words count. */
static bool may_be_moving(const struct heap_allocation *row, int64_t time_ns)
{
	const bool is_old = row->end == HEAP_END_REALLOC && row->end_ns <= time_ns && time_ns - row->end_ns < MOVING_NS;
	const bool is_new = row->flags & HEAP_REALLOC && row->birth_ns > time_ns && row->birth_ns - time_ns < MOVING_NS;
	return is_old || is_new;
}

/* When the blocks of a process are looked at: `time_ns`, or, without one, its end. */
struct leak_moment {
	bool is_wanted, is_at_end;
	int64_t time_ns;
};

/* A forked process has the blocks that its parent had then, too. Return the moments by process. */
static struct leak_moment *moments_find(const struct leaks *leaks)
{
	const struct trace_dictionary *dictionary = dictionary_of(leaks);
	struct leak_moment *moments = memory_zeroed(dictionary->process_count, sizeof(*moments));
	struct leak_moment moment = {true, !leaks->question.is_running, leaks->question.at_ns};
	/* A process comes after the one that it was forked from. */
	for (uint32_t at = leaks->process; at < dictionary->process_count;) {
		const struct trace_process *process = &dictionary->processes[at];
		moments[at] = moment;
		moment = (struct leak_moment){true, false, process->start_ns};
		at = process->forked_from < at ? process->forked_from : TRACE_NONE;
	}
	return moments;
}

static void row_take(struct leak_blocks *blocks, const struct heap_allocation *row, const struct heap_details *details,
		     const struct leak_moment *moment, uint32_t id)
{
	const bool is_live =
		moment->is_at_end ? !heap_end_is_given_back(row->end) : heap_is_live_at(row, moment->time_ns);
	heap_note(blocks, row, details, is_live);
	if (row->flags & HEAP_NESTED)
		return;
	if (is_live || (!moment->is_at_end && may_be_moving(row, moment->time_ns)))
		block_add(blocks, row, details->address, is_live ? id : HEAP_NONE);
}

/* Add the process's blocks that are live at the moment. Those that it was forked with are not shown. */
static void blocks_find(struct leak_blocks *blocks)
{
	const struct leaks *leaks = blocks->leaks;
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_ALL | PACK_DETAILS, NULL, NULL};
	struct leak_moment *moments = moments_find(leaks);
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, leaks->source->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			const uint32_t process = process_of(leaks, &row);
			if (moments[process].is_wanted)
				row_take(blocks, &row, &rows->details[i], &moments[process],
					 process == leaks->process ? rows->first + i : HEAP_NONE);
		}
	heap_scan_end(&scan);
	free(moments);
}

/* ---- rows ---- */

static struct leak_row *row_of(struct leaks *leaks, struct map *places, uint32_t node, uint8_t state)
{
	bool added;
	uint32_t *place = map_add(places, (uint64_t)node << LINK_BITS | state, &added);
	if (added) {
		memory_grow(leaks->rows, leaks->row_count, leaks->row_capacity);
		leaks->rows[leaks->row_count] =
			(struct leak_row){.node = node, .state = state, .thread = HEAP_NONE, .newest_ns = INT64_MAX};
		*place = (uint32_t)leaks->row_count++;
	}
	return &leaks->rows[*place];
}

static int64_t birth_of(const struct heap_allocation *allocation)
{
	return allocation->flags & HEAP_EARLIER ? 0 : allocation->birth_ns;
}

/* Return the row of a block. */
static struct leak_row *row_add(struct leaks *leaks, struct map *places, const struct heap_allocation *allocation,
				uint8_t state)
{
	const struct heap_table *table = leaks->source->table;
	const uint32_t node = allocation->site < table->site_count
				      ? heap_names_site(leaks->source->names, &table->sites[allocation->site])
				      : 0;
	struct leak_row *row = row_of(leaks, places, node, state);
	const int64_t birth_ns = birth_of(allocation), age_ns = leaks->at_ns > birth_ns ? leaks->at_ns - birth_ns : 0;
	row->is_of_threads |= row->thread != HEAP_NONE && row->thread != allocation->thread;
	row->thread = row->thread == HEAP_NONE ? allocation->thread : row->thread;
	row->is_earlier |= (allocation->flags & HEAP_EARLIER) != 0;
	row->count++;
	row->bytes += allocation->size_bytes;
	row->oldest_ns = age_ns > row->oldest_ns ? age_ns : row->oldest_ns;
	row->newest_ns = age_ns < row->newest_ns ? age_ns : row->newest_ns;
	return row;
}

/* Note since when a block is lost that earlier looks may have found. */
static void row_note_since(struct leak_row *row, const struct looked_block *block)
{
	if (row->since && row->since < block->since)
		return;
	row->since_count = row->since == block->since ? row->since_count + 1 : 1;
	row->since = block->since;
	row->since_ns = block->since_ns;
}

/* Behind all numbers of looks comes that there is none. */
static uint32_t since_order(const struct leak_row *row)
{
	return row->since - 1;
}

static int rows_compare(const void *one, const void *other)
{
	const struct leak_row *a = one, *b = other;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	if (a->since != b->since)
		return since_order(a) < since_order(b) ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

static bool is_lost(uint8_t state)
{
	return state == REACH_LOST || state == REACH_INDIRECT;
}

/* Add a look to those before: which blocks are lost now, whatever the filter. states: as of rows_make(). */
static void looks_add(struct leaks *leaks, const uint8_t *states)
{
	struct leak_looks *looks = leaks->question.looks;
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_ALL | PACK_DETAILS, NULL, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	leak_looks_begin(looks, leaks->process, leaks->question.look, leaks->at_ns);
	heap_scan_begin(&scan, leaks->source->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			const uint8_t state = states[rows->first + i];
			const struct looked_block block = {.address = rows->details[i].address,
							   .size_bytes = row.size_bytes,
							   .birth_ns = birth_of(&row)};
			if (state != REACH_STATE_COUNT)
				leak_looks_see(looks, &block, is_lost(state));
		}
	heap_scan_end(&scan);
	leak_looks_end(looks);
	leaks->first_look = looks->first;
	leaks->first_ns = looks->first_ns;
}

/* Count a block that passes the filter. */
static void block_count(struct leaks *leaks, struct map *places, const struct heap_allocation *row, uint64_t address,
			uint8_t state)
{
	leaks->sums[state].count++;
	leaks->sums[state].bytes += row->size_bytes;
	if (state == REACH_START)
		return;
	struct leak_row *to = row_add(leaks, places, row, state);
	if (!leaks->question.looks || !is_lost(state))
		return;
	struct looked_block *block = leak_looks_find(leaks->question.looks, address, birth_of(row));
	if (block) {
		block->is_shown = true;
		row_note_since(to, block);
	}
}

/* Sum up the blocks that are not accused any more. */
static void cleared_count(struct leaks *leaks)
{
	const struct looked_blocks *blocks = &leaks->question.looks->now;
	for (size_t i = 0; i < blocks->count; i++) {
		if (!blocks->items[i].is_shown)
			continue;
		leaks->cleared[blocks->items[i].state].count++;
		leaks->cleared[blocks->items[i].state].bytes += blocks->items[i].size_bytes;
	}
}

/* Sum up the blocks that pass the filter. states: by number in the table, REACH_STATE_COUNT of others. */
static void rows_make(struct leaks *leaks, const uint8_t *states)
{
	const struct heap_table *table = leaks->source->table;
	const struct heap_range range = leaks->source->window->range;
	struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_ALL | PACK_DETAILS, leaks->source->filter,
				      NULL};
	if (leaks->question.has_range) {
		plan.from_ns = range.from_ns;
		plan.to_ns = range.to_ns;
		plan.live_from_ns = INT64_MAX;
	}
	struct map places = {0};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			const uint8_t state = states[rows->first + i];
			if (state != REACH_STATE_COUNT)
				block_count(leaks, &places, &row, rows->details[i].address, state);
		}
	heap_scan_end(&scan);
	map_fini(&places);
	if (leaks->row_count)
		qsort(leaks->rows, leaks->row_count, sizeof(*leaks->rows), rows_compare);
}

/* ---- all of it ---- */

/* By address; those that are shown come before others. */
static int blocks_compare(const void *one, const void *other)
{
	const struct reach_block *a = one, *b = other;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* Of blocks that overlap, those count that are shown: others may have ended before. */
static void overlaps_drop(struct leak_blocks *blocks)
{
	uint64_t behind = 0; /* the blocks that are shown, so far */
	size_t kept = 0;
	if (blocks->count)
		qsort(blocks->items, blocks->count, sizeof(*blocks->items), blocks_compare);
	for (size_t i = 0; i < blocks->count; i++) {
		const struct reach_block *block = &blocks->items[i];
		const struct reach_block *next = i + 1 < blocks->count ? block + 1 : NULL;
		const uint64_t end = block->address + block->size_bytes;
		const bool is_shown = block->id != HEAP_NONE;
		const bool is_over = block->address < behind || (next && next->address < end && next->id != HEAP_NONE);
		behind = is_shown && end > behind ? end : behind;
		if (is_shown || !is_over)
			blocks->items[kept++] = *block;
	}
	blocks->count = kept;
}

static size_t core_read(void *context, uint64_t address, void *to, size_t size)
{
	return corefile_read(context, address, to, size);
}

static uint64_t core_next(void *context, uint64_t address)
{
	return corefile_next(context, address);
}

static void blocks_reach(struct leak_blocks *blocks, const struct corefile *core)
{
	const struct reach_memory memory = {core_read, core_next, (void *)core};
	struct reach *reach = reach_new(blocks->items, (uint32_t)blocks->count, &memory);
	leak_roots_take(reach, core, &blocks->heaps);
	reach_follow(reach);
	reach_free(reach);
}

int leaks_check_filter(const struct heap_filter *filter, struct diag *diag)
{
	const char *word = filter->is_closed                ? filter_words[FILTER_WORD_CLOSED].name
			   : filter->required_of_free.count ? filter_words[FILTER_WORD_REQUIRED_OF_FREE].name
							    : NULL;
	return word ? diag_fail(diag, EINVAL, "-%s passes blocks that were freed, and none of these is lost", word) : 0;
}

int leaks_make(struct leaks *leaks, struct action_input *input, const struct leaks_question *question,
	       struct diag *diag)
{
	*leaks = (struct leaks){
		.input = input, .source = &input->sources[0], .question = *question, .process = HEAP_NONE};
	const struct heap_table *table = leaks->source->table;
	struct leak_blocks blocks = {.leaks = leaks, .heaps.break_low = UINT64_MAX};
	const struct core_words words = {question->core_path, leaks->source->path};
	if (table->sample_bytes)
		return diag_fail(diag, ENOTSUP, "%s is a sample: leaks needs every block", leaks->source->path);
	if (losses_has_option(dictionary_of(leaks), TRACE_OPTION_EARLIER_MISSING))
		return diag_fail(diag, ENOTSUP,
				 "%s lacks blocks from before an attach: what they point to would seem to be lost",
				 leaks->source->path);
	int error = leaks_check_filter(&question->asked->filter, diag);
	error = error ? error : core_process_find(&leaks->process, dictionary_of(leaks), question->core, words, diag);
	if (error)
		return error;
	leaks->at_ns = question->is_running ? question->at_ns : table->processes[leaks->process].end_ns;
	blocks.kinds = glibc_heaps_find(dictionary_of(leaks));
	loader_sites_find(&blocks);
	blocks_find(&blocks);
	overlaps_drop(&blocks);
	blocks_reach(&blocks, question->core);
	uint8_t *states = memory_resize(NULL, (size_t)table->count + 1, 1);
	memset(states, REACH_STATE_COUNT, table->count);
	for (size_t i = 0; i < blocks.count; i++)
		if (blocks.items[i].id != HEAP_NONE)
			states[blocks.items[i].id] = blocks.items[i].state;
	if (question->looks)
		looks_add(leaks, states);
	rows_make(leaks, states);
	if (question->looks)
		cleared_count(leaks);
	free(states);
	free(blocks.items);
	free(blocks.kinds);
	free(blocks.is_loader);
	leak_heaps_fini(&blocks.heaps);
	return 0;
}

void leaks_fini(struct leaks *leaks)
{
	free(leaks->rows);
	leaks->rows = NULL;
}
