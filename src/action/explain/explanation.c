/* SPDX-License-Identifier: MIT */
#include "action/explain/explanation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "action/explain/explanation_core.h"
#include "action/explain/explanation_end.h"
#include "action/explain/explanation_memory.h"
#include "base/memory.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

#define X(id, word, words) [EXPLAIN_##id] = word,
const char *const explain_fault_keys[] = {EXPLAIN_FAULTS(X)};
#undef X
#define X(id, word, words) [EXPLAIN_##id] = words,
const char *const explain_fault_words[] = {EXPLAIN_FAULTS(X)};
#undef X
#define X(id, word, words) [EXPLAIN_##id] = word,
const char *const explain_damage_keys[] = {EXPLAIN_DAMAGES(X)};
#undef X
#define X(id, word, words) [EXPLAIN_##id] = words,
const char *const explain_damage_words[] = {EXPLAIN_DAMAGES(X)};
#undef X
#define X(id, word) [EXPLAIN_##id] = word,
const char *const explain_certainty_words[] = {EXPLAIN_CERTAINTIES(X)};
#undef X

static const struct trace_dictionary *dictionary_of(const struct explanation *explanation)
{
	return explanation->source->table->dictionary;
}

/* ---- an address ---- */

/* The last process with the pid that recorded anything. */
static int pid_find(struct explanation *explanation, struct diag *diag)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	for (uint32_t i = dictionary->process_count; i-- > 0;)
		if (dictionary->processes[i].pid == explanation->question.pid &&
		    !trace_process_is_untraced(&dictionary->processes[i])) {
			explanation->process = i;
			return 0;
		}
	return diag_fail(diag, EINVAL, "%s has no calls of a process %" PRIu32, explanation->source->path,
			 explanation->question.pid);
}

/* Names a few of the processes whose blocks have been at the address. */
static int refuse_several(const struct explanation *explanation, const uint64_t *counts, struct diag *diag)
{
	enum { NAMED_MAX = 5 };
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	char names[200] = "";
	size_t length = 0, named = 0, more = 0;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		if (!counts[i])
			continue;
		if (named++ < NAMED_MAX)
			length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", length ? ", " : "",
						   text_pid(dictionary->processes[i].pid).data);
		else
			more++;
	}
	if (more)
		snprintf(names + length, sizeof(names) - length, " and %zu more", more);
	return diag_fail(diag, EINVAL,
			 "0x%" PRIx64 ": several processes have had a block there; choose one by -pid: %s",
			 explanation->question.address, names);
}

/* The one process that has had blocks at the address; if there is none, the first that recorded anything. */
static int process_find(struct explanation *explanation, struct diag *diag)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	uint64_t *counts = memory_zeroed(dictionary->process_count, sizeof(*counts));
	uint32_t found = 0, recorded = HEAP_NONE;
	block_history_count(counts, explanation->source->table, explanation->question.address);
	for (uint32_t i = dictionary->process_count; i-- > 0;) {
		found += counts[i] != 0;
		explanation->process = counts[i] ? i : explanation->process;
		recorded = trace_process_is_untraced(&dictionary->processes[i]) ? recorded : i;
	}
	int error = found > 1 ? refuse_several(explanation, counts, diag) : 0;
	free(counts);
	if (!found)
		explanation->process = recorded;
	return error;
}

/* There is no answer: say what is there instead. */
static int refuse_unknown(const struct explanation *explanation, struct diag *diag)
{
	const struct block_history *history = &explanation->history;
	const uint64_t address = explanation->question.address;
	const struct history_block *below = &history->below;
	if (below->id == HEAP_NONE)
		return diag_fail(diag, ENOENT, "0x%" PRIx64 ": no block of process %s has ever been there", address,
				 text_pid(dictionary_of(explanation)->processes[history->process].pid).data);
	uint64_t end = below->details.address + history_usable(below);
	return diag_fail(diag, ENOENT,
			 "0x%" PRIx64 ": no block of process %s has ever been there; the nearest live one below is "
			 "0x%" PRIx64 ", %s, which ends %s before",
			 address, text_pid(dictionary_of(explanation)->processes[history->process].pid).data,
			 below->details.address, text_bytes(below->row.size_bytes).data,
			 text_bytes(address - end).data);
}

static int address_explain(struct explanation *explanation, struct diag *diag)
{
	const struct explain_question *question = &explanation->question;
	struct block_history *history = &explanation->history;
	int error = question->core  ? explanation_core_match(explanation, diag)
		    : question->pid ? pid_find(explanation, diag)
				    : process_find(explanation, diag);
	if (error)
		return error;
	if (explanation->process == HEAP_NONE)
		return diag_fail(diag, ENOENT, "%s has no heap calls", explanation->source->path);
	*history = (struct block_history){.address = question->address,
					  .process = explanation->process,
					  .is_end = !question->at,
					  .at = question->at ? *question->at : (struct position){0, 0}};
	block_history_find(history, 1, explanation->source->table);
	block_history_inherit(history, explanation->source->table);
	if (!history->before_count && !history->after_count)
		return refuse_unknown(explanation, diag);
	const struct history_block *block = block_history_last(history);
	if (block)
		block_history_chains(&explanation->earlier, &explanation->later, explanation->source->table, block);
	return 0;
}

/* ---- an end ---- */

/* Return the first process that a signal ended, one that the program's own fault raised if there is any; count the
   others. */
static uint32_t signalled_find(struct explanation *explanation)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	uint32_t found = HEAP_NONE;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		if (process->end != TRACE_END_SIGNAL)
			continue;
		explanation->other_count += found != HEAP_NONE;
		bool is_better = found == HEAP_NONE || (explain_is_crash(process->end_status) &&
							!explain_is_crash(dictionary->processes[found].end_status));
		found = is_better ? i : found;
	}
	return found;
}

/* Of processes that were not the logger's children nobody may know how they ended. */
static bool may_have_crashed(const struct explanation *explanation, uint32_t process)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	return dictionary->in_flight_count && dictionary->processes[process].end == TRACE_END_UNKNOWN;
}

static bool has_survived(const struct explanation *explanation, uint32_t process)
{
	return explanation->source->table->processes[process].unknown_frees > 0;
}

/* Find the first process, among those that are worth a look, that ended in a heap call, made a wrong one, or got no
   memory. */
static int wrong_find(struct explanation *explanation,
		      bool (*is_worth)(const struct explanation *explanation, uint32_t process), struct diag *diag)
{
	enum { TRIED_MAX = 64 };
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	unsigned tried = 0;
	for (uint32_t i = 0; i < dictionary->process_count && tried < TRIED_MAX; i++) {
		if (trace_process_is_untraced(&dictionary->processes[i]) || !is_worth(explanation, i))
			continue;
		explanation->process = i;
		int error = explanation_end_find(explanation, diag);
		/* Threads may be in heap calls when a process exits. */
		bool is_in_call = explanation->under_way_count && is_worth != explanation_may_lack_memory;
		if (error || is_in_call || explanation_call(explanation))
			return error;
		tried++;
	}
	explanation->process = HEAP_NONE;
	return 0;
}

static int end_explain(struct explanation *explanation, struct diag *diag)
{
	const struct trace_process *processes = dictionary_of(explanation)->processes;
	int error = 0;
	if (explanation->question.pid) {
		error = pid_find(explanation, diag);
		return error ? error : explanation_end_find(explanation, diag);
	}
	if (explanation->question.core) {
		error = explanation_core_match(explanation, diag);
		error = error ? error : explanation_end_find(explanation, diag);
		if (!error)
			explanation_core_find(explanation);
		return error;
	}
	uint32_t signalled = signalled_find(explanation);
	if (signalled == HEAP_NONE || !explain_is_crash(processes[signalled].end_status))
		error = wrong_find(explanation, may_have_crashed, diag);
	if (!error && explanation->process == HEAP_NONE && signalled == HEAP_NONE)
		error = wrong_find(explanation, explanation_may_lack_memory, diag);
	if (!error && explanation->process == HEAP_NONE && signalled == HEAP_NONE)
		error = wrong_find(explanation, has_survived, diag);
	if (error || explanation->process != HEAP_NONE)
		return error;
	if (signalled == HEAP_NONE)
		return diag_fail(
			diag, ENOENT,
			"no process of %s is known to have ended by a signal or in a heap call, to have failed for "
			"want of memory, or to have freed what was not live: write an ADDRESS to explain",
			explanation->source->path);
	explanation->process = signalled;
	return explanation_end_find(explanation, diag);
}

void explanation_fini(struct explanation *explanation)
{
	free(explanation->core.pointers);
	explanation->core = (struct explain_core){.facts = NULL};
}

int explanation_make(struct explanation *explanation, struct action_input *input,
		     const struct explain_question *question, struct diag *diag)
{
	*explanation = (struct explanation){
		.input = input, .source = &input->sources[0], .question = *question, .process = HEAP_NONE};
	return question->has_address ? address_explain(explanation, diag) : end_explain(explanation, diag);
}
