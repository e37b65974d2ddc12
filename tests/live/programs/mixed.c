/* SPDX-License-Identifier: MIT */
/*
 * A 64-bit program that spends most of its time in 32-bit code, as emulators of other systems do: mixed [alone].
 * Between two stays there it calls the heap. Another thread waits for the end of its standard input; alone, it looks
 * for that itself, seldom. Status 0 if its counts were right.
 */
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STAY = 20000000 };

/* A page below 4 GiB, in which 32-bit code has its stack. */
struct low {
	volatile uint32_t is_over; /* a stay ends at once */
	uint64_t stack_kept;
	unsigned char stack[4080];
};
_Static_assert(offsetof(struct low, stack_kept) == 8 && sizeof(struct low) == 4096, "as the code below has it");

/* The number of turns that were made in 32-bit code of at most so many: `turns`, or fewer when it is over. Runs from a
   copy below 4 GiB. */
typedef uint32_t stay(struct low *low, uint64_t unused, uint32_t turns);
extern const unsigned char stay_code[], stay_code_end[];
/* clang-format off */
__asm__(".pushsection .rodata\n"
	"stay_code:\n"
	"	push %rbx; push %rbp\n"
	"	mov %rsp, 8(%rdi)\n"
	"	lea 4096(%rdi), %rsp\n"
	"	lea 4f(%rip), %rsi\n"
	"	lea 1f(%rip), %rax\n"
	"	push $0x23; push %rax; lretq\n"
	".code32\n"
	"1:	mov $0x2b, %eax; mov %eax, %ds\n"
	"	xor %eax, %eax\n"
	/* One byte that would be part of the next instruction in 64-bit code. */
	"2:	inc %eax\n"
	"	cmpl $0, (%edi); jne 3f\n"
	"	cmp %eax, %edx; jne 2b\n"
	"3:	push $0x33; push %esi; lret\n"
	".code64\n"
	"4:	mov %edi, %edi\n"
	"	mov 8(%rdi), %rsp\n"
	"	pop %rbp; pop %rbx; ret\n"
	"stay_code_end:\n"
	".popsection\n");
/* clang-format on */

static void *wait_for_end(void *argument)
{
	char byte;
	struct low *low = argument;
	while (read(0, &byte, 1) > 0)
		;
	low->is_over = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT;
	struct low *low = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE, flags, -1, 0);
	void *code = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
	int is_alone = argc > 1 && !strcmp(argv[1], "alone");
	uint32_t turns = is_alone ? STAY * 50 : STAY;
	struct pollfd input = {0, POLLIN, 0};
	pthread_t thread;
	if (low == MAP_FAILED || code == MAP_FAILED || (!is_alone && pthread_create(&thread, NULL, wait_for_end, low)))
		return 2;
	memcpy(code, stay_code, (size_t)(stay_code_end - stay_code));
	while (!low->is_over) {
		uint32_t made = ((stay *)code)(low, 0, turns);
		if (made != turns && !low->is_over)
			return 1;
		void *volatile block = malloc(1000);
		free(block);
		low->is_over |= is_alone && poll(&input, 1, 0) != 0;
	}
	return 0;
}
