/* SPDX-License-Identifier: MIT */
#include "own_allocator.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../calls.h"

#ifdef OWN_UNLOGGED /* the program logs its calls itself */
#define call_enter(...) NULL
#define call_return(record, result, error) ((void)(record))
#endif

enum { CLASS_COUNT = 24, ARENA_BYTES = 64 << 20, ALIGNMENT = 16 };

struct head {
	uint64_t class_index, reserved;
};

struct chunk {
	struct head head;
	uint64_t next; /* of a free chunk: offset in the arena */
};

volatile int own_allocator_delay;
volatile int own_allocator_inside;

static char arena[ARENA_BYTES] __attribute__((aligned(4096)));
static uint64_t arena_used = 16;
static uint64_t lists[CLASS_COUNT]; /* low 32 bits: offset of the first free chunk; high: a tag, against ABA */

static unsigned class_of(size_t size)
{
	unsigned index = 0;

	while (index < CLASS_COUNT && ((size_t)32 << index) < size + sizeof(struct head))
		index++;
	return index;
}

static struct chunk *list_pop(unsigned index)
{
	uint64_t head = __atomic_load_n(&lists[index], __ATOMIC_ACQUIRE);

	while ((uint32_t)head) {
		struct chunk *chunk = (struct chunk *)(arena + (uint32_t)head);
		uint64_t next = ((head >> 32) + 1) << 32 | (uint32_t)chunk->next;
		if (__atomic_compare_exchange_n(&lists[index], &head, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return chunk;
	}
	return NULL;
}

static void list_push(unsigned index, struct chunk *chunk)
{
	uint64_t head = __atomic_load_n(&lists[index], __ATOMIC_ACQUIRE), next;

	do {
		chunk->next = (uint32_t)head;
		next = ((head >> 32) + 1) << 32 | (uint64_t)((char *)chunk - arena);
	} while (!__atomic_compare_exchange_n(&lists[index], &head, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

static struct chunk *arena_carve(unsigned index)
{
	uint64_t bytes = (uint64_t)32 << index;
	uint64_t at = __atomic_fetch_add(&arena_used, bytes, __ATOMIC_RELAXED);

	return at + bytes <= ARENA_BYTES ? (struct chunk *)(arena + at) : NULL;
}

static void *own_take(size_t size)
{
	unsigned index = class_of(size);
	struct chunk *chunk = NULL;

	if (index < CLASS_COUNT) {
		chunk = list_pop(index);
		for (volatile int i = 0; i < own_allocator_delay; i++)
			;
		if (!chunk)
			chunk = arena_carve(index);
	}
	if (!chunk) {
		errno = ENOMEM;
		return NULL;
	}
	chunk->head.class_index = index;
	return &chunk->head + 1;
}

static size_t own_size(void *pointer)
{
	return ((size_t)32 << ((struct head *)pointer)[-1].class_index) - sizeof(struct head);
}

static void own_give(void *pointer)
{
	struct head *head = (struct head *)pointer - 1;

	list_push((unsigned)head->class_index, (struct chunk *)head);
}

void *malloc(size_t size)
{
	struct call_record *record = call_enter(CALL_MALLOC, size, 0, 0);
	int before = own_allocator_inside;

	own_allocator_inside = 1;
	void *result = own_take(size);
	own_allocator_inside = before;
	call_return(record, (uintptr_t)result, result ? 0 : errno);
	return result;
}

void *calloc(size_t count, size_t size)
{
	struct call_record *record = call_enter(CALL_CALLOC, count, size, 0);
	void *result = size && count > SIZE_MAX / size ? NULL : own_take(count * size);

	if (result)
		memset(result, 0, count * size);
	call_return(record, (uintptr_t)result, result ? 0 : ENOMEM);
	return result;
}

static void *own_resize(void *pointer, size_t size)
{
	if (pointer && size == 0) {
		own_give(pointer);
		return NULL;
	}
	if (pointer && size <= own_size(pointer))
		return pointer;
	void *result = own_take(size);
	if (result && pointer) {
		memcpy(result, pointer, own_size(pointer));
		own_give(pointer);
	}
	return result;
}

void *realloc(void *pointer, size_t size)
{
	struct call_record *record = call_enter(CALL_REALLOC, (uintptr_t)pointer, size, 0);
	void *result = own_resize(pointer, size);

	call_return(record, (uintptr_t)result, result || !size ? 0 : ENOMEM);
	return result;
}

void free(void *pointer)
{
	struct call_record *record = call_enter(CALL_FREE, (uintptr_t)pointer, 0, 0);

	if (pointer)
		own_give(pointer);
	call_return(record, 0, 0);
}
