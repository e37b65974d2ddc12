/* SPDX-License-Identifier: MIT */
/** Traces with known events, written as the logger writes them: one tick of the clock is a nanosecond. */
#ifndef XHEAP_TESTS_SCENE_H
#define XHEAP_TESTS_SCENE_H

#include "trace/process_rows.h"
#include "trace/writer.h"

struct heap_table;
struct trace;

enum { SCENE_THREADS = 64, SCENE_STACK_MAX = 16 };

struct scene {
	struct writer *writer;
	struct writer_events events[SCENE_THREADS]; /* by thread id */
	struct trace_process processes[SCENE_THREADS];
	uint32_t thread_count;
	uint32_t image, library;          /* "/bin/app", "/lib/libc.so.6" */
	uint32_t entries[FUNCTION_COUNT]; /* entries of the library */
	uint32_t heap;
	uint32_t function; /* of the next events: enum heap_function; FUNCTION_COUNT: by kind */
	uint32_t stack;    /* of the next events */
	uint8_t flags;     /* of the next event only */
};

/** Begin a trace at path. Any failure ends the program. */
void scene_open(struct scene *scene, const char *path);

/** As scene_open(), with options of the writer; NULL: the usual ones. */
void scene_open_as(struct scene *scene, const char *path, const struct writer_options *options);

/** A process that starts at a time, forked from another or TRACE_NONE; its id. It runs until scene_end(). */
uint32_t scene_process(struct scene *scene, uint32_t pid, uint32_t forked_from, int64_t start_ns);

/** The process ends: enum trace_end. */
void scene_end(struct scene *scene, uint32_t process, int64_t end_ns, uint8_t end, int32_t status);

/** A thread; its id. */
uint32_t scene_thread(struct scene *scene, uint32_t process, uint32_t tid);

/** A stack of the app's code: offsets from the outermost to the innermost, ended by 0. */
uint32_t scene_stack(struct scene *scene, ...);

void scene_alloc(struct scene *scene, uint32_t thread, int64_t time_ns, uint64_t address, uint64_t size);
void scene_free(struct scene *scene, uint32_t thread, int64_t time_ns, uint64_t address);

/** From its entry to its return. */
void scene_realloc(struct scene *scene, uint32_t thread, int64_t from_ns, int64_t to_ns, uint64_t previous,
		   uint64_t address, uint64_t size);

/** A block from before an attach, as found then by a reading that began at 0. */
void scene_earlier(struct scene *scene, uint32_t thread, int64_t time_ns, uint64_t address, uint64_t size);

/** How long the thread's last event took, which is not a ReAlloc. */
void scene_lasted(struct scene *scene, uint32_t thread, int64_t duration_ns);

/** What the thread's last event, a Free or a ReAlloc, says that its block had. */
void scene_measure(struct scene *scene, uint32_t thread, uint64_t usable);

/** The thread has this context from its next event on; both 0: none. */
void scene_context(struct scene *scene, uint32_t thread, uint64_t trace_id, uint64_t span_id);

/** Events of other kinds. */
void scene_event(struct scene *scene, uint32_t thread, uint8_t kind, int64_t time_ns);

void scene_gap(struct scene *scene, uint32_t process, uint32_t thread, int64_t from_ns, int64_t to_ns, uint64_t frees);

/** Write the thread's events so far as a block of their own. */
void scene_block(struct scene *scene, uint32_t thread);

/** Write everything and close. */
void scene_close(struct scene *scene);

/** Write everything and open the trace; the caller closes it. */
struct trace *scene_read(struct scene *scene, const char *path);

/** The table of all allocations of a trace, which holds by its own check; the caller frees it. */
struct heap_table *scene_match(struct trace *trace);

/** Free a table and a trace, either may be NULL, and remove the trace's file. */
void scene_remove(const char *path, struct trace *trace, struct heap_table *table);

#endif
