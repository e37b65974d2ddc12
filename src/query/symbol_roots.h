/* SPDX-License-Identifier: MIT */
/** Where files of a trace lie that are not at their paths: in containers that run. */
#ifndef XHEAP_QUERY_SYMBOL_ROOTS_H
#define XHEAP_QUERY_SYMBOL_ROOTS_H

#include "symbols/symbols.h"
#include "trace/trace.h"

/** Let the processes of the trace from number `first` on that had not ended be asked for files. Before the first search
    for an image of theirs. */
void symbol_roots_add(struct symbols *symbols, const struct trace_dictionary *dictionary, uint32_t first);

#endif
