/* SPDX-License-Identifier: MIT */
#include "columns/column.h"

#include <assert.h>
#include <string.h>

#include "base/check.h"
#include "trace/code_rows.h"
#include "trace/trace.h"

const struct column *column_find(enum column_source source, enum column_id id)
{
	const struct column *column = &(source == COLUMNS_OF_EVENTS ? column_of_events : column_of_allocations)[id];
	assert(source < COLUMN_SOURCES && id < COLUMN_COUNT);
	CHECK_VALID(!column->name || column_is_valid(column));
	return column->name ? column : NULL;
}

bool column_is_valid(const struct column *column)
{
	bool is_text = column->type == TYPE_TEXT, has_words = column->words && column->word_count;
	size_t length = column->help ? strlen(column->help) : 0;
	return column->name && *column->name && length && column->help[length - 1] == '.' &&
	       is_text == (column->text != NULL) && is_text == !column->get && is_text == !column->fill &&
	       has_words == (column->type == TYPE_WORD) && !(column->absent_word && !column->absent) &&
	       !(column->lies_in && (column->absent || !column->strips)) && column->lies_in <= PACK_COLUMNS;
}

const char *column_word(const struct column *column, const struct trace_dictionary *dictionary, uint64_t value)
{
	assert(column->type != TYPE_FUNCTION || value < dictionary->entry_count);
	if (column->type == TYPE_FUNCTION)
		return dictionary->entries[value].name;
	if (column->type != TYPE_WORD)
		return NULL;
	return value < column->word_count ? column->words[value] : "?";
}
