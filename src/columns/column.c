/* SPDX-License-Identifier: MIT */
#include "columns/column.h"

#include "trace/code_rows.h"
#include "trace/trace.h"

const struct column *column_find(enum column_source source, enum column_id id)
{
	const struct column *column = &(source == COLUMNS_OF_EVENTS ? column_of_events : column_of_allocations)[id];
	return column->name ? column : NULL;
}

const char *column_word(const struct column *column, const struct trace_dictionary *dictionary, uint64_t value)
{
	if (column->type == TYPE_FUNCTION)
		return dictionary->entries[value].name;
	if (column->type != TYPE_WORD)
		return NULL;
	return value < column->word_count ? column->words[value] : "?";
}
