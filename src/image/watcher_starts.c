/* SPDX-License-Identifier: MIT */
#include "image/watcher_starts.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "image/user_share.h"
#include "image/watch_thread.h"
#include "image/watcher_match.h"
#include "image/watcher_readers.h"
#include "image/watcher_shares.h"
#include "image/watcher_unregistered.h"
#include "os/monotonic.h"
#include "os/proc.h"
#include "os/selinux.h"

#define REPORT_NS (10 * NS_PER_S)

/* How long after an overlay's file the kernel may ask about that of its layer. */
#define LAYER_NS NS_PER_S

/* How long a file is new after its name has changed. */
enum { NEW_S = 60 };

/* ---- answers ---- */

static void start_allow(struct watcher *watcher, struct start *start)
{
	if (start->event < 0)
		return;
	watcher_allow(watcher, start->group, start->event);
	if (start->is_local)
		close(start->event);
	else
		watch_thread_close(start->event);
	start->event = -1;
	start->deadline_ns = monotonic_now_ns() + REPORT_NS;
	watcher->pending--;
}

static bool is_each(const struct watcher *watcher, uint32_t option)
{
	const struct registered *row = watcher_registered(watcher->table, option);
	return row && row->option.is_each;
}

/* Report a start to the keeper. taker: its logger; NULL: none. The count is exact; the message, which has the reason,
   may find no room. */
static void report(const struct watcher *watcher, uint32_t option, pid_t pid, enum control_outcome outcome,
		   const char *why, const struct taker *taker)
{
	struct watch_message message = {.kind = WATCH_STARTED, .id = option, .pid = pid, .value = (int32_t)outcome};
	if (taker)
		message.logger = taker->logger;
	snprintf(message.text, sizeof(message.text), "%s", why);
	watch_send(watcher->keeper, &message, -1, false);
	watch_life_count(watcher->life, option, outcome,
			 outcome == CONTROL_OUTCOME_TRACED && taker && taker->logger.kind == WATCH_LOGGER_OWN &&
				 is_each(watcher, option));
}

/* Keep a start that has not executed yet. In the exec of an overlay's file the kernel asks about the file of its layer,
   too, if both are watched: that is no further start. */
static void reported_add(struct watcher *watcher, pid_t tid, const struct start_file *file)
{
	if (tid > 0 && file->is_of_overlay)
		watcher->reported[watcher->reported_next++ % REPORTED_MAX] =
			(struct reported_start){.tid = tid, .file = *file, .until_ns = monotonic_now_ns() + LAYER_NS};
}

/* Return whether the thread opens the layer's file of a start that was reported. */
static bool reported_take(struct watcher *watcher, pid_t tid, const struct start_file *file)
{
	for (unsigned i = 0; i < REPORTED_MAX; i++) {
		struct reported_start *last = &watcher->reported[i];
		if (last->tid != tid || last->file.device == file->device || last->file.size != file->size ||
		    last->file.changed.tv_sec != file->changed.tv_sec ||
		    last->file.changed.tv_nsec != file->changed.tv_nsec || last->until_ns < monotonic_now_ns())
			continue;
		last->tid = 0;
		return true;
	}
	return false;
}

static void start_end(struct watcher *watcher, struct start *start, pid_t pid, enum control_outcome outcome,
		      const char *why)
{
	if (outcome != CONTROL_OUTCOME_TRACED)
		reported_add(watcher, start->tid, &start->file);
	start_allow(watcher, start);
	free(start->waiting);
	start->waiting = NULL;
	report(watcher, start->option, pid, outcome, why, watcher_taker(watcher, start->logger));
	start->token = 0;
	watcher->start_count--;
}

int watcher_check_deadlines(struct watcher *watcher)
{
	/* A deadline of a reader that is set meanwhile is not before that. */
	uint64_t now = monotonic_now_ns(), beat_ns = WATCHER_BEAT_MS * NS_PER_MS;
	uint64_t next = now + (watcher->deadline_ns < beat_ns ? watcher->deadline_ns : beat_ns);
	watcher_answer_late(watcher, now);
	for (int i = 0; watcher->start_count && i < START_MAX; i++) {
		struct start *start = &watcher->starts[i];
		if (!start->token)
			continue;
		if (start->deadline_ns <= now && start->waiting) {
			start_end(watcher, start, start->tid, CONTROL_OUTCOME_NO_LOGGER, "");
		} else if (start->deadline_ns <= now && start->event >= 0) {
			start->is_late = true;
			start_allow(watcher, start);
		} else if (start->deadline_ns <= now) {
			start_end(watcher, start, start->tid, CONTROL_OUTCOME_LATE, "its logger does not answer");
		} else if (start->deadline_ns < next) {
			next = start->deadline_ns;
		}
	}
	return (int)((next - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* ---- loggers ---- */

struct taker *watcher_taker(struct watcher *watcher, uint32_t id)
{
	for (int i = 0; i < LOGGER_MAX; i++)
		if (watcher->takers[i].socket >= 0 && watcher->takers[i].logger.id == id)
			return &watcher->takers[i];
	return NULL;
}

/* Answer and report all starts of a logger that has ended, and forget it. */
static void taker_gone(struct watcher *watcher, struct taker *taker)
{
	for (int i = 0; i < START_MAX; i++) {
		struct start *start = &watcher->starts[i];
		if (start->token && start->logger == taker->logger.id)
			start_end(watcher, start, start->tid, CONTROL_OUTCOME_LOGGER_GONE, "");
	}
	watch_send(watcher->keeper,
		   &(struct watch_message){.kind = WATCH_LOGGER_GONE, .id = taker->logger.id, .logger = taker->logger},
		   -1, false);
	close(taker->socket);
	taker->socket = -1;
	watcher->taker_count--;
}

static void take_answer(struct watcher *watcher, const struct taker *taker, const struct control_message *message)
{
	if (message->kind != CONTROL_LAUNCHED && message->kind != CONTROL_OUTCOME)
		return;
	if (message->kind == CONTROL_LAUNCHED && !message->image.token && message->value) {
		/* The logger could not begin. */
		for (int i = 0; i < START_MAX; i++)
			if (watcher->starts[i].token && watcher->starts[i].logger == taker->logger.id)
				start_end(watcher, &watcher->starts[i], watcher->starts[i].tid, CONTROL_OUTCOME_REFUSED,
					  message->text);
		return;
	}
	for (int i = 0; i < START_MAX; i++) {
		struct start *start = &watcher->starts[i];
		if (!start->token || start->token != message->image.token || start->logger != taker->logger.id)
			continue;
		if (message->kind == CONTROL_LAUNCHED) {
			start_allow(watcher, start);
			return;
		}
		bool is_known = message->value >= 0 && message->value < CONTROL_OUTCOME_COUNT;
		enum control_outcome outcome =
			is_known ? (enum control_outcome)message->value : CONTROL_OUTCOME_REFUSED;
		/* It was seized after the answer: it may have ended, or the interrupt may have stopped it behind its
		   exec. */
		bool is_left_alone = outcome == CONTROL_OUTCOME_DOMAIN || outcome == CONTROL_OUTCOME_PRIVILEGED;
		bool is_missed = (control_outcome_is_untraced(outcome) && !is_left_alone) ||
				 outcome == CONTROL_OUTCOME_EXEC_FAILED;
		if (start->is_late && is_missed)
			outcome = CONTROL_OUTCOME_LATE;
		start_end(watcher, start, message->pid, outcome, message->text);
		return;
	}
}

/* Note a message of the logger. Return whether it is a user's that keeps this process busy. */
static bool is_flooding(struct taker *taker)
{
	enum { USER_MESSAGES_MAX = 4096 }; /* in a second */
	uint64_t second = monotonic_now_ns() / NS_PER_S;
	taker->messages = second == taker->second ? taker->messages + 1 : 1;
	taker->second = second;
	return taker->logger.user && taker->messages > USER_MESSAGES_MAX;
}

void watcher_take_answers(struct watcher *watcher, struct taker *taker)
{
	enum { AT_ONCE = 64 };
	struct control_message message;
	int got = 1;
	for (int i = 0; i < AT_ONCE && (got = control_receive(taker->socket, &message, 0)) > 0; i++) {
		if (is_flooding(taker)) {
			got = -1;
			break;
		}
		take_answer(watcher, taker, &message);
	}
	if (got < 0)
		taker_gone(watcher, taker);
}

/* Return the first taker of the kind that is the option's for the share `user`, or is for all and is the user's or
   root's. */
static struct taker *find_taker(struct watcher *watcher, enum watch_logger_kind kind, uint32_t option, uint32_t user)
{
	for (int i = 0; i < LOGGER_MAX; i++) {
		struct taker *taker = &watcher->takers[i];
		bool fits = kind == WATCH_LOGGER_TAKER ? taker->logger.user == user
			    : kind == WATCH_LOGGER_OWN ? taker->logger.option == option && taker->logger.share == user
						       : true;
		if (taker->socket >= 0 && taker->logger.kind == kind && fits)
			return taker;
	}
	return NULL;
}

/* Make a spare the logger of the option, or of one of its processes. */
static struct taker *take_spare(struct watcher *watcher, const struct registered *row, enum watch_logger_kind kind,
				uint32_t share, pid_t pid)
{
	struct taker *taker = watcher_has_spare(watcher, share) ? find_taker(watcher, WATCH_LOGGER_SPARE, 0, 0) : NULL;
	if (!taker)
		return NULL;
	taker->logger.kind = kind;
	taker->logger.option = row->id;
	taker->logger.share = share;
	watch_send(watcher->keeper,
		   &(struct watch_message){
			   .kind = WATCH_TAKEN, .id = taker->logger.id, .pid = pid, .logger = taker->logger},
		   -1, false);
	return taker;
}

/* Return the logger of the option's own session for the share. */
static struct taker *own_taker(struct watcher *watcher, const struct registered *row, uint32_t share)
{
	struct taker *taker = find_taker(watcher, WATCH_LOGGER_OWN, row->id, share);
	if (taker)
		return taker;
	share = watcher_session_share(watcher, row->id, share);
	taker = find_taker(watcher, WATCH_LOGGER_OWN, row->id, share);
	return taker ? taker : take_spare(watcher, row, WATCH_LOGGER_OWN, share, 0);
}

/* Return whether a session of a user may take starts of the option: it reads what root selects by, and cannot write to
   root's counts. */
static bool is_for_users(const struct registered *row)
{
	const struct control_image *image = &row->option.image;
	return image->counter == UINT32_MAX && !image->arguments[0] && !image->cgroup[0];
}

/* Return the logger for a start; NULL: none is ready. A user's session may answer nothing, so
   it comes last unless root has named it. */
static struct taker *choose_taker(struct watcher *watcher, const struct registered *row, const struct start *start)
{
	const uint32_t user = start->user, share = row->option.is_shared ? start->share : IMAGE_SHARE_ROOT;
	struct taker *taker = row->option.logger ? watcher_taker(watcher, row->option.logger) : NULL;
	if (taker && taker->logger.user && (taker->logger.user != user || !is_for_users(row)))
		taker = NULL;
	taker = taker ? taker : find_taker(watcher, WATCH_LOGGER_TAKER, 0, 0);
	if (taker)
		return taker;
	if (row->option.is_each && watcher_has_each(watcher, row->id, share))
		taker = take_spare(watcher, row, WATCH_LOGGER_EACH, share, start->tid);
	taker = taker ? taker : own_taker(watcher, row, share);
	return taker || !user || !is_for_users(row) ? taker : find_taker(watcher, WATCH_LOGGER_TAKER, 0, user);
}

/* ---- events ---- */

static bool is_privileged(int event, const struct stat *status)
{
	return (status->st_mode & S_ISUID) || (status->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) ||
	       fgetxattr(event, "security.capability", NULL, 0) > 0;
}

/* Return the start that the thread has under way; NULL: none. Its end may have been reported just now. */
static struct start *start_of_thread(struct watcher *watcher, pid_t tid)
{
	for (int i = 0; watcher->start_count && i < START_MAX; i++) {
		struct start *start = &watcher->starts[i];
		if (!start->token || start->tid != tid)
			continue;
		struct taker *taker = watcher_taker(watcher, start->logger);
		if (taker)
			watcher_take_answers(watcher, taker);
		return start->token ? start : NULL;
	}
	return NULL;
}

static struct start *start_new(struct watcher *watcher)
{
	for (int i = 0; i < START_MAX; i++)
		if (!watcher->starts[i].token)
			return &watcher->starts[i];
	return NULL;
}

/* Return the user whose loggers may trace the process; root if it has changed its user since its last exec. Then the
   files of its directory are root's, but not the directory. */
static uint32_t user_of(pid_t tid)
{
	struct stat status;
	return stat(proc_path(tid, "status").text, &status) == 0 ? status.st_uid : 0;
}

/* Send the start to a logger. Return false if none is there, or has room for a message. */
static bool start_send(struct watcher *watcher, const struct registered *row, struct start *start,
		       struct control_message *message)
{
	const struct taker *taker = choose_taker(watcher, row, start);
	message->image.is_last = taker && taker->logger.kind == WATCH_LOGGER_EACH;
	message->image.share = taker ? taker->logger.share : IMAGE_SHARE_ROOT;
	bool is_sent = taker && control_send_within(taker->socket, message, 0);
	start->logger = is_sent ? taker->logger.id : 0;
	return is_sent;
}

void watcher_send_waiting(struct watcher *watcher)
{
	for (int i = 0; watcher->start_count && i < START_MAX; i++) {
		struct start *start = &watcher->starts[i];
		if (!start->token || !start->waiting)
			continue;
		const struct registered *row = watcher_registered(watcher->table, start->option);
		if (!row) {
			start_end(watcher, start, start->tid, CONTROL_OUTCOME_NO_LOGGER, "");
		} else if (start_send(watcher, row, start, start->waiting)) {
			free(start->waiting);
			start->waiting = NULL;
		}
	}
}

static void start_describe(const struct registered *row, int event, const struct watcher_file *file,
			   struct control_message *message)
{
	message->image.option = row->id;
	message->image.has_owner &= file->is_of_interpreter;
	/* A label that does not fit is as unknown as none. */
	ssize_t size = fgetxattr(event, SELINUX_LABEL, message->image.label, sizeof(message->image.label) - 1);
	message->image.label[size > 0 ? size : 0] = 0;
	if (file->is_by_link)
		snprintf(message->image.name, sizeof(message->image.name), "%.*s", (int)sizeof(message->image.name) - 1,
			 row->name);
	snprintf(message->text, sizeof(message->text), "%s", file->path);
}

/* Let the share with the most starts give up its last one, as if its time were over: it is not waited for any more. */
static void give_up_place(struct watcher *watcher, uint32_t share)
{
	struct start *start = watcher_greatest(watcher, share, true);
	if (start && start->waiting) {
		start_end(watcher, start, start->tid, CONTROL_OUTCOME_CROWDED, "");
	} else if (start) {
		start->is_late = true;
		start_allow(watcher, start);
	}
}

/* Return a free row for a start of the share, and a free place; NULL: others have no more than it. */
static struct start *start_place(struct watcher *watcher, uint32_t share)
{
	struct start *start = start_new(watcher);
	if (watcher->pending >= WATCHER_PENDING_MAX)
		give_up_place(watcher, share);
	if (!start && (start = watcher_greatest(watcher, share, false)))
		start_end(watcher, start, start->tid, CONTROL_OUTCOME_CROWDED, "");
	return watcher->pending < WATCHER_PENDING_MAX ? start : NULL;
}

/* Send the start to a logger, or let it wait for one that begins. Return the reason why that is impossible;
   CONTROL_OUTCOME_TRACED: it is done. */
static enum control_outcome pass_on(struct watcher_reader *reader, const struct registered *row,
				    const struct start *described, struct control_message *message)
{
	struct watcher *watcher = reader->watcher;
	struct start *start = start_place(watcher, described->share);
	unsigned group;
	watcher_reader_state(reader, &group);
	if (!start)
		return CONTROL_OUTCOME_CROWDED;
	struct control_message *waiting = malloc(sizeof(*waiting));
	if (!waiting)
		return CONTROL_OUTCOME_NO_LOGGER;
	if (!watcher_reader_give(reader)) {
		free(waiting);
		return CONTROL_OUTCOME_LATE;
	}
	watcher->token += watcher->token == UINT32_MAX ? 2 : 1;
	message->image.token = watcher->token;
	*start = *described;
	start->token = watcher->token;
	start->group = group;
	start->deadline_ns = monotonic_now_ns() + watcher->deadline_ns;
	if (start_send(watcher, row, start, message)) {
		free(waiting);
	} else {
		*waiting = *message;
		start->waiting = waiting;
	}
	watcher->pending++;
	watcher->start_count++;
	return CONTROL_OUTCOME_TRACED;
}

/* Return whether the file is a loader: each start opens one, and none can be registered. A user's file may have got the
   name of one, and get another one. */
static bool is_loader(const struct watcher_file *file)
{
	bool is_named = !strncmp(file->name, "ld-linux", strlen("ld-linux")) ||
			!strncmp(file->name, "ld-musl", strlen("ld-musl"));
	return is_named && file->status.st_uid == 0;
}

/* Count a file about which the kernel is not to ask. Return false if the group has enough of them: each takes
   memory. */
static bool take_ignored(struct watcher *watcher, struct watcher_group *group)
{
	pthread_mutex_lock(&watcher->lock);
	bool has_room = group->ignored_count < IGNORED_MAX;
	group->ignored_count += has_room;
	pthread_mutex_unlock(&watcher->lock);
	return has_room;
}

/* The kernel need not ask again about a loader, nor about a file beside a registered one. That lasts until the keeper
   sets all marks anew, as it does some time after a file of the directory is renamed. A new file may be started right
   after it is tried and renamed, so the kernel goes on asking. With a registered name a link could make any other file
   a registered one, a service may start a file that others start, too, and a file may get another owner. Return
   whether it is so. */
static bool ignore_file(struct watcher *watcher, unsigned group, const struct watch_table *table, int event,
			const struct watcher_file *file)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec - file->status.st_ctim.tv_sec < NEW_S)
		return false;
	for (unsigned i = 0; i < table->option_count && !is_loader(file); i++)
		if (table->options[i].option.image.has_scripts || table->options[i].option.service[0] ||
		    table->options[i].option.image.has_owner)
			return false;
	if (!take_ignored(watcher, &watcher->groups[group]))
		return false;
	fanotify_mark(watcher->groups[group].group,
		      FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | FAN_MARK_IGNORED_SURV_MODIFY | FAN_MARK_EVICTABLE,
		      FAN_OPEN_EXEC_PERM, event, NULL);
	return true;
}

static struct start_file start_file(int event, const struct stat *status)
{
	struct statfs system;
	bool is_known = fstatfs(event, &system) == 0;
	return (struct start_file){is_known && system.f_type == OVERLAYFS_SUPER_MAGIC, status->st_dev, status->st_size,
				   status->st_mtim};
}

/* Pass the start on, or report why not. Return whether it waits with its event. */
static bool take_start(struct watcher_reader *reader, const struct registered *row,
		       const struct fanotify_event_metadata *event, const struct watcher_file *file)
{
	struct watcher *watcher = reader->watcher;
	struct control_message message = {.kind = CONTROL_LAUNCH, .pid = event->pid, .value = 1};
	bool is_left = row->option.image.checks_privileges && is_privileged(event->fd, &file->status);
	const struct start start = {.option = row->id,
				    .user = user_of(event->pid),
				    .share = user_share(event->pid),
				    .tid = event->pid,
				    .event = event->fd,
				    .file = start_file(event->fd, &file->status),
				    .is_local = watcher_is_local(event->fd)};
	message.image = row->option.image;
	start_describe(row, event->fd, file, &message);
	pthread_mutex_lock(&watcher->lock);
	enum control_outcome outcome = CONTROL_OUTCOME_TRACED;
	bool is_new = !start_of_thread(watcher, event->pid) && !reported_take(watcher, event->pid, &start.file);
	if (is_new) {
		outcome = event->pid <= 0 ? CONTROL_OUTCOME_UNSEEN
			  : is_left       ? CONTROL_OUTCOME_PRIVILEGED
					  : pass_on(reader, row, &start, &message);
		if (outcome != CONTROL_OUTCOME_TRACED) {
			reported_add(watcher, event->pid, &start.file);
			report(watcher, row->id, event->pid, outcome, "", NULL);
		}
	}
	pthread_mutex_unlock(&watcher->lock);
	return is_new && outcome == CONTROL_OUTCOME_TRACED;
}

/* Compare the file with what is registered. Return whether it waits with its event. */
static bool take_file(struct watcher_reader *reader, const struct fanotify_event_metadata *event,
		      struct watcher_file *file)
{
	struct watcher *watcher = reader->watcher;
	unsigned group;
	watcher_reader_state(reader, &group);
	pthread_mutex_lock(&watcher->lock);
	uint64_t messages = watcher->messages;
	struct watch_table *table =
		watcher_is_unregistered(watcher, file) || watcher->is_over ? NULL : watcher_table_take(watcher);
	pthread_mutex_unlock(&watcher->lock);
	if (!table)
		return false;
	const struct registered *row = watcher_match(watcher, table, event->fd, event->pid, file);
	if (!row && !ignore_file(watcher, group, table, event->fd, file))
		watcher_note_unregistered(watcher, table, event->fd, file, messages);
	bool waits = row && take_start(reader, row, event, file);
	pthread_mutex_lock(&watcher->lock);
	watcher_table_give(watcher, table);
	pthread_mutex_unlock(&watcher->lock);
	return waits;
}

void watcher_take_event(struct watcher_reader *reader, const struct fanotify_event_metadata *event)
{
	struct watcher_file file;
	bool is_known = watcher_file_status(event->fd, &file);
	reader->device = is_known ? file.status.st_dev : 0;
	if (is_known && take_file(reader, event, &file))
		return;
	watcher_reader_allow(reader);
	close(event->fd);
}
