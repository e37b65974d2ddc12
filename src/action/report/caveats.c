/* SPDX-License-Identifier: MIT */
#include "action/report/caveats.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "action/report/culled.h"
#include "action/report/early_end.h"
#include "action/report/losses.h"
#include "base/events.h"
#include "base/style.h"
#include "base/text.h"
#include "query/library_frames.h"
#include "query/missing_symbols.h"
#include "query/outside.h"
#include "trace/code_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

static void text_caveat(struct sink *out, const char *name, uint64_t count, const char *meaning)
{
	if (count)
		sink_format(out, "  %s: %s%s\n", name, text_count(count).data, meaning);
}

static void text_sized_caveat(struct sink *out, const char *name, uint64_t count, uint64_t bytes, const char *meaning)
{
	if (count)
		sink_format(out, "  %s: %s, %s%s\n", name, text_count(count).data, text_bytes(bytes).data, meaning);
}

/* Beside stacks that lack their outer part, how many have it. */
static void text_whole(struct sink *out, const struct trace_dictionary *dictionary)
{
	const struct stack_ends *ends = &dictionary->ends;
	if (dictionary->is_whole_known && (ends->truncated || ends->unwindless))
		sink_format(out, "  whole stacks: %s, of %s events\n", text_count(ends->whole).data,
			    text_count(dictionary->event_count).data);
}

static void text_without_symbols(struct sink *out, const struct action_source *source, bool asks_packages)
{
	enum { NAMES_MAX = 5 };
	size_t without;
	const char *const *images = heap_names_without_symbols(source->names, &without);
	for (size_t i = 0; i < without && i < NAMES_MAX; i++)
		sink_format(out, "%s%s", i ? ", " : "  symbols incomplete for ", text_shown(images[i]));
	if (without > NAMES_MAX)
		sink_format(out, " and %zu more images", without - NAMES_MAX);
	if (!without)
		return;
	char *advice = missing_symbols_advice(source->names, asks_packages);
	sink_format(out, "\n  %s\n", advice);
	free(advice);
}

/* A Python interpreter on the stacks, without Python frames, is one that the recorder left alone. */
static void text_without_python(struct sink *out, const struct action_source *source)
{
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	for (uint32_t i = 0; !trace_has_python(dictionary) && i < dictionary->image_count; i++) {
		const char *name = text_file_name(dictionary->images[i].path);
		if (!library_is_interpreter(name) || !heap_names_has_image(source->names, name))
			continue;
		sink_format(out,
			    "  no Python frames: %s is not CPython 3.8 to 3.14 with the global lock, or an older xheap "
			    "recorded it\n",
			    text_shown(name));
		return;
	}
}

/* A runtime on the stacks, with code that it has compiled and no name of it, was not asked to name it. */
static void text_without_jit(struct sink *out, const struct action_source *source)
{
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	bool is_nameless = trace_has_nameless(dictionary);
	for (uint32_t i = 0; is_nameless && i < dictionary->image_count; i++) {
		const char *name = text_file_name(dictionary->images[i].path), *advice = library_runtime_advice(name);
		if (!advice || !heap_names_has_image(source->names, name))
			continue;
		sink_format(out, "  no names of functions that %s compiles: %s (docs/jit.md)\n", text_shown(name),
			    advice);
		return;
	}
}

/* The caveats about missing names. */
enum missing_name { NAMELESS_PYTHON, NAMELESS_JIT, NAMELESS_SYMBOLS, NAMELESS_KINDS };

/* Set which names are missing on the stack of a site, of those that `may` be: of code that a runtime compiles, and of
   the function that a report shows first; and whether an interpreter of Python is on it. */
static void site_miss(const struct action_source *source, uint32_t site, const bool may[NAMELESS_KINDS],
		      bool missing[NAMELESS_KINDS])
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	bool has_function = false;
	for (uint32_t at = source->table->sites[site].stack; at && may[NAMELESS_JIT]; at = dictionary->nodes[at].parent)
		missing[NAMELESS_JIT] |= trace_frame_is_nameless(&dictionary->frames[dictionary->nodes[at].frame]);
	for (uint32_t at = heap_names_site(source->names, &source->table->sites[site]);
	     at && (!has_function || may[NAMELESS_PYTHON]); at = heap_names_frame(source->names, at)->parent) {
		const struct heap_name *name =
			heap_names_name(source->names, heap_names_frame(source->names, at)->name);
		missing[NAMELESS_PYTHON] |= may[NAMELESS_PYTHON] && name->image && library_is_interpreter(name->image);
		if (has_function || name->is_entry || name->is_mark || name->is_library)
			continue;
		has_function = true;
		missing[NAMELESS_SYMBOLS] = heap_name_is_offset(name);
	}
}

static bool has_interpreter(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->image_count; i++)
		if (library_is_interpreter(text_file_name(dictionary->images[i].path)))
			return true;
	return false;
}

/* Set which names are missing on stacks that have at least half of the bytes of the peak, or of those that are
   outstanding: a reader knows this first. */
static void most_miss(const struct action_source *source, bool most[NAMELESS_KINDS])
{
	const struct heap_window *window = source->window;
	uint64_t peak[NAMELESS_KINDS] = {0}, outstanding[NAMELESS_KINDS] = {0};
	const bool may[NAMELESS_KINDS] = {[NAMELESS_PYTHON] = has_interpreter(source->table->dictionary),
					  [NAMELESS_JIT] = trace_has_nameless(source->table->dictionary),
					  [NAMELESS_SYMBOLS] = true};
	heap_names_shorten(source->names);
	for (uint32_t i = 0; heap_window_is_simple(window) && i < window->cell_count; i++) {
		const struct heap_numbers *numbers = &window->numbers[i];
		bool missing[NAMELESS_KINDS] = {false};
		if (!numbers->peak_bytes && !numbers->outstanding_bytes)
			continue;
		site_miss(source, window->cells[i].site, may, missing);
		for (unsigned kind = 0; kind < NAMELESS_KINDS; kind++) {
			peak[kind] += missing[kind] ? numbers->peak_bytes : 0;
			outstanding[kind] += missing[kind] ? numbers->outstanding_bytes : 0;
		}
	}
	for (unsigned kind = 0; kind < NAMELESS_KINDS; kind++)
		most[kind] = (peak[kind] && peak[kind] >= window->totals.peak_bytes / 2) ||
			     (outstanding[kind] && outstanding[kind] >= window->totals.outstanding_bytes / 2);
}

/* Say which names are missing, of the kinds that concern most bytes, or of the others. */
static void text_nameless(struct sink *out, const struct action_source *source, bool asks_packages,
			  const bool most[NAMELESS_KINDS], bool of_most)
{
	if (most[NAMELESS_PYTHON] == of_most)
		text_without_python(out, source);
	if (most[NAMELESS_JIT] == of_most)
		text_without_jit(out, source);
	if (most[NAMELESS_SYMBOLS] == of_most)
		text_without_symbols(out, source, asks_packages);
}

/* An empty answer has a reason. */
static void text_outside(struct sink *out, const struct action_source *source)
{
	struct heap_outside found[HEAP_OUTSIDE_MAX];
	unsigned count = heap_outside_find(source->filter, source->window->range, source->table->duration_ns, found);
	for (unsigned i = 0; i < count; i++)
		sink_format(out, "  %s\n", found[i].text);
}

/* most: the kinds of missing names that stand first. */
static void lines_put(struct sink *out, const struct action_source *source, bool asks_packages,
		      const bool most[NAMELESS_KINDS])
{
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	const struct heap_window *window = source->window;
	const struct losses losses = losses_sum(dictionary);
	const bool is_sample = source->table->sample_bytes > 0;
	text_outside(out, source);
	if (source->session)
		sink_format(out, "  session %s still records: this is what it has recorded up to now\n",
			    text_shown(source->session));
	else
		losses_text_cut(out, source->path, dictionary);
	early_end_text(out, dictionary, "  ");
	text_nameless(out, source, asks_packages, most, true);
	losses_text_earlier(out, dictionary, "  ");
	if (is_sample)
		sink_format(
			out,
			"  a sample, of one byte in %s asked for: what is marked ~ is an estimate; errors are standard "
			"errors\n",
			text_bytes(source->table->sample_bytes).data);
	if (is_sample)
		text_caveat(out, "recorded blocks of annotated heaps", source->table->nested_count,
			    " (what they lie in need not be in the sample: they are in no total; -heaps and -heap NAME "
			    "show them)");
	if (losses.events) {
		sink_format(out, "  lost events: %s", text_count(losses.events).data);
		losses_text_reason(out, dictionary);
		sink_put(out, '\n');
	}
	text_caveat(out, "lost stacks", losses.stacks, "");
	losses_text_gaps(out, dictionary);
	losses_text_calls(out, dictionary, "xheap info has the reasons");
	losses_text_dropped(out, dictionary);
	losses_text_folded(out, dictionary);
	if (window->folded_count)
		sink_text(out, "  median lifetimes of rows with folded blocks are known to a sixteenth\n");
	if (window->peak_from_ns > window->range.to_ns)
		sink_text(out, "  the peak is not known: it was when blocks that ended are folded\n");
	else if (window->peak_from_ns > window->range.from_ns)
		sink_format(out,
			    "  the peak is that of the time behind %s: what of this question was live before is not "
			    "known\n",
			    text_duration(window->peak_from_ns - 1).data);
	text_caveat(out, "events without a heap", dictionary->statistics.heapless,
		    " (there were too many heaps: their blocks end with no heap)");
	text_caveat(out, "stacks without their Python frames, at least", dictionary->statistics.pythonless,
		    " (the interpreter's structures were not as expected, there were too many functions, or another"
		    " interpreter called it)");
	text_caveat(out, "truncated stacks", dictionary->ends.truncated, "");
	losses_text_unwindless(out, dictionary);
	text_whole(out, dictionary);
	text_caveat(out, "double frees", source->double_frees,
		    " (of blocks that had been freed; xheap explain has the stacks)");
	text_caveat(out, "unknown frees", source->table->unknown_frees - source->double_frees,
		    dictionary->fold_count && !dictionary->dropped_events
			    ? " (of addresses that were not live, or of what a child had inherited that is folded)"
		    : dictionary->dropped_events
			    ? " (of blocks from what is not kept, or of addresses that were not live)"
		    : losses_has_option(dictionary, "attached") ? " (of blocks from before the recording)"
								: " (of addresses that were not live)");
	text_caveat(out, "order conflicts", source->table->order_conflicts,
		    " (blocks that began where another was live)");
	text_sized_caveat(out, "uncertain blocks", window->uncertain_count, window->uncertain_bytes,
			  " (may have been freed in a gap)");
	text_sized_caveat(out, "earlier blocks", window->earlier_count, window->earlier_bytes,
			  " (from before the trace: in the peak, in no total)");
	text_nameless(out, source, asks_packages, most, false);
}

void caveats_lines(struct sink *out, const struct action_source *source, bool asks_packages)
{
	lines_put(out, source, asks_packages, (const bool[NAMELESS_KINDS]){false});
}

static void text_put(struct sink *out, const struct action_input *input, const bool most[NAMELESS_KINDS])
{
	struct sink to;
	sink_to_memory(&to);
	assert(input->source_count == 1);
	lines_put(&to, input->sources, input->asks_packages, most);
	char *lines = sink_take(&to, NULL);
	text_wrap_styled(out, *lines ? lines : "  nothing was lost, cut short or contradictory", &input->layout,
			 input->is_colored && *lines, STYLE_CAVEAT);
	free(lines);
	culled_text(out, input);
}

void caveats_text(struct sink *out, const struct action_input *input)
{
	text_put(out, input, (const bool[NAMELESS_KINDS]){false});
}

void caveats_text_by_weight(struct sink *out, const struct action_input *input)
{
	bool most[NAMELESS_KINDS];
	most_miss(input->sources, most);
	text_put(out, input, most);
}

static const char *symbols_word(const struct action_source *source, size_t without)
{
	if (!without)
		return "full";
	return without < heap_names_image_count(source->names) ? "partial" : "none";
}

void caveats_json(struct json *json, const struct action_source *source)
{
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	const struct heap_table *table = source->table;
	const bool is_sample = source->table->sample_bytes > 0;
	const struct heap_window *window = source->window;
	size_t without;
	const char *const *images = heap_names_without_symbols(source->names, &without);
	if (is_sample)
		json_count(json, "sample_bytes", table->sample_bytes);
	losses_json_calls(json, dictionary);
	early_end_json(json, dictionary);
	losses_json_gaps(json, dictionary);
	losses_json_dropped(json, dictionary);
	losses_json_folded(json, dictionary);
	losses_json_stack_ends(json, dictionary);
	if (is_sample)
		json_count(json, "annotated_blocks", table->nested_count);
	if (dictionary->statistics.heapless)
		json_count(json, "events_without_heap", dictionary->statistics.heapless);
	if (dictionary->statistics.pythonless)
		json_count(json, "pythonless_stacks", dictionary->statistics.pythonless);
	json_count(json, "unknown_frees", table->unknown_frees);
	json_count(json, "order_conflicts", table->order_conflicts);
	json_count(json, "failed", dictionary->failed_count);
	json_begin_object(json, "earlier");
	json_count(json, "count", window->earlier_count);
	json_count(json, "bytes", window->earlier_bytes);
	losses_json_earlier(json, "missing", dictionary);
	json_end_object(json);
	json_begin_object(json, "uncertain");
	json_count(json, "count", window->uncertain_count);
	json_count(json, "bytes", window->uncertain_bytes);
	json_end_object(json);
	json_text(json, "symbols", symbols_word(source, without));
	json_texts(json, "images_without_symbols", images, without);
}

void caveats_json_range(struct json *json, const struct action_source *source)
{
	struct heap_range range = source->window->range;
	struct heap_outside found[HEAP_OUTSIDE_MAX];
	unsigned count = heap_outside_find(source->filter, range, source->table->duration_ns, found);
	json_begin_object(json, "range");
	json_time(json, "from_us", range.from_ns);
	json_time(json, "to_us", range.to_ns);
	json_end_object(json);
	if (!count)
		return;
	json_begin_object(json, "outside");
	for (unsigned i = 0; i < count; i++)
		json_text(json, found[i].what, found[i].is_after ? "after" : "before");
	json_end_object(json);
}
