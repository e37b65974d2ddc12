/* SPDX-License-Identifier: MIT */
/*
 * The format of OpenTelemetry's profiles (proto 1.10 and later): an ExportProfilesServiceRequest. A profile there has
 * one type of value, so a trace is several profiles, over one dictionary. The dictionary comes behind them: its tables
 * fill while the profiles are written. Row 0 of each table is empty.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/protobuf.h"
#include "export/export.h"
#include "export/export_links.h"
#include "export/export_tree.h"
#include "query/by.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* Fields, by message. */
enum { REQUEST_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE = 2 };
enum {
	RESOURCE_ATTRIBUTE = 1,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILE = 2,
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2
};
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2, ANY_TEXT = 1, ANY_NUMBER = 3 };
enum {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_TEXT = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
	TABLES
};
enum {
	PROFILE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_ID = 7
};
enum { TYPE_NAME = 1, TYPE_UNIT = 2 };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_LINK = 3, SAMPLE_VALUES = 4 };
enum { STACK_LOCATIONS = 1 };
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINE = 3 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_NAME = 1, FUNCTION_MANGLED = 2, FUNCTION_FILE = 3 };
enum { MAPPING_START = 1, MAPPING_LIMIT = 2, MAPPING_FILE = 4, MAPPING_ATTRIBUTES = 5 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };
enum { LINK_TRACE = 1, LINK_SPAN = 2, TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, PROFILE_ID_BYTES = 16 };

static const enum export_figure shown[] = {EXPORT_TOTAL_BYTES, EXPORT_TOTAL_COUNT, EXPORT_OUTSTANDING_BYTES,
					   EXPORT_OUTSTANDING_COUNT};
enum { SHOWN = sizeof(shown) / sizeof(*shown) };

struct otlp {
	struct export_tree tree;
	const struct trace_dictionary *dictionary;
	struct sink samples[SHOWN]; /* of each profile */
	struct sink tables;         /* rows of the dictionary, in any order of the tables */
	struct sink message, inner; /* under construction */
	struct intern rows[TABLES]; /* keys of the rows of each table, but of locations */
	struct export_links links;
	struct export_places locations;
	uint64_t *numbers; /* room for the longest stack */
	size_t number_capacity;
	const struct trace_mapping **mappings;
};

/* Return the number of the row with this key. A row that is new is the caller's to write. */
static uint32_t row_of(struct otlp *otlp, unsigned table, const void *key, size_t size, bool *is_new)
{
	const uint32_t known = otlp->rows[table].count, row = intern_bytes(&otlp->rows[table], key, size);
	*is_new = row == known;
	return row;
}

static uint32_t text_of(struct otlp *otlp, const char *text)
{
	return intern_text(&otlp->rows[DICTIONARY_TEXT], text);
}

/* ---- attributes ---- */

static void any_text(struct sink *out, unsigned field, const char *text, struct sink *room)
{
	protobuf_bytes(room, ANY_TEXT, text, strlen(text));
	protobuf_message(out, field, room);
}

/* An attribute of the dictionary, whose rows are unlike each other. */
static uint32_t attribute_of(struct otlp *otlp, const char *key, const char *text)
{
	const uint32_t pair[] = {text_of(otlp, key), text_of(otlp, text)};
	bool is_new;
	const uint32_t id = row_of(otlp, DICTIONARY_ATTRIBUTE, pair, sizeof(pair), &is_new);
	if (is_new) {
		struct sink row;
		sink_to_memory(&row);
		protobuf_number(&row, ATTRIBUTE_KEY, pair[0]);
		any_text(&row, ATTRIBUTE_VALUE, text, &otlp->inner);
		protobuf_message(&otlp->tables, DICTIONARY_ATTRIBUTE, &row);
		sink_end(&row);
	}
	return id;
}

/* ---- what a stack refers to ---- */

struct otlp_function {
	uint32_t name, mangled, file;
};

static uint32_t function_of(struct otlp *otlp, const struct export_frame *frame)
{
	const struct otlp_function key = {text_of(otlp, frame->text), text_of(otlp, frame->mangled),
					  text_of(otlp, frame->source)};
	bool is_new;
	const uint32_t id = row_of(otlp, DICTIONARY_FUNCTION, &key, sizeof(key), &is_new);
	if (is_new) {
		protobuf_number(&otlp->inner, FUNCTION_NAME, key.name);
		protobuf_number(&otlp->inner, FUNCTION_MANGLED, key.mangled);
		protobuf_number(&otlp->inner, FUNCTION_FILE, key.file);
		protobuf_message(&otlp->tables, DICTIONARY_FUNCTION, &otlp->inner);
	}
	return id;
}

static void mapping_write(struct otlp *otlp, uint32_t image)
{
	const struct trace_mapping *mapping = otlp->mappings[image];
	const struct trace_image *file = &otlp->dictionary->images[image];
	char *digits = export_build_id(file);
	const uint64_t build_id = *digits ? attribute_of(otlp, "process.executable.build_id.gnu", digits) : 0;
	free(digits);
	protobuf_number(&otlp->inner, MAPPING_START, mapping->base);
	protobuf_number(&otlp->inner, MAPPING_LIMIT, mapping->end);
	protobuf_number(&otlp->inner, MAPPING_FILE, text_of(otlp, text_shown(file->path)));
	protobuf_packed(&otlp->inner, MAPPING_ATTRIBUTES, &build_id, build_id != 0);
	protobuf_message(&otlp->tables, DICTIONARY_MAPPING, &otlp->inner);
}

/* The mapping of a frame's image; 0: it has none. */
static uint32_t mapping_of(struct otlp *otlp, const struct export_frame *frame)
{
	if (!frame->file || !otlp->mappings[frame->image_id])
		return 0;
	bool is_new;
	const uint32_t image = frame->image_id, id = row_of(otlp, DICTIONARY_MAPPING, &image, sizeof(image), &is_new);
	if (is_new)
		mapping_write(otlp, image);
	return id;
}

/* Write the place of a node: its functions, inlined ones first, up to the one that has them all. */
static void location_write(struct otlp *otlp, uint32_t first, uint32_t last)
{
	const struct export_tree *tree = &otlp->tree;
	const struct export_frame *frame = export_tree_frame(tree, last);
	const uint32_t mapping = mapping_of(otlp, frame);
	for (uint32_t at = first;; at = tree->nodes[at].parent) {
		const struct export_frame *part = export_tree_frame(tree, at);
		const uint32_t function = function_of(otlp, part);
		protobuf_number(&otlp->inner, LINE_FUNCTION, function);
		protobuf_number(&otlp->inner, LINE_LINE, part->line);
		protobuf_message(&otlp->message, LOCATION_LINE, &otlp->inner);
		if (at == last)
			break;
	}
	protobuf_number(&otlp->message, LOCATION_MAPPING, mapping);
	/* An address that calls lies behind the call. */
	if (mapping && frame->offset)
		protobuf_number(&otlp->message, LOCATION_ADDRESS,
				frame->offset + otlp->mappings[frame->image_id]->bias - 1);
	protobuf_message(&otlp->tables, DICTIONARY_LOCATION, &otlp->message);
}

static uint32_t stack_of(struct otlp *otlp, const uint64_t *locations, size_t depth)
{
	bool is_new;
	const uint32_t id = row_of(otlp, DICTIONARY_STACK, locations, depth * sizeof(*locations), &is_new);
	if (is_new) {
		protobuf_packed(&otlp->message, STACK_LOCATIONS, locations, depth);
		protobuf_message(&otlp->tables, DICTIONARY_STACK, &otlp->message);
	}
	return id;
}

/* ---- samples ---- */

/* The stack of a leaf, and what its window is split by. */
static uint32_t leaf_stack(struct otlp *otlp, uint32_t leaf, const struct export_frame **split)
{
	const struct export_tree *tree = &otlp->tree;
	size_t depth = 0;
	for (uint32_t at = leaf; at; at = tree->nodes[at].parent) {
		if (export_tree_frame(tree, at)->is_split) {
			*split = export_tree_frame(tree, at);
			break;
		}
		const struct export_place place = export_place_of(&otlp->locations, tree, at);
		if (place.is_new)
			location_write(otlp, at, place.last);
		memory_grow(otlp->numbers, depth, otlp->number_capacity);
		otlp->numbers[depth++] = place.number;
		at = place.last;
	}
	return stack_of(otlp, otlp->numbers, depth);
}

/* Write a row of the table of links, unless it is there. */
static uint32_t link_of(struct otlp *otlp, const struct thread_context *context)
{
	bool is_new;
	const uint32_t id = row_of(otlp, DICTIONARY_LINK, context, sizeof(*context), &is_new);
	if (is_new) {
		protobuf_bytes(&otlp->inner, LINK_TRACE, (const char *)context->trace_id, TRACE_ID_BYTES);
		protobuf_bytes(&otlp->inner, LINK_SPAN, (const char *)&context->span_id, SPAN_ID_BYTES);
		protobuf_message(&otlp->tables, DICTIONARY_LINK, &otlp->inner);
	}
	return id;
}

static void leaf_write(struct otlp *otlp, uint32_t leaf)
{
	const struct export_node *node = &otlp->tree.nodes[leaf];
	const struct export_frame *split = NULL;
	bool has_value = false;
	for (unsigned i = 0; i < SHOWN; i++)
		has_value |= node->values[shown[i]] != 0;
	if (!has_value)
		return;
	const uint32_t stack = leaf_stack(otlp, leaf, &split);
	const char *key = split ? heap_by_name(otlp->tree.source->window->by) : NULL;
	const uint64_t attribute = split ? attribute_of(otlp, key, split->text) : 0;
	for (unsigned part = 0; part < export_links_parts(&otlp->links, leaf); part++) {
		uint64_t values[EXPORT_FIGURE_COUNT];
		const struct thread_context *context = export_links_part(&otlp->links, &otlp->tree, leaf, part, values);
		const uint32_t link = context ? link_of(otlp, context) : 0;
		for (unsigned i = 0; i < SHOWN; i++) {
			if (!values[shown[i]])
				continue;
			protobuf_number(&otlp->message, SAMPLE_STACK, stack);
			protobuf_packed(&otlp->message, SAMPLE_ATTRIBUTES, &attribute, split != NULL);
			protobuf_number(&otlp->message, SAMPLE_LINK, link);
			protobuf_packed(&otlp->message, SAMPLE_VALUES, &values[shown[i]], 1);
			protobuf_message(&otlp->samples[i], PROFILE_SAMPLE, &otlp->message);
		}
	}
}

/* ---- the request ---- */

static void type_write(struct otlp *otlp, struct sink *out, unsigned field, const char *name, const char *unit)
{
	protobuf_number(&otlp->inner, TYPE_NAME, text_of(otlp, name));
	protobuf_number(&otlp->inner, TYPE_UNIT, text_of(otlp, unit));
	protobuf_message(out, field, &otlp->inner);
}

static void profile_write(struct otlp *otlp, struct sink *scope, unsigned i)
{
	const struct export_figure_row *row = &export_figures[shown[i]];
	const struct action_source *source = otlp->tree.source;
	const struct heap_range range = export_range(&otlp->tree);
	struct sink *profile = &otlp->samples[i];
	char id[PROFILE_ID_BYTES];
	if (getrandom(id, sizeof(id), 0) != (ssize_t)sizeof(id))
		memset(id, (int)i + 1, sizeof(id));
	type_write(otlp, profile, PROFILE_TYPE, row->name, row->is_bytes ? "bytes" : "count");
	protobuf_fixed(profile, PROFILE_TIME, (uint64_t)(otlp->dictionary->start_realtime_ns + range.from_ns));
	protobuf_number(profile, PROFILE_DURATION, (uint64_t)(range.to_ns - range.from_ns));
	type_write(otlp, profile, PROFILE_PERIOD_TYPE, "memory", "bytes");
	protobuf_number(profile, PROFILE_PERIOD, source->table->sample_bytes ? source->table->sample_bytes : 1);
	protobuf_bytes(profile, PROFILE_ID, id, sizeof(id));
	protobuf_message(scope, SCOPE_PROFILES_PROFILE, profile);
}

static void resource_attribute(struct otlp *otlp, struct sink *resource, const char *key, const char *text)
{
	struct sink row;
	sink_to_memory(&row);
	protobuf_bytes(&row, KEY_VALUE_KEY, key, strlen(key));
	any_text(&row, KEY_VALUE_VALUE, text, &otlp->inner);
	protobuf_message(resource, RESOURCE_ATTRIBUTE, &row);
	sink_end(&row);
}

/* The first process of the trace. */
static void resource_process(struct otlp *otlp, struct sink *resource)
{
	const struct trace_dictionary *dictionary = otlp->dictionary;
	const char *path = dictionary->process_count ? text_shown(dictionary->processes[0].image) : "";
	resource_attribute(otlp, resource, "service.name", *path ? text_file_name(path) : "unknown_service");
	resource_attribute(otlp, resource, "process.executable.path", path);
	resource_attribute(otlp, resource, "process.command_line", export_command(&otlp->tree));
	protobuf_bytes(&otlp->message, KEY_VALUE_KEY, "process.pid", strlen("process.pid"));
	protobuf_number(&otlp->inner, ANY_NUMBER, export_pid(&otlp->tree));
	protobuf_message(&otlp->message, KEY_VALUE_VALUE, &otlp->inner);
	protobuf_message(resource, RESOURCE_ATTRIBUTE, &otlp->message);
}

/* What the profiles are of. */
static void resource_write(struct otlp *otlp, struct sink *profiles)
{
	const struct report *report = otlp->tree.report;
	struct sink resource;
	sink_to_memory(&resource);
	for (size_t i = 0; i < report->label_count; i++)
		resource_attribute(otlp, &resource, report->labels[i].key, report->labels[i].value);
	if (!report->label_count)
		resource_process(otlp, &resource);
	protobuf_message(profiles, RESOURCE_PROFILES_RESOURCE, &resource);
	sink_end(&resource);
}

/* Make row 0 of each table. */
static void tables_begin(struct otlp *otlp)
{
	static const unsigned empty[] = {DICTIONARY_MAPPING, DICTIONARY_LOCATION, DICTIONARY_FUNCTION,
					 DICTIONARY_ATTRIBUTE, DICTIONARY_STACK};
	static const char zero[TRACE_ID_BYTES];
	for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++)
		protobuf_bytes(&otlp->tables, empty[i], "", 0);
	protobuf_bytes(&otlp->inner, LINK_TRACE, zero, TRACE_ID_BYTES);
	protobuf_bytes(&otlp->inner, LINK_SPAN, zero, SPAN_ID_BYTES);
	protobuf_message(&otlp->tables, DICTIONARY_LINK, &otlp->inner);
	for (unsigned table = 0; table < TABLES; table++)
		intern_bytes(&otlp->rows[table], "", 0);
}

static void request_write(struct otlp *otlp, struct sink *out)
{
	struct sink profiles, scope;
	sink_to_memory(&profiles);
	sink_to_memory(&scope);
	for (uint32_t node = 0; node < otlp->tree.node_count; node++)
		leaf_write(otlp, node);
	resource_write(otlp, &profiles);
	protobuf_bytes(&otlp->inner, SCOPE_NAME, "xheap", strlen("xheap"));
	protobuf_bytes(&otlp->inner, SCOPE_VERSION, XHEAP_VERSION, strlen(XHEAP_VERSION));
	protobuf_message(&scope, SCOPE_PROFILES_SCOPE, &otlp->inner);
	for (unsigned i = 0; i < SHOWN; i++)
		profile_write(otlp, &scope, i);
	protobuf_message(&profiles, RESOURCE_PROFILES_SCOPE, &scope);
	protobuf_message(out, REQUEST_PROFILES, &profiles);
	const struct intern *texts = &otlp->rows[DICTIONARY_TEXT];
	for (uint32_t i = 0; i < texts->count; i++)
		protobuf_bytes(&otlp->tables, DICTIONARY_TEXT, texts->items[i].data, texts->items[i].size);
	protobuf_message(out, REQUEST_DICTIONARY, &otlp->tables);
	sink_end(&profiles);
	sink_end(&scope);
}

void export_otlp(const struct report *report, struct sink *out)
{
	struct otlp otlp = {.dictionary = trace_dictionary(report_source(report)->trace)};
	struct sink *const sinks[] = {&otlp.message, &otlp.inner, &otlp.tables};
	for (size_t i = 0; i < sizeof(sinks) / sizeof(*sinks); i++)
		sink_to_memory(sinks[i]);
	for (unsigned i = 0; i < SHOWN; i++)
		sink_to_memory(&otlp.samples[i]);
	tables_begin(&otlp);
	export_tree_make(&otlp.tree, report);
	export_links_make(&otlp.links, &otlp.tree, out);
	otlp.mappings = export_mappings(&otlp.tree);
	request_write(&otlp, out);
	for (size_t i = 0; i < sizeof(sinks) / sizeof(*sinks); i++)
		sink_end(sinks[i]);
	for (unsigned i = 0; i < SHOWN; i++)
		sink_end(&otlp.samples[i]);
	export_tree_fini(&otlp.tree);
	export_links_fini(&otlp.links);
	export_places_fini(&otlp.locations);
	for (unsigned table = 0; table < TABLES; table++)
		intern_fini(&otlp.rows[table]);
	free(otlp.numbers);
	free(otlp.mappings);
}
