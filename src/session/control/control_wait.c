/* SPDX-License-Identifier: MIT */
#include "session/control/control_wait.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/monotonic.h"
#include "os/proc.h"

static int64_t now_ms(void)
{
	return (int64_t)(monotonic_now_ns() / NS_PER_MS);
}

void control_wait_begin(struct control_wait *wait, int socket, int64_t total_ms)
{
	struct ucred peer = {.pid = 0, .uid = geteuid()};
	socklen_t size = sizeof(peer);
	*wait = (struct control_wait){.socket = socket, .silence_ms = CONTROL_WAIT_SILENCE_MS};
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		wait->is_other = peer.uid != geteuid();
	wait->logger = peer.pid;
	if (wait->is_other && total_ms > CONTROL_WAIT_OTHER_MS)
		total_ms = CONTROL_WAIT_OTHER_MS;
	wait->until_ms = now_ms() + total_ms;
	wait->silent_until_ms = now_ms() + wait->silence_ms;
	wait->cpu_ticks = wait->logger > 0 ? proc_cpu_ticks(wait->logger) : 0;
}

/* Return whether the logger works, or would if the machine let it. */
static bool shows_progress(struct control_wait *wait)
{
	if (wait->logger <= 0)
		return false;
	uint64_t ticks = proc_cpu_ticks(wait->logger);
	char state = proc_state(wait->logger);
	bool has_moved = ticks != wait->cpu_ticks;
	wait->cpu_ticks = ticks;
	return has_moved || state == 'R' || state == 'D';
}

int control_wait_receive(struct control_wait *wait, struct control_message *message, int slice_ms, struct diag *diag)
{
	int64_t now = now_ms(), left_ms = wait->until_ms - now;
	if (left_ms <= 0)
		return diag_fail(diag, ETIMEDOUT, "the session's logger has not answered in time");
	int got = control_receive(wait->socket, message, left_ms < slice_ms ? (int)left_ms : slice_ms);
	now = now_ms();
	if (got < 0)
		return diag_fail(diag, EPIPE, "the session's logger is gone");
	if (got > 0 && wait->is_other && ++wait->message_count > CONTROL_WAIT_OTHER_MESSAGES)
		return diag_fail(diag, E2BIG, "the session's logger sends more than %d messages",
				 CONTROL_WAIT_OTHER_MESSAGES);
	if (got > 0 || (now >= wait->silent_until_ms && shows_progress(wait)))
		wait->silent_until_ms = now + wait->silence_ms;
	if (!got && now >= wait->silent_until_ms)
		return diag_fail(diag, ETIMEDOUT, "the session's logger does not answer");
	return got;
}
