/* SPDX-License-Identifier: MIT */
#include "session/logger/announce.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/trusted_files.h"
#include "session/control/control.h"
#include "session/tracer/image_start.h"

/* Open the keeper's directory. The variable may name anybody's: only root is spoken to. */
static int keeper_directory(void)
{
	char path[1024];
	const char *root = getenv(TRUSTED_ROOT_VARIABLE);
	snprintf(path, sizeof(path), "%s%s", root ? root : "", IMAGE_RUN_USUAL);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_root(int socket)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == 0;
}

int announce_session(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct control_message message = {.kind = CONTROL_ANNOUNCE, .pid = getpid()};
	int directory = keeper_directory();
	int fd = directory >= 0 ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
	int error = fd < 0 ? -errno : 0;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" ANNOUNCE_SOCKET, directory);
	snprintf(message.text, sizeof(message.text), "%s", name);
	if (!error && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
		error = -errno;
	if (!error && (!is_root(fd) || !control_send_within(fd, &message, 0)))
		error = -EPERM;
	if (directory >= 0)
		close(directory);
	if (error && fd >= 0)
		close(fd);
	return error ? error : fd;
}
