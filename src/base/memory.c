/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <assert.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The way out of what a thread tries. */
struct attempt {
	jmp_buf place;
	struct attempt *outer;
	struct memory_guard *guards; /* that were there when it began */
};

static _Thread_local struct attempt *innermost;
static _Thread_local struct memory_guard *guards;
static void (*end_program)(size_t size_bytes);

void memory_set_end(void (*end)(size_t size_bytes))
{
	end_program = end;
}

void memory_exhausted(size_t size_bytes)
{
	while (innermost && guards != innermost->guards) {
		struct memory_guard *guard = guards;
		guards = guard->outer;
		guard->end(guard->context);
	}
	if (innermost)
		longjmp(innermost->place, 1);
	if (end_program)
		end_program(size_bytes);
	__builtin_trap();
}

bool memory_try(void (*work)(void *context), void *context)
{
	assert(work);
	struct attempt attempt = {.outer = innermost, .guards = guards};
	innermost = &attempt;
	bool is_done = !setjmp(attempt.place);
	if (is_done)
		work(context);
	innermost = attempt.outer;
	/* Nobody gives up what is done. What has a guard may go on in another thread, and end there. */
	if (!innermost)
		guards = attempt.guards;
	return is_done;
}

void memory_guard(struct memory_guard *guard, void (*end)(void *context), void *context)
{
	assert(end);
	*guard = (struct memory_guard){end, context, guards};
	guards = guard;
}

void memory_unguard(struct memory_guard *guard)
{
	for (struct memory_guard **at = &guards; *at; at = &(*at)->outer)
		if (*at == guard) {
			*at = guard->outer;
			return;
		}
}

static bool is_generous;

void memory_be_generous(void)
{
	__atomic_store_n(&is_generous, true, __ATOMIC_RELAXED);
}

/* Ask for large pages, where whole ones fit. If the system has none, that is no failure. */
static void large_pages_ask(void *memory, size_t bytes)
{
	enum { LARGE_PAGE_BYTES = 2 << 20 };
	uintptr_t first = ((uintptr_t)memory + LARGE_PAGE_BYTES - 1) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
	uintptr_t end = ((uintptr_t)memory + bytes) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
	if (first < end)
		madvise((void *)first, end - first, MADV_HUGEPAGE);
}

void memory_prefer_large_pages(void *memory, size_t bytes)
{
	/* Of less, a page that is used in part would be too much of it. */
	if (memory && bytes >= (size_t)4 << 20 && __atomic_load_n(&is_generous, __ATOMIC_RELAXED))
		large_pages_ask(memory, bytes);
}

void *memory_resize(void *old, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		memory_exhausted(SIZE_MAX);
	void *memory = realloc(old, bytes ? bytes : 1);
	if (!memory)
		memory_exhausted(bytes);
	memory_prefer_large_pages(memory, bytes);
	return memory;
}

/* calloc() does not write to large pieces. */
void *memory_zeroed(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);
	if (!memory)
		memory_exhausted(count);
	memory_prefer_large_pages(memory, count * size);
	return memory;
}

void *memory_table(size_t count, size_t size)
{
	void *memory = memory_zeroed(count, size);
	large_pages_ask(memory, count * size);
	return memory;
}

size_t memory_capacity(size_t capacity, size_t needed)
{
	if (capacity < 16)
		capacity = 16;
	while (capacity < needed)
		capacity *= 2;
	return capacity;
}
