/* SPDX-License-Identifier: MIT */
/**
 * xheap dump: all that is in a trace, row by row. A subject is a list of columns, each with a name and a function that
 * puts its value of the current row; text, CSV and JSON (one object per line) are three ways to write the list. The
 * columns of allocations and events are those of columns/column.h. Rows are written as they are read, so a dump of any
 * length takes the memory of the blocks that are open.
 */
#ifndef XHEAP_CLI_DUMP_H
#define XHEAP_CLI_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opened_trace.h"
#include "base/diag.h"
#include "base/sink.h"
#include "cli/ask/filter_options.h"
#include "cli/input.h"
#include "columns/column.h"
#include "query/frame_names.h"
#include "query/scan.h"

struct trace_dictionary;
struct trace_resident;

enum { DUMP_VALUE_BYTES = COLUMN_TEXT_BYTES };

/** A cell: absent, a number (no quotes in JSON), digits of an address, or text, which may need quotes. */
struct dump_value {
	enum { VALUE_ABSENT, CELL_NUMBER, CELL_ADDRESS, CELL_TEXT } kind;
	const char *text; /**< in `room`, or anything that lives until the row is written */
	char room[DUMP_VALUE_BYTES];
};

/** Where columns take their values from. */
struct dump_row {
	const struct trace_dictionary *dictionary;
	struct heap_names *names;
	struct column_row listed;           /**< allocations and events */
	const struct trace_resident *split; /**< mappings */
	const uint32_t *order;              /**< memory: of resident_order() */
	uint32_t at;                        /**< row of the dictionary */
};

struct dump_column {
	const char *name;
	void (*get)(const struct dump_row *row, struct dump_value *value); /**< NULL: the list has the column */
	int width; /**< of text output; negative: aligned to the left; 0: as long as it is */
};

struct dump_options {
	struct filter_options filter;
	struct input input;
	int format, subject;
	bool has_whole_stacks;
	const char *output; /**< a file; NULL: standard output */
};

struct dump {
	struct dump_options *options;
	struct opened_trace *opened;
	const char *path;          /**< of it */
	const struct trace *trace; /**< the same */
	const struct dump_column *columns;
	unsigned column_count;
	struct dump_column list_columns[COLUMN_COUNT]; /**< of allocations or events */
	const struct column *listed[COLUMN_COUNT];     /**< the same, in the list */
	int format;                                    /**< enum report_format */
	struct heap_range range;
	struct sink *out;
	struct dump_row row;
};

/** What can be dumped. */
struct dump_subject {
	const struct dump_column *columns; /**< NULL: those of `source` */
	unsigned count;
	/** Write all rows. Return 0, a negative errno with the reason in `diag`, or an exit status after a message. */
	int (*run)(struct dump *dump, struct diag *diag);
	enum column_source source;
};
#define DUMP_SUBJECT(columns_, run_) \
	{ \
		.columns = (columns_), .count = sizeof(columns_) / sizeof(*(columns_)), .run = (run_) \
	}
#define DUMP_LISTED_SUBJECT(source_, run_) \
	{ \
		.source = (source_), .run = (run_) \
	}

extern const struct dump_subject dump_events, dump_stacks, dump_images, dump_processes, dump_allocations, dump_memory,
	dump_mappings;

/** dump_stacks of a trace with Python frames, with columns for them. */
extern const struct dump_subject dump_managed_stacks;

/** Without resident memory by kind of mapping in the trace, the columns of dump_memory behind these are left out. */
enum { DUMP_MEMORY_PLAIN_COLUMNS = 4 };

#endif
