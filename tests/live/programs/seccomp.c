/* SPDX-License-Identifier: MIT */
/*
 * seccomp strict   nothing but read, write and exit is left, to the program and to all that lives in it
 * seccomp filter   whoever calls anything but what an allocator needs is killed; with a thread
 * seccomp number   as filter, by prctl's number, for one thread
 * seccomp dispatch a call from anywhere but the C library's code is sent back to the program, which then fails; with a
 *                  thread that has no such thing
 * seccomp HOW BY   whoever makes a call that is xheap's alone is killed; then `seccomp after` is executed, by execve in
 *                  the same process ("exec") or in a child of fork, posix_spawn or a bare clone ("fork", "spawn",
 *                  "clone"). HOW: "deny", or "open" without a filter
 * seccomp after    makes 500 blocks of 777 bytes and frees 250
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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

static void filter_install(int is_by_prctl)
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
	if (is_by_prctl)
		EXPECT(!syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	else
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

static void test_filter(int is_by_prctl)
{
	pthread_t thread;

	EXPECT(!pthread_barrier_init(&barrier, NULL, 2));
	EXPECT(!pthread_create(&thread, NULL, run, NULL));
	pthread_barrier_wait(&barrier);
	filter_install(is_by_prctl);
	pthread_barrier_wait(&barrier);
	pairs(20000);
	kept = malloc(1 << 20);
	free(kept);
	EXPECT(!pthread_join(thread, NULL));
	end("ok\n");
}

enum { DISPATCH_ALLOWS, DISPATCH_BLOCKS };
static volatile char selector;
static volatile int dispatched;

static void note_dispatched(int signal)
{
	(void)signal;
	selector = DISPATCH_ALLOWS;
	dispatched++;
}

/* Have only the C library make calls. Return whether the kernel can. */
static int dispatch_begin(void)
{
	enum { SET_DISPATCH = 59, ON = 1 };
	unsigned long low = 0, high = 0, inside = (unsigned long)&write;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	while ((inside < low || inside >= high) && fgets(line, sizeof(line), maps))
		EXPECT(sscanf(line, "%lx-%lx", &low, &high) == 2);
	fclose(maps);
	signal(SIGSYS, note_dispatched);
	return prctl(SET_DISPATCH, ON, low, high - low, &selector) == 0;
}

static void test_dispatch(void)
{
	pthread_t thread;

	if (!dispatch_begin())
		end("ok\n");
	EXPECT(!pthread_barrier_init(&barrier, NULL, 2));
	selector = DISPATCH_BLOCKS;
	EXPECT(!pthread_create(&thread, NULL, run, NULL));
	pthread_barrier_wait(&barrier);
	pairs(100000);
	pthread_barrier_wait(&barrier);
	EXPECT(!pthread_join(thread, NULL));
	selector = DISPATCH_ALLOWS;
	EXPECT(!dispatched);
	end("ok\n");
}

/* Calls that no start of a program makes. */
static const int denied[] = {SYS_gettid, SYS_getpid,    SYS_getppid, SYS_futex,      SYS_madvise,
			     SYS_msync,  SYS_nanosleep, SYS_prctl,   SYS_socketpair, SYS_recvmsg};

static void denial_install(void)
{
	enum { COUNT = sizeof(denied) / sizeof(denied[0]) };
	struct sock_filter code[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};

	for (int i = 0; i < COUNT; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)denied[i],
							   (unsigned char)(COUNT - i), 0);
	code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = {COUNT + 3, code};
	EXPECT(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	EXPECT(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static void *volatile blocks[500];

static void run_after(void)
{
	for (int i = 0; i < 500; i++)
		blocks[i] = malloc(777);
	for (int i = 0; i < 500; i += 2)
		free(blocks[i]);
	end("ok\n");
}

static void run_by(const char *how)
{
	char *const words[] = {"seccomp", "after", NULL};
	pid_t pid = 0;
	int status = 0;

	if (!strcmp(how, "fork"))
		pid = fork();
	else if (!strcmp(how, "clone"))
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	else if (!strcmp(how, "spawn"))
		EXPECT(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, words, environ));
	if (!pid) {
		execv("/proc/self/exe", words);
		syscall(SYS_exit, 3);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	syscall(SYS_exit, WIFEXITED(status) ? WEXITSTATUS(status) : 128);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "after"))
		run_after();
	pairs(100);
	if (argc == 2 && !strcmp(argv[1], "strict"))
		test_strict();
	if (argc == 2 && !strcmp(argv[1], "filter"))
		test_filter(0);
	if (argc == 2 && !strcmp(argv[1], "number"))
		test_filter(1);
	if (argc == 2 && !strcmp(argv[1], "dispatch"))
		test_dispatch();
	if (argc == 3) {
		if (!strcmp(argv[1], "deny"))
			denial_install();
		run_by(argv[2]);
	}
	return 2;
}
