/* SPDX-License-Identifier: MIT */
#include "api/stack_frames.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"

struct xheap_frames {
	struct xheap_trace *trace;
	uint32_t count;
	xheap_frame items[];
};

static xheap_frame frame_of(const struct heap_names *names, uint32_t node)
{
	const struct heap_frame *frame = heap_names_frame(names, node);
	const struct heap_name *name = heap_names_name(names, frame->name);
	return (xheap_frame){.text = name->text,
			     .image = name->image,
			     .symbol = name->symbol,
			     .mangled = name->mangled,
			     .file = frame->file,
			     .line = frame->line,
			     .is_inlined = frame->is_inlined,
			     .image_id = frame->image,
			     .offset = frame->offset};
}

xheap_frames *api_frames_new(struct xheap_trace *trace, const struct heap_names *names, uint32_t node)
{
	uint32_t count = 0;
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent)
		count++;
	xheap_frames *frames = memory_zeroed(1, sizeof(*frames) + count * sizeof(*frames->items));
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent)
		frames->items[frames->count++] = frame_of(names, at);
	frames->trace = trace;
	api_trace_hold(trace);
	return frames;
}

struct naming {
	struct xheap_trace *trace;
	uint32_t stack, function;
	xheap_frames *frames;
};

static int naming_work(void *context, struct diag *diag)
{
	struct naming *naming = context;
	const struct xheap_trace *trace = naming->trace;
	if (naming->stack >= trace->info.stack_count)
		return diag_fail(diag, EINVAL, "%s: there is no stack %u", trace->path, naming->stack);
	if (naming->function != XHEAP_NONE && naming->function >= trace->info.function_count)
		return diag_fail(diag, EINVAL, "%s: there is no function %u", trace->path, naming->function);
	struct heap_names *names;
	int error = api_trace_names(naming->trace, true, &names, diag);
	if (error)
		return error;
	uint32_t node = naming->function == XHEAP_NONE
				? heap_names_stack(names, naming->stack)
				: heap_names_site(names, &(struct heap_site){naming->stack, naming->function});
	naming->frames = api_frames_new(naming->trace, names, node);
	return 0;
}

API int xheap_trace_get_frames(xheap_trace *trace, uint32_t stack, uint32_t function, xheap_frames **frames,
			       xheap_error *error)
{
	struct naming naming = {.trace = trace, .stack = stack, .function = function};
	int status = api_run_locked(trace, error, naming_work, &naming);
	*frames = naming.frames;
	return status;
}

API uint32_t xheap_frames_count(const xheap_frames *frames)
{
	return frames->count;
}

API const xheap_frame *xheap_frames_get(const xheap_frames *frames, uint32_t i)
{
	return i < frames->count ? &frames->items[i] : NULL;
}

API void xheap_frames_free(xheap_frames *frames)
{
	if (!frames)
		return;
	api_trace_release(frames->trace);
	free(frames);
}
