/* SPDX-License-Identifier: MIT */
/* Rows of a dump as text, CSV and JSON, and the values in them. */
#include <stdlib.h>
#include <string.h>

#include "action/report/report.h"
#include "base/digits.h"
#include "base/grid.h"
#include "base/text.h"
#include "cli/ask/dump.h"

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
		value.kind = VALUE_ABSENT;
		dump->columns[i].get(&dump->row, &value);
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
		value.kind = VALUE_ABSENT;
		column->get(&dump->row, &value);
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
