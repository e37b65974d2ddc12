/* SPDX-License-Identifier: MIT */
#include "action/explain/explanation_memory.h"

#include <errno.h>
#include <stdlib.h>

#include "action/explain/explanation.h"
#include "action/explain/explanation_call.h"
#include "base/memory.h"
#include "base/text.h"
#include "query/resident.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* A program that got no memory reports that and cleans up before it ends, which takes few calls and little time. */
enum { CALLS_AFTER_MAX = 100 };
static const int64_t NS_AFTER_MAX = 1000000000;

/* The calls of a thread, the last one first. */
struct last_calls {
	uint64_t largest_bytes; /* of the blocks that it got */
	uint32_t count;         /* CALLS_AFTER_MAX: no earlier call counts */
};

static const struct trace_dictionary *dictionary_of(const struct explanation *explanation)
{
	return explanation->source->table->dictionary;
}

static bool has_failed_exit(const struct trace_process *process)
{
	return process->end == TRACE_END_EXIT && process->end_status;
}

bool explanation_may_lack_memory(const struct explanation *explanation, uint32_t process)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	return dictionary->failed_count && has_failed_exit(&dictionary->processes[process]);
}

static bool is_allocation(const struct trace_block *block, uint32_t row)
{
	return (block->kind[row] == EVENT_ALLOC || block->kind[row] == EVENT_REALLOC) &&
	       !(block->flags[row] & EVENT_IN_FLIGHT);
}

/* Take the calls of a block, which are before those of `after`. Return whether *call is a failed one of them. */
static bool block_take(const struct trace_block *block, int64_t from_ns, struct last_calls *after,
		       struct explain_call *call)
{
	for (uint32_t row = block->count; row-- > 0 && after->count < CALLS_AFTER_MAX;) {
		if (block->time_ns[row] < from_ns) {
			after->count = CALLS_AFTER_MAX;
			break;
		}
		after->count++;
		if (!is_allocation(block, row))
			continue;
		if (block->result[row] == ENOMEM && block->size[row] > after->largest_bytes) {
			explain_call_set(call, block, row);
			after->count = CALLS_AFTER_MAX;
			return true;
		}
		if (!block->result[row] && block->size[row] > after->largest_bytes)
			after->largest_bytes = block->size[row];
	}
	return false;
}

/* Find the last failed call of any thread that the process had no success after. */
static int last_find(const struct explanation *explanation, struct trace_cursor *cursor, struct explain_call *call,
		     struct diag *diag)
{
	const struct trace *trace = explanation->source->trace;
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	const struct trace_process *process = &dictionary->processes[explanation->process];
	const int64_t from_ns = trace_process_end_is_known(process) ? process->end_ns - NS_AFTER_MAX : INT64_MIN;
	struct last_calls *after = memory_zeroed(dictionary->thread_count + 1, sizeof(*after));
	int found = 0;
	for (uint32_t i = trace_block_count(trace); i-- > 0 && found >= 0;) {
		struct trace_block block;
		struct explain_call failed;
		trace_block_head(trace, i, &block);
		if (block.process != explanation->process || block.thread >= dictionary->thread_count ||
		    block.last_ns < from_ns || after[block.thread].count == CALLS_AFTER_MAX)
			continue;
		int error = trace_cursor_read(cursor, i, &block, diag);
		if (error) {
			found = error;
		} else if (block_take(&block, from_ns, &after[block.thread], &failed) &&
			   (!found || failed.time_ns > call->time_ns)) {
			*call = failed;
			found = 1;
		}
	}
	free(after);
	return found;
}

int explanation_memory_find(const struct explanation *explanation, bool is_crash, struct explain_call *call,
			    struct diag *diag)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	bool has_failed = is_crash || has_failed_exit(&dictionary->processes[explanation->process]);
	if (!dictionary->failed_count || !has_failed)
		return 0;
	struct trace_cursor *cursor = trace_cursor_new(explanation->source->trace);
	if (!cursor)
		return diag_fail(diag, ENOMEM, "out of memory");
	int found = last_find(explanation, cursor, call, diag);
	trace_cursor_free(cursor);
	if (found > 0) {
		call->fault = EXPLAIN_NO_MEMORY;
		call->certainty = EXPLAIN_LIKELY;
	}
	return found;
}

void explanation_memory_put(const struct explanation *explanation, const struct explain_call *call, struct sink *out)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	const struct trace_limit *limit = resident_limit(dictionary, explanation->process);
	sink_format(out, "%s of %s failed for want of memory",
		    call->entry < dictionary->entry_count ? text_shown(dictionary->entries[call->entry].name)
							  : "a heap call",
		    text_bytes(call->size_bytes).data);
	if (!limit)
		return;
	if (limit->address_space_bytes != TRACE_LIMIT_NONE)
		sink_format(out, "; the limit RLIMIT_AS (ulimit -v) is %s",
			    text_bytes(limit->address_space_bytes).data);
	if (limit->data_bytes != TRACE_LIMIT_NONE)
		sink_format(out, "; the limit RLIMIT_DATA (ulimit -d) is %s", text_bytes(limit->data_bytes).data);
}
