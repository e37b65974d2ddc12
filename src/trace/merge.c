/* SPDX-License-Identifier: MIT */
/*
 * A segment is complete by itself, and its rows are kept apart by the trace that it comes from. So segments are copied
 * as they are, but for their clock, which becomes that of the trace that began first, and for footers, of which there
 * is one in the end.
 */
#include "trace/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/random.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/whole_file.h"
#include "trace/load.h"
#include "trace/load_parts.h"
#include "trace/row_codec.h"

struct merge_part {
	const char *path;
	struct load load;
	bool is_loaded;
};

struct merging {
	struct merge_part *parts;
	unsigned count;
	bool is_join;
	const struct format_segment *clock; /* of the one that began first */
	int fd;
	uint64_t end;
	const struct trace_statistics *statistics; /* of pieces, which have none themselves; NULL: those of the parts */
	struct output_segment *notes;
	uint32_t note_count;
	struct bytes buffer;
};

/* ---- whether they go together ---- */

static struct writer_clock clock_of(const struct format_segment *head)
{
	return (struct writer_clock){.start_ticks = head->start_ticks,
				     .mult = head->mult,
				     .shift = head->shift,
				     .start_realtime_ns = head->start_realtime_ns};
}

static bool is_same_segment(const struct format_segment *one, const struct format_segment *other)
{
	return one->number == other->number && !memcmp(one->trace_id, other->trace_id, sizeof(one->trace_id));
}

/* Pieces are parts of one trace, and the last of them may have been cut. */
static int piece_check(const struct merging *merging, const struct merge_part *part, struct diag *diag)
{
	const struct load *load = &part->load;
	if (memcmp(load->trace_id, merging->parts[0].load.trace_id, sizeof(load->trace_id)) != 0)
		return diag_fail(diag, EINVAL, "%s and %s are no parts of one trace", merging->parts[0].path,
				 part->path);
	if (!load->segment_count && part == &merging->parts[0])
		return diag_fail(diag, EINVAL, "%s: %s", part->path, load->cut_reason);
	return 0;
}

static int part_check(const struct merging *merging, const struct merge_part *part, struct diag *diag)
{
	const struct load *load = &part->load, *first = &merging->parts[0].load;
	if (!load->is_complete || !load->segment_count)
		return diag_fail(diag, EINVAL, "%s is not complete: %s; see xheap recover", part->path,
				 load->segment_count ? load->cut_reason : "it is empty");
	if (strcmp(load->clock_name, first->clock_name) != 0)
		return diag_fail(diag, EINVAL, "%s has the clock %s, %s has %s", part->path, load->clock_name,
				 merging->parts[0].path, first->clock_name);
	if (strcmp(load->dictionary.host, first->dictionary.host) != 0)
		return diag_fail(diag, EINVAL, "%s is of another machine than %s: %s", part->path,
				 merging->parts[0].path, load->dictionary.host);
	struct writer_clock own = clock_of(&load->segments[0].head), known = clock_of(&first->segments[0].head);
	if (!load_is_one_boot(&own, &known))
		return diag_fail(diag, EINVAL, "%s and %s were recorded before and after the machine was started anew",
				 merging->parts[0].path, part->path);
	for (const struct merge_part *other = merging->parts; other < part; other++)
		for (uint32_t i = 0; i < load->segment_count; i++)
			for (uint32_t k = 0; k < other->load.segment_count; k++)
				if (is_same_segment(&load->segments[i].head, &other->load.segments[k].head))
					return diag_fail(diag, EINVAL, "%s and %s are, or hold, the same trace",
							 other->path, part->path);
	return 0;
}

static int parts_load(struct merging *merging, struct diag *diag)
{
	int error = 0;
	for (unsigned i = 0; i < merging->count && !error; i++) {
		struct merge_part *part = &merging->parts[i];
		part->load = (struct load){.fd = -1, .keeps_ticks = true};
		part->is_loaded = true;
		error = load_file(&part->load, part->path, diag);
		/* The last piece of a logger that was killed may have nothing yet. */
		if (error && merging->is_join && i > 0 && i + 1 == merging->count) {
			merging->count--;
			return 0;
		}
		if (!error)
			error = merging->is_join ? piece_check(merging, part, diag) : part_check(merging, part, diag);
		if (!error && part->load.segment_count &&
		    (!merging->clock || part->load.segments[0].head.start_ticks < merging->clock->start_ticks))
			merging->clock = &part->load.segments[0].head;
	}
	return error;
}

/* ---- writing ---- */

static int put(struct merging *merging, const void *data, size_t size, struct diag *diag)
{
	if (!file_write(merging->fd, data, size, merging->end))
		return diag_errno(diag, "cannot write the merged trace");
	merging->end += size;
	return 0;
}

static int put_header(struct merging *merging, struct diag *diag)
{
	struct format_header header = {
		.magic = FORMAT_MAGIC, .version = FORMAT_VERSION, .header_bytes = sizeof(header)};
	if (getrandom(header.trace_id, sizeof(header.trace_id), 0) != (ssize_t)sizeof(header.trace_id))
		return diag_errno(diag, "no random number");
	header.checksum = XXH3_64bits(&header, offsetof(struct format_header, checksum));
	return put(merging, &header, sizeof(header), diag);
}

/* A block as it is, but for the head of a segment, which gets the clock of all. */
static int copy_block(struct merging *merging, int fd, uint64_t offset, const struct format_block *read, uint64_t bytes,
		      struct diag *diag)
{
	struct bytes *buffer = &merging->buffer;
	buffer->size = 0;
	if (!bytes_reserve(buffer, bytes))
		return diag_fail(diag, ENOMEM, "no memory to merge traces");
	if (!load_bytes(fd, buffer->data, bytes, offset))
		return diag_fail(diag, EIO, "a block at offset %llu is gone", (unsigned long long)offset);
	if (read->type == FORMAT_SEGMENT) {
		struct format_block block = *read;
		struct format_segment head;
		memcpy(&head, buffer->data + sizeof(block), sizeof(head));
		head.start_ticks = merging->clock->start_ticks;
		head.mult = merging->clock->mult;
		head.shift = merging->clock->shift;
		head.start_realtime_ns = merging->clock->start_realtime_ns;
		memcpy(buffer->data + sizeof(block), &head, sizeof(head));
		format_sign(&block, buffer->data + sizeof(block));
		memcpy(buffer->data, &block, sizeof(block));
	}
	return put(merging, buffer->data, bytes, diag);
}

/* Copy all blocks of a segment but its footer, which is the last one. */
static int copy_segment(struct merging *merging, const struct merge_part *part, uint32_t number, struct diag *diag)
{
	const struct load *load = &part->load;
	uint64_t from = load->segments[number].offset, end = load->segments[number].end;
	struct output_segment *note = &merging->notes[merging->note_count++];
	*note = (struct output_segment){.offset = merging->end, .first_ticks = UINT64_MAX};
	for (uint64_t at = from; at < end;) {
		struct format_block block;
		if (end - at < sizeof(block) || !load_bytes(load->fd, &block, sizeof(block), at) ||
		    block.magic != FORMAT_BLOCK_MAGIC)
			return diag_fail(diag, EIO, "%s: the block at offset %llu is gone", part->path,
					 (unsigned long long)at);
		uint64_t bytes = format_aligned(sizeof(block) + (uint64_t)block.head_bytes + block.payload_bytes);
		if (bytes > end - at)
			return diag_fail(diag, EIO, "%s: the block at offset %llu is cut", part->path,
					 (unsigned long long)at);
		int error = block.type == FORMAT_FOOTER ? 0 : copy_block(merging, load->fd, at, &block, bytes, diag);
		if (error)
			return error;
		at += bytes;
	}
	note->bytes = merging->end - note->offset;
	for (uint32_t i = 0; i < load->block_count; i++) {
		const struct load_block *block = &load->blocks[i];
		if (block->segment != number)
			continue;
		note->events += block->count;
		note->first_ticks =
			block->head.first_ticks < note->first_ticks ? block->head.first_ticks : note->first_ticks;
		note->last_ticks =
			block->head.last_ticks > note->last_ticks ? block->head.last_ticks : note->last_ticks;
	}
	return 0;
}

/* A block without a head, in the last segment. The payload is freed. */
static int put_block(struct merging *merging, struct format_block *block, struct bytes *payload, struct diag *diag)
{
	block->raw_bytes = block->payload_bytes = (uint32_t)payload->size;
	block->place = merging->end - merging->notes[merging->note_count - 1].offset;
	block->payload_checksum = payload->has_failed ? 0 : XXH3_64bits(payload->data, payload->size);
	format_sign(block, "");
	if (!payload->has_failed)
		bytes_zero(payload, format_aligned(payload->size) - payload->size);
	int error = payload->has_failed ? diag_fail(diag, ENOMEM, "no memory to merge traces")
					: put(merging, block, sizeof(*block), diag);
	error = error ? error : put(merging, payload->data, payload->size, diag);
	bytes_fini(payload);
	return error;
}

static int put_footer(struct merging *merging, struct diag *diag)
{
	struct bytes payload = {0};
	struct format_block block = {.magic = FORMAT_BLOCK_MAGIC, .type = FORMAT_FOOTER, .count = merging->note_count};
	struct format_tail tail = {.footer_offset = merging->end, .magic = FORMAT_FOOTER_MAGIC};
	struct rows_unwritten unwritten = {0};
	for (uint32_t i = 0; i < merging->note_count; i++) {
		struct output_segment row = merging->notes[i];
		row.first_ticks = row.events ? row.first_ticks : 0;
		rows_put_footer_segment(&payload, &row);
	}
	/* Each piece has the sum of those before it. */
	for (unsigned i = merging->is_join ? merging->count - 1 : 0; i < merging->count; i++) {
		unwritten.blocks += merging->parts[i].load.unwritten.blocks;
		unwritten.events += merging->parts[i].load.unwritten.events;
	}
	rows_put_unwritten(&payload, &unwritten);
	bytes_zero(&payload, format_aligned(payload.size) - payload.size);
	bytes_add(&payload, &tail, sizeof(tail));
	return put_block(merging, &block, &payload, diag);
}

static int put_statistics(struct merging *merging, struct diag *diag)
{
	struct bytes payload = {0};
	struct format_block block = {.magic = FORMAT_BLOCK_MAGIC, .type = FORMAT_STATISTICS, .count = 1};
	rows_put_statistics(&payload, merging->statistics);
	return put_block(merging, &block, &payload, diag);
}

static int write_all(struct merging *merging, struct diag *diag)
{
	uint32_t segments = 0;
	for (unsigned i = 0; i < merging->count; i++)
		segments += merging->parts[i].load.segment_count;
	merging->notes = calloc(segments, sizeof(*merging->notes));
	int error = merging->notes ? put_header(merging, diag) : diag_fail(diag, ENOMEM, "no memory to merge traces");
	for (unsigned i = 0; i < merging->count; i++)
		for (uint32_t k = 0; k < merging->parts[i].load.segment_count && !error; k++)
			error = copy_segment(merging, &merging->parts[i], k, diag);
	if (!error && merging->statistics)
		error = put_statistics(merging, diag);
	return error ? error : put_footer(merging, diag);
}

/* Refuse to replace a file that is read, and whatever is no regular file. */
static int output_check(const char *output, const char *const *paths, unsigned count, struct diag *diag)
{
	struct stat there;
	if (stat(output, &there) == 0 && !S_ISREG(there.st_mode))
		return diag_fail(diag, EINVAL, "cannot write %s: it is no file", output);
	return whole_file_check(output, paths, count, diag);
}

/* Return the permissions that all merged files have in common. */
static mode_t permissions_common(const struct merging *merging)
{
	struct stat status;
	mode_t permissions = 0666;
	for (unsigned i = 0; i < merging->count; i++)
		permissions &= stat(merging->parts[i].path, &status) == 0 ? status.st_mode : FILE_PERMISSIONS;
	return permissions | FILE_PERMISSIONS;
}

static int output_make(struct merging *merging, const char *output, struct diag *diag)
{
	struct whole_file file;
	int error = whole_file_open(&file, output, FILE_PERMISSIONS, diag);
	if (error)
		return error;
	merging->fd = file.fd;
	error = write_all(merging, diag);
	if (!error && fchmod(file.fd, permissions_common(merging)) != 0)
		error = diag_errno(diag, "cannot set the mode of %s", output);
	if (!error)
		return whole_file_commit(&file, diag);
	whole_file_abandon(&file);
	return error;
}

static int merge(const char *output, const char *const *paths, unsigned count, const struct merging *how,
		 struct diag *diag)
{
	struct merging merging = *how;
	merging.count = count;
	int error = output_check(output, paths, count, diag);
	if (error)
		return error;
	merging.parts = calloc(count ? count : 1, sizeof(*merging.parts));
	if (!merging.parts)
		return diag_fail(diag, ENOMEM, "no memory to merge traces");
	for (unsigned i = 0; i < count; i++)
		merging.parts[i].path = paths[i];
	error = count ? parts_load(&merging, diag) : diag_fail(diag, EINVAL, "there is nothing to merge");
	if (!error)
		error = output_make(&merging, output, diag);
	for (unsigned i = 0; i < count; i++)
		if (merging.parts[i].is_loaded)
			load_fini(&merging.parts[i].load);
	bytes_fini(&merging.buffer);
	free(merging.notes);
	free(merging.parts);
	return error;
}

int trace_merge(const char *output, const char *const *paths, unsigned count, struct diag *diag)
{
	return merge(output, paths, count, &(struct merging){.is_join = false}, diag);
}

int trace_join(const char *output, const char *const *paths, unsigned count, const struct trace_statistics *statistics,
	       struct diag *diag)
{
	return merge(output, paths, count, &(struct merging){.is_join = true, .statistics = statistics}, diag);
}
