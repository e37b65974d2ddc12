/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "action/leaks/leaks.h"
#include "action/report/losses.h"
#include "action/report/stack_view.h"
#include "base/text.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

/* Of the sums, and of the rows of a state. */
static const char *const titles[REACH_STATE_COUNT] = {
	[REACH_LOST] = "lost",
	[REACH_INDIRECT] = "only from lost blocks",
	[REACH_INTERIOR] = "only by a pointer inside",
	[REACH_START] = "reachable",
};

/* The states are those of LeakSanitizer, which has no lost block in a circle. */
static void put_sums(const struct leaks *leaks, struct sink *out)
{
	enum { BLOCKS_WIDTH = 12, BYTES_WIDTH = 12 };
	sink_format(out, "\n  %*s  %*s\n", BLOCKS_WIDTH, "blocks", BYTES_WIDTH, "size");
	for (int i = 0; i < REACH_STATE_COUNT; i++)
		sink_format(out, "  %*s  %*s  %s\n", BLOCKS_WIDTH, text_count(leaks->sums[i].count).data, BYTES_WIDTH,
			    text_bytes(leaks->sums[i].bytes).data,
			    i == REACH_START ? "reachable, in none of the rows" : titles[i]);
	/* A filter may leave the others out. */
	if (!leaks->sums[REACH_LOST].count && leaks->sums[REACH_INDIRECT].count && !leaks->question.asked->note_count)
		sink_text(out,
			  "  lost in circles: these blocks point to each other, and no pointer from elsewhere leads "
			  "there\n");
}

static void put_thread(const struct leaks *leaks, const struct leak_row *row, struct sink *out)
{
	const struct trace_dictionary *dictionary = leaks->source->table->dictionary;
	if (row->is_of_threads) {
		sink_text(out, ", by several threads");
		return;
	}
	if (row->thread >= dictionary->thread_count || dictionary->threads[row->thread].tid == TRACE_TID_NONE)
		return;
	sink_format(out, ", by thread %" PRIu32, dictionary->threads[row->thread].tid);
	if (*dictionary->threads[row->thread].name)
		sink_format(out, " (%s)", text_shown(dictionary->threads[row->thread].name));
}

/* Since when the blocks are lost. */
static void put_since(const struct leaks *leaks, const struct leak_row *row, struct sink *out)
{
	if (!row->since)
		return;
	sink_format(out, "  lost since look %" PRIu32 " of %" PRIu32 ", for %s", row->since, leaks->question.look,
		    text_duration(leaks->at_ns - row->since_ns).data);
	if (row->since_count < row->count)
		sink_format(out, ": %s block%s; the others since later ones", text_count(row->since_count).data,
			    text_plural(row->since_count));
	sink_put(out, '\n');
}

static void put_row(const struct leaks *leaks, const struct leak_row *row, struct sink *out)
{
	enum { INDENT = 4 };
	const struct stack_view view = {.input = leaks->input, .indent = INDENT, .has_places = true};
	sink_format(out, "\n%s in %s block%s, %s", text_bytes(row->bytes).data, text_count(row->count).data,
		    text_plural(row->count), titles[row->state]);
	if (row->is_earlier)
		sink_text(out, ", allocated before the recording");
	else
		sink_format(out, ", %s%s old", row->count > 1 ? "up to " : "", text_duration(row->oldest_ns).data);
	put_thread(leaks, row, out);
	sink_put(out, '\n');
	put_since(leaks, row, out);
	if (row->node)
		stack_view_print(&view, row->node, out);
	else if (!row->is_earlier)
		sink_text(out, "    [no stack]\n");
}

static void put_filters(const struct leaks *leaks, struct sink *out)
{
	const struct filter_request *asked = leaks->question.asked;
	const struct heap_range range = leaks->source->window->range;
	if (leaks->question.has_range)
		sink_format(out, "  allocated %s\n", text_span(range.from_ns, range.to_ns).data);
	for (size_t i = 0; i < asked->note_count; i++)
		sink_format(out, "  %s %s\n", asked->notes[i].name, text_shown(asked->notes[i].text));
}

/* How many looks there were, and what earlier ones found and this one did not. */
static void put_looks(const struct leaks *leaks, struct sink *out)
{
	static const char *const words[LOOKED_STATE_COUNT] = {
		[LOOKED_REACHABLE] = "reachable now",
		[LOOKED_FREED] = "freed since",
	};
	if (leaks->question.look > leaks->first_look)
		sink_format(out, "  look %" PRIu32 ", %s after the first one\n", leaks->question.look,
			    text_duration(leaks->at_ns - leaks->first_ns).data);
	else
		sink_format(out, "  look %" PRIu32 ", the first one at this process\n", leaks->question.look);
	for (int i = LOOKED_REACHABLE; i < LOOKED_STATE_COUNT; i++)
		if (leaks->cleared[i].count)
			sink_format(out, "  %s block%s, %s, that an earlier look found lost: %s, and not accused\n",
				    text_count(leaks->cleared[i].count).data, text_plural(leaks->cleared[i].count),
				    text_bytes(leaks->cleared[i].bytes).data, words[i]);
}

/* What the rows that are left out have: the rows and they are the sums of all states but the reachable one. */
static void put_cut(const struct leaks *leaks, size_t shown, struct sink *out)
{
	uint64_t count = 0, bytes = 0;
	const size_t left = leaks->row_count - shown;
	for (size_t i = shown; i < leaks->row_count; i++) {
		count += leaks->rows[i].count;
		bytes += leaks->rows[i].bytes;
	}
	if (left)
		sink_format(out, "\n... and %zu more stack%s with %s in %s block%s: -top %zu\n", left,
			    text_plural(left), text_bytes(bytes).data, text_count(count).data, text_plural(count),
			    leaks->row_count);
}

static void put_process(const struct leaks *leaks, struct sink *out)
{
	const struct trace_dictionary *dictionary = leaks->source->table->dictionary;
	const struct trace_process *process = &dictionary->processes[leaks->process];
	sink_format(out, "process %s (%s)\n", text_pid(process->pid).data, text_shown(process->command));
	const struct text missing = losses_missing_text(dictionary);
	/* A trace that is being written lacks its end, which does not matter here. */
	if (!losses_is_complete(dictionary) && (missing.data[0] || !leaks->question.is_running))
		sink_format(out, "  the trace is not complete%s%s: blocks may be missing, or have been freed\n",
			    missing.data[0] ? ": " : "", missing.data);
	if (leaks->question.is_running)
		sink_format(out, "  all its threads were paused for %s\n",
			    text_duration((int64_t)leaks->question.pause_ns).data);
	if (leaks->question.looks)
		put_looks(leaks, out);
	put_filters(leaks, out);
	put_sums(leaks, out);
	const size_t shown = leaks->row_count < leaks->question.top ? leaks->row_count : leaks->question.top;
	for (size_t i = 0; i < shown; i++)
		put_row(leaks, &leaks->rows[i], out);
	put_cut(leaks, shown, out);
}

void leaks_text(const struct leaks *leaks, size_t count, struct sink *out)
{
	for (size_t i = 0; i < count; i++) {
		if (i)
			sink_put(out, '\n');
		put_process(&leaks[i], out);
	}
}
