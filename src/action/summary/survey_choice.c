/* SPDX-License-Identifier: MIT */
#include "action/summary/survey_choice.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/losses.h"
#include "action/summary/survey_making.h"
#include "base/memory.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	GROWING_STACKS = 8192, /* those with the most outstanding blocks, then with the most blocks */
	GROWING_BLOCKS_LEAST = 8,
	ENDING = 32, /* the last part of a life that ended does not count */
	/* A longer end, up to a third, does not count if a tenth as many blocks begin in it, and most are freed. */
	ENDING_MOST = 3,
	ENDING_BIRTHS = 10,
	ROLE_BYTES = 64
};

/* The name of the thread, or of its program, with one '#' for each number. */
static uint32_t role_add(struct survey *survey, const struct trace_dictionary *dictionary, uint32_t thread)
{
	const struct trace_process *process = &dictionary->processes[dictionary->threads[thread].process];
	const char *name = dictionary->threads[thread].name;
	char role[ROLE_BYTES];
	size_t length = 0;
	name = name && *name ? name : process->image ? text_file_name(process->image) : "";
	for (; *name && length < sizeof(role) - 1; name++)
		if (!isdigit((unsigned char)*name))
			role[length++] = *name;
		else if (!length || role[length - 1] != '#')
			role[length++] = '#';
	role[length] = 0;
	uint32_t number = intern_text(&survey->roles, role);
	return number < SURVEY_ROLES_MAX ? number : SURVEY_ROLES_MAX;
}

void survey_roles_find(struct survey_making *making)
{
	const struct trace_dictionary *dictionary = making->source->table->dictionary;
	making->role_of = memory_resize(NULL, (size_t)dictionary->thread_count + 1, sizeof(*making->role_of));
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		making->role_of[i] = role_add(making->survey, dictionary, i);
}

/* A process that was attached to, or whose past is not kept, has begun before. */
static bool has_begun_here(const struct trace_dictionary *dictionary, const struct trace_process *process,
			   int64_t from_ns)
{
	bool is_attached = losses_has_option(dictionary, "attached") && process->parent == TRACE_NONE;
	return !is_attached && !dictionary->dropped_events && process->start_ns >= from_ns;
}

static struct growth_clock clock_of(const struct action_source *source, uint32_t number, int64_t from_ns)
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	const struct trace_process *process = &dictionary->processes[number];
	int64_t to_ns =
		process->end == TRACE_END_OPEN ? source->table->duration_ns : source->table->processes[number].end_ns;
	bool has_begin = has_begun_here(dictionary, process, from_ns);
	/* At its end a program may free what it has kept for all of its life. */
	if ((process->end == TRACE_END_EXIT || process->end == TRACE_END_UNKNOWN) && to_ns > process->start_ns)
		to_ns -= (to_ns - process->start_ns) / ENDING;
	return (struct growth_clock){process->start_ns > from_ns ? process->start_ns : from_ns,
				     to_ns < source->window->range.to_ns ? to_ns : source->window->range.to_ns,
				     has_begin, false};
}

/* Return the time behind which few blocks begin up to to_ns, where the process ends; to_ns: there is none. */
static int64_t quiet_end(const struct heap_table *table, int64_t from_ns, int64_t to_ns)
{
	const struct heap_groups *groups = &table->groups;
	const int64_t length_ns = to_ns - from_ns, least_ns = to_ns - length_ns / ENDING_MOST;
	int64_t quiet_ns = to_ns;
	uint64_t all = 0, behind = 0;
	for (uint32_t i = 0; i < groups->count; i++)
		all += groups->items[i].first_ns >= from_ns ? groups->items[i].row_count : 0;
	for (uint32_t i = groups->count; i-- && groups->items[i].last_ns > least_ns;) {
		double at_ns = (double)groups->items[i].last_ns;
		if ((double)behind * ENDING_BIRTHS * (double)length_ns < (double)all * ((double)to_ns - at_ns))
			quiet_ns = groups->items[i].last_ns;
		behind += groups->items[i].row_count;
	}
	return quiet_ns;
}

/* Return whether what the process has is freed from a time on, up to its end. */
static bool is_freed_from(const struct survey_making *making, const struct survey_slot *slot,
			  const struct growth_series *whole, int64_t time_ns)
{
	const struct heap_process *process = &making->source->table->processes[slot->process];
	int64_t level = 0, most = 0, middle = 0, middle_ns = time_ns + (process->end_ns - time_ns) / 2;
	for (int i = 0; i < GROWTH_PARTS; i++) {
		level += whole->bytes[i];
		most = level > most ? level : most;
		if (slot->clock.from_ns + (i + 1) * slot->part_ns <= middle_ns)
			middle = level;
	}
	return most > 0 && process->live_bytes < (uint64_t)most / 2 && middle < most - most / 20;
}

bool survey_endings_leave_out(struct survey_making *making, const struct survey_part *part)
{
	const struct heap_table *table = making->source->table;
	bool any = false;
	for (unsigned i = 0; i < making->slot_count; i++) {
		struct survey_slot *slot = &making->slots[i];
		const struct trace_process *process = &table->dictionary->processes[slot->process];
		int64_t end_ns = table->processes[slot->process].end_ns;
		bool is_to_end = process->end != TRACE_END_OPEN && making->source->window->range.to_ns >= end_ns;
		int64_t quiet_ns = is_to_end ? quiet_end(table, slot->clock.from_ns, end_ns) : INT64_MAX;
		if (quiet_ns >= slot->clock.to_ns || quiet_ns - slot->clock.from_ns < GROWTH_LEAST_NS ||
		    !is_freed_from(making, slot, &part->wholes[i], quiet_ns))
			continue;
		slot->clock.to_ns = quiet_ns;
		slot->clock.is_freed_behind = true;
		slot->part_ns = (quiet_ns - slot->clock.from_ns) / GROWTH_PARTS;
		any = true;
	}
	return any;
}

/* Keep the processes that held most at their end. */
static void slot_add(struct survey_making *making, const struct survey_slot *slot)
{
	const struct heap_process *processes = making->source->table->processes;
	unsigned at = making->slot_count;
	while (at > 0 && processes[making->slots[at - 1].process].live_bytes < processes[slot->process].live_bytes)
		at--;
	if (at == SURVEY_GROWING_PROCESSES)
		return;
	making->slot_count += making->slot_count < SURVEY_GROWING_PROCESSES;
	memmove(&making->slots[at + 1], &making->slots[at], (making->slot_count - 1 - at) * sizeof(*slot));
	making->slots[at] = *slot;
}

static void growth_explain(struct survey_making *making, int64_t longest_ns)
{
	struct text *why = &making->survey->growth_unknown;
	if (!making->slot_count)
		snprintf(why->data, sizeof(why->data), "10 s are needed, not %.15s", text_duration(longest_ns).data);
}

/* Choose the processes whose growth may be known. */
void survey_slots_find(struct survey_making *making)
{
	const struct heap_table *table = making->source->table;
	const struct trace_dictionary *dictionary = table->dictionary;
	int64_t from_ns = making->survey->chart_range.from_ns, longest_ns = 0;
	from_ns = dictionary->dropped_events && dictionary->dropped_until_ns > from_ns ? dictionary->dropped_until_ns
										       : from_ns;
	making->slot_of = memory_resize(NULL, (size_t)dictionary->process_count + 1, 1);
	memset(making->slot_of, SURVEY_NO_SLOT, dictionary->process_count);
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		struct survey_slot slot = {i, clock_of(making->source, i, from_ns), 0};
		int64_t length_ns = slot.clock.to_ns - slot.clock.from_ns;
		longest_ns = length_ns > longest_ns ? length_ns : longest_ns;
		slot.part_ns = length_ns / GROWTH_PARTS;
		if (length_ns >= GROWTH_LEAST_NS)
			slot_add(making, &slot);
	}
	for (unsigned i = 0; i < making->slot_count; i++)
		making->slot_of[making->slots[i].process] = (uint8_t)i;
	growth_explain(making, longest_ns);
}

struct survey_stack {
	uint32_t node;
	uint64_t outstanding_count, total_count;
};

static int candidate_compare(const void *a, const void *b)
{
	const struct survey_stack *left = a, *right = b;
	if (left->outstanding_count != right->outstanding_count)
		return left->outstanding_count > right->outstanding_count ? -1 : 1;
	if (left->total_count != right->total_count)
		return left->total_count > right->total_count ? -1 : 1;
	return left->node < right->node ? -1 : left->node > right->node;
}

/* Choose the stacks that may grow. Not only those of which blocks are left: some programs free all at their end. */
void survey_candidates_find(struct survey_making *making)
{
	const struct heap_window *window = making->source->window;
	uint32_t site_count = making->source->table->site_count;
	struct survey_stack *candidates = memory_zeroed((size_t)site_count + 1, sizeof(*candidates));
	struct map place_of = {0};
	size_t count = 0;
	bool added;
	making->candidate = memory_resize(NULL, (size_t)site_count + 1, sizeof(*making->candidate));
	memset(making->candidate, 0xff, site_count * sizeof(*making->candidate));
	for (uint32_t cell = 0; cell < window->cell_count && making->slot_count; cell++) {
		if (!window->numbers[cell].total_count)
			continue;
		uint32_t node = action_site_node(making->input, making->source, &window->cells[cell]);
		uint32_t *place = map_add(&place_of, node, &added);
		if (added) {
			*place = (uint32_t)count++;
			candidates[*place].node = node;
		}
		candidates[*place].outstanding_count += window->numbers[cell].outstanding_count;
		candidates[*place].total_count += window->numbers[cell].total_count;
		making->candidate[window->cells[cell].site] = node;
	}
	map_fini(&place_of);
	qsort(candidates, count, sizeof(*candidates), candidate_compare);
	for (size_t i = 0; i < count && i < GROWING_STACKS; i++)
		if (candidates[i].total_count >= GROWING_BLOCKS_LEAST)
			*map_add(&place_of, candidates[i].node, &added) = 1;
	for (uint32_t site = 0; site < site_count; site++)
		if (making->candidate[site] != HEAP_NONE && !map_find(&place_of, making->candidate[site]))
			making->candidate[site] = HEAP_NONE;
	map_fini(&place_of);
	free(candidates);
}
