/* SPDX-License-Identifier: MIT */
#include "cells/cell_bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/json.h"
#include "base/memory.h"

enum { ALIGNMENT = 8 };
#define MAGIC "XHCELLS1"

/* The largest number that a page can read as one; a larger one is a text. */

static uint64_t aligned(uint64_t size)
{
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- functions ---- */

/* A function: what its nodes say. */
struct cell_function {
	uint32_t name; /* of the names, or a word's */
	const char *file;
};

/* The functions of a tree: names with equal texts are one. */
struct function_list {
	struct intern texts; /* image, NUL, full name */
	struct cell_function *items;
	size_t capacity;
	uint32_t *of_node;
};

static uint32_t function_add(struct function_list *list, const struct heap_names *names, uint32_t name)
{
	char image[CELL_NAME_ROOM], full[CELL_NAME_ROOM], key[2 * CELL_NAME_ROOM];
	cell_name_image(names, name, image);
	cell_name_full(names, name, full);
	size_t length = (size_t)snprintf(key, sizeof(key), "%s%c%s", image, 0, full);
	uint32_t function = intern_bytes(&list->texts, key, length);
	if (function >= list->capacity) {
		list->capacity = memory_capacity(list->capacity, (size_t)function + 1);
		list->items = memory_resize(list->items, list->capacity, sizeof(*list->items));
	}
	return function;
}

static void functions_find(struct function_list *list, const struct cell_answer *answer)
{
	const struct cell_tree *tree = answer->tree;
	list->of_node = memory_zeroed(tree->count, sizeof(*list->of_node));
	for (uint32_t i = 0; i < tree->count && !answer->names; i++)
		list->of_node[i] = tree->nodes[i].name;
	if (!answer->names)
		return;
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct cell_node *node = &tree->nodes[i];
		uint32_t known = list->texts.count, function = function_add(list, answer->names, node->name);
		const char *file = node->frame == HEAP_NONE ? NULL : heap_names_frame(answer->names, node->frame)->file;
		list->of_node[i] = function;
		if (function >= known)
			list->items[function] = (struct cell_function){.name = node->name};
		if (!list->items[function].file)
			list->items[function].file = file;
	}
}

static void functions_fini(struct function_list *list)
{
	intern_fini(&list->texts);
	free(list->items);
	free(list->of_node);
}

static void function_write(struct json *json, const struct heap_names *names, const struct cell_function *function)
{
	json_begin_array(json, NULL);
	cell_name_write(names, function->name, json);
	json_text(json, NULL, function->file ? function->file : "");
	json_count(json, NULL, cell_name_marks(names, function->name));
	json_end_array(json);
}

static void functions_write(const struct function_list *list, const struct cell_answer *answer, struct json *json)
{
	json_begin_array(json, "functions");
	for (uint32_t i = 0; i < list->texts.count; i++)
		function_write(json, answer->names, &list->items[i]);
	for (uint32_t i = 0; i < answer->function_count; i++) {
		const struct cell_function_text *text = &answer->functions[i];
		json_begin_array(json, NULL);
		json_text(json, NULL, text->image);
		json_text(json, NULL, text->short_name);
		json_text(json, NULL, text->full_name);
		json_text(json, NULL, "");
		json_count(json, NULL, text->marks);
		json_end_array(json);
	}
	json_end_array(json);
}

/* ---- columns ---- */

/* What is written: the answer, and what is derived from it. */
struct cell_writing {
	const struct cell_answer *answer;
	struct function_list functions;
};

enum column_of { OF_CELL, OF_NODE, OF_INTERVAL };

/* Set `values` to those of a column, `count` from number `first` on. */
typedef void column_values(const struct cell_writing *writing, uint32_t first, uint32_t count, uint64_t *values);

#define COLUMN(name, row, expression) \
	static void name(const struct cell_writing *writing, uint32_t first, uint32_t count, uint64_t *values) \
	{ \
		for (uint32_t i = first; i < first + count; i++) { \
			row; \
			values[i - first] = expression; \
		} \
	}
#define CELL_COLUMN(name, expression) \
	COLUMN(cell_##name, const struct cell *cell = &writing->answer->set->cells[i]; \
	       const struct cell_keys keys = cell_keys_of(cell); (void)keys, expression)
#define NODE_COLUMN(name, expression) \
	COLUMN(node_##name, const struct cell_node *node = &writing->answer->tree->nodes[i]; (void)node, expression)
#define INTERVAL_COLUMN(name) COLUMN(interval_##name, , writing->answer->name[i])

static const struct heap_frame *frame_of(const struct cell_writing *writing, const struct cell_node *node)
{
	static const struct heap_frame none = {.line = 0};
	return node->frame == HEAP_NONE ? &none : heap_names_frame(writing->answer->names, node->frame);
}

CELL_COLUMN(node, keys.node)
CELL_COLUMN(thread, keys.thread)
CELL_COLUMN(heap, keys.heap == CELL_NO_HEAP ? writing->answer->heap_count : keys.heap)
CELL_COLUMN(birth, keys.birth)
CELL_COLUMN(end, keys.end)
CELL_COLUMN(kind, keys.kind)
CELL_COLUMN(size, keys.size)
CELL_COLUMN(life, keys.life)
CELL_COLUMN(blocks, cell->sums.blocks)
CELL_COLUMN(bytes, cell->sums.bytes)
CELL_COLUMN(reallocs, cell->sums.reallocs)
CELL_COLUMN(temporaries, cell->sums.temporaries)
NODE_COLUMN(parent, node->parent)
NODE_COLUMN(function, writing->functions.of_node[i])
NODE_COLUMN(line, frame_of(writing, node)->line)
NODE_COLUMN(inlined, frame_of(writing, node)->is_inlined)
NODE_COLUMN(asker, node->asker)
NODE_COLUMN(stacks, node->stacks)
INTERVAL_COLUMN(max_bytes)
INTERVAL_COLUMN(calls)
INTERVAL_COLUMN(resident)

struct column_kind {
	const char *name;
	enum column_of of;
	column_values *values;
};

static const struct column_kind kinds[] = {
#define X(name) {#name, OF_CELL, cell_##name},
	X(node) X(thread) X(heap) X(birth) X(end) X(kind) X(size) X(life) X(blocks) X(bytes) X(reallocs) X(temporaries)
#undef X
#define X(name) {#name, OF_NODE, node_##name},
		X(parent) X(function) X(line) X(inlined) X(asker) X(stacks)
#undef X
#define X(name) {#name, OF_INTERVAL, interval_##name},
			X(max_bytes) X(calls) X(resident)
#undef X
};
enum { COLUMN_COUNT = sizeof(kinds) / sizeof(*kinds) };

/* A column of an answer. */
struct column_place {
	uint32_t count;
	unsigned width; /* bytes of a value */
	uint64_t at;
};

static uint32_t count_of(const struct cell_answer *answer, enum column_of of)
{
	return of == OF_CELL ? answer->set->count : of == OF_NODE ? answer->tree->count : answer->bounds->count - 1;
}

/* So many values are made at a time. */
enum { BATCH = 512 };

static uint32_t batch_make(const struct cell_writing *writing, const struct column_kind *kind, uint32_t first,
			   uint32_t count, uint64_t values[BATCH])
{
	uint32_t length = count - first < BATCH ? count - first : BATCH;
	kind->values(writing, first, length, values);
	return length;
}

static void columns_place(const struct cell_writing *writing, struct column_place places[COLUMN_COUNT])
{
	uint64_t values[BATCH], at = 0;
	for (unsigned i = 0; i < COLUMN_COUNT; i++) {
		uint32_t count = count_of(writing->answer, kinds[i].of);
		uint64_t any = 0;
		for (uint32_t first = 0; first < count; first += BATCH) {
			uint32_t length = batch_make(writing, &kinds[i], first, count, values);
			for (uint32_t k = 0; k < length; k++)
				any |= values[k];
		}
		unsigned width = any <= UINT8_MAX ? 1 : any <= UINT16_MAX ? 2 : any <= UINT32_MAX ? 4 : 8;
		places[i] = (struct column_place){count, width, at};
		at = aligned(at + (uint64_t)count * width);
	}
}

static void zeros_write(struct sink *out, uint64_t size)
{
	for (uint64_t end = aligned(size); size < end; size++)
		sink_put(out, 0);
}

static void number_write(struct sink *out, uint64_t number, unsigned width)
{
	for (unsigned i = 0; i < width; i++)
		sink_put(out, (char)(number >> 8 * i));
}

/* Write the low bytes of each value. */
static void values_write(struct sink *out, const uint64_t values[BATCH], uint32_t count, unsigned width)
{
	char bytes[BATCH * sizeof(*values)];
	for (uint32_t i = 0; i < count; i++)
		for (unsigned k = 0; k < width; k++)
			bytes[i * width + k] = (char)(values[i] >> 8 * k);
	sink_bytes(out, bytes, (size_t)count * width);
}

static void columns_write(const struct cell_writing *writing, const struct column_place places[COLUMN_COUNT],
			  struct sink *out)
{
	uint64_t values[BATCH];
	for (unsigned i = 0; i < COLUMN_COUNT; i++) {
		for (uint32_t first = 0; first < places[i].count; first += BATCH) {
			uint32_t length = batch_make(writing, &kinds[i], first, places[i].count, values);
			values_write(out, values, length, places[i].width);
		}
		zeros_write(out, (uint64_t)places[i].count * places[i].width);
	}
}

/* ---- the head ---- */

static void columns_describe(struct json *json, const struct column_place places[COLUMN_COUNT])
{
	static const char *const types[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"};
	json_begin_array(json, "columns");
	for (unsigned i = 0; i < COLUMN_COUNT; i++) {
		json_begin_object(json, NULL);
		json_text(json, "name", kinds[i].name);
		json_text(json, "type", types[places[i].width]);
		json_count(json, "count", places[i].count);
		json_count(json, "at", places[i].at);
		json_end_object(json);
	}
	json_end_array(json);
}

static void head_write(const struct cell_writing *writing, const struct column_place places[COLUMN_COUNT],
		       struct sink *out)
{
	const struct cell_answer *answer = writing->answer;
	struct json json = {.out = out, .is_for_script = true};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_bool(&json, "whole", answer->is_whole);
	json_begin_array(&json, "bounds");
	for (uint32_t i = 0; i < answer->bounds->count; i++)
		json_number(&json, NULL, answer->bounds->times[i]);
	json_end_array(&json);
	json_number(&json, "peak", answer->peak == CELL_NO_BOUND ? -1 : (int64_t)answer->peak);
	json_count(&json, "cell_count", answer->set->count);
	json_count(&json, "node_count", answer->tree->count);
	json_count(&json, "lumped_bytes", answer->lumped_bytes);
	json_count(&json, "lumped_stacks", answer->tree->lumped_stacks);
	json_count(&json, "lumped_functions", answer->tree->lumped_functions);
	json_count(&json, "plain_bytes", answer->plain_bytes);
	functions_write(&writing->functions, answer, &json);
	columns_describe(&json, places);
	json_end_object(&json);
}

void cell_answer_write(const struct cell_answer *answer, struct sink *out)
{
	struct cell_writing writing = {.answer = answer};
	struct column_place places[COLUMN_COUNT];
	struct sink head;
	size_t length;
	functions_find(&writing.functions, answer);
	columns_place(&writing, places);
	sink_to_memory(&head);
	head_write(&writing, places, &head);
	char *text = sink_take(&head, &length);
	sink_bytes(out, MAGIC, strlen(MAGIC));
	number_write(out, aligned(length), sizeof(uint32_t));
	number_write(out, 0, sizeof(uint32_t));
	sink_bytes(out, text, length);
	for (uint64_t i = length; i < aligned(length); i++)
		sink_put(out, ' ');
	columns_write(&writing, places, out);
	free(text);
	functions_fini(&writing.functions);
}
