/* SPDX-License-Identifier: MIT */
/*
 * Which writable memory of a core is a root:
 *
 *     a mapping of a file         all of it, but for glibc's main arena, whose lists point to free blocks
 *     the stack of a thread       from its stack pointer on; all of it if that is elsewhere
 *     the stack of an ended one   nothing: the C library keeps it for the next thread
 *     other anonymous memory      what no block lies on, and no arena of glibc; static thread-local storage is there
 *
 * LeakSanitizer leaves out the last one, as far as no module has it: memory that a program maps by itself. Pools of
 * interpreters are such memory, and point to most of what they have.
 */
#include "action/leaks/leak_roots.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/memory.h"
#include "base/order.h"

enum {
	DATA_BYTES_MAX = 64 << 20,
	LISTS = 127,
	LIST_BYTES = 16,
	EMPTY_LISTS_LEAST = 32,
	ARENA_HEAD_BYTES = 112 /* before its lists */
};
enum { RED_ZONE_BYTES = 128, CONTROL_BYTES = 64 << 10, CONTROL_SELF = 2, WORD_BYTES = sizeof(uint64_t) };

static void span_add(struct leak_heaps *heaps, uint64_t low, uint64_t high)
{
	memory_grow(heaps->spans, heaps->span_count, heaps->span_capacity);
	heaps->spans[heaps->span_count++] = (struct leak_span){low, high};
}

void leak_heaps_fini(struct leak_heaps *heaps)
{
	heap_extents_fini(&heaps->pages);
	free(heaps->spans);
	*heaps = (struct leak_heaps){.break_low = UINT64_MAX};
}

COMPARE_BY(spans_compare, struct leak_span, low)

/* Take the memory between two addresses that is in none of the spans, which are sorted, and do not overlap. */
static void range_take(struct reach *reach, const struct leak_heaps *heaps, uint64_t low, uint64_t high)
{
	size_t place;
	BISECT(place, heaps->span_count, i, heaps->spans[i].high <= low);
	for (; place < heaps->span_count && heaps->spans[place].low < high && low < high; place++) {
		const struct leak_span *span = &heaps->spans[place];
		if (span->low > low)
			reach_range(reach, low, span->low);
		low = span->high;
	}
	if (low < high)
		reach_range(reach, low, high);
}

/* The C library describes a thread at the end of its stack, and begins with the address of that twice. */
static bool is_stack_of_thread(const struct corefile *core, const struct core_segment *segment)
{
	uint64_t words[CONTROL_BYTES / WORD_BYTES];
	const uint64_t size = segment->high - segment->low;
	const uint64_t low = size < sizeof(words) ? segment->low : segment->high - sizeof(words);
	const size_t count = corefile_read(core, low, words, (size_t)(segment->high - low)) / WORD_BYTES;
	for (size_t i = 0; i + CONTROL_SELF < count; i++)
		if (words[i] == low + i * WORD_BYTES && words[i + CONTROL_SELF] == words[i])
			return true;
	return false;
}

/* Take the part of an anonymous mapping that is in use as a stack. Return false if it is no stack. */
static bool stack_take(struct reach *reach, const struct corefile *core, const struct core_segment *segment)
{
	const struct core_facts *facts = corefile_facts(core);
	uint64_t low = UINT64_MAX;
	bool has_thread = false;
	for (size_t i = 0; i < facts->thread_count; i++) {
		const uint64_t pointer = facts->threads[i].registers[CORE_RSP],
			       thread_pointer = facts->threads[i].thread_pointer;
		if (pointer >= segment->low && pointer < segment->high && pointer < low)
			low = pointer;
		has_thread |= thread_pointer >= segment->low && thread_pointer < segment->high;
	}
	if (low != UINT64_MAX) {
		low = low - segment->low > RED_ZONE_BYTES ? low - RED_ZONE_BYTES : segment->low;
		reach_range(reach, low, segment->high);
		return true;
	}
	return !has_thread && is_stack_of_thread(core, segment);
}

static void segment_take(struct reach *reach, const struct corefile *core, const struct core_segment *segment,
			 struct leak_heaps *heaps)
{
	if (segment->is_file) {
		range_take(reach, heaps, segment->low, segment->high);
		return;
	}
	if (stack_take(reach, core, segment))
		return;
	uint64_t high = segment->high;
	if (heaps->break_low >= segment->low && heaps->break_low < high)
		high = heaps->break_low;
	range_take(reach, heaps, segment->low, high);
}

/*
 * The main arena has two words for each of its lists. Those of an empty list point 16 bytes before themselves. A free
 * block's address there would be one within the block before it, as glibc counts.
 */
static void main_arena_find(const struct corefile *core, const struct core_segment *segment, struct leak_heaps *heaps)
{
	const uint64_t size = segment->high - segment->low;
	uint64_t first = 0, last = 0, empty_count = 0;
	if (size > DATA_BYTES_MAX)
		return;
	uint64_t *words = memory_resize(NULL, (size_t)size, 1);
	const size_t count = corefile_read(core, segment->low, words, (size_t)size) / WORD_BYTES;
	for (size_t i = 0; i + 1 < count; i++) {
		const uint64_t address = segment->low + i * WORD_BYTES;
		if (words[i] != address - LIST_BYTES || words[i + 1] != words[i])
			continue;
		first = empty_count++ ? first : address;
		last = address;
	}
	free(words);
	const uint64_t reach = (LISTS - 1) * LIST_BYTES;
	if (empty_count >= EMPTY_LISTS_LEAST && last - first <= reach && last > reach + ARENA_HEAD_BYTES)
		span_add(heaps, last - reach - ARENA_HEAD_BYTES, last + LIST_BYTES);
}

static void pages_add(struct leak_heaps *heaps)
{
	/* Sorts and joins them. */
	heap_extents_within(&heaps->pages, 0, 0, 0);
	for (size_t i = 0; i < heaps->pages.count; i++)
		span_add(heaps, heaps->pages.items[i].first * HEAP_PAGE_BYTES,
			 (heaps->pages.items[i].last + 1) * HEAP_PAGE_BYTES);
}

void leak_roots_take(struct reach *reach, const struct corefile *core, struct leak_heaps *heaps)
{
	const struct core_facts *facts = corefile_facts(core);
	pages_add(heaps);
	for (size_t i = 0; i < facts->segment_count; i++)
		if (facts->segments[i].is_writable && facts->segments[i].is_file)
			main_arena_find(core, &facts->segments[i], heaps);
	if (heaps->span_count)
		qsort(heaps->spans, heaps->span_count, sizeof(*heaps->spans), spans_compare);
	for (size_t i = 0; i < facts->thread_count; i++)
		reach_words(reach, facts->threads[i].registers, CORE_REGISTER_COUNT);
	for (size_t i = 0; i < facts->segment_count; i++)
		if (facts->segments[i].is_writable)
			segment_take(reach, core, &facts->segments[i], heaps);
}
