/* SPDX-License-Identifier: MIT */
/*
 * The watcher's loop, beside its readers (watcher_readers.c).
 *
 *     kernel                 watcher                         logger
 *     ------                 -------                         ------
 *     execve of a marked
 *     file: the thread       watcher_take_event(): which
 *     waits for an answer    option, which logger?
 *                            CONTROL_LAUNCH ---------------> seizes the thread, interrupts it
 *                            watcher_take_answers() <------- CONTROL_LAUNCHED
 *     the exec goes on <---- allowed
 *                                                            first stop: at the exec, or it has failed
 *                            a report to the keeper <------- CONTROL_OUTCOME
 *
 * An answer that does not come within the deadline is not waited for. When this process ends, the guardian closes the
 * groups' descriptors, too: that allows everything.
 */
#include "image/watcher.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "image/watch_thread.h"
#include "image/watcher_groups.h"
#include "image/watcher_readers.h"
#include "image/watcher_starts.h"
#include "image/watcher_state.h"
#include "image/watcher_unregistered.h"
#include "image/watcher_unwatched.h"
#include "os/fd.h"
#include "os/limits.h"
#include "os/monotonic.h"

/* ---- signs of life ---- */

static void beat(struct watch_life *life)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	__atomic_store_n(&life->beat_ns, (int64_t)now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec, __ATOMIC_RELAXED);
	__atomic_fetch_add(&life->beats, 1, __ATOMIC_RELAXED);
}

/* ---- the keeper's messages ---- */

const struct registered *watcher_registered(const struct watch_table *table, uint32_t id)
{
	for (unsigned i = 0; i < table->option_count; i++)
		if (table->options[i].id == id)
			return &table->options[i];
	return NULL;
}

static void option_set(struct watch_table *table, const struct watch_message *message)
{
	struct registered *row = (struct registered *)watcher_registered(table, message->id);
	if (!row && table->option_count < IMAGE_OPTION_MAX)
		row = &table->options[table->option_count++];
	if (!row)
		return;
	row->option = message->option;
	row->id = message->id;
	memcpy(row->image, message->text, sizeof(row->image));
}

/* A path that does not fit, and links beyond the room, are left out. */
static void link_add(struct watch_table *table, const struct watch_message *message)
{
	if (table->link_count == LINK_MAX || strlen(message->text) >= sizeof(table->links->path))
		return;
	struct watcher_link *link = &table->links[table->link_count++];
	*link = (struct watcher_link){.option = message->id,
				      .kind = (uint32_t)message->value,
				      .device = message->option.device,
				      .inode = message->option.inode};
	memcpy(link->path, message->text, strlen(message->text));
}

static void option_remove(struct watch_table *table, uint32_t id)
{
	struct registered *row = (struct registered *)watcher_registered(table, id);
	if (row)
		*row = table->options[--table->option_count];
}

static void taker_add(struct watcher *watcher, const struct watch_message *message, int socket)
{
	for (int i = 0; i < LOGGER_MAX; i++)
		if (watcher->takers[i].socket < 0) {
			watcher->takers[i] =
				(struct taker){.logger = message->logger, .socket = fcntl(socket, F_DUPFD_CLOEXEC, 0)};
			watcher->taker_count += watcher->takers[i].socket >= 0;
			return;
		}
}

static void spare_remove(struct watcher *watcher, uint32_t id)
{
	struct taker *taker = watcher_taker(watcher, id);
	if (!taker || taker->logger.kind != WATCH_LOGGER_SPARE)
		return;
	fd_close(&taker->socket);
	watcher->taker_count--;
}

/* Return the table, for a change: another one if readers use it. NULL: there is no memory for that. */
static struct watch_table *table_to_change(struct watcher *watcher)
{
	struct watch_table *old = watcher->table, *table = old->users ? malloc(sizeof(*table)) : NULL;
	if (!old->users)
		return old;
	if (!table) {
		watcher->is_over = watcher->has_failed = true;
		return NULL;
	}
	table->users = 0;
	table->option_count = old->option_count;
	table->link_count = old->link_count;
	memcpy(table->options, old->options, old->option_count * sizeof(*old->options));
	memcpy(table->links, old->links, old->link_count * sizeof(*old->links));
	watcher->table = table;
	return table;
}

static void change_table(struct watcher *watcher, const struct watch_message *message)
{
	struct watch_table *table = table_to_change(watcher);
	if (!table)
		return;
	switch (message->kind) {
	case WATCH_OPTION:
		option_set(table, message);
		break;
	case WATCH_LINK:
		link_add(table, message);
		break;
	case WATCH_NO_LINKS:
		table->link_count = 0;
		break;
	default:
		option_remove(table, message->id);
		break;
	}
	for (unsigned i = 0; i < table->option_count; i++)
		table->options[i].name = text_file_name(table->options[i].image);
}

/* Take a message about anything but marks. */
static void take_message(struct watcher *watcher, const struct watch_message *message, int fd)
{
	/* Whatever it says, files may belong to an option now. */
	watcher->messages++;
	watcher_forget_unregistered(watcher);
	switch (message->kind) {
	case WATCH_OPTION:
	case WATCH_LINK:
	case WATCH_NO_LINKS:
	case WATCH_NO_OPTION:
		change_table(watcher, message);
		break;
	case WATCH_LOGGER:
		taker_add(watcher, message, fd);
		watcher_send_waiting(watcher);
		break;
	case WATCH_NO_LOGGER:
		spare_remove(watcher, message->id);
		break;
	default:
		break;
	}
}

/* Only this thread changes marks, without the lock: the kernel may take its time. */
static void take_marks(struct watcher *watcher, const struct watch_message *message, int fd)
{
	switch (message->kind) {
	case WATCH_MARK_ANEW:
		watcher_marks_begin(watcher);
		break;
	case WATCH_MARK:
		watcher_mark(watcher, message, fd);
		break;
	case WATCH_MARKED:
		watcher_marks_swap(watcher);
		break;
	default:
		break;
	}
}

/* To close the file of a PATH may wait for a server, unless it was only looked up. */
static void close_received(const struct watch_message *message, int fd)
{
	bool is_of_path = message->kind == WATCH_MARK && message->value != WATCH_MARK_SYSTEM;
	if (is_of_path && !(fcntl(fd, F_GETFL) & O_PATH))
		watch_thread_close(fd);
	else
		close(fd);
}

static void keeper_messages(struct watcher *watcher)
{
	struct watch_message message;
	int fd, got;
	while ((got = watch_receive(watcher->keeper, &message, &fd)) > 0) {
		/* Many marks take long. */
		beat(watcher->life);
		pthread_mutex_lock(&watcher->lock);
		take_message(watcher, &message, fd);
		pthread_mutex_unlock(&watcher->lock);
		take_marks(watcher, &message, fd);
		if (fd >= 0)
			close_received(&message, fd);
	}
	if (got < 0)
		watcher->is_over = true;
}

/* ---- the loop ---- */

static void wait_and_serve(struct watcher *watcher)
{
	struct pollfd polled[1 + LOGGER_MAX];
	struct taker *takers[1 + LOGGER_MAX];
	nfds_t count = 1;
	pthread_mutex_lock(&watcher->lock);
	polled[0] = (struct pollfd){watcher->keeper, POLLIN, 0};
	for (int i = 0; count < 1 + watcher->taker_count && i < LOGGER_MAX; i++)
		if (watcher->takers[i].socket >= 0) {
			takers[count] = &watcher->takers[i];
			polled[count++] = (struct pollfd){watcher->takers[i].socket, POLLIN, 0};
		}
	int milliseconds = watcher_check_deadlines(watcher);
	pthread_mutex_unlock(&watcher->lock);
	if (poll(polled, count, milliseconds) < 0)
		return;
	beat(watcher->life);
	pthread_mutex_lock(&watcher->lock);
	for (nfds_t i = 1; i < count; i++)
		if (polled[i].revents && takers[i]->socket == polled[i].fd)
			watcher_take_answers(watcher, takers[i]);
	watcher_send_waiting(watcher);
	pthread_mutex_unlock(&watcher->lock);
	watcher_check_groups(watcher);
	watcher_check_readers(watcher);
	if (polled[0].revents)
		keeper_messages(watcher);
}

/* The end of this process would interrupt an open, and so deny a start. Its guardian, which sees that it gives no sign
   of life, takes care of all others, and kills it when the longest lease is over. */
static void wait_for_opens(struct watcher *watcher)
{
	__atomic_store_n(&watcher->opens->is_over, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < watcher->reader_count;)
		if (watcher_open_since(watcher, i))
			monotonic_pause(WATCHER_BEAT_MS * NS_PER_MS);
		else
			i++;
}

static void isolate(const struct watcher *watcher)
{
	static const int ignored[] = {SIGINT,  SIGQUIT, SIGHUP,  SIGPIPE, SIGTERM,
				      SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};
	prctl(PR_SET_NAME, "xheap-watcher");
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
	int kept[] = {watcher->keeper < watcher->guardian ? watcher->keeper : watcher->guardian,
		      watcher->keeper < watcher->guardian ? watcher->guardian : watcher->keeper};
	close_range(3, (unsigned)kept[0] - 1, 0);
	if (kept[0] + 1 < kept[1])
		close_range((unsigned)kept[0] + 1, (unsigned)kept[1] - 1, 0);
	close_range((unsigned)kept[1] + 1, UINT_MAX, 0);
	limits_raise(NULL);
}

static bool watcher_begin(struct watcher *watcher)
{
	struct stat own;
	if (stat("/proc/self/ns/mnt", &own) == 0)
		watcher->mounts = own.st_ino;
	watcher->group = watcher->new_group = WATCHER_GROUP_MAX;
	for (int i = 0; i < WATCHER_GROUP_MAX; i++)
		watcher->groups[i].group = -1;
	for (int i = 0; i < LOGGER_MAX; i++)
		watcher->takers[i].socket = -1;
	isolate(watcher);
	watch_memory_lock();
	/* A signal would interrupt the open of an event's file. */
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	watcher->table = calloc(1, sizeof(*watcher->table));
	watcher->ready = epoll_create1(EPOLL_CLOEXEC);
	return watcher->table && watcher->ready >= 0 && watcher_readers_start(watcher);
}

int watcher_run(int keeper, int guardian, struct watch_life *life, struct watcher_opens *opens, uint32_t deadline_ms)
{
	/* The kernel takes the guardian's priority from its child. Without one, all that follows takes long beside busy
	   programs, which must not delay starts. This thread gives the sign of life: it comes before its readers. */
	watch_priority_raise(WATCH_PRIORITY_LIFE);
	struct watcher *watcher = calloc(1, sizeof(*watcher));
	if (!watcher)
		return 1;
	watcher->keeper = keeper;
	watcher->guardian = guardian;
	watcher->life = life;
	watcher->opens = opens;
	watcher->deadline_ns = deadline_ms * NS_PER_MS;
	/* A reader that holds it comes before the others, as long as this thread waits for it. */
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&watcher->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	if (!watcher_begin(watcher))
		return 1;
	while (!__atomic_load_n(&watcher->is_over, __ATOMIC_ACQUIRE))
		wait_and_serve(watcher);
	wait_for_opens(watcher);
	return watcher->has_failed;
}
