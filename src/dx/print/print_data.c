/* SPDX-License-Identifier: MIT */
#include "dx/print/print_data.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"
#include "base/json.h"
#include "dx/model/heap_limits.h"
#include "dx/print/print.h"
#include "dx/print/print_tree.h"

enum { COLUMNS_MAX = 256, LEVELS_DEFAULT = 2 };

/* ---- JSON ---- */

static void json_value(struct json *json, struct dx_query *query, const char *key, const struct dx_value *value,
		       const struct dx_layout *layout, unsigned level);

static void json_members(struct json *json, struct dx_query *query, const struct dx_value *value,
			 const struct dx_layout *layout, unsigned level)
{
	uint32_t count = dx_member_count(value);
	for (uint32_t i = 0; i < count && !query->is_stopped; i++) {
		struct dx_mark mark = dx_mark(query->arena);
		struct dx_value member;
		unsigned flags;
		const char *name = dx_shown_at(query, value, i, layout, false, &flags, &member);
		if (name)
			json_value(json, query, name, &member, layout, level + 1);
		dx_release(query->arena, mark);
	}
}

static void json_elements(struct json *json, struct dx_query *query, const struct dx_sequence *sequence,
			  const struct dx_layout *layout, unsigned level)
{
	struct dx_iterator *iterator = dx_open(query, sequence);
	struct dx_element element;
	uint64_t passed = 0;
	for (; !json->out->error; passed++) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!dx_next(query, iterator, &element))
			break;
		if (level == 0 && passed < layout->skip)
			continue;
		if (layout->specifier.has_count && passed >= layout->skip + layout->specifier.count)
			break;
		json_begin_object(json, NULL);
		if (element.index.kind != DX_ABSENT)
			json_value(json, query, "index", &element.index, layout, level + 1);
		json_value(json, query, "value", &element.value, layout, level + 1);
		json_end_object(json);
		dx_release(query->arena, mark);
	}
}

static void json_number_of(struct json *json, const char *key, const struct dx_value *value)
{
	if (value->is_address)
		json_address(json, key, value->number);
	else if (value->is_signed)
		json_number(json, key, (int64_t)value->number);
	else
		json_count(json, key, value->number);
}

static void json_real(struct json *json, const char *key, double real)
{
	/* As few digits as give the number back. */
	char text[40];
	int digits = DBL_DIG;
	do
		snprintf(text, sizeof(text), "%.*g", digits, real);
	while (digits++ < DBL_DECIMAL_DIG && strtod(text, NULL) != real);
	if (strpbrk(text, "ni"))
		json_text(json, key, text);
	else
		json_literal(json, key, text);
}

static void json_object_of(struct json *json, struct dx_query *query, const char *key, const struct dx_value *value,
			   const struct dx_layout *layout, unsigned level)
{
	struct dx_value sequence;
	bool has_elements = dx_elements(query, value, &sequence);
	bool is_deep = level <= layout->levels && level < JSON_DEPTH_MAX / 2 - 2;
	if (!is_deep && value->kind == DX_OBJECT && value->class->show) {
		json_text(json, key, value->class->show(query, value));
		return;
	}
	if (value->kind == DX_SEQUENCE) {
		json_begin_array(json, key);
		if (is_deep)
			json_elements(json, query, sequence.sequence, layout, level);
		json_end_array(json);
		return;
	}
	json_begin_object(json, key);
	if (is_deep)
		json_members(json, query, value, layout, level);
	if (is_deep && has_elements) {
		json_begin_array(json, "elements");
		json_elements(json, query, sequence.sequence, layout, level);
		json_end_array(json);
	}
	json_end_object(json);
}

static void json_value(struct json *json, struct dx_query *query, const char *key, const struct dx_value *value,
		       const struct dx_layout *layout, unsigned level)
{
	switch (value->kind) {
	case DX_ABSENT:
		return;
	case DX_BOOL:
		json_bool(json, key, value->truth);
		return;
	case DX_NUMBER:
		json_number_of(json, key, value);
		return;
	case DX_REAL:
		json_real(json, key, value->real);
		return;
	case DX_ERROR:
		json_begin_object(json, key);
		json_text(json, "error", value->text);
		json_end_object(json);
		return;
	case DX_OBJECT:
	case DX_SEQUENCE:
		if (dx_enter(query))
			json_object_of(json, query, key, value, layout, level);
		dx_leave(query);
		return;
	default:
		json_text(json, key, dx_show(query, value, 0));
	}
}

void dx_print_json(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out)
{
	struct json json = {.out = out, .line_depth = 3};
	struct dx_layout deep = *layout;
	const char *limits = dx_limits_text(query);
	if (deep.levels < LEVELS_DEFAULT)
		deep.levels = LEVELS_DEFAULT;
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "query", text);
	json_known_text(&json, "limits", limits);
	if (value->kind != DX_ABSENT)
		json_value(&json, query, "result", value, &deep, 0);
	if (*query->note)
		json_text(&json, "note", query->note);
	if (query->is_stopped)
		json_text(&json, "stopped", query->stop_text);
	json_end_object(&json);
	json_end(&json);
}

/* ---- CSV ---- */

struct csv_print {
	struct dx_query *query;
	const struct dx_layout *layout;
	struct sink *out;
	const char *names[COLUMNS_MAX];
	uint32_t ranks[COLUMNS_MAX];
	unsigned count;
	bool has_values;                    /* some element has no members */
	struct dx_value cells[COLUMNS_MAX]; /* of a row */
};

/* Return the column of the name, from 0; `count`: none has it. */
static unsigned csv_find(const struct csv_print *csv, const char *name)
{
	unsigned i = 0;
	while (i < csv->count && csv->names[i] != name && (*csv->names[i] != *name || strcmp(csv->names[i], name) != 0))
		i++;
	return i;
}

static void csv_column(struct csv_print *csv, const char *name, uint32_t rank)
{
	if (csv->count == COLUMNS_MAX)
		return;
	unsigned at = csv->count++;
	for (; at && csv->ranks[at - 1] > rank; at--) {
		csv->names[at] = csv->names[at - 1];
		csv->ranks[at] = csv->ranks[at - 1];
	}
	csv->names[at] = name;
	csv->ranks[at] = rank;
}

static bool has_members(const struct dx_value *value)
{
	return value->kind == DX_OBJECT || value->kind == DX_POSITION;
}

/* Only members that no row had before are computed. */
static void csv_measure(struct csv_print *csv, const struct dx_element *element)
{
	uint32_t count = has_members(&element->value) ? dx_member_count(&element->value) : 0;
	csv->has_values |= !count;
	for (uint32_t i = 0; i < count; i++) {
		struct dx_value value;
		unsigned flags;
		const char *name = dx_member_at(csv->query, &element->value, i, &flags, NULL);
		if (dx_is_shown(flags, csv->layout, true) && csv_find(csv, name) == csv->count &&
		    dx_shown_at(csv->query, &element->value, i, csv->layout, true, &flags, &value))
			csv_column(csv, name, i);
	}
}

static void csv_cell(struct csv_print *csv, const struct dx_value *value)
{
	const char *text =
		value->kind == DX_SEQUENCE ? "" : dx_specifier_text(csv->query, value, &csv->layout->specifier);
	if (value->kind == DX_NUMBER || value->kind == DX_REAL)
		sink_text(csv->out, text);
	else if (value->kind != DX_ABSENT)
		csv_field(csv->out, text);
}

/* Of two members of a name, the first one counts. */
static void csv_read(struct csv_print *csv, const struct dx_value *object)
{
	uint32_t count = has_members(object) ? dx_member_count(object) : 0;
	memset(csv->cells, 0, csv->count * sizeof(*csv->cells)); /* DX_ABSENT */
	for (uint32_t i = 0; i < count; i++) {
		struct dx_value value;
		unsigned flags;
		const char *name = dx_shown_at(csv->query, object, i, csv->layout, true, &flags, &value);
		unsigned column = name ? csv_find(csv, name) : csv->count;
		if (column < csv->count && csv->cells[column].kind == DX_ABSENT)
			csv->cells[column] = value;
	}
}

static void csv_row(struct csv_print *csv, const struct dx_element *element)
{
	csv_read(csv, &element->value);
	csv_cell(csv, &element->index);
	if (csv->has_values) {
		sink_put(csv->out, ',');
		if (!has_members(&element->value) || element->value.kind == DX_ERROR)
			csv_cell(csv, &element->value);
	}
	for (unsigned i = 0; i < csv->count; i++) {
		sink_put(csv->out, ',');
		csv_cell(csv, &csv->cells[i]);
	}
	sink_text(csv->out, "\n");
}

static void csv_pass(struct csv_print *csv, const struct dx_sequence *sequence,
		     void (*visit)(struct csv_print *csv, const struct dx_element *element))
{
	const struct dx_layout *layout = csv->layout;
	struct dx_mark mark = dx_mark(csv->query->arena);
	struct dx_iterator *iterator = dx_open(csv->query, sequence);
	struct dx_element element;
	for (uint64_t passed = 0; !csv->out->error; passed++) {
		struct dx_mark step = dx_mark(csv->query->arena);
		if (!dx_next(csv->query, iterator, &element) ||
		    (layout->specifier.has_count && passed >= layout->skip + layout->specifier.count))
			break;
		if (passed >= layout->skip)
			visit(csv, &element);
		dx_release(csv->query->arena, step);
	}
	dx_release(csv->query->arena, mark);
}

void dx_print_csv(struct dx_query *query, const struct dx_value *value, const struct dx_layout *layout,
		  struct sink *out)
{
	struct csv_print csv = {.query = query, .layout = layout, .out = out};
	struct dx_value sequence;
	const struct dx_element alone = {*value, {.kind = DX_ABSENT}};
	bool has_elements = dx_elements(query, value, &sequence);
	if (has_elements)
		csv_pass(&csv, sequence.sequence, csv_measure);
	else
		csv_measure(&csv, &alone);
	sink_text(out, csv.has_values ? "index,value" : "index");
	for (unsigned i = 0; i < csv.count; i++) {
		sink_put(out, ',');
		csv_field(out, csv.names[i]);
	}
	sink_text(out, "\n");
	if (has_elements)
		csv_pass(&csv, sequence.sequence, csv_row);
	else
		csv_row(&csv, &alone);
}
