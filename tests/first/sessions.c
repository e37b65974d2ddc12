/* SPDX-License-Identifier: MIT */
/* A server that opens sessions and ends them. crash: one is ended twice; lost: some of their names are not freed; large: the names stay, each beside a buffer
   that was freed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SESSIONS = 2000, BUFFER_BYTES = 12000, KEPT = 100 };

struct session {
	char *name, *buffer;
};

__attribute__((noinline)) static char *copy_name(int number)
{
	char name[40];
	snprintf(name, sizeof(name), "session %d", number);
	return strdup(name);
}

__attribute__((noinline)) static struct session *open_session(int number)
{
	struct session *session = malloc(sizeof(*session));
	session->buffer = malloc(BUFFER_BYTES);
	memset(session->buffer, number, BUFFER_BYTES);
	session->name = copy_name(number);
	return session;
}

__attribute__((noinline)) static void end_session(struct session *session)
{
	free(session->buffer);
	free(session);
	__asm__("");
}

__attribute__((noinline)) static void hang_up(struct session *session)
{
	free(session);
	__asm__("");
}

int main(int count, char **words)
{
	const char *way = count > 1 ? words[1] : "";
	static struct session *sessions[SESSIONS];
	static char *names[SESSIONS];
	for (int i = 0; i < SESSIONS; i++)
		sessions[i] = open_session(i);
	for (int i = 0; i < SESSIONS; i++) {
		if (!strcmp(way, "large"))
			names[i] = sessions[i]->name;
		else if (strcmp(way, "lost") != 0 || i % KEPT)
			free(sessions[i]->name);
		end_session(sessions[i]);
	}
	if (!strcmp(way, "crash"))
		hang_up(sessions[SESSIONS - 1]);
	memset(sessions, 0, sizeof(sessions));
	if (names[0])
		sleep(1);
	return 0;
}
