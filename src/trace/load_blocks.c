/* SPDX-License-Identifier: MIT */
/* Blocks, one behind the other. */
#include "trace/load_blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "base/cancel.h"
#include "trace/load_parts.h"
#include "trace/load_rows.h"
#include "trace/row_codec.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	SEARCH_BYTES = 1 << 20,
	AHEAD_BYTES = 8 << 20,
	HEAD_FIRST_BYTES = 256,
	WASTE_PER_BYTE = 8,
	WASTE_MIN = 1 << 26,
	SEGMENT_PAYLOAD_MAX = 1 << 14
};

bool load_read_payload(struct load *load, const struct load_found *found, struct reading *reading)
{
	const struct format_block *block = &found->block;
	struct bytes *stored = &load->scratch;
	size_t head_bytes = sizeof(*block) + block->head_bytes;
	stored->size = head_bytes;
	if (!bytes_reserve(stored, block->payload_bytes + 1))
		return load_cut(load, found->offset, "no memory for the block at offset %llu",
				(unsigned long long)found->offset);
	uint8_t *data = stored->data + head_bytes;
	if (!load_bytes(load->fd, data, block->payload_bytes, found->offset + head_bytes))
		return load_cut(load, found->offset, "the block at offset %llu cannot be read",
				(unsigned long long)found->offset);
	load->wasted += block->payload_bytes;
	if (XXH3_64bits(data, block->payload_bytes) != block->payload_checksum)
		return load_cut(load, found->offset, "the block at offset %llu is damaged: its checksum differs",
				(unsigned long long)found->offset);
	*reading = (struct reading){.at = data, .end = data + block->payload_bytes};
	if (!(block->flags & FORMAT_PACKED))
		return true;
	if (block->raw_bytes > FORMAT_RAW_MAX || block->raw_bytes / FORMAT_EXPANSION_MAX > block->payload_bytes)
		return load_cut(load, found->offset, "the block at offset %llu claims more than it can hold",
				(unsigned long long)found->offset);
	load->unpacked.size = 0;
	if (!bytes_reserve(&load->unpacked, block->raw_bytes + 1))
		return load_cut(load, found->offset, "no memory for the block at offset %llu",
				(unsigned long long)found->offset);
	size_t size = ZSTD_decompress(load->unpacked.data, block->raw_bytes, data, block->payload_bytes);
	if (ZSTD_isError(size) || size != block->raw_bytes)
		return load_cut(load, found->offset, "the block at offset %llu cannot be unpacked",
				(unsigned long long)found->offset);
	*reading = (struct reading){.at = load->unpacked.data, .end = load->unpacked.data + size};
	return true;
}

static bool take_rows(struct load *load, const struct load_found *found)
{
	struct reading reading;
	if (!load_read_payload(load, found, &reading))
		return false;
	for (uint32_t i = 0; i < found->block.count; i++)
		if (!load_take_row(load, found->block.type, &reading))
			return load_cut(load, found->offset,
					"row %u of the block at offset %llu (type %u) is not valid", i,
					(unsigned long long)found->offset, found->block.type);
	return true;
}

static bool take_statistics(struct load *load, const struct load_found *found)
{
	struct reading reading;
	if (!load_read_payload(load, found, &reading))
		return false;
	struct trace_statistics row, *sum = &load->dictionary.statistics;
	rows_get_statistics(&reading, &row);
	if (reading.has_failed)
		return load_cut(load, found->offset, "the statistics at offset %llu are not valid",
				(unsigned long long)found->offset);
		/* A trace that was gone on with has them from each of its writers. */
#define ADD_SUM(member) sum->member += row.member;
#define ADD_LAST(member) sum->member = row.member;
#define ADD_GREATEST(member) sum->member = row.member > sum->member ? row.member : sum->member;
#define X(encoding, reference, member, limit, meaning) ADD_##reference(member)
	FIELDS_statistics(X);
#undef X
	sum->is_known = true;
	return true;
}

/* How stacks end, behind the kinds: there were traces without it, and with the first word only. */
static void take_ends(struct load_block *block, const uint8_t *at, uint64_t words)
{
	if (words)
		memcpy(&block->unwindless, at, sizeof(block->unwindless));
	block->is_whole_known = words >= FORMAT_EVENTS_END_WORDS;
	if (block->is_whole_known)
		memcpy(&block->whole, at + sizeof(block->unwindless), sizeof(block->whole));
}

static bool take_events(struct load *load, const struct load_found *found)
{
	struct load_block own = {.offset = found->offset,
				 .segment = load->segment_count - 1,
				 .head_bytes = found->block.head_bytes,
				 .payload_bytes = found->block.payload_bytes,
				 .payload_checksum = found->block.payload_checksum,
				 .count = found->block.count};
	uint64_t words = (found->block.head_bytes - sizeof(own.head)) / 4, total;
	if (found->block.head_bytes < sizeof(own.head))
		return load_cut(load, found->offset, "the events at offset %llu have no head",
				(unsigned long long)found->offset);
	memcpy(&own.head, found->head, sizeof(own.head));
	own.head.process = load_known_id(load, &load->processes, own.head.process);
	own.head.thread = load_known_id(load, &load->threads, own.head.thread);
	total = (uint64_t)own.head.failed + own.head.in_flight;
	bool is_valid = own.count > 0 && own.count <= FORMAT_EVENTS_MAX &&
			own.count / FORMAT_EVENTS_PER_BYTE <= own.payload_bytes && own.head.process != TRACE_NONE &&
			own.head.thread != TRACE_NONE && own.head.kind_count <= words && own.head.node_count &&
			own.head.node_count <= load_current(load)->nodes.count &&
			own.head.first_ticks <= own.head.last_ticks;
	for (uint32_t i = 0; is_valid && i < own.head.kind_count; i++) {
		uint32_t word;
		memcpy(&word, found->head + sizeof(own.head) + i * 4, sizeof(word));
		is_valid = word >> 24 < EVENT_KIND_COUNT;
		if (is_valid)
			own.kind_count[word >> 24] += word & 0xffffff;
		total += word & 0xffffff;
	}
	if (is_valid)
		take_ends(&own, found->head + sizeof(own.head) + own.head.kind_count * 4, words - own.head.kind_count);
	if (!is_valid || total != own.count || (uint64_t)own.head.truncated + own.unwindless + own.whole > own.count)
		return load_cut(load, found->offset, "the head of the events at offset %llu is not valid",
				(unsigned long long)found->offset);
	if (!load_grow(load->blocks, load->block_count, load->block_capacity))
		return load_cut(load, found->offset, "no memory for the events at offset %llu",
				(unsigned long long)found->offset);
	load->blocks[load->block_count++] = own;
	return true;
}

/* The number of this trace id among those seen; ids of rows are kept apart by it. */
static bool origin_note(struct load *load, const struct format_segment *head)
{
	uint64_t low;
	bool added;
	memcpy(&low, head->trace_id, sizeof(low));
	uint32_t *origin = map_try_add(&load->origins, low, &added);
	if (origin && added)
		*origin = load->origins.count - 1;
	return origin != NULL;
}

static bool take_segment(struct load *load, const struct load_found *found)
{
	struct load_segment segment = {.offset = found->offset, .end = found->offset};
	struct reading reading;
	if (found->block.head_bytes < sizeof(segment.head) || found->block.place ||
	    found->block.payload_bytes > SEGMENT_PAYLOAD_MAX)
		return load_cut(load, found->offset, "the head of the segment at offset %llu is not valid",
				(unsigned long long)found->offset);
	memcpy(&segment.head, found->head, sizeof(segment.head));
	if (segment.head.shift > 63 || !load_grow(load->segments, load->segment_count, load->segment_capacity))
		return load_cut(load, found->offset, "the clock of the segment at offset %llu is not valid",
				(unsigned long long)found->offset);
	if (!load_read_payload(load, found, &reading))
		return false;
	const char *text = rows_get_text(&reading, &load->texts);
	const char *clock = dictionary_text(&load->dictionary, text, strlen(text));
	text = rows_get_text(&reading, &load->texts);
	const char *host = dictionary_text(&load->dictionary, text, strlen(text));
	if (reading.has_failed || !clock || !host || !origin_note(load, &segment.head) ||
	    !load_ids_add(&segment.nodes, 0))
		return load_cut(load, found->offset, "the segment at offset %llu does not say what it is",
				(unsigned long long)found->offset);
	if (!load->segment_count) {
		load->clock_name = clock;
		load->dictionary.host = host;
	}
	load->segments[load->segment_count++] = segment;
	return true;
}

/* The segments that it lists; then what could not be written. */
static bool take_footer(struct load *load, const struct load_found *found)
{
	struct reading reading;
	if (!load_read_payload(load, found, &reading))
		return false;
	uint64_t events = 0;
	for (uint32_t i = 0; i < found->block.count && !reading.has_failed; i++) {
		struct output_segment row;
		rows_get_footer_segment(&reading, NULL, &row);
		events += row.events;
	}
	rows_get_unwritten(&reading, NULL, &load->unwritten);
	uint64_t known = 0;
	for (uint32_t i = 0; i < load->block_count; i++)
		known += load->blocks[i].count;
	if (reading.has_failed)
		return load_cut(load, found->offset, "the footer at offset %llu is not valid",
				(unsigned long long)found->offset);
	if (found->block.count != load->segment_count || events != known)
		load_cut(load, found->offset,
			 "the footer at offset %llu lists %u segments with %llu events, found were %u with %llu",
			 (unsigned long long)found->offset, found->block.count, (unsigned long long)events,
			 load->segment_count, (unsigned long long)known);
	return true;
}

static bool take_block(struct load *load, const struct load_found *found)
{
	const struct format_block *block = &found->block;
	if (block->type == FORMAT_SEGMENT)
		return take_segment(load, found);
	if (!load->segment_count)
		return load_cut(load, found->offset, "the block at offset %llu is in no segment",
				(unsigned long long)found->offset);
	struct load_segment *segment = load_current(load);
	if (block->place != found->offset - segment->offset)
		return load_cut(load, found->offset, "the block at offset %llu does not belong there",
				(unsigned long long)found->offset);
	bool is_taken;
	if (load_has_row_type(block->type))
		is_taken = take_rows(load, found);
	else if (block->type == FORMAT_EVENTS)
		is_taken = take_events(load, found);
	else if (block->type == FORMAT_STATISTICS)
		is_taken = take_statistics(load, found);
	else if (block->type == FORMAT_FOOTER)
		is_taken = take_footer(load, found);
	else
		is_taken = !(block->flags & FORMAT_ESSENTIAL) ||
			   load_cut(load, found->offset, "the block at offset %llu is of a later version (type %u)",
				    (unsigned long long)found->offset, block->type);
	return is_taken;
}

bool load_find_block(struct load *load, uint64_t offset, struct load_found *found)
{
	struct format_block *block = &found->block;
	unsigned long long at = offset;
	found->offset = offset;
	if (cancel_is_asked(load->is_cancelled))
		return load_cut(load, offset, "cancelled at offset %llu", at);
	/* Most heads are whole with what is read at once. */
	struct bytes *scratch = &load->scratch;
	uint64_t left = load->size - offset;
	size_t size = left < HEAD_FIRST_BYTES ? (size_t)left : HEAD_FIRST_BYTES;
	scratch->size = 0;
	if (!bytes_reserve(scratch, sizeof(*block) + FORMAT_HEAD_MAX))
		return load_cut(load, offset, "no memory for the block at offset %llu", at);
	if (left < sizeof(*block) || !load_bytes(load->fd, scratch->data, size, offset))
		return load_cut(load, offset, "the file ends within a block, at offset %llu", at);
	memcpy(block, scratch->data, sizeof(*block));
	if (block->magic != FORMAT_BLOCK_MAGIC || block->head_bytes > FORMAT_HEAD_MAX || block->head_bytes % 4)
		return load_cut(load, offset, "there is no block at offset %llu", at);
	size_t whole = sizeof(*block) + block->head_bytes;
	found->head = scratch->data + sizeof(*block);
	if (left < whole || (whole > size && !load_bytes(load->fd, scratch->data + size, whole - size, offset + size)))
		return load_cut(load, offset, "the file ends within a block, at offset %llu", at);
	/* The checksum goes over what is before it and what is behind it. */
	memmove(scratch->data + 8, scratch->data, offsetof(struct format_block, head_checksum));
	uint64_t checksum =
		XXH3_64bits(scratch->data + 8, offsetof(struct format_block, head_checksum) + block->head_bytes);
	if (checksum != block->head_checksum)
		return load_cut(load, offset, "the block at offset %llu is damaged: the checksum of its head differs",
				at);
	uint64_t bytes = format_aligned(sizeof(*block) + (uint64_t)block->head_bytes + block->payload_bytes);
	if (block->payload_bytes > FORMAT_PAYLOAD_MAX)
		return load_cut(load, offset, "the block at offset %llu is too large", at);
	if (load->size - offset < bytes)
		return load_cut(load, offset, "the file ends within the block at offset %llu", at);
	return true;
}

uint64_t load_found_end(const struct load_found *found)
{
	return found->offset +
	       format_aligned(sizeof(found->block) + (uint64_t)found->block.head_bytes + found->block.payload_bytes);
}

uint64_t load_search_segment(struct load *load, uint64_t from)
{
	uint8_t *buffer = malloc(SEARCH_BYTES);
	uint64_t offset = format_aligned(from);
	for (size_t step; buffer && offset + sizeof(struct format_block) <= load->size; offset += step) {
		if (cancel_is_asked(load->is_cancelled))
			break;
		uint64_t left = load->size - offset;
		size_t size = left < SEARCH_BYTES ? (size_t)left : SEARCH_BYTES;
		if (!load_bytes(load->fd, buffer, size, offset))
			break;
		for (size_t at = 0; at + sizeof(struct format_block) <= size; at += 8) {
			struct format_block block;
			memcpy(&block, buffer + at, sizeof(block));
			if (block.magic == FORMAT_BLOCK_MAGIC && block.type == FORMAT_SEGMENT && block.place == 0 &&
			    block.head_bytes == sizeof(struct format_segment)) {
				free(buffer);
				return offset + at;
			}
		}
		step = size == SEARCH_BYTES ? SEARCH_BYTES - sizeof(struct format_block) : size;
	}
	free(buffer);
	return load->size;
}

/* Heads of blocks lie everywhere in the file: from a disk it is read faster in few large pieces. */
static void read_ahead(struct load *load, uint64_t offset)
{
	if (offset + AHEAD_BYTES / 2 < load->ahead)
		return;
	load->ahead = offset > load->ahead ? offset : load->ahead;
	posix_fadvise(load->fd, (off_t)load->ahead, AHEAD_BYTES, POSIX_FADV_WILLNEED);
	load->ahead += AHEAD_BYTES;
}

void load_walk(struct load *load, uint64_t offset, uint64_t end)
{
	struct load_found found;
	while (offset < end) {
		read_ahead(load, offset);
		/* An errno of an earlier failure is not this block's. */
		errno = 0;
		if (load_find_block(load, offset, &found) && take_block(load, &found)) {
			load->last_offset = offset;
			load->last_checksum = found.block.head_checksum;
			offset = load->end = load_found_end(&found);
			load_current(load)->end = offset;
			load->wasted = 0;
			/* The checksum of a block's head covers that of its payload. */
			load->contents = XXH3_64bits_withSeed(&found.block.head_checksum,
							      sizeof(found.block.head_checksum), load->contents);
			load->is_complete = found.block.type == FORMAT_FOOTER && !load->cut_reason[0];
			continue;
		}
		/* A lack of memory is no damage of the file. */
		load->lacks_memory |= errno == ENOMEM;
		/* A file made of things that look like blocks must not be hashed over and over. */
		if (load->wasted > WASTE_PER_BYTE * load->size + WASTE_MIN)
			break;
		offset = load_search_segment(load, offset + 8);
	}
}
