/* SPDX-License-Identifier: MIT */
/* column_tables: prints the list of columns (columns/column.h) as JSON, for the schemas of docs/schema and for the manual page. */
#include <stdio.h>

#include "base/json.h"
#include "columns/column.h"

static const char *const sources[COLUMN_SOURCES] = {"allocations", "events"};
static const char *const types[] = {
	[TYPE_NUMBER] = "count",  [TYPE_BYTES] = "bytes",     [TYPE_ADDRESS] = "address", [TYPE_TIME] = "nanoseconds",
	[TYPE_ERROR] = "integer", [TYPE_WORD] = "word",       [TYPE_TEXT] = "text",       [TYPE_PROCESS] = "count",
	[TYPE_THREAD] = "count",  [TYPE_HEAP] = "count",      [TYPE_STACK] = "count",     [TYPE_FUNCTION] = "text",
	[TYPE_SITE] = "count",    [TYPE_ALLOCATION] = "count"};

static void write_column(struct json *json, const struct column *column)
{
	json_begin_object(json, NULL);
	json_text(json, "name", column->name);
	json_text(json, "type", types[column->type]);
	json_text(json, "help", column->help);
	json_known_text(json, "absent", column->absent);
	json_known_text(json, "absent_word", column->absent_word);
	json_bool(json, "is_dumped", column->width);
	json_begin_array(json, "words");
	for (uint32_t i = 0; i < column->word_count; i++)
		json_text(json, NULL, column->words[i]);
	json_end_array(json);
	json_end_object(json);
}

int main(void)
{
	struct sink out;
	struct json json = {.out = &out};
	sink_to_file(&out, stdout, 4096);
	json_begin_object(&json, NULL);
	for (unsigned source = 0; source < COLUMN_SOURCES; source++) {
		json_begin_array(&json, sources[source]);
		for (unsigned id = 0; id < COLUMN_COUNT; id++)
			if (column_find((enum column_source)source, (enum column_id)id))
				write_column(&json, column_find((enum column_source)source, (enum column_id)id));
		json_end_array(&json);
	}
	json_end_object(&json);
	json_end(&json);
	return sink_end(&out) != 0;
}
