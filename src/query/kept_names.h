/* SPDX-License-Identifier: MIT */
/** The names of code that an index keeps: what was found once is not searched for again. */
#ifndef XHEAP_QUERY_KEPT_NAMES_H
#define XHEAP_QUERY_KEPT_NAMES_H

struct heap_table;
struct symbols;

/** Have the symbols know what the index of the table keeps. Before the first search. */
void kept_names_learn(struct symbols *symbols, const struct heap_table *table);

/** Keep in the index of the table what was found, unless nearly all of it was known. */
void kept_names_note(struct symbols *symbols, const struct heap_table *table);

#endif
