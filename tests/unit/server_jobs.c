/* SPDX-License-Identifier: MIT */
/* Jobs of a server: who waits, who is replaced, who ends whom. Answers are made here, as slowly as a test wants. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cancel.h"
#include "base/sink.h"
#include "os/monotonic.h"
#include "server/answer/cells_answer.h"
#include "server/answer/frees_answer.h"
#include "server/answer/trace_answer.h"
#include "server/http/jobs.h"

enum { JOBS_MAX = 8, PATIENCE_S = 60, LATE_MS = 300, DEADLINE_MS = 1000 };

/* What the threads of the jobs meet, and what they have done. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool opening_waits, cells_wait, opening_fails;
	unsigned openings, cells, preparations; /* that were begun */
	struct live_note note;                  /* of a recording */
} scene = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const char *const paths[] = {"a.xht", "b.xht"};
static struct jobs *jobs;
static struct job all[JOBS_MAX];

/* ---- answers ---- */

/* Count, and wait while the test wants that and nobody cancels. */
static int work(unsigned *begun, const bool *waits, const bool *is_cancelled, struct diag *diag)
{
	pthread_mutex_lock(&scene.lock);
	(*begun)++;
	pthread_cond_broadcast(&scene.changed);
	while (*waits && !cancel_is_asked(is_cancelled)) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec = (until.tv_nsec + 5000000) % 1000000000;
		pthread_cond_timedwait(&scene.changed, &scene.lock, &until);
	}
	pthread_mutex_unlock(&scene.lock);
	return cancel_is_asked(is_cancelled) ? diag_fail(diag, ECANCELED, "cancelled") : 0;
}

int __wrap_shown_trace_open(struct shown_trace *shown, const struct analysis_caller *caller, struct diag *diag);
int __wrap_shown_trace_open(struct shown_trace *shown, const struct analysis_caller *caller, struct diag *diag)
{
	(void)shown;
	caller->progress(caller->context, 1, 4);
	int error = work(&scene.openings, &scene.opening_waits, caller->is_cancelled, diag);
	pthread_mutex_lock(&scene.lock);
	bool fails = scene.opening_fails;
	pthread_mutex_unlock(&scene.lock);
	return error ? error : fails ? diag_fail(diag, EINVAL, "no trace") : 0;
}

int __wrap_trace_answer_write(struct shown_trace *shown, const struct trace_answer_plan *plan, struct sink *out,
			      const struct analysis_caller *caller, struct diag *diag);
int __wrap_trace_answer_write(struct shown_trace *shown, const struct trace_answer_plan *plan, struct sink *out,
			      const struct analysis_caller *caller, struct diag *diag)
{
	(void)plan, (void)caller, (void)diag;
	sink_text(out, shown->path);
	if (shown->options.until_ns)
		sink_format(out, " as of %" PRId64, shown->options.until_ns);
	return 0;
}

int __wrap_cells_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
			      const struct analysis_caller *caller, struct diag *diag);
int __wrap_cells_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
			      const struct analysis_caller *caller, struct diag *diag)
{
	(void)shown;
	sink_format(out, "%u cells", question->intervals);
	return work(&scene.cells, &scene.cells_wait, caller->is_cancelled, diag);
}

int __wrap_shown_trace_prepare(struct shown_trace *shown, const struct analysis_caller *caller, struct diag *diag);
int __wrap_shown_trace_prepare(struct shown_trace *shown, const struct analysis_caller *caller, struct diag *diag)
{
	const bool waits = false;
	(void)shown;
	return work(&scene.preparations, &waits, caller->is_cancelled, diag);
}

/* ---- a recording ---- */

struct live_trace *__wrap_live_trace_new(const char *path, bool without_files, struct diag *diag);
struct live_trace *__wrap_live_trace_new(const char *path, bool without_files, struct diag *diag)
{
	(void)path, (void)without_files, (void)diag;
	return (struct live_trace *)&scene;
}

void __wrap_live_trace_noted(struct live_trace *live, struct live_note *note);
void __wrap_live_trace_noted(struct live_trace *live, struct live_note *note)
{
	(void)live;
	pthread_mutex_lock(&scene.lock);
	*note = scene.note;
	pthread_mutex_unlock(&scene.lock);
}

void __wrap_live_trace_free(struct live_trace *live);
void __wrap_live_trace_free(struct live_trace *live)
{
	(void)live;
}

/* ---- jobs ---- */

static void on_done(struct job *job)
{
	pthread_mutex_lock(&scene.lock);
	assert_null(job->context); /* once */
	job->context = job;
	pthread_cond_broadcast(&scene.changed);
	pthread_mutex_unlock(&scene.lock);
}

static void set(bool *flag, bool value)
{
	pthread_mutex_lock(&scene.lock);
	*flag = value;
	pthread_cond_broadcast(&scene.changed);
	pthread_mutex_unlock(&scene.lock);
}

static unsigned count_of(const unsigned *count)
{
	pthread_mutex_lock(&scene.lock);
	unsigned result = *count;
	pthread_mutex_unlock(&scene.lock);
	return result;
}

static void wait_until_begun(const unsigned *count, unsigned wanted)
{
	pthread_mutex_lock(&scene.lock);
	while (*count < wanted)
		pthread_cond_wait(&scene.changed, &scene.lock);
	pthread_mutex_unlock(&scene.lock);
}

static struct job *give_held(enum request_name name, unsigned trace, const char *page, uint64_t number, int64_t held_ns)
{
	static unsigned next;
	struct job *job = &all[next++ % JOBS_MAX];
	*job = (struct job){.socket = -1, .request = {.name = name, .trace = trace, .number = number}};
	job->request.question.held_ns = held_ns;
	snprintf(job->request.page, sizeof(job->request.page), "%s", page);
	jobs_give(jobs, job);
	return job;
}

static struct job *give(enum request_name name, unsigned trace, const char *page, uint64_t number)
{
	return give_held(name, trace, page, number, 0);
}

/* Wait until the job is done; its status, and its text in `text`. */
static unsigned end_of(struct job *job, char text[64])
{
	pthread_mutex_lock(&scene.lock);
	while (!job->context)
		pthread_cond_wait(&scene.changed, &scene.lock);
	pthread_mutex_unlock(&scene.lock);
	unsigned status = job->reply->status;
	snprintf(text, 64, "%.*s", (int)job->reply->size, job->reply->bytes);
	reply_release(job->reply);
	return status;
}

static void expect_end(struct job *job, unsigned status, const char *text)
{
	char found[64];
	assert_int_equal(end_of(job, found), status);
	if (text)
		assert_string_equal(found, text);
}

static bool is_done(struct job *job)
{
	pthread_mutex_lock(&scene.lock);
	bool result = job->context != NULL;
	pthread_mutex_unlock(&scene.lock);
	return result;
}

static int begin_as(void **state, bool is_live)
{
	const struct jobs_plan plan = {
		.paths = paths, .path_count = 2, .deadline_ms = DEADLINE_MS, .done = on_done, .is_live = is_live};
	struct diag diag = {""};
	(void)state;
	alarm(PATIENCE_S);
	scene.opening_waits = scene.cells_wait = scene.opening_fails = false;
	scene.openings = scene.cells = scene.preparations = 0;
	jobs = jobs_begin(&plan, &diag);
	assert_non_null(jobs);
	return 0;
}

static int begin(void **state)
{
	return begin_as(state, false);
}

static int begin_live(void **state)
{
	scene.note = (struct live_note){LIVE_RECORDING, "It is recorded", 500, 0};
	return begin_as(state, true);
}

static int end(void **state)
{
	(void)state;
	jobs_stop(jobs);
	jobs_free(jobs);
	assert_int_equal(replies_size(), 0);
	return 0;
}

/* ---- tests ---- */

static void test_answers(void **state)
{
	(void)state;
	expect_end(give(REQUEST_TRACE, 1, "p", 1), 200, "b.xht");
	expect_end(give(REQUEST_TRACE, 0, "p", 2), 200, "a.xht");
	for (unsigned i = 0; i < 3; i++)
		expect_end(give(REQUEST_CELLS, 0, "p", 3 + i), 200, "0 cells");
	assert_int_equal(count_of(&scene.cells), 1); /* those of the whole run are kept */
	assert_int_equal(count_of(&scene.openings), 2);
}

/* A page that was shown kept cells asks for others next: what they need is found before that, and once. */
static void test_kept_cells_prepare_others(void **state)
{
	(void)state;
	expect_end(give(REQUEST_CELLS, 0, "p", 1), 200, "0 cells");
	expect_end(give(REQUEST_TRACE, 0, "p", 2), 200, "a.xht");
	assert_int_equal(count_of(&scene.preparations), 0);
	expect_end(give(REQUEST_CELLS, 0, "p", 3), 200, "0 cells");
	wait_until_begun(&scene.preparations, 1);
	expect_end(give(REQUEST_TRACE, 0, "p", 4), 200, "a.xht");
	assert_int_equal(count_of(&scene.preparations), 1);
}

static void test_opening_says_how_far_it_is(void **state)
{
	(void)state;
	set(&scene.opening_waits, true);
	struct job *job = give(REQUEST_TRACE, 1, "p", 1);
	wait_until_begun(&scene.openings, 2); /* of both: the first one is opened in any case */
	assert_true(jobs_look(jobs));
	assert_false(is_done(job));
	monotonic_pause(LATE_MS * NS_PER_MS);
	jobs_look(jobs);
	char text[64];
	assert_int_equal(end_of(job, text), 202);
	assert_non_null(strstr(text, "\"share\": 0.250"));
	job = give(REQUEST_TRACE, 1, "p", 2);
	set(&scene.opening_waits, false);
	expect_end(job, 200, "b.xht");
	assert_int_equal(count_of(&scene.openings), 2);
}

static void test_newer_requests_replace_older_ones(void **state)
{
	(void)state;
	set(&scene.cells_wait, true);
	struct job *running = give(REQUEST_CELLS, 0, "p", 1);
	wait_until_begun(&scene.cells, 1);
	struct job *others = give(REQUEST_CELLS, 0, "q", 1), *frees = give(REQUEST_TRACE, 0, "p", 1);
	struct job *waiting = give(REQUEST_CELLS, 0, "q", 2);
	expect_end(others, 409, NULL);
	assert_false(is_done(running));
	assert_false(is_done(frees));
	struct job *newer = give(REQUEST_CELLS, 0, "p", 2);
	expect_end(running, 409, "a newer request has replaced this one\n");
	set(&scene.cells_wait, false);
	expect_end(waiting, 200, NULL);
	expect_end(newer, 200, NULL);
	expect_end(frees, 200, NULL);
	assert_false(jobs_look(jobs));
}

static void test_clients_go(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	set(&scene.cells_wait, true);
	struct job job = {.socket = ends[0], .request = {.name = REQUEST_CELLS}};
	jobs_give(jobs, &job);
	wait_until_begun(&scene.cells, 1);
	assert_true(jobs_look(jobs));
	assert_false(is_done(&job));
	close(ends[1]);
	jobs_look(jobs);
	expect_end(&job, 409, NULL);
	close(ends[0]);
	set(&scene.cells_wait, false);
	expect_end(give(REQUEST_CELLS, 0, "", 0), 200, NULL);
}

static void test_a_deadline(void **state)
{
	(void)state;
	set(&scene.cells_wait, true);
	struct job *running = give(REQUEST_CELLS, 0, "p", 1);
	wait_until_begun(&scene.cells, 1);
	struct job *waiting = give(REQUEST_TRACE, 0, "p", 1);
	monotonic_pause((DEADLINE_MS + 1) * NS_PER_MS);
	jobs_look(jobs);
	expect_end(running, 503, "the answer would take too long\n");
	expect_end(waiting, 200, "a.xht");
}

static void test_a_bad_trace_is_opened_again(void **state)
{
	(void)state;
	set(&scene.opening_fails, true);
	set(&scene.opening_waits, true);
	struct job *first = give(REQUEST_TRACE, 1, "p", 1), *second = give(REQUEST_CELLS, 1, "p", 1);
	wait_until_begun(&scene.openings, 2);
	set(&scene.opening_waits, false);
	expect_end(first, 422, "no trace\n");
	expect_end(second, 422, "no trace\n");
	set(&scene.opening_fails, false);
	expect_end(give(REQUEST_TRACE, 1, "p", 2), 200, "b.xht");
}

/* If nobody waits any more, the next one hears the reason. */
static void test_a_reason_is_heard(void **state)
{
	(void)state;
	set(&scene.opening_fails, true);
	set(&scene.opening_waits, true);
	struct job *job = give(REQUEST_TRACE, 1, "p", 1);
	wait_until_begun(&scene.openings, 2);
	monotonic_pause(LATE_MS * NS_PER_MS);
	jobs_look(jobs);
	expect_end(job, 202, NULL);
	set(&scene.opening_waits, false);
	expect_end(give(REQUEST_TRACE, 1, "p", 2), 422, "no trace\n");
	set(&scene.opening_fails, false);
	expect_end(give(REQUEST_TRACE, 1, "p", 3), 200, "b.xht");
}

static void note_set(enum live_state state, const char *text)
{
	pthread_mutex_lock(&scene.lock);
	scene.note.state = state;
	snprintf(scene.note.text, sizeof(scene.note.text), "%s", text);
	pthread_mutex_unlock(&scene.lock);
	jobs_look(jobs);
}

/* Each time is a trace of its own. Nothing of it is left when the recording has ended. */
static void test_a_recording_is_held(void **state)
{
	(void)state;
	expect_end(give_held(REQUEST_TRACE, 0, "p", 1, 400), 200, "a.xht as of 400");
	expect_end(give_held(REQUEST_CELLS, 0, "p", 2, 400), 200, "0 cells");
	expect_end(give_held(REQUEST_CELLS, 0, "p", 3, 400), 200, "0 cells");
	assert_int_equal(count_of(&scene.openings), 1);
	assert_int_equal(count_of(&scene.cells), 1);
	expect_end(give_held(REQUEST_CELLS, 0, "p", 4, 500), 200, "0 cells");
	assert_int_equal(count_of(&scene.cells), 2);
	expect_end(give_held(REQUEST_TRACE, 0, "p", 5, 501), 422, "this time is not recorded yet\n");
	expect_end(give(REQUEST_BLOCKS, 0, "p", 6), 422, NULL);
	expect_end(give_held(REQUEST_TRACE, 1, "p", 7, 400), 422, "nobody records this trace\n");
	set(&scene.opening_fails, true);
	expect_end(give_held(REQUEST_TRACE, 0, "p", 8, 300), 422, "no trace\n");
	set(&scene.opening_fails, false);
	note_set(LIVE_OVER, "It has ended");
	expect_end(give_held(REQUEST_CELLS, 0, "p", 9, 400), 410, "It has ended\n");
	expect_end(give(REQUEST_TRACE, 0, "p", 10), 200, "a.xht");
}

/* Who waits for pictures is not told why a trace could not be held. */
static void test_only_who_holds_hears_why_not(void **state)
{
	(void)state;
	set(&scene.opening_fails, true);
	set(&scene.opening_waits, true);
	struct job *held = give_held(REQUEST_TRACE, 0, "p", 1, 400), *flush = give(REQUEST_FLUSH, 0, "p", 1);
	expect_end(flush, 204, "");
	wait_until_begun(&scene.openings, 1);
	struct job *other = give_held(REQUEST_TRACE, 0, "q", 1, 500);
	monotonic_pause(LATE_MS * NS_PER_MS);
	jobs_look(jobs);
	expect_end(held, 202, NULL);
	expect_end(other, 202, NULL);
	set(&scene.opening_waits, false);
	expect_end(give_held(REQUEST_TRACE, 0, "q", 2, 500), 422, "no trace\n");
	set(&scene.opening_fails, false);
	note_set(LIVE_OVER, "It has ended");
	expect_end(give(REQUEST_TRACE, 0, "p", 2), 200, "a.xht");
}

static void test_the_end(void **state)
{
	(void)state;
	set(&scene.cells_wait, true);
	struct job *running = give(REQUEST_CELLS, 0, "p", 1);
	wait_until_begun(&scene.cells, 1);
	struct job *waiting = give(REQUEST_CELLS, 0, "q", 1);
	jobs_stop(jobs);
	expect_end(running, 503, "the server ends\n");
	expect_end(waiting, 503, "the server ends\n");
	expect_end(give(REQUEST_CELLS, 0, "p", 2), 503, "the server ends\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, begin, end),
		cmocka_unit_test_setup_teardown(test_kept_cells_prepare_others, begin, end),
		cmocka_unit_test_setup_teardown(test_opening_says_how_far_it_is, begin, end),
		cmocka_unit_test_setup_teardown(test_newer_requests_replace_older_ones, begin, end),
		cmocka_unit_test_setup_teardown(test_clients_go, begin, end),
		cmocka_unit_test_setup_teardown(test_a_deadline, begin, end),
		cmocka_unit_test_setup_teardown(test_a_bad_trace_is_opened_again, begin, end),
		cmocka_unit_test_setup_teardown(test_a_reason_is_heard, begin, end),
		cmocka_unit_test_setup_teardown(test_a_recording_is_held, begin_live, end),
		cmocka_unit_test_setup_teardown(test_only_who_holds_hears_why_not, begin_live, end),
		cmocka_unit_test_setup_teardown(test_the_end, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
