/* SPDX-License-Identifier: MIT */
/** The bytes of an answer: viewer/README.md, "Cells", describes them. */
#ifndef XHEAP_CELLS_CELL_BYTES_H
#define XHEAP_CELLS_CELL_BYTES_H

#include "base/sink.h"
#include "cells/cell_bounds.h"
#include "cells/cell_set.h"
#include "cells/cell_tree.h"

/** A function whose nodes are not of a trace's names. */
struct cell_function_text {
	const char *image, *short_name, *full_name;
	unsigned marks; /**< as of cells/cell_names.h */
};

/** All that an answer has. */
struct cell_answer {
	bool is_whole; /**< the range is the whole run */
	const struct cell_bounds *bounds;
	uint32_t peak;              /**< a bound, or CELL_NO_BOUND */
	const struct cell_set *set; /**< nodes are those of the tree */
	const struct cell_tree *tree;
	const struct heap_names *names; /**< with short forms; NULL: names of nodes are places in `functions` */
	const struct cell_function_text *functions;
	uint32_t function_count;
	uint32_t heap_count;                          /**< the number of CELL_NO_HEAP in the answer */
	const uint64_t *calls, *max_bytes, *resident; /**< by interval; UINT64_MAX: not measured */
	uint64_t lumped_bytes, plain_bytes; /**< made: without their paths, and without classes of size and lifetime */
};

/** Write the answer. Errors are the sink's. */
void cell_answer_write(const struct cell_answer *answer, struct sink *out);

#endif
