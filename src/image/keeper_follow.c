/* SPDX-License-Identifier: MIT */
/*
 * A keeper that began before process 1 belongs to no service. The service's own keeper follows it: the service manager
 * starts, reloads and stops that one, and it takes the place of the early one if that is killed.
 */
#include "image/keeper_follow.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "image/keeper_state.h"
#include "os/fd.h"

/* Pass on what the service manager says. A terminal's Ctrl-C ends only this process. Return whether it is to end. */
static bool pass_on(int signals, int early, bool *is_stopping)
{
	struct signalfd_siginfo signal;
	while (read(signals, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
		if (signal.ssi_signo == SIGINT)
			return true;
		if (signal.ssi_signo == SIGHUP || signal.ssi_signo == SIGTERM)
			syscall(SYS_pidfd_send_signal, early, (int)signal.ssi_signo, NULL, 0);
		*is_stopping |= signal.ssi_signo == SIGTERM;
	}
	return false;
}

bool keeper_follow(const struct keeper *keeper)
{
	struct image_status status;
	bool is_stopping = false, is_over = false;
	image_status_read(&status);
	int early = status.is_early && status.keeper > 0 ? (int)syscall(SYS_pidfd_open, status.keeper, 0) : -1;
	/* The pid may have been another process's by then. */
	if (early >= 0 && !image_status_is_kept(&status))
		fd_close(&early);
	if (early < 0) {
		image_status_fini(&status);
		return false;
	}
	int signals = keeper_signals_open();
	keeper_say(keeper, "process %d watches since before process 1; this one follows it", (int)status.keeper);
	image_status_fini(&status);
	struct pollfd polled[] = {{early, POLLIN, 0}, {signals, POLLIN, 0}};
	keeper_announce_ready();
	while (!is_over && !polled[0].revents) {
		poll(polled, 2, -1);
		is_over = pass_on(signals, early, &is_stopping);
	}
	if (!is_over && !is_stopping)
		keeper_say(keeper, "the early watcher has ended; this one takes its place");
	close(early);
	close(signals);
	return is_over || is_stopping;
}
