/* SPDX-License-Identifier: MIT */
#include "server/live/live_trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "base/threads.h"
#include "match/follow.h"
#include "query/symbol_roots.h"
#include "server/answer/parts.h"
#include "server/live/live_answer.h"
#include "trace/reader.h"

enum { FOLLOW_NICE = 10, CELLS_MOST = 1 << 20 };

static const char *const state_words[] = {
#define X(id, word) word,
	LIVE_STATES(X)
#undef X
};

/* Every look is worth it: a picture is to be new. */
static const struct heap_follow_increments increments = {.step_events = 2000000};

struct live_trace {
	char *path;
	/* Of the thread. */
	struct heap_follow *follow;
	struct growing_cells cells;
	struct row_watch watch;
	struct symbols *symbols;
	uint32_t known_processes; /* that the symbols know */
	int error;                /* of its last step */
	struct diag diag;
	/* For all. */
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	struct live_note note;
	uint64_t number;                 /* of the last picture; another one after a change of the note, too */
	struct sink json, cells_written; /* the picture */
	int64_t shown_ns;                /* its time */
	bool has_cut;                    /* the file has grown */
	bool is_wanted, has_news;        /* somebody waits for a picture; there may be something new for it */
	bool is_ending;                  /* also read without the lock */
	uint64_t done, all;              /* with atomic operations */
};

/* ---- the thread ---- */

static void row_add(void *context, const struct heap_table *table, const struct heap_allocation *row)
{
	growing_cells_add(context, table, row);
}

static void row_end(void *context, const struct heap_table *table, const struct heap_allocation *row)
{
	growing_cells_end(context, table, row);
}

static void on_progress(void *context, uint64_t done, uint64_t all)
{
	struct live_trace *live = context;
	__atomic_store_n(&live->done, done, __ATOMIC_RELAXED);
	__atomic_store_n(&live->all, all, __ATOMIC_RELAXED);
}

static void picture_keep(struct live_trace *live, struct sink *json, struct sink *cells, int64_t until_ns)
{
	pthread_mutex_lock(&live->lock);
	sink_end(&live->json);
	sink_end(&live->cells_written);
	live->json = *json;
	live->cells_written = *cells;
	live->shown_ns = until_ns;
	live->is_wanted = false;
	live->number++;
	pthread_mutex_unlock(&live->lock);
}

static int picture_write(struct live_trace *live, const struct matching_sums *sums)
{
	struct sink json, cells;
	const struct trace_dictionary *dictionary = trace_dictionary(heap_follow_trace(live->follow));
	const struct live_facts facts = {.path = live->path,
					 .trace = heap_follow_trace(live->follow),
					 .symbols = live->symbols,
					 .cells = &live->cells,
					 .sums = sums};
	symbol_roots_add(live->symbols, dictionary, live->known_processes);
	live->known_processes = dictionary->process_count;
	sink_to_memory(&json);
	sink_to_memory(&cells);
	int error = live_answer_write(&facts, &json, &cells, &live->diag);
	if (!error) {
		picture_keep(live, &json, &cells, sums->until_ns);
	} else {
		sink_end(&json);
		sink_end(&cells);
	}
	return error;
}

/* A picture of a time that is shown already is none. */
static int picture_make(struct live_trace *live)
{
	struct matching_sums sums = {.site_count = 0};
	int error =
		heap_follow_sums(live->follow, &sums) && heap_follow_watch_settle(live->follow)
			? 0
			: diag_fail(&live->diag, ENOTSUP, "it has sums in place of blocks, or blocks within blocks");
	if (!error && live->cells.is_over)
		error = diag_fail(&live->diag, E2BIG, "it has more than %d cells", CELLS_MOST);
	if (!error && (!live->number || sums.until_ns != live->shown_ns))
		error = picture_write(live, &sums);
	matching_sums_fini(&sums);
	return error;
}

/* Match what is new, and make a picture if somebody waits for one. */
static void step(void *context)
{
	struct live_trace *live = context;
	pthread_mutex_lock(&live->lock);
	const struct live_note note = live->note;
	const bool has_cut = live->has_cut, is_wanted = live->is_wanted;
	live->has_cut = false;
	live->has_news = !is_wanted;
	pthread_mutex_unlock(&live->lock);
	live->error = has_cut ? heap_follow_advance(live->follow, note.until_ns, note.size_bytes, &live->is_ending,
						    &live->diag)
			      : 0;
	if (!live->error && is_wanted)
		live->error = picture_make(live);
}

static bool has_work(const struct live_trace *live)
{
	return live->has_cut || (live->is_wanted && live->has_news);
}

static void *live_run(void *context)
{
	struct live_trace *live = context;
	bool goes_on = true;
	/* Here a process is a thread: this one, and those that it begins. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), FOLLOW_NICE);
	while (goes_on) {
		pthread_mutex_lock(&live->lock);
		while (!live->is_ending && !has_work(live))
			pthread_cond_wait(&live->changed, &live->lock);
		goes_on = !live->is_ending;
		pthread_mutex_unlock(&live->lock);
		live->error = -ENOMEM;
		if (goes_on && !memory_try(step, live))
			diag_fail(&live->diag, ENOMEM, "there is not enough memory");
		goes_on = goes_on && !live->error;
	}
	pthread_mutex_lock(&live->lock);
	if (!live->is_ending && live->note.state != LIVE_OVER) {
		live->note.state = LIVE_OVER;
		snprintf(live->note.text, sizeof(live->note.text), "This recording cannot be followed: %.200s.",
			 live->diag.text);
	}
	pthread_mutex_unlock(&live->lock);
	return NULL;
}

/* ---- the caller's side ---- */

struct live_trace *live_trace_new(const char *path, bool without_files, struct diag *diag)
{
	struct live_trace *live = memory_zeroed(1, sizeof(*live));
	const struct heap_build how = {.fd = -1,
				       .progress = on_progress,
				       .cookie = live,
				       .has_chart = true,
				       .without_rows = true,
				       .watch = &live->watch};
	live->path = strdup(path);
	live->cells.most = CELLS_MOST;
	live->watch = (struct row_watch){row_add, row_end, &live->cells};
	live->symbols = symbols_new();
	if (without_files)
		symbols_leave_files(live->symbols);
	live->follow = heap_follow_new(live->path, &how, &increments);
	live->is_wanted = true;
	sink_to_memory(&live->json);
	sink_to_memory(&live->cells_written);
	pthread_mutex_init(&live->lock, NULL);
	pthread_cond_init(&live->changed, NULL);
	if (thread_begin(&live->thread, live_run, live))
		return live;
	diag_fail(diag, EAGAIN, "no thread can be started");
	live->thread = 0;
	live_trace_free(live);
	return NULL;
}

void live_trace_note(struct live_trace *live, const struct live_note *note)
{
	pthread_mutex_lock(&live->lock);
	if (live->note.state != LIVE_OVER) {
		live->has_cut |= note->until_ns > live->note.until_ns;
		live->number +=
			live->number && (note->state != live->note.state || strcmp(note->text, live->note.text));
		live->note = *note;
	}
	pthread_cond_signal(&live->changed);
	pthread_mutex_unlock(&live->lock);
}

void live_trace_noted(struct live_trace *live, struct live_note *note)
{
	pthread_mutex_lock(&live->lock);
	*note = live->note;
	pthread_mutex_unlock(&live->lock);
}

static void picture_join(const struct live_trace *live, struct live_answer *picture)
{
	struct sink out, about, none;
	sink_to_memory(&out);
	sink_to_memory(&about);
	sink_to_memory(&none);
	struct json json = {.out = &about, .is_for_script = true};
	json_begin_object(&json, NULL);
	json_count(&json, "number", live->number);
	json_text(&json, "state", state_words[live->note.state]);
	json_text(&json, "text", live->note.text);
	json_end_object(&json);
	json_end(&json);
	parts_begin(&out, 2);
	parts_add(&out, &about, &live->cells_written);
	parts_add(&out, &live->json, &none);
	sink_end(&about);
	picture->number = live->number;
	picture->bytes = sink_take(&out, &picture->size);
}

bool live_trace_picture(struct live_trace *live, uint64_t seen, struct live_answer *picture)
{
	pthread_mutex_lock(&live->lock);
	const bool is_new = live->number > seen;
	if (is_new) {
		picture_join(live, picture);
	} else {
		live->is_wanted = true;
		pthread_cond_signal(&live->changed);
	}
	pthread_mutex_unlock(&live->lock);
	return is_new;
}

uint64_t live_trace_progress(struct live_trace *live, uint64_t *all)
{
	*all = __atomic_load_n(&live->all, __ATOMIC_RELAXED);
	return __atomic_load_n(&live->done, __ATOMIC_RELAXED);
}

void live_trace_free(struct live_trace *live)
{
	if (!live)
		return;
	pthread_mutex_lock(&live->lock);
	__atomic_store_n(&live->is_ending, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&live->changed);
	pthread_mutex_unlock(&live->lock);
	if (live->thread)
		pthread_join(live->thread, NULL);
	heap_follow_free(live->follow);
	growing_cells_fini(&live->cells);
	symbols_free(live->symbols);
	sink_end(&live->json);
	sink_end(&live->cells_written);
	free(live->path);
	free(live);
}
