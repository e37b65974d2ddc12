/* SPDX-License-Identifier: MIT */
/*
 * A false session of any user: FALSE_LOGGER PLACE NAME KIND. It makes the session NAME in the directory PLACE, writes a
 * line when it can be connected to, and a line for each connection. KIND says what it does with connections:
 *
 *     mute     takes them, and never answers
 *     full     takes none: its queue is full
 *     busy     says without end that it is busy
 *     notes    sends notes without end
 *     targets  sends rows of an answer without end
 *     steer    answers everything, with text that steers terminals in each field
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "session/control/control.h"

enum { CONNECTIONS_MAX = 64, ROUND_MS = 1 };

/* A colour, a title, a bell, a control character of eight bits, a character that turns the direction, a new line, and a
   return to its beginning. */
#define STEERING "\033[31mred\033]0;title\007\302\233bell\007\342\200\256right\nxheap: a line\rover"

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

/* Make the session's directory, its socket and its name. Return the listening socket. */
static int listen_as(const char *place, const char *name, int backlog)
{
	char path[400], link[400];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mkdir(place, 0700);
	snprintf(path, sizeof(path), "%s/of-%s", place, name);
	snprintf(link, sizeof(link), "%s/%s.session", place, name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (mkdir(path, 0700) || symlink(strrchr(path, '/') + 1, link) || chdir(path))
		exit(1);
	strcpy(address.sun_path, "control");
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, backlog))
		exit(1);
	return fd;
}

static void fill_queue(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "control"};
	int fd;
	do
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
}

static bool message_send(int fd, enum control_kind kind, int pid, const char *text)
{
	struct control_message message = {.kind = kind, .pid = pid};
	if (kind == CONTROL_STATE)
		message.state.takes_images = 1;
	if (kind == CONTROL_TARGET)
		message.target.is_limited = 1;
	if (kind == CONTROL_INACTIVE)
		message.inactive.threads = 1;
	snprintf(message.text, sizeof(message.text), "%s", text);
	return send(fd, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* Answer as a logger does, but for the texts. */
static void steer(int fd, const struct control_message *asked)
{
	message_send(fd, CONTROL_NOTE, 0, STEERING);
	switch (asked->kind) {
	case CONTROL_QUERY:
		message_send(fd, CONTROL_STATE, 1, "/tmp/" STEERING ".xht");
		message_send(fd, CONTROL_TARGET, 1, STEERING);
		if (asked->value)
			message_send(fd, CONTROL_THREAD, 1, STEERING);
		message_send(fd, CONTROL_INACTIVE, 1, STEERING);
		message_send(fd, CONTROL_DONE, 0, STEERING);
		break;
	case CONTROL_ATTACH:
	case CONTROL_LAUNCH:
		message_send(fd, CONTROL_LAUNCHED, asked->pid, STEERING);
		break;
	case CONTROL_STOP:
		message_send(fd, CONTROL_SUMMARY, 0, "/tmp/" STEERING ".xht");
		break;
	default:
		message_send(fd, CONTROL_DONE, 0, "/tmp/" STEERING ".xht");
		break;
	}
}

/* Serve one connection. Return false if it has ended. */
static bool serve(int fd, const char *kind)
{
	struct control_message message;
	ssize_t got = recv(fd, &message, sizeof(message), MSG_DONTWAIT);
	if (got == 0)
		return false;
	if (got > 0 && !strcmp(kind, "steer"))
		steer(fd, &message);
	if (!strcmp(kind, "busy"))
		message_send(fd, CONTROL_NOTE, 0, "");
	while (!strcmp(kind, "notes") && message_send(fd, CONTROL_NOTE, 0, "a note"))
		;
	while (!strcmp(kind, "targets") && message_send(fd, CONTROL_TARGET, 1, "a row"))
		;
	return true;
}

int main(int count, char **arguments)
{
	static struct pollfd polled[CONNECTIONS_MAX + 1];
	int open = 0;
	if (count != 4)
		return 1;
	const char *kind = arguments[3];
	bool is_full = !strcmp(kind, "full"), is_loud = strcmp(kind, "mute") && strcmp(kind, "steer");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	polled[0] = (struct pollfd){listen_as(arguments[1], arguments[2], is_full ? 0 : CONNECTIONS_MAX), POLLIN, 0};
	if (is_full)
		fill_queue();
	say("ready");
	for (;;) {
		if (is_full) {
			pause();
			continue;
		}
		poll(polled, (nfds_t)open + 1, is_loud ? ROUND_MS : -1);
		for (int i = 1; i <= open; i++)
			if (!serve(polled[i].fd, kind)) {
				close(polled[i].fd);
				polled[i--] = polled[open--];
			}
		if ((polled[0].revents & POLLIN) && open < CONNECTIONS_MAX) {
			polled[++open] = (struct pollfd){accept(polled[0].fd, NULL, NULL), POLLIN, 0};
			say("connected");
		}
	}
}
