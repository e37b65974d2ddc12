/* SPDX-License-Identifier: MIT */
/** What somebody may have meant. */
#ifndef XHEAP_QUERY_NEAREST_H
#define XHEAP_QUERY_NEAREST_H

#include "query/pattern.h"

/** Say that the pattern matches no frame, which name is most like it, and what may hide it; cut to `size` bytes. */
void heap_pattern_missing(const struct heap_pattern *pattern, struct heap_names *names, char *text, size_t size);

#endif
