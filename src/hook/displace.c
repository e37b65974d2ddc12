/* SPDX-License-Identifier: MIT */
/*
 * The first instructions of a function are moved away to make room for a jump of five bytes:
 *
 *     entry:  jmp hook             entry was:  push %r12          moved:  push %r12
 *             ...                              jle  slow                  jle  slow   (re-encoded, 32 bits)
 *     rest:   mov ...              rest:       mov ...                    jmp  rest
 *
 * What is relative to the instruction pointer keeps naming what it named. A call is moved only as the last one: its
 * return address then lies behind the moved code and never in the bytes that were overwritten. Where the copy lies
 * farther away than 32 bits lead, branches go by whole addresses behind them, and memory below 2 GiB is named without
 * the instruction pointer.
 */
#include "hook/displace.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "hook/code.h"

/* The bytes between low and HOOK_PATCH_BYTES are padding that no function owns. */
static bool is_padding(const uint8_t *bytes, size_t available, unsigned low)
{
	struct code code;
	while (low < HOOK_PATCH_BYTES) {
		if (!code_decode(&code, bytes + low, available - low, 0) || code.kind != CODE_PADDING)
			return false;
		low += code.length;
	}
	return true;
}

static const char *why_not_moved(const struct code *code, unsigned end)
{
	switch (code->kind) {
	case CODE_SYSCALL:
		return "a system call among its first instructions";
	case CODE_STUBBORN:
		return "an instruction that cannot be moved among its first";
	case CODE_CALL:
	case CODE_CALL_FAR:
		return end < HOOK_PATCH_BYTES ? "a call among its first instructions" : NULL;
	default:
		return NULL;
	}
}

static bool ends_flow(const struct code *code)
{
	return code->kind == CODE_END || code->kind == CODE_JUMP;
}

void displace_measure(struct hook_target *target, const uint8_t *bytes, size_t available)
{
	struct code code = {.kind = CODE_PLAIN};
	unsigned end = 0;
	while (end < HOOK_PATCH_BYTES && !target->reason) {
		if (target->size != 0 && end >= target->size && end > 0) {
			target->reason = "shorter than the jump to the hook";
			return;
		}
		if (!code_decode(&code, bytes + end, available - end, target->address + end)) {
			target->reason = "its first instructions cannot be decoded";
			return;
		}
		end += code.length;
		target->reason = why_not_moved(&code, end);
		if (ends_flow(&code))
			break;
	}
	if (!target->reason && end < HOOK_PATCH_BYTES &&
	    (available < HOOK_PATCH_BYTES || !is_padding(bytes, available, end)))
		target->reason = "shorter than the jump to the hook";
	if (target->reason)
		return;
	target->displaced = (uint8_t)(end < HOOK_PATCH_BYTES ? HOOK_PATCH_BYTES : end);
	assert(target->displaced <= sizeof(target->original));
	memcpy(target->original, bytes, target->displaced);
}

struct mover {
	uint64_t destination;
	uint8_t *code;
	unsigned size;
	bool is_out_of_reach;
};

static void put(struct mover *mover, const void *bytes, unsigned size)
{
	assert(mover->size + size <= HOOK_RELOCATED_MAX);
	memcpy(mover->code + mover->size, bytes, size);
	mover->size += size;
}

static void put_byte(struct mover *mover, uint8_t byte)
{
	put(mover, &byte, 1);
}

/* Four bytes that name target from where the instruction ends, `after` bytes behind them. */
static void put_relative(struct mover *mover, uint64_t target, unsigned after)
{
	int64_t relative = (int64_t)(target - (mover->destination + mover->size + 4 + after));
	int32_t field = (int32_t)relative;
	mover->is_out_of_reach |= relative != field;
	put(mover, &field, sizeof(field));
}

/* Whether 32 bits lead there from the next instruction, whatever its form. */
static bool is_near(const struct mover *mover, uint64_t target)
{
	enum { FORM_BYTES_MAX = 32 };
	int64_t relative = (int64_t)(target - (mover->destination + mover->size));
	return relative > INT32_MIN + FORM_BYTES_MAX && relative < INT32_MAX - FORM_BYTES_MAX;
}

/* jmp *0(%rip), and the address */
static void put_far_jump(struct mover *mover, uint64_t target)
{
	put(mover, "\xff\x25\0\0\0", 6);
	put(mover, &target, sizeof(target));
}

static void put_near_jump(struct mover *mover, uint64_t target)
{
	put_byte(mover, 0xe9);
	put_relative(mover, target, 0);
}

static void put_jump(struct mover *mover, uint64_t target)
{
	if (is_near(mover, target))
		put_near_jump(mover, target);
	else
		put_far_jump(mover, target);
}

/* A far one goes around a far jump when it is not taken. */
static void put_condition(struct mover *mover, const struct code *code)
{
	if (is_near(mover, code->target)) {
		put_byte(mover, 0x0f);
		put_byte(mover, 0x80 | (code->opcode & 15));
		put_relative(mover, code->target, 0);
		return;
	}
	put_byte(mover, 0x70 | ((code->opcode & 15) ^ 1));
	put_byte(mover, HOOK_FAR_JUMP_BYTES);
	put_far_jump(mover, code->target);
}

/* A loop has no long form: go around a jump when it is not taken. Its prefixes choose the counter and stay. */
static void put_loop(struct mover *mover, const struct code *code, const uint8_t *bytes)
{
	bool near = is_near(mover, code->target);
	put(mover, bytes, code->field);
	put_byte(mover, 2);
	put_byte(mover, 0xeb);
	put_byte(mover, near ? HOOK_PATCH_BYTES : HOOK_FAR_JUMP_BYTES);
	if (near)
		put_near_jump(mover, code->target);
	else
		put_far_jump(mover, code->target);
}

/* Far: call *2(%rip); jmp over the address; the address. */
static void put_call(struct mover *mover, uint64_t target)
{
	if (is_near(mover, target)) {
		put_byte(mover, 0xe8);
		put_relative(mover, target, 0);
		return;
	}
	put(mover, "\xff\x15\2\0\0\0\xeb\x08", 8);
	put(mover, &target, sizeof(target));
}

static void put_memory(struct mover *mover, const struct code *code, const uint8_t *bytes)
{
	unsigned after = code->length - code->field - 4u;
	if (!is_near(mover, code->target) && code_make_absolute(code, bytes, mover->code + mover->size)) {
		mover->size += code->length + 1u;
		return;
	}
	put(mover, bytes, code->field);
	put_relative(mover, code->target, after);
	put(mover, bytes + code->field + 4, after);
}

static void put_moved(struct mover *mover, const struct code *code, const uint8_t *bytes)
{
	switch (code->kind) {
	case CODE_CONDITION:
		put_condition(mover, code);
		break;
	case CODE_LOOP:
		put_loop(mover, code, bytes);
		break;
	case CODE_JUMP:
		put_jump(mover, code->target);
		break;
	case CODE_CALL:
		put_call(mover, code->target);
		break;
	default:
		if (code->field_bytes)
			put_memory(mover, code, bytes);
		else
			put(mover, bytes, code->length);
	}
}

int hook_relocate(const struct hook_target *target, uint64_t address, uint64_t destination, uint8_t *code,
		  int16_t offsets[HOOK_DISPLACED_MAX], struct diag *diag)
{
	/* Room for the longest: a far loop for each of at most five instructions that begin in the patch, and the jump
	   back. */
	_Static_assert(HOOK_RELOCATED_MAX >= HOOK_PATCH_BYTES * (HOOK_DISPLACED_MAX - 4) + HOOK_FAR_JUMP_BYTES,
		       "moved code fits");
	struct mover mover = {.destination = destination, .code = code};
	struct code one = {.kind = CODE_PLAIN};
	memset(offsets, 0xff, HOOK_DISPLACED_MAX * sizeof(offsets[0]));
	if (target->displaced < HOOK_PATCH_BYTES || target->displaced > HOOK_DISPLACED_MAX)
		return diag_fail(diag, EINVAL, "%s", target->reason ? target->reason : "nothing of it was measured");
	for (unsigned at = 0; at < target->displaced; at += one.length) {
		if (!code_decode(&one, target->original + at, target->displaced - at, address + at))
			return diag_fail(diag, EINVAL, "its first instructions cannot be decoded");
		if (why_not_moved(&one, at + one.length))
			return diag_fail(diag, EINVAL, "%s", why_not_moved(&one, at + one.length));
		offsets[at] = (int16_t)mover.size;
		put_moved(&mover, &one, target->original + at);
		if (ends_flow(&one))
			break;
	}
	if (!ends_flow(&one))
		put_jump(&mover, address + target->displaced);
	if (mover.is_out_of_reach)
		return diag_fail(diag, ERANGE, "what its first instructions name is out of reach");
	return (int)mover.size;
}
