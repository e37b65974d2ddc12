/* SPDX-License-Identifier: MIT */
/*
 * A thread is at a place of the recorder if its program counter is. It will return to one if its stack has such a
 * return address, or such a program counter saved by a signal frame.
 *
 * First all words of its stack are read. Mostly none is an address of such a place, and the answer is no. A word that
 * is one may be left from a call that is over, in a variable that was never set. Then the stack is unwound by the
 * tables of the images. Code without tables (made at run time, or in some libraries) is decided by the words of its
 * frames.
 */
#include "inject/thread_stacks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/cpu.h"
#include "arch/patch_bytes.h"
#include "arch/registers.h"
#include "base/bisect.h"
#include "inject/remote.h"

enum {
	SCAN_BYTES_MAX = 8 << 20,
	STRANGE_BYTES_MAX = 64 << 20,
	SCAN_CHUNK = 1 << 14,
	FRAMES_MAX = 1 << 16,
	WINDOW_WORDS = 512,
	WORD = sizeof(uint64_t)
};

/* ---- places ---- */

const struct inject_jump *stacks_jump_around(const struct places *places, uint64_t address)
{
	size_t place;
	BISECT(place, places->jump_count, i, places->jumps[i].address + HOOK_PATCH_BYTES <= address);
	return place < places->jump_count && address > places->jumps[place].address ? &places->jumps[place] : NULL;
}

static bool is_in_places(const struct places *places, uint64_t address)
{
	if (places->jumps)
		return stacks_jump_around(places, address) != NULL;
	for (uint32_t i = 0; i < places->range_count; i++)
		if (address >= places->ranges[i].low && address < places->ranges[i].high)
			return true;
	return false;
}

static void places_bounds(const struct places *places, uint64_t *lowest, uint64_t *highest)
{
	bool has_jumps = places->jumps && places->jump_count;
	*lowest = has_jumps ? places->jumps[0].address : UINT64_MAX;
	*highest = has_jumps ? places->jumps[places->jump_count - 1].address + HOOK_PATCH_BYTES : 0;
	for (uint32_t i = 0; !places->jumps && i < places->range_count; i++) {
		*lowest = places->ranges[i].low < *lowest ? places->ranges[i].low : *lowest;
		*highest = places->ranges[i].high > *highest ? places->ranges[i].high : *highest;
	}
}

/* ---- code ---- */

/* Return whether the instruction that ends at the address is a call. */
static bool is_behind_call(int memory, uint64_t address)
{
	uint8_t before[PATCH_CALL_BYTES_MAX];
	return address >= sizeof(before) && remote_read(memory, address - sizeof(before), before, sizeof(before)) &&
	       patch_is_behind_call(before);
}

/* Return whether a handler returns to this address. */
static bool is_signal_return(int memory, uint64_t address)
{
	uint8_t code[PATCH_SIGNAL_RETURN_BYTES];
	return remote_read(memory, address, code, sizeof(code)) && patch_is_signal_return(code);
}

/* Return whether the word at this address of a stack is the program counter that a signal frame has saved. The word
   before the frame is its return address. */
static bool is_saved_by_signal(int memory, uint64_t at)
{
	uint64_t handler_returns_to;
	return remote_read(memory, at - CPU_CONTEXT_PC - WORD, &handler_returns_to, WORD) &&
	       is_signal_return(memory, handler_returns_to);
}

/* ---- stacks ---- */

/* Return the mapping around an address; NULL: there is none. */
static const struct proc_map *map_at(const struct stacks *stacks, uint64_t address)
{
	for (int i = 0; i < stacks->map_count; i++)
		if (address >= stacks->maps[i].low && address < stacks->maps[i].high)
			return &stacks->maps[i];
	return NULL;
}

/* Return the end of the stack around sp: of the first thread's mapping, else of the thread's own block. A mapping may
   continue behind that: since glibc 2.42, stacks that lie side by side are one mapping. 0: it is no such stack; with
   is_lenient: the end of its mapping. */
static uint64_t stack_end(const struct stacks *stacks, const struct stand *stand, uint64_t sp)
{
	uint64_t block = registers_thread_pointer(&stand->registers), end = 0;
	const struct proc_map *map = map_at(stacks, sp);
	if (map)
		end = strcmp(map->path, "[stack]") == 0 ? map->high : block > sp && block < map->high ? block : 0;
	if (!end && stacks->is_lenient)
		return map && map->high - sp < SCAN_BYTES_MAX ? map->high : sp + SCAN_BYTES_MAX;
	return end && end - sp <= SCAN_BYTES_MAX ? end : 0;
}

static bool counts(const struct stacks *stacks, uint64_t at, uint64_t word)
{
	return is_in_places(&stacks->places, word) &&
	       (is_behind_call(stacks->memory, word) || is_saved_by_signal(stacks->memory, at));
}

/* Return whether a word from `at` to `end` says that somebody will come back to a place. */
static bool words_lead(const struct stacks *stacks, uint64_t at, uint64_t end)
{
	uint64_t words[SCAN_CHUNK / WORD], lowest, highest;
	places_bounds(&stacks->places, &lowest, &highest);
	for (at &= ~(uint64_t)(WORD - 1); at < end; at += sizeof(words)) {
		ssize_t got =
			pread(stacks->memory, words, end - at < sizeof(words) ? end - at : sizeof(words), (off_t)at);
		for (ssize_t i = 0; i < got / WORD; i++)
			if (words[i] >= lowest && words[i] < highest &&
			    counts(stacks, at + (uint64_t)i * WORD, words[i]))
				return true;
		if (got < (ssize_t)sizeof(words))
			return false; /* the stack's mapping ends here */
	}
	return false;
}

/* ---- unwinding ---- */

enum unwound { UNWOUND_LEADS, UNWOUND_ENDS, UNWOUND_STUCK };

struct frame {
	uint64_t pc, sp, bp;
	bool is_interrupted; /* pc is of an instruction that did not call */
};

/* Words of a stack, many at once. */
struct stack_window {
	uint64_t low, high, words[WINDOW_WORDS];
};

static bool window_read(const struct stacks *stacks, struct stack_window *window, uint64_t at, uint64_t *word)
{
	if (at % WORD)
		return false;
	if (at < window->low || at >= window->high) {
		ssize_t got = pread(stacks->memory, window->words, sizeof(window->words), (off_t)at);
		window->low = at;
		window->high = got > 0 ? at + ((uint64_t)got & ~(uint64_t)(WORD - 1)) : at;
	}
	if (at >= window->high)
		return false;
	*word = window->words[(at - window->low) / WORD];
	return true;
}

static bool step_over_signal(const struct stacks *stacks, struct stack_window *window, struct frame *frame)
{
	uint64_t context = frame->sp, pc, sp, bp;
	if (!window_read(stacks, window, context + CPU_CONTEXT_BP, &bp) ||
	    !window_read(stacks, window, context + CPU_CONTEXT_SP, &sp) ||
	    !window_read(stacks, window, context + CPU_CONTEXT_PC, &pc))
		return false;
	*frame = (struct frame){pc, sp, bp, true};
	return true;
}

/* Step from a frame to its caller by the row. */
static bool step_by_row(const struct stacks *stacks, struct stack_window *window, struct frame *frame, row_bits row)
{
	uint64_t cfa = (row_kind(row) == ROW_SP ? frame->sp : frame->bp) + (uint64_t)row_cfa_offset(row),
		 bp = frame->bp, pc;
	if (row_kind(row) == ROW_DEREF_BP && !window_read(stacks, window, cfa, &cfa))
		return false;
	if (row_bp_rule(row) != ROW_BP_SAME &&
	    !window_read(stacks, window,
			 (row_bp_rule(row) == ROW_BP_FROM_CFA ? cfa : frame->bp) + (uint64_t)row_bp_offset(row), &bp))
		return false;
	if (cfa <= frame->sp || !window_read(stacks, window, cfa - WORD, &pc))
		return false;
	*frame = (struct frame){pc, cfa, bp, false};
	return true;
}

/* Unwind from the frame as far as the tables lead; *frame is then the last one. */
static enum unwound unwind(struct stacks *stacks, struct frame *frame)
{
	struct stack_window window = {.low = 0};
	for (int count = 0; count < FRAMES_MAX; count++) {
		row_bits row;
		if (count && is_in_places(&stacks->places, frame->pc))
			return UNWOUND_LEADS;
		/* A stack that somebody made may end in an address of nothing. */
		if (!frame->pc)
			return UNWOUND_ENDS;
		bool has_row = unwinding_row(&stacks->unwinding, frame->pc - !frame->is_interrupted, &row);
		bool is_signal = has_row ? row_kind(row) == ROW_SIGNAL : is_signal_return(stacks->memory, frame->pc);
		if (has_row && row_kind(row) == ROW_END)
			return UNWOUND_ENDS;
		/* A frame to which no call returns was found by mistake. */
		if (!is_signal && !frame->is_interrupted && !is_behind_call(stacks->memory, frame->pc))
			return UNWOUND_STUCK;
		if (is_signal ? !step_over_signal(stacks, &window, frame)
			      : !has_row || row_kind(row) == ROW_BAD || !step_by_row(stacks, &window, frame, row))
			return UNWOUND_STUCK;
	}
	return UNWOUND_STUCK;
}

/* ---- the answer ---- */

void stacks_init(struct stacks *stacks, pid_t pid, int memory, const struct places *places, bool is_lenient)
{
	*stacks = (struct stacks){.pid = pid,
				  .memory = memory,
				  .places = *places,
				  .is_lenient = is_lenient,
				  .unwinding = {.pid = pid, .memory = memory}};
}

void stacks_set_jumps(struct stacks *stacks, const struct inject_jump *jumps, uint32_t count)
{
	stacks->places.jumps = jumps;
	stacks->places.jump_count = count;
}

void stacks_fini(struct stacks *stacks)
{
	free(stacks->maps);
	unwinding_fini(&stacks->unwinding);
}

void stacks_prepare(struct stacks *stacks)
{
	free(stacks->maps);
	stacks->map_count = proc_read_maps(stacks->pid, &stacks->maps);
	unwinding_take_images(&stacks->unwinding, stacks->maps, stacks->map_count);
	unwinding_read_wanted(&stacks->unwinding);
}

/* Check all words of a thread's two stacks. A thread on a stack of the program's making (a coroutine's, that of another
   processor mode) has its own one besides. How much of that is in use is unknown. */
static bool strange_stack_leads(const struct stacks *stacks, const struct stand *stand, uint64_t sp)
{
	/* An empty one begins where its mapping ends. */
	const struct proc_map *strange = map_at(stacks, sp - 1), *own = NULL;
	uint64_t block = registers_thread_pointer(&stand->registers);
	for (int i = 0; i < stacks->map_count && stand->tid == stacks->pid && !own; i++)
		own = strcmp(stacks->maps[i].path, "[stack]") == 0 ? &stacks->maps[i] : NULL;
	if (stand->tid != stacks->pid)
		own = map_at(stacks, block);
	if (!strange || !own)
		return true;
	uint64_t end = strange->high - sp < STRANGE_BYTES_MAX ? strange->high : sp + STRANGE_BYTES_MAX;
	uint64_t high = stand->tid == stacks->pid ? own->high : block,
		 low = high - own->low > SCAN_BYTES_MAX ? high - SCAN_BYTES_MAX : own->low;
	return words_lead(stacks, sp, end) || words_lead(stacks, low, high);
}

bool stacks_lead_back(struct stacks *stacks, const struct stand *stand)
{
	const struct user_regs_struct *registers = &stand->registers;
	uint64_t end = stack_end(stacks, stand, registers_sp(registers));
	if (end && !words_lead(stacks, registers_sp(registers), end))
		return false;
	struct frame frame = {registers_pc(registers), registers_sp(registers), registers_bp(registers), true};
	enum unwound unwound = unwind(stacks, &frame);
	if (unwound != UNWOUND_STUCK)
		return unwound == UNWOUND_LEADS;
	/* The frames up to here lead nowhere; the words from here on decide. */
	end = stack_end(stacks, stand, frame.sp);
	return end ? words_lead(stacks, frame.sp, end) : strange_stack_leads(stacks, stand, frame.sp);
}

bool stacks_lead(struct stacks *stacks, const struct stand *stand)
{
	return is_in_places(&stacks->places, registers_pc(&stand->registers)) || stacks_lead_back(stacks, stand);
}
