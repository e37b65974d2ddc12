/* SPDX-License-Identifier: MIT */
#include "session/store/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"

enum { WORKER_NICE = 19, READ_END = 0, WRITE_END = 1 };

static int spawn(struct worker *worker, const char *const *words, int input, int output, int errors)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all;
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	if (input >= 0)
		posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	if (output >= 0)
		posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	posix_spawnattr_setsigdefault(&attributes, &all);
	/* A group of its own: a priority is a thread's, and this is how all of them are reached. */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	int error = posix_spawn(&worker->pid, "/proc/self/exe", &actions, &attributes, (char *const *)words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -error;
}

int worker_begin(struct worker *worker, const char *const *words, bool is_talking)
{
	int input[2] = {-1, -1}, output[2] = {-1, -1}, errors[2] = {-1, -1};
	worker->pid = 0;
	bool has_pipes =
		(!is_talking || (!pipe2(input, O_CLOEXEC) && !pipe2(output, O_CLOEXEC))) && !pipe2(errors, O_CLOEXEC);
	int error = has_pipes ? spawn(worker, words, input[READ_END], output[WRITE_END], errors[WRITE_END]) : -errno;
	fd_close(&input[READ_END]);
	fd_close(&output[WRITE_END]);
	fd_close(&errors[WRITE_END]);
	*worker = (struct worker){worker->pid, input[WRITE_END], output[READ_END], errors[READ_END]};
	if (error) {
		fd_close(&worker->input);
		fd_close(&worker->output);
		fd_close(&worker->errors);
		return error;
	}
	if (is_talking) {
		fcntl(worker->input, F_SETFL, O_NONBLOCK);
		fcntl(worker->output, F_SETFL, O_NONBLOCK);
	}
	return 0;
}

int worker_wait(struct worker *worker, struct diag *diag)
{
	size_t size = 0;
	ssize_t got;
	int status = 0;
	fd_close(&worker->input);
	while (size + 1 < sizeof(diag->text) &&
	       ((got = read(worker->errors, diag->text + size, sizeof(diag->text) - 1 - size)) > 0 ||
		(got < 0 && errno == EINTR)))
		size += got > 0 ? (size_t)got : 0;
	diag->text[size] = 0;
	diag->text[strcspn(diag->text, "\n")] = 0;
	fd_close(&worker->errors);
	fd_close(&worker->output);
	while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return diag->text[0] ? -EIO
			     : diag_fail(diag, EIO, "its process was ended by signal %d",
					 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

void worker_is_begun(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void worker_yield(bool is_idle)
{
	/* Here a process is a thread. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), WORKER_NICE);
	if (is_idle)
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
}

void worker_is_dispensable(void)
{
	static const char most[] = "1000";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	ssize_t written = fd < 0 ? 0 : write(fd, most, strlen(most));
	(void)written;
	fd_close(&fd);
}
