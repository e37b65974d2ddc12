/* SPDX-License-Identifier: MIT */
#include "action/explain/explanation_call.h"

#include "action/explain/explanation.h"
#include "trace/code_rows.h"
#include "trace/reader.h"

void explain_call_set(struct explain_call *call, const struct trace_block *block, uint32_t row)
{
	bool is_realloc = block->kind[row] == EVENT_REALLOC;
	*call = (struct explain_call){
		.time_ns = block->time_ns[row],
		.address = is_realloc                       ? block->previous[row]
			   : block->kind[row] == EVENT_FREE ? block->address[row]
							    : 0,
		.size_bytes = block->size[row],
		.thread = block->thread,
		.stack = block->stack[row],
		.stack_before = row ? block->stack[row - 1] : 0,
		.entry = block->entry[row],
		.kind = block->kind[row],
		.is_under_way = block->flags[row] & EVENT_IN_FLIGHT,
	};
	if (is_realloc && !call->is_under_way)
		call->time_ns -= block->duration_ns[row];
}
