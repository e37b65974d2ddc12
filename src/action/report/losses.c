/* SPDX-License-Identifier: MIT */
#include "action/report/losses.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/early_end.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

static const char *const kind_words[] = {
#define X(id, action, word) word,
	EVENT_KINDS(X)
#undef X
};

struct losses losses_sum(const struct trace_dictionary *dictionary)
{
	struct losses losses = {.events = dictionary->unwritten_events};
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		losses.stacks += dictionary->gaps[i].stacks;
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			losses.events += dictionary->gaps[i].count[kind];
	}
	return losses;
}

bool losses_has_option(const struct trace_dictionary *dictionary, const char *name)
{
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (!strcmp(dictionary->options[i].name, name))
			return true;
	return false;
}

/* The value of the next option of this name from *at on, or NULL. */
static const char *option_next(const struct trace_dictionary *dictionary, const char *name, uint32_t *at)
{
	while (*at < dictionary->option_count) {
		const struct trace_option *option = &dictionary->options[(*at)++];
		if (!strcmp(option->name, name))
			return option->value;
	}
	return NULL;
}

static bool has_gaps_of_init_only(const struct trace_dictionary *dictionary)
{
	enum { INIT_PID = 1 };
	for (uint32_t i = 0; i < dictionary->gap_count; i++)
		if (dictionary->gaps[i].process >= dictionary->process_count ||
		    dictionary->processes[dictionary->gaps[i].process].pid != INIT_PID)
			return false;
	return dictionary->gap_count > 0;
}

void losses_text_reason(struct sink *out, const struct trace_dictionary *dictionary)
{
	uint32_t at = 0;
	const char *when_full = option_next(dictionary, "on-full", &at), *limit_ms;
	at = 0;
	limit_ms = option_next(dictionary, "wait-limit-ms", &at);
	if (has_gaps_of_init_only(dictionary))
		sink_text(out, " (no buffer was free, and process 1 never waits)");
	else if (dictionary->gap_count && when_full && !strcmp(when_full, "drop"))
		sink_text(out, " (no buffer was free: --on-full drop)");
	else if (dictionary->gap_count && when_full && limit_ms)
		sink_format(out, " (no buffer was free for longer than --wait-limit, %s ms)", text_shown(limit_ms));
}

uint64_t losses_missing_calls(const struct trace_dictionary *dictionary)
{
	return losses_sum(dictionary).events + dictionary->statistics.untraced_calls + dictionary->statistics.unwatched;
}

/* No sample has blocks from before: none of them is missing. */
static bool lacks_earlier(const struct trace_dictionary *dictionary)
{
	return losses_has_option(dictionary, TRACE_OPTION_EARLIER_MISSING) && !losses_has_option(dictionary, "sample");
}

static uint32_t untraced_count(const struct trace_dictionary *dictionary)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		count += trace_process_is_untraced(&dictionary->processes[i]);
	return count;
}

/* Reasons, noted in the trace as options, why calls are missing that nobody can count. Without a text: no call is
   missing for it, or the calls are counted. */
static const struct {
	const char *option, *json_key, *text;
} uncounted[] = {
	{TRACE_OPTION_UNHOOKED, "unhooked", "not every function could be hooked"},
	{TRACE_OPTION_UNTRACED_EXECS, "untraced_execs", "programs may have run untraced"},
	{TRACE_OPTION_DAMAGED, "damaged_memory", "shared memory was damaged"},
	{TRACE_OPTION_UNFINISHED, "unfinished", "the end is missing"},
	{TRACE_OPTION_LIMITED, "limited", NULL},
};
enum { UNCOUNTED_KINDS = sizeof(uncounted) / sizeof(uncounted[0]) };

/* The first kind that the trace has, else UNCOUNTED_KINDS. */
static int uncounted_kind(const struct trace_dictionary *dictionary)
{
	int kind = 0;
	while (kind < UNCOUNTED_KINDS &&
	       !(uncounted[kind].text && losses_has_option(dictionary, uncounted[kind].option)))
		kind++;
	return kind;
}

bool losses_is_complete(const struct trace_dictionary *dictionary)
{
	return dictionary->is_complete && !early_end_first(dictionary) && losses_missing_calls(dictionary) == 0 &&
	       !lacks_earlier(dictionary) && uncounted_kind(dictionary) == UNCOUNTED_KINDS &&
	       untraced_count(dictionary) == 0;
}

struct text losses_missing_text(const struct trace_dictionary *dictionary)
{
	struct text text = {""};
	uint64_t calls = losses_missing_calls(dictionary), untraced = untraced_count(dictionary);
	int kind = uncounted_kind(dictionary);
	const struct trace_early_end *end = early_end_first(dictionary);
	if (end)
		snprintf(text.data, sizeof(text.data), "recording ended at %.24s", text_duration(end->time_ns).data);
	else if (calls)
		snprintf(text.data, sizeof(text.data), "%.26s call%s missing", text_count(calls).data,
			 calls == 1 ? " is" : "s are");
	else if (kind < UNCOUNTED_KINDS)
		snprintf(text.data, sizeof(text.data), "%s", uncounted[kind].text);
	else if (untraced)
		snprintf(text.data, sizeof(text.data), "%.20s process%s ran untraced", text_count(untraced).data,
			 untraced == 1 ? "" : "es");
	else if (lacks_earlier(dictionary))
		snprintf(text.data, sizeof(text.data), "not all earlier blocks are known");
	return text;
}

static void json_kinds(struct json *json, const char *key, const uint64_t *counts)
{
	json_begin_object(json, key);
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		if (counts[kind])
			json_count(json, kind_words[kind], counts[kind]);
	json_end_object(json);
}

static const struct trace_process *gap_process(const struct trace_dictionary *dictionary, const struct trace_gap *gap)
{
	return gap->process < dictionary->process_count ? &dictionary->processes[gap->process] : NULL;
}

static const struct trace_thread *gap_thread(const struct trace_dictionary *dictionary, const struct trace_gap *gap)
{
	return gap->thread < dictionary->thread_count ? &dictionary->threads[gap->thread] : NULL;
}

void losses_json_gaps(struct json *json, const struct trace_dictionary *dictionary)
{
	json_begin_array(json, "gaps");
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		json_begin_object(json, NULL);
		if (gap_process(dictionary, gap)) {
			json_count(json, "process", gap->process);
			if (gap_process(dictionary, gap)->pid)
				json_count(json, "pid", gap_process(dictionary, gap)->pid);
		}
		if (gap_thread(dictionary, gap))
			json_count(json, "tid", gap_thread(dictionary, gap)->tid);
		json_time(json, "from_us", gap->from_ns);
		json_time(json, "to_us", gap->to_ns);
		json_kinds(json, "events", gap->count);
		json_kinds(json, "bytes", gap->bytes);
		json_count(json, "stacks", gap->stacks);
		json_end_object(json);
	}
	json_end_array(json);
	if (dictionary->unwritten_events)
		json_count(json, "unwritten_events", dictionary->unwritten_events);
}

void losses_text_gaps(struct sink *out, const struct trace_dictionary *dictionary)
{
	enum { GAP_LINES_MAX = 10 };
	for (uint32_t i = 0; i < dictionary->gap_count && i < GAP_LINES_MAX; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		sink_text(out, "    gap");
		if (gap_process(dictionary, gap))
			sink_format(out, " in process %s", text_pid(gap_process(dictionary, gap)->pid).data);
		if (gap_thread(dictionary, gap))
			sink_format(out, " thread %" PRIu32, gap_thread(dictionary, gap)->tid);
		sink_format(out, " from %s to %s:", text_duration(gap->from_ns).data, text_duration(gap->to_ns).data);
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			if (gap->count[kind])
				sink_format(out, " %s %s (%s)", text_count(gap->count[kind]).data, kind_words[kind],
					    text_bytes(gap->bytes[kind]).data);
		if (gap->stacks)
			sink_format(out, " %s stacks", text_count(gap->stacks).data);
		sink_put(out, '\n');
	}
	if (dictionary->gap_count > GAP_LINES_MAX)
		sink_format(out, "    and %" PRIu32 " more gaps\n", dictionary->gap_count - GAP_LINES_MAX);
	if (dictionary->unwritten_events)
		sink_format(out, "    %s of them could not be written\n",
			    text_count(dictionary->unwritten_events).data);
}

/* The value of the next option from *at on about earlier blocks that are not known, or NULL. */
static const char *missing_next(const struct trace_dictionary *dictionary, uint32_t *at)
{
	return option_next(dictionary, TRACE_OPTION_EARLIER_MISSING, at);
}

void losses_json_calls(struct json *json, const struct trace_dictionary *dictionary)
{
	uint32_t untraced = untraced_count(dictionary);
	json_count(json, "missing_calls", losses_missing_calls(dictionary));
	json_count(json, "lost_events", losses_sum(dictionary).events);
	if (dictionary->statistics.untraced_calls)
		json_count(json, "untraced_calls", dictionary->statistics.untraced_calls);
	if (dictionary->statistics.unwatched || losses_has_option(dictionary, "sample"))
		json_count(json, "unwatched_blocks", dictionary->statistics.unwatched);
	if (untraced)
		json_count(json, "untraced_processes", untraced);
	for (int kind = 0; kind < UNCOUNTED_KINDS; kind++) {
		uint32_t at = 0;
		const char *text = option_next(dictionary, uncounted[kind].option, &at);
		if (!text)
			continue;
		json_begin_array(json, uncounted[kind].json_key);
		for (; text; text = option_next(dictionary, uncounted[kind].option, &at))
			json_text(json, NULL, text);
		json_end_array(json);
	}
}

void losses_text_calls(struct sink *out, const struct trace_dictionary *dictionary, const char *reasons)
{
	uint32_t untraced = untraced_count(dictionary);
	if (dictionary->statistics.untraced_calls)
		sink_format(out,
			    "  untraced calls: %s (their threads or processes found no room: there were too many at "
			    "once)\n",
			    text_count(dictionary->statistics.untraced_calls).data);
	if (dictionary->statistics.unwatched)
		sink_format(out,
			    "  unwatched blocks: %s (of the sample; too many were live to see each of them freed)\n",
			    text_count(dictionary->statistics.unwatched).data);
	for (int kind = 0; kind < UNCOUNTED_KINDS; kind++) {
		uint32_t at = 0;
		for (const char *text; (text = option_next(dictionary, uncounted[kind].option, &at));)
			sink_format(out, "  %s\n", text_shown(text));
	}
	if (untraced)
		sink_format(out, "  untraced processes: %" PRIu32 " (%s)\n", untraced, reasons);
}

void losses_text_earlier(struct sink *out, const struct trace_dictionary *dictionary, const char *lead)
{
	uint32_t at = 0;
	for (const char *text; (text = missing_next(dictionary, &at));)
		sink_format(out, "%s%s\n", lead, text_shown(text));
}

void losses_json_earlier(struct json *json, const char *name, const struct trace_dictionary *dictionary)
{
	uint32_t at = 0;
	const char *text = missing_next(dictionary, &at);
	if (!text)
		return;
	json_begin_array(json, name);
	for (; text; text = missing_next(dictionary, &at))
		json_text(json, NULL, text);
	json_end_array(json);
}

void losses_json_dropped(struct json *json, const struct trace_dictionary *dictionary)
{
	if (!dictionary->dropped_events)
		return;
	json_begin_object(json, "dropped");
	json_count(json, "events", dictionary->dropped_events);
	json_time(json, "until_us", dictionary->dropped_until_ns);
	json_end_object(json);
}

void losses_text_dropped(struct sink *out, const struct trace_dictionary *dictionary)
{
	if (dictionary->dropped_events)
		sink_format(
			out,
			"  %s events up to %s are not kept: blocks from then are not known, and giving one back is an "
			"unknown free\n",
			text_count(dictionary->dropped_events).data, text_duration(dictionary->dropped_until_ns).data);
}

/* ---- how stacks end ---- */

/* Images whose code has no unwind data, so that stacks end there. */
struct unwindless {
	const char **names;
	size_t count, capacity;
};

static void unwindless_add(struct unwindless *images, const char *name)
{
	for (size_t i = 0; i < images->count; i++)
		if (!strcmp(images->names[i], name))
			return;
	memory_grow(images->names, images->count, images->capacity);
	images->names[images->count++] = name;
}

/* The frame before the mark, that is the mark's child in the tree, is the one that has none. Caller frees the names'
   array. */
static struct unwindless unwindless_find(const struct trace_dictionary *dictionary)
{
	struct unwindless images = {0};
	for (uint32_t i = 1; i < dictionary->node_count; i++) {
		uint32_t mark = dictionary->nodes[i].parent;
		if (dictionary->stack_ends[i] != TRACE_STACK_UNWINDLESS || mark == 0 ||
		    dictionary->nodes[mark].parent != 0)
			continue;
		uint32_t image = dictionary->frames[dictionary->nodes[i].frame].image;
		unwindless_add(&images,
			       image == TRACE_NONE ? "[no image]" : text_file_name(dictionary->images[image].path));
	}
	return images;
}

void losses_json_stack_ends(struct json *json, const struct trace_dictionary *dictionary)
{
	struct unwindless images = unwindless_find(dictionary);
	if (dictionary->is_whole_known)
		json_count(json, "whole_stacks", dictionary->ends.whole);
	json_count(json, "truncated_stacks", dictionary->ends.truncated);
	json_count(json, "unwindless_stacks", dictionary->ends.unwindless);
	if (images.count) {
		json_texts(json, "unwindless_images", images.names, images.count);
	}
	free(images.names);
}

void losses_text_unwindless(struct sink *out, const struct trace_dictionary *dictionary)
{
	enum { NAMES_MAX = 5 };
	struct unwindless images = unwindless_find(dictionary);
	if (dictionary->ends.unwindless) {
		sink_format(out, "  stacks without unwind data: %s (they end at code of ",
			    text_count(dictionary->ends.unwindless).data);
		for (size_t i = 0; i < images.count && i < NAMES_MAX; i++)
			sink_format(out, "%s%s", i ? ", " : "", text_shown(images.names[i]));
		if (images.count > NAMES_MAX)
			sink_format(out, " and %zu more images", images.count - NAMES_MAX);
		sink_text(out, ")\n");
	}
	free(images.names);
}

/* ---- folded time ---- */

/* Events that are in sums, over all traces that were merged. */
static const struct trace_fold *last_fold(const struct trace_dictionary *dictionary)
{
	const struct trace_fold *last = NULL;
	for (uint32_t i = 0; i < dictionary->fold_count; i++)
		if (!last || dictionary->folds[i].until_ns > last->until_ns)
			last = &dictionary->folds[i];
	return last;
}

/* Sums of threads of which it is not known any more which one called. */
static uint32_t joined_sums(const struct trace_dictionary *dictionary)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->sum_count; i++)
		count += !!(dictionary->sums[i].flags & TRACE_SUM_THREADS);
	return count;
}

void losses_json_folded(struct json *json, const struct trace_dictionary *dictionary)
{
	const struct trace_fold *fold = last_fold(dictionary);
	if (!fold)
		return;
	json_begin_object(json, "folded");
	json_count(json, "events", dictionary->folded_count);
	json_time(json, "until_us", fold->until_ns);
	json_time(json, "interval_us", fold->interval_ns);
	json_count(json, "sums", dictionary->sum_count);
	json_count(json, "sums_of_several_threads", joined_sums(dictionary));
	json_end_object(json);
}

bool losses_is_being_written(const char *path, const struct trace_dictionary *dictionary)
{
	return !dictionary->is_complete && file_is_locked(path);
}

static void end_put(struct sink *out, const struct trace_dictionary *dictionary, bool is_being_written)
{
	const char *reason = dictionary->cut_reason ? dictionary->cut_reason : "";
	if (is_being_written)
		sink_text(out, "is being written: this is what it has up to now");
	else
		sink_format(out, "is cut at byte %" PRIu64 "%s%s", dictionary->cut_offset, *reason ? ": " : "",
			    text_shown(reason));
}

void losses_text_end(struct sink *out, const char *path, const struct trace_dictionary *dictionary)
{
	end_put(out, dictionary, losses_is_being_written(path, dictionary));
}

void losses_text_cut(struct sink *out, const char *path, const struct trace_dictionary *dictionary)
{
	/* Asked once: the session may end between two questions. */
	const bool is_being_written = losses_is_being_written(path, dictionary);
	if (dictionary->is_complete)
		return;
	sink_text(out, "  the trace ");
	end_put(out, dictionary, is_being_written);
	sink_text(out, is_being_written ? "\n" : "; if its logger was killed: xheap recover\n");
}

void losses_text_folded(struct sink *out, const struct trace_dictionary *dictionary)
{
	const struct trace_fold *fold = last_fold(dictionary);
	if (fold)
		sink_format(
			out,
			"  folded: %s events up to %s; blocks that had ended by then are in %s sums by stack, thread "
			"and interval of %s\n",
			text_count(dictionary->folded_count).data, text_duration(fold->until_ns).data,
			text_count(dictionary->sum_count).data, text_duration(fold->interval_ns).data);
	if (fold && joined_sums(dictionary))
		sink_format(
			out,
			"  %s of these sums are of several threads that are done: they count as one thread of their "
			"process\n",
			text_count(joined_sums(dictionary)).data);
}
