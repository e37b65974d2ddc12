/* SPDX-License-Identifier: MIT */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/bisect.h"
#include "trace/code_rows.h"
#include "trace/decode.h"
#include "trace/gap_rows.h"
#include "trace/load.h"
#include "trace/load_parts.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

_Static_assert((int)TRACE_BLOCK_EVENTS_MAX == (int)FORMAT_EVENTS_MAX, "what is promised of a block");

struct trace {
	struct load load;
	struct trace_dictionary dictionary;
};

/* ---- opening ---- */

static void count_block(struct trace *trace, const struct load_block *block)
{
	struct trace_dictionary *dictionary = &trace->dictionary;
	struct trace_thread *thread = &trace->load.dictionary.threads[block->head.thread];
	const struct format_segment *segment = &trace->load.segments[block->segment].head;
	int64_t first_ns = load_ns(segment, block->head.first_ticks),
		last_ns = load_ns(segment, block->head.last_ticks);
	dictionary->event_count += block->count;
	dictionary->failed_count += block->head.failed;
	dictionary->in_flight_count += block->head.in_flight;
	stack_ends_add(&dictionary->ends, &(struct stack_ends){block->whole, block->head.truncated, block->unwindless});
	dictionary->is_whole_known &= block->is_whole_known;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		dictionary->kind_count[kind] += block->kind_count[kind];
	/* A thread began at its first block, whatever its row has. */
	if (thread->end_ns == INT64_MIN || first_ns < thread->start_ns)
		thread->start_ns = first_ns;
	if (last_ns > thread->end_ns)
		thread->end_ns = last_ns;
	if (last_ns > dictionary->duration_ns)
		dictionary->duration_ns = last_ns;
}

static void later(int64_t *latest, int64_t time_ns)
{
	if (time_ns != INT64_MAX && time_ns > *latest)
		*latest = time_ns;
}

/* Each segment tells how many events came before it in its trace. */
static void count_dropped(struct trace *trace)
{
	const struct load *load = &trace->load;
	struct trace_dictionary *dictionary = &trace->dictionary;
	uint64_t known = 0;
	for (uint32_t i = 0, block = 0; i < load->segment_count; i++) {
		const struct format_segment *head = &load->segments[i].head;
		if (i && memcmp(head->trace_id, load->segments[i - 1].head.trace_id, sizeof(head->trace_id)) != 0)
			known = 0;
		if (head->events_before > known) {
			dictionary->dropped_events += head->events_before - known;
			later(&dictionary->dropped_until_ns, load_ns(head, head->last_ticks_before));
		}
		for (known = head->events_before + load->segments[i].folded;
		     block < load->block_count && load->blocks[block].segment == i; block++)
			known += load->blocks[block].count;
	}
}

static void count_folded(struct trace *trace, const struct trace_fold *fold)
{
	struct trace_dictionary *dictionary = &trace->dictionary;
	dictionary->event_count += fold->event_count;
	dictionary->folded_count += fold->event_count;
	dictionary->failed_count += fold->failed;
	dictionary->in_flight_count += fold->in_flight;
	stack_ends_add(&dictionary->ends, &fold->ends);
	dictionary->is_whole_known &= fold->is_whole_known;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		dictionary->kind_count[kind] += fold->kind_count[kind];
	later(&dictionary->duration_ns, fold->until_ns);
}

/* A thread began with the first of its blocks that is known, be it in a sum. */
static void count_sum(struct load *load, const struct trace_sum *sum)
{
	struct trace_thread *thread = &load->dictionary.threads[sum->thread];
	if (sum->flags & TRACE_SUM_EARLIER)
		return;
	if (thread->end_ns == INT64_MIN || sum->birth_first_ns < thread->start_ns)
		thread->start_ns = sum->birth_first_ns;
	if (sum->birth_last_ns > thread->end_ns)
		thread->end_ns = sum->birth_last_ns;
}

static void summarize(struct trace *trace)
{
	struct load *load = &trace->load;
	struct trace_dictionary *view = &trace->dictionary;
	for (uint32_t i = 0; i < load->block_count; i++)
		load->dictionary.threads[load->blocks[i].head.thread].end_ns = INT64_MIN;
	for (uint32_t i = 0; i < load->dictionary.sum_count; i++)
		load->dictionary.threads[load->dictionary.sums[i].thread].end_ns = INT64_MIN;
	view->is_whole_known = true;
	for (uint32_t i = 0; i < load->block_count; i++)
		count_block(trace, &load->blocks[i]);
	for (uint32_t i = 0; i < load->dictionary.fold_count; i++)
		count_folded(trace, &load->dictionary.folds[i]);
	for (uint32_t i = 0; i < load->dictionary.sum_count; i++)
		count_sum(load, &load->dictionary.sums[i]);
	count_dropped(trace);
	for (uint32_t i = 0; i < load->dictionary.process_count; i++)
		if (trace_process_end_is_known(&load->dictionary.processes[i]))
			later(&view->duration_ns, load->dictionary.processes[i].end_ns);
	for (uint32_t i = 0; i < load->dictionary.gap_count; i++)
		later(&view->duration_ns, load->dictionary.gaps[i].to_ns);
	for (uint32_t i = 0; i < load->dictionary.early_end_count; i++)
		later(&view->duration_ns, load->dictionary.early_ends[i].time_ns);
#define X(one, many) \
	view->many = load->dictionary.many; \
	view->one##_count = load->dictionary.one##_count;
	DICTIONARY_TABLES(X)
#undef X
	view->frames = load->dictionary.tree.frames;
	view->frame_count = load->dictionary.tree.frame_count;
	view->nodes = load->dictionary.tree.nodes;
	view->node_count = load->dictionary.tree.node_count;
	view->stack_ends = load->dictionary.tree.ends;
	view->host = load->dictionary.host;
	view->clock = load->clock_name;
	view->start_realtime_ns = load->segment_count ? load->segments[0].head.start_realtime_ns : 0;
	memcpy(view->id, load->trace_id, sizeof(view->id));
	view->is_complete = load->is_complete;
	view->cut_offset = load->cut_offset;
	view->cut_reason = load->cut_reason;
	view->size_bytes = load->size;
	view->contents = load->contents;
	view->unwritten_events = load->unwritten.events;
	view->statistics = load->dictionary.statistics;
}

/* How a file is opened. */
struct file_opening {
	bool keeps_ids, may_grow;
	const bool *is_cancelled;
};

static int open_file(struct trace **out, const char *path, const struct file_opening *how, struct diag *diag)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	if (!trace)
		return diag_fail(diag, ENOMEM, "no memory to open %s", path);
	trace->load.keeps_ids = how->keeps_ids;
	trace->load.is_cancelled = how->is_cancelled;
	int error = load_file(&trace->load, path, diag);
	if (error) {
		trace_close(trace);
		return error;
	}
	trace->load.is_cancelled = NULL;
	if (!how->may_grow)
		tree_settle(&trace->load.dictionary.tree);
	summarize(trace);
	*out = trace;
	return 0;
}

int trace_open(struct trace **out, const char *path, struct diag *diag)
{
	return open_file(out, path, &(struct file_opening){.may_grow = false}, diag);
}

int trace_open_unless(struct trace **out, const char *path, const bool *is_cancelled, struct diag *diag)
{
	return open_file(out, path, &(struct file_opening){.is_cancelled = is_cancelled}, diag);
}

int trace_open_as_written(struct trace **out, const char *path, struct diag *diag)
{
	return open_file(out, path, &(struct file_opening){.keeps_ids = true}, diag);
}

int trace_open_growing(struct trace **out, const char *path, struct diag *diag)
{
	return open_file(out, path, &(struct file_opening){.may_grow = true}, diag);
}

int trace_go_on(struct trace *trace, struct diag *diag)
{
	int error = load_go_on(&trace->load, diag);
	if (error)
		return error;
	trace->dictionary = (struct trace_dictionary){.event_count = 0};
	summarize(trace);
	return 0;
}

void trace_close(struct trace *trace)
{
	if (trace)
		load_fini(&trace->load);
	free(trace);
}

/* Whether `count` rows are there again; `is_same` compares two. */
static bool rows_continue(const void *rows, uint32_t count, const void *later, uint32_t later_count, size_t size,
			  bool (*is_same)(const void *, const void *))
{
	const char *row = rows, *later_row = later;
	bool do_continue = count <= later_count;
	for (uint32_t i = 0; i < count && do_continue; i++)
		do_continue = is_same(row + i * size, later_row + i * size);
	return do_continue;
}

#define SAME(member) (row->member == later->member)
#define IS_SAME(name, type, condition) \
	static bool name##_is_same(const void *a, const void *b) \
	{ \
		const struct type *row = a, *later = b; \
		return (condition); \
	}
IS_SAME(process, trace_process, SAME(pid) && SAME(exec_generation) && SAME(forked_from))
IS_SAME(thread, trace_thread, SAME(process) && SAME(tid))
IS_SAME(entry, trace_entry, SAME(image) && SAME(function))
IS_SAME(heap, trace_heap, SAME(process) && SAME(handle))
IS_SAME(node, trace_node, SAME(parent) && SAME(frame))
IS_SAME(gap, trace_gap,
	SAME(process) && SAME(from_ns) && SAME(to_ns) && !memcmp(row->count, later->count, sizeof(row->count)))
IS_SAME(block, load_block,
	SAME(offset) && SAME(count) && SAME(head.process) && SAME(head.thread) && SAME(payload_checksum))

bool trace_continues(const struct trace *trace, const struct trace *later)
{
	const struct load *load = &trace->load, *more = &later->load;
#define CONTINUES(from, to, rows, row) \
	rows_continue((from)->rows, (from)->row##_count, (to)->rows, (to)->row##_count, sizeof(*(from)->rows), \
		      row##_is_same)
	return !memcmp(load->trace_id, more->trace_id, sizeof(load->trace_id)) &&
	       CONTINUES(&trace->dictionary, &later->dictionary, processes, process) &&
	       CONTINUES(&trace->dictionary, &later->dictionary, threads, thread) &&
	       CONTINUES(&trace->dictionary, &later->dictionary, entries, entry) &&
	       CONTINUES(&trace->dictionary, &later->dictionary, heaps, heap) &&
	       CONTINUES(&trace->dictionary, &later->dictionary, gaps, gap) &&
	       CONTINUES(&trace->dictionary, &later->dictionary, nodes, node) && CONTINUES(load, more, blocks, block);
#undef CONTINUES
}

const struct trace_dictionary *trace_dictionary(const struct trace *trace)
{
	return &trace->dictionary;
}

uint32_t trace_block_count(const struct trace *trace)
{
	return trace->load.block_count;
}

void trace_block_head(const struct trace *trace, uint32_t i, struct trace_block *head)
{
	const struct load_block *block = &trace->load.blocks[i];
	const struct format_segment *segment = &trace->load.segments[block->segment].head;
	*head = (struct trace_block){.process = block->head.process,
				     .thread = block->head.thread,
				     .count = block->count,
				     .first_ns = load_ns(segment, block->head.first_ticks),
				     .last_ns = load_ns(segment, block->head.last_ticks)};
}

/* ---- events ---- */

struct trace_cursor {
	const struct trace *trace;
	struct columns_decoder *decoder;
	struct bytes payload;
	unsigned left_out; /* enum trace_skip_columns */
	/* What was read last. */
	struct columns columns;
	uint32_t block;
};

struct trace_cursor *trace_cursor_new(const struct trace *trace)
{
	struct trace_cursor *cursor = calloc(1, sizeof(*cursor));
	if (!cursor)
		return NULL;
	cursor->trace = trace;
	cursor->decoder = columns_decoder_new();
	if (!cursor->decoder) {
		free(cursor);
		return NULL;
	}
	return cursor;
}

void trace_cursor_leave_out(struct trace_cursor *cursor, unsigned columns)
{
	cursor->left_out = columns;
}

void trace_cursor_free(struct trace_cursor *cursor)
{
	if (!cursor)
		return;
	columns_decoder_free(cursor->decoder);
	bytes_fini(&cursor->payload);
	free(cursor);
}

/* Ticks as nanoseconds where nothing can overflow. */
static int64_t plain_ns(const struct format_segment *segment, uint64_t ticks)
{
	return (int64_t)((unsigned __int128)ticks * segment->mult >> segment->shift);
}

/* Whether all points of the block lie where its head says, and no more after the start than plain_ns() can take. */
static bool is_plain(const struct format_segment *segment, const struct load_block *block,
		     const struct columns *columns)
{
	uint64_t least = UINT64_MAX, most = 0, longest = 0, first_ticks = block->head.first_ticks,
		 last_ticks = block->head.last_ticks;
	bool is_backward = false;
	for (uint32_t i = 0; i < columns->count; i++) {
		uint64_t last = columns->time[i], duration = columns->duration[i];
		uint64_t first = columns->kind[i] == EVENT_REALLOC ? last - duration : last;
		is_backward |= first > last;
		least = first < least ? first : least;
		most = last > most ? last : most;
		longest = duration > longest ? duration : longest;
	}
	return !is_backward && least >= first_ticks && most <= last_ticks && first_ticks >= segment->start_ticks &&
	       last_ticks < INT64_MAX && load_ns(segment, last_ticks) < INT64_MAX / 2 &&
	       longest <= last_ticks - segment->start_ticks;
}

static void convert_plain(const struct format_segment *segment, const struct columns *columns)
{
	int64_t *time_to = (int64_t *)columns->time, *duration_to = (int64_t *)columns->duration;
	for (uint32_t i = 0; i < columns->count; i++) {
		uint64_t since = columns->time[i] - segment->start_ticks, duration = columns->duration[i];
		bool has_two = columns->kind[i] == EVENT_REALLOC;
		int64_t time_ns = plain_ns(segment, since),
			other_ns = plain_ns(segment, has_two ? since - duration : duration);
		time_to[i] = time_ns;
		/* The first point of a ReAlloc must be the same nanosecond wherever it is computed. */
		duration_to[i] = has_two ? time_ns - other_ns : other_ns;
	}
}

/* Ticks become nanoseconds where they are; false when a point lies outside of what the block's head says. */
static inline bool convert_times(struct trace_cursor *cursor, const struct load_block *block,
				 const struct columns *columns)
{
	int64_t *time_to = (int64_t *)columns->time, *duration_to = (int64_t *)columns->duration;
	const struct format_segment *segment = &cursor->trace->load.segments[block->segment].head;
	bool is_inside = true;
	if (is_plain(segment, block, columns)) {
		convert_plain(segment, columns);
		return true;
	}
	for (uint32_t i = 0; i < columns->count; i++) {
		uint64_t last = columns->time[i], duration = columns->duration[i];
		bool has_two = columns->kind[i] == EVENT_REALLOC;
		uint64_t first = has_two && duration <= last ? last - duration : last;
		is_inside &= first >= block->head.first_ticks && last <= block->head.last_ticks &&
			     (!has_two || duration <= last);
		time_to[i] = load_ns(segment, last);
		duration_to[i] = has_two ? (int64_t)((uint64_t)time_to[i] - (uint64_t)load_ns(segment, first))
					 : load_ns(segment, segment->start_ticks + duration);
	}
	return is_inside;
}

/* Return whether the block's head agrees with its events. */
static bool counts_agree(const struct load_block *block, const struct columns *columns)
{
	uint32_t kinds[EVENT_KIND_COUNT] = {0}, failed = 0, in_flight = 0, truncated = 0;
	for (uint32_t i = 0; i < columns->descriptor_count; i++) {
		const struct columns_descriptor *descriptor = &columns->descriptors[i];
		uint32_t uses = columns->uses[i];
		failed += descriptor->flags & EVENT_FAILED ? uses : 0;
		in_flight += (descriptor->flags & (EVENT_FAILED | EVENT_IN_FLIGHT)) == EVENT_IN_FLIGHT ? uses : 0;
		truncated += descriptor->flags & EVENT_TRUNCATED ? uses : 0;
		kinds[descriptor->kind] += descriptor->flags & (EVENT_FAILED | EVENT_IN_FLIGHT) ? 0 : uses;
	}
	return failed == block->head.failed && in_flight == block->head.in_flight &&
	       truncated == block->head.truncated && !memcmp(kinds, block->kind_count, sizeof(kinds));
}

static int read_payload(struct trace_cursor *cursor, const struct load_block *block, struct diag *diag)
{
	unsigned long long at = block->offset;
	cursor->payload.size = 0;
	if (!bytes_reserve(&cursor->payload, block->payload_bytes + 1))
		return diag_fail(diag, ENOMEM, "no memory for the events at offset %llu", at);
	if (!load_bytes(cursor->trace->load.fd, cursor->payload.data, block->payload_bytes,
			block->offset + sizeof(struct format_block) + block->head_bytes))
		return diag_fail(diag, EIO, "the events at offset %llu cannot be read", at);
	if (XXH3_64bits(cursor->payload.data, block->payload_bytes) != block->payload_checksum)
		return diag_fail(diag, EBADMSG, "the events at offset %llu are damaged: their checksum differs", at);
	return 0;
}

/* A lack of memory is no damage of the file. */
static int read_failed(const struct load_block *block, const char *what, struct diag *diag)
{
	unsigned long long at = block->offset;
	if (errno == ENOMEM)
		return diag_fail(diag, ENOMEM, "no memory for the events at offset %llu", at);
	return diag_fail(diag, EBADMSG, "the events at offset %llu are not valid: %s", at, what);
}

int trace_cursor_read(struct trace_cursor *cursor, uint32_t i, struct trace_block *block, struct diag *diag)
{
	const struct load_block *own = &cursor->trace->load.blocks[i];
	const struct load_segment *segment = &cursor->trace->load.segments[own->segment];
	struct columns_scope scope = {.node_count = own->head.node_count,
				      .entry_count = segment->entries.count,
				      .heap_count = segment->heaps.count,
				      .nodes = segment->nodes.ids,
				      .entries = segment->entries.ids,
				      .heaps = segment->heaps.ids};
	struct columns columns;
	int error = read_payload(cursor, own, diag);
	if (error)
		return error;
	errno = 0;
	const char *what = columns_decode(cursor->decoder, cursor->payload.data, own->payload_bytes, own->count, &scope,
					  cursor->left_out, &columns);
	if (!what && !counts_agree(own, &columns))
		what = "other counts than its head";
	if (!what && !(cursor->left_out & TRACE_WITHOUT_TIMES) && !convert_times(cursor, own, &columns))
		what = "a time outside of its bounds";
	if (what)
		return read_failed(own, what, diag);
	cursor->columns = columns;
	cursor->block = i;
	trace_block_head(cursor->trace, i, block);
#define X(column) block->column = columns.column;
	/* clang-format off */
	X(kind) X(flags) X(entry) X(heap) X(stack) X(address) X(previous) X(size)
	X(usable) X(argument) X(argument2) X(result)
	/* clang-format on */
#undef X
		block->time_ns = (const int64_t *)columns.time;
	block->duration_ns = (const int64_t *)columns.duration;
	block->contexts = columns.contexts;
	block->context_count = columns.context_count;
	return 0;
}

const struct thread_context *trace_block_context(const struct trace_block *block, uint32_t i)
{
	size_t behind;
	BISECT(behind, block->context_count, k, block->contexts[k].event <= i);
	const struct thread_context *context = behind ? &block->contexts[behind - 1].context : NULL;
	return context && !thread_context_is_none(context) ? context : NULL;
}

int trace_cursor_read_times(struct trace_cursor *cursor, struct diag *diag)
{
	const struct load_block *own = &cursor->trace->load.blocks[cursor->block];
	assert(cursor->left_out & TRACE_WITHOUT_TIMES && cursor->columns.time);
	errno = 0;
	const char *what = columns_decode_times(cursor->decoder);
	if (!what && !convert_times(cursor, own, &cursor->columns))
		what = "a time outside of its bounds";
	return what ? read_failed(own, what, diag) : 0;
}
