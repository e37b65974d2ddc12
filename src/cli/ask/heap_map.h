/* SPDX-License-Identifier: MIT */
/** xheap heap -map: the pages of a trace at a moment. */
#ifndef XHEAP_CLI_HEAP_MAP_H
#define XHEAP_CLI_HEAP_MAP_H

#include "analysis/analysis.h"
#include "cli/ask/heap_options.h"

/** Refuse what a map has no answer for; without -at it is of the trace's end. 0, or CLI_FAILED after a message. */
int heap_map_settle(struct heap_options *options);

/** Print the map that the analysis, which is open, has the blocks of. CLI_OK, or another exit status after messages. */
int heap_map_show(struct heap_options *options, struct analysis *analysis);

#endif
