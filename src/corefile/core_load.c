/* SPDX-License-Identifier: MIT */
/*
 * A thread dies of a bad pointer some instructions after it has loaded it. Code cannot be read backwards, but from
 * nearly any byte on a decoder falls into step with it soon: of all ways that begin some bytes before and arrive
 * exactly at the instruction that failed, the longest one counts. Only straight code is looked at, so what is found
 * has run.
 */
#include "corefile/core_load.h"

#include <string.h>

#include "arch/access_code.h"
#include "corefile/core_file.h"
#include "corefile/corefile.h"

enum {
	BEFORE_BYTES = 96,
	INSTRUCTION_BYTES = 15,
	STEPS_MAX = BEFORE_BYTES,
	IN_STEP = 3 /* so many instructions lie between a first byte that was guessed and the first one that counts */
};

/* Registers as instructions number them. */
static const enum core_register registers[] = {CORE_RAX, CORE_RCX, CORE_RDX, CORE_RBX, CORE_RSP, CORE_RBP,
					       CORE_RSI, CORE_RDI, CORE_R8,  CORE_R9,  CORE_R10, CORE_R11,
					       CORE_R12, CORE_R13, CORE_R14, CORE_R15};

/* The bytes around a place. */
struct code_piece {
	uint8_t bytes[BEFORE_BYTES + INSTRUCTION_BYTES];
	size_t before, behind;
};

/* Instructions one after the other, the last one first. */
struct code_steps {
	struct access_code steps[STEPS_MAX];
	unsigned count;
};

static bool piece_read(const struct corefile *core, uint64_t pc, struct code_piece *piece)
{
	const struct core_image *image = corefile_image_at(core, pc);
	struct core_file file;
	if (!image || !core_file_begin(&file, image))
		return false;
	uint64_t offset = pc - image->base;
	piece->before = offset < BEFORE_BYTES ? (size_t)offset : BEFORE_BYTES;
	size_t got = core_file_read(&file, offset - piece->before, piece->bytes, sizeof(piece->bytes));
	core_file_end(&file);
	piece->behind = got > piece->before ? got - piece->before : 0;
	return got >= piece->before;
}

/* Decode from `at` to the place. Return false unless an instruction ends there. */
static bool steps_decode(struct code_steps *steps, const struct code_piece *piece, size_t at)
{
	struct access_code code;
	steps->count = 0;
	while (at < piece->before) {
		if (!access_code_decode(&code, piece->bytes + at, piece->before - at))
			return false;
		memmove(&steps->steps[1], steps->steps, steps->count++ * sizeof(*steps->steps));
		steps->steps[0] = code;
		at += code.length;
	}
	return at == piece->before;
}

static void steps_find(struct code_steps *steps, const struct code_piece *piece)
{
	for (size_t at = 0; at < piece->before; at++)
		if (steps_decode(steps, piece, at))
			return;
	steps->count = 0;
}

/* Find the load of the register's value among the instructions before, as long as they run one after the other. */
static bool load_search(const struct corefile *core, const struct code_steps *steps, unsigned first, int8_t wanted,
			struct core_load *load)
{
	const uint64_t *values = corefile_facts(core)->registers;
	uint16_t written = 0;
	uint64_t word;
	for (unsigned i = first; i + IN_STEP < steps->count && !steps->steps[i].is_branch; i++) {
		const struct access_code *code = &steps->steps[i];
		uint16_t bit = (uint16_t)(1u << wanted);
		if (!(code->written & bit)) {
			written |= code->written;
			continue;
		}
		bool is_known = code->loaded == wanted && code->base != ACCESS_NO_REGISTER && code->base != wanted &&
				!(written >> code->base & 1);
		bool has_index = code->index != ACCESS_NO_REGISTER;
		if (!is_known || (has_index && (code->index == wanted || written >> code->index & 1)))
			return false;
		load->from = values[registers[code->base]] + (uint64_t)code->displacement +
			     (has_index ? values[registers[code->index]] * code->scale : 0);
		load->value = values[registers[wanted]];
		return corefile_read(core, load->from, &word, sizeof(word)) == sizeof(word) && word == load->value;
	}
	return false;
}

bool core_load_find(const struct corefile *core, struct core_load *load)
{
	const struct core_facts *facts = corefile_facts(core);
	uint64_t pc = facts->registers[CORE_RIP];
	struct code_piece piece;
	struct code_steps steps;
	struct access_code failed;
	bool is_called = !corefile_image_at(core, pc);
	/* Behind a call lies its return address on the stack. */
	if (is_called && corefile_read(core, facts->registers[CORE_RSP], &pc, sizeof(pc)) < sizeof(pc))
		return false;
	if (!piece_read(core, pc, &piece))
		return false;
	steps_find(&steps, &piece);
	if (is_called && steps.count)
		failed = steps.steps[0];
	else if (is_called || !access_code_decode(&failed, piece.bytes + piece.before, piece.behind))
		return false;
	int8_t wanted = failed.base != ACCESS_NO_REGISTER ? failed.base : failed.called;
	return wanted != ACCESS_NO_REGISTER && load_search(core, &steps, is_called, wanted, load);
}
