/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "match/match.h"
#include "table/table_valid.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

static struct diag diag;

static void check(int error)
{
	if (!error)
		return;
	fprintf(stderr, "scene: %s\n", diag.text);
	exit(99);
}

static const struct {
	const char *name;
	uint8_t kind;
} functions[] = {
#define X(id, name, kind, parameters) {name, EVENT_##kind},
	HEAP_FUNCTIONS(X)
#undef X
};

static void entry_add(struct scene *scene, uint32_t function)
{
	scene->entries[function] = writer_add_entry(
		scene->writer, &(struct trace_entry){scene->library, (uint8_t)function, functions[function].name});
}

void scene_open(struct scene *scene, const char *path)
{
	scene_open_as(scene, path, NULL);
}

void scene_open_as(struct scene *scene, const char *path, const struct writer_options *options)
{
	static const uint8_t build_id[] = {0xab, 0xcd, 0xef, 0x01};
	struct writer_clock clock = {.name = "tsc", .mult = 1, .start_realtime_ns = 1700000000000000000};
	*scene = (struct scene){.function = FUNCTION_COUNT};
	check(writer_open(&scene->writer, path, options, &diag));
	writer_set_clock(scene->writer, &clock);
	writer_set_host(scene->writer, "host Linux 6.1 x86_64");
	writer_add_option(scene->writer, "stackwalk", "all");
	scene->image = writer_add_image(scene->writer, &(struct trace_image){"/bin/app", build_id, sizeof(build_id)});
	scene->library = writer_add_image(scene->writer, &(struct trace_image){"/lib/libc.so.6", NULL, 0});
	/* Where a program tells of heaps of its own, it is matched in another way: those functions are there when they
	   are called. */
	for (uint32_t i = 0; i < FUNCTION_FIRST_ANNOTATION; i++)
		entry_add(scene, i);
}

uint32_t scene_process(struct scene *scene, uint32_t pid, uint32_t forked_from, int64_t start_ns)
{
	struct trace_process process = {.pid = pid,
					.parent = forked_from,
					.forked_from = forked_from,
					.start_ns = start_ns,
					.end_ns = INT64_MAX,
					.end = TRACE_END_OPEN,
					.image = "/bin/app",
					.command = "app --test",
					.note = ""};
	uint32_t id = writer_add_process(scene->writer, &process);
	scene->processes[id] = process;
	writer_add_mapping(scene->writer, &(struct trace_mapping){.process = id,
								  .image = scene->image,
								  .base = 0x400000,
								  .end = 0x500000,
								  .bias = 0x400000,
								  .load_ns = start_ns,
								  .unload_ns = INT64_MAX});
	if (!id)
		scene->heap = writer_add_heap(
			scene->writer,
			&(struct trace_heap){.process = id, .handle = 0x7f0000001000, .name = "main arena"});
	return id;
}

void scene_end(struct scene *scene, uint32_t process, int64_t end_ns, uint8_t end, int32_t status)
{
	scene->processes[process].end_ns = end_ns;
	scene->processes[process].end = end;
	scene->processes[process].end_status = status;
	writer_update_process(scene->writer, process, &scene->processes[process]);
}

uint32_t scene_thread(struct scene *scene, uint32_t process, uint32_t tid)
{
	struct trace_thread thread = {.process = process, .tid = tid, .end_ns = INT64_MAX, .name = "worker"};
	uint32_t id = writer_add_thread(scene->writer, &thread);
	scene->events[id].process = process;
	scene->events[id].thread = id;
	scene->thread_count = id + 1;
	return id;
}

uint32_t scene_stack(struct scene *scene, ...)
{
	va_list arguments;
	uint32_t node = 0;
	va_start(arguments, scene);
	for (int offset; (offset = va_arg(arguments, int));)
		node = writer_intern_node(scene->writer, node,
					  writer_intern_frame(scene->writer, scene->image, (uint64_t)offset));
	va_end(arguments);
	return node;
}

static struct writer_events *event_add(struct scene *scene, uint32_t thread, uint8_t kind, int64_t time_ns)
{
	static const uint8_t by_kind[] = {[EVENT_ALLOC] = FUNCTION_MALLOC,
					  [EVENT_REALLOC] = FUNCTION_REALLOC,
					  [EVENT_FREE] = FUNCTION_FREE,
					  [EVENT_EARLIER] = FUNCTION_MALLOC};
	struct writer_events *events = &scene->events[thread];
	check(writer_events_reserve(events, 1));
	uint32_t i = events->count++;
	uint32_t function = scene->function < FUNCTION_COUNT ? scene->function
			    : kind < sizeof(by_kind)         ? by_kind[kind]
							     : FUNCTION_FREE;
	if (function >= FUNCTION_FIRST_ANNOTATION)
		entry_add(scene, function);
	events->kind[i] = kind;
	events->flags[i] = scene->flags | (scene->stack ? 0 : EVENT_NO_STACK);
	events->entry[i] = (uint16_t)scene->entries[function];
	events->heap[i] = scene->heap;
	events->stack[i] = scene->stack;
	events->time[i] = (uint64_t)time_ns;
	events->duration[i] = events->address[i] = events->previous[i] = events->size[i] = events->usable[i] = 0;
	events->argument[i] = events->argument2[i] = 0;
	events->result[i] = scene->flags & EVENT_FAILED ? 12 : 0;
	scene->flags = 0;
	return events;
}

void scene_alloc(struct scene *scene, uint32_t thread, int64_t time_ns, uint64_t address, uint64_t size)
{
	struct writer_events *events = event_add(scene, thread, EVENT_ALLOC, time_ns);
	uint32_t i = events->count - 1;
	events->address[i] = address;
	events->size[i] = size;
	events->usable[i] = address ? (size + 7) / 8 * 8 : 0;
}

void scene_context(struct scene *scene, uint32_t thread, uint64_t trace_id, uint64_t span_id)
{
	struct writer_events *events = &scene->events[thread];
	check(writer_events_set_context(events, events->count, &(struct thread_context){{0, trace_id}, span_id}));
}

void scene_free(struct scene *scene, uint32_t thread, int64_t time_ns, uint64_t address)
{
	struct writer_events *events = event_add(scene, thread, EVENT_FREE, time_ns);
	events->address[events->count - 1] = address;
}

void scene_realloc(struct scene *scene, uint32_t thread, int64_t from_ns, int64_t to_ns, uint64_t previous,
		   uint64_t address, uint64_t size)
{
	struct writer_events *events = event_add(scene, thread, EVENT_REALLOC, to_ns);
	uint32_t i = events->count - 1;
	events->duration[i] = (uint64_t)(to_ns - from_ns);
	events->previous[i] = previous;
	events->address[i] = address;
	events->size[i] = size;
}

void scene_earlier(struct scene *scene, uint32_t thread, int64_t time_ns, uint64_t address, uint64_t size)
{
	struct writer_events *events = event_add(scene, thread, EVENT_EARLIER, time_ns);
	uint32_t i = events->count - 1;
	events->address[i] = address;
	events->size[i] = events->usable[i] = size;
	events->duration[i] = (uint64_t)time_ns;
}

void scene_lasted(struct scene *scene, uint32_t thread, int64_t duration_ns)
{
	struct writer_events *events = &scene->events[thread];
	events->duration[events->count - 1] = (uint64_t)duration_ns;
}

void scene_measure(struct scene *scene, uint32_t thread, uint64_t usable)
{
	struct writer_events *events = &scene->events[thread];
	uint32_t i = events->count - 1;
	(events->kind[i] == EVENT_FREE ? events->usable : events->argument2)[i] = usable;
}

void scene_event(struct scene *scene, uint32_t thread, uint8_t kind, int64_t time_ns)
{
	event_add(scene, thread, kind, time_ns);
}

void scene_gap(struct scene *scene, uint32_t process, uint32_t thread, int64_t from_ns, int64_t to_ns, uint64_t frees)
{
	struct trace_gap gap = {.process = process, .thread = thread, .from_ns = from_ns, .to_ns = to_ns};
	gap.count[EVENT_FREE] = frees;
	writer_add_gap(scene->writer, &gap);
}

void scene_block(struct scene *scene, uint32_t thread)
{
	struct writer_events *events = &scene->events[thread];
	if (!events->count)
		return;
	events->first_sequence = 1;
	events->last_sequence = 0;
	check(writer_write_events(scene->writer, events, &diag));
	events->count = 0;
}

void scene_close(struct scene *scene)
{
	struct trace_statistics statistics = {
		.waits = 2, .wait_ns = 1500, .logger_cpu_ns = 2000000, .buffers_written = 3, .buffer_size = 65536};
	for (uint32_t i = 0; i < scene->thread_count; i++) {
		scene_block(scene, i);
		writer_events_fini(&scene->events[i]);
	}
	check(writer_close(scene->writer, &statistics, &diag));
}

struct trace *scene_read(struct scene *scene, const char *path)
{
	struct trace *trace;
	scene_close(scene);
	check(trace_open(&trace, path, &diag));
	return trace;
}

struct heap_table *scene_match(struct trace *trace)
{
	struct heap_table *table;
	check(heap_table_build(&table, trace, NULL, &diag));
	check(heap_table_is_valid(table) ? 0 : diag_fail(&diag, EINVAL, "the table of the scene is not valid"));
	return table;
}

void scene_remove(const char *path, struct trace *trace, struct heap_table *table)
{
	heap_table_free(table);
	trace_close(trace);
	unlink(path);
}
