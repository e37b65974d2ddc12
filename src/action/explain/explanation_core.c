/* SPDX-License-Identifier: MIT */
/*
 * A core has the memory of a process at its end, and the registers. A trace has the blocks. Together they tell a use of
 * a freed block: the address that the program used lies in one; or it is a word that a freed block contains to which a
 * register or a word of the stack points. That is how such programs die as a rule: a pointer is read from memory that
 * the allocator, or the next owner, has written to.
 */
#include "action/explain/explanation_core.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "action/explain/abort_message.h"
#include "action/explain/core_process.h"
#include "action/explain/explanation.h"
#include "action/explain/explanation_damage.h"
#include "action/report/losses.h"
#include "base/memory.h"
#include "base/text.h"
#include "corefile/core_load.h"
#include "corefile/core_message.h"
#include "corefile/core_stack.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum {
	STACK_WORDS = 64, /* that are looked at, from the stack pointer on */
	POINTERS_MAX = CORE_REGISTER_COUNT + STACK_WORDS,
	NEAR_BYTES = 4096,          /* an address that was used lies so near to the register it was made of */
	SMALL_MOST = 1 << 16,       /* no address of a program's own */
	BLOCK_READ_MOST = 64 << 10, /* of a block, that is looked at for words */
	USED_MAX = CORE_REGISTER_COUNT + 2
};

static const struct trace_dictionary *dictionary_of(const struct explanation *explanation)
{
	return explanation->source->table->dictionary;
}

int explanation_core_match(struct explanation *explanation, struct diag *diag)
{
	const struct core_words words = {explanation->question.core_path, explanation->source->path};
	return core_process_find(&explanation->process, dictionary_of(explanation), explanation->question.core, words,
				 diag);
}

/* ---- pointers ---- */

static unsigned values_take(const struct explanation *explanation, struct explain_pointer *pointers)
{
	const struct core_facts *facts = explanation->core.facts;
	uint64_t words[STACK_WORDS];
	unsigned count = 0;
	for (unsigned i = 0; i < CORE_REGISTER_COUNT; i++)
		if (i != CORE_RIP && i != CORE_RSP)
			pointers[count++] = (struct explain_pointer){.value = facts->registers[i], .place = i};
	size_t got = corefile_read(explanation->question.core, facts->registers[CORE_RSP], words, sizeof(words));
	for (unsigned i = 0; i < got / sizeof(*words); i++)
		pointers[count++] = (struct explain_pointer){.value = words[i], .place = CORE_REGISTER_COUNT + i};
	return count;
}

/* Find the histories of all values, and keep those that are, or were, in blocks. */
static void pointers_find(struct explanation *explanation)
{
	struct explain_core *core = &explanation->core;
	core->pointers = memory_zeroed(POINTERS_MAX, sizeof(*core->pointers));
	struct block_history *histories = memory_zeroed(POINTERS_MAX, sizeof(*histories));
	unsigned count = values_take(explanation, core->pointers);
	for (unsigned i = 0; i < count; i++)
		histories[i] = (struct block_history){
			.address = core->pointers[i].value, .process = explanation->process, .is_end = true};
	block_history_find(histories, count, explanation->source->table);
	for (unsigned i = 0; i < count; i++) {
		if (!histories[i].before_count)
			continue;
		core->pointers[core->pointer_count] = core->pointers[i];
		core->pointers[core->pointer_count++].history = histories[i];
	}
	free(histories);
}

/* ---- a use of a freed block ---- */

static bool is_canonical(uint64_t value)
{
	enum { ADDRESS_BITS = 47 };
	return value >> ADDRESS_BITS == 0 || value >> ADDRESS_BITS == UINT64_MAX >> ADDRESS_BITS;
}

/* List the values of which one was used as an address that is none: what the signal tells, registers near it, the place
   that was called. */
static unsigned used_list(const struct corefile *core, uint64_t used[USED_MAX])
{
	const struct core_facts *facts = corefile_facts(core);
	unsigned count = 0;
	if (facts->has_address)
		used[count++] = facts->address;
	if (!corefile_image_at(core, facts->registers[CORE_RIP]))
		used[count++] = facts->registers[CORE_RIP];
	for (unsigned i = 0; i < CORE_REGISTER_COUNT; i++) {
		uint64_t value = facts->registers[i];
		bool is_near = facts->has_address && facts->address - value + NEAR_BYTES < 2 * NEAR_BYTES;
		if (i != CORE_RIP && i != CORE_RSP && (is_near || (!facts->is_canonical && !is_canonical(value))))
			used[count++] = value;
	}
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++)
		if (used[i] > SMALL_MOST && used[i] < UINT64_MAX - SMALL_MOST)
			used[kept++] = used[i];
	return kept;
}

static bool is_freed(const struct block_history *history)
{
	const struct history_block *last = block_history_last(history);
	return history->live.id == HEAP_NONE && last && heap_end_is_given_back(last->row.end);
}

/* The pointer may be one to the block before: then it is not this block's fault. */
static bool is_given_again(const struct block_history *history)
{
	return history->live.id != HEAP_NONE && block_history_kept(history) > 1 &&
	       heap_end_is_given_back(block_history_before(history, block_history_kept(history) - 2)->row.end);
}

static void use_set(struct explanation *explanation, uint64_t used, const struct block_history *owner, bool is_inside)
{
	explanation->core.used = used;
	explanation->core.owner = *owner;
	explanation->core.has_use = true;
	explanation->core.is_inside = is_inside;
	explanation->core.certainty = owner->live.id == HEAP_NONE ? EXPLAIN_LIKELY : EXPLAIN_UNKNOWN;
}

/* Return whether the address itself lies in a freed block, whose memory is not mapped any more. */
static bool use_is_inside(struct explanation *explanation)
{
	const struct core_facts *facts = explanation->core.facts;
	struct block_history history = {.address = facts->address, .process = explanation->process, .is_end = true};
	if (!facts->has_address)
		return false;
	block_history_find(&history, 1, explanation->source->table);
	if (!is_freed(&history))
		return false;
	use_set(explanation, facts->address, &history, true);
	return true;
}

/* Return whether one of the values is a word of the block that the pointer points, or pointed, into. */
static bool use_is_read(struct explanation *explanation, const struct explain_pointer *pointer, const uint64_t *used,
			unsigned used_count)
{
	const struct history_block *block = block_history_last(&pointer->history);
	uint64_t bytes = history_usable(block), address = block->details.address;
	uint64_t words[BLOCK_READ_MOST / sizeof(uint64_t)];
	size_t size = bytes < sizeof(words) ? (size_t)bytes : sizeof(words);
	size = corefile_read(explanation->question.core, address, words, size) / sizeof(*words);
	for (size_t i = 0; i < size; i++)
		for (unsigned j = 0; j < used_count; j++)
			if (words[i] == used[j]) {
				struct block_history owner = pointer->history;
				owner.address = address + i * sizeof(*words);
				use_set(explanation, used[j], &owner, false);
				return true;
			}
	return false;
}

/* Return whether the code tells from which block it loaded the pointer that it then used, which may be any number, also
   0. The block is freed, or has the place of a freed one; or it is neither, and no freed block was used. */
static bool use_is_loaded(struct explanation *explanation)
{
	struct core_load load;
	if (!core_load_find(explanation->question.core, &load))
		return false;
	struct block_history history = {.address = load.from, .process = explanation->process, .is_end = true};
	block_history_find(&history, 1, explanation->source->table);
	if (is_freed(&history) || is_given_again(&history))
		use_set(explanation, load.value, &history, false);
	return history.before_count > 0;
}

/* Return whether the address is the first that is not mapped behind a live block that a register or a word of the stack
   points into, with no other block between them: the program went on beyond its end. */
static bool use_is_beyond(struct explanation *explanation)
{
	const struct explain_core *core = &explanation->core;
	struct block_history history = {
		.address = core->facts->address, .process = explanation->process, .is_end = true};
	if (!core->facts->has_address)
		return false;
	block_history_find(&history, 1, explanation->source->table);
	const struct history_block *below = &history.below;
	if (history.before_count || below->id == HEAP_NONE)
		return false;
	uint64_t end = corefile_end(explanation->question.core, below->details.address);
	if (!end || history.address - end >= NEAR_BYTES)
		return false;
	bool is_pointed_to = false;
	for (unsigned i = 0; i < core->pointer_count; i++)
		is_pointed_to |= core->pointers[i].history.live.id == below->id;
	if (!is_pointed_to)
		return false;
	history.live = *below;
	use_set(explanation, history.address, &history, true);
	explanation->core.is_beyond = true;
	explanation->core.certainty = EXPLAIN_LIKELY;
	return true;
}

static void use_find(struct explanation *explanation)
{
	uint64_t used[USED_MAX];
	const struct core_facts *facts = explanation->core.facts;
	bool is_use = facts->signal == SIGSEGV || facts->signal == SIGBUS || facts->signal == SIGILL;
	if (!is_use || use_is_inside(explanation) || use_is_beyond(explanation) || use_is_loaded(explanation))
		return;
	unsigned count = used_list(explanation->question.core, used);
	for (int is_again = 0; is_again < 2; is_again++)
		for (unsigned i = 0; i < explanation->core.pointer_count; i++) {
			const struct explain_pointer *pointer = &explanation->core.pointers[i];
			if ((is_again ? is_given_again : is_freed)(&pointer->history) &&
			    use_is_read(explanation, pointer, used, count))
				return;
		}
}

/* ---- the stack ---- */

/* Return where the code lies in the file of an image of the trace; false: in none of them. */
static bool code_find(const struct explanation *explanation, uint64_t pc, const struct trace_image **image,
		      uint64_t *offset)
{
	const struct trace_dictionary *dictionary = dictionary_of(explanation);
	for (uint32_t i = dictionary->mapping_count; i-- > 0;) {
		const struct trace_mapping *mapping = &dictionary->mappings[i];
		if (mapping->process != explanation->process || mapping->image >= dictionary->image_count ||
		    pc < mapping->base || pc >= mapping->end)
			continue;
		*image = &dictionary->images[mapping->image];
		*offset = pc - mapping->bias;
		return true;
	}
	return false;
}

static void frame_add(struct explain_core *core, const struct explain_frame *frame)
{
	if (core->frame_count < EXPLAIN_FRAMES_MAX)
		core->frames[core->frame_count++] = *frame;
}

static void frames_find(struct explanation *explanation)
{
	struct core_stack stack;
	core_stack_read(&stack, explanation->question.core);
	for (unsigned i = 0; i < stack.count; i++) {
		struct explain_frame frame = {.pc = stack.pcs[i]};
		const struct symbol_frame *found;
		if (!code_find(explanation, frame.pc, &frame.image, &frame.offset)) {
			frame_add(&explanation->core, &frame);
			continue;
		}
		size_t count = symbols_resolve(explanation->question.symbols, frame.image->path, frame.image->build_id,
					       frame.image->build_id_size, frame.offset, stack.is_return[i], &found);
		for (size_t j = 0; j < count; j++) {
			frame.function = found[j];
			frame_add(&explanation->core, &frame);
		}
	}
}

void explanation_core_find(struct explanation *explanation)
{
	struct explain_core *core = &explanation->core;
	*core = (struct explain_core){.facts = corefile_facts(explanation->question.core)};
	pointers_find(explanation);
	use_find(explanation);
	frames_find(explanation);
	if (core->facts->signal == SIGABRT &&
	    core_message_read(explanation->question.core, core->message, sizeof(core->message)))
		core->meaning = abort_meaning_find(core->message);
	explanation_damage_find(explanation);
}
