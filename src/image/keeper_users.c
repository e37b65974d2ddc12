/* SPDX-License-Identifier: MIT */
/*
 * Sessions of users that take starts. They announce themselves (session/logger/announce.h), and the kernel says whose
 * they are. Any user may connect as often as they like: a user has places for a few, and all users together have half
 * of the places.
 */
#include "image/keeper_users.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "image/keeper_state.h"
#include "image/user_share.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "session/directory/directory.h"
#include "session/logger/announce.h"

int keeper_announced_open(struct diag *diag)
{
	enum { BACKLOG = 128 };
	char path[IMAGE_PATH_BYTES];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	image_directory(IMAGE_DIRECTORY_RUN, path, sizeof(path));
	int directory = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" ANNOUNCE_SOCKET, directory);
	unlinkat(directory, ANNOUNCE_SOCKET, 0);
	bool is_made = directory >= 0 && fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		       fchmodat(directory, ANNOUNCE_SOCKET, 0666, 0) == 0 && listen(fd, BACKLOG) == 0;
	int error = is_made ? 0 : diag_errno(diag, "cannot make %s/" ANNOUNCE_SOCKET, path);
	if (directory >= 0)
		close(directory);
	if (error && fd >= 0)
		close(fd);
	return error ? error : fd;
}

/* Return whether there is a place for a session more of the share. */
static bool has_place(const struct keeper *keeper, uint32_t share)
{
	size_t count = 0, all = 0;
	for (size_t i = 0; i < keeper->session_count; i++) {
		all += keeper->sessions[i].is_announced;
		count += keeper->sessions[i].is_announced && keeper->sessions[i].share == share;
	}
	return all < KEPT_ANNOUNCED_MAX && count < SESSIONS_OF_USER_MAX;
}

void keeper_take_announced(struct keeper *keeper)
{
	enum { AT_ONCE = 128 };
	for (int i = 0; i < AT_ONCE && keeper->watcher >= 0; i++) {
		struct ucred peer;
		socklen_t size = sizeof(peer);
		int socket = accept4(keeper->announced, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (socket < 0)
			return;
		bool is_known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
		uint32_t share = is_known ? user_share(peer.pid) : IMAGE_SHARE_ROOT;
		/* Root's own sessions are found. */
		bool is_same = is_known && proc_status_value(peer.pid, "Uid") == (int64_t)peer.uid;
		if (share == IMAGE_SHARE_ROOT || peer.uid == 0 || !is_same || !has_place(keeper, share)) {
			close(socket);
			continue;
		}
		keeper->sessions[keeper->session_count++] = (struct kept_session){.id = keeper->next_id++,
										  .socket = socket,
										  .is_announced = true,
										  .user = peer.uid,
										  .share = share,
										  .asked_ns = monotonic_now_ns()};
	}
}

bool keeper_announced_name(struct kept_session *session, const struct control_message *message)
{
	if (message->kind != CONTROL_ANNOUNCE || !session_name_is_good(message->text))
		return false;
	snprintf(session->name, sizeof(session->name), "%u/%.64s", (unsigned)session->user, message->text);
	session->takes_images = true;
	return true;
}
