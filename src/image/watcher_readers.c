/* SPDX-License-Identifier: MIT */
/*
 * The threads that read events. The kernel opens the file of an event for its reader: that may wait for a lease, or for
 * a file system that somebody serves. What the reader then asks of the file may wait, too. So
 *
 *     - each reader reads one event at a time, so that none waits behind another one's file,
 *     - a reader that takes an event while others wait, or while no other is idle, first has another one woken,
 *     - no reader holds the lock over a call that asks a file system,
 *     - the main thread answers the events that a reader holds for too long, and never waits for a reader.
 */
#include "image/watcher_readers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "image/watch_thread.h"
#include "image/watcher_groups.h"
#include "image/watcher_starts.h"
#include "os/monotonic.h"

enum { READERS_AT_FIRST = 4 };

/* ---- answers ---- */

void watcher_allow(const struct watcher *watcher, unsigned group, int event)
{
	const struct fanotify_response response = {.fd = event, .response = FAN_ALLOW};
	ssize_t written = write(watcher->groups[group].group, &response, sizeof(response));
	(void)written; /* it fails when the thread was killed */
}

enum { STATE_BITS = 2, GROUP_BITS = 6, EVENT_BITS = 24, EVENT_SHIFT = STATE_BITS + GROUP_BITS };
_Static_assert(WATCHER_GROUP_MAX == 1 << GROUP_BITS && READER_LATE < 1 << STATE_BITS, "fields of a reader's word");

static enum reader_state state_of(uint64_t word)
{
	return (enum reader_state)(word & ((1 << STATE_BITS) - 1));
}

static unsigned group_of(uint64_t word)
{
	return word >> STATE_BITS & ((1 << GROUP_BITS) - 1);
}

static int event_of(uint64_t word)
{
	return (int)(word >> EVENT_SHIFT & ((1 << EVENT_BITS) - 1));
}

static uint64_t word_load(const struct watcher_reader *reader)
{
	return __atomic_load_n(&reader->word, __ATOMIC_ACQUIRE);
}

/* By its reader. */
static void word_store(struct watcher_reader *reader, enum reader_state state, unsigned group, int event)
{
	uint64_t count = (reader->word >> (EVENT_SHIFT + EVENT_BITS)) + (state == READER_HOLDS);
	__atomic_store_n(&reader->word,
			 (count << EVENT_BITS | (uint64_t)event) << EVENT_SHIFT | (uint64_t)group << STATE_BITS |
				 (uint64_t)state,
			 __ATOMIC_RELEASE);
}

enum reader_state watcher_reader_state(const struct watcher_reader *reader, unsigned *group)
{
	uint64_t word = word_load(reader);
	*group = group_of(word);
	return state_of(word);
}

/* Take the answer from the reader that holds the event. */
static bool take(struct watcher_reader *reader, uint64_t word, enum reader_state state)
{
	uint64_t taken = (word & ~(uint64_t)((1 << STATE_BITS) - 1)) | (uint64_t)state;
	return state_of(word) == READER_HOLDS &&
	       __atomic_compare_exchange_n(&reader->word, &word, taken, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool watcher_reader_give(struct watcher_reader *reader)
{
	return take(reader, word_load(reader), READER_IDLE);
}

void watcher_reader_allow(struct watcher_reader *reader)
{
	uint64_t word = word_load(reader);
	if (take(reader, word, READER_LATE))
		watcher_allow(reader->watcher, group_of(word), event_of(word));
}

/* The reader closes the file: it may be asking about it. If it does so before the answer, and the next event gets the
   number, the kernel takes the answer for the older one, and the next answer for the next one. */
void watcher_answer_late(struct watcher *watcher, uint64_t now_ns)
{
	for (unsigned i = 0; i < watcher->reader_count; i++) {
		struct watcher_reader *reader = &watcher->readers[i];
		uint64_t word = word_load(reader);
		if (state_of(word) == READER_HOLDS && reader->since_ns + watcher->deadline_ns <= now_ns &&
		    take(reader, word, READER_LATE))
			watcher_allow(watcher, group_of(word), event_of(word));
	}
}

/* ---- what is registered ---- */

struct watch_table *watcher_table_take(struct watcher *watcher)
{
	watcher->table->users++;
	return watcher->table;
}

void watcher_table_give(struct watcher *watcher, struct watch_table *table)
{
	if (--table->users == 0 && table != watcher->table)
		free(table);
}

/* ---- reading ---- */

/* Return whether one more descriptor is free: without one the kernel would deny the exec of the event. Far below the
   limit, which may change at any time, one call is enough to know that. */
static bool has_free_descriptor(const struct watcher *watcher)
{
	enum { KEPT = 64 + WATCHER_GROUP_MAX }; /* the standard ones, the groups, and those of short use */
	struct rlimit limit;
	unsigned used = KEPT + watcher->taker_count + watcher->pending + watcher->busy_count;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= used)
		return true;
	int fd = fcntl(watcher->keeper, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool enter(struct watcher_reader *reader, unsigned row)
{
	struct watcher *watcher = reader->watcher;
	pthread_mutex_lock(&watcher->lock);
	bool is_open = watcher->groups[row].group >= 0;
	if (is_open)
		word_store(reader, READER_OPENS, row, 0);
	pthread_mutex_unlock(&watcher->lock);
	return is_open;
}

static void opens_set(const struct watcher_reader *reader, uint64_t since_ns)
{
	struct watcher *watcher = reader->watcher;
	__atomic_store_n(&watcher->opens->since_ns[reader - watcher->readers], since_ns, __ATOMIC_SEQ_CST);
}

static bool is_over(const struct watcher *watcher)
{
	return __atomic_load_n(&watcher->opens->is_over, __ATOMIC_SEQ_CST);
}

static void read_event(struct watcher_reader *reader, unsigned row)
{
	struct watcher *watcher = reader->watcher;
	struct fanotify_event_metadata event;
	reader->device = 0;
	opens_set(reader, monotonic_now_ns());
	/* Whoever ends this process first says so, and then looks for opens. */
	ssize_t got = is_over(watcher) ? 0 : read(watcher->groups[row].group, &event, sizeof(event));
	opens_set(reader, 0);
	if (got != (ssize_t)sizeof(event))
		return;
	if (event.mask & FAN_Q_OVERFLOW)
		watch_send(watcher->keeper, &(struct watch_message){.kind = WATCH_OVERFLOW}, -1, false);
	if (event.fd < 0)
		return;
	reader->since_ns = monotonic_now_ns();
	word_store(reader, READER_HOLDS, row, event.fd);
	watcher_take_event(reader, &event);
}

/* Read what is in the group's queue. An event that comes later wakes a reader of its own. */
static void read_queue(struct watcher_reader *reader, unsigned row)
{
	struct watcher *watcher = reader->watcher;
	for (unsigned queued = 2; queued > 1 && !is_over(watcher) && enter(reader, row);) {
		queued = watcher_group_queued(watcher->groups[row].group);
		/* The guardian reads the events of a watcher that ends. */
		if (queued && !has_free_descriptor(watcher)) {
			watcher->has_failed = true;
			__atomic_store_n(&watcher->is_over, true, __ATOMIC_RELEASE);
			queued = 0;
		}
		if (queued > 1)
			watcher_group_wake(watcher, row);
		if (queued)
			read_event(reader, row);
		word_store(reader, READER_IDLE, row, 0);
	}
}

static bool reader_start(struct watcher *watcher);

static void *reader_run(void *argument)
{
	struct watcher_reader *reader = argument;
	struct watcher *watcher = reader->watcher;
	struct epoll_event ready;
	__atomic_store_n(&reader->tid, gettid(), __ATOMIC_RELEASE);
	watch_priority_raise(WATCH_PRIORITY_READER);
	for (;;) {
		if (epoll_wait(watcher->ready, &ready, 1, -1) != 1)
			continue;
		if (__atomic_add_fetch(&watcher->busy_count, 1, __ATOMIC_ACQ_REL) >=
		    __atomic_load_n(&watcher->reader_count, __ATOMIC_ACQUIRE))
			reader_start(watcher);
		read_queue(reader, ready.data.u32);
		__atomic_fetch_sub(&watcher->busy_count, 1, __ATOMIC_ACQ_REL);
	}
	return NULL;
}

static bool reader_start(struct watcher *watcher)
{
	pthread_mutex_lock(&watcher->lock);
	unsigned row = watcher->reader_count;
	bool has_started = row < WATCHER_READER_MAX;
	if (has_started) {
		watcher->readers[row] = (struct watcher_reader){.watcher = watcher};
		has_started = watch_thread_start(reader_run, &watcher->readers[row]);
		__atomic_store_n(&watcher->reader_count, row + has_started, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&watcher->lock);
	return has_started;
}

bool watcher_readers_start(struct watcher *watcher)
{
	for (int i = 0; i < READERS_AT_FIRST; i++)
		if (!reader_start(watcher))
			return false;
	return true;
}

uint64_t watcher_open_since(const struct watcher *watcher, unsigned reader)
{
	return __atomic_load_n(&watcher->opens->since_ns[reader], __ATOMIC_SEQ_CST);
}
