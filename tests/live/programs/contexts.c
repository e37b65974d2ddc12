/* SPDX-License-Identifier: MIT */
/*
 * Threads that work for one span after the other, and publish that as OTEP 4947 says, at times wrongly. Each prints, for
 * each of its blocks, "size trace span", or "size - -" where nothing valid is published. All sizes are unlike.
 *
 * usage: contexts ROUNDS [LIBRARY]   ROUNDS: below 0, it waits for its input before and after. LIBRARY: it has the variable, is
 * loaded when a block has been allocated, and unloaded before others are
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contexts.h"

enum { THREADS = 4, SIZE_FIRST = 4 << 20, SIZE_STEP = 64, KEPT = 8, PAGE = 4096, LEFT_OUT = 16 };

#ifdef CONTEXTS_OWN
__attribute__((visibility("default"))) _Thread_local struct context_record *otel_thread_ctx_v1;

static void own_set(struct context_record *record)
{
	*(struct context_record *volatile *)&otel_thread_ctx_v1 = record;
}

static void (*context_set)(struct context_record *record) = own_set;

/* A static program has no libraries. */
static void *library_load(const char *path)
{
	(void)path;
	return NULL;
}
#define dlclose(library) (void)(library)
#else
static void (*context_set)(struct context_record *record);

static void *library_load(const char *path)
{
	void *library = path ? dlopen(path, RTLD_NOW) : RTLD_DEFAULT;
	*(void **)&context_set = path && !library ? NULL : dlsym(library, "context_set");
	return library;
}
#endif

static int rounds;
static uint32_t size_next;
static unsigned char *pages; /* a readable one, one that is not */

/* A worker's own: what it has published. */
struct worker {
	struct context_record records[2];
	bool is_published;
	unsigned long random;
	void *kept[KEPT];
};

static unsigned long next(struct worker *worker)
{
	worker->random = worker->random * 6364136223846793005ul + 1442695040888963407ul;
	return worker->random >> 33;
}

static void ids_make(struct worker *worker, struct context_record *record)
{
	for (size_t i = 0; i < sizeof(record->trace_id); i++)
		record->trace_id[i] = (uint8_t)next(worker);
	for (size_t i = 0; i < sizeof(record->span_id); i++)
		record->span_id[i] = (uint8_t)next(worker);
}

static void publish(struct worker *worker, struct context_record *record, bool is_valid)
{
	context_set(record);
	worker->is_published = is_valid;
}

/* What is published next: mostly another span, or what is no context. */
static const struct context_record *change(struct worker *worker, const struct context_record *now)
{
	static const uintptr_t wrong[] = {8, 4095, 1ul << 47, UINTPTR_MAX, UINTPTR_MAX - 15, 0xffff800000000000};
	struct context_record *other = &worker->records[now == &worker->records[0]];
	unsigned long what = next(worker) % 16;
	switch (what) {
	case 0: /* no span */
		publish(worker, NULL, false);
		return NULL;
	case 1: /* in the midst of a change */
	case 2:
		ids_make(worker, other);
		other->valid = what == 1 ? 0 : 2;
		publish(worker, other, false);
		return other;
	case 3: /* nowhere */
		publish(worker, (struct context_record *)wrong[next(worker) % (sizeof(wrong) / sizeof(*wrong))], false);
		return NULL;
	case 4: /* memory that ends amid it, is not readable, begins with the last bytes of what is */
		publish(worker, (struct context_record *)(pages + PAGE - LEFT_OUT), false);
		return NULL;
	case 5:
		publish(worker, (struct context_record *)(pages + PAGE), false);
		return NULL;
	case 6: /* the last bytes that there are */
		publish(worker, (struct context_record *)(pages + PAGE - sizeof(struct context_record)), true);
		return (struct context_record *)(pages + PAGE - sizeof(struct context_record));
	case 7: /* valid, and empty */
		memset(other, 0, sizeof(*other));
		other->valid = 1;
		publish(worker, other, false);
		return other;
	case 8:
	case 9:
	case 10: /* the same as before */
		return now;
	default:
		ids_make(worker, other);
		other->valid = 1;
		publish(worker, other, true);
		return other;
	}
}

static void digits_print(const uint8_t *bytes, size_t count)
{
	putchar_unlocked(' ');
	for (size_t i = 0; i < count; i++)
		printf("%02x", bytes[i]);
}

/* Two places that allocate. */
__attribute__((noinline)) static void *one_site(size_t size)
{
	void *block = malloc(size);
	__asm__ volatile("# one" : : "r"(block) : "memory");
	return block;
}

__attribute__((noinline)) static void *other_site(size_t size)
{
	void *block = calloc(size, 1);
	__asm__ volatile("# other" : : "r"(block) : "memory");
	return block;
}

static void allocate(struct worker *worker, const struct context_record *now)
{
	size_t size = SIZE_FIRST + SIZE_STEP * (size_t)__atomic_fetch_add(&size_next, 1, __ATOMIC_RELAXED);
	unsigned long place = next(worker) % KEPT;
	free(worker->kept[place]);
	worker->kept[place] = next(worker) % 2 ? one_site(size) : other_site(size);
	flockfile(stdout);
	printf("%zu", size);
	if (worker->is_published && now) {
		digits_print(now->trace_id, sizeof(now->trace_id));
		digits_print(now->span_id, sizeof(now->span_id));
	} else {
		printf(" - -");
	}
	putchar_unlocked('\n');
	funlockfile(stdout);
}

static void *work(void *number)
{
	struct worker worker = {.random = 77 + (unsigned long)(uintptr_t)number};
	const struct context_record *now = NULL;
	for (int i = 0; i < rounds; i++) {
		now = change(&worker, now);
		allocate(&worker, now);
	}
	context_set(NULL);
	return NULL;
}

static void pages_make(void)
{
	static const struct context_record last = {{1, 2, 3}, {4, 5}, 1, 0, 0};
	pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(pages, 1, PAGE);
	memcpy(pages + PAGE - sizeof(last), &last, sizeof(last));
	mprotect(pages + PAGE, PAGE, PROT_NONE);
}

int main(int argc, char **argv)
{
	static char room[1 << 16];
	pthread_t threads[THREADS];
	struct worker early = {.random = 1};
	void *library = NULL;
	setvbuf(stdout, room, _IOFBF, sizeof(room));
	rounds = argc > 1 ? atoi(argv[1]) : 100;
	pages_make();
	bool is_waiting = rounds < 0;
	if (is_waiting) {
		rounds = -rounds;
		getchar();
	}
	allocate(&early, NULL);
	/* A thread that was there before its variable. */
	library = library_load(argc > 2 ? argv[2] : NULL);
	if (!context_set) {
		fprintf(stderr, "contexts: there is no variable\n");
		return 1;
	}
	allocate(&early, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	work((void *)(uintptr_t)THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		work((void *)(uintptr_t)(THREADS + 1));
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	size_next += (uint32_t)rounds;
	if (library)
		dlclose(library);
	for (int i = 0; i < 20; i++)
		allocate(&early, NULL);
	fflush(stdout);
	if (is_waiting)
		getchar();
	return 0;
}
