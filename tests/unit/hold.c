/* SPDX-License-Identifier: MIT */
/* Whoever got the number of a process that is meant to be held is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/moment.h"
#include "os/proc.h"
#include "region/mail.h"
#include "session/hold.h"

enum { WAIT_MS = 1, WAITS = 20000 };

static pid_t standing_child(void)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Ask for pid to be held, where pidfd is what the logger opened before it found out who had sent the mail. */
static void hold(pid_t pid, int pidfd, bool is_meant)
{
	struct session_options options;
	struct doorbell doorbell = {0};
	struct session_clock clock = {0};
	struct region_mail mail = {.state = mail_word(MAIL_POSTED, 1)};
	struct session_directory directory = {.place = -1, .fd = -1};
	struct hold_request request = {.pid = pid, .tid = pid, .pidfd = pidfd, .directory = AT_FDCWD, .mail = &mail, .mail_tid = 1};
	struct hold_result result;
	session_options_init(&options);
	/* No program, for the kernel neither: it is held only, and no region is made. */
	assert_true(snprintf(request.path, sizeof(request.path), "%s/xheap-hold.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp") > 0);
	int file = mkstemp(request.path);
	assert_true(file >= 0 && write(file, "touch x\n", 8) == 8 && fchmod(file, 0755) == 0);
	close(file);
	struct holder *holder = holder_new(&options, &directory, NULL, &clock, &doorbell);
	assert_true(holder_start(holder, &request));
	for (int i = 0; i < WAITS && __atomic_load_n(&mail.state, __ATOMIC_ACQUIRE) != mail_word(MAIL_ANSWERED, 1); i++)
		moment_pause(WAIT_MS * NS_PER_MS);
	assert_int_equal(mail.state, mail_word(MAIL_ANSWERED, 1));
	unlink(request.path);
	if (is_meant) {
		assert_true(proc_status_value(pid, "TracerPid") > 0);
		holder_cancel(holder, &mail, 0);
	}
	/* A stranger's is over without anybody's doing. */
	while (!holder_take(holder, &result))
		moment_pause(WAIT_MS * NS_PER_MS);
	for (int i = 0; i < WAITS && proc_status_value(pid, "TracerPid") > 0; i++)
		moment_pause(WAIT_MS * NS_PER_MS);
	assert_int_equal(proc_status_value(pid, "TracerPid"), 0);
	assert_int_not_equal(proc_state(pid), 't');
}

static void test_who_is_meant_is_held(void **state)
{
	(void)state;
	pid_t pid = standing_child();
	hold(pid, (int)syscall(SYS_pidfd_open, pid, 0), true);
	end(pid);
}

static void test_who_has_the_number_now_is_not(void **state)
{
	(void)state;
	pid_t gone = standing_child(), pid = standing_child();
	int pidfd = (int)syscall(SYS_pidfd_open, gone, 0);
	end(gone);
	hold(pid, pidfd, false);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_is_meant_is_held), cmocka_unit_test(test_who_has_the_number_now_is_not)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
