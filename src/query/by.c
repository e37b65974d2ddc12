/* SPDX-License-Identifier: MIT */
#include "query/by.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

#define X(id, name) name,
static const char *const by_names[] = {"", HEAP_BYS(X)};
#undef X
enum { BY_COUNT = sizeof(by_names) / sizeof(*by_names), DECADES = 12, FIRST_DECADE_NS = 1000 };

const char *heap_by_name(enum heap_by by)
{
	assert((unsigned)by < BY_COUNT);
	return by_names[by];
}

enum heap_by heap_by_find(const char *name)
{
	for (int by = 1; by < BY_COUNT; by++)
		if (!strcasecmp(name, by_names[by]))
			return (enum heap_by)by;
	return HEAP_BY_NONE;
}

/* Sizes by powers of two: 0 for none, n for those of n bits. */
static uint32_t size_class(uint64_t size_bytes)
{
	return size_bytes ? 64 - (uint32_t)__builtin_clzll(size_bytes) : 0;
}

static int64_t decade_ns(uint32_t decade)
{
	assert(decade < DECADES);
	int64_t time_ns = FIRST_DECADE_NS;
	while (decade-- > 0)
		time_ns *= 10;
	return time_ns;
}

static uint32_t lifetime_decade(int64_t lifetime_ns)
{
	uint32_t decade = 0;
	while (decade < DECADES - 1 && lifetime_ns >= decade_ns(decade))
		decade++;
	return decade;
}

static uint32_t time_part(struct heap_range range, int64_t time_ns)
{
	if (time_ns < range.from_ns)
		return 0;
	uint64_t length = (uint64_t)(range.to_ns - range.from_ns) + 1, at = (uint64_t)(time_ns - range.from_ns);
	uint64_t part = (uint64_t)((unsigned __int128)at * HEAP_TIME_PARTS / length);
	return part < HEAP_TIME_PARTS ? (uint32_t)part : HEAP_TIME_PARTS - 1;
}

uint32_t heap_by_of(const struct heap_window *window, const struct heap_table *table,
		    const struct heap_allocation *allocation)
{
	switch (window->by) {
	case HEAP_BY_NONE:
		break;
	case HEAP_BY_PROCESS:
		return table->dictionary->threads[allocation->thread].process;
	case HEAP_BY_THREAD:
		return allocation->thread;
	case HEAP_BY_HEAP:
		return allocation->heap;
	case HEAP_BY_SIZE:
		return size_class(allocation->size_bytes);
	case HEAP_BY_LIFETIME:
		return lifetime_decade(heap_lifetime_ns(allocation));
	case HEAP_BY_TIME:
		return time_part(window->range, allocation->birth_ns);
	case HEAP_BY_CLASS:
		return heap_class_of(allocation, window->range);
	}
	return 0;
}

bool heap_window_is_one_part(const struct heap_window *window, const struct trace_sum *sum)
{
	switch (window->by) {
	case HEAP_BY_SIZE:
		return size_class(sum->size_min) == size_class(sum->size_max);
	case HEAP_BY_LIFETIME:
		return lifetime_decade((int64_t)sum->lifetime_min_ns) == lifetime_decade((int64_t)sum->lifetime_max_ns);
	case HEAP_BY_TIME:
		return time_part(window->range, sum->birth_first_ns) == time_part(window->range, sum->birth_last_ns);
	case HEAP_BY_THREAD:
		return !(sum->flags & TRACE_SUM_THREADS);
	/* A sum is of one process and of one heap, and all its blocks had ended before every window. */
	case HEAP_BY_NONE:
	case HEAP_BY_PROCESS:
	case HEAP_BY_HEAP:
	case HEAP_BY_CLASS:
		break;
	}
	return true;
}

static int process_text(char **text, const struct heap_table *table, uint32_t id)
{
	assert(id < table->dictionary->process_count);
	const struct trace_process *process = &table->dictionary->processes[id];
	return asprintf(text, "pid %s (%s)", text_pid(process->pid).data, text_file_name(process->image));
}

static int thread_text(char **text, const struct heap_table *table, uint32_t id)
{
	assert(id < table->dictionary->thread_count);
	const struct trace_thread *thread = &table->dictionary->threads[id];
	const struct trace_process *process = &table->dictionary->processes[thread->process];
	if (thread->tid == TRACE_TID_NONE)
		return asprintf(text, "pid %s %s", text_pid(process->pid).data, thread->name);
	return asprintf(text, "pid %s thread %" PRIu32 "%s%s", text_pid(process->pid).data, thread->tid,
			thread->name && *thread->name ? " " : "", thread->name ? thread->name : "");
}

static int heap_text(char **text, const struct heap_table *table, uint32_t id)
{
	if (id >= table->dictionary->heap_count)
		return asprintf(text, "[no heap]");
	const struct trace_heap *heap = &table->dictionary->heaps[id];
	return asprintf(text, "%s 0x%" PRIx64 " in pid %s", heap->name, heap->handle,
			text_pid(table->dictionary->processes[heap->process].pid).data);
}

static int size_text(char **text, uint32_t class)
{
	assert(class <= 64);
	if (class < 2)
		return asprintf(text, "%" PRIu32 " B", class);
	return asprintf(text, "%s to %s", text_bytes(UINT64_C(1) << (class - 1)).data,
			text_bytes((UINT64_C(1) << class) - 1).data);
}

static int lifetime_text(char **text, uint32_t decade)
{
	assert(decade < DECADES);
	if (decade == 0)
		return asprintf(text, "below %s", text_duration(FIRST_DECADE_NS).data);
	return decade == DECADES - 1 ? asprintf(text, "%s and longer", text_duration(decade_ns(decade - 1)).data)
				     : asprintf(text, "%s to %s", text_duration(decade_ns(decade - 1)).data,
						text_duration(decade_ns(decade)).data);
}

static int time_text(char **text, struct heap_range range, uint32_t part)
{
	assert(part < HEAP_TIME_PARTS);
	int64_t length = range.to_ns - range.from_ns;
	int64_t from = range.from_ns + (int64_t)((__int128)length * part / HEAP_TIME_PARTS);
	int64_t to = range.from_ns + (int64_t)((__int128)length * (part + 1) / HEAP_TIME_PARTS);
	return asprintf(text, "%s to %s", text_duration(from).data, text_duration(to).data);
}

/* The label, which several may have. */
static char *by_label(const struct heap_window *window, const struct heap_table *table, uint32_t by)
{
	char *text = NULL;
	int length = -1;
	switch (window->by) {
	case HEAP_BY_NONE:
		length = asprintf(&text, "%s", "");
		break;
	case HEAP_BY_PROCESS:
		length = process_text(&text, table, by);
		break;
	case HEAP_BY_THREAD:
		length = thread_text(&text, table, by);
		break;
	case HEAP_BY_HEAP:
		length = heap_text(&text, table, by);
		break;
	case HEAP_BY_SIZE:
		length = size_text(&text, by);
		break;
	case HEAP_BY_LIFETIME:
		length = lifetime_text(&text, by);
		break;
	case HEAP_BY_TIME:
		length = time_text(&text, window->range, by);
		break;
	case HEAP_BY_CLASS:
		length = asprintf(&text, "%s", heap_class_name((enum heap_class)by));
		break;
	}
	if (length < 0)
		memory_exhausted(0);
	return text;
}

/* ---- several with one label ---- */

static uint32_t by_count(enum heap_by by, const struct trace_dictionary *dictionary)
{
	return by == HEAP_BY_PROCESS  ? dictionary->process_count
	       : by == HEAP_BY_THREAD ? dictionary->thread_count
	       : by == HEAP_BY_HEAP   ? dictionary->heap_count
				      : 0;
}

static uint32_t process_of(enum heap_by by, const struct trace_dictionary *dictionary, uint32_t id)
{
	assert(id < by_count(by, dictionary));
	return by == HEAP_BY_PROCESS  ? id
	       : by == HEAP_BY_THREAD ? dictionary->threads[id].process
				      : dictionary->heaps[id].process;
}

void heap_by_find_shared(struct heap_window *window, const struct heap_table *table)
{
	assert(!window->label_ends);
	uint32_t count = by_count(window->by, table->dictionary);
	struct map seen = {0}, seen_in_process = {0};
	if (!count)
		return;
	uint64_t *keys = memory_zeroed(count, 2 * sizeof(*keys)), *process_keys = &keys[count];
	for (uint32_t i = 0; i < count; i++) {
		bool added;
		uint32_t process = process_of(window->by, table->dictionary, i);
		char *label = by_label(window, table, i);
		keys[i] = XXH3_64bits(label, strlen(label));
		process_keys[i] = XXH3_64bits_withSeed(label, strlen(label), (uint64_t)process + 1);
		++*map_add(&seen, keys[i], &added);
		++*map_add(&seen_in_process, process_keys[i], &added);
		free(label);
	}
	window->label_ends = memory_zeroed(count, 1);
	for (uint32_t i = 0; i < count; i++)
		if (*map_find(&seen, keys[i]) > 1)
			window->label_ends[i] =
				*map_find(&seen_in_process, process_keys[i]) > 1 ? HEAP_LABEL_ID : HEAP_LABEL_PROCESS;
	map_fini(&seen);
	map_fini(&seen_in_process);
	free(keys);
}

char *heap_by_text(const struct heap_window *window, const struct heap_table *table, uint32_t by)
{
	char *label = by_label(window, table, by), *text = NULL;
	enum heap_label_end end = by < by_count(window->by, table->dictionary)
					  ? (enum heap_label_end)window->label_ends[by]
					  : HEAP_LABEL_PLAIN;
	int length = 0;
	if (end == HEAP_LABEL_PLAIN)
		return label;
	if (end == HEAP_LABEL_ID || window->by == HEAP_BY_PROCESS)
		length = asprintf(&text, "%s #%" PRIu32, label, by);
	else
		length = asprintf(&text, "%s, process #%" PRIu32, label, process_of(window->by, table->dictionary, by));
	if (length < 0)
		memory_exhausted(0);
	free(label);
	return text;
}

uint32_t heap_by_process(const struct heap_window *window, const struct heap_table *table, uint32_t by)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	if (by >= by_count(window->by, dictionary))
		return HEAP_NONE;
	return process_of(window->by, dictionary, by);
}

uint32_t heap_by_thread(const struct heap_window *window, const struct heap_table *table, uint32_t by)
{
	return window->by == HEAP_BY_THREAD && by < table->dictionary->thread_count ? by : HEAP_NONE;
}
