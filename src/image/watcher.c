/* SPDX-License-Identifier: MIT */
/*
 * The watcher's loop.
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
 * An answer that does not come within the deadline is not waited for. Closing the group's descriptor, as the end
 * of this process does, allows everything.
 */
#include "image/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "image/watcher_state.h"
#include "os/fd.h"
#include "os/limits.h"
#include "os/monotonic.h"

/* How long a thread may be without a processor between a mark and the queue of its group. */
#define OLD_GROUP_NS (500 * NS_PER_MS)

/* Events that are read by one call. Each takes a descriptor. */
enum { EVENTS_AT_ONCE = 16 };

/* ---- signs of life ---- */

static void beat(struct watch_life *life)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	__atomic_store_n(&life->beat_ns, (int64_t)now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec, __ATOMIC_RELAXED);
	__atomic_fetch_add(&life->beats, 1, __ATOMIC_RELAXED);
}

/* ---- marks ---- */

static int group_open(void)
{
	return fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_MARKS | FAN_REPORT_TID,
			     O_RDONLY | O_CLOEXEC);
}

static void *group_close_thread(void *group)
{
	close((int)(intptr_t)group);
	return NULL;
}

/* Close a group. The kernel waits for the end of its marks, which may take longer than a start may wait. */
static void group_close(int group)
{
	enum { STACK_BYTES = 64 << 10 };
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (pthread_create(&thread, &attributes, group_close_thread, (void *)(intptr_t)group) != 0)
		close(group);
	pthread_attr_destroy(&attributes);
}

static void mark(struct watcher *watcher, const struct watch_message *message, int object)
{
	enum watch_mark kind = (enum watch_mark)message->value;
	static const unsigned flags[] = {[WATCH_MARK_SYSTEM] = FAN_MARK_FILESYSTEM};
	int *group = watcher->is_new ? &watcher->new_group : &watcher->group;
	uint64_t mask = FAN_OPEN_EXEC_PERM | (kind == WATCH_MARK_DIRECTORY ? (uint64_t)FAN_EVENT_ON_CHILD : 0);
	if (*group < 0)
		*group = group_open();
	if (*group >= 0 && fanotify_mark(*group, FAN_MARK_ADD | (kind <= WATCH_MARK_SYSTEM ? flags[kind] : 0), mask,
					 object, NULL) == 0)
		return;
	struct watch_message refusal = {.kind = WATCH_REFUSED, .id = (uint32_t)kind, .value = errno};
	memcpy(refusal.text, message->text, sizeof(refusal.text));
	watch_send(watcher->keeper, &refusal, -1, false);
}

/* Return whether a descriptor is free. */
static bool has_free_descriptor(const struct watcher *watcher)
{
	int fd = fcntl(watcher->keeper, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* Return how many events may be read: without a descriptor for each one the kernel would deny its exec. Far below the
   limit, which may change at any time, one call is enough to know that. */
static unsigned readable_events(const struct watcher *watcher)
{
	enum { KEPT = 64 }; /* the standard ones, the groups and the keeper's */
	struct rlimit limit;
	unsigned used = KEPT + watcher->taker_count + watcher->pending;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= used + EVENTS_AT_ONCE)
		return EVENTS_AT_ONCE;
	return has_free_descriptor(watcher);
}

/* Take what is in the group's queue, some rounds at most. */
static void events(struct watcher *watcher, int group)
{
	enum { ROUNDS = 4 };
	struct fanotify_event_metadata read_events[EVENTS_AT_ONCE];
	unsigned count = EVENTS_AT_ONCE, readable = count;
	for (int round = 0; round < ROUNDS && count == readable; round++) {
		readable = readable_events(watcher);
		/* The end of this process allows every exec that waits. */
		if (!readable) {
			watcher->is_over = watcher->has_failed = true;
			return;
		}
		ssize_t got = read(group, read_events, readable * sizeof(*read_events));
		count = got > 0 ? (unsigned)((size_t)got / sizeof(*read_events)) : 0;
		for (unsigned i = 0; i < count; i++)
			watcher_take_event(watcher, group, &read_events[i]);
	}
}

static bool has_unanswered(const struct watcher *watcher, int group)
{
	for (int i = 0; i < START_MAX; i++)
		if (watcher->starts[i].token && watcher->starts[i].event >= 0 && watcher->starts[i].group == group)
			return true;
	return false;
}

/* An exec that waits in the queue began before the new marks: it is in no other group. A thread that has found an old
   mark, and has lost its processor before its event was in the queue, is no other case. */
static void close_old_groups(struct watcher *watcher)
{
	for (int i = 0; i < OLD_GROUP_MAX; i++) {
		struct watcher_group *old = &watcher->old[i];
		if (old->group < 0)
			continue;
		events(watcher, old->group);
		if (monotonic_now_ns() >= old->until_ns && !has_unanswered(watcher, old->group)) {
			group_close(old->group);
			old->group = -1;
		}
	}
}

/* Let a group end. Its marks go at once, so that no exec is asked about twice. */
static void group_retire(struct watcher *watcher, int group)
{
	struct watcher_group *oldest = watcher->old;
	if (group < 0)
		return;
	fanotify_mark(group, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL);
	fanotify_mark(group, FAN_MARK_FLUSH | FAN_MARK_FILESYSTEM, 0, AT_FDCWD, NULL);
	for (int i = 0; i < OLD_GROUP_MAX; i++)
		if (watcher->old[i].group < 0 || (oldest->group >= 0 && watcher->old[i].until_ns < oldest->until_ns))
			oldest = &watcher->old[i];
	if (oldest->group >= 0) {
		events(watcher, oldest->group);
		group_close(oldest->group);
	}
	*oldest = (struct watcher_group){group, monotonic_now_ns() + OLD_GROUP_NS};
}

/* The new marks are in force already: between the two groups no exec is missed. */
static void marks_swap(struct watcher *watcher)
{
	group_retire(watcher, watcher->group);
	watcher->group = watcher->new_group;
	watcher->new_group = -1;
	watcher->is_new = false;
	close_old_groups(watcher);
	watch_send(watcher->keeper, &(struct watch_message){.kind = WATCH_IN_FORCE}, -1, false);
}

/* ---- the keeper's messages ---- */

struct registered *watcher_registered(struct watcher *watcher, uint32_t id)
{
	for (unsigned i = 0; i < watcher->option_count; i++)
		if (watcher->options[i].id == id)
			return &watcher->options[i];
	return NULL;
}

static void option_set(struct watcher *watcher, const struct watch_message *message)
{
	struct registered *row = watcher_registered(watcher, message->id);
	if (!row && watcher->option_count < IMAGE_OPTION_MAX)
		row = &watcher->options[watcher->option_count++];
	if (!row)
		return;
	row->option = message->option;
	row->id = message->id;
	memcpy(row->image, message->text, sizeof(row->image));
	row->name = NULL;
	for (unsigned i = 0; i < watcher->option_count; i++)
		watcher->options[i].name = text_file_name(watcher->options[i].image);
}

/* A path that does not fit, and links beyond the room, are left out. */
static void link_add(struct watcher *watcher, const struct watch_message *message)
{
	if (watcher->link_count == LINK_MAX || strlen(message->text) >= sizeof(watcher->links->path))
		return;
	struct watcher_link *link = &watcher->links[watcher->link_count++];
	*link = (struct watcher_link){.option = message->id,
				      .kind = (uint32_t)message->value,
				      .device = message->option.device,
				      .inode = message->option.inode};
	memcpy(link->path, message->text, strlen(message->text));
}

static void option_remove(struct watcher *watcher, uint32_t id)
{
	struct registered *row = watcher_registered(watcher, id);
	if (!row)
		return;
	*row = watcher->options[--watcher->option_count];
	row->name = text_file_name(row->image);
}

static void taker_add(struct watcher *watcher, const struct watch_message *message, int socket)
{
	for (int i = 0; i < LOGGER_MAX; i++)
		if (watcher->takers[i].socket < 0) {
			watcher->takers[i] = (struct taker){.logger = message->logger,
							    .socket = fcntl(socket, F_DUPFD_CLOEXEC, 0)};
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

void watcher_take_message(struct watcher *watcher, const struct watch_message *message, int fd)
{
	/* Whatever it says, files may belong to an option now. */
	watcher_forget_unregistered(watcher);
	switch (message->kind) {
	case WATCH_OPTION:
		option_set(watcher, message);
		break;
	case WATCH_LINK:
		link_add(watcher, message);
		break;
	case WATCH_NO_LINKS:
		watcher->link_count = 0;
		break;
	case WATCH_NO_OPTION:
		option_remove(watcher, message->id);
		break;
	case WATCH_LOGGER:
		taker_add(watcher, message, fd);
		watcher_send_waiting(watcher);
		break;
	case WATCH_NO_LOGGER:
		spare_remove(watcher, message->id);
		break;
	case WATCH_MARK_ANEW:
		if (watcher->new_group >= 0)
			group_close(watcher->new_group);
		watcher->new_group = -1;
		watcher->is_new = true;
		break;
	case WATCH_MARK:
		mark(watcher, message, fd);
		break;
	case WATCH_MARKED:
		marks_swap(watcher);
		break;
	default:
		break;
	}
}

static void keeper_messages(struct watcher *watcher)
{
	struct watch_message message;
	int fd, got;
	while ((got = watch_receive(watcher->keeper, &message, &fd)) > 0) {
		/* Many marks take long. */
		beat(watcher->life);
		watcher_take_message(watcher, &message, fd);
		if (fd >= 0)
			close(fd);
	}
	if (got < 0)
		watcher->is_over = true;
}

/* ---- the loop ---- */

static void wait_and_serve(struct watcher *watcher)
{
	enum { TAKERS = 2 + OLD_GROUP_MAX };
	struct pollfd polled[TAKERS + LOGGER_MAX];
	struct taker *takers[LOGGER_MAX];
	nfds_t count = 0;
	polled[count++] = (struct pollfd){watcher->keeper, POLLIN, 0};
	polled[count++] = (struct pollfd){watcher->group, POLLIN, 0};
	for (int i = 0; i < OLD_GROUP_MAX; i++)
		polled[count++] = (struct pollfd){watcher->old[i].group, POLLIN, 0};
	for (int i = 0; count < TAKERS + watcher->taker_count && i < LOGGER_MAX; i++)
		if (watcher->takers[i].socket >= 0) {
			takers[count - TAKERS] = &watcher->takers[i];
			polled[count++] = (struct pollfd){watcher->takers[i].socket, POLLIN, 0};
		}
	const int group = watcher->group;
	if (poll(polled, count, watcher_check_deadlines(watcher)) < 0)
		return;
	beat(watcher->life);
	for (nfds_t i = TAKERS; i < count; i++)
		if (polled[i].revents && takers[i - TAKERS]->socket == polled[i].fd)
			watcher_take_answers(watcher, takers[i - TAKERS]);
	watcher_send_waiting(watcher);
	if (group >= 0 && polled[1].revents)
		events(watcher, group);
	close_old_groups(watcher);
	if (polled[0].revents)
		keeper_messages(watcher);
}

static void isolate(const struct watcher *watcher)
{
	static const int ignored[] = {SIGINT,  SIGQUIT, SIGHUP,  SIGPIPE, SIGTERM,
				      SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};
	prctl(PR_SET_NAME, "xheap-watcher");
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
	if (watcher->keeper > 3)
		close_range(3, (unsigned)watcher->keeper - 1, 0);
	close_range((unsigned)watcher->keeper + 1, UINT_MAX, 0);
	limits_raise(NULL);
}

/* The kernel takes the guardian's priority from its child. Without one, all that follows takes long beside busy
   programs, which must not delay starts. A nice value counts only within a session or a cgroup. */
static void raise_priority(void)
{
	setpriority(PRIO_PROCESS, 0, -20);
	sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &(struct sched_param){.sched_priority = 1});
}

int watcher_run(int keeper, struct watch_life *life, uint32_t deadline_ms)
{
	raise_priority();
	struct watcher *watcher = calloc(1, sizeof(*watcher));
	if (!watcher)
		return 1;
	watcher->keeper = keeper;
	struct stat own;
	if (stat("/proc/self/exe", &own) == 0) {
		watcher->device = own.st_dev;
		watcher->inode = own.st_ino;
	}
	if (stat("/proc/self/ns/mnt", &own) == 0)
		watcher->mounts = own.st_ino;
	if (stat("/proc/self/ns/user", &own) == 0)
		watcher->users = own.st_ino;
	watcher->life = life;
	watcher->deadline_ns = deadline_ms * NS_PER_MS;
	watcher->group = watcher->new_group = -1;
	for (int i = 0; i < OLD_GROUP_MAX; i++)
		watcher->old[i].group = -1;
	for (int i = 0; i < LOGGER_MAX; i++)
		watcher->takers[i].socket = -1;
	isolate(watcher);
	/* Without the right to that, or without room, pages may have to be read again. */
	mlockall(MCL_CURRENT | MCL_FUTURE);
	while (!watcher->is_over)
		wait_and_serve(watcher);
	return watcher->has_failed;
}
