/* SPDX-License-Identifier: MIT */
#include "analysis/opened_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "base/threads.h"
#include "os/monotonic.h"

static char *copy(const char *text)
{
	size_t size = strlen(text) + 1;
	return memcpy(memory_resize(NULL, size, 1), text, size);
}

int opened_trace_open(struct opened_trace **out, const char *path, const struct opened_options *options,
		      struct diag *diag)
{
	struct trace *trace;
	uint64_t begin_ns = monotonic_now_ns();
	int error = trace_open(&trace, path, diag);
	if (error)
		return error;
	struct opened_trace *opened = *out = memory_zeroed(1, sizeof(*opened));
	*opened = (struct opened_trace){.path = copy(path),
					.trace = trace,
					.begin_ns = begin_ns,
					.opened_ns = monotonic_now_ns(),
					.options = *options,
					.references = 1};
	pthread_mutex_init(&opened->lock, NULL);
	return 0;
}

void opened_trace_hold(struct opened_trace *opened)
{
	__atomic_fetch_add(&opened->references, 1, __ATOMIC_RELAXED);
}

void opened_trace_release(struct opened_trace *opened)
{
	if (!opened || __atomic_sub_fetch(&opened->references, 1, __ATOMIC_ACQ_REL))
		return;
	for (int i = 0; i < 2; i++)
		heap_names_free(opened->names[i]);
	symbols_free(opened->symbols);
	heap_table_free(opened->table);
	for (size_t i = 0; i < opened->damaged_count; i++)
		heap_table_free(opened->damaged[i]);
	free(opened->damaged);
	free(opened->index_path);
	trace_close(opened->trace);
	free(opened->path);
	pthread_mutex_destroy(&opened->lock);
	free(opened);
}

/* ---- what is made when it is needed ---- */

int opened_trace_table(struct opened_trace *opened, struct heap_table **out, const struct analysis_caller *caller,
		       struct diag *diag)
{
	struct thread_lock held;
	int error = 0;
	if (!thread_lock_or_cancel(&held, &opened->lock, caller->is_cancelled))
		return analysis_check_cancelled(caller, diag);
	if (!opened->table) {
		error = trace_table_make(&opened->table, opened->trace, opened->path, opened->options.index,
					 &opened->index_path, caller, diag);
		opened->matched_ns = monotonic_now_ns();
	}
	*out = opened->table;
	thread_unlock(&held);
	return error;
}

int opened_trace_mend(struct opened_trace *opened, const struct heap_table *damaged,
		      const struct analysis_caller *caller, struct diag *diag)
{
	struct thread_lock held;
	int error = 0;
	if (!thread_lock_or_cancel(&held, &opened->lock, caller->is_cancelled))
		return analysis_check_cancelled(caller, diag);
	if (opened->table == damaged) {
		memory_grow(opened->damaged, opened->damaged_count, opened->damaged_capacity);
		opened->damaged[opened->damaged_count++] = opened->table;
		opened->table = NULL;
		error = trace_table_mend(&opened->table, opened->trace, opened->path, &opened->options.index,
					 &opened->index_path, caller, diag);
	}
	thread_unlock(&held);
	return error;
}

/* With the lock held. */
static struct symbols *symbols_settle(struct opened_trace *opened)
{
	if (opened->symbols)
		return opened->symbols;
	opened->symbols = symbols_new();
	if (opened->options.without_files)
		symbols_leave_files(opened->symbols);
	if (opened->options.without_separate)
		symbols_leave_separate(opened->symbols);
	return opened->symbols;
}

struct symbols *opened_trace_symbols(struct opened_trace *opened)
{
	struct thread_lock held;
	thread_lock(&held, &opened->lock);
	struct symbols *symbols = symbols_settle(opened);
	thread_unlock(&held);
	return symbols;
}

struct heap_names *opened_trace_names(struct opened_trace *opened, bool with_lines)
{
	struct thread_lock held;
	thread_lock(&held, &opened->lock);
	struct symbols *symbols = symbols_settle(opened);
	if (!opened->names[with_lines])
		opened->names[with_lines] = heap_names_new(opened->trace, symbols, with_lines);
	struct heap_names *names = opened->names[with_lines];
	thread_unlock(&held);
	return names;
}

/* ---- symbols, ahead ---- */

/* A search that a caller waits for, or has left. Whoever leaves last frees it. */
struct symbol_search {
	struct opened_trace *opened;
	pthread_mutex_t lock;
	pthread_cond_t has_ended;
	bool is_over, is_left; /* with the lock */
	bool is_cancelled;
};

static void addresses_resolve(void *context)
{
	struct symbol_search *search = context;
	const struct trace_dictionary *dictionary = trace_dictionary(search->opened->trace);
	struct symbols *symbols = opened_trace_symbols(search->opened);
	const struct symbol_frame *ignored;
	bool *is_stored = memory_zeroed(dictionary->frame_count, sizeof(*is_stored));
	for (uint32_t i = 0; i < dictionary->symbol_count; i++)
		is_stored[dictionary->symbols[i].frame] = true;
	for (uint32_t i = 0; i < dictionary->frame_count && !cancel_is_asked(&search->is_cancelled); i++) {
		const struct trace_frame *frame = &dictionary->frames[i];
		if (is_stored[i] || frame->image >= dictionary->image_count)
			continue;
		const struct trace_image *image = &dictionary->images[frame->image];
		symbols_resolve(symbols, image->path, image->build_id, image->build_id_size, frame->offset, true,
				&ignored);
	}
	free(is_stored);
}

/* Return whether both have left. */
static bool search_leave(struct symbol_search *search, bool is_over)
{
	pthread_mutex_lock(&search->lock);
	bool is_last = is_over ? search->is_left : search->is_over;
	search->is_over |= is_over;
	search->is_left |= !is_over;
	pthread_cond_signal(&search->has_ended);
	pthread_mutex_unlock(&search->lock);
	return is_last;
}

static void search_free(struct symbol_search *search)
{
	opened_trace_release(search->opened);
	pthread_mutex_destroy(&search->lock);
	pthread_cond_destroy(&search->has_ended);
	free(search);
}

static void *search_run(void *context)
{
	struct symbol_search *search = context;
	/* Without memory, whoever names the code finds that out, too. */
	memory_try(addresses_resolve, search);
	if (search_leave(search, true))
		search_free(search);
	return NULL;
}

/* Return whether the search has ended before it was cancelled. */
static bool search_wait(struct symbol_search *search, const bool *is_cancelled)
{
	pthread_mutex_lock(&search->lock);
	while (!search->is_over && !cancel_is_asked(is_cancelled)) {
		struct timespec until = thread_look_time();
		pthread_cond_timedwait(&search->has_ended, &search->lock, &until);
	}
	bool is_over = search->is_over;
	pthread_mutex_unlock(&search->lock);
	__atomic_store_n(&search->is_cancelled, true, __ATOMIC_RELAXED);
	return is_over;
}

int opened_trace_resolve(struct opened_trace *opened, const struct analysis_caller *caller, struct diag *diag)
{
	pthread_t thread;
	if (!caller->is_cancelled || __atomic_load_n(&opened->is_resolved, __ATOMIC_RELAXED))
		return 0;
	struct symbol_search *search = memory_zeroed(1, sizeof(*search));
	search->opened = opened;
	opened_trace_hold(opened);
	pthread_mutex_init(&search->lock, NULL);
	pthread_cond_init(&search->has_ended, NULL);
	if (thread_begin(&thread, search_run, search))
		pthread_detach(thread);
	else
		search_run(search);
	if (search_wait(search, caller->is_cancelled))
		__atomic_store_n(&opened->is_resolved, true, __ATOMIC_RELAXED);
	if (search_leave(search, false))
		search_free(search);
	return analysis_check_cancelled(caller, diag);
}
