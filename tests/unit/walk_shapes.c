/* SPDX-License-Identifier: MIT */
/* Built twice, with -DWITH_BP and frame pointers, and without either. */
#include "walk_shapes.h"

#include <alloca.h>

#ifdef WITH_BP
#define SHAPES shapes_with_bp
#else
#define SHAPES shapes_without_bp
#endif
#define SHAPE static __attribute__((noinline)) void
/* What stands behind a call keeps it from being a jump. */
#define NO_JUMP() __asm__ volatile("" ::: "memory")
/* The compiler cannot know what becomes of the memory, nor leave it out. Nothing is written there: words of earlier
   calls stay. */
#define USE(memory) __asm__ volatile("" : : "r"(memory) : "memory")

SHAPE plain(shape_next *next, void *cookie, unsigned size)
{
	(void)size;
	next(cookie);
	NO_JUMP();
}

SHAPE with_locals(shape_next *next, void *cookie, unsigned size)
{
	char bytes[72];
	(void)size;
	USE(bytes);
	next(cookie);
	USE(bytes);
}

SHAPE large(shape_next *next, void *cookie, unsigned size)
{
	char bytes[6000];
	(void)size;
	USE(bytes);
	next(cookie);
	USE(bytes);
}

SHAPE with_alloca(shape_next *next, void *cookie, unsigned size)
{
	char *bytes = alloca(size);
	USE(bytes);
	next(cookie);
	USE(bytes);
}

SHAPE realigned(shape_next *next, void *cookie, unsigned size)
{
	_Alignas(64) char bytes[64];
	(void)size;
	USE(bytes);
	next(cookie);
	USE(bytes);
}

SHAPE realigned_alloca(shape_next *next, void *cookie, unsigned size)
{
	_Alignas(64) char bytes[64];
	char *more = alloca(size);
	USE(bytes);
	USE(more);
	next(cookie);
	USE(bytes);
}

SHAPE tail_call(shape_next *next, void *cookie, unsigned size)
{
	(void)size;
	next(cookie);
}

SHAPE with_registers(shape_next *next, void *cookie, unsigned size)
{
	(void)size;
#ifdef WITH_BP
	__asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
#else
	__asm__ volatile("mov $0x1234567, %%ebp" ::: "rbx", "rbp", "r12", "r13", "r14", "r15");
#endif
	next(cookie);
	NO_JUMP();
}

SHAPE two_calls(shape_next *next, void *cookie, unsigned size)
{
	if (size & 1) {
		next(cookie);
		__asm__ volatile("# the first" ::: "memory");
	} else {
		next(cookie);
		__asm__ volatile("# the second" ::: "memory");
	}
}

const struct shape SHAPES[SHAPE_COUNT] = {{"plain", plain, 0},         {"with_locals", with_locals, 0},
					  {"large", large, 0},         {"with_alloca", with_alloca, 0},
					  {"realigned", realigned, 1}, {"realigned_alloca", realigned_alloca, 1},
					  {"tail_call", tail_call, 0}, {"with_registers", with_registers, 0},
					  {"two_calls", two_calls, 0}};

#ifdef WITH_BP
void shape_leaves(shape_next *next, void *cookie, unsigned size);
void shape_bp_in_use(shape_next *next, void *cookie, unsigned size);
void shape_realigned(shape_next *next, void *cookie, unsigned size);
void shape_repeats(shape_next *next, void *cookie, unsigned size);

/* clang-format off */
__asm__(".text\n"
	/* Two frames of nothing but the return address, as of a leaf function. Two, so that the stack is aligned again. */
	".type shape_leaves, @function\n"
	"shape_leaves:\n"
	"	.cfi_startproc\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call shape_leaf\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size shape_leaves, . - shape_leaves\n"
	".type shape_leaf, @function\n"
	"shape_leaf:\n"
	"	.cfi_startproc\n"
	"	call *%rax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size shape_leaf, . - shape_leaf\n"

	/* rbp holds a number: an odd one, so that nobody can go by it. */
	".type shape_bp_in_use, @function\n"
	"shape_bp_in_use:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbp, -16\n"
	"	lea 7(%rdx), %rbp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	pop %rbp\n"
	"	.cfi_restore rbp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size shape_bp_in_use, . - shape_bp_in_use\n"

	/* A realigned frame as gcc makes it where arguments are on the stack: CFA = *(rbp - 8), rbp is at rbp. */
	".type shape_realigned, @function\n"
	"shape_realigned:\n"
	"	.cfi_startproc\n"
	"	lea 8(%rsp), %r10\n"
	"	.cfi_def_cfa r10, 0\n"
	"	and $-64, %rsp\n"
	"	push -8(%r10)\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_escape 0x10, 6, 2, 0x76, 0\n"
	"	push %r10\n"
	"	.cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n"
	"	sub $40, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	add $40, %rsp\n"
	"	pop %r10\n"
	"	.cfi_def_cfa r10, 0\n"
	"	pop %rbp\n"
	"	lea -8(%r10), %rsp\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	.cfi_restore rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size shape_realigned, . - shape_realigned\n"

	".type shape_repeats, @function\n"
	"shape_repeats:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbx, -16\n"
	"	push %r12\n"
	"	.cfi_def_cfa_offset 24\n"
	"	.cfi_offset r12, -24\n"
	"	push %r13\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset r13, -32\n"
	"	mov %rdi, %rbx\n"
	"	mov %rsi, %r12\n"
	"	mov %edx, %r13d\n"
	"1:	mov %r12, %rdi\n"
	"	call *%rbx\n"
	"	dec %r13d\n"
	"	jne 1b\n"
	"	pop %r13\n"
	"	.cfi_def_cfa_offset 24\n"
	"	pop %r12\n"
	"	.cfi_def_cfa_offset 16\n"
	"	pop %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size shape_repeats, . - shape_repeats\n");
/* clang-format on */

const struct shape shape_repeating = {"repeating", shape_repeats, 0};

const struct shape shapes_assembled[ASSEMBLED_COUNT] = {
	{"leaves", shape_leaves, 0}, {"bp_in_use", shape_bp_in_use, 0}, {"realigned", shape_realigned, 1}};
#endif
