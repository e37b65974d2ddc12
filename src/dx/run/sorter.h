/* SPDX-License-Identifier: MIT */
/** An external sort of elements by keys: those that have no memory lie in a file, sorted in runs, which are merged.
    Equal elements keep their order. */
#ifndef XHEAP_DX_SORTER_H
#define XHEAP_DX_SORTER_H

#include "dx/core/query.h"
#include "dx/run/spill.h"

struct sorter_head;

/** Begin it with dx_sorter_begin(), end it with dx_sorter_end(). */
struct dx_sorter {
	const struct dx_iterator *iterator; /**< that sorts; messages name its operator */
	struct dx_query *query;
	/** Order two elements by their keys. */
	int (*compare)(const void *context, const struct dx_element *one, const struct dx_element *other);
	const void *context;
	uint32_t key_count;
	size_t memory_bytes;                   /**< that elements may take at a time */
	struct dx_list *elements, *keys;       /**< in memory; `key_count` keys for each element */
	const struct dx_element *present_keys; /**< of the elements that are compared: in memory, or of heads */
	uint32_t *numbers, *scratch;           /**< of these elements, in order */
	uint32_t count, next;                  /**< in memory, when they are sorted; next: that were taken */
	bool is_unspillable;                   /**< an element refers to what cannot be written */
	struct dx_spill spill;
	struct sorter_head *heads; /**< NULL: all elements are in memory */
	struct dx_element *head_keys;
	uint32_t *queue; /**< numbers of runs, the one with the least head first */
	uint32_t queue_count, head_count;
};

/** Begin without elements. What it keeps in memory lives until `arena` is released. */
void dx_sorter_begin(struct dx_sorter *sorter, struct dx_query *query, const struct dx_iterator *iterator,
		     struct dx_arena *arena);

/** Add a copy of an element and its keys. */
void dx_sorter_add(struct dx_sorter *sorter, const struct dx_element *element, const struct dx_value *keys);

/** Sort, when all elements are there. The query is stopped if that fails. */
void dx_sorter_sort(struct dx_sorter *sorter);

/** Return an element of those that all are in memory, sorted. */
const struct dx_element *dx_sorter_at(const struct dx_sorter *sorter, uint32_t i);

/** Set the next element, in the query's arena or in the sorter, and its keys unless they are NULL. False: there is
    none, or the query is stopped. */
bool dx_sorter_next(struct dx_sorter *sorter, struct dx_element *element, struct dx_value *keys);

/** Free what lies outside of the arena. */
void dx_sorter_end(struct dx_sorter *sorter);

#endif
