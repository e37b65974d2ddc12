/* SPDX-License-Identifier: MIT */
/*
 * The first instructions of a function are moved away to make room for a jump of five bytes:
 *
 *     entry:  jmp hook             entry was:  push %r12          moved:  push %r12
 *             ...                              jle  slow                  jle  slow   (re-encoded, 32 bits)
 *     rest:   mov ...              rest:       mov ...                    jmp  rest
 *
 * An operand that is relative to the instruction pointer is adjusted, so that it names the same address. A call is
 * moved only as the last instruction: its return address then lies behind the moved code, never in the overwritten
 * bytes. If the copy is farther away than 32 bits reach, branches use whole addresses stored behind them, and memory
 * below 2 GiB is named by its absolute address.
 */
#include "hook/displace.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "arch/code.h"
#include "arch/moved_code.h"

/* Return whether the bytes from `low` to HOOK_PATCH_BYTES are padding that no function owns. */
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

int hook_relocate(const struct hook_target *target, uint64_t address, uint64_t destination, uint8_t *code,
		  int16_t offsets[HOOK_DISPLACED_MAX], struct diag *diag)
{
	/* Room for the longest: a far loop for each of at most five instructions that begin in the patch, and the jump
	   back. */
	_Static_assert(HOOK_RELOCATED_MAX >= HOOK_PATCH_BYTES * (HOOK_DISPLACED_MAX - 4) + HOOK_FAR_JUMP_BYTES,
		       "moved code fits");
	struct moved_code moved = {.destination = destination, .code = code};
	struct code one = {.kind = CODE_PLAIN};
	memset(offsets, 0xff, HOOK_DISPLACED_MAX * sizeof(offsets[0]));
	if (target->displaced < HOOK_PATCH_BYTES || target->displaced > HOOK_DISPLACED_MAX)
		return diag_fail(diag, EINVAL, "%s", target->reason ? target->reason : "nothing of it was measured");
	for (unsigned at = 0; at < target->displaced; at += one.length) {
		if (!code_decode(&one, target->original + at, target->displaced - at, address + at))
			return diag_fail(diag, EINVAL, "its first instructions cannot be decoded");
		if (why_not_moved(&one, at + one.length))
			return diag_fail(diag, EINVAL, "%s", why_not_moved(&one, at + one.length));
		offsets[at] = (int16_t)moved.size;
		moved_put(&moved, &one, target->original + at);
		if (ends_flow(&one))
			break;
	}
	if (!ends_flow(&one))
		moved_put_jump(&moved, address + target->displaced);
	if (moved.is_out_of_reach)
		return diag_fail(diag, ERANGE, "what its first instructions name is out of reach");
	return (int)moved.size;
}
