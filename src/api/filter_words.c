/* SPDX-License-Identifier: MIT */
/* From xheap_filter to the model's. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/report.h"
#include "api/api.h"
#include "base/memory.h"
#include "base/text.h"
#include "query/nearest.h"

_Static_assert(XHEAP_AIFI == (int)HEAP_AIFI && XHEAP_AOFO == (int)HEAP_AOFO && XHEAP_CLASS_ANY == (int)HEAP_CLASS_NONE,
	       "classes go as they are");

API_INIT(xheap_filter, .from_ns = INT64_MIN, .to_ns = INT64_MAX, .size_to = UINT64_MAX, .lifetime_to_ns = UINT64_MAX,
	 .window_class = XHEAP_CLASS_ANY)

/* ---- what a report repeats ---- */

static void note_add(struct api_filter *filter, const char *name, char *text)
{
	memory_grow(filter->notes, filter->note_count, filter->note_capacity);
	filter->notes[filter->note_count++] = (struct report_filter){name, text};
}

static void note_bounds(struct api_filter *filter, const char *name, struct heap_bounds bounds)
{
	char *text;
	if (!bounds.from && bounds.to == UINT64_MAX)
		return;
	int length = bounds.to == UINT64_MAX ? asprintf(&text, "%" PRIu64 " max", bounds.from)
					     : asprintf(&text, "%" PRIu64 " %" PRIu64, bounds.from, bounds.to);
	if (length < 0)
		memory_exhausted(0);
	note_add(filter, name, text);
}

/* Of words, or else of numbers. */
static void note_list(struct api_filter *filter, const char *name, const char *const *words, const uint32_t *numbers,
		      size_t count)
{
	struct sink out;
	if (!count)
		return;
	sink_to_memory(&out);
	for (size_t i = 0; i < count; i++) {
		sink_text(&out, i ? " " : "");
		if (words)
			sink_text(&out, words[i]);
		else
			sink_format(&out, "%" PRIu32, numbers[i]);
	}
	note_add(filter, name, sink_take(&out, NULL));
}

static void note_window(struct api_filter *filter)
{
	const struct heap_filter *made = &filter->filter;
	char *text;
	if (made->class == HEAP_CLASS_NONE)
		return;
	if (asprintf(&text, "%s %s %s", heap_class_name(made->class), text_microseconds(made->window.from_ns).data,
		     text_microseconds(made->window.to_ns).data) < 0)
		memory_exhausted(0);
	note_add(filter, "window", text);
}

/* ---- taking it ---- */

static uint32_t *copy_numbers(const uint32_t *from, size_t count)
{
	uint32_t *to = count ? memory_resize(NULL, count, sizeof(*to)) : NULL;
	return to ? memcpy(to, from, count * sizeof(*to)) : NULL;
}

static int add_patterns(struct heap_patterns *patterns, const char *const *texts, size_t count, const char *what,
			struct diag *diag)
{
	int error = 0;
	for (size_t i = 0; i < count && !error; i++)
		error = texts[i] ? heap_patterns_add(patterns, texts[i], diag)
				 : diag_fail(diag, EINVAL, "NULL is no pattern");
	if (error)
		diag_prefix(diag, "%s", what);
	return error;
}

static int check(const xheap_filter *given, struct diag *diag)
{
	if (given->from_ns > given->to_ns || given->size_from > given->size_to ||
	    given->lifetime_from_ns > given->lifetime_to_ns)
		return diag_fail(diag, EINVAL, "xheap_filter: a range ends before it begins");
	if (given->window_class > XHEAP_CLASS_ANY)
		return diag_fail(diag, EINVAL, "xheap_filter: there is no window class %u", given->window_class);
	if (given->window_class != XHEAP_CLASS_ANY && given->window_from_ns > given->window_to_ns)
		return diag_fail(diag, EINVAL, "xheap_filter: the window ends before it begins");
	if ((given->pid_count && !given->pids) || (given->tid_count && !given->tids) ||
	    (given->heap_count && !given->heaps) || (given->require_frame_count && !given->require_frames) ||
	    (given->require_free_frame_count && !given->require_free_frames))
		return diag_fail(diag, EINVAL, "xheap_filter: a list has a count and no items");
	for (size_t i = 0; i < given->heap_count; i++)
		if (!given->heaps[i])
			return diag_fail(diag, EINVAL, "xheap_filter: heap %zu is NULL", i);
	return 0;
}

static int take(struct api_filter *filter, const xheap_filter *given, struct diag *diag)
{
	struct heap_filter *made = &filter->filter;
	made->size_bytes = (struct heap_bounds){given->size_from, given->size_to};
	made->lifetime_ns = (struct heap_bounds){given->lifetime_from_ns, given->lifetime_to_ns};
	made->is_closed = given->is_closed;
	made->class = (enum heap_class)given->window_class;
	made->window = (struct heap_range){given->window_from_ns, given->window_to_ns};
	made->pids = copy_numbers(given->pids, made->pid_count = given->pid_count);
	made->tids = copy_numbers(given->tids, made->tid_count = given->tid_count);
	made->heaps = given->heap_count ? memory_resize(NULL, given->heap_count, sizeof(*made->heaps)) : NULL;
	for (; made->heap_count < given->heap_count; made->heap_count++)
		made->heaps[made->heap_count] = (char *)given->heaps[made->heap_count];
	note_bounds(filter, "size", made->size_bytes);
	note_bounds(filter, "lifetime", made->lifetime_ns);
	note_list(filter, "pids", NULL, made->pids, made->pid_count);
	note_list(filter, "threads", NULL, made->tids, made->tid_count);
	note_list(filter, "heap", given->heaps, NULL, given->heap_count);
	note_window(filter);
	if (made->is_closed)
		note_add(filter, "closed", action_copy(""));
	int error = add_patterns(&made->required, given->require_frames, given->require_frame_count,
				 "xheap_filter, require_frames", diag);
	if (!error)
		error = add_patterns(&made->required_of_free, given->require_free_frames,
				     given->require_free_frame_count, "xheap_filter, require_free_frames", diag);
	if (error)
		return error;
	note_list(filter, "requireFrames", given->require_frames, NULL, given->require_frame_count);
	note_list(filter, "requireFreeFrames", given->require_free_frames, NULL, given->require_free_frame_count);
	return 0;
}

int api_patterns_check(const struct heap_patterns *patterns, const char *what, struct heap_names *names,
		       struct diag *diag)
{
	char text[400];
	for (size_t i = 0; i < patterns->count; i++)
		if (patterns->items[i].hits)
			return 0;
	if (!patterns->count)
		return 0;
	heap_pattern_missing(&patterns->items[0], names, text, sizeof(text));
	return diag_fail(diag, ENOMSG, "%s: %s", what, text);
}

int api_filter_make(struct api_filter *filter, const xheap_filter *given, struct xheap_trace *trace,
		    struct heap_names *names, struct diag *diag)
{
	xheap_filter own;
	heap_filter_init(&filter->filter);
	xheap_filter_init(&own, sizeof(own));
	int error = api_take(&own, sizeof(own), given, "xheap_filter", diag);
	error = error ? error : check(&own, diag);
	if (error)
		return error;
	filter->range = (struct heap_range){own.from_ns, own.to_ns};
	error = take(filter, &own, diag);
	error = error ? error : api_trace_table(trace, diag);
	error = error ? error : heap_filter_prepare(&filter->filter, trace->table, names, diag);
	/* The texts are the caller's, and have been looked at. */
	filter->filter.heap_count = 0;
	error = error ? error : api_patterns_check(&filter->filter.required, "require_frames", names, diag);
	return error ? error : api_patterns_check(&filter->filter.required_of_free, "require_free_frames", names, diag);
}

void api_filter_fini(struct api_filter *filter)
{
	heap_filter_fini(&filter->filter);
	for (size_t i = 0; i < filter->note_count; i++)
		free((char *)filter->notes[i].text);
	free(filter->notes);
}
