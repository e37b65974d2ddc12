/* SPDX-License-Identifier: MIT */
#include "session/control/control.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

bool control_send_within(int socket, const struct control_message *message, int timeout_ms)
{
	ssize_t sent;
	while ((sent = send(socket, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT)) < 0) {
		struct pollfd descriptor = {.fd = socket, .events = POLLOUT};
		if (errno != EINTR && (errno != EAGAIN || poll(&descriptor, 1, timeout_ms) <= 0))
			return false;
	}
	return sent == (ssize_t)sizeof(*message);
}

bool control_send(int socket, const struct control_message *message)
{
	return control_send_within(socket, message, CONTROL_PATIENCE_MS);
}

int control_receive(int socket, struct control_message *message, int timeout_ms)
{
	struct pollfd descriptor = {.fd = socket, .events = POLLIN};
	int ready = poll(&descriptor, 1, timeout_ms);
	if (ready <= 0)
		return 0;
	ssize_t got = recv(socket, message, sizeof(*message), MSG_DONTWAIT);
	/* ECONNRESET, if the other side ended before it had read all, is reported once, before its last messages. */
	if (got < 0 && errno == ECONNRESET)
		got = recv(socket, message, sizeof(*message), MSG_DONTWAIT);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (got != (ssize_t)sizeof(*message))
		return -1;
	message->text[sizeof(message->text) - 1] = 0;
	return 1;
}
