/* SPDX-License-Identifier: MIT */
/*
 * The format of pprof: a message of protocol buffers (perftools.profiles.Profile), compressed. The head comes first,
 * with its texts: who looks for profiles need not unpack the rest of each. Samples go out as the tree has them; what
 * they refer to by number follows, and the other texts come last.
 */
#include <stdlib.h>

#include "base/digits.h"
#include "base/memory.h"
#include "base/protobuf.h"
#include "export/export.h"
#include "export/export_links.h"
#include "export/export_tree.h"
#include "export/gzip.h"
#include "export/pprof_fields.h"
#include "query/by.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* The last one is the default of older readers. */
static const enum export_figure shown[] = {EXPORT_TOTAL_COUNT, EXPORT_TOTAL_BYTES, EXPORT_OUTSTANDING_COUNT,
					   EXPORT_OUTSTANDING_BYTES};
enum { SHOWN = sizeof(shown) / sizeof(*shown) };

struct pprof {
	struct export_tree tree;
	const struct trace_dictionary *dictionary;
	struct sink *out;
	struct sink message, inner; /* under construction */
	struct intern strings, functions;
	struct export_links links;
	uint32_t written_strings;
	struct export_places locations;
	uint64_t *numbers; /* room for the longest stack */
	size_t number_capacity;
	const struct trace_mapping **mappings; /* by image: where it was first; NULL: nowhere */
};

static uint64_t string_of(struct pprof *pprof, const char *text)
{
	return intern_text(&pprof->strings, text);
}

/* ---- what a sample refers to ---- */

/* A function is the same for all its lines. */
struct pprof_function {
	uint32_t name, mangled, file;
};

static uint64_t function_of(struct pprof *pprof, const struct export_frame *frame)
{
	const struct pprof_function key = {(uint32_t)string_of(pprof, frame->text),
					   (uint32_t)string_of(pprof, frame->mangled),
					   (uint32_t)string_of(pprof, frame->source)};
	const uint32_t known = pprof->functions.count;
	const uint32_t id = intern_bytes(&pprof->functions, &key, sizeof(key));
	if (id == known) {
		protobuf_number(&pprof->inner, FUNCTION_ID, id + 1);
		protobuf_number(&pprof->inner, FUNCTION_NAME, key.name);
		protobuf_number(&pprof->inner, FUNCTION_MANGLED, key.mangled ? key.mangled : key.name);
		protobuf_number(&pprof->inner, FUNCTION_FILE, key.file);
		protobuf_message(pprof->out, PROFILE_FUNCTION, &pprof->inner);
	}
	return id + 1;
}

static const struct trace_mapping *mapping_of(const struct pprof *pprof, const struct export_frame *frame)
{
	return frame->file ? pprof->mappings[frame->image_id] : NULL;
}

static void line_add(struct pprof *pprof, const struct export_frame *frame)
{
	const uint64_t function = function_of(pprof, frame);
	protobuf_number(&pprof->inner, LINE_FUNCTION, function);
	protobuf_number(&pprof->inner, LINE_LINE, frame->line);
	protobuf_message(&pprof->message, LOCATION_LINE, &pprof->inner);
}

/* Write the place of a node: its functions, inlined ones first, up to the one that has them all. An address that calls
   lies behind the call. */
static void location_write(struct pprof *pprof, uint32_t id, uint32_t first, uint32_t last)
{
	const struct export_tree *tree = &pprof->tree;
	const struct export_frame *frame = export_tree_frame(tree, last);
	const struct trace_mapping *mapping = mapping_of(pprof, frame);
	for (uint32_t at = first;; at = tree->nodes[at].parent) {
		line_add(pprof, export_tree_frame(tree, at));
		if (at == last)
			break;
	}
	protobuf_number(&pprof->message, LOCATION_ID, id);
	if (mapping) {
		protobuf_number(&pprof->message, LOCATION_MAPPING, frame->image_id + 1);
		protobuf_number(&pprof->message, LOCATION_ADDRESS,
				frame->offset ? frame->offset + mapping->bias - 1 : 0);
	}
	protobuf_message(pprof->out, PROFILE_LOCATION, &pprof->message);
}

/* ---- samples ---- */

static void label_text(struct pprof *pprof, const char *key, const char *text)
{
	protobuf_number(&pprof->inner, LABEL_KEY, string_of(pprof, key));
	protobuf_number(&pprof->inner, LABEL_TEXT, string_of(pprof, text));
	protobuf_message(&pprof->message, SAMPLE_LABEL, &pprof->inner);
}

static void label_number(struct pprof *pprof, const char *key, uint64_t number, const char *unit)
{
	protobuf_number(&pprof->inner, LABEL_KEY, string_of(pprof, key));
	protobuf_number(&pprof->inner, LABEL_NUMBER, number);
	protobuf_number(&pprof->inner, LABEL_UNIT, string_of(pprof, unit));
	protobuf_message(&pprof->message, SAMPLE_LABEL, &pprof->inner);
}

static void label_id(struct pprof *pprof, const char *key, const void *id, size_t size)
{
	char digits[THREAD_CONTEXT_DIGITS_MAX + 1];
	digits_of_bytes(digits, id, size);
	label_text(pprof, key, digits);
}

/* Label a sample with the mean size of its blocks, as heap profiles of Go have it, with what they are for, and with the
   part of the split. */
static void labels_add(struct pprof *pprof, const uint64_t *values, const struct thread_context *context,
		       const struct export_frame *split)
{
	const struct action_source *source = pprof->tree.source;
	if (values[EXPORT_TOTAL_COUNT])
		label_number(pprof, "bytes", values[EXPORT_TOTAL_BYTES] / values[EXPORT_TOTAL_COUNT], "bytes");
	if (context && !pprof->tree.report->without_trace_ids)
		label_id(pprof, "trace_id", context->trace_id, THREAD_CONTEXT_TRACE_BYTES);
	if (context)
		label_id(pprof, "span_id", &context->span_id, THREAD_CONTEXT_SPAN_BYTES);
	if (!split)
		return;
	const uint32_t thread = heap_by_thread(source->window, source->table, split->by);
	const uint32_t process = heap_by_process(source->window, source->table, split->by);
	label_text(pprof, heap_by_name(source->window->by), split->text);
	if (thread < pprof->dictionary->thread_count)
		label_number(pprof, "tid", pprof->dictionary->threads[thread].tid, "");
	if (process < pprof->dictionary->process_count)
		label_number(pprof, "pid", pprof->dictionary->processes[process].pid, "");
}

/* Write a part of a leaf, if it is not nothing. Its places are known. */
static void part_write(struct pprof *pprof, uint32_t leaf, unsigned part, size_t depth,
		       const struct export_frame *split)
{
	uint64_t figures[EXPORT_FIGURE_COUNT], values[SHOWN], any = 0;
	const struct thread_context *context = export_links_part(&pprof->links, &pprof->tree, leaf, part, figures);
	for (unsigned i = 0; i < SHOWN; i++)
		any |= values[i] = figures[shown[i]];
	if (!any)
		return;
	protobuf_packed(&pprof->message, SAMPLE_LOCATIONS, pprof->numbers, depth);
	protobuf_packed(&pprof->message, SAMPLE_VALUES, values, SHOWN);
	labels_add(pprof, figures, context, split);
	protobuf_message(pprof->out, PROFILE_SAMPLE, &pprof->message);
}

static void sample_write(struct pprof *pprof, uint32_t leaf)
{
	const struct export_tree *tree = &pprof->tree;
	const struct export_node *node = &tree->nodes[leaf];
	const struct export_frame *split = NULL;
	size_t depth = 0;
	bool has_value = false;
	for (unsigned i = 0; i < SHOWN; i++)
		has_value |= node->values[shown[i]] != 0;
	if (!has_value)
		return;
	for (uint32_t at = leaf; at; at = tree->nodes[at].parent) {
		if (export_tree_frame(tree, at)->is_split) {
			split = export_tree_frame(tree, at);
			break;
		}
		const struct export_place place = export_place_of(&pprof->locations, tree, at);
		if (place.is_new)
			location_write(pprof, place.number, at, place.last);
		memory_grow(pprof->numbers, depth, pprof->number_capacity);
		pprof->numbers[depth++] = place.number;
		at = place.last;
	}
	for (unsigned part = 0; part < export_links_parts(&pprof->links, leaf); part++)
		part_write(pprof, leaf, part, depth, split);
}

/* ---- the rest ---- */

static void type_write(struct pprof *pprof, unsigned field, enum export_figure figure)
{
	const struct export_figure_row *row = &export_figures[figure];
	protobuf_number(&pprof->inner, TYPE_NAME, string_of(pprof, row->name));
	protobuf_number(&pprof->inner, TYPE_UNIT, string_of(pprof, row->is_bytes ? "bytes" : "count"));
	protobuf_message(pprof->out, field, &pprof->inner);
}

static void mapping_write(struct pprof *pprof, uint32_t image)
{
	const struct trace_mapping *mapping = pprof->mappings[image];
	const struct trace_image *file = &pprof->dictionary->images[image];
	char *digits = export_build_id(file);
	protobuf_number(&pprof->message, MAPPING_ID, image + 1);
	protobuf_number(&pprof->message, MAPPING_START, mapping->base);
	protobuf_number(&pprof->message, MAPPING_LIMIT, mapping->end);
	protobuf_number(&pprof->message, MAPPING_FILE, string_of(pprof, text_shown(file->path)));
	protobuf_number(&pprof->message, MAPPING_BUILD_ID, string_of(pprof, digits));
	for (unsigned field = MAPPING_HAS_FIRST; field <= MAPPING_HAS_LAST; field++)
		protobuf_number(&pprof->message, field, 1);
	protobuf_message(pprof->out, PROFILE_MAPPING, &pprof->message);
	free(digits);
}

/* "service.name=web": what the profile is of has no field. */
static void label_comment(struct pprof *pprof, const struct report_label *label)
{
	struct sink text;
	sink_to_memory(&text);
	sink_format(&text, "%s=%s", label->key, label->value);
	char *comment = sink_take(&text, NULL);
	protobuf_number(pprof->out, PROFILE_COMMENT, string_of(pprof, comment));
	free(comment);
}

static void head_write(struct pprof *pprof)
{
	const struct action_source *source = pprof->tree.source;
	const struct heap_range range = export_range(&pprof->tree);
	for (unsigned i = 0; i < SHOWN; i++)
		type_write(pprof, PROFILE_SAMPLE_TYPE, shown[i]);
	protobuf_number(pprof->out, PROFILE_TIME, (uint64_t)(pprof->dictionary->start_realtime_ns + range.from_ns));
	protobuf_number(pprof->out, PROFILE_DURATION, (uint64_t)(range.to_ns - range.from_ns));
	protobuf_number(&pprof->inner, TYPE_NAME, string_of(pprof, "space"));
	protobuf_number(&pprof->inner, TYPE_UNIT, string_of(pprof, "bytes"));
	protobuf_message(pprof->out, PROFILE_PERIOD_TYPE, &pprof->inner);
	protobuf_number(pprof->out, PROFILE_PERIOD, source->table->sample_bytes ? source->table->sample_bytes : 1);
	/* The first comment, whatever it is: labels follow. */
	const char *command = export_command(&pprof->tree);
	protobuf_number(pprof->out, PROFILE_COMMENT, string_of(pprof, *command ? command : "[no program]"));
	for (size_t i = 0; i < pprof->tree.report->label_count; i++)
		label_comment(pprof, &pprof->tree.report->labels[i]);
	protobuf_number(pprof->out, PROFILE_DEFAULT_TYPE,
			string_of(pprof, export_figures[EXPORT_OUTSTANDING_BYTES].name));
}

/* Write the texts that are new. Their order is that of their numbers, wherever they lie. */
static void strings_write(struct pprof *pprof)
{
	for (uint32_t *i = &pprof->written_strings; *i < pprof->strings.count; ++*i)
		protobuf_bytes(pprof->out, PROFILE_STRING, pprof->strings.items[*i].data,
			       pprof->strings.items[*i].size);
}

static void profile_write(struct pprof *pprof)
{
	string_of(pprof, "");
	head_write(pprof);
	strings_write(pprof);
	for (uint32_t image = 0; image < pprof->dictionary->image_count; image++)
		if (pprof->mappings[image])
			mapping_write(pprof, image);
	for (uint32_t node = 0; node < pprof->tree.node_count; node++)
		sample_write(pprof, node);
	strings_write(pprof);
}

void export_pprof(const struct report *report, struct sink *out)
{
	struct pprof pprof = {.dictionary = trace_dictionary(report_source(report)->trace)};
	struct gzip *gzip = memory_zeroed(1, sizeof(*gzip));
	gzip_begin(gzip, out);
	pprof.out = &gzip->sink;
	sink_to_memory(&pprof.message);
	sink_to_memory(&pprof.inner);
	export_tree_make(&pprof.tree, report);
	export_links_make(&pprof.links, &pprof.tree, out);
	pprof.mappings = export_mappings(&pprof.tree);
	profile_write(&pprof);
	gzip_end(gzip);
	sink_end(&pprof.message);
	sink_end(&pprof.inner);
	export_tree_fini(&pprof.tree);
	export_links_fini(&pprof.links);
	intern_fini(&pprof.strings);
	intern_fini(&pprof.functions);
	export_places_fini(&pprof.locations);
	free(pprof.numbers);
	free(pprof.mappings);
	free(gzip);
}
