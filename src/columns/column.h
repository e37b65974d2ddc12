/* SPDX-License-Identifier: MIT */
/**
 * The columns of the two tables that a trace gives: its allocations and its events. All that shows rows takes names,
 * types and values from here: xheap dump, plans, the objects of xheap dx, the batches of the C interface, docs/schema.
 * A column is a row of allocation_columns.c or event_columns.c.
 *
 * A value is 64 bits. A column gives it of one row (`get`), or of a batch of rows at once (`fill`), which is several
 * times as fast.
 */
#ifndef XHEAP_COLUMNS_COLUMN_H
#define XHEAP_COLUMNS_COLUMN_H

#include "match/point_stream.h"
#include "query/scan.h"
#include "trace/call_arguments.h"
#include "trace/reader.h"

enum column_source { COLUMNS_OF_ALLOCATIONS, COLUMNS_OF_EVENTS, COLUMN_SOURCES };

/** All columns, in the order of dump. A source has some of them. */
enum column_id {
	COLUMN_ID,
	COLUMN_TIME,
	COLUMN_DURATION,
	COLUMN_PROCESS,
	COLUMN_PID,
	COLUMN_THREAD,
	COLUMN_TID,
	COLUMN_ACTION,
	COLUMN_FUNCTION,
	COLUMN_HEAP,
	COLUMN_HEAP_ID,
	COLUMN_ADDRESS,
	COLUMN_PREVIOUS_ADDRESS,
	COLUMN_SIZE,
	COLUMN_USABLE,
	COLUMN_BIRTH,
	COLUMN_END,
	COLUMN_END_KIND,
	COLUMN_LIFETIME,
	COLUMN_FREE_THREAD,
	COLUMN_FREE_TID,
	COLUMN_ARGUMENTS,
	COLUMN_ARGUMENT,
	COLUMN_ARGUMENT_2,
	COLUMN_RESULT,
	COLUMN_FLAGS,
	COLUMN_SITE,
	COLUMN_STACK,
	COLUMN_FREE_SITE,
	COLUMN_FREE_STACK,
	COLUMN_FREE_FUNCTION,
	COLUMN_PREVIOUS,
	COLUMN_WEIGHT_COUNT,
	COLUMN_WEIGHT_BYTES,
	COLUMN_COUNT
};

/** What the values are: their unit, or the list of the trace in which they are places. */
enum column_type {
	TYPE_NUMBER,
	TYPE_BYTES,
	TYPE_ADDRESS,
	TYPE_TIME,  /**< int64_t, nanoseconds: a duration, or since T = 0 */
	TYPE_ERROR, /**< int64_t, an error number or 0 */
	TYPE_WORD,  /**< a place in `words` */
	TYPE_TEXT,  /**< no value: `text` writes it */
	TYPE_PROCESS,
	TYPE_THREAD,
	TYPE_HEAP,
	TYPE_STACK,    /**< a node */
	TYPE_FUNCTION, /**< one of the entries */
	TYPE_SITE,     /**< one of the table's sites */
	TYPE_ALLOCATION
};

/** A row of an event block. */
struct column_event {
	int64_t time_ns, duration_ns;
	uint64_t address, previous, size, usable, argument, argument2;
	uint32_t process, thread, heap, stack;
	int32_t result;
	uint16_t entry;
	uint8_t kind, flags;
};

/** One row. */
struct column_row {
	const struct trace_dictionary *dictionary;
	uint64_t id; /**< the number of the allocation, or of the event in the order of time */
	/** of allocations */
	const struct heap_table *table;
	struct heap_allocation allocation;
	const struct heap_details *details;
	/** of events */
	struct column_event event;
};

/** Rows that are computed together, PACK_ROWS at most: of the table, or of an event block. */
struct column_rows {
	const struct trace_dictionary *dictionary;
	uint64_t first_id;
	uint32_t count;
	/** of allocations: what the columns need (`strips`) must be unpacked */
	const struct heap_table *table;
	const struct pack_columns *packed;
	const struct heap_details *details;
	/** of events: rows of the block, from `first` on, or at `places` */
	const struct trace_block *block;
	const struct point_place *places;
	uint32_t first;
};

/** What the columns of text write at most. */
enum { COLUMN_TEXT_BYTES = 512 };

/** A column of a source. */
struct column {
	const char *name; /**< NULL: the source lacks it */
	enum column_type type;
	int width; /**< in dump's text; negative: aligned to the left; 0: dump leaves the column out */
	/** what allocations need for it: PACK_TIMES, ...; of events: PACK_ADDRESSES, PACK_TIMES or 0 */
	unsigned strips;
	/** Set the value and return true. If it is absent, return false and set the value that the C interface has. */
	bool (*get)(const struct column_row *row, uint64_t *value);
	/** Do the same for all rows. Set absent[i] to 1 if value i is absent, else to 0. */
	void (*fill)(const struct column_rows *rows, uint64_t *restrict values, uint8_t *restrict absent);
	const char *help;        /**< a sentence */
	const char *absent;      /**< why there may be no value, as the end of a sentence; NULL: there always is one */
	const char *absent_word; /**< what dump writes then; NULL: nothing */
	/** allocations: the strip whose numbers are the values, as they are and never absent, plus one; 0: none */
	unsigned lies_in;
	/** TYPE_TEXT: write the text to `to` (COLUMN_TEXT_BYTES) and return true; false: it is absent. */
	bool (*text)(const struct column_row *row, char *to);
	const char *const *words; /**< TYPE_WORD: `word_count` of them */
	uint32_t word_count;
	unsigned bits; /**< TYPE_NUMBER: what its numbers fit into, 8 or 32; 0: 64 */
};

extern const struct column column_of_allocations[COLUMN_COUNT], column_of_events[COLUMN_COUNT];

/** Return the column of the source; NULL: it has none. */
const struct column *column_find(enum column_source source, enum column_id id);

/** Return whether the parts of the row fit together (base/check.h). */
bool column_is_valid(const struct column *column);

/** Return the text that a value stands for: a word, or the name of a function; NULL: it stands for itself. */
const char *column_word(const struct column *column, const struct trace_dictionary *dictionary, uint64_t value);

/** Return the columns' view of rows of the table. */
static inline struct column_rows column_rows_of(const struct heap_table *table, const struct heap_rows *rows)
{
	return (struct column_rows){.dictionary = table->dictionary,
				    .first_id = rows->first,
				    .count = rows->count,
				    .table = table,
				    .packed = &rows->columns,
				    .details = rows->details};
}

/** Return row i of them. */
static inline struct column_row column_row_of(const struct heap_table *table, const struct heap_rows *rows, uint32_t i)
{
	return (struct column_row){.dictionary = table->dictionary,
				   .id = rows->first + i,
				   .table = table,
				   .allocation = heap_rows_get(rows, i),
				   .details = &rows->details[i]};
}

/** Return a row of an event block. */
static inline struct column_event column_event_at(const struct trace_block *block, uint32_t row)
{
	return (struct column_event){.time_ns = block->time_ns[row],
				     .duration_ns = block->duration_ns[row],
				     .address = block->address[row],
				     .previous = block->previous[row],
				     .size = block->size[row],
				     .usable = block->usable[row],
				     .argument = block->argument[row],
				     .argument2 = block->argument2[row],
				     .process = block->process,
				     .thread = block->thread,
				     .heap = block->heap[row],
				     .stack = block->stack[row],
				     .result = block->result[row],
				     .entry = block->entry[row],
				     .kind = block->kind[row],
				     .flags = block->flags[row]};
}

#endif
