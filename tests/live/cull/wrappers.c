// SPDX-License-Identifier: MIT
// Functions that are wrappers, and functions that lack one thing to be one. tests/live/report/wrappers.py knows which.
#include <pthread.h>
#include <stdlib.h>

#define USER __attribute__((noinline, noclone))
static void *volatile kept;

static void give(void *memory)
{
	kept = memory;
	free(memory);
}

// An allocator of this program's: called by many, and by another wrapper.
USER void *take_memory(size_t size)
{
	void *memory = malloc(size);
	if (!memory)
		abort();
	return memory;
}
// Part of an allocator of the built-in list: malloc is below it, and xzalloc above it.
USER void *between(size_t size) { void *volatile memory = malloc(size); return memory; }
USER void *xzalloc(size_t size) { void *volatile memory = between(size); return memory; }
USER void asks_xzalloc(void) { give(xzalloc(35)); kept = NULL; }
// Directly above a wrapper.
USER void *make_node(int kind) { return take_memory((size_t)kind + 16); }
// Nine callers.
USER void *nine_callers(void) { void *volatile memory = malloc(33); return memory; }
// Many callers, and few calls.
USER void *few_calls(void) { void *volatile memory = malloc(34); return memory; }
// Many callers, and each call is in another one of itself: by itself, and over another function.
USER void walk(int depth) { if (depth) walk(depth - 1); else give(take_memory(100)); }
USER void visit(int depth);
USER void descend(int depth) { visit(depth - 1); }
USER void visit(int depth) { if (depth > 0) descend(depth); else give(take_memory(101)); }
// Many callers, and a thread begins here.
USER void *work(void *argument) { for (int i = 0; i < 4; i++) give(take_memory(102)); return argument; }

#define CALLERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define CALLER(n) \
	USER void caller_##n(void) \
	{ \
		for (int i = 0; i < 20; i++) { \
			give(take_memory(50)); \
			give(make_node(n)); \
			if (n < 9) \
				give(nine_callers()); \
		} \
		if (n % 3 == 0) \
			give(few_calls()); \
		give(few_calls()); \
		for (int i = 0; i < 20; i++) { \
			walk(3); \
			visit(3); \
			work(NULL); \
		} \
		kept = NULL; \
	}
CALLERS(CALLER)

int main(void)
{
	pthread_t thread;
#define CALL(n) caller_##n();
	CALLERS(CALL)
	asks_xzalloc();
	// Directly above a wrapper, with most of its calls.
	for (int i = 0; i < 100; i++)
		give(take_memory(7));
	if (!pthread_create(&thread, NULL, work, NULL))
		pthread_join(thread, NULL);
	return 0;
}
