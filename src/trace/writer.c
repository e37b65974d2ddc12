/* SPDX-License-Identifier: MIT */
/* Blocks of events, the room that they take, and a file's beginning and end. */
#include "base/grow.h"
#include "base/hash.h"
#include "trace/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "trace/code_rows.h"
#include "trace/encode.h"
#include "trace/ending.h"
#include "trace/fill.h"
#include "trace/gap_rows.h"
#include "trace/load_parts.h"
#include "trace/row_ids.h"

enum { DEFAULT_SEGMENT_BYTES = 64 << 20, CUT_BITS_MAX = 16 };
#define DEFAULT_SEGMENT_NS 10000000000ull

/* ---- columns of the logger ---- */

/* X(column): all columns of struct writer_events. */
/* clang-format off */
#define EVENT_COLUMNS(X) \
	X(kind) X(flags) X(entry) X(heap) X(stack) X(time) X(duration) X(address) \
	X(previous) X(size) X(usable) X(argument) \
	X(argument2) X(result)
/* clang-format on */

int writer_events_reserve(struct writer_events *events, uint32_t more)
{
	uint64_t needed = (uint64_t)events->count + more, capacity = events->capacity ? events->capacity : 1024;
	if (needed <= events->capacity)
		return 0;
	while (capacity < needed)
		capacity = grow_capacity(capacity);
	if (capacity > UINT32_MAX)
		return -ENOMEM;
#define X(column) \
	{ \
		void *larger = realloc(events->column, capacity * sizeof(*events->column)); \
		if (!larger) \
			return -ENOMEM; \
		events->column = larger; \
	}
	EVENT_COLUMNS(X)
#undef X
	events->capacity = (uint32_t)capacity;
	return 0;
}

void writer_events_fini(struct writer_events *events)
{
#define X(column) \
	free(events->column); \
	events->column = NULL;
	EVENT_COLUMNS(X)
#undef X
	free(events->contexts);
	events->contexts = NULL;
	events->context_count = events->context_capacity = 0;
	events->count = events->capacity = 0;
}

int writer_events_set_context(struct writer_events *events, uint32_t at, const struct thread_context *context)
{
	static const struct thread_context none;
	while (events->context_count && events->contexts[events->context_count - 1].event >= at)
		events->context_count--;
	const uint32_t count = events->context_count;
	if (thread_context_is_same(context, count ? &events->contexts[count - 1].context : &none))
		return 0;
	if (!grow_by_one(events->contexts, count, events->context_capacity))
		return -ENOMEM;
	events->contexts[events->context_count++] = (struct context_change){at, *context};
	return 0;
}

/* ---- events ---- */

static bool events_are_valid(const struct writer *writer, const struct writer_events *events)
{
	const struct dictionary *dictionary = &writer->dictionary;
	bool is_valid = events->count <= FORMAT_EVENTS_MAX && events->process < dictionary->process_count &&
			events->thread < dictionary->thread_count;
	for (uint32_t i = 0; is_valid && i < events->count; i++)
		is_valid = events->stack[i] < dictionary->tree.node_count;
	return is_valid;
}

/* A block's head while it is made. */
struct made_block {
	struct format_events head;
	uint32_t kinds[256]; /* events by kind, without failed calls and calls in flight */
};

/* The plain head: bounds and counts, so that readers can pass over a block without decoding it. Its size; 0: it makes
 * no sense. ends: how each stack ends, by node. */
static uint32_t make_head(struct made_block *made, const struct writer_events *events, const uint8_t *ends, uint8_t *to,
			  uint32_t node_count, uint32_t cut_bits)
{
	uint64_t mask = UINT64_MAX << cut_bits;
	struct format_events head = {.process = events->process,
				     .thread = events->thread,
				     .first_ticks = UINT64_MAX,
				     .region = events->region,
				     .slot = events->slot,
				     .first_sequence = events->first_sequence,
				     .last_sequence = events->last_sequence,
				     .part_sequence = events->part_sequence,
				     .part_events = events->part_events,
				     .node_count = node_count};
	uint32_t *kinds = made->kinds;
	memset(kinds, 0, sizeof(made->kinds));
	struct stack_ends stacks = {0};
	for (uint32_t i = 0; i < events->count; i++) {
		uint32_t flags = events->flags[i], kind = events->kind[i];
		uint64_t last = events->time[i] & mask,
			 first = kind == EVENT_REALLOC ? last - (events->duration[i] & mask) : last;
		if (first > last)
			return 0;
		head.first_ticks = first < head.first_ticks ? first : head.first_ticks;
		head.last_ticks = last > head.last_ticks ? last : head.last_ticks;
		uint32_t failed = (flags & EVENT_FAILED) != 0, in_flight = !failed & ((flags & EVENT_IN_FLIGHT) != 0);
		head.failed += failed;
		head.in_flight += in_flight;
		trace_count_end(&stacks, (uint8_t)flags, ends[events->stack[i]], 1);
		kinds[kind] += !(failed | in_flight);
	}
	uint8_t *at = to + sizeof(head);
	for (uint32_t kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		uint32_t word = kind << 24 | kinds[kind];
		if (!kinds[kind])
			continue;
		memcpy(at, &word, sizeof(word));
		at += sizeof(word);
		head.kind_count++;
	}
	const uint32_t words[FORMAT_EVENTS_END_WORDS] = {(uint32_t)stacks.unwindless, (uint32_t)stacks.whole};
	memcpy(at, words, sizeof(words));
	at += sizeof(words);
	head.truncated = (uint32_t)stacks.truncated;
	memcpy(to, &head, sizeof(head));
	made->head = head;
	return (uint32_t)(at - to);
}

int writer_note_sequence(struct writer *writer, const struct taken *taken)
{
	uint64_t region = taken->region;
	uint32_t slot = taken->slot;
	bool added;
	uint32_t *place = map_try_add(&writer->sequence_index, hash_pair(region, slot), &added);
	if (!place)
		return -ENOMEM;
	if (added) {
		if (!grow_by_one(writer->sequences, writer->sequence_count, writer->sequence_capacity))
			return -ENOMEM;
		*place = writer->sequence_count++;
		writer->sequences[*place] = (struct rows_sequence){.region = region, .slot = slot, .last = UINT32_MAX};
	}
	struct rows_sequence *sequence = &writer->sequences[*place];
	sequence->process = taken->process;
	sequence->behind += taken->events;
	if (taken->first <= taken->last || taken->part_events)
		sequence->behind = 0;
	if (taken->first <= taken->last)
		sequence->last = taken->last;
	if (taken->part_events) {
		sequence->part_sequence = taken->part_sequence;
		sequence->part_events = taken->part_events;
	}
	return 0;
}

struct taken writer_block_taken(const struct load_block *block)
{
	const struct format_events *head = &block->head;
	return (struct taken){head->region,        head->process,       head->slot,        head->first_sequence,
			      head->last_sequence, head->part_sequence, head->part_events, block->count};
}

const struct rows_sequence *writer_find_sequence(const struct writer *writer, uint64_t region, uint32_t slot)
{
	const uint32_t *place = map_find(&writer->sequence_index, hash_pair(region, slot));
	return place ? &writer->sequences[*place] : NULL;
}

/* Columns, and what they need of the dictionaries, into `out`. */
static int put_events(struct writer *writer, const struct writer_events *events, struct made_block *made)
{
	struct bytes *payload = &writer->payload;
	uint32_t descriptor_count;
	segment_need_process(writer, events->process);
	segment_need_thread(writer, events->thread);
	for (uint32_t i = 0; i < events->count; i++)
		writer->event_nodes[i] = segment_need_node(writer, events->stack[i]);
	if (columns_encode(writer->encoder, events, writer->event_nodes, writer->nodes.next, writer->cut_bits))
		return -ENOMEM;
	struct columns_descriptor *descriptors = columns_descriptors(writer->encoder, &descriptor_count);
	for (uint32_t i = 0; i < descriptor_count; i++) {
		struct columns_descriptor *descriptor = &descriptors[i];
		if (descriptor->kind >= EVENT_KIND_COUNT || descriptor->entry >= writer->dictionary.entry_count ||
		    (descriptor->heap != TRACE_NONE && descriptor->heap >= writer->dictionary.heap_count))
			return -EINVAL;
		uint32_t entry = segment_need_entry(writer, descriptor->entry);
		descriptor->entry = (uint16_t)(entry ? entry - 1 : 0);
		if (descriptor->heap != TRACE_NONE)
			descriptor->heap = segment_need_heap(writer, descriptor->heap) - 1;
	}
	/* The sections use the same memory to pack. */
	segment_put_sections(writer);
	payload->size = 0;
	if (columns_finish(writer->encoder, payload))
		return -ENOMEM;
	size_t least = events->count / FORMAT_EVENTS_PER_BYTE + 1;
	if (payload->size < least)
		bytes_zero(payload, least - payload->size);
	uint32_t head[(sizeof(struct format_events) + (EVENT_KIND_COUNT + FORMAT_EVENTS_END_WORDS) * 4) / 4];
	struct format_block block = {
		.type = FORMAT_EVENTS, .count = events->count, .raw_bytes = (uint32_t)payload->size};
	block.head_bytes = make_head(made, events, writer->dictionary.tree.ends, (uint8_t *)head, writer->nodes.next,
				     writer->cut_bits);
	if (!block.head_bytes)
		return -EINVAL;
	segment_put_block(writer, &block, head, payload);
	return writer->error;
}

/* The block is in the file. */
static void events_note(struct writer *writer, const struct made_block *made, uint32_t count)
{
	const struct format_events *head = &made->head;
	struct output_segment *note = &writer->output.segments[writer->output.segment_count - 1];
	note->first_ticks = head->first_ticks < note->first_ticks ? head->first_ticks : note->first_ticks;
	note->last_ticks = head->last_ticks > note->last_ticks ? head->last_ticks : note->last_ticks;
	note->events += count;
	writer->event_count += count;
	writer->events_before += count;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		writer->kind_count[kind] += made->kinds[kind];
	if (writer->last_ticks < head->last_ticks)
		writer->last_ticks = head->last_ticks;
}

/* ---- turning: where this file, or this round, has no room left ---- */

static void forget_rows(struct writer *writer)
{
	for (int type = 0; type < FORMAT_TYPE_COUNT; type++)
		writer->sections[type].bytes.size = writer->sections[type].count = 0;
}

/* Discard the unwritten part of the newest segment, and the segment itself if none of it is in the file. */
static void forget_unwritten(struct writer *writer)
{
	struct output *output = &writer->output;
	writer->out.size = 0;
	forget_rows(writer);
	while (output->segment_count &&
	       (writer->is_head_due || output->segments[output->segment_count - 1].offset >= output->end)) {
		output->segment_count--;
		writer->is_head_due = false;
	}
	writer->has_segment = false;
	if (!output->segment_count)
		return;
	struct output_segment *last = &output->segments[output->segment_count - 1];
	segment_end(last, output->end);
	writer->segment_offset = last->offset;
}

/* Rows of these types stand nowhere else; they go along. All others are put again when they are needed. */
static const uint16_t kept_types[] = {FORMAT_GAPS,  FORMAT_MEMORY, FORMAT_RESIDENT,
				      FORMAT_PAGES, FORMAT_LIMITS, FORMAT_CAUSES};
enum { KEPT_TYPES = sizeof(kept_types) / sizeof(kept_types[0]) };

static int end_piece(struct writer *writer, struct diag *diag);

static int turn(struct writer *writer, struct diag *diag)
{
	struct section kept[KEPT_TYPES];
	for (int i = 0; i < KEPT_TYPES; i++) {
		kept[i] = writer->sections[kept_types[i]];
		writer->sections[kept_types[i]] = (struct section){0};
	}
	forget_unwritten(writer);
	int error = writer->options.mode == WRITER_PIECES ? end_piece(writer, diag) : output_wrap(&writer->output);
	if (!error)
		segment_begin(writer, writer->last_ticks);
	for (int i = 0; i < KEPT_TYPES; i++) {
		struct section *section = &writer->sections[kept_types[i]];
		bytes_add(&section->bytes, kept[i].bytes.data, kept[i].bytes.size);
		section->count += kept[i].count;
		bytes_fini(&kept[i].bytes);
	}
	if (error && error != -EFBIG)
		writer_fail(writer, error);
	return error ? error : writer->error;
}

/* As much as the rows that wait can take. */
static uint64_t rows_bound(const struct writer *writer)
{
	uint64_t bytes = writer->out.size + FORMAT_HEAD_MAX;
	for (int type = 0; type < FORMAT_TYPE_COUNT; type++)
		if (writer->sections[type].count)
			bytes += format_aligned(sizeof(struct format_block) + writer->sections[type].bytes.size);
	return bytes;
}

/* Whether there is room, after what can be done about it. */
static int find_room(struct writer *writer, uint64_t size)
{
	int error;
	do
		error = output_room(&writer->output, size);
	while ((error == -ENOSPC || error == -EDQUOT) && writer->options.make_room &&
	       writer->options.make_room(writer->options.cookie));
	return error;
}

/* Rows that wait, apart from what comes after them: turning would forget some. */
static int write_rows(struct writer *writer, struct diag *diag)
{
	int error =
		segment_drops_old(writer) && find_room(writer, rows_bound(writer)) == -EFBIG ? turn(writer, diag) : 0;
	if (error)
		return error;
	segment_need(writer);
	segment_put_sections(writer);
	return segment_flush(writer, false);
}

/* A block that is too large for an empty file is not written; others may find room. */
static int put_turned(struct writer *writer, const struct writer_events *events, struct made_block *made,
		      struct diag *diag)
{
	int error = turn(writer, diag);
	if (error)
		return error;
	error = put_events(writer, events, made);
	if (error || find_room(writer, writer->out.size) != -EFBIG)
		return error;
	forget_unwritten(writer);
	return -EFBIG;
}

static int write_block(struct writer *writer, const struct writer_events *events, struct diag *diag)
{
	struct made_block made;
	bool drops = segment_drops_old(writer), is_lost = false;
	int error = drops ? write_rows(writer, diag) : 0;
	if (error)
		return error;
	segment_need(writer);
	segment_turn(writer, events);
	error = put_events(writer, events, &made);
	if (!error && drops && find_room(writer, writer->out.size) == -EFBIG) {
		error = put_turned(writer, events, &made, diag);
		is_lost = error == -EFBIG;
	}
	if (error) {
		writer->out.size = 0;
		if (!is_lost)
			writer_fail(writer, error);
		return error;
	}
	error = segment_flush(writer, false);
	if (!error)
		events_note(writer, &made, events->count);
	return error;
}

/* The first `count` of the events, which complete no buffer; the rest. */
static struct writer_events events_front(const struct writer_events *events, uint32_t count)
{
	struct writer_events front = *events;
	front.count = count;
	front.first_sequence = 1;
	front.last_sequence = front.part_sequence = front.part_events = 0;
	return front;
}

static struct writer_events events_behind(const struct writer_events *events, uint32_t count)
{
	struct writer_events behind = *events;
	behind.count -= count;
	behind.context_first += count;
#define X(column) behind.column += count;
	EVENT_COLUMNS(X)
#undef X
	return behind;
}

/* As many of the events as find room. -EFBIG: none of them, and nothing is changed. */
static int write_fitting(struct writer *writer, const struct writer_events *events, uint32_t *written)
{
	struct made_block made;
	*written = 0;
	segment_need(writer);
	segment_turn(writer, events);
	struct fill_copy *copy = fill_copy_new(writer);
	int error = copy ? -EFBIG : -ENOMEM;
	for (uint32_t count = events->count; count && error == -EFBIG;) {
		struct writer_events front = events_front(events, count);
		error = put_events(writer, count < events->count ? &front : events, &made);
		if (!error && output_room(&writer->output, writer->out.size) == -EFBIG) {
			count = fill_fewer(writer, count);
			fill_take_back(writer, copy);
			error = -EFBIG;
		}
		*written = error ? 0 : count;
	}
	fill_copy_free(copy);
	if (!error)
		error = segment_flush(writer, false);
	if (error)
		*written = 0;
	else
		events_note(writer, &made, *written);
	return error;
}

/* The last blocks are smaller ones. The events that found no room are counted as made after the end. */
static int write_last(struct writer *writer, const struct writer_events *events)
{
	struct writer_events left = *events;
	uint32_t written = 0;
	int error = 0;
	while (left.count && !error) {
		error = write_fitting(writer, &left, &written);
		if (error)
			writer_fail(writer, error);
		left = events_behind(&left, written);
	}
	if (error)
		writer_count_after(writer, left.process, left.count, left.time[0]);
	return error;
}

/* Before a file, or a round, is left for the next one: as many of the events as it still takes. How many. */
static uint32_t write_before_turn(struct writer *writer, const struct writer_events *events, struct diag *diag)
{
	uint32_t written = 0;
	if (!segment_drops_old(writer) || !fill_may_pass(writer, events->count))
		return 0;
	/* Writing rows may begin the file's next round as well. */
	int error = write_rows(writer, diag);
	if (!error && fill_is_worth(writer) && fill_may_pass(writer, events->count) &&
	    find_room(writer, output_room_left(&writer->output)) == 0)
		error = write_fitting(writer, events, &written);
	if (error && error != -EFBIG)
		writer_fail(writer, error);
	return written;
}

/* Write a block that is too large for an empty file as two. The second one says which buffers they complete. */
static int write_halves(struct writer *writer, const struct writer_events *events, struct diag *diag)
{
	struct writer_events first = events_front(events, events->count / 2),
			     second = events_behind(events, events->count / 2);
	int error = writer_write_events(writer, &first, diag),
	    second_error = writer_write_events(writer, &second, diag);
	return second_error ? second_error : error;
}

int writer_write_events(struct writer *writer, const struct writer_events *events, struct diag *diag)
{
	if (!events->count)
		return 0;
	if (!events_are_valid(writer, events))
		return diag_fail(diag, EINVAL, "events refer to an unknown stack, entry, heap or thread");
	bool had_ended = writer_has_ended(writer), is_near = !had_ended && fill_is_near(writer);
	uint32_t written = had_ended || is_near ? 0 : write_before_turn(writer, events, diag);
	if (written && written < events->count) {
		struct writer_events behind = events_behind(events, written);
		return writer_write_events(writer, &behind, diag);
	}
	int note_error = 0, error = writer_has_ended(writer) ? writer->error
				    : written                ? 0
				    : is_near                ? write_last(writer, events)
							     : write_block(writer, events, diag);
	if (error == -EFBIG && !writer->error && events->count > 1)
		return write_halves(writer, events, diag);
	/* Also what cannot be written any more: it is not to be counted again. */
	if (!error || writer_has_ended(writer))
		note_error = writer_note_sequence(
			writer, &(struct taken){events->region, events->process, events->slot, events->first_sequence,
						events->last_sequence, events->part_sequence, events->part_events, 0});
	if (note_error)
		writer_fail(writer, note_error);
	error = error ? error : note_error;
	if (!error)
		return 0;
	if (!writer_has_ended(writer)) {
		writer->unwritten.blocks++;
		writer->unwritten.events += events->count;
	} else if (!is_near) {
		writer_count_after(writer, events->process, events->count, events->time[0]);
	}
	return writer_explain(writer, error, diag);
}

int writer_flush(struct writer *writer, struct diag *diag)
{
	int error = writer->error ? writer->error : write_rows(writer, diag);
	return error ? writer_explain(writer, error, diag) : 0;
}

uint32_t writer_last_sequence(const struct writer *writer, uint64_t region, uint32_t slot)
{
	const struct rows_sequence *sequence = writer_find_sequence(writer, region, slot);
	return sequence ? sequence->last : UINT32_MAX;
}

uint32_t writer_last_part(const struct writer *writer, uint64_t region, uint32_t slot, uint32_t sequence)
{
	const struct rows_sequence *found = writer_find_sequence(writer, region, slot);
	return found && found->part_events && found->part_sequence == sequence ? found->part_events : 0;
}

uint32_t writer_events_behind(const struct writer *writer, uint64_t region, uint32_t slot)
{
	const struct rows_sequence *found = writer_find_sequence(writer, region, slot);
	return found ? found->behind : 0;
}

const uint8_t *writer_id(const struct writer *writer)
{
	return writer->file_id;
}

uint64_t writer_size_bytes(const struct writer *writer)
{
	return writer->output.size;
}

uint64_t writer_dropped_events(const struct writer *writer)
{
	return writer->output.dropped_events;
}

uint64_t writer_event_count(const struct writer *writer)
{
	return writer->event_count;
}

const uint64_t *writer_kind_counts(const struct writer *writer)
{
	return writer->kind_count;
}

uint32_t writer_node_count(const struct writer *writer)
{
	return writer->dictionary.tree.node_count;
}

enum trace_stack_end writer_stack_end(const struct writer *writer, uint32_t node)
{
	return (enum trace_stack_end)writer->dictionary.tree.ends[node];
}

/* ---- beginning and end ---- */

static struct writer *writer_new(const struct writer_options *options)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	if (!writer)
		return NULL;
	writer->output.fd = -1;
	if (options)
		writer->options = *options;
	if (!writer->options.segment_bytes)
		writer->options.segment_bytes = DEFAULT_SEGMENT_BYTES;
	if (!writer->options.segment_ns)
		writer->options.segment_ns = DEFAULT_SEGMENT_NS;
	writer->segment_ticks_max = writer->options.segment_ns;
	writer->output.is_circular = writer->options.mode == WRITER_CIRCULAR;
	writer->output.limit = writer->options.max_file_bytes;
	writer->encoder = columns_encoder_new(writer->options.compression);
	writer->zstd = ZSTD_createCCtx();
	writer->event_nodes = malloc(FORMAT_EVENTS_MAX * sizeof(*writer->event_nodes));
	return writer;
}

void writer_free(struct writer *writer)
{
	for (size_t i = 0; i < sizeof(writer->sections) / sizeof(writer->sections[0]); i++)
		bytes_fini(&writer->sections[i].bytes);
	struct numbers *all[] = {&writer->images, &writer->entries,   &writer->heaps,  &writer->frames,
				 &writer->nodes,  &writer->processes, &writer->threads};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]->numbers);
	dictionary_fini(&writer->dictionary);
	columns_encoder_free(writer->encoder);
	ZSTD_freeCCtx(writer->zstd);
	free(writer->event_nodes);
	bytes_fini(&writer->out);
	bytes_fini(&writer->payload);
	map_fini(&writer->sequence_index);
	free(writer->sequences);
	free(writer->output.segments);
	free(writer->process_mapping);
	free(writer->mapping_next);
	free(writer->frame_functions);
	free(writer->late);
	free(writer->image_is_source);
	free(writer->clock_name);
	free(writer->ending.calls);
	if (writer->output.fd >= 0)
		close(writer->output.fd);
	free(writer);
}

static bool is_whole(const struct writer *writer)
{
	return writer && writer->encoder && writer->zstd && writer->event_nodes;
}

struct writer *writer_new_whole(const struct writer_options *options)
{
	struct writer *writer = writer_new(options);
	if (is_whole(writer))
		return writer;
	if (writer)
		writer_free(writer);
	return NULL;
}

static void put_footer(struct writer *writer);

/* Open and lock: two writers would ruin each other's trace. */
int writer_open_locked(struct writer *writer, const char *path, bool is_new, struct diag *diag)
{
	mode_t permissions = writer->options.permissions;
	if (is_new)
		writer->output.fd = file_make(path, permissions ? permissions : FILE_PERMISSIONS, diag);
	else
		writer->output.fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (writer->output.fd < 0)
		return is_new ? writer->output.fd : diag_errno(diag, "cannot write %s", path);
	/* A writer that only adds symbols may do so for the trace's owner. */
	int error = permissions ? file_check_owner(writer->output.fd, path, diag) : 0;
	if (error)
		return error;
	if (flock(writer->output.fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return diag_fail(diag, EBUSY, "%s is being written by another session", path);
	return 0;
}

int writer_write_header(struct writer *writer, const char *path, struct diag *diag)
{
	struct format_header header = {.magic = FORMAT_MAGIC,
				       .version = FORMAT_VERSION,
				       .header_bytes = sizeof(header),
				       .flags = writer->output.is_circular ? FORMAT_CIRCULAR : 0};
	static const uint8_t none[sizeof(header.trace_id)];
	struct stat status;
	if (fstat(writer->output.fd, &status))
		return diag_errno(diag, "cannot write %s", path);
	if (S_ISREG(status.st_mode) && ftruncate(writer->output.fd, 0))
		return diag_errno(diag, "cannot write %s", path);
	/* The pieces of a trace have one id. */
	if (!memcmp(writer->trace_id, none, sizeof(none)) &&
	    getrandom(writer->trace_id, sizeof(writer->trace_id), 0) != (ssize_t)sizeof(writer->trace_id))
		return diag_errno(diag, "no random number for %s", path);
	memcpy(header.trace_id, writer->trace_id, sizeof(header.trace_id));
	memcpy(writer->file_id, writer->trace_id, sizeof(writer->file_id));
	header.checksum = XXH3_64bits(&header, offsetof(struct format_header, checksum));
	bytes_add(&writer->out, &header, sizeof(header));
	int error = segment_flush(writer, false);
	return error ? writer_explain(writer, error, diag) : 0;
}

/* The file is ended, and the next one begun. */
static int end_piece(struct writer *writer, struct diag *diag)
{
	char path[WRITER_PATH_MAX];
	struct output *output = &writer->output;
	/* A row may be too large for any file. */
	if (!output->segment_count)
		return -EFBIG;
	put_footer(writer);
	int error = segment_flush(writer, true), close_error = output_close(output);
	error = error ? error : close_error;
	if (error)
		return error;
	uint64_t events = 0;
	for (uint32_t i = 0; i < output->segment_count; i++)
		events += output->segments[i].events;
	error = writer->options.next(writer->options.cookie, output->size, events, path, sizeof(path), diag);
	output->first_number += output->segment_count;
	output->segment_count = 0;
	output->has_end = false;
	output->end = output->size = output->allocated = 0;
	error = error ? error : writer_open_locked(writer, path, true, diag);
	return error ? error : writer_write_header(writer, path, diag);
}

int writer_turn(struct writer *writer, bool is_forced, struct diag *diag)
{
	bool has_news = is_forced || writer->output.has_end;
	int error = writer_flush(writer, diag);
	for (uint32_t i = 0; i < writer->output.segment_count; i++)
		has_news |= writer->output.segments[i].events > 0;
	if (!error && has_news)
		error = turn(writer, diag);
	return error;
}

/* Copy the whole file. Return 0 or a negative errno. */
static int copy_to(int to, const char *from, const char *path, struct diag *diag)
{
	int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (source < 0)
		return diag_errno(diag, "cannot read %s", from);
	int error = ftruncate(to, 0) != 0 || !file_copy(to, source) ? diag_errno(diag, "cannot write %s", path) : 0;
	close(source);
	return error;
}

int writer_move(struct writer *writer, const char *from, const char *path, uint64_t max_file_bytes, struct diag *diag)
{
	struct output *output = &writer->output;
	const int old = output->fd;
	/* A file that has ended is closed, and is copied as it is. */
	int error = writer_has_ended(writer) ? 0 : writer_flush(writer, diag);
	error = error ? error : writer_open_locked(writer, path, true, diag);
	error = error ? error : copy_to(output->fd, from, path, diag);
	if (error) {
		if (output->fd >= 0 && output->fd != old) {
			unlink(path);
			close(output->fd);
		}
		output->fd = old;
		return error;
	}
	if (old >= 0) {
		close(old);
	} else {
		close(output->fd);
		output->fd = -1;
	}
	output->allocated = 0;
	output->limit = max_file_bytes;
	unlink(from);
	return 0;
}

int writer_open(struct writer **out, const char *path, const struct writer_options *options, struct diag *diag)
{
	struct writer *writer = writer_new(options);
	if (!is_whole(writer) || !dictionary_init(&writer->dictionary)) {
		if (writer)
			writer_free(writer);
		return diag_fail(diag, ENOMEM, "no memory to write %s", path);
	}
	int error = writer_open_locked(writer, path, true, diag);
	if (!error)
		error = writer_write_header(writer, path, diag);
	if (error) {
		writer_free(writer);
		return error;
	}
	*out = writer;
	return 0;
}

void writer_set_clock(struct writer *writer, const struct writer_clock *clock)
{
	/* A file has one clock. A reopened file has it already. */
	if (writer->clock_name)
		return;
	writer->clock = *clock;
	writer->clock_name = strdup(clock->name ? clock->name : "");
	if (!writer->clock_name)
		writer_fail(writer, -ENOMEM);
	unsigned __int128 ticks =
		((unsigned __int128)writer->options.segment_ns << clock->shift) / (clock->mult ? clock->mult : 1);
	writer->segment_ticks_max = ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
	writer->segment_first = clock->start_ticks;
	while (writer->cut_bits < CUT_BITS_MAX && (((unsigned __int128)clock->mult << (writer->cut_bits + 1)) >>
						   clock->shift) < writer->options.resolution_ns)
		writer->cut_bits++;
}

bool writer_has_clock(const struct writer *writer, const struct writer_clock *like, struct writer_clock *own)
{
	*own = writer->clock_name ? writer->clock : *like;
	own->name = writer->clock_name ? writer->clock_name : like->name;
	return !strcmp(own->name, like->name) && load_is_one_boot(own, like);
}

void writer_abandon(struct writer *writer)
{
	writer_free(writer);
}

void writer_set_host(struct writer *writer, const char *host)
{
	const char *copy = dictionary_text(&writer->dictionary, host, strlen(host));
	if (!copy)
		writer_fail(writer, -ENOMEM);
	else
		writer->dictionary.host = copy;
}

/* Write the end of a file that could not take everything. */
static void put_ending(struct writer *writer, const struct section *gaps)
{
	char reason[TRACE_REASON_BYTES];
	uint64_t ticks;
	writer_end_reason(writer, reason, &ticks);
	forget_unwritten(writer);
	writer->error = 0;
	segment_begin(writer, writer->segment_first);
	forget_rows(writer);
	ending_put(writer, gaps, reason);
	segment_put_sections(writer);
}

/* Rows that find no room become a number. */
static void count_gaps(struct writer *writer, struct section *gaps)
{
	struct reading reading = {.at = gaps->bytes.data, .end = gaps->bytes.data + gaps->bytes.size};
	for (uint32_t i = 0; i < gaps->count; i++) {
		struct trace_gap gap;
		rows_get_gap(&reading, NULL, &gap);
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			writer->unwritten.events += gap.count[kind];
	}
	gaps->bytes.size = gaps->count = 0;
}

/* Write what waits; when that cannot be, the short ending instead. */
static void put_last_rows(struct writer *writer)
{
	struct section gaps = {.count = writer->sections[FORMAT_GAPS].count};
	bytes_add(&gaps.bytes, writer->sections[FORMAT_GAPS].bytes.data, writer->sections[FORMAT_GAPS].bytes.size);
	segment_put_late(writer);
	if (!writer->error)
		write_rows(writer, &(struct diag){""});
	if (writer->error && gaps.bytes.size > GAPS_AFTER_END_BYTES)
		count_gaps(writer, &gaps);
	if (writer->error)
		put_ending(writer, &gaps);
	bytes_fini(&gaps.bytes);
}

static void put_statistics(struct writer *writer, const struct trace_statistics *statistics)
{
	struct bytes payload = {0};
	struct format_block block = {.type = FORMAT_STATISTICS, .count = 1};
	rows_put_statistics(&payload, statistics);
	block.raw_bytes = (uint32_t)payload.size;
	segment_put_block(writer, &block, NULL, &payload);
	bytes_fini(&payload);
}

static void footer_rows(const struct writer *writer, struct bytes *payload, const struct format_tail *tail)
{
	const struct output *output = &writer->output;
	payload->size = 0;
	for (uint32_t i = 0; i < output->segment_count; i++) {
		struct output_segment row = output->segments[i];
		row.bytes = i + 1 < output->segment_count ? row.bytes : tail->footer_offset - row.offset;
		row.first_ticks = row.events ? row.first_ticks : 0;
		rows_put_footer_segment(payload, &row);
	}
	rows_put_unwritten(payload, &writer->unwritten);
	bytes_zero(payload, format_aligned(payload->size) - payload->size);
	bytes_add(payload, tail, sizeof(*tail));
}

static void put_footer(struct writer *writer)
{
	struct bytes payload = {0};
	struct format_block block = {.type = FORMAT_FOOTER};
	struct format_tail tail = {.footer_offset = writer->output.end + writer->out.size,
				   .magic = FORMAT_FOOTER_MAGIC};
	/* A footer lists no segment that the footer itself overwrites. */
	do
		footer_rows(writer, &payload, &tail);
	while (output_make_way(&writer->output, writer->out.size + sizeof(block) + payload.size));
	block.count = writer->output.segment_count;
	block.raw_bytes = (uint32_t)payload.size;
	if (payload.has_failed)
		writer_fail(writer, -ENOMEM);
	segment_put_block(writer, &block, NULL, &payload);
	bytes_fini(&payload);
}

int writer_close(struct writer *writer, const struct trace_statistics *statistics, struct diag *diag)
{
	segment_need(writer);
	put_last_rows(writer);
	if (writer->is_head_due)
		segment_put_head(writer);
	if (statistics)
		put_statistics(writer, statistics);
	put_footer(writer);
	int error = segment_flush(writer, true);
	int close_error = output_close(&writer->output);
	error = error ? error : close_error;
	if (error)
		error = writer_explain(writer, error, diag);
	writer_free(writer);
	return error;
}
