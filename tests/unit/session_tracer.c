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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/identity.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "region/message.h"
#include "session/control/option_rows.h"
#include "session/tracer/tracer.h"

enum { WAIT_MS = 1, WAITS = 20000, TRACERS_MAX = 8 };

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

/* Make a file that is no program, for the kernel neither: an exec of it is held only, and no region is made. */
static void make_text(char *path, size_t size)
{
	assert_true(snprintf(path, size, "%s/xheap-hold.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp") > 0);
	int file = mkstemp(path);
	assert_true(file >= 0 && write(file, "touch x\n", 8) == 8 && fchmod(file, 0755) == 0);
	close(file);
}

/* Ask for pid to be held, where identity is what the logger took before it found out who had sent the message. */
static void hold(pid_t pid, struct identity identity, bool is_meant)
{
	struct region_message message = {.state = message_word(MESSAGE_POSTED, 1)};
	struct tracer_task request = {.pid = pid,
				      .tid = pid,
				      .identity = identity,
				      .directory = AT_FDCWD,
				      .message = &message,
				      .message_tid = 1,
				      .region_path = ""};
	struct tracer_result result;
	make_text(request.path, sizeof(request.path));
	/* A tracer lives as long as its logger: nothing frees it, and what it was given stays. */
	static struct session_options options;
	static struct doorbell doorbell;
	static struct session_clock clock;
	static struct session_directory directory = {.place = -1, .fd = -1};
	static struct tracer *tracers[TRACERS_MAX];
	static unsigned tracer_count;
	assert_true(tracer_count < TRACERS_MAX);
	if (!tracer_count)
		session_options_init(&options);
	struct tracer *tracer = tracers[tracer_count++] = tracer_new(&options, &directory, NULL, &clock, &doorbell);
	assert_true(tracer_start(tracer, &request));
	for (int i = 0;
	     i < WAITS && __atomic_load_n(&message.state, __ATOMIC_ACQUIRE) != message_word(MESSAGE_ANSWERED, 1); i++)
		monotonic_pause(WAIT_MS * NS_PER_MS);
	assert_int_equal(message.state, message_word(MESSAGE_ANSWERED, 1));
	unlink(request.path);
	if (is_meant) {
		/* A user's tracer could take privileges from what the kernel executes such a file by. */
		assert_int_equal(proc_status_value(pid, "TracerPid") > 0, geteuid() == 0);
		tracer_cancel(tracer, &message, 0);
	}
	/* A stranger's is over without anybody's doing. */
	while (!tracer_take(tracer, &result))
		monotonic_pause(WAIT_MS * NS_PER_MS);
	for (int i = 0; i < WAITS && proc_status_value(pid, "TracerPid") > 0; i++)
		monotonic_pause(WAIT_MS * NS_PER_MS);
	assert_int_equal(proc_status_value(pid, "TracerPid"), 0);
	assert_int_not_equal(proc_state(pid), 't');
}

/* As where the kernel has no descriptors of processes to give. */
static struct identity without_descriptor(struct identity identity)
{
	assert_true(identity.pidfd >= 0 && !identity.start_time);
	close(identity.pidfd);
	return (struct identity){.pid = identity.pid, .pidfd = -1, .start_time = proc_start_time(identity.pid)};
}

static void test_who_is_meant_is_held(void **state)
{
	(void)state;
	pid_t pid = standing_child();
	hold(pid, identity_take(pid), true);
	hold(pid, without_descriptor(identity_take(pid)), true);
	end(pid);
}

/* The clock of start times ticks a hundred times a second: no number comes again as soon as that. */
static pid_t later_child(pid_t earlier)
{
	pid_t pid = standing_child();
	while (proc_start_time(pid) == proc_start_time(earlier)) {
		end(pid);
		pid = standing_child();
	}
	return pid;
}

static void test_who_has_the_number_now_is_not(void **state)
{
	(void)state;
	pid_t gone = standing_child(), pid = later_child(gone);
	struct identity first = identity_take(gone), second = without_descriptor(identity_take(gone));
	end(gone);
	assert_true(identity_has_ended(&first) && identity_has_ended(&second) && !identity_is_there(&first) &&
		    !identity_is_there(&second));
	first.pid = second.pid = pid;
	assert_true(identity_has_ended(&second) && !identity_is_there(&second));
	hold(pid, first, false);
	hold(pid, second, false);
	end(pid);
}

/* A process that has ended and waits for its parent has its number still. */
static void test_identity(void **state)
{
	(void)state;
	pid_t pid = standing_child();
	struct identity both[] = {identity_take(pid), without_descriptor(identity_take(pid))}, nobody = IDENTITY_NONE;
	for (int i = 0; i < 2; i++)
		assert_true(identity_is_known(&both[i]) && !identity_has_ended(&both[i]) &&
			    identity_is_there(&both[i]));
	identity_send_signal(&both[1], SIGKILL);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	for (int i = 0; i < 2; i++)
		assert_true(identity_has_ended(&both[i]) && identity_is_there(&both[i]));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 2; i++) {
		assert_true(identity_has_ended(&both[i]) && !identity_is_there(&both[i]));
		identity_drop(&both[i]);
	}
	assert_true(identity_has_ended(&nobody) && !identity_is_there(&nobody) && !identity_is_known(&nobody));
}

/* Short of descriptors, none is taken for this, and what is open for a moment finds some. */
static void test_last_descriptors(void **state)
{
	(void)state;
	struct rlimit before, limit;
	pid_t pid = standing_child();
	int lowest = dup(0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){(rlim_t)lowest + 1, before.rlim_max};
	close(lowest);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	struct identity identity = identity_take(pid);
	assert_true(identity.pidfd < 0 && identity.start_time && !identity_has_ended(&identity));
	/* Not even one to read when a process began. */
	limit.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(identity_has_ended(&identity));
	end(pid);
	assert_true(identity_has_ended(&identity));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- how many at a time ---- */

enum { NOBODY = 65534, EXECS_MAX = TRACER_USER_TASK_MAX + 4 };

/* Execs that are announced and put off, each by a process of its own. */
struct execs {
	struct tracer *tracer;
	struct tracer_task task;
	struct region_message messages[EXECS_MAX];
	pid_t pids[EXECS_MAX];
	int count;
};

/* The tracer stays, as in hold(). */
static struct execs execs;

static void execs_begin(const struct session_options *options, const struct session_directory *directory,
			const struct session_clock *clock, struct doorbell *doorbell)
{
	execs.task = (struct tracer_task){.directory = AT_FDCWD, .message_tid = 1};
	execs.count = 0;
	make_text(execs.task.path, sizeof(execs.task.path));
	execs.tracer = tracer_new(options, directory, NULL, clock, doorbell);
}

/* Begin a process of the user, and ask for its exec to be held. Return whether that begins. */
static bool exec_try(const char *region, uid_t user)
{
	struct region_message *message = &execs.messages[execs.count];
	int lines[2];
	char ready = 0;
	assert_true(execs.count < EXECS_MAX && pipe(lines) == 0);
	pid_t pid = execs.pids[execs.count++] = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bool is_user = user == 0 || setuid(user) == 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ready = is_user && write(lines[1], "r", 1) == 1;
		while (ready)
			pause();
		_exit(1);
	}
	close(lines[1]);
	assert_int_equal(read(lines[0], &ready, 1), 1);
	close(lines[0]);
	message->state = message_word(MESSAGE_POSTED, 1);
	execs.task.pid = execs.task.tid = pid;
	execs.task.identity = identity_take(pid);
	execs.task.message = message;
	execs.task.region_path = region;
	bool has_begun = tracer_start(execs.tracer, &execs.task);
	if (!has_begun)
		identity_drop(&execs.task.identity);
	return has_begun;
}

/* Cancel some of the execs, which gives room for others. */
static void execs_cancel(int first, int count)
{
	struct tracer_result result;
	for (int i = first; i < first + count; i++)
		tracer_cancel(execs.tracer, &execs.messages[i], 0);
	while (tracer_take(execs.tracer, &result))
		;
}

static void execs_end(void)
{
	execs_cancel(0, execs.count);
	assert_false(tracer_is_busy(execs.tracer));
	unlink(execs.task.path);
	for (int i = 0; i < execs.count; i++)
		end(execs.pids[i]);
}

/* Execs of one region leave room for those of others, and those of a user other than the logger's for other users. */
static void test_tasks_are_limited(void **state)
{
	static const char regions[][2] = {"1", "2", "3"};
	struct session_options options;
	struct doorbell doorbell = {0};
	struct session_clock clock = {0};
	struct session_directory directory = {.place = -1, .fd = -1};
	(void)state;
	/* A user's tracer holds no such file. */
	if (geteuid() != 0)
		skip();
	session_options_init(&options);
	execs_begin(&options, &directory, &clock, &doorbell);
	for (int i = 0; i < TRACER_REGION_TASK_MAX; i++)
		assert_true(exec_try(regions[0], NOBODY));
	assert_false(exec_try(regions[0], NOBODY));
	for (int i = TRACER_REGION_TASK_MAX; i < TRACER_USER_TASK_MAX; i++)
		assert_true(exec_try(regions[1], NOBODY));
	assert_false(exec_try(regions[2], NOBODY));
	assert_true(exec_try(regions[2], 0));
	execs_cancel(0, 1);
	assert_true(exec_try(regions[0], NOBODY));
	execs_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_is_meant_is_held),
					   cmocka_unit_test(test_who_has_the_number_now_is_not),
					   cmocka_unit_test(test_identity), cmocka_unit_test(test_tasks_are_limited),
					   cmocka_unit_test(test_last_descriptors)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
