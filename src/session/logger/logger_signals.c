/* SPDX-License-Identifier: MIT */
#include "session/logger/logger_signals.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "os/limits.h"

static sigset_t end_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	return set;
}

bool logger_take_end_signal(pid_t *sender)
{
	const sigset_t set = end_signals();
	siginfo_t sent = {0};
	bool has_come = sigtimedwait(&set, &sent, &(struct timespec){0}) == SIGTERM;
	*sender = has_come ? sent.si_pid : 0;
	return has_come;
}

/* Leave the process group and the terminal, but not the session: in a session of its own, the logger got no processor
   for more than ten seconds on a busy machine (docs/decisions/042-session-of-the-logger.md). */
static void leave_terminal(void)
{
	setpgid(0, 0);
	/* A leader that leaves its terminal would take it from all others. */
	int terminal = getsid(0) == getpid() ? -1 : open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal < 0)
		return;
	ioctl(terminal, TIOCNOTTY);
	close(terminal);
}

void logger_isolate(int control)
{
	leave_terminal();
	limits_raise(NULL);
	prctl(PR_SET_NAME, "xheap-logger");
	static const int ignored[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU,
				      SIGHUP, SIGPIPE, SIGXFSZ, SIGIO,   SIGUSR2};
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	/* Blocked before it is no longer ignored. */
	const sigset_t ending = end_signals();
	sigprocmask(SIG_SETMASK, &ending, NULL);
	signal(SIGTERM, SIG_DFL);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		if (fd != control)
			dup2(null, fd);
	/* Close all other descriptors: no pipe may seem in use because of the logger. */
	if (control > 3)
		close_range(3, (unsigned)control - 1, 0);
	close_range((unsigned)control + 1, UINT_MAX, 0);
}
