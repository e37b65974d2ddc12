/* SPDX-License-Identifier: MIT */
/*
 * parameters SEED: calls every heap function that the process has, found by its name, and those of xheap/heap.h, with
 * arguments of all kinds. Print each call behind the last one: the thread's id, the function, its arguments. Nothing
 * else of the two threads makes heap calls between the first and the last one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "expect.h"
#include "xheap/heap.h"

enum { ROUNDS = 12, CALLS_MAX = 4000, ARGUMENTS_MAX = 4, THREADS = 2, FLAG_ALIGN_64 = 6, POOLS = 300 };

#define AS(value) ((uint64_t)(uintptr_t)(value))

struct call {
	const char *name;
	void *function;
	uint64_t argument[ARGUMENTS_MAX];
	int count;
	char text[96]; /* a heap's name, the second argument; "": there is none */
};

struct caller {
	pthread_t thread;
	int tid;
	unsigned seed;
	struct call calls[CALLS_MAX];
	int made;
};

/* The parameters by letter: s size, c count, a alignment, p a block, m a place for a block, f flags of mallocx. A block
   that a function takes was made by the name in `maker`; blocks that one returns go back by `ender`. */
static const struct row {
	const char *name, *parameters, *maker, *ender;
} rows[] = {
	{"malloc", "s", NULL, "free"},
	{"calloc", "cs", NULL, "free"},
	{"realloc", "ps", "malloc", "free"},
	{"reallocarray", "pcs", "malloc", "free"},
	{"memalign", "as", NULL, "free"},
	{"aligned_alloc", "as", NULL, "free"},
	{"posix_memalign", "mas", NULL, "free"},
	{"valloc", "s", NULL, "free"},
	{"pvalloc", "s", NULL, "free"},
	{"cfree", "p", "malloc", NULL},
	{"free_sized", "ps", "malloc", NULL},
	{"free_aligned_sized", "pas", "aligned_alloc", NULL},
	{"_Znwm", "s", NULL, "_ZdlPv"},
	{"_Znam", "s", NULL, "_ZdaPv"},
	{"_ZnwmSt11align_val_t", "sa", NULL, "_ZdlPvSt11align_val_t"},
	{"_ZnamSt11align_val_t", "sa", NULL, "_ZdaPvSt11align_val_t"},
	{"_ZdlPvm", "ps", "_Znwm", NULL},
	{"_ZdaPvm", "ps", "_Znam", NULL},
	{"_ZdlPvmSt11align_val_t", "psa", "_ZnwmSt11align_val_t", NULL},
	{"mallocx", "sf", NULL, "dallocx"},
	{"rallocx", "psf", "mallocx", "dallocx"},
	{"sdallocx", "psf", "mallocx", NULL},
	{"mi_malloc", "s", NULL, "mi_free"},
	{"mi_zalloc", "s", NULL, "mi_free"},
	{"mi_calloc", "cs", NULL, "mi_free"},
	{"mi_mallocn", "cs", NULL, "mi_free"},
	{"mi_realloc", "ps", "mi_malloc", "mi_free"},
	{"mi_reallocn", "pcs", "mi_malloc", "mi_free"},
	{"mi_malloc_aligned", "sa", NULL, "mi_free_aligned"},
	{"mi_zalloc_aligned", "sa", NULL, "mi_free"},
	{"mi_realloc_aligned", "psa", "mi_malloc", "mi_free"},
	{"mi_new", "s", NULL, "mi_free"},
	{"mi_free_size", "ps", "mi_malloc", NULL},
	{"mi_free_size_aligned", "psa", "mi_malloc_aligned", NULL},
	{"tc_malloc", "s", NULL, "tc_free"},
	{"tc_calloc", "cs", NULL, "tc_free"},
	{"tc_realloc", "ps", "tc_malloc", "tc_free"},
	{"tc_memalign", "as", NULL, "tc_free"},
	{"tc_posix_memalign", "mas", NULL, "tc_free"},
	{"tc_new", "s", NULL, "tc_delete"},
	{"tc_delete_sized", "ps", "tc_new", NULL},
	{"free", "p", "malloc", NULL},
	{"_ZdlPv", "p", "_Znwm", NULL},
	{"_ZdaPv", "p", "_Znam", NULL},
	{"_ZdlPvSt11align_val_t", "pa", "_ZnwmSt11align_val_t", NULL},
	{"_ZdaPvSt11align_val_t", "pa", "_ZnamSt11align_val_t", NULL},
	{"dallocx", "pf", "mallocx", NULL},
	{"mi_free", "p", "mi_malloc", NULL},
	{"mi_free_aligned", "pa", "mi_malloc_aligned", NULL},
	{"tc_free", "p", "tc_malloc", NULL},
	{"tc_delete", "p", "tc_new", NULL},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
static void *functions[ROWS];

static int row_of(const char *name)
{
	for (int i = 0; name && i < ROWS; i++)
		if (!strcmp(rows[i].name, name))
			return functions[i] ? i : -1;
	return -1;
}

/* An allocator that lacks a function leaves that of the C library in sight, whose blocks are not its own. */
static int is_of_one(int i, int other)
{
	Dl_info one, two;
	return other >= 0 && dladdr(functions[i], &one) && dladdr(functions[other], &two) &&
	       one.dli_fbase == two.dli_fbase;
}

static void note(struct caller *caller, const char *name, void *function, int count, const uint64_t *argument)
{
	struct call *call = &caller->calls[caller->made++];
	EXPECT(caller->made < CALLS_MAX);
	*call = (struct call){name, function, {0}, count, ""};
	memcpy(call->argument, argument, (size_t)count * sizeof(*argument));
}

/* Make a call of a row. The alignment is that of a block that was made so, or one by chance. Return the block. */
static uint64_t call_row(struct caller *caller, int i, uint64_t block, size_t size, size_t alignment)
{
	uint64_t (*function)(uint64_t one, uint64_t two, uint64_t three) =
		(uint64_t(*)(uint64_t, uint64_t, uint64_t))functions[i];
	uint64_t argument[ARGUMENTS_MAX] = {0}, count = 1 + random_below(&caller->seed, 5);
	void *place = NULL;
	int given = 0;
	/* calloc and its like: the size of all is that of the block. */
	int has_count = strchr(rows[i].parameters, 'c') != NULL;
	for (const char *at = rows[i].parameters; *at; at++)
		argument[given++] = *at == 's'   ? (has_count ? size / count : size)
				    : *at == 'c' ? count
				    : *at == 'a' ? alignment
				    : *at == 'p' ? block
				    : *at == 'm' ? AS(&place)
						 : FLAG_ALIGN_64;
	note(caller, rows[i].name, functions[i], given, argument);
	uint64_t result = function(argument[0], argument[1], argument[2]);
	return place ? AS(place) : result;
}

static void use_row(struct caller *caller, int i)
{
	size_t alignment = (size_t)64 << random_below(&caller->seed, 4);
	/* aligned_alloc wants a multiple. */
	size_t size = alignment * (1 + random_below(&caller->seed, 50));
	int maker = row_of(rows[i].maker), ender = row_of(rows[i].ender);
	uint64_t block = 0;
	if (!functions[i] || (rows[i].maker && !is_of_one(i, maker)) || (rows[i].ender && !is_of_one(i, ender)))
		return;
	if (rows[i].maker)
		block = call_row(caller, maker, 0, size, alignment);
	EXPECT(!rows[i].maker || block);
	if (rows[i].ender) /* another size */
		size += alignment;
	block = call_row(caller, i, block, size, alignment);
	if (rows[i].ender) {
		EXPECT(block);
		call_row(caller, ender, block, size, alignment);
	}
}

#define NOTE(caller, function, ...) \
	note(caller, #function, NULL, (int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)), \
	     (const uint64_t[]){__VA_ARGS__})

static void note_name(struct caller *caller, const char *name)
{
	struct call *call = &caller->calls[caller->made - 1];
	snprintf(call->text, sizeof(call->text), "%s", name ? name : "0");
}

/* A call that names a heap. */
#define NOTE_NAMED(caller, function, name, ...) \
	do { \
		NOTE(caller, function, __VA_ARGS__); \
		note_name(caller, name); \
	} while (0)

/* Names of heaps: none, control characters, one that is too long, one more than a process has room for. */
static void name_heaps(struct caller *caller)
{
	static const char *const names[] = {
		NULL,
		"a\x01\x7f"
		"b",
		"long01234567890123456789012345678901234567890123456789012345678901234567890", "pool\"s\\",
		"annotated"};
	static char memory[THREADS][POOLS][8];
	char(*pools)[8] = memory[caller->tid % THREADS];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		NOTE_NAMED(caller, xheap_heap_create, names[i], AS(pools[0]));
		xheap_heap_create(pools[0], names[i]);
		NOTE_NAMED(caller, xheap_heap_create_sized, names[i], AS(pools[1]), AS(pools[2]), 8, 4);
		xheap_heap_create_sized(pools[1], names[i], pools[2], 8, 4);
	}
	for (int i = 0; i < POOLS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "pool%d", i);
		NOTE_NAMED(caller, xheap_heap_create, name, AS(pools[i]));
		xheap_heap_create(pools[i], name);
	}
}

/* The functions of xheap/heap.h, and calls that fail. realloc of nothing and to nothing have other effects. */
static void use_others(struct caller *caller)
{
	static char memory[THREADS][4096];
	char *heap = memory[caller->tid % THREADS];
	size_t size = 1 + random_below(&caller->seed, 1000), huge = (size_t)1 << 62;
	volatile size_t many = (size_t)1 << 40, none = 0;
	NOTE_NAMED(caller, xheap_heap_create, "pool", AS(heap));
	xheap_heap_create(heap, "pool");
	NOTE(caller, xheap_heap_alloc, AS(heap), AS(heap + 64), size);
	xheap_heap_alloc(heap, heap + 64, size);
	NOTE(caller, xheap_heap_realloc, AS(heap), AS(heap + 64), AS(heap + 1100), size + 1);
	xheap_heap_realloc(heap, heap + 64, heap + 1100, size + 1);
	NOTE(caller, xheap_heap_lock, AS(heap));
	xheap_heap_lock(heap);
	NOTE(caller, xheap_heap_unlock, AS(heap));
	xheap_heap_unlock(heap);
	NOTE(caller, xheap_heap_protect, AS(heap), AS(heap + 128), 256, PROT_READ);
	xheap_heap_protect(heap, heap + 128, 256, PROT_READ);
	NOTE(caller, xheap_heap_free, AS(heap), AS(heap + 1100));
	xheap_heap_free(heap, heap + 1100);
	NOTE(caller, xheap_heap_reset, AS(heap));
	xheap_heap_reset(heap);
	NOTE(caller, xheap_heap_destroy, AS(heap));
	xheap_heap_destroy(heap);
	NOTE_NAMED(caller, xheap_heap_create_sized, "sized", AS(heap), AS(heap + 8), 4096, size);
	xheap_heap_create_sized(heap, "sized", heap + 8, 4096, size);
	NOTE(caller, xheap_heap_destroy, AS(heap));
	xheap_heap_destroy(heap);

	note(caller, "malloc", functions[row_of("malloc")], 1, (const uint64_t[]){huge});
	EXPECT(!malloc(huge));
	note(caller, "calloc", functions[row_of("calloc")], 2, (const uint64_t[]){many, many});
	EXPECT(!calloc(many, many));
	note(caller, "calloc", functions[row_of("calloc")], 2, (const uint64_t[]){none, 7});
	void *block = calloc(none, 7);
	note(caller, "realloc", functions[row_of("realloc")], 2, (const uint64_t[]){AS(block), 48});
	block = realloc(block, 48);
	note(caller, "realloc", functions[row_of("realloc")], 2, (const uint64_t[]){AS(block), huge});
	EXPECT(!realloc(block, huge));
	note(caller, "free", functions[row_of("free")], 1, (const uint64_t[]){AS(block)});
	free(block);
	note(caller, "realloc", functions[row_of("realloc")], 2, (const uint64_t[]){0, size});
	block = realloc(NULL, size);
	note(caller, "free", functions[row_of("free")], 1, (const uint64_t[]){AS(block)});
	free(block);
}

static void *run(void *argument)
{
	struct caller *caller = argument;
	caller->tid = gettid();
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < ROWS; i++)
			use_row(caller, i);
		use_others(caller);
	}
	name_heaps(caller);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct caller callers[THREADS];
	EXPECT(argc == 2);
	for (int i = 0; i < ROWS; i++)
		functions[i] = dlsym(RTLD_DEFAULT, rows[i].name);
	for (int i = 0; i < THREADS; i++) {
		callers[i].seed = (unsigned)(atoi(argv[1]) + i);
		EXPECT(!pthread_create(&callers[i].thread, NULL, run, &callers[i]));
		pthread_join(callers[i].thread, NULL);
	}
	for (int i = 0; i < THREADS; i++)
		for (const struct call *call = callers[i].calls; call < callers[i].calls + callers[i].made; call++) {
			printf("%d %s %p", callers[i].tid, call->name, call->function);
			for (int a = 0; a < call->count; a++)
				printf(" %llu%s%s", (unsigned long long)call->argument[a], a || !*call->text ? "" : " ",
				       a ? "" : call->text);
			printf("\n");
		}
	return 0;
}
