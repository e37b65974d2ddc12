/* SPDX-License-Identifier: MIT */
/**
 * An answer that the index of a trace keeps, value by value: the same calls read it where it is known, and else take
 * note of it. It is used again by the same build of xheap under the same key.
 */
#ifndef XHEAP_TABLE_KEPT_ANSWER_H
#define XHEAP_TABLE_KEPT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table/index_file.h"
#include "trace/bytes.h"

/** Zero it where nothing is kept. */
struct kept_answer {
	const struct heap_table *table; /**< NULL: nothing is kept */
	enum heap_index_answer which;
	uint64_t key;
	bool is_known; /**< the index has the answer */
	struct bytes bytes;
	size_t at; /**< of a known one: where the next value begins */
};

/** Read what the index of the table has for a question, which these bytes describe beside the trace. End it with
    kept_answer_end(). */
void kept_answer_begin(struct kept_answer *kept, const struct heap_table *table, enum heap_index_answer which,
		       const void *question, size_t size);

/** The same, but take note of another answer in any case. */
void kept_answer_anew(struct kept_answer *kept, const struct heap_table *table, enum heap_index_answer which,
		      const void *question, size_t size);

/** Set a value, or note it. */
void kept_answer_value(struct kept_answer *kept, void *value, size_t size);

/** Set an array of *count items, which the caller frees, or note this one. Return it. */
void *kept_answer_array(struct kept_answer *kept, void *items, size_t *count, size_t size);

/** The same of an array that has as many items each time. */
void *kept_answer_table(struct kept_answer *kept, void *items, size_t count, size_t size);

/** Keep what was noted if it is whole and the table is not damaged. Free the memory. */
void kept_answer_end(struct kept_answer *kept, bool is_whole);

#endif
