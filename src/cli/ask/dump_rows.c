/* SPDX-License-Identifier: MIT */
/* Rows of a dump as text, CSV and JSON, and the values in them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grid.h"
#include "base/text.h"
#include "cli/ask/dump.h"
#include "export/report.h"

/* Decimal digits by hand: this is most of what a dump does. */
void dump_put_number(struct dump_value *value, int64_t number)
{
	char *at = value->room + 32;
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
	*at = 0;
	do
		*--at = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	value->kind = CELL_NUMBER;
	value->text = at;
}

void dump_put_count(struct dump_value *value, uint64_t count)
{
	if (count <= INT64_MAX) {
		dump_put_number(value, (int64_t)count);
		return;
	}
	snprintf(value->room, sizeof(value->room), "%" PRIu64, count);
	value->kind = CELL_NUMBER;
	value->text = value->room;
}

static char *hex_before(char *at, uint64_t number)
{
	do
		*--at = "0123456789abcdef"[number & 15];
	while (number >>= 4);
	*--at = 'x';
	*--at = '0';
	return at;
}

void dump_put_address(struct dump_value *value, uint64_t address)
{
	value->room[32] = 0;
	value->kind = CELL_TEXT;
	value->text = hex_before(value->room + 32, address);
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
	const char *text = value->kind == VALUE_ABSENT ? "-" : text_shown(value->text);
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
		if (value.kind == CELL_NUMBER)
			sink_text(out, value.text);
		else
			json_quote(out, value.text);
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
		else if (value.kind == CELL_NUMBER)
			sink_text(out, value.text);
		else if (value.kind == CELL_TEXT)
			csv_field(out, value.text);
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
