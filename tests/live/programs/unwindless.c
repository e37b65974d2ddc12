/* SPDX-License-Identifier: MIT */
/* unwindless COUNT: makes COUNT blocks from a function of this file that has no unwind data and no frame pointer, and
   COUNT from main, also in a thread. */
#include <pthread.h>
#include <stdlib.h>

void *call_through(void *(*function)(size_t), size_t size);

/* bp holds a number, as of any function that uses it as a register. */
/* clang-format off */
__asm__(".text\n"
	".globl call_through\n"
	".type call_through, @function\n"
	"call_through:\n"
	"	push %rbp\n"
	"	mov $1, %ebp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size call_through, . - call_through\n");
/* clang-format on */

static void *work(void *count)
{
	for (long i = 0; i < (long)count; i++) {
		free(call_through(malloc, 100));
		free(malloc(200));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *count = (void *)(argc > 1 ? atol(argv[1]) : 10);
	work(count);
	return pthread_create(&thread, NULL, work, count) || pthread_join(thread, NULL);
}
