/* SPDX-License-Identifier: MIT */
/**
 * Functions that the compiler of a runtime may have put into their callers. It does so after a while, and the caller
 * has the blocks from then on:
 *
 *     malloc < ... < CreateUnsafeArrayBuffer < picture < remember < serve      first
 *     malloc < ... < CreateUnsafeArrayBuffer < serve                           later
 *
 * node does not say which of its code is whose, so this is a guess: the row of serve makes the same native calls as
 * functions below serve made before, which make few of them any more.
 */
#ifndef XHEAP_ACTION_PUT_IN_H
#define XHEAP_ACTION_PUT_IN_H

#include <stddef.h>
#include <stdint.h>

#include "action/report/action.h"

struct kept_survey;
struct sink;

/** A row of stacks that begin in a compiled function, of which most bytes may be those of functions put into it. */
struct put_in_row {
	uint32_t node;         /**< the row */
	uint32_t from, to;     /**< nodes: these functions, up to the one before `to`, which is the row's own */
	uint32_t others;       /**< further functions that may be in it, too */
	uint32_t first, count; /**< of `befores`: the rows of these functions */
};

struct put_in {
	struct put_in_row *rows; /**< by node */
	size_t count;
	uint32_t *befores; /**< nodes */
	size_t before_count;
};

/** Find such rows among those of the source, whose window is there, or what is kept of them. Only a source with code of
    runtimes takes a pass. Free them with put_in_fini(). */
void put_in_find(struct put_in *put_in, struct action_input *input, struct action_source *source,
		 struct kept_survey *kept);

/** Return what is known of a row; NULL: nothing. */
const struct put_in_row *put_in_row(const struct put_in *put_in, uint32_t node);

/** Write "may be of picture < remember, put into it by the compiler": the user's functions, and how many more there
    are. */
void put_in_text(struct action_input *input, const struct put_in_row *row, struct sink *out);

/** Call visit for each function of the user's, innermost first. */
void put_in_each(struct action_input *input, const struct put_in_row *row,
		 void (*visit)(void *context, struct action_input *input, uint32_t node), void *context);

/** Free it. */
void put_in_fini(struct put_in *put_in);

#endif
