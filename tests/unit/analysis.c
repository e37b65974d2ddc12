/* SPDX-License-Identifier: MIT */
/*
 * Requests: each stage is cancelled by another thread, also while a search for a symbol never ends; a large trace is
 * left within 50 ms of processor time; what was cancelled leaves nothing half made behind; several requests at once
 * about one opened trace have the answers of each alone.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "action/actions/action_table.h"
#include "analysis/analysis.h"
#include "base/cancel.h"
#include "base/threads.h"
#include "export/export.h"
#include "match/match.h"
#include "noticed.h"
#include "query/peak.h"
#include "rounds.h"
#include "scene.h"
#include "symbols/kept_symbols.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

enum { EVENTS = 40000, BLOCKS = 300, STACKS = 24, FUNCTIONS = 4096, ROUNDS = 3 };

/* The large trace, the times at which it is cancelled, and the processor time that it may go on. */
enum { LARGE_EVENTS = 800000, LARGE_BLOCKS = 200000, LARGE_STACKS = 60000, LARGE_THREADS = 60, STOPS = 12 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STOP_NS INT64_C(500000000)
#else
#define STOP_NS INT64_C(50000000)
#endif

static char path[] = "analysis.xht", large_path[] = "large.xht";
static const struct window_word word = {.path = path}, large = {.path = large_path};
static const char *const pattern_words[] = {"required", "required of free"};

/* ---- stages: when the one that is chosen begins, another thread cancels ---- */

enum stage {
	STAGE_NONE,
	STAGE_MATCHING,
	STAGE_SYMBOLS,
	STAGE_FILTER,
	STAGE_WINDOW,
	STAGE_PEAK,
	STAGE_ANSWER,
	STAGE_COUNT
};

static enum stage chosen; /* of a test with one request at a time */
static bool is_cancelled;
static sem_t has_begun, has_cancelled, search_may_end;

static void stage_begin(enum stage stage)
{
	if (chosen != stage || cancel_is_asked(&is_cancelled))
		return;
	sem_post(&has_begun);
	sem_wait(&has_cancelled);
}

static void *canceller_run(void *context)
{
	(void)context;
	sem_wait(&has_begun);
	__atomic_store_n(&is_cancelled, true, __ATOMIC_RELAXED);
	sem_post(&has_cancelled);
	return NULL;
}

int __real_heap_table_build(struct heap_table **out, const struct trace *trace, const struct heap_build *how,
			    struct diag *diag);
int __wrap_heap_table_build(struct heap_table **out, const struct trace *trace, const struct heap_build *how,
			    struct diag *diag);
int __wrap_heap_table_build(struct heap_table **out, const struct trace *trace, const struct heap_build *how,
			    struct diag *diag)
{
	stage_begin(STAGE_MATCHING);
	return __real_heap_table_build(out, trace, how, diag);
}

int __real_heap_filter_prepare_shared(struct heap_filter *filter, struct heap_filter *from,
				      const struct heap_table *table, struct heap_names *names, struct diag *diag);
int __wrap_heap_filter_prepare_shared(struct heap_filter *filter, struct heap_filter *from,
				      const struct heap_table *table, struct heap_names *names, struct diag *diag);
int __wrap_heap_filter_prepare_shared(struct heap_filter *filter, struct heap_filter *from,
				      const struct heap_table *table, struct heap_names *names, struct diag *diag)
{
	stage_begin(STAGE_FILTER);
	return __real_heap_filter_prepare_shared(filter, from, table, names, diag);
}

void __real_heap_window_make(struct heap_window *window, const struct heap_table *table,
			     const struct heap_filter *filter, struct heap_range range, enum heap_by by);
void __wrap_heap_window_make(struct heap_window *window, const struct heap_table *table,
			     const struct heap_filter *filter, struct heap_range range, enum heap_by by);
void __wrap_heap_window_make(struct heap_window *window, const struct heap_table *table,
			     const struct heap_filter *filter, struct heap_range range, enum heap_by by)
{
	stage_begin(STAGE_WINDOW);
	__real_heap_window_make(window, table, filter, range, by);
}

void __real_heap_peak_search_finish(struct heap_peak_search *search, struct heap_peak *peaks);
void __wrap_heap_peak_search_finish(struct heap_peak_search *search, struct heap_peak *peaks);
void __wrap_heap_peak_search_finish(struct heap_peak_search *search, struct heap_peak *peaks)
{
	stage_begin(STAGE_PEAK);
	__real_heap_peak_search_finish(search, peaks);
}

/* ---- symbols of our own; a search for one may take until a test lets it end ---- */

struct symbols {
	struct symbol_frame frames[FUNCTIONS];
	char names[FUNCTIONS][16];
};

struct symbols *symbols_new(void)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	for (int i = 0; i < FUNCTIONS; i++) {
		snprintf(symbols->names[i], sizeof(symbols->names[i]), "function_%d", i);
		symbols->frames[i].function = symbols->names[i];
	}
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	free(symbols);
}

void symbols_leave_files(struct symbols *symbols)
{
	(void)symbols;
}

void symbols_leave_separate(struct symbols *symbols)
{
	(void)symbols;
}

void symbols_add_process(struct symbols *symbols, pid_t pid)
{
	(void)symbols;
	(void)pid;
}

bool symbols_has_news(struct symbols *symbols)
{
	(void)symbols;
	return false;
}

void symbols_keep(struct symbols *symbols, struct kept_symbols *kept)
{
	(void)symbols;
	*kept = (struct kept_symbols){.texts = NULL};
}

void symbols_learn(struct symbols *symbols, const struct kept_symbols *kept)
{
	(void)symbols, (void)kept;
}

size_t symbols_resolve(struct symbols *symbols, const char *image, const uint8_t *build_id, size_t build_id_size,
		       uint64_t offset, bool is_return_address, const struct symbol_frame **frames)
{
	(void)image, (void)build_id, (void)build_id_size, (void)is_return_address;
	if (chosen == STAGE_SYMBOLS && !cancel_is_asked(&is_cancelled)) {
		stage_begin(STAGE_SYMBOLS);
		sem_wait(&search_may_end);
	}
	*frames = &symbols->frames[offset / 0x1000 % FUNCTIONS];
	return 1;
}

bool symbols_function_range(struct symbols *symbols, const char *image, const uint8_t *build_id, size_t build_id_size,
			    uint64_t offset, uint64_t *low, uint64_t *high)
{
	(void)symbols, (void)image, (void)build_id, (void)build_id_size, (void)offset, (void)low, (void)high;
	return false;
}

bool symbols_function_address(struct symbols *symbols, const char *image, const uint8_t *build_id, size_t build_id_size,
			      const char *name, uint64_t *address)
{
	(void)symbols, (void)image, (void)build_id, (void)build_id_size, (void)name, (void)address;
	return false;
}

bool symbols_image_has_symbols(struct symbols *symbols, const char *image, const uint8_t *build_id,
			       size_t build_id_size)
{
	(void)symbols, (void)image, (void)build_id, (void)build_id_size;
	return true;
}

/* ---- the trace ---- */

static int begin(void **state)
{
	struct scene scene;
	bool is_live[BLOCKS] = {false};
	uint32_t stacks[STACKS];
	(void)state;
	sem_init(&has_begun, 0, 0);
	sem_init(&has_cancelled, 0, 0);
	sem_init(&search_may_end, 0, 0);
	scene_open(&scene, path);
	uint32_t processes[] = {scene_process(&scene, 100, TRACE_NONE, 0), scene_process(&scene, 200, TRACE_NONE, 0)};
	uint32_t threads[] = {scene_thread(&scene, processes[0], 100), scene_thread(&scene, processes[1], 200),
			      scene_thread(&scene, processes[0], 101), scene_thread(&scene, processes[1], 201)};
	for (uint32_t i = 0; i < STACKS; i++)
		stacks[i] = scene_stack(&scene, 0x1000, 0x1000 * (uint64_t)(1 + i % 5), 0x1000 * (uint64_t)(1 + i),
					(uint64_t)0);
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t at = i * 2654435761u >> 8 & 0xffff;
		at %= BLOCKS;
		scene.stack = stacks[i % STACKS];
		(is_live[at] ? scene_free(&scene, threads[at % 4], 1 + i, 0x10000 + 0x1000 * (uint64_t)at)
			     : scene_alloc(&scene, threads[at % 4], 1 + i, 0x10000 + 0x1000 * (uint64_t)at,
					   1 + i * 7919 % 3000));
		is_live[at] = !is_live[at];
	}
	for (int i = 0; i < 2; i++)
		scene_end(&scene, processes[i], EVENTS + 1, TRACE_END_EXIT, 0);
	scene_close(&scene);
	return 0;
}

static struct opened_trace *open_trace(void)
{
	struct opened_trace *opened;
	struct diag diag = {""};
	const struct opened_options options = {.index = INDEX_UNUSED};
	assert_int_equal(opened_trace_open(&opened, path, &options, &(struct analysis_caller){.note = NULL}, &diag), 0);
	return opened;
}

/* ---- questions ---- */

static const struct question {
	const char *words[4]; /* filter words, by id; NULL: not asked */
	enum filter_word_id ids[4];
	enum heap_by by;
	const struct action *action;
} questions[] = {
	{.action = &action_stacks},
	{.words = {"function_3"}, .ids = {FILTER_WORD_REQUIRED}, .action = &action_frames},
	{.words = {"20000ns"}, .ids = {FILTER_WORD_AT}, .action = &action_tree},
	{.by = HEAP_BY_THREAD, .action = &action_image},
	{.words = {"200"}, .ids = {FILTER_WORD_PIDS}, .by = HEAP_BY_TIME, .action = &action_inclusive},
	{.words = {"function_2", "100"},
	 .ids = {FILTER_WORD_REQUIRED_OF_FREE, FILTER_WORD_THREADS},
	 .action = &action_chains},
};
enum { QUESTION_COUNT = sizeof(questions) / sizeof(*questions) };

struct asking {
	struct opened_trace *opened;    /* NULL: `word` is opened */
	const struct window_word *word; /* NULL: that of the small trace */
	const struct question *question;
	const bool *is_cancelled;
	void (*inspect)(struct asking *asking); /* called when there is an answer; or NULL */
	char *text;
	int status;
	int64_t made_ns; /* of the process's time, when the answer was made */
	/* its own */
	struct analysis analysis;
	struct report report;
	struct report_part part;
};

static int64_t processor_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int answer_make(void *context, struct diag *diag)
{
	struct asking *asking = context;
	(void)diag;
	stage_begin(STAGE_ANSWER);
	asking->report = (struct report){
		.diff = {.input = &asking->analysis.input, .runs = {1}}, .parts = &asking->part, .part_count = 1};
	report_make(&asking->report, UINT32_MAX);
	if (!cancel_is_asked(asking->is_cancelled)) {
		assert_true(analysis_is_valid(&asking->analysis));
		assert_true(report_is_valid(&asking->report));
	}
	asking->made_ns = processor_ns();
	if (asking->inspect)
		asking->inspect(asking);
	return 0;
}

static void answer_undo(void *context)
{
	report_fini(&((struct asking *)context)->report);
}

/* Ask, and keep the status and the answer's JSON. */
static void ask(struct asking *asking)
{
	const struct question *question = asking->question;
	struct filter_request asked;
	struct heap_cull cull = {.with_entries = false};
	struct diag diag = {""};
	struct analysis_request request = {.source_count = 1,
					   .words = asking->word ? asking->word : &word,
					   .opened = asking->opened ? &asking->opened : NULL,
					   .options = {.index = INDEX_UNUSED},
					   .asked = &asked,
					   .by = question->by,
					   .parts = &asking->part,
					   .part_count = 1,
					   .cull = &cull,
					   .pattern_words = pattern_words,
					   .caller = {.is_cancelled = asking->is_cancelled}};
	filter_request_init(&asked);
	heap_cull_use_default(&cull);
	for (int i = 0; i < 4 && question->words[i]; i++)
		assert_int_equal(
			filter_word_take(&asked, &filter_words[question->ids[i]], 0, question->words[i], &diag), 0);
	asking->part = (struct report_part){.action = question->action, .sort = action_sort_find("st")};
	asking->text = NULL;
	asking->status = analysis_open(&asking->analysis, &request, &diag);
	if (!asking->status)
		asking->status = analysis_run(&asking->analysis, answer_make, answer_undo, asking, &diag);
	if (!asking->status) {
		struct sink out;
		sink_to_memory(&out);
		export_formats[REPORT_JSON].write(&asking->report, &out);
		asking->text = sink_take(&out, NULL);
		answer_undo(asking);
	} else {
		assert_true(*diag.text);
	}
	analysis_close(&asking->analysis);
	heap_cull_fini(&cull);
	filter_request_fini(&asked);
}

static char *answer_of(struct opened_trace *opened, const struct question *question)
{
	struct asking asking = {.opened = opened, .question = question};
	ask(&asking);
	assert_int_equal(asking.status, 0);
	return asking.text;
}

/* ---- tests ---- */

static void each_stage_can_be_cancelled(void **state)
{
	(void)state;
	for (enum stage stage = STAGE_NONE + 1; stage < STAGE_COUNT; stage++) {
		pthread_t canceller;
		struct opened_trace *opened = open_trace();
		struct asking asking = {.opened = opened, .question = &questions[1], .is_cancelled = &is_cancelled};
		is_cancelled = false;
		chosen = stage;
		assert_true(thread_begin(&canceller, canceller_run, NULL));
		ask(&asking);
		assert_int_equal(asking.status, -ECANCELED);
		pthread_join(canceller, NULL);
		/* Whether the search for a symbol ends before or after the trace is asked again is all the same. */
		if (stage == STAGE_SYMBOLS)
			sem_post(&search_may_end);
		chosen = STAGE_NONE;
		is_cancelled = false;
		struct opened_trace *fresh = open_trace();
		char *again = answer_of(opened, &questions[1]), *expected = answer_of(fresh, &questions[1]);
		assert_string_equal(again, expected);
		free(again);
		free(expected);
		opened_trace_release(opened);
		opened_trace_release(fresh);
	}
}

static void fields_break(struct asking *asking)
{
	struct analysis *analysis = &asking->analysis;
	struct action_source *source = analysis->sources;
	struct report *report = &asking->report;
	struct action_rows *rows = &asking->part.rows;
	assert_noticed(analysis->source_count, 2, analysis_is_valid(analysis));
	assert_noticed(analysis->input.source_count, 0, analysis_is_valid(analysis));
	assert_noticed(analysis->opened[0], NULL, analysis_is_valid(analysis));
	assert_noticed(analysis->opened[0]->references, 0, analysis_is_valid(analysis));
	assert_noticed(source->table, NULL, analysis_is_valid(analysis));
	assert_noticed(source->window, NULL, analysis_is_valid(analysis));
	assert_noticed(source->trace, NULL, analysis_is_valid(analysis));
	assert_noticed(report->diff.runs[DIFF_A], 2, report_is_valid(report));
	assert_noticed(asking->part.sort, NULL, report_is_valid(report));
	assert_noticed(asking->part.counts.unchanged, 1, report_is_valid(report));
	assert_true(rows->shown > 2 && rows->shown == rows->count);
	assert_noticed(rows->shown, rows->count + 1, report_is_valid(report));
	assert_noticed(rows->count, rows->memory_count + 1, report_is_valid(report));
	assert_noticed(rows->rows[1], rows->rows[0], report_is_valid(report));
	assert_noticed(rows->rows[0], rows->rows[0] - rows->memory_count, report_is_valid(report));
	assert_noticed(rows->rows[1]->rank, UINT64_MAX, report_is_valid(report));
	assert_noticed(rows->rows[1]->figures, rows->rows[0]->figures, report_is_valid(report));
	assert_noticed(rows->rows[1]->source, 1, report_is_valid(report));
	assert_noticed(rows->rows[1]->text, NULL, report_is_valid(report));
	assert_noticed(rows->rows[1]->parent, 0, report_is_valid(report));
	assert_noticed(rows->rows[1]->depth, 1, report_is_valid(report));
}

static void wrong_fields_are_noticed(void **state)
{
	struct opened_trace *opened = open_trace();
	struct asking asking = {.opened = opened, .question = &questions[0], .inspect = fields_break};
	(void)state;
	ask(&asking);
	assert_int_equal(asking.status, 0);
	free(asking.text);
	opened_trace_release(opened);
}

static void opening_can_be_cancelled(void **state)
{
	static const bool is_asked = true;
	const struct analysis_caller caller = {.is_cancelled = &is_asked};
	const struct opened_options options = {.index = INDEX_UNUSED};
	struct opened_trace *opened;
	struct diag diag = {""};
	(void)state;
	assert_int_equal(opened_trace_open(&opened, path, &options, &caller, &diag), -ECANCELED);
	assert_true(*diag.text);
}

static void waits_for_another_request_can_be_cancelled(void **state)
{
	struct opened_trace *opened = open_trace();
	struct asking asking = {.opened = opened, .question = &questions[0], .is_cancelled = &is_cancelled};
	struct thread_lock held;
	(void)state;
	is_cancelled = true;
	thread_lock(&held, &opened->lock, NULL);
	ask(&asking);
	thread_unlock(&held);
	is_cancelled = false;
	assert_int_equal(asking.status, -ECANCELED);
	opened_trace_release(opened);
}

static void *asking_run(void *context)
{
	ask(context);
	return NULL;
}

/* The first of them make the table, and search the symbols. */
static void requests_run_at_once(void **state)
{
	static const bool never = false;
	char *expected[QUESTION_COUNT];
	(void)state;
	for (int i = 0; i < QUESTION_COUNT; i++) {
		struct opened_trace *fresh = open_trace();
		expected[i] = answer_of(fresh, &questions[i]);
		opened_trace_release(fresh);
	}
	for (int round = 0; round < ROUNDS; round++) {
		struct opened_trace *opened = open_trace();
		struct asking askings[2 * QUESTION_COUNT];
		pthread_t threads[2 * QUESTION_COUNT];
		for (int i = 0; i < 2 * QUESTION_COUNT; i++) {
			askings[i] = (struct asking){.opened = opened,
						     .question = &questions[i % QUESTION_COUNT],
						     .is_cancelled = i & 1 ? &never : NULL};
			assert_true(thread_begin(&threads[i], asking_run, &askings[i]));
		}
		for (int i = 0; i < 2 * QUESTION_COUNT; i++) {
			pthread_join(threads[i], NULL);
			assert_int_equal(askings[i].status, 0);
			assert_string_equal(askings[i].text, expected[i % QUESTION_COUNT]);
			free(askings[i].text);
		}
		opened_trace_release(opened);
	}
	for (int i = 0; i < QUESTION_COUNT; i++)
		free(expected[i]);
}

/* ---- a large trace ---- */

static void large_make(void)
{
	struct scene scene;
	bool *is_live = calloc(LARGE_BLOCKS, sizeof(*is_live));
	uint32_t *stacks = calloc(LARGE_STACKS, sizeof(*stacks)), threads[LARGE_THREADS];
	scene_open(&scene, large_path);
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 0);
	for (uint32_t i = 0; i < LARGE_THREADS; i++)
		threads[i] = scene_thread(&scene, process, 100 + i);
	for (uint32_t i = 0; i < LARGE_STACKS; i++)
		stacks[i] =
			scene_stack(&scene, 0x1000, 0x1000 * (uint64_t)(1 + i % 7), 0x1000 * (uint64_t)(1 + i % 4001),
				    0x1000 * (uint64_t)(1 + i % 3989), (uint64_t)0);
	for (uint32_t i = 0; i < LARGE_EVENTS; i++) {
		uint32_t at = (uint32_t)((uint64_t)i * 2654435761u % LARGE_BLOCKS);
		uint64_t address = 0x10000 + 0x1000 * (uint64_t)at;
		scene.stack = stacks[(uint64_t)i * 40503 % LARGE_STACKS];
		if (is_live[at])
			scene_free(&scene, threads[at % LARGE_THREADS], 1 + i, address);
		else
			scene_alloc(&scene, threads[at % LARGE_THREADS], 1 + i, address, 1 + i * 7919 % 3000);
		is_live[at] = !is_live[at];
	}
	scene_end(&scene, process, LARGE_EVENTS + 1, TRACE_END_EXIT, 0);
	scene_close(&scene);
	free(is_live);
	free(stacks);
}

/* Set the flag when the process has used so much time. */
struct stopper {
	int64_t at_ns, set_ns; /* set_ns: when it was set; 0: it was not */
	bool is_over, is_cancelled;
};

static void *stopper_run(void *context)
{
	struct stopper *stopper = context;
	while (processor_ns() < stopper->at_ns && !cancel_is_asked(&stopper->is_over))
		usleep(200);
	if (cancel_is_asked(&stopper->is_over))
		return NULL;
	stopper->set_ns = processor_ns();
	__atomic_store_n(&stopper->is_cancelled, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Ask about the large trace from its file on, and cancel at that time of the request. Return how long it went on; set
   *made_ns to when the answer was made. */
static int64_t stop_at(int64_t after_ns, const struct question *question, int64_t *made_ns)
{
	int64_t began_ns = processor_ns();
	struct stopper stopper = {.at_ns = began_ns + after_ns};
	struct asking asking = {.word = &large, .question = question, .is_cancelled = &stopper.is_cancelled};
	pthread_t thread;
	assert_true(thread_begin(&thread, stopper_run, &stopper));
	ask(&asking);
	int64_t ended_ns = processor_ns();
	__atomic_store_n(&stopper.is_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	free(asking.text);
	*made_ns = asking.made_ns - began_ns;
	assert_true(!asking.status || asking.status == -ECANCELED);
	return asking.status ? ended_ns - stopper.set_ns : 0;
}

static void requests_end_soon(void **state)
{
	(void)state;
	large_make();
	for (unsigned i = 0; i < 2; i++) {
		int64_t worst_ns = 0, made_ns;
		assert_int_equal(stop_at(INT64_MAX / 2, &questions[i], &made_ns), 0);
		for (uint32_t stop = 0; stop < STOPS; stop += rounds_step()) {
			int64_t ignored, late_ns = stop_at(made_ns * stop / STOPS, &questions[i], &ignored);
			worst_ns = late_ns > worst_ns ? late_ns : worst_ns;
		}
		print_message("question %u: %lld ms of processor time, at most %lld us after the flag\n", i,
			      (long long)made_ns / 1000000, (long long)worst_ns / 1000);
		assert_true(worst_ns <= STOP_NS);
	}
	unlink(large_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_stage_can_be_cancelled),
					   cmocka_unit_test(wrong_fields_are_noticed),
					   cmocka_unit_test(opening_can_be_cancelled),
					   cmocka_unit_test(waits_for_another_request_can_be_cancelled),
					   cmocka_unit_test(requests_run_at_once),
					   cmocka_unit_test(requests_end_soon)};
	return cmocka_run_group_tests(tests, begin, NULL);
}
