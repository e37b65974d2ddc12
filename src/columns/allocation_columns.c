/* SPDX-License-Identifier: MIT */
/* The columns of allocations. */
#include "columns/column.h"
#include "table/weight.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

static inline bool is_earlier(const struct column_row *row)
{
	return row->allocation.flags & HEAP_EARLIER;
}

static inline const struct trace_thread *thread_of(const struct column_row *row)
{
	return &row->dictionary->threads[row->allocation.thread];
}

static inline uint32_t pid_of(const struct column_row *row)
{
	return row->dictionary->processes[thread_of(row)->process].pid;
}

static inline bool has_heap(const struct column_row *row)
{
	return row->allocation.heap < row->dictionary->heap_count;
}

static inline bool has_free_thread(const struct column_row *row)
{
	return row->details->end_thread != HEAP_NONE;
}

static inline const struct heap_site *site_of(const struct column_row *row)
{
	return &row->table->sites[row->allocation.site];
}

static inline bool has_free_site(const struct column_row *row)
{
	return row->allocation.end_site != HEAP_NONE;
}

static inline uint32_t free_stack_of(const struct column_row *row)
{
	return has_free_site(row) ? row->table->sites[row->allocation.end_site].stack : 0;
}

static inline uint32_t free_function_of(const struct column_row *row)
{
	return has_free_site(row) ? row->table->sites[row->allocation.end_site].entry : HEAP_NONE;
}

/* A copy is weighed: if a call had its address, the compiler would make each row in memory. */
static inline struct heap_weight weight_of(const struct column_row *row)
{
	if (__builtin_expect(!row->table->sample_bytes, 1))
		return (struct heap_weight){.count = 1, .bytes = row->allocation.size_bytes};
	const struct heap_allocation copy = row->allocation;
	return heap_sample_weight(row->table->sample_bytes, &copy);
}

/* The two functions of a column: its value, and whether there is one, as expressions over `row`. */
#define VALUES(name, value_, is_present_) \
	static inline __attribute__((always_inline)) bool get_##name(const struct column_row *row, uint64_t *value) \
	{ \
		*value = (uint64_t)(value_); \
		return (is_present_); \
	} \
	static void fill_##name(const struct column_rows *given, uint64_t *restrict values, uint8_t *restrict absent) \
	{ \
		const struct column_rows rows = *given; \
		for (uint32_t i = 0; i < rows.count; i++) { \
			const struct column_row row = {.dictionary = rows.dictionary, \
						       .id = rows.first_id + i, \
						       .table = rows.table, \
						       .allocation = pack_row(rows.packed, i), \
						       .details = &rows.details[i]}; \
			absent[i] = !get_##name(&row, &values[i]); \
		} \
	}
#define ALWAYS true

VALUES(id, row->id, ALWAYS)
VALUES(process, thread_of(row)->process, ALWAYS)
VALUES(pid, pid_of(row), pid_of(row) != 0)
VALUES(thread, row->allocation.thread, !is_earlier(row))
VALUES(tid, thread_of(row)->tid, !is_earlier(row))
VALUES(function, site_of(row)->entry, site_of(row)->entry < row->dictionary->entry_count)
VALUES(heap, has_heap(row) ? row->dictionary->heaps[row->allocation.heap].handle : 0, has_heap(row))
VALUES(heap_id, row->allocation.heap, has_heap(row))
VALUES(address, row->details->address, ALWAYS)
VALUES(size, row->allocation.size_bytes, ALWAYS)
VALUES(usable, (uint64_t)row->allocation.size_bytes + heap_slack(row->details),
       row->details->slack_bytes != HEAP_SLACK_UNKNOWN)
VALUES(birth, row->allocation.birth_ns, !is_earlier(row))
VALUES(end, row->allocation.end_ns, row->allocation.end != HEAP_END_OPEN)
VALUES(end_kind, row->allocation.end, ALWAYS)
VALUES(lifetime, heap_lifetime_ns(&row->allocation), !is_earlier(row))
VALUES(free_thread, row->details->end_thread, has_free_thread(row))
VALUES(free_tid, has_free_thread(row) ? row->dictionary->threads[row->details->end_thread].tid : 0,
       has_free_thread(row))
VALUES(flags, row->allocation.flags, ALWAYS)
VALUES(site, row->allocation.site, ALWAYS)
VALUES(stack, site_of(row)->stack, site_of(row)->stack != 0)
VALUES(free_site, row->allocation.end_site, has_free_site(row))
VALUES(free_stack, free_stack_of(row), free_stack_of(row) != 0)
VALUES(free_function, free_function_of(row), free_function_of(row) < row->dictionary->entry_count)
VALUES(previous, row->details->previous, row->details->previous != HEAP_NONE)
VALUES(weight_count, weight_of(row).count, ALWAYS)
VALUES(weight_bytes, weight_of(row).bytes, ALWAYS)

#define OF(name) get_##name, fill_##name

/* clang-format off */
const struct column column_of_allocations[COLUMN_COUNT] = {
	[COLUMN_ID] = {"id", TYPE_ALLOCATION, 8, 0, OF(id),
		.help = "Number of the block in the trace."},
	[COLUMN_PROCESS] = {"process", TYPE_PROCESS, 7, PACK_THREADS, OF(process),
		.help = "Id of the process in the trace."},
	[COLUMN_PID] = {"pid", TYPE_NUMBER, 7, PACK_THREADS, OF(pid),
		.help = "Process id.", .absent = "not known", .bits = 32},
	[COLUMN_THREAD] = {"thread", TYPE_THREAD, 0, PACK_THREADS | PACK_STATES, OF(thread),
		.help = "Id of the thread that allocated.", .absent = "the block is from before the attach"},
	[COLUMN_TID] = {"tid", TYPE_NUMBER, 7, PACK_THREADS | PACK_STATES, OF(tid),
		.help = "Thread that allocated.", .absent = "the block is from before the attach", .bits = 32},
	[COLUMN_FUNCTION] = {"function", TYPE_FUNCTION, 0, PACK_SITES, OF(function),
		.help = "The allocation function that was called, such as malloc.",
		.absent = "the block is from before the attach"},
	[COLUMN_HEAP] = {"heap", TYPE_ADDRESS, 14, PACK_HEAPS, OF(heap),
		.help = "Handle of the heap.", .absent = "not known"},
	[COLUMN_HEAP_ID] = {"heap_id", TYPE_HEAP, 0, PACK_HEAPS, OF(heap_id),
		.help = "Id of the heap in the trace.", .absent = "not known"},
	[COLUMN_ADDRESS] = {"address", TYPE_ADDRESS, 14, PACK_ADDRESSES, OF(address),
		.help = "Address."},
	[COLUMN_SIZE] = {"size", TYPE_BYTES, 10, PACK_SIZES, OF(size),
		.help = "Requested bytes; usable bytes of a block from before the attach.", .lies_in = 1 + PACK_SIZE},
	[COLUMN_USABLE] = {"usable", TYPE_BYTES, 0, PACK_SIZES | PACK_SLACKS, OF(usable),
		.help = "Usable bytes.", .absent = "not known"},
	[COLUMN_BIRTH] = {"birth_ns", TYPE_TIME, 14, PACK_TIMES, OF(birth),
		.help = "When it began, in nanoseconds since T = 0.", .absent = "before the attach"},
	[COLUMN_END] = {"end_ns", TYPE_TIME, 14, PACK_TIMES, OF(end),
		.help = "When it ended, in nanoseconds since T = 0.", .absent = "it is open"},
	[COLUMN_END_KIND] = {"end_kind", TYPE_WORD, -8, PACK_STATES, OF(end_kind),
		.help = "What ended it.", .words = heap_end_words, .word_count = HEAP_END_COUNT},
	[COLUMN_LIFETIME] = {"lifetime_ns", TYPE_TIME, 14, PACK_TIMES, OF(lifetime),
		.help = "Its lifetime, or its age if it is open, in nanoseconds.",
		.absent = "it is from before the attach"},
	[COLUMN_FREE_THREAD] = {"free_thread", TYPE_THREAD, 0, PACK_END_THREADS, OF(free_thread),
		.help = "Id of the thread that ended it.", .absent = "no thread did"},
	[COLUMN_FREE_TID] = {"free_tid", TYPE_NUMBER, 8, PACK_END_THREADS, OF(free_tid),
		.help = "Thread that ended it.", .absent = "no thread did", .bits = 32},
	[COLUMN_FLAGS] = {"flags", TYPE_NUMBER, 0, PACK_STATES, OF(flags),
		.help = "Bits of enum heap_allocation_flag.", .bits = 8},
	[COLUMN_SITE] = {"site_id", TYPE_SITE, 0, PACK_SITES, OF(site),
		.help = "Stack and function of the allocation, as one number.", .lies_in = 1 + PACK_SITE},
	[COLUMN_STACK] = {"stack_id", TYPE_STACK, 8, PACK_SITES, OF(stack),
		.help = "Stack of the allocation.", .absent = "not recorded"},
	[COLUMN_FREE_SITE] = {"free_site_id", TYPE_SITE, 0, PACK_END_SITES, OF(free_site),
		.help = "Stack and function of the call that ended it, as one number.", .absent = "none"},
	[COLUMN_FREE_STACK] = {"free_stack_id", TYPE_STACK, 13, PACK_END_SITES, OF(free_stack),
		.help = "Stack of the call that ended it.", .absent = "none, or not recorded"},
	[COLUMN_FREE_FUNCTION] = {"free_function", TYPE_FUNCTION, 0, PACK_END_SITES, OF(free_function),
		.help = "The function of the allocator that ended it, such as free.", .absent = "none"},
	[COLUMN_PREVIOUS] = {"previous_id", TYPE_ALLOCATION, 11, PACK_PREVIOUS_ONES, OF(previous),
		.help = "The block that a realloc made this one of.", .absent = "none"},
	[COLUMN_WEIGHT_COUNT] = {"weight_count", TYPE_NUMBER, 0, PACK_TIMES | PACK_SIZES, OF(weight_count),
		.help = "Blocks that it stands for: 1, or an estimate in a sample."},
	[COLUMN_WEIGHT_BYTES] = {"weight_bytes", TYPE_BYTES, 0, PACK_TIMES | PACK_SIZES, OF(weight_bytes),
		.help = "Bytes that it stands for: its size, or an estimate in a sample."},
};
/* clang-format on */
