/* SPDX-License-Identifier: MIT */
/*
 * A segment is complete by itself: the first time that something of it refers to a row, the row goes into one of the
 * sections, and the sections go into the file before what refers to them.
 *
 *     writer_add_*, writer_update_*  ->  sections  -.
 *     writer_write_events  -> nodes, frames -> sections -> out -> one write(2)
 *                          `> columns ----------------------^
 */
#include "trace/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/diag.h"
#include "base/grow.h"
#include "base/memory.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/memory_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"

struct diag;

enum {
	SECTION_BYTES = 1 << 20, /* a section is written when it has as many */
	FIRST_SEGMENTS = 4,
	FIRST_SEGMENT_BYTES = 1 << 16,
	PACKED_MIN = 64
};

/* Sections in the order in which they are written: none refers to a later one. */
static const uint16_t section_types[] = {
	FORMAT_OPTIONS, FORMAT_IMAGES,     FORMAT_PROCESSES, FORMAT_THREADS, FORMAT_MAPPINGS, FORMAT_ENTRIES,
	FORMAT_HEAPS,   FORMAT_FRAMES,     FORMAT_NODES,     FORMAT_GAPS,    FORMAT_MEMORY,   FORMAT_SYMBOLS,
	FORMAT_FOLDED,  FORMAT_EARLY_ENDS, FORMAT_RESIDENT,  FORMAT_PAGES,   FORMAT_LIMITS,   FORMAT_CAUSES};

/* ---- errors and memory ---- */

void writer_fail(struct writer *writer, int error)
{
	if (error == -ENOMEM && writer->options.ends_without_memory)
		memory_exhausted(0);
	if (!writer->error)
		writer->error = error;
}

int writer_explain(const struct writer *writer, int error, struct diag *diag)
{
	if (error == -EFBIG && writer->output.is_full)
		return diag_fail(diag, EFBIG, "the trace has reached its greatest size, %llu bytes",
				 (unsigned long long)writer->options.max_file_bytes);
	return diag_fail(diag, -error, "cannot write the trace at offset %llu: %s",
			 (unsigned long long)writer->output.end, strerror(-error));
}

/* The number of row `id` in this segment plus one; NULL: no memory. */
static uint32_t *number_of(struct writer *writer, struct numbers *numbers, uint32_t id)
{
	if (!grow_to(numbers->numbers, id, numbers->capacity)) {
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

struct section *segment_section(struct writer *writer, enum format_type type)
{
	writer->has_rows = true;
	return &writer->sections[type];
}

/* Add a block to what is to be written, right there. */
static void put_block_here(struct writer *writer, struct format_block *block, const void *head,
			   const struct bytes *payload)
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

void segment_end(struct output_segment *segment, uint64_t offset)
{
	segment->bytes = offset - segment->offset;
}

/* The head waits until something follows it, since clock and host may come after the first rows. */
void segment_put_head(struct writer *writer)
{
	struct output *output = &writer->output;
	struct format_segment head = {.number = output->first_number + output->segment_count - 1,
				      .shift = writer->clock.shift,
				      .start_ticks = writer->clock.start_ticks,
				      .mult = writer->clock.mult,
				      .start_realtime_ns = writer->clock.start_realtime_ns,
				      .events_before = writer->events_before,
				      .last_ticks_before = writer->last_ticks};
	struct format_block block = {.type = FORMAT_SEGMENT, .count = 1, .head_bytes = sizeof(head)};
	struct bytes payload = {0};
	writer->is_head_due = false;
	memcpy(head.trace_id, writer->trace_id, sizeof(head.trace_id));
	bytes_text(&payload, writer->clock_name ? writer->clock_name : "");
	bytes_text(&payload, writer->dictionary.host);
	block.raw_bytes = (uint32_t)payload.size;
	writer->segment_offset = output->segments[output->segment_count - 1].offset = output->end + writer->out.size;
	/* A segment that lies behind this one ended before writing went on at the file's beginning. */
	if (output->segment_count > 1 && output->segments[output->segment_count - 2].offset < writer->segment_offset)
		segment_end(&output->segments[output->segment_count - 2], writer->segment_offset);
	put_block_here(writer, &block, &head, &payload);
	if (payload.has_failed)
		writer_fail(writer, -ENOMEM);
	bytes_fini(&payload);
}

void segment_put_block(struct writer *writer, struct format_block *block, const void *head, const struct bytes *payload)
{
	if (writer->is_head_due)
		segment_put_head(writer);
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
	struct format_block block = {
		.type = type, .flags = essential, .raw_bytes = (uint32_t)section->bytes.size, .count = section->count};
	struct bytes *packed = &writer->payload;
	size_t least = section->bytes.size / FORMAT_EXPANSION_MAX + 1;
	packed->size = 0;
	if (section->bytes.has_failed)
		writer_fail(writer, -ENOMEM);
	if (section->bytes.size >= PACKED_MIN && writer->options.compression >= 0 &&
	    bytes_reserve(packed, ZSTD_compressBound(section->bytes.size))) {
		size_t size = ZSTD_compressCCtx(writer->zstd, packed->data, packed->capacity, section->bytes.data,
						section->bytes.size, 3);
		if (!ZSTD_isError(size) && size < section->bytes.size) {
			packed->size = size;
			if (size < least)
				put_skipped(packed, least - size);
			block.flags |= FORMAT_PACKED;
		}
	}
	segment_put_block(writer, &block, NULL, block.flags & FORMAT_PACKED ? packed : &section->bytes);
	section->bytes.size = 0;
	section->count = 0;
}

void segment_put_sections(struct writer *writer)
{
	for (size_t i = 0; writer->has_rows && i < sizeof(section_types) / sizeof(section_types[0]); i++)
		if (writer->sections[section_types[i]].count)
			put_section(writer, section_types[i], &writer->sections[section_types[i]]);
	writer->has_rows = false;
}

/* A row was added to the section. */
void segment_section_added(struct writer *writer, struct section *section)
{
	section->count++;
	if (writer->error) {
		/* Nothing more will be written but gaps, which say what is missing. */
		if (section != &writer->sections[FORMAT_GAPS] || section->bytes.size > GAPS_AFTER_END_BYTES)
			section->bytes.size = section->count = 0;
		return;
	}
	if (section->bytes.size >= SECTION_BYTES)
		segment_put_sections(writer);
}

/* Add a row to the section of its type. rows_put_NAME(bytes, ...) codes it. */
#define put_row(writer, type, name, ...) \
	do { \
		struct section *section_ = segment_section((writer), FORMAT_##type); \
		rows_put_##name(&section_->bytes, __VA_ARGS__); \
		segment_section_added((writer), section_); \
	} while (0)

/* ---- the file ---- */

/* Write what is gathered, if there is room for it; is_end: the room kept for the end may be used. */
int segment_flush(struct writer *writer, bool is_end)
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

bool segment_drops_old(const struct writer *writer)
{
	return writer->options.mode != WRITER_SEQUENTIAL;
}

void segment_need_process(struct writer *writer, uint32_t id);

/* Where segments may be dropped, write into each the processes that are recorded, and those that have ended since the
   segment before began. */
static void put_processes(struct writer *writer, uint64_t since)
{
	for (uint32_t id = 0; id < writer->dictionary.process_count; id++) {
		const struct trace_process *row = &writer->dictionary.processes[id];
		if (row->end == TRACE_END_OPEN || (row->end_ns != INT64_MAX && (uint64_t)row->end_ns >= since))
			segment_need_process(writer, id);
	}
	/* Keep the newest thread's row, so that a later writer continues its numbers. */
	if (writer->dictionary.thread_count)
		segment_need_thread(writer, writer->dictionary.thread_count - 1);
}

void segment_begin(struct writer *writer, uint64_t ticks)
{
	uint64_t since = writer->segment_first;
	/* Rows that wait belong to what was before. */
	segment_put_sections(writer);
	if (!output_add_segment(&writer->output)) {
		writer_fail(writer, -ENOMEM);
		return;
	}
	struct numbers *all[] = {&writer->images, &writer->entries,   &writer->heaps,  &writer->frames,
				 &writer->nodes,  &writer->processes, &writer->threads};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		numbers_begin(all[i]);
	writer->nodes.next = 1;
	writer->has_segment = writer->is_head_due = true;
	writer->segment_first = ticks;
	for (uint32_t i = 0; i < writer->dictionary.option_count; i++)
		put_row(writer, OPTIONS, option, &writer->dictionary.options[i]);
	if (segment_drops_old(writer))
		put_processes(writer, since);
}

/* The first row or event begins the first segment. */
void segment_need(struct writer *writer)
{
	if (!writer->has_segment)
		segment_begin(writer, writer->clock.start_ticks);
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

void segment_turn(struct writer *writer, const struct writer_events *events)
{
	uint64_t ticks = events->time[events->count - 1];
	bool is_large = writer->output.end - writer->segment_offset >= segment_most(writer);
	bool is_long = ticks > writer->segment_first && ticks - writer->segment_first >= writer->segment_ticks_max;
	if (writer->has_segment && (is_large || is_long) &&
	    writer->output.segments[writer->output.segment_count - 1].events)
		segment_begin(writer, ticks);
}

/* ---- rows that the segment needs ---- */

/* The number of the image in the segment, from 0, or TRACE_NONE. */
static uint32_t need_image(struct writer *writer, uint32_t id)
{
	uint32_t *number = id < writer->dictionary.image_count ? number_of(writer, &writer->images, id) : NULL;
	if (!number || *number)
		return number ? *number - 1 : TRACE_NONE;
	uint32_t own = *number = ++writer->images.next;
	put_row(writer, IMAGES, image, &writer->dictionary.images[id]);
	if (id < writer->image_is_source_capacity && writer->image_is_source[id])
		put_row(writer, SYMBOLS, named, &((struct trace_named){own - 1, TRACE_NAMED_BY_PYTHON}));
	return own - 1;
}

static void put_mapping(struct writer *writer, uint32_t id)
{
	struct trace_mapping row = writer->dictionary.mappings[id];
	row.image = need_image(writer, row.image);
	put_row(writer, MAPPINGS, mapping, id, &row);
}

static uint64_t text_bytes_of(const char *text)
{
	return text ? strlen(text) : 0;
}

void segment_keep_end_room(struct writer *writer, const struct trace_process *process)
{
	uint64_t bytes = writer->output.ending_bytes + ROWS_PROCESS_BYTES_MAX + text_bytes_of(process->image) +
			 text_bytes_of(process->command) + text_bytes_of(process->note);
	writer->output.ending_bytes = bytes < PROCESSES_AFTER_END_BYTES ? bytes : PROCESSES_AFTER_END_BYTES;
}

void segment_put_process(struct writer *writer, uint32_t id)
{
	put_row(writer, PROCESSES, process, id, &writer->dictionary.processes[id]);
}

/* The row of the process, those that it came from, and its mappings. */
void segment_need_process(struct writer *writer, uint32_t id)
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
			     : row->parent != TRACE_NONE && row->parent < at         ? row->parent
										     : TRACE_NONE;
		}
		if (oldest == TRACE_NONE)
			return;
		writer->processes.numbers[oldest] = 1;
		segment_put_process(writer, oldest);
		for (uint32_t next = writer->process_mapping[oldest]; next; next = writer->mapping_next[next - 1])
			put_mapping(writer, next - 1);
	}
}

static void put_thread(struct writer *writer, uint32_t id)
{
	put_row(writer, THREADS, thread, id, &writer->dictionary.threads[id]);
}

void segment_need_thread(struct writer *writer, uint32_t id)
{
	uint32_t *number = number_of(writer, &writer->threads, id);
	if (!number || *number)
		return;
	*number = 1;
	segment_need_process(writer, writer->dictionary.threads[id].process);
	put_thread(writer, id);
}

uint32_t segment_need_entry(struct writer *writer, uint32_t id)
{
	uint32_t *number = number_of(writer, &writer->entries, id);
	if (!number || *number)
		return number ? *number : 0;
	uint32_t own = *number = ++writer->entries.next;
	struct trace_entry row = writer->dictionary.entries[id];
	row.image = need_image(writer, row.image);
	put_row(writer, ENTRIES, entry, &row);
	return own;
}

uint32_t segment_need_heap(struct writer *writer, uint32_t id)
{
	uint32_t *number = number_of(writer, &writer->heaps, id);
	if (!number || *number)
		return number ? *number : 0;
	uint32_t own = *number = ++writer->heaps.next;
	segment_need_process(writer, writer->dictionary.heaps[id].process);
	put_row(writer, HEAPS, heap, &writer->dictionary.heaps[id]);
	return own;
}

static void put_symbol(struct writer *writer, uint32_t number, const struct trace_function *functions, uint32_t count)
{
	struct section *section = segment_section(writer, FORMAT_SYMBOLS);
	rows_put_symbol(&section->bytes, &(struct trace_symbol){.frame = number, .count = count});
	for (uint32_t i = 0; i < count; i++)
		rows_put_function(&section->bytes, &functions[i]);
	segment_section_added(writer, section);
}

/* The frame's number in the segment, from 0. */
static uint32_t need_frame(struct writer *writer, uint32_t id)
{
	uint32_t *number = number_of(writer, &writer->frames, id);
	if (!number || *number)
		return number ? *number - 1 : 0;
	uint32_t own = *number = ++writer->frames.next;
	struct trace_frame row = writer->dictionary.tree.frames[id];
	row.image = need_image(writer, row.image);
	put_row(writer, FRAMES, frame, &row);
	if (id < writer->frame_functions_capacity && writer->frame_functions[id].count) {
		const struct frame_functions *taken = &writer->frame_functions[id];
		put_symbol(writer, own - 1, &writer->dictionary.functions[taken->first], taken->count);
	}
	return own - 1;
}

/* Row of a node whose parent is in the segment. */
static void put_node(struct writer *writer, uint32_t id, uint32_t parent)
{
	uint32_t frame_next = writer->frames.next, frame = need_frame(writer, writer->dictionary.tree.nodes[id].frame);
	uint32_t *number = number_of(writer, &writer->nodes, id);
	if (!number)
		return;
	*number = writer->nodes.next++;
	/* The frame's distance is 0 if it is the next new one. */
	put_row(writer, NODES, link, &(struct rows_link){*number - parent, frame_next - frame});
}

/* The node's number in the segment; 0 is the root. */
uint32_t segment_need_node_slowly(struct writer *writer, uint32_t id)
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

/* ---- adding rows ---- */

uint32_t writer_add_process(struct writer *writer, const struct trace_process *process)
{
	segment_need(writer);
	uint32_t id = dictionary_add_process(&writer->dictionary, process);
	if (id == TRACE_NONE || !grow_to(writer->process_mapping, id, writer->process_capacity)) {
		writer_fail(writer, -ENOMEM);
		return TRACE_NONE;
	}
	segment_keep_end_room(writer, process);
	segment_need_process(writer, id);
	return id;
}

uint32_t writer_add_thread(struct writer *writer, const struct trace_thread *thread)
{
	if (thread->process >= writer->dictionary.process_count)
		return TRACE_NONE;
	segment_need(writer);
	uint32_t id = dictionary_add_thread(&writer->dictionary, thread);
	if (id == TRACE_NONE)
		writer_fail(writer, -ENOMEM);
	else
		segment_need_thread(writer, id);
	return id;
}

uint32_t writer_add_image(struct writer *writer, const struct trace_image *image)
{
	segment_need(writer);
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
	segment_need(writer);
	uint32_t id = dictionary_add_mapping(&writer->dictionary, mapping);
	if (id == TRACE_NONE || !grow_to(writer->mapping_next, id, writer->mapping_capacity)) {
		writer_fail(writer, -ENOMEM);
		return TRACE_NONE;
	}
	segment_need_process(writer, mapping->process);
	writer->mapping_next[id] = writer->process_mapping[mapping->process];
	writer->process_mapping[mapping->process] = id + 1;
	put_mapping(writer, id);
	return id;
}

uint32_t writer_add_entry(struct writer *writer, const struct trace_entry *entry)
{
	if (entry->function >= FUNCTION_COUNT)
		return TRACE_NONE;
	segment_need(writer);
	uint32_t count = writer->dictionary.entry_count, id = dictionary_add_entry(&writer->dictionary, entry);
	if (id == TRACE_NONE)
		writer_fail(writer, -ENOMEM);
	else if (id == count)
		segment_need_entry(writer, id);
	return id;
}

uint32_t writer_add_heap(struct writer *writer, const struct trace_heap *heap)
{
	if (heap->process >= writer->dictionary.process_count)
		return TRACE_NONE;
	segment_need(writer);
	uint32_t count = writer->dictionary.heap_count, id = dictionary_add_heap(&writer->dictionary, heap);
	if (id == TRACE_NONE)
		writer_fail(writer, -ENOMEM);
	else if (id == count)
		segment_need_heap(writer, id);
	return id;
}

/* Gaps that find no room at the end of a full file are a number there. */
static bool gap_counts_only(struct writer *writer, const struct trace_gap *gap)
{
	if (!writer->error || writer->sections[FORMAT_GAPS].bytes.size <= GAPS_AFTER_END_BYTES - ROWS_GAP_BYTES_MAX)
		return false;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		writer->unwritten.events += gap->count[kind];
	return true;
}

void writer_add_gap(struct writer *writer, const struct trace_gap *gap)
{
	segment_need(writer);
	if (gap_counts_only(writer, gap))
		return;
	if (gap->process < writer->dictionary.process_count)
		segment_need_process(writer, gap->process);
	if (gap->thread < writer->dictionary.thread_count)
		segment_need_thread(writer, gap->thread);
	put_row(writer, GAPS, gap, gap);
}

void writer_add_sample(struct writer *writer, const struct trace_sample *sample)
{
	segment_need(writer);
	segment_need_process(writer, sample->process);
	put_row(writer, MEMORY, sample, sample);
}

void writer_add_resident(struct writer *writer, const struct trace_resident *resident,
			 const struct trace_resident_part *parts)
{
	segment_need(writer);
	segment_need_process(writer, resident->process);
	struct section *section = segment_section(writer, FORMAT_RESIDENT);
	rows_put_resident(&section->bytes, resident);
	for (uint32_t i = 0; i < resident->spread; i++)
		rows_put_resident_part(&section->bytes, &parts[i]);
	segment_section_added(writer, section);
}

void writer_add_pages(struct writer *writer, const struct trace_pages *pages, const struct trace_page_run *runs)
{
	segment_need(writer);
	segment_need_process(writer, pages->process);
	struct section *section = segment_section(writer, FORMAT_PAGES);
	rows_put_pages(&section->bytes, pages);
	for (uint32_t i = 0; i < pages->spread; i++)
		rows_put_page_run(&section->bytes, &runs[i]);
	segment_section_added(writer, section);
}

void writer_add_limit(struct writer *writer, const struct trace_limit *limit)
{
	segment_need(writer);
	segment_need_process(writer, limit->process);
	put_row(writer, LIMITS, limit, limit);
}

void writer_add_cause(struct writer *writer, const struct trace_cause *cause)
{
	segment_need(writer);
	segment_need_process(writer, cause->process);
	put_row(writer, CAUSES, cause, cause);
}

void writer_add_symbol(struct writer *writer, uint32_t frame, const struct trace_function *functions, uint32_t count)
{
	segment_need(writer);
	put_symbol(writer, need_frame(writer, frame), functions, count);
}

/* Give the frame its functions, unless it has some. Return whether it has got them. */
static bool frame_take_functions(struct writer *writer, uint32_t frame, const struct trace_function *functions,
				 uint32_t count)
{
	struct frame_functions taken = {0, count};
	if (frame >= writer->dictionary.tree.frame_count ||
	    (frame < writer->frame_functions_capacity && writer->frame_functions[frame].count))
		return false;
	bool is_taken = grow_to(writer->frame_functions, frame, writer->frame_functions_capacity);
	for (uint32_t i = 0; i < count && is_taken; i++) {
		uint32_t id = dictionary_add_function(&writer->dictionary, &functions[i]);
		taken.first = i ? taken.first : id;
		is_taken = id != TRACE_NONE;
	}
	if (!is_taken) {
		writer_fail(writer, -ENOMEM);
		return false;
	}
	writer->frame_functions[frame] = taken;
	return true;
}

/* Note that the image is a source file of Python. */
static void image_take_source(struct writer *writer, uint32_t image)
{
	if (!grow_to(writer->image_is_source, image, writer->image_is_source_capacity)) {
		writer_fail(writer, -ENOMEM);
		return;
	}
	/* The segment may have the image already. */
	if (!writer->image_is_source[image] && image < writer->images.capacity && writer->images.numbers[image])
		put_row(writer, SYMBOLS, named,
			&((struct trace_named){writer->images.numbers[image] - 1, TRACE_NAMED_BY_PYTHON}));
	writer->image_is_source[image] = true;
}

void writer_name_frame(struct writer *writer, uint32_t frame, const struct trace_function *functions, uint32_t count)
{
	if (!frame_take_functions(writer, frame, functions, count))
		return;
	uint32_t image = writer->dictionary.tree.frames[frame].image;
	if (image != TRACE_NONE)
		image_take_source(writer, image);
}

void writer_name_frame_late(struct writer *writer, uint32_t frame, const struct trace_function *functions,
			    uint32_t count)
{
	if (!frame_take_functions(writer, frame, functions, count))
		return;
	if (frame < writer->frames.capacity && writer->frames.numbers[frame])
		put_symbol(writer, writer->frames.numbers[frame] - 1, functions, count);
	else if (grow_by_one(writer->late, writer->late_count, writer->late_capacity))
		writer->late[writer->late_count++] = frame;
	else
		writer_fail(writer, -ENOMEM);
}

void segment_put_late(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->late_count && !writer->error; i++)
		need_frame(writer, writer->late[i]);
	writer->late_count = 0;
}

void writer_add_named(struct writer *writer, const struct trace_named *named)
{
	segment_need(writer);
	struct trace_named row = *named;
	row.image = need_image(writer, row.image);
	put_row(writer, SYMBOLS, named, &row);
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
	segment_need(writer);
	row.until_ns = (int64_t)ticks_of(writer, fold->until_ns);
	row.peak_at_ns = (int64_t)ticks_of(writer, fold->peak_at_ns);
	put_row(writer, FOLDED, fold, &row);
}

void writer_add_sum(struct writer *writer, const struct trace_sum *sum, const struct trace_lifetime *lifetimes)
{
	struct trace_sum row = *sum;
	segment_need(writer);
	segment_need_thread(writer, sum->thread);
	row.stack = segment_need_node(writer, sum->stack);
	row.heap = sum->heap == TRACE_NONE ? TRACE_NONE : segment_need_heap(writer, sum->heap) - 1;
	row.entry = sum->entry == TRACE_NONE ? TRACE_NONE : segment_need_entry(writer, sum->entry) - 1;
	row.birth_first_ns = (int64_t)ticks_of(writer, sum->birth_first_ns);
	row.birth_last_ns = (int64_t)ticks_of(writer, sum->birth_last_ns);
	row.end_first_ns = (int64_t)ticks_of(writer, sum->end_first_ns);
	row.end_last_ns = (int64_t)ticks_of(writer, sum->end_last_ns);
	struct section *section = segment_section(writer, FORMAT_FOLDED);
	rows_put_sum(&section->bytes, &row);
	for (uint32_t i = 0; i < row.spread; i++)
		rows_put_lifetime(&section->bytes, &lifetimes[i]);
	segment_section_added(writer, section);
}

void writer_add_option(struct writer *writer, const char *name, const char *value)
{
	segment_need(writer);
	uint32_t count = writer->dictionary.option_count;
	uint32_t id = dictionary_add_option(&writer->dictionary, &(struct trace_option){name, value});
	if (id != count) {
		if (id == TRACE_NONE)
			writer_fail(writer, -ENOMEM);
		return;
	}
	put_row(writer, OPTIONS, option, &writer->dictionary.options[id]);
}

void writer_update_process(struct writer *writer, uint32_t id, const struct trace_process *process)
{
	if (id >= writer->dictionary.process_count)
		return;
	segment_need(writer);
	segment_need_process(writer, id);
	if (!dictionary_set_process(&writer->dictionary, id, process))
		writer_fail(writer, -ENOMEM);
	segment_put_process(writer, id);
	writer->output.has_end |= process->end != TRACE_END_OPEN;
}

void writer_update_thread(struct writer *writer, uint32_t id, const struct trace_thread *thread)
{
	if (id >= writer->dictionary.thread_count || thread->process >= writer->dictionary.process_count)
		return;
	segment_need(writer);
	segment_need_process(writer, thread->process);
	segment_need_thread(writer, id);
	if (!dictionary_set_thread(&writer->dictionary, id, thread))
		writer_fail(writer, -ENOMEM);
	put_thread(writer, id);
}

void writer_update_mapping(struct writer *writer, uint32_t id, const struct trace_mapping *mapping)
{
	if (id >= writer->dictionary.mapping_count || mapping->image >= writer->dictionary.image_count ||
	    mapping->end < mapping->base || mapping->process != writer->dictionary.mappings[id].process)
		return;
	segment_need(writer);
	segment_need_process(writer, mapping->process);
	writer->dictionary.mappings[id] = *mapping;
	put_mapping(writer, id);
}

struct writer_kept writer_kept(const struct writer *writer)
{
	const struct dictionary *dictionary = &writer->dictionary;
	const uint32_t counts[] = {dictionary->process_count, dictionary->thread_count, dictionary->image_count,
				   dictionary->mapping_count, dictionary->entry_count,  dictionary->heap_count,
				   dictionary->option_count,  writer->sequence_count};
	struct writer_kept kept = {.nodes = dictionary->tree.node_count, .frames = dictionary->tree.frame_count};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		kept.rows += counts[i];
	kept.stack_bytes = (uint64_t)kept.nodes * WRITER_NODE_BYTES + (uint64_t)kept.frames * WRITER_FRAME_BYTES;
	kept.row_bytes = (uint64_t)kept.rows * WRITER_ROW_BYTES + dictionary->text_bytes;
	return kept;
}

static uint32_t limit_of(uint32_t count, uint32_t more)
{
	return more < UINT32_MAX - count ? count + more : UINT32_MAX;
}

void writer_limit_stacks(struct writer *writer, uint32_t more_nodes, uint32_t more_frames)
{
	struct tree *tree = &writer->dictionary.tree;
	tree->node_limit = limit_of(tree->node_count, more_nodes);
	tree->frame_limit = limit_of(tree->frame_count, more_frames);
}

uint32_t writer_intern_frame(struct writer *writer, uint32_t image, uint64_t offset)
{
	const struct tree *tree = &writer->dictionary.tree;
	uint32_t id = image == TRACE_NONE || image < writer->dictionary.image_count
			      ? tree_frame(&writer->dictionary.tree, image, offset)
			      : TRACE_NONE;
	if (id == TRACE_NONE && tree->frame_count < tree->frame_limit)
		writer_fail(writer, -ENOMEM);
	return id;
}

uint32_t writer_intern_node(struct writer *writer, uint32_t parent, uint32_t frame)
{
	const struct tree *tree = &writer->dictionary.tree;
	if (parent >= tree->node_count || frame >= tree->frame_count)
		return 0;
	uint32_t id = tree_node(&writer->dictionary.tree, parent, frame);
	if (id == TRACE_NONE && tree->node_count < tree->node_limit) {
		writer_fail(writer, -ENOMEM);
		return 0;
	}
	return id;
}
