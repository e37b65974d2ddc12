/* SPDX-License-Identifier: MIT */
/*
 * From points to allocations. Points come in order of time (match/point_stream.h); each process has a table of its
 * blocks by address:
 *
 *     Begin  a new row of the table, current at its address
 *     End    the current row of the address is finished and the address forgotten
 *
 * The rest is about harder cases:
 *
 * Stamps.  Two threads' clocks can differ by a little. So, for one address, the sequence Begin A, End A, Begin B, End B
 *   may come as Begin A, Begin B, End A, ...: a block begins where another is live. The older one is then kept as
 *   `other` until the next point of the address decides. An End by another thread within STAMP_SLACK_NS was the older
 *   one's; anything else is a contradiction. In the same way an End of an address that is not live waits for
 *   STAMP_SLACK_NS for its Begin. Points of one thread are never reordered.
 *
 * Fork.  A child begins with its parent's live blocks, which must cost nothing. So the child's table starts empty, and
 *   the tables of processes that take part in a fork keep the addresses of dead blocks: `before` links the rows of one
 *   address, from the newest to the oldest. When a child frees a block that it never began, the chain of its parent
 *   (then of the parent's parent) is searched for the row that was current at the fork. The child's end of that row is
 *   kept in `copies`.
 *
 * Annotated heaps.  Their blocks may lie in others, also at the same address, so each such heap has a table of its own.
 *   The container of a block is searched for when the block begins (match/nest.h). When the container ends, the block
 *   ends with it, as if it had been destroyed.
 *
 * Earlier blocks.  Blocks from before an attach are found some time after it, by reading the heaps (heapwalk). Until
 *   then each end has the usable bytes of its block. So a found block is dropped if its address has had an event, and
 *   an end of an address without events is the end of an earlier block. But a call that was under way at the attach,
 *   whose end is no event, may have begun a block where another one ended since. A block found there is an earlier one
 *   if that end was over before the heaps were read.
 *
 * Ends of processes.  Everything live in a process ends with it, at that place of the sequence.
 *
 * Memory.  The newest rows are in a ring. Rows that fall out of it are packed (match/packing.h). Those that are still
 *   live are kept as survivors, and when the last one of a group has ended, their ends are packed, too
 *   (match/survivors.h).
 *
 * Speed.  Most blocks of memory begin and end in one event block. So an isolated event block, and a long enough run of
 *   points between those of other threads, gets a block match, whose rows never pass through here. The drawing is in
 *   match/match_points.c.
 *
 * Increments.  A growing trace is matched up to a time, and from there on by the next increment. The resulting table
 *   must be the same. So an increment leaves a run that continues behind its end, and may be matched as a whole, to the
 *   next one. No decision may depend on rows that come later. Where one does, the rows are checked when they come: an
 *   end, a fork or a loss before what was matched is refused. When a fork of a process becomes known, its points are
 *   matched again for its history (match/match_history.c).
 */
#include "match/match.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cancel.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/order.h"
#include "match/match_heaps.h"
#include "match/match_history.h"
#include "match/match_late_frees.h"
#include "match/match_points.h"
#include "match/match_rows.h"
#include "match/match_valid.h"
#include "match/matching.h"
#include "query/peak.h"
#include "table/table_valid.h"
#include "table/weight.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

enum { PROGRESS_POINTS = 1 << 18 };

/* ---- setting up ---- */

COMPARE_BY_TWO(lifecycle_event_compare, struct lifecycle_event, time_ns, process)

static bool gap_lost_frees(const struct trace_gap *gap)
{
	return gap->count[EVENT_FREE] || gap->count[EVENT_REALLOC] || gap->count[EVENT_DESTROY];
}

/* Return the rows with room for more; all bytes of new rows are `fill`. */
static void *rows_extend(void *rows, size_t known, size_t count, size_t size, int fill)
{
	assert(count >= known);
	char *larger = memory_resize(rows, count, size);
	memset(larger + known * size, fill, (count - known) * size);
	return larger;
}

/* Extend the arrays. The trace still has everything that it had at the last increment. */
static void matching_extend(struct matching *matching)
{
	struct heap_table *table = matching->table;
	const struct trace_dictionary *dictionary = table->dictionary;
	struct known_rows known = matching->known,
			  now = {dictionary->process_count, dictionary->thread_count, dictionary->node_count + 1,
				 dictionary->heap_count, dictionary->gap_count};
	assert(now.processes >= known.processes && now.threads >= known.threads && now.nodes >= known.nodes &&
	       now.heaps >= known.heaps);
#define EXTEND(array, what, fill) array = rows_extend(array, known.what, now.what, sizeof(*(array)), fill)
	EXTEND(table->processes, processes, 0);
	EXTEND(matching->processes, processes, 0);
	EXTEND(matching->last_alloc, threads, 0xff);
	EXTEND(matching->last_realloc_from, threads, 0xff);
	EXTEND(matching->last_realloc_heap, threads, 0xff);
	EXTEND(matching->site_notes, nodes, 0xff);
	EXTEND(matching->passed.positions, threads, 0);
	EXTEND(table->inside, heaps, 0xff);
#undef EXTEND
	for (uint32_t i = known.processes; i < now.processes; i++)
		matching->processes[i].reading_ns = matching->processes[i].last_conflict_ns = INT64_MIN;
	matching->known = now;
}

static void matching_read_gaps(struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	free(matching->gaps);
	matching->gaps = memory_zeroed(dictionary->gap_count, sizeof(*matching->gaps));
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		matching->processes[i].gap_count = 0;
	for (uint32_t i = 0; i < dictionary->gap_count; i++)
		if (gap_lost_frees(&dictionary->gaps[i]) && dictionary->gaps[i].process < dictionary->process_count)
			matching->processes[dictionary->gaps[i].process].gap_count++;
	const struct trace_gap **next = matching->gaps;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		matching->processes[i].gaps = next;
		next += matching->processes[i].gap_count;
		matching->processes[i].gap_count = 0;
		matching->table->processes[i].last_loss_ns = INT64_MIN;
	}
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		if (!gap_lost_frees(gap) || gap->process >= dictionary->process_count)
			continue;
		struct matching_process *process = &matching->processes[gap->process];
		process->gaps[process->gap_count++] = gap;
		if (gap->to_ns > matching->table->processes[gap->process].last_loss_ns)
			matching->table->processes[gap->process].last_loss_ns = gap->to_ns;
	}
}

/* Return whether gaps that are new could have changed nothing: a conflict that was settled would be a loss if it had
   been known. */
static bool gaps_are_consistent(const struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	for (uint32_t i = matching->known.gaps; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		if (gap_lost_frees(gap) && gap->process < matching->known.processes &&
		    gap->from_ns <= matching->processes[gap->process].last_conflict_ns)
			return false;
	}
	return true;
}

/* Read the ends of processes. A process cannot end before its last point: the file's ends are corrected by its
   blocks. */
static void ends_read(const struct matching *matching, int64_t *ends_ns)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		ends_ns[i] =
			dictionary->processes[i].end == TRACE_END_OPEN ? INT64_MIN : dictionary->processes[i].end_ns;
	/* The calls of the process after recording had ended are unknown: its blocks are seen up to that time. */
	for (uint32_t i = 0; i < dictionary->early_end_count; i++) {
		const struct trace_early_end *end = &dictionary->early_ends[i];
		if (end->process < dictionary->process_count && end->time_ns < ends_ns[end->process])
			ends_ns[end->process] = end->time_ns;
	}
	for (uint32_t i = 0; i < trace_block_count(matching->table->trace); i++) {
		struct trace_block head;
		trace_block_head(matching->table->trace, i, &head);
		int64_t *end_ns = &ends_ns[dictionary->threads[head.thread].process];
		if (head.last_ns > *end_ns)
			*end_ns = head.last_ns;
	}
}

/* Return whether the known ends of processes are unchanged, and new ones come after everything that was matched. */
static bool ends_are_consistent(const struct matching *matching, const int64_t *ends_ns)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		bool is_open = dictionary->processes[i].end == TRACE_END_OPEN;
		bool is_as_known = matching->processes[i].is_end_known != is_open &&
				   (is_open || ends_ns[i] == matching->table->processes[i].end_ns);
		bool is_to_come =
			!matching->processes[i].has_ended && (is_open || ends_ns[i] > matching->passed.time_ns);
		if (!is_as_known && !is_to_come)
			return false;
	}
	return true;
}

static int matching_read_ends(struct matching *matching, struct diag *diag)
{
	uint32_t count = matching->table->dictionary->process_count;
	int64_t *ends_ns = memory_zeroed(count, sizeof(*ends_ns));
	ends_read(matching, ends_ns);
	bool are_consistent = matching->passed.time_ns == INT64_MIN || ends_are_consistent(matching, ends_ns);
	for (uint32_t i = 0; i < count; i++) {
		matching->table->processes[i].end_ns = ends_ns[i];
		matching->processes[i].is_end_known = matching->table->dictionary->processes[i].end != TRACE_END_OPEN;
	}
	free(ends_ns);
	return are_consistent ? 0
			      : diag_fail(diag, ESTALE,
					  "the end of a process is earlier than events that were matched already");
}

static void history_want(struct matching_process *process)
{
	process->lacks_history |= !process->keeps_history && process->has_points;
	process->keeps_history = true;
}

static void matching_read_processes(struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	uint32_t count = dictionary->process_count;
	for (uint32_t i = 0; i < dictionary->thread_count; i++) {
		/* Where ids are kept (trace_open_as_written()), threads of which only sums are left have empty rows. */
		uint32_t process = dictionary->threads[i].process;
		if (process < count)
			matching->processes[process].has_points |=
				matching->passed.positions[i].block || matching->passed.positions[i].place;
	}
	free(matching->starts);
	free(matching->ends);
	matching->starts = memory_zeroed((size_t)count + 1, sizeof(*matching->starts));
	matching->ends = memory_zeroed((size_t)count + 1, sizeof(*matching->ends));
	matching->start_count = matching->end_count = matching->next_start = matching->next_end = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		bool is_forked = process->forked_from < count && process->forked_from != i;
		matching->processes[i].forked_from = is_forked ? process->forked_from : TRACE_NONE;
		if (is_forked) {
			history_want(&matching->processes[i]);
			history_want(&matching->processes[process->forked_from]);
		}
		if (is_forked && !matching->processes[i].has_started)
			matching->starts[matching->start_count++] = (struct lifecycle_event){process->start_ns, i};
		if (process->end != TRACE_END_OPEN && !matching->processes[i].has_ended)
			matching->ends[matching->end_count++] =
				(struct lifecycle_event){matching->table->processes[i].end_ns, i};
	}
	qsort(matching->starts, matching->start_count, sizeof(*matching->starts), lifecycle_event_compare);
	qsort(matching->ends, matching->end_count, sizeof(*matching->ends), lifecycle_event_compare);
	matching->next_lifecycle_ns = INT64_MIN;
}

/* Reserve address space for the most rows that can come, if something was forked; the kernel gives memory as they
   come. */
static bool history_reserve(struct matching *matching)
{
	size_t count = matching->most + 1, size = sizeof(*matching->history);
	if ((!matching->start_count && !matching->history) || count <= matching->history_count)
		return true;
	void *memory = matching->history
			       ? mremap(matching->history, matching->history_count * size, count * size, MREMAP_MAYMOVE)
			       : mmap(NULL, count * size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	matching->history = memory;
	matching->history_count = count;
	return true;
}

struct matching *matching_new(const struct heap_build *how)
{
	struct matching *matching = memory_zeroed(1, sizeof(*matching));
	struct heap_table *table = matching->table = memory_zeroed(1, sizeof(*table));
	matching->how = *how;
	if (how->has_chart)
		matching->level.chart = memory_zeroed(1, sizeof(*matching->level.chart));
	groups_begin(&table->groups, how->fd, how->reserved_bytes);
	if (how->is_small)
		table->groups.chunk_bytes = GROUPS_CHUNK_BYTES_SMALL;
	table->is_damaged = memory_zeroed(1, sizeof(*table->is_damaged));
	matching->passed.time_ns = INT64_MIN;
	matching->ring = memory_resize(NULL, RING_ROWS, sizeof(*matching->ring));
	matching->ring_details = memory_resize(NULL, RING_ROWS, sizeof(*matching->ring_details));
	struct heap_groups *kept = how->without_rows ? NULL : &table->groups;
	matching->survivors = survivors_new(kept);
	matching->packing = packing_new(kept);
	return matching;
}

/* ---- increments ---- */

static int matching_reserve(struct matching *matching, struct diag *diag)
{
	const struct heap_table *table = matching->table;
	const struct trace_dictionary *dictionary = table->dictionary;
	/* A realloc of an earlier block that was not found in time begins two rows. */
	uint64_t most = dictionary->event_count + dictionary->kind_count[EVENT_REALLOC];
	if (most >= COPY_BIT - 1)
		return diag_fail(diag, EFBIG, "cannot match more than %u events", COPY_BIT - 2);
	matching->most = (size_t)(most - dictionary->folded_count);
	survivors_reserve(matching->survivors, matching->most);
	if (!history_reserve(matching))
		return diag_fail(diag, ENOMEM, "cannot match %zu events: no address space for them", matching->most);
	return 0;
}

/* Read the facts that hold for all points from the first one on. */
static int matching_read_kind(struct matching *matching, struct diag *diag)
{
	struct heap_table *table = matching->table;
	uint64_t sample_bytes = heap_sample_bytes(table->dictionary);
	bool is_folded = table->dictionary->fold_count > 0,
	     is_as_known = sample_bytes == table->sample_bytes && is_folded == matching->is_folded;
	if (matching->passed.time_ns != INT64_MIN && !is_as_known)
		return diag_fail(diag, ESTALE, "it became a sample, or a part of it sums, after events were matched");
	table->sample_bytes = sample_bytes;
	matching->is_folded = is_folded;
	return 0;
}

int matching_read(struct matching *matching, const struct trace *trace, struct diag *diag)
{
	struct heap_table *table = matching->table;
	table->trace = trace;
	table->dictionary = trace_dictionary(trace);
	table->duration_ns = matching->how.until_ns ? *matching->how.until_ns : table->dictionary->duration_ns;
	int error = matching_read_kind(matching, diag);
	if (error)
		return error;
	if (!gaps_are_consistent(matching))
		return diag_fail(diag, ESTALE, "a loss is earlier than events that were matched already");
	matching_extend(matching);
	matching_read_gaps(matching);
	error = matching_read_ends(matching, diag);
	if (error)
		return error;
	matching_read_processes(matching);
	if (matching->start_count && matching->starts[0].time_ns <= matching->passed.time_ns)
		return diag_fail(diag, ESTALE, "a fork is earlier than events that were matched already");
	matching_read_heaps(matching);
	error = matching_reserve(matching, diag);
	return error ? error : matching_history_make(matching, trace, diag);
}

static int matching_all(struct matching *matching, struct diag *diag)
{
	const struct heap_build *how = &matching->how;
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	struct heap_run run;
	int status;
	while ((status = heap_stream_run(matching->stream, &run, diag)) > 0 &&
	       run.places[0].time_ns <= matching->until_ns && !matching_waits(matching, &run)) {
		if (cancel_is_asked(how->is_cancelled))
			return diag_fail(diag, ECANCELED, "cancelled");
		matching->done += matching_run(matching, run);
		if (!how->progress || matching->done - matching->reported < PROGRESS_POINTS)
			continue;
		how->progress(how->cookie, matching->done, dictionary->event_count - dictionary->folded_count);
		CHECK_VALID(matching_is_valid(matching));
		matching->reported = matching->done;
	}
	return status < 0 ? status : 0;
}

static int matching_go_on(struct matching *matching, const struct trace *trace, int64_t until_ns, bool is_part,
			  struct diag *diag)
{
	assert(!matching->stream);
	int error = matching_read(matching, trace, diag);
	if (error)
		return error;
	/* A sample can only be matched with the whole table. */
	matching->is_by_points = matching->table->sample_bytes || matching->how.until_ns || matching->how.is_small ||
				 BLOCK_MATCH_MIN == UINT32_MAX;
	matching->until_ns = is_part ? heap_stream_cut(trace, &matching->passed, until_ns) : until_ns;
	matching->stream = heap_stream_go_on(trace, matching->is_by_points ? HEAP_ORDER_POINTS : HEAP_ORDER_MATCHED,
					     &matching->passed, matching->until_ns);
	packing_follow(matching->packing, matching->stream);
	error = matching_all(matching, diag);
	packing_follow(matching->packing, NULL);
	heap_stream_free(matching->stream);
	matching->stream = NULL;
	CHECK_VALID(error || matching_is_valid(matching));
	return error;
}

int matching_increment(struct matching *matching, const struct trace *trace, int64_t until_ns, struct diag *diag)
{
	assert(!matching->how.until_ns);
	return matching_go_on(matching, trace, until_ns, true, diag);
}

int64_t matching_passed_ns(const struct matching *matching)
{
	return matching->passed.time_ns;
}

/* ---- sums ---- */

bool matching_sums_take(const struct matching *matching, struct matching_sums *sums)
{
	const struct heap_table *table = matching->table;
	struct level level = matching->level;
	bool is_peak_known = !level.has_gone_back && !level.has_earlier;
	*sums = (struct matching_sums){.site_count = 0};
	if (matching->is_folded)
		return false;
	/* More may come in this nanosecond: only a copy has it. */
	struct live_chart chart = level.chart ? *level.chart : (struct live_chart){.count = 0};
	level.chart = level.chart ? &chart : NULL;
	level_settle(&level);
	if (level.chart)
		live_chart_note(&chart, matching->passed.time_ns, level.live_bytes);
	*sums = (struct matching_sums){
		.sites = memory_resize(NULL, table->site_count, sizeof(*sums->sites)),
		.numbers = memory_resize(NULL, table->site_count, sizeof(*sums->numbers)),
		.site_count = table->site_count,
		.sample_bytes = table->sample_bytes,
		.point_count = matching->done,
		.until_ns = matching->passed.time_ns > 0 ? matching->passed.time_ns : 0,
		.live_bytes = level.live_bytes,
		.peak = is_peak_known ? level.peak : (struct heap_peak){0, 0},
		.is_peak_known = is_peak_known,
		.chart = chart,
	};
	if (!table->site_count)
		return true;
	memcpy(sums->sites, table->sites, table->site_count * sizeof(*sums->sites));
	memcpy(sums->numbers, table->sums.numbers, table->site_count * sizeof(*sums->numbers));
	return true;
}

bool matching_watch_settle(struct matching *matching)
{
	if (matching->is_annotation || matching->is_folded)
		return false;
	while (matching->written < matching->table->count)
		matching_ring_write(matching);
	return true;
}

void matching_sums_fini(struct matching_sums *sums)
{
	free(sums->sites);
	free(sums->numbers);
	*sums = (struct matching_sums){.site_count = 0};
}

/* ---- finishing ---- */

/* Find the peak. Normally it is known; contradictions change earlier times. */
static void matching_find_peak(struct matching *matching)
{
	struct heap_table *table = matching->table;
	struct heap_filter all;
	level_settle(&matching->level);
	table->peak = matching->level.peak;
	if (matching->how.is_small || (!matching->level.has_gone_back && !matching->level.has_earlier))
		return;
	heap_filter_init_for(&all, table);
	all.is_cancelled = matching->how.is_cancelled;
	heap_peaks(&table->peak, 1, table, &all, (struct heap_range){0, table->duration_ns});
	heap_filter_fini(&all);
}

/* Drop the sums if beginnings and ends alone do not give them. */
static void matching_finish_sums(struct matching *matching)
{
	struct heap_table *table = matching->table;
	bool has_losses = false, has_level = !matching->level.has_gone_back && !matching->level.has_earlier;
	for (uint32_t i = 0; i < table->dictionary->process_count; i++)
		has_losses |= table->processes[i].last_loss_ns != INT64_MIN;
	heap_uses_sort(table->sums.uses, table->sums.use_count);
	if (!has_losses && has_level && !table->sample_bytes && !matching->is_annotation)
		return;
	free(table->sums.numbers);
	free(table->sums.uses);
	table->sums = (struct heap_sums){.numbers = NULL};
}

static void matching_finish(struct matching *matching)
{
	struct heap_table *table = matching->table;
	matching_advance(matching, matching->until_ns);
	matching_pending_expire(matching, INT64_MAX);
	matching_late_frees_settle(matching);
	for (uint32_t i = 0; i < table->dictionary->process_count; i++)
		if (table->dictionary->processes[i].end == TRACE_END_OPEN)
			matching_process_end(matching, i, true);
	/* Processes that end later. */
	for (; matching->next_end < matching->end_count; matching->next_end++)
		matching_process_end(matching, matching->ends[matching->next_end].process, true);
	for (uint32_t i = 0; i < table->dictionary->sum_count; i++)
		matching_site(matching, heap_sum_site(&table->dictionary->sums[i]));
	if (table->nested_count)
		matching_site(matching, (struct heap_site){0, HEAP_OVERHEAD});
	while (matching->written < table->count)
		matching_ring_write(matching);
	packing_finish(matching->packing);
	assert(matching->written == table->count &&
	       table->groups.count == ((uint64_t)table->count + PACK_ROWS - 1) / PACK_ROWS);
	survivors_finish(matching->survivors, table->duration_ns);
	groups_finish(&table->groups);
	table->point_count = (uint32_t)matching->done;
	heap_faults_sort(table->faults, table->fault_count);
	matching_find_peak(matching);
	matching_finish_sums(matching);
	heap_table_find_sum_sites(table);
	for (uint32_t i = 0; i < table->dictionary->fold_count; i++) {
		table->unknown_frees += table->dictionary->folds[i].unknown_frees;
		table->order_conflicts += table->dictionary->folds[i].order_conflicts;
	}
}

void matching_free(struct matching *matching)
{
	if (!matching)
		return;
	packing_free(matching->packing);
	for (uint32_t i = 0; i < matching->known.processes; i++) {
		live_fini(&matching->processes[i].live);
		live_fini(&matching->processes[i].heapless);
		nest_fini(&matching->processes[i].nest);
		free(matching->processes[i].plain_notes);
		map_fini(&matching->processes[i].measured);
		free(matching->processes[i].measured_ns);
	}
	survivors_free(matching->survivors);
	matching_heaps_fini(matching);
	map_fini(&matching->moved);
	if (matching->history)
		munmap(matching->history, matching->history_count * sizeof(*matching->history));
	free(matching->ring);
	free(matching->ring_details);
	map_fini(&matching->site_ids);
	map_fini(&matching->seen);
	free(matching->last_user);
	free(matching->processes);
	free(matching->passed.positions);
	free(matching->last_alloc);
	free(matching->last_realloc_from);
	free(matching->last_realloc_heap);
	free(matching->site_notes);
	free(matching->copies);
	free(matching->pending);
	free(matching->late_frees);
	free(matching->starts);
	free(matching->ends);
	free(matching->gaps);
	free(matching->level.chart);
	heap_table_free(matching->table);
	free(matching);
}

int matching_end(struct matching *matching, const struct trace *trace, struct heap_table **out, struct diag *diag)
{
	assert(matching->table);
	int error = matching_go_on(matching, trace, matching->how.until_ns ? *matching->how.until_ns : INT64_MAX, false,
				   diag);
	if (error)
		return error;
	matching_finish(matching);
	if (cancel_is_asked(matching->how.is_cancelled))
		return diag_fail(diag, ECANCELED, "cancelled");
	CHECK_VALID(heap_table_is_valid(matching->table));
	*out = matching->table;
	matching->table = NULL;
	return 0;
}

int heap_table_build(struct heap_table **out, const struct trace *trace, const struct heap_build *how,
		     struct diag *diag)
{
	const struct heap_build nameless = {.fd = -1};
	struct matching *matching = matching_new(how ? how : &nameless);
	int error = matching_end(matching, trace, out, diag);
	matching_free(matching);
	return error;
}
