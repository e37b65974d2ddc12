/* SPDX-License-Identifier: MIT */
#include "image/keeper_loggers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "image/image_recording.h"
#include "image/keeper_marks.h"
#include "image/keeper_state.h"
#include "image/keeper_users.h"
#include "os/fd.h"
#include "os/monotonic.h"
#include "session/directory/directory.h"
#include "session/logger/logger.h"

#define TRACE_BYTES_MAX (UINT64_C(1) << 30)
enum { TRACE_FILES_MAX = 16, SPARES_USUAL = 3 };
#define ANSWER_NS (5 * NS_PER_S)

/* ---- spares ---- */

/* Wait for the first start, without taking its message, and become the logger of its option. */
static _Noreturn void spare_run(struct keeper *keeper, int control)
{
	struct control_message first;
	struct session_options session;
	char room[2 * IMAGE_PATH_BYTES];
	struct diag diag = {""};
	ssize_t got;
	prctl(PR_SET_NAME, "xheap-spare");
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (control > 3)
		close_range(3, (unsigned)control - 1, 0);
	close_range((unsigned)control + 1, UINT_MAX, 0);
	do
		got = recv(control, &first, sizeof(first), MSG_PEEK);
	while (got < 0 && errno == EINTR);
	if (got < (ssize_t)offsetof(struct control_message, text))
		_exit(0);
	const struct kept_option *kept = keeper_option(keeper, first.image.option);
	if (!kept || image_option_recording(&kept->option, first.image.share, first.image.is_last ? first.pid : 0,
					    &session, room, &diag))
		_exit(1);
	/* Numbered files do not wait: starts before their directory is there are untraced, and counted. */
	session.waits_for_directory = keeper->options->is_early && session.file_mode == SESSION_FILE_SEQUENTIAL;
	image_option_continue(&session);
	_exit(logger_run(&session, control));
}

static void spare_start(struct keeper *keeper, struct spare *spare)
{
	int sockets[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
		return;
	uint32_t id = keeper->next_id++;
	pid_t pid = fork();
	if (pid == 0)
		spare_run(keeper, sockets[1]);
	close(sockets[1]);
	if (pid > 0) {
		*spare = (struct spare){id, pid};
		watch_send(
			keeper->watcher,
			&(struct watch_message){.kind = WATCH_LOGGER, .logger = {.id = id, .kind = WATCH_LOGGER_SPARE}},
			sockets[0], true);
	}
	close(sockets[0]);
}

void keeper_add_spares(struct keeper *keeper)
{
	size_t wanted = 0;
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (keeper->kept[i].is_in_force)
			wanted += image_option_is_each(&keeper->kept[i].option) ? SPARE_MAX : 1;
	wanted = wanted > SPARE_MAX ? SPARE_MAX : wanted && wanted < SPARES_USUAL ? SPARES_USUAL : wanted;
	for (size_t i = 0; i < wanted && keeper->watcher >= 0; i++)
		if (!keeper->spares[i].pid)
			spare_start(keeper, &keeper->spares[i]);
}

void keeper_drop_spares(struct keeper *keeper)
{
	for (int i = 0; i < SPARE_MAX; i++) {
		if (keeper->spares[i].pid && keeper->watcher >= 0)
			watch_send(keeper->watcher,
				   &(struct watch_message){.kind = WATCH_NO_LOGGER, .id = keeper->spares[i].id}, -1,
				   true);
		keeper->spares[i].pid = 0;
	}
}

void keeper_spare_taken(struct keeper *keeper, uint32_t id)
{
	for (int i = 0; i < SPARE_MAX; i++)
		if (keeper->spares[i].id == id)
			keeper->spares[i].pid = 0;
}

/* ---- sessions ---- */

static struct kept_session *session_find(struct keeper *keeper, const char *name)
{
	for (size_t i = 0; i < keeper->session_count; i++)
		if (!strcmp(keeper->sessions[i].name, name))
			return &keeper->sessions[i];
	return NULL;
}

/* Return the option whose own session has the name; NULL: it is no option's that is in force. */
static const struct kept_option *option_of_session(const struct keeper *keeper, const char *name)
{
	for (size_t i = 0; i < keeper->kept_count; i++)
		if (keeper->kept[i].is_in_force && image_option_has_session(&keeper->kept[i].option, name))
			return &keeper->kept[i];
	return NULL;
}

static bool is_own_name(const char *name)
{
	const char *prefix = image_session_prefix();
	return !strncmp(name, prefix, strlen(prefix));
}

/* Ask the session whether it takes registered images. Return false if its queue is full: it is asked later. */
static bool session_ask_state(struct kept_session *session)
{
	const struct control_message query = {.kind = CONTROL_QUERY};
	session->socket = session_connect_within(session->name, 0, &(struct diag){""});
	session->asked_ns = monotonic_now_ns();
	if (session->socket >= 0 && !control_send_within(session->socket, &query, 0))
		fd_close(&session->socket);
	return session->socket != -EAGAIN;
}

static size_t count_found(const struct keeper *keeper)
{
	size_t count = 0;
	for (size_t i = 0; i < keeper->session_count; i++)
		count += !keeper->sessions[i].is_announced;
	return count;
}

static void see_session(void *cookie, const char *name)
{
	struct keeper *keeper = cookie;
	struct kept_session *session = session_find(keeper, name);
	if (session) {
		session->is_seen = true;
		return;
	}
	if (count_found(keeper) == KEPT_SESSION_MAX - KEPT_ANNOUNCED_MAX || strlen(name) >= sizeof(session->name))
		return;
	session = &keeper->sessions[keeper->session_count++];
	*session = (struct kept_session){.id = keeper->next_id++, .socket = -1, .is_seen = true};
	snprintf(session->name, sizeof(session->name), "%s", name);
	session->is_own = is_own_name(name);
	if (!session_ask_state(session))
		keeper->session_count--;
}

/* Tell the watcher which options name the session. */
static void session_link(struct keeper *keeper, const char *name, uint32_t logger)
{
	for (size_t i = 0; i < keeper->kept_count; i++) {
		struct kept_option *kept = &keeper->kept[i];
		if (strcmp(kept->option.session, name) || kept->session_logger == logger)
			continue;
		kept->session_logger = logger;
		if (kept->is_in_force && keeper->watcher >= 0)
			keeper_send_option(keeper, kept);
	}
}

static void session_remove(struct keeper *keeper, size_t index)
{
	fd_close(&keeper->sessions[index].socket);
	session_link(keeper, keeper->sessions[index].name, 0);
	keeper->sessions[index] = keeper->sessions[--keeper->session_count];
}

void keeper_scan_sessions(struct keeper *keeper)
{
	for (size_t i = 0; i < keeper->session_count; i++)
		keeper->sessions[i].is_seen = keeper->sessions[i].is_announced;
	session_each(see_session, keeper);
	for (size_t i = keeper->session_count; i-- > 0;)
		if (!keeper->sessions[i].is_seen)
			session_remove(keeper, i);
}

/* Pass the session, which has answered, to the watcher if starts may go to it. */
static void session_pass(struct keeper *keeper, struct kept_session *session)
{
	struct watch_message message = {
		.kind = WATCH_LOGGER, .logger = {.id = session->id, .kind = WATCH_LOGGER_TAKER, .user = session->user}};
	const struct kept_option *own = session->is_own ? option_of_session(keeper, session->name) : NULL;
	bool is_named = false;
	for (size_t i = 0; i < keeper->kept_count; i++)
		is_named |= !strcmp(keeper->kept[i].option.session, session->name);
	if (own) {
		message.logger.kind = WATCH_LOGGER_OWN;
		message.logger.option = own->id;
		message.logger.share = image_session_share(session->name);
	} else if (session->is_own) {
		/* Its option is gone. */
		control_send_within(session->socket, &(struct control_message){.kind = CONTROL_STOP}, 0);
		fd_close(&session->socket);
		return;
	} else if (!session->takes_images) {
		/* Only options that name it use it. */
		message.logger.kind = WATCH_LOGGER_NAMED;
	}
	if (own || session->takes_images || is_named) {
		session->is_passed = true;
		watch_send(keeper->watcher, &message, session->socket, true);
		session_link(keeper, session->name, session->id);
	}
	fd_close(&session->socket);
}

/* Take the announcement of a user's session. Return whether the session stays. */
static bool session_take_announced(struct keeper *keeper, struct kept_session *session)
{
	struct control_message message;
	int got = control_receive(session->socket, &message, 0);
	if (got == 0)
		return monotonic_now_ns() - session->asked_ns <= ANSWER_NS;
	if (got < 0 || !keeper_announced_name(session, &message))
		return false;
	session_pass(keeper, session);
	return true;
}

static void session_take(struct keeper *keeper, struct kept_session *session)
{
	struct control_message message;
	int got;
	while ((got = control_receive(session->socket, &message, 0)) > 0) {
		if (message.kind == CONTROL_STATE)
			session->takes_images = message.state.takes_images;
		if (message.kind == CONTROL_DONE) {
			session_pass(keeper, session);
			return;
		}
	}
	if (got < 0 || monotonic_now_ns() - session->asked_ns > ANSWER_NS)
		fd_close(&session->socket);
}

void keeper_take_sessions(struct keeper *keeper)
{
	for (size_t i = keeper->session_count; i-- > 0 && keeper->watcher >= 0;) {
		struct kept_session *session = &keeper->sessions[i];
		if (session->socket >= 0 && !session->is_announced)
			session_take(keeper, session);
		else if (session->socket >= 0 && !session_take_announced(keeper, session))
			session_remove(keeper, i);
	}
}

bool keeper_asks_sessions(const struct keeper *keeper)
{
	for (size_t i = 0; i < keeper->session_count; i++)
		if (keeper->sessions[i].socket >= 0 && !keeper->sessions[i].is_announced)
			return true;
	return false;
}

void keeper_count_sessions(struct keeper *keeper)
{
	uint64_t count = 0;
	for (size_t i = 0; i < keeper->session_count; i++)
		count += keeper->sessions[i].is_passed && !keeper->sessions[i].is_own;
	keeper->is_status_new |= count != keeper->status.sessions;
	keeper->status.sessions = count;
}

/* A session that was passed stays: the numbers of options do not change. Others are asked again. */
void keeper_review_sessions(struct keeper *keeper)
{
	for (size_t i = keeper->session_count; i-- > 0;) {
		const struct kept_session *session = &keeper->sessions[i];
		bool is_orphan = session->is_own && !option_of_session(keeper, session->name);
		if ((!session->is_passed && !session->is_announced) || is_orphan)
			session_remove(keeper, i);
		else if (session->is_passed)
			session_link(keeper, session->name, session->id);
	}
	keeper_scan_sessions(keeper);
}

void keeper_forget_sessions(struct keeper *keeper)
{
	while (keeper->session_count)
		session_remove(keeper, keeper->session_count - 1);
}

void keeper_session_gone(struct keeper *keeper, uint32_t id)
{
	for (size_t i = 0; i < keeper->session_count; i++)
		if (keeper->sessions[i].id == id) {
			session_remove(keeper, i);
			return;
		}
}

static void stop_own(void *cookie, const char *name)
{
	(void)cookie;
	if (!is_own_name(name))
		return;
	int socket = session_connect_within(name, 0, &(struct diag){""});
	if (socket < 0)
		return;
	control_send_within(socket, &(struct control_message){.kind = CONTROL_STOP}, 0);
	close(socket);
}

void keeper_stop_sessions(struct keeper *keeper)
{
	session_each(stop_own, keeper);
}

/* ---- traces ---- */

struct trace_file {
	char name[NAME_MAX + 1];
	size_t prefix; /**< length of its name without ".NNNNN.xht" */
	struct timespec changed;
	uint64_t size_bytes;
};

struct trace_list {
	struct trace_file *items;
	size_t count, capacity;
};

/* The traces of an image are together, the newest one first. */
static int compare_traces(const void *one, const void *other)
{
	const struct trace_file *a = one, *b = other;
	int prefix = a->prefix != b->prefix ? (a->prefix < b->prefix ? -1 : 1) : memcmp(a->name, b->name, a->prefix);
	if (prefix)
		return prefix;
	if (a->changed.tv_sec != b->changed.tv_sec)
		return a->changed.tv_sec < b->changed.tv_sec ? 1 : -1;
	if (a->changed.tv_nsec != b->changed.tv_nsec)
		return a->changed.tv_nsec < b->changed.tv_nsec ? 1 : -1;
	return strcmp(b->name, a->name);
}

/* Return the length of a trace's name without ".NNNNN.xht"; 0: it is none. */
static size_t trace_prefix(const char *name)
{
	enum { DIGITS = 5 };
	static const char suffix[] = ".xht";
	size_t length = strlen(name), tail = DIGITS + sizeof(suffix);
	const char *number = length > tail ? name + length - tail : "";
	bool is_trace =
		number[0] == '.' && strspn(number + 1, "0123456789") == DIGITS && !strcmp(number + 1 + DIGITS, suffix);
	return is_trace ? length - tail : 0;
}

static void traces_find(int directory, struct trace_list *traces)
{
	int own = dup(directory);
	DIR *list = own >= 0 ? fdopendir(own) : NULL;
	for (const struct dirent *entry; list && (entry = readdir(list));) {
		struct stat status;
		size_t prefix = trace_prefix(entry->d_name);
		if (!prefix || fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		memory_grow(traces->items, traces->count, traces->capacity);
		struct trace_file *file = &traces->items[traces->count++];
		*file = (struct trace_file){
			.prefix = prefix, .changed = status.st_mtim, .size_bytes = (uint64_t)status.st_size};
		snprintf(file->name, sizeof(file->name), "%s", entry->d_name);
	}
	if (list)
		closedir(list);
	else if (own >= 0)
		close(own);
}

/* Return whether the trace is of an image that is, or was, registered. */
static bool is_of_image(const struct keeper *keeper, const struct trace_file *file)
{
	char name[65], trace[NAME_MAX + 1];
	snprintf(trace, sizeof(trace), "%.*s", (int)file->prefix, file->name);
	for (size_t i = 0; i < keeper->kept_count; i++) {
		image_option_session_name(&keeper->kept[i].option, image_session_share(trace), name);
		const char *prefix = name + strlen(image_session_prefix());
		if (!strcmp(prefix, trace))
			return true;
	}
	return false;
}

/* The newest trace of an image is being written. With many images, most have none: the directory is read once. */
void keeper_trim_traces(const struct keeper *keeper)
{
	char path[IMAGE_PATH_BYTES];
	struct trace_list traces = {.count = 0};
	image_directory(IMAGE_DIRECTORY_TRACES, path, sizeof(path));
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (directory < 0)
		return;
	traces_find(directory, &traces);
	if (traces.count)
		qsort(traces.items, traces.count, sizeof(*traces.items), compare_traces);
	size_t files = 0;
	uint64_t bytes = 0;
	for (size_t i = 0; i < traces.count; i++) {
		const struct trace_file *file = &traces.items[i], *last = i ? file - 1 : NULL;
		bool is_first =
			!last || last->prefix != file->prefix || memcmp(last->name, file->name, file->prefix) != 0;
		files = is_first ? 1 : files + 1;
		bytes = is_first ? file->size_bytes : bytes + file->size_bytes;
		if (!is_first && (files > TRACE_FILES_MAX || bytes > TRACE_BYTES_MAX) && is_of_image(keeper, file))
			unlinkat(directory, file->name, 0);
	}
	free(traces.items);
	close(directory);
}
