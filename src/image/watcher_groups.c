/* SPDX-License-Identifier: MIT */
#include "image/watcher_groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "image/watch_thread.h"
#include "image/watcher_readers.h"
#include "image/watcher_state.h"
#include "image/watcher_unwatched.h"
#include "os/monotonic.h"

/* How long a thread may be without a processor between a mark and the queue of its group. */
#define OLD_GROUP_NS (500 * NS_PER_MS)

static void tell_guardian(const struct watcher *watcher, unsigned row, int group)
{
	watch_send(watcher->guardian, &(struct watch_message){.kind = WATCH_GROUP, .id = row}, group, false);
}

static unsigned group_open(struct watcher *watcher)
{
	unsigned row = 0;
	while (row < WATCHER_GROUP_MAX && watcher->groups[row].group >= 0)
		row++;
	/* With O_NONBLOCK the kernel would deny the start of a file with a lease. */
	int group = row < WATCHER_GROUP_MAX ? fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK |
								    FAN_UNLIMITED_MARKS | FAN_REPORT_TID,
							    O_RDONLY | O_CLOEXEC)
					    : -1;
	if (group < 0)
		return WATCHER_GROUP_MAX;
	tell_guardian(watcher, row, group);
	pthread_mutex_lock(&watcher->lock);
	watcher->groups[row] = (struct watcher_group){.group = group};
	pthread_mutex_unlock(&watcher->lock);
	/* Each event wakes one reader. */
	struct epoll_event events = {.events = EPOLLIN | EPOLLET, .data.u32 = row};
	epoll_ctl(watcher->ready, EPOLL_CTL_ADD, group, &events);
	return row;
}

unsigned watcher_group_queued(int group)
{
	int bytes = 0;
	return ioctl(group, FIONREAD, &bytes) == 0 ? (unsigned)bytes / FAN_EVENT_METADATA_LEN : 0;
}

void watcher_group_wake(const struct watcher *watcher, unsigned row)
{
	struct epoll_event events = {.events = EPOLLIN | EPOLLET, .data.u32 = row};
	epoll_ctl(watcher->ready, EPOLL_CTL_MOD, watcher->groups[row].group, &events);
}

/* Return an errno, or 0. */
static int mark(struct watcher *watcher, enum watch_mark kind, int object)
{
	static const unsigned flags[] = {[WATCH_MARK_SYSTEM] = FAN_MARK_FILESYSTEM};
	unsigned *row = watcher->is_new ? &watcher->new_group : &watcher->group;
	uint64_t mask = FAN_OPEN_EXEC_PERM | (kind == WATCH_MARK_DIRECTORY ? (uint64_t)FAN_EVENT_ON_CHILD : 0);
	unsigned how = FAN_MARK_ADD | (kind <= WATCH_MARK_SYSTEM ? flags[kind] : 0);
	char path[64];
	if (*row == WATCHER_GROUP_MAX)
		*row = group_open(watcher);
	if (*row == WATCHER_GROUP_MAX)
		return EMFILE;
	/* The object may have been looked up, not opened. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", object);
	return fanotify_mark(watcher->groups[*row].group, how, mask, AT_FDCWD, path) == 0 ? 0 : errno;
}

void watcher_mark(struct watcher *watcher, const struct watch_message *message, int object)
{
	enum watch_mark kind = (enum watch_mark)message->value;
	bool is_unwatched = watcher->is_full || (kind == WATCH_MARK_SYSTEM && watcher_is_unwatched(watcher, object));
	int error = is_unwatched ? 0 : mark(watcher, kind, object);
	if (!is_unwatched && !error)
		return;
	struct watch_message refusal = {.kind = WATCH_REFUSED, .id = (uint32_t)kind, .value = error};
	memcpy(refusal.text, message->text, sizeof(refusal.text));
	watch_send(watcher->keeper, &refusal, -1, false);
}

static void marks_flush(const struct watcher *watcher, unsigned row)
{
	if (row == WATCHER_GROUP_MAX)
		return;
	fanotify_mark(watcher->groups[row].group, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL);
	fanotify_mark(watcher->groups[row].group, FAN_MARK_FLUSH | FAN_MARK_FILESYSTEM, 0, AT_FDCWD, NULL);
}

void watcher_marks_drop(struct watcher *watcher)
{
	marks_flush(watcher, watcher->group);
	marks_flush(watcher, watcher->new_group);
}

/* Let a group end. Its marks go at once, so that no exec is asked about twice. */
static void group_retire(struct watcher *watcher, unsigned row)
{
	marks_flush(watcher, row);
	if (row != WATCHER_GROUP_MAX)
		watcher->groups[row].until_ns = monotonic_now_ns() + OLD_GROUP_NS;
}

void watcher_marks_begin(struct watcher *watcher)
{
	group_retire(watcher, watcher->new_group);
	watcher->new_group = WATCHER_GROUP_MAX;
	watcher->is_new = true;
}

/* The new marks are in force already: between the two groups no exec is missed. */
void watcher_marks_swap(struct watcher *watcher)
{
	group_retire(watcher, watcher->group);
	watcher->group = watcher->new_group;
	watcher->new_group = WATCHER_GROUP_MAX;
	watcher->is_new = false;
	watch_send(watcher->keeper, &(struct watch_message){.kind = WATCH_IN_FORCE}, -1, false);
	if (watcher->is_full)
		watch_send(watcher->keeper, &(struct watch_message){.kind = WATCH_UNWATCHED, .value = 1}, -1, false);
}

static bool is_used(const struct watcher *watcher, unsigned row)
{
	unsigned used;
	for (unsigned i = 0; i < watcher->reader_count; i++)
		if (watcher_reader_state(&watcher->readers[i], &used) != READER_IDLE && used == row)
			return true;
	for (int i = 0; watcher->start_count && i < START_MAX; i++)
		if (watcher->starts[i].token && watcher->starts[i].event >= 0 && watcher->starts[i].group == row)
			return true;
	return false;
}

/* An exec that waits in the queue of a group without marks began before the new marks: it is in no other group. A
   thread that has found an old mark, and has lost its processor before its event was in the queue, is no other case. */
void watcher_check_groups(struct watcher *watcher)
{
	uint64_t now = monotonic_now_ns();
	for (unsigned row = 0; row < WATCHER_GROUP_MAX; row++) {
		struct watcher_group *group = &watcher->groups[row];
		if (group->group < 0)
			continue;
		if (watcher_group_queued(group->group)) {
			watcher_group_wake(watcher, row);
			continue;
		}
		pthread_mutex_lock(&watcher->lock);
		int ended = group->until_ns && now >= group->until_ns && !is_used(watcher, row) ? group->group : -1;
		if (ended >= 0)
			group->group = -1;
		pthread_mutex_unlock(&watcher->lock);
		if (ended < 0)
			continue;
		epoll_ctl(watcher->ready, EPOLL_CTL_DEL, ended, NULL);
		tell_guardian(watcher, row, -1);
		watch_thread_close(ended);
	}
}
