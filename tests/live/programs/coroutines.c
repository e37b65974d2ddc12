/* SPDX-License-Identifier: MIT */
/* Coroutines, by makecontext and by hand, on stacks that are unmapped as soon as they have ended; the next one gets the
   same addresses. */
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "expect.h"

enum { STACK_BYTES = 65536, ROUNDS = 300 };

static char *stack_new(void)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(stack != MAP_FAILED);
	return stack;
}

static void *kept;

__attribute__((noinline)) static void nest(int depth)
{
	void *block = malloc(16 + (size_t)depth);

	EXPECT(block);
	if (depth > 0)
		nest(depth - 1);
	else
		kept = malloc(333);
	free(block);
}

static ucontext_t outside, inside;

static void context_main(void)
{
	nest(5);
	EXPECT(!swapcontext(&inside, &outside));
	nest(9);
	free(kept);
}

static void by_context(int round)
{
	char *stack = stack_new();

	EXPECT(!getcontext(&inside));
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, context_main, 0);
	EXPECT(!swapcontext(&outside, &inside));
	free(kept);
	nest(round % 7);
	free(kept);
	EXPECT(!swapcontext(&outside, &inside));
	munmap(stack, STACK_BYTES);
}

/* Saves the callee's registers here, goes to another stack, comes back by the same door. */
void switch_stack(void **save, void *to);
/* clang-format off */
__asm__(".text\n"
	".globl switch_stack\n"
	".type switch_stack, @function\n"
	"switch_stack:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n"
	".size switch_stack, . - switch_stack\n");
/* clang-format on */

static void *outer, *inner;
static volatile int finished;

static void hand_main(void)
{
	nest(3);
	free(kept);
	switch_stack(&inner, outer);
	nest(8);
	free(kept);
	finished = 1;
	switch_stack(&inner, outer);
	abort();
}

static void by_hand(void)
{
	char *stack = stack_new();
	uint64_t *top = (uint64_t *)(stack + STACK_BYTES) - 3; /* as after a call: 8 off a multiple of 16 */

	finished = 0;
	*--top = (uint64_t)(uintptr_t)hand_main;
	for (int i = 0; i < 6; i++)
		*--top = 0;
	inner = top;
	switch_stack(&outer, inner);
	nest(2);
	free(kept);
	switch_stack(&outer, inner);
	EXPECT(finished);
	munmap(stack, STACK_BYTES);
}

int main(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		by_context(round);
		by_hand();
	}
	puts("ok");
	return 0;
}
