/* SPDX-License-Identifier: MIT */
/* Filters run here and in the kernel: a child under each gets the answer that was computed, for system calls that do
   nothing. */
#include "inject/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BODY = 14, ROUNDS = 400, ARGUMENTS = 3 };

static uint32_t seed = 1;

static uint32_t any(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

/* Loads, computes and jumps at random, and answers with an error number from 1 to 255; all but getpid is allowed. */
static uint32_t make_filter(struct sock_filter *filter)
{
	static const uint16_t computing[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_OR, BPF_AND, BPF_XOR, BPF_LSH, BPF_RSH};
	static const uint16_t jumping[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
	uint32_t at = 0;
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 1, 0);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	for (int i = 0; i < 4; i++)
		filter[at++] = (struct sock_filter)BPF_STMT(BPF_ST, (uint32_t)i);
	for (uint32_t i = 0; i < BODY; i++) {
		uint32_t left = BODY - i - 1, kind = any(6);
		if (kind == 0)
			filter[at++] = (struct sock_filter)BPF_STMT(
				BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 4 * any(2 * ARGUMENTS));
		else if (kind == 1)
			filter[at++] =
				(struct sock_filter)BPF_STMT((any(2) ? BPF_LDX : BPF_LD) | BPF_W | BPF_MEM, any(4));
		else if (kind == 2)
			filter[at++] = (struct sock_filter)BPF_STMT(any(2) ? BPF_ST : BPF_STX, any(4));
		else if (kind == 3)
			filter[at++] = (struct sock_filter)BPF_STMT(BPF_MISC | (any(2) ? BPF_TAX : BPF_TXA), 0);
		else if (kind == 4)
			filter[at++] =
				(struct sock_filter)BPF_JUMP(BPF_JMP | jumping[any(4)] | (any(2) ? BPF_X : BPF_K),
							     any(300), (uint8_t)any(left + 1), (uint8_t)any(left + 1));
		else
			filter[at++] = (struct sock_filter)BPF_STMT(BPF_ALU | computing[any(8)] | BPF_K, any(30) + 1);
	}
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO | 1);
	filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	return at;
}

/* The error number that the kernel answers with; it tells no larger ones than fit a status. */
static int ask_kernel(struct sock_filter *filter, uint32_t count, const uint64_t *arguments)
{
	pid_t child = fork();
	if (child == 0) {
		struct sock_fprog program = {(unsigned short)count, filter};
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
			_exit(0);
		errno = 0;
		syscall(SYS_getpid, arguments[0], arguments[1], arguments[2]);
		_exit(errno & 0xff);
	}
	int status = 0;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_as_the_kernel(void **state)
{
	(void)state;
	int answered = 0;
	for (int round = 0; round < ROUNDS; round++) {
		struct sock_filter filter[BODY + 16];
		uint32_t count = make_filter(filter);
		uint64_t arguments[ARGUMENTS] = {any(300), ((uint64_t)any(1 << 20) << 32) | any(40), any(3)};
		struct seccomp_data call = {
			SYS_getpid, AUDIT_ARCH_X86_64, 0, {arguments[0], arguments[1], arguments[2]}};
		int kernel = ask_kernel(filter, count, arguments);
		if (!kernel) /* it could not be installed here */
			continue;
		uint32_t ours = filter_run(filter, count, &call);
		assert_int_equal(ours & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
		assert_int_equal(ours & 0xff, kernel);
		answered++;
	}
	assert_true(answered > ROUNDS / 2);
}

static void test_nonsense(void **state)
{
	(void)state;
	const struct seccomp_data call = {.nr = SYS_getpid};
	const struct sock_filter filters[][2] = {
		{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4000), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
		{BPF_STMT(BPF_LD | BPF_W | BPF_MEM, 4000), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
		{BPF_STMT(BPF_ST, 16), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
		{BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
		{BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
		{BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 255), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
	};
	for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
		assert_int_equal(filter_run(filters[i], 2, &call), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(filter_run(filters[0], 0, &call), SECCOMP_RET_KILL_PROCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_the_kernel), cmocka_unit_test(test_nonsense)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
