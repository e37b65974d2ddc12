/* SPDX-License-Identifier: MIT */
#include "action/explain/explanation_end.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "action/explain/explanation.h"
#include "action/explain/explanation_call.h"
#include "action/explain/explanation_memory.h"
#include "action/report/losses.h"
#include "base/memory.h"
#include "trace/code_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* Of earlier faults the last ones are looked at. */
enum { FAULTS_READ_MAX = 16 };

/* What is known of the process as a whole. */
struct end_facts {
	bool is_exact;     /* every call of the process is in the trace, and every block */
	bool lacks_blocks; /* the trace may not know a block that is freed */
	bool is_crash;
	int32_t signal; /* that ended it; 0: none, or not known */
};

bool explain_is_crash(int32_t signal)
{
	static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		if (crashes[i] == signal)
			return true;
	return false;
}

/* ---- calls ---- */

static bool is_annotation(const struct explanation *explanation, uint16_t entry)
{
	const struct trace_dictionary *dictionary = explanation->source->table->dictionary;
	return entry < dictionary->entry_count && function_is_annotation(dictionary->entries[entry].function);
}

static void calls_add(struct explanation *explanation, const struct trace_block *block)
{
	for (uint32_t row = 0; row < block->count; row++) {
		if (!(block->flags[row] & EVENT_IN_FLIGHT) || is_annotation(explanation, block->entry[row]))
			continue;
		if (explanation->under_way_count++ < EXPLAIN_CALLS_MAX)
			explain_call_set(&explanation->calls[explanation->call_count++], block, row);
	}
}

/* Return, for each thread, the number of its last block; UINT32_MAX: it is of another process, or has none. */
static uint32_t *last_blocks(const struct explanation *explanation)
{
	const struct action_source *source = explanation->source;
	const struct trace_dictionary *dictionary = source->table->dictionary;
	uint32_t *last = memory_resize(NULL, dictionary->thread_count + 1, sizeof(*last));
	struct trace_block head;
	memset(last, 0xff, (dictionary->thread_count + 1) * sizeof(*last));
	for (uint32_t i = 0; i < trace_block_count(source->trace); i++) {
		trace_block_head(source->trace, i, &head);
		if (head.process == explanation->process && head.thread < dictionary->thread_count)
			last[head.thread] = i;
	}
	return last;
}

/* A call that never returned is among the last ones of its thread. */
static int under_way_find(struct explanation *explanation, struct trace_cursor *cursor, struct diag *diag)
{
	const struct trace_dictionary *dictionary = explanation->source->table->dictionary;
	struct trace_block block;
	int error = 0;
	if (!dictionary->in_flight_count)
		return 0;
	uint32_t *last = last_blocks(explanation);
	for (uint32_t i = 0; i < dictionary->thread_count && !error; i++)
		if (last[i] != UINT32_MAX && !(error = trace_cursor_read(cursor, last[i], &block, diag)))
			calls_add(explanation, &block);
	free(last);
	return error;
}

/* ---- earlier faults ---- */

static bool is_known(const struct explanation *explanation, int64_t time_ns, uint32_t thread, uint64_t address)
{
	for (unsigned i = 0; i < explanation->call_count; i++) {
		const struct explain_call *call = &explanation->calls[i];
		if (call->time_ns == time_ns && call->thread == thread && call->address == address)
			return true;
	}
	return false;
}

/* Find the event of a fault. Return 1, 0 if there is none, or a negative errno. */
static int fault_read(const struct explanation *explanation, struct trace_cursor *cursor,
		      const struct heap_fault *fault, struct explain_call *call, struct diag *diag)
{
	const struct trace *trace = explanation->source->trace;
	struct trace_block block;
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		trace_block_head(trace, i, &block);
		if (block.thread != fault->thread || fault->time_ns < block.first_ns || fault->time_ns > block.last_ns)
			continue;
		int error = trace_cursor_read(cursor, i, &block, diag);
		if (error)
			return error;
		for (uint32_t row = 0; row < block.count; row++) {
			explain_call_set(call, &block, row);
			if (call->address == fault->address && call->time_ns == fault->time_ns)
				return !is_annotation(explanation, call->entry);
		}
	}
	return 0;
}

/* The last faults of the process, behind the calls that were under way. */
static int faults_find(struct explanation *explanation, struct trace_cursor *cursor, struct diag *diag)
{
	const struct heap_table *table = explanation->source->table;
	const struct trace_dictionary *dictionary = table->dictionary;
	unsigned read = 0;
	for (uint32_t i = table->fault_count; i-- > 0;) {
		const struct heap_fault *fault = &table->faults[i];
		if (fault->thread >= dictionary->thread_count ||
		    dictionary->threads[fault->thread].process != explanation->process ||
		    is_known(explanation, fault->time_ns, fault->thread, fault->address))
			continue;
		explanation->fault_count++;
		if (explanation->call_count == EXPLAIN_CALLS_MAX || read++ >= FAULTS_READ_MAX)
			continue;
		int got = fault_read(explanation, cursor, fault, &explanation->calls[explanation->call_count], diag);
		if (got < 0)
			return got;
		explanation->call_count += got > 0;
	}
	return 0;
}

/* The last call that got no memory. */
static int memory_find(struct explanation *explanation, bool is_crash, struct diag *diag)
{
	struct explain_call call;
	int found = explanation_memory_find(explanation, is_crash, &call, diag);
	if (found > 0 && explanation->call_count < EXPLAIN_CALLS_MAX)
		explanation->calls[explanation->call_count++] = call;
	return found < 0 ? found : 0;
}

/* ---- what they mean ---- */

static void histories_find(struct explanation *explanation)
{
	struct block_history histories[EXPLAIN_CALLS_MAX];
	for (unsigned i = 0; i < explanation->call_count; i++)
		/* Before all points of the nanosecond: the call has not ended the block yet. */
		histories[i] = (struct block_history){.address = explanation->calls[i].address,
						      .process = explanation->process,
						      .at = {explanation->calls[i].time_ns, 0}};
	block_history_find(histories, explanation->call_count, explanation->source->table);
	for (unsigned i = 0; i < explanation->call_count; i++)
		explanation->calls[i].history = histories[i];
	for (unsigned i = 0; i < explanation->call_count; i++)
		if (explanation->calls[i].address)
			block_history_inherit(&explanation->calls[i].history, explanation->source->table);
}

/* Which fault the address of a free or realloc shows by itself. */
static enum explain_fault fault_of(const struct explain_call *call)
{
	const struct block_history *history = &call->history;
	const struct history_block *last = block_history_last(history);
	if (!call->address)
		return EXPLAIN_NONE;
	if (!last)
		return EXPLAIN_FOREIGN_FREE;
	if (history->live.id == HEAP_NONE)
		return block_history_is_given_back(history) ? EXPLAIN_DOUBLE_FREE : EXPLAIN_FOREIGN_FREE;
	return last->details.address == call->address ? EXPLAIN_NONE : EXPLAIN_INTERIOR_FREE;
}

static bool is_end_seen(const struct history_block *block)
{
	return block->row.end == HEAP_END_FREE || block->row.end == HEAP_END_REALLOC;
}

/* A call that the process survived may have been right: what it freed may come from a function without a hook. */
static enum explain_certainty certainty_of(const struct explanation *explanation, const struct explain_call *call,
					   const struct end_facts *facts)
{
	const struct heap_process *counted = &explanation->source->table->processes[explanation->process];
	if (call->fault == EXPLAIN_FOREIGN_FREE && facts->lacks_blocks)
		return EXPLAIN_UNKNOWN;
	if (!call->is_under_way && (call->fault == EXPLAIN_FOREIGN_FREE || !facts->is_exact))
		return EXPLAIN_UNKNOWN;
	if (!call->is_under_way || !facts->is_crash)
		return EXPLAIN_LIKELY;
	const struct history_block *last = block_history_last(&call->history);
	bool is_sure = facts->is_exact && !explanation->fault_count && counted->unknown_frees <= 1 &&
		       (call->fault != EXPLAIN_DOUBLE_FREE || is_end_seen(last));
	return is_sure ? EXPLAIN_CERTAIN : EXPLAIN_LIKELY;
}

static bool is_new(const struct explanation *explanation, const struct explain_call *call)
{
	const struct trace_dictionary *dictionary = explanation->source->table->dictionary;
	uint32_t function =
		call->entry < dictionary->entry_count ? dictionary->entries[call->entry].function : FUNCTION_COUNT;
	return function == FUNCTION_NEW || function == FUNCTION_NEW_ALIGNED;
}

/* A call that has not returned has its stack only if it frees. The one before it was hardly ever less deep by much. */
static bool is_deep(const struct explanation *explanation, const struct explain_call *call)
{
	enum { DEEP_FRAMES = 500 };
	const struct trace_dictionary *dictionary = explanation->source->table->dictionary;
	uint32_t at = call->stack ? call->stack : call->stack_before, depth = 0;
	if (dictionary->stack_ends[at] == TRACE_STACK_TRUNCATED)
		return true;
	for (; at && depth < DEEP_FRAMES; at = dictionary->nodes[at].parent)
		depth++;
	return depth == DEEP_FRAMES;
}

/* Return whether the end within a call that did nothing wrong itself tells of damaged data. It is the only such call,
   and may neither have thrown for want of memory nor run out of stack. Of a copy of a parent's block nobody knows
   whether it was freed before. */
static bool tells_of_damage(const struct explanation *explanation, const struct explain_call *call,
			    const struct end_facts *facts)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS};
	bool is_signal = false;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		is_signal |= facts->is_crash && facts->signal == signals[i];
	return is_signal && call->is_under_way && !call->history.is_inherited && explanation->under_way_count == 1 &&
	       !is_new(explanation, call) && !is_deep(explanation, call);
}

static void call_judge(const struct explanation *explanation, struct explain_call *call, const struct end_facts *facts)
{
	if (call->fault == EXPLAIN_NO_MEMORY)
		return;
	call->fault = fault_of(call);
	if (call->fault != EXPLAIN_NONE) {
		call->certainty = certainty_of(explanation, call, facts);
	} else if (tells_of_damage(explanation, call, facts)) {
		call->fault = EXPLAIN_DAMAGED_HEAP;
		call->certainty = EXPLAIN_LIKELY;
	}
}

/* Two frees of an address in a row, of which the trace has no block: it was allocated before what is kept. */
static void pair_judge(struct explanation *explanation, struct explain_call *call)
{
	for (unsigned i = 0; i < explanation->call_count; i++) {
		struct explain_call *first = &explanation->calls[i];
		if (first == call || first->address != call->address || first->time_ns >= call->time_ns ||
		    first->is_under_way || call->history.before_count || call->fault != EXPLAIN_FOREIGN_FREE)
			continue;
		call->fault = EXPLAIN_DOUBLE_FREE;
		call->certainty = EXPLAIN_LIKELY;
		first->fault = EXPLAIN_NONE;
		first->is_first_free = true;
	}
}

/* Find the process's own free of the address before the call. Return 1, 0 if there is none, or a negative errno. */
static int earlier_free_find(const struct explanation *explanation, struct trace_cursor *cursor,
			     const struct explain_call *call, struct explain_call *found, struct diag *diag)
{
	const struct trace *trace = explanation->source->trace;
	struct trace_block block;
	int count = 0;
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		trace_block_head(trace, i, &block);
		if (block.process != explanation->process || block.first_ns > call->time_ns)
			continue;
		int error = trace_cursor_read(cursor, i, &block, diag);
		if (error)
			return error;
		for (uint32_t row = 0; row < block.count; row++) {
			struct explain_call one;
			explain_call_set(&one, &block, row);
			if (one.address == call->address && one.time_ns < call->time_ns &&
			    (!count || one.time_ns > found->time_ns)) {
				*found = one;
				count = 1;
			}
		}
	}
	return count;
}

/* A forked process has its parent's blocks. The trace does not say which of these copies it has freed, but has the
   frees. */
static int inherited_judge(struct explanation *explanation, struct trace_cursor *cursor, const struct end_facts *facts,
			   struct diag *diag)
{
	unsigned count = explanation->call_count;
	for (unsigned i = 0; i < count && explanation->call_count < EXPLAIN_CALLS_MAX; i++) {
		struct explain_call *call = &explanation->calls[i], first;
		if (!call->is_under_way || !call->address || call->fault || !call->history.is_inherited)
			continue;
		int got = earlier_free_find(explanation, cursor, call, &first, diag);
		if (got < 0)
			return got;
		if (!got || is_known(explanation, first.time_ns, first.thread, first.address))
			continue;
		call->fault = EXPLAIN_DOUBLE_FREE;
		call->certainty = facts->is_exact && facts->is_crash ? EXPLAIN_CERTAIN : EXPLAIN_LIKELY;
		first.is_first_free = true;
		explanation->calls[explanation->call_count++] = first;
	}
	return 0;
}

/* Return the place of the call among those that are equally sure: one that was wrong itself explains more than one that
   found damage, and that one more than a call before it that got no memory. */
static int rank_of(const struct explain_call *call)
{
	return call->fault == EXPLAIN_NO_MEMORY ? 2 : call->fault == EXPLAIN_DAMAGED_HEAP;
}

/* Of calls with equal ranks the first one explains more. */
static int calls_compare(const void *one, const void *other)
{
	const struct explain_call *a = one, *b = other;
	if (!a->fault != !b->fault)
		return a->fault ? -1 : 1;
	if (a->certainty != b->certainty)
		return a->certainty > b->certainty ? -1 : 1;
	if (rank_of(a) != rank_of(b))
		return rank_of(a) - rank_of(b);
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* Earlier faults of which nothing is known are counted only. */
static void calls_settle(struct explanation *explanation)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < explanation->call_count; i++)
		if (explanation->calls[i].is_under_way || explanation->calls[i].is_first_free ||
		    explanation->calls[i].certainty != EXPLAIN_UNKNOWN)
			explanation->calls[kept++] = explanation->calls[i];
	explanation->call_count = kept;
	if (kept)
		qsort(explanation->calls, kept, sizeof(*explanation->calls), calls_compare);
}

/* A core tells the signal also of a process that was no child of the logger. */
static int32_t signal_of(const struct explanation *explanation, const struct trace_process *process)
{
	if (explanation->question.core)
		return corefile_facts(explanation->question.core)->signal;
	return process->end == TRACE_END_SIGNAL ? process->end_status : 0;
}

static struct end_facts facts_of(const struct explanation *explanation)
{
	const struct heap_table *table = explanation->source->table;
	int32_t signal = signal_of(explanation, &table->dictionary->processes[explanation->process]);
	bool lacks_blocks = table->sample_bytes || table->dictionary->dropped_events || heap_is_folded(table) ||
			    losses_has_option(table->dictionary, TRACE_OPTION_EARLIER_MISSING);
	return (struct end_facts){.is_exact = losses_is_complete(table->dictionary) && !lacks_blocks,
				  .lacks_blocks = lacks_blocks,
				  .is_crash = explain_is_crash(signal),
				  .signal = signal};
}

static int calls_judge(struct explanation *explanation, struct trace_cursor *cursor, const struct end_facts *facts,
		       struct diag *diag)
{
	for (unsigned i = 0; i < explanation->call_count; i++)
		call_judge(explanation, &explanation->calls[i], facts);
	for (unsigned i = 0; i < explanation->call_count; i++)
		pair_judge(explanation, &explanation->calls[i]);
	return inherited_judge(explanation, cursor, facts, diag);
}

int explanation_end_find(struct explanation *explanation, struct diag *diag)
{
	struct trace_cursor *cursor = trace_cursor_new(explanation->source->trace);
	const struct end_facts facts = facts_of(explanation);
	if (!cursor)
		return diag_fail(diag, ENOMEM, "out of memory");
	explanation->call_count = 0;
	explanation->under_way_count = explanation->fault_count = 0;
	int error = under_way_find(explanation, cursor, diag);
	error = error ? error : memory_find(explanation, facts.is_crash, diag);
	error = error ? error : faults_find(explanation, cursor, diag);
	if (!error) {
		histories_find(explanation);
		error = calls_judge(explanation, cursor, &facts, diag);
	}
	trace_cursor_free(cursor);
	if (error)
		return error;
	explanation->is_exact = facts.is_exact;
	calls_settle(explanation);
	return 0;
}

const struct explain_call *explanation_call(const struct explanation *explanation)
{
	return explanation->call_count && explanation->calls[0].fault ? &explanation->calls[0] : NULL;
}
