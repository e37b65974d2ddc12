/* SPDX-License-Identifier: MIT */
/*
 * serving COUNT [ROUNDS]: a service that makes COUNT blocks, keeps them, then makes and frees ROUNDS blocks each
 * millisecond until SIGTERM, or MOST of them. At the end it prints its pid and the number of blocks that it has made.
 * Type=notify: it is started when it has COUNT blocks, and can be stopped.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { SERVED_BYTES = 777, MOST = 200000 };

static void make(long count, int is_freed)
{
	for (long i = 0; i < count; i++) {
		void *volatile block = malloc(SERVED_BYTES);
		if (is_freed)
			free(block);
	}
}

/* Send READY=1 to systemd, if that waits for it. */
static void notify(void)
{
	static const char ready[] = "READY=1";
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int out = path ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	if (out < 0)
		return;
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(address.sun_path));
	if (address.sun_path[0] == '@')
		address.sun_path[0] = 0;
	if (sendto(out, ready, sizeof(ready) - 1, 0, (struct sockaddr *)&address, size) < 0)
		perror("READY");
	close(out);
}

int main(int count, char **words)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	char text[64];
	long blocks = count > 1 ? atol(words[1]) : 0, rounds = count > 2 ? atol(words[2]) : 0;
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	make(blocks, 0);
	notify();
	while (sigtimedwait(&ends, NULL, rounds && blocks < MOST ? &pause : NULL) < 0 &&
	       (errno == EAGAIN || errno == EINTR)) {
		make(rounds, 1);
		blocks += rounds;
	}
	int length = snprintf(text, sizeof(text), "%d %ld\n", (int)getpid(), blocks);
	return write(STDOUT_FILENO, text, (size_t)length) == length ? 0 : 3;
}
