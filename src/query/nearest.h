/* SPDX-License-Identifier: MIT */
/** The name in the trace that is most like a pattern without a match. */
#ifndef XHEAP_QUERY_NEAREST_H
#define XHEAP_QUERY_NEAREST_H

#include "query/pattern.h"

/** Write to `text`, cut to `size` bytes, that the pattern matches no frame, the name that is most like it, and how many
    images lack symbols. */
void heap_pattern_missing(const struct heap_pattern *pattern, struct heap_names *names, char *text, size_t size);

#endif
