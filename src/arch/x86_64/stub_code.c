/* SPDX-License-Identifier: MIT */
#include "arch/stub_code.h"

#include <assert.h>

static void put_byte(struct machine_code *output, unsigned char byte)
{
	machine_code_put(output, &byte, 1);
}

/* movabs $value, %reg by its two opcode bytes */
static void put_constant(struct machine_code *output, unsigned char rex, unsigned char opcode, uint64_t value)
{
	put_byte(output, rex);
	put_byte(output, opcode);
	machine_code_put(output, &value, sizeof(value));
}

/* cmp $value, %edi, %esi or %edx (the register by its ModRM byte) */
static void put_compare(struct machine_code *output, unsigned char modrm, uint32_t value)
{
	put_byte(output, 0x81);
	put_byte(output, modrm);
	machine_code_put(output, &value, sizeof(value));
}

enum {
	COMPARE_EDI = 0xff,
	COMPARE_ESI = 0xfe,
	COMPARE_EDX = 0xfa,
	COMPARE_BYTES = 6 + 2,
	SET_BYTES = 19,
	JUMP_NOT_EQUAL = 0x75,
	JUMP_ALWAYS = 0xeb
};

/* A short jump over `bytes`, by its opcode. */
static void put_skip(struct machine_code *output, unsigned char condition, unsigned char bytes)
{
	put_byte(output, condition);
	put_byte(output, bytes);
}

/* push %rax; movabs $address, %rax; lock orl $bits, (%rax); pop %rax */
static void put_set(struct machine_code *output, uint64_t address, uint32_t bits)
{
	put_byte(output, 0x50);
	put_constant(output, 0x48, 0xb8, address);
	machine_code_put(output, "\xf0\x81\x08", 3);
	machine_code_put(output, &bits, sizeof(bits));
	put_byte(output, 0x58);
}

void stub_code_put_mark(struct machine_code *output, const struct stub_mark *mark)
{
	static const unsigned char compare[STUB_MARK_ARGUMENTS] = {COMPARE_EDI, COMPARE_ESI, COMPARE_EDX};
	assert(mark->count > 0 && mark->count <= STUB_MARK_ARGUMENTS);
	for (uint32_t i = 0; i < mark->count; i++) {
		put_compare(output, compare[i], mark->argument[i]);
		put_skip(output, JUMP_NOT_EQUAL, (unsigned char)((mark->count - 1 - i) * COMPARE_BYTES + SET_BYTES));
	}
	put_set(output, mark->address, mark->bits);
}

void stub_code_put_start(struct machine_code *output, uint64_t at, const struct stub_start *start)
{
	assert(start->has_begun < 128 && start->is_coming < 128);
	const unsigned char note_begun[] = {
		0x41, 0xc7, 0x43, start->has_begun, 1, 0, 0, 0, /* movl $1, has_begun(%r11) */
		0x41, 0xc7, 0x43, start->is_coming, 0, 0, 0, 0, /* movl $0, is_coming(%r11) */
		0x41, 0xff, 0x23,                               /* jmp *main(%r11) */
	};
	const unsigned char note_coming[] = {
		0x49, 0x89, 0x3b,                               /* mov %rdi, main(%r11) */
		0x41, 0xc7, 0x43, start->is_coming, 1, 0, 0, 0, /* movl $1, is_coming(%r11) */
	};
	enum { BRANCH_TARGET_BYTES = 4, CONSTANT_BYTES = 10 };
	uint64_t begin = at + output->size + CONSTANT_BYTES + sizeof(note_coming) + CONSTANT_BYTES + 2;
	put_constant(output, 0x49, 0xbb, start->address);
	machine_code_put(output, note_coming, sizeof(note_coming));
	put_constant(output, 0x48, 0xbf, begin);
	put_skip(output, JUMP_ALWAYS, BRANCH_TARGET_BYTES + CONSTANT_BYTES + sizeof(note_begun));
	machine_code_put(output, "\xf3\x0f\x1e\xfa", BRANCH_TARGET_BYTES); /* endbr64: main is called by its address */
	put_constant(output, 0x49, 0xbb, start->address);
	machine_code_put(output, note_begun, sizeof(note_begun));
}

/* movabs $context, %r8; movabs $hook, %rax; jmp *%rax */
void stub_code_put_hook(struct machine_code *output, uint64_t context, uint64_t hook, bool moves_fifth)
{
	assert(context && hook);
	static const unsigned char move_fifth[] = {0x4d, 0x89, 0xc1}; /* mov %r8, %r9 */
	if (moves_fifth)
		machine_code_put(output, move_fifth, sizeof(move_fifth));
	put_constant(output, 0x49, 0xb8, context);
	put_constant(output, 0x48, 0xb8, hook);
	machine_code_put(output, "\xff\xe0", 2);
}

void stub_code_put_request(struct machine_code *output, const struct stub_request *request)
{
	assert(request->first <= request->last && request->hook);
	static const unsigned char compare[] = {0x48, 0x81, 0x38}; /* cmpq $..., (%rax) */
	static const unsigned char save[] = {
		0x48, 0x8d, 0xa4, 0x24, 0x70, 0xff, 0xff, 0xff, /* lea -0x90(%rsp), %rsp */
		0x50, 0x51, 0x52, 0x56, 0x57, 0x55,             /* push %rax, %rcx, %rdx, %rsi, %rdi, %rbp */
		0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53, /* push %r8, %r9, %r10, %r11 */
		0xff, 0xb4, 0x24, 0xd8, 0x00, 0x00, 0x00,       /* push 0xd8(%rsp): the upper word */
		0xff, 0xb4, 0x24, 0xd8, 0x00, 0x00, 0x00,       /* push 0xd8(%rsp): the lower one */
		0x48, 0x89, 0xac, 0x24, 0xe0, 0x00, 0x00, 0x00, /* mov %rbp, 0xe0(%rsp) */
		0x48, 0x8d, 0xac, 0x24, 0xe0, 0x00, 0x00, 0x00, /* lea 0xe0(%rsp), %rbp */
		0x48, 0x89, 0xc7,                               /* mov %rax, %rdi */
		0x48, 0x89, 0xea,                               /* mov %rbp, %rdx */
	};
	static const unsigned char put_pc[] = {0x48, 0x89, 0x45, 0x08}; /* mov %rax, 8(%rbp) */
	static const unsigned char call[] = {
		0x48, 0x83, 0xe4, 0xf0,                         /* and $-16, %rsp */
		0xff, 0xd0,                                     /* call *%rax */
		0x48, 0x8d, 0xa5, 0x20, 0xff, 0xff, 0xff,       /* lea -0xe0(%rbp), %rsp */
		0x8f, 0x84, 0x24, 0xd8, 0x00, 0x00, 0x00,       /* pop 0xd8(%rsp) */
		0x8f, 0x84, 0x24, 0xd8, 0x00, 0x00, 0x00,       /* pop 0xd8(%rsp) */
		0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, /* pop %r11, %r10, %r9, %r8 */
		0x5d, 0x5f, 0x5e, 0x5a, 0x59, 0x58,             /* pop %rbp, %rdi, %rsi, %rdx, %rcx, %rax */
		0x48, 0x8d, 0xa4, 0x24, 0x90, 0x00, 0x00, 0x00, /* lea 0x90(%rsp), %rsp */
	};
	enum {
		CONSTANT_BYTES = 10,
		COMPARE_BYTES = sizeof(compare) + 4,
		SKIP_BYTES = 6,
		CALL_BYTES = sizeof(save) + sizeof(put_pc) + 3 * CONSTANT_BYTES + sizeof(call)
	};
	const int32_t past_both = COMPARE_BYTES + SKIP_BYTES + CALL_BYTES, past_call = CALL_BYTES;
	machine_code_put(output, compare, sizeof(compare));
	machine_code_put(output, &request->first, sizeof(request->first));
	machine_code_put(output, "\x0f\x82", 2); /* jb */
	machine_code_put(output, &past_both, sizeof(past_both));
	machine_code_put(output, compare, sizeof(compare));
	machine_code_put(output, &request->last, sizeof(request->last));
	machine_code_put(output, "\x0f\x87", 2); /* ja */
	machine_code_put(output, &past_call, sizeof(past_call));
	machine_code_put(output, save, sizeof(save));
	put_constant(output, 0x48, 0xb8, request->pc);
	machine_code_put(output, put_pc, sizeof(put_pc));
	put_constant(output, 0x48, 0xbe, request->contexts);
	put_constant(output, 0x48, 0xb8, request->hook);
	machine_code_put(output, call, sizeof(call));
}
