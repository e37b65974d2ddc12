/* SPDX-License-Identifier: MIT */
/* A trace, and what its dictionaries say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "action/report/losses.h"
#include "api/api.h"
#include "base/memory.h"
#include "session/control/controller.h"
#include "session/directory/directory.h"
#include "table/weight.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/memory_rows.h"
#include "trace/merge.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

_Static_assert(XHEAP_NONE == TRACE_NONE && XHEAP_NONE == HEAP_NONE, "one word for no id");
_Static_assert(XHEAP_PROCESS_DETACHED == (int)TRACE_END_DETACHED && XHEAP_PROCESS_EXEC == (int)TRACE_END_EXEC,
	       "ends go as they are");
enum { KINDS_ROOM = sizeof(((xheap_trace_info *)0)->kind_counts) / sizeof(uint64_t) };
_Static_assert(XHEAP_KIND_COUNT == (int)EVENT_KIND_COUNT && (int)EVENT_KIND_COUNT <= KINDS_ROOM, "so do kinds");
#define X(id, action, word) _Static_assert((int)XHEAP_KIND_##id == (int)EVENT_##id, "one by one");
EVENT_KINDS(X)
#undef X

API_INIT(xheap_open_options, .callbacks = NULL)

API const char *xheap_kind_name(uint32_t kind)
{
	static const char *const names[] = {
#define X(id, action, word) action,
		EVENT_KINDS(X)
#undef X
	};
	return kind < EVENT_KIND_COUNT ? names[kind] : NULL;
}

/* ---- its life ---- */

void api_trace_hold(struct xheap_trace *trace)
{
	__atomic_fetch_add(&trace->references, 1, __ATOMIC_RELAXED);
}

static void trace_free(struct xheap_trace *trace)
{
	opened_trace_release(trace->opened);
	free(trace->lists.processes);
	free(trace->lists.threads);
	free(trace->lists.images);
	free(trace->lists.heaps);
	free(trace->lists.functions);
	free(trace->lists.gaps);
	free(trace->lists.samples);
	free(trace->lists.options);
	free(trace->path);
	free(trace->session);
	pthread_mutex_destroy(&trace->lock);
	free(trace);
}

void api_trace_release(struct xheap_trace *trace)
{
	if (__atomic_sub_fetch(&trace->references, 1, __ATOMIC_ACQ_REL) == 0)
		trace_free(trace);
}

int api_run_locked(struct xheap_trace *trace, xheap_error *error, int (*work)(void *context, struct diag *diag),
		   void *context)
{
	pthread_mutex_lock(&trace->lock);
	int status = api_run(&trace->callbacks, error, work, context);
	trace->is_spoiled |= status == XHEAP_NO_MEMORY || status == XHEAP_FAILED;
	pthread_mutex_unlock(&trace->lock);
	return status;
}

/* ---- what is made when it is needed ---- */

static void show_progress(void *cookie, uint64_t done, uint64_t all)
{
	const xheap_callbacks *callbacks = cookie;
	callbacks->on_progress(callbacks->user, done < all ? done : all, all);
}

struct analysis_caller api_trace_caller(struct xheap_trace *trace)
{
	return (struct analysis_caller){.progress = trace->callbacks.on_progress ? show_progress : NULL,
					.context = &trace->callbacks};
}

int api_trace_check(const struct xheap_trace *trace, struct diag *diag)
{
	if (opened_table_is_good(trace->opened->table))
		return 0;
	return trace->opened->index_path
		       ? diag_fail(diag, EBADMSG, "the index %s is damaged: remove it", trace->opened->index_path)
		       : diag_fail(diag, EIO, "%s: the table of allocations could not be read again", trace->path);
}

int api_trace_names(struct xheap_trace *trace, bool with_lines, struct heap_names **out, struct diag *diag)
{
	if (trace->is_spoiled)
		return diag_fail(diag, ENOMEM, "%s: there was no memory for all names of its code; open it again",
				 trace->path);
	*out = opened_trace_names(trace->opened, with_lines);
	return 0;
}

/* ---- lists ---- */

#define LIST(trace, list, count) ((trace)->lists.list = memory_zeroed((count), sizeof(*(trace)->lists.list)))

static void list_processes(struct xheap_trace *trace, const struct trace_dictionary *dictionary)
{
	xheap_process *to = LIST(trace, processes, dictionary->process_count);
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct trace_process *from = &dictionary->processes[i];
		to[i] = (xheap_process){.pid = from->pid,
					.parent = from->parent,
					.forked_from = from->forked_from,
					.exec_generation = from->exec_generation,
					.start_ns = from->start_ns,
					.end_ns = trace_process_end_is_known(from) ? from->end_ns : INT64_MAX,
					.end = from->end <= TRACE_END_DETACHED ? from->end : TRACE_END_UNKNOWN,
					.end_status = from->end_status,
					.image = from->image,
					.command = from->command,
					.note = from->note};
	}
}

static void list_images(struct xheap_trace *trace, const struct trace_dictionary *dictionary)
{
	xheap_image *to = LIST(trace, images, dictionary->image_count);
	for (uint32_t i = 0; i < dictionary->image_count; i++)
		to[i] = (xheap_image){dictionary->images[i].path, dictionary->images[i].build_id,
				      dictionary->images[i].build_id_size};
}

static void list_threads(struct xheap_trace *trace, const struct trace_dictionary *dictionary)
{
	xheap_thread *to = LIST(trace, threads, dictionary->thread_count);
	for (uint32_t i = 0; i < dictionary->thread_count; i++) {
		const struct trace_thread *from = &dictionary->threads[i];
		to[i] = (xheap_thread){from->process, from->tid, from->start_ns, from->end_ns, from->name};
	}
}

static void list_heaps(struct xheap_trace *trace, const struct trace_dictionary *dictionary)
{
	xheap_heap *heaps = LIST(trace, heaps, dictionary->heap_count);
	xheap_function *functions = LIST(trace, functions, dictionary->entry_count);
	for (uint32_t i = 0; i < dictionary->heap_count; i++)
		heaps[i] = (xheap_heap){dictionary->heaps[i].process, dictionary->heaps[i].handle,
					dictionary->heaps[i].name};
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		functions[i] = (xheap_function){dictionary->entries[i].name, dictionary->entries[i].image};
}

static void list_gaps(struct xheap_trace *trace, const struct trace_dictionary *dictionary)
{
	xheap_gap *to = LIST(trace, gaps, dictionary->gap_count);
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *from = &dictionary->gaps[i];
		to[i] = (xheap_gap){.process = from->process,
				    .thread = from->thread,
				    .from_ns = from->from_ns,
				    .to_ns = from->to_ns,
				    .stacks = from->stacks};
		memcpy(to[i].counts, from->count, sizeof(from->count));
		memcpy(to[i].bytes, from->bytes, sizeof(from->bytes));
	}
}

static void list_samples(struct xheap_trace *trace, const struct trace_dictionary *dictionary)
{
	xheap_sample *to = LIST(trace, samples, dictionary->sample_count);
	for (uint32_t i = 0; i < dictionary->sample_count; i++)
		to[i] = (xheap_sample){dictionary->samples[i].process, dictionary->samples[i].time_ns,
				       dictionary->samples[i].resident_bytes};
}

static void list_options(struct xheap_trace *trace, const struct trace_dictionary *dictionary)
{
	xheap_option *to = LIST(trace, options, dictionary->option_count);
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		to[i] = (xheap_option){dictionary->options[i].name, dictionary->options[i].value};
}

static void info_make(struct xheap_trace *trace, const struct trace_dictionary *dictionary)
{
	struct losses losses = losses_sum(dictionary);
	trace->info =
		(xheap_trace_info){.path = trace->path,
				   .host = dictionary->host,
				   .clock = dictionary->clock,
				   .cut_reason = dictionary->cut_reason,
				   .size_bytes = dictionary->size_bytes,
				   .event_count = dictionary->event_count,
				   .failed_calls = dictionary->failed_count,
				   .lost_events = losses.events,
				   .lost_stacks = losses.stacks,
				   .truncated_stacks = dictionary->ends.truncated,
				   .unwindless_stacks = dictionary->ends.unwindless,
				   .whole_stacks = dictionary->is_whole_known ? dictionary->ends.whole : UINT64_MAX,
				   .start_realtime_ns = dictionary->start_realtime_ns,
				   .duration_ns = dictionary->duration_ns,
				   .is_complete = losses_is_complete(dictionary),
				   .sample_bytes = heap_sample_bytes(dictionary),
				   .process_count = dictionary->process_count,
				   .thread_count = dictionary->thread_count,
				   .image_count = dictionary->image_count,
				   .heap_count = dictionary->heap_count,
				   .function_count = dictionary->entry_count,
				   .gap_count = dictionary->gap_count,
				   .sample_count = dictionary->sample_count,
				   .stack_count = dictionary->node_count,
				   .option_count = dictionary->option_count};
	memcpy(trace->info.kind_counts, dictionary->kind_count, sizeof(dictionary->kind_count));
}

API const xheap_trace_info *xheap_trace_get_info(const xheap_trace *trace)
{
	return &trace->info;
}

#define GET(type, list, count) \
	API const xheap_##type *xheap_trace_get_##type(const xheap_trace *trace, uint32_t id) \
	{ \
		return id < trace->info.count ? &trace->lists.list[id] : NULL; \
	}
GET(process, processes, process_count)
GET(thread, threads, thread_count)
GET(image, images, image_count)
GET(heap, heaps, heap_count)
GET(function, functions, function_count)
GET(gap, gaps, gap_count)
GET(sample, samples, sample_count)
GET(option, options, option_count)

API int xheap_trace_get_address(const xheap_trace *trace, uint32_t stack, xheap_address *address)
{
	const struct trace_dictionary *dictionary = trace_dictionary(trace->trace);
	if (!address || stack >= dictionary->node_count)
		return XHEAP_INVALID;
	if (!stack)
		return XHEAP_END;
	const struct trace_node *node = &dictionary->nodes[stack];
	const struct trace_frame *frame = &dictionary->frames[node->frame];
	*address = (xheap_address){node->parent, frame->image, frame->offset};
	return XHEAP_OK;
}

/* ---- opening ---- */

struct opening {
	const char *path, *session;
	const xheap_open_options *given;
	xheap_callbacks callbacks;
	struct xheap_trace *trace;
};

static int open_read(struct opening *opening, struct diag *diag)
{
	struct xheap_trace *trace = opening->trace;
	const struct analysis_caller nobody = {.note = NULL};
	int error = opened_trace_open(&trace->opened, trace->path, &trace->options, &nobody, diag);
	if (error)
		return error == -EINVAL ? -EBADMSG : error;
	trace->trace = trace->opened->trace;
	const struct trace_dictionary *dictionary = trace_dictionary(trace->trace);
	info_make(trace, dictionary);
	list_processes(trace, dictionary);
	list_threads(trace, dictionary);
	list_images(trace, dictionary);
	list_heaps(trace, dictionary);
	list_gaps(trace, dictionary);
	list_samples(trace, dictionary);
	list_options(trace, dictionary);
	return 0;
}

static int open_work(void *context, struct diag *diag)
{
	struct opening *opening = context;
	xheap_open_options options = {.callbacks = NULL};
	struct xheap_trace *trace = opening->trace = memory_zeroed(1, sizeof(*trace));
	pthread_mutex_init(&trace->lock, NULL);
	trace->references = 1;
	int error = api_take(&options, sizeof(options), opening->given, "xheap_open_options", diag);
	if (!error)
		error = api_take(&opening->callbacks, sizeof(opening->callbacks), options.callbacks, "xheap_callbacks",
				 diag);
	if (error)
		return error;
	trace->callbacks = opening->callbacks;
	if (!opening->path)
		return diag_fail(diag, EINVAL, "xheap_trace_open: no path is given");
	trace->options = (struct opened_options){.index = options.without_index ? INDEX_UNUSED : INDEX_READ,
						 .without_files = options.without_files};
	trace->path = action_copy(opening->path);
	trace->session = opening->session ? action_copy(opening->session) : NULL;
	return open_read(opening, diag);
}

static int trace_open_as(struct opening *opening, xheap_trace **trace, xheap_error *error)
{
	int status = api_run(&opening->callbacks, error, open_work, opening);
	if (status != XHEAP_OK && opening->trace) {
		api_trace_release(opening->trace);
		opening->trace = NULL;
	}
	*trace = opening->trace;
	return status;
}

API int xheap_trace_open(const char *path, const xheap_open_options *options, xheap_trace **trace, xheap_error *error)
{
	struct opening opening = {.path = path, .given = options};
	return trace_open_as(&opening, trace, error);
}

/* The session's trace as its logger names it, with all that is recorded written. */
struct flushing {
	const char *name;
	char path[sizeof(((struct controller_state *)0)->path)];
};

static int flush_talk(int socket, char *path, size_t size, struct diag *diag)
{
	struct controller_state state;
	int error = controller_ask(socket, &(struct control_message){.kind = CONTROL_FLUSH}, NULL, diag);
	if (error)
		return error;
	error = controller_query(socket, false, &state, NULL, diag);
	snprintf(path, size, "%s", state.path);
	controller_state_fini(&state);
	return error;
}

static int flush_work(void *context, struct diag *diag)
{
	struct flushing *flushing = context;
	int socket = flushing->name ? session_connect(flushing->name, diag)
				    : diag_fail(diag, EINVAL, "xheap_trace_open_session: no name is given");
	if (socket < 0)
		return socket;
	int error = flush_talk(socket, flushing->path, sizeof(flushing->path), diag);
	close(socket);
	return error;
}

API int xheap_trace_open_session(const char *name, const xheap_open_options *options, xheap_trace **trace,
				 xheap_error *error)
{
	struct flushing flushing = {.name = name};
	*trace = NULL;
	int status = api_run(NULL, error, flush_work, &flushing);
	struct opening opening = {.path = flushing.path, .session = name, .given = options};
	return status == XHEAP_OK ? trace_open_as(&opening, trace, error) : status;
}

struct trace_merging {
	const char *path;
	const char *const *paths;
	size_t count;
};

static int merge_work(void *context, struct diag *diag)
{
	const struct trace_merging *merging = context;
	if (!merging->path || !merging->paths || merging->count > UINT16_MAX)
		return diag_fail(diag, EINVAL, "xheap_trace_merge: a path is missing, or there are too many");
	for (size_t i = 0; i < merging->count; i++)
		if (!merging->paths[i])
			return diag_fail(diag, EINVAL, "xheap_trace_merge: path %zu is NULL", i);
	return trace_merge(merging->path, merging->paths, (unsigned)merging->count, diag);
}

API int xheap_trace_merge(const char *path, const char *const *paths, size_t count, xheap_error *error)
{
	return api_run(NULL, error, merge_work, &(struct trace_merging){path, paths, count});
}

API void xheap_trace_close(xheap_trace *trace)
{
	if (trace)
		api_trace_release(trace);
}
