/* SPDX-License-Identifier: MIT */
/** Rows of a dump as text, CSV and JSON, and the values in them. */
#ifndef XHEAP_CLI_DUMP_ROWS_H
#define XHEAP_CLI_DUMP_ROWS_H

#include <stdint.h>

#include "cli/ask/dump.h"

/** Put a value of a row. A text lives until the row is written. Known text that is empty, an id that is none, and a pid
    of 0 are absent. */
void dump_put_number(struct dump_value *value, int64_t number);
void dump_put_count(struct dump_value *value, uint64_t count);
void dump_put_address(struct dump_value *value, uint64_t address);
void dump_put_text(struct dump_value *value, const char *text);
void dump_put_known_text(struct dump_value *value, const char *text);
void dump_put_id(struct dump_value *value, uint32_t id);
void dump_put_pid(struct dump_value *value, uint32_t pid);

/** Define the function of a column: the value, an expression over `row`, goes to `put`. */
#define DUMP_VALUE(name, put, value_) DUMP_VALUE_IF(name, true, put, value_)

/** Define the function of a column that is absent where the condition does not hold. */
#define DUMP_VALUE_IF(name, condition, put, value_) \
	static void name(const struct dump_row *row, struct dump_value *value) \
	{ \
		if (condition) \
			put(value, value_); \
	}

/** Set the columns to those of the list that have a width. */
void dump_list_columns(struct dump *dump, enum column_source source);

/** Write the line with the names of the columns; JSON has none. */
void dump_write_header(struct dump *dump);

/** Write the current row. */
void dump_write_row(struct dump *dump);

/** Write the rows from `first` up to `count` of a dictionary. Return 0. */
int dump_write_rows(struct dump *dump, uint32_t first, uint32_t count);

#endif
