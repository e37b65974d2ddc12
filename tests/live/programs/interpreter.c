/* SPDX-License-Identifier: MIT */
/* A library that looks like CPython: tables that name an allocator's functions, and a caller that has a copy of one, as
 * a compiler with a profile makes it. */
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default"), used))
#define OWN static __attribute__((noinline))

struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t bytes);
	void *(*calloc)(void *context, size_t count, size_t bytes);
	void *(*realloc)(void *context, void *object, size_t bytes);
	void (*free)(void *context, void *object);
};

EXPORTED const unsigned long Py_Version = 0x030b00f0;
EXPORTED char PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8];
static char pool[1 << 16], *next = pool;

EXPORTED void *PyGILState_GetThisThreadState(void)
{
	return NULL;
}

EXPORTED int _PyEval_EvalFrameDefault(int number)
{
	return number * 7 % 5;
}

OWN void *object_malloc(void *context, size_t bytes)
{
	char *object = next;
	next = context ? next : pool + (next - pool + bytes) % (sizeof(pool) / 2);
	return object;
}

OWN void *object_calloc(void *context, size_t count, size_t bytes)
{
	return object_malloc(context, count * bytes);
}

OWN void *object_realloc(void *context, void *object, size_t bytes)
{
	return bytes ? object : object_malloc(context, bytes);
}

OWN void object_free(void *context, void *object)
{
	*(void **)object = context;
}

#define ALLOCATOR \
	{ \
		NULL, object_malloc, object_calloc, object_realloc, object_free \
	}
struct allocator of_objects __attribute__((visibility("hidden"))) = ALLOCATOR;
struct allocator of_memory __attribute__((visibility("hidden"))) = ALLOCATOR;

EXPORTED void *PyObject_Malloc(size_t bytes)
{
	if (of_objects.malloc == object_malloc)
		return next = pool;
	return of_objects.malloc(of_objects.context, bytes);
}

EXPORTED void *PyMem_Malloc(size_t bytes)
{
	return of_memory.malloc(of_memory.context, bytes);
}
