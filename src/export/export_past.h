/* SPDX-License-Identifier: MIT */
/** Of a recording that is exported again and again: what earlier profiles had. Stacks are told apart by the code that
    they go through. Its names may change: a program's file is replaced by a new version, or its symbols come later. */
#ifndef XHEAP_EXPORT_PAST_H
#define XHEAP_EXPORT_PAST_H

#include "base/map.h"
#include "export/export_tree.h"

enum { EXPORT_PAST_FIGURES = 2 };

/** What earlier profiles had of a stack: EXPORT_TOTAL_COUNT, EXPORT_TOTAL_BYTES. */
struct export_total {
	uint64_t stack;                     /**< a hash */
	uint64_t now[EXPORT_PAST_FIGURES];  /**< in the last one, with all before */
	uint64_t left[EXPORT_PAST_FIGURES]; /**< not found again in it */
};

/** The past. Its memory grows with the number of stacks. Zero it. */
struct export_past {
	struct map stacks; /**< hash -> place in `totals` */
	struct export_total *totals;
	size_t capacity;
	int64_t until_ns; /**< the time of the trace that it reaches to */
};

/** Add the totals of a stack that earlier profiles had. */
void export_past_add(struct export_past *past, uint64_t stack, const uint64_t totals[EXPORT_PAST_FIGURES]);

/** Return the hashes of the source's stacks, by site; the caller frees them. */
uint64_t *export_past_stacks(const struct action_source *source);

/** Begin a further profile. */
void export_past_begin(struct export_past *past);

/** Take from these figures of a stack what earlier profiles had, and remember the rest. */
void export_past_take(struct export_past *past, uint64_t stack, uint64_t values[EXPORT_FIGURE_COUNT]);

/** Free what it has. */
void export_past_fini(struct export_past *past);

#endif
