/* SPDX-License-Identifier: MIT */
/*
 * xheap --index: a logger starts it, to make the index of its trace while it records. Not for users, and in no list.
 *
 * Without --index of the user it is to cost nobody anything: it works while a processor is idle, has little memory, and
 * gives up a trace whose index would be large or would not be whole soon after the end.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/opened_trace.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/cli.h"
#include "match/follow.h"
#include "match/match.h"
#include "os/idle.h"
#include "os/limits.h"
#include "session/store/indexing.h"
#include "session/store/worker.h"
#include "table/index_cache.h"
#include "table/index_file.h"
#include "trace/reader.h"

enum {
	IDLE_EVENTS_MOST = 50000000,
	IDLE_TRACE_PART = 10, /* of the limit of all indexes: the trace, */
	IDLE_INDEX_PART = 4,  /* and its index */
	IDLE_MEMORY_PART = 16,
	/* Left when the trace is whole: to match them takes a third of a second on one processor. */
	IDLE_END_POINTS = 3000000,
	KIB = 1024
};

/* A step checks soon enough whether somebody waits; repeated looks at a long trace cost little. */
static const struct heap_follow_increments increments = {
	.least_events = 500000, .least_part = 16, .step_events = 2000000};
/* Nobody waits for long, so as little as possible is left for the end. */
static const struct heap_follow_increments idle_increments = {
	.least_events = 250000, .least_part = 0, .step_events = 500000};

static void progress_send(const struct indexing_progress *progress)
{
	/* A pipe takes it whole. When nobody reads any more, our end has come as well. */
	if (write(STDOUT_FILENO, progress, sizeof(*progress)) != (ssize_t)sizeof(*progress))
		_exit(CLI_FAILED);
}

/* The logger passes the text on. */
static int refuse(const struct diag *diag)
{
	fprintf(stderr, "%s\n", diag->text);
	return CLI_FAILED;
}

/* ---- what an index may cost that nobody asked for ---- */

struct indexing_limits {
	bool is_idle; /* nobody asked for it */
	struct idle idle;
	uint64_t limit_bytes;  /* of all indexes */
	uint64_t memory_bytes; /* that this process may use */
	int index_fd;
};

static int size_check(const struct indexing_limits *limits, const struct indexing_cut *cut, struct diag *diag)
{
	struct rusage usage;
	struct stat status = {.st_size = 0};
	if (cut->event_count > IDLE_EVENTS_MOST)
		return diag_fail(diag, EFBIG, "the trace has more than %s events", text_count(IDLE_EVENTS_MOST).data);
	if (cut->size_bytes > limits->limit_bytes / IDLE_TRACE_PART)
		return diag_fail(diag, EFBIG, "the trace has more than a tenth of the %s for all indexes",
				 text_bytes(limits->limit_bytes).data);
	if (!fstat(limits->index_fd, &status) && (uint64_t)status.st_size > limits->limit_bytes / IDLE_INDEX_PART)
		return diag_fail(diag, EFBIG, "it needs more than a fourth of the %s for all indexes",
				 text_bytes(limits->limit_bytes).data);
	if (!getrusage(RUSAGE_SELF, &usage) && (uint64_t)usage.ru_maxrss * KIB > limits->memory_bytes)
		return diag_fail(diag, ENOMEM, "it needs more than %s of memory",
				 text_bytes(limits->memory_bytes).data);
	return 0;
}

/* Return whether it is time to match up to the cut. End the process if the index becomes too large. */
static bool limits_allow(struct indexing_limits *limits, const struct indexing_cut *cut)
{
	struct diag diag = {""};
	if (!limits->is_idle)
		return true;
	if (size_check(limits, cut, &diag))
		_exit(refuse(&diag));
	return idle_look(&limits->idle);
}

/* The trace is whole, and somebody waits. End the process if that would be long, or nothing is idle. */
static void limits_check_end(struct indexing_limits *limits, uint64_t left)
{
	struct diag diag = {""};
	if (!limits->is_idle || (idle_look(&limits->idle) && left <= IDLE_END_POINTS))
		return;
	if (limits->idle.is_idle)
		diag_fail(&diag, EBUSY, "%s of its events were left at the end", text_count(left).data);
	else
		diag_fail(&diag, EBUSY, "no processor was idle");
	_exit(refuse(&diag));
}

/* ---- progress ---- */

struct indexing_making {
	struct indexing_limits limits;
	bool is_whole; /* the trace */
};

static void progress_tell(void *cookie, uint64_t done, uint64_t all)
{
	struct indexing_making *making = cookie;
	if (!making->is_whole)
		return;
	limits_check_end(&making->limits, all > done ? all - done : 0);
	progress_send(&(struct indexing_progress){.done = done, .all = all});
}

/* ---- increments of the table, by a thread of low priority ---- */

struct following {
	struct heap_follow *follow;
	bool is_idle; /* run only while a processor is idle */
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
	worker_yield(following->is_idle);
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
static void following_advance(struct heap_follow *follow, struct indexing_limits *limits)
{
	struct following following = {.follow = follow,
				      .is_idle = limits->is_idle,
				      .lock = PTHREAD_MUTEX_INITIALIZER,
				      .has_news = PTHREAD_COND_INITIALIZER};
	struct indexing_cut cut;
	pthread_t thread;
	ssize_t got;
	bool is_begun = thread_begin(&thread, following_run, &following);
	while ((got = read(STDIN_FILENO, &cut, sizeof(cut))) == (ssize_t)sizeof(cut) || (got < 0 && errno == EINTR))
		if (got > 0 && limits_allow(limits, &cut))
			following_report(&following, &cut);
	limits_check_end(limits, 0);
	following_report(&following, NULL);
	if (is_begun)
		pthread_join(thread, NULL);
}

/* Follow the trace until it is whole. 0, or a negative errno with the reason in diag; *trace and *table are the
   caller's then. */
static int trace_follow(const char *path, const struct heap_build *how, struct indexing_making *making,
			struct trace **trace, struct heap_table **table, struct diag *diag)
{
	struct heap_follow *follow =
		heap_follow_new(path, how, making->limits.is_idle ? &idle_increments : &increments);
	following_advance(follow, &making->limits);
	making->is_whole = true;
	int error = heap_follow_end(follow, trace, table, diag);
	heap_follow_free(follow);
	return error;
}

static int index_write(const struct trace *trace, const struct heap_table *table, const char *path, struct diag *diag)
{
	struct index_cache_made made;
	if (!opened_trace_is_worth_an_index(trace))
		return 0;
	int error = index_cache_write(table, path, &made, diag);
	if (!error)
		progress_send(&(struct indexing_progress){.index_bytes = made.bytes});
	return error;
}

static void limits_begin(struct indexing_limits *limits, int index_fd)
{
	char directory[CACHE_PATH_BYTES];
	struct diag ignored = {""};
	*limits = (struct indexing_limits){
		.is_idle = true, .memory_bytes = limits_memory_bytes() / IDLE_MEMORY_PART, .index_fd = index_fd};
	if (!index_cache_directory(directory, &ignored))
		limits->limit_bytes = index_cache_limit_bytes(directory);
	idle_look(&limits->idle);
	worker_is_dispensable();
}

/* Follow the trace at path, and write its index. */
static int index_make(const char *path, bool is_idle, struct diag *diag)
{
	struct trace *trace;
	struct heap_table *table;
	struct indexing_making making = {.is_whole = false};
	struct heap_build how = {.fd = index_cache_begin(diag),
				 .reserved_bytes = HEAP_INDEX_HEAD_BYTES,
				 .progress = progress_tell,
				 .cookie = &making};
	if (is_idle)
		limits_begin(&making.limits, how.fd);
	int error = how.fd < 0 ? how.fd : trace_follow(path, &how, &making, &trace, &table, diag);
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
	bool is_idle = argc == 3 && !strcmp(argv[2], INDEXING_IDLE);
	if (argc != 2 && !is_idle)
		return CLI_FAILED;
	/* A logger that dies has made no whole trace. */
	worker_is_begun();
	int error = index_make(argv[1], is_idle, &diag);
	return error ? refuse(&diag) : CLI_OK;
}

const struct command command_index = {.name = INDEXING_WORD,
				      .usage = "FILE",
				      .summary = "make the index of a trace while it is written; record starts it",
				      .run = index_run,
				      .help = ""};
