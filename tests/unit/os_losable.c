/* SPDX-License-Identifier: MIT */
/* Questions that hang: the caller goes on, and others are answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/losable.h"

enum { PATIENT_MS = 60000, SHORT_MS = 100, THREADS = 8, QUESTIONS = 50, HOLDER_MAX = 64 };

/* What a child is asked. */
enum word { WHO, FIRST_BYTE, STATE, HANG, HANG_UNKILLABLE, END, TOO_MUCH };

struct question {
	enum word word;
	int number;
};

struct reply {
	pid_t pid;
	int number, descriptors;
	bool has_defaults;
};

/* Processes that keep lost children from ending. */
static struct {
	volatile pid_t pids[HOLDER_MAX];
	volatile int count;
} * holders;

static int open_descriptors(void)
{
	int count = 0;
	DIR *directory = opendir("/proc/self/fd");
	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count - 3; /* ".", ".." and that of the directory */
}

/* SIGKILL ends this process, but its parent can wait for it only when the holder has ended. */
static void be_held(void)
{
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	pid_t holder = fork();
	if (holder != 0)
		return;
	alarm(PATIENT_MS / 1000);
	if (ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0 && holders->count < HOLDER_MAX)
		holders->pids[holders->count++] = getpid();
	for (;;)
		pause();
}

static void reply_state(struct reply *reply)
{
	sigset_t blocked;
	struct sigaction action;
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	sigaction(SIGTERM, NULL, &action);
	reply->has_defaults = sigisemptyset(&blocked) && action.sa_handler == SIG_DFL;
	reply->descriptors = open_descriptors();
}

static void work(const struct losable_message *request, struct losable_message *answer)
{
	struct question question;
	memcpy(&question, request->bytes, sizeof(question));
	struct reply reply = {.pid = getpid(), .number = question.number};
	char byte = 0;
	switch (question.word) {
	case WHO:
		break;
	case FIRST_BYTE:
		/* The descriptor goes back, too. */
		if (request->fd_count == 1 && read(request->fds[0], &byte, 1) == 1)
			answer->fds[answer->fd_count++] = dup(request->fds[0]);
		reply.number = byte;
		break;
	case STATE:
		reply_state(&reply);
		break;
	case HANG_UNKILLABLE:
		be_held();
		pause();
		break;
	case HANG:
		for (;;)
			pause();
	case END:
		_exit(0);
	case TOO_MUCH:
		answer->size = LOSABLE_BYTES;
		return;
	}
	memcpy(answer->bytes, &reply, sizeof(reply));
	answer->size = sizeof(reply);
}

static int ask_with(struct losable *losable, uint32_t key, struct question question, struct losable_message *request,
		    struct losable_message *answer)
{
	bool hangs = question.word == HANG || question.word == HANG_UNKILLABLE;
	request->bytes = &question;
	request->size = sizeof(question);
	return losable_ask(losable, key, request, answer, hangs ? SHORT_MS : PATIENT_MS);
}

static int ask(struct losable *losable, uint32_t key, enum word word, int number, struct reply *reply)
{
	struct losable_message request = {.fd_count = 0}, answer = {.bytes = reply, .size = sizeof(*reply)};
	int error = ask_with(losable, key, (struct question){word, number}, &request, &answer);
	assert_true(error || answer.size == sizeof(*reply));
	assert_int_equal(answer.fd_count, 0);
	return error;
}

static pid_t who(struct losable *losable, uint32_t key)
{
	struct reply reply;
	assert_int_equal(ask(losable, key, WHO, 0, &reply), 0);
	return reply.pid;
}

static void test_answers(void **state)
{
	struct losable losable = LOSABLE("test", work, 0);
	struct reply reply;
	(void)state;
	pid_t first = who(&losable, 1);
	assert_int_not_equal(first, getpid());
	assert_int_equal(who(&losable, 2), first);
	assert_int_equal(ask(&losable, 1, WHO, 77, &reply), 0);
	assert_int_equal(reply.number, 77);
	assert_int_equal(ask(&losable, 1, TOO_MUCH, 0, &reply), -EMSGSIZE);
	assert_int_equal(who(&losable, 1), first);
	losable_end(&losable);
}

static void test_descriptors(void **state)
{
	struct losable losable = LOSABLE("test", work, 0);
	int lines[2];
	char byte = 0;
	struct reply reply;
	(void)state;
	assert_int_equal(pipe(lines), 0);
	assert_int_equal(write(lines[1], "xy", 2), 2);
	struct losable_message request = {.fd_count = 1, .fds = {lines[0]}};
	struct losable_message answer = {.bytes = &reply, .size = sizeof(reply)};
	int before = open_descriptors();
	assert_int_equal(ask_with(&losable, 1, (struct question){FIRST_BYTE, 0}, &request, &answer), 0);
	assert_int_equal(reply.number, 'x');
	assert_int_equal(answer.fd_count, 1);
	assert_int_equal(read(answer.fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	close(answer.fds[0]);
	/* The socket, and perhaps the child's identity. */
	assert_in_range(open_descriptors() - before, 1, 2);
	losable_end(&losable);
}

/* Nothing of the caller is left in the child, nor of an earlier request. */
static void test_isolation(void **state)
{
	struct losable losable = LOSABLE("test", work, 0);
	struct reply reply;
	int lines[2];
	sigset_t blocked, before;
	(void)state;
	sigfillset(&blocked);
	sigprocmask(SIG_SETMASK, &blocked, &before);
	signal(SIGTERM, SIG_IGN);
	assert_int_equal(pipe(lines), 0);
	assert_int_equal(write(lines[1], "x", 1), 1);
	struct losable_message request = {.fd_count = 1, .fds = {lines[0]}};
	struct losable_message answer = {.bytes = &reply, .size = sizeof(reply)};
	assert_int_equal(ask_with(&losable, 1, (struct question){FIRST_BYTE, 0}, &request, &answer), 0);
	assert_int_equal(answer.fd_count, 1);
	close(answer.fds[0]);
	assert_int_equal(ask(&losable, 1, STATE, 0, &reply), 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	signal(SIGTERM, SIG_DFL);
	assert_true(reply.has_defaults);
	/* Its socket, and the descriptor of its parent. */
	assert_in_range(reply.descriptors, 1, 2);
	losable_end(&losable);
}

static void test_lost(void **state)
{
	struct losable losable = LOSABLE("test", work, 0);
	struct reply reply;
	(void)state;
	pid_t first = who(&losable, 1);
	assert_int_equal(ask(&losable, 1, HANG, 0, &reply), -ETIMEDOUT);
	pid_t second = who(&losable, 1);
	assert_int_not_equal(second, first);
	assert_int_equal(ask(&losable, 1, END, 0, &reply), -EPIPE);
	assert_int_not_equal(who(&losable, 1), second);
	/* An idle child may be killed by anybody. */
	kill(who(&losable, 1), SIGKILL);
	while (ask(&losable, 1, WHO, 0, &reply) != 0)
		;
	losable_end(&losable);
}

/* Those that do not end count for their user, and keep no other from asking. */
static void test_lost_of_key(void **state)
{
	struct losable losable = LOSABLE("test", work, 0);
	struct reply reply;
	(void)state;
	holders->count = 0;
	/* One that was killed before it was held ends. */
	while (holders->count < LOSABLE_OF_KEY)
		assert_int_not_equal(ask(&losable, 1, HANG_UNKILLABLE, 0, &reply), 0);
	assert_int_equal(ask(&losable, 1, WHO, 0, &reply), -EBUSY);
	who(&losable, 2);
	kill(holders->pids[0], SIGKILL);
	while (ask(&losable, 1, WHO, 0, &reply) == -EBUSY)
		usleep(1000);
	who(&losable, 1);
	for (int i = 0; i < holders->count; i++)
		kill(holders->pids[i], SIGKILL);
	losable_end(&losable);
}

static void *ask_in_thread(void *cookie)
{
	struct losable *losable = cookie;
	struct reply reply;
	long failures = 0;
	for (int i = 0; i < QUESTIONS; i++)
		failures += ask(losable, 1, WHO, i, &reply) != 0 || reply.number != i;
	return (void *)failures;
}

static void test_threads(void **state)
{
	struct losable losable = LOSABLE("test", work, 0);
	pthread_t threads[THREADS];
	void *failures;
	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_in_thread, &losable), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failures), 0);
		assert_null(failures);
	}
	/* A child outlives the thread that has started it. */
	pid_t left = who(&losable, 1);
	usleep(10000);
	assert_int_equal(who(&losable, 1), left);
	losable_end(&losable);
}

/* A forked process has children of its own, and they end with it. */
/* A key has its time in each minute, and others have theirs. */
static void test_minute(void **state)
{
	enum { MINUTE_MS = 50 };
	struct losable losable = LOSABLE("test", work, MINUTE_MS);
	struct reply reply;
	(void)state;
	who(&losable, 1);
	/* As if that had been slow. */
	losable.waited_ms[1] = MINUTE_MS;
	uint64_t minute = losable.minute;
	int error = ask(&losable, 1, WHO, 0, &reply);
	assert_true(error == -EBUSY || losable.minute != minute);
	who(&losable, 2);
	losable.minute--;
	who(&losable, 1);
	losable_end(&losable);
}

static void test_parents(void **state)
{
	struct losable losable = LOSABLE("test", work, 0);
	int status, lines[2];
	pid_t own = who(&losable, 1), other = 0;
	(void)state;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(pipe(lines), 0);
	pid_t forked = fork();
	if (forked == 0) {
		other = who(&losable, 1);
		_exit(write(lines[1], &other, sizeof(other)) != sizeof(other));
	}
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
	assert_int_equal(read(lines[0], &other, sizeof(other)), sizeof(other));
	assert_true(other > 0 && other != own);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(who(&losable, 1), own);
	losable_end(&losable);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_descriptors), cmocka_unit_test(test_isolation),
		cmocka_unit_test(test_lost),    cmocka_unit_test(test_lost_of_key), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_minute),  cmocka_unit_test(test_parents),
	};
	holders = mmap(NULL, sizeof(*holders), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return holders == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
