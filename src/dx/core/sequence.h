/* SPDX-License-Identifier: MIT */
/**
 * Sequences: lazy collections. A sequence is a description (an operator, its source, its arguments); an iterator goes
 * through it. next() leaves in the query's arena only what its element needs, so a consumer that releases the arena
 * after each element takes no more memory for a longer trace. What an operator must keep lies in the iterator's arena.
 */
#ifndef XHEAP_DX_SEQUENCE_H
#define XHEAP_DX_SEQUENCE_H

#include "dx/core/value.h"

enum { DX_ARGUMENTS_MAX = 5 };

struct dx_iterator;

/** An element: its value, and the index that it keeps through Where and OrderBy; is_nothing: it has no index. */
struct dx_element {
	struct dx_value value, index;
};

/** A kind of sequence, static. */
struct dx_operator {
	const char *name;
	size_t state_bytes; /**< of the iterator, zeroed */
	bool opens_source;  /**< the source is not opened before: the operator does it */
	/** Prepare the iterator's state; NULL: zeroes are enough. */
	void (*open)(struct dx_query *query, struct dx_iterator *iterator);
	/** Set the next element, or return false at the end. */
	bool (*next)(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element);
	/** End what the state refers to outside of arenas; NULL: nothing. */
	void (*close)(void *state);
};

struct dx_sequence {
	const struct dx_operator *operation;
	const struct dx_sequence *source; /**< NULL: none */
	int column;                       /**< of the call in the query's text, from 0 */
	unsigned argument_count;
	struct dx_value arguments[DX_ARGUMENTS_MAX];
};

struct dx_iterator {
	const struct dx_sequence *sequence;
	struct dx_iterator *source; /**< opened, if the sequence has one */
	void *state;
	struct dx_arena *home; /**< what lives as long as the iterator */
};

/** Return a sequence in the query's arena. */
struct dx_sequence *dx_sequence_new(struct dx_query *query, const struct dx_operator *operation,
				    const struct dx_sequence *source, int column);

/** Return whether it and its sources are whole: operators, arguments, parts of lists (base/check.h). */
bool dx_sequence_is_valid(const struct dx_sequence *sequence);

/** Begin to go through the sequence. The iterator ends when the query's present arena is released. */
struct dx_iterator *dx_open(struct dx_query *query, const struct dx_sequence *sequence);

/** Set the next element. False: there is none, or the query is to end. */
bool dx_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element);

/** Go through the next elements; what was made in the query's present arena for one is given back before the next one,
    unless the loop is left with it. */
#define dx_each(query, iterator, element) dx_each_then(query, iterator, element, (void)0)

/** The same, for an operation that keeps them. */
#define dx_each_kept(query, iterator, element, kept_by) \
	dx_each_then(query, iterator, element, dx_step_kept(query, kept_by))

#define dx_each_then(query, iterator, element, step) \
	for (struct dx_mark mark_ = dx_mark((query)->arena); dx_next(query, iterator, element); \
	     dx_release((query)->arena, mark_), step, mark_ = dx_mark((query)->arena))

/** Make a step of the operator itself, after it has kept an element: the memory is its. False: the query is to end. */
bool dx_step_kept(struct dx_query *query, const struct dx_iterator *iterator);

/** Elements that are kept, in memory of their own. */
struct dx_list;

/** Begin a list; dx_list_value() makes a value of it. It lives until `arena` is released and no value refers to it. */
struct dx_list *dx_list_new(struct dx_query *query, struct dx_arena *arena);

/** Add a copy of the element. */
void dx_list_add(struct dx_list *list, const struct dx_element *element);

/** Remove all elements, and give their memory back. */
void dx_list_clear(struct dx_list *list);
/** Return how many bytes more than the element itself the next dx_list_add() takes. */
size_t dx_list_growth(const struct dx_list *list);

/** Return whether its elements are valid values in its memory (base/check.h). */
bool dx_list_is_valid(const struct dx_list *list);

/** Return the number of elements; the elements. They may be put in another order. */
uint32_t dx_list_count(const struct dx_list *list);
struct dx_element *dx_list_elements(const struct dx_list *list);

/** Return a sequence of the elements from `first` on. */
struct dx_value dx_list_value(struct dx_query *query, struct dx_list *list, uint32_t first, uint32_t count);

/** Return the same as a group, which has a key. */
struct dx_value dx_group_value(struct dx_query *query, struct dx_list *list, uint32_t first, uint32_t count,
			       const struct dx_value *key);

/** Return the key of a group; NULL: the sequence is none. */
const struct dx_value *dx_sequence_key(const struct dx_sequence *sequence);

/** Return the sequence in another arena. */
const struct dx_sequence *dx_sequence_copy(struct dx_arena *arena, const struct dx_sequence *sequence);

/** Set *list if the sequence is a kept list. */
bool dx_sequence_is_list(const struct dx_sequence *sequence, const struct dx_element **elements, uint32_t *count);

#endif
