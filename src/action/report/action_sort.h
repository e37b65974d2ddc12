/* SPDX-License-Identifier: MIT */
/** The numbers of rows, and the orders by them. */
#ifndef XHEAP_ACTION_SORT_H
#define XHEAP_ACTION_SORT_H

#include "action/report/action.h"

/* The numbers of rows and totals, as CSV and JSON order them: the name, which is its member of struct heap_numbers, the
   key that sorts by it or "", and that order's title. */
#define ACTION_NUMBERS(X) \
	X(total_count, "stc", "total count") \
	X(total_bytes, "st", "total size") \
	X(outstanding_count, "soc", "outstanding count") \
	X(outstanding_bytes, "so", "outstanding size") \
	X(realloc_count, "src", "realloc count") \
	X(realloc_moved_count, "", "") \
	X(temporary_count, "stt", "temporary count") \
	X(open_count, "", "") \
	X(peak_count, "spc", "count at the peak") \
	X(peak_bytes, "sp", "size at the peak")

#define X(name, key, title) ACTION_NUMBER_##name,
enum action_number { ACTION_NUMBERS(X) ACTION_NUMBER_COUNT };
#undef X

/** How rows are sorted, from the most to the least. */
struct action_sort {
	const char *key;   /**< as typed: "so" */
	const char *title; /**< "outstanding size" */
	uint64_t (*number)(const struct action_figures *figures);
};

/** Return the order with this key, in any case; NULL when there is none. NULL gives the default. */
const struct action_sort *action_sort_find(const char *key);

/** Return the order with this place in the list of keys, from 0; NULL behind the last one. */
const struct action_sort *action_sort_at(unsigned number);

/** Return the order by this number, which has a key. */
const struct action_sort *action_sort_by(enum action_number number);

/** Return the number that the order is by. */
enum action_number action_sort_number(const struct action_sort *sort);

/** Return all keys, "so soc st ...", for messages. The caller frees them. */
char *action_sort_keys(void);

/** Return the key that is most like the word, or NULL. */
const char *action_sort_nearest(const char *word);

#endif
