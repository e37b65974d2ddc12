/* SPDX-License-Identifier: MIT */
/* match_grown ROUNDS FILE...: each trace is written again as a logger would have written it: rows when they are needed
   for the first time, and a flush at random moments. A follower (match/follow.h) takes the file at each flush. At the
   end its table is compared with one that is made of the whole file at once; the sums that it has meanwhile are compared
   with those of a follower that saw nothing before. The trace itself is matched up to random moments as well, one after
   the other. Prints the traces for which something differs, and the reasons for which following was refused. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "cells/growing_cells.h"
#include "match/follow.h"
#include "match/match.h"
#include "query/peak.h"
#include "query/scan.h"
#include "table/table_valid.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"
#include "trace/writer.h"

enum { MOMENTS_MAX = 12, MOMENTS_MANY = 60, REASONS_MAX = 16, WORDS_BYTES = 300 };
static const char path[] = "grown.xht";
static const bool is_never_over = false;
static uint32_t seed = 1, difference_count, sums_compared, charts_compared, cells_compared, tables_compared;
static char what[WORDS_BYTES];

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

/* Report a difference. */
static void differs(const char *format, ...)
{
	va_list arguments;
	char text[WORDS_BYTES];
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (difference_count++ < 20)
		printf("%s: %s\n", what, text);
}

static void check(int error, const struct diag *diag)
{
	if (!error)
		return;
	printf("%s: %s\n", what, diag->text);
	exit(1);
}

/* ---- two tables ---- */

static bool is_same_site(const struct heap_table *a, uint32_t one, const struct heap_table *b, uint32_t other)
{
	if (one == HEAP_NONE || other == HEAP_NONE)
		return one == other;
	return !memcmp(&a->sites[one], &b->sites[other], sizeof(*a->sites));
}

static void compare_row(const struct heap_table *a, const struct heap_rows *left, const struct heap_table *b,
			const struct heap_rows *right, uint32_t i)
{
	const struct heap_allocation one = heap_rows_get(left, i), other = heap_rows_get(right, i);
	const struct heap_details *first = &left->details[i], *second = &right->details[i];
	const struct {
		const char *name;
		uint64_t one, other;
	} fields[] = {
#define FIELD(name) {#name, (uint64_t)one.name, (uint64_t)other.name}
		FIELD(birth_ns),    FIELD(end_ns),      FIELD(size_bytes), FIELD(end),
		FIELD(flags),       FIELD(thread),      FIELD(heap),
#undef FIELD
#define FIELD(name) {#name, first->name, second->name}
		FIELD(address),     FIELD(slack_bytes), FIELD(previous),   FIELD(end_thread),
		FIELD(birth_point), FIELD(end_point),
#undef FIELD
	};
	for (size_t k = 0; k < sizeof(fields) / sizeof(*fields); k++)
		if (fields[k].one != fields[k].other)
			differs("allocation %u: %s %llx, and of the whole trace %llx", left->first + i, fields[k].name,
				(unsigned long long)fields[k].one, (unsigned long long)fields[k].other);
	if (!is_same_site(a, one.site, b, other.site) || !is_same_site(a, one.end_site, b, other.end_site))
		differs("allocation %u has another site", left->first + i);
}

static void compare_rows(const struct heap_table *a, const struct heap_table *b)
{
	struct heap_scan scans[2];
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	const struct heap_rows *left, *right;
	plan.columns = PACK_EVERYTHING;
	heap_scan_begin(&scans[0], a, &plan, NULL);
	heap_scan_begin(&scans[1], b, &plan, NULL);
	do {
		left = heap_scan_next(&scans[0]);
		right = heap_scan_next(&scans[1]);
		if (!left != !right || (left && left->count != right->count))
			differs("other numbers of allocations");
		for (uint32_t i = 0; left && right && i < left->count && i < right->count; i++)
			compare_row(a, left, b, right, i);
	} while (left && right);
	heap_scan_end(&scans[0]);
	heap_scan_end(&scans[1]);
}

/* The sites of both are the same set: find that of `b` for each of `a`. */
static uint32_t *sites_pair(const struct heap_site *a, uint32_t count, const struct heap_site *b, uint32_t other_count)
{
	struct map ids = {0};
	bool added;
	uint32_t *pairs = memory_zeroed((size_t)count + 1, sizeof(*pairs));
	for (uint32_t i = 0; i < other_count; i++)
		*map_add(&ids, map_pair(b[i].stack, b[i].entry), &added) = i;
	if (count != other_count)
		differs("%u sites, and %u of the whole trace", count, other_count);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t *id = map_find(&ids, map_pair(a[i].stack, a[i].entry));
		if (!id)
			differs("a site that the whole trace has not");
		pairs[i] = id ? *id : 0;
	}
	map_fini(&ids);
	return pairs;
}

static void compare_numbers(const struct heap_numbers *one, const struct heap_numbers *other, uint32_t site)
{
	if (memcmp(one, other, sizeof(*one)))
		differs("sums of site %u: %llu allocations of %llu bytes, %llu of %llu outstanding, %llu temporary; "
			"and %llu of %llu, %llu of %llu, %llu",
			site, (unsigned long long)one->total_count, (unsigned long long)one->total_bytes,
			(unsigned long long)one->outstanding_count, (unsigned long long)one->outstanding_bytes,
			(unsigned long long)one->temporary_count, (unsigned long long)other->total_count,
			(unsigned long long)other->total_bytes, (unsigned long long)other->outstanding_count,
			(unsigned long long)other->outstanding_bytes, (unsigned long long)other->temporary_count);
}

static void compare_sums(const struct heap_table *a, const struct heap_table *b)
{
	struct map uses = {0};
	bool added;
	uint32_t *pairs = sites_pair(a->sites, a->site_count, b->sites, b->site_count);
	if (!a->sums.numbers != !b->sums.numbers || a->sums.use_count != b->sums.use_count)
		differs("only one has sums");
	for (uint32_t i = 0; a->sums.numbers && b->sums.numbers && i < a->site_count; i++)
		compare_numbers(&a->sums.numbers[i], &b->sums.numbers[pairs[i]], i);
	for (size_t i = 0; i < b->sums.use_count; i++)
		map_add(&uses, map_pair(b->sums.uses[i].cell, b->sums.uses[i].thread), &added);
	for (size_t i = 0; i < a->sums.use_count; i++)
		if (!map_find(&uses, map_pair(pairs[a->sums.uses[i].cell], a->sums.uses[i].thread)))
			differs("another thread at site %u", a->sums.uses[i].cell);
	for (uint32_t i = 0; i < a->dictionary->sum_count; i++)
		if (!is_same_site(a, a->sum_sites[i], b, b->sum_sites[i]))
			differs("another site of sum %u", i);
	map_fini(&uses);
	free(pairs);
}

static void compare_processes(const struct heap_table *a, const struct heap_table *b)
{
	for (uint32_t i = 0; i < a->dictionary->process_count; i++) {
		const struct heap_process *one = &a->processes[i], *other = &b->processes[i];
		if (memcmp(one, other, sizeof(*one)))
			differs("process %u: end %lld, loss %lld, live %llu of %llu, inherited %llu of %llu, %llu "
				"freed, %llu "
				"unknown, %llu conflicts; and %lld, %lld, %llu of %llu, %llu of %llu, %llu, %llu, %llu",
				i, (long long)one->end_ns, (long long)one->last_loss_ns,
				(unsigned long long)one->live_count, (unsigned long long)one->live_bytes,
				(unsigned long long)one->inherited_count, (unsigned long long)one->inherited_bytes,
				(unsigned long long)one->inherited_freed, (unsigned long long)one->unknown_frees,
				(unsigned long long)one->order_conflicts, (long long)other->end_ns,
				(long long)other->last_loss_ns, (unsigned long long)other->live_count,
				(unsigned long long)other->live_bytes, (unsigned long long)other->inherited_count,
				(unsigned long long)other->inherited_bytes, (unsigned long long)other->inherited_freed,
				(unsigned long long)other->unknown_frees, (unsigned long long)other->order_conflicts);
	}
}

static void compare_points(const struct heap_table *a, const struct heap_table *b)
{
	if (a->point_count != b->point_count || a->instant_count != b->instant_count ||
	    a->fault_count != b->fault_count) {
		differs("%u points, %u instants, %u faults; and %u, %u, %u", a->point_count, a->instant_count,
			a->fault_count, b->point_count, b->instant_count, b->fault_count);
		return;
	}
	if ((a->instant_count && memcmp(a->instants, b->instants, a->instant_count * sizeof(*a->instants))) ||
	    (a->point_count &&
	     memcmp(a->point_times, b->point_times, heap_time_count(a->point_count) * sizeof(*a->point_times))))
		differs("other instants, or times of points");
	if (a->fault_count && memcmp(a->faults, b->faults, a->fault_count * sizeof(*a->faults)))
		differs("other faults");
}

static void compare_tables(const struct heap_table *a, const struct heap_table *b)
{
	const struct {
		const char *name;
		uint64_t one, other;
	} fields[] = {
#define FIELD(name) {#name, (uint64_t)a->name, (uint64_t)b->name}
		FIELD(count),       FIELD(nested_count), FIELD(unknown_frees), FIELD(order_conflicts),
		FIELD(duration_ns), FIELD(sample_bytes), FIELD(peak.time_ns),  FIELD(peak.bytes),
#undef FIELD
	};
	for (size_t k = 0; k < sizeof(fields) / sizeof(*fields); k++)
		if (fields[k].one != fields[k].other)
			differs("%s %llu, and of the whole trace %llu", fields[k].name,
				(unsigned long long)fields[k].one, (unsigned long long)fields[k].other);
	if (!heap_table_is_valid(a))
		differs("the table is not valid");
	if (a->dictionary->heap_count && memcmp(a->inside, b->inside, a->dictionary->heap_count * sizeof(*a->inside)))
		differs("other heaps lie in heaps");
	compare_processes(a, b);
	compare_points(a, b);
	compare_sums(a, b);
	compare_rows(a, b);
	tables_compared++;
}

/* ---- the same trace once more, written bit by bit ---- */

/* A thread's events with the ids of the source, and how many of them are written. */
struct lane {
	struct writer_events all;
	int64_t *first_ns; /* of each event: the time of its first point */
	size_t capacity;
	uint32_t written;
};

/* The rows of one kind: the id that each has in the new file, or TRACE_NONE. */
struct ids {
	uint32_t *ids, count;
};

struct growth {
	const struct trace_dictionary *from;
	struct writer *writer;
	struct lane *lanes;
	struct ids processes, threads, entries, heaps, nodes, images;
	uint32_t processes_added, threads_added, gaps_added;
	bool *has_ended;
};

static void ids_begin(struct ids *ids, uint32_t count)
{
	*ids = (struct ids){memory_resize(NULL, (size_t)count + 1, sizeof(*ids->ids)), count};
	memset(ids->ids, 0xff, ((size_t)count + 1) * sizeof(*ids->ids));
}

static uint32_t id_of(const struct ids *ids, uint32_t place)
{
	return place < ids->count ? ids->ids[place] : TRACE_NONE;
}

static void lane_add(struct lane *lane, const struct trace_block *block, uint32_t i)
{
	struct writer_events *events = &lane->all;
	if (writer_events_reserve(events, 1))
		memory_exhausted(0);
	uint32_t at = events->count++;
	memory_grow(lane->first_ns, at, lane->capacity);
#define COPY(column) events->column[at] = block->column[i]
	COPY(kind);
	COPY(flags);
	COPY(entry);
	COPY(heap);
	COPY(stack);
	COPY(address);
	COPY(previous);
	COPY(size);
	COPY(usable);
	COPY(argument);
	COPY(argument2);
	COPY(result);
#undef COPY
	events->time[at] = (uint64_t)block->time_ns[i];
	events->duration[at] = (uint64_t)block->duration_ns[i];
	bool has_two = block->kind[i] == EVENT_REALLOC && block->duration_ns[i] > 0;
	lane->first_ns[at] = (int64_t)((uint64_t)block->time_ns[i] - (has_two ? (uint64_t)block->duration_ns[i] : 0));
}

static void growth_read(struct growth *growth, const struct trace *trace)
{
	struct diag diag = {""};
	struct trace_cursor *cursor = trace_cursor_new(trace);
	growth->from = trace_dictionary(trace);
	growth->lanes = memory_zeroed((size_t)growth->from->thread_count + 1, sizeof(*growth->lanes));
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		struct trace_block block;
		check(trace_cursor_read(cursor, i, &block, &diag), &diag);
		for (uint32_t row = 0; row < block.count; row++)
			lane_add(&growth->lanes[block.thread], &block, row);
	}
	trace_cursor_free(cursor);
}

static int64_t ticks_of(const struct growth *growth, int64_t time_ns)
{
	return time_ns == INT64_MAX ? INT64_MAX : (int64_t)writer_ticks(growth->writer, time_ns);
}

static uint32_t image_of(struct growth *growth, uint32_t place)
{
	if (place >= growth->images.count)
		return TRACE_NONE;
	if (growth->images.ids[place] == TRACE_NONE)
		growth->images.ids[place] = writer_add_image(growth->writer, &growth->from->images[place]);
	return growth->images.ids[place];
}

static void processes_add(struct growth *growth, uint32_t end)
{
	for (; growth->processes_added < end; growth->processes_added++) {
		struct trace_process row = growth->from->processes[growth->processes_added];
		row.parent = id_of(&growth->processes, row.parent);
		row.forked_from = id_of(&growth->processes, row.forked_from);
		row.start_ns = ticks_of(growth, row.start_ns);
		row.end_ns = INT64_MAX;
		row.end = TRACE_END_OPEN;
		growth->processes.ids[growth->processes_added] = writer_add_process(growth->writer, &row);
	}
}

static void threads_add(struct growth *growth, uint32_t end)
{
	for (; growth->threads_added < end; growth->threads_added++) {
		struct trace_thread row = growth->from->threads[growth->threads_added];
		processes_add(growth, row.process + 1);
		row.process = id_of(&growth->processes, row.process);
		row.start_ns = ticks_of(growth, row.start_ns);
		row.end_ns = INT64_MAX;
		growth->threads.ids[growth->threads_added] = writer_add_thread(growth->writer, &row);
	}
}

static uint32_t entry_of(struct growth *growth, uint32_t place)
{
	if (place >= growth->entries.count)
		return TRACE_NONE;
	struct trace_entry row = growth->from->entries[place];
	row.image = image_of(growth, row.image);
	if (growth->entries.ids[place] == TRACE_NONE)
		growth->entries.ids[place] = writer_add_entry(growth->writer, &row);
	return growth->entries.ids[place];
}

static uint32_t heap_of(struct growth *growth, uint32_t place)
{
	if (place >= growth->heaps.count)
		return TRACE_NONE;
	struct trace_heap row = growth->from->heaps[place];
	processes_add(growth, row.process + 1);
	row.process = id_of(&growth->processes, row.process);
	if (growth->heaps.ids[place] == TRACE_NONE)
		growth->heaps.ids[place] = writer_add_heap(growth->writer, &row);
	return growth->heaps.ids[place];
}

static uint32_t node_of(struct growth *growth, uint32_t place)
{
	uint32_t path_nodes[1 << 12], count = 0, node = 0;
	for (; place && growth->nodes.ids[place] == TRACE_NONE && count < 1 << 12;
	     place = growth->from->nodes[place].parent)
		path_nodes[count++] = place;
	node = place ? growth->nodes.ids[place] : 0;
	while (count-- > 0) {
		const struct trace_frame *frame = &growth->from->frames[growth->from->nodes[path_nodes[count]].frame];
		uint32_t id = writer_intern_frame(growth->writer, image_of(growth, frame->image), frame->offset);
		node = growth->nodes.ids[path_nodes[count]] = writer_intern_node(growth->writer, node, id);
	}
	return node;
}

/* What is in place of events comes first, with all that it refers to. */
static void sums_write(struct growth *growth)
{
	const struct trace_dictionary *from = growth->from;
	for (uint32_t i = 0; i < from->sum_count; i++) {
		struct trace_sum sum = from->sums[i];
		threads_add(growth, sum.thread + 1);
		sum.thread = id_of(&growth->threads, sum.thread);
		sum.heap = heap_of(growth, sum.heap);
		sum.entry = entry_of(growth, sum.entry);
		sum.stack = node_of(growth, sum.stack);
		writer_add_sum(growth->writer, &sum, &from->lifetimes[sum.first]);
	}
	for (uint32_t i = 0; i < from->fold_count; i++)
		writer_add_fold(growth->writer, &from->folds[i]);
}

static void growth_begin(struct growth *growth)
{
	const struct trace_dictionary *from = growth->from;
	const struct writer_options how = {.mode = WRITER_SEQUENTIAL, .segment_bytes = 1 + random_below(1 << 16)};
	struct diag diag = {""};
	unlink(path);
	check(writer_open(&growth->writer, path, &how, &diag), &diag);
	writer_set_clock(growth->writer,
			 &(struct writer_clock){.name = "tsc", .start_ticks = UINT64_C(1) << 40, .mult = 1});
	writer_set_host(growth->writer, from->host);
	for (uint32_t i = 0; i < from->option_count; i++)
		writer_add_option(growth->writer, from->options[i].name, from->options[i].value);
	ids_begin(&growth->processes, from->process_count);
	ids_begin(&growth->threads, from->thread_count);
	ids_begin(&growth->entries, from->entry_count);
	ids_begin(&growth->heaps, from->heap_count);
	ids_begin(&growth->nodes, from->node_count + 1);
	ids_begin(&growth->images, from->image_count);
	growth->processes_added = growth->threads_added = growth->gaps_added = 0;
	growth->has_ended = memory_zeroed((size_t)from->process_count + 1, sizeof(*growth->has_ended));
	for (uint32_t i = 0; i < from->thread_count; i++)
		growth->lanes[i].written = 0;
	sums_write(growth);
}

/* Write `count` more events of a thread as one block. */
static void block_write(struct growth *growth, uint32_t thread, uint32_t count)
{
	struct lane *lane = &growth->lanes[thread];
	struct writer_events block = {.count = 0};
	struct diag diag = {""};
	if (writer_events_reserve(&block, count))
		memory_exhausted(count);
	threads_add(growth, thread + 1);
	block.process = id_of(&growth->processes, growth->from->threads[thread].process);
	block.thread = id_of(&growth->threads, thread);
	block.first_sequence = 1;
	for (; block.count < count; block.count++) {
		uint32_t at = lane->written++, to = block.count;
#define COPY(column) block.column[to] = lane->all.column[at]
		COPY(kind);
		COPY(flags);
		COPY(duration);
		COPY(address);
		COPY(previous);
		COPY(size);
		COPY(usable);
		COPY(argument);
		COPY(argument2);
		COPY(result);
#undef COPY
		block.entry[to] = (uint16_t)entry_of(growth, lane->all.entry[at]);
		block.heap[to] = heap_of(growth, lane->all.heap[at]);
		block.stack[to] = node_of(growth, lane->all.stack[at]);
		block.time[to] = (uint64_t)ticks_of(growth, (int64_t)lane->all.time[at]);
	}
	check(writer_write_events(growth->writer, &block, &diag), &diag);
	writer_events_fini(&block);
}

static void events_write(struct growth *growth, uint32_t thread, int64_t until_ns)
{
	struct lane *lane = &growth->lanes[thread];
	uint32_t count = 0;
	while (lane->written + count < lane->all.count && (int64_t)lane->all.time[lane->written + count] <= until_ns)
		count++;
	while (count) {
		uint32_t part = random_below(3) ? count : 1 + random_below(count);
		part = part < TRACE_BLOCK_EVENTS_MAX ? part : TRACE_BLOCK_EVENTS_MAX;
		block_write(growth, thread, part);
		count -= part;
	}
}

static bool process_is_written(const struct growth *growth, uint32_t process)
{
	for (uint32_t i = 0; i < growth->from->thread_count; i++)
		if (growth->from->threads[i].process == process &&
		    growth->lanes[i].written < growth->lanes[i].all.count)
			return false;
	return true;
}

static void ends_write(struct growth *growth, int64_t until_ns)
{
	for (uint32_t i = 0; i < growth->processes_added; i++) {
		struct trace_process row = growth->from->processes[i];
		if (growth->has_ended[i] || row.end == TRACE_END_OPEN ||
		    (row.end_ns > until_ns && until_ns < INT64_MAX) || !process_is_written(growth, i))
			continue;
		row.parent = id_of(&growth->processes, row.parent);
		row.forked_from = id_of(&growth->processes, row.forked_from);
		row.start_ns = ticks_of(growth, row.start_ns);
		row.end_ns = ticks_of(growth, row.end_ns);
		writer_update_process(growth->writer, growth->processes.ids[i], &row);
		growth->has_ended[i] = true;
	}
}

static void gaps_write(struct growth *growth, int64_t until_ns)
{
	for (; growth->gaps_added < growth->from->gap_count; growth->gaps_added++) {
		struct trace_gap gap = growth->from->gaps[growth->gaps_added];
		if (gap.from_ns > until_ns)
			return;
		threads_add(growth, gap.thread < growth->from->thread_count ? gap.thread + 1 : 0);
		processes_add(growth, gap.process < growth->from->process_count ? gap.process + 1 : 0);
		gap.process = id_of(&growth->processes, gap.process);
		gap.thread = id_of(&growth->threads, gap.thread);
		gap.from_ns = ticks_of(growth, gap.from_ns);
		gap.to_ns = ticks_of(growth, gap.to_ns);
		writer_add_gap(growth->writer, &gap);
	}
}

static void least(int64_t *to, int64_t value)
{
	*to = value < *to ? value : *to;
}

/* Write everything up to a time. Return the time up to which the file is complete. */
static int64_t growth_write(struct growth *growth, int64_t until_ns)
{
	struct diag diag = {""};
	const struct trace_dictionary *from = growth->from;
	int64_t complete_ns = INT64_MAX - 1;
	for (uint32_t i = 0; i < from->process_count; i++)
		if (from->processes[i].start_ns <= until_ns)
			processes_add(growth, i + 1);
	for (uint32_t i = 0; i < from->thread_count; i++)
		events_write(growth, i, until_ns);
	gaps_write(growth, until_ns);
	ends_write(growth, until_ns);
	check(writer_flush(growth->writer, &diag), &diag);
	for (uint32_t i = 0; i < from->thread_count; i++)
		for (uint32_t at = growth->lanes[i].written; at < growth->lanes[i].all.count; at++)
			least(&complete_ns, growth->lanes[i].first_ns[at] - 1);
	for (uint32_t i = 0; i < from->process_count; i++) {
		if (i >= growth->processes_added)
			least(&complete_ns, from->processes[i].start_ns - 1);
		if (!growth->has_ended[i] && from->processes[i].end != TRACE_END_OPEN)
			least(&complete_ns, from->processes[i].end_ns - 1);
	}
	for (uint32_t i = growth->gaps_added; i < from->gap_count; i++)
		least(&complete_ns, from->gaps[i].from_ns - 1);
	return complete_ns;
}

static void growth_end(struct growth *growth)
{
	struct diag diag = {""};
	check(writer_close(growth->writer, NULL, &diag), &diag);
	free(growth->processes.ids);
	free(growth->threads.ids);
	free(growth->entries.ids);
	free(growth->heaps.ids);
	free(growth->nodes.ids);
	free(growth->images.ids);
	free(growth->has_ended);
}

static void growth_fini(struct growth *growth)
{
	for (uint32_t i = 0; i < growth->from->thread_count; i++) {
		writer_events_fini(&growth->lanes[i].all);
		free(growth->lanes[i].first_ns);
	}
	free(growth->lanes);
}

/* ---- moments ---- */

static int time_compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return (left > right) - (left < right);
}

/* Choose times of events, or shortly before. */
static uint32_t moments_choose(const struct growth *growth, int64_t moments[MOMENTS_MANY])
{
	uint32_t count = 1 + random_below(random_below(16) ? MOMENTS_MAX : MOMENTS_MANY),
		 thread_count = growth->from->thread_count;
	for (uint32_t i = 0; i < count; i++) {
		const struct lane *lane = thread_count ? &growth->lanes[random_below(thread_count)] : NULL;
		moments[i] = lane && lane->all.count ? (int64_t)lane->all.time[random_below(lane->all.count)]
						     : (int64_t)random_below(1 << 20);
		moments[i] -= random_below(2) ? 0 : 1;
	}
	qsort(moments, count, sizeof(*moments), time_compare);
	return count;
}

/* ---- following ---- */

static char reasons[REASONS_MAX][sizeof(((struct diag *)NULL)->text)];

static void refused(const struct diag *diag)
{
	for (unsigned i = 0; i < REASONS_MAX; i++) {
		if (!strcmp(reasons[i], diag->text))
			return;
		if (!reasons[i][0]) {
			snprintf(reasons[i], sizeof(reasons[i]), "%s", diag->text);
			return;
		}
	}
}

static int reason_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static const struct heap_build in_memory = {.fd = -1, .has_chart = true};

/* ---- cells ---- */

static void watch_add(void *context, const struct heap_table *table, const struct heap_allocation *row)
{
	growing_cells_add(context, table, row);
}

static void watch_end(void *context, const struct heap_table *table, const struct heap_allocation *row)
{
	growing_cells_end(context, table, row);
}

/* A follower with the cells that it keeps. */
struct grown {
	struct growing_cells cells;
	struct row_watch watch;
	struct heap_follow *follow;
};

static void grown_begin(struct grown *grown, const struct heap_follow_increments *increments, bool without_rows)
{
	*grown = (struct grown){.cells = {.most = UINT32_MAX}, .watch = {watch_add, watch_end, &grown->cells}};
	const struct heap_build how = {
		.fd = -1, .has_chart = true, .without_rows = without_rows, .watch = &grown->watch};
	grown->follow = heap_follow_new(path, &how, increments);
}

static void grown_end(struct grown *grown)
{
	heap_follow_free(grown->follow);
	growing_cells_fini(&grown->cells);
}

/* Compare cells; calls: by interval. */
static void compare_cells(struct cell_scan_result *one, struct cell_scan_result *other, uint32_t intervals,
			  const char *what)
{
	cell_set_sort(&one->set);
	cell_set_sort(&other->set);
	if (one->is_over || other->is_over)
		return;
	if (one->set.count != other->set.count)
		differs("%s: %u cells, not %u", what, one->set.count, other->set.count);
	else if (one->set.count && memcmp(one->set.cells, other->set.cells, one->set.count * sizeof(*one->set.cells)))
		differs("%s: other cells", what);
	if (memcmp(one->calls, other->calls, intervals * sizeof(*one->calls)))
		differs("%s: other calls", what);
	cells_compared++;
}

/* Compare with the cells of a pass over the table, in the same intervals. pairs: by site of the table. */
static void compare_cells_with_table(struct grown *grown, struct heap_table *table, const struct heap_filter *all,
				     const struct matching_sums *sums)
{
	uint32_t *pairs = sites_pair(table->sites, table->site_count, sums->sites, sums->site_count),
		 *nodes = memory_zeroed(sums->site_count, sizeof(*nodes));
	struct cell_scan_result kept, found;
	struct cell_bounds bounds;
	for (uint32_t i = 0; i < sums->site_count; i++)
		nodes[i] = i;
	growing_cells_take(&grown->cells, sums->until_ns, nodes, sums->site_count, &bounds, &kept);
	const struct cell_scan scan = {.table = table,
				       .filter = all,
				       .bounds = &bounds,
				       .nodes = pairs,
				       .most = UINT32_MAX,
				       .node_count = sums->site_count};
	cell_scan(&scan, &found);
	compare_cells(&kept, &found, bounds.count - 1, "a pass");
	cell_scan_result_fini(&kept);
	cell_scan_result_fini(&found);
	cell_bounds_fini(&bounds);
	free(nodes);
	free(pairs);
}

/* Compare the cells of two followers. pairs: by site of the first one, the site of the other. */
static void compare_kept_cells(struct grown *one, struct grown *other, const uint32_t *pairs,
			       const struct matching_sums *sums)
{
	uint32_t *nodes = memory_zeroed(sums->site_count, sizeof(*nodes));
	struct cell_scan_result kept, anew;
	struct cell_bounds bounds, same;
	for (uint32_t i = 0; i < sums->site_count; i++)
		nodes[i] = i;
	growing_cells_take(&one->cells, sums->until_ns, pairs, sums->site_count, &bounds, &kept);
	growing_cells_take(&other->cells, sums->until_ns, nodes, sums->site_count, &same, &anew);
	compare_cells(&kept, &anew, bounds.count - 1, "one look");
	cell_scan_result_fini(&kept);
	cell_scan_result_fini(&anew);
	cell_bounds_fini(&bounds);
	cell_bounds_fini(&same);
	free(nodes);
}

/* ---- sums ---- */

/* Compare the chart with the peaks of the table, in the intervals that are over. */
static void compare_chart(struct grown *grown, const struct matching_sums *sums)
{
	const struct live_chart *chart = &sums->chart;
	const struct heap_build how = {.fd = -1, .until_ns = &sums->until_ns};
	uint32_t count = (uint32_t)(sums->until_ns >> chart->shift);
	int64_t bounds[LIVE_CHART_INTERVALS + 1];
	struct heap_peak peaks[LIVE_CHART_INTERVALS];
	struct heap_table *table;
	struct heap_filter all;
	struct diag diag = {""};
	struct trace *trace;
	if (!sums->is_peak_known || !count)
		return;
	check(trace_open(&trace, path, &diag), &diag);
	check(heap_table_build(&table, trace, &how, &diag), &diag);
	/* Frees that still wait for what they end are settled in a table, and it tells what may have ended by a loss. */
	bool is_settled = !table->unknown_frees && !table->order_conflicts;
	for (uint32_t i = 0; i < table->dictionary->process_count; i++)
		is_settled &= table->processes[i].last_loss_ns == INT64_MIN;
	heap_filter_init_for(&all, table);
	for (uint32_t i = 0; i <= count; i++)
		bounds[i] = (int64_t)((uint64_t)i << chart->shift) - 1;
	struct heap_peak_search *search = heap_peak_search_new_between(table, &all, NULL, bounds, count);
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_TIMES | PACK_SIZES | PACK_SITES,
					    &all,      NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan))) {
		heap_peak_search_add(search, 0, rows);
		heap_rows_each (rows, i)
			is_settled &= !(heap_rows_get(rows, i).flags & HEAP_EARLIER);
	}
	heap_scan_end(&scan);
	heap_peak_search_finish(search, peaks);
	for (uint32_t i = 0; i < count && is_settled; i++)
		if (peaks[i].bytes != chart->most[i])
			differs("interval %u of %u: most %" PRIu64 " bytes, the chart has %" PRIu64, i, count,
				peaks[i].bytes, chart->most[i]);
	charts_compared += is_settled;
	for (uint32_t i = 0; i < table->dictionary->process_count; i++)
		is_settled &= table->processes[i].end_ns != sums->until_ns;
	if (is_settled && grown)
		compare_cells_with_table(grown, table, &all, sums);
	heap_filter_fini(&all);
	heap_table_free(table);
	trace_close(trace);
}

/* Compare the sums that are known now with those of a follower that has only this look. */
static void compare_sums_now(struct grown *grown, int64_t until_ns)
{
	static const struct heap_follow_increments at_once = {.step_events = UINT64_MAX};
	struct heap_follow *follow = grown->follow;
	struct grown other;
	grown_begin(&other, &at_once, true);
	struct heap_follow *anew = other.follow;
	struct matching_sums sums = {.site_count = 0}, others = {.site_count = 0};
	struct diag diag = {""};
	if (!heap_follow_advance(anew, until_ns, 0, &is_never_over, &diag) && heap_follow_sums(follow, &sums) &&
	    heap_follow_sums(anew, &others) && sums.point_count == others.point_count) {
		uint32_t *pairs = sites_pair(sums.sites, sums.site_count, others.sites, others.site_count);
		for (uint32_t i = 0; i < sums.site_count; i++)
			compare_numbers(&sums.numbers[i], &others.numbers[pairs[i]], i);
		if (sums.live_bytes != others.live_bytes || sums.until_ns != others.until_ns ||
		    sums.is_peak_known != others.is_peak_known || memcmp(&sums.peak, &others.peak, sizeof(sums.peak)))
			differs("another peak, or other live bytes, so far");
		if (sums.is_peak_known && memcmp(&sums.chart, &others.chart, sizeof(sums.chart)))
			differs("another chart so far");
		bool has_cells = heap_follow_watch_settle(follow) && heap_follow_watch_settle(anew);
		if (has_cells)
			compare_kept_cells(grown, &other, pairs, &sums);
		compare_chart(has_cells ? grown : NULL, &sums);
		free(pairs);
		sums_compared++;
	}
	matching_sums_fini(&sums);
	matching_sums_fini(&others);
	grown_end(&other);
}

static void compare_with_whole(const struct heap_table *table, const struct trace *trace)
{
	struct heap_table *whole;
	struct diag diag = {""};
	check(heap_table_build(&whole, trace, NULL, &diag), &diag);
	compare_tables(table, whole);
	heap_table_free(whole);
}

static void follow_growth(struct growth *growth)
{
	const struct heap_follow_increments increments = {.step_events = 1 + random_below(1 << random_below(20))};
	int64_t moments[MOMENTS_MANY];
	uint32_t count = moments_choose(growth, moments);
	struct diag diag = {""};
	struct trace *trace;
	struct heap_table *table;
	struct grown grown;
	grown_begin(&grown, &increments, false);
	struct heap_follow *follow = grown.follow;
	int error = 0;
	growth_begin(growth);
	for (uint32_t i = 0; i < count; i++) {
		int64_t until_ns = growth_write(growth, moments[i]);
		error = error ? error : heap_follow_advance(follow, until_ns, 0, &is_never_over, &diag);
		if (!error && random_below(4) == 0)
			compare_sums_now(&grown, until_ns);
	}
	growth_write(growth, INT64_MAX);
	growth_end(growth);
	error = error ? error : heap_follow_end(follow, &trace, &table, &diag);
	grown_end(&grown);
	if (error == -ESTALE) {
		refused(&diag);
		return;
	}
	check(error, &diag);
	compare_with_whole(table, trace);
	heap_table_free(table);
	trace_close(trace);
}

/* Match the trace as it is up to random moments, one after the other. */
static void match_moments(const struct growth *growth, const struct trace *trace)
{
	int64_t moments[MOMENTS_MANY];
	uint32_t count = moments_choose(growth, moments);
	struct diag diag = {""};
	struct heap_table *table;
	struct matching *matching = matching_new(&in_memory);
	int error = 0;
	for (uint32_t i = 0; i < count; i++)
		error = error ? error : matching_increment(matching, trace, moments[i], &diag);
	error = error ? error : matching_end(matching, trace, &table, &diag);
	matching_free(matching);
	if (error == -ESTALE) {
		refused(&diag);
		return;
	}
	check(error, &diag);
	compare_with_whole(table, trace);
	heap_table_free(table);
}

static void trace_grow(const char *source, uint32_t rounds)
{
	struct growth growth = {.from = NULL};
	struct diag diag = {""};
	struct trace *trace;
	const char *name = strrchr(source, '/') ? strrchr(source, '/') + 1 : source;
	snprintf(what, sizeof(what), "%s", name);
	check(trace_open(&trace, source, &diag), &diag);
	growth_read(&growth, trace);
	for (uint32_t i = 0; i < rounds; i++) {
		seed = i * 7919 + 1;
		uint32_t before = difference_count;
		snprintf(what, sizeof(what), "%s, round %u", name, i);
		follow_growth(&growth);
		if (difference_count == before)
			match_moments(&growth, trace);
	}
	growth_fini(&growth);
	trace_close(trace);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3) {
		fputs("usage: match_grown ROUNDS FILE...\n", stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		trace_grow(argv[i], (uint32_t)atoi(argv[1]));
	unlink(path);
	qsort(reasons, REASONS_MAX, sizeof(*reasons), reason_compare);
	for (unsigned i = 0; i < REASONS_MAX; i++)
		if (reasons[i][0])
			printf("refused: %s\n", reasons[i]);
	fprintf(stderr, "%u tables, %u sums, %u charts, %u cells\n", tables_compared, sums_compared, charts_compared,
		cells_compared);
	printf(difference_count ? "%u differences\n" : "no differences\n", difference_count);
	return difference_count > 0;
}
