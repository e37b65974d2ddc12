/* SPDX-License-Identifier: MIT */
/*
 * Folding. A time divides the trace. Blocks that had ended by then go into sums. All events before that time go with
 * them, except for those by which blocks began that live on.
 *
 *     before                                         until_ns     behind
 *     Alloc a  Free a  Alloc b  ReAlloc c to d  Lock |     Free b  Alloc e
 *     `----- a -----´  carried  c: sums, d: carried  |     as it was
 *
 * The model (match/match.c) says which blocks are which, as if nothing came later. A carried event may refer to events
 * that are gone. Its flags say so: that the block which a ReAlloc freed is in the sums, and that the thread's next
 * event was no free of the carried block.
 */
#include "match/fold.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/map.h"
#include "base/memory.h"
#include "match/born.h"
#include "match/match.h"
#include "query/folded.h"
#include "query/lifetime.h"
#include "query/resident.h"
#include "query/scan.h"
#include "table/weight.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/reopen.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"
#include "trace/writer.h"

enum {
	INTERVALS_MAX = 256,
	SUMS_MAX = 1 << 18,
	THREADS_MAX = 1 << 10,
	BLOCK_EVENTS = 1 << 16,
	SAMPLES_MAX = 1 << 12,
	RESIDENTS_MAX = 1 << 10,
	GAPS_MAX = 1 << 12
};
#define INTERVAL_FIRST_NS INT64_C(1000000000)

/* The properties that the blocks of a sum share. */
struct sum_key {
	uint32_t thread, heap, stack, entry;
	int64_t interval;
	uint64_t flags;
};

/* A sum that is being made. */
struct fold_making {
	struct sum_key key;
	struct trace_sum sum;
	struct trace_lifetime *lifetimes; /* in order of their classes */
	size_t capacity;
};

/* The output of a thread. */
struct fold_lane {
	struct writer_events events;
	/* the thread's last event up to until_ns, if it is carried and allocates; then the same of annotated heaps'
	   events */
	uint32_t last[2];
};

struct folding {
	const struct trace *trace;
	const struct trace_dictionary *dictionary;
	struct heap_table *table;
	int64_t until_ns;
	struct trace_fold fold;
	bool is_new_peak;
	struct map ids; /* of sums, by the hash of their keys */
	struct fold_making *makings;
	uint32_t making_count, making_limit; /* beyond making_limit they are made fewer */
	size_t making_capacity;
	struct map carried;      /* blocks that live on, by block_key() */
	struct fold_lane *lanes; /* by thread */
	struct writer *writer;
};

/* ---- sums ---- */

static int64_t interval_of(const struct folding *folding, int64_t time_ns)
{
	return time_ns < 0 ? 0 : time_ns / folding->fold.interval_ns;
}

static struct fold_making *making_of(struct folding *folding, const struct sum_key *key)
{
	uint64_t hash = XXH3_64bits(key, sizeof(*key));
	for (;; hash++) {
		bool added;
		uint32_t *id = map_add(&folding->ids, hash, &added);
		if (!added && !memcmp(&folding->makings[*id].key, key, sizeof(*key)))
			return &folding->makings[*id];
		if (!added)
			continue;
		*id = folding->making_count;
		memory_grow(folding->makings, folding->making_count, folding->making_capacity);
		struct fold_making *making = &folding->makings[folding->making_count++];
		*making = (struct fold_making){.key = *key};
		making->sum = (struct trace_sum){.thread = key->thread,
						 .heap = key->heap,
						 .stack = key->stack,
						 .entry = key->entry,
						 .flags = (uint8_t)key->flags,
						 .birth_first_ns = INT64_MAX,
						 .birth_last_ns = INT64_MIN,
						 .end_first_ns = INT64_MAX,
						 .end_last_ns = INT64_MIN,
						 .lifetime_min_ns = UINT64_MAX,
						 .size_min = UINT64_MAX};
		return making;
	}
}

static void lifetime_add(struct fold_making *making, uint32_t class, uint64_t count)
{
	uint32_t at = making->sum.spread;
	while (at && making->lifetimes[at - 1].class >= class)
		at--;
	if (at < making->sum.spread && making->lifetimes[at].class == class) {
		making->lifetimes[at].count += count;
		return;
	}
	memory_grow(making->lifetimes, making->sum.spread, making->capacity);
	memmove(&making->lifetimes[at + 1], &making->lifetimes[at],
		(making->sum.spread++ - at) * sizeof(*making->lifetimes));
	making->lifetimes[at] = (struct trace_lifetime){class, count};
}

static void least(int64_t *to, int64_t value)
{
	*to = value < *to ? value : *to;
}
static void greatest(int64_t *to, int64_t value)
{
	*to = value > *to ? value : *to;
}
static void least_unsigned(uint64_t *to, uint64_t value)
{
	*to = value < *to ? value : *to;
}
static void greatest_unsigned(uint64_t *to, uint64_t value)
{
	*to = value > *to ? value : *to;
}

static void sum_add(struct folding *folding, const struct trace_sum *from, const struct trace_lifetime *lifetimes)
{
	struct sum_key key = {
		from->thread, from->heap, from->stack, from->entry, interval_of(folding, from->birth_first_ns),
		from->flags};
	struct fold_making *making = making_of(folding, &key);
	struct trace_sum *to = &making->sum;
	least(&to->birth_first_ns, from->birth_first_ns);
	greatest(&to->birth_last_ns, from->birth_last_ns);
	least(&to->end_first_ns, from->end_first_ns);
	greatest(&to->end_last_ns, from->end_last_ns);
	least_unsigned(&to->lifetime_min_ns, from->lifetime_min_ns);
	greatest_unsigned(&to->lifetime_max_ns, from->lifetime_max_ns);
	least_unsigned(&to->size_min, from->size_min);
	greatest_unsigned(&to->size_max, from->size_max);
#define ADD(member) to->member += from->member;
	/* clang-format off */
	ADD(recorded) ADD(count) ADD(bytes) ADD(reallocs) ADD(moved)
	ADD(temporary) ADD(count_variance) ADD(bytes_variance)
	ADD(peak_count) ADD(peak_bytes) ADD(peak_count_variance) ADD(peak_bytes_variance)
	/* clang-format on */
#undef ADD
			for (uint32_t i = 0; i < from->spread; i++)
				lifetime_add(making, lifetimes[i].class, lifetimes[i].count);
}

/* Take the sums that the source has. None of their blocks was live at a later peak. */
static void sums_take(struct folding *folding)
{
	for (uint32_t i = 0; i < folding->dictionary->sum_count; i++) {
		struct trace_sum sum = folding->dictionary->sums[i];
		if (folding->is_new_peak)
			sum.peak_count = sum.peak_bytes = 0, sum.peak_count_variance = sum.peak_bytes_variance = 0;
		sum_add(folding, &sum, &folding->dictionary->lifetimes[sum.first]);
	}
}

static bool was_at_peak(const struct folding *folding, const struct heap_allocation *row)
{
	int64_t peak_ns = folding->fold.peak_at_ns;
	return folding->fold.peak_bytes && (row->birth_ns <= peak_ns || row->flags & HEAP_EARLIER) &&
	       row->end_ns > peak_ns;
}

/* Fold an ended block, as a sum of one. */
static void row_fold(struct folding *folding, const struct heap_allocation *row)
{
	struct heap_site site = folding->table->sites[row->site];
	struct heap_weight weight = heap_weigh(folding->table, row);
	uint64_t lifetime_ns = heap_lifetime_ns(row) < 0 ? 0 : (uint64_t)heap_lifetime_ns(row);
	unsigned flags = (row->end == HEAP_END_EXIT ? TRACE_SUM_OPEN : 0) |
			 (row->flags & HEAP_EARLIER ? TRACE_SUM_EARLIER : 0) |
			 (row->flags & HEAP_NESTED ? TRACE_SUM_NESTED : 0) |
			 (row->flags & HEAP_HAS_NESTED ? TRACE_SUM_HAS_NESTED : 0);
	struct trace_sum sum = {.thread = row->thread,
				.heap = row->heap,
				.stack = site.stack,
				.entry = site.entry,
				.flags = (uint8_t)flags,
				.birth_first_ns = row->birth_ns,
				.birth_last_ns = row->birth_ns,
				.end_first_ns = row->end_ns,
				.end_last_ns = row->end_ns,
				.lifetime_min_ns = lifetime_ns,
				.lifetime_max_ns = lifetime_ns,
				.size_min = row->size_bytes,
				.size_max = row->size_bytes,
				.recorded = 1,
				.count = weight.count,
				.bytes = weight.bytes,
				.reallocs = row->flags & HEAP_REALLOC ? weight.count : 0,
				.moved = row->flags & HEAP_MOVED ? weight.count : 0,
				.temporary = !!(row->flags & HEAP_TEMPORARY),
				.count_variance = weight.count_variance,
				.bytes_variance = weight.bytes_variance,
				.spread = 1};
	if (was_at_peak(folding, row)) {
		sum.peak_count = weight.count;
		sum.peak_bytes = weight.bytes;
		sum.peak_count_variance = weight.count_variance;
		sum.peak_bytes_variance = weight.bytes_variance;
	}
	sum_add(folding, &sum, &(struct trace_lifetime){lifetime_class(lifetime_ns), 1});
}

/* Put all of them in again, as their keys are now. */
static void sums_join(struct folding *folding)
{
	struct fold_making *makings = folding->makings;
	uint32_t count = folding->making_count;
	map_fini(&folding->ids);
	folding->ids = (struct map){0};
	folding->makings = NULL;
	folding->making_count = 0;
	folding->making_capacity = 0;
	for (uint32_t i = 0; i < count; i++) {
		sum_add(folding, &makings[i].sum, makings[i].lifetimes);
		free(makings[i].lifetimes);
	}
	free(makings);
}

/* Join intervals in pairs: half as many remain. */
static void intervals_join(struct folding *folding)
{
	folding->fold.interval_ns *= 2;
	sums_join(folding);
}

/* Return whether a sum is of one thread, which makes no calls any more that are still to be folded. */
static bool is_of_ended_thread(const struct folding *folding, const struct trace_sum *sum)
{
	return !(sum->flags & TRACE_SUM_THREADS) &&
	       folding->dictionary->threads[sum->thread].end_ns <= folding->until_ns;
}

static bool are_many_threads(const struct folding *folding)
{
	struct map seen = {0};
	bool added;
	for (uint32_t i = 0; i < folding->making_count; i++)
		if (is_of_ended_thread(folding, &folding->makings[i].sum))
			map_add(&seen, folding->makings[i].sum.thread, &added);
	bool are_many = seen.count > THREADS_MAX;
	map_fini(&seen);
	return are_many;
}

/* Join ended threads of a process into one, under the name of the first one met. */
static void threads_join(struct folding *folding)
{
	struct map first = {0};
	for (int is_rest = 0; is_rest <= 1; is_rest++) {
		for (uint32_t i = 0; i < folding->making_count; i++) {
			struct trace_sum *sum = &folding->makings[i].sum;
			bool added = false, is_joined = sum->flags & TRACE_SUM_THREADS;
			if (is_rest ? !is_of_ended_thread(folding, sum) : !is_joined)
				continue;
			uint32_t *thread = map_add(&first, folding->dictionary->threads[sum->thread].process, &added);
			*thread = added ? sum->thread : *thread;
			sum->thread = *thread;
			sum->flags |= TRACE_SUM_THREADS;
		}
	}
	map_fini(&first);
	sums_join(folding);
}

/* Limit the number of sums: a program that begins threads for ever must not have ever more of them. */
static void sums_limit(struct folding *folding)
{
	if (folding->making_count <= folding->making_limit)
		return;
	if (are_many_threads(folding))
		threads_join(folding);
	while (folding->making_count > SUMS_MAX && interval_of(folding, folding->until_ns))
		intervals_join(folding);
	/* Where stacks alone are more, that is not tried again for each of them. */
	folding->making_limit = folding->making_count > SUMS_MAX ? folding->making_count * 2 : SUMS_MAX;
}

/* ---- the model ---- */

static uint64_t block_key(uint32_t thread, int64_t birth_ns, uint64_t address)
{
	const struct {
		uint64_t thread, birth, address;
	} key = {thread, (uint64_t)birth_ns, address};
	return XXH3_64bits(&key, sizeof(key));
}

static void rows_divide(struct folding *folding)
{
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	struct heap_scan scan;
	const struct heap_rows *rows;
	bool added;
	plan.columns = PACK_ALL | PACK_DETAILS;
	heap_scan_begin(&scan, folding->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan))) {
		heap_rows_each (rows, i) {
			const struct heap_allocation own = heap_rows_get(rows, i), *row = &own;
			if (row->end == HEAP_END_OPEN)
				map_add(&folding->carried,
					block_key(row->thread, row->birth_ns, rows->details[i].address), &added);
			else
				row_fold(folding, row);
		}
		sums_limit(folding);
	}
	heap_scan_end(&scan);
}

/* Begin with the sums of the source, and add those of this table. */
static void fold_begin(struct folding *folding)
{
	const struct heap_table *table = folding->table;
	struct trace_fold *fold = &folding->fold;
	*fold = (struct trace_fold){.interval_ns = INTERVAL_FIRST_NS};
	if (folding->dictionary->fold_count)
		*fold = folding->dictionary->folds[0];
	folding->making_limit = SUMS_MAX;
	fold->until_ns = folding->until_ns;
	fold->unknown_frees = table->unknown_frees;
	fold->order_conflicts = table->order_conflicts;
	fold->peak_bytes += folding->dictionary->fold_count ? heap_folded_late_bytes(table) : 0;
	folding->is_new_peak = table->peak.bytes > fold->peak_bytes;
	if (folding->is_new_peak) {
		fold->peak_bytes = table->peak.bytes;
		fold->peak_at_ns = table->peak.time_ns;
	}
	while (folding->until_ns / fold->interval_ns >= INTERVALS_MAX)
		fold->interval_ns *= 2;
	/* All events; those that are written are subtracted below. */
	fold->event_count = folding->dictionary->event_count;
	fold->failed = folding->dictionary->failed_count;
	fold->in_flight = folding->dictionary->in_flight_count;
	fold->ends = folding->dictionary->ends;
	fold->is_whole_known = folding->dictionary->is_whole_known;
	memcpy(fold->kind_count, folding->dictionary->kind_count, sizeof(fold->kind_count));
}

/* ---- events ---- */

static void event_uncount(struct trace_fold *fold, uint8_t kind, uint8_t flags, uint8_t stack_end)
{
	fold->event_count--;
	trace_count_end(&fold->ends, flags, stack_end, -1);
	if (flags & EVENT_FAILED)
		fold->failed--;
	else if (flags & EVENT_IN_FLIGHT)
		fold->in_flight--;
	else
		fold->kind_count[kind]--;
}

static uint64_t duration_ticks(const struct folding *folding, int64_t duration_ns)
{
	return writer_ticks(folding->writer, duration_ns) - writer_ticks(folding->writer, 0);
}

static void event_copy(struct folding *folding, const struct trace_block *block, uint32_t i, uint8_t flags)
{
	struct writer_events *events = &folding->lanes[block->thread].events;
	static const struct thread_context none;
	const struct thread_context *context = trace_block_context(block, i);
	if (writer_events_reserve(events, 1) ||
	    writer_events_set_context(events, events->count, context ? context : &none))
		memory_exhausted(0);
	uint32_t at = events->count++;
	events->process = block->process;
	events->thread = block->thread;
	/* A ReAlloc's first point must stay the nanosecond that it is. */
	uint64_t ticks = writer_ticks(folding->writer, block->time_ns[i]);
	int64_t entry_ns = (int64_t)((uint64_t)block->time_ns[i] - (uint64_t)block->duration_ns[i]);
	uint64_t from_ticks = block->kind[i] == EVENT_REALLOC ? writer_ticks(folding->writer, entry_ns)
							      : ticks - duration_ticks(folding, block->duration_ns[i]);
	events->time[at] = ticks;
	events->duration[at] = from_ticks < ticks ? ticks - from_ticks : 0;
	events->flags[at] = flags;
#define COPY(column) events->column[at] = block->column[i];
	/* clang-format off */
	COPY(kind) COPY(entry) COPY(heap) COPY(stack) COPY(address) COPY(previous) COPY(size)
	COPY(usable) COPY(argument) COPY(argument2) COPY(result)
	/* clang-format on */
#undef COPY
		event_uncount(&folding->fold, block->kind[i], flags, folding->dictionary->stack_ends[block->stack[i]]);
}

static bool is_carried(const struct folding *folding, const struct trace_block *block, uint32_t i)
{
	uint8_t kind = block->kind[i];
	bool can_begin = (kind == EVENT_ALLOC || kind == EVENT_REALLOC || kind == EVENT_EARLIER) && block->address[i] &&
			 !(block->flags[i] & (EVENT_FAILED | EVENT_IN_FLIGHT));
	return can_begin &&
	       map_find(&folding->carried,
			block_key(block->thread, kind == EVENT_EARLIER ? 0 : block->time_ns[i], block->address[i]));
}

/* Fold an event up to until_ns. */
static void event_fold(struct folding *folding, const struct trace_block *block, uint32_t i)
{
	struct fold_lane *lane = &folding->lanes[block->thread];
	uint8_t flags = block->flags[i], kind = block->kind[i];
	uint32_t *last = &lane->last[function_is_annotation(folding->dictionary->entries[block->entry[i]].function)];
	bool is_carried_on = is_carried(folding, block, i),
	     is_aside = kind == EVENT_LOCK || kind == EVENT_UNLOCK || kind == EVENT_PROTECT;
	/* A later event of the thread came between. */
	if (*last != HEAP_NONE && !is_aside) {
		lane->events.flags[*last] |= EVENT_FOLDED_AFTER;
		*last = HEAP_NONE;
	}
	if (!is_carried_on)
		return;
	event_copy(folding, block, i, born_is_realloc(block, i) ? flags | EVENT_FOLDED_BEFORE : flags);
	*last = lane->events.count - 1;
}

static void event_keep(struct folding *folding, const struct trace_block *block, uint32_t i)
{
	int64_t entry_ns = (int64_t)((uint64_t)block->time_ns[i] - (uint64_t)block->duration_ns[i]);
	bool has_given_back = born_is_realloc(block, i) && entry_ns <= folding->until_ns;
	event_copy(folding, block, i, block->flags[i] | (has_given_back ? EVENT_FOLDED_BEFORE : 0));
}

static int events_take(struct folding *folding, struct diag *diag)
{
	struct trace_cursor *cursor = trace_cursor_new(folding->trace);
	int error = cursor ? 0 : diag_fail(diag, ENOMEM, "no memory to fold the trace");
	for (uint32_t i = 0; i < trace_block_count(folding->trace) && !error; i++) {
		struct trace_block block;
		error = trace_cursor_read(cursor, i, &block, diag);
		for (uint32_t row = 0; row < block.count && !error; row++)
			(block.time_ns[row] <= folding->until_ns ? event_fold : event_keep)(folding, &block, row);
	}
	trace_cursor_free(cursor);
	return error;
}

/* Write a lane in blocks, which have a limit. */
static int lane_write(struct folding *folding, struct fold_lane *lane, struct diag *diag)
{
	struct writer_events *all = &lane->events;
	int error = 0;
	for (uint32_t from = 0; from < all->count && !error; from += BLOCK_EVENTS) {
		struct writer_events part = *all;
		part.count = all->count - from < BLOCK_EVENTS ? all->count - from : BLOCK_EVENTS;
		part.first_sequence = 1;
		part.context_first = from;
#define FROM(column) part.column += from;
		/* clang-format off */
		FROM(kind) FROM(flags) FROM(entry) FROM(heap) FROM(stack) FROM(time) FROM(duration)
		FROM(address) FROM(previous) FROM(size) FROM(usable)
		FROM(argument) FROM(argument2) FROM(result)
		/* clang-format on */
#undef FROM
				error = writer_write_events(folding->writer, &part, diag);
	}
	writer_events_fini(all);
	return error;
}

/* ---- the file ---- */

/* Write, for each process, the largest sample of each interval if there are many. */
static void samples_write(struct folding *folding)
{
	const struct trace_dictionary *dictionary = folding->dictionary;
	struct map best = {0};
	for (uint32_t i = 0; i < dictionary->sample_count && dictionary->sample_count > SAMPLES_MAX; i++) {
		bool added;
		const struct trace_sample *sample = &dictionary->samples[i];
		uint32_t *place = map_add(
			&best, map_pair(sample->process, (uint32_t)interval_of(folding, sample->time_ns)), &added);
		if (added || sample->resident_bytes > dictionary->samples[*place].resident_bytes)
			*place = i;
	}
	for (uint32_t i = 0; i < dictionary->sample_count; i++) {
		struct trace_sample sample = dictionary->samples[i];
		const uint32_t *place =
			map_find(&best, map_pair(sample.process, (uint32_t)interval_of(folding, sample.time_ns)));
		sample.time_ns = (int64_t)writer_ticks(folding->writer, sample.time_ns);
		if (!place || *place == i)
			writer_add_sample(folding->writer, &sample);
	}
	map_fini(&best);
}

/* Write what was read by kind of mapping; for each process the largest of each interval if there is much of it. */
static void residents_write(struct folding *folding)
{
	const struct trace_dictionary *dictionary = folding->dictionary;
	struct map best = {0};
	for (uint32_t i = 0; i < dictionary->resident_count && dictionary->resident_count > RESIDENTS_MAX; i++) {
		bool added;
		const struct trace_resident *resident = &dictionary->residents[i];
		uint32_t *place = map_add(
			&best, map_pair(resident->process, (uint32_t)interval_of(folding, resident->time_ns)), &added);
		if (added || resident_sum(resident) > resident_sum(&dictionary->residents[*place]))
			*place = i;
	}
	for (uint32_t i = 0; i < dictionary->resident_count; i++) {
		struct trace_resident resident = dictionary->residents[i];
		const uint32_t *place =
			map_find(&best, map_pair(resident.process, (uint32_t)interval_of(folding, resident.time_ns)));
		resident.time_ns = (int64_t)writer_ticks(folding->writer, resident.time_ns);
		if (!place || *place == i)
			writer_add_resident(folding->writer, &resident, &dictionary->resident_parts[resident.first]);
	}
	map_fini(&best);
}

static void gap_join(struct trace_gap *to, const struct trace_gap *from)
{
	assert(to->process == from->process);
	least(&to->from_ns, from->from_ns);
	greatest(&to->to_ns, from->to_ns);
	to->stacks += from->stacks;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		to->count[kind] += from->count[kind];
		to->bytes[kind] += from->bytes[kind];
	}
}

/* Write, for each thread, one gap for each interval if there are many. */
static void gaps_write(struct folding *folding)
{
	const struct trace_dictionary *dictionary = folding->dictionary;
	struct trace_gap *gaps = memory_resize(NULL, dictionary->gap_count, sizeof(*gaps));
	struct map places = {0};
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		bool is_new = true, are_many = dictionary->gap_count > GAPS_MAX && gap->to_ns <= folding->until_ns;
		uint32_t *place =
			are_many ? map_add(&places, map_pair(gap->thread, (uint32_t)interval_of(folding, gap->from_ns)),
					   &is_new)
				 : NULL;
		if (place && !is_new && gaps[*place].process == gap->process) {
			gap_join(&gaps[*place], gap);
			continue;
		}
		if (place)
			*place = count;
		gaps[count++] = *gap;
	}
	for (uint32_t i = 0; i < count; i++) {
		gaps[i].from_ns = (int64_t)writer_ticks(folding->writer, gaps[i].from_ns);
		gaps[i].to_ns = (int64_t)writer_ticks(folding->writer, gaps[i].to_ns);
		writer_add_gap(folding->writer, &gaps[i]);
	}
	map_fini(&places);
	free(gaps);
}

static void rows_write(struct folding *folding)
{
	gaps_write(folding);
	samples_write(folding);
	residents_write(folding);
	for (uint32_t i = 0; i < folding->dictionary->limit_count; i++)
		writer_add_limit(folding->writer, &folding->dictionary->limits[i]);
	for (uint32_t i = 0; i < folding->dictionary->cause_count; i++)
		writer_add_cause(folding->writer, &folding->dictionary->causes[i]);
	for (uint32_t i = 0; i < folding->making_count; i++)
		writer_add_sum(folding->writer, &folding->makings[i].sum, folding->makings[i].lifetimes);
}

static int file_write(struct folding *folding, const char *output, const char *source, struct diag *diag)
{
	/* Nothing is cut off times, which were cut before. */
	const struct writer_options how = {.mode = WRITER_SEQUENTIAL, .segment_ns = INT64_MAX};
	int error = writer_open_instead(&folding->writer, output, source, &how, diag);
	if (error)
		return error;
	error = events_take(folding, diag);
	rows_write(folding);
	for (uint32_t i = 0; i < folding->dictionary->thread_count; i++)
		error = error ? error : lane_write(folding, &folding->lanes[i], diag);
	writer_add_fold(folding->writer, &folding->fold);
	struct diag close_diag = {""};
	int close_error = writer_close(folding->writer, NULL, &close_diag);
	if (!error && close_error)
		error = diag_fail(diag, -close_error, "%s", close_diag.text);
	if (error)
		unlink(output);
	return error;
}

static int check_source(const struct trace_dictionary *dictionary, const char *source, struct diag *diag)
{
	if (!dictionary->is_complete)
		return diag_fail(diag, EINVAL, "%s cannot be folded: it is not complete: %s", source,
				 dictionary->cut_reason);
	if (dictionary->fold_count > 1)
		return diag_fail(diag, EINVAL, "%s cannot be folded: it is several traces", source);
	return 0;
}

static void folding_fini(struct folding *folding)
{
	for (uint32_t i = 0; i < folding->making_count; i++)
		free(folding->makings[i].lifetimes);
	free(folding->makings);
	for (uint32_t i = 0; folding->lanes && i < folding->dictionary->thread_count; i++)
		writer_events_fini(&folding->lanes[i].events);
	free(folding->lanes);
	map_fini(&folding->ids);
	map_fini(&folding->carried);
	heap_table_free(folding->table);
}

int heap_fold(const char *output, const char *source, int64_t until_ns, struct diag *diag)
{
	struct folding folding = {.until_ns = until_ns};
	const struct heap_build how = {.fd = -1, .until_ns = &folding.until_ns};
	struct trace *trace;
	int error = trace_open_as_written(&trace, source, diag);
	if (error)
		return error;
	folding.trace = trace;
	folding.dictionary = trace_dictionary(trace);
	if (folding.until_ns > folding.dictionary->duration_ns)
		folding.until_ns = folding.dictionary->duration_ns;
	if (folding.dictionary->fold_count && folding.dictionary->folds[0].until_ns > until_ns)
		folding.until_ns = folding.dictionary->folds[0].until_ns;
	error = check_source(folding.dictionary, source, diag);
	error = error ? error : heap_table_build(&folding.table, trace, &how, diag);
	if (!error) {
		folding.lanes = memory_zeroed(folding.dictionary->thread_count, sizeof(*folding.lanes));
		for (uint32_t i = 0; i < folding.dictionary->thread_count; i++)
			folding.lanes[i].last[0] = folding.lanes[i].last[1] = HEAP_NONE;
		fold_begin(&folding);
		sums_take(&folding);
		rows_divide(&folding);
		error = file_write(&folding, output, source, diag);
	}
	folding_fini(&folding);
	trace_close(trace);
	return error;
}
