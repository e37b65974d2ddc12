/* SPDX-License-Identifier: MIT */
/*
 * Walks a file from block to block by their heads. The first thing that does not hold ends the segment: the walk then looks
 * for the head of another one behind it, which is complete by itself, and remembers that something is missing.
 */
#include "trace/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "base/file.h"
#include "base/grow.h"
#include "trace/row_codec.h"

enum { SEARCH_BYTES = 1 << 20, ROWS_MAX = 1 << 28, WASTE_PER_BYTE = 8, WASTE_MIN = 1 << 26, SEGMENT_PAYLOAD_MAX = 1 << 14,
       BLANKS_MAX = 1 << 22, COPY_BYTES_MAX = 64 << 20, COPY_TRIES = 20, PAUSE_NS = 2000000, TICK_NS = 20000000 };
#define NS_PER_S INT64_C(1000000000)

#define BOOT_SLACK_NS INT64_C(5000000000)

bool load_bytes(int fd, void *to, size_t size, uint64_t offset)
{
	uint8_t *at = to;
	while (size) {
		ssize_t got = pread(fd, at, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		size -= (size_t)got;
		offset += (uint64_t)got;
	}
	return true;
}

int64_t load_ns(const struct format_segment *segment, uint64_t ticks)
{
	if (ticks == INT64_MAX)
		return INT64_MAX;
	/* No wider than 64 bits of ticks by 64 bits of mult; what does not fit is cut, not undefined. */
	__int128 difference = (int64_t)(ticks - segment->start_ticks);
	__int128 ns = (__int128)((unsigned __int128)difference * segment->mult) >> segment->shift;
	return ns > INT64_MAX - 1 ? INT64_MAX - 1 : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}

static int64_t boot_ns(const struct writer_clock *clock)
{
	return clock->start_realtime_ns - (int64_t)((unsigned __int128)clock->start_ticks * clock->mult >> clock->shift);
}

bool load_is_one_boot(const struct writer_clock *one, const struct writer_clock *other)
{
	int64_t difference_ns = (int64_t)((uint64_t)boot_ns(one) - (uint64_t)boot_ns(other));
	return difference_ns <= BOOT_SLACK_NS && difference_ns >= -BOOT_SLACK_NS;
}

/* Note the first place at which something is missing. */
__attribute__((format(printf, 3, 4)))
static bool cut(struct load *load, uint64_t offset, const char *format, ...)
{
	va_list arguments;
	load->is_complete = false;
	/* It is not the file's fault, whatever its reader makes of it. */
	load->lacks_memory |= errno == ENOMEM;
	if (load->cut_reason[0])
		return false;
	load->cut_offset = offset;
	va_start(arguments, format);
	vsnprintf(load->cut_reason, sizeof(load->cut_reason), format, arguments);
	va_end(arguments);
	return false;
}

static bool grow(void *rows, uint32_t count, uint32_t *capacity, size_t size)
{
	if (count < *capacity)
		return true;
	uint32_t larger = (uint32_t)grow_capacity(*capacity);
	void *old, *data;
	memcpy(&old, rows, sizeof(old));
	data = count < ROWS_MAX ? realloc(old, larger * size) : NULL;
	if (!data)
		return false;
	memcpy(rows, &data, sizeof(data));
	*capacity = larger;
	return true;
}

static bool ids_add(struct load_ids *ids, uint32_t id)
{
	if (id == TRACE_NONE || !grow(&ids->ids, ids->count, &ids->capacity, sizeof(*ids->ids)))
		return false;
	ids->ids[ids->count++] = id;
	return true;
}

/* ---- ids that the file gives ---- */

static uint64_t file_key(const struct load *load, uint32_t id)
{
	uint64_t low;
	/* Rows of different traces merged into one file are told apart by where they come from. */
	memcpy(&low, load->segments[load->segment_count - 1].head.trace_id, sizeof(low));
	const uint32_t *origin = map_find(&load->origins, low);
	return (uint64_t)(origin ? *origin : 0) << 32 | id;
}

static uint32_t known_id(const struct load *load, const struct map *index, uint32_t id)
{
	const uint32_t *known = map_find(index, file_key(load, id));
	return known ? *known : TRACE_NONE;
}

/* The file's own number is the id: rows that were dropped with their segments are blank. False: more than a file can have. */
static bool blanks_add(struct load *load, uint32_t number, uint32_t count, uint32_t (*add)(struct dictionary *))
{
	if (number >= count && number - count > BLANKS_MAX)
		return false;
	for (; count <= number; count++)
		if (add(&load->dictionary) == TRACE_NONE)
			return false;
	return true;
}

static uint32_t add_blank_process(struct dictionary *dictionary)
{
	return dictionary_add_process(dictionary, &(struct trace_process){
		.parent = TRACE_NONE, .forked_from = TRACE_NONE, .end_ns = TRACE_TIME_NONE, .end = TRACE_END_UNKNOWN, .image = "", .command = "", .note = ""});
}

static uint32_t add_blank_thread(struct dictionary *dictionary)
{
	return dictionary_add_thread(dictionary, &(struct trace_thread){.process = TRACE_NONE, .name = ""});
}

static uint32_t add_blank_mapping(struct dictionary *dictionary)
{
	return dictionary_add_mapping(dictionary, &(struct trace_mapping){.process = TRACE_NONE, .image = TRACE_NONE});
}

/* ---- rows of each type ---- */

static struct load_segment *current(struct load *load)
{
	return &load->segments[load->segment_count - 1];
}

static uint32_t image_id(struct load *load, uint32_t number)
{
	const struct load_ids *images = &current(load)->images;
	return number < images->count ? images->ids[number] : TRACE_NONE;
}

/* A row's time: for readers in nanoseconds, for a writer as it was written. */
static int64_t row_time(struct load *load, int64_t ticks)
{
	return load->keeps_ticks ? ticks : load_ns(&current(load)->head, (uint64_t)ticks);
}

static bool take_process(struct load *load, struct reading *reading)
{
	struct trace_process row = {0};
	struct dictionary *dictionary = &load->dictionary;
	uint32_t number;
	rows_get_process(reading, &load->texts, &number, &row);
	if (reading->has_failed)
		return false;
	row.start_ns = row_time(load, row.start_ns);
	row.end_ns = row_time(load, row.end_ns);
	row.parent = row.parent == TRACE_NONE ? TRACE_NONE : known_id(load, &load->processes, row.parent);
	row.forked_from = row.forked_from == TRACE_NONE ? TRACE_NONE : known_id(load, &load->processes, row.forked_from);
	bool added;
	uint32_t *id = map_try_add(&load->processes, file_key(load, number), &added);
	if (!id)
		return false;
	if (added && load->keeps_ids) {
		if (!blanks_add(load, number, dictionary->process_count, add_blank_process))
			return false;
		*id = number;
		added = false;
	}
	uint32_t own = added ? dictionary->process_count : *id;
	/* A process comes after those that it came from. */
	row.parent = row.parent < own ? row.parent : TRACE_NONE;
	row.forked_from = row.forked_from < own ? row.forked_from : TRACE_NONE;
	if (!added)
		return dictionary_set_process(dictionary, *id, &row);
	return (*id = dictionary_add_process(dictionary, &row)) != TRACE_NONE;
}

static bool take_thread(struct load *load, struct reading *reading)
{
	struct trace_thread row = {0};
	uint32_t number;
	rows_get_thread(reading, &load->texts, &number, &row);
	row.process = known_id(load, &load->processes, row.process);
	if (reading->has_failed || row.process == TRACE_NONE)
		return false;
	row.start_ns = row_time(load, row.start_ns);
	row.end_ns = row_time(load, row.end_ns);
	bool added;
	uint32_t *id = map_try_add(&load->threads, file_key(load, number), &added);
	if (!id)
		return false;
	if (added && load->keeps_ids) {
		if (!blanks_add(load, number, load->dictionary.thread_count, add_blank_thread))
			return false;
		*id = number;
		added = false;
	}
	if (!added)
		return dictionary_set_thread(&load->dictionary, *id, &row);
	return (*id = dictionary_add_thread(&load->dictionary, &row)) != TRACE_NONE;
}

static bool take_image(struct load *load, struct reading *reading)
{
	struct trace_image row = {0};
	rows_get_image(reading, &load->texts, &row);
	return !reading->has_failed && ids_add(&current(load)->images, dictionary_add_image(&load->dictionary, &row));
}

static bool take_mapping(struct load *load, struct reading *reading)
{
	struct trace_mapping row = {0};
	uint32_t number;
	rows_get_mapping(reading, &number, &row);
	row.process = known_id(load, &load->processes, row.process);
	row.image = image_id(load, row.image);
	if (reading->has_failed || row.process == TRACE_NONE || row.image == TRACE_NONE || row.end < row.base)
		return false;
	row.load_ns = row_time(load, row.load_ns);
	row.unload_ns = row_time(load, row.unload_ns);
	bool added;
	uint32_t *id = map_try_add(&load->mappings, file_key(load, number), &added);
	if (!id)
		return false;
	if (added && load->keeps_ids) {
		if (!blanks_add(load, number, load->dictionary.mapping_count, add_blank_mapping))
			return false;
		*id = number;
		added = false;
	}
	if (!added)
		load->dictionary.mappings[*id] = row;
	else
		*id = dictionary_add_mapping(&load->dictionary, &row);
	return *id != TRACE_NONE;
}

static bool take_entry(struct load *load, struct reading *reading)
{
	struct trace_entry row = {0};
	rows_get_entry(reading, &load->texts, &row);
	row.image = image_id(load, row.image);
	return !reading->has_failed && ids_add(&current(load)->entries, dictionary_add_entry(&load->dictionary, &row));
}

static bool take_heap(struct load *load, struct reading *reading)
{
	struct trace_heap row = {0};
	rows_get_heap(reading, &load->texts, &row);
	row.process = known_id(load, &load->processes, row.process);
	return !reading->has_failed && row.process != TRACE_NONE &&
	       ids_add(&current(load)->heaps, dictionary_add_heap(&load->dictionary, &row));
}

/* A frame's image as its number plus one, and its offset. */
static bool take_frame(struct load *load, struct reading *reading)
{
	struct load_segment *segment = current(load);
	uint32_t number = reading_number32(reading);
	uint64_t offset = reading_number(reading);
	uint32_t image = number ? image_id(load, number - 1) : TRACE_NONE;
	if (reading->has_failed || (number && image == TRACE_NONE))
		return false;
	return ids_add(&segment->frames, tree_frame(&load->dictionary.tree, image, offset));
}

/* The distance back to its parent; its frame: 0 is the first that no node has yet, else the distance back from that one. */
static bool take_node(struct load *load, struct reading *reading)
{
	struct load_segment *segment = current(load);
	uint64_t back = reading_number(reading), frame = reading_number(reading);
	if (reading->has_failed || back == 0 || back > segment->nodes.count || frame > segment->frame_next ||
	    segment->frame_next - frame >= segment->frames.count)
		return false;
	uint32_t parent = segment->nodes.ids[segment->nodes.count - back], own = segment->frames.ids[segment->frame_next - frame];
	segment->frame_next += frame == 0;
	return ids_add(&segment->nodes, tree_node(&load->dictionary.tree, parent, own));
}

static bool take_gap(struct load *load, struct reading *reading)
{
	struct trace_gap row;
	rows_get_gap(reading, &row);
	row.process = known_id(load, &load->processes, row.process);
	row.thread = known_id(load, &load->threads, row.thread);
	row.from_ns = row_time(load, row.from_ns);
	row.to_ns = row_time(load, row.to_ns);
	return !reading->has_failed && dictionary_add_gap(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_early_end(struct load *load, struct reading *reading)
{
	struct trace_early_end row;
	rows_get_early_end(reading, &load->texts, &row);
	bool is_of_process = row.process != TRACE_NONE;
	row.process = known_id(load, &load->processes, row.process);
	row.time_ns = row_time(load, row.time_ns);
	/* A row of a process that is not known says nothing. */
	return !reading->has_failed && (is_of_process != (row.process != TRACE_NONE) || dictionary_add_early_end(&load->dictionary, &row) != TRACE_NONE);
}

static bool take_sample(struct load *load, struct reading *reading)
{
	struct trace_sample row;
	rows_get_sample(reading, &row);
	row.process = known_id(load, &load->processes, row.process);
	row.time_ns = row_time(load, row.time_ns);
	/* Of a process that is not known it says nothing. */
	return !reading->has_failed && (row.process == TRACE_NONE || dictionary_add_sample(&load->dictionary, &row) != TRACE_NONE);
}

static bool take_named(struct load *load, struct reading *reading)
{
	uint32_t number = reading_number32(reading);
	struct trace_named row = {.image = number ? image_id(load, number - 1) : TRACE_NONE, .has_symbols = reading_number(reading)};
	return !reading->has_failed && row.image != TRACE_NONE && dictionary_add_named(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_symbol(struct load *load, struct reading *reading)
{
	if (reading_number(reading) == ROWS_NAMED)
		return take_named(load, reading);
	const struct load_ids *frames = &current(load)->frames;
	uint32_t number = reading_number32(reading), count = reading_number32(reading);
	if (reading->has_failed || number >= frames->count)
		return false;
	struct trace_symbol row = {.frame = frames->ids[number], .first = load->dictionary.function_count, .count = count};
	/* A count that is no true one ends with the bytes. */
	for (uint32_t i = 0; i < count; i++) {
		struct trace_function function;
		rows_get_function(reading, &load->texts, &function);
		if (reading->has_failed || dictionary_add_function(&load->dictionary, &function) == TRACE_NONE)
			return false;
	}
	return dictionary_add_symbol(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_option(struct load *load, struct reading *reading)
{
	struct trace_option row;
	rows_get_option(reading, &load->texts, &row);
	return !reading->has_failed && dictionary_add_option(&load->dictionary, &row) != TRACE_NONE;
}

/* ---- what is folded ---- */

static bool take_fold(struct load *load, struct reading *reading)
{
	struct trace_fold row;
	rows_get_fold(reading, &row);
	row.until_ns = row_time(load, row.until_ns);
	row.peak_at_ns = row_time(load, row.peak_at_ns);
	current(load)->folded += row.event_count;
	return !reading->has_failed && row.interval_ns > 0 && dictionary_add_fold(&load->dictionary, &row) != TRACE_NONE;
}

/* 0 is none; else a row's number in the segment plus one becomes its place. */
static bool take_place(const struct load_ids *ids, uint32_t *number)
{
	bool is_there = *number <= ids->count;
	*number = is_there && *number ? ids->ids[*number - 1] : TRACE_NONE;
	return is_there;
}

static bool take_lifetimes(struct load *load, struct reading *reading, struct trace_sum *row)
{
	row->first = load->dictionary.lifetime_count;
	/* A count that is no true one ends with the bytes. */
	for (uint32_t i = 0; i < row->spread; i++) {
		struct trace_lifetime lifetime;
		rows_get_lifetime(reading, &lifetime);
		if (reading->has_failed || dictionary_add_lifetime(&load->dictionary, &lifetime) == TRACE_NONE)
			return false;
	}
	return true;
}

static bool take_sum(struct load *load, struct reading *reading)
{
	const struct load_segment *segment = current(load);
	struct trace_sum row;
	rows_get_sum(reading, &row);
	row.thread = known_id(load, &load->threads, row.thread);
	bool is_valid = !reading->has_failed && row.thread != TRACE_NONE && row.stack < segment->nodes.count && take_place(&segment->heaps, &row.heap) &&
			take_place(&segment->entries, &row.entry) && row.size_min <= row.size_max && row.lifetime_min_ns <= row.lifetime_max_ns &&
			row.lifetime_max_ns <= INT64_MAX && row.birth_first_ns <= row.birth_last_ns && row.end_first_ns <= row.end_last_ns;
	if (!is_valid || (row.entry == TRACE_NONE && !(row.flags & TRACE_SUM_EARLIER)))
		return false;
	row.stack = segment->nodes.ids[row.stack];
	row.birth_first_ns = row_time(load, row.birth_first_ns);
	row.birth_last_ns = row_time(load, row.birth_last_ns);
	row.end_first_ns = row_time(load, row.end_first_ns);
	row.end_last_ns = row_time(load, row.end_last_ns);
	return take_lifetimes(load, reading, &row) && dictionary_add_sum(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_sequence(struct load *load, struct reading *reading)
{
	struct rows_sequence row;
	rows_get_sequence(reading, &row);
	row.process = known_id(load, &load->processes, row.process);
	if (row.process == TRACE_NONE || reading->has_failed || !grow(&load->sequences, load->sequence_count, &load->sequence_capacity, sizeof(*load->sequences)))
		return false;
	load->sequences[load->sequence_count++] = row;
	return true;
}

static bool take_folded(struct load *load, struct reading *reading)
{
	static bool (*const takes[])(struct load *, struct reading *) = {[ROWS_FOLD] = take_fold, [ROWS_SUM] = take_sum, [ROWS_SEQUENCE] = take_sequence};
	uint64_t kind = reading_number(reading);
	return !reading->has_failed && kind < sizeof(takes) / sizeof(takes[0]) && takes[kind](load, reading);
}

/* ---- blocks ---- */

static const struct {
	bool (*take)(struct load *, struct reading *);
} row_types[] = {
	[FORMAT_OPTIONS] = {take_option},   [FORMAT_PROCESSES] = {take_process}, [FORMAT_THREADS] = {take_thread},
	[FORMAT_IMAGES] = {take_image},     [FORMAT_MAPPINGS] = {take_mapping},  [FORMAT_ENTRIES] = {take_entry},
	[FORMAT_HEAPS] = {take_heap},       [FORMAT_FRAMES] = {take_frame},      [FORMAT_NODES] = {take_node},
	[FORMAT_GAPS] = {take_gap},         [FORMAT_MEMORY] = {take_sample},
	[FORMAT_SYMBOLS] = {take_symbol},   [FORMAT_FOLDED] = {take_folded},     [FORMAT_EARLY_ENDS] = {take_early_end},
};

/* A block as it was found: its head is in load->scratch. */
struct found {
	uint64_t offset;
	struct format_block block;
	const uint8_t *head;
};

/* The payload, checked and unpacked, as what `reading` reads. */
static bool read_payload(struct load *load, const struct found *found, struct reading *reading)
{
	const struct format_block *block = &found->block;
	struct bytes *stored = &load->scratch;
	size_t head_bytes = sizeof(*block) + block->head_bytes;
	stored->size = head_bytes;
	if (!bytes_reserve(stored, block->payload_bytes + 1))
		return cut(load, found->offset, "no memory for the block at offset %llu", (unsigned long long)found->offset);
	uint8_t *data = stored->data + head_bytes;
	if (!load_bytes(load->fd, data, block->payload_bytes, found->offset + head_bytes))
		return cut(load, found->offset, "the block at offset %llu cannot be read", (unsigned long long)found->offset);
	load->wasted += block->payload_bytes;
	if (XXH3_64bits(data, block->payload_bytes) != block->payload_checksum)
		return cut(load, found->offset, "the block at offset %llu is damaged: its checksum differs", (unsigned long long)found->offset);
	*reading = (struct reading){.at = data, .end = data + block->payload_bytes};
	if (!(block->flags & FORMAT_PACKED))
		return true;
	if (block->raw_bytes > FORMAT_RAW_MAX || block->raw_bytes / FORMAT_EXPANSION_MAX > block->payload_bytes)
		return cut(load, found->offset, "the block at offset %llu claims more than it can hold", (unsigned long long)found->offset);
	load->unpacked.size = 0;
	if (!bytes_reserve(&load->unpacked, block->raw_bytes + 1))
		return cut(load, found->offset, "no memory for the block at offset %llu", (unsigned long long)found->offset);
	size_t size = ZSTD_decompress(load->unpacked.data, block->raw_bytes, data, block->payload_bytes);
	if (ZSTD_isError(size) || size != block->raw_bytes)
		return cut(load, found->offset, "the block at offset %llu cannot be unpacked", (unsigned long long)found->offset);
	*reading = (struct reading){.at = load->unpacked.data, .end = load->unpacked.data + size};
	return true;
}

static bool take_rows(struct load *load, const struct found *found)
{
	struct reading reading;
	if (!read_payload(load, found, &reading))
		return false;
	for (uint32_t i = 0; i < found->block.count; i++)
		if (!row_types[found->block.type].take(load, &reading))
			return cut(load, found->offset, "row %u of the block at offset %llu (type %u) is not valid", i,
				   (unsigned long long)found->offset, found->block.type);
	return true;
}

static bool take_statistics(struct load *load, const struct found *found)
{
	struct reading reading;
	if (!read_payload(load, found, &reading))
		return false;
	struct trace_statistics row, *sum = &load->dictionary.statistics;
	rows_get_statistics(&reading, &row);
	if (reading.has_failed)
		return cut(load, found->offset, "the statistics at offset %llu are not valid", (unsigned long long)found->offset);
	/* A trace that was gone on with has them from each of its writers. */
#define X(name) sum->name += row.name;
	X(waits) X(wait_ns) X(logger_cpu_ns) X(recorder_ns) X(buffers_written) X(suppressed) X(unwatched) X(heapless) X(untraced_calls)
#undef X
	sum->is_known = true;
	sum->buffer_size = row.buffer_size;
	sum->peak_buffers = row.peak_buffers > sum->peak_buffers ? row.peak_buffers : sum->peak_buffers;
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

static bool take_events(struct load *load, const struct found *found)
{
	struct load_block own = {.offset = found->offset, .segment = load->segment_count - 1, .head_bytes = found->block.head_bytes,
				 .payload_bytes = found->block.payload_bytes, .payload_checksum = found->block.payload_checksum,
				 .count = found->block.count};
	uint64_t words = (found->block.head_bytes - sizeof(own.head)) / 4, total;
	if (found->block.head_bytes < sizeof(own.head))
		return cut(load, found->offset, "the events at offset %llu have no head", (unsigned long long)found->offset);
	memcpy(&own.head, found->head, sizeof(own.head));
	own.head.process = known_id(load, &load->processes, own.head.process);
	own.head.thread = known_id(load, &load->threads, own.head.thread);
	total = (uint64_t)own.head.failed + own.head.in_flight;
	bool is_valid = own.count > 0 && own.count <= FORMAT_EVENTS_MAX && own.count / FORMAT_EVENTS_PER_BYTE <= own.payload_bytes &&
			own.head.process != TRACE_NONE && own.head.thread != TRACE_NONE && own.head.kind_count <= words &&
			own.head.node_count && own.head.node_count <= current(load)->nodes.count && own.head.first_ticks <= own.head.last_ticks;
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
		return cut(load, found->offset, "the head of the events at offset %llu is not valid", (unsigned long long)found->offset);
	if (!grow(&load->blocks, load->block_count, &load->block_capacity, sizeof(*load->blocks)))
		return cut(load, found->offset, "no memory for the events at offset %llu", (unsigned long long)found->offset);
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

static bool take_segment(struct load *load, const struct found *found)
{
	struct load_segment segment = {.offset = found->offset, .end = found->offset};
	struct reading reading;
	if (found->block.head_bytes < sizeof(segment.head) || found->block.place || found->block.payload_bytes > SEGMENT_PAYLOAD_MAX)
		return cut(load, found->offset, "the head of the segment at offset %llu is not valid", (unsigned long long)found->offset);
	memcpy(&segment.head, found->head, sizeof(segment.head));
	if (segment.head.shift > 63 || !grow(&load->segments, load->segment_count, &load->segment_capacity, sizeof(segment)))
		return cut(load, found->offset, "the clock of the segment at offset %llu is not valid", (unsigned long long)found->offset);
	if (!read_payload(load, found, &reading))
		return false;
	const char *text = rows_get_text(&reading, &load->texts);
	const char *clock = dictionary_text(&load->dictionary, text, strlen(text));
	text = rows_get_text(&reading, &load->texts);
	const char *host = dictionary_text(&load->dictionary, text, strlen(text));
	if (reading.has_failed || !clock || !host || !origin_note(load, &segment.head) || !ids_add(&segment.nodes, 0))
		return cut(load, found->offset, "the segment at offset %llu does not say what it is", (unsigned long long)found->offset);
	if (!load->segment_count) {
		load->clock_name = clock;
		load->dictionary.host = host;
	}
	load->segments[load->segment_count++] = segment;
	load->has_footer = false;
	return true;
}

/* Of each segment that it lists: offset, bytes, first and last ticks, events; then what could not be written. */
static bool take_footer(struct load *load, const struct found *found)
{
	struct reading reading;
	if (!read_payload(load, found, &reading))
		return false;
	uint64_t events = 0;
	for (uint32_t i = 0; i < found->block.count && !reading.has_failed; i++) {
		for (int skipped = 0; skipped < 4; skipped++)
			reading_number(&reading);
		events += reading_number(&reading);
	}
	load->unwritten_blocks = reading_number(&reading);
	load->unwritten_events = reading_number(&reading);
	uint64_t known = 0;
	for (uint32_t i = 0; i < load->block_count; i++)
		known += load->blocks[i].count;
	if (reading.has_failed)
		return cut(load, found->offset, "the footer at offset %llu is not valid", (unsigned long long)found->offset);
	load->has_footer = true;
	if (found->block.count != load->segment_count || events != known)
		cut(load, found->offset, "the footer at offset %llu lists %u segments with %llu events, found were %u with %llu",
		    (unsigned long long)found->offset, found->block.count, (unsigned long long)events, load->segment_count,
		    (unsigned long long)known);
	return true;
}

static bool take_block(struct load *load, const struct found *found)
{
	const struct format_block *block = &found->block;
	if (block->type == FORMAT_SEGMENT)
		return take_segment(load, found);
	if (!load->segment_count)
		return cut(load, found->offset, "the block at offset %llu is in no segment", (unsigned long long)found->offset);
	struct load_segment *segment = current(load);
	if (block->place != found->offset - segment->offset)
		return cut(load, found->offset, "the block at offset %llu does not belong there", (unsigned long long)found->offset);
	bool is_taken;
	if (block->type < sizeof(row_types) / sizeof(row_types[0]) && row_types[block->type].take)
		is_taken = take_rows(load, found);
	else if (block->type == FORMAT_EVENTS)
		is_taken = take_events(load, found);
	else if (block->type == FORMAT_STATISTICS)
		is_taken = take_statistics(load, found);
	else if (block->type == FORMAT_FOOTER)
		is_taken = take_footer(load, found);
	else
		is_taken = !(block->flags & FORMAT_ESSENTIAL) ||
			   cut(load, found->offset, "the block at offset %llu is of a later version (type %u)",
			       (unsigned long long)found->offset, block->type);
	return is_taken;
}

/* The block at this offset, if there is a whole one; else what is wrong is noted. */
static bool find_block(struct load *load, uint64_t offset, struct found *found)
{
	struct format_block *block = &found->block;
	unsigned long long at = offset;
	found->offset = offset;
	if (load->size - offset < sizeof(*block) || !load_bytes(load->fd, block, sizeof(*block), offset))
		return cut(load, offset, "the file ends within a block, at offset %llu", at);
	if (block->magic != FORMAT_BLOCK_MAGIC || block->head_bytes > FORMAT_HEAD_MAX || block->head_bytes % 4)
		return cut(load, offset, "there is no block at offset %llu", at);
	struct bytes *scratch = &load->scratch;
	scratch->size = 0;
	if (!bytes_reserve(scratch, sizeof(*block) + block->head_bytes))
		return cut(load, offset, "no memory for the block at offset %llu", at);
	memcpy(scratch->data, block, sizeof(*block));
	found->head = scratch->data + sizeof(*block);
	if (load->size - offset - sizeof(*block) < block->head_bytes ||
	    !load_bytes(load->fd, scratch->data + sizeof(*block), block->head_bytes, offset + sizeof(*block)))
		return cut(load, offset, "the file ends within a block, at offset %llu", at);
	/* The checksum goes over what is before it and what is behind it. */
	memmove(scratch->data + 8, scratch->data, offsetof(struct format_block, head_checksum));
	uint64_t checksum = XXH3_64bits(scratch->data + 8, offsetof(struct format_block, head_checksum) + block->head_bytes);
	if (checksum != block->head_checksum)
		return cut(load, offset, "the block at offset %llu is damaged: the checksum of its head differs", at);
	uint64_t bytes = format_aligned(sizeof(*block) + (uint64_t)block->head_bytes + block->payload_bytes);
	if (block->payload_bytes > FORMAT_PAYLOAD_MAX)
		return cut(load, offset, "the block at offset %llu is too large", at);
	if (load->size - offset < bytes)
		return cut(load, offset, "the file ends within the block at offset %llu", at);
	return true;
}

static uint64_t found_end(const struct found *found)
{
	return found->offset + format_aligned(sizeof(found->block) + (uint64_t)found->block.head_bytes + found->block.payload_bytes);
}

/* Where the next segment behind `from` may begin; the file's size when there is none. */
static uint64_t search_segment(struct load *load, uint64_t from)
{
	uint8_t *buffer = malloc(SEARCH_BYTES);
	uint64_t offset = format_aligned(from);
	for (size_t step; buffer && offset + sizeof(struct format_block) <= load->size; offset += step) {
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

/* All that lies before `end`. */
static void walk(struct load *load, uint64_t offset, uint64_t end)
{
	struct found found;
	while (offset < end) {
		/* What an earlier failure left is not this block's: see cut(). */
		errno = 0;
		if (find_block(load, offset, &found) && take_block(load, &found)) {
			offset = load->end = found_end(&found);
			current(load)->end = offset;
			load->wasted = 0;
			load->is_complete = found.block.type == FORMAT_FOOTER && !load->cut_reason[0];
			continue;
		}
		/* A file made of things that look like blocks must not be hashed over and over. */
		if (load->wasted > WASTE_PER_BYTE * load->size + WASTE_MIN)
			break;
		offset = search_segment(load, offset + 8);
	}
}

/* ---- circular files ---- */

/* Where a segment of a circular file lies. */
struct range { uint64_t offset, end; uint32_t number; };

static int range_compare(const void *a, const void *b)
{
	const struct range *left = a, *right = b;
	return left->number < right->number ? -1 : left->number > right->number;
}

struct ranges { struct range *rows; uint32_t count, capacity; };

/* Note where a segment begins, or how far the one before goes. Return where the next block lies, which for a SKIP may be behind the
 * end of a file that was cut; 0: no memory. */
static uint64_t range_note(struct ranges *ranges, const struct found *found)
{
	struct format_segment segment;
	struct format_skip skip;
	uint64_t end = found_end(found);
	if (found->block.type == FORMAT_SEGMENT && found->block.head_bytes >= sizeof(segment)) {
		if (!grow(&ranges->rows, ranges->count, &ranges->capacity, sizeof(*ranges->rows)))
			return 0;
		memcpy(&segment, found->head, sizeof(segment));
		ranges->rows[ranges->count++] = (struct range){found->offset, end, segment.number};
	} else if (found->block.type == FORMAT_SKIP && found->block.head_bytes >= sizeof(skip)) {
		memcpy(&skip, found->head, sizeof(skip));
		return skip.bytes < INT64_MAX - end ? end + skip.bytes : INT64_MAX;
	} else if (ranges->count) {
		ranges->rows[ranges->count - 1].end = end;
	}
	return end;
}

/* What is torn goes up to the next segment behind it, or is the end of the file. */
static void hole_note(struct load *load, const struct ranges *ranges)
{
	uint64_t end = load->size;
	for (uint32_t i = 0; i < ranges->count; i++)
		if (ranges->rows[i].offset > load->cut_offset && ranges->rows[i].offset < end)
			end = ranges->rows[i].offset;
	if (end < load->size)
		load->hole_end = end;
	else
		load->end = load->cut_offset;
}

/* The block at this offset, if it is whole and of the segment before it: remains have blocks, too. */
static bool find_in_place(struct load *load, const struct ranges *ranges, uint64_t offset, struct found *found)
{
	if (!find_block(load, offset, found))
		return false;
	bool has_segment = found->block.type != FORMAT_SEGMENT && ranges->count;
	return found->block.type == FORMAT_SKIP || found->block.place == (has_segment ? offset - ranges->rows[ranges->count - 1].offset : 0) ||
	       cut(load, offset, "the block at offset %llu does not belong there", (unsigned long long)offset);
}

/* Where segments lie. Return where the last block ends; 0: no memory. */
static uint64_t find_ranges(struct load *load, struct ranges *ranges, uint64_t offset)
{
	struct found found;
	while (offset && offset < load->size)
		/* A SKIP must have room over what is torn. */
		offset = find_in_place(load, ranges, offset, &found) ? range_note(ranges, &found)
			 : search_segment(load, offset + sizeof(struct format_block) + sizeof(struct format_skip));
	return offset;
}

static bool is_whole(struct load *load, uint64_t offset, struct found *found)
{
	struct reading reading;
	return find_block(load, offset, found) && read_payload(load, found, &reading);
}

static bool is_ended(struct load *load, const struct range *range)
{
	struct found found = {.block.type = FORMAT_SEGMENT};
	for (uint64_t at = range->offset; at < range->end && find_block(load, at, &found); at = found_end(&found))
		continue;
	return found.block.type == FORMAT_FOOTER;
}

/* The last write to the newest segment may be torn within a payload, and remains behind it may look right: until the segment has ended, all its
 * payloads are read. The first one that is not whole ends the segment. */
static void check_newest(struct load *load, struct range *newest)
{
	struct found found;
	uint64_t at = newest->offset;
	if (is_ended(load, newest))
		return;
	while (at < newest->end && is_whole(load, at, &found))
		at = found_end(&found);
	if (at < newest->end) {
		/* What is noted of a place behind comes of it. */
		load->cut_reason[0] = 0;
		is_whole(load, at, &found);
		newest->end = at;
	}
	load->wasted = 0;
}

/* Segments in the order of their numbers, whatever their place. */
static void walk_circular(struct load *load, uint64_t offset)
{
	struct ranges ranges = {NULL, 0, 0};
	uint64_t end = find_ranges(load, &ranges, offset);
	if (!end)
		cut(load, load->size, "no memory for the segments of the file");
	if (ranges.count) {
		qsort(ranges.rows, ranges.count, sizeof(*ranges.rows), range_compare);
		check_newest(load, &ranges.rows[ranges.count - 1]);
	}
	for (uint32_t i = 0; i < ranges.count; i++)
		walk(load, ranges.rows[i].offset, ranges.rows[i].end);
	/* What is written next must not come below a SKIP. */
	load->end = end > load->size ? end : load->size;
	if (load->cut_reason[0])
		hole_note(load, &ranges);
	free(ranges.rows);
}

/* ---- circular files that are written meanwhile ---- */

/* Free what was read, but for the descriptor. */
static void load_clear(struct load *load)
{
	for (uint32_t i = 0; i < load->segment_count; i++) {
		struct load_segment *segment = &load->segments[i];
		free(segment->images.ids);
		free(segment->entries.ids);
		free(segment->heaps.ids);
		free(segment->frames.ids);
		free(segment->nodes.ids);
	}
	free(load->segments);
	free(load->blocks);
	free(load->sequences);
	map_fini(&load->origins);
	map_fini(&load->processes);
	map_fini(&load->threads);
	map_fini(&load->mappings);
	dictionary_fini(&load->dictionary);
	rows_texts_fini(&load->texts);
	bytes_fini(&load->scratch);
	bytes_fini(&load->unpacked);
}

/* Begin to read the open file, whose header is known. False: there is no memory. */
static bool load_begin(struct load *load, const struct format_header *header)
{
	if (!dictionary_init(&load->dictionary))
		return false;
	memcpy(load->trace_id, header->trace_id, sizeof(load->trace_id));
	load->clock_name = "";
	load->end = header->header_bytes;
	errno = 0;
	return true;
}

/* Take a copy, in memory, of a file that is not too large. Return its descriptor, or -1. */
static int copy_take(int file)
{
	struct stat status;
	int copy = fstat(file, &status) == 0 && status.st_size <= COPY_BYTES_MAX ? memfd_create("xheap-trace", MFD_CLOEXEC) : -1;
	if (copy >= 0 && (lseek(file, 0, SEEK_SET) != 0 || !file_copy(copy, file))) {
		close(copy);
		copy = -1;
	}
	return copy;
}

/* Whether the checksum of each event block's payload is right: those of all other blocks were found right when they were read. */
static bool events_are_whole(struct load *load)
{
	bool are_whole = true;
	for (uint32_t i = 0; i < load->block_count && are_whole; i++) {
		const struct load_block *block = &load->blocks[i];
		uint64_t at = block->offset + sizeof(struct format_block) + block->head_bytes;
		load->scratch.size = 0;
		are_whole = bytes_reserve(&load->scratch, block->payload_bytes + 1) && load_bytes(load->fd, load->scratch.data, block->payload_bytes, at) &&
			    XXH3_64bits(load->scratch.data, block->payload_bytes) == block->payload_checksum;
	}
	return are_whole;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Whether nobody has written to the file since then: the kernel dates writes by a clock that goes by ticks. */
static bool is_still_since(int file, int64_t since_ns)
{
	struct stat status;
	return fstat(file, &status) != 0 || status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec < since_ns - TICK_NS;
}

/* Begin again, with a copy of the file or, where there is none, with the file. 0, or a negative errno. */
static int load_again(struct load *load, int fd, const struct format_header *header, const char *path, struct diag *diag)
{
	struct stat status;
	load_clear(load);
	*load = (struct load){.fd = fd, .keeps_ticks = load->keeps_ticks};
	if (fstat(fd, &status) == 0)
		load->size = (uint64_t)status.st_size;
	if (!load_begin(load, header))
		return diag_fail(diag, ENOMEM, "no memory to read %s", path);
	walk_circular(load, header->header_bytes);
	return 0;
}

/*
 * A circular file that has no end may be overwritten while it is read. What is read of it then may be of several moments: blocks do not follow each
 * other, or are not there any more when their events are asked for. So read a copy, which stays as it is, and take another one where the copy
 * is torn. What is damaged and no longer written is as it is. A file that is too large for a copy is read where it is.
 */
static int read_overwritten(struct load *load, const struct format_header *header, const char *path, struct diag *diag)
{
	int file = load->fd, error = 0;
	bool is_done = false;
	for (unsigned tries = 1; !is_done; tries++) {
		int64_t began_ns = now_ns();
		int copy = copy_take(file);
		error = load_again(load, copy >= 0 ? copy : file, header, path, diag);
		bool is_whole = !error && !load->cut_reason[0] && (copy < 0 || events_are_whole(load));
		is_done = is_whole || error || load->lacks_memory || tries == COPY_TRIES || is_still_since(file, began_ns);
		if (is_done)
			break;
		if (copy >= 0)
			close(copy);
		load->fd = file;
		nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
	}
	if (load->fd != file)
		close(file);
	return error;
}

static int read_segments(struct load *load, const struct format_header *header, const char *path, struct diag *diag)
{
	if (!(header->flags & FORMAT_CIRCULAR)) {
		walk(load, header->header_bytes, load->size);
		return 0;
	}
	walk_circular(load, header->header_bytes);
	/* A writer that goes on with the file has locked it. */
	return load->is_complete || load->keeps_ids || load->lacks_memory ? 0 : read_overwritten(load, header, path, diag);
}

int load_file(struct load *load, const char *path, struct diag *diag)
{
	struct format_header header;
	struct stat status;
	/* Nobody waits for the other end of a pipe. */
	load->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (load->fd < 0 || fstat(load->fd, &status))
		return diag_errno(diag, "cannot open %s", path);
	load->size = (uint64_t)status.st_size;
	if (S_ISDIR(status.st_mode))
		return diag_fail(diag, EISDIR, "%s is a directory", path);
	if (!S_ISREG(status.st_mode))
		return diag_fail(diag, EINVAL, "%s is %s, and a trace is a file", path, S_ISFIFO(status.st_mode) ? "a pipe" : "a device");
	if (load->size < sizeof(header) || !load_bytes(load->fd, &header, sizeof(header), 0) || header.magic != FORMAT_MAGIC)
		return diag_fail(diag, EINVAL, "%s is not a trace", path);
	if (header.checksum != XXH3_64bits(&header, offsetof(struct format_header, checksum)))
		return diag_fail(diag, EINVAL, "%s: the header at offset 0 is damaged: its checksum differs", path);
	if (header.version > FORMAT_VERSION)
		return diag_fail(diag, EPROTO, "%s is of version %u, this program reads up to %d", path, header.version, FORMAT_VERSION);
	if (header.header_bytes < sizeof(header) || header.header_bytes % 8)
		return diag_fail(diag, EINVAL, "%s: the header at offset 0 is not valid", path);
	if (!load_begin(load, &header))
		return diag_fail(diag, ENOMEM, "no memory to read %s", path);
	int error = read_segments(load, &header, path, diag);
	if (error)
		return error;
	if (load->lacks_memory)
		return diag_fail(diag, ENOMEM, "no memory to read %s", path);
	if (!load->is_complete)
		cut(load, load->end, "the file ends without a footer, at offset %llu", (unsigned long long)load->end);
	return 0;
}

void load_fini(struct load *load)
{
	load_clear(load);
	if (load->fd >= 0)
		close(load->fd);
	load->fd = -1;
}
