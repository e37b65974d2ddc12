/* SPDX-License-Identifier: MIT */
#include "arch/moved_code.h"

#include <assert.h>
#include <string.h>

#include "arch/cpu.h"

static void put(struct moved_code *moved, const void *bytes, unsigned size)
{
	memcpy(moved->code + moved->size, bytes, size);
	moved->size += size;
}

static void put_byte(struct moved_code *moved, uint8_t byte)
{
	put(moved, &byte, 1);
}

/* Four bytes that name target from where the instruction ends, `after` bytes behind them. */
static void put_relative(struct moved_code *moved, uint64_t target, unsigned after)
{
	int64_t relative = (int64_t)(target - (moved->destination + moved->size + 4 + after));
	int32_t field = (int32_t)relative;
	moved->is_out_of_reach |= relative != field;
	put(moved, &field, sizeof(field));
}

/* Whether 32 bits lead there from the next instruction, whatever its form. */
static bool is_near(const struct moved_code *moved, uint64_t target)
{
	enum { FORM_BYTES_MAX = 32 };
	int64_t relative = (int64_t)(target - (moved->destination + moved->size));
	return relative > INT32_MIN + FORM_BYTES_MAX && relative < INT32_MAX - FORM_BYTES_MAX;
}

/* jmp *0(%rip), and the address */
static void put_far_jump(struct moved_code *moved, uint64_t target)
{
	put(moved, "\xff\x25\0\0\0", 6);
	put(moved, &target, sizeof(target));
}

static void put_near_jump(struct moved_code *moved, uint64_t target)
{
	put_byte(moved, 0xe9);
	put_relative(moved, target, 0);
}

void moved_put_jump(struct moved_code *moved, uint64_t target)
{
	if (is_near(moved, target))
		put_near_jump(moved, target);
	else
		put_far_jump(moved, target);
}

/* A far one goes around a far jump when it is not taken. */
static void put_condition(struct moved_code *moved, const struct code *code)
{
	if (is_near(moved, code->target)) {
		put_byte(moved, 0x0f);
		put_byte(moved, 0x80 | (code->opcode & 15));
		put_relative(moved, code->target, 0);
		return;
	}
	put_byte(moved, 0x70 | ((code->opcode & 15) ^ 1));
	put_byte(moved, CPU_FAR_JUMP_BYTES);
	put_far_jump(moved, code->target);
}

/* A loop has no long form: go around a jump when it is not taken. Its prefixes choose the counter and stay. */
static void put_loop(struct moved_code *moved, const struct code *code, const uint8_t *bytes)
{
	bool near = is_near(moved, code->target);
	put(moved, bytes, code->field);
	put_byte(moved, 2);
	put_byte(moved, 0xeb);
	put_byte(moved, near ? CPU_JUMP_BYTES : CPU_FAR_JUMP_BYTES);
	if (near)
		put_near_jump(moved, code->target);
	else
		put_far_jump(moved, code->target);
}

/* Far: call *2(%rip); jmp over the address; the address. */
static void put_call(struct moved_code *moved, uint64_t target)
{
	if (is_near(moved, target)) {
		put_byte(moved, 0xe8);
		put_relative(moved, target, 0);
		return;
	}
	put(moved, "\xff\x15\2\0\0\0\xeb\x08", 8);
	put(moved, &target, sizeof(target));
}

static void put_memory(struct moved_code *moved, const struct code *code, const uint8_t *bytes)
{
	unsigned after = code->length - code->field - 4u;
	if (!is_near(moved, code->target) && code_make_absolute(code, bytes, moved->code + moved->size)) {
		moved->size += code->length + 1u;
		return;
	}
	put(moved, bytes, code->field);
	put_relative(moved, code->target, after);
	put(moved, bytes + code->field + 4, after);
}

void moved_put(struct moved_code *moved, const struct code *code, const uint8_t *bytes)
{
	assert(code->length > 0 && code->kind != CODE_STUBBORN);
	switch (code->kind) {
	case CODE_CONDITION:
		put_condition(moved, code);
		break;
	case CODE_LOOP:
		put_loop(moved, code, bytes);
		break;
	case CODE_JUMP:
		moved_put_jump(moved, code->target);
		break;
	case CODE_CALL:
		put_call(moved, code->target);
		break;
	default:
		if (code->field_bytes)
			put_memory(moved, code, bytes);
		else
			put(moved, bytes, code->length);
	}
}
