/* SPDX-License-Identifier: MIT */
#include "trace/reopen.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/grow.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/segment.h"

enum {
	PROCESSES_KEPT = 1 << 16 /* of a trace whose place is taken */,
	BEHIND_END_MAX = 4 * FORMAT_PAYLOAD_MAX /* bytes behind a file's end to which a SKIP may lead */
};

static void adopt_sequences(struct writer *writer, const struct load *load)
{
	for (uint32_t i = 0; i < load->sequence_count && !writer->error; i++) {
		const struct rows_sequence *row = &load->sequences[i];
		bool has_whole = row->last != UINT32_MAX;
		if (writer_note_sequence(writer, &(struct taken){row->region, row->process, row->slot, !has_whole,
								 has_whole ? row->last : 0, row->part_sequence,
								 row->part_events, 0}))
			writer_fail(writer, -ENOMEM);
	}
}

/* How far regions were taken. */
static void adopt_taken(struct writer *writer, const struct load *load)
{
	adopt_sequences(writer, load);
	for (uint32_t i = 0; i < load->block_count && !writer->error; i++) {
		struct taken taken = writer_block_taken(&load->blocks[i]);
		if (writer_note_sequence(writer, &taken))
			writer_fail(writer, -ENOMEM);
	}
}

static void adopt_segments(struct writer *writer, const struct load *load)
{
	adopt_taken(writer, load);
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
		note->first_ticks =
			block->head.first_ticks < note->first_ticks ? block->head.first_ticks : note->first_ticks;
		note->last_ticks =
			block->head.last_ticks > note->last_ticks ? block->head.last_ticks : note->last_ticks;
		note->events += block->count;
		writer->event_count += block->count;
		writer->events_before += block->segment == load->segment_count - 1 ? block->count : 0;
		writer->last_ticks =
			block->head.last_ticks > writer->last_ticks ? block->head.last_ticks : writer->last_ticks;
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
		struct writer_clock clock = {.name = load->clock_name,
					     .start_ticks = head->start_ticks,
					     .mult = head->mult,
					     .shift = head->shift,
					     .start_realtime_ns = head->start_realtime_ns};
		writer_set_clock(writer, &clock);
	}
	for (uint32_t id = 0; id < dictionary->process_count; id++)
		segment_keep_end_room(writer, &dictionary->processes[id]);
	writer->unwritten = load->unwritten;
	if (!grow_to(writer->process_mapping, dictionary->process_count, writer->process_capacity) ||
	    !grow_to(writer->mapping_next, dictionary->mapping_count, writer->mapping_capacity))
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
	memcpy(writer->file_id, load->trace_id, sizeof(writer->file_id));
	if (load->segment_count)
		memcpy(writer->trace_id, load->segments[load->segment_count - 1].head.trace_id,
		       sizeof(writer->trace_id));
	return writer->error ? diag_fail(diag, -writer->error, "no memory to go on with the trace") : 0;
}

static int adopt(struct writer *writer, struct load *load, struct diag *diag)
{
	int error = adopt_rows(writer, load, diag);
	adopt_segments(writer, load);
	return error ? error : writer->error ? diag_fail(diag, -writer->error, "no memory to go on with the trace") : 0;
}

/* Write how far the buffers of running processes are in the file: the rest may still be in memory. */
static void put_sequences(struct writer *writer)
{
	for (uint32_t i = 0; i < writer->sequence_count; i++) {
		const struct rows_sequence *from = &writer->sequences[i];
		if (!from->region || writer->dictionary.processes[from->process].end != TRACE_END_OPEN)
			continue;
		segment_need(writer);
		segment_need_process(writer, from->process);
		struct section *section = segment_section(writer, FORMAT_FOLDED);
		rows_put_sequence(&section->bytes, from);
		segment_section_added(writer, section);
	}
}

/* Write the rows of running processes, and of all processes if there are at most PROCESSES_KEPT. */
static void put_known_processes(struct writer *writer)
{
	const struct dictionary *dictionary = &writer->dictionary;
	uint32_t known = 0;
	for (uint32_t id = 0; id < dictionary->process_count; id++)
		known += dictionary->processes[id].pid != 0;
	for (uint32_t id = 0; id < dictionary->process_count; id++) {
		const struct trace_process *row = &dictionary->processes[id];
		if (row->end == TRACE_END_OPEN || (row->pid && known <= PROCESSES_KEPT)) {
			segment_need(writer);
			segment_need_process(writer, id);
		}
	}
}

int writer_open_instead(struct writer **out, const char *path, const char *source, const struct writer_options *options,
			struct diag *diag)
{
	struct load load = {.fd = -1, .keeps_ticks = true, .keeps_ids = true};
	struct writer *writer = writer_new_whole(options);
	if (!writer)
		return diag_fail(diag, ENOMEM, "no memory to write %s", path);
	int error = load_file(&load, source, diag);
	error = error ? error : adopt_rows(writer, &load, diag);
	adopt_taken(writer, &load);
	error = error ? error : writer_open_locked(writer, path, true, diag);
	error = error ? error : writer_write_header(writer, path, diag);
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

/* Write a SKIP block over the damaged part of a circular file. */
static int mend_hole(struct writer *writer, const struct load *load)
{
	uint64_t offset = 0;
	for (uint32_t i = 0; i < load->segment_count; i++)
		if (load->segments[i].offset <= load->cut_offset && load->segments[i].offset > offset)
			offset = load->segments[i].offset;
	return output_skip(&writer->output, load->cut_offset, load->hole_end, offset ? offset : load->cut_offset);
}

int writer_reopen(struct writer **out, const char *path, const struct writer_options *options, struct diag *diag)
{
	struct load load = {.fd = -1, .keeps_ticks = true, .keeps_ids = true};
	struct writer *writer = writer_new_whole(options);
	if (!writer)
		return diag_fail(diag, ENOMEM, "no memory to write %s", path);
	int error = writer_open_locked(writer, path, false, diag);
	if (!error)
		error = load_file(&load, path, diag);
	if (!error && load.origins.count > 1)
		error = diag_fail(diag, ENOTSUP, "cannot append to %s: it was merged from several traces", path);
	if (!error && writer->options.is_whole && !load.is_complete)
		error = diag_fail(diag, EINVAL, "%s is not complete: %s; see xheap recover", path, load.cut_reason);
	/* A SKIP of a circular file is written before the bytes that it leads over, so it may lead a little behind the
	   end of a file. A damaged one may lead anywhere. */
	if (!error && load.end > load.size + BEHIND_END_MAX)
		error = diag_fail(diag, EINVAL,
				  "%s cannot be continued: it has %llu bytes, and a SKIP leads to offset %llu", path,
				  (unsigned long long)load.size, (unsigned long long)load.end);
	if (!error)
		error = adopt(writer, &load, diag);
	if (!error && load.end < load.size && ftruncate(writer->output.fd, (off_t)load.end))
		error = diag_errno(diag, "cannot cut %s at offset %llu", path, (unsigned long long)load.end);
	if (!error) {
		writer->output.end = writer->output.size = format_aligned(load.end);
		/* If this fails, readers still say that something is missing there. */
		if (load.hole_end)
			mend_hole(writer, &load);
		if (load.end < load.size)
			diag_fail(diag, 0, "cut %llu bytes behind offset %llu: %s",
				  (unsigned long long)(load.size - load.end), (unsigned long long)load.end,
				  load.cut_reason);
		*out = writer;
	} else {
		writer_free(writer);
	}
	load_fini(&load);
	return error;
}

/* Add what an earlier file has of a slot; what is known already comes from later files. */
static int learn_taken(struct writer *writer, struct taken taken)
{
	const struct rows_sequence *known = writer_find_sequence(writer, taken.region, taken.slot);
	/* What a later file has behind an earlier one's buffers stays so. */
	struct taken later = {taken.region, taken.process, taken.slot, .first = 1, .events = known ? known->behind : 0};
	if (known) {
		taken.process = later.process = known->process;
		if (known->last != UINT32_MAX || known->part_events)
			taken.events = 0;
		if (known->last != UINT32_MAX)
			taken.first = 1, taken.last = 0;
		if (known->part_events)
			taken.part_events = 0;
	}
	bool names_buffers = taken.first <= taken.last || taken.part_events;
	int error = writer_note_sequence(writer, &taken);
	return error || !names_buffers ? error : writer_note_sequence(writer, &later);
}

int writer_learn(struct writer *writer, const char *path, struct diag *diag)
{
	struct load load = {.fd = -1, .keeps_ticks = true, .keeps_ids = true};
	int error = load_file(&load, path, diag);
	/* The last one says how far its slot was taken. */
	for (uint32_t i = load.block_count; i-- && !error;)
		if (learn_taken(writer, writer_block_taken(&load.blocks[i])))
			error = diag_fail(diag, ENOMEM, "no memory to go on after %s", path);
	load_fini(&load);
	return error;
}
