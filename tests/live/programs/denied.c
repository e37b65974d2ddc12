/* SPDX-License-Identifier: MIT */
/*
 * denied CALL COMMAND...   becomes COMMAND, for which a system call fails from now on
 * init WORD...             says which process it is and what its words are, and ends with status 7: an init
 * denied stopping PID COUNT COMMAND...
 *                          stops process PID, makes and frees COUNT blocks of 777 bytes, has PID continue, and becomes
 *                          COMMAND
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALLS_MAX = 4 };

static const struct denied_call {
	const char *name;
	int error;
	int calls[CALLS_MAX];
} rows[] = {
	{"fork", EAGAIN, {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork}},
	{"mount", EPERM, {SYS_mount}},
	{"mkdir", ENOSPC, {SYS_mkdir, SYS_mkdirat}},
	{"stat", ENOMEM, {SYS_stat, SYS_newfstatat, SYS_statx, SYS_fstat}},
	{"access", ENOMEM, {SYS_access, SYS_faccessat, SYS_faccessat2}},
	{"readlink", ENOMEM, {SYS_readlink, SYS_readlinkat}},
	{"open", EMFILE, {SYS_open, SYS_openat}},
	{"read", EIO, {SYS_read}},
	{"mmap", ENOMEM, {SYS_mmap}},
	{"brk", ENOMEM, {SYS_brk}},
	{"wait", ECHILD, {SYS_wait4, SYS_waitid}},
	{"sleep", EINTR, {SYS_nanosleep, SYS_clock_nanosleep}},
	{"kill", EPERM, {SYS_kill}},
	{"setsid", EPERM, {SYS_setsid}},
	{"socket", EMFILE, {SYS_socket, SYS_socketpair}},
	{"ptrace", EPERM, {SYS_ptrace}},
};

static int deny(const struct denied_call *row)
{
	struct sock_filter code[CALLS_MAX + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {CALLS_MAX + 3, code};

	/* An empty place is read(0): compare with the first call once more. */
	for (int i = 0; i < CALLS_MAX; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (unsigned)(row->calls[i] ? row->calls[i] : row->calls[0]),
							   (unsigned char)(CALLS_MAX - i), 0);
	code[CALLS_MAX + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[CALLS_MAX + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)row->error);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/* By one write, without memory or a library's buffer. */
static int say_init(int count, char **words)
{
	char text[4096];
	int size = snprintf(text, sizeof(text), "init: %d", (int)getpid());

	for (int i = 0; i < count; i++)
		size += snprintf(text + size, sizeof(text) - (size_t)size, " %s", words[i]);
	text[size++] = '\n';
	return write(1, text, (size_t)size) == size ? 7 : 8;
}

static void *volatile block;

/* Busy for as long as the other process would be waited for. */
static int run_stopping(char **words)
{
	pid_t pid = (pid_t)atoi(words[0]);
	int count = atoi(words[1]);

	if (kill(pid, SIGSTOP) != 0)
		return 11;
	for (int i = 0; i < count; i++) {
		block = malloc(777);
		free(block);
	}
	kill(pid, SIGCONT);
	execv(words[2], words + 2);
	return 12;
}

int main(int count, char **words)
{
	const char *slash = strrchr(words[0], '/');

	if (!strcmp(slash ? slash + 1 : words[0], "init"))
		return say_init(count, words);
	if (count > 4 && !strcmp(words[1], "stopping"))
		return run_stopping(words + 2);
	for (size_t i = 0; count > 2 && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(words[1], rows[i].name)) {
			prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			if (!deny(&rows[i]))
				return 9;
			execv(words[2], words + 2);
			return 10;
		}
	if (count == 2 && !strcmp(words[1], "list"))
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			puts(rows[i].name);
	return count == 2 ? 0 : 2;
}
