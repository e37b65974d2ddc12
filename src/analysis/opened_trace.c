/* SPDX-License-Identifier: MIT */
#include "analysis/opened_trace.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "match/match.h"
#include "os/monotonic.h"
#include "query/kept_names.h"
#include "query/symbol_roots.h"
#include "table/index_cache.h"
#include "table/index_file.h"
#include "trace/code_rows.h"
#include "trace/index_events.h"
#include "trace/reader.h"
#include "trace/trace.h"

static char *copy(const char *text)
{
	size_t size = strlen(text) + 1;
	return memcpy(memory_resize(NULL, size, 1), text, size);
}

int opened_trace_open(struct opened_trace **out, const char *path, const struct opened_options *options,
		      const struct analysis_caller *caller, struct diag *diag)
{
	struct trace *trace;
	uint64_t begin_ns = monotonic_now_ns();
	memory_be_generous();
	int error = trace_open_unless(&trace, path, caller->is_cancelled, diag);
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
	unsigned before = __atomic_fetch_add(&opened->references, 1, __ATOMIC_RELAXED);
	assert(before > 0);
	(void)before;
}

void opened_trace_release(struct opened_trace *opened)
{
	if (!opened || __atomic_sub_fetch(&opened->references, 1, __ATOMIC_ACQ_REL))
		return;
	for (int i = 0; i < 2; i++)
		heap_names_free(opened->names[i]);
	if (opened->symbols && opened->table)
		kept_names_note(opened->symbols, opened->table);
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

/* ---- the table, with the lock held ---- */

bool opened_trace_is_worth_an_index(const struct trace *trace)
{
	return trace_dictionary(trace)->is_complete && trace_dictionary(trace)->event_count >= index_events_least();
}

/* One line: the size, the place, and how to get rid of it. */
static void index_announce(const struct index_cache_made *made, const struct analysis_caller *caller)
{
	char removed[256] = "", above[160] = "";
	if (made->removed_count)
		snprintf(removed, sizeof(removed),
			 "; removed %s index%s unused for longest, %s, to stay below %s for all",
			 text_count(made->removed_count).data, made->removed_count == 1 ? "" : "es",
			 text_bytes(made->removed_bytes).data, text_bytes(made->limit_bytes).data);
	if (made->bytes > made->limit_bytes)
		snprintf(above, sizeof(above), "; it alone exceeds the limit of %s for all indexes",
			 text_bytes(made->limit_bytes).data);
	analysis_note(caller, ANALYSIS_INDEX_MADE,
		      "made an index for later reports, %s in %s (xheap clean removes it)%s%s",
		      text_bytes(made->bytes).data, made->directory, removed, above);
}

/* Build the table; in an index, if there can be one. Rows as of a time, and those that may take little memory, are in a
   file, too, which has no name. */
static int table_build(struct opened_trace *opened, bool wants_index, const struct analysis_caller *caller,
		       struct diag *diag)
{
	struct heap_build how = {.fd = -1,
				 .progress = caller->progress,
				 .cookie = caller->context,
				 .is_small = opened->options.is_small,
				 .until_ns = opened->options.until_ns ? &opened->options.until_ns : NULL,
				 .is_cancelled = caller->is_cancelled};
	struct diag reason = {""};
	struct index_cache_made made;
	if (wants_index || how.until_ns || how.is_small) {
		int fd = index_cache_begin(&reason);
		how.fd = fd < 0 ? -1 : fd;
		how.reserved_bytes = fd < 0 ? 0 : HEAP_INDEX_HEAD_BYTES;
	}
	bool has_file = how.fd >= 0;
	int error = heap_table_build(&opened->table, opened->trace, &how, diag);
	if (error)
		diag_prefix(diag, "%s", opened->path);
	if (error || !wants_index)
		return error;
	if (has_file && !index_cache_write(opened->table, opened->path, &made, &reason))
		index_announce(&made, caller);
	else
		analysis_note(caller, ANALYSIS_INDEX_TROUBLE,
			      "no index is kept, so the next report reads the whole trace again: %s", reason.text);
	return 0;
}

static int table_make(struct opened_trace *opened, const struct analysis_caller *caller, struct diag *diag)
{
	enum index_use use =
		opened->options.until_ns || opened->options.is_small ? INDEX_UNUSED : opened->options.index;
	assert(!opened->table && !opened->index_path);
	bool is_made = use == INDEX_MADE && opened_trace_is_worth_an_index(opened->trace);
	bool is_read = (is_made || use == INDEX_READ) &&
		       !index_cache_read(&opened->table, opened->trace, opened->path, &opened->index_path);
	int error = is_read ? 0 : table_build(opened, is_made, caller, diag);
	opened->matched_ns = monotonic_now_ns();
	return error;
}

/* The index is damaged, and would be read again and again. */
static void index_remove(struct opened_trace *opened, const struct analysis_caller *caller)
{
	const char *path = opened->index_path;
	if (unlink(path) && errno != ENOENT) {
		analysis_note(caller, ANALYSIS_INDEX_TROUBLE, "the index %s is damaged, and cannot be removed: %s",
			      path, strerror(errno));
		opened->options.index = INDEX_UNUSED;
	} else {
		analysis_note(caller, ANALYSIS_INDEX_TROUBLE, "the index %s was damaged and is made anew", path);
	}
	free(opened->index_path);
	opened->index_path = NULL;
}

static int table_mend(struct opened_trace *opened, const struct analysis_caller *caller, struct diag *diag)
{
	/* A table that was built just now has no index that could be damaged. */
	if (!opened->index_path)
		return diag_fail(diag, EIO, "%s: the table of allocations could not be read again", opened->path);
	index_remove(opened, caller);
	memory_grow(opened->damaged, opened->damaged_count, opened->damaged_capacity);
	opened->damaged[opened->damaged_count++] = opened->table;
	opened->table = NULL;
	return table_make(opened, caller, diag);
}

/* ---- what is made when it is needed ---- */

int opened_trace_table(struct opened_trace *opened, struct heap_table **out, const struct analysis_caller *caller,
		       struct diag *diag)
{
	struct thread_lock held;
	if (!thread_lock(&held, &opened->lock, caller->is_cancelled))
		return analysis_check_cancelled(caller, diag);
	int error = opened->table ? 0 : table_make(opened, caller, diag);
	*out = opened->table;
	thread_unlock(&held);
	return error;
}

int opened_trace_mend(struct opened_trace *opened, const struct heap_table *damaged,
		      const struct analysis_caller *caller, struct diag *diag)
{
	struct thread_lock held;
	if (!thread_lock(&held, &opened->lock, caller->is_cancelled))
		return analysis_check_cancelled(caller, diag);
	int error = opened->table == damaged ? table_mend(opened, caller, diag) : 0;
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
	symbol_roots_add(opened->symbols, trace_dictionary(opened->trace), 0);
	if (opened->table)
		kept_names_learn(opened->symbols, opened->table);
	return opened->symbols;
}

struct symbols *opened_trace_symbols(struct opened_trace *opened)
{
	struct thread_lock held;
	thread_lock(&held, &opened->lock, NULL);
	struct symbols *symbols = symbols_settle(opened);
	thread_unlock(&held);
	return symbols;
}

struct heap_names *opened_trace_names(struct opened_trace *opened, bool with_lines)
{
	struct thread_lock held;
	thread_lock(&held, &opened->lock, NULL);
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

/* Go through the functions at all addresses that the trace has no symbols of. */
static void addresses_each(struct opened_trace *opened, const bool *is_cancelled,
			   void (*add)(void *context, const struct symbol_frame *frames, size_t count), void *context)
{
	const struct trace_dictionary *dictionary = trace_dictionary(opened->trace);
	struct symbols *symbols = opened_trace_symbols(opened);
	const struct symbol_frame *frames;
	bool *is_stored = memory_zeroed(dictionary->frame_count, sizeof(*is_stored));
	for (uint32_t i = 0; i < dictionary->symbol_count; i++)
		is_stored[dictionary->symbols[i].frame] = true;
	for (uint32_t i = 0; i < dictionary->frame_count && !cancel_is_asked(is_cancelled); i++) {
		const struct trace_frame *frame = &dictionary->frames[i];
		if (is_stored[i] || frame->image >= dictionary->image_count)
			continue;
		const struct trace_image *image = &dictionary->images[frame->image];
		size_t count = symbols_resolve(symbols, image->path, image->build_id, image->build_id_size,
					       frame->offset, true, &frames);
		if (add)
			add(context, frames, count);
	}
	free(is_stored);
}

static void addresses_resolve(void *context)
{
	struct symbol_search *search = context;
	addresses_each(search->opened, &search->is_cancelled, NULL, NULL);
}

static void text_hash(XXH3_state_t *hash, const char *text)
{
	XXH3_64bits_update(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void frames_hash(void *context, const struct symbol_frame *frames, size_t count)
{
	XXH3_state_t *hash = context;
	for (size_t i = 0; i < count; i++) {
		const uint32_t numbers[] = {(uint32_t)i, frames[i].line, frames[i].inlined};
		XXH3_64bits_update(hash, numbers, sizeof(numbers));
		text_hash(hash, frames[i].function);
		text_hash(hash, frames[i].file);
	}
}

uint64_t opened_trace_names_hash(struct opened_trace *opened)
{
	const struct trace_dictionary *dictionary = trace_dictionary(opened->trace);
	XXH3_state_t *hash = XXH3_createState();
	if (!hash)
		memory_exhausted(0);
	XXH3_64bits_reset(hash);
	addresses_each(opened, NULL, frames_hash, hash);
	bool *is_used = memory_zeroed(dictionary->image_count, sizeof(*is_used));
	for (uint32_t i = 0; i < dictionary->frame_count; i++)
		if (dictionary->frames[i].image < dictionary->image_count)
			is_used[dictionary->frames[i].image] = true;
	for (uint32_t i = 0; i < dictionary->image_count; i++) {
		const struct trace_image *image = &dictionary->images[i];
		if (!is_used[i])
			continue;
		bool has_symbols = symbols_image_has_symbols(opened_trace_symbols(opened), image->path, image->build_id,
							     image->build_id_size);
		XXH3_64bits_update(hash, &has_symbols, sizeof(has_symbols));
	}
	uint64_t result = XXH3_64bits_digest(hash);
	XXH3_freeState(hash);
	free(is_used);
	return result;
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
