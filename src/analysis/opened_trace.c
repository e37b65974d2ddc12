/* SPDX-License-Identifier: MIT */
#include "analysis/opened_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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

/* ---- the lock, which work that is given up for lack of memory lets go of, too ---- */

struct opened_use {
	struct memory_guard guard;
	struct opened_trace *opened;
};

static void unlock(void *context)
{
	struct opened_use *locked = context;
	memory_unguard(&locked->guard);
	pthread_mutex_unlock(&locked->opened->lock);
}

static void lock(struct opened_use *locked, struct opened_trace *opened)
{
	locked->opened = opened;
	pthread_mutex_lock(&opened->lock);
	memory_guard(&locked->guard, unlock, locked);
}

/* ---- what is made when it is needed ---- */

int opened_trace_table(struct opened_trace *opened, struct heap_table **out, const struct analysis_caller *caller,
		       struct diag *diag)
{
	struct opened_use locked;
	int error = 0;
	lock(&locked, opened);
	if (!opened->table) {
		error = trace_table_make(&opened->table, opened->trace, opened->path, opened->options.index,
					 &opened->index_path, caller, diag);
		opened->matched_ns = monotonic_now_ns();
	}
	*out = opened->table;
	unlock(&locked);
	return error;
}

int opened_trace_mend(struct opened_trace *opened, const struct heap_table *damaged,
		      const struct analysis_caller *caller, struct diag *diag)
{
	struct opened_use locked;
	int error = 0;
	lock(&locked, opened);
	if (opened->table == damaged) {
		memory_grow(opened->damaged, opened->damaged_count, opened->damaged_capacity);
		opened->damaged[opened->damaged_count++] = opened->table;
		opened->table = NULL;
		error = trace_table_mend(&opened->table, opened->trace, opened->path, &opened->options.index,
					 &opened->index_path, caller, diag);
	}
	unlock(&locked);
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
	struct opened_use locked;
	lock(&locked, opened);
	struct symbols *symbols = symbols_settle(opened);
	unlock(&locked);
	return symbols;
}

struct heap_names *opened_trace_names(struct opened_trace *opened, bool with_lines)
{
	struct opened_use locked;
	lock(&locked, opened);
	struct symbols *symbols = symbols_settle(opened);
	if (!opened->names[with_lines])
		opened->names[with_lines] = heap_names_new(opened->trace, symbols, with_lines);
	struct heap_names *names = opened->names[with_lines];
	unlock(&locked);
	return names;
}
