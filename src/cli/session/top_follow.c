/* SPDX-License-Identifier: MIT */
#include "cli/session/top_follow.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/memory.h"
#include "base/threads.h"
#include "match/follow.h"
#include "os/monotonic.h"

enum { PUBLISH_NS = 500000000, FOLLOW_NICE = 10 };

/* Every look is worth it: a picture is to be new. */
static const struct heap_follow_increments increments = {.step_events = 2000000};

struct top_follow {
	char *path;
	struct heap_follow *follow; /* of the thread */
	uint64_t published_ns;      /* when, by the thread */
	pthread_mutex_t lock;       /* of all below */
	pthread_cond_t has_news;
	int64_t until_ns; /* of the newest cut of the file */
	uint64_t size_bytes;
	bool has_cut, has_sums, has_failed;
	struct matching_sums sums;
	struct diag diag;
};

static void publish(struct top_follow *follow)
{
	struct matching_sums sums;
	bool is_known = heap_follow_sums(follow->follow, &sums);
	pthread_mutex_lock(&follow->lock);
	matching_sums_fini(&follow->sums);
	follow->sums = sums;
	follow->has_sums = is_known;
	follow->has_failed |= !is_known;
	if (!is_known)
		diag_fail(&follow->diag, ESTALE, "some of it is in sums");
	pthread_mutex_unlock(&follow->lock);
	follow->published_ns = monotonic_now_ns();
}

/* While much is matched at once, show how far it is. */
static void on_progress(void *cookie, uint64_t done, uint64_t all)
{
	struct top_follow *follow = cookie;
	(void)done, (void)all;
	if (monotonic_now_ns() - follow->published_ns >= PUBLISH_NS)
		publish(follow);
}

static void *follow_run(void *context)
{
	static const bool never;
	struct top_follow *follow = context;
	struct diag diag = {""};
	int error = 0;
	/* Here a process is a thread: this one, and those that it begins. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), FOLLOW_NICE);
	while (!error) {
		pthread_mutex_lock(&follow->lock);
		while (!follow->has_cut)
			pthread_cond_wait(&follow->has_news, &follow->lock);
		int64_t until_ns = follow->until_ns;
		uint64_t size_bytes = follow->size_bytes;
		follow->has_cut = false;
		pthread_mutex_unlock(&follow->lock);
		error = heap_follow_advance(follow->follow, until_ns, size_bytes, &never, &diag);
		if (!error)
			publish(follow);
	}
	pthread_mutex_lock(&follow->lock);
	follow->has_failed = true;
	follow->diag = diag;
	pthread_mutex_unlock(&follow->lock);
	return NULL;
}

struct top_follow *top_follow_new(const char *path)
{
	pthread_t thread;
	struct top_follow *follow = memory_zeroed(1, sizeof(*follow));
	const struct heap_build how = {
		.fd = -1, .progress = on_progress, .cookie = follow, .has_chart = true, .without_rows = true};
	pthread_mutex_init(&follow->lock, NULL);
	pthread_cond_init(&follow->has_news, NULL);
	follow->path = strdup(path);
	follow->follow = heap_follow_new(follow->path, &how, &increments);
	if (thread_begin(&thread, follow_run, follow))
		return follow;
	heap_follow_free(follow->follow);
	free(follow->path);
	free(follow);
	return NULL;
}

void top_follow_note(struct top_follow *follow, const struct control_state *session)
{
	pthread_mutex_lock(&follow->lock);
	follow->has_cut |= session->whole_until_ns > follow->until_ns;
	follow->until_ns = session->whole_until_ns;
	follow->size_bytes = session->whole_bytes;
	pthread_cond_signal(&follow->has_news);
	pthread_mutex_unlock(&follow->lock);
}

bool top_follow_take(struct top_follow *follow, struct matching_sums *sums, struct matching_sums *before,
		     const char **why)
{
	pthread_mutex_lock(&follow->lock);
	bool has_failed = follow->has_failed;
	*why = follow->diag.text;
	if (follow->has_sums && !has_failed) {
		matching_sums_fini(before);
		*before = *sums;
		*sums = follow->sums;
		follow->sums = (struct matching_sums){.site_count = 0};
		follow->has_sums = false;
	}
	pthread_mutex_unlock(&follow->lock);
	return !has_failed;
}
