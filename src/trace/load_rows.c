/* SPDX-License-Identifier: MIT */
/*
 * Rows of each type, from a block to the dictionary. Ids that a file gives hold for its own origin only. The lists of
 * row_fields.h say which members are ids, numbers of the segment, or times: replace_NAME() replaces these.
 */
#include "trace/load_rows.h"

#include <stdlib.h>
#include <string.h>

#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/load_parts.h"
#include "trace/memory_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_codec.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"

enum { BLANKS_MAX = 1 << 22 };

bool load_ids_add(struct load_ids *ids, uint32_t id)
{
	if (id == TRACE_NONE || !load_grow(ids->ids, ids->count, ids->capacity))
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

/* Add blank rows up to `number`, for rows that were dropped with their segments: the file's own number is the id.
   Return false if a file cannot have so many, or without memory. */
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

/* Return where the id of the row is that the file numbers so, NULL without memory or if the number cannot be. With
   *is_new the row is to be added, and its id to be set; otherwise the row is there, perhaps blank. */
static uint32_t *own_id(struct load *load, struct map *index, uint32_t number, uint32_t count,
			uint32_t (*add_blank)(struct dictionary *), bool *is_new)
{
	uint32_t *id = map_try_add(index, load_file_key(load, number), is_new);
	if (!id || !*is_new || !load->keeps_ids)
		return id;
	if (!blanks_add(load, number, count, add_blank))
		return NULL;
	*id = number;
	*is_new = false;
	return id;
}

/* ---- what the file's numbers stand for ---- */

static uint32_t id_or_none(const struct load *load, const struct map *index, uint32_t id)
{
	return id == TRACE_NONE ? TRACE_NONE : load_known_id(load, index, id);
}

/* A row's time: for readers in nanoseconds, for a writer as it was written. */
static int64_t row_time(struct load *load, int64_t ticks)
{
	return load->keeps_ticks ? ticks : load_ns(&load_current(load)->head, (uint64_t)ticks);
}

/* Make a number of the segment a place in the dictionary. Return false, and TRACE_NONE, if the segment has no such
   number. */
static bool replace_number(const struct load_ids *ids, uint32_t *number)
{
	bool is_there = *number < ids->count;
	*number = is_there ? ids->ids[*number] : TRACE_NONE;
	return is_there;
}

/* The same, where TRACE_NONE stands for none. */
static bool replace_optional(const struct load_ids *ids, uint32_t *number)
{
	return *number == TRACE_NONE || replace_number(ids, number);
}

#define NUMBERS(many) &load_current(load)->many
#define REPLACE_PLAIN(member)
#define REPLACE_TIME(member) row->member = row_time(load, row->member);
#define REPLACE_PROCESS(member) row->member = id_or_none(load, &load->processes, row->member);
#define REPLACE_THREAD(member) row->member = id_or_none(load, &load->threads, row->member);
#define REPLACE_KNOWN_PROCESS(member) REPLACE_PROCESS(member) is_valid &= row->member != TRACE_NONE;
#define REPLACE_KNOWN_THREAD(member) REPLACE_THREAD(member) is_valid &= row->member != TRACE_NONE;
#define REPLACE_IMAGE(member) replace_number(NUMBERS(images), &row->member);
#define REPLACE_KNOWN_IMAGE(member) is_valid &= replace_number(NUMBERS(images), &row->member);
#define REPLACE_NAMED_IMAGE(member) is_valid &= replace_optional(NUMBERS(images), &row->member);
#define REPLACE_HEAP(member) is_valid &= replace_optional(NUMBERS(heaps), &row->member);
#define REPLACE_ENTRY(member) is_valid &= replace_optional(NUMBERS(entries), &row->member);
#define REPLACE_FRAME(member) is_valid &= replace_number(NUMBERS(frames), &row->member);
#define REPLACE_NODE(member) is_valid &= replace_number(NUMBERS(nodes), &row->member);
#define REPLACE(encoding, reference, member, limit, meaning) REPLACE_##reference(member)

/* Replace ids, numbers and times of a row, as its list says. Return false if one of them stands for nothing, and a
   valid row needs it. */
#define REPLACER(name, type) \
	static bool replace_##name(struct load *load, struct type *row) \
	{ \
		bool is_valid = true; \
		(void)load, (void)row; \
		FIELDS_##name(REPLACE); \
		return is_valid; \
	}
REPLACER(option, trace_option)
REPLACER(image, trace_image)
REPLACER(process, trace_process)
REPLACER(thread, trace_thread)
REPLACER(mapping, trace_mapping)
REPLACER(entry, trace_entry)
REPLACER(heap, trace_heap)
REPLACER(frame, trace_frame)
REPLACER(gap, trace_gap)
REPLACER(early_end, trace_early_end)
REPLACER(sample, trace_sample)
REPLACER(resident, trace_resident)
REPLACER(pages, trace_pages)
REPLACER(limit, trace_limit)
REPLACER(cause, trace_cause)
REPLACER(symbol, trace_symbol)
REPLACER(named, trace_named)
REPLACER(fold, trace_fold)
REPLACER(sum, trace_sum)
REPLACER(sequence, rows_sequence)

/* ---- rows of each type ---- */

/* Take a row as it is. `texts` has its texts; NULL: it has none. `add` adds it, and is whether there was memory. */
#define TAKE(name, type, texts, add) \
	static bool take_##name(struct load *load, struct reading *reading) \
	{ \
		struct dictionary *to = &load->dictionary; \
		struct type row; \
		rows_get_##name(reading, texts, &row); \
		return !reading->has_failed && replace_##name(load, &row) && (add); \
	}
#define ADDED(name) dictionary_add_##name(to, &row) != TRACE_NONE
/* The segment numbers the row. */
#define NUMBERED(name, many) load_ids_add(&load_current(load)->many, dictionary_add_##name(to, &row))
/* The row of an unknown process is dropped. */
#define OF_PROCESS(name) row.process == TRACE_NONE || ADDED(name)
TAKE(option, trace_option, &load->texts, ADDED(option))
TAKE(image, trace_image, &load->texts, NUMBERED(image, images))
TAKE(entry, trace_entry, &load->texts, NUMBERED(entry, entries))
TAKE(heap, trace_heap, &load->texts, NUMBERED(heap, heaps))
TAKE(gap, trace_gap, NULL, ADDED(gap))
TAKE(sample, trace_sample, NULL, OF_PROCESS(sample))
TAKE(limit, trace_limit, NULL, OF_PROCESS(limit))
TAKE(cause, trace_cause, NULL, OF_PROCESS(cause))
TAKE(named, trace_named, NULL, ADDED(named))

static bool take_process(struct load *load, struct reading *reading)
{
	struct trace_process row;
	struct dictionary *dictionary = &load->dictionary;
	uint32_t number;
	bool is_new;
	rows_get_process(reading, &load->texts, &number, &row);
	if (reading->has_failed || !replace_process(load, &row))
		return false;
	uint32_t *id = own_id(load, &load->processes, number, dictionary->process_count, add_blank_process, &is_new);
	if (!id)
		return false;
	uint32_t own = is_new ? dictionary->process_count : *id;
	/* A process comes after those that it came from. */
	row.parent = row.parent < own ? row.parent : TRACE_NONE;
	row.forked_from = row.forked_from < own ? row.forked_from : TRACE_NONE;
	if (!is_new)
		return dictionary_set_process(dictionary, *id, &row);
	return (*id = dictionary_add_process(dictionary, &row)) != TRACE_NONE;
}

static bool take_thread(struct load *load, struct reading *reading)
{
	struct trace_thread row;
	struct dictionary *dictionary = &load->dictionary;
	uint32_t number;
	bool is_new;
	rows_get_thread(reading, &load->texts, &number, &row);
	if (reading->has_failed || !replace_thread(load, &row))
		return false;
	uint32_t *id = own_id(load, &load->threads, number, dictionary->thread_count, add_blank_thread, &is_new);
	if (!id)
		return false;
	if (!is_new)
		return dictionary_set_thread(dictionary, *id, &row);
	return (*id = dictionary_add_thread(dictionary, &row)) != TRACE_NONE;
}

static bool take_mapping(struct load *load, struct reading *reading)
{
	struct trace_mapping row;
	struct dictionary *dictionary = &load->dictionary;
	uint32_t number;
	bool is_new;
	rows_get_mapping(reading, NULL, &number, &row);
	if (reading->has_failed || !replace_mapping(load, &row) || row.end < row.base)
		return false;
	uint32_t *id = own_id(load, &load->mappings, number, dictionary->mapping_count, add_blank_mapping, &is_new);
	if (!id)
		return false;
	if (!is_new)
		dictionary->mappings[*id] = row;
	else
		*id = dictionary_add_mapping(dictionary, &row);
	return *id != TRACE_NONE;
}

static bool take_frame(struct load *load, struct reading *reading)
{
	struct trace_frame row;
	rows_get_frame(reading, &row);
	return !reading->has_failed && replace_frame(load, &row) &&
	       load_ids_add(&load_current(load)->frames, tree_frame(&load->dictionary.tree, row.image, row.offset));
}

/* The frame's distance: 0 is the first that no node has yet, else the distance back from that one. */
static bool take_node(struct load *load, struct reading *reading)
{
	struct load_segment *segment = load_current(load);
	struct rows_link row;
	rows_get_link(reading, &row);
	if (reading->has_failed || row.back == 0 || row.back > segment->nodes.count ||
	    row.frame > segment->frame_next || segment->frame_next - row.frame >= segment->frames.count)
		return false;
	uint32_t parent = segment->nodes.ids[segment->nodes.count - row.back],
		 own = segment->frames.ids[segment->frame_next - row.frame];
	segment->frame_next += row.frame == 0;
	return load_ids_add(&segment->nodes, tree_node(&load->dictionary.tree, parent, own));
}

static bool take_early_end(struct load *load, struct reading *reading)
{
	struct trace_early_end row;
	rows_get_early_end(reading, &load->texts, &row);
	bool is_of_process = row.process != TRACE_NONE;
	if (reading->has_failed || !replace_early_end(load, &row))
		return false;
	/* A row of a process that is not known says nothing. */
	return is_of_process != (row.process != TRACE_NONE) ||
	       dictionary_add_early_end(&load->dictionary, &row) != TRACE_NONE;
}

/* Without a process that is known the row says nothing, but its parts have to be passed over. */
static bool take_resident(struct load *load, struct reading *reading)
{
	struct trace_resident row;
	struct dictionary *dictionary = &load->dictionary;
	rows_get_resident(reading, NULL, &row);
	if (reading->has_failed || !replace_resident(load, &row))
		return false;
	bool is_known = row.process != TRACE_NONE;
	row.first = dictionary->resident_part_count;
	/* A count that is no true one ends with the bytes. */
	for (uint32_t i = 0; i < row.spread; i++) {
		struct trace_resident_part part;
		rows_get_resident_part(reading, &load->texts, &part);
		if (reading->has_failed || part.end < part.base)
			return false;
		if (part.kind >= TRACE_MAPPING_KIND_COUNT)
			part.kind = TRACE_MAPPING_OTHER;
		if (is_known && dictionary_add_resident_part(dictionary, &part) == TRACE_NONE)
			return false;
	}
	return !is_known || dictionary_add_resident(dictionary, &row) != TRACE_NONE;
}

/* As above. */
static bool take_pages(struct load *load, struct reading *reading)
{
	struct trace_pages row;
	struct dictionary *dictionary = &load->dictionary;
	rows_get_pages(reading, NULL, &row);
	if (reading->has_failed || !replace_pages(load, &row))
		return false;
	bool is_known = row.process != TRACE_NONE;
	uint64_t next = 0;
	row.first = dictionary->page_run_count;
	for (uint32_t i = 0; i < row.spread; i++) {
		struct trace_page_run run;
		rows_get_page_run(reading, NULL, &run);
		/* Addresses must not overflow. */
		if (reading->has_failed || __builtin_add_overflow(next, run.skipped, &next) ||
		    __builtin_add_overflow(next, run.count, &next) || next > UINT64_MAX / TRACE_PAGE_BYTES)
			return false;
		if (run.kind >= TRACE_MAPPING_KIND_COUNT)
			run.kind = TRACE_MAPPING_OTHER;
		if (is_known && dictionary_add_page_run(dictionary, &run) == TRACE_NONE)
			return false;
	}
	return !is_known || dictionary_add_pages(dictionary, &row) != TRACE_NONE;
}

static bool take_symbol(struct load *load, struct reading *reading)
{
	if (reading_number(reading) == ROWS_NAMED)
		return take_named(load, reading);
	struct trace_symbol row;
	rows_get_symbol(reading, NULL, &row);
	if (reading->has_failed || !replace_symbol(load, &row))
		return false;
	row.first = load->dictionary.function_count;
	/* A count that is no true one ends with the bytes. */
	for (uint32_t i = 0; i < row.count; i++) {
		struct trace_function function;
		rows_get_function(reading, &load->texts, &function);
		if (reading->has_failed || dictionary_add_function(&load->dictionary, &function) == TRACE_NONE)
			return false;
	}
	return dictionary_add_symbol(&load->dictionary, &row) != TRACE_NONE;
}

/* ---- what is folded ---- */

static bool take_fold(struct load *load, struct reading *reading)
{
	struct trace_fold row;
	rows_get_fold(reading, NULL, &row);
	load_current(load)->folded += row.event_count;
	return !reading->has_failed && replace_fold(load, &row) && row.interval_ns > 0 &&
	       dictionary_add_fold(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_lifetimes(struct load *load, struct reading *reading, struct trace_sum *row)
{
	row->first = load->dictionary.lifetime_count;
	/* A count that is no true one ends with the bytes. */
	for (uint32_t i = 0; i < row->spread; i++) {
		struct trace_lifetime lifetime;
		rows_get_lifetime(reading, NULL, &lifetime);
		if (reading->has_failed || dictionary_add_lifetime(&load->dictionary, &lifetime) == TRACE_NONE)
			return false;
	}
	return true;
}

static bool take_sum(struct load *load, struct reading *reading)
{
	struct trace_sum row;
	rows_get_sum(reading, NULL, &row);
	bool is_valid = !reading->has_failed && row.size_min <= row.size_max &&
			row.lifetime_min_ns <= row.lifetime_max_ns && row.lifetime_max_ns <= INT64_MAX &&
			row.birth_first_ns <= row.birth_last_ns && row.end_first_ns <= row.end_last_ns;
	if (!is_valid || !replace_sum(load, &row) || (row.entry == TRACE_NONE && !(row.flags & TRACE_SUM_EARLIER)))
		return false;
	return take_lifetimes(load, reading, &row) && dictionary_add_sum(&load->dictionary, &row) != TRACE_NONE;
}

static bool take_sequence(struct load *load, struct reading *reading)
{
	struct rows_sequence row;
	rows_get_sequence(reading, NULL, &row);
	if (reading->has_failed || !replace_sequence(load, &row) ||
	    !load_grow(load->sequences, load->sequence_count, load->sequence_capacity))
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
	[FORMAT_FOLDED] = {take_folded},  [FORMAT_EARLY_ENDS] = {take_early_end}, [FORMAT_RESIDENT] = {take_resident},
	[FORMAT_LIMITS] = {take_limit},   [FORMAT_CAUSES] = {take_cause},         [FORMAT_PAGES] = {take_pages},
};

bool load_has_row_type(uint32_t type)
{
	return type < sizeof(row_types) / sizeof(row_types[0]) && row_types[type].take;
}

bool load_take_row(struct load *load, uint32_t type, struct reading *reading)
{
	return row_types[type].take(load, reading);
}
