/* SPDX-License-Identifier: MIT */
/*
 * A segment is complete by itself: the first time that something of it refers to a row, the row goes into one of the
 * sections, and the sections go into the file before what refers to them.
 *
 *     writer_add_*, writer_update_*  ->  sections  -.
 *     writer_write_events  -> nodes, frames -> sections -> out -> one write(2)
 *                          `> columns ----------------------^
 */
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "trace/columns.h"
#include "trace/dictionary.h"
#include "trace/load.h"
#include "trace/output.h"
#include "trace/rows.h"

enum {
	DEFAULT_SEGMENT_BYTES = 64 << 20,
	SECTION_BYTES = 1 << 20,       /* a section is written when it has as many */
	GAPS_AFTER_END_BYTES = 1 << 12, /* of gaps once the file is full */
	PROCESSES_AFTER_END_BYTES = 1 << 11,
	FIRST_SEGMENTS = 4,
	FIRST_SEGMENT_BYTES = 1 << 16,
	PACKED_MIN = 64,
	CUT_BITS_MAX = 16,
	PROCESSES_KEPT = 1 << 16       /* of a trace whose place is taken */
};
#define DEFAULT_SEGMENT_NS 10000000000ull

/* Sections in the order in which they are written: none refers to a later one. */
static const uint16_t section_types[] = {FORMAT_OPTIONS, FORMAT_IMAGES, FORMAT_PROCESSES, FORMAT_THREADS, FORMAT_MAPPINGS,
					 FORMAT_ENTRIES, FORMAT_HEAPS, FORMAT_FRAMES, FORMAT_NODES, FORMAT_GAPS, FORMAT_MEMORY,
					 FORMAT_SYMBOLS, FORMAT_FOLDED};

struct section {
	struct bytes bytes;
	uint32_t count;
};

/* For each row: its number in the current segment plus one, or 0. */
struct numbers {
	uint32_t *numbers;
	uint32_t capacity, next;
};

struct sequence { uint64_t region; uint32_t process, slot, last, part_sequence, part_events; };

struct writer {
	int error;                     /* once writing has failed, that is its answer */
	struct output output;
	struct writer_options options;
	struct writer_clock clock;
	char *clock_name;
	uint8_t trace_id[16];
	bool has_segment, is_head_due; /* a segment has begun; its head is not in `out` yet */
	bool has_rows;                 /* sections have something to write */
	uint64_t segment_offset, segment_first, segment_ticks_max;
	uint64_t events_before, last_ticks; /* of all segments, and of those that were dropped */
	uint32_t cut_bits;             /* of times */
	struct dictionary dictionary;
	struct section sections[FORMAT_TYPE_COUNT];
	struct numbers images, entries, heaps, frames, nodes;
	struct numbers processes, threads; /* any number: it is in this segment */
	uint32_t *process_mapping, *mapping_next; /* the mappings of each process, newest first, plus one */
	uint32_t process_capacity, mapping_capacity;
	struct columns_encoder *encoder;
	ZSTD_CCtx *zstd;
	uint32_t *event_nodes;
	struct bytes out, payload;
	struct index sequence_index;
	struct sequence *sequences;
	uint32_t sequence_count, sequence_capacity;
	uint64_t event_count, truncated_count, unwritten_blocks, unwritten_events;
};

/* ---- columns of the logger ---- */

/* X(column): all columns of struct writer_events. */
#define EVENT_COLUMNS(X) \
	X(kind) X(flags) X(entry) X(heap) X(stack) X(time) X(duration) X(address) X(previous) X(size) X(usable) X(argument) \
	X(argument2) X(result)

int writer_events_reserve(struct writer_events *events, uint32_t more)
{
	uint64_t needed = (uint64_t)events->count + more, capacity = events->capacity ? events->capacity : 1024;
	if (needed <= events->capacity)
		return 0;
	while (capacity < needed)
		capacity *= 2;
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
#define X(column) free(events->column); events->column = NULL;
	EVENT_COLUMNS(X)
#undef X
	events->count = events->capacity = 0;
}

/* ---- memory ---- */

static void writer_fail(struct writer *writer, int error)
{
	if (!writer->error)
		writer->error = error;
}

/* Make room for row `id`, new rows zeroed. */
static bool array_room(uint32_t **array, uint32_t *capacity, uint32_t id)
{
	if (id < *capacity)
		return true;
	uint64_t larger = *capacity ? *capacity : 64;
	while (larger <= id)
		larger *= 2;
	uint32_t *data = realloc(*array, larger * sizeof(*data));
	if (!data)
		return false;
	memset(data + *capacity, 0, (larger - *capacity) * sizeof(*data));
	*array = data;
	*capacity = (uint32_t)larger;
	return true;
}

/* The number of row `id` in this segment plus one; NULL: no memory. */
static uint32_t *number_of(struct writer *writer, struct numbers *numbers, uint32_t id)
{
	if (!array_room(&numbers->numbers, &numbers->capacity, id)) {
		writer_fail(writer, -ENOMEM);
		return NULL;
	}
	return &numbers->numbers[id];
}

static void numbers_begin(struct numbers *numbers)
{
	if (numbers->capacity)
		memset(numbers->numbers, 0, numbers->capacity * sizeof(*numbers->numbers));
	numbers->next = 0;
}

/* ---- blocks ---- */

static struct section *section_of(struct writer *writer, enum format_type type)
{
	writer->has_rows = true;
	return &writer->sections[type];
}

/* Add a block to what is to be written, right there. */
static void put_block_here(struct writer *writer, struct format_block *block, const void *head, const struct bytes *payload)
{
	static const uint8_t no_payload[1];
	struct bytes *out = &writer->out;
	const uint8_t *data = payload->size ? payload->data : no_payload;
	block->magic = FORMAT_BLOCK_MAGIC;
	block->payload_bytes = (uint32_t)payload->size;
	block->place = writer->output.end + out->size - writer->segment_offset;
	block->payload_checksum = XXH3_64bits(data, payload->size);
	format_sign(block, head);
	bytes_add(out, block, sizeof(*block));
	bytes_add(out, head, block->head_bytes);
	bytes_add(out, data, payload->size);
	bytes_zero(out, format_aligned(out->size) - out->size);
}

static void segment_end(struct output_segment *segment, uint64_t offset)
{
	segment->bytes = offset - segment->offset;
}

/* The head waits until something follows it, since clock and host may come after the first rows. */
static void put_segment_head(struct writer *writer)
{
	struct output *output = &writer->output;
	struct format_segment head = {.number = output->first_number + output->segment_count - 1, .shift = writer->clock.shift,
				      .start_ticks = writer->clock.start_ticks, .mult = writer->clock.mult,
				      .start_realtime_ns = writer->clock.start_realtime_ns, .events_before = writer->events_before,
				      .last_ticks_before = writer->last_ticks};
	struct format_block block = {.type = FORMAT_SEGMENT, .count = 1, .head_bytes = sizeof(head)};
	struct bytes payload = {0};
	writer->is_head_due = false;
	memcpy(head.trace_id, writer->trace_id, sizeof(head.trace_id));
	bytes_text(&payload, writer->clock_name ? writer->clock_name : "");
	bytes_text(&payload, writer->dictionary.host);
	block.raw_bytes = (uint32_t)payload.size;
	writer->segment_offset = output->segments[output->segment_count - 1].offset = output->end + writer->out.size;
	if (output->segment_count > 1)
		segment_end(&output->segments[output->segment_count - 2], writer->segment_offset);
	put_block_here(writer, &block, &head, &payload);
	if (payload.has_failed)
		writer_fail(writer, -ENOMEM);
	bytes_fini(&payload);
}

static void put_block(struct writer *writer, struct format_block *block, const void *head, const struct bytes *payload)
{
	if (writer->is_head_due)
		put_segment_head(writer);
	put_block_here(writer, block, head, payload);
}

/* Behind a zstd frame that holds more than a reader would believe: a frame to be skipped, of this many bytes in all. */
static void put_skipped(struct bytes *bytes, size_t size)
{
	uint32_t head[2] = {0x184d2a50, (uint32_t)(size < sizeof(head) ? 0 : size - sizeof(head))};
	bytes_add(bytes, head, sizeof(head));
	bytes_zero(bytes, head[1]);
}

static void put_section(struct writer *writer, uint16_t type, struct section *section)
{
	/* Without them numbers would be wrong. */
	uint16_t essential = type == FORMAT_FOLDED ? FORMAT_ESSENTIAL : 0;
	struct format_block block = {.type = type, .flags = essential, .raw_bytes = (uint32_t)section->bytes.size, .count = section->count};
	struct bytes *packed = &writer->payload;
	size_t least = section->bytes.size / FORMAT_EXPANSION_MAX + 1;
	packed->size = 0;
	if (section->bytes.has_failed)
		writer_fail(writer, -ENOMEM);
	if (section->bytes.size >= PACKED_MIN && writer->options.compression >= 0 &&
	    bytes_reserve(packed, ZSTD_compressBound(section->bytes.size))) {
		size_t size = ZSTD_compressCCtx(writer->zstd, packed->data, packed->capacity, section->bytes.data, section->bytes.size, 3);
		if (!ZSTD_isError(size) && size < section->bytes.size) {
			packed->size = size;
			if (size < least)
				put_skipped(packed, least - size);
			block.flags |= FORMAT_PACKED;
		}
	}
	put_block(writer, &block, NULL, block.flags & FORMAT_PACKED ? packed : &section->bytes);
	section->bytes.size = 0;
	section->count = 0;
}

static void put_sections(struct writer *writer)
{
	for (size_t i = 0; writer->has_rows && i < sizeof(section_types) / sizeof(section_types[0]); i++)
		if (writer->sections[section_types[i]].count)
			put_section(writer, section_types[i], &writer->sections[section_types[i]]);
	writer->has_rows = false;
}

/* A row was added to the section. */
static void section_added(struct writer *writer, struct section *section)
{
	section->count++;
	if (writer->error) {
		/* Nothing more will be written but gaps, which say what is missing. */
		if (section != &writer->sections[FORMAT_GAPS] || section->bytes.size > GAPS_AFTER_END_BYTES)
			section->bytes.size = section->count = 0;
		return;
	}
	if (section->bytes.size >= SECTION_BYTES)
		put_sections(writer);
}

/* ---- the file ---- */

/* Write what is gathered, if there is room for it; is_end: the room kept for the end may be used. */
static int flush_out(struct writer *writer, bool is_end)
{
	int error = writer->out.has_failed ? -ENOMEM : writer->error;
	if (!error && !is_end)
		error = output_room(&writer->output, writer->out.size);
	if (!error || is_end)
		error = output_write(&writer->output, writer->out.data, writer->out.size);
	writer->out.size = 0;
	if (error)
		writer_fail(writer, error);
	return error;
}

/* ---- segments ---- */

static bool drops_segments(const struct writer *writer)
{
	return writer->options.mode != WRITER_SEQUENTIAL;
}

static void need_process(struct writer *writer, uint32_t id);

/* Where segments are dropped, each has who is recorded, and who has ended since the one before began. */
static void put_processes(struct writer *writer, uint64_t since)
{
	for (uint32_t id = 0; id < writer->dictionary.process_count; id++) {
		const struct trace_process *row = &writer->dictionary.processes[id];
		if (row->end == TRACE_END_OPEN || (row->end_ns != INT64_MAX && (uint64_t)row->end_ns >= since))
			need_process(writer, id);
	}
}

static void begin_segment(struct writer *writer, uint64_t ticks)
{
	uint64_t since = writer->segment_first;
	/* Rows that wait belong to what was before. */
	put_sections(writer);
	if (!output_add_segment(&writer->output)) {
		writer_fail(writer, -ENOMEM);
		return;
	}
	struct numbers *all[] = {&writer->images, &writer->entries, &writer->heaps, &writer->frames, &writer->nodes, &writer->processes,
				 &writer->threads};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		numbers_begin(all[i]);
	writer->nodes.next = 1;
	writer->has_segment = writer->is_head_due = true;
	writer->segment_first = ticks;
	for (uint32_t i = 0; i < writer->dictionary.option_count; i++) {
		struct section *section = section_of(writer, FORMAT_OPTIONS);
		rows_put_option(&section->bytes, &writer->dictionary.options[i]);
		section_added(writer, section);
	}
	if (drops_segments(writer))
		put_processes(writer, since);
}

/* The first row or event begins the first segment. */
static void need_segment(struct writer *writer)
{
	if (!writer->has_segment)
		begin_segment(writer, writer->clock.start_ticks);
}

/* A circular file that is not full yet may get no larger, if its disk is: then there is something to drop. */
static uint64_t segment_most(const struct writer *writer)
{
	uint64_t most = writer->output.end / FIRST_SEGMENTS;
	if (!writer->output.is_circular || writer->output.has_wrapped)
		return writer->options.segment_bytes;
	most = most < FIRST_SEGMENT_BYTES ? FIRST_SEGMENT_BYTES : most;
	return most < writer->options.segment_bytes ? most : writer->options.segment_bytes;
}

static void turn_segment(struct writer *writer, const struct writer_events *events)
{
	uint64_t ticks = events->time[events->count - 1];
	bool is_large = writer->output.end - writer->segment_offset >= segment_most(writer);
	bool is_long = ticks > writer->segment_first && ticks - writer->segment_first >= writer->segment_ticks_max;
	if (writer->has_segment && (is_large || is_long) &&
	    writer->output.segments[writer->output.segment_count - 1].events)
		begin_segment(writer, ticks);
}

/* ---- rows that the segment needs ---- */

/* The number of the image in the segment plus one, 0 for none. */
static uint32_t need_image(struct writer *writer, uint32_t id)
{
	uint32_t *number = id < writer->dictionary.image_count ? number_of(writer, &writer->images, id) : NULL;
	if (!number || *number)
		return number ? *number : 0;
	struct section *section = section_of(writer, FORMAT_IMAGES);
	uint32_t own = *number = ++writer->images.next;
	rows_put_image(&section->bytes, &writer->dictionary.images[id]);
	section_added(writer, section);
	return own;
}

static void put_mapping(struct writer *writer, uint32_t id)
{
	const struct trace_mapping *row = &writer->dictionary.mappings[id];
	uint32_t image = need_image(writer, row->image);
	struct section *section = section_of(writer, FORMAT_MAPPINGS);
	rows_put_mapping(&section->bytes, id, row, image);
	section_added(writer, section);
}

static void put_process(struct writer *writer, uint32_t id)
{
	struct section *section = section_of(writer, FORMAT_PROCESSES);
	rows_put_process(&section->bytes, id, &writer->dictionary.processes[id]);
	section_added(writer, section);
}

/* The row of the process, those that it came from, and its mappings. */
static void need_process(struct writer *writer, uint32_t id)
{
	for (;;) {
		/* The oldest one that is not there yet, again and again: a chain of forks may be long. */
		uint32_t oldest = TRACE_NONE;
		for (uint32_t at = id; at != TRACE_NONE;) {
			const struct trace_process *row = &writer->dictionary.processes[at];
			uint32_t *number = number_of(writer, &writer->processes, at);
			if (!number || *number)
				break;
			oldest = at;
			at = row->forked_from != TRACE_NONE && row->forked_from < at ? row->forked_from
			     : row->parent != TRACE_NONE && row->parent < at ? row->parent : TRACE_NONE;
		}
		if (oldest == TRACE_NONE)
			return;
		writer->processes.numbers[oldest] = 1;
		put_process(writer, oldest);
		for (uint32_t next = writer->process_mapping[oldest]; next; next = writer->mapping_next[next - 1])
			put_mapping(writer, next - 1);
	}
}

static void put_thread(struct writer *writer, uint32_t id)
{
	struct section *section = section_of(writer, FORMAT_THREADS);
	rows_put_thread(&section->bytes, id, &writer->dictionary.threads[id]);
	section_added(writer, section);
}

static void need_thread(struct writer *writer, uint32_t id)
{
	uint32_t *number = number_of(writer, &writer->threads, id);
	if (!number || *number)
		return;
	*number = 1;
	need_process(writer, writer->dictionary.threads[id].process);
	put_thread(writer, id);
}

static uint32_t need_entry(struct writer *writer, uint32_t id)
{
	uint32_t *number = number_of(writer, &writer->entries, id);
	if (!number || *number)
		return number ? *number : 0;
	uint32_t own = *number = ++writer->entries.next;
	uint32_t image = need_image(writer, writer->dictionary.entries[id].image);
	struct section *section = section_of(writer, FORMAT_ENTRIES);
	rows_put_entry(&section->bytes, &writer->dictionary.entries[id], image);
	section_added(writer, section);
	return own;
}

static uint32_t need_heap(struct writer *writer, uint32_t id)
{
	uint32_t *number = number_of(writer, &writer->heaps, id);
	if (!number || *number)
		return number ? *number : 0;
	uint32_t own = *number = ++writer->heaps.next;
	need_process(writer, writer->dictionary.heaps[id].process);
	struct section *section = section_of(writer, FORMAT_HEAPS);
	rows_put_heap(&section->bytes, &writer->dictionary.heaps[id]);
	section_added(writer, section);
	return own;
}

/* The frame's number in the segment, from 0. */
static uint32_t need_frame(struct writer *writer, uint32_t id)
{
	uint32_t *number = number_of(writer, &writer->frames, id);
	if (!number || *number)
		return number ? *number - 1 : 0;
	uint32_t own = *number = ++writer->frames.next;
	const struct trace_frame *row = &writer->dictionary.tree.frames[id];
	uint32_t image = need_image(writer, row->image);
	struct section *section = section_of(writer, FORMAT_FRAMES);
	bytes_number(&section->bytes, image);
	bytes_number(&section->bytes, row->offset);
	section_added(writer, section);
	return own - 1;
}

/* Row of a node whose parent is in the segment. */
static void put_node(struct writer *writer, uint32_t id, uint32_t parent)
{
	uint32_t frame_next = writer->frames.next, frame = need_frame(writer, writer->dictionary.tree.nodes[id].frame);
	uint32_t *number = number_of(writer, &writer->nodes, id);
	if (!number)
		return;
	*number = writer->nodes.next;
	struct section *section = section_of(writer, FORMAT_NODES);
	bytes_number(&section->bytes, writer->nodes.next - parent);
	bytes_number(&section->bytes, frame_next - frame); /* 0: the next new one */
	writer->nodes.next++;
	section_added(writer, section);
}

/* The node's number in the segment; 0 is the root. */
static uint32_t need_node_slowly(struct writer *writer, uint32_t id)
{
	const struct trace_node *nodes = writer->dictionary.tree.nodes;
	if (id == 0 || !number_of(writer, &writer->nodes, id))
		return 0;
	/* Outermost first; the way is remembered in the numbers themselves by walking it again from the inside. */
	uint32_t depth = 0;
	for (uint32_t at = id; at && !writer->nodes.numbers[at]; at = nodes[at].parent)
		depth++;
	uint32_t *way = malloc((depth + 1) * sizeof(*way)), at = id;
	if (!way) {
		writer_fail(writer, -ENOMEM);
		return 0;
	}
	for (uint32_t i = depth; i > 0; i--, at = nodes[at].parent)
		way[i - 1] = at;
	uint32_t parent = at ? writer->nodes.numbers[at] : 0;
	for (uint32_t i = 0; i < depth; i++) {
		put_node(writer, way[i], parent);
		parent = writer->nodes.numbers[way[i]];
	}
	free(way);
	return parent;
}

static inline uint32_t need_node(struct writer *writer, uint32_t id)
{
	if (__builtin_expect(id < writer->nodes.capacity && writer->nodes.numbers[id], 1))
		return writer->nodes.numbers[id];
	return need_node_slowly(writer, id);
}

/* ---- adding rows ---- */

uint32_t writer_add_process(struct writer *writer, const struct trace_process *process)
{
	need_segment(writer);
	uint32_t id = dictionary_add_process(&writer->dictionary, process);
	if (id == TRACE_NONE || !array_room(&writer->process_mapping, &writer->process_capacity, id)) {
		writer_fail(writer, -ENOMEM);
		return TRACE_NONE;
	}
	need_process(writer, id);
	return id;
}

uint32_t writer_add_thread(struct writer *writer, const struct trace_thread *thread)
{
	if (thread->process >= writer->dictionary.process_count)
		return TRACE_NONE;
	need_segment(writer);
	uint32_t id = dictionary_add_thread(&writer->dictionary, thread);
	if (id == TRACE_NONE)
		writer_fail(writer, -ENOMEM);
	else
		need_thread(writer, id);
	return id;
}

uint32_t writer_add_image(struct writer *writer, const struct trace_image *image)
{
	need_segment(writer);
	uint32_t count = writer->dictionary.image_count, id = dictionary_add_image(&writer->dictionary, image);
	if (id == TRACE_NONE)
		writer_fail(writer, -ENOMEM);
	else if (id == count)
		need_image(writer, id);
	return id;
}

uint32_t writer_add_mapping(struct writer *writer, const struct trace_mapping *mapping)
{
	if (mapping->process >= writer->dictionary.process_count || mapping->image >= writer->dictionary.image_count ||
	    mapping->end < mapping->base)
		return TRACE_NONE;
	need_segment(writer);
	uint32_t id = dictionary_add_mapping(&writer->dictionary, mapping);
	if (id == TRACE_NONE || !array_room(&writer->mapping_next, &writer->mapping_capacity, id)) {
		writer_fail(writer, -ENOMEM);
		return TRACE_NONE;
	}
	need_process(writer, mapping->process);
	writer->mapping_next[id] = writer->process_mapping[mapping->process];
	writer->process_mapping[mapping->process] = id + 1;
	put_mapping(writer, id);
	return id;
}

uint32_t writer_add_entry(struct writer *writer, const struct trace_entry *entry)
{
	if (entry->function >= FUNCTION_COUNT)
		return TRACE_NONE;
	need_segment(writer);
	uint32_t count = writer->dictionary.entry_count, id = dictionary_add_entry(&writer->dictionary, entry);
	if (id == TRACE_NONE)
		writer_fail(writer, -ENOMEM);
	else if (id == count)
		need_entry(writer, id);
	return id;
}

uint32_t writer_add_heap(struct writer *writer, const struct trace_heap *heap)
{
	if (heap->process >= writer->dictionary.process_count)
		return TRACE_NONE;
	need_segment(writer);
	uint32_t count = writer->dictionary.heap_count, id = dictionary_add_heap(&writer->dictionary, heap);
	if (id == TRACE_NONE)
		writer_fail(writer, -ENOMEM);
	else if (id == count)
		need_heap(writer, id);
	return id;
}

void writer_add_gap(struct writer *writer, const struct trace_gap *gap)
{
	need_segment(writer);
	if (gap->process < writer->dictionary.process_count)
		need_process(writer, gap->process);
	if (gap->thread < writer->dictionary.thread_count)
		need_thread(writer, gap->thread);
	struct section *section = section_of(writer, FORMAT_GAPS);
	rows_put_gap(&section->bytes, gap);
	section_added(writer, section);
}

void writer_add_sample(struct writer *writer, const struct trace_sample *sample)
{
	need_segment(writer);
	need_process(writer, sample->process);
	struct section *section = section_of(writer, FORMAT_MEMORY);
	rows_put_sample(&section->bytes, sample);
	section_added(writer, section);
}

void writer_add_symbol(struct writer *writer, uint32_t frame, const struct trace_function *functions, uint32_t count)
{
	need_segment(writer);
	uint32_t number = need_frame(writer, frame);
	struct section *section = section_of(writer, FORMAT_SYMBOLS);
	rows_put_symbol(&section->bytes, number, functions, count);
	section_added(writer, section);
}

void writer_add_named(struct writer *writer, const struct trace_named *named)
{
	need_segment(writer);
	uint32_t image = need_image(writer, named->image);
	struct section *section = section_of(writer, FORMAT_SYMBOLS);
	rows_put_named(&section->bytes, image, named->has_symbols);
	section_added(writer, section);
}

/* The first ticks whose nanoseconds since T = 0 are these. */
static uint64_t ticks_of(const struct writer *writer, int64_t time_ns)
{
	if (time_ns == INT64_MAX || !writer->clock.mult)
		return (uint64_t)time_ns;
	unsigned __int128 scaled = (unsigned __int128)(time_ns < 0 ? 0 : (uint64_t)time_ns) << writer->clock.shift;
	return writer->clock.start_ticks + (uint64_t)((scaled + writer->clock.mult - 1) / writer->clock.mult);
}

uint64_t writer_ticks(const struct writer *writer, int64_t time_ns)
{
	return ticks_of(writer, time_ns);
}

void writer_add_fold(struct writer *writer, const struct trace_fold *fold)
{
	struct trace_fold row = *fold;
	need_segment(writer);
	row.until_ns = (int64_t)ticks_of(writer, fold->until_ns);
	row.peak_at_ns = (int64_t)ticks_of(writer, fold->peak_at_ns);
	struct section *section = section_of(writer, FORMAT_FOLDED);
	rows_put_fold(&section->bytes, &row);
	section_added(writer, section);
}

void writer_add_sum(struct writer *writer, const struct trace_sum *sum, const struct trace_lifetime *lifetimes)
{
	struct trace_sum row = *sum;
	need_segment(writer);
	need_thread(writer, sum->thread);
	row.stack = need_node(writer, sum->stack);
	row.heap = sum->heap == TRACE_NONE ? 0 : need_heap(writer, sum->heap);
	row.entry = sum->entry == TRACE_NONE ? 0 : need_entry(writer, sum->entry);
	row.birth_first_ns = (int64_t)ticks_of(writer, sum->birth_first_ns);
	row.birth_last_ns = (int64_t)ticks_of(writer, sum->birth_last_ns);
	row.end_first_ns = (int64_t)ticks_of(writer, sum->end_first_ns);
	row.end_last_ns = (int64_t)ticks_of(writer, sum->end_last_ns);
	struct section *section = section_of(writer, FORMAT_FOLDED);
	rows_put_sum(&section->bytes, &row, lifetimes);
	section_added(writer, section);
}

void writer_add_option(struct writer *writer, const char *name, const char *value)
{
	need_segment(writer);
	uint32_t count = writer->dictionary.option_count;
	uint32_t id = dictionary_add_option(&writer->dictionary, &(struct trace_option){name, value});
	if (id != count) {
		if (id == TRACE_NONE)
			writer_fail(writer, -ENOMEM);
		return;
	}
	struct section *section = section_of(writer, FORMAT_OPTIONS);
	rows_put_option(&section->bytes, &writer->dictionary.options[id]);
	section_added(writer, section);
}

void writer_update_process(struct writer *writer, uint32_t id, const struct trace_process *process)
{
	if (id >= writer->dictionary.process_count)
		return;
	need_segment(writer);
	need_process(writer, id);
	if (!dictionary_set_process(&writer->dictionary, id, process))
		writer_fail(writer, -ENOMEM);
	put_process(writer, id);
}

void writer_update_thread(struct writer *writer, uint32_t id, const struct trace_thread *thread)
{
	if (id >= writer->dictionary.thread_count || thread->process >= writer->dictionary.process_count)
		return;
	need_segment(writer);
	need_process(writer, thread->process);
	need_thread(writer, id);
	if (!dictionary_set_thread(&writer->dictionary, id, thread))
		writer_fail(writer, -ENOMEM);
	put_thread(writer, id);
}

void writer_update_mapping(struct writer *writer, uint32_t id, const struct trace_mapping *mapping)
{
	if (id >= writer->dictionary.mapping_count || mapping->image >= writer->dictionary.image_count || mapping->end < mapping->base ||
	    mapping->process != writer->dictionary.mappings[id].process)
		return;
	need_segment(writer);
	need_process(writer, mapping->process);
	writer->dictionary.mappings[id] = *mapping;
	put_mapping(writer, id);
}

uint32_t writer_intern_frame(struct writer *writer, uint32_t image, uint64_t offset)
{
	uint32_t id = image == TRACE_NONE || image < writer->dictionary.image_count ? tree_frame(&writer->dictionary.tree, image, offset)
										     : TRACE_NONE;
	if (id == TRACE_NONE)
		writer_fail(writer, -ENOMEM);
	return id;
}

uint32_t writer_intern_node(struct writer *writer, uint32_t parent, uint32_t frame)
{
	const struct tree *tree = &writer->dictionary.tree;
	if (parent >= tree->node_count || frame >= tree->frame_count)
		return 0;
	uint32_t id = tree_node(&writer->dictionary.tree, parent, frame);
	if (id == TRACE_NONE) {
		writer_fail(writer, -ENOMEM);
		return 0;
	}
	return id;
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

/* The plain head: bounds and counts, so that readers can pass over a block without decoding it. Its size; 0: it makes no sense. */
static uint32_t make_head(const struct writer_events *events, uint8_t *to, uint32_t node_count, uint32_t cut_bits)
{
	uint64_t mask = UINT64_MAX << cut_bits;
	struct format_events head = {
		.process = events->process, .thread = events->thread, .first_ticks = UINT64_MAX, .region = events->region, .slot = events->slot,
		.first_sequence = events->first_sequence, .last_sequence = events->last_sequence, .part_sequence = events->part_sequence,
		.part_events = events->part_events, .node_count = node_count};
	uint32_t kinds[256] = {0};
	for (uint32_t i = 0; i < events->count; i++) {
		uint32_t flags = events->flags[i], kind = events->kind[i];
		uint64_t last = events->time[i] & mask, first = kind == EVENT_REALLOC ? last - (events->duration[i] & mask) : last;
		if (first > last)
			return 0;
		head.first_ticks = first < head.first_ticks ? first : head.first_ticks;
		head.last_ticks = last > head.last_ticks ? last : head.last_ticks;
		uint32_t failed = (flags & EVENT_FAILED) != 0, in_flight = !failed & ((flags & EVENT_IN_FLIGHT) != 0);
		head.failed += failed;
		head.in_flight += in_flight;
		head.truncated += (flags & EVENT_TRUNCATED) != 0;
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
	memcpy(to, &head, sizeof(head));
	return (uint32_t)(at - to);
}

/* What of a region's slot is in the file. first > last: no whole buffer. */
struct taken { uint64_t region; uint32_t process, slot, first, last, part_sequence, part_events; };

static int sequence_note(struct writer *writer, const struct taken *taken)
{
	uint64_t region = taken->region;
	uint32_t slot = taken->slot;
	bool added;
	uint32_t *place = index_add(&writer->sequence_index, index_hash(region, slot), &added);
	if (!place)
		return -ENOMEM;
	if (added) {
		if (writer->sequence_count == writer->sequence_capacity) {
			uint32_t capacity = writer->sequence_capacity ? writer->sequence_capacity * 2 : 64;
			struct sequence *larger = realloc(writer->sequences, capacity * sizeof(*larger));
			if (!larger)
				return -ENOMEM;
			writer->sequences = larger;
			writer->sequence_capacity = capacity;
		}
		*place = writer->sequence_count++;
		writer->sequences[*place] = (struct sequence){.region = region, .slot = slot, .last = UINT32_MAX};
	}
	struct sequence *sequence = &writer->sequences[*place];
	sequence->process = taken->process;
	if (taken->first <= taken->last)
		sequence->last = taken->last;
	if (taken->part_events) {
		sequence->part_sequence = taken->part_sequence;
		sequence->part_events = taken->part_events;
	}
	return 0;
}

static struct taken block_taken(const struct load_block *block)
{
	const struct format_events *head = &block->head;
	return (struct taken){head->region, head->process, head->slot, head->first_sequence, head->last_sequence, head->part_sequence, head->part_events};
}

static const struct sequence *sequence_find(const struct writer *writer, uint64_t region, uint32_t slot)
{
	const uint32_t *place = index_find(&writer->sequence_index, index_hash(region, slot));
	return place ? &writer->sequences[*place] : NULL;
}

/* Columns, and what they need of the dictionaries, into `out`. */
static int put_events(struct writer *writer, const struct writer_events *events, struct format_events *made)
{
	struct bytes *payload = &writer->payload;
	uint32_t descriptor_count;
	need_process(writer, events->process);
	need_thread(writer, events->thread);
	for (uint32_t i = 0; i < events->count; i++)
		writer->event_nodes[i] = need_node(writer, events->stack[i]);
	if (columns_encode(writer->encoder, events, writer->event_nodes, writer->nodes.next, writer->cut_bits))
		return -ENOMEM;
	struct columns_descriptor *descriptors = columns_descriptors(writer->encoder, &descriptor_count);
	for (uint32_t i = 0; i < descriptor_count; i++) {
		struct columns_descriptor *descriptor = &descriptors[i];
		if (descriptor->kind >= EVENT_KIND_COUNT || descriptor->entry >= writer->dictionary.entry_count ||
		    (descriptor->heap != TRACE_NONE && descriptor->heap >= writer->dictionary.heap_count))
			return -EINVAL;
		uint32_t entry = need_entry(writer, descriptor->entry);
		descriptor->entry = (uint16_t)(entry ? entry - 1 : 0);
		if (descriptor->heap != TRACE_NONE)
			descriptor->heap = need_heap(writer, descriptor->heap) - 1;
	}
	/* The sections use the same memory to pack. */
	put_sections(writer);
	payload->size = 0;
	if (columns_finish(writer->encoder, payload))
		return -ENOMEM;
	size_t least = events->count / FORMAT_EVENTS_PER_BYTE + 1;
	if (payload->size < least)
		bytes_zero(payload, least - payload->size);
	uint32_t head[(sizeof(struct format_events) + EVENT_KIND_COUNT * 4) / 4];
	struct format_block block = {.type = FORMAT_EVENTS, .count = events->count, .raw_bytes = (uint32_t)payload->size};
	block.head_bytes = make_head(events, (uint8_t *)head, writer->nodes.next, writer->cut_bits);
	if (!block.head_bytes)
		return -EINVAL;
	put_block(writer, &block, head, payload);
	memcpy(made, head, sizeof(*made));
	return writer->error;
}

/* The block is in the file. */
static void events_note(struct writer *writer, const struct format_events *made, uint32_t count)
{
	struct output_segment *note = &writer->output.segments[writer->output.segment_count - 1];
	note->first_ticks = made->first_ticks < note->first_ticks ? made->first_ticks : note->first_ticks;
	note->last_ticks = made->last_ticks > note->last_ticks ? made->last_ticks : note->last_ticks;
	note->events += count;
	writer->truncated_count += made->truncated;
	writer->event_count += count;
	writer->events_before += count;
	if (writer->last_ticks < made->last_ticks)
		writer->last_ticks = made->last_ticks;
}

static int explain(const struct writer *writer, int error, struct diag *diag)
{
	if (error == -EFBIG && writer->options.max_file_bytes)
		return diag_fail(diag, EFBIG, "the trace has reached its greatest size, %llu bytes",
				 (unsigned long long)writer->options.max_file_bytes);
	return diag_fail(diag, -error, "cannot write the trace at offset %llu: %s", (unsigned long long)writer->output.end, strerror(-error));
}

/* ---- turning: where this file, or this round, has no room left ---- */

static void forget_rows(struct writer *writer)
{
	for (size_t i = 0; i < sizeof(section_types) / sizeof(section_types[0]); i++)
		writer->sections[section_types[i]].bytes.size = writer->sections[section_types[i]].count = 0;
}

/* What was to be written of the newest segment comes to nothing; a segment of which nothing is written is none. */
static void forget_unwritten(struct writer *writer)
{
	struct output *output = &writer->output;
	writer->out.size = 0;
	forget_rows(writer);
	while (output->segment_count && (writer->is_head_due || output->segments[output->segment_count - 1].offset >= output->end)) {
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

/* Rows of gaps and memory are nowhere else; they go along. All others are put again when they are needed. */
static const uint16_t kept_types[] = {FORMAT_GAPS, FORMAT_MEMORY};
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
		begin_segment(writer, writer->last_ticks);
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
	for (size_t i = 0; i < sizeof(section_types) / sizeof(section_types[0]); i++)
		if (writer->sections[section_types[i]].count)
			bytes += format_aligned(sizeof(struct format_block) + writer->sections[section_types[i]].bytes.size);
	return bytes;
}

/* Whether there is room, after what can be done about it. */
static int find_room(struct writer *writer, uint64_t size)
{
	int error;
	do
		error = output_room(&writer->output, size);
	while ((error == -ENOSPC || error == -EDQUOT) && writer->options.make_room && writer->options.make_room(writer->options.cookie));
	return error;
}

/* Rows that wait, apart from what comes after them: turning would forget some. */
static int write_rows(struct writer *writer, struct diag *diag)
{
	int error = drops_segments(writer) && find_room(writer, rows_bound(writer)) == -EFBIG ? turn(writer, diag) : 0;
	if (error)
		return error;
	need_segment(writer);
	put_sections(writer);
	return flush_out(writer, false);
}

/* A block that is too large for an empty file is not written; others may find room. */
static int put_turned(struct writer *writer, const struct writer_events *events, struct format_events *made, struct diag *diag)
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
	struct format_events made;
	bool drops = drops_segments(writer), is_lost = false;
	int error = drops ? write_rows(writer, diag) : 0;
	if (error)
		return error;
	need_segment(writer);
	turn_segment(writer, events);
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
	error = flush_out(writer, false);
	if (!error)
		events_note(writer, &made, events->count);
	return error;
}

/* What is too large for an empty file is written as two. Which buffers it completes, the second one says. */
static int write_halves(struct writer *writer, const struct writer_events *events, struct diag *diag)
{
	struct writer_events first = *events, second = *events;
	first.count /= 2;
	first.first_sequence = 1;
	first.last_sequence = first.part_sequence = first.part_events = 0;
	second.count -= first.count;
#define X(column) second.column += first.count;
	EVENT_COLUMNS(X)
#undef X
	int error = writer_write_events(writer, &first, diag), second_error = writer_write_events(writer, &second, diag);
	return second_error ? second_error : error;
}

int writer_write_events(struct writer *writer, const struct writer_events *events, struct diag *diag)
{
	if (!events->count)
		return 0;
	if (!events_are_valid(writer, events))
		return diag_fail(diag, EINVAL, "events that refer to what is not there");
	int error = writer->error ? writer->error : write_block(writer, events, diag);
	if (error == -EFBIG && !writer->error && events->count > 1)
		return write_halves(writer, events, diag);
	if (!error)
		error = sequence_note(writer, &(struct taken){events->region, events->process, events->slot, events->first_sequence, events->last_sequence,
							      events->part_sequence, events->part_events});
	if (!error)
		return 0;
	writer->unwritten_blocks++;
	writer->unwritten_events += events->count;
	return explain(writer, error, diag);
}

int writer_flush(struct writer *writer, struct diag *diag)
{
	int error = writer->error ? writer->error : write_rows(writer, diag);
	return error ? explain(writer, error, diag) : 0;
}

uint32_t writer_last_sequence(const struct writer *writer, uint64_t region, uint32_t slot)
{
	const struct sequence *sequence = sequence_find(writer, region, slot);
	return sequence ? sequence->last : UINT32_MAX;
}

uint32_t writer_last_part(const struct writer *writer, uint64_t region, uint32_t slot, uint32_t sequence)
{
	const struct sequence *found = sequence_find(writer, region, slot);
	return found && found->part_events && found->part_sequence == sequence ? found->part_events : 0;
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

uint64_t writer_truncated_count(const struct writer *writer)
{
	return writer->truncated_count;
}

uint64_t writer_unwritten_events(const struct writer *writer)
{
	return writer->unwritten_events;
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

static void writer_free(struct writer *writer)
{
	for (size_t i = 0; i < sizeof(writer->sections) / sizeof(writer->sections[0]); i++)
		bytes_fini(&writer->sections[i].bytes);
	struct numbers *all[] = {&writer->images, &writer->entries, &writer->heaps, &writer->frames, &writer->nodes, &writer->processes,
				 &writer->threads};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]->numbers);
	dictionary_fini(&writer->dictionary);
	columns_encoder_free(writer->encoder);
	ZSTD_freeCCtx(writer->zstd);
	free(writer->event_nodes);
	bytes_fini(&writer->out);
	bytes_fini(&writer->payload);
	index_fini(&writer->sequence_index);
	free(writer->sequences);
	free(writer->output.segments);
	free(writer->process_mapping);
	free(writer->mapping_next);
	free(writer->clock_name);
	if (writer->output.fd >= 0)
		close(writer->output.fd);
	free(writer);
}

static bool is_whole(const struct writer *writer)
{
	return writer && writer->encoder && writer->zstd && writer->event_nodes;
}

static struct writer *writer_whole(const struct writer_options *options)
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
static int open_locked(struct writer *writer, const char *path, int flags, struct diag *diag)
{
	writer->output.fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | flags, 0666);
	if (writer->output.fd < 0)
		return diag_errno(diag, "cannot write %s", path);
	if (flock(writer->output.fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return diag_fail(diag, EBUSY, "%s is being written by another session", path);
	return 0;
}

static int write_header(struct writer *writer, const char *path, struct diag *diag)
{
	struct format_header header = {.magic = FORMAT_MAGIC, .version = FORMAT_VERSION, .header_bytes = sizeof(header),
				       .flags = writer->output.is_circular ? FORMAT_CIRCULAR : 0};
	static const uint8_t none[sizeof(header.trace_id)];
	struct stat status;
	if (fstat(writer->output.fd, &status))
		return diag_errno(diag, "cannot write %s", path);
	if (S_ISREG(status.st_mode) && ftruncate(writer->output.fd, 0))
		return diag_errno(diag, "cannot write %s", path);
	/* The pieces of a trace have one id. */
	if (!memcmp(writer->trace_id, none, sizeof(none)) && getrandom(writer->trace_id, sizeof(writer->trace_id), 0) != (ssize_t)sizeof(writer->trace_id))
		return diag_errno(diag, "no random number for %s", path);
	memcpy(header.trace_id, writer->trace_id, sizeof(header.trace_id));
	header.checksum = XXH3_64bits(&header, offsetof(struct format_header, checksum));
	bytes_add(&writer->out, &header, sizeof(header));
	int error = flush_out(writer, false);
	return error ? explain(writer, error, diag) : 0;
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
	int error = flush_out(writer, true), close_error = output_close(output);
	error = error ? error : close_error;
	if (error)
		return error;
	uint64_t events = 0;
	for (uint32_t i = 0; i < output->segment_count; i++)
		events += output->segments[i].events;
	error = writer->options.next(writer->options.cookie, output->size, events, path, sizeof(path), diag);
	output->first_number += output->segment_count;
	output->segment_count = 0;
	output->end = output->size = output->allocated = 0;
	error = error ? error : open_locked(writer, path, O_CREAT, diag);
	return error ? error : write_header(writer, path, diag);
}

int writer_turn(struct writer *writer, bool is_forced, struct diag *diag)
{
	bool has_events = is_forced;
	int error = writer_flush(writer, diag);
	for (uint32_t i = 0; i < writer->output.segment_count; i++)
		has_events |= writer->output.segments[i].events > 0;
	if (!error && has_events)
		error = turn(writer, diag);
	return error;
}

int writer_open(struct writer **out, const char *path, const struct writer_options *options, struct diag *diag)
{
	struct writer *writer = writer_new(options);
	if (!is_whole(writer) || !dictionary_init(&writer->dictionary)) {
		if (writer)
			writer_free(writer);
		return diag_fail(diag, ENOMEM, "no memory to write %s", path);
	}
	int error = open_locked(writer, path, O_CREAT, diag);
	if (!error)
		error = write_header(writer, path, diag);
	if (error) {
		writer_free(writer);
		return error;
	}
	*out = writer;
	return 0;
}

/* What rows say in place of blocks that are not there any more. */
static void adopt_sequences(struct writer *writer, const struct load *load)
{
	for (uint32_t i = 0; i < load->sequence_count && !writer->error; i++) {
		const struct rows_sequence *row = &load->sequences[i];
		bool has_whole = row->last != UINT32_MAX;
		if (sequence_note(writer, &(struct taken){row->region, row->process, row->slot, !has_whole, has_whole ? row->last : 0, row->part_sequence,
							  row->part_events}))
			writer_fail(writer, -ENOMEM);
	}
}

static void adopt_segments(struct writer *writer, const struct load *load)
{
	adopt_sequences(writer, load);
	for (uint32_t i = 0; i < load->segment_count; i++) {
		if (!output_add_segment(&writer->output))
			return writer_fail(writer, -ENOMEM);
		writer->output.segments[i].offset = load->segments[i].offset;
		segment_end(&writer->output.segments[i], load->segments[i].end);
	}
	if (load->segment_count) {
		const struct format_segment *last = &load->segments[load->segment_count - 1].head;
		writer->output.first_number = last->number + 1 - load->segment_count;
		writer->events_before = last->events_before;
		writer->last_ticks = last->last_ticks_before;
	}
	for (uint32_t i = 0; i < load->block_count && !writer->error; i++) {
		const struct load_block *block = &load->blocks[i];
		struct output_segment *note = &writer->output.segments[block->segment];
		note->first_ticks = block->head.first_ticks < note->first_ticks ? block->head.first_ticks : note->first_ticks;
		note->last_ticks = block->head.last_ticks > note->last_ticks ? block->head.last_ticks : note->last_ticks;
		note->events += block->count;
		writer->event_count += block->count;
		writer->events_before += block->segment == load->segment_count - 1 ? block->count : 0;
		writer->last_ticks = block->head.last_ticks > writer->last_ticks ? block->head.last_ticks : writer->last_ticks;
		writer->truncated_count += block->head.truncated;
		struct taken taken = block_taken(block);
		if (sequence_note(writer, &taken))
			writer_fail(writer, -ENOMEM);
	}
}

/* Take over what was read, but for its segments. */
static int adopt_rows(struct writer *writer, struct load *load, struct diag *diag)
{
	writer->dictionary = load->dictionary;
	load->dictionary = (struct dictionary){0};
	const struct dictionary *dictionary = &writer->dictionary;
	if (load->segment_count) {
		const struct format_segment *head = &load->segments[load->segment_count - 1].head;
		struct writer_clock clock = {.name = load->clock_name, .start_ticks = head->start_ticks, .mult = head->mult, .shift = head->shift,
					     .start_realtime_ns = head->start_realtime_ns};
		writer_set_clock(writer, &clock);
	}
	writer->unwritten_blocks = load->unwritten_blocks;
	writer->unwritten_events = load->unwritten_events;
	if (!array_room(&writer->process_mapping, &writer->process_capacity, dictionary->process_count) ||
	    !array_room(&writer->mapping_next, &writer->mapping_capacity, dictionary->mapping_count))
		writer_fail(writer, -ENOMEM);
	for (uint32_t id = 0; id < dictionary->mapping_count && !writer->error; id++) {
		if (dictionary->mappings[id].process == TRACE_NONE)
			continue;
		uint32_t *newest = &writer->process_mapping[dictionary->mappings[id].process];
		writer->mapping_next[id] = *newest;
		*newest = id + 1;
	}
	/* Merged traces are numbered anew: our rows are then of a trace of their own. */
	memcpy(writer->trace_id, load->trace_id, sizeof(writer->trace_id));
	if (load->segment_count)
		memcpy(writer->trace_id, load->segments[load->segment_count - 1].head.trace_id, sizeof(writer->trace_id));
	return writer->error ? diag_fail(diag, -writer->error, "no memory to go on with the trace") : 0;
}

static int adopt(struct writer *writer, struct load *load, struct diag *diag)
{
	int error = adopt_rows(writer, load, diag);
	adopt_segments(writer, load);
	return error ? error : writer->error ? diag_fail(diag, -writer->error, "no memory to go on with the trace") : 0;
}

/* Of processes that run: the rest of their buffers may still be in memory. */
static void put_sequences(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->sequence_count; i++) {
		const struct sequence *from = &writer->sequences[i];
		if (!from->region || writer->dictionary.processes[from->process].end != TRACE_END_OPEN)
			continue;
		need_segment(writer);
		need_process(writer, from->process);
		struct section *section = section_of(writer, FORMAT_FOLDED);
		rows_put_sequence(&section->bytes, &(struct rows_sequence){from->process, from->region, from->slot, from->last, from->part_sequence, from->part_events});
		section_added(writer, section);
	}
}

/* Who runs; and all that there were, as long as they are not that many. */
static void put_known_processes(struct writer *writer)
{
	const struct dictionary *dictionary = &writer->dictionary;
	uint32_t known = 0;
	for (uint32_t id = 0; id < dictionary->process_count; id++)
		known += dictionary->processes[id].pid != 0;
	for (uint32_t id = 0; id < dictionary->process_count; id++) {
		const struct trace_process *row = &dictionary->processes[id];
		if (row->end == TRACE_END_OPEN || (row->pid && known <= PROCESSES_KEPT)) {
			need_segment(writer);
			need_process(writer, id);
		}
	}
}

int writer_open_instead(struct writer **out, const char *path, const char *source, const struct writer_options *options, struct diag *diag)
{
	struct load load = {.fd = -1, .keeps_ticks = true, .keeps_ids = true};
	struct writer *writer = writer_whole(options);
	if (!writer)
		return diag_fail(diag, ENOMEM, "no memory to write %s", path);
	int error = load_file(&load, source, diag);
	error = error ? error : adopt_rows(writer, &load, diag);
	adopt_sequences(writer, &load);
	for (uint32_t i = 0; i < load.block_count && !writer->error; i++) {
		struct taken taken = block_taken(&load.blocks[i]);
		if (sequence_note(writer, &taken))
			writer_fail(writer, -ENOMEM);
	}
	error = error ? error : open_locked(writer, path, O_CREAT, diag);
	error = error ? error : write_header(writer, path, diag);
	if (!error) {
		put_known_processes(writer);
		put_sequences(writer);
	}
	load_fini(&load);
	if (error)
		writer_free(writer);
	else
		*out = writer;
	return error;
}

/* What is torn in the midst of a circular file is led over. */
static int mend_hole(struct writer *writer, const struct load *load)
{
	uint64_t offset = 0;
	for (uint32_t i = 0; i < load->segment_count; i++)
		if (load->segments[i].offset <= load->cut_offset && load->segments[i].offset > offset)
			offset = load->segments[i].offset;
	return offset ? output_skip(&writer->output, load->cut_offset, load->hole_end, offset) : 0;
}

int writer_reopen(struct writer **out, const char *path, const struct writer_options *options, struct diag *diag)
{
	struct load load = {.fd = -1, .keeps_ticks = true, .keeps_ids = true};
	struct writer *writer = writer_whole(options);
	if (!writer)
		return diag_fail(diag, ENOMEM, "no memory to write %s", path);
	int error = open_locked(writer, path, 0, diag);
	if (!error)
		error = load_file(&load, path, diag);
	if (!error && load.origins.count > 1)
		error = diag_fail(diag, ENOTSUP, "%s is made of parts of several traces and cannot be gone on with", path);
	if (!error && writer->options.is_whole && !load.is_complete)
		error = diag_fail(diag, EINVAL, "%s is not complete: %s; see xheap recover", path, load.cut_reason);
	if (!error)
		error = adopt(writer, &load, diag);
	if (!error && load.end < load.size && ftruncate(writer->output.fd, (off_t)load.end))
		error = diag_errno(diag, "cannot cut %s at offset %llu", path, (unsigned long long)load.end);
	if (!error) {
		writer->output.end = writer->output.size = format_aligned(load.end);
		/* Else it stays told that something is missing there. */
		if (load.hole_end)
			mend_hole(writer, &load);
		if (load.end < load.size)
			diag_fail(diag, 0, "cut %llu bytes behind offset %llu: %s", (unsigned long long)(load.size - load.end),
				  (unsigned long long)load.end, load.cut_reason);
		*out = writer;
	} else {
		writer_free(writer);
	}
	load_fini(&load);
	return error;
}

void writer_set_clock(struct writer *writer, const struct writer_clock *clock)
{
	/* One clock for the whole file: a reopened one has it. */
	if (writer->clock_name)
		return;
	writer->clock = *clock;
	writer->clock_name = strdup(clock->name ? clock->name : "");
	if (!writer->clock_name)
		writer_fail(writer, -ENOMEM);
	unsigned __int128 ticks = ((unsigned __int128)writer->options.segment_ns << clock->shift) / (clock->mult ? clock->mult : 1);
	writer->segment_ticks_max = ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
	writer->segment_first = clock->start_ticks;
	while (writer->cut_bits < CUT_BITS_MAX && (((unsigned __int128)clock->mult << (writer->cut_bits + 1)) >> clock->shift) < writer->options.resolution_ns)
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

/* What the end of a file that could not take everything still says: how processes ended, and what is missing. */
static void put_ending(struct writer *writer, struct section gaps)
{
	forget_unwritten(writer);
	writer->error = 0;
	begin_segment(writer, writer->segment_first);
	forget_rows(writer);
	struct section *section = section_of(writer, FORMAT_PROCESSES);
	for (uint32_t id = 0; id < writer->dictionary.process_count; id++) {
		struct section before = *section;
		put_process(writer, id);
		if (section->bytes.size <= PROCESSES_AFTER_END_BYTES)
			continue;
		section->bytes.size = before.bytes.size;
		section->count = before.count;
	}
	section = section_of(writer, FORMAT_GAPS);
	bytes_add(&section->bytes, gaps.bytes.data, gaps.bytes.size);
	section->count = gaps.count;
	put_sections(writer);
}

/* Write what waits; when that cannot be, the short ending instead. */
static void put_last_rows(struct writer *writer)
{
	struct section gaps = {.count = writer->sections[FORMAT_GAPS].count};
	bytes_add(&gaps.bytes, writer->sections[FORMAT_GAPS].bytes.data, writer->sections[FORMAT_GAPS].bytes.size);
	if (gaps.bytes.has_failed || gaps.bytes.size > GAPS_AFTER_END_BYTES)
		gaps.bytes.size = gaps.count = 0;
	if (!writer->error)
		write_rows(writer, &(struct diag){""});
	if (writer->error)
		put_ending(writer, gaps);
	bytes_fini(&gaps.bytes);
}

static void put_statistics(struct writer *writer, const struct trace_statistics *statistics)
{
	struct bytes payload = {0};
	struct format_block block = {.type = FORMAT_STATISTICS, .count = 1};
	rows_put_statistics(&payload, statistics);
	block.raw_bytes = (uint32_t)payload.size;
	put_block(writer, &block, NULL, &payload);
	bytes_fini(&payload);
}

static void put_footer(struct writer *writer)
{
	struct bytes payload = {0};
	struct format_block block = {.type = FORMAT_FOOTER, .count = writer->output.segment_count};
	struct format_tail tail = {.footer_offset = writer->output.end + writer->out.size, .magic = FORMAT_FOOTER_MAGIC};
	for (uint32_t i = 0; i < writer->output.segment_count; i++) {
		const struct output_segment *note = &writer->output.segments[i];
		bytes_number(&payload, note->offset);
		bytes_number(&payload, i + 1 < writer->output.segment_count ? note->bytes : tail.footer_offset - note->offset);
		bytes_number(&payload, note->events ? note->first_ticks : 0);
		bytes_number(&payload, note->last_ticks);
		bytes_number(&payload, note->events);
	}
	bytes_number(&payload, writer->unwritten_blocks);
	bytes_number(&payload, writer->unwritten_events);
	bytes_zero(&payload, format_aligned(payload.size) - payload.size);
	bytes_add(&payload, &tail, sizeof(tail));
	block.raw_bytes = (uint32_t)payload.size;
	if (payload.has_failed)
		writer_fail(writer, -ENOMEM);
	put_block(writer, &block, NULL, &payload);
	bytes_fini(&payload);
}

int writer_close(struct writer *writer, const struct trace_statistics *statistics, struct diag *diag)
{
	need_segment(writer);
	put_last_rows(writer);
	if (writer->is_head_due)
		put_segment_head(writer);
	if (statistics)
		put_statistics(writer, statistics);
	put_footer(writer);
	int error = flush_out(writer, true);
	int close_error = output_close(&writer->output);
	error = error ? error : close_error;
	if (error)
		error = explain(writer, error, diag);
	writer_free(writer);
	return error;
}
