/* SPDX-License-Identifier: MIT */
#include "export/clickhouse.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "base/text.h"
#include "export/export.h"
#include "export/export_tree.h"
#include "table/weight.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* A server may forget names that it has not seen for long. */
#define HOUR_NS (INT64_C(3600) * 1000000000)
#define WHOLE_EVERY_NS HOUR_NS
#define NAMED_EVERY_NS (24 * HOUR_NS)

/* ---- values ---- */

static void put_number(struct sink *out, uint64_t number)
{
	sink_bytes(out, (const char *)&number, sizeof(number));
}

static void put_small(struct sink *out, uint32_t number)
{
	sink_bytes(out, (const char *)&number, sizeof(number));
}

static void put_length(struct sink *out, uint64_t length)
{
	enum { DIGIT_BITS = 7 };
	for (; length >> DIGIT_BITS; length >>= DIGIT_BITS)
		sink_put(out, (char)(length | 1U << DIGIT_BITS));
	sink_put(out, (char)length);
}

static void put_real(struct sink *out, double number)
{
	sink_bytes(out, (const char *)&number, sizeof(number));
}

static void put_text(struct sink *out, const char *text)
{
	const size_t length = strlen(text);
	put_length(out, length);
	sink_bytes(out, text, length);
}

/* ---- stacks ---- */

/* Nodes that differ in offsets, lines, directories or versions of files only are one stack, in this trace and in those
   of other hosts. */
static uint64_t frame_id(const struct export_frame *frame, uint64_t caller)
{
	const char *image = text_file_name(frame->image);
	const struct {
		uint64_t caller, text, image;
	} identity = {caller, XXH3_64bits(frame->text, strlen(frame->text)),
		      XXH3_64bits(image, text_unversioned_size(image, strlen(image)))};
	return XXH3_64bits(&identity, sizeof(identity));
}

static struct clickhouse_stack *stack_of(struct clickhouse_past *past, uint64_t id, const struct export_frame *leaf)
{
	bool added;
	const uint32_t count = past->map.count;
	uint32_t *known = map_add(&past->map, id, &added);
	if (added) {
		memory_grow(past->stacks, count, past->capacity);
		past->stacks[count] = (struct clickhouse_stack){.id = id, .function = frame_id(leaf, 0)};
		*known = count;
	}
	return &past->stacks[*known];
}

/* A node comes behind its caller. */
static void stacks_take(struct clickhouse_past *past, const struct export_tree *tree)
{
	const uint64_t sample_bytes = tree->source->table->sample_bytes;
	uint64_t *ids = memory_zeroed(tree->node_count, sizeof(*ids));
	for (uint32_t i = 0; i < past->map.count; i++) {
		struct clickhouse_stack *stack = &past->stacks[i];
		stack->now_bytes = stack->now_objects = stack->made_bytes = stack->made_objects = 0;
		stack->now_variance = 0;
		stack->leaf = 0;
	}
	for (uint32_t i = 1; i < tree->node_count; i++) {
		const struct export_node *node = &tree->nodes[i];
		const struct export_frame *frame = export_tree_frame(tree, i);
		ids[i] = frame_id(frame, ids[node->parent]);
		if (!export_node_has_blocks(node))
			continue;
		struct clickhouse_stack *stack = stack_of(past, ids[i], frame);
		stack->now_bytes += node->values[EXPORT_OUTSTANDING_BYTES];
		stack->now_objects += node->values[EXPORT_OUTSTANDING_COUNT];
		stack->made_bytes += node->values[EXPORT_TOTAL_BYTES];
		stack->made_objects += node->values[EXPORT_TOTAL_COUNT];
		stack->leaf = i;
	}
	for (uint32_t i = 0; i < past->map.count; i++)
		past->stacks[i].now_variance =
			heap_sample_variance(sample_bytes, past->stacks[i].now_bytes, past->stacks[i].now_objects);
	free(ids);
}

static bool is_named(const struct clickhouse_past *past, const struct clickhouse_stack *stack, int64_t now_ns)
{
	return !past->is_lost && stack->named_ns && now_ns - stack->named_ns < NAMED_EVERY_NS;
}

static bool is_sent(const struct clickhouse_stack *stack, bool is_whole)
{
	return stack->made_objects || stack->made_bytes || stack->now_bytes != stack->inuse_bytes ||
	       stack->now_objects != stack->inuse_objects || (is_whole && (stack->now_bytes || stack->now_objects));
}

/* ---- the row ---- */

enum { STACK, FUNCTION, BYTES_STEP, OBJECTS_STEP, VARIANCE_STEP, HELD_STEP, MADE_BYTES, MADE_OBJECTS, COLUMNS };

/* Steps add up to what is in use: those of a whole push begin anew. `held`: whether it is anything. */
static void stack_put(const struct clickhouse_stack *stack, bool is_whole, int column, struct sink *out)
{
	const uint64_t bytes = is_whole ? 0 : stack->inuse_bytes, objects = is_whole ? 0 : stack->inuse_objects;
	const uint64_t values[COLUMNS] = {[STACK] = stack->id,
					  [FUNCTION] = stack->function,
					  [BYTES_STEP] = stack->now_bytes - bytes,
					  [OBJECTS_STEP] = stack->now_objects - objects,
					  [MADE_BYTES] = stack->made_bytes,
					  [MADE_OBJECTS] = stack->made_objects};
	if (column == VARIANCE_STEP)
		put_real(out, stack->now_variance - (is_whole ? 0 : stack->variance));
	else if (column == HELD_STEP)
		sink_put(out, (char)((stack->now_bytes > 0) - (bytes > 0)));
	else
		put_number(out, values[column]);
}

static void stacks_write(const struct clickhouse_past *past, bool is_whole, struct sink *out)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < past->map.count; i++)
		count += is_sent(&past->stacks[i], is_whole);
	for (int column = 0; column < COLUMNS; column++) {
		put_length(out, count);
		for (uint32_t i = 0; i < past->map.count; i++)
			if (is_sent(&past->stacks[i], is_whole))
				stack_put(&past->stacks[i], is_whole, column, out);
	}
}

/* The frames from inside out: their functions, or the files that have them. */
static void frames_write(const struct export_tree *tree, uint32_t leaf, bool has_images, struct sink *out)
{
	uint64_t depth = 0;
	for (uint32_t at = leaf; at; at = tree->nodes[at].parent)
		depth++;
	put_length(out, depth);
	for (uint32_t at = leaf; at; at = tree->nodes[at].parent) {
		const struct export_frame *frame = export_tree_frame(tree, at);
		put_text(out, has_images ? frame->image : frame->text);
	}
}

/* The names of stacks that no push had for long. */
static void names_write(struct clickhouse_past *past, const struct export_tree *tree, bool is_whole, struct sink *out)
{
	const int64_t now_ns = export_range(tree).to_ns;
	uint32_t *unnamed = memory_resize(NULL, (size_t)past->map.count + 1, sizeof(*unnamed)), count = 0;
	for (uint32_t i = 0; i < past->map.count; i++) {
		struct clickhouse_stack *stack = &past->stacks[i];
		if (!stack->leaf || !is_sent(stack, is_whole) || is_named(past, stack, now_ns))
			continue;
		stack->named_ns = now_ns;
		unnamed[count++] = i;
	}
	put_length(out, count);
	for (uint32_t i = 0; i < count; i++)
		put_number(out, past->stacks[unnamed[i]].id);
	for (int has_images = 0; has_images < 2; has_images++) {
		put_length(out, count);
		for (uint32_t i = 0; i < count; i++)
			frames_write(tree, past->stacks[unnamed[i]].leaf, has_images, out);
	}
	free(unnamed);
}

static const char *label_of(const struct report *report, const char *key)
{
	for (size_t i = 0; i < report->label_count; i++)
		if (!strcmp(report->labels[i].key, key))
			return report->labels[i].value;
	return "";
}

/* What is in use altogether. */
static void inuse_write(const struct clickhouse_past *past, struct sink *out)
{
	uint64_t bytes = 0, objects = 0;
	double variance = 0;
	for (uint32_t i = 0; i < past->map.count; i++) {
		const struct clickhouse_stack *stack = &past->stacks[i];
		bytes += stack->now_bytes;
		objects += stack->now_objects;
		variance += stack->now_variance;
	}
	put_number(out, bytes);
	put_number(out, objects);
	put_real(out, variance);
}

static void labels_write(const struct report *report, struct sink *out)
{
	for (int is_value = 0; is_value < 2; is_value++) {
		put_length(out, report->label_count);
		for (size_t i = 0; i < report->label_count; i++)
			put_text(out, is_value ? report->labels[i].value : report->labels[i].key);
	}
}

static void push_write(struct clickhouse_past *past, const struct export_tree *tree, bool is_whole, struct sink *out)
{
	const struct action_source *source = tree->source;
	const struct heap_range range = export_range(tree);
	const int64_t start_ns = trace_dictionary(source->trace)->start_realtime_ns;
	put_text(out, label_of(tree->report, "host.name"));
	put_text(out, past->name);
	put_text(out, label_of(tree->report, "service.name"));
	put_text(out, label_of(tree->report, "service.version"));
	put_number(out, past->session);
	put_small(out, past->whole);
	put_small(out, past->pushes);
	put_number(out, (uint64_t)start_ns);
	put_number(out, (uint64_t)(start_ns + range.from_ns));
	put_number(out, (uint64_t)past->time_ns);
	put_number(out, source->table->sample_bytes);
	inuse_write(past, out);
	labels_write(tree->report, out);
	stacks_write(past, is_whole, out);
	names_write(past, tree, is_whole, out);
}

/* What the push has is what the next one goes on from. */
static void past_settle(struct clickhouse_past *past)
{
	for (uint32_t i = 0; i < past->map.count; i++) {
		struct clickhouse_stack *stack = &past->stacks[i];
		stack->inuse_bytes = stack->now_bytes;
		stack->inuse_objects = stack->now_objects;
		stack->variance = stack->now_variance;
	}
	past->pushes++;
	past->is_lost = false;
}

void export_clickhouse(const struct report *report, struct sink *out)
{
	struct clickhouse_past *past = report->clickhouse;
	struct export_tree tree;
	export_tree_make(&tree, report);
	const int64_t now_ns = export_range(&tree).to_ns;
	const bool is_whole = !past->pushes || past->is_lost || now_ns - past->whole_ns >= WHOLE_EVERY_NS;
	if (is_whole) {
		past->whole = past->pushes;
		past->whole_ns = now_ns;
	}
	stacks_take(past, &tree);
	push_write(past, &tree, is_whole, out);
	past_settle(past);
	export_tree_fini(&tree);
}

void clickhouse_past_fini(struct clickhouse_past *past)
{
	map_fini(&past->map);
	free(past->stacks);
	past->stacks = NULL;
}
