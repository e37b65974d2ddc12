/* SPDX-License-Identifier: MIT */
#include "session/drain/drain_gaps.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/drain/drain_blocks.h"
#include "session/drain/drain_notes.h"
#include "session/drain/drain_state.h"
#include "session/drain/drain_threads.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/trace.h"

/* ---- what cannot be checked ---- */

/* Nothing confirms the counts of recorders. No thread has made more calls, or waited longer, than there were ticks
   since its image began. Counts up to that are accepted; larger ones are left out of all sums. */
static bool is_believable(const struct drain_region *region, uint64_t count)
{
	uint64_t now = ticks_now(region->shared);
	return now > region->earliest && count <= now - region->earliest;
}

/* As is_believable(), for all threads together: no more of them run at once than there are processors. */
static bool are_believable(const struct drain_region *region, uint64_t count)
{
	if (is_believable(region, count))
		return true;
	long processors = sysconf(_SC_NPROCESSORS_CONF); /* reads a file */
	return is_believable(region, count / (uint64_t)(processors > 0 ? processors : 1));
}

bool slot_is_believable(const struct drain_region *region, const struct region_slot *slot)
{
	return is_believable(region, LOAD(&slot->waits)) && is_believable(region, LOAD(&slot->wait_ticks)) &&
	       is_believable(region, LOAD(&slot->suppressed));
}

bool header_is_believable(const struct drain_region *region)
{
	const struct region_header *header = region->shared->header;
	return are_believable(region, LOAD(&header->sample_unwatched)) &&
	       are_believable(region, LOAD(&header->heaps_refused)) &&
	       are_believable(region, LOAD(&header->check_failures)) &&
	       are_believable(region, LOAD(&header->untraced_calls)) &&
	       are_believable(region, LOAD(&header->python_failures));
}

void lies_tell(struct drain_region *region)
{
	char text[200];
	for (uint32_t i = 0; i < region->slot_count && !region->is_lying; i++)
		region->is_lying = !slot_is_believable(region, region_slot(region->shared, i));
	if (!region->is_lying && header_is_believable(region))
		return;
	snprintf(text, sizeof(text),
		 "process %u and those that it forked: counts that cannot be true (losses, waits or calls without a "
		 "record) are left out",
		 region->pid);
	drain_add_note(region->drain, TRACE_OPTION_DAMAGED, text);
}

/* ---- gaps ---- */

/* Note in a slot that the trace has its calls after recording. Earlier losses found no room in the file and stay
   open. */
static void gap_settle_after(struct region_slot *slot, const struct trace_gap *row,
			     const uint8_t kinds[REGION_LOST_KINDS])
{
	for (int i = 0; i < REGION_LOST_KINDS; i++) {
		slot->taken_count[i] += row->count[kinds[i]];
		slot->taken_bytes[i] += row->bytes[kinds[i]];
	}
	slot->taken_stacks += row->stacks;
}

static void gap_read(const struct region_slot *slot, struct gap *gap, uint64_t *first_ticks)
{
	for (int i = 0; i < GAP_TRIES; i++) {
		uint32_t before = LOAD_ACQUIRE(&slot->gap_sequence);
		for (int kind = 0; kind < REGION_LOST_KINDS; kind++) {
			gap->count[kind] = LOAD_ACQUIRE(&slot->gap_count[kind]);
			gap->bytes[kind] = LOAD_ACQUIRE(&slot->gap_bytes[kind]);
		}
		gap->stacks = LOAD_ACQUIRE(&slot->gap_stacks);
		gap->last_ticks = LOAD_ACQUIRE(&slot->gap_last_ticks);
		*first_ticks = LOAD_ACQUIRE(&slot->gap_first_ticks);
		/* None of these is read after the number is read again. */
		if (!(before & 1) && before == LOAD(&slot->gap_sequence))
			return;
	}
	/* The writer died amid a change: the present values are the best there are. */
}

/* Return whether an earlier logger has put the gap into the trace and was killed before it could note that in the
   slot. */
static bool gap_is_recorded(const struct drain_region *region, const struct trace_gap *row)
{
	const struct drain_known *known = region->known;
	int64_t to_ns = known ? translate_ticks_ns(&known->clock, (uint64_t)row->to_ns) : 0;
	for (uint32_t i = 0; known && i < known->dictionary->gap_count; i++) {
		const struct trace_gap *told = &known->dictionary->gaps[i];
		if (told->thread == row->thread && told->to_ns == to_ns && told->stacks == row->stacks &&
		    !memcmp(told->count, row->count, sizeof(row->count)) &&
		    !memcmp(told->bytes, row->bytes, sizeof(row->bytes)))
			return true;
	}
	return false;
}

static bool gap_is_believable(const struct drain_region *region, const struct trace_gap *row, uint64_t lost)
{
	bool is_right = is_believable(region, lost) && is_believable(region, row->stacks);
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		is_right = is_right && is_believable(region, row->count[kind]);
	return is_right;
}

/* Put into the trace what the slot has lost since. */
void gap_take(struct drain_region *region, uint32_t index)
{
	assert(index < region->slot_count);
	static const uint8_t kinds[REGION_LOST_KINDS] = {
		[LOST_ALLOC] = EVENT_ALLOC, [LOST_REALLOC] = EVENT_REALLOC, [LOST_FREE] = EVENT_FREE};
	struct region_slot *slot = region_slot(region->shared, index);
	struct gap *seen = &region->gap[index], now = {0};
	uint64_t first_ticks, lost = 0;
	gap_read(slot, &now, &first_ticks);
	struct trace_gap row = {.stacks = now.stacks - seen->stacks};
	for (int i = 0; i < REGION_LOST_KINDS; i++) {
		row.count[kinds[i]] = now.count[i] - seen->count[i];
		row.bytes[kinds[i]] = now.bytes[i] - seen->bytes[i];
		lost += row.count[kinds[i]];
	}
	if (lost == 0 && row.stacks == 0)
		return;
	const struct owner *owner = slot_owner(region, index);
	if (!owner)
		return;
	if (!gap_is_believable(region, &row, lost)) {
		*seen = now;
		region->is_lying = true;
		return;
	}
	row.process = owner->process;
	row.thread = owner->id;
	row.from_ns = (int64_t)(first_ticks > seen->last_ticks ? first_ticks : seen->last_ticks);
	row.to_ns = (int64_t)now.last_ticks;
	/* Only what recorders write can be in the future or before the beginning; keep the trace's times sane. */
	int64_t earliest = (int64_t)region->earliest, latest = (int64_t)ticks_now(region->shared);
	row.from_ns = row.from_ns < earliest || row.from_ns > latest ? earliest : row.from_ns;
	row.to_ns = row.to_ns < row.from_ns || row.to_ns > latest ? latest : row.to_ns;
	if (region->is_after) {
		writer_count_after(region->drain->writer, row.process, lost, (uint64_t)row.from_ns);
		drain_count_missing(region, 0, lost);
		gap_settle_after(slot, &row, kinds);
	} else if (!gap_is_recorded(region, &row)) {
		writer_add_gap(region->drain->writer, &row);
		drain_count_missing(region, lost, 0);
	}
	*seen = now;
	seen->is_new = !region->is_after;
	region->has_new_gaps |= seen->is_new;
	/* The next gap begins anew. The owner may be writing it this moment; then that gap begins a little too
	   early. */
	STORE(&slot->gap_first_ticks, 0);
}

void gaps_take(struct drain_region *region)
{
	for (uint32_t i = 0; i < region->slot_count; i++)
		gap_take(region, i);
}

void drain_note_end(struct drain_region *region)
{
	if (!region->is_after)
		gaps_take(region);
	region->is_after = true;
}
