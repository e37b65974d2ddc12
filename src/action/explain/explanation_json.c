/* SPDX-License-Identifier: MIT */
/* An explanation as JSON: docs/schema/explain.json. */
#include "action/actions/stacks.h"
#include "action/explain/abort_message.h"
#include "action/explain/explanation.h"
#include "action/report/ends.h"
#include "action/report/losses.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

static const struct trace_dictionary *dictionary_of(const struct explanation *explanation)
{
	return explanation->source->table->dictionary;
}

static void put_process(struct json *json, const struct explanation *explanation)
{
	const struct trace_process *process = &dictionary_of(explanation)->processes[explanation->process];
	json_count(json, "process", explanation->process);
	if (process->pid)
		json_count(json, "pid", process->pid);
	json_known_text(json, "command", process->command);
}

static void put_thread(struct json *json, const struct explanation *explanation, uint32_t thread)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	if (thread >= dictionary->thread_count || dictionary->threads[thread].tid == TRACE_TID_NONE)
		return;
	json_count(json, "thread", thread);
	json_count(json, "tid", dictionary->threads[thread].tid);
}

static void put_stack(struct json *json, const struct explanation *explanation, const struct heap_site *site)
{
	action_stack_json(explanation->input, heap_names_site(explanation->source->names, site), json);
}

static void put_site(struct json *json, const struct explanation *explanation, uint32_t site)
{
	if (site < explanation->source->table->site_count)
		put_stack(json, explanation, &explanation->source->table->sites[site]);
}

static void put_position(struct json *json, const struct explanation *explanation, int64_t time_ns, uint32_t point)
{
	const struct position position = {time_ns, heap_table_step(explanation->source->table, point)};
	json_time(json, "at_us", time_ns);
	if (position.step)
		json_text(json, "position", position_text(position).data);
}

/* ---- blocks ---- */

static void put_block(struct json *json, const struct explanation *explanation, const char *key,
		      const struct history_block *block)
{
	if (block->id == HEAP_NONE)
		return;
	json_begin_object(json, key);
	json_count(json, "id", block->id);
	json_address(json, "address", block->details.address);
	json_count(json, "size", block->row.size_bytes);
	if (block->details.slack_bytes != HEAP_SLACK_UNKNOWN)
		json_count(json, "usable", history_usable(block));
	if (block->row.heap < dictionary_of(explanation)->heap_count)
		json_text(json, "heap", dictionary_of(explanation)->heaps[block->row.heap].name);
	json_bool(json, "nested", block->row.flags & HEAP_NESTED);
	if (block->row.flags & HEAP_REALLOC && block->details.previous != HEAP_NONE)
		json_count(json, "previous_id", block->details.previous);
	if (!(block->row.flags & HEAP_EARLIER)) {
		json_begin_object(json, "allocated");
		put_position(json, explanation, block->row.birth_ns, block->details.birth_point);
		put_thread(json, explanation, block->row.thread);
		put_site(json, explanation, block->row.site);
		json_end_object(json);
	}
	json_text(json, "end", heap_end_words[block->row.end]);
	if (heap_end_is_given_back(block->row.end)) {
		json_begin_object(json, "ended");
		put_position(json, explanation, block->row.end_ns, block->details.end_point);
		put_thread(json, explanation, block->details.end_thread);
		put_site(json, explanation, block->row.end_site);
		json_end_object(json);
	}
	json_end_object(json);
}

static void put_chain(struct json *json, const struct explanation *explanation, const char *key,
		      const struct history_chain *chain)
{
	json_begin_object(json, key);
	json_count(json, "count", chain->count);
	json_begin_array(json, "blocks");
	for (unsigned i = 0; i < chain->step_count; i++)
		put_block(json, explanation, NULL, &chain->steps[i]);
	json_end_array(json);
	json_end_object(json);
}

static const char *state_word(const struct block_history *history)
{
	const struct history_block *last = block_history_last(history);
	return history->live.id != HEAP_NONE ? "live" : !last ? "not_yet" : "freed";
}

/* The blocks at an address, as keys of the open object. */
static void put_history(struct json *json, const struct explanation *explanation, const struct block_history *history)
{
	const struct history_block *last = block_history_last(history);
	json_text(json, "state", state_word(history));
	if (history->is_inherited)
		json_count(json, "inherited_from", history->process);
	if (last) {
		json_count(json, "offset", history->address - last->details.address);
		put_block(json, explanation, "block", last);
	}
	json_count(json, "before_count", history->before_count);
	json_begin_array(json, "before");
	for (unsigned i = 0; i < block_history_kept(history); i++)
		if (block_history_before(history, i)->id != last->id)
			put_block(json, explanation, NULL, block_history_before(history, i));
	json_end_array(json);
	json_count(json, "after_count", history->after_count);
	json_begin_array(json, "after");
	for (unsigned i = 0; i < HISTORY_AFTER_MAX && i < history->after_count; i++)
		put_block(json, explanation, NULL, &history->after[i]);
	json_end_array(json);
	put_block(json, explanation, "below", &history->below);
	put_block(json, explanation, "above", &history->above);
}

/* ---- both kinds of answers ---- */

static void put_address(struct json *json, const struct explanation *explanation)
{
	const struct block_history *history = &explanation->history;
	json_address(json, "address", history->address);
	if (!history->is_end)
		json_time(json, "at_us", history->at.time_ns);
	put_history(json, explanation, history);
	put_chain(json, explanation, "realloc_of", &explanation->earlier);
	put_chain(json, explanation, "realloc_to", &explanation->later);
}

static void put_call(struct json *json, const struct explanation *explanation, const struct explain_call *call)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	const struct heap_site site = {call->stack, call->entry};
	json_begin_object(json, NULL);
	json_text(json, "fault", explain_fault_keys[call->fault]);
	if (call->fault)
		json_text(json, "certainty", explain_certainty_words[call->certainty]);
	json_bool(json, "under_way", call->is_under_way);
	if (call->is_first_free)
		json_bool(json, "freed_again", true);
	if (call->entry < dictionary->entry_count)
		json_text(json, "function", dictionary->entries[call->entry].name);
	json_time(json, "at_us", call->time_ns);
	put_thread(json, explanation, call->thread);
	if (call->kind != EVENT_FREE)
		json_count(json, "size", call->size_bytes);
	put_stack(json, explanation, &site);
	if (call->address) {
		json_address(json, "address", call->address);
		if (call->history.before_count + call->history.after_count)
			put_history(json, explanation, &call->history);
	}
	json_end_object(json);
}

static void put_pointer(struct json *json, const struct explanation *explanation, const struct explain_pointer *pointer)
{
	const struct history_block *last = block_history_last(&pointer->history);
	json_begin_object(json, NULL);
	if (pointer->place < CORE_REGISTER_COUNT)
		json_text(json, "register", core_register_names[pointer->place]);
	else
		json_count(json, "stack_offset", (pointer->place - CORE_REGISTER_COUNT) * sizeof(uint64_t));
	json_address(json, "value", pointer->value);
	json_text(json, "state", state_word(&pointer->history));
	json_count(json, "offset", pointer->value - last->details.address);
	put_block(json, explanation, "block", last);
	json_end_object(json);
}

static void put_frame(struct json *json, const struct explain_frame *frame)
{
	const struct symbol_frame *function = &frame->function;
	json_begin_object(json, NULL);
	if (frame->image) {
		json_text(json, "image", text_file_name(frame->image->path));
		json_known_text(json, "symbol", function->function);
		json_known_text(json, "file", function->file);
		if (function->line)
			json_count(json, "line", function->line);
		if (function->inlined)
			json_bool(json, "inlined", true);
	}
	json_address(json, "offset", frame->image ? frame->offset : frame->pc);
	json_end_object(json);
}

static void put_core(struct json *json, const struct explanation *explanation)
{
	const struct explain_core *core = &explanation->core;
	json_begin_object(json, "core");
	json_text(json, "path", explanation->question.core_path);
	json_number(json, "signal", core->facts->signal);
	json_count(json, "tid", core->facts->tid);
	if (core->facts->has_address)
		json_address(json, "address", core->facts->address);
	if (*core->message)
		json_text(json, "message", core->message);
	if (core->meaning)
		json_text(json, "message_meaning", core->meaning->words);
	if (core->damage.kind != EXPLAIN_INTACT) {
		json_begin_object(json, "damage");
		json_text(json, "kind", explain_damage_keys[core->damage.kind]);
		json_text(json, "certainty", explain_certainty_words[EXPLAIN_LIKELY]);
		json_address(json, "address", core->damage.address);
		if (core->damage.kind != EXPLAIN_FREED)
			json_address(json, "word", core->damage.word);
		json_count(json, "more_count", core->damage.more_count);
		put_block(json, explanation, "block", &core->damage.block);
		json_end_object(json);
	}
	if (core->has_use) {
		json_begin_object(json, core->is_beyond ? "use_beyond" : "use_after_free");
		json_text(json, "certainty", explain_certainty_words[core->certainty]);
		json_address(json, "used", core->used);
		if (!core->is_beyond) {
			json_bool(json, "inside", core->is_inside);
			json_address(json, "address", core->owner.address);
		}
		put_block(json, explanation, "block", block_history_last(&core->owner));
		if (core->owner.live.id != HEAP_NONE && !core->is_beyond)
			put_block(json, explanation, "earlier_block",
				  block_history_before(&core->owner, block_history_kept(&core->owner) - 2));
		json_end_object(json);
	}
	json_begin_array(json, "stack");
	for (unsigned i = 0; i < core->frame_count; i++)
		put_frame(json, &core->frames[i]);
	json_end_array(json);
	json_begin_array(json, "pointers");
	for (unsigned i = 0; i < core->pointer_count; i++)
		put_pointer(json, explanation, &core->pointers[i]);
	json_end_array(json);
	json_end_object(json);
}

static void put_end(struct json *json, const struct explanation *explanation)
{
	const struct trace_process *process = &dictionary_of(explanation)->processes[explanation->process];
	ends_json(json, dictionary_of(explanation), explanation->process);
	if (trace_process_end_is_known(process))
		json_time(json, "end_us", process->end_ns);
	json_count(json, "under_way_count", explanation->under_way_count);
	json_count(json, "earlier_faults", explanation->fault_count);
	json_count(json, "other_ends", explanation->other_count);
	if (explanation->core.facts)
		put_core(json, explanation);
	json_begin_array(json, "calls");
	for (unsigned i = 0; i < explanation->call_count; i++)
		put_call(json, explanation, &explanation->calls[i]);
	json_end_array(json);
}

void explanation_json(const struct explanation *explanation, struct sink *out)
{
	struct json json = {.out = out, .line_depth = 2};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", explanation->source->path);
	json_bool(&json, "complete", losses_is_complete(dictionary_of(explanation)));
	put_process(&json, explanation);
	json_begin_object(&json, explanation->question.has_address ? "of_address" : "of_end");
	(explanation->question.has_address ? put_address : put_end)(&json, explanation);
	json_end_object(&json);
	json_end_object(&json);
	json_end(&json);
}
