/* SPDX-License-Identifier: MIT */
/* Rows of each type, from a block to the dictionary. Ids that a file gives hold for its own origin only. */
#include "trace/load_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "trace/row_codec.h"

enum { BLANKS_MAX = 1 << 22 };

bool load_ids_add(struct load_ids *ids, uint32_t id)
{
	if (id == TRACE_NONE || !load_grow(&ids->ids, ids->count, &ids->capacity, sizeof(*ids->ids)))
		return false;
	ids->ids[ids->count++] = id;
	return true;
}

/* ---- ids that the file gives ---- */

static uint64_t load_file_key(const struct load *load, uint32_t id)
{
	uint64_t low;
	/* Rows of different traces merged into one file are told apart by where they come from. */
	memcpy(&low, load->segments[load->segment_count - 1].head.trace_id, sizeof(low));
	const uint32_t *origin = map_find(&load->origins, low);
	return (uint64_t)(origin ? *origin : 0) << 32 | id;
}

uint32_t load_known_id(const struct load *load, const struct map *index, uint32_t id)
{
	const uint32_t *known = map_find(index, load_file_key(load, id));
	return known ? *known : TRACE_NONE;
}

/* The file's own number is the id: rows that were dropped with their segments are blank. False: more than a file can
   have. */
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
	return dictionary_add_process(dictionary, &(struct trace_process){.parent = TRACE_NONE,
									  .forked_from = TRACE_NONE,
									  .end_ns = TRACE_TIME_NONE,
									  .end = TRACE_END_UNKNOWN,
									  .image = "",
									  .command = "",
									  .note = ""});
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

static uint32_t load_image_id(struct load *load, uint32_t number)
{
	const struct load_ids *images = &load_current(load)->images;
	return number < images->count ? images->ids[number] : TRACE_NONE;
}

/* A row's time: for readers in nanoseconds, for a writer as it was written. */
static int64_t load_row_time(struct load *load, int64_t ticks)
{
	return load->keeps_ticks ? ticks : load_ns(&load_current(load)->head, (uint64_t)ticks);
}

static bool take_process(struct load *load, struct reading *reading)
{
	struct trace_process row = {0};
	struct dictionary *dictionary = &load->dictionary;
	uint32_t number;
	rows_get_process(reading, &load->texts, &number, &row);
	if (reading->has_failed)
		return false;
	row.start_ns = load_row_time(load, row.start_ns);
	row.end_ns = load_row_time(load, row.end_ns);
	row.parent = row.parent == TRACE_NONE ? TRACE_NONE : load_known_id(load, &load->processes, row.parent);
	row.forked_from =
		row.forked_from == TRACE_NONE ? TRACE_NONE : load_known_id(load, &load->processes, row.forked_from);
	bool added;
	uint32_t *id = map_try_add(&load->processes, load_file_key(load, number), &added);
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
	row.process = load_known_id(load, &load->processes, row.process);
	if (reading->has_failed || row.process == TRACE_NONE)
		return false;
	row.start_ns = load_row_time(load, row.start_ns);
	row.end_ns = load_row_time(load, row.end_ns);
	bool added;
	uint32_t *id = map_try_add(&load->threads, load_file_key(load, number), &added);
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
	return !reading->has_failed &&
	       load_ids_add(&load_current(load)->images, dictionary_add_image(&load->dictionary, &row));
}

static bool take_mapping(struct load *load, struct reading *reading)
{
	struct trace_mapping row = {0};
	uint32_t number;
	rows_get_mapping(reading, &number, &row);
	row.process = load_known_id(load, &load->processes, row.process);
	row.image = load_image_id(load, row.image);
	if (reading->has_failed || row.process == TRACE_NONE || row.image == TRACE_NONE || row.end < row.base)
		return false;
	row.load_ns = load_row_time(load, row.load_ns);
	row.unload_ns = load_row_time(load, row.unload_ns);
	bool added;
	uint32_t *id = map_try_add(&load->mappings, load_file_key(load, number), &added);
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
	row.image = load_image_id(load, row.image);
	return !reading->has_failed &&
	       load_ids_add(&load_current(load)->entries, dictionary_add_entry(&load->dictionary, &row));
}

static bool take_heap(struct load *load, struct reading *reading)
{
	struct trace_heap row = {0};
	rows_get_heap(reading, &load->texts, &row);
	row.process = load_known_id(load, &load->processes, row.process);
	return !reading->has_failed && row.process != TRACE_NONE &&
	       load_ids_add(&load_current(load)->heaps, dictionary_add_heap(&load->dictionary, &row));
}

/* A frame's image as its number plus one, and its offset. */
static bool take_frame(struct load *load, struct reading *reading)
{
	struct load_segment *segment = load_current(load);
	uint32_t number = reading_number32(reading);
	uint64_t offset = reading_number(reading);
	uint32_t image = number ? load_image_id(load, number - 1) : TRACE_NONE;
	if (reading->has_failed || (number && image == TRACE_NONE))
		return false;
	return load_ids_add(&segment->frames, tree_frame(&load->dictionary.tree, image, offset));
}

/* The distance back to its parent; its frame: 0 is the first that no node has yet, else the distance back from that
   one. */
static bool take_node(struct load *load, struct reading *reading)
{
	struct load_segment *segment = load_current(load);
	uint64_t back = reading_number(reading), frame = reading_number(reading);
	if (reading->has_failed || back == 0 || back > segment->nodes.count || frame > segment->frame_next ||
	    segment->frame_next - frame >= segment->frames.count)
		return false;
	uint32_t parent = segment->nodes.ids[segment->nodes.count - back],
		 own = segment->frames.ids[segment->frame_next - frame];
	segment->frame_next += frame == 0;
	return load_ids_add(&segment->nodes, tree_node(&load->dictionary.tree, parent, own));
}

static bool take_gap(struct load *load, struct reading *reading)
{
	struct trace_gap row;
	rows_get_gap(reading, &row);
	row.process = load_known_id(load, &load->processes, row.process);
	row.thread = load_known_id(load, &load->threads, row.thread);
	row.from_ns = load_row_time(load, row.from_ns);
	row.to_ns = load_row_time(load, row.to_ns);
	return !reading->has_failed && dictionary_add_gap(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_early_end(struct load *load, struct reading *reading)
{
	struct trace_early_end row;
	rows_get_early_end(reading, &load->texts, &row);
	bool is_of_process = row.process != TRACE_NONE;
	row.process = load_known_id(load, &load->processes, row.process);
	row.time_ns = load_row_time(load, row.time_ns);
	/* A row of a process that is not known says nothing. */
	return !reading->has_failed && (is_of_process != (row.process != TRACE_NONE) ||
					dictionary_add_early_end(&load->dictionary, &row) != TRACE_NONE);
}

static bool take_sample(struct load *load, struct reading *reading)
{
	struct trace_sample row;
	rows_get_sample(reading, &row);
	row.process = load_known_id(load, &load->processes, row.process);
	row.time_ns = load_row_time(load, row.time_ns);
	/* Of a process that is not known it says nothing. */
	return !reading->has_failed &&
	       (row.process == TRACE_NONE || dictionary_add_sample(&load->dictionary, &row) != TRACE_NONE);
}

static bool take_named(struct load *load, struct reading *reading)
{
	uint32_t number = reading_number32(reading);
	struct trace_named row = {.image = number ? load_image_id(load, number - 1) : TRACE_NONE,
				  .has_symbols = reading_number(reading)};
	return !reading->has_failed && row.image != TRACE_NONE &&
	       dictionary_add_named(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_symbol(struct load *load, struct reading *reading)
{
	if (reading_number(reading) == ROWS_NAMED)
		return take_named(load, reading);
	const struct load_ids *frames = &load_current(load)->frames;
	uint32_t number = reading_number32(reading), count = reading_number32(reading);
	if (reading->has_failed || number >= frames->count)
		return false;
	struct trace_symbol row = {
		.frame = frames->ids[number], .first = load->dictionary.function_count, .count = count};
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
	row.until_ns = load_row_time(load, row.until_ns);
	row.peak_at_ns = load_row_time(load, row.peak_at_ns);
	load_current(load)->folded += row.event_count;
	return !reading->has_failed && row.interval_ns > 0 &&
	       dictionary_add_fold(&load->dictionary, &row) != TRACE_NONE;
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
	const struct load_segment *segment = load_current(load);
	struct trace_sum row;
	rows_get_sum(reading, &row);
	row.thread = load_known_id(load, &load->threads, row.thread);
	bool is_valid = !reading->has_failed && row.thread != TRACE_NONE && row.stack < segment->nodes.count &&
			take_place(&segment->heaps, &row.heap) && take_place(&segment->entries, &row.entry) &&
			row.size_min <= row.size_max && row.lifetime_min_ns <= row.lifetime_max_ns &&
			row.lifetime_max_ns <= INT64_MAX && row.birth_first_ns <= row.birth_last_ns &&
			row.end_first_ns <= row.end_last_ns;
	if (!is_valid || (row.entry == TRACE_NONE && !(row.flags & TRACE_SUM_EARLIER)))
		return false;
	row.stack = segment->nodes.ids[row.stack];
	row.birth_first_ns = load_row_time(load, row.birth_first_ns);
	row.birth_last_ns = load_row_time(load, row.birth_last_ns);
	row.end_first_ns = load_row_time(load, row.end_first_ns);
	row.end_last_ns = load_row_time(load, row.end_last_ns);
	return take_lifetimes(load, reading, &row) && dictionary_add_sum(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_sequence(struct load *load, struct reading *reading)
{
	struct rows_sequence row;
	rows_get_sequence(reading, &row);
	row.process = load_known_id(load, &load->processes, row.process);
	if (row.process == TRACE_NONE || reading->has_failed ||
	    !load_grow(&load->sequences, load->sequence_count, &load->sequence_capacity, sizeof(*load->sequences)))
		return false;
	load->sequences[load->sequence_count++] = row;
	return true;
}

static bool take_folded(struct load *load, struct reading *reading)
{
	static bool (*const takes[])(struct load *, struct reading *) = {
		[ROWS_FOLD] = take_fold, [ROWS_SUM] = take_sum, [ROWS_SEQUENCE] = take_sequence};
	uint64_t kind = reading_number(reading);
	return !reading->has_failed && kind < sizeof(takes) / sizeof(takes[0]) && takes[kind](load, reading);
}

static const struct {
	bool (*take)(struct load *, struct reading *);
} row_types[] = {
	[FORMAT_OPTIONS] = {take_option}, [FORMAT_PROCESSES] = {take_process},    [FORMAT_THREADS] = {take_thread},
	[FORMAT_IMAGES] = {take_image},   [FORMAT_MAPPINGS] = {take_mapping},     [FORMAT_ENTRIES] = {take_entry},
	[FORMAT_HEAPS] = {take_heap},     [FORMAT_FRAMES] = {take_frame},         [FORMAT_NODES] = {take_node},
	[FORMAT_GAPS] = {take_gap},       [FORMAT_MEMORY] = {take_sample},        [FORMAT_SYMBOLS] = {take_symbol},
	[FORMAT_FOLDED] = {take_folded},  [FORMAT_EARLY_ENDS] = {take_early_end},
};

bool load_has_row_type(uint32_t type)
{
	return type < sizeof(row_types) / sizeof(row_types[0]) && row_types[type].take;
}

bool load_take_row(struct load *load, uint32_t type, struct reading *reading)
{
	return row_types[type].take(load, reading);
}
