/* SPDX-License-Identifier: MIT */
#include "api/filter_fields.h"

#include <errno.h>
#include <stddef.h>

_Static_assert(XHEAP_AIFI == (int)HEAP_AIFI && XHEAP_AOFO == (int)HEAP_AOFO && XHEAP_CLASS_ANY == (int)HEAP_CLASS_NONE,
	       "classes go as they are");

API_INIT(xheap_filter, .from_ns = INT64_MIN, .to_ns = INT64_MAX, .size_to = UINT64_MAX, .lifetime_to_ns = UINT64_MAX,
	 .window_class = XHEAP_CLASS_ANY)

/* Which members of xheap_filter a word's values are in: two bounds, or a list and its count. In the order in which a
   report repeats them. */
struct field {
	enum filter_word_id word;
	size_t first, second;
	const char *name; /* of patterns, for messages */
};

#define FIELD(word, first, second, name) \
	{ \
		FILTER_WORD_##word, offsetof(xheap_filter, first), offsetof(xheap_filter, second), name \
	}
static const struct field fields[] = {
	FIELD(SIZE, size_from, size_to, ""),
	FIELD(LIFETIME, lifetime_from_ns, lifetime_to_ns, ""),
	FIELD(PIDS, pids, pid_count, ""),
	FIELD(THREADS, tids, tid_count, ""),
	FIELD(HEAP, heaps, heap_count, ""),
	FIELD(AT, live_at, live_at, ""),
	FIELD(WINDOW, window_class, window_class, ""),
	FIELD(CLOSED, is_closed, is_closed, ""),
	FIELD(REQUIRED, require_frames, require_frame_count, "xheap_filter, require_frames"),
	FIELD(REQUIRED_OF_FREE, require_free_frames, require_free_frame_count, "xheap_filter, require_free_frames"),
};
enum { FIELD_COUNT = sizeof(fields) / sizeof(*fields) };

#define MEMBER(type, given, offset) (*(const type *)(const void *)((const char *)(given) + (offset)))

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

static void take_numbers(struct filter_request *asked, const struct field *field, const xheap_filter *given)
{
	const uint32_t *numbers = MEMBER(uint32_t *, given, field->first);
	for (size_t i = 0; i < MEMBER(size_t, given, field->second); i++)
		filter_word_add_number(asked, &filter_words[field->word], numbers[i]);
}

static int take_texts(struct filter_request *asked, const struct field *field, const xheap_filter *given,
		      struct diag *diag)
{
	const char *const *texts = MEMBER(char *const *, given, field->first);
	int error = 0;
	for (size_t i = 0; i < MEMBER(size_t, given, field->second) && !error; i++)
		error = texts[i] ? filter_word_take(asked, &filter_words[field->word], 0, texts[i], diag)
				 : diag_fail(diag, EINVAL, "NULL is no pattern");
	if (error)
		diag_prefix(diag, "%s", field->name);
	return error;
}

static int take_moment(struct filter_request *asked, const struct filter_word *word, const xheap_filter *given,
		       struct diag *diag)
{
	if (given->from_ns != INT64_MIN || given->to_ns != INT64_MAX)
		return diag_fail(diag, EINVAL, "xheap_filter: live_at and a range exclude each other");
	int error = filter_word_take(asked, word, 0, given->live_at, diag);
	if (error)
		diag_prefix(diag, "xheap_filter, live_at");
	return error;
}

static int take_field(struct filter_request *asked, const struct field *field, const xheap_filter *given,
		      struct diag *diag)
{
	const struct filter_word *word = &filter_words[field->word];
	switch (word->values) {
	case FILTER_SIZES:
	case FILTER_SPANS:
		*filter_word_bounds(asked, word) = (struct heap_bounds){MEMBER(uint64_t, given, field->first),
									MEMBER(uint64_t, given, field->second)};
		return 0;
	case FILTER_NUMBERS:
		take_numbers(asked, field, given);
		return 0;
	case FILTER_FRAMES:
	case FILTER_HEAP:
		return take_texts(asked, field, given, diag);
	case FILTER_MOMENT:
		return given->live_at ? take_moment(asked, word, given, diag) : 0;
	case FILTER_CLASS_TIMES:
		asked->filter.classes =
			given->window_class == XHEAP_CLASS_ANY ? 0 : HEAP_CLASS_BIT(given->window_class);
		asked->filter.window = (struct heap_range){given->window_from_ns, given->window_to_ns};
		return 0;
	case FILTER_NO_VALUE:
		return given->is_closed ? filter_word_finish(asked, word, diag) : 0;
	case FILTER_TIMES:
		break;
	}
	return 0;
}

static int take(struct filter_request *asked, const xheap_filter *given, struct diag *diag)
{
	for (int i = 0; i < FIELD_COUNT; i++) {
		const struct filter_word *word = &filter_words[fields[i].word];
		int error = take_field(asked, &fields[i], given, diag);
		if (error)
			return error;
		if (!filter_word_is_asked(asked, word))
			continue;
		struct sink text;
		sink_to_memory(&text);
		filter_word_write(asked, word, &text);
		filter_request_note(asked, word->name, sink_take(&text, NULL));
	}
	return 0;
}

int api_request_take(struct api_request *question, const xheap_filter *given, struct xheap_trace *trace,
		     bool with_lines, struct diag *diag)
{
	static const char *const pattern_words[] = {"require_frames", "require_free_frames"};
	struct heap_names *names;
	xheap_filter own;
	filter_request_init(&question->asked);
	xheap_filter_init(&own, sizeof(own));
	int error = api_trace_names(trace, with_lines, &names, diag);
	error = error ? error : api_take(&own, sizeof(own), given, "xheap_filter", diag);
	error = error ? error : check(&own, diag);
	if (error)
		return error;
	question->range = (struct heap_range){own.from_ns, own.to_ns};
	question->request = (struct analysis_request){.source_count = 1,
						      .opened = &trace->opened,
						      .ranges = &question->range,
						      .asked = &question->asked,
						      .names = names,
						      .session = trace->session,
						      .pattern_words = pattern_words,
						      .caller = api_trace_caller(trace)};
	return take(&question->asked, &own, diag);
}

int api_request_prepare(struct api_request *question, struct xheap_trace *trace, struct diag *diag)
{
	int error = analysis_open(&question->analysis, &question->request, diag);
	error = error ? error : analysis_prepare(&question->analysis, diag);
	/* The texts are the caller's, and have been looked at. */
	question->asked.filter.heap_count = 0;
	trace->table = trace->opened->table;
	return error;
}

void api_request_fini(struct api_request *question)
{
	analysis_close(&question->analysis);
	filter_request_fini(&question->asked);
}
