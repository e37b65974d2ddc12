/* SPDX-License-Identifier: MIT */
/* xheap --index: a logger starts it, to make the index of its trace while it records. Not for users, and in no list. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/opened_trace.h"
#include "base/threads.h"
#include "cells/cells.h"
#include "cli/cli.h"
#include "match/follow.h"
#include "match/match.h"
#include "session/store/indexing.h"
#include "session/store/worker.h"
#include "table/index_cache.h"
#include "table/index_file.h"
#include "trace/reader.h"

/* A step checks soon enough whether somebody waits; repeated looks at a long trace cost little. */
static const struct heap_follow_increments increments = {
	.least_events = 500000, .least_part = 16, .step_events = 2000000};

static void progress_send(const struct indexing_progress *progress)
{
	/* A pipe takes it whole. When nobody reads any more, our end has come as well. */
	if (write(STDOUT_FILENO, progress, sizeof(*progress)) != (ssize_t)sizeof(*progress))
		_exit(CLI_FAILED);
}

static void progress_tell(void *cookie, uint64_t done, uint64_t all)
{
	const bool *is_whole = cookie;
	if (*is_whole)
		progress_send(&(struct indexing_progress){.done = done, .all = all});
}

/* The logger passes the text on. */
static int refuse(const struct diag *diag)
{
	fprintf(stderr, "%s\n", diag->text);
	return CLI_FAILED;
}

/* ---- increments of the table, by a thread of low priority ---- */

struct following {
	struct heap_follow *follow;
	pthread_mutex_t lock;
	pthread_cond_t has_news;
	struct indexing_cut cut; /* the newest */
	bool has_cut, is_over;   /* the newest cut was not taken yet; the trace is complete */
};

/* False: the trace is whole. */
static bool cut_take(struct following *following, struct indexing_cut *cut)
{
	pthread_mutex_lock(&following->lock);
	while (!following->has_cut && !following->is_over)
		pthread_cond_wait(&following->has_news, &following->lock);
	*cut = following->cut;
	bool is_over = following->is_over;
	following->has_cut = false;
	pthread_mutex_unlock(&following->lock);
	return !is_over;
}

static void *following_run(void *context)
{
	struct following *following = context;
	struct indexing_cut cut;
	worker_yield();
	while (cut_take(following, &cut)) {
		struct diag diag = {""};
		if (heap_follow_advance(following->follow, cut.until_ns, cut.size_bytes, &following->is_over, &diag))
			_exit(refuse(&diag));
	}
	return NULL;
}

static void following_report(struct following *following, const struct indexing_cut *cut_or_null)
{
	pthread_mutex_lock(&following->lock);
	if (cut_or_null)
		following->cut = *cut_or_null;
	following->has_cut = cut_or_null != NULL;
	__atomic_store_n(&following->is_over, cut_or_null == NULL, __ATOMIC_RELAXED);
	pthread_cond_signal(&following->has_news);
	pthread_mutex_unlock(&following->lock);
}

/* Follow the trace until it is complete. The caller does the remaining work at normal priority: somebody waits. */
static void following_advance(struct heap_follow *follow)
{
	struct following following = {
		.follow = follow, .lock = PTHREAD_MUTEX_INITIALIZER, .has_news = PTHREAD_COND_INITIALIZER};
	struct indexing_cut cut;
	pthread_t thread;
	ssize_t got;
	bool is_begun = thread_begin(&thread, following_run, &following);
	while ((got = read(STDIN_FILENO, &cut, sizeof(cut))) == (ssize_t)sizeof(cut) || (got < 0 && errno == EINTR))
		if (got > 0)
			following_report(&following, &cut);
	following_report(&following, NULL);
	if (is_begun)
		pthread_join(thread, NULL);
}

/* Follow the trace until it is whole. 0, or a negative errno with the reason in diag; *trace and *table are the
   caller's then. */
static int trace_follow(const char *path, const struct heap_build *how, bool *is_whole, struct trace **trace,
			struct heap_table **table, struct diag *diag)
{
	struct heap_follow *follow = heap_follow_new(path, how, &increments);
	following_advance(follow);
	*is_whole = true;
	int error = heap_follow_end(follow, trace, table, diag);
	heap_follow_free(follow);
	return error;
}

static int index_write(const struct trace *trace, struct heap_table *table, const char *path, struct diag *diag)
{
	struct index_cache_made made;
	if (!opened_trace_is_worth_an_index(trace))
		return 0;
	cells_keep(table, NULL);
	int error = index_cache_write(table, path, &made, diag);
	if (!error)
		progress_send(&(struct indexing_progress){.index_bytes = made.bytes});
	return error;
}

/* Follow the trace at path, and write its index. */
static int index_make(const char *path, struct diag *diag)
{
	struct trace *trace;
	struct heap_table *table;
	bool is_whole = false;
	struct heap_build how = {.fd = index_cache_begin(diag),
				 .reserved_bytes = HEAP_INDEX_HEAD_BYTES,
				 .progress = progress_tell,
				 .cookie = &is_whole};
	int error = how.fd < 0 ? how.fd : trace_follow(path, &how, &is_whole, &trace, &table, diag);
	if (error)
		return error;
	error = index_write(trace, table, path, diag);
	heap_table_free(table);
	trace_close(trace);
	return error;
}

static int index_run(int argc, char **argv)
{
	struct diag diag = {""};
	if (argc != 2)
		return CLI_FAILED;
	/* A logger that dies has made no whole trace. */
	worker_is_begun();
	int error = index_make(argv[1], &diag);
	return error ? refuse(&diag) : CLI_OK;
}

const struct command command_index = {.name = INDEXING_WORD,
				      .usage = "FILE",
				      .summary = "make the index of a trace while it is written; record starts it",
				      .run = index_run,
				      .help = ""};
