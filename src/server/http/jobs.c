/* SPDX-License-Identifier: MIT */
#include "server/http/jobs.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/threads.h"
#include "os/monotonic.h"
#include "server/answer/blocks_answer.h"
#include "server/answer/cells_answer.h"
#include "server/answer/frees_answer.h"
#include "server/answer/kept_answers.h"
#include "server/answer/map_answer.h"
#include "server/answer/source_answer.h"
#include "server/answer/trace_answer.h"
#include "server/live/live_trace.h"

enum {
	WORKERS_MAX = 4,
	KEPT_COUNT = KEPT_CELLS_MAX, /* answers about the whole run that are kept */
	PATIENCE_MS = 250,           /* a job waits so long for its trace, then the page hears how far that is */
	LIVE_PATIENCE_MS = 20000     /* and so long for a newer picture: less than connections are kept */
};
/* The bytes of answers that clients have not read yet. */
static const size_t replies_most = (size_t)256 << 20;
static const char trace_type[] = "application/json", cells_type[] = "application/octet-stream";

enum {
	STATUS_OK = 200,
	STATUS_MAKING = 202,
	STATUS_NOTHING = 204,
	STATUS_REPLACED = 409,
	STATUS_OVER = 410,
	STATUS_BAD_TRACE = 422,
	STATUS_BUSY = 503
};

/* A trace, and what is known of it. */
struct shown_slot {
	struct shown_trace shown;
	enum { SLOT_CLOSED, SLOT_OPENING, SLOT_OPEN } state;
	bool is_wanted;       /* all of it is to be opened before a job needs it */
	bool is_cold;         /* it is to be prepared before a job needs that */
	struct reply *trace;  /* its answer `trace`, when it is open */
	struct reply *reason; /* why it could not be opened, for the next job; NULL: somebody knows it */
	struct reply *kept[KEPT_COUNT];
	unsigned kept_intervals[KEPT_COUNT];
	unsigned next_kept;
	struct live_trace *live;   /* while it is recorded: if it is open, then as of a time */
	struct live_trace *ending; /* that was so; whoever opens the trace frees it */
	struct live_note over;     /* how that ended; "": it was never recorded here */
	struct live_answer picture;
	struct reply *live_reply; /* the answer `live` of that picture */
	bool is_busy;             /* a thread asks it */
	bool is_cancelled;        /* that thread is to stop */
	struct job *job;          /* that is answered so; NULL: it is opened, or prepared */
	uint64_t begun_ns;        /* when opening began */
	uint64_t done, all;       /* events that are matched, of all */
};

struct jobs {
	struct jobs_plan plan;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t workers[WORKERS_MAX];
	unsigned worker_count;
	struct shown_slot *slots; /* by trace */
	struct job *first;
	bool is_ending, wants_flush;
};

/* ---- the end of a job; the lock is held ---- */

static void job_take_off(struct jobs *jobs, struct job *job)
{
	struct job **place = &jobs->first;
	while (*place != job)
		place = &(*place)->next;
	*place = job->next;
}

static void job_end(struct jobs *jobs, struct job *job, struct reply *reply)
{
	job_take_off(jobs, job);
	job->reply = reply;
	jobs->plan.done(job);
}

static struct reply *reply_of_end(unsigned status)
{
	return reply_line(status, status == STATUS_REPLACED ? "a newer request has replaced this one"
							    : "the answer would take too long");
}

/* End a job, at once or as soon as its thread notices. */
static void job_stop(struct jobs *jobs, struct job *job, unsigned status)
{
	struct shown_slot *slot = &jobs->slots[job->request.trace];
	if (!job->is_running) {
		job_end(jobs, job, reply_of_end(status));
	} else if (slot->job == job) {
		job->end_status = status;
		__atomic_store_n(&slot->is_cancelled, true, __ATOMIC_RELAXED);
	}
}

/* Return the time as of which a job asks a trace that is recorded; 0: none. */
static int64_t held_ns_of(const struct job *job)
{
	const enum request_name name = job->request.name;
	return name == REQUEST_LIVE || name == REQUEST_FLUSH ? 0 : job->request.question.held_ns;
}

/* ---- answers ---- */

static void progress_set(void *context, uint64_t done, uint64_t all)
{
	struct shown_slot *slot = context;
	__atomic_store_n(&slot->done, done, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->all, all, __ATOMIC_RELAXED);
}

static struct analysis_caller caller_of(struct shown_slot *slot)
{
	return (struct analysis_caller){.progress = progress_set, .context = slot, .is_cancelled = &slot->is_cancelled};
}

static struct reply *reply_progress(const struct shown_slot *slot)
{
	const uint64_t done = __atomic_load_n(&slot->done, __ATOMIC_RELAXED),
		       all = __atomic_load_n(&slot->all, __ATOMIC_RELAXED);
	const double share = all ? (double)done / (double)all : 0;
	const double passed_s = (double)(monotonic_now_ns() - slot->begun_ns) / (double)NS_PER_S;
	struct sink text;
	size_t size;
	sink_to_memory(&text);
	struct json json = {.out = &text};
	json_begin_object(&json, NULL);
	json_thousandths(&json, "share", (uint64_t)(share * 1000));
	json_count(&json, "seconds_left", share > 0.02 ? (uint64_t)(passed_s / share * (1 - share) + 1) : 0);
	json_end_object(&json);
	char *bytes = sink_take(&text, &size);
	return reply_new(STATUS_MAKING, "application/json", bytes, size);
}

static struct reply *reply_take(int error, struct sink *out, const char *type, const struct diag *diag)
{
	size_t size;
	char *bytes = sink_take(out, &size);
	if (!error)
		return reply_new(STATUS_OK, type, bytes, size);
	free(bytes);
	return reply_line(STATUS_BAD_TRACE, diag->text);
}

static bool is_of_whole_run(const struct question *question)
{
	return !question->has_range && !question->bound_count && !question->node && !question->filter;
}

static struct reply *kept_find(const struct shown_slot *slot, const struct question *question)
{
	for (unsigned i = 0; i < KEPT_COUNT && is_of_whole_run(question); i++)
		if (slot->kept[i] && slot->kept_intervals[i] == question->intervals)
			return slot->kept[i];
	return NULL;
}

static bool kept_add(struct shown_slot *slot, const struct question *question, struct reply *reply)
{
	if (!is_of_whole_run(question) || reply->status != STATUS_OK)
		return false;
	unsigned place = slot->next_kept++ % KEPT_COUNT;
	reply_release(slot->kept[place]);
	slot->kept[place] = reply_hold(reply);
	slot->kept_intervals[place] = question->intervals;
	return true;
}

static struct trace_answer_plan plan_of(const struct jobs *jobs)
{
	return (struct trace_answer_plan){jobs->plan.paths, jobs->plan.path_count, jobs->plan.runs, NULL};
}

/* The trace's index keeps them, for other servers. */
static void kept_write(const struct jobs *jobs, const struct shown_slot *slot)
{
	const struct trace_answer_plan plan = plan_of(jobs);
	struct kept_answers kept = {.trace = {slot->trace->bytes, slot->trace->size}};
	for (unsigned i = 0; i < KEPT_COUNT; i++) {
		if (slot->kept[i])
			kept.cells[i] = (struct kept_bytes){slot->kept[i]->bytes, slot->kept[i]->size};
		kept.intervals[i] = slot->kept_intervals[i];
	}
	kept_answers_write(&kept, &slot->shown, &plan);
}

/* Return the answer `trace` that the index keeps, and take those of cells; NULL: there is none. */
static struct reply *kept_read(const struct jobs *jobs, struct shown_slot *slot)
{
	const struct trace_answer_plan plan = plan_of(jobs);
	struct kept_answers kept;
	if (!kept_answers_read(&kept, &slot->shown, &plan))
		return NULL;
	for (unsigned i = 0; i < KEPT_COUNT; i++) {
		reply_release(slot->kept[i]);
		slot->kept[i] = kept.cells[i].bytes
					? reply_new(STATUS_OK, cells_type, kept.cells[i].bytes, kept.cells[i].size)
					: NULL;
		slot->kept_intervals[i] = kept.intervals[i];
		slot->next_kept = kept.cells[i].bytes ? i + 1 : slot->next_kept;
	}
	return reply_new(STATUS_OK, trace_type, kept.trace.bytes, kept.trace.size);
}

static struct reply *reply_make(const struct jobs *jobs, struct shown_slot *slot, const struct view_request *request)
{
	const struct analysis_caller caller = caller_of(slot);
	struct diag diag = {""};
	struct sink out;
	int (*const write)(struct shown_trace *, const struct question *, struct sink *, const struct analysis_caller *,
			   struct diag *) = request->name == REQUEST_FREES    ? frees_answer_write
					    : request->name == REQUEST_BLOCKS ? blocks_answer_write
					    : request->name == REQUEST_BLOCK  ? block_answer_write
					    : request->name == REQUEST_MAP    ? map_answer_write
					    : request->name == REQUEST_SOURCE ? source_answer_write
									      : NULL;
	sink_to_memory(&out);
	if (write)
		return reply_take(write(&slot->shown, &request->question, &out, &caller, &diag), &out, trace_type,
				  &diag);
	struct reply *reply = request->name == REQUEST_TRACE ? slot->trace : kept_find(slot, &request->question);
	if (reply) {
		/* Who has a first picture that was kept zooms next. */
		slot->is_cold |= request->name == REQUEST_CELLS && !slot->shown.nodes;
		return reply_hold(reply);
	}
	reply = reply_take(cells_answer_write(&slot->shown, &request->question, &out, &caller, &diag), &out, cells_type,
			   &diag);
	if (kept_add(slot, &request->question, reply))
		kept_write(jobs, slot);
	return reply;
}

/* ---- a trace that is recorded; the lock is held ---- */

static struct reply *reply_nothing(void)
{
	return reply_new(STATUS_NOTHING, trace_type, NULL, 0);
}

/* The newest picture, which all pages share; NULL: there is nothing new. */
static struct reply *live_picture_find(struct shown_slot *slot, uint64_t seen)
{
	if (live_trace_picture(slot->live, slot->picture.number > seen ? slot->picture.number : seen, &slot->picture)) {
		reply_release(slot->live_reply);
		slot->live_reply = reply_new(STATUS_OK, cells_type, slot->picture.bytes, slot->picture.size);
	}
	return slot->picture.number > seen ? reply_hold(slot->live_reply) : NULL;
}

static struct reply *live_wait_find(struct shown_slot *slot, const struct job *job, uint64_t waited_ms)
{
	struct reply *reply = live_picture_find(slot, job->request.question.seen);
	if (reply || waited_ms < (slot->picture.number ? LIVE_PATIENCE_MS : PATIENCE_MS))
		return reply;
	if (slot->picture.number)
		return reply_nothing();
	slot->done = live_trace_progress(slot->live, &slot->all);
	return reply_progress(slot);
}

/* A thread answers as of a time that is recorded whole. */
static struct reply *held_wait_find(struct shown_slot *slot, const struct job *job, uint64_t waited_ms)
{
	struct live_note note;
	live_trace_noted(slot->live, &note);
	if (held_ns_of(job) > note.until_ns)
		return reply_line(STATUS_BAD_TRACE, "this time is not recorded yet");
	return slot->state == SLOT_OPENING && waited_ms >= PATIENCE_MS ? reply_progress(slot) : NULL;
}

/* The answer to a job; NULL: it waits. */
static struct reply *live_reply_find(struct jobs *jobs, struct shown_slot *slot, const struct job *job, uint64_t now_ns)
{
	static const char live[] = "{\"schema\": 1, \"live\": true}\n";
	const struct view_request *request = &job->request;
	const uint64_t waited_ms = (now_ns - job->given_ns) / NS_PER_MS;
	if (request->name == REQUEST_LIVE)
		return live_wait_find(slot, job, waited_ms);
	if (held_ns_of(job))
		return held_wait_find(slot, job, waited_ms);
	if (request->name == REQUEST_TRACE)
		return reply_new(STATUS_OK, trace_type, strdup(live), sizeof(live) - 1);
	if (request->name == REQUEST_CELLS && is_of_whole_run(&request->question))
		return reply_nothing();
	jobs->wants_flush |= request->name == REQUEST_FLUSH;
	return request->name == REQUEST_FLUSH
		       ? reply_nothing()
		       : reply_line(STATUS_BAD_TRACE,
				    "this is known of a held picture, or when the recording has ended");
}

/* End a job about a trace that is recorded, or was, if its answer is known. */
static void live_job_look(struct jobs *jobs, struct job *job, uint64_t now_ns)
{
	struct shown_slot *slot = &jobs->slots[job->request.trace];
	struct reply *reply = slot->live
				      ? live_reply_find(jobs, slot, job, now_ns)
				      : reply_line(slot->over.text[0] ? STATUS_OVER : STATUS_BAD_TRACE,
						   slot->over.text[0] ? slot->over.text : "nobody records this trace");
	if (reply)
		job_end(jobs, job, reply);
}

static bool is_about_recording(const struct jobs *jobs, const struct job *job)
{
	const enum request_name name = job->request.name;
	return !job->is_running && (jobs->slots[job->request.trace].live || held_ns_of(job) || name == REQUEST_LIVE ||
				    name == REQUEST_FLUSH);
}

/* Go over to the trace itself when the recording has ended. */
static void live_look(struct jobs *jobs, struct shown_slot *slot)
{
	live_trace_noted(slot->live, &slot->over);
	if (slot->over.state != LIVE_OVER)
		return;
	slot->ending = slot->live;
	slot->live = NULL;
	slot->is_wanted = true;
	pthread_cond_broadcast(&jobs->changed);
}

/* ---- threads ---- */

/* What a thread does at a time. */
struct task {
	struct jobs *jobs;
	struct shown_slot *slot;
	struct job *job;   /* NULL: the trace is opened, or prepared */
	bool is_preparing; /* it is prepared */
	int64_t until_ns;  /* it is opened as of this time; 0: all of it */
	struct reply *reply;
};

/* Close the trace if it is open as of another time than this one. */
static void slot_turn(struct shown_slot *slot, int64_t until_ns)
{
	if (slot->shown.options.until_ns == until_ns)
		return;
	const char *path = slot->shown.path;
	struct opened_options options = slot->shown.options;
	options.until_ns = until_ns;
	shown_trace_close(&slot->shown);
	slot->shown = (struct shown_trace){.path = path, .options = options};
	for (unsigned i = 0; i < KEPT_COUNT; i++) {
		reply_release(slot->kept[i]);
		slot->kept[i] = NULL;
	}
}

static void task_run(void *context)
{
	struct task *task = context;
	struct shown_slot *slot = task->slot;
	const struct analysis_caller caller = caller_of(slot);
	struct diag diag = {""};
	struct sink out;
	if (task->job) {
		task->reply = replies_size() > replies_most
				      ? reply_line(STATUS_BUSY, "too many answers have not been read yet")
				      : reply_make(task->jobs, slot, &task->job->request);
		return;
	}
	if (task->is_preparing) {
		shown_trace_prepare(&slot->shown, &caller, &diag);
		return;
	}
	const struct trace_answer_plan plan = plan_of(task->jobs);
	live_trace_free(slot->ending);
	slot->ending = NULL;
	slot_turn(slot, task->until_ns);
	int error = shown_trace_open(&slot->shown, &caller, &diag);
	task->reply = error ? NULL : kept_read(task->jobs, slot);
	if (task->reply)
		return;
	sink_to_memory(&out);
	error = error ? error : trace_answer_write(&slot->shown, &plan, &out, &caller, &diag);
	task->reply = reply_take(error, &out, trace_type, &diag);
}

/* Find work that can be done now. */
static bool task_find(struct jobs *jobs, struct task *task)
{
	*task = (struct task){.jobs = jobs};
	for (unsigned i = 0; i < jobs->plan.path_count; i++) {
		task->slot = &jobs->slots[i];
		if (task->slot->is_wanted && !task->slot->is_busy)
			return true;
	}
	for (struct job *job = jobs->first; job; job = job->next) {
		struct shown_slot *slot = &jobs->slots[job->request.trace];
		const int64_t until_ns = held_ns_of(job);
		if (job->is_running || slot->is_busy || (slot->live && !until_ns))
			continue;
		task->slot = slot;
		task->until_ns = until_ns;
		task->job = slot->state == SLOT_OPEN && slot->shown.options.until_ns == until_ns ? job : NULL;
		return true;
	}
	task->is_preparing = true;
	for (unsigned i = 0; i < jobs->plan.path_count; i++) {
		task->slot = &jobs->slots[i];
		if (!task->slot->is_busy && task->slot->is_cold)
			return true;
	}
	return false;
}

static void task_begin(struct task *task)
{
	struct shown_slot *slot = task->slot;
	slot->is_busy = true;
	slot->is_cancelled = false;
	slot->job = task->job;
	if (task->job) {
		task->job->is_running = true;
		task->job->begun_ns = monotonic_now_ns();
	} else if (task->is_preparing) {
		slot->is_cold = false;
	} else {
		slot->state = SLOT_OPENING;
		slot->is_wanted = false;
		slot->begun_ns = monotonic_now_ns();
		slot->done = slot->all = 0;
		reply_release(slot->trace);
		slot->trace = NULL;
	}
}

/* A trace is open, or cannot be opened: then all jobs about it end, and the next one opens it again, unless it is the
   first that hears why. */
static void opening_end(struct jobs *jobs, struct shown_slot *slot, struct reply *reply)
{
	slot->state = reply->status == STATUS_OK ? SLOT_OPEN : SLOT_CLOSED;
	*(slot->state == SLOT_OPEN ? &slot->trace : &slot->reason) = reply;
	bool is_known = false;
	for (struct job *next, *job = jobs->first; job && slot->reason; job = next) {
		next = job->next;
		if (&jobs->slots[job->request.trace] != slot || held_ns_of(job) != slot->shown.options.until_ns)
			continue;
		job_end(jobs, job, reply_hold(reply));
		is_known = true;
	}
	if (is_known || slot->shown.options.until_ns) {
		reply_release(slot->reason);
		slot->reason = NULL;
	}
}

static void task_end(struct task *task)
{
	struct shown_slot *slot = task->slot;
	slot->is_busy = false;
	slot->job = NULL;
	if (task->is_preparing)
		return;
	struct reply *reply =
		task->reply ? task->reply : reply_line(STATUS_BUSY, "there is not enough memory for the answer");
	if (!task->job) {
		opening_end(task->jobs, slot, reply);
		return;
	}
	if (reply->status != STATUS_OK && (task->job->end_status || task->jobs->is_ending)) {
		reply_release(reply);
		reply = task->job->end_status ? reply_of_end(task->job->end_status)
					      : reply_line(STATUS_BUSY, "the server ends");
	}
	job_end(task->jobs, task->job, reply);
}

static void *work(void *argument)
{
	struct jobs *jobs = argument;
	struct task task;
	pthread_mutex_lock(&jobs->lock);
	while (!jobs->is_ending) {
		if (!task_find(jobs, &task)) {
			pthread_cond_wait(&jobs->changed, &jobs->lock);
			continue;
		}
		task_begin(&task);
		pthread_mutex_unlock(&jobs->lock);
		memory_try(task_run, &task);
		/* An answer takes up to 200 MB, most of it in pieces that would stay with the process. */
		malloc_trim(0);
		pthread_mutex_lock(&jobs->lock);
		task_end(&task);
		pthread_cond_broadcast(&jobs->changed);
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

/* ---- the caller's side ---- */

struct jobs *jobs_begin(const struct jobs_plan *plan, struct diag *diag)
{
	struct jobs *jobs = memory_zeroed(1, sizeof(*jobs));
	const unsigned wanted = thread_processors(WORKERS_MAX - 1) + 1;
	jobs->plan = *plan;
	jobs->slots = memory_zeroed(plan->path_count, sizeof(*jobs->slots));
	for (unsigned i = 0; i < plan->path_count; i++)
		jobs->slots[i].shown = (struct shown_trace){.path = plan->paths[i], .options = plan->options};
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->changed, NULL);
	jobs->slots[0].is_wanted = !plan->is_live;
	jobs->slots[0].begun_ns = monotonic_now_ns();
	if (plan->is_live)
		jobs->slots[0].live = live_trace_new(plan->paths[0], plan->options.without_files, diag);
	while (jobs->worker_count < wanted && thread_begin(&jobs->workers[jobs->worker_count], work, jobs))
		jobs->worker_count++;
	if (jobs->worker_count && (jobs->slots[0].live || !plan->is_live))
		return jobs;
	jobs_stop(jobs);
	diag_fail(diag, EAGAIN, "no thread can be started");
	jobs_free(jobs);
	return NULL;
}

/* A page asks for the newest only. */
static bool is_older(const struct job *one, const struct job *other)
{
	return *other->request.page && !strcmp(one->request.page, other->request.page) &&
	       one->request.name == other->request.name && one->request.number < other->request.number;
}

void jobs_give(struct jobs *jobs, struct job *job)
{
	struct job **place = &jobs->first;
	pthread_mutex_lock(&jobs->lock);
	job->given_ns = monotonic_now_ns();
	for (struct job *next, *other = jobs->first; other; other = next) {
		next = other->next;
		if (is_older(other, job))
			job_stop(jobs, other, STATUS_REPLACED);
	}
	while (*place)
		place = &(*place)->next;
	*place = job;
	struct shown_slot *slot = &jobs->slots[job->request.trace];
	if (jobs->is_ending) {
		job_end(jobs, job, reply_line(STATUS_BUSY, "the server ends"));
	} else if (is_about_recording(jobs, job)) {
		live_job_look(jobs, job, job->given_ns);
	} else if (slot->reason) {
		job_end(jobs, job, slot->reason);
		slot->reason = NULL;
	}
	pthread_cond_broadcast(&jobs->changed);
	pthread_mutex_unlock(&jobs->lock);
}

static bool has_gone(int socket)
{
	char byte;
	return socket >= 0 && recv(socket, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void job_look(struct jobs *jobs, struct job *job, uint64_t now_ns)
{
	const struct shown_slot *slot = &jobs->slots[job->request.trace];
	if (job->is_running && now_ns - job->begun_ns > jobs->plan.deadline_ms * NS_PER_MS)
		job_stop(jobs, job, STATUS_BUSY);
	else if (has_gone(job->socket))
		job_stop(jobs, job, STATUS_REPLACED);
	else if (is_about_recording(jobs, job))
		live_job_look(jobs, job, now_ns);
	else if (slot->state == SLOT_OPENING && now_ns - job->given_ns > PATIENCE_MS * NS_PER_MS)
		job_end(jobs, job, reply_progress(slot));
}

bool jobs_look(struct jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	const uint64_t now_ns = monotonic_now_ns(); /* not before a job's own times */
	const bool has_jobs = jobs->first != NULL;
	if (jobs->slots[0].live)
		live_look(jobs, &jobs->slots[0]);
	for (struct job *next, *job = jobs->first; job; job = next) {
		next = job->next;
		job_look(jobs, job, now_ns);
	}
	pthread_mutex_unlock(&jobs->lock);
	return has_jobs;
}

void jobs_note(struct jobs *jobs, const struct live_note *note)
{
	pthread_mutex_lock(&jobs->lock);
	if (jobs->slots[0].live)
		live_trace_note(jobs->slots[0].live, note);
	pthread_mutex_unlock(&jobs->lock);
}

bool jobs_take_flush(struct jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	const bool wants_flush = jobs->wants_flush;
	jobs->wants_flush = false;
	pthread_mutex_unlock(&jobs->lock);
	return wants_flush;
}

static void served_end(struct shown_slot *slot)
{
	reply_release(slot->trace);
	reply_release(slot->reason);
	reply_release(slot->live_reply);
	live_trace_free(slot->live);
	live_trace_free(slot->ending);
	for (unsigned i = 0; i < KEPT_COUNT; i++)
		reply_release(slot->kept[i]);
	shown_trace_close(&slot->shown);
}

void jobs_stop(struct jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->is_ending = true;
	for (unsigned i = 0; i < jobs->plan.path_count; i++)
		__atomic_store_n(&jobs->slots[i].is_cancelled, true, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&jobs->changed);
	pthread_mutex_unlock(&jobs->lock);
	for (unsigned i = 0; i < jobs->worker_count; i++)
		pthread_join(jobs->workers[i], NULL);
	pthread_mutex_lock(&jobs->lock);
	while (jobs->first)
		job_end(jobs, jobs->first, reply_line(STATUS_BUSY, "the server ends"));
	pthread_mutex_unlock(&jobs->lock);
	jobs->worker_count = 0;
}

void jobs_free(struct jobs *jobs)
{
	for (unsigned i = 0; i < jobs->plan.path_count; i++)
		served_end(&jobs->slots[i]);
	pthread_mutex_destroy(&jobs->lock);
	pthread_cond_destroy(&jobs->changed);
	free(jobs->slots);
	free(jobs);
}
