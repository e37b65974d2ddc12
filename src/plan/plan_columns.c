/* SPDX-License-Identifier: MIT */
#include "plan/plan_columns.h"

#include <string.h>

#include "base/wide_registers.h"
#include "table/weight.h"

/* From a byte for each row of a batch. */
static void absent_set(struct plan_vector *to, const uint8_t *absent)
{
	for (unsigned word = 0; word < PLAN_WORDS; word++)
		to->absent[word] = plan_bits_of_bytes(absent + word * 64);
}

/* Zeros are absent. */
WIDE_REGISTERS static void absent_zeros(struct plan_vector *to, const uint64_t *values, uint32_t count)
{
	uint8_t absent[PLAN_BATCH] = {0};
	for (uint32_t i = 0; i < count; i++)
		absent[i] = !values[i];
	absent_set(to, absent);
}

/* ---- allocations ---- */

static const uint64_t *packed(const struct plan_batch *batch, enum pack_column column)
{
	return batch->rows->columns.numbers[column];
}

static unsigned flags_of(const struct plan_batch *batch, uint32_t i)
{
	return (unsigned)(packed(batch, PACK_STATE)[i] >> PACK_FLAGS_SHIFT);
}

static unsigned end_of(const struct plan_batch *batch, uint32_t i)
{
	return (unsigned)(packed(batch, PACK_STATE)[i] & PACK_END_MASK);
}

static const struct trace_thread *thread_of(const struct plan_batch *batch, uint32_t i)
{
	return &batch->target->table->dictionary->threads[packed(batch, PACK_THREAD)[i]];
}

static void absent_if_earlier(const struct plan_batch *batch, struct plan_vector *to)
{
	const uint64_t *states = packed(batch, PACK_STATE);
	uint8_t absent[PLAN_BATCH] = {0};
	for (uint32_t i = 0; i < batch->count; i++)
		absent[i] = states[i] >> PACK_FLAGS_SHIFT & HEAP_EARLIER ? 1 : 0;
	absent_set(to, absent);
}

/* A column: each row's value, and whether it is absent, from the batch and the row's number i. */
#define ALLOCATION_COLUMN(name, value_, is_absent_) \
	static void allocation_##name(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room) \
	{ \
		uint8_t absent[PLAN_BATCH] = {0}; \
		to->values = room; \
		for (uint32_t i = 0; i < batch->count; i++) { \
			bool is_absent = (is_absent_); \
			room[i] = is_absent ? 0 : (uint64_t)(value_); \
			absent[i] = is_absent; \
		} \
		absent_set(to, absent); \
	}
#define DETAILS batch->rows->details[i]
#define TABLE batch->target->table
#define DICTIONARY batch->target->table->dictionary
#define HEAP_PLACE packed(batch, PACK_HEAP)[i]
#define END_SITE packed(batch, PACK_END_SITE)[i]

static void allocation_SIZE(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room)
{
	(void)room;
	to->values = packed(batch, PACK_SIZE);
}

static void allocation_SITE(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room)
{
	(void)room;
	to->values = packed(batch, PACK_SITE);
}

static void allocation_BIRTH(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room)
{
	(void)room;
	to->values = packed(batch, PACK_BIRTH);
	absent_if_earlier(batch, to);
}

static void allocation_END(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room)
{
	(void)room;
	const uint64_t *states = packed(batch, PACK_STATE);
	uint8_t absent[PLAN_BATCH] = {0};
	to->values = packed(batch, PACK_END);
	for (uint32_t i = 0; i < batch->count; i++)
		absent[i] = (states[i] & PACK_END_MASK) == HEAP_END_OPEN;
	absent_set(to, absent);
}

static void allocation_THREAD(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room)
{
	(void)room;
	to->values = packed(batch, PACK_THREAD);
	absent_if_earlier(batch, to);
}

/* Sites are below the table's count (unpack_rows()). */
static void allocation_STACK(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room)
{
	const struct heap_site *sites = batch->target->table->sites;
	const uint64_t *site = packed(batch, PACK_SITE);
	to->values = room;
	for (uint32_t i = 0; i < batch->count; i++)
		room[i] = sites[site[i]].stack;
	absent_zeros(to, room, batch->count);
}

/* The heaviest two columns of a sample: one row at a time. */
static struct heap_weight weight_of(const struct plan_batch *batch, uint32_t i)
{
	const struct heap_allocation row = pack_row(&batch->rows->columns, i);
	return heap_weigh(TABLE, &row);
}

static int64_t lifetime_of(const struct plan_batch *batch, uint32_t i)
{
	const struct heap_allocation row = pack_row(&batch->rows->columns, i);
	return heap_lifetime_ns(&row);
}

static uint32_t stack_of(const struct plan_batch *batch, uint64_t site)
{
	return site < TABLE->site_count ? TABLE->sites[site].stack : 0;
}

static uint32_t function_of(const struct plan_batch *batch, uint64_t site)
{
	return site < TABLE->site_count ? TABLE->sites[site].entry : HEAP_NONE;
}

/* clang-format off */
ALLOCATION_COLUMN(ID, batch->first_id + i, false)
ALLOCATION_COLUMN(PROCESS, thread_of(batch, i)->process, false)
ALLOCATION_COLUMN(PID, DICTIONARY->processes[thread_of(batch, i)->process].pid,
		  !DICTIONARY->processes[thread_of(batch, i)->process].pid)
ALLOCATION_COLUMN(TID, thread_of(batch, i)->tid, flags_of(batch, i) & HEAP_EARLIER)
ALLOCATION_COLUMN(HEAP, DICTIONARY->heaps[HEAP_PLACE - 1].handle, !HEAP_PLACE || HEAP_PLACE > DICTIONARY->heap_count)
ALLOCATION_COLUMN(HEAP_ID, HEAP_PLACE - 1, !HEAP_PLACE || HEAP_PLACE > DICTIONARY->heap_count)
ALLOCATION_COLUMN(ADDRESS, DETAILS.address, false)
ALLOCATION_COLUMN(USABLE, packed(batch, PACK_SIZE)[i] + DETAILS.slack_bytes, DETAILS.slack_bytes == HEAP_SLACK_UNKNOWN)
ALLOCATION_COLUMN(FUNCTION, function_of(batch, packed(batch, PACK_SITE)[i]),
		  function_of(batch, packed(batch, PACK_SITE)[i]) >= HEAP_OVERHEAD)
ALLOCATION_COLUMN(END_KIND, end_of(batch, i), false)
ALLOCATION_COLUMN(FLAGS, flags_of(batch, i), false)
ALLOCATION_COLUMN(LIFETIME, lifetime_of(batch, i), flags_of(batch, i) & HEAP_EARLIER)
ALLOCATION_COLUMN(FREE_SITE, END_SITE - 1, !END_SITE)
ALLOCATION_COLUMN(FREE_STACK, stack_of(batch, END_SITE - 1), !END_SITE || !stack_of(batch, END_SITE - 1))
ALLOCATION_COLUMN(FREE_FUNCTION, function_of(batch, END_SITE - 1),
		  !END_SITE || function_of(batch, END_SITE - 1) >= HEAP_OVERHEAD)
ALLOCATION_COLUMN(FREE_THREAD, DETAILS.end_thread, DETAILS.end_thread == HEAP_NONE)
ALLOCATION_COLUMN(FREE_TID, DICTIONARY->threads[DETAILS.end_thread].tid, DETAILS.end_thread == HEAP_NONE)
ALLOCATION_COLUMN(PREVIOUS, DETAILS.previous, DETAILS.previous == HEAP_NONE)
ALLOCATION_COLUMN(WEIGHT_COUNT, weight_of(batch, i).count, false)
ALLOCATION_COLUMN(WEIGHT_BYTES, weight_of(batch, i).bytes, false)
/* clang-format on */

/* ---- events ---- */

#define EVENT_COLUMN(name, value_, is_absent_) \
	static void event_##name(const struct plan_batch *batch, struct plan_vector *to, uint64_t *room) \
	{ \
		const struct trace_block *block = batch->block; \
		(void)block; \
		uint8_t absent[PLAN_BATCH] = {0}; \
		to->values = room; \
		for (uint32_t i = 0; i < batch->count; i++) { \
			uint32_t row = plan_batch_row(batch, i); \
			(void)row; \
			bool is_absent = (is_absent_); \
			room[i] = is_absent ? 0 : (uint64_t)(value_); \
			absent[i] = is_absent; \
		} \
		absent_set(to, absent); \
	}

static const struct trace_thread *event_thread_of(const struct plan_batch *batch)
{
	return &trace_dictionary(batch->target->trace)->threads[batch->block->thread];
}

static uint32_t event_pid_of(const struct plan_batch *batch)
{
	return trace_dictionary(batch->target->trace)->processes[event_thread_of(batch)->process].pid;
}

#define EVENT_DICTIONARY trace_dictionary(batch->target->trace)

/* clang-format off */
EVENT_COLUMN(ID, batch->first_id + i, false)
EVENT_COLUMN(PROCESS, event_thread_of(batch)->process, false)
EVENT_COLUMN(PID, event_pid_of(batch), !event_pid_of(batch))
EVENT_COLUMN(THREAD, block->thread, event_thread_of(batch)->tid == TRACE_TID_NONE)
EVENT_COLUMN(TID, event_thread_of(batch)->tid, event_thread_of(batch)->tid == TRACE_TID_NONE)
EVENT_COLUMN(HEAP, EVENT_DICTIONARY->heaps[block->heap[row]].handle, block->heap[row] >= EVENT_DICTIONARY->heap_count)
EVENT_COLUMN(HEAP_ID, block->heap[row], block->heap[row] >= EVENT_DICTIONARY->heap_count)
EVENT_COLUMN(ADDRESS, block->address[row], !block->address[row])
EVENT_COLUMN(SIZE, block->size[row], block->kind[row] == EVENT_FREE && !block->size[row])
EVENT_COLUMN(USABLE, block->usable[row], !block->usable[row])
EVENT_COLUMN(STACK, block->stack[row], block->flags[row] & EVENT_NO_STACK || !block->stack[row])
EVENT_COLUMN(FUNCTION, block->entry[row],
	     block->kind[row] == EVENT_EARLIER || block->entry[row] >= EVENT_DICTIONARY->entry_count)
EVENT_COLUMN(FLAGS, block->flags[row], false)
EVENT_COLUMN(EVENT_TIME, block->time_ns[row], false)
EVENT_COLUMN(DURATION, block->duration_ns[row], block->flags[row] & EVENT_NO_DURATION)
EVENT_COLUMN(ACTION, block->kind[row], false)
EVENT_COLUMN(PREVIOUS_ADDRESS, block->previous[row], !block->previous[row])
EVENT_COLUMN(ARGUMENT, block->argument[row], false)
EVENT_COLUMN(ARGUMENT_2, block->argument2[row], false)
EVENT_COLUMN(RESULT, block->flags[row] & EVENT_FAILED ? (uint32_t)block->result[row] : 0,
	     block->flags[row] & EVENT_IN_FLIGHT)
/* clang-format on */

/* ---- all of them ---- */

/* What a column needs of allocations. */
static const unsigned needs[PLAN_COLUMN_COUNT] = {
	[PLAN_PROCESS] = PACK_THREADS,
	[PLAN_PID] = PACK_THREADS,
	[PLAN_THREAD] = PACK_THREADS | PACK_STATES,
	[PLAN_TID] = PACK_THREADS | PACK_STATES,
	[PLAN_HEAP] = PACK_HEAPS,
	[PLAN_HEAP_ID] = PACK_HEAPS,
	[PLAN_ADDRESS] = PACK_ADDRESSES,
	[PLAN_SIZE] = PACK_SIZES,
	[PLAN_USABLE] = PACK_SIZES | PACK_SLACKS,
	[PLAN_STACK] = PACK_SITES,
	[PLAN_FUNCTION] = PACK_SITES,
	[PLAN_BIRTH] = PACK_TIMES,
	[PLAN_END] = PACK_TIMES,
	[PLAN_END_KIND] = PACK_STATES,
	[PLAN_FLAGS] = PACK_STATES,
	[PLAN_LIFETIME] = PACK_TIMES,
	[PLAN_SITE] = PACK_SITES,
	[PLAN_FREE_SITE] = PACK_END_SITES,
	[PLAN_FREE_STACK] = PACK_END_SITES,
	[PLAN_FREE_FUNCTION] = PACK_END_SITES,
	[PLAN_FREE_THREAD] = PACK_END_THREADS,
	[PLAN_FREE_TID] = PACK_END_THREADS,
	[PLAN_PREVIOUS] = PACK_PREVIOUS_ONES,
	[PLAN_WEIGHT_COUNT] = PACK_TIMES | PACK_SIZES,
	[PLAN_WEIGHT_BYTES] = PACK_TIMES | PACK_SIZES,
};

#define OF_ALLOCATIONS_true(id) allocation_##id
#define OF_ALLOCATIONS_false(id) NULL
#define OF_EVENTS_true(id) event_##id
#define OF_EVENTS_false(id) NULL
#define X(id, name, type, of_allocations, of_events) \
	{(name), PLAN_##type, OF_ALLOCATIONS_##of_allocations(id), OF_EVENTS_##of_events(id)},
static const struct {
	const char *name;
	enum plan_type type;
	plan_column_fill *of_allocations, *of_events;
} columns[PLAN_COLUMN_COUNT] = {PLAN_COLUMNS(X)};
#undef X

plan_column_fill *plan_column_filler(enum plan_source source, enum plan_column column)
{
	return source == PLAN_ALLOCATIONS ? columns[column].of_allocations : columns[column].of_events;
}

unsigned plan_column_needs(enum plan_column column)
{
	return needs[column];
}

enum plan_type plan_column_type(enum plan_column column)
{
	return columns[column].type;
}
