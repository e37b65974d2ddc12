/* SPDX-License-Identifier: MIT */
#include "session/drain/keep.h"

#include "os/limits.h"

static uint64_t part_of(uint64_t bytes, uint64_t numerator, uint64_t least)
{
	uint64_t part = bytes / KEEP_DENOMINATOR * numerator;
	return part < least ? least : part;
}

struct keep_limits keep_limits_default(void)
{
	uint64_t memory = limits_memory_bytes();
	return (struct keep_limits){.nodes = KEEP_NODES,
				    .rows = KEEP_ROWS,
				    .stack_bytes = part_of(memory, KEEP_STACKS_NUMERATOR, KEEP_STACKS_LEAST),
				    .row_bytes = part_of(memory, KEEP_ROWS_NUMERATOR, KEEP_ROWS_LEAST)};
}

static uint32_t at_most(uint64_t first, uint64_t second)
{
	uint64_t less = first < second ? first : second;
	return less < UINT32_MAX ? (uint32_t)less : UINT32_MAX;
}

void keep_begin_stacks(struct keep *keep)
{
	const struct keep_limits *limits = keep->limits;
	const struct writer_kept kept = writer_kept(keep->writer);
	uint64_t own = keep->nodes < limits->nodes ? limits->nodes - keep->nodes : 0;
	uint64_t bytes = kept.stack_bytes < limits->stack_bytes ? limits->stack_bytes - kept.stack_bytes : 0;
	keep->nodes_before = kept.nodes;
	writer_limit_stacks(keep->writer, at_most(own, bytes / WRITER_NODE_BYTES),
			    at_most(UINT32_MAX, bytes / WRITER_FRAME_BYTES));
}

void keep_end_stacks(struct keep *keep)
{
	keep->nodes += writer_kept(keep->writer).nodes - keep->nodes_before;
	writer_limit_stacks(keep->writer, UINT32_MAX, UINT32_MAX);
}

bool keep_has_room(const struct keep_limits *limits, const struct writer *writer)
{
	return writer_kept(writer).row_bytes < limits->row_bytes;
}

bool keep_add_row(struct keep *keep)
{
	bool has_room = keep->rows < keep->limits->rows && keep_has_room(keep->limits, keep->writer);
	keep->rows += has_room;
	keep->has_refused_rows |= !has_room;
	return has_room;
}
