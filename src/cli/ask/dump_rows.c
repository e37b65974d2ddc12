/* SPDX-License-Identifier: MIT */
#include "cli/ask/dump_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/grid.h"
#include "base/text.h"
#include "export/export.h"
#include "trace/row_ids.h"

static void put_digits(struct dump_value *value, uint64_t number, bool is_negative)
{
	char *end = value->room + 1 + DIGITS_BYTES, *at = digits_before(end, number);
	*end = 0;
	if (is_negative)
		*--at = '-';
	value->kind = CELL_NUMBER;
	value->text = at;
}

void dump_put_number(struct dump_value *value, int64_t number)
{
	put_digits(value, number < 0 ? -(uint64_t)number : (uint64_t)number, number < 0);
}

void dump_put_count(struct dump_value *value, uint64_t count)
{
	put_digits(value, count, false);
}

void dump_put_address(struct dump_value *value, uint64_t address)
{
	char *end = value->room + DIGITS_BYTES;
	*end = 0;
	value->kind = CELL_ADDRESS;
	value->text = digits_hex_before(end, address);
}

void dump_put_text(struct dump_value *value, const char *text)
{
	value->kind = CELL_TEXT;
	value->text = text;
}

void dump_put_known_text(struct dump_value *value, const char *text)
{
	if (text && *text)
		dump_put_text(value, text);
}

void dump_put_id(struct dump_value *value, uint32_t id)
{
	if (id != TRACE_NONE)
		dump_put_count(value, id);
}

void dump_put_pid(struct dump_value *value, uint32_t pid)
{
	if (pid)
		dump_put_count(value, pid);
}

/* ---- columns of the list ---- */

void dump_list_columns(struct dump *dump, enum column_source source)
{
	dump->columns = dump->list_columns;
	dump->column_count = 0;
	for (unsigned id = 0; id < COLUMN_COUNT; id++) {
		const struct column *column = column_find(source, (enum column_id)id);
		if (!column || !column->width)
			continue;
		dump->listed[dump->column_count] = column;
		dump->list_columns[dump->column_count++] = (struct dump_column){column->name, NULL, column->width};
	}
}

static void put_value(const struct column *column, const struct trace_dictionary *dictionary, uint64_t number,
		      struct dump_value *value)
{
	switch (column->type) {
	case TYPE_WORD:
	case TYPE_FUNCTION:
		dump_put_text(value, column_word(column, dictionary, number));
		break;
	case TYPE_ADDRESS:
		dump_put_address(value, number);
		break;
	case TYPE_TIME:
	case TYPE_ERROR:
		dump_put_number(value, (int64_t)number);
		break;
	default:
		dump_put_count(value, number);
	}
}

static void put_listed(const struct column *column, const struct column_row *row, struct dump_value *value)
{
	uint64_t number;
	if (column->type == TYPE_TEXT) {
		if (column->text(row, value->room))
			dump_put_text(value, value->room);
	} else if (column->get(row, &number)) {
		put_value(column, row->dictionary, number, value);
	} else if (column->absent_word) {
		dump_put_text(value, column->absent_word);
	}
}

/* ---- rows ---- */

/* The value of column i. */
static void cell_make(const struct dump *dump, unsigned i, struct dump_value *value)
{
	value->kind = VALUE_ABSENT;
	if (dump->columns[i].get)
		dump->columns[i].get(&dump->row, value);
	else
		put_listed(dump->listed[i], &dump->row.listed, value);
}

static void write_spaces(unsigned count, struct sink *out)
{
	while (count-- > 0)
		sink_put(out, ' ');
}

static void write_text(const struct dump_column *column, const struct dump_value *value, bool is_last, struct sink *out)
{
	const char *text = value->kind == VALUE_ABSENT ? "-"
			   : value->kind == CELL_TEXT  ? text_shown(value->text)
						       : value->text;
	size_t length = strlen(text), width = (size_t)abs(column->width);
	unsigned fill = length < width ? (unsigned)(width - length) : 0;
	if (column->width > 0)
		write_spaces(fill, out);
	sink_bytes(out, text, length);
	if (column->width < 0 && !is_last)
		write_spaces(fill, out);
}

static void json_row(struct dump *dump)
{
	struct sink *out = dump->out;
	const char *before = "{\"";
	struct dump_value value;
	for (unsigned i = 0; i < dump->column_count; i++) {
		cell_make(dump, i, &value);
		if (value.kind == VALUE_ABSENT)
			continue;
		sink_text(out, before);
		sink_text(out, dump->columns[i].name);
		sink_text(out, "\": ");
		if (value.kind == CELL_TEXT) {
			json_quote(out, value.text);
		} else {
			sink_text(out, value.kind == CELL_ADDRESS ? "\"" : "");
			sink_text(out, value.text);
			sink_text(out, value.kind == CELL_ADDRESS ? "\"" : "");
		}
		before = ", \"";
	}
	sink_text(out, *before == '{' ? "{}\n" : "}\n");
}

void dump_write_row(struct dump *dump)
{
	struct sink *out = dump->out;
	struct dump_value value;
	if (dump->format == REPORT_JSON) {
		json_row(dump);
		return;
	}
	for (unsigned i = 0; i < dump->column_count; i++) {
		const struct dump_column *column = &dump->columns[i];
		cell_make(dump, i, &value);
		if (i)
			sink_text(out, dump->format == REPORT_CSV ? "," : "  ");
		if (dump->format == REPORT_TEXT)
			write_text(column, &value, i + 1 == dump->column_count, out);
		else if (value.kind == CELL_TEXT)
			csv_field(out, value.text);
		else if (value.kind != VALUE_ABSENT)
			sink_text(out, value.text);
	}
	sink_put(out, '\n');
}

void dump_write_header(struct dump *dump)
{
	for (unsigned i = 0; i < dump->column_count && dump->format != REPORT_JSON; i++) {
		struct dump_value value = {.kind = CELL_TEXT, .text = dump->columns[i].name};
		if (i)
			sink_text(dump->out, dump->format == REPORT_CSV ? "," : "  ");
		if (dump->format == REPORT_CSV)
			sink_text(dump->out, value.text);
		else
			write_text(&dump->columns[i], &value, i + 1 == dump->column_count, dump->out);
	}
	if (dump->format != REPORT_JSON)
		sink_put(dump->out, '\n');
}

int dump_write_rows(struct dump *dump, uint32_t first, uint32_t count)
{
	for (dump->row.at = first; dump->row.at < count && !dump->out->error; dump->row.at++)
		dump_write_row(dump);
	return 0;
}
