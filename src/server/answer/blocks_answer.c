/* SPDX-License-Identifier: MIT */
#include "server/answer/blocks_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/position.h"
#include "cells/cell_names.h"
#include "query/block_history.h"
#include "query/scan.h"
#include "server/answer/function_json.h"
#include "server/answer/question.h"
#include "server/answer/question_stacks.h"
#include "table/weight.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

/* A block with the number that it is sorted by. */
struct kept_block {
	int64_t key;
	struct history_block block;
};

struct blocks_answer {
	struct shown_trace *shown;
	const struct question *question;
	struct sink *out;
	struct kept_block *kept; /* the first `most` of those that were seen, and some that came since */
	size_t count, most;
	bool is_cut; /* more than `most` were seen: none behind the last one kept is wanted */
	uint64_t all_blocks, all_bytes;
	uint32_t *places; /* by name: its place among all, for the order of functions; NULL: not needed */
	const uint32_t *nodes;
};

/* ---- the order ---- */

struct name_text {
	uint32_t name;
	char *text;
};

static int compare_texts(const void *one, const void *other)
{
	return strcmp(((const struct name_text *)one)->text, ((const struct name_text *)other)->text);
}

static uint32_t *places_make(const struct heap_names *names)
{
	const uint32_t count = heap_names_count(names);
	struct name_text *all = memory_zeroed((size_t)count + 1, sizeof(*all));
	uint32_t *places = memory_zeroed((size_t)count + 1, sizeof(*places));
	char text[CELL_NAME_ROOM];
	for (uint32_t name = 0; name < count; name++) {
		cell_name_short(names, name, text);
		const size_t size = strlen(text) + 1;
		all[name] = (struct name_text){name, memcpy(memory_resize(NULL, size, 1), text, size)};
	}
	qsort(all, count, sizeof(*all), compare_texts);
	for (uint32_t i = 0; i < count; i++) {
		places[all[i].name] = i;
		free(all[i].text);
	}
	free(all);
	return places;
}

/* Return the name of the function that asked for a block. */
static uint32_t asker_of(const struct blocks_answer *answer, struct heap_names *names, struct heap_cull *cull,
			 uint32_t site)
{
	const uint32_t node = answer->nodes[site];
	return node ? heap_names_frame(names, heap_cull_node(cull, names, node))->name : CELL_NO_STACK;
}

static int64_t key_of(const struct blocks_answer *answer, const struct action_input *input,
		      const struct history_block *block)
{
	switch (answer->question->sort) {
	case BLOCKS_BY_SIZE:
		return (int64_t)block->row.size_bytes;
	case BLOCKS_BY_BIRTH:
		return block->row.flags & HEAP_EARLIER ? INT64_MIN : block->row.birth_ns;
	case BLOCKS_BY_LIFETIME:
		return heap_lifetime_ns(&block->row);
	case BLOCKS_BY_END:
		return heap_end_is_given_back(block->row.end) ? block->row.end_ns : INT64_MAX;
	case BLOCKS_BY_ADDRESS:
		return (int64_t)(block->details.address >> 1);
	default:
		break;
	}
	const uint32_t name = asker_of(answer, input->sources->names, input->cull, block->row.site);
	return name == CELL_NO_STACK ? -1 : (int64_t)answer->places[name];
}

static int compare_blocks(const void *one, const void *other)
{
	const struct kept_block *a = one, *b = other;
	if (a->key != b->key)
		return a->key < b->key ? 1 : -1;
	return a->block.id < b->block.id ? -1 : a->block.id > b->block.id;
}

/* Sort those that are kept, and leave out what nobody asks for. */
static void blocks_cut(struct blocks_answer *answer)
{
	qsort(answer->kept, answer->count, sizeof(*answer->kept), compare_blocks);
	answer->is_cut |= answer->count > answer->most;
	if (answer->count > answer->most)
		answer->count = answer->most;
}

static void block_keep(struct blocks_answer *answer, int64_t key, const struct history_block *block)
{
	if (!answer->most || (answer->is_cut && key < answer->kept[answer->most - 1].key))
		return;
	answer->kept[answer->count++] = (struct kept_block){key, *block};
	if (answer->count == 2 * answer->most)
		blocks_cut(answer);
}

static void blocks_find(struct blocks_answer *answer, const struct action_input *input, const bool *sites)
{
	const struct action_source *source = input->sources;
	const struct heap_scan_plan plan = {
		INT64_MIN, INT64_MAX, INT64_MIN, PACK_ALL | PACK_ADDRESSES | PACK_PREVIOUS_ONES, source->filter, sites};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan))) {
		heap_rows_each (rows, i) {
			const struct history_block block = {rows->first + i, heap_rows_get(rows, i), rows->details[i]};
			if (!sites[block.row.site] || !question_selects(answer->question, &block.row))
				continue;
			const int64_t key = key_of(answer, input, &block);
			const struct heap_weight weight = heap_weigh(source->table, &block.row);
			answer->all_blocks += weight.count;
			answer->all_bytes += weight.bytes;
			block_keep(answer, answer->question->is_rising ? -1 - key : key, &block);
		}
	}
	heap_scan_end(&scan);
	blocks_cut(answer);
}

/* ---- the answers ---- */

/* A block that was live at the beginning has no time of it, one that is not freed none of its end. */
static void json_block(struct json *json, const char *key, const struct history_block *block)
{
	json_begin_object(json, key);
	json_count(json, "id", block->id);
	json_address(json, "address", block->details.address);
	json_count(json, "size", block->row.size_bytes);
	if (!(block->row.flags & HEAP_EARLIER))
		json_number(json, "birth_ns", block->row.birth_ns);
	json_number(json, "end_ns", block->row.end_ns);
	json_text(json, "end", heap_end_words[block->row.end]);
	json_count(json, "thread", block->row.thread);
	if (block->row.flags & HEAP_REALLOC)
		json_bool(json, "is_realloc", true);
}

static void blocks_write(struct blocks_answer *answer, const struct action_input *input)
{
	struct json json = {.out = answer->out, .is_for_script = true};
	struct heap_names *names = input->sources->names;
	answer->out->used = 0;
	json_begin_object(&json, NULL);
	json_count(&json, "blocks", answer->all_blocks);
	json_count(&json, "bytes", answer->all_bytes);
	json_begin_array(&json, "rows");
	for (size_t i = answer->question->offset; i < answer->count; i++) {
		const struct history_block *block = &answer->kept[i].block;
		json_block(&json, NULL, block);
		json_begin_array(&json, "function");
		cell_name_write(names, asker_of(answer, input->sources->names, input->cull, block->row.site), &json);
		json_end_array(&json);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}

static int blocks_make(void *context, struct analysis *analysis, struct diag *diag)
{
	struct blocks_answer *answer = context;
	const struct action_input *input = &analysis->input;
	answer->nodes = shown_trace_nodes(answer->shown, input->sources);
	if (!answer->nodes)
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	bool *sites = question_stacks_choose(answer->question, input->sources, answer->nodes, input->cull);
	if (!sites)
		return question_stacks_missing(diag);
	answer->most = (size_t)answer->question->offset + answer->question->limit;
	answer->count = 0;
	answer->is_cut = false;
	answer->all_blocks = answer->all_bytes = 0;
	answer->kept = memory_zeroed(2 * answer->most + 1, sizeof(*answer->kept));
	answer->places = answer->question->sort == BLOCKS_BY_FUNCTION ? places_make(input->sources->names) : NULL;
	blocks_find(answer, input, sites);
	blocks_write(answer, input);
	free(answer->places);
	free(answer->kept);
	free(sites);
	return 0;
}

/* Of blocks: those of an array, with the one that is asked for left out. */
static void json_blocks(struct json *json, const char *key, const struct history_block *blocks, unsigned count,
			uint32_t id)
{
	json_begin_array(json, key);
	for (unsigned i = 0; i < count; i++) {
		if (blocks[i].id == HEAP_NONE || blocks[i].id == id)
			continue;
		json_block(json, NULL, &blocks[i]);
		json_end_object(json);
	}
	json_end_array(json);
}

static int block_make(void *context, struct analysis *analysis, struct diag *diag)
{
	struct blocks_answer *answer = context;
	const struct action_source *source = analysis->input.sources;
	struct history_chain earlier = {0}, later = {0};
	answer->nodes = shown_trace_nodes(answer->shown, source);
	if (!answer->nodes)
		return diag_fail(diag, ECANCELED, "the question was cancelled");
	const uint32_t id = answer->question->id;
	const struct history_block block = id < source->table->count ? block_history_read(source->table, id)
								     : (struct history_block){.id = HEAP_NONE};
	if (block.id == HEAP_NONE)
		return diag_fail(diag, ENOENT, "the trace has no such block");
	struct block_history history = {.address = block.details.address,
					.process = source->table->dictionary->threads[block.row.thread].process,
					.at = {block.row.birth_ns, POSITION_LAST}};
	block_history_find(&history, 1, source->table);
	block_history_chains(&earlier, &later, source->table, &block);
	struct json json = {.out = answer->out, .is_for_script = true};
	answer->out->used = 0;
	json_block(&json, NULL, &block);
	function_json_site(&json, "made", source, block.row.site);
	function_json_site(&json, "freed", source, block.row.end_site);
	json_count(&json, "earlier_count", earlier.count);
	json_blocks(&json, "earlier", earlier.steps, earlier.step_count, block.id);
	json_count(&json, "later_count", later.count);
	json_blocks(&json, "later", later.steps, later.step_count, block.id);
	json_count(&json, "before_count", history.before_count);
	struct history_block before[HISTORY_BEFORE_MAX];
	for (unsigned i = 0; i < block_history_kept(&history); i++)
		before[i] = *block_history_before(&history, i);
	json_blocks(&json, "before", before, block_history_kept(&history), block.id);
	json_count(&json, "after_count", history.after_count);
	json_blocks(&json, "after", history.after,
		    history.after_count < HISTORY_AFTER_MAX ? (unsigned)history.after_count : HISTORY_AFTER_MAX,
		    block.id);
	json_end_object(&json);
	json_end(&json);
	return 0;
}

static int answer_ask(struct blocks_answer *answer, int (*make)(void *, struct analysis *, struct diag *),
		      const struct analysis_caller *caller, struct diag *diag)
{
	const struct shown_question ask = {
		.shown = answer->shown, .filter = answer->question->filter, .make = make, .context = answer};
	return shown_trace_ask(&ask, caller, diag);
}

int blocks_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
			const struct analysis_caller *caller, struct diag *diag)
{
	struct blocks_answer answer = {.shown = shown, .question = question, .out = out};
	return answer_ask(&answer, blocks_make, caller, diag);
}

int block_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag)
{
	struct blocks_answer answer = {.shown = shown, .question = question, .out = out};
	return answer_ask(&answer, block_make, caller, diag);
}
