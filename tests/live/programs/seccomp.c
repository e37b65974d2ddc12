/* SPDX-License-Identifier: MIT */
/*
 * seccomp strict   nothing but read, write and exit is left, to the program and to all that lives in it
 * seccomp filter   whoever calls anything but what an allocator needs is killed; with a thread
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "expect.h"

static _Thread_local void *volatile kept;

__attribute__((noinline)) static void pairs(int count)
{
	for (int i = 0; i < count; i++) {
		kept = malloc(20 + (size_t)(i % 900));
		if (i % 5)
			free(kept);
	}
}

static void end(const char *text)
{
	ssize_t ignored = write(1, text, strlen(text));

	(void)ignored;
	syscall(SYS_exit, 0);
}

/* The heap has grown before, so that no system call is needed later. */
static void test_strict(void)
{
	EXPECT(mallopt(M_TRIM_THRESHOLD, 1 << 30) && mallopt(M_MMAP_THRESHOLD, 1 << 25));
	kept = malloc(8 << 20);
	free(kept);
	EXPECT(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	pairs(5000);
	end("ok\n");
}

static const int allowed[] = {
	SYS_read, SYS_write, SYS_exit,     SYS_exit_group, SYS_mmap,           SYS_munmap,
	SYS_brk,  SYS_futex, SYS_mprotect, SYS_madvise,    SYS_rt_sigprocmask, SYS_set_robust_list};

static void filter_install(void)
{
	enum { COUNT = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter code[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};

	for (int i = 0; i < COUNT; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i],
							   (unsigned char)(COUNT - i), 0);
	code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {COUNT + 3, code};
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	EXPECT(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
}

static pthread_barrier_t barrier;

static void *run(void *unused)
{
	pairs(100);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	pairs(3000);
	return unused;
}

static void test_filter(void)
{
	pthread_t thread;

	EXPECT(!pthread_barrier_init(&barrier, NULL, 2));
	EXPECT(!pthread_create(&thread, NULL, run, NULL));
	pthread_barrier_wait(&barrier);
	filter_install();
	pthread_barrier_wait(&barrier);
	pairs(20000);
	kept = malloc(1 << 20);
	free(kept);
	EXPECT(!pthread_join(thread, NULL));
	end("ok\n");
}

int main(int argc, char **argv)
{
	pairs(100);
	if (argc == 2 && !strcmp(argv[1], "strict"))
		test_strict();
	if (argc == 2 && !strcmp(argv[1], "filter"))
		test_filter();
	return 2;
}
