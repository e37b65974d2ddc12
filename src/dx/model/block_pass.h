/* SPDX-License-Identifier: MIT */
/** Blocks of the model, one by one, as they are at a position or over all of the trace. */
#ifndef XHEAP_DX_BLOCK_PASS_H
#define XHEAP_DX_BLOCK_PASS_H

#include "dx/model/objects.h"
#include "query/scan.h"

/** A block as an object's data. */
struct dx_block {
	struct heap_allocation row;
	struct heap_details details;
	uint32_t number;
	uint32_t owner; /**< the forked process whose copy it is; TRACE_NONE: it is no copy */
};

/** Which blocks are wanted. */
enum dx_block_choice {
	DX_BLOCKS_ALL,         /**< begun in the trace */
	DX_BLOCKS_LIVE,        /**< there at a position, earlier ones included */
	DX_BLOCKS_OUTSTANDING, /**< begun in the trace and never given back */
	DX_BLOCKS_CROSS        /**< freed by another thread than the one that allocated them */
};

enum { DX_BLOCKS_PROCESS, DX_BLOCKS_CHOICE, DX_BLOCKS_POSITION, DX_BLOCKS_ARGUMENTS };

/** A pass over the blocks. */
struct dx_block_pass {
	struct heap_scan scan;
	struct dx_value position; /**< of live blocks; step UINT32_MAX: behind all points of its nanosecond; DX_ABSENT:
				     before the end of each process */
	const struct heap_rows *rows;
	uint32_t process, at;
	enum dx_block_choice choice;
	bool has_scan;
};

/** Begin a pass over the blocks of one process, or of all (TRACE_NONE). A trace without a table stops the query. */
void dx_block_pass_begin(struct dx_block_pass *pass, struct dx_query *query, uint32_t process,
			 enum dx_block_choice choice, struct dx_value position);
/** Set the next block. False: there is none, or the query is stopped. */
bool dx_block_pass_next(struct dx_block_pass *pass, struct dx_query *query, struct dx_block *block);
/** Free the pass. */
void dx_block_pass_end(struct dx_block_pass *pass);

/** Blocks of one stack: the data of dx_stack_row_class. */
struct dx_stack_row {
	uint64_t node; /**< of the names' tree */
	int64_t count, bytes;
};

/** Load the block with this number. False: there is none. */
bool dx_block_load(struct dx_query *query, uint32_t number, struct dx_block *block);

/** Return the block with this number, or an error. */
struct dx_value dx_block_at(struct dx_query *query, uint32_t number);

/** Find the block that an event began, or the one that it ended. False: the model has none. */
bool dx_block_of_event(struct dx_query *query, const struct dx_event *event, struct dx_block *block);

#endif
