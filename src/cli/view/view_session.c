/* SPDX-License-Identifier: MIT */
#include "cli/view/view_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "os/monotonic.h"
#include "server/http/server.h"
#include "session/control/controller.h"
#include "session/directory/directory.h"

enum {
	ASK_MS = 1000,
	ASK_SOON_MS = 100,
	CONNECT_MS = 20,
	SILENT_MS = 5000, /* without an answer */
	GONE_MS = 3000,   /* a logger that ends leaves its session's directory a moment later */
	/* Another user's logger may send without an end: so many messages at a time, and in an answer. */
	LOOK_MESSAGES = 1000,
	ANSWER_MESSAGES = 20000
};
/* Until the last events are in the file, and that is known. */
enum { FLUSHES = 2 };

struct view_session {
	char *name;      /* NULL: it is known by its directory */
	char *directory; /* NULL: it is known by its name */
	char title[100]; /* for people */
	char *path;      /* of its trace */
	int64_t started_ns;
	struct live_note note;
	int socket; /* while an answer is awaited, else -1 */
	struct controller_state answer;
	unsigned flushes;             /* to be asked for */
	unsigned flushes_asked;       /* whose answers come first */
	unsigned messages;            /* of this answer */
	uint64_t asked_ns, missed_ns; /* missed: since when it is gone; 0: it is not */
};

/* ---- one question ---- */

static int session_reach(const struct view_session *session, unsigned limit_ms, struct diag *diag)
{
	return session->name ? session_connect_within(session->name, limit_ms, diag)
			     : session_connect_at(session->directory, limit_ms, diag);
}

static void answer_end(struct view_session *session)
{
	if (session->socket >= 0)
		close(session->socket);
	session->socket = -1;
	session->messages = 0;
	controller_state_fini(&session->answer);
	session->answer = (struct controller_state){.is_alive = false};
}

static void note_set(struct view_session *session, enum live_state state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void note_set(struct view_session *session, enum live_state state, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	session->note.state = state;
	vsnprintf(session->note.text, sizeof(session->note.text), format, arguments);
	va_end(arguments);
}

/* The whole answer is there. */
static void answer_take(struct view_session *session)
{
	const struct controller_state *answer = &session->answer;
	if (answer->session.started_realtime_ns != session->started_ns || strcmp(answer->path, session->path) != 0) {
		note_set(session, LIVE_OVER, "%s has ended.", session->title);
		return;
	}
	session->missed_ns = 0;
	if (answer->session.whole_until_ns) {
		session->note.until_ns = answer->session.whole_until_ns;
		session->note.size_bytes = answer->session.whole_bytes;
	}
	if (answer->error)
		note_set(session, LIVE_RECORDING, "%s records no more: %.200s", session->title, answer->reason);
	else
		note_set(session, LIVE_RECORDING, "%s is recorded", session->title);
}

/* The logger cannot be reached. */
static void miss(struct view_session *session, int error)
{
	const uint64_t now_ns = monotonic_now_ns();
	session->missed_ns = session->missed_ns ? session->missed_ns : now_ns;
	if (error == -EAGAIN)
		note_set(session, LIVE_SILENT, "%s: its logger does not answer", session->title);
	else if (error == -ENOENT)
		note_set(session, LIVE_OVER, "%s %s.", session->title,
			 session->note.state == LIVE_LOST ? "was recovered" : "has ended");
	else if (now_ns - session->missed_ns > GONE_MS * NS_PER_MS)
		note_set(session, LIVE_LOST, "%s: its logger has died; xheap recover saves what it recorded",
			 session->title);
}

static void ask(struct view_session *session)
{
	struct diag diag = {""};
	const struct control_message flush = {.kind = CONTROL_FLUSH}, query = {.kind = CONTROL_QUERY};
	session->asked_ns = monotonic_now_ns();
	session->socket = session_reach(session, CONNECT_MS, &diag);
	if (session->socket < 0) {
		miss(session, session->socket);
		return;
	}
	session->flushes_asked = session->flushes && control_send(session->socket, &flush) ? 1 : 0;
	session->flushes -= session->flushes_asked;
	if (!control_send(session->socket, &query))
		answer_end(session);
}

/* Take what has come of the answer. */
static void answer_receive(struct view_session *session)
{
	struct control_message message;
	struct diag diag = {""};
	int got = 1, taken = 0;
	for (unsigned i = 0; !taken && i < LOOK_MESSAGES && (got = control_receive(session->socket, &message, 0)) > 0;
	     i++) {
		session->messages++;
		if (message.kind == CONTROL_DONE && session->flushes_asked)
			session->flushes_asked--;
		else
			taken = controller_state_take(&session->answer, &message, &diag);
	}
	if (taken > 0)
		answer_take(session);
	else if (!taken && monotonic_now_ns() - session->asked_ns > SILENT_MS * NS_PER_MS)
		miss(session, -EAGAIN);
	if (taken || got < 0 || session->messages > ANSWER_MESSAGES)
		answer_end(session);
}

void view_session_look(struct view_session *session, struct server *server)
{
	const uint64_t pause_ms = session->flushes ? ASK_SOON_MS : ASK_MS;
	if (server_take_flush(server))
		session->flushes = FLUSHES;
	if (session->socket >= 0)
		answer_receive(session);
	else if (session->note.state != LIVE_OVER && monotonic_now_ns() - session->asked_ns >= pause_ms * NS_PER_MS)
		ask(session);
	server_note(server, &session->note);
}

/* ---- beginning ---- */

static struct view_session *session_new(const char *name, const char *directory)
{
	struct view_session *session = memory_zeroed(1, sizeof(*session));
	session->name = name ? strdup(name) : NULL;
	session->directory = directory ? strdup(directory) : NULL;
	session->socket = -1;
	return session;
}

/* The first question waits for its answer. */
static int session_begin(struct view_session *session, struct diag *diag)
{
	session->socket = session_reach(session, SILENT_MS, diag);
	int error = session->socket < 0 ? session->socket
					: controller_query(session->socket, false, &session->answer, NULL, diag);
	if (!error && session->answer.session.file_mode != SESSION_FILE_SEQUENTIAL)
		error = diag_fail(diag, ENOTSUP, "its trace is not one file that only grows");
	if (!error) {
		snprintf(session->title, sizeof(session->title), "%s%s", session->name ? "Session " : "This trace",
			 session->name ? session->name : "");
		session->path = strdup(session->answer.path);
		session->started_ns = session->answer.session.started_realtime_ns;
		answer_take(session);
	}
	answer_end(session);
	return error;
}

struct view_session *view_session_named(const char *name, struct diag *diag)
{
	struct view_session *session = session_new(name, NULL);
	if (!session_begin(session, diag))
		return session;
	view_session_free(session);
	return NULL;
}

/* A search for the directory of the session that writes a file. */
struct directory_search {
	struct stat file;
	char *directory; /* NULL: not found yet */
};

static bool writes_file(const char *path, const struct stat *file)
{
	struct session_directory directory;
	struct diag diag = {""};
	struct stat status;
	char trace[4096] = "";
	if (session_directory_open(&directory, path, &diag))
		return false;
	char *text = session_file_read(&directory, "session");
	bool is_found = text && fields_value(text, "trace", trace, sizeof(trace)) && !stat(trace, &status) &&
			status.st_dev == file->st_dev && status.st_ino == file->st_ino;
	free(text);
	session_directory_close(&directory);
	return is_found;
}

static void directory_check(void *cookie, const char *path)
{
	struct directory_search *search = cookie;
	if (!search->directory && writes_file(path, &search->file))
		search->directory = strdup(path);
}

struct view_session *view_session_writing(const char *path)
{
	struct directory_search search = {.directory = NULL};
	struct diag diag = {""};
	if (stat(path, &search.file))
		return NULL;
	session_each_directory(directory_check, &search);
	struct view_session *session = search.directory ? session_new(NULL, search.directory) : NULL;
	free(search.directory);
	if (!session || !session_begin(session, &diag))
		return session;
	view_session_free(session);
	return NULL;
}

const char *view_session_path(const struct view_session *session)
{
	return session->path;
}

void view_session_free(struct view_session *session)
{
	if (!session)
		return;
	answer_end(session);
	free(session->name);
	free(session->directory);
	free(session->path);
	free(session);
}
