/* SPDX-License-Identifier: MIT */
/** Traces with their cells in one piece of bytes: the data of a self-contained file, and of the answer `live`
    (viewer/README.md). */
#ifndef XHEAP_SERVER_PARTS_H
#define XHEAP_SERVER_PARTS_H

#include "base/sink.h"

/** Begin the bytes in a sink in memory that is empty. */
void parts_begin(struct sink *out, unsigned trace_count);

/** Add the JSON of a trace, and its cells. */
void parts_add(struct sink *out, const struct sink *json, const struct sink *cells);

#endif
