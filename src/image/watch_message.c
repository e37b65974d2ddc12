/* SPDX-License-Identifier: MIT */
#include "image/watch_message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union room {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

bool watch_send(int socket, const struct watch_message *message, int fd, bool wait)
{
	struct iovec part = {(void *)message, offsetof(struct watch_message, text) + strlen(message->text) + 1};
	union room room = {{0}};
	struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd >= 0) {
		head.msg_control = room.bytes;
		head.msg_controllen = sizeof(room.bytes);
		struct cmsghdr *item = CMSG_FIRSTHDR(&head);
		item->cmsg_level = SOL_SOCKET;
		item->cmsg_type = SCM_RIGHTS;
		item->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(item), &fd, sizeof(fd));
	}
	ssize_t sent;
	do
		sent = sendmsg(socket, &head, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
	while (sent < 0 && errno == EINTR);
	/* Nobody waits for it again. */
	if (sent < 0 && wait && errno == EAGAIN)
		shutdown(socket, SHUT_RDWR);
	return sent >= 0;
}

int watch_receive(int socket, struct watch_message *message, int *fd)
{
	struct iovec part = {message, sizeof(*message)};
	union room room;
	struct msghdr head = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof(room.bytes)};
	*fd = -1;
	ssize_t got;
	do
		got = recvmsg(socket, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
	if (got == 0)
		return -1;
	const struct cmsghdr *item = CMSG_FIRSTHDR(&head);
	if (item && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(item), sizeof(*fd));
	message->text[sizeof(message->text) - 1] = 0;
	return 1;
}
