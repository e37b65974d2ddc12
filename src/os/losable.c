/* SPDX-License-Identifier: MIT */
#include "os/losable.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/monotonic.h"

/* How long after the deadline a child ends by itself, if nobody has killed it. */
enum { GRACE_S = 5 };

/* ---- messages ---- */

union fd_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(LOSABLE_FDS * sizeof(int))];
};

/* Send without waiting: a socket has room for one message. */
static bool message_send(int socket, const struct losable_message *message, unsigned deadline_ms)
{
	union fd_room room = {0};
	struct iovec parts[] = {{&deadline_ms, sizeof(deadline_ms)}, {message->bytes, message->size}};
	struct msghdr head = {.msg_iov = parts, .msg_iovlen = 2};
	if (message->fd_count) {
		head.msg_control = &room;
		head.msg_controllen = CMSG_SPACE(message->fd_count * sizeof(int));
		room.head.cmsg_level = SOL_SOCKET;
		room.head.cmsg_type = SCM_RIGHTS;
		room.head.cmsg_len = CMSG_LEN(message->fd_count * sizeof(int));
		memcpy(CMSG_DATA(&room.head), message->fds, message->fd_count * sizeof(int));
	}
	return sendmsg(socket, &head, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static void message_close(struct losable_message *message)
{
	for (unsigned i = 0; i < message->fd_count; i++)
		close(message->fds[i]);
	message->fd_count = 0;
}

/* Return 0, or a negative errno: -EPIPE if the other side has ended, -EMSGSIZE if there was no room. */
static int message_receive(int socket, struct losable_message *message, unsigned *deadline_ms)
{
	union fd_room room;
	struct iovec parts[] = {{deadline_ms, sizeof(*deadline_ms)}, {message->bytes, message->size}};
	struct msghdr head = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &room, .msg_controllen = sizeof(room)};
	ssize_t got = recvmsg(socket, &head, MSG_CMSG_CLOEXEC);
	message->fd_count = 0;
	if (got < (ssize_t)sizeof(*deadline_ms))
		return got < 0 ? -errno : -EPIPE;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(&head); part; part = CMSG_NXTHDR(&head, part))
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
			message->fd_count = (unsigned)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(message->fds, CMSG_DATA(part), message->fd_count * sizeof(int));
		}
	message->size = (size_t)got - sizeof(*deadline_ms);
	if (!(head.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 0;
	message_close(message);
	return -EMSGSIZE;
}

/* ---- the child ---- */

/* Keep only the socket, as descriptor 0. */
static void isolate(const char *name, int socket)
{
	sigset_t none;
	prctl(PR_SET_NAME, name);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (socket)
		dup2(socket, 0);
	close_range(1, ~0U, 0);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64});
}

/* Wait for a request, or for the caller's end. PR_SET_PDEATHSIG would come at the end of the thread that has forked. */
static void wait_for_request(pid_t parent, int parent_fd)
{
	enum { LOOK_MS = 1000 };
	struct pollfd polled[] = {{0, POLLIN, 0}, {parent_fd, POLLIN, 0}};
	while (poll(polled, 2, parent_fd < 0 ? LOOK_MS : -1) <= 0 || !polled[0].revents)
		if (polled[1].revents || getppid() != parent)
			_exit(0);
}

_Noreturn static void serve(const struct losable *losable, int socket, pid_t parent)
{
	/* Not on the stack: that of a thread may be small. */
	static char request_bytes[LOSABLE_BYTES], answer_bytes[LOSABLE_BYTES];
	isolate(losable->name, socket);
	int parent_fd = (int)syscall(SYS_pidfd_open, parent, 0);
	if (getppid() != parent)
		_exit(0);
	for (;;) {
		struct losable_message request = {.bytes = request_bytes, .size = sizeof(request_bytes)};
		struct losable_message answer = {.bytes = answer_bytes};
		unsigned deadline_ms;
		wait_for_request(parent, parent_fd);
		if (message_receive(0, &request, &deadline_ms) != 0)
			_exit(0);
		alarm(deadline_ms / 1000 + GRACE_S);
		losable->work(&request, &answer);
		alarm(0);
		if (!message_send(0, &answer, 0))
			_exit(1);
		message_close(&answer);
		message_close(&request);
	}
}

/* ---- the caller's table ---- */

static int child_start(struct losable *losable, struct losable_child *child)
{
	int sockets[2];
	pid_t self = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
		return -errno;
	pid_t pid = fork();
	int error = errno;
	if (pid == 0)
		serve(losable, sockets[1], self);
	close(sockets[1]);
	if (pid < 0) {
		close(sockets[0]);
		return -error;
	}
	*child = (struct losable_child){LOSABLE_IDLE, identity_take(pid), sockets[0], 0};
	return 0;
}

/* Someone else may have waited for the child. */
static bool child_has_ended(const struct losable_child *child)
{
	return waitpid(child->identity.pid, NULL, WNOHANG) != 0;
}

/* Free the rows of children that have ended. */
static void review(struct losable *losable)
{
	if (losable->owner != getpid()) {
		losable->owner = getpid();
		memset(losable->children, 0, sizeof(losable->children));
	}
	for (struct losable_child *child = losable->children; child < losable->children + LOSABLE_CHILDREN; child++)
		if (child->state != LOSABLE_FREE && child->state != LOSABLE_BUSY && child_has_ended(child)) {
			if (child->state == LOSABLE_IDLE)
				close(child->socket);
			identity_drop(&child->identity);
			child->state = LOSABLE_FREE;
		}
}

static unsigned count_of_key(const struct losable *losable, uint32_t key, int state)
{
	unsigned count = 0;
	for (int i = 0; i < LOSABLE_CHILDREN; i++)
		count += losable->children[i].key == key && (int)losable->children[i].state == state;
	return count;
}

static struct losable_child *child_in_state(struct losable *losable, int state)
{
	for (int i = 0; i < LOSABLE_CHILDREN; i++)
		if ((int)losable->children[i].state == state)
			return &losable->children[i];
	return NULL;
}

/* Find a child for a request, or start one. Return 0 or a negative errno. */
static int child_take(struct losable *losable, uint32_t key, uint64_t until_ns, struct losable_child **taken)
{
	struct timespec until = monotonic_at(until_ns);
	for (;;) {
		review(losable);
		unsigned lost = count_of_key(losable, key, LOSABLE_LOST);
		if (lost >= LOSABLE_OF_KEY)
			return -EBUSY;
		if (lost + count_of_key(losable, key, LOSABLE_BUSY) < LOSABLE_OF_KEY)
			break;
		if (pthread_cond_clockwait(&losable->changed, &losable->lock, CLOCK_MONOTONIC, &until) != 0)
			return -ETIMEDOUT;
	}
	struct losable_child *child = child_in_state(losable, LOSABLE_IDLE);
	if (!child) {
		child = child_in_state(losable, LOSABLE_FREE);
		int error = child ? child_start(losable, child) : -EBUSY;
		if (error)
			return error;
	}
	child->state = LOSABLE_BUSY;
	child->key = key;
	*taken = child;
	return 0;
}

/* Other processes that the caller has forked may have its end of the socket, too. */
static void child_release(struct losable_child *child, int state)
{
	identity_send_signal(&child->identity, SIGKILL);
	close(child->socket);
	child->state = state;
}

/* Take the child back. One that has not answered is lost; of others one stays. */
static void child_return(struct losable *losable, struct losable_child *child, bool has_answered)
{
	if (!has_answered) {
		child_release(child, LOSABLE_LOST);
	} else if (losable->is_once || child_in_state(losable, LOSABLE_IDLE)) {
		child_release(child, LOSABLE_ENDING);
	} else {
		child->state = LOSABLE_IDLE;
	}
	review(losable);
	pthread_cond_broadcast(&losable->changed);
}

/* ---- questions ---- */

/* Return whether something has come, or the other side has ended. */
static bool wait_for_answer(int socket, uint64_t until_ns)
{
	struct pollfd polled = {socket, POLLIN, 0};
	for (uint64_t now = monotonic_now_ns(); now < until_ns; now = monotonic_now_ns())
		if (poll(&polled, 1, (int)((until_ns - now) / NS_PER_MS) + 1) > 0)
			return true;
	return false;
}

/* Add to what the key was waited for. Return whether it has time left in this minute. */
static bool time_take(struct losable *losable, uint32_t key, uint64_t waited_ns)
{
	uint64_t minute = monotonic_now_ns() / (60 * NS_PER_S);
	uint32_t *waited_ms = &losable->waited_ms[key % LOSABLE_KEYS];
	if (minute != losable->minute)
		memset(losable->waited_ms, 0, sizeof(losable->waited_ms));
	losable->minute = minute;
	*waited_ms += (uint32_t)(waited_ns / NS_PER_MS);
	return !losable->minute_ms || *waited_ms < losable->minute_ms;
}

int losable_ask(struct losable *losable, uint32_t key, const struct losable_message *request,
		struct losable_message *answer, unsigned deadline_ms)
{
	uint64_t began_ns = monotonic_now_ns(), until_ns = began_ns + deadline_ms * NS_PER_MS;
	struct losable_child *child;
	answer->fd_count = 0;
	if (request->size > LOSABLE_BYTES || request->fd_count > LOSABLE_FDS)
		return -EMSGSIZE;
	pthread_mutex_lock(&losable->lock);
	int error = time_take(losable, key, 0) ? child_take(losable, key, until_ns, &child) : -EBUSY;
	pthread_mutex_unlock(&losable->lock);
	if (error)
		return error;
	unsigned unused;
	if (!message_send(child->socket, request, deadline_ms))
		error = -EPIPE;
	else if (!wait_for_answer(child->socket, until_ns))
		error = -ETIMEDOUT;
	else
		error = message_receive(child->socket, answer, &unused);
	pthread_mutex_lock(&losable->lock);
	child_return(losable, child, !error || error == -EMSGSIZE);
	time_take(losable, key, monotonic_now_ns() - began_ns);
	pthread_mutex_unlock(&losable->lock);
	return error;
}

void losable_end(struct losable *losable)
{
	pthread_mutex_lock(&losable->lock);
	review(losable);
	for (struct losable_child *child = losable->children; child < losable->children + LOSABLE_CHILDREN; child++)
		if (child->state == LOSABLE_IDLE)
			child_release(child, LOSABLE_ENDING);
	pthread_mutex_unlock(&losable->lock);
}
