/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "action/explain/abort_message.h"
#include "action/explain/explanation.h"
#include "action/explain/explanation_end.h"
#include "action/explain/explanation_memory.h"
#include "action/report/ends.h"
#include "action/report/losses.h"
#include "action/report/stack_view.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

static const struct trace_dictionary *dictionary_of(const struct explanation *explanation)
{
	return explanation->source->table->dictionary;
}

static struct heap_site site_of(const struct explanation *explanation, uint32_t site)
{
	const struct heap_table *table = explanation->source->table;
	return site < table->site_count ? table->sites[site] : (struct heap_site){0, HEAP_NONE};
}

/* ---- pieces of lines ---- */

static void put_thread(const struct explanation *explanation, uint32_t thread, struct sink *out)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	if (thread >= dictionary->thread_count || dictionary->threads[thread].tid == TRACE_TID_NONE)
		return;
	sink_format(out, " by thread %" PRIu32, dictionary->threads[thread].tid);
	if (*dictionary->threads[thread].name)
		sink_format(out, " (%s)", text_shown(dictionary->threads[thread].name));
}

static void put_stack(const struct explanation *explanation, struct heap_site site, struct sink *out)
{
	enum { INDENT = 4 };
	const struct stack_view view = {.input = explanation->input, .indent = INDENT, .has_places = true};
	stack_view_print(&view, heap_names_site(explanation->source->names, &site), out);
}

/* The first function of the user's code, and where it is. The caller frees it. */
static char *function_text(const struct explanation *explanation, uint32_t site)
{
	const struct heap_site own = site_of(explanation, site);
	struct heap_names *names = explanation->source->names;
	uint32_t node = heap_names_site(names, &own);
	if (!node)
		return action_copy("[no stack]");
	node = stack_view_user_node(explanation->input, node);
	return action_label(explanation->input, heap_names_name(names, heap_names_frame(names, node)->name));
}

static void put_function(const struct explanation *explanation, const char *before, uint32_t site, struct sink *out)
{
	if (site == HEAP_NONE)
		return;
	char *text = function_text(explanation, site);
	sink_format(out, "%s%s", before, text_shown(text));
	free(text);
}

static void put_position(const struct explanation *explanation, int64_t time_ns, uint32_t point, struct sink *out)
{
	const struct position position = {time_ns, heap_table_step(explanation->source->table, point)};
	sink_format(out, " at %s", text_duration(time_ns).data);
	if (position.step)
		sink_format(out, " (%s)", position_text(position).data);
}

static void put_process(const struct explanation *explanation, struct sink *out)
{
	const struct trace_process *process = &dictionary_of(explanation)->processes[explanation->process];
	sink_format(out, "process %s (%s)", text_pid(process->pid).data, text_shown(process->command));
}

/* ---- a block ---- */

static const char *end_word(const struct history_block *block)
{
	static const char *const words[HEAP_END_COUNT] = {
		[HEAP_END_FREE] = "freed",
		[HEAP_END_REALLOC] = "reallocated",
		[HEAP_END_DESTROY] = "ended with its heap",
		[HEAP_END_GAP] = "ended in a gap of the recording",
		[HEAP_END_CONFLICT] = "ended, and no event says how",
		[HEAP_END_EXIT] = "live when the process ended",
		[HEAP_END_OPEN] = "live at the end of the trace",
	};
	return words[block->row.end];
}

static bool has_previous(const struct history_block *block)
{
	return block->row.flags & HEAP_REALLOC;
}

static void put_birth(const struct explanation *explanation, const struct history_block *block, struct sink *out)
{
	if (block->row.flags & HEAP_EARLIER) {
		sink_text(out, "  allocated before the recording\n");
		return;
	}
	sink_format(out, "  %s", has_previous(block) ? "made by realloc" : "allocated");
	put_position(explanation, block->row.birth_ns, block->details.birth_point, out);
	put_thread(explanation, block->row.thread, out);
	sink_put(out, '\n');
	put_stack(explanation, site_of(explanation, block->row.site), out);
}

static void put_end(const struct explanation *explanation, const struct history_block *block, struct sink *out)
{
	sink_format(out, "  %s", end_word(block));
	if (!heap_end_is_given_back(block->row.end)) {
		sink_put(out, '\n');
		return;
	}
	put_position(explanation, block->row.end_ns, block->details.end_point, out);
	put_thread(explanation, block->details.end_thread, out);
	if (!(block->row.flags & HEAP_EARLIER))
		sink_format(out, ", after %s", text_duration(heap_lifetime_ns(&block->row)).data);
	sink_put(out, '\n');
	if (block->row.end_site != HEAP_NONE)
		put_stack(explanation, site_of(explanation, block->row.end_site), out);
}

/* with_end: the block's end is not what a call that is shown apart did. */
static void put_block(const struct explanation *explanation, const struct history_block *block, bool with_end,
		      struct sink *out)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	sink_format(out, "\nThe block 0x%" PRIx64 ", %s byte%s", block->details.address,
		    text_count(block->row.size_bytes).data, text_plural(block->row.size_bytes));
	if (block->details.slack_bytes != HEAP_SLACK_UNKNOWN)
		sink_format(out, " (%s usable)", text_count(history_usable(block)).data);
	if (block->row.heap < dictionary->heap_count)
		sink_format(out, ", in %s", text_shown(dictionary->heaps[block->row.heap].name));
	sink_text(out, block->row.flags & HEAP_NESTED ? ", inside another block\n" : "\n");
	put_birth(explanation, block, out);
	if (with_end)
		put_end(explanation, block, out);
}

/* ---- lists ---- */

/* One line: when it began, how long it lived, who made and ended it. */
static void put_row(const struct explanation *explanation, const struct history_block *block, struct sink *out)
{
	const char *born = block->row.flags & HEAP_EARLIER ? "before" : text_duration(block->row.birth_ns).data;
	sink_format(out, "  %10s  0x%012" PRIx64 "  %10s", born, block->details.address,
		    text_bytes(block->row.size_bytes).data);
	sink_format(out, "  %10s  ", text_duration(heap_lifetime_ns(&block->row)).data);
	put_function(explanation, "", block->row.site, out);
	if (heap_end_is_given_back(block->row.end))
		put_function(explanation, "; ended by ", block->row.end_site, out);
	sink_put(out, '\n');
}

static void put_title(const char *title, uint64_t count, uint64_t shown, struct sink *out)
{
	sink_format(out, "\n%s: %s", title, text_count(count).data);
	sink_format(out, shown < count ? ", %s of them shown\n" : "\n", text_count(shown).data);
	sink_text(out, "       begun         address        size       lived  function\n");
}

static void put_history(const struct explanation *explanation, const struct block_history *history, struct sink *out)
{
	const struct history_block *last = block_history_last(history);
	unsigned kept = block_history_kept(history), after = HISTORY_AFTER_MAX;
	after = history->after_count < after ? (unsigned)history->after_count : after;
	if (history->before_count > 1) {
		put_title("Other blocks there before", history->before_count - 1, kept - 1, out);
		for (unsigned i = 0; i < kept; i++)
			if (!last || block_history_before(history, i)->id != last->id)
				put_row(explanation, block_history_before(history, i), out);
	}
	if (after)
		put_title("Blocks there later", history->after_count, after, out);
	for (unsigned i = 0; i < after; i++)
		put_row(explanation, &history->after[i], out);
}

static void put_chain(const struct explanation *explanation, const char *title, const struct history_chain *chain,
		      struct sink *out)
{
	if (chain->count)
		put_title(title, chain->count, chain->step_count, out);
	for (unsigned i = 0; i < chain->step_count; i++)
		put_row(explanation, &chain->steps[i], out);
}

static void put_neighbour(const struct explanation *explanation, const struct history_block *block, const char *where,
			  uint64_t between, struct sink *out)
{
	if (block->id == HEAP_NONE)
		return;
	sink_format(out, "  %s  0x%012" PRIx64 "  %10s, %s byte%s between; ", where, block->details.address,
		    text_bytes(block->row.size_bytes).data, text_count(between).data, text_plural(between));
	put_function(explanation, "", block->row.site, out);
	sink_put(out, '\n');
}

/* The distances are those from the block, or else from the address. */
static void put_neighbours(const struct explanation *explanation, const struct block_history *history, struct sink *out)
{
	const struct history_block *live = &history->live, *below = &history->below, *above = &history->above;
	uint64_t first = history->address, end = history->address;
	if (live->id != HEAP_NONE) {
		first = live->details.address;
		end = first + history_usable(live);
	}
	uint64_t below_end = below->details.address + history_usable(below);
	if (below->id == HEAP_NONE && above->id == HEAP_NONE)
		return;
	sink_text(out, "\nLive blocks beside it\n");
	put_neighbour(explanation, below, "below", first > below_end ? first - below_end : 0, out);
	put_neighbour(explanation, above, "above", above->details.address > end ? above->details.address - end : 0,
		      out);
}

/* ---- an address ---- */

static void put_place(const struct history_block *block, uint64_t address, struct sink *out)
{
	uint64_t offset = address - block->details.address;
	if (offset < block->row.size_bytes || !block->row.size_bytes)
		sink_format(out, "byte %s of a block of %s", text_count(offset).data,
			    text_bytes(block->row.size_bytes).data);
	else
		sink_format(out, "behind the %s that were asked for, in the usable rest of a block",
			    text_bytes(block->row.size_bytes).data);
}

static void put_state(const struct explanation *explanation, struct sink *out)
{
	const struct block_history *history = &explanation->history;
	const struct history_block *last = block_history_last(history);
	if (!last) {
		sink_text(out, "  in no block yet\n");
		return;
	}
	bool is_live = history->live.id != HEAP_NONE;
	sink_text(out, is_live ? "  live: " : "  in no live block: ");
	put_place(last, history->address, out);
	if (!is_live)
		sink_format(out, ", %s", end_word(last));
	if (!is_live && !history->is_end && history->at.time_ns > last->row.end_ns)
		sink_format(out, " %s before", text_duration(history->at.time_ns - last->row.end_ns).data);
	sink_put(out, '\n');
}

static void address_text(const struct explanation *explanation, struct sink *out)
{
	const struct block_history *history = &explanation->history;
	const struct history_block *last = block_history_last(history);
	const struct trace_process *process = &dictionary_of(explanation)->processes[explanation->process];
	sink_format(out, "0x%" PRIx64 " in ", history->address);
	put_process(explanation, out);
	if (history->is_inherited)
		sink_format(out, ", which inherited it from process %s when it was forked\n",
			    text_pid(dictionary_of(explanation)->processes[history->process].pid).data);
	else if (history->is_end)
		sink_text(out, trace_process_end_is_known(process) ? ", at its end\n" : ", at the end of the trace\n");
	else
		sink_format(out, ", at %s\n", text_duration(history->at.time_ns).data);
	put_state(explanation, out);
	if (last)
		put_block(explanation, last, !history->is_inherited, out);
	put_chain(explanation, "Made by realloc of", &explanation->earlier, out);
	put_chain(explanation, "Reallocated to", &explanation->later, out);
	put_history(explanation, history, out);
	put_neighbours(explanation, history, out);
}

/* ---- an end ---- */

static const char *entry_name(const struct explanation *explanation, const struct explain_call *call)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	return call->entry < dictionary->entry_count ? text_shown(dictionary->entries[call->entry].name)
						     : "a heap call";
}

static void put_call_name(const struct explanation *explanation, const struct explain_call *call, struct sink *out)
{
	sink_text(out, entry_name(explanation, call));
	if (call->address && call->kind == EVENT_REALLOC)
		sink_format(out, "(0x%" PRIx64 ", %" PRIu64 ")", call->address, call->size_bytes);
	else if (call->address)
		sink_format(out, "(0x%" PRIx64 ")", call->address);
	else
		sink_format(out, "(%" PRIu64 ")", call->size_bytes);
}

/* In older traces, a realloc that has not returned has no address. */
static const char *fault_words(const struct explain_call *call)
{
	if (call->kind != EVENT_REALLOC)
		return explain_fault_words[call->fault];
	return call->fault == EXPLAIN_DOUBLE_FREE ? "a realloc of a block that had ended"
	       : call->fault == EXPLAIN_DAMAGED_HEAP && !call->address
		       ? "a realloc of what is no live block, or damaged data of the allocator"
		       : explain_fault_words[call->fault];
}

/* What the call did to which block. */
static void put_fault(const struct explanation *explanation, const struct explain_call *call, struct sink *out)
{
	const struct history_block *block = block_history_last(&call->history);
	if (call->fault == EXPLAIN_NO_MEMORY) {
		sink_format(out, "%s: ", explain_certainty_words[call->certainty]);
		explanation_memory_put(explanation, call, out);
		return;
	}
	sink_format(out, "%s: %s, ", explain_certainty_words[call->certainty], fault_words(call));
	put_call_name(explanation, call, out);
	if (!block || call->fault == EXPLAIN_DAMAGED_HEAP)
		return;
	if (call->fault == EXPLAIN_DOUBLE_FREE) {
		sink_format(out, " of a block of %s", text_bytes(block->row.size_bytes).data);
	} else {
		sink_text(out, ": ");
		put_place(block, call->address, out);
	}
	if (call->history.live.id == HEAP_NONE)
		sink_format(out, ", %s %s before", end_word(block),
			    text_duration(call->time_ns - block->row.end_ns).data);
}

void explanation_line(const struct explanation *explanation, struct sink *out)
{
	const struct explain_call *call = explanation_call(explanation);
	if (!call) {
		sink_text(out, "the heap calls show no cause");
		return;
	}
	put_fault(explanation, call, out);
}

static void put_call(const struct explanation *explanation, const struct explain_call *call, struct sink *out)
{
	const struct history_block *block = block_history_last(&call->history);
	const struct heap_site site = {call->stack, call->entry};
	sink_put(out, '\n');
	if (call->is_first_free)
		sink_text(out, "the free before: ");
	(call->fault ? put_fault : put_call_name)(explanation, call, out);
	sink_format(out, "\n  called at %s", text_duration(call->time_ns).data);
	put_thread(explanation, call->thread, out);
	sink_text(out, call->is_under_way ? "; it had not returned when the process ended\n" : "\n");
	put_stack(explanation, site, out);
	if (block && call->fault)
		put_block(explanation, block, call->history.live.id == HEAP_NONE, out);
	if (call->fault == EXPLAIN_DAMAGED_HEAP && call->address)
		put_neighbours(explanation, &call->history, out);
}

/* What can be said without a fault. */
static void put_no_cause(const struct explanation *explanation, const struct trace_process *process, struct sink *out)
{
	if (explanation->under_way_count)
		sink_text(out, "\nThe heap calls that had not returned show no fault.\n");
	else if (process->end == TRACE_END_SIGNAL && explain_is_crash(process->end_status))
		sink_format(out,
			    "\nNo heap call was under way: the heap calls show no cause. Whether the program used "
			    "freed\nmemory is unknown%s.\n",
			    explanation->core.facts
				    ? ""
				    : ": a trace has no registers. A core has: xheap explain CORE -trace FILE");
	else
		sink_text(out, "\nThe heap calls show no cause.\n");
}

/* ---- a core ---- */

static void put_place_of(const struct explanation *explanation, const struct block_history *history, struct sink *out)
{
	const struct history_block *last = block_history_last(history);
	const struct trace_process *process = &dictionary_of(explanation)->processes[explanation->process];
	put_place(last, history->address, out);
	if (history->live.id != HEAP_NONE && history->before_count > 1)
		sink_format(out, ", where %s other%s had been before", text_count(history->before_count - 1).data,
			    text_plural(history->before_count - 1));
	if (history->live.id != HEAP_NONE)
		return;
	sink_format(out, ", %s", end_word(last));
	if (trace_process_end_is_known(process) && heap_end_is_given_back(last->row.end))
		sink_format(out, " %s before the end", text_duration(process->end_ns - last->row.end_ns).data);
}

static void put_pointer(const struct explanation *explanation, const struct explain_pointer *pointer, struct sink *out)
{
	if (pointer->place < CORE_REGISTER_COUNT)
		sink_format(out, "  %-9s", core_register_names[pointer->place]);
	else
		sink_format(out, "  rsp+0x%-3zx", (pointer->place - CORE_REGISTER_COUNT) * sizeof(uint64_t));
	sink_format(out, "  0x%012" PRIx64 "  ", pointer->value);
	put_place_of(explanation, &pointer->history, out);
	sink_put(out, '\n');
}

/* A live block that has the place of a freed one: the pointer may be to either. */
static void put_use_again(const struct explanation *explanation, struct sink *out)
{
	const struct block_history *owner = &explanation->core.owner;
	const struct history_block *earlier = block_history_before(owner, block_history_kept(owner) - 2);
	sink_text(out,
		  "The pointer may be one to the block before, which was freed, or the block has a wrong value.\n");
	put_block(explanation, &owner->live, true, out);
	put_block(explanation, earlier, true, out);
}

static void put_use(const struct explanation *explanation, struct sink *out)
{
	const struct explain_core *core = &explanation->core;
	sink_format(out, "\n%s: %s, ", explain_certainty_words[core->certainty],
		    core->is_beyond ? "a use beyond a block" : "a use of a freed block");
	if (core->is_beyond) {
		const struct history_block *block = &core->owner.live;
		uint64_t behind = core->used - block->details.address - block->row.size_bytes;
		sink_format(out, "0x%" PRIx64 " was used, %s byte%s behind a block of %s\n", core->used,
			    text_count(behind).data, text_plural(behind), text_bytes(block->row.size_bytes).data);
		put_block(explanation, block, true, out);
		return;
	}
	if (core->is_inside)
		sink_format(out, "0x%" PRIx64 " was used, which is ", core->used);
	else
		sink_format(out, "0x%" PRIx64 " was used as an address, and was read from ", core->used);
	put_place_of(explanation, &core->owner, out);
	sink_put(out, '\n');
	if (core->owner.live.id == HEAP_NONE)
		put_block(explanation, block_history_last(&core->owner), true, out);
	else
		put_use_again(explanation, out);
}

static void put_damage(const struct explanation *explanation, const struct explain_damage *damage, struct sink *out)
{
	sink_format(out, "\nlikely: %s, ", explain_damage_words[damage->kind]);
	if (damage->kind == EXPLAIN_FREED)
		sink_format(out, "0x%" PRIx64 ": the thread took it from its cache with the call before\n",
			    damage->address);
	else
		sink_format(out, "0x%" PRIx64 ": the allocator keeps a size there, and it is 0x%" PRIx64 "\n",
			    damage->address, damage->word);
	if (damage->more_count)
		sink_format(out, "  %s more such size%s overwritten\n", text_count(damage->more_count).data,
			    damage->more_count == 1 ? " was" : "s were");
	put_block(explanation, &damage->block, true, out);
}

static void put_message(const struct explain_core *core, struct sink *out)
{
	if (!*core->message)
		return;
	sink_format(out, "  the C library said \"%s\"", text_shown(core->message));
	if (core->meaning)
		sink_format(out, ": %s", core->meaning->words);
	sink_put(out, '\n');
}

static void put_frame(const struct explain_frame *frame, struct sink *out)
{
	if (!frame->image) {
		sink_format(out, "    0x%" PRIx64 "\n", frame->pc);
		return;
	}
	const struct symbol_frame *function = &frame->function;
	sink_format(out, "    %s", text_shown(text_file_name(frame->image->path)));
	if (function->function)
		sink_format(out, "!%s%s", text_shown(function->function), function->inlined ? " [inlined]" : "");
	else
		sink_format(out, "+0x%" PRIx64, frame->offset);
	if (function->file)
		sink_format(out, "  %s:%" PRIu32, text_shown(text_file_name(function->file)), function->line);
	sink_put(out, '\n');
}

/* The stack as far as it fits beside others. */
static void put_frames(const struct explanation *explanation, struct sink *out)
{
	enum { FRAMES_SHOWN = 12 };
	const struct explain_core *core = &explanation->core;
	unsigned count = core->frame_count;
	bool is_cut = count > FRAMES_SHOWN && !explanation->input->layout.has_all_frames;
	if (count)
		sink_format(out, "\nThread %" PRIu32 " was at\n", core->facts->tid);
	for (unsigned i = 0; i < (is_cut ? FRAMES_SHOWN : count); i++)
		put_frame(&core->frames[i], out);
	if (is_cut)
		sink_format(out, "    [%u more frames]\n", count - FRAMES_SHOWN);
}

static void put_core(const struct explanation *explanation, struct sink *out)
{
	const struct explain_core *core = &explanation->core;
	sink_format(out, "  the core: signal %" PRId32 " in thread %" PRIu32, core->facts->signal, core->facts->tid);
	if (core->facts->has_address)
		sink_format(out, ", at address 0x%" PRIx64, core->facts->address);
	sink_put(out, '\n');
	put_message(core, out);
	put_frames(explanation, out);
	if (core->has_use)
		put_use(explanation, out);
	if (core->damage.kind != EXPLAIN_INTACT)
		put_damage(explanation, &core->damage, out);
	if (core->pointer_count)
		sink_text(out, "\nRegisters and words of the stack that point into blocks\n");
	for (unsigned i = 0; i < core->pointer_count; i++)
		put_pointer(explanation, &core->pointers[i], out);
}

static void end_text(const struct explanation *explanation, struct sink *out)
{
	const struct trace_process *process = &dictionary_of(explanation)->processes[explanation->process];
	put_process(explanation, out);
	sink_format(out, " ended: %s", ends_text(process).data);
	if (trace_process_end_is_known(process))
		sink_format(out, " at %s", text_duration(process->end_ns).data);
	sink_put(out, '\n');
	if (explanation->other_count)
		sink_format(out, "  %" PRIu32 " more process%s ended by a signal: -pid chooses one\n",
			    explanation->other_count, explanation->other_count == 1 ? "" : "es");
	if (!losses_is_complete(dictionary_of(explanation)))
		sink_format(out, "  the trace is not complete (%s): nothing is certain\n",
			    losses_missing_text(dictionary_of(explanation)).data);
	if (explanation->core.facts)
		put_core(explanation, out);
	if (!explanation_call(explanation) && !explanation->core.has_use &&
	    explanation->core.damage.kind == EXPLAIN_INTACT)
		put_no_cause(explanation, process, out);
	for (unsigned i = 0; i < explanation->call_count; i++)
		put_call(explanation, &explanation->calls[i], out);
	if (explanation->fault_count)
		sink_format(out, "\n%s earlier call%s freed what the trace has no live block of.\n",
			    text_count(explanation->fault_count).data, text_plural(explanation->fault_count));
}

void explanation_text(const struct explanation *explanation, struct sink *out)
{
	(explanation->question.has_address ? address_text : end_text)(explanation, out);
}
