/* SPDX-License-Identifier: MIT */
/* strict SECONDS: forbids itself all system calls but a few, and sleeps. The kernel would resume the sleep by restart_syscall, which kills it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ALLOWED(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int count, char **words)
{
	struct timespec left = {count > 1 ? atol(words[1]) : 1, 0};
	struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				       ALLOWED(SYS_write), ALLOWED(SYS_exit_group), ALLOWED(SYS_clock_nanosleep),
				       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
	struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 2;
	if (write(STDOUT_FILENO, "sleeps\n", 7) != 7)
		return 3;
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
	_exit(0);
}
