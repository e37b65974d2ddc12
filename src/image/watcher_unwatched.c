/* SPDX-License-Identifier: MIT */
/*
 * Which file system is to blame when too many readers wait for files. The kernel does not say which file an event has
 * before it has opened it, and what the callers say may be false. But it lists who waits for which lease, and a reader
 * that hangs behind the open knows its file. If neither says enough, all file systems are to blame. Those that are lose
 * their marks for some time, and are listed as not watched.
 */
#include "image/watcher_unwatched.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "image/watch_thread.h"
#include "image/watcher_groups.h"
#include "image/watcher_readers.h"
#include "image/watcher_state.h"
#include "os/monotonic.h"

/* How long an open takes that waits for something, for all readers and for a file system to be to blame; how long the
   keeper takes to set other marks; how long they last. */
#define OPEN_NS (20 * NS_PER_MS)
#define BLAME_NS (500 * NS_PER_MS)
#define REMARK_NS (2 * NS_PER_S)
#define RETRY_NS (600 * NS_PER_S)

/* A file system is to blame from so many readers on; nothing is marked if so many wait, until half of them do. */
enum { READERS_EACH = WATCHER_BLOCKED_MAX / 4, READERS_FULL = WATCHER_READER_MAX - 2 * WATCHER_BLOCKED_MAX };

struct candidates {
	struct {
		dev_t device;
		unsigned readers;
	} rows[UNWATCHED_MAX];
	unsigned count;
};

static void suspect(struct candidates *candidates, dev_t device)
{
	unsigned i = 0;
	while (i < candidates->count && candidates->rows[i].device != device)
		i++;
	if (i == UNWATCHED_MAX || !device)
		return;
	candidates->count += i == candidates->count;
	candidates->rows[i].device = device;
	candidates->rows[i].readers++;
}

/* A line of a lease is followed by those of the processes that wait for its end. */
static void suspect_leases(struct candidates *candidates)
{
	FILE *file = fopen("/proc/locks", "re");
	char line[256];
	unsigned major, minor;
	int pid;
	dev_t device = 0;
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*d: -> LEASE BREAKER %*s %d", &pid) == 1) {
			if (pid == getpid())
				suspect(candidates, device);
		} else {
			bool is_lease = sscanf(line, "%*d: LEASE %*s %*s %*d %x:%x:", &major, &minor) == 2;
			device = is_lease ? makedev(major, minor) : 0;
		}
	}
	if (file)
		fclose(file);
}

static void suspect_held(struct candidates *candidates, const struct watcher *watcher)
{
	unsigned group;
	for (unsigned i = 0; i < watcher->reader_count; i++)
		if (watcher_reader_state(&watcher->readers[i], &group) == READER_LATE)
			suspect(candidates, watcher->readers[i].device);
}

static bool is_unwatched(const struct watcher *watcher, dev_t device)
{
	for (int i = 0; i < UNWATCHED_MAX; i++)
		if (watcher->unwatched[i].until_ns &&
		    (watcher->unwatched[i].device == device || !watcher->unwatched[i].device))
			return true;
	return false;
}

bool watcher_is_unwatched(struct watcher *watcher, int object)
{
	struct statx found;
	pthread_mutex_lock(&watcher->lock);
	bool is_any = false;
	for (int i = 0; i < UNWATCHED_MAX; i++)
		is_any |= watcher->unwatched[i].until_ns != 0;
	pthread_mutex_unlock(&watcher->lock);
	/* Its device is known without a question to its file system. */
	if (!is_any || statx(object, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &found) != 0)
		return false;
	pthread_mutex_lock(&watcher->lock);
	bool is_one = is_unwatched(watcher, makedev(found.stx_dev_major, found.stx_dev_minor));
	pthread_mutex_unlock(&watcher->lock);
	return is_one;
}

static void unwatch(struct watcher *watcher, dev_t device, uint64_t now)
{
	struct watcher_unwatched *row = watcher->unwatched;
	while (row < watcher->unwatched + UNWATCHED_MAX - 1 && row->until_ns)
		row++;
	/* Beyond the room it is all of them. */
	*row = (struct watcher_unwatched){row->until_ns ? 0 : device, now + RETRY_NS};
}

static void ask_for_marks(const struct watcher *watcher)
{
	if (!__atomic_load_n(&watcher->is_full, __ATOMIC_ACQUIRE))
		watch_send(watcher->keeper, &(struct watch_message){.kind = WATCH_UNWATCHED}, -1, false);
}

static void *judge_thread(void *argument)
{
	struct watcher *watcher = argument;
	struct candidates candidates = {.count = 0};
	suspect_leases(&candidates);
	suspect_held(&candidates, watcher);
	uint64_t now = monotonic_now_ns();
	bool has_any = false;
	pthread_mutex_lock(&watcher->lock);
	for (unsigned i = 0; i < candidates.count; i++)
		if (candidates.rows[i].readers >= READERS_EACH && !is_unwatched(watcher, candidates.rows[i].device)) {
			unwatch(watcher, candidates.rows[i].device, now);
			has_any = true;
		}
	if (!has_any)
		unwatch(watcher, 0, now);
	watcher->judged_ns = now + REMARK_NS;
	pthread_mutex_unlock(&watcher->lock);
	ask_for_marks(watcher);
	__atomic_store_n(&watcher->is_judging, false, __ATOMIC_RELEASE);
	return NULL;
}

/* Return whether the thread sleeps, and does not only wait for a processor. */
static bool sleeps(pid_t tid)
{
	char path[48], text[128];
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	int fd = tid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = 0;
	const char *name_end = strrchr(text, ')');
	return name_end && name_end[1] && name_end[2] != 'R';
}

/* Return how many readers wait for a file since a time after the first and before the second one. A busy machine has
   many that wait for a processor. */
static unsigned waiting_count(const struct watcher *watcher, uint64_t after_ns, uint64_t before_ns)
{
	unsigned count = 0, group;
	for (unsigned i = 0; i < watcher->reader_count; i++) {
		const struct watcher_reader *reader = &watcher->readers[i];
		uint64_t since = watcher_open_since(watcher, i);
		if (!since && watcher_reader_state(reader, &group) == READER_LATE)
			since = reader->since_ns;
		count += since > after_ns && since < before_ns &&
			 sleeps(__atomic_load_n(&reader->tid, __ATOMIC_ACQUIRE));
	}
	return count;
}

/* Try again the file systems that were to blame long ago. */
static void forgive(struct watcher *watcher, uint64_t now)
{
	bool has_any = false;
	pthread_mutex_lock(&watcher->lock);
	for (int i = 0; i < UNWATCHED_MAX; i++)
		if (watcher->unwatched[i].until_ns && watcher->unwatched[i].until_ns <= now) {
			watcher->unwatched[i].until_ns = 0;
			has_any = true;
		}
	pthread_mutex_unlock(&watcher->lock);
	if (has_any)
		ask_for_marks(watcher);
}

/* Without marks no more events come, and the readers that are left are enough for those that wait. */
static void check_full(struct watcher *watcher, unsigned waiting)
{
	bool is_full = waiting >= (watcher->is_full ? READERS_FULL / 2 : READERS_FULL);
	if (is_full == watcher->is_full)
		return;
	__atomic_store_n(&watcher->is_full, is_full, __ATOMIC_RELEASE);
	if (is_full) {
		watcher_marks_drop(watcher);
		watch_send(watcher->keeper, &(struct watch_message){.kind = WATCH_UNWATCHED, .value = 1}, -1, false);
	}
	ask_for_marks(watcher);
}

void watcher_check_readers(struct watcher *watcher)
{
	uint64_t now = monotonic_now_ns();
	forgive(watcher, now);
	check_full(watcher, waiting_count(watcher, 0, now - OPEN_NS));
	pthread_mutex_lock(&watcher->lock);
	uint64_t judged = watcher->judged_ns;
	pthread_mutex_unlock(&watcher->lock);
	if (now < judged || waiting_count(watcher, judged, now - BLAME_NS) <= WATCHER_BLOCKED_MAX)
		return;
	if (!__atomic_exchange_n(&watcher->is_judging, true, __ATOMIC_ACQ_REL) &&
	    !watch_thread_start(judge_thread, watcher))
		__atomic_store_n(&watcher->is_judging, false, __ATOMIC_RELEASE);
}
