/* SPDX-License-Identifier: MIT */
/**
 * The malloc family with every call logged, once for each way of standing between a program and its allocator.
 * Before including it define OUR(name), the function to define, and REAL(name), a pointer to the next one.
 */
#include "calls.h"

#include <errno.h>

void *OUR(malloc)(size_t size);
void *OUR(calloc)(size_t count, size_t size);
void *OUR(realloc)(void *pointer, size_t size);
void *OUR(reallocarray)(void *pointer, size_t count, size_t size);
void OUR(free)(void *pointer);
void *OUR(memalign)(size_t alignment, size_t size);
void *OUR(aligned_alloc)(size_t alignment, size_t size);
int OUR(posix_memalign)(void **result, size_t alignment, size_t size);
void *OUR(valloc)(size_t size);
void *OUR(pvalloc)(size_t size);

/* What an allocator's function calls itself, as reallocarray calls realloc, is no call of the program's. */
static __thread int depth __attribute__((tls_model("initial-exec")));

static struct call_record *outermost_enter(enum call_function function, uintptr_t first, uintptr_t second,
					   uintptr_t third)
{
	return depth++ ? NULL : call_enter(function, first, second, third);
}

static void outermost_return(struct call_record *record, uintptr_t result, int error)
{
	depth--;
	call_return(record, result, error);
}

#define CALL_AND_LOG(function, first, second, third, call) \
	do { \
		struct call_record *record = \
			outermost_enter(function, (uintptr_t)(first), (uintptr_t)(second), (uintptr_t)(third)); \
		void *result = call; \
		outermost_return(record, (uintptr_t)result, result ? 0 : errno); \
		return result; \
	} while (0)

void *OUR(malloc)(size_t size)
{
	CALL_AND_LOG(CALL_MALLOC, size, 0, 0, REAL(malloc)(size));
}

void *OUR(calloc)(size_t count, size_t size)
{
	CALL_AND_LOG(CALL_CALLOC, count, size, 0, REAL(calloc)(count, size));
}

void *OUR(realloc)(void *pointer, size_t size)
{
	CALL_AND_LOG(CALL_REALLOC, pointer, size, 0, REAL(realloc)(pointer, size));
}

void *OUR(reallocarray)(void *pointer, size_t count, size_t size)
{
	CALL_AND_LOG(CALL_REALLOCARRAY, pointer, count, size, REAL(reallocarray)(pointer, count, size));
}

void OUR(free)(void *pointer)
{
	struct call_record *record = outermost_enter(CALL_FREE, (uintptr_t)pointer, 0, 0);

	REAL(free)(pointer);
	outermost_return(record, 0, 0);
}

void *OUR(memalign)(size_t alignment, size_t size)
{
	CALL_AND_LOG(CALL_MEMALIGN, alignment, size, 0, REAL(memalign)(alignment, size));
}

void *OUR(aligned_alloc)(size_t alignment, size_t size)
{
	CALL_AND_LOG(CALL_ALIGNED_ALLOC, alignment, size, 0, REAL(aligned_alloc)(alignment, size));
}

int OUR(posix_memalign)(void **result, size_t alignment, size_t size)
{
	struct call_record *record = outermost_enter(CALL_POSIX_MEMALIGN, (uintptr_t)result, alignment, size);
	int error = REAL(posix_memalign)(result, alignment, size);

	outermost_return(record, error ? 0 : (uintptr_t)*result, error);
	return error;
}

void *OUR(valloc)(size_t size)
{
	CALL_AND_LOG(CALL_VALLOC, size, 0, 0, REAL(valloc)(size));
}

void *OUR(pvalloc)(size_t size)
{
	CALL_AND_LOG(CALL_PVALLOC, size, 0, 0, REAL(pvalloc)(size));
}
