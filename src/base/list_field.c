/* SPDX-License-Identifier: MIT */
#include "base/list_field.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- numbers ---- */

static struct text id_text(uint64_t id)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%" PRIu64, id);
	return text;
}

static struct text time_text(uint64_t time_ns)
{
	return text_duration((int64_t)time_ns);
}

static void time_json(struct json *json, const char *key, uint64_t time_ns)
{
	json_time(json, key, (int64_t)time_ns);
}

static void milliseconds_json(struct json *json, const char *key, uint64_t time_ms)
{
	enum { NS_EACH = 1000000 };
	time_json(json, key, time_ms * NS_EACH);
}

static void flag_json(struct json *json, const char *key, uint64_t flag)
{
	json_bool(json, key, flag != 0);
}

/* How numbers are written; the kinds without text() are texts, or have no column. */
static const struct {
	struct text (*text)(uint64_t number);
	void (*json)(struct json *json, const char *key, uint64_t number);
} kinds[] = {
	[FIELD_ID] = {id_text, json_count},
	[FIELD_COUNT] = {text_count, json_count},
	[FIELD_BYTES] = {text_bytes, json_count},
	[FIELD_TIME] = {time_text, time_json},
	[FIELD_MILLISECONDS] = {NULL, milliseconds_json},
	[FIELD_FLAG] = {NULL, flag_json},
	[FIELD_WORD] = {NULL, NULL},
};

static uint64_t number_of(const struct list_field *field, const void *record)
{
	uint64_t number = 0;
	assert(field->size <= sizeof(number));
	memcpy(&number, (const char *)record + field->offset, field->size);
	return number;
}

/* ---- fields ---- */

static const char *text_of(const struct list_field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;
	const char *text = field->word ? field->word(record) : field->kind == FIELD_CHARS ? at : *(char *const *)at;
	return text ? text : "";
}

static bool is_text(const struct list_field *field)
{
	return !kinds[field->kind].json;
}

static bool is_known(const struct list_field *field, const void *record)
{
	if (field->is_known)
		return field->is_known(record);
	if (field->may_be_none)
		return number_of(field, record) != UINT64_MAX >> (64 - 8 * field->size);
	return !field->may_be_unset || (is_text(field) ? *text_of(field, record) != 0 : number_of(field, record) > 0);
}

static bool is_end(const struct list_field *field)
{
	return !field->title && !field->key;
}

void list_field_columns(struct grid *grid, const struct list_field *fields)
{
	const char *titles[GRID_COLUMNS_MAX];
	unsigned count = 0;
	for (const struct list_field *field = fields; !is_end(field); field++) {
		if (!field->title)
			continue;
		assert(count < GRID_COLUMNS_MAX);
		grid->rank[count] = field->rank;
		grid->is_text[count] = field->may_be_cut;
		titles[count++] = field->title;
	}
	grid_columns(grid, count, titles);
}

void list_field_row(struct grid *grid, const struct list_field *fields, const void *record)
{
	grid_row(grid);
	for (const struct list_field *field = fields; !is_end(field); field++)
		if (field->title)
			grid_cell(grid, !is_known(field, record) ? "-"
					: is_text(field)         ? text_of(field, record)
							 : kinds[field->kind].text(number_of(field, record)).data);
}

void list_field_json(struct json *json, const struct list_field *fields, const void *record)
{
	for (const struct list_field *field = fields; !is_end(field); field++) {
		if (field->json)
			field->json(json, record);
		if (!field->key || !is_known(field, record))
			continue;
		if (is_text(field))
			json_text(json, field->key, text_of(field, record));
		else
			kinds[field->kind].json(json, field->key, number_of(field, record));
	}
}

void list_field_json_object(struct json *json, const struct list_field *fields, const void *record)
{
	json_begin_object(json, NULL);
	list_field_json(json, fields, record);
	json_end_object(json);
}
