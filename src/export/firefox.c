/* SPDX-License-Identifier: MIT */
/*
 * The format of the Firefox Profiler: a processed profile of version 70, which later versions upgrade. Tables are one
 * array for each column. Stacks, frames and functions are shared by all threads; a process is a main thread, which has
 * the blocks of all its threads as native allocations. With the address of each block, the profiler tells what a
 * selected time has left.
 *
 * A browser reads all of it at once. Above EXPORT_BLOCKS_MAX blocks, those of one stack are summed up in each slice of
 * time, and it cannot show what a selected time has left.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/summary/summary.h"
#include "base/digits.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/block_times.h"
#include "export/export.h"
#include "trace/code_rows.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	PROFILE_VERSION = 70,
	GECKO_VERSION = 36,
	SLICES = 200,          /* of the range, when blocks are summed up */
	SLICES_OF_LIVE = 1000, /* of the range, for the curve of live bytes */
	RESOURCE_LIBRARY = 1,
	NS_PER_MS = 1000000,
	MARKER_INSTANT = 0,
	MARKER_INTERVAL = 1,
	LINE_DEPTH = 2
};

struct firefox_event {
	int64_t time_ns, weight; /* bytes; below 0: they are given back */
	uint64_t address;
	uint32_t stack, thread;
};

/* Sums of a slice of time. */
struct firefox_sum {
	uint64_t begun, ended;
	uint32_t process, stack;
};

/* The rows of each process in their order: those of process p are order[firsts[p]] up to order[firsts[p + 1]]. */
struct process_rows {
	uint32_t *order, *firsts;
};

struct firefox {
	struct export_tree tree;
	const struct trace_dictionary *dictionary;
	struct heap_range range;
	struct json json;
	struct intern strings, functions, sources;
	uint32_t *function_of;                /* by frame */
	const struct export_frame **frame_of; /* by function: one of its frames */
	struct firefox_event *events;
	size_t event_count, event_capacity;
	uint32_t *main_threads; /* by process: a thread of the trace; TRACE_NONE: it has none */
	bool is_summed;
	int64_t slice; /* of the sums */
	struct firefox_sum *sums;
	size_t sum_count, sum_capacity;
	struct map sum_of;              /* (process, stack) -> place in sums */
	struct process_rows by_process; /* events */
	struct summary summary;         /* has the findings */
	uint32_t first_process;         /* that has a thread */
};

/* ---- numbers ---- */

static void put_ms(struct json *json, const char *key, int64_t time_ns)
{
	char text[DIGITS_BYTES + 3], *end = text + sizeof(text) - 1;
	const uint64_t time = time_ns > 0 ? (uint64_t)time_ns : 0;
	*end = 0;
	/* A digit before the fraction keeps its zeros. */
	char *begin = digits_before(end, NS_PER_MS + time % NS_PER_MS);
	*begin = '.';
	json_literal(json, key, digits_before(begin, time / NS_PER_MS));
}

static uint32_t string_of(struct firefox *fox, const char *text)
{
	return intern_text(&fox->strings, text);
}

/* The values of a column go around the writer of JSON: there are millions. */
static void value_put(struct json *json, size_t row, int64_t value)
{
	char text[DIGITS_BYTES + 2], *end = text + sizeof(text);
	char *begin = digits_before(end, value < 0 ? -(uint64_t)value : (uint64_t)value);
	if (value < 0)
		*--begin = '-';
	if (row)
		*--begin = ',';
	sink_bytes(json->out, begin, (size_t)(end - begin));
}

/* A time is in milliseconds, with a fraction. */
static void time_put(struct json *json, size_t row, int64_t time_ns)
{
	char text[DIGITS_BYTES + 3], *end = text + sizeof(text);
	const uint64_t time = time_ns > 0 ? (uint64_t)time_ns : 0;
	/* A digit before the fraction keeps its zeros. */
	char *begin = digits_before(end, NS_PER_MS + time % NS_PER_MS);
	*begin = '.';
	begin = digits_before(begin, time / NS_PER_MS);
	if (row)
		*--begin = ',';
	sink_bytes(json->out, begin, (size_t)(end - begin));
}

/* A column of `count` rows, whose values are an expression of i. */
#define COLUMN_BY(put, json, key, count, value) \
	do { \
		json_begin_array((json), (key)); \
		for (size_t i = 0; i < (count); i++) \
			put((json), i, (int64_t)(value)); \
		json_end_array((json)); \
	} while (0)
#define COLUMN(json, key, count, value) COLUMN_BY(value_put, json, key, count, value)
#define TIMES(json, key, count, value) COLUMN_BY(time_put, json, key, count, value)

/* A column that says the same of every row. */
static void repeat(struct json *json, const char *key, const char *literal, size_t count)
{
	json_begin_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_literal(json, NULL, literal);
	json_end_array(json);
}

/* ---- events ---- */

static uint32_t process_of(const struct firefox *fox, uint32_t thread)
{
	return fox->dictionary->threads[thread].process;
}

static void event_add(struct firefox *fox, const struct firefox_event *event)
{
	memory_grow(fox->events, fox->event_count, fox->event_capacity);
	fox->events[fox->event_count++] = *event;
}

static void sums_flush(struct firefox *fox)
{
	const int64_t width_ns = (fox->range.to_ns - fox->range.from_ns) / SLICES + 1;
	const int64_t time_ns = fox->range.from_ns + fox->slice * width_ns;
	for (size_t i = 0; i < fox->sum_count; i++) {
		const struct firefox_sum *sum = &fox->sums[i];
		const uint32_t thread = fox->main_threads[sum->process];
		if (sum->begun)
			event_add(fox, &(struct firefox_event){time_ns, (int64_t)sum->begun, 0, sum->stack, thread});
		if (sum->ended)
			event_add(fox, &(struct firefox_event){time_ns, -(int64_t)sum->ended, 0, sum->stack, thread});
	}
	fox->sum_count = 0;
	map_fini(&fox->sum_of);
}

static struct firefox_sum *sum_of(struct firefox *fox, int64_t time_ns, uint32_t process, uint32_t stack)
{
	const int64_t width_ns = (fox->range.to_ns - fox->range.from_ns) / SLICES + 1;
	const int64_t slice = (time_ns - fox->range.from_ns) / width_ns;
	bool added;
	if (slice != fox->slice)
		sums_flush(fox);
	fox->slice = slice;
	uint32_t *place = map_add(&fox->sum_of, map_pair(process, stack), &added);
	if (added) {
		*place = (uint32_t)fox->sum_count;
		memory_grow(fox->sums, fox->sum_count, fox->sum_capacity);
		fox->sums[fox->sum_count++] = (struct firefox_sum){0, 0, process, stack};
	}
	return &fox->sums[*place];
}

/* Return the thread that allocated: at the end of a block its thread may be unknown, and its process is the same. */
static uint32_t begin_add(void *context, const struct export_block *block)
{
	struct firefox *fox = context;
	if (fox->is_summed)
		sum_of(fox, block->birth_ns, process_of(fox, block->thread), block->node)->begun += block->size_bytes;
	else
		event_add(fox, &(struct firefox_event){block->birth_ns, (int64_t)block->size_bytes, block->address,
						       block->node, block->thread});
	return block->thread;
}

static void end_add(void *context, const struct export_block *block, uint32_t thread)
{
	struct firefox *fox = context;
	if (fox->is_summed)
		sum_of(fox, block->end_ns, process_of(fox, thread), block->end_node)->ended += block->size_bytes;
	else
		event_add(fox, &(struct firefox_event){
				       block->end_ns, -(int64_t)block->size_bytes, block->address, block->end_node,
				       block->thread < fox->dictionary->thread_count ? block->thread : thread});
}

static struct process_rows process_rows_make(const struct firefox *fox, size_t count,
					     uint32_t (*process)(const struct firefox *fox, size_t row))
{
	const size_t processes = fox->dictionary->process_count;
	struct process_rows groups = {.order = memory_resize(NULL, count + 1, sizeof(*groups.order)),
				      .firsts = memory_zeroed(processes + 2, sizeof(*groups.firsts))};
	for (size_t i = 0; i < count; i++)
		groups.firsts[process(fox, i) + 2]++;
	for (size_t i = 2; i < processes + 2; i++)
		groups.firsts[i] += groups.firsts[i - 1];
	for (size_t i = 0; i < count; i++)
		groups.order[groups.firsts[process(fox, i) + 1]++] = (uint32_t)i;
	return groups;
}

static uint32_t process_of_event(const struct firefox *fox, size_t row)
{
	return process_of(fox, fox->events[row].thread);
}

static uint32_t process_of_sample(const struct firefox *fox, size_t row)
{
	return fox->dictionary->samples[row].process;
}

static void process_rows_fini(struct process_rows *groups)
{
	free(groups->order);
	free(groups->firsts);
}

/* ---- what all threads share ---- */

static void functions_find(struct firefox *fox)
{
	const struct export_tree *tree = &fox->tree;
	fox->function_of = memory_zeroed(tree->frame_count, sizeof(*fox->function_of));
	fox->frame_of = memory_zeroed(tree->frame_count, sizeof(*fox->frame_of));
	for (uint32_t i = 1; i < tree->frame_count; i++) {
		const struct export_frame *frame = &tree->frames[i];
		/* Equal texts of a tree are one text. */
		const void *key[] = {frame->text, frame->image, frame->source};
		fox->function_of[i] = intern_bytes(&fox->functions, key, sizeof(key));
		fox->frame_of[fox->function_of[i]] = frame;
	}
}

static void stacks_write(struct firefox *fox)
{
	const struct export_tree *tree = &fox->tree;
	const struct export_node *nodes = tree->nodes + 1;
	const size_t count = tree->node_count - 1;
	json_begin_object(&fox->json, "stackTable");
	COLUMN(&fox->json, "frame", count, nodes[i].frame - 1);
	COLUMN(&fox->json, "prefixOffset", count, nodes[i].parent ? i + 1 - nodes[i].parent : 0);
	json_count(&fox->json, "length", count);
	json_end_object(&fox->json);
}

/* Inlined functions lie one deeper than the function around them. */
static void frames_write(struct firefox *fox)
{
	const struct export_frame *frames = fox->tree.frames + 1;
	const size_t count = fox->tree.frame_count - 1;
	struct json *json = &fox->json;
	json_begin_object(json, "frameTable");
	COLUMN(json, "address", count, frames[i].offset && frames[i].file ? (int64_t)frames[i].offset : -1);
	COLUMN(json, "lib", count, frames[i].file ? (int64_t)frames[i].image_id : -1);
	COLUMN(json, "inlineDepth", count, frames[i].is_inlined);
	COLUMN(json, "category", count, 0);
	COLUMN(json, "subcategory", count, 0);
	COLUMN(json, "func", count, fox->function_of[i + 1]);
	repeat(json, "nativeSymbol", "null", count);
	COLUMN(json, "innerWindowID", count, 0);
	json_begin_array(json, "line");
	for (size_t i = 0; i < count; i++)
		if (frames[i].line)
			json_count(json, NULL, frames[i].line);
		else
			json_literal(json, NULL, "null");
	json_end_array(json);
	repeat(json, "column", "null", count);
	repeat(json, "originalLocation", "null", count);
	json_count(json, "length", count);
	json_end_object(json);
}

static void functions_write(struct firefox *fox)
{
	const size_t count = fox->functions.count;
	struct json *json = &fox->json;
	json_begin_object(json, "funcTable");
	repeat(json, "isJS", "false", count);
	repeat(json, "relevantForJS", "false", count);
	COLUMN(json, "name", count, string_of(fox, fox->frame_of[i]->text));
	COLUMN(json, "resource", count, fox->frame_of[i]->file ? (int64_t)fox->frame_of[i]->image_id : INT64_C(-1));
	json_begin_array(json, "source");
	for (size_t i = 0; i < count; i++)
		if (*fox->frame_of[i]->source)
			json_count(json, NULL, intern_text(&fox->sources, fox->frame_of[i]->source));
		else
			json_literal(json, NULL, "null");
	json_end_array(json);
	repeat(json, "lineNumber", "null", count);
	repeat(json, "columnNumber", "null", count);
	repeat(json, "originalLocation", "null", count);
	json_count(json, "length", count);
	json_end_object(json);
}

/* A resource is an image: it has the number of its library. */
static void resources_write(struct firefox *fox)
{
	const struct trace_dictionary *dictionary = fox->dictionary;
	struct json *json = &fox->json;
	json_begin_object(json, "resourceTable");
	COLUMN(json, "name", dictionary->image_count,
	       string_of(fox, text_shown(text_file_name(dictionary->images[i].path))));
	repeat(json, "host", "null", dictionary->image_count);
	COLUMN(json, "type", dictionary->image_count, RESOURCE_LIBRARY);
	json_count(json, "length", dictionary->image_count);
	json_end_object(json);
}

static void sources_write(struct firefox *fox)
{
	const size_t count = fox->sources.count;
	struct json *json = &fox->json;
	json_begin_object(json, "sources");
	repeat(json, "id", "null", count);
	COLUMN(json, "filename", count, string_of(fox, fox->sources.items[i].data));
	COLUMN(json, "startLine", count, 1);
	COLUMN(json, "startColumn", count, 1);
	repeat(json, "sourceMapURL", "null", count);
	repeat(json, "content", "null", count);
	json_count(json, "length", count);
	json_end_object(json);
}

/* Strings come last: the other tables find them. */
static void shared_write(struct firefox *fox)
{
	static const char *const none[] = {"nativeSymbols", "sourceLocationTable"};
	static const char *const columns[][6] = {{"libIndex", "address", "name", "functionSize", NULL},
						 {"source", "line", "column", NULL}};
	struct json *json = &fox->json;
	json_begin_object(json, "shared");
	stacks_write(fox);
	frames_write(fox);
	functions_write(fox);
	resources_write(fox);
	sources_write(fox);
	for (unsigned i = 0; i < 2; i++) {
		json_begin_object(json, none[i]);
		for (const char *const *column = columns[i]; *column; column++)
			repeat(json, *column, "null", 0);
		json_count(json, "length", 0);
		json_end_object(json);
	}
	json_begin_array(json, "stringArray");
	for (uint32_t i = 0; i < fox->strings.count; i++)
		json_text(json, NULL, fox->strings.items[i].data);
	json_end_array(json);
	json_end_object(json);
}

/* ---- threads ---- */

/* The images of one pid are processes of their own. */
static void pid_write(struct json *json, const struct trace_process *process)
{
	char pid[40];
	snprintf(pid, sizeof(pid), process->exec_generation ? "%" PRIu32 ".%" PRIu32 : "%" PRIu32, process->pid,
		 process->exec_generation);
	json_text(json, "pid", pid);
}

static void no_samples_write(struct firefox *fox)
{
	struct json *json = &fox->json;
	/* Views want a time that is not empty. */
	json_begin_object(json, "samples");
	repeat(json, "stack", "null", 2);
	TIMES(json, "time", 2, i ? fox->range.to_ns : fox->range.from_ns);
	json_literal(json, "weight", "null");
	json_text(json, "weightType", "samples");
	json_count(json, "length", 2);
	json_end_object(json);
}

/* A marker: the life of a process, with its command line, or a finding. */
struct firefox_marker {
	const char *name;
	struct heap_range time; /* a moment: both are it */
	const struct trace_process *process;
	const struct summary_finding *finding; /* NULL: it is the process */
};

static void marker_data(struct json *json, const struct firefox_marker *marker)
{
	const struct summary_finding *finding = marker->finding;
	json_begin_object(json, NULL);
	json_text(json, "type", finding ? "Finding" : "Process");
	if (finding) {
		json_text(json, "text", text_shown(finding->text));
		json_text(json, "command", text_shown(finding->command));
	} else {
		json_text(json, "command", marker->process->command ? text_shown(marker->process->command) : "");
		json_text(json, "end", trace_end_word(marker->process));
	}
	json_end_object(json);
}

/* The markers of a process, whose main thread has them; findings about all are the first process's. */
static size_t markers_find(const struct firefox *fox, uint32_t number, struct firefox_marker *markers)
{
	const struct trace_process *process = &fox->dictionary->processes[number];
	const int64_t end_ns = trace_process_end_is_known(process) ? process->end_ns : fox->dictionary->duration_ns;
	size_t count = 0;
	markers[count++] = (struct firefox_marker){"process", {process->start_ns, end_ns}, process, NULL};
	for (unsigned i = 0; i < fox->summary.finding_count; i++) {
		const struct summary_finding *finding = &fox->summary.findings[i];
		const uint32_t of = finding->process == TRACE_NONE ? fox->first_process : finding->process;
		if (of == number)
			markers[count++] = (struct firefox_marker){"finding", finding->time, process, finding};
	}
	return count;
}

/* `process`: of a main thread; else TRACE_NONE. */
static void markers_write(struct firefox *fox, uint32_t process)
{
	struct json *json = &fox->json;
	struct firefox_marker markers[1 + SUMMARY_FINDINGS];
	const size_t count = process == TRACE_NONE ? 0 : markers_find(fox, process, markers);
	json_begin_object(json, "markers");
	json_begin_array(json, "data");
	for (size_t i = 0; i < count; i++)
		marker_data(json, &markers[i]);
	json_end_array(json);
	COLUMN(json, "name", count, string_of(fox, markers[i].name));
	TIMES(json, "startTime", count, markers[i].time.from_ns);
	json_begin_array(json, "endTime");
	for (size_t i = 0; i < count; i++)
		if (markers[i].time.to_ns > markers[i].time.from_ns)
			put_ms(json, NULL, markers[i].time.to_ns);
		else
			json_literal(json, NULL, "null");
	json_end_array(json);
	COLUMN(json, "phase", count,
	       markers[i].time.to_ns > markers[i].time.from_ns ? MARKER_INTERVAL : MARKER_INSTANT);
	COLUMN(json, "category", count, 0);
	json_count(json, "length", count);
	json_end_object(json);
}

static void allocations_write(struct firefox *fox, uint32_t process)
{
	struct json *json = &fox->json;
	const uint32_t *order = fox->by_process.order + fox->by_process.firsts[process];
	const size_t count = fox->by_process.firsts[process + 1] - fox->by_process.firsts[process];
	const struct firefox_event *events = fox->events;
	json_begin_object(json, "nativeAllocations");
	TIMES(json, "time", count, events[order[i]].time_ns);
	COLUMN(json, "weight", count, events[order[i]].weight);
	json_text(json, "weightType", "bytes");
	COLUMN(json, "stack", count, events[order[i]].stack - 1);
	if (!fox->is_summed) {
		COLUMN(json, "memoryAddress", count, events[order[i]].address);
		COLUMN(json, "threadId", count, fox->dictionary->threads[events[order[i]].thread].tid);
	}
	json_count(json, "length", count);
	json_end_object(json);
}

static void thread_write(struct firefox *fox, uint32_t number)
{
	const struct trace_thread *thread = &fox->dictionary->threads[number];
	const struct trace_process *process = &fox->dictionary->processes[thread->process];
	const bool is_main = fox->main_threads[thread->process] == number;
	struct json *json = &fox->json;
	json_begin_object(json, NULL);
	json_text(json, "processType", "default");
	json_text(json, "processName", process->image ? text_shown(text_file_name(process->image)) : "");
	json_text(json, "name", is_main ? "GeckoMain" : *thread->name ? text_shown(thread->name) : "thread");
	json_bool(json, "isMainThread", is_main);
	pid_write(json, process);
	json_count(json, "tid", thread->tid);
	put_ms(json, "processStartupTime", process->start_ns);
	json_literal(json, "processShutdownTime", "null");
	put_ms(json, "registerTime", thread->start_ns);
	json_literal(json, "unregisterTime", "null");
	repeat(json, "pausedRanges", "null", 0);
	no_samples_write(fox);
	markers_write(fox, is_main ? thread->process : TRACE_NONE);
	if (is_main)
		allocations_write(fox, thread->process);
	json_end_object(json);
}

/* A process has its main thread, or else the first one that called. */
static void main_threads_find(struct firefox *fox)
{
	const struct trace_dictionary *dictionary = fox->dictionary;
	fox->main_threads = memory_resize(NULL, (size_t)dictionary->process_count + 1, sizeof(*fox->main_threads));
	memset(fox->main_threads, 0xff, dictionary->process_count * sizeof(*fox->main_threads));
	for (uint32_t i = dictionary->thread_count; i-- > 0;) {
		uint32_t *main_thread = &fox->main_threads[dictionary->threads[i].process];
		const bool is_main =
			dictionary->threads[i].tid == dictionary->processes[dictionary->threads[i].process].pid;
		const bool has_main =
			*main_thread != TRACE_NONE && dictionary->threads[*main_thread].tid ==
							      dictionary->processes[dictionary->threads[i].process].pid;
		if (is_main || !has_main)
			*main_thread = i;
	}
}

/* ---- counters ---- */

static void counter_begin(struct firefox *fox, const char *name, const char *description, uint32_t process)
{
	struct json *json = &fox->json;
	json_begin_object(json, NULL);
	json_text(json, "name", name);
	json_text(json, "category", "Memory");
	json_text(json, "description", description);
	pid_write(json, &fox->dictionary->processes[process]);
	json_count(json, "mainThreadIndex", fox->main_threads[process]);
	json_begin_object(json, "display");
	json_text(json, "graphType", "line-accumulated");
	json_text(json, "unit", "bytes");
	json_text(json, "color", "orange");
	json_text(json, "markerSchemaLocation", "timeline-memory");
	json_count(json, "sortWeight", 20);
	json_text(json, "label", description);
	repeat(json, "tooltipRows", "null", 0);
	json_end_object(json);
	json_begin_object(json, "samples");
}

static void counter_end(struct firefox *fox, size_t count)
{
	json_count(&fox->json, "length", count);
	json_end_object(&fox->json);
	json_end_object(&fox->json);
}

/* Changes of a number at some times. */
struct firefox_change {
	int64_t time_ns, bytes;
};

static void counter_write(struct firefox *fox, const char *name, const char *description, uint32_t process,
			  const struct firefox_change *changes, size_t count)
{
	if (!count)
		return;
	counter_begin(fox, name, description, process);
	TIMES(&fox->json, "time", count, changes[i].time_ns);
	COLUMN(&fox->json, "count", count, changes[i].bytes);
	counter_end(fox, count);
}

/* The curve of live bytes has a point for each slice with a change. */
static void live_write(struct firefox *fox, uint32_t process)
{
	const int64_t width_ns = (fox->range.to_ns - fox->range.from_ns) / SLICES_OF_LIVE + 1;
	struct firefox_change *changes = memory_zeroed(SLICES_OF_LIVE + 1, sizeof(*changes));
	size_t count = 0;
	for (uint32_t i = fox->by_process.firsts[process]; i < fox->by_process.firsts[process + 1]; i++) {
		const struct firefox_event *event = &fox->events[fox->by_process.order[i]];
		const int64_t slice = (event->time_ns - fox->range.from_ns) / width_ns;
		const int64_t time_ns = fox->range.from_ns + slice * width_ns;
		if (!count || changes[count - 1].time_ns != time_ns)
			changes[count++] = (struct firefox_change){time_ns, 0};
		changes[count - 1].bytes += event->weight;
	}
	counter_write(fox, "malloc", "live bytes", process, changes, count);
	free(changes);
}

/* Samples of a process are in the order of time. */
static void resident_write(struct firefox *fox, uint32_t process, const uint32_t *samples, size_t count)
{
	struct firefox_change *changes = memory_resize(NULL, count + 1, sizeof(*changes));
	uint64_t before = 0;
	for (size_t i = 0; i < count; i++) {
		const struct trace_sample *sample = &fox->dictionary->samples[samples[i]];
		changes[i] = (struct firefox_change){sample->time_ns, (int64_t)(sample->resident_bytes - before)};
		before = sample->resident_bytes;
	}
	counter_write(fox, "resident", "resident memory", process, changes, count);
	free(changes);
}

static void counters_write(struct firefox *fox)
{
	const struct trace_dictionary *dictionary = fox->dictionary;
	struct process_rows samples = process_rows_make(fox, dictionary->sample_count, process_of_sample);
	json_begin_array(&fox->json, "counters");
	for (uint32_t process = 0; process < dictionary->process_count; process++) {
		if (fox->main_threads[process] == TRACE_NONE)
			continue;
		live_write(fox, process);
		resident_write(fox, process, samples.order + samples.firsts[process],
			       samples.firsts[process + 1] - samples.firsts[process]);
	}
	json_end_array(&fox->json);
	process_rows_fini(&samples);
}

/* ---- the file ---- */

static void meta_write(struct firefox *fox)
{
	struct json *json = &fox->json;
	json_begin_object(json, "meta");
	json_count(json, "version", GECKO_VERSION);
	json_count(json, "preprocessedProfileVersion", PROFILE_VERSION);
	json_count(json, "interval", 1);
	put_ms(json, "startTime", fox->dictionary->start_realtime_ns);
	json_count(json, "processType", 0);
	json_text(json, "product", export_command(&fox->tree));
	json_text(json, "importedFrom", "xheap");
	json_count(json, "stackwalk", 1);
	json_bool(json, "debug", false);
	json_bool(json, "symbolicated", true);
	json_literal(json, "categories",
		     "[{\"name\": \"Other\", \"color\": \"grey\", \"subcategories\": [\"Other\"]}]");
	json_literal(json, "markerSchema",
		     "[{\"name\": \"Process\", \"display\": [\"marker-chart\", \"marker-table\"], \"tableLabel\": "
		     "\"{marker.data.command}\", \"fields\": [{\"key\": \"command\", \"label\": \"Command\", "
		     "\"format\": \"string\"}, {\"key\": \"end\", \"label\": \"End\", \"format\": \"string\"}]}, "
		     "{\"name\": \"Finding\", \"display\": [\"marker-chart\", \"marker-table\"], \"tableLabel\": "
		     "\"{marker.data.text}\", \"fields\": [{\"key\": \"text\", \"label\": \"Finding\", \"format\": "
		     "\"string\"}, {\"key\": \"command\", \"label\": \"Evidence\", \"format\": \"string\"}]}]");
	json_end_object(json);
}

static void images_write(struct firefox *fox)
{
	struct json *json = &fox->json;
	json_begin_array(json, "libs");
	for (uint32_t i = 0; i < fox->dictionary->image_count; i++) {
		const struct trace_image *image = &fox->dictionary->images[i];
		const char *path = text_shown(image->path), *name = text_file_name(path);
		json_begin_object(json, NULL);
		json_text(json, "arch", "x86_64");
		json_text(json, "name", name);
		json_text(json, "path", path);
		json_text(json, "debugName", name);
		json_text(json, "debugPath", path);
		json_text(json, "breakpadId", "");
		json_bytes(json, "codeId", image->build_id, image->build_id_size);
		json_end_object(json);
	}
	json_end_array(json);
}

static void profile_write(struct firefox *fox)
{
	json_begin_object(&fox->json, NULL);
	meta_write(fox);
	images_write(fox);
	counters_write(fox);
	json_begin_array(&fox->json, "threads");
	for (uint32_t i = 0; i < fox->dictionary->thread_count; i++)
		thread_write(fox, i);
	json_end_array(&fox->json);
	shared_write(fox);
	json_end_object(&fox->json);
	json_end(&fox->json);
}

static void findings_make(struct firefox *fox, const struct report *report)
{
	const struct summary_plan plan = {.short_ns = SUMMARY_SHORT_NS,
					  .top = 1,
					  .filters = report->filters,
					  .filter_count = report->filter_count,
					  .has_range = report->has_range,
					  .is_filtered = report->filter_count > 0,
					  .is_screen = true};
	summary_make(&fox->summary, report->diff.input, &plan);
	while (fox->first_process < fox->dictionary->process_count &&
	       fox->main_threads[fox->first_process] == TRACE_NONE)
		fox->first_process++;
}

void export_firefox(const struct report *report, struct sink *out)
{
	const struct action_source *source = report_source(report);
	struct firefox fox = {.dictionary = trace_dictionary(source->trace),
			      .range = source->window->range,
			      .json = {.out = out, .line_depth = LINE_DEPTH},
			      .is_summed = source->window->totals.total_count > EXPORT_BLOCKS_MAX};
	const struct export_block_visit visit = {
		.begin = begin_add, .end = end_add, .context = &fox, .wants_details = true};
	/* Stacks of frees are in no report. */
	heap_names_name_sites(source->names, source->table);
	heap_names_shorten(source->names);
	export_tree_make(&fox.tree, report);
	main_threads_find(&fox);
	findings_make(&fox, report);
	if (!fox.is_summed) {
		/* A begin and an end of each at most. */
		fox.event_capacity = 2 * source->window->totals.total_count;
		fox.events = memory_resize(NULL, fox.event_capacity, sizeof(*fox.events));
	}
	export_blocks_visit(&fox.tree, &visit, out);
	functions_find(&fox);
	sums_flush(&fox);
	fox.by_process = process_rows_make(&fox, fox.event_count, process_of_event);
	profile_write(&fox);
	summary_fini(&fox.summary);
	export_tree_fini(&fox.tree);
	process_rows_fini(&fox.by_process);
	intern_fini(&fox.strings);
	intern_fini(&fox.functions);
	intern_fini(&fox.sources);
	free(fox.function_of);
	free(fox.frame_of);
	free(fox.events);
	free(fox.main_threads);
	free(fox.sums);
}
