/* SPDX-License-Identifier: MIT */
/*
 * unannounced vfork|late|fork|exec PROGRAM ARGUMENT...: executes PROGRAM by system calls of its own, as Go's programs
 * do, and not by a function of the C library: in a child that shares its memory, in one that is waited for only after a
 * line of input, in a child that has a copy of it and calls the heap, or by itself. It ends as PROGRAM does.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHARES_MEMORY = 0x100, PARENT_WAITS = 0x4000, FAILED = 127 };

/* One piece, since parent and child share the stack: the child must not return. */
static long clone_and_execute(long flags, char *const *words, char *const *environment)
{
	long result = SYS_clone;
	register long none __asm__("r10") = 0;
	register const char *path __asm__("r12") = words[0];
	register char *const *arguments __asm__("r13") = words;
	register char *const *names __asm__("r14") = environment;
	register long zero __asm__("r8") = 0;

	/* clang-format off */
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\tjnz 1f\n\t"
			 "mov %[execve], %%eax\n\tmov %%r12, %%rdi\n\tmov %%r13, %%rsi\n\tmov %%r14, %%rdx\n\tsyscall\n\t"
			 "mov %[exit], %%eax\n\tmov %[failed], %%edi\n\tsyscall\n\t"
			 "1:"
			 : "+a"(result), "+D"(flags)
			 : "S"(0l), "d"(0l), "r"(none), "r"(zero), "r"(path), "r"(arguments), "r"(names), [execve] "i"(SYS_execve), [exit] "i"(SYS_exit),
			   [failed] "i"(FAILED)
			 : "rcx", "r11", "memory");
	/* clang-format on */
	return result;
}

static long system_call(long number, const void *a, const void *b, const void *c)
{
	long result = number;

	__asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static void use_heap(void)
{
	for (size_t i = 1; i <= 100; i++) {
		char *volatile block = malloc(i);
		*block = (char)i;
		free(block);
	}
}

int main(int count, char **words)
{
	extern char **environ;
	const char *how = count > 2 ? words[1] : "";
	int status;
	long child = 0;

	use_heap();
	if (!strcmp(how, "vfork") || !strcmp(how, "late"))
		child = clone_and_execute(SHARES_MEMORY | PARENT_WAITS | SIGCHLD, words + 2, environ);
	else if (!strcmp(how, "fork"))
		child = system_call(SYS_fork, NULL, NULL, NULL);
	else if (strcmp(how, "exec") != 0)
		return 2;
	if (child == 0) {
		use_heap();
		system_call(SYS_execve, words[2], words + 2, environ);
		_exit(FAILED);
	}
	if (!strcmp(how, "late"))
		getchar();
	if (child < 0 || waitpid((pid_t)child, &status, 0) < 0)
		return FAILED;
	use_heap();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
